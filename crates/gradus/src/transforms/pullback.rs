//! The two halves of a derivative as values: `jvp`, `linearize`, and `vjp` with its pullback.

use std::fmt;

use gradus_core::program::ValueId;
use gradus_core::transform::{self, Linearized};
use gradus_core::{Array, Error, ErrorKind, Location, Program, Result, Type, trace};

use super::AtPoint;
use crate::function::Func;
use crate::signature::args::Sig1;
use crate::stage::fill;
use crate::tree::{Tree, again};

/// The value of `f` at `x` and its derivative along `x_dot`.
///
/// A function of several values takes them as a tuple: `jvp(|(a, b): &(Array, Array)| a * b, &(a, b), &(da, db))`.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (y, dy) = jvp(|x: &Array| x * x, &Array::from(3.0_f64), &Array::from(10.0_f64))?;
/// assert_eq!([y.item::<f64>()?, dy.item::<f64>()?], [9.0, 60.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jvp<A: Tree, O: Tree, F: Func<Sig1<A, O>>>(f: F, x: &A, x_dot: &A) -> Result<(O, O)> {
    let place = Location::caller();
    let point = AtPoint::new(&f, (x,), place)?;
    let dots = tangents_like(&point.inputs[..point.arguments], x_dot, place)?;
    let mut tangents: Vec<Option<Array>> = dots;
    tangents.resize(point.inputs.len(), None);
    let (outputs, output_dots) = transform::jvp_on(&point.traced.program, &point.inputs, &tangents)?;
    let zeros = output_dots.into_iter().zip(&outputs).map(|(t, y)| t.unwrap_or_else(|| y.zeros_like())).collect();
    Ok((fill(&point.template, outputs), fill(&point.template, zeros)))
}

/// The arrays of a tangent or cotangent, checked against those it belongs to. Integers and bools have none.
fn tangents_like<T: Tree>(of: &[Array], tangent: &T, place: Location) -> Result<Vec<Option<Array>>> {
    let leaves = tangent.leaves();
    if leaves.len() != of.len() {
        let message = format!("a tangent with {} arrays for a value with {}", leaves.len(), of.len());
        return Err(Error::new(ErrorKind::Signature, message).at(place));
    }
    let mut all = Vec::with_capacity(of.len());
    for (x, t) in of.iter().zip(leaves) {
        let (want, have) = (x.ty()?, t.ty()?);
        if !want.dtype().is_inexact() {
            all.push(None);
            continue;
        }
        if want != have {
            let e = Error::new(ErrorKind::Signature, format!("a tangent of type {have} for a value of type {want}"));
            return Err(e.at(place).help("a tangent has the type of the value it belongs to"));
        }
        all.push(Some(t));
    }
    Ok(all)
}

/// A value that passes from the primal program to the linear one.
#[derive(Clone, Debug)]
pub struct Residual {
    name: String,
    ty: Type,
    place: Location,
}

impl Residual {
    /// Its name in the primal program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The user's line that computes it, where known.
    pub fn place(&self) -> Location {
        self.place
    }

    /// Its bytes, where its size is known.
    pub fn bytes(&self) -> usize {
        self.ty.bytes().unwrap_or(0)
    }
}

impl fmt::Display for Residual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.ty)
    }
}

fn residuals_of(parts: &Linearized) -> Vec<Residual> {
    let p = &parts.primal;
    let outputs = p.outputs();
    let first = outputs.len() - parts.residuals.len();
    let place_of = |v: ValueId| p.equations().iter().find(|e| e.results().any(|r| r == v)).map(|e| e.place());
    outputs[first..]
        .iter()
        .zip(&parts.residuals)
        .map(|(a, ty)| Residual {
            name: a.value().map_or_else(|| "constant".to_string(), |v| v.to_string()),
            ty: ty.clone(),
            place: a.value().and_then(place_of).unwrap_or_default(),
        })
        .collect()
}

/// Both halves at a point: the programs, and the residuals' numbers.
#[derive(Clone)]
struct Halves {
    parts: Linearized,
    kept: Vec<Array>,
}

impl Halves {
    fn new<A: Tree, O: Tree>(
        point: &AtPoint<Sig1<A, O>>,
        make: fn(&Program, &[bool]) -> Result<Linearized>,
    ) -> Result<(Vec<Array>, Halves)> {
        let active = point.active(0..point.arguments);
        let parts = make(&point.traced.program, &active)?;
        let mut outputs = trace::inline(&parts.primal, &point.inputs)?;
        let kept = outputs.split_off(outputs.len() - parts.residuals.len());
        Ok((outputs, Halves { parts, kept }))
    }

