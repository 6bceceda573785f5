//! Dynamic slice and update: one window whose start is data, held inside the array.

use super::gather::{Bounds, Gather};
use super::scatter::{Scatter, ScatterKind};
use super::windows::Windows;
use super::{clipped, read_indices, row_of};
use crate::array::{Array, Concrete, row_major};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::{one_output, operand};
use crate::primitives::rules::one;
use crate::primitives::shaping::strided::{StridedCopy, owned};
use crate::primitives::shaping::{known, or_zeros, prepended, ramp, reals, transposed, zeros};
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Linear, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::trace::bind;
use crate::types::{DType, Dim, Effects, Element, Scalar, Shape, Type, dispatch};

/// Refuses starts that are not one integer for each axis of `x`, all of one dtype.
fn check_starts(x: &Type, starts: &[Type]) -> Result<()> {
    if starts.len() != x.rank() {
        fail!(Verify, "wants a start for each axis of {x}, not {}", starts.len());
    }
    for start in starts {
        if start.rank() != 0 || !start.dtype().is_int() {
            fail!(DType, "a start must be an integer scalar, not {start}");
        }
        if starts.first().is_some_and(|first| first.dtype() != start.dtype()) {
            fail!(DType, "the starts must be of one dtype, not {starts:?}");
        }
    }
    Ok(())
}

/// Refuses a window that is larger than the array.
fn check_sizes(infer: &mut Infer<'_>, x: &Type, sizes: &Shape) -> Result<()> {
    let zero = Dim::from(0usize);
    let fits = sizes.rank() == x.rank()
        && sizes.iter().zip(x.shape().iter()).all(|(s, d)| infer.at_least(s, &zero) && infer.at_least(d, s));
    if !fits {
        fail!(Shape, "a window of sizes {sizes} does not fit into {x}");
    }
    Ok(())
}

/// The position of the window's corner in a buffer, with every start held in range.
fn corner(x: &Concrete, sizes: &[usize], strides: &[isize], offset: usize, starts: &[Array]) -> Result<usize> {
    let mut at = offset;
    for (i, ((&d, &n), &s)) in x.dims().iter().zip(sizes).zip(strides).enumerate() {
        let mut start = [0];
        read_indices(operand(starts, i)?, 0, &mut start);
        let start = start[0].max(0).min(d as i64 - n as i64);
        // An empty window has no corner to speak of.
        if !sizes.contains(&0) {
            at = at.wrapping_add_signed(s.wrapping_mul(start as isize));
        }
    }
    Ok(at)
}

/// Starts for operands with a batch axis in front, when the starts themselves are the same for every example.
fn with_batch_start(starts: &[Array]) -> Vec<Array> {
    let dtype = starts.first().map_or(DType::I32, Array::dtype);
    prepended(Array::scalar(Scalar::zero(dtype)), starts)
}

/// An index vector for each example, `[batch, k]`. There is at least one start.
fn index_rows(batch: &Batch<'_>, first: usize) -> Array {
    row_of(&(first..batch.inputs.len()).map(|i| batch.with_axis(i)).collect::<Vec<_>>())
}

/// One whole window of an array of this rank, all of whose axes it shows.
fn whole_window(rank: usize) -> Windows {
    Windows {
        window_dims: (0..rank).collect(),
        dropped_dims: vec![],
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: (0..rank).collect(),
    }
}

/// The window of `sizes` that starts at the scalars behind the first operand; a start out of range is moved into it,
/// and a negative one is 0: no start counts from the end.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicSlice {
    /// The dimensions of the window.
    pub sizes: Shape,
}

