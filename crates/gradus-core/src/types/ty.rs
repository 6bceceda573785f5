//! The type of a value: element type and shape. Shared, because most equations pass their operand's type on.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use super::shape::{Dims, Strides, count, row_major};
use super::{DType, Dim, Shape};
use crate::error::{Error, Result, error, fail};

/// `f32[B,16]`: what is known of a value before it has numbers. Cloning is cheap.
#[derive(Clone)]
pub struct Type(Arc<Parts>);

struct Parts {
    dtype: DType,
    shape: Shape,
    /// How an array of it lies in memory by itself, if its dimensions are known. Every result of every call asks.
    dense: Option<Dense>,
}

/// A dense row-major array: what follows from its dimensions.
pub(crate) struct Dense {
    pub(crate) dims: Dims,
    pub(crate) strides: Strides,
    /// The number of elements; the most there are if they cannot be counted.
    pub(crate) count: usize,
}

impl Parts {
    fn new(dtype: DType, shape: Shape) -> Parts {
        let dense = shape.known().map(|dims| Dense { strides: row_major(&dims), count: count(&dims), dims });
        Parts { dtype, shape, dense }
    }
}

impl Type {
    /// A type from its parts. The caller has checked the shape ([`Shape::check`]).
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Type {
        let shape = shape.into();
        if shape.rank() == 0 { Type::scalar(dtype) } else { Type(Arc::new(Parts::new(dtype, shape))) }
    }

    /// The type of a single number.
    pub fn scalar(dtype: DType) -> Type {
        static SCALARS: OnceLock<[Type; 16]> = OnceLock::new();
        let scalars =
            SCALARS.get_or_init(|| DType::ALL.map(|dtype| Type(Arc::new(Parts::new(dtype, Shape::scalar())))));
        scalars[dtype as usize].clone()
    }

    /// How an array of it lies in memory by itself; none if a dimension is symbolic.
    #[inline]
    pub(crate) fn dense(&self) -> Option<&Dense> {
        self.0.dense.as_ref()
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.shape.rank()
    }

    /// The same shape with another element type.
    pub fn with_dtype(&self, dtype: DType) -> Type {
        if dtype == self.dtype() { self.clone() } else { Type::new(dtype, self.shape().clone()) }
    }

    /// The same element type with another shape.
    pub fn with_shape(&self, shape: impl Into<Shape>) -> Type {
        Type::new(self.dtype(), shape)
    }

    /// Bytes of an array of this type, if its size is known.
    pub fn bytes(&self) -> Option<usize> {
        self.shape().count()?.checked_mul(self.dtype().size())
    }

    /// The bytes of an array of this type where every symbol is this number.
    pub(crate) fn bytes_where(&self, symbol: i64) -> u128 {
        let size = self.shape().size().evaluate(&|_| Some(symbol)).map_or(u64::MAX as u128, |n| n.max(0) as u128);
        size * self.dtype().size() as u128
    }

    /// Its bytes, where a symbol counts as a thousand.
    pub(crate) fn estimated_bytes(&self) -> u128 {
        self.bytes_where(1000)
    }

    /// Replaces every dimension.
    pub fn map_dims(&self, f: impl FnMut(&Dim) -> Dim) -> Type {
        if self.shape().is_symbolic() { self.with_shape(self.shape().map(f)) } else { self.clone() }
    }

    /// Parses a type at the start of `text`; the number of bytes used comes with it.
    pub(crate) fn parse_prefix(text: &str) -> Result<(Type, usize)> {
        let name = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let dtype: DType = text[..name].parse()?;
        let mut at = name;
        if text.as_bytes().get(at) != Some(&b'[') {
            fail!(Parse, "a type needs its shape in brackets after the dtype, as in `f32[2,3]` or `f32[]`");
        }
        at += 1;
        let mut dims = Vec::new();
        loop {
            at += text[at..].len() - text[at..].trim_start().len();
            match text.as_bytes().get(at) {
                Some(b']') => return Ok((Type::checked(dtype, dims.into())?, at + 1)),
                Some(b',') if !dims.is_empty() => at += 1,
                Some(_) if dims.is_empty() || text[..at].trim_end().ends_with(',') => {
                    let (dim, used) = Dim::parse_prefix(&text[at..]).map_err(|e| error!(Parse, "in a shape: {e}"))?;
                    dims.push(dim);
                    at += used;
                }
                Some(_) => fail!(Parse, "expected `,` or `]` in a shape"),
                None => {
                    return Err(error!(Parse, "a shape is not closed: expected `]`")
                        .help("a type is an element type and dimensions, as in `f32[B, 2*B+1]` or `f64[]`"));
                }
            }
        }
    }

    /// A type whose shape an array can have.
    pub fn checked(dtype: DType, shape: Shape) -> Result<Type> {
        shape.check()?;
        Ok(Type::new(dtype, shape))
    }
}

impl PartialEq for Type {
    #[inline]
    fn eq(&self, other: &Type) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.dtype() == other.dtype() && self.shape() == other.shape())
    }
}

impl Eq for Type {}

impl Hash for Type {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.dtype(), self.shape()).hash(state);
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype(), self.shape())
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Type {
    type Err = Error;

    fn from_str(text: &str) -> Result<Type> {
        let text = text.trim();
        let (ty, used) = Type::parse_prefix(text)?;
        if used < text.len() {
            fail!(
                Parse,
                "unexpected text after the type {ty}: `{}`",
                text[used..].chars().take(40).collect::<String>()
            );
        }
        Ok(ty)
    }
}
