//! Windows of an array as a view: along some axes every window of a size, so many places apart, shown on axes of its own. Convolutions and
//! reductions of windows are made of it, and short frames of a signal are nothing else.

use super::elementwise::kernel::{one_output, operand};
use super::index::{Scatter, ScatterKind};
use super::rules::one;
use super::shaping::pieces::dilated;
use super::shaping::{Broadcast, Pad, Permute, Reshape, Slice, check_sorted, known, ramp, reals, shifted, transposed};
use super::{Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types};
use crate::array::{Array, Strides};
use crate::error::{Result, counted, error, fail};
use crate::rules_of;
use crate::trace::bind;
use crate::types::{DType, Dim, Effects, Scalar, Shape, Type};

/// Every window of `x` along some axes. An axis of `n` elements becomes one of windows, and the axes inside of windows come last, in the order of `axes`:
/// the element `w` of window `o` is `x[o·stride + w·dilation]`. Elements that no window reaches are not shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// The axes, in increasing order.
    pub axes: Vec<usize>,
    /// How many elements a window has along each; at least 1.
    pub sizes: Vec<Dim>,
    /// How far apart windows begin; at least 1.
    pub strides: Vec<usize>,
    /// How far apart the elements of a window are; at least 1.
    pub dilations: Vec<usize>,
}

/// How many places a window reaches over.
pub(super) fn reach(size: &Dim, dilation: usize) -> Dim {
    (size - 1usize) * dilation + 1usize
}

/// How many windows an axis has room for; refuses steps of 0 and windows that do not fit. `what` and `ty` name the array.
pub(super) fn windows_along(
    infer: &mut Infer<'_>,
    n: &Dim,
    (size, stride, dilation): (&Dim, usize, usize),
    axis: usize,
    ty: &Type,
) -> Result<Dim> {
    if stride == 0 || dilation == 0 {
        let what = if stride == 0 { "stride" } else { "dilation" };
        return Err(error!(Value, "the {what} along axis {axis} of {ty} is 0, and must be at least 1"));
    }
    if !infer.at_least(size, &Dim::from(1usize)) {
        return Err(error!(Value, "a window of {size} elements along axis {axis} of {ty}")
            .help("a window has at least one element"));
    }
    let reach = reach(size, dilation);
    if !infer.at_least(n, &reach) {
        return Err(error!(
            Shape,
            "a window that reaches over {} does not fit axis {axis} of {ty}, which has {n} with its padding",
            counted(reach, "element")
        )
        .help("take a smaller window, or pad the array"));
    }
    Ok((n - reach).floor_div(&Dim::from(stride)) + 1usize)
}

impl Windows {
    /// The shape of the result, for an operand that fits.
    fn shape(&self, x: &Shape) -> Shape {
        let mut dims = x.to_vec();
        for (((&axis, size), stride), dilation) in
            self.axes.iter().zip(&self.sizes).zip(&self.strides).zip(&self.dilations)
        {
            if let Some(n) = dims.get_mut(axis) {
                *n = (&*n - reach(size, *dilation)).floor_div(&Dim::from(*stride)) + 1usize;
            }
        }
        dims.into_iter().chain(self.sizes.iter().cloned()).collect()
    }

    /// The transpose: what windows say of each element, added up. One axis after the other, from the last.
    pub(super) fn back(&self, y_bar: &Array, x: &Shape) -> Result<Array> {
        let mut y = y_bar.clone();
        for (i, &axis) in self.axes.iter().enumerate().rev() {
            let (Some(n), Some(&stride), Some(&dilation)) = (x.get(axis), self.strides.get(i), self.dilations.get(i))
            else {
                fail!(Rule, "windows along an axis that is not there");
            };
            y = added_up(&y, axis, n, stride, dilation)?;
        }
        Ok(y)
    }
}

/// Sums of more terms than this are a scatter: a program need not grow with a window.
const TERMS: usize = 16;

