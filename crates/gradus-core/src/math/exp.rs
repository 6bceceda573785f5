//! e to a power, and what is made of it: `expm1`, the logistic function and the hyperbolic functions.

use super::Arith;
use super::coefficients::{COSH, EXP, EXPM1, HALF_EXPM1, SINH};
use super::parts::{By, bias, fraction, pairs, pick, power_bits, rounder, signed_pairs, with_sign};

/// ln 2 in two parts, the first the nearest number of the width.
const LN_2: By<[f64; 2]> = By {
    narrow: [0.693_147_182_464_599_6, -1.904_654_212_125_933_6e-9],
    wide: [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17],
};

/// `scale ln 2` in two parts, with a minus.
fn ln_2<A: Arith>(m: &mut A, scale: f64) -> [A::F; 2] {
    LN_2.of(m).map(|part| m.float(-scale * part))
}

/// `x / (scale ln 2)` rounded to a whole number `n`: the number whose last bits are `n + more`, and `n`.
fn rounded<A: Arith>(m: &mut A, x: A::F, scale: f64, more: i64) -> (A::F, A::F) {
    let inverse = m.float(std::f64::consts::LOG2_E / scale);
    let large = rounder(m, more);
    let t = m.fma(x, inverse, large);
    (t, m.sub(t, large))
}

/// `x = n (scale ln 2) + r`: the number whose last bits are `n + more`, and `r`. The first step has no rounding error, as
/// `n` times the first part ends where the digits of `x` do.
fn reduced<A: Arith>(m: &mut A, x: A::F, scale: f64, more: i64) -> (A::F, A::F) {
    let (t, n) = rounded(m, x, scale, more);
    let [first, second] = ln_2(m, scale);
    let r = m.fma(n, first, x);
    (t, m.fma(n, second, r))
}

/// The power of two whose exponent, with the bias, stands in the last bits.
pub(super) fn power_of<A: Arith>(m: &mut A, t: A::F) -> A::F {
    let t = m.to_bits(t);
    let places = fraction(m);
    let bits = m.shl(t, places);
    m.from_bits(bits)
}

/// The bias of exponents with which [`power_of`] gives the power of two with a minus.
fn negative<A: Arith>(m: &A) -> i64 {
    bias(m) + if m.wide() { 2048 } else { 256 }
}

/// e^(-x²) as `(1 - w) 2^n`: `w` and `2^(n+more)`. What the square loses by rounding goes into the rest.
pub(super) fn exp_of_minus_square<A: Arith>(m: &mut A, x: A::F, more: i64) -> (A::F, A::F) {
    let square = m.mul(x, x);
    let minus = m.neg(square);
    let lost = m.fma(x, x, minus);
    let more = bias(m) + more;
    let (t, n) = rounded(m, square, -1.0, more);
    let [first, second] = ln_2(m, -1.0);
    let r = m.fma(n, first, square);
    let lost = m.fma(n, second, lost);
    let r = m.add(r, lost);
    let r2 = m.mul(r, r);
    let c = EXPM1.of(m);
    let q = signed_pairs(m, r, r2, c, -1.0);
    (m.fma(r2, q, r), power_of(m, t))
}

/// `1 - e^-x` for `x` that is not negative and has a bound.
pub(super) fn one_less_exp_of_minus<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let more = bias(m);
    let (t, r) = reduced(m, x, -1.0, more);
    let r2 = m.mul(r, r);
    let c = EXPM1.of(m);
    let q = signed_pairs(m, r, r2, c, -1.0);
    let q = m.fma(r2, q, r);
    let s = power_of(m, t);
    let one = m.float(1.0);
    let rest = m.sub(one, s);
    m.fma(s, q, rest)
}

/// `e^x = (1 + w) s²`, where `s` is a power of two: `s²` may be larger or smaller than any number there is, so that
/// overflow and subnormal results come out of the products by themselves.
pub fn exp<A: Arith>(m: &mut A, x: A::F) -> A::F {
    // Beyond, results are infinite and zero.
    let (high, low) = (pick(m, 89.0, 710.0), pick(m, -104.0, -746.0));
    let x = m.lesser(high, x);
    let x = m.greater(low, x);
    let more = bias(m);
    let (t, r) = reduced(m, x, 2.0, more);
    let r2 = m.mul(r, r);
    let c = EXP.of(m);
    let q = pairs(m, r, r2, c);
    let w = m.fma(r2, q, r);
    scaled(m, w, t)
}

/// `(1 + w) 4^k`, where `k` with the bias stands in the last bits of `t`.
fn scaled<A: Arith>(m: &mut A, w: A::F, t: A::F) -> A::F {
    let s = power_of(m, t);
    let y = m.fma(w, s, s);
    m.mul(y, s)
}

