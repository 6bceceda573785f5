//! The short-time Fourier transform: spectra of short frames of a signal, and back by adding the frames up.

use std::f64::consts::TAU;

use gradus_core::primitives::Op;
use gradus_core::primitives::windows::{Windows, added_up};
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, ErrorKind, Result, Scalar};

use crate::fft::FftOptions;
use crate::line::{on_line, refuse};

/// Frames of a signal and their spectra, as `scipy.signal.stft` and `istft` have them: half a frame of zeros is put on either side and the end is filled up with zeros, so
/// that every element is in several frames; spectra are over the sum of the window.
///
/// ```
/// use gradus::prelude::*;
/// use gradus::signal::Stft;
///
/// # fn main() -> Result<()> {
/// let x = Array::arange(0.0_f64, 64.0, 1.0).sin();
/// let frames = Stft::new(16).hop(4);
/// let spectra = frames.stft(&x);
/// assert_eq!(spectra.shape(), [9, 17]); // frequencies, frames
/// let same = frames.istft(&spectra);
/// assert!((same - x).abs().max().item::<f64>()? < 1e-12);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stft {
    size: usize,
    hop: Option<usize>,
    window: Option<Array>,
}

impl Stft {
    /// Frames of so many elements, each half of it behind the one before, under the window of Hann.
    pub fn new(size: usize) -> Stft {
        Stft { size, hop: None, window: None }
    }

    /// How far a frame is behind the one before.
    #[must_use]
    pub fn hop(self, hop: usize) -> Stft {
        Stft { hop: Some(hop), ..self }
    }

    /// What frames are multiplied by: as many numbers as a frame has.
    #[must_use]
    pub fn window(self, window: &Array) -> Stft {
        Stft { window: Some(window.clone()), ..self }
    }

    /// The spectra of the frames of the last axis: frequencies, then frames.
    #[track_caller]
    pub fn stft(&self, x: &Array) -> Array {
        on_line(|| {
            let ty = x.ty()?;
            if ty.rank() == 0 || !ty.dtype().is_float() {
                return refuse(
                    ErrorKind::DType,
                    format!("frames of {ty}"),
                    "frames are of real numbers along the last axis: cast, or take the parts of complex ones",
                );
            }
            let frames = self.frames(float(ty.dtype()))?;
            let x = x.cast(frames.dtype);
            let half = Dim::from(self.size / 2);
            // Filled up to whole hops.
            let n = x.dim(-1) + &half * 2usize;
            let left = (Dim::from(self.size) - n).modulo(&Dim::from(frames.hop));
            let last = x.rank() - 1;
            let counts: Vec<(Dim, Dim)> = (0..=last)
                .map(|a| if a == last { (half.clone(), &half + &left) } else { (Dim::from(0usize), Dim::from(0usize)) })
                .collect();
            let x = x.pad(&counts, Scalar::zero(frames.dtype));
            let cut = Windows {
                axes: vec![last],
                sizes: vec![Dim::from(self.size)],
                strides: vec![frames.hop],
                dilations: vec![1],
            };
            let framed = bind(Op::new(cut), &[x]) * (&frames.window / frames.window.sum());
            FftOptions::new().rfft(&framed).swap_axes(-1, -2).ok()
        })
    }

