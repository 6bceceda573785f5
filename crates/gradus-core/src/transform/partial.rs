//! Partial evaluation: splits a program into what can be computed from its known inputs, and the rest. Values of
//! the first part that the second needs pass between them as residuals.
//!
//! *The law.* The known half, and then the unknown half, are the program: with inputs k that are known and u that are not,
//! `(a, r) = known(k)` and `b = unknown(r, u)` give its outputs, a where `known_outputs` says so and b elsewhere. [`Split::joined`]
//! writes that program down. Debug builds hold its types against those of the program at every split; tests run it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{place_of, residuals};
use crate::error::{Location, Result, error, fail};
use crate::phases::phase;
use crate::primitives::{Op, Partition};
use crate::program::{Atom, Builder, Constant, Equation, Program, eliminate_dead_code};
use crate::trace::{at_place, caller_or_known};
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

impl Split {
    /// The two halves one after the other, as one program of the inputs that were split: by the law it computes what the program did.
    pub fn joined(&self, inputs: &[Type], known_inputs: &[bool]) -> Result<Program> {
        let mut b = Builder::new(self.known.name());
        let inputs = inputs.iter().map(|t| b.input(t.clone()).map(Atom::from)).collect::<Result<Vec<_>>>()?;
        let of = |wanted: bool| inputs.iter().zip(known_inputs).filter(move |(_, on)| **on == wanted).map(|(a, _)| *a);
        let mut early = b.inline(&self.known, &of(true).collect::<Vec<_>>(), Location::unknown())?;
        let saved = early.split_off(early.len().saturating_sub(self.residuals.len()));
        let late =
            b.inline(&self.unknown, &saved.into_iter().chain(of(false)).collect::<Vec<_>>(), Location::unknown())?;
        let (mut early, mut late) = (early.into_iter(), late.into_iter());
        let each = self.known_outputs.iter().map(|known| if *known { early.next() } else { late.next() });
        let outputs = each.collect::<Option<Vec<_>>>().ok_or_else(|| error!(Rule, "a split lost an output"))?;
        if early.next().is_some() || late.next().is_some() {
            fail!(Rule, "a split gives an output twice");
        }
        Ok(b.finish(outputs))
    }

    /// Refuses a split that cannot be put together to a program of the same types.
    #[cfg(debug_assertions)]
    fn check(&self, program: &Program, known_inputs: &[bool]) -> Result<()> {
        let joined = self.joined(program.inputs(), known_inputs)?;
        let (have, want) = (joined.output_types(), program.output_types());
        // Dimensions that are equal by a condition of the program may differ in their text.
        let equal = |(a, b): (&Dim, &Dim)| a.equals(b) != crate::types::Decision::No;
        let fits = |(a, b): (&Type, &Type)| {
            a.dtype() == b.dtype() && a.rank() == b.rank() && a.shape().iter().zip(b.shape().iter()).all(equal)
        };
        if have.len() != want.len() || !have.iter().zip(&want).all(fits) {
            fail!(Rule, "the halves of `{}` give {have:?} where it gives {want:?}", program.name());
        }
        Ok(())
    }
}

/// What a split goes by.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// Which inputs are known.
    pub(crate) known: &'a [bool],
    /// Which outputs the unknown half gives even if they are known.
    pub(crate) late: &'a [bool],
    /// Which inputs cost nothing to keep. With this, what is cheaply made again is not saved; without, all is that the unknown half needs.
    pub(crate) at_hand: Option<&'a [bool]>,
}

/// Splits `program` by which of its inputs are known.
pub fn partial_eval(program: &Program, known_inputs: &[bool]) -> Result<Split> {
    let late = vec![false; program.outputs().len()];
    let run = || split(program, Terms { known: known_inputs, late: &late, at_hand: None });
    phase("partially evaluate", |s: &Split| vec![&s.known, &s.unknown], run)
}

/// [`partial_eval`] that saves memory: a residual that is one cheap operation away from an input is computed again.
pub(super) fn partial_eval_saving(program: &Program, known_inputs: &[bool]) -> Result<Split> {
    let (late, at_hand) = (vec![false; program.outputs().len()], vec![true; program.inputs().len()]);
    let run = || split(program, Terms { known: known_inputs, late: &late, at_hand: Some(&at_hand) });
    phase("partially evaluate", |s: &Split| vec![&s.known, &s.unknown], run)
}

