//! Distributions between bounds.

/// The uniform distribution from `loc` to `loc + scale`.
pub mod uniform {
    use crate::formula::{formulas, impossible, nan, number};

    formulas! {
        /// The logarithm of the density.
        logpdf(x, loc, scale) = {
            let value = (x.lt(loc) | x.gt(loc + scale)).select(impossible(x), -scale.log());
            (x.is_nan() | loc.is_nan()).select(nan(x), value)
        };
        /// The density.
        pdf(x, loc, scale) = logpdf(x, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, loc, scale) = {
            let (below, above) = (x.lt(loc), x.gt(loc + scale));
            below.select(number(x, 0.0), above.select(number(x, 1.0), (x - loc) / scale))
        };
        /// The number that is not exceeded with probability q.
        ppf(q, loc, scale) = (q.ge(0i32) & q.le(1i32)).select(loc + scale * q, nan(q));
    }
}

/// The beta distribution with exponents `a` and `b`, from `loc` to `loc + scale`.
pub mod beta {
    use crate::formula::{formulas, impossible, nan, number};
    use crate::special;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, a, b, loc, scale) = {
            // What is outside is asked for, here and elsewhere, since NaN is neither there nor inside and has to be seen.
            let outside = x.lt(loc) | x.gt(loc + scale);
            let y = outside.select(number(x, 0.5), (x - loc) / scale);
            let linear = special::xlogy(a - 1i32, &y) + special::xlog1py(b - 1i32, -&y);
            let value = outside.select(impossible(x), linear - special::betaln(a, b) - scale.log());
            (a.gt(0i32) & b.gt(0i32) & scale.gt(0i32)).select(&value, nan(x))
        };
        /// The density.
        pdf(x, a, b, loc, scale) = logpdf(x, a, b, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, a, b, loc, scale) = special::betainc(a, b, ((x - loc) / scale).clamp(0i32, 1i32));
        /// The logarithm of [`cdf`].
        logcdf(x, a, b, loc, scale) = cdf(x, a, b, loc, scale).log();
        /// The probability of more than x.
        sf(x, a, b, loc, scale) = special::betainc(b, a, 1i32 - ((x - loc) / scale).clamp(0i32, 1i32));
        /// The logarithm of [`sf`].
        logsf(x, a, b, loc, scale) = sf(x, a, b, loc, scale).log();
    }
}

/// The distribution of Dirichlet on parts of 1, along the last axis.
pub mod dirichlet {
    use crate::formula::{formulas, impossible, number};
    use crate::special;

    formulas! {
        /// The logarithm of the density at the parts x, which add up to 1 along the last axis.
        logpdf(x, alpha) = {
            let norm = alpha.lgamma().sum_axes(-1) - alpha.sum_axes(-1).lgamma();
            let outside = x.le(0i32) | x.ge(1i32);
            let safe = outside.select(number(x, 0.5), x);
            let value = special::xlogy(alpha - 1i32, safe).sum_axes(-1) - norm;
            // Rounded parts add up to 1 but for some last places.
            let apart = (x.sum_axes(-1) - 1i32).abs().ge(1e-5_f64);
            (apart | outside.any_axes(-1)).select(impossible(x), &value)
        };
        /// The density.
        pdf(x, alpha) = logpdf(x, alpha).exp();
    }
}

/// The part of a normal distribution between `a` and `b`, which are counted in standard deviations from `loc`.
pub mod truncnorm {
    use gradus_core::Array;

    use crate::formula::{formulas, impossible, nan, number};
    use crate::nn::log1mexp;
    use crate::special;
    use crate::stats::norm;

    /// The logarithm of the part of the standard normal distribution between two numbers, from the tail where it has its digits.
    fn log_mass(a: &Array, b: &Array) -> Array {
        let right = a.gt(0i32);
        let (low, high) = (right.select(-b, a), right.select(-a, b));
        // log(Φ(high) - Φ(low)) = log Φ(high) + log(1 - e^(log Φ(low) - log Φ(high)))
        let (less, more) = (special::log_ndtr(&low), special::log_ndtr(&high));
        let none = low.eq(f64::NEG_INFINITY);
        let apart = none.select(number(a, 1.0), &more - &less);
        let apart = apart.gt(0i32).select(&apart, number(a, 1.0));
        none.select(&more, &more + log1mexp(&apart))
    }

    formulas! {
        /// The logarithm of the density.
        logpdf(x, a, b, loc, scale) = {
            let z = (x - loc) / scale;
            let value = norm::logpdf(x, loc, scale) - log_mass(a, b);
            let inside = (z.lt(a) | z.gt(b)).select(impossible(x), value);
            a.ge(b).select(nan(x), inside)
        };
        /// The density.
        pdf(x, a, b, loc, scale) = logpdf(x, a, b, loc, scale).exp();
        /// The logarithm of [`cdf`].
        logcdf(x, a, b, loc, scale) = {
            let z = (x - loc) / scale;
            let (below, above) = (z.le(a), z.ge(b));
            let safe = (&below | &above).select((a + b) * 0.5_f64, &z);
            let whole = log_mass(a, b);
            let value = log_mass(a, &safe) - &whole;
            // Near the upper end by what is beyond.
            let rest = log_mass(&safe, b) - whole;
            let near = value.gt(-0.1_f64);
            let near_end = (-near.select(&rest, number(x, -1.0)).exp()).log1p();
            let inside = near.select(near_end, value);
            let value = above.select(number(x, 0.0), below.select(impossible(x), inside));
            a.ge(b).select(nan(x), value)
        };
        /// The probability of at most x.
        cdf(x, a, b, loc, scale) = logcdf(x, a, b, loc, scale).exp();
        /// The logarithm of [`sf`].
        logsf(x, a, b, loc, scale) = logcdf(-x, -b, -a, -loc, scale);
        /// The probability of more than x.
        sf(x, a, b, loc, scale) = logsf(x, a, b, loc, scale).exp();
    }
}

/// The distribution of Cauchy wrapped around the circle, of concentration `c`.
pub mod wrapcauchy {
    use std::f64::consts::TAU;

    use crate::formula::{formulas, impossible, nan, number};

    formulas! {
        /// The logarithm of the density.
        logpdf(x, c) = {
            let good = c.gt(0i32) & c.lt(1i32);
            let c0 = good.select(c, number(c, 0.5));
            let value = (-(&c0 * &c0)).log1p() - TAU.ln() - (&c0 * &c0 + 1i32 - &c0 * x.cos() * 2i32).log();
            let inside = (x.lt(0i32) | x.gt(TAU)).select(impossible(x), value);
            good.select(inside, nan(x))
        };
        /// The density.
        pdf(x, c) = logpdf(x, c).exp();
    }
}
