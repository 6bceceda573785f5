//! Bits, truth and choice: operations without a derivative of their own, and the two that pass tangents through
//! (`select`, `clamp`).

// The same text serves every integer type; for some of them a conversion is no change.
#![allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)]

use super::kernel::{map, one_output, operand, zip, zip3};
use super::number::Ordered;
use super::unary::elementwise_rules;
use super::{NOT_A_NUMBER, Takes, same_type, same_type_one, samples_at};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::primitives::{
    Batch, Batched, Derivative, Entry, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types, entry,
};
use crate::scalar::{self, Local, Scalars};
use crate::types::{Complex, DType, Effects, bf16, dispatch, dispatch_int, dispatch_real, f16};
use crate::{param_names, rules_of};

/// The rules of operations whose results do not vary smoothly with any operand.
macro_rules! no_derivative {
    () => {
        fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
            Ok(Derivative::Zero)
        }
        fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
            Ok(Transposed::NotLinear)
        }
    };
}

macro_rules! bit_operations {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $takes:ident, $arity:literal, $scalar:ident,
        $(|$($v:ident),*| $int:expr)? $(, bool |$($w:ident),*| $bool:expr)?;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $name;

            impl Primitive for $name {
                rules_of!($text);
                fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                    same_type_one(infer, $arity, Takes::$takes)
                }
                fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                    let a = operand(inputs, 0)?;
                    one_output(match a.ty().dtype() {
                        $(DType::Bool => bit_operations!(@ bool, inputs, a, |$($w),*| $bool),)?
                        d => dispatch_int!(d, T => bit_operations!(@ T, inputs, a, $(|$($v),*| $int)?),
                            else fail!(DType, "no bits in {}", a.ty())),
                    })
                }
                no_derivative!();
                fn scalar(&self, s: &mut Scalars) -> Option<Local> {
                    Some(s.op(scalar::Op::$scalar, &s.operands()))
                }
                elementwise_rules!();
                fn samples() -> Vec<Sample> {
                    samples_at(&Op::new($name), $arity, Takes::$takes, &[])
                }
            }
        )*

        pub(super) fn entries() -> Vec<Entry> {
            vec![
                $(entry::<$name>($text),)*
                entry::<IsFinite>("is_finite"), entry::<Compare>("compare"),
                entry::<Select>("select"), entry::<Clamp>("clamp"),
            ]
        }
    };
    (@ $t:ty, $inputs:ident, $a:ident, |$x:ident| $e:expr) => { map($a, |$x: $t| -> $t { $e }) };
    (@ $t:ty, $inputs:ident, $a:ident, |$x:ident, $y:ident| $e:expr) => {
        zip($a, operand($inputs, 1)?, |$x: $t, $y: $t| -> $t { $e })
    };
}

bit_operations! {
    /// Every bit turned; of bools, not.
    Not = "not", Bits, 1, Not, |x| !x, bool |x| !x;
    /// The number of set bits.
    Popcount = "popcount", Ints, 1, Popcount, |x| x.count_ones() as T;
    /// The number of zero bits before the first set one.
    CountLeadingZeros = "count_leading_zeros", Ints, 1, LeadingZeros, |x| x.leading_zeros() as T;
    /// Bits set in both.
    And = "and", Bits, 2, And, |x, y| x & y, bool |x, y| x & y;
    /// Bits set in either.
    Or = "or", Bits, 2, Or, |x, y| x | y, bool |x, y| x | y;
    /// Bits set in one of the two.
    Xor = "xor", Bits, 2, Xor, |x, y| x ^ y, bool |x, y| x ^ y;
    /// Bits moved up; by the width or more, or a negative count: zero.
    ShiftLeft = "shift_left", Ints, 2, Shl, |x, y| u32::try_from(y).ok().and_then(|n| x.checked_shl(n)).unwrap_or(0);
    /// Bits moved down, zeros coming in; by the width or more, or a negative count: zero.
    ShiftRightLogical = "shift_right_logical", Ints, 2, Shr,
        |x, y| u32::try_from(y).ok().and_then(|n| x.shift_down(n)).unwrap_or(0);
    /// Bits moved down, the sign coming in; by the width or more, or a negative count: all sign.
    ShiftRightArithmetic = "shift_right_arithmetic", Ints, 2, Sar, |x, y| {
        let n = u32::try_from(y).ok().filter(|n| *n < T::BITS).unwrap_or(T::BITS - 1);
        x.sign_shift(n)
    };
}

/// Both ways of moving bits down, for signed and unsigned integers alike.
trait Shifts: Sized {
    fn shift_down(self, n: u32) -> Option<Self>;
    fn sign_shift(self, n: u32) -> Self;
}

