//! Values that are given by what they fulfil, and not by how they are found: solutions of linear systems, and roots of equations.
//!
//! How a solution is found is a program that somebody wrote, with loops of any length. Its derivative does not go through that: it is given by the equation alone. From
//! A x = b follows A x_dot = b_dot − A_dot x, and from F(x, a) = 0 follows F_x x_dot = −F_a a_dot: both are linear systems again, so derivatives of any order are. The
//! transpose of a solution is a solution of the transposed system.

use std::sync::Arc;

use super::{Call, apply, fits, gives, infer_program, outputs, program, samples_of, spread};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::interpret::interpret;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::program::Program;
use crate::rules_of;
use crate::transform::{jvp_of, jvp_on, transpose_of, vmap_of, zeros_of};
use crate::types::{Effects, Type};

/// Arrays with zeros in the place of tangents that are none.
fn whole(tangents: &[Option<Array>], like: &[Array]) -> Vec<Array> {
    tangents.iter().zip(like).map(|(t, x)| t.clone().unwrap_or_else(|| x.zeros_like())).collect()
}

/// What a program changes by at a point, in directions of which some are zero. As a call, because its sizes may be numbers where those of the operands are symbols.
fn moved(p: &Arc<Program>, at: &[Array], dots: &[Option<Array>]) -> Result<Vec<Option<Array>>> {
    let active: Vec<bool> = dots.iter().zip(at).map(|(t, x)| t.is_some() && x.dtype().is_inexact()).collect();
    let (derivative, varies) = jvp_of(p, &active)?;
    let directions = dots.iter().zip(&active).filter(|(_, on)| **on).filter_map(|(t, _)| t.clone());
    let inputs: Vec<Array> = at.iter().cloned().chain(directions).collect();
    let mut all = apply(Op::new(Call { program: derivative }), &inputs)?;
    Ok(spread(all.split_off(varies.len()), &varies))
}

fn batched(p: &Arc<Program>, flags: &[bool], rule: &Batch<'_>) -> Result<Arc<Program>> {
    vmap_of(p, flags, &vec![true; p.outputs().len()], rule.size).map(|(p, _)| p)
}

/// The x with A x = b. Its operands are the constants of A, then b.
#[derive(Clone, Debug)]
pub struct LinearSolve {
    /// From constants and x to A x.
    pub map: Arc<Program>,
    /// From constants and b to x.
    pub solve: Arc<Program>,
    /// From constants and c to the y with Aᵀ y = c.
    pub transposed_solve: Arc<Program>,
    /// How many operands are constants of A.
    pub consts: usize,
}

impl LinearSolve {
    fn linear(&self) -> Vec<bool> {
        (0..self.map.inputs().len()).map(|i| i >= self.consts).collect()
    }
}

