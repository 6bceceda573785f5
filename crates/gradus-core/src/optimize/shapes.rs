//! Rewrites of operations that only move elements: one after another they become one, and what changes nothing but axes
//! of size one is a reshape. All are exact, for no number is computed.

use super::rewrite::{Named, Piece, Rewrite, Rule, Site, Steps, by};
use crate::primitives::Op;
use crate::primitives::convert::Convert;
use crate::primitives::shaping::{Broadcast, Concatenate, Permute, Reshape, Reverse, Slice};
use crate::types::{DType, Dim, Shape};

pub(super) const RULES: &[Rule] = &[broadcasts, reshapes, transposes, slices, reverses, converts];

fn is_one(d: &Dim) -> bool {
    d.constant() == Some(1)
}

/// For a reshape that only puts in or drops axes of size one: where each axis of the result comes from.
pub(super) fn unit_axes(from: &Shape, to: &Shape) -> Option<Vec<Option<usize>>> {
    let mut come = Vec::with_capacity(to.rank());
    let mut i = 0;
    for d in to.iter() {
        while from.get(i).is_some_and(|f| f != d && is_one(f)) {
            i += 1;
        }
        if from.get(i) == Some(d) {
            come.push(Some(i));
            i += 1;
        } else if is_one(d) {
            come.push(None);
        } else {
            return None;
        }
    }
    from.iter().skip(i).all(is_one).then_some(come)
}

/// For each axis of a broadcast's result, the axis of the operand that goes there.
pub(super) fn broadcast_sources(b: &Broadcast) -> Vec<Option<usize>> {
    let mut from = vec![None; b.shape.rank()];
    for (k, axis) in b.axes.iter().enumerate() {
        if let Some(slot) = from.get_mut(*axis) {
            *slot = Some(k);
        }
    }
    from
}

/// Whether a broadcast repeats the operand along an axis of the result. Sizes with different texts may be equal by a condition: only what has size one is repeated.
pub(super) fn is_repeated(b: &Broadcast, sources: &[Option<usize>], x: &Shape, axis: usize) -> bool {
    match sources[axis] {
        Some(k) => x.get(k).is_some_and(is_one) && !b.shape.get(axis).is_some_and(is_one),
        None => true,
    }
}

fn broadcasts(s: &Site<'_>) -> Option<Named> {
    let outer = s.op.downcast::<Broadcast>()?;
    let x = s.ty(0)?.shape();
    let sources = broadcast_sources(outer);
    let spreads = |axis: usize| match sources[axis] {
        Some(k) => x.get(k) != outer.shape.get(axis),
        None => !is_one(&outer.shape[axis]),
    };
    if !(0..sources.len()).any(spreads) {
        let made = Rewrite::apply(Op::new(Reshape { shape: outer.shape.clone() }), s.operands.iter().copied());
        return by("broadcast x = reshape x, if only axes of size one come in", made);
    }
    let (inner, operands) = s.definition(0)?;
    if let Some(inner) = inner.downcast::<Broadcast>() {
        let axes = inner.axes.iter().filter_map(|a| outer.axes.get(*a).copied()).collect();
        let op = Broadcast { shape: outer.shape.clone(), axes };
        let made = Rewrite::apply(Op::new(op), operands.iter().copied());
        return by("broadcast p (broadcast q x) = broadcast (p∘q) x", made);
    }
    if inner.is::<Reshape>() {
        let come = unit_axes(s.shape_of(operands[0]), x)?;
        let axes: Vec<usize> = come.iter().zip(&outer.axes).filter_map(|(from, to)| from.map(|_| *to)).collect();
        if axes.len() == s.shape_of(operands[0]).rank() {
            let op = Broadcast { shape: outer.shape.clone(), axes };
            let made = Rewrite::apply(Op::new(op), operands.iter().copied());
            return by("broadcast p (reshape x) = broadcast (p without the axes that the reshape put in) x", made);
        }
    }
    None
}

