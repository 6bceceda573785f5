//! Ordinary differential equations: `dy/dt = f(y, t)`, integrated in steps that are as long as the wanted accuracy lets them.
//!
//! ```
//! use gradus::prelude::*;
//!
//! # fn main() -> Result<()> {
//! // A pendulum, and how its end depends on its beginning.
//! let end = |start: &(Array, Array)| {
//!     let (angle, _) = ode::integrate(|(a, v): &(Array, Array), _| (v.clone(), -a.sin()), start, &Array::from([0.0_f64, 1.0, 2.0]));
//!     angle.index(-1)
//! };
//! let slope = jit(grad(end))(&(Array::from(0.5_f64), Array::from(0.0_f64)));
//! assert!(slope.0.item::<f64>()? < 0.0);
//! # Ok(())
//! # }
//! ```
//!
//! Derivatives go through the steps that were taken, in both modes: by the first state, by the times, and by all that `f` captures. How long a step is has no derivative: the solution does not depend on it. Reverse mode keeps a
//! few states and computes the steps between them again, as every [`while_loop`] does.

mod tableau;

use gradus_core::{Array, DType, Error, ErrorKind, Location, Result, trace};

use crate::control::{scan, while_loop};
use crate::solvers;
use crate::stage::{first_difference, poison};
use crate::tree::{self, Tree};
use tableau::{DORMAND_PRINCE, TSITOURAS, Tableau};

/// Which steps are taken. Both are of order 5, with six evaluations of `f` a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Dormand and Prince: what `odeint` and `ode45` do.
    DormandPrince,
    /// Tsitouras: a little more accurate with as much work.
    #[default]
    Tsitouras,
}

/// How accurate an integration is, and how long it may take. Its last method runs it.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let options = ode::Options::new().relative(1e-10).absolute(1e-12).method(ode::Method::DormandPrince);
/// let y = options.integrate(|y: &Array, _| -y, &Array::from(1.0_f64), &Array::from([0.0_f64, 1.0]));
/// assert!((y.index(1).item::<f64>()? - (-1.0_f64).exp()).abs() < 1e-9);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `integrate` is called on them"]
pub struct Options {
    relative: f64,
    absolute: f64,
    method: Method,
    steps: i64,
    first: Option<f64>,
}

impl Default for Options {
    fn default() -> Options {
        Options { relative: 1e-6, absolute: 1e-8, method: Method::default(), steps: 100_000, first: None }
    }
}

impl Options {
    /// What [`integrate`] does: errors of 1e-6 of the state and 1e-8 in a step, by Tsitouras' method.
    pub fn new() -> Options {
        Options::default()
    }

    /// The error that a step may make as a share of the state.
    #[doc(alias = "rtol")]
    pub fn relative(self, error: f64) -> Options {
        Options { relative: error, ..self }
    }

    /// The error that a step may make besides.
    #[doc(alias = "atol")]
    pub fn absolute(self, error: f64) -> Options {
        Options { absolute: error, ..self }
    }

    /// Which steps are taken.
    pub fn method(self, method: Method) -> Options {
        Options { method, ..self }
    }

    /// The most steps from one of the given times to the next: 100,000. Who needs more gives NaN from there on.
    pub fn steps(self, most: u32) -> Options {
        Options { steps: i64::from(most), ..self }
    }

    /// How long the first step is tried to be; without this it is estimated.
    pub fn first_step(self, length: f64) -> Options {
        Options { first: Some(length), ..self }
    }

    /// Runs an [integration](integrate) in this way.
    #[track_caller]
    pub fn integrate<Y: Tree>(&self, f: impl Fn(&Y, &Array) -> Y, y0: &Y, times: &Array) -> Y {
        let place = trace::caller_or_known(Location::caller());
        trace::at_place(place, || self.run(&f, y0, times)).unwrap_or_else(|e| poison(y0, &e.at(place)))
    }

