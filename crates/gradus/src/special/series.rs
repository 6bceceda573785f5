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

/// A fraction at a whole number ends early, and its derivative by that number does not. So the loop goes on until the same fraction beside it has converged too.
const BESIDE: f64 = 0.314_159;

/// A step of the method of Lentz: the denominators of the continued fraction, and the factor that the step changes it by.
struct Lentz {
    d: Array,
    /// One over c.
    inverse: Array,
    change: Array,
}

impl Lentz {
    fn begin(b: &Array) -> Lentz {
        let d = 1i32 / b;
        let one = d.ones_like();
        // The first quotient is zero, and more than 1 is far from the end.
        Lentz { d, inverse: one.zeros_like(), change: one + 1i32 }
    }

    fn step(&self, numerator: &Array, b: &Array) -> Lentz {
        let d = 1i32 / (numerator * &self.d + b);
        let c = b + numerator * &self.inverse;
        Lentz { change: &d * &c, d, inverse: 1i32 / c }
    }

    fn state(self) -> (Array, Array, Array) {
        (self.d, self.inverse, self.change)
    }

    fn of((d, inverse, change): &(Array, Array, Array)) -> Lentz {
        Lentz { d: d.clone(), inverse: inverse.clone(), change: change.clone() }
    }
}

type Parts = (Array, Array, Array);

/// The continued fraction of Γ(a, x) e^x x^-a, for x beyond a + 1 or far from the negative axis. `x` may be complex.
pub(super) fn upper(a: &Array, x: &Array) -> Array {
    let tolerance = 2.0 * epsilon(x.dtype());
    let (still, beside) = (x.stop_gradient(), (a - BESIDE).stop_gradient());
    let denominator = |a: &Array, x: &Array, n: &Array| x - a + 1i32 + n * 2i32;
    let start = Lentz::begin(&denominator(a, x, &number(a, 0.0)));
    let other = Lentz::begin(&denominator(&beside, &still, &number(a, 0.0)));
    let h = start.d.clone();
    type State = (Array, Parts, Parts, Array);
    let more = |(i, s, o, _): &State| goes_on(&(&s.2 - 1i32), i, tolerance) | goes_on(&(&o.2 - 1i32), i, tolerance);
    let step = |(i, s, o, h): &State| {
        let i = i + 1i32;
        let n = i.cast(x.dtype());
        let s = Lentz::of(s).step(&(&n * (a - &n)), &denominator(a, x, &n));
        let o = Lentz::of(o).step(&(&n * (&beside - &n)), &denominator(&beside, &still, &n));
        let h = h * &s.change;
        (i, s.state(), o.state(), h)
    };
    while_loop(more, step, (number(&a.real(), 0.0), start.state(), other.state(), h)).3
}

/// The continued fraction of the incomplete beta function, for x below (a + 1) / (a + b + 2).
pub(super) fn beta(a: &Array, b: &Array, x: &Array) -> Array {
    let tolerance = 2.0 * epsilon(x.dtype());
    // Two numerators, the fraction going on from 1 + ….
    let even = |a: &Array, b: &Array, x: &Array, m: &Array| {
        let twice = m * 2i32 + a;
        m * (b - m) * x / ((&twice - 1i32) * twice)
    };
    let odd = |a: &Array, b: &Array, x: &Array, m: &Array| {
        let twice = m * 2i32 + a;
        -((a + m) * (a + b + m) * x) / (&twice * (&twice + 1i32))
    };
    let (a1, b1, x1) = (a.stop_gradient(), (b + BESIDE).stop_gradient(), x.stop_gradient());
    let begin = |a: &Array, b: &Array, x: &Array| {
        let first = Lentz::begin(&(1i32 - (a + b) * x / (a + 1i32)));
        // c begins with 1.
        Lentz { inverse: first.d.ones_like(), ..first }
    };
    let (start, other) = (begin(a, b, x), begin(&a1, &b1, &x1));
    let (h, one) = (start.d.clone(), start.d.ones_like());
    type State = (Array, Parts, Parts, Array);
    let more = |(i, s, o, _): &State| goes_on(&(&s.2 - 1i32), i, tolerance) | goes_on(&(&o.2 - 1i32), i, tolerance);
    let step = |(m, s, o, h): &State| {
        let m = m + 1i32;
        let first = Lentz::of(s).step(&even(a, b, x, &m), &one);
        let h = h * &first.change;
        let s = first.step(&odd(a, b, x, &m), &one);
        let o = Lentz::of(o).step(&even(&a1, &b1, &x1, &m), &one).step(&odd(&a1, &b1, &x1, &m), &one);
        let h = h * &s.change;
        (m, s.state(), o.state(), h)
    };
    while_loop(more, step, (number(a, 0.0), start.state(), other.state(), h)).3
}

/// The sum of terms x^k / k! · weight(k), where no weight is larger than 1; the terms are of one sign, or x is small.
pub(super) fn exponential(x: &Array, weight: impl Fn(&Array) -> Array) -> Array {
    let tolerance = 1e-3 * epsilon(x.dtype());
    let zero = number(x, 0.0);
    let one = x.ones_like();
    let first = &one * weight(&zero);
    type State = (Array, Array, Array);
    let more = |(k, power, sum): &State| {
        // A weight may be zero, so the terms are measured without it.
        let size = sum.abs().maximum(number(x, f64::from(f32::MIN_POSITIVE)));
        goes_on(&(power / size), k, tolerance)
    };
    let step = |(k, power, sum): &State| {
        let k = k + 1i32;
        let power = power * x / &k;
        let sum = sum + &power * weight(&k);
        (k, power, sum)
    };
    while_loop(more, step, (zero, one, first)).2
}

/// A polynomial of x with coefficients from the lowest power on.
pub(super) fn polynomial(x: &Array, coefficients: impl DoubleEndedIterator<Item = f64>) -> Array {
    coefficients.rev().fold(number(x, 0.0), |sum, c| sum * x + c)
}

/// 1 + r₁x (1 + r₂x (1 + …)): a series by the ratios of its coefficients, which themselves may be too large or too small for the dtype.
pub(super) fn nested(x: &Array, ratios: impl DoubleEndedIterator<Item = f64>) -> Array {
    ratios.rev().fold(number(x, 1.0), |sum, r| sum * x * r + 1i32)
}
