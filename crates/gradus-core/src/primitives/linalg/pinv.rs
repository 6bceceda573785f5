//! Pseudo-inverses of matrices of any shape and rank.

use super::plain::Field;
use super::svd::Decomposer;
use super::{adjoint, behind, complex_matrices, dispatch_field, identity, in_front, matrices, matrix, sizes, zeroed};
use crate::array::{Array, Concrete};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::{one_output, operand};
use crate::primitives::reduce::{array, elements};
use crate::primitives::rules::one;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::types::{DType, Effects};

/// The P of `[.., m, n]` matrices with `A·P·A = A`, `P·A·P = P`, and Hermitian `A·P` and `P·A`. Singular values below `10·max(m, n)·ε` times the largest count
/// as zero, as in JAX. NaN if a number is not finite.
///
/// As one operation its derivative is made of itself, and exists where singular values are equal and those of the vectors do not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pinv;

impl Primitive for Pinv {
    rules_of!("pinv");

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let (ty, front, m, n) = matrix(infer, 0)?;
        one(ty.with_shape(behind(&front, &[&n, &m])))
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        one_output(dispatch_field!(a.ty().dtype(), T => inverses::<T>(a)))
    }

    /// `P_dot = −P·A_dot·P + P·Pᴴ·A_dotᴴ·(1 − A·P) + (1 − P·A)·A_dotᴴ·Pᴴ·P`, as long as the rank stays what it is (Golub and Pereyra).
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([a], [Some(a_dot)]) = (jvp.primals, jvp.tangents) else { return Ok(Derivative::Zero) };
        let [p] = jvp.outputs() else { fail!(Rule, "has one result") };
        let (ph, ah_dot) = (adjoint(p), adjoint(a_dot));
        let left = identity(&a.dim(-2), a.dtype()) - a.matmul(p);
        let right = identity(&a.dim(-1), a.dtype()) - p.matmul(a);
        let moved = -p.matmul(&a_dot.matmul(p));
        Derivative::one(
            moved + p.matmul(&ph.matmul(&ah_dot.matmul(&left))) + right.matmul(&ah_dot.matmul(&ph.matmul(p))),
        )
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        in_front(batch, Op::fixed(&Pinv))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |a: Array| Sample::new(Op::fixed(&Pinv), vec![a]);
        vec![
            make(matrices(&[1, 1], 1)),
            make(matrices(&[2, 2], 2)),
            make(matrices(&[3, 2], 3)),
            make(matrices(&[2, 3], 4)),
            make(matrices(&[2, 2, 2], 5)),
            make(matrices(&[20, 12], 6)).rough(),
            make(matrices(&[3, 2], 7).cast(DType::F32)).rough(),
            make(complex_matrices(&[3, 2], 8)),
            make(complex_matrices(&[2, 2], 9).cast(DType::C64)).rough(),
            make(array(&[2, 2], vec![1.0, 2.0, 2.0, 4.0])).rough(),
            make(array(&[2, 2], vec![0.0; 4])).rough(),
            make(matrices(&[0, 0], 1)),
            make(matrices(&[3, 0], 1)),
            make(matrices(&[0, 2, 2], 1)),
        ]
    }
}

/// `V·diag(1/s)·Uᴴ`, without the singular values that count as zero.
fn inverses<T: Field>(a: &Concrete) -> Result<Concrete> {
    let [count, m, n] = sizes(a);
    let k = m.min(n);
    let mut out = zeroed::<T>(count * m * n)?;
    let mut svd = Decomposer::<T>::new(m, n, super::Svd { full: false, vectors: true })?;
    let (ty, a) = (a.ty(), elements::<T>(a)?);
    for (p, a) in super::each_mut(&mut out, m * n).zip(super::each(&a, m * n)) {
        svd.decompose(a)?;
        let (u, s, v) = (&svd.u, &svd.s, &svd.v);
        let least = s.first().map_or(T::Part::default(), |s| s.part()) * T::tolerance(m.max(n));
        for j in 0..k {
            // NaN is larger than nothing, and has to be seen.
            if s[j].part() <= least {
                continue;
            }
            for (row, &v) in p.chunks_exact_mut(m).zip(&v[j * n..(j + 1) * n]) {
                let factor = v / s[j];
                row.iter_mut().zip(&u[j * m..(j + 1) * m]).for_each(|(p, u)| *p += factor * u.conjugate());
            }
        }
        super::rescale(p, -svd.power);
    }
    let rank = ty.rank();
    let shape = ty.shape().iter().take(rank - 2).cloned().chain([n.into(), m.into()]); // invariant: the type rule wants two axes
    Ok(Concrete::dense(ty.with_shape(shape.collect::<crate::types::Shape>()), out))
}
