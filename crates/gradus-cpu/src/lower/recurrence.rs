//! Scans whose step treats all elements alike, turned around: the elements outside, in lanes, and the steps inside. What a step hands to the next stays in
//! registers, and an array that no step changes is read once. A step may also sum over all elements: each has running totals of its own then (`running.rs`).

use gradus_core::DType;
use gradus_core::primitives::control::Scan;
use gradus_core::primitives::elementwise::Add;
use gradus_core::primitives::reduce::ReduceSum;
use gradus_core::primitives::shaping::{Broadcast, Permute, Reverse, Slice};
use gradus_core::program::{Atom, Equation, Program};

use super::content::FEWEST;
use super::emit::{PLAIN, cost, form_of};
use super::running::{Run, Running};
use super::scalars::each;
use super::values::{NOWHERE, Repr, Values, constant_index, dims_of, is_mark, moves, storage, view_of};
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

/// Sums of so few elements are made in the step: running totals would be as many numbers.
const SUMMED: usize = 128;

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
    /// A sum over all elements, that equation's.
    Total(usize),
    /// A carry that sums are added to: that input, and the sum of this step if it is in there.
    Sum(usize, Option<usize>),
}

/// A step that treats all elements alike.
struct Alike {
    /// The dimensions of the arrays that go around.
    dims: Dims,
    /// The equations that sum over all elements.
    totals: Vec<usize>,
    /// What each output of the body is.
    outputs: Vec<What>,
}

