//! Sums of products of one array with another that is moved over it, along all axes.

use gradus_core::primitives::Op;
use gradus_core::primitives::convolve::Convolve;
use gradus_core::trace::bind;
use gradus_core::{Array, Decision, Dim, Error, ErrorKind, Result};

use crate::line::{on_line, refuse};

/// How far two arrays must overlap for their product to be a part of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// In one element: the result has `n + k - 1` along an axis.
    Full,
    /// The middle of [`Overlap::Full`], as long as the first array.
    Same,
    /// Wholly: the result has `n - k + 1` along an axis.
    Valid,
}

/// The convolution of two arrays of the same rank, along all axes: `yᵢ = Σⱼ aⱼ bᵢ₋ⱼ`, as `scipy.signal.convolve` has it. Of long signals
/// [`fftconvolve`] is faster.
///
/// ```
/// use gradus::prelude::*;
/// use gradus::signal::{self, Overlap};
///
/// let y = signal::convolve(&Array::from([1, 2, 3]), &Array::from([0, 1, 10]), Overlap::Full);
/// assert_eq!(y.to_vec::<i32>().unwrap(), [0, 1, 12, 23, 30]);
/// ```
#[track_caller]
pub fn convolve(a: &Array, b: &Array, overlap: Overlap) -> Array {
    on_line(|| {
        let (a, b) = pair(a, b)?;
        // It is the same both ways round.
        let (a, b) = if overlap == Overlap::Valid && !holds(&a, &b)? { (b, a) } else { (a, b) };
        direct(&a, &turned(&b), overlap)
    })
}

/// The correlation of two arrays of the same rank, along all axes: `yᵢ = Σⱼ aᵢ₊ⱼ conj(bⱼ)`, as `scipy.signal.correlate` has it.
///
/// ```
/// use gradus::prelude::*;
/// use gradus::signal::{self, Overlap};
///
/// let y = signal::correlate(&Array::from([1, 2, 3]), &Array::from([0, 1]), Overlap::Valid);
/// assert_eq!(y.to_vec::<i32>().unwrap(), [2, 3]);
/// ```
#[track_caller]
pub fn correlate(a: &Array, b: &Array, overlap: Overlap) -> Array {
    on_line(|| {
        let (a, b) = pair(a, b)?;
        let b = if b.dtype().is_complex() { b.conj() } else { b };
        if overlap == Overlap::Valid && !holds(&a, &b)? {
            // As a convolution with the other one turned around, which is the same both ways round.
            return direct(&turned(&b), &turned(&a), overlap);
        }
        direct(&a, &b, overlap)
    })
}

/// [`convolve`] by way of Fourier transforms: for signals that are both long. Integers are computed as `f64`.
#[cfg(feature = "fft")]
#[track_caller]
pub fn fftconvolve(a: &Array, b: &Array, overlap: Overlap) -> Array {
    on_line(|| {
        let (a, b) = pair(a, b)?;
        let (a, b) = if overlap == Overlap::Valid && !holds(&a, &b)? { (b, a) } else { (a, b) };
        let full: Vec<Dim> = a.shape().iter().zip(b.shape().iter()).map(|(n, k)| n + k - 1usize).collect();
        let options = crate::fft::FftOptions::new().lengths(full.iter().map(fast).collect::<Vec<_>>());
        let y = if a.dtype().is_complex() {
            options.ifftn(&(options.fftn(&a) * options.fftn(&b)))
        } else {
            options.irfftn(&(options.rfftn(&a) * options.rfftn(&b)))
        };
        let (mut start, mut dims) = (Vec::new(), Vec::new());
        for ((n, k), full) in a.shape().iter().zip(b.shape().iter()).zip(full) {
            let (first, length) = match overlap {
                Overlap::Full => (Dim::from(0usize), full),
                Overlap::Same => ((k - 1usize).floor_div(&Dim::from(2usize)), n.clone()),
                Overlap::Valid => (k - 1usize, n - k + 1usize),
            };
            start.push(first);
            dims.push(length);
        }
        let counts: Vec<(Dim, Dim)> = (0..y.rank())
            .map(|i| (-&start[i], &start[i] + &dims[i] - y.dim(i as isize))) // invariant: an entry for each axis
            .collect();
        y.pad(&counts, gradus_core::Scalar::zero(y.dtype())).ok()
    })
}

