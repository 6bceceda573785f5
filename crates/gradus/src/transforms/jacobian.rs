//! Jacobians and Hessians: batches of derivatives along every direction.

use std::sync::Arc;

use gradus_core::{Array, DType, Error, ErrorKind, Location, Result, Scalar, Shape, trace, transform};

use super::{AtPoint, grad, jvp};
use crate::function::{Fun, Func};
use crate::signature::Signature;
use crate::signature::args::Sig1;
use crate::stage::{fill, poison};
use crate::tree::Tree;

/// The unit vectors of a shape, stacked in front: shape `[n, ...shape]` for `n` elements.
fn basis(shape: &Shape, dtype: DType) -> Result<Array> {
    let n = shape.size();
    let row = Array::iota(DType::I64, Shape::from(vec![n.clone(), n.clone()]), 0);
    let column = Array::iota(DType::I64, Shape::from(vec![n.clone(), n.clone()]), 1);
    row.eq(&column).cast(dtype).reshape(shape.inserted(0, n)).ok()
}

/// The Jacobian by the first argument in reverse mode: one pullback for each element of the result.
///
/// The function gives one array. Each array of the first argument gets one of shape `[...result, ...argument]`.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let j = jacrev(|x: &Array| x * x);
/// assert_eq!(j(&Array::from([1.0_f64, 2.0])).to_vec::<f64>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jacrev<S: Signature<Out = Array>, F: Func<S> + 'static>(f: F) -> Fun<S::WithOut<S::First>> {
    jacobian("jacrev", f, rows)
}

/// The Jacobian by the first argument in forward mode: one tangent for each element of the argument.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let j = jacfwd(|x: &Array| x * x);
/// assert_eq!(j(&Array::from([1.0_f64, 2.0])).to_vec::<f64>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jacfwd<S: Signature<Out = Array>, F: Func<S> + 'static>(f: F) -> Fun<S::WithOut<S::First>> {
    jacobian("jacfwd", f, columns)
}

type Method<S> = fn(&AtPoint<S>, usize) -> Result<Vec<Array>>;

#[track_caller]
fn jacobian<S: Signature<Out = Array>, F: Func<S> + 'static>(
    name: &'static str,
    f: F,
    method: Method<S>,
) -> Fun<S::WithOut<S::First>> {
    let f = Arc::new(f);
    let (inner, made_at) = (f.clone(), Location::caller());
    Fun::direct(
        name,
        &*f,
        Box::new(move |args| {
            let place = trace::caller_or_known(made_at);
            let first = S::first(args);
            let result = AtPoint::new(&*inner, args, place).and_then(|point| {
                let by = first.leaves();
                if let Some(x) = by.iter().find(|x| !x.dtype().is_inexact()) {
                    let message = format!("a Jacobian by {} does not exist: its dtype has no derivatives", x.ty()?);
                    return Err(Error::new(ErrorKind::DType, message).at(place).help("pass it as a later argument"));
                }
                // One column for each complex number would be half of the derivative, and silently so.
                let results = point.traced.program.output_types();
                let complex = by.iter().map(Array::ty).collect::<Result<Vec<_>>>()?.into_iter().chain(&results);
                if let Some(ty) = complex.into_iter().find(|t| t.dtype().is_complex()) {
                    let message = format!("a Jacobian is one of real numbers, and here is {ty}");
                    return Err(Error::new(ErrorKind::DType, message)
                        .at(place)
                        .help("give real and imaginary parts as arguments and results, or use `jvp` and `vjp`"));
                }
                method(&point, by.len())
            });
            match result {
                Ok(arrays) => fill(first, arrays),
                Err(e) => poison(first, &e),
            }
        }),
    )
}

