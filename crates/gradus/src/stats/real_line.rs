//! Distributions on all real numbers.

use gradus_core::Array;

/// Where a scale is positive, and 1 elsewhere, so that nothing is divided by what is none.
fn positive(scale: &Array) -> (Array, Array) {
    let good = scale.gt(0i32);
    let safe = good.select(scale, crate::formula::number(scale, 1.0));
    (good, safe)
}

/// The normal distribution with mean `loc` and standard deviation `scale`.
pub mod norm {
    use crate::formula::formulas;
    use crate::special;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, loc, scale) = {
            let z = (x - loc) / scale;
            (z.square() + std::f64::consts::TAU.ln()) * -0.5_f64 - scale.log()
        };
        /// The density.
        pdf(x, loc, scale) = logpdf(x, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, loc, scale) = special::ndtr((x - loc) / scale);
        /// The logarithm of [`cdf`].
        logcdf(x, loc, scale) = special::log_ndtr((x - loc) / scale);
        /// The probability of more than x.
        sf(x, loc, scale) = special::ndtr((loc - x) / scale);
        /// The logarithm of [`sf`].
        logsf(x, loc, scale) = special::log_ndtr((loc - x) / scale);
        /// The number that is not exceeded with probability q.
        ppf(q, loc, scale) = special::ndtri(q) * scale + loc;
        /// The number that is exceeded with probability q.
        isf(q, loc, scale) = loc - special::ndtri(q) * scale;
    }
}

/// The distribution of Cauchy with median `loc` and half width `scale`.
pub mod cauchy {
    use std::f64::consts::{FRAC_1_PI, PI};

    use gradus_core::Array;

    use crate::formula::{formulas, nan, number};

    /// The part of the standard distribution above z, by an angle that is never negative and keeps its digits where it is small.
    fn above(z: &Array) -> Array {
        number(z, 1.0).atan2(z) * FRAC_1_PI
    }

    /// The number that a part q of the standard distribution is below. In the tails by the tangent of the small angle, since near a right angle it has the
    /// digits of π only.
    fn quantile(q: &Array) -> Array {
        let middle = q.ge(0.25_f64) & q.le(0.75_f64);
        let inner = ((middle.select(q, number(q, 0.5)) - 0.5_f64) * PI).tan();
        let lower = q.lt(0.5_f64);
        let tail = (&middle | q.lt(0i32) | q.gt(1i32)).select(number(q, 0.25), lower.select(q, 1i32 - q));
        let outer = 1i32 / (tail * PI).tan();
        let value = middle.select(inner, lower.select(-&outer, &outer));
        (q.lt(0i32) | q.gt(1i32)).select(nan(q), value)
    }

    formulas! {
        /// The logarithm of the density.
        logpdf(x, loc, scale) = {
            let z = (x - loc) / scale;
            -((scale * PI).log() + z.square().log1p())
        };
        /// The density.
        pdf(x, loc, scale) = logpdf(x, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, loc, scale) = above(&((loc - x) / scale));
        /// The logarithm of [`cdf`].
        logcdf(x, loc, scale) = cdf(x, loc, scale).log();
        /// The probability of more than x.
        sf(x, loc, scale) = above(&((x - loc) / scale));
        /// The logarithm of [`sf`].
        logsf(x, loc, scale) = sf(x, loc, scale).log();
        /// The number that is not exceeded with probability q.
        ppf(q, loc, scale) = quantile(q) * scale + loc;
        /// The number that is exceeded with probability q.
        isf(q, loc, scale) = loc - quantile(q) * scale;
    }
}

/// The distribution of Laplace: exponential to both sides of `loc`.
pub mod laplace {
    use crate::formula::formulas;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, loc, scale) = -(((x - loc) / scale).abs() + (scale * 2i32).log());
        /// The density.
        pdf(x, loc, scale) = logpdf(x, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, loc, scale) = {
            let z = (x - loc) / scale;
            let tail = (-z.abs()).exp() * 0.5_f64;
            z.le(0i32).select(&tail, 1i32 - &tail)
        };
    }
}

/// The logistic distribution with mean `loc`.
pub mod logistic {
    use crate::formula::formulas;
    use crate::special;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, loc, scale) = {
            let half = (x - loc) / scale * 0.5_f64;
            half.logaddexp(-&half) * -2i32 - scale.log()
        };
        /// The density.
        pdf(x, loc, scale) = logpdf(x, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, loc, scale) = ((x - loc) / scale).logistic();
        /// The probability of more than x.
        sf(x, loc, scale) = ((loc - x) / scale).logistic();
        /// The number that is not exceeded with probability q.
        ppf(q, loc, scale) = special::logit(q) * scale + loc;
        /// The number that is exceeded with probability q.
        isf(q, loc, scale) = loc - special::logit(q) * scale;
    }
}

