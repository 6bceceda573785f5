//! Layers as functions of their input and their parameters.

use gradus_core::{Array, DType, Decision, Dim, Error, ErrorKind, IntoAxes, Result, Scalar, Shape, Type};

use super::{want_float, want_whole};
use crate::line::in_function;
use crate::random::{self, Key};
use crate::stage::poison;

/// `x · weights + bias`, for the last axis of `x`: weights are `[inputs, outputs]`.
///
/// ```
/// use gradus::prelude::*;
///
/// let (x, w) = (Array::ones::<f32>([5, 3]), Array::ones::<f32>([3, 2]));
/// assert_eq!(nn::linear(&x, &w, Some(&Array::from([1.0_f32, 2.0]))).index(0).to_vec::<f32>()?, [4.0, 5.0]);
/// assert_eq!(nn::linear(&x, &w, None).shape(), [5, 2]);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "Dense")]
pub fn linear(x: &Array, weights: &Array, bias: Option<&Array>) -> Array {
    in_function("linear", || {
        if weights.ty()?.rank() != 2 {
            let message = format!("weights are a matrix [inputs, outputs], not {}", weights.ty()?);
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let y = x.matmul(weights).ok()?;
        bias.map_or(Ok(()), |bias| want_last_of(&y, "a bias", bias))?;
        Ok(bias.map_or_else(|| y.clone(), |bias| &y + bias))
    })
}

/// Rows of a table by their numbers: `[.., features]` for numbers `[..]`.
///
/// Negative numbers count from the end, those outside of the table are taken for the nearest row.
///
/// ```
/// use gradus::prelude::*;
///
/// let table = Array::from([[0.0_f32, 0.0], [1.0, 10.0], [2.0, 20.0]]);
/// assert_eq!(nn::embedding(&table, &Array::from([2_i32, 1])).to_vec::<f32>()?, [2.0, 20.0, 1.0, 10.0]);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "Embed")]
pub fn embedding(table: &Array, numbers: &Array) -> Array {
    in_function("embedding", || {
        want_whole("the number of a row", numbers)?;
        table.take(numbers, 0).ok()
    })
}

/// The last axes of `x`, those that `scale` has, with a mean of 0 and a variance of 1; then times `scale` plus `offset`. Half floats are computed in `f32`.
///
/// ```
/// use gradus::prelude::*;
///
/// let x = Array::from([[1.0_f64, 3.0], [-5.0, 5.0]]);
/// let y = nn::layer_norm(&x, &Array::from([1.0_f64, 2.0]), &Array::from([0.0_f64, 1.0]), 0.0);
/// assert_eq!(y.to_vec::<f64>()?, [-1.0, 3.0, -1.0, 3.0]);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "LayerNorm")]
pub fn layer_norm(x: &Array, scale: &Array, offset: &Array, epsilon: f64) -> Array {
    in_function("layer_norm", || {
        let (wide, axes) = (wide(x)?, last_axes(x, scale)?);
        want_last_of(x, "an offset", offset)?;
        let away = &wide - wide.mean_keep(axes.clone());
        let spread = away.square().mean_keep(axes) + epsilon;
        Ok((away * (1.0_f64 / spread.sqrt())).cast(x.dtype()) * scale + offset)
    })
}

/// The last axes of `x`, those that `scale` has, divided by the root of the mean of their squares; then times `scale`. Half floats are computed in `f32`.
#[track_caller]
#[doc(alias = "RMSNorm")]
pub fn rms_norm(x: &Array, scale: &Array, epsilon: f64) -> Array {
    in_function("rms_norm", || {
        let (wide, axes) = (wide(x)?, last_axes(x, scale)?);
        let size = (wide.square().mean_keep(axes) + epsilon).sqrt();
        Ok((wide / size).cast(x.dtype()) * scale)
    })
}

/// Half floats as `f32`: their squares are soon too large for them.
fn wide(x: &Array) -> Result<Array> {
    want_float("what is normalized", x)?;
    match x.dtype() {
        DType::F16 | DType::BF16 => x.cast(DType::F32).ok(),
        _ => Ok(x.clone()),
    }
}

/// Refuses what does not broadcast to `x`: it has its last axes, or size 1 there.
fn want_last_of(x: &Array, what: &str, own: &Array) -> Result<()> {
    let (of, ty) = (x.ty()?, own.ty()?);
    let fits = |(n, own): (&Dim, &Dim)| own.constant() == Some(1) || n.equals(own) != Decision::No;
    let last = of.shape().iter().skip(of.rank().saturating_sub(ty.rank()));
    if ty.rank() > of.rank() || !last.zip(ty.shape().iter()).all(fits) {
        let message = format!("{what} {ty} for {of}");
        return Err(Error::new(ErrorKind::Shape, message).help("it has the sizes of the last axes of what it is for"));
    }
    Ok(())
}

/// As many of the last axes of `x` as `scale` has.
fn last_axes(x: &Array, scale: &Array) -> Result<Vec<usize>> {
    let (rank, own) = (x.ty()?.rank(), scale.ty()?.rank());
    if own == 0 || own > rank {
        let message = format!("a scale {} for {}", scale.ty()?, x.ty()?);
        return Err(
            Error::new(ErrorKind::Shape, message).help("a scale has the last axes of what it scales, at least one")
        );
    }
    want_last_of(x, "a scale", scale)?;
    Ok((rank - own..rank).collect())
}

/// Batch normalization: how the mean and the variance over some axes are taken, and how slowly running ones follow.
///
/// A scale and an offset of the features are parameters, and stand outside: `y * &scale + &offset` where features are the last axis.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let norm = nn::BatchNorm::over([0]).momentum(0.5);
/// let x = Array::from([[1.0_f64, 10.0], [3.0, 30.0]]);
/// let stats = norm.init(&x);
/// let (y, stats) = norm.train(&x, &stats); // while training: numbers of this batch, and what they do to the running ones
/// assert!(tree::all_close(&y, &Array::from([[-1.0_f64, -1.0], [1.0, 1.0]]), 1e-4)?);
/// assert_eq!(stats.mean.to_vec::<f64>()?, [1.0, 10.0]);
/// let y = norm.apply(&x, &stats); // afterwards: the running ones
/// # assert_eq!(y.shape(), [2, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BatchNorm {
    axes: Vec<isize>,
    momentum: f64,
    epsilon: f64,
}

