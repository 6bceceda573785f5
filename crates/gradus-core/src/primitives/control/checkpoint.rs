//! A program whose derivative computes it again instead of saving what it needs; a policy says what is saved still.

use std::sync::Arc;

use super::call::{batch_of_program, jvp_of_program, prune_program, transpose_of_program};
use super::{Call, Scan, dependent, flipped, infer_program, outputs, picked, positions, samples_of, single};
use crate::array::Array;
use crate::error::Result;
use crate::interpret::interpret;
use crate::primitives::control::Name;
use crate::primitives::dot::DotGeneral;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Param, ParamValue, Partition, Primitive, Pruned, Sample,
    Transpose, Transposed, Types,
};
use crate::program::{Atom, Equation, Program, ValueId};
use crate::rules_of;
use crate::types::Effects;

/// What a checkpoint saves besides its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// All that the derivative needs, as without a checkpoint.
    Everything,
    /// Nothing: the derivative computes all of it again.
    Nothing,
    /// Results of matrix products, which are dear to compute.
    Dots,
    /// Values that were given one of these names.
    Names(Vec<String>),
    /// At most so many bytes: the values that are dearest to compute for their size.
    Bytes(usize),
    /// As the policy inside says, and effects happen once more with what is computed once more. Without this they happen
    /// once.
    RepeatEffects(Box<Policy>),
}

impl Policy {
    /// What is saved, whatever happens to effects.
    fn saves(&self) -> &Policy {
        if let Policy::RepeatEffects(inner) = self { inner.saves() } else { self }
    }
}

impl ParamValue for Policy {
    fn to_param(&self) -> Param {
        let name = |n: &str| Param::Name(n.to_string());
        match self {
            Policy::Everything => name("everything"),
            Policy::Nothing => name("nothing"),
            Policy::Dots => name("dots"),
            Policy::Names(names) => names.to_param(),
            Policy::Bytes(bytes) => bytes.to_param(),
            Policy::RepeatEffects(inner) => Param::List(vec![name("repeat_effects"), inner.to_param()]),
        }
    }
    fn from_param(param: &Param) -> Option<Self> {
        match param {
            Param::Name(n) if n == "everything" => Some(Policy::Everything),
            Param::Name(n) if n == "nothing" => Some(Policy::Nothing),
            Param::Name(n) if n == "dots" => Some(Policy::Dots),
            Param::List(parts) if parts.first() == Some(&Param::Name("repeat_effects".into())) => {
                let [_, inner] = &parts[..] else { return None };
                Policy::from_param(inner).map(|inner| Policy::RepeatEffects(Box::new(inner)))
            }
            Param::List(_) => Vec::from_param(param).map(Policy::Names),
            Param::Int(_) => usize::from_param(param).map(Policy::Bytes),
            _ => None,
        }
    }
}

/// Runs a nested program, like a call.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// What is run.
    pub program: Arc<Program>,
    /// What its derivative saves.
    pub policy: Policy,
}

impl Checkpoint {
    fn of(&self) -> impl Fn(Arc<Program>) -> Op + use<> {
        let policy = self.policy.clone();
        move |program| Op::new(Checkpoint { program, policy: policy.clone() })
    }
}

impl Primitive for Checkpoint {
    rules_of!("checkpoint"; program, policy);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer_program(&self.program, infer)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        interpret(&self.program, inputs).map(outputs)
    }
    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        jvp_of_program(&self.program, rule, self.of())
    }
    fn transpose(&self, rule: &Transpose<'_>) -> Result<Transposed> {
        // The turned program first computes forward what it needs: that is the second computation.
        transpose_of_program(&self.program, rule, self.of())
    }
    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        batch_of_program(&self.program, rule, self.of())
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn partial_eval(&self, known: &[bool]) -> Result<Option<Partition>> {
        let keep_all = || Call { program: self.program.clone() }.partial_eval(known);
        if *self.policy.saves() == Policy::Everything {
            return keep_all();
        }
        if self.program.effects().is_pure() || matches!(self.policy, Policy::RepeatEffects(_)) {
            return self.split(known, &self.program).map(Some);
        }
        // Effects happen once: what is computed again is without those that only look. Results of the others would have to be
        // asked for again, so then everything is saved.
        let again = self.program.silenced()?;
        if !again.effects().is_pure() {
            return keep_all();
        }
        // An effect that takes what is not known early is no part of a first half.
        self.split(known, &again).map_or_else(|_| keep_all(), |parts| Ok(Some(parts)))
    }
    fn depends(&self, on: &[bool]) -> Option<Vec<bool>> {
        dependent(&self.program, on).ok()
    }
    fn prune(&self, used: &[bool]) -> Result<Option<Pruned>> {
        prune_program(&self.program, used, self.of())
    }
    fn effects(&self) -> Effects {
        self.program.effects()
    }
    fn samples() -> Vec<Sample> {
        let inner = "program=fn f(x0: f64[2,2], x1: f64[2]) -> (f64[2], f64[]) {\n    x2: f64[2] = \
            dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n    x3: f64[2] = \
            name{name=\"hidden\"} x2\n    x4: f64[2] = tanh x3\n    x5: f64[2] = mul x4 x1\n    x6: f64[] = \
            reduce_sum{axes=[0]} x5\n    return x4, x6\n  }";
        let text = |policy: &str| {
            format!(
                "fn s(x0: f64[2,2], x1: f64[2]) -> (f64[2], f64[]) {{\n  x2: f64[2], x3: f64[] = \
                 checkpoint{{{inner}, policy={policy}}} x0 x1\n  return x2, x3\n}}\n"
            )
        };
        let inputs = vec![Array::from([[0.5_f64, -1.0], [0.25, 0.75]]), Array::from([1.5_f64, 0.5])];
        let texts = ["everything", "nothing", "dots", "[\"hidden\"]", "[\"other\"]", "20"].map(text);
        samples_of(&texts.each_ref().map(|t| (t.as_str(), inputs.clone())))
    }
}