    /// Runs the linear half on what belongs to the active inputs or varying outputs.
    fn run(&self, given: Vec<Array>) -> Result<Vec<Array>> {
        let inputs: Vec<Array> = self.kept.iter().cloned().chain(given).collect();
        trace::inline(&self.parts.linear, &inputs)
    }
}

macro_rules! halves {
    ($name:ident, $linear_doc:literal) => {
        impl<A: Tree, O: Tree> $name<A, O> {
            /// The program that computes the value and the residuals.
            pub fn primal(&self) -> &Program {
                &self.halves.parts.primal
            }
            #[doc = $linear_doc]
            pub fn program(&self) -> &Program {
                &self.halves.parts.linear
            }
            /// What passes from one to the other.
            pub fn residuals(&self) -> Vec<Residual> {
                residuals_of(&self.halves.parts)
            }
            /// The bytes that pass from one to the other.
            pub fn residual_bytes(&self) -> usize {
                self.halves.parts.residual_bytes()
            }
        }
    };
}

/// The backward half of a function at a point: cotangents of the result become cotangents of the argument.
#[derive(Clone)]
pub struct Pullback<A: Tree, O: Tree> {
    argument: A,
    result: O,
    halves: Halves,
}
halves!(Pullback, "The program that takes residuals and cotangents of the result to cotangents of the argument.");

/// The value of `f` at `x`, and the pullback there.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (y, back) = vjp(|x: &Array| x * x, &Array::from([1.0_f64, 3.0]))?;
/// assert_eq!(y.to_vec::<f64>()?, [1.0, 9.0]);
/// assert_eq!(back.call(&Array::from([1.0_f64, 10.0]))?.to_vec::<f64>()?, [2.0, 60.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn vjp<A: Tree, O: Tree, F: Func<Sig1<A, O>>>(f: F, x: &A) -> Result<(O, Pullback<A, O>)> {
    let point = AtPoint::new(&f, (x,), Location::caller())?;
    let (outputs, halves) = Halves::new(&point, transform::vjp)?;
    let result = fill(&point.template, outputs);
    Ok((again(&result), Pullback { argument: again(x), result, halves }))
}

impl<A: Tree, O: Tree> Pullback<A, O> {
    /// The cotangent of the argument. Integers and bools in it get zeros.
    #[track_caller]
    pub fn call(&self, y_bar: &O) -> Result<A> {
        let place = Location::caller();
        let outputs = self.result.leaves();
        let bars = tangents_like(&outputs, y_bar, place)?;
        let given = bars.into_iter().zip(&self.halves.parts.varies).filter(|(_, on)| **on).filter_map(|(b, _)| b);
        let mut bars = self.halves.run(given.collect())?.into_iter();
        let leaves = self.argument.leaves();
        let each = leaves.iter().map(|x| {
            let bar = if x.dtype().is_inexact() { bars.next() } else { None };
            bar.unwrap_or_else(|| x.zeros_like())
        });
        Ok(fill(&self.argument, each.collect()))
    }
}

/// The forward half of a function at a point: tangents of the argument become tangents of the result.
#[derive(Clone)]
pub struct Linear<A: Tree, O: Tree> {
    argument: A,
    result: O,
    halves: Halves,
}
halves!(Linear, "The linear program that takes residuals and tangents of the argument to tangents of the result.");

/// The value of `f` at `x`, and its best linear approximation there.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (y, forward) = linearize(|x: &Array| x * x, &Array::from(3.0_f64))?;
/// assert_eq!(y.item::<f64>()?, 9.0);
/// assert_eq!(forward.call(&Array::from(1.0_f64))?.item::<f64>()?, 6.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn linearize<A: Tree, O: Tree, F: Func<Sig1<A, O>>>(f: F, x: &A) -> Result<(O, Linear<A, O>)> {
    let point = AtPoint::new(&f, (x,), Location::caller())?;
    let (outputs, halves) = Halves::new(&point, transform::linearize)?;
    let result = fill(&point.template, outputs);
    Ok((again(&result), Linear { argument: again(x), result, halves }))
}

impl<A: Tree, O: Tree> Linear<A, O> {
    /// The tangent of the result.
    #[track_caller]
    pub fn call(&self, x_dot: &A) -> Result<O> {
        let given = tangents_like(&self.argument.leaves(), x_dot, Location::caller())?;
        let mut dots = self.halves.run(given.into_iter().flatten().collect())?.into_iter();
        let outputs = self.result.leaves();
        let each = outputs.iter().zip(&self.halves.parts.varies).map(|(y, on)| {
            let dot = if *on { dots.next() } else { None };
            dot.unwrap_or_else(|| y.zeros_like())
        });
        Ok(fill(&self.result, each.collect()))
    }
}
