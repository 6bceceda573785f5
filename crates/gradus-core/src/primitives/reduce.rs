//! Reductions: sums, products, extrema, and/or over axes, and the place of an extremum along one.
//!
//! All six share one type rule, one batching rule and one loop (`fold`, which also says in which order elements are
//! combined); an operation says which numbers it takes,
//! how two of them combine, and its derivative. `x_dot` is a tangent, `y_bar` a cotangent.

use std::borrow::Cow;

use super::cumulative::{CumProd, shift};
use super::elementwise::kernel::{map, one_output, operand};
use super::elementwise::number::{Number, Ordered};
pub use super::fold::{CHUNK, LANES, NARROW};
use super::fold::{Order, fold};
use super::rules::one;
use super::shaping::{Broadcast, Iota, Permute, Reshape, shifted};
use super::sort::index_dtype;
use super::{
    Batch, Batched, Derivative, Expansion, Halves, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed,
    Types,
};
use crate::array::{Array, Concrete, collected, memory};
use crate::error::{Result, counted, error, fail};
use crate::rules_of;
use crate::trace::bind;
use crate::types::{
    DType, Decision, Dim, Effects, Element, Scalar, Shape, Type, Wide, bf16, dispatch_int, dispatch_real, f16,
};

macro_rules! reductions {
    ($(
        $(#[$doc:meta])* $name:ident = $text:literal, $wants:literal if |$d:ident| $accepts:expr,
        numbers |$v:ident, $axes:ident| $numbers:expr,
        d |$a:ident, $x:ident, $y:ident, $t:ident| $tangent:expr,
        transpose $transpose:expr,
        samples $samples:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            /// The axes that are reduced away, in increasing order.
            pub axes: Vec<usize>,
        }

        impl Primitive for $name {
            rules_of!($text; axes);
            fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                reduced_type(infer, &self.axes, $wants, |$d| $accepts)
            }
            fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                let ($v, $axes) = (operand(inputs, 0)?, self.axes.as_slice());
                one_output($numbers)
            }
            #[allow(unused_variables)]
            fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
                match (jvp.primals, jvp.tangents, jvp.outputs()) {
                    ([$x], [Some($t)], [$y]) if $x.dtype().is_inexact() => {
                        let $a = self.axes.as_slice();
                        Ok($tangent)
                    }
                    _ => Ok(Derivative::Zero),
                }
            }
            fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
                let rule: fn(&[usize], &Transpose<'_>) -> Result<Transposed> = $transpose;
                rule(&self.axes, transpose)
            }
            fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
                batch.elementwise(Op::new($name { axes: shifted(&self.axes) }))
            }
            fn is_total(&self) -> bool {
                true
            }
            fn halves(&self) -> Halves {
                Halves::Widened
            }
            fn effects(&self) -> Effects {
                Effects::PURE
            }
            fn samples() -> Vec<Sample> {
                let make = |axes: &[usize], x: Array| Sample::new(Op::new($name { axes: axes.to_vec() }), vec![x]);
                let empty = |dtype| Array::from(Concrete::splat(Type::new(dtype, &[2, 0][..]), Scalar::zero(dtype)));
                let shared = |dtype: DType| vec![
                    make(&[0], wave(&[5], 1).cast(dtype)),
                    make(&[], wave(&[2, 2], 2).cast(dtype)),
                    make(&[], wave(&[], 3).cast(dtype)),
                    make(&[0, 1], wave(&[3, 4], 4).cast(dtype)),
                    make(&[0], wave(&[3, 4], 5).cast(dtype)),
                    make(&[1], wave(&[2, 3, 2], 6).cast(dtype)),
                    make(&[0, 2], wave(&[2, 3, 2], 7).cast(dtype)),
                    make(&[1], empty(dtype)).rough(),
                    make(&[0], empty(dtype)),
                ];
                let extra: fn(&dyn Fn(&[usize], Array) -> Sample) -> Vec<Sample> = $samples;
                let $d = DType::F64;
                let mut all = if $accepts { shared(DType::F64) } else { shared(DType::I32) };
                use DType::*;
                for $d in [I8, I32, U8, U64, Bool, F32, F16, BF16] {
                    if $accepts {
                        all.push(make(&[1], wave(&[2, 3], 8).abs().cast($d)).rough());
                    }
                }
                all.extend(extra(&make));
                all
            }
        }
    )*};
}

