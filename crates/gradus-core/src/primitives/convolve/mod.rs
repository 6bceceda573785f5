//! General convolution, as machine learning means it (correlation: the kernel is not turned around): any number of spatial axes, strides, padding,
//! holes in either operand, groups of features and of examples. Other layouts are transposes around it.
//!
//! It is linear in each operand, and its rules are closed: the cotangent of the image is a convolution with the kernel turned around, that of the kernel
//! one of the image with the cotangent, and a batch makes more features or more groups. `x` is the image, `w` the kernel, `y` the result.

mod parts;

use smallvec::SmallVec;

use super::reduce::{complex_wave, wave};
use super::rules::one;
use super::shaping::pieces::dilated;
use super::shaping::{Permute, Reshape, Reverse, fit, zeros};
use super::windows::{reach, windows_along};
use super::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Linear, Op, Outputs, Primitive, Sample, Transpose, Transposed,
    Types,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, counted, error, fail};
use crate::rules_of;
use crate::trace::bind;
use crate::types::{DType, Dim, Effects, Scalar, Shape, Type};

/// An image `[batch, spatial.., features]` with a kernel `[spatial.., features / feature_groups, results]`: an array
/// `[batch / batch_groups, spatial.., results]`.
///
/// With groups of features, those of group `j` alone make the results of group `j`. With groups of examples, the examples of group `j` do.
///
/// Zeros between the elements of an image are multiplied or left out, as is quicker: next to an infinite or undefined element of the kernel they make a NaN or nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolve {
    /// How far apart windows begin, along each spatial axis; at least 1.
    pub strides: Vec<usize>,
    /// Zeros before the image, along each spatial axis; negative to crop.
    pub low: Vec<Dim>,
    /// Zeros behind it.
    pub high: Vec<Dim>,
    /// How far apart the elements of the image are, with zeros between; at least 1.
    pub image_dilation: Vec<usize>,
    /// How far apart the elements of the kernel are; at least 1.
    pub kernel_dilation: Vec<usize>,
    /// In how many groups the features are.
    pub feature_groups: Dim,
    /// In how many groups the examples are. Only one of the two is more than 1.
    pub batch_groups: Dim,
}

/// How an operation is applied: to numbers at once, or in the language of arrays.
type Apply = fn(Op, &[Array]) -> Result<Array>;

/// On numbers, whatever is being traced.
pub(super) fn at_once(op: Op, inputs: &[Array]) -> Result<Array> {
    op.evaluate(inputs)?.pop().ok_or_else(|| error!(Rule, "`{}` gave no result", op.name()))
}

/// As a part of whatever its operands belong to.
pub(super) fn recorded(op: Op, inputs: &[Array]) -> Result<Array> {
    bind(op, inputs).ok()
}

fn reshaped(x: &Array, dims: impl IntoIterator<Item = Dim>) -> Array {
    bind(Op::new(Reshape { shape: dims.into_iter().collect() }), std::slice::from_ref(x))
}

fn permuted(x: &Array, axes: Vec<usize>) -> Array {
    if axes.is_sorted() { x.clone() } else { bind(Op::new(Permute { axes }), std::slice::from_ref(x)) }
}

/// One axis as two, the first of so many groups.
fn cut(shape: &Shape, axis: usize, groups: &Dim) -> Shape {
    let all = shape.get(axis).cloned().unwrap_or_else(|| Dim::from(1usize));
    shape.replaced(axis, share(&all, groups)).inserted(axis, groups.clone())
}

/// What each of so many groups has of all. Where the number of groups is a symbol, all is a multiple of it.
fn share(all: &Dim, groups: &Dim) -> Dim {
    all.exact_quotient(groups).unwrap_or_else(|| all.floor_div(groups))
}

/// Two neighbouring axes as one.
fn joined(shape: &Shape, axis: usize) -> Shape {
    let all = shape.iter().skip(axis).take(2).fold(Dim::from(1usize), |n, d| n * d);
    shape.without(|a| a == axis + 1).replaced(axis, all)
}

