//! A branch: of several programs one runs, chosen by a number. `cond` is a branch of two.
//!
//! While the number is one for all examples, transformations keep the branch. A number that differs from example to
//! example turns it into all branches and a selection: [`by_lane`] says how finished lanes are kept from harm.

use std::rc::Rc;
use std::sync::Arc;

use super::{apply, dependent, fits, flipped, gives, outputs, picked, positions, program, samples_of, single, spread};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::interpret::interpret;
use crate::primitives::effects::why_not_for_some;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Partition, Primitive, Pruned, Sample, Transpose, Transposed,
    Types,
};
use crate::program::{Atom, Program};
use crate::rules_of;
use crate::trace::inline;
use crate::transform::{Split, Terms, jvp_of, split_of, transpose_of, vmap_of, zeros_of};
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
        if *index != number() {
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
            let branches: Vec<&Program> = self.branches.iter().map(|b| &**b).collect();
            return Ok(Batched::Missing(why_not_for_some(
                &branches,
                "its effects would have to happen for some examples and not for others: loop over the examples with `gradus::map`, or \
                 choose with `select` and let the effect look at the mask",
            )));
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
            any.iter_mut().zip(dependent(b, &on[1..]).ok()?).for_each(|(all, here)| *all |= here);
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
    let (parts, late) = split_branches(branches, known)?;
    let known_outputs = flipped(&late);
    if !known_outputs.contains(&true) && parts.iter().all(|p| p.known.equations().is_empty()) {
        return Ok(None);
    }
    let types = branches[0].inputs();
    let (early, late) = (picked(types, known), picked(types, &flipped(known)));
    let saved = Saved::of(&parts, early.len());
    let known = saved.known_half(&parts, &early)?;
    let unknown = saved.unknown_half(&parts, &early, &late)?;
    Ok(Some(Partition { known, unknown, known_outputs }))
}

/// Every branch in two, and which results come late: a result that one branch gives late, all do.
fn split_branches(branches: &[Arc<Program>], known: &[bool]) -> Result<(Vec<Rc<Split>>, Vec<bool>)> {
    let not_at_hand = vec![false; known.len()];
    let mut late = vec![false; branches[0].outputs().len()];
    loop {
        let terms = Terms { known, late: &late, at_hand: Some(&not_at_hand) };
        let parts = branches.iter().map(|b| split_of(b, terms)).collect::<Result<Vec<_>>>()?;
        let next: Vec<bool> = (0..late.len()).map(|i| parts.iter().any(|p| !p.known_outputs[i])).collect();
        if next == late {
            return Ok((parts, late));
        }
        late = next;
    }
}

/// Where a branch finds one of its residuals.
enum Residual {
    /// It is this known operand, which passes as it is.
    Operand(usize),
    /// It is in this slot.
    Slot(usize),
}

/// What passes from one half to the other: the number, operands, slots.
struct Saved {
    /// The known operands that some branch needs.
    operands: Vec<usize>,
    /// The types of the slots.
    slots: Vec<Type>,
    /// For each branch, its residuals.
    of_branches: Vec<Vec<Residual>>,
}

impl Saved {
    fn of(parts: &[Rc<Split>], known: usize) -> Saved {
        let mut saved = Saved { operands: Vec::new(), slots: Vec::new(), of_branches: Vec::new() };
        for part in parts {
            let residuals = &part.known.outputs()[part.known.outputs().len() - part.residuals.len()..];
            let mut taken = vec![false; saved.slots.len()];
            let mut here = Vec::new();
            for (atom, ty) in residuals.iter().zip(&part.residuals) {
                here.push(match atom.value().map(|v| v.index()).filter(|v| *v < known) {
                    Some(i) => saved.operand(i),
                    None => saved.slot(ty, &mut taken),
                });
            }
            saved.of_branches.push(here);
        }
        saved
    }

    fn operand(&mut self, i: usize) -> Residual {
        if !self.operands.contains(&i) {
            self.operands.push(i);
        }
        Residual::Operand(i)
    }

    /// A slot of a type that the branch has not taken yet.
    fn slot(&mut self, ty: &Type, taken: &mut Vec<bool>) -> Residual {
        let free = (0..self.slots.len()).find(|s| !taken[*s] && self.slots[*s] == *ty);
        let slot = free.unwrap_or_else(|| {
            self.slots.push(ty.clone());
            taken.push(false);
            self.slots.len() - 1
        });
        taken[slot] = true;
        Residual::Slot(slot)
    }

    /// From the number and the known operands: the known results, then what passes.
    fn known_half(&self, parts: &[Rc<Split>], early: &[Type]) -> Result<Program> {
        let branch = |(part, here): (&Rc<Split>, &Vec<Residual>)| {
            program(part.known.name(), early.to_vec(), |xs| {
                let mut all = inline(&part.known, xs)?;
                let residuals = all.split_off(all.len() - here.len());
                let mut filled: Vec<Option<Array>> = vec![None; self.slots.len()];
                for (residual, value) in here.iter().zip(residuals) {
                    if let Residual::Slot(s) = residual {
                        filled[*s] = Some(value);
                    }
                }
                all.extend(filled.into_iter().zip(&self.slots).map(|(v, t)| v.unwrap_or_else(|| zeros_of(t))));
                Ok(all)
            })
        };
        let branches = parts.iter().zip(&self.of_branches).map(branch).collect::<Result<_>>()?;
        let inputs: Vec<Type> = std::iter::once(number()).chain(early.iter().cloned()).collect();
        let every: Vec<usize> = (0..inputs.len()).collect();
        single("known", &inputs, switch(branches), &every, |results, inputs| {
            let (first, filled) = results.split_at(results.len() - self.slots.len());
            let passed: Vec<Atom> = self.operands.iter().map(|i| inputs[i + 1]).collect();
            [first, &inputs[..1], &passed, filled].concat()
        })
    }

    /// From the number, the operands and slots that pass, and the unknown operands: the other results.
    fn unknown_half(&self, parts: &[Rc<Split>], early: &[Type], late: &[Type]) -> Result<Program> {
        let passed: Vec<Type> = self.operands.iter().map(|i| early[*i].clone()).collect();
        let types = [passed.as_slice(), &self.slots, late].concat();
        let branch = |(part, here): (&Rc<Split>, &Vec<Residual>)| {
            program(part.unknown.name(), types.clone(), |xs| {
                let (operands, rest) = xs.split_at(self.operands.len());
                let (slots, late) = rest.split_at(self.slots.len());
                let at = |residual: &Residual| match residual {
                    Residual::Operand(i) => self.operands.iter().position(|d| d == i).map(|p| operands[p].clone()),
                    Residual::Slot(s) => Some(slots[*s].clone()),
                };
                let inputs: Vec<Array> = here.iter().filter_map(at).chain(late.iter().cloned()).collect();
                inline(&part.unknown, &inputs)
            })
        };
        let branches = parts.iter().zip(&self.of_branches).map(branch).collect::<Result<_>>()?;
        let inputs: Vec<Type> = std::iter::once(number()).chain(types.iter().cloned()).collect();
        let every: Vec<usize> = (0..inputs.len()).collect();
        single("unknown", &inputs, switch(branches), &every, |results, _| results.to_vec())
    }
}

/// The type of the number of a branch.
fn number() -> Type {
    Type::scalar(DType::I32)
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
