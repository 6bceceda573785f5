//! Reverse mode through a loop of unknown length, with a fixed number of states in memory.
//!
//! The steps are needed from the last to the first, but computed from the first to the last. With places for f states
//! besides the first one, n steps can be turned around by computing each at most r times, where r is the least number
//! with C(f+r, f) >= n (Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation",
//! 1992). With one place (two states) that is n times; with 31 it is six times for a million steps. Where to keep the next state follows from the same binomials: between a kept state and a target L steps
//! later with f places free, C(f+r-1, f) steps further on, because C(f+r, f) = C(f+r-1, f) + C(f+r-1, f-1).
//!
//! The backward pass is a `while` like any other, so it is differentiated, batched and compiled like any other. In a batch whose
//! examples have loops of different lengths all go by the plan of the longest ([`BatchMost`]): an example waits at its last
//! state for the steps that it does not have ([`OwnStep`]). With a plan for each, every step of one would be a step of all.

use std::sync::Arc;

use super::{BatchMost, OwnStep, Switch, While, apply, flipped, picked, positions, program, spread};
use crate::array::Array;
use crate::error::{Result, error};
use crate::primitives::{Op, Transpose, Transposed};
use crate::program::{Atom, Program};
use crate::trace::{bind, inline};
use crate::transform::{transpose_on, zeros_of};
use crate::types::{DType, Dim, Shape, Type};

/// What a loop is made of, seen from its linear part.
struct Parts<'a> {
    body: &'a Arc<Program>,
    linear: &'a [bool],
    slots: usize,
    /// Types of the known constants, known carries, linear carries, and linear constants.
    consts: Vec<Type>,
    state: Vec<Type>,
    carries: Vec<Type>,
    sums: Vec<Type>,
    /// From known constants and known carries to the next known carries.
    step: Program,
    /// Which results of the body are linear.
    varies: Vec<bool>,
}

/// Cotangents of a loop's linear operands.
pub(super) fn backward(w: &While, rule: &Transpose<'_>, given: &[bool], linear: &[bool]) -> Result<Transposed> {
    let (n, types) = (w.consts, w.body.inputs());
    let known = flipped(linear);
    let varies = linear[n..].to_vec();
    let parts = Parts {
        body: &w.body,
        linear,
        slots: w.checkpoints,
        consts: picked(&types[..n], &known[..n]),
        state: picked(&types[n..], &known[n..]),
        carries: picked(&types[n..], &linear[n..]),
        sums: picked(&types[..n], &linear[..n]),
        step: w.body.rearranged(&positions(&known), &positions(&known[n..]))?,
        varies,
    };
    let operand = |i: &usize| rule.operands[*i].known().cloned();
    let consts: Vec<Array> = positions(&known[..n]).iter().filter_map(operand).collect();
    let start: Vec<Array> = positions(&known[n..]).iter().map(|i| i + n).filter_map(|i| operand(&i)).collect();
    let count = match w.counted() {
        Some((i, bound)) => length(w, i, bound, rule)?,
        None => {
            let condition = Arc::new(w.condition.rearranged(&positions(&known), &[0])?);
            let step = Arc::new(parts.step.clone());
            let known = While::plain(condition, step, consts.len());
            known.with_counter()?.run_counted(&[consts.as_slice(), &start].concat())?.swap_remove(0)
        }
    };
    let mut operands = consts;
    let planned = bind(Op::fixed(&BatchMost), std::slice::from_ref(&count));
    operands.extend([count, planned, Array::from(0_i64), Array::zeros::<i64>([parts.slots])]);
    for k in &start {
        // The first state stands in the first place.
        let room = zeros_of(&parts.kept(k.ty()?));
        operands.push(put(&room, &Array::from(0_i64), k));
    }
    let bars = picked(rule.cotangents, &parts.varies);
    operands.extend(bars.into_iter().zip(&parts.carries).map(|(b, t)| b.unwrap_or_else(|| zeros_of(t))));
    operands.extend(parts.sums.iter().map(zeros_of));
    let mut results = apply(Op::new(parts.machine()?), &operands)?.split_off(3 + parts.state.len());
    let sums = results.split_off(parts.carries.len());
    let mut all = spread(sums, &linear[..n]);
    all.extend(spread(results, &linear[n..]));
    Ok(Transposed::Cotangents(all.into_iter().zip(given).map(|(bar, on)| bar.filter(|_| *on)).collect()))
}

