//! A loop over the leading axis of arrays, with values carried from step to step.
//!
//! Operands are constants (the same in every step), carries, and sequences; the body takes constants, carries and one
//! element of each sequence, and gives the next carries and one element of each result sequence.

use std::sync::Arc;

use super::dual::Dual;
use super::groups::{Groups, Results};
use super::halves::Halves;
use super::{apply, dependent, fits, flipped, gives, outputs, picked, positions, program, samples_of, settle, spread};
use crate::array::{Array, Concrete, Data, row_major};
use crate::error::{Result, error, fail};
use crate::interpret::prepare;
use crate::primitives::shaping::strided::buffer;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Partition, Primitive, Pruned, Sample, Transpose, Transposed,
    Types,
};
use crate::program::Program;
use crate::rules_of;
use crate::trace::inline;
use crate::transform::{jvp_of, transpose_on, vmap_of, zeros_of};
use crate::types::{Dim, Effects, Element, Type, dispatch};

/// Runs a body once for each element of its sequences.
#[derive(Clone, Debug)]
pub struct Scan {
    /// From constants, carries and one element of each sequence to the next carries and one element of each result.
    pub body: Arc<Program>,
    /// How many of the operands are constants.
    pub consts: usize,
    /// How many are carries; the rest are sequences.
    pub carries: usize,
    /// The number of steps.
    pub length: Dim,
    /// From the last element to the first.
    pub reverse: bool,
}

impl Scan {
    /// Something of each operand, or of each input of the body, by what the operands are.
    pub(crate) fn groups<'a, T>(&self, all: &'a [T]) -> Groups<&'a [T]> {
        Groups::of(all, self.consts, self.carries)
    }

    fn sequence_of(&self, element: &Type) -> Type {
        element.with_shape(element.shape().inserted(0, self.length.clone()))
    }

    /// The same loop with another body and other numbers of operands.
    pub(super) fn with(&self, body: Arc<Program>, consts: usize, carries: usize) -> Scan {
        Scan { body, consts, carries, ..self.clone() }
    }

    pub(super) fn settle(&self, flags: &[bool], step: impl FnMut(&[bool]) -> Result<Vec<bool>>) -> Result<Vec<bool>> {
        settle(self.consts..self.consts + self.carries, flags, step)
    }
}