/// Running means and variances, of the shape of a batch without the axes that they are taken over, and of its dtype; of half floats they are `f32`.
#[derive(Clone, Debug, crate::tree::Tree)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BatchStats {
    /// Means.
    pub mean: Array,
    /// Variances.
    pub variance: Array,
}

impl BatchNorm {
    /// Means and variances over these axes: `[0]` of `[batch, features]`, `[0, 1, 2]` of `[batch, height, width, channels]`.
    pub fn over(axes: impl IntoIterator<Item = isize>) -> BatchNorm {
        BatchNorm { axes: axes.into_iter().collect(), momentum: 0.99, epsilon: 1e-5 }
    }

    /// The share of the old numbers in the running ones after a batch: .99.
    pub fn momentum(self, share: f64) -> BatchNorm {
        BatchNorm { momentum: share, ..self }
    }

    /// What is added to variances: 1e-5.
    pub fn epsilon(self, epsilon: f64) -> BatchNorm {
        BatchNorm { epsilon, ..self }
    }

    /// Means of 0 and variances of 1, for batches of the type of `x`: of half floats they are `f32`. Only the type counts, so a [spec](Array::spec) will do.
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// let stats = nn::BatchNorm::over([0]).init(&Array::spec("f32[B, 16]")); // 16 features, batches of any size
    /// assert_eq!(stats.mean.shape(), [16]);
    /// ```
    #[track_caller]
    pub fn init(&self, x: &Array) -> BatchStats {
        let zero = || {
            want_float("what is normalized", x)?;
            let ty = self.running(x)?;
            Array::full_scalar(ty.shape().clone(), Scalar::zero(ty.dtype())).ok()
        };
        let mean = in_function("batch_norm", zero);
        BatchStats { variance: mean.ones_like(), mean }
    }

