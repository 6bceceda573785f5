//! What is known of each value of a block before code is written: its dimensions, its scalar type, and which array its
//! elements really are (views are looked through).

use gradus_core::primitives::Op;
use gradus_core::primitives::control::{Name, StopGradient};
use gradus_core::primitives::index::DynamicSlice;
use gradus_core::primitives::shaping::{Broadcast, Permute, Reshape, Reverse, Slice};
use gradus_core::primitives::windows::Windows;
use gradus_core::program::{Atom, Program, ValueId};
use gradus_core::{DType, Type};

use super::content::in_lanes;
use super::views::{Dims, View, count, is_empty};
use crate::ir::meaning::Tag;
use crate::ir::{Buffer, Ty, Value};
use crate::size::Size;

/// Arrays of at most so many elements live in scalars, unless told otherwise or lanes work on them.
pub const SMALL: usize = 16;
/// At a point of a nest so many times more are unrolled: there a scalar is a vector register or a place in the first cache,
/// and an array that is not unrolled leaves the nest for memory.
const MORE_AT_POINTS: usize = 8;
/// Operands of unrolled operations have at most so many.
pub(super) const SMALL_OPERAND: usize = 36;
/// Constants of at most so many elements are written into the code where single elements are wanted.
pub(super) const SMALL_CONSTANT: usize = 64;

/// Stands for the memory of an array that has none yet.
pub(super) const NOWHERE: Buffer = Buffer(u32::MAX);

/// How an array is there when code is written.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "most of them are views")]
pub(super) enum Repr {
    /// One scalar for each element, in row-major order.
    Elements(Vec<Value>),
    /// In memory.
    Memory(View),
}

/// An array that has elements of its own: an input, a constant, or a result that is not a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Root {
    Value(u32),
    Constant(u32),
}

/// A value seen as a view of a root.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub root: Root,
    /// Strides in the root's memory. Where the root has none yet, as if it were dense.
    pub view: View,
}

/// The dimensions of a type.
pub(super) fn dims_of(ty: &Type) -> Dims {
    ty.shape().iter().map(Size::of).collect()
}

/// How elements of a dtype are stored. Half floats are their bits; what computes with them widens them itself.
pub(super) fn storage(dtype: DType) -> Option<Ty> {
    if dtype == DType::C64 { Some(Ty::U64) } else { Ty::holding(dtype) }
}

/// What an operation that only moves elements shows of its operand; none if strides cannot say it, or it does more.
pub(super) fn view_of(op: &Op, x: &View, dims: &[Size]) -> Option<View> {
    if let Some(b) = op.downcast::<Broadcast>() {
        return Some(x.broadcast(dims, &b.axes));
    }
    if let Some(p) = op.downcast::<Permute>() {
        return Some(x.permuted(&p.axes));
    }
    if let Some(r) = op.downcast::<Reverse>() {
        return Some(x.reversed(&r.axes));
    }
    if let Some(s) = op.downcast::<Slice>() {
        let start: Dims = s.start.iter().map(Size::of).collect();
        return Some(x.sliced(&start, dims, &s.step));
    }
    if let Some(w) = op.downcast::<Windows>() {
        return Some(x.windows(&w.axes, &w.strides, &w.dilations, dims));
    }
    if op.is::<Reshape>() {
        return x.reshaped(dims);
    }
    is_mark(op).then(|| x.clone())
}

/// Whether an operation only moves elements, so that [`view_of`] is asked.
pub(super) fn moves(op: &Op) -> bool {
    op.is::<Broadcast>()
        || op.is::<Permute>()
        || op.is::<Reverse>()
        || op.is::<Slice>()
        || op.is::<Windows>()
        || op.is::<Reshape>()
        || is_mark(op)
}

/// Whether an operation only says something to transformations.
pub(super) fn is_mark(op: &Op) -> bool {
    op.is::<StopGradient>() || op.is::<Name>()
}

/// The root and view of every value and constant of a block.
pub(super) struct Values {
    /// Arrays of at most so many elements live in scalars.
    pub small: usize,
    /// At most so many elements are unrolled at a point of a nest.
    pub inside: usize,
    pub dims: Vec<Dims>,
    pub types: Vec<Option<Ty>>,
    pub origins: Vec<Origin>,
    pub constants: Vec<(Dims, Option<Ty>)>,
    pub constant_origins: Vec<Origin>,
    /// The small values on which lanes work.
    lanes: Vec<bool>,
    /// The tag of the first value; those of the others follow, then those of constants.
    first: Tag,
}