impl Primitive for Scan {
    rules_of!("scan"; body, consts, carries, length, reverse);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        if self.consts.checked_add(self.carries).is_none_or(|n| n > inputs.len()) {
            fail!(
                Signature,
                "{} operand(s) are too few for {} constant(s) and {} carries",
                inputs.len(),
                self.consts,
                self.carries
            );
        }
        if self.length.is_invalid() || self.length.constant().is_some_and(|n| n < 0) {
            fail!(Size, "a loop of {} steps", self.length);
        }
        let have = self.groups(inputs);
        let mut elements = Vec::with_capacity(inputs.len());
        elements.extend(have.consts.iter().chain(have.carries).cloned());
        for ty in have.sequences {
            let Some(first) = ty.shape().first() else { fail!(Shape, "a sequence has a leading axis; {ty} has none") };
            if !infer.equal(first, &self.length) {
                fail!(Shape, "a loop of {} steps over a sequence {ty}", self.length);
            }
            elements.push(ty.with_shape(ty.shape().without(|i| i == 0)));
        }
        fits(&self.body, &elements, infer)?;
        let given = self.body.output_types();
        if given.len() < self.carries {
            fail!(
                Signature,
                "`{}` gives {} results, fewer than {} carries",
                self.body.name(),
                given.len(),
                self.carries
            );
        }
        let mut wanted = self.groups(self.body.inputs()).carries.to_vec();
        wanted.extend_from_slice(&given[self.carries..]);
        gives(&self.body, &wanted, "the body", infer)?;
        let sequences = given[self.carries..].iter().map(|t| self.sequence_of(t));
        Ok(wanted[..self.carries].iter().cloned().chain(sequences).collect())
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let n = self.length.as_usize().ok_or_else(|| error!(NotConcrete, "a loop of {} steps", self.length))?;
        let given = self.groups(inputs);
        let body = prepare(&self.body);
        let mut carries = given.carries.to_vec();
        let made = &self.body.output_types()[self.carries..];
        let mut stacks = made.iter().map(|t| Stack::new(self.sequence_of(t))).collect::<Result<Vec<_>>>()?;
        let mut step: Vec<Array> = Vec::with_capacity(inputs.len());
        for k in 0..n {
            let i = if self.reverse { n - 1 - k } else { k };
            step.clear();
            step.extend_from_slice(given.consts);
            step.append(&mut carries);
            for x in given.sequences {
                step.push(element(x, i)?);
            }
            carries = body.interpret(&step)?;
            for (y, stack) in carries.split_off(self.carries).iter().zip(&mut stacks) {
                stack.put(i, y)?;
            }
        }
        Ok(carries.into_iter().chain(stacks.into_iter().map(Stack::finish)).collect())
    }

    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        let active: Vec<bool> = rule.tangents.iter().map(Option::is_some).collect();
        let active = self.settle(&active, |a| Ok(jvp_of(&self.body, a)?.1))?;
        let (derivative, varies) = jvp_of(&self.body, &active)?;
        let on = self.groups(&active);
        if !varies.contains(&true) && !on.carries.contains(&true) {
            return Ok(Derivative::Zero);
        }
        let (dual, dots) = (Dual { types: self.groups(self.body.inputs()), on }, on.marked());
        let body = dual.body(&derivative, &varies)?;
        let op = self.with(body, self.consts + dots.consts, self.carries + dots.carries);
        let operands = dual.operands(self.groups(rule.primals), self.groups(rule.tangents));
        let Results { mut carries, mut sequences } =
            Results::from(apply(Op::new(op), &operands)?, self.carries + dots.carries);
        let varying = Results::of(&varies, self.carries);
        let mut tangents = spread(carries.split_off(self.carries), on.carries);
        tangents.extend(spread(sequences.split_off(varying.sequences.len()), varying.sequences));
        Ok(Derivative::Whole { outputs: outputs([carries, sequences].concat()), tangents: tangents.into() })
    }

    fn transpose(&self, rule: &Transpose<'_>) -> Result<Transposed> {
        let given: Vec<bool> = rule.operands.iter().map(|o| o.unknown().is_some()).collect();
        let linear = self.settle(&given, |f| dependent(&self.body, f))?;
        let known: Vec<Array> = rule.operands.iter().filter_map(|o| o.known().cloned()).collect();
        if self.groups(&linear).carries.contains(&false) {
            // Some carries can be computed forward: that half runs first, the other is turned around.
            let Some(parts) = self.partial_eval(&flipped(&given))? else { return Ok(Transposed::NotLinear) };
            return turned_half(&parts, &known, rule.cotangents, &given);
        }
        self.backward(rule, &given, &linear)
    }

    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        let count = self.body.outputs().len();
        let spread_of = |flags: &[bool]| {
            let mut spread = self.groups(flags).carries.to_vec();
            spread.resize(count, false);
            spread
        };
        let flags = self.settle(rule.batched, |f| Ok(vmap_of(&self.body, f, &spread_of(f), rule.size)?.1))?;
        let (body, made) = vmap_of(&self.body, &flags, &spread_of(&flags), rule.size)?;
        let operands: Vec<Array> = (0..rule.inputs.len())
            .map(|i| match flags[i] {
                false => rule.inputs[i].clone(),
                true if i >= self.consts + self.carries => rule.inputs[i].move_axis(1, 0),
                true => rule.with_axis(i),
            })
            .collect();
        let results = apply(Op::new(self.with(body, self.consts, self.carries)), &operands)?;
        let each = results.into_iter().zip(&made).enumerate().map(|(i, (y, on))| match on {
            false => y.broadcast_to(y.shape().inserted(0, rule.size.clone())),
            true if i >= self.carries => y.move_axis(0, 1),
            true => y,
        });
        Ok(Batched::Outputs(each.collect()))
    }

    fn holds_programs(&self) -> bool {
        true
    }

    fn partial_eval(&self, known: &[bool]) -> Result<Option<Partition>> {
        Halves::of(self, known)
    }

    fn depends(&self, on: &[bool]) -> Option<Vec<bool>> {
        let settled = self.settle(on, |f| dependent(&self.body, f)).ok()?;
        let mut results = self.groups(&settled).carries.to_vec();
        results.extend_from_slice(&dependent(&self.body, &settled).ok()?[self.carries..]);
        Some(results)
    }

    fn prune(&self, used: &[bool]) -> Result<Option<Pruned>> {
        let (used_carries, used_ys) = used.split_at(self.carries);
        let mut wanted = used.to_vec();
        let needed = loop {
            let needed = self.body.needed_inputs(&picked(self.body.outputs(), &wanted));
            let before = wanted.clone();
            let carried = self.groups(&needed).carries.iter().zip(used_carries);
            wanted[..self.carries].iter_mut().zip(carried).for_each(|(w, (n, u))| *w |= n | u);
            if wanted == before {
                break needed;
            }
        };
        // A carry that only its own next value needs goes with it.
        let mut operands = needed;
        operands[self.consts..self.consts + self.carries].copy_from_slice(&wanted[..self.carries]);
        if wanted.iter().chain(&operands).all(|on| *on) {
            return Ok(None);
        }
        let body = self.body.rearranged(&positions(&operands), &positions(&wanted))?;
        let kept = self.groups(&operands).marked();
        let op = Op::new(self.with(Arc::new(body), kept.consts, kept.carries));
        let results = wanted[..self.carries].iter().chain(used_ys).copied().collect();
        Ok(Some(Pruned { op, operands, results }))
    }

    fn effects(&self) -> Effects {
        self.body.effects()
    }

    fn samples() -> Vec<Sample> {
        let body = "body=fn step(x0: f64[2], x1: f64[2], x2: f64[], x3: f64[2]) -> (f64[2], f64[], f64[]) {\n    \
            x4: f64[2] = mul x1 x0\n    x5: f64[2] = sin x3\n    x6: f64[2] = add x4 x5\n    \
            x7: f64[] = reduce_sum{axes=[0]} x6\n    x8: f64[] = mul x7 x2\n    x9: f64[] = tanh x8\n    \
            return x6, x9, x7\n  }";
        let text = |reverse: bool, n: usize| {
            format!(
                "fn s(x0: f64[2], x1: f64[2], x2: f64[], x3: f64[{n},2]) -> (f64[2], f64[], f64[{n}]) {{\n  \
                 x4: f64[2], x5: f64[], x6: f64[{n}] = scan{{{body}, consts=1, carries=2, length={n}, reverse={reverse}}} x0 x1 x2 x3\n  return x4, x5, x6\n}}\n"
            )
        };
        let inputs = |n: usize| {
            let xs: Vec<f64> = (0..2 * n).map(|i| (i as f64 * 1.7).sin()).collect();
            let (w, c) = (Array::from([0.5_f64, -0.75]), Array::from([0.3_f64, 0.9]));
            vec![w, c, Array::from(0.8_f64), Array::from_vec(xs, [n, 2])]
        };
        let texts = [(text(false, 3), inputs(3)), (text(true, 2), inputs(2)), (text(false, 0), inputs(0))];
        samples_of(&texts.each_ref().map(|(t, i)| (t.as_str(), i.clone())))
    }
}