/// Windows along `axis`, each with its elements on the last axis, added up where they overlap: an axis of `n`.
pub fn added_up(y: &Array, axis: usize, n: &Dim, stride: usize, dilation: usize) -> Result<Array> {
    let size = y.dim(-1);
    match size.as_usize() {
        Some(k) if dilation == 1 && k.div_ceil(stride) <= TERMS => by_blocks(y, axis, n, k, stride),
        Some(k) if k <= TERMS => by_elements(y, axis, n, k, stride, dilation),
        _ => by_scatter(y, axis, n, stride, dilation),
    }
}

/// The operand with zeros around one axis.
fn padded(x: &Array, axis: usize, low: Dim, high: Dim, interior: usize) -> Array {
    let one_axis = |d: Dim| (0..x.rank()).map(|a| if a == axis { d.clone() } else { Dim::from(0usize) }).collect();
    let gaps = (0..x.rank()).map(|a| if a == axis { interior } else { 0 }).collect();
    let zero = Array::scalar(Scalar::zero(x.dtype()));
    bind(Op::new(Pad { low: one_axis(low), high: one_axis(high), interior: gaps }), &[x.clone(), zero])
}

/// One place of an axis, which is gone then.
fn at(x: &Array, axis: usize, place: usize) -> Array {
    let start = (0..x.rank()).map(|a| Dim::from(if a == axis { place } else { 0 })).collect();
    let limit = x.shape().iter().enumerate().map(|(a, d)| if a == axis { Dim::from(place + 1) } else { d.clone() });
    let slice = Slice { start, limit: limit.collect(), step: vec![1; x.rank()] };
    let piece = bind(Op::new(slice), std::slice::from_ref(x));
    bind(Op::new(Reshape { shape: x.shape().without(|a| a == axis) }), &[piece])
}

fn total(terms: impl Iterator<Item = Array>) -> Result<Array> {
    terms.reduce(|a, b| a + b).map_or_else(|| Err(error!(Rule, "a sum of nothing")), Array::ok)
}

/// Windows cut into blocks of a stride: block `j` of window `o` lies where block 0 of window `o + j` does, so that few shifted arrays are added.
fn by_blocks(y: &Array, axis: usize, n: &Dim, size: usize, stride: usize) -> Result<Array> {
    let (last, blocks) = (y.rank() - 1, size.div_ceil(stride));
    let whole = match blocks * stride - size {
        0 => y.clone(),
        missing => padded(y, last, Dim::from(0usize), Dim::from(missing), 0),
    };
    let shape = whole.shape().replaced(last, Dim::from(blocks)).inserted(last + 1, Dim::from(stride));
    let cut = bind(Op::new(Reshape { shape }), &[whole]);
    // The places inside of a block go behind the blocks.
    let order: Vec<usize> = (0..=axis).chain([last]).chain(axis + 1..last).collect();
    let sum = total((0..blocks).map(|j| {
        let block = bind(Op::new(Permute { axes: order.clone() }), &[at(&cut, last, j)]);
        if blocks == 1 { block } else { padded(&block, axis, Dim::from(j), Dim::from(blocks - 1 - j), 0) }
    }))?;
    let rows = sum.dim(axis as isize) * stride;
    let shape = sum.shape().without(|a| a == axis + 1).replaced(axis, rows.clone());
    let joined = bind(Op::new(Reshape { shape }), &[sum]);
    let left = n - rows;
    Ok(if left.constant() == Some(0) { joined } else { padded(&joined, axis, Dim::from(0usize), left, 0) })
}

/// A term for each element of a window: all windows have it `stride` apart.
fn by_elements(y: &Array, axis: usize, n: &Dim, size: usize, stride: usize, dilation: usize) -> Result<Array> {
    let over = dilated(&y.dim(axis as isize), stride - 1);
    total((0..size).map(|w| {
        let low = Dim::from(w * dilation);
        let high = n - &low - &over;
        padded(&at(y, y.rank() - 1, w), axis, low, high, stride - 1)
    }))
}

