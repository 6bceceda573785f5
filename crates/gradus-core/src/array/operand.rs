//! What may stand beside an array in an operator or be passed as axes, and how two operands are made to fit.

use std::ops::RangeFull;

use super::{Array, Concrete};
use crate::error::{Location, Result, counted, error};
use crate::primitives::convert::Convert;
use crate::primitives::shaping::Broadcast;
use crate::primitives::size::Size;
use crate::primitives::{Op, Primitive};
use crate::trace::{bind, current_place};
use crate::types::{Complex, DType, Decision, Dim, Scalar, Shape, Type, bf16, f16};

/// An operand as the operation sees it.
pub enum OperandValue {
    /// An array.
    Array(Array),
    /// A number written beside an array: it takes the array's dtype when it loses nothing.
    Number(Scalar),
    /// A symbolic dimension as a number, which it is when the program runs: it takes the array's dtype.
    Dim(Dim),
}

impl OperandValue {
    /// The operand as an array: a number with a dtype of its own.
    #[track_caller]
    pub fn into_array(self) -> Array {
        match self {
            OperandValue::Array(a) => a,
            OperandValue::Number(n) => Array::scalar(n),
            OperandValue::Dim(d) => Array::from_dim(&d, DType::I64),
        }
    }
}

impl Operand for OperandValue {
    fn into_operand(self) -> OperandValue {
        self
    }
}

/// Whatever can stand beside an array in an operator: arrays, dimensions, references to them, and Rust numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand beside an array",
    note = "arrays, references to them, numbers and dimensions can; make an array of other values: `Array::from(..)`"
)]
pub trait Operand {
    /// The operand.
    fn into_operand(self) -> OperandValue;
}

impl Operand for Array {
    fn into_operand(self) -> OperandValue {
        OperandValue::Array(self)
    }
}

impl Operand for &Array {
    fn into_operand(self) -> OperandValue {
        OperandValue::Array(self.clone())
    }
}

/// A dimension as a number: symbolic ones stay symbolic.
impl Operand for Dim {
    fn into_operand(self) -> OperandValue {
        match self.constant() {
            Some(v) => OperandValue::Number(Scalar::I64(v)),
            None => OperandValue::Dim(self),
        }
    }
}

impl Operand for &Dim {
    fn into_operand(self) -> OperandValue {
        self.clone().into_operand()
    }
}

impl Operand for Scalar {
    fn into_operand(self) -> OperandValue {
        OperandValue::Number(self)
    }
}

macro_rules! number_operands {
    ($($t:ty),*) => {$(
        impl Operand for $t {
            fn into_operand(self) -> OperandValue {
                OperandValue::Number(Scalar::from(self))
            }
        }
    )*};
}
number_operands!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>);

impl Operand for usize {
    fn into_operand(self) -> OperandValue {
        OperandValue::Number(Scalar::U64(self as u64))
    }
}

impl Operand for isize {
    fn into_operand(self) -> OperandValue {
        OperandValue::Number(Scalar::I64(self as i64))
    }
}

/// An error becomes an array that carries it with the caller's line.
#[track_caller]
pub(crate) fn checked(result: Result<Array>) -> Array {
    let place: Location = current_place();
    result.map_err(|e| e.at(place)).into()
}

/// The shape two shapes broadcast to: equal dimensions, or one of them 1, aligned at the end.
pub(crate) fn broadcast_shapes(a: &Shape, b: &Shape) -> Option<Shape> {
    let rank = a.rank().max(b.rank());
    let at = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map(|i| s[i].clone());
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (Some(x), Some(y)) => match (x.constant(), y.constant()) {
                (Some(1), _) => Some(y),
                (_, Some(1)) => Some(x),
                // Not known to differ: taken for equal, which the operation's type rule has checked at run time.
                _ => (x.equals(&y) != Decision::No).then_some(x),
            },
            (Some(x), None) | (None, Some(x)) => Some(x),
            (None, None) => None,
        })
        .collect()
}

/// An array seen in a larger shape, repeated where it has no axis or size 1.
#[track_caller]
pub(crate) fn broadcast(a: &Array, shape: &Shape) -> Array {
    let same = |x: &Dim, y: &Dim| !(x.constant() == Some(1) && y.constant() != Some(1));
    if a.rank() == shape.rank() && a.shape().iter().zip(shape.iter()).all(|(x, y)| same(x, y)) {
        return a.clone();
    }
    let shift = shape.rank().saturating_sub(a.rank());
    let axes = (shift..shape.rank()).collect();
    // Axes that stay take the operand's own dimension, so that dimensions taken for equal meet in one place only.
    let shape = (0..shape.rank())
        .map(|i| match i.checked_sub(shift).map(|i| &a.shape()[i]) {
            Some(own) if own.constant() != Some(1) => own.clone(),
            _ => shape[i].clone(),
        })
        .collect();
    bind(Op::new(Broadcast { shape, axes }), std::slice::from_ref(a))
}

/// A number as an array of a type; one number in every place.
#[track_caller]
pub(crate) fn number_like(value: Scalar, ty: &Type) -> Result<Array> {
    let value = value.literal_as(ty.dtype())?;
    Ok(if ty.shape().is_symbolic() {
        broadcast(&Array::scalar(value), ty.shape())
    } else {
        Concrete::splat(ty.clone(), value).into()
    })
}

#[track_caller]
pub(crate) fn convert(a: &Array, dtype: DType) -> Array {
    if a.error().is_some() || a.dtype() == dtype {
        return a.clone();
    }
    bind(Op::new(Convert { dtype }), std::slice::from_ref(a))
}