/// Runs the known half of an operation and turns the other around.
pub(super) fn turned_half(
    parts: &Partition,
    known: &[Array],
    cotangents: &[Option<Array>],
    given: &[bool],
) -> Result<Transposed> {
    let early = positions(&parts.known_outputs).len();
    let residuals = inline(&parts.known, known)?.split_off(early);
    let late = flipped(&parts.known_outputs);
    let bars = picked(cotangents, &late);
    let count = parts.unknown.inputs().len();
    let linear: Vec<bool> = (0..count).map(|i| i >= residuals.len()).collect();
    let bars = transpose_on(&parts.unknown, &linear, &residuals, &bars)?;
    Ok(Transposed::Cotangents(spread(bars, given).into_iter().map(Option::flatten).collect()))
}

impl Scan {
    /// The loop from the other end: cotangents of carries are carried, those of constants added up.
    fn backward(&self, rule: &Transpose<'_>, given: &[bool], linear: &[bool]) -> Result<Transposed> {
        let types = self.groups(self.body.inputs());
        let on = self.groups(linear);
        let sums = picked(types.consts, on.consts);
        let bars = Results::of(rule.cotangents, self.carries);
        let has_bar: Vec<bool> = bars.sequences.iter().map(Option::is_some).collect();
        let (body, x_varies) = self.backward_body(linear, &has_bar)?;
        let known = self
            .groups(rule.operands)
            .map(|operands| -> Vec<Array> { operands.iter().filter_map(|o| o.known().cloned()).collect() });
        let consts = known.consts.len();
        let carry_bars = bars.carries.iter().zip(types.carries).map(|(b, t)| b.clone().unwrap_or_else(|| zeros_of(t)));
        let mut operands = known.consts;
        operands.extend(carry_bars.chain(sums.iter().map(zeros_of)));
        operands.extend(known.sequences.into_iter().chain(bars.sequences.iter().flatten().cloned()));
        let op = Scan { reverse: !self.reverse, ..self.with(body, consts, self.carries + sums.len()) };
        let mut carried = apply(Op::new(op), &operands)?;
        let x_bars = spread(carried.split_off(self.carries + sums.len()), &x_varies);
        let const_bars = carried.split_off(self.carries);
        let mut all = spread(const_bars, on.consts);
        all.extend(carried.into_iter().map(Some));
        all.extend(spread(x_bars, on.sequences).into_iter().map(Option::flatten));
        // A carry may be linear though what it starts from is known: that operand gets nothing.
        let wanted = all.into_iter().zip(given).map(|(bar, on)| bar.filter(|_| *on));
        Ok(Transposed::Cotangents(wanted.collect()))
    }

