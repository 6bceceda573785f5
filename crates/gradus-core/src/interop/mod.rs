//! Arrays from and for other libraries: slices, with the features `ndarray` and `nalgebra` theirs, and with `serde` every format that it knows.
//!
//! Memory that an [`Array`] can own is taken over as it lies, row-major, column-major or with any strides, and memory
//! that an array has is lent out the same way. A copy happens only where none of this can be, and the name says it:
//! `from` a reference and `to_…` copy, `from` a value and `view_…` do not.
//!
//! | in | copies? | out | copies? |
//! |---|---|---|---|
//! | `Array::from(vec)`, [`Array::from_vec`], [`Array::from_vec_strided`] | no | [`Array::as_slice`] | no |
//! | `Array::from(&slice)` | yes | [`Array::to_vec`] | yes |
//! | `Array::from(ndarray::Array)` | no | `view_ndarray` | no |
//! | `Array::from(&ndarray::ArrayBase)` or a view | yes | `to_ndarray` | yes |
//! | `Array::from(DMatrix)`, `DVector`, ... | no | `view_dmatrix`, `view_dvector` | no |
//! | `Array::from(&Matrix)` or a view | yes | `to_dmatrix`, `to_dvector` | yes |
//!
//! Copies are row-major, or in the order of the library they are made for. A view borrows the array and shows its
//! strides: to ndarray a transposed, reversed, stepped or broadcast array is lent as it is. nalgebra is column-major,
//! so it is lent arrays whose columns have no gaps; of a row-major array that is the transpose. The error for another
//! one names the call that copies.
//!
//! Numbers are read by these calls, so a traced array refuses them as it refuses [`Array::item`].
//!
//! ```
//! # use gradus_core::Array;
//!
//! // Column-major memory, as Fortran and BLAS write it, without moving a number.
//! let a = Array::from_vec_strided(vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0], [2, 3], &[1, 2], 0);
//! assert_eq!(a.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! assert_eq!(a.strides(), Some(&[1, 2][..]));
//! # Ok::<(), gradus_core::Error>(())
//! ```

#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "serde")]
mod serde;

use std::sync::Arc;

use crate::array::{Array, Concrete, Strides, row_major};
use crate::error::{Location, Result, counted, error, fail};
use crate::types::{Element, IntoShape, Shape, Type};

impl Array {
    /// An array over memory with any strides, which is taken over without a copy.
    ///
    /// The element at index `[i, j]` is `values[offset + i * strides[0] + j * strides[1]]`. Strides count elements;
    /// negative ones run backwards and 0 repeats. An error if an index would reach outside `values`.
    ///
    /// ```
    /// # use gradus_core::Array;
    ///
    /// let samples = vec![0, 1, 2, 3, 4, 5, 6, 7];
    /// // Every second sample, from the last one back.
    /// let a = Array::from_vec_strided(samples, [4], &[-2], 7);
    /// assert_eq!(a.to_vec::<i32>()?, [7, 5, 3, 1]);
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn from_vec_strided<T: Element>(
        values: Vec<T>,
        shape: impl IntoShape,
        strides: &[isize],
        offset: usize,
    ) -> Array {
        adopt(values, shape.into_shape(), strides, offset)
    }
}

/// Takes memory over; what cannot be becomes an array that carries the error with the caller's line.
#[track_caller]
fn adopt<T: Element>(values: Vec<T>, shape: Shape, strides: &[isize], offset: usize) -> Array {
    let place = Location::caller();
    try_adopt(values, shape, strides, offset).map_err(|e| e.at(place)).into()
}

fn try_adopt<T: Element>(values: Vec<T>, shape: Shape, strides: &[isize], offset: usize) -> Result<Array> {
    let ty = Type::checked(T::DTYPE, shape)?;
    let Some(dims) = ty.shape().known() else {
        return Err(
            error!(Shape, "memory has known dimensions, and {ty} is symbolic").help("give the dimensions as numbers")
        );
    };
    if strides.len() != dims.len() {
        fail!(
            Shape,
            "{ty} has {}, but there is a list of {}",
            counted(dims.len(), "axis"),
            counted(strides.len(), "stride")
        );
    }
    let len = values.len();
    let (strides, offset) = if dims.contains(&0) {
        // Nothing is ever read, so any layout will do, and this one cannot overflow.
        (row_major(&dims), 0)
    } else {
        // The stride of an axis with one element is never used; a wild one could overflow on the way.
        let tame = |(&d, &s): (&usize, &isize)| if d > 1 || s.unsigned_abs() <= len { s } else { 0 };
        (dims.iter().zip(strides).map(tame).collect::<Strides>(), offset)
    };
    Ok(Concrete::strided(ty, &strides, offset, Arc::new(T::into_data(values)))?.into())
}

