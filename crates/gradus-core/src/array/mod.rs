//! `Array`: the one value type that users hold. It has numbers, here or on a device, or belongs to a trace, or is only a type, or
//! carries an error; operations look the same for all of them.

mod construct;
mod data;
mod display;
mod elementwise;
mod index;
mod linear;
mod numpy;
mod operand;
mod reading;
mod recycle;
mod reduce;
mod remote;
mod shaping;
mod sorting;

use std::fmt;
use std::sync::Arc;

pub use crate::types::Data;
pub(crate) use crate::types::{Dims, Strides, row_major};
pub use construct::Nested;
pub use data::{Concrete, for_each_row, memory};
pub(crate) use data::{collected, reserve};
pub use index::{At, Index, IntoIndex};
pub use linear::IntoContraction;
pub use operand::{IntoAxes, Operand, OperandValue, dim_as};
pub use recycle::recycled;
pub use remote::{Device, Host, Remote, Resident};

use crate::error::{Error, Location, Result, counted, error};
use crate::trace::Tracer;
use crate::types::{DType, Dim, Scalar, Shape, Type};

/// Results of an operation or of code, most often one.
pub type Outputs = smallvec::SmallVec<[Array; 1]>;

/// An immutable, reference-counted n-dimensional array. Cloning is cheap.
///
/// Operations never panic. One that cannot be done gives an array that carries the error, with the line that made it;
/// the error comes out where numbers are read ([`Array::item`], [`Array::to_vec`]) or where a staged call is checked.
///
/// Numbers stand beside arrays, as in `2.0 * &x - 1`, and take the array's dtype where nothing is lost. On the right of an operator any
/// number does; on the left an `f64` or an `i32`, which is what a literal without a suffix is.
#[derive(Clone)]
pub struct Array {
    repr: Repr,
}

#[derive(Clone)]
enum Repr {
    Concrete(Arc<Concrete>),
    Remote(Arc<Resident>),
    /// Behind a pointer, so that an array is two words: arrays with numbers are moved in every call.
    Traced(Arc<Tracer>),
    Spec(Type),
    Failed(Error),
}