fn reshapes(s: &Site<'_>) -> Option<Named> {
    let outer = s.op.downcast::<Reshape>()?;
    let (inner, operands) = s.definition(0)?;
    let inner = inner.downcast::<Broadcast>()?;
    // If the reshape only puts in or drops axes of size one.
    let come = unit_axes(&inner.shape, &outer.shape)?;
    let x = s.shape_of(operands[0]);
    let place_of = |axis: usize| come.iter().position(|from| *from == Some(axis));
    let places: Vec<Option<usize>> = inner.axes.iter().map(|a| place_of(*a)).collect();
    let mut steps = Steps::default();
    let mut value = Piece::Atom(operands[0]);
    if places.contains(&None) {
        let shape = x.without(|k| places.get(k) == Some(&None));
        value = steps.push(Op::new(Reshape { shape }), vec![value]);
    }
    let axes = places.into_iter().flatten().collect();
    steps.push(Op::new(Broadcast { shape: outer.shape.clone(), axes }), vec![value]);
    by("reshape (broadcast x) = broadcast (reshape x)", steps.finish())
}

fn transposes(s: &Site<'_>) -> Option<Named> {
    let outer = s.op.downcast::<Permute>()?;
    let x = s.ty(0)?.shape();
    if outer.axes.iter().filter(|a| x.get(**a).is_some_and(|d| !is_one(d))).is_sorted() {
        let made = Rewrite::apply(Op::new(Reshape { shape: s.result.shape().clone() }), s.operands.iter().copied());
        return by("transpose x = reshape x, if only axes of size one move", made);
    }
    let (inner, operands) = s.definition(0)?;
    if let Some(inner) = inner.downcast::<Broadcast>() {
        let sources = broadcast_sources(inner);
        // The axes of x in the order in which they come out, and where.
        let come: Vec<(usize, usize)> =
            outer.axes.iter().enumerate().filter_map(|(to, a)| Some(((*sources.get(*a)?)?, to))).collect();
        let mut steps = Steps::default();
        let order: Vec<usize> = come.iter().map(|(k, _)| *k).collect();
        let mut value = Piece::Atom(operands[0]);
        if !order.is_sorted() {
            value = steps.push(Op::new(Permute { axes: order }), vec![value]);
        }
        let axes = come.iter().map(|(_, to)| *to).collect();
        steps.push(Op::new(Broadcast { shape: s.result.shape().clone(), axes }), vec![value]);
        return by("transpose (broadcast x) = broadcast (transpose x)", steps.finish());
    }
    // If the reshape only puts in or drops axes of size one.
    if inner.is::<Reshape>() {
        let from = s.shape_of(operands[0]);
        let come = unit_axes(from, x)?;
        let mut order: Vec<usize> = outer.axes.iter().filter_map(|a| *come.get(*a)?).collect();
        let dropped: Vec<usize> = (0..from.rank()).filter(|k| !order.contains(k)).collect();
        order.extend(dropped);
        let mut steps = Steps::default();
        let turned = steps.push(Op::new(Permute { axes: order }), vec![operands[0].into()]);
        steps.push(Op::new(Reshape { shape: s.result.shape().clone() }), vec![turned]);
        return by("transpose (reshape x) = reshape (transpose x)", steps.finish());
    }
    None
}

