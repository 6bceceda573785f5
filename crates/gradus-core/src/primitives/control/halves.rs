//! A scan in two: the first loop carries what is known, the second the rest. What the second needs of a step is stacked; what is the same in
//! every step passes once, and elements of known sequences pass as the sequences they are.
//!
//! *The law* is that of every split (`transform::partial`): the first half and then the second are the scan.

use std::rc::Rc;
use std::sync::Arc;

use super::groups::Groups;
use super::{Scan, flipped, picked, positions};
use crate::error::{Location, Result};
use crate::primitives::{Op, Partition};
use crate::program::{Atom, Builder, Program, ValueId};
use crate::transform::{Split, Terms, split_of};
use crate::types::Type;

/// How a residual of the body passes from the first loop to the second.
#[derive(Clone, Copy, PartialEq)]
enum Pass {
    /// It is the same in every step.
    Once,
    /// It is the element of this known sequence.
    Sequence(usize),
    /// It is another in every step.
    Stacked,
}

/// What passes from one half to the other, in the order in which it does.
struct Passed<T> {
    /// What is the same in every step.
    once: Vec<T>,
    /// Carries that are known at the start alone.
    starts: Vec<T>,
    /// What each step has one element of.
    steps: Vec<T>,
}

impl<T: Clone> Passed<T> {
    fn in_order(&self) -> Vec<T> {
        [self.once.as_slice(), &self.starts, &self.steps].concat()
    }
}

pub(super) struct Halves<'a> {
    scan: &'a Scan,
    /// Which operands are known.
    given: &'a [bool],
    /// Which of them are known in every step.
    known: Vec<bool>,
    /// The body, split by that.
    body: Rc<Split>,
    /// For each residual of the body.
    passes: Vec<Pass>,
}

impl<'a> Halves<'a> {
    /// The two halves; none if nothing could be computed early.
    pub(super) fn of(scan: &'a Scan, given: &'a [bool]) -> Result<Option<Partition>> {
        let (known, body) = split_body(scan, given)?;
        if !body.known_outputs.contains(&true) && body.known.equations().is_empty() {
            return Ok(None);
        }
        let passes = passes(&body, scan.groups(&known).marked());
        let halves = Halves { scan, given, known, body, passes };
        let (known, passed) = halves.first()?;
        let unknown = halves.second(passed)?;
        Ok(Some(Partition { known, unknown, known_outputs: halves.body.known_outputs.clone() }))
    }

    /// How many operands of each kind are known in every step.
    fn early(&self) -> Groups<usize> {
        self.scan.groups(&self.known).marked()
    }

    /// The residuals of the body that pass in a way.
    fn passing(&self, wanted: impl Fn(Pass) -> bool) -> Vec<usize> {
        (0..self.passes.len()).filter(|i| wanted(self.passes[*i])).collect()
    }

    /// The first half: what is the same in every step, then the loop. With it come the types of what passes.
    fn first(&self) -> Result<(Program, Passed<Type>)> {
        let mut b = Builder::new("known");
        let types = picked(&self.scan.operand_types(), self.given);
        let inputs = types.iter().map(|t| b.input(t.clone()).map(Atom::from)).collect::<Result<Vec<_>>>()?;
        // A carry that is not known all the way is known at the start; the second half takes that.
        let all_the_way = picked(&self.known, self.given);
        let (operands, starts) = (picked(&inputs, &all_the_way), picked(&inputs, &flipped(&all_the_way)));
        let groups = self.early().take(&operands);
        let hoisted = b.inline(&self.hoisted()?, groups.consts, Location::unknown())?;
        let (results, stacks) = self.first_loop(&mut b, &operands)?;
        let (mut hoisted, mut stacks) = (hoisted.into_iter(), stacks.into_iter());
        let mut passed = Passed { once: Vec::new(), starts, steps: Vec::new() };
        for pass in &self.passes {
            match pass {
                Pass::Once => passed.once.extend(hoisted.next()),
                Pass::Sequence(i) => passed.steps.push(groups.sequences[*i]),
                Pass::Stacked => passed.steps.extend(stacks.next()),
            }
        }
        let of = |atoms: &[Atom]| atoms.iter().map(|a| b.ty(*a).clone()).collect();
        let types = Passed { once: of(&passed.once), starts: of(&passed.starts), steps: of(&passed.steps) };
        Ok((b.finish([results, passed.in_order()].concat()), types))
    }

    /// From the known constants to the residuals that are the same in every step.
    fn hoisted(&self) -> Result<Program> {
        let body = &self.body.known;
        let given: Vec<ValueId> = (0..self.early().consts).map(ValueId::new).collect();
        let residuals = &body.outputs()[self.results()..];
        let once: Vec<Atom> = self.passing(|p| p == Pass::Once).into_iter().map(|i| residuals[i]).collect();
        body.between(&given, &once, false)
    }

