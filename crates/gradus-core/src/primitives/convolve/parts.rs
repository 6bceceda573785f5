//! What a convolution is made of: products of matrices, in the order that multiplies the fewest zeros and copies the least.

use super::{Apply, Convolve, cut, is_one, moved, permuted, recorded, reshaped, share};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::primitives::Op;
use crate::primitives::dot::DotGeneral;
use crate::primitives::elementwise::Mul;
use crate::primitives::reduce::ReduceSum;
use crate::primitives::shaping::{Broadcast, Concatenate, Pad, Permute, Reshape, Slice, zeros};
use crate::primitives::windows::Windows;
use crate::trace::bind;
use crate::types::{DType, Dim, Scalar, Shape, Type};

/// Where features are so many times the results, products are added up after the multiplication and windows not made before it.
const FEW_RESULTS: usize = 4;
/// The most products that are added up for a result, and the most residues of places that are convolved apart.
const MOST_TERMS: usize = 64;

/// The results of one residue along an axis whose image has holes: they meet the same elements of the kernel, and no hole.
struct Phase {
    /// The first element of the kernel that meets an element of the image, how many there are to the next, and how many there are.
    taps: [usize; 3],
    /// Zeros around the image, negative to crop.
    low: i64,
    high: i64,
    kernel_dilation: usize,
}

/// The phases of one axis, and how many results each has; the last ones may be more than there are in all.
struct Axis {
    phases: Vec<Option<Phase>>,
    results: usize,
    stride: usize,
}

/// The results of one residue along each axis.
type Each<'a> = dyn Fn(&[&Phase]) -> Result<Array> + 'a;

