//! Derivatives where functions have kinks, ties, zeros, empty axes and unused arguments: the places where systems
//! differ. Every expected number is derived by hand beside its test.

use gradus::prelude::*;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn numbers(a: &Array) -> Vec<f64> {
    a.to_vec::<f64>().unwrap()
}

/// Equal up to rounding; a NaN equals a NaN.
#[track_caller]
fn same(have: &Array, want: &[f64]) {
    let have = numbers(have);
    let fits = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * (1.0 + b.abs());
    assert!(have.len() == want.len() && have.iter().zip(want).all(fits), "{have:?} where {want:?} is right");
}

/// Reverse mode, however it is staged.
#[track_caller]
fn backward(f: impl Fn(&Array) -> Array + Clone + Send + Sync + 'static, x: &Array, want: &[f64]) {
    same(&grad(f.clone())(x), want);
    same(&jit(grad(f.clone()))(x), want);
    same(&grad(jit(f))(x), want);
}

/// Forward mode, one direction after the other.
#[track_caller]
fn forward(f: impl Fn(&Array) -> Array + Clone + Send + Sync + 'static, x: &Array, want: &[f64]) {
    same(&jacfwd(f.clone())(x), want);
    same(&jit(jacfwd(f))(x), want);
}

#[track_caller]
fn both(f: impl Fn(&Array) -> Array + Clone + Send + Sync + 'static, x: &Array, want: &[f64]) {
    backward(f.clone(), x, want);
    forward(f, x, want);
}

fn number(x: f64) -> Array {
    Array::from(x)
}

fn kind(a: &Array) -> ErrorKind {
    a.error().unwrap_or_else(|| panic!("no error but {a:?}")).kind()
}

#[test]
fn a_select_that_guards_a_division_poisons_reverse_mode_and_the_safe_pattern_does_not() {
    let naive = |x: &Array| x.ne(0.0_f64).select(x.recip(), 0.0_f64);
    assert_eq!(numbers(&naive(&number(0.0))), [0.0]);
    // The cotangent of 1/x is 0 where it is not chosen, and its slope is -1/0²: 0 · inf.
    backward(naive, &number(0.0), &[NAN]);
    // Forward mode chooses between tangents and multiplies nothing by zero.
    forward(naive, &number(0.0), &[0.0]);
    let safe = |x: &Array| {
        let is_good = x.ne(0.0_f64);
        let y = is_good.select(x, 1.0_f64);
        is_good.select(y.recip(), 0.0_f64)
    };
    let branch = |x: &Array| cond(x.ne(0.0_f64), |x| x.recip(), |x| x.zeros_like(), x);
    // (1/x)' = -1/x²: -1/4 at 2, -4 at -1/2.
    for (x, want) in [(0.0, 0.0), (2.0, -0.25), (-0.5, -4.0)] {
        both(safe, &number(x), &[want]);
        both(branch, &number(x), &[want]);
    }
    let xs = Array::from([0.0_f64, 2.0, -0.5]);
    same(&vmap(grad(safe))(&xs), &[0.0, -0.25, -4.0]);
    same(&vmap(grad(branch))(&xs), &[0.0, -0.25, -4.0]);
    same(&vmap(grad(naive))(&xs), &[NAN, -0.25, -4.0]);
}

#[test]
fn a_select_that_guards_a_root_or_a_logarithm_is_the_same() {
    let naive = |x: &Array| x.gt(0.0_f64).select(x.sqrt(), 0.0_f64);
    let safe = |x: &Array| {
        let is_good = x.gt(0.0_f64);
        is_good.select(is_good.select(x, 1.0_f64).sqrt(), 0.0_f64)
    };
    let branch = |x: &Array| cond(x.gt(0.0_f64), |x| x.sqrt(), |x| x.zeros_like(), x);
    backward(naive, &number(0.0), &[NAN]);
    // √4 has the slope 1/(2·2).
    for (x, want) in [(0.0, 0.0), (-3.0, 0.0), (4.0, 0.25)] {
        both(safe, &number(x), &[want]);
        both(branch, &number(x), &[want]);
    }
    // x log x with 0 log 0 = 0: the slope is log x + 1 where x > 0.
    let entropy = |x: &Array| {
        let is_good = x.gt(0.0_f64);
        let y = is_good.select(x, 1.0_f64);
        is_good.select(&y * y.log(), 0.0_f64).sum()
    };
    backward(entropy, &Array::from([0.0_f64, 1.0, 2.0]), &[0.0, 1.0, 1.0 + 2.0_f64.ln()]);
    let naive = |x: &Array| x.gt(0.0_f64).select(x * x.log(), 0.0_f64).sum();
    backward(naive, &Array::from([0.0_f64, 1.0]), &[NAN, 1.0]);
}

