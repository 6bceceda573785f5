//! Fourier transforms, as `numpy.fft` has them: of any length, over any axes, with derivatives and batches as every operation has.
//!
//! ```
//! use gradus::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let x = (Array::arange(0.0_f64, 8.0, 1.0) * (std::f64::consts::TAU / 8.0)).cos();
//! let spectrum = fft::rfft(&x).abs();
//! assert!((spectrum.index(1).item::<f64>()? - 4.0).abs() < 1e-12);
//! // Options come first and the function last.
//! let same = fft::FftOptions::new().norm(fft::Norm::Ortho).rfft(&x);
//! assert_eq!(same.shape(), [5]);
//! # Ok(())
//! # }
//! ```
//!
//! Real numbers become complex where they must: `f32` to `c64`; `f64`, integers and bools to `c128`.

mod cosine;
mod frequencies;

pub use frequencies::{fftfreq, fftshift, fftshift_axes, ifftshift, ifftshift_axes, rfftfreq};

use gradus_core::array::IntoAxes;
use gradus_core::error::counted;
use gradus_core::primitives::Op;
use gradus_core::primitives::fft::{Fft, FftKind};
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, ErrorKind, IntoShape, Result};

use crate::line::{on_line, refuse};

/// Where the factor `1/n` stands that a transform and its inverse share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Norm {
    /// At the inverse transform. The default.
    #[default]
    Backward,
    /// `1/√n` at both, so that lengths of vectors stay.
    Ortho,
    /// At the forward transform.
    Forward,
}

impl Norm {
    /// What is forward here is backward there.
    fn swapped(self) -> Norm {
        match self {
            Norm::Backward => Norm::Forward,
            Norm::Ortho => Norm::Ortho,
            Norm::Forward => Norm::Backward,
        }
    }
}

/// What a transform does other than usual: over which axes, of which lengths, with which factor.
///
/// ```
/// use gradus::prelude::*;
/// # use gradus::fft::{FftOptions, Norm};
///
/// let x = Array::ones::<f64>([6, 3]);
/// let y = FftOptions::new().axis(0).length(8).norm(Norm::Ortho).fft(&x);
/// assert_eq!(y.shape(), [8, 3]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct FftOptions {
    axes: Option<Vec<isize>>,
    lengths: Option<Vec<Dim>>,
    norm: Norm,
    dct_type: Option<usize>,
}

impl FftOptions {
    /// The usual: the last axis, the last two or all of them, by the name of the transform; lengths as they are.
    pub fn new() -> FftOptions {
        FftOptions::default()
    }

    /// Over this axis; negative ones count from the end.
    pub fn axis(self, axis: isize) -> FftOptions {
        self.axes([axis])
    }

    /// Over these axes; of a transform to or from real numbers the last is the one that is halved.
    pub fn axes(self, axes: impl IntoIterator<Item = isize>) -> FftOptions {
        FftOptions { axes: Some(axes.into_iter().collect()), ..self }
    }

    /// Of this length: the signal is cropped, or zeros are put behind it.
    pub fn length(self, length: impl Into<Dim>) -> FftOptions {
        FftOptions { lengths: Some(vec![length.into()]), ..self }
    }

    /// Of these lengths, one for each axis.
    pub fn lengths(self, lengths: impl IntoShape) -> FftOptions {
        FftOptions { lengths: Some(lengths.into_shape().to_vec()), ..self }
    }

    /// With the factor there.
    pub fn norm(self, norm: Norm) -> FftOptions {
        FftOptions { norm, ..self }
    }

    /// Which of the four cosine transforms, 1 to 4; 2 is the usual one.
    pub fn dct_type(self, kind: usize) -> FftOptions {
        FftOptions { dct_type: Some(kind), ..self }
    }

