//! Iota, broadcast, reshape, transpose and reverse: the same elements seen under other axes.

use super::strided::restride;
use super::{check_axes, check_sorted, known, prepended, ramp, reals, shifted, transposed};
use crate::array::{Array, Concrete, Strides, reserve, row_major};
use crate::error::{Result, counted, error, fail};
use crate::primitives::elementwise::kernel::{one_output, operand};
use crate::primitives::reduce::ReduceSum;
use crate::primitives::rules::one;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::trace::bind;
use crate::types::{DType, Dim, Effects, Element, Shape, Type, Wide, dispatch};

/// `0, 1, 2, ...` along one axis, the same along the others. Integers wrap where the axis is longer than their range.
#[derive(Clone, Debug, PartialEq)]
pub struct Iota {
    /// The element type.
    pub dtype: DType,
    /// The dimensions of the result.
    pub shape: Shape,
    /// The axis to count along.
    pub axis: usize,
}

impl Primitive for Iota {
    rules_of!("iota"; dtype, shape, axis);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(0)?;
        if !self.dtype.is_number() {
            return Err(error!(DType, "cannot count in {}s", self.dtype).help("count in an integer dtype and compare"));
        }
        if self.axis >= self.shape.rank() {
            fail!(Axis, "axis {} of a result of shape {}", self.axis, self.shape);
        }
        one(Type::checked(self.dtype, self.shape.clone())?)
    }
    fn evaluate(&self, _: &[Array]) -> Result<Outputs> {
        let dims = known(&self.shape)?;
        // One row is made; the other axes see it again with stride 0.
        let row = Type::new(self.dtype, dims.get(self.axis..=self.axis).unwrap_or_default());
        let strides: Strides = (0..dims.len()).map(|a| (a == self.axis) as isize).collect();
        one_output(dispatch!(self.dtype, T => {
            let mut values = reserve(&row)?;
            values.extend((0..row.shape().count().unwrap_or(0)).map(|i| T::from_wide(Wide::UInt(i as u64))));
            Concrete::dense::<T>(row, values).view(self.shape.clone(), strides, 0)
        }))
    }
    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Zero)
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::Cotangents(smallvec::smallvec![]))
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let shape = self.shape.inserted(0, batch.size.clone());
        Batched::one(bind(Op::new(Iota { dtype: self.dtype, shape, axis: self.axis + 1 }), &[]))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample =
            |dtype, dims: &[usize], axis| Sample::new(Op::new(Iota { dtype, shape: dims.into(), axis }), vec![]);
        vec![
            sample(DType::I32, &[5], 0),
            sample(DType::F64, &[2, 3], 0),
            sample(DType::F64, &[2, 3], 1),
            sample(DType::I64, &[2, 3, 4], 1),
            sample(DType::F16, &[4], 0),
            sample(DType::BF16, &[4], 0),
            sample(DType::C64, &[3], 0),
            sample(DType::U8, &[1, 0, 2], 2),
            sample(DType::F32, &[0], 0),
            sample(DType::I8, &[1], 0),
        ]
    }
}

/// The operand in a larger shape: its axis `i` becomes axis `axes[i]`, repeated if of size 1; the other axes repeat it.
#[derive(Clone, Debug, PartialEq)]
pub struct Broadcast {
    /// The dimensions of the result.
    pub shape: Shape,
    /// Where each axis of the operand goes; increasing.
    pub axes: Vec<usize>,
}

impl Broadcast {
    /// The axes of the result along which the operand is repeated.
    fn repeated(&self, x: &Shape) -> Vec<usize> {
        let is_one = |d: Option<&Dim>| d.and_then(Dim::constant) == Some(1);
        (0..self.shape.rank())
            .filter(|axis| match self.axes.iter().position(|a| a == axis) {
                Some(i) => is_one(x.get(i)) && !is_one(self.shape.get(*axis)),
                None => true,
            })
            .collect()
    }
}

