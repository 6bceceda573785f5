//! Slice, pad and concatenate: parts of arrays taken out and put together.

use super::strided::{StridedCopy, buffer};
use super::{Broadcast, known, or_zeros, prepended, ramp, reals, transposed};
use crate::array::{Array, Concrete, Strides, reserve, row_major};
use crate::error::{Result, error, fail};
use crate::primitives::elementwise::kernel::{one_output, operand};
use crate::primitives::reduce::ReduceSum;
use crate::primitives::rules::one;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Linear, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::trace::bind;
use crate::types::{DType, Dim, Effects, Element, Scalar, Shape, Type, dispatch};

/// Elements `start, start+step, ...` below `limit` along each axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The first index along each axis.
    pub start: Vec<Dim>,
    /// The index to stop before, along each axis.
    pub limit: Vec<Dim>,
    /// The distance between indices, along each axis; at least 1.
    pub step: Vec<usize>,
}

impl Primitive for Slice {
    rules_of!("slice"; start, limit, step);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let inputs = infer.inputs;
        let Some(x) = inputs.first() else { fail!(Verify, "wants an operand") };
        let (starts, limits, steps) = (self.start.len(), self.limit.len(), self.step.len());
        if [starts, limits, steps] != [x.rank(); 3] {
            fail!(
                Axis,
                "a range is wanted for each axis of {x}, not {starts} starts, {limits} limits and {steps} steps"
            );
        }
        let zero = Dim::from(0usize);
        let mut dims = Vec::with_capacity(x.rank());
        for (axis, (dim, ((start, limit), step))) in
            x.shape().iter().zip(self.start.iter().zip(&self.limit).zip(&self.step)).enumerate()
        {
            if *step == 0 {
                fail!(Value, "the step along axis {axis} is 0, and must be at least 1");
            }
            if !(infer.at_least(start, &zero) && infer.at_least(limit, start) && infer.at_least(dim, limit)) {
                return Err(error!(Index, "the range {start}..{limit} does not fit axis {axis} of {x}")
                    .help(format!("a range must lie in 0..{dim}")));
            }
            let length = limit - start;
            // Rounded up. An empty range gives floordiv(-1, step) + 1, which is 0 as it should be.
            dims.push(if *step == 1 { length } else { (length - 1usize).floor_div(&Dim::from(*step)) + 1usize });
        }
        one(x.with_shape(dims))
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        let (starts, limits) = (known(&self.start)?, known(&self.limit)?);
        let dims: Vec<usize> = starts
            .iter()
            .zip(&limits)
            .zip(&self.step)
            .map(|((s, l), n)| l.saturating_sub(*s).div_ceil(*n.max(&1)))
            .collect();
        let mut offset = x.offset();
        let mut strides = Strides::from(x.strides());
        if !dims.contains(&0) {
            for (((s, &start), &step), &d) in strides.iter_mut().zip(&starts).zip(&self.step).zip(&dims) {
                offset = offset.wrapping_add_signed(s.wrapping_mul(start as isize));
                // Of one element the stride says nothing, and a step beyond the axis must not overflow it.
                if d > 1 {
                    *s = s.wrapping_mul(step as isize);
                }
            }
        }
        one_output(x.view(dims.into_iter().collect(), strides, offset))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::new(self.clone()), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        // Zeros everywhere but where the slice looked: between its elements (interior), before and behind.
        transposed(transpose, |_, y_bar, x| {
            let interior: Vec<usize> = self.step.iter().map(|s| s.saturating_sub(1)).collect();
            let spread = y_bar.shape().iter().zip(&interior).map(|(n, i)| dilated(n, *i));
            let high = x.shape().iter().zip(&self.start).zip(spread).map(|((d, s), n)| d - s - n).collect();
            let zero = Array::scalar(Scalar::zero(x.dtype()));
            Ok(bind(Op::new(Pad { low: self.start.clone(), high, interior }), &[y_bar.clone(), zero]))
        })
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let slice = Slice {
            start: prepended(Dim::from(0usize), &self.start),
            limit: prepended(batch.size.clone(), &self.limit),
            step: prepended(1, &self.step),
        };
        Batched::one(bind(Op::new(slice), batch.inputs))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |x: Array, start: &[usize], limit: &[usize], step: &[usize]| {
            let dims = |list: &[usize]| list.iter().map(|d| Dim::from(*d)).collect();
            Sample::new(Op::new(Slice { start: dims(start), limit: dims(limit), step: step.to_vec() }), vec![x])
        };
        vec![
            sample(reals(&[5]), &[1], &[4], &[1]),
            sample(reals(&[7]), &[1], &[7], &[2]),
            sample(reals(&[7]), &[0], &[6], &[3]),
            sample(reals(&[7]), &[2], &[5], &[10]),
            sample(reals(&[3, 4]), &[0, 1], &[3, 3], &[1, 1]),
            sample(reals(&[4, 5, 3]), &[1, 0, 2], &[4, 5, 3], &[2, 3, 1]),
            sample(reals(&[3, 2]), &[0, 0], &[3, 2], &[1, 1]),
            sample(reals(&[4]), &[2], &[2], &[1]),
            sample(reals(&[4]), &[4], &[4], &[2]),
            sample(reals(&[0, 3]), &[0, 1], &[0, 2], &[2, 1]),
            sample(reals(&[]), &[], &[], &[]),
            sample(ramp(DType::U32, &[5]), &[1], &[5], &[2]),
            sample(ramp(DType::Bool, &[5]), &[0], &[5], &[2]),
            sample(ramp(DType::C128, &[5]), &[1], &[4], &[2]),
            sample(ramp(DType::F32, &[2, 3]), &[1, 0], &[2, 3], &[1, 2]),
        ]
    }
}

