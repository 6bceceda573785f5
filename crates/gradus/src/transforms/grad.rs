//! Gradients: reverse mode of functions with a scalar result.

use gradus_core::error::counted;
use std::sync::Arc;

use gradus_core::{Array, Error, ErrorKind, Location, Result, trace, transform};

use super::{AtPoint, leaves_at};
use crate::arguments::{Arguments, Position};
use crate::function::{Func, Transformed};
use crate::stage::{failed, fill, poison};
use crate::tree::Tree;

/// The gradient of a function by its first argument; the result has that argument's type.
///
/// The function gives a scalar: one array of a real dtype with no axes. Integers and bools in the argument get
/// zeros. Not staged, it runs as it is called and host branches on values work; `jit(grad(f))` is a stored program.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let df = grad(|x: &Array| (x * x * x).sum());
/// assert_eq!(df(&Array::from([1.0_f64, 2.0])).to_vec::<f64>()?, [3.0, 12.0]);
/// // Of a function of several arguments, by the first; transformations nest, and `jit` goes around them.
/// let dw = jit(grad(|w: &Array, x: &Array| (w * x).sum()));
/// assert_eq!(dw(&Array::from([1.0_f64, 1.0]), &Array::from([5.0_f64, 7.0])).to_vec::<f64>()?, [5.0, 7.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn grad<'f, A: Arguments, O: Tree, F: Func<A, O> + 'f>(f: F) -> Transformed<'f, A, A::First> {
    by_first("grad", f, one_array, |(_, gradient)| gradient)
}

/// The value and the gradient by the first argument.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let f = value_and_grad(|x: &Array| (x * x).sum());
/// let (y, dx) = f(&Array::from([1.0_f64, 2.0]));
/// assert_eq!(y.item::<f64>()?, 5.0);
/// assert_eq!(dx.to_vec::<f64>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn value_and_grad<'f, A: Arguments, O: Tree, F: Func<A, O> + 'f>(f: F) -> Transformed<'f, A, (O, A::First)> {
    by_first("value_and_grad", f, one_array, |both| both)
}

/// The gradient of a function that also gives something else: `f` returns `(loss, aux)`, this `(gradient, aux)`.
#[track_caller]
pub fn grad_with_aux<'f, A, L, X, F>(f: F) -> Transformed<'f, A, (A::First, X)>
where
    A: Arguments,
    L: Tree,
    X: Tree,
    F: Func<A, (L, X)> + 'f,
{
    by_first("grad_with_aux", f, |t: &(L, X)| one_array(&t.0), |((_, aux), gradient)| (gradient, aux))
}

/// The value, aux and gradient of a function that returns `(loss, aux)`: `((loss, aux), gradient)`.
#[track_caller]
pub fn value_and_grad_with_aux<'f, A, L, X, F>(f: F) -> Transformed<'f, A, ((L, X), A::First)>
where
    A: Arguments,
    L: Tree,
    X: Tree,
    F: Func<A, (L, X)> + 'f,
{
    by_first("value_and_grad_with_aux", f, |t: &(L, X)| one_array(&t.0), |both| both)
}

fn one_array<T: Tree>(loss: &T) -> bool {
    loss.leaves().len() == 1
}

/// What the four gradients by the first argument share: `finish` picks what is given of value and gradient.
#[track_caller]
fn by_first<'f, A: Arguments, O: Tree, P: Tree>(
    transform: &'static str,
    f: impl Func<A, O> + 'f,
    one_loss: fn(&O) -> bool,
    finish: fn((O, A::First)) -> P,
) -> Transformed<'f, A, P> {
    let f = Arc::new(f);
    let (inner, place) = (f.clone(), Location::caller());
    Transformed::direct(
        transform,
        &*f,
        Box::new(move |args| {
            let result = gradient(&*inner, place, args, 0..A::first(args).leaves().len(), one_loss);
            finish(with_value(&*inner, args, result))
        }),
    )
}

/// The gradient by every argument, as a tuple.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let d = grad_all(|a: &Array, b: &Array| a * b * b);
/// let (da, db) = d(&Array::from(2.0_f64), &Array::from(3.0_f64));
/// assert_eq!([da.item::<f64>()?, db.item::<f64>()?], [9.0, 12.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn grad_all<'f, A: Arguments, O: Tree, F: Func<A, O> + 'f>(f: F) -> Transformed<'f, A, A> {
    let f = Arc::new(f);
    let (inner, place) = (f.clone(), Location::caller());
    Transformed::direct(
        "grad_all",
        &*f,
        Box::new(move |args| {
            let result = gradient(&*inner, place, args, 0..usize::MAX, one_array);
            let owned = A::map_all(args, &mut crate::stage::Replace(|a: &Array| a.clone()));
            give(&owned, result.map(|(_, _, bars)| bars))
        }),
    )
}

