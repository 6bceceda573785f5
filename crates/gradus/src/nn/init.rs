//! Random weights to begin with, of a size that keeps signals as large as they are from layer to layer.
//!
//! Weights are `[.., inputs, outputs]`: axes before the last two are windows of a convolution. Numbers are those that `jax.nn.initializers` gives for the same key.

use crate::line::in_function;
use gradus_core::{Array, Element, Error, ErrorKind, IntoShape, Result, Shape};

use crate::random::{self, Key};

/// Which connections of a weight count.
#[derive(Clone, Copy)]
enum Fan {
    In,
    Average,
}

/// Inputs, or the mean of inputs and outputs, each times the window.
fn fan(shape: &Shape, which: Fan) -> Result<f64> {
    let wrong = || {
        Error::new(ErrorKind::Shape, format!("weights of shape {shape}"))
            .help("weights are [.., inputs, outputs] with known sizes: at least two axes")
    };
    let dims = shape.known().filter(|d| d.len() >= 2).ok_or_else(wrong)?;
    let (window, ends) = dims.split_at(dims.len() - 2);
    let window: usize = window.iter().product();
    let (inputs, outputs) = ((ends[0] * window) as f64, (ends[1] * window) as f64);
    Ok(match which {
        Fan::In => inputs,
        Fan::Average => (inputs + outputs) / 2.0,
    })
}

#[track_caller]
fn uniform<T: Element>(name: &str, key: Key, shape: impl IntoShape, scale: f64, which: Fan) -> Array {
    let shape = shape.into_shape();
    in_function(name, || {
        let variance = scale / fan(&shape, which)?.max(1.0);
        Ok(random::uniform_between::<T>(key, &shape, -1.0_f64, 1.0_f64) * (3.0 * variance).sqrt())
    })
}

#[track_caller]
fn normal<T: Element>(name: &str, key: Key, shape: impl IntoShape, scale: f64, which: Fan) -> Array {
    let shape = shape.into_shape();
    in_function(name, || {
        let variance = scale / fan(&shape, which)?.max(1.0);
        truncated::<T>(key, &shape, variance.sqrt())
    })
}

/// The standard deviation of the standard normal distribution between -2 and 2.
const TRUNCATED: f64 = 0.879_625_661_034_239_8;

fn truncated<T: Element>(key: Key, shape: &Shape, deviation: f64) -> Result<Array> {
    (random::truncated_normal::<T>(key, shape, -2.0_f64, 2.0_f64) * (deviation / TRUNCATED)).ok()
}

/// Uniform weights with a variance of 2 / (inputs + outputs): for tanh and what is like it.
///
/// ```
/// use gradus::prelude::*;
///
/// let w = nn::init::glorot_uniform::<f32>(Key::new(0), [300, 100]);
/// assert!(w.abs().max().item::<f32>()? <= (6.0_f32 / 400.0).sqrt());
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "xavier_uniform")]
pub fn glorot_uniform<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    uniform::<T>("glorot_uniform", key, shape, 1.0, Fan::Average)
}

/// Normal weights with a variance of 2 / (inputs + outputs), none beyond two standard deviations.
#[track_caller]
#[doc(alias = "xavier_normal")]
pub fn glorot_normal<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    normal::<T>("glorot_normal", key, shape, 1.0, Fan::Average)
}

/// Uniform weights with a variance of 2 / inputs: for relu and what is like it.
#[track_caller]
#[doc(alias = "kaiming_uniform")]
pub fn he_uniform<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    uniform::<T>("he_uniform", key, shape, 2.0, Fan::In)
}

/// Normal weights with a variance of 2 / inputs, none beyond two standard deviations.
#[track_caller]
#[doc(alias = "kaiming_normal")]
pub fn he_normal<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    normal::<T>("he_normal", key, shape, 2.0, Fan::In)
}

/// Uniform weights with a variance of 1 / inputs.
#[track_caller]
pub fn lecun_uniform<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    uniform::<T>("lecun_uniform", key, shape, 1.0, Fan::In)
}

/// Normal weights with a variance of 1 / inputs, none beyond two standard deviations.
#[track_caller]
pub fn lecun_normal<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    normal::<T>("lecun_normal", key, shape, 1.0, Fan::In)
}

/// Weights of a normal distribution of this standard deviation, of which what lies beyond two of them is cut off. Any shape.
#[track_caller]
pub fn truncated_normal<T: Element>(key: Key, shape: impl IntoShape, deviation: f64) -> Array {
    let shape = shape.into_shape();
    in_function("truncated_normal", || truncated::<T>(key, &shape, deviation * TRUNCATED))
}
