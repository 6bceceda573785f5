//! Vectors as sets: unique elements, unions, intersections. How many elements come out is not known before the program runs, so the size is given.

use super::{all_at_caller, at_caller};
use crate::array::Array;
use crate::error::{Result, error};
use crate::types::{DType, Dim};

/// A vector in increasing order, where each element came from, and where a new one begins.
struct Sorted {
    values: Array,
    from: Array,
    first: Array,
}

impl Array {
    fn sorted_set(&self) -> Result<Sorted> {
        let flat = self.try_flatten()?;
        let n = flat.dim(0);
        let places = Array::try_iota(DType::I64, [n.clone()].into_iter().collect(), 0)?;
        let (mut keys, mut order) = Array::sort_by_keys([&flat], [&places], 0);
        let lost = || error!(Rule, "a sort lost its operands");
        let (values, from) = (keys.pop().ok_or_else(lost)?.ok()?, order.pop().ok_or_else(lost)?.ok()?);
        let (before, after) = values.neighbours(0)?;
        // NaN is one element here.
        let new = after.ne(&before) & !(after.is_nan() & before.is_nan());
        let one = Array::from([n.constant() != Some(0)]).slice_axis(0, Dim::from(0usize), n.min(&Dim::from(1usize)))?;
        Ok(Sorted { first: Array::concatenate([one, new], 0).ok()?, values, from })
    }

    /// The different elements in increasing order, `size` of them. Where there are fewer, the rest is the smallest.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// assert_eq!(Array::from([3, 1, 3]).unique(3usize).to_vec::<i32>().unwrap(), [1, 3, 1]);
    /// ```
    #[doc(alias = "unique_values")]
    #[track_caller]
    pub fn unique(&self, size: impl Into<Dim>) -> Array {
        let size = size.into();
        at_caller(|| {
            let sorted = self.sorted_set()?;
            sorted.values.take(&sorted.first.marked(size, 0)?, 0).ok()
        })
    }

    /// The different elements as [`Array::unique`] has them, and as `i64`: where each is met first, which of them each element of the array is, and how often
    /// each is met.
    #[doc(alias = "unique_inverse")]
    #[doc(alias = "unique_counts")]
    #[track_caller]
    pub fn unique_all(&self, size: impl Into<Dim>) -> (Array, Array, Array, Array) {
        let size = size.into();
        let all = all_at_caller(4, || {
            let sorted = self.sorted_set()?;
            let starts = sorted.first.marked(size.clone(), 0)?;
            let group = (sorted.first.cast(DType::I64).cumsum(0) - 1i64).ok()?;
            let inverse = group.zeros_like().at(&sorted.from).set(&group).ok()?.try_reshape(self.shape().clone())?;
            let values = sorted.values.take(&starts, 0).ok()?;
            Ok(vec![values, sorted.from.take(&starts, 0).ok()?, inverse, group.bincount(size).ok()?])
        });
        match <[Array; 4]>::try_from(all) {
            Ok([values, indices, inverse, counts]) => (values, indices, inverse, counts),
            Err(_) => {
                let failed = Array::from(error!(Rule, "a set lost a part"));
                (failed.clone(), failed.clone(), failed.clone(), failed)
            }
        }
    }

    /// Where elements are among those of another array.
    #[doc(alias = "in1d")]
    #[track_caller]
    pub fn isin(&self, others: &Array) -> Array {
        at_caller(|| {
            let sorted = others.try_flatten()?.sort(0);
            // Equal elements are before one side of the search and not before the other.
            let found = sorted.searchsorted_right(self).gt(sorted.searchsorted(self));
            (found & !self.is_nan()).ok()
        })
    }

    /// The different elements of two arrays in increasing order, `size` of them, filled up as by [`Array::unique`].
    #[track_caller]
    pub fn union1d(&self, other: &Array, size: impl Into<Dim>) -> Array {
        Array::concatenate([self.flatten(), other.flatten()], 0).unique(size)
    }

    /// The different elements that are in both arrays, `size` of them, filled up with 0.
    #[track_caller]
    pub fn intersect1d(&self, other: &Array, size: impl Into<Dim>) -> Array {
        let size = size.into();
        at_caller(|| self.set_where(size, |values| values.isin(other)))
    }

    /// The different elements that are not in another array, `size` of them, filled up with 0.
    #[track_caller]
    pub fn setdiff1d(&self, other: &Array, size: impl Into<Dim>) -> Array {
        let size = size.into();
        at_caller(|| self.set_where(size, |values| !values.isin(other)))
    }

    /// The different elements that are in one of two arrays, `size` of them, filled up with 0.
    #[track_caller]
    pub fn setxor1d(&self, other: &Array, size: impl Into<Dim>) -> Array {
        let size = size.into();
        at_caller(|| {
            let both = Array::concatenate([self.flatten(), other.flatten()], 0);
            both.ok()?.set_where(size, |values| values.isin(self).ne(values.isin(other)))
        })
    }

    fn set_where(&self, size: Dim, keep: impl FnOnce(&Array) -> Array) -> Result<Array> {
        let sorted = self.sorted_set()?;
        let wanted = sorted.first & keep(&sorted.values);
        sorted.values.compress(&wanted.ok()?, 0, size).ok()
    }
}
