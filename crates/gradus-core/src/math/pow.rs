//! Powers.

use super::coefficients::{CBRT, EXP, POW};
use super::exp::power_of;
use super::log::exponent;
use super::parts::{By, bias, fraction, pairs, pick, rounder, unusual, with_sign};
use super::{Arith, Rare};

/// ⅓ and 2 / ln 2 in two parts each, and ln 2 in two.
const THIRD: By<[f64; 2]> = By {
    narrow: [0.333_333_343_267_440_8, -9.934_107_758_624_577e-9],
    wide: [0.333_333_333_333_333_3, 1.850_371_707_708_594e-17],
};
const TWO_LOG2_E: By<[f64; 2]> = By {
    narrow: [2.885_390_043_258_667, 3.851_926_067_000_022e-8],
    wide: [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17],
};
const LN_2: By<[f64; 2]> = By {
    narrow: [0.693_147_182_464_599_6, -1.904_654_212_125_933_6e-9],
    wide: [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17],
};

/// A sum of two numbers of which the second is small beside the first.
#[derive(Clone, Copy)]
struct Two<F>(F, F);

/// `a + b + c` for `a` that is zero or not below `b`, which `c` is small beside.
fn sum<A: Arith>(m: &mut A, a: A::F, b: A::F, c: A::F) -> Two<A::F> {
    let high = m.add(a, b);
    let low = m.sub(a, high);
    let low = m.add(low, b);
    Two(high, m.add(low, c))
}

/// The product, but for that of the two small parts.
fn product<A: Arith>(m: &mut A, a: Two<A::F>, b: Two<A::F>) -> Two<A::F> {
    let high = m.mul(a.0, b.0);
    let minus = m.neg(high);
    let low = m.fma(a.0, b.0, minus);
    let low = m.fma(a.0, b.1, low);
    Two(high, m.fma(a.1, b.0, low))
}

/// The logarithm to base two of a positive normal number, with about half as many digits again as a number has: an error
/// of it is multiplied by the exponent of the power, which may be a thousand.
fn log2<A: Arith>(m: &mut A, bits: A::I) -> Two<A::F> {
    let (placed, e) = exponent(m, bits);
    let bits = m.isub(bits, placed);
    let near_one = m.from_bits(bits);
    let one = m.float(1.0);
    let f = m.sub(near_one, one);
    // s = f / (2 + f)
    let whole = m.add(near_one, one);
    let lost = m.sub(whole, one);
    let lost = m.sub(near_one, lost);
    let inverse = m.div(one, whole);
    let s = m.mul(f, inverse);
    let minus = m.neg(s);
    let rest = m.fma(minus, whole, f);
    let rest = m.fma(minus, lost, rest);
    let s = Two(s, m.mul(rest, inverse));
    // log2(1 + f) = 2 log2(e) s (1 + z (⅓ + z U(z))) with z = s²
    let z = product(m, s, s);
    let z2 = m.mul(z.0, z.0);
    let c = POW.of(m);
    let u = pairs(m, z.0, z2, c);
    let u = m.mul(z.0, u);
    let [third, more] = THIRD.of(m).map(|v| m.float(v));
    let t = sum(m, third, u, more);
    let v = product(m, z, t);
    let v = product(m, s, v);
    let low = m.add(s.1, v.1);
    let w = sum(m, s.0, v.0, low);
    let [scale, more] = TWO_LOG2_E.of(m).map(|v| m.float(v));
    let w = product(m, w, Two(scale, more));
    sum(m, e, w.0, w.1)
}

/// `(1 + w) 4^k` as [`scaled`](super::exp::scaled) gives it, with the second part of `w` and what the sum loses added before the last rounding.
fn scaled_twice<A: Arith>(m: &mut A, w: Two<A::F>, t: A::F) -> A::F {
    let s = power_of(m, t);
    let y = m.fma(w.0, s, s);
    let lost = m.sub(s, y);
    let lost = m.fma(w.0, s, lost);
    let lost = m.fma(w.1, s, lost);
    let y = m.add(y, lost);
    m.mul(y, s)
}

