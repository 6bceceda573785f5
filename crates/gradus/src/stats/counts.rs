//! Distributions of whole numbers.

/// One draw that succeeds with probability `p`.
pub mod bernoulli {
    use crate::formula::{formulas, impossible, nan, number};
    use crate::special;

    formulas! {
        /// The logarithm of the probability of k.
        logpmf(k, p, loc) = {
            let x = k - loc;
            let value = special::xlogy(&x, p) + special::xlog1py(1i32 - &x, -p);
            (x.lt(0i32) | x.gt(1i32)).select(impossible(k), value)
        };
        /// The probability of k.
        pmf(k, p, loc) = logpmf(k, p, loc).exp();
        /// The probability of at most k.
        cdf(k, p) = {
            let bad = k.is_nan() | p.is_nan() | p.lt(0i32) | p.gt(1i32);
            let value = k.lt(0i32).select(number(k, 0.0), k.lt(1i32).select(1i32 - p, number(k, 1.0)));
            bad.select(nan(k), value)
        };
        /// The least number that is not exceeded with probability q.
        ppf(q, p) = {
            let good = q.ge(0i32) & q.le(1i32) & p.ge(0i32) & p.le(1i32);
            good.select(q.le(1i32 - p).select(number(q, 0.0), number(q, 1.0)), nan(q))
        };
    }
}

/// The number of successes in `n` draws that succeed with probability `p`.
pub mod binom {
    use crate::formula::{formulas, impossible, number};
    use crate::special;

    formulas! {
        /// The logarithm of the probability of k.
        logpmf(k, n, p, loc) = {
            let y = k - loc;
            let outside = y.lt(0i32) | y.ge(n + 1i32);
            let y = outside.select(number(k, 0.0), y);
            let ways = (n + 1i32).lgamma() - (&y + 1i32).lgamma() - (n - &y + 1i32).lgamma();
            outside.select(impossible(k), ways + special::xlogy(&y, p) + special::xlog1py(n - &y, -p))
        };
        /// The probability of k.
        pmf(k, n, p, loc) = logpmf(k, n, p, loc).exp();
    }
}

/// The number of successes in `n` draws whose probability has a beta distribution.
pub mod betabinom {
    use crate::formula::{formulas, impossible, nan, number};
    use crate::special::betaln;

    formulas! {
        /// The logarithm of the probability of k.
        logpmf(k, n, a, b, loc) = {
            let y = k.floor() - loc;
            let outside = y.lt(0i32) | y.gt(n);
            let y = outside.select(number(k, 0.0), y);
            let good = n.ge(0i32) & a.gt(0i32) & b.gt(0i32);
            let n = good.select(n, number(n, 1.0));
            let ways = -n.log1p() - betaln(&n - &y + 1i32, &y + 1i32);
            let value = ways + betaln(&y + a, &n - &y + b) - betaln(a, b);
            good.select(outside.select(impossible(k), value), nan(k))
        };
        /// The probability of k.
        pmf(k, n, a, b, loc) = logpmf(k, n, a, b, loc).exp();
    }
}

/// The number of draws up to the first success, of probability `p`.
pub mod geom {
    use crate::formula::{formulas, impossible};
    use crate::special;

    formulas! {
        /// The logarithm of the probability of k.
        logpmf(k, p, loc) = {
            let x = k - loc;
            x.le(0i32).select(impossible(k), special::xlog1py(&x - 1i32, -p) + p.log())
        };
        /// The probability of k.
        pmf(k, p, loc) = logpmf(k, p, loc).exp();
    }
}

/// The number of failures before the n-th success, of probability `p`.
pub mod nbinom {
    use crate::formula::{formulas, impossible, number};
    use crate::special;

    formulas! {
        /// The logarithm of the probability of k.
        logpmf(k, n, p, loc) = {
            let outside = k.lt(loc);
            let y = outside.select(number(k, 0.0), k - loc);
            let ways = (&y + n).lgamma() - n.lgamma() - (&y + 1i32).lgamma();
            outside.select(impossible(k), ways + special::xlogy(n, p) + special::xlog1py(&y, -p))
        };
        /// The probability of k.
        pmf(k, n, p, loc) = logpmf(k, n, p, loc).exp();
    }
}

/// The number of events of which `mu` are expected.
pub mod poisson {
    use crate::formula::{formulas, impossible, number};
    use crate::special;

    formulas! {
        /// The logarithm of the probability of k; of what is no whole number it is minus infinity.
        logpmf(k, mu, loc) = {
            let x = k - loc;
            let outside = x.lt(0i32) | (k.round().ne(k) & !k.is_nan());
            let x = outside.select(number(k, 0.0), x);
            outside.select(impossible(k), special::xlogy(&x, mu) - (&x + 1i32).lgamma() - mu)
        };
        /// The probability of k.
        pmf(k, mu, loc) = logpmf(k, mu, loc).exp();
        /// The probability of at most k.
        cdf(k, mu, loc) = {
            let x = k - loc;
            let below = x.lt(0i32);
            let safe = below.select(number(k, 0.0), &x);
            below.select(number(k, 0.0), special::gammaincc((safe + 1i32).floor(), mu))
        };
    }
}

/// The numbers of each kind, along the last axis, in `n` draws whose kinds have probabilities `p`.
pub mod multinomial {
    use crate::formula::{formulas, impossible};
    use crate::special;

    formulas! {
        /// The logarithm of the probability of the numbers x.
        logpmf(x, n, p) = {
            let value = (n + 1i32).lgamma() + (special::xlogy(x, p) - (x + 1i32).lgamma()).sum_axes(-1);
            let count = x.sum_axes(-1);
            (count.lt(n) | count.gt(n)).select(impossible(x), value)
        };
        /// The probability of the numbers x.
        pmf(x, n, p) = logpmf(x, n, p).exp();
    }
}
