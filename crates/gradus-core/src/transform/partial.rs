//! Partial evaluation: splits a program into what can be computed from its known inputs, and the rest. Values of
//! the first part that the second needs pass between them as residuals.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::residuals;
use crate::error::{Place, Result, error, fail};
use crate::optimize::eliminate_dead_code;
use crate::phases::phase;
use crate::primitives::Op;
use crate::program::{Atom, Builder, Constant, Program, ValueId};
use crate::types::{Dim, Type};

/// A program split in two.
#[derive(Clone, Debug)]
pub struct Split {
    /// From the known inputs: the known outputs, then the residuals.
    pub known: Program,
    /// From the residuals and the unknown inputs: the other outputs.
    pub unknown: Program,
    /// Which outputs the known program gives.
    pub known_outputs: Vec<bool>,
    /// The residuals' types.
    pub residuals: Vec<Type>,
}

/// Where a value of the original program is to be found.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Known(Atom),
    Unknown,
}

/// A piece of the unknown part, before it is built.
struct Later {
    what: Piece,
    operands: Vec<Source>,
    place: Place,
    /// The original values that its results are.
    results: Vec<usize>,
}

enum Piece {
    Equation(Op),
    /// The later half of an operation that holds programs.
    Half(Program),
}

/// An operand of the unknown part: an original value, a constant, or a value of the known part.
#[derive(Clone)]
enum Source {
    Value(usize),
    Constant(Constant),
    Known(Atom),
}

/// Splits `program` by which of its inputs are known.
pub fn partial_eval(program: &Program, known_inputs: &[bool]) -> Result<Split> {
    let late = vec![false; program.outputs().len()];
    let run = || split(program, known_inputs, &late, None);
    phase("partially evaluate", |s: &Split| vec![&s.known, &s.unknown], run)
}

/// [`partial_eval`] that saves memory: a residual that is one cheap operation away from an input is computed again.
pub(super) fn partial_eval_saving(program: &Program, known_inputs: &[bool]) -> Result<Split> {
    let (late, at_hand) = (vec![false; program.outputs().len()], vec![true; program.inputs().len()]);
    let run = || split(program, known_inputs, &late, Some(&at_hand));
    phase("partially evaluate", |s: &Split| vec![&s.known, &s.unknown], run)
}

