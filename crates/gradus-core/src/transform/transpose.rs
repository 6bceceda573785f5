//! Turns a linear program around: from cotangents of its outputs to cotangents of its linear inputs.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use super::{behind, counted, fitted, missing, place_of, read, zeros_of};
use crate::array::Array;
use crate::error::{Error, Location, Result, error, fail};
use crate::location::Rule;
use crate::phases::phase;
use crate::primitives::{Linear, Outputs, Transpose, Transposed};
use crate::program::{Atom, Equation, Program, ValueId};
use crate::trace::{at_place, bind_all, current_place, inline, trace_closed};

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
    let mut forth = Forth::of_inputs(program, linear, known, caller)?;
    for (i, e) in program.equations().iter().enumerate() {
        forth.run(i, e)?;
    }
    let mut back = Back { forth: &forth, bars: vec![None; program.value_count()] };
    at_place(caller, || back.start(output_bars));
    for (i, e) in program.equations().iter().enumerate().rev() {
        back.turn(i, e)?;
    }
    let wanted = (0..program.inputs().len()).filter(|i| linear[*i]);
    Ok(wanted.map(|i| back.bars[i].take()).collect())
}

/// The way there: what does not depend on the linear inputs is computed as usual.
struct Forth<'a> {
    program: &'a Program,
    caller: Location,
    /// For each value, whether it depends on the linear inputs.
    depends: Vec<bool>,
    /// Values that do not, and the types of those that do.
    values: Vec<Array>,
    /// For each value, whether someone takes it. Most programs never ask.
    used: OnceCell<Vec<bool>>,
    /// Equations of which a part was computed, by their number.
    halves: FxHashMap<usize, Half>,
}

/// An operation of which a part was computed forward: what is left to turn around, and what it needs.
struct Half {
    later: Program,
    known_outputs: Vec<bool>,
    residuals: Vec<Array>,
}

impl<'a> Forth<'a> {
    fn of_inputs(program: &'a Program, linear: &[bool], known: &[Array], caller: Location) -> Result<Forth<'a>> {
        let mut depends = linear.to_vec();
        depends.resize(program.value_count(), false);
        let mut values: Vec<Array> = Vec::with_capacity(program.value_count());
        let mut known = known.iter().cloned();
        for (ty, on) in program.inputs().iter().zip(linear) {
            let value = if *on { Some(Array::of_type(ty.clone())) } else { known.next() };
            values.push(value.ok_or_else(|| error!(Signature, "too few known inputs"))?);
        }
        Ok(Forth { program, caller, depends, values, used: OnceCell::new(), halves: FxHashMap::default() })
    }

    /// The linear value that an operand is, if it is one.
    fn linear(&self, atom: Atom) -> Option<ValueId> {
        atom.value().filter(|v| self.depends[v.index()])
    }

    fn run(&mut self, i: usize, e: &Equation) -> Result<()> {
        let program = self.program;
        let on = program.results_depending_on(e, &self.depends);
        for (r, on) in e.results().zip(&on) {
            self.depends[r.index()] = *on;
        }
        let takes_linear = || program.operands(e).iter().any(|a| self.linear(*a).is_some());
        if !e.op().effects().is_pure() && !e.op().holds_programs() && takes_linear() {
            return Err(on_a_tangent(e));
        }
        if !on.contains(&true) {
            let made = self.compute(e)?;
            self.values.extend(made);
            return Ok(());
        }
        let made = e.results().map(|r| Array::of_type(program.ty(r).clone()));
        self.values.extend(made.collect::<Vec<_>>());
        // Of an operation that holds programs a part may be known: it runs forward, if someone asks for what it gives.
        let is_used = |r: ValueId| self.used.get_or_init(|| program.used_values())[r.index()];
        if e.results().zip(&on).any(|(r, on)| !on && is_used(r)) { self.compute_half(i, e) } else { Ok(()) }
    }

    /// An equation whose results do not depend on the linear inputs.
    fn compute(&self, e: &Equation) -> Result<Outputs> {
        // A program may take a linear operand and give nothing that depends on it: then zeros do as well.
        let value = |a: &Atom| match self.linear(*a) {
            Some(v) => Ok(zeros_of(self.program.ty(v))),
            None => read(self.program, &self.values, *a),
        };
        let operands = self.program.operands(e).iter().map(value).collect::<Result<Vec<_>>>()?;
        counted(e, at_place(place_of(e, self.caller), || bind_all(e.op().clone(), &operands)))
    }

    /// The known half of an operation, if it has one.
    fn compute_half(&mut self, i: usize, e: &Equation) -> Result<()> {
        let operands = self.program.operands(e);
        let flags: Vec<bool> = operands.iter().map(|a| self.linear(*a).is_none()).collect();
        let parts = at_place(place_of(e, self.caller), || e.op().partial_eval(&flags))?;
        let Some(parts) = parts else { return Ok(()) };
        let known = operands.iter().zip(&flags).filter(|(_, known)| **known);
        let known = known.map(|(a, _)| read(self.program, &self.values, *a)).collect::<Result<Vec<_>>>()?;
        let given = at_place(place_of(e, self.caller), || inline(&parts.known, &known))?;
        let mut given = given.into_iter();
        for (known, r) in parts.known_outputs.iter().zip(e.results()) {
            self.depends[r.index()] = !known;
            if *known {
                self.values[r.index()] = given.next().ok_or_else(|| error!(Rule, "a result was lost"))?;
            }
        }
        let (known_outputs, residuals) = (parts.known_outputs, given.collect());
        self.halves.insert(i, Half { later: parts.unknown, known_outputs, residuals });
        Ok(())
    }
}

/// The way back: cotangents from the outputs to the linear inputs.
struct Back<'a> {
    forth: &'a Forth<'a>,
    /// For each value, the sum of the cotangents so far.
    bars: Vec<Option<Array>>,
}

