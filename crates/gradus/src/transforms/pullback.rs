//! The two halves of a derivative as values: `jvp`, `linearize`, and `vjp` with its pullback. Errors travel inside of the arrays, so that
//! all of them can stand in functions that give arrays.

use gradus_core::error::counted;
use std::fmt;

use gradus_core::program::ValueId;
use gradus_core::transform::{self, Linearized};
use gradus_core::{Array, Error, ErrorKind, Location, Program, Result, Type, trace};

use super::AtPoint;
use crate::function::Func;
use crate::stage::{failed, fill, poison};
use crate::tree::{Tree, again};

/// The value of `f` at `x` and its derivative along `x_dot`.
///
/// A function of several values takes them as a tuple: `jvp(|(a, b): &(Array, Array)| a * b, &(a, b), &(da, db))`.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (y, dy) = jvp(|x: &Array| x * x, &Array::from(3.0), &Array::from(10.0));
/// assert_eq!([y.item::<f64>()?, dy.item::<f64>()?], [9.0, 60.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jvp<A: Tree, O: Tree, F: Func<(A,), O>>(f: F, x: &A, x_dot: &A) -> (O, O) {
    try_jvp(&f, x, x_dot, Location::caller()).unwrap_or_else(|e| {
        let y = failed(&f, (x,), &e);
        (again(&y), y)
    })
}

