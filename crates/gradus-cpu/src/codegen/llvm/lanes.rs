//! Loops of lanes as explicit vector code.
//!
//! Nothing is left to an auto-vectorizer: a step takes a fixed number of iterations at once, and what is left over runs
//! once more with a mask, or one by one where masks are dear. Folds keep 32 lanes whatever a step takes, so that every
//! machine gives the same bits.

use rustc_hash::FxHashMap;

use crate::codegen::blocks::Blocks;
use crate::error::Result;
use crate::ir::{Expr, Fold, LANES, Loop, Op, Stmt, Ty, Value};

use super::emit::Emitter;
use super::ops::{line, put};
use super::text::{Hole, Operand, Shape, int, scalar_name, stored};

/// Steps of known number that are at most so many statements together are written one behind the other.
const FEW: i64 = 16;
/// The first piece of memory for the lanes of folds: those before pass values to calls.
const FOLD_SLOT: usize = 2;

/// The step that is written now.
pub(super) struct Lanes {
    /// How many iterations it takes.
    pub(super) lanes: u32,
    pub(super) var: Value,
    /// The first of them.
    pub(super) index: Operand,
    /// All of them as a vector, once something wants it.
    indices: Option<Operand>,
    /// Behind the head of the block.
    top: Hole,
    /// Before the loop.
    pub(super) ready: Hole,
    splats: FxHashMap<Value, Operand>,
    mask: Option<Mask>,
}

/// Which lanes run, if not all.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    /// For loads and stores.
    pub(super) memory: Operand,
    /// For choices between values. It says the same, and must not be the same: where both are one, LLVM 22 and 23 turn a
    /// choice of what was loaded into another load, behind stores that came between (llvm/llvm-project#215453).
    pub(super) values: Choice,
    /// How many of them run: the first ones.
    pub(super) active: Operand,
}

/// How lanes that do not run get another value.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    By(Operand),
    /// The first so many lanes run.
    First(u32),
}

/// Where the lanes of folds are.
#[derive(Clone)]
enum Accumulators {
    /// In registers, this many lanes each.
    Vectors(Vec<Operand>, u32),
    /// In memory, where a step takes fewer than 32 lanes.
    Memory,
}