reductions! {
    /// Sum over axes. Half floats are added in `f32`, integers wrap; the sum of nothing is zero.
    ReduceSum = "reduce_sum", "numbers" if |d| d.is_number(),
        numbers |x, axes| widened(x, |x| {
            dispatch_wide!(number x.ty().dtype(), T => fold::<T>(x, axes, Scalar::zero(T::DTYPE), order_of(T::DTYPE), Number::plus))
        })?,
        d |axes, x, y, x_dot| tangent(sum(x_dot, axes)),
        transpose |axes, t| match (t.operands, t.cotangents) {
            ([x], [Some(y_bar)]) => match x.unknown() {
                Some(ty) => Transposed::one(spread(y_bar, axes, ty.shape())),
                None => Ok(Transposed::NotLinear),
            },
            _ => Ok(Transposed::Cotangents(smallvec::smallvec![None])),
        },
        samples |make| vec![
            make(&[0], complex_wave(&[3], 9)),
            make(&[0], array(&[3], vec![f64::NAN, 1.0, f64::INFINITY])).rough(),
            make(&[0], array(&[4], vec![i8::MAX, 1, 2, 3])),
            make(&[0], wave(&[40], 10)),
        ];
    /// Product over axes. Half floats are multiplied in `f32`, integers wrap; the product of nothing is one.
    ReduceProd = "reduce_prod", "numbers" if |d| d.is_number(),
        numbers |x, axes| widened(x, |x| {
            dispatch_wide!(number x.ty().dtype(), T => fold::<T>(x, axes, Scalar::one(T::DTYPE), order_of(T::DTYPE), Number::times))
        })?,
        d |axes, x, y, x_dot| tangent(product_tangent(axes, x, x_dot)),
        transpose |_, _| Ok(Transposed::NotLinear),
        samples |make| vec![
            make(&[0], complex_wave(&[3], 9)),
            make(&[0], array(&[4], vec![2.0, 0.0, -3.0, 0.5])),
            make(&[1], array(&[2, 3], vec![0.0, 1.5, 0.0, 0.0, 0.0, 0.0])),
            make(&[0], array(&[4], vec![i8::MAX, 3, 2, 3])),
        ];
    /// Maximum over axes; NaN if there is one, the lowest number if there is none. Ties share the derivative equally.
    ReduceMax = "reduce_max", "integers, floats or bools" if |d| !d.is_complex(),
        numbers |x, axes| extremum(x, axes, Scalar::lowest(x.ty().dtype()), true)?,
        d |axes, x, y, x_dot| chosen_tangent(axes, x, y, x_dot),
        transpose |_, _| Ok(Transposed::NotLinear),
        samples |make| extremum_samples(make);
    /// Minimum over axes; NaN if there is one, the highest number if there is none. Ties share the derivative equally.
    ReduceMin = "reduce_min", "integers, floats or bools" if |d| !d.is_complex(),
        numbers |x, axes| extremum(x, axes, Scalar::highest(x.ty().dtype()), false)?,
        d |axes, x, y, x_dot| chosen_tangent(axes, x, y, x_dot),
        transpose |_, _| Ok(Transposed::NotLinear),
        samples |make| extremum_samples(make);
    /// Whether all are true; of integers, the bits that all have. All bits for none.
    ReduceAnd = "reduce_and", "integers or bools" if |d| d.is_int() || d == DType::Bool,
        numbers |x, axes| match x.ty().dtype() {
            DType::Bool => fold::<bool>(x, axes, Scalar::Bool(true), Order::Any, |a, b| a & b)?,
            d => dispatch_int!(d, T => fold::<T>(x, axes, Scalar::from(!T::default()), Order::Any, |a, b| a & b)?,
                else fail!(DType, "no bits in {}", x.ty())),
        },
        d |axes, x, y, x_dot| Derivative::Zero,
        transpose |_, _| Ok(Transposed::NotLinear),
        samples |make| truth_samples(make);
    /// Whether any is true; of integers, the bits that any has. No bit for none.
    ReduceOr = "reduce_or", "integers or bools" if |d| d.is_int() || d == DType::Bool,
        numbers |x, axes| match x.ty().dtype() {
            DType::Bool => fold::<bool>(x, axes, Scalar::Bool(false), Order::Any, |a, b| a | b)?,
            d => dispatch_int!(d, T => fold::<T>(x, axes, Scalar::zero(T::DTYPE), Order::Any, |a, b| a | b)?,
                else fail!(DType, "no bits in {}", x.ty())),
        },
        d |axes, x, y, x_dot| Derivative::Zero,
        transpose |_, _| Ok(Transposed::NotLinear),
        samples |make| truth_samples(make);
}

