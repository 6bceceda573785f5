//! Optimizers: pairs of pure functions on trees of parameters, which stage like everything else.
//!
//! An optimizer is a value. [`init`](Optimizer::init) makes its state for some parameters, [`step`](Optimizer::step) takes parameters, gradients and state
//! and gives the next parameters and state. Inside [`jit`](crate::jit) a step is one pass over the parameters. The state is a tree like the parameters, so it is
//! carried through loops, batched and [saved](crate::files) like them.
//!
//! ```
//! use gradus::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let loss = |w: &Array| (w - 3.0_f64).square().sum();
//! let adam = optim::adam(0.1).clip_norm(1.0);
//! let mut w = Array::from([0.0_f64, 5.0]);
//! let mut state = adam.init(&w);
//! let step = jit(move |w: &Array, s: &optim::State<Array>| adam.step(w, &grad(loss)(w), s));
//! for _ in 0..200 {
//!     (w, state) = step(&w, &state);
//! }
//! assert!(w.to_vec::<f64>()?.iter().all(|w| (w - 3.0).abs() < 1e-2));
//! # Ok(())
//! # }
//! ```
//!
//! Formulas and defaults are those of Optax, and its numbers are the reference of the tests. For smooth functions without noise there are [`lbfgs`], and for sums of squares [`levenberg_marquardt`] and
//! [`gauss_newton`]: they are given the function itself.

mod averages;
mod clipping;
mod lbfgs;
mod least_squares;
mod objective;
mod rules;
mod schedule;

use std::fmt;
use std::sync::Arc;

use gradus_core::{Array, Error, ErrorKind, Location, Result, trace};

use crate::stage::{fill, poison};
use crate::tree::{self, Mapper, Segment, Tree, Visitor, again};

pub use averages::{Ema, ema};
pub use clipping::{clip, clip_norm};
pub use lbfgs::{Lbfgs, LbfgsState, lbfgs};
pub use least_squares::{LeastSquares, gauss_newton, levenberg_marquardt};
pub use objective::Minimum;
pub use rules::{Adagrad, Adam, At, Lion, RmsProp, Rule, Sgd, adagrad, adam, adamw, lion, rmsprop, sgd};
pub use schedule::Schedule;

/// What an optimizer remembers between steps: how many there were, and trees like the parameters.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct State<P> {
    /// The number of steps so far.
    count: Array,
    /// What the rule remembers of each parameter, such as means of gradients.
    moments: Vec<P>,
}

/// By hand: a derived one would ask parameters to be `Clone`, and those with a random key are not.
impl<P: Tree> Tree for State<P> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.enter(Segment::Field("count"));
        self.count.visit(visitor);
        visitor.leave();
        visitor.enter(Segment::Field("moments"));
        self.moments.visit(visitor);
        visitor.leave();
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        State { count: self.count.map(mapper), moments: self.moments.map(mapper) }
    }
}

impl<P> State<P> {
    /// The number of steps so far.
    pub fn count(&self) -> &Array {
        &self.count
    }

    /// What is remembered of the parameters, one tree for each [moment](Rule::moments) of the rule.
    pub fn moments(&self) -> &[P] {
        &self.moments
    }
}

/// An optimizer: a [rule](Rule) for directions, a [rate](Schedule), and what is done to gradients before and to parameters besides.
///
/// Made by [`sgd`], [`adam`], [`adamw`], [`lion`], [`rmsprop`], [`adagrad`], or [`Optimizer::new`] of a rule of your own.
#[derive(Clone)]
pub struct Optimizer<R> {
    rule: R,
    rate: Schedule,
    clips: Vec<Clip>,
    weight_decay: f64,
    decays: Option<Arc<dyn Fn(&str) -> bool + Send + Sync>>,
}

#[derive(Clone, Copy, Debug)]
enum Clip {
    Norm(f64),
    Value(f64),
}

impl<R: fmt::Debug> fmt::Debug for Optimizer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Optimizer");
        shown.field("rule", &self.rule).field("rate", &self.rate).field("clips", &self.clips);
        shown.field("weight_decay", &self.weight_decay).finish_non_exhaustive()
    }
}

impl<R: Rule> Optimizer<R> {
    /// An optimizer of a rule, with a rate that is a number or a [`Schedule`].
    pub fn new(rule: R, rate: impl Into<Schedule>) -> Optimizer<R> {
        Optimizer { rule, rate: rate.into(), clips: Vec::new(), weight_decay: 0.0, decays: None }
    }

    /// Gradients are made shorter if their [global norm](tree::global_norm) is more than this.
    #[doc(alias = "clip_by_global_norm")]
    pub fn clip_norm(mut self, most: f64) -> Optimizer<R> {
        self.clips.push(Clip::Norm(most));
        self
    }

    /// Each number of a gradient is held between minus this and this.
    pub fn clip(mut self, most: f64) -> Optimizer<R> {
        self.clips.push(Clip::Value(most));
        self
    }

    /// Parameters shrink in each step by this share of them times the rate, besides what the gradient does.
    #[doc(alias = "add_decayed_weights")]
    pub fn weight_decay(self, share: f64) -> Optimizer<R> {
        Optimizer { weight_decay: share, ..self }
    }