/// How far `n` elements reach with `interior` gaps between neighbours; none reach nowhere.
pub(crate) fn dilated(n: &Dim, interior: usize) -> Dim {
    if interior == 0 { n.clone() } else { (n + (n - 1usize) * interior).max(&Dim::from(0usize)) }
}

/// The first operand with the second, a scalar, put before, behind and between its elements. Negative amounts crop.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// How many come before, along each axis; negative to drop the first.
    pub low: Vec<Dim>,
    /// How many come behind, along each axis; negative to drop the last.
    pub high: Vec<Dim>,
    /// How many come between neighbours, along each axis.
    pub interior: Vec<usize>,
}

impl Pad {
    /// The dimensions of the result.
    pub(crate) fn shape(&self, x: &Shape) -> Shape {
        let amounts = self.low.iter().zip(&self.high).zip(&self.interior);
        x.iter().zip(amounts).map(|(n, ((low, high), interior))| low + dilated(n, *interior) + high).collect()
    }

    /// The same with the batch axis, which is not padded, in front.
    fn batched(&self) -> Pad {
        Pad {
            low: prepended(Dim::from(0usize), &self.low),
            high: prepended(Dim::from(0usize), &self.high),
            interior: prepended(0, &self.interior),
        }
    }

    /// What of the result lies over the operand: the transpose of padding with zeros.
    pub(crate) fn crop(&self, y_bar: &Array) -> Array {
        let step: Vec<usize> = self.interior.iter().map(|i| i.saturating_add(1)).collect();
        if self.low.iter().chain(&self.high).all(|d| d.constant().is_some_and(|n| n >= 0)) {
            let limit = y_bar.shape().iter().zip(&self.high).map(|(n, high)| n - high).collect();
            return bind(Op::new(Slice { start: self.low.clone(), limit, step }), std::slice::from_ref(y_bar));
        }
        let negated = |dims: &[Dim]| dims.iter().map(|d| -d).collect::<Vec<_>>();
        let undo = Pad { low: negated(&self.low), high: negated(&self.high), interior: vec![0; self.low.len()] };
        let zero = Array::scalar(Scalar::zero(y_bar.dtype()));
        let shown = bind(Op::new(undo), &[y_bar.clone(), zero]);
        let slice = Slice { start: vec![Dim::from(0usize); self.low.len()], limit: shown.shape().to_vec(), step };
        bind(Op::new(slice), &[shown])
    }

