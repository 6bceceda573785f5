//! Scans whose step treats all elements alike, turned around: the elements outside, in lanes, and the steps inside. What a step hands to the next stays in
//! registers, and an array that no step changes is read once.

use gradus_core::primitives::control::Scan;
use gradus_core::primitives::shaping::{Broadcast, Permute, Reverse, Slice};
use gradus_core::program::{Atom, Equation, Program};

use super::content::FEWEST;
use super::emit::{cost, form_of};
use super::scalars::each;
use super::values::{NOWHERE, Repr, Values, constant_index, dims_of, is_mark, storage, view_of};
use super::views::{At, Dims, View, count, is_empty};
use super::walk::Walk;
use super::{Frame, Lower, bits_of};
use crate::cost::{Doing, Work};
use crate::error::{Result, error};
use crate::ir::meaning::Meaning;
use crate::ir::{Carried, Expr, Kind, LANES, Op, Stmt, Ty, Value};
use crate::size::Size;

/// A number for all elements is computed again for each block of them. It may cost as much as this many of the numbers that are computed for one.
const COMMON: f32 = 4.0;

/// So few elements in a run are no work for lanes, where there are several runs.
const FEW: usize = 8;

/// How a value of the body is there that no step computes.
#[derive(Clone)]
enum There {
    /// A number for all elements.
    Number(Value),
    /// In memory. Whether every step has another one.
    Memory(Box<View>, bool),
}

/// What a value of a body is.
#[derive(Clone, Copy, PartialEq)]
enum What {
    /// One number for each element.
    Lanes,
    /// A number for all of them.
    Common,
    /// An array that is only read, or a part of it.
    Read,
}

/// The dimensions of the arrays that go around, if a step computes each of their elements from elements at the same place.
fn by_elements(body: &Program, s: &Scan) -> Option<Dims> {
    let carries = &body.inputs()[s.consts..s.consts + s.carries];
    let dims = dims_of(carries.first()?);
    let same = |ty: &gradus_core::Type| dims_of(ty) == dims && Ty::holding(ty.dtype()).is_some();
    if !carries.iter().all(same) || is_empty(&dims) || count(&dims).at_most(FEWEST - 1) || !s.body.effects().is_pure() {
        return None;
    }
    let common = |a: Atom| body.ty(a).rank() == 0;
    let mut what: Vec<What> = Vec::with_capacity(body.value_count());
    for (i, ty) in body.inputs().iter().enumerate() {
        Ty::holding(ty.dtype())?;
        what.push(match (s.consts..s.consts + s.carries).contains(&i) {
            true => What::Lanes,
            false if ty.rank() == 0 => What::Common,
            false => What::Read,
        });
    }
    let (mut alike, mut shared) = (0.0, 0.0);
    for e in body.equations() {
        let of = |a: &Atom| match a.value() {
            Some(v) => what[v.index()],
            None if body.constants()[constant_index(*a)].splat_value().is_some() => What::Common,
            None => What::Read,
        };
        let (operands, result) = (body.operands(e), Atom::from(e.results().next()?));
        let shaped = |a: Atom| dims_of(body.ty(a)) == dims;
        let is = if e.results().len() != 1 {
            return None;
        } else if is_mark(e.op()) {
            of(&operands[0])
        } else if e.op().is::<Broadcast>() && of(&operands[0]) == What::Common {
            // A number for all elements is one for those of any array.
            if !shaped(result) && !common(result) {
                return None;
            }
            What::Common
        } else if [e.op().is::<Broadcast>(), e.op().is::<Permute>(), e.op().is::<Reverse>(), e.op().is::<Slice>()]
            .contains(&true)
        {
            if of(&operands[0]) != What::Read || common(result) {
                return None;
            }
            What::Read
        } else {
            form_of(body, e).ok().flatten()?;
            let is = if operands.iter().all(|a| of(a) == What::Common) { What::Common } else { What::Lanes };
            let fit = |a: &Atom| of(a) == What::Common || shaped(*a);
            if !operands.iter().all(fit) || !(shaped(result) || is == What::Common && common(result)) {
                return None;
            }
            *(if is == What::Lanes { &mut alike } else { &mut shared }) += cost(body, e);
            is
        };
        what.push(is);
    }
    let stacked = &body.outputs()[s.carries..];
    let worth = shared <= COMMON * alike || count(&dims).at_most(LANES);
    (stacked.iter().all(|a| dims_of(body.ty(*a)) == dims) && worth).then_some(dims)
}

