//! Partial evaluation: splits a program into what can be computed from its known inputs, and the rest. Values of
//! the first part that the second needs pass between them as residuals.

use rustc_hash::FxHashMap;

use crate::error::{Result, error, fail};
use crate::phases::phase;
use crate::primitives::Op;
use crate::program::{Atom, Builder, Constant, Program};
use crate::types::Type;

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

/// One equation of the unknown part, before it is built.
struct Later {
    op: Op,
    operands: Vec<Source>,
    place: crate::Place,
    /// The original values that its results are.
    results: Vec<usize>,
}

/// An operand of the unknown part: an original value, a constant, or a residual made for it.
#[derive(Clone)]
enum Source {
    Value(usize),
    Constant(Constant),
    Residual(usize),
}

/// Splits `program` by which of its inputs are known.
pub fn partial_eval(program: &Program, known_inputs: &[bool]) -> Result<Split> {
    phase("partially evaluate", |s: &Split| vec![&s.known, &s.unknown], || split(program, known_inputs))
}

fn split(program: &Program, known_inputs: &[bool]) -> Result<Split> {
    if known_inputs.len() != program.inputs().len() {
        fail!(Signature, "`{}` has {} inputs, not {}", program.name(), program.inputs().len(), known_inputs.len());
    }
    let mut known = Builder::new(format!("{}_known", program.name()));
    let mut sides: Vec<Side> = Vec::with_capacity(program.value_count());
    for (ty, on) in program.inputs().iter().zip(known_inputs) {
        sides.push(if *on { Side::Known(known.input(ty.clone())?.into()) } else { Side::Unknown });
    }
    let mut later: Vec<Later> = Vec::new();
    let mut residuals: Vec<Atom> = Vec::new();
    let mut residual_index: FxHashMap<Atom, usize> = FxHashMap::default();
    let mut residual_of = |atom: Atom| {
        *residual_index.entry(atom).or_insert_with(|| {
            residuals.push(atom);
            residuals.len() - 1
        })
    };
    for e in program.equations() {
        let atoms = program.operands(e);
        let mut sources = Vec::with_capacity(atoms.len());
        let mut early: Vec<Option<Atom>> = Vec::with_capacity(atoms.len());
        for &a in atoms {
            match (a.value(), program.constant(a)) {
                (Some(v), _) => match sides[v.index()] {
                    Side::Known(atom) => {
                        early.push(Some(atom));
                        sources.push(Source::Value(v.index()));
                    }
                    Side::Unknown => {
                        early.push(None);
                        sources.push(Source::Value(v.index()));
                    }
                },
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
        // An operation that holds a program is split inside, so that what it can compute early it does.
        let flags: Vec<bool> = early.iter().map(Option::is_some).collect();
        if flags.contains(&true)
            && let Some(parts) = e.op().partial_eval(&flags)?
        {
            let inputs: Vec<Atom> = early.iter().flatten().copied().collect();
            let made: Vec<Atom> = known.equation(parts.known, &inputs, e.place())?.results().map(Atom::from).collect();
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
            let passed = kept.iter().map(|a| Source::Residual(residual_of(*a)));
            let rest = early.iter().zip(sources).filter(|(k, _)| k.is_none()).map(|(_, s)| s);
            let operands = passed.chain(rest).collect();
            later.push(Later { op: parts.unknown, operands, place: e.place(), results: unknown_results });
            continue;
        }
        sides.extend(results.iter().map(|_| Side::Unknown));
        later.push(Later { op: e.op().clone(), operands: sources, place: e.place(), results });
    }
    // Which known values the second part needs is known only now.
    for equation in &mut later {
        for source in &mut equation.operands {
            if let Source::Value(v) = source
                && let Side::Known(atom) = sides[*v]
            {
                *source = Source::Residual(residual_of(atom));
            }
        }
    }
    let known_outputs: Vec<bool> =
        program.outputs().iter().map(|a| a.value().is_none_or(|v| sides[v.index()] != Side::Unknown)).collect();
    let mut unknown = Builder::new(format!("{}_unknown", program.name()));
    let mut residual_inputs: Vec<Atom> = Vec::with_capacity(residuals.len());
    for r in &residuals {
        residual_inputs.push(unknown.input(known.ty(*r).clone())?.into());
    }
    let mut there: Vec<Option<Atom>> = vec![None; program.value_count()];
    for (i, (ty, on)) in program.inputs().iter().zip(known_inputs).enumerate() {
        if !on {
            there[i] = Some(unknown.input(ty.clone())?.into());
        }
    }
    for equation in later {
        let mut operands = Vec::with_capacity(equation.operands.len());
        for source in equation.operands {
            operands.push(match source {
                Source::Constant(c) => unknown.constant(c),
                Source::Residual(i) => residual_inputs[i],
                Source::Value(v) => there[v].ok_or_else(|| error!(Verify, "a value with no definition"))?,
            });
        }
        let made = unknown.equation(equation.op, &operands, equation.place)?.results();
        for (v, r) in equation.results.into_iter().zip(made) {
            there[v] = Some(r.into());
        }
    }
    let mut known_out = Vec::new();
    let mut unknown_out = Vec::new();
    for (a, on) in program.outputs().iter().zip(&known_outputs) {
        match (a.value(), program.constant(*a)) {
            (None, Some(c)) => known_out.push(known.constant(c.clone())),
            (Some(v), _) => match sides[v.index()] {
                Side::Known(atom) if *on => known_out.push(atom),
                _ => unknown_out.push(there[v.index()].ok_or_else(|| error!(Verify, "an output with no definition"))?),
            },
            (None, None) => fail!(Verify, "an undefined output"),
        }
    }
    let residual_types = residuals.iter().map(|r| known.ty(*r).clone()).collect();
    known_out.extend(residuals.iter().copied());
    Ok(Split {
        known: known.finish(known_out),
        unknown: unknown.finish(unknown_out),
        known_outputs,
        residuals: residual_types,
    })
}
