//! The gamma distribution and what is made of it: beta, and points in a ball.
//!
//! Every element has a key of its own, and draws from it until a number is accepted (G. Marsaglia and W. W. Tsang, "A simple method
//! for generating gamma variables", 2000). All elements go through the loop together; those that are done stay as they are.
//! Which number is accepted depends on the parameter by jumps, so the derivative is not that of the loop: it follows from the
//! distribution function, which a sample keeps its value of (M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization
//! gradients", 2018).

use gradus_core::primitives::Op;
use gradus_core::primitives::random::RandomBits;
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, Element, Error, ErrorKind, IntoShape, Operand, Result, Scalar, Shape};

use super::basic::{split_keys, standard_exponential, standard_normal, unit};
use super::formulas::{fused, log, number};
use super::{Key, drawing, parameter, want_float};
use crate::control::{custom_jvp, while_loop};

/// Numbers of the gamma distribution with shape parameter `alpha` and scale 1. Derivatives go through `alpha`.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let mean = grad(|a: &Array, key: &Key| random::gamma::<f64>(key.take(), a, [1000]).mean());
/// // The mean of the distribution is alpha, so the derivative of a mean is about 1.
/// let slope = mean(&Array::from(2.5_f64), &Key::new(0)).item::<f64>()?;
/// assert!((slope - 1.0).abs() < 0.1);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn gamma<T: Element>(key: Key, alpha: impl Operand, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        want_float("gamma", T::DTYPE)?;
        draw_gamma(key, &parameter("a parameter", alpha, T::DTYPE, &shape)?, false)
    })
}

/// The logarithms of what [`gamma`] gives: of use where `alpha` is so small that the numbers themselves are zero.
#[track_caller]
pub fn loggamma<T: Element>(key: Key, alpha: impl Operand, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        want_float("loggamma", T::DTYPE)?;
        draw_gamma(key, &parameter("a parameter", alpha, T::DTYPE, &shape)?, true)
    })
}

/// Numbers of the beta distribution with parameters `a` and `b`. Derivatives go through both.
#[track_caller]
pub fn beta<T: Element>(key: Key, a: impl Operand, b: impl Operand, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        want_float("beta", T::DTYPE)?;
        let a = parameter("a first parameter", a, T::DTYPE, &shape)?;
        let b = parameter("a second parameter", b, T::DTYPE, &shape)?;
        let [first, second] = split_keys::<2>(key)?;
        let (a, b) = (draw_gamma(&first, &a, true)?, draw_gamma(&second, &b, true)?);
        // a / (a + b), with the larger of the two as 1.
        let most = a.maximum(&b);
        let (a, b) = ((a - &most).exp(), (b - most).exp());
        (&a / (&a + b)).ok()
    })
}

/// Points of the ball of dimension `d` and radius 1 in the `p`-norm, uniformly: an array of the shape, then `d`.
#[track_caller]
pub fn ball<T: Element>(key: Key, d: impl Into<Dim>, p: f64, shape: impl IntoShape) -> Array {
    let (d, shape) = (d.into(), shape.into_shape());
    drawing(key, |key| {
        let dtype = T::DTYPE;
        want_float("ball", dtype)?;
        if p.is_nan() || p <= 0.0 {
            return Err(Error::new(ErrorKind::Value, format!("the norm of a ball is positive, not {p}")));
        }
        let whole = shape.inserted(shape.rank(), d);
        let [inside, outside] = split_keys::<2>(key)?;
        let [sizes, signs] = split_keys::<2>(&inside)?;
        // Coordinates of density exp(-|x|^p), with a sign of their own.
        let alpha = Array::full_scalar(whole.clone(), Scalar::F64(1.0 / p).cast(dtype));
        let size = draw_gamma(&sizes, &alpha, false)?.pow(Scalar::F64(1.0 / p).cast(dtype));
        let half = Array::full_scalar(whole.clone(), Scalar::F64(0.5).cast(dtype));
        let sign = unit(&signs, &whole, dtype)?.lt(half).cast(dtype) * number(2.0, &size) - number(1.0, &size);
        let x = sign * size;
        let rest = standard_exponential(&outside, &shape, dtype)?;
        let norm = x.abs().pow(Scalar::F64(p).cast(dtype)).sum_axes(-1) + rest;
        (x / norm.pow(Scalar::F64(1.0 / p).cast(dtype)).expand_dims(-1)).ok()
    })
}

/// A draw for every element of `alpha`, from one key.
pub(super) fn draw_gamma(key: &Array, alpha: &Array, log_space: bool) -> Result<Array> {
    let shape = alpha.shape().clone();
    let flat = alpha.flatten();
    // JAX counts the elements in one row and gives each a key.
    let keys =
        bind(Op::new(RandomBits { dtype: DType::Key, shape: flat.shape().clone() }), std::slice::from_ref(key)).ok()?;
    let draw = custom_jvp(
        move |keys: &Array, alpha: &Array| Array::from(accepted(keys, alpha, log_space)),
        move |(keys, alpha): &(Array, Array), (_, alpha_dot): &(Array, Array)| {
            let sample = accepted(keys, alpha, log_space);
            let slope = sample.clone().and_then(|x| slope(alpha, &x, log_space));
            (Array::from(sample), Array::from(slope) * alpha_dot)
        },
    );
    draw(&keys, &flat).reshape(&shape).ok()
}

