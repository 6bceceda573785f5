//! Methods that fold axes away or run along one: sums, means, extremes, truth, cumulative ones, and the functions of
//! probability that are made of them.
//!
//! Each comes over all axes (`sum`), over some (`sum_axes`), and with the folded axes kept at size 1 (`sum_keep`), so
//! that the result broadcasts against the array.

use super::operand::{checked, resolve_axis};
use super::shaping::apply;
use super::{Array, IntoAxes};
use crate::error::{Result, fail};
use crate::primitives::cumulative::{CumMax, CumMin, CumProd, CumSum};
use crate::primitives::reduce::{ArgMax, ArgMin, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum};
use crate::types::{DType, Dim, Scalar, Shape};

/// The three forms of a reduction whose core takes resolved axes.
macro_rules! reductions {
    ($($(#[$doc:meta])* $all:ident $axes:ident $keep:ident = $core:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $all(&self) -> Array {
                checked(self.$core(&Vec::from_iter(0..self.rank())))
            }

            #[doc = concat!("As [`Array::", stringify!($all), "`], over some axes.")]
            #[track_caller]
            pub fn $axes(&self, axes: impl IntoAxes) -> Array {
                match self.some_axes(axes) {
                    Ok(axes) => checked(self.$core(&axes)),
                    Err(e) => checked(Err(e)),
                }
            }

            #[doc = concat!("As [`Array::", stringify!($axes), "`], with the folded axes kept at size 1.")]
            #[track_caller]
            pub fn $keep(&self, axes: impl IntoAxes) -> Array {
                match self.some_axes(axes) {
                    Ok(axes) => checked(self.kept(self.$core(&axes), &axes)),
                    Err(e) => checked(Err(e)),
                }
            }
        )*}
    };
}
reductions! {
    /// The sum of all elements. Bools are counted in `i64`; small integers keep their dtype and wrap around.
    #[doc(alias = "reduce_sum")]
    sum sum_axes sum_keep = try_sum;
    /// The product of all elements. Bools are multiplied in `i64`; small integers keep their dtype and wrap around.
    #[doc(alias = "reduce_prod")]
    prod prod_axes prod_keep = try_prod;
    /// The largest element; NaN if there is one. Of no elements, the lowest number of the dtype.
    #[doc(alias = "reduce_max")]
    #[doc(alias = "amax")]
    max max_axes max_keep = try_max;
    /// The smallest element; NaN if there is one. Of no elements, the highest number of the dtype.
    #[doc(alias = "reduce_min")]
    #[doc(alias = "amin")]
    min min_axes min_keep = try_min;
    /// The mean of all elements. Of integers and bools it is `f64`; of no elements NaN.
    mean mean_axes mean_keep = try_mean;
    /// Whether all elements are true, or not zero.
    #[doc(alias = "reduce_and")]
    all all_axes all_keep = try_all;
    /// Whether any element is true, or not zero.
    #[doc(alias = "reduce_or")]
    any any_axes any_keep = try_any;
    /// The logarithm of the sum of exponentials, without overflow. Of no elements, or of minus infinities, it is minus
    /// infinity. Integers are taken as `f64`.
    logsumexp logsumexp_axes logsumexp_keep = try_logsumexp;
    /// The root of the sum of squared absolute values. Integers are taken as `f64`.
    norm norm_axes norm_keep = try_norm;
}

impl Array {
    /// Axes in increasing order.
    pub(super) fn some_axes(&self, axes: impl IntoAxes) -> Result<Vec<usize>> {
        let mut axes = axes.into_axes(self.ty()?.rank())?;
        axes.sort_unstable();
        Ok(axes)
    }

    /// A reduction's result with the folded axes put back at size 1.
    #[track_caller]
    pub(super) fn kept(&self, reduced: Result<Array>, axes: &[usize]) -> Result<Array> {
        let shape = self.ty()?.shape();
        let size = |(i, d): (usize, &Dim)| if axes.contains(&i) { Dim::from(1usize) } else { d.clone() };
        reduced?.try_reshape(shape.iter().enumerate().map(size).collect())
    }