impl Primitive for Broadcast {
    rules_of!("broadcast"; shape, axes);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let inputs = infer.inputs;
        let Some(x) = inputs.first() else { fail!(Verify, "wants an operand") };
        self.shape.check()?;
        check_sorted("axes", &self.axes, self.shape.rank())?;
        if self.axes.len() != x.rank() {
            fail!(Axis, "an axis of the result is wanted for each axis of {x}, not {:?}", self.axes);
        }
        for (i, (have, axis)) in x.shape().iter().zip(&self.axes).enumerate() {
            let want = self.shape.get(*axis).cloned().unwrap_or_else(|| Dim::from(1usize));
            if have.constant() != Some(1) && !infer.equal(have, &want) {
                return Err(error!(Shape, "{x} does not broadcast to {} by axes {:?}", self.shape, self.axes)
                    .note(format!("axis {i} has {have} and goes to axis {axis}, which has {want}"))
                    .help("a dimension must be 1 or equal to the one it goes to"));
            }
        }
        one(x.with_shape(self.shape.clone()))
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        let dims = known(&self.shape)?;
        let mut strides: Strides = smallvec::smallvec![0; dims.len()];
        for ((&axis, &d), &s) in self.axes.iter().zip(x.dims()).zip(x.strides()) {
            if let Some(to) = strides.get_mut(axis) {
                *to = if d == 1 { 0 } else { s };
            }
        }
        one_output(x.view(self.shape.clone(), strides, x.offset()))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::new(self.clone()), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        transposed(transpose, |_, y_bar, x| {
            let axes = self.repeated(x.shape());
            if axes.is_empty() {
                return Ok(y_bar.clone());
            }
            Ok(bind(Op::new(ReduceSum { axes }), std::slice::from_ref(y_bar)))
        })
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let shape = self.shape.inserted(0, batch.size.clone());
        Batched::one(bind(Op::new(Broadcast { shape, axes: prepended(0, &shifted(&self.axes)) }), batch.inputs))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |x: Array, dims: &[usize], axes: &[usize]| {
            Sample::new(Op::new(Broadcast { shape: dims.into(), axes: axes.to_vec() }), vec![x])
        };
        vec![
            sample(reals(&[]), &[2, 3], &[]),
            sample(reals(&[3]), &[2, 3], &[1]),
            sample(reals(&[2]), &[2, 3], &[0]),
            sample(reals(&[1, 3]), &[2, 3], &[0, 1]),
            sample(reals(&[2, 1]), &[2, 2, 3], &[1, 2]),
            sample(reals(&[2, 3]), &[2, 3], &[0, 1]),
            sample(reals(&[1]), &[1], &[0]),
            sample(reals(&[]), &[], &[]),
            sample(reals(&[1, 2]), &[0, 2], &[0, 1]),
            sample(reals(&[0]), &[3, 0], &[1]),
            sample(ramp(DType::I32, &[2]), &[2, 2], &[0]),
            sample(ramp(DType::Bool, &[3]), &[2, 3], &[1]),
            sample(ramp(DType::C128, &[2]), &[3, 2], &[1]),
            sample(ramp(DType::F32, &[2]), &[3, 2], &[1]),
        ]
    }
}

/// The same elements in the same order under other dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    /// The dimensions of the result.
    pub shape: Shape,
}

impl Primitive for Reshape {
    rules_of!("reshape"; shape);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let inputs = infer.inputs;
        let Some(x) = inputs.first() else { fail!(Verify, "wants an operand") };
        self.shape.check()?;
        // Known counts are compared as numbers: a zero among factors that overflow is still zero.
        let same = match (x.shape().known(), self.shape.known()) {
            (Some(_), Some(_)) => x.shape().count() == self.shape.count(),
            _ => infer.equal(&x.shape().size(), &self.shape.size()),
        };
        if !same {
            let (have, want) = (x.shape().size(), self.shape.size());
            return Err(error!(
                Shape,
                "{x} has {}, which {} not fill the shape {} of {want}",
                counted(&have, "element"),
                if have.constant() == Some(1) { "does" } else { "do" },
                self.shape
            )
            .help("a reshape keeps every element; leave one dimension open with `-1`, or use `broadcast_to`, `pad` or `index`"));
        }
        one(x.with_shape(self.shape.clone()))
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        let dims = known(&self.shape)?;
        if x.count() == 0 {
            return one_output(x.view(self.shape.clone(), row_major(&dims), x.offset()));
        }
        one_output(match restride(x.dims(), x.strides(), &dims) {
            Some(strides) => x.view(self.shape.clone(), strides, x.offset()),
            None => x.try_dense()?.view(self.shape.clone(), row_major(&dims), 0),
        })
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::new(self.clone()), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        // Bringing the cotangent to the operand's shape is all there is to do.
        transposed(transpose, |_, y_bar, _| Ok(y_bar.clone()))
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let shape = self.shape.inserted(0, batch.size.clone());
        Batched::one(bind(Op::new(Reshape { shape }), batch.inputs))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |x: Array, dims: &[usize]| Sample::new(Op::new(Reshape { shape: dims.into() }), vec![x]);
        vec![
            sample(reals(&[6]), &[2, 3]),
            sample(reals(&[2, 3]), &[6]),
            sample(reals(&[2, 3]), &[3, 1, 2]),
            sample(reals(&[2, 3, 2]), &[4, 3]),
            sample(reals(&[1, 1]), &[]),
            sample(reals(&[]), &[1]),
            sample(reals(&[0, 3]), &[2, 0]),
            sample(ramp(DType::I16, &[4]), &[2, 2]),
            sample(ramp(DType::Bool, &[2, 2]), &[4]),
            sample(ramp(DType::C64, &[2]), &[2, 1]),
        ]
    }
}

