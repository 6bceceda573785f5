//! Loops of lanes: whole steps, what is left of them, and folds.
//!
//! A step is several vectors. What is left after the last whole step is done one vector at a time under a mask. A fold has
//! one lane for each of its 32 in registers; at the end of the loop, where the vectors of a step come one by one, they are in
//! the frame.

use super::Isa;
use super::analyze;
use super::encode::{Cond, Len};
use super::lir::{Alu, Inst, Mem, Reg, Ri, Rm, Test, Unary};
use super::opcodes as op;
use super::select::{Key, Scope, Select, Step, Val, is_general};
use super::small::{is_small, lane_bits, lane_type};
use crate::codegen::blocks::{Blocks, blocks};
use crate::ir::{Fold, FoldOp, LANES, Loop, Op, Ty};

/// Bytes of the frame that memory operations use for lanes.
pub(super) const LANE_ROOM: usize = super::lanewise::ROOM;

/// Bytes of the frame for the lanes of a fold.
const FOLD_ROOM: usize = LANES * 8;

/// The type a fold works with: a bool is all bits of a 32-bit integer.
fn fold_type(ty: Ty) -> Ty {
    if ty == Ty::Bool { Ty::I32 } else { lane_type(ty) }
}

/// What an empty lane holds.
fn neutral(f: &Fold, ty: Ty) -> u64 {
    match (ty, f.op) {
        (Ty::Bool, FoldOp::And | FoldOp::Min) => u64::from(u32::MAX),
        (Ty::Bool, _) => 0,
        (ty, op) => lane_bits(ty, op.neutral(ty)),
    }
}

