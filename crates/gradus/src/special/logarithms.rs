//! Products with logarithms, which are zero where a factor is, and what is made of them.

use gradus_core::Array;

use crate::formula::{formulas, number};

/// x log y, where the logarithm of what has none is taken as 0 if it is multiplied with 0. Elsewhere it stays as it is: its derivative by x is not 0 where x is.
fn product(x: &Array, y: &Array, log: fn(&Array) -> Array) -> Array {
    let none = x.eq(0i32) & !y.is_nan() & !log(y).is_finite();
    x * log(&none.select(number(y, 1.0), y))
}

formulas! {
    /// x log y, which is 0 where x is.
    xlogy(x, y) = product(x, y, Array::log);
    /// x log(1 + y), which is 0 where x is.
    xlog1py(x, y) = product(x, y, Array::log1p);
    /// -x log x: what an event adds to the entropy. 0 at 0, minus infinity below.
    entr(x) = {
        let below = x.lt(0i32);
        let safe = below.select(number(x, 1.0), x);
        below.select(number(x, f64::NEG_INFINITY), -xlogy(&safe, &safe))
    };
    /// x log(x / y): what an event adds to the relative entropy. 0 where x is 0 and y is not negative; infinite where only y is 0, or one is negative.
    rel_entr(x, y) = {
        let both = x.gt(0i32) & y.gt(0i32);
        let (u, v) = (both.select(x, number(x, 1.0)), both.select(y, number(y, 1.0)));
        let inside = &u * (&u / &v).log();
        let zero = x.eq(0i32) & y.ge(0i32);
        let outside = zero.select(inside.zeros_like(), number(&inside, f64::INFINITY));
        let found = both.select(inside, outside);
        (x.is_nan() | y.is_nan()).select(number(x, f64::NAN), found)
    };
    /// x log(x / y) - x + y: [`rel_entr`] with what makes it a distance. Zero where both are equal.
    kl_div(x, y) = {
        let both = x.gt(0i32) & y.gt(0i32);
        rel_entr(x, y) + both.select(y - x, (x.eq(0i32) & y.ge(0i32)).select(y, number(y, 0.0)))
    };
    /// log(p / (1 - p)), the inverse of [`Array::logistic`].
    logit(p) = p.log() - (-p).log1p();
    /// (x^λ - 1) / λ, which is log x for λ = 0, of positive x.
    boxcox(x, lambda) = power_of_log(&x.log(), lambda);
    /// [`boxcox`] of 1 + x, without loss for small x.
    boxcox1p(x, lambda) = power_of_log(&x.log1p(), lambda);
}

/// (e^(λl) - 1) / λ, with its limit l at λ = 0 and the derivatives there, by a series where the quotient loses digits.
fn power_of_log(log: &Array, lambda: &Array) -> Array {
    let exponent = log * lambda;
    let near = exponent.abs().lt(1e-3_f64);
    let small = near.select(&exponent, number(&exponent, 0.0));
    let mut series = number(&exponent, 1.0 / 720.0);
    for c in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0_f64] {
        series = series * &small + c;
    }
    // Not as a product with the logarithm, whose derivative would be a difference of large numbers.
    let one = number(&exponent, 1.0);
    near.select(log * series, near.select(&one, &exponent).expm1() / near.select(&one, lambda))
}
