//! Activation functions. Each is written so that it neither overflows nor loses digits, and so that its derivatives are right to any order
//! where it is smooth; at a kink the derivative is that of JAX.
//!
//! `relu`, `tanh`, `softmax` and `log_softmax` are methods of [`Array`].

use gradus_core::{Array, IntoAxes};

/// log(1 + e^x), a smooth form of [`Array::relu`].
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let curvature = grad(grad(|x: &Array| gradus::nn::softplus(x)));
/// assert_eq!(curvature(&Array::from(0.0_f64)).item::<f64>()?, 0.25);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn softplus(x: &Array) -> Array {
    // Each branch is smooth and right beyond zero, where they meet, so derivatives are right there too.
    let above = x.gt(0i32);
    x.relu() + above.select(-x, x).exp().log1p()
}

/// 1 / (1 + e^-x): another name for [`Array::logistic`], the one that networks use.
#[doc(alias = "expit")]
#[track_caller]
pub fn sigmoid(x: &Array) -> Array {
    x.logistic()
}

/// The logarithm of [`sigmoid`], without loss where that is near 0 or 1.
#[track_caller]
pub fn log_sigmoid(x: &Array) -> Array {
    -softplus(&-x)
}

/// x · sigmoid(x).
#[doc(alias = "swish")]
#[track_caller]
pub fn silu(x: &Array) -> Array {
    x * x.logistic()
}

/// x · tanh(softplus(x)).
#[track_caller]
pub fn mish(x: &Array) -> Array {
    x * softplus(x).tanh()
}

/// x · Φ(x), where Φ is the distribution function of the normal distribution, by the usual formula with `tanh`. [`gelu_exact`] has Φ itself.
#[track_caller]
pub fn gelu(x: &Array) -> Array {
    let inner = (x + x.powi(3) * 0.044715_f64) * (2.0 / std::f64::consts::PI).sqrt();
    x * ((inner.tanh() + 1i32) * 0.5_f64)
}

/// x · Φ(x), where Φ is the distribution function of the normal distribution.
#[track_caller]
pub fn gelu_exact(x: &Array) -> Array {
    x * (x * -std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5_f64
}

/// x where positive, alpha · (e^x - 1) elsewhere.
#[track_caller]
pub fn elu(x: &Array, alpha: f64) -> Array {
    let above = x.gt(0i32);
    // The exponential of what is not taken must not overflow.
    let safe = above.select(x.zeros_like(), x);
    above.select(x, safe.expm1() * alpha)
}

/// max(x, 0) + alpha · (e^(min(x, 0) / alpha) - 1): as [`elu`], with a slope without jump for every alpha.
#[track_caller]
pub fn celu(x: &Array, alpha: f64) -> Array {
    x.maximum(0i32) + (x.minimum(0i32) / alpha).expm1() * alpha
}

/// [`elu`] with the scale and the alpha that keep mean 0 and variance 1.
#[track_caller]
pub fn selu(x: &Array) -> Array {
    elu(x, 1.673_263_242_354_377_2) * 1.050_700_987_355_480_5_f64
}

/// x where not negative, slope · x elsewhere. The usual slope is 0.01.
#[track_caller]
pub fn leaky_relu(x: &Array, slope: f64) -> Array {
    x.ge(0i32).select(x, x * slope)
}

/// [`Array::relu`] up to 6. At both kinks its derivative is 0.
#[track_caller]
pub fn relu6(x: &Array) -> Array {
    (x.gt(0i32) & x.lt(6i32)).select(x, x.stop_gradient().maximum(0i32).minimum(6i32))
}

/// A [`sigmoid`] of straight lines.
#[track_caller]
pub fn hard_sigmoid(x: &Array) -> Array {
    relu6(&(x + 3i32)) / 6i32
}

/// x · hard_sigmoid(x).
#[doc(alias = "hard_swish")]
#[track_caller]
pub fn hard_silu(x: &Array) -> Array {
    // Not as a product with what is constant outside: infinity times zero is NaN.
    let (below, above) = (x.le(-3i32), x.ge(3i32));
    let between = (&below | &above).select(x.zeros_like(), x);
    let bent = &between * ((&between + 3i32) / 6i32);
    below.select(x.zeros_like(), above.select(x, bent))
}

/// x held between -1 and 1.
#[track_caller]
pub fn hard_tanh(x: &Array) -> Array {
    let one = x.ones_like();
    x.gt(1i32).select(&one, x.lt(-1i32).select(-&one, x))
}

/// x / (1 + |x|).
#[track_caller]
pub fn soft_sign(x: &Array) -> Array {
    // Far from zero by what is left of 1, so that its slope is a quotient and no difference.
    let far = x.abs().gt(1i32);
    let near = far.select(x.zeros_like(), x);
    let rest = 1i32 - 1i32 / (x.abs() + 1i32);
    far.select(rest.copysign(x), &near / (near.abs() + 1i32))
}

/// 0 below -1, x above 1, and a parabola between.
#[track_caller]
pub fn sparse_plus(x: &Array) -> Array {
    let (below, above) = (x.le(-1i32), x.ge(1i32));
    let between = ((&below | &above).select(x.zeros_like(), x) + 1i32).square() * 0.25_f64;
    below.select(x.zeros_like(), above.select(x, between))
}

/// The slope of [`sparse_plus`]: 0 below -1, 1 above 1, and a line between.
#[track_caller]
pub fn sparse_sigmoid(x: &Array) -> Array {
    (x + 1i32).maximum(0i32).minimum(2i32) * 0.5_f64
}

/// (x + √(x² + b)) / 2, a smooth form of [`Array::relu`] without exponentials. The usual b is 4.
#[track_caller]
pub fn squareplus(x: &Array, b: f64) -> Array {
    (x + (x.square() + b).sqrt()) * 0.5_f64
}

/// Gated: the first half of an axis times the [`sigmoid`] of the second.
#[track_caller]
pub fn glu(x: &Array, axis: isize) -> Array {
    match x.split(2, axis).as_slice() {
        [a, b] => a * b.logistic(),
        others => others.first().cloned().unwrap_or_else(|| x.clone()),
    }
}

/// With mean 0 and variance 1 over some axes; `epsilon` is added to the variance.
#[doc(alias = "normalize")]
#[track_caller]
pub fn standardize(x: &Array, axes: impl IntoAxes + Clone, epsilon: f64) -> Array {
    (x - x.mean_keep(axes.clone())) * (x.var_keep(axes, 0) + epsilon).rsqrt()
}

/// The logarithm of the mean of exponentials over some axes.
#[track_caller]
pub fn logmeanexp(x: &Array, axes: impl IntoAxes + Clone) -> Array {
    let count = x.ones_like().sum_axes(axes.clone());
    x.logsumexp_axes(axes) - count.log()
}

/// log(1 - e^-x) for positive x, without loss at either end.
#[track_caller]
pub fn log1mexp(x: &Array) -> Array {
    let near = x.lt(std::f64::consts::LN_2);
    // Each form sees only what it is good for.
    let small = near.select(x, x.ones_like());
    let large = near.select(x.ones_like(), x);
    near.select((-(-small).expm1()).log(), (-(-large).exp()).log1p())
}
