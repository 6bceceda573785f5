//! Which frequency is where in a spectrum, and spectra with the frequency zero in the middle.

use gradus_core::array::IntoAxes;
use gradus_core::primitives::Op;
use gradus_core::primitives::shaping::{Concatenate, Slice};
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, Element, ErrorKind, Operand, Result};

use crate::line::{on_line, refuse};

/// The frequencies of [`fft`](super::fft()) of `n` samples, so far apart: zero, the positive ones, the negative ones.
///
/// ```
/// use gradus::prelude::*;
///
/// assert_eq!(fft::fftfreq::<f64>(4, 0.5).to_vec::<f64>().unwrap(), [0.0, 0.5, -1.0, -0.5]);
/// ```
#[track_caller]
pub fn fftfreq<T: Element>(n: impl Into<Dim>, spacing: impl Operand) -> Array {
    let n = n.into();
    let spacing = spacing.into_operand().into_array();
    on_line(|| {
        let k = numbered(T::DTYPE, &n, n.clone())?;
        let negative = k.ge((&n + 1usize).floor_div(&Dim::from(2usize)));
        let whole = negative.select(&k - n.clone(), &k);
        per_length(whole, T::DTYPE, &n, spacing)
    })
}

/// The frequencies of [`rfft`](super::rfft()) of `n` samples, so far apart.
#[track_caller]
pub fn rfftfreq<T: Element>(n: impl Into<Dim>, spacing: impl Operand) -> Array {
    let n = n.into();
    let spacing = spacing.into_operand().into_array();
    on_line(|| {
        let half = n.floor_div(&Dim::from(2usize)) + 1usize;
        per_length(numbered(T::DTYPE, &n, half)?, T::DTYPE, &n, spacing)
    })
}

/// The numbers 0, 1, .. of frequencies, for a dtype that can hold them.
fn numbered(dtype: DType, n: &Dim, many: Dim) -> Result<Array> {
    if !dtype.is_float() {
        return refuse(
            ErrorKind::DType,
            format!("frequencies are floats, not {dtype}"),
            "write `fftfreq::<f64>(n, d)`",
        );
    }
    if n.constant().is_some_and(|n| n < 1) {
        return refuse(ErrorKind::Size, format!("the frequencies of {n} samples"), "a signal has at least one");
    }
    Array::iota(DType::I64, [many], 0).ok()
}

fn per_length(k: Array, dtype: DType, n: &Dim, spacing: Array) -> Result<Array> {
    (k.cast(dtype) / (Array::from_dim(n, dtype) * spacing.cast(dtype))).ok()
}

/// A spectrum with the frequency zero in the middle of every axis.
///
/// ```
/// use gradus::prelude::*;
///
/// let x = fft::fftshift(&Array::from([0, 1, 2, -2, -1]));
/// assert_eq!(x.to_vec::<i32>().unwrap(), [-2, -1, 0, 1, 2]);
/// ```
#[track_caller]
pub fn fftshift(x: &Array) -> Array {
    fftshift_axes(x, ())
}

/// [`fftshift`] along some axes.
#[track_caller]
pub fn fftshift_axes(x: &Array, axes: impl IntoAxes) -> Array {
    on_line(|| turned(x, axes, |n| (n + 1usize).floor_div(&Dim::from(2usize))))
}

/// The inverse of [`fftshift`].
#[track_caller]
pub fn ifftshift(x: &Array) -> Array {
    ifftshift_axes(x, ())
}

/// The inverse of [`fftshift_axes`].
#[track_caller]
pub fn ifftshift_axes(x: &Array, axes: impl IntoAxes) -> Array {
    on_line(|| turned(x, axes, |n| n.floor_div(&Dim::from(2usize))))
}

/// Each axis from the place `from(n)` on, and then what was before it.
fn turned(x: &Array, axes: impl IntoAxes, from: fn(&Dim) -> Dim) -> Result<Array> {
    let mut x = x.clone();
    for axis in axes.into_axes(x.ty()?.rank())? {
        let n = x.dim(axis as isize);
        let cut = from(&n);
        let piece = |first: Dim, end: Dim| {
            let mut start = vec![Dim::from(0usize); x.rank()];
            let mut limit = x.shape().to_vec();
            (start[axis], limit[axis]) = (first, end); // invariant: the axis is below the rank
            bind(Op::new(Slice { start, limit, step: vec![1; x.rank()] }), std::slice::from_ref(&x))
        };
        x = bind(Op::new(Concatenate { axis }), &[piece(cut.clone(), n), piece(Dim::from(0usize), cut)]).ok()?;
    }
    Ok(x)
}
