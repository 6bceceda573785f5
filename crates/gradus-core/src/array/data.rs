//! Concrete arrays: strided views of typed buffers.

use std::borrow::Cow;
use std::sync::Arc;

use super::Array;
use crate::error::{Error, Result, counted, error, fail};
use crate::types::{Data, Dense, Dims, Element, Scalar, Shape, Strides, Type, dispatch};

/// An array with numbers: a strided view of a shared buffer.
#[derive(Clone, Debug)]
pub struct Concrete {
    ty: Type,
    /// Where its elements are, unless they are all of the buffer, in row-major order.
    view: Option<Box<View>>,
    data: Arc<Data>,
}

#[derive(Clone, Debug)]
struct View {
    strides: Strides,
    offset: usize,
}

impl View {
    fn is_dense(&self, dims: &[usize]) -> bool {
        let mut expect = 1isize;
        for (&d, &s) in dims.iter().zip(&self.strides).rev() {
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

#[cold]
fn misfit<T: Element>(ty: &Type, numbers: usize) -> Error {
    error!(Shape, "{} of {} cannot be an array of type {ty}", counted(numbers, "number"), T::DTYPE)
}

impl Concrete {
    /// A dense row-major array of a type; refuses numbers of another dtype, and more or fewer than the type has.
    pub fn new<T: Element>(ty: Type, values: Vec<T>) -> Result<Concrete> {
        match Concrete::fits::<T>(&ty, values.len()) {
            true => Ok(Concrete::row_major(ty, values)),
            false => Err(misfit::<T>(&ty, values.len())),
        }
    }

    /// The same as an [`Array`], which carries the error if there is one. Every call makes its results by it, so it moves them once.
    #[inline]
    pub fn array<T: Element>(ty: Type, values: Vec<T>) -> Array {
        match Concrete::fits::<T>(&ty, values.len()) {
            true => Array::from(Concrete::row_major(ty, values)),
            false => misfit::<T>(&ty, values.len()).into(),
        }
    }

    /// Whether so many numbers of a dtype are an array of a type.
    #[inline]
    fn fits<T: Element>(ty: &Type, numbers: usize) -> bool {
        ty.dtype() == T::DTYPE && ty.dense().is_some_and(|d| d.count == numbers)
    }

    #[inline]
    fn row_major<T: Element>(ty: Type, values: Vec<T>) -> Concrete {
        Concrete { ty, view: None, data: Arc::new(T::into_data(values)) }
    }

    /// A view of a whole buffer, where it is one, says no more than its type.
    fn viewing(ty: Type, strides: Strides, offset: usize, data: Arc<Data>) -> Concrete {
        let whole = |d: &Dense| offset == 0 && d.strides == strides && d.count == data.len();
        let view = if ty.dense().is_some_and(whole) { None } else { Some(Box::new(View { strides, offset })) };
        Concrete { ty, view, data }
    }

    /// A dense row-major array over a whole buffer. The type's shape is known and counts the buffer's elements: who cannot be sure asks
    /// [`new`](Concrete::new).
    pub(crate) fn dense<T: Element>(ty: Type, values: Vec<T>) -> Concrete {
        debug_assert!(Concrete::fits::<T>(&ty, values.len()), "{} of {} as {ty}", values.len(), T::DTYPE);
        Concrete::row_major(ty, values)
    }

    /// A dense array from known dimensions, which count the numbers.
    pub(crate) fn from_vec<T: Element>(dims: &[usize], values: Vec<T>) -> Concrete {
        Concrete::dense(Type::new(T::DTYPE, dims), values)
    }

    /// One number, seen in every place of a shape: no memory per element.
    pub fn splat(ty: Type, value: Scalar) -> Concrete {
        let strides = smallvec::smallvec![0; ty.rank()];
        let data =
            dispatch!(ty.dtype(), T => T::into_data(vec![T::from_scalar(value.cast(T::DTYPE)).unwrap_or_default()]));
        Concrete::viewing(ty, strides, 0, Arc::new(data))
    }

    /// A view given by strides; refuses one that reaches outside the buffer.
    pub fn strided(ty: Type, strides: &[isize], offset: usize, data: Arc<Data>) -> Result<Concrete> {
        let Some(Dense { dims, .. }) = ty.dense() else { fail!(Shape, "a view needs known dimensions, not {ty}") };
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
        Ok(Concrete::viewing(ty, strides.into(), offset, data))
    }

    /// A view of the same buffer whose bounds follow from this one's: every place it shows, this one shows.
    pub(crate) fn view(&self, shape: Shape, strides: Strides, offset: usize) -> Concrete {
        Concrete::viewing(self.ty.with_shape(shape), strides, offset, self.data.clone())
    }

    /// The type.
    #[inline]
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The dimensions.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        self.ty.dense().map_or(&[], |d| &d.dims)
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        match &self.view {
            Some(view) => &view.strides,
            None => self.ty.dense().map_or(&[], |d| &d.strides),
        }
    }

    /// Where in the buffer the first element is.
    pub fn offset(&self) -> usize {
        self.view.as_ref().map_or(0, |view| view.offset)
    }

    /// The buffer.
    pub fn data(&self) -> &Arc<Data> {
        &self.data
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.ty.dense().map_or(1, |d| d.count)
    }

    /// Whether the elements stand in the buffer in row-major order without gaps.
    #[inline]
    pub fn is_dense(&self) -> bool {
        self.view.as_ref().is_none_or(|view| view.is_dense(self.dims()))
    }

    /// The number that fills the array, if it is a splat by its strides (or has one element).
    pub fn splat_value(&self) -> Option<Scalar> {
        let fills = self.dims().iter().zip(self.strides()).all(|(&d, &s)| d == 1 || s == 0);
        (fills && self.count() > 0).then(|| {
            dispatch!(self.ty.dtype(), T => {
                T::slice(&self.data).map_or(T::default(), |s| s[self.offset()]).into_scalar()
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
        for_each_row(self.dims(), self.strides(), self.offset(), &mut |start, len, stride| match stride {
            1 => out.extend_from_slice(&all[start..start + len]),
            0 => out.resize(out.len() + len, all[start]),
            _ => out.extend((0..len as isize).map(|i| all[(start as isize + i * stride) as usize])),
        });
        out
    }

    /// The elements as one slice, if they stand that way in the buffer.
    #[inline]
    pub fn dense_slice<T: Element>(&self) -> Option<&[T]> {
        let all = T::slice(&self.data)?;
        match &self.view {
            None => Some(all),
            Some(view) if !view.is_dense(self.dims()) => None,
            Some(_) if self.count() == 0 => Some(&[]),
            Some(view) => Some(&all[view.offset..view.offset + self.count()]),
        }
    }

    /// One element by its row-major position.
    pub fn element<T: Element>(&self, position: usize) -> Result<T> {
        let all =
            T::slice(&self.data).ok_or_else(|| error!(DType, "{} elements are not {}", self.ty.dtype(), T::DTYPE))?;
        let mut rest = position;
        let mut at = self.offset() as isize;
        for (&d, &s) in self.dims().iter().zip(self.strides()).rev() {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls make and move arrays: what they must carry for it is two words, and nothing that the type says already.
    #[test]
    fn an_array_is_two_words_and_all_of_a_buffer_needs_no_view() {
        assert_eq!(size_of::<Array>(), 2 * size_of::<usize>());
        let whole = Concrete::from_vec(&[2, 3], (0..6).collect::<Vec<i32>>());
        assert!(whole.view.is_none() && whole.is_dense());
        assert_eq!((whole.dims(), whole.strides(), whole.offset(), whole.count()), (&[2, 3][..], &[3, 1][..], 0, 6));
        let turned = whole.view([3, 2].into_iter().collect(), [1, 3].into_iter().collect(), 0);
        assert!(turned.view.is_some() && !turned.is_dense());
        assert_eq!(turned.values::<i32>()[..], [0, 3, 1, 4, 2, 5]);
        let back = turned.view([6].into_iter().collect(), [1].into_iter().collect(), 0);
        assert!(back.view.is_none());
        assert_eq!(back.dense_slice::<i32>(), Some(&[0, 1, 2, 3, 4, 5][..]));
        // As dense, but not all there is: it begins later, or ends earlier.
        for (from, values) in [(0, [0, 1, 2]), (3, [3, 4, 5])] {
            let part = whole.view([3].into_iter().collect(), [1].into_iter().collect(), from);
            assert!(part.view.is_some() && part.is_dense());
            assert_eq!((part.offset(), part.dense_slice::<i32>()), (from, Some(&values[..])));
        }
        let filled = Concrete::splat("i32[5]".parse().unwrap(), Scalar::I32(7));
        assert_eq!((filled.strides(), filled.count(), filled.data().len()), (&[0][..], 5, 1));
        assert!(Concrete::splat(Type::scalar(crate::DType::I32), Scalar::I32(7)).view.is_none());
    }
}
