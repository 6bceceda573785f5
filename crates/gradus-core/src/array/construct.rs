//! Arrays from Rust values: scalars, arrays, nested arrays, vectors, iterators, constants.

use std::any::Any;

use super::data::memory;
use super::operand::checked;
use super::{Array, Concrete};
use crate::error::{Result, counted, error, fail};
use crate::types::{Complex, Element, IntoShape, Scalar, Shape, Type, bf16, f16};

macro_rules! from_numbers {
    ($($t:ty),*) => {$(
        impl From<$t> for Array {
            fn from(value: $t) -> Array {
                Array::scalar(Scalar::from(value))
            }
        }
        impl Nested for $t {
            type Element = $t;
            fn dims(&self, _: &mut Vec<usize>) -> bool { true }
            fn append(self, out: &mut Vec<$t>) { out.push(self) }
        }
    )*};
}
from_numbers!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>);

/// Numbers, arrays of numbers, vectors of arrays of numbers, and so on.
pub trait Nested: 'static {
    /// The number at the bottom.
    type Element: Element;
    /// Adds the dimensions, outermost first; `false` if rows have different lengths.
    fn dims(&self, dims: &mut Vec<usize>) -> bool;
    /// Adds the numbers in row-major order.
    fn append(self, out: &mut Vec<Self::Element>);
}

fn nested_dims<N: Nested>(items: &[N], dims: &mut Vec<usize>) -> bool {
    dims.push(items.len());
    let depth = dims.len();
    let mut even = match items.first() {
        Some(first) => first.dims(dims),
        None => true,
    };
    let mut row = Vec::new();
    for item in items.iter().skip(1) {
        row.clear();
        even &= item.dims(&mut row) && row == dims[depth..];
        if !even {
            break;
        }
    }
    even
}

impl<N: Nested, const L: usize> Nested for [N; L] {
    type Element = N::Element;
    fn dims(&self, dims: &mut Vec<usize>) -> bool {
        nested_dims(self, dims)
    }
    fn append(self, out: &mut Vec<N::Element>) {
        self.into_iter().for_each(|item| item.append(out));
    }
}

impl<N: Nested> Nested for Vec<N> {
    type Element = N::Element;
    fn dims(&self, dims: &mut Vec<usize>) -> bool {
        nested_dims(self, dims)
    }
    fn append(self, out: &mut Vec<N::Element>) {
        self.into_iter().for_each(|item| item.append(out));
    }
}

#[track_caller]
fn from_nested<N: Nested>(nested: N) -> Array {
    let mut dims = Vec::new();
    if !nested.dims(&mut dims) {
        return checked(Err(error!(Shape, "rows of different lengths do not make an array")
            .help("pad the rows to one length, or keep a `Vec<Array>`")));
    }
    let mut values = Vec::with_capacity(dims.iter().product());
    nested.append(&mut values);
    // An empty outer list hides the inner dimensions: [] of rows is [0].
    Concrete::from_vec(&dims, values).into()
}

impl<N: Nested, const L: usize> From<[N; L]> for Array {
    #[track_caller]
    fn from(nested: [N; L]) -> Array {
        from_nested(nested)
    }
}

/// A flat vector is taken over without a copy; nested ones are flattened.
impl<N: Nested> From<Vec<N>> for Array {
    #[track_caller]
    fn from(nested: Vec<N>) -> Array {
        // A box of anything can be asked whether it is a flat vector and give it up without copying.
        let boxed: Box<dyn Any> = Box::new(nested);
        match boxed.downcast::<Vec<N::Element>>() {
            Ok(flat) => Concrete::from_vec(&[flat.len()], *flat).into(),
            Err(boxed) => match boxed.downcast::<Vec<N>>() {
                Ok(nested) => from_nested(*nested),
                Err(_) => checked(Err(error!(Rule, "a vector that is not itself"))),
            },
        }
    }
}

impl<T: Element> From<&[T]> for Array {
    fn from(values: &[T]) -> Array {
        Concrete::from_vec(&[values.len()], values.to_vec()).into()
    }
}

impl<T: Element> FromIterator<T> for Array {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Array {
        let values = values.into_iter();
        // A range can be longer than any memory.
        let mut all = match memory(values.size_hint().0) {
            Ok(all) => all,
            Err(e) => return checked(Err(e)),
        };
        all.extend(values);
        Concrete::from_vec(&[all.len()], all).into()
    }
}

impl Array {
    /// An array of a shape over a row-major vector, which is taken over without a copy.
    #[track_caller]
    pub fn from_vec<T: Element>(values: Vec<T>, shape: impl IntoShape) -> Array {
        fn build<T: Element>(values: Vec<T>, shape: Shape) -> Result<Array> {
            let ty = Type::checked(T::DTYPE, shape)?;
            if ty.shape().count() != Some(values.len()) {
                fail!(Shape, "{} cannot fill {ty}", counted(values.len(), "number"));
            }
            Ok(Concrete::dense(ty, values).into())
        }
        checked(build(values, shape.into_shape()))
    }

    /// One number in every place of a shape. No memory per element; the shape may be symbolic inside a trace.
    #[track_caller]
    pub fn full<T: Element>(shape: impl IntoShape, value: T) -> Array {
        Array::full_scalar(shape.into_shape(), value.into_scalar())
    }

    /// A number of any dtype in every place of a shape, which may be symbolic inside a trace.
    #[track_caller]
    pub fn full_scalar(shape: Shape, value: Scalar) -> Array {
        match Type::checked(value.dtype(), shape) {
            Ok(ty) => checked(super::operand::number_like(value, &ty)),
            Err(e) => checked(Err(e)),
        }
    }

    /// Zeros: `Array::zeros::<f32>([2, 3])`.
    #[track_caller]
    pub fn zeros<T: Element>(shape: impl IntoShape) -> Array {
        Array::full_scalar(shape.into_shape(), Scalar::zero(T::DTYPE))
    }

    /// Ones: `Array::ones::<f32>([2, 3])`.
    #[track_caller]
    pub fn ones<T: Element>(shape: impl IntoShape) -> Array {
        Array::full_scalar(shape.into_shape(), Scalar::one(T::DTYPE))
    }
}
