//! The natural logarithm and what is made of it.

use super::coefficients::{LOG, LOG_QUOTIENT};
use super::parts::{fraction, pairs, pick, power_bits, unusual};
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

/// `ln(1 + x)`, exact for small arguments: of `2^-e (1 + x) - 1` no digit of `x` is lost before the last rounding.
pub fn log1p<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let one = m.float(1.0);
    let u = m.add(x, one);
    let bits = m.to_bits(u);
    // Beyond, 2^-e is not a normal number.
    let beyond = if m.wide() { 1000 } else { 120 };
    let when = unusual(m, bits, beyond);
    let (placed, e) = exponent(m, bits);
    let unit = power_bits(m, 0);
    let unit = m.int(unit);
    let scale = m.isub(unit, placed);
    let scale = m.from_bits(scale);
    let less = m.sub(scale, one);
    let f = m.fma(x, scale, less);
    let y = log_parts(m, e, f);
    let other = m.rare(Rare::Log1p, x, x, when);
    let y = m.select(when, other, y);
    // Zero keeps its sign.
    let zero = m.float(0.0);
    let is_zero = m.eq(x, zero);
    m.select(is_zero, x, y)
}