    /// How many elements are folded into one.
    pub(super) fn folded(&self, axes: &[usize]) -> Dim {
        axes.iter().filter_map(|a| self.shape().get(*a).cloned()).collect::<Shape>().size()
    }

    /// The array in a dtype that means and exponentials are good in: half floats as `f32` (65505 halves already have
    /// no sum), integers and bools as `f64`. With it, the dtype to go back to.
    #[track_caller]
    pub(super) fn widened(&self) -> Result<(Array, DType)> {
        let dtype = self.ty()?.dtype();
        match dtype {
            DType::F16 | DType::BF16 => Ok((self.try_cast(DType::F32)?, dtype)),
            _ if dtype.is_inexact() => Ok((self.clone(), dtype)),
            _ => Ok((self.try_cast(DType::F64)?, DType::F64)),
        }
    }

    /// Bools as numbers.
    #[track_caller]
    fn counted(&self, dtype: DType) -> Result<Array> {
        if self.ty()?.dtype() == DType::Bool { self.try_cast(dtype) } else { Ok(self.clone()) }
    }

    /// Squared absolute values, which are real.
    #[track_caller]
    pub(super) fn squared(&self) -> Array {
        if self.dtype().is_complex() {
            let (re, im) = (self.real(), self.imag());
            &re * &re + &im * &im
        } else {
            self * self
        }
    }

    #[track_caller]
    fn try_sum(&self, axes: &[usize]) -> Result<Array> {
        let x = self.counted(DType::I64)?;
        if axes.is_empty() { Ok(x) } else { apply(ReduceSum { axes: axes.to_vec() }, &[x]) }
    }

    #[track_caller]
    fn try_prod(&self, axes: &[usize]) -> Result<Array> {
        let x = self.counted(DType::I64)?;
        if axes.is_empty() { Ok(x) } else { apply(ReduceProd { axes: axes.to_vec() }, &[x]) }
    }

    #[track_caller]
    fn try_max(&self, axes: &[usize]) -> Result<Array> {
        if self.ty()?.dtype() == DType::Bool {
            return self.try_any(axes);
        }
        self.through(ReduceMax { axes: axes.to_vec() })
    }

    #[track_caller]
    fn try_min(&self, axes: &[usize]) -> Result<Array> {
        if self.ty()?.dtype() == DType::Bool {
            return self.try_all(axes);
        }
        self.through(ReduceMin { axes: axes.to_vec() })
    }

    #[track_caller]
    fn truth(&self) -> Result<Array> {
        let dtype = self.ty()?.dtype();
        if dtype == DType::Bool { Ok(self.clone()) } else { self.ne(Array::scalar(Scalar::zero(dtype))).ok() }
    }

    #[track_caller]
    fn try_all(&self, axes: &[usize]) -> Result<Array> {
        let x = self.truth()?;
        if axes.is_empty() { Ok(x) } else { apply(ReduceAnd { axes: axes.to_vec() }, &[x]) }
    }

    #[track_caller]
    fn try_any(&self, axes: &[usize]) -> Result<Array> {
        let x = self.truth()?;
        if axes.is_empty() { Ok(x) } else { apply(ReduceOr { axes: axes.to_vec() }, &[x]) }
    }

    #[track_caller]
    fn try_mean(&self, axes: &[usize]) -> Result<Array> {
        let (x, dtype) = self.widened()?;
        let sum = x.try_sum(axes)?;
        (&sum / &Array::from_dim(&self.folded(axes), sum.dtype())).ok()?.try_cast(dtype)
    }

    #[track_caller]
    fn try_var(&self, axes: &[usize], ddof: usize) -> Result<Array> {
        let (x, dtype) = self.widened()?;
        let mean = x.kept(x.try_mean(axes), axes)?;
        let squares = (&x - &mean).squared().ok()?.try_sum(axes)?;
        // With nothing left to divide by the variance has no value: NaN, or infinity, as in NumPy.
        let count = (self.folded(axes) - ddof).max(&Dim::from(0usize));
        (&squares / &Array::from_dim(&count, squares.dtype())).ok()?.try_cast(dtype.real_part())
    }

    #[track_caller]
    fn try_std(&self, axes: &[usize], ddof: usize) -> Result<Array> {
        self.try_var(axes, ddof)?.sqrt().ok()
    }

