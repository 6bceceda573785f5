//! Indexing as in NumPy: what may be written as an index, reading (`x.index(..)`), and the raw forms (`take`, `gather`,
//! dynamic slices). Changing places is in `update.rs`, the meaning of an index in `plan.rs`.

mod plan;
mod update;

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::array::Array;
use crate::array::operand::{broadcast, broadcast_shapes, checked, resolve_axis};
use crate::array::shaping::apply;
use crate::error::{Result, error, fail};
use crate::primitives::Op;
use crate::primitives::index::{Bounds, DynamicSlice, DynamicUpdateSlice, Gather, Scatter};
use crate::primitives::shaping::Concatenate;
use crate::trace::bind;
use crate::types::{DType, Dim, IntoShape, Scalar, Shape, Type};
use plan::IndexPlan;

/// One entry of an index.
#[derive(Clone, Debug)]
pub enum Index {
    /// One place of an axis, which the result does not have. Negative counts from the end.
    At(i64),
    /// Every `step`-th place from `start` up to but without `end`; a negative step goes backwards. Negative bounds
    /// count from the end, and what lies outside the axis is left out.
    Range {
        /// The first place; by default where the axis begins (or ends, for a negative step).
        start: Option<i64>,
        /// The place before which to stop; by default the whole axis is walked.
        end: Option<i64>,
        /// The distance between places, not 0.
        step: i64,
    },
    /// The places from one dimension up to but without another, both counted from the beginning; they may be symbolic. What lies
    /// outside of the axis is an error, at the call where it takes the sizes to see it.
    Between {
        /// The first place; by default where the axis begins.
        start: Option<Dim>,
        /// The place before which to stop; by default where the axis ends.
        end: Option<Dim>,
    },
    /// One place of an axis, counted from the beginning by a dimension, which may be symbolic; the result does not have the axis.
    AtDim(Dim),
    /// A new axis of size 1: `x.index((.., Index::NewAxis))`.
    NewAxis,
    /// As many whole axes as are left; at most once. `x.index((Index::Ellipsis, 0))` is the first place of the last axis.
    Ellipsis,
    /// Places given by numbers: integers pick them, bools mark them.
    Array(Array),
}

impl Index {
    /// Every `k`-th place of a range. A negative `k` goes backwards from the start, as in Python: `Index::step(.., -1)` is the
    /// whole axis in reverse, `Index::step(5..1, -2)` the places 5 and 3.
    pub fn step(range: impl RangeBounds<i64>, k: i64) -> Index {
        let next = |v: i64, by: i64| match v.saturating_add(by) {
            // One past the last place, or one before the first: to the very end.
            past if (past == 0 && by > 0) || (past == -1 && by < 0) => None,
            past => Some(past),
        };
        let start = match range.start_bound() {
            Bound::Included(v) => Some(*v),
            Bound::Excluded(v) => Some(v.saturating_add(1)),
            Bound::Unbounded => None,
        };
        let end = match range.end_bound() {
            Bound::Included(v) => next(*v, if k < 0 { -1 } else { 1 }),
            Bound::Excluded(v) => Some(*v),
            Bound::Unbounded => None,
        };
        Index::Range { start, end, step: k }
    }
}

/// What may be written as an index: a number, a range (`..` is a whole axis), an array, [`Index::NewAxis`],
/// [`Index::Ellipsis`], [`Index::step`], or a tuple of them.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be an index of an array")]
pub trait IntoIndex {
    /// The entries, outermost axis first.
    fn into_index(self) -> Vec<Index>;
}

impl IntoIndex for Index {
    fn into_index(self) -> Vec<Index> {
        vec![self]
    }
}

impl IntoIndex for &Index {
    fn into_index(self) -> Vec<Index> {
        vec![self.clone()]
    }
}

impl IntoIndex for Vec<Index> {
    fn into_index(self) -> Vec<Index> {
        self
    }
}

