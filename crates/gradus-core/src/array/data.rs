//! Concrete arrays: strided views of typed buffers.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Array;
use crate::error::{Error, Result, counted, error, fail};
use crate::types::{Data, Element, Scalar, Shape, Type, dispatch};

/// Distances between neighbours along each axis, in elements.
pub(crate) type Strides = SmallVec<[isize; 4]>;
/// Known dimensions.
pub(crate) type Dims = SmallVec<[usize; 4]>;

/// An array with numbers: a strided view of a shared buffer.
#[derive(Clone, Debug)]
pub struct Concrete {
    ty: Type,
    dims: Dims,
    strides: Strides,
    offset: usize,
    data: Arc<Data>,
}

/// Memory for so many numbers, empty; an error if there is none. Whatever grows with the shapes of a user asks here: an
/// allocation that fails elsewhere ends the process.
pub fn memory<T>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    match values.try_reserve_exact(count) {
        Ok(()) => Ok(values),
        Err(_) => Err(error!(Size, "there is no memory for {count} numbers of {} bytes", size_of::<T>())),
    }
}

/// Memory for an array of a type, empty; an error if there is none.
pub(crate) fn reserve<T: Element>(ty: &Type) -> Result<Vec<T>> {
    let no_room = || error!(Size, "there is no memory for an array of type {ty}");
    memory(ty.shape().count().ok_or_else(no_room)?).map_err(|_| no_room())
}

/// So many numbers of an iterator.
pub(crate) fn collected<T>(count: usize, values: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut all = memory(count)?;
    all.extend(values);
    Ok(all)
}

/// The number of elements. A zero anywhere makes it zero, whatever the other dimensions would overflow to; one number in more
/// places than can be counted is in the most there are.
fn count(dims: &[usize]) -> usize {
    if dims.contains(&0) { 0 } else { dims.iter().fold(1, |all, n| all.saturating_mul(*n)) }
}

/// Strides of a dense row-major array.
pub(crate) fn row_major(dims: &[usize]) -> Strides {
    let mut strides: Strides = smallvec::smallvec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(dims[i].max(1) as isize);
    }
    strides
}

#[cold]
fn misfit<T: Element>(ty: &Type, numbers: usize) -> Error {
    error!(Shape, "{} of {} cannot be an array of type {ty}", counted(numbers, "number"), T::DTYPE)
}

impl Concrete {
    /// A dense row-major array of a type; refuses numbers of another dtype, and more or fewer than the type has.
    pub fn new<T: Element>(ty: Type, values: Vec<T>) -> Result<Concrete> {
        match Concrete::fitting::<T>(&ty, values.len()) {
            Some(dims) => Ok(Concrete::row_major(ty, dims, values)),
            None => Err(misfit::<T>(&ty, values.len())),
        }
    }

    /// The same as an [`Array`], which carries the error if there is one. Every call makes its results by it, so it moves them once.
    #[inline]
    pub fn array<T: Element>(ty: Type, values: Vec<T>) -> Array {
        match Concrete::fitting::<T>(&ty, values.len()) {
            Some(dims) => Array::from(Concrete::row_major(ty, dims, values)),
            None => misfit::<T>(&ty, values.len()).into(),
        }
    }

    /// The dimensions of a type, if so many numbers of a dtype are an array of it.
    #[inline]
    fn fitting<T: Element>(ty: &Type, numbers: usize) -> Option<Dims> {
        ty.shape().known().filter(|dims| ty.dtype() == T::DTYPE && count(dims) == numbers)
    }

    #[inline]
    fn row_major<T: Element>(ty: Type, dims: Dims, values: Vec<T>) -> Concrete {
        let strides = row_major(&dims);
        Concrete { ty, dims, strides, offset: 0, data: Arc::new(T::into_data(values)) }
    }

    /// A dense row-major array over a whole buffer. The type's shape is known and counts the buffer's elements: who cannot be sure asks
    /// [`new`](Concrete::new).
    pub(crate) fn dense<T: Element>(ty: Type, values: Vec<T>) -> Concrete {
        let dims = ty.shape().known().unwrap_or_default();
        debug_assert_eq!(count(&dims), values.len(), "{ty}");
        debug_assert_eq!(ty.dtype(), T::DTYPE);
        Concrete::row_major(ty, dims, values)
    }