    /// One step turned around, and which of the linear sequences get a cotangent. It takes known constants, cotangents of the carries and sums
    /// of those of constants, known elements, and cotangents of the results that have one.
    fn backward_body(&self, linear: &[bool], has_bar: &[bool]) -> Result<(Arc<Program>, Vec<bool>)> {
        let (types, on) = (self.groups(self.body.inputs()), self.groups(linear));
        let made = self.body.output_types();
        let known = types.zip(on).map(|(types, on)| picked(types, &flipped(on)));
        let sums = picked(types.consts, on.consts);
        let y_bars = picked(&made[self.carries..], has_bar);
        let inputs = [&known.consts, types.carries, &sums, &known.sequences, &y_bars].concat();
        let mut x_varies = Vec::new();
        let body = program(&format!("transpose_{}", self.body.name()), inputs, |xs| {
            let (consts, rest) = xs.split_at(known.consts.len());
            let (carried, rest) = rest.split_at(self.carries);
            let (sums, rest) = rest.split_at(sums.len());
            let (elements, bars) = rest.split_at(known.sequences.len());
            let mut all: Vec<Option<Array>> = carried.iter().cloned().map(Some).collect();
            all.extend(spread(bars.iter().cloned(), has_bar));
            let bars = transpose_on(&self.body, linear, &[consts, elements].concat(), &all)?;
            let bars = Groups::of(&bars, sums.len(), self.carries);
            let carries = bars.carries.iter().zip(types.carries);
            let carries = carries.map(|(b, t)| b.clone().unwrap_or_else(|| zeros_of(t)));
            let sums =
                sums.iter().zip(bars.consts).map(|(sum, bar)| bar.as_ref().map_or_else(|| sum.clone(), |b| sum + b));
            x_varies = bars.sequences.iter().map(Option::is_some).collect();
            Ok(carries.chain(sums).chain(bars.sequences.iter().flatten().cloned()).collect())
        })?;
        Ok((body, x_varies))
    }

    /// The types of the operands.
    pub(super) fn operand_types(&self) -> Vec<Type> {
        let first = self.consts + self.carries;
        let each = self.body.inputs().iter().enumerate();
        each.map(|(i, t)| if i < first { t.clone() } else { self.sequence_of(t) }).collect()
    }
}

/// Element `i` along the leading axis, as a view.
pub(crate) fn element(x: &Array, i: usize) -> Result<Array> {
    let c = x.on_host()?;
    let strides = c.strides()[1..].into();
    let offset = c.offset() as isize + i as isize * c.strides()[0];
    Ok(c.view(c.ty().shape().without(|axis| axis == 0), strides, offset as usize).into())
}

/// A sequence that is filled element by element.
pub(crate) struct Stack {
    ty: Type,
    data: Data,
}

impl Stack {
    pub(crate) fn new(ty: Type) -> Result<Stack> {
        let data = dispatch!(ty.dtype(), T => T::into_data(buffer(&ty, T::default())?));
        Ok(Stack { ty, data })
    }

    pub(crate) fn put(&mut self, i: usize, y: &Array) -> Result<()> {
        let c = y.on_host()?;
        let n = c.count();
        dispatch!(self.ty.dtype(), T => {
            let values = c.try_values::<T>()?;
            if let Some(room) = T::slice_mut(&mut self.data).and_then(|all| all.get_mut(i * n..(i + 1) * n)) {
                room.copy_from_slice(&values);
            }
        });
        Ok(())
    }

    pub(crate) fn finish(self) -> Array {
        let strides = row_major(&self.ty.shape().known().unwrap_or_default());
        Array::from(Concrete::strided(self.ty, &strides, 0, Arc::new(self.data)).map(Array::from))
    }
}