/// Refuses an axis that is not there.
pub(super) fn check_axis(axis: usize, ty: &Type) -> Result<()> {
    if axis >= ty.rank() {
        return Err(error!(Axis, "axis {axis} is out of range for {ty}, which has {}", counted(ty.rank(), "axis"))
            .help("axes count from 0, or from the end with negative numbers"));
    }
    Ok(())
}

fn reduced_type(infer: &mut Infer<'_>, axes: &[usize], wants: &str, accepts: fn(DType) -> bool) -> Result<Types> {
    infer.arity(1)?;
    infer.dtype(0, wants, accepts)?;
    let ty = &infer.inputs[0]; // invariant: the arity was checked
    axes.iter().try_for_each(|&a| check_axis(a, ty))?;
    if !axes.is_sorted_by(|a, b| a < b) {
        fail!(Axis, "the axes of a reduction stand in increasing order, each once, not {axes:?}");
    }
    one(ty.with_shape(ty.shape().without(|i| axes.contains(&i))))
}

/// Runs an expression for each number type that is computed with: not for half floats, which [`widened`] takes away.
macro_rules! dispatch_wide {
    (real $dtype:expr, $T:ident => $body:expr) => {
        $crate::types::dispatch!(@ $dtype, $T => $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64;
            $crate::error::fail!(DType, "no order in {}", $dtype))
    };
    (number $dtype:expr, $T:ident => $body:expr) => {
        $crate::types::dispatch!(@ $dtype, $T => $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64,
            C64 $crate::types::Complex<f32>, C128 $crate::types::Complex<f64>;
            $crate::error::fail!(DType, "no arithmetic in {}", $dtype))
    };
}
pub(super) use dispatch_wide;

/// Half floats are computed with in `f32` and rounded once at the end.
pub(super) fn widened(x: &Concrete, kernel: impl Fn(&Concrete) -> Result<Concrete>) -> Result<Concrete> {
    match x.ty().dtype() {
        DType::F16 => map(&kernel(&map(x, f16::to_f32)?)?, f16::from_f32),
        DType::BF16 => map(&kernel(&map(x, bf16::to_f32)?)?, bf16::from_f32),
        _ => kernel(x),
    }
}

/// A view with its axes in another order: result axis `i` is axis `axes[i]`.
pub(super) fn permuted(x: &Concrete, axes: &[usize]) -> Concrete {
    let shape = axes.iter().map(|&a| x.dims()[a]).collect::<Shape>();
    x.view(shape, axes.iter().map(|&a| x.strides()[a]).collect(), x.offset())
}

/// How many elements lie before, along and behind an axis. For arrays that are not empty.
pub(super) fn around(dims: &[usize], axis: usize) -> [usize; 3] {
    [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()]
}

/// The elements of a view in row-major order; an error if they must be copied and there is no memory for them.
pub(super) fn elements<T: Element>(x: &Concrete) -> Result<Cow<'_, [T]>> {
    x.try_values()
}

/// Integers wrap, which is exact; all others are rounded.
fn order_of(dtype: DType) -> Order {
    if dtype.is_int() { Order::Any } else { Order::Fixed }
}

fn extremum(x: &Concrete, axes: &[usize], identity: Scalar, largest: bool) -> Result<Concrete> {
    widened(x, |x| match (x.ty().dtype(), largest) {
        (DType::Bool, true) => fold::<bool>(x, axes, Scalar::Bool(false), Order::Any, |a, b| a | b),
        (DType::Bool, false) => fold::<bool>(x, axes, Scalar::Bool(true), Order::Any, |a, b| a & b),
        (d, true) => dispatch_wide!(real d, T => fold::<T>(x, axes, identity.cast(d), Order::Any, Ordered::larger)),
        (d, false) => dispatch_wide!(real d, T => fold::<T>(x, axes, identity.cast(d), Order::Any, Ordered::smaller)),
    })
}

fn tangent(t: Array) -> Derivative {
    Derivative::Tangents(smallvec::smallvec![Some(t)])
}

pub(super) fn sum(x: &Array, axes: &[usize]) -> Array {
    bind(Op::new(ReduceSum { axes: axes.to_vec() }), &[x.clone()])
}

/// Puts reduced axes back: the result of a reduction over `axes`, repeated along them to the operand's shape.
fn spread(y: &Array, axes: &[usize], shape: &Shape) -> Array {
    let kept = (0..shape.rank()).filter(|a| !axes.contains(a)).collect();
    bind(Op::new(Broadcast { shape: shape.clone(), axes: kept }), &[y.clone()])
}

