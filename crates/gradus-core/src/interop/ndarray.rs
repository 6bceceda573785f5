//! ndarray: its arrays move in with their strides, and arrays are lent to it with theirs.
//!
//! ndarray knows negative strides and, in read-only views, zero ones, so every layout of an [`Array`] can be shown.

use ::ndarray as nd;
use nd::{ArrayBase, ArrayRef, Axis, Dimension, IxDyn, ShapeBuilder};

use super::{adopt, copied, lend};
use crate::array::{Array, Concrete, Strides, row_major};
use crate::error::{Location, Result, error};
use crate::types::{Element, Shape};

/// Takes the memory over without a copy, whatever the strides. What the array was sliced from stays in memory.
///
/// ```
/// # use gradus_core::Array;
/// use ndarray::{Axis, array};
///
/// let mut rows = array![[1.0, 2.0], [3.0, 4.0]];
/// rows.invert_axis(Axis(0));
/// let memory = rows.as_ptr();
/// let a = Array::from(rows);
/// assert_eq!(a.to_vec::<f64>()?, [3.0, 4.0, 1.0, 2.0]);
/// assert_eq!(a.view_ndarray::<f64>()?.as_ptr(), memory);
/// # Ok::<(), gradus_core::Error>(())
/// ```
impl<T: Element, D: Dimension> From<nd::Array<T, D>> for Array {
    #[track_caller]
    fn from(array: nd::Array<T, D>) -> Array {
        let shape = Shape::from(array.shape());
        let strides = Strides::from_slice(array.strides());
        let (values, offset) = array.into_raw_vec_and_offset();
        // An empty array has no first element to say where it is.
        adopt(values, shape, &strides, offset.unwrap_or(0))
    }
}

/// Copies, row-major.
impl<T: Element, D: Dimension> From<&ArrayRef<T, D>> for Array {
    #[track_caller]
    fn from(array: &ArrayRef<T, D>) -> Array {
        let values: Vec<T> = array.iter().copied().collect();
        let dims = array.shape();
        adopt(values, Shape::from(dims), &row_major(dims), 0)
    }
}

/// Copies, row-major.
impl<S: nd::Data<Elem: Element>, D: Dimension> From<&ArrayBase<S, D>> for Array {
    #[track_caller]
    fn from(array: &ArrayBase<S, D>) -> Array {
        let array: &ArrayRef<S::Elem, D> = array;
        Array::from(array)
    }
}

/// Copies, row-major.
impl<T: Element, D: Dimension> From<nd::ArrayView<'_, T, D>> for Array {
    #[track_caller]
    fn from(view: nd::ArrayView<'_, T, D>) -> Array {
        Array::from(&view)
    }
}

impl Array {
    /// The array as an ndarray view of the same memory, with the same strides.
    ///
    /// ```
    /// # use gradus_core::Array;
    ///
    /// let a = Array::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// let view = a.view_ndarray::<f64>()?;
    /// assert_eq!(view[[1, 0]], 4.0);
    /// assert_eq!(view.as_ptr(), a.as_slice::<f64>()?.as_ptr());
    ///
    /// // Views of views stay views: a transposed array has swapped strides.
    /// let t = a.t();
    /// assert_eq!(t.view_ndarray::<f64>()?.strides(), [1, 3]);
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn view_ndarray<T: Element>(&self) -> Result<nd::ArrayViewD<'_, T>> {
        let place = Location::caller();
        let concrete = lend::<T>(self, "`view_ndarray`", "`to_ndarray`", place)?;
        view(concrete).map_err(|e| e.at(place))
    }

    /// The numbers as an ndarray array of its own, row-major.
    ///
    /// ```
    /// # use gradus_core::Array;
    ///
    /// let a = Array::from([[1, 2], [3, 4]]).t();
    /// assert_eq!(a.to_ndarray::<i32>()?, ndarray::array![[1, 3], [2, 4]].into_dyn());
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<nd::ArrayD<T>> {
        let place = Location::caller();
        copied::<T, _>(self, "`to_ndarray`", place, |c| {
            nd::ArrayD::from_shape_vec(IxDyn(c.dims()), c.try_to_vec::<T>()?).map_err(|e| unfit(c, e))
        })
    }
}

fn view<T: Element>(c: &Concrete) -> Result<nd::ArrayViewD<'_, T>> {
    let dims = IxDyn(c.dims());
    if c.dims().contains(&0) {
        return nd::ArrayView::from_shape(dims, &[]).map_err(|e| unfit(c, e));
    }
    // ndarray checks strides that only go up from the lowest address. Axes that run down are turned afterwards.
    let down = |(&d, &s): (&usize, &isize)| if s < 0 && d > 1 { s.unsigned_abs().saturating_mul(d - 1) } else { 0 };
    let below: usize = c.dims().iter().zip(c.strides()).map(down).fold(0, usize::saturating_add);
    let lowest = c.offset().saturating_sub(below);
    let memory = T::slice(c.data()).and_then(|all| all.get(lowest..)).unwrap_or_default();
    // A stride without a positive counterpart is longer than any memory: it is on an axis of one element, and unused.
    let strides: Vec<usize> = c.strides().iter().map(|s| s.checked_abs().map_or(0, isize::unsigned_abs)).collect();
    let mut view = nd::ArrayView::from_shape(dims.strides(IxDyn(&strides)), memory).map_err(|e| unfit(c, e))?;
    for (axis, &s) in c.strides().iter().enumerate() {
        if s < 0 {
            view.invert_axis(Axis(axis)); // invariant: the view has an axis for each stride
        }
    }
    Ok(view)
}

