//! Singular values and vectors.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::{Par, diag::DiagMut};

use super::plain::Field;
use super::{
    Scaled, adjoint, all_finite, behind, columns_of, complex_matrices, diagonal, dispatch_field, identity, in_front,
    matrices, matrix, number, rescale, rows_of, scratch, sizes, to_rows, turn, turned_back, unit_phase, zeroed,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::operand;
use crate::primitives::reduce::{array, elements};
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Limits, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::trace::bind_all;
use crate::types::{DType, Decision, Effects, Shape, Type};

/// `A = U·diag(s)·Vᴴ` of `[.., m, n]` matrices with `s` in descending order: U, s and Vᴴ, or `s` alone. Of each column of U the first component
/// that is at least half as large as its largest is real and positive. NaN if a number is not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Svd {
    /// Whether U and Vᴴ are square; otherwise they have as many columns and rows as there are singular values.
    pub full: bool,
    /// Whether vectors are wanted.
    pub vectors: bool,
}

impl Svd {
    const THIN: Svd = Svd { full: false, vectors: true };
}

impl Primitive for Svd {
    rules_of!("svd"; full, vectors);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let (ty, front, m, n) = matrix(infer, 0)?;
        let k = m.min(&n);
        let values = Type::new(ty.dtype().real_part(), behind(&front, &[&k]));
        let (columns, rows) = if self.full { (&m, &n) } else { (&k, &k) };
        Ok(match self.vectors {
            false => smallvec::smallvec![values],
            true => smallvec::smallvec![
                ty.with_shape(behind(&front, &[&m, columns])),
                values,
                ty.with_shape(behind(&front, &[rows, &n]))
            ],
        })
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        dispatch_field!(a.ty().dtype(), T => decomposed::<T>(a, *self))
    }

    /// With `D = Uᴴ·A_dot·V`: `s_dot` is its diagonal; off it the two halves of D and Dᴴ part by `s_j² − s_i²`. What `A_dot` has outside of
    /// the thin factors' range comes on top.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([a], [Some(a_dot)]) = (jvp.primals, jvp.tangents) else { return Ok(Derivative::Zero) };
        let (m, n) = (a.dim(-2), a.dim(-1));
        if self.full && self.vectors && m.equals(&n) != Decision::Yes {
            return Ok(Derivative::Missing(
                "the vectors that fill up a full decomposition are not unique; take the thin one",
            ));
        }
        // The derivative of singular values takes the vectors too.
        let outputs = bind_all(Op::new(Svd::THIN), std::slice::from_ref(a));
        let [u, s, vh] = &outputs[..] else { fail!(Rule, "has three results") };
        let (uh, v) = (adjoint(u), adjoint(vh));
        let d = uh.matmul(a_dot).matmul(&v);
        let s_dot = diagonal(&d).real();
        if !self.vectors {
            let tangents = smallvec::smallvec![Some(s_dot)];
            return Ok(Derivative::Whole { outputs: smallvec::smallvec![s.clone()], tangents });
        }
        let (row, column, dtype) = (s.expand_dims(-2), s.expand_dims(-1), a.dtype());
        let on = identity(&s.dim(-1), DType::Bool);
        let (zero, one) = (number(0.0, s.dtype()), number(1.0, s.dtype()));
        // s_j / ((s_j + s_i)(s_j − s_i)) keeps the digits that the difference of squares loses; one quotient after the other, since the product leaves the
        // range of numbers long before they do.
        let (sum, apart) = (on.select(&one, &row + &column), on.select(&one, &row - &column));
        let part = |s: &Array| on.select(&zero, s / &sum / &apart).cast(dtype);
        let (by_row, by_column, dh) = (part(&row), part(&column), adjoint(&d));
        let inverse = s.eq(&zero).select(&zero, &one / s).expand_dims(-2);
        let turning = on.select((&d - &dh) * number(0.5, dtype), number(0.0, dtype)) * inverse.cast(dtype);
        let mut u_dot = u.matmul(&(&by_row * &d + &by_column * &dh + turning));
        let mut v_dot = v.matmul(&(by_column * &d + by_row * dh));
        let over = (&one / &row).cast(dtype);
        if n.at_least(&m) != Decision::Yes {
            let moved = a_dot.matmul(&v);
            u_dot += (&moved - u.matmul(&uh.matmul(&moved))) * &over;
        }
        if m.at_least(&n) != Decision::Yes {
            let moved = adjoint(a_dot).matmul(u);
            v_dot += (&moved - v.matmul(&vh.matmul(&moved))) * &over;
        }
        let turns = turn(u, &u_dot);
        let (u_dot, v_dot) = (turned_back(u, &u_dot, &turns), turned_back(&v, &v_dot, &turns));
        let tangents = smallvec::smallvec![Some(u_dot), Some(s_dot), Some(adjoint(&v_dot))];
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
        super::limits(
            "singular vectors of equal singular values, or of zero, have no derivative; that of the values is there",
        )
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |full, vectors, a: Array| Sample::new(Op::new(Svd { full, vectors }), vec![a]);
        vec![
            make(false, true, matrices(&[1, 1], 1)),
            make(false, true, matrices(&[2, 2], 2)),
            make(true, true, matrices(&[2, 2], 3)),
            make(false, true, matrices(&[3, 2], 4)),
            make(false, true, matrices(&[2, 3], 5)),
            make(false, false, matrices(&[3, 3], 6)),
            make(false, false, matrices(&[2, 2, 3], 7)),
            make(false, true, matrices(&[2, 2, 2], 8)),
            make(true, true, matrices(&[3, 2], 9)),
            make(true, true, matrices(&[2, 3], 10)),
            make(false, true, matrices(&[20, 12], 11)).rough(),
            make(false, true, matrices(&[3, 2], 12).cast(DType::F32)).rough(),
            make(false, true, complex_matrices(&[2, 2], 13)),
            make(false, false, complex_matrices(&[2, 3], 14)),
            make(false, true, complex_matrices(&[2, 2], 15).cast(DType::C64)).rough(),
            make(false, true, array(&[2, 2], vec![f64::INFINITY, 1.0, 1.0, 1.0])).rough(),
            make(false, true, matrices(&[0, 0], 1)),
            make(false, true, matrices(&[3, 0], 1)),
            make(false, true, matrices(&[0, 2, 2], 1)),
        ]
    }
}