/// Splits a program. Outputs marked in `late` are given by the unknown part even if they are known. With `at_hand`, what
/// is cheaply made again is not saved; inputs marked in it cost nothing to keep.
pub(super) fn split(
    program: &Program,
    known_inputs: &[bool],
    late: &[bool],
    at_hand: Option<&[bool]>,
) -> Result<Split> {
    if known_inputs.len() != program.inputs().len() {
        fail!(Signature, "`{}` has {} inputs, not {}", program.name(), program.inputs().len(), known_inputs.len());
    }
    let mut known = Builder::new(format!("{}_known", program.name()));
    let mut sides: Vec<Side> = Vec::with_capacity(program.value_count());
    let mut known_at_hand = Vec::new();
    for (i, (ty, on)) in program.inputs().iter().zip(known_inputs).enumerate() {
        sides.push(if *on { Side::Known(known.input(ty.clone())?.into()) } else { Side::Unknown });
        if let (true, Some(at_hand)) = (*on, at_hand) {
            known_at_hand.push(at_hand[i]);
        }
    }
    let mut pieces: Vec<Later> = Vec::new();
    for e in program.equations() {
        let atoms = program.operands(e);
        let mut sources = Vec::with_capacity(atoms.len());
        let mut early: Vec<Option<Atom>> = Vec::with_capacity(atoms.len());
        for &a in atoms {
            match (a.value(), program.constant(a)) {
                (Some(v), _) => {
                    early.push(if let Side::Known(atom) = sides[v.index()] { Some(atom) } else { None });
                    sources.push(Source::Value(v.index()));
                }
                (None, Some(c)) => {
                    early.push(Some(known.constant(c.clone())));
                    sources.push(Source::Constant(c.clone()));
                }
                (None, None) => fail!(Verify, "an undefined value"),
            }
        }
        if let Some(all) = early.iter().copied().collect::<Option<Vec<Atom>>>() {
            for r in known.equation(e.op().clone(), &all, e.place())?.results() {
                sides.push(Side::Known(r.into()));
            }
            continue;
        }
        let results: Vec<usize> = e.results().map(|r| r.index()).collect();
        // An operation that holds a program is split inside, so that what it can compute early it does: also where no operand is known, if a result depends on none.
        let flags: Vec<bool> = early.iter().map(Option::is_some).collect();
        let free = || e.op().depends(&vec![true; flags.len()]).is_some_and(|on| on.contains(&false));
        if e.op().holds_programs()
            && (flags.contains(&true) || free())
            && let Some(parts) = e.op().partial_eval(&flags)?
        {
            let inputs: Vec<Atom> = early.iter().flatten().copied().collect();
            let made = known.inline(&parts.known, &inputs, e.place())?;
            let (first, kept) = made.split_at(parts.known_outputs.iter().filter(|on| **on).count());
            let mut first = first.iter();
            let mut unknown_results = Vec::new();
            for (on, result) in parts.known_outputs.iter().zip(&results) {
                let side = if *on { first.next().map(|a| Side::Known(*a)) } else { Some(Side::Unknown) };
                sides.push(side.ok_or_else(|| error!(Rule, "`{}` lost a result when it was split", e.op().name()))?);
                if !on {
                    unknown_results.push(*result);
                }
            }
            let passed = kept.iter().map(|a| Source::Known(*a));
            let rest = early.iter().zip(sources).filter(|(k, _)| k.is_none()).map(|(_, s)| s);
            let (what, operands) = (Piece::Half(parts.unknown), passed.chain(rest).collect());
            pieces.push(Later { what, operands, place: e.place(), results: unknown_results });
            continue;
        }
        sides.extend(results.iter().map(|_| Side::Unknown));
        pieces.push(Later { what: Piece::Equation(e.op().clone()), operands: sources, place: e.place(), results });
    }
    let known_outputs: Vec<bool> = program
        .outputs()
        .iter()
        .zip(late)
        .map(|(a, late)| !late && a.value().is_none_or(|v| sides[v.index()] != Side::Unknown))
        .collect();
    // Which known values the second part needs is known only now.
    let mut wanted: Vec<Atom> = Vec::new();
    let mut seen: FxHashMap<Atom, ()> = FxHashMap::default();
    let mut want = |atom: Atom, known: &Builder| {
        if known.program().constant(atom).is_none() && seen.insert(atom, ()).is_none() {
            wanted.push(atom);
        }
    };
    for piece in &mut pieces {
        for source in &mut piece.operands {
            if let Source::Value(v) = source
                && let Side::Known(atom) = sides[*v]
            {
                *source = Source::Known(atom);
            }
            if let Source::Known(atom) = source {
                want(*atom, &known);
            }
        }
    }
    for (a, late) in program.outputs().iter().zip(late) {
        if let (true, Some(v)) = (*late, a.value())
            && let Side::Known(atom) = sides[v.index()]
        {
            want(atom, &known);
        }
    }
    let given = program.outputs().iter().zip(&known_outputs).filter(|(_, on)| **on).filter_map(|(a, _)| a.value());
    let known_side = |v: ValueId| if let Side::Known(atom) = sides[v.index()] { Some(atom) } else { None };
    let given: Vec<Atom> = given.filter_map(known_side).collect();
    let saved = match at_hand {
        Some(_) => residuals::chosen(&known, &wanted, &known_at_hand, &given),
        None => wanted.clone(),
    };
    let mut unknown = Builder::new(format!("{}_unknown", program.name()));
    let mut rebuilt: FxHashMap<Atom, Atom> = FxHashMap::default();
    for r in &saved {
        rebuilt.insert(*r, unknown.input(known.ty(*r).clone())?.into());
    }
    let mut there: Vec<Option<Atom>> = vec![None; program.value_count()];
    for (i, (ty, on)) in program.inputs().iter().zip(known_inputs).enumerate() {
        if !on {
            there[i] = Some(unknown.input(ty.clone())?.into());
        }
    }
    let undefined = || error!(Verify, "a value with no definition");
    for piece in pieces {
        let mut operands = Vec::with_capacity(piece.operands.len());
        for source in piece.operands {
            operands.push(match source {
                Source::Constant(c) => unknown.constant(c),
                Source::Known(atom) => residuals::rebuild(&known, &mut unknown, &mut rebuilt, atom)?,
                Source::Value(v) => there[v].ok_or_else(undefined)?,
            });
        }
        let made: Vec<Atom> = match piece.what {
            Piece::Equation(op) => unknown.equation(op, &operands, piece.place)?.results().map(Atom::from).collect(),
            Piece::Half(program) => unknown.inline(&program, &operands, piece.place)?,
        };
        for (v, r) in piece.results.into_iter().zip(made) {
            there[v] = Some(r);
        }
    }
    let mut known_out = Vec::new();
    let mut unknown_out = Vec::new();
    for (a, on) in program.outputs().iter().zip(&known_outputs) {
        match (a.value(), program.constant(*a)) {
            (None, Some(c)) if *on => known_out.push(known.constant(c.clone())),
            (None, Some(c)) => unknown_out.push(unknown.constant(c.clone())),
            (Some(v), _) => match sides[v.index()] {
                Side::Known(atom) if *on => known_out.push(atom),
                Side::Known(atom) => {
                    unknown_out.push(residuals::rebuild(&known, &mut unknown, &mut rebuilt, atom)?);
                }
                Side::Unknown => unknown_out.push(there[v.index()].ok_or_else(undefined)?),
            },
            (None, None) => fail!(Verify, "an undefined output"),
        }
    }
    let residual_types = saved.iter().map(|r| known.ty(*r).clone()).collect();
    known_out.extend(saved.iter().copied());
    // A condition belongs to each part that has its symbols: the equation that asked for it may be in neither.
    for part in [&mut known, &mut unknown] {
        let there: Vec<Arc<str>> =
            part.program().inputs().iter().flat_map(|t| t.shape().iter()).flat_map(Dim::symbols).collect();
        let conditions = program.constraints().iter();
        let conditions = conditions.filter(|c| c.symbols().iter().all(|s| there.contains(s))).cloned();
        part.require(&conditions.collect::<Vec<_>>());
    }
    let known = known.finish(known_out);
    Ok(Split {
        // What was only to be saved, and is not, need not be computed.
        known: if saved == wanted { known } else { eliminate_dead_code(&known, true) },
        unknown: unknown.finish(unknown_out),
        known_outputs,
        residuals: residual_types,
    })
}