/// Moves one axis to another place; the others keep their order.
fn moved(rank: usize, from: usize, to: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).filter(|a| *a != from).collect();
    order.insert(to, from);
    order
}

fn is_one(d: &Dim) -> bool {
    d.constant() == Some(1)
}

impl Convolve {
    /// The number of spatial axes.
    fn spatial(&self) -> usize {
        self.strides.len()
    }

    /// The groups, of whichever kind they are.
    fn groups(&self) -> Dim {
        &self.feature_groups * &self.batch_groups
    }

    fn bind(self, x: &Array, w: &Array) -> Array {
        bind(Op::new(self), &[x.clone(), w.clone()])
    }

    /// How long the image is along spatial axis `i` with the zeros between and around its elements.
    fn padded(&self, x: &Shape, i: usize) -> Dim {
        let n = x.get(i + 1).cloned().unwrap_or_else(|| Dim::from(1usize));
        &self.low[i] + dilated(&n, self.image_dilation[i] - 1) + &self.high[i] // invariant: the lists are as long as the spatial axes
    }

    /// The type of the result, of operands that fit.
    fn result_type(&self, x: &Type, w: &Type) -> Type {
        let d = self.spatial();
        let batch = x.shape().first().map(|n| share(n, &self.batch_groups));
        let along = (0..d).map(|i| {
            let size = w.shape().get(i).cloned().unwrap_or_else(|| Dim::from(1usize));
            let room = self.padded(x.shape(), i) - reach(&size, self.kernel_dilation[i]); // invariant: as above
            room.floor_div(&Dim::from(self.strides[i])) + 1usize // invariant: as above
        });
        x.with_shape(batch.into_iter().chain(along).chain(w.shape().last().cloned()).collect::<Shape>())
    }

    /// Refuses lists of other lengths than there are spatial axes, and groups that do not divide what they group.
    fn check(&self, infer: &mut Infer<'_>, x: &Type, w: &Type) -> Result<()> {
        let d = self.spatial();
        let lists = [self.low.len(), self.high.len(), self.image_dilation.len(), self.kernel_dilation.len()];
        if lists != [d; 4] || [x.rank(), w.rank()] != [d + 2; 2] {
            return Err(error!(Axis, "a convolution along {} of {x} with {w}", counted(d, "axis"))
                .help("image and kernel have two axes more than the convolution has strides"));
        }
        let one = Dim::from(1usize);
        if !infer.at_least(&self.feature_groups, &one) || !infer.at_least(&self.batch_groups, &one) {
            return Err(error!(
                Value,
                "{} groups of features and {} of examples", self.feature_groups, self.batch_groups
            )
            .help("there is at least one of each"));
        }
        if !is_one(&self.feature_groups) && !is_one(&self.batch_groups) {
            return Err(
                error!(Value, "groups of features and groups of examples at once").help("convolve one after the other")
            );
        }
        let (Some(features), Some(examples)) = (x.shape().last(), x.shape().first()) else { return Ok(()) };
        let (Some(each), Some(results)) = (w.shape().get(d), w.shape().last()) else { return Ok(()) };
        let groups = self.groups();
        if !infer.equal(features, &(each * &self.feature_groups)) {
            return Err(error!(
                Shape,
                "the image {x} has {features} features, and the kernel {w} takes {each} in each of its groups, of which there are {}",
                self.feature_groups
            )
            .help("the features of the kernel times the groups are those of the image"));
        }
        for (what, n, by) in [("results", results, &groups), ("examples", examples, &self.batch_groups)] {
            if !infer.equal(n, &(share(n, by) * by)) {
                return Err(error!(Shape, "{n} {what} are not in {by} groups of one size").help(
                    "the number of groups divides the results of the kernel, and the examples if they are grouped",
                ));
            }
        }
        Ok(())
    }

