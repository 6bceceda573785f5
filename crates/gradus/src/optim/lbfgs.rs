//! L-BFGS: directions by what the last steps say of the curvature, and a search along each.

use gradus_core::{Array, Dim, Error, ErrorKind, Location, Result, Scalar, Shape, trace};

use super::objective::{At, Minimum, check_vector};
use crate::control::{ScanOptions, scan, while_loop};
use crate::formula::option;
use crate::line::few;
use crate::stage::poison;
use crate::tree::{self, Tree};

/// The method of Broyden, Fletcher, Goldfarb and Shanno that remembers a few steps instead of a matrix. For smooth functions without noise: of few hundred or of millions of parameters.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let rosenbrock = |x: &Array| {
///     let (a, b) = (x.index(..-1), x.index(1..));
///     ((b - a.square()).square() * 100.0_f64 + (1.0_f64 - a).square()).sum()
/// };
/// let found = jit(move |x: &Array| optim::lbfgs().minimize(rosenbrock, x))(&Array::from([-1.2_f64, 1.0, 0.5]));
/// assert!(found.converged.item::<bool>()?);
/// assert!(tree::all_close(&found.point, &Array::ones::<f64>([3]), 1e-6)?);
/// # Ok(())
/// # }
/// ```
pub fn lbfgs() -> Lbfgs {
    Lbfgs { memory: 10, steps: 1000, tolerance: 1e-8 }
}

/// What [`lbfgs`] makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lbfgs {
    memory: usize,
    steps: u32,
    tolerance: f64,
}

/// What [`Lbfgs`] remembers between steps.
#[derive(Clone, Debug, crate::tree::Tree)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LbfgsState {
    count: Array,
    value: Array,
    gradient: Array,
    /// The last steps, the newest first, what they changed the gradient by, and one over the products of both; zero for those that were not yet.
    moves: Array,
    changes: Array,
    weights: Array,
    /// Whether the last search found nothing better.
    stuck: Array,
}

impl LbfgsState {
    /// The value at the parameters that the state belongs to.
    pub fn value(&self) -> &Array {
        &self.value
    }

    /// The number of steps so far.
    pub fn count(&self) -> &Array {
        &self.count
    }
}

/// How much of the promised decrease a step must give, and how much less steep the end must be.
const DECREASE: f64 = 1e-4;
const FLATTER: f64 = 0.9;
/// The most places that are tried along a direction.
const TRIES: i64 = 40;

impl Lbfgs {
    /// How many steps are remembered: 10.
    pub fn memory(self, steps: usize) -> Lbfgs {
        Lbfgs { memory: steps.max(1), ..self }
    }

    /// The most steps of [`minimize`](Lbfgs::minimize): 1,000.
    pub fn steps(self, most: u32) -> Lbfgs {
        Lbfgs { steps: most, ..self }
    }

    /// [`minimize`](Lbfgs::minimize) ends when no number of the gradient is larger than this: 1e-8.
    pub fn tolerance(self, largest: f64) -> Lbfgs {
        Lbfgs { tolerance: largest, ..self }
    }

    /// The state before the first step.
    #[track_caller]
    pub fn init<P: Tree>(&self, f: impl Fn(&P) -> Array, parameters: &P) -> LbfgsState {
        let place = trace::caller_or_known(Location::caller());
        let made = trace::at_place(place, || {
            let (x, back) = tree::ravel(parameters);
            self.start(&|x: &Array| f(&back.call(x)), &x, place)
        });
        made.unwrap_or_else(|e| LbfgsState::failed(&e.at(place)))
    }

    /// The next parameters and state. `f` is the same function in every step.
    #[track_caller]
    pub fn step<P: Tree>(&self, f: impl Fn(&P) -> Array, parameters: &P, state: &LbfgsState) -> (P, LbfgsState) {
        let place = trace::caller_or_known(Location::caller());
        let (x, back) = tree::ravel(parameters);
        let made = trace::at_place(place, || self.next(&|x: &Array| f(&back.call(x)), &x, state, place));
        match made {
            Ok((x, state)) => (back.call(&x), state),
            Err(e) => {
                let e = e.at(place);
                (poison(parameters, &e), LbfgsState::failed(&e))
            }
        }
    }