impl Primitive for LinearSolve {
    rules_of!("linear_solve"; map, solve, transposed_solve, consts);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        if self.consts > inputs.len() {
            fail!(Signature, "{} constants of {} operands", self.consts, inputs.len());
        }
        let b = &inputs[self.consts..];
        for (p, what) in
            [(&self.map, "the map"), (&self.solve, "the solver"), (&self.transposed_solve, "the transposed solver")]
        {
            fits(p, inputs, infer)?;
            gives(p, b, what, infer)?;
        }
        if let Some(other) = b.iter().find(|t| !t.dtype().is_inexact()) {
            fail!(DType, "a linear system of floats or complex numbers, not of {other}");
        }
        Ok(b.iter().cloned().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        interpret(&self.solve, inputs).map(outputs)
    }
    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        let x = rule.outputs().to_vec();
        x.iter().try_for_each(|x| x.ty().map(|_| ()))?;
        let (consts, dots) = (&rule.primals[..self.consts], &rule.tangents[..self.consts]);
        let mut sides = whole(&rule.tangents[self.consts..], &rule.primals[self.consts..]);
        if dots.iter().any(Option::is_some) {
            let at: Vec<Array> = consts.iter().chain(&x).cloned().collect();
            let dots: Vec<Option<Array>> = dots.iter().cloned().chain(x.iter().map(|_| None)).collect();
            for (side, moved) in sides.iter_mut().zip(moved(&self.map, &at, &dots)?) {
                if let Some(moved) = moved {
                    *side = (&*side - moved).ok()?;
                }
            }
        }
        let operands: Vec<Array> = consts.iter().cloned().chain(sides).collect();
        let tangents = apply(Op::new(self.clone()), &operands)?;
        Ok(Derivative::Whole { outputs: outputs(x), tangents: tangents.into_iter().map(Some).collect() })
    }
    fn transpose(&self, rule: &Transpose<'_>) -> Result<Transposed> {
        let (consts, sides) = rule.operands.split_at(self.consts);
        let Some(known) = consts.iter().map(|c| c.known().cloned()).collect::<Option<Vec<Array>>>() else {
            return Ok(Transposed::NotLinear);
        };
        let types = &self.map.inputs()[self.consts..];
        let bars = rule.cotangents.iter().zip(types).map(|(b, t)| b.clone().unwrap_or_else(|| zeros_of(t)));
        let op = LinearSolve {
            map: transpose_of(&self.map, &self.linear())?,
            solve: self.transposed_solve.clone(),
            transposed_solve: self.solve.clone(),
            consts: self.consts,
        };
        let bars = apply(Op::new(op), &known.into_iter().chain(bars).collect::<Vec<_>>())?;
        let each = bars.into_iter().zip(sides).map(|(bar, side)| side.unknown().map(|_| bar));
        Ok(Transposed::Cotangents(consts.iter().map(|_| None).chain(each).collect()))
    }
    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        let flags: Vec<bool> = rule.batched.iter().enumerate().map(|(i, on)| *on || i >= self.consts).collect();
        let op = LinearSolve {
            map: batched(&self.map, &flags, rule)?,
            solve: batched(&self.solve, &flags, rule)?,
            transposed_solve: batched(&self.transposed_solve, &flags, rule)?,
            consts: self.consts,
        };
        let side = |i: usize| if flags[i] { rule.with_axis(i) } else { rule.inputs[i].clone() };
        let operands: Vec<Array> = (0..rule.inputs.len()).map(side).collect();
        Ok(Batched::Outputs(outputs(apply(Op::new(op), &operands)?)))
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        self.solve.effects()
    }
    fn samples() -> Vec<Sample> {
        // A diagonal map, so that a division solves it; and its own transpose.
        let text = "fn s(x0: f64[2], x1: f64[2]) -> f64[2] {\n  x2: f64[2] = linear_solve{map=fn m(x0: f64[2], x1: f64[2]) -> f64[2] {\n    \
            x2: f64[2] = mul x0 x1\n    return x2\n  }, solve=fn v(x0: f64[2], x1: f64[2]) -> f64[2] {\n    \
            x2: f64[2] = div x1 x0\n    return x2\n  }, transposed_solve=fn t(x0: f64[2], x1: f64[2]) -> f64[2] {\n    \
            x2: f64[2] = div x1 x0\n    return x2\n  }, consts=1} x0 x1\n  return x2\n}\n";
        // Two unknowns of which one is in both equations: not its own transpose.
        let pair = "fn s(x0: f64[], x1: f64[], x2: f64[]) -> (f64[], f64[]) {\n  x3: f64[], x4: f64[] = linear_solve{map=fn m(x0: f64[], x1: f64[], x2: f64[]) -> (f64[], f64[]) {\n    \
            x3: f64[] = mul x0 x2\n    x4: f64[] = add x1 x3\n    return x4, x2\n  }, solve=fn v(x0: f64[], x1: f64[], x2: f64[]) -> (f64[], f64[]) {\n    \
            x3: f64[] = mul x0 x2\n    x4: f64[] = sub x1 x3\n    return x4, x2\n  }, transposed_solve=fn t(x0: f64[], x1: f64[], x2: f64[]) -> (f64[], f64[]) {\n    \
            x3: f64[] = mul x0 x1\n    x4: f64[] = sub x2 x3\n    return x1, x4\n  }, consts=1} x0 x1 x2\n  return x3, x4\n}\n";
        samples_of(&[
            (text, vec![Array::from([2.0_f64, -4.0]), Array::from([0.75_f64, 2.0])]),
            (pair, vec![Array::from(0.5_f64), Array::from(1.25_f64), Array::from(-2.0_f64)]),
        ])
    }
}

/// The x with F(x, a) = 0 that a solver finds. Its operands are a.
#[derive(Clone, Debug)]
pub struct Root {
    /// From a to x.
    pub solver: Arc<Program>,
    /// From x and a to F(x, a).
    pub equation: Arc<Program>,
    /// From x, a and b to the v with F_x v = b.
    pub solve: Arc<Program>,
    /// From x, a and c to the w with F_xᵀ w = c.
    pub transposed_solve: Arc<Program>,
}

