//! Moves out of loops what is the same in every step.
//!
//! A value of a body is *fixed* if it is made of the loop's constants alone. Carries that a step returns as they came are
//! constants; constants and sequences of one number are written into the body. A fixed equation moves in front of the loop,
//! and its result comes in as a constant. Loops inside are done first, so that what is fixed in all of them moves all the way.
//!
//! A loop may run no step at all, and then what stands in front of it is computed for nothing. So only operations that cannot fail
//! move out of such a loop; out of one that is sure to run everything without effects does. What is cheap to compute and
//! large to keep stays inside: see [`Room`].

use std::sync::Arc;

use super::nested::{Made, Nested, equations};
use super::{Exactness, applied, visit};
use crate::error::{Location, Result};
use crate::primitives::Op;
use crate::primitives::control::{Scan, While};
use crate::primitives::shaping::{Broadcast, Iota, Reshape};
use crate::program::{Atom, Builder, Constant, Equation, Program, ValueId};
use crate::types::Type;

/// Moves out of loops what is the same in every step.
pub(super) fn hoist(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &|p, nested| {
        equations(p, &mut |b, e, operands| {
            let op = nested.op(e.op())?;
            if let Some(scan) = op.downcast::<Scan>() {
                return Ok(Made::There(hoist_scan(b, scan, operands, e.place())?));
            }
            if let Some(repeat) = op.downcast::<While>() {
                return Ok(Made::There(hoist_while(b, repeat, operands, e.place())?));
            }
            Ok(Made::As(op))
        })
    })
}

/// What an input of a body is.
#[derive(Clone)]
enum Role {
    /// The same in every step, and this value in front of the loop.
    Fixed(Atom),
    /// The same in every step, and this constant anywhere.
    Number(Constant),
    /// Another one in every step.
    Varying,
}

/// A loop as this pass sees it.
struct Loop<'a> {
    operands: &'a [Atom],
    roles: Vec<Role>,
    consts: usize,
    carries: usize,
}

impl<'a> Loop<'a> {
    fn new(b: &Builder, body: &Program, operands: &'a [Atom], consts: usize, carries: usize) -> Loop<'a> {
        let number = |a: Atom| b.program().constant(a).filter(|c| c.splat_value().is_some());
        let fixed = |a: Atom| number(a).map_or(Role::Fixed(a), |c| Role::Number(c.clone()));
        // Whether output `k` of the body is what carry `k` starts from.
        let returned = |k: usize| {
            let (out, start) = (body.outputs()[k], operands[consts + k]);
            match (out.value().map(ValueId::index), body.constant(out)) {
                (Some(i), _) if i == consts + k => true,
                (Some(i), _) if i < consts => operands[i] == start,
                (None, Some(c)) => b.program().constant(start) == Some(c),
                _ => false,
            }
        };
        let roles = body.inputs().iter().zip(operands).enumerate().map(|(i, (ty, a))| match i {
            // Dimensions that are equal by a condition may differ in their text: then nothing can take its place.
            _ if i < consts + carries && b.ty(*a) != ty => Role::Varying,
            _ if i < consts => fixed(*a),
            _ if i < consts + carries => {
                if returned(i - consts) {
                    fixed(*a)
                } else {
                    Role::Varying
                }
            }
            // Every element of a sequence of one number is that number.
            _ => match number(*a).and_then(Constant::splat_value) {
                Some(value) => Role::Number(Constant::splat(ty.clone(), value)),
                None => Role::Varying,
            },
        });
        Loop { operands, roles: roles.collect(), consts, carries }
    }

    fn is_fixed(&self, i: usize) -> bool {
        !matches!(self.roles[i], Role::Varying)
    }

    /// Inputs that stay inputs: first constants, among them carries that became some, then what `moved` adds, then the
    /// carries and sequences that vary.
    fn constants(&self) -> impl Iterator<Item = usize> + '_ {
        let is_const = |i: &usize| *i < self.consts || matches!(self.roles[*i], Role::Fixed(_));
        (0..self.roles.len()).filter(|i| !matches!(self.roles[*i], Role::Number(_))).filter(is_const)
    }

    fn varying(&self) -> impl Iterator<Item = usize> + '_ {
        (self.consts..self.roles.len()).filter(|i| !self.is_fixed(*i))
    }

    fn varying_carries(&self) -> usize {
        (self.consts..self.consts + self.carries).filter(|i| !self.is_fixed(*i)).count()
    }
}