macro_rules! shifts {
    ($($signed:ident $unsigned:ident),*) => {$(
        impl Shifts for $signed {
            fn shift_down(self, n: u32) -> Option<Self> { (self as $unsigned).checked_shr(n).map(|v| v as $signed) }
            fn sign_shift(self, n: u32) -> Self { self >> n }
        }
        impl Shifts for $unsigned {
            fn shift_down(self, n: u32) -> Option<Self> { self.checked_shr(n) }
            fn sign_shift(self, n: u32) -> Self { (self as $signed >> n) as $unsigned }
        }
    )*};
}
shifts!(i8 u8, i16 u16, i32 u32, i64 u64);

/// Whether a float is neither infinite nor NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsFinite;

impl Primitive for IsFinite {
    rules_of!("is_finite");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        same_type(infer, 1, Takes::Floats).map(|ty| smallvec::smallvec![ty.with_dtype(DType::Bool)])
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        one_output(match a.ty().dtype() {
            DType::F16 => map(a, f16::is_finite),
            DType::BF16 => map(a, bf16::is_finite),
            DType::F32 => map(a, f32::is_finite),
            _ => map(a, f64::is_finite),
        })
    }
    no_derivative!();
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let x = s.operand(0);
        let (size, infinity) = (s.op(scalar::Op::Abs, &[x]), s.number(s.ty(x), f64::INFINITY));
        Some(s.op(scalar::Op::Lt, &[size, infinity]))
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        samples_at(&Op::new(IsFinite), 1, Takes::Floats, &[0.5, -3.0])
    }
}

param_names! {
    /// Which relation [`Compare`] tests.
    pub enum Direction {
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Ne = "ne",
        /// Less.
        Lt = "lt",
        /// Less or equal.
        Le = "le",
        /// Greater.
        Gt = "gt",
        /// Greater or equal.
        Ge = "ge",
    }
}

/// A comparison. NaN is unequal to everything and in no order with anything.
#[derive(Clone, Copy, Debug)]
pub struct Compare {
    /// The relation.
    pub direction: Direction,
}

impl Primitive for Compare {
    rules_of!("compare"; direction);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(2)?;
        let ty = infer.all_same()?;
        if ty.dtype() == DType::Key {
            return Err(crate::error::error!(DType, "keys are not compared: {ty}").help(NOT_A_NUMBER));
        }
        if ty.dtype().is_complex() && !matches!(self.direction, Direction::Eq | Direction::Ne) {
            return Err(crate::error::error!(DType, "complex numbers have no order: {ty}")
                .help("compare `.abs()`, `.real()` or `.imag()`"));
        }
        Ok(smallvec::smallvec![ty.with_dtype(DType::Bool)])
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (a, b) = (operand(inputs, 0)?, operand(inputs, 1)?);
        macro_rules! compare {
            ($t:ty) => {
                match self.direction {
                    Direction::Eq => zip(a, b, |x: $t, y: $t| x == y),
                    Direction::Ne => zip(a, b, |x: $t, y: $t| x != y),
                    Direction::Lt => zip(a, b, |x: $t, y: $t| x < y),
                    Direction::Le => zip(a, b, |x: $t, y: $t| x <= y),
                    Direction::Gt => zip(a, b, |x: $t, y: $t| x > y),
                    Direction::Ge => zip(a, b, |x: $t, y: $t| x >= y),
                }
            };
        }
        macro_rules! complex {
            ($t:ty) => {
                zip(a, b, |x: $t, y: $t| (x == y) == (self.direction == Direction::Eq))
            };
        }
        one_output(match a.ty().dtype() {
            DType::Bool => compare!(bool),
            DType::C64 => complex!(Complex<f32>),
            DType::C128 => complex!(Complex<f64>),
            d => dispatch_real!(d, T => compare!(T), else fail!(DType, "no order")),
        })
    }
    no_derivative!();
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let (a, b) = (s.operand(0), s.operand(1));
        Some(match self.direction {
            Direction::Eq => s.op(scalar::Op::Eq, &[a, b]),
            Direction::Ne => s.op(scalar::Op::Ne, &[a, b]),
            Direction::Lt => s.op(scalar::Op::Lt, &[a, b]),
            Direction::Le => s.op(scalar::Op::Le, &[a, b]),
            Direction::Gt => s.op(scalar::Op::Lt, &[b, a]),
            Direction::Ge => s.op(scalar::Op::Le, &[b, a]),
        })
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        let equality = |d: &Direction| matches!(d, Direction::Eq | Direction::Ne);
        let mut all = Vec::new();
        for direction in Direction::ALL {
            let op = Op::new(Compare { direction: *direction });
            let takes = if equality(direction) { Takes::Numbers } else { Takes::Reals };
            all.extend(samples_at(&op, 2, takes, &[0.5, -3.0, 0.5, 2.0]));
            all.push(Sample::new(op, vec![Array::from([true, false, true]), Array::from([true, true, false])]));
        }
        all
    }
}

