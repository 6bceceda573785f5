//! A loop that runs while a condition on its values holds.
//!
//! Operands are constants and carries; the condition and the body take both, the body gives the next carries. Forward
//! mode carries tangents along. Reverse mode goes through the steps from the last to the first: [`treeverse`] says how
//! it gets at their values without keeping them all. A loop with a limit may keep them: it becomes a [`Scan`].

use std::sync::Arc;

use super::dual::Dual;
use super::groups::Groups;
use super::scan::turned_half;
use super::switch::{lanes, safe_operands};
use super::{
    Scan, Switch, apply, dependent, fits, flipped, gives, outputs, picked, positions, program, samples_of, settle,
    single, spread, treeverse,
};
use crate::array::Array;
use crate::error::{Result, error, fail};
use crate::interpret::prepare;
use crate::primitives::effects::why_not_for_some;
use crate::primitives::elementwise::{Add, Compare, Direction};
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Partition, Primitive, Pruned, Sample, Transpose, Transposed,
    Types,
};
use crate::program::{Atom, Program, ValueId};
use crate::rules_of;
use crate::trace::inline;
use crate::transform::{Terms, jvp_of, place_of_effect, split_of, vmap_of};
use crate::types::{DType, Dim, Effects, Shape, Type};

/// Runs a body while a condition holds.
#[derive(Clone, Debug)]
pub struct While {
    /// From constants and carries to a bool.
    pub condition: Arc<Program>,
    /// From constants and carries to the next carries.
    pub body: Arc<Program>,
    /// How many of the operands are constants.
    pub consts: usize,
    /// The most steps there will be; reverse mode then keeps what it needs of every step.
    pub limit: Option<usize>,
    /// Without a limit: how many states reverse mode keeps at a time, at least two.
    pub checkpoints: usize,
    /// What it is a batch of, if it is one. It says nothing that the programs do not say, and is no part of the text.
    pub(crate) batch_of: BatchOf,
}

/// So many numbers that examples share may be repeated for each that they carry: what is multiplied with a matrix for each of one batch had better stay a product of matrices.
const REPEATED: usize = 16;

/// A loop whose examples end one by one, and the loop that each of them is: a batch of the batch then is one of more examples, and need not wait twice.
pub(crate) type BatchOf = Option<Arc<Examples>>;

#[derive(Debug)]
pub(crate) struct Examples {
    each: While,
    size: Dim,
    batched: Vec<bool>,
    /// The programs of the batch: of a loop with others it says nothing.
    programs: [Arc<Program>; 2],
}

impl While {
    /// A loop without limit over carries, with the default number of checkpoints.
    pub(crate) fn plain(condition: Arc<Program>, body: Arc<Program>, consts: usize) -> While {
        While { condition, body, consts, limit: None, checkpoints: While::CHECKPOINTS, batch_of: None }
    }

    /// States that reverse mode keeps unless it is told otherwise: with 32 of them half a million steps are computed
    /// six times at most.
    pub const CHECKPOINTS: usize = 32;

