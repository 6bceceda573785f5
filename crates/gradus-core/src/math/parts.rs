//! What the elementary functions share: constants by width, polynomials, signs and powers of two.

use super::Arith;

/// Coefficients of one function in both widths.
#[derive(Clone, Copy)]
pub(super) struct By<T> {
    pub(super) narrow: T,
    pub(super) wide: T,
}

impl<T: Copy> By<T> {
    pub(super) fn of<A: Arith>(self, m: &A) -> T {
        if m.wide() { self.wide } else { self.narrow }
    }
}

/// A constant that differs between the widths.
pub(super) fn pick<A: Arith>(m: &mut A, narrow: f64, wide: f64) -> A::F {
    let v = if m.wide() { wide } else { narrow };
    m.float(v)
}

/// Bits of the fraction.
pub(super) fn fraction<A: Arith>(m: &A) -> u32 {
    if m.wide() { 52 } else { 23 }
}

/// The exponent of one as it stands in the bits.
pub(super) fn bias<A: Arith>(m: &A) -> i64 {
    if m.wide() { 1023 } else { 127 }
}

/// The bits of a power of two.
pub(super) fn power_bits<A: Arith>(m: &A, exponent: i64) -> i64 {
    (bias(m) + exponent) << fraction(m)
}

/// A number so large that adding it leaves the nearest whole number, and `more`, in the last bits.
pub(super) fn rounder<A: Arith>(m: &mut A, more: i64) -> A::F {
    pick(m, 12_582_912.0 + more as f64, 6_755_399_441_055_744.0 + more as f64)
}

/// `c[0] + c[1] x + ...` by pairs, given `x²`: half as long a chain as one term at a time, for no more operations where
/// the square is needed anyway.
pub(super) fn pairs<A: Arith>(m: &mut A, x: A::F, x2: A::F, c: &[f64]) -> A::F {
    signed_pairs(m, x, x2, c, 1.0)
}

/// The same with even coefficients times `sign`.
pub(super) fn signed_pairs<A: Arith>(m: &mut A, x: A::F, x2: A::F, c: &[f64], sign: f64) -> A::F {
    let mut sum = None;
    for pair in c.chunks(2).rev() {
        let low = m.float(pair[0] * sign);
        let part = match pair.get(1) {
            Some(&high) => {
                let high = m.float(high);
                m.fma(high, x, low)
            }
            None => low,
        };
        sum = Some(match sum {
            Some(sum) => m.fma(sum, x2, part),
            None => part,
        });
    }
    sum.unwrap_or(x)
}

/// `c[0] + c[1] x + ...` with `c[0]` last, so that of the roundings only one is of its size.
pub(super) fn with_last<A: Arith>(m: &mut A, x: A::F, c: &[f64]) -> A::F {
    let (first, rest) = c.split_at(1);
    let sum = if rest.len() > 3 {
        let x2 = m.mul(x, x);
        pairs(m, x, x2, rest)
    } else {
        terms(m, x, rest)
    };
    let first = m.float(first[0]);
    m.fma(sum, x, first)
}

/// `c[0] + c[1] x + ...`, one term at a time.
pub(super) fn terms<A: Arith>(m: &mut A, x: A::F, c: &[f64]) -> A::F {
    let mut sum = None;
    for &v in c.iter().rev() {
        let v = m.float(v);
        sum = Some(match sum {
            Some(sum) => m.fma(sum, x, v),
            None => v,
        });
    }
    sum.unwrap_or(x)
}

/// The sum of `a` and `b`, which is not larger, and what it loses by rounding.
pub(super) fn two_sum<A: Arith>(m: &mut A, a: A::F, b: A::F) -> (A::F, A::F) {
    let sum = m.add(a, b);
    let part = m.sub(sum, a);
    (sum, m.sub(b, part))
}

/// The bit of the sign.
fn sign_bit<A: Arith>(m: &mut A) -> A::I {
    let bit = if m.wide() { i64::MIN } else { i64::from(i32::MIN) };
    m.int(bit)
}

/// `a`, which is not negative, with the sign of `x`.
pub(super) fn with_sign<A: Arith>(m: &mut A, a: A::F, x: A::F) -> A::F {
    let bit = sign_bit(m);
    let x = m.to_bits(x);
    let sign = m.iand(x, bit);
    let a = m.to_bits(a);
    let a = m.ior(a, sign);
    m.from_bits(a)
}

/// `a`, with the other sign where the last bit of `n` is set.
pub(super) fn flipped<A: Arith>(m: &mut A, a: A::F, n: A::I) -> A::F {
    let top = if m.wide() { 63 } else { 31 };
    let sign = m.shl(n, top);
    let a = m.to_bits(a);
    let a = m.ixor(a, sign);
    m.from_bits(a)
}

/// `y`, with the other sign where `x` has another than `a`, its absolute value.
pub(super) fn flipped_as<A: Arith>(m: &mut A, y: A::F, x: A::F, a: A::F) -> A::F {
    let (x, a, y) = (m.to_bits(x), m.to_bits(a), m.to_bits(y));
    let sign = m.ixor(x, a);
    let y = m.ixor(y, sign);
    m.from_bits(y)
}

/// Whether `x` is anything but a positive normal number below 2^`below`; `bits` are its bits.
///
/// The bits of all others are, less those of the smallest normal number, too large as an unsigned number: a half turn
/// makes it a signed comparison.
pub(super) fn unusual<A: Arith>(m: &mut A, bits: A::I, below: i64) -> A::B {
    let half = if m.wide() { i64::MIN } else { i64::from(i32::MIN) };
    let least = power_bits(m, 1 - bias(m));
    let most = power_bits(m, below) - least;
    let turn = m.int(half.wrapping_sub(least));
    let last = m.int(half.wrapping_add(most - 1));
    let turned = m.iadd(bits, turn);
    m.ilt(last, turned)
}