/// What a step is, if it computes each element of the arrays that go around from elements at the same place.
fn by_elements(body: &Program, s: &Scan) -> Option<Alike> {
    let carries = s.consts..s.consts + s.carries;
    let dims = dims_of(body.inputs()[carries.clone()].iter().max_by_key(|ty| ty.rank())?);
    if is_empty(&dims) || count(&dims).at_most(FEWEST - 1) || !s.body.effects().is_pure() {
        return None;
    }
    let common = |a: Atom| body.ty(a).rank() == 0;
    let mut what: Vec<What> = Vec::with_capacity(body.value_count());
    for (i, ty) in body.inputs().iter().enumerate() {
        Ty::holding(ty.dtype())?;
        what.push(match carries.contains(&i) {
            true if dims_of(ty) == dims => What::Lanes,
            true if ty.rank() == 0 => What::Sum(i, None),
            true => return None,
            false if ty.rank() == 0 => What::Common,
            false => What::Read,
        });
    }
    let (mut alike, mut shared, mut totals) = (0.0, 0.0, Vec::new());
    let of = |what: &[What], a: &Atom| match a.value() {
        Some(v) => what[v.index()],
        None if body.constants()[constant_index(*a)].splat_value().is_some() => What::Common,
        None => What::Read,
    };
    for (k, e) in body.equations().iter().enumerate() {
        let of = |a: &Atom| of(&what, a);
        let (operands, result) = (body.operands(e), Atom::from(e.results().next()?));
        let shaped = |a: Atom| dims_of(body.ty(a)) == dims;
        let is = if e.results().len() != 1 {
            return None;
        } else if let Some(sum) = e.op().downcast::<ReduceSum>() {
            let all = sum.axes.len() == dims.len() && of(&operands[0]) == What::Lanes;
            let added = matches!(body.ty(result).dtype(), DType::F32 | DType::F64 | DType::I32 | DType::I64);
            if !all || !added || count(&dims).at_most(SUMMED) {
                return None;
            }
            alike += PLAIN;
            totals.push(k);
            What::Total(k)
        } else if operands.iter().any(|a| matches!(of(a), What::Total(_) | What::Sum(..))) {
            match (of(&operands[0]), operands.get(1).map(of)) {
                (What::Sum(i, None), Some(What::Total(k))) | (What::Total(k), Some(What::Sum(i, None)))
                    if e.op().is::<Add>() =>
                {
                    What::Sum(i, Some(k))
                }
                _ => return None,
            }
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
    let outputs: Vec<What> = body.outputs().iter().map(|a| of(&what, a)).collect();
    let fit = outputs.iter().zip(body.outputs()).enumerate().all(|(k, (is, a))| match is {
        // A carry that no sum is added to is a constant, which was taken out of the loop.
        What::Sum(i, sum) => k < s.carries && *i == s.consts + k && sum.is_some(),
        What::Total(_) => k >= s.carries,
        _ => dims_of(body.ty(*a)) == dims,
    });
    let worth = shared <= COMMON * alike || count(&dims).at_most(LANES);
    (fit && worth).then_some(Alike { dims, totals, outputs })
}

/// A scan as it is turned around, wherever its elements are written.
struct Around<'a> {
    scan: &'a Scan,
    steps: Size,
    alike: Alike,
    /// What the inputs of the body are, those of sequences with all steps. None of carries that sums are added to.
    given: Vec<Option<There>>,
    constants: Vec<There>,
    /// Where the outputs of the body go that are arrays, those of sequences with all steps.
    to: Vec<Option<View>>,
    totals: Vec<Running>,
}

/// The body of a scan as it is written, with what is there for the element at hand.
struct Turned<'a> {
    body: &'a Program,
    walk: Walk,
    /// The views that the walk goes along, by number.
    along: Vec<View>,
    there: Vec<Option<There>>,
    constants: &'a [There],
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

    /// Whether an equation sums over all elements, or adds such a sum to a carry: that is done when all elements are.
    fn sums(&self, e: &Equation) -> bool {
        let is_number = |a: Atom| self.body.ty(a).rank() == 0;
        let of_sums = |a: &Atom| match a.value() {
            Some(v) => is_number(*a) && self.there[v.index()].is_none() && self.now[v.index()].is_none(),
            None => false,
        };
        e.op().is::<ReduceSum>() || self.body.operands(e).iter().any(of_sums)
    }

    /// Writes the equations of a step.
    fn step(&mut self, l: &mut Lower) -> Result<()> {
        for e in self.body.equations() {
            let r = e.result();
            if self.there[r.index()].is_some() || self.sums(e) {
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

impl Around<'_> {
    /// The body at a step, for the elements that its walk leads to.
    fn turned(&self, l: &mut Lower, step: Value) -> Turned<'_> {
        let body = &*self.scan.body;
        let now = |given: &There| match given {
            There::Memory(view, true) => There::Memory(view.step(step).into(), true),
            given => given.clone(),
        };
        let mut there: Vec<Option<There>> = self.given.iter().map(|g| g.as_ref().map(now)).collect();
        there.resize(body.value_count(), None);
        for e in body.equations() {
            let (from, r) = (body.operands(e)[0], e.result());
            let given = match from.value() {
                Some(v) => there[v.index()].as_ref(),
                None => Some(&self.constants[constant_index(from)]),
            };
            there[r.index()] = match given {
                Some(There::Memory(view, every)) if body.ty(from).rank() > 0 && !self.is_carry(from) => {
                    view_of(e.op(), view, &dims_of(body.ty(r))).map(|view| There::Memory(view.into(), *every))
                }
                // Wherever one number is moved to, it is that number.
                Some(There::Number(v)) if moves(e.op()) && !self.is_carry(from) => Some(There::Number(*v)),
                _ => None,
            };
        }
        let dims = &self.alike.dims;
        let read = there.iter().flatten().chain(&self.constants).filter_map(|t| match t {
            There::Memory(view, _) if view.dims == *dims => Some((**view).clone()),
            _ => None,
        });
        let carries = self.scan.carries;
        let written = self.to.iter().enumerate();
        let written =
            written.filter_map(|(k, to)| to.as_ref().map(|v| if k < carries { v.clone() } else { v.step(step) }));
        let along: Vec<View> = read.chain(written).chain([View::dense(NOWHERE, dims)]).collect();
        let walk = Walk::new(l, &along.iter().collect::<Vec<_>>(), 0..dims.len());
        let (now, constant) = (vec![None; body.value_count()], vec![None; body.constants().len()]);
        Turned { body, walk, along, there, constants: &self.constants, now, constant }
    }

    fn is_carry(&self, a: Atom) -> bool {
        a.value().is_some_and(|v| (self.scan.consts..self.scan.consts + self.scan.carries).contains(&v.index()))
    }

    /// Writes the loop over all elements, or over a run of them, with all steps inside.
    fn write(&self, l: &mut Lower, run: Option<&Run>) -> Result<()> {
        let (s, body) = (self.scan, &*self.scan.body);
        let (var, step) = (l.emitter.value(Ty::I64), l.emitter.value(Ty::I64));
        let step = if s.reverse { step } else { var };
        let mut turned = self.turned(l, step);
        if let Some(run) = run {
            turned.walk.narrow(run);
        }
        turned.walk.open(l);
        let mut carried = Vec::new();
        for i in s.consts..s.consts + s.carries {
            // What a carry starts from is not what it is in a step.
            let init = match turned.there[i].take() {
                Some(There::Number(v)) => v,
                Some(There::Memory(view, _)) => {
                    let (at, meaning) = turned.place(&view);
                    l.emitter.load(view.buffer, at, meaning)
                }
                None => continue,
            };
            let ty = l.emitter.ty(init);
            let [param, result] = [0, 1].map(|_| l.emitter.value(ty));
            turned.now[i] = Some(param);
            carried.push(Carried { init, param, next: param, result });
        }
        // What no step changes is read before the first.
        let used = body.equations().iter().flat_map(|e| body.operands(e)).chain(body.outputs());
        for a in used {
            let of_elements = body.ty(*a).rank() == 0 || dims_of(body.ty(*a)) == self.alike.dims;
            if matches!(turned.there(*a), Some(There::Memory(_, false))) && of_elements {
                turned.value(l, *a)?;
            }
        }
        l.emitter.begin();
        self.begin_step(l, var, step);
        turned.step(l)?;
        if let Some((run, lane)) = run.zip(turned.walk.innermost()) {
            for total in &self.totals {
                let x = turned.value(l, body.operands(&body.equations()[total.equation])[0])?;
                total.add(l, var, run, lane, x);
            }
        }
        let mut next = carried.iter_mut();
        let mut after = Vec::new();
        for (k, (to, a)) in self.to.iter().zip(body.outputs()).enumerate() {
            let Some(to) = to else { continue };
            let made = turned.value(l, *a)?;
            if k < s.carries {
                let Some(c) = next.next() else { continue };
                c.next = made;
                after.push((to, c.result));
            } else {
                let view = to.step(step);
                let (at, meaning) = turned.place(&view);
                l.emitter.store(view.buffer, at, made, meaning);
            }
        }
        let steps = l.emitter.end();
        l.emitter.serial(var, self.steps, carried, steps);
        for (to, v) in after {
            let (at, meaning) = turned.place(to);
            l.emitter.store(to.buffer, at, v, meaning);
        }
        turned.walk.close(l, Kind::Lanes);
        Ok(())
    }

    /// The number of a step in the body of a loop over steps: backwards it is not the loop's.
    fn begin_step(&self, l: &mut Lower, var: Value, step: Value) {
        if step != var {
            let last = l.emitter.size(self.steps - 1i64);
            l.emitter.push(Stmt::Let(step, Expr::Op(Op::Sub, [last, var].as_slice().into())));
            l.emitter.ranges().below(step, self.steps);
            l.emitter.ranges().steps.insert(step, var);
        }
    }
}

impl Lower {
    /// A scan as a loop over elements around one over steps. False if its step is none that treats all elements alike.
    pub(super) fn recurrence(&mut self, p: &Program, values: &Values, e: &Equation, s: &Scan) -> Result<bool> {
        let (body, operands, steps) = (&*s.body, p.operands(e), Size::of(&s.length));
        let Some(alike) = by_elements(body, s).filter(|_| !operands.iter().any(|a| is_empty(values.dims(*a)))) else {
            return Ok(false);
        };
        let carries = s.consts..s.consts + s.carries;
        let mut given = Vec::with_capacity(operands.len());
        for (i, &a) in operands.iter().enumerate() {
            given.push(match self.splat_of(p, values, a) {
                _ if carries.contains(&i) && matches!(alike.outputs[i - s.consts], What::Sum(..)) => None,
                Some(v) => Some(There::Number(v)),
                None if i < s.consts && values.dims(a).is_empty() => {
                    Some(There::Number(self.elements(p, values, a)?[0]))
                }
                None => Some(There::Memory(self.memory(p, values, a)?.into(), i >= carries.end)),
            });
        }
        let (constants, to) = (self.constants_of(body)?, vec![None; body.outputs().len()]);
        let mut around = Around { scan: s, steps, alike, given, constants, to, totals: Vec::new() };
        let dims = around.alike.dims.clone();
        // Runs of a few elements would leave most lanes idle, and sums go along one run.
        let nowhere = self.emitter.value(Ty::I64);
        let walk = around.turned(self, nowhere).walk;
        if walk.innermost_of_several().is_some_and(|n| n.at_most(FEW) || !around.alike.totals.is_empty()) {
            return Ok(false);
        }
        for (k, r) in e.results().enumerate() {
            if matches!(around.alike.outputs[k], What::Sum(..)) {
                continue;
            }
            let view = self.place_for(p, values, r.index())?;
            self.frame.reprs[r.index()] = Some(Repr::Memory(view.clone()));
            match around.alike.outputs[k] {
                What::Total(_) => {}
                _ => around.to[k] = Some(view),
            }
        }
        let each = body.equations().iter().map(|e| cost(body, e)).sum::<f32>() * steps.guess() as f32;
        if around.alike.totals.is_empty() {
            self.emitter.begin();
            around.write(self, None)?;
            let stmts = self.emitter.end();
            self.push_kernel("scan", Vec::new(), Work::shared(count(&dims), each, Doing::Arithmetic), stmts);
            return Ok(true);
        }
        self.with_totals(p, values, e, &mut around, each)?;
        Ok(true)
    }

    /// The same with sums over all elements: runs of elements in the order of such sums, and from running totals to results.
    fn with_totals(
        &mut self,
        p: &Program,
        values: &Values,
        e: &Equation,
        around: &mut Around<'_>,
        each: f32,
    ) -> Result<()> {
        let (s, body, n) = (around.scan, &*around.scan.body, count(&around.alike.dims));
        for &equation in &around.alike.totals {
            let ty = storage(body.ty(body.equations()[equation].result()).dtype());
            let ty = ty.ok_or_else(|| error!(Rule, "a total has no scalar type"))?;
            around.totals.push(Running::begin(self, equation, ty, around.steps, n));
        }
        for run in Run::of_all(self, n) {
            self.emitter.begin();
            run.open(self);
            around.write(self, Some(&run))?;
            run.close(self);
            let stmts = self.emitter.end();
            self.push_kernel("scan", Vec::new(), run.work(each), stmts);
        }
        // One step after the other, as the sums that a carry adds up want it.
        let (var, step) = (self.emitter.value(Ty::I64), self.emitter.value(Ty::I64));
        let step = if s.reverse { step } else { var };
        let mut carried = Vec::new();
        for (k, is) in around.alike.outputs.iter().enumerate() {
            if let What::Sum(i, Some(equation)) = is {
                let init = self.elements(p, values, p.operands(e)[*i])?[0];
                let ty = self.emitter.ty(init);
                let [param, result] = [0, 1].map(|_| self.emitter.value(ty));
                carried.push((k, *equation, Carried { init, param, next: param, result }));
            }
        }
        self.emitter.begin();
        self.emitter.begin();
        around.begin_step(self, var, step);
        for total in &around.totals {
            let sum = total.end(self, var);
            for (_, _, c) in carried.iter_mut().filter(|(_, equation, _)| *equation == total.equation) {
                c.next = self.emitter.op(Op::Add, &[c.param, sum]);
            }
            for (r, is) in e.results().zip(&around.alike.outputs) {
                if *is == What::Total(total.equation)
                    && let Some(Repr::Memory(view)) = self.frame.reprs[r.index()].clone()
                {
                    let (at, meaning) = view.step(step).first();
                    self.emitter.store(view.buffer, at, sum, meaning);
                }
            }
        }
        let stmts = self.emitter.end();
        let mut results = Vec::new();
        for (r, (_, _, c)) in carried.iter().map(|c| (e.results().nth(c.0), c)) {
            results.push(c.result);
            if let Some(r) = r {
                self.frame.reprs[r.index()] = Some(Repr::Elements(vec![c.result]));
            }
        }
        self.emitter.serial(var, around.steps, carried.into_iter().map(|c| c.2).collect(), stmts);
        let stmts = self.emitter.end();
        self.push_kernel("end_totals", results, Work::alone(), stmts);
        Ok(())
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
