//! Triangular factors with rows in the order of their pivots.

use faer::Par;
use faer::dyn_stack::MemStack;
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};

use super::plain::{self, Field, PLAIN};
use super::{
    TriangularSolve, behind, columns_of, complex_matrices, dispatch_field, each_mut, identity, in_front, matrices,
    matrix, number, rows_at, scratch, sizes, small, to_columns, to_rows, zeroed,
};
use crate::array::{Array, Concrete, collected};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::operand;
use crate::primitives::reduce::{array, fits_places, wave};
use crate::primitives::shaping::fit;
use crate::primitives::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::types::{DType, Dim, Effects, Shape, Type};

/// `P·A = L·U` of `[.., m, n]` matrices: both factors in one, L (ones on its diagonal) below the diagonal and U from it on; which row was
/// exchanged with row `i` in step `i`; and the row of A that stands in row `i` of `P·A`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lu;

impl Primitive for Lu {
    rules_of!("lu");

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let (ty, front, rows, columns) = matrix(infer, 0)?;
        fits_places(&rows, DType::I32, &ty)?;
        let pivots = Type::new(DType::I32, behind(&front, &[&rows.min(&columns)]));
        let order = Type::new(DType::I32, behind(&front, &[&rows]));
        Ok(smallvec::smallvec![ty, pivots, order])
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        dispatch_field!(a.ty().dtype(), T => factors::<T>(a))
    }

    /// With `Y = L⁻¹·P·A_dot` and S the part of `Y·U⁻¹` below its diagonal, `L_dot = L·S` and `U_dot = Y − S·U`. S has no use for the last
    /// pivot of a matrix that is not tall, which may be zero.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([Some(a_dot)], [lu, _, order]) = (jvp.tangents, jvp.outputs()) else { return Ok(Derivative::Zero) };
        let (m, n, dtype) = (lu.dim(-2), lu.dim(-1), lu.dtype());
        // Square, with zeros and then ones on the diagonal where rows or columns are missing.
        let l = sized(&lu.tril(-1), &m, &m) + identity(&m, dtype);
        let u = sized(&lu.triu(0), &n, &n);
        let place = Array::iota(DType::I64, [n.clone()].into_iter().collect::<Shape>(), 0);
        let unused = identity(&n, DType::Bool) & place.ge(Array::from_dim(&(m - 1usize), DType::I64));
        let left = TriangularSolve::lower().unit().of(&l, &rows_at(a_dot, order));
        let divisor = unused.select(number(1.0, dtype), &u);
        let x = TriangularSolve::upper().transposed().of(&divisor, &left.swap_axes(-1, -2)).swap_axes(-1, -2);
        let below = x.tril(-1);
        let lu_dot = l.matmul(&below) + (left - below.matmul(&u)).triu(0);
        Ok(Derivative::Tangents(smallvec::smallvec![Some(fit(lu_dot, lu.shape())), None, None]))
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        in_front(batch, Op::fixed(&Lu))
    }

    fn expand(&self, operands: &[Type]) -> Option<Expansion<'_>> {
        let n = small::size(operands)?;
        Some(Box::new(move |inputs| {
            let [a] = inputs else { fail!(Verify, "takes one operand") };
            Ok(small::lu(a, n))
        }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |a: Array| Sample::new(Op::fixed(&Lu), vec![a]);
        // The largest of a column is not on the diagonal.
        let turned = |dims: &[usize], seed| matrices(dims, seed).flip(-2);
        vec![
            make(matrices(&[1, 1], 1)),
            make(matrices(&[2, 2], 2)),
            make(turned(&[3, 3], 3)),
            make(turned(&[3, 2], 4)),
            make(matrices(&[2, 3], 5)),
            make(turned(&[2, 3, 3], 6)),
            make(turned(&[9, 9], 7)).rough(),
            make(turned(&[20, 20], 8)).rough(),
            make(turned(&[3, 3], 9).cast(DType::F32)).rough(),
            make(complex_matrices(&[2, 2], 10).flip(-2)),
            make(complex_matrices(&[2, 2, 2], 11).cast(DType::C64)).rough(),
            // Singular: a pivot is zero.
            make(array(&[3, 3], vec![1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 1.0, 0.0, 0.0])).rough(),
            make(array(&[2, 2], vec![0.0; 4])).rough(),
            make(wave(&[0, 0], 1)),
            make(wave(&[3, 0], 1)),
            make(wave(&[0, 2, 2], 1)),
        ]
    }
}

