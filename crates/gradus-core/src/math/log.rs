//! The natural logarithm and what is made of it.

use super::coefficients::{ASINH, ATANH, LOG, LOG_QUOTIENT};
use super::parts::{fraction, pairs, pick, power_bits, rounder, two_sum, unusual, with_sign};
use super::{Arith, Rare};

/// The bits of √½, below which a number belongs to the next power of two.
const SPLIT: [i64; 2] = [0x3f35_04f3, 0x3fe6_a09e_667f_3bcd];

/// The exponent `e` for which `x 2^-e` is between √½ and √2, in its place in the bits, and as a float.
pub(super) fn exponent<A: Arith>(m: &mut A, bits: A::I) -> (A::I, A::F) {
    let (places, split) = (fraction(m), SPLIT[usize::from(m.wide())]);
    let split = m.int(split);
    let from_split = m.isub(bits, split);
    let e = m.sar(from_split, places);
    let placed = m.shl(e, places);
    // 1.5·2^23 + e has e in its last bits.
    let large = pick(m, 12_582_912.0, 6_755_399_441_055_744.0);
    let bits = m.to_bits(large);
    let bits = m.iadd(bits, e);
    let e = m.from_bits(bits);
    (placed, m.sub(e, large))
}

/// `e ln 2 + ln(1 + f)` for `f` between √½ - 1 and √2 - 1.
fn log_parts<A: Arith>(m: &mut A, e: A::F, f: A::F) -> A::F {
    let ln_2 = m.float(std::f64::consts::LN_2);
    let f2 = m.mul(f, f);
    if !m.wide() {
        let c = LOG.of(m);
        let q = pairs(m, f, f2, c);
        let y = m.fma(f2, q, f);
        return m.fma(e, ln_2, y);
    }
    // With s = f / (2 + f): ln(1 + f) = f - f²/2 + s (f²/2 + R(s²)). A polynomial in f alone would need three times as
    // many terms.
    let two = m.float(2.0);
    let whole = m.add(f, two);
    let s = m.div(f, whole);
    let z = m.mul(s, s);
    let z2 = m.mul(z, z);
    let c = LOG_QUOTIENT.of(m);
    let r = pairs(m, z, z2, c);
    let half = m.float(0.5);
    let half = m.mul(f2, half);
    let r = m.fma(z, r, half);
    let rest = m.mul(s, r);
    let rest = m.sub(rest, half);
    let y = m.add(f, rest);
    m.fma(e, ln_2, y)
}

/// The natural logarithm.
pub fn log<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let bits = m.to_bits(x);
    let beyond = if m.wide() { 1024 } else { 128 };
    let when = unusual(m, bits, beyond);
    let (placed, e) = exponent(m, bits);
    let bits = m.isub(bits, placed);
    let near_one = m.from_bits(bits);
    let one = m.float(1.0);
    let f = m.sub(near_one, one);
    let y = log_parts(m, e, f);
    let other = m.rare(Rare::Log, x, x, when);
    m.select(when, other, y)
}

/// `2^-e` and `2^-e (1 + x) - 1`, for an exponent that is in its place.
fn scaled<A: Arith>(m: &mut A, x: A::F, placed: A::I) -> (A::F, A::F) {
    let unit = power_bits(m, 0);
    let unit = m.int(unit);
    let scale = m.isub(unit, placed);
    let scale = m.from_bits(scale);
    let one = m.float(1.0);
    let less = m.sub(scale, one);
    (scale, m.fma(x, scale, less))
}

/// `ln(1 + x)`, exact for small arguments: of `2^-e (1 + x) - 1` no digit of `x` is lost before the last rounding.
pub fn log1p<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let one = m.float(1.0);
    let u = m.add(x, one);
    let bits = m.to_bits(u);
    // Beyond, 2^-e is not a normal number.
    let beyond = if m.wide() { 1000 } else { 120 };
    let when = unusual(m, bits, beyond);
    let (placed, e) = exponent(m, bits);
    let (_, f) = scaled(m, x, placed);
    let y = log_parts(m, e, f);
    let other = m.rare(Rare::Log1p, x, x, when);
    let y = m.select(when, other, y);
    // Zero keeps its sign.
    let zero = m.float(0.0);
    let is_zero = m.eq(x, zero);
    m.select(is_zero, x, y)
}

/// `ln(1 + w)` of a positive `w` and a second part that is small beside it; where `a` is large, `ln(2a)`.
fn log1p_of_two<A: Arith>(m: &mut A, w: A::F, low: A::F, a: A::F, large: A::B) -> A::F {
    let (zero, one) = (m.float(0.0), m.float(1.0));
    let u = m.add(w, one);
    let u = m.select(large, a, u);
    let bits = m.to_bits(u);
    let (placed, e) = exponent(m, bits);
    let bits = m.isub(bits, placed);
    let near_one = m.from_bits(bits);
    let of_large = m.sub(near_one, one);
    let (scale, f) = scaled(m, w, placed);
    let f = m.fma(low, scale, f);
    let f = m.select(large, of_large, f);
    let more = m.select(large, one, zero);
    let e = m.add(e, more);
    log_parts(m, e, f)
}

/// The square root of `a`, to which `low` is small, and what it loses by rounding.
fn two_sqrt<A: Arith>(m: &mut A, a: A::F, low: A::F) -> (A::F, A::F) {
    let root = m.sqrt(a);
    let minus = m.neg(root);
    let rest = m.fma(minus, root, a);
    let rest = m.add(rest, low);
    let whole = m.add(root, root);
    (root, m.div(rest, whole))
}

