//! Gather: windows of an array, one for each index vector.

use super::clipped;
use super::scatter::{Scatter, ScatterKind};
use super::windows::{Layout, Windows};
use crate::array::{Array, Concrete, row_major};
use crate::error::{Result, counted, error, fail};
use crate::primitives::elementwise::kernel::{one_output, operand};
use crate::primitives::rules::one;
use crate::primitives::shaping::strided::{StridedCopy, buffer};
use crate::primitives::shaping::{known, ramp, reals, transposed, zeros};
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Linear, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::trace::bind;
use crate::types::{DType, Dim, Effects, Element, Scalar, Shape, Type, dispatch};
use crate::{param_names, rules_of};

param_names! {
    /// What a gather does with a window that does not lie inside the array.
    pub enum Bounds {
        /// Moves it to the nearest place where it does.
        Clip = "clip",
        /// Gives NaN; for integers the lowest number if signed, the highest if not; for bools false.
        Fill = "fill",
    }
}

/// Windows of `sizes` out of the first operand, starting where the index vectors along the last axis of the second
/// say. The axes have the meaning they have in StableHLO.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// Axes of the result that run inside a window; increasing.
    pub offset_dims: Vec<usize>,
    /// Axes of the operand in which windows have size 1 and which the result does not have; increasing.
    pub collapsed_dims: Vec<usize>,
    /// Axes of the operand that run together with axes of the indices; increasing.
    pub operand_batch_dims: Vec<usize>,
    /// The axes of the indices that those run with.
    pub index_batch_dims: Vec<usize>,
    /// The axis of the operand that each component of an index vector counts along.
    pub index_map: Vec<usize>,
    /// The size of a window along each axis of the operand.
    pub sizes: Shape,
    /// What happens to windows out of range. A negative start is out of range.
    pub bounds: Bounds,
}

impl Gather {
    /// What the windows were taken from, with something added to each.
    fn put_back(&self, x: Array, indices: &Array, windows: &Array) -> Result<Array> {
        let indices = match self.bounds {
            Bounds::Fill => indices.clone(),
            Bounds::Clip => {
                let limit = |a: &usize| x.shape().get(*a).zip(self.sizes.get(*a)).map(|(dim, size)| dim - size);
                clipped(indices, &self.index_map.iter().filter_map(limit).collect::<Vec<_>>())?
            }
        };
        let scatter = Scatter::new(ScatterKind::Add, self.windows(), false);
        Ok(bind(Op::new(scatter), &[x, indices, windows.clone()]))
    }

    pub(super) fn new(windows: Windows, sizes: Shape, bounds: Bounds) -> Gather {
        Gather {
            offset_dims: windows.window_dims,
            collapsed_dims: windows.dropped_dims,
            operand_batch_dims: windows.operand_batch_dims,
            index_batch_dims: windows.index_batch_dims,
            index_map: windows.index_map,
            sizes,
            bounds,
        }
    }

    /// Element `indices[i]` of a vector for each `i`, where all indices are known to be in range.
    pub(super) fn of_vector(bounds: Bounds) -> Gather {
        Gather {
            offset_dims: vec![],
            collapsed_dims: vec![0],
            operand_batch_dims: vec![],
            index_batch_dims: vec![],
            index_map: vec![0],
            sizes: [1usize].as_slice().into(),
            bounds,
        }
    }

    fn windows(&self) -> Windows {
        Windows {
            window_dims: self.offset_dims.clone(),
            dropped_dims: self.collapsed_dims.clone(),
            operand_batch_dims: self.operand_batch_dims.clone(),
            index_batch_dims: self.index_batch_dims.clone(),
            index_map: self.index_map.clone(),
        }
    }

    /// The dimensions of the result, given the lists fit.
    fn shape(&self, indices: &Type) -> Shape {
        let windows = self.windows();
        let mut inner = windows.shown(self.sizes.rank()).filter_map(|a| self.sizes.get(a));
        let mut outer = indices.shape().iter();
        (0..windows.rank(indices))
            .filter_map(|a| if self.offset_dims.contains(&a) { inner.next() } else { outer.next() })
            .cloned()
            .collect()
    }

    /// Where in the result the windows lie inside the array.
    pub(super) fn within(&self, x: &Type, indices: &Array) -> Array {
        // Bools out of range are false.
        let all = Array::full(x.shape(), true);
        bind(Op::new(Gather { bounds: Bounds::Fill, ..self.clone() }), &[all, indices.clone()])
    }

