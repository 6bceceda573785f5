//! The steps of a loop of lanes: which there are, and a copy of the body for each.

use rustc_hash::FxHashMap;

use super::super::plan::{LanePlan, Rest, is_short_counter, plan};
use super::super::varying::Varying;
use super::super::{Access, Expr, Lanes, Loop, Memory, Shape, Spread, Stmt, trips};
use super::Writer;
use super::folds::Folds;
use crate::ir::{self, Buffer, Index, Int, LANES, Op, Ty, Value};

/// Bodies of more statements are not written once more where a loop runs again and again.
const SHORT_ROW: usize = 48;

/// A loop of lanes that is written.
pub(super) struct Run<'a> {
    pub l: &'a ir::Loop,
    pub varying: &'a Varying,
    pub plan: LanePlan,
    pub from: Int,
    pub to: Int,
}

/// A copy of its body.
pub(super) struct Copy<'a> {
    l: &'a ir::Loop,
    varying: &'a Varying,
    pub shape: Shape,
    /// The first iteration of the step, and how many later this copy begins.
    pub var: Int,
    ahead: i64,
    /// Only the first so many lanes.
    pub active: Option<Int>,
    /// What is made once for the copy, before everything else in it.
    first: Vec<Stmt>,
    made: FxHashMap<Made, Value>,
    /// How far lanes are from a place, by what says so: components of one record are all as far.
    distances: FxHashMap<(Int, Vec<(Value, Int)>), Value>,
}

/// What is made once for a copy.
#[derive(PartialEq, Eq, Hash)]
enum Made {
    /// The iterations of the lanes.
    Counters,
    /// The same as numbers of 32 bits.
    Short(Ty),
    /// The lanes of a block.
    Lane,
    /// Which lanes are active.
    Active,
}

/// Steps of a loop: where the counter begins and what it stays below, and what each of them is.
struct Steps {
    from: Int,
    below: Int,
    lanes: usize,
    copies: usize,
    /// Where the iterations end, if the last step may go beyond it.
    end: Option<Int>,
    /// How many iterations there are in the only step, if that is known before.
    left: Option<Int>,
}

