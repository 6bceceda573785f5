//! Operations whose positions are data: windows of an array that start where an index array says.

mod dynamic;
mod gather;
mod products;
mod scatter;
#[cfg(test)]
mod tests;
mod windows;

pub use dynamic::{DynamicSlice, DynamicUpdateSlice};
pub use gather::{Bounds, Gather};
pub use scatter::{Scatter, ScatterKind};

use super::convert::Convert;
use super::elementwise::Clamp;
use super::shaping::{Broadcast, Concatenate, Reshape, zeros};
use crate::array::{Array, Concrete};
use crate::error::Result;
use crate::primitives::Op;
use crate::trace::bind;
use crate::types::{DType, Dim, Element, Scalar, Shape, Wide, dispatch_int};

/// The numbers `from..` of a dense index array, as many as `into` has room for. One beyond `i64` is beyond every axis
/// too, and stays so.
fn read_indices(indices: &Concrete, from: usize, into: &mut [i64]) {
    fn widen<T: Element>(indices: &Concrete, from: usize, into: &mut [i64]) {
        let values = indices.dense_slice::<T>().and_then(|v| v.get(from..)).unwrap_or_default();
        for (to, v) in into.iter_mut().zip(values) {
            *to = match v.to_wide() {
                Wide::UInt(v) => i64::try_from(v).unwrap_or(i64::MAX),
                other => i64::from_wide(other),
            };
        }
    }
    dispatch_int!(indices.ty().dtype(), T => widen::<T>(indices, from, into), else ())
}

/// Indices `[..., k]` held between 0 and a limit for each of the `k` components.
fn clipped(indices: &Array, limits: &[Dim]) -> Result<Array> {
    let ty = indices.ty()?.clone();
    let known: Option<Vec<i64>> = limits.iter().map(Dim::constant).collect();
    let (indices, limits) = match known {
        Some(known) => {
            // A limit beyond the index dtype holds nothing back.
            let most = Scalar::highest(ty.dtype()).to_i64().unwrap_or(i64::MAX);
            let count = known.len();
            let limits = dispatch_int!(ty.dtype(), T => {
                let limits = known.into_iter().map(|v| T::from_wide(Wide::Int(v.min(most)))).collect();
                Array::from(Concrete::from_vec::<T>(&[count], limits))
            }, else zeros(&ty));
            (indices.clone(), limits)
        }
        None => {
            let indices = match ty.dtype() {
                DType::U64 => indices.minimum(i64::MAX as u64),
                _ => indices.clone(),
            };
            let indices = bind(Op::new(Convert { dtype: DType::I64 }), &[indices]);
            let limits: Vec<Array> = limits.iter().map(|d| Array::from_dim(d, DType::I64)).collect();
            (indices, row_of(&limits))
        }
    };
    let shape = ty.shape().clone();
    let high = bind(Op::new(Broadcast { shape, axes: vec![ty.rank().saturating_sub(1)] }), &[limits]);
    Ok(bind(Op::fixed(&Clamp), &[zeros(indices.ty()?), indices, high]))
}

/// Arrays of one shape side by side along a new last axis. There is at least one.
fn row_of(arrays: &[Array]) -> Array {
    let columns: Vec<Array> = arrays
        .iter()
        .map(|a| {
            let shape: Shape = a.shape().inserted(a.rank(), Dim::from(1usize));
            bind(Op::new(Reshape { shape }), std::slice::from_ref(a))
        })
        .collect();
    let axis = arrays.first().map_or(0, Array::rank);
    bind(Op::new(Concatenate { axis }), &columns)
}