    /// Steps from some parameters until there is nothing to gain.
    ///
    /// Its derivative is that of the steps that were taken. Where what is wanted is how the least place depends on something else, that is the root of the
    /// gradient, and has the derivative of its equation:
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let cost = |x: &Array, a: &Array| (x.exp() - a * x).sum(); // least where x is the logarithm of a
    /// let least = |a: &Array| {
    ///     let found = |a: &Array| optim::lbfgs().minimize(|x: &Array| cost(x, a), &a.zeros_like()).point;
    ///     root(|x: &Array, a: &Array| grad(cost)(x, a), found, a)
    /// };
    /// let slope = grad(least)(&Array::from(2.0));
    /// assert!((slope.item::<f64>()? - 0.5).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn minimize<P: Tree>(&self, f: impl Fn(&P) -> Array, start: &P) -> Minimum<P> {
        let place = trace::caller_or_known(Location::caller());
        let (x, back) = tree::ravel(start);
        let f = |x: &Array| f(&back.call(x));
        let made = trace::at_place(place, || -> Result<Minimum<P>> {
            let flat = |s: &LbfgsState| s.gradient.abs().max().le(option(&s.gradient, self.tolerance));
            let begin = (x.clone(), self.start(&f, &x, place)?);
            let goes_on = |(_, s): &(Array, LbfgsState)| !flat(s) & !&s.stuck & s.count.lt(i64::from(self.steps));
            let step = |(x, s): &(Array, LbfgsState)| match self.next(&f, x, s, place) {
                Ok(next) => next,
                Err(e) => (Array::from(e.clone()), LbfgsState::failed(&e)),
            };
            let (x, s) = while_loop(goes_on, step, begin);
            // A search that finds nothing says something only where it knew in which direction to look.
            let known = s.gradient.dot(&s.gradient).is_finite();
            let converged = s.value.is_finite() & (flat(&s) | (&s.stuck & known));
            Ok(Minimum { point: back.call(&x), converged, value: s.value, steps: s.count })
        });
        made.unwrap_or_else(|e| {
            let e = e.at(place);
            let all = || Array::from(e.clone());
            Minimum { point: poison(start, &e), value: all(), steps: all(), converged: all() }
        })
    }

    fn start(&self, f: &dyn Fn(&Array) -> Array, x: &Array, place: Location) -> Result<LbfgsState> {
        check_vector(x)?;
        few(self.memory, "a memory of steps", 1 << 20)?;
        let (value, gradient) = value_and_gradient(f, x, place)?;
        let zeros = |dims: Vec<Dim>| Array::full_scalar(dims.into_iter().collect::<Shape>(), Scalar::zero(x.dtype()));
        let memory = Dim::from(self.memory);
        Ok(LbfgsState {
            count: Array::from(0_i64),
            value,
            gradient,
            moves: zeros(vec![memory.clone(), x.dim(0)]),
            changes: zeros(vec![memory.clone(), x.dim(0)]),
            weights: zeros(vec![memory]),
            stuck: Array::from(false),
        })
    }

    fn next(
        &self,
        f: &dyn Fn(&Array) -> Array,
        x: &Array,
        s: &LbfgsState,
        place: Location,
    ) -> Result<(Array, LbfgsState)> {
        let (moves, own) = (s.moves.ty()?, x.ty()?);
        if moves.rank() != 2
            || moves.dtype() != own.dtype()
            || s.moves.dim(0).constant() != Some(self.memory as i64)
            || s.moves.dim(1).equals(&x.dim(0)) == gradus_core::Decision::No
        {
            let message = format!("a state with moves {moves} for parameters {own} and a memory of {}", self.memory);
            return Err(Error::new(ErrorKind::Signature, message)
                .help("make the state with `init` of the same method and parameters"));
        }
        let direction = s.direction();
        let downhill = direction.dot(&s.gradient);
        // What does not go down is of no use: then straight down.
        let good = downhill.lt(0.0_f64);
        let direction = good.select(&direction, -&s.gradient);
        let slope = good.select(&downhill, -s.gradient.dot(&s.gradient));
        let first = s.weights.index(0).eq(0.0_f64);
        let length = s.gradient.dot(&s.gradient).sqrt();
        let careful = length.gt(1.0_f64).guarded(&length, 1.0_f64, |l| 1.0_f64 / l, 1.0_f64);
        let begin = first.select(&careful, careful.ones_like());
        let found = search(f, x, &direction, &(s.value.clone(), slope), &begin, place)?;
        let next = x + &direction * &found.share;
        let (moved, changed) = (&next - x, &found.gradient - &s.gradient);
        let product = moved.dot(&changed);
        let curved = product.gt(0.0_f64) & found.good.clone();
        let weight = curved.guarded(&product, 1.0_f64, |p| 1.0_f64 / p, 0.0_f64);
        // A step without curvature is not remembered.
        let remember = |old: &Array, new: &Array| {
            let shifted = Array::concatenate([new.expand_dims(0), old.index(..-1)], 0);
            curved.select(shifted, old)
        };
        let keep = |new: &Array, old: &Array| found.good.select(new, old);
        let state = LbfgsState {
            count: &s.count + 1_i64,
            value: keep(&found.value, &s.value),
            gradient: keep(&found.gradient, &s.gradient),
            moves: remember(&s.moves, &moved),
            changes: remember(&s.changes, &changed),
            weights: remember(&s.weights, &weight),
            stuck: !&found.good,
        };
        Ok((keep(&next, x), state))
    }
}

