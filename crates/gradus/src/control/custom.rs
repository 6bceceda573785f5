//! Functions with derivative rules of their own: `custom_jvp`, `custom_vjp`, and where derivatives stop.

use gradus_core::error::counted;
use std::sync::Arc;

use gradus_core::trace;
use gradus_core::{Array, Error, ErrorKind, Location, Mode, Result, control};

use super::{as_operation, only_type, same_types, trace_body};
use crate::arguments::Arguments;
use crate::function::{Func, Transformed};
use crate::stage::{Leaves, Replace, fill, trace_function};
use crate::tree::Tree;

/// A function with a forward rule: `rule` takes the arguments and their tangents and gives the result and its tangent.
///
/// A function of one argument has a rule of two: `|x, x_dot| (y, y_dot)`. With more arguments, `x` and `x_dot` are
/// tuples of them. Reverse mode transposes the rule, which must be linear in the tangents. Integers and bools have no
/// tangents: their places are filled with zeros.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// // log(1 + exp(x)), with a derivative that does not overflow
/// let softplus = custom_jvp(
///     |x: &Array| x.exp().log1p(),
///     |x: &Array, x_dot: &Array| (x.exp().log1p(), x.logistic() * x_dot),
/// );
/// assert_eq!(grad(softplus)(&Array::from(0.0_f64)).item::<f64>()?, 0.5);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn custom_jvp<'f, A, O, F, R>(f: F, rule: R) -> Transformed<'f, A, O>
where
    A: Arguments,
    O: Tree,
    F: Func<A, O> + 'f,
    R: Func<(A::Packed, A::Packed), (O, O)> + 'f,
{
    let f = Arc::new(f);
    let (inner, made_at) = (f.clone(), Location::caller());
    as_operation("custom_jvp", f, made_at, move |args, function, template, place| {
        let packed = A::pack(args);
        let arrays = packed.leaves();
        let types = super::types_of(&packed, place)?;
        let dotted: Vec<bool> = arrays.iter().map(|a| a.dtype().is_inexact()).collect();
        let dots = types.iter().zip(&dotted).filter(|(_, on)| **on).map(|(t, _)| t.clone());
        let inputs: Vec<_> = types.iter().cloned().chain(dots).collect();
        let mut shown: Option<(O, O)> = None;
        let made = trace_body(&format!("{}_rule", inner.name()), &inputs, place, |ts| {
            let (values, dots) = ts.split_at(types.len());
            let x = fill(&packed, values.to_vec());
            let x_dot = fill(&packed, with_zeros(values, &dotted, dots));
            let (y, y_dot) = rule.apply((&x, &x_dot));
            let mut all = y.leaves();
            all.extend(y_dot.leaves().into_iter().filter(|a| a.dtype().is_inexact()));
            shown = Some((y, y_dot));
            all
        });
        let (traced, _) = made.map_err(|(e, _)| e)?;
        if let Some((y, y_dot)) = &shown {
            let what = format!("the forward rule of `{}`", inner.name());
            let help = |e: Error| {
                e.help("a rule gives what the function gives, and for each array a tangent of its dtype and shape")
            };
            same_types(template, y, &what, ("is the function's result", "the rule's"), place).map_err(help)?;
            same_types(template, y_dot, &what, ("is the result", "its tangent"), place).map_err(help)?;
        }
        control::custom_jvp(function, &traced, &arrays)
    })
}

