//! The verifier: everything a program promises is checked again, from types and scoping to nested signatures.
//! The stages after it take only a [`Verified`] program, so the proof is in the type.
//!
//! *Invariant.* Debug builds run it after tracing and after every pass; nothing else makes a [`Verified`].

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::builder::infer;
use super::{Atom, Constant, Content, Program};
use crate::error::{Result, fail};
use crate::primitives::Param;
use crate::stack;
use crate::types::Type;

/// A program that the verifier has accepted.
#[derive(Clone, Debug)]
pub struct Verified {
    program: Arc<Program>,
}

impl Verified {
    /// Checks a program and keeps the proof.
    pub fn new(program: impl Into<Arc<Program>>) -> Result<Verified> {
        let program = program.into();
        verify(&program)?;
        Ok(Verified { program })
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }
}

impl std::ops::Deref for Verified {
    type Target = Program;
    fn deref(&self) -> &Program {
        &self.program
    }
}

/// Checks a program: scoping, types by every operation's rule, constraints, nested programs.
pub fn verify(p: &Program) -> Result<()> {
    verify_once(p, &mut Seen::default())
}

/// Nested programs that were found right already, by address: many operations may share one. They are kept, so that an
/// address stays that of one program.
type Seen = FxHashMap<usize, Arc<Program>>;

fn verify_once(p: &Program, seen: &mut Seen) -> Result<()> {
    let in_scope = |atom: Atom, defined: usize| match (atom.value(), atom.constant_index()) {
        (Some(v), _) => v.index() < defined,
        // A capture is a hidden input under construction; a finished program has none.
        (None, Some(c)) => p.constants.get(c).is_some_and(|c| c.capture_index().is_none()),
        (None, None) => false,
    };
    for ty in p.types.iter().chain(p.constants.iter().map(Constant::ty)) {
        ty.shape().check()?;
    }
    for c in &p.constants {
        if let Content::Dense(numbers) = &c.content
            && *numbers.ty() != c.ty
        {
            fail!(Verify, "a constant of type {} holds an array of type {}", c.ty, numbers.ty());
        }
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
            verify_nested(&param, seen)?;
        }
        defined = end;
    }
    if defined != p.types.len() {
        fail!(Verify, "{} values are defined, but {} have a type", defined, p.types.len());
    }
    if let Some(c) = needed.iter().find(|c| !p.constraints.contains(c)) {
        fail!(Verify, "the program needs the constraint {c} but does not state it");
    }
    if p.outputs.iter().any(|&a| !in_scope(a, defined)) {
        fail!(Verify, "the program returns a value that it does not define");
    }
    Ok(())
}

fn verify_nested(param: &Param, seen: &mut Seen) -> Result<()> {
    match param {
        Param::Program(p) if seen.contains_key(&(Arc::as_ptr(p) as usize)) => Ok(()),
        Param::Program(p) => {
            stack::check()?;
            verify_once(p, seen).map_err(|e| e.note(format!("in the nested program `{}`", p.name())))?;
            seen.insert(Arc::as_ptr(p) as usize, p.clone());
            Ok(())
        }
        Param::List(items) => items.iter().try_for_each(|p| verify_nested(p, seen)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::primitives::Op;
    use crate::primitives::control::Call;
    use crate::program::ValueId;
    use crate::types::{DType, Dim, Shape};

    fn program() -> Program {
        let text = "fn f(x0: f64[B], x1: f64[N]) -> f64[] where B==N {\n  x2: f64[B] = add x0 x1\n  x3: f64[B] = mul x2 2.0:f64[B]\n  \
                    x4: f64[] = reduce_sum{axes=[0]} x3\n  return x4\n}\n";
        text.parse().unwrap()
    }

    /// What the verifier says to a program after it was broken.
    fn broken(change: impl FnOnce(&mut Program)) -> crate::Error {
        let mut p = program();
        verify(&p).unwrap();
        change(&mut p);
        verify(&p).unwrap_err()
    }

    #[test]
    fn everything_a_program_promises_is_checked() {
        let says = |change: fn(&mut Program), what: &str| {
            let e = broken(change);
            assert!(e.to_string().contains(what), "{e}");
        };
        says(|p| p.operands[0] = ValueId::new(2).into(), "before it is defined");
        says(|p| p.operands[2] = ValueId::new(4).into(), "before it is defined");
        says(|p| p.operands[3] = Atom::constant(7), "before it is defined");
        says(|p| p.outputs[0] = ValueId::new(9).into(), "does not define");
        says(|p| p.outputs[0] = Atom::constant(1), "does not define");
        says(|p| p.equations[1].first_result = 2, "next values");
        says(|p| p.equations[2].results_len = 2, "next values");
        says(|p| p.equations[2].operands_start = 99, "outside the program");
        says(|p| p.equations[0].operands_len = u32::MAX, "outside the program");
        says(|p| drop(p.equations.pop()), "have a type");
        says(|p| p.inputs = 99, "next values");
        says(|p| p.types.push(Type::scalar(DType::I8)), "have a type");
        says(|p| p.types[3] = Type::scalar(DType::F64), "the program says");
        says(|p| p.types[0] = p.types[0].with_dtype(DType::F32), "different dtypes");
        says(|p| p.constraints.clear(), "does not state it");
        says(|p| p.constants[0].ty = Type::scalar(DType::F64), "different shapes");
    }

    #[test]
    fn shapes_that_cannot_be_and_captures_that_were_left_are_refused() {
        let negative = Shape::from(vec![Dim::from(-3i64)]);
        assert_eq!(broken(|p| p.types[0] = Type::new(DType::F64, negative.clone())).kind(), ErrorKind::Size);
        assert_eq!(broken(|p| p.constants[0].ty = Type::new(DType::F64, negative.clone())).kind(), ErrorKind::Size);
        let ty = program().types[2].clone();
        assert_eq!(broken(|p| p.constants[0] = Constant::capture(ty, 0)).kind(), ErrorKind::Verify);
        let other = crate::array::Concrete::from_vec(&[3], vec![1.0_f64, 2.0, 3.0]);
        let content = Content::Dense(Arc::new(other));
        assert_eq!(broken(|p| p.constants[0].content = content).kind(), ErrorKind::Verify);
    }

    #[test]
    fn nested_programs_are_checked_too() {
        let mut inner: Program = "fn g(x0: f64[]) -> f64[] {\n  return x0\n}\n".parse().unwrap();
        inner.outputs[0] = ValueId::new(5).into();
        inner.types.push(Type::scalar(DType::F64));
        let mut p: Program = "fn f(x0: f64[]) -> f64[] {\n  x1: f64[] = neg x0\n  return x1\n}\n".parse().unwrap();
        inner.outputs[0] = ValueId::new(1).into();
        p.equations[0].op = Op::new(Call { program: Arc::new(inner) });
        let e = verify(&p).unwrap_err();
        assert!(e.to_string().contains("in the nested program `g`"), "{e}");
        assert!(Verified::new(p).is_err());
    }
}
