//! Linear algebra: decompositions, systems, norms, functions of matrices. Matrices are in the last two axes, with any axes in front, so a batch needs
//! no `vmap`; and everything has derivatives in both modes.
//!
//! A matrix for which there is no answer (singular, not positive definite) gives infinities or NaN, as in JAX. [`checked`] makes an error of them.
//!
//! ```
//! use gradus::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let a = Array::from([[4.0_f64, 1.0], [1.0, 3.0]]);
//! let x = linalg::solve(&a, &Array::from([1.0_f64, 2.0]));
//! assert!(a.matmul(&x).to_vec::<f64>()?.iter().zip([1.0, 2.0]).all(|(x, y)| (x - y).abs() < 1e-12));
//!
//! // d log|det A| = A⁻ᵀ
//! let slope = jit(grad(|a: &Array| linalg::slogdet(a).1))(&a);
//! assert!((slope.index((0, 0)).item::<f64>()? - 3.0 / 11.0).abs() < 1e-12);
//! # Ok(())
//! # }
//! ```
//!
//! | for | functions |
//! |---|---|
//! | decompositions | [`cholesky`], [`lu`], [`qr`], [`qr_full`], [`svd`], [`svd_full`], [`svdvals`], [`eigh`], [`eigvalsh`], [`eig`], [`eigvals`], [`schur`] |
//! | systems | [`solve`], [`solve_triangular`], [`Triangle`], [`cho_solve`], [`solve_tridiagonal`], [`solve_banded`], [`lstsq`], [`inv`], [`pinv`] |
//! | numbers of a matrix | [`det`], [`slogdet`], [`matrix_rank`], [`cond`], [`norm`], [`vector_norm`], [`matrix_norm`], [`Norm`] |
//! | functions of a matrix | [`matrix_power`], [`expm`], [`sqrtm`], [`logm`] |
//! | products and patterns | [`multi_dot`], [`kron`], [`cross`], [`vecdot`], [`block_diag`], [`toeplitz`] |
//! | an error instead of NaN | [`checked`] |

mod factors;
mod functions;
mod norms;
mod products;
mod systems;

pub use factors::{Triangle, cholesky, eig, eigh, eigvals, eigvalsh, lu, qr, qr_full, schur, svd, svd_full, svdvals};
pub use functions::{expm, logm, matrix_power, sqrtm};
pub use norms::{Norm, cond, matrix_norm, matrix_rank, norm, vector_norm};
pub use products::{block_diag, cross, kron, multi_dot, toeplitz, vecdot};
pub use systems::{
    cho_solve, det, inv, lstsq, pinv, slogdet, solve, solve_banded, solve_triangular, solve_tridiagonal,
};

use crate::line::on_line;
use gradus_core::error::counted;
use gradus_core::primitives::Op;
use gradus_core::trace::{self, bind_all};
use gradus_core::{Array, DType, Decision, Dim, Error, ErrorKind, Location, Result, Scalar, Shape};

/// The array itself, and an error of the call if one of its numbers is not finite: what a decomposition says of a matrix that has none. Of a batch the
/// error says which matrix is the first; of one result, or a batch of vectors, which row.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let factor = jit(|a: &Array| linalg::checked(&linalg::cholesky(a)));
/// assert!(factor(&Array::from([[2.0_f64, 1.0], [1.0, 2.0]])).ok().is_ok());
/// let e = factor(&Array::from([[1.0_f64, 2.0], [2.0, 1.0]])).ok().unwrap_err();
/// assert!(e.to_string().contains("not finite"), "{e}");
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn checked(x: &Array) -> Array {
    on_line(|| {
        let x = x.clone().ok()?;
        let finite = x.real().is_finite() & x.imag().is_finite();
        // One answer for each matrix of a batch, or row, so that the check says which it was.
        let finite = match x.rank() {
            0 | 1 => finite.all(),
            2 => finite.all_axes(-1),
            _ => finite.all_axes([-2, -1]),
        };
        crate::debug_check!(
            finite,
            "a result of linear algebra is not finite: the matrix is singular, or not positive definite, or had such numbers itself"
        )
        .ok()?;
        Ok(x)
    })
}

