//! Shapes: lists of dimensions, known or symbolic, and what users may write where a shape is wanted.

use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

use super::Dim;
use crate::error::{Result, error};

/// Distances between neighbours along each axis, in elements.
pub(crate) type Strides = SmallVec<[isize; 4]>;
/// Known dimensions.
pub(crate) type Dims = SmallVec<[usize; 4]>;

/// The number of elements. A zero anywhere makes it zero, whatever the other dimensions would overflow to; one number in more
/// places than can be counted is in the most there are.
pub(crate) fn count(dims: &[usize]) -> usize {
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

/// The dimensions of an array, outermost first.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[Dim; 4]>);

impl Shape {
    /// The shape of a scalar.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The dimensions.
    pub fn dims(&self) -> &[Dim] {
        &self.0
    }

    /// The dimensions as numbers, if none is symbolic.
    pub fn known(&self) -> Option<Dims> {
        self.0.iter().map(Dim::as_usize).collect()
    }

    /// The number of elements, if no dimension is symbolic and the product does not overflow.
    pub fn count(&self) -> Option<usize> {
        // A zero anywhere makes the array empty, whatever the other factors would overflow to.
        if self.0.iter().any(|d| d.as_usize() == Some(0)) {
            return self.known().map(|_| 0);
        }
        self.0.iter().try_fold(1usize, |n, d| n.checked_mul(d.as_usize()?))
    }

    /// The number of elements as a dimension, symbolic if need be.
    pub fn size(&self) -> Dim {
        // A zero makes the array empty before the other factors can overflow.
        if self.0.iter().any(|d| d.constant() == Some(0)) {
            return Dim::from(0usize);
        }
        self.0.iter().fold(Dim::from(1usize), |n, d| n * d)
    }

    /// The same shape with a dimension put in at `axis`.
    pub fn inserted(&self, axis: usize, dim: Dim) -> Shape {
        let mut dims = self.0.clone();
        dims.insert(axis.min(dims.len()), dim);
        Shape(dims)
    }

    /// The same shape without the axes that `drop` holds for.
    pub fn without(&self, drop: impl Fn(usize) -> bool) -> Shape {
        self.0.iter().enumerate().filter(|(i, _)| !drop(*i)).map(|(_, d)| d.clone()).collect()
    }

    /// The same shape with one dimension replaced.
    pub fn replaced(&self, axis: usize, dim: Dim) -> Shape {
        let mut dims = self.0.clone();
        if let Some(d) = dims.get_mut(axis) {
            *d = dim;
        }
        Shape(dims)
    }

    /// Whether any dimension is symbolic.
    pub fn is_symbolic(&self) -> bool {
        self.0.iter().any(|d| d.constant().is_none())
    }

    /// Applies a function to each dimension.
    pub fn map(&self, f: impl FnMut(&Dim) -> Dim) -> Shape {
        self.0.iter().map(f).collect()
    }

    /// Refuses what no array can have: negative or overflowing dimensions.
    pub fn check(&self) -> Result<()> {
        for d in &self.0 {
            if d.is_invalid() || d.constant().is_some_and(|c| c < 0) {
                return Err(error!(Size, "the shape {self} has a dimension that no array can have: {d}")
                    .help("dimensions are 0 or more; one `-1` stands for what is left, in `reshape` only"));
            }
        }
        if !self.is_symbolic() && self.count().is_none_or(|n| n > isize::MAX as usize / 16) {
            return Err(error!(Size, "an array of shape {self} has more elements than memory has room for")
                .help("make it smaller, or keep it a `broadcast_to`, which needs no memory, until it is reduced"));
        }
        Ok(())
    }
}

impl Deref for Shape {
    type Target = [Dim];
    fn deref(&self) -> &[Dim] {
        &self.0
    }
}

impl FromIterator<Dim> for Shape {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Shape {
        Shape(dims.into_iter().collect())
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> Shape {
        Shape(dims.into_iter().map(Dim::from).collect())
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        dims.iter().copied().collect()
    }
}

impl From<Vec<Dim>> for Shape {
    fn from(dims: Vec<Dim>) -> Shape {
        Shape(dims.into())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { "," } else { "" })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        *self == other[..]
    }
}

impl<const N: usize> PartialEq<[usize; N]> for &Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        **self == other[..]
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.rank() == other.len() && self.0.iter().zip(other).all(|(d, n)| d.as_usize() == Some(*n))
    }
}

/// What may be written where a shape is wanted: `[2, 3]`, a `Vec`, a slice, dimensions taken from another array; and a tuple, whose
/// sizes may have different types: `(n, -1)`, `(x.dim(0), 3)`.
///
/// One dimension of `-1` means "whatever is left" where an operation (reshape) can say what that is.
pub trait IntoShape {
    /// The dimensions as written.
    fn into_shape(self) -> Shape;
}

impl IntoShape for Shape {
    fn into_shape(self) -> Shape {
        self
    }
}

impl IntoShape for &Shape {
    fn into_shape(self) -> Shape {
        self.clone()
    }
}

impl IntoShape for () {
    fn into_shape(self) -> Shape {
        Shape::scalar()
    }
}

macro_rules! into_shape {
    ($($number:ty),*) => {$(
        impl<const N: usize> IntoShape for [$number; N] {
            fn into_shape(self) -> Shape {
                self.into_iter().map(Dim::from).collect()
            }
        }
        impl IntoShape for &[$number] {
            fn into_shape(self) -> Shape {
                self.iter().map(|d| Dim::from(d.clone())).collect()
            }
        }
        impl IntoShape for Vec<$number> {
            fn into_shape(self) -> Shape {
                self.into_iter().map(Dim::from).collect()
            }
        }
    )*};
}
// i32 is here for literals: `[2, 3]` with no other hint falls back to it.
into_shape!(usize, isize, i32, i64, Dim);

macro_rules! mixed_shapes {
    ($(($($size:ident $index:tt)+))*) => {$(
        impl<$($size: Into<Dim>),+> IntoShape for ($($size,)+) {
            fn into_shape(self) -> Shape {
                [$(self.$index.into()),+].into_iter().collect()
            }
        }
    )*};
}
mixed_shapes! {
    (A 0)
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
}
