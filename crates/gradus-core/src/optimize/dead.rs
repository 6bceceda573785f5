//! Drops equations whose results nothing needs. Effects are kept, unless the caller runs the program for values only.

use crate::program::{Atom, Builder, Program};

/// The program without equations that no output needs; `keep_effects` keeps those with effects and what they need.
pub fn eliminate_dead_code(p: &Program, keep_effects: bool) -> Program {
    let mut live = vec![false; p.value_count()];
    let mut keep = vec![false; p.equations().len()];
    let mark = |live: &mut [bool], atoms: &[Atom]| {
        for v in atoms.iter().filter_map(|a| a.value()) {
            live[v.index()] = true;
        }
    };
    mark(&mut live, p.outputs());
    for (i, e) in p.equations().iter().enumerate().rev() {
        let needed = e.results().any(|r| live[r.index()]) || (keep_effects && !e.op().effects().is_pure());
        if needed {
            keep[i] = true;
            mark(&mut live, p.operands(e));
        }
    }
    rebuild(p, &keep)
}

/// The program with some of its equations; the rest is renumbered. What they define must not be needed.
fn rebuild(p: &Program, keep: &[bool]) -> Program {
    let mut b = Builder::like(p);
    let mut there: Vec<Option<Atom>> = (0..p.value_count()).map(|_| None).collect();
    for (i, slot) in there.iter_mut().enumerate().take(p.inputs().len()) {
        *slot = Some(crate::program::ValueId::new(i).into());
    }
    let map = |there: &[Option<Atom>], b: &mut Builder, a: Atom| match (a.value(), p.constant(a)) {
        (Some(v), _) => there[v.index()],
        (None, Some(c)) => Some(b.constant(c.clone())),
        (None, None) => None,
    };
    for (e, _) in p.equations().iter().zip(keep).filter(|(_, on)| **on) {
        let operands: Option<smallvec::SmallVec<[Atom; 4]>> =
            p.operands(e).iter().map(|a| map(&there, &mut b, *a)).collect();
        let types = e.results().map(|r| p.ty(r).clone()).collect();
        let Some(operands) = operands else { return p.clone() };
        let Ok(made) = b.push(e.op().clone(), &operands, types, e.place()) else { return p.clone() };
        for (old, new) in e.results().zip(made.results()) {
            there[old.index()] = Some(new.into());
        }
    }
    let outputs: Option<Vec<Atom>> = p.outputs().iter().map(|a| map(&there, &mut b, *a)).collect();
    outputs.map_or_else(|| p.clone(), |outputs| b.finish(outputs))
}