impl IntoIndex for &[Index] {
    fn into_index(self) -> Vec<Index> {
        self.to_vec()
    }
}

impl IntoIndex for Array {
    fn into_index(self) -> Vec<Index> {
        vec![Index::Array(self)]
    }
}

impl IntoIndex for &Array {
    fn into_index(self) -> Vec<Index> {
        vec![Index::Array(self.clone())]
    }
}

/// The place that a dimension counts to.
impl IntoIndex for Dim {
    fn into_index(self) -> Vec<Index> {
        vec![Index::AtDim(self)]
    }
}

impl IntoIndex for Range<Dim> {
    fn into_index(self) -> Vec<Index> {
        vec![Index::Between { start: Some(self.start), end: Some(self.end) }]
    }
}

impl IntoIndex for RangeFrom<Dim> {
    fn into_index(self) -> Vec<Index> {
        vec![Index::Between { start: Some(self.start), end: None }]
    }
}

impl IntoIndex for RangeTo<Dim> {
    fn into_index(self) -> Vec<Index> {
        vec![Index::Between { start: None, end: Some(self.end) }]
    }
}

impl IntoIndex for RangeFull {
    fn into_index(self) -> Vec<Index> {
        vec![Index::step(.., 1)]
    }
}

/// The whole array.
impl IntoIndex for () {
    fn into_index(self) -> Vec<Index> {
        Vec::new()
    }
}

macro_rules! number_indices {
    ($($t:ty),*) => {$(
        impl IntoIndex for $t {
            fn into_index(self) -> Vec<Index> {
                vec![Index::At(wide(self))]
            }
        }
        number_indices!(@ranges $t: Range RangeFrom RangeInclusive RangeTo RangeToInclusive);
    )*};
    (@ranges $t:ty: $($range:ident)*) => {$(
        impl IntoIndex for $range<$t> {
            fn into_index(self) -> Vec<Index> {
                vec![Index::step((self.start_bound().map(|v| wide(*v)), self.end_bound().map(|v| wide(*v))), 1)]
            }
        }
    )*};
}
number_indices!(i32, i64, isize, usize);

/// A place as `i64`; one beyond is outside every axis.
fn wide(place: impl TryInto<i64>) -> i64 {
    place.try_into().unwrap_or(i64::MAX)
}

macro_rules! tuple_indices {
    ($($($name:ident)+;)*) => {$(
        impl<$($name: IntoIndex),+> IntoIndex for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_index(self) -> Vec<Index> {
                let ($($name,)+) = self;
                let mut all = Vec::new();
                $(all.extend($name.into_index());)+
                all
            }
        }
    )*};
}
tuple_indices! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// Places of an array, to be read or to be changed. Arrays are immutable: a change gives a new array.
///
/// Changes take a value that broadcasts to what [`At::get`] would give and that fits the array's dtype. Where integer
/// arrays name a place several times, [`At::add`], [`At::mul`], [`At::min`] and [`At::max`] apply every one, and with
/// [`At::set`] the last one stays; places outside the array are left out. Where a bool array marks places, all marked
/// ones are changed.
#[derive(Clone, Debug)]
#[must_use = "`at` only names places; `get`, `set`, `add`, ... do something with them"]
pub struct At<'a> {
    array: &'a Array,
    index: Vec<Index>,
}

