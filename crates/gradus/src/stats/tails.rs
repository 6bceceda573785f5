//! Distributions on the positive numbers.

/// The exponential distribution from `loc` on, with mean `scale` beyond it.
pub mod expon {
    use crate::formula::{formulas, impossible, nan, number};

    formulas! {
        /// The logarithm of the density.
        logpdf(x, loc, scale) = x.lt(loc).select(impossible(x), (loc - x) / scale - scale.log());
        /// The density.
        pdf(x, loc, scale) = logpdf(x, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, loc, scale) = x.lt(loc).select(number(x, 0.0), -((loc - x) / scale).expm1());
        /// The logarithm of [`cdf`].
        logcdf(x, loc, scale) = (-sf(x, loc, scale)).log1p();
        /// The logarithm of [`sf`].
        logsf(x, loc, scale) = x.lt(loc).select(number(x, 0.0), (loc - x) / scale);
        /// The probability of more than x.
        sf(x, loc, scale) = logsf(x, loc, scale).exp();
        /// The number that is not exceeded with probability q.
        ppf(q, loc, scale) = {
            let inside = q.ge(0i32) & q.le(1i32);
            inside.select(loc - (-inside.select(q, number(q, 0.5))).log1p() * scale, nan(q))
        };
    }
}

/// The gamma distribution of shape `a`.
pub mod gamma {
    use crate::formula::{formulas, impossible, number};
    use crate::special;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, a, loc, scale) = {
            let outside = x.lt(loc);
            let y = outside.select(number(x, 1.0), (x - loc) / scale);
            outside.select(impossible(x), special::xlogy(a - 1i32, &y) - &y - a.lgamma() - scale.log())
        };
        /// The density.
        pdf(x, a, loc, scale) = logpdf(x, a, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, a, loc, scale) = special::gammainc(a, ((x - loc) / scale).maximum(0i32));
        /// The logarithm of [`cdf`].
        logcdf(x, a, loc, scale) = cdf(x, a, loc, scale).log();
        /// The probability of more than x.
        sf(x, a, loc, scale) = special::gammaincc(a, ((x - loc) / scale).maximum(0i32));
        /// The logarithm of [`sf`].
        logsf(x, a, loc, scale) = sf(x, a, loc, scale).log();
    }
}

/// The distribution of a sum of `df` squares of normal numbers.
pub mod chi2 {
    use crate::formula::formulas;
    use crate::stats::gamma;

    formulas! {
        /// The logarithm of the density.
        logpdf(x, df, loc, scale) = gamma::logpdf(x, df * 0.5_f64, loc, scale * 2i32);
        /// The density.
        pdf(x, df, loc, scale) = logpdf(x, df, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, df, loc, scale) = gamma::cdf(x, df * 0.5_f64, loc, scale * 2i32);
        /// The logarithm of [`cdf`].
        logcdf(x, df, loc, scale) = cdf(x, df, loc, scale).log();
        /// The probability of more than x.
        sf(x, df, loc, scale) = gamma::sf(x, df * 0.5_f64, loc, scale * 2i32);
        /// The logarithm of [`sf`].
        logsf(x, df, loc, scale) = sf(x, df, loc, scale).log();
    }
}

/// The distribution of Pareto of exponent `b`, from `loc + scale` on.
pub mod pareto {
    use crate::formula::{formulas, impossible, nan, number};

    formulas! {
        /// The logarithm of the density.
        logpdf(x, b, loc, scale) = {
            let outside = x.lt(loc + scale);
            let z = outside.select(number(x, 1.0), (x - loc) / scale);
            outside.select(impossible(x), -((scale / b).log() + (b + 1i32) * z.log()))
        };
        /// The density.
        pdf(x, b, loc, scale) = logpdf(x, b, loc, scale).exp();
        /// The probability of at most x.
        cdf(x, b, loc, scale) = -logsf(x, b, loc, scale).expm1();
        /// The logarithm of [`cdf`].
        logcdf(x, b, loc, scale) = cdf(x, b, loc, scale).log();
        /// The logarithm of [`sf`].
        logsf(x, b, loc, scale) = {
            let outside = x.lt(loc + scale);
            let z = outside.select(number(x, 1.0), (x - loc) / scale);
            outside.select(number(x, 0.0), -(b * z.log()))
        };
        /// The probability of more than x.
        sf(x, b, loc, scale) = logsf(x, b, loc, scale).exp();
        /// The number that is not exceeded with probability q.
        ppf(q, b, loc, scale) = {
            let inside = q.ge(0i32) & q.le(1i32);
            let rest = 1i32 - inside.select(q, number(q, 0.5));
            inside.select(loc + scale * rest.pow(-1i32 / b), nan(q))
        };
    }
}
