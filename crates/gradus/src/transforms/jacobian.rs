//! Jacobians and Hessians: batches of derivatives along every direction.

use std::collections::HashSet;
use std::sync::Arc;

use gradus_core::primitives::Op;
use gradus_core::primitives::control::{Checkpoint, Scan, While};
use gradus_core::primitives::shaping::{Iota, Slice};
use gradus_core::program::Program;
use gradus_core::{
    Array, DType, Dim, Error, ErrorKind, Location, Result, Scalar, Shape, Type, optimize, trace, transform,
};

use super::pullback::try_jvp;
use super::{AtPoint, grad, leaves_at};
use crate::arguments::{Arguments, First, Position};
use crate::function::{Func, Transformed};
use crate::stage::{failed, fill, poison};
use crate::tree::Tree;

/// A result that has a Jacobian: an array, or a tuple, a vector or an option of such.
#[diagnostic::on_unimplemented(
    message = "a Jacobian of `{Self}` has no type",
    label = "not an array, nor a tuple or a vector of them",
    note = "each array of the result becomes a value of the argument's type, and a struct has no place for that: give a tuple, or one array",
    note = "of a struct, `tree::ravel` makes one array: `let (x, back) = tree::ravel(&model);` and `hessian(|x: &Array| loss(&back.call(x)))(&x)`"
)]
pub trait HasJacobian: Tree {
    /// The Jacobian by an argument of type `X`: this, with an `X` in the place of each array.
    type By<X: Tree>: Tree;

    /// Puts it together of the arrays that belong to each array of the result, in order.
    fn jacobian<X: Tree>(&self, by: &X, arrays: &mut dyn Iterator<Item = Array>) -> Self::By<X>;
}

impl HasJacobian for Array {
    type By<X: Tree> = X;
    fn jacobian<X: Tree>(&self, by: &X, arrays: &mut dyn Iterator<Item = Array>) -> X {
        let count = by.leaves().len();
        fill(by, arrays.take(count))
    }
}

impl<T: HasJacobian> HasJacobian for Vec<T> {
    type By<X: Tree> = Vec<T::By<X>>;
    fn jacobian<X: Tree>(&self, by: &X, arrays: &mut dyn Iterator<Item = Array>) -> Self::By<X> {
        self.iter().map(|y| y.jacobian(by, arrays)).collect()
    }
}

impl<T: HasJacobian, const N: usize> HasJacobian for [T; N] {
    type By<X: Tree> = [T::By<X>; N];
    fn jacobian<X: Tree>(&self, by: &X, arrays: &mut dyn Iterator<Item = Array>) -> Self::By<X> {
        self.each_ref().map(|y| y.jacobian(by, arrays))
    }
}

impl<T: HasJacobian> HasJacobian for Option<T> {
    type By<X: Tree> = Option<T::By<X>>;
    fn jacobian<X: Tree>(&self, by: &X, arrays: &mut dyn Iterator<Item = Array>) -> Self::By<X> {
        self.as_ref().map(|y| y.jacobian(by, arrays))
    }
}

macro_rules! tuples {
    ($(($($item:ident $index:tt)+))*) => {$(
        impl<$($item: HasJacobian),+> HasJacobian for ($($item,)+) {
            type By<X: Tree> = ($($item::By<X>,)+);
            fn jacobian<X: Tree>(&self, by: &X, arrays: &mut dyn Iterator<Item = Array>) -> Self::By<X> {
                ($(self.$index.jacobian(by, arrays),)+)
            }
        }
    )*};
}
tuples! {
    (A 0)
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7)
}

/// The unit vectors of a shape, stacked in front: shape `[n, ...shape]` for `n` elements.
///
/// Beside values that are traced they are part of the program. As numbers they would be multiplied with other numbers while it is
/// traced, and arrays as large as the batch that nobody wrote would be kept with it.
pub(crate) fn basis(shape: &Shape, dtype: DType, beside: &[Array]) -> Result<Array> {
    unit_rows(shape, dtype, &shape.size(), &Dim::from(0usize), beside)
}