impl Primitive for DynamicSlice {
    rules_of!("dynamic_slice"; sizes);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        let Some((x, starts)) = inputs.split_first() else { fail!(Verify, "wants an operand") };
        check_starts(x, starts)?;
        check_sizes(infer, x, &self.sizes)?;
        one(x.with_shape(self.sizes.clone()))
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        let sizes = known(&self.sizes)?;
        let offset = corner(x, &sizes, x.strides(), x.offset(), inputs.get(1..).unwrap_or_default())?;
        one_output(x.view(self.sizes.clone(), x.strides().into(), offset))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::new(self.clone()), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let starts: Option<Vec<Array>> = transpose.operands.iter().skip(1).map(|s| s.known().cloned()).collect();
        let Some(starts) = starts else { return Ok(Transposed::NotLinear) };
        transposed(transpose, |_, y_bar, x| {
            let mut inputs = vec![zeros(x), y_bar.clone()];
            inputs.extend(starts.iter().cloned());
            Ok(bind(Op::fixed(&DynamicUpdateSlice), &inputs))
        })
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let (Some((x, starts)), Some((x_batched, starts_batched))) =
            (batch.inputs.split_first(), batch.batched.split_first())
        else {
            fail!(Rule, "wants an operand")
        };
        if !starts_batched.contains(&true) {
            let inputs = prepended(x.clone(), &with_batch_start(starts));
            return Batched::one(bind(
                Op::new(DynamicSlice { sizes: self.sizes.inserted(0, batch.size.clone()) }),
                &inputs,
            ));
        }
        // A window for each example, at its own start.
        let windows = whole_window(self.sizes.rank()).batched(*x_batched, true);
        let sizes = if *x_batched { self.sizes.inserted(0, Dim::from(1usize)) } else { self.sizes.clone() };
        Batched::one(bind(Op::new(Gather::new(windows, sizes, Bounds::Clip)), &[x.clone(), index_rows(batch, 1)]))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |x: Array, sizes: &[usize], starts: &[i32]| {
            let inputs = prepended(x, &starts.iter().map(|s| Array::scalar(Scalar::I32(*s))).collect::<Vec<_>>());
            Sample::new(Op::new(DynamicSlice { sizes: sizes.into() }), inputs)
        };
        let far = Array::scalar(Scalar::U64(u64::MAX));
        let near = Array::scalar(Scalar::I8(-3));
        let two = |start: Array| {
            Sample::new(Op::new(DynamicSlice { sizes: [2usize].as_slice().into() }), vec![reals(&[5]), start])
        };
        vec![
            sample(reals(&[5]), &[2], &[1]),
            sample(reals(&[5]), &[3], &[4]),
            two(far),
            two(near),
            sample(reals(&[3, 4]), &[2, 2], &[1, -5]),
            sample(reals(&[3, 4]), &[3, 1], &[2, 3]),
            sample(reals(&[2, 3, 2]), &[1, 2, 2], &[1, 1, 0]),
            sample(reals(&[]), &[], &[]),
            sample(reals(&[0, 2]), &[0, 1], &[0, 1]),
            sample(reals(&[3]), &[0], &[2]),
            sample(ramp(DType::I64, &[4]), &[2], &[1]),
            sample(ramp(DType::Bool, &[4]), &[2], &[1]),
            sample(ramp(DType::C128, &[4]), &[2], &[1]),
            sample(ramp(DType::F32, &[4]), &[2], &[1]).rough(),
        ]
    }
}

/// The first operand with the second written over the window that starts at the scalars behind them; a start out of
/// range is moved into it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DynamicUpdateSlice;

impl DynamicUpdateSlice {
    fn run<T: Element>(x: &Concrete, update: &Concrete, starts: &[Array]) -> Result<Concrete> {
        let mut out = owned::<T>(x)?;
        let strides = row_major(x.dims());
        let at = corner(x, update.dims(), &strides, 0, starts)?;
        let source = T::slice(update.data()).unwrap_or_default();
        StridedCopy::new(update.dims(), update.strides(), &strides).copy(source, update.offset(), &mut out, at);
        Ok(Concrete::dense(x.ty().clone(), out))
    }
}

