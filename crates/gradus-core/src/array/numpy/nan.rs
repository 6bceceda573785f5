//! Reductions that pass over NaN.

use super::at_caller;
use crate::array::operand::resolve_axis;
use crate::array::{Array, IntoAxes};
use crate::error::{Result, fail};
use crate::types::{DType, Scalar};

macro_rules! nan_reductions {
    ($($(#[$doc:meta])* $all:ident $axes:ident $keep:ident = $core:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $all(&self) -> Array {
                at_caller(|| self.$core(&Vec::from_iter(0..self.rank())))
            }

            #[doc = concat!("As [`Array::", stringify!($all), "`], over some axes.")]
            #[track_caller]
            pub fn $axes(&self, axes: impl IntoAxes) -> Array {
                at_caller(|| self.$core(&self.some_axes(axes)?))
            }

            #[doc = concat!("As [`Array::", stringify!($axes), "`], with the folded axes kept at size 1.")]
            #[track_caller]
            pub fn $keep(&self, axes: impl IntoAxes) -> Array {
                at_caller(|| {
                    let axes = self.some_axes(axes)?;
                    self.kept(self.$core(&axes), &axes)
                })
            }
        )*}
    };
}
nan_reductions! {
    /// The sum of the elements that are not NaN.
    nansum nansum_axes nansum_keep = sum_of_numbers;
    /// The product of the elements that are not NaN.
    nanprod nanprod_axes nanprod_keep = product_of_numbers;
    /// The largest of the elements that are not NaN; of none, NaN.
    nanmax nanmax_axes nanmax_keep = largest_number;
    /// The smallest of the elements that are not NaN; of none, NaN.
    nanmin nanmin_axes nanmin_keep = smallest_number;
    /// The mean of the elements that are not NaN; of none, NaN.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// assert_eq!(Array::from([1.0, f64::NAN, 5.0]).nanmean().item::<f64>().unwrap(), 3.0);
    /// ```
    nanmean nanmean_axes nanmean_keep = mean_of_numbers;
}

impl Array {
    /// Where there is a number, and the array with another in place of NaN.
    fn without_nan(&self, other: Scalar) -> Result<Array> {
        if !self.ty()?.dtype().is_inexact() {
            return Ok(self.clone());
        }
        self.is_nan().select(Array::scalar(other), self).ok()
    }

    fn sum_of_numbers(&self, axes: &[usize]) -> Result<Array> {
        self.without_nan(Scalar::zero(self.dtype()))?.sum_axes(axes).ok()
    }

    fn product_of_numbers(&self, axes: &[usize]) -> Result<Array> {
        self.without_nan(Scalar::one(self.dtype()))?.prod_axes(axes).ok()
    }

    fn largest_number(&self, axes: &[usize]) -> Result<Array> {
        let most = self.without_nan(Scalar::lowest(self.dtype()))?.max_axes(axes).ok()?;
        self.unless_all_nan(most, axes)
    }

    fn smallest_number(&self, axes: &[usize]) -> Result<Array> {
        let least = self.without_nan(Scalar::highest(self.dtype()))?.min_axes(axes).ok()?;
        self.unless_all_nan(least, axes)
    }

    fn unless_all_nan(&self, found: Array, axes: &[usize]) -> Result<Array> {
        if !self.dtype().is_inexact() {
            return Ok(found);
        }
        self.is_nan().all_axes(axes).select(found.full_like(f64::NAN), found).ok()
    }

    fn mean_of_numbers(&self, axes: &[usize]) -> Result<Array> {
        let (x, dtype) = self.widened()?;
        let count = x.is_nan().logical_not().cast(x.dtype().real_part()).sum_axes(axes);
        (x.sum_of_numbers(axes)? / count).ok()?.try_cast(dtype)
    }

    fn var_of_numbers(&self, axes: &[usize], ddof: usize) -> Result<Array> {
        let (x, dtype) = self.widened()?;
        let real = x.dtype().real_part();
        let mean = x.kept(x.mean_of_numbers(axes), axes)?;
        let missing = x.is_nan();
        let apart = missing.select(x.zeros_like(), &x - &mean).squared().ok()?;
        let count = missing.logical_not().cast(real).sum_axes(axes) - ddof;
        // With nothing left to divide by there is no variance.
        let count = count.gt(0i32).select(&count, count.full_like(f64::NAN));
        (apart.sum_axes(axes) / count).ok()?.try_cast(dtype.real_part())
    }

