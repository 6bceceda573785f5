//! Loops and branches: small values go around in registers, arrays in two buffers that trade places, and an array that
//! only gets updates, or is only added to, stays where it is.

use std::sync::Arc;

use gradus_core::DType;
use gradus_core::primitives::control::{Scan, Switch, While};
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::index::{DynamicUpdateSlice, Scatter};
use gradus_core::program::{Atom, Equation, Program, ValueId};
use rustc_hash::FxHashSet;

use super::Lower;
use super::content::in_lanes;
use super::scatter::has_loop;
use super::values::{Repr, Values, dims_of};
use super::views::{View, count, is_empty};
use crate::error::{Result, error};
use crate::ir::meaning::{Note, Tag, TagName};
use crate::ir::{self, Buffer, Carried, Op, Stmt, Ty, Value};
use crate::size::Size;

/// How a carry goes around.
#[expect(clippy::large_enum_variant, reason = "there are as many as a loop has carries")]
enum Way {
    /// In scalars.
    Scalars { init: Vec<Value>, params: Vec<Value> },
    /// In two buffers: the body reads the first and writes the second, then they trade places.
    Swapped { now: View, next: View },
    /// In one buffer that the body updates.
    InPlace { now: View },
}

impl Way {
    fn wanted(&self) -> Option<View> {
        match self {
            Way::Scalars { .. } => None,
            Way::Swapped { next, .. } => Some(next.clone()),
            Way::InPlace { now } => Some(now.clone()),
        }
    }
}

/// Whether a body only puts updates into one of its inputs and gives it back: then it can stay where it is.
fn only_updated(body: &Program, input: usize, output: Atom) -> bool {
    let mut at = match output.value() {
        Some(v) => v,
        None => return false,
    };
    let mut updates = 0;
    for e in body.equations().iter().rev() {
        if e.result() != at || e.results().len() != 1 {
            continue;
        }
        let scatters = e.op().downcast::<Scatter>().is_some_and(|s| has_loop(body, e, s));
        if !e.op().is::<DynamicUpdateSlice>() && !scatters {
            return false;
        }
        let Some(x) = body.operands(e)[0].value() else { return false };
        updates += 1;
        at = x;
    }
    // Other readers of the old array come before the update if they can; else the update copies.
    updates > 0 && at == ValueId::new(input)
}

/// Whether a body makes each element of one of its inputs into the next, and takes it for nothing else: a sum that steps add to can stay where it is.
fn only_goes_on(body: &Program, input: usize, output: Atom) -> bool {
    let x = Atom::from(ValueId::new(input));
    let taken = body.equations().iter().flat_map(|e| body.operands(e)).chain(body.outputs()).filter(|a| **a == x);
    let made = output.value().and_then(|v| body.equations().iter().find(|e| e.results().any(|r| r == v)));
    let goes_on = |e: &Equation| e.results().len() == 1 && e.op().is_elementwise() && body.operands(e).contains(&x);
    Ty::holding(body.ty(x).dtype()).is_some() && made.is_some_and(goes_on) && taken.count() == 1
}

/// A loop of so many steps pays for turning a matrix once instead of in every product.
const WORTH_TURNING: usize = 4;

/// Whether an input of a body is a matrix that is the right factor of products along its last axis, and of matrices only: a
/// vector's product reads each element once in any order.
fn is_right_factor(body: &Program, input: usize) -> bool {
    let is_float = matches!(body.inputs()[input].dtype(), DType::F32 | DType::F64);
    let mut found = false;
    for e in body.equations() {
        let operands = body.operands(e);
        if let Some(d) = e.op().downcast::<DotGeneral>()
            && operands[1].value() == Some(ValueId::new(input))
        {
            let elements = count(&dims_of(body.ty(operands[0]))).guess();
            let summed = body.ty(operands[1]).shape().last().map_or(0, |d| Size::of(d).guess());
            if d.rhs_contract != [1] || !d.rhs_batch.is_empty() || elements <= summed {
                return false;
            }
            found = true;
        }
    }
    is_float && found && body.inputs()[input].rank() == 2
}

