//! Sine, cosine and tangent.

use super::coefficients::{SIN_F32, SIN_F64, TAN_COS, TAN_SIN};
use super::parts::{By, flipped, flipped_as, pairs, pick, rounder, two_sum, with_last};
use super::{Arith, Rare};

/// π in three parts, each the nearest number of the width to what is left.
const PI: By<[f64; 3]> = By {
    narrow: [3.141_592_741_012_573_2, -8.742_277_657_347_586e-8, -3.430_249_020_011_763_7e-15],
    wide: [std::f64::consts::PI, 1.224_646_799_147_353_2e-16, -2.994_769_809_718_339_7e-33],
};

/// Whether three parts of π are too few for an argument that is not negative.
fn huge<A: Arith>(m: &mut A, a: A::F) -> A::B {
    let limit = pick(m, 131_072.0, 1.0e13);
    m.lt(limit, a)
}

/// `x - n c` with `c` that many times π.
fn without<A: Arith>(m: &mut A, x: A::F, n: A::F, times: f64) -> A::F {
    let mut r = x;
    for part in PI.of(m) {
        let part = m.float(-times * part);
        r = m.fma(n, part, r);
    }
    r
}

/// `sin r` for `|r| ≤ π/2`. One polynomial does for all: two of half the range would be longer together.
fn sin_parts<A: Arith>(m: &mut A, r: A::F) -> A::F {
    let z = m.mul(r, r);
    let c = if m.wide() { SIN_F64.wide } else { SIN_F32.narrow };
    let q = with_last(m, z, c);
    let rz = m.mul(r, z);
    m.fma(rz, q, r)
}

/// Sine: `|x| = n π + r` gives `(-1)^n sin r`, and the sign of `x`.
pub fn sin<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let when = huge(m, a);
    let inverse = m.float(std::f64::consts::FRAC_1_PI);
    let large = rounder(m, 0);
    let t = m.fma(a, inverse, large);
    let n = m.sub(t, large);
    let r = without(m, a, n, 1.0);
    let y = sin_parts(m, r);
    let t = m.to_bits(t);
    let y = flipped(m, y, t);
    let y = flipped_as(m, y, x, a);
    let other = m.rare(Rare::Sin, x, x, when);
    m.select(when, other, y)
}

/// Cosine: `|x| = (n + ½) π + r` gives `(-1)^(n+1) sin r`.
pub fn cos<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let when = huge(m, a);
    let inverse = m.float(std::f64::consts::FRAC_1_PI);
    let half = m.float(-0.5);
    let t = m.fma(a, inverse, half);
    // One more in the last bits turns the sign.
    let large = rounder(m, 1);
    let t = m.add(t, large);
    let n = m.sub(t, large);
    let half = m.float(0.5);
    let n = m.add(n, half);
    let r = without(m, a, n, 1.0);
    let y = sin_parts(m, r);
    let t = m.to_bits(t);
    let y = flipped(m, y, t);
    let other = m.rare(Rare::Cos, x, x, when);
    m.select(when, other, y)
}

/// Tangent: `|x| = n π/2 + r` gives `sin r / cos r` or, for odd `n`, `-cos r / sin r`; and the sign of `x`.
pub fn tan<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let when = huge(m, a);
    let inverse = m.float(std::f64::consts::FRAC_2_PI);
    let large = rounder(m, 0);
    let t = m.fma(a, inverse, large);
    let n = m.sub(t, large);
    // Near its poles the tangent is one over r, so that what r loses by rounding is kept.
    let [first, second, third] = PI.of(m).map(|part| m.float(-0.5 * part));
    let exact = m.fma(n, first, a);
    let product = m.mul(n, second);
    let minus = m.neg(product);
    let product_lost = m.fma(n, second, minus);
    let r = m.add(exact, product);
    let lost = m.sub(exact, r);
    let lost = m.add(lost, product);
    let lost = m.add(lost, product_lost);
    let lost = m.fma(n, third, lost);
    let z = m.mul(r, r);
    let z2 = m.mul(z, z);
    let (c, d) = (TAN_SIN.of(m), TAN_COS.of(m));
    let sin = pairs(m, z, z2, c);
    let rz = m.mul(r, z);
    let rest = m.fma(rz, sin, lost);
    let (sin, sin_lost) = two_sum(m, r, rest);
    let cos = pairs(m, z, z2, d);
    let minus = m.neg(r);
    let lost = m.mul(minus, lost);
    let rest = m.fma(z, cos, lost);
    let one = m.float(1.0);
    let (cos, cos_lost) = two_sum(m, one, rest);
    // The last bit of n where the sign is.
    let top = if m.wide() { 63 } else { 31 };
    let t = m.to_bits(t);
    let last = m.shl(t, top);
    let zero = m.int(0);
    let odd = m.ilt(last, zero);
    let above = m.select(odd, cos, sin);
    let above_lost = m.select(odd, cos_lost, sin_lost);
    let below = m.select(odd, sin, cos);
    let below_lost = m.select(odd, sin_lost, cos_lost);
    // Three roundings of nearly equal size would be too many: the quotient is put right by what they lost.
    let inverse = m.div(one, below);
    let y = m.mul(above, inverse);
    let minus = m.neg(y);
    let rest = m.fma(minus, below, above);
    let rest = m.add(rest, above_lost);
    let rest = m.fma(minus, below_lost, rest);
    let better = m.fma(rest, inverse, y);
    let y = flipped(m, better, t);
    let y = flipped_as(m, y, x, a);
    let other = m.rare(Rare::Tan, x, x, when);
    m.select(when, other, y)
}