    /// The type of the running numbers of batches like this.
    fn running(&self, x: &Array) -> Result<Type> {
        let (axes, ty) = (self.axes(x)?, x.ty()?);
        let dtype = if ty.dtype().size() == 2 { DType::F32 } else { ty.dtype() };
        let kept = ty.shape().iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, dim)| dim.clone());
        Type::checked(dtype, kept.collect::<Shape>())
    }

    /// Refuses running numbers that are not of such batches: others would broadcast.
    fn check(&self, x: &Array, stats: &BatchStats) -> Result<()> {
        want_float("what is normalized", x)?;
        let want = self.running(x)?;
        for have in [stats.mean.ty()?, stats.variance.ty()?] {
            let fits = |(a, b): (&Dim, &Dim)| a.equals(b) != Decision::No;
            let same_shape = have.rank() == want.rank() && have.shape().iter().zip(want.shape().iter()).all(fits);
            if !same_shape || have.dtype() != want.dtype() {
                let message =
                    format!("running numbers {have} for a batch with {want}: {} over axes {:?}", x.ty()?, self.axes);
                return Err(Error::new(ErrorKind::Shape, message).help("make them with `init` of such a batch"));
            }
        }
        Ok(())
    }

    fn axes(&self, x: &Array) -> Result<Vec<usize>> {
        self.axes.clone().into_axes(x.ty()?.rank())
    }

    /// Normalized by means and variances of this batch, and the running ones after it.
    #[track_caller]
    pub fn train(&self, x: &Array, stats: &BatchStats) -> (Array, BatchStats) {
        let mut next = None;
        let y = in_function("batch_norm", || {
            self.check(x, stats)?;
            let (wide, axes) = (wide(x)?, self.axes(x)?);
            let (mean, variance) = (wide.mean_axes(axes.clone()), wide.var_axes(axes, 0));
            let blend = |old: &Array, new: &Array| {
                (old * self.momentum + new.stop_gradient() * (1.0 - self.momentum)).cast(old.dtype())
            };
            next = Some(BatchStats { mean: blend(&stats.mean, &mean), variance: blend(&stats.variance, &variance) });
            self.normalized(x, &BatchStats { mean, variance })
        });
        let next = match (next, y.error()) {
            (Some(next), None) => next,
            (_, Some(e)) => poison(stats, e),
            (None, None) => stats.clone(),
        };
        (y, next)
    }

    /// Normalized by running means and variances.
    #[track_caller]
    pub fn apply(&self, x: &Array, stats: &BatchStats) -> Array {
        in_function("batch_norm", || {
            self.check(x, stats)?;
            self.normalized(x, stats)
        })
    }

    fn normalized(&self, x: &Array, stats: &BatchStats) -> Result<Array> {
        let axes = self.axes(x)?;
        let spread = |a: &Array| a.expand_dims(axes.clone()).ok();
        let (mean, variance) = (spread(&stats.mean)?, spread(&stats.variance)?);
        Ok(((wide(x)? - mean) * (1.0_f64 / (variance + self.epsilon).sqrt())).cast(x.dtype()))
    }
}

/// Each number zero with probability `rate`, and otherwise divided by what is left of one, so that sums stay what they were on average.
///
/// An element stays where [`random::bernoulli`] of `1 − rate` says so: of `f64` it draws numbers of 64 bits, of all other floats of 32, which are those of `jax.random.bernoulli` with and without `jax_enable_x64`.
///
/// ```
/// use gradus::prelude::*;
///
/// let y = nn::dropout(Key::new(0), &Array::ones::<f32>([1000]), 0.25).to_vec::<f32>()?;
/// let left = y.iter().filter(|y| **y == 1.0 / 0.75).count();
/// assert!((700..800).contains(&left) && y.iter().filter(|y| **y == 0.0).count() == 1000 - left);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
pub fn dropout(key: Key, x: &Array, rate: f64) -> Array {
    in_function("dropout", || {
        want_float("what numbers are dropped from", x)?;
        if !(0.0..=1.0).contains(&rate) {
            let message = format!("a rate of {rate}");
            return Err(Error::new(ErrorKind::Value, message).help("a rate is a probability: from 0 to 1"));
        }
        let left = 1.0 - rate;
        let kept = match x.dtype() {
            DType::F64 => random::bernoulli(key, left, x.shape()),
            _ => random::bernoulli(key, left as f32, x.shape()),
        };
        // With nothing left there is nothing to divide by.
        let scaled = if rate < 1.0 { x / (1.0 - rate) } else { x.clone() };
        Ok(kept.select(scaled, x.zeros_like()))
    })
}
