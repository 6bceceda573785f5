//! Rows that are picked from what was computed: picked before, less is computed; and a transpose below a pick meets those that cancel it.

use super::kinds::reduction;
use super::rewrite::{Piece, Rewrite, Rule, Site, Steps, by};
use super::shapes::{broadcast_sources, is_repeated};
use crate::primitives::Op;
use crate::primitives::dot::DotGeneral;
use crate::primitives::index::{Bounds, Gather};
use crate::primitives::shaping::{Broadcast, Permute, Reshape};
use crate::program::Atom;
use crate::types::{Dim, Shape};

pub(super) const RULES: &[Rule] = &[
    |s| by("a pick from one number everywhere = that number", of_number(s)),
    |s| by("rows of (transpose x) = transpose (rows of x)", of_transpose(s)),
    |s| by("rows of (broadcast x) = broadcast x or (rows of x)", of_broadcast(s)),
    |s| by("rows of (elementwise a b) = elementwise (rows of a) (rows of b), if they are fewer", of_elementwise(s)),
    |s| by("rows of (dot a b) = dot (rows of a) b, if they are fewer", of_dot(s)),
    |s| by("rows of (reduce x) = reduce (rows of x), if they are fewer", of_reduction(s)),
];

/// A product of longer sums is computed on rows that are picked if they are at most half of all, or if what it saves is more than what it takes to copy the rows.
const SHORT_SUM: i64 = 16;
/// A number is copied while so many products of numbers are added up.
const COPIED: i64 = 32;

/// A gather that picks whole rows by an array of indices, with its axes where that of the rows was. If there are several, rows are picked by a vector of them, and
/// the axis is divided at the end.
struct Rows {
    axis: usize,
    indices: Atom,
    /// The axes of the indices.
    axes: usize,
    /// How many are picked.
    count: Dim,
}

impl Rows {
    fn of(s: &Site<'_>) -> Option<Rows> {
        let g = s.op.downcast::<Gather>()?;
        let x = s.ty(0)?.shape();
        let [axis] = g.collapsed_dims[..] else { return None };
        let whole = (0..x.rank()).all(|a| a == axis || g.sizes.get(a) == x.get(a));
        let indices = s.ty(1)?.shape();
        let axes = indices.rank().checked_sub(1)?;
        let others = (0..x.rank()).filter(|a| *a != axis);
        let in_place =
            axes > 0 && g.offset_dims.iter().copied().eq(others.map(|a| if a < axis { a } else { a + axes - 1 }));
        let fits = g.index_map == [axis] && g.operand_batch_dims.is_empty();
        // Of rows out of range nothing is computed.
        (whole && in_place && fits && g.bounds == Bounds::Clip).then(|| Rows {
            axis,
            indices: s.operands[1],
            axes,
            count: indices[..axes].iter().fold(Dim::from(1usize), |n, d| n * d),
        })
    }

    /// The shape of what is picked by a vector.
    fn flat(&self, shape: &Shape) -> Shape {
        if self.axes == 1 {
            return shape.clone();
        }
        let (before, behind) = (&shape[..self.axis], &shape[self.axis + self.axes..]);
        before.iter().chain([&self.count]).chain(behind).cloned().collect()
    }

    /// The end of a rewriting: what was picked by a vector, with the axes of the indices.
    fn finish(&self, mut steps: Steps, s: &Site<'_>) -> Option<Rewrite> {
        if self.axes > 1 {
            let last = steps.last()?;
            steps.push(Op::new(Reshape { shape: s.result.shape().clone() }), vec![last]);
        }
        steps.finish()
    }

    /// The same rows of another array, along one of its axes.
    fn pick(&self, steps: &mut Steps, x: Piece, shape: &Shape, axis: usize) -> Piece {
        let gather = Gather {
            offset_dims: (0..shape.rank()).filter(|a| *a != axis).collect(),
            collapsed_dims: vec![axis],
            operand_batch_dims: vec![],
            index_batch_dims: vec![],
            index_map: vec![axis],
            sizes: shape.replaced(axis, Dim::from(1usize)),
            bounds: Bounds::Clip,
        };
        let indices = match self.axes {
            1 => Piece::Atom(self.indices),
            _ => {
                let shape = Shape::from(vec![self.count.clone(), Dim::from(1usize)]);
                steps.push(Op::new(Reshape { shape }), vec![self.indices.into()])
            }
        };
        steps.push(Op::new(gather), vec![x, indices])
    }

    /// Whether the sums that need not be made, so many for each row, take longer than it takes to copy the rows that are picked.
    fn save(&self, s: &Site<'_>, sums: i64) -> bool {
        let all = s.ty(0).and_then(|ty| ty.shape().get(self.axis)).and_then(Dim::constant);
        let fits = |(all, n): (i64, i64)| (all - n).saturating_mul(sums) >= n.saturating_mul(COPIED);
        all.zip(self.count.constant()).is_some_and(fits)
    }

    /// Whether less is computed if they are picked before: they are at most `1/times` of all, and others who need all may compute them once more.
    fn are_fewer(&self, s: &Site<'_>, times: i64) -> bool {
        let all = s.ty(0).and_then(|ty| ty.shape().get(self.axis)).and_then(Dim::constant);
        let uses = s.operands[0].value().and_then(|v| s.uses.get(v.index()).copied()).unwrap_or(u32::MAX);
        let share = if uses == 1 { times } else { 2 * i64::from(uses) };
        all.zip(self.count.constant()).is_some_and(|(all, n)| n < all && n.saturating_mul(share) <= all)
    }
}