/// The unit vectors of a shape in a larger stack of rows, from the row `first` on; the other rows are zero.
fn unit_rows(shape: &Shape, dtype: DType, rows: &Dim, first: &Dim, beside: &[Array]) -> Result<Array> {
    let places = Shape::from(vec![rows.clone(), shape.size()]);
    let along = |axis: usize| match beside.iter().any(Array::is_traced) {
        true => trace::record(Op::new(Iota { dtype: DType::I64, shape: places.clone(), axis }), &[]),
        false => Array::iota(DType::I64, &places, axis as isize),
    };
    let row = if first.constant() == Some(0) { along(0) } else { along(0) - Array::from_dim(first, DType::I64) };
    row.eq(along(1)).cast(dtype).reshape(shape.inserted(0, rows.clone())).ok()
}

/// The Jacobian by the first argument in reverse mode: one pullback for each element of the result.
///
/// Each array of the argument gets one of shape `[...result, ...argument]`. Of a result with several arrays, a tuple for example, each
/// array becomes a value of the argument's type. [`jacrev_by`] takes another argument.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let j = jacrev(|x: &Array| x * x);
/// assert_eq!(j(&Array::from([1.0, 2.0])).to_vec::<f64>()?, [2.0, 0.0, 0.0, 4.0]);
/// let (by_x, of_sum) = jacrev(|x: &Array| (3.0 * x, x.sum()))(&Array::from([1.0, 2.0]));
/// assert_eq!(by_x.to_vec::<f64>()?, [3.0, 0.0, 0.0, 3.0]);
/// assert_eq!(of_sum.to_vec::<f64>()?, [1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jacrev<'f, A, O, F>(f: F) -> Transformed<'f, A, O::By<A::First>>
where
    A: Arguments,
    O: HasJacobian,
    F: Func<A, O> + 'f,
{
    jacobian("jacrev", First, f, rows)
}

/// The Jacobian by the argument at a position in reverse mode. The position is what [`grad_by`](crate::grad_by) takes.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let j = jacrev_by(1, |a: &Array, x: &Array| a.matmul(x));
/// let a = Array::from([[1.0, 2.0], [3.0, 4.0]]);
/// assert_eq!(j(&a, &Array::from([1.0, 1.0])).to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jacrev_by<'f, A, O, N, F>(position: N, f: F) -> Transformed<'f, A, O::By<N::Type>>
where
    A: Arguments,
    O: HasJacobian,
    N: Position<A>,
    F: Func<A, O> + 'f,
{
    jacobian("jacrev_by", position, f, rows)
}

/// The Jacobian by the first argument in forward mode: one tangent for each element of the argument.
///
/// Its types are those of [`jacrev`].
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let j = jacfwd(|x: &Array| x * x);
/// assert_eq!(j(&Array::from([1.0, 2.0])).to_vec::<f64>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jacfwd<'f, A, O, F>(f: F) -> Transformed<'f, A, O::By<A::First>>
where
    A: Arguments,
    O: HasJacobian,
    F: Func<A, O> + 'f,
{
    jacobian("jacfwd", First, f, columns)
}

/// The Jacobian by the argument at a position in forward mode. The position is what [`grad_by`](crate::grad_by) takes.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// // A mixed second derivative: by the second argument, of the gradient by the first.
/// let mixed = jacfwd_by(1, grad(|x: &Array, y: &Array| (x * x * y).sum()));
/// assert_eq!(mixed(&Array::from(3.0), &Array::from(5.0)).item::<f64>()?, 6.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jacfwd_by<'f, A, O, N, F>(position: N, f: F) -> Transformed<'f, A, O::By<N::Type>>
where
    A: Arguments,
    O: HasJacobian,
    N: Position<A>,
    F: Func<A, O> + 'f,
{
    jacobian("jacfwd_by", position, f, columns)
}