/// Decomposes matrices of one size, one after the other: the last is in `u`, `s` and `v`, vectors in columns. Singular values are to be taken times two to
/// the `power`.
pub(super) struct Decomposer<T> {
    sizes: [usize; 2],
    op: Svd,
    memory: MemBuffer,
    pub(super) u: Vec<T>,
    pub(super) s: Vec<T>,
    pub(super) v: Vec<T>,
    pub(super) power: i32,
    scaled: Scaled<T>,
}

impl<T: Field> Decomposer<T> {
    pub(super) fn new(m: usize, n: usize, op: Svd) -> Result<Decomposer<T>> {
        let k = m.min(n);
        let (columns, rows) = if op.full { (m, n) } else { (k, k) };
        let (of_u, of_v) = if op.vectors { (m * columns, rows * n) } else { (0, 0) };
        let want = match (op.vectors, op.full) {
            (false, _) => ComputeSvdVectors::No,
            (true, false) => ComputeSvdVectors::Thin,
            (true, true) => ComputeSvdVectors::Full,
        };
        // The library counts on an element.
        let need =
            if k == 0 { StackReq::EMPTY } else { svd_scratch::<T>(m, n, want, want, Par::Seq, Default::default()) };
        let (u, s, v) = (zeroed(of_u)?, zeroed(k)?, zeroed(of_v)?);
        Ok(Decomposer { sizes: [m, n], op, memory: scratch(need)?, u, s, v, power: 0, scaled: Scaled::new() })
    }

    pub(super) fn decompose(&mut self, given: &[T]) -> Result<()> {
        let Decomposer { sizes: [m, n], op, memory, u, s, v, power, scaled } = self;
        let (m, n, k) = (*m, *n, (*m).min(*n));
        if k == 0 {
            // Nothing to decompose: what fills up is the identity.
            u.iter_mut().step_by(m + 1).for_each(|v| *v = T::ONE);
            v.iter_mut().step_by(n + 1).for_each(|v| *v = T::ONE);
            return Ok(());
        }
        let a;
        (a, *power) = scaled.of(given)?;
        let fine = all_finite(a) && {
            let left = op.vectors.then(|| columns_of(u, m, if op.full { m } else { k }));
            let right = op.vectors.then(|| columns_of(v, n, if op.full { n } else { k }));
            let (stack, diagonal) = (MemStack::new(memory), DiagMut::from_slice_mut(s));
            svd(rows_of(a, m, n), diagonal, left, right, Par::Seq, stack, Default::default()).is_ok()
        };
        if !fine {
            s.fill(T::NAN);
            u.fill(T::NAN);
            v.fill(T::NAN);
        }
        Ok(())
    }
}

fn decomposed<T: Field>(a: &Concrete, op: Svd) -> Result<Outputs> {
    let [count, m, n] = sizes(a);
    let k = m.min(n);
    let (columns, rows) = if op.full { (m, n) } else { (k, k) };
    let mut one = Decomposer::<T>::new(m, n, op)?;
    let (of_u, of_v) = (one.u.len(), one.v.len());
    let (mut us, mut vs) = (zeroed::<T>(count * of_u)?, zeroed::<T>(count * of_v)?);
    let mut values = zeroed::<T::Part>(count * k)?;
    let (ty, a) = (a.ty(), elements::<T>(a)?);
    for i in 0..count {
        one.decompose(&a[i * m * n..(i + 1) * m * n])?;
        let Decomposer { u, s, v, power, .. } = &mut one;
        rescale(s, *power);
        values[i * k..(i + 1) * k].iter_mut().zip(s.iter()).for_each(|(to, v)| *to = v.part());
        if !op.vectors {
            continue;
        }
        // A pair turns together; vectors that fill up a full factor have no other.
        unit_phase(u, m, |j, turn| {
            if j < k {
                v[j * n..(j + 1) * n].iter_mut().for_each(|x| *x *= turn.conjugate());
            }
        });
        unit_phase(&mut v[k * n..], n, |_, _| {});
        to_rows(u, &mut us[i * of_u..(i + 1) * of_u], m, columns);
        // V in columns is Vᵀ in rows.
        let vh = &mut vs[i * of_v..(i + 1) * of_v];
        vh.iter_mut().zip(v.iter()).for_each(|(to, x)| *to = x.conjugate());
    }
    let of = |dims: &[usize], dtype: DType| {
        let front = ty.shape().iter().take(ty.rank() - 2).cloned(); // invariant: the type rule wants two axes
        Type::new(dtype, front.chain(dims.iter().map(|d| (*d).into())).collect::<Shape>())
    };
    let values = Concrete::dense(of(&[k], ty.dtype().real_part()), values);
    if !op.vectors {
        return Ok(smallvec::smallvec![values.into()]);
    }
    let u = Concrete::dense(of(&[m, columns], ty.dtype()), us);
    let vh = Concrete::dense(of(&[rows, n], ty.dtype()), vs);
    Ok(smallvec::smallvec![u.into(), values.into(), vh.into()])
}