impl Lower {
    /// The same matrix with its rows next to each other: products of matrices would turn it around in every step.
    fn turned(&mut self, p: &Program, a: Atom, view: View) -> Result<View> {
        let ty = p.ty(a);
        if view.strides[1] != 1 || view.dims.contains(&Size::ONE) {
            return Ok(view);
        }
        let buffer = self.buffer(ty, ir::Role::Scratch)?;
        let to = View::dense(buffer, &[view.dims[1], view.dims[0]]).of(self.tag(TagName::Copy));
        self.copies.push(format!("{ty} is turned around before a loop whose products take it by columns"));
        self.copy(&view.permuted(&[1, 0]), &to, ty.dtype())?;
        Ok(to.permuted(&[1, 0]))
    }

    /// Whether an array lives in scalars.
    pub(super) fn is_small(&self, ty: &gradus_core::Type, dims: &[Size]) -> bool {
        Ty::holding(ty.dtype()).is_some() && count(dims).known().is_some_and(|n| (1..=self.small).contains(&n))
    }

    /// Brings the carries of a loop onto their way: operands from `first` on, as many as there are `carries`.
    fn begin_carries(
        &mut self,
        p: &Program,
        values: &Values,
        body: &Program,
        operands: &[Atom],
        (first, carries): (usize, usize),
    ) -> Result<Vec<Way>> {
        let mut ways = Vec::new();
        let lanes = in_lanes(body, self.small);
        let (consts, rest) = operands.split_at(first);
        let (operands, sequences) = rest.split_at(carries);
        // What the loop also reads as a constant or a sequence must stay as it is.
        let mut read: FxHashSet<Buffer> = FxHashSet::default();
        read.extend(consts.iter().chain(sequences).filter_map(|a| self.placed(values, *a)).map(|view| view.buffer));
        for (j, &a) in operands.iter().enumerate() {
            let ty = &body.inputs()[first + j];
            let dims = dims_of(ty);
            let in_lanes = lanes[first + j] || body.outputs()[j].value().is_some_and(|v| lanes[v.index()]);
            if self.is_small(ty, &dims) && !in_lanes {
                let init = self.elements(p, values, a)?;
                let params = init.iter().map(|v| self.emitter.value(self.emitter.ty(*v))).collect();
                ways.push(Way::Scalars { init, params });
                continue;
            }
            // What goes from step to step has a name of its own, and a time of its own.
            let scope = self.new_scope();
            let between = self.emitter.module.meanings.tag(scope, TagName::Carry(j as u32), None);
            self.emitter.push(Stmt::Note(Box::new(Note::Step(scope))));
            let now = self.own_copy(p, values, (a, ty), &read, between)?;
            read.insert(now.buffer);
            if [only_updated, only_goes_on].iter().any(|stays| stays(body, first + j, body.outputs()[j])) {
                ways.push(Way::InPlace { now });
                continue;
            }
            let next = self.buffer(ty, ir::Role::Scratch)?;
            self.frame.owned.insert(next);
            ways.push(Way::Swapped { now, next: View::dense(next, &dims).of(between) });
        }
        Ok(ways)
    }

    /// An array in memory that the loop may write: the operand's own if nothing else needs it.
    fn own_copy(
        &mut self,
        p: &Program,
        values: &Values,
        (a, ty): (Atom, &gradus_core::Type),
        taken: &FxHashSet<Buffer>,
        tag: Tag,
    ) -> Result<View> {
        let dims = &dims_of(ty);
        if let Some(view) = self.may_overwrite(values, a)
            && !taken.contains(&view.buffer)
            && self.emitter.module.buffers[view.buffer.index()].role == ir::Role::Scratch
        {
            let to = View::dense(view.buffer, dims).of(tag);
            self.becomes(&view, &to, ty.dtype());
            return Ok(to);
        }
        let buffer = self.buffer(ty, ir::Role::Scratch)?;
        self.frame.owned.insert(buffer);
        let to = View::dense(buffer, dims).of(tag);
        if is_empty(dims) {
            return Ok(to);
        }
        match self.splat_of(p, values, a) {
            Some(v) => self.fill(&to, v)?,
            None => {
                let from = self.memory(p, values, a)?;
                self.copies.push(format!("{ty} is copied before a loop that carries it"));
                self.copy(&from, &to, ty.dtype())?;
            }
        }
        Ok(to)
    }