/// What an array is, for code that treats the cases apart.
#[derive(Clone, Copy)]
pub enum Form<'a> {
    /// It has numbers.
    Concrete(&'a Arc<Concrete>),
    /// A device has its numbers.
    Remote(&'a Arc<Resident>),
    /// It stands for a value of a program that is being traced.
    Traced(&'a Tracer),
    /// It is only a type.
    Spec(&'a Type),
    /// It carries an error.
    Failed(&'a Error),
}

impl From<Concrete> for Array {
    #[inline]
    fn from(concrete: Concrete) -> Array {
        Array { repr: Repr::Concrete(Arc::new(concrete)) }
    }
}

impl From<Tracer> for Array {
    fn from(tracer: Tracer) -> Array {
        Array { repr: Repr::Traced(Arc::new(tracer)) }
    }
}

impl From<Error> for Array {
    fn from(error: Error) -> Array {
        Array { repr: Repr::Failed(error) }
    }
}

/// An error becomes an array that carries it, so that operators can stay operators.
impl From<Result<Array>> for Array {
    fn from(result: Result<Array>) -> Array {
        result.unwrap_or_else(Array::from)
    }
}

impl Array {
    /// An array that is only a type: what [`trace`](crate::trace) and ahead-of-time compilation take.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// assert_eq!(Array::spec("f32[B, 768]").to_string(), "f32[B,768]");
    /// ```
    #[track_caller]
    pub fn spec(text: &str) -> Array {
        let place = Location::caller();
        Array::from(text.parse::<Type>().map(Array::of_type).map_err(|e| e.at(place)))
    }

    /// An array that is only this type.
    pub fn of_type(ty: Type) -> Array {
        Array { repr: Repr::Spec(ty) }
    }

    /// Which of the forms this array has. Nothing is downloaded.
    #[inline]
    pub fn form(&self) -> Form<'_> {
        match &self.repr {
            Repr::Concrete(c) => Form::Concrete(c),
            Repr::Remote(r) => Form::Remote(r),
            Repr::Traced(t) => Form::Traced(t),
            Repr::Spec(t) => Form::Spec(t),
            Repr::Failed(e) => Form::Failed(e),
        }
    }

    /// The numbers, if it has them; downloaded if a device has them. [`on_host`](Array::on_host) says why there are none.
    #[inline]
    pub fn concrete(&self) -> Option<&Concrete> {
        match &self.repr {
            Repr::Concrete(c) => Some(c),
            Repr::Remote(r) => r.numbers().ok().map(|c| &**c),
            _ => None,
        }
    }

    /// Whether it stands for a value of a program being traced.
    #[inline]
    pub fn is_traced(&self) -> bool {
        matches!(self.repr, Repr::Traced(_))
    }

    /// The error it carries, if any. That a device fails is known once its numbers were asked for.
    pub fn error(&self) -> Option<&Error> {
        match &self.repr {
            Repr::Failed(e) => Some(e),
            Repr::Remote(r) => r.known_error(),
            _ => None,
        }
    }

    /// The array itself, or the error it carries.
    pub fn ok(self) -> Result<Array> {
        match self.repr {
            Repr::Failed(e) => Err(e),
            Repr::Remote(r) => match r.known_error() {
                Some(e) => Err(e.clone()),
                None => Ok(Array { repr: Repr::Remote(r) }),
            },
            repr => Ok(Array { repr }),
        }
    }

    /// The type, unless the array carries an error.
    #[inline]
    pub fn ty(&self) -> Result<&Type> {
        match &self.repr {
            Repr::Concrete(c) => Ok(c.ty()),
            Repr::Remote(r) => Ok(r.ty()),
            Repr::Traced(t) => Ok(t.ty()),
            Repr::Spec(t) => Ok(t),
            Repr::Failed(e) => Err(e.clone()),
        }
    }

    /// The element type; `f64` for an array that carries an error.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.ty().map_or(DType::F64, Type::dtype)
    }

    /// The dimensions; none for an array that carries an error.
    pub fn shape(&self) -> &Shape {
        static NONE: std::sync::OnceLock<Shape> = std::sync::OnceLock::new();
        match &self.repr {
            Repr::Concrete(c) => c.ty().shape(),
            Repr::Remote(r) => r.ty().shape(),
            Repr::Traced(t) => t.ty().shape(),
            Repr::Spec(t) => t.shape(),
            Repr::Failed(_) => NONE.get_or_init(Shape::scalar),
        }
    }

    /// The number of axes.
    #[doc(alias = "isscalar")]
    #[doc(alias = "ndim")]
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// One dimension, which may be symbolic; negative axes count from the end. An axis that is not there has size 1.
    ///
    /// It stands in shapes and beside arrays, so a function that gives an array needs no number: `x.sum() / x.dim(0)`. Numbers are what
    /// [`sizes`](Array::sizes) gives.
    pub fn dim(&self, axis: isize) -> Dim {
        let rank = self.rank() as isize;
        let axis = if axis < 0 { axis + rank } else { axis };
        usize::try_from(axis).ok().and_then(|a| self.shape().get(a).cloned()).unwrap_or_else(|| Dim::from(1usize))
    }

    /// The number of elements as a dimension.
    pub fn size(&self) -> Dim {
        self.shape().size()
    }

    /// The dimensions as so many numbers: `let [n, d] = x.sizes()?`. An error if the array has another number of axes, if one is
    /// symbolic, or if the array carries one.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::zeros::<f32>([2, 3]);
    /// let [n, d] = x.sizes()?;
    /// assert_eq!((n, d), (2, 3));
    /// let e = x.sizes::<1>().unwrap_err();
    /// assert!(e.to_string().contains("f32[2,3] has 2 axes"));
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn sizes<const N: usize>(&self) -> Result<[usize; N]> {
        let place = Location::caller();
        let dims = self.known_dims_at(place)?;
        <[usize; N]>::try_from(dims.as_slice()).map_err(|_| {
            let has = self.ty().map_or_else(|_| String::new(), Type::to_string);
            error!(Shape, "{has} has {}, and the sizes of {N} are asked for", counted(dims.len(), "axis"))
                .at(place)
                .help("name as many sizes as there are axes; `x.known_dims()` gives them as a `Vec`")
        })
    }

    /// The dimensions as numbers; an error if one is symbolic or the array carries one.
    #[track_caller]
    pub fn known_dims(&self) -> Result<Vec<usize>> {
        self.known_dims_at(Location::caller())
    }

    fn known_dims_at(&self, place: Location) -> Result<Vec<usize>> {
        let ty = self.ty()?;
        ty.shape().known().map(|d| d.to_vec()).ok_or_else(|| {
            error!(NotConcrete, "the shape of {ty} is symbolic, so its dimensions have no numbers here")
                .at(place)
                .help("compute with `x.dim(i)`, which stays symbolic, or trace without a symbolic dimension")
        })
    }

    /// A scalar array.
    pub fn scalar(value: Scalar) -> Array {
        Concrete::splat(Type::scalar(value.dtype()), value).into()
    }

    /// Whether two arrays are the same in form and, bit for bit, in content.
    pub fn is_identical(&self, other: &Array) -> bool {
        match (&self.repr, &other.repr) {
            (Repr::Concrete(a), Repr::Concrete(b)) => Arc::ptr_eq(a, b) || a.same_bits(b),
            (Repr::Traced(a), Repr::Traced(b)) => a.is_same(b),
            (Repr::Spec(a), Repr::Spec(b)) => a == b,
            (Repr::Failed(a), Repr::Failed(b)) => a.is_same(b),
            (Repr::Remote(a), Repr::Remote(b)) if Arc::ptr_eq(a, b) => true,
            (Repr::Remote(_), _) | (_, Repr::Remote(_)) => {
                self.concrete().zip(other.concrete()).is_some_and(|(a, b)| a.same_bits(b))
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repr {
            Repr::Concrete(c) => write!(f, "Array({}: {self})", c.ty()),
            Repr::Remote(r) => write!(f, "Array({} on {}: {self})", r.ty(), r.buffer().device().name()),
            Repr::Traced(t) => write!(f, "{t:?}"),
            Repr::Spec(t) => write!(f, "Spec({t})"),
            Repr::Failed(e) => write!(f, "Failed({e})"),
        }
    }
}
