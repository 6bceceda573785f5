//! Norms, condition and rank.

use gradus_core::array::IntoAxes;
use gradus_core::{Array, DType, Result};

use super::{inv, matrices, number, svdvals};
use crate::line::on_line;

/// Which norm of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Norm {
    /// The root of the sum of squares of all elements.
    Frobenius,
    /// The sum of the singular values.
    Nuclear,
    /// The largest sum of a column's absolute values.
    One,
    /// The least sum of a column's absolute values; no norm, but listed with them.
    NegOne,
    /// The largest singular value.
    Two,
    /// The least singular value; no norm, but listed with them.
    NegTwo,
    /// The largest sum of a row's absolute values.
    Infinity,
    /// The least sum of a row's absolute values; no norm, but listed with them.
    NegInfinity,
}

/// The root of the sum of squares of all elements: the Euclidean norm of a vector, Frobenius' of a matrix. Its derivative at zero is zero.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// assert_eq!(linalg::norm(&Array::from([3.0_f64, 4.0])).item::<f64>()?, 5.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn norm(x: &Array) -> Array {
    vector_norm(x, 2.0, ..)
}

/// The norm of order `p` along axes: `(Σ |x|^p)^(1/p)`; with an infinite `p` the largest absolute value, with a negative infinite one the least, with 0 the number
/// of elements that are not zero. `..` takes all axes.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let x = Array::from([[3.0_f64, -4.0], [1.0, 0.0]]);
/// assert_eq!(linalg::vector_norm(&x, 1.0, 1).to_vec::<f64>()?, [7.0, 1.0]);
/// assert_eq!(linalg::vector_norm(&x, f64::INFINITY, ..).item::<f64>()?, 4.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn vector_norm(x: &Array, p: f64, axes: impl IntoAxes) -> Array {
    on_line(|| {
        let x = floats(x)?;
        let dtype = x.dtype().real_part();
        let axes: Vec<isize> = axes.into_axes(x.rank())?.into_iter().map(|a| a as isize).collect();
        Ok(match p {
            2.0 => root(&squared(&x).sum_axes(axes)),
            f64::INFINITY => x.abs().max_axes(axes),
            f64::NEG_INFINITY => x.abs().min_axes(axes),
            0.0 => x.abs().ne(number(0.0, dtype)).cast(dtype).sum_axes(axes),
            1.0 => x.abs().sum_axes(axes),
            p => x.abs().pow(number(p, dtype)).sum_axes(axes).pow(number(1.0 / p, dtype)),
        })
    })
}

/// A norm of matrices, which are in the last two axes.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let a = Array::from([[3.0_f64, 0.0], [4.0, 0.0]]);
/// assert_eq!(linalg::matrix_norm(&a, linalg::Norm::One).item::<f64>()?, 7.0);
/// assert!((linalg::matrix_norm(&a, linalg::Norm::Two).item::<f64>()? - 5.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn matrix_norm(a: &Array, norm: Norm) -> Array {
    on_line(|| {
        matrices("matrix_norm", a)?;
        let lines = |axis: isize| a.abs().sum_axes(axis);
        Ok(match norm {
            Norm::Frobenius => root(&squared(a).sum_axes([-2, -1])),
            Norm::Nuclear => svdvals(a).sum_axes(-1),
            Norm::One => lines(-2).max_axes(-1),
            Norm::NegOne => lines(-2).min_axes(-1),
            Norm::Two => svdvals(a).max_axes(-1),
            Norm::NegTwo => svdvals(a).min_axes(-1),
            Norm::Infinity => lines(-1).max_axes(-1),
            Norm::NegInfinity => lines(-1).min_axes(-1),
        })
    })
}

/// Numbers that have a norm: integers become floats of 64 bits.
fn floats(x: &Array) -> Result<Array> {
    let dtype = x.ty()?.dtype();
    if dtype.is_inexact() { Ok(x.clone()) } else { x.cast(DType::F64).ok() }
}

/// `|x|²`, without the root that a derivative at zero would divide by.
fn squared(x: &Array) -> Array {
    if x.dtype().is_complex() { x.real().square() + x.imag().square() } else { x.square() }
}

/// The root of a sum of squares, with a derivative of zero at zero.
fn root(x: &Array) -> Array {
    let zero = number(0.0, x.dtype());
    x.ne(&zero).guarded(x, number(1.0, x.dtype()), |x| x.sqrt(), zero)
}

/// How much a solution of systems with this matrix may be off for what the matrix is off: the largest singular value by the least, or for another norm that of the
/// matrix times that of its inverse.
#[track_caller]
pub fn cond(a: &Array, norm: Norm) -> Array {
    on_line(|| {
        matrices("cond", a)?;
        Ok(match norm {
            Norm::Two => {
                let s = svdvals(a);
                s.max_axes(-1) / s.min_axes(-1)
            }
            Norm::NegTwo => {
                let s = svdvals(a);
                s.min_axes(-1) / s.max_axes(-1)
            }
            other => matrix_norm(a, other) * matrix_norm(&inv(a), other),
        })
    })
}

/// How many singular values are larger than `max(m, n)·ε` times the largest.
#[track_caller]
pub fn matrix_rank(a: &Array) -> Array {
    on_line(|| {
        matrices("matrix_rank", a)?;
        let s = svdvals(&a.stop_gradient());
        let dtype = s.dtype();
        let epsilon = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let side = Array::from_dim(&a.dim(-2).max(&a.dim(-1)), dtype);
        let least = s.max_keep(-1) * side * number(epsilon, dtype);
        Ok(s.gt(least).cast(DType::I64).sum_axes(-1))
    })
}