    /// A step of a new loop begins; gives the loop around it.
    fn begin_step(&mut self) -> u32 {
        let scope = self.new_scope();
        self.emitter.push(Stmt::Note(Box::new(Note::Step(scope))));
        std::mem::replace(&mut self.scope, scope)
    }

    fn new_scope(&mut self) -> u32 {
        let scopes = &mut self.emitter.module.meanings.scopes;
        *scopes += 1;
        *scopes
    }

    /// From here on what the step before left is over: the step has taken it.
    fn take_carries(&mut self, ways: &[Way]) {
        for way in ways {
            if let Way::Swapped { now, .. } | Way::InPlace { now } = way {
                let scope = self.emitter.module.meanings.tags[now.mean.tag.0 as usize].scope;
                self.emitter.push(Stmt::Note(Box::new(Note::Step(scope))));
            }
        }
    }

    /// The carries as the body of a loop takes them: what a step finds is its own, and old when the next begins.
    fn carries_of_step(&mut self, ways: &[Way], body: &Program, first: usize) -> Vec<Repr> {
        let mut reprs = Vec::new();
        for (j, way) in ways.iter().enumerate() {
            reprs.push(match way {
                Way::Scalars { params, .. } => Repr::Elements(params.clone()),
                Way::Swapped { now, .. } | Way::InPlace { now } => {
                    let here = now.clone().of(self.tag(TagName::Carry(j as u32)));
                    self.becomes(now, &here, body.inputs()[first + j].dtype());
                    Repr::Memory(here)
                }
            });
        }
        reprs
    }

    /// The values that go around, in scalars; arrays trade places at the end of a step.
    fn end_step(&mut self, ways: &[Way], made: &[Repr]) -> Result<Vec<Carried>> {
        let mut carried = Vec::new();
        for (way, repr) in ways.iter().zip(made) {
            match (way, repr) {
                (Way::Scalars { init, params }, Repr::Elements(next)) => {
                    for ((init, param), next) in init.iter().zip(params).zip(next) {
                        let result = self.emitter.value(self.emitter.ty(*param));
                        carried.push(Carried { init: *init, param: *param, next: *next, result });
                    }
                }
                (Way::Swapped { now, next }, _) => self.emitter.push(Stmt::Swap(now.buffer, next.buffer)),
                (Way::InPlace { .. }, _) => {}
                (Way::Scalars { .. }, Repr::Memory(_)) => return Err(error!(Rule, "a carry left its registers")),
            }
        }
        Ok(carried)
    }

    /// The carries after a loop.
    fn after(ways: &[Way], carried: &[Carried]) -> Vec<Repr> {
        let mut results = carried.iter().map(|c| c.result);
        ways.iter()
            .map(|w| match w {
                Way::Scalars { params, .. } => Repr::Elements(results.by_ref().take(params.len()).collect()),
                Way::Swapped { now, .. } | Way::InPlace { now } => Repr::Memory(now.clone()),
            })
            .collect()
    }

    /// Buffers that a body may write because its loop carries them.
    fn owned_by(ways: &[Way]) -> FxHashSet<Buffer> {
        ways.iter()
            .filter_map(|w| match w {
                Way::InPlace { now } => Some(now.buffer),
                Way::Swapped { .. } | Way::Scalars { .. } => None,
            })
            .collect()
    }

