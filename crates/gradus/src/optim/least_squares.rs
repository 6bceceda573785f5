//! Sums of squares: Gauss-Newton and Levenberg-Marquardt, with a matrix or without.

use gradus_core::{Array, DType, Error, ErrorKind, Location, Result, trace};

use super::objective::{At, Minimum, check_vector};
use crate::control::{fori_loop, while_loop};
use crate::formula::{number, option};
use crate::solvers;
use crate::stage::poison;
use crate::tree::{self, Tree};

/// The method of Levenberg and Marquardt for half the sum of squares of residuals: steps of Gauss and Newton, shortened where they promise too much.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// // An exponential through points.
/// let x = Array::linspace(0.0_f64, 2.0, 20);
/// let y = (&x * -1.3_f64).exp() * 2.5_f64;
/// let found = optim::levenberg_marquardt().minimize(
///     |(size, rate): &(Array, Array)| size * (rate * &x).exp() - &y,
///     &(Array::from(1.0_f64), Array::from(0.0_f64)),
/// );
/// assert!(tree::all_close(&found.point, &(Array::from(2.5_f64), Array::from(-1.3_f64)), 1e-9)?);
/// # Ok(())
/// # }
/// ```
pub fn levenberg_marquardt() -> LeastSquares {
    LeastSquares { damping: Some(1e-3), matrix_free: false, steps: 100, tolerance: 1e-10 }
}

/// The method of Gauss and Newton for half the sum of squares of residuals: each step solves the problem as if residuals were straight lines, and is halved while it makes things worse.
pub fn gauss_newton() -> LeastSquares {
    LeastSquares { damping: None, ..levenberg_marquardt() }
}

/// What [`levenberg_marquardt`] and [`gauss_newton`] make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastSquares {
    damping: Option<f64>,
    matrix_free: bool,
    steps: u32,
    tolerance: f64,
}

/// Damping by which a step is too short to change anything.
const STRONGEST: f64 = 1e32;

/// The most times that a step of Gauss and Newton is halved.
const HALVINGS: i64 = 30;

/// Where a minimization stands.
#[derive(Clone, crate::tree::Tree)]
struct Place {
    x: Array,
    value: Array,
    damping: Array,
    /// What damping is multiplied by if the next step is refused.
    raise: Array,
    count: Array,
    done: Array,
    /// Whether it is done because there is nothing to gain, and not because there are no numbers to go by.
    converged: Array,
}

/// Residuals at a place: half their squared norm, their gradient, and the linear system of a step.
struct Problem {
    value: Array,
    gradient: Array,
    matrix: Option<Array>,
    back: At,
    forth: At,
    x: Array,
}

impl LeastSquares {
    /// How strongly steps are shortened at first, as a share of the curvature: 1e-3. Nothing for [`gauss_newton`].
    pub fn damping(self, share: f64) -> LeastSquares {
        LeastSquares { damping: self.damping.map(|_| share), ..self }
    }

    /// Systems are solved by conjugate gradients that only apply the derivative, forward and backward. Without this the matrix of all derivatives is made, which is faster for up to some hundred parameters.
    pub fn matrix_free(self) -> LeastSquares {
        LeastSquares { matrix_free: true, ..self }
    }

    /// The most steps: 100.
    pub fn steps(self, most: u32) -> LeastSquares {
        LeastSquares { steps: most, ..self }
    }

    /// It ends when a step is shorter than this share of the parameters, or no number of the gradient larger than this: 1e-10.
    pub fn tolerance(self, share: f64) -> LeastSquares {
        LeastSquares { tolerance: share, ..self }
    }

