//! Which values are saved between the two halves of a program. A value that costs next to nothing to compute again
//! (a change of shape, one elementwise operation on inputs, plain arithmetic on what is saved) is not saved if what it is
//! made of takes no more room.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::primitives::elementwise::{Abs, Add, Compare, Mul, Neg, Select, Sub};
use crate::primitives::shaping::is_view;
use crate::program::{Atom, Builder, Equation, ValueId};

/// The values to save instead of `wanted`: from them, all that is wanted is made by [`rebuild`]. What is an output is
/// there anyway and costs nothing to save.
pub(super) fn chosen(known: &Builder, wanted: &[Atom], at_hand: &[bool], outputs: &[Atom]) -> Vec<Atom> {
    let outputs: FxHashSet<&Atom> = outputs.iter().collect();
    let all: FxHashSet<ValueId> = wanted.iter().filter_map(|a| a.value()).collect();
    let cheap_sources = |a: &Atom| if outputs.contains(a) { None } else { sources(known, *a, &all) };
    let sources: Vec<Option<Vec<ValueId>>> = wanted.iter().map(cheap_sources).collect();
    let bytes = |v: ValueId| known.ty(v.into()).estimated_bytes();
    let own = |a: &Atom| a.value().map_or(0, bytes);
    let mut saved = all.clone();
    let cheap: Vec<usize> = (0..wanted.len()).filter(|i| sources[*i].is_some()).collect();
    // Inputs that replace more than they cost, or as much where they are at hand anyway.
    let inputs = known.program().inputs().len();
    let mut gains: FxHashMap<ValueId, u128> = FxHashMap::default();
    for i in &cheap {
        let mut missing = sources[*i].iter().flatten().filter(|v| !saved.contains(v));
        if let (Some(v), None) = (missing.next(), missing.next())
            && v.index() < inputs
        {
            *gains.entry(*v).or_default() += own(&wanted[*i]);
        }
    }
    let pays =
        |(v, gain): (ValueId, u128)| gain > bytes(v) || (gain == bytes(v) && at_hand.get(v.index()) == Some(&true));
    let add: Vec<ValueId> = gains.into_iter().filter(|g| pays(*g)).map(|(v, _)| v).collect();
    saved.extend(add.iter().copied());
    // Later values first: what stands behind a dropped value stays.
    let mut pinned: FxHashSet<ValueId> = FxHashSet::default();
    for i in cheap.into_iter().rev() {
        let (Some(v), Some(from)) = (wanted[i].value(), &sources[i]) else { continue };
        if pinned.contains(&v) {
            continue;
        }
        let missing: Vec<ValueId> = from.iter().copied().filter(|s| !saved.contains(s)).collect();
        let cost: u128 = missing.iter().map(|s| bytes(*s)).sum();
        if cost < bytes(v) {
            saved.remove(&v);
            saved.extend(missing);
            pinned.extend(from.iter().copied());
        }
    }
    let kept = wanted.iter().copied().filter(|a| a.value().is_none_or(|v| saved.remove(&v)));
    let mut all: Vec<Atom> = kept.collect();
    let mut rest: Vec<ValueId> = saved.into_iter().filter(|v| pinned.contains(v)).collect();
    rest.sort_unstable();
    all.extend(rest.into_iter().map(Atom::from));
    all
}

/// What a value is cheaply made of: values that are neither it nor made of anything cheap. None if it is not cheap. One
/// elementwise operation on inputs is cheap, as is plain arithmetic on values that are saved anyway, and plain arithmetic on
/// such: `y·(1 - y)` beside `y`, which is how most derivatives of saved results look.
fn sources(known: &Builder, atom: Atom, saved: &FxHashSet<ValueId>) -> Option<Vec<ValueId>> {
    let v = atom.value()?;
    let e = known.definition(v)?;
    let mut from = Vec::new();
    if !is_view(e.op()) && !e.op().is_elementwise() {
        return None;
    }
    let elementwise = !is_view(e.op());
    for a in known.program().operands(e) {
        let Some(v) = a.value() else { continue };
        match through_views(known, v) {
            (v, None) => from.push(v),
            // Views of one elementwise operation on inputs are as cheap as the operation.
            (_, Some(inner)) if !elementwise && inner.op().is_elementwise() && on_inputs(known, inner) => {
                let operands = known.program().operands(inner).iter().filter_map(|a| a.value());
                from.extend(operands.map(|v| through_views(known, v).0));
            }
            (v, Some(_)) if !elementwise || (is_arithmetic(e) && saved.contains(&v)) => from.push(v),
            (_, Some(inner)) if is_arithmetic(e) && is_arithmetic(inner) => {
                let operands = known.program().operands(inner).iter().filter_map(|a| a.value());
                for v in operands.map(|v| through_views(known, v).0) {
                    if !saved.contains(&v) {
                        return None;
                    }
                    from.push(v);
                }
            }
            (_, Some(_)) => return None,
        }
    }
    from.sort_unstable();
    from.dedup();
    Some(from)
}

/// The value behind changes of shape, and the equation that made it; none for an input.
fn through_views(known: &Builder, mut v: ValueId) -> (ValueId, Option<&Equation>) {
    loop {
        match known.definition(v) {
            Some(e) if is_view(e.op()) => match known.program().operands(e).first().and_then(|a| a.value()) {
                Some(operand) => v = operand,
                None => return (v, Some(e)),
            },
            other => return (v, other),
        }
    }
}

fn on_inputs(known: &Builder, e: &Equation) -> bool {
    let values = known.program().operands(e).iter().filter_map(|a| a.value());
    values.into_iter().all(|v| through_views(known, v).1.is_none())
}

fn is_arithmetic(e: &Equation) -> bool {
    let op = e.op();
    op.is::<Neg>()
        || op.is::<Add>()
        || op.is::<Sub>()
        || op.is::<Mul>()
        || op.is::<Abs>()
        || op.is::<Select>()
        || op.is::<Compare>()
}

/// Computes a value of `known` again, in `later`: from what `there` says is saved, through cheap operations.
pub(super) fn rebuild(
    known: &Builder,
    later: &mut Builder,
    there: &mut FxHashMap<Atom, Atom>,
    atom: Atom,
) -> Result<Atom> {
    let lost = || crate::error::error!(Verify, "a value that was not saved cannot be made again");
    // A list and no recursion: a chain of views may be as long as the program.
    let mut open = vec![atom];
    while let Some(a) = open.last().copied() {
        if there.contains_key(&a) {
            open.pop();
            continue;
        }
        if let Some(c) = known.program().constant(a) {
            there.insert(a, later.constant(c.clone()));
            continue;
        }
        let e = a.value().and_then(|v| known.definition(v)).ok_or_else(lost)?;
        let operands = known.program().operands(e);
        let made: Option<Vec<Atom>> = operands.iter().map(|a| there.get(a).copied()).collect();
        let Some(made) = made else {
            // The first operand is made first.
            open.extend(operands.iter().rev().filter(|a| !there.contains_key(a)));
            continue;
        };
        let made = later.equation(e.op().clone(), &made, e.place())?.results();
        there.extend(e.results().zip(made).map(|(old, new)| (Atom::from(old), Atom::from(new))));
    }
    there.get(&atom).copied().ok_or_else(lost)
}
