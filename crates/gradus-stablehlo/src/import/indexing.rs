//! Gather and slices whose place is computed.

use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::index::{Bounds, DynamicSlice, DynamicUpdateSlice, Gather};
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, Scalar, Shape};

use super::elementwise::{apply, convert};
use super::shaping::{permute, reshape};
use super::{Answer, On, one};

/// Indices in a dtype that holds them with a sign. Those of `u64` that have no place among signed ones are as far outside as can be.
pub(super) fn signed(indices: &Array) -> Array {
    match indices.dtype() {
        DType::U64 => {
            let most = Array::full_scalar(indices.shape().clone(), Scalar::U64(i64::MAX as u64));
            convert(&indices.minimum(&most), DType::I64)
        }
        DType::U32 => convert(indices, DType::I64),
        DType::I64 | DType::I32 => indices.clone(),
        _ => convert(indices, DType::I32),
    }
}

/// Index vectors along the last axis; the other axes keep their order. Also how axes of the indices are numbered then.
pub(super) fn vectors_last(indices: &Array, vector_axis: usize) -> (Array, impl Fn(usize) -> usize + use<>) {
    let rank = indices.rank();
    let moved = if vector_axis >= rank {
        reshape(indices, indices.shape().inserted(rank, Dim::from(1usize)))
    } else {
        let order = (0..rank).filter(|a| *a != vector_axis).chain([vector_axis]).collect();
        permute(indices, order)
    };
    (moved, move |axis: usize| if axis > vector_axis { axis - 1 } else { axis })
}

impl On<'_, '_> {
    pub(super) fn indexing(&mut self, name: &str) -> Answer {
        match name {
            "dynamic_slice" => {
                let x = self.x(0)?;
                let sizes: Shape = self.axes("slice_sizes")?.into_iter().map(Dim::from).collect();
                let starts = self.xs()?.split_off(1);
                one(self.windowed_by(&x, &starts, |x, starts| {
                    bind(Op::new(DynamicSlice { sizes }), &[std::slice::from_ref(x), starts].concat())
                }))
            }
            "dynamic_update_slice" => {
                let (x, update) = (self.x(0)?, self.x(1)?);
                let starts = self.xs()?.split_off(2);
                one(self.windowed_by(&x, &starts, |x, starts| {
                    apply(&DynamicUpdateSlice, &[&[x.clone(), update.clone()], starts].concat())
                }))
            }
            "gather" => {
                let sizes: Shape = self.axes("slice_sizes")?.into_iter().map(Dim::from).collect();
                one(self.gather(sizes)?)
            }
            "scatter" => self.scatter(),
            "sort" => self.sort(),
            _ => Ok(None),
        }
    }

    /// What is done at starts, which have one signed dtype then. Without axes there is nothing to choose.
    fn windowed_by(&self, x: &Array, starts: &[Array], f: impl FnOnce(&Array, &[Array]) -> Array) -> Array {
        let starts: Vec<Array> = starts.iter().map(signed).collect();
        f(x, &starts)
    }

    pub(super) fn gather(&mut self, sizes: Shape) -> Result<Array> {
        let (x, indices) = (self.x(0)?, signed(&self.x(1)?));
        let record = self.record("dimension_numbers")?;
        let vector_axis = record.integer("index_vector_dim").unwrap_or(0);
        let vector_axis = self.natural("index_vector_dim", vector_axis)?;
        let (indices, renumbered) = vectors_last(&indices, vector_axis);
        let op = Gather {
            offset_dims: self.field(record, "offset_dims")?,
            collapsed_dims: self.field(record, "collapsed_slice_dims")?,
            operand_batch_dims: self.field(record, "operand_batching_dims")?,
            index_batch_dims: self.field(record, "start_indices_batching_dims")?.into_iter().map(renumbered).collect(),
            index_map: self.field(record, "start_index_map")?,
            sizes,
            bounds: Bounds::Clip,
        };
        bind(Op::new(op), &[x, indices]).ok()
    }
}