/// Where the root of the square plus or minus one is the number itself, and its square may be too large.
fn is_large<A: Arith>(m: &mut A, a: A::F) -> A::B {
    let limit = pick(m, 2f64.powi(14), 2f64.powi(30));
    m.lt(limit, a)
}

/// Infinity and NaN are their own results.
fn finite_or_same<A: Arith>(m: &mut A, y: A::F, a: A::F) -> A::F {
    let infinity = m.float(f64::INFINITY);
    let finite = m.lt(a, infinity);
    m.select(finite, y, a)
}

/// The inverse hyperbolic sine: `ln(|x| + √(x² + 1))` with the rounding of the sum kept, a polynomial for small
/// arguments, and the sign of `x`.
pub fn asinh<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let (one, half) = (m.float(1.0), m.float(0.5));
    let large = is_large(m, a);
    let square = m.mul(a, a);
    let z2 = m.mul(square, square);
    let c = ASINH.of(m);
    let q = pairs(m, square, z2, c);
    let cube = m.mul(square, a);
    let small = m.fma(cube, q, a);
    // Of x² + 1 - 1 nothing is lost here, as the root is between ½ and |x| + 1 away from one.
    let minus = m.neg(square);
    let lost = m.fma(a, a, minus);
    let above = m.greater(square, one);
    let below = m.lesser(square, one);
    let (sum, rest) = two_sum(m, above, below);
    let lost = m.add(rest, lost);
    let (root, root_lost) = two_sqrt(m, sum, lost);
    let less = m.sub(root, one);
    let (w, lost) = two_sum(m, a, less);
    let lost = m.add(lost, root_lost);
    let y = log1p_of_two(m, w, lost, a, large);
    let is_small = m.lt(a, half);
    let y = m.select(is_small, small, y);
    let y = finite_or_same(m, y, a);
    with_sign(m, y, x)
}

/// The inverse hyperbolic cosine: `ln(1 + t + √(t (t + 2)))` with `t = x - 1` and the rounding of the sum kept.
pub fn acosh<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let (zero, one, two) = (m.float(0.0), m.float(1.0), m.float(2.0));
    let large = is_large(m, x);
    let t = m.sub(x, one);
    let (whole, rest) = {
        let more = m.greater(t, two);
        let fewer = m.lesser(t, two);
        two_sum(m, more, fewer)
    };
    let product = m.mul(t, whole);
    let minus = m.neg(product);
    let lost = m.fma(t, whole, minus);
    let lost = m.fma(t, rest, lost);
    let (root, root_lost) = two_sqrt(m, product, lost);
    let (w, lost) = two_sum(m, root, t);
    let lost = m.add(lost, root_lost);
    let y = log1p_of_two(m, w, lost, x, large);
    // The root of zero has no slope; below one there is no result.
    let is_one = m.eq(x, one);
    let y = m.select(is_one, zero, y);
    let nan = m.float(f64::NAN);
    let below = m.lt(x, one);
    let y = m.select(below, nan, y);
    let infinity = m.float(f64::INFINITY);
    let is_infinite = m.eq(x, infinity);
    m.select(is_infinite, x, y)
}

/// The inverse hyperbolic tangent: half of `ln((1 + |x|) / (1 - |x|))`, which is `e ln 2 + 2 artanh s` for
/// `s = (1 + |x| - 2^e (1 - |x|)) / (1 + |x| + 2^e (1 - |x|))`; and the sign of `x`.
pub fn atanh<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let one = m.float(1.0);
    let (more, less) = (m.add(one, a), m.sub(one, a));
    // The difference of the bits is nearly the logarithm of the quotient, and that rounded is e.
    let places = fraction(m);
    let (more_bits, less_bits) = (m.to_bits(more), m.to_bits(less));
    let between = m.isub(more_bits, less_bits);
    let half = m.int(1 << (places - 1));
    let between = m.iadd(between, half);
    let e = m.sar(between, places);
    let placed = m.shl(e, places);
    let unit = power_bits(m, 0);
    let unit = m.int(unit);
    let power = m.iadd(unit, placed);
    let power = m.from_bits(power);
    let large = rounder(m, 0);
    let bits = m.to_bits(large);
    let bits = m.iadd(bits, e);
    let e = m.from_bits(bits);
    let e = m.sub(e, large);
    let sum = m.add(one, power);
    let difference = m.sub(one, power);
    let above = m.fma(a, sum, difference);
    let below = m.fma(a, difference, sum);
    // From ½ on 1 - |x| is exact, and 1 + 2^e in the end is not.
    let minus = m.neg(power);
    let above_far = m.fma(minus, less, more);
    let below_far = m.fma(power, less, more);
    let half = m.float(0.5);
    let near = m.lt(a, half);
    let above = m.select(near, above, above_far);
    let below = m.select(near, below, below_far);
    let s = m.div(above, below);
    let z = m.mul(s, s);
    let z2 = m.mul(z, z);
    let c = ATANH.of(m);
    let q = pairs(m, z, z2, c);
    let sz = m.mul(s, z);
    let y = m.fma(sz, q, s);
    let half = m.float(std::f64::consts::LN_2 / 2.0);
    let y = m.fma(e, half, y);
    let (infinity, nan) = (m.float(f64::INFINITY), m.float(f64::NAN));
    let is_one = m.eq(a, one);
    let outside = m.select(is_one, infinity, nan);
    let inside = m.lt(a, one);
    let y = m.select(inside, y, outside);
    with_sign(m, y, x)
}
