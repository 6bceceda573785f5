//! Decompositions.

use gradus_core::primitives::Op;
use gradus_core::primitives::linalg::{Cholesky, Eig, Eigh, Lu, Qr, Schur, Svd};
use gradus_core::trace::bind;
use gradus_core::{Array, Result};

use super::{adjoint, called_for, matrices, number, results, squares};
use crate::line::on_line;

/// Which triangle of a matrix is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above it.
    Upper,
}

/// The mean of a matrix and its adjoint: what a function of Hermitian matrices takes, so that its derivative is one.
fn symmetric(what: &str, a: &Array) -> Result<Array> {
    squares(what, a)?;
    ((a + adjoint(a)) * number(0.5, a.dtype())).ok()
}

/// The lower triangular L with `L·Lᴴ = a`, of Hermitian positive definite matrices; NaN for others. [`cho_solve`](super::cho_solve) solves systems by it.
///
/// It takes the mean of `a` and its adjoint, so derivatives by `a` are symmetric.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let l = linalg::cholesky(&Array::from([[4.0_f64, 2.0], [2.0, 5.0]]));
/// assert_eq!(l.to_vec::<f64>()?, [2.0, 0.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "cho_factor")]
#[track_caller]
pub fn cholesky(a: &Array) -> Array {
    on_line(|| Ok(bind(Op::new(Cholesky), &[symmetric("cholesky", a)?])))
}

/// `P·a = L·U`: both factors in one matrix (L below the diagonal, with ones on it that are not stored; U on and above), the row that each row was
/// exchanged with, and the row of `a` that each row of `P·a` is.
#[doc(alias = "lu_factor")]
#[track_caller]
pub fn lu(a: &Array) -> (Array, Array, Array) {
    let [lu, pivots, order] = called_for(|| {
        matrices("lu", a)?;
        results(Op::new(Lu), &[a.clone()])
    });
    (lu, pivots, order)
}

#[track_caller]
fn qr_of(a: &Array, full: bool) -> (Array, Array) {
    let [q, r] = called_for(|| {
        matrices("qr", a)?;
        results(Op::new(Qr { full }), &[a.clone()])
    });
    (q, r)
}

/// `a = Q·R` with orthonormal columns in Q and an upper triangular R, which has as many rows as the lesser of the sides of `a`.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let a = Array::from([[1.0_f64, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// let (q, r) = linalg::qr(&a);
/// assert_eq!((q.shape().rank(), r.shape().to_string()), (2, "[2,2]".to_string()));
/// assert!((q.matmul(&r) - a).abs().max().item::<f64>()? < 1e-12);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn qr(a: &Array) -> (Array, Array) {
    qr_of(a, false)
}

/// [`qr`] with a square Q. Of tall matrices it has no derivative: the columns that fill it up are not unique.
#[track_caller]
pub fn qr_full(a: &Array) -> (Array, Array) {
    qr_of(a, true)
}

#[track_caller]
fn svd_of(a: &Array, full: bool) -> (Array, Array, Array) {
    let [u, s, vh] = called_for(|| {
        matrices("svd", a)?;
        results(Op::new(Svd { full, vectors: true }), &[a.clone()])
    });
    (u, s, vh)
}

/// `a = U·diag(s)·Vᴴ`: U, the singular values in descending order, and Vᴴ; as many columns and rows as there are singular values. NumPy's and JAX's
/// functions give the full matrices, which is [`svd_full`].
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (u, s, vh) = linalg::svd(&Array::from([[3.0_f64, 0.0], [0.0, -4.0]]));
/// assert_eq!(s.to_vec::<f64>()?, [4.0, 3.0]);
/// assert_eq!((u * s).matmul(&vh).to_vec::<f64>()?, [3.0, 0.0, 0.0, -4.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn svd(a: &Array) -> (Array, Array, Array) {
    svd_of(a, false)
}

/// [`svd`] with square U and Vᴴ. Of matrices that are not square it has no derivative: the vectors that fill them up are not unique.
#[track_caller]
pub fn svd_full(a: &Array) -> (Array, Array, Array) {
    svd_of(a, true)
}

/// The singular values in descending order.
#[track_caller]
pub fn svdvals(a: &Array) -> Array {
    on_line(|| {
        matrices("svdvals", a)?;
        Ok(bind(Op::new(Svd { full: false, vectors: false }), &[a.clone()]))
    })
}

/// The eigenvalues of Hermitian matrices in ascending order and their eigenvectors, the columns of a unitary matrix.
///
/// It takes the mean of `a` and its adjoint, so derivatives by `a` are symmetric. Where eigenvalues are equal, those of the vectors are not finite.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let a = Array::from([[2.0_f64, 1.0], [1.0, 2.0]]);
/// let (w, v) = linalg::eigh(&a);
/// assert!((a.matmul(&v) - &v * &w).abs().max().item::<f64>()? < 1e-12);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn eigh(a: &Array) -> (Array, Array) {
    let [w, v] = called_for(|| results(Op::new(Eigh { vectors: true }), &[symmetric("eigh", a)?]));
    (w, v)
}

/// The eigenvalues of Hermitian matrices in ascending order.
#[track_caller]
pub fn eigvalsh(a: &Array) -> Array {
    on_line(|| Ok(bind(Op::new(Eigh { vectors: false }), &[symmetric("eigvalsh", a)?])))
}

/// The eigenvalues of square matrices, in ascending order of their real and then of their imaginary parts, and their eigenvectors, columns of size 1.
/// Both are complex.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (w, _) = linalg::eig(&Array::from([[0.0_f64, -1.0], [1.0, 0.0]]));
/// assert!((w.imag() - Array::from([-1.0_f64, 1.0])).abs().max().item::<f64>()? < 1e-12);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn eig(a: &Array) -> (Array, Array) {
    let [w, v] = called_for(|| {
        squares("eig", a)?;
        results(Op::new(Eig { vectors: true }), &[a.clone()])
    });
    (w, v)
}

/// The eigenvalues of square matrices, which are complex.
#[track_caller]
pub fn eigvals(a: &Array) -> Array {
    on_line(|| {
        squares("eigvals", a)?;
        Ok(bind(Op::new(Eig { vectors: false }), &[a.clone()]))
    })
}

/// `a = Q·T·Qᴴ` with an upper triangular T, which has the eigenvalues on its diagonal, and a unitary Q: T and Q, both complex. It has no derivative.
#[track_caller]
pub fn schur(a: &Array) -> (Array, Array) {
    let [t, q] = called_for(|| {
        squares("schur", a)?;
        results(Op::new(Schur), &[a.clone()])
    });
    (t, q)
}
