//! Householder's reflectors as LAPACK stores them: vectors below the diagonal, and a factor for each.

use gradus_core::control::{Steps, scan};
use gradus_core::error::Result;
use gradus_core::trace::trace_as_written;
use gradus_core::{Array, DType, Dim, Shape};

use super::elementwise::{convert, like, spread};
use super::shaping::{broadcast_in_dim, iota};

/// Rows and columns of matrices along the last two axes.
struct Frame {
    shape: Shape,
    rank: usize,
}

impl Frame {
    fn of(a: &Array) -> Frame {
        Frame { shape: a.shape().clone(), rank: a.rank() }
    }

    /// A number for each row, in every column.
    fn rows(&self, v: &Array) -> Array {
        broadcast_in_dim(v, &self.shape, &Vec::from_iter(0..self.rank - 1))
    }

    /// A number for each column, in every row.
    fn columns(&self, v: &Array) -> Array {
        let axes: Vec<usize> = (0..self.rank - 2).chain([self.rank - 1]).collect();
        broadcast_in_dim(v, &self.shape, &axes)
    }

    /// A number for each matrix, in every row.
    fn each_row(&self, v: &Array) -> Array {
        let shape = self.shape.without(|a| a == self.rank - 1);
        broadcast_in_dim(v, &shape, &Vec::from_iter(0..self.rank - 2))
    }

    fn row_numbers(&self) -> Array {
        iota(DType::I64, self.shape.without(|a| a == self.rank - 1), self.rank - 2)
    }
}

fn conj(x: &Array) -> Array {
    if x.dtype().is_complex() { x.conj() } else { x.clone() }
}

fn real(x: &Array) -> Array {
    if x.dtype().is_complex() { x.real() } else { x.clone() }
}

/// `H·A` for `H = I - tau·v·vᴴ`.
fn reflected(frame: &Frame, a: &Array, v: &Array, tau: &Array) -> Array {
    let along = (&frame.rows(&conj(v)) * a).sum_axes([-2]);
    a - &(&frame.rows(&(&frame.each_row(tau) * v)) * &frame.columns(&along))
}

fn last_two(a: &Array) -> (Dim, Dim) {
    (a.dim(-2), a.dim(-1))
}

/// The factors of `[.., m, n]` matrices: R from the diagonal on, the vectors of the reflectors below it; and their factors.
pub(super) fn decomposed(a: &Array) -> Result<(Array, Array)> {
    let (m, n) = last_two(a);
    let count = m.min(&n);
    let frame = Frame::of(a);
    let steps = iota(DType::I64, [count.clone()].into_iter().collect(), 0);
    let step_type = steps.ty()?.with_shape(Shape::scalar());
    let body = trace_as_written("reflect", &[Array::of_type(a.ty()?.clone()), Array::of_type(step_type)], |xs| {
        let [a, k] = xs else { return Ok(Vec::new()) };
        let numbered = iota(DType::I64, frame.shape.clone(), frame.rank - 1);
        let columns = numbered.eq(spread(k, &frame.shape));
        let column = columns.select(a, like(a, 0.0)).sum_axes([-1]);
        let numbers = frame.row_numbers();
        let at = spread(k, numbers.shape());
        let (here, below) = (numbers.eq(&at), numbers.gt(&at));
        let zero = like(&column, 0.0);
        let alpha = here.select(&column, &zero).sum_axes([-1]);
        let tail = below.select(&column, &zero);
        let rest = real(&(&tail * &conj(&tail))).sum_axes([-1]);
        let size = (&rest + &real(&(&alpha * &conj(&alpha)))).sqrt();
        let positive = real(&alpha).ge(like(&rest, 0.0));
        let beta = positive.select(&-&size, &size);
        // Nothing to reflect: the column is done as it is.
        let done = rest.eq(like(&rest, 0.0));
        let done = if a.dtype().is_complex() { done & alpha.imag().eq(like(&rest, 0.0)) } else { done };
        let safe = |x: &Array| done.select(like(x, 1.0), x);
        let beta_safe = safe(&beta);
        let wide_beta = convert(&beta_safe, a.dtype());
        let tau = done.select(like(&alpha, 0.0), &(&(&wide_beta - &alpha) / &wide_beta));
        let scale = safe(&(&alpha - &convert(&beta, a.dtype())));
        let v = &tail / &frame.each_row(&scale);
        let one = like(&column, 1.0);
        let v = here.select(&one, &v);
        // LAPACK applies the adjoint of the reflector. Columns before this one are done: below their diagonal stand vectors, which no reflector moves.
        let left = numbered.ge(spread(k, &frame.shape));
        let next = left.select(reflected(&frame, a, &v, &conj(&tau)), a);
        // Below the diagonal of this column stands the vector.
        let is_vector = &columns & &frame.rows(&below);
        let next = is_vector.select(frame.rows(&v), &next);
        Ok(vec![next, tau])
    })?;
    let made = scan(&body, std::slice::from_ref(a), &[steps], &count, false, 1, Steps::Keep)?;
    let [factors, taus] = made.as_slice() else { return Ok((a.clone(), a.clone())) };
    // The steps are in front, and belong to the end.
    Ok((factors.clone(), taus.move_axis(0, -1).ok()?))
}

/// The product of reflectors, applied to the first columns of the identity.
pub(super) fn product(a: &Array, taus: &Array) -> Result<Array> {
    let frame = Frame::of(a);
    let count = taus.dim(-1);
    let rows = iota(DType::I64, frame.shape.clone(), frame.rank - 2);
    let columns = iota(DType::I64, frame.shape.clone(), frame.rank - 1);
    let identity = rows.eq(&columns).select(like(a, 1.0), like(a, 0.0));
    let steps = iota(DType::I64, [count.clone()].into_iter().collect(), 0);
    let in_front = taus.move_axis(-1, 0).ok()?;
    let tau_type = in_front.ty()?.with_shape(in_front.shape().without(|a| a == 0));
    let step_type = steps.ty()?.with_shape(Shape::scalar());
    let specs = [a.ty()?.clone(), step_type, tau_type].map(Array::of_type);
    let body = trace_as_written("reflect", &specs, |xs| {
        let [q, k, tau] = xs else { return Ok(Vec::new()) };
        let here = columns.eq(spread(k, &frame.shape));
        let column = here.select(a, like(a, 0.0)).sum_axes([-1]);
        let numbers = frame.row_numbers();
        let at = spread(k, numbers.shape());
        let v = numbers.eq(&at).select(like(&column, 1.0), numbers.gt(&at).select(&column, like(&column, 0.0)));
        Ok(vec![reflected(&frame, q, &v, tau)])
    })?;
    let made = scan(&body, &[identity], &[steps, in_front], &count, true, 1, Steps::Keep)?;
    made.into_iter().next().unwrap_or_else(|| a.clone()).ok()
}