/// How much a loop may take in as constants that it could compute from others with little work: as much as its operands
/// take, and a little at least.
struct Room(u128);

impl Room {
    const LEAST: u128 = 1 << 20;

    fn of(b: &Builder, operands: &[Atom]) -> Room {
        Room(operands.iter().map(|a| b.ty(*a).estimated_bytes()).sum::<u128>().max(Room::LEAST))
    }

    /// Whether the results of an equation are worth keeping.
    fn pays(&mut self, p: &Program, e: &Equation) -> bool {
        // These are no work where they are used, and the first two make much of little.
        if e.op().is::<Broadcast>() || e.op().is::<Iota>() || e.op().is::<Reshape>() {
            return false;
        }
        // Anything that is more than one operation for each element of its result.
        if !e.op().is_elementwise() {
            return true;
        }
        let bytes: u128 = e.results().map(|r| p.ty(r).estimated_bytes()).sum();
        let fits = bytes <= self.0;
        self.0 = self.0.saturating_sub(if fits { bytes } else { 0 });
        fits
    }
}

/// How the equations of a body are divided.
struct Division {
    /// Equations that are computed in front of the loop.
    front: Vec<bool>,
    /// Equations that are computed in every step. Some are in both places.
    inside: Vec<bool>,
    /// Values that the body takes from the front.
    passed: Vec<ValueId>,
}

/// Which values of a body can be computed in front of the loop.
fn movable(p: &Program, of: &Loop<'_>, sure_to_run: bool) -> Vec<bool> {
    let mut movable: Vec<bool> = (0..p.inputs().len()).map(|i| of.is_fixed(i)).collect();
    movable.resize(p.value_count(), false);
    for e in p.equations() {
        visit();
        let fixed = p.operands(e).iter().all(|a| a.value().is_none_or(|v| movable[v.index()]));
        let moves = fixed && (e.op().is_total() || sure_to_run) && e.op().effects().is_pure();
        e.results().for_each(|r| movable[r.index()] = moves);
    }
    movable
}

/// Divides a body. `inside` are the outputs that steps give, `front` those that the front gives.
fn divide(p: &Program, movable: &[bool], inside: &[Atom], front: &[Atom], room: &mut Room) -> Division {
    let count = p.equations().len();
    let (mut in_front, mut in_steps) = (vec![false; p.value_count()], vec![false; p.value_count()]);
    let mark = |marks: &mut [bool], atoms: &[Atom]| {
        atoms.iter().filter_map(|a| a.value()).for_each(|v| marks[v.index()] = true);
    };
    mark(&mut in_steps, inside);
    mark(&mut in_front, front);
    let mut d = Division { front: vec![false; count], inside: vec![false; count], passed: Vec::new() };
    for (i, e) in p.equations().iter().enumerate().rev() {
        visit();
        let wanted = |marks: &[bool]| e.results().any(|r| marks[r.index()]);
        let moves = e.results().len() > 0 && e.results().all(|r| movable[r.index()]);
        if !moves {
            if wanted(&in_steps) || !e.op().effects().is_pure() {
                d.inside[i] = true;
                mark(&mut in_steps, p.operands(e));
            }
            continue;
        }
        let mut front = wanted(&in_front);
        if wanted(&in_steps) {
            if room.pays(p, e) {
                front = true;
                d.passed.extend(e.results().filter(|r| in_steps[r.index()]));
            } else {
                d.inside[i] = true;
                mark(&mut in_steps, p.operands(e));
            }
        }
        if front {
            d.front[i] = true;
            mark(&mut in_front, p.operands(e));
        }
    }
    d
}

/// Computes in front of the loop what a division says; gives each value of the body that is there.
fn compute_front(
    b: &mut Builder,
    p: &Program,
    of: &Loop<'_>,
    d: &Division,
    place: Location,
) -> Result<Vec<Option<Atom>>> {
    let mut there: Vec<Option<Atom>> = vec![None; p.value_count()];
    for (slot, role) in there.iter_mut().zip(&of.roles) {
        *slot = match role {
            Role::Fixed(a) => Some(*a),
            Role::Number(c) => Some(b.constant(c.clone())),
            Role::Varying => None,
        };
    }
    for (e, _) in p.equations().iter().zip(&d.front).filter(|(_, on)| **on) {
        applied("loop: what is the same in every step is computed in front");
        let operands = b.mapped(p, &there, p.operands(e))?;
        let types = e.results().map(|r| p.ty(r).clone()).collect();
        let at = if e.place().is_known() { e.place() } else { place };
        let made = b.push(e.op().clone(), &operands, types, at)?.results();
        e.results().zip(made).for_each(|(old, new)| there[old.index()] = Some(new.into()));
    }
    Ok(there)
}