    /// The variance of all elements that are not NaN.
    #[track_caller]
    pub fn nanvar(&self) -> Array {
        at_caller(|| self.var_of_numbers(&Vec::from_iter(0..self.rank()), 0))
    }

    /// As [`Array::nanvar`], over some axes, divided by the number of elements less `ddof`.
    #[track_caller]
    pub fn nanvar_axes(&self, axes: impl IntoAxes, ddof: usize) -> Array {
        at_caller(|| self.var_of_numbers(&self.some_axes(axes)?, ddof))
    }

    /// The standard deviation of all elements that are not NaN.
    #[track_caller]
    pub fn nanstd(&self) -> Array {
        self.nanvar().sqrt()
    }

    /// As [`Array::nanstd`], over some axes, the root of [`Array::nanvar_axes`].
    #[track_caller]
    pub fn nanstd_axes(&self, axes: impl IntoAxes, ddof: usize) -> Array {
        self.nanvar_axes(axes, ddof).sqrt()
    }

    /// The place along an axis of the largest element that is not NaN, as `i64`; -1 where there is none.
    #[track_caller]
    pub fn nanargmax_axis(&self, axis: isize) -> Array {
        at_caller(|| self.place_of_number(axis, true))
    }

    /// The place along an axis of the smallest element that is not NaN, as `i64`; -1 where there is none.
    #[track_caller]
    pub fn nanargmin_axis(&self, axis: isize) -> Array {
        at_caller(|| self.place_of_number(axis, false))
    }

    /// The place in row-major order of the largest element that is not NaN, as `i64`; -1 if there is none.
    #[track_caller]
    pub fn nanargmax(&self) -> Array {
        at_caller(|| self.try_flatten()?.place_of_number(0, true))
    }

    /// The place in row-major order of the smallest element that is not NaN, as `i64`; -1 if there is none.
    #[track_caller]
    pub fn nanargmin(&self) -> Array {
        at_caller(|| self.try_flatten()?.place_of_number(0, false))
    }

    fn place_of_number(&self, axis: isize, largest: bool) -> Result<Array> {
        let axis = resolve_axis(axis, self.ty()?.rank())? as isize;
        let dtype = self.dtype();
        if dtype.is_complex() {
            fail!(DType, "complex numbers have no order: {}", self.ty()?);
        }
        let filled = self.without_nan(if largest { Scalar::lowest(dtype) } else { Scalar::highest(dtype) })?;
        let place = if largest { filled.argmax_axis(axis) } else { filled.argmin_axis(axis) };
        if !dtype.is_float() {
            return place.ok();
        }
        self.is_nan().all_axes(axis).select(Array::from(-1i64), place).ok()
    }

    /// Sums up to each place of an axis, as if NaN were 0.
    #[track_caller]
    pub fn nancumsum(&self, axis: isize) -> Array {
        at_caller(|| self.without_nan(Scalar::zero(self.dtype()))?.cumsum(axis).ok())
    }

    /// Products up to each place of an axis, as if NaN were 1.
    #[track_caller]
    pub fn nancumprod(&self, axis: isize) -> Array {
        at_caller(|| self.without_nan(Scalar::one(self.dtype()))?.cumprod(axis).ok())
    }

    /// How many elements are not zero, as `i64`.
    #[track_caller]
    pub fn count_nonzero(&self) -> Array {
        self.is_true().cast(DType::I64).sum()
    }

    /// As [`Array::count_nonzero`], over some axes.
    #[track_caller]
    pub fn count_nonzero_axes(&self, axes: impl IntoAxes) -> Array {
        self.is_true().cast(DType::I64).sum_axes(axes)
    }

    /// The distance from the smallest to the largest element.
    #[doc(alias = "peak_to_peak")]
    #[track_caller]
    pub fn ptp(&self) -> Array {
        self.max() - self.min()
    }

    /// As [`Array::ptp`], over some axes.
    #[track_caller]
    pub fn ptp_axes(&self, axes: impl IntoAxes + Clone) -> Array {
        self.max_axes(axes.clone()) - self.min_axes(axes)
    }
}