pub(super) fn try_jvp<A: Tree, O: Tree>(
    f: &(dyn Func<(A,), O> + '_),
    x: &A,
    x_dot: &A,
    place: Location,
) -> Result<(O, O)> {
    let point = AtPoint::new(f, (x,), place)?;
    let mut tangents = tangents_like(&point.inputs[..point.arguments], x_dot, place)?;
    tangents.resize(point.inputs.len(), None);
    let (outputs, output_dots) = transform::jvp_on(&point.traced.program, &point.inputs, &tangents)?;
    let zeros =
        output_dots.into_iter().zip(&outputs).map(|(t, y)| t.unwrap_or_else(|| y.zeros_like())).collect::<Vec<_>>();
    Ok((fill(&point.template, outputs), fill(&point.template, zeros)))
}

/// The arrays of a tangent or cotangent, checked against those it belongs to. Integers and bools have none.
fn tangents_like<T: Tree>(of: &[Array], tangent: &T, place: Location) -> Result<Vec<Option<Array>>> {
    let leaves = tangent.leaves();
    if leaves.len() != of.len() {
        let message = format!("a tangent with {} for a value with {}", counted(leaves.len(), "array"), of.len());
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
    fn new<O: Tree>(
        point: &AtPoint<O>,
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
            /// The program that computes the value and the residuals; the error, if there is none.
            pub fn primal(&self) -> Result<&Program> {
                Ok(&self.halves.as_ref().map_err(Error::clone)?.parts.primal)
            }
            #[doc = $linear_doc]
            pub fn program(&self) -> Result<&Program> {
                Ok(&self.halves.as_ref().map_err(Error::clone)?.parts.linear)
            }
            /// What passes from one to the other.
            pub fn residuals(&self) -> Vec<Residual> {
                self.halves.as_ref().map_or_else(|_| Vec::new(), |h| residuals_of(&h.parts))
            }
            /// The bytes that pass from one to the other.
            pub fn residual_bytes(&self) -> usize {
                self.halves.as_ref().map_or(0, |h| h.parts.residual_bytes())
            }
        }
    };
}

/// The value of a function at a point, and one of the halves there.
fn halves_at<A: Tree, O: Tree>(
    f: &(dyn Func<(A,), O> + '_),
    x: &A,
    make: fn(&Program, &[bool]) -> Result<Linearized>,
    place: Location,
) -> (O, Result<Halves>) {
    let made = AtPoint::new(f, (x,), place).and_then(|point| {
        let (outputs, halves) = Halves::new(&point, make)?;
        Ok((fill(&point.template, outputs), halves))
    });
    match made {
        Ok((y, halves)) => (y, Ok(halves)),
        Err(e) => (failed(f, (x,), &e), Err(e)),
    }
}

/// The backward half of a function at a point: cotangents of the result become cotangents of the argument.
#[derive(Clone)]
pub struct Pullback<A: Tree, O: Tree> {
    argument: A,
    result: O,
    halves: Result<Halves>,
}
halves!(Pullback, "The program that takes residuals and cotangents of the result to cotangents of the argument.");

/// The value of `f` at `x`, and the pullback there.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (y, back) = vjp(|x: &Array| x * x, &Array::from([1.0, 3.0]));
/// assert_eq!(y.to_vec::<f64>()?, [1.0, 9.0]);
/// assert_eq!(back.call(&Array::from([1.0, 10.0])).to_vec::<f64>()?, [2.0, 60.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn vjp<A: Tree, O: Tree, F: Func<(A,), O>>(f: F, x: &A) -> (O, Pullback<A, O>) {
    let (result, halves) = halves_at(&f, x, transform::vjp, Location::caller());
    (again(&result), Pullback { argument: again(x), result, halves })
}

impl<A: Tree, O: Tree> Pullback<A, O> {
    /// The cotangent of the argument. Integers and bools in it get zeros.
    #[track_caller]
    pub fn call(&self, y_bar: &O) -> A {
        self.try_call(y_bar, Location::caller()).unwrap_or_else(|e| poison(&self.argument, &e))
    }

    pub(super) fn try_call(&self, y_bar: &O, place: Location) -> Result<A> {
        let halves = self.halves.as_ref().map_err(Error::clone)?;
        let bars = tangents_like(&self.result.leaves(), y_bar, place)?;
        let given = bars.into_iter().zip(&halves.parts.varies).filter(|(_, on)| **on).filter_map(|(b, _)| b);
        let mut bars = halves.run(given.collect())?.into_iter();
        let leaves = self.argument.leaves();
        let each = leaves.iter().map(|x| {
            let bar = if x.dtype().is_inexact() { bars.next() } else { None };
            bar.unwrap_or_else(|| x.zeros_like())
        });
        Ok(fill(&self.argument, each))
    }
}

/// The forward half of a function at a point: tangents of the argument become tangents of the result.
#[derive(Clone)]
pub struct Linear<A: Tree, O: Tree> {
    argument: A,
    result: O,
    halves: Result<Halves>,
}
halves!(Linear, "The linear program that takes residuals and tangents of the argument to tangents of the result.");

/// The value of `f` at `x`, and its best linear approximation there.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (y, forward) = linearize(|x: &Array| x * x, &Array::from(3.0));
/// assert_eq!(y.item::<f64>()?, 9.0);
/// assert_eq!(forward.call(&Array::from(1.0)).item::<f64>()?, 6.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn linearize<A: Tree, O: Tree, F: Func<(A,), O>>(f: F, x: &A) -> (O, Linear<A, O>) {
    let (result, halves) = halves_at(&f, x, transform::linearize, Location::caller());
    (again(&result), Linear { argument: again(x), result, halves })
}

impl<A: Tree, O: Tree> Linear<A, O> {
    /// The tangent of the result.
    #[track_caller]
    pub fn call(&self, x_dot: &A) -> O {
        self.try_call(x_dot, Location::caller()).unwrap_or_else(|e| poison(&self.result, &e))
    }

    fn try_call(&self, x_dot: &A, place: Location) -> Result<O> {
        let halves = self.halves.as_ref().map_err(Error::clone)?;
        let given = tangents_like(&self.argument.leaves(), x_dot, place)?;
        let mut dots = halves.run(given.into_iter().flatten().collect())?.into_iter();
        let outputs = self.result.leaves();
        let each = outputs.iter().zip(&halves.parts.varies).map(|(y, on)| {
            let dot = if *on { dots.next() } else { None };
            dot.unwrap_or_else(|| y.zeros_like())
        });
        Ok(fill(&self.result, each))
    }
}