    pub(super) fn scan(&mut self, p: &Program, values: &Values, e: &Equation, s: &Scan) -> Result<()> {
        if self.recurrence(p, values, e, s)? {
            return Ok(());
        }
        let operands = p.operands(e);
        let n = Size::of(&s.length);
        let (consts, rest) = operands.split_at(s.consts);
        let sequences = &rest[s.carries..];
        let lanes = in_lanes(&s.body, self.small);
        let mut inputs = self.arguments(p, values, consts, &lanes)?;
        for (i, input) in inputs.iter_mut().enumerate() {
            if let Repr::Memory(view) = input
                && n.guess() >= WORTH_TURNING
                && is_right_factor(&s.body, i)
            {
                *view = self.turned(p, consts[i], view.clone())?;
            }
        }
        let ways = self.begin_carries(p, values, &s.body, operands, (s.consts, s.carries))?;
        let mut views = Vec::new();
        for &a in sequences {
            views.push(match is_empty(values.dims(a)) {
                true => None,
                false => Some(self.memory(p, values, a)?),
            });
        }
        // Results that are stacked.
        let results: Vec<ValueId> = e.results().collect();
        let mut stacks = Vec::new();
        for r in &results[s.carries..] {
            let view = self.place_for(p, values, r.index())?;
            self.frame.reprs[r.index()] = Some(Repr::Memory(view.clone()));
            stacks.push(view);
        }
        let var = self.emitter.value(Ty::I64);
        self.emitter.begin();
        let around = self.begin_step();
        let step = if s.reverse {
            let last = self.emitter.size(n - 1i64);
            let step = self.emitter.op(Op::Sub, &[last, var]);
            self.emitter.ranges().below(step, n);
            self.emitter.ranges().steps.insert(step, var);
            step
        } else {
            var
        };
        inputs.extend(self.carries_of_step(&ways, &s.body, s.consts));
        self.take_carries(&ways);
        for (j, view) in views.iter().enumerate() {
            let ty = &s.body.inputs()[s.consts + s.carries + j];
            let dims = dims_of(ty);
            inputs.push(match view {
                Some(view) => {
                    let element = view.step(step);
                    if self.is_small(ty, &dims) && !lanes[s.consts + s.carries + j] {
                        Repr::Elements(self.load_all(&element))
                    } else {
                        Repr::Memory(element)
                    }
                }
                None => {
                    let tag = self.tag(TagName::Copy);
                    Repr::Memory(View::dense(self.buffer(ty, ir::Role::Scratch)?, &dims).of(tag))
                }
            });
        }
        let mut wanted: Vec<(Atom, Option<View>)> = Vec::new();
        for (way, a) in ways.iter().zip(s.body.outputs()) {
            wanted.push((*a, way.wanted()));
        }
        for (stack, a) in stacks.iter().zip(&s.body.outputs()[s.carries..]) {
            wanted.push((*a, Some(stack.step(step))));
        }
        let made = self.block(&s.body, inputs, &wanted, Self::owned_by(&ways))?;
        let carried = self.end_step(&ways, &made)?;
        let body = self.emitter.end();
        self.scope = around;
        self.emitter.serial(var, n, carried.clone(), body);
        for (r, repr) in results.iter().zip(Self::after(&ways, &carried)) {
            self.set(p, values, r.index(), repr)?;
        }
        Ok(())
    }

    /// Whether a loop goes on, as its condition says.
    fn condition(&mut self, w: &While, inputs: &[Repr]) -> Result<Value> {
        let wanted = [(w.condition.outputs()[0], None)];
        let made = self.block(&w.condition, inputs.to_vec(), &wanted, FxHashSet::default())?;
        match &made[..] {
            [Repr::Elements(condition)] => Ok(condition[0]),
            _ => Err(error!(Rule, "a condition is one bool")),
        }
    }

