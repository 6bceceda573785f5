//! Averages of parameters over the steps of a training, which often do better than the last ones.

use gradus_core::{Array, Location, trace};

use super::rules::{towards, unbiased};
use super::{State, check_state, is_trained};
use crate::stage::poison;
use crate::tree::{self, Tree};

/// A running average that forgets: `decay` of what it was, and the rest of what comes.
///
/// ```
/// use gradus::prelude::*;
///
/// let ema = optim::ema(0.9);
/// let (mut w, mut state) = (Array::from(1.0_f64), ema.init(&Array::from(1.0_f64)));
/// let mut average = w.clone();
/// for _ in 0..3 {
///     w = w + 1.0_f64;
///     (average, state) = ema.step(&w, &state);
/// }
/// // As if it had begun with the first: weights .81, .9 and 1 of 2, 3 and 4.
/// assert!((average.item::<f64>()? - (0.81 * 2.0 + 0.9 * 3.0 + 4.0) / 2.71).abs() < 1e-14);
/// # Ok::<(), gradus::Error>(())
/// ```
pub fn ema(decay: f64) -> Ema {
    Ema { decay, debias: true }
}

/// What [`ema`] makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ema {
    decay: f64,
    debias: bool,
}

impl Ema {
    /// The average begins with zero and is given as it is. Without this it is divided by the weights so far.
    pub fn biased(self) -> Ema {
        Ema { debias: false, ..self }
    }

    /// The state before the first step.
    #[track_caller]
    pub fn init<P: Tree>(&self, parameters: &P) -> State<P> {
        State { count: Array::from(0_i64), moments: vec![tree::zeros_like(parameters)] }
    }

    /// The average with these parameters in it, and the next state. What is no float is as it came.
    #[track_caller]
    pub fn step<P: Tree>(&self, parameters: &P, state: &State<P>) -> (P, State<P>) {
        let place = trace::caller_or_known(Location::caller());
        let mean = match check_state(parameters, state, 1, "average") {
            Ok(()) => &state.moments[0],
            Err(e) => {
                let e = e.at(place);
                return (poison(parameters, &e), poison(state, &e));
            }
        };
        trace::at_place(place, || {
            let count = &state.count + 1_i64;
            let next = |[m, p]: [&Array; 2]| if is_trained(p) { towards(m, self.decay, p) } else { p.clone() };
            let mean = tree::map_all([mean, parameters], next);
            let whole = |m: &Array| match is_trained(m) && self.debias {
                true => unbiased(m, self.decay, &count),
                false => m.clone(),
            };
            (tree::map(&mean, whole), State { count: count.clone(), moments: vec![mean] })
        })
    }
}