/// The state of the loop: which elements are not done, their keys, x², v³ and u.
type State = (Array, Array, Array, Array, Array);

fn accepted(keys: &Array, alpha: &Array, log_space: bool) -> Result<Array> {
    let dtype = alpha.dtype();
    let one = Scalar::one(dtype);
    let third = number(1.0 / 3.0, alpha);
    // Below 1: Gamma(alpha) is Gamma(alpha + 1)·U^(1/alpha).
    let large = alpha.ge(one);
    let boosted = large.select(alpha, alpha + one);
    let d = boosted - third;
    let c = alpha.full_like(third) / d.sqrt();
    let [keys, extra] = split_keys::<2>(keys)?;
    let none = alpha.zeros_like();
    let all = none.eq(&none);
    let state = while_loop(
        |(open, ..): &State| open.any(),
        |state: &State| {
            next_state(state, &c, &d).unwrap_or_else(|e| {
                let failed = || Array::from(e.clone());
                (failed(), failed(), failed(), failed(), failed())
            })
        },
        (all, keys, none.clone(), none.full_like(one), none.full_like(number(2.0, alpha))),
    );
    let v = state.3.ok()?;
    let inverse = alpha.full_like(one) / alpha;
    if log_space {
        let samples = -standard_exponential(&extra, &Shape::scalar(), dtype)?;
        let plain = &large | samples.eq(Scalar::zero(dtype));
        let boost = plain.select(Scalar::zero(dtype), samples * inverse);
        return (log(&d)? + log(&v)? + boost).ok();
    }
    let samples = -unit(&extra, &Shape::scalar(), dtype)? + one;
    (d * v * large.select(one, samples.pow(inverse))).ok()
}

/// One more try of the elements that are not done.
fn next_state((open, keys, x, v, u): &State, c: &Array, d: &Array) -> Result<State> {
    let dtype = c.dtype();
    let one = Scalar::one(dtype);
    let scalar = Shape::scalar();
    let [next_keys, x_keys, u_keys] = split_keys::<3>(keys)?;
    // A normal number x with 1 + c·x above zero.
    let start = (open.clone(), x_keys, c.zeros_like(), c.full_like(number(-1.0, c)));
    let (_, _, normal, linear) = while_loop(
        |(trying, ..): &(Array, Array, Array, Array)| trying.any(),
        |(trying, keys, x, v)| {
            let next = || -> Result<_> {
                let [keys_next, part] = split_keys::<2>(keys)?;
                let x_next = standard_normal(&part, &scalar, dtype)?;
                let v_next = fused(&x_next, c, &c.full_like(one));
                let (x, v) = (trying.select(&x_next, x), trying.select(&v_next, v));
                Ok((trying & v.le(Scalar::zero(dtype)), trying.select(&keys_next, keys), x, v))
            };
            next().unwrap_or_else(|e| {
                let failed = || Array::from(e.clone());
                (failed(), failed(), failed(), failed())
            })
        },
        start,
    );
    let x_next = &normal * &normal;
    let v_next = &linear * &linear * &linear;
    let u_next = unit(&u_keys, &scalar, dtype)?;
    let (x, v, u) = (open.select(&x_next, x), open.select(&v_next, v), open.select(&u_next, u));
    // Refused if outside of the squeeze, and then by the exact test.
    let square = &x * &x;
    let outside = u.ge(fused(&square, &square.full_like(number(-0.0331, c)), &square.full_like(one)));
    let bound = fused(d, &(v.full_like(one) - &v + log(&v)?), &(&x * number(0.5, c)));
    let refused = outside & log(&u)?.ge(bound);
    Ok((open & refused, open.select(&next_keys, keys), x, v, u))
}

/// The derivative of a sample by its parameter: minus the derivative of the distribution function by the parameter, over the density.
fn slope(alpha: &Array, sample: &Array, log_space: bool) -> Result<Array> {
    if !log_space {
        return sample_slope(alpha, sample);
    }
    let x = sample.exp();
    let tiny = match x.dtype() {
        DType::F64 => Scalar::F64(f64::MIN_POSITIVE),
        d => Scalar::F32(f32::MIN_POSITIVE).cast(d),
    };
    let x = x.eq(Scalar::zero(x.dtype())).select(tiny, &x);
    (sample_slope(alpha, &x)? / x).ok()
}

/// The distance from 1 to the next number.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F16 => 2f64.powi(-10),
        _ => 2f64.powi(-7),
    }
}

