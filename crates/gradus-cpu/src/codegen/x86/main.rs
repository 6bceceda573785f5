//! Main bodies: control flow, and the functions that they run.
//!
//! A branch is a level of its own, like a loop: what does not depend on it is made before it, so that whatever is made once is made on every way.

use rustc_hash::FxHashSet;

use super::Isa;
use super::encode::{Cond, Label, Symbol};
use super::lir::{Callee, Function, Inst, Mem, Reg, Ri, Size, Test};
use super::select::{Scope, Select, Val};
use crate::ir::{Buffer, Value};
use crate::vector::{self, Code, Main, Run, Switch, While};

/// The machine instructions of a main body, or of a piece of it.
pub(super) fn select(code: &Code, swapped: &FxHashSet<Buffer>, isa: Isa) -> Option<Function> {
    let mut s = Select::new(code, isa);
    s.swapped = Some(swapped);
    s.f.exit = Some(s.label());
    // It has the context alone.
    let (env, lo, hi) = (s.general_reg(), s.general_reg(), s.general_reg());
    s.emit(Inst::Entry { context: s.context, env, lo, hi });
    s.block(&code.body)?;
    s.finish()
}

impl Select<'_> {
    pub(super) fn main(&mut self, m: &Main) -> Option<()> {
        match m {
            Main::While(w) => self.while_(w),
            Main::Switch(s) => self.switch(s),
            Main::Run(r) => self.run(r),
            Main::Swap(a, b) => {
                let (at_a, at_b) = (self.buffer_entry(a.0), self.buffer_entry(b.0));
                let (old_a, old_b) = (self.general_reg(), self.general_reg());
                for (dst, from) in [(old_a, at_a), (old_b, at_b)] {
                    self.emit(Inst::Load { size: Size::Quad, dst, from });
                }
                for (src, to) in [(old_b, at_a), (old_a, at_b)] {
                    self.emit(Inst::Store { size: Size::Quad, src, to });
                }
                Some(())
            }
        }
    }

    fn while_(&mut self, w: &While) -> Option<()> {
        self.start(&w.carried)?;
        self.scopes.push(Scope::default());
        self.renew(&w.carried, &w.body);
        let (head, done) = (self.label(), self.label());
        self.block(&w.before)?;
        let a = self.general(w.condition)?;
        self.emit(Inst::Branch(Test { cond: Cond::E, a, b: Ri::Imm(0) }, done));
        self.block(&w.body)?;
        self.go_on(&w.carried)?;
        let Scope { pre, body, .. } = self.scopes.pop()?;
        pre.into_iter().for_each(|i| self.emit(i));
        self.emit(Inst::LoopStart(head));
        body.into_iter().for_each(|i| self.emit(i));
        self.emit(Inst::LoopEnd(None, head));
        self.emit(Inst::Label(done));
        for c in &w.carried {
            self.set(c.result, self.values[c.param.index()]);
        }
        Some(())
    }

    fn switch(&mut self, s: &Switch) -> Option<()> {
        let index = self.general(s.index)?;
        let results: Vec<Val> = s.results.iter().map(|r| self.fresh(*r)).collect();
        let mut cases = Vec::with_capacity(s.cases.len());
        for (body, ends) in &s.cases {
            self.scopes.push(Scope::default());
            self.block(body)?;
            let mut moves = Vec::new();
            for ((end, to), r) in ends.iter().zip(&results).zip(&s.results) {
                self.assign(*end, *to, self.code.shape(*r), &mut moves)?;
            }
            self.moves(moves);
            let Scope { pre, body, .. } = self.scopes.pop()?;
            pre.into_iter().for_each(|i| self.emit(i));
            cases.push((self.label(), body));
        }
        let labels: Vec<Label> = cases.iter().map(|c| c.0).collect();
        self.choose(index, 0, &labels);
        let join = self.label();
        for (label, body) in cases {
            self.emit(Inst::Label(label));
            body.into_iter().for_each(|i| self.emit(i));
            self.emit(Inst::Jump(join));
        }
        self.emit(Inst::Label(join));
        s.results.iter().zip(results).for_each(|(r, to)| self.set(*r, to));
        Some(())
    }

    /// Goes to one of the places, the first of which is that of `from` and all below it, the last that of all above.
    fn choose(&mut self, index: Reg, from: i32, cases: &[Label]) {
        let (low, high) = cases.split_at(cases.len() / 2);
        let (Some(last), Some(only)) = (low.len().checked_sub(1), high.first()) else {
            return high.iter().for_each(|only| self.emit(Inst::Jump(*only)));
        };
        let test = Test { cond: Cond::Le, a: index, b: Ri::Imm(from + last as i32) };
        let below = if last == 0 { low[0] } else { self.label() };
        self.emit(Inst::Branch(test, below));
        match high.len() {
            1 => self.emit(Inst::Jump(*only)),
            _ => self.choose(index, from + low.len() as i32, high),
        }
        if last > 0 {
            self.emit(Inst::Label(below));
            self.choose(index, from, low);
        }
    }

    /// What a function is given lies at the start of the frame, then what it gives.
    fn run(&mut self, r: &Run) -> Option<()> {
        let numbers: Vec<Value> = r.inputs.iter().chain(&r.outputs).copied().collect();
        self.room(8 * numbers.len());
        for (i, v) in r.inputs.iter().enumerate() {
            let src = self.bits(*v)?;
            self.emit(Inst::Store { size: Size::Quad, src, to: Mem::frame(8 * i as i32) });
        }
        let (context, exit) = (self.context, self.f.exit);
        let (callee, count, fails) = match &r.callee {
            vector::Callee::Kernel(number, None) => (Callee::Inside(Symbol::Kernel(*number)), None, None),
            vector::Callee::Kernel(number, Some(count)) => (Callee::Shared(*number), Some(self.int(*count)?), None),
            vector::Callee::Function(number) => (Callee::Inside(Symbol::Function(*number)), None, None),
            vector::Callee::Piece(number, fails) => {
                (Callee::Inside(Symbol::Piece(*number)), None, exit.filter(|_| *fails))
            }
            vector::Callee::Library(entry, arrays) => {
                self.room(8 * arrays.len());
                for (i, (ty, access)) in arrays.iter().enumerate() {
                    let from = self.address(access.memory, &access.at, *ty)?;
                    let src = self.general_reg();
                    self.emit(Inst::Lea { dst: src, from });
                    self.emit(Inst::Store { size: Size::Quad, src, to: Mem::frame(8 * i as i32) });
                }
                (Callee::Library(*entry), None, exit)
            }
        };
        self.emit(Inst::Run { callee, context, count, fails });
        for (v, at) in r.outputs.iter().zip(r.inputs.len()..) {
            let to = self.load_uniform(self.code.ty(*v), Mem::frame(8 * at as i32));
            self.set(*v, to);
        }
        Some(())
    }
}