/// The number of steps of a loop whose condition is `i < n`.
fn length(w: &While, i: usize, bound: Atom, rule: &Transpose<'_>) -> Result<Array> {
    let lost = || error!(Rule, "the bounds of a loop are known");
    let known = |i: usize| rule.operands[i].known().cloned().ok_or_else(lost);
    let end = match (bound.value(), w.condition.constant(bound)) {
        (Some(v), _) => known(v.index())?,
        (None, Some(c)) => c.to_array()?,
        (None, None) => return Err(lost()),
    };
    (end.cast(DType::I64) - known(i)?.cast(DType::I64)).maximum(0_i64).ok()
}

fn number() -> Type {
    Type::scalar(DType::I64)
}

impl Parts<'_> {
    fn kept(&self, state: &Type) -> Type {
        state.with_shape(state.shape().inserted(0, Dim::from(self.slots)))
    }

    /// The loop backward. Behind the known constants it has the number of the example's own steps. It carries the number of steps left, the last place of the stack that is taken, the step of
    /// each state on the stack, the states, cotangents of the linear carries, and sums of those of linear constants.
    fn machine(&self) -> Result<While> {
        let places = Type::new(DType::I64, Shape::from(vec![Dim::from(self.slots)]));
        let kept = self.state.iter().map(|t| self.kept(t));
        let carried: Vec<Type> = [number(), number(), places]
            .into_iter()
            .chain(kept)
            .chain(self.carries.iter().cloned())
            .chain(self.sums.iter().cloned())
            .collect();
        let inputs: Vec<Type> = self.consts.iter().cloned().chain([number()]).chain(carried).collect();
        let n = self.consts.len() + 1;
        let more = program("steps_left", inputs.clone(), |xs| Ok(vec![xs[n].gt(0_i64)]))?;
        let advance = program("advance", inputs.clone(), |xs| self.advance(xs))?;
        let turn = program("turn", inputs.clone(), |xs| self.turn(xs))?;
        let body = program("backward", inputs, |xs| {
            let [left, last, places] = [&xs[n], &xs[n + 1], &xs[n + 2]];
            let there = take(places, last).eq(left - 1_i64).cast(DType::I32);
            let operands: Vec<Array> = std::iter::once(there).chain(xs.iter().cloned()).collect();
            apply(Op::new(Switch { branches: vec![advance, turn] }), &operands)
        })?;
        Ok(While { checkpoints: self.slots, ..While::plain(more, body, n) })
    }

    /// Computes on from the last state on the stack and puts another on top.
    fn advance(&self, xs: &[Array]) -> Result<Vec<Array>> {
        let (consts, rest) = xs.split_at(self.consts.len() + 1);
        let [left, last, places] = [&rest[0], &rest[1], &rest[2]];
        let from = take(places, last);
        let distance = left - &from;
        let free = (last * -1_i64) + (self.slots as i64 - 1);
        let to = &from + stride(&free, &distance)?.minimum(&distance - 1_i64);
        let state: Vec<Array> = rest[3..3 + self.state.len()].iter().map(|s| take(s, last)).collect();
        let n = consts.len();
        let (known, states) = (self.consts.iter().cloned(), self.state.iter().cloned());
        let inputs: Vec<Type> = known.chain([number(), number(), number()]).chain(states).collect();
        let more = program("on_the_way", inputs.clone(), |xs| Ok(vec![xs[n + 1].lt(&xs[n])]))?;
        let step = program("again", inputs, |xs| {
            let (consts, count, at) = (&xs[..n - 1], &xs[n - 1], &xs[n + 1]);
            let operands = [consts, &xs[n + 2..]].concat();
            let next = own(at, count, &operands, |xs| Ok(xs[n - 1..].to_vec()), |xs| inline(&self.step, xs))?;
            Ok(std::iter::once(at + 1_i64).chain(next).collect())
        })?;
        let operands: Vec<Array> = consts.iter().cloned().chain([to.clone(), from]).chain(state).collect();
        let mut reached = apply(Op::new(While::plain(more, step, n + 1)), &operands)?;
        let reached = reached.split_off(1);
        let top = last + 1_i64;
        let mut next = vec![left.clone(), top.clone(), put(places, &top, &to)];
        next.extend(rest[3..].iter().zip(&reached).map(|(room, k)| put(room, &top, k)));
        next.extend_from_slice(&rest[3 + self.state.len()..]);
        Ok(next)
    }

    /// Turns one step around, at the last state on the stack, which is needed no more.
    fn turn(&self, xs: &[Array]) -> Result<Vec<Array>> {
        let n = self.consts.len();
        let (consts, count, rest) = (&xs[..n], &xs[n], &xs[n + 1..]);
        let [left, last] = [&rest[0], &rest[1]];
        let (states, bars) = rest[3..].split_at(self.state.len());
        let known: Vec<Array> = consts.iter().cloned().chain(states.iter().map(|s| take(s, last))).collect();
        let at = left - 1_i64;
        let operands = [known.as_slice(), bars].concat();
        let keep = |xs: &[Array]| Ok(xs[known.len()..].to_vec());
        let bars = own(&at, count, &operands, keep, |xs| self.turned(xs.split_at(known.len())))?;
        let mut next = vec![at, (last - 1_i64).maximum(0_i64), rest[2].clone()];
        next.extend_from_slice(states);
        next.extend(bars);
        Ok(next)
    }

    /// Cotangents of linear carries and sums of those of linear constants, one step earlier.
    fn turned(&self, (known, bars): (&[Array], &[Array])) -> Result<Vec<Array>> {
        let (carries, sums) = bars.split_at(self.carries.len());
        let bars = spread(carries.iter().cloned(), &self.varies);
        let mut bars = transpose_on(self.body, self.linear, known, &bars)?;
        let carry_bars = bars.split_off(sums.len());
        let next = carry_bars.into_iter().zip(&self.carries).map(|(b, t)| b.unwrap_or_else(|| zeros_of(t)));
        let sums = sums.iter().zip(bars).map(|(sum, bar)| bar.map_or_else(|| sum.clone(), |b| sum + b));
        Ok(next.chain(sums).collect())
    }
}

