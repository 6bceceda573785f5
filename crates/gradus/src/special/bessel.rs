//! Modified Bessel functions of the first kind, by their power series up to 20 and by their asymptotic series beyond. All terms of the power series are positive.

use gradus_core::Array;

use super::series::nested;
use crate::formula::{formulas, number};

/// Where the asymptotic series has all digits.
const FAR: f64 = 20.0;

/// I₀ or I₁ of |x|, times e^-|x|; of I₁ without the factor |x|, so that it is smooth at zero.
fn scaled(x: &Array, order: u32) -> Array {
    let size = x.abs();
    let near = size.le(FAR);
    let square = near.select(x, number(x, 0.0)).square() * 0.25_f64;
    let (n, exponent) = (f64::from(order), -near.select(&size, number(x, 0.0)));
    // Σ (x²/4)^k / (k! (k + n)!)
    let inside = nested(&square, (1..56).map(|k| 1.0 / (f64::from(k) * (f64::from(k) + n)))) * exponent.exp();
    let inside = if order == 0 { inside } else { inside * 0.5_f64 };
    let end = size.eq(f64::INFINITY);
    let large = (&near | &end).select(number(x, FAR), &size);
    let ratio = |k: i32| (f64::from(2 * k - 1).powi(2) - 4.0 * n * n) / f64::from(k);
    let series = nested(&(0.125_f64 / &large), (1..34).map(ratio));
    let beyond = series / (&large * std::f64::consts::TAU).sqrt();
    let beyond = if order == 0 { beyond } else { beyond / &large };
    near.select(inside, end.select(number(x, 0.0), beyond))
}

formulas! {
    /// The modified Bessel function I₀(x) times e^-|x|, which does not overflow.
    #[doc(alias = "bessel_i0e")]
    i0e(x) = scaled(x, 0);
    /// The modified Bessel function I₁(x) times e^-|x|, which does not overflow.
    #[doc(alias = "bessel_i1e")]
    i1e(x) = {
        let end = x.abs().eq(f64::INFINITY);
        end.select(number(x, 0.0), x) * scaled(x, 1)
    };
    /// The modified Bessel function I₀(x).
    i0(x) = i0e(x) * x.abs().exp();
    /// The modified Bessel function I₁(x).
    i1(x) = i1e(x) * x.abs().exp();
}