/// The next length that is a product of small primes; a symbolic one stays.
#[cfg(feature = "fft")]
fn fast(n: &Dim) -> Dim {
    let Some(n) = n.as_usize() else { return n.clone() };
    let smooth = |m: &usize| {
        let mut m = *m;
        for p in [2, 3, 5] {
            while m > 1 && m.is_multiple_of(p) {
                m /= p;
            }
        }
        m == 1
    };
    Dim::from((n.max(1)..).find(smooth).unwrap_or(n))
}

/// Two arrays of one dtype and rank, neither of them empty.
fn pair(a: &Array, b: &Array) -> Result<(Array, Array)> {
    let (ta, tb) = (a.ty()?, b.ty()?);
    if ta.rank() != tb.rank() || ta.rank() == 0 {
        return refuse(
            ErrorKind::Shape,
            format!("a convolution of {ta} and {tb}"),
            "both have the same number of axes, at least one: `vmap` goes over axes that only one has",
        );
    }
    if let Some(empty) = [ta, tb].into_iter().find(|t| t.shape().iter().any(|n| n.constant() == Some(0))) {
        return refuse(ErrorKind::Shape, format!("a convolution with {empty}"), "both have elements");
    }
    let dtype = ta.dtype().promote(tb.dtype()).ok_or_else(|| {
        Error::new(ErrorKind::DType, format!("{ta} and {tb} have no dtype that holds both without loss"))
            .help("cast one of them")
    })?;
    Ok((a.cast(dtype).ok()?, b.cast(dtype).ok()?))
}

/// Whether the first array is at least as long as the second along every axis; an error if it is along some only.
fn holds(a: &Array, b: &Array) -> Result<bool> {
    let larger =
        |a: &Array, b: &Array| a.shape().iter().zip(b.shape().iter()).all(|(n, k)| n.at_least(k) != Decision::No);
    match (larger(a, b), larger(b, a)) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => refuse(
            ErrorKind::Shape,
            format!("neither of {} and {} holds the other", a.ty()?, b.ty()?),
            "one must be at least as long along every axis, or the overlap need not be whole",
        ),
    }
}

fn turned(x: &Array) -> Array {
    x.flip(())
}

/// Products with a kernel that is not turned around.
fn direct(x: &Array, kernel: &Array, overlap: Overlap) -> Result<Array> {
    let rank = x.rank();
    let one = || Dim::from(1usize);
    let image: Vec<Dim> = std::iter::once(one()).chain(x.shape().iter().cloned()).chain([one()]).collect();
    let window: Vec<Dim> = kernel.shape().iter().cloned().chain([one(), one()]).collect();
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for k in kernel.shape().iter() {
        let behind = (k - 1usize).floor_div(&Dim::from(2usize));
        let (before, behind) = match overlap {
            Overlap::Full => (k - 1usize, k - 1usize),
            Overlap::Same => (k - 1usize - &behind, behind),
            Overlap::Valid => (Dim::from(0usize), Dim::from(0usize)),
        };
        low.push(before);
        high.push(behind);
    }
    let op = Convolve {
        strides: vec![1; rank],
        low,
        high,
        image_dilation: vec![1; rank],
        kernel_dilation: vec![1; rank],
        feature_groups: one(),
        batch_groups: one(),
    };
    let y = bind(Op::new(op), &[x.reshape(image), kernel.reshape(window)]);
    y.squeeze([0, -1]).ok()
}
