//! Derivatives: forward ones against differences of values, reverse ones as transposes of forward ones.

use super::numbers::{Random, of_reals, pairing, precision, to_reals, width};
use super::{Case, Outcome, Steps, Trouble, all_near};
use crate::array::Array;
use crate::error::Result;
use crate::interpret::interpret;
use crate::program::{Program, verify};
use crate::trace::{inline, trace_closed};
use crate::transform::{jvp, linearize, vjp};
use crate::types::{Dim, Type};

/// Differences are taken of steps this long. With both a whole and a half step (Richardson) the error is of the
/// fourth power, about 1e-15, while rounding costs 1e-16/1e-4.
const STEP: f64 = 1.0 / 4096.0;

/// Small operands: third derivatives of them cost little.
const SMALL: usize = 8;

impl Case {
    /// A program made of this one, with the sizes that the point has.
    fn with_sizes(&self, part: &Program) -> Result<Program> {
        if !part.is_symbolic() {
            return Ok(part.clone());
        }
        let types = self.inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>()?;
        let sizes = self.program.solve_symbols(&types)?;
        let part = part.map_dims(&|d| d.substitute(&|s| sizes.get(s).map(|n| Dim::from(*n))));
        verify(&part)?;
        Ok(part)
    }

    /// Which inputs have derivatives.
    pub(super) fn inexact(&self) -> Vec<bool> {
        self.inputs.iter().map(|a| a.dtype().is_inexact()).collect()
    }

    /// All inputs that have derivatives, and if there are several each of them alone.
    pub(super) fn active_sets(&self) -> Vec<Vec<bool>> {
        let all = self.inexact();
        let count = all.iter().filter(|on| **on).count();
        let alone = (0..all.len()).filter(|i| all[*i] && count > 1).take(7);
        let alone: Vec<Vec<bool>> = alone.map(|i| (0..all.len()).map(|j| i == j).collect()).collect();
        if count == 0 { Vec::new() } else { std::iter::once(all).chain(alone).collect() }
    }

    /// Directions as large as the inputs where those are small, so that a step stays on the same side of a pole.
    pub(super) fn directions(&self, active: &[bool], random: &mut Random) -> Result<Vec<Array>> {
        let mut all = Vec::new();
        for (x, _) in self.inputs.iter().zip(active).filter(|(_, on)| **on) {
            let (w, reals) = (width(x.dtype()), to_reals(x)?);
            let mut v = Vec::with_capacity(reals.len());
            for element in reals.chunks(w) {
                let size = element.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                let size = if size == 0.0 || !size.is_finite() { 1.0 } else { size.min(1.0) };
                v.extend(element.iter().map(|_| random.number() * size));
            }
            all.push(of_reals(x.ty()?, &v));
        }
        Ok(all)
    }

    /// What the program gives where the active inputs are moved along directions.
    pub(super) fn moved(&self, active: &[bool], directions: &[Array], by: f64) -> Result<Vec<Array>> {
        let mut directions = directions.iter();
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (x, on) in self.inputs.iter().zip(active) {
            let direction = if *on { directions.next() } else { None };
            inputs.push(match direction {
                Some(v) => {
                    let reals: Vec<f64> = to_reals(x)?.iter().zip(to_reals(v)?).map(|(x, v)| x + by * v).collect();
                    of_reals(x.ty()?, &reals)
                }
                None => x.clone(),
            });
        }
        interpret(&self.program, &inputs)
    }

    /// The derivative by the active inputs as a program at a point: inputs and tangents to outputs and tangents.
    pub(super) fn forward(&self, active: &[bool]) -> Result<(Case, Vec<bool>)> {
        let (program, varies) = jvp(&self.program, active)?;
        verify(&program)?;
        let mut inputs = self.inputs.clone();
        inputs.extend(self.directions(active, &mut Random::new(inputs.len() as u64))?);
        Ok((Case { program, inputs }, varies))
    }