/// Every element of every window added to its place.
fn by_scatter(y: &Array, axis: usize, n: &Dim, stride: usize, dilation: usize) -> Result<Array> {
    let last = y.rank() - 1;
    let rest: Vec<usize> = (0..last).filter(|a| *a != axis).collect();
    let order: Vec<usize> = [axis, last].into_iter().chain(rest.iter().copied()).collect();
    let (windows, size) = (y.dim(axis as isize), y.dim(-1));
    let others: Vec<Dim> = rest.iter().filter_map(|a| y.shape().get(*a).cloned()).collect();
    let in_front = |d: Dim| -> Shape { std::iter::once(d).chain(others.iter().cloned()).collect() };
    let many = &windows * &size;
    let updates = bind(
        Op::new(Reshape { shape: in_front(many.clone()) }),
        &[bind(Op::new(Permute { axes: order }), std::slice::from_ref(y))],
    );
    let along = |axis: isize| Array::iota(DType::I64, [windows.clone(), size.clone()], axis);
    let places = (along(0) * stride as i64 + along(1) * dilation as i64).reshape([many, Dim::from(1usize)]);
    let zero = Array::scalar(Scalar::zero(y.dtype()));
    let zeros = bind(Op::new(Broadcast { shape: in_front(n.clone()), axes: vec![] }), &[zero]);
    let scatter = Scatter {
        kind: ScatterKind::Add,
        update_window_dims: (1..last).collect(),
        inserted_dims: vec![0],
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: vec![0],
        unique: false,
    };
    let sums = bind(Op::new(scatter), &[zeros, places, updates]);
    let back: Vec<usize> = (1..=axis).chain([0]).chain(axis + 1..last).collect();
    bind(Op::new(Permute { axes: back }), &[sums]).ok()
}

