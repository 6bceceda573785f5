//! Sums and continued fractions whose length depends on the numbers: loops on all elements at once until the last is done. Derivatives are those of the loops.

use gradus_core::{Array, DType};

use crate::control::while_loop;
use crate::formula::number;

/// No number takes more steps; what is not there by then has no such accuracy.
const MOST: f64 = 20_000.0;

/// The distance from 1 to the next number.
fn epsilon(dtype: DType) -> f64 {
    if dtype.real_part() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

/// Whether a step still changes something; counts the steps.
fn goes_on(change: &Array, steps: &Array, tolerance: f64) -> Array {
    change.abs().gt(tolerance).any() & steps.lt(MOST)
}

/// The sum over n of x^n / (a (a + 1) … (a + n)), for x at most a + 1 or so.
pub(super) fn lower(a: &Array, x: &Array) -> Array {
    let dtype = x.dtype();
    let first = 1i32 / a;
    let begin = (number(a, 0.0), first.clone(), first);
    // The derivative by a is a step behind the sum, so it goes on a little longer.
    let tolerance = 1e-3 * epsilon(dtype);
    let more = |(n, term, sum): &(Array, Array, Array)| goes_on(&(term / sum), n, tolerance);
    let step = |(n, term, sum): &(Array, Array, Array)| {
        let n = n + 1i32;
        let term = term * x / (a + &n);
        let sum = sum + &term;
        (n, term, sum)
    };
    while_loop(more, step, begin).2
}

/// The continued fraction of Γ(a, x) e^x x^-a by the method of Lentz, for x beyond a + 1 or far from the negative axis. `x` may be complex.
pub(super) fn upper(a: &Array, x: &Array) -> Array {
    let tolerance = 2.0 * epsilon(x.dtype());
    let b = x - a + 1i32;
    let first = 1i32 / &b;
    let one = first.ones_like();
    // With c infinite in the first step, its quotient is zero: the loop begins behind it.
    let begin = (number(&a.real(), 0.0), b, one.zeros_like(), first.clone(), first, one + 1i32);
    type State = (Array, Array, Array, Array, Array, Array);
    let more = |s: &State| goes_on(&(&s.5 - 1i32), &s.0, tolerance);
    let step = |(i, b, inverse, d, h, _): &State| {
        let i = i + 1i32;
        let n = i.cast(x.dtype());
        let factor = &n * (a - &n);
        let b = b + 2i32;
        let d = 1i32 / (&factor * d + &b);
        // c = b + factor / c, kept as its inverse.
        let c = &b + &factor * inverse;
        let change = &d * &c;
        (i, b, 1i32 / &c, d, h * &change, change)
    };
    while_loop(more, step, begin).4
}

/// The continued fraction of the incomplete beta function, for x below (a + 1) / (a + b + 2).
pub(super) fn beta(a: &Array, b: &Array, x: &Array) -> Array {
    let tolerance = 2.0 * epsilon(x.dtype());
    let sum = a + b;
    let first = 1i32 / (1i32 - &sum * x / (a + 1i32));
    let one = first.ones_like();
    let begin = (number(a, 0.0), one.clone(), first.clone(), first, one + 1i32);
    type State = (Array, Array, Array, Array, Array);
    let more = |s: &State| goes_on(&(&s.4 - 1i32), &s.0, tolerance);
    let step = |(m, c, d, h, _): &State| {
        let m = m + 1i32;
        let (twice, next) = (&m * 2i32 + a, a + &m);
        let even = &m * (b - &m) * x / ((&twice - 1i32) * &twice);
        let (d, c) = (1i32 / (&even * d + 1i32), &even / c + 1i32);
        let h = h * (&d * &c);
        let odd = -(next * (&sum + &m) * x) / (&twice * (&twice + 1i32));
        let (d, c) = (1i32 / (&odd * &d + 1i32), &odd / &c + 1i32);
        let change = &d * &c;
        (m, c, d, h * &change, change)
    };
    while_loop(more, step, begin).3
}

/// The sum of terms x^k / k! · weight(k) from `first` on; the terms are of one sign, or x is small.
pub(super) fn exponential(x: &Array, weight: impl Fn(&Array) -> Array) -> Array {
    let tolerance = 1e-2 * epsilon(x.dtype());
    let zero = number(x, 0.0);
    let one = x.ones_like();
    let begin = (zero.clone(), one.clone(), &one * weight(&zero), one);
    type State = (Array, Array, Array, Array);
    let more = |(k, _, sum, added): &State| {
        let size = sum.abs().maximum(number(x, f64::from(f32::MIN_POSITIVE)));
        goes_on(&(added / size), k, tolerance)
    };
    let step = |(k, power, sum, _): &State| {
        let k = k + 1i32;
        let power = power * x / &k;
        let added = &power * weight(&k);
        (k, power, sum + &added, added)
    };
    while_loop(more, step, begin).2
}

/// A polynomial of x with coefficients from the lowest power on.
pub(super) fn polynomial(x: &Array, coefficients: impl DoubleEndedIterator<Item = f64>) -> Array {
    coefficients.rev().fold(number(x, 0.0), |sum, c| sum * x + c)
}