    fn run<Y: Tree>(&self, f: &impl Fn(&Y, &Array) -> Y, y0: &Y, times: &Array) -> Result<Y> {
        let in_order = check_times(times)?;
        let (start, back) = tree::ravel(y0);
        let ty = start.ty()?.clone();
        if !ty.dtype().is_inexact() {
            return Err(Error::new(ErrorKind::DType, format!("a state of floats or complex numbers, not {ty}"))
                .help("cast it, as in `y.cast(DType::F64)`"));
        }
        // Steps are shorter than what half floats can add up: between them the state is of f32, and `f` sees it as it was given.
        let wide = if ty.dtype().size() == 2 { DType::F32 } else { ty.dtype() };
        let start = start.cast(wide);
        // Backward in time is forward in its mirror.
        let sign = (times.index(-1) - times.index(0)).stop_gradient();
        let sign = sign.lt(0.0_f64).select(sign.full_like(-1.0_f64), sign.ones_like());
        let slope = |y: &Array, t: &Array| {
            let slope = f(&back.call(&y.cast(ty.dtype())), &(t * &sign));
            match first_difference(y0, &slope) {
                Some(difference) => Array::from(misfit(difference)),
                None => tree::ravel(&slope).0.cast(wide) * sign.cast(wide),
            }
        };
        // No step is as accurate as slopes of half floats are not.
        let rounding = solvers::rounding(y0);
        let coarse = if rounding > f64::from(f32::EPSILON) { rounding } else { 0.0 };
        let options = Options { relative: self.relative.max(coarse), ..self.clone() };
        let solver = Solver { options: &options, tableau: self.tableau(), slope: &slope };
        let times = times * &sign;
        let begin = solver.begin(&start, &times.index(0))?;
        let (_, states) = scan(|at: &Step, goal: &Array| solver.advance(at, goal), begin, &times.index(1..));
        let states = if in_order { states } else { turned_back(&times).select(states.full_like(f64::NAN), &states) };
        let all = Array::concatenate([start.expand_dims(0), states], 0).ok()?;
        Ok(back.call_rows(&all.cast(ty.dtype())))
    }

    fn tableau(&self) -> &'static Tableau {
        match self.method {
            Method::DormandPrince => &DORMAND_PRINCE,
            Method::Tsitouras => &TSITOURAS,
        }
    }
}

/// Refuses times that are none. Whether they are known to go one way.
fn check_times(times: &Array) -> Result<bool> {
    let ty = times.ty()?;
    if ty.rank() != 1 || !matches!(ty.dtype(), DType::F32 | DType::F64) || times.dim(0).constant() == Some(0) {
        let message = format!("times are a vector of f32 or f64 with at least one of them, not {ty}");
        return Err(
            Error::new(ErrorKind::Shape, message).help("give the first time and those at which the state is wanted")
        );
    }
    let Some(known) = times.concrete() else { return Ok(false) };
    if known.splat_value().is_some() {
        return Ok(true);
    }
    // Read as they are: an operation would become part of a program that is being traced.
    let known = (0..known.count()).map(|i| known.scalar_at(i).map(|t| t.to_f64())).collect::<Result<Vec<f64>>>()?;
    let turn = |ways: fn(&f64, &f64) -> bool| known.windows(2).find(|w| !ways(&w[0], &w[1]));
    match (turn(f64::le), turn(f64::ge)) {
        (Some(up), Some(down)) => {
            let pair = if known.last() < known.first() { down } else { up };
            let message = format!("times go one way, up or down, and after {:?} comes {:?}", pair[0], pair[1]);
            Err(Error::new(ErrorKind::Value, message).help("sort them, and integrate twice to go forth and back"))
        }
        _ => Ok(true),
    }
}

/// Where times from the second on are before one that came earlier: steps have gone on from there. A column for the rows of states.
fn turned_back(times: &Array) -> Array {
    let furthest = times.cummax(0);
    // Not `lt`: what is compared with NaN is in no order.
    (!times.index(1..).ge(furthest.index(..-1))).expand_dims(-1)
}

fn misfit((path, state, slope): (String, String, String)) -> Error {
    let at = if path.is_empty() { String::new() } else { format!(" at `{path}`") };
    let message = format!("the slope does not fit the state{at}: {state} is the state, and {slope} its slope");
    Error::new(ErrorKind::Signature, message).help("`f` gives a value of the structure and the types of the state")
}

