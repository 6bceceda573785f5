//! A loop over the leading axis of arrays, with values carried from step to step.
//!
//! Operands are constants (the same in every step), carries, and sequences; the body takes constants, carries and one
//! element of each sequence, and gives the next carries and one element of each result sequence.

use std::sync::Arc;

use super::{apply, fits, flipped, gives, outputs, picked, positions, program, samples_of, settle, spread};
use crate::array::{Array, Concrete, Data, row_major};
use crate::error::{Place, Result, error, fail};
use crate::interpret::prepare;
use crate::primitives::shaping::strided::buffer;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Partition, Primitive, Pruned, Sample, Transpose, Transposed,
    Types,
};
use crate::program::{Atom, Builder, Program, ValueId};
use crate::rules_of;
use crate::trace::inline;
use crate::transform::{jvp_of, split_of, transpose_on, vmap_of, zeros_of};
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

/// Flags or values of the operands, taken apart.
struct Parts<'a, T> {
    consts: &'a [T],
    carries: &'a [T],
    sequences: &'a [T],
}

impl Scan {
    fn parts<'a, T>(&self, all: &'a [T]) -> Parts<'a, T> {
        let (consts, rest) = all.split_at(self.consts);
        let (carries, sequences) = rest.split_at(self.carries);
        Parts { consts, carries, sequences }
    }

    fn sequence_of(&self, element: &Type) -> Type {
        element.with_shape(element.shape().inserted(0, self.length.clone()))
    }

    /// The same loop with another body and other numbers of operands.
    fn with(&self, body: Arc<Program>, consts: usize, carries: usize) -> Scan {
        Scan { body, consts, carries, ..self.clone() }
    }

    fn settle(&self, flags: &[bool], step: impl FnMut(&[bool]) -> Result<Vec<bool>>) -> Result<Vec<bool>> {
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
        let have = self.parts(inputs);
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
        let mut wanted = self.parts(self.body.inputs()).carries.to_vec();
        wanted.extend_from_slice(&given[self.carries..]);
        gives(&self.body, &wanted, "the body", infer)?;
        let sequences = given[self.carries..].iter().map(|t| self.sequence_of(t));
        Ok(wanted[..self.carries].iter().cloned().chain(sequences).collect())
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let n = self.length.as_usize().ok_or_else(|| error!(NotConcrete, "a loop of {} steps", self.length))?;
        let given = self.parts(inputs);
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
        let on = self.parts(&active);
        if !varies.contains(&true) && !on.carries.contains(&true) {
            return Ok(Derivative::Zero);
        }
        let count = |flags: &[bool]| flags.iter().filter(|on| **on).count();
        let (dot_consts, dot_carries) = (count(on.consts), count(on.carries));
        let types = self.parts(self.body.inputs());
        let inputs = [(types.consts, on.consts), (types.carries, on.carries), (types.sequences, on.sequences)]
            .into_iter()
            .flat_map(|(types, on)| types.iter().cloned().chain(picked(types, on)));
        let made = self.body.outputs().len();
        let body = program(derivative.name(), inputs, |xs| {
            // Constants, carries and sequences each have their tangents behind them; the derivative takes all tangents
            // last.
            let (mut values, mut dots, mut at) = (Vec::new(), Vec::new(), 0);
            for (n, dotted) in
                [(self.consts, on.consts), (self.carries, on.carries), (types.sequences.len(), on.sequences)]
            {
                values.extend_from_slice(&xs[at..at + n]);
                at += n;
                dots.extend_from_slice(&xs[at..at + count(dotted)]);
                at += count(dotted);
            }
            values.extend(dots);
            let mut next = inline(&derivative, &values)?;
            let dots = spread(next.split_off(made), &varies);
            let ys = next.split_off(self.carries);
            let (carry_dots, y_dots) = dots.split_at(self.carries);
            let each = carry_dots.iter().zip(on.carries).zip(types.carries).filter(|((_, on), _)| **on);
            next.extend(each.map(|((dot, _), t)| dot.clone().unwrap_or_else(|| zeros_of(t))));
            next.extend(ys);
            next.extend(y_dots.iter().flatten().cloned());
            Ok(next)
        })?;
        let (values, dots) = (self.parts(rule.primals), self.parts(rule.tangents));
        let mut operands = values.consts.to_vec();
        operands.extend(dots.consts.iter().flatten().cloned());
        operands.extend_from_slice(values.carries);
        for ((dot, x), _) in dots.carries.iter().zip(values.carries).zip(on.carries).filter(|(_, on)| **on) {
            operands.push(dot.clone().unwrap_or_else(|| x.zeros_like()));
        }
        operands.extend_from_slice(values.sequences);
        operands.extend(dots.sequences.iter().flatten().cloned());
        let op = self.with(body, self.consts + dot_consts, self.carries + dot_carries);
        let mut carries = apply(Op::new(op), &operands)?;
        let mut ys = carries.split_off(self.carries + dot_carries);
        let mut tangents = spread(carries.split_off(self.carries), on.carries);
        let y_dots = ys.split_off(made - self.carries);
        tangents.extend(spread(y_dots, &varies[self.carries..]));
        carries.extend(ys);
        Ok(Derivative::Whole { outputs: outputs(carries), tangents: tangents.into() })
    }

    fn transpose(&self, rule: &Transpose<'_>) -> Result<Transposed> {
        let given: Vec<bool> = rule.operands.iter().map(|o| o.unknown().is_some()).collect();
        let carries_out = |f: &[bool]| Ok(self.body.outputs_depending_on(f));
        let linear = self.settle(&given, carries_out)?;
        let known: Vec<Array> = rule.operands.iter().filter_map(|o| o.known().cloned()).collect();
        if self.parts(&linear).carries.contains(&false) {
            // Some carries can be computed forward: that half runs first, the other is turned around.
            let Some(parts) = self.partial_eval(&flipped(&given))? else { return Ok(Transposed::NotLinear) };
            return turned_half(&parts, &known, rule.cotangents, &given);
        }
        self.backward(rule, &given, &linear)
    }

    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        let count = self.body.outputs().len();
        let spread_of = |flags: &[bool]| {
            let mut spread = self.parts(flags).carries.to_vec();
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
        self.split(known)
    }

    fn depends(&self, on: &[bool]) -> Option<Vec<bool>> {
        let settled = self.settle(on, |f| Ok(self.body.outputs_depending_on(f))).ok()?;
        let mut results = self.parts(&settled).carries.to_vec();
        results.extend_from_slice(&self.body.outputs_depending_on(&settled)[self.carries..]);
        Some(results)
    }

    fn prune(&self, used: &[bool]) -> Result<Option<Pruned>> {
        let (used_carries, used_ys) = used.split_at(self.carries);
        let mut wanted = used.to_vec();
        let needed = loop {
            let needed = self.body.needed_inputs(&picked(self.body.outputs(), &wanted));
            let before = wanted.clone();
            let carried = self.parts(&needed).carries.iter().zip(used_carries);
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
        let count = |flags: &[bool]| flags.iter().filter(|on| **on).count();
        let kept = self.parts(&operands);
        let op = Op::new(self.with(Arc::new(body), count(kept.consts), count(kept.carries)));
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
        let types = self.parts(self.body.inputs());
        let on = self.parts(linear);
        let (carry_bars, y_bars) = rule.cotangents.split_at(self.carries);
        let element_types = &self.body.output_types()[self.carries..];
        let has_bar: Vec<bool> = y_bars.iter().map(Option::is_some).collect();
        let (known_consts, known_xs) =
            (picked(types.consts, &flipped(on.consts)), picked(types.sequences, &flipped(on.sequences)));
        let sums = picked(types.consts, on.consts);
        let inputs: Vec<Type> = known_consts
            .iter()
            .chain(types.carries)
            .chain(&sums)
            .chain(&known_xs)
            .cloned()
            .chain(picked(element_types, &has_bar))
            .collect();
        let linear_xs = positions(on.sequences).len();
        let mut x_varies = vec![false; linear_xs];
        let body = program(&format!("transpose_{}", self.body.name()), inputs, |xs| {
            let (consts, rest) = xs.split_at(known_consts.len());
            let (carried, rest) = rest.split_at(self.carries);
            let (sums, rest) = rest.split_at(sums.len());
            let (elements, bars) = rest.split_at(known_xs.len());
            let known: Vec<Array> = consts.iter().chain(elements).cloned().collect();
            let mut all: Vec<Option<Array>> = carried.iter().cloned().map(Some).collect();
            all.extend(spread(bars.iter().cloned(), &has_bar));
            let mut bars = transpose_on(&self.body, linear, &known, &all)?;
            let x_bars = bars.split_off(sums.len() + self.carries);
            let carry_bars = bars.split_off(sums.len());
            let mut next: Vec<Array> =
                carry_bars.into_iter().zip(types.carries).map(|(b, t)| b.unwrap_or_else(|| zeros_of(t))).collect();
            next.extend(sums.iter().zip(bars).map(|(sum, bar)| bar.map_or_else(|| sum.clone(), |b| sum + b)));
            x_varies = x_bars.iter().map(Option::is_some).collect();
            next.extend(x_bars.into_iter().flatten());
            Ok(next)
        })?;
        let known = self.parts(rule.operands);
        let known_of = |operands: &[crate::primitives::Linear]| -> Vec<Array> {
            operands.iter().filter_map(|o| o.known().cloned()).collect()
        };
        let mut operands = known_of(known.consts);
        operands.extend(carry_bars.iter().zip(types.carries).map(|(b, t)| b.clone().unwrap_or_else(|| zeros_of(t))));
        operands.extend(sums.iter().map(zeros_of));
        operands.extend(known_of(known.sequences));
        operands.extend(y_bars.iter().flatten().cloned());
        let op = Scan { reverse: !self.reverse, ..self.with(body, known_consts.len(), self.carries + sums.len()) };
        let mut bars = apply(Op::new(op), &operands)?;
        let x_bars = spread(bars.split_off(self.carries + sums.len()), &x_varies);
        let const_bars = bars.split_off(self.carries);
        let mut all = spread(const_bars, on.consts);
        all.extend(bars.into_iter().map(Some));
        all.extend(spread(x_bars, on.sequences).into_iter().map(Option::flatten));
        // A carry may be linear though what it starts from is known: that operand gets nothing.
        let wanted = all.into_iter().zip(given).map(|(bar, on)| bar.filter(|_| *on));
        Ok(Transposed::Cotangents(wanted.collect()))
    }

    /// Two loops: the first carries what is known, the second the rest. What the second needs of a step is stacked; what
    /// is the same in every step passes once, and elements of known sequences pass as the sequences they are.
    fn split(&self, known: &[bool]) -> Result<Option<Partition>> {
        // What is made of a sequence's element is made again rather than stacked. What is made of constants is saved once,
        // and making it again in every step would cost more.
        let at_hand: Vec<bool> = (0..known.len()).map(|i| i >= self.consts + self.carries).collect();
        let count = self.body.outputs().len();
        let late_of = |unknown: &[bool]| {
            let mut late = self.parts(unknown).carries.to_vec();
            late.resize(count, false);
            late
        };
        let unknown = self.settle(&flipped(known), |unknown| {
            let split = split_of(&self.body, &flipped(unknown), &late_of(unknown), &at_hand)?;
            Ok(flipped(&split.known_outputs[..self.carries]))
        })?;
        let is_known = flipped(&unknown);
        let split = split_of(&self.body, &is_known, &late_of(&unknown), &at_hand)?;
        let early = positions(&split.known_outputs).len();
        if early == 0 && split.known.equations().is_empty() {
            return Ok(None);
        }
        let on = self.parts(&is_known);
        let count_of = |flags: &[bool]| positions(flags).len();
        let (known_consts, known_carries) = (count_of(on.consts), count_of(on.carries));
        let invariant = {
            let inputs = split.known.inputs().len();
            let varying: Vec<bool> = (0..inputs).map(|i| i >= known_consts).collect();
            flipped(&split.known.varies_with(&varying))
        };
        // How each residual passes.
        enum Pass {
            Once,
            Sequence(usize),
            Stacked,
        }
        let residual_atoms = &split.known.outputs()[early..];
        let passes: Vec<Pass> = residual_atoms
            .iter()
            .map(|a| match a.value() {
                Some(v) if invariant[v.index()] => Pass::Once,
                Some(v) if (known_consts + known_carries..split.known.inputs().len()).contains(&v.index()) => {
                    Pass::Sequence(v.index())
                }
                Some(_) => Pass::Stacked,
                None => Pass::Once,
            })
            .collect();
        let atoms_of = |wanted: fn(&Pass) -> bool| -> Vec<Atom> {
            residual_atoms.iter().zip(&passes).filter(|(_, p)| wanted(p)).map(|(a, _)| *a).collect()
        };
        let once = atoms_of(|p| matches!(p, Pass::Once));
        let stacked: Vec<usize> =
            (0..passes.len()).filter(|i| matches!(passes[*i], Pass::Stacked)).map(|i| early + i).collect();
        // The first half: what is the same in every step, then the loop.
        let mut b = Builder::new("known");
        // A carry that is not known all the way is known at the start; the second half takes that.
        let types: Vec<Type> = self.operand_types();
        let inputs = positions(known)
            .into_iter()
            .map(|i| b.input(types[i].clone()).map(|v| (i, Atom::from(v))))
            .collect::<Result<Vec<_>>>()?;
        let operand = |i: usize| inputs.iter().find(|(j, _)| *j == i).map(|(_, a)| *a);
        let operands: Vec<Atom> = positions(&is_known).into_iter().filter_map(operand).collect();
        let given: Vec<ValueId> = (0..known_consts).map(ValueId::new).collect();
        let hoisted =
            b.inline(&split.known.between(&given, &once, false)?, &operands[..known_consts], Place::unknown())?;
        let every: Vec<usize> = (0..split.known.inputs().len()).collect();
        let outs: Vec<usize> = (0..early).chain(stacked.iter().copied()).collect();
        let body = Arc::new(split.known.rearranged(&every, &outs)?);
        let results: Vec<Atom> = match outs.is_empty() && body.effects().is_pure() {
            true => Vec::new(),
            false => {
                let op = Op::new(self.with(body, known_consts, known_carries));
                b.equation(op, &operands, Place::unknown())?.results().map(Atom::from).collect()
            }
        };
        let (first, mut stacks) = (results[..early].to_vec(), results[early..].iter());
        let mut hoisted = hoisted.into_iter();
        let (mut passed_once, mut passed_steps) = (Vec::new(), Vec::new());
        for pass in &passes {
            match pass {
                Pass::Once => passed_once.extend(hoisted.next()),
                Pass::Sequence(i) => passed_steps.push(operands[*i]),
                Pass::Stacked => passed_steps.extend(stacks.next().copied()),
            }
        }
        // Carries known only at the start.
        let starts: Vec<usize> = (0..known.len()).filter(|i| known[*i] && !is_known[*i]).collect();
        let start_atoms: Vec<Atom> = starts.iter().filter_map(|i| operand(*i)).collect();
        let residuals: Vec<Atom> = passed_once.iter().chain(&start_atoms).chain(&passed_steps).copied().collect();
        let residual_types: Vec<Type> = residuals.iter().map(|a| b.ty(*a).clone()).collect();
        let known_half = b.finish(first.into_iter().chain(residuals).collect());
        // The second half: a loop over the rest.
        let mut order: Vec<usize> = (0..passes.len()).filter(|i| matches!(passes[*i], Pass::Once)).collect();
        let steps: Vec<usize> = (0..passes.len()).filter(|i| !matches!(passes[*i], Pass::Once)).collect();
        let late = self.parts(&unknown);
        let (late_consts, late_carries) = (count_of(late.consts), count_of(late.carries));
        let base = passes.len();
        order.extend(base..base + late_consts + late_carries);
        order.extend(steps);
        order.extend(base + late_consts + late_carries..split.unknown.inputs().len());
        let every: Vec<usize> = (0..split.unknown.outputs().len()).collect();
        let body = Arc::new(split.unknown.rearranged(&order, &every)?);
        let mut b = Builder::new("unknown");
        let inputs: Vec<Atom> = residual_types
            .iter()
            .cloned()
            .chain(positions(&flipped(known)).into_iter().map(|i| types[i].clone()))
            .map(|t| b.input(t).map(Atom::from))
            .collect::<Result<_>>()?;
        let (passed, rest) = inputs.split_at(residual_types.len());
        let (once, rest_passed) = passed.split_at(passed_once.len());
        let (started, per_step) = rest_passed.split_at(starts.len());
        let mut rest = rest.iter();
        let mut started = started.iter();
        let mut next = |i: usize| if known[i] { started.next() } else { rest.next() }.copied();
        let wanted = positions(&unknown);
        let (front, back): (Vec<usize>, Vec<usize>) = wanted.into_iter().partition(|i| *i < self.consts + self.carries);
        let mut operands = once.to_vec();
        operands.extend(front.into_iter().filter_map(&mut next));
        operands.extend_from_slice(per_step);
        operands.extend(back.into_iter().filter_map(&mut next));
        let op = Op::new(self.with(body, passed_once.len() + late_consts, late_carries));
        let results = b.equation(op, &operands, Place::unknown())?.results().map(Atom::from).collect();
        let unknown_half = b.finish(results);
        Ok(Some(Partition { known: known_half, unknown: unknown_half, known_outputs: split.known_outputs.clone() }))
    }

    /// The types of the operands.
    fn operand_types(&self) -> Vec<Type> {
        let first = self.consts + self.carries;
        let each = self.body.inputs().iter().enumerate();
        each.map(|(i, t)| if i < first { t.clone() } else { self.sequence_of(t) }).collect()
    }
}

/// Element `i` along the leading axis, as a view.
pub(crate) fn element(x: &Array, i: usize) -> Result<Array> {
    let c = x.concrete().ok_or_else(|| error!(NotConcrete, "a sequence without numbers"))?;
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
        let c = y.concrete().ok_or_else(|| error!(NotConcrete, "a step gave no numbers"))?;
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
