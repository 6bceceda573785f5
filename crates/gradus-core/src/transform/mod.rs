//! Transformations: functions from program to program. `x_dot` is a tangent, `x_bar` a cotangent.
//!
//! Reverse mode is three of them in a row: [`jvp`] gives a program that is linear in its tangents, [`partial_eval`]
//! splits it into what can be computed without them and what cannot, [`transpose`] turns the linear part around.
//!
//! *Invariants.* What comes out is a closed program with the inputs that its function says. A tangent that is zero by construction is `None`
//! and never an equation. Conditions on dimensions outlive the equations that asked for them. What a rule records carries the user's line.

mod jvp;
mod linearize;
mod partial;
mod residuals;
mod shared;
mod transpose;
mod vmap;

pub use jvp::{jvp, jvp_on};
pub use linearize::{Linearized, linearize, pull_back_once, vjp};
pub(crate) use partial::Terms;
pub use partial::{Split, partial_eval};
pub(crate) use shared::{jvp_of, split_of, transpose_of, vmap_of};
pub use transpose::transpose;
pub(crate) use transpose::transpose_on;
pub use vmap::{vmap, vmap_on};

use crate::array::{Array, Outputs};
use crate::error::{Location, Result, error};
use crate::location::{Named, Rule};
use crate::primitives::shaping::fit;
pub(crate) use crate::primitives::shaping::zeros as zeros_of;
use crate::program::{Equation, Program};
use crate::trace::value_of as read;
use crate::types::{Decision, Dim, Effects, Type};

/// The results of an equation, if they are as many as it has. An operation that fails gives one, with the error, which
/// would otherwise stand where the next equation's result belongs.
fn counted(equation: &Equation, outputs: Outputs) -> Result<Outputs> {
    let wanted = equation.results().len();
    if outputs.len() == wanted {
        return Ok(outputs);
    }
    match outputs.first().and_then(Array::error) {
        Some(e) => Err(e.clone()),
        None => Err(error!(Rule, "`{}` gave {} results where it has {wanted}", equation.op().name(), outputs.len())),
    }
}

/// A tangent or cotangent under the dimensions of the value that it belongs to. Dimensions that are equal by a condition of the program may differ
/// in their text (`add` of `f64[N]` and `f64[max(N,0)]`); those that cannot be equal are a rule's mistake.
fn fitted(x: &Array, ty: &Type) -> Result<Option<Array>> {
    let have = x.ty()?;
    if have == ty {
        return Ok(Some(x.clone()));
    }
    let equal = |(a, b): (&Dim, &Dim)| a.equals(b) != Decision::No;
    let fits =
        have.dtype() == ty.dtype() && have.rank() == ty.rank() && have.shape().iter().zip(ty.shape().iter()).all(equal);
    Ok(fits.then(|| fit(x.clone(), ty.shape())))
}

/// What a missing rule becomes: an error that names primitive, rule and the user's line.
fn missing(equation: &Equation, rule: &str, why: &str) -> crate::Error {
    let e = error!(MissingRule, "`{}` has no {rule} rule", equation.op().name()).at(equation.place());
    if why.is_empty() { e } else { e.help(why) }
}

/// The place of an equation, where it has one.
fn place_of(equation: &Equation, otherwise: Location) -> Location {
    if equation.place().is_known() { equation.place() } else { otherwise }
}

/// The place that a rule of an equation's operation runs on behalf of: what it records is there because of the rule.
fn behind(rule: Rule, equation: &Equation, otherwise: Location) -> Location {
    let op = equation.op();
    let limits = op.limits();
    place_of(equation, otherwise).through(rule, Named { name: op.name(), slope: limits.slope, safe: limits.safe })
}

/// The line of the first effect of some kind in a program or in what it holds.
pub(crate) fn place_of_effect(program: &Program, effects: Effects) -> Option<Location> {
    let equation = program.equations().iter().find(|e| e.op().effects().contains(effects))?;
    let inside = equation.op().programs().into_iter().find_map(|p| place_of_effect(&p, effects));
    Some(inside.unwrap_or(equation.place()))
}