/// `∂/∂xᵢ Πx = (Π_{j<i} xⱼ)(Π_{j>i} xⱼ)`: products before and behind each place. No division, so zeros are no
/// exception, and as these are cumulative products the rule can be differentiated again.
fn product_tangent(axes: &[usize], x: &Array, x_dot: &Array) -> Array {
    let (x, x_dot, axis) = match axes {
        [] => return x_dot.clone(),
        [axis] => (x.clone(), x_dot.clone(), *axis),
        _ => (flattened(x, axes), flattened(x_dot, axes), x.rank() - axes.len()),
    };
    let around = |reverse: bool| {
        let through = bind(Op::new(CumProd { axis, reverse }), &[x.clone()]);
        shift(&through, axis, if reverse { -1 } else { 1 }, Scalar::one(x.dtype()))
    };
    sum(&(around(false) * around(true) * x_dot), &[axis])
}

/// Moves axes to the end and makes them one.
fn flattened(x: &Array, axes: &[usize]) -> Array {
    let order: Vec<usize> = (0..x.rank()).filter(|a| !axes.contains(a)).chain(axes.iter().copied()).collect();
    let size = axes.iter().filter_map(|&a| x.shape().get(a)).fold(Dim::from(1usize), |n, d| n * d);
    let shape = x.shape().without(|a| axes.contains(&a));
    let shape = shape.inserted(shape.rank(), size);
    bind(Op::new(Reshape { shape }), &[bind(Op::new(Permute { axes: order }), &[x.clone()])])
}

/// The mean of the tangents at the places that equal the result. Where the result is NaN, so is the tangent.
fn chosen_tangent(axes: &[usize], x: &Array, y: &Array, x_dot: &Array) -> Derivative {
    let one = Dim::from(1usize);
    let along = |a: &usize| x.shape().get(*a).map_or(Decision::Yes, |d| d.at_least(&one));
    if axes.iter().any(|a| along(a) == Decision::No) {
        // The result is the identity, whatever the operand.
        return Derivative::Zero;
    }
    let chosen = x.eq(spread(y, axes, x.shape()));
    let mut count = sum(&chosen.cast(x.dtype()), axes);
    if axes.iter().any(|a| along(a) == Decision::AtRunTime) {
        // The axis may turn out empty: nothing is chosen then, and the tangent is 0 and not 0/0.
        let ones = count.ones_like();
        let at_least_one = count.lt(&ones).select(&ones, &count);
        count = y.eq(y).select(at_least_one, count);
    }
    tangent(sum(&chosen.select(x_dot, x_dot.zeros_like()), axes) * count.recip())
}

macro_rules! places {
    ($($(#[$doc:meta])* $name:ident = $text:literal, of $extreme:ident, |$a:ident, $b:ident| $better:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            /// The axis that is searched.
            pub axis: usize,
            /// The integer type of the result.
            pub dtype: DType,
        }

        impl Primitive for $name {
            rules_of!($text; axis, dtype);
            fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                place_type(infer, self.axis, self.dtype)
            }
            fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                let x = operand(inputs, 0)?;
                // Once more: the type rule may have seen a symbolic dimension.
                fits_places(&Dim::from(x.dims()[self.axis]), self.dtype, x.ty())?;
                let places = match x.ty().dtype() {
                    DType::Bool => places::<bool>(x, self.axis, |$a, $b| $better)?,
                    d => dispatch_real!(d, T => places::<T>(x, self.axis, |$a, $b| $better)?,
                        else fail!(DType, "no order in {d}")),
                };
                let ty = Type::new(self.dtype, x.ty().shape().without(|i| i == self.axis));
                one_output(dispatch_int!(self.dtype, T => {
                    let each = places.iter().map(|&p| T::from_wide(Wide::UInt(p as u64)));
                    Concrete::dense(ty, collected(places.len(), each)?)
                }, else fail!(DType, "no places in {}", self.dtype)))
            }
            fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
                Ok(Derivative::Zero)
            }
            fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
                Ok(Transposed::NotLinear)
            }
            fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
                batch.elementwise(Op::new($name { axis: self.axis + 1, dtype: self.dtype }))
            }
            fn expand(&self, operands: &[Type]) -> Option<Expansion<'_>> {
                let [x] = operands else { return None };
                let extreme = Op::new($extreme { axes: vec![self.axis] });
                has_first_place(x, self.axis, self.dtype).then(|| -> Expansion<'_> {
                    Box::new(move |inputs| first_place(inputs, self.axis, self.dtype, extreme.clone()))
                })
            }
            fn is_total(&self) -> bool {
                true
            }
            fn halves(&self) -> Halves {
                Halves::Widened
            }
            fn effects(&self) -> Effects {
                Effects::PURE
            }
            fn samples() -> Vec<Sample> {
                let make = |axis, dtype, x| Sample::new(Op::new($name { axis, dtype }), vec![x]);
                vec![
                    make(0, DType::I32, wave(&[5], 1)),
                    make(0, DType::I64, wave(&[3, 4], 2)),
                    make(1, DType::U8, wave(&[3, 4], 3)),
                    make(1, DType::I32, wave(&[2, 3, 2], 4)),
                    make(0, DType::I32, array(&[4], vec![1.0, 2.0, 2.0, 1.0])).rough(),
                    make(0, DType::I32, array(&[4], vec![1.0, f64::NAN, 2.0, f64::NAN])).rough(),
                    make(1, DType::I16, array(&[2, 3], vec![3i8, -4, 3, -128, 127, 127])),
                    make(0, DType::U32, array(&[3, 2], vec![false, true, true, true, false, true])),
                    make(0, DType::U64, wave(&[6], 5).cast(DType::F16)).rough(),
                    make(1, DType::I32, array::<f64>(&[0, 3], vec![])),
                ]
            }
        }
    )*};
}

