//! The arithmetic of single numbers: the operations that an element of a result is made of, one by one, with the interpreter's bits.
//!
//! An operation that treats every element alike says what it is made of here ([`Primitive::scalar`](crate::primitives::Primitive::scalar)); a compiler
//! writes that into its loops. So no compiler knows operations by name, and one that a user wrote fuses like a built-in one.

mod eval;
mod form;
mod halves;
mod special;

pub use eval::evaluate;
pub use form::{Floats, Form, Local, Scalars, Step, Writer};
pub use halves::Half;
pub use special::Special;

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::types::DType;

/// The type of a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Ty {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Ty {
    /// The scalar type that computes with elements of a dtype. None for half floats, which compute as others ([`Half`]), and for complex numbers.
    pub fn computing(dtype: DType) -> Option<Ty> {
        Some(match dtype {
            DType::Bool => Ty::Bool,
            DType::I8 => Ty::I8,
            DType::I16 => Ty::I16,
            DType::I32 => Ty::I32,
            DType::I64 => Ty::I64,
            DType::U8 => Ty::U8,
            DType::U16 => Ty::U16,
            DType::U32 => Ty::U32,
            // No operation of a program computes with keys; what opens them is a bitcast to u64, which is nothing here.
            DType::U64 | DType::Key => Ty::U64,
            DType::F32 => Ty::F32,
            DType::F64 => Ty::F64,
            DType::F16 | DType::BF16 | DType::C64 | DType::C128 => return None,
        })
    }

    /// The scalar type that holds elements of a dtype: half floats by their bits, all others as they [compute](Ty::computing).
    pub fn holding(dtype: DType) -> Option<Ty> {
        if Half::of(dtype).is_some() { Some(Ty::U16) } else { Ty::computing(dtype) }
    }

    /// Bytes of one in memory. A bool is one byte, 0 or 1.
    pub fn size(self) -> usize {
        match self {
            Ty::Bool | Ty::I8 | Ty::U8 => 1,
            Ty::I16 | Ty::U16 => 2,
            Ty::I32 | Ty::U32 | Ty::F32 => 4,
            Ty::I64 | Ty::U64 | Ty::F64 => 8,
        }
    }

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }

    /// Whether it is an integer with a sign.
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64)
    }

    /// Whether it is an integer.
    pub fn is_int(self) -> bool {
        !self.is_float() && self != Ty::Bool
    }

    /// The signed integer of the same width.
    pub fn bits_type(self) -> Ty {
        match self.size() {
            1 => Ty::I8,
            2 => Ty::I16,
            4 => Ty::I32,
            _ => Ty::I64,
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ty::Bool => "bool",
            Ty::I8 => "i8",
            Ty::I16 => "i16",
            Ty::I32 => "i32",
            Ty::I64 => "i64",
            Ty::U8 => "u8",
            Ty::U16 => "u16",
            Ty::U32 => "u32",
            Ty::U64 => "u64",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
        })
    }
}

