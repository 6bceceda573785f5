//! The distribution function of the normal distribution, its logarithm and its inverse.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI, SQRT_2};

use crate::formula::{formulas, number};
use crate::special::erfcx;

formulas! {
    /// The part of the normal distribution below x.
    ndtr(x) = (x * -FRAC_1_SQRT_2).erfc() * 0.5_f64;
    /// The logarithm of [`ndtr`], without loss in either tail.
    log_ndtr(x) = {
        // Left of -1 by e^(z²) erfc(z), whose logarithm is what is left when the square is taken out.
        let left = x.lt(-1i32);
        let tail = left.select(x * -FRAC_1_SQRT_2, number(x, 1.0));
        let far = erfcx(&tail).log() - &tail * &tail - LN_2;
        let rest = left.select(number(x, 0.0), x);
        // Right of it the part above is small, and what it takes off 1 goes into the logarithm as it is.
        let near = ((&rest * FRAC_1_SQRT_2).erfc() * -0.5_f64).log1p();
        left.select(far, near)
    };
    /// The number that a part p of the normal distribution is below: the inverse of [`ndtr`].
    ndtri(p) = {
        // In the lower tail 2p - 1 has no digits left of p: there a step of Newton's method on the logarithm puts them back.
        refined(&((p * 2i32 - 1i32).erf_inv() * SQRT_2).stop_gradient(), p)
    };
}

/// A quantile after steps of Newton's method, each of which doubles its digits. Derivatives are those of the steps: where they begin has none, since the inverse of
/// the error function is infinitely steep where it has no digits left.
fn refined(x: &gradus_core::Array, p: &gradus_core::Array) -> gradus_core::Array {
    let ends = p.le(0i32) | p.ge(1i32) | p.is_nan();
    let safe = ends.select(number(p, 0.5), p);
    // By symmetry the smaller tail, which has its digits.
    let upper = safe.gt(0.5_f64);
    let tail = upper.select(1i32 - &safe, &safe);
    let log_tail = tail.log();
    // Where 2p - 1 is -1 the inverse is infinite; -√(-2 log p) is near enough to begin with.
    let guess = upper.select(-x, x);
    let begin = -(log_tail.stop_gradient() * -2i32).sqrt();
    let mut z = guess.lt(-5i32).select(&begin, &guess);
    z = ends.select(number(p, 0.0), &z);
    for _ in 0..6 {
        let log_cdf = log_ndtr(&z);
        // d log Φ = φ / Φ.
        let log_density = &z * &z * -0.5_f64 - 0.5 * (2.0 * PI).ln();
        z = &z - (&log_cdf - &log_tail) * (&log_cdf - log_density).exp();
    }
    let infinite = (ends.select(p, number(p, 0.5)) * 2i32 - 1i32).erf_inv();
    ends.select(infinite, upper.select(-&z, &z))
}
