//! The remainder of a division of floats, which has no rounding error.

use super::parts::{pick, rounder, with_sign};
use super::{Arith, Rare};

/// What is left of `x` by `y`, with the sign of `x`: the bits of C's `fmod` and of Rust's `%`.
///
/// For `x` and `y` that are not negative, with p digits (53 or 24): let `i` be `1/y`, rounded, and `n` the whole number nearest to the exact product `x i`.
///
/// - The sum with 1.5·2^(p-1) is rounded to a whole number while `x i` is below 2^(p-2), and not below it from there on: what is left when the large number is taken off says which it is.
/// - `x i` is beside `x/y` by less than ¼: `i` is beside `1/y` by at most 2^-p of it, or, where `y` is so large that `i` is subnormal, `x` times half of the smallest number,
///   which is below 2^(2-p).
/// - So `n` is beside `x/y` by less than one, and `r = x - n y` lies between `-y` and `y`. Where `x` is not below `y`, both are multiples of the unit in the last place of `y`, and so
///   is `r`: it is a number, and a fused operation has it exactly. Where it is negative `n` was one too many, and `r + y` is what is left; that is a number for the same reason.
/// - Where `x` is below `y`, and be that infinite, `x` is left.
///
/// Quotients from 2^(p-2) on are rare. So are no numbers, infinite dividends and divisors so small that `i` is infinite: with them the product is none or infinite.
pub fn rem<A: Arith>(m: &mut A, x: A::F, y: A::F) -> A::F {
    let (a, b) = (m.abs(x), m.abs(y));
    let one = m.float(1.0);
    // Before the loop, where the divisor is the same in all of it.
    let (inverse, minus) = (m.div(one, b), m.neg(b));
    let large = rounder(m, 0);
    let t = m.fma(a, inverse, large);
    let n = m.sub(t, large);
    let limit = pick(m, 2f64.powi(22), 2f64.powi(51));
    let small = m.lt(n, limit);
    let when = m.not(small);
    let r = m.fma(n, minus, a);
    let zero = m.float(0.0);
    let is_below = m.lt(r, zero);
    let above = m.add(r, b);
    let r = m.select(is_below, above, r);
    let is_less = m.lt(a, b);
    let r = m.select(is_less, a, r);
    let r = with_sign(m, r, x);
    let other = m.rare(Rare::Rem, x, y, when);
    m.select(when, other, r)
}
