//! Incomplete gamma and beta functions, and exponential integrals, which are among them. They have derivatives by every operand.

use gradus_core::{Array, DType, Operand};

use super::gamma::stirling;
use super::{betaln, series};
use crate::formula::{computed, formulas, nan, number};

/// Both incomplete gamma functions; the smaller one of them is computed, the other is what it leaves of 1.
fn gammas(a: &Array, x: &Array) -> [Array; 2] {
    let plain = a.gt(0i32) & x.gt(0i32) & a.is_finite() & x.is_finite();
    let one = number(x, 1.0);
    let (a0, x0) = (plain.select(a, &one), plain.select(x, &one));
    // Of the numbers as they came: what is taken out is safe either way.
    let low = x.lt(a + 1i32);
    // Each way sees numbers only that it is good for.
    let sum = series::lower(&low.select(&a0, &one), &low.select(&x0, &one));
    let fraction = series::upper(&low.select(&one, &a0), &low.select(number(x, 4.0), &x0));
    let part = scale(a, x, &a0, &x0) * low.select(sum, fraction);
    let rest = 1i32 - &part;
    let inside = [low.select(&part, &rest), low.select(&rest, &part)];
    let zero = number(x, 0.0);
    let full = (x.gt(0i32) & a.eq(0i32)) | (x.eq(f64::INFINITY) & a.ge(0i32) & a.is_finite());
    let none = (x.eq(0i32) & a.gt(0i32)) | (a.eq(f64::INFINITY) & x.ge(0i32) & x.is_finite());
    let [p, q] = inside;
    let edge = |at_full: &Array, at_none: &Array| full.select(at_full, none.select(at_none, nan(x)));
    [plain.select(p, edge(&one, &zero)), plain.select(q, edge(&zero, &one))]
}

/// x^a e^-x / Γ(a). For a large a near x the powers cancel: with Stirling's formula they do so on paper.
fn scale(a: &Array, x: &Array, a0: &Array, x0: &Array) -> Array {
    let plain = a0 * x0.log() - x0 - a0.lgamma();
    let large = a.ge(8i32) & x.gt(a * 0.25_f64) & x.lt(a * 4i32);
    let eight = number(x, 8.0);
    let (a1, x1) = (large.select(a0, &eight), large.select(x0, &eight));
    let apart = (x1 - &a1) / &a1;
    let stirling = &a1 * (apart.log1p() - &apart) + (&a1 / std::f64::consts::TAU).log() * 0.5_f64 - stirling(&a1);
    large.select(stirling, plain).exp()
}

formulas! {
    /// The lower incomplete gamma function P(a, x), the part of Γ(a) from 0 to x: the distribution function of the gamma distribution.
    #[doc(alias = "igamma")]
    gammainc(a, x) = {
        let [p, _] = gammas(a, x);
        p
    };
    /// The upper incomplete gamma function Q(a, x) = 1 - P(a, x), with all its digits where it is small.
    #[doc(alias = "igammac")]
    gammaincc(a, x) = {
        let [_, q] = gammas(a, x);
        q
    };
    /// The incomplete beta function, the part of B(a, b) from 0 to x: the distribution function of the beta distribution.
    betainc(a, b, x) = {
        let plain = a.gt(0i32) & b.gt(0i32) & x.gt(0i32) & x.lt(1i32);
        let one = number(x, 1.0);
        let (a0, b0) = (plain.select(a, &one), plain.select(b, &one));
        let x0 = plain.select(x, number(x, 0.25));
        // From the nearer end; what is left of 1 is the other part.
        let far = x.gt((a + 1i32) / (a + b + 2i32));
        let (first, second) = (far.select(&b0, &a0), far.select(&a0, &b0));
        let near = far.select(1i32 - &x0, &x0);
        let (log, log_rest) = (x0.log(), (-&x0).log1p());
        let scale = (&a0 * log + &b0 * log_rest - betaln(&a0, &b0)).exp();
        let part = scale * series::beta(&first, &second, &near) / first;
        let inside = far.select(1i32 - &part, &part);
        let good = a.gt(0i32) & b.gt(0i32);
        let edge = (x.eq(0i32) & &good).select(number(x, 0.0), (x.eq(1i32) & good).select(&one, nan(x)));
        plain.select(inside, edge)
    };
    /// The exponential integral E₁(x), of e^-t / t from x on, for positive x.
    exp1(x) = integral(1, x);
}

/// The exponential integral of order n, of e^(-xt) / t^n from 1 on, for positive x.
#[track_caller]
pub fn expn(n: usize, x: &Array) -> Array {
    computed("expn", [x.into_operand()], |[x]| if n > MANY { far(n, x) } else { integral(n, x) })
}

/// From this order on four terms of an expansion in its reciprocal are exact.
const MANY: usize = 5000;

/// The exponential integral of a large order: e^-x / (x + n) times a sum of powers of n / (x + n)².
fn far(n: usize, x: &Array) -> Array {
    if x.dtype() == DType::F16 {
        // Half floats do not hold such an order.
        return far(n, &x.cast(DType::F32)).cast(DType::F16);
    }
    let n = n as f64;
    // Seen in parts of x + n, all terms are small.
    let all = x + n;
    let (of_n, of_x) = (number(x, n) / &all, x / &all);
    let step = &of_n / &all;
    let third = &of_x * &of_x * 6i32 - &of_n * &of_x * 8i32 + &of_n * &of_n;
    let second = &of_n - &of_x * 2i32;
    let sum = ((third / &all + second) * (&step / &all) + &step) + 1i32;
    let inside = (-x).exp() / &all * sum;
    let edge = x.eq(f64::INFINITY).select(number(x, 0.0), nan(x));
    (x.ge(0i32) & x.is_finite()).select(inside, edge)
}

/// By its power series up to 2, by the continued fraction of Γ(1 - n, x) beyond.
fn integral(n: usize, x: &Array) -> Array {
    if n == 0 {
        return (-x).exp() / x;
    }
    let order = n as f64;
    let plain = x.gt(0i32) & x.is_finite();
    let x0 = plain.select(x, number(x, 1.0));
    let low = x0.le(2i32);
    let small = low.select(&x0, number(x, 1.0));
    let large = low.select(number(x, 4.0), &x0);
    let fraction = (-&large).exp() * series::upper(&number(x, 1.0 - order), &large);
    // The term with the logarithm stands where the denominator would be zero.
    let harmonic: f64 = (1..n).map(|k| 1.0 / k as f64).sum::<f64>() - 0.577_215_664_901_532_9;
    let factorial: f64 = (1..n).map(|k| k as f64).product();
    // A power of at most two over a factorial that is no float is nothing.
    let lead = match factorial.is_finite() {
        true => (-&small).powi(n as i64 - 1) * (harmonic - small.log()) / number(x, factorial),
        false => number(x, 0.0),
    };
    let sum = series::exponential(&-&small, |m| {
        let apart = m - (order - 1.0);
        let here = apart.eq(0i32);
        here.select(number(x, 0.0), 1i32 / here.select(number(x, 1.0), &apart))
    });
    let inside = low.select(lead - sum, fraction);
    let at_zero = number(x, if n == 1 { f64::INFINITY } else { 1.0 / (order - 1.0) });
    let edge = x.eq(0i32).select(at_zero, x.eq(f64::INFINITY).select(number(x, 0.0), nan(x)));
    plain.select(inside, edge)
}