    fn run<T: Element>(&self, x: &Concrete, value: &Concrete, ty: Type) -> Result<Concrete> {
        let mut out = buffer(&ty, value.element::<T>(0)?)?;
        let dims = known(ty.shape())?;
        // Nothing to place, and places among dimensions that are beside a zero may be beyond counting.
        if out.is_empty() {
            return Ok(Concrete::dense(ty, out));
        }
        let (mut from, mut to) = (x.offset(), 0usize);
        let (mut counts, mut strides) = (Vec::new(), Vec::new());
        for (axis, (&s, t)) in x.strides().iter().zip(row_major(&dims)).enumerate() {
            let gap = self.interior.get(axis).map_or(1, |i| *i as i128 + 1);
            let low = self.low.get(axis).and_then(Dim::constant).unwrap_or(0) as i128;
            let (n, room) = (x.dims().get(axis).copied().unwrap_or(0), dims.get(axis).copied().unwrap_or(0) as i128);
            // Element i lands at low + i*gap. The first that is not cropped, and the one behind the last:
            let first = ((-low).max(0) + gap - 1) / gap;
            let end = (((room - low).max(0) + gap - 1) / gap).min(n as i128);
            if first >= end {
                return Ok(Concrete::dense(ty, out));
            }
            counts.push((end - first) as usize);
            from = from.wrapping_add_signed(s.wrapping_mul(first as isize));
            to += (low + first * gap) as usize * t as usize;
            // Of one element the stride says nothing, and a gap beyond the result must not overflow it.
            strides.push(if end - first == 1 { 0 } else { t * gap as isize });
        }
        let source = T::slice(x.data()).unwrap_or_default();
        StridedCopy::new(&counts, x.strides(), &strides).copy(source, from, &mut out, to);
        Ok(Concrete::dense(ty, out))
    }
}

