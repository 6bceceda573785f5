//! Methods that move elements without changing them: shapes, orders of axes, joining, cutting, padding, and dtypes.

mod making;

use crate::array::numpy::countable;
use crate::array::operand::{checked, dim_as, resolve_axis};
use crate::array::{Array, IntoAxes, Operand, OperandValue};
use crate::error::{Result, counted, error, fail};
use crate::primitives::convert::{Bitcast, Convert};
use crate::primitives::shaping::{Broadcast, Concatenate, Pad, Permute, Reshape, Reverse, Slice};
use crate::primitives::{Op, Primitive};
use crate::trace::bind;
use crate::types::{DType, Decision, Dim, Element, IntoShape, Shape, Type};

/// Lets functions of many arrays take `&[a, b]`, `[&a, &b]`, `&[&a, &b]` and iterators alike.
impl AsRef<Array> for Array {
    fn as_ref(&self) -> &Array {
        self
    }
}

/// Applies an operation with one result; an error comes out as such.
#[track_caller]
pub(super) fn apply<P: Primitive>(op: P, inputs: &[Array]) -> Result<Array> {
    bind(Op::new(op), inputs).ok()
}

/// A dimension as a number. Outside a trace a symbolic one has none, only a type, as the specs it comes from.
#[track_caller]
/// The arrays of a list, or the first error among them.
pub(super) fn collect_arrays<I>(items: I) -> Result<Vec<Array>>
where
    I: IntoIterator,
    I::Item: AsRef<Array>,
{
    items.into_iter().map(|a| a.as_ref().clone().ok()).collect()
}

/// The smallest dtype that holds the elements of all arrays exactly.
pub(super) fn common_dtype(arrays: &[Array]) -> Result<DType> {
    let Some((first, rest)) = arrays.split_first() else { fail!(Value, "no arrays were given") };
    let mut common = first.ty()?.dtype();
    for other in rest {
        let dtype = other.ty()?.dtype();
        common = common.promote(dtype).ok_or_else(|| {
            error!(DType, "no dtype holds every value of both {common} and {dtype}")
                .help(format!("cast one of them, as in `x.cast(DType::{})`", common.rust_name()))
        })?;
    }
    Ok(common)
}

/// The arrays, all converted to their common dtype.
#[track_caller]
pub(super) fn promoted(arrays: Vec<Array>) -> Result<Vec<Array>> {
    let dtype = common_dtype(&arrays)?;
    let mut out = Vec::with_capacity(arrays.len());
    for a in arrays {
        out.push(a.try_cast(dtype)?);
    }
    Ok(out)
}

/// A value on its way into an array of `dtype`: a number by the rule for literals, an array if nothing is lost.
#[track_caller]
pub(super) fn value_as(value: OperandValue, dtype: DType) -> Result<Array> {
    match value {
        OperandValue::Number(number) => Ok(Array::scalar(number.literal_as(dtype)?)),
        OperandValue::Dim(dim) => dim_as(&dim, dtype),
        OperandValue::Array(array) => {
            let ty = array.ty()?;
            if !ty.dtype().fits_in(dtype) {
                return Err(error!(DType, "a value of type {ty} does not fit in an array of {dtype} without loss")
                    .help(format!("cast the value, as in `v.cast(DType::{})`, or cast the array", dtype.rust_name())));
            }
            array.try_cast(dtype)
        }
    }
}

/// Whether axes were written as `()` or `..`, which name no axis and mean all of them. The trait hands out resolved
/// axes only; that a list was written shows in the type, which then has a size (but for the empty list, which
/// resolves to none).
fn written_as_all<A>() -> bool {
    size_of::<A>() == 0
}

/// Fills in the one dimension of a shape that was written as -1.
fn resolve_open(ty: &Type, shape: Shape) -> Result<Shape> {
    let mut open = None;
    let mut rest = Dim::from(1usize);
    for (i, d) in shape.iter().enumerate() {
        if d.constant() != Some(-1) {
            rest = rest * d;
        } else if open.replace(i).is_some() {
            return Err(error!(Shape, "{ty} cannot be reshaped to {shape}: only one dimension may be -1"));
        }
    }
    let Some(axis) = open else { return Ok(shape) };
    if rest.constant() == Some(0) {
        return Err(error!(Shape, "{ty} cannot be reshaped to {shape}: with a dimension of 0, -1 could be anything")
            .help("write the dimension instead of -1"));
    }
    let size = ty.shape().size();
    if rest.divides(&size) == Decision::No {
        fail!(Shape, "{ty} cannot be reshaped to {shape}: it has {}, no multiple of {rest}", counted(size, "element"));
    }
    Ok(shape.replaced(axis, size.floor_div(&rest)))
}