fn slices(s: &Site<'_>) -> Option<Named> {
    let outer = s.op.downcast::<Slice>()?;
    let x = s.ty(0)?.shape();
    let (inner, operands) = s.definition(0)?;
    let rank = outer.step.len();
    let zero = Dim::from(0usize);
    let is_all = |axis: usize| outer.start[axis] == zero && outer.limit[axis] == x[axis] && outer.step[axis] == 1;
    // (x[a..b step p])[c..d step q] = x[a+pc .. a+p(d-1)+1 step pq], which is x[a+c..a+d] where both steps are one.
    if let Some(inner) = inner.downcast::<Slice>() {
        let mut joined = Slice { start: Vec::new(), limit: Vec::new(), step: Vec::new() };
        for axis in 0..rank {
            let (first, p, q) = (&inner.start[axis], inner.step[axis], outer.step[axis]);
            if p == 1 {
                joined.start.push(first + &outer.start[axis]);
                joined.limit.push(first + &outer.limit[axis]);
            } else {
                // With a step the last index counts, and that takes numbers.
                let (first, start, limit) =
                    (first.as_usize()?, outer.start[axis].as_usize()?, outer.limit[axis].as_usize()?);
                let at = |i: usize| p.checked_mul(i)?.checked_add(first);
                if limit <= start {
                    return None;
                }
                joined.start.push(Dim::from(at(start)?));
                joined.limit.push(Dim::from(at(limit - 1)? + 1));
            }
            joined.step.push(p.checked_mul(q)?);
        }
        return by("slice (slice x) = slice x", Rewrite::apply(Op::new(joined), operands.iter().copied()));
    }
    if let Some(Concatenate { axis }) = inner.downcast::<Concatenate>() {
        let (start, limit) = (outer.start[*axis].as_usize()?, outer.limit[*axis].as_usize()?);
        let mut before = 0usize;
        for part in operands {
            let n = s.shape_of(*part).get(*axis)?.as_usize()?;
            if start >= before && limit <= before + n {
                let mut op = outer.clone();
                op.start[*axis] = Dim::from(start - before);
                op.limit[*axis] = Dim::from(limit - before);
                return by("a slice in one part of a concatenation", Rewrite::apply(Op::new(op), [*part]));
            }
            before += n;
        }
        return None;
    }
    if let Some(inner) = inner.downcast::<Broadcast>() {
        let sources = broadcast_sources(inner);
        if (0..rank).all(|axis| sources[axis].is_none() || is_all(axis)) {
            let op = Broadcast { shape: s.result.shape().clone(), axes: inner.axes.clone() };
            let made = Rewrite::apply(Op::new(op), operands.iter().copied());
            return by("a slice along repeated axes is a shorter repetition", made);
        }
    }
    None
}

fn reverses(s: &Site<'_>) -> Option<Named> {
    let outer = s.op.downcast::<Reverse>()?;
    let (inner, operands) = s.definition(0)?;
    let inner = inner.downcast::<Reverse>()?;
    let one_way = |a: &[usize], b: &[usize]| a.iter().copied().filter(|x| !b.contains(x)).collect::<Vec<_>>();
    let mut axes = one_way(&outer.axes, &inner.axes);
    axes.extend(one_way(&inner.axes, &outer.axes));
    axes.sort_unstable();
    let made = Rewrite::apply(Op::new(Reverse { axes }), operands.iter().copied());
    by("reverse a (reverse b x) = reverse (the axes in one of a and b) x", made)
}

/// Bits of precision of a number that is a whole one or a float.
fn precision(d: DType) -> Option<usize> {
    Some(match d {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 => 24,
        DType::F64 => 53,
        d if d.is_signed_int() => 8 * d.size() - 1,
        d if d.is_unsigned() => 8 * d.size(),
        _ => return None,
    })
}

/// Whether every number of one dtype is one of another.
fn is_exact(from: DType, to: DType) -> bool {
    match (from, to) {
        (a, b) if a == b => true,
        (DType::Bool, b) => !b.is_complex(),
        (DType::BF16, b) => matches!(b, DType::F32 | DType::F64),
        (a, b) if a.is_float() && !b.is_float() => false,
        (a, b) if a.is_signed_int() && b.is_unsigned() => false,
        (a, b) => precision(a).zip(precision(b)).is_some_and(|(a, b)| a <= b),
    }
}

fn converts(s: &Site<'_>) -> Option<Named> {
    let Convert { dtype } = s.op.downcast()?;
    let (inner, operands) = s.definition(0)?;
    let Convert { dtype: between } = inner.downcast()?;
    let from = s.builder.ty(operands[0]).dtype();
    // If b holds every number of x. Floats saturate where whole numbers wrap: a way over floats is the direct one only if
    // nothing can be out of range.
    let saturates = from.is_int() && between.is_float() && dtype.is_int();
    let same = is_exact(from, *between) && (!saturates || is_exact(from, *dtype)) && !dtype.is_complex();
    if !same {
        return None;
    }
    match from == *dtype {
        true => by("convert there and back", Some(Rewrite::Alias(operands[0]))),
        false => {
            let made = Rewrite::apply(s.op.clone(), operands.iter().copied());
            by("convert c (convert b x) = convert c x", made)
        }
    }
}