    /// Something of each operand, or of each input of the programs, by what the operands are.
    fn groups<'a, T>(&self, all: &'a [T]) -> Groups<&'a [T]> {
        Groups::of(all, self.consts, all.len() - self.consts)
    }

    fn settle(&self, flags: &[bool], step: impl FnMut(&[bool]) -> Result<Vec<bool>>) -> Result<Vec<bool>> {
        settle(self.consts..self.body.inputs().len(), flags, step)
    }

    /// The loop as a program with a scan of as many steps as the limit allows: a step whose condition fails keeps all.
    fn as_scan(&self, limit: usize) -> Result<Arc<Program>> {
        let types = self.body.inputs();
        let step = program(self.body.name(), types.to_vec(), |xs| {
            let keep = program("keep", types.to_vec(), |xs| Ok(xs[self.consts..].to_vec()))?;
            let goes_on = inline(&self.condition, xs)?.swap_remove(0).cast(DType::I32);
            let operands: Vec<Array> = std::iter::once(goes_on).chain(xs.iter().cloned()).collect();
            apply(Op::new(Switch { branches: vec![keep, self.body.clone()] }), &operands)
        })?;
        let scan = Scan {
            body: step,
            consts: self.consts,
            carries: types.len() - self.consts,
            length: Dim::from(limit),
            reverse: false,
        };
        let every: Vec<usize> = (0..types.len()).collect();
        single(self.body.name(), types, Op::new(scan), &every, |results, _| results.to_vec()).map(Arc::new)
    }

    /// The input that counts the steps of a loop and what it is compared with, if the condition is `i < n` and a step makes
    /// i one more: such a loop knows its length before it runs.
    pub(super) fn counted(&self) -> Option<(usize, Atom)> {
        let one_more = |p: &Program, v: ValueId, i: usize| {
            let e = p.equations().iter().find(|e| e.results().any(|r| r == v))?;
            let operands = p.operands(e);
            let by_one = p.constant(*operands.get(1)?)?.splat_value()?.to_i64()? == 1;
            (e.op().is::<Add>() && by_one && operands[0].value()?.index() == i).then_some(())
        };
        let [e] = self.condition.equations() else { return None };
        let [i, bound] = self.condition.operands(e) else { return None };
        let less = e.op().downcast::<Compare>().is_some_and(|c| c.direction == Direction::Lt);
        let i = i.value()?.index();
        let carried = i >= self.consts && self.condition.inputs().get(i).is_some_and(|t| t.dtype().is_int());
        let fixed = bound.value().is_none_or(|v| v.index() < self.consts);
        if !less || !carried || !fixed || self.condition.outputs() != [e.result().into()] {
            return None;
        }
        one_more(&self.body, self.body.outputs()[i - self.consts].value()?, i)?;
        Some((i, *bound))
    }

    /// The same loop with a counter before its other carries.
    pub(super) fn with_counter(&self) -> Result<While> {
        let (n, body) = (self.consts, self.counting_body()?);
        let without = |xs: &[Array]| [&xs[..n], &xs[n + 1..]].concat();
        let inputs = body.inputs().to_vec();
        let condition = program(self.condition.name(), inputs, |xs| inline(&self.condition, &without(xs)))?;
        Ok(While { condition, body, ..self.clone() })
    }

    /// The body with a counter before its carries.
    fn counting_body(&self) -> Result<Arc<Program>> {
        let (n, types) = (self.consts, self.body.inputs());
        let number = std::iter::once(Type::scalar(DType::I64));
        let inputs: Vec<Type> = types[..n].iter().cloned().chain(number).chain(types[n..].iter().cloned()).collect();
        program(self.body.name(), inputs, |xs| {
            let next = inline(&self.body, &[&xs[..n], &xs[n + 1..]].concat())?;
            Ok(std::iter::once(&xs[n] + 1_i64).chain(next).collect())
        })
    }

    /// Runs a loop with a counter from zero; the count is the first result.
    pub(super) fn run_counted(self, operands: &[Array]) -> Result<Vec<Array>> {
        let (consts, carries) = operands.split_at(self.consts);
        let operands: Vec<Array> =
            consts.iter().cloned().chain([Array::from(0_i64)]).chain(carries.iter().cloned()).collect();
        apply(Op::new(self), &operands)
    }

    /// Runs so many steps, whatever the condition would say.
    fn for_steps(&self, count: &Array, operands: &[Array]) -> Result<Vec<Array>> {
        let n = self.consts;
        let counting = self.counting_body()?;
        let number = std::iter::once(Type::scalar(DType::I64));
        let inputs: Vec<Type> = number.chain(counting.inputs().iter().cloned()).collect();
        let condition = program("steps_left", inputs.clone(), |xs| Ok(vec![xs[n + 1].lt(&xs[0])]))?;
        let body = program(self.body.name(), inputs, |xs| inline(&counting, &xs[1..]))?;
        let op = While { condition, body, consts: n + 1, ..self.clone() };
        let operands: Vec<Array> = std::iter::once(count.clone()).chain(operands.iter().cloned()).collect();
        Ok(op.run_counted(&operands)?.split_off(1))
    }

    /// The loop over what is known in every step. It gives its results, the number of steps if the other half cannot tell, and the operands.
    fn known_half(&self, given: &[bool], known: &[bool], counts: bool) -> Result<Program> {
        let inputs = positions(known);
        let on = self.groups(known);
        let early = While {
            condition: Arc::new(self.condition.rearranged(&inputs, &[0])?),
            body: Arc::new(self.body.rearranged(&inputs, &positions(on.carries))?),
            consts: on.marked().consts,
            ..self.clone()
        };
        let made = program("known", picked(self.body.inputs(), given), |xs| {
            let operands = picked(xs, &picked(known, given));
            let made =
                if counts { early.with_counter()?.run_counted(&operands)? } else { apply(Op::new(early), &operands)? };
            let (count, results) = made.split_at(usize::from(counts));
            Ok([results, count, xs].concat())
        })?;
        Ok(Program::clone(&made))
    }

    /// The loop once more, with the rest beside what is known. It needs no more than the operands, and the number of steps, so that it need not
    /// ask the condition again.
    fn unknown_half(&self, given: &[bool], unknown: &[bool], counts: bool) -> Result<Program> {
        let again = self.silenced()?;
        let types = self.body.inputs();
        let (early, late) = (picked(types, given), picked(types, &flipped(given)));
        let counter = counts.then(|| Type::scalar(DType::I64));
        let made = program("unknown", counter.into_iter().chain(early).chain(late), |xs| {
            let (count, xs) = xs.split_at(usize::from(counts));
            let (early, late) = xs.split_at(positions(given).len());
            let (mut early, mut late) = (early.iter(), late.iter());
            let from = |given: &bool| if *given { early.next() } else { late.next() };
            let operands: Vec<Array> = given.iter().filter_map(from).cloned().collect();
            let results = match count.first() {
                Some(count) => again.for_steps(count, &operands)?,
                None => apply(Op::new(again), &operands)?,
            };
            Ok(picked(&results, self.groups(unknown).carries))
        })?;
        Ok(Program::clone(&made))
    }

    /// The loop as it is computed once more: what looks at its values has looked.
    fn silenced(&self) -> Result<While> {
        let (condition, body) = (self.condition.silenced()?, self.body.silenced()?);
        let left = body.effects().union(condition.effects());
        if !left.is_pure() {
            let place = [&self.body, &self.condition].into_iter().find_map(|p| place_of_effect(p, left));
            return Err(error!(
                MissingRule,
                "the derivative of a `while` loop computes its steps again, and an effect whose results it needs must not happen \
                 again"
            )
            .at(place.unwrap_or_default())
            .help("keep what the steps need: `WhileOptions::new().history(History::Limit(n)).while_loop(..)`, or use `scan` or `fori_loop`"));
        }
        Ok(While { condition: Arc::new(condition), body: Arc::new(body), ..self.clone() })
    }

    /// What it is a batch of.
    fn examples(&self) -> Option<&Examples> {
        let examples = self.batch_of.as_deref()?;
        let [condition, body] = &examples.programs;
        let same = Arc::ptr_eq(condition, &self.condition) && Arc::ptr_eq(body, &self.body);
        (same && self.consts == examples.each.consts && self.limit == examples.each.limit).then_some(examples)
    }

    /// A batch of a batch, as one of all examples. None if it is no batch, or what all examples of one of the two share would be repeated and is much more than what
    /// the loop carries.
    fn more_examples(&self, rule: &Batch<'_>) -> Result<Option<Outputs>> {
        let Some(examples) = self.examples() else { return Ok(None) };
        let (outer, inner) = (rule.size, &examples.size);
        // Shapes of one example's operands: each has the axes of the batches that it is in.
        let (mut shapes, mut carried, mut repeated) = (Vec::new(), 0, 0);
        for (i, x) in rule.inputs.iter().enumerate() {
            let both = [rule.batched[i], examples.batched[i]];
            let shape: Shape = x.shape().iter().skip(both.iter().filter(|on| **on).count()).cloned().collect();
            match shape.iter().try_fold(1_usize, |n, d| n.checked_mul(d.as_usize()?)) {
                Some(n) if i >= self.consts => carried += n,
                Some(n) if both[0] != both[1] => repeated += n,
                None if both[0] != both[1] => return Ok(None),
                _ => {}
            }
            shapes.push((both, shape));
        }
        if repeated > REPEATED * carried {
            return Ok(None);
        }
        let size = outer.clone() * inner.clone();
        let flat = |(x, (both, shape)): (&Array, &([bool; 2], Shape))| {
            if *both == [false; 2] {
                return x.clone();
            }
            let behind =
                |n: &[&Dim]| -> Shape { n.iter().map(|d| (*d).clone()).chain(shape.iter().cloned()).collect() };
            let x = if both[1] { x.clone() } else { x.reshape(x.shape().inserted(1, Dim::from(1usize))) };
            x.broadcast_to(behind(&[outer, inner])).reshape(behind(&[&size]))
        };
        let inputs: Vec<Array> = rule.inputs.iter().zip(&shapes).map(flat).collect();
        let batched: Vec<bool> = shapes.iter().map(|(both, _)| both.contains(&true)).collect();
        let Batched::Outputs(results) =
            examples.each.batch(&Batch { size: &size, inputs: &inputs, batched: &batched })?
        else {
            return Ok(None);
        };
        let apart = |y: Array| {
            let one = y.shape().iter().skip(1).cloned();
            let shape: Shape = [outer, inner].into_iter().cloned().chain(one).collect();
            y.reshape(shape).ok()
        };
        results.into_iter().map(apart).collect::<Result<Outputs>>().map(Some)
    }

    fn condition_depends_on(&self, flags: &[bool]) -> Result<bool> {
        Ok(dependent(&self.condition, flags)?.contains(&true))
    }
}