    /// The parameters at which half the sum of the squares of `residuals` is least, found from some others. Residuals are a tree of floats. Its derivative
    /// is that of the steps that were taken; [`Lbfgs::minimize`](super::Lbfgs::minimize) shows that of the least place.
    #[track_caller]
    pub fn minimize<P: Tree, R: Tree>(&self, residuals: impl Fn(&P) -> R, start: &P) -> Minimum<P> {
        let place = trace::caller_or_known(Location::caller());
        let (x, back) = tree::ravel(start);
        let f = |x: &Array| tree::ravel(&residuals(&back.call(x))).0;
        let made = trace::at_place(place, || -> Result<Place> {
            check_vector(&x)?;
            let first = half_square(&f(&x))?;
            let begin = Place {
                damping: first.full_like(self.damping.unwrap_or(0.0)),
                raise: first.full_like(2.0_f64),
                value: first,
                x: x.clone(),
                count: Array::from(0_i64),
                done: Array::from(false),
                converged: Array::from(false),
            };
            let goes_on = |p: &Place| !&p.done & p.count.lt(i64::from(self.steps));
            let step = |p: &Place| self.step(&f, p, place).unwrap_or_else(|e| poison(p, &e));
            Ok(while_loop(goes_on, step, begin))
        });
        match made {
            Ok(p) => Minimum { point: back.call(&p.x), value: p.value, steps: p.count, converged: p.converged },
            Err(e) => {
                let e = e.at(place);
                let all = || Array::from(e.clone());
                Minimum { point: poison(start, &e), value: all(), steps: all(), converged: all() }
            }
        }
    }

    fn step(&self, f: &dyn Fn(&Array) -> Array, p: &Place, place: Location) -> Result<Place> {
        let problem = Problem::new(f, &p.x, self.matrix_free, place)?;
        let step = problem.solve(&p.damping)?;
        let tolerance = option(&p.value, self.tolerance);
        let flat = problem.gradient.abs().max().le(&tolerance);
        let short = |step: &Array, x: &Array| norm(step).le((norm(x) + &tolerance) * &tolerance);
        let next = match self.damping {
            None => halved(f, p, &step),
            Some(_) => {
                let value = half_square(&f(&(&p.x + &step)))?;
                // What a quadratic function with this gradient and this curvature would fall by.
                let promised = step.dot(&(problem.scaled(&step, &p.damping) - &problem.gradient)) * 0.5_f64;
                let kept = promised.gt(0.0_f64).guarded(&promised, 1.0_f64, |w| (&p.value - &value) / w, 0.0_f64);
                let taken = value.lt(&p.value);
                // Nielsen's rule: less damping where the promise was kept, more and more where it was not.
                let less = (1.0_f64 - (&kept * 2.0_f64 - 1.0_f64).powi(3)).maximum(1.0_f64 / 3.0);
                Place {
                    x: taken.select(&p.x + &step, &p.x),
                    value: taken.select(&value, &p.value),
                    damping: &p.damping * taken.select(&less, &p.raise),
                    raise: taken.select(p.raise.full_like(2.0_f64), &p.raise * 2.0_f64),
                    ..p.clone()
                }
            }
        };
        // Infinite where the dtype has no such number: damping that grows gets there, too.
        let done = short(&step, &p.x) | next.damping.ge(number(&next.damping, STRONGEST)) | &next.done;
        // That a step does not help says nothing if it is no step.
        let known = problem.gradient.is_finite().all() & step.is_finite().all();
        let converged = p.value.is_finite() & (&flat | (&done & known));
        Ok(Place { count: &p.count + 1_i64, done: done | flat, converged, ..next })
    }
}

/// A step of Gauss and Newton, halved until it does not make things worse.
fn halved(f: &dyn Fn(&Array) -> Array, p: &Place, step: &Array) -> Place {
    let value = |share: &Array| half_square(&f(&(&p.x + step * share))).unwrap_or_else(Array::from);
    let one = p.value.ones_like();
    let worse = |(_, value, n): &(Array, Array, Array)| !value.le(&p.value) & n.lt(HALVINGS);
    let half = |(share, _, n): &(Array, Array, Array)| {
        let share = share * 0.5_f64;
        let value = value(&share);
        (share, value, n + 1_i64)
    };
    let first = value(&one);
    let (share, value, _) = while_loop(worse, half, (one, first, Array::from(0_i64)));
    let better = value.le(&p.value);
    Place {
        x: better.select(&p.x + step * share, &p.x),
        value: better.select(&value, &p.value),
        done: !better,
        ..p.clone()
    }
}