/// Whatever is picked, it is that number: no index is out of range.
fn of_number(s: &Site<'_>) -> Option<Rewrite> {
    let g = s.op.downcast::<Gather>()?;
    let number = s.builder.program().constant(s.operands[0])?.splat_value()?;
    let some = s.ty(0)?.shape().iter().all(|d| d.constant().is_some_and(|n| n > 0));
    (some && g.bounds == Bounds::Clip).then_some(Rewrite::Splat(number))
}

fn of_transpose(s: &Site<'_>) -> Option<Rewrite> {
    let rows = Rows::of(s).filter(|rows| rows.axes == 1 || rows.are_fewer(s, 1))?;
    let (op, operands) = s.definition(0)?;
    let Permute { axes } = op.downcast()?;
    let mut steps = Steps::default();
    let picked = rows.pick(&mut steps, operands[0].into(), s.shape_of(operands[0]), axes[rows.axis]);
    steps.push(Op::new(Permute { axes: axes.clone() }), vec![picked]);
    rows.finish(steps, s)
}

fn of_broadcast(s: &Site<'_>) -> Option<Rewrite> {
    let rows = Rows::of(s).filter(|rows| rows.axes == 1 || rows.are_fewer(s, 1))?;
    let (op, operands) = s.definition(0)?;
    let view = op.downcast::<Broadcast>()?;
    let x = s.shape_of(operands[0]);
    let mut steps = Steps::default();
    let mut value = Piece::Atom(operands[0]);
    let sources = broadcast_sources(view);
    if let Some(axis) = sources[rows.axis]
        && !is_repeated(view, &sources, x, rows.axis)
    {
        value = rows.pick(&mut steps, value, x, axis);
    }
    steps.push(Op::new(Broadcast { shape: rows.flat(s.result.shape()), axes: view.axes.clone() }), vec![value]);
    rows.finish(steps, s)
}

fn of_elementwise(s: &Site<'_>) -> Option<Rewrite> {
    let rows = Rows::of(s)?;
    let (op, operands) = s.definition(0)?;
    if !op.is_elementwise() || !op.is_total() || !rows.are_fewer(s, 1) {
        return None;
    }
    let mut steps = Steps::default();
    let mut values = Vec::with_capacity(operands.len());
    for &a in operands {
        let ty = s.builder.ty(a);
        values.push(match s.builder.program().constant(a).and_then(|c| c.splat_value()) {
            Some(number) => Piece::Splat(ty.with_shape(rows.flat(s.result.shape())), number),
            None => rows.pick(&mut steps, a.into(), ty.shape(), rows.axis),
        });
    }
    steps.push(op.clone(), values);
    rows.finish(steps, s)
}

fn of_dot(s: &Site<'_>) -> Option<Rewrite> {
    let rows = Rows::of(s)?;
    let (op, operands) = s.definition(0)?;
    let dot = op.downcast::<DotGeneral>()?;
    let shapes = [s.shape_of(operands[0]), s.shape_of(operands[1])];
    let summed = dot.lhs_contract.iter().try_fold(1i64, |n, a| n.checked_mul(shapes[0].get(*a)?.constant()?))?;
    let sides = [(&dot.lhs_contract, &dot.lhs_batch), (&dot.rhs_contract, &dot.rhs_batch)];
    let free = |side: usize| -> Vec<usize> {
        let (contract, batch) = sides[side];
        (0..shapes[side].rank()).filter(|a| !contract.contains(a) && !batch.contains(a)).collect()
    };
    let shared = dot.lhs_batch.len();
    let own = free(0).len();
    // Which axis of which operand the rows are; of a shared one, both.
    let along = match rows.axis {
        a if a < shared => [Some(dot.lhs_batch[a]), Some(dot.rhs_batch[a])],
        a if a < shared + own => [Some(free(0)[a - shared]), None],
        a => [None, Some(*free(1).get(a - shared - own)?)],
    };
    // How many sums each row is a part of.
    let sums = match along {
        [Some(_), Some(_)] => Some(0),
        [Some(_), None] => free(1).iter().try_fold(1i64, |n, a| n.checked_mul(shapes[1].get(*a)?.constant()?)),
        _ => free(0).iter().try_fold(1i64, |n, a| n.checked_mul(shapes[0].get(*a)?.constant()?)),
    };
    let short = summed <= SHORT_SUM || sums.is_some_and(|sums| rows.save(s, sums));
    if !rows.are_fewer(s, if short { 1 } else { 2 }) {
        return None;
    }
    let mut steps = Steps::default();
    let mut values = Vec::with_capacity(2);
    for (side, axis) in along.into_iter().enumerate() {
        let value = Piece::Atom(operands[side]);
        values.push(match axis {
            Some(axis) => rows.pick(&mut steps, value, shapes[side], axis),
            None => value,
        });
    }
    steps.push(op.clone(), values);
    rows.finish(steps, s)
}

/// The order of a float sum may change.
fn of_reduction(s: &Site<'_>) -> Option<Rewrite> {
    let rows = Rows::of(s)?;
    let (op, operands) = s.definition(0)?;
    let (_, axes) = reduction(op)?;
    if !rows.are_fewer(s, 2) {
        return None;
    }
    let x = s.shape_of(operands[0]);
    let axis = (0..x.rank()).filter(|a| !axes.contains(a)).nth(rows.axis)?;
    let mut steps = Steps::default();
    let picked = rows.pick(&mut steps, operands[0].into(), x, axis);
    steps.push(op.clone(), vec![picked]);
    rows.finish(steps, s)
}
