//! Loops, kernels and control flow of random modules.

use super::super::{Carried, Fold, FoldOp, Index, Int, Kernel, Kind, Loop, Op, Stmt, Switch, Ty, Value, While};
use super::{Generator, Window};

impl Generator {
    /// A count with a bound: a constant, a size, or something computed.
    fn count(&mut self, body: &mut Vec<Stmt>, most: usize) -> (Int, usize) {
        let counts = [0, 1, 2, 3, 5, 8, 31, 32, 33, 64, 65, 100, 1000];
        let fit = counts.iter().filter(|c| **c <= most).count().max(1);
        // Half of the time a large one.
        let k = if self.rng.chance(50) { fit - 1 - self.rng.below(fit.min(4)) } else { self.rng.below(fit) };
        let sizes: Vec<(Value, i64)> =
            self.known.iter().copied().filter(|(_, k)| (0..=most as i64).contains(k)).collect();
        if !sizes.is_empty() && self.rng.chance(30) {
            let (v, n) = self.rng.pick(&sizes);
            return (Int::Value(v), n as usize);
        }
        if self.lane.is_none() && self.rng.chance(10) {
            let v = self.operand(body, Ty::I64);
            let n = self.constant(body, Ty::I64, counts[k].max(1) as u64);
            let v = self.op(body, Op::Rem, &[v, n]);
            let v = self.op(body, Op::Abs, &[v]);
            return (Int::Value(v), counts[k].max(1));
        }
        (Int::Const(counts[k] as i64), counts[k])
    }