/// An elementary function: a straight line of basic operations, written once. The interpreter runs it on numbers; a compiler records it, where it is
/// used or once for many uses.
pub struct Elementary {
    /// Its name in texts.
    pub name: &'static str,
    /// How many operands it takes.
    pub arity: usize,
    /// About how many nanoseconds an element takes on one core, in wide vectors.
    pub cost: f32,
    pub(crate) write: fn(&mut Floats<'_>, &[Local]) -> Local,
    pub(crate) of_f32: fn(&[f32]) -> f32,
    pub(crate) of_f64: fn(&[f64]) -> f64,
}

/// An [`Elementary`] function by its identity: two of one name are two.
#[derive(Clone, Copy)]
pub struct Math(pub(crate) &'static Elementary);

impl std::ops::Deref for Math {
    type Target = Elementary;
    fn deref(&self) -> &Elementary {
        self.0
    }
}

impl Math {
    /// What it is made of, for floats of this type.
    pub fn form(self, ty: Ty) -> Form {
        Form::of_function(self, ty)
    }
}

impl PartialEq for Math {
    fn eq(&self, other: &Math) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Math {}

/// By name: what is kept beyond the process has no addresses. Equal ones have one name.
impl Hash for Math {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Math {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

/// The elementary function of this name in [`math`](crate::math), with its operands and what an element of it costs, as an operation.
macro_rules! elementary {
    ($f:ident ($($x:ident),*), $cost:literal) => {{
        static FUNCTION: $crate::scalar::Elementary = $crate::scalar::Elementary {
            name: stringify!($f),
            arity: [$(stringify!($x)),*].len(),
            cost: $cost,
            write: |r, x| {
                let &[$($x),*] = x else { return $crate::scalar::Local::default() };
                $crate::math::$f(r, $($x),*)
            },
            of_f32: |x| {
                let &[$($x),*] = x else { return f32::NAN };
                $crate::math::$f(&mut $crate::math::Plain::<f32>::default(), $($x),*)
            },
            of_f64: |x| {
                let &[$($x),*] = x else { return f64::NAN };
                $crate::math::$f(&mut $crate::math::Plain::<f64>::default(), $($x),*)
            },
        };
        $crate::scalar::Op::Math($crate::scalar::Math(&FUNCTION))
    }};
}
pub(crate) use elementary;

/// An operation on scalars. The operands of one have one type unless it says otherwise, and the result has it too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Integers wrap.
    Add,
    /// Integers wrap.
    Sub,
    /// Integers wrap.
    Mul,
    /// Integers: toward zero, by zero all bits set, `MIN / -1` wraps.
    Div,
    /// Integers only: the sign of the dividend, by zero the dividend.
    Rem,
    /// Integers wrap; floats turn their sign bit.
    Neg,
    /// Integers wrap; floats clear their sign bit.
    Abs,
    /// Floats: a·b + c, rounded once.
    Fma,
    /// Floats.
    Sqrt,
    /// Floats.
    Floor,
    /// Floats.
    Ceil,
    /// Floats: to nearest, halves to even.
    Round,
    /// Floats.
    Trunc,
    /// Floats: a < b ? a : b, as the machine does it.
    Lesser,
    /// Floats: a > b ? a : b.
    Greater,
    /// The larger; floats: NaN if either is, and +0 above -0.
    Max,
    /// The smaller; floats: NaN if either is, and -0 below +0.
    Min,
    /// Integers and bools.
    And,
    /// Integers and bools.
    Or,
    /// Integers and bools.
    Xor,
    /// Integers and bools.
    Not,
    /// Integers: by a second operand of the same type; by the width or more, or a negative count: 0.
    Shl,
    /// Integers: zeros come in, whatever the sign; by the width or more, or a negative count: 0.
    Shr,
    /// Integers: the sign bit comes in (of unsigned ones too: read as signed); by too much or negative: all sign.
    Sar,
    /// Integers: the bits turned up by a second operand of the same type, modulo the width.
    Rotl,
    /// Integers.
    Popcount,
    /// Integers: zero bits before the first set one.
    LeadingZeros,
    /// Any type; gives a bool.
    Eq,
    /// Any type; gives a bool; true for NaN.
    Ne,
    /// Any type (false before true); gives a bool.
    Lt,
    /// Any type; gives a bool.
    Le,
    /// A bool, then two of one type.
    Select,
    /// To another type as Rust's `as` does it: floats to integers saturate with NaN as 0, integers to integers by low
    /// bits, to bool: not equal to zero (NaN is true), from bool: 0 or 1.
    Convert(Ty),
    /// The same bits as a type of the same size.
    Bitcast(Ty),
    /// The bits of a half float, as `u16`, to the number as `f32`.
    Widen(Half),
    /// An `f32` to the bits of the nearest half float, ties to even, as `u16`.
    Narrow(Half),
    /// Floats: an elementary function.
    Math(Math),
    /// Floats: compiled Rust. `Special::Rare` has a third operand, a bool: where it is false the result does not matter,
    /// and the function is not called if it is false for all lanes.
    Special(Special),
}

impl Op {
    /// How many operands it takes.
    pub fn arity(self) -> usize {
        match self {
            Op::Neg
            | Op::Abs
            | Op::Sqrt
            | Op::Floor
            | Op::Ceil
            | Op::Round
            | Op::Trunc
            | Op::Not
            | Op::Popcount
            | Op::LeadingZeros
            | Op::Convert(_)
            | Op::Bitcast(_)
            | Op::Widen(_)
            | Op::Narrow(_) => 1,
            Op::Math(m) => m.arity,
            Op::Special(Special::Nextafter | Special::FloatRem) => 2,
            Op::Special(Special::Rare(_)) => 3,
            Op::Special(_) => 1,
            Op::Fma | Op::Select => 3,
            _ => 2,
        }
    }

    /// The type of the result for operands of these types.
    pub fn result(self, operands: &[Ty]) -> Ty {
        match self {
            Op::Eq | Op::Ne | Op::Lt | Op::Le => Ty::Bool,
            Op::Select => operands[1],
            Op::Convert(to) | Op::Bitcast(to) => to,
            Op::Widen(_) => Ty::F32,
            Op::Narrow(_) => Ty::U16,
            _ => operands[0],
        }
    }

    /// Whether it takes operands of these types.
    pub fn accepts(self, t: &[Ty]) -> bool {
        if t.len() != self.arity() {
            return false;
        }
        let same = t.iter().all(|x| *x == t[0]);
        let float = t[0].is_float();
        match self {
            Op::Select => t[0] == Ty::Bool && t[1] == t[2],
            Op::Special(Special::Rare(_)) => float && t[0] == t[1] && t[2] == Ty::Bool,
            Op::Fma
            | Op::Sqrt
            | Op::Floor
            | Op::Ceil
            | Op::Round
            | Op::Trunc
            | Op::Lesser
            | Op::Greater
            | Op::Math(_)
            | Op::Special(_) => same && float,
            Op::Rem | Op::Shl | Op::Shr | Op::Sar | Op::Rotl | Op::Popcount | Op::LeadingZeros => same && t[0].is_int(),
            Op::And | Op::Or | Op::Xor | Op::Not => same && !float,
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Neg | Op::Abs | Op::Max | Op::Min => same && t[0] != Ty::Bool,
            Op::Bitcast(to) => to.size() == t[0].size(),
            Op::Widen(_) => t[0] == Ty::U16,
            Op::Narrow(_) => t[0] == Ty::F32,
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Convert(_) => same,
        }
    }

    /// About how many nanoseconds an element takes on one core, in wide vectors.
    pub fn cost(self) -> f32 {
        match self {
            Op::Math(m) => m.cost,
            Op::Div | Op::Sqrt | Op::Rem | Op::Special(Special::FloatRem) => 0.6,
            Op::Special(_) => 40.0,
            Op::Widen(_) => 0.1,
            Op::Narrow(_) => 0.2,
            _ => 0.08,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Convert(to) => write!(f, "convert.{to}"),
            Op::Bitcast(to) => write!(f, "bitcast.{to}"),
            Op::Widen(half) => write!(f, "widen.{}", half.name()),
            Op::Narrow(half) => write!(f, "narrow.{}", half.name()),
            Op::Math(m) => f.write_str(m.name),
            Op::Special(Special::Polygamma(n)) => write!(f, "polygamma.{n}"),
            Op::Special(Special::Rare(r)) => write!(f, "rare.{}", format!("{r:?}").to_lowercase()),
            Op::Special(s) => f.write_str(&format!("{s:?}").to_lowercase()),
            op => f.write_str(&format!("{op:?}").to_lowercase()),
        }
    }
}
