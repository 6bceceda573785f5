//! Losses. All but [`mse`] give one number for each example or element: `.mean()` makes one of them.

use gradus_core::{Array, DType, Dim, Error, ErrorKind, Result};

use super::{want_float, want_whole};
use crate::formula::{nan, number, option};
use crate::line::in_function;

/// Refuses two arrays of different shapes: broadcast by mistake, a loss is of every pair.
fn alike(what: (&str, &str), a: &Array, b: &Array) -> Result<()> {
    want_float(what.0, a)?;
    want_float(what.1, b)?;
    let fits = |(x, y): (&Dim, &Dim)| x.equals(y) != gradus_core::Decision::No;
    if a.rank() == b.rank() && a.shape().iter().zip(b.shape().iter()).all(fits) {
        return Ok(());
    }
    let message = format!("{} {} for {} {}", what.1, b.ty()?, what.0, a.ty()?);
    Err(Error::new(ErrorKind::Shape, message).help("a loss takes both in one shape: reshape one of them"))
}

const PREDICTED: (&str, &str) = ("a prediction", "a target");
const LABELED: (&str, &str) = ("logits", "labels");

/// The mean of squared differences, one number.
#[track_caller]
#[doc(alias = "squared_error")]
#[doc(alias = "l2_loss")]
pub fn mse(predictions: &Array, targets: &Array) -> Array {
    in_function("mse", || {
        alike(PREDICTED, predictions, targets)?;
        Ok((predictions - targets).square().mean())
    })
}

/// Half the square of a difference up to `delta`, and a straight line beyond: large errors count by their size only.
///
/// ```
/// use gradus::prelude::*;
///
/// let loss = nn::huber(&Array::from([0.5_f64, -3.0]), &Array::from([0.0_f64, 0.0]), 1.0);
/// assert_eq!(loss.to_vec::<f64>()?, [0.125, 2.5]);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
pub fn huber(predictions: &Array, targets: &Array, delta: f64) -> Array {
    in_function("huber", || {
        alike(PREDICTED, predictions, targets)?;
        let size = (predictions - targets).abs();
        let (delta, near) = (option(&size, delta), size.minimum(option(&size, delta)));
        Ok(near.square() * 0.5_f64 + (size - near) * delta)
    })
}

/// The logarithm of the hyperbolic cosine of a difference: like half its square where it is small, like its size where it is large, and smooth.
#[track_caller]
pub fn log_cosh(predictions: &Array, targets: &Array) -> Array {
    in_function("log_cosh", || {
        alike(PREDICTED, predictions, targets)?;
        // log(cosh x) = |x| + log(1 + exp(-2|x|)) - log 2, written without the kink of |x|.
        let x = predictions - targets;
        Ok(softplus(&(&x * -2.0_f64)) + &x - std::f64::consts::LN_2)
    })
}

/// `log(1 + exp(x))`, without overflow and with the derivative of the logistic function.
fn softplus(x: &Array) -> Array {
    x.maximum(0.0_f64) + (-x.abs()).exp().log1p()
}

/// The cross entropy of labels, which are probabilities, and of the softmax of logits, along the last axis: one number for each example.
///
/// ```
/// use gradus::prelude::*;
///
/// let loss = nn::softmax_cross_entropy(&Array::from([[0.0_f64, 0.0]]), &Array::from([[0.25_f64, 0.75]]));
/// assert!((loss.index(0).item::<f64>()? - 2.0_f64.ln()).abs() < 1e-15);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
pub fn softmax_cross_entropy(logits: &Array, labels: &Array) -> Array {
    in_function("softmax_cross_entropy", || {
        alike(LABELED, logits, labels)?;
        Ok(-(labels * logits.log_softmax(-1)).sum_axes(-1))
    })
}