impl At<'_> {
    /// The elements at these places.
    ///
    /// Integer arrays broadcast together; numbers in them count from the end if negative, and are clipped to the axis
    /// if they are outside it, because a compiled program cannot fail in the middle. Plain numbers outside are errors.
    #[track_caller]
    pub fn get(&self) -> Array {
        checked(self.try_get())
    }

    #[track_caller]
    fn try_get(&self) -> Result<Array> {
        let ty = self.array.ty()?;
        let plan = IndexPlan::new(ty, &self.index)?;
        if let Some((_, mask)) = plan.mask() {
            return Err(error!(Index, "{ty} cannot be read at the places that {} marks", mask.ty()?)
                .note("how many there are depends on values, and the shape of a result must not")
                .help(
                    "keep all places and blank out the rest, as in `mask.select(&x, 0.0)`, or sum `mask.select(..)`; \
                       to change marked places use `x.at(&mask).set(v)`",
                ));
        }
        let window = plan.window(self.array)?;
        if plan.arrays().is_empty() {
            return window.try_reshape(plan.result_shape(window.shape(), &Shape::scalar()));
        }
        let lookup = plan.lookup(&window)?;
        let shape = plan.result_shape(window.shape(), &lookup.shape);
        for (axis, index) in plan.arrays() {
            if window.dim(*axis as isize).constant() == Some(0) {
                if lookup.shape.count() == Some(0) {
                    return Array::scalar(Scalar::zero(ty.dtype())).try_broadcast_to(shape);
                }
                fail!(Index, "{} cannot pick places of axis {axis} of {ty}, which has none", index.ty()?);
            }
        }
        let picked = if lookup.shape.rank() == 0 {
            let mut inputs = vec![window.clone()];
            inputs.extend(lookup.starts(window.rank()));
            apply(DynamicSlice { sizes: plan.sizes(window.shape()) }, &inputs)?
        } else {
            let gather = Gather {
                offset_dims: plan.window_axes(lookup.shape.rank()),
                collapsed_dims: plan.collapsed(),
                operand_batch_dims: vec![],
                index_batch_dims: vec![],
                index_map: lookup.axes.clone(),
                sizes: plan.sizes(window.shape()),
                bounds: Bounds::Clip,
            };
            apply(gather, &[window, lookup.stacked()?])?
        };
        picked.try_reshape(shape)
    }
}

/// The integer arrays of an index, wrapped, broadcast together, with the axes they pick from.
struct Lookup {
    axes: Vec<usize>,
    arrays: Vec<Array>,
    shape: Shape,
}

impl Lookup {
    /// For numbers: a start for each axis, zero where nothing is picked.
    fn starts(&self, rank: usize) -> Vec<Array> {
        let mut starts = vec![Array::scalar(Scalar::I64(0)); rank];
        for (axis, index) in self.axes.iter().zip(&self.arrays) {
            if let Some(start) = starts.get_mut(*axis) {
                *start = index.clone();
            }
        }
        starts
    }

    /// As one array whose last axis has a place for each axis.
    #[track_caller]
    fn stacked(&self) -> Result<Array> {
        let rank = self.shape.rank();
        let mut columns = Vec::with_capacity(self.arrays.len());
        for index in &self.arrays {
            columns.push(index.try_reshape(index.shape().inserted(rank, Dim::from(1usize)))?);
        }
        if columns.len() == 1 { Ok(columns.remove(0)) } else { apply(Concatenate { axis: rank }, &columns) }
    }
}

/// Integers as `i64`. What `u64` alone can hold is outside every axis.
#[track_caller]
fn as_places(index: &Array) -> Result<Array> {
    let places = if index.dtype() == DType::U64 { index.minimum(i64::MAX as u64) } else { index.clone() };
    places.ok()?.try_cast(DType::I64)
}

/// Places as `i64`, negative ones counted from the end of an axis of this size.
#[track_caller]
fn wrapped(index: &Array, dim: &Dim) -> Result<Array> {
    let ty = index.ty()?;
    if !ty.dtype().is_int() {
        return Err(error!(DType, "places are integers (or bools, which mark them), not {ty}")
            .help("cast first, as in `i.cast(DType::I64)`"));
    }
    // In i64, because a small dtype may not hold the axis' size.
    let places = as_places(index)?;
    if ty.dtype().is_unsigned() {
        return Ok(places);
    }
    let from_end = &places + &Array::from_dim(dim, DType::I64);
    places.lt(0i64).select(&from_end, &places).ok()
}