/// Splits a program: what is known is written down at once; what is not waits, because which known values it needs is known only at the end.
pub(super) fn split(program: &Program, terms: Terms<'_>) -> Result<Split> {
    if terms.known.len() != program.inputs().len() {
        fail!(Signature, "`{}` has {} inputs, not {}", program.name(), program.inputs().len(), terms.known.len());
    }
    let mut early = Early::of_inputs(program, terms)?;
    for e in program.equations() {
        early.add(e)?;
    }
    let wanted = early.wanted();
    let saved = early.saved(&wanted);
    let all_saved = saved == wanted;
    let made = early.finish(saved, all_saved)?;
    #[cfg(debug_assertions)]
    made.check(program, terms.known)?;
    Ok(made)
}

/// Where a value of the original program is to be found.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Known(Atom),
    Unknown,
}

impl Side {
    fn known(self) -> Option<Atom> {
        if let Side::Known(atom) = self { Some(atom) } else { None }
    }
}

/// A piece of the unknown half, before it is built.
struct Later {
    what: Piece,
    operands: Vec<Source>,
    place: Location,
    /// The original values that its results are.
    results: Vec<usize>,
}

enum Piece {
    Equation(Op),
    /// The later half of an operation that holds programs.
    Half(Program),
}

/// An operand of the unknown half: an original value, a constant, or a value of the known half.
enum Source {
    Value(usize),
    Constant(Constant),
    Known(Atom),
}

/// The known half under construction, and what waits for the unknown one.
struct Early<'a> {
    program: &'a Program,
    terms: Terms<'a>,
    known: Builder,
    /// For each value so far, where it is.
    sides: Vec<Side>,
    later: Vec<Later>,
}