places! {
    /// The place of the maximum along an axis: the first of equals, the first NaN if there is one.
    ArgMax = "argmax", of ReduceMax, |a, b| PartialOrd::gt(&a, &b);
    /// The place of the minimum along an axis: the first of equals, the first NaN if there is one.
    ArgMin = "argmin", of ReduceMin, |a, b| PartialOrd::lt(&a, &b);
}

fn place_type(infer: &mut Infer<'_>, axis: usize, dtype: DType) -> Result<Types> {
    infer.arity(1)?;
    infer.dtype(0, "integers, floats or bools", |d| !d.is_complex() && d != DType::Key)?;
    if !dtype.is_int() {
        fail!(DType, "a place is an integer, not {dtype}");
    }
    let ty = infer.inputs[0].clone(); // invariant: the arity was checked
    check_axis(axis, &ty)?;
    let n = &ty.shape()[axis]; // invariant: the axis was checked
    if !infer.at_least(n, &Dim::from(1usize)) {
        return Err(error!(Shape, "axis {axis} of {ty} is empty, so nothing stands first in it")
            .help("reduce along an axis of at least one element"));
    }
    fits_places(n, dtype, &ty).map_err(|e| e.help("ask for `DType::I64`"))?;
    one(Type::new(dtype, ty.shape().without(|i| i == axis)))
}

/// Refuses an integer type too small for the places along an axis.
pub(super) fn fits_places(n: &Dim, dtype: DType, ty: &Type) -> Result<()> {
    let last = n.as_usize().map_or(0, |n| n.saturating_sub(1)) as u64;
    if dispatch_int!(dtype, T => T::try_from(last).is_err(), else true) {
        fail!(DType, "{dtype} cannot hold the places up to {last} of {ty}");
    }
    Ok(())
}

/// Whether places are made of other operations: not where only a call tells whether they fit their type.
/// Numbers of long columns stand beside their places when they are compared, each in a lane of its own; only rows are better gone through twice.
fn has_first_place(x: &Type, axis: usize, dtype: DType) -> bool {
    let fits = matches!(dtype, DType::I64 | DType::U64) || x.shape().get(axis).is_some_and(|n| n.constant().is_some());
    let behind = x.shape().dims().iter().skip(axis + 1).fold(Dim::from(1usize), |n, d| n * d);
    let is_row = x.dtype() == DType::Bool || Dim::from(NARROW).at_least(&behind) == Decision::Yes;
    fits && is_row
}

/// The first place of the extreme number along an axis, or of the first NaN, which then is the extreme one: the smallest number of all such places.
fn first_place(inputs: &[Array], axis: usize, dtype: DType, extreme: Op) -> Result<Outputs> {
    let [x] = inputs else { fail!(Verify, "takes one operand") };
    let ty = x.ty()?;
    let best = spread(&bind(extreme, std::slice::from_ref(x)), &[axis], ty.shape());
    let same = x.eq(best);
    let here = if ty.dtype().is_float() { same | x.ne(x) } else { same };
    let number = ty.shape().get(axis).map_or(DType::I64, index_dtype);
    let places = bind(Op::new(Iota { dtype: number, shape: ty.shape().clone(), axis }), &[]);
    let behind = Array::full_scalar(ty.shape().clone(), Scalar::highest(number));
    let first = bind(Op::new(ReduceMin { axes: vec![axis] }), &[here.select(places, behind)]);
    Ok(smallvec::smallvec![first.cast(dtype)])
}

