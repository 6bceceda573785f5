//! Kernels: functions over iterations of their outermost loop, and loops of lanes one lane after the other.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};

use super::emit::Emitter;
use super::simd::{self, Shape};
use super::{Simd, machine_type, scalar};
use crate::error::Result;
use crate::ir::{Buffer, Expr, Fold, Int, Kernel, Kind, LANES, Loop, Stmt};

impl<'a> Emitter<'a, '_> {
    /// A kernel as a function of context, env, lo and hi.
    pub fn kernel(&mut self, k: &'a Kernel, params: &[ir::Value]) -> Result<()> {
        let (env, range) = (params[1], (params[2], params[3]));
        let flags = MemFlagsData::trusted();
        let table = self.table();
        let mut used = Vec::new();
        buffers(&k.body, &mut used);
        used.sort();
        used.dedup();
        for b in used {
            let pointer = self.b.ins().load(types::I64, self.of_table, table, b.0 as i32 * 8);
            self.pointers.push((b, pointer));
        }
        for (i, v) in k.inputs.iter().enumerate() {
            let ty = machine_type(self.ty(*v));
            let value = self.b.ins().load(ty, flags, env, i as i32 * 8);
            self.define(*v, value);
        }
        for s in &k.body {
            match s {
                Stmt::Loop(l) if k.parallel && l.kind == Kind::Serial => self.serial(l, range.0, range.1)?,
                Stmt::Loop(l) if k.parallel => self.lanes(l, Some(range))?,
                s => self.statement(s)?,
            }
        }
        for (i, v) in k.outputs.iter().enumerate() {
            let value = self.get(*v);
            self.b.ins().store(flags, value, env, (k.inputs.len() + i) as i32 * 8);
        }
        self.b.ins().return_(&[]);
        Ok(())
    }

    /// A loop of lanes; `range` if only a part of its iterations is run, and then nothing is folded.
    pub fn lanes(&mut self, l: &'a Loop, range: Option<(ir::Value, ir::Value)>) -> Result<()> {
        let (lo, hi) = match range {
            Some(range) => range,
            None => (self.i64(0), self.int(l.count)),
        };
        let lanes: Vec<ir::Value> = l.folds.iter().map(|f| self.begin_fold(f)).collect();
        let shape = Shape::new(self.module(), l, self.shared.simd);
        let known = match (range, l.count) {
            (None, Int::Const(n)) => Some(n.max(0) as usize),
            _ => None,
        };
        let mut left = lo;
        if let Some(shape) = &shape {
            let many = shape.lanes * shape.unroll;
            if known.is_none_or(|n| n >= many) {
                left = self.vectors(l, shape, shape.unroll, left, hi, &lanes)?;
            }
            if shape.unroll > 1 && known.is_none_or(|n| n % many >= shape.lanes) {
                left = self.vectors(l, shape, 1, left, hi, &lanes)?;
            }
        }
        if known.is_none_or(|n| n % shape.as_ref().map_or(usize::MAX, |s| s.lanes) > 0) {
            self.lane_loop(l, left, hi, &lanes)?;
        }
        for (f, lanes) in l.folds.iter().zip(lanes) {
            self.end_fold(f, lanes, l.count)?;
        }
        Ok(())
    }

    /// One iteration after the other.
    fn lane_loop(&mut self, l: &'a Loop, lo: ir::Value, hi: ir::Value, lanes: &[ir::Value]) -> Result<()> {
        let (head, exit) = (self.b.create_block(), self.b.create_block());
        let var = self.b.append_block_param(head, types::I64);
        let some = self.b.ins().icmp(IntCC::SignedLessThan, lo, hi);
        self.b.ins().brif(some, head, &[lo.into()], exit, &[]);
        self.b.switch_to_block(head);
        self.define(l.var, var);
        l.body.iter().try_for_each(|s| self.statement(s))?;
        for (f, lanes) in l.folds.iter().zip(lanes) {
            let ty = self.ty(f.value);
            let lane = self.b.ins().band_imm_s(var, LANES as i64 - 1);
            let lane = self.b.ins().imul_imm_s(lane, ty.size() as i64);
            let at = self.b.ins().iadd(*lanes, lane);
            let old = self.b.ins().load(machine_type(ty), MemFlagsData::trusted(), at, 0);
            let value = self.get(f.value);
            let new = scalar::operation(self, f.op.op(), &[ty, ty], &[old, value])?;
            self.b.ins().store(MemFlagsData::trusted(), new, at, 0);
        }
        let after = self.b.ins().iadd_imm_s(var, 1);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, after, hi);
        self.b.ins().brif(more, head, &[after.into()], exit, &[]);
        self.b.seal_block(head);
        self.b.seal_block(exit);
        self.b.switch_to_block(exit);
        Ok(())
    }

    /// The lanes of a fold in memory, all of them neutral.
    fn begin_fold(&mut self, f: &Fold) -> ir::Value {
        let ty = self.ty(f.value);
        let slot = self.stack((LANES * ty.size()) as u32);
        let lanes = self.b.ins().stack_addr(types::I64, slot, 0);
        let neutral = simd::constant(self, ty, f.op.neutral(ty));
        for at in (0..LANES * ty.size()).step_by(16) {
            self.b.ins().store(MemFlagsData::trusted(), neutral, lanes, at as i32);
        }
        lanes
    }

    /// The lanes into one, in the order of the language. Lanes that a constant count leaves empty are left out; the others
    /// are neutral if they are empty.
    fn end_fold(&mut self, f: &Fold, lanes: ir::Value, count: Int) -> Result<()> {
        let ty = self.ty(f.value);
        let used = match count {
            Int::Const(n) => (n.max(1) as usize).min(LANES),
            Int::Value(_) => LANES,
        };
        let op = f.op.op();
        let each = 16 / ty.size();
        let mut w = LANES / 2;
        // Whole vectors first, then lane by lane.
        let mut all: Vec<ir::Value> = if self.shared.simd != Simd::Never && used == LANES && simd::has(op, ty) {
            let load = |e: &mut Self, i: usize| {
                e.b.ins().load(simd::type_of(ty), MemFlagsData::trusted(), lanes, (i * 16) as i32)
            };
            let mut vectors: Vec<ir::Value> = (0..LANES / each).map(|i| load(self, i)).collect();
            while w >= each {
                for i in 0..w / each {
                    vectors[i] = simd::vector(self, op, ty, &[vectors[i], vectors[i + w / each]]);
                }
                w /= 2;
            }
            (0..each).map(|l| self.b.ins().extractlane(vectors[0], l as u8)).collect()
        } else {
            let load = |e: &mut Self, l: usize| {
                e.b.ins().load(machine_type(ty), MemFlagsData::trusted(), lanes, (l * ty.size()) as i32)
            };
            (0..used).map(|l| load(self, l)).collect()
        };
        while w > 0 {
            for l in 0..w {
                if l + w < all.len() {
                    all[l] = scalar::operation(self, op, &[ty, ty], &[all[l], all[l + w]])?;
                }
            }
            all.truncate(w);
            w /= 2;
        }
        let identity = self.constant(ty, f.op.identity(ty));
        let result = scalar::operation(self, op, &[ty, ty], &[identity, all[0]])?;
        self.define(f.result, result);
        Ok(())
    }
}

/// The buffers that statements of a kernel touch.
fn buffers(body: &[Stmt], out: &mut Vec<Buffer>) {
    for s in body {
        match s {
            Stmt::Let(_, Expr::Load(b, _)) | Stmt::Store { buffer: b, .. } => out.push(*b),
            Stmt::Loop(l) => buffers(&l.body, out),
            _ => {}
        }
    }
}