/// `1 / (1 + e^-x)`: with `e^-x = (1 - w) 2^n` that is `a / (a + b - b w)` for any `a` and `b = a 2^n`. `a` is such that
/// `b` is a normal number for all `n`, and the quotient is rounded once even where it is not.
pub fn logistic<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let (high, low) = (pick(m, 20.0, 40.0), pick(m, -104.0, -746.0));
    let x = m.lesser(high, x);
    let x = m.greater(low, x);
    let exponent = if m.wide() { -500 } else { -64 };
    let (a, more) = (m.float(2f64.powi(exponent)), negative(m) + i64::from(exponent));
    let (t, r) = reduced(m, x, -1.0, more);
    let r2 = m.mul(r, r);
    let c = EXPM1.of(m);
    let q = signed_pairs(m, r, r2, c, -1.0);
    let w = m.fma(r2, q, r);
    let minus_b = power_of(m, t);
    let whole = m.fma(w, minus_b, a);
    let whole = m.sub(whole, minus_b);
    m.div(a, whole)
}

/// `tanh x = h / (1 - h)` with `h = (1 - e^(-2|x|)) / 2`, and the sign of `x`. The denominator is below one, where
/// numbers are closer together than above.
pub fn tanh<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let high = pick(m, 10.0, 20.0);
    let a = m.abs(x);
    let a = m.lesser(high, a);
    let more = negative(m);
    let (t, r) = reduced(m, a, -0.5, more);
    let r2 = m.mul(r, r);
    let c = HALF_EXPM1.of(m);
    let q = signed_pairs(m, r, r2, c, -1.0);
    let q = m.fma(r2, q, r);
    // Minus the power of two.
    let s = power_of(m, t);
    let (half, minus) = (m.float(0.5), m.float(-0.5));
    let e = m.mul(s, q);
    let rest = m.fma(s, half, half);
    let h = m.sub(rest, e);
    let rest = m.fma(s, minus, half);
    let whole = m.add(rest, e);
    let y = m.div(h, whole);
    with_sign(m, y, x)
}

/// `e^x - 1`, exact for small arguments: `2 (s e^r - ½)` with `s = 2^(n-1)`, so that the largest results do not overflow
/// before they are complete.
pub fn expm1<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let (high, low) = (pick(m, 89.0, 710.0), pick(m, -18.0, -38.0));
    let bounded = m.lesser(high, x);
    let bounded = m.greater(low, bounded);
    let more = bias(m) - 1;
    let (t, r) = reduced(m, bounded, 1.0, more);
    let r2 = m.mul(r, r);
    let c = EXPM1.of(m);
    let q = pairs(m, r, r2, c);
    let s = power_of(m, t);
    let half = m.float(0.5);
    let rest = m.sub(s, half);
    let y = m.fma(s, r, rest);
    let s = m.mul(s, r2);
    let y = m.fma(s, q, y);
    let y = m.add(y, y);
    // Half of a subnormal number is not exact, and zero has lost its sign.
    let small = pick(m, 2f64.powi(-25), 2f64.powi(-54));
    let a = m.abs(x);
    let is_small = m.lt(a, small);
    m.select(is_small, x, y)
}

/// For `|x| = n ln 2 + r`: `sinh r`, `cosh r - 1`, and a quarter of `2^n + 2^-n` and of `2^n - 2^-n`. Half of a result
/// comes out of these without division, and without overflow before it is complete.
fn hyperbolic<A: Arith>(m: &mut A, a: A::F) -> [A::F; 4] {
    // Just beyond the last finite result, so that 2^n is still finite.
    let high = pick(m, 89.5, 710.5);
    let a = m.lesser(high, a);
    let more = bias(m) - 2;
    let (t, r) = reduced(m, a, 1.0, more);
    let up = power_of(m, t);
    let bits = m.to_bits(up);
    let product = power_bits(m, -2) + power_bits(m, -2);
    let product = m.int(product);
    let down = m.isub(product, bits);
    let down = m.from_bits(down);
    // Where the exponent of 2^-n is too small for its place the bits are those of a negative number.
    let zero = m.float(0.0);
    let down = m.greater(down, zero);
    let sum = m.add(up, down);
    let difference = m.sub(up, down);
    let z = m.mul(r, r);
    let z2 = m.mul(z, z);
    let (c, d) = (SINH.of(m), COSH.of(m));
    let sinh = pairs(m, z, z2, c);
    let rz = m.mul(r, z);
    let sinh = m.fma(rz, sinh, r);
    let cosh = pairs(m, z, z2, d);
    let cosh = m.mul(z, cosh);
    [sinh, cosh, sum, difference]
}

/// `(e^x - e^-x) / 2`.
pub fn sinh<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let [sinh, cosh, sum, difference] = hyperbolic(m, a);
    // The smaller product is the one that is rounded.
    let y = m.mul(difference, cosh);
    let y = m.fma(sum, sinh, y);
    let y = m.add(difference, y);
    let y = m.add(y, y);
    // Half of a subnormal number is not exact.
    let small = pick(m, 2f64.powi(-13), 2f64.powi(-27));
    let is_small = m.lt(a, small);
    let y = m.select(is_small, a, y);
    with_sign(m, y, x)
}

/// `(e^x + e^-x) / 2`.
pub fn cosh<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let [sinh, cosh, sum, difference] = hyperbolic(m, a);
    let y = m.mul(difference, sinh);
    let y = m.fma(sum, cosh, y);
    let y = m.add(sum, y);
    m.add(y, y)
}
