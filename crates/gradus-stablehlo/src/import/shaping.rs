//! Operations that move elements without computing, and those that make them from nothing.

use gradus_core::error::Result;
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

    /// The same bits as elements of another size: a last axis appears or goes. The first of several small ones are the low bits.
    fn bitcast(&mut self) -> Result<Array> {
        let (x, to) = (self.x(0)?, self.result_dtype()?);
        let from = x.dtype();
        if from == to {
            return Ok(x);
        }
        // A complex number is its two parts, one behind the other.
        if from.is_complex() {
            let parts = pairs(&x);
            return if parts.dtype() == to { Ok(parts) } else { self.bits(&parts, to, true) };
        }
        if to.is_complex() {
            let part = to.real_part();
            let parts = if from == part { x } else { self.bits(&x, part, false)? };
            return Ok(from_pairs(&parts));
        }
        self.bits(&x, to, false)
    }

    /// Bits of real numbers. `join` says that the last axis of two belongs to one element of the operand.
    fn bits(&self, x: &Array, to: DType, join: bool) -> Result<Array> {
        let (from, word) = (x.dtype(), |size: usize| match size {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        });
        if from == DType::Bool || to == DType::Bool {
            return Err(self.refused("the bits of `i1` are not specified", "use `stablehlo.convert`"));
        }
        let (a, b) = (from.size(), to.size());
        let bits = x.bitcast(word(a));
        let made = if a == b {
            bits
        } else if a > b {
            let n = a / b;
            let shape = x.shape().inserted(x.rank(), Dim::from(n));
            let wide = broadcast_in_dim(&bits, &shape, &Vec::from_iter(0..x.rank()));
            let shifts = iota(word(a), shape, x.rank()) * (8 * b) as i32;
            let parts = convert(&wide.shift_right_logical(&shifts), word(b));
            if join && x.rank() > 0 {
                let last = parts.rank() - 2;
                let all = parts.dim(last as isize) * Dim::from(n);
                reshape(&parts, parts.shape().without(|i| i == last + 1).replaced(last, all))
            } else {
                parts
            }
        } else {
            let n = b / a;
            let wide = convert(&bits, word(b));
            let shape = wide.shape().clone();
            let Some(last) = shape.rank().checked_sub(1) else {
                return Err(self.wrong("there is no axis of parts that become one element"));
            };
            // What stays of the last axis when so many parts are joined.
            let joined = shape.get(last).and_then(|d| d.as_usize()).map_or(1, |d| d / n);
            let (wide, axis) = if joined > 1 {
                let cut = shape.replaced(last, Dim::from(joined)).inserted(last + 1, Dim::from(n));
                (reshape(&wide, cut), last + 1)
            } else {
                (wide, last)
            };
            let shifts = iota(word(b), wide.shape().clone(), axis) * (8 * a) as i32;
            let moved = wide << &shifts;
            // The parts have no bit in common, so their sum is their union.
            bind(Op::new(gradus_core::primitives::reduce::ReduceSum { axes: vec![axis] }), &[moved])
        };
        Ok(made.bitcast(to))
    }
}

/// Complex numbers as a last axis of two parts.
pub(super) fn pairs(x: &Array) -> Array {
    let end = x.rank();
    let part = |p: Array| reshape(&p, p.shape().inserted(end, Dim::from(1usize)));
    concatenate(&[part(x.real()), part(x.imag())], end)
}

/// The complex numbers whose parts stand along the last axis.
fn from_pairs(x: &Array) -> Array {
    let last = x.rank().saturating_sub(1);
    let part = |k: usize| {
        let start = (0..x.rank()).map(|a| Dim::from(if a == last { k } else { 0 })).collect();
        let limit =
            x.shape().iter().enumerate().map(|(a, d)| if a == last { Dim::from(k + 1) } else { d.clone() }).collect();
        let cut = bind(Op::new(Slice { start, limit, step: vec![1; x.rank()] }), std::slice::from_ref(x));
        reshape(&cut, cut.shape().without(|a| a == last))
    };
    Array::complex(&part(0), &part(1))
}
