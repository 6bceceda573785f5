//! A branch: of several programs one runs, chosen by a number. `cond` is a branch of two.
//!
//! While the number is one for all examples, transformations keep the branch. A number that differs from example to
//! example turns it into all branches and a selection: [`by_lane`] says how finished lanes are kept from harm.

use std::sync::Arc;

use super::{apply, fits, gives, outputs, picked, positions, program, samples_of, single, spread};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::interpret::interpret;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Partition, Primitive, Pruned, Sample, Transpose, Transposed,
    Types,
};
use crate::program::Program;
use crate::rules_of;
use crate::trace::inline;
use crate::transform::{jvp_of, split_of, transpose_of, vmap_of, zeros_of};
use crate::types::{DType, Dim, Effects, Type};

/// Runs the branch of a number (an `i32` scalar, the first operand) on the other operands. A number outside the
/// branches means the nearest one.
#[derive(Clone, Debug)]
pub struct Switch {
    /// The branches; they take and give the same types.
    pub branches: Vec<Arc<Program>>,
}

fn switch(branches: Vec<Arc<Program>>) -> Op {
    Op::new(Switch { branches })
}

impl Primitive for Switch {
    rules_of!("switch"; branches);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        let (Some(index), Some(first)) = (inputs.first(), self.branches.first()) else {
            fail!(Signature, "takes a number and at least one branch");
        };
        if *index != Type::scalar(DType::I32) {
            fail!(DType, "the number of a branch is i32[], not {index}");
        }
        let types = first.output_types();
        for branch in &self.branches {
            fits(branch, &inputs[1..], infer)?;
            gives(branch, &types, "branch", infer)?;
        }
        Ok(types.into())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let last = self.branches.len() - 1;
        let index = inputs[0].item::<i32>()?.clamp(0, last as i32) as usize;
        interpret(&self.branches[index], &inputs[1..]).map(outputs)
    }
    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        let active: Vec<bool> = rule.tangents[1..].iter().map(Option::is_some).collect();
        let parts = self.branches.iter().map(|b| jvp_of(b, &active)).collect::<Result<Vec<_>>>()?;
        let count = self.branches[0].outputs().len();
        // A result varies if it does in some branch.
        let varies: Vec<bool> = (0..count).map(|i| parts.iter().any(|(_, v)| v[i])).collect();
        if !varies.contains(&true) {
            return Ok(Derivative::Zero);
        }
        let branches = parts.iter().map(|(p, have)| with_zeros(p, count, have, &varies)).collect::<Result<_>>()?;
        let mut inputs = rule.primals.to_vec();
        inputs.extend(rule.tangents.iter().flatten().cloned());
        let mut all = apply(switch(branches), &inputs)?;
        let dots = all.split_off(count);
        Ok(Derivative::Whole { outputs: outputs(all), tangents: spread(dots, &varies).into() })
    }
    fn transpose(&self, rule: &Transpose<'_>) -> Result<Transposed> {
        let linear: Vec<bool> = rule.operands.iter().map(|o| o.unknown().is_some()).collect();
        if linear[0] {
            return Ok(Transposed::NotLinear);
        }
        let branches = self.branches.iter().map(|b| transpose_of(b, &linear[1..])).collect::<Result<_>>()?;
        let mut inputs: Vec<Array> = rule.operands.iter().filter_map(|o| o.known().cloned()).collect();
        let types = self.branches[0].output_types();
        inputs.extend(rule.cotangents.iter().zip(&types).map(|(b, t)| b.clone().unwrap_or_else(|| zeros_of(t))));
        let bars = apply(switch(branches), &inputs)?;
        Ok(Transposed::Cotangents(spread(bars, &linear).into()))
    }
    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        if !rule.batched[0] {
            let every = vec![true; self.branches[0].outputs().len()];
            let branches = self.branches.iter().map(|b| vmap_of(b, &rule.batched[1..], &every, rule.size));
            let branches = branches.map(|b| b.map(|(p, _)| p)).collect::<Result<_>>()?;
            return Ok(Batched::Outputs(outputs(apply(switch(branches), rule.inputs)?)));
        }
        if !self.effects().is_pure() {
            return Ok(Batched::Missing(
                "its effects would have to happen for some examples and not for others: loop over the examples with `gradus::map`, or \
                 choose with `select` and let the effect look at the mask",
            ));
        }
        by_lane(&self.branches, rule).map(|o| Batched::Outputs(outputs(o)))
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn partial_eval(&self, known: &[bool]) -> Result<Option<Partition>> {
        if !known[0] { Ok(None) } else { split(&self.branches, &known[1..]) }
    }
    fn depends(&self, on: &[bool]) -> Option<Vec<bool>> {
        let mut any = vec![on[0]; self.branches[0].outputs().len()];
        for b in &self.branches {
            any.iter_mut().zip(b.outputs_depending_on(&on[1..])).for_each(|(all, here)| *all |= here);
        }
        Some(any)
    }
    fn prune(&self, used: &[bool]) -> Result<Option<Pruned>> {
        let mut needed = vec![false; self.branches[0].inputs().len()];
        for b in &self.branches {
            let here = b.needed_inputs(&picked(b.outputs(), used));
            needed.iter_mut().zip(here).for_each(|(all, on)| *all |= on);
        }
        if used.iter().chain(&needed).all(|on| *on) {
            return Ok(None);
        }
        let smaller = |b: &Arc<Program>| b.rearranged(&positions(&needed), &positions(used)).map(Arc::new);
        let op = switch(self.branches.iter().map(smaller).collect::<Result<_>>()?);
        let operands = std::iter::once(true).chain(needed).collect();
        Ok(Some(Pruned { op, operands, results: used.to_vec() }))
    }
    fn effects(&self) -> Effects {
        self.branches.iter().fold(Effects::PURE, |all, b| all.union(b.effects()))
    }
    fn samples() -> Vec<Sample> {
        let text = "fn s(x0: i32[], x1: f64[2], x2: f64[]) -> (f64[2], f64[]) {\n  \
            x3: f64[2], x4: f64[] = switch{branches=[fn a(x0: f64[2], x1: f64[]) -> (f64[2], f64[]) {\n    \
            x2: f64[2] = sin x0\n    x3: f64[] = mul x1 x1\n    return x2, x3\n  }, \
            fn b(x0: f64[2], x1: f64[]) -> (f64[2], f64[]) {\n    \
            x2: f64[2] = mul x0 x0\n    x3: f64[2] = mul x2 x0\n    return x3, 1.0:f64[]\n  }, \
            fn c(x0: f64[2], x1: f64[]) -> (f64[2], f64[]) {\n    \
            x2: f64[] = reduce_sum{axes=[0]} x0\n    x3: f64[] = exp x2\n    return x0, x3\n  }]} x0 x1 x2\n  \
            return x3, x4\n}\n";
        let inputs = |i: i32| vec![Array::from(i), Array::from([0.5_f64, -1.25]), Array::from(0.75_f64)];
        samples_of(&[(text, inputs(0)), (text, inputs(1)), (text, inputs(7))])
    }
}