/// The memory behind an array, to be lent by `what`; `copying` is the call that works where lending does not.
#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
fn lend<'a, T: Element>(array: &'a Array, what: &str, copying: &str, place: Location) -> Result<&'a Concrete> {
    let Some(concrete) = array.concrete() else {
        // Gives the right error, and leaves its mark on the trace.
        crate::trace::read(array, what, place)?;
        return Err(error!(NotConcrete, "a traced value has no memory to borrow")
            .at(place)
            .help(format!("use {copying}")));
    };
    same_dtype::<T>(concrete).map_err(|e| e.at(place))?;
    Ok(concrete)
}

/// Calls `copy` with the numbers behind an array, which in concrete mode are those of the value it stands for.
#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
fn copied<T: Element, R>(
    array: &Array,
    what: &str,
    place: Location,
    copy: impl FnOnce(&Concrete) -> Result<R>,
) -> Result<R> {
    let array = crate::trace::read(array, what, place)?;
    let concrete = array.on_host()?;
    same_dtype::<T>(concrete).and_then(|()| copy(concrete)).map_err(|e| e.at(place))
}

#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
fn same_dtype<T: Element>(concrete: &Concrete) -> Result<()> {
    let ty = concrete.ty();
    if ty.dtype() != T::DTYPE {
        return Err(error!(DType, "the array is {ty}, but {} was asked for", T::DTYPE)
            .help(format!("read it as {}, or cast it first", ty.dtype())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn kind(array: Array) -> Option<ErrorKind> {
        array.error().map(|e| e.kind())
    }

    #[test]
    fn vectors_are_taken_over_with_any_strides() {
        let values: Vec<f64> = (0..12).map(f64::from).collect();
        let memory = values.as_ptr();
        let a = Array::from_vec_strided(values, [3, 2], &[-4, 3], 8);
        assert_eq!(a.to_vec::<f64>().unwrap(), [8.0, 11.0, 4.0, 7.0, 0.0, 3.0]);
        let data = f64::slice(a.concrete().unwrap().data()).unwrap();
        assert_eq!(data.as_ptr(), memory);
        assert_eq!((&a + 1.0).to_vec::<f64>().unwrap(), [9.0, 12.0, 5.0, 8.0, 1.0, 4.0]);
    }

    #[test]
    fn what_reaches_outside_is_refused() {
        let four = || vec![1i32, 2, 3, 4];
        assert_eq!(kind(Array::from_vec_strided(four(), [3], &[2], 0)), Some(ErrorKind::Index));
        assert_eq!(kind(Array::from_vec_strided(four(), [3], &[-1], 1)), Some(ErrorKind::Index));
        assert_eq!(kind(Array::from_vec_strided(four(), [1], &[1], 4)), Some(ErrorKind::Index));
        assert_eq!(kind(Array::from_vec_strided(four(), [2], &[isize::MAX], 0)), Some(ErrorKind::Index));
        assert_eq!(kind(Array::from_vec_strided(four(), [2], &[isize::MIN], usize::MAX)), Some(ErrorKind::Index));
        assert_eq!(kind(Array::from_vec_strided(four(), [2, 2], &[1], 0)), Some(ErrorKind::Shape));
        assert_eq!(kind(Array::from_vec_strided(four(), [-2], &[1], 0)), Some(ErrorKind::Size));
        assert_eq!(kind(Array::from_vec_strided(four(), [usize::MAX, 2], &[0, 0], 0)), Some(ErrorKind::Size));
        let error = Array::from_vec_strided(four(), [3], &[2], 0).ok().unwrap_err();
        assert_eq!(error.place().file(), Some(file!()));
    }

    #[test]
    fn unused_strides_may_be_wild() {
        for wild in [isize::MIN, isize::MAX] {
            let a = Array::from_vec_strided(vec![1i32, 2], [1, 2, 1], &[wild, 1, wild], 0);
            assert_eq!((&a + &a).to_vec::<i32>().unwrap(), [2, 4]);
            let none = Array::from_vec_strided(Vec::<i32>::new(), [2, 0], &[wild, wild], usize::MAX);
            assert_eq!((&none + &none).to_vec::<i32>().unwrap(), []);
        }
    }
}