impl Root {
    /// F_x as a program: from x, a and v to F_x v.
    pub(crate) fn map(equation: &Program, unknowns: usize) -> Result<Arc<Program>> {
        let types = equation.inputs();
        let inputs = types.iter().chain(&types[..unknowns]).cloned();
        program("map", inputs, |xs| {
            let (at, v) = xs.split_at(types.len());
            let dots: Vec<Option<Array>> = (0..types.len()).map(|i| v.get(i).cloned()).collect();
            let (values, dots) = jvp_on(equation, at, &dots)?;
            Ok(whole(&dots, &values))
        })
    }

    fn unknowns(&self) -> usize {
        self.solver.outputs().len()
    }
}

impl Primitive for Root {
    rules_of!("root"; solver, equation, solve, transposed_solve);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        let x = self.solver.output_types();
        if let Some(other) = x.iter().find(|t| !t.dtype().is_inexact()) {
            fail!(DType, "the root of an equation is of floats or complex numbers, not of {other}");
        }
        let at: Vec<Type> = x.iter().chain(inputs).cloned().collect();
        let sided: Vec<Type> = at.iter().chain(&x).cloned().collect();
        fits(&self.equation, &at, infer)?;
        gives(&self.equation, &x, "the equation", infer)?;
        for (p, what) in [(&self.solve, "the solver"), (&self.transposed_solve, "the transposed solver")] {
            fits(p, &sided, infer)?;
            gives(p, &x, what, infer)?;
        }
        infer_program(&self.solver, infer)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        interpret(&self.solver, inputs).map(outputs)
    }
    fn jvp(&self, rule: &Jvp<'_>) -> Result<Derivative> {
        let x = rule.outputs().to_vec();
        x.iter().try_for_each(|x| x.ty().map(|_| ()))?;
        let at: Vec<Array> = x.iter().chain(rule.primals).cloned().collect();
        let dots: Vec<Option<Array>> = x.iter().map(|_| None).chain(rule.tangents.iter().cloned()).collect();
        let moved = moved(&self.equation, &at, &dots)?;
        if moved.iter().all(Option::is_none) {
            return Ok(Derivative::Whole { tangents: x.iter().map(|_| None).collect(), outputs: outputs(x) });
        }
        let sides = whole(&moved, &x).into_iter().map(|m| -m);
        let op = LinearSolve {
            map: Root::map(&self.equation, self.unknowns())?,
            solve: self.solve.clone(),
            transposed_solve: self.transposed_solve.clone(),
            consts: at.len(),
        };
        let operands: Vec<Array> = at.iter().cloned().chain(sides).collect();
        let tangents = apply(Op::new(op), &operands)?;
        Ok(Derivative::Whole { outputs: outputs(x), tangents: tangents.into_iter().map(Some).collect() })
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, rule: &Batch<'_>) -> Result<Batched> {
        let unknowns = vec![true; self.unknowns()];
        let at = [&unknowns, rule.batched].concat();
        let sided = [&at[..], &unknowns].concat();
        let op = Root {
            solver: batched(&self.solver, rule.batched, rule)?,
            equation: batched(&self.equation, &at, rule)?,
            solve: batched(&self.solve, &sided, rule)?,
            transposed_solve: batched(&self.transposed_solve, &sided, rule)?,
        };
        Ok(Batched::Outputs(outputs(apply(Op::new(op), rule.inputs)?)))
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        self.solver.effects()
    }
    fn samples() -> Vec<Sample> {
        // The square root of a positive number, by x² − a = 0 and F_x = 2 x.
        let solve = |name: &str| {
            format!(
                "fn {name}(x0: f64[2], x1: f64[2], x2: f64[2]) -> f64[2] {{\n    x3: f64[2] = add x0 x0\n    x4: f64[2] = div x2 x3\n    return x4\n  }}"
            )
        };
        let text = format!(
            "fn s(x0: f64[2]) -> f64[2] {{\n  x1: f64[2] = root{{solver=fn r(x0: f64[2]) -> f64[2] {{\n    x1: f64[2] = sqrt x0\n    return x1\n  }}, \
             equation=fn e(x0: f64[2], x1: f64[2]) -> f64[2] {{\n    x2: f64[2] = mul x0 x0\n    x3: f64[2] = sub x2 x1\n    return x3\n  }}, \
             solve={}, transposed_solve={}}} x0\n  return x1\n}}\n",
            solve("v"),
            solve("t")
        );
        samples_of(&[(text.as_str(), vec![Array::from([4.0_f64, 2.25])])])
    }
}