/// A function with a backward pass: `forward` gives the result and what the backward pass needs of it, `backward` takes
/// that and the cotangent of the result and gives the cotangent of the argument (of several arguments: a tuple).
///
/// Cotangents of integers, bools and [`Static`](crate::tree::Static) values are ignored. Forward mode transposes the
/// backward pass if it is linear in the cotangent, and is a clear error otherwise.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// // the identity, with gradients clipped
/// let clipped = custom_vjp(
///     |x: &Array| x.clone(),
///     |x: &Array| (x.clone(), ()),
///     |_: &(), y_bar: &Array| y_bar.clamp(-1.0_f64, 1.0_f64),
/// );
/// let f = move |x: &Array| clipped(x) * 10.0_f64;
/// assert_eq!(grad(f)(&Array::from(3.0_f64)).item::<f64>()?, 1.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn custom_vjp<'f, A, O, K, F, W, B>(f: F, forward: W, backward: B) -> Transformed<'f, A, O>
where
    A: Arguments,
    O: Tree,
    K: Tree,
    F: Func<A, O> + 'f,
    W: Func<A, (O, K)> + 'f,
    B: Func<(K, O), A::Packed> + 'f,
{
    let f = Arc::new(f);
    let (inner, made_at) = (f.clone(), Location::caller());
    as_operation("custom_vjp", f, made_at, move |args, function, template, place| {
        let leaves = Leaves::of::<A>(args);
        let specs: Vec<Array> = leaves.arrays.iter().map(only_type).collect();
        let (ahead, (y, kept)) =
            trace_function::<A, (O, K)>(&forward, args, &specs, Mode::Abstract, place).map_err(|e| e.error)?;
        let name = inner.name();
        let what = format!("the forward pass of `{name}`");
        same_types(template, &y, &what, ("is the function's result", "the pass's"), place)?;
        let packed = A::pack(args);
        let results = template.leaves();
        let residuals = ahead.program.output_types().split_off(results.len());
        let dotted: Vec<bool> = results.iter().map(|a| a.dtype().is_inexact()).collect();
        let bars = results.iter().zip(&dotted).filter(|(_, on)| **on).map(|(a, _)| a.ty().cloned());
        let bars = bars.collect::<Result<Vec<_>>>()?;
        let types: Vec<_> = residuals.iter().cloned().chain(bars).collect();
        let zeros = ahead.program.output_types();
        let mut shown: Option<A::Packed> = None;
        let made = trace_body(&format!("{name}_backward"), &types, place, |ts| {
            let (saved, bars) = ts.split_at(residuals.len());
            let like: Vec<Array> = zeros[..results.len()].iter().map(|t| Array::of_type(t.clone())).collect();
            let y_bar = fill(template, with_zeros(&like, &dotted, bars));
            let x_bar = backward.apply((&fill(&kept, saved.to_vec()), &y_bar));
            let wanted = packed.leaves();
            let all: Vec<Array> = x_bar
                .leaves()
                .into_iter()
                .zip(&wanted)
                .filter(|(_, x)| x.dtype().is_inexact())
                .map(|(b, _)| b)
                .collect();
            shown = Some(x_bar);
            all
        });
        let (traced, _) = made.map_err(|(e, _)| e)?;
        if let Some(x_bar) = &shown {
            check_cotangents(&name, &packed, x_bar, place)?;
        }
        control::custom_vjp(function, &ahead, &traced, &leaves.arrays)
    })
}

/// A backward pass gives a cotangent of its argument's type for each array that has derivatives.
fn check_cotangents<T: Tree>(name: &str, x: &T, x_bar: &T, place: Location) -> Result<()> {
    let (want, have) = (x.leaves(), x_bar.leaves());
    let fail = |message: String| {
        let help = "a cotangent has the dtype and shape of the argument it belongs to";
        Err(Error::new(ErrorKind::Signature, message).at(place).help(help))
    };
    if want.len() != have.len() {
        return fail(format!(
            "the backward pass of `{name}` gives {} for {} of the arguments",
            counted(have.len(), "array"),
            want.len()
        ));
    }
    for (x, bar) in want.iter().zip(&have).filter(|(x, _)| x.dtype().is_inexact()) {
        let (x, bar) = (x.ty()?, bar.ty()?);
        if x != bar {
            return fail(format!("the backward pass of `{name}` gives a cotangent {bar} for an argument {x}"));
        }
    }
    Ok(())
}

/// Tangents for all of `values`: those given for the ones that are dotted, zeros for the others.
fn with_zeros(values: &[Array], dotted: &[bool], dots: &[Array]) -> Vec<Array> {
    let mut dots = dots.iter().cloned();
    let each = values.iter().zip(dotted);
    each.map(|(x, on)| if *on { dots.next().unwrap_or_else(|| x.zeros_like()) } else { x.zeros_like() }).collect()
}

/// The same values, with a derivative of zero.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let f = |x: &Array| x * stop_gradient(x);
/// assert_eq!(grad(f)(&Array::from(3.0_f64)).item::<f64>()?, 3.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn stop_gradient<T: Tree>(tree: &T) -> T {
    let place = trace::caller_or_known(Location::caller());
    trace::at_place(place, || tree.map(&mut Replace(|a: &Array| a.stop_gradient())))
}
