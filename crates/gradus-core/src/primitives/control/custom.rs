//! Functions whose derivatives a user wrote: by a forward rule, or by a forward and a backward pass.
//!
//! A rule for one mode serves the other where mathematics allows: a forward rule is transposed for reverse mode, a
//! backward pass that is linear in its cotangents is transposed for forward mode. One that is not linear (a clipped
//! gradient) works in reverse mode, and forward mode says why it cannot.

use std::sync::Arc;

use super::{Call, apply, fits, infer_program, outputs, samples_of, spread};
use crate::array::Array;
use crate::error::{Error, Result, error, fail};
use crate::interpret::interpret;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::program::Program;
use crate::rules_of;
use crate::trace::inline;
use crate::transform::{jvp_on, transpose_of, vmap_of, zeros_of};
use crate::types::{Effects, Type};

/// Which of these types have derivatives.
fn inexact(types: &[Type]) -> Vec<bool> {
    types.iter().map(|t| t.dtype().is_inexact()).collect()
}

fn of_inexact<T: Clone>(items: &[T], types: &[Type]) -> Vec<T> {
    super::picked(items, &inexact(types))
}

/// Tangents of the operands that have derivatives, zeros included.
fn all_tangents(rule: &Jvp<'_>) -> Vec<Array> {
    let each = rule.tangents.iter().zip(rule.primals).filter(|(_, x)| x.dtype().is_inexact());
    each.map(|(t, x)| t.clone().unwrap_or_else(|| x.zeros_like())).collect()
}

/// Refuses a derivative by a captured value: the user's rule knows nothing of it, and zero would be wrong.
fn not_captured(rule: &Jvp<'_>, captures: usize, name: &str) -> Result<()> {
    let first = rule.tangents.len() - captures;
    if let Some(i) = (first..rule.tangents.len()).find(|i| rule.tangents[*i].is_some()) {
        let ty = rule.primals[i].ty()?;
        return Err(error!(Rule, "a function with a `{name}` rule captured a value {ty} that is differentiated, and its rule does not say how")
            .help("pass the value as an argument, so that the rule gives its derivative; or put `.stop_gradient()` on it"));
    }
    Ok(())
}

/// Refuses a rule whose types are not those its function asks for.
fn check_rule(rule: &Program, inputs: &[Type], outputs: &[Type], what: &str) -> Result<()> {
    if rule.inputs() != inputs || rule.output_types() != outputs {
        fail!(
            Rule,
            "{what} `{}` takes {:?} and gives {:?} where it should take {inputs:?} and give {outputs:?}",
            rule.name(),
            rule.inputs(),
            rule.output_types()
        );
    }
    Ok(())
}

/// A function with a forward rule.
#[derive(Clone, Debug)]
pub struct CustomJvp {
    /// What is computed.
    pub function: Arc<Program>,
    /// From operands and tangents of those that have some, to results and tangents of those that have some.
    pub rule: Arc<Program>,
    /// How many operands, the last, are captured values: the rule is not made to be differentiated by them.
    pub captures: usize,
}

impl Primitive for CustomJvp {
    rules_of!("custom_jvp"; function, rule, captures);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let (ins, outs) = (self.function.inputs().to_vec(), self.function.output_types());
        let with_dots = |types: &[Type]| [types, &of_inexact(types, types)].concat();
        check_rule(&self.rule, &with_dots(&ins), &with_dots(&outs), "the derivative rule")?;
        infer_program(&self.function, infer)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        interpret(&self.function, inputs).map(outputs)
    }
    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        not_captured(rule, self.captures, "custom_jvp")?;
        let inputs: Vec<Array> = rule.primals.iter().cloned().chain(all_tangents(rule)).collect();
        let types = self.function.output_types();
        let mut all = apply(Op::new(Call { program: self.rule.clone() }), &inputs)?;
        let dots = all.split_off(types.len());
        Ok(Derivative::Whole { outputs: outputs(all), tangents: spread(dots, &inexact(&types)).into() })
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        let every = |p: &Program| vec![true; p.outputs().len()];
        let dots = of_inexact(rule.batched, self.function.inputs());
        let flags = [rule.batched, &dots].concat();
        // Results may have the batch axis where an operand has none: then every operand gets it, so that the rule fits.
        let (function, _) = vmap_of(&self.function, rule.batched, &every(&self.function), rule.size)?;
        let (derivative, _) = vmap_of(&self.rule, &flags, &every(&self.rule), rule.size)?;
        let results = apply(Op::new(CustomJvp { function, rule: derivative, captures: self.captures }), rule.inputs)?;
        Ok(Batched::Outputs(outputs(results)))
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        self.function.effects()
    }
    fn samples() -> Vec<Sample> {
        let text = "fn s(x0: f64[2], x1: i32[]) -> f64[2] {\n  x2: f64[2] = custom_jvp{function=fn f(x0: f64[2], x1: i32[]) -> f64[2] {\n    \
            x2: f64[2] = sin x0\n    return x2\n  }, rule=fn r(x0: f64[2], x1: i32[], x2: f64[2]) -> (f64[2], f64[2]) {\n    \
            x3: f64[2] = sin x0\n    x4: f64[2] = cos x0\n    x5: f64[2] = mul x4 x2\n    return x3, x5\n  }, captures=0} x0 x1\n  \
            return x2\n}\n";
        samples_of(&[(text, vec![Array::from([0.5_f64, -1.0]), Array::from(3_i32)])])
    }
}

