//! Transformations pass through calls by transforming the program that is called; the call stays a call.

use std::sync::Arc;

use super::{jvp, partial_eval, transpose, vmap};
use crate::array::Array;
use crate::error::Result;
use crate::primitives::call::Call;
use crate::primitives::{Batch, Batched, Derivative, Jvp, Op, Partition, Transpose, Transposed};
use crate::program::Program;
use crate::trace::bind_all;

pub(crate) fn jvp_of_call(program: &Arc<Program>, rule: &Jvp<'_>) -> Result<Derivative> {
    let active: Vec<bool> = rule.tangents.iter().map(Option::is_some).collect();
    let (derivative, varies) = jvp(program, &active)?;
    let mut inputs: Vec<Array> = rule.primals.to_vec();
    inputs.extend(rule.tangents.iter().flatten().cloned());
    let mut outputs = bind_all(Op::new(Call { program: Arc::new(derivative) }), &inputs);
    if let Some(e) = outputs.first().and_then(Array::error) {
        return Err(e.clone());
    }
    let mut dots = outputs.drain(program.outputs().len()..).collect::<Vec<_>>().into_iter();
    let tangents = varies.into_iter().map(|v| if v { dots.next() } else { None }).collect();
    Ok(Derivative::Whole { outputs, tangents })
}

pub(crate) fn transpose_of_call(program: &Arc<Program>, rule: &Transpose<'_>) -> Result<Transposed> {
    let linear: Vec<bool> = rule.operands.iter().map(|o| o.unknown().is_some()).collect();
    let turned = transpose(program, &linear)?;
    let known = rule.operands.iter().filter_map(|o| o.known().cloned());
    let types = program.output_types();
    let bars = rule.cotangents.iter().zip(&types).map(|(b, t)| b.clone().unwrap_or_else(|| super::zeros_of(t)));
    let inputs: Vec<Array> = known.chain(bars).collect();
    let mut bars = bind_all(Op::new(Call { program: Arc::new(turned) }), &inputs).into_iter();
    Ok(Transposed::Cotangents(linear.into_iter().map(|on| if on { bars.next() } else { None }).collect()))
}

pub(crate) fn batch_of_call(program: &Arc<Program>, rule: &Batch<'_>) -> Result<Batched> {
    let batched = vmap(program, rule.batched, rule.size)?;
    Ok(Batched::Outputs(bind_all(Op::new(Call { program: Arc::new(batched) }), rule.inputs)))
}

/// A call split by which operands are known; `None` if nothing inside can be computed early.
pub(crate) fn split_of_call(program: &Arc<Program>, known: &[bool]) -> Result<Option<Partition>> {
    let split = partial_eval(program, known)?;
    if split.known.equations().is_empty() && !split.known_outputs.contains(&true) {
        return Ok(None);
    }
    let call = |p: Program| Op::new(Call { program: Arc::new(p) });
    Ok(Some(Partition { known: call(split.known), unknown: call(split.unknown), known_outputs: split.known_outputs }))
}
