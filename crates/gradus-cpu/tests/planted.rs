//! Is what checks lowered modules able to fail? Faults are planted in them, one at a time: a place moved by one, a stride changed, a term lost, a store left
//! out. Every one that changes a number must be found without looking at numbers. Not of stores that write an element once more (a pad over its filling, an
//! update, a running total): there the element is the value's own before and after, and only numbers tell whether the store was done.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gradus_core::optimize::{Exactness, for_execution};
use gradus_core::testing::{RandomProgram, Recipe};
use gradus_core::{Array, Executable};
use gradus_cpu::exec::Evaluated;
use gradus_cpu::ir::meaning::Meanings;
use gradus_cpu::ir::{Expr, Index, Int, Module, Stmt};
use gradus_cpu::lower::{Lowered, lower_with};

/// What is done to a place.
const KINDS: usize = 6;

/// Goes through the loads and stores of a body; the one whose turn it is gets a fault, or the next that the kind fits. True if one did.
fn plant(m: &Meanings, body: &mut Vec<Stmt>, left: &mut usize, kind: usize) -> bool {
    for k in 0..body.len() {
        let inside = match &mut body[k] {
            Stmt::Let(_, Expr::Load(_, at)) if *left == 0 => return spoil(at, kind),
            Stmt::Store { at, .. } if is_first(m, at) && *left == 0 && kind < KINDS - 1 => return spoil(at, kind),
            Stmt::Store { at, .. } if is_first(m, at) && *left == 0 => {
                body.remove(k);
                return true;
            }
            Stmt::Let(_, Expr::Load(..)) => {
                *left -= 1;
                false
            }
            Stmt::Store { at, .. } => {
                *left -= usize::from(is_first(m, at));
                false
            }
            Stmt::Loop(l) => plant(m, &mut l.body, left, kind),
            Stmt::While(w) => plant(m, &mut w.before, left, kind) || plant(m, &mut w.body, left, kind),
            Stmt::Switch(s) => s.cases.iter_mut().any(|(body, _)| plant(m, body, left, kind)),
            _ => false,
        };
        if inside {
            return true;
        }
    }
    false
}

fn spoil(at: &mut Index, kind: usize) -> bool {
    match kind {
        0 => at.offset += 1,
        1 => at.offset -= 1,
        2 => match at.terms.first_mut() {
            Some((_, Int::Const(s))) => *s += 1,
            _ => return false,
        },
        3 => return at.terms.pop().is_some(),
        4 if at.terms.len() > 1 => {
            let (a, b) = (at.terms[0].1, at.terms[1].1);
            (at.terms[0].1, at.terms[1].1) = (b, a);
            return a != b;
        }
        _ => return false,
    }
    true
}

/// Whether a store is the first of its element.
fn is_first(m: &Meanings, at: &Index) -> bool {
    m.get(at.means).is_some_and(|meaning| !meaning.again)
}

/// How many places of a body can have a fault.
fn places(m: &Meanings, body: &[Stmt]) -> usize {
    let of = |s: &Stmt| match s {
        Stmt::Let(_, Expr::Load(..)) => 1,
        Stmt::Store { at, .. } => usize::from(is_first(m, at)),
        Stmt::Loop(l) => places(m, &l.body),
        Stmt::While(w) => places(m, &w.before) + places(m, &w.body),
        Stmt::Switch(s) => s.cases.iter().map(|(body, _)| places(m, body)).sum(),
        _ => 0,
    };
    body.iter().map(of).sum()
}

fn all_places(m: &Module) -> usize {
    m.kernels.iter().map(|k| places(&m.meanings, &k.body)).sum::<usize>() + places(&m.meanings, &m.main)
}

/// The module with a fault at one of its places; none if that kind of fault does not fit there.
fn spoiled(mut l: Lowered, place: usize, kind: usize) -> Option<Lowered> {
    let mut left = place;
    let Module { kernels, main, meanings, .. } = &mut l.module;
    for k in kernels {
        let here = places(meanings, &k.body);
        if left < here {
            return plant(meanings, &mut k.body, &mut left, kind).then_some(l);
        }
        left -= here;
    }
    plant(meanings, main, &mut left, kind).then_some(l)
}

fn same(a: &[Array], b: &[Array]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.concrete().zip(b.concrete()).is_some_and(|(a, b)| a.same_bits(b)))
}

#[test]
fn row_r7_a_planted_fault_is_found_without_looking_at_numbers() {
    std::panic::set_hook(Box::new(|_| {}));
    let (mut planted, mut harmful, mut missed) = (0, 0, Vec::new());
    for seed in 0..100 {
        let recipe = Recipe { equations: 5, smooth: true, sums: true, symbolic: false, large: seed % 2 == 0 };
        let random = RandomProgram::from_recipe(seed, recipe);
        let Ok(ready) = for_execution(&random.program, Exactness::Exact) else { continue };
        let lowered = || lower_with(&ready, [16, 1][seed as usize % 2], true).unwrap();
        let run = |lowered: Lowered| Evaluated { lowered, signature: random.program.clone() }.run(&random.inputs);
        let want = run(lowered()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let all = all_places(&lowered().module);
        for place in (0..all).step_by(all.div_ceil(12).max(1)) {
            for kind in 0..KINDS {
                let Some(bad) = spoiled(lowered(), place, kind) else { continue };
                planted += 1;
                // One that stops is found, however it stops.
                match catch_unwind(AssertUnwindSafe(|| run(bad))) {
                    Ok(Ok(have)) if same(&have, &want) => {}
                    Ok(Ok(_)) => missed.push((seed, place, kind)),
                    _ => harmful += 1,
                }
            }
        }
    }
    drop(std::panic::take_hook());
    assert!(planted > 500 && harmful > 400, "{planted} planted, {harmful} harmful");
    assert!(missed.is_empty(), "{} of {harmful} not found: {missed:?}", missed.len());
}