/// The body that is left: it takes constants, what `passed` lists, and what varies. `own` says which of the passed values are its.
fn rest_of(
    p: &Program,
    of: &Loop<'_>,
    d: &Division,
    passed: &[Type],
    own: std::ops::Range<usize>,
    outputs: &[Atom],
) -> Result<Program> {
    let mut b = Builder::new(p.name());
    let mut there: Vec<Option<Atom>> = vec![None; p.value_count()];
    for i in of.constants() {
        there[i] = Some(b.input(p.inputs()[i].clone())?.into());
    }
    for (k, ty) in passed.iter().enumerate() {
        let input = b.input(ty.clone())?;
        if own.contains(&k) {
            there[d.passed[k - own.start].index()] = Some(input.into());
        }
    }
    for i in of.varying() {
        there[i] = Some(b.input(p.inputs()[i].clone())?.into());
    }
    b.require(p.constraints());
    for (i, role) in of.roles.iter().enumerate() {
        if let Role::Number(c) = role {
            there[i] = Some(b.constant(c.clone()));
        }
    }
    for (e, _) in p.equations().iter().zip(&d.inside).filter(|(_, on)| **on) {
        let operands = b.mapped(p, &there, p.operands(e))?;
        let types = e.results().map(|r| p.ty(r).clone()).collect();
        let made = b.push(e.op().clone(), &operands, types, e.place())?.results();
        for (old, new) in e.results().zip(made) {
            there[old.index()].get_or_insert(new.into());
        }
    }
    let outputs = b.mapped(p, &there, outputs)?.into_vec();
    Ok(b.finish(outputs))
}

/// Where a result of a loop comes from.
enum Source {
    /// It is there without the loop.
    Alias(Atom),
    /// A value of the body, the same in every step: as often as there are steps.
    Repeated(Atom),
    /// The next result of the loop.
    Loop,
}

fn hoist_scan(b: &mut Builder, scan: &Scan, operands: &[Atom], place: Location) -> Result<Vec<Atom>> {
    let body = &*scan.body;
    let of = Loop::new(b, body, operands, scan.consts, scan.carries);
    let sure = scan.length.constant().is_some_and(|n| n >= 1);
    let movable = movable(body, &of, sure);
    let sequence = |ty: &Type| ty.with_shape(ty.shape().inserted(0, scan.length.clone()));
    let is_sequence = |i: usize| (scan.consts + scan.carries..operands.len()).contains(&i);
    let mut sources = Vec::with_capacity(body.outputs().len());
    for (k, out) in body.outputs().iter().enumerate() {
        let carried = k < scan.carries;
        let at = scan.consts + if carried { k } else { 0 };
        sources.push(match out.value().map(ValueId::index) {
            // A carry that is returned as it came ends as it began.
            _ if carried && of.is_fixed(at) => Source::Alias(operands[at]),
            _ if carried => Source::Loop,
            // The elements of a sequence, each in its place.
            Some(i) if is_sequence(i) && *b.ty(operands[i]) == sequence(body.ty(*out)) => Source::Alias(operands[i]),
            Some(i) if movable[i] => Source::Repeated(*out),
            Some(_) => Source::Loop,
            None => match body.constant(*out).and_then(Constant::splat_value) {
                Some(value) => Source::Alias(b.constant(Constant::splat(sequence(body.ty(*out)), value))),
                None => Source::Loop,
            },
        });
    }
    let (mut inside, mut front) = (Vec::new(), Vec::new());
    for (source, out) in sources.iter().zip(body.outputs()) {
        match source {
            Source::Loop => inside.push(*out),
            Source::Repeated(a) => front.push(*a),
            Source::Alias(_) => {}
        }
    }
    let division = divide(body, &movable, &inside, &front, &mut Room::of(b, operands));
    let there = compute_front(b, body, &of, &division, place)?;
    let mut results: Vec<Atom> = Vec::new();
    if !inside.is_empty() || !body.effects().is_pure() {
        let passed: Vec<Type> = division.passed.iter().map(|v| body.ty(*v).clone()).collect();
        let rest = rest_of(body, &of, &division, &passed, 0..passed.len(), &inside)?;
        let consts = of.constants().count() + passed.len();
        let op = Scan { body: Arc::new(rest), consts, carries: of.varying_carries(), ..scan.clone() };
        let operands = loop_operands(&of, &there, &division.passed);
        results = b.equation(Op::new(op), &operands, place)?.results().map(Atom::from).collect();
    }
    let mut next = results.into_iter();
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        match source {
            Source::Alias(a) => {
                applied("scan: a result that is there without the loop");
                all.push(a);
            }
            Source::Loop => all.extend(next.next()),
            Source::Repeated(a) => {
                applied("scan: a result that is the same in every step is repeated");
                let [value] = b.mapped(body, &there, &[a])?[..] else { continue };
                let shape = sequence(body.ty(a)).shape().clone();
                let axes = (1..shape.rank()).collect();
                all.push(b.equation(Op::new(Broadcast { shape, axes }), &[value], place)?.result().into());
            }
        }
    }
    Ok(all)
}

