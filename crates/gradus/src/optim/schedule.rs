//! Rates that change from step to step.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

use gradus_core::{Array, Location, trace};

/// A rate as a function of the number of steps so far. A number is one that stays the same: `optim::adam(1e-3)`.
///
/// ```
/// use gradus::prelude::*;
///
/// let rate = optim::Schedule::cosine(0.1, 900).warmup(100);
/// assert_eq!(rate.at(&Array::from(0_i64)).item::<f64>()?, 0.0);
/// assert_eq!(rate.at(&Array::from(100_i64)).item::<f64>()?, 0.1);
/// let adam = optim::adam(rate);
/// # let _ = adam;
/// # Ok::<(), gradus::Error>(())
/// ```
#[derive(Clone)]
pub struct Schedule(Kind);

#[derive(Clone)]
enum Kind {
    Constant(f64),
    Function(Arc<dyn Fn(&Array) -> Array + Send + Sync>),
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Schedule {
        Schedule(Kind::Constant(rate))
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Constant(rate) => write!(f, "Schedule({rate})"),
            Kind::Function(_) => f.write_str("Schedule(..)"),
        }
    }
}

impl Schedule {
    /// A schedule of your own: `f` takes the number of steps so far, an `f64` without axes, and gives the rate.
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// let rate = optim::Schedule::new(|n: &Array| 0.1_f64 / (n + 1.0_f64).sqrt());
    /// assert_eq!(rate.at(&Array::from(3_i64)).item::<f64>()?, 0.05);
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn new(f: impl Fn(&Array) -> Array + Send + Sync + 'static) -> Schedule {
        Schedule(Kind::Function(Arc::new(f)))
    }

    /// The rate after so many steps, an array without axes.
    #[track_caller]
    pub fn at(&self, count: &Array) -> Array {
        let place = trace::caller_or_known(Location::caller());
        match &self.0 {
            Kind::Constant(rate) => Array::from(*rate),
            Kind::Function(f) => trace::at_place(place, || f(&count.cast_to::<f64>())),
        }
    }

    /// In a straight line from one rate to another, which it keeps after so many steps.
    pub fn linear(from: f64, to: f64, steps: u64) -> Schedule {
        Schedule::polynomial(from, to, 1.0, steps)
    }

    /// From one rate to another by a power of what is left of so many steps.
    pub fn polynomial(from: f64, to: f64, power: f64, steps: u64) -> Schedule {
        Schedule::new(move |n| {
            let left = 1.0_f64 - share(n, steps);
            let left = if power == 1.0 { left } else { left.pow(power) };
            left * (from - to) + to
        })
    }

    /// Half a wave of the cosine from a rate down to zero, in so many steps.
    pub fn cosine(rate: f64, steps: u64) -> Schedule {
        Schedule::cosine_to(rate, 0.0, steps)
    }

    /// Half a wave of the cosine from one rate to another, in so many steps.
    pub fn cosine_to(from: f64, to: f64, steps: u64) -> Schedule {
        Schedule::new(move |n| ((share(n, steps) * PI).cos() + 1.0_f64) * (0.5 * (from - to)) + to)
    }

    /// Multiplied by a factor in every so many steps, a little in each.
    pub fn exponential(rate: f64, factor: f64, steps: u64) -> Schedule {
        Schedule::new(move |n| Array::from(factor).pow(n / at_least_one(steps)) * rate)
    }

    /// Multiplied by a factor at once, after every so many steps.
    pub fn staircase(rate: f64, factor: f64, steps: u64) -> Schedule {
        Schedule::new(move |n| Array::from(factor).pow((n / at_least_one(steps)).floor()) * rate)
    }

    /// Multiplied by a factor after each of some numbers of steps.
    #[doc(alias = "piecewise_constant")]
    pub fn piecewise(rate: f64, factors: impl IntoIterator<Item = (u64, f64)>) -> Schedule {
        let factors: Vec<(u64, f64)> = factors.into_iter().collect();
        Schedule::new(move |n| {
            let all = factors.iter().map(|(from, factor)| n.ge(*from as f64).select(*factor, 1.0_f64));
            all.fold(Array::from(rate), |rate, factor| rate * factor)
        })
    }

    /// In a straight line from zero to the first rate of this, in so many steps; then this.
    pub fn warmup(self, steps: u64) -> Schedule {
        let first = self.clone();
        let line = move |n: &Array| first.of(&n.zeros_like()) * share(n, steps);
        Schedule::new(line).then(steps, self)
    }

    /// This for so many steps; then another, from its own first rate on.
    #[doc(alias = "join_schedules")]
    pub fn then(self, steps: u64, next: Schedule) -> Schedule {
        let steps = steps as f64;
        Schedule::new(move |n| n.lt(steps).select(self.of(n), next.of(&(n - steps).maximum(0.0_f64))))
    }

    /// The rate after a number of steps that is an `f64` already.
    fn of(&self, n: &Array) -> Array {
        match &self.0 {
            Kind::Constant(rate) => Array::from(*rate),
            Kind::Function(f) => f(n),
        }
    }
}

/// The share of so many steps that is done, at most all.
fn share(n: &Array, steps: u64) -> Array {
    n.minimum(steps as f64) / at_least_one(steps)
}

fn at_least_one(steps: u64) -> f64 {
    steps.max(1) as f64
}