    /// A dense array from known dimensions, which count the numbers.
    pub(crate) fn from_vec<T: Element>(dims: &[usize], values: Vec<T>) -> Concrete {
        Concrete::dense(Type::new(T::DTYPE, dims), values)
    }

    /// One number, seen in every place of a shape: no memory per element.
    pub fn splat(ty: Type, value: Scalar) -> Concrete {
        let dims = ty.shape().known().unwrap_or_default();
        let strides = smallvec::smallvec![0; dims.len()];
        let data =
            dispatch!(ty.dtype(), T => T::into_data(vec![T::from_scalar(value.cast(T::DTYPE)).unwrap_or_default()]));
        Concrete { ty, dims, strides, offset: 0, data: Arc::new(data) }
    }

    /// A view given by strides; refuses one that reaches outside the buffer.
    pub fn strided(ty: Type, strides: &[isize], offset: usize, data: Arc<Data>) -> Result<Concrete> {
        let Some(dims) = ty.shape().known() else { fail!(Shape, "a view needs known dimensions, not {ty}") };
        if data.dtype() != ty.dtype() || strides.len() != dims.len() {
            fail!(
                Shape,
                "a view of type {ty} with {} does not fit a buffer of {}",
                counted(strides.len(), "stride"),
                data.dtype()
            );
        }
        if !dims.contains(&0) {
            let (mut low, mut high) = (offset as i128, offset as i128);
            for (&d, &s) in dims.iter().zip(strides) {
                let reach = (d as i128 - 1) * s as i128;
                if reach < 0 { low += reach } else { high += reach }
            }
            if low < 0 || high >= data.len() as i128 {
                fail!(Index, "a view of type {ty} reaches outside its buffer of {} elements", data.len());
            }
        }
        Ok(Concrete { ty, dims, strides: strides.into(), offset, data })
    }

    /// A view of the same buffer whose bounds follow from this one's: every place it shows, this one shows.
    pub(crate) fn view(&self, shape: Shape, strides: Strides, offset: usize) -> Concrete {
        let ty = self.ty.with_shape(shape);
        let dims = ty.shape().known().unwrap_or_default();
        Concrete { ty, dims, strides, offset, data: self.data.clone() }
    }

    /// The type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Where in the buffer the first element is.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The buffer.
    pub fn data(&self) -> &Arc<Data> {
        &self.data
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        count(&self.dims)
    }

    /// Whether the elements stand in the buffer in row-major order without gaps.
    pub fn is_dense(&self) -> bool {
        let mut expect = 1isize;
        for (&d, &s) in self.dims.iter().zip(&self.strides).rev() {
            if d == 0 {
                return true;
            }
            if d != 1 && s != expect {
                return false;
            }
            expect = expect.saturating_mul(d as isize);
        }
        true
    }

    /// The number that fills the array, if it is a splat by its strides (or has one element).
    pub fn splat_value(&self) -> Option<Scalar> {
        let fills = self.dims.iter().zip(&self.strides).all(|(&d, &s)| d == 1 || s == 0);
        (fills && self.count() > 0).then(|| {
            dispatch!(self.ty.dtype(), T => {
                T::slice(&self.data).map_or(T::default(), |s| s[self.offset]).into_scalar()
            })
        })
    }

    /// The array without the axes along which it is repeated, and the axes that stay; none if there are none.
    pub(crate) fn unrepeated(&self) -> Option<(Concrete, Vec<usize>)> {
        let axes: Vec<usize> =
            (0..self.dims().len()).filter(|i| self.strides()[*i] != 0 || self.dims()[*i] <= 1).collect();
        if axes.len() == self.dims().len() {
            return None;
        }
        let shape = axes.iter().map(|i| self.dims()[*i]).collect();
        let strides = axes.iter().map(|i| self.strides()[*i]).collect();
        Some((self.view(shape, strides, self.offset()), axes))
    }

