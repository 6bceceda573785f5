//! Points that samples leave out: zero, halves and small whole numbers. There rules single out cases (a quotient that is 0/0, a power of
//! zero, a factor that vanishes), and the function is often smooth all the same: sin(x)/x at 0, x² by its base at 0. A rule that is
//! right around such a point and wrong in it passes at every other one.
//!
//! No sample says where a function is smooth among these points. Its values say it: of a smooth function the differences of seventh order over
//! a short way are next to nothing, and a kink, a jump or a pole shows in them.

use super::derivatives::{differences_within, transposition};
use super::numbers::{Random, of_reals, to_reals};
use super::{Case, Outcome, Steps};
use crate::array::Array;
use crate::error::Result;
use crate::types::{DType, Shape, Type};

/// The points, those first that rules single out most often.
const POINTS: [f64; 9] = [0.0, 1.0, -1.0, 2.0, 0.5, -0.5, -2.0, 3.0, -0.0];

/// Those that operations take which are more than one function of one element: several of them add up, and where functions saturate there is
/// nothing to compare.
const FILLING: [f64; 4] = [0.0, 1.0, -1.0, 0.5];

/// At most so many combinations of points.
const MOST: usize = 64;

/// The length of a step from one value that is looked at to the next.
const STEP: f64 = 1.0 / 64.0;

/// A jump in a derivative of order m is about STEP^m in the differences; a smooth function's are about STEP^7.
const KINK: f64 = 1e-6;

/// What rounding may cost: one unit of numbers around one, divided by a step.
const ROUNDING: f64 = 1e-11;

impl Case {
    /// Whether an operand is one that points can stand in.
    fn takes_points(&self) -> Vec<bool> {
        self.inputs.iter().map(|a| a.dtype() == DType::F64).collect()
    }

    /// The operation at plain points, and whether its elements can be picked from one by one.
    fn at_plain_points(&self) -> Vec<(Case, bool)> {
        let each_alone = self.program.equations().iter().all(|e| e.op().is_elementwise());
        let takes = self.takes_points();
        if each_alone && takes.iter().all(|on| *on) {
            return vec![(self.at_combinations(), true)];
        }
        let filled = |start: usize, step: usize| {
            let fill = |(k, (x, on)): (usize, (&Array, &bool))| {
                let count = x.shape().count().unwrap_or(0);
                let numbers: Vec<f64> = (0..count).map(|i| FILLING[(start + (i + k) * step) % FILLING.len()]).collect();
                if *on { of_reals(&Type::new(DType::F64, x.shape().clone()), &numbers) } else { x.clone() }
            };
            let inputs = self.inputs.iter().zip(&takes).enumerate().map(fill).collect();
            (Case { program: self.program.clone(), inputs }, false)
        };
        // One number in every place, then all of them in turn.
        (0..FILLING.len()).map(|p| filled(p, 0)).chain([filled(0, 1)]).collect()
    }

    /// Every combination of points, side by side.
    fn at_combinations(&self) -> Case {
        let arity = self.inputs.len();
        let most = |n: &usize| n.checked_pow(arity as u32).is_some_and(|all| all <= MOST);
        let each = (1..=POINTS.len()).rev().find(most).unwrap_or(1);
        let count = each.saturating_pow(arity as u32).min(MOST);
        let operand = |k: u32| (0..count).map(|i| POINTS[i / each.saturating_pow(k) % each]).collect();
        self.on((0..arity as u32).map(operand).collect())
    }

    /// The operation, which treats every element alike, on lists of numbers.
    fn on(&self, operands: Vec<Vec<f64>>) -> Case {
        let list = |o: &Vec<f64>| of_reals(&Type::new(DType::F64, Shape::from(vec![o.len().into()])), o);
        let inputs: Vec<Array> = operands.iter().map(list).collect();
        let program = match self.program.equations() {
            [e] => Case::single(e.op(), &inputs).map_or_else(|_| self.program.clone(), |case| case.program),
            _ => self.program.clone(),
        };
        Case { program, inputs }
    }

    /// For each element of the results, whether it is smooth along the active operands as far as values tell: along all of them, and along each
    /// alone, because the median of three equal numbers is smooth along every line on which all of them move.
    fn smooth(&self, active: &[bool]) -> Result<Vec<bool>> {
        let mut smooth = self.smooth_along(active)?;
        for i in (0..active.len()).filter(|i| active[*i]) {
            let alone: Vec<bool> = (0..active.len()).map(|j| i == j).collect();
            smooth.iter_mut().zip(self.smooth_along(&alone)?).for_each(|(all, on)| *all &= on);
        }
        Ok(smooth)
    }

    fn smooth_along(&self, active: &[bool]) -> Result<Vec<bool>> {
        let directions = self.directions(active, &mut Random::new(self.inputs.len() as u64))?;
        let mut at: Vec<Vec<f64>> = Vec::new();
        for k in -4..=4 {
            let made = self.moved(active, &directions, f64::from(k) * STEP)?;
            at.push(made.iter().map(to_reals).collect::<Result<Vec<_>>>()?.concat());
        }
        let smooth = |i: usize| {
            let values: Vec<f64> = at.iter().map(|v| v[i]).collect();
            let largest = values.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
            // With the point in the middle what is odd around it would cancel.
            let binomials = [1.0, -7.0, 21.0, -35.0, 35.0, -21.0, 7.0, -1.0];
            let difference = |w: &[f64]| w.iter().zip(binomials).map(|(v, c)| v * c).sum::<f64>().abs();
            values.iter().all(|v| v.is_finite()) && values.windows(8).all(|w| difference(w) <= KINK * largest)
        };
        Ok((0..at[0].len()).map(smooth).collect())
    }

    /// What is left of the points where the function is smooth along the active operands.
    fn where_smooth(&self, active: &[bool], one_by_one: bool) -> Result<Option<Case>> {
        let smooth = self.smooth(active)?;
        if !one_by_one {
            let whole = smooth.iter().all(|on| *on) && !smooth.is_empty();
            return Ok(whole.then(|| Case { program: self.program.clone(), inputs: self.inputs.clone() }));
        }
        let kept = |x: Vec<f64>| x.into_iter().zip(&smooth).filter(|(_, on)| **on).map(|(x, _)| x).collect();
        let operands: Vec<Vec<f64>> = self.inputs.iter().map(|x| to_reals(x).map(kept)).collect::<Result<_>>()?;
        Ok(smooth.contains(&true).then(|| self.on(operands)))
    }
}

/// First and second derivatives by the active operands.
fn to_second_order(case: &Case, active: &[bool]) -> Outcome {
    let mut count = differences_within(case, active, ROUNDING)? + transposition(case, active)?;
    let (slope, varies) = case.forward(active)?;
    if varies.contains(&true) {
        let mut active = active.to_vec();
        active.resize(slope.inputs.len(), true);
        count += differences_within(&slope, &active, ROUNDING)?;
    }
    Ok(count)
}

impl Steps<'_> {
    /// Derivatives at points that samples leave out.
    pub(super) fn plain_points(&mut self, case: &Case) {
        if !self.sample.smooth || !case.is_precise() || !case.takes_points().contains(&true) {
            return;
        }
        for (plain, one_by_one) in case.at_plain_points() {
            for active in case.active_sets() {
                // What is refused or fails there is no point to look at.
                let Ok(Some(smooth)) = plain.where_smooth(&active, one_by_one) else { continue };
                let points: Vec<String> = smooth.inputs.iter().map(|a| format!("{a:?}")).collect();
                self.step(&format!("at plain points {}", points.join(", ")), || to_second_order(&smooth, &active));
            }
        }
    }
}
