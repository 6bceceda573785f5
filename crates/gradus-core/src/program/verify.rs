//! The verifier: everything a program promises is checked again, from types and scoping to nested signatures.
//! Backends take only a [`Verified`] program, so the proof is in the type.

use std::sync::Arc;

use super::builder::infer;
use super::{Atom, Program};
use crate::error::{Result, fail};
use crate::primitives::Param;
use crate::types::Type;

/// A program that the verifier has accepted.
#[derive(Clone, Debug)]
pub struct Verified(Arc<Program>);

impl Verified {
    /// Checks a program and keeps the proof.
    pub fn new(program: impl Into<Arc<Program>>) -> Result<Verified> {
        let program = program.into();
        verify(&program)?;
        Ok(Verified(program))
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.0
    }
}

impl std::ops::Deref for Verified {
    type Target = Program;
    fn deref(&self) -> &Program {
        &self.0
    }
}

/// Checks a program: scoping, types by every operation's rule, constraints, nested programs.
pub fn verify(p: &Program) -> Result<()> {
    let in_scope = |atom: Atom, defined: usize| match (atom.value(), atom.constant_index()) {
        (Some(v), _) => v.index() < defined,
        (None, Some(c)) => c < p.constants.len(),
        (None, None) => false,
    };
    for ty in &p.types {
        ty.shape().check()?;
    }
    let mut defined = p.inputs;
    let mut needed = Vec::new();
    let mut inputs: Vec<Type> = Vec::new();
    for (i, e) in p.equations.iter().enumerate() {
        let name = e.op.name();
        if e.first_result as usize != defined || defined + e.results_len as usize > p.types.len() {
            fail!(Verify, "equation {i} (`{name}`) does not define the next values");
        }
        let (start, len) = (e.operands_start as usize, e.operands_len as usize);
        if p.operands.get(start..start + len).is_none() {
            fail!(Verify, "equation {i} (`{name}`) has operands outside the program");
        }
        inputs.clear();
        for &a in p.operands(e) {
            if !in_scope(a, defined) {
                fail!(Verify, "equation {i} (`{name}`) uses a value before it is defined");
            }
            inputs.push(p.ty(a).clone());
        }
        let types =
            infer(&e.op, &inputs, &mut needed).map_err(|err| err.at(e.place).note(format!("in equation {i}")))?;
        let end = defined + e.results_len as usize;
        if types[..] != p.types[defined..end] {
            fail!(Verify, "equation {i} (`{name}`) gives {types:?}, but the program says {:?}", &p.types[defined..end]);
        }
        for (_, param) in e.op.params() {
            verify_nested(&param)?;
        }
        defined = end;
    }
    if defined != p.types.len() {
        fail!(Verify, "{} values have no definition", p.types.len() - defined);
    }
    if let Some(c) = needed.iter().find(|c| !p.constraints.contains(c)) {
        fail!(Verify, "the program needs the constraint {c} but does not state it");
    }
    if p.outputs.iter().any(|&a| !in_scope(a, defined)) {
        fail!(Verify, "the program returns a value that it does not define");
    }
    Ok(())
}

fn verify_nested(param: &Param) -> Result<()> {
    match param {
        Param::Program(p) => verify(p).map_err(|e| e.note(format!("in the nested program `{}`", p.name()))),
        Param::List(items) => items.iter().try_for_each(verify_nested),
        _ => Ok(()),
    }
}