    /// The variance of all elements: the mean squared distance to their mean.
    #[track_caller]
    pub fn var(&self) -> Array {
        checked(self.try_var(&Vec::from_iter(0..self.rank()), 0))
    }

    /// The variance over some axes, divided by the number of elements less `ddof`.
    #[track_caller]
    pub fn var_axes(&self, axes: impl IntoAxes, ddof: usize) -> Array {
        match self.some_axes(axes) {
            Ok(axes) => checked(self.try_var(&axes, ddof)),
            Err(e) => checked(Err(e)),
        }
    }

    /// As [`Array::var_axes`], with the folded axes kept at size 1.
    #[track_caller]
    pub fn var_keep(&self, axes: impl IntoAxes, ddof: usize) -> Array {
        match self.some_axes(axes) {
            Ok(axes) => checked(self.kept(self.try_var(&axes, ddof), &axes)),
            Err(e) => checked(Err(e)),
        }
    }

    /// The standard deviation of all elements, the root of [`Array::var`].
    #[track_caller]
    pub fn std(&self) -> Array {
        checked(self.try_std(&Vec::from_iter(0..self.rank()), 0))
    }

    /// The standard deviation over some axes, the root of [`Array::var_axes`].
    #[track_caller]
    pub fn std_axes(&self, axes: impl IntoAxes, ddof: usize) -> Array {
        match self.some_axes(axes) {
            Ok(axes) => checked(self.try_std(&axes, ddof)),
            Err(e) => checked(Err(e)),
        }
    }

    /// As [`Array::std_axes`], with the folded axes kept at size 1.
    #[track_caller]
    pub fn std_keep(&self, axes: impl IntoAxes, ddof: usize) -> Array {
        match self.some_axes(axes) {
            Ok(axes) => checked(self.kept(self.try_std(&axes, ddof), &axes)),
            Err(e) => checked(Err(e)),
        }
    }

    #[track_caller]
    fn try_logsumexp(&self, axes: &[usize]) -> Result<Array> {
        let (x, dtype) = self.widened()?;
        // With the largest element taken out no exponential overflows. An infinite one stays: taken out it makes NaN.
        let top = x.kept(x.try_max(axes), axes)?;
        let top = top.is_finite().select(&top, Array::scalar(Scalar::zero(x.dtype()))).ok()?;
        // The result does not depend on what was taken out: its derivatives would cancel, element by element.
        let top = top.stop_gradient().ok()?;
        let sum = (&x - &top).exp().ok()?.try_sum(axes)?;
        let top = top.try_reshape(sum.shape().clone())?;
        (sum.log() + top).ok()?.try_cast(dtype)
    }

    #[track_caller]
    fn try_norm(&self, axes: &[usize]) -> Result<Array> {
        let (x, dtype) = self.widened()?;
        x.squared().ok()?.try_sum(axes)?.sqrt().ok()?.try_cast(dtype.real_part())
    }

    /// Exponentials divided by their sum along some axes. A row of minus infinities has no such: NaN.
    #[track_caller]
    pub fn softmax(&self, axes: impl IntoAxes) -> Array {
        checked(self.try_softmax(axes, false))
    }

    /// The logarithm of [`Array::softmax`], more accurate than taking it afterwards.
    #[track_caller]
    pub fn log_softmax(&self, axes: impl IntoAxes) -> Array {
        checked(self.try_softmax(axes, true))
    }

    #[track_caller]
    fn try_softmax(&self, axes: impl IntoAxes, log: bool) -> Result<Array> {
        let axes = self.some_axes(axes)?;
        let (x, dtype) = self.widened()?;
        // The result does not depend on what is taken out: its derivatives would cancel, element by element.
        let top = x.kept(x.try_max(&axes), &axes)?.stop_gradient();
        let shifted = (&x - &top).ok()?;
        let powers = shifted.exp().ok()?;
        let sum = powers.kept(powers.try_sum(&axes), &axes)?;
        // The largest power is one, so the sum is at least that and its reciprocal is finite: one quotient for each row.
        let result = if log { &shifted - &sum.log() } else { &powers * &sum.recip() };
        result.ok()?.try_cast(dtype)
    }