    /// The axes from the front, and the length of the signal along each.
    fn resolved(&self, kind: FftKind, over: Over, x: &Array) -> Result<(Vec<usize>, Vec<Dim>)> {
        let rank = x.ty()?.rank();
        let written = match (&self.axes, over) {
            (Some(axes), _) => axes.clone(),
            (None, Over::One) => vec![-1],
            (None, Over::Two) => vec![-2, -1],
            (None, Over::All) => {
                // Lengths without axes are those of the last ones.
                let n = self.lengths.as_ref().map_or(rank, Vec::len);
                (1..=n as isize).rev().map(|a| -a).collect()
            }
        };
        let axes = written.into_axes(rank)?;
        if over == Over::One && axes.len() != 1 {
            return refuse(
                ErrorKind::Axis,
                format!("a transform along one axis, and {} are named", axes.len()),
                "the forms that end in `n` go over several axes, as in `fftn`",
            );
        }
        if axes.is_empty() {
            return refuse(ErrorKind::Axis, "a transform over no axis", "name at least one");
        }
        let lengths = match &self.lengths {
            Some(lengths) if lengths.len() != axes.len() => {
                return refuse(
                    ErrorKind::Shape,
                    format!("{} for {}", counted(lengths.len(), "length"), counted(axes.len(), "axis")),
                    "give a length for each axis of the transform",
                );
            }
            Some(lengths) => lengths.clone(),
            None => {
                let mut lengths: Vec<Dim> = axes.iter().map(|a| x.dim(*a as isize)).collect();
                if let (FftKind::RealInverse, Some(last)) = (kind, lengths.last_mut()) {
                    *last = (&*last - 1usize) * 2usize;
                }
                lengths
            }
        };
        Ok((axes, lengths))
    }

    fn transform(&self, kind: FftKind, over: Over, x: &Array) -> Result<Array> {
        let x = numbers(kind, x)?;
        let (axes, lengths) = self.resolved(kind, over, &x)?;
        let mut taken = lengths.clone();
        if let (FftKind::RealInverse, Some(last)) = (kind, taken.last_mut()) {
            *last = last.floor_div(&Dim::from(2usize)) + 1usize;
        }
        let x = fitted(&x, &axes, &taken)?;
        let order: Vec<usize> = (0..x.rank()).filter(|a| !axes.contains(a)).chain(axes.iter().copied()).collect();
        let back: Vec<usize> = (0..x.rank()).map(|a| order.iter().position(|o| *o == a).unwrap_or(a)).collect();
        let n = lengths.iter().fold(Dim::from(1usize), |n, d| n * d);
        let y = bind(Op::new(Fft { kind, lengths }), &[x.transpose(order)]).transpose(back).ok()?;
        let count = Array::from_dim(&n, y.dtype().real_part());
        let forward = matches!(kind, FftKind::Forward | FftKind::RealForward);
        match (self.norm, forward) {
            (Norm::Backward, _) => Ok(y),
            (Norm::Ortho, true) => (y / count.sqrt()).ok(),
            (Norm::Ortho, false) => (y * count.sqrt()).ok(),
            (Norm::Forward, true) => (y / count).ok(),
            (Norm::Forward, false) => (y * count).ok(),
        }
    }
}

/// Which axes a transform goes over unless told otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    One,
    Two,
    All,
}

/// The operand in a dtype that the transform takes.
fn numbers(kind: FftKind, x: &Array) -> Result<Array> {
    let ty = x.ty()?;
    let dtype = ty.dtype();
    let real = match dtype {
        d if d.is_complex() && kind == FftKind::RealForward => {
            return refuse(
                ErrorKind::DType,
                format!("a transform of real numbers, not of {ty}"),
                "take `.real()`, or the complex transform `fft`",
            );
        }
        DType::Key => {
            return refuse(ErrorKind::DType, "a transform of random keys", "a key is no number: draw some from it");
        }
        d if d.is_complex() => return Ok(x.clone()),
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        _ => DType::F64,
    };
    let x = x.cast(real);
    if kind == FftKind::RealForward { x.ok() } else { Array::complex(&x, &x.zeros_like()).ok() }
}

