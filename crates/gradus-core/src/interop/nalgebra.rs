//! nalgebra: its matrices move in column-major, and arrays of rank 1 and 2 are lent to it as strided views.
//!
//! What is a column vector by its type (`DVector`, `Vector3`) has rank 1 here, every other matrix rank 2.

use ::nalgebra as na;
use na::{DMatrix, DMatrixView, DVector, DVectorView, Dyn, Matrix, RawStorage, VecStorage, ViewStorage};

use super::{adopt, copied, lend};
use crate::array::{Array, Concrete, row_major};
use crate::error::{Place, Result, error};
use crate::types::{Element, Shape};

/// Dimensions of the array for a matrix: the number of columns counts unless the type says it is one.
fn dims_of<C: na::Dim>((rows, columns): (usize, usize)) -> Vec<usize> {
    if C::try_to_usize() == Some(1) { vec![rows] } else { vec![rows, columns] }
}

/// `DMatrix`, `DVector` and their kin: takes the memory over without a copy; the array is column-major.
///
/// ```
/// use gradus_core::Array;
/// use nalgebra::{DMatrix, DVector};
///
/// let m = DMatrix::from_row_slice(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// let memory = m.as_ptr();
/// let a = Array::from(m);
/// assert_eq!(a.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// assert_eq!(a.strides(), Some(&[1, 2][..]));
/// assert_eq!(a.view_dmatrix::<f64>()?.as_ptr(), memory);
///
/// assert_eq!(Array::from(DVector::from_vec(vec![1, 2, 3])).rank(), 1);
/// # gradus_core::Result::Ok(())
/// ```
impl<T: Element, R: na::Dim, C: na::Dim> From<Matrix<T, R, C, VecStorage<T, R, C>>> for Array
where
    VecStorage<T, R, C>: RawStorage<T, R, C>,
{
    #[track_caller]
    fn from(matrix: Matrix<T, R, C, VecStorage<T, R, C>>) -> Array {
        let (rows, columns) = matrix.shape();
        let dims = dims_of::<C>((rows, columns));
        let strides = [1, isize::try_from(rows).unwrap_or(isize::MAX)];
        adopt(Vec::from(matrix.data), Shape::from(&dims[..]), strides.get(..dims.len()).unwrap_or_default(), 0)
    }
}

/// Copies, row-major.
impl<T: Element, R: na::Dim, C: na::Dim, S: RawStorage<T, R, C>> From<&Matrix<T, R, C, S>> for Array {
    #[track_caller]
    fn from(matrix: &Matrix<T, R, C, S>) -> Array {
        let dims = dims_of::<C>(matrix.shape());
        let mut values = Vec::with_capacity(matrix.len());
        matrix.row_iter().for_each(|row| values.extend(row.iter().copied()));
        adopt(values, Shape::from(&dims[..]), &row_major(&dims), 0)
    }
}

/// Copies, row-major.
impl<T, R, C, RStride, CStride> From<Matrix<T, R, C, ViewStorage<'_, T, R, C, RStride, CStride>>> for Array
where
    T: Element,
    R: na::Dim,
    C: na::Dim,
    RStride: na::Dim,
    CStride: na::Dim,
{
    #[track_caller]
    fn from(view: Matrix<T, R, C, ViewStorage<'_, T, R, C, RStride, CStride>>) -> Array {
        Array::from(&view)
    }
}

