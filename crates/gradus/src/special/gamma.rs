//! The gamma function, what is made of it, and the zeta function.

use gradus_core::Array;

use crate::formula::{formulas, nan, number, undefined};
use crate::line::{few, on_line};

formulas! {
    /// The gamma function. At 0 it is infinite, with the sign of the zero; at -1, -2 and so on, where it has no sign, it is NaN.
    gamma(x) = {
        let pole = x.le(0i32) & x.floor().eq(x);
        let safe = pole.select(number(x, 1.0), x);
        let value = gammasgn(&safe) * safe.lgamma().exp();
        // As a quotient, which has the derivative of a pole too.
        let at_zero = 1i32 / x.eq(0i32).select(x, number(x, 1.0));
        pole.select(x.eq(0i32).select(at_zero, undefined(x, &(&pole & x.ne(0i32)))), value)
    };
    /// The sign of the gamma function: 1 or -1. At a pole and at minus infinity it is 1 by convention.
    gammasgn(x) = {
        let below = x.floor();
        let odd = (&below * 0.5_f64).floor().ne(&below * 0.5_f64);
        let negative = x.lt(0i32) & odd & below.ne(x);
        negative.select(number(x, -1.0), number(x, 1.0))
    };
    /// n! as a function of real numbers, the gamma function of n + 1; 0 for negative numbers.
    factorial(n) = {
        let below = n.lt(0i32);
        let safe = below.select(number(n, 0.0), n);
        below.select(number(n, 0.0), (safe + 1i32).lgamma().exp())
    };
    /// The beta function, Γ(a) Γ(b) / Γ(a + b).
    beta(a, b) = gammasgn(a) * gammasgn(b) * gammasgn(a + b) * betaln(a, b).exp();
    /// The logarithm of the absolute value of the beta function.
    betaln(a, b) = {
        let (small, large) = (a.minimum(b), a.maximum(b));
        let close = small.lgamma() + large.lgamma() - (&small + &large).lgamma();
        // For a large argument the difference of two logarithms by Stirling's series, whose large parts cancel on paper.
        let far = large.ge(8i32) & small.gt(0i32);
        let (s, l) = (far.select(&small, number(a, 1.0)), far.select(&large, number(a, 8.0)));
        let sum = &s + &l;
        let apart = (&l - 0.5_f64) * -(&s / &l).log1p() - &s * sum.log() + &s + stirling(&l) - stirling(&sum);
        far.select(s.lgamma() + apart, close)
    };
    /// The rising factorial, Γ(a + n) / Γ(a).
    poch(a, n) = gammasgn(a + n) * gammasgn(a) * ((a + n).lgamma() - a.lgamma()).exp();
    /// The number of ways to choose k of n, as a function of real numbers. 0 where k is negative or above n.
    comb(n, k) = {
        let outside = k.lt(0i32) | k.gt(n) | n.lt(0i32);
        let (n, k) = (outside.select(number(n, 1.0), n), outside.select(number(k, 0.0), k));
        let value = ((&n + 1i32).lgamma() - (&k + 1i32).lgamma() - (&n - &k + 1i32).lgamma()).exp();
        outside.select(number(&value, 0.0), value)
    };
    /// The zeta function of Hurwitz: the sum of (q + k)^-s over k = 0, 1, 2, …, for s > 1 and positive q. Riemann's is that of q = 1. For s = 1, and where q is 0 or a
    /// negative whole number, the sum is infinite; below it is NaN.
    zeta(s, q) = hurwitz(s, q);
}

/// What Stirling's formula of the logarithm of the gamma function lacks, for numbers of 8 or more.
pub(super) fn stirling(x: &Array) -> Array {
    let square = 1i32 / (x * x);
    let mut sum = number(x, -691.0 / 360360.0);
    for c in [1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0_f64] {
        sum = sum * &square + c;
    }
    sum / x
}

/// B₂ⱼ / (2j)! from j = 1.
const TAIL: [f64; 10] = [
    8.333_333_333_333_333e-2,
    -1.388_888_888_888_889e-3,
    3.306_878_306_878_306_5e-5,
    -8.267_195_767_195_768e-7,
    2.087_675_698_786_81e-8,
    -5.284_190_138_687_493e-10,
    1.338_253_653_068_467_9e-11,
    -3.389_680_296_322_582_5e-13,
    8.586_062_056_277_845e-15,
    -2.174_868_698_558_062e-16,
];

/// The first twelve terms one by one, the rest by the formula of Euler and Maclaurin.
fn hurwitz(s: &Array, q: &Array) -> Array {
    const TERMS: i32 = 12;
    let bad = s.le(1i32) | q.le(0i32);
    let infinite = (s.eq(1i32) & !q.is_nan()) | (s.gt(1i32) & q.le(0i32) & q.floor().eq(q));
    let (s, q) = (bad.select(number(s, 2.0), s), bad.select(number(q, 1.0), q));
    let power = -&s;
    let mut sum = q.pow(&power);
    for k in 1..TERMS {
        sum += (&q + k).pow(&power);
    }
    // Where nothing is left of the rest, powers of a large s are no numbers either.
    let none = (&q + TERMS).pow(&power).eq(0i32);
    let (s, end) = (none.select(number(&s, 2.0), &s), none.select(number(&q, 12.0), &q + TERMS));
    let last = none.select(number(&sum, 0.0), end.pow(&-&s));
    sum += &last * (&end / (&s - 1i32) + 0.5_f64);
    let (mut factor, square) = (&s * last / &end, &end * &end);
    for (j, c) in TAIL.iter().enumerate() {
        sum += &factor * *c;
        let i = 2.0 * j as f64;
        factor = factor * (&s + (i + 1.0)) * (&s + (i + 2.0)) / &square;
    }
    bad.select(infinite.select(number(&sum, f64::INFINITY), nan(&sum)), sum)
}

/// The logarithm of the gamma function of dimension d: that of positive definite matrices.
#[track_caller]
pub fn multigammaln(a: &Array, d: usize) -> Array {
    on_line(|| {
        few(d, "the gamma function of dimension", 1 << 16)?;
        let constant = d as f64 * d.saturating_sub(1) as f64 * 0.25 * std::f64::consts::PI.ln();
        Ok((0..d).fold(a.zeros_like() + constant, |sum, j| sum + (a - 0.5 * j as f64).lgamma()))
    })
}

/// The numbers of Bernoulli from 0 to n, as `f64`. From 260 on those that are not zero are larger than any `f64`, and infinite here.
#[track_caller]
pub fn bernoulli(n: usize) -> Array {
    // B₂ₘ = (-1)^(m+1) 2 (2m)! ζ(2m) / (2π)^2m: the zeta function is nearly 1, and nothing cancels.
    let number = |k: usize| match k {
        0 => 1.0,
        1 => -0.5,
        k if k % 2 == 1 => 0.0,
        k if k >= 260 => (if k % 4 == 0 { -1.0 } else { 1.0 }) * f64::INFINITY,
        k => {
            let zeta: f64 = match k {
                2 => std::f64::consts::PI.powi(2) / 6.0,
                4 => std::f64::consts::PI.powi(4) / 90.0,
                _ => (1..2000).rev().map(|i| f64::from(i).powi(-(k as i32))).sum(),
            };
            let size = (1..=k).fold(2.0, |f, i| f * i as f64 / std::f64::consts::TAU);
            if k % 4 == 0 { -size * zeta } else { size * zeta }
        }
    };
    on_line(|| Ok((0..=n).map(number).collect()))
}