/// For each array of the result, one for each of the argument's arrays, which are the inputs in the range.
type Method<O> = fn(&AtPoint<O>, std::ops::Range<usize>) -> Result<Vec<Array>>;

#[track_caller]
fn jacobian<'f, A, O, N>(
    name: &'static str,
    position: N,
    f: impl Func<A, O> + 'f,
    method: Method<O>,
) -> Transformed<'f, A, O::By<N::Type>>
where
    A: Arguments,
    O: HasJacobian,
    N: Position<A>,
{
    let f = Arc::new(f);
    let (inner, made_at) = (f.clone(), Location::caller());
    Transformed::direct(
        name,
        &*f,
        Box::new(move |args| {
            let place = trace::caller_or_known(made_at);
            let (by, argument) = leaves_at::<A, N>(position, args);
            let result = by.map_err(|e| e.at(place)).and_then(|by| {
                let point = AtPoint::new(&*inner, args, place)?;
                check(&point, by.clone()).map_err(|e| e.at(place))?;
                let arrays = method(&point, by)?;
                Ok(point.template.jacobian(argument, &mut arrays.into_iter()))
            });
            result.unwrap_or_else(|e| {
                let y = failed(&*inner, args, &e);
                y.jacobian(&poison(argument, &e), &mut std::iter::repeat_with(|| Array::from(e.clone())))
            })
        }),
    )
}

/// Refuses what has no Jacobian.
fn check<O: Tree>(point: &AtPoint<O>, by: std::ops::Range<usize>) -> Result<()> {
    let by = point.inputs[by].iter().map(|x| x.ty().cloned()).collect::<Result<Vec<Type>>>()?;
    if let Some(x) = by.iter().find(|x| !x.dtype().is_inexact()) {
        let message = format!("a Jacobian by {x} does not exist: its dtype has no derivatives");
        return Err(Error::new(ErrorKind::DType, message)
            .help("pass it as a later argument, or take the Jacobian by another (`jacrev_by`)"));
    }
    // One column for each complex number would be half of the derivative, and silently so.
    if let Some(ty) = by.iter().chain(&point.traced.program.output_types()).find(|t| t.dtype().is_complex()) {
        let message = format!("a Jacobian is one of real numbers, and here is {ty}");
        return Err(Error::new(ErrorKind::DType, message)
            .help("give real and imaginary parts as arguments and results, or use `jvp` and `vjp`"));
    }
    Ok(())
}

/// The shape of a Jacobian: that of the result, then that of the argument.
fn joined(y: &Type, x: &Array) -> Shape {
    y.shape().iter().chain(x.shape().iter()).cloned().collect()
}

fn no_slope(y: &Type, x: &Array) -> Array {
    Array::full_scalar(joined(y, x), Scalar::zero(x.dtype()))
}

/// Pulls every unit cotangent of each result back, as one batch.
fn rows<O: Tree>(point: &AtPoint<O>, by: std::ops::Range<usize>) -> Result<Vec<Array>> {
    let parts = transform::vjp(&point.traced.program, &point.active(by.clone()))?;
    let mut outputs = trace::inline(&parts.primal, &point.inputs)?;
    let residuals = outputs.split_off(outputs.len() - parts.residuals.len());
    let by = &point.inputs[by];
    let mut all = Vec::with_capacity(outputs.len() * by.len());
    for (i, y) in outputs.iter().enumerate() {
        let ty = y.ty()?.clone();
        if !parts.varies[i] {
            all.extend(by.iter().map(|x| no_slope(&ty, x)));
            continue;
        }
        let mut inputs = residuals.clone();
        let mut batched = vec![false; inputs.len()];
        for (j, other) in outputs.iter().enumerate().filter(|(j, _)| parts.varies[*j]) {
            inputs.push(if i == j { basis(ty.shape(), ty.dtype(), &residuals)? } else { other.zeros_like() });
            batched.push(i == j);
        }
        let size = ty.shape().size();
        let (bars, flags) = transform::vmap_on(&parts.linear, &inputs, &batched, &size)?;
        for ((bar, on), x) in bars.into_iter().zip(flags).zip(by) {
            let bar = if on { bar } else { bar.broadcast_to(bar.shape().inserted(0, size.clone())) };
            all.push(bar.reshape(joined(&ty, x)).ok()?);
        }
    }
    Ok(all)
}