impl Primitive for Pad {
    rules_of!("pad"; low, high, interior);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(2)?;
        let inputs = infer.inputs;
        let [x, value] = inputs else { fail!(Verify, "wants two operands") };
        if value.rank() != 0 || value.dtype() != x.dtype() {
            let want = Type::scalar(x.dtype());
            fail!(DType, "pads {x} with a scalar of its own dtype, {want}, not with {value}");
        }
        let (lows, highs, gaps) = (self.low.len(), self.high.len(), self.interior.len());
        if [lows, highs, gaps] != [x.rank(); 3] {
            fail!(Axis, "amounts are wanted for each axis of {x}, not {lows} low, {highs} high and {gaps} interior");
        }
        let shape = self.shape(x.shape());
        for (axis, d) in shape.iter().enumerate() {
            if !infer.at_least(d, &Dim::from(0usize)) {
                return Err(error!(Shape, "axis {axis} of {x} would have {d} elements")
                    .help("negative padding must not crop more than there is"));
            }
        }
        one(x.with_shape(shape))
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (x, value) = (operand(inputs, 0)?, operand(inputs, 1)?);
        let ty = x.ty().with_shape(self.shape(x.ty().shape()));
        one_output(dispatch!(ty.dtype(), T => self.run::<T>(x, value, ty)?))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([x, value], [x_dot, value_dot]) = (jvp.primals, jvp.tangents) else { fail!(Rule, "wants two operands") };
        if x_dot.is_none() && value_dot.is_none() {
            return Ok(Derivative::Zero);
        }
        Derivative::one(bind(Op::new(self.clone()), &[or_zeros(x_dot, x)?, or_zeros(value_dot, value)?]))
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        transposed(transpose, |i, y_bar, _| {
            let x_bar = self.crop(y_bar);
            if i == 0 {
                return Ok(x_bar);
            }
            // What is left when the operand's part is taken away: exact zeros there, and no large sums to cancel.
            let zero = Array::scalar(Scalar::zero(y_bar.dtype()));
            let rest = y_bar - bind(Op::new(self.clone()), &[x_bar, zero]);
            Ok(bind(Op::new(ReduceSum { axes: (0..y_bar.rank()).collect() }), &[rest]))
        })
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let ([x, value], [_, value_batched]) = (batch.inputs, batch.batched) else { fail!(Rule, "wants two operands") };
        let op = Op::new(self.batched());
        if !value_batched {
            return Batched::one(bind(op, &[x.clone(), value.clone()]));
        }
        // Each example has its own padding: pad with anything, then choose it where the operand does not show, which
        // is the same for all examples.
        let x = batch.with_axis(0);
        let padded = bind(op, &[x.clone(), Array::scalar(Scalar::zero(value.dtype()))]);
        let shows = Array::full(x.shape().without(|axis| axis == 0), true);
        let shows = bind(Op::new(self.clone()), &[shows, Array::scalar(Scalar::Bool(false))]);
        let shape = padded.shape();
        let shows = bind(Op::new(Broadcast { shape: shape.clone(), axes: (1..shape.rank()).collect() }), &[shows]);
        let value = bind(Op::new(Broadcast { shape: shape.clone(), axes: vec![0] }), std::slice::from_ref(value));
        Batched::one(shows.select(padded, value))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |x: Array, amounts: &[(i64, i64, usize)]| {
            let pad = Pad {
                low: amounts.iter().map(|a| Dim::from(a.0)).collect(),
                high: amounts.iter().map(|a| Dim::from(a.1)).collect(),
                interior: amounts.iter().map(|a| a.2).collect(),
            };
            let value = ramp(x.dtype(), &[]);
            Sample::new(Op::new(pad), vec![x, value])
        };
        vec![
            sample(reals(&[3]), &[(1, 2, 0)]),
            sample(reals(&[3]), &[(0, 1, 2)]),
            sample(reals(&[5]), &[(-1, -2, 0)]),
            sample(reals(&[4]), &[(-2, 1, 1)]),
            sample(reals(&[4]), &[(2, -3, 1)]),
            sample(reals(&[2]), &[(-3, 5, 0)]),
            sample(reals(&[2, 3]), &[(1, 0, 0), (0, 2, 1)]),
            sample(reals(&[2, 2, 2]), &[(0, 0, 1), (-1, 1, 0), (2, 0, 3)]),
            sample(reals(&[0]), &[(1, 2, 3)]),
            sample(reals(&[2, 0]), &[(0, 1, 0), (1, 1, 0)]),
            sample(reals(&[]), &[]),
            sample(reals(&[3]), &[(-1, -2, 0)]),
            sample(ramp(DType::I32, &[3]), &[(1, 1, 1)]),
            sample(ramp(DType::Bool, &[3]), &[(2, 0, 1)]),
            sample(ramp(DType::C128, &[2]), &[(1, 0, 1)]),
            sample(ramp(DType::F16, &[2]), &[(1, 0, 1)]).rough(),
        ]
    }
}

/// The operands one behind the other along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Concatenate {
    /// The axis.
    pub axis: usize,
}

impl Concatenate {
    fn run<T: Element>(&self, parts: &[&Concrete], ty: Type) -> Result<Concrete> {
        let dims = known(ty.shape())?;
        if dims.iter().take(self.axis).all(|d| *d == 1) {
            // The parts follow one another in memory.
            let mut out = reserve::<T>(&ty)?;
            for p in parts {
                out.extend_from_slice(&p.try_values::<T>()?);
            }
            return Ok(Concrete::dense(ty, out));
        }
        let mut out = buffer(&ty, T::default())?;
        if out.is_empty() {
            // The other dimensions may be so large that a step along them has no number.
            return Ok(Concrete::dense(ty, out));
        }
        let strides = row_major(&dims);
        let along = strides.get(self.axis).map_or(1, |s| *s as usize);
        let mut to = 0;
        for part in parts {
            let source = T::slice(part.data()).unwrap_or_default();
            if part.count() > 0 {
                StridedCopy::new(part.dims(), part.strides(), &strides).copy(source, part.offset(), &mut out, to);
            }
            to += part.dims().get(self.axis).map_or(0, |d| d * along);
        }
        Ok(Concrete::dense(ty, out))
    }

    fn shape(&self, parts: &[Type]) -> Shape {
        let total = parts.iter().filter_map(|p| p.shape().get(self.axis)).fold(Dim::from(0usize), |n, d| n + d);
        parts.first().map_or_else(Shape::scalar, |p| p.shape().replaced(self.axis, total))
    }
}