impl LbfgsState {
    fn failed(e: &Error) -> LbfgsState {
        let all = || Array::from(e.clone());
        LbfgsState {
            count: all(),
            value: all(),
            gradient: all(),
            moves: all(),
            changes: all(),
            weights: all(),
            stuck: all(),
        }
    }

    /// Minus the gradient times the inverse of the curvature that the remembered steps saw (Nocedal's two loops).
    fn direction(&self) -> Array {
        type Row = (Array, Array, Array);
        let rows = (self.moves.clone(), self.changes.clone(), self.weights.clone());
        let down = |q: &Array, (s, y, w): &Row| {
            let part = w * s.dot(q);
            (q - y * &part, part)
        };
        let (q, parts) = scan(down, self.gradient.clone(), &rows);
        // The newest step says how large the curvature is.
        let (s, y) = (self.moves.index(0), self.changes.index(0));
        let bend = y.dot(&y);
        let scale = bend.gt(0.0_f64).guarded(&bend, 1.0_f64, |b| s.dot(&y) / b, 1.0_f64);
        let up = |r: &Array, ((s, y, w), part): &(Row, Array)| (r + s * (part - w * y.dot(r)), ());
        let (r, ()) = ScanOptions::new().reverse().scan(up, q * scale, &(rows, parts));
        -r
    }
}

fn value_and_gradient(f: &dyn Fn(&Array) -> Array, x: &Array, place: Location) -> Result<(Array, Array)> {
    let at = At::backward(f, x, place)?;
    let ty = at.value.ty()?;
    if ty.rank() != 0 || !ty.dtype().is_float() {
        let message = format!("what is minimized is one number, not {ty}");
        return Err(Error::new(ErrorKind::Signature, message).help("reduce it with `.sum()` or `.mean()`"));
    }
    let gradient = at.along(&at.value.ones_like(), x)?;
    Ok((at.value, gradient))
}

/// Where a search along a direction stands.
#[derive(Clone, crate::tree::Tree)]
struct Search {
    low: Array,
    high: Array,
    share: Array,
    value: Array,
    gradient: Array,
    /// Whether the place is low and flat enough.
    done: Array,
    /// Whether it is lower at all.
    good: Array,
    tries: Array,
}

/// A place along a direction where the function is lower and less steep (the conditions of Wolfe), by doubling and halving: Lewis and Overton, "Nonsmooth optimization via quasi-Newton methods".
fn search(
    f: &dyn Fn(&Array) -> Array,
    x: &Array,
    direction: &Array,
    (value, slope): &(Array, Array),
    begin: &Array,
    place: Location,
) -> Result<Search> {
    let tried = |share: &Array, low: &Array, high: &Array, tries: Array| -> Result<Search> {
        let (here, gradient) = value_and_gradient(f, &(x + direction * share), place)?;
        // This way round, so that NaN is too high.
        let low_enough = here.le(value + slope * share * DECREASE);
        let flat_enough = gradient.dot(direction).ge(slope * FLATTER);
        Ok(Search {
            high: low_enough.select(high, share),
            low: (&low_enough & !&flat_enough).select(share, low),
            share: share.clone(),
            good: here.lt(value),
            value: here,
            gradient,
            done: low_enough & flat_enough,
            tries,
        })
    };
    let zero = begin.zeros_like();
    let start = tried(begin, &zero, &begin.full_like(f64::INFINITY), Array::from(1_i64))?;
    let goes_on = |s: &Search| !&s.done & s.tries.lt(TRIES);
    let step = |s: &Search| {
        let bounded = s.high.lt(f64::INFINITY);
        let between = (&s.low + bounded.select(&s.high, &s.low)) * 0.5_f64;
        let share = bounded.select(between, &s.low * 2.0_f64);
        tried(&share, &s.low, &s.high, &s.tries + 1_i64).unwrap_or_else(|e| poison(s, &e))
    };
    Ok(while_loop(goes_on, step, start))
}
