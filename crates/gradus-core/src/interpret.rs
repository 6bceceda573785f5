//! The reference interpreter: runs a program equation by equation. It is the oracle for every compiler, and the
//! executable until there is one.
//!
//! *Invariant.* Its bits are what a program means: compiled code gives them too, but for products of matrices.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::array::{Array, Outputs};
use crate::backend::{Backend, Executable, Passed};
use crate::error::{Result, counted, error, fail};
use crate::hunt::look_at;
use crate::oracle::noise::disturbed;
use crate::primitives::control::Call;
use crate::program::{Equation, Program};
use crate::stack;
use crate::types::Type;

/// The backend that interprets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interpreter;

impl Backend for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }
    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Interpreted::new(program.program().clone())))
    }
}

#[derive(Debug)]
pub(crate) struct Interpreted<P> {
    program: P,
    last_use: Vec<u32>,
    /// The constants' numbers; none for those whose size is symbolic.
    constants: Vec<Option<Array>>,
    symbolic: bool,
}

impl Executable for Interpreted<Arc<Program>> {
    fn run(&self, inputs: &[Array]) -> Result<Outputs> {
        self.interpret(inputs).map(Outputs::from_vec)
    }
    fn bytes(&self) -> usize {
        self.program.bytes() + self.last_use.len() * size_of::<u32>()
    }
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// For each value, the equation after which nothing needs it; `u32::MAX` for outputs.
fn last_uses(p: &Program) -> Vec<u32> {
    let mut last = vec![0; p.value_count()];
    for (i, e) in p.equations().iter().enumerate() {
        for v in e.results() {
            last[v.index()] = i as u32;
        }
        for v in p.operands(e).iter().filter_map(|a| a.value()) {
            last[v.index()] = i as u32;
        }
    }
    for v in p.outputs().iter().filter_map(|a| a.value()) {
        last[v.index()] = u32::MAX;
    }
    last
}

/// Runs a program on concrete arrays. Symbolic dimensions take their numbers from the inputs.
pub fn interpret(program: &Program, inputs: &[Array]) -> Result<Vec<Array>> {
    Interpreted::new(program).interpret(inputs)
}

/// A program made ready to be run many times on inputs of its types.
pub(crate) fn prepare(program: &Program) -> Interpreted<&Program> {
    Interpreted::new(program)
}

/// Evaluates one equation. The oracle interprets what is called, too; elsewhere a call runs what was compiled for it.
pub(crate) fn evaluate(e: &Equation, operands: &[Array]) -> Result<Outputs> {
    let outputs = match e.op().downcast::<Call>() {
        Some(call) => interpret(&call.program, operands).map(Into::into),
        None => e.op().evaluate(operands),
    };
    outputs.map_err(|err| err.in_operation(e.op().name()).at(e.place()))
}

fn check_inputs(program: &Program, inputs: &[Array]) -> Result<()> {
    if inputs.len() != program.inputs().len() {
        fail!(
            Signature,
            "`{}` takes {}, not {}",
            program.name(),
            counted(program.inputs().len(), "input"),
            inputs.len()
        );
    }
    for (i, (want, have)) in program.inputs().iter().zip(inputs).enumerate() {
        if have.concrete().is_none() {
            have.clone().ok()?;
            fail!(NotConcrete, "input {i} of `{}` has no numbers", program.name());
        }
        if !want.shape().is_symbolic() && have.ty()? != want {
            fail!(Signature, "input {i} of `{}` is {} where {want} is wanted", program.name(), have.ty()?);
        }
    }
    Ok(())
}

/// Holds what a user's operation gave against its type rule: what follows relies on it.
fn fitting(p: &Program, e: &Equation, outputs: &[Array]) -> Result<()> {
    for (r, have) in e.results().zip(outputs) {
        let ty = have.ty().map_err(|err| err.clone().in_operation(e.op().name()).at(e.place()))?;
        if ty != p.ty(r) {
            let name = e.op().name();
            return Err(error!(Rule, "`{name}` gave {ty} where its type rule says {}", p.ty(r)).at(e.place()));
        }
    }
    Ok(())
}

impl<P: Deref<Target = Program>> Interpreted<P> {
    fn new(program: P) -> Interpreted<P> {
        let constants = program.constants().iter().map(|c| c.to_array().ok()).collect();
        Interpreted { last_use: last_uses(&program), constants, symbolic: program.is_symbolic(), program }
    }

    /// Runs it.
    pub(crate) fn interpret(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        stack::check()?;
        check_inputs(&self.program, inputs)?;
        if self.symbolic {
            let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
            return Interpreted::new(&self.program.bind_symbols(&types)?).run_equations(inputs);
        }
        self.run_equations(inputs)
    }

    fn run_equations(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let p: &Program = &self.program;
        let mut values: Vec<Option<Array>> = Vec::with_capacity(p.value_count());
        values.extend(inputs.iter().cloned().map(Some));
        let read = |values: &[Option<Array>], atom: crate::program::Atom| {
            let found = match atom.constant_index() {
                Some(c) => self.constants[c].clone(),
                None => atom.value().and_then(|v| values.get(v.index()).cloned().flatten()),
            };
            found.ok_or_else(|| error!(Verify, "a value of `{}` is used before it is defined", p.name()))
        };
        let mut operands: SmallVec<[Array; 4]> = SmallVec::new();
        for (i, e) in p.equations().iter().enumerate() {
            operands.clear();
            for &a in p.operands(e) {
                operands.push(read(&values, a)?);
            }
            let outputs = disturbed(e.op(), &operands, evaluate(e, &operands)?)?;
            if outputs.len() != e.results().len() {
                fail!(
                    Rule,
                    "`{}` gave {} results where its type rule says {}",
                    e.op().name(),
                    outputs.len(),
                    e.results().len()
                );
            }
            if !e.op().is_built_in() {
                fitting(p, e, &outputs)?;
            }
            look_at(e.op(), e.place(), &operands, &outputs)?;
            values.extend(outputs.into_iter().map(Some));
            // What nothing needs any more is freed, so that memory follows the live values.
            let used = p.operands(e).iter().filter_map(|a| a.value()).chain(e.results());
            for v in used {
                if self.last_use[v.index()] == i as u32 {
                    values[v.index()] = None;
                }
            }
        }
        p.outputs().iter().map(|&a| read(&values, a)).collect()
    }
}