/// The cross entropy of classes, which are numbers from zero on, and of the softmax of logits along the last axis: one number for each example. Labels have the axes of the logits but the last.
///
/// Negative labels count from the last class back, as indices do. A label that is no class gives NaN, as in Optax.
///
/// ```
/// use gradus::prelude::*;
///
/// let logits = Array::from([[2.0_f32, 0.0, 0.0], [0.0, 0.0, 9.0]]);
/// let loss = nn::softmax_cross_entropy_with_integer_labels(&logits, &Array::from([0_i32, 2]));
/// assert_eq!(loss.shape(), [2]);
/// assert!(loss.index(1).item::<f32>()? < 1e-3);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
pub fn softmax_cross_entropy_with_integer_labels(logits: &Array, labels: &Array) -> Array {
    in_function("softmax_cross_entropy_with_integer_labels", || {
        want_float("logits", logits)?;
        want_whole("the label of an example", labels)?;
        let fits = |(x, y): (&Dim, &Dim)| x.equals(y) != gradus_core::Decision::No;
        if labels.rank() + 1 != logits.rank() || !labels.shape().iter().zip(logits.shape().iter()).all(fits) {
            let message = format!("labels {} for logits {}", labels.ty()?, logits.ty()?);
            return Err(Error::new(ErrorKind::Shape, message)
                .help("there is one label for each example: the axes of the logits without the last"));
        }
        let chosen = logits.take_along_axis(&labels.expand_dims(-1), -1).squeeze(-1);
        // As `jnp.take_along_axis` fills: no class has no number. Unsigned ones that are too large for i64 are negative there, and no class either.
        let classes = Array::from_dim(&logits.dim(-1), DType::I64);
        let (number, signed) = (labels.cast(DType::I64), labels.dtype().is_signed_int());
        let first = if signed { -&classes } else { classes.zeros_like() };
        let chosen = (number.ge(first) & number.lt(&classes)).select(&chosen, nan(&chosen));
        Ok(logits.logsumexp_axes(-1) - chosen)
    })
}

/// The cross entropy of labels, which are probabilities of yes, and of the logistic function of logits: one number for each element.
#[track_caller]
#[doc(alias = "binary_cross_entropy_with_logits")]
pub fn sigmoid_binary_cross_entropy(logits: &Array, labels: &Array) -> Array {
    in_function("sigmoid_binary_cross_entropy", || {
        alike(LABELED, logits, labels)?;
        // -y log σ(x) - (1 - y) log(1 - σ(x)) = log(1 + exp(x)) - x y
        Ok(softplus(logits) - logits * labels)
    })
}

/// `max(0, 1 − label · prediction)` for labels −1 and 1: one number for each element.
#[track_caller]
pub fn hinge(predictions: &Array, labels: &Array) -> Array {
    in_function("hinge", || {
        alike(PREDICTED, predictions, labels)?;
        Ok((1.0_f64 - predictions * labels).relu())
    })
}

/// The Kullback-Leibler divergence of predicted probabilities, given by their logarithms, from true ones, along the last axis. A true probability of zero adds nothing.
#[track_caller]
pub fn kl_divergence(log_predictions: &Array, targets: &Array) -> Array {
    in_function("kl_divergence", || {
        alike(PREDICTED, log_predictions, targets)?;
        let log = targets.gt(0.0_f64).guarded(targets, 1.0_f64, |t| t.log(), 0.0_f64);
        Ok((targets * (log - log_predictions)).sum_axes(-1))
    })
}

/// The cosine of the angle between vectors along the last axis. `epsilon` is the least length that is divided by.
#[track_caller]
pub fn cosine_similarity(a: &Array, b: &Array, epsilon: f64) -> Array {
    in_function("cosine_similarity", || {
        alike(PREDICTED, a, b)?;
        // Vectors shorter than epsilon have no direction; their length has no slope at zero.
        let unit = |x: &Array| {
            let square = x.square().sum_keep(-1);
            let long = square.gt(option(x, epsilon * epsilon));
            let least = match x.dtype() {
                DType::F64 => f64::MIN_POSITIVE,
                DType::F16 => 2.0_f64.powi(-24),
                _ => f64::from(f32::MIN_POSITIVE),
            };
            let length = long.guarded(&square, 1.0_f64, |s| s.sqrt(), number(x, epsilon.max(least)));
            x / length
        };
        Ok((unit(a) * unit(b)).sum_axes(-1))
    })
}

/// Labels that are less sure: `(1 − share)` of them, and the share spread evenly over the classes of the last axis.
#[track_caller]
#[doc(alias = "smooth_labels")]
pub fn label_smoothing(labels: &Array, share: f64) -> Array {
    in_function("label_smoothing", || {
        want_float("a label", labels)?;
        let classes = Array::from_dim(&labels.dim(-1), labels.dtype());
        Ok(labels * (1.0 - share) + classes.recip() * share)
    })
}
