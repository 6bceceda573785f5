//! Normal vectors with a mean and a covariance.

use gradus_core::{Array, DType, Error, ErrorKind, IntoShape, Result, Scalar, Shape};

use super::basic::standard_normal;
use super::{Key, drawing, spread, want_float};
use crate::control::fori_loop;

/// Vectors of the normal distribution with a mean `[.., n]` and a covariance `[.., n, n]`, which is symmetric and positive
/// definite; otherwise numbers are NaN. The shape is that of the vectors: the result has `n` behind it. Derivatives go through
/// both.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let mean = Array::from([1.0_f64, -1.0]);
/// let covariance = Array::from([[2.0_f64, 0.5], [0.5, 1.0]]);
/// assert_eq!(random::multivariate_normal(Key::new(0), &mean, &covariance, [100]).shape(), [100, 2]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn multivariate_normal(key: Key, mean: &Array, covariance: &Array, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        let (mean_ty, ty) = (mean.ty()?, covariance.ty()?);
        let dtype = mean_ty.dtype();
        want_float("multivariate_normal", dtype)?;
        if ty.dtype() != dtype {
            let message = format!("a mean of {dtype} and a covariance of {}", ty.dtype());
            return Err(Error::new(ErrorKind::DType, message).help("cast one of them"));
        }
        let square = ty.rank() >= 2 && mean_ty.rank() >= 1 && {
            let n = &mean_ty.shape()[mean_ty.rank() - 1];
            ty.shape().iter().rev().take(2).all(|d| d.equals(n) != gradus_core::Decision::No)
        };
        if !square {
            let message = format!("a mean [.., n] has a covariance [.., n, n], not {mean_ty} and {ty}");
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let n = mean_ty.shape()[mean_ty.rank() - 1].clone();
        let whole = shape.inserted(shape.rank(), n.clone());
        let normal = standard_normal(key, &whole, dtype)?;
        let factor = cholesky(covariance)?;
        let turned = match factor.rank() {
            2 => normal.dot(&factor.t()),
            _ => {
                let factor = spread("a covariance", &factor, &whole.inserted(whole.rank(), n))?;
                factor.matmul(&normal.expand_dims(-1)).squeeze(-1)
            }
        };
        (spread("a mean", mean, &whole)? + turned).ok()
    })
}

/// The lower triangular matrix L with L·Lᵀ = a, of symmetric positive definite matrices: column by column, so that the derivative is
/// that of the steps.
fn cholesky(a: &Array) -> Result<Array> {
    let rank = a.rank();
    let n = a.shape()[rank - 1].clone();
    let half = Scalar::F64(0.5).cast(a.dtype());
    let symmetric = (a + a.swap_axes(-1, -2)) * half;
    let square: Shape = [n.clone(), n.clone()].into_iter().collect();
    let (row, column) = (Array::iota(DType::I64, &square, 0), Array::iota(DType::I64, &square, 1));
    let places = Array::iota(DType::I64, [n.clone()].into_iter().collect::<Shape>(), 0);
    let zero = Scalar::zero(a.dtype());
    let factor = fori_loop(
        0_i64,
        n,
        |j, factor: &Array| {
            let here = places.eq(j);
            let pick = |x: &Array| here.select(x, zero).sum_axes(-1);
            // Column j without what the columns before it explain; those after it are still zero.
            let known = pick(&factor.swap_axes(-1, -2));
            let rest = pick(&symmetric) - (factor * known.expand_dims(-2)).sum_axes(-1);
            let pivot = pick(&rest).sqrt().expand_dims(-1);
            let below = (row.ge(&column) & column.eq(j)).select((rest / pivot).expand_dims(-1), zero);
            factor + below
        },
        symmetric.zeros_like(),
    );
    factor.ok()
}