/// Pushes every unit tangent of the argument forward.
fn columns<O: Tree>(point: &AtPoint<O>, by: std::ops::Range<usize>) -> Result<Vec<Array>> {
    let program = &point.traced.program;
    // An effect happens once, beside the values, and a batch of it may have no meaning.
    let once = program.effects().is_pure() && has_steps(program, &mut HashSet::new());
    if once { pushed(point, by) } else { mapped(point, by) }
}

/// Whether a program has a loop or a checkpoint. To set their linear part apart takes their values once more, or all of them at a time. Programs
/// that were seen have none.
fn has_steps(program: &Program, seen: &mut HashSet<*const Program>) -> bool {
    let steps = |op: &Op| op.is::<While>() || op.is::<Scan>() || op.is::<Checkpoint>();
    program.equations().iter().any(|e| {
        let mut inside = e.op().programs().into_iter();
        steps(e.op()) || inside.any(|p| seen.insert(Arc::as_ptr(&p)) && has_steps(&p, seen))
    })
}

/// The columns with all tangents of all arrays as one batch beside the values: every loop runs once.
fn pushed<O: Tree>(point: &AtPoint<O>, by: std::ops::Range<usize>) -> Result<Vec<Array>> {
    let program = &point.traced.program;
    let (derivative, varies) = transform::jvp(program, &point.active(by.clone()))?;
    let derivative = optimize::eliminate_dead_code(&optimize::simplify(&derivative)?, true);
    let by = &point.inputs[by];
    let none = Dim::from(0usize);
    let ends = by.iter().scan(none.clone(), |end, x| {
        *end = &*end + x.shape().size();
        Some(end.clone())
    });
    let ends: Vec<Dim> = std::iter::once(none).chain(ends).collect();
    let Some(size) = ends.last() else { return Ok(Vec::new()) };
    let mut inputs = point.inputs.clone();
    let mut batched = vec![false; inputs.len()];
    for (x, first) in by.iter().zip(&ends) {
        inputs.push(unit_rows(x.shape(), x.dtype(), size, first, &point.inputs)?);
        batched.push(true);
    }
    let (mut made, mut flags) = transform::vmap_on(&derivative, &inputs, &batched, size)?;
    // Not those of the values that came out: a loop gives all of its results to every column.
    let types = program.output_types();
    let mut dots = made.drain(varies.len()..).zip(flags.drain(varies.len()..));
    let mut all = Vec::with_capacity(types.len() * by.len());
    for (y, on) in types.iter().zip(&varies) {
        let dot = if *on { dots.next() } else { None };
        for (x, range) in by.iter().zip(ends.windows(2)) {
            all.push(match &dot {
                Some((dot, true)) if by.len() == 1 => column(dot, y, x)?,
                Some((dot, true)) => column(&rows_of(dot, range), y, x)?,
                Some((dot, false)) => column(&dot.broadcast_to(dot.shape().inserted(0, x.shape().size())), y, x)?,
                None => no_slope(y, x),
            });
        }
    }
    Ok(all)
}

/// The rows of a batch from the first number of a range to the second.
fn rows_of(x: &Array, range: &[Dim]) -> Array {
    let mut slice = Slice {
        start: vec![Dim::from(0usize); x.rank()],
        limit: x.shape().iter().cloned().collect(),
        step: vec![1; x.rank()],
    };
    if let ([start, limit], [first, ..], [last, ..]) = (range, &mut slice.start[..], &mut slice.limit[..]) {
        (*first, *last) = (start.clone(), limit.clone());
    }
    trace::bind(Op::new(slice), std::slice::from_ref(x))
}