/// A derivative that gives a tangent for every result in `want`: zeros where this branch has none.
fn with_zeros(p: &Arc<Program>, count: usize, have: &[bool], want: &[bool]) -> Result<Arc<Program>> {
    if have == want {
        return Ok(p.clone());
    }
    program(p.name(), p.inputs().to_vec(), |xs| {
        let mut all = inline(p, xs)?;
        let dots = spread(all.split_off(count), have);
        let types = p.output_types();
        let dots = dots.into_iter().enumerate().filter(|(i, _)| want[*i]);
        let dots: Vec<Array> = dots.map(|(i, dot)| dot.unwrap_or_else(|| zeros_of(&types[i]))).collect();
        all.extend(dots);
        Ok(all)
    })
}

/// Both halves choose by the same number. What a branch saves goes into a slot of its type; branches share slots, and
/// fill those that they do not use with zeros.
fn split(branches: &[Arc<Program>], known: &[bool]) -> Result<Option<Partition>> {
    let count = branches[0].outputs().len();
    let not_at_hand = vec![false; known.len()];
    let mut late = vec![false; count];
    let parts = loop {
        let parts = branches.iter().map(|b| split_of(b, known, &late, &not_at_hand)).collect::<Result<Vec<_>>>()?;
        let next: Vec<bool> = (0..count).map(|i| parts.iter().any(|p| !p.known_outputs[i])).collect();
        if next == late {
            break parts;
        }
        late = next;
    };
    let early = count - positions(&late).len();
    if early == 0 && parts.iter().all(|p| p.known.equations().is_empty()) {
        return Ok(None);
    }
    let types = branches[0].inputs();
    let known_types = picked(types, known);
    let unknown_types: Vec<Type> = (0..types.len()).filter(|i| !known[*i]).map(|i| types[i].clone()).collect();
    // Where each branch finds its residuals: known operands as they are, or slots.
    enum Place {
        Operand(usize),
        Slot(usize),
    }
    let mut direct: Vec<usize> = Vec::new();
    let mut slots: Vec<Type> = Vec::new();
    let mut places: Vec<Vec<Place>> = Vec::new();
    for part in &parts {
        let mut taken = vec![false; slots.len()];
        let mut here = Vec::new();
        for (atom, ty) in part.known.outputs()[early..].iter().zip(&part.residuals) {
            let operand = atom.value().map(|v| v.index()).filter(|v| *v < known_types.len());
            here.push(match operand {
                Some(i) => {
                    if !direct.contains(&i) {
                        direct.push(i);
                    }
                    Place::Operand(i)
                }
                None => {
                    let free = (0..slots.len()).find(|s| !taken[*s] && slots[*s] == *ty);
                    let slot = free.unwrap_or_else(|| {
                        slots.push(ty.clone());
                        taken.push(false);
                        slots.len() - 1
                    });
                    taken[slot] = true;
                    Place::Slot(slot)
                }
            });
        }
        places.push(here);
    }
    let mut known_branches = Vec::new();
    let mut unknown_branches = Vec::new();
    for (part, here) in parts.iter().zip(&places) {
        known_branches.push(program(part.known.name(), known_types.clone(), |xs| {
            let mut all = inline(&part.known, xs)?;
            let mut filled: Vec<Option<Array>> = vec![None; slots.len()];
            for (place, value) in here.iter().zip(all.split_off(early)) {
                if let Place::Slot(s) = place {
                    filled[*s] = Some(value);
                }
            }
            all.extend(filled.into_iter().zip(&slots).map(|(v, t)| v.unwrap_or_else(|| zeros_of(t))));
            Ok(all)
        })?);
        let inputs = direct.iter().map(|i| known_types[*i].clone()).chain(slots.clone()).chain(unknown_types.clone());
        unknown_branches.push(program(part.unknown.name(), inputs, |xs| {
            let at = |place: &Place| match place {
                Place::Operand(i) => direct.iter().position(|d| d == i).map(|p| xs[p].clone()),
                Place::Slot(s) => Some(xs[direct.len() + s].clone()),
            };
            let mut inputs: Vec<Array> = here.iter().filter_map(at).collect();
            inputs.extend_from_slice(&xs[direct.len() + slots.len()..]);
            inline(&part.unknown, &inputs)
        })?);
    }
    let index = Type::scalar(DType::I32);
    let inputs: Vec<Type> = std::iter::once(index.clone()).chain(known_types.clone()).collect();
    let every: Vec<usize> = (0..inputs.len()).collect();
    let known_half = single("known", &inputs, switch(known_branches), &every, |results, inputs| {
        let (first, filled) = results.split_at(early);
        let passed = direct.iter().map(|i| inputs[i + 1]);
        first.iter().copied().chain([inputs[0]]).chain(passed).chain(filled.iter().copied()).collect()
    })?;
    let passed = direct.iter().map(|i| known_types[*i].clone());
    let inputs: Vec<Type> = std::iter::once(index).chain(passed).chain(slots).chain(unknown_types).collect();
    let every: Vec<usize> = (0..inputs.len()).collect();
    let unknown_half = single("unknown", &inputs, switch(unknown_branches), &every, |results, _| results.to_vec())?;
    Ok(Some(Partition { known: known_half, unknown: unknown_half, known_outputs: super::flipped(&late) }))
}

