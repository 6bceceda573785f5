//! Folds of a loop of lanes: 32 lanes in registers or in memory, and how they become one.

use super::super::{Access, Expr, Lanes, Memory, Shape, Spread, Stmt};
use super::Writer;
use super::steps::{Copy, Run};
use crate::ir::{Carried, Fold, FoldOp, Index, Int, LANES, Op, Ty, Value};

/// Where the lanes of folds are.
pub(super) enum Folds {
    /// In values: of each fold one for every copy of the body.
    Values(Vec<Vec<Value>>),
    /// In arrays of the kernel's own.
    Memory(Vec<u32>),
}

impl Writer<'_> {
    fn fold_type(&self, f: &Fold) -> Ty {
        self.module.ty(f.value)
    }

    fn fold_op(f: &Fold, ty: Ty) -> Op {
        f.op.on(ty).op()
    }

    /// The fold of a loop that does not run.
    pub(super) fn empty_fold(&mut self, f: &Fold) {
        let ty = self.fold_type(f);
        let identity = self.constant(ty, f.op.on(ty).identity(ty));
        self.names.insert(f.result, identity);
    }

    /// The lanes of all folds, empty.
    pub(super) fn begin_folds(&mut self, run: &Run<'_>, count: Option<i64>) -> Folds {
        if !run.plan.in_memory {
            let neutral = |w: &mut Self, f: &Fold| {
                let ty = w.fold_type(f);
                vec![w.constant(ty, start(f, ty)); run.plan.copies]
            };
            return Folds::Values(run.l.folds.iter().map(|f| neutral(self, f)).collect());
        }
        let mut locals = Vec::with_capacity(run.l.folds.len());
        for f in &run.l.folds {
            let ty = self.fold_type(f);
            let (local, neutral) = (self.local(ty), self.constant(ty, start(f, ty)));
            for (from, shape) in self.pieces(ty, count) {
                self.body.push(Stmt::Store(lanes_at(local, Index::at(from as i64), shape, None), neutral));
            }
            locals.push(local);
        }
        Folds::Memory(locals)
    }

    fn local(&mut self, ty: Ty) -> u32 {
        self.code.locals.push(ty);
        self.code.locals.len() as u32 - 1
    }

    /// The lanes of a fold in memory as vectors: where each begins, and what it is. Those that no iteration comes to are left out.
    fn pieces(&self, ty: Ty, count: Option<i64>) -> Vec<(usize, Shape)> {
        let used = count.map_or(LANES, |n| (n.max(1) as usize).min(LANES));
        let size = if self.machine.even { ty.size().max(4) } else { ty.size() };
        let shape = match self.machine.bytes / size {
            0 => Shape::SCALAR,
            lanes => Shape { lanes: lanes.min(LANES) as u16, registers: 1 },
        };
        (0..used).step_by(usize::from(shape.lanes)).map(|from| (from, shape)).collect()
    }

    /// What goes around a loop of steps: the lanes of folds before it, under names that they have in it.
    pub(super) fn carry(&mut self, run: &Run<'_>, folds: &mut Folds, shape: Shape) -> Vec<Carried> {
        let Folds::Values(all) = folds else { return Vec::new() };
        let mut around = Vec::new();
        for (f, lanes) in run.l.folds.iter().zip(all) {
            for v in lanes {
                let ty = self.module.ty(f.value);
                let (param, result) = (self.code.value(ty, shape), self.code.value(ty, shape));
                around.push(Carried { init: *v, param, next: param, result });
                *v = param;
            }
        }
        around
    }

    /// The same after the body: what comes next is known.
    pub(super) fn carried(&mut self, around: &mut Vec<Carried>, folds: &mut Folds) -> Vec<Carried> {
        if let Folds::Values(all) = folds {
            for (c, v) in around.iter_mut().zip(all.iter_mut().flatten()) {
                c.next = std::mem::replace(v, c.result);
            }
        }
        std::mem::take(around)
    }

    /// Takes what a copy of the body computed into the folds.
    pub(super) fn take_in(&mut self, run: &Run<'_>, c: &mut Copy<'_>, copy: usize, folds: &mut Folds) {
        let place = match folds {
            Folds::Values(_) => Index::default(),
            Folds::Memory(_) if run.l.folds.is_empty() => return,
            Folds::Memory(_) => self.lane_of(run, c.var),
        };
        for (k, f) in run.l.folds.iter().enumerate() {
            let (ty, v) = (self.fold_type(f), self.lanes_of(c, f.value));
            match folds {
                Folds::Values(all) => {
                    let old = all[k][copy];
                    // An empty lane becomes what comes first; the lanes are taken together by the same operation, so a NaN is still made the one that it makes.
                    let empty = self.bits.get(&old) == Some(&f.op.on(ty).neutral(ty));
                    let new = match empty && self.code.shape(v) == c.shape {
                        true => v,
                        false => self.op(Self::fold_op(f, ty), ty, c.shape, &[old, v]),
                    };
                    all[k][copy] = match self.active(c) {
                        Some(active) => self.op(Op::Select, ty, c.shape, &[active, new, old]),
                        None => new,
                    };
                }
                Folds::Memory(locals) => {
                    let access = lanes_at(locals[k], place.clone(), c.shape, c.active);
                    let old = self.push(ty, c.shape, Expr::Load(access.clone()));
                    let new = self.op(Self::fold_op(f, ty), ty, c.shape, &[old, v]);
                    self.body.push(Stmt::Store(access, new));
                }
            }
        }
    }

    /// The lane of a fold for an iteration.
    fn lane_of(&mut self, run: &Run<'_>, var: Int) -> Index {
        let at = self.int_op(Op::Sub, var, run.from);
        let lane = self.int_op(Op::And, at, Int::Const(LANES as i64 - 1));
        let mut place = Index::default();
        self.add_term(&mut place, lane, Int::Const(1));
        place
    }

    /// Takes one iteration into the folds, which are in memory.
    pub(super) fn take_in_one(&mut self, run: &Run<'_>, var: Value, folds: &mut Folds) {
        let Folds::Memory(locals) = folds else { return };
        if run.l.folds.is_empty() {
            return;
        }
        let place = self.lane_of(run, var.into());
        for (f, local) in run.l.folds.iter().zip(locals) {
            let (ty, v) = (self.fold_type(f), self.name(f.value));
            let access = lanes_at(*local, place.clone(), Shape::SCALAR, None);
            let old = self.push(ty, Shape::SCALAR, Expr::Load(access.clone()));
            let new = self.op(Self::fold_op(f, ty), ty, Shape::SCALAR, &[old, v]);
            self.body.push(Stmt::Store(access, new));
        }
    }

    /// Puts the lanes of folds into memory.
    pub(super) fn spill(&mut self, run: &Run<'_>, folds: &mut Folds) {
        let Folds::Values(all) = folds else { return };
        let shape = self.shape(run, run.plan.lanes);
        let mut locals = Vec::with_capacity(all.len());
        for (f, lanes) in run.l.folds.iter().zip(all.iter()) {
            let local = self.local(self.fold_type(f));
            for (k, v) in lanes.iter().enumerate() {
                let at = Index::at((k * run.plan.lanes) as i64);
                self.body.push(Stmt::Store(lanes_at(local, at, shape, None), *v));
            }
            locals.push(local);
        }
        *folds = Folds::Memory(locals);
    }

    /// The lanes into one, in the order of the language.
    pub(super) fn end_folds(&mut self, run: &Run<'_>, folds: Folds, count: Option<i64>) {
        for (k, f) in run.l.folds.iter().enumerate() {
            let ty = self.fold_type(f);
            let (shape, lanes) = match &folds {
                Folds::Values(all) => (self.shape(run, run.plan.lanes), all[k].clone()),
                Folds::Memory(locals) => {
                    let pieces = self.pieces(ty, count);
                    let load = |(from, shape): &(usize, Shape)| {
                        let access = lanes_at(locals[k], Index::at(*from as i64), *shape, None);
                        self.push(ty, *shape, Expr::Load(access))
                    };
                    (pieces[0].1, pieces.iter().map(load).collect())
                }
            };
            let result = self.reduce(f, ty, shape, lanes);
            self.names.insert(f.result, result);
        }
    }

    /// Halves take in halves, first of values, then of lanes.
    fn reduce(&mut self, f: &Fold, ty: Ty, mut shape: Shape, mut lanes: Vec<Value>) -> Value {
        let op = Self::fold_op(f, ty);
        let held = if ty == Ty::Bool { Ty::I32 } else { ty };
        if ty == Ty::Bool {
            lanes.iter_mut().for_each(|v| *v = self.op(Op::Convert(held), held, shape, &[*v]));
        }
        let mut width = LANES / usize::from(shape.lanes);
        while width > 1 {
            width /= 2;
            for k in 0..width {
                if let Some(upper) = lanes.get(k + width).copied() {
                    lanes[k] = self.op(op, held, shape, &[lanes[k], upper]);
                }
            }
            lanes.truncate(width);
        }
        let mut v = lanes[0];
        while shape.lanes > 1 {
            shape = shape.half();
            let lower = self.push(held, shape, Expr::Half(v, false));
            let upper = self.push(held, shape, Expr::Half(v, true));
            v = self.op(op, held, shape, &[lower, upper]);
        }
        if shape.is_vector() {
            v = self.push(held, Shape::SCALAR, Expr::First(v));
        }
        if ty == Ty::Bool { self.op(Op::Convert(Ty::Bool), Ty::Bool, Shape::SCALAR, &[v]) } else { v }
    }
}

/// What a lane begins with. A sum ends with the identity, which makes a zero of negative zeros positive; to begin with it does the same, since a sum is a negative
/// zero only where every term is, and then no step has to wait for it.
fn start(f: &Fold, ty: Ty) -> u64 {
    if f.op == FoldOp::Add && ty.is_float() { f.op.on(ty).identity(ty) } else { f.op.on(ty).neutral(ty) }
}

/// Lanes of a fold in memory.
fn lanes_at(local: u32, at: Index, shape: Shape, active: Option<Int>) -> Access {
    let spread = Spread::Strided(Int::Const(1));
    Access { memory: Memory::Local(local), at, lanes: shape.is_vector().then_some(Lanes { shape, spread, active }) }
}
