//! Forward mode: a program that carries tangents along. Inactive inputs cost nothing: a tangent that is zero by
//! construction is `None` and never becomes an equation.

use smallvec::SmallVec;

use super::{behind, counted, fitted, missing, place_of, read};
use crate::array::Array;
use crate::error::{Location, Result, error, fail};
use crate::location::Rule;
use crate::phases::phase;
use crate::primitives::{Derivative, Jvp, Outputs};
use crate::program::{Equation, Program, ValueId};
use crate::trace::{at_place, bind_all, carry_conditions, current_place, trace_closed};

/// The derivative program of `program` by its `active` inputs.
///
/// It takes the inputs, then a tangent for each active one; it returns the outputs, then a tangent for each output
/// that varies. The flags say which do.
#[track_caller]
pub fn jvp(program: &Program, active: &[bool]) -> Result<(Program, Vec<bool>)> {
    phase("differentiate", |(p, _)| vec![p], || forward(program, active))
}

#[track_caller]
fn forward(program: &Program, active: &[bool]) -> Result<(Program, Vec<bool>)> {
    let mut inputs: Vec<Array> = program.inputs().iter().cloned().map(Array::of_type).collect();
    if active.len() != inputs.len() {
        fail!(Signature, "`{}` has {} inputs, not {}", program.name(), inputs.len(), active.len());
    }
    let tangents: Vec<Array> = inputs.iter().zip(active).filter(|(_, on)| **on).map(|(a, _)| a.clone()).collect();
    inputs.extend(tangents);
    let mut varies = Vec::new();
    let derivative = trace_closed(&format!("jvp_{}", program.name()), &inputs, |xs| {
        let (primals, mut dots) = (&xs[..active.len()], xs[active.len()..].iter().cloned());
        let tangents: Vec<Option<Array>> = active.iter().map(|on| if *on { dots.next() } else { None }).collect();
        let (mut outputs, output_dots) = jvp_on(program, primals, &tangents)?;
        varies = output_dots.iter().map(Option::is_some).collect();
        outputs.extend(output_dots.into_iter().flatten());
        Ok(outputs)
    })?;
    Ok((derivative, varies))
}

/// Runs a program forward on values and tangents at once; `None` is a zero tangent.
#[track_caller]
pub fn jvp_on(
    program: &Program,
    primals: &[Array],
    tangents: &[Option<Array>],
) -> Result<(Vec<Array>, Vec<Option<Array>>)> {
    let caller = current_place();
    carry_conditions(program, primals, &[])?;
    let mut values: Vec<Array> = Vec::with_capacity(program.value_count());
    let mut dots: Vec<Option<Array>> = Vec::with_capacity(program.value_count());
    values.extend_from_slice(primals);
    // Only floats and complex numbers have tangents.
    dots.extend(tangents.iter().zip(primals).map(|(t, x)| t.clone().filter(|_| x.dtype().is_inexact())));
    for e in program.equations() {
        let atoms = program.operands(e);
        let operands = atoms.iter().map(|a| read(program, &values, *a)).collect::<Result<Vec<_>>>()?;
        let operand_dots: Vec<Option<Array>> =
            atoms.iter().map(|a| a.value().and_then(|v| dots[v.index()].clone())).collect();
        at_place(place_of(e, caller), || -> Result<()> {
            let (outputs, tangents) = differentiate(e, &operands, &operand_dots, caller)?;
            let outputs = counted(e, outputs)?;
            dots.extend(checked(e.op().name(), &outputs, tangents).map_err(|err| err.at(e.place()))?);
            values.extend(outputs);
            Ok(())
        })?;
    }
    let outputs = program.outputs().iter().map(|a| read(program, &values, *a)).collect::<Result<Vec<_>>>()?;
    let dot_of = |v: ValueId| dots[v.index()].clone();
    let output_dots = program.outputs().iter().map(|a| a.value().and_then(dot_of)).collect();
    Ok((outputs, output_dots))
}

/// The results of one equation and their tangents.
fn differentiate(
    e: &Equation,
    operands: &[Array],
    dots: &[Option<Array>],
    caller: Location,
) -> Result<(Outputs, Tangents)> {
    let none = |outputs: Outputs| {
        let zeros = smallvec::smallvec![None; outputs.len()];
        (outputs, zeros)
    };
    if dots.iter().all(Option::is_none) {
        return Ok(none(bind_all(e.op().clone(), operands)));
    }
    let rule = Jvp::new(e.op(), operands, dots);
    if !e.op().holds_programs() {
        // A reader of the program meets the result before its derivative.
        rule.outputs();
    }
    let derivative = at_place(behind(Rule::Derivative, e, caller), || e.op().jvp(&rule));
    match derivative.map_err(|err| err.in_operation(e.op().name()).at(e.place()))? {
        Derivative::Whole { outputs, tangents } => Ok((outputs, tangents)),
        Derivative::Zero => Ok(none(rule.into_outputs())),
        Derivative::Missing(why) => Err(missing(e, "derivative", why)),
        Derivative::Tangents(tangents) => Ok((rule.into_outputs(), tangents)),
    }
}

type Tangents = SmallVec<[Option<Array>; 1]>;

/// A rule must give a tangent of its result's type, for each result; integers and bools have none.
fn checked(name: &str, outputs: &[Array], tangents: Tangents) -> Result<Tangents> {
    if outputs.len() != tangents.len() {
        fail!(Rule, "the derivative rule of `{name}` gave {} tangents for {} results", tangents.len(), outputs.len());
    }
    let mut fit = Tangents::with_capacity(tangents.len());
    for (y, t) in outputs.iter().zip(tangents) {
        let y = y.ty()?;
        let Some(t) = t else {
            fit.push(None);
            continue;
        };
        let Some(own) = fitted(&t, y)? else {
            return Err(error!(Rule, "the derivative rule of `{name}` gave a tangent {} for a result {y}", t.ty()?)
                .at(Location::unknown()));
        };
        fit.push(Some(own));
    }
    Ok(fit)
}