impl Back<'_> {
    fn add(&mut self, value: ValueId, bar: Array) {
        let slot = &mut self.bars[value.index()];
        *slot = Some(match slot.take() {
            Some(sum) => sum + bar,
            None => bar,
        });
    }

    fn start(&mut self, output_bars: &[Option<Array>]) {
        for (a, bar) in self.forth.program.outputs().iter().zip(output_bars) {
            if let (Some(v), Some(bar)) = (self.forth.linear(*a), bar) {
                self.add(v, bar.clone());
            }
        }
    }

    fn turn(&mut self, i: usize, e: &Equation) -> Result<()> {
        let result_bars: Vec<Option<Array>> = e.results().map(|r| self.bars[r.index()].take()).collect();
        if result_bars.iter().all(Option::is_none) {
            return Ok(());
        }
        at_place(behind(Rule::Transpose, e, self.forth.caller), || match self.forth.halves.get(&i) {
            Some(half) => self.turn_half(e, half, &result_bars),
            None => self.turn_whole(e, &result_bars),
        })
    }

    /// The later half of an operation, whose first half was computed.
    fn turn_half(&mut self, e: &Equation, half: &Half, result_bars: &[Option<Array>]) -> Result<()> {
        let bars = half.known_outputs.iter().zip(result_bars).filter(|(known, _)| !**known);
        let bars: Vec<Option<Array>> = bars.map(|(_, bar)| bar.clone()).collect();
        let linear: Vec<bool> = (0..half.later.inputs().len()).map(|i| i >= half.residuals.len()).collect();
        let pulled = transpose_on(&half.later, &linear, &half.residuals, &bars)?;
        let unknown = self.forth.program.operands(e).iter().filter_map(|a| self.forth.linear(*a));
        for (v, bar) in unknown.zip(pulled) {
            bar.into_iter().for_each(|bar| self.add(v, bar));
        }
        Ok(())
    }

    fn turn_whole(&mut self, e: &Equation, result_bars: &[Option<Array>]) -> Result<()> {
        let (forth, program) = (self.forth, self.forth.program);
        let operand = |a: &Atom| match forth.linear(*a) {
            Some(v) => Ok(Linear::Unknown(program.ty(v).clone())),
            None => read(program, &forth.values, *a).map(Linear::Known),
        };
        let operands = program.operands(e).iter().map(operand).collect::<Result<Vec<_>>>()?;
        let rule = Transpose { operands: &operands, cotangents: result_bars };
        let mut linear = program.operands(e).iter().filter_map(|a| forth.linear(*a));
        if let (Some(v), None) = (linear.next(), linear.next())
            && let Some(sum) = &self.bars[v.index()]
            && sum.ty()? == program.ty(v)
            && let Some(sum) =
                e.op().transpose_into(&rule, sum).map_err(|err| err.in_operation(e.op().name()).at(e.place()))?
        {
            self.bars[v.index()] = Some(sum);
            return Ok(());
        }
        let made = e.op().transpose(&rule).map_err(|err| err.in_operation(e.op().name()).at(e.place()))?;
        let Transposed::Cotangents(all) = made else {
            let way_out = "a rule of your own (`custom_jvp`) is linear in tangents: it multiplies them by values and adds them, and nothing else";
            return Err(missing(e, "transpose", way_out)
                .note("reverse mode transposes what is done with tangents, and this is not linear in them"));
        };
        for ((&a, operand), bar) in program.operands(e).iter().zip(&operands).zip(all) {
            let (Some(v), Linear::Unknown(ty), Some(bar)) = (a.value(), operand, bar) else { continue };
            let Some(bar) = fitted(&bar, ty)? else {
                fail!(Rule, "the transpose rule of `{}` gave {} for an operand {ty}", e.op().name(), bar.ty()?);
            };
            self.add(v, bar);
        }
        Ok(())
    }
}

/// What an effect on a tangent becomes in reverse mode, where there is no tangent to show.
fn on_a_tangent(e: &Equation) -> Error {
    error!(MissingRule, "`{}` takes a tangent, and reverse mode has none: it computes cotangents", e.op().name())
        .at(e.place())
        .help("put it into the backward pass of a `custom_vjp` rule, where cotangents pass by")
}