fn unfit(c: &Concrete, why: nd::ShapeError) -> crate::Error {
    error!(Shape, "{} with strides {:?} does not fit ndarray: {why}", c.ty(), c.strides())
        .help("make it dense with `to_dense` first, or copy with `to_ndarray`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::types::f16;
    use nd::{Array2, Array3};

    fn counted() -> Array3<i32> {
        Array3::from_shape_vec((2, 3, 4), (0..24).collect()).unwrap()
    }

    /// Taken over, lent back and read: all three must agree with what ndarray itself says.
    fn round_trip<D: Dimension>(array: nd::Array<i32, D>) {
        let want = array.clone().into_dyn();
        let (memory, strides) = (array.as_ptr(), array.strides().to_vec());
        let a = Array::from(array);
        assert_eq!(a.to_vec::<i32>().unwrap(), want.iter().copied().collect::<Vec<_>>());
        assert_eq!(a.to_ndarray::<i32>().unwrap(), want);
        let view = a.view_ndarray::<i32>().unwrap();
        assert_eq!(view, want);
        if !want.is_empty() {
            assert_eq!(view.as_ptr(), memory);
            assert_eq!(view.strides(), strides);
        }
        assert!(Array::from(&want).is_identical(&a));
        assert!(Array::from(want.view()).is_identical(&a));
        assert!(Array::from(&want.into_shared()).is_identical(&a));
    }

    #[test]
    fn every_layout_goes_round() {
        round_trip(counted());
        round_trip(counted().reversed_axes());
        round_trip(counted().permuted_axes([1, 2, 0]));
        // One part after the other: (start, end, step) of each axis, as ndarray slices them.
        for parts in [
            [(0, 2, 1), (1, 3, 1), (0, 4, 2)],
            [(0, 2, -1), (1, 3, 1), (0, 4, -3)],
            [(1, 2, 1), (0, 3, -1), (1, 2, 1)],
            [(1, 2, -1), (2, 3, 1), (3, 4, 1)],
            [(0, 2, 1), (1, 1, 1), (0, 4, 1)],
        ] {
            let mut array = counted();
            for (axis, (start, end, step)) in parts.into_iter().enumerate() {
                array.slice_axis_inplace(Axis(axis), nd::Slice::new(start, Some(end), step));
            }
            round_trip(array.clone());
            round_trip(array.permuted_axes([2, 0, 1]));
        }
        round_trip(nd::Array::from_shape_vec((3, 4).f(), (0..12).collect()).unwrap());
        round_trip(nd::Array1::<i32>::zeros(0));
        round_trip(nd::arr0(7));
    }

    #[test]
    fn broadcast_arrays_are_lent() {
        let a = Array::from([1.0, 2.0, 3.0]).broadcast_to([2, 3]);
        let view = a.view_ndarray::<f64>().unwrap();
        assert_eq!(view, nd::array![[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]].into_dyn());
        let full = Array::full([100, 200], 2.5f32);
        assert_eq!(full.view_ndarray::<f32>().unwrap().sum(), 50_000.0);
        assert_eq!(full.to_ndarray::<f32>().unwrap().strides(), [200, 1]);
    }

    #[test]
    fn overlapping_and_wild_strides_are_lent() {
        let windows = Array::from_vec_strided((0..6).collect::<Vec<i32>>(), [4, 3], &[1, 1], 0);
        let sums: Vec<i32> = windows.view_ndarray::<i32>().unwrap().outer_iter().map(|row| row.sum()).collect();
        assert_eq!(sums, [3, 6, 9, 12]);
        let data = std::sync::Arc::new(i32::into_data(vec![1, 2]));
        let c = Concrete::strided("i32[2,1]".parse().unwrap(), &[-1, isize::MIN], 1, data).unwrap();
        assert_eq!(view::<i32>(&c).unwrap(), nd::array![[2], [1]].into_dyn());
    }

    #[test]
    fn all_dtypes_pass() {
        let a = Array::from(Array2::from_elem((2, 2), f16::from_f32(1.5)));
        assert_eq!(a.view_ndarray::<f16>().unwrap()[[1, 1]], f16::from_f32(1.5));
        let z = crate::Complex::new(1.0f64, -2.0);
        let a = Array::from(nd::arr1(&[z, z]));
        assert_eq!(a.view_ndarray::<crate::Complex<f64>>().unwrap()[[1]], z);
        let a = Array::from(nd::arr1(&[true, false]));
        assert_eq!(a.to_ndarray::<bool>().unwrap().as_slice(), Some(&[true, false][..]));
    }

    #[test]
    fn what_has_no_such_numbers_is_an_error() {
        let kind = |a: &Array| (a.view_ndarray::<f32>().unwrap_err().kind(), a.to_ndarray::<f32>().unwrap_err().kind());
        assert_eq!(kind(&Array::from([1.0f64])), (ErrorKind::DType, ErrorKind::DType));
        assert_eq!(kind(&Array::spec("f32[2]")), (ErrorKind::NotConcrete, ErrorKind::NotConcrete));
        let failed = Array::from([1.0f32, 2.0]) + Array::from([1.0f32, 2.0, 3.0]);
        assert_eq!(kind(&failed), (ErrorKind::Shape, ErrorKind::Shape));
    }
}