/// The axes in another order: axis `i` of the result is axis `axes[i]` of the operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Permute {
    /// Where each axis of the result comes from.
    pub axes: Vec<usize>,
}

impl Permute {
    fn pick<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.axes.iter().filter_map(|a| items.get(*a).cloned()).collect()
    }
}

impl Primitive for Permute {
    rules_of!("transpose"; axes);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let Some(x) = infer.inputs.first() else { fail!(Verify, "wants an operand") };
        check_axes("axes", &self.axes, x.rank())?;
        if self.axes.len() != x.rank() {
            fail!(Axis, "each axis of {x} must be named once, not {:?}", self.axes);
        }
        one(x.with_shape(self.pick(x.shape())))
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        one_output(x.view(self.pick(x.ty().shape()).into(), self.pick(x.strides()).into(), x.offset()))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::new(self.clone()), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        transposed(transpose, |_, y_bar, _| {
            let mut inverse = vec![0; self.axes.len()];
            for (i, a) in self.axes.iter().enumerate() {
                if let Some(to) = inverse.get_mut(*a) {
                    *to = i;
                }
            }
            Ok(bind(Op::new(Permute { axes: inverse }), std::slice::from_ref(y_bar)))
        })
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        Batched::one(bind(Op::new(Permute { axes: prepended(0, &shifted(&self.axes)) }), batch.inputs))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |x: Array, axes: &[usize]| Sample::new(Op::new(Permute { axes: axes.to_vec() }), vec![x]);
        vec![
            sample(reals(&[2, 3]), &[1, 0]),
            sample(reals(&[2, 3]), &[0, 1]),
            sample(reals(&[2, 3, 4]), &[2, 0, 1]),
            sample(reals(&[2, 1, 3, 2]), &[3, 1, 0, 2]),
            sample(reals(&[]), &[]),
            sample(reals(&[0, 3]), &[1, 0]),
            sample(ramp(DType::U16, &[2, 2]), &[1, 0]),
            sample(ramp(DType::Bool, &[2, 3]), &[1, 0]),
            sample(ramp(DType::C128, &[2, 2]), &[1, 0]),
        ]
    }
}

/// The operand with the order along some axes turned round.
#[derive(Clone, Debug, PartialEq)]
pub struct Reverse {
    /// The axes to turn.
    pub axes: Vec<usize>,
}

impl Primitive for Reverse {
    rules_of!("reverse"; axes);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let Some(x) = infer.inputs.first() else { fail!(Verify, "wants an operand") };
        check_axes("axes", &self.axes, x.rank())?;
        one(x.clone())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        let mut strides = Strides::from(x.strides());
        let mut offset = x.offset();
        for &axis in &self.axes {
            if let (Some(s), Some(&d)) = (strides.get_mut(axis), x.dims().get(axis)) {
                // The view starts at what was the last element. An empty array has none, and shows nothing.
                if x.count() > 0 {
                    offset = offset.wrapping_add_signed(s.wrapping_mul(d as isize - 1));
                }
                *s = s.wrapping_neg();
            }
        }
        one_output(x.view(x.ty().shape().clone(), strides, offset))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::new(self.clone()), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        transposed(transpose, |_, y_bar, _| Ok(bind(Op::new(self.clone()), std::slice::from_ref(y_bar))))
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        Batched::one(bind(Op::new(Reverse { axes: shifted(&self.axes) }), batch.inputs))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |x: Array, axes: &[usize]| Sample::new(Op::new(Reverse { axes: axes.to_vec() }), vec![x]);
        vec![
            sample(reals(&[4]), &[0]),
            sample(reals(&[2, 3]), &[1]),
            sample(reals(&[2, 3]), &[0, 1]),
            sample(reals(&[2, 3, 2]), &[2, 0]),
            sample(reals(&[2, 3]), &[]),
            sample(reals(&[]), &[]),
            sample(reals(&[0, 2]), &[0]),
            sample(ramp(DType::I8, &[3]), &[0]),
            sample(ramp(DType::Bool, &[4]), &[0]),
            sample(ramp(DType::C64, &[3]), &[0]),
        ]
    }
}
