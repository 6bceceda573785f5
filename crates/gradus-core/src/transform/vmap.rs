//! Batching: a program over one example becomes a program over many. Inside, the batch axis is always in front.

use super::{behind, counted, missing, place_of, place_of_effect, read};
use crate::array::Array;
use crate::error::{Error, Location, Result, error, fail};
use crate::location::Rule;
use crate::phases::phase;
use crate::primitives::{Batch, Batched};
use crate::program::{Equation, Program};
use crate::trace::{at_place, bind_all, carry_conditions, current_place, trace_closed};
use crate::types::{Dim, Effects};

/// The program over a batch of `size` examples. Batched inputs get the batch axis in front; every output has it.
#[track_caller]
pub fn vmap(program: &Program, batched: &[bool], size: &Dim) -> Result<Program> {
    let every = vec![true; program.outputs().len()];
    phase("batch", |p| vec![p], || over_batch(program, batched, &every, size).map(|(p, _)| p))
}

/// The program over a batch. Outputs marked in `spread` have the batch axis; the flags say which others do.
#[track_caller]
pub(super) fn over_batch(
    program: &Program,
    batched: &[bool],
    spread: &[bool],
    size: &Dim,
) -> Result<(Program, Vec<bool>)> {
    if batched.len() != program.inputs().len() {
        fail!(Signature, "`{}` has {} inputs, not {}", program.name(), program.inputs().len(), batched.len());
    }
    let inputs: Vec<Array> = program
        .inputs()
        .iter()
        .zip(batched)
        .map(|(t, on)| Array::of_type(if *on { t.with_shape(t.shape().inserted(0, size.clone())) } else { t.clone() }))
        .collect();
    let mut flags = Vec::new();
    let made = trace_closed(&format!("vmap_{}", program.name()), &inputs, |xs| {
        let (outputs, have) = vmap_on(program, xs, batched, size)?;
        flags = have.iter().zip(spread).map(|(have, want)| *have || *want).collect();
        let each = outputs.into_iter().zip(have.iter().zip(&flags));
        let spread = |o: Array| o.broadcast_to(o.shape().inserted(0, size.clone()));
        Ok(each.map(|(o, (have, want))| if *want && !have { spread(o) } else { o }).collect())
    })?;
    Ok((made, flags))
}

/// Runs a program on a batch. The flags that come back say which outputs have the batch axis.
#[track_caller]
pub fn vmap_on(program: &Program, inputs: &[Array], batched: &[bool], size: &Dim) -> Result<(Vec<Array>, Vec<bool>)> {
    let caller = current_place();
    carry_conditions(program, inputs, batched)?;
    let mut values: Vec<Array> = inputs.to_vec();
    let mut flags: Vec<bool> = batched.to_vec();
    for e in program.equations() {
        let atoms = program.operands(e);
        let operands = atoms.iter().map(|a| read(program, &values, *a)).collect::<Result<Vec<_>>>()?;
        let on: Vec<bool> = atoms.iter().map(|a| a.value().is_some_and(|v| flags[v.index()])).collect();
        if e.op().effects().contains(Effects::HOST) {
            return Err(ordered_in_a_batch(e, caller));
        }
        let place = if on.contains(&true) { behind(Rule::Batch, e, caller) } else { place_of(e, caller) };
        at_place(place, || -> Result<()> {
            // What does not depend on the batch is computed once.
            let (outputs, flag) = if !on.contains(&true) {
                (bind_all(e.op().clone(), &operands), false)
            } else {
                let rule = Batch { size, inputs: &operands, batched: &on };
                match e.op().batch(&rule).map_err(|err| err.in_operation(e.op().name()).at(e.place()))? {
                    Batched::Outputs(outputs) => (outputs, true),
                    Batched::Common(outputs) => (outputs, false),
                    Batched::Missing(why) => return Err(missing(e, "batching", why)),
                }
            };
            let outputs = counted(e, outputs)?;
            for (o, r) in outputs.iter().zip(e.results()) {
                let (have, single) = (o.ty()?, program.ty(r));
                let right = if flag { have.rank() == single.rank() + 1 } else { have.rank() == single.rank() };
                if !right || have.dtype() != single.dtype() {
                    fail!(Rule, "the batching rule of `{}` gave {have} for a result {single}", e.op().name());
                }
            }
            flags.extend(std::iter::repeat_n(flag, outputs.len()));
            values.extend(outputs);
            Ok(())
        })?;
    }
    let outputs = program.outputs().iter().map(|a| read(program, &values, *a)).collect::<Result<Vec<_>>>()?;
    let out_flags = program.outputs().iter().map(|a| a.value().is_some_and(|v| flags[v.index()])).collect();
    Ok((outputs, out_flags))
}

/// A batch computes its examples at once, so nothing in it can happen for one after the other as written.
fn ordered_in_a_batch(e: &Equation, caller: Location) -> Error {
    let inside = e.op().programs().into_iter().find_map(|p| place_of_effect(&p, Effects::HOST));
    let name = if inside.is_some() { "io_callback" } else { e.op().name() };
    error!(MissingRule, "`{name}` happens in the order in which it is written, and a batch has no order")
        .at(inside.unwrap_or(e.place()))
        .note(format!("batched by the `vmap` at {caller}"))
        .help(
            "loop over the examples with `gradus::map` or `scan`; or use `pure_callback`, if calls may come in any order, or \
             `debug_callback`, if they only look",
        )
}
