//! The sixteen element types and the promotion table.
//!
//! Two arrays of different dtypes meet in the smallest dtype that holds every value of both exactly; where none
//! exists (`i64` beside `f64`) the meeting is an error and the user casts. Nothing is ever narrowed in silence.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, error};

/// The type of an array's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
    /// A random key: 64 bits that are moved, split and drawn from, but not computed with.
    Key,
}

use DType::*;

impl DType {
    /// All of them, in the order of the table.
    pub const ALL: [DType; 16] = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128, Key];

    /// Bools and numbers: all but keys.
    pub const VALUES: [DType; 15] = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128];

    /// The name in programs and specs: `f32`, `bool`, `c64`.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            C64 => "c64",
            C128 => "c128",
            Key => "key",
        }
    }

    /// The variant's name in Rust, for texts that say what to write: `F32`, `Bool`.
    pub fn rust_name(self) -> String {
        match self {
            Bool => "Bool".to_string(),
            Key => "Key".to_string(),
            _ => self.name().to_uppercase(),
        }
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Bool | I8 | U8 => 1,
            I16 | U16 | F16 | BF16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 | C64 | Key => 8,
            C128 => 16,
        }
    }

    /// A real floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64)
    }

    /// A complex type.
    pub const fn is_complex(self) -> bool {
        matches!(self, C64 | C128)
    }

    /// A float or a complex number: a type that derivatives exist for.
    pub const fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// A number: neither a bool nor a key.
    pub const fn is_number(self) -> bool {
        self.is_int() || self.is_inexact()
    }

    /// A signed or unsigned integer.
    pub const fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned()
    }

    /// `i8` to `i64`.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, I8 | I16 | I32 | I64)
    }

    /// The whole numbers that it holds, each of them, from the least to the most; none if those are all that a dimension can be.
    pub(crate) const fn whole_range(self) -> Option<(i64, i64)> {
        match self {
            Bool | Key => Some((0, 1)),
            I8 => Some((i8::MIN as i64, i8::MAX as i64)),
            I16 => Some((i16::MIN as i64, i16::MAX as i64)),
            I32 => Some((i32::MIN as i64, i32::MAX as i64)),
            U8 => Some((0, u8::MAX as i64)),
            U16 => Some((0, u16::MAX as i64)),
            U32 => Some((0, u32::MAX as i64)),
            U64 => Some((0, i64::MAX)),
            F16 => Some((-(1 << 11), 1 << 11)),
            BF16 => Some((-(1 << 8), 1 << 8)),
            F32 | C64 => Some((-(1 << 24), 1 << 24)),
            // No array has as many elements as a double has places.
            I64 | F64 | C128 => None,
        }
    }

    /// `u8` to `u64`.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, U8 | U16 | U32 | U64)
    }

    /// The type of a complex number's parts; a real type is its own.
    pub const fn real_part(self) -> DType {
        match self {
            C64 => F32,
            C128 => F64,
            other => other,
        }
    }

    /// The complex type whose parts are of this type.
    pub const fn complex_of(self) -> Option<DType> {
        match self {
            F32 => Some(C64),
            F64 => Some(C128),
            _ => None,
        }
    }

    /// Whether every value of `self` is a value of `to`.
    pub const fn fits_in(self, to: DType) -> bool {
        // An integer's bits without its sign; a float's digits. bool is a one-bit unsigned integer.
        const fn int_bits(d: DType) -> Option<(u32, bool)> {
            match d {
                Bool => Some((1, false)),
                I8 => Some((7, true)),
                I16 => Some((15, true)),
                I32 => Some((31, true)),
                I64 => Some((63, true)),
                U8 => Some((8, false)),
                U16 => Some((16, false)),
                U32 => Some((32, false)),
                U64 => Some((64, false)),
                _ => None,
            }
        }
        // (significand bits, exponent bits)
        const fn float_bits(d: DType) -> Option<(u32, u32)> {
            match d.real_part() {
                F16 => Some((11, 5)),
                BF16 => Some((8, 8)),
                F32 => Some((24, 8)),
                F64 => Some((53, 11)),
                _ => None,
            }
        }
        if self as u8 == to as u8 {
            return true;
        }
        if to as u8 == Bool as u8
            || self as u8 == Key as u8
            || to as u8 == Key as u8
            || (self.is_complex() && !to.is_complex())
        {
            return false;
        }
        match (int_bits(self), float_bits(self), int_bits(to), float_bits(to)) {
            // f16 reaches 65504 only, so 2^16-1 needs more than its digits; the digits decide already (16 > 11).
            (Some((bits, _)), _, _, Some((digits, _))) => bits <= digits,
            (Some((bits, signed)), _, Some((to_bits, to_signed)), _) => bits <= to_bits && (to_signed || !signed),
            (_, Some((digits, exponent)), _, Some((to_digits, to_exponent))) => {
                digits <= to_digits && exponent <= to_exponent
            }
            _ => false,
        }
    }

    /// The smallest dtype that holds both exactly, where there is one: the promotion table.
    pub fn promote(self, other: DType) -> Option<DType> {
        if self == other {
            return Some(self);
        }
        // Candidates from small to large; integers before floats before complex numbers.
        [I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64, C64, C128]
            .into_iter()
            .find(|&to| self.fits_in(to) && other.fits_in(to))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<DType> {
        DType::ALL.into_iter().find(|d| d.name() == text).ok_or_else(|| {
            error!(Parse, "`{}` is not a dtype", text.chars().take(40).collect::<String>())
                .help("the dtypes are bool, i8-i64, u8-u64, f16, bf16, f32, f64, c64, c128 and key")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_the_documented_table() {
        for (a, b, want) in [
            (Bool, I8, Some(I8)),
            (I8, U8, Some(I16)),
            (I32, U32, Some(I64)),
            (I64, U64, None),
            (I8, F16, Some(F16)),
            (I16, F16, Some(F32)),
            (I32, F32, Some(F64)),
            (I64, F64, None),
            (I64, F32, None),
            (F16, BF16, Some(F32)),
            (F32, F64, Some(F64)),
            (F32, C64, Some(C64)),
            (F64, C64, Some(C128)),
            (U16, C64, Some(C64)),
            (I64, C128, None),
        ] {
            assert_eq!(a.promote(b), want, "{a} {b}");
            assert_eq!(b.promote(a), want, "{b} {a}");
        }
    }

    #[test]
    fn promotion_loses_nothing_and_is_least() {
        for a in DType::ALL {
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
                if let Some(c) = a.promote(b) {
                    assert!(a.fits_in(c) && b.fits_in(c));
                }
            }
        }
    }
}