/// The body of a scan as it is written, with what is there for the element at hand.
struct Turned<'a> {
    body: &'a Program,
    walk: Walk,
    /// The views that the walk goes along, by number.
    along: Vec<View>,
    there: Vec<Option<There>>,
    constants: Vec<There>,
    /// What was computed or read.
    now: Vec<Option<Value>>,
    constant: Vec<Option<Value>>,
}

impl Turned<'_> {
    fn there(&self, a: Atom) -> Option<&There> {
        match a.value() {
            Some(v) => self.there[v.index()].as_ref(),
            None => Some(&self.constants[constant_index(a)]),
        }
    }

    /// The element of a view.
    fn place(&self, view: &View) -> (At, Meaning) {
        match self.along.iter().position(|v| v == view) {
            Some(k) => self.walk.along(k, view.first()),
            None => view.first(),
        }
    }

    /// A value of the body, read if it was not yet.
    fn value(&mut self, l: &mut Lower, a: Atom) -> Result<Value> {
        let known = match a.value() {
            Some(v) => self.now[v.index()],
            None => self.constant[constant_index(a)],
        };
        if let Some(v) = known {
            return Ok(v);
        }
        let v = match self.there(a).ok_or_else(|| error!(Rule, "a step takes what is not there"))? {
            There::Number(v) => *v,
            There::Memory(view, _) => {
                let (at, meaning) = self.place(view);
                l.emitter.load(view.buffer, at, meaning)
            }
        };
        match a.value() {
            Some(x) => self.now[x.index()] = Some(v),
            None => self.constant[constant_index(a)] = Some(v),
        }
        Ok(v)
    }

    /// Writes the equations of a step.
    fn step(&mut self, l: &mut Lower) -> Result<()> {
        for e in self.body.equations() {
            let r = e.result();
            if self.there[r.index()].is_some() {
                continue;
            }
            let operands = self.body.operands(e).iter().map(|a| self.value(l, *a)).collect::<Result<Vec<Value>>>()?;
            let made = if is_mark(e.op()) || e.op().is::<Broadcast>() {
                Some(operands[0])
            } else {
                let operands: Vec<&[Value]> = operands.iter().map(std::slice::from_ref).collect();
                each(&mut l.emitter, (self.body, e), &operands, 1).pop()
            };
            self.now[r.index()] = Some(made.ok_or_else(|| error!(Rule, "a step has no form"))?);
        }
        Ok(())
    }
}

