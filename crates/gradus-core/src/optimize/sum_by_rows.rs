//! A sum over everything goes through rows where the program has such rows, if how many there are is known only at run time.
//!
//! A compiler that knows sizes can take in a sum over everything while it makes the rows, in the order of such sums, because it knows
//! where chunks end. Without, the sum of each row is something that the loop over rows makes anyway, and what is left is a sum of
//! a few numbers.

use rustc_hash::FxHashSet;

use super::nested::{Made, Nested, equations};
use super::{Exactness, applied};
use crate::error::Result;
use crate::primitives::Op;
use crate::primitives::reduce::{ReduceMax, ReduceSum};
use crate::program::{Atom, Program};
use crate::scalar::Half;
use crate::types::Dim;

/// Elements behind a reduced axis that a loop over rows still takes as points.
const FEW: usize = 16;

/// Splits sums; see the head of this file.
pub(super) fn by_rows(p: &Program, _: Exactness) -> Result<Program> {
    if p.is_symbolic() { Nested::run(p, &split) } else { Ok(p.clone()) }
}

fn split(p: &Program, nested: &Nested<'_>) -> Result<Program> {
    let rows = rows(p);
    equations(p, &mut |b, e, operands| {
        let Some(sum) = e.op().downcast::<ReduceSum>() else { return Ok(Made::As(nested.op(e.op())?)) };
        let ty = p.ty(p.operands(e)[0]);
        let (shape, last) = (ty.shape(), ty.rank().wrapping_sub(1));
        // Half floats are rounded once, at the end of the whole sum.
        if Half::of(ty.dtype()).is_some()
            || sum.axes.len() < 2
            || !sum.axes.contains(&last)
            || !rows.contains(&shape.to_vec())
        {
            return Ok(Made::As(e.op().clone()));
        }
        applied("a sum over everything goes through rows");
        let rest = sum.axes.iter().copied().filter(|a| *a != last).collect();
        let inner = b.equation(Op::new(ReduceSum { axes: vec![last] }), operands, e.place())?.result();
        let outer = b.equation(Op::new(ReduceSum { axes: rest }), &[inner.into()], e.place())?.result();
        Ok(Made::There(vec![Atom::from(outer)]))
    })
}

/// The dimensions of what is reduced along rows, the last of them the row.
fn rows(p: &Program) -> FxHashSet<Vec<Dim>> {
    let mut rows = FxHashSet::default();
    for e in p.equations() {
        let axes = match (e.op().downcast::<ReduceSum>(), e.op().downcast::<ReduceMax>()) {
            (Some(r), _) => &r.axes,
            (_, Some(r)) => &r.axes,
            _ => continue,
        };
        let shape = p.ty(p.operands(e)[0]).shape();
        if let [axis] = axes[..]
            && shape.is_symbolic()
        {
            let behind = shape[axis + 1..].iter().try_fold(1usize, |n, d| n.checked_mul(d.as_usize()?));
            if behind.is_some_and(|n| n <= FEW) {
                rows.insert(shape[..=axis].to_vec());
            }
        }
    }
    rows
}