/// The gradient by the argument at a position, counted from 0; the result has that argument's type.
///
/// A number is enough where all arguments have one type. Where they differ the position is part of the type:
/// [`Arg`](crate::Arg).
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let by_second = grad_by(1, |a: &Array, b: &Array| a * b * b);
/// assert_eq!(by_second(&Array::from(2.0), &Array::from(3.0)).item::<f64>()?, 12.0);
/// let by_inputs = grad_by(Arg::<1>, |(w, b): &(Array, Array), x: &Array| (w * x + b).sum());
/// let model = (Array::from(5.0), Array::from(1.0));
/// assert_eq!(by_inputs(&model, &Array::from([1.0, 2.0])).to_vec::<f64>()?, [5.0, 5.0]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "argnums")]
#[track_caller]
pub fn grad_by<'f, A, O, N, F>(position: N, f: F) -> Transformed<'f, A, N::Type>
where
    F: Func<A, O> + 'f,
    A: Arguments,
    O: Tree,
    N: Position<A>,
{
    let f = Arc::new(f);
    let (inner, place) = (f.clone(), Location::caller());
    Transformed::direct(
        "grad_by",
        &*f,
        Box::new(move |args| {
            let (by, argument) = leaves_at::<A, N>(position, args);
            let result = by.map_err(|e| e.at(trace::caller_or_known(place)));
            let result = result.and_then(|by| gradient(&*inner, place, args, by, one_array));
            give(argument, result.map(|(_, _, bars)| bars))
        }),
    )
}

/// A tree with these arrays, or with the error in every array.
fn give<T: Tree>(like: &T, arrays: Result<Vec<Array>>) -> T {
    match arrays {
        Ok(arrays) => fill(like, arrays),
        Err(e) => poison(like, &e),
    }
}

type Gradient<O> = (O, Vec<Array>, Vec<Array>);

fn with_value<A: Arguments, O: Tree>(
    f: &(dyn Func<A, O> + '_),
    args: A::Refs<'_>,
    result: Result<Gradient<O>>,
) -> (O, A::First) {
    match result {
        Ok((template, outputs, bars)) => (fill(&template, outputs), fill(A::first(args), bars)),
        Err(e) => (failed(f, args, &e), poison(A::first(args), &e)),
    }
}

/// The value's structure and arrays, and a gradient for each of the arguments' arrays in `by`.
fn gradient<A: Arguments, O: Tree>(
    f: &(dyn Func<A, O> + '_),
    made_at: Location,
    args: A::Refs<'_>,
    by: std::ops::Range<usize>,
    one_loss: impl Fn(&O) -> bool,
) -> Result<Gradient<O>> {
    let place = trace::caller_or_known(made_at);
    let point = AtPoint::new(f, args, place)?;
    let by = by.start..by.end.min(point.arguments);
    check_loss(&point, &one_loss, f).map_err(|e| e.at(place))?;
    let active = point.active(by.clone());
    let zeros = |i: usize| point.inputs[i].zeros_like();
    if !active.contains(&true) {
        let outputs = trace::inline(&point.traced.program, &point.inputs)?;
        return Ok((point.template, outputs, by.map(zeros).collect()));
    }
    // The loss is the first output; what else varies is aux and gets no cotangent of its own.
    let seeds = |outputs: &[Array], varies: &[bool]| -> Vec<Array> {
        let varying = outputs.iter().enumerate().filter(|(i, _)| varies[*i]);
        varying.map(|(i, y)| if i == 0 { y.ones_like() } else { y.zeros_like() }).collect()
    };
    let (outputs, bars) = match transform::pull_back_once(&point.traced.program, &point.inputs, &active, seeds)? {
        Some(both) => both,
        None => {
            let parts = transform::vjp(&point.traced.program, &active)?;
            let mut outputs = trace::inline(&parts.primal, &point.inputs)?;
            let mut inputs = outputs.split_off(outputs.len() - parts.residuals.len());
            inputs.extend(seeds(&outputs, &parts.varies));
            let bars = trace::inline(&parts.linear, &inputs)?;
            (outputs, bars)
        }
    };
    let mut bars = bars.into_iter();
    let each = by.map(|i| {
        let bar = if active[i] { bars.next() } else { None };
        bar.unwrap_or_else(|| zeros(i))
    });
    let bars = each.collect();
    Ok((point.template, outputs, bars))
}

fn check_loss<A: Arguments, O: Tree>(
    point: &AtPoint<O>,
    one_loss: &impl Fn(&O) -> bool,
    f: &(dyn Func<A, O> + '_),
) -> Result<()> {
    let types = point.traced.program.output_types();
    let fail = |message: String| {
        let e = Error::new(ErrorKind::Signature, message);
        Err(e.help("reduce it with `.sum()` or `.mean()`; for results with axes use `jacrev`, `jacfwd` or `vjp`"))
    };
    if !one_loss(&point.template) {
        return fail(format!(
            "a gradient needs one scalar result, and `{}` gives {}",
            f.name(),
            counted(types.len(), "array")
        ));
    }
    match types.first() {
        Some(t) if t.rank() != 0 => fail(format!("a gradient needs a scalar result, and `{}` gives {t}", f.name())),
        Some(t) if !t.dtype().is_float() => {
            let message = format!("a gradient needs a real floating-point result, and `{}` gives {t}", f.name());
            let help = match t.dtype().is_complex() {
                true => "take its real part, its absolute value or another real number of it: `y.real()`, `y.abs()`",
                false => {
                    "integers and bools have no derivatives: give the function floats, as in `Array::from(3.0)` or `x.cast(DType::F64)`"
                }
            };
            Err(Error::new(ErrorKind::Signature, message).help(help))
        }
        _ => Ok(()),
    }
}