impl Checkpoint {
    /// The first half computes the known results and what is saved; the second computes the rest once more from the
    /// operands and what was saved, by equations of `again`, which is the program or the program without effects.
    fn split(&self, known: &[bool], again: &Program) -> Result<Partition> {
        let p = &self.program;
        let late_values = p.depends_on(&flipped(known));
        let is_late = |a: &Atom| a.value().is_some_and(|v| late_values[v.index()]);
        let known_outputs: Vec<bool> = p.outputs().iter().map(|a| !is_late(a)).collect();
        let late_outputs = picked(p.outputs(), &flipped(&known_outputs));
        let (early, late) = (positions(known), positions(&flipped(known)));
        let ids = |positions: &[usize]| -> Vec<ValueId> { positions.iter().map(|i| ValueId::new(*i)).collect() };
        let saved = self.saved(&late_values, &late_outputs);
        // Without saved values first, to see which operands the second half needs.
        let all: Vec<ValueId> = ids(&early).into_iter().chain(saved.iter().copied()).chain(ids(&late)).collect();
        let again = again.between(&all, &late_outputs, true)?;
        let needed = again.needed_inputs(again.outputs());
        let kept = |i: &usize| *i >= early.len() + saved.len() || needed[*i];
        let order: Vec<usize> = (0..all.len()).filter(kept).collect();
        let every: Vec<usize> = (0..late_outputs.len()).collect();
        let again = Arc::new(again.rearranged(&order, &every)?);
        let residuals: Vec<Atom> =
            order.iter().filter(|i| **i < early.len() + saved.len()).map(|i| Atom::from(all[*i])).collect();
        let known_results = picked(p.outputs(), &known_outputs);
        let outs: Vec<Atom> = known_results.into_iter().chain(residuals).collect();
        let known_half = p.between(&ids(&early), &outs, true)?;
        let operands: Vec<usize> = (0..again.inputs().len()).collect();
        let inputs = again.inputs().to_vec();
        let op = self.of()(again);
        let unknown_half = single("unknown", &inputs, op, &operands, |results, _| results.to_vec())?;
        Ok(Partition { known: known_half, unknown: unknown_half, known_outputs })
    }

    /// The known values that are saved.
    fn saved(&self, late: &[bool], outputs: &[Atom]) -> Vec<ValueId> {
        let p = &self.program;
        let used = p.needed_values(outputs);
        let candidates = p.equations().iter().flat_map(|e| e.results().map(move |r| (e, r)));
        let candidates = candidates.filter(|(_, r)| used[r.index()] && !late[r.index()]);
        match self.policy.saves() {
            Policy::Everything | Policy::Nothing | Policy::RepeatEffects(_) => Vec::new(),
            Policy::Dots => candidates.filter(|(e, _)| e.op().is::<DotGeneral>()).map(|(_, r)| r).collect(),
            Policy::Names(names) => {
                let named = |e: &Equation| e.op().downcast::<Name>().is_some_and(|n| names.contains(&n.name));
                candidates.filter(|(e, _)| named(e)).map(|(_, r)| r).collect()
            }
            Policy::Bytes(budget) => {
                let mut all: Vec<(f64, u128, ValueId)> = candidates
                    .map(|(e, r)| {
                        let bytes = p.ty(r).estimated_bytes();
                        (work(p, e) / bytes.max(1) as f64, bytes, r)
                    })
                    .collect();
                all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
                let mut left = *budget as u128;
                let mut saved = Vec::new();
                for (_, bytes, r) in all {
                    if bytes <= left {
                        left -= bytes;
                        saved.push(r);
                    }
                }
                saved.sort_unstable();
                saved
            }
        }
    }
}

/// About how many operations an equation costs.
fn work(p: &Program, e: &Equation) -> f64 {
    let elements = |a: Atom| p.ty(a).estimated_bytes() as f64 / p.ty(a).dtype().size() as f64;
    let results: f64 = e.results().map(|r| elements(r.into())).sum();
    let operands: f64 = p.operands(e).iter().map(|a| elements(*a)).sum();
    if let Some(dot) = e.op().downcast::<DotGeneral>() {
        let lhs = p.operands(e)[0];
        let contracted: f64 = dot.lhs_contract.iter().map(|i| estimated(&p.ty(lhs).shape()[*i])).product();
        return 2.0 * results * contracted;
    }
    let inside = |q: &Arc<Program>| q.equations().iter().map(|e| work(q, e)).sum::<f64>();
    let nested: f64 = e.op().programs().iter().map(inside).sum();
    let times = e.op().downcast::<Scan>().map_or(1.0, |s| estimated(&s.length));
    let each = if e.op().is_elementwise() { 4.0 } else { 1.0 };
    results * each + operands + nested * times
}

fn estimated(d: &crate::types::Dim) -> f64 {
    d.evaluate(&|_| Some(1000)).unwrap_or(1000) as f64
}