/// The states at some times of a solution of `dy/dt = f(y, t)` that is `y0` at the first of them. Each array of the result has the times as its leading axis.
///
/// Times go up or down. Others are an error, and where they are known only to the program, states at times that turn back are NaN. Steps do not stop at them: states between are interpolated with the accuracy of the steps. `f` gives a value of the structure and types of `y0`. [`Options`] choose accuracy and method. Where steps become too
/// short to go on, or too many, the rest is NaN.
///
/// Half floats are rounded where `f` sees them and in the result; between, the state is kept in `f32`, and the relative error that is asked for is at least their rounding.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let times = Array::linspace(0.0_f64, 3.0, 4);
/// let y = ode::integrate(|y: &Array, t: &Array| y * t, &Array::from(1.0_f64), &times);
/// assert!(tree::all_close(&y, &(times.square() * 0.5_f64).exp(), 1e-4)?);
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[doc(alias = "odeint")]
#[doc(alias = "solve_ivp")]
pub fn integrate<Y: Tree>(f: impl Fn(&Y, &Array) -> Y, y0: &Y, times: &Array) -> Y {
    Options::new().integrate(f, y0, times)
}

/// Where an integration is: the last step, and what the next one begins with.
#[derive(Clone, crate::tree::Tree)]
struct Step {
    t: Array,
    y: Array,
    /// The slope at `y`.
    slope: Array,
    /// How long the next step is tried to be.
    length: Array,
    /// The last step began here and was so long; in it the state is this polynomial of the share of the step, the highest power first.
    from: Array,
    span: Array,
    polynomial: [Array; 5],
    /// Steps since the last of the given times.
    count: Array,
}

struct Solver<'a> {
    options: &'a Options,
    tableau: &'a Tableau,
    slope: &'a dyn Fn(&Array, &Array) -> Array,
}

// How much shorter or longer than the last a step may be, and how much of the estimate it is.
const SHORTER: f64 = 0.2;
const LONGER: f64 = 10.0;
const SAFETY: f64 = 0.9;