impl Lower {
    /// A scan as a loop over elements around one over steps. False if its step is none that treats all elements alike.
    pub(super) fn recurrence(&mut self, p: &Program, values: &Values, e: &Equation, s: &Scan) -> Result<bool> {
        let (body, operands, n) = (&*s.body, p.operands(e), Size::of(&s.length));
        let Some(dims) = by_elements(body, s).filter(|_| !operands.iter().any(|a| is_empty(values.dims(*a)))) else {
            return Ok(false);
        };
        let (var, step) = (self.emitter.value(Ty::I64), self.emitter.value(Ty::I64));
        let step = if s.reverse { step } else { var };
        let carries = s.consts..s.consts + s.carries;
        let (mut there, mut begin) = (vec![None; body.value_count()], Vec::new());
        for (i, &a) in operands.iter().enumerate() {
            let given = match self.splat_of(p, values, a) {
                Some(v) => There::Number(v),
                None if i < s.consts && values.dims(a).is_empty() => There::Number(self.elements(p, values, a)?[0]),
                None if i < carries.end => There::Memory(self.memory(p, values, a)?.into(), false),
                None => There::Memory(self.memory(p, values, a)?.step(step).into(), true),
            };
            match carries.contains(&i) {
                true => begin.push(given),
                false => there[i] = Some(given),
            }
        }
        let mut turned = Turned {
            body,
            walk: Walk::new(self, &[], 0..0),
            along: Vec::new(),
            there,
            constants: self.constants_of(body)?,
            now: vec![None; body.value_count()],
            constant: vec![None; body.constants().len()],
        };
        for e in body.equations() {
            let r = e.result();
            turned.there[r.index()] = match turned.there(body.operands(e)[0]) {
                Some(There::Memory(view, every)) if body.ty(body.operands(e)[0]).rank() > 0 => {
                    view_of(e.op(), view, &dims_of(body.ty(r))).map(|view| There::Memory(view.into(), *every))
                }
                _ => None,
            };
        }
        // Runs of a few elements would leave most lanes idle.
        let dense = View::dense(NOWHERE, &dims);
        let read = turned.there.iter().flatten().chain(&turned.constants).chain(&begin);
        let read = read.filter_map(|t| match t {
            There::Memory(view, _) if view.dims == dims => Some(&**view),
            _ => None,
        });
        let mut along: Vec<View> = read.cloned().collect();
        let all: Vec<&View> = along.iter().chain([&dense]).collect();
        if Walk::new(self, &all, 0..dims.len()).innermost_of_several().is_some_and(|n| n.at_most(FEW)) {
            return Ok(false);
        }
        let mut to = Vec::new();
        for (k, r) in e.results().enumerate() {
            let view = self.place_for(p, values, r.index())?;
            self.frame.reprs[r.index()] = Some(Repr::Memory(view.clone()));
            to.push(if k < s.carries { view } else { view.step(step) });
        }
        along.extend(to.iter().cloned());
        turned.along = along;
        turned.walk = Walk::new(self, &turned.along.iter().collect::<Vec<_>>(), 0..dims.len());

        self.emitter.begin();
        turned.walk.open(self);
        let mut carried = Vec::new();
        for (i, given) in carries.zip(&begin) {
            let init = match given {
                There::Number(v) => *v,
                There::Memory(view, _) => {
                    let (at, meaning) = turned.place(view);
                    self.emitter.load(view.buffer, at, meaning)
                }
            };
            let ty = self.emitter.ty(init);
            let [param, result] = [0, 1].map(|_| self.emitter.value(ty));
            turned.now[i] = Some(param);
            carried.push(Carried { init, param, next: param, result });
        }
        // What no step changes is read before the first.
        let used = body.equations().iter().flat_map(|e| body.operands(e)).chain(body.outputs());
        for a in used {
            let of_elements = body.ty(*a).rank() == 0 || dims_of(body.ty(*a)) == dims;
            if matches!(turned.there(*a), Some(There::Memory(_, false))) && of_elements {
                turned.value(self, *a)?;
            }
        }
        self.emitter.begin();
        if s.reverse {
            let last = self.emitter.size(n - 1i64);
            self.emitter.push(Stmt::Let(step, Expr::Op(Op::Sub, [last, var].as_slice().into())));
            self.emitter.ranges().below(step, n);
            self.emitter.ranges().steps.insert(step, var);
        }
        turned.step(self)?;
        let made = body.outputs().iter().map(|a| turned.value(self, *a)).collect::<Result<Vec<Value>>>()?;
        let (next, stacked) = made.split_at(s.carries);
        carried.iter_mut().zip(next).for_each(|(c, next)| c.next = *next);
        let (after, stacks) = to.split_at(s.carries);
        let store = |l: &mut Self, view: &View, v: Value| {
            let (at, meaning) = turned.place(view);
            l.emitter.store(view.buffer, at, v, meaning);
        };
        stacks.iter().zip(stacked).for_each(|(view, v)| store(self, view, *v));
        let steps = self.emitter.end();
        self.emitter.serial(var, n, carried.clone(), steps);
        after.iter().zip(&carried).for_each(|(view, c)| store(self, view, c.result));
        turned.walk.close(self, Kind::Lanes);
        let stmts = self.emitter.end();
        let each = body.equations().iter().map(|e| cost(body, e)).sum::<f32>() * n.guess() as f32;
        self.push_kernel("scan", Vec::new(), Work::shared(count(&dims), each, Doing::Arithmetic), stmts);
        Ok(true)
    }

    /// The constants of a body, in memory or as numbers.
    fn constants_of(&mut self, body: &Program) -> Result<Vec<There>> {
        let first = self.tags_for(body);
        let values = Values::new(body, &[], self.small, first);
        let frame = Frame { reprs: vec![None; body.value_count()], ..Frame::default() };
        let outer = std::mem::replace(&mut self.frame, frame);
        let all = (0..body.constants().len()).map(|c| {
            Ok(match body.constants()[c].splat_value() {
                Some(v) => {
                    let ty = storage(body.constants()[c].ty().dtype());
                    let ty = ty.ok_or_else(|| error!(Rule, "a constant has no scalar type"))?;
                    There::Number(self.emitter.constant(ty, bits_of(v)))
                }
                None => {
                    let buffer = self.constant_memory(body, &values, c)?;
                    There::Memory(
                        Box::new(View::dense(buffer, &values.constants[c].0).of(values.constant_tag(c))),
                        false,
                    )
                }
            })
        });
        let all = all.collect();
        self.frame = outer;
        all
    }
}