/// A matrix cut off or filled up with zeros to a size.
fn sized(x: &Array, rows: &Dim, columns: &Dim) -> Array {
    let zero = Dim::from(0usize);
    let front = (0..x.rank().saturating_sub(2)).map(|_| (zero.clone(), zero.clone()));
    let counts: Vec<(Dim, Dim)> =
        front.chain([(zero.clone(), rows - x.dim(-2)), (zero.clone(), columns - x.dim(-1))]).collect();
    if counts.iter().all(|(_, high)| high.constant() == Some(0)) {
        x.clone()
    } else {
        x.pad(&counts, number(0.0, x.dtype()))
    }
}

fn factors<T: Field>(a: &Concrete) -> Result<Outputs> {
    let [count, m, n] = sizes(a);
    // Once more: the type rule may have seen a symbolic dimension.
    fits_places(&Dim::from(m), DType::I32, a.ty())?;
    let mut out = a.try_to_vec::<T>()?;
    let (mut order, k) = (zeroed::<u64>(count * m)?, m.min(n));
    let mut pivots = zeroed::<i32>(count * k)?;
    // A matrix without columns has an order all the same.
    order.iter_mut().enumerate().for_each(|(i, o)| *o = (i % m.max(1)) as u64);
    let mut factor = Factor::new(m, n)?;
    for (b, a) in each_mut(&mut out, m * n).enumerate() {
        let rows = factor.in_place(a)?;
        exchanges(rows, &mut pivots[b * k..(b + 1) * k])?;
        order[b * m..(b + 1) * m].iter_mut().zip(rows).for_each(|(o, &r)| *o = r as u64);
    }
    let front = || a.dims().iter().take(a.dims().len().saturating_sub(2)).copied();
    let ints = |size: usize, values: Vec<i32>| -> Array {
        Concrete::dense(Type::new(DType::I32, front().chain([size]).collect::<Shape>()), values).into()
    };
    let order = collected(order.len(), order.iter().map(|&o| o as i32))?;
    Ok(smallvec::smallvec![Concrete::dense(a.ty().clone(), out).into(), ints(k, pivots), ints(m, order)])
}

/// Which rows were exchanged one after the other so that rows came into this order.
fn exchanges(order: &[usize], pivots: &mut [i32]) -> Result<()> {
    let mut now = collected(order.len(), 0..order.len())?;
    let mut place = collected(order.len(), 0..order.len())?;
    for (k, pivot) in pivots.iter_mut().enumerate() {
        let (row, at) = (order[k], place[order[k]]);
        *pivot = at as i32;
        let other = now[k];
        now.swap(k, at);
        place[row] = k;
        place[other] = at;
    }
    Ok(())
}

/// Factors matrices of one size, one after the other.
pub(super) struct Factor<T> {
    rows: usize,
    columns: usize,
    work: Vec<T>,
    order: Vec<usize>,
    inverse: Vec<usize>,
}

impl<T: Field> Factor<T> {
    pub(super) fn new(rows: usize, columns: usize) -> Result<Factor<T>> {
        let large = rows.min(columns) > PLAIN;
        let order = collected(rows, 0..rows)?;
        let work = if large { zeroed(rows * columns)? } else { Vec::new() };
        Ok(Factor { rows, columns, work, inverse: order.clone(), order })
    }

    /// The factors in the place of the matrix; the order of its rows.
    pub(super) fn in_place(&mut self, a: &mut [T]) -> Result<&[usize]> {
        let (m, n) = (self.rows, self.columns);
        if self.work.is_empty() {
            plain::lu(a, m, n, &mut self.order);
            return Ok(&self.order);
        }
        to_columns(a, &mut self.work, m, n);
        let params = Default::default();
        let mut memory = scratch(lu_in_place_scratch::<usize, T>(m, n, Par::Seq, params))?;
        let stack = MemStack::new(&mut memory);
        lu_in_place(columns_of(&mut self.work, m, n), &mut self.order, &mut self.inverse, Par::Seq, stack, params);
        // A pivot of zero is divided by there; the loop does what LAPACK does.
        let fine = |v: &T| v.finite() && *v != T::default();
        if self.work.iter().step_by(m + 1).take(m.min(n)).all(fine) {
            to_rows(&self.work, a, m, n);
        } else {
            plain::lu(a, m, n, &mut self.order);
        }
        Ok(&self.order)
    }
}