/// The place along an axis at which no other element is better.
fn places<T: Element + PartialOrd>(x: &Concrete, axis: usize, better: impl Fn(T, T) -> bool) -> Result<Vec<usize>> {
    if x.dims().contains(&0) {
        return Ok(Vec::new());
    }
    #[allow(clippy::eq_op)]
    let is_nan = |v: T| v != v;
    let wins = |new: T, best: T| better(new, best) || (is_nan(new) && !is_nan(best));
    let [outer, n, inner] = around(x.dims(), axis);
    let values = elements::<T>(x)?;
    let mut out = collected(outer * inner, std::iter::repeat_n(0, outer * inner))?;
    let mut best = memory(inner)?;
    for (block, out) in values.chunks_exact(n * inner).zip(out.chunks_exact_mut(inner)) {
        if inner == 1 {
            let best = (0..n).reduce(|best, i| if wins(block[i], block[best]) { i } else { best });
            out.fill(best.unwrap_or(0));
            continue;
        }
        let (first, rest) = block.split_at(inner);
        best.clear();
        best.extend_from_slice(first);
        for (i, row) in rest.chunks_exact(inner).enumerate() {
            for ((best, place), &v) in best.iter_mut().zip(out.iter_mut()).zip(row) {
                if wins(v, *best) {
                    (*best, *place) = (v, i + 1);
                }
            }
        }
    }
    Ok(out)
}

/// An array from its elements, for samples and tests.
pub(super) fn array<T: Element>(dims: &[usize], values: Vec<T>) -> Array {
    Concrete::from_vec(dims, values).into()
}

/// Distinct numbers in no order between -3 and 3, none of them zero and each exact in few digits.
pub(super) fn wave(dims: &[usize], seed: usize) -> Array {
    let n = dims.iter().product::<usize>();
    array(dims, (0..n).map(|i| ((i * 37 + seed * 11) % 97) as f64 / 16.0 - 3.03125).collect())
}

/// As [`wave`], with an imaginary part.
pub(super) fn complex_wave(dims: &[usize], seed: usize) -> Array {
    Array::complex(&wave(dims, seed), &wave(dims, seed + 5))
}

fn extremum_samples(make: &dyn Fn(&[usize], Array) -> Sample) -> Vec<Sample> {
    vec![
        make(&[1], array(&[2, 3], vec![1.0, 2.0, 2.0, -1.0, -1.0, -1.0])).rough(),
        make(&[0], array(&[3], vec![1.0, f64::NAN, 2.0])).rough(),
        make(&[0], array(&[2], vec![f64::NEG_INFINITY, f64::NEG_INFINITY])).rough(),
        make(&[0], array(&[2, 2], vec![true, false, false, false])),
        make(&[0], wave(&[40], 9)),
    ]
}