/// The operand with so many elements along each axis: the first of them, and zeros behind.
fn fitted(x: &Array, axes: &[usize], lengths: &[Dim]) -> Result<Array> {
    let none = || Dim::from(0usize);
    let mut counts: Vec<(Dim, Dim)> = (0..x.rank()).map(|_| (none(), none())).collect();
    for (&axis, n) in axes.iter().zip(lengths) {
        if n.constant().is_some_and(|n| n < 1) {
            return refuse(
                ErrorKind::Size,
                format!("a transform of length {n} of {}", x.ty()?),
                "a signal has at least one element",
            );
        }
        counts[axis].1 = n - x.dim(axis as isize); // invariant: axes are below the rank
    }
    x.pad(&counts, gradus_core::Scalar::zero(x.dtype())).ok()
}

macro_rules! transforms {
    ($($(#[$doc:meta])* $name:ident = $kind:ident over $over:ident;)*) => {
        $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(x: &Array) -> Array {
                on_line(|| FftOptions::new().transform(FftKind::$kind, Over::$over, x))
            }
        )*

        impl FftOptions {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name(&self, x: &Array) -> Array {
                    on_line(|| self.transform(FftKind::$kind, Over::$over, x))
                }
            )*
        }
    };
}

transforms! {
    /// The Fourier transform of an axis, the last unless told otherwise: `yₖ = Σⱼ xⱼ exp(-2πi jk/n)`.
    fft = Forward over One;
    /// Its inverse: `xⱼ = 1/n Σₖ yₖ exp(2πi jk/n)`.
    ifft = Inverse over One;
    /// The transform of real numbers: the first `n/2 + 1` frequencies, whose conjugates are the others.
    rfft = RealForward over One;
    /// Its inverse, from the first `n/2 + 1` frequencies. The length is even unless [`FftOptions::length`] says otherwise.
    irfft = RealInverse over One;
    /// The transform of two axes, the last unless told otherwise.
    fft2 = Forward over Two;
    /// The inverse transform of two axes.
    ifft2 = Inverse over Two;
    /// The transform of two axes of real numbers.
    rfft2 = RealForward over Two;
    /// The inverse transform of two axes to real numbers.
    irfft2 = RealInverse over Two;
    /// The transform of all axes, or of those that are named.
    fftn = Forward over All;
    /// The inverse transform of all axes, or of those that are named.
    ifftn = Inverse over All;
    /// The transform of all axes of real numbers, or of those that are named.
    rfftn = RealForward over All;
    /// The inverse transform of all axes to real numbers, or of those that are named.
    irfftn = RealInverse over All;
}

/// The transform of a signal that is its own conjugate turned around, given by its first half: real numbers.
#[track_caller]
pub fn hfft(x: &Array) -> Array {
    on_line(|| FftOptions::new().hermitian(x))
}

/// The inverse of [`hfft`]: from real numbers the first half.
#[track_caller]
pub fn ihfft(x: &Array) -> Array {
    on_line(|| FftOptions::new().inverse_hermitian(x))
}

impl FftOptions {
    /// See [`hfft`].
    #[track_caller]
    pub fn hfft(&self, x: &Array) -> Array {
        on_line(|| self.hermitian(x))
    }

    /// See [`ihfft`].
    #[track_caller]
    pub fn ihfft(&self, x: &Array) -> Array {
        on_line(|| self.inverse_hermitian(x))
    }

    fn turned(&self) -> FftOptions {
        FftOptions { norm: self.norm.swapped(), ..self.clone() }
    }

    fn hermitian(&self, x: &Array) -> Result<Array> {
        let x = numbers(FftKind::RealInverse, x)?.conj();
        self.turned().transform(FftKind::RealInverse, Over::One, &x)
    }

    fn inverse_hermitian(&self, x: &Array) -> Result<Array> {
        self.turned().transform(FftKind::RealForward, Over::One, x)?.conj().ok()
    }
}

pub use cosine::{dct, idct};