    /// Only parameters whose [path](tree::paths) this accepts decay.
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// let adamw = optim::adamw(1e-3).decay_only(|path| !path.ends_with("bias"));
    /// ```
    #[doc(alias = "mask")]
    pub fn decay_only(self, accepts: impl Fn(&str) -> bool + Send + Sync + 'static) -> Optimizer<R> {
        Optimizer { decays: Some(Arc::new(accepts)), ..self }
    }

    /// The state before the first step.
    #[track_caller]
    pub fn init<P: Tree>(&self, parameters: &P) -> State<P> {
        let place = trace::caller_or_known(Location::caller());
        let begin = |moment: usize| {
            tree::map(parameters, |p| match is_trained(p) {
                true => self.rule.begin(moment, p),
                false => tree::zeros_like(p),
            })
        };
        trace::at_place(place, || State {
            count: Array::from(0_i64),
            moments: (0..self.rule.moments()).map(begin).collect(),
        })
    }

    /// The next parameters and state. Integers, bools and keys among the parameters stay as they are.
    #[track_caller]
    pub fn step<P: Tree>(&self, parameters: &P, gradients: &P, state: &State<P>) -> (P, State<P>) {
        let place = trace::caller_or_known(Location::caller());
        let made = trace::at_place(place, || self.stepped(parameters, gradients, state));
        made.unwrap_or_else(|e| {
            let e = e.at(place);
            (poison(parameters, &e), poison(state, &e))
        })
    }

    fn stepped<P: Tree>(&self, parameters: &P, gradients: &P, state: &State<P>) -> Result<(P, State<P>)> {
        tree::same_names(parameters, gradients).map_err(|e| e.note("the trees are parameters and gradients"))?;
        check_state(parameters, state, self.rule.moments(), "optimizer")?;
        let gradients = self.clips.iter().fold(again(gradients), |g, clip| match clip {
            Clip::Norm(most) => clip_norm(&g, *most),
            Clip::Value(most) => clipping::clip(&g, *most),
        });
        let (rate, count) = (self.rate.at(&state.count), &state.count + 1_i64);
        let (names, gradients) = (tree::paths(parameters), gradients.leaves());
        let moments: Vec<Vec<Array>> = state.moments.iter().map(Tree::leaves).collect();
        let mut next = Vec::with_capacity(names.len());
        let mut remembered = vec![Vec::with_capacity(names.len()); moments.len()];
        for (i, parameter) in parameters.leaves().iter().enumerate() {
            let own: Vec<Array> = moments.iter().map(|m| m[i].clone()).collect();
            let (p, own) = match is_trained(parameter) {
                true => {
                    let at = At { parameter, gradient: &gradients[i], moments: &own, count: &count };
                    self.moved(&at, &rate, &names[i])?
                }
                false => (parameter.clone(), own),
            };
            next.push(p);
            own.into_iter().zip(&mut remembered).for_each(|(m, all)| all.push(m));
        }
        let moments = state.moments.iter().zip(remembered).map(|(m, arrays)| fill(m, arrays)).collect();
        Ok((fill(parameters, next), State { count, moments }))
    }

    /// One parameter after a step, and what is remembered of it.
    fn moved(&self, at: &At<'_>, rate: &Array, name: &str) -> Result<(Array, Vec<Array>)> {
        let (want, have) = (at.parameter.ty()?, at.gradient.ty()?);
        if want != have {
            let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
            let message = format!("the parameter{name} is {want}, and its gradient {have}");
            return Err(Error::new(ErrorKind::Signature, message).help("a gradient has the type of its parameter"));
        }
        let (mut direction, moments) = self.rule.direction(at);
        if self.weight_decay != 0.0 && self.decays.as_ref().is_none_or(|accepts| accepts(name)) {
            direction += at.parameter * self.weight_decay;
        }
        Ok(((at.parameter - direction * rate.cast(want.dtype())).ok()?, moments))
    }
}

/// Refuses a state that is not of these parameters. Moments of another shape or dtype would broadcast, and the next parameters would be of that type.
fn check_state<P: Tree>(parameters: &P, state: &State<P>, want: usize, of: &str) -> Result<()> {
    let help = || format!("make the state with `init` of the same {of} and the same parameters");
    let refuse = |message: String| Err(Error::new(ErrorKind::Signature, message).help(help()));
    let have = state.moments.len();
    if want != have {
        let trees = if have == 1 { "tree" } else { "trees" };
        return refuse(format!("a state with {have} {trees} of moments for an {of} that has {want}"));
    }
    let count = state.count.ty()?;
    if count.rank() != 0 || !count.dtype().is_int() {
        return refuse(format!("a state whose number of steps is {count}, and not one integer"));
    }
    for moments in &state.moments {
        tree::same_names(parameters, moments)
            .map_err(|e| e.note("the trees are parameters and moments").help(help()))?;
        let names = tree::paths(parameters);
        for ((name, parameter), moment) in names.iter().zip(parameters.leaves()).zip(moments.leaves()) {
            let (want, have) = (parameter.ty()?, moment.ty()?);
            if want != have {
                let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
                return refuse(format!("the parameter{name} is {want}, and what the state remembers of it is {have}"));
            }
        }
    }
    Ok(())
}

/// Whether an array is moved by gradients.
fn is_trained(x: &Array) -> bool {
    x.dtype().is_inexact()
}