impl Axis {
    /// The zeros around the image that are enough for every phase, none of them negative.
    fn edges(&self) -> [i64; 2] {
        let phases = || self.phases.iter().flatten();
        [phases().map(|p| p.low).fold(0, i64::max), phases().map(|p| p.high).fold(0, i64::max)]
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Convolve {
    /// As [`parts`](Convolve::parts), by the way that takes the least time.
    pub(crate) fn quick_parts(&self, x: &Array, w: &Array) -> Result<Array> {
        if let Some(y) = self.added_products(x, w)? {
            return Ok(y);
        }
        if let Some(y) = self.by_phases(x, w)? {
            return Ok(y);
        }
        self.parts(x, w, recorded)
    }

    /// What it is made of: the image padded, its windows as a view, and one product over features and places.
    pub(super) fn parts(&self, x: &Array, w: &Array, apply: Apply) -> Result<Array> {
        let d = self.spatial();
        let result = self.result_type(x.ty()?, w.ty()?);
        let x = self.padded_image(x, apply)?;
        let sizes: Vec<Dim> = w.shape().iter().take(d).cloned().collect();
        let windows = Windows {
            axes: (1..=d).collect(),
            sizes,
            strides: self.strides.clone(),
            dilations: self.kernel_dilation.clone(),
        };
        // [batch, spatial.., features, places..]
        let x = apply(Op::new(windows), &[x])?;
        if is_one(&self.groups()) {
            return self.one_product(&x, w, &result, apply);
        }
        let alone = is_one(&self.batch_groups) && w.shape().get(d).is_some_and(is_one);
        if alone && matches!(x.dtype(), DType::F32 | DType::F64) {
            return self.each_alone(&x, w, &result, apply);
        }
        let groups = self.groups();
        let reshape = |x: &Array, shape: Shape| apply(Op::new(Reshape { shape }), std::slice::from_ref(x));
        // [places.., features, groups, results]
        let w = reshape(w, cut(w.shape(), d + 1, &groups))?;
        let dot = if is_one(&self.batch_groups) {
            // [batch, spatial.., groups, features, places..]
            DotGeneral {
                lhs_contract: (d + 3..2 * d + 3).chain([d + 2]).collect(),
                rhs_contract: (0..=d).collect(),
                lhs_batch: vec![d + 1],
                rhs_batch: vec![d + 1],
            }
        } else {
            // [groups, batch, spatial.., features, places..]
            DotGeneral {
                lhs_contract: (d + 3..2 * d + 3).chain([d + 2]).collect(),
                rhs_contract: (0..=d).collect(),
                lhs_batch: vec![0],
                rhs_batch: vec![d + 1],
            }
        };
        let axis = if is_one(&self.batch_groups) { d + 1 } else { 0 };
        let x = reshape(&x, cut(x.shape(), axis, &groups))?;
        // [groups, batch, spatial.., results]
        let y = apply(Op::new(dot), &[x, w])?;
        let y = apply(Op::new(Permute { axes: moved(d + 3, 0, d + 1) }), &[y])?;
        reshape(&y, result.shape().clone())
    }

    /// The product of windows `[batch, spatial.., features, places..]` and a kernel without groups.
    ///
    /// In which order rows and sums go is the same for the result, and not for memory. A kernel with more places than results is the cotangent of a result, and
    /// this convolution that of a kernel: its image has features in front and examples last, so the order that follows memory is the other one.
    fn one_product(&self, x: &Array, w: &Array, result: &Type, apply: Apply) -> Result<Array> {
        let d = self.spatial();
        let count = |dims: &[Dim]| dims.iter().try_fold(1_usize, |n, d| n.checked_mul(d.as_usize()?));
        let places = count(&w.shape()[..d]); // invariant: the type rule has checked the rank
        let results = count(&result.shape()[1..=d]); // invariant: as above
        let back = places.zip(results).is_some_and(|(places, results)| places > results);
        if !back {
            let dot = DotGeneral {
                lhs_contract: (d + 2..2 * d + 2).chain([d + 1]).collect(),
                rhs_contract: (0..=d).collect(),
                ..DotGeneral::default()
            };
            return apply(Op::new(dot), &[x.clone(), w.clone()]);
        }
        let turned = apply(Op::new(Permute { axes: moved(2 * d + 2, 0, d) }), std::slice::from_ref(x))?;
        let dot = DotGeneral {
            lhs_contract: (d + 1..2 * d + 2).collect(),
            rhs_contract: [d].into_iter().chain(0..d).collect(),
            ..DotGeneral::default()
        };
        let y = apply(Op::new(dot), &[turned, w.clone()])?;
        apply(Op::new(Permute { axes: moved(d + 2, d, 0) }), &[y])
    }

    /// Every feature by itself: products of windows `[batch, spatial.., features, places..]` with its kernels, added up. No matrix is large enough to ask the
    /// library for it, and loops over features read what lies together.
    fn each_alone(&self, x: &Array, w: &Array, result: &Type, apply: Apply) -> Result<Array> {
        let d = self.spatial();
        let shape = x.shape();
        let (own, places) = shape.split_at(d + 2);
        let (Some(features), Some(all)) = (own.last(), w.shape().last()) else { fail!(Rule, "wants features") };
        let each = share(all, features);
        // [batch, spatial.., features, results of each, places..]
        let whole: Shape = own.iter().chain([&each]).chain(places).cloned().collect();
        let spread = |x: &Array, axes: Vec<usize>| {
            apply(Op::new(Broadcast { shape: whole.clone(), axes }), std::slice::from_ref(x))
        };
        let x = spread(x, (0..d + 2).chain(d + 3..2 * d + 3).collect())?;
        let apart = places.iter().cloned().chain([features.clone(), each.clone()]).collect();
        let w = apply(Op::new(Reshape { shape: apart }), std::slice::from_ref(w))?;
        let w = apply(Op::new(Permute { axes: [d, d + 1].into_iter().chain(0..d).collect() }), &[w])?;
        let w = spread(&w, (d + 1..2 * d + 3).collect())?;
        let products = apply(Op::fixed(&Mul), &[x, w])?;
        let y = apply(Op::new(ReduceSum { axes: (d + 3..2 * d + 3).collect() }), &[products])?;
        apply(Op::new(Reshape { shape: result.shape().clone() }), &[y])
    }

    /// The image with zeros between and around its elements.
    fn padded_image(&self, x: &Array, apply: Apply) -> Result<Array> {
        let zero = |d: &Dim| d.constant() == Some(0);
        if self.low.iter().chain(&self.high).all(zero) && self.image_dilation.iter().all(|d| *d == 1) {
            return Ok(x.clone());
        }
        let around = |dims: &[Dim]| {
            let none = || Dim::from(0usize);
            std::iter::once(none()).chain(dims.iter().cloned()).chain([none()]).collect()
        };
        let interior = std::iter::once(0).chain(self.image_dilation.iter().map(|d| d - 1)).chain([0]).collect();
        let pad = Pad { low: around(&self.low), high: around(&self.high), interior };
        apply(Op::new(pad), &[x.clone(), Array::scalar(Scalar::zero(x.dtype()))])
    }

    /// Every element of the image times the whole kernel, and the products that belong to a result added up: where there are few results and many
    /// features, products are much less to move than windows.
    fn added_products(&self, x: &Array, w: &Array) -> Result<Option<Array>> {
        let d = self.spatial();
        let sizes = w.shape().iter().map(Dim::as_usize).collect::<Option<Vec<usize>>>();
        let Some([places @ .., features, results]) = sizes.as_deref() else { return Ok(None) };
        let terms: usize = places.iter().product();
        if !(2..=MOST_TERMS).contains(&terms) || *features < FEW_RESULTS * results || !is_one(&self.groups()) {
            return Ok(None);
        }
        let result = self.result_type(x.ty()?, w.ty()?);
        let Some(axes) = self.axes(x.shape(), w.shape(), &result) else { return Ok(None) };
        if !x.dtype().is_float() || axes.iter().any(|a| a.stride != 1) {
            return Ok(None);
        }
        // As much of zeros around the image as any result reaches: products then are shifted by looking at a part of them.
        let edges: Vec<[i64; 2]> = axes.iter().map(Axis::edges).collect();
        let around = Convolve {
            low: edges.iter().map(|e| Dim::from(e[0])).collect(),
            high: edges.iter().map(|e| Dim::from(e[1])).collect(),
            image_dilation: vec![1; d],
            ..self.clone()
        };
        let x = around.padded_image(x, recorded)?;
        // [places.., results, batch, spatial..]: neighbours are neighbours in memory.
        let dot = DotGeneral { lhs_contract: vec![d], rhs_contract: vec![d + 1], ..DotGeneral::default() };
        let products = bind(Op::new(dot), &[w.clone(), x]);
        let each = |phases: &[&Phase]| {
            let mut sum: Option<Array> = None;
            let terms: usize = phases.iter().map(|p| p.taps[2]).product();
            for mut term in 0..terms {
                let (mut start, mut limit) = (vec![Dim::from(0usize); 2 * d + 2], products.shape().to_vec());
                for (i, phase) in phases.iter().enumerate() {
                    let ([first, step, count], [low, _]) = (phase.taps, edges[i]);
                    let tap = term % count;
                    term /= count;
                    let from = low - phase.low + (tap * phase.kernel_dilation) as i64;
                    (start[i], limit[i]) = (Dim::from(first + step * tap), Dim::from(first + step * tap + 1));
                    (start[d + 2 + i], limit[d + 2 + i]) = (Dim::from(from), Dim::from(from + axes[i].results as i64));
                }
                let slice = Slice { start, limit, step: vec![1; 2 * d + 2] };
                let part = bind(Op::new(slice), std::slice::from_ref(&products));
                let part = reshaped(&part, part.shape().iter().skip(d).cloned());
                sum = Some(sum.map_or(part.clone(), |sum| sum + part));
            }
            // [results, batch, spatial..]; an element of the kernel is in every phase.
            let Some(sum) = sum else { fail!(Rule, "a sum of nothing") };
            permuted(&sum, moved(d + 2, 0, d + 1)).ok()
        };
        self.interleaved(&result, &axes, &each).map(Some)
    }

    /// A convolution of an image with holes as one for each residue of a result's place: none of them multiplies a hole.
    fn by_phases(&self, x: &Array, w: &Array) -> Result<Option<Array>> {
        let d = self.spatial();
        if self.image_dilation.iter().all(|r| *r == 1) {
            return Ok(None);
        }
        let result = self.result_type(x.ty()?, w.ty()?);
        let Some(axes) = self.axes(x.shape(), w.shape(), &result) else { return Ok(None) };
        let each = |phases: &[&Phase]| {
            let mut slice =
                Slice { start: vec![Dim::from(0usize); d + 2], limit: w.shape().to_vec(), step: vec![1; d + 2] };
            for (i, phase) in phases.iter().enumerate() {
                let [first, step, count] = phase.taps;
                slice.start[i] = Dim::from(first);
                slice.limit[i] = Dim::from(first + step * (count - 1) + 1);
                slice.step[i] = step;
            }
            let w = bind(Op::new(slice), std::slice::from_ref(w));
            let one = Convolve {
                strides: axes.iter().map(|a| a.stride).collect(),
                low: phases.iter().map(|p| Dim::from(p.low)).collect(),
                high: phases.iter().map(|p| Dim::from(p.high)).collect(),
                image_dilation: vec![1; d],
                kernel_dilation: phases.iter().map(|p| p.kernel_dilation).collect(),
                ..self.clone()
            };
            one.parts(x, &w, recorded)
        };
        self.interleaved(&result, &axes, &each).map(Some)
    }

    /// The result from its residues: `each` gives those of one residue along each axis.
    fn interleaved(&self, result: &Type, axes: &[Axis], each: &Each<'_>) -> Result<Array> {
        let d = self.spatial();
        let y = interleaved_from(result, axes, each, &mut Vec::new())?;
        // [batch, results, residues, .., features]
        let whole = result.shape().iter().enumerate().map(|(a, n)| match a.checked_sub(1).and_then(|i| axes.get(i)) {
            Some(axis) => Dim::from(axis.results * axis.phases.len()),
            None => n.clone(),
        });
        let y = reshaped(&y, whole);
        let slice =
            Slice { start: vec![Dim::from(0usize); d + 2], limit: result.shape().to_vec(), step: vec![1; d + 2] };
        bind(Op::new(slice), &[y]).ok()
    }

    /// The phases along every axis, if sizes are known. A program need not grow with the holes of an image, so there are not too many.
    fn axes(&self, x: &Shape, w: &Shape, result: &Type) -> Option<Vec<Axis>> {
        let counts = self.image_dilation.iter().zip(&self.strides).map(|(r, stride)| r / gcd(*r, *stride));
        counts.reduce(usize::saturating_mul).filter(|n| *n <= MOST_TERMS)?;
        (0..self.spatial()).map(|i| self.phases(x, w, result, i)).collect()
    }

    /// The phases of a spatial axis, if its sizes are known. A result at `o` meets an element of the kernel `k` where
    /// `o·stride − low + k·kernel_dilation` is a multiple of the image's dilation.
    fn phases(&self, x: &Shape, w: &Shape, result: &Type, i: usize) -> Option<Axis> {
        let (n, size) = (x.get(i + 1)?.as_usize()?, w.get(i)?.as_usize()?);
        let (low, all) = (self.low.get(i)?.constant()?, result.shape().get(i + 1)?.as_usize()?);
        let (r, stride, dilation) =
            (*self.image_dilation.get(i)?, *self.strides.get(i)?, *self.kernel_dilation.get(i)?);
        let (count, own) = (r / gcd(r, stride), stride / gcd(r, stride));
        let results = all.div_ceil(count);
        let phase = |p: usize| {
            let at = |k: usize| (p * stride + k * dilation) as i64 - low;
            let first = (0..size.min(r)).find(|k| at(*k).rem_euclid(r as i64) == 0)?;
            let step = r / gcd(r, dilation);
            let taps = (size - first).div_ceil(step);
            let kernel_dilation = dilation / gcd(r, dilation);
            let low = -at(first) / r as i64;
            let long = results.checked_sub(1)? * own + (taps - 1) * kernel_dilation + 1;
            Some(Phase { taps: [first, step, taps], low, high: long as i64 - n as i64 - low, kernel_dilation })
        };
        (results > 0).then(|| Axis { phases: (0..count).map(phase).collect(), results, stride: own })
    }
}

/// The results of all residues behind those that are chosen, `[batch, results, residues, .., features]`.
fn interleaved_from(result: &Type, axes: &[Axis], each: &Each<'_>, chosen: &mut Vec<usize>) -> Result<Array> {
    let Some(axis) = axes.get(chosen.len()) else {
        let along = axes.iter().flat_map(|axis| [Dim::from(axis.results), Dim::from(1usize)]);
        let shape = result.shape();
        let apart: Shape = shape.first().cloned().into_iter().chain(along).chain(shape.last().cloned()).collect();
        let phases = axes.iter().zip(&*chosen).map(|(axis, p)| axis.phases.get(*p)?.as_ref());
        return Ok(match phases.collect::<Option<Vec<&Phase>>>() {
            Some(phases) => reshaped(&each(&phases)?, apart.iter().cloned()),
            // No element of the kernel meets one of the image.
            None => zeros(&result.with_shape(apart)),
        });
    };
    let mut parts = Vec::with_capacity(axis.phases.len());
    for p in 0..axis.phases.len() {
        chosen.push(p);
        parts.push(interleaved_from(result, axes, each, chosen)?);
        chosen.pop();
    }
    match &parts[..] {
        [one] => Ok(one.clone()),
        _ => bind(Op::new(Concatenate { axis: 2 * chosen.len() + 2 }), &parts).ok(),
    }
}
