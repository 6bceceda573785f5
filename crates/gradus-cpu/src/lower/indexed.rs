//! Arrays that are read or written at places which are data: where the windows of a gather or scatter lie, and how every start is held in range, so
//! that no place can be outside of its buffer.

use gradus_core::DType;
use gradus_core::primitives::index::{Bounds, Gather, Scatter};
use gradus_core::program::{Equation, Program};
use gradus_core::types::Scalar;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::emit::Emitter;
use super::fusion::lead;
use super::values::{Repr, Values};
use super::views::{Mean, Strides, View, is_empty, offsets};
use super::{Lower, bits_of};
use crate::error::Result;
use crate::ir::meaning::Meaning;
use crate::ir::{Op, Ty, Value};
use crate::size::Size;

/// Which axes are which: of an operand, of indices `[..., k]`, and of an array of windows, one for each index vector.
pub(super) struct Windows<'a> {
    /// Axes of the array of windows that run inside a window.
    inside: &'a [usize],
    /// Axes of the operand that windows do not show: those of size 1, and those that run with axes of the indices.
    dropped: &'a [usize],
    operand_batch: &'a [usize],
    index_batch: &'a [usize],
    /// The axis of the operand that each component of an index vector counts along.
    map: &'a [usize],
}

/// Starts of a window, each held in range, and whether all were in range as they came.
pub(super) struct Starts {
    places: SmallVec<[Value; 2]>,
    /// Nothing: it does not matter.
    within: Option<Value>,
}

impl<'a> From<&'a Gather> for Windows<'a> {
    fn from(g: &'a Gather) -> Windows<'a> {
        Windows {
            inside: &g.offset_dims,
            dropped: &g.collapsed_dims,
            operand_batch: &g.operand_batch_dims,
            index_batch: &g.index_batch_dims,
            map: &g.index_map,
        }
    }
}

impl<'a> From<&'a Scatter> for Windows<'a> {
    fn from(s: &'a Scatter) -> Windows<'a> {
        Windows {
            inside: &s.update_window_dims,
            dropped: &s.inserted_dims,
            operand_batch: &s.operand_batch_dims,
            index_batch: &s.index_batch_dims,
            map: &s.index_map,
        }
    }
}

