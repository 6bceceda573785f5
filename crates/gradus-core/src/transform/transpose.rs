//! Turns a linear program around: from cotangents of its outputs to cotangents of its linear inputs.

use super::{missing, place_of, read, zeros_of};
use crate::array::Array;
use crate::error::{Result, error, fail};
use crate::phases::phase;
use crate::primitives::shaping::fit;
use crate::primitives::{Linear, Transpose, Transposed};
use crate::program::Program;
use crate::trace::{at_place, bind_all, current_place, trace_closed};
use crate::types::{Decision, Dim, Type};

/// The transpose of `program` in its `linear` inputs.
///
/// It takes the other inputs, then a cotangent for each output; it returns a cotangent for each linear input.
#[track_caller]
pub fn transpose(program: &Program, linear: &[bool]) -> Result<Program> {
    phase("transpose", |p| vec![p], || backward(program, linear))
}

#[track_caller]
fn backward(program: &Program, linear: &[bool]) -> Result<Program> {
    if linear.len() != program.inputs().len() {
        fail!(Signature, "`{}` has {} inputs, not {}", program.name(), program.inputs().len(), linear.len());
    }
    let known = program.inputs().iter().zip(linear).filter(|(_, on)| !**on).map(|(t, _)| t.clone());
    let inputs: Vec<Array> = known.chain(program.output_types()).map(Array::of_type).collect();
    trace_closed(&format!("transpose_{}", program.name()), &inputs, |xs| {
        let (known, bars) = xs.split_at(linear.iter().filter(|on| !**on).count());
        let bars: Vec<Option<Array>> = bars.iter().cloned().map(Some).collect();
        let bars = transpose_on(program, linear, known, &bars)?;
        let types = program.inputs().iter().zip(linear).filter(|(_, on)| **on).map(|(t, _)| t);
        Ok(bars.into_iter().zip(types).map(|(b, t)| b.unwrap_or_else(|| zeros_of(t))).collect())
    })
}

/// Runs a linear program backward. A `None` is a zero cotangent.
#[track_caller]
pub(crate) fn transpose_on(
    program: &Program,
    linear: &[bool],
    known: &[Array],
    output_bars: &[Option<Array>],
) -> Result<Vec<Option<Array>>> {
    let caller = current_place();
    let n = program.value_count();
    // What does not depend on the linear inputs is computed forward, as usual.
    let mut depends = vec![false; n];
    let mut values: Vec<Array> = Vec::with_capacity(n);
    let mut known = known.iter().cloned();
    for (i, (ty, on)) in program.inputs().iter().zip(linear).enumerate() {
        depends[i] = *on;
        let value = if *on { Some(Array::of_type(ty.clone())) } else { known.next() };
        values.push(value.ok_or_else(|| error!(Signature, "too few known inputs"))?);
    }
    for e in program.equations() {
        let on = program.operands(e).iter().any(|a| a.value().is_some_and(|v| depends[v.index()]));
        for r in e.results() {
            depends[r.index()] = on;
        }
        if on {
            values.extend(e.results().map(|r| Array::of_type(program.ty(r).clone())));
            continue;
        }
        let operands = program.operands(e).iter().map(|a| read(program, &values, *a)).collect::<Result<Vec<_>>>()?;
        values.extend(at_place(place_of(e, caller), || bind_all(e.op().clone(), &operands)));
    }
    let mut bars: Vec<Option<Array>> = vec![None; n];
    fn accumulate(bars: &mut [Option<Array>], at: usize, bar: Array) {
        bars[at] = Some(match bars[at].take() {
            Some(sum) => sum + bar,
            None => bar,
        });
    }
    at_place(caller, || {
        for (a, bar) in program.outputs().iter().zip(output_bars) {
            if let (Some(v), Some(bar)) = (a.value(), bar)
                && depends[v.index()]
            {
                accumulate(&mut bars, v.index(), bar.clone());
            }
        }
    });
    for e in program.equations().iter().rev() {
        let result_bars: Vec<Option<Array>> = e.results().map(|r| bars[r.index()].take()).collect();
        if result_bars.iter().all(Option::is_none) {
            continue;
        }
        let mut operands = Vec::with_capacity(program.operands(e).len());
        for &a in program.operands(e) {
            operands.push(match a.value() {
                Some(v) if depends[v.index()] => Linear::Unknown(program.ty(v).clone()),
                _ => Linear::Known(read(program, &values, a)?),
            });
        }
        at_place(place_of(e, caller), || -> Result<()> {
            let rule = Transpose { operands: &operands, cotangents: &result_bars };
            match e.op().transpose(&rule).map_err(|err| err.in_operation(e.op().name()).at(e.place()))? {
                Transposed::NotLinear => Err(missing(e, "transpose", "")
                    .note("reverse mode differentiates by transposing linear operations; this one is not linear here")),
                Transposed::Cotangents(all) => {
                    for ((&a, operand), bar) in program.operands(e).iter().zip(&operands).zip(all) {
                        let (Some(v), Linear::Unknown(ty), Some(bar)) = (a.value(), operand, bar) else { continue };
                        let Some(bar) = fitted(&bar, ty)? else {
                            fail!(
                                Rule,
                                "the transpose rule of `{}` gave {} for an operand {ty}",
                                e.op().name(),
                                bar.ty()?
                            );
                        };
                        accumulate(&mut bars, v.index(), bar);
                    }
                    Ok(())
                }
            }
        })?;
    }
    let wanted = (0..program.inputs().len()).filter(|i| linear[*i]);
    Ok(wanted.map(|i| bars[i].take()).collect())
}

/// A cotangent under its operand's own dimensions. Dimensions that are equal by a condition of the program may differ
/// in their text (`add` of `f64[N]` and `f64[max(N,0)]`); those that cannot be equal are a rule's mistake.
fn fitted(bar: &Array, ty: &Type) -> Result<Option<Array>> {
    let have = bar.ty()?;
    if have == ty {
        return Ok(Some(bar.clone()));
    }
    let equal = |(a, b): (&Dim, &Dim)| a.equals(b) != Decision::No;
    let fits =
        have.dtype() == ty.dtype() && have.rank() == ty.rank() && have.shape().iter().zip(ty.shape().iter()).all(equal);
    Ok(fits.then(|| fit(bar.clone(), ty.shape())))
}