/// A function with a forward and a backward pass.
#[derive(Clone, Debug)]
pub struct CustomVjp {
    /// What is computed.
    pub function: Arc<Program>,
    /// From operands to results and what the backward pass needs.
    pub forward: Arc<Program>,
    /// From that and cotangents of results to cotangents of operands, of those that have some.
    pub backward: Arc<Program>,
    /// How many operands, the last, are captured values: the passes are not made to be differentiated by them.
    pub captures: usize,
}

impl Primitive for CustomVjp {
    rules_of!("custom_vjp"; function, forward, backward, captures);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let (ins, outs) = (self.function.inputs().to_vec(), self.function.output_types());
        let forward = self.forward.output_types();
        if forward.len() < outs.len() {
            fail!(Rule, "the forward pass `{}` gives too few results", self.forward.name());
        }
        let residuals = &forward[outs.len()..];
        check_rule(&self.forward, &ins, &[&outs, residuals].concat(), "the forward pass")?;
        let taken = [residuals, &of_inexact(&outs, &outs)].concat();
        check_rule(&self.backward, &taken, &of_inexact(&ins, &ins), "the backward pass")?;
        infer_program(&self.function, infer)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        interpret(&self.function, inputs).map(outputs)
    }
    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        not_captured(rule, self.captures, "custom_vjp")?;
        let types = self.function.output_types();
        let mut all = apply(Op::new(Call { program: self.forward.clone() }), rule.primals)?;
        let mut operands = all.split_off(types.len());
        let residuals = operands.len();
        operands.extend(all_tangents(rule));
        let dots = apply(Op::new(CustomLinear { backward: self.backward.clone(), residuals }), &operands)?;
        Ok(Derivative::Whole { outputs: outputs(all), tangents: spread(dots, &inexact(&types)).into() })
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        // Every operand with a derivative gets the batch axis, so that each example has its own cotangent; the
        // transpose of that broadcast adds them up.
        let inputs: Vec<Array> = (0..rule.inputs.len())
            .map(|i| if rule.inputs[i].dtype().is_inexact() { rule.with_axis(i) } else { rule.inputs[i].clone() })
            .collect();
        let flags: Vec<bool> =
            rule.inputs.iter().zip(rule.batched).map(|(x, on)| *on || x.dtype().is_inexact()).collect();
        let over = |p: &Arc<Program>, flags: &[bool]| {
            vmap_of(p, flags, &vec![true; p.outputs().len()], rule.size).map(|(p, _)| p)
        };
        let every = vec![true; self.backward.inputs().len()];
        let op = CustomVjp {
            function: over(&self.function, &flags)?,
            forward: over(&self.forward, &flags)?,
            backward: over(&self.backward, &every)?,
            captures: self.captures,
        };
        Ok(Batched::Outputs(outputs(apply(Op::new(op), &inputs)?)))
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        self.function.effects()
    }
    fn samples() -> Vec<Sample> {
        let text = "fn s(x0: f64[2], x1: f64[], x2: i32[]) -> f64[2] {\n  x3: f64[2] = custom_vjp{function=fn f(x0: f64[2], x1: f64[], x2: i32[]) -> f64[2] {\n    \
            x3: f64[2] = broadcast{shape=[2], axes=[]} x1\n    x4: f64[2] = mul x0 x3\n    return x4\n  }, \
            forward=fn g(x0: f64[2], x1: f64[], x2: i32[]) -> (f64[2], f64[2], f64[2]) {\n    \
            x3: f64[2] = broadcast{shape=[2], axes=[]} x1\n    x4: f64[2] = mul x0 x3\n    return x4, x0, x3\n  }, \
            backward=fn h(x0: f64[2], x1: f64[2], x2: f64[2]) -> (f64[2], f64[]) {\n    \
            x3: f64[2] = mul x1 x2\n    x4: f64[2] = mul x0 x2\n    x5: f64[] = reduce_sum{axes=[0]} x4\n    \
            return x3, x5\n  }, captures=0} x0 x1 x2\n  return x3\n}\n";
        let inputs = vec![Array::from([0.5_f64, -1.0]), Array::from(0.75_f64), Array::from(3_i32)];
        samples_of(&[(text, inputs)])
    }
}

