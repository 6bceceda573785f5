//! Convolution and correlation of arrays, and the short-time Fourier transform.

mod convolve;
#[cfg(feature = "fft")]
mod stft;

#[cfg(feature = "fft")]
pub use convolve::fftconvolve;
pub use convolve::{Overlap, convolve, correlate};
#[cfg(feature = "fft")]
pub use stft::Stft;
