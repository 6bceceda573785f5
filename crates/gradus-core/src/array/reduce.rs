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
use crate::primitives::reduce::{
    ArgMax, ArgMin, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum,
};
use crate::types::{DType, Dim, Scalar};

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
    sum sum_axes sum_keep = try_sum;
    /// The product of all elements. Bools are multiplied in `i64`; small integers keep their dtype and wrap around.
    prod prod_axes prod_keep = try_prod;
    /// The largest element; NaN if there is one. Of no elements, the lowest number of the dtype.
    max max_axes max_keep = try_max;
    /// The smallest element; NaN if there is one. Of no elements, the highest number of the dtype.
    min min_axes min_keep = try_min;
    /// The mean of all elements. Of integers and bools it is `f64`; of no elements NaN.
    mean mean_axes mean_keep = try_mean;
    /// Whether all elements are true, or not zero.
    all all_axes all_keep = try_all;
    /// Whether any element is true, or not zero.
    any any_axes any_keep = try_any;
    /// The logarithm of the sum of exponentials, without overflow. Of no elements, or of minus infinities, it is minus
    /// infinity. Integers are taken as `f64`.
    logsumexp logsumexp_axes logsumexp_keep = try_logsumexp;
    /// The root of the sum of squared absolute values. Integers are taken as `f64`.
    norm norm_axes norm_keep = try_norm;
}

impl Array {
    /// Axes in increasing order.
    fn some_axes(&self, axes: impl IntoAxes) -> Result<Vec<usize>> {
        let mut axes = axes.into_axes(self.ty()?.rank())?;
        axes.sort_unstable();
        Ok(axes)
    }

    /// A reduction's result with the folded axes put back at size 1.
    #[track_caller]
    fn kept(&self, reduced: Result<Array>, axes: &[usize]) -> Result<Array> {
        let shape = self.ty()?.shape();
        let size = |(i, d): (usize, &Dim)| if axes.contains(&i) { Dim::from(1usize) } else { d.clone() };
        reduced?.try_reshape(shape.iter().enumerate().map(size).collect())
    }

    /// How many elements are folded into one.
    fn folded(&self, axes: &[usize]) -> Dim {
        axes.iter().filter_map(|a| self.shape().get(*a)).fold(Dim::from(1usize), |n, d| n * d)
    }

    /// The array in a dtype that means and exponentials are good in: half floats as `f32` (65505 halves already have
    /// no sum), integers and bools as `f64`. With it, the dtype to go back to.
    #[track_caller]
    fn widened(&self) -> Result<(Array, DType)> {
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
    fn squared(&self) -> Array {
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
        apply(ReduceMax { axes: axes.to_vec() }, &[self.clone()])
    }

    #[track_caller]
    fn try_min(&self, axes: &[usize]) -> Result<Array> {
        if self.ty()?.dtype() == DType::Bool {
            return self.try_all(axes);
        }
        apply(ReduceMin { axes: axes.to_vec() }, &[self.clone()])
    }

    #[track_caller]
    fn truth(&self) -> Result<Array> {
        let dtype = self.ty()?.dtype();
        if dtype == DType::Bool { Ok(self.clone()) } else { self.ne(&Array::scalar(Scalar::zero(dtype))).ok() }
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
        let count = self.folded(axes) - ddof;
        // With nothing left to divide by the variance has no value: NaN, or infinity, as in NumPy.
        let count = if count.constant().is_some_and(|c| c < 0) { Dim::from(0usize) } else { count };
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
        // With the largest element taken out no exponential overflows. An infinite one stays in: out, it would make NaN.
        let top = x.kept(x.try_max(axes), axes)?;
        let top = top.is_finite().select(&top, &Array::scalar(Scalar::zero(x.dtype()))).ok()?;
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
        let top = x.kept(x.try_max(&axes), &axes)?;
        let shifted = (&x - &top).ok()?;
        let powers = shifted.exp().ok()?;
        let sum = powers.kept(powers.try_sum(&axes), &axes)?;
        let result = if log { &shifted - &sum.log() } else { &powers / &sum };
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
            fail!(Shape, "axis {axis} of {ty} has no elements, so none is the {}", if largest { "largest" } else { "smallest" });
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
    cumsum try_cumsum = CumSum, bools (false, DType::I64);
    /// Products of the elements up to each place of an axis. Bools are multiplied in `i64`.
    cumprod try_cumprod = CumProd, bools (false, DType::I64);
    /// The largest element up to each place of an axis.
    cummax try_cummax = CumMax, bools (true, DType::U8);
    /// The smallest element up to each place of an axis.
    cummin try_cummin = CumMin, bools (true, DType::U8);
}