impl<'a> Early<'a> {
    fn of_inputs(program: &'a Program, terms: Terms<'a>) -> Result<Early<'a>> {
        let mut known = Builder::new(format!("{}_known", program.name()));
        let mut sides = Vec::with_capacity(program.value_count());
        for (ty, on) in program.inputs().iter().zip(terms.known) {
            sides.push(if *on { Side::Known(known.input(ty.clone())?.into()) } else { Side::Unknown });
        }
        Ok(Early { program, terms, known, sides, later: Vec::new() })
    }

    /// An equation whose operands are known is known; of one that holds programs a part may be; all others wait.
    fn add(&mut self, e: &Equation) -> Result<()> {
        let operands = self.known_operands(e)?;
        if let Some(all) = operands.iter().copied().collect::<Option<Vec<Atom>>>() {
            let results = self.known.equation(e.op().clone(), &all, e.place())?.results();
            self.sides.extend(results.map(|r| Side::Known(r.into())));
            return Ok(());
        }
        match self.halves(e, &operands)? {
            Some(halves) => self.add_halves(e, &operands, halves),
            None => {
                self.sides.extend(e.results().map(|_| Side::Unknown));
                let operands = self.program.operands(e).iter().map(|a| self.source(*a)).collect::<Result<_>>()?;
                let results = e.results().map(|r| r.index()).collect();
                self.later.push(Later { what: Piece::Equation(e.op().clone()), operands, place: e.place(), results });
                Ok(())
            }
        }
    }

    /// The operands of an equation in the known half, where they are there.
    fn known_operands(&mut self, e: &Equation) -> Result<Vec<Option<Atom>>> {
        let mut all = Vec::with_capacity(self.program.operands(e).len());
        for &a in self.program.operands(e) {
            all.push(match (a.value(), self.program.constant(a)) {
                (Some(v), _) => self.sides[v.index()].known(),
                (None, Some(c)) => Some(self.known.constant(c.clone())),
                (None, None) => fail!(Verify, "an undefined value"),
            });
        }
        Ok(all)
    }

    /// An operand of what waits.
    fn source(&self, atom: Atom) -> Result<Source> {
        match (atom.value(), self.program.constant(atom)) {
            (Some(v), _) => Ok(Source::Value(v.index())),
            (None, Some(c)) => Ok(Source::Constant(c.clone())),
            (None, None) => fail!(Verify, "an undefined value"),
        }
    }

    /// An operation that holds a program is split inside, so that what it can compute early it does: also where no operand is known, if a
    /// result depends on none.
    fn halves(&self, e: &Equation, operands: &[Option<Atom>]) -> Result<Option<Partition>> {
        let flags: Vec<bool> = operands.iter().map(Option::is_some).collect();
        let free = || e.op().depends(&vec![true; flags.len()]).is_some_and(|on| on.contains(&false));
        if !e.op().holds_programs() || !(flags.contains(&true) || free()) {
            return Ok(None);
        }
        // What is made of it, and what is wrong with it, belongs to the user's line.
        at_place(place_of(e, caller_or_known(Location::unknown())), || e.op().partial_eval(&flags))
    }

    fn add_halves(&mut self, e: &Equation, operands: &[Option<Atom>], halves: Partition) -> Result<()> {
        let inputs: Vec<Atom> = operands.iter().flatten().copied().collect();
        let mut made = self.known.inline(&halves.known, &inputs, e.place())?.into_iter();
        let mut results = Vec::new();
        for (known, r) in halves.known_outputs.iter().zip(e.results()) {
            let lost = || error!(Rule, "`{}` lost a result when it was split", e.op().name());
            self.sides.push(if *known { Side::Known(made.next().ok_or_else(lost)?) } else { Side::Unknown });
            if !known {
                results.push(r.index());
            }
        }
        // Behind the known results are the residuals.
        let mut sources: Vec<Source> = made.map(Source::Known).collect();
        for (a, known) in self.program.operands(e).iter().zip(operands) {
            if known.is_none() {
                sources.push(self.source(*a)?);
            }
        }
        self.later.push(Later { what: Piece::Half(halves.unknown), operands: sources, place: e.place(), results });
        Ok(())
    }

    /// Where an output is, if it is a value.
    fn side(&self, output: Atom) -> Option<Side> {
        output.value().map(|v| self.sides[v.index()])
    }

    /// Which outputs the known half gives.
    fn known_outputs(&self) -> Vec<bool> {
        let each = self.program.outputs().iter().zip(self.terms.late);
        each.map(|(a, late)| !late && self.side(*a) != Some(Side::Unknown)).collect()
    }

    /// The known values that the unknown half needs, each once, in the order in which it does. What waits learns which of its operands they
    /// are.
    fn wanted(&mut self) -> Vec<Atom> {
        let mut wanted = Vec::new();
        for source in self.later.iter_mut().flat_map(|piece| &mut piece.operands) {
            if let Source::Value(v) = source
                && let Side::Known(atom) = self.sides[*v]
            {
                *source = Source::Known(atom);
            }
            if let Source::Known(atom) = source {
                wanted.push(*atom);
            }
        }
        let outputs = self.program.outputs().iter().zip(self.terms.late).filter(|(_, late)| **late);
        wanted.extend(outputs.filter_map(|(a, _)| self.side(*a)?.known()));
        let mut seen: FxHashSet<Atom> = FxHashSet::default();
        wanted.retain(|a| self.known.program().constant(*a).is_none() && seen.insert(*a));
        wanted
    }

    /// What is saved for the unknown half to make what it needs of.
    fn saved(&self, wanted: &[Atom]) -> Vec<Atom> {
        let Some(at_hand) = self.terms.at_hand else { return wanted.to_vec() };
        let at_hand: Vec<bool> = at_hand.iter().zip(self.terms.known).filter(|(_, on)| **on).map(|(a, _)| *a).collect();
        let outputs = self.program.outputs().iter().zip(self.known_outputs()).filter(|(_, on)| *on);
        let given: Vec<Atom> = outputs.filter_map(|(a, _)| self.side(*a)?.known()).collect();
        residuals::chosen(&self.known, wanted, &at_hand, &given)
    }

    /// Both halves, with these residuals.
    fn finish(mut self, saved: Vec<Atom>, all_saved: bool) -> Result<Split> {
        let residuals = saved.iter().map(|r| self.known.ty(*r).clone()).collect();
        let known_outputs = self.known_outputs();
        let mut late = Late::of_inputs(&self, &saved)?;
        for piece in std::mem::take(&mut self.later) {
            late.add(&self.known, piece)?;
        }
        let unknown_out = late.outputs(&self, &known_outputs)?;
        let mut known_out = self.outputs(&known_outputs)?;
        known_out.extend(saved);
        let mut unknown = late.unknown;
        require_conditions(self.program, &mut self.known);
        require_conditions(self.program, &mut unknown);
        let known = self.known.finish(known_out);
        Ok(Split {
            // What was only to be saved, and is not, need not be computed.
            known: if all_saved { known } else { eliminate_dead_code(&known, true) },
            unknown: unknown.finish(unknown_out),
            known_outputs,
            residuals,
        })
    }

    /// The outputs that the known half gives.
    fn outputs(&mut self, known_outputs: &[bool]) -> Result<Vec<Atom>> {
        let mut all = Vec::new();
        for (a, _) in self.program.outputs().iter().zip(known_outputs).filter(|(_, on)| **on) {
            all.push(match (self.side(*a), self.program.constant(*a)) {
                (Some(Side::Known(atom)), _) => atom,
                (None, Some(c)) => self.known.constant(c.clone()),
                _ => fail!(Verify, "an undefined output"),
            });
        }
        Ok(all)
    }
}