    /// The place of the largest element in row-major order, as `i64`: the first of equal ones, or of NaNs.
    #[track_caller]
    pub fn argmax(&self) -> Array {
        checked(self.flat_extreme(true))
    }

    /// The place of the smallest element in row-major order, as `i64`: the first of equal ones, or of NaNs.
    #[track_caller]
    pub fn argmin(&self) -> Array {
        checked(self.flat_extreme(false))
    }

    #[track_caller]
    fn flat_extreme(&self, largest: bool) -> Result<Array> {
        self.try_flatten()?.extreme(0, largest)
    }

    /// The place of the largest element along an axis, as `i64`: the first of equal ones, or of NaNs.
    #[track_caller]
    pub fn argmax_axis(&self, axis: isize) -> Array {
        checked(self.extreme(axis, true))
    }

    /// The place of the smallest element along an axis, as `i64`: the first of equal ones, or of NaNs.
    #[track_caller]
    pub fn argmin_axis(&self, axis: isize) -> Array {
        checked(self.extreme(axis, false))
    }

    /// As [`Array::argmax_axis`], with the axis kept at size 1.
    #[track_caller]
    pub fn argmax_keep(&self, axis: isize) -> Array {
        checked(self.extreme_kept(axis, true))
    }

    /// As [`Array::argmin_axis`], with the axis kept at size 1.
    #[track_caller]
    pub fn argmin_keep(&self, axis: isize) -> Array {
        checked(self.extreme_kept(axis, false))
    }

    #[track_caller]
    fn extreme_kept(&self, axis: isize, largest: bool) -> Result<Array> {
        let at = resolve_axis(axis, self.ty()?.rank())?;
        self.kept(self.extreme(axis, largest), &[at])
    }

    #[track_caller]
    fn extreme(&self, axis: isize, largest: bool) -> Result<Array> {
        let x = self.counted(DType::U8)?;
        let ty = x.ty()?;
        let axis = resolve_axis(axis, ty.rank())?;
        if ty.shape().get(axis).is_some_and(|d| d.constant() == Some(0)) {
            fail!(
                Shape,
                "axis {axis} of {ty} has no elements, so none is the {}",
                if largest { "largest" } else { "smallest" }
            );
        }
        let dtype = DType::I64;
        if largest { apply(ArgMax { axis, dtype }, &[x]) } else { apply(ArgMin { axis, dtype }, &[x]) }
    }
}

