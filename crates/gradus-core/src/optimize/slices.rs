//! Parts of what was computed: taken before, only they are computed, and nothing has to be in memory for it.

use super::rewrite::{Piece, Rewrite, Rule, Site, Steps, by};
use crate::primitives::Op;
use crate::primitives::shaping::Slice;
use crate::program::Atom;
use crate::scalar::Form;
use crate::types::{DType, Dim};

pub(super) const RULES: &[Rule] = &[|s| {
    by(
        "a part of (elementwise a b) = elementwise (a part of a) (a part of b), if that takes less than memory",
        of_elementwise(s),
    )
}];

/// Arrays of fewer elements are taken apart after they are made.
const LEAST: usize = 1 << 11;
/// A byte that goes through memory takes about so many nanoseconds.
const BYTE: f32 = 0.1;
/// So many operations at most are made again for each part.
const LONGEST: usize = 16;

fn of_elementwise(s: &Site<'_>) -> Option<Rewrite> {
    let slice = s.op.downcast::<Slice>()?;
    let (op, operands) = s.definition(0)?;
    let shape = s.shape_of(s.operands[0]);
    let count = shape.iter().map(Dim::as_usize).try_fold(1usize, |n, d| n.checked_mul(d?))?;
    let alike = operands.iter().all(|a| s.shape_of(*a) == shape);
    if count < LEAST || !alike || !op.is_elementwise() || !op.is_total() || !op.effects().is_pure() {
        return None;
    }
    // Each part makes it again.
    let uses = *s.uses.get(s.operands[0].value()?.index())?;
    if uses > 1 {
        let most = BYTE * s.dtype().size() as f32;
        let cost = cost(s, s.operands[0], &mut LONGEST.clone())?;
        if cost * (uses - 1) as f32 > most {
            return None;
        }
    }
    let mut steps = Steps::default();
    let mut values = Vec::with_capacity(operands.len());
    for &a in operands {
        values.push(match s.builder.program().constant(a).and_then(|c| c.splat_value()) {
            Some(number) => Piece::Splat(s.builder.ty(a).with_shape(s.result.shape().clone()), number),
            None => steps.push(Op::new(slice.clone()), vec![a.into()]),
        });
    }
    steps.push(op.clone(), values);
    steps.finish()
}

/// About how many nanoseconds an element of an elementwise value takes, with what is made for it alone. None if there is too much of it.
fn cost(s: &Site<'_>, a: Atom, left: &mut usize) -> Option<f32> {
    *left = left.checked_sub(1)?;
    let (op, operands) = s.definition_of(a)?;
    let from: Vec<DType> = operands.iter().map(|a| s.builder.ty(*a).dtype()).collect();
    let mut sum = Form::of(op, &from, s.builder.ty(a).dtype()).ok()??.cost();
    for &a in operands {
        let alone = a.value().is_some_and(|v| s.uses.get(v.index()) == Some(&1));
        if alone && s.definition_of(a).is_some_and(|(op, _)| op.is_elementwise()) {
            sum += cost(s, a, left)?;
        }
    }
    Some(sum)
}