impl Primitive for Windows {
    rules_of!("windows"; axes, sizes, strides, dilations);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let inputs = infer.inputs;
        let Some(x) = inputs.first() else { fail!(Verify, "wants an operand") };
        let lists = [self.sizes.len(), self.strides.len(), self.dilations.len()];
        if lists != [self.axes.len(); 3] {
            fail!(
                Axis,
                "windows along {} have {lists:?} sizes, strides and dilations",
                counted(self.axes.len(), "axis")
            );
        }
        check_sorted("axes", &self.axes, x.rank())?;
        for (i, &axis) in self.axes.iter().enumerate() {
            let (Some(n), Some(size)) = (x.shape().get(axis), self.sizes.get(i)) else { continue };
            windows_along(infer, n, (size, self.strides[i], self.dilations[i]), axis, x)?; // invariant: lists are as long as the axes
        }
        one(x.with_shape(self.shape(x.shape())))
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        let shape = self.shape(x.ty().shape());
        let dims = known(&shape)?;
        let mut strides = Strides::from(x.strides());
        for ((&axis, &stride), &dilation) in self.axes.iter().zip(&self.strides).zip(&self.dilations) {
            let Some(s) = strides.get_mut(axis) else { continue };
            let inside = s.wrapping_mul(dilation as isize);
            *s = s.wrapping_mul(stride as isize);
            strides.push(inside);
        }
        // Of one element the stride says nothing, and one beyond the array must not overflow.
        strides.iter_mut().zip(&dims).filter(|(_, d)| **d == 1).for_each(|(s, _)| *s = 0);
        one_output(x.view(shape, strides, x.offset()))
    }

    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::new(self.clone()), jvp)
    }

    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        transposed(transpose, |_, y_bar, x| self.back(y_bar, x.shape()))
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let op = Windows { axes: shifted(&self.axes), ..self.clone() };
        Batched::one(bind(Op::new(op), batch.inputs))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        // For each axis: its number, the size, the stride, the dilation.
        let make = |x: Array, along: &[(usize, usize, usize, usize)]| {
            let op = Windows {
                axes: along.iter().map(|a| a.0).collect(),
                sizes: along.iter().map(|a| Dim::from(a.1)).collect(),
                strides: along.iter().map(|a| a.2).collect(),
                dilations: along.iter().map(|a| a.3).collect(),
            };
            Sample::new(Op::new(op), vec![x])
        };
        vec![
            make(reals(&[6]), &[(0, 3, 1, 1)]),
            make(reals(&[7]), &[(0, 2, 2, 1)]),
            make(reals(&[7]), &[(0, 3, 2, 2)]),
            make(reals(&[5]), &[(0, 1, 3, 1)]),
            make(reals(&[4]), &[(0, 4, 1, 1)]),
            make(reals(&[5]), &[(0, 2, 4, 1)]),
            make(reals(&[22]), &[(0, 20, 1, 1)]),
            make(reals(&[2, 6, 2]), &[(1, 3, 2, 1)]),
            make(reals(&[4, 5]), &[(0, 2, 1, 2), (1, 2, 3, 1)]),
            make(reals(&[2, 3, 4]), &[(0, 2, 1, 1), (2, 3, 1, 1)]),
            make(reals(&[2, 3]), &[]),
            make(reals(&[0, 4]), &[(1, 2, 1, 1)]),
            make(ramp(DType::F32, &[5]), &[(0, 2, 1, 1)]).rough(),
            make(ramp(DType::C128, &[5]), &[(0, 2, 2, 1)]),
            make(ramp(DType::I32, &[5]), &[(0, 3, 1, 2)]),
            make(ramp(DType::Bool, &[4]), &[(0, 2, 2, 1)]),
            make(ramp(DType::BF16, &[4]), &[(0, 2, 1, 1)]).rough(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn windows(x: &Array, size: usize, stride: usize, dilation: usize) -> Array {
        let op = Windows { axes: vec![0], sizes: vec![size.into()], strides: vec![stride], dilations: vec![dilation] };
        bind(Op::new(op), std::slice::from_ref(x))
    }

    #[test]
    fn windows_show_what_they_reach() {
        let x = Array::arange(0.0_f64, 7.0, 1.0);
        assert_eq!(windows(&x, 3, 2, 1).to_vec::<f64>().unwrap(), [0.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0]);
        assert_eq!(windows(&x, 3, 1, 3).to_vec::<f64>().unwrap(), [0.0, 3.0, 6.0]);
        assert_eq!(windows(&x, 7, usize::MAX / 2, 1).shape(), [1, 7]);
    }

    #[test]
    fn every_way_to_add_up_is_the_same_sum() {
        for (n, size, stride) in [(9, 3, 1), (9, 3, 2), (11, 4, 3), (9, 2, 4), (8, 8, 1), (12, 5, 5)] {
            let y = windows(&(Array::arange(0.0_f64, n as f64, 1.0) * 1.3).cos(), size, stride, 1);
            let n = Dim::from(n as usize);
            let blocks: Vec<f64> = by_blocks(&y, 0, &n, size, stride).unwrap().to_vec().unwrap();
            let elements: Vec<f64> = by_elements(&y, 0, &n, size, stride, 1).unwrap().to_vec().unwrap();
            let scattered: Vec<f64> = by_scatter(&y, 0, &n, stride, 1).unwrap().to_vec().unwrap();
            for ((a, b), c) in blocks.iter().zip(&elements).zip(&scattered) {
                assert!((a - b).abs() < 1e-14 && (a - c).abs() < 1e-14, "{n} {size} {stride}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kind = |size, stride, dilation| windows(&Array::spec("f64[5]"), size, stride, dilation).ok().unwrap_err();
        assert_eq!(kind(6, 1, 1).kind(), ErrorKind::Shape);
        assert_eq!(kind(3, 1, 3).kind(), ErrorKind::Shape);
        assert_eq!(kind(2, 0, 1).kind(), ErrorKind::Value);
        assert_eq!(kind(2, 1, 0).kind(), ErrorKind::Value);
        assert_eq!(kind(0, 1, 1).kind(), ErrorKind::Value);
        assert!(kind(6, 1, 1).message().contains("axis 0 of f64[5]"), "{}", kind(6, 1, 1).message());
        let symbolic = windows(&Array::spec("f64[N]"), 3, 1, 1);
        assert_eq!(symbolic.ty().unwrap().to_string(), "f64[N-2,3]");
    }
}