    /// The signal of spectra that [`Stft::stft`] gave: frames are added up under the window, and what windows add up to is taken out again. It is as long as
    /// whole hops are. Frames that do not cover the signal, because the hop is too long for the window, are an error; so far as the window is known while the
    /// function is traced.
    #[track_caller]
    pub fn istft(&self, spectra: &Array) -> Array {
        on_line(|| {
            let ty = spectra.ty()?;
            if ty.rank() < 2 || !ty.dtype().is_complex() {
                return refuse(
                    ErrorKind::DType,
                    format!("a signal of {ty}"),
                    "spectra are complex, with an axis of frequencies and one of frames",
                );
            }
            let frames = self.frames(ty.dtype().real_part())?;
            let bins = self.size / 2 + 1;
            if ty.shape()[ty.rank() - 2].constant().is_some_and(|n| n != bins as i64) {
                return refuse(
                    ErrorKind::Shape,
                    format!("frames of {} elements have {bins} frequencies, and {ty} has another number", self.size),
                    "the axis before the last is that of frequencies",
                );
            }
            self.covers(&frames)?;
            let framed = FftOptions::new().length(self.size).irfft(&spectra.swap_axes(-1, -2)).ok()?;
            let framed = framed * (&frames.window * frames.window.sum());
            let (axis, many) = (framed.rank() - 2, framed.dim(-2));
            let n = (&many - 1usize) * frames.hop + self.size;
            let signal = added_up(&framed, axis, &n, frames.hop, 1)?;
            let squares = frames.window.square().broadcast_to([many, Dim::from(self.size)]);
            let weight = added_up(&squares, 0, &n, frames.hop, 1)?;
            // Where no window reaches there is nothing to divide by: before the first whole hop and behind the last, and where it was not known what the window is.
            let least = frames.window.square().max() * LEAST;
            let weight = weight.gt(least).select(&weight, weight.ones_like());
            let half = -(self.size as i64 / 2);
            let counts: Vec<(i64, i64)> = (0..=axis).map(|a| if a == axis { (half, half) } else { (0, 0) }).collect();
            (signal / weight).pad(&counts, Scalar::zero(frames.dtype)).ok()
        })
    }

    /// Refuses frames between which, or at whose ends, elements are lost, where the window is known.
    fn covers(&self, frames: &Frames) -> Result<()> {
        let window = match &self.window {
            None => hann(self.size, DType::F64),
            Some(w) if w.concrete().is_some() => w.cast(DType::F64),
            Some(_) => return Ok(()),
        };
        let squares: Vec<f64> = window.to_vec::<f64>()?.iter().map(|w| w * w).collect();
        let most = squares.iter().fold(0.0_f64, |a, b| a.max(*b));
        // All that frames put on the elements that are so far behind the beginning of one.
        let weight = |k: usize| squares.iter().skip(k).step_by(frames.hop).sum::<f64>();
        let lost = (0..frames.hop).filter(|k| weight(*k) <= most * LEAST).count();
        if lost == 0 {
            return Ok(());
        }
        refuse(
            ErrorKind::Value,
            format!(
                "frames of {} elements with a hop of {} do not cover the signal: in each hop the window leaves nothing of {lost} of {} elements",
                self.size, frames.hop, frames.hop
            ),
            "make the hop shorter than a frame, by half of it or more under a window that ends in zeros",
        )
    }

    fn frames(&self, dtype: DType) -> Result<Frames> {
        let hop = self.hop.unwrap_or(self.size / 2);
        if self.size == 0 || hop == 0 {
            return refuse(
                ErrorKind::Value,
                format!("frames of {} elements, {hop} apart", self.size),
                "both are at least 1",
            );
        }
        let window = match &self.window {
            Some(w) => w.clone().ok()?.cast(dtype),
            None => hann(self.size, dtype),
        };
        let ty = window.ty()?;
        if ty.rank() != 1 || ty.shape()[0].constant().is_some_and(|n| n != self.size as i64) {
            return refuse(
                ErrorKind::Shape,
                format!("a window of {ty} for frames of {} elements", self.size),
                "a window is one axis with a number for each element of a frame",
            );
        }
        Ok(Frames { hop, window, dtype })
    }
}

/// The share of the largest square of a window that is not taken for nothing.
const LEAST: f64 = 1e-10;

/// How frames are cut.
struct Frames {
    hop: usize,
    window: Array,
    dtype: DType,
}

fn float(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// The window of Hann of one period: `(1 - cos(2πk/n)) / 2`.
fn hann(n: usize, dtype: DType) -> Array {
    let k = Array::iota(DType::F64, [n], 0);
    (((k * (TAU / n as f64)).cos() * -0.5_f64) + 0.5_f64).cast(dtype)
}
