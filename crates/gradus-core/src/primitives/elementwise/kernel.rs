//! Loops over concrete arrays, element by element. A splat stays a splat; dense operands are read in place.

use std::borrow::Cow;

use crate::array::{Array, Concrete};
use crate::error::{Result, error};
use crate::primitives::Outputs;
use crate::types::{Element, Scalar, Type};

/// Operand `i`, which the interpreter promises to be concrete.
pub(crate) fn operand(inputs: &[Array], i: usize) -> Result<&Concrete> {
    let missing = || error!(Rule, "operand {i} has no numbers");
    inputs.get(i).ok_or_else(missing)?.concrete().ok_or_else(missing)
}

/// One result.
pub(crate) fn one_output(concrete: Concrete) -> Result<Outputs> {
    Ok(smallvec::smallvec![concrete.into()])
}

/// An operand of a loop: one number for all places, or a number for each.
enum Lane<'a, T: Element> {
    Same(T),
    Each(Cow<'a, [T]>),
}

fn lane<T: Element>(x: &Concrete) -> Lane<'_, T> {
    match x.splat_value().and_then(T::from_scalar) {
        Some(v) => Lane::Same(v),
        None => Lane::Each(x.values::<T>()),
    }
}

fn splat<U: Element>(like: &Concrete, value: U) -> Concrete {
    Concrete::splat(like.ty().with_dtype(U::DTYPE), value.into_scalar())
}

fn dense<U: Element>(like: &Concrete, values: Vec<U>) -> Concrete {
    Concrete::dense(like.ty().with_dtype(U::DTYPE), values)
}

/// `f` of every element.
pub(crate) fn map<T: Element, U: Element>(x: &Concrete, f: impl Fn(T) -> U) -> Concrete {
    match lane::<T>(x) {
        Lane::Same(v) => splat(x, f(v)),
        Lane::Each(v) => dense(x, v.iter().map(|&v| f(v)).collect()),
    }
}

/// `f` of the elements of two arrays of one shape.
pub(crate) fn zip<A: Element, B: Element, U: Element>(x: &Concrete, y: &Concrete, f: impl Fn(A, B) -> U) -> Concrete {
    match (lane::<A>(x), lane::<B>(y)) {
        (Lane::Same(a), Lane::Same(b)) => splat(x, f(a, b)),
        (Lane::Same(a), Lane::Each(b)) => dense(x, b.iter().map(|&b| f(a, b)).collect()),
        (Lane::Each(a), Lane::Same(b)) => dense(x, a.iter().map(|&a| f(a, b)).collect()),
        (Lane::Each(a), Lane::Each(b)) => dense(x, a.iter().zip(b.iter()).map(|(&a, &b)| f(a, b)).collect()),
    }
}

/// `f` of the elements of three arrays of one shape.
pub(crate) fn zip3<A: Element, B: Element, C: Element, U: Element>(
    x: &Concrete,
    y: &Concrete,
    z: &Concrete,
    f: impl Fn(A, B, C) -> U,
) -> Concrete {
    let (a, b, c) = (x.values::<A>(), y.values::<B>(), z.values::<C>());
    dense(x, a.iter().zip(b.iter()).zip(c.iter()).map(|((&a, &b), &c)| f(a, b, c)).collect())
}

/// The type with one number in every place.
pub(crate) fn filled(ty: &Type, value: Scalar) -> Array {
    Concrete::splat(ty.clone(), value).into()
}
