//! What every iteration of a loop changes in one place of memory goes around in registers: it is read before the loop and written behind it.
//!
//! Running totals are such places: without this each step waits for the store of the one before it.

use rustc_hash::FxHashSet;

use super::{Access, Code, Expr, Loop, Memory, Spread, Stmt, each_use};
use crate::ir::{Carried, Int, Value};

/// A loop of fewer iterations is left as it is.
const FEW: i64 = 4;

/// Keeps places in registers, in every loop of a body.
pub(super) fn keep(code: &mut Code) {
    let mut body = std::mem::take(&mut code.body);
    in_body(code, &mut body);
    code.body = body;
}

fn in_body(code: &mut Code, body: &mut Vec<Stmt>) {
    let mut at = 0;
    while at < body.len() {
        if let Stmt::Loop(l) = &mut body[at] {
            in_body(code, &mut l.body);
            let (before, after) = in_loop(code, l);
            let (first, behind) = (at + before.len(), at + before.len() + 1);
            body.splice(at..at, before);
            body.splice(behind..behind, after);
            at = first;
        }
        at += 1;
    }
}

/// Takes places out of a loop: the loads before it and the stores behind it.
fn in_loop(code: &mut Code, l: &mut Loop) -> (Vec<Stmt>, Vec<Stmt>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    // A loop that does not run touches nothing, and one that runs a few times gains nothing; around other loops registers are needed for them.
    let plain = l.body.iter().all(|s| matches!(s, Stmt::Let(..) | Stmt::Store(..)));
    if !plain || l.trips().is_none_or(|n| n < FEW) {
        return (before, after);
    }
    let mut inside: FxHashSet<Value> = l.carried.iter().map(|c| c.param).chain([l.var]).collect();
    inside.extend(l.body.iter().filter_map(|s| if let Stmt::Let(v, _) = s { Some(*v) } else { None }));
    let found: Vec<(usize, usize)> =
        (0..l.body.len()).filter_map(|i| Some((i, kept(code, &l.body, i, &inside)?))).collect();
    for (load, store) in found.iter().copied() {
        let (Stmt::Let(v, Expr::Load(access)), Stmt::Store(_, next)) = (&l.body[load], &l.body[store]) else {
            continue;
        };
        let (param, next, access) = (*v, *next, access.clone());
        let (ty, shape) = (code.ty(param), code.shape(param));
        let (init, result) = (code.value(ty, shape), code.value(ty, shape));
        before.push(Stmt::Let(init, Expr::Load(access.clone())));
        after.push(Stmt::Store(access, result));
        l.carried.push(Carried { init, param, next, result });
    }
    let mut gone: Vec<usize> = found.into_iter().flat_map(|(load, store)| [load, store]).collect();
    gone.sort_unstable();
    gone.into_iter().rev().for_each(|i| drop(l.body.remove(i)));
    (before, after)
}

/// Where a body stores to the place that its statement `load` loads from, if nothing else in it touches that place, which is the same each time.
fn kept(code: &Code, body: &[Stmt], load: usize, inside: &FxHashSet<Value>) -> Option<usize> {
    let Stmt::Let(v, Expr::Load(place)) = &body[load] else { return None };
    let mut moves = false;
    each_use(&body[load..=load], &mut |v| moves |= inside.contains(&v));
    // Arrays of the kernel's own are there because registers are few.
    if moves || matches!(place.memory, Memory::Local(_)) {
        return None;
    }
    let is_same =
        |s: &Stmt| matches!(s, Stmt::Store(a, next) if is_at(a, place) && code.shape(*next) == code.shape(*v));
    let store = load + 1 + body[load + 1..].iter().position(is_same)?;
    let touches = |s: &Stmt| match s {
        Stmt::Let(_, Expr::Load(a)) | Stmt::Store(a, _) => a.memory == place.memory && !are_apart(a, place),
        _ => false,
    };
    let mut others = body.iter().enumerate().filter(|(i, _)| *i != load && *i != store);
    (!others.any(|(_, s)| touches(s))).then_some(store)
}

/// Whether two accesses are to the same elements, all of them each time.
fn is_at(a: &Access, b: &Access) -> bool {
    let whole = a.lanes.as_ref().is_none_or(|l| l.active.is_none() && matches!(l.spread, Spread::Strided(_)));
    whole && a.memory == b.memory && (a.at.offset, &a.at.terms) == (b.at.offset, &b.at.terms) && a.lanes == b.lanes
}

/// Whether two accesses to one memory have no element in common, as far as can be seen.
fn are_apart(a: &Access, b: &Access) -> bool {
    let reach = |a: &Access| match &a.lanes {
        None => Some(1),
        Some(l) if l.spread == Spread::Strided(Int::Const(1)) => Some(i64::from(l.shape.lanes)),
        Some(_) => None,
    };
    let (Some(n), Some(m)) = (reach(a), reach(b)) else { return false };
    a.at.terms == b.at.terms && (a.at.offset + n <= b.at.offset || b.at.offset + m <= a.at.offset)
}
