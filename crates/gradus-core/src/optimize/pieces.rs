//! Sums of arrays that are zero where the others are not: what the derivative of a `split` comes to, one padded piece for each part.
//! Put side by side the pieces need no zeros in memory and no sum over the whole.

use super::rewrite::{Piece, Rewrite, Rule, Site, Steps, by};
use crate::primitives::Op;
use crate::primitives::elementwise::Add;
use crate::primitives::shaping::{Concatenate, Pad, Slice};
use crate::program::Atom;
use crate::types::{Dim, Scalar};

pub(super) const RULES: &[Rule] = &[
    |s| by("pad a + pad b = concatenate (a + 0) (b + 0), if no place holds both", disjoint(s)),
    |s| by("a pad that cuts = a pad of a slice", cuts(s)),
];

/// So many pieces at most: each sum looks at all of them, and the walk has to stay linear.
const MOST: usize = 32;

/// Pieces along an axis: where each begins and how long it is. Between them are zeros.
struct Row {
    axis: usize,
    pieces: Vec<(usize, usize, Atom)>,
}

fn is_zero(s: &Site<'_>, atom: Atom) -> bool {
    s.builder.program().constant(atom).and_then(|c| c.splat_value()) == Some(Scalar::zero(s.dtype()))
}

/// An operand as pieces among zeros.
fn row(s: &Site<'_>, i: usize) -> Option<Row> {
    let (op, operands) = s.definition(i)?;
    let length = |a: Atom, axis: usize| s.shape_of(a).get(axis).and_then(Dim::as_usize);
    if let Some(pad) = op.downcast::<Pad>() {
        let padded = |a: &usize| pad.low[*a].constant() != Some(0) || pad.high[*a].constant() != Some(0);
        let mut axes = (0..pad.low.len()).filter(padded);
        let (axis, None) = (axes.next()?, axes.next()) else { return None };
        let (low, _) = (pad.low[axis].as_usize()?, pad.high[axis].as_usize()?);
        if !is_zero(s, operands[1]) || pad.interior.iter().any(|n| *n != 0) {
            return None;
        }
        return Some(Row { axis, pieces: vec![(low, length(operands[0], axis)?, operands[0])] });
    }
    let axis = op.downcast::<Concatenate>().filter(|_| operands.len() <= MOST)?.axis;
    let (mut pieces, mut start) = (Vec::new(), 0);
    for &a in operands {
        let n = length(a, axis)?;
        if !is_zero(s, a) {
            pieces.push((start, n, a));
        }
        start += n;
    }
    Some(Row { axis, pieces })
}

/// Whether a value is `x + 0.0`, which is never -0.0.
fn has_zero_added(s: &Site<'_>, atom: Atom) -> bool {
    let sum = s.definition_of(atom).filter(|(op, _)| op.is::<Add>());
    sum.is_some_and(|(_, operands)| operands.iter().any(|a| is_zero(s, *a)))
}

/// Adding zero makes 0.0 of -0.0 and changes nothing
/// else, however often it is done; whole numbers do not need it.
fn disjoint(s: &Site<'_>) -> Option<Rewrite> {
    if !s.op.is::<Add>() {
        return None;
    }
    let (a, b) = (row(s, 0)?, row(s, 1)?);
    let axis = a.axis;
    if axis != b.axis {
        return None;
    }
    let mut pieces = a.pieces;
    pieces.extend(b.pieces);
    pieces.sort_by_key(|(start, n, _)| (*start, *n));
    if pieces.windows(2).any(|w| w[0].0 + w[0].1 > w[1].0) {
        return None;
    }
    let zero = Scalar::zero(s.dtype());
    let zeros = |n: usize| Piece::Splat(s.result.with_shape(s.result.shape().replaced(axis, Dim::from(n))), zero);
    let mut steps = Steps::default();
    let (mut parts, mut end) = (Vec::with_capacity(2 * pieces.len() + 1), 0);
    for (start, n, atom) in pieces {
        if start > end {
            parts.push(zeros(start - end));
        }
        end = start + n;
        let whole = s.dtype().is_int() || has_zero_added(s, atom);
        parts.push(match whole {
            true => Piece::Atom(atom),
            false => steps.push(Op::fixed(&Add), vec![atom.into(), zeros(n)]),
        });
    }
    let total = s.result.shape().get(axis)?.as_usize()?;
    if total > end {
        parts.push(zeros(total - end));
    }
    if parts.len() > MOST {
        return None;
    }
    steps.push(Op::new(Concatenate { axis }), parts);
    steps.finish()
}

/// What a pad takes away along an axis is sliced off before: others know what to do with that.
fn cuts(s: &Site<'_>) -> Option<Rewrite> {
    let pad = s.op.downcast::<Pad>()?;
    let amounts = |dims: &[Dim]| dims.iter().map(Dim::constant).collect::<Option<Vec<i64>>>();
    let (low, high) = (amounts(&pad.low)?, amounts(&pad.high)?);
    if low.iter().chain(&high).all(|n| *n >= 0) || pad.interior.iter().any(|n| *n != 0) {
        return None;
    }
    let cut = |n: &i64| n.saturating_neg().max(0);
    let (mut start, mut limit) = (Vec::new(), Vec::new());
    for ((d, low), high) in s.ty(0)?.shape().iter().zip(&low).zip(&high) {
        // More may be taken away than there is, from what comes in on the other side.
        if d.as_usize()? < usize::try_from(cut(low).saturating_add(cut(high))).ok()? {
            return None;
        }
        start.push(Dim::from(cut(low)));
        limit.push(d - cut(high));
    }
    let around = |amounts: &[i64]| amounts.iter().map(|n| Dim::from((*n).max(0))).collect::<Vec<_>>();
    let step = vec![1; low.len()];
    let mut steps = Steps::default();
    let part = steps.push(Op::new(Slice { start, limit, step }), vec![s.operands[0].into()]);
    if low.iter().chain(&high).any(|n| *n > 0) {
        let pad = Pad { low: around(&low), high: around(&high), interior: pad.interior.clone() };
        steps.push(Op::new(pad), vec![part, s.operands[1].into()]);
    }
    steps.finish()
}