impl Problem {
    fn new(f: &dyn Fn(&Array) -> Array, x: &Array, matrix_free: bool, place: Location) -> Result<Problem> {
        let (back, forth) = (At::backward(f, x, place)?, At::forward(f, x, place)?);
        let residuals = back.value.clone();
        let matrix = if matrix_free { None } else { Some(forth.matrix(x)?) };
        let gradient = match &matrix {
            Some(j) => residuals.matmul(j).ok()?,
            None => back.along(&residuals, x)?,
        };
        Ok(Problem { value: half_square(&residuals)?, gradient, matrix, back, forth, x: x.clone() })
    }

    /// The curvature along a direction: the derivative forward, then backward.
    fn curvature(&self, v: &Array) -> Array {
        match &self.matrix {
            Some(j) => j.matmul(v).matmul(j),
            None => {
                let out = self.forth.along(v, &self.forth.value);
                out.and_then(|out| self.back.along(&out, &self.x)).unwrap_or_else(Array::from)
            }
        }
    }

    /// A direction as damping measures it: by the curvature of each parameter where that is known, otherwise as it is.
    fn scaled(&self, v: &Array, damping: &Array) -> Array {
        match &self.matrix {
            Some(j) => v * j.square().sum_axes(0) * damping,
            None => v * damping,
        }
    }

    /// The step that a system of the curvature, with damping, has for minus the gradient.
    fn solve(&self, damping: &Array) -> Result<Array> {
        let side = -&self.gradient;
        if let Some(j) = &self.matrix {
            let square = j.t().matmul(j);
            let diagonal = square.diagonal();
            let damped = Array::diag(&(&diagonal * damping), 0);
            // A parameter that nothing depends on stays where it is.
            let idle = Array::diag(&diagonal.eq(0.0_f64).cast(j.dtype()), 0);
            return eliminated(&(square + damped + idle), &side).ok();
        }
        let tight = solvers::Options::new().tolerance(if self.value.dtype() == DType::F64 { 1e-12 } else { 1e-6 });
        tight.cg(|v: &Array| self.curvature(v) + self.scaled(v, damping), &side).ok()
    }
}

/// The solution of a small system with a positive matrix, by elimination, which needs no pivots then.
fn eliminated(a: &Array, b: &Array) -> Array {
    let (n, rows) = (a.dim(0), Array::concatenate([a.clone(), b.expand_dims(1)], 1));
    let numbers = Array::iota(DType::I64, [n.clone()].into_iter().collect::<gradus_core::Shape>(), 0);
    let step = |k: &Array, rows: &Array| {
        let pivot = rows.index(k);
        let row = &pivot / pivot.index(k);
        let others = numbers.ne(k);
        let factors = rows.swap_axes(0, 1).index(k) * others.cast(rows.dtype());
        let here = (!others).expand_dims(1);
        here.select(row.expand_dims(0), rows - factors.expand_dims(1) * row.expand_dims(0))
    };
    let rows = fori_loop(Array::from(0_i64), Array::from_dim(&n, DType::I64), step, rows);
    rows.index((.., -1))
}

fn half_square(residuals: &Array) -> Result<Array> {
    let ty = residuals.ty()?;
    if !ty.dtype().is_float() {
        let message = format!("residuals of floats, not of {}", ty.dtype());
        return Err(
            Error::new(ErrorKind::DType, message).help("give real and imaginary parts as residuals of their own")
        );
    }
    (residuals.square().sum() * 0.5_f64).ok()
}

fn norm(x: &Array) -> Array {
    x.dot(x).sqrt()
}