/// The unknown half under construction.
struct Late {
    unknown: Builder,
    /// For values of the known half that are here: saved ones, and those that were made again.
    rebuilt: FxHashMap<Atom, Atom>,
    /// For each value of the original program, where it is, if it is here.
    there: Vec<Option<Atom>>,
}

impl Late {
    /// Its inputs: what is saved, then what is not known.
    fn of_inputs(early: &Early<'_>, saved: &[Atom]) -> Result<Late> {
        let program = early.program;
        let mut unknown = Builder::new(format!("{}_unknown", program.name()));
        let mut rebuilt = FxHashMap::default();
        for r in saved {
            rebuilt.insert(*r, unknown.input(early.known.ty(*r).clone())?.into());
        }
        let mut there = vec![None; program.value_count()];
        for (i, (ty, known)) in program.inputs().iter().zip(early.terms.known).enumerate() {
            if !known {
                there[i] = Some(unknown.input(ty.clone())?.into());
            }
        }
        Ok(Late { unknown, rebuilt, there })
    }

    fn known(&mut self, known: &Builder, atom: Atom) -> Result<Atom> {
        residuals::rebuild(known, &mut self.unknown, &mut self.rebuilt, atom)
    }

    fn value(&self, v: usize) -> Result<Atom> {
        self.there[v].ok_or_else(|| error!(Verify, "a value with no definition"))
    }

    fn add(&mut self, known: &Builder, piece: Later) -> Result<()> {
        let mut operands = Vec::with_capacity(piece.operands.len());
        for source in piece.operands {
            operands.push(match source {
                Source::Constant(c) => self.unknown.constant(c),
                Source::Known(atom) => self.known(known, atom)?,
                Source::Value(v) => self.value(v)?,
            });
        }
        let made: Vec<Atom> = match piece.what {
            Piece::Equation(op) => {
                self.unknown.equation(op, &operands, piece.place)?.results().map(Atom::from).collect()
            }
            Piece::Half(program) => self.unknown.inline(&program, &operands, piece.place)?,
        };
        for (v, r) in piece.results.into_iter().zip(made) {
            self.there[v] = Some(r);
        }
        Ok(())
    }

    /// The outputs that the unknown half gives.
    fn outputs(&mut self, early: &Early<'_>, known_outputs: &[bool]) -> Result<Vec<Atom>> {
        let mut all = Vec::new();
        for (a, _) in early.program.outputs().iter().zip(known_outputs).filter(|(_, on)| !**on) {
            all.push(match (a.value(), early.program.constant(*a)) {
                (Some(v), _) => match early.sides[v.index()] {
                    Side::Known(atom) => self.known(&early.known, atom)?,
                    Side::Unknown => self.value(v.index())?,
                },
                (None, Some(c)) => self.unknown.constant(c.clone()),
                (None, None) => fail!(Verify, "an undefined output"),
            });
        }
        Ok(all)
    }
}

/// A condition belongs to each half that has its symbols: the equation that asked for it may be in neither.
fn require_conditions(program: &Program, half: &mut Builder) {
    let there: Vec<Arc<str>> =
        half.program().inputs().iter().flat_map(|t| t.shape().iter()).flat_map(Dim::symbols).collect();
    let conditions = program.constraints().iter();
    let conditions = conditions.filter(|c| c.symbols().iter().all(|s| there.contains(s))).cloned();
    half.require(&conditions.collect::<Vec<_>>());
}