impl Array {
    /// An array of rank 2 as a nalgebra view of the same memory, with the same strides.
    ///
    /// nalgebra has no negative strides, and none of 0 from row to row; an array with such is an error here.
    ///
    /// ```
    /// use gradus_core::Array;
    ///
    /// let a = Array::from([[1.0, 2.0], [3.0, 4.0]]);
    /// let m = a.view_dmatrix::<f64>()?;
    /// assert_eq!(m.determinant(), -2.0);
    /// assert_eq!(m.as_ptr(), a.as_slice::<f64>()?.as_ptr());
    /// # gradus_core::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn view_dmatrix<T: Element>(&self) -> Result<DMatrixView<'_, T, Dyn, Dyn>> {
        let place = Place::caller();
        let concrete = lend::<T>(self, "`view_dmatrix`", "`to_dmatrix`", place)?;
        view_matrix(concrete).map_err(|e| e.at(place))
    }

    /// An array of rank 1 as a nalgebra view of the same memory, with the same stride.
    ///
    /// ```
    /// use gradus_core::Array;
    ///
    /// let a = Array::from([3.0, 4.0]);
    /// assert_eq!(a.view_dvector::<f64>()?.norm(), 5.0);
    /// # gradus_core::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn view_dvector<T: Element>(&self) -> Result<DVectorView<'_, T, Dyn, Dyn>> {
        let place = Place::caller();
        let concrete = lend::<T>(self, "`view_dvector`", "`to_dvector`", place)?;
        view_vector(concrete).map_err(|e| e.at(place))
    }

    /// The numbers of an array of rank 2 as a matrix of its own.
    ///
    /// ```
    /// use gradus_core::Array;
    ///
    /// let a = Array::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(a.to_dmatrix::<f64>()?, nalgebra::DMatrix::from_row_slice(2, 3, a.as_slice()?));
    /// # gradus_core::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn to_dmatrix<T: Element>(&self) -> Result<DMatrix<T>> {
        let place = Place::caller();
        copied::<T, _>(self, "`to_dmatrix`", place, |c| {
            let [(rows, rstride), (columns, cstride)] = axes(c)?;
            // The transposed array in row-major order is this one in column-major order.
            let shape = [columns, rows].into_iter().collect();
            let transposed = c.view(shape, [cstride, rstride].into_iter().collect(), c.offset());
            let values = transposed.values::<T>().into_owned();
            // invariant: a view has as many values as its dimensions say
            Ok(DMatrix::from_data(VecStorage::new(Dyn(rows), Dyn(columns), values)))
        })
    }

    /// The numbers of an array of rank 1 as a vector of its own.
    ///
    /// ```
    /// use gradus_core::Array;
    ///
    /// assert_eq!(Array::from([1, 2]).to_dvector::<i32>()?, nalgebra::DVector::from_vec(vec![1, 2]));
    /// # gradus_core::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn to_dvector<T: Element>(&self) -> Result<DVector<T>> {
        let place = Place::caller();
        copied::<T, _>(self, "`to_dvector`", place, |c| {
            let [(rows, _)] = axes(c)?;
            // invariant: an array has as many values as its dimensions say
            Ok(DVector::from_data(VecStorage::new(Dyn(rows), na::Const::<1>, c.values::<T>().into_owned())))
        })
    }
}

/// The dimension and stride of each of `N` axes.
fn axes<const N: usize>(c: &Concrete) -> Result<[(usize, isize); N]> {
    let axes: Vec<_> = c.dims().iter().copied().zip(c.strides().iter().copied()).collect();
    axes.try_into().map_err(|_| {
        let (name, way) = if N == 1 { ("vector", "flatten it") } else { ("matrix", "index or reshape it") };
        error!(Shape, "a {name} of nalgebra has rank {N}, and {} has rank {}", c.ty(), c.dims().len())
            .help(format!("{way} first"))
    })
}

fn view_matrix<T: Element>(c: &Concrete) -> Result<DMatrixView<'_, T, Dyn, Dyn>> {
    let [(rows, rstride), (columns, cstride)] = axes(c)?;
    if rows == 0 || columns == 0 {
        // With these strides nalgebra's check holds for no memory at all.
        let (rstride, cstride) = if rows == 0 { (1, 0) } else { (0, 1) };
        return Ok(DMatrixView::from_slice_with_strides(&[], rows, columns, rstride, cstride));
    }
    let rstride = row_stride(c, rows, rstride)?;
    let cstride = stride(c, columns, cstride, rows)?;
    Ok(DMatrixView::from_slice_with_strides(memory(c), rows, columns, rstride, cstride))
}