/// Starts of a dynamic slice with one dtype among them.
#[track_caller]
fn starts_of(x: &Type, starts: &[Array]) -> Result<Vec<Array>> {
    if starts.len() != x.rank() {
        fail!(Index, "a dynamic slice of {x} takes a start for each axis, {} and not {}", x.rank(), starts.len());
    }
    let mut dtypes = Vec::new();
    for s in starts {
        let ty = s.ty()?;
        if !ty.dtype().is_int() || ty.rank() != 0 {
            fail!(Index, "the start of a dynamic slice is one integer, not {ty}");
        }
        dtypes.push(ty.dtype());
    }
    let mixed = dtypes.windows(2).any(|pair| pair[0] != pair[1]); // invariant: windows of two
    let mut out = Vec::with_capacity(starts.len());
    for s in starts {
        out.push(if mixed { as_places(s)? } else { s.clone() });
    }
    Ok(out)
}

impl Array {
    /// Names places of the array, to be read or changed: `x.at((0, 1..3)).set(5.0)`. [`At`] says what can be done with them: `get`, `set`, `add`,
    /// `mul`, `min`, `max`. Numbers, ranges, `..`, arrays of integers or bools, [`Index`], and tuples of these name places.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([1, 2, 3]);
    /// assert_eq!(x.at(-1).add(10).to_vec::<i32>().unwrap(), [1, 2, 13]);
    /// ```
    pub fn at(&self, index: impl IntoIndex) -> At<'_> {
        At { array: self, index: index.into_index() }
    }

    /// The elements at some places, named as for [`at`](Array::at); see [`At::get`].
    ///
    /// ```
    /// # use gradus_core::{Array, Index};
    /// let x = Array::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.index((1, Index::step(.., -2))).to_vec::<i32>().unwrap(), [6, 4]);
    /// ```
    #[doc(alias = "index_in_dim")]
    #[doc(alias = "slice")]
    #[doc(alias = "slice_in_dim")]
    #[track_caller]
    pub fn index(&self, index: impl IntoIndex) -> Array {
        self.at(index).get()
    }

    /// The places of an axis that integers name; the axis is replaced by the axes of `indices`. Negative ones count
    /// from the end, those outside are clipped.
    #[doc(alias = "dynamic_index_in_dim")]
    #[doc(alias = "index_take")]
    #[track_caller]
    pub fn take(&self, indices: &Array, axis: isize) -> Array {
        checked(self.try_take(indices, axis))
    }

    #[track_caller]
    fn try_take(&self, indices: &Array, axis: isize) -> Result<Array> {
        let axis = resolve_axis(axis, self.ty()?.rank())?;
        if !indices.ty()?.dtype().is_int() {
            fail!(DType, "`take` picks by integers, not by {}", indices.ty()?);
        }
        let mut index = vec![Index::step(.., 1); axis];
        index.push(Index::Array(indices.clone()));
        At { array: self, index }.try_get()
    }

    /// For each place of `indices` the element of the same row that its integer names: `result[i, j] =
    /// x[i, indices[i, j]]` for axis 1. The other axes broadcast. Negative integers count from the end, those outside
    /// are clipped. With [`Array::argsort`] this sorts, with `argmax_keep` it finds the largest.
    #[track_caller]
    pub fn take_along_axis(&self, indices: &Array, axis: isize) -> Array {
        checked(self.try_take_along_axis(indices, axis))
    }

    #[track_caller]
    pub(super) fn try_take_along_axis(&self, indices: &Array, axis: isize) -> Result<Array> {
        let (ty, places) = (self.ty()?, indices.ty()?);
        let axis = resolve_axis(axis, ty.rank())?;
        if places.rank() != ty.rank() {
            fail!(Shape, "`take_along_axis` of {ty} wants places with as many axes, not {places}");
        }
        let (size, wanted) = (self.dim(axis as isize), indices.dim(axis as isize));
        let one = Dim::from(1usize);
        let (outer, outer_places) =
            (ty.shape().replaced(axis, one.clone()), places.shape().replaced(axis, one.clone()));
        let Some(common) = broadcast_shapes(&outer, &outer_places) else {
            fail!(Shape, "`take_along_axis` of {ty} at {places}: the axes besides {axis} do not broadcast together");
        };
        let x = broadcast(self, &common.replaced(axis, size.clone())).ok()?;
        let indices = broadcast(&wrapped(indices, &size)?, &common.replaced(axis, wanted)).ok()?;
        if size.constant() == Some(0) {
            if indices.shape().count() == Some(0) {
                return Array::scalar(Scalar::zero(ty.dtype())).try_broadcast_to(indices.shape().clone());
            }
            fail!(Index, "{places} cannot pick places of axis {axis} of {ty}, which has none");
        }
        let others: Vec<usize> = (0..ty.rank()).filter(|a| *a != axis).collect();
        let gather = Gather {
            offset_dims: vec![],
            collapsed_dims: vec![axis],
            operand_batch_dims: others.clone(),
            index_batch_dims: others,
            index_map: vec![axis],
            sizes: vec![one.clone(); ty.rank()].into(),
            bounds: Bounds::Clip,
        };
        let indices = indices.try_reshape(indices.shape().inserted(ty.rank(), one))?;
        apply(gather, &[x, indices])
    }

    /// The gather operation as it is, without wrapping of negative places. See [`Gather`].
    #[track_caller]
    pub fn gather(&self, indices: &Array, gather: Gather) -> Array {
        bind(Op::new(gather), &[self.clone(), indices.clone()])
    }

    /// The scatter operation as it is, without wrapping of negative places. See [`Scatter`].
    #[track_caller]
    pub fn scatter(&self, indices: &Array, updates: &Array, scatter: Scatter) -> Array {
        bind(Op::new(scatter), &[self.clone(), indices.clone(), updates.clone()])
    }

    /// A block of known size whose place is computed: one integer for each axis says where it starts. A block that
    /// would reach outside is moved inside: a start is clamped to between 0 and the last place where the block fits. So a negative
    /// start is 0. It does not count from the end, as it does in [`index`](Array::index) and in JAX.
    ///
    /// ```
    /// # use gradus_core::Array;
    ///
    /// let x = Array::from([10, 11, 12, 13]);
    /// let two_from = |start: i64| x.dynamic_slice(&[Array::from(start)], [2]).to_vec::<i32>();
    /// assert_eq!(two_from(1)?, [11, 12]);
    /// assert_eq!(two_from(9)?, [12, 13]);
    /// assert_eq!(two_from(-1)?, [10, 11]);
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[doc(alias = "dynamic_slice_in_dim")]
    #[track_caller]
    pub fn dynamic_slice(&self, starts: &[Array], sizes: impl IntoShape) -> Array {
        checked(self.try_dynamic_slice(starts, sizes.into_shape()))
    }

    #[track_caller]
    fn try_dynamic_slice(&self, starts: &[Array], sizes: Shape) -> Result<Array> {
        let mut inputs = vec![self.clone()];
        inputs.extend(starts_of(self.ty()?, starts)?);
        apply(DynamicSlice { sizes }, &inputs)
    }

    /// The array with a block replaced whose place is computed. A block that would reach outside is moved inside, as in
    /// [`dynamic_slice`](Array::dynamic_slice): a negative start is 0.
    #[doc(alias = "dynamic_update_index_in_dim")]
    #[doc(alias = "dynamic_update_slice_in_dim")]
    #[track_caller]
    pub fn dynamic_update_slice(&self, update: &Array, starts: &[Array]) -> Array {
        checked(self.try_dynamic_update_slice(update, starts))
    }

    #[track_caller]
    fn try_dynamic_update_slice(&self, update: &Array, starts: &[Array]) -> Result<Array> {
        let mut inputs = vec![self.clone(), update.clone()];
        inputs.extend(starts_of(self.ty()?, starts)?);
        apply(DynamicUpdateSlice {}, &inputs)
    }
}

#[cfg(test)]
mod tests;