/// What `does` gives where a step is one of the example's own `count`, and elsewhere what `keeps` gives.
fn own(
    step: &Array,
    count: &Array,
    operands: &[Array],
    keeps: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    does: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
) -> Result<Vec<Array>> {
    let types = operands.iter().map(|x| x.ty().cloned()).collect::<Result<Vec<Type>>>()?;
    let branches = vec![program("wait", types.clone(), keeps)?, program("own_step", types, does)?];
    let is_own = bind(Op::fixed(&OwnStep), &[step.clone(), count.clone()]).cast(DType::I32);
    let operands: Vec<Array> = std::iter::once(is_own).chain(operands.iter().cloned()).collect();
    apply(Op::new(Switch { branches }), &operands)
}

/// C(f+r-1, f) for the least r with C(f+r, f) >= distance, computed from r = 0 on.
fn stride(free: &Array, distance: &Array) -> Result<Array> {
    let types = vec![number(); 5];
    // Constants: free, distance. Carries: C(f+r-1, f), C(f+r, f), r.
    let more = program("too_few", types.clone(), |xs| Ok(vec![xs[3].lt(&xs[1]) & xs[0].gt(0_i64)]))?;
    let step = program("binomial", types, |xs| {
        let r = &xs[4] + 1_i64;
        Ok(vec![xs[3].clone(), &xs[3] * (&xs[0] + &r) / &r, r])
    })?;
    let one = Array::from(1_i64);
    let operands = [free.clone(), distance.clone(), one.clone(), one, Array::from(0_i64)];
    Ok(apply(Op::new(While::plain(more, step, 2)), &operands)?.swap_remove(0))
}

fn starts(i: &Array, rank: usize) -> Vec<Array> {
    (0..rank).map(|axis| if axis == 0 { i.clone() } else { Array::from(0_i64) }).collect()
}

/// The element at a place of a stack.
fn take(stack: &Array, i: &Array) -> Array {
    let one = stack.shape().replaced(0, Dim::from(1usize));
    stack.dynamic_slice(&starts(i, stack.rank()), one).reshape(stack.shape().without(|axis| axis == 0))
}

/// The stack with another element at a place.
fn put(stack: &Array, i: &Array, element: &Array) -> Array {
    let row = element.reshape(element.shape().inserted(0, Dim::from(1usize)));
    stack.dynamic_update_slice(&row, &starts(i, stack.rank()))
}