    /// Along each spatial axis how far the image, the kernel and the result reach, with their holes.
    fn reaches(&self, x: &Shape, w: &Shape) -> Vec<[Dim; 3]> {
        let one = || Dim::from(1usize);
        (0..self.spatial())
            .map(|i| {
                let n = x.get(i + 1).cloned().unwrap_or_else(one);
                let size = w.get(i).cloned().unwrap_or_else(one);
                let kernel = reach(&size, self.kernel_dilation[i]); // invariant: the type rule has checked the lists
                let room = self.padded(x, i) - &kernel;
                let results = room.floor_div(&Dim::from(self.strides[i])); // invariant: as above
                [dilated(&n, self.image_dilation[i] - 1), kernel, results * self.strides[i] + 1usize] // invariant: as above
            })
            .collect()
    }

    /// The cotangent of the image: that of the result, with holes where there were strides, and the kernel turned around, its features and results
    /// exchanged inside of each group.
    fn image_bar(&self, x: &Type, w: &Array, y_bar: &Array) -> Result<Array> {
        let d = self.spatial();
        if x.shape().iter().any(|n| n.constant() == Some(0)) {
            return Ok(zeros(x));
        }
        let groups = self.groups();
        let w = bind(Op::new(Reverse { axes: (0..d).collect() }), std::slice::from_ref(w));
        let apart = reshaped(&w, cut(w.shape(), d + 1, &groups).iter().cloned());
        // [places.., features, groups, results] -> [places.., results, groups, features]
        let order = (0..d).chain([d + 2, d + 1, d]).collect();
        let turned = permuted(&apart, order);
        let w_back = reshaped(&turned, joined(turned.shape(), d + 1).iter().cloned());
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (i, [image, kernel, result]) in self.reaches(x.shape(), w.shape()).into_iter().enumerate() {
            let before = &kernel - &self.low[i] - 1usize; // invariant: the type rule has checked the lists
            high.push(image + kernel - 1usize - result - &before);
            low.push(before);
        }
        let back = Convolve {
            strides: self.image_dilation.clone(),
            low,
            high,
            image_dilation: self.strides.clone(),
            kernel_dilation: self.kernel_dilation.clone(),
            feature_groups: groups.clone(),
            batch_groups: Dim::from(1usize),
        };
        let x_bar = back.bind(y_bar, &w_back);
        if is_one(&self.batch_groups) {
            return x_bar.ok();
        }
        // [batch, spatial.., groups, features] -> [groups, batch, spatial.., features]
        let apart = reshaped(&x_bar, cut(x_bar.shape(), d + 1, &groups).iter().cloned());
        let apart = permuted(&apart, moved(d + 3, d + 1, 0));
        reshaped(&apart, joined(apart.shape(), 0).iter().cloned()).ok()
    }

    /// The cotangent of the kernel: features of the image are examples and its examples features, and the cotangent of the result is the kernel.
    fn kernel_bar(&self, w: &Type, x: &Array, y_bar: &Array) -> Result<Array> {
        let d = self.spatial();
        if w.shape().iter().any(|n| n.constant() == Some(0)) {
            return Ok(zeros(w));
        }
        let exchanged = || {
            (0..d + 2)
                .map(|a| {
                    if a == 0 {
                        d + 1
                    } else if a == d + 1 {
                        0
                    } else {
                        a
                    }
                })
                .collect()
        };
        let image = permuted(x, exchanged());
        let kernel = permuted(y_bar, moved(d + 2, 0, d));
        let mut high = Vec::new();
        for (i, [image, kernel, result]) in self.reaches(x.shape(), w.shape()).into_iter().enumerate() {
            high.push(result - image + kernel - &self.low[i] - 1usize); // invariant: the type rule has checked the lists
        }
        let back = Convolve {
            strides: self.kernel_dilation.clone(),
            low: self.low.clone(),
            high,
            image_dilation: self.image_dilation.clone(),
            kernel_dilation: self.strides.clone(),
            feature_groups: self.batch_groups.clone(),
            batch_groups: self.feature_groups.clone(),
        };
        // [features, places.., results] -> [places.., features, results]
        Ok(permuted(&back.bind(&image, &kernel), moved(d + 2, 0, d)))
    }

