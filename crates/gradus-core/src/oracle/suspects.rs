//! Which equation compiled code computes otherwise than the interpreter, and in which kernel.
//!
//! First every value of the program is made an output, and each equation is evaluated on the operands that compiled code gave it:
//! that finds who is wrong by himself, and clears what only handed on a rounding. If all are right and the results are still other
//! ones, equations are wrong together, in kernels that they share: then the shortest beginning of the program that is wrong
//! is looked for.

use std::fmt;
use std::sync::Arc;

use super::compare::{Scale, compare};
use super::noise::terms;
use super::{Run, named};
use crate::array::Array;
use crate::backend::Executable;
use crate::error::{Location, Result};
use crate::interpret::evaluate;
use crate::optimize::Exactness;
use crate::pipeline::Pipeline;
use crate::primitives::effects::replay::{Event, replayed};
use crate::program::{Atom, Program, ValueId};
use crate::types::Type;

/// A call whose results differ.
pub(super) struct Case<'a> {
    pub(super) pipeline: &'a Pipeline,
    /// The program after the passes of the backend.
    pub(super) passed: &'a Program,
    pub(super) inputs: &'a [Array],
    /// What the host gave.
    pub(super) given: &'a [Event],
}

/// An equation that compiled code computes otherwise.
pub(super) struct Suspect {
    name: &'static str,
    equation: usize,
    of: usize,
    kernel: Option<String>,
    pub(super) place: Location,
    /// The program in which it is seen.
    pub(super) program: Program,
    /// Whether it differs on operands that are right.
    alone: bool,
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Suspect { equation, of, .. } = self;
        write!(f, "the first to differ is {}", named(self.name, self.place))?;
        if self.place.is_known() {
            write!(f, " at {}", self.place)?;
        }
        match &self.kernel {
            Some(kernel) => write!(f, ", in the kernel `{kernel}`")?,
            None => f.write_str(", in no kernel that is known")?,
        }
        match self.alone {
            true => write!(f, " (equation {equation} of {of} after the passes, by itself)"),
            false => write!(f, " (equation {equation} of {of} after the passes, together with those before it)"),
        }
    }
}

pub(super) enum Verdict {
    /// Each equation is right: the difference is one of rounding.
    Rounding,
    Fault(Box<Suspect>),
    /// It is not seen in code that is made again.
    Gone,
}

/// Finds who is to blame that compiled code gave `have`.
pub(super) fn find(case: &Case<'_>, have: &[Array]) -> Verdict {
    let all = by_equation(case);
    if let Ok((Some(suspect), _)) = all {
        return Verdict::Fault(Box::new(suspect));
    }
    // Each is right, and together they give the same: so what differs is made of what may differ.
    if let Ok((None, outputs)) = &all
        && outputs.iter().zip(have).all(|(a, b)| compare(a, b, Scale::Each, false).is_none())
    {
        return Verdict::Rounding;
    }
    by_beginning(case).map_or(Verdict::Gone, |suspect| Verdict::Fault(Box::new(suspect)))
}

impl Case<'_> {
    /// Compiles a part of the program and runs it. It has been through the passes, so its equations are those of the code that differs.
    fn run(&self, program: Program) -> Result<(Arc<dyn Executable>, Vec<Array>)> {
        let code = self.pipeline.compile_as_is(program)?;
        let outputs = replayed(self.given, || code.run(self.inputs)).0?;
        Ok((code, outputs.into_vec()))
    }

    fn suspect(
        &self,
        equation: usize,
        alone: bool,
        program: Program,
        (code, output): (&dyn Executable, usize),
    ) -> Suspect {
        let e = &self.passed.equations()[equation];
        Suspect {
            name: e.op().name(),
            equation,
            of: self.passed.equations().len(),
            kernel: code.maker_of(output),
            place: e.place(),
            program,
            alone,
        }
    }

    /// The equation that makes a value.
    fn maker(&self, value: ValueId) -> Option<usize> {
        self.passed.equations().iter().position(|e| e.results().any(|r| r == value))
    }
}

/// Evaluates each equation on what compiled code gave it. Gives the first that differs, or the outputs of the run.
fn by_equation(case: &Case<'_>) -> Result<(Option<Suspect>, Vec<Array>)> {
    let p = case.passed;
    let made: Vec<Atom> = p.equations().iter().flat_map(|e| e.results()).map(Atom::from).collect();
    let whole = p.beginning(p.equations().len(), &made)?;
    let (code, values) = case.run(whole.clone())?;
    let types = case.inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
    let bound = if p.is_symbolic() { p.bind_symbols(&types)? } else { p.clone() };
    let inputs = case.inputs.len();
    let read = |a: Atom| -> Result<Array> {
        match (a.value(), bound.constant(a)) {
            (Some(v), _) if v.index() < inputs => Ok(case.inputs[v.index()].clone()),
            (Some(v), _) => Ok(values[v.index() - inputs].clone()),
            (None, Some(c)) => c.to_array(),
            (None, None) => Err(crate::error::error!(Verify, "an atom that is nothing")),
        }
    };
    for (i, e) in bound.equations().iter().enumerate() {
        // What the host gave is what it is.
        if !e.op().effects().is_pure() {
            continue;
        }
        let operands = bound.operands(e).iter().map(|a| read(*a)).collect::<Result<Vec<_>>>()?;
        let wanted = evaluate(e, &operands)?;
        for (r, want) in e.results().zip(&wanted) {
            let terms = terms(e.op(), &operands, want);
            let relaxed = case.pipeline.exactness == Exactness::Relaxed;
            if compare(&read(r.into())?, want, Scale::Terms(&terms), relaxed).is_some() {
                return Ok((Some(case.suspect(i, true, whole, (&*code, r.index() - inputs))), Vec::new()));
            }
        }
    }
    Ok((None, p.outputs().iter().map(|a| read(*a)).collect::<Result<Vec<_>>>()?))
}

/// The shortest beginning of the program whose values are wrong where that of one equation less has right ones.
fn by_beginning(case: &Case<'_>) -> Option<Suspect> {
    let p = case.passed;
    let wrong = |n: usize| -> Option<Suspect> {
        let kept = values_between(p, n);
        let part = p.beginning(n, &kept).ok()?;
        let want = Run::interpreted(&part, case.inputs, case.given).ok()?;
        let (code, have) = case.run(part.clone()).ok()?;
        let relaxed = case.pipeline.exactness == Exactness::Relaxed;
        let differs = |i: &usize| compare(&have[*i], &want.outputs[*i], Scale::Each, relaxed).is_some();
        let output = (0..have.len().min(want.outputs.len())).find(differs)?;
        let equation = kept[output].value().and_then(|v| case.maker(v))?;
        Some(case.suspect(equation, false, part, (&*code, output)))
    };
    let (mut good, mut bad) = (0, p.equations().len());
    let mut found = wrong(bad)?;
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match wrong(middle) {
            Some(suspect) => (bad, found) = (middle, suspect),
            None => good = middle,
        }
    }
    Some(found)
}

/// The values that the first `n` equations make for the others, in order; the outputs if these are all.
fn values_between(p: &Program, n: usize) -> Vec<Atom> {
    if n >= p.equations().len() {
        return p.outputs().to_vec();
    }
    let (first, rest) = p.equations().split_at(n);
    let mut used = vec![false; p.value_count()];
    let taken = rest.iter().flat_map(|e| p.operands(e)).chain(p.outputs());
    taken.filter_map(|a| a.value()).for_each(|v| used[v.index()] = true);
    first.iter().flat_map(|e| e.results()).filter(|v| used[v.index()]).map(Atom::from).collect()
}