/// The linear map whose transpose is a backward pass: from what the pass needs and tangents of the operands to
/// tangents of the results.
#[derive(Clone, Debug)]
pub struct CustomLinear {
    /// From residuals and cotangents of the results to cotangents of the operands.
    pub backward: Arc<Program>,
    /// How many of the operands are residuals.
    pub residuals: usize,
}

impl CustomLinear {
    /// The map itself, if the backward pass is linear.
    pub fn forward(&self) -> Result<Arc<Program>> {
        let linear: Vec<bool> = (0..self.backward.inputs().len()).map(|i| i >= self.residuals).collect();
        transpose_of(&self.backward, &linear).map_err(|e| {
            Error::new(
                crate::error::ErrorKind::MissingRule,
                format!("forward mode of a function with a `custom_vjp` rule: its backward pass `{}` is not linear in the cotangents", self.backward.name()),
            )
            .note(e.to_string())
            .help("forward mode transposes the backward pass; give the function a `custom_jvp` rule, or use reverse mode")
        })
    }
}

impl Primitive for CustomLinear {
    rules_of!("custom_linear"; backward, residuals);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        let taken = self.backward.inputs();
        if self.residuals > taken.len() || self.residuals > inputs.len() {
            fail!(Signature, "{} residuals of {} operands", self.residuals, inputs.len());
        }
        let given = self.backward.output_types();
        if inputs.len() != self.residuals + given.len() {
            fail!(Signature, "takes {} operands, not {}", self.residuals + given.len(), inputs.len());
        }
        let asked = [&inputs[..self.residuals], &taken[self.residuals..]].concat();
        fits(&self.backward, &asked, infer)?;
        for (want, have) in given.iter().zip(&inputs[self.residuals..]) {
            if want.dtype() != have.dtype() || !infer.same_shape(want.shape(), have.shape()) {
                fail!(Signature, "takes a tangent {want}, not {have}");
            }
        }
        Ok(taken[self.residuals..].iter().cloned().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        interpret(&*self.forward()?, inputs).map(outputs)
    }
    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        if rule.tangents[..self.residuals].iter().all(Option::is_none) {
            // Linear in what is left: the tangent is the map of the tangents.
            let mut operands = rule.primals[..self.residuals].to_vec();
            let each = rule.tangents[self.residuals..].iter().zip(&rule.primals[self.residuals..]);
            operands.extend(each.map(|(t, x)| t.clone().unwrap_or_else(|| x.zeros_like())));
            let dots = apply(Op::new(self.clone()), &operands)?;
            return Ok(Derivative::Tangents(dots.into_iter().map(Some).collect()));
        }
        let (all, dots) = jvp_on(&*self.forward()?, rule.primals, rule.tangents)?;
        Ok(Derivative::Whole { outputs: outputs(all), tangents: dots.into() })
    }
    fn transpose(&self, rule: &Transpose<'_>) -> Result<Transposed> {
        let (residuals, dots) = rule.operands.split_at(self.residuals);
        let Some(known) = residuals.iter().map(|r| r.known().cloned()).collect::<Option<Vec<Array>>>() else {
            return Ok(Transposed::NotLinear);
        };
        let types = &self.backward.inputs()[self.residuals..];
        let bars = rule.cotangents.iter().zip(types).map(|(b, t)| b.clone().unwrap_or_else(|| zeros_of(t)));
        let bars = inline(&self.backward, &known.into_iter().chain(bars).collect::<Vec<_>>())?;
        let each = bars.into_iter().zip(dots).map(|(bar, o)| o.unknown().map(|_| bar));
        Ok(Transposed::Cotangents(residuals.iter().map(|_| None).chain(each).collect()))
    }
    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        let flags = vec![true; self.backward.inputs().len()];
        let every = vec![true; self.backward.outputs().len()];
        let (backward, _) = vmap_of(&self.backward, &flags, &every, rule.size)?;
        rule.elementwise(Op::new(CustomLinear { backward, residuals: self.residuals }))
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let text = "fn s(x0: f64[2], x1: f64[2]) -> f64[2] {\n  x2: f64[2] = custom_linear{backward=fn h(x0: f64[2], x1: f64[2]) -> f64[2] {\n    \
            x2: f64[2] = mul x0 x1\n    return x2\n  }, residuals=1} x0 x1\n  return x2\n}\n";
        samples_of(&[(text, vec![Array::from([0.5_f64, -1.0]), Array::from([0.75_f64, 2.0])])])
    }
}