    /// The pullback by the active inputs as a program at a point: inputs and cotangents of the outputs that vary to
    /// cotangents of the active inputs. None if no output varies.
    pub(super) fn backward(&self, active: &[bool]) -> Result<Option<Case>> {
        let reverse = vjp(&self.program, active)?;
        let outputs = self.run()?;
        let mut random = Random::new(77);
        let mut inputs = self.inputs.clone();
        for (y, _) in outputs.iter().zip(&reverse.varies).filter(|(_, on)| **on) {
            inputs.push(random.like(y.ty()?));
        }
        if inputs.len() == self.inputs.len() {
            return Ok(None);
        }
        // Specs of the program's own types, which may be symbolic, and of the outputs'.
        let types = self.program.inputs().iter().cloned();
        let bars = self.program.output_types().into_iter().zip(&reverse.varies).filter(|(_, on)| **on).map(|(t, _)| t);
        let specs: Vec<Array> = types.chain(bars).map(Array::of_type).collect();
        let program = trace_closed("pullback", &specs, |xs| {
            let (xs, bars) = xs.split_at(self.inputs.len().min(xs.len()));
            let mut made = inline(&reverse.primal, xs)?;
            let mut residuals = made.split_off(outputs.len().min(made.len()));
            residuals.extend_from_slice(bars);
            inline(&reverse.linear, &residuals)
        })?;
        verify(&program)?;
        Ok(Some(Case { program, inputs }))
    }

    /// Whether differences say something here: numbers of 64 bits.
    pub(super) fn is_precise(&self) -> bool {
        let wide = |t: &Type| !t.dtype().is_inexact() || precision(t.dtype()) < 1e-12;
        self.program.inputs().iter().all(wide) && self.program.output_types().iter().all(wide)
    }

    fn elements(&self) -> usize {
        self.inputs.iter().filter_map(|a| a.shape().count()).sum()
    }
}

/// The derivative by the active inputs against differences of values.
pub(super) fn differences(case: &Case, active: &[bool]) -> Outcome {
    differences_within(case, active, 1e-13)
}

/// The same, with so much room for the rounding of values that cancel on the way to a small result.
pub(super) fn differences_within(case: &Case, active: &[bool], least: f64) -> Outcome {
    let (forward, varies) = case.forward(active)?;
    let mut made = forward.run()?;
    let mut tangents = made.split_off(varies.len().min(made.len())).into_iter();
    let directions = &forward.inputs[case.inputs.len()..];
    let moved = |by: f64| case.moved(active, directions, by);
    let at = [moved(STEP)?, moved(-STEP)?, moved(STEP / 2.0)?, moved(-STEP / 2.0)?];
    let mut count = 0;
    for (k, y) in made.iter().enumerate() {
        let y_dot = if varies[k] { tangents.next() } else { None };
        if !y.dtype().is_inexact() {
            continue;
        }
        let values = to_reals(y)?;
        let y_dot = y_dot.map_or_else(|| Ok(vec![0.0; values.len()]), |t| to_reals(&t))?;
        let [a, b, c, d] = [to_reals(&at[0][k])?, to_reals(&at[1][k])?, to_reals(&at[2][k])?, to_reals(&at[3][k])?];
        let largest = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        for i in 0..values.len() {
            let (whole, half) = ((a[i] - b[i]) / (2.0 * STEP), (c[i] - d[i]) / STEP);
            // Infinities that stay where they are have no differences.
            let still = [a[i], b[i], c[i], d[i]].iter().all(|v| *v == values[i]);
            let want = if still { 0.0 } else { (4.0 * half - whole) / 3.0 };
            // Rounding of the values, enlarged by the division; sums around an element round as the largest does.
            let allowed = 1e-8 * want.abs() + 1e-10 * values[i].abs() + 1e-11 * largest + least;
            if (y_dot[i] - want).abs() <= allowed {
                continue;
            }
            return Err(format!(
                "by inputs {active:?}, result {k}, element {}: derivative {:?} where differences give {want:?}\n{}",
                i / width(y.dtype()),
                y_dot[i],
                forward.program
            )
            .into());
        }
        count += 1;
    }
    Ok(count)
}

