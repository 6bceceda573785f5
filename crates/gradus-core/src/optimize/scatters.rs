//! Scatters: one number says where a window goes, and what several put into arrays of zeros of whole numbers that are added up goes into one array.

use super::rewrite::{Piece, Rewrite, Rule, Site, Steps, by};
use crate::primitives::Op;
use crate::primitives::convert::Convert;
use crate::primitives::elementwise::{Add, And, Compare, Direction, Mul, Select};
use crate::primitives::index::{Scatter, ScatterKind};
use crate::primitives::shaping::{Concatenate, Reshape, Slice};
use crate::program::Atom;
use crate::types::{DType, Dim, Scalar, Shape, Type};

/// Whole numbers that are added to an array of zeros go into what that is added to.
pub(super) const SUMS: &[Rule] = &[|s| by("x + (scatter_add 0 i u) = scatter_add x i u", into_sum(s))];

/// Index vectors of one number.
pub(super) const PLACES: &[Rule] =
    &[|s| by("a scatter by several indices = a scatter by one into their axes as one", by_one_index(s))];

/// So many scatters one into the other are looked at.
const DEEPEST: usize = 16;

/// A scatter that adds: its operation, indices and updates.
type Link<'a> = (&'a Op, Atom, Atom);

/// One array where each had its own. Of whole numbers alone: floats would be added up in another order than the one that is written. Derivatives put what they add up
/// into one array from the start.
fn into_sum(s: &Site<'_>) -> Option<Rewrite> {
    if !s.op.is::<Add>() || !s.dtype().is_int() {
        return None;
    }
    [(0, 1), (1, 0)].into_iter().find_map(|(sum, other)| {
        let (sum, links) = (s.operands[sum], links(s, s.operands[other])?);
        let mut steps = Steps::default();
        let last = links.into_iter().rev().fold(Piece::Atom(sum), |into, (op, indices, updates)| {
            steps.push(op.clone(), vec![into, indices.into(), updates.into()])
        });
        drop(last);
        steps.finish()
    })
}

/// The scatters that made an array of zeros into a value, the last first, if nobody else sees what is between them.
fn links<'a>(s: &Site<'a>, mut atom: Atom) -> Option<Vec<Link<'a>>> {
    let mut all = Vec::new();
    while all.len() < DEEPEST {
        if !all.is_empty() && is_zero(s, atom) {
            return Some(all);
        }
        let once = s.uses.get(atom.value()?.index()) == Some(&1);
        let (op, operands) = s.definition_of(atom).filter(|_| once)?;
        op.downcast::<Scatter>().filter(|scatter| scatter.kind == ScatterKind::Add)?;
        all.push((op, operands[1], operands[2]));
        atom = operands[0];
    }
    None
}

/// Whether a value is 0 everywhere, and not -0.
fn is_zero(s: &Site<'_>, atom: Atom) -> bool {
    let number = s.builder.program().constant(atom).and_then(|c| c.splat_value());
    number.is_some_and(|n| n == Scalar::zero(n.dtype()))
}

/// The axes that indices count along as one, if they lie side by side: then a place is one number, and it is found out of range once.
fn by_one_index(s: &Site<'_>) -> Option<Rewrite> {
    let scatter = s.op.downcast::<Scatter>()?;
    let (x, indices) = (s.ty(0)?, s.ty(1)?);
    let k = scatter.index_map.len();
    let mut axes = scatter.index_map.clone();
    axes.sort_unstable();
    let first = *axes.first()?;
    let beside = axes.iter().enumerate().all(|(c, a)| *a == first + c);
    if k < 2 || !beside || scatter.inserted_dims != axes || !scatter.operand_batch_dims.is_empty() {
        return None;
    }
    // What only u64 can hold is beyond all axes, and would come back as something else.
    if !indices.dtype().is_int() || indices.dtype() == DType::U64 {
        return None;
    }
    let dims: Vec<i64> = axes.iter().map(|a| x.shape()[*a].constant()).collect::<Option<_>>()?;
    let whole = dims.iter().try_fold(1i64, |n, d| n.checked_mul(*d)).filter(|n| *n > 0)?;
    let last = indices.shape().rank().checked_sub(1)?;
    let one = indices.shape().replaced(last, Dim::from(1usize));
    let number = |n: i64| Piece::Splat(Type::new(DType::I64, one.clone()), Scalar::I64(n));
    let mut steps = Steps::default();
    let (mut place, mut within): (Option<Piece>, Option<Piece>) = (None, None);
    for (c, axis) in scatter.index_map.iter().enumerate() {
        let mut index = component(s, &mut steps, c, k)?;
        if indices.dtype() != DType::I64 {
            index = steps.push(Op::new(Convert { dtype: DType::I64 }), vec![index]);
        }
        let at = axis - first;
        let behind: i64 = dims[at + 1..].iter().product();
        for (direction, than) in [(Direction::Ge, 0), (Direction::Lt, dims[at])] {
            let holds = steps.push(Op::new(Compare { direction }), vec![index.clone(), number(than)]);
            within = Some(match within {
                Some(w) => steps.push(Op::fixed(&And), vec![w, holds]),
                None => holds,
            });
        }
        if behind != 1 {
            index = steps.push(Op::fixed(&Mul), vec![index, number(behind)]);
        }
        place = Some(match place {
            Some(p) => steps.push(Op::fixed(&Add), vec![p, index]),
            None => index,
        });
    }
    let place = steps.push(Op::fixed(&Select), vec![within?, place?, number(-1)]);
    let dims = x.shape();
    let flat: Shape =
        dims[..first].iter().cloned().chain([Dim::from(whole)]).chain(dims[first + k..].iter().cloned()).collect();
    let x = match s.splat(0) {
        Some(n) => Piece::Splat(Type::new(x.dtype(), flat), n),
        None => steps.push(Op::new(Reshape { shape: flat }), vec![s.operands[0].into()]),
    };
    let flat = Scatter { inserted_dims: vec![first], index_map: vec![first], ..scatter.clone() };
    steps.push(Op::new(flat), vec![x, place, s.operands[2].into()]);
    let shape = s.result.shape().clone();
    let last = steps.last()?;
    steps.push(Op::new(Reshape { shape }), vec![last]);
    steps.finish()
}

/// One of `k` components of index vectors.
fn component(s: &Site<'_>, steps: &mut Steps, c: usize, k: usize) -> Option<Piece> {
    let shape = s.ty(1)?.shape();
    let last = shape.rank() - 1;
    if let Some((op, parts)) = s.definition(1)
        && op.downcast::<Concatenate>().is_some_and(|whole| whole.axis == last)
        && parts.len() == k
    {
        return Some(parts[c].into());
    }
    let mut start = vec![Dim::from(0usize); shape.rank()];
    let mut limit = shape.to_vec();
    (start[last], limit[last]) = (Dim::from(c), Dim::from(c + 1));
    Some(steps.push(Op::new(Slice { start, limit, step: vec![1; shape.rank()] }), vec![s.operands[1].into()]))
}
