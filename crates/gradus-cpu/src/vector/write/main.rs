//! Main bodies: control flow around scalars, and the functions that they run. Nothing in them is a vector.

use super::super::{Callee, Code, Machine, Main, Run, Shape, Stmt, Switch, While};
use super::Writer;
use crate::ir::{self, Buffer, Module, Op, Ty, Value};

/// A main body, or a piece of it.
pub fn scalars(module: &Module, body: &[ir::Stmt], machine: &Machine) -> Code {
    let mut w = Writer::new(module, machine);
    body.iter().for_each(|s| w.stmt(s));
    w.finish()
}

impl Writer<'_> {
    /// A step that only main bodies have.
    pub(super) fn main(&mut self, s: &ir::Stmt) {
        let main = match s {
            ir::Stmt::While(w) => Main::While(self.while_(w)),
            ir::Stmt::Switch(s) => Main::Switch(self.switch(s)),
            ir::Stmt::Kernel(number) => Main::Run(self.kernel(*number)),
            ir::Stmt::Call(c) => {
                let ty = |b: Buffer| self.module.buffers[b.index()].ty;
                let arrays = c.buffers.iter().map(|(b, at)| (ty(*b), self.element(*b, at))).collect();
                Main::Run(Run { callee: Callee::Library(c.entry, arrays), inputs: Vec::new(), outputs: Vec::new() })
            }
            ir::Stmt::Piece(number) => {
                let fails = self.module.pieces[*number as usize].iter().any(ir::Stmt::can_fail);
                Main::Run(Run { callee: Callee::Piece(*number, fails), inputs: Vec::new(), outputs: Vec::new() })
            }
            ir::Stmt::Swap(a, b) => Main::Swap(*a, *b),
            // Nothing is done for a note; the others have a form in kernels.
            _ => return,
        };
        self.body.push(Stmt::Main(Box::new(main)));
    }

    fn while_(&mut self, w: &ir::While) -> While {
        let mut carried = self.enter(&w.carried, |_| Shape::SCALAR);
        let before = self.within(|s| w.before.iter().for_each(|x| s.stmt(x)));
        let condition = self.name(w.condition);
        let body = self.within(|s| w.body.iter().for_each(|x| s.stmt(x)));
        self.leave(&w.carried, &mut carried);
        While { carried, before, condition, body }
    }

    fn switch(&mut self, s: &ir::Switch) -> Switch {
        let index = self.name(s.index);
        let mut cases = Vec::with_capacity(s.cases.len());
        for (body, ends) in &s.cases {
            let body = self.within(|w| body.iter().for_each(|x| w.stmt(x)));
            cases.push((body, ends.iter().map(|v| self.name(*v)).collect()));
        }
        let results = s.results.iter().map(|r| self.define(*r)).collect();
        Switch { index, cases, results }
    }

    /// A new name for a value that something else gives.
    fn define(&mut self, v: Value) -> Value {
        let name = self.fresh(self.module.ty(v), Shape::SCALAR);
        self.names.insert(v, name);
        name
    }

    fn kernel(&mut self, number: u32) -> Run {
        let k = &self.module.kernels[number as usize];
        let count = if k.parallel { k.count() } else { None }.map(|(steps, count)| {
            steps.into_iter().for_each(|(v, e)| self.scalar(v, e));
            self.int(count)
        });
        let inputs = k.inputs.iter().map(|v| self.name(*v)).collect();
        let outputs = k.outputs.iter().map(|v| self.define(*v)).collect();
        Run { callee: Callee::Kernel(number, count), inputs, outputs }
    }

    /// The function of the module that an operation calls, if it is one.
    pub(super) fn function(&self, op: Op, args: &[Value]) -> Option<u32> {
        let Op::Math(of) = op else { return None };
        let number = self.module.function(of, self.code.ty(*args.first()?))?;
        Some(number as u32)
    }

    pub(super) fn run_function(&mut self, number: u32, ty: Ty, args: &[Value]) -> Value {
        let result = self.fresh(ty, Shape::SCALAR);
        let run = Run { callee: Callee::Function(number), inputs: args.to_vec(), outputs: vec![result] };
        self.body.push(Stmt::Main(Box::new(Main::Run(run))));
        result
    }
}