fn view_vector<T: Element>(c: &Concrete) -> Result<DVectorView<'_, T, Dyn, Dyn>> {
    let [(rows, rstride)] = axes(c)?;
    if rows == 0 {
        return Ok(DVectorView::from_slice_with_strides(&[], 0, 1, 0));
    }
    let rstride = row_stride(c, rows, rstride)?;
    Ok(DVectorView::from_slice_with_strides(memory(c), rows, rstride, rows))
}

/// The buffer from the first element on: with no negative stride, all others follow it.
fn memory<T: Element>(c: &Concrete) -> &[T] {
    T::slice(c.data()).and_then(|all| all.get(c.offset()..)).unwrap_or_default()
}

/// A stride as nalgebra wants it; an axis with one element never uses its own and gets `natural`.
fn stride(c: &Concrete, dim: usize, stride: isize, natural: usize) -> Result<usize> {
    match usize::try_from(stride) {
        _ if dim == 1 => Ok(natural),
        Ok(stride) => Ok(stride),
        Err(_) => Err(unfit(c, "negative strides")),
    }
}

/// nalgebra's iterators take a column as finished where its pointer has come the length of a column, so with a stride
/// of 0 from row to row they would go astray.
fn row_stride(c: &Concrete, rows: usize, rstride: isize) -> Result<usize> {
    match stride(c, rows, rstride, 1)? {
        0 => Err(unfit(c, "a stride of 0 from row to row")),
        stride => Ok(stride),
    }
}