    /// The elements in row-major order, borrowed if they stand that way. Empty if the dtype is another. A copy that there is
    /// no memory for ends the process: see [`try_values`](Concrete::try_values).
    pub fn values<T: Element>(&self) -> Cow<'_, [T]> {
        self.dense_slice().map_or_else(|| Cow::Owned(self.copied(Vec::with_capacity(self.count()))), Cow::Borrowed)
    }

    /// The elements in row-major order, borrowed if they stand that way; an error if there is no memory for a copy.
    pub fn try_values<T: Element>(&self) -> Result<Cow<'_, [T]>> {
        match self.dense_slice() {
            Some(values) => Ok(Cow::Borrowed(values)),
            None => Ok(Cow::Owned(self.copied(reserve(&self.ty)?))),
        }
    }

    /// A copy of the elements in row-major order; an error if there is no memory for it.
    pub fn try_to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.copied(reserve(&self.ty)?))
    }

    /// The elements in row-major order, behind nothing in `out`. None if the dtype is another.
    fn copied<T: Element>(&self, mut out: Vec<T>) -> Vec<T> {
        let Some(all) = T::slice(&self.data) else { return out };
        if self.count() == 0 {
            return out;
        }
        for_each_row(&self.dims, &self.strides, self.offset, &mut |start, len, stride| match stride {
            1 => out.extend_from_slice(&all[start..start + len]),
            0 => out.resize(out.len() + len, all[start]),
            _ => out.extend((0..len as isize).map(|i| all[(start as isize + i * stride) as usize])),
        });
        out
    }

    /// The elements as one slice, if they stand that way in the buffer.
    pub fn dense_slice<T: Element>(&self) -> Option<&[T]> {
        let all = T::slice(&self.data)?;
        self.is_dense().then(|| if self.count() == 0 { &[][..] } else { &all[self.offset..self.offset + self.count()] })
    }

    /// One element by its row-major position.
    pub fn element<T: Element>(&self, position: usize) -> Result<T> {
        let all =
            T::slice(&self.data).ok_or_else(|| error!(DType, "{} elements are not {}", self.ty.dtype(), T::DTYPE))?;
        let mut rest = position;
        let mut at = self.offset as isize;
        for (&d, &s) in self.dims.iter().zip(&self.strides).rev() {
            at += (rest % d.max(1)) as isize * s;
            rest /= d.max(1);
        }
        all.get(at as usize).copied().ok_or_else(|| error!(Index, "no element {position} in {}", self.ty))
    }

    /// One element as a scalar.
    pub fn scalar_at(&self, position: usize) -> Result<Scalar> {
        dispatch!(self.ty.dtype(), T => self.element::<T>(position).map(T::into_scalar))
    }

    /// The same numbers, row-major and dense; an error if there is no memory for them.
    pub fn try_dense(&self) -> Result<Concrete> {
        if self.is_dense() {
            return Ok(self.clone());
        }
        Ok(dispatch!(self.ty.dtype(), T => Concrete::dense::<T>(self.ty.clone(), self.try_to_vec::<T>()?)))
    }

    /// The same numbers, row-major and dense.
    pub fn to_dense(&self) -> Concrete {
        if self.is_dense() {
            return self.clone();
        }
        dispatch!(self.ty.dtype(), T => Concrete::dense::<T>(self.ty.clone(), self.values::<T>().into_owned()))
    }

    /// Whether two arrays have the same type and, bit for bit, the same elements.
    pub fn same_bits(&self, other: &Concrete) -> bool {
        if let (Some(a), Some(b)) = (self.splat_value(), other.splat_value()) {
            return self.ty == other.ty && a == b;
        }
        self.ty == other.ty
            && dispatch!(self.ty.dtype(), T => {
                self.values::<T>().iter().zip(other.values::<T>().iter()).all(|(a, b)| a.bits() == b.bits())
            })
    }
}

/// Calls `row(start, length, stride)` for each innermost run of a strided array, in row-major order.
pub fn for_each_row(dims: &[usize], strides: &[isize], offset: usize, row: &mut dyn FnMut(usize, usize, isize)) {
    if dims.contains(&0) {
        return;
    }
    let Some((&inner, outer)) = dims.split_last() else { return row(offset, 1, 1) };
    let inner_stride = strides[outer.len()];
    let mut index: Dims = smallvec::smallvec![0; outer.len()];
    let mut at = offset as isize;
    loop {
        row(at as usize, inner, inner_stride);
        let mut axis = outer.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < outer[axis] {
                break;
            }
            at -= strides[axis] * outer[axis] as isize;
            index[axis] = 0;
        }
    }
}
