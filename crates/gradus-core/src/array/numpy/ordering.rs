//! What depends on the order of elements: medians, quantiles, ranks, parts of a sorted axis.

use super::at_caller;
use crate::array::{Array, IntoAxes, Operand};
use crate::error::{Result, error, fail};
use crate::types::{DType, Dim, Shape};

/// The three forms of a statistic of sorted elements.
macro_rules! ordered {
    ($($(#[$doc:meta])* $all:ident $axes:ident $keep:ident = percent $percent:literal, nan $nan:literal;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $all(&self, q: impl Operand) -> Array {
                let q = q.into_operand();
                at_caller(|| self.quantiles(q.into_array(), (), false, $percent, $nan))
            }

            #[doc = concat!("As [`Array::", stringify!($all), "`], over some axes. The axes of `q` come first.")]
            #[track_caller]
            pub fn $axes(&self, q: impl Operand, axes: impl IntoAxes) -> Array {
                let q = q.into_operand();
                at_caller(|| self.quantiles(q.into_array(), axes, false, $percent, $nan))
            }

            #[doc = concat!("As [`Array::", stringify!($axes), "`], with the folded axes kept at size 1.")]
            #[track_caller]
            pub fn $keep(&self, q: impl Operand, axes: impl IntoAxes) -> Array {
                let q = q.into_operand();
                at_caller(|| self.quantiles(q.into_array(), axes, true, $percent, $nan))
            }
        )*}
    };
}
ordered! {
    /// The number that a part `q` (0 to 1) of all elements is below, between two elements on the line through them. NaN if there is one.
    ///
    /// Other parts are an error, and where `q` is known only to the program, the result is NaN there.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([4.0, 1.0, 2.0]);
    /// assert_eq!(x.quantile(0.25).item::<f64>().unwrap(), 1.5);
    /// ```
    quantile quantile_axes quantile_keep = percent false, nan false;
    /// [`Array::quantile`] with `q` of a hundred.
    percentile percentile_axes percentile_keep = percent true, nan false;
    /// [`Array::quantile`] of the elements that are not NaN.
    nanquantile nanquantile_axes nanquantile_keep = percent false, nan true;
    /// [`Array::percentile`] of the elements that are not NaN.
    nanpercentile nanpercentile_axes nanpercentile_keep = percent true, nan true;
}

macro_rules! medians {
    ($($(#[$doc:meta])* $all:ident $axes:ident $keep:ident = nan $nan:literal;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $all(&self) -> Array {
                at_caller(|| self.quantiles(Array::from(0.5_f64), (), false, false, $nan))
            }

            #[doc = concat!("As [`Array::", stringify!($all), "`], over some axes.")]
            #[track_caller]
            pub fn $axes(&self, axes: impl IntoAxes) -> Array {
                at_caller(|| self.quantiles(Array::from(0.5_f64), axes, false, false, $nan))
            }

            #[doc = concat!("As [`Array::", stringify!($axes), "`], with the folded axes kept at size 1.")]
            #[track_caller]
            pub fn $keep(&self, axes: impl IntoAxes) -> Array {
                at_caller(|| self.quantiles(Array::from(0.5_f64), axes, true, false, $nan))
            }
        )*}
    };
}
medians! {
    /// The element in the middle, or the mean of the two there. NaN if there is one. Integers are taken as `f64`.
    median median_axes median_keep = nan false;
    /// [`Array::median`] of the elements that are not NaN.
    nanmedian nanmedian_axes nanmedian_keep = nan true;
}

/// Refuses parts that are not between none and all. Where they are not known yet, which ones those are.
fn outside(q: &Array, all: i32) -> Result<Option<Array>> {
    let Some(known) = q.concrete() else {
        // Not `lt` and `gt`: NaN is no part either.
        return (!(q.ge(0i32) & q.le(all))).ok().map(Some);
    };
    // Read as they are: an operation would become part of a program that is being traced.
    let different = if known.splat_value().is_some() { known.count().min(1) } else { known.count() };
    for i in 0..different {
        let part = known.scalar_at(i)?.to_f64();
        if !(0.0..=f64::from(all)).contains(&part) {
            return Err(error!(Value, "a quantile at {part}, which is outside of 0 to {all}")
                .help("a quantile takes a part from 0 to 1, a percentile one from 0 to 100"));
        }
    }
    Ok(None)
}