    /// Both operands batched: each example has features, results and groups of its own.
    fn batch_both(&self, size: &Dim, x: &Array, w: &Array) -> Array {
        let d = self.spatial();
        let (x, groups) = if is_one(&self.batch_groups) {
            // [B, batch, spatial.., features] -> [batch, spatial.., B features]
            let x = permuted(x, moved(d + 3, 0, d + 1));
            (
                reshaped(&x, joined(x.shape(), d + 1).iter().cloned()),
                (size * &self.feature_groups, self.batch_groups.clone()),
            )
        } else {
            (
                reshaped(x, joined(x.shape(), 0).iter().cloned()),
                (self.feature_groups.clone(), size * &self.batch_groups),
            )
        };
        // [B, places.., features, results] -> [places.., features, B results]
        let w = permuted(w, moved(d + 3, 0, d + 1));
        let w = reshaped(&w, joined(w.shape(), d + 1).iter().cloned());
        let op = Convolve { feature_groups: groups.0, batch_groups: groups.1, ..self.clone() };
        // [batch, spatial.., B results]
        let y = op.bind(&x, &w);
        let apart = reshaped(&y, cut(y.shape(), d + 1, size).iter().cloned());
        permuted(&apart, moved(d + 3, d + 1, 0))
    }

    /// The image batched: more examples, inside of each group.
    fn batch_image(&self, size: &Dim, x: &Array, w: &Array) -> Array {
        let x = if is_one(&self.batch_groups) {
            x.clone()
        } else {
            // [B, groups batch, ..] -> [groups, B, batch, ..] -> [groups, B batch, ..]
            let apart = reshaped(x, cut(x.shape(), 1, &self.batch_groups).iter().cloned());
            let apart = permuted(&apart, moved(apart.rank(), 1, 0));
            reshaped(&apart, joined(apart.shape(), 1).iter().cloned())
        };
        let y = self.clone().bind(&reshaped(&x, joined(x.shape(), 0).iter().cloned()), w);
        reshaped(&y, cut(y.shape(), 0, size).iter().cloned())
    }

    /// The kernel batched: more results, inside of each group.
    fn batch_kernel(&self, size: &Dim, x: &Array, w: &Array) -> Array {
        let (d, groups) = (self.spatial(), self.groups());
        // [B, places.., features, groups results] -> [places.., features, groups, B, results]
        let apart = reshaped(w, cut(w.shape(), d + 2, &groups).iter().cloned());
        let apart = permuted(&apart, moved(d + 4, 0, d + 2));
        let w = reshaped(&apart, joined(apart.shape(), d + 2).iter().cloned());
        let w = reshaped(&w, joined(w.shape(), d + 1).iter().cloned());
        let y = self.clone().bind(x, &w);
        // [batch, spatial.., groups B results] -> [B, batch, spatial.., groups results]
        let apart = reshaped(&y, cut(y.shape(), d + 1, &groups).iter().cloned());
        let apart = reshaped(&apart, cut(apart.shape(), d + 2, size).iter().cloned());
        let apart = permuted(&apart, moved(d + 4, d + 2, 0));
        reshaped(&apart, joined(apart.shape(), d + 2).iter().cloned())
    }
}

