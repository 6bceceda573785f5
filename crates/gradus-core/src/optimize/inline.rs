//! Writes out calls where they stand, and drops the marks that only transformations read: rules of users, names, stops.
//!
//! A call is written out if its program is small or nothing else calls it. What is larger and called more than once stays a
//! call, so that a program of calls of calls cannot grow beyond measure; a budget bounds what small ones add up to.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::nested::{Made, Nested, equations};
use super::simplify::map_atom;
use super::{Exactness, applied, visit};
use crate::error::{Location, Result};
use crate::primitives::control::{
    BatchMost, Call, CustomJvp, CustomLinear, CustomVjp, LinearSolve, Name, OwnStep, Root, StopGradient,
};
use crate::primitives::{Op, Types};
use crate::program::{Atom, Builder, Constant, Program};
use crate::types::{DType, Scalar};

/// A program of at most so many equations is small.
const SMALL: usize = 64;
/// Copies of small programs together have at most so many times the equations that were there, and a few more.
const GROWTH: usize = 4;
const FLOOR: usize = 4096;

/// Writes out calls; see the head of this file.
pub(super) fn inline(p: &Program, _: Exactness) -> Result<Program> {
    let mut census = Census::default();
    census.count(p);
    let room = Cell::new(census.equations.saturating_mul(GROWTH).saturating_add(FLOOR));
    let weights = RefCell::default();
    Nested::run(p, &|p, nested| flatten(p, nested, &census, &room, &weights))
}

/// What an operation comes to when it runs, if that is to run one program once. What names it among its like is first.
fn called(op: &Op) -> Option<(usize, Arc<Program>)> {
    let by = |p: &Arc<Program>| Some((Arc::as_ptr(p) as usize, p.clone()));
    if let Some(call) = op.downcast::<Call>() {
        return by(&call.program);
    }
    // A user's rule has said all it has to say once derivatives are taken: what is left is the function.
    if let Some(custom) = op.downcast::<CustomJvp>() {
        return by(&custom.function);
    }
    if let Some(custom) = op.downcast::<CustomVjp>() {
        return by(&custom.function);
    }
    // So has an equation: what is left is how its solution is found.
    if let Some(system) = op.downcast::<LinearSolve>() {
        return by(&system.solve);
    }
    if let Some(root) = op.downcast::<Root>() {
        return by(&root.solver);
    }
    // A backward pass that is not linear has no map to write out; it stays, and says so when it runs.
    let custom = op.downcast::<CustomLinear>()?;
    Some((Arc::as_ptr(&custom.backward) as usize, custom.forward().ok()?))
}

/// The program that an operation comes to when it runs, if that is to run one program once: what is called, or the function that has a rule of its own.
pub fn run_by(op: &Op) -> Option<Arc<Program>> {
    called(op).map(|(_, program)| program)
}

/// How often each program is called, and how large all programs are, each counted once.
#[derive(Default)]
struct Census {
    calls: FxHashMap<usize, usize>,
    seen: FxHashMap<usize, Arc<Program>>,
    equations: usize,
}

impl Census {
    fn count(&mut self, p: &Program) {
        self.equations += p.equations().len();
        for e in p.equations().iter().filter(|e| e.op().holds_programs()) {
            visit();
            match called(e.op()) {
                Some((name, program)) => {
                    *self.calls.entry(name).or_default() += 1;
                    self.enter(program);
                }
                None => e.op().programs().into_iter().for_each(|p| self.enter(p)),
            }
        }
    }

    fn enter(&mut self, p: Arc<Program>) {
        if self.seen.insert(Arc::as_ptr(&p) as usize, p.clone()).is_none() {
            self.count(&p);
        }
    }
}

fn flatten(
    p: &Program,
    nested: &Nested<'_>,
    census: &Census,
    room: &Cell<usize>,
    weights: &RefCell<FxHashMap<usize, usize>>,
) -> Result<Program> {
    equations(p, &mut |b, e, operands| {
        // name x = x; stop_gradient x = x; batch_most n = n, outside of a batch.
        if e.op().is::<Name>() || e.op().is::<StopGradient>() || e.op().is::<BatchMost>() {
            applied("name x = x, stop_gradient x = x");
            return Ok(Made::There(vec![operands[0]]));
        }
        // Outside of a batch every step is the loop's own.
        if e.op().is::<OwnStep>() {
            let always = Constant::splat(b.ty(operands[0]).with_dtype(DType::Bool), Scalar::Bool(true));
            return Ok(Made::There(vec![b.constant(always)]));
        }
        // The map that a user's backward pass stands for may ask for conditions that its transpose does not.
        let stated = |body: &Program| body.constraints().iter().all(|c| p.constraints().contains(c));
        let Some((name, body)) = called(e.op()).filter(|(_, body)| stated(body)) else {
            return nested.op(e.op()).map(Made::As);
        };
        let body = nested.of(&body)?;
        let once = census.calls.get(&name).is_none_or(|n| *n <= 1);
        let cost = if once { 0 } else { weight(&body, weights) };
        if takes(&body, b, operands) && cost <= SMALL && cost <= room.get() {
            applied("a call is written out");
            room.set(room.get() - cost);
            return Ok(Made::There(write_out(b, &body, operands, e.place())?));
        }
        Ok(Made::As(Op::new(Call { program: body })))
    })
}

/// Equations of a program, those of loops and branches in it included. A call counts as one: its program is shared.
fn weight(p: &Arc<Program>, known: &RefCell<FxHashMap<usize, usize>>) -> usize {
    let address = Arc::as_ptr(p) as usize;
    if let Some(weight) = known.borrow().get(&address) {
        return *weight;
    }
    let inside = |op: &Op| match op.holds_programs() && !op.is::<Call>() {
        true => op.programs().iter().fold(0usize, |sum, p| sum.saturating_add(weight(p, known))),
        false => 0,
    };
    let weight = p.equations().iter().fold(0usize, |sum, e| sum.saturating_add(1 + inside(e.op())));
    known.borrow_mut().insert(address, weight);
    weight
}

/// Whether a program can be written out on these operands: dimensions that are equal by a condition may differ in their
/// text, and then the types inside are not those outside.
pub(super) fn takes(p: &Program, b: &Builder, operands: &[Atom]) -> bool {
    p.inputs().len() == operands.len() && p.inputs().iter().zip(operands).all(|(want, a)| b.ty(*a) == want)
}

/// Adds the equations of a program, on these inputs; gives what it returns. Equations without a line get `place`.
pub(super) fn write_out(b: &mut Builder, p: &Program, inputs: &[Atom], place: Location) -> Result<Vec<Atom>> {
    b.require(p.constraints());
    let mut there: Vec<Atom> = Vec::with_capacity(p.value_count());
    there.extend_from_slice(inputs);
    for e in p.equations() {
        visit();
        let mut operands: SmallVec<[Atom; 4]> = SmallVec::new();
        for &a in p.operands(e) {
            operands.push(map_atom(p, &there, b, a)?);
        }
        let types: Types = e.results().map(|r| p.ty(r).clone()).collect();
        let at = if e.place().is_known() { e.place() } else { place };
        let made = b.push(e.op().clone(), &operands, types, at)?.results();
        there.extend(made.map(Atom::from));
    }
    p.outputs().iter().map(|a| map_atom(p, &there, b, *a)).collect()
}