impl Solver<'_> {
    fn begin(&self, y: &Array, t: &Array) -> Result<Step> {
        let slope = (self.slope)(y, t).ok()?;
        let length = match self.options.first {
            Some(length) => t.full_like(length.abs()),
            None => self.first_length(y, &slope, t),
        };
        let zero = y.zeros_like();
        Ok(Step {
            t: t.clone(),
            y: y.clone(),
            slope,
            length: length.stop_gradient(),
            from: t.clone(),
            span: t.ones_like(),
            polynomial: [zero.clone(), zero.clone(), zero.clone(), zero, y.clone()],
            count: Array::from(0_i64),
        })
    }

    /// What errors are measured by.
    fn scale(&self, size: &Array) -> Array {
        size * self.options.relative + self.options.absolute
    }

    /// A first step that changes the state by about a hundredth, by its first two derivatives (Hairer, Nørsett, Wanner, II.4).
    fn first_length(&self, y: &Array, slope: &Array, t: &Array) -> Array {
        let (y, slope) = (y.stop_gradient(), slope.stop_gradient());
        let scale = self.scale(&y.abs());
        let size = |x: &Array| mean_square(&(x / &scale)).sqrt().cast(t.dtype());
        let (d0, d1) = (size(&y), size(&slope));
        let flat = d0.lt(1e-5_f64) | d1.lt(1e-5_f64);
        let short = flat.select(t.full_like(1e-6_f64), &d0 / flat.select(d1.ones_like(), &d1) * 0.01_f64);
        let ahead = (self.slope)(&(&y + &slope * short.cast(y.dtype())), &(t + &short));
        let d2 = size(&(ahead - &slope)) / &short;
        let bend = d1.maximum(&d2);
        let straight = bend.le(1e-15_f64);
        let longer = (0.01_f64 / straight.select(bend.ones_like(), &bend)).pow(0.2_f64);
        let long = straight.select((&short * 1e-3_f64).maximum(1e-6_f64), longer);
        (short * 100.0_f64).minimum(long)
    }

    /// Steps until a time is passed, and the state there.
    fn advance(&self, at: &Step, goal: &Array) -> (Step, Array) {
        let begin = Step { count: Array::from(0_i64), ..at.clone() };
        // A step that is too short to change the time would be the same for ever; NaN stops, too.
        let goes_on = |s: &Step| s.t.lt(goal) & s.count.lt(self.options.steps) & (&s.t + &s.length).gt(&s.t);
        let end = while_loop(goes_on, |s: &Step| self.step(s), begin);
        let share = ((goal - &end.from) / &end.span).cast(end.y.dtype());
        let [first, rest @ ..] = &end.polynomial;
        let state = rest.iter().fold(first.clone(), |sum, term| sum * &share + term);
        let reached = end.t.ge(goal);
        let state = reached.select(&state, state.full_like(f64::NAN));
        (end, state)
    }

    /// One step that is tried: taken if its error is small enough, and the next one's length in any case.
    fn step(&self, s: &Step) -> Step {
        let h = s.length.cast(s.y.dtype());
        let along = |weights: &[f64], slopes: &[Array]| {
            let terms = weights.iter().zip(slopes).filter(|(w, _)| **w != 0.0).map(|(w, k)| k * *w);
            terms.reduce(|a, b| a + b).unwrap_or_else(|| s.y.zeros_like()) * &h
        };
        let mut slopes = vec![s.slope.clone()];
        let mut y = s.y.clone();
        for (weights, place) in self.tableau.stages.iter().zip(self.tableau.places).skip(1) {
            y = &s.y + along(weights, &slopes);
            slopes.push((self.slope)(&y, &(&s.t + &s.length * place)));
        }
        let off = along(&self.tableau.error, &slopes).stop_gradient();
        let scale = self.scale(&s.y.abs().maximum(y.abs()).stop_gradient());
        let error = mean_square(&(off / scale)).sqrt().cast(s.t.dtype());
        let taken = error.le(1.0_f64);
        let polynomial = self.polynomial(s, &y, &slopes, &(&s.y + along(&self.tableau.middle, &slopes)), &h);
        let pick = |new: &Array, old: &Array| taken.select(new, old);
        let last = &slopes[slopes.len() - 1];
        Step {
            t: pick(&(&s.t + &s.length), &s.t),
            y: pick(&y, &s.y),
            slope: pick(last, &s.slope),
            length: (&s.length * factor(&error)).stop_gradient(),
            from: pick(&s.t, &s.from),
            span: pick(&s.length, &s.span),
            polynomial: std::array::from_fn(|i| pick(&polynomial[i], &s.polynomial[i])),
            count: &s.count + 1_i64,
        }
    }

    /// The polynomial of degree 4 with the states and slopes at both ends, and the state in the middle.
    fn polynomial(&self, s: &Step, y: &Array, slopes: &[Array], middle: &Array, h: &Array) -> [Array; 5] {
        let (d0, d1) = (&s.slope * h, &slopes[slopes.len() - 1] * h);
        // From the first state on, which rounds less than whole states do.
        let (up, mid) = (y - &s.y, middle - &s.y);
        [
            (&d1 - &d0) * 2.0_f64 - &up * 8.0_f64 + &mid * 16.0_f64,
            &d0 * 5.0_f64 - &d1 * 3.0_f64 + &up * 14.0_f64 - &mid * 32.0_f64,
            &d1 - &d0 * 4.0_f64 - &up * 5.0_f64 + &mid * 16.0_f64,
            d0,
            s.y.clone(),
        ]
    }
}

/// The mean of squared absolute values, of half the bits for complex numbers.
fn mean_square(x: &Array) -> Array {
    let square = if x.dtype().is_complex() { (x * x.conj()).real() } else { x.square() };
    square.mean()
}

/// How much longer the next step is. What has no error, because it left where `f` is defined, is tried again much shorter.
fn factor(error: &Array) -> Array {
    let known = error.gt(0.0_f64) & error.lt(f64::INFINITY);
    let best = known.guarded(error, 1.0_f64, |e| e.pow(-0.2_f64) * SAFETY, LONGER);
    let best = best.clamp(SHORTER, LONGER);
    // Who was taken is not followed by a shorter one.
    let best = error.le(1.0_f64).select(best.maximum(1.0_f64), &best);
    (error.is_nan() | error.eq(f64::INFINITY)).select(best.full_like(SHORTER), &best)
}