impl Primitive for Convolve {
    rules_of!("convolve"; strides, low, high, image_dilation, kernel_dilation, feature_groups, batch_groups);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(2)?;
        let inputs = infer.inputs;
        let [x, w] = inputs else { fail!(Verify, "wants two operands") };
        if x.dtype() != w.dtype() {
            fail!(DType, "operands of different dtypes: {x} and {w}");
        }
        infer.dtype(0, "numbers", |d| d.is_number()).map_err(|e| e.help("cast first, as in `x.cast(DType::I32)`"))?;
        self.check(infer, x, w)?;
        for i in 0..self.spatial() {
            if self.image_dilation[i] == 0 {
                fail!(Value, "the dilation of {x} along axis {} is 0, and must be at least 1", i + 1);
            }
            let (Some(size), Some(n)) = (w.shape().get(i), x.shape().get(i + 1)) else { continue };
            if !infer.at_least(n, &Dim::from(1usize)) {
                return Err(error!(Shape, "axis {} of {x} has no elements to convolve", i + 1)
                    .help("only examples and features may be none"));
            }
            let n = self.padded(x.shape(), i);
            if !infer.at_least(&n, &Dim::from(0usize)) {
                return Err(error!(Shape, "axis {} of {x} would have {n} elements", i + 1)
                    .help("negative padding must not crop more than there is"));
            }
            windows_along(infer, &n, (size, self.strides[i], self.kernel_dilation[i]), i + 1, x)?;
        }
        one(self.result_type(x, w))
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let [x, w] = inputs else { fail!(Rule, "wants two operands") };
        Ok(smallvec::smallvec![self.parts(x, w, at_once)?])
    }

    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([x, w], [x_dot, w_dot]) = (jvp.primals, jvp.tangents) else { fail!(Rule, "wants two operands") };
        let by_image = x_dot.as_ref().map(|x_dot| self.clone().bind(x_dot, w));
        let by_kernel = w_dot.as_ref().map(|w_dot| self.clone().bind(x, w_dot));
        match (by_image, by_kernel) {
            (Some(a), Some(b)) => Derivative::one(a + b),
            (Some(a), None) | (None, Some(a)) => Derivative::one(a),
            (None, None) => Ok(Derivative::Zero),
        }
    }

    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let mut bars: SmallVec<[Option<Array>; 2]> = smallvec::smallvec![None, None];
        if let [Some(y_bar)] = transpose.cotangents {
            match transpose.operands {
                [Linear::Unknown(x), Linear::Known(w)] => {
                    bars[0] = Some(fit(self.image_bar(x, w, y_bar)?, x.shape()));
                }
                [Linear::Known(x), Linear::Unknown(w)] => {
                    bars[1] = Some(fit(self.kernel_bar(w, x, y_bar)?, w.shape()));
                }
                _ => return Ok(Transposed::NotLinear),
            }
        }
        Ok(Transposed::Cotangents(bars))
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let ([x, w], &[image, kernel]) = (batch.inputs, batch.batched) else { fail!(Rule, "wants two operands") };
        if batch.size.constant() == Some(0) {
            // Nothing can be told apart again into none.
            let one = |x: &Array, batched: bool| -> Result<Type> {
                let ty = x.ty()?;
                Ok(ty.with_shape(ty.shape().without(|a| batched && a == 0)))
            };
            let result = self.result_type(&one(x, image)?, &one(w, kernel)?);
            return Batched::one(zeros(&result.with_shape(result.shape().inserted(0, Dim::from(0usize)))));
        }
        let y = match (image, kernel) {
            (true, true) => self.batch_both(batch.size, x, w),
            (true, false) => self.batch_image(batch.size, x, w),
            _ => self.batch_kernel(batch.size, x, w),
        };
        Batched::one(y)
    }

    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        Some(Box::new(|inputs| {
            let [x, w] = inputs else { fail!(Rule, "wants two operands") };
            Ok(smallvec::smallvec![self.quick_parts(x, w)?])
        }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        samples()
    }
}

/// A convolution for samples: for each spatial axis the stride, the padding before and behind, the dilations of image and kernel.
fn sampled(along: &[(usize, i64, i64, usize, usize)], features: usize, batch: usize) -> Op {
    Op::new(Convolve {
        strides: along.iter().map(|a| a.0).collect(),
        low: along.iter().map(|a| Dim::from(a.1)).collect(),
        high: along.iter().map(|a| Dim::from(a.2)).collect(),
        image_dilation: along.iter().map(|a| a.3).collect(),
        kernel_dilation: along.iter().map(|a| a.4).collect(),
        feature_groups: Dim::from(features),
        batch_groups: Dim::from(batch),
    })
}