impl Select<'_> {
    pub(super) fn lanes_loop(&mut self, l: &Loop, bounds: Option<(Reg, Reg)>) -> Option<()> {
        let before = self.varying.clone();
        let mut known = match bounds {
            None => blocks(l, |v| self.const_of(v)),
            Some(_) => Blocks::default(),
        };
        let mut marked = analyze::mark(l, &mut self.varying, &known);
        let mut plan = analyze::plan(self.module, l, &self.varying, &known, self.isa);
        if plan.single {
            // Then a step is one vector, not a block.
            known = Blocks::default();
            self.varying.clone_from(&before);
            marked = analyze::mark(l, &mut self.varying, &known);
            plan = analyze::plan(self.module, l, &self.varying, &known, self.isa);
        }
        if marked.is_none() {
            // Lanes that leave an inner loop at different times: one iteration after the other is as good.
            self.varying = before;
            return self.serial(l, bounds);
        }
        self.blocks = known;
        let count = match bounds {
            Some((_, hi)) => Ri::Reg(hi),
            None => self.int(l.count)?,
        };
        let whole = (plan.vectors * plan.width) as i32;
        let (has_steps, has_rest) = match count {
            Ri::Imm(n) if plan.single => (false, n > 0),
            Ri::Reg(_) if plan.single => (false, true),
            Ri::Imm(n) => (n >= whole, n % whole != 0),
            Ri::Reg(_) => (true, true),
        };
        let counter = self.general_reg();
        self.scopes.push(Scope::default());
        let level = self.level();
        self.set(l.var, Val::LaneVar);
        let step = Step { plan, var: l.var, level, counter, copies: plan.together, first: 0, remaining: None };
        self.step = Some(step);
        let lanes = self.fold_lanes(l)?;
        let mut steps = Vec::new();
        if has_steps {
            for first in (0..plan.vectors).step_by(plan.together) {
                self.begin(Step { first, ..step });
                self.block(&l.body)?;
                for (f, lanes) in l.folds.iter().zip(&lanes) {
                    for k in 0..plan.together {
                        let v = self.folded(f, k)?;
                        let acc = lanes[first + k];
                        self.fold_op(f, acc, acc, v)?;
                    }
                }
            }
            steps = std::mem::take(&mut self.scopes[level].body);
        }
        let mut rest = Vec::new();
        let at = self.general_reg();
        if has_rest {
            let left = self.general_reg();
            let remaining = self.general_reg();
            self.begin(Step { copies: 1, remaining: Some(remaining), ..step });
            match count {
                Ri::Reg(n) => self.alu(Alu::Sub, left, n, counter),
                Ri::Imm(n) => {
                    self.emit(Inst::Const { dst: left, value: i64::from(n) });
                    self.alu(Alu::Sub, left, left, counter);
                }
            }
            let most = self.general_const(plan.width as i64);
            let test = Test { cond: Cond::L, a: left, b: Ri::Imm(plan.width as i32) };
            self.emit(Inst::Choose { dst: remaining, test, yes: left, no: most });
            self.block(&l.body)?;
            for (i, f) in l.folds.iter().enumerate() {
                let v = self.folded(f, 0)?;
                self.fold_rest(f, i, at, v)?;
            }
            rest = std::mem::take(&mut self.scopes[level].body);
        }
        self.step = None;
        let Scope { pre, .. } = self.scopes.pop()?;
        pre.into_iter().for_each(|i| self.emit(i));
        self.emit(match bounds {
            Some((src, _)) => Inst::Copy { dst: counter, src },
            None => Inst::Const { dst: counter, value: 0 },
        });
        let (ended, done) = (self.label(), self.label());
        if has_steps {
            let limit = match count {
                Ri::Imm(n) => Ri::Imm(n - (whole - 1)),
                Ri::Reg(n) => {
                    let limit = self.general_reg();
                    self.alu(Alu::Sub, limit, n, Ri::Imm(whole - 1));
                    self.emit(Inst::Branch(Test { cond: Cond::Ge, a: counter, b: Ri::Reg(limit) }, ended));
                    Ri::Reg(limit)
                }
            };
            let head = self.label();
            self.emit(Inst::LoopStart(head));
            steps.into_iter().for_each(|i| self.emit(i));
            self.alu(Alu::Add, counter, counter, Ri::Imm(whole));
            self.emit(Inst::LoopEnd(Test { cond: Cond::L, a: counter, b: limit }, head));
        }
        self.emit(Inst::Label(ended));
        if has_rest {
            if matches!(count, Ri::Reg(_)) {
                self.emit(Inst::Branch(Test { cond: Cond::Ge, a: counter, b: count }, done));
            }
            let width = plan.width as i32;
            self.fold_memory(l, &lanes, width, true);
            if !l.folds.is_empty() {
                self.emit(Inst::Const { dst: at, value: 0 });
            }
            let head = self.label();
            self.emit(Inst::LoopStart(head));
            rest.into_iter().for_each(|i| self.emit(i));
            self.alu(Alu::Add, counter, counter, Ri::Imm(width));
            if !l.folds.is_empty() {
                self.alu(Alu::Add, at, at, Ri::Imm(width));
                if plan.single {
                    self.alu(Alu::And, at, at, Ri::Imm(LANES as i32 - 1));
                }
            }
            self.emit(Inst::LoopEnd(Test { cond: Cond::L, a: counter, b: count }, head));
            self.fold_memory(l, &lanes, width, false);
        }
        self.emit(Inst::Label(done));
        for (f, lanes) in l.folds.iter().zip(lanes) {
            let to = self.reduce(f, lanes, plan.width)?;
            self.set(f.result, to);
        }
        Some(())
    }

    /// The body is made once more: what was made for this level before is not there.
    fn begin(&mut self, step: Step) {
        self.step = Some(step);
        self.scopes[step.level].cache.clear();
    }

    /// Registers for the lanes of all folds, empty.
    fn fold_lanes(&mut self, l: &Loop) -> Option<Vec<Vec<Reg>>> {
        let (plan, level) = self.step.map(|s| (s.plan, s.level))?;
        let mut all = Vec::new();
        for f in &l.folds {
            let ty = self.module.ty(f.value);
            let src = self.splat(neutral(f, ty), fold_type(ty).size());
            let lanes: Vec<Reg> = (0..plan.vectors).map(|_| self.vector_reg()).collect();
            for dst in &lanes {
                self.emit_at(level - 1, Inst::Copy { dst: *dst, src });
            }
            all.push(lanes);
        }
        if !l.folds.is_empty() {
            self.room(LANE_ROOM + FOLD_ROOM * l.folds.len());
        }
        Some(all)
    }

    /// What a fold takes in from one vector.
    fn folded(&mut self, f: &Fold, k: usize) -> Option<Reg> {
        if self.module.ty(f.value) != Ty::Bool {
            return self.vector(f.value, k);
        }
        let mask = self.mask(f.value, k)?;
        self.lanes = true;
        let dst = self.vector_reg();
        match self.isa {
            Isa::Avx512 => self.vec(op::mask_to_vector(false), self.len(4), dst, None, mask, None),
            Isa::Avx2 => {
                let src = self.mask_as(mask, 4);
                self.emit(Inst::Copy { dst, src });
            }
        }
        self.lanes = false;
        Some(dst)
    }

    fn fold_op(&mut self, f: &Fold, dst: Reg, a: Reg, b: Reg) -> Option<()> {
        self.lanes = true;
        let ty = fold_type(self.module.ty(f.value));
        let len = self.len(ty.size());
        self.combine(f, len, dst, a, b)?;
        self.lanes = false;
        Some(())
    }

    fn combine(&mut self, f: &Fold, len: Len, dst: Reg, a: Reg, b: Reg) -> Option<()> {
        let op = match (self.module.ty(f.value), f.op) {
            (Ty::Bool, FoldOp::Min) => Op::And,
            (Ty::Bool, FoldOp::Max) => Op::Or,
            (Ty::Bool, FoldOp::Add | FoldOp::Mul) => return None,
            (_, op) => op.op(),
        };
        let ty = self.module.ty(f.value);
        if is_small(ty) {
            let whole = self.vector_reg();
            self.arithmetic(op, Ty::I32, len, whole, &[a, b], None)?;
            self.cut(ty, len, dst, whole);
            return Some(());
        }
        self.arithmetic(op, fold_type(ty), len, dst, &[a, b], None)
    }

    /// Folds where iterations come one by one: their lanes are in the frame. First they are empty.
    pub(super) fn fold_begin(&mut self, l: &Loop) {
        let len = self.whole();
        for (i, f) in l.folds.iter().enumerate() {
            self.room(LANE_ROOM + FOLD_ROOM * (i + 1));
            let ty = self.module.ty(f.value);
            let src = self.splat(neutral(f, ty), fold_type(ty).size());
            for at in (0..LANES * fold_type(ty).size()).step_by(self.f.entry) {
                let to = Self::fold_place(i).plus(at as i32);
                self.emit(Inst::StoreVec { enc: op::store(false), len, src, to, mask: None });
            }
        }
    }

    /// Takes one iteration into its lanes.
    pub(super) fn fold_one(&mut self, l: &Loop, counter: Reg) -> Option<()> {
        for (i, f) in l.folds.iter().enumerate() {
            let size = fold_type(self.module.ty(f.value)).size();
            let at = self.general_reg();
            self.alu(Alu::And, at, counter, Ri::Imm(LANES as i32 - 1));
            let place = Mem { index: Some((at, size.trailing_zeros() as u8)), ..Self::fold_place(i) };
            let old = self.made(op::broadcast(size == 8), Len(16), None, Rm::Mem(place), None);
            let (v, src) = (self.folded(f, 0)?, self.vector_reg());
            self.combine(f, Len(16), src, old, v)?;
            self.emit(Inst::StoreVec { enc: op::store_one(size == 8), len: Len(16), src, to: place, mask: None });
        }
        Some(())
    }

    /// What the folds are.
    pub(super) fn fold_end(&mut self, l: &Loop) -> Option<()> {
        for (i, f) in l.folds.iter().enumerate() {
            let size = fold_type(self.module.ty(f.value)).size();
            let (len, width) = (self.whole(), self.f.entry / size);
            let lanes: Vec<Reg> = (0..LANES / width)
                .map(|k| {
                    let place = Self::fold_place(i).plus((k * self.f.entry) as i32);
                    self.made(op::load(false), len, None, Rm::Mem(place), None)
                })
                .collect();
            let to = self.reduce(f, lanes, width)?;
            self.set(f.result, to);
        }
        Some(())
    }

    /// Where the lanes of a fold are in the frame.
    fn fold_place(i: usize) -> Mem {
        Mem::frame((LANE_ROOM + FOLD_ROOM * i) as i32)
    }

    /// Takes one vector into the lanes in the frame that are its.
    fn fold_rest(&mut self, f: &Fold, i: usize, at: Reg, v: Reg) -> Option<()> {
        let size = fold_type(self.module.ty(f.value)).size();
        self.lanes = true;
        let len = self.len(size);
        let place = Mem { index: Some((at, size.trailing_zeros() as u8)), ..Self::fold_place(i) };
        let old = self.made(op::load(false), len, None, Rm::Mem(place), None);
        let new = self.vector_reg();
        self.combine(f, len, new, old, v)?;
        let mask = self.active(size as u8)?;
        self.store_vector(size == 8, len, new, place, Some(mask));
        self.lanes = false;
        Some(())
    }

    /// Puts the lanes of all folds into the frame, or takes them back.
    fn fold_memory(&mut self, l: &Loop, lanes: &[Vec<Reg>], width: i32, out: bool) {
        for (i, (f, lanes)) in l.folds.iter().zip(lanes).enumerate() {
            let size = fold_type(self.module.ty(f.value)).size() as i32;
            let len = Len((width * size) as u8);
            for (k, r) in lanes.iter().enumerate() {
                let place = Self::fold_place(i).plus(k as i32 * width * size);
                match out {
                    true => self.emit(Inst::StoreVec { enc: op::store(false), len, src: *r, to: place, mask: None }),
                    false => self.vec(op::load(false), len, *r, None, Rm::Mem(place), None),
                }
            }
        }
    }

    /// The end of a fold: halves take in halves, first of registers, then of lanes.
    fn reduce(&mut self, f: &Fold, mut lanes: Vec<Reg>, width: usize) -> Option<Val> {
        let ty = self.module.ty(f.value);
        let size = fold_type(ty).size();
        let len = Len((width * size) as u8);
        while lanes.len() > 1 {
            let upper = lanes.split_off(lanes.len() / 2);
            for (a, b) in lanes.iter_mut().zip(upper) {
                let dst = self.vector_reg();
                self.combine(f, len, dst, *a, b)?;
                *a = dst;
            }
        }
        let mut r = *lanes.first()?;
        let mut bytes = width * size / 2;
        while bytes >= size {
            let upper = match bytes {
                32 => self.made(op::EXTRACT_256, Len(64), None, r, Some(1)),
                16 => self.made(op::EXTRACT_128, Len(32), None, r, Some(1)),
                8 => self.made(op::SHUFFLE, Len(16), None, r, Some(0x4E)),
                _ => self.made(op::SHUFFLE, Len(16), None, r, Some(0x55)),
            };
            let dst = self.vector_reg();
            self.combine(f, Len(bytes.max(16) as u8), dst, r, upper)?;
            r = dst;
            bytes /= 2;
        }
        if f.op == FoldOp::Add && ty.is_float() {
            // The one operation whose identity changes something: the sign of a zero.
            let zero = self.splat(0, size);
            let dst = self.vector_reg();
            self.combine(f, Len(16), dst, zero, r)?;
            r = dst;
        }
        if is_general(ty) {
            let dst = self.general_reg();
            self.emit(Inst::FromVec { enc: op::to_general(size == 8), dst, src: r });
            if ty == Ty::Bool {
                self.emit(Inst::Unary { op: Unary::Signed32, dst, a: dst });
            }
            return Some(Val::General(dst));
        }
        let len = self.whole();
        Some(Val::Uniform(self.made(op::broadcast(size == 8), len, None, r, None)))
    }

    /// The lane counter as a vector.
    pub(super) fn lane_vector(&mut self, k: usize) -> Option<Reg> {
        let step = self.step?;
        let Step { plan, level, counter, first, .. } = step;
        let at = (first + k) * plan.width;
        let iota = self.iota(at, 8);
        let base = match self.scopes[level].cache.get(&Key::Lane(usize::MAX)) {
            Some(r) => *r,
            None => self.once(level, Key::Lane(usize::MAX), |s| {
                let dst = s.vector_reg();
                (dst, s.broadcast_code(dst, counter, true))
            }),
        };
        let len = Len((plan.width * 8) as u8);
        Some(self.once(level, Key::Lane(k), |s| {
            let dst = s.vector_reg();
            let code =
                Inst::Vec { enc: op::int_add(true), len, dst, a: Some(base), b: iota.into(), imm: None, mask: None };
            (dst, vec![code])
        }))
    }

    /// The numbers from `start` on, in lanes of so many bytes.
    pub(super) fn iota(&mut self, start: usize, size: usize) -> Reg {
        self.ramp(start as i64, 1, size)
    }

    /// The numbers `start·stride`, `(start + 1)·stride`...
    pub(super) fn ramp(&mut self, start: i64, stride: i64, size: usize) -> Reg {
        let lanes = (self.f.entry / size) as i64;
        let bytes: Vec<u8> =
            (start..start + lanes).flat_map(|i| (i * stride).to_le_bytes().into_iter().take(size)).collect();
        self.pattern(&bytes)
    }

    /// At the end of a loop, the lanes that there are: a mask for elements of so many bytes.
    pub(super) fn active(&mut self, size: u8) -> Option<Reg> {
        let step = self.step?;
        let (remaining, level) = (step.remaining?, step.level);
        match self.isa {
            Isa::Avx512 => Some(self.once(level, Key::Active(0), |s| {
                let (bits, dst) = (s.general_reg(), s.mask_reg(0));
                (dst, vec![Inst::LowBits { dst: bits, count: remaining }, Inst::MaskFrom { dst, src: bits }])
            })),
            Isa::Avx2 => {
                let iota = self.iota(0, usize::from(size));
                let wide = size == 8;
                let len = Len((step.plan.width * usize::from(size)) as u8);
                Some(self.once(level, Key::Active(size), |s| {
                    let (all, dst) = (s.vector_reg(), s.mask_reg(size));
                    let mut code = s.broadcast_code(all, remaining, wide);
                    let enc = op::int_greater(wide);
                    code.push(Inst::Vec { enc, len, dst, a: Some(all), b: iota.into(), imm: None, mask: None });
                    (dst, code)
                }))
            }
        }
    }
}