/// The distribution of Student with `df` degrees of freedom.
pub mod t {
    use crate::formula::formulas;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, df, loc, scale) = {
            let z = (x - loc) / scale;
            let half = df * 0.5_f64;
            let more = &half + 0.5_f64;
            let norm = half.lgamma() - more.lgamma() + (df * std::f64::consts::PI).log() * 0.5_f64 + scale.log();
            -(norm + more * (z.square() / df).log1p())
        };
        /// The density.
        pdf(x, df, loc, scale) = logpdf(x, df, loc, scale).exp();
    }
}

/// The generalized normal distribution, whose logarithm falls with |x| to the power `beta`.
pub mod gennorm {
    use crate::formula::formulas;
    use crate::special;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, beta) = (beta * 0.5_f64).log() - (1i32 / beta).lgamma() - x.abs().pow(beta);
        /// The density.
        pdf(x, beta) = logpdf(x, beta).exp();
        /// The probability of at most x.
        cdf(x, beta) = (x.sign() * special::gammainc(1i32 / beta, x.abs().pow(beta)) + 1i32) * 0.5_f64;
    }
}

/// The distribution of Gumbel for smallest values.
pub mod gumbel_l {
    use super::positive;
    use crate::formula::{formulas, nan};
    use crate::nn::log1mexp;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, loc, scale) = {
            let (good, scale) = positive(scale);
            let z = (x - loc) / &scale;
            good.select(&z - z.exp() - scale.log(), nan(x))
        };
        /// The density.
        pdf(x, loc, scale) = logpdf(x, loc, scale).exp();
        /// The logarithm of [`cdf`].
        logcdf(x, loc, scale) = {
            let (good, scale) = positive(scale);
            good.select(log1mexp(&((x - loc) / scale).exp()), nan(x))
        };
        /// The probability of at most x.
        cdf(x, loc, scale) = {
            let (good, scale) = positive(scale);
            good.select(-(-((x - loc) / scale).exp()).expm1(), nan(x))
        };
        /// The logarithm of [`sf`].
        logsf(x, loc, scale) = {
            let (good, scale) = positive(scale);
            good.select(-((x - loc) / scale).exp(), nan(x))
        };
        /// The probability of more than x.
        sf(x, loc, scale) = logsf(x, loc, scale).exp();
        /// The number that is not exceeded with probability q.
        ppf(q, loc, scale) = {
            let inside = q.gt(0i32) & q.lt(1i32);
            let safe = inside.select(q, crate::formula::number(q, 0.5));
            inside.select((-(-safe).log1p()).log() * scale + loc, nan(q))
        };
    }
}

/// The distribution of Gumbel for largest values.
pub mod gumbel_r {
    use super::positive;
    use crate::formula::{formulas, nan};
    use crate::nn::log1mexp;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, loc, scale) = {
            let (good, scale) = positive(scale);
            let z = (loc - x) / &scale;
            good.select(&z - z.exp() - scale.log(), nan(x))
        };
        /// The density.
        pdf(x, loc, scale) = logpdf(x, loc, scale).exp();
        /// The logarithm of [`cdf`].
        logcdf(x, loc, scale) = {
            let (good, scale) = positive(scale);
            good.select(-((loc - x) / scale).exp(), nan(x))
        };
        /// The probability of at most x.
        cdf(x, loc, scale) = logcdf(x, loc, scale).exp();
        /// The logarithm of [`sf`].
        logsf(x, loc, scale) = {
            let (good, scale) = positive(scale);
            good.select(log1mexp(&((loc - x) / scale).exp()), nan(x))
        };
        /// The probability of more than x.
        sf(x, loc, scale) = {
            let (good, scale) = positive(scale);
            good.select(-(-((loc - x) / scale).exp()).expm1(), nan(x))
        };
        /// The number that is not exceeded with probability q.
        ppf(q, loc, scale) = {
            let inside = q.gt(0i32) & q.lt(1i32);
            let safe = inside.select(q, crate::formula::number(q, 0.5));
            inside.select(loc - (-safe.log()).log() * scale, nan(q))
        };
    }
}

/// The distribution of von Mises on the circle, of concentration `kappa`.
pub mod vonmises {
    use crate::formula::{formulas, nan, number};
    use crate::special;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, kappa) = {
            let good = kappa.gt(0i32);
            let k = good.select(kappa, number(kappa, 1.0));
            let norm = (special::i0e(&k) * std::f64::consts::TAU).log();
            good.select(k * (x.cos() - 1i32) - norm, nan(x))
        };
        /// The density.
        pdf(x, kappa) = logpdf(x, kappa).exp();
    }
}