fn samples() -> Vec<Sample> {
    let plain = (1, 0, 0, 1, 1);
    let make = |op: Op, x: Array, w: Array| Sample::new(op, vec![x, w]);
    let of = |op: Op, x: &[usize], w: &[usize]| make(op, wave(x, 1), wave(w, 2));
    let cast =
        |d: DType| make(sampled(&[(1, 1, 0, 1, 1)], 1, 1), wave(&[1, 4, 2], 3).cast(d), wave(&[2, 2, 1], 4).cast(d));
    let nothing = |dims: &[usize]| -> Array { Concrete::splat(Type::new(DType::F64, dims), Scalar::F64(0.0)).into() };
    vec![
        of(sampled(&[plain], 1, 1), &[2, 5, 2], &[3, 2, 3]),
        of(sampled(&[(2, 1, 2, 1, 1)], 1, 1), &[1, 5, 1], &[3, 1, 2]),
        of(sampled(&[(1, 2, 1, 2, 1)], 1, 1), &[1, 3, 1], &[2, 1, 1]),
        of(sampled(&[(1, 0, 1, 1, 2)], 1, 1), &[1, 5, 2], &[2, 2, 1]),
        of(sampled(&[(3, -1, 2, 2, 2)], 1, 1), &[1, 4, 1], &[2, 1, 1]),
        of(sampled(&[(1, -1, -2, 1, 1)], 1, 1), &[1, 6, 1], &[2, 1, 2]),
        of(sampled(&[plain, (2, 1, 0, 1, 1)], 1, 1), &[2, 3, 4, 2], &[2, 3, 2, 2]),
        of(sampled(&[(1, 1, 1, 2, 1), (2, 0, 0, 1, 2)], 1, 1), &[1, 2, 5, 1], &[2, 2, 1, 2]),
        of(sampled(&[plain, plain], 1, 1), &[1, 2, 3, 2], &[1, 1, 2, 3]),
        of(sampled(&[plain, plain, (1, 1, 0, 1, 1)], 1, 1), &[1, 2, 3, 2, 1], &[2, 2, 2, 1, 2]),
        of(sampled(&[plain], 2, 1), &[2, 4, 4], &[2, 2, 6]),
        of(sampled(&[(1, 1, 1, 1, 1)], 3, 1), &[1, 3, 3], &[2, 1, 3]),
        of(sampled(&[(2, 0, 0, 1, 1)], 1, 2), &[4, 4, 2], &[2, 2, 4]),
        of(sampled(&[], 1, 1), &[2, 3], &[3, 2]),
        make(sampled(&[plain], 1, 1), nothing(&[0, 4, 2]), wave(&[2, 2, 1], 5)),
        make(sampled(&[plain], 1, 1), nothing(&[1, 4, 0]), nothing(&[2, 0, 2])),
        make(sampled(&[plain], 1, 1), wave(&[1, 4, 2], 6), nothing(&[2, 2, 0])),
        make(sampled(&[(1, 1, 0, 1, 1)], 1, 1), complex_wave(&[1, 3, 2], 8), complex_wave(&[2, 2, 1], 9)),
        cast(DType::F32).rough(),
        cast(DType::F16).rough(),
        cast(DType::BF16).rough(),
        cast(DType::I32),
        cast(DType::C64).rough(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_convolution_is_the_sum_that_defines_it() {
        let (x, w) = (wave(&[1, 5, 4, 2], 1), wave(&[2, 3, 2, 3], 2));
        let y = bind(sampled(&[(2, 1, 1, 1, 1), (1, 0, 2, 1, 1)], 1, 1), &[x.clone(), w.clone()]);
        assert_eq!(y.shape(), [1, 3, 4, 3]);
        let (x, w): (Vec<f64>, Vec<f64>) = (x.to_vec().unwrap(), w.to_vec().unwrap());
        for (at, have) in y.to_vec::<f64>().unwrap().into_iter().enumerate() {
            let (i, j, o) = (at / 12, at / 3 % 4, at % 3);
            let mut want = 0.0;
            for (p, q, c) in (0..12).map(|k| (k / 6, k / 2 % 3, k % 2)) {
                let (r, s) = ((2 * i + p) as isize - 1, (j + q) as isize);
                if (0..5).contains(&r) && (0..4).contains(&s) {
                    want += x[(r * 8 + s * 2) as usize + c] * w[((p * 3 + q) * 2 + c) * 3 + o];
                }
            }
            assert!((have - want).abs() < 1e-12, "{at}: {have} {want}");
        }
    }

    #[test]
    fn a_program_does_not_grow_with_the_holes_of_an_image() {
        for (holes, channels) in [(2, [8, 8]), (16, [8, 8]), (1000, [8, 8]), (1000, [16, 1])] {
            let op = sampled(&[(1, 1, 1, holes, 1); 2], 1, 1);

            let of = |dims: &[usize]| Type::new(DType::F64, dims);
            let types = [of(&[1, 4, 4, channels[0]]), of(&[2, 2, channels[0], channels[1]])];
            let specs = types.clone().map(Array::of_type);
            let expand = op.expand(&types).unwrap();
            let p = crate::trace::trace_closed("parts", &specs, |xs| Ok(expand(xs)?.to_vec())).unwrap();
            assert!(p.equations().len() < 60, "{holes}: {}", p.equations().len());
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let along = (1, 0, 0, 1, 1);
        let kind = |op: Op, x: &str, w: &str| bind(op, &[Array::spec(x), Array::spec(w)]).ok().unwrap_err().kind();
        assert_eq!(kind(sampled(&[along], 1, 1), "f64[1,4,2]", "f64[2,3,1]"), ErrorKind::Shape);
        assert_eq!(kind(sampled(&[along], 1, 1), "f64[1,4,2]", "f64[5,2,1]"), ErrorKind::Shape);
        assert_eq!(kind(sampled(&[along], 1, 1), "f64[1,4,2]", "f32[2,2,1]"), ErrorKind::DType);
        assert_eq!(kind(sampled(&[(1, 2, 2, 1, 1)], 1, 1), "f64[1,0,2]", "f64[2,2,1]"), ErrorKind::Shape);
        assert_eq!(kind(sampled(&[along], 1, 1), "f64[1,4]", "f64[2,2,1]"), ErrorKind::Axis);
        assert_eq!(kind(sampled(&[(0, 0, 0, 1, 1)], 1, 1), "f64[1,4,2]", "f64[2,2,1]"), ErrorKind::Value);
        assert_eq!(kind(sampled(&[(1, 0, 0, 0, 1)], 1, 1), "f64[1,4,2]", "f64[2,2,1]"), ErrorKind::Value);
        assert_eq!(kind(sampled(&[(1, -3, -3, 1, 1)], 1, 1), "f64[1,4,2]", "f64[2,2,1]"), ErrorKind::Shape);
        assert_eq!(kind(sampled(&[along], 2, 1), "f64[1,4,2]", "f64[2,1,3]"), ErrorKind::Shape);
        assert_eq!(kind(sampled(&[along], 1, 2), "f64[3,4,2]", "f64[2,2,2]"), ErrorKind::Shape);
        assert_eq!(kind(sampled(&[along], 2, 2), "f64[2,4,2]", "f64[2,1,4]"), ErrorKind::Value);
        assert_eq!(kind(sampled(&[along], 0, 1), "f64[2,4,2]", "f64[2,1,4]"), ErrorKind::Value);
        let symbolic = bind(sampled(&[along], 1, 1), &[Array::spec("f32[B,H,3]"), Array::spec("f32[3,3,8]")]);
        assert_eq!(symbolic.ty().unwrap().to_string(), "f32[B,H-2,8]");
    }
}