/// A batch of tangents of a result as its Jacobian by an argument.
fn column(dots: &Array, y: &Type, x: &Array) -> Result<Array> {
    dots.move_axis(0, -1).reshape(joined(y, x)).ok()
}

/// The columns as one batch for each array, through the linear part of the program: the values are computed once for all of them.
fn mapped<O: Tree>(point: &AtPoint<O>, by: std::ops::Range<usize>) -> Result<Vec<Array>> {
    let parts = transform::linearize(&point.traced.program, &point.active(by.clone()))?;
    let mut outputs = trace::inline(&parts.primal, &point.inputs)?;
    let residuals = outputs.split_off(outputs.len() - parts.residuals.len());
    let by = &point.inputs[by];
    let types = outputs.iter().map(|y| y.ty().cloned()).collect::<Result<Vec<_>>>()?;
    // By argument first, as they are computed.
    let mut columns = Vec::with_capacity(by.len());
    for (i, x) in by.iter().enumerate() {
        let size = x.shape().size();
        let mut dots = Vec::new().into_iter();
        if parts.varies.contains(&true) {
            let mut inputs = residuals.clone();
            let mut batched = vec![false; inputs.len()];
            for (j, other) in by.iter().enumerate() {
                inputs.push(if i == j { basis(x.shape(), x.dtype(), &residuals)? } else { other.zeros_like() });
                batched.push(i == j);
            }
            let (made, flags) = transform::vmap_on(&parts.linear, &inputs, &batched, &size)?;
            dots = made.into_iter().zip(flags).collect::<Vec<_>>().into_iter();
        }
        let each = types.iter().zip(&parts.varies).map(|(y, on)| match dots.next().filter(|_| *on) {
            Some((dot, true)) => column(&dot, y, x),
            Some((dot, false)) => column(&dot.broadcast_to(dot.shape().inserted(0, size.clone())), y, x),
            None => Ok(no_slope(y, x)),
        });
        columns.push(each.collect::<Result<Vec<_>>>()?);
    }
    Ok((0..types.len()).flat_map(|y| columns.iter().map(move |c| c[y].clone())).collect())
}

/// The Hessian by the first argument: forward mode over reverse mode. Of an argument with several arrays, a tuple for example, each has
/// a row of second derivatives by all. A struct has no place for those: [`tree::ravel`](crate::tree::ravel) makes one array of it.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let h = hessian(|x: &Array| (x * x * x).sum());
/// assert_eq!(h(&Array::from([1.0, 2.0])).to_vec::<f64>()?, [6.0, 0.0, 0.0, 12.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn hessian<'f, A, O, F>(f: F) -> Transformed<'f, A, <A::First as HasJacobian>::By<A::First>>
where
    A: Arguments<First: HasJacobian>,
    O: Tree,
    F: Func<A, O> + 'f,
{
    jacfwd(grad(f))
}

/// The product of the Hessian with a vector, without the Hessian: a tangent through the gradient. Of a function of one argument, it is one of that argument
/// and the vector.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let product = jit(hvp(|x: &Array| (x * x * x).sum()));
/// let (x, v) = (Array::from([1.0, 2.0]), Array::from([1.0, 10.0]));
/// assert_eq!(product(&x, &v).to_vec::<f64>()?, [6.0, 120.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn hvp<'f, X: Tree, O: Tree, F: Func<(X,), O> + 'f>(f: F) -> Transformed<'f, (X, X), X> {
    let (name, stack, made_at) = (f.name(), f.stack(), Location::caller());
    let gradient = grad(f);
    Transformed::named(
        "hvp",
        (name, stack),
        Box::new(move |(x, v): (&X, &X)| {
            let product = try_jvp(&gradient, x, v, trace::caller_or_known(made_at));
            product.map_or_else(|e| poison(x, &e), |(_, product)| product)
        }),
    )
}