    /// The windows, with zeros for those out of range. Linear in the array, unlike the filling with NaN.
    pub(super) fn or_zeros(&self, x: &Array, indices: &Array) -> Result<Array> {
        let y = bind(Op::new(self.clone()), &[x.clone(), indices.clone()]);
        match self.bounds {
            Bounds::Clip => Ok(y),
            Bounds::Fill => Ok(self.within(x.ty()?, indices).select(&y, zeros(y.ty()?))),
        }
    }

    fn run<T: Element>(&self, x: &Concrete, indices: &Concrete) -> Result<Concrete> {
        let ty = x.ty().with_shape(self.shape(indices.ty()));
        let dtype = ty.dtype();
        let filling = match dtype {
            DType::Bool => Scalar::Bool(false),
            d if d.is_inexact() => Scalar::F64(f64::NAN).cast(d),
            d if d.is_signed_int() => Scalar::lowest(d),
            d => Scalar::highest(d),
        };
        let mut out = buffer(&ty, T::from_scalar(filling).unwrap_or_default())?;
        let strides = row_major(&known(ty.shape())?);
        let sizes = known(&self.sizes)?;
        let layout = Layout {
            operand_dims: x.dims(),
            operand_strides: x.strides(),
            operand_offset: x.offset(),
            windows_strides: &strides,
            windows_offset: 0,
            sizes: &sizes,
        };
        let windows = self.windows();
        let (dims, from, to) = windows.inside(&layout);
        let inside = StridedCopy::new(&dims, &from, &to);
        let source = T::slice(x.data()).unwrap_or_default();
        if !out.is_empty() {
            windows.walk(&layout, &indices.try_dense()?, self.bounds == Bounds::Clip, &mut |from, to| {
                if let Some(from) = from {
                    inside.copy(source, from, &mut out, to);
                }
            });
        }
        Ok(Concrete::dense(ty, out))
    }
}