impl Values {
    /// `inputs`: how the inputs are there; `first`: the first of as many tags as there are values and constants.
    pub fn new(p: &Program, inputs: &[Repr], small: usize, first: Tag) -> Values {
        let mut v = Values {
            small,
            inside: small * MORE_AT_POINTS,
            dims: Vec::with_capacity(p.value_count()),
            types: Vec::with_capacity(p.value_count()),
            origins: Vec::with_capacity(p.value_count()),
            constants: Vec::new(),
            constant_origins: Vec::new(),
            lanes: in_lanes(p, small),
            first,
        };
        for (i, c) in p.constants().iter().enumerate() {
            let dims = dims_of(c.ty());
            let view = match c.splat_value() {
                // One number in every place.
                Some(_) => View::repeated(NOWHERE, &dims),
                None => View::dense(NOWHERE, &dims),
            };
            v.constants.push((dims, Ty::holding(c.ty().dtype())));
            v.constant_origins.push(Origin { root: Root::Constant(i as u32), view });
        }
        for i in 0..p.value_count() {
            let ty = p.ty(ValueId::new(i));
            let dims = dims_of(ty);
            let view = match inputs.get(i) {
                Some(Repr::Memory(view)) => view.clone(),
                _ => View::dense(NOWHERE, &dims),
            };
            v.types.push(Ty::holding(ty.dtype()));
            v.dims.push(dims);
            v.origins.push(Origin { root: Root::Value(i as u32), view });
        }
        for e in p.equations() {
            if e.results().len() != 1 {
                continue;
            }
            let r = e.result().index();
            // A window of an array in memory lies in it; small ones are read at once, and those of 16 bytes an element copied.
            let moved = storage(p.ty(e.result()).dtype()).is_some();
            if e.op().is::<DynamicSlice>() && !v.in_scalars(e.result().into()) && moved {
                let from = v.origin(p.operands(e)[0]).view.clone();
                v.origins[r].view.strides = from.strides;
                v.origins[r].view.mean.strides = from.mean.strides;
            }
            if !moves(e.op()) {
                continue;
            }
            let from = v.origin(p.operands(e)[0]).clone();
            // Empty arrays have no places to get wrong; they stay as they are.
            if !is_empty(&v.dims[r])
                && let Some(view) = view_of(e.op(), &from.view, &v.dims[r])
            {
                v.origins[r] = Origin { root: from.root, view };
            }
        }
        v
    }

    /// What a value is called in memory.
    pub fn tag(&self, v: usize) -> Tag {
        Tag(self.first.0 + v as u32)
    }

    /// What a constant is called in memory.
    pub fn constant_tag(&self, c: usize) -> Tag {
        Tag(self.first.0 + (self.dims.len() + c) as u32)
    }

    pub fn dims(&self, a: Atom) -> &Dims {
        match a.value() {
            Some(v) => &self.dims[v.index()],
            None => &self.constants[constant_index(a)].0,
        }
    }

    pub fn ty(&self, a: Atom) -> Option<Ty> {
        match a.value() {
            Some(v) => self.types[v.index()],
            None => self.constants[constant_index(a)].1,
        }
    }

    pub fn origin(&self, a: Atom) -> &Origin {
        match a.value() {
            Some(v) => &self.origins[v.index()],
            None => &self.constant_origins[constant_index(a)],
        }
    }

    /// Whether lanes work on an array that is small enough for scalars.
    pub fn in_lanes(&self, a: Atom) -> bool {
        a.value().is_some_and(|v| self.lanes[v.index()])
    }

    /// Whether lanes work on the array that a small one shows.
    pub fn shows_lanes(&self, a: Atom) -> bool {
        matches!(self.origin(a).root, Root::Value(r) if self.lanes[r as usize])
    }

    /// Whether an array lives in scalars, if its type has any.
    pub fn in_scalars(&self, a: Atom) -> bool {
        count(self.dims(a)).known().is_some_and(|n| (1..=self.small).contains(&n)) && !self.in_lanes(a)
    }

    /// Whether a value is a view of another.
    pub fn is_view(&self, v: usize) -> bool {
        self.origins[v].root != Root::Value(v as u32)
    }
}

/// The index of a constant atom.
pub(super) fn constant_index(a: Atom) -> usize {
    a.constant_index().unwrap_or_default()
}
