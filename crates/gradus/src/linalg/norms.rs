//! Norms, condition and rank.

use gradus_core::array::IntoAxes;
use gradus_core::{Array, DType, Decision, Dim, ErrorKind, Result};

use super::{inv, matrices, number, svdvals, wrong};
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
/// of elements that are not zero. `..` takes all axes. Of no elements a norm is 0; a least one of none is an error.
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
            f64::INFINITY => largest(&x.abs(), &axes),
            f64::NEG_INFINITY => least("vector_norm", &x.abs(), &axes)?,
            0.0 => x.abs().ne(number(0.0, dtype)).cast(dtype).sum_axes(axes),
            1.0 => x.abs().sum_axes(axes),
            p => x.abs().pow(number(p, dtype)).sum_axes(axes).pow(number(1.0 / p, dtype)),
        })
    })
}

/// The largest of numbers that are not negative: of none it is 0, as it would be with a zero beside them.
fn largest(x: &Array, axes: &[isize]) -> Array {
    let found = x.max_axes(axes.to_vec());
    if all_there(x, axes) == Decision::Yes {
        return found;
    }
    let zero = number(0.0, x.dtype());
    found.lt(&zero).select(zero, found)
}

/// The least of numbers, of which there is one.
fn least(what: &str, x: &Array, axes: &[isize]) -> Result<Array> {
    if all_there(x, axes) == Decision::No {
        let message = format!("`{what}` wants the least of no numbers: {} is empty", x.ty()?);
        return wrong(ErrorKind::Shape, message, "a norm of the largest, or of the sum, is 0 there");
    }
    Ok(x.min_axes(axes.to_vec()))
}

/// Whether axes have an element each.
fn all_there(x: &Array, axes: &[isize]) -> Decision {
    let each = axes.iter().map(|&axis| x.dim(axis).at_least(&Dim::from(1usize)));
    each.fold(Decision::Yes, |all, one| match (all, one) {
        (Decision::No, _) | (_, Decision::No) => Decision::No,
        (Decision::Yes, Decision::Yes) => Decision::Yes,
        _ => Decision::AtRunTime,
    })
}

/// A norm of matrices, which are in the last two axes. Of a matrix without elements it is 0; a least line or singular value of none is an error.
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
            Norm::One => largest(&lines(-2), &[-1]),
            Norm::NegOne => least("matrix_norm", &lines(-2), &[-1])?,
            Norm::Two => largest(&svdvals(a), &[-1]),
            Norm::NegTwo => least("matrix_norm", &svdvals(a), &[-1])?,
            Norm::Infinity => largest(&lines(-1), &[-1]),
            Norm::NegInfinity => least("matrix_norm", &lines(-1), &[-1])?,
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
/// matrix times that of its inverse. Of a singular matrix it is infinite, of zero too.
#[track_caller]
pub fn cond(a: &Array, norm: Norm) -> Array {
    on_line(|| {
        matrices("cond", a)?;
        Ok(match norm {
            Norm::Two => {
                let s = svdvals(a);
                let (high, low) = (largest(&s, &[-1]), least("cond", &s, &[-1])?);
                let zero = number(0.0, s.dtype());
                let none = high.eq(&zero);
                // Zero by zero is NaN, and no matrix is farther from having an inverse.
                none.select(number(f64::INFINITY, s.dtype()), high / none.select(number(1.0, s.dtype()), low))
            }
            Norm::NegTwo => {
                let s = svdvals(a);
                least("cond", &s, &[-1])? / largest(&s, &[-1])
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