fn loop_operands(of: &Loop<'_>, there: &[Option<Atom>], passed: &[ValueId]) -> Vec<Atom> {
    let passed = passed.iter().filter_map(|v| there[v.index()]);
    let constants = of.constants().map(|i| of.operands[i]);
    constants.chain(passed).chain(of.varying().map(|i| of.operands[i])).collect()
}

fn hoist_while(b: &mut Builder, repeat: &While, operands: &[Atom], place: Location) -> Result<Vec<Atom>> {
    let (body, condition) = (&*repeat.body, &*repeat.condition);
    let carries = operands.len() - repeat.consts;
    let mut of = Loop::new(b, body, operands, repeat.consts, carries);
    if of.varying_carries() == 0 {
        // Nothing changes from step to step: the loop does not begin, or does not end. It is left to do so.
        of.roles[repeat.consts..].fill(Role::Varying);
    }
    let in_body = movable(body, &of, false);
    // The condition is asked at least once.
    let in_condition = movable(condition, &of, repeat.limit != Some(0));
    let is_kept = |k: &usize| !of.is_fixed(repeat.consts + k);
    let inside: Vec<Atom> = (0..carries).filter(is_kept).map(|k| body.outputs()[k]).collect();
    let mut room = Room::of(b, operands);
    let body_parts = divide(body, &in_body, &inside, &[], &mut room);
    let condition_parts = divide(condition, &in_condition, condition.outputs(), &[], &mut room);
    let body_there = compute_front(b, body, &of, &body_parts, place)?;
    let condition_there = compute_front(b, condition, &of, &condition_parts, place)?;
    let types = |p: &Program, d: &Division| d.passed.iter().map(|v| p.ty(*v).clone()).collect::<Vec<Type>>();
    let passed = [types(body, &body_parts), types(condition, &condition_parts)].concat();
    let first = body_parts.passed.len();
    let op = While {
        body: Arc::new(rest_of(body, &of, &body_parts, &passed, 0..first, &inside)?),
        condition: Arc::new(rest_of(
            condition,
            &of,
            &condition_parts,
            &passed,
            first..passed.len(),
            condition.outputs(),
        )?),
        consts: of.constants().count() + passed.len(),
        ..repeat.clone()
    };
    let mut all: Vec<Atom> = of.constants().map(|i| operands[i]).collect();
    all.extend(body_parts.passed.iter().filter_map(|v| body_there[v.index()]));
    all.extend(condition_parts.passed.iter().filter_map(|v| condition_there[v.index()]));
    all.extend(of.varying().map(|i| operands[i]));
    let mut results = b.equation(Op::new(op), &all, place)?.results().map(Atom::from).collect::<Vec<_>>().into_iter();
    let mut result = |k: usize| {
        if is_kept(&k) {
            return results.next();
        }
        applied("while: a carry that is returned as it came");
        Some(operands[repeat.consts + k])
    };
    Ok((0..carries).filter_map(&mut result).collect())
}
