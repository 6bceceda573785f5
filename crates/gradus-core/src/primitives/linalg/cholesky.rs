//! The Cholesky factor of positive definite matrices.

use faer::Par;
use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};

use super::plain::{self, Field, PLAIN};
use super::{
    TriangularSolve, adjoint, columns_of, definite, dispatch_field, each_mut, hermitian, identity, in_front, matrices,
    number, scratch, sizes, small, square, to_rows, zeroed,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::{one_output, operand};
use crate::primitives::reduce::array;
use crate::primitives::rules::one;
use crate::primitives::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Limits, Op, Outputs, Primitive, Sample, Transpose, Transposed,
    Types,
};
use crate::rules_of;
use crate::types::{DType, Effects, Type};

/// The lower triangular L with positive diagonal and `L·Lᴴ = A`. Only the lower triangle of A is read; L has zeros above. Of a matrix that is
/// not positive definite the lower triangle of L is NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cholesky;

impl Primitive for Cholesky {
    rules_of!("cholesky");

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        one(square(infer, 0)?.0)
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        one_output(dispatch_field!(a.ty().dtype(), T => factors::<T>(a)))
    }

    /// `L_dot = L·Φ(L⁻¹·A_dot·L⁻ᴴ)`, where Φ takes the lower triangle with half the diagonal: of what `L⁻¹·L_dot` and its
    /// adjoint add up to, that is the first.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([Some(a_dot)], [l]) = (jvp.tangents, jvp.outputs()) else { return Ok(Derivative::Zero) };
        let solve = |b: &Array| TriangularSolve::lower().of(l, b);
        let both = adjoint(&solve(&adjoint(&solve(&hermitian(a_dot)))));
        let half = identity(&l.dim(-1), DType::Bool).select(number(0.5, l.dtype()), number(1.0, l.dtype()));
        // Zeros above stay zeros even if the factor is NaN.
        Derivative::one(l.matmul(&(both.tril(0) * half)).tril(0))
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        in_front(batch, Op::fixed(&Cholesky))
    }

    fn expand(&self, operands: &[Type]) -> Option<Expansion<'_>> {
        let n = small::size(operands)?;
        Some(Box::new(move |inputs| {
            let [a] = inputs else { fail!(Verify, "takes one operand") };
            Ok(smallvec::smallvec![small::cholesky(a, n)])
        }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        super::limits("a matrix that is not positive definite has no Cholesky factor")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |a: Array| Sample::new(Op::fixed(&Cholesky), vec![a]);
        let complex =
            |dims: &[usize], seed| super::complex_matrices(dims, seed) + identity(&3_usize.into(), DType::C128);
        vec![
            make(definite(&[1, 1], 1)),
            make(definite(&[2, 2], 2)),
            make(definite(&[3, 3], 3)),
            make(definite(&[2, 3, 3], 4)),
            make(definite(&[2, 1, 2, 2], 5)),
            make(definite(&[9, 9], 6) + 3.0_f64 * identity(&9_usize.into(), DType::F64)).rough(),
            make(definite(&[3, 3], 7).cast(DType::F32)).rough(),
            make(complex(&[3, 3], 8)),
            make(complex(&[2, 3, 3], 9).cast(DType::C64)).rough(),
            // Indefinite, and one of each kind in a batch.
            make(array(&[2, 2], vec![1.0, 2.0, 2.0, 1.0])).rough(),
            make(array(&[2, 1, 1], vec![-1.0, 4.0])).rough(),
            make(matrices(&[0, 0], 1)),
            make(matrices(&[0, 2, 2], 1)),
        ]
    }
}

fn factors<T: Field>(a: &Concrete) -> Result<Concrete> {
    let [_, n, _] = sizes(a);
    let mut out = a.try_to_vec::<T>()?;
    let mut work = if n > PLAIN { zeroed::<T>(n * n)? } else { Vec::new() };
    for l in each_mut(&mut out, n * n) {
        let there = if n > PLAIN { by_library(l, &mut work, n)? } else { plain::cholesky(l, n) };
        if !there {
            for (i, row) in l.chunks_exact_mut(n).enumerate() {
                row[..=i].fill(T::NAN);
                row[i + 1..].fill(T::default());
            }
        }
    }
    Ok(Concrete::dense(a.ty().clone(), out))
}

/// The factor in the place of the matrix; whether there is one.
fn by_library<T: Field>(a: &mut [T], work: &mut [T], n: usize) -> Result<bool> {
    super::to_columns(a, work, n, n);
    super::real_diagonal(work, n);
    let params = Default::default();
    let mut memory = scratch(cholesky_in_place_scratch::<T>(n, Par::Seq, params))?;
    let stack = MemStack::new(&mut memory);
    if cholesky_in_place(columns_of(work, n, n), Default::default(), Par::Seq, stack, params).is_err() {
        return Ok(false);
    }
    for (j, column) in work.chunks_exact_mut(n).enumerate() {
        column[..j].fill(T::default());
    }
    to_rows(work, a, n, n);
    // A pivot that is NaN is no error to the library.
    Ok(a.iter().step_by(n + 1).all(|v| v.finite()))
}