    /// Runs `f` for a body of its own; what it defines is gone after it.
    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let (scope, known, vars) = (self.scope.len(), self.known.len(), self.vars.len());
        let (windows, lane, work) = (self.windows.clone(), self.lane, self.work);
        let out = f(self);
        self.scope.truncate(scope);
        self.known.truncate(known);
        self.vars.truncate(vars);
        (self.windows, self.lane, self.work) = (windows, lane, work);
        out
    }

    fn statements(&mut self) -> usize {
        let most = if self.work > 300 { 5 } else { self.config.statements };
        self.rng.below(most) + most / 2
    }

    fn carried(&mut self, body: &mut Vec<Stmt>, n: usize) -> Vec<Carried> {
        (0..n)
            .map(|_| {
                let ty = self.ty();
                let init = self.operand(body, ty);
                let (param, result) = (self.value(ty), self.value(ty));
                // Whether the next value differs between lanes is not known yet: inside lanes it may.
                self.varying[param.index()] = self.lane.is_some();
                self.varying[result.index()] = self.lane.is_some();
                Carried { init, param, next: param, result }
            })
            .collect()
    }

    fn close(&mut self, body: &mut Vec<Stmt>, carried: &mut [Carried]) {
        for c in carried {
            c.next = self.operand(body, self.m.ty(c.param));
        }
    }

    /// A serial loop; `inside` makes its body.
    fn serial(&mut self, body: &mut Vec<Stmt>, most: usize, inside: impl FnOnce(&mut Self, &mut Vec<Stmt>)) {
        let odd = self.config.odd && self.lane.is_some() && self.rng.chance(15);
        let (count, bound) = if odd {
            let v = self.operand(body, Ty::I64);
            let three = self.constant(body, Ty::I64, 3);
            let v = self.op(body, Op::And, &[v, three]);
            (Int::Value(v), 3)
        } else {
            self.count(body, most)
        };
        let n = self.rng.below(3);
        let mut carried = self.carried(body, n);
        let var = self.value(Ty::I64);
        let inner = self.scoped(|g| {
            let mut inner = Vec::new();
            g.scope.extend(carried.iter().map(|c| c.param));
            g.scope.push(var);
            g.vars.push((var, bound));
            g.work *= bound.max(1);
            inside(g, &mut inner);
            g.close(&mut inner, &mut carried);
            inner
        });
        self.scope.extend(carried.iter().map(|c| c.result));
        body.push(Stmt::Loop(Box::new(Loop {
            var,
            count,
            kind: Kind::Serial,
            carried,
            folds: Vec::new(),
            body: inner,
        })));
    }

    /// Chooses what independent iterations may write.
    fn targets(&mut self) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        for _ in 0..self.rng.below(3) + 1 {
            let ty = self.ty();
            let buffer = self.buffer(ty);
            if windows.iter().all(|w| w.buffer != buffer) {
                windows.push(Window { buffer, base: Index::at(0), width: self.len(buffer) });
            }
        }
        windows
    }

    /// Narrows the windows to an iteration of a loop.
    fn narrow(&mut self, var: Value, bound: usize) {
        let mut windows = self.windows.take().unwrap_or_default();
        for w in &mut windows {
            let n = bound.max(1);
            let most = w.width / n;
            let width = if self.rng.chance(60) { most.min(1) } else { most.min(self.rng.pick(&[1, 2, 3, 7, 200])) };
            let spare = w.width - width * n;
            w.base.offset += self.rng.pick(&[0, spare, self.rng.0 as usize % (spare + 1)]) as i64;
            let mut stride = width as i64;
            if self.rng.chance(20) {
                w.base.offset += stride * (n as i64 - 1);
                stride = -stride;
            }
            let stride = self.int(stride);
            w.base = std::mem::take(&mut w.base).plus(var, stride);
            w.width = width;
        }
        self.windows = Some(windows);
    }

    /// A loop of lanes.
    fn lanes(&mut self, body: &mut Vec<Stmt>, fold: bool) {
        let most = 3000 / self.work.max(1);
        let (count, bound) = self.count(body, most);
        let var = self.value(Ty::I64);
        self.varying[var.index()] = true;
        let n = if fold { self.rng.below(4) } else { 0 };
        let mut folds: Vec<Fold> = Vec::new();
        let inner = self.scoped(|g| {
            let mut inner = Vec::new();
            if g.windows.is_none() {
                g.windows = Some(g.targets());
            }
            g.narrow(var, bound);
            g.lane = Some(g.scope.len());
            g.scope.push(var);
            g.vars.push((var, bound));
            g.work *= bound.max(1);
            g.load(&mut inner);
            g.load(&mut inner);
            g.lane_body(&mut inner, 0);
            for _ in 0..n {
                let ty = g.ty();
                let value = g.operand(&mut inner, ty);
                let op = match ty {
                    Ty::Bool => g.rng.pick(&[FoldOp::And, FoldOp::Or]),
                    t if t.is_float() => g.rng.pick(&[FoldOp::Add, FoldOp::Add, FoldOp::Mul, FoldOp::Max, FoldOp::Min]),
                    _ => g.rng.pick(&[FoldOp::Add, FoldOp::Mul, FoldOp::Max, FoldOp::Min, FoldOp::And, FoldOp::Or]),
                };
                folds.push(Fold { op, value, result: g.value(ty) });
            }
            g.keep(&mut inner, 3);
            inner
        });
        self.scope.extend(folds.iter().map(|f| f.result));
        body.push(Stmt::Loop(Box::new(Loop {
            var,
            count,
            kind: Kind::Lanes,
            carried: Vec::new(),
            folds,
            body: inner,
        })));
    }

    fn lane_body(&mut self, body: &mut Vec<Stmt>, depth: usize) {
        for _ in 0..self.statements() {
            match self.rng.below(20) {
                0 if depth < 2 => {
                    let most = (3000 / self.work.max(1)).min(5);
                    self.serial(body, most, |g, inner| g.lane_body(inner, depth + 1));
                }
                1..=4 => self.load(body),
                5 | 6 => self.store(body),
                _ => self.compute(body),
            }
        }
    }

    /// Statements of a kernel outside of lanes. `fold`: results of folds may be used.
    fn kernel_body(&mut self, body: &mut Vec<Stmt>, depth: usize) {
        for _ in 0..self.statements() / 2 + 1 {
            match self.rng.below(12) {
                0 if depth < 2 => {
                    let most = (2000 / self.work.max(1)).min(5);
                    self.serial(body, most, |g, inner| g.kernel_body(inner, depth + 1));
                }
                1..=3 => self.lanes(body, true),
                4 => self.load(body),
                5 => self.store(body),
                _ => self.compute(body),
            }
        }
    }

    fn kernel(&mut self, main: &mut Vec<Stmt>) {
        let parallel = self.rng.chance(40);
        let mut inputs: Vec<Value> = Vec::new();
        let least = self.known.first().map_or(0, |k| k.0.index());
        for v in self.scope.clone() {
            if self.rng.chance(if v.index() == least { 80 } else { 20 }) && inputs.len() < 12 {
                inputs.push(v);
            }
        }
        let outside = (
            std::mem::replace(&mut self.scope, inputs.clone()),
            self.known.clone(),
            self.vars.clone(),
            self.windows.take(),
            self.work,
        );
        self.known.retain(|(v, _)| inputs.contains(v));
        self.vars.retain(|(v, _)| inputs.contains(v));
        let mut body = Vec::new();
        let mut outputs = Vec::new();
        if parallel {
            // Threads run what stands before the loop while others are in it: it must not read what they write.
            let targets = self.targets();
            self.windows = Some(targets.iter().cloned().map(|w| Window { width: 0, ..w }).collect());
            for _ in 0..self.rng.below(4) {
                if self.rng.chance(20) { self.load(&mut body) } else { self.compute(&mut body) }
            }
            // Nothing may be left of statements that are no `Let`.
            body.retain(|s| matches!(s, Stmt::Let(..)));
            let open: Vec<Window> = targets;
            if self.rng.chance(50) {
                let spare = self.windows.replace(open);
                self.lanes(&mut body, false);
                self.windows = spare;
            } else {
                let (count, bound) = self.count(&mut body, (1000 / self.work).clamp(1, 8));
                let var = self.value(Ty::I64);
                let inner = self.scoped(|g| {
                    let mut inner = Vec::new();
                    g.windows = Some(open);
                    g.narrow(var, bound);
                    g.scope.push(var);
                    g.vars.push((var, bound));
                    g.work *= bound.max(1);
                    g.kernel_body(&mut inner, 1);
                    g.keep(&mut inner, 2);
                    inner
                });
                let l = Loop { var, count, kind: Kind::Serial, carried: vec![], folds: vec![], body: inner };
                body.push(Stmt::Loop(Box::new(l)));
            }
        } else {
            match self.rng.below(3) {
                0 => self.lanes(&mut body, true),
                _ => self.kernel_body(&mut body, 0),
            }
            self.keep(&mut body, 2);
            outputs = self.scope.iter().copied().filter(|v| !inputs.contains(v)).collect();
            while outputs.len() > 6 {
                let k = self.rng.below(outputs.len());
                outputs.swap_remove(k);
            }
        }
        (self.scope, self.known, self.vars, self.windows, self.work) = outside;
        self.scope.extend(&outputs);
        let name = format!("k{}", self.m.kernels.len());
        self.m.kernels.push(Kernel { name, inputs, outputs, parallel, body });
        main.push(Stmt::Kernel(self.m.kernels.len() as u32 - 1));
    }

    pub(super) fn main_body(&mut self, body: &mut Vec<Stmt>, depth: usize) {
        for _ in 0..self.statements() {
            match self.rng.below(20) {
                0 if depth < 2 && self.config.control => {
                    self.serial(body, 5, |g, inner| g.main_body(inner, depth + 1));
                }
                1 if depth < 2 && self.config.control => self.while_(body, depth),
                2 if depth < 2 && self.config.control => self.switch(body, depth),
                3..=6 if self.m.kernels.len() < 4 => self.kernel(body),
                7 => {
                    let ty = self.ty();
                    let (a, b) = (self.buffer(ty), self.buffer(ty));
                    if self.len(a) == self.len(b) {
                        body.push(Stmt::Swap(a, b));
                    }
                }
                8 | 9 => self.load(body),
                10 | 11 => self.store(body),
                _ => self.compute(body),
            }
        }
        if depth == 0 && self.m.kernels.is_empty() {
            self.kernel(body);
        }
    }

    fn while_(&mut self, body: &mut Vec<Stmt>, depth: usize) {
        let zero = self.constant(body, Ty::I64, 0);
        let bound = self.rng.below(5);
        let limit = self.constant(body, Ty::I64, bound as u64);
        let n = self.rng.below(3);
        let mut carried = self.carried(body, n);
        let (param, result) = (self.value(Ty::I64), self.value(Ty::I64));
        let counter = Carried { init: zero, param, next: param, result };
        let (before, condition, inner) = self.scoped(|g| {
            let (mut before, mut inner) = (Vec::new(), Vec::new());
            g.scope.extend(carried.iter().map(|c| c.param));
            g.scope.push(param);
            g.vars.push((param, bound + 1));
            g.work *= bound.max(1);
            g.compute(&mut before);
            let mut condition = g.op(&mut before, Op::Lt, &[param, limit]);
            if g.rng.chance(30) {
                let also = g.operand(&mut before, Ty::Bool);
                condition = g.op(&mut before, Op::And, &[condition, also]);
            }
            g.main_body(&mut inner, depth + 1);
            g.close(&mut inner, &mut carried);
            let one = g.constant(&mut inner, Ty::I64, 1);
            let next = g.op(&mut inner, Op::Add, &[param, one]);
            carried.push(Carried { next, ..counter });
            (before, condition, inner)
        });
        self.scope.extend(carried.iter().map(|c| c.result));
        body.push(Stmt::While(Box::new(While { carried, before, condition, body: inner })));
    }

    fn switch(&mut self, body: &mut Vec<Stmt>, depth: usize) {
        let mut index = self.operand(body, Ty::I64);
        if self.rng.chance(60) {
            let five = self.constant(body, Ty::I64, 5);
            index = self.op(body, Op::Rem, &[index, five]);
        }
        let types: Vec<Ty> = (0..self.rng.below(4)).map(|_| self.ty()).collect();
        let cases = (0..self.rng.below(4) + 1)
            .map(|_| {
                self.scoped(|g| {
                    let mut inner = Vec::new();
                    g.main_body(&mut inner, depth + 1);
                    let ends = types.iter().map(|ty| g.operand(&mut inner, *ty)).collect();
                    (inner, ends)
                })
            })
            .collect();
        let results: Vec<Value> = types.iter().map(|ty| self.value(*ty)).collect();
        self.scope.extend(&results);
        body.push(Stmt::Switch(Box::new(Switch { index, cases, results })));
    }
}