/// The same for several results, all of which carry the error if there is one.
#[track_caller]
fn called_for<const N: usize>(body: impl FnOnce() -> Result<[Array; N]>) -> [Array; N] {
    let place = trace::caller_or_known(Location::caller());
    let made = trace::at_place(place, body);
    made.unwrap_or_else(|e| std::array::from_fn(|_| Array::from(e.clone().at(place))))
}

/// The results of an operation of `N`.
fn results<const N: usize>(op: Op, inputs: &[Array]) -> Result<[Array; N]> {
    let all = bind_all(op, inputs);
    if let Some(e) = all.first().and_then(Array::error) {
        return Err(e.clone());
    }
    <[Array; N]>::try_from(all.to_vec())
        .map_err(|all| Error::new(ErrorKind::Rule, format!("{} results where {N} are expected", all.len())))
}

fn wrong<T>(kind: ErrorKind, message: String, help: &str) -> Result<T> {
    Err(Error::new(kind, message).help(help))
}

/// Refuses what has no matrices of floats or complex numbers in its last two axes.
fn matrices(what: &str, a: &Array) -> Result<()> {
    let ty = a.ty()?;
    if !ty.dtype().is_inexact() || ty.dtype().size() == 2 {
        let message = format!("`{what}` wants matrices of f32, f64, c64 or c128, not {ty}");
        return wrong(ErrorKind::DType, message, "cast first, as in `x.cast(DType::F64)`");
    }
    if ty.rank() < 2 {
        let message =
            format!("`{what}` wants matrices in the last two axes, and {ty} has {}", counted(ty.rank(), "axis"));
        return wrong(ErrorKind::Shape, message, "a vector becomes a matrix of one column by `x.expand_dims(-1)`");
    }
    Ok(())
}

/// As [`matrices`], of square ones.
fn squares(what: &str, a: &Array) -> Result<()> {
    matrices(what, a)?;
    if a.dim(-2).equals(&a.dim(-1)) == Decision::No {
        let message = format!("`{what}` wants square matrices, not {}", a.ty()?);
        return wrong(ErrorKind::Shape, message, "`lstsq` and `pinv` take matrices of any shape");
    }
    Ok(())
}

/// The conjugate transpose of the last two axes.
fn adjoint(x: &Array) -> Array {
    x.swap_axes(-1, -2).conj()
}

/// The identity of a dtype.
fn identity(n: &Dim, dtype: DType) -> Array {
    Array::eye::<bool>(n.clone()).cast(dtype)
}

/// One number of a dtype.
fn number(value: f64, dtype: DType) -> Array {
    Array::scalar(Scalar::F64(value).cast(dtype))
}

/// The axes in front of the last `behind`.
fn front(x: &Array, behind: usize) -> Shape {
    let shape = x.shape();
    shape.iter().take(shape.rank().saturating_sub(behind)).cloned().collect()
}

/// Matrices divided by powers of two that bring their largest elements near 1, and the exponents of these powers, [.., 1, 1]. No digit changes.
fn unit_size(a: &Array) -> (Array, Array) {
    let power = a.stop_gradient().abs().max_axes([-2, -1]).log2().floor();
    // Of zeros, of nothing and of what is not finite it is none.
    let power = power.is_finite().select(&power, number(0.0, power.dtype())).expand_dims([-2, -1]);
    (times_power_of_two(a, &-&power), power)
}

/// `x·2^power`, in two steps, each of which is a number.
fn times_power_of_two(x: &Array, power: &Array) -> Array {
    let half = (power * number(0.5, power.dtype())).floor();
    let factor = |power: &Array| power.exp2().cast(x.dtype());
    x * factor(&half) * factor(&(power - &half))
}
