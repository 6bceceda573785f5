//! Turns a linear program around: from cotangents of its outputs to cotangents of its linear inputs.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use super::{behind, counted, missing, place_of, read, zeros_of};
use crate::array::Array;
use crate::error::{Error, Result, error, fail};
use crate::phases::phase;
use crate::place::Rule;
use crate::primitives::shaping::fit;
use crate::primitives::{Linear, Transpose, Transposed};
use crate::program::{Atom, Equation, Program};
use crate::trace::{at_place, bind_all, current_place, inline, trace_closed};
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
    let uses = OnceCell::new();
    let used = || uses.get_or_init(|| program.used_values());
    let mut halves: FxHashMap<usize, Half> = FxHashMap::default();
    for (i, e) in program.equations().iter().enumerate() {
        let on = program.results_depending_on(e, &depends);
        for (r, on) in e.results().zip(&on) {
            depends[r.index()] = *on;
        }
        let read_all = |wanted: &dyn Fn(Atom) -> bool| {
            let atoms = program.operands(e).iter().filter(|a| wanted(**a));
            atoms.map(|a| read(program, &values, *a)).collect::<Result<Vec<_>>>()
        };
        let takes_linear = || program.operands(e).iter().filter_map(|a| a.value()).any(|v| depends[v.index()]);
        if !e.op().effects().is_pure() && !e.op().holds_programs() && takes_linear() {
            return Err(on_a_tangent(e));
        }
        if !on.contains(&true) {
            // A program may take a linear operand and give nothing that depends on it: then zeros do as well.
            let value = |a: &Atom| match a.value() {
                Some(v) if depends[v.index()] => Ok(zeros_of(program.ty(v))),
                _ => read(program, &values, *a),
            };
            let operands = program.operands(e).iter().map(value).collect::<Result<Vec<_>>>()?;
            let made = at_place(place_of(e, caller), || bind_all(e.op().clone(), &operands));
            values.extend(counted(e, made)?);
            continue;
        }
        let mut made: Vec<Array> = e.results().map(|r| Array::of_type(program.ty(r).clone())).collect();
        // Of an operation that holds programs a part may be known: it runs forward, if someone asks for what it gives.
        if e.results().zip(&on).any(|(r, on)| !on && used()[r.index()]) {
            let is_known = |a: Atom| a.value().is_none_or(|v| !depends[v.index()]);
            let flags: Vec<bool> = program.operands(e).iter().map(|a| is_known(*a)).collect();
            if let Some(parts) = e.op().partial_eval(&flags)? {
                let given = at_place(place_of(e, caller), || inline(&parts.known, &read_all(&is_known)?))?;
                let mut given = given.into_iter();
                for ((slot, known), r) in made.iter_mut().zip(&parts.known_outputs).zip(e.results()) {
                    depends[r.index()] = !known;
                    if *known {
                        *slot = given.next().ok_or_else(|| error!(Rule, "a result was lost"))?;
                    }
                }
                halves.insert(
                    i,
                    Half { later: parts.unknown, known_outputs: parts.known_outputs, residuals: given.collect() },
                );
            }
        }
        values.extend(made);
    }
    let mut bars_of: Vec<Option<Array>> = vec![None; n];
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
                accumulate(&mut bars_of, v.index(), bar.clone());
            }
        }
    });
    for (i, e) in program.equations().iter().enumerate().rev() {
        let result_bars: Vec<Option<Array>> = e.results().map(|r| bars_of[r.index()].take()).collect();
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
        at_place(behind(Rule::Transpose, e, caller), || -> Result<()> {
            if let Some(half) = halves.get(&i) {
                let bars = half.known_outputs.iter().zip(&result_bars).filter(|(known, _)| !**known);
                let bars: Vec<Option<Array>> = bars.map(|(_, bar)| bar.clone()).collect();
                let linear: Vec<bool> = (0..half.later.inputs().len()).map(|i| i >= half.residuals.len()).collect();
                let pulled = transpose_on(&half.later, &linear, &half.residuals, &bars)?;
                let unknown = program.operands(e).iter().filter_map(|a| a.value()).filter(|v| depends[v.index()]);
                for (v, bar) in unknown.zip(pulled) {
                    bar.into_iter().for_each(|bar| accumulate(&mut bars_of, v.index(), bar));
                }
                return Ok(());
            }
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
                        accumulate(&mut bars_of, v.index(), bar);
                    }
                    Ok(())
                }
            }
        })?;
    }
    let wanted = (0..program.inputs().len()).filter(|i| linear[*i]);
    Ok(wanted.map(|i| bars_of[i].take()).collect())
}

/// What an effect on a tangent becomes in reverse mode, where there is no tangent to show.
fn on_a_tangent(e: &Equation) -> Error {
    error!(MissingRule, "`{}` takes a tangent, and reverse mode has none: it computes cotangents", e.op().name())
        .at(e.place())
        .help("put it into the backward pass of a `custom_vjp` rule, where cotangents pass by")
}

/// An operation of which a part was computed forward: what is left to turn around, and what it needs.
struct Half {
    later: Program,
    known_outputs: Vec<bool>,
    residuals: Vec<Array>,
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