/// `⟨Jv, w⟩ = ⟨v, Jᵀw⟩`, the linear part against the derivative program, and the primal against the program itself.
pub(super) fn transposition(case: &Case, active: &[bool]) -> Outcome {
    let (forward, varies) = case.forward(active)?;
    let mut made = forward.run()?;
    let tangents = made.split_off(varies.len().min(made.len()));
    let directions = &forward.inputs[case.inputs.len()..];
    let linear = linearize(&case.program, active)?;
    let reverse = vjp(&case.program, active)?;
    for p in [&linear.primal, &linear.linear, &reverse.primal, &reverse.linear] {
        verify(p)?;
    }
    // A linear program alone may lack the inputs that would tell it a size; the point is known here.
    let [forward_map, backward_map] = [case.with_sizes(&linear.linear)?, case.with_sizes(&reverse.linear)?];
    let mut primal = interpret(&reverse.primal, &case.inputs)?;
    let residuals = primal.split_off(made.len().min(primal.len()));
    let mut count = all_near(&primal, &made, 0.0)?;
    let apply = |p: &Program, more: &[Array]| interpret(p, &[&residuals, more].concat());

    // A tangent that is constant is zero and has no part in the linear program.
    let mut kept = Vec::new();
    for (k, y_dot) in varies.iter().enumerate().filter(|(_, on)| **on).map(|(k, _)| k).zip(&tangents) {
        if reverse.varies[k] {
            kept.push(y_dot.clone());
        } else if to_reals(y_dot)?.iter().any(|t| *t != 0.0) {
            return Err(format!("the tangent of result {k} is called constant and is {y_dot:?}").into());
        }
    }
    let units = 256.0;
    count += all_near(&apply(&forward_map, directions)?, &kept, units)?;

    let mut random = Random::new(5);
    let bars = kept.iter().map(|t| Ok(random.like(t.ty()?))).collect::<Result<Vec<_>>>()?;
    let pulled = apply(&backward_map, &bars)?;
    for (v, x_bar) in directions.iter().zip(&pulled) {
        if v.ty()? != x_bar.ty()? {
            return Err(format!("a cotangent {} of an input {}", x_bar.ty()?, v.ty()?).into());
        }
    }
    let (mut left, mut right, mut size, mut coarse) = (0.0, 0.0, 0.0, 0.0_f64);
    for (pairs, total) in [(kept.iter().zip(&bars), &mut left), (directions.iter().zip(&pulled), &mut right)] {
        for (a, b) in pairs {
            let (sum, around) = pairing(a, b)?;
            *total += sum;
            size += around;
            coarse = coarse.max(precision(a.dtype()));
        }
    }
    // At a pole there is nothing to compare.
    if left.is_finite() && right.is_finite() && (left - right).abs() > units * coarse * size {
        let pulled: Vec<String> = pulled.iter().map(|a| format!("{a:?}")).collect();
        return Err(format!(
            "by inputs {active:?}: ⟨Jv,w⟩ = {left:?}, ⟨v,Jᵀw⟩ = {right:?}\n  Jᵀw = {}\n{}",
            pulled.join(", "),
            reverse.linear
        )
        .into());
    }
    Ok(count + 1)
}

impl Steps<'_> {
    pub(super) fn forward(&mut self, case: &Case) {
        let precise = self.sample.smooth && case.is_precise();
        let compare = |case: &Case, active: &[bool]| {
            if precise {
                differences(case, active)
            } else {
                case.forward(active)?.0.run().map(|_| 0).map_err(Trouble::from)
            }
        };
        for active in case.active_sets() {
            self.step("first derivative", || compare(case, &active));
        }
        let mut order = case.forward(&case.inexact()).ok();
        for what in ["second derivative", "third derivative"] {
            let Some((case, varies)) = &order else { return };
            // Linear operations on many elements have no third derivative worth its time.
            if !varies.contains(&true) || (what == "third derivative" && case.elements() > 4 * SMALL) {
                return;
            }
            self.step(what, || compare(case, &case.inexact()));
            order = case.forward(&case.inexact()).ok();
        }
    }

    pub(super) fn reverse(&mut self, case: &Case) {
        let smooth = self.sample.smooth && case.is_precise();
        for active in case.active_sets() {
            self.step("reverse of first order", || transposition(case, &active));
        }
        let all = case.inexact();
        if !all.contains(&true) {
            return;
        }
        if let Ok((forward, varies)) = case.forward(&all)
            && varies.contains(&true)
        {
            self.step("reverse over forward", || transposition(&forward, &forward.inexact()));
        }
        if let Some(Some(backward)) = self.prepare("the pullback as a program", || case.backward(&all)) {
            if smooth {
                self.step("forward over reverse", || differences(&backward, &backward.inexact()));
            }
            self.step("reverse over reverse", || transposition(&backward, &backward.inexact()));
        }
    }
}