/// Every branch on the examples that chose it, and a selection among the results.
///
/// A branch also runs in the lanes of examples that did not choose it. What it would compute from their operands could
/// be infinite (a division that the branch guards), and zero times infinity would poison derivatives. So in those
/// lanes it computes with the operands of an example that did choose it; if there is none it does not run at all.
fn by_lane(branches: &[Arc<Program>], rule: &Batch<'_>) -> Result<Vec<Array>> {
    let last = branches.len() as i32 - 1;
    let index = rule.inputs[0].clamp(0_i32, last);
    let batched = &rule.batched[1..];
    let mut chosen: Option<Vec<Array>> = None;
    for (number, branch) in branches.iter().enumerate().rev() {
        let mask = index.eq(number as i32);
        let made = in_lanes(branch, &mask, &rule.inputs[1..], batched, rule.size)?;
        chosen = Some(match chosen {
            None => made,
            Some(others) => made.iter().zip(&others).map(|(a, b)| lanes(&mask, a).select(a, b)).collect(),
        });
    }
    chosen.unwrap_or_default().into_iter().map(Array::ok).collect()
}

/// One branch on the lanes that are marked; other lanes of the results mean nothing, but are finite if the marked ones
/// are.
fn in_lanes(branch: &Arc<Program>, mask: &Array, inputs: &[Array], batched: &[bool], size: &Dim) -> Result<Vec<Array>> {
    let every = vec![true; branch.outputs().len()];
    let (over, _) = vmap_of(branch, batched, &every, size)?;
    // Without lanes nothing runs and nothing can be chosen from.
    if size.constant() == Some(0) {
        return inline(&over, inputs);
    }
    let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>()?;
    let mask_type = mask.ty()?.clone();
    let operands = || std::iter::once(mask_type.clone()).chain(types.clone());
    let run = program(branch.name(), operands(), |xs| inline(&over, &safe_operands(&xs[0], &xs[1..], batched)))?;
    let skip = program("skip", operands(), |_| Ok(over.output_types().iter().map(zeros_of).collect()))?;
    let any = mask.any().cast(DType::I32);
    let operands: Vec<Array> = [any, mask.clone()].into_iter().chain(inputs.iter().cloned()).collect();
    apply(switch(vec![skip, run]), &operands)
}

/// Operands in which every lane that is not marked repeats one that is.
pub(super) fn safe_operands(mask: &Array, inputs: &[Array], batched: &[bool]) -> Vec<Array> {
    if !batched.contains(&true) {
        return inputs.to_vec();
    }
    let lane = mask.cast(DType::I32).argmax_axis(0).cast(DType::I64);
    let zero = Array::from(0_i64);
    let each = inputs.iter().zip(batched).map(|(x, on)| {
        if !on {
            return x.clone();
        }
        let starts: Vec<Array> = (0..x.rank()).map(|i| if i == 0 { lane.clone() } else { zero.clone() }).collect();
        let row = x.dynamic_slice(&starts, x.shape().replaced(0, Dim::from(1usize)));
        lanes(mask, x).select(x, row.broadcast_to(x.shape()))
    });
    each.collect()
}

/// A mask of lanes, seen in the shape of an array with that many lanes.
pub(super) fn lanes(mask: &Array, like: &Array) -> Array {
    let ones = std::iter::repeat_n(Dim::from(1usize), like.rank() - 1);
    let column: Vec<Dim> = std::iter::once(mask.dim(0)).chain(ones).collect();
    mask.reshape(column).broadcast_to(like.shape())
}
