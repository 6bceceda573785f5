//! Methods that order elements. All places they return are `i64`, as everywhere in the methods of arrays.

use super::Array;
use super::operand::{checked, resolve_axis};
use super::shaping::{collect_arrays, promoted};
use crate::error::{Result, error, fail};
use crate::primitives::Op;
use crate::primitives::sort::{Sort, TopK};
use crate::trace::bind_all;
use crate::types::{DType, Dim};

impl Array {
    /// The elements along an axis in increasing order, NaN last. Equal ones keep their order.
    #[doc(alias = "sort_complex")]
    #[track_caller]
    pub fn sort(&self, axis: isize) -> Array {
        checked(self.try_sort(axis, false))
    }

    /// The elements along an axis in decreasing order. Equal ones keep their order.
    #[track_caller]
    pub fn sort_descending(&self, axis: isize) -> Array {
        checked(self.try_sort(axis, true))
    }

    #[track_caller]
    fn try_sort(&self, axis: isize, descending: bool) -> Result<Array> {
        let axis = resolve_axis(axis, self.ty()?.rank())?;
        self.through(Sort { axis, keys: 1, descending })
    }

    /// The places, as `i64`, whose elements are in increasing order along an axis: [`Array::take_along_axis`] with
    /// them sorts.
    #[track_caller]
    pub fn argsort(&self, axis: isize) -> Array {
        checked(self.try_argsort(axis, false))
    }

    /// As [`Array::argsort`], in decreasing order.
    #[track_caller]
    pub fn argsort_descending(&self, axis: isize) -> Array {
        checked(self.try_argsort(axis, true))
    }

    #[track_caller]
    fn try_argsort(&self, axis: isize, descending: bool) -> Result<Array> {
        let ty = self.ty()?;
        let axis = resolve_axis(axis, ty.rank())?;
        let places = Array::try_iota(DType::I64, ty.shape().clone(), axis as isize)?;
        let mut sorted = bind_all(Op::new(Sort { axis, keys: 1, descending }), &[self.clone(), places]);
        // A failure is the only result.
        sorted.pop().ok_or_else(|| error!(Rule, "`sort` gave nothing"))?.ok()
    }

    /// The `k` largest elements along the last axis, largest first, and their places as `i64`. NaN counts as largest;
    /// of equal elements the one in front comes first.
    #[doc(alias = "approx_max_k")]
    #[doc(alias = "approx_min_k")]
    #[track_caller]
    pub fn top_k(&self, k: usize) -> (Array, Array) {
        let mut both = bind_all(Op::new(TopK { k }), std::slice::from_ref(self)).into_iter();
        match (both.next(), both.next()) {
            (Some(values), Some(places)) => (values, places.cast(DType::I64)),
            (Some(failed), None) => (failed.clone(), failed),
            _ => {
                let failed = checked(Err(error!(Rule, "`top_k` gave nothing")));
                (failed.clone(), failed)
            }
        }
    }

    /// Sorts arrays of one shape together along an axis: in increasing order of the first key, equal ones of the
    /// second, and so on. The keys and the values come back in the new order; on a mistake each carries the error.
    #[doc(alias = "sort_key_val")]
    #[track_caller]
    pub fn sort_by_keys<K, V>(keys: K, values: V, axis: isize) -> (Vec<Array>, Vec<Array>)
    where
        K: IntoIterator,
        K::Item: AsRef<Array>,
        V: IntoIterator,
        V::Item: AsRef<Array>,
    {
        let keys: Vec<Array> = keys.into_iter().map(|a| a.as_ref().clone()).collect();
        let values: Vec<Array> = values.into_iter().map(|a| a.as_ref().clone()).collect();
        let (n, m) = (keys.len(), values.len());
        match Array::try_sort_by_keys(keys, values, axis) {
            Ok(both) => both,
            Err(e) => {
                let failed = checked(Err(e));
                (vec![failed.clone(); n.max(1)], vec![failed; m])
            }
        }
    }

