//! Special functions that are no primitives, as formulas of arrays. Narrow floats are computed in `f64`, which leaves them their last digit.

use gradus_core::error::Result;
use gradus_core::{Array, DType};

use super::elementwise::{convert, like};

/// A formula in `f64`.
fn wide(x: &Array, f: impl FnOnce(&Array) -> Array) -> Array {
    convert(&f(&convert(x, DType::F64)), x.dtype())
}

/// `1 + a₁z(1 + a₂z(1 + ..))`.
fn nested(z: &Array, ratios: &[f64]) -> Array {
    ratios.iter().rev().fold(like(z, 1.0), |inner, a| &(&inner * z) * &like(z, *a) + like(z, 1.0))
}

/// Where the asymptotic series of I₁ has all digits.
const FAR: f64 = 20.0;

/// I₁(x)·e^-|x|: the power series, whose terms are all positive, up to 20, and the asymptotic series beyond.
pub(super) fn bessel_i1e(x: &Array) -> Array {
    wide(x, |x| {
        let size = x.abs();
        let near = size.le(like(x, FAR));
        let zero = like(x, 0.0);
        let inner = near.select(x, &zero);
        let quarter = &inner * &inner * 0.25_f64;
        // Σ (x²/4)^k / (k! (k + 1)!)
        let ratios: Vec<f64> = (1..56).map(|k| 1.0 / (f64::from(k) * (f64::from(k) + 1.0))).collect();
        let inside = &inner * &nested(&quarter, &ratios) * 0.5_f64 * (-inner.abs()).exp();
        let outer = near.select(like(x, FAR), &size);
        let ratios: Vec<f64> = (1..34).map(|k| (f64::from(2 * k - 1).powi(2) - 4.0) / f64::from(k)).collect();
        let series = nested(&(like(x, 0.125) / &outer), &ratios);
        let beyond = x.sign() * series / (&outer * std::f64::consts::TAU).sqrt();
        let ends = size.eq(like(x, f64::INFINITY));
        ends.select(&zero, near.select(&inside, &beyond))
    })
}

/// The even Bernoulli numbers over the factorials of their numbers: the coefficients of the sum of Euler and Maclaurin.
fn bernoulli(count: usize) -> Vec<f64> {
    // B₂ₙ/(2n)! = 2·(-1)ⁿ⁺¹·ζ(2n)/(2π)²ⁿ, and ζ(2n) is a short sum.
    let zeta = |s: i32| (1..2000).rev().map(|k| f64::from(k).powi(-s)).sum::<f64>();
    let exact = [1.0 / 12.0, -1.0 / 720.0, 1.0 / 30240.0, -1.0 / 1209600.0];
    let term = |n: usize| {
        let sign = if n % 2 == 1 { 2.0 } else { -2.0 };
        sign * zeta(2 * n as i32) / std::f64::consts::TAU.powi(2 * n as i32)
    };
    (1..=count).map(|n| exact.get(n - 1).copied().unwrap_or_else(|| term(n))).collect()
}

/// The zeta function of Hurwitz, Σ (q + k)^-x.
pub(super) fn zeta(x: &Array, q: &Array) -> Result<Array> {
    let (to, x, q) = (x.dtype(), convert(x, DType::F64), convert(q, DType::F64));
    let terms = 10;
    let mut sum = like(&x, 0.0);
    for k in 0..terms {
        sum += (&q + like(&q, f64::from(k))).pow(&-&x);
    }
    let end = &q + like(&q, f64::from(terms));
    let power = end.pow(&-&x);
    sum = sum + &(&power * &end) / &(&x - like(&x, 1.0)) + &power * 0.5_f64;
    // x(x+1)..(x+2j-2)·(q+n)^(-x-2j+1)
    let mut factor = &x * &(&power / &end);
    for (j, b) in bernoulli(12).into_iter().enumerate() {
        sum += &factor * b;
        let step = 2.0 * j as f64 + 1.0;
        let more = (&x + like(&x, step)) * (&x + like(&x, step + 1.0));
        factor = &factor * &more / &(&end * &end);
    }
    let nan = like(&x, f64::NAN);
    let one = like(&x, 1.0);
    let zero = like(&x, 0.0);
    let whole = |v: &Array| v.floor().eq(v);
    // Poles at whole q up to 0; between them powers of negative numbers, which are real for even whole x alone.
    let below = q.le(&zero);
    let even = whole(&x) & whole(&(&x * 0.5_f64));
    let pole = even.select(like(&x, f64::INFINITY), &nan);
    let outside = whole(&q).select(&pole, whole(&x).select(&sum, &nan));
    let value = below.select(&outside, &sum);
    let value = x.lt(&one).select(&nan, x.eq(&one).select(like(&x, f64::INFINITY), &value));
    convert(&value, to).ok()
}