fn truth_samples(make: &dyn Fn(&[usize], Array) -> Sample) -> Vec<Sample> {
    vec![
        make(&[1], array(&[3, 2], vec![true, false, true, true, false, false])),
        make(&[0, 1], array(&[3, 2], vec![true, false, true, true, false, false])),
        make(&[0], array(&[3], vec![6i32, 12, -4])),
        make(&[0], array::<bool>(&[0], vec![])),
        make(&[0], array::<i8>(&[0], vec![])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn reduce(op: impl Primitive, x: Array) -> Array {
        bind(Op::new(op), &[x])
    }

    fn floats(op: impl Primitive, x: Array) -> Vec<f64> {
        reduce(op, x).to_vec().unwrap()
    }

    fn kind(op: impl Primitive, spec: &str) -> ErrorKind {
        reduce(op, Array::spec(spec)).ok().unwrap_err().kind()
    }

    /// The plain definition, element by element.
    fn by_hand(dims: &[usize], axes: &[usize], x: &[f64]) -> Vec<f64> {
        let kept: Vec<usize> = (0..dims.len()).filter(|a| !axes.contains(a)).collect();
        let mut out = vec![0.0; kept.iter().map(|&a| dims[a]).product()];
        for (i, v) in x.iter().enumerate() {
            let (mut rest, mut at, mut scale) = (i, 0, 1);
            for a in (0..dims.len()).rev() {
                if !axes.contains(&a) {
                    at += rest % dims[a] * scale;
                    scale *= dims[a];
                }
                rest /= dims[a];
            }
            out[at] += v;
        }
        out
    }

    #[test]
    fn sums_over_every_set_of_axes() {
        let dims = [3, 4, 2, 5];
        let values: Vec<f64> = (0..120).map(f64::from).collect();
        for set in 0..16usize {
            let axes: Vec<usize> = (0..4).filter(|a| set >> a & 1 == 1).collect();
            let sum = floats(ReduceSum { axes: axes.clone() }, array(&dims, values.clone()));
            assert_eq!(sum, by_hand(&dims, &axes, &values), "{axes:?}");
        }
    }

    #[test]
    fn a_transposed_operand_is_summed_where_it_lies() {
        let x = array(&[2, 3, 4], (0..24).map(f64::from).collect());
        for order in [[2, 1, 0], [1, 0, 2], [2, 0, 1]] {
            let turned = bind(Op::new(Permute { axes: order.to_vec() }), &[x.clone()]);
            for axes in [vec![0], vec![1], vec![2], vec![0, 2], vec![0, 1]] {
                let dense = array(&turned.known_dims().unwrap(), turned.to_vec::<f64>().unwrap());
                let op = ReduceSum { axes };
                assert_eq!(floats(op.clone(), turned.clone()), floats(op, dense));
            }
        }
    }

    #[test]
    fn long_sums_are_accurate() {
        let tenths = array(&[1 << 20], vec![0.1f32; 1 << 20]);
        let along: f32 = reduce(ReduceSum { axes: vec![0] }, tenths).item().unwrap();
        // One after the other the error is in the thousands.
        assert!((along - 104857.6).abs() < 2.0, "{along}");
        let half = array(&[4096], vec![f16::ONE; 4096]);
        assert_eq!(reduce(ReduceSum { axes: vec![0] }, half).item::<f16>().unwrap().to_f32(), 4096.0);
    }

    #[test]
    fn what_a_view_repeats_is_read_once() {
        let many = |value: Scalar| Array::from(Concrete::splat(Type::new(value.dtype(), &[1 << 40, 3][..]), value));
        let sums = reduce(ReduceSum { axes: vec![0] }, many(Scalar::I64(5)));
        assert_eq!(sums.to_vec::<i64>().unwrap(), [5i64 << 40; 3]);
        assert_eq!(floats(ReduceMax { axes: vec![0, 1] }, many(Scalar::F64(1.5))), [1.5]);
        let x = array(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let shape: Shape = [2usize, 5, 3, 4].into_iter().collect();
        let seen = bind(Op::new(Broadcast { shape, axes: vec![0, 2] }), &[x]);
        let dense = array(&[2, 5, 3, 4], seen.to_vec::<f64>().unwrap());
        for axes in [vec![0], vec![1], vec![3], vec![1, 2], vec![0, 3], vec![0, 1, 2, 3], vec![2]] {
            let op = ReduceSum { axes };
            assert_eq!(floats(op.clone(), seen.clone()), floats(op, dense.clone()));
        }
        assert_eq!(reduce(ReduceProd { axes: vec![0] }, Array::full([5usize], 7u8)).item::<u8>(), Ok(16807u32 as u8));
    }

    #[test]
    fn nothing_reduces_to_the_identity() {
        let none = || array::<f64>(&[2, 0], vec![]);
        assert_eq!(floats(ReduceSum { axes: vec![1] }, none()), [0.0, 0.0]);
        assert_eq!(floats(ReduceProd { axes: vec![1] }, none()), [1.0, 1.0]);
        assert_eq!(floats(ReduceMax { axes: vec![1] }, none()), [f64::NEG_INFINITY; 2]);
        assert_eq!(floats(ReduceMin { axes: vec![1] }, none()), [f64::INFINITY; 2]);
        assert_eq!(floats(ReduceMax { axes: vec![0] }, none()), []);
        assert_eq!(reduce(ReduceMax { axes: vec![0] }, array::<i8>(&[0], vec![])).item::<i8>(), Ok(-128));
        assert_eq!(reduce(ReduceAnd { axes: vec![0] }, array::<u8>(&[0], vec![])).item::<u8>(), Ok(255));
    }

    #[test]
    fn extrema_keep_nan_and_integers_wrap() {
        let long: Vec<f64> = (0..100).map(|i| if i == 70 { f64::NAN } else { f64::from(i) }).collect();
        for x in [array(&[3], vec![1.0, f64::NAN, 2.0]), array(&[100], long)] {
            assert!(floats(ReduceMax { axes: vec![0] }, x.clone())[0].is_nan());
            assert!(floats(ReduceMin { axes: vec![0] }, x)[0].is_nan());
        }
        assert_eq!(reduce(ReduceSum { axes: vec![0] }, array(&[2], vec![127i8, 1])).item::<i8>(), Ok(-128));
        let any: bool = reduce(ReduceMax { axes: vec![0] }, array(&[2], vec![false, true])).item().unwrap();
        assert!(any);
        assert_eq!(reduce(ReduceAnd { axes: vec![0] }, array(&[3], vec![14, 7, -2])).item::<i32>(), Ok(6));
    }

    #[test]
    fn places_are_the_first_of_equals_and_of_nans() {
        let place = |x: Vec<f64>| -> [i32; 2] {
            let x = array(&[x.len()], x);
            let max = reduce(ArgMax { axis: 0, dtype: DType::I32 }, x.clone()).item().unwrap();
            [max, reduce(ArgMin { axis: 0, dtype: DType::I32 }, x).item().unwrap()]
        };
        assert_eq!(place(vec![1.0, 3.0, 3.0, 1.0]), [1, 0]);
        assert_eq!(place(vec![1.0, f64::NAN, 9.0, f64::NAN, -9.0]), [1, 1]);
        let table = array(&[2, 3], vec![1u8, 5, 2, 7, 0, 2]);
        assert_eq!(reduce(ArgMax { axis: 0, dtype: DType::I64 }, table.clone()).to_vec::<i64>().unwrap(), [1, 0, 0]);
        assert_eq!(reduce(ArgMin { axis: 1, dtype: DType::U8 }, table).to_vec::<u8>().unwrap(), [0, 1]);
    }

    #[test]
    fn symbolic_dimensions_pass_through() {
        let ty = |op: Op| bind(op, &[Array::spec("f32[B,3,2*B]")]).ty().unwrap().to_string();
        assert_eq!(ty(Op::new(ReduceMax { axes: vec![1] })), "f32[B,2*B]");
        assert_eq!(ty(Op::new(ReduceSum { axes: vec![0, 2] })), "f32[3]");
        assert_eq!(ty(Op::new(ArgMax { axis: 0, dtype: DType::I32 })), "i32[3,2*B]");
    }

    #[test]
    fn the_extremum_of_nothing_does_not_vary() {
        let max = |xs: &[Array]| vec![reduce(ReduceMax { axes: vec![0] }, xs[0].clone())];
        let traced = crate::trace::trace("f", &[Array::spec("f64[B]")], crate::Mode::Abstract, max).unwrap();
        let (forward, _) = crate::transform::jvp(&traced.program, &[true]).unwrap();
        let run = |x: Vec<f64>, x_dot: Vec<f64>| {
            let inputs = [array(&[x.len()], x), array(&[x_dot.len()], x_dot)];
            crate::interpret(&forward, &inputs).unwrap()[1].item::<f64>().unwrap()
        };
        assert_eq!(run(vec![], vec![]), 0.0);
        assert_eq!(run(vec![2.0, 3.0, 3.0], vec![1.0, 10.0, 20.0]), 15.0);
        assert!(run(vec![2.0, f64::NAN], vec![1.0, 1.0]).is_nan());
    }

    #[test]
    fn a_place_that_turns_out_too_large_is_an_error() {
        let place = |xs: &[Array]| vec![reduce(ArgMax { axis: 0, dtype: DType::I8 }, xs[0].clone())];
        let traced = crate::trace::trace("f", &[Array::spec("f64[B]")], crate::Mode::Abstract, place).unwrap();
        let run = |n: usize| crate::interpret(&traced.program, &[array(&[n], (0..n).map(|i| i as f64).collect())]);
        assert_eq!(run(128).unwrap()[0].item::<i8>().unwrap(), 127);
        assert_eq!(run(129).unwrap_err().kind(), ErrorKind::DType);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(kind(ReduceSum { axes: vec![2] }, "f64[2,3]"), ErrorKind::Axis);
        assert_eq!(kind(ReduceSum { axes: vec![1, 0] }, "f64[2,3]"), ErrorKind::Axis);
        assert_eq!(kind(ReduceSum { axes: vec![1, 1] }, "f64[2,3]"), ErrorKind::Axis);
        assert_eq!(kind(ReduceSum { axes: vec![0] }, "bool[2]"), ErrorKind::DType);
        assert_eq!(kind(ReduceMax { axes: vec![0] }, "c64[2]"), ErrorKind::DType);
        assert_eq!(kind(ReduceAnd { axes: vec![0] }, "f64[2]"), ErrorKind::DType);
        assert_eq!(kind(ArgMax { axis: 0, dtype: DType::I32 }, "f64[0,3]"), ErrorKind::Shape);
        assert_eq!(kind(ArgMax { axis: 0, dtype: DType::I32 }, "f64[]"), ErrorKind::Axis);
        assert_eq!(kind(ArgMax { axis: 0, dtype: DType::F32 }, "f64[3]"), ErrorKind::DType);
        assert_eq!(kind(ArgMax { axis: 0, dtype: DType::I8 }, "f64[300]"), ErrorKind::DType);
    }
}