macro_rules! cumulative {
    ($($(#[$doc:meta])* $method:ident $core:ident = $primitive:ident, bools $bools:expr;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(&self, axis: isize) -> Array {
                checked(self.$core(axis))
            }

            #[track_caller]
            fn $core(&self, axis: isize) -> Result<Array> {
                let axis = resolve_axis(axis, self.ty()?.rank())?;
                let (stay, number): (bool, DType) = $bools;
                let result = apply($primitive { axis, reverse: false }, &[self.counted(number)?])?;
                if stay { result.try_cast(self.dtype()) } else { Ok(result) }
            }
        )*}
    };
}
cumulative! {
    /// Sums of the elements up to each place of an axis. Bools are counted in `i64`.
    #[doc(alias = "cumulative_sum")]
    cumsum try_cumsum = CumSum, bools (false, DType::I64);
    /// Products of the elements up to each place of an axis. Bools are multiplied in `i64`.
    #[doc(alias = "cumulative_prod")]
    cumprod try_cumprod = CumProd, bools (false, DType::I64);
    /// The largest element up to each place of an axis. Of equal ones the first has the derivative.
    cummax try_cummax = CumMax, bools (true, DType::U8);
    /// The smallest element up to each place of an axis. Of equal ones the first has the derivative.
    cummin try_cummin = CumMin, bools (true, DType::U8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::shaping::tests::everywhere_symbolic as everywhere;
    use crate::error::ErrorKind;
    use crate::types::{Complex, f16};

    macro_rules! same {
        ($x:expr, $shape:expr, $t:ty, $values:expr) => {{
            let x: Array = $x;
            let (shape, values): (Vec<usize>, Vec<$t>) = (Vec::from($shape), Vec::from($values));
            assert_eq!((x.known_dims().unwrap(), x.to_vec::<$t>().unwrap()), (shape, values));
        }};
    }

    #[track_caller]
    fn close(x: &Array, want: &[f64]) {
        let have = x.to_vec::<f64>().unwrap();
        let near = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-14 * b.abs().max(1.0);
        assert!(have.len() == want.len() && have.iter().zip(want).all(|(a, b)| near(*a, *b)), "{have:?} {want:?}");
    }

    fn kind(x: &Array) -> ErrorKind {
        x.error().unwrap_or_else(|| panic!("no error but {x:?}")).kind()
    }

    fn table() -> Array {
        Array::from([[1.0, 2.0, 3.0], [6.0, 5.0, 4.0]])
    }

    #[test]
    fn sums_and_products() {
        let x = table();
        same!(everywhere(&x, Array::sum), [], f64, [21.0]);
        same!(everywhere(&x, |x| x.sum_axes(0)), [3], f64, [7.0, 7.0, 7.0]);
        same!(everywhere(&x, |x| x.sum_axes(-1)), [2], f64, [6.0, 15.0]);
        same!(x.sum_axes([1, 0]), [], f64, [21.0]);
        same!(x.sum_axes(()), [], f64, [21.0]);
        same!(everywhere(&x, |x| x.sum_keep(1)), [2, 1], f64, [6.0, 15.0]);
        same!(x.sum_keep(..), [1, 1], f64, [21.0]);
        same!(everywhere(&x, Array::prod), [], f64, [720.0]);
        same!(x.prod_axes(0), [3], f64, [6.0, 10.0, 12.0]);
        same!(x.prod_keep(0), [1, 3], f64, [6.0, 10.0, 12.0]);
        same!(Array::from(3.0).sum(), [], f64, [3.0]);
        same!(Array::zeros::<f64>([0, 2]).sum_axes(0), [2], f64, [0.0, 0.0]);
        same!(Array::zeros::<f64>([0]).prod(), [], f64, [1.0]);
        assert_eq!(kind(&x.sum_axes(2)), ErrorKind::Axis);
        assert_eq!(kind(&x.sum_axes([0, -2])), ErrorKind::Axis);
        assert_eq!(kind(&Array::from(1.0).prod_keep(0)), ErrorKind::Axis);
        let place = x.sum_keep(2).error().unwrap().place();
        assert!(place.file().unwrap().ends_with("reduce.rs") && place.line() == Some(line!() - 1));
    }

    #[test]
    fn dtypes_of_sums_and_means() {
        same!(Array::from([true, true, false]).sum(), [], i64, [2]);
        same!(Array::from(true).sum(), [], i64, [1]);
        same!(Array::from([true, false]).prod(), [], i64, [0]);
        same!(Array::from([200u8, 100]).sum(), [], u8, [44]);
        same!(Array::from([1, 2]).mean(), [], f64, [1.5]);
        same!(Array::from([true, false]).mean(), [], f64, [0.5]);
        same!(Array::from([1.0f32, 2.0]).mean(), [], f32, [1.5]);
        // 70000 halves: neither their sum nor their count is a finite half.
        let halves = Array::full([70_000], f16::from_f32(2.0));
        assert_eq!(halves.mean().item::<f16>().unwrap(), f16::from_f32(2.0));
        assert_eq!(halves.var().item::<f16>().unwrap(), f16::from_f32(0.0));
        same!(
            Array::from([Complex::new(1.0, 1.0), Complex::new(3.0, -1.0)]).mean(),
            [],
            Complex<f64>,
            [Complex::new(2.0, 0.0)]
        );
    }

    #[test]
    fn extremes() {
        let x = table();
        same!(everywhere(&x, Array::max), [], f64, [6.0]);
        same!(everywhere(&x, |x| x.min_axes(1)), [2], f64, [1.0, 4.0]);
        same!(x.max_keep(0), [1, 3], f64, [6.0, 5.0, 4.0]);
        assert!(Array::from([1.0, f64::NAN]).max().item::<f64>().unwrap().is_nan());
        assert!(Array::from([1.0, f64::NAN]).min().item::<f64>().unwrap().is_nan());
        same!(Array::zeros::<f64>([0]).max(), [], f64, [f64::NEG_INFINITY]);
        same!(Array::zeros::<i8>([0]).min(), [], i8, [i8::MAX]);
        same!(Array::from([true, false]).max(), [], bool, [true]);
        same!(Array::from([true, false]).min(), [], bool, [false]);
        assert_eq!(kind(&Array::from([Complex::new(1.0, 1.0)]).max()), ErrorKind::DType);
        same!(everywhere(&x, Array::argmax), [], i64, [3]);
        same!(x.argmin(), [], i64, [0]);
        same!(everywhere(&x, |x| x.argmax_axis(0)), [3], i64, [1, 1, 1]);
        same!(x.argmin_axis(-1), [2], i64, [0, 2]);
        same!(everywhere(&x, |x| x.argmax_keep(1)), [2, 1], i64, [2, 0]);
        same!(x.argmin_keep(0), [1, 3], i64, [0, 0, 0]);
        same!(Array::from([1, 3, 3]).argmax(), [], i64, [1]);
        same!(Array::from([1.0, f64::NAN, f64::NAN]).argmin(), [], i64, [1]);
        same!(Array::from([false, true, true]).argmax(), [], i64, [1]);
        same!(Array::from(5.0).argmax(), [], i64, [0]);
        assert_eq!(kind(&Array::zeros::<f64>([0]).argmax()), ErrorKind::Shape);
        assert_eq!(kind(&Array::zeros::<f64>([2, 0]).argmax_axis(1)), ErrorKind::Shape);
        same!(Array::zeros::<f64>([0, 2]).argmax_axis(1), [0], i64, []);
        assert_eq!(kind(&x.argmax_axis(2)), ErrorKind::Axis);
    }

    #[test]
    fn truth() {
        let x = Array::from([[0.0, 1.0], [f64::NAN, 2.0]]);
        same!(everywhere(&x, Array::all), [], bool, [false]);
        same!(everywhere(&x, |x| x.all_axes(1)), [2], bool, [false, true]);
        same!(x.any(), [], bool, [true]);
        same!(x.any_keep(0), [1, 2], bool, [true, true]);
        same!(x.all_keep(0), [1, 2], bool, [false, true]);
        same!(Array::zeros::<i32>([0]).all(), [], bool, [true]);
        same!(Array::zeros::<i32>([0]).any(), [], bool, [false]);
        same!(Array::from([false, true]).any_axes(0), [], bool, [true]);
        same!(Array::from(2).all(), [], bool, [true]);
    }

    #[test]
    fn means_and_variances() {
        let x = table();
        close(&everywhere(&x, Array::mean), &[3.5]);
        close(&everywhere(&x, |x| x.mean_axes(1)), &[2.0, 5.0]);
        close(&everywhere(&x, |x| x.mean_keep(0)), &[3.5, 3.5, 3.5]);
        close(&everywhere(&x, Array::var), &[35.0 / 12.0]);
        close(&everywhere(&x, |x| x.var_axes(1, 1)), &[1.0, 1.0]);
        close(&everywhere(&x, |x| x.var_axes(0, 0)), &[6.25, 2.25, 0.25]);
        assert_eq!(x.var_keep(0, 1).shape(), [1, 3]);
        close(&x.std(), &[(35.0f64 / 12.0).sqrt()]);
        close(&x.std_axes(0, 0), &[2.5, 1.5, 0.5]);
        close(&everywhere(&x, |x| x.std_keep(1, 1)), &[1.0, 1.0]);
        assert_eq!(Array::spec("f32[B,4]").mean_axes(0).ty().unwrap().to_string(), "f32[4]");
        close(&Array::zeros::<f64>([0]).mean(), &[f64::NAN]);
        close(&Array::from([1.0]).var_axes(0, 1), &[f64::NAN]);
        close(&Array::from([1.0]).var_axes(0, 9), &[f64::NAN]);
        close(&Array::from([1, 2, 3, 4]).var(), &[1.25]);
        let z = Array::from([Complex::new(1.0, 1.0), Complex::new(3.0, -1.0)]);
        close(&z.var(), &[2.0]);
        assert_eq!(kind(&x.var_axes(3, 0)), ErrorKind::Axis);
        assert_eq!(kind(&x.std_keep(3, 0)), ErrorKind::Axis);
    }

    #[test]
    fn logsumexp_and_softmax_are_stable() {
        let inf = f64::INFINITY;
        close(&everywhere(&table(), Array::logsumexp), &[6.456193316018123]);
        close(
            &everywhere(&table(), |x| x.logsumexp_axes(0)),
            &[6.006715348489118, 5.048587351573742, 4.313261687518223],
        );
        assert_eq!(table().logsumexp_keep(1).shape(), [2, 1]);
        close(&Array::from([1000.0, 1000.0]).logsumexp(), &[1000.0 + 2f64.ln()]);
        close(&Array::from([-inf, -inf]).logsumexp(), &[-inf]);
        close(&Array::from([-inf, 3.0]).logsumexp(), &[3.0]);
        close(&Array::from([inf, 3.0]).logsumexp(), &[inf]);
        close(&Array::from([inf, -inf]).logsumexp(), &[inf]);
        close(&Array::from([f64::NAN, 3.0]).logsumexp(), &[f64::NAN]);
        close(&Array::zeros::<f64>([0]).logsumexp(), &[-inf]);
        close(&Array::from([0, 0]).logsumexp(), &[2f64.ln()]);
        let x = Array::from([[1.0, 2.0, 3.0], [1000.0, 1000.0, -inf], [-inf, -inf, -inf]]);
        let (e1, e2) = ((-1f64).exp(), (-2f64).exp());
        let total = 1.0 + e1 + e2;
        let nan = f64::NAN;
        close(&everywhere(&x, |x| x.softmax(1)), &[e2 / total, e1 / total, 1.0 / total, 0.5, 0.5, 0.0, nan, nan, nan]);
        let lt = total.ln();
        let half = 0.5f64.ln();
        close(&everywhere(&x, |x| x.log_softmax(-1)), &[-2.0 - lt, -1.0 - lt, -lt, half, half, -inf, nan, nan, nan]);
        close(&Array::from([[0, 0], [0, 0]]).softmax(()), &[0.25; 4]);
        assert_eq!(Array::zeros::<f32>([2, 0]).softmax(1).shape(), [2, 0]);
        assert_eq!(Array::from([1.0f32, 2.0]).softmax(0).dtype(), DType::F32);
        assert_eq!(kind(&x.softmax(2)), ErrorKind::Axis);
        assert_eq!(kind(&Array::from([Complex::new(1.0, 1.0)]).softmax(0)), ErrorKind::DType);
    }

    #[test]
    fn norms() {
        close(&everywhere(&Array::from([3.0, 4.0]), Array::norm), &[5.0]);
        close(&Array::from([[3, 4], [5, 12]]).norm_axes(1), &[5.0, 13.0]);
        assert_eq!(Array::from([[3, 4], [5, 12]]).norm_keep(1).shape(), [2, 1]);
        close(&Array::from([Complex::new(3.0, 4.0)]).norm(), &[5.0]);
    }

    #[test]
    fn cumulative_ones() {
        let x = Array::from([[3, 1, 2], [0, 5, 4]]);
        same!(everywhere(&x, |x| x.cumsum(1)), [2, 3], i32, [3, 4, 6, 0, 5, 9]);
        same!(everywhere(&x, |x| x.cumsum(0)), [2, 3], i32, [3, 1, 2, 3, 6, 6]);
        same!(x.cumprod(-1), [2, 3], i32, [3, 3, 6, 0, 0, 0]);
        same!(x.cummax(1), [2, 3], i32, [3, 3, 3, 0, 5, 5]);
        same!(x.cummin(1), [2, 3], i32, [3, 1, 1, 0, 0, 0]);
        let b = Array::from([false, true, false]);
        same!(b.cumsum(0), [3], i64, [0, 1, 1]);
        same!(b.cummax(0), [3], bool, [false, true, true]);
        same!(b.cummin(0), [3], bool, [false, false, false]);
        same!(Array::zeros::<f64>([0]).cumsum(0), [0], f64, []);
        assert_eq!(kind(&x.cumsum(2)), ErrorKind::Axis);
        assert_eq!(kind(&Array::from(1).cummax(0)), ErrorKind::Axis);
    }
}