#[test]
fn roots_and_lengths_at_zero_have_no_slope() {
    // √x has the slope 1/(2√x): infinite at 0, from the right.
    both(|x: &Array| x.sqrt(), &number(0.0), &[INF]);
    // |x|₂ = √(Σx²): 1/(2·0) · 2·0. Its slope differs by direction, and the answer says so.
    backward(|x: &Array| x.norm(), &Array::from([0.0_f64, 0.0]), &[NAN, NAN]);
    both(|x: &Array| x.norm(), &Array::from([3.0_f64, 4.0]), &[0.6, 0.8]);
    let safe = |x: &Array| {
        let squares = (x * x).sum();
        let is_good = squares.gt(0.0_f64);
        is_good.select(is_good.select(&squares, 1.0_f64).sqrt(), 0.0_f64)
    };
    both(safe, &Array::from([0.0_f64, 0.0]), &[0.0, 0.0]);
    both(safe, &Array::from([3.0_f64, 4.0]), &[0.6, 0.8]);
    // The standard deviation of equal numbers is such a root.
    backward(|x: &Array| x.std(), &Array::from([1.0_f64, 1.0]), &[NAN, NAN]);
    backward(|x: &Array| x.var(), &Array::from([1.0_f64, 1.0]), &[0.0, 0.0]);
    // The length of a complex number is promised a slope of 0 at 0.
    let length = |x: &Array| Array::complex(&x.index(0), &x.index(1)).abs();
    both(length, &Array::from([0.0_f64, 0.0]), &[0.0, 0.0]);
    both(length, &Array::from([3.0_f64, 4.0]), &[0.6, 0.8]);
    let hypot = |x: &Array| (x.index(0) * x.index(0) + x.index(1) * x.index(1)).sqrt();
    both(hypot, &Array::from([3.0_f64, 4.0]), &[0.6, 0.8]);
    backward(hypot, &Array::from([0.0_f64, 0.0]), &[NAN, NAN]);
}

#[test]
fn an_angle_has_a_slope_everywhere_but_at_the_origin() {
    // atan2(y, x): by y it is x/(x²+y²), by x it is -y/(x²+y²).
    let angle = |v: &Array| v.index(0).atan2(v.index(1));
    assert_eq!(numbers(&angle(&Array::from([0.0_f64, 0.0]))), [0.0]);
    both(angle, &Array::from([0.0_f64, 0.0]), &[NAN, NAN]);
    both(angle, &Array::from([0.0_f64, 2.0]), &[0.5, 0.0]);
    both(angle, &Array::from([2.0_f64, 0.0]), &[0.0, -0.5]);
    both(angle, &Array::from([3.0_f64, -4.0]), &[-4.0 / 25.0, -3.0 / 25.0]);
}

#[test]
fn ties_of_a_pair_share_equally() {
    both(|x: &Array| x.maximum(3.0_f64), &number(3.0), &[0.5]);
    both(|x: &Array| x.minimum(3.0_f64), &number(3.0), &[0.5]);
    // Both sides are x: half and half make one.
    both(|x: &Array| x.maximum(x), &number(3.0), &[1.0]);
    both(|x: &Array| x.maximum(-x), &number(0.0), &[0.0]);
    both(|x: &Array| x.minimum(-x), &number(0.0), &[0.0]);
    // relu is not a maximum: at zero it is flat, as everyone expects of it, and NaN stays NaN.
    both(|x: &Array| x.relu(), &number(0.0), &[0.0]);
    both(|x: &Array| x.relu(), &number(-0.0), &[0.0]);
    assert!(number(f64::NAN).relu().item::<f64>().unwrap().is_nan());
    let (a, b) = grad_all(|a: &Array, b: &Array| a.maximum(b).sum())(
        &Array::from([1.0_f64, 2.0, 3.0]),
        &Array::from([1.0_f64, 5.0, 0.0]),
    );
    same(&a, &[0.5, 0.0, 1.0]);
    same(&b, &[0.5, 1.0, 0.0]);
    // A bound that is touched lets nothing through.
    both(|x: &Array| x.clamp(0.0_f64, 1.0_f64), &number(0.0), &[0.0]);
    both(|x: &Array| x.clamp(0.0_f64, 1.0_f64), &number(1.0), &[0.0]);
    both(|x: &Array| x.clamp(0.0_f64, 1.0_f64), &number(0.5), &[1.0]);
}

#[test]
fn ties_of_a_reduction_share_equally() {
    let third = 1.0 / 3.0;
    both(|x: &Array| x.max(), &Array::from([2.0_f64, 1.0, 2.0]), &[0.5, 0.0, 0.5]);
    both(|x: &Array| x.min(), &Array::from([2.0_f64, 1.0, 2.0]), &[0.0, 1.0, 0.0]);
    both(|x: &Array| x.min(), &Array::from([4.0_f64, 4.0, 4.0]), &[third, third, third]);
    // Zeros of both signs are equal.
    both(|x: &Array| x.max(), &Array::from([0.0_f64, -0.0]), &[0.5, 0.5]);
    let rows = |x: &Array| (x.max_axes(1) * Array::from([1.0_f64, 10.0])).sum();
    backward(rows, &Array::from([[1.0_f64, 1.0], [2.0, 3.0]]), &[0.5, 0.5, 0.0, 10.0]);
    // The place of the largest is an integer: it has no slope.
    both(|x: &Array| x.argmax().cast(DType::F64), &Array::from([1.0_f64, 2.0]), &[0.0, 0.0]);
}