    pub(super) fn while_loop(&mut self, p: &Program, values: &Values, e: &Equation, w: &While) -> Result<()> {
        let operands = p.operands(e);
        let (consts, carries) = operands.split_at(w.consts);
        let mut inputs = self.arguments(p, values, consts, &in_lanes(&w.body, self.small))?;
        let ways = self.begin_carries(p, values, &w.body, operands, (w.consts, carries.len()))?;
        // A loop with a limit counts its steps.
        let counter = w.limit.map(|limit| (limit, self.emitter.int(0), self.emitter.value(Ty::I64)));
        self.emitter.begin();
        let around = self.begin_step();
        inputs.extend(self.carries_of_step(&ways, &w.body, w.consts));
        let condition = match counter {
            None => self.condition(w, &inputs)?,
            Some((limit, _, param)) => {
                let most = self.emitter.int(limit.min(i64::MAX as usize) as i64);
                let goes_on = self.emitter.op(Op::Lt, &[param, most]);
                if w.condition.effects().is_pure() {
                    let condition = self.condition(w, &inputs)?;
                    self.emitter.op(Op::And, &[condition, goes_on])
                } else {
                    // After the last step the condition is not asked, and what it does not done.
                    self.emitter.begin();
                    let condition = self.condition(w, &inputs)?;
                    let asked = (self.emitter.end(), vec![condition]);
                    self.emitter.begin();
                    let over = self.emitter.constant(self.emitter.ty(condition), 0);
                    let over = (self.emitter.end(), vec![over]);
                    let index = self.emitter.convert(goes_on, Ty::I64);
                    let result = self.emitter.value(self.emitter.ty(condition));
                    let cases = vec![over, asked];
                    self.emitter.push(Stmt::Switch(Box::new(ir::Switch { index, cases, results: vec![result] })));
                    result
                }
            }
        };
        let before = self.emitter.end();
        self.emitter.begin();
        self.take_carries(&ways);
        let wanted: Vec<(Atom, Option<View>)> =
            ways.iter().zip(w.body.outputs()).map(|(way, a)| (*a, way.wanted())).collect();
        let made = self.block(&w.body, inputs, &wanted, Self::owned_by(&ways))?;
        let mut carried = self.end_step(&ways, &made)?;
        if let Some((_, init, param)) = counter {
            let one = self.emitter.int(1);
            let next = self.emitter.op(Op::Add, &[param, one]);
            let result = self.emitter.value(Ty::I64);
            carried.push(Carried { init, param, next, result });
        }
        let body = self.emitter.end();
        self.scope = around;
        self.emitter.push(Stmt::While(Box::new(ir::While { carried: carried.clone(), before, condition, body })));
        for (r, repr) in e.results().zip(Self::after(&ways, &carried)) {
            self.set(p, values, r.index(), repr)?;
        }
        Ok(())
    }

    pub(super) fn switch(&mut self, p: &Program, values: &Values, e: &Equation, s: &Switch) -> Result<()> {
        let operands = p.operands(e);
        let index = self.elements(p, values, operands[0])?[0];
        let index = self.emitter.convert(index, Ty::I64);
        let lanes: Vec<Vec<bool>> = s.branches.iter().map(|b| in_lanes(b, self.small)).collect();
        let wanted: Vec<bool> = (1..operands.len()).map(|i| lanes.iter().any(|l| l[i - 1])).collect();
        let inputs = self.arguments(p, values, &operands[1..], &wanted)?;
        // Arrays are made at one place, whichever branch makes them.
        let mut places: Vec<Option<View>> = Vec::new();
        for (k, r) in e.results().enumerate() {
            let of_branch = |(b, l): (&Arc<Program>, &Vec<bool>)| b.outputs()[k].value().is_some_and(|v| l[v.index()]);
            let in_lanes = s.branches.iter().zip(&lanes).any(of_branch);
            let small = self.is_small(p.ty(r), &values.dims[r.index()]) && !in_lanes;
            places.push(if small { None } else { Some(self.place_for(p, values, r.index())?) });
        }
        let mut cases = Vec::new();
        for branch in &s.branches {
            self.emitter.begin();
            let wanted: Vec<(Atom, Option<View>)> =
                branch.outputs().iter().copied().zip(places.iter().cloned()).collect();
            let made = self.block(branch, inputs.clone(), &wanted, FxHashSet::default())?;
            let ends: Vec<Value> = made
                .iter()
                .zip(&places)
                .filter(|(_, place)| place.is_none())
                .flat_map(|(repr, _)| match repr {
                    Repr::Elements(e) => e.clone(),
                    Repr::Memory(_) => Vec::new(),
                })
                .collect();
            cases.push((self.emitter.end(), ends));
        }
        let types: Vec<Ty> =
            cases.first().map_or(Vec::new(), |(_, ends)| ends.iter().map(|v| self.emitter.ty(*v)).collect());
        let results: Vec<Value> = types.into_iter().map(|ty| self.emitter.value(ty)).collect();
        let mut left = results.iter().copied();
        self.emitter.push(Stmt::Switch(Box::new(ir::Switch { index, cases, results: results.clone() })));
        for (r, place) in e.results().zip(places) {
            let repr = match place {
                Some(view) => Repr::Memory(view),
                None => {
                    Repr::Elements(left.by_ref().take(count(&values.dims[r.index()]).known().unwrap_or(0)).collect())
                }
            };
            self.frame.reprs[r.index()] = Some(repr);
        }
        Ok(())
    }
}