/// Two operands with one dtype and one shape, by the promotion table and broadcasting.
#[track_caller]
pub(crate) fn broadcast_pair(a: &Array, b: impl Operand) -> Result<(Array, Array)> {
    let ta = a.ty()?.clone();
    match b.into_operand() {
        OperandValue::Number(n) => Ok((a.clone(), number_like(n, &ta)?)),
        OperandValue::Dim(d) => Ok((a.clone(), broadcast(&dim_as(&d, ta.dtype())?, ta.shape()).ok()?)),
        OperandValue::Array(b) => {
            let tb = b.ty()?.clone();
            if ta == tb {
                return Ok((a.clone(), b));
            }
            let Some(dtype) = ta.dtype().promote(tb.dtype()) else {
                // Whole numbers are cast to floats rather than the other way round.
                let wanted = if ta.dtype().is_inexact() { ta.dtype() } else { tb.dtype() };
                return Err(error!(DType, "{ta} and {tb} have no dtype that holds both without loss")
                    .help(format!("cast one of them, as in `x.cast(DType::{})`", wanted.rust_name())));
            };
            let Some(shape) = broadcast_shapes(ta.shape(), tb.shape()) else {
                return Err(error!(Shape, "{ta} and {tb} do not broadcast together")
                    .help("shapes are aligned at the end; dimensions must be equal or 1"));
            };
            let (a, b) = (convert(a, dtype), convert(&b, dtype));
            Ok((broadcast(&a, &shape).ok()?, broadcast(&b, &shape).ok()?))
        }
    }
}

/// Applies an operation of two operands after making them fit.
#[track_caller]
pub(crate) fn binary(primitive: &'static dyn Primitive, a: &Array, b: impl Operand) -> Array {
    let place = current_place();
    match broadcast_pair(a, b) {
        Ok((a, b)) => bind(Op::fixed(primitive), &[a, b]),
        Err(e) => e.in_operation(primitive.name()).at(place).into(),
    }
}

impl Array {
    /// A dimension as a scalar array; a symbolic one gets its number when the program runs. It is rounded to a float; an integer dtype that does not hold it is
    /// an error, of the call if the number is known only then.
    #[doc(alias = "shape_as_value")]
    #[track_caller]
    pub fn from_dim(dim: &Dim, dtype: DType) -> Array {
        let whole = if dtype.is_int() { dtype } else { DType::I64 };
        checked(dim_as(dim, whole)).cast(dtype)
    }
}

/// A dimension beside numbers of a dtype: exactly, as a literal would be.
#[track_caller]
pub fn dim_as(dim: &Dim, dtype: DType) -> Result<Array> {
    match dim.constant() {
        Some(v) => Scalar::I64(v).literal_as(dtype).map(Array::scalar),
        None => bind(Op::new(Size { dim: dim.clone(), dtype }), &[]).ok(),
    }
}

/// One axis as a position from the front.
pub(crate) fn resolve_axis(axis: isize, rank: usize) -> Result<usize> {
    let from_front = if axis < 0 { axis.checked_add_unsigned(rank) } else { Some(axis) };
    match from_front.and_then(|a| usize::try_from(a).ok()).filter(|a| *a < rank) {
        Some(a) => Ok(a),
        None if rank == 0 => Err(error!(Axis, "axis {axis} of a scalar, which has none")
            .help("give it axes with `reshape` or `expand_dims`")),
        None => Err(error!(
            Axis,
            "axis {axis} of an array with {}: axes are {} to {}",
            counted(rank, "axis"),
            -(rank as isize),
            rank - 1
        )
        .help("look at `x.shape()`; axes count from 0, negative ones from the end")),
    }
}

/// What may be written where axes are wanted: one, several, or `()` for all. Negative axes count from the end.
pub trait IntoAxes {
    /// The axes from the front, in the order written, each once.
    fn into_axes(self, rank: usize) -> Result<Vec<usize>>;
}

fn resolve_all(axes: impl IntoIterator<Item = isize>, rank: usize) -> Result<Vec<usize>> {
    let mut resolved = Vec::new();
    for axis in axes {
        let a = resolve_axis(axis, rank)?;
        if resolved.contains(&a) {
            return Err(error!(Axis, "axis {axis} is named twice").help(
                "name each axis once; negative axes count from the end, so `0` and `-2` of two axes are the same one",
            ));
        }
        resolved.push(a);
    }
    Ok(resolved)
}

impl IntoAxes for () {
    fn into_axes(self, rank: usize) -> Result<Vec<usize>> {
        Ok((0..rank).collect())
    }
}

impl IntoAxes for RangeFull {
    fn into_axes(self, rank: usize) -> Result<Vec<usize>> {
        ().into_axes(rank)
    }
}

macro_rules! into_axes {
    ($($t:ty),*) => {$(
        impl IntoAxes for $t {
            fn into_axes(self, rank: usize) -> Result<Vec<usize>> {
                // An axis too large for isize is out of range whatever the rank.
                resolve_all([isize::try_from(self).unwrap_or(isize::MAX)], rank)
            }
        }
        impl<const N: usize> IntoAxes for [$t; N] {
            fn into_axes(self, rank: usize) -> Result<Vec<usize>> {
                resolve_all(self.into_iter().map(|a| isize::try_from(a).unwrap_or(isize::MAX)), rank)
            }
        }
        impl IntoAxes for &[$t] {
            fn into_axes(self, rank: usize) -> Result<Vec<usize>> {
                resolve_all(self.iter().map(|a| isize::try_from(*a).unwrap_or(isize::MAX)), rank)
            }
        }
        impl IntoAxes for Vec<$t> {
            fn into_axes(self, rank: usize) -> Result<Vec<usize>> {
                self.as_slice().into_axes(rank)
            }
        }
    )*};
}
into_axes!(i32, isize, usize);
