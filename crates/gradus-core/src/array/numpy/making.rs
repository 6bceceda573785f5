//! Arrays made from a rule: spaced numbers, windows of signal processing, places of triangles and diagonals.

use super::{all_at_caller, at_caller};
use crate::array::Array;
use crate::array::data::memory;
use crate::error::{Result, error, fail};
use crate::types::{DType, Element, IntoShape, Shape};

/// `n` numbers of a rule, computed in `f64` and rounded once.
fn ruled<T: Element>(n: usize, what: &str, value: impl Fn(f64) -> f64) -> Result<Array> {
    if !T::DTYPE.is_float() {
        return Err(error!(DType, "{what} has floats, not {}", T::DTYPE).help("ask for `f64` or `f32`"));
    }
    let mut values = memory(n)?;
    values.extend((0..n).map(|i| value(i as f64)));
    Array::from(values).try_cast(T::DTYPE)
}

/// A window of `n` numbers, a sum of cosines; one number is 1.
fn cosines<T: Element>(n: usize, what: &str, factors: [f64; 3]) -> Result<Array> {
    let turn = std::f64::consts::TAU / (n.max(2) - 1) as f64;
    ruled::<T>(n, what, |i| match n {
        1 => 1.0,
        _ => factors[0] + factors[1] * (turn * i).cos() + factors[2] * (2.0 * turn * i).cos(),
    })
}

