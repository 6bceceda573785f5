//! Moves broadcasts and transposes down, towards results. Below an elementwise operation a broadcast leaves less to compute, and
//! transposes meet others that cancel them, or reductions and products, which take axes in any order.

use super::kinds::{Combine, reduction};
use super::rewrite::{Named, Piece, Rewrite, Rule, Site, Steps, by};
use super::shapes::{broadcast_sources, is_repeated, unit_axes};
use super::simplify::{outside_with_rules, with_rules};
use super::{Exactness, eliminate_dead_code};
use super::{dots, gathers, pieces, scatters, shapes, slices};
use crate::error::Result;
use crate::primitives::Op;
use crate::primitives::dot::DotGeneral;
use crate::primitives::elementwise::Mul;
use crate::primitives::shaping::{Broadcast, Permute, Reshape};
use crate::program::Program;
use crate::types::{DType, Scalar};

const BELOW_ELEMENTWISE: Rule = |s| by("elementwise (view a) (view b) = view (elementwise a b)", below_elementwise(s));

const RULES: &[Rule] = &[BELOW_ELEMENTWISE, reductions];

/// Moves broadcasts and transposes down. What they meet there is rewritten in the same walk: each other, and products.
pub(super) fn sink(p: &Program, exactness: Exactness) -> Result<Program> {
    with_rules(
        p,
        exactness,
        &[shapes::RULES, RULES, dots::RULES, pieces::RULES, gathers::RULES, slices::RULES, scatters::SUMS],
    )
}

/// A linear program that is about to be turned around, with repetitions below its products. Turned around a repetition is a sum, which then comes before the product
/// and not after it: the sum over an axis that only one factor has is a product with the sum of that factor.
pub(crate) fn repetitions_last(p: &Program) -> Result<Option<Program>> {
    let has = |test: fn(&Op) -> bool| p.equations().iter().any(|e| test(e.op()));
    if !has(|op| op.is::<DotGeneral>()) || !has(|op| op.is::<Broadcast>()) {
        return Ok(None);
    }
    let made = outside_with_rules(p, &[shapes::RULES, &[BELOW_ELEMENTWISE, dots::OF_BROADCAST]])?;
    Ok(Some(eliminate_dead_code(&made, true)))
}

/// op (broadcast a) (broadcast b) = broadcast (op a b) and op (transpose a) (transpose b) = transpose (op a b), if both go the
/// same way. A constant of one number goes every way.
fn below_elementwise(s: &Site<'_>) -> Option<Rewrite> {
    let mut view: Option<(&Op, usize)> = None;
    let mut values = Vec::with_capacity(s.operands.len());
    for i in 0..s.operands.len() {
        if s.splat(i).is_some() {
            values.push(None);
            continue;
        }
        let (op, operands) = s.definition(i)?;
        if !op.is::<Broadcast>() && !op.is::<Permute>() {
            return None;
        }
        match view {
            None => view = Some((op, values.len())),
            Some((first, at)) => {
                let same_shape =
                    values.get(at).copied().flatten().map(|a| s.shape_of(a)) == Some(s.shape_of(operands[0]));
                if first != op || !same_shape {
                    return None;
                }
            }
        }
        values.push(Some(operands[0]));
    }
    let (view, at) = view?;
    if !s.op.is_elementwise() {
        return None;
    }
    let shape = s.shape_of(values.get(at).copied().flatten()?);
    let mut pieces = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        pieces.push(match (value, s.splat(i)) {
            (Some(a), _) => Piece::Atom(*a),
            (None, Some(number)) => Piece::Splat(s.ty(i)?.with_shape(shape.clone()), number),
            (None, None) => return None,
        });
    }
    let mut steps = Steps::default();
    let small = steps.push(s.op.clone(), pieces);
    steps.push(view.clone(), vec![small]);
    steps.finish()
}

