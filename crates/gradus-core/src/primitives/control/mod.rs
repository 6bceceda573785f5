//! Operations that hold programs: calls, branches, loops, checkpoints and functions with rules of their own. Each is
//! one file with all its rules, and every transformation passes through them by transforming what they hold.

mod call;
mod checkpoint;
mod custom;
mod dual;
mod groups;
mod halves;
mod implicit;
mod marks;
mod scan;
mod switch;
mod treeverse;
mod while_loop;

use std::sync::Arc;

pub use call::Call;
pub use checkpoint::{Checkpoint, Policy};
pub use custom::{CustomJvp, CustomLinear, CustomVjp};
pub(crate) use groups::Groups;
pub use implicit::{LinearSolve, Root};
pub use marks::{BatchMost, Name, OwnStep, StopGradient};
pub use scan::Scan;
pub(crate) use scan::{Stack, element};
pub use switch::Switch;
pub use while_loop::While;

use super::{Entry, Infer, Op, Outputs, Sample, Types, entry};
use crate::array::Array;
use crate::error::{Location, Result, fail};
use crate::memo::{What, remembered};
use crate::program::{Atom, Builder, Program};
use crate::trace::{bind_all, trace_closed};
use crate::types::Type;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        entry::<Call>("call"),
        entry::<Checkpoint>("checkpoint"),
        entry::<Switch>("switch"),
        entry::<Scan>("scan"),
        entry::<While>("while"),
        entry::<CustomJvp>("custom_jvp"),
        entry::<CustomVjp>("custom_vjp"),
        entry::<CustomLinear>("custom_linear"),
        entry::<LinearSolve>("linear_solve"),
        entry::<Root>("root"),
        entry::<StopGradient>("stop_gradient"),
        entry::<Name>("name"),
        entry::<BatchMost>("batch_most"),
        entry::<OwnStep>("own_step"),
    ]
}

/// The type rule of running a program once.
fn infer_program(program: &Program, infer: &mut Infer<'_>) -> Result<Types> {
    let inputs = infer.inputs;
    fits(program, inputs, infer)?;
    Ok(program.output_types().into())
}

/// Refuses operands that a nested program does not take.
fn fits(program: &Program, have: &[Type], infer: &mut Infer<'_>) -> Result<()> {
    let wanted = program.inputs();
    if wanted.len() != have.len() {
        fail!(Signature, "the program `{}` takes {} input(s), not {}", program.name(), wanted.len(), have.len());
    }
    for (i, (want, have)) in wanted.iter().zip(have).enumerate() {
        if want.dtype() != have.dtype() || !infer.same_shape(want.shape(), have.shape()) {
            fail!(Signature, "the program `{}` takes {want} as input {i}, not {have}", program.name());
        }
    }
    for c in program.constraints() {
        infer.require(c.clone());
    }
    Ok(())
}

/// Refuses a program that gives other types than it should.
fn gives(program: &Program, wanted: &[Type], what: &str, infer: &mut Infer<'_>) -> Result<()> {
    let have = program.output_types();
    if have.len() != wanted.len() {
        fail!(
            Signature,
            "{what} `{}` gives {} result(s) where {} are wanted",
            program.name(),
            have.len(),
            wanted.len()
        );
    }
    for (i, (want, have)) in wanted.iter().zip(&have).enumerate() {
        if want.dtype() != have.dtype() || !infer.same_shape(want.shape(), have.shape()) {
            fail!(Signature, "{what} `{}` gives {have} as result {i} where {want} is wanted", program.name());
        }
    }
    Ok(())
}

/// Applies an operation, with an error as an error.
#[track_caller]
pub(crate) fn apply(op: Op, inputs: &[Array]) -> Result<Vec<Array>> {
    let outputs = bind_all(op, inputs);
    match outputs.first().and_then(Array::error) {
        Some(e) => Err(e.clone()),
        None => Ok(outputs.into_vec()),
    }
}

/// A program written in the language of arrays.
#[track_caller]
pub(super) fn program(
    name: &str,
    inputs: impl IntoIterator<Item = Type>,
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
) -> Result<Arc<Program>> {
    let specs: Vec<Array> = inputs.into_iter().map(Array::of_type).collect();
    trace_closed(name, &specs, f).map(Arc::new)
}

/// A program of one operation; `outputs` picks among its results and its own inputs.
fn single(
    name: &str,
    inputs: &[Type],
    op: Op,
    operands: &[usize],
    outputs: impl FnOnce(&[Atom], &[Atom]) -> Vec<Atom>,
) -> Result<Program> {
    let mut b = Builder::new(name);
    let inputs = inputs.iter().map(|t| b.input(t.clone()).map(Atom::from)).collect::<Result<Vec<_>>>()?;
    let operands: Vec<Atom> = operands.iter().map(|i| inputs[*i]).collect();
    let results: Vec<Atom> = b.equation(op, &operands, Location::unknown())?.results().map(Atom::from).collect();
    let outputs = outputs(&results, &inputs);
    Ok(b.finish(outputs))
}

/// Which outputs of a nested program depend on the marked inputs. Loops ask more than once, and so do those inside of them: without a memory
/// that would take exponential time.
fn dependent(program: &Arc<Program>, inputs: &[bool]) -> Result<Vec<bool>> {
    let find = || Ok(program.outputs_depending_on(inputs));
    remembered(What::Depends, program, inputs.to_vec(), None, find).map(|found| (*found).clone())
}

/// The positions at which a flag stands.
fn positions(flags: &[bool]) -> Vec<usize> {
    (0..flags.len()).filter(|i| flags[*i]).collect()
}

/// The items whose flag is set.
fn picked<T: Clone>(items: &[T], flags: &[bool]) -> Vec<T> {
    items.iter().zip(flags).filter(|(_, on)| **on).map(|(t, _)| t.clone()).collect()
}

fn flipped(flags: &[bool]) -> Vec<bool> {
    flags.iter().map(|on| !on).collect()
}

/// For each flag the next item if it is set.
fn spread<T>(items: impl IntoIterator<Item = T>, flags: &[bool]) -> Vec<Option<T>> {
    let mut items = items.into_iter();
    flags.iter().map(|on| if *on { items.next() } else { None }).collect()
}

/// Grows the flags of a loop's carries until a step keeps them: `step` says, for flags of all operands, which next
/// carries are flagged.
fn settle(
    carries: std::ops::Range<usize>,
    flags: &[bool],
    mut step: impl FnMut(&[bool]) -> Result<Vec<bool>>,
) -> Result<Vec<bool>> {
    let mut flags = flags.to_vec();
    loop {
        let next = step(&flags)?;
        let mut grown = false;
        for (flag, on) in flags[carries.clone()].iter_mut().zip(next) {
            grown |= on && !*flag;
            *flag |= on;
        }
        if !grown {
            return Ok(flags);
        }
    }
}

/// Samples from operations in program text: each text is a program of one equation whose operands are its inputs.
fn samples_of(texts: &[(&str, Vec<Array>)]) -> Vec<Sample> {
    texts
        .iter()
        .filter_map(|(text, inputs)| {
            let parsed = text.parse::<Program>();
            debug_assert!(parsed.is_ok(), "{parsed:?}\n{text}");
            let op = parsed.ok()?.equations().first()?.op().clone();
            Some(Sample::new(op, inputs.clone()))
        })
        .collect()
}

fn outputs(arrays: Vec<Array>) -> Outputs {
    arrays.into()
}