/// I₀ by its series, of which every term is positive.
fn bessel_i0(x: f64) -> f64 {
    let (quarter, mut term, mut sum, mut k) = (x * x / 4.0, 1.0, 1.0, 1.0);
    while term > sum * 1e-17 && k < 1e4 {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}

impl Array {
    /// `n` numbers from `base^start` to `base^stop`, each the same factor from the one before.
    #[track_caller]
    pub fn logspace<T: Element>(start: f64, stop: f64, n: usize, base: f64) -> Array {
        let steps = n.saturating_sub(1).max(1) as f64;
        at_caller(|| ruled::<T>(n, "a range of powers", |i| base.powf(start + (stop - start) * i / steps)))
    }

    /// `n` numbers from `start` to `stop`, each the same factor from the one before. Both have one sign and are not zero.
    #[track_caller]
    pub fn geomspace<T: Element>(start: f64, stop: f64, n: usize) -> Array {
        at_caller(|| {
            if start * stop <= 0.0 || !(start * stop).is_finite() {
                fail!(Value, "no factor leads from {start} to {stop} step by step");
            }
            let steps = n.saturating_sub(1).max(1) as f64;
            let ratio = (stop / start).ln();
            ruled::<T>(n, "a range of powers", |i| match i == steps {
                true => stop,
                false => start * (ratio * i / steps).exp(),
            })
        })
    }

    /// The window of Bartlett, a triangle.
    #[track_caller]
    pub fn bartlett<T: Element>(n: usize) -> Array {
        let half = (n.max(2) - 1) as f64 / 2.0;
        at_caller(|| ruled::<T>(n, "a window", |i| if n == 1 { 1.0 } else { 1.0 - (i / half - 1.0).abs() }))
    }

    /// The window of Blackman.
    #[track_caller]
    pub fn blackman<T: Element>(n: usize) -> Array {
        at_caller(|| cosines::<T>(n, "a window", [0.42, -0.5, 0.08]))
    }

    /// The window of Hamming.
    #[track_caller]
    pub fn hamming<T: Element>(n: usize) -> Array {
        at_caller(|| cosines::<T>(n, "a window", [0.54, -0.46, 0.0]))
    }

    /// The window of von Hann.
    #[track_caller]
    pub fn hanning<T: Element>(n: usize) -> Array {
        at_caller(|| cosines::<T>(n, "a window", [0.5, -0.5, 0.0]))
    }

    /// The window of Kaiser, narrower for a larger `beta`.
    #[track_caller]
    pub fn kaiser<T: Element>(n: usize, beta: f64) -> Array {
        let half = (n.max(2) - 1) as f64 / 2.0;
        at_caller(|| {
            ruled::<T>(n, "a window", |i| match n {
                1 => 1.0,
                _ => bessel_i0(beta * (1.0 - (i / half - 1.0).powi(2)).max(0.0).sqrt()) / bessel_i0(beta),
            })
        })
    }

    /// The coordinates of every place of a shape, as `i64`: an array for each axis, one after the other along a new leading axis.
    #[track_caller]
    pub fn indices(shape: impl IntoShape) -> Array {
        let shape = shape.into_shape();
        at_caller(|| {
            let rank = shape.rank();
            let all = (0..rank).map(|i| Array::try_iota(DType::I64, shape.clone(), i as isize));
            let all = all.collect::<Result<Vec<_>>>()?;
            if all.is_empty() {
                return Ok(Array::zeros::<i64>([0]));
            }
            Array::stack(&all, 0).ok()
        })
    }

    /// Rows and columns of the main diagonal of an `n` by `n` matrix, as `i64`.
    #[doc(alias = "diag_indices_from")]
    #[track_caller]
    pub fn diag_indices(n: usize) -> (Array, Array) {
        let all = at_caller(|| Array::arange(0i64, coordinate(n)?, 1).ok());
        (all.clone(), all)
    }

    /// Rows and columns on and below the `k`-th diagonal of an `n` by `m` matrix, row by row, as `i64`.
    #[doc(alias = "tril_indices_from")]
    #[track_caller]
    pub fn tril_indices(n: usize, m: usize, k: isize) -> (Array, Array) {
        places(n, m, k, true)
    }

    /// Rows and columns on and above the `k`-th diagonal of an `n` by `m` matrix, row by row, as `i64`.
    #[doc(alias = "triu_indices_from")]
    #[track_caller]
    pub fn triu_indices(n: usize, m: usize, k: isize) -> (Array, Array) {
        places(n, m, k, false)
    }

    /// A matrix with all elements in row-major order on its `k`-th diagonal.
    #[track_caller]
    pub fn diagflat(&self, k: isize) -> Array {
        Array::diag(&self.flatten(), k)
    }

    /// An array whose element at each place is a function of its coordinates, which come as arrays of `f64`.
    #[doc(alias = "fromfunction")]
    #[track_caller]
    pub fn from_function(shape: impl IntoShape, f: impl FnOnce(&[Array]) -> Array) -> Array {
        let shape: Shape = shape.into_shape();
        at_caller(|| {
            let all = (0..shape.rank()).map(|i| Array::try_iota(DType::F64, shape.clone(), i as isize));
            let all = all.collect::<Result<Vec<_>>>()?;
            f(&all).ok()?.try_broadcast_to(shape)
        })
    }
}

/// A size whose places can be written as `i64`.
fn coordinate(n: usize) -> Result<i64> {
    i64::try_from(n).map_err(|_| error!(Size, "the places of {n} elements are more than `i64` can name"))
}

/// How many elements of an `n` by `m` matrix are on and below its `k`-th diagonal.
fn below_diagonal(n: i128, m: i128, k: i128) -> i128 {
    // Row i has i + k + 1 of them, up to m. Rows of fewer than m come first, after those of none.
    let (first, last) = ((k + 1).max(1), n + k);
    let end = last.min(m - 1);
    let growing = if first <= end { (first + end) * (end - first + 1) / 2 } else { 0 };
    growing + m * (last - first.max(m) + 1).max(0)
}

#[track_caller]
fn places(n: usize, m: usize, k: isize, below: bool) -> (Array, Array) {
    let mut both = all_at_caller(2, || {
        let (rows, columns) = (coordinate(n)?, coordinate(m)?);
        let (wide, k) = ((i128::from(rows), i128::from(columns)), k as i128);
        let count = match below {
            true => below_diagonal(wide.0, wide.1, k),
            false => wide.0 * wide.1 - below_diagonal(wide.0, wide.1, k - 1),
        };
        let count = usize::try_from(count).map_err(|_| {
            error!(Size, "a triangle of a {n} by {m} matrix has {count} places: there is no memory for so many")
        })?;
        let (mut down, mut right) = (memory(count)?, memory(count)?);
        // Only the rows that have any: there may be many more of the others.
        let (from, to) = if below { (-k, wide.0) } else { (0, wide.1 - k) };
        for i in from.clamp(0, wide.0) as i64..to.clamp(0, wide.0) as i64 {
            let edge = (i128::from(i) + k + i128::from(below)).clamp(0, wide.1) as i64;
            let range = if below { 0..edge } else { edge..columns };
            down.extend(std::iter::repeat_n(i, range.clone().count()));
            right.extend(range);
        }
        Ok(vec![Array::from(down), Array::from(right)])
    })
    .into_iter();
    let lost = || Array::from(error!(Rule, "a pair lost an array"));
    (both.next().unwrap_or_else(lost), both.next().unwrap_or_else(lost))
}