impl Emitter<'_> {
    /// A value in all lanes of the step that is written.
    pub(super) fn vector(&mut self, v: Value) -> Operand {
        let Some(l) = &self.f.lanes else { return self.scalars[v.index()] };
        let s = Shape { ty: self.module.ty(v), lanes: l.lanes };
        let (ready, top, index) = (l.ready, l.top, l.index);
        if v == l.var {
            if let Some(found) = l.indices {
                return found;
            }
            let iota = self.iota(s);
            let made = self.inside(top, |e| {
                let first = e.splat(s, index);
                put!(e, "add {s} {first}, {iota}")
            });
            if let Some(l) = &mut self.f.lanes {
                l.indices = Some(made);
            }
            return made;
        }
        if !self.is_outer(v) {
            return self.vectors[v.index()];
        }
        if let Operand::Literal(ty, bits) = self.scalars[v.index()] {
            return self.constant(s.with(ty), bits);
        }
        if let Some(found) = l.splats.get(&v) {
            return *found;
        }
        let scalar = self.scalars[v.index()];
        let made = self.inside(ready, |e| e.splat(s, scalar));
        if let Some(l) = &mut self.f.lanes {
            l.splats.insert(v, made);
        }
        made
    }

    /// A scalar was defined in a step: as a vector too, if one is wanted.
    pub(super) fn defined(&mut self, v: Value) {
        if let Some(l) = &self.f.lanes
            && self.is_splat(v)
        {
            let s = Shape { ty: self.module.ty(v), lanes: l.lanes };
            self.vectors[v.index()] = self.splat(s, self.scalars[v.index()]);
        }
    }

    /// A statement of a step.
    pub(super) fn lanes_stmt(&mut self, s: &Stmt) -> Result<()> {
        match s {
            Stmt::Let(v, _) if self.is_hoisted(*v) => Ok(()),
            Stmt::Let(v, Expr::Op(_, args)) if self.blocks.same.contains(v) => {
                let index = self.f.lanes.as_ref().map_or(Operand::None, |l| l.index);
                let by = self.scalars[args[1].index()];
                self.scalars[v.index()] = put!(self, "lshr i64 {index}, {by}");
                self.defined(*v);
                Ok(())
            }
            Stmt::Let(v, e) if !self.is_varying(*v) => {
                self.scalar(*v, e)?;
                self.defined(*v);
                Ok(())
            }
            Stmt::Let(v, e) => {
                self.vectors[v.index()] = match e {
                    Expr::Op(op, args) => self.lanes_op(*op, args)?,
                    Expr::Load(b, at) => self.lanes_load(*b, at),
                    // Neither differs between lanes.
                    Expr::Const(_) | Expr::Size(_) => Operand::None,
                };
                Ok(())
            }
            Stmt::Store { buffer, at, value } => {
                self.lanes_store(*buffer, at, *value);
                Ok(())
            }
            Stmt::Loop(l) => {
                let range = (int(0), self.int(l.count));
                self.serial(l, range)
            }
            s => Err(crate::error::error!(Verify, "this cannot stand in a loop of lanes: {s:?}")),
        }
    }

    /// How many lanes the step has that is written.
    pub(super) fn width(&self) -> u32 {
        self.f.lanes.as_ref().map_or(1, |l| l.lanes)
    }

    /// Which of them run, if not all.
    pub(super) fn mask(&self) -> Option<Mask> {
        self.f.lanes.as_ref().and_then(|l| l.mask)
    }

    fn lanes_op(&mut self, op: Op, args: &[Value]) -> Result<Operand> {
        let types: smallvec::SmallVec<[Ty; 3]> = args.iter().map(|a| self.module.ty(*a)).collect();
        let mut vectors: smallvec::SmallVec<[Operand; 3]> = args.iter().map(|a| self.vector(*a)).collect();
        let lanes = self.width();
        let Op::Special(which) = op else { return self.op(op, &types, &vectors, lanes) };
        let mask = self.mask();
        if let (Some(mask), Some(guard)) = (mask, vectors.get_mut(2)) {
            *guard = self.choose(Shape { ty: Ty::Bool, lanes }, mask, *guard, Operand::Zero);
        }
        Ok(self.special(which, Shape { ty: types[0], lanes }, &vectors, mask.map(|m| m.active)))
    }

    /// Computes what does not differ between iterations.
    fn hoist(&mut self, body: &[Stmt]) -> Result<()> {
        for s in body {
            match s {
                Stmt::Let(v, e) if self.is_hoisted(*v) => self.scalar(*v, e)?,
                Stmt::Loop(l) => self.hoist(&l.body)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A loop of lanes over a range.
    pub(super) fn lanes_loop(&mut self, l: &Loop, (from, to): (Operand, Operand)) -> Result<()> {
        let count = match (from, to) {
            (Operand::Literal(_, from), Operand::Literal(_, to)) => Some((to as i64).saturating_sub(from as i64)),
            _ => None,
        };
        let identity = |e: &Self, f: &Fold| {
            let ty = e.module.ty(f.value);
            Operand::Literal(ty, f.op.identity(ty))
        };
        if count.is_some_and(|n| n <= 0) {
            l.folds.iter().for_each(|f| self.scalars[f.result.index()] = identity(self, f));
            return Ok(());
        }
        let analysis = self.analyze(l);
        let lanes = analysis.lanes(self.machine, count, &self.blocks);
        if lanes == 1 {
            // Then a step is one iteration, and everything is computed for it.
            self.blocks = Blocks::default();
        }
        let (before, ready, exit) = (self.f.block, self.label(), self.label());
        let n = match (from, to) {
            (Operand::Literal(_, 0), to) => to,
            (from, to) => match count {
                Some(n) => int(n),
                None => put!(self, "sub i64 {to}, {from}"),
            },
        };
        match count {
            Some(_) => line!(self, "br label %L{ready}"),
            None => {
                let runs = put!(self, "icmp sgt i64 {n}, 0");
                line!(self, "br i1 {runs}, label %L{ready}, label %L{exit}");
            }
        }
        self.start(ready);
        self.hoist(&l.body)?;
        let hole = self.f.text.hole();
        let run = Run { l, from, to, n, count, lanes, statements: analysis.statements.max(1), ready: hole };
        let folded = if lanes == 1 {
            self.one_by_one(&run)?
        } else if count.is_some_and(|n| n == i64::from(lanes) || (n < i64::from(lanes) && self.machine.masks)) {
            self.once(&run)?
        } else if self.machine.masks && analysis.statements > self.machine.long {
            self.masked(&run)?
        } else {
            self.twice(&run)?
        };
        let last = self.f.block;
        line!(self, "br label %L{exit}");
        self.start(exit);
        for (f, value) in l.folds.iter().zip(folded) {
            let ty = scalar_name(self.module.ty(f.value));
            self.scalars[f.result.index()] = match count {
                Some(_) => value,
                None => put!(self, "phi {ty} [ {}, %L{before} ], [ {value}, %L{last} ]", identity(self, f)),
            };
        }
        Ok(())
    }

    /// The lanes of folds as they begin.
    fn begin_folds(&mut self, run: &Run<'_>, once: bool) -> Accumulators {
        let wide = LANES as u32;
        let lanes = match run.lanes {
            n if n >= wide => wide,
            n if once => n,
            _ => {
                self.store_folds(run, None);
                return Accumulators::Memory;
            }
        };
        Accumulators::Vectors(self.neutrals(run, lanes), lanes)
    }

    fn neutrals(&mut self, run: &Run<'_>, lanes: u32) -> Vec<Operand> {
        let of = |e: &mut Self, f: &Fold| {
            let ty = e.module.ty(f.value);
            e.constant(Shape { ty, lanes }, f.op.neutral(ty))
        };
        run.l.folds.iter().map(|f| of(self, f)).collect()
    }

    /// The memory of a fold's lanes.
    fn fold_slot(&mut self, fold: usize, ty: Ty) -> String {
        self.slot(FOLD_SLOT + fold, LANES * ty.size())
    }

    /// Stores the lanes of folds, or neutral ones.
    fn store_folds(&mut self, run: &Run<'_>, vectors: Option<&[Operand]>) {
        let neutral = self.neutrals(run, LANES as u32);
        for (i, f) in run.l.folds.iter().enumerate() {
            let s = Shape { ty: self.module.ty(f.value), lanes: LANES as u32 };
            let v = self.pack(s, vectors.map_or(neutral[i], |v| v[i]));
            let p = self.fold_slot(i, s.ty);
            line!(self, "store {} {v}, ptr {p}, align 64", s.with(stored(s.ty)));
        }
    }

    fn load_folds(&mut self, run: &Run<'_>) -> Vec<Operand> {
        let mut all = Vec::with_capacity(run.l.folds.len());
        for (i, f) in run.l.folds.iter().enumerate() {
            let s = Shape { ty: self.module.ty(f.value), lanes: LANES as u32 };
            let p = self.fold_slot(i, s.ty);
            let raw = put!(self, "load {}, ptr {p}, align 64", s.with(stored(s.ty)));
            all.push(self.unpack(s, raw));
        }
        all
    }

    /// The place in a fold's memory for the step that begins at an iteration.
    fn fold_place(&mut self, run: &Run<'_>, fold: usize, ty: Ty, index: Operand) -> Operand {
        let p = self.fold_slot(fold, ty);
        let at = put!(self, "sub i64 {index}, {}", run.from);
        let lane = put!(self, "and i64 {at}, {}", LANES - 1);
        put!(self, "getelementptr {}, ptr {p}, i64 {lane}", scalar_name(stored(ty)))
    }

    /// One step: the body, then what it adds to the folds.
    fn step(
        &mut self,
        run: &Run<'_>,
        index: Operand,
        mask: Option<Mask>,
        accumulators: Accumulators,
    ) -> Result<Accumulators> {
        let top = self.f.text.hole();
        let splats = self.f.kept.take().unwrap_or_default();
        self.f.lanes =
            Some(Lanes { lanes: run.lanes, var: run.l.var, index, indices: None, top, ready: run.ready, splats, mask });
        self.block(&run.l.body)?;
        let mut values = Vec::with_capacity(run.l.folds.len());
        for f in &run.l.folds {
            let s = Shape { ty: self.module.ty(f.value), lanes: run.lanes };
            let mut v = self.vector(f.value);
            if let Some(mask) = mask {
                let neutral = self.constant(s, f.op.neutral(s.ty));
                v = self.choose(s, mask, v, neutral);
            }
            values.push((s, v));
        }
        // The other copy of the body uses the same.
        self.f.kept = self.f.lanes.take().map(|l| l.splats);
        match accumulators {
            Accumulators::Vectors(mut vectors, lanes) => {
                for ((acc, (s, v)), f) in vectors.iter_mut().zip(values).zip(&run.l.folds) {
                    let half = Shape { lanes, ..s };
                    for part in 0..s.lanes / lanes {
                        let v = match s.lanes == lanes {
                            true => v,
                            false => self.part(s, v, part * lanes, lanes),
                        };
                        *acc = self.fold(f.op, half, *acc, v)?;
                    }
                }
                Ok(Accumulators::Vectors(vectors, lanes))
            }
            Accumulators::Memory => {
                for (i, ((s, v), f)) in values.into_iter().zip(&run.l.folds).enumerate() {
                    let m = s.with(stored(s.ty));
                    let p = self.fold_place(run, i, s.ty, index);
                    let raw = put!(self, "load {m}, ptr {p}, align {}", s.ty.size());
                    let acc = self.unpack(s, raw);
                    let acc = self.fold(f.op, s, acc, v)?;
                    let acc = self.pack(s, acc);
                    line!(self, "store {m} {acc}, ptr {p}, align {}", s.ty.size());
                }
                Ok(Accumulators::Memory)
            }
        }
    }

    /// Some lanes of a vector.
    fn part(&mut self, s: Shape, v: Operand, from: u32, lanes: u32) -> Operand {
        self.shuffle(s, v, Operand::None, (from..from + lanes).map(Some))
    }

    /// The end of folds: half the lanes take in the other half, again and again; then the identity.
    fn reduce(&mut self, run: &Run<'_>, accumulators: Accumulators) -> Result<Vec<Operand>> {
        let (vectors, lanes) = match accumulators {
            Accumulators::Vectors(v, lanes) => (v, lanes),
            Accumulators::Memory => (self.load_folds(run), LANES as u32),
        };
        let mut results = Vec::with_capacity(vectors.len());
        for (f, mut v) in run.l.folds.iter().zip(vectors) {
            let ty = self.module.ty(f.value);
            let mut lanes = lanes;
            while lanes > 1 {
                let s = Shape { ty, lanes };
                let half = Shape { ty, lanes: lanes / 2 };
                let (low, high) = match half.lanes {
                    1 => (put!(self, "extractelement {s} {v}, i64 0"), put!(self, "extractelement {s} {v}, i64 1")),
                    n => (self.part(s, v, 0, n), self.part(s, v, n, n)),
                };
                v = self.fold(f.op, half, low, high)?;
                lanes = half.lanes;
            }
            let s = Shape { ty, lanes: 1 };
            results.push(self.fold(f.op, s, Operand::Literal(ty, f.op.identity(ty)), v)?);
        }
        Ok(results)
    }

    /// The mask of the first `active` lanes.
    fn mask_of(&mut self, lanes: u32, active: Operand) -> Mask {
        let mut of = |ty: Ty| {
            let s = Shape { ty, lanes };
            let iota = self.iota(s);
            let all = match active {
                Operand::Literal(_, n) => self.constant(s, n),
                active => {
                    let small = match ty {
                        Ty::U64 => active,
                        ty => put!(self, "trunc i64 {active} to {}", scalar_name(ty)),
                    };
                    self.splat(s, small)
                }
            };
            put!(self, "icmp ult {s} {iota}, {all}")
        };
        // Counters that fill a register of 16 bytes: LLVM 22 forgets to clear the mask's lanes behind the last one where
        // it has to widen the comparison, and a store of bytes takes them for running.
        let (small, other) = match lanes {
            16.. => (Ty::U8, Ty::U16),
            8..16 => (Ty::U16, Ty::U32),
            4..8 => (Ty::U32, Ty::U64),
            _ => (Ty::U64, Ty::U32),
        };
        let memory = of(small);
        let values = match active {
            Operand::Literal(_, n) => Choice::First(n as u32),
            _ => Choice::By(of(other)),
        };
        Mask { memory, values, active }
    }

    /// All iterations fit in one step.
    fn once(&mut self, run: &Run<'_>) -> Result<Vec<Operand>> {
        let start = self.begin_folds(run, true);
        let mask = match run.count {
            Some(n) if n < i64::from(run.lanes) => Some(self.mask_of(run.lanes, int(n))),
            _ => None,
        };
        let end = self.step(run, run.from, mask, start)?;
        self.f.kept = None;
        self.reduce(run, end)
    }

    /// Steps in a loop, each with a mask if `mask` is set, over `from..to`; runs at least once.
    fn steps(&mut self, run: &Run<'_>, to: Operand, masked: bool, start: Accumulators) -> Result<Accumulators> {
        if let (Operand::Literal(_, from), Operand::Literal(_, to)) = (run.from, to)
            && !masked
        {
            let steps = (to as i64 - from as i64) / i64::from(run.lanes);
            if steps.saturating_mul(run.statements as i64) <= FEW {
                let mut end = start;
                for i in 0..steps {
                    end = self.step(run, int(from as i64 + i * i64::from(run.lanes)), None, end)?;
                }
                return Ok(end);
            }
        }
        let (before, body, exit) = (self.f.block, self.label(), self.label());
        line!(self, "br label %L{body}");
        self.start(body);
        let phis = self.f.text.hole();
        let index = Operand::Name(self.fresh());
        let mask = match masked {
            false => None,
            true => {
                let left = put!(self, "sub i64 {to}, {index}");
                let active = self.op(Op::Min, &[Ty::I64; 2], &[left, int(i64::from(run.lanes))], 1)?;
                Some(self.mask_of(run.lanes, active))
            }
        };
        let (inits, params) = match start {
            Accumulators::Memory => (Vec::new(), Accumulators::Memory),
            Accumulators::Vectors(inits, lanes) => {
                let params = inits.iter().map(|_| Operand::Name(self.fresh())).collect();
                (inits, Accumulators::Vectors(params, lanes))
            }
        };
        let end = self.step(run, index, mask, params.clone())?;
        let next = put!(self, "add i64 {index}, {}", run.lanes);
        let more = put!(self, "icmp slt i64 {next}, {to}");
        line!(self, "br i1 {more}, label %L{body}, label %L{exit}");
        let last = self.f.block;
        self.inside(phis, |e| {
            line!(e, "{index} = phi i64 [ {}, %L{before} ], [ {next}, %L{last} ]", run.from);
            if let (Accumulators::Vectors(params, lanes), Accumulators::Vectors(ends, _)) = (&params, &end) {
                for (i, f) in run.l.folds.iter().enumerate() {
                    let s = Shape { ty: e.module.ty(f.value), lanes: *lanes };
                    line!(e, "{} = phi {s} [ {}, %L{before} ], [ {}, %L{last} ]", params[i], inits[i], ends[i]);
                }
            }
        });
        self.start(exit);
        Ok(end)
    }

    /// A long body, written once.
    fn masked(&mut self, run: &Run<'_>) -> Result<Vec<Operand>> {
        let start = self.begin_folds(run, false);
        let end = self.steps(run, run.to, true, start)?;
        self.f.kept = None;
        self.reduce(run, end)
    }

    /// Chooses between two values of folds by the block that control comes from.
    fn merge(&mut self, run: &Run<'_>, a: (&Accumulators, u32), b: (&Accumulators, u32)) -> Accumulators {
        match (a, b) {
            ((Accumulators::Vectors(x, lanes), from_x), (Accumulators::Vectors(y, _), from_y)) => {
                let mut all = Vec::with_capacity(x.len());
                for (i, f) in run.l.folds.iter().enumerate() {
                    let s = Shape { ty: self.module.ty(f.value), lanes: *lanes };
                    all.push(put!(self, "phi {s} [ {}, %L{from_x} ], [ {}, %L{from_y} ]", x[i], y[i]));
                }
                Accumulators::Vectors(all, *lanes)
            }
            _ => Accumulators::Memory,
        }
    }

    /// Full steps, then what is left over.
    fn twice(&mut self, run: &Run<'_>) -> Result<Vec<Operand>> {
        let lanes = i64::from(run.lanes);
        let start = self.begin_folds(run, false);
        let full = match run.count {
            Some(n) => int(n & -lanes),
            None => put!(self, "and i64 {}, {}", run.n, -lanes),
        };
        let until = match (run.from, full) {
            (Operand::Literal(_, 0), full) => full,
            (Operand::Literal(_, from), Operand::Literal(_, n)) => int(from as i64 + n as i64),
            (from, full) => put!(self, "add i64 {from}, {full}"),
        };
        // A known count is at least one full step, or it would be done at once, or one by one.
        let (steps, rest) = (self.label(), self.label());
        let before = self.f.block;
        match run.count {
            Some(_) => line!(self, "br label %L{steps}"),
            None => {
                let any = put!(self, "icmp sge i64 {}, {lanes}", run.n);
                line!(self, "br i1 {any}, label %L{steps}, label %L{rest}");
            }
        }
        self.start(steps);
        let end = self.steps(run, until, false, start.clone())?;
        let last = self.f.block;
        line!(self, "br label %L{rest}");
        self.start(rest);
        let so_far = match run.count {
            Some(_) => end,
            None => self.merge(run, (&start, before), (&end, last)),
        };
        if run.count.is_some_and(|n| n % lanes == 0) {
            self.f.kept = None;
            return self.reduce(run, so_far);
        }
        let end = if self.machine.masks {
            let active = match run.count {
                Some(n) => int(n % lanes),
                None => put!(self, "and i64 {}, {}", run.n, lanes - 1),
            };
            let (tail, done) = (self.label(), self.label());
            let before = self.f.block;
            let any = put!(self, "icmp ne i64 {active}, 0");
            line!(self, "br i1 {any}, label %L{tail}, label %L{done}");
            self.start(tail);
            let mask = self.mask_of(run.lanes, active);
            let end = self.step(run, until, Some(mask), so_far.clone())?;
            let last = self.f.block;
            line!(self, "br label %L{done}");
            self.start(done);
            self.merge(run, (&so_far, before), (&end, last))
        } else {
            if let Accumulators::Vectors(v, _) = &so_far {
                self.store_folds(run, Some(v));
            }
            self.scalar_steps(run, until)?;
            Accumulators::Memory
        };
        self.f.kept = None;
        self.reduce(run, end)
    }

    /// Everything without vectors.
    fn one_by_one(&mut self, run: &Run<'_>) -> Result<Vec<Operand>> {
        self.store_folds(run, None);
        self.scalar_steps(run, run.from)?;
        self.reduce(run, Accumulators::Memory)
    }

    /// Iterations one by one, from one to the end, with the folds in memory.
    fn scalar_steps(&mut self, run: &Run<'_>, from: Operand) -> Result<()> {
        let (before, body, exit) = (self.f.block, self.label(), self.label());
        let runs = put!(self, "icmp slt i64 {from}, {}", run.to);
        line!(self, "br i1 {runs}, label %L{body}, label %L{exit}");
        self.start(body);
        let phis = self.f.text.hole();
        let index = Operand::Name(self.fresh());
        self.scalars[run.l.var.index()] = index;
        self.block(&run.l.body)?;
        for (i, f) in run.l.folds.iter().enumerate() {
            let s = Shape { ty: self.module.ty(f.value), lanes: 1 };
            let m = scalar_name(stored(s.ty));
            let p = self.fold_place(run, i, s.ty, index);
            let raw = put!(self, "load {m}, ptr {p}, align {}", s.ty.size());
            let acc = self.unpack(s, raw);
            let acc = self.fold(f.op, s, acc, self.scalars[f.value.index()])?;
            let acc = self.pack(s, acc);
            line!(self, "store {m} {acc}, ptr {p}, align {}", s.ty.size());
        }
        let next = put!(self, "add nuw nsw i64 {index}, 1");
        let more = put!(self, "icmp slt i64 {next}, {}", run.to);
        line!(self, "br i1 {more}, label %L{body}, label %L{exit}");
        let last = self.f.block;
        self.inside(phis, |e| line!(e, "{index} = phi i64 [ {from}, %L{before} ], [ {next}, %L{last} ]"));
        self.start(exit);
        Ok(())
    }
}

/// A loop of lanes that is being written.
struct Run<'a> {
    l: &'a Loop,
    from: Operand,
    to: Operand,
    /// How many iterations.
    n: Operand,
    /// The same, if it is known.
    count: Option<i64>,
    lanes: u32,
    /// How many statements the body has.
    statements: usize,
    ready: Hole,
}