impl Writer<'_> {
    pub(super) fn lanes(&mut self, l: &ir::Loop, from: Int, to: Int) {
        let count = match (from, to) {
            (Int::Const(from), Int::Const(to)) => Some(to.saturating_sub(from).max(0)),
            _ => None,
        };
        if count == Some(0) {
            return l.folds.iter().for_each(|f| self.empty_fold(f));
        }
        let mut varying = Varying::new(l, Some(&|v| self.known(v)));
        self.hoist(l, &varying, count.is_some());
        let planned = |w: &Self, varying: &Varying| plan(w.module, w.machine, l, varying, &|v| w.known(v), count);
        let mut plan = planned(self, &varying);
        let blocks = plan.lanes * plan.copies == LANES && !plan.in_memory && !plan.masked;
        if varying.has_blocks() && !blocks {
            varying = Varying::new(l, None);
            plan = planned(self, &varying);
        }
        let run = Run { l, varying: &varying, plan, from, to };
        let mut folds = self.begin_folds(&run, count);
        match plan.lanes {
            1 => self.one_by_one(&run, from, &mut folds),
            _ if plan.masked => {
                let end = count.is_none_or(|n| n % plan.lanes as i64 != 0).then_some(to);
                let steps = Steps { from, below: to, lanes: plan.lanes, copies: plan.copies, end, left: None };
                self.steps(&run, &steps, &mut folds);
            }
            _ => self.whole_and_rest(&run, count, &mut folds),
        }
        self.end_folds(&run, folds, count);
    }

    /// Whole steps, then what is left over.
    fn whole_and_rest(&mut self, run: &Run<'_>, count: Option<i64>, folds: &mut Folds) {
        let Run { plan, from, to, .. } = *run;
        if self.is_row(run, count) {
            return self.row(run, folds);
        }
        let step = (plan.lanes * plan.copies) as i64;
        let below = match count {
            Some(n) => self.int_op(Op::Add, from, Int::Const(n - n % step)),
            None => self.int_op(Op::Sub, to, Int::Const(step - 1)),
        };
        let whole = Steps { from, below, lanes: plan.lanes, copies: plan.copies, end: None, left: None };
        let left = self.steps(run, &whole, folds);
        if count.is_some_and(|n| n % step == 0) {
            return;
        }
        if self.machine.rest == Rest::Serial {
            self.spill(run, folds);
            return self.one_by_one(run, left, folds);
        }
        // Where nothing is folded the rest need not have the lanes of a step: a register at a time wastes the least.
        let single = run.l.folds.is_empty() && self.machine.even;
        let (lanes, copies) = if single { (plan.unit, 1) } else { (plan.lanes, plan.copies) };
        let rest = Steps { from: left, below: to, lanes, copies, end: Some(to), left: None };
        self.steps(run, &rest, folds);
    }

    /// Whether a loop runs again and again as often as the kernel is told, and its body is short: then what such runs have in common is worth making before. A body
    /// with loops of its own takes long enough.
    fn is_row(&self, run: &Run<'_>, count: Option<i64>) -> bool {
        let given = |i: Int| matches!(i, Int::Value(v) if self.code.inputs.contains(&v));
        let again = self.depth > 0 && count.is_none() && run.from == Int::Const(0) && given(run.to);
        let short = run.l.body.len() <= SHORT_ROW && !run.l.body.iter().any(|s| matches!(s, ir::Stmt::Loop(_)));
        again && short && self.machine.rest == Rest::Masked
    }

    /// Whole steps, whole registers, and what is left over: where each begins and which lanes are active at the end is known before the loops around.
    fn row(&mut self, run: &Run<'_>, folds: &mut Folds) {
        let Run { plan, from, to, .. } = *run;
        // Lanes and copies are powers of two.
        let mut sizes = vec![(plan.lanes, plan.copies)];
        if run.l.folds.is_empty() && self.machine.even && plan.lanes > plan.unit {
            sizes.push((plan.unit, 1));
        }
        let (mut from, mut step) = (from, 1);
        for (lanes, copies) in sizes.iter().copied() {
            step = (lanes * copies) as i64;
            let below = self.early(Op::And, to, -step);
            self.steps(run, &Steps { from, below, lanes, copies, end: None, left: None }, folds);
            from = below;
        }
        let (lanes, copies) = sizes[sizes.len() - 1];
        let left = Some(self.early(Op::And, to, step - 1));
        self.steps(run, &Steps { from, below: to, lanes, copies, end: Some(to), left }, folds);
    }

    /// Steps in a loop, or one behind the other if there are few. Gives the first iteration that is left.
    fn steps(&mut self, run: &Run<'_>, steps: &Steps, folds: &mut Folds) -> Int {
        let step = (steps.lanes * steps.copies) as i64;
        let trips = trips(steps.from, steps.below, step);
        // It is known where the loop ends, or the loop says so.
        let mut after = trips.map(|n| self.int_op(Op::Add, steps.from, Int::Const(n * step)));
        match trips {
            Some(0) => {}
            Some(1) => self.step(run, steps, steps.from, folds),
            _ => {
                let (var, left) = (self.fresh(Ty::I64, Shape::SCALAR), self.fresh(Ty::I64, Shape::SCALAR));
                let shape = self.shape(run, steps.lanes);
                let mut around = self.carry(run, folds, shape);
                let body = self.within(|w| w.step(run, steps, var.into(), folds));
                let carried = self.carried(&mut around, folds);
                let left = after.is_none().then_some(left);
                let (from, to) = (steps.from, steps.below);
                self.body.push(Stmt::Loop(Box::new(Loop { var, from, to, step, left, carried, body })));
                after = after.or(left.map(Int::Value));
            }
        }
        after.unwrap_or(steps.from)
    }

    /// Lanes of a value, as this machine holds them.
    pub(super) fn shape(&self, run: &Run<'_>, lanes: usize) -> Shape {
        Shape { lanes: lanes as u16, registers: lanes.div_ceil(run.plan.unit) as u8 }
    }

    /// One step: copies of the body, each with its part of the folds.
    fn step(&mut self, run: &Run<'_>, steps: &Steps, var: Int, folds: &mut Folds) {
        let shape = self.shape(run, steps.lanes);
        let lanes = steps.lanes as i64;
        let left = match steps.left {
            None => steps.end.map(|end| self.int_op(Op::Sub, end, var)),
            left => left,
        };
        for k in 0..steps.copies {
            let ahead = k as i64 * lanes;
            let active = left.map(|left| {
                if let (Some(_), Int::Value(left)) = (steps.left, left) {
                    return self.early_lanes(left, ahead, lanes, steps.copies);
                }
                let left = match k {
                    0 => left,
                    _ => {
                        let left = self.int_op(Op::Sub, left, Int::Const(ahead));
                        self.int_op(Op::Max, left, Int::Const(0))
                    }
                };
                self.int_op(Op::Min, left, Int::Const(lanes))
            });
            if active == Some(Int::Const(0)) {
                continue;
            }
            let active = active.filter(|a| *a != Int::Const(lanes));
            let (first, made, distances) = (Vec::new(), FxHashMap::default(), FxHashMap::default());
            let mut c = Copy { l: run.l, varying: run.varying, shape, var, ahead, active, first, made, distances };
            let body = self.within(|w| {
                run.l.body.iter().for_each(|s| w.copy_stmt(&mut c, s));
                w.take_in(run, &mut c, k, folds);
            });
            self.body.append(&mut c.first);
            self.body.extend(body);
        }
    }

    /// How many lanes of a copy are active in the only step, if `left` iterations are, which is known before.
    fn early_lanes(&mut self, left: Value, ahead: i64, lanes: i64, copies: usize) -> Int {
        if copies == 1 {
            return left.into();
        }
        let left = match ahead {
            0 => left.into(),
            _ => {
                let left = self.early(Op::Sub, left.into(), ahead);
                self.early(Op::Max, left, 0)
            }
        };
        self.early(Op::Min, left, lanes)
    }

    /// Iterations one after the other, from one to the end.
    fn one_by_one(&mut self, run: &Run<'_>, from: Int, folds: &mut Folds) {
        let var = self.fresh(Ty::I64, Shape::SCALAR);
        self.names.insert(run.l.var, var);
        let body = self.within(|w| {
            run.l.body.iter().for_each(|s| w.stmt(s));
            w.take_in_one(run, var, folds);
        });
        let (to, left, carried) = (run.to, None, Vec::new());
        self.body.push(Stmt::Loop(Box::new(Loop { var, from, to, step: 1, left, carried, body })));
    }

    /// Something that a copy has once.
    fn once(&mut self, c: &mut Copy<'_>, what: Made, make: impl FnOnce(&mut Self, &mut Copy<'_>) -> Value) -> Value {
        if let Some(v) = c.made.get(&what) {
            return *v;
        }
        let outer = std::mem::replace(&mut self.body, std::mem::take(&mut c.first));
        let v = make(self, c);
        c.first = std::mem::replace(&mut self.body, outer);
        c.made.insert(what, v);
        v
    }

    /// The iterations of the lanes, in a type of whole numbers.
    fn counters(&mut self, c: &Copy<'_>, ty: Ty) -> Value {
        if let Int::Const(first) = c.var {
            return self.push(ty, c.shape, Expr::Ramp(first + c.ahead, 1));
        }
        let first = self.operand(c.var);
        let first = match ty {
            Ty::I64 => first,
            ty => match self.bits.get(&first) {
                Some(bits) => self.constant(ty, *bits as u32 as u64),
                None => self.op(Op::Convert(ty), ty, Shape::SCALAR, &[first]),
            },
        };
        let ramp = self.push(ty, c.shape, Expr::Ramp(c.ahead, 1));
        self.op(Op::Add, ty, c.shape, &[first, ramp])
    }

    /// A value of the kernel as an operand in a copy.
    pub(super) fn lanes_of(&mut self, c: &mut Copy<'_>, v: Value) -> Value {
        if v == c.l.var {
            return self.once(c, Made::Counters, |w, c| w.counters(c, Ty::I64));
        }
        if c.varying.lane.contains(&v) {
            return self.once(c, Made::Lane, |w, c| w.push(Ty::I64, c.shape, Expr::Ramp(c.ahead, 1)));
        }
        self.name(v)
    }

    /// Which lanes are active, if not all.
    pub(super) fn active(&mut self, c: &mut Copy<'_>) -> Option<Value> {
        let active = c.active?;
        Some(self.once(c, Made::Active, |w, c| w.push(Ty::Bool, c.shape, Expr::Active(active))))
    }

    fn copy_stmt(&mut self, c: &mut Copy<'_>, s: &ir::Stmt) {
        match s {
            ir::Stmt::Let(v, _) if self.hoisted.contains(v) || c.varying.lane.contains(v) => {}
            ir::Stmt::Let(v, ir::Expr::Op(_, args)) if c.varying.same.contains(v) => {
                let by = self.int(args[1].into());
                let same = self.int_op(Op::Shr, c.var, by);
                let same = self.operand(same);
                self.names.insert(*v, same);
            }
            ir::Stmt::Let(v, e) if !c.varying.contains(*v) => self.scalar(*v, e),
            ir::Stmt::Let(v, e) => {
                let ty = self.module.ty(*v);
                let name = match e {
                    ir::Expr::Op(op, args) => self.copy_op(c, ty, *op, args),
                    ir::Expr::Load(b, at) => {
                        let access = self.access(c, *b, at);
                        let shape = access.lanes.as_ref().map_or(Shape::SCALAR, |l| l.shape);
                        self.push(ty, shape, Expr::Load(access))
                    }
                    // Neither differs between lanes.
                    ir::Expr::Const(_) | ir::Expr::Size(_) => return self.scalar(*v, e),
                };
                self.names.insert(*v, name);
            }
            ir::Stmt::Store { buffer, at, value } => {
                let mut access = self.access(c, *buffer, at);
                let name = self.lanes_of(c, *value);
                if access.lanes.is_none() && self.code.shape(name).is_vector() {
                    // All lanes to one place.
                    let spread = Spread::Strided(Int::Const(0));
                    access.lanes = Some(Lanes { shape: c.shape, spread, active: c.active });
                }
                self.body.push(Stmt::Store(access, name));
            }
            ir::Stmt::Loop(l) => {
                // What goes around may be the counter.
                for v in l
                    .carried
                    .iter()
                    .flat_map(|x| [x.init, x.next])
                    .filter(|v| *v == c.l.var || c.varying.lane.contains(v))
                {
                    let lanes = self.lanes_of(c, v);
                    self.names.insert(v, lanes);
                }
                let (to, shape, varying) = (self.int(l.count), c.shape, c.varying);
                // What is made in a loop is not there behind it.
                let outside = c.distances.clone();
                self.serial(
                    l,
                    (Int::Const(0), to),
                    |w| l.body.iter().for_each(|s| w.copy_stmt(c, s)),
                    |x| if varying.contains(x.param) { shape } else { Shape::SCALAR },
                );
                c.distances = outside;
            }
            // The others are of the main body.
            _ => {}
        }
    }

    fn copy_op(&mut self, c: &mut Copy<'_>, ty: Ty, op: Op, args: &[Value]) -> Value {
        if is_short_counter(c.l, op, args) {
            let short = if ty == Ty::U32 { Ty::U32 } else { Ty::I32 };
            let counters = self.once(c, Made::Short(short), |w, c| w.counters(c, short));
            return if ty == short { counters } else { self.op(op, ty, c.shape, &[counters]) };
        }
        let mut args: smallvec::SmallVec<[Value; 3]> = args.iter().map(|a| self.lanes_of(c, *a)).collect();
        if let (Op::Special(_), Some(guard)) = (op, args.get(2).copied())
            && let Some(active) = self.active(c)
        {
            // What is not active may be anything, the rare case too.
            args[2] = self.op(Op::And, Ty::Bool, c.shape, &[guard, active]);
        }
        self.push(ty, c.shape, Expr::Op(op, args))
    }

    /// Where the lanes of an index are.
    fn access(&mut self, c: &mut Copy<'_>, buffer: Buffer, at: &Index) -> Access {
        let mut place = Index::at(at.offset);
        let (mut stride, mut others) = (Int::Const(0), Vec::new());
        for term in &at.terms {
            if !c.varying.term(term) {
                let (v, by) = (self.int(term.0.into()), self.int(term.1));
                self.add_term(&mut place, v, by);
            } else if c.varying.counts(term, c.l.var) && stride == Int::Const(0) {
                stride = self.int(term.1);
                if term.0 == c.l.var {
                    self.add_term(&mut place, c.var, stride);
                }
                self.add_term(&mut place, Int::Const(c.ahead), stride);
            } else {
                others.push(*term);
            }
        }
        let spread = match others.is_empty() {
            true if stride == Int::Const(0) => {
                return Access { memory: Memory::Buffer(buffer), at: place, lanes: None };
            }
            true => Spread::Strided(stride),
            false => Spread::Scattered(match c.distances.get(&(stride, others.clone())) {
                Some(known) => *known,
                None => {
                    let far = self.distances(c, stride, &others);
                    c.distances.insert((stride, others), far);
                    far
                }
            }),
        };
        let lanes = Some(Lanes { shape: c.shape, spread, active: c.active });
        Access { memory: Memory::Buffer(buffer), at: place, lanes }
    }

    /// How far lanes are from the place: by a stride, and by terms that vary.
    fn distances(&mut self, c: &mut Copy<'_>, stride: Int, terms: &[(Value, Int)]) -> Value {
        let s = c.shape;
        let mut sum = match stride {
            Int::Const(0) => None,
            Int::Const(by) => Some(self.push(Ty::I64, s, Expr::Ramp(0, by))),
            Int::Value(by) => {
                let ramp = self.push(Ty::I64, s, Expr::Ramp(0, 1));
                Some(self.op(Op::Mul, Ty::I64, s, &[by, ramp]))
            }
        };
        for (v, by) in terms {
            let v = self.lanes_of(c, *v);
            let by = match by {
                Int::Value(by) if c.varying.contains(*by) => Int::Value(self.lanes_of(c, *by)),
                by => self.int(*by),
            };
            let term = match by {
                Int::Const(1) => v,
                Int::Const(by) if by > 0 && by & (by - 1) == 0 => {
                    let by = self.constant(Ty::I64, u64::from(by.trailing_zeros()));
                    self.op(Op::Shl, Ty::I64, s, &[v, by])
                }
                by => {
                    let by = self.operand(by);
                    self.op(Op::Mul, Ty::I64, s, &[v, by])
                }
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.op(Op::Add, Ty::I64, s, &[sum, term]),
            });
        }
        // There is at least one term.
        sum.unwrap_or_else(|| self.constant(Ty::I64, 0))
    }
}
