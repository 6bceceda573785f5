//! What only the main body has: control flow, kernels, library calls, swaps.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, BlockCall, InstBuilder, JumpTableData, MemFlagsData, types};
use rustc_hash::FxHashMap;

use super::emit::{Emitter, field};
use crate::error::Result;
use crate::ir::{Buffer, Call, Expr, Int, Kernel, Stmt, Switch, Ty, While};

impl<'a> Emitter<'a, '_> {
    /// The main function.
    pub fn main(&mut self, body: &'a [Stmt]) -> Result<()> {
        self.block(body)?;
        let zero = self.i64(0);
        self.b.ins().return_(&[zero]);
        Ok(())
    }

    /// A piece of the main body as a function.
    pub fn piece(&mut self, body: &'a [Stmt]) -> Result<()> {
        self.read_often_used(body);
        self.main(body)
    }

    /// Reads the addresses that a piece needs again and again, above all those of the frame. Quick code reads an address
    /// wherever it is asked for, and buffers that are swapped have to be asked for.
    fn read_often_used(&mut self, body: &[Stmt]) {
        let mut uses: FxHashMap<Buffer, usize> = FxHashMap::default();
        for s in body {
            if let Stmt::Let(_, Expr::Load(b, _)) | Stmt::Store { buffer: b, .. } = s {
                *uses.entry(*b).or_default() += 1;
            }
        }
        let often = uses.into_iter().filter(|(b, n)| *n > 2 && !self.shared.swapped.contains(b));
        let mut often: Vec<Buffer> = often.map(|(b, _)| b).collect();
        often.sort_unstable();
        for b in often {
            let pointer = self.pointer(b);
            self.pointers.push((b, pointer));
        }
    }

    pub fn run_piece(&mut self, number: u32) {
        if self.loops > 0 {
            self.repeated.push(number);
        }
        let signature = self.signature(1, true);
        let function = self.function(self.shared.pieces[number as usize], signature);
        let call = self.b.ins().call(function, &[self.context]);
        if self.module().pieces[number as usize].iter().any(Stmt::can_fail) {
            self.check(call);
        }
    }

    pub fn block(&mut self, body: &'a [Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| self.statement(s))
    }

    /// Ends the run if a call failed.
    fn check(&mut self, call: ir::Inst) {
        let status = self.b.inst_results(call)[0];
        let (failed, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(status, failed, &[], next, &[]);
        self.b.seal_block(failed);
        self.b.seal_block(next);
        self.b.set_cold_block(failed);
        self.b.switch_to_block(failed);
        self.b.ins().return_(&[status]);
        self.b.switch_to_block(next);
    }

    pub fn while_(&mut self, w: &'a While) -> Result<()> {
        let types = self.carried_types(&w.carried);
        let inits = self.gets(w.carried.iter().map(|c| c.init));
        let (head, body) = (self.block_for(types.iter().copied()), self.b.create_block());
        let exit = self.b.create_block();
        self.b.ins().jump(head, &inits);
        self.b.switch_to_block(head);
        let params = self.b.block_params(head).to_vec();
        w.carried.iter().zip(&params).for_each(|(c, p)| self.define(c.param, *p));
        self.loops += 1;
        self.block(&w.before)?;
        let condition = self.get(w.condition);
        self.b.ins().brif(condition, body, &[], exit, &[]);
        self.b.seal_block(body);
        self.b.seal_block(exit);
        self.b.switch_to_block(body);
        self.block(&w.body)?;
        self.loops -= 1;
        let nexts = self.gets(w.carried.iter().map(|c| c.next));
        self.b.ins().jump(head, &nexts);
        self.b.seal_block(head);
        self.b.switch_to_block(exit);
        w.carried.iter().zip(params).for_each(|(c, p)| self.define(c.result, p));
        Ok(())
    }

    pub fn switch(&mut self, s: &'a Switch) -> Result<()> {
        let types: Vec<Ty> = s.results.iter().map(|r| self.ty(*r)).collect();
        let join = self.block_for(types.into_iter());
        let cases: Vec<ir::Block> = s.cases.iter().map(|_| self.b.create_block()).collect();
        let index = self.get(s.index);
        match cases[..] {
            [only] => {
                self.b.ins().jump(only, &[]);
            }
            [first, second] => {
                let zero = self.i64(0);
                let above = self.b.ins().icmp(IntCC::SignedGreaterThan, index, zero);
                self.b.ins().brif(above, second, &[], first, &[]);
            }
            _ => {
                let (zero, last) = (self.i64(0), self.i64(cases.len() as i64 - 1));
                let index = self.b.ins().smax(index, zero);
                let index = self.b.ins().smin(index, last);
                let index = self.b.ins().ireduce(types::I32, index);
                let pool = &mut self.b.func.dfg.value_lists;
                let targets: Vec<BlockCall> = cases.iter().map(|c| BlockCall::new(*c, [], pool)).collect();
                // invariant: the verifier has seen at least one case.
                let table = JumpTableData::new(targets[targets.len() - 1], &targets);
                let table = self.b.create_jump_table(table);
                self.b.ins().br_table(index, table);
            }
        }
        for (case, (body, ends)) in cases.iter().zip(&s.cases) {
            self.b.seal_block(*case);
            self.b.switch_to_block(*case);
            self.block(body)?;
            let ends = self.gets(ends.iter().copied());
            self.b.ins().jump(join, &ends);
        }
        self.b.seal_block(join);
        self.b.switch_to_block(join);
        let results = self.b.block_params(join).to_vec();
        s.results.iter().zip(results).for_each(|(r, v)| self.define(*r, v));
        Ok(())
    }

    pub fn swap(&mut self, x: Buffer, y: Buffer) {
        let table = self.table();
        let (at_x, at_y) = (x.0 as i32 * 8, y.0 as i32 * 8);
        let old_x = self.b.ins().load(types::I64, self.of_table, table, at_x);
        let old_y = self.b.ins().load(types::I64, self.of_table, table, at_y);
        self.b.ins().store(self.of_table, old_y, table, at_x);
        self.b.ins().store(self.of_table, old_x, table, at_y);
    }

    /// Calls the library.
    pub fn call(&mut self, c: &'a Call) -> Result<()> {
        let room = self.room(8 * c.buffers.len() as u32);
        let flags = MemFlagsData::trusted();
        for (i, (b, at)) in c.buffers.iter().enumerate() {
            let (address, offset) = self.address(*b, at);
            let address = self.b.ins().iadd_imm_s(address, i64::from(offset));
            self.b.ins().store(flags, address, room, i as i32 * 8);
        }
        let entry = self.i64(i64::from(c.entry));
        let function = self.b.ins().load(types::I64, flags.with_readonly(), self.context, field::CALL);
        let signature = self.signature(3, true);
        let call = self.b.ins().call_indirect(signature, function, &[self.context, entry, room]);
        self.check(call);
        Ok(())
    }

    /// Runs a kernel.
    pub fn run(&mut self, number: u32) -> Result<()> {
        let k = &self.module().kernels[number as usize];
        let flags = MemFlagsData::trusted();
        let (inputs, outputs) = (k.inputs.len(), k.outputs.len());
        let count = if k.parallel { self.outer_count(k)? } else { None };
        let count_value = match count {
            Some(count) => self.int(count),
            None => self.i64(0),
        };
        let env = self.room(8 * (inputs + outputs) as u32);
        for (i, v) in k.inputs.iter().enumerate() {
            let value = self.get(*v);
            self.b.ins().store(flags, value, env, i as i32 * 8);
        }
        let signature = self.signature(4, false);
        let function = self.function(self.shared.kernels[number as usize], signature);
        if count.is_none() {
            let zero = self.i64(0);
            self.b.ins().call(function, &[self.context, env, zero, count_value]);
        } else {
            let function = self.b.ins().func_addr(types::I64, function);
            let parallel = self.b.ins().load(types::I64, flags.with_readonly(), self.context, field::PARALLEL);
            let number = self.i64(i64::from(number));
            let signature = self.signature(5, false);
            self.b.ins().call_indirect(signature, parallel, &[self.context, function, number, env, count_value]);
        }
        for (i, v) in k.outputs.iter().enumerate() {
            let ty = super::machine_type(self.ty(*v));
            let value = self.b.ins().load(ty, flags, env, (inputs + i) as i32 * 8);
            self.define(*v, value);
        }
        Ok(())
    }

    /// The count of a parallel kernel's loop.
    fn outer_count(&mut self, k: &'a Kernel) -> Result<Option<Int>> {
        let Some((steps, count)) = k.count() else { return Ok(None) };
        for (v, e) in steps {
            let value = self.expression(v, e)?;
            self.define(v, value);
        }
        Ok(Some(count))
    }
}

/// Whether a statement of a piece is run once each time.
pub(super) fn straight(s: &Stmt) -> bool {
    match s {
        Stmt::Loop(_) | Stmt::While(_) => false,
        Stmt::Switch(s) => s.cases.iter().flat_map(|(b, _)| b).all(straight),
        Stmt::Let(..) | Stmt::Store { .. } | Stmt::Kernel(_) | Stmt::Call(_) => true,
        Stmt::Swap(..) | Stmt::Piece(_) | Stmt::Note(_) => true,
    }
}
