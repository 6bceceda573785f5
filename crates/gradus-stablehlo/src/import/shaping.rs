//! Operations that move elements without computing, and those that make them from nothing.

use gradus_core::primitives::Op;
use gradus_core::primitives::shaping::{Broadcast, Concatenate, Iota, Pad, Permute, Reshape, Reverse, Slice};
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, Shape};

use super::elementwise::convert;
use super::{Answer, On, one, types};
use crate::module::Attribute;

pub(super) fn reshape(x: &Array, shape: impl Into<Shape>) -> Array {
    let shape = shape.into();
    if *x.shape() == shape { x.clone() } else { bind(Op::new(Reshape { shape }), std::slice::from_ref(x)) }
}

pub(super) fn permute(x: &Array, axes: Vec<usize>) -> Array {
    if axes.iter().enumerate().all(|(i, a)| i == *a) {
        x.clone()
    } else {
        bind(Op::new(Permute { axes }), std::slice::from_ref(x))
    }
}

/// The operand with its axes at the given places of a shape, which need not be in order.
pub(super) fn broadcast_in_dim(x: &Array, shape: &Shape, axes: &[usize]) -> Array {
    if x.shape() == shape && axes.iter().enumerate().all(|(i, a)| i == *a) {
        return x.clone();
    }
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_by_key(|i| axes[*i]); // invariant: the numbers are those of places in the list
    let sorted: Vec<usize> = order.iter().map(|i| axes[*i]).collect(); // invariant: as above
    let x = if x.rank() == axes.len() { permute(x, order) } else { x.clone() };
    bind(Op::new(Broadcast { shape: shape.clone(), axes: sorted }), &[x])
}

/// Counts along an axis, in any dtype.
pub(super) fn iota(dtype: DType, shape: Shape, axis: usize) -> Array {
    let counted = if dtype == DType::Bool { DType::I32 } else { dtype };
    convert(&bind(Op::new(Iota { dtype: counted, shape, axis }), &[]), dtype)
}

pub(super) fn concatenate(parts: &[Array], axis: usize) -> Array {
    match parts {
        [only] => only.clone(),
        _ => bind(Op::new(Concatenate { axis }), parts),
    }
}

impl On<'_, '_> {
    pub(super) fn shaping(&mut self, name: &str) -> Answer {
        match name {
            "constant" => self.constant(),
            "iota" => {
                let (dtype, shape) = (self.result_dtype()?, self.result_shape()?);
                one(iota(dtype, shape, self.index("iota_dimension")?))
            }
            "reshape" => one(reshape(&self.x(0)?, self.result_shape()?)),
            "transpose" => one(permute(&self.x(0)?, self.axes("permutation")?)),
            "reverse" => {
                let (x, axes) = (self.x(0)?, self.axes("dimensions")?);
                one(if axes.is_empty() { x } else { bind(Op::new(Reverse { axes }), &[x]) })
            }
            "broadcast_in_dim" => {
                let axes = self.axes("broadcast_dimensions")?;
                one(broadcast_in_dim(&self.x(0)?, &self.result_shape()?, &axes))
            }
            // Removed from the specification; the new dimensions come in front.
            "broadcast" => {
                let (x, sizes) = (self.x(0)?, self.axes("broadcast_sizes")?);
                let shape: Shape = sizes.iter().map(|d| Dim::from(*d)).chain(x.shape().iter().cloned()).collect();
                let axes: Vec<usize> = (sizes.len()..shape.rank()).collect();
                one(broadcast_in_dim(&x, &shape, &axes))
            }
            "slice" => {
                let x = self.x(0)?;
                let dims = |v: Vec<i64>| v.into_iter().map(Dim::from).collect::<Vec<_>>();
                let (start, limit) = (dims(self.integers("start_indices")?), dims(self.integers("limit_indices")?));
                let step = self.counts_or("strides", x.rank(), 1)?;
                one(bind(Op::new(Slice { start, limit, step }), &[x]))
            }
            "pad" => {
                let (x, value) = (self.x(0)?, self.x(1)?);
                let dims = |v: Vec<i64>| v.into_iter().map(Dim::from).collect::<Vec<_>>();
                let low = dims(self.integers_or("edge_padding_low", x.rank(), 0)?);
                let high = dims(self.integers_or("edge_padding_high", x.rank(), 0)?);
                let interior = self.counts_or("interior_padding", x.rank(), 0)?;
                one(bind(Op::new(Pad { low, high, interior }), &[x, value]))
            }
            "concatenate" => one(concatenate(&self.xs()?, self.index("dimension")?)),
            "bitcast_convert" => one(self.bitcast()?),
            _ => Ok(None),
        }
    }

    pub(super) fn constant(&mut self) -> Answer {
        match self.op.attributes.get("value") {
            Some(Attribute::Dense(dense)) => one(types::constant(dense)?),
            _ => Err(self.refused("its value is not `dense<..>`", "write the numbers in the text")),
        }
    }
}