    #[track_caller]
    fn try_sort_by_keys(keys: Vec<Array>, values: Vec<Array>, axis: isize) -> Result<(Vec<Array>, Vec<Array>)> {
        let count = keys.len();
        let all = collect_arrays(keys.iter().chain(&values))?;
        let Some(first) = all.first().filter(|_| count > 0) else { fail!(Value, "no keys were given to sort by") };
        let axis = resolve_axis(axis, first.rank())?;
        let mut sorted = bind_all(Op::new(Sort { axis, keys: count, descending: false }), &all).into_vec();
        if let Some(e) = sorted.first().and_then(Array::error) {
            return Err(e.clone());
        }
        let values = sorted.split_off(count.min(sorted.len()));
        Ok((sorted, values))
    }

    /// Where values would go into this vector, which is sorted in increasing order, as `i64`: before all elements that
    /// are not less.
    #[track_caller]
    pub fn searchsorted(&self, values: &Array) -> Array {
        checked(self.search(values, false))
    }

    /// As [`Array::searchsorted`], but after all elements that are equal.
    #[track_caller]
    pub fn searchsorted_right(&self, values: &Array) -> Array {
        checked(self.search(values, true))
    }

    #[track_caller]
    fn search(&self, values: &Array, right: bool) -> Result<Array> {
        let both = promoted(vec![self.clone().ok()?, values.clone().ok()?])?;
        let [x, values] = both.as_slice() else { fail!(Rule, "a pair lost an array") };
        let [dim] = x.shape().dims() else { fail!(Shape, "`searchsorted` looks in a vector, not in {}", x.ty()?) };
        let Some(n) = dim.as_usize() else {
            // The length is not known yet, so neither is the number of halvings: count the elements before.
            let column = values.try_reshape(values.shape().inserted(values.rank(), Dim::from(1usize)))?;
            return before(x, &column, right).sum_axes(-1).ok();
        };
        let mut low = Array::full_scalar(values.shape().clone(), 0i64.into()).ok()?;
        let mut high = Array::full_scalar(values.shape().clone(), (n as i64).into()).ok()?;
        // Each round halves what is left between `low` and `high`; n + 1 answers take this many.
        for _ in 0..usize::BITS - n.leading_zeros() {
            let middle = (&low + &high) / 2i64;
            let further = before(&x.take(&middle, 0), values, right) & low.lt(&high);
            low = further.select(&middle + 1i64, &low);
            high = further.select(&high, &middle);
        }
        low.ok()
    }
}

