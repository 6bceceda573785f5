//! The basic operations that elementary functions are written in, and the rare cases that leave them.

use super::{Plain, pow};

/// The basic operations that elementary functions are written in: IEEE 754 arithmetic of one width, bit by bit the same
/// on every machine.
///
/// A function over this trait is a straight line: no branches and no loops over data, so that a compiler can record it
/// and run it on whole vectors, and the interpreter, on single numbers, gets the same bits.
///
/// There is no conversion between floats and integers, which vector units lack for 64 bits: adding 1.5·2^52 (or
/// 1.5·2^23) to a small float leaves its whole part in the last bits.
pub trait Arith {
    /// A float of the width at hand.
    type F: Copy;
    /// A signed integer of the same width.
    type I: Copy;
    /// A truth value.
    type B: Copy;

    /// Whether the floats are `f64`; otherwise they are `f32`.
    fn wide(&self) -> bool;
    /// A constant, rounded to the width.
    fn float(&mut self, v: f64) -> Self::F;
    /// A constant, wrapped to the width.
    fn int(&mut self, v: i64) -> Self::I;

    /// `a + b`.
    fn add(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`.
    fn sub(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a b`.
    fn mul(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`.
    fn div(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a b + c`, rounded once.
    fn fma(&mut self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The other sign, of NaN too.
    fn neg(&mut self, a: Self::F) -> Self::F;
    /// Without the sign.
    fn abs(&mut self, a: Self::F) -> Self::F;
    /// The square root.
    fn sqrt(&mut self, a: Self::F) -> Self::F;
    /// The nearest whole number, halves to even.
    fn round(&mut self, a: Self::F) -> Self::F;
    /// The largest whole number not above.
    fn floor(&mut self, a: Self::F) -> Self::F;
    /// `a < b ? a : b`: the second if either is NaN or both are zero.
    fn lesser(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a > b ? a : b`: the second if either is NaN or both are zero.
    fn greater(&mut self, a: Self::F, b: Self::F) -> Self::F;

    /// `a < b`; false for NaN.
    fn lt(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// `a <= b`; false for NaN.
    fn le(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// `a == b`; false for NaN.
    fn eq(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// `a != b`; true for NaN.
    fn ne(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// `a < b` as signed integers.
    fn ilt(&mut self, a: Self::I, b: Self::I) -> Self::B;
    /// Both.
    fn and(&mut self, a: Self::B, b: Self::B) -> Self::B;
    /// Either.
    fn or(&mut self, a: Self::B, b: Self::B) -> Self::B;
    /// The opposite.
    fn not(&mut self, a: Self::B) -> Self::B;
    /// `c ? a : b`.
    fn select(&mut self, c: Self::B, a: Self::F, b: Self::F) -> Self::F;
    /// `c ? a : b`.
    fn iselect(&mut self, c: Self::B, a: Self::I, b: Self::I) -> Self::I;

    /// The bits of a float.
    fn to_bits(&mut self, a: Self::F) -> Self::I;
    /// The float with these bits.
    #[allow(clippy::wrong_self_convention)] // `self` is where operations go, not what is converted.
    fn from_bits(&mut self, a: Self::I) -> Self::F;
    /// `a + b`, wrapping.
    fn iadd(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// `a - b`, wrapping.
    fn isub(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// The bits both have.
    fn iand(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// The bits either has.
    fn ior(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// The bits exactly one has.
    fn ixor(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// To the left.
    fn shl(&mut self, a: Self::I, n: u32) -> Self::I;
    /// To the right, zeros from the left.
    fn shr(&mut self, a: Self::I, n: u32) -> Self::I;
    /// To the right, copies of the sign from the left.
    fn sar(&mut self, a: Self::I, n: u32) -> Self::I;

    /// A rare case computed by a compiled scalar function, only for elements where `when` holds; unspecified elsewhere.
    fn rare(&mut self, f: Rare, a: Self::F, b: Self::F, when: Self::B) -> Self::F;
}

/// Scalar functions for rare arguments. Those of one argument do not look at the second.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rare {
    /// Sine, of arguments whose reduction needs hundreds of digits of π.
    Sin,
    /// Cosine, likewise.
    Cos,
    /// Tangent, likewise.
    Tan,
    /// Logarithm of what is not a positive normal number.
    Log,
    /// Logarithm of one more, out of its domain or huge.
    Log1p,
    /// A power of special numbers, and of negative and subnormal ones.
    Pow,
    /// A remainder of what is too many times the divisor, of what is infinite, and by zero.
    Rem,
}

impl Rare {
    /// All of them, in the order of their numbers.
    pub const ALL: &'static [Rare] = &[Rare::Sin, Rare::Cos, Rare::Tan, Rare::Log, Rare::Log1p, Rare::Pow, Rare::Rem];

    /// In `f32`, computed in `f64` and rounded once.
    pub fn of_f32(self, a: f32, b: f32) -> f32 {
        self.of_f64(f64::from(a), f64::from(b)) as f32
    }

    /// In `f64`. Not the standard library's functions, which differ between machines.
    pub fn of_f64(self, a: f64, b: f64) -> f64 {
        match self {
            Rare::Sin => libm::sin(a),
            Rare::Cos => libm::cos(a),
            Rare::Tan => libm::tan(a),
            Rare::Log => libm::log(a),
            Rare::Log1p => libm::log1p(a),
            Rare::Pow if a < 0.0 && a.is_finite() && b.is_finite() && b == b.trunc() => {
                // As for its size: what the library does with large exponents loses places.
                let size = pow(&mut Plain::<f64>::default(), -a, b);
                if b % 2.0 == 0.0 { size } else { -size }
            }
            Rare::Pow => libm::pow(a, b),
            Rare::Rem => a % b,
        }
    }
}
