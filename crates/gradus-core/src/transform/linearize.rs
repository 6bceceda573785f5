//! Linearization and reverse mode, put together from the three basic transformations.

use super::partial::partial_eval_saving;
use super::{jvp, jvp_on, transpose, transpose_on};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::optimize::{repetitions_last, simplify};
use crate::program::{Equation, Program, eliminate_dead_code};
use crate::trace::{Mode, is_tracing, trace};
use crate::types::Type;

/// A program at a point: its value, and the linear map from tangents to tangents.
#[derive(Clone, Debug)]
pub struct Linearized {
    /// From the inputs: the outputs, then the residuals.
    pub primal: Program,
    /// Forward: from residuals and tangents of the active inputs to tangents of the varying outputs.
    /// Backward ([`vjp`]): from residuals and cotangents of the varying outputs to cotangents of the active inputs.
    pub linear: Program,
    /// What passes from one to the other.
    pub residuals: Vec<Type>,
    /// Which outputs vary with the active inputs.
    pub varies: Vec<bool>,
}

impl Linearized {
    /// Bytes that pass from the primal to the linear part, where sizes are known.
    pub fn residual_bytes(&self) -> usize {
        self.residuals.iter().filter_map(Type::bytes).sum()
    }
}

/// Forward mode with the linear part set apart.
#[track_caller]
pub fn linearize(program: &Program, active: &[bool]) -> Result<Linearized> {
    let (with_tangents, varies) = jvp(program, active)?;
    // Before the split, so that dead and constant parts of the derivative ask for no residuals.
    let with_tangents = eliminate_dead_code(&simplify(&with_tangents)?, true);
    let tangents = active.iter().filter(|on| **on).count();
    let known: Vec<bool> = (0..active.len() + tangents).map(|i| i < active.len()).collect();
    let split = partial_eval_saving(&with_tangents, &known)?;
    // A tangent that turned out not to depend on any input tangent (a constant zero) is made part of the linear
    // program all the same, so that its outputs are exactly the varying tangents.
    let outputs = program.outputs().len();
    // Results depend on inputs alone, and those are known.
    if let Some(lost) = split.known_outputs[..outputs].iter().position(|known| !known) {
        fail!(Rule, "result {lost} of `{}` was lost when its derivative was set apart", program.name());
    }
    let late: Vec<bool> = split.known_outputs[outputs..].to_vec();
    let mut kept = late.iter();
    let varies = varies.into_iter().map(|v| v && kept.next().is_some_and(|known| !known)).collect();
    let linear = repetitions_last(&split.unknown)?.unwrap_or(split.unknown);
    // Loops lose the carries that only the other half would have used.
    let primal = eliminate_dead_code(&keep_outputs(split.known, &split.known_outputs, outputs), true);
    Ok(Linearized {
        primal: primal.with_name(format!("{}_primal", program.name())),
        linear: linear.with_name(format!("{}_linear", program.name())),
        residuals: split.residuals,
        varies,
    })
}

/// Drops the known program's outputs that are constant tangents: it keeps the primal outputs and the residuals.
fn keep_outputs(known: Program, flags: &[bool], primal_outputs: usize) -> Program {
    let early_tangents = flags[primal_outputs..].iter().filter(|on| **on).count();
    if early_tangents == 0 {
        return known;
    }
    let n = known.outputs().len();
    let keep: Vec<usize> = (0..n).filter(|i| *i < primal_outputs || *i >= primal_outputs + early_tangents).collect();
    known.select_outputs(&keep)
}

/// Reverse mode: the primal with its residuals, and the pullback.
#[track_caller]
pub fn vjp(program: &Program, active: &[bool]) -> Result<Linearized> {
    let forward = linearize(program, active)?;
    let linear_inputs: Vec<bool> = (0..forward.linear.inputs().len()).map(|i| i >= forward.residuals.len()).collect();
    // After as before: what the rules left behind (a sum with one term, a product with one) goes.
    let pullback = eliminate_dead_code(&simplify(&transpose(&forward.linear, &linear_inputs)?)?, true);
    Ok(Linearized { linear: pullback.with_name(format!("{}_pullback", program.name())), ..forward })
}

/// A program at numbers: its outputs, and cotangents of its active inputs for given cotangents of its outputs.
///
/// For a derivative that is used once. The numbers are computed as the derivative is recorded, so there is nothing to
/// split and nothing to simplify: what is recorded is the linear part, with the numbers in it. `None` if the program
/// holds others, whose results and tangents are computed together, or has effects, which happen in the primal part.
#[track_caller]
pub fn pull_back_once(
    program: &Program,
    inputs: &[Array],
    active: &[bool],
    bars: impl FnOnce(&[Array], &[bool]) -> Vec<Array>,
) -> Result<Option<(Vec<Array>, Vec<Array>)>> {
    let numbers = inputs.iter().all(Array::has_numbers);
    let plain = |e: &Equation| !e.op().holds_programs() && e.op().effects().is_pure();
    if !numbers || is_tracing() || !program.equations().iter().all(plain) {
        return Ok(None);
    }
    let types: Vec<Type> = program.inputs().iter().zip(active).filter(|(_, on)| **on).map(|(t, _)| t.clone()).collect();
    let specs: Vec<Array> = types.iter().cloned().map(Array::of_type).collect();
    let mut found = Ok((Vec::new(), Vec::new()));
    let traced = trace("linear", &specs, Mode::Abstract, |dots| {
        let mut dots = dots.iter().cloned();
        let tangents: Vec<Option<Array>> = active.iter().map(|on| if *on { dots.next() } else { None }).collect();
        found = jvp_on(program, inputs, &tangents);
        found.as_ref().map_or_else(|_| Vec::new(), |(_, dots)| dots.iter().flatten().cloned().collect())
    });
    let (outputs, dots) = found?;
    let traced = traced?;
    let varies: Vec<bool> = dots.iter().map(Option::is_some).collect();
    let linear: Vec<bool> = (0..traced.program.inputs().len()).map(|i| i < types.len()).collect();
    let bars: Vec<Option<Array>> = bars(&outputs, &varies).into_iter().map(Some).collect();
    let pulled = transpose_on(&traced.program, &linear, &traced.captures, &bars)?;
    let pulled = pulled.into_iter().zip(&types).map(|(bar, t)| bar.unwrap_or_else(|| super::zeros_of(t))).collect();
    Ok(Some((outputs, pulled)))
}