impl Windows<'_> {
    /// The axes of the array of windows that run over index vectors.
    pub(super) fn outer(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        (0..rank).filter(|a| !self.inside.contains(a))
    }

    /// Whether windows leave out this axis of the operand.
    fn hides(&self, axis: usize) -> bool {
        self.dropped.contains(&axis) || self.operand_batch.contains(&axis)
    }

    /// The size of a window along each axis of an operand of this rank, if the array of windows has these dimensions.
    pub(super) fn sizes(&self, rank: usize, dims: &[Size]) -> SmallVec<[Size; 4]> {
        let mut inside = self.inside.iter().map(|a| dims[*a]);
        (0..rank).map(|a| if self.hides(a) { None } else { inside.next() }.unwrap_or(Size::ONE)).collect()
    }

    /// The axes of the operand that may be empty for all that the type rule says: those in which windows have size 1, and which they do not show.
    pub(super) fn dropped(&self) -> impl Iterator<Item = usize> + '_ {
        self.dropped.iter().copied()
    }

    /// The room that each start has.
    pub(super) fn rooms(&self, x: &[Size], sizes: &[Size]) -> SmallVec<[Size; 2]> {
        self.map.iter().map(|a| x[*a] - sizes[*a]).collect()
    }

    /// Whether every window certainly finds a place, so that a start can be held in range.
    pub(super) fn fit(&self, x: &[Size], sizes: &[Size]) -> bool {
        (0..x.len()).all(|a| self.operand_batch.contains(&a) || (x[a] - sizes[a]).at_least(0))
    }

    /// Whether the first `n` elements of an array of windows in row-major order are one for each index vector, and what is behind each lies inside a
    /// window: then a point has one index vector, and they go in the same order.
    pub(super) fn are_points(&self, dims: &[Size], n: Size) -> bool {
        let Some(l) = lead(dims, n) else { return false };
        let runs = |a: usize| dims[a] == 1 || self.inside.contains(&a) == (a >= l);
        (0..dims.len()).all(runs) && self.outer(dims.len()).map(|a| dims[a]).product::<Size>() == n
    }

    /// The operand as an array of windows of `dims` sees it, every window at the first place.
    pub(super) fn operand(&self, x: &View, dims: &[Size]) -> View {
        let shown: SmallVec<[usize; 4]> = (0..x.dims.len()).filter(|a| !self.hides(*a)).collect();
        self.seen(x, dims, |axis, s| match axis {
            Ok(inside) => s[shown[inside]],
            Err(outer) => {
                let batch = self.index_batch.iter().position(|b| *b == outer);
                batch.map_or(Size::ZERO, |k| s[self.operand_batch[k]])
            }
        })
    }

    /// One component of the index vectors as an array of windows of `dims` sees it.
    fn component(&self, indices: &View, c: usize, dims: &[Size]) -> View {
        let last = indices.dims.len() - 1;
        let mut view = self.seen(indices, dims, |axis, s| axis.map_or_else(|outer| s[outer], |_| Size::ZERO));
        view.base = view.base.further(indices.strides[last] * c);
        view.mean.base = view.mean.base.further(indices.mean.strides[last] * c);
        view
    }

    /// A view with the axes of the array of windows; `stride` says it of the axis of this number inside of windows, or over index vectors.
    fn seen(
        &self,
        x: &View,
        dims: &[Size],
        stride: impl Fn(std::result::Result<usize, usize>, &[Size]) -> Size,
    ) -> View {
        let strides = |s: &[Size]| -> Strides {
            let (mut inside, mut outer) = (0, 0);
            let along = (0..dims.len()).map(|a| {
                let count = if self.inside.contains(&a) { &mut inside } else { &mut outer };
                *count += 1;
                let number = *count - 1;
                stride(if self.inside.contains(&a) { Ok(number) } else { Err(number) }, s)
            });
            along.collect()
        };
        let mean = Mean { strides: strides(&x.mean.strides), ..x.mean.clone() };
        View { buffer: x.buffer, base: x.base.clone(), dims: dims.into(), strides: strides(&x.strides), mean }
    }

    /// The components of the index vectors, as the array of windows sees them.
    pub(super) fn components(&self, indices: &View, dims: &[Size]) -> Vec<View> {
        (0..self.map.len()).map(|c| self.component(indices, c, dims)).collect()
    }

    /// The operand as the windows see it, each where its starts say.
    pub(super) fn started(&self, x: &View, seen: &View, starts: &Starts) -> View {
        let mut view = seen.clone();
        for (a, place) in self.map.iter().zip(&starts.places) {
            view.base = view.base.plus(*place, x.strides[*a]);
            view.mean.base = view.mean.base.plus(*place, x.mean.strides[*a]);
        }
        view
    }
}

/// A whole number as an `i64`; what only `u64` can hold is beyond every array, and stays so.
pub(super) fn as_place(e: &mut Emitter, index: Value) -> Value {
    if e.ty(index) != Ty::U64 {
        return e.convert(index, Ty::I64);
    }
    let top = e.constant(Ty::U64, i64::MAX as u64);
    let held = e.op(Op::Min, &[index, top]);
    e.op(Op::Convert(Ty::I64), &[held])
}

/// A place between 0 and `room`, which is not negative.
pub(super) fn held(e: &mut Emitter, place: Value, room: Size) -> Value {
    let (zero, top) = (e.int(0), e.size(room));
    let place = e.op(Op::Max, &[place, zero]);
    let place = e.op(Op::Min, &[place, top]);
    e.ranges().below(place, room + 1i64);
    place
}

/// The starts of a window. `asked`: whether it matters that one was out of range.
pub(super) fn starts(e: &mut Emitter, vector: &[Value], rooms: &[Size], asked: bool) -> Starts {
    let mut all = Starts { places: SmallVec::new(), within: None };
    for (index, room) in vector.iter().zip(rooms) {
        let index = as_place(e, *index);
        let place = held(e, index, *room);
        if asked {
            let same = e.op(Op::Eq, &[index, place]);
            all.within = Some(all.within.map_or(same, |w| e.op(Op::And, &[w, same])));
        }
        all.places.push(place);
    }
    all
}

/// The starts of a window that is left out if one is out of range: then it does not matter where it would be.
pub(super) fn starts_or_none(e: &mut Emitter, vector: &[Value], rooms: &[Size]) -> Starts {
    let mut all = Starts { places: SmallVec::new(), within: None };
    for (index, room) in vector.iter().zip(rooms) {
        let index = as_place(e, *index);
        // What is negative is beyond all room if it is read without its sign.
        let (number, end) = (e.op(Op::Bitcast(Ty::U64), &[index]), e.size(*room + 1i64));
        let end = e.op(Op::Bitcast(Ty::U64), &[end]);
        let inside = e.op(Op::Lt, &[number, end]);
        let zero = e.int(0);
        let place = e.op(Op::Select, &[inside, index, zero]);
        e.ranges().below(place, *room + 1i64);
        all.within = Some(all.within.map_or(inside, |w| e.op(Op::And, &[w, inside])));
        all.places.push(place);
    }
    all
}