impl Primitive for Gather {
    rules_of!("gather"; offset_dims, collapsed_dims, operand_batch_dims, index_batch_dims, index_map, sizes, bounds);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(2)?;
        let inputs = infer.inputs;
        let [x, indices] = inputs else { fail!(Verify, "wants two operands") };
        let windows = self.windows();
        windows.check(infer, x, indices, ["offset_dims", "collapsed_dims"])?;
        if self.sizes.rank() != x.rank() {
            fail!(Shape, "a window of {x} needs {}, not {}", counted(x.rank(), "size"), self.sizes);
        }
        for (axis, (size, dim)) in self.sizes.iter().zip(x.shape().iter()).enumerate() {
            if windows.hides(axis) {
                if size.constant() != Some(1) {
                    fail!(
                        Shape,
                        "windows of sizes {} do not show axis {axis}, so their size there must be 1",
                        self.sizes
                    );
                }
                // Filling may be asked for out of an empty axis, which has nothing to clip to.
                if self.bounds == Bounds::Clip
                    && self.collapsed_dims.contains(&axis)
                    && !infer.at_least(dim, &Dim::from(1usize))
                {
                    return Err(error!(Shape, "axis {axis} of {x} is empty: no index of it can be clipped into range")
                        .help("fill instead, or leave the gather out where the axis is empty"));
                }
            } else if !infer.at_least(size, &Dim::from(0usize)) || !infer.at_least(dim, size) {
                fail!(Shape, "a window of sizes {} does not fit into {x}: axis {axis} has {dim}", self.sizes);
            }
        }
        one(x.with_shape(self.shape(indices)))
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (x, indices) = (operand(inputs, 0)?, operand(inputs, 1)?);
        one_output(dispatch!(x.ty().dtype(), T => self.run::<T>(x, indices)?))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([_, indices], [x_dot, _]) = (jvp.primals, jvp.tangents) else { fail!(Rule, "wants two operands") };
        match x_dot {
            Some(x_dot) => Derivative::one(self.or_zeros(x_dot, indices)?),
            None => Ok(Derivative::Zero),
        }
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let Some(indices) = transpose.operands.get(1).and_then(Linear::known) else { return Ok(Transposed::NotLinear) };
        transposed(transpose, |_, y_bar, x| self.put_back(zeros(x), indices, y_bar))
    }
    fn transpose_into(&self, transpose: &Transpose<'_>, sum: &Array) -> Result<Option<Array>> {
        let (Some(indices), [Some(y_bar)]) = (transpose.operands.get(1).and_then(Linear::known), transpose.cotangents)
        else {
            return Ok(None);
        };
        // A half float is rounded with every number that is added: to few at a time less is lost.
        match sum.dtype() {
            DType::F32 | DType::F64 | DType::C64 | DType::C128 => self.put_back(sum.clone(), indices, y_bar).map(Some),
            _ => Ok(None),
        }
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let &[x, indices] = batch.batched else { fail!(Rule, "wants two operands") };
        let sizes = match (x, indices) {
            (true, true) => self.sizes.inserted(0, Dim::from(1usize)),
            (true, false) => self.sizes.inserted(0, batch.size.clone()),
            (false, _) => self.sizes.clone(),
        };
        Batched::one(bind(Op::new(Gather::new(self.windows().batched(x, indices), sizes, self.bounds)), batch.inputs))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let ints = |dims: &[usize], v: &[i64]| Array::from(Concrete::from_vec(dims, v.to_vec()));
        let gather = |lists: [&[usize]; 5], sizes: &[usize], bounds| {
            let [offset, collapsed, operand_batch, index_batch, map] = lists.map(<[usize]>::to_vec);
            Gather {
                offset_dims: offset,
                collapsed_dims: collapsed,
                operand_batch_dims: operand_batch,
                index_batch_dims: index_batch,
                index_map: map,
                sizes: sizes.into(),
                bounds,
            }
        };
        let sample = |g: Gather, x: Array, indices: Array| Sample::new(Op::new(g), vec![x, indices]);
        let (clip, fill) = (Bounds::Clip, Bounds::Fill);
        let elements = |bounds| gather([&[], &[0], &[], &[], &[0]], &[1], bounds);
        let rows = |bounds| gather([&[1], &[0], &[], &[], &[0]], &[1, 3], bounds);
        let i8s = |v: &[i8]| Array::from(Concrete::from_vec(&[v.len(), 1], v.to_vec()));
        vec![
            sample(elements(clip), reals(&[5]), ints(&[4, 1], &[3, 0, 3, 7])),
            sample(elements(fill), reals(&[5]), ints(&[3, 1], &[4, 1, 1])),
            sample(elements(fill), reals(&[5]), ints(&[4, 1], &[4, 5, -1, 0])).rough(),
            sample(rows(clip), reals(&[4, 3]), ints(&[2, 1], &[-2, 3])),
            sample(rows(fill), reals(&[4, 3]), ints(&[2, 2, 1], &[0, 2, 2, 1])).rough(),
            // Windows of two rows and two columns, with both corners given.
            sample(
                gather([&[1, 2], &[], &[], &[], &[0, 1]], &[2, 2], clip),
                reals(&[4, 3]),
                ints(&[3, 2], &[0, 1, 9, 0, 1, -4]),
            ),
            // The window axis comes first in the result, and the components are the other way round.
            sample(
                gather([&[0], &[0], &[], &[], &[1, 0]], &[1, 2], fill),
                reals(&[3, 4]),
                ints(&[2, 2], &[2, 1, 0, 0]),
            ),
            sample(
                gather([&[0], &[0], &[], &[], &[1, 0]], &[1, 2], fill),
                reals(&[3, 4]),
                ints(&[2, 2], &[3, 1, 0, 3]),
            )
            .rough(),
            // One row of each matrix of a batch; then with the batch axis of the indices behind.
            sample(gather([&[1], &[1], &[0], &[0], &[1]], &[1, 1, 2], clip), reals(&[2, 3, 2]), ints(&[2, 1], &[2, 0])),
            sample(
                gather([&[2], &[0], &[1], &[1], &[0]], &[1, 1, 2], fill),
                reals(&[3, 2, 2]),
                ints(&[2, 2, 1], &[0, 2, 1, 1]),
            ),
            // No component at all: every window is the whole.
            sample(gather([&[1], &[], &[], &[], &[]], &[2], clip), reals(&[2]), ints(&[2, 0], &[])),
            sample(gather([&[], &[], &[], &[], &[]], &[], clip), reals(&[]), ints(&[3, 0], &[])),
            sample(gather([&[0], &[], &[], &[], &[0]], &[2], clip), reals(&[5]), ints(&[1], &[2])),
            sample(elements(fill), reals(&[0]), ints(&[0, 1], &[])),
            sample(gather([&[1], &[], &[], &[], &[0]], &[0], clip), reals(&[3]), ints(&[2, 1], &[1, 0])),
            sample(elements(fill), ramp(DType::I16, &[3]), i8s(&[2, -1, 0, 3])),
            sample(elements(fill), ramp(DType::U8, &[3]), i8s(&[2, -1, 0, 3])),
            sample(elements(clip), ramp(DType::Bool, &[3]), i8s(&[2, -1, 0, 3])),
            sample(elements(clip), ramp(DType::C128, &[3]), i8s(&[2, 1, 1])),
            sample(elements(clip), ramp(DType::F32, &[3]), ramp(DType::U64, &[2, 1])).rough(),
        ]
    }
}
