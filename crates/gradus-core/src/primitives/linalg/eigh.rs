//! Eigenvalues and eigenvectors of Hermitian matrices.

use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::{Par, diag::DiagMut};

use super::plain::Field;
use super::{
    adjoint, all_finite, behind, columns_of, complex_matrices, diagonal, dispatch_field, each_mut, excess, gaps,
    hermitian, in_front, keep_phase, matrices, real_diagonal, rescale, rows_of, scratch, sizes, square, to_rows,
    unit_phase, zeroed,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::operand;
use crate::primitives::reduce::array;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Limits, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::trace::bind_all;
use crate::types::{DType, Effects, Type};

/// The eigenvalues of Hermitian matrices in ascending order, and if asked for the eigenvectors, columns of size 1. Only the lower triangle is
/// read. The first component of a vector that is at least half as large as its largest is real and positive. NaN if a number is not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eigh {
    /// Whether eigenvectors are wanted.
    pub vectors: bool,
}

impl Primitive for Eigh {
    rules_of!("eigh"; vectors);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let (ty, front, n) = square(infer, 0)?;
        let mut types: Types = smallvec::smallvec![Type::new(ty.dtype().real_part(), behind(&front, &[&n]))];
        types.extend(self.vectors.then_some(ty));
        Ok(types)
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        dispatch_field!(a.ty().dtype(), T => decomposed::<T>(a, self.vectors))
    }

    /// With `H = Vᴴ·A_dot·V`: `w_dot` is its diagonal, and `V_dot = V·(H / (w_j − w_i))` off it.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([a], [Some(a_dot)]) = (jvp.primals, jvp.tangents) else { return Ok(Derivative::Zero) };
        // The derivative of eigenvalues takes the vectors too.
        let mut outputs = bind_all(Op::new(Eigh { vectors: true }), std::slice::from_ref(a));
        let [w, v] = &outputs[..] else { fail!(Rule, "has two results") };
        let h = adjoint(v).matmul(&hermitian(a_dot)).matmul(v);
        let mut tangents: smallvec::SmallVec<[Option<Array>; 1]> = smallvec::smallvec![Some(diagonal(&h).real())];
        if self.vectors {
            tangents.push(Some(keep_phase(v, &v.matmul(&(gaps(w).cast(v.dtype()) * h)))));
        } else {
            outputs.truncate(1);
        }
        Ok(Derivative::Whole { outputs, tangents })
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        in_front(batch, Op::new(*self))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        super::limits("eigenvectors of equal eigenvalues have no derivative; that of the eigenvalues is there")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |vectors, a: Array| Sample::new(Op::new(Eigh { vectors }), vec![a]);
        vec![
            make(true, matrices(&[1, 1], 1)),
            make(true, matrices(&[2, 2], 2)),
            make(true, matrices(&[3, 3], 3)),
            make(false, matrices(&[3, 3], 4)),
            make(true, matrices(&[2, 2, 2], 5)),
            make(false, matrices(&[2, 2, 2], 6)),
            make(true, matrices(&[20, 20], 7)).rough(),
            make(true, matrices(&[3, 3], 8).cast(DType::F32)).rough(),
            make(true, complex_matrices(&[2, 2], 9)),
            make(false, complex_matrices(&[3, 3], 10)),
            make(true, complex_matrices(&[2, 2], 11).cast(DType::C64)).rough(),
            make(true, array(&[2, 2], vec![f64::NAN, 1.0, 1.0, 1.0])).rough(),
            make(true, matrices(&[0, 0], 1)),
            make(true, matrices(&[0, 2, 2], 1)),
        ]
    }
}

fn decomposed<T: Field>(a: &Concrete, vectors: bool) -> Result<Outputs> {
    let [count, n, _] = sizes(a);
    let mut values = zeroed::<T::Part>(count * n)?;
    let mut out = zeroed::<T>(if vectors { count * n * n } else { 0 })?;
    let (mut s, mut u) = (zeroed::<T>(n)?, zeroed::<T>(if vectors { n * n } else { 0 })?);
    let want = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    // The library counts on a row.
    let need =
        if n == 0 { StackReq::EMPTY } else { self_adjoint_evd_scratch::<T>(n, want, Par::Seq, Default::default()) };
    let mut memory = scratch(need)?;
    let mut matrices = a.try_to_vec::<T>()?;
    for (i, a) in each_mut(&mut matrices, n * n).enumerate() {
        real_diagonal(a, n);
        let finite = all_finite(a);
        // What is not read does not count.
        let power = excess(a.chunks_exact(n).enumerate().flat_map(|(i, row)| &row[..=i]));
        rescale(a, -power);
        let fine = finite && {
            let columns = vectors.then(|| columns_of(&mut u, n, n));
            let stack = MemStack::new(&mut memory);
            let diagonal = DiagMut::from_slice_mut(&mut s);
            self_adjoint_evd(rows_of(a, n, n), diagonal, columns, Par::Seq, stack, Default::default()).is_ok()
        };
        if !fine {
            s.fill(T::NAN);
            u.fill(T::NAN);
        }
        rescale(&mut s, power);
        values[i * n..(i + 1) * n].iter_mut().zip(&s).for_each(|(to, v)| *to = v.part());
        if vectors {
            unit_phase(&mut u, n, |_, _| {});
            to_rows(&u, &mut out[i * n * n..(i + 1) * n * n], n, n);
        }
    }
    let shape = a.ty().shape().without(|axis| axis + 1 == a.dims().len());
    let values = Concrete::dense(Type::new(a.ty().dtype().real_part(), shape), values);
    let mut outputs: Outputs = smallvec::smallvec![values.into()];
    if vectors {
        outputs.push(Concrete::dense(a.ty().clone(), out).into());
    }
    Ok(outputs)
}