impl Primitive for DynamicUpdateSlice {
    rules_of!("dynamic_update_slice");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        let [x, update, starts @ ..] = inputs else { fail!(Verify, "wants an array and an update") };
        if x.dtype() != update.dtype() {
            fail!(DType, "an update of type {update} cannot be written into {x}");
        }
        check_starts(x, starts)?;
        check_sizes(infer, x, update.shape())?;
        one(x.clone())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (x, update) = (operand(inputs, 0)?, operand(inputs, 1)?);
        let starts = inputs.get(2..).unwrap_or_default();
        one_output(dispatch!(x.ty().dtype(), T => DynamicUpdateSlice::run::<T>(x, update, starts)?))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([x, update, starts @ ..], [x_dot, update_dot, ..]) = (jvp.primals, jvp.tangents) else {
            fail!(Rule, "wants an array and an update")
        };
        if x_dot.is_none() && update_dot.is_none() {
            return Ok(Derivative::Zero);
        }
        let mut inputs = vec![or_zeros(x_dot, x)?, or_zeros(update_dot, update)?];
        inputs.extend_from_slice(starts);
        Derivative::one(bind(Op::fixed(&DynamicUpdateSlice), &inputs))
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let starts: Option<Vec<Array>> = transpose.operands.iter().skip(2).map(|s| s.known().cloned()).collect();
        let Some(starts) = starts else { return Ok(Transposed::NotLinear) };
        let update = match transpose.operands.get(1) {
            Some(Linear::Known(update)) => update.ty()?.clone(),
            Some(Linear::Unknown(ty)) => ty.clone(),
            None => fail!(Rule, "wants an array and an update"),
        };
        transposed(transpose, |i, y_bar, _| {
            let mut inputs = vec![y_bar.clone()];
            if i == 0 {
                // What was written over has no part in the result.
                inputs.push(zeros(&update));
                inputs.extend(starts.iter().cloned());
                return Ok(bind(Op::fixed(&DynamicUpdateSlice), &inputs));
            }
            inputs.extend(starts.iter().cloned());
            Ok(bind(Op::new(DynamicSlice { sizes: update.shape().clone() }), &inputs))
        })
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let ([_, _, starts @ ..], [_, _, starts_batched @ ..]) = (batch.inputs, batch.batched) else {
            fail!(Rule, "wants an array and an update")
        };
        let (x, update) = (batch.with_axis(0), batch.with_axis(1));
        if !starts_batched.contains(&true) {
            let mut inputs = vec![x, update];
            inputs.extend(with_batch_start(starts));
            return Batched::one(bind(Op::fixed(&DynamicUpdateSlice), &inputs));
        }
        // A scatter skips windows out of range where this operation moves them.
        let limits: Vec<Dim> = x.shape().iter().zip(update.shape().iter()).skip(1).map(|(d, n)| d - n).collect();
        let indices = clipped(&index_rows(batch, 2), &limits)?;
        let scatter = Scatter::new(ScatterKind::Set, whole_window(starts.len()).batched(true, true), true);
        Batched::one(bind(Op::new(scatter), &[x, indices, update]))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |x: Array, update: Array, starts: &[i64]| {
            let mut inputs = vec![x, update];
            inputs.extend(starts.iter().map(|s| Array::scalar(Scalar::I64(*s))));
            Sample::new(Op::fixed(&DynamicUpdateSlice), inputs)
        };
        let negative = |dims: &[usize]| -reals(dims);
        vec![
            sample(reals(&[5]), negative(&[2]), &[1]),
            sample(reals(&[5]), negative(&[2]), &[4]),
            sample(reals(&[5]), negative(&[2]), &[i64::MIN]),
            sample(reals(&[3, 4]), negative(&[2, 2]), &[1, 9]),
            sample(reals(&[2, 3, 2]), negative(&[1, 3, 1]), &[1, 0, 1]),
            sample(reals(&[2, 2]), negative(&[2, 2]), &[0, 0]),
            sample(reals(&[]), negative(&[]), &[]),
            sample(reals(&[3]), reals(&[0]), &[1]),
            sample(reals(&[0, 2]), reals(&[0, 1]), &[0, 1]),
            sample(ramp(DType::U8, &[4]), ramp(DType::U8, &[2]), &[2]),
            sample(ramp(DType::Bool, &[4]), ramp(DType::Bool, &[2]), &[2]),
            sample(ramp(DType::C128, &[4]), ramp(DType::C128, &[2]), &[2]),
            sample(ramp(DType::BF16, &[4]), ramp(DType::BF16, &[2]), &[2]).rough(),
        ]
    }
}