/// `x^y = 2^(y log2 x)`. Bases that are not positive normal numbers, and exponents that are not finite, are rare.
pub fn pow<A: Arith>(m: &mut A, x: A::F, y: A::F) -> A::F {
    let bits = m.to_bits(x);
    let beyond = if m.wide() { 1024 } else { 128 };
    let when = unusual(m, bits, beyond);
    let infinity = m.float(f64::INFINITY);
    let size = m.abs(y);
    let finite = m.lt(size, infinity);
    let other = m.not(finite);
    let when = m.or(when, other);

    let log = log2(m, bits);
    let high = m.mul(y, log.0);
    let minus = m.neg(high);
    let low = m.fma(y, log.0, minus);
    let low = m.fma(y, log.1, low);
    // Beyond, results are infinite and zero, and the second part may be anything.
    let (most, least) = (pick(m, 135.0, 1030.0), pick(m, -155.0, -1080.0));
    let high = m.lesser(most, high);
    let high = m.greater(least, high);
    let (up, down) = (m.float(1.0), m.float(-1.0));
    let low = m.lesser(up, low);
    let low = m.greater(down, low);

    // 2^(high + low) = 4^k e^r
    let zero = m.float(0.0);
    let more = bias(m);
    let large = rounder(m, more);
    let half = m.float(0.5);
    let t = m.fma(high, half, large);
    let k = m.sub(t, large);
    let minus_two = m.float(-2.0);
    let f = m.fma(k, minus_two, high);
    let [first, second] = LN_2.of(m).map(|v| m.float(v));
    let low = m.mul(low, first);
    let low = m.fma(f, second, low);
    let r = m.fma(f, first, low);
    // What r lost, so that powers of whole numbers are the nearest number.
    let minus = m.neg(r);
    let lost = m.fma(f, first, minus);
    let lost = m.add(lost, low);
    let r2 = m.mul(r, r);
    let c = EXP.of(m);
    let q = pairs(m, r, r2, c);
    let more = m.fma(r2, q, lost);
    let w = sum(m, r, more, zero);
    let result = scaled_twice(m, w, t);
    let other = m.rare(Rare::Pow, x, y, when);
    m.select(when, other, result)
}

/// One over the square root.
pub fn rsqrt<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let root = m.sqrt(x);
    let one = m.float(1.0);
    m.div(one, root)
}

/// The cube root: `2^q ∛m'` with `m'` between √½/2 and 2√2, from a first guess by one step that trebles its digits.
pub fn cbrt<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let (zero, one) = (m.float(0.0), m.float(1.0));
    // Subnormal numbers have no exponent of their own; 54 is three times 18, and more than there are places.
    let (least, up) = (pick(m, 2f64.powi(-126), 2f64.powi(-1022)), m.float(2f64.powi(54)));
    let tiny = m.lt(a, least);
    let scaled = m.mul(a, up);
    let scaled = m.select(tiny, scaled, a);
    let bits = m.to_bits(scaled);
    let (placed, e) = exponent(m, bits);
    let bits = m.isub(bits, placed);
    let near_one = m.from_bits(bits);
    // e = 3 q + k
    let third = m.float(1.0 / 3.0);
    let more = bias(m);
    let large = rounder(m, more);
    let t = m.fma(e, third, large);
    let q = m.sub(t, large);
    let minus_three = m.float(-3.0);
    let k = m.fma(q, minus_three, e);
    // 2^k and its cube root for k of -1, 0 and 1, each the parabola through three values.
    let through = |m: &mut A, below: f64, above: f64| {
        let (c, d) = (m.float((above + below) / 2.0 - 1.0), m.float((above - below) / 2.0));
        let slope = m.fma(k, c, d);
        m.fma(k, slope, one)
    };
    let power = through(m, 0.5, 2.0);
    let root = through(m, 0.793_700_525_984_099_7, 1.259_921_049_894_873_2);
    let whole = m.mul(near_one, power);
    let n2 = m.mul(near_one, near_one);
    let c = CBRT.of(m);
    let guess = pairs(m, near_one, n2, c);
    let y = m.mul(guess, root);
    // y - y (y³ - m') / (2 y³ + m'), and of y³ - m' every digit.
    let square = m.mul(y, y);
    let minus = m.neg(square);
    let lost = m.fma(y, y, minus);
    let minus = m.neg(whole);
    let above = m.fma(square, y, minus);
    let above = m.fma(lost, y, above);
    let two = m.float(2.0);
    let cube = m.mul(square, y);
    let below = m.fma(cube, two, whole);
    let ratio = m.div(above, below);
    let minus = m.neg(y);
    let y = m.fma(minus, ratio, y);
    let places = fraction(m);
    let bits = m.to_bits(t);
    let bits = m.shl(bits, places);
    let scale = m.from_bits(bits);
    let y = m.mul(y, scale);
    let down = m.float(2f64.powi(-18));
    let smaller = m.mul(y, down);
    let y = m.select(tiny, smaller, y);
    let infinity = m.float(f64::INFINITY);
    let positive = m.lt(zero, a);
    let finite = m.lt(a, infinity);
    let usual = m.and(positive, finite);
    let y = m.select(usual, y, a);
    with_sign(m, y, x)
}