#[test]
fn ties_of_sorts_go_by_their_place() {
    // Stable: 1 is from place 1, the first 2 from place 0, the second from place 2.
    let weights = || Array::from([1.0_f64, 10.0, 100.0]);
    let up = move |x: &Array| (x.sort(0) * weights()).sum();
    both(up, &Array::from([2.0_f64, 1.0, 2.0]), &[10.0, 1.0, 100.0]);
    let down = move |x: &Array| (x.sort_descending(0) * weights()).sum();
    both(down, &Array::from([2.0_f64, 1.0, 2.0]), &[1.0, 100.0, 10.0]);
    // The first of equals comes first.
    let top = |x: &Array| (x.top_k(2).0 * Array::from([1.0_f64, 10.0])).sum();
    both(top, &Array::from([3.0_f64, 1.0, 3.0, 3.0]), &[1.0, 0.0, 10.0, 0.0]);
    // The first of equals has the derivative: it holds places 0 to 2, the 2 at place 3 the last two.
    both(|x: &Array| x.cummax(0).sum(), &Array::from([1.0_f64, 1.0, 0.5, 2.0, 2.0]), &[3.0, 0.0, 0.0, 2.0, 0.0]);
    both(|x: &Array| x.cummin(0).sum(), &Array::from([2.0_f64, 2.0, 3.0, 1.0, 1.0]), &[3.0, 0.0, 0.0, 2.0, 0.0]);
}

#[test]
fn steps_have_the_slope_zero_at_their_edges_too() {
    for x in [-1.0, -0.5, 0.0, 0.5, 1.0, 2.5] {
        both(|x: &Array| x.floor(), &number(x), &[0.0]);
        both(|x: &Array| x.ceil(), &number(x), &[0.0]);
        both(|x: &Array| x.round(), &number(x), &[0.0]);
        both(|x: &Array| x.trunc(), &number(x), &[0.0]);
        both(|x: &Array| x.sign(), &number(x), &[0.0]);
    }
    for (x, want) in [(-2.0, -1.0), (0.0, 0.0), (-0.0, 0.0), (3.0, 1.0)] {
        both(|x: &Array| x.abs(), &number(x), &[want]);
    }
    // x - floor(x) is a saw: its slope is that of x.
    both(|x: &Array| x - x.floor(), &number(2.0), &[1.0]);
    // 7 % 3 = 7 - 3·trunc(7/3): by the divisor it is -2.
    let (a, b) = grad_all(|a: &Array, b: &Array| a % b)(&number(7.0), &number(3.0));
    same(&a, &[1.0]);
    same(&b, &[-2.0]);
}

#[test]
fn second_derivatives_of_kinks_are_zero() {
    for x in [-2.0, 0.0, 3.0] {
        both(grad_of(|x: &Array| x.abs()), &number(x), &[0.0]);
        both(grad_of(|x: &Array| x.relu()), &number(x), &[0.0]);
        both(grad_of(|x: &Array| x.maximum(0.0_f64)), &number(x), &[0.0]);
    }
    // r² with r = relu x has the slope 2rr', and that has 2r'r', where r' is 0 up to the kink and 1 after it.
    let squared = |x: &Array| x.relu() * x.relu();
    for (x, slope, curve) in [(-1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (3.0, 6.0, 2.0)] {
        both(squared, &number(x), &[slope]);
        both(grad_of(squared), &number(x), &[curve]);
    }
    let h = hessian(|x: &Array| x.abs().sum())(&Array::from([1.0_f64, 0.0]));
    same(&h, &[0.0; 4]);
}

fn grad_of(
    f: impl Fn(&Array) -> Array + Clone + Send + Sync + 'static,
) -> impl Fn(&Array) -> Array + Clone + Send + Sync + 'static {
    move |x: &Array| grad(f.clone())(x)
}

/// The mixed second derivative of x^y is x^(y-1) (1 + y log x), also where the first one by x vanishes: at y = 0 it is 1/x.
#[test]
fn powers_have_second_derivatives_where_the_first_vanishes() {
    let log = f64::ln;
    for (x, y) in [(3.0_f64, 0.0_f64), (0.5, 0.0), (2.0, 1.0), (3.0, 2.0), (1.0, 0.0)] {
        let mixed = x.powf(y - 1.0) * (1.0 + y * log(x));
        let (base, power) = (number(x), number(y));
        let by_base = grad(|x: &Array, y: &Array| x.pow(y));
        same(&grad_by(1, move |x: &Array, y: &Array| by_base(x, y))(&base, &power), &[mixed]);
        let by_power = grad_by(1, |x: &Array, y: &Array| x.pow(y));
        same(&jit(grad(move |x: &Array, y: &Array| by_power(x, y)))(&base, &power), &[mixed]);
        let wanted = [y * (y - 1.0) * x.powf(y - 2.0), mixed, mixed, x.powf(y) * log(x) * log(x)];
        let pair = Array::from([x, y]);
        same(&hessian(|p: &Array| p.index(0).pow(p.index(1)))(&pair), &wanted);
    }
}