fn unfit(c: &Concrete, what: &str) -> crate::Error {
    let copying = if c.dims().len() == 1 { "to_dvector" } else { "to_dmatrix" };
    error!(Value, "nalgebra has no view with {what}, and {} has the strides {:?}", c.ty(), c.strides())
        .help(format!("make it dense with `to_dense` first, or copy with `{copying}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use na::{Matrix2x3, RowDVector, Vector3};

    fn counted(rows: usize, columns: usize) -> Array {
        let values: Vec<i32> = (0..(rows * columns) as i32).collect();
        Array::from_vec(values, [rows, columns])
    }

    /// View and copy agree with the array, also through nalgebra's own iterators from both ends.
    fn check(a: &Array) {
        let view = a.view_dmatrix::<i32>().unwrap();
        let copy = a.to_dmatrix::<i32>().unwrap();
        assert_eq!(view.clone_owned(), copy);
        let mut forth: Vec<i32> = view.iter().copied().collect();
        assert_eq!(forth, a.t().to_vec::<i32>().unwrap());
        forth.reverse();
        assert_eq!(view.iter().rev().copied().collect::<Vec<_>>(), forth);
        assert!(Array::from(&view).is_identical(a));
        assert!(Array::from(view).is_identical(a));
        let memory = copy.as_ptr();
        let back = Array::from(copy);
        assert!(back.is_identical(a));
        let view = back.view_dmatrix::<i32>().unwrap();
        assert!(view.is_empty() || view.as_ptr() == memory);
    }

    #[test]
    fn matrices_go_round_in_every_layout() {
        for (rows, columns) in [(4, 6), (1, 5), (5, 1), (1, 1), (0, 3), (3, 0), (0, 0)] {
            let a = counted(rows, columns);
            check(&a);
            check(&a.t());
        }
        let buffer: Vec<i32> = (0..40).collect();
        let strided = |shape: [usize; 2], strides: [isize; 2], offset| {
            Array::from_vec_strided(buffer.clone(), shape, &strides, offset)
        };
        check(&strided([3, 4], [10, 2], 5));
        check(&strided([4, 3], [2, 10], 5));
        check(&strided([3, 3], [1, 1], 5));
        // One row, repeated along the columns, and axes of one element with strides that are never used.
        check(&strided([3, 4], [2, 0], 5));
        check(&strided([1, 4], [0, 3], 5));
        check(&strided([1, 4], [-7, 3], 5));
        check(&strided([4, 1], [3, isize::MIN], 5));
        check(&strided([1, 1], [0, 0], 39));
    }

    #[test]
    fn what_nalgebra_cannot_show_is_an_error_and_copies() {
        let reversed = Array::from_vec_strided((0..6).collect::<Vec<i32>>(), [2, 3], &[3, -1], 2);
        let repeated = Array::from_vec_strided((0..3).collect::<Vec<i32>>(), [2, 3], &[0, 1], 0);
        for a in [reversed, repeated] {
            let error = a.view_dmatrix::<i32>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Value);
            assert!(error.way_out().unwrap().contains("to_dense"));
            assert_eq!(error.place().file(), Some(file!()));
            check(&a.to_dense());
            assert_eq!(a.to_dmatrix::<i32>().unwrap(), a.to_dense().to_dmatrix::<i32>().unwrap());
        }
        let a = Array::from([1.0f64]);
        assert_eq!(a.view_dmatrix::<f64>().unwrap_err().kind(), ErrorKind::Shape);
        assert_eq!(a.view_dvector::<f32>().unwrap_err().kind(), ErrorKind::DType);
        assert_eq!(a.to_dmatrix::<f64>().unwrap_err().kind(), ErrorKind::Shape);
        assert_eq!(counted(2, 2).to_dvector::<i32>().unwrap_err().kind(), ErrorKind::Shape);
        assert_eq!(Array::spec("f32[2]").view_dvector::<f32>().unwrap_err().kind(), ErrorKind::NotConcrete);
        assert_eq!(Array::spec("f32[2]").to_dvector::<f32>().unwrap_err().kind(), ErrorKind::NotConcrete);
    }

    #[test]
    fn vectors_have_rank_one() {
        let v = DVector::from_vec(vec![1.0, 2.0, 3.0]);
        let memory = v.as_ptr();
        assert!(Array::from(&v).is_identical(&Array::from([1.0, 2.0, 3.0])));
        let a = Array::from(v);
        assert_eq!((a.as_slice::<f64>().unwrap().as_ptr(), a.rank()), (memory, 1));
        assert_eq!(a.view_dvector::<f64>().unwrap().as_ptr(), memory);
        assert_eq!(a.view_dvector::<f64>().unwrap().sum(), 6.0);
        assert_eq!(a.to_dvector::<f64>().unwrap(), DVector::from_vec(vec![1.0, 2.0, 3.0]));
        let stepped = Array::from_vec_strided((0..7).collect::<Vec<i32>>(), [3], &[3], 0);
        assert_eq!(stepped.view_dvector::<i32>().unwrap(), DVector::from_vec(vec![0, 3, 6]));
        let reversed = Array::from_vec_strided((0..3).collect::<Vec<i32>>(), [3], &[-1], 2);
        assert_eq!(reversed.view_dvector::<i32>().unwrap_err().kind(), ErrorKind::Value);
        assert_eq!(reversed.to_dvector::<i32>().unwrap(), DVector::from_vec(vec![2, 1, 0]));
        for n in [0, 1] {
            let a = Array::from(vec![5i32; n]);
            assert_eq!(a.view_dvector::<i32>().unwrap().iter().count(), n);
            assert_eq!(a.to_dvector::<i32>().unwrap().len(), n);
        }
    }

    #[test]
    fn fixed_matrices_are_copied() {
        let m = Matrix2x3::new(1, 2, 3, 4, 5, 6);
        assert!(Array::from(&m).is_identical(&Array::from([[1, 2, 3], [4, 5, 6]])));
        assert!(Array::from(m.columns(1, 2)).is_identical(&Array::from([[2, 3], [5, 6]])));
        assert!(Array::from(&Vector3::new(1, 2, 3)).is_identical(&Array::from([1, 2, 3])));
        assert!(Array::from(RowDVector::from_vec(vec![1, 2])).is_identical(&Array::from([[1, 2]])));
    }
}