impl Starts {
    /// One number where all starts were in range, the other elsewhere.
    pub(super) fn choose(&self, e: &mut Emitter, there: Value, elsewhere: Value) -> Value {
        self.within.map_or(there, |within| e.op(Op::Select, &[within, there, elsewhere]))
    }
}

/// What a gather needs besides its operands.
pub(super) struct Picking<'a> {
    pub windows: Windows<'a>,
    pub rooms: SmallVec<[Size; 2]>,
    /// What stands for windows out of range, if not the nearest in range: its bits.
    pub filling: Option<u64>,
}

impl<'a> Picking<'a> {
    pub fn new(gather: &'a Gather, x: &[Size], dtype: DType) -> Picking<'a> {
        let windows = Windows::from(gather);
        let rooms = windows.rooms(x, &sizes(gather));
        let filling = match dtype {
            DType::Bool => Scalar::Bool(false),
            d if d.is_inexact() => Scalar::F64(f64::NAN).cast(d),
            d if d.is_signed_int() => Scalar::lowest(d),
            d => Scalar::highest(d),
        };
        Picking { windows, rooms, filling: (gather.bounds == Bounds::Fill).then(|| bits_of(filling)) }
    }

    /// The starts of a window.
    pub fn starts(&self, e: &mut Emitter, vector: &[Value]) -> Starts {
        starts(e, vector, &self.rooms, self.filling.is_some())
    }

    /// What is there, or what stands for a window out of range.
    pub fn or_filling(&self, e: &mut Emitter, starts: &Starts, there: Value) -> Value {
        let Some(filling) = self.filling else { return there };
        let filling = e.constant(e.ty(there), filling);
        starts.choose(e, there, filling)
    }
}

/// The size of a gather's windows along each axis of its operand.
fn sizes(gather: &Gather) -> SmallVec<[Size; 4]> {
    gather.sizes.iter().map(Size::of).collect()
}

/// Whether the windows of a gather can be read by code: those out of range are moved, which the type rule sees to, or each certainly has a place to
/// be moved to.
pub(super) fn is_held(gather: &Gather, x: &[Size]) -> bool {
    gather.bounds == Bounds::Clip || Windows::from(gather).fit(x, &sizes(gather))
}

/// Whether a gather is one of few elements, which live in scalars.
pub(super) fn is_small_gather(p: &Program, values: &Values, e: &Equation, gather: &Gather) -> bool {
    let (r, operands) = (e.result().index(), p.operands(e));
    values.types[r].is_some()
        && values.in_scalars(e.result().into())
        && operands.iter().all(|a| !is_empty(values.dims(*a)))
        && is_held(gather, values.dims(operands[0]))
}

impl Lower {
    /// A gather of few elements, read one after the other.
    pub(super) fn small_gather(&mut self, p: &Program, values: &Values, e: &Equation, gather: &Gather) -> Result<()> {
        let (v, operands) = (e.result().index(), p.operands(e));
        let x = self.memory(p, values, operands[0])?;
        let picking = Picking::new(gather, values.dims(operands[0]), p.ty(operands[0]).dtype());
        let vectors = self.elements(p, values, operands[1])?;
        let dims = values.dims[v].clone();
        let seen = picking.windows.operand(&x, &dims);
        // Which index vector each element belongs to, and where in its window it is.
        let order = View::dense(x.buffer, values.dims(operands[1]));
        let first = picking.windows.component(&order, 0, &dims);
        let vector_of = offsets(&dims, &first.strides).into_iter().map(|at| at.known().unwrap_or(0));
        let places = offsets(&dims, &seen.strides).into_iter().zip(offsets(&dims, &seen.mean.strides));
        let mut starts: FxHashMap<usize, Starts> = FxHashMap::default();
        let mut elements = Vec::new();
        for (at, (place, number)) in vector_of.zip(places) {
            let e = &mut self.emitter;
            let vector = &vectors[at..at + picking.rooms.len()];
            let starts = starts.entry(at).or_insert_with(|| picking.starts(e, vector));
            let window = picking.windows.started(&x, &seen, starts);
            let meaning = Meaning::of(window.mean.tag, window.mean.base.further(number));
            let there = e.load(window.buffer, window.base.further(place), meaning);
            elements.push(picking.or_filling(e, starts, there));
        }
        self.frame.reprs[v] = Some(Repr::Elements(elements));
        Ok(())
    }
}