/// Second derivatives against differences of first ones, at the points that rules treat in a way of their own.
#[test]
fn second_derivatives_at_points_that_rules_single_out() {
    type Case = (&'static str, fn(&Array) -> Array, &'static [&'static [f64]]);
    let cases: &[Case] = &[
        ("prod", |x| x.prod(), &[&[0.0, 2.0, 3.0], &[0.0, 0.0, 3.0], &[0.0, 0.0, 0.0], &[1.0, 2.0, 3.0]]),
        ("cumprod", |x| (x.cumprod(0) * Array::from([1.0, 2.0, 3.0])).sum(), &[&[0.0, 2.0, 3.0], &[0.0, 0.0, 3.0]]),
        ("expm1", |x| x.expm1().sum(), &[&[0.0, 1.0]]),
        ("log1p", |x| x.log1p().sum(), &[&[0.0, 1.0]]),
        ("powi", |x| x.powi(2).sum() + x.powi(1).sum() + x.powi(0).sum() + x.powi(3).sum(), &[&[0.0, -1.0, 2.0]]),
        ("pow by whole numbers", |x| (x.pow(2.0) + x.pow(3.0) + x.pow(4.0)).sum(), &[&[0.0, 1.0, 2.0]]),
        ("atan2", |x| x.index(0).atan2(x.index(1)), &[&[0.0, 1.0], &[1.0, 0.0], &[0.0, -1.0]]),
        ("tanh", |x| x.tanh().sum(), &[&[0.0, 1.0, -3.0]]),
        ("logsumexp", |x| x.logsumexp(), &[&[0.0, 0.0, 0.0], &[-40.0, 0.0, 40.0]]),
        ("softmax", |x| x.softmax(0).index(0), &[&[0.0, 0.0, 0.0], &[1.0, 2.0, -3.0]]),
        ("var", |x| x.var(), &[&[0.0, 0.0, 0.0], &[1.0, 2.0, -3.0]]),
        ("asinh", |x| x.asinh().sum(), &[&[0.0, 1.0]]),
        ("cosh", |x| x.cosh().sum(), &[&[0.0, 1.0]]),
        ("erf", |x| x.erf().sum(), &[&[0.0, 1.0]]),
        ("lgamma", |x| x.lgamma().sum(), &[&[1.0, 2.0, 0.5]]),
    ];
    let step = 1e-5;
    for (name, f, points) in cases {
        for point in *points {
            let n = point.len();
            let x = Array::from(point.to_vec());
            let have = numbers(&hessian(*f)(&x));
            let slope = grad(*f);
            for j in 0..n {
                let moved = |by: f64| {
                    let mut p = point.to_vec();
                    p[j] += by;
                    numbers(&slope(&Array::from(p)))
                };
                let (up, down) = (moved(step), moved(-step));
                for i in 0..n {
                    let want = (up[i] - down[i]) / (2.0 * step);
                    let near = (have[i * n + j] - want).abs() <= 1e-6 * (1.0 + want.abs());
                    assert!(near, "{name} at {point:?}, {i} and {j}: {} where {want} is right", have[i * n + j]);
                }
            }
        }
    }
}

/// First and second derivatives at the points where formulas have a zero, a one or a removable quotient, from their series.
#[test]
fn derivatives_at_plain_points_are_those_of_the_series() {
    use std::f64::consts::{FRAC_2_SQRT_PI, PI};
    const EULER: f64 = 0.577_215_664_901_532_9;
    const ZETA_3: f64 = 1.202_056_903_159_594_2;
    type Case = (&'static str, fn(&Array) -> Array, f64, [f64; 2]);
    let cases: &[Case] = &[
        ("sin", |x| x.sin(), 0.0, [1.0, 0.0]),
        ("cos", |x| x.cos(), 0.0, [0.0, -1.0]),
        ("tan", |x| x.tan(), 0.0, [1.0, 0.0]),
        ("exp", |x| x.exp(), 0.0, [1.0, 1.0]),
        ("expm1", |x| x.expm1(), 0.0, [1.0, 1.0]),
        ("log", |x| x.log(), 1.0, [1.0, -1.0]),
        ("log1p", |x| x.log1p(), 0.0, [1.0, -1.0]),
        ("sqrt", |x| x.sqrt(), 1.0, [0.5, -0.25]),
        ("rsqrt", |x| x.rsqrt(), 1.0, [-0.5, 0.75]),
        ("cbrt", |x| x.cbrt(), 1.0, [1.0 / 3.0, -2.0 / 9.0]),
        ("cbrt", |x| x.cbrt(), -1.0, [1.0 / 3.0, 2.0 / 9.0]),
        ("asin", |x| x.asin(), 0.0, [1.0, 0.0]),
        ("acos", |x| x.acos(), 0.0, [-1.0, 0.0]),
        ("atan", |x| x.atan(), 0.0, [1.0, 0.0]),
        ("atan", |x| x.atan(), 1.0, [0.5, -0.5]),
        ("sinh", |x| x.sinh(), 0.0, [1.0, 0.0]),
        ("cosh", |x| x.cosh(), 0.0, [0.0, 1.0]),
        ("tanh", |x| x.tanh(), 0.0, [1.0, 0.0]),
        ("asinh", |x| x.asinh(), 0.0, [1.0, 0.0]),
        ("atanh", |x| x.atanh(), 0.0, [1.0, 0.0]),
        ("logistic", |x| x.logistic(), 0.0, [0.25, 0.0]),
        ("erf", |x| x.erf(), 0.0, [FRAC_2_SQRT_PI, 0.0]),
        ("erfc", |x| x.erfc(), 0.0, [-FRAC_2_SQRT_PI, 0.0]),
        ("erf_inv", |x| x.erf_inv(), 0.0, [1.0 / FRAC_2_SQRT_PI, 0.0]),
        ("lgamma", |x| x.lgamma(), 1.0, [-EULER, PI * PI / 6.0]),
        ("lgamma", |x| x.lgamma(), 2.0, [1.0 - EULER, PI * PI / 6.0 - 1.0]),
        ("digamma", |x| x.digamma(), 1.0, [PI * PI / 6.0, -2.0 * ZETA_3]),
        ("pow by a base of zero", |x| x.pow(2.0_f64), 0.0, [0.0, 2.0]),
        ("pow by a base below zero", |x| x.pow(2.0_f64), -1.0, [-2.0, 2.0]),
        ("pow by a power of zero", |x| Array::from(3.0_f64).pow(x), 0.0, [3.0_f64.ln(), 3.0_f64.ln().powi(2)]),
        ("powi", |x| x.powi(2), 0.0, [0.0, 2.0]),
        ("atan2 above zero", |x| x.atan2(1.0_f64), 0.0, [1.0, 0.0]),
        ("length beside zero", |x| Array::stack([x.clone(), x.ones_like()], 0).norm(), 0.0, [0.0, 1.0]),
        ("logsumexp of equals", |x| Array::stack([x.clone(), x.zeros_like()], 0).logsumexp(), 0.0, [0.5, 0.25]),
        ("softmax of equals", |x| Array::stack([x.clone(), x.zeros_like()], 0).softmax(0).index(0), 0.0, [0.25, 0.0]),
        ("variance of equals", |x| Array::stack([x.clone(), x.zeros_like()], 0).var(), 0.0, [0.0, 0.5]),
        ("product of zeros", |x| Array::stack([x, x, &(x + 3.0_f64)], 0).prod(), 0.0, [0.0, 6.0]),
    ];
    for (name, f, at, [slope, curve]) in cases {
        let near = |have: f64, want: f64, what: &str| {
            assert!((have - want).abs() <= 1e-13 * (1.0 + want.abs()), "{what} of {name} at {at}: {have}, not {want}");
        };
        let x = number(*at);
        near(grad(*f)(&x).item().unwrap(), *slope, "slope");
        let (_, forward) = jvp(*f, &x, &x.ones_like());
        near(forward.item().unwrap(), *slope, "forward slope");
        near(grad(grad_of(*f))(&x).item().unwrap(), *curve, "second derivative");
        near(jit(hessian(*f))(&x).item().unwrap(), *curve, "second derivative, forward over reverse");
    }
}

/// asin'' = x / (1 - x²)^1.5, acos'' its negative, atanh'' = 2 x / (1 - x²)²: near zero to the last digits of x, near one to those of 1 - x.
#[test]
fn second_derivatives_of_inverse_functions_keep_their_digits() {
    for x in [1e-9_f64, -1e-17, 1e-5, 0.3, 0.499, 0.51, 1.0 - 1e-9] {
        let below = (1.0 - x) * (1.0 + x);
        let near = |have: &Array, want: f64| {
            let have = have.item::<f64>().unwrap();
            assert!((have - want).abs() <= 1e-14 * want.abs(), "{have} where {want} is right, at {x}");
        };
        near(&grad(grad_of(|x: &Array| x.asin()))(&number(x)), x / below.powf(1.5));
        near(&grad(grad_of(|x: &Array| x.acos()))(&number(x)), -x / below.powf(1.5));
        near(&grad(grad_of(|x: &Array| x.atanh()))(&number(x)), 2.0 * x / (below * below));
    }
}

#[test]
fn powers_at_zero() {
    let ln3 = 3.0_f64.ln();
    // By the base y x^(y-1), by the exponent x^y log x.
    for (x, y, value, by_base, by_power) in [
        (0.0, 0.0, 1.0, 0.0, 0.0),
        (0.0, 1.0, 0.0, 1.0, 0.0),
        (0.0, 2.0, 0.0, 0.0, 0.0),
        (0.0, 0.5, 0.0, INF, 0.0),
        (3.0, 0.0, 1.0, 0.0, ln3),
        (3.0, 2.0, 9.0, 6.0, 9.0 * ln3),
        (-2.0, 3.0, -8.0, 12.0, NAN),
    ] {
        let (base, power) = (number(x), number(y));
        same(&base.pow(&power), &[value]);
        for g in [grad_all(|a: &Array, b: &Array| a.pow(b)), jit(grad_all(|a: &Array, b: &Array| a.pow(b)))] {
            let (a, b) = g(&base, &power);
            same(&a, &[by_base]);
            same(&b, &[by_power]);
        }
        both(move |a: &Array| a.pow(&power), &base, &[by_base]);
        both(move |b: &Array| base.pow(b), &number(y), &[by_power]);
    }
    // By the base alone the logarithm is never asked for.
    both(|x: &Array| x.pow(3.0_f64), &number(-2.0), &[12.0]);
    both(|x: &Array| x.pow(0.0_f64), &number(0.0), &[0.0]);
    both(grad_of(|x: &Array| x.pow(2.0_f64)), &number(0.0), &[2.0]);
    both(grad_of(|x: &Array| x.pow(1.0_f64)), &number(0.0), &[0.0]);
    both(grad_of(grad_of(|x: &Array| x.pow(3.0_f64))), &number(0.0), &[6.0]);
}

#[test]
fn whole_powers_at_zero() {
    for (n, value, slope, curve) in
        [(0, 1.0, 0.0, 0.0), (1, 0.0, 1.0, 0.0), (2, 0.0, 0.0, 2.0), (3, 0.0, 0.0, 0.0), (-1, INF, -INF, INF)]
    {
        let f = move |x: &Array| x.powi(n);
        same(&f(&number(0.0)), &[value]);
        both(f, &number(0.0), &[slope]);
        both(grad_of(f), &number(0.0), &[curve]);
    }
    both(|x: &Array| x.powi(-2), &number(2.0), &[-0.25]);
    // x⁰ is 1 whatever x is.
    both(|x: &Array| x.powi(0), &number(NAN), &[0.0]);
}

#[test]
fn products_with_zeros_are_exact() {
    // Each slope is the product of the others.
    both(|x: &Array| x.prod(), &Array::from([2.0_f64, 0.0, 3.0]), &[0.0, 6.0, 0.0]);
    both(|x: &Array| x.prod(), &Array::from([2.0_f64, 0.0, 0.0]), &[0.0, 0.0, 0.0]);
    // [2, 2·0, 2·0·3] sums up to 2 + 2b + 2bc with slopes 1 + b + bc, 2 + 2c, 2b.
    both(|x: &Array| x.cumprod(0).sum(), &Array::from([2.0_f64, 0.0, 3.0]), &[1.0, 8.0, 0.0]);
    // The mixed second derivatives of abc are the third factor.
    let h = hessian(|x: &Array| x.prod())(&Array::from([2.0_f64, 0.0, 3.0]));
    same(&h, &[0.0, 3.0, 0.0, 3.0, 0.0, 2.0, 0.0, 2.0, 0.0]);
}

#[test]
fn reductions_of_nothing() {
    let none = Array::zeros::<f64>([0]);
    let rows = Array::zeros::<f64>([2, 0]);
    type Reduce = fn(&Array) -> Array;
    let all: [(Reduce, f64); 6] = [
        (|x| x.sum(), 0.0),
        (|x| x.prod(), 1.0),
        (|x| x.max(), -INF),
        (|x| x.min(), INF),
        (|x| x.mean(), NAN),
        (|x| x.logsumexp(), -INF),
    ];
    for (f, value) in all {
        same(&f(&none), &[value]);
        both(f, &none, &[]);
        assert_eq!(grad(f)(&none).shape(), [0]);
        assert_eq!(grad(f)(&rows).shape(), [2, 0]);
    }
    same(&rows.max_axes(1), &[-INF, -INF]);
    assert_eq!(kind(&none.argmax()), ErrorKind::Shape);
    // A row of no elements beside one that varies: its part is a constant.
    let f = |x: &Array| x.sum() + Array::zeros::<f64>([0]).max().exp();
    both(f, &Array::from([1.0_f64, 2.0]), &[1.0, 1.0]);
}

#[derive(Clone, Tree)]
struct Parts {
    used: Array,
    unused: Array,
    count: Array,
    on: Array,
    #[tree(skip)]
    name: &'static str,
}

fn parts() -> Parts {
    Parts {
        used: Array::from([1.0_f64, 2.0]),
        unused: Array::from([[1.0_f32, 2.0]]),
        count: Array::from([3_i32, 4]),
        on: Array::from(true),
        name: "parts",
    }
}

/// The gradient has the argument's types and shapes, and zeros where nothing varies.
fn check_parts(g: &Parts) {
    same(&g.used, &[6.0, 12.0]);
    assert_eq!(
        (g.unused.ty().unwrap().to_string(), g.unused.to_vec::<f32>().unwrap()),
        ("f32[1,2]".into(), vec![0.0; 2])
    );
    assert_eq!(g.count.to_vec::<i32>().unwrap(), [0, 0]);
    assert!(!g.on.item::<bool>().unwrap());
    assert_eq!(g.name, "parts");
}

#[test]
fn gradients_by_structs_have_their_types() -> Result<()> {
    // 3 Σ used², with 3 from the integers: slopes 6, 12.
    let f = |p: &Parts, s: &Array| (&p.used * &p.used).sum() * p.count.index(0).cast(DType::F64) * s;
    let one = number(1.0);
    check_parts(&grad(f)(&parts(), &one));
    check_parts(&jit(grad(f))(&parts(), &one));
    check_parts(&grad_by(Arg::<0>, f)(&parts(), &one));
    let (g, by_scale) = jit(grad_all(f))(&parts(), &one);
    check_parts(&g);
    same(&by_scale, &[15.0]);
    same(&grad_by(Arg::<1>, f)(&parts(), &one), &[15.0]);
    let swapped = move |s: &Array, p: &Parts| f(p, s);
    check_parts(&grad_by(Arg::<1>, swapped)(&one, &parts()));
    let (_, pullback) = vjp(move |p: &Parts| f(p, &number(1.0)), &parts());
    check_parts(&pullback.call(&one));
    Ok(())
}

#[test]
fn arguments_that_do_not_matter_get_zeros() -> Result<()> {
    let x = Array::from([1.0_f64, 2.0]);
    let first = |a: &Array, _: &Array| a.sum();
    same(&grad_by(1, first)(&x, &x), &[0.0, 0.0]);
    let g = grad_by(1, first)(&x, &Array::from([[1_i64], [2]]));
    assert_eq!((g.ty()?.to_string(), g.to_vec::<i64>()?), ("i64[2,1]".to_string(), vec![0, 0]));
    let g = jit(grad_by(1, first))(&x, &Array::from([true, false]));
    assert_eq!(g.to_vec::<bool>()?, [false, false]);
    // By an integer first argument, too.
    let by_integer = grad(|n: &Array, x: &Array| (x * n.cast(DType::F64)).sum());
    assert_eq!(by_integer(&Array::from([2_i32, 3]), &x).to_vec::<i32>()?, [0, 0]);
    let g = jit(by_integer)(&Array::from([2_i32, 3]), &x);
    assert_eq!((g.ty()?.to_string(), g.to_vec::<i32>()?), ("i32[2]".to_string(), vec![0, 0]));
    // A function that does not vary at all.
    both(|_: &Array| Array::from(7.0_f64), &x, &[0.0, 0.0]);
    both(|x: &Array| x.zeros_like().sum(), &x, &[0.0, 0.0]);
    both(|x: &Array| x.stop_gradient().sum(), &x, &[0.0, 0.0]);
    both(|x: &Array| x.gt(0.0_f64).cast(DType::F64).sum(), &x, &[0.0, 0.0]);
    both(|x: &Array| x.cast(DType::I32).cast(DType::F64).sum(), &x, &[0.0, 0.0]);
    Ok(())
}

#[test]
fn one_array_in_several_roles() -> Result<()> {
    let x = number(3.0);
    // The same array twice: each place has its own slope.
    let product = |a: &Array, b: &Array| a * b;
    same(&grad(product)(&x, &x), &[3.0]);
    let (a, b) = jit(grad_all(product))(&x, &x);
    same(&a, &[3.0]);
    same(&b, &[3.0]);
    // Captured and passed: the captured one is a constant.
    let captured = x.clone();
    let scaled = move |x: &Array| x * &captured;
    both(scaled, &x, &[3.0]);
    // The result is the argument.
    both(|x: &Array| x.clone(), &x, &[1.0]);
    let (y, y_dot) = jvp(|x: &Array| (x.clone(), x.clone()), &x, &number(2.0));
    same(&y.1, &[3.0]);
    same(&y_dot.0, &[2.0]);
    let (_, pullback) = vjp(|x: &Array| (x.clone(), x.sin()), &x);
    same(&pullback.call(&(number(5.0), number(0.0))), &[5.0]);
    // Used twice: x² + 3x has the slope 2x + 3.
    both(|x: &Array| x * x + x * 3.0_f64, &x, &[9.0]);
    // Twice in one array: weights 1 2 3 and 10 20 30 meet.
    let twice = |x: &Array| (Array::concatenate([x, x], 0) * Array::from([1.0_f64, 2.0, 3.0, 10.0, 20.0, 30.0])).sum();
    both(twice, &Array::from([1.0_f64, 1.0, 1.0]), &[11.0, 22.0, 33.0]);
    let stacked = |x: &Array| (Array::stack([x, x], 0) * Array::from([1.0_f64, 5.0])).sum();
    both(stacked, &x, &[6.0]);
    // An element taken twice: the slopes add up.
    let taken = |x: &Array| (x.take(&Array::from([0_i64, 2, 0]), 0) * Array::from([1.0_f64, 10.0, 100.0])).sum();
    both(taken, &Array::from([1.0_f64, 1.0, 1.0]), &[101.0, 0.0, 10.0]);
    // A broadcast number: the slopes add up as well.
    both(|x: &Array| (x * Array::from([1.0_f64, 2.0, 4.0])).sum(), &x, &[7.0]);
    Ok(())
}

#[test]
fn what_comes_beside_the_loss_may_be_anything() -> Result<()> {
    let x = number(3.0);
    let f = |x: &Array| (x * x, (Array::from(7_i32), x.gt(0.0_f64), x * 10.0_f64, ()));
    for g in [grad_with_aux(f), jit(grad_with_aux(f))] {
        let (slope, (count, on, more, ())) = g(&x);
        same(&slope, &[6.0]);
        assert_eq!((count.item::<i32>()?, on.item::<bool>()?), (7, true));
        same(&more, &[30.0]);
    }
    let ((loss, (count, ..)), slope) = jit(value_and_grad_with_aux(f))(&x);
    same(&loss, &[9.0]);
    same(&slope, &[6.0]);
    assert_eq!(count.item::<i32>()?, 7);
    // An aux that varies is given as it is, and adds nothing to the gradient.
    same(&grad_with_aux(|x: &Array| (x.sin(), x.exp()))(&number(0.0)).0, &[1.0]);
    Ok(())
}

/// The kind of an error whose text has these words and this file in it.
fn refused(a: Array, words: &[&str]) -> ErrorKind {
    let e = a.error().cloned().unwrap_or_else(|| panic!("no error but {a:?}"));
    let text = e.to_string();
    assert!(words.iter().all(|w| text.contains(w)) && text.contains("derivative_edges.rs"), "{text}");
    e.kind()
}

#[test]
fn what_has_no_gradient_is_refused_in_words() {
    let x = Array::from([1.0_f64, 2.0]);
    let complex = |x: &Array| Array::complex(x, x).sum();
    assert_eq!(refused(grad(complex)(&x), &["real", "c128[]"]), ErrorKind::Signature);
    assert_eq!(refused(grad(|x: &Array| x.gt(0.0_f64).sum())(&x), &["i64[]"]), ErrorKind::Signature);
    assert_eq!(refused(grad(|x: &Array| x.gt(0.0_f64).any())(&x), &["bool[]"]), ErrorKind::Signature);
    assert_eq!(refused(grad(|x: &Array| x.sin())(&x), &["scalar", "f64[2]", "`.sum()`"]), ErrorKind::Signature);
    let square = |n: &Array| n.cast(DType::F64) * 2.0_f64;
    let n = Array::from([1_i32, 2]);
    assert_eq!(refused(jacrev(square)(&n), &["Jacobian", "i32[2]", "later argument"]), ErrorKind::DType);
    assert_eq!(refused(jacfwd(square)(&n), &["Jacobian", "i32[2]", "later argument"]), ErrorKind::DType);
    assert_eq!(refused(jit(jacfwd(square))(&Array::from(true)), &["bool[]"]), ErrorKind::DType);
}

#[test]
fn complex_gradients_follow_the_transpose() -> Result<()> {
    // |z|² = x² + y² has the slopes 2x, 2y: the cotangent pairs with dz as Re(g·dz), so g = 2x - 2yi.
    let z = Array::complex(&number(3.0), &number(4.0));
    let squared = |z: &Array| (z * z.conj()).real();
    for g in [grad(squared), jit(grad(squared))] {
        assert_eq!(g(&z).item::<Complex<f64>>()?, Complex::new(6.0, -8.0));
    }
    // Re(z²) = x² - y² is the real part of a function with the derivative 2z, and g is just that.
    assert_eq!(grad(|z: &Array| (z * z).real())(&z).item::<Complex<f64>>()?, Complex::new(6.0, 8.0));
    // Im(z²) = 2xy has the slopes 2y, 2x: g = 2y - 2xi.
    assert_eq!(grad(|z: &Array| (z * z).imag())(&z).item::<Complex<f64>>()?, Complex::new(8.0, -6.0));
    // A complex number for each pair of numbers is half of a Jacobian, unless the function is holomorphic, which nobody
    // can know: it is refused, by complex arguments and of complex results.
    for g in [jacfwd(|z: &Array| z * z), jacrev(|z: &Array| z.conj()), jacfwd(|z: &Array| z.real())] {
        assert_eq!(refused(g(&z), &["Jacobian", "c128[]", "jvp"]), ErrorKind::DType);
    }
    let to_complex = jacrev(|x: &Array| Array::complex(x, x));
    assert_eq!(refused(to_complex(&Array::from(1.0_f64)), &["Jacobian", "c128[]"]), ErrorKind::DType);
    // A step against the conjugate goes downhill.
    let step = &z - grad(squared)(&z).conj() * 0.25_f64;
    assert_eq!(step.item::<Complex<f64>>()?, Complex::new(1.5, 2.0));
    Ok(())
}

#[test]
fn soft_maxima_with_minus_infinities() {
    // A class that is ruled out has probability 0 and no slope. The others: δ - p with p = ½.
    let x = Array::from([0.0_f64, -INF, 0.0]);
    both(|x: &Array| x.log_softmax(0).index(0), &x, &[0.5, 0.0, -0.5]);
    // p₀ has the slopes p₀(δ - p).
    both(|x: &Array| x.softmax(0).index(0), &x, &[0.25, 0.0, -0.25]);
    both(|x: &Array| x.logsumexp(), &x, &[0.5, 0.0, 0.5]);
    // Large numbers do not overflow: p = (1, 0) to the last digit.
    both(|x: &Array| x.log_softmax(0).index(1), &Array::from([1000.0_f64, 0.0]), &[-1.0, 1.0]);
    // A row without any class has no distribution.
    backward(|x: &Array| x.softmax(0).index(0), &Array::from([-INF, -INF]), &[NAN, NAN]);
}

#[test]
fn masked_sums_have_the_mask_as_their_slope() {
    let x = Array::from([1.0_f64, -2.0, 3.0]);
    let mask = || Array::from([true, false, true]);
    both(move |x: &Array| mask().select(x, 0.0_f64).sum(), &x, &[1.0, 0.0, 1.0]);
    both(move |x: &Array| (x * mask().cast(DType::F64)).sum(), &x, &[1.0, 0.0, 1.0]);
    // A mask made of the values is a constant to the derivative.
    both(|x: &Array| x.gt(0.0_f64).select(x * x, 0.0_f64).sum(), &x, &[2.0, 0.0, 6.0]);
    // The mean of what is kept: one over the count.
    let mean = move |x: &Array| mask().select(x, 0.0_f64).sum() / mask().sum().cast(DType::F64);
    both(mean, &x, &[0.5, 0.0, 0.5]);
    // An element that is masked may be NaN or infinite if it is only moved, not computed with.
    let holes = Array::from([1.0_f64, NAN, INF]);
    both(|x: &Array| x.is_finite().select(x, 0.0_f64).sum(), &holes, &[1.0, 0.0, 0.0]);
    both(|x: &Array| x.is_finite().select(x * x, 0.0_f64).sum(), &Array::from([3.0_f64, 1.0]), &[6.0, 2.0]);
    backward(|x: &Array| x.is_finite().select(x * x, 0.0_f64).sum(), &holes, &[2.0, NAN, NAN]);
}
