//! Orthonormal columns times an upper triangle.

use faer::Par;
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply_reflections,
};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};

use super::plain::Field;
use super::{
    TriangularSolve, adjoint, behind, columns_of, complex_matrices, dispatch_field, excess, identity, in_front,
    matrices, matrix, number, rescale, rows_of, scratch, sizes, to_columns, to_rows, zeroed,
};
use crate::array::{Array, Concrete};
use crate::error::Result;
use crate::primitives::elementwise::kernel::operand;
use crate::primitives::reduce::elements;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Limits, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::types::{DType, Decision, Dim, Effects, Shape};

/// `A = Q·R` of `[.., m, n]` matrices, by Householder's reflections. R's diagonal is real; as with LAPACK it may be negative for real matrices. Of
/// complex ones it is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Qr {
    /// Whether Q is square; otherwise it has as many columns as R has rows, the lesser of m and n.
    pub full: bool,
}

impl Primitive for Qr {
    rules_of!("qr"; full);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let (ty, front, m, n) = matrix(infer, 0)?;
        let k = if self.full { m.clone() } else { m.min(&n) };
        Ok(smallvec::smallvec![ty.with_shape(behind(&front, &[&m, &k])), ty.with_shape(behind(&front, &[&k, &n]))])
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        dispatch_field!(a.ty().dtype(), T => factors::<T>(a, self.full))
    }

    /// With `C = Qᴴ·A_dot·R⁻¹` (of the first columns, as many as R has rows) and the skew S that has the part of C below its diagonal:
    /// `R_dot = Qᴴ·A_dot − S·R`, and `Q_dot = Q·S` with what `A_dot` has outside of Q's range. The diagonals of complex factors stay real.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([Some(a_dot)], [q, r]) = (jvp.tangents, jvp.outputs()) else { return Ok(Derivative::Zero) };
        let (m, n, dtype) = (a_dot.dim(-2), a_dot.dim(-1), r.dtype());
        let spanning = n.at_least(&m) == Decision::Yes;
        if self.full && !spanning {
            return Ok(Derivative::Missing("the columns that fill up a full Q are not unique; take the thin factors"));
        }
        let rows = r.dim(-2);
        let mut divisor = first_columns(r, &rows);
        if spanning && !dtype.is_complex() {
            // The part below the diagonal has no use for the last pivot, which may be zero.
            let place = Array::iota(DType::I64, [rows.clone()].into_iter().collect::<Shape>(), 0);
            let last = identity(&rows, DType::Bool) & place.eq(Array::from_dim(&(&rows - 1usize), DType::I64));
            divisor = last.select(number(1.0, dtype), divisor);
        }
        let first = first_columns(a_dot, &rows).swap_axes(-1, -2);
        let over_r = TriangularSolve::upper().transposed().of(&divisor, &first).swap_axes(-1, -2);
        let c = adjoint(q).matmul(&over_r);
        let below = c.tril(-1);
        let mut skew = &below - adjoint(&below);
        if dtype.is_complex() {
            let phase = Array::complex(&c.real().zeros_like(), &c.imag());
            skew += identity(&rows, DType::Bool).select(phase, number(0.0, dtype));
        }
        let mut q_dot = q.matmul(&skew);
        if !spanning {
            q_dot += &over_r - q.matmul(&c);
        }
        let r_dot = (adjoint(q).matmul(a_dot) - skew.matmul(r)).triu(0);
        Ok(Derivative::Tangents(smallvec::smallvec![Some(q_dot), Some(r_dot)]))
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
        super::limits("where columns depend on each other the factors have no derivative")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |full, a: Array| Sample::new(Op::new(Qr { full }), vec![a]);
        vec![
            make(false, matrices(&[1, 1], 1)),
            make(false, matrices(&[2, 2], 2)),
            make(true, matrices(&[2, 2], 3)),
            make(false, matrices(&[3, 2], 4)),
            make(false, matrices(&[2, 3], 5)),
            make(true, matrices(&[2, 3], 6)),
            make(true, matrices(&[3, 2], 7)),
            make(false, matrices(&[2, 3, 2], 8)),
            make(false, matrices(&[20, 12], 9)).rough(),
            make(false, matrices(&[3, 3], 10).cast(DType::F32)).rough(),
            make(false, complex_matrices(&[2, 2], 11)),
            make(false, complex_matrices(&[3, 2], 12).cast(DType::C64)).rough(),
            make(false, matrices(&[0, 0], 1)),
            make(false, matrices(&[3, 0], 1)),
            make(false, matrices(&[0, 2, 2], 1)),
        ]
    }
}

