//! A program called as one operation: what a staged function inside another becomes.

use std::sync::Arc;

use super::{apply, dependent, infer_program, outputs, picked, positions, samples_of, single, spread};
use crate::array::Array;
use crate::error::Result;
use crate::hunt;
use crate::interpret::interpret;
use crate::memo::{What, remembered};
use crate::pipeline::run_called;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Partition, Primitive, Pruned, Sample, Transpose, Transposed,
    Types,
};
use crate::program::Program;
use crate::rules_of;
use crate::transform::{Terms, jvp_of, split_of, transpose_of, vmap_of, zeros_of};
use crate::types::Effects;

/// Runs a nested program. The program is closed: all it uses are its inputs.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is called.
    pub program: Arc<Program>,
}

fn call(program: Arc<Program>) -> Op {
    Op::new(Call { program })
}

impl Primitive for Call {
    rules_of!("call"; program);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer_program(&self.program, infer)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        // Code that was compiled for others has no checks in it.
        if hunt::active().is_on() {
            return interpret(&self.program, inputs).map(outputs);
        }
        run_called(&self.program, inputs)
    }
    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        jvp_of_program(&self.program, rule, call)
    }
    fn transpose(&self, rule: &Transpose<'_>) -> Result<Transposed> {
        transpose_of_program(&self.program, rule, call)
    }
    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        batch_of_program(&self.program, rule, call)
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn partial_eval(&self, known: &[bool]) -> Result<Option<Partition>> {
        let halves = remembered(What::Partition, &self.program, known.to_vec(), None, || self.split(known))?;
        Ok((*halves).clone())
    }
    fn depends(&self, on: &[bool]) -> Option<Vec<bool>> {
        dependent(&self.program, on).ok()
    }
    fn prune(&self, used: &[bool]) -> Result<Option<Pruned>> {
        prune_program(&self.program, used, call)
    }
    fn effects(&self) -> Effects {
        self.program.effects()
    }
    fn samples() -> Vec<Sample> {
        let inputs = vec![Array::from([0.5_f64, -1.0, 2.0]), Array::from([1.5_f64, 0.25, -0.5])];
        samples_of(&[
            (
                "fn s(x0: f64[3], x1: f64[3]) -> (f64[3], f64[]) {\n  x2: f64[3], x3: f64[] = call{program=fn f(x0: f64[3], x1: f64[3]) -> (f64[3], f64[]) {\n    x2: f64[3] = mul x0 x1\n    x3: f64[3] = sin x2\n    \
                 x4: f64[] = reduce_sum{axes=[0]} x3\n    return x2, x4\n  }} x0 x1\n  return x2, x3\n}\n",
                inputs.clone(),
            ),
            (
                "fn s(x0: f64[3], x1: f64[3]) -> f64[3] {\n  x2: f64[3] = call{program=fn g(x0: f64[3], x1: f64[3]) -> f64[3] {\n    return x1\n  }} x0 x1\n  return x2\n}\n",
                inputs,
            ),
        ])
    }
}

impl Call {
    fn split(&self, known: &[bool]) -> Result<Option<Partition>> {
        let (late, at_hand) = (vec![false; self.program.outputs().len()], vec![false; known.len()]);
        let split = split_of(&self.program, Terms { known, late: &late, at_hand: Some(&at_hand) })?;
        if split.known.equations().is_empty() && !split.known_outputs.contains(&true) {
            return Ok(None);
        }
        // What is known but not computed here passes beside the call, not through it.
        let first = split.known_outputs.iter().filter(|on| **on).count();
        Ok(Some(Partition {
            known: called(&split.known, first)?,
            unknown: called(&split.unknown, split.unknown.outputs().len())?,
            known_outputs: split.known_outputs.clone(),
        }))
    }
}

/// A program that calls another; outputs from `direct` on that are its inputs are returned as they came.
fn called(program: &Program, direct: usize) -> Result<Program> {
    let beside = |i: usize| {
        program.outputs()[i].value().map(|v| v.index()).filter(|v| i >= direct && *v < program.inputs().len())
    };
    let through: Vec<usize> = (0..program.outputs().len()).filter(|i| beside(*i).is_none()).collect();
    let inputs = program.inputs();
    if program.equations().is_empty() {
        return Ok(program.clone());
    }
    let inner = Arc::new(program.clone().select_outputs(&through));
    let every: Vec<usize> = (0..inputs.len()).collect();
    single(program.name(), inputs, call(inner), &every, |results, inputs| {
        let mut results = results.iter();
        let next = |i| beside(i).map_or_else(|| results.next().copied(), |v| Some(inputs[v]));
        (0..program.outputs().len()).filter_map(next).collect()
    })
}

/// The derivative of an operation that runs a program once: it runs the program's derivative.
pub(super) fn jvp_of_program(
    program: &Arc<Program>,
    rule: &Jvp<'_>,
    op: impl Fn(Arc<Program>) -> Op,
) -> Result<Derivative> {
    let active: Vec<bool> = rule.tangents.iter().map(Option::is_some).collect();
    let (derivative, varies) = jvp_of(program, &active)?;
    if !varies.contains(&true) {
        return Ok(Derivative::Zero);
    }
    let mut inputs: Vec<Array> = rule.primals.to_vec();
    inputs.extend(rule.tangents.iter().flatten().cloned());
    let mut all = apply(op(derivative), &inputs)?;
    let dots = all.split_off(program.outputs().len());
    Ok(Derivative::Whole { outputs: outputs(all), tangents: spread(dots, &varies).into() })
}

pub(super) fn transpose_of_program(
    program: &Arc<Program>,
    rule: &Transpose<'_>,
    op: impl Fn(Arc<Program>) -> Op,
) -> Result<Transposed> {
    let linear: Vec<bool> = rule.operands.iter().map(|o| o.unknown().is_some()).collect();
    let turned = transpose_of(program, &linear)?;
    let known = rule.operands.iter().filter_map(|o| o.known().cloned());
    let types = program.output_types();
    let bars = rule.cotangents.iter().zip(&types).map(|(b, t)| b.clone().unwrap_or_else(|| zeros_of(t)));
    let inputs: Vec<Array> = known.chain(bars).collect();
    let bars = apply(op(turned), &inputs)?;
    Ok(Transposed::Cotangents(spread(bars, &linear).into()))
}

pub(super) fn batch_of_program(
    program: &Arc<Program>,
    rule: &Batch<'_>,
    op: impl Fn(Arc<Program>) -> Op,
) -> Result<Batched> {
    let every = vec![true; program.outputs().len()];
    let (batched, _) = vmap_of(program, rule.batched, &every, rule.size)?;
    Ok(Batched::Outputs(outputs(apply(op(batched), rule.inputs)?)))
}

pub(super) fn prune_program(
    program: &Arc<Program>,
    used: &[bool],
    op: impl Fn(Arc<Program>) -> Op,
) -> Result<Option<Pruned>> {
    let smaller = remembered(What::Prune, program, used.to_vec(), None, || {
        let needed = program.needed_inputs(&picked(program.outputs(), used));
        if used.iter().chain(&needed).all(|on| *on) {
            return Ok(None);
        }
        let smaller = program.rearranged(&positions(&needed), &positions(used))?;
        Ok(Some((Arc::new(smaller), needed)))
    })?;
    let Some((smaller, needed)) = &*smaller else { return Ok(None) };
    Ok(Some(Pruned { op: op(smaller.clone()), operands: needed.clone(), results: used.to_vec() }))
}