fn sample_slope(a: &Array, x: &Array) -> Result<Array> {
    let zero = number(0.0, a);
    let none = x.eq(zero);
    let outside = x.lt(zero) | a.le(zero);
    let unknown = a.is_nan() | x.is_nan();
    // The power series up to about alpha, a continued fraction above.
    let far = x.gt(number(1.0, a)) & x.gt(a);
    let log_density = a * x.log() - x - a.lgamma();
    let underflow = log_density.lt(number(-Scalar::highest_finite(a.dtype()).to_f64().ln(), a));
    let good = !(&none | &outside | underflow | &unknown);
    let above = continued_fraction(a, x, &(&good & &far))?;
    let below = series(a, x, &(&good & !&far))?;
    let slope = none.select(zero, far.select(-above, below));
    (outside | unknown).select(number(f64::NAN, a), slope).ok()
}

/// By the series of the incomplete gamma function, summed with its derivative.
fn series(a: &Array, x: &Array, enabled: &Array) -> Result<Array> {
    let (one, epsilon) = (number(1.0, a), number(epsilon(a.dtype()), a));
    // (going on, r, c, sum, dc/da, dsum/da)
    type Terms = (Array, Array, Array, Array, Array, Array);
    let (_, _, _, sum, _, sum_dot) = while_loop(
        |(on, ..): &Terms| on.any(),
        |(on, r, c, sum, c_dot, sum_dot)| {
            let r_next = r + one;
            let step = x / &r_next;
            let c_dot_next = c_dot * &step - (c * x) / (&r_next * &r_next);
            let sum_dot_next = sum_dot + &c_dot_next;
            let c_next = c * step;
            let sum_next = sum + &c_next;
            let more = on & (&c_dot_next / &sum_dot_next).abs().gt(epsilon);
            let keep = |new: Array, old: &Array| on.select(new, old);
            let (c_dot, sum_dot) = (keep(c_dot_next, c_dot), keep(sum_dot_next, sum_dot));
            (more, keep(r_next, r), keep(c_next, c), keep(sum_next, sum), c_dot, sum_dot)
        },
        (enabled.clone(), a.clone(), a.ones_like(), a.ones_like(), a.zeros_like(), a.zeros_like()),
    );
    let log_dot = x.log() - (a + one).digamma();
    (-(sum_dot + sum * log_dot) * x / a).ok()
}

/// By the continued fraction of the complement, p/q, with the derivatives of p and q.
fn continued_fraction(a: &Array, x: &Array, enabled: &Array) -> Result<Array> {
    /// After so many terms the fraction is as good as it gets.
    const MOST_TERMS: f64 = 2000.0;
    let (zero, one, two) = (number(0.0, a), number(1.0, a), number(2.0, a));
    let epsilon = epsilon(a.dtype());
    // (going on, fraction, y, z, count), (p, q, their predecessors), (the derivatives of those four, of the fraction)
    type Terms =
        ((Array, Array, Array, Array, Array), (Array, Array, Array, Array), (Array, Array, Array, Array, Array));
    let y = a.full_like(one) - a;
    let z = x + &y + one;
    let (p, q) = (x + one, &z * x);
    let fraction = &p / &q;
    let fraction_dot = (&fraction * x) / &q;
    let start: Terms = (
        (enabled.clone(), fraction, y, z, Array::scalar(zero)),
        (p, q, a.ones_like(), x.clone()),
        (a.zeros_like(), -x, a.zeros_like(), a.zeros_like(), fraction_dot),
    );
    let end = while_loop(
        |((on, _, _, _, count), _, _): &Terms| count.lt(number(MOST_TERMS, count)) & on.any(),
        |((on, f, y, z, count), (p1, q1, p2, q2), (p1_dot, q1_dot, p2_dot, q2_dot, f_dot))| {
            let count = count + one;
            let c = count.broadcast_to(a.shape());
            let (y_next, z_next) = (y + one, z + two);
            let yc = &y_next * &c;
            let p = p1 * &z_next - p2 * &yc;
            let q = q1 * &z_next - q2 * &yc;
            let good = q.ne(zero);
            let f_next = good.select(&p / &q, f);
            let p_dot = p1_dot * &z_next - p1 - p2_dot * &yc + p2 * &c;
            let q_dot = q1_dot * &z_next - q1 - q2_dot * &yc + q2 * &c;
            let f_dot_next = good.select((&p_dot - &f_next * &q_dot) / &q, f_dot);
            let change = good.select((&f_dot_next - f_dot).abs(), one);
            // Numerator and denominator grow together; their ratio is what counts.
            let grown = p.abs().gt(number(1.0 / epsilon, a));
            let less = |v: &Array| grown.select(v * number(epsilon, a), v);
            let keep = |new: Array, old: &Array| on.select(new, old);
            (
                (on & change.gt(number(epsilon, a)), keep(f_next, f), keep(y_next, y), keep(z_next, z), count),
                (keep(less(&p), p1), keep(less(&q), q1), keep(less(p1), p2), keep(less(q1), q2)),
                (
                    keep(less(&p_dot), p1_dot),
                    keep(less(&q_dot), q1_dot),
                    keep(less(p1_dot), p2_dot),
                    keep(less(q1_dot), q2_dot),
                    keep(f_dot_next, f_dot),
                ),
            )
        },
        start,
    );
    let ((_, f, ..), _, (.., f_dot)) = end;
    let log_dot = x.log() - a.digamma();
    (-(f_dot + f * log_dot) * x).ok()
}