impl Primitive for Concatenate {
    rules_of!("concatenate"; axis);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        let Some(first) = inputs.first() else { fail!(Verify, "takes at least one operand") };
        if self.axis >= first.rank() {
            fail!(Axis, "axis {} of {first}, which has rank {}", self.axis, first.rank());
        }
        for other in inputs {
            if other.dtype() != first.dtype() {
                fail!(DType, "operands of different dtypes: {first} and {other}");
            }
            let fits = other.rank() == first.rank()
                && first
                    .shape()
                    .iter()
                    .zip(other.shape().iter())
                    .enumerate()
                    .all(|(i, (a, b))| i == self.axis || infer.equal(a, b));
            if !fits {
                return Err(error!(
                    Shape,
                    "{first} and {other} do not go one behind the other along axis {}", self.axis
                )
                .help("all dimensions but the one along that axis must be equal"));
            }
        }
        one(first.with_shape(self.shape(inputs)))
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let parts = (0..inputs.len()).map(|i| operand(inputs, i)).collect::<Result<Vec<_>>>()?;
        let types: Vec<Type> = parts.iter().map(|p| p.ty().clone()).collect();
        let Some(first) = types.first() else { fail!(Rule, "takes at least one operand") };
        let ty = first.with_shape(self.shape(&types));
        one_output(dispatch!(ty.dtype(), T => self.run::<T>(&parts, ty)?))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        if jvp.tangents.iter().all(Option::is_none) {
            return Ok(Derivative::Zero);
        }
        let parts = jvp.tangents.iter().zip(jvp.primals).map(|(t, x)| or_zeros(t, x)).collect::<Result<Vec<_>>>()?;
        Derivative::one(bind(Op::new(self.clone()), &parts))
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let mut ends = vec![Dim::from(0usize)];
        for x in transpose.operands {
            let shape = match x {
                Linear::Known(x) => x.shape(),
                Linear::Unknown(ty) => ty.shape(),
            };
            let next = ends.last().zip(shape.get(self.axis)).map(|(end, d)| end + d);
            ends.extend(next);
        }
        transposed(transpose, |i, y_bar, _| {
            let (Some(from), Some(to)) = (ends.get(i), ends.get(i + 1)) else { fail!(Rule, "no operand {i}") };
            let mut slice = Slice {
                start: vec![Dim::from(0usize); y_bar.rank()],
                limit: y_bar.shape().to_vec(),
                step: vec![1; y_bar.rank()],
            };
            if let (Some(start), Some(limit)) = (slice.start.get_mut(self.axis), slice.limit.get_mut(self.axis)) {
                (*start, *limit) = (from.clone(), to.clone());
            }
            Ok(bind(Op::new(slice), std::slice::from_ref(y_bar)))
        })
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        Batched::one(bind(Op::new(Concatenate { axis: self.axis + 1 }), &batch.all()))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let sample = |axis, parts: Vec<Array>| Sample::new(Op::new(Concatenate { axis }), parts);
        let negative = |dims: &[usize]| -reals(dims);
        vec![
            sample(0, vec![reals(&[2]), negative(&[3])]),
            sample(0, vec![reals(&[2, 3]), negative(&[1, 3])]),
            sample(1, vec![reals(&[2, 3]), negative(&[2, 1]), reals(&[2, 2])]),
            sample(2, vec![reals(&[2, 1, 2]), negative(&[2, 1, 1])]),
            sample(1, vec![reals(&[2, 2, 2]), negative(&[2, 1, 2])]),
            sample(0, vec![reals(&[3])]),
            sample(0, vec![reals(&[0]), reals(&[2]), reals(&[0])]),
            sample(1, vec![reals(&[0, 2]), reals(&[0, 1])]),
            sample(0, vec![ramp(DType::U64, &[2]), ramp(DType::U64, &[1])]),
            sample(0, vec![ramp(DType::Bool, &[2]), ramp(DType::Bool, &[2])]),
            sample(0, vec![ramp(DType::C128, &[2]), ramp(DType::C128, &[1])]),
            sample(0, vec![ramp(DType::F32, &[2]), ramp(DType::F32, &[1])]).rough(),
        ]
    }
}
