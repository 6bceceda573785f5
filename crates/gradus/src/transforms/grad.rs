//! Gradients: reverse mode of functions with a scalar result.

use std::sync::Arc;

use gradus_core::{Array, Error, ErrorKind, Location, Result, trace, transform};

use super::{AtPoint, owners};
use crate::function::{Fun, Func};
use crate::signature::Signature;
use crate::signature::args::{Sig1, Sig2, Sig3, Sig4, Sig5, Sig6, Sig7, Sig8};
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
pub fn grad<S: Signature, F: Func<S> + 'static>(f: F) -> Fun<S::WithOut<S::First>> {
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
pub fn value_and_grad<S: Signature, F: Func<S> + 'static>(f: F) -> Fun<S::WithOut<(S::Out, S::First)>> {
    by_first("value_and_grad", f, one_array, |both| both)
}

/// The gradient of a function that also gives something else: `f` returns `(loss, aux)`, this `(gradient, aux)`.
#[track_caller]
pub fn grad_with_aux<S, L, X, F>(f: F) -> Fun<S::WithOut<(S::First, X)>>
where
    S: Signature<Out = (L, X)>,
    L: Tree,
    X: Tree,
    F: Func<S> + 'static,
{
    by_first("grad_with_aux", f, |t| one_array(&t.0), |((_, aux), gradient)| (gradient, aux))
}

/// The value, aux and gradient of a function that returns `(loss, aux)`: `((loss, aux), gradient)`.
#[track_caller]
pub fn value_and_grad_with_aux<S, L, X, F>(f: F) -> Fun<S::WithOut<(S::Out, S::First)>>
where
    S: Signature<Out = (L, X)>,
    L: Tree,
    X: Tree,
    F: Func<S> + 'static,
{
    by_first("value_and_grad_with_aux", f, |t| one_array(&t.0), |both| both)
}

fn one_array<T: Tree>(loss: &T) -> bool {
    loss.leaves().len() == 1
}

/// What the four gradients by the first argument share: `finish` picks what is given of value and gradient.
#[track_caller]
fn by_first<S: Signature, O: Tree>(
    transform: &'static str,
    f: impl Func<S> + 'static,
    one_loss: fn(&S::Out) -> bool,
    finish: fn((S::Out, S::First)) -> O,
) -> Fun<S::WithOut<O>> {
    let f = Arc::new(f);
    let (inner, place) = (f.clone(), Location::caller());
    Fun::direct(
        transform,
        &*f,
        Box::new(move |args| {
            let result = gradient(&*inner, place, args, 0..S::first(args).leaves().len(), one_loss);
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
pub fn grad_all<S, F>(f: F) -> Fun<S::WithOut<S::Args>>
where
    S: Signature<Args: Tree>,
    F: Func<S> + 'static,
{
    let f = Arc::new(f);
    let (inner, place) = (f.clone(), Location::caller());
    Fun::direct(
        "grad_all",
        &*f,
        Box::new(move |args| {
            let result = gradient(&*inner, place, args, 0..usize::MAX, one_array);
            let owned = S::map(args, &mut crate::stage::Replace(|a: &Array| a.clone()));
            give(&owned, result.map(|(_, _, bars)| bars))
        }),
    )
}

/// The argument at a position of a signature.
pub trait Arg<const POSITION: usize>: Signature {
    /// Its type.
    type Type: Tree;
    /// The argument.
    fn arg<'a>(args: Self::Refs<'a>) -> &'a Self::Type;
}

/// The gradient by the argument at a position: `grad_by::<1, _>(f)`.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let by_second = grad_by::<1, _>(|a: &Array, b: &Array| a * b * b);
/// assert_eq!(by_second(&Array::from(2.0_f64), &Array::from(3.0_f64)).item::<f64>()?, 12.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn grad_by<const POSITION: usize, S: Arg<POSITION>>(f: impl Func<S> + 'static) -> Fun<S::WithOut<S::Type>> {
    let f = Arc::new(f);
    let (inner, place) = (f.clone(), Location::caller());
    Fun::direct(
        "grad_by",
        &*f,
        Box::new(move |args| {
            let before = owners::<S>(args).iter().filter(|owner| **owner < POSITION).count();
            let by = S::arg(args);
            let result = gradient(&*inner, place, args, before..before + by.leaves().len(), one_array);
            give(by, result.map(|(_, _, bars)| bars))
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

type Gradient<S> = (<S as Signature>::Out, Vec<Array>, Vec<Array>);

fn with_value<S: Signature>(f: &dyn Func<S>, args: S::Refs<'_>, result: Result<Gradient<S>>) -> (S::Out, S::First) {
    match result {
        Ok((template, outputs, bars)) => (fill(&template, outputs), fill(S::first(args), bars)),
        Err(e) => (failed(f, args, &e), poison(S::first(args), &e)),
    }
}

/// The value's structure and arrays, and a gradient for each of the arguments' arrays in `by`.
fn gradient<S: Signature>(
    f: &dyn Func<S>,
    made_at: Location,
    args: S::Refs<'_>,
    by: std::ops::Range<usize>,
    one_loss: impl Fn(&S::Out) -> bool,
) -> Result<Gradient<S>> {
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

fn check_loss<S: Signature>(point: &AtPoint<S>, one_loss: &impl Fn(&S::Out) -> bool, f: &dyn Func<S>) -> Result<()> {
    let types = point.traced.program.output_types();
    let fail = |message: String| {
        let e = Error::new(ErrorKind::Signature, message);
        Err(e.help("reduce it with `.sum()` or `.mean()`; for results with axes use `jacrev`, `jacfwd` or `vjp`"))
    };
    if !one_loss(&point.template) {
        return fail(format!("a gradient needs one scalar result, and `{}` gives {} arrays", f.name(), types.len()));
    }
    match types.first() {
        Some(t) if t.rank() != 0 => fail(format!("a gradient needs a scalar result, and `{}` gives {t}", f.name())),
        Some(t) if !t.dtype().is_float() => {
            fail(format!("a gradient needs a real floating-point result, and `{}` gives {t}", f.name()))
        }
        _ => Ok(()),
    }
}

macro_rules! positions {
    ($($sig:ident($($arg:ident),*): $($position:tt $at:ident),*;)*) => {$(
        positions!(@ $sig ($($arg),*) [$($position $at),*]);
    )*};
    (@ $sig:ident $args:tt [$($position:tt $at:ident),*]) => {
        $(positions!(@@ $sig $args $position $at);)*
    };
    (@@ $sig:ident ($($arg:ident),*) $position:tt $at:ident) => {
        impl<$($arg: Tree,)* Out: Tree> Arg<$position> for $sig<$($arg,)* Out> {
            type Type = $at;
            fn arg<'a>(args: Self::Refs<'a>) -> &'a $at {
                args.$position
            }
        }
    };
}
positions! {
    Sig1(A): 0 A;
    Sig2(A, B): 0 A, 1 B;
    Sig3(A, B, C): 0 A, 1 B, 2 C;
    Sig4(A, B, C, D): 0 A, 1 B, 2 C, 3 D;
    Sig5(A, B, C, D, E): 0 A, 1 B, 2 C, 3 D, 4 E;
    Sig6(A, B, C, D, E, G): 0 A, 1 B, 2 C, 3 D, 4 E, 5 G;
    Sig7(A, B, C, D, E, G, H): 0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H;
    Sig8(A, B, C, D, E, G, H, I): 0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I;
}
