//! Arithmetic of single numbers with the meaning every backend keeps: integers wrap, division by zero is defined.

use crate::math::special;
use crate::math::{Plain, pow};
use crate::types::{Complex, Element, bf16, f16};

/// What every number can do.
pub(crate) trait Number: Element {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Integers: toward zero; by zero all bits set; `MIN / -1` wraps.
    fn over(self, other: Self) -> Self;
    fn negated(self) -> Self;
    /// A whole power of at least zero by repeated squaring, the same on every machine.
    fn whole_power(self, exponent: u64) -> Self {
        let (mut base, mut n, mut product) = (self, exponent, None::<Self>);
        while n > 0 {
            if n & 1 == 1 {
                product = Some(product.map_or(base, |p| p.times(base)));
            }
            n >>= 1;
            if n > 0 {
                base = base.times(base);
            }
        }
        product.unwrap_or_else(Self::one)
    }
    /// A whole power; a negative one divides.
    fn integer_power(self, exponent: i64) -> Self {
        let power = self.whole_power(exponent.unsigned_abs());
        if exponent < 0 { Self::one().over(power) } else { power }
    }
    fn one() -> Self {
        Self::from_wide(crate::types::Wide::UInt(1))
    }
}

/// What numbers with an order can do.
pub(crate) trait Ordered: Number + PartialOrd {
    /// Integers: the sign of the dividend; by zero the dividend.
    fn remainder(self, other: Self) -> Self;
    /// NaN if either is NaN.
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn power(self, other: Self) -> Self;
    fn absolute(self) -> Self;
    /// -1, 0 or 1; a float's zero keeps its sign and NaN stays NaN (the standard library's `signum` makes zero one).
    fn sign_of(self) -> Self;
}

macro_rules! integers {
    ($($t:ident $signed:literal),*) => {$(
        impl Number for $t {
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn over(self, other: Self) -> Self { if other == 0 { !0 } else { self.wrapping_div(other) } }
            fn negated(self) -> Self { self.wrapping_neg() }
        }
        impl Ordered for $t {
            fn remainder(self, other: Self) -> Self { if other == 0 { self } else { self.wrapping_rem(other) } }
            fn larger(self, other: Self) -> Self { self.max(other) }
            fn smaller(self, other: Self) -> Self { self.min(other) }
            #[allow(unused_comparisons)]
            fn power(self, other: Self) -> Self {
                if other < 0 {
                    // 1 / self^|other| toward zero.
                    return match self {
                        1 => 1,
                        v if $signed && v == (0 as $t).wrapping_sub(1) => if other % 2 == 0 { 1 } else { v },
                        0 => !0,
                        _ => 0,
                    };
                }
                let (mut base, mut n, mut product) = (self, other, 1 as $t);
                while n > 0 {
                    if n & 1 == 1 { product = product.wrapping_mul(base); }
                    n >>= 1;
                    base = base.wrapping_mul(base);
                }
                product
            }
            #[allow(unused_comparisons)]
            fn absolute(self) -> Self { if self < 0 { self.wrapping_neg() } else { self } }
            #[allow(unused_comparisons)]
            fn sign_of(self) -> Self { if self > 0 { 1 } else if self < 0 { (0 as $t).wrapping_sub(1) } else { 0 } }
        }
    )*};
}
integers!(i8 true, i16 true, i32 true, i64 true, u8 false, u16 false, u32 false, u64 false);

macro_rules! floats {
    ($($t:ident via $wide:ident, $to:expr, $from:expr;)*) => {$(
        impl Number for $t {
            fn plus(self, other: Self) -> Self { self + other }
            fn minus(self, other: Self) -> Self { self - other }
            fn times(self, other: Self) -> Self { self * other }
            fn over(self, other: Self) -> Self { self / other }
            fn negated(self) -> Self { -self }
        }
        impl Ordered for $t {
            fn remainder(self, other: Self) -> Self { $from($to(self) % $to(other)) }
            fn larger(self, other: Self) -> Self {
                if self.is_nan() { self } else if other.is_nan() { other }
                // max(-0, +0) is +0, whichever comes first.
                else if self > other || (self == other && self.is_sign_positive()) { self } else { other }
            }
            fn smaller(self, other: Self) -> Self {
                if self.is_nan() { self } else if other.is_nan() { other }
                else if self < other || (self == other && self.is_sign_negative()) { self } else { other }
            }
            fn power(self, other: Self) -> Self { $from(pow(&mut Plain::<$wide>::default(), $to(self), $to(other))) }
            fn absolute(self) -> Self { $from($to(self).abs()) }
            fn sign_of(self) -> Self {
                let v: $wide = $to(self);
                if v > 0.0 { $from(1.0) } else if v < 0.0 { $from(-1.0) } else { self }
            }
        }
    )*};
}
floats! {
    f32 via f32, |v| v, |v| v;
    f64 via f64, |v| v, |v| v;
    f16 via f32, f16::to_f32, f16::from_f32;
    bf16 via f32, bf16::to_f32, bf16::from_f32;
}