/// Where an element stands before a value; NaN stands behind all numbers.
#[track_caller]
fn before(element: &Array, value: &Array, right: bool) -> Array {
    let less = if right { element.le(value) } else { element.lt(value) };
    if !value.dtype().is_float() {
        return less;
    }
    let last = value.is_nan();
    less | if right { last } else { last & !element.is_nan() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_borrows_for_generic_args)]

    use super::*;
    use crate::array::shaping::tests::everywhere_symbolic as everywhere;
    use crate::error::ErrorKind;

    fn kind(x: &Array) -> ErrorKind {
        x.error().unwrap_or_else(|| panic!("no error but {x:?}")).kind()
    }

    #[test]
    fn sorting_along_an_axis() {
        let x = Array::from([[3.0, 1.0, 2.0], [0.5, f64::INFINITY, -1.0]]);
        assert_eq!(everywhere(&x, |x| x.sort(1)).to_vec::<f64>().unwrap(), [1.0, 2.0, 3.0, -1.0, 0.5, f64::INFINITY]);
        assert_eq!(x.sort(0).to_vec::<f64>().unwrap(), [0.5, 1.0, -1.0, 3.0, f64::INFINITY, 2.0]);
        assert_eq!(
            everywhere(&x, |x| x.sort_descending(-1)).to_vec::<f64>().unwrap(),
            [3.0, 2.0, 1.0, f64::INFINITY, 0.5, -1.0]
        );
        assert_eq!(everywhere(&x, |x| x.argsort(1)).to_vec::<i64>().unwrap(), [1, 2, 0, 2, 0, 1]);
        assert_eq!(everywhere(&x, |x| x.argsort_descending(1)).to_vec::<i64>().unwrap(), [0, 2, 1, 1, 0, 2]);
        assert_eq!(Array::from([2, 1, 2, 1]).argsort(0).to_vec::<i64>().unwrap(), [1, 3, 0, 2]);
        assert_eq!(Array::from([2, 1, 2, 1]).argsort_descending(0).to_vec::<i64>().unwrap(), [0, 2, 1, 3]);
        assert!(everywhere(&x, |x| x.take_along_axis(&x.argsort(1), 1)).is_identical(&x.sort(1)));
        let sorted = Array::from([f64::NAN, 1.0, f64::NEG_INFINITY]).sort(0).to_vec::<f64>().unwrap();
        assert!(sorted[0] == f64::NEG_INFINITY && sorted[1] == 1.0 && sorted[2].is_nan());
        assert_eq!(Array::zeros::<f64>([0, 2]).sort(0).known_dims().unwrap(), [0, 2]);
        assert_eq!(Array::zeros::<f64>([0]).argsort(0).known_dims().unwrap(), [0]);
        assert_eq!(kind(&x.sort(2)), ErrorKind::Axis);
        assert_eq!(kind(&Array::from(1.0).argsort(0)), ErrorKind::Axis);
    }

    #[test]
    fn the_largest_few() {
        let x = Array::from([[3, 1, 3], [4, 6, 5]]);
        let (values, places) = x.top_k(2);
        assert_eq!(
            (values.to_vec::<i32>().unwrap(), places.to_vec::<i64>().unwrap()),
            (vec![3, 3, 6, 5], vec![0, 2, 1, 2])
        );
        assert_eq!(x.top_k(0).0.known_dims().unwrap(), [2, 0]);
        assert!(x.top_k(4).0.error().is_some() && x.top_k(4).1.error().is_some());
        assert!(Array::from(1).top_k(1).0.error().is_some());
    }

    #[test]
    fn sorting_several_together() {
        let (major, minor) = (Array::from([2, 1, 2, 1]), Array::from([0.5, 0.25, 0.125, 2.0]));
        let value = Array::from([10i8, 20, 30, 40]);
        let (keys, values) = Array::sort_by_keys([&major, &minor], [&value], 0);
        assert_eq!(keys[0].to_vec::<i32>().unwrap(), [1, 1, 2, 2]);
        assert_eq!(keys[1].to_vec::<f64>().unwrap(), [0.25, 2.0, 0.125, 0.5]);
        assert_eq!(values[0].to_vec::<i8>().unwrap(), [20, 40, 30, 10]);
        let (keys, values) = Array::sort_by_keys([&major], [&Array::from([1, 2]), &value], 0);
        assert!(keys[0].error().is_some() && values.len() == 2 && values[1].error().is_some());
        let none: [Array; 0] = [];
        assert_eq!(kind(&Array::sort_by_keys(&none, [&value], 0).1[0]), ErrorKind::Value);
        assert_eq!(kind(&Array::sort_by_keys([&major], &none, 1).0[0]), ErrorKind::Axis);
    }

    #[test]
    fn searching_a_sorted_vector() {
        let nan = f64::NAN;
        let x = Array::from([1.0, 2.0, 2.0, 4.0, nan]);
        let v = Array::from([[0.0, 1.0, 2.0], [3.0, 9.0, nan]]);
        let left = everywhere(&x, |x| x.searchsorted(&v));
        assert_eq!((left.known_dims().unwrap(), left.to_vec::<i64>().unwrap()), (vec![2, 3], vec![0, 0, 1, 3, 4, 4]));
        let right = everywhere(&x, |x| x.searchsorted_right(&v));
        assert_eq!(right.to_vec::<i64>().unwrap(), [0, 1, 3, 3, 4, 5]);
        for n in 0..20 {
            let x = Array::arange(0, n, 1);
            let places = x.searchsorted(&Array::arange(-1, n + 2, 1)).to_vec::<i64>().unwrap();
            let want: Vec<i64> = (-1..i64::from(n) + 2).map(|v| v.clamp(0, i64::from(n))).collect();
            assert_eq!(places, want, "{n}");
        }
        assert_eq!(Array::from([1u8, 3]).searchsorted(&Array::from(2i8)).item::<i64>().unwrap(), 1);
        assert_eq!(kind(&v.searchsorted(&x)), ErrorKind::Shape);
        assert_eq!(kind(&x.searchsorted(&Array::from([1i64]))), ErrorKind::DType);
    }
}