/// The second operand where the first is true, the third elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Select;

impl Primitive for Select {
    rules_of!("select");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(3)?;
        infer.dtype(0, "bools to choose by", |d| d == DType::Bool)?;
        let (pred, a, b) = (infer.inputs[0].clone(), infer.inputs[1].clone(), infer.inputs[2].clone());
        if a.dtype() != b.dtype() {
            fail!(DType, "cannot choose between {a} and {b}");
        }
        if !infer.same_shape(a.shape(), b.shape()) || !infer.same_shape(pred.shape(), a.shape()) {
            fail!(Shape, "cannot choose between {a} and {b} by {pred}");
        }
        Ok(smallvec::smallvec![a])
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (p, a, b) = (operand(inputs, 0)?, operand(inputs, 1)?, operand(inputs, 2)?);
        one_output(dispatch!(a.ty().dtype(), T => zip3(p, a, b, |p: bool, a: T, b: T| if p { a } else { b })))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([pred, a, b], [_, a_dot, b_dot]) = (jvp.primals, jvp.tangents) else {
            fail!(Rule, "wants three operands")
        };
        if a_dot.is_none() && b_dot.is_none() {
            return Ok(Derivative::Zero);
        }
        let or_zero = |t: &Option<Array>, x: &Array| t.clone().unwrap_or_else(|| x.zeros_like());
        Derivative::one(pred.select(or_zero(a_dot, a), or_zero(b_dot, b)))
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let ([pred, a, b], [Some(y_bar)]) = (transpose.operands, transpose.cotangents) else {
            return Ok(Transposed::Cotangents(smallvec::smallvec![None, None, None]));
        };
        let Some(pred) = pred.known() else { return Ok(Transposed::NotLinear) };
        let zero = y_bar.zeros_like();
        let a_bar = a.unknown().map(|_| pred.select(y_bar, &zero));
        let b_bar = b.unknown().map(|_| pred.select(&zero, y_bar));
        Ok(Transposed::Cotangents(smallvec::smallvec![None, a_bar, b_bar]))
    }
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        Some(s.op(scalar::Op::Select, &s.operands()))
    }
    elementwise_rules!(Bits);
    fn samples() -> Vec<Sample> {
        let op = Op::new(Select);
        let pred = Array::from([true, false, true]);
        let pair = |d: DType| {
            vec![pred.clone(), Array::from([1.0_f64, 2.0, 3.0]).cast(d), Array::from([4.0_f64, 5.0, 6.0]).cast(d)]
        };
        let mut all: Vec<Sample> = DType::VALUES.into_iter().map(|d| Sample::new(op.clone(), pair(d))).collect();
        all.push(Sample::new(op, vec![Array::from(true), Array::from(1.5_f64), Array::from(2.5_f64)]));
        all
    }
}

/// The second operand held between the first and the third. Where it touches a bound its derivative is zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clamp;

impl Primitive for Clamp {
    rules_of!("clamp");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        same_type_one(infer, 3, Takes::Reals)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (lo, x, hi) = (operand(inputs, 0)?, operand(inputs, 1)?, operand(inputs, 2)?);
        one_output(dispatch_real!(x.ty().dtype(), T => zip3(lo, x, hi, |lo: T, x: T, hi: T| x.larger(lo).smaller(hi)),
            else fail!(DType, "no order")))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let [lo, x, hi] = jvp.primals else { fail!(Rule, "wants three operands") };
        let masks = [lo.gt(x) & lo.lt(hi), x.gt(lo) & x.lt(hi), hi.lt(x) | hi.le(lo)];
        let mut total: Option<Array> = None;
        for (mask, t) in masks.iter().zip(jvp.tangents) {
            if let Some(t) = t {
                let part = mask.select(t, t.zeros_like());
                total = Some(total.map_or_else(|| part.clone(), |sum| sum + &part));
            }
        }
        total.map_or(Ok(Derivative::Zero), Derivative::one)
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let (low, x, high) = (s.operand(0), s.operand(1), s.operand(2));
        let above = s.op(scalar::Op::Max, &[x, low]);
        Some(s.op(scalar::Op::Min, &[above, high]))
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        let op = Op::new(Clamp);
        let three = |d: DType| {
            [[-1.0_f64, 0.5, 2.0, 1.0], [0.3, 0.2, 3.5, 1.5], [1.0, 2.5, 3.0, 4.0]]
                .map(|v| Array::from(v).cast(d))
                .to_vec()
        };
        vec![
            Sample::new(op.clone(), three(DType::F64)),
            Sample::new(op.clone(), three(DType::F32)).rough(),
            Sample::new(op.clone(), three(DType::I32)),
            Sample::new(op, vec![Array::from(0.0_f64), Array::from(0.0_f64), Array::from(1.0_f64)]).rough(),
        ]
    }
}