/// A quotient of which infinities or a zero are a part, as annex G of C has it: a number over an infinity is zero, and one over zero an infinity.
fn quotient_at_the_edge(x: Complex<f64>, y: Complex<f64>) -> Complex<f64> {
    let sides = |z: Complex<f64>| {
        let length = |v: f64| if v.is_infinite() { 1_f64 } else { 0.0 };
        // A NaN has a sign that means nothing.
        let side = |v: f64| if v.is_nan() { 0.0 } else { length(v).copysign(v) };
        Complex::new(side(z.re), side(z.im))
    };
    let product = |a: Complex<f64>, b: Complex<f64>, by: f64| {
        Complex::new(by * (a.re * b.re + a.im * b.im), by * (a.im * b.re - a.re * b.im))
    };
    let is_infinite = |z: Complex<f64>| z.re.is_infinite() || z.im.is_infinite();
    if y.re == 0.0 && y.im == 0.0 && !(x.re.is_nan() && x.im.is_nan()) {
        let side = f64::INFINITY.copysign(y.re);
        return Complex::new(side * x.re, side * x.im);
    }
    if is_infinite(x) && y.is_finite() {
        return product(sides(x), y, f64::INFINITY);
    }
    if x.is_finite() && is_infinite(y) {
        return product(x, sides(y), 0.0);
    }
    x / y
}

macro_rules! complex {
    ($($t:ident),*) => {$(
        impl Number for Complex<$t> {
            fn plus(self, other: Self) -> Self { self + other }
            fn minus(self, other: Self) -> Self { self - other }
            fn times(self, other: Self) -> Self { self * other }
            fn over(self, other: Self) -> Self {
                // Scaled, so that the squares of large or small parts do not overflow.
                let scale = other.re.abs().max(other.im.abs());
                let wide = |z: Self| Complex::new(f64::from(z.re), f64::from(z.im));
                let at_the_edge = || {
                    let q = quotient_at_the_edge(wide(self), wide(other));
                    Complex::new(q.re as $t, q.im as $t)
                };
                if scale == 0.0 || !scale.is_finite() {
                    return at_the_edge();
                }
                if scale < $t::MIN_POSITIVE {
                    // Its reciprocal may be no number; that of its part above is one.
                    const UP: $t = (1_u64 << 60) as $t;
                    return self.over(other * UP) * UP;
                }
                let d = other / scale;
                let q = (self / scale) * d.conj() / (d.re * d.re + d.im * d.im);
                if q.re.is_nan() && q.im.is_nan() { at_the_edge() } else { q }
            }
            fn integer_power(self, exponent: i64) -> Self {
                let n = exponent.unsigned_abs();
                if exponent >= 0 {
                    return self.whole_power(n);
                }
                // A power that overflows has no parts to divide by; its reciprocal vanishes in peace.
                let power = self.whole_power(n);
                if power.is_finite() { Self::one().over(power) } else { Self::one().over(self).whole_power(n) }
            }
            fn negated(self) -> Self { -self }
        }
    )*};
}
complex!(f32, f64);

/// The functions that are no elementary ones, in the precision of the argument.
pub(crate) trait Special: Sized + Copy {
    fn erf_inv_(self) -> Self;
    fn lgamma_(self) -> Self;
    fn digamma_(self) -> Self;
    fn polygamma_(self, order: u32) -> Self;
    /// To nearest, halves to even.
    fn round_even(self) -> Self;
}

macro_rules! special {
    ($($t:ident $erf_inv:ident $lgamma:ident $digamma:ident $polygamma:ident;)*) => {$(
        impl Special for $t {
            fn erf_inv_(self) -> Self { special::$erf_inv(self) }
            fn lgamma_(self) -> Self { special::$lgamma(self) }
            fn digamma_(self) -> Self { special::$digamma(self) }
            fn polygamma_(self, order: u32) -> Self { special::$polygamma(order, self) }
            fn round_even(self) -> Self { self.round_ties_even() }
        }
    )*};
}
special! {
    f32 erf_inv_f32 lgamma_f32 digamma_f32 polygamma_f32;
    f64 erf_inv lgamma digamma polygamma;
}