impl Primitive for While {
    rules_of!("while"; condition, body, consts, limit, checkpoints; not batch_of);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        if self.consts > inputs.len() {
            fail!(Signature, "{} operand(s) are too few for {} constant(s)", inputs.len(), self.consts);
        }
        if self.checkpoints < 2 {
            return Err(error!(Value, "reverse mode of a loop needs at least 2 checkpoints, not {}", self.checkpoints)
                .help("the first state and one more; more of them take more memory and fewer steps again"));
        }
        fits(&self.condition, inputs, infer)?;
        gives(&self.condition, &[Type::scalar(DType::Bool)], "the condition", infer)?;
        fits(&self.body, inputs, infer)?;
        let carries = self.body.inputs()[self.consts..].to_vec();
        gives(&self.body, &carries, "the body", infer)?;
        Ok(carries.into())
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (condition, body) = (prepare(&self.condition), prepare(&self.body));
        let mut state = inputs.to_vec();
        let mut steps = 0;
        while self.limit.is_none_or(|most| steps < most) && condition.interpret(&state)?[0].item::<bool>()? {
            let next = body.interpret(&state)?;
            state.truncate(self.consts);
            state.extend(next);
            steps += 1;
        }
        Ok(state.split_off(self.consts).into())
    }

    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        let active: Vec<bool> = rule.tangents.iter().map(Option::is_some).collect();
        let active = self.settle(&active, |a| Ok(jvp_of(&self.body, a)?.1))?;
        let (derivative, varies) = jvp_of(&self.body, &active)?;
        let on = self.groups(&active);
        if !on.carries.contains(&true) {
            return Ok(Derivative::Zero);
        }
        let dual = Dual { types: self.groups(self.body.inputs()), on };
        let condition = program(self.condition.name(), dual.inputs(), |xs| inline(&self.condition, &dual.apart(xs).0))?;
        let body = dual.body(&derivative, &varies)?;
        let operands = dual.operands(self.groups(rule.primals), self.groups(rule.tangents));
        let op = While { condition, body, consts: self.consts + on.marked().consts, ..self.clone() };
        let mut values = apply(Op::new(op), &operands)?;
        let dots = values.split_off(on.carries.len());
        Ok(Derivative::Whole { outputs: outputs(values), tangents: spread(dots, on.carries).into() })
    }

    fn transpose(&self, rule: &Transpose<'_>) -> Result<Transposed> {
        let given: Vec<bool> = rule.operands.iter().map(|o| o.unknown().is_some()).collect();
        let linear = self.settle(&given, |f| dependent(&self.body, f))?;
        if self.condition_depends_on(&linear)? {
            return Ok(Transposed::NotLinear);
        }
        if self.limit.is_some() {
            let Some(parts) = self.partial_eval(&flipped(&given))? else { return Ok(Transposed::NotLinear) };
            let known: Vec<Array> = rule.operands.iter().filter_map(|o| o.known().cloned()).collect();
            return turned_half(&parts, &known, rule.cotangents, &given);
        }
        treeverse::backward(self, rule, &given, &linear)
    }

    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        let n = self.consts;
        let flags = self.settle(rule.batched, |f| Ok(vmap_of(&self.body, f, &f[n..], rule.size)?.1))?;
        let (condition, by_lane) = vmap_of(&self.condition, &flags, &[false], rule.size)?;
        let operands = |flags: &[bool]| -> Vec<Array> {
            let each = flags.iter().enumerate();
            each.map(|(i, on)| if *on { rule.with_axis(i) } else { rule.inputs[i].clone() }).collect()
        };
        let to_all = |results: Vec<Array>, flags: &[bool]| -> Outputs {
            let each = results.into_iter().zip(flags);
            each.map(|(y, on)| if *on { y } else { y.broadcast_to(y.shape().inserted(0, rule.size.clone())) }).collect()
        };
        if !by_lane[0] {
            let (body, _) = vmap_of(&self.body, &flags, &flags[n..], rule.size)?;
            let results = apply(Op::new(While { condition, body, ..self.clone() }), &operands(&flags))?;
            return Ok(Batched::Outputs(to_all(results, &flags[n..])));
        }
        if !self.effects().is_pure() {
            return Ok(Batched::Missing(why_not_for_some(
                &[&self.condition, &self.body],
                "its effects would have to go on for some examples and not for others: loop over the examples with `gradus::map`",
            )));
        }
        // The loop runs until the last example is done. An example that is done keeps its values; what runs in its lane
        // starts from an example that is not done, so that nothing it computes can poison a derivative.
        let mut flags = flags;
        flags[n..].fill(true);
        let every = operands(&flags);
        if rule.size.constant() == Some(0) {
            return Ok(Batched::Outputs(every[n..].into()));
        }
        if let Some(results) = self.more_examples(rule)? {
            return Ok(Batched::Outputs(results));
        }
        let (condition, _) = vmap_of(&self.condition, &flags, &[true], rule.size)?;
        let (body, _) = vmap_of(&self.body, &flags, &flags[n..], rule.size)?;
        let types = every.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>()?;
        let any =
            program(condition.name(), types.clone(), |xs| Ok(vec![inline(&condition, xs)?.swap_remove(0).any()]))?;
        let step = program(body.name(), types, |xs| {
            let goes_on = inline(&condition, xs)?.swap_remove(0);
            let next = inline(&body, &safe_operands(&goes_on, xs, &flags))?;
            next.iter().zip(&xs[n..]).map(|(new, old)| lanes(&goes_on, new).select(new, old).ok()).collect()
        })?;
        let examples = Examples {
            each: While { batch_of: None, ..self.clone() },
            size: rule.size.clone(),
            batched: flags,
            programs: [any.clone(), step.clone()],
        };
        let op = While { condition: any, body: step, batch_of: Some(Arc::new(examples)), ..self.clone() };
        Ok(Batched::Outputs(outputs(apply(Op::new(op), &every)?)))
    }

    fn holds_programs(&self) -> bool {
        true
    }

    fn partial_eval(&self, known: &[bool]) -> Result<Option<Partition>> {
        // As a scan the loop asks its condition as often as the limit allows: one with effects must not be.
        if let Some(limit) = self.limit.filter(|_| self.condition.effects().is_pure()) {
            let whole = self.as_scan(limit)?;
            let none = vec![false; whole.outputs().len()];
            let at_hand = vec![false; known.len()];
            let split = split_of(&whole, Terms { known, late: &none, at_hand: Some(&at_hand) })?;
            return Ok(Some(Partition {
                known: split.known.clone(),
                unknown: split.unknown.clone(),
                known_outputs: split.known_outputs.clone(),
            }));
        }
        let unknown = self.settle(&flipped(known), |u| dependent(&self.body, u))?;
        let is_known = flipped(&unknown);
        if self.condition_depends_on(&unknown)? || !self.groups(&is_known).carries.contains(&true) {
            return Ok(None);
        }
        let counts = self.counted().is_none();
        Ok(Some(Partition {
            known: self.known_half(known, &is_known, counts)?,
            unknown: self.unknown_half(known, &unknown, counts)?,
            known_outputs: self.groups(&is_known).carries.to_vec(),
        }))
    }

    fn depends(&self, on: &[bool]) -> Option<Vec<bool>> {
        let settled = self.settle(on, |f| dependent(&self.body, f)).ok()?;
        let all = self.condition_depends_on(&settled).ok()?;
        Some(settled[self.consts..].iter().map(|on| all || *on).collect())
    }

    fn prune(&self, used: &[bool]) -> Result<Option<Pruned>> {
        let n = self.consts;
        let by_condition = self.condition.needed_inputs(self.condition.outputs());
        let mut wanted: Vec<bool> = used.iter().zip(&by_condition[n..]).map(|(u, c)| *u || *c).collect();
        let mut operands = loop {
            let needed = self.body.needed_inputs(&picked(self.body.outputs(), &wanted));
            let before = wanted.clone();
            wanted.iter_mut().zip(&needed[n..]).for_each(|(w, on)| *w |= on);
            if wanted == before {
                break needed;
            }
        };
        operands[..n].iter_mut().zip(&by_condition).for_each(|(on, c)| *on |= c);
        operands[n..].copy_from_slice(&wanted);
        if operands.iter().all(|on| *on) {
            return Ok(None);
        }
        let inputs = positions(&operands);
        let condition = Arc::new(self.condition.rearranged(&inputs, &[0])?);
        let body = Arc::new(self.body.rearranged(&inputs, &positions(&wanted))?);
        let op = Op::new(While { condition, body, consts: positions(&operands[..n]).len(), ..self.clone() });
        Ok(Some(Pruned { op, operands, results: wanted }))
    }

    fn effects(&self) -> Effects {
        self.body.effects().union(self.condition.effects())
    }

    fn samples() -> Vec<Sample> {
        let text = |limit: &str, checkpoints: usize| {
            format!(
                "fn s(x0: f64[2], x1: i64[], x2: f64[2], x3: f64[]) -> (i64[], f64[2], f64[]) {{\n  \
                 x4: i64[], x5: f64[2], x6: f64[] = while{{condition=fn more(x0: f64[2], x1: i64[], x2: f64[2], x3: f64[]) -> bool[] {{\n    \
                 x4: bool[] = compare{{direction=lt}} x1 4:i64[]\n    return x4\n  }}, \
                 body=fn step(x0: f64[2], x1: i64[], x2: f64[2], x3: f64[]) -> (i64[], f64[2], f64[]) {{\n    \
                 x4: i64[] = add x1 1:i64[]\n    x5: f64[2] = mul x2 x0\n    x6: f64[2] = cos x5\n    \
                 x7: f64[] = reduce_sum{{axes=[0]}} x6\n    x8: f64[] = mul x3 x7\n    return x4, x6, x8\n  }}, \
                 consts=1, limit={limit}, checkpoints={checkpoints}}} x0 x1 x2 x3\n  return x4, x5, x6\n}}\n"
            )
        };
        let inputs = |start: i64| {
            let (w, c) = (Array::from([0.5_f64, -0.75]), Array::from([0.3_f64, 0.9]));
            vec![w, Array::from(start), c, Array::from(0.8_f64)]
        };
        let texts = [
            (text("[]", 2), inputs(0)),
            (text("[]", 8), inputs(4)),
            (text("[5]", 8), inputs(1)),
            (text("[2]", 8), inputs(0)),
        ];
        samples_of(&texts.each_ref().map(|(t, i)| (t.as_str(), i.clone())))
    }
}
