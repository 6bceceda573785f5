//! The rules of first-order optimizers: how a gradient becomes a direction, one array at a time.

use gradus_core::Array;

use super::{Optimizer, Schedule};

/// One parameter in one step.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The parameter.
    pub parameter: &'a Array,
    /// Its gradient, clipped if that was asked for.
    pub gradient: &'a Array,
    /// What the rule remembers of it.
    pub moments: &'a [Array],
    /// The number of this step: 1 in the first one.
    pub count: &'a Array,
}

/// How a gradient becomes the direction in which a parameter moves, once it is multiplied by the rate and subtracted.
///
/// ```
/// use gradus::prelude::*;
///
/// /// The sign of the gradient, and nothing else.
/// #[derive(Clone)]
/// struct Sign;
///
/// impl optim::Rule for Sign {
///     fn moments(&self) -> usize {
///         0
///     }
///     fn direction(&self, at: &optim::At<'_>) -> (Array, Vec<Array>) {
///         (at.gradient.sign(), Vec::new())
///     }
/// }
///
/// let signs = optim::Optimizer::new(Sign, 0.5);
/// let x = Array::from([1.0_f64, -1.0]);
/// let (x, _) = signs.step(&x, &Array::from([3.0_f64, -7.0]), &signs.init(&x));
/// assert_eq!(x.to_vec::<f64>()?, [0.5, -0.5]);
/// # Ok::<(), gradus::Error>(())
/// ```
pub trait Rule: Clone + Send + Sync + 'static {
    /// How many arrays of its own type are remembered of each parameter.
    fn moments(&self) -> usize;

    /// What a moment is before the first step: zeros, mostly.
    fn begin(&self, _moment: usize, parameter: &Array) -> Array {
        parameter.zeros_like()
    }

    /// The direction, and the next moments.
    fn direction(&self, at: &At<'_>) -> (Array, Vec<Array>);
}

/// `decay · mean + (1 − decay) · x`.
pub(super) fn towards(mean: &Array, decay: f64, x: &Array) -> Array {
    mean * decay + x * (1.0 - decay)
}

/// Squared absolute values, in the dtype of the array.
fn squared(x: &Array) -> Array {
    if x.dtype().is_complex() { x * x.conj() } else { x.square() }
}

/// A mean that began with zero, as if it had not: divided by `1 − decayⁿ`. The divisor is one number, computed in `f64`.
pub(super) fn unbiased(mean: &Array, decay: f64, count: &Array) -> Array {
    let steps = count.cast_to::<f64>();
    mean / (1.0_f64 - Array::from(decay).pow(&steps)).cast(mean.dtype())
}

/// Gradient descent.
///
/// ```
/// use gradus::prelude::*;
///
/// let sgd = optim::sgd(0.1).momentum(0.9).nesterov();
/// # let x = Array::from(1.0_f64);
/// # assert_eq!(sgd.init(&x).moments().len(), 1);
/// ```
pub fn sgd(rate: impl Into<Schedule>) -> Optimizer<Sgd> {
    Optimizer::new(Sgd::default(), rate)
}

/// The rule of [`sgd`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sgd {
    momentum: Option<f64>,
    nesterov: bool,
}

impl Optimizer<Sgd> {
    /// Steps go on in the direction of those before: the direction is the gradient and this share of the last one.
    pub fn momentum(mut self, share: f64) -> Optimizer<Sgd> {
        self.rule.momentum = Some(share);
        self
    }

    /// The gradient counts as if it had been taken one step ahead. Nothing without [`momentum`](Optimizer::momentum).
    pub fn nesterov(mut self) -> Optimizer<Sgd> {
        self.rule.nesterov = true;
        self
    }
}

impl Rule for Sgd {
    fn moments(&self) -> usize {
        usize::from(self.momentum.is_some())
    }

    fn direction(&self, at: &At<'_>) -> (Array, Vec<Array>) {
        let Some((share, last)) = self.momentum.zip(at.moments.first()) else {
            return (at.gradient.clone(), Vec::new());
        };
        let next = at.gradient + last * share;
        let direction = if self.nesterov { at.gradient + &next * share } else { next.clone() };
        (direction, vec![next])
    }
}

/// Adam: means of gradients and of their squares.
pub fn adam(rate: impl Into<Schedule>) -> Optimizer<Adam> {
    Optimizer::new(Adam { betas: (0.9, 0.999), epsilon: 1e-8, nesterov: false }, rate)
}

/// [Adam](adam()) with a [weight decay](Optimizer::weight_decay) of 1e-4.
pub fn adamw(rate: impl Into<Schedule>) -> Optimizer<Adam> {
    adam(rate).weight_decay(1e-4)
}

/// The rule of [`adam`] and [`adamw`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    betas: (f64, f64),
    epsilon: f64,
    nesterov: bool,
}

impl Optimizer<Adam> {
    /// How slowly the means of gradients and of their squares change: .9 and .999.
    pub fn betas(mut self, first: f64, second: f64) -> Optimizer<Adam> {
        self.rule.betas = (first, second);
        self
    }

    /// What is added to the root of the mean of squares: 1e-8.
    pub fn epsilon(mut self, epsilon: f64) -> Optimizer<Adam> {
        self.rule.epsilon = epsilon;
        self
    }

    /// The mean of gradients counts as if it had been taken one step ahead.
    #[doc(alias = "nadam")]
    pub fn nesterov(mut self) -> Optimizer<Adam> {
        self.rule.nesterov = true;
        self
    }
}