/// Pulls every unit cotangent of the result back, as one batch.
fn rows<S: Signature>(point: &AtPoint<S>, count: usize) -> Result<Vec<Array>> {
    let active = point.active(0..count);
    let parts = transform::vjp(&point.traced.program, &active)?;
    let outputs = trace::inline(&parts.primal, &point.inputs)?;
    let y = output(&outputs)?.ty()?.clone();
    let join = |x: &Array| Shape::from(y.shape().iter().chain(x.shape().iter()).cloned().collect::<Vec<_>>());
    let by = &point.inputs[..count];
    if !parts.varies.contains(&true) {
        return Ok(by.iter().map(|x| Array::full_scalar(join(x), Scalar::zero(x.dtype()))).collect());
    }
    let mut inputs = outputs[1..].to_vec();
    let mut batched = vec![false; inputs.len()];
    inputs.push(basis(y.shape(), y.dtype())?);
    batched.push(true);
    let (bars, flags) = transform::vmap_on(&parts.linear, &inputs, &batched, &y.shape().size())?;
    let each = bars.into_iter().zip(flags).zip(by);
    each.map(|((bar, on), x)| {
        let bar = if on { bar } else { bar.broadcast_to(bar.shape().inserted(0, y.shape().size())) };
        bar.reshape(join(x)).ok()
    })
    .collect()
}

/// Pushes every unit tangent of the argument forward, as one batch for each array.
fn columns<S: Signature>(point: &AtPoint<S>, count: usize) -> Result<Vec<Array>> {
    let active = point.active(0..count);
    let parts = transform::linearize(&point.traced.program, &active)?;
    let outputs = trace::inline(&parts.primal, &point.inputs)?;
    let y = output(&outputs)?.ty()?.clone();
    let residuals = &outputs[1..];
    let by = &point.inputs[..count];
    let mut all = Vec::with_capacity(count);
    for (i, x) in by.iter().enumerate() {
        let shape = Shape::from(y.shape().iter().chain(x.shape().iter()).cloned().collect::<Vec<_>>());
        if !parts.varies.contains(&true) {
            all.push(Array::full_scalar(shape, Scalar::zero(x.dtype())));
            continue;
        }
        let mut inputs = residuals.to_vec();
        let mut batched = vec![false; inputs.len()];
        for (j, other) in by.iter().enumerate() {
            inputs.push(if i == j { basis(x.shape(), x.dtype())? } else { other.zeros_like() });
            batched.push(i == j);
        }
        let size = x.shape().size();
        let (dots, flags) = transform::vmap_on(&parts.linear, &inputs, &batched, &size)?;
        let dot = output(&dots)?;
        let dot = if flags[0] { dot.clone() } else { dot.broadcast_to(dot.shape().inserted(0, size)) };
        all.push(dot.move_axis(0, -1).reshape(shape).ok()?);
    }
    Ok(all)
}

fn output(outputs: &[Array]) -> Result<&Array> {
    outputs.first().ok_or_else(|| Error::new(ErrorKind::Signature, "a Jacobian needs a result"))
}

/// The Hessian by the first argument, an array: forward mode over reverse mode.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let h = hessian(|x: &Array| (x * x * x).sum());
/// assert_eq!(h(&Array::from([1.0_f64, 2.0])).to_vec::<f64>()?, [6.0, 0.0, 0.0, 12.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn hessian<S, F>(f: F) -> Fun<<S::WithOut<Array> as Signature>::WithOut<Array>>
where
    S: Signature<First = Array>,
    S::WithOut<Array>: Signature<First = Array, Out = Array>,
    F: Func<S> + 'static,
{
    jacfwd(grad(f))
}

/// The product of the Hessian at `x` with `v`, without the Hessian: a tangent through the gradient.
///
/// Unlike [`hessian`] it is no function of functions: it takes a function of one argument and runs at once.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (x, v) = (Array::from([1.0_f64, 2.0]), Array::from([1.0_f64, 10.0]));
/// assert_eq!(hvp(|x: &Array| (x * x * x).sum(), &x, &v)?.to_vec::<f64>()?, [6.0, 120.0]);
/// // As a function of both, staged: what else it needs it captures.
/// let product = jit(|x: &Array, v: &Array| Array::from(hvp(|x: &Array| (x * x * x).sum(), x, v)));
/// assert_eq!(product(&x, &v).to_vec::<f64>()?, [6.0, 120.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn hvp<A: Tree, F: Func<Sig1<A, Array>> + 'static>(f: F, x: &A, v: &A) -> Result<A> {
    jvp(grad(f), x, v).map(|(_, product)| product)
}