impl Array {
    /// The array taken through an operation with one operand.
    #[track_caller]
    pub(super) fn through<P: Primitive>(&self, op: P) -> Result<Array> {
        apply(op, std::slice::from_ref(self))
    }

    /// The same elements in row-major order with another shape. One dimension may be -1: whatever is left.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::arange::<i32>(0, 6, 1).reshape([2, -1]);
    /// assert_eq!(x.shape(), [2, 3]);
    /// ```
    #[doc(alias = "collapse")]
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoShape) -> Array {
        checked(self.try_reshape(shape.into_shape()))
    }

    #[track_caller]
    pub(super) fn try_reshape(&self, shape: Shape) -> Result<Array> {
        let ty = self.ty()?;
        let shape = resolve_open(ty, shape)?;
        if shape == *ty.shape() { Ok(self.clone()) } else { self.through(Reshape { shape }) }
    }

    /// All elements along one axis, in row-major order.
    #[doc(alias = "ravel")]
    #[track_caller]
    pub fn flatten(&self) -> Array {
        checked(self.try_flatten())
    }

    #[track_caller]
    pub(super) fn try_flatten(&self) -> Result<Array> {
        self.try_reshape([self.ty()?.shape().size()].into_iter().collect())
    }

    /// The array repeated to a larger shape: shapes are aligned at their last axes, an axis of size 1 is repeated, and
    /// missing leading axes are added. No memory is used per repeated element.
    #[doc(alias = "broadcast")]
    #[doc(alias = "broadcast_in_dim")]
    #[doc(alias = "broadcast_like")]
    #[doc(alias = "broadcast_to_rank")]
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Array {
        checked(self.try_broadcast_to(shape.into_shape()))
    }

    #[track_caller]
    pub(super) fn try_broadcast_to(&self, shape: Shape) -> Result<Array> {
        let ty = self.ty()?;
        if shape == *ty.shape() {
            return Ok(self.clone());
        }
        let Some(missing) = shape.rank().checked_sub(ty.rank()) else {
            fail!(Shape, "{ty} cannot be broadcast to {shape}, which has fewer axes");
        };
        for (have, want) in ty.shape().iter().zip(shape.iter().skip(missing)) {
            if have.constant() != Some(1) && have.equals(want) == Decision::No {
                fail!(Shape, "{ty} cannot be broadcast to {shape}: {have} is neither 1 nor {want}");
            }
        }
        self.through(Broadcast { axes: (missing..shape.rank()).collect(), shape })
    }

    /// Another order of axes: axis `i` of the result is axis `axes[i]`. Every axis is named once, negative ones count
    /// from the end; `()` reverses them all.
    #[doc(alias = "permute_dims")]
    #[track_caller]
    pub fn transpose<A: IntoAxes>(&self, axes: A) -> Array {
        checked(self.try_transpose(axes))
    }

    #[track_caller]
    fn try_transpose<A: IntoAxes>(&self, axes: A) -> Result<Array> {
        let ty = self.ty()?;
        let mut axes = axes.into_axes(ty.rank())?;
        if axes.len() != ty.rank() {
            return Err(error!(
                Axis,
                "a transpose of {ty} names every axis once, {} and not {}",
                ty.rank(),
                axes.len()
            )
            .help("to exchange two axes use `swap_axes`, to move one `move_axis`"));
        }
        if written_as_all::<A>() {
            axes.reverse();
        }
        self.permuted(axes)
    }

    /// Axes in the order of a permutation.
    #[track_caller]
    pub(super) fn permuted(&self, axes: Vec<usize>) -> Result<Array> {
        if axes.iter().enumerate().all(|(i, a)| i == *a) {
            return self.clone().ok();
        }
        self.through(Permute { axes })
    }

    /// The axes in reverse order: for a matrix, its transpose.
    #[track_caller]
    pub fn t(&self) -> Array {
        checked(self.permuted((0..self.rank()).rev().collect()))
    }

    /// Exchanges two axes.
    #[doc(alias = "swapaxes")]
    #[doc(alias = "matrix_transpose")]
    #[track_caller]
    pub fn swap_axes(&self, a: isize, b: isize) -> Array {
        checked(self.try_swap_axes(a, b))
    }

    #[track_caller]
    fn try_swap_axes(&self, a: isize, b: isize) -> Result<Array> {
        let rank = self.ty()?.rank();
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(resolve_axis(a, rank)?, resolve_axis(b, rank)?);
        self.permuted(axes)
    }

    /// Moves one axis to another place; the others keep their order.
    #[doc(alias = "moveaxis")]
    #[doc(alias = "rollaxis")]
    #[track_caller]
    pub fn move_axis(&self, from: isize, to: isize) -> Array {
        checked(self.try_move_axis(from, to))
    }

    #[track_caller]
    pub(super) fn try_move_axis(&self, from: isize, to: isize) -> Result<Array> {
        let rank = self.ty()?.rank();
        let (from, to) = (resolve_axis(from, rank)?, resolve_axis(to, rank)?);
        let mut axes: Vec<usize> = (0..rank).filter(|a| *a != from).collect();
        axes.insert(to.min(axes.len()), from);
        self.permuted(axes)
    }

    /// Drops axes of size 1: the named ones, or with `()` all that have this size.
    #[track_caller]
    pub fn squeeze<A: IntoAxes>(&self, axes: A) -> Array {
        checked(self.try_squeeze(axes))
    }

    #[track_caller]
    fn try_squeeze<A: IntoAxes>(&self, axes: A) -> Result<Array> {
        let ty = self.ty()?;
        let mut axes = axes.into_axes(ty.rank())?;
        let shape = ty.shape();
        let one = Dim::from(1usize);
        if written_as_all::<A>() {
            axes.retain(|a| shape.get(*a) == Some(&one));
        }
        for &axis in &axes {
            if shape.get(axis).is_some_and(|d| d.equals(&one) == Decision::No) {
                return Err(error!(Shape, "axis {axis} of {ty} cannot be squeezed: its size is not 1")
                    .help("`squeeze(())` drops the axes of size 1 and no others"));
            }
        }
        // A symbolic dimension that may be 1 is checked by the reshape: the number of elements stays the same.
        self.try_reshape(shape.without(|a| axes.contains(&a)))
    }

    /// Adds axes of size 1. The axes are those of the result; negative ones count from its end.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// assert_eq!(Array::spec("f32[3,4]").expand_dims([0, -1]).shape(), [1, 3, 4, 1]);
    /// ```
    #[track_caller]
    pub fn expand_dims<A: IntoAxes + Clone>(&self, axes: A) -> Array {
        checked(self.try_expand_dims(axes))
    }

    #[track_caller]
    fn try_expand_dims<A: IntoAxes + Clone>(&self, axes: A) -> Result<Array> {
        let ty = self.ty()?;
        if written_as_all::<A>() {
            return Ok(self.clone());
        }
        // How many axes are named decides the result's rank, which they are resolved against: they are counted
        // against a rank that is large enough for all of them first.
        const LARGE: usize = 1 << 16;
        let named = axes.clone().into_axes(LARGE).map_or(1, |a| a.len());
        let axes = axes.into_axes(ty.rank() + named)?;
        let mut old = ty.shape().iter();
        let mut dims = Vec::with_capacity(ty.rank() + named);
        for i in 0..ty.rank() + named {
            let dim = if axes.contains(&i) { None } else { old.next().cloned() };
            dims.push(dim.unwrap_or_else(|| Dim::from(1usize)));
        }
        self.try_reshape(dims.into())
    }

    /// The elements in reverse order along some axes.
    #[doc(alias = "rev")]
    #[track_caller]
    pub fn flip(&self, axes: impl IntoAxes) -> Array {
        checked(self.try_flip(axes))
    }

    #[track_caller]
    fn try_flip(&self, axes: impl IntoAxes) -> Result<Array> {
        let mut axes = axes.into_axes(self.ty()?.rank())?;
        axes.sort_unstable();
        if axes.is_empty() { Ok(self.clone()) } else { self.through(Reverse { axes }) }
    }

    /// Shifts the elements along an axis; what leaves at one end comes in at the other.
    #[track_caller]
    pub fn roll(&self, shift: isize, axis: isize) -> Array {
        checked(self.try_roll(shift, axis))
    }

    #[track_caller]
    fn try_roll(&self, shift: isize, axis: isize) -> Result<Array> {
        let ty = self.ty()?;
        let axis = resolve_axis(axis, ty.rank())?;
        let dim = &ty.shape()[axis]; // invariant: resolve_axis stays below the rank
        if shift == 0 || dim.constant() == Some(0) {
            return Ok(self.clone());
        }
        let shift = Dim::from(shift as i64).modulo(dim);
        if shift.constant() == Some(0) {
            return Ok(self.clone());
        }
        let turn = dim - shift;
        let tail = self.slice_axis(axis, turn.clone(), dim.clone())?;
        let head = self.slice_axis(axis, Dim::from(0usize), turn)?;
        apply(Concatenate { axis }, &[tail, head])
    }

    /// The part of one axis from `start` up to but without `limit`.
    #[track_caller]
    pub(super) fn slice_axis(&self, axis: usize, start: Dim, limit: Dim) -> Result<Array> {
        let shape = self.ty()?.shape();
        if start.constant() == Some(0) && shape.get(axis) == Some(&limit) {
            return Ok(self.clone());
        }
        let mut starts = vec![Dim::from(0usize); shape.rank()];
        let mut limits = shape.to_vec();
        if let (Some(s), Some(l)) = (starts.get_mut(axis), limits.get_mut(axis)) {
            (*s, *l) = (start, limit);
        }
        self.through(Slice { start: starts, limit: limits, step: vec![1; shape.rank()] })
    }

    /// Each element `n` times in a row along an axis: `[a, b]` becomes `[a, a, b, b]`.
    #[track_caller]
    pub fn repeat(&self, n: usize, axis: isize) -> Array {
        checked(self.try_repeat(n, axis))
    }

    #[track_caller]
    fn try_repeat(&self, n: usize, axis: isize) -> Result<Array> {
        let ty = self.ty()?;
        let axis = resolve_axis(axis, ty.rank())?;
        let shape = ty.shape();
        let dim = &shape[axis]; // invariant: resolve_axis stays below the rank
        let wide = shape.inserted(axis + 1, Dim::from(n));
        let axes = (0..=shape.rank()).filter(|a| *a != axis + 1).collect();
        let repeated = self.through(Broadcast { shape: wide, axes })?;
        repeated.try_reshape(shape.replaced(axis, dim * n))
    }

    /// The whole array side by side `reps[i]` times along each axis. Where there are fewer numbers than axes, they
    /// are those of the last axes; where there are more, leading axes are added.
    #[track_caller]
    pub fn tile(&self, reps: impl IntoShape) -> Array {
        checked(self.try_tile(reps.into_shape()))
    }

    #[track_caller]
    fn try_tile(&self, reps: Shape) -> Result<Array> {
        let shape = self.ty()?.shape();
        reps.check().map_err(|e| e.note(format!("each number of repetitions in {reps} is to be at least 0")))?;
        let rank = shape.rank().max(reps.rank());
        let one = Dim::from(1usize);
        let at = |list: &Shape, i: usize| {
            let missing = rank - list.rank();
            i.checked_sub(missing).and_then(|i| list.get(i)).unwrap_or(&one).clone()
        };
        // [d0, d1] is seen as [1, d0, 1, d1], repeated to [r0, d0, r1, d1], and read as [r0*d0, r1*d1].
        let (mut wide, mut result, mut axes) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..rank {
            let (r, d) = (at(&reps, i), at(shape, i));
            result.push(&r * &d);
            wide.push(r);
            if i >= rank - shape.rank() {
                axes.push(wide.len());
            }
            wide.push(d);
        }
        self.through(Broadcast { shape: wide.into(), axes })?.try_reshape(result.into())
    }

    /// Joins arrays of one shape along a new axis.
    #[track_caller]
    pub fn stack<I>(arrays: I, axis: isize) -> Array
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        checked(Array::try_stack(collect_arrays(arrays), axis))
    }

    #[track_caller]
    fn try_stack(arrays: Result<Vec<Array>>, axis: isize) -> Result<Array> {
        let arrays = promoted(arrays?)?;
        let Some(first) = arrays.first() else { fail!(Value, "no arrays were given to stack") };
        let axis = resolve_axis(axis, first.rank() + 1)?;
        let mut rows = Vec::with_capacity(arrays.len());
        for a in &arrays {
            let fits = |(x, y): (&Dim, &Dim)| x.equals(y) != Decision::No;
            if a.rank() != first.rank() || !a.shape().iter().zip(first.shape().iter()).all(fits) {
                return Err(error!(
                    Shape,
                    "arrays of different shapes cannot be stacked: {} and {}",
                    first.ty()?,
                    a.ty()?
                )
                .help("`concatenate` joins along an axis that exists and may differ in size"));
            }
            rows.push(a.try_reshape(a.shape().inserted(axis, Dim::from(1usize)))?);
        }
        Array::concatenate_all(rows, axis)
    }

    /// Joins arrays along an axis they have.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let (a, b) = (Array::from([1, 2]), Array::from([3]));
    /// assert_eq!(Array::concatenate([&a, &b], 0).to_vec::<i32>().unwrap(), [1, 2, 3]);
    /// ```
    #[doc(alias = "concat")]
    #[track_caller]
    pub fn concatenate<I>(arrays: I, axis: isize) -> Array
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        checked(Array::try_concatenate(collect_arrays(arrays), axis))
    }

    #[track_caller]
    fn try_concatenate(arrays: Result<Vec<Array>>, axis: isize) -> Result<Array> {
        let arrays = promoted(arrays?)?;
        let Some(first) = arrays.first() else { fail!(Value, "no arrays were given to concatenate") };
        if first.rank() == 0 {
            return Err(
                error!(Axis, "numbers have no axis to be joined along: {}", first.ty()?).help("use `Array::stack`")
            );
        }
        let axis = resolve_axis(axis, first.rank())?;
        Array::concatenate_all(arrays, axis)
    }

    #[track_caller]
    fn concatenate_all(mut arrays: Vec<Array>, axis: usize) -> Result<Array> {
        if arrays.len() == 1 {
            return Ok(arrays.remove(0));
        }
        apply(Concatenate { axis }, &arrays)
    }

    /// Cuts an axis into `parts` parts of equal size. On a mistake each part carries the error, so that who takes them apart meets it.
    #[doc(alias = "dsplit")]
    #[doc(alias = "hsplit")]
    #[doc(alias = "vsplit")]
    #[track_caller]
    pub fn split(&self, parts: usize, axis: isize) -> Vec<Array> {
        // Nobody names more parts than this by hand.
        const CARRIED: usize = 1024;
        match self.try_split(parts, axis) {
            Ok(all) => all,
            Err(e) => vec![checked(Err(e)); parts.clamp(1, CARRIED)],
        }
    }

    #[track_caller]
    fn try_split(&self, parts: usize, axis: isize) -> Result<Vec<Array>> {
        let ty = self.ty()?;
        let axis = resolve_axis(axis, ty.rank())?;
        let shape = ty.shape();
        let dim = &shape[axis]; // invariant: resolve_axis stays below the rank
        let count = Dim::from(parts);
        let even = if parts == 0 { Decision::No } else { count.divides(dim) };
        countable(parts, "parts of an axis")?;
        let size = dim.floor_div(&count);
        let mut all = Vec::new();
        match even {
            Decision::No => {
                return Err(error!(Shape, "axis {axis} of {ty} cannot be cut into {parts} parts of equal size")
                    .help("`split_at` cuts at given places"));
            }
            Decision::Yes => {
                for i in 0..parts {
                    all.push(self.slice_axis(axis, &size * i, &size * (i + 1))?);
                }
            }
            // Only the call knows whether the cut is even: the reshape makes it a condition.
            Decision::AtRunTime => {
                let rows = self.try_reshape(shape.replaced(axis, size.clone()).inserted(axis, count))?;
                for i in 0..parts {
                    let row = rows.slice_axis(axis, Dim::from(i), Dim::from(i + 1))?;
                    all.push(row.try_reshape(shape.replaced(axis, size.clone()))?);
                }
            }
        }
        Ok(all)
    }

    /// Cuts an axis at given places, which increase: `split_at(&[2, 5], 0)` gives `0..2`, `2..5` and `5..`. On a
    /// mistake each part carries the error.
    #[track_caller]
    pub fn split_at(&self, places: &[usize], axis: isize) -> Vec<Array> {
        match self.try_split_at(places, axis) {
            Ok(all) => all,
            Err(e) => vec![checked(Err(e)); places.len() + 1],
        }
    }

    #[track_caller]
    fn try_split_at(&self, places: &[usize], axis: isize) -> Result<Vec<Array>> {
        let ty = self.ty()?;
        let axis = resolve_axis(axis, ty.rank())?;
        let dim = &ty.shape()[axis]; // invariant: resolve_axis stays below the rank
        let mut all = Vec::with_capacity(places.len() + 1);
        let mut start = Dim::from(0usize);
        for &place in places {
            let limit = Dim::from(place);
            if limit.at_least(&start) == Decision::No || dim.at_least(&limit) == Decision::No {
                fail!(
                    Index,
                    "axis {axis} of {ty} cannot be cut at {place}: the places are to increase and stay within {dim}"
                );
            }
            all.push(self.slice_axis(axis, start, limit.clone())?);
            start = limit;
        }
        all.push(self.slice_axis(axis, start, dim.clone())?);
        Ok(all)
    }

    /// Puts `value` around the array: a pair of counts, before and after, for each axis. A negative count crops. Counts are numbers,
    /// or dimensions that may be symbolic.
    #[track_caller]
    pub fn pad<D: Into<Dim> + Clone>(&self, counts: &[(D, D)], value: impl Operand) -> Array {
        let counts: Vec<(Dim, Dim)> = counts.iter().cloned().map(|(a, b)| (a.into(), b.into())).collect();
        checked(self.try_pad(&counts, value.into_operand()))
    }

    #[track_caller]
    fn try_pad(&self, counts: &[(Dim, Dim)], value: OperandValue) -> Result<Array> {
        let ty = self.ty()?;
        if counts.len() != ty.rank() {
            return Err(error!(
                Shape,
                "a pad of {ty} takes a pair of counts for each axis, {} and not {}",
                ty.rank(),
                counts.len()
            )
            .help("write `(0, 0)` for an axis that stays as it is"));
        }
        let value = value_as(value, ty.dtype())?;
        if value.rank() != 0 {
            fail!(Shape, "the value of a pad is one number, not {}", value.ty()?);
        }
        let zero = Dim::from(0usize);
        if counts.iter().all(|(low, high)| *low == zero && *high == zero) {
            return Ok(self.clone());
        }
        let low = counts.iter().map(|c| c.0.clone()).collect();
        let high = counts.iter().map(|c| c.1.clone()).collect();
        self.padded(low, high, vec![0; ty.rank()], value)
    }

    /// The pad operation; `value` is a number of the same dtype.
    #[track_caller]
    pub(super) fn padded(&self, low: Vec<Dim>, high: Vec<Dim>, interior: Vec<usize>, value: Array) -> Result<Array> {
        apply(Pad { low, high, interior }, &[self.clone(), value])
    }

    /// Converts the elements as Rust's `as` does: floats to integers truncate and saturate, NaN gives 0.
    #[doc(alias = "convert_element_type")]
    #[doc(alias = "astype")]
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Array {
        checked(self.try_cast(dtype))
    }

    #[track_caller]
    pub(super) fn try_cast(&self, dtype: DType) -> Result<Array> {
        if self.ty()?.dtype() == dtype { Ok(self.clone()) } else { self.through(Convert { dtype }) }
    }

    /// Converts the elements to those of a Rust type; see [`Array::cast`].
    #[track_caller]
    pub fn cast_to<T: Element>(&self) -> Array {
        checked(self.try_cast(T::DTYPE))
    }

    /// The same bits read as another dtype of the same size.
    #[doc(alias = "bitcast_convert_type")]
    #[track_caller]
    pub fn bitcast(&self, dtype: DType) -> Array {
        checked(self.try_bitcast(dtype))
    }

    #[track_caller]
    fn try_bitcast(&self, dtype: DType) -> Result<Array> {
        if self.ty()?.dtype() == dtype { Ok(self.clone()) } else { self.through(Bitcast { dtype }) }
    }
}

#[cfg(test)]
mod derivatives;
#[cfg(test)]
pub(super) mod tests;