impl Array {
    fn quantiles(&self, q: Array, axes: impl IntoAxes, keep: bool, percent: bool, skip_nan: bool) -> Result<Array> {
        let axes = self.some_axes(axes)?;
        let (x, dtype) = self.widened()?;
        if !x.dtype().is_float() {
            return Err(error!(DType, "complex numbers have no order: {}", self.ty()?)
                .help("take the quantile of `.abs()` or of a part"));
        }
        let (rows, n) = x.axes_last(&axes)?;
        if n.constant() == Some(0) {
            fail!(Shape, "no elements of {} have a quantile: an axis is empty", self.ty()?);
        }
        let outside = outside(&q, if percent { 100 } else { 1 })?;
        let q = q.try_cast(x.dtype())?;
        let q = if percent { q / 100i32 } else { q }.ok()?;
        let sorted = rows.sort(-1).ok()?;
        let missing = rows.is_nan();
        let outer = rows.rank() - 1;
        let count = match skip_nan {
            true => missing.logical_not().cast(x.dtype()).sum_keep(-1),
            false => Array::from_dim(&n, x.dtype()).broadcast_to(rows.shape().replaced(outer, Dim::from(1usize))),
        };
        // One place for each row and each part.
        let flat = q.try_flatten()?;
        let place = (count - 1i32).maximum(0i32) * &flat;
        let (low, high) = (place.floor(), place.ceil());
        let (below, above) = (sorted.at_whole(&low)?, sorted.at_whole(&high)?);
        let share = &place - &low;
        // Between equal infinities there is no line.
        let found = (below.eq(&above) & !below.is_finite()).select(&below, &below * (1i32 - &share) + &above * &share);
        let bad = if skip_nan { missing.all_keep(-1) } else { missing.any_keep(-1) };
        let bad = match outside {
            // One column for each part.
            Some(outside) => bad | outside.try_flatten()?,
            None => bad,
        };
        let found = bad.select(found.full_like(f64::NAN), found).ok()?;
        let first = found.try_move_axis(-1, 0)?;
        let shape = match keep {
            true => axes.iter().fold(self.shape().clone(), |s, a| s.replaced(*a, Dim::from(1usize))),
            false => self.shape().without(|i| axes.contains(&i)),
        };
        let shape = q.shape().iter().chain(shape.iter()).cloned().collect();
        first.try_reshape(shape)?.try_cast(dtype)
    }

    /// The folded axes as one at the end, and its size.
    pub(super) fn axes_last(&self, axes: &[usize]) -> Result<(Array, Dim)> {
        let rest: Vec<usize> = (0..self.rank()).filter(|a| !axes.contains(a)).collect();
        let n = axes.iter().map(|a| self.shape()[*a].clone()).collect::<Shape>().size(); // invariant: axes are resolved
        let order = rest.iter().chain(axes).copied().collect();
        let outer = rest.iter().map(|a| self.shape()[*a].clone());
        let shape = outer.chain([n.clone()]).collect();
        Ok((self.permuted(order)?.try_reshape(shape)?, n))
    }

    /// Elements of each row at whole numbers that are written as floats.
    fn at_whole(&self, places: &Array) -> Result<Array> {
        self.try_take_along_axis(&places.try_cast(DType::I64)?, -1)
    }

    /// The elements along an axis so that the `k` smallest come first, in order. It sorts, so it does more than it says.
    #[track_caller]
    pub fn partition(&self, k: usize, axis: isize) -> Array {
        at_caller(|| self.within(k, axis)?.sort(axis).ok())
    }

    /// The places that [`Array::partition`] takes its elements from, as `i64`.
    #[track_caller]
    pub fn argpartition(&self, k: usize, axis: isize) -> Array {
        at_caller(|| self.within(k, axis)?.argsort(axis).ok())
    }

    fn within(&self, k: usize, axis: isize) -> Result<&Array> {
        let axis = crate::array::operand::resolve_axis(axis, self.ty()?.rank())?;
        match self.dim(axis as isize).as_usize() {
            Some(n) if k >= n => fail!(Index, "place {k} of axis {axis} of {}, which has {n}", self.ty()?),
            _ => Ok(self),
        }
    }

    /// The order that sorts by the last key, equal ones by the one before, and so on, as `i64`.
    #[track_caller]
    pub fn lexsort<I>(keys: I, axis: isize) -> Array
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        let mut keys: Vec<Array> = keys.into_iter().map(|a| a.as_ref().clone()).collect();
        keys.reverse();
        at_caller(|| {
            let Some(first) = keys.first() else { fail!(Value, "no keys were given to sort by") };
            let axis = crate::array::operand::resolve_axis(axis, first.ty()?.rank())? as isize;
            let places = Array::try_iota(DType::I64, first.shape().clone(), axis)?;
            let (_, mut values) = Array::sort_by_keys(&keys, [&places], axis);
            values.pop().ok_or_else(|| error!(Rule, "a sort lost its values"))?.ok()
        })
    }
}