fn reductions(s: &Site<'_>) -> Option<Named> {
    let (combine, axes) = reduction(s.op)?;
    let (inner, operands) = s.definition(0)?;
    // Factors in another order may leave the range on the way, and infinity times zero is NaN: a product keeps its order.
    let ordered = combine == Combine::Prod && s.dtype().is_inexact() && !s.relaxed();
    if ordered && (inner.is::<Permute>() || inner.is::<Broadcast>()) {
        return None;
    }
    if let Some(inner) = inner.downcast::<Permute>() {
        return by("reduce (transpose x) = transpose (reduce x)", reduce_transposed(s, combine, axes, inner));
    }
    if let Some(inner) = inner.downcast::<Broadcast>() {
        return by("reduce (broadcast x) = broadcast (reduce x)", reduce_broadcast(s, combine, axes, inner));
    }
    // If the reshape only puts in or drops axes of size one.
    if inner.is::<Reshape>() {
        let come = unit_axes(s.shape_of(operands[0]), s.ty(0)?.shape())?;
        let from: Vec<usize> = axes.iter().filter_map(|a| *come.get(*a)?).collect();
        // The sum of one -0.0 is 0.0 + -0.0 = 0.0, so it is not the number itself. Nor is the product of one complex number,
        // since (1+0i)(a+bi) multiplies b by 0.
        let changes = match combine {
            Combine::Sum => s.dtype().is_inexact(),
            Combine::Prod => s.dtype().is_complex(),
            _ => false,
        };
        if from.is_empty() && changes && !s.relaxed() {
            return None;
        }
        let mut steps = Steps::default();
        let mut value = Piece::Atom(operands[0]);
        if !from.is_empty() {
            value = steps.push(combine.over(from), vec![value]);
        }
        steps.push(Op::new(Reshape { shape: s.result.shape().clone() }), vec![value]);
        return by("reduce (reshape x) = reshape (reduce x)", steps.finish());
    }
    None
}

/// The same axes under the numbers they have in x. The order of a float sum
/// may change.
fn reduce_transposed(s: &Site<'_>, combine: Combine, axes: &[usize], inner: &Permute) -> Option<Rewrite> {
    let (_, operands) = s.definition(0)?;
    let mut from: Vec<usize> = axes.iter().filter_map(|a| inner.axes.get(*a).copied()).collect();
    from.sort_unstable();
    let kept: Vec<usize> = inner.axes.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, a)| *a).collect();
    let order: Vec<usize> = kept.iter().map(|a| kept.iter().filter(|b| *b < a).count()).collect();
    let mut steps = Steps::default();
    let value = steps.push(combine.over(from), vec![operands[0].into()]);
    if !order.is_sorted() {
        steps.push(Op::new(Permute { axes: order }), vec![value]);
    }
    steps.finish()
}

/// Along the axes of x it is a reduction of x. Along a repeated axis of n > 0 the maximum is the number
/// itself, as are the minimum and bits; the sum is n times the number, which for floats rounds otherwise.
fn reduce_broadcast(s: &Site<'_>, combine: Combine, axes: &[usize], inner: &Broadcast) -> Option<Rewrite> {
    let (_, operands) = s.definition(0)?;
    let x = s.shape_of(operands[0]);
    let sources = broadcast_sources(inner);
    let repeated = |axis: usize| is_repeated(inner, &sources, x, axis);
    if !(0..sources.len()).any(repeated) {
        return None;
    }
    let mut times = 1usize;
    for axis in axes.iter().filter(|a| repeated(**a)) {
        let n = inner.shape.get(*axis)?.as_usize().filter(|n| *n > 0)?;
        times = times.checked_mul(n)?;
    }
    if times != 1 || axes.iter().any(|a| repeated(*a)) {
        let whole = s.dtype().is_int();
        let wide = matches!(s.dtype(), DType::F32 | DType::F64);
        match combine {
            _ if combine.is_idempotent() => times = 1,
            Combine::Sum if whole || (wide && s.relaxed()) => {}
            _ => return None,
        }
    }
    let from: Vec<usize> = axes.iter().filter_map(|a| *sources.get(*a)?).collect();
    let mut steps = Steps::default();
    let mut value = Piece::Atom(operands[0]);
    if !from.is_empty() {
        value = steps.push(combine.over(from), vec![value]);
    }
    if times != 1 {
        let kept = x.without(|k| axes.iter().any(|a| sources[*a] == Some(k)));
        let number = Piece::Splat(s.result.with_shape(kept), Scalar::U64(times as u64).cast(s.dtype()));
        value = steps.push(Op::fixed(&Mul), vec![value, number]);
    }
    let kept = (0..sources.len()).filter(|a| !axes.contains(a));
    let places = kept.enumerate().filter(|(_, a)| sources[*a].is_some()).map(|(to, _)| to).collect();
    steps.push(Op::new(Broadcast { shape: s.result.shape().clone(), axes: places }), vec![value]);
    steps.finish()
}
