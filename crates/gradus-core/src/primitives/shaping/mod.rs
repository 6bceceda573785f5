//! Operations that move elements without computing with them: where an element of the result comes from follows from
//! its position alone. Most are views of the operand's buffer.

mod layout;
pub(crate) mod pieces;
pub(crate) mod strided;
#[cfg(test)]
pub(crate) mod tests;

use smallvec::SmallVec;

pub use layout::{Broadcast, Iota, Permute, Reshape, Reverse};
pub use pieces::{Concatenate, Pad, Slice};

use super::{Linear, Op, Transpose, Transposed};
use crate::array::{Array, Concrete, Dims};
use crate::error::{Result, counted, error, fail};
use crate::trace::bind;
use crate::types::{DType, Dim, Element, Scalar, Shape, Type, Wide, dispatch};

/// Zeros of a type, in memory or in the trace.
pub(crate) fn zeros(ty: &Type) -> Array {
    Array::full_scalar(ty.shape().clone(), Scalar::zero(ty.dtype()))
}

/// Whether an operation shows every element of its operand in other places, or several times: it moves and does not drop.
pub(crate) fn is_view(op: &Op) -> bool {
    op.is::<Broadcast>() || op.is::<Reshape>() || op.is::<Permute>() || op.is::<Reverse>()
}

/// A tangent, with the symbolic zero written out.
pub(crate) fn or_zeros(x_dot: &Option<Array>, x: &Array) -> Result<Array> {
    match x_dot {
        Some(x_dot) => Ok(x_dot.clone()),
        None => Ok(zeros(x.ty()?)),
    }
}

/// The same array under dimensions that are equal to its own by a condition of the program, not by their text.
pub(crate) fn fit(x: Array, shape: &Shape) -> Array {
    match x.ty() {
        Ok(ty) if ty.shape() != shape => bind(Op::new(Reshape { shape: shape.clone() }), &[x]),
        _ => x,
    }
}

/// Cotangents, each of exactly its operand's type: `f(i, y_bar, type)` for every operand that is asked for.
pub(crate) fn transposed(t: &Transpose<'_>, f: impl Fn(usize, &Array, &Type) -> Result<Array>) -> Result<Transposed> {
    let mut bars: SmallVec<[Option<Array>; 2]> = smallvec::smallvec![None; t.operands.len()];
    if let Some(Some(y_bar)) = t.cotangents.first() {
        for (i, (operand, bar)) in t.operands.iter().zip(&mut bars).enumerate() {
            if let Linear::Unknown(ty) = operand {
                *bar = Some(fit(f(i, y_bar, ty)?, ty.shape()));
            }
        }
    }
    Ok(Transposed::Cotangents(bars))
}

/// Axes of one operand after a batch axis came in front of them.
pub(crate) fn shifted(axes: &[usize]) -> Vec<usize> {
    axes.iter().map(|a| a + 1).collect()
}

/// A list with one item put in front, as for a batch axis.
pub(crate) fn prepended<T: Clone>(first: T, rest: &[T]) -> Vec<T> {
    std::iter::once(first).chain(rest.iter().cloned()).collect()
}

/// The numbers of dimensions, all of which a program that runs has.
pub(crate) fn known(dims: &[Dim]) -> Result<Dims> {
    dims.iter()
        .map(|d| d.as_usize().ok_or_else(|| error!(NotConcrete, "the dimension {d} has no number here")))
        .collect()
}

/// Refuses axes outside the rank and axes named twice.
pub(crate) fn check_axes(what: &str, axes: &[usize], rank: usize) -> Result<()> {
    // The length comes first: a list longer than the rank names one twice, and need not be searched.
    if axes.len() > rank {
        fail!(Axis, "{what} names {} where there are {rank}", counted(axes.len(), "axis"));
    }
    for (i, axis) in axes.iter().enumerate() {
        if *axis >= rank {
            fail!(Axis, "{what} names axis {axis} where the rank is {rank}");
        }
        if axes.iter().take(i).any(|a| a == axis) {
            fail!(Axis, "{what} names axis {axis} twice");
        }
    }
    Ok(())
}

/// Refuses axes that are not in increasing order, besides what [`check_axes`] refuses.
pub(crate) fn check_sorted(what: &str, axes: &[usize], rank: usize) -> Result<()> {
    check_axes(what, axes, rank)?;
    if !axes.is_sorted() {
        fail!(Axis, "{what} must be in increasing order, not {axes:?}");
    }
    Ok(())
}

/// An array of distinct numbers for samples: some negative, none zero, not in order.
pub(crate) fn ramp(dtype: DType, dims: &[usize]) -> Array {
    fn number<T: Element>(i: usize) -> T {
        let v = ((i * 7) % 11) as f64 - 4.0 + if i.is_multiple_of(2) { 0.25 } else { -0.5 } + 0.03125 * (i / 11) as f64;
        T::from_wide(match T::DTYPE {
            DType::Bool => Wide::UInt((i % 3 == 1) as u64),
            d if d.is_unsigned() => Wide::Real(v.abs() * 2.0),
            d if d.is_complex() => Wide::Complex(v, 0.5 - v / 4.0),
            d if d.is_float() => Wide::Real(v),
            _ => Wide::Real(v * 4.0),
        })
    }
    let count = dims.iter().product();
    dispatch!(dtype, T => Concrete::from_vec(dims, (0..count).map(number::<T>).collect()).into())
}

/// [`ramp`] of f64, what most samples are made of.
pub(crate) fn reals(dims: &[usize]) -> Array {
    ramp(DType::F64, dims)
}
