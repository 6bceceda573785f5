//! nalgebra: its matrices move in column-major, and arrays of rank 1 and 2 are lent to it as views.
//!
//! What is a column vector by its type (`DVector`, `Vector3`) has rank 1 here, every other matrix rank 2.
//!
//! Views have a row stride of 1, as nalgebra's own matrices do. Its types allow more, but its products then run past
//! the end of the memory (dimforge/nalgebra#1616, in 0.35.0), and with a stride of 0 so do its iterators. A row-major
//! array is lent transposed instead.

use ::nalgebra as na;
use na::{DMatrix, DMatrixView, DVector, DVectorView, Dyn, Matrix, RawStorage, VecStorage, ViewStorage};

use super::{adopt, copied, lend};
use crate::array::{Array, Concrete, row_major};
use crate::error::{Location, Result, error};
use crate::types::{Element, Shape};

/// Dimensions of the array for a matrix: the number of columns counts unless the type says it is one.
fn dims_of<C: na::Dim>((rows, columns): (usize, usize)) -> Vec<usize> {
    if C::try_to_usize() == Some(1) { vec![rows] } else { vec![rows, columns] }
}

/// `DMatrix`, `DVector` and their kin: takes the memory over without a copy; the array is column-major.
///
/// ```
/// # use gradus_core::Array;
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
/// # Ok::<(), gradus_core::Error>(())
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
        // Element by element: nalgebra's iterators cannot be trusted with views that repeat a row.
        for i in 0..matrix.nrows() {
            values.extend((0..matrix.ncols()).filter_map(|j| matrix.get((i, j)).copied()));
        }
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
    /// An array of rank 2 as a nalgebra view of the same memory.
    ///
    /// nalgebra is column-major: the rows of a column stand one behind the other, while columns may be any distance
    /// apart. An array that lies otherwise is an error here; if it is row-major, its transpose can be lent.
    ///
    /// ```
    /// # use gradus_core::Array;
    ///
    /// let a = Array::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// let t = a.t();
    /// let view = t.view_dmatrix::<f64>()?;
    /// assert_eq!(view.shape(), (3, 2));
    /// assert_eq!(view.as_ptr(), a.as_slice::<f64>()?.as_ptr());
    /// // Both ways to compute a aᵀ.
    /// assert_eq!(Array::from(view.tr_mul(&view)).to_vec::<f64>()?, a.matmul(&t).to_vec::<f64>()?);
    ///
    /// assert!(a.view_dmatrix::<f64>().is_err());
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn view_dmatrix<T: Element>(&self) -> Result<DMatrixView<'_, T>> {
        let place = Location::caller();
        let concrete = lend::<T>(self, "`view_dmatrix`", "`to_dmatrix`", place)?;
        view_matrix(concrete).map_err(|e| e.at(place))
    }

    /// An array of rank 1 as a nalgebra view of the same memory. An error if it has a stride other than 1.
    ///
    /// ```
    /// # use gradus_core::Array;
    ///
    /// let a = Array::from([3.0, 4.0]);
    /// assert_eq!(a.view_dvector::<f64>()?.norm(), 5.0);
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn view_dvector<T: Element>(&self) -> Result<DVectorView<'_, T>> {
        let place = Location::caller();
        let concrete = lend::<T>(self, "`view_dvector`", "`to_dvector`", place)?;
        view_vector(concrete).map_err(|e| e.at(place))
    }

    /// The numbers of an array of rank 2 as a matrix of its own.
    ///
    /// ```
    /// # use gradus_core::Array;
    ///
    /// let a = Array::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(a.to_dmatrix::<f64>()?, nalgebra::DMatrix::from_row_slice(2, 3, a.as_slice()?));
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn to_dmatrix<T: Element>(&self) -> Result<DMatrix<T>> {
        let place = Location::caller();
        copied::<T, _>(self, "`to_dmatrix`", place, |c| {
            let [(rows, rstride), (columns, cstride)] = axes(c)?;
            // The transposed array in row-major order is this one in column-major order.
            let shape = [columns, rows].into_iter().collect();
            let transposed = c.view(shape, [cstride, rstride].into_iter().collect(), c.offset());
            let values = transposed.try_to_vec::<T>()?;
            // invariant: a view has as many values as its dimensions say
            Ok(DMatrix::from_data(VecStorage::new(Dyn(rows), Dyn(columns), values)))
        })
    }

    /// The numbers of an array of rank 1 as a vector of its own.
    ///
    /// ```
    /// # use gradus_core::Array;
    ///
    /// assert_eq!(Array::from([1, 2]).to_dvector::<i32>()?, nalgebra::DVector::from_vec(vec![1, 2]));
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn to_dvector<T: Element>(&self) -> Result<DVector<T>> {
        let place = Location::caller();
        copied::<T, _>(self, "`to_dvector`", place, |c| {
            let [(rows, _)] = axes(c)?;
            // invariant: an array has as many values as its dimensions say
            Ok(DVector::from_data(VecStorage::new(Dyn(rows), na::Const::<1>, c.try_to_vec::<T>()?)))
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

fn view_matrix<T: Element>(c: &Concrete) -> Result<DMatrixView<'_, T>> {
    let [rows, columns] = axes(c)?;
    let Some(cstride) = column_stride(rows, columns) else {
        let transposed = column_stride(columns, rows).is_some();
        let way = if transposed { "lend the transpose, `x.t().view_dmatrix()`, or " } else { "" };
        return Err(unfit(c, &format!("{way}copy with `to_dmatrix`")));
    };
    let (rows, columns) = (Dyn(rows.0), Dyn(columns.0));
    Ok(DMatrixView::from_slice_with_strides_generic(memory(c), rows, columns, na::Const::<1>, Dyn(cstride)))
}

/// The stride from column to column, given the dimensions and strides of both axes, if nalgebra can show them.
fn column_stride((rows, rstride): (usize, isize), (columns, cstride): (usize, isize)) -> Option<usize> {
    // An axis of one element never uses its stride, and in an empty matrix none does.
    let (rows_used, columns_used) = (rows > 1 && columns > 0, columns > 1 && rows > 0);
    match usize::try_from(cstride) {
        _ if rows_used && rstride != 1 => None,
        Ok(cstride) if columns_used => Some(cstride),
        Err(_) if columns_used => None,
        _ => Some(rows),
    }
}

fn view_vector<T: Element>(c: &Concrete) -> Result<DVectorView<'_, T>> {
    let [(rows, rstride)] = axes(c)?;
    if rows > 1 && rstride != 1 {
        return Err(unfit(c, "make it dense with `to_dense` first, or copy with `to_dvector`"));
    }
    Ok(DVectorView::from_slice_with_strides_generic(memory(c), Dyn(rows), na::Const::<1>, na::Const::<1>, Dyn(rows)))
}

/// The buffer from the first element on: with no negative stride, all others follow it.
fn memory<T: Element>(c: &Concrete) -> &[T] {
    T::slice(c.data()).and_then(|all| all.get(c.offset()..)).unwrap_or_default()
}

fn unfit(c: &Concrete, way_out: &str) -> crate::Error {
    error!(Value, "a view of nalgebra has rows one behind the other, and {} has the strides {:?}", c.ty(), c.strides())
        .help(way_out)
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

    /// View and copy agree with the array, in nalgebra's own products and iterators from both ends too.
    fn check(a: &Array) {
        let view = a.view_dmatrix::<i32>().unwrap();
        let copy = a.to_dmatrix::<i32>().unwrap();
        assert_eq!(view.clone_owned(), copy);
        assert_eq!(view * copy.transpose(), &copy * copy.transpose());
        assert_eq!(view.tr_mul(&view), copy.transpose() * &copy);
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

    fn strided(shape: [usize; 2], strides: [isize; 2], offset: usize) -> Array {
        Array::from_vec_strided((0..40).collect::<Vec<i32>>(), shape, &strides, offset)
    }

    #[test]
    fn matrices_go_round() {
        for (rows, columns) in [(4, 6), (1, 5), (5, 1), (1, 1), (0, 3), (3, 0), (0, 0)] {
            check(&counted(rows, columns).t());
        }
        check(&counted(0, 3));
        check(&counted(1, 3));
        check(&strided([3, 4], [1, 10], 5));
        check(&strided([3, 3], [1, 1], 5));
        // One column again and again, and axes of one element with strides that are never used.
        check(&strided([3, 4], [1, 0], 5));
        check(&strided([1, 4], [0, 3], 5));
        check(&strided([1, 4], [-7, 3], 5));
        check(&strided([4, 1], [1, isize::MIN], 5));
        check(&strided([1, 1], [0, 0], 39));
    }

    #[test]
    fn what_nalgebra_cannot_show_is_an_error_and_copies() {
        for (strides, transposed) in
            [([4, 1], true), ([0, 1], true), ([4, 2], false), ([3, -1], false), ([-1, 3], false), ([-4, 1], false)]
        {
            let a = strided([2, 3], strides, 10);
            let error = a.view_dmatrix::<i32>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Value);
            assert_eq!(error.way_out().unwrap().contains("x.t()"), transposed);
            assert_eq!(error.place().file(), Some(file!()));
            assert_eq!(a.t().view_dmatrix::<i32>().is_ok(), transposed);
            assert_eq!(a.to_dmatrix::<i32>().unwrap().transpose().as_slice(), a.to_vec::<i32>().unwrap());
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
    fn strided_views_of_theirs_are_copied() {
        let memory: Vec<i32> = (0..12).collect();
        for (rstride, cstride) in [(4, 1), (1, 3), (4, 2), (0, 1), (1, 0), (0, 0)] {
            let view = na::DMatrixView::<i32, Dyn, Dyn>::from_slice_with_strides(&memory, 2, 2, rstride, cstride);
            let want = [0, cstride, rstride, rstride + cstride].map(|i| i as i32);
            assert_eq!(Array::from(view).as_slice::<i32>().unwrap(), want);
        }
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
        assert_eq!(stepped.view_dvector::<i32>().unwrap_err().kind(), ErrorKind::Value);
        assert_eq!(stepped.to_dense().view_dvector::<i32>().unwrap(), DVector::from_vec(vec![0, 3, 6]));
        assert_eq!(stepped.to_dvector::<i32>().unwrap(), DVector::from_vec(vec![0, 3, 6]));
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