/// As many columns as there are rows in R.
fn first_columns(x: &Array, count: &Dim) -> Array {
    if x.dim(-1) == *count {
        return x.clone();
    }
    let zero = Dim::from(0usize);
    let front = (0..x.rank().saturating_sub(1)).map(|_| (zero.clone(), zero.clone()));
    let counts: Vec<(Dim, Dim)> = front.chain([(zero.clone(), count - x.dim(-1))]).collect();
    x.pad(&counts, number(0.0, x.dtype()))
}

fn factors<T: Field>(a: &Concrete, full: bool) -> Result<Outputs> {
    let [count, m, n] = sizes(a);
    let (least, k) = (m.min(n), if full { m } else { m.min(n) });
    let (mut qs, mut rs) = (zeroed::<T>(count * m * k)?, zeroed::<T>(count * k * n)?);
    let (mut work, mut q) = (zeroed::<T>(m * n)?, zeroed::<T>(m * k)?);
    let block = recommended_block_size::<T>(m, n).max(1);
    let mut coefficients = zeroed::<T>(block * least)?;
    let need = qr_in_place_scratch::<T>(m, n, block, Par::Seq, Default::default()).or(apply_scratch::<T>(m, block, k));
    let mut memory = scratch(if least == 0 { StackReq::EMPTY } else { need })?;
    let (ty, a) = (a.ty(), elements::<T>(a)?);
    for i in 0..count {
        let r = &mut rs[i * k * n..(i + 1) * k * n];
        q.fill(T::default());
        q.iter_mut().step_by(m + 1).take(k).for_each(|v| *v = T::ONE);
        if least > 0 {
            to_columns(&a[i * m * n..(i + 1) * m * n], &mut work, m, n);
            let power = excess(&work);
            rescale(&mut work, -power);
            let reflections = columns_of(&mut coefficients, block, least);
            let stack = MemStack::new(&mut memory);
            qr_in_place(columns_of(&mut work, m, n), reflections, Par::Seq, stack, Default::default());
            for (j, column) in work.chunks_exact(m).enumerate() {
                for (row, v) in column[..m.min(j + 1)].iter().enumerate() {
                    r[row * n + j] = *v;
                }
            }
            // What lies in columns is the transpose of the same in rows.
            let basis = rows_of(&work, n, m).transpose().subcols(0, least);
            let factors = rows_of(&coefficients, least, block).transpose();
            let stack = MemStack::new(&mut memory);
            apply_reflections(basis, factors, faer::Conj::No, columns_of(&mut q, m, k), Par::Seq, stack);
            if T::DTYPE.is_complex() {
                positive_diagonal(&mut q, r, m, n, least);
            }
            rescale(r, power);
        }
        to_rows(&q, &mut qs[i * m * k..(i + 1) * m * k], m, k);
    }
    let of = |dims: [usize; 2]| {
        let front = ty.shape().iter().take(ty.rank() - 2).cloned(); // invariant: the type rule wants two axes
        ty.with_shape(front.chain(dims.map(Dim::from)).collect::<Shape>())
    };
    Ok(smallvec::smallvec![Concrete::dense(of([m, k]), qs).into(), Concrete::dense(of([k, n]), rs).into()])
}

/// Moves the phases of R's diagonal into Q (in columns).
fn positive_diagonal<T: Field>(q: &mut [T], r: &mut [T], m: usize, n: usize, least: usize) {
    for i in 0..least {
        let turn = r[i * n + i].phase();
        r[i * n..(i + 1) * n].iter_mut().for_each(|v| *v *= turn.conjugate());
        r[i * n + i] = T::of_part(r[i * n + i].part());
        q[i * m..(i + 1) * m].iter_mut().for_each(|v| *v *= turn);
    }
}