    /// How many outputs of the first body are results; residuals follow.
    fn results(&self) -> usize {
        positions(&self.body.known_outputs).len()
    }

    /// The loop over what is known: its results, and the residuals that are stacked.
    fn first_loop(&self, b: &mut Builder, operands: &[Atom]) -> Result<(Vec<Atom>, Vec<Atom>)> {
        let body = &self.body.known;
        let stacked = self.passing(|p| p == Pass::Stacked).into_iter().map(|i| self.results() + i);
        let outputs: Vec<usize> = (0..self.results()).chain(stacked).collect();
        let every: Vec<usize> = (0..body.inputs().len()).collect();
        let body = Arc::new(body.rearranged(&every, &outputs)?);
        if outputs.is_empty() && body.effects().is_pure() {
            return Ok((Vec::new(), Vec::new()));
        }
        let early = self.early();
        let op = Op::new(self.scan.with(body, early.consts, early.carries));
        let mut results: Vec<Atom> = b.equation(op, operands, Location::unknown())?.results().map(Atom::from).collect();
        let stacks = results.split_off(self.results());
        Ok((results, stacks))
    }

    /// The second half: a loop over the rest.
    fn second(&self, passed: Passed<Type>) -> Result<Program> {
        let mut b = Builder::new("unknown");
        let late = picked(&self.scan.operand_types(), &flipped(self.given));
        let types = passed.in_order().into_iter().chain(late);
        let inputs = types.map(|t| b.input(t).map(Atom::from)).collect::<Result<Vec<_>>>()?;
        let (once, rest) = inputs.split_at(passed.once.len());
        let (starts, rest) = rest.split_at(passed.starts.len());
        let (steps, rest) = rest.split_at(passed.steps.len());
        // What is not known in every step, from where it comes: what was known at the start, or the other operands.
        let (mut starts, mut rest) = (starts.iter(), rest.iter());
        let from = |given: &bool| if *given { starts.next() } else { rest.next() };
        let unknown: Vec<Atom> = picked(self.given, &flipped(&self.known)).iter().filter_map(from).copied().collect();
        let late = self.scan.groups(&flipped(&self.known)).marked();
        let groups = late.take(&unknown);
        let operands = [once, groups.consts, groups.carries, steps, groups.sequences].concat();
        let body = Arc::new(self.second_body(late)?);
        let op = Op::new(self.scan.with(body, once.len() + late.consts, late.carries));
        let results = b.equation(op, &operands, Location::unknown())?.results().map(Atom::from).collect();
        Ok(b.finish(results))
    }

    /// The unknown half of the body, with its residuals where the second loop has them.
    fn second_body(&self, late: Groups<usize>) -> Result<Program> {
        let body = &self.body.unknown;
        let own = late.positions(self.passes.len());
        let (once, steps) = (self.passing(|p| p == Pass::Once), self.passing(|p| p != Pass::Once));
        let order = once.into_iter().chain(own.consts).chain(own.carries).chain(steps).chain(own.sequences);
        let every: Vec<usize> = (0..body.outputs().len()).collect();
        body.rearranged(&order.collect::<Vec<_>>(), &every)
    }
}

/// Which operands are known in every step, and the body split by that: a carry is known as long as its next value is.
fn split_body(scan: &Scan, given: &[bool]) -> Result<(Vec<bool>, Rc<Split>)> {
    // What is made of a sequence's element is made again rather than stacked. What is made of constants is saved once, and making it again in
    // every step would cost more.
    let at_hand: Vec<bool> = (0..given.len()).map(|i| i >= scan.consts + scan.carries).collect();
    let split = |unknown: &[bool]| {
        let mut late = scan.groups(unknown).carries.to_vec();
        late.resize(scan.body.outputs().len(), false);
        split_of(&scan.body, Terms { known: &flipped(unknown), late: &late, at_hand: Some(&at_hand) })
    };
    let unknown =
        scan.settle(&flipped(given), |unknown| Ok(flipped(&split(unknown)?.known_outputs[..scan.carries])))?;
    let body = split(&unknown)?;
    Ok((flipped(&unknown), body))
}

/// How each residual of the body passes.
fn passes(body: &Split, early: Groups<usize>) -> Vec<Pass> {
    let p = &body.known;
    let own = early.positions(0);
    let varying: Vec<bool> = (0..p.inputs().len()).map(|i| !own.consts.contains(&i)).collect();
    let varies = p.varies_with(&varying);
    let pass = |a: &Atom| match a.value().map(ValueId::index) {
        None => Pass::Once,
        Some(v) if !varies[v] => Pass::Once,
        Some(v) if own.sequences.contains(&v) => Pass::Sequence(v - own.sequences.start),
        Some(_) => Pass::Stacked,
    };
    p.outputs()[p.outputs().len() - body.residuals.len()..].iter().map(pass).collect()
}
