//! Cosine transforms of the four types, made of Fourier transforms of twice the length.

use gradus_core::error::counted;
use std::f64::consts::{PI, SQRT_2};

use gradus_core::array::IntoAxes;
use gradus_core::primitives::Op;
use gradus_core::primitives::fft::{Fft, FftKind};
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, ErrorKind, Result, Scalar};

use super::{FftOptions, Norm, fitted, numbers};
use crate::line::{on_line, refuse};

/// The cosine transform of the last axis, of type 2: `yₖ = 2 Σⱼ xⱼ cos(πk(2j+1)/2n)`. As `scipy.fft.dct` has it; [`FftOptions`] has the other types, axes, lengths
/// and factors.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let x = Array::from([1.0_f64, 2.0, 4.0]);
/// let same = fft::idct(&fft::dct(&x)).to_vec::<f64>()?;
/// assert!((same[2] - 4.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn dct(x: &Array) -> Array {
    FftOptions::new().dct(x)
}

/// The inverse of [`dct()`].
#[track_caller]
pub fn idct(x: &Array) -> Array {
    FftOptions::new().idct(x)
}

impl FftOptions {
    /// See [`dct()`].
    #[track_caller]
    pub fn dct(&self, x: &Array) -> Array {
        on_line(|| self.cosine(x, false))
    }

    /// See [`idct()`].
    #[track_caller]
    pub fn idct(&self, x: &Array) -> Array {
        on_line(|| self.cosine(x, true))
    }

    fn cosine(&self, x: &Array, inverse: bool) -> Result<Array> {
        let kind = match (self.dct_type.unwrap_or(2), inverse) {
            (k @ (1 | 4), _) => k,
            (k @ (2 | 3), false) => k,
            (2, true) => 3,
            (3, true) => 2,
            (k, _) => {
                return refuse(
                    ErrorKind::Value,
                    format!("a cosine transform of type {k}"),
                    "there are the types 1, 2, 3 and 4",
                );
            }
        };
        let x = numbers(FftKind::RealForward, x)?;
        let axes = self.axes.clone().unwrap_or_else(|| vec![-1]).into_axes(x.ty()?.rank())?;
        let [axis] = axes[..] else {
            return refuse(
                ErrorKind::Axis,
                format!("a cosine transform along {}", counted(axes.len(), "axis")),
                "transform one axis after the other",
            );
        };
        let x = match self.lengths.as_deref() {
            None => x,
            Some([n]) => fitted(&x, &axes, std::slice::from_ref(n))?,
            Some(all) => {
                return refuse(ErrorKind::Shape, format!("{} lengths for one axis", all.len()), "give one length");
            }
        };
        let row = Row { n: x.dim(axis as isize), dtype: x.dtype() };
        let least = if kind == 1 { 2 } else { 1 };
        if row.n.constant().is_some_and(|n| n < least) {
            return refuse(
                ErrorKind::Size,
                format!("a cosine transform of type {kind} of {} elements", row.n),
                format!("it takes at least {least}"),
            );
        }
        let mut x = x.move_axis(axis as isize, -1);
        let ortho = self.norm == Norm::Ortho;
        if ortho && matches!(kind, 1 | 3) {
            x *= row.at_ends(kind == 1, SQRT_2);
        }
        let mut y = row.plain(kind, &x)?;
        if ortho && matches!(kind, 1 | 2) {
            y /= row.at_ends(kind == 1, SQRT_2);
        }
        let whole = Array::from_dim(&row.whole(kind), row.dtype);
        y = match (self.norm, inverse) {
            (Norm::Ortho, _) => y / whole.sqrt(),
            (Norm::Backward, true) | (Norm::Forward, false) => y / whole,
            _ => y,
        };
        y.move_axis(-1, axis as isize).ok()
    }
}

/// The last axis of an array of reals.
struct Row {
    n: Dim,
    dtype: DType,
}

impl Row {
    /// The length of the periodic signal that a transform of a type stands for.
    fn whole(&self, kind: usize) -> Dim {
        if kind == 1 { (&self.n - 1usize) * 2usize } else { &self.n * 2usize }
    }

    fn number(&self, v: f64) -> Array {
        Array::scalar(Scalar::F64(v).cast(self.dtype))
    }

    /// `v` at the first place (and at the last, if it is asked for), 1 elsewhere.
    fn at_ends(&self, both: bool, v: f64) -> Array {
        let k = Array::iota(DType::I64, [self.n.clone()], 0);
        let first = k.eq(0_i64);
        let ends = if both { first | k.eq(&self.n - 1usize) } else { first };
        ends.select(self.number(v), self.number(1.0))
    }

    /// The angles `π(k·times + plus) / (n·parts)`.
    fn angles(&self, times: f64, plus: f64, parts: usize) -> Array {
        let k = Array::iota(DType::I64, [self.n.clone()], 0).cast(self.dtype);
        let n = Array::from_dim(&(&self.n * parts), self.dtype);
        (k * self.number(times) + self.number(plus)) * self.number(PI) / n
    }

    /// The first so many of the last axis, or zeros behind it.
    fn with(&self, x: &Array, n: Dim) -> Result<Array> {
        fitted(x, &[x.rank().saturating_sub(1)], &[n])
    }

    /// `n` times the inverse transform of half a spectrum, its first elements.
    fn of_half(&self, spectrum: &Array, whole: Dim) -> Result<Array> {
        let scale = Array::from_dim(&whole, self.dtype);
        let spectrum = self.with(spectrum, whole.floor_div(&Dim::from(2usize)) + 1usize)?;
        let y = bind(Op::new(Fft { kind: FftKind::RealInverse, lengths: vec![whole] }), &[spectrum]);
        self.with(&(y * scale), self.n.clone())
    }

    /// The transforms without factors, each the real part of a Fourier transform of the whole signal.
    fn plain(&self, kind: usize, x: &Array) -> Result<Array> {
        let whole = self.whole(kind);
        let turned = |x: &Array, angles: &Array| Array::complex(&(x * angles.cos()), &(x * angles.sin()));
        let real_of =
            |y: &Array, angles: &Array| (y.real() * angles.cos() + y.imag() * angles.sin()) * self.number(2.0);
        match kind {
            1 => self.of_half(&Array::complex(x, &x.zeros_like()), whole),
            2 => {
                let long = self.with(x, whole.clone())?;
                let y = bind(Op::new(Fft { kind: FftKind::RealForward, lengths: vec![whole] }), &[long]);
                real_of(&self.with(&y, self.n.clone())?, &self.angles(1.0, 0.0, 2)).ok()
            }
            3 => self.of_half(&turned(x, &self.angles(1.0, 0.0, 2)), whole),
            _ => {
                let long = self.with(&turned(x, &-self.angles(1.0, 0.0, 2)), whole.clone())?;
                let y = bind(Op::new(Fft { kind: FftKind::Forward, lengths: vec![whole] }), &[long]);
                real_of(&self.with(&y, self.n.clone())?, &self.angles(2.0, 1.0, 4)).ok()
            }
        }
    }
}