impl Rule for Adam {
    fn moments(&self) -> usize {
        2
    }

    fn direction(&self, at: &At<'_>) -> (Array, Vec<Array>) {
        let (g, [first, second]) = (at.gradient, [&at.moments[0], &at.moments[1]]);
        let first = towards(first, self.betas.0, g);
        let second = towards(second, self.betas.1, &squared(g));
        let ahead = match self.nesterov {
            true => {
                let next = unbiased(&first, self.betas.0, &(at.count + 1_i64));
                towards(&next, self.betas.0, &unbiased(g, self.betas.0, at.count))
            }
            false => unbiased(&first, self.betas.0, at.count),
        };
        let size = unbiased(&second, self.betas.1, at.count).sqrt() + self.epsilon;
        (ahead / size, vec![first, second])
    }
}

/// Lion: the sign of a mean of gradients, with a [weight decay](Optimizer::weight_decay) of 1e-3.
pub fn lion(rate: impl Into<Schedule>) -> Optimizer<Lion> {
    Optimizer::new(Lion { betas: (0.9, 0.99) }, rate).weight_decay(1e-3)
}

/// The rule of [`lion`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lion {
    betas: (f64, f64),
}

impl Optimizer<Lion> {
    /// The share of the mean in the direction, and how slowly the mean changes: .9 and .99.
    pub fn betas(mut self, first: f64, second: f64) -> Optimizer<Lion> {
        self.rule.betas = (first, second);
        self
    }
}

impl Rule for Lion {
    fn moments(&self) -> usize {
        1
    }

    fn direction(&self, at: &At<'_>) -> (Array, Vec<Array>) {
        let (g, mean) = (at.gradient, &at.moments[0]);
        (towards(mean, self.betas.0, g).sign(), vec![towards(mean, self.betas.1, g)])
    }
}

/// RMSProp: gradients divided by the root of a mean of their squares.
pub fn rmsprop(rate: impl Into<Schedule>) -> Optimizer<RmsProp> {
    let rule = RmsProp { decay: 0.9, epsilon: 1e-8, centered: false, momentum: None, nesterov: false };
    Optimizer::new(rule, rate)
}

/// The rule of [`rmsprop`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp {
    decay: f64,
    epsilon: f64,
    centered: bool,
    momentum: Option<f64>,
    nesterov: bool,
}

impl Optimizer<RmsProp> {
    /// How slowly the mean of squares changes: .9.
    pub fn decay(mut self, decay: f64) -> Optimizer<RmsProp> {
        self.rule.decay = decay;
        self
    }

    /// What is added to the mean of squares: 1e-8.
    pub fn epsilon(mut self, epsilon: f64) -> Optimizer<RmsProp> {
        self.rule.epsilon = epsilon;
        self
    }

    /// Gradients are divided by their standard deviation: the mean of squares less the square of the mean.
    pub fn centered(mut self) -> Optimizer<RmsProp> {
        self.rule.centered = true;
        self
    }

    /// Steps go on in the direction of those before.
    pub fn momentum(mut self, share: f64) -> Optimizer<RmsProp> {
        self.rule.momentum = Some(share);
        self
    }

    /// The direction counts as if it had been taken one step ahead. Nothing without [`momentum`](Optimizer::momentum).
    pub fn nesterov(mut self) -> Optimizer<RmsProp> {
        self.rule.nesterov = true;
        self
    }
}

impl Rule for RmsProp {
    fn moments(&self) -> usize {
        1 + usize::from(self.centered) + usize::from(self.momentum.is_some())
    }

    fn direction(&self, at: &At<'_>) -> (Array, Vec<Array>) {
        let (g, second) = (at.gradient, towards(&at.moments[0], self.decay, &squared(at.gradient)));
        let mut next = vec![second.clone()];
        let spread = match self.centered {
            true => {
                let mean = towards(&at.moments[1], self.decay, g);
                let spread = second - squared(&mean);
                next.push(mean);
                spread
            }
            false => second,
        };
        let scaled = g / (spread + self.epsilon).sqrt();
        let momentum = Sgd { momentum: self.momentum, nesterov: self.nesterov };
        let (direction, last) =
            momentum.direction(&At { gradient: &scaled, moments: &at.moments[next.len()..], ..*at });
        next.extend(last);
        (direction, next)
    }
}

/// Adagrad: gradients divided by the root of the sum of all their squares.
pub fn adagrad(rate: impl Into<Schedule>) -> Optimizer<Adagrad> {
    Optimizer::new(Adagrad { start: 0.1, epsilon: 1e-7 }, rate)
}

/// The rule of [`adagrad`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adagrad {
    start: f64,
    epsilon: f64,
}

impl Optimizer<Adagrad> {
    /// What the sum of squares begins with: .1.
    #[doc(alias = "initial_accumulator_value")]
    pub fn start(mut self, start: f64) -> Optimizer<Adagrad> {
        self.rule.start = start;
        self
    }

    /// What is added to the sum of squares: 1e-7.
    pub fn epsilon(mut self, epsilon: f64) -> Optimizer<Adagrad> {
        self.rule.epsilon = epsilon;
        self
    }
}

impl Rule for Adagrad {
    fn moments(&self) -> usize {
        1
    }

    fn begin(&self, _: usize, parameter: &Array) -> Array {
        parameter.full_like(self.start)
    }

    fn direction(&self, at: &At<'_>) -> (Array, Vec<Array>) {
        let sum = &at.moments[0] + squared(at.gradient);
        (at.gradient / (&sum + self.epsilon).sqrt(), vec![sum])
    }
}
