//! The error function and its complement.

use super::Arith;
use super::coefficients::{ERF, ERF_ABOVE, ERF_BELOW, ERFC_F32, ERFC_F64};
use super::exp::{exp_of_minus_square, one_less_exp_of_minus};
use super::parts::{pairs, pick, with_last, with_sign};

/// `erf x = 1 - e^-y` with `y = -ln(erfc x)`, a smooth function of `|x|` that is as exact for small arguments as `x`.
pub fn erf<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let high = pick(m, 4.0, 6.0);
    let a = m.abs(x);
    let a = m.lesser(high, a);
    let a2 = m.mul(a, a);
    let rest = if m.wide() {
        // A quotient has half as many terms as a polynomial of the same error, and the division hides behind them.
        let above = pairs(m, a, a2, ERF_ABOVE.wide);
        let below = pairs(m, a, a2, ERF_BELOW.wide);
        m.div(above, below)
    } else {
        pairs(m, a, a2, ERF.narrow)
    };
    let y = m.fma(a, rest, a);
    let y = one_less_exp_of_minus(m, y);
    with_sign(m, y, x)
}

/// `erfc |x| = e^(-x²) u S(1 - 2ku)` with `u = 1 / (|x| + k)`, and `2 - erfc |x|` for negative arguments.
///
/// A rounding error of `|x| + k` or of `u` would count several times, so both are kept, and with them those of the
/// products.
pub fn erfc<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let high = pick(m, 10.1, 27.3);
    let a = m.abs(x);
    let a = m.lesser(high, a);
    let (k, c) = if m.wide() { (4.0, ERFC_F64.wide) } else { (1.0, ERFC_F32.narrow) };
    let (one, shift, factor) = (m.float(1.0), m.float(k), m.float(-2.0 * k));
    let whole = m.add(a, shift);
    let part = m.sub(whole, shift);
    let lost = m.sub(a, part);
    let u = m.div(one, whole);
    // 1 / (|x| + k) is u + more.
    let minus = m.neg(u);
    let more = m.fma(minus, whole, one);
    let more = m.fma(minus, lost, more);
    let more = m.mul(u, more);
    let t = m.fma(u, factor, one);
    let t = m.fma(more, factor, t);
    // The first coefficient is the sum of two, and the others may take away half of it: its rounding is kept too.
    let [first, second] = [c[0], c[1]].map(|v| m.float(v));
    let rest = with_last(m, t, &c[2..]);
    let product = m.mul(rest, t);
    let q = m.add(first, product);
    let minus = m.neg(product);
    let q_lost = m.sub(q, first);
    let q_lost = m.sub(product, q_lost);
    let product_lost = m.fma(rest, t, minus);
    let product_lost = m.add(product_lost, second);
    let q_lost = m.add(q_lost, product_lost);
    let y = m.mul(q, u);
    let minus = m.neg(y);
    let lost = m.fma(q, u, minus);
    let lost = m.fma(q, more, lost);
    let lost = m.fma(q_lost, u, lost);
    // (y + lost) (1 - w) 2^n, where 2^n alone may be too small to be a number.
    let exponent: i32 = if m.wide() { 600 } else { 100 };
    let (w, s) = exp_of_minus_square(m, a, exponent.into());
    let p = m.sub(one, w);
    let lost = m.mul(lost, p);
    let less = m.fma(minus, w, lost);
    let y = m.add(y, less);
    let y = m.mul(y, s);
    let down = m.float(2f64.powi(-exponent));
    let y = m.mul(y, down);
    let (zero, two) = (m.float(0.0), m.float(2.0));
    let other = m.sub(two, y);
    let negative = m.lt(x, zero);
    m.select(negative, other, y)
}
