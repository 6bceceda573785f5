//! What an index means for an array of a given type: which window of it is cut out, which axes go, where new ones come,
//! and which places are picked by arrays.

use super::{Index, Lookup, wrapped};
use crate::array::Array;
use crate::array::operand::{broadcast, broadcast_shapes};
use crate::array::shaping::apply;
use crate::error::{Error, Result, counted, error, fail};
use crate::primitives::shaping::{Reverse, Slice};
use crate::types::{DType, Decision, Dim, Shape, Type};

/// An index resolved against a type.
pub(super) struct IndexPlan {
    /// The window: a slice of every axis, of which some are read backwards afterwards.
    pub(super) start: Vec<Dim>,
    pub(super) limit: Vec<Dim>,
    pub(super) step: Vec<usize>,
    reversed: Vec<usize>,
    /// Whether the window is the whole array as it stands.
    whole: bool,
    /// Axes at one place each: the window has size 1 there, the result lacks them.
    dropped: Vec<usize>,
    arrays: Vec<(usize, Array)>,
    mask: Option<(usize, Array)>,
    slots: Vec<Slot>,
}

/// An axis of the result.
enum Slot {
    /// An axis of the window.
    Window(usize),
    /// A new one of size 1.
    New,
    /// The axes of the arrays that pick places, or the one of the places that a mask marks.
    Picked,
}

/// A bound of a range as a place of an axis. Outside is moved to the nearest end; where only the call can tell, the
/// bound is taken for inside, which the slice has checked at run time.
fn place(bound: i64, dim: &Dim) -> Dim {
    if bound >= 0 {
        let bound = Dim::from(bound);
        if dim.at_least(&bound) == Decision::No { dim.clone() } else { bound }
    } else {
        let from_end = dim + bound;
        if from_end.at_least(&Dim::from(0usize)) == Decision::No { Dim::from(0usize) } else { from_end }
    }
}

/// The limit of a range, which is not before its start.
fn not_before(start: &Dim, limit: Dim) -> Dim {
    if limit.at_least(start) == Decision::No { start.clone() } else { limit }
}

/// A slice of an axis: start, limit, step, and whether it is read backwards.
fn range(start: Option<i64>, end: Option<i64>, step: i64, dim: &Dim) -> Result<(Dim, Dim, usize, bool)> {
    if step == 0 {
        return Err(
            error!(Index, "a range in steps of 0 never ends").help("steps are positive, or negative to go backwards")
        );
    }
    // A step beyond the axis meets one place, as does a step of its size; arithmetic on the latter cannot overflow.
    let longest = dim.as_usize().map_or(u32::MAX as usize, |d| d.max(1));
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX).min(longest);
    if step > 0 {
        let start = start.map_or_else(|| Dim::from(0usize), |s| place(s, dim));
        let limit = end.map_or_else(|| dim.clone(), |e| place(e, dim));
        let limit = not_before(&start, limit);
        return Ok((start, limit, stride, false));
    }
    // Backwards from `high - 1` down to `low`: `high` is one past the first place, `low` the last that may be met.
    let high =
        start.map_or_else(|| dim.clone(), |s| if s == -1 { dim.clone() } else { place(s.saturating_add(1), dim) });
    let low = match end {
        None => Dim::from(0usize),
        Some(-1) => dim.clone(),
        Some(e) => place(e.saturating_add(1), dim),
    };
    let high = not_before(&low, high);
    if stride == 1 || high == low {
        return Ok((low, high, stride, true));
    }
    // Steps are counted from the high end: the slice starts where the last of them lands.
    let length = &high - &low;
    let steps = (&length - 1usize).floor_div(&Dim::from(stride));
    Ok((&high - steps * stride - 1usize, high, stride, true))
}

impl IndexPlan {
    pub(super) fn new(ty: &Type, index: &[Index]) -> Result<IndexPlan> {
        let shape = ty.shape();
        let rank = shape.rank();
        let (mut used, mut ellipses, mut masks, mut picks) = (0usize, 0usize, 0usize, 0usize);
        for entry in index {
            match entry {
                Index::At(_) | Index::AtDim(_) | Index::Range { .. } | Index::Between { .. } => used += 1,
                Index::NewAxis => {}
                Index::Ellipsis => ellipses += 1,
                Index::Array(a) if a.ty()?.dtype() == DType::Bool => {
                    masks += 1;
                    used += a.rank();
                }
                Index::Array(_) => {
                    picks += 1;
                    used += 1;
                }
            }
        }
        let Some(left) = rank.checked_sub(used) else {
            fail!(Index, "an index of {} for {ty}, which has {rank}", counted(used, "axis"));
        };
        if ellipses > 1 {
            fail!(Index, "an index has {ellipses} ellipses, but only one can stand for the axes that are left");
        }
        if masks > 1 || (masks == 1 && picks > 0) {
            return Err(error!(Index, "an index of {ty} has a bool array beside another array")
                .help("combine bool arrays with `&`, and pick by integers in a second step"));
        }
        let mut plan = IndexPlan {
            start: vec![Dim::from(0usize); rank],
            limit: shape.to_vec(),
            step: vec![1; rank],
            reversed: vec![],
            whole: true,
            dropped: vec![],
            arrays: vec![],
            mask: None,
            slots: vec![],
        };
        // NumPy's rule: the axes of arrays stand where the arrays stood if these are neighbours, otherwise in front.
        // Beside an array, a plain number counts as one; an ellipsis parts them even if it stands for nothing.
        let mut picked: Option<(usize, usize)> = None;
        let mut parted = false;
        let mut axis = 0;
        for (position, entry) in index.iter().enumerate() {
            let one_place = matches!(entry, Index::At(_) | Index::AtDim(_));
            let picks_here = matches!(entry, Index::Array(_)) || (picks + masks > 0 && one_place);
            if picks_here {
                parted |= picked.is_some_and(|(_, last)| last + 1 != position);
                picked = Some((picked.map_or(plan.slots.len(), |(slot, _)| slot), position));
            }
            match entry {
                Index::NewAxis => plan.slots.push(Slot::New),
                Index::Ellipsis => {
                    plan.slots.extend((axis..axis + left).map(Slot::Window));
                    axis += left;
                }
                Index::At(i) => {
                    let dim = shape.get(axis).cloned().unwrap_or_else(|| Dim::from(0usize));
                    let at = if *i < 0 { &dim + *i } else { Dim::from(*i) };
                    plan.drop_axis(ty, axis, at, i, position)?;
                    axis += 1;
                }
                Index::AtDim(at) => {
                    plan.drop_axis(ty, axis, at.clone(), at, position)?;
                    axis += 1;
                }
                Index::Between { start, end } => {
                    let dim = shape.get(axis).cloned().unwrap_or_else(|| Dim::from(0usize));
                    let start = start.clone().unwrap_or_else(|| Dim::from(0usize));
                    let end = end.clone().unwrap_or_else(|| dim.clone());
                    plan.whole &= start.constant() == Some(0) && end == dim;
                    plan.set_axis(axis, start, end, 1);
                    plan.slots.push(Slot::Window(axis));
                    axis += 1;
                }
                Index::Range { start, end, step } => {
                    plan.cut(shape, axis, *start, *end, *step)?;
                    plan.slots.push(Slot::Window(axis));
                    axis += 1;
                }
                Index::Array(a) if a.dtype() == DType::Bool => {
                    for (k, have) in a.shape().iter().enumerate() {
                        if shape.get(axis + k).is_none_or(|want| have.equals(want) == Decision::No) {
                            fail!(
                                Index,
                                "{} cannot mark places of {ty}: axis {k} of it is to fit axis {}",
                                a.ty()?,
                                axis + k
                            );
                        }
                    }
                    plan.mask = Some((axis, a.clone()));
                    axis += a.rank();
                }
                Index::Array(a) => {
                    plan.arrays.push((axis, a.clone()));
                    axis += 1;
                }
            }
        }
        plan.slots.extend((axis..rank).map(Slot::Window));
        if let Some((slot, _)) = picked {
            plan.slots.insert(if parted { 0 } else { slot }, Slot::Picked);
        }
        Ok(plan)
    }

    /// Keeps one place of an axis and drops the axis. `written`: the place as the user wrote it.
    fn drop_axis(
        &mut self,
        ty: &Type,
        axis: usize,
        at: Dim,
        written: &dyn std::fmt::Display,
        position: usize,
    ) -> Result<()> {
        let dim = ty.shape().get(axis).cloned().unwrap_or_else(|| Dim::from(0usize));
        if at.at_least(&Dim::from(0usize)) == Decision::No || dim.greater_than(&at) == Decision::No {
            let place = if position > 0 { format!(" (entry {position} of the index)") } else { String::new() };
            return Err(error!(
                Index,
                "the index {written}{place} is outside axis {axis} of {ty}, which has size {dim}"
            )
            .help(
                "places count from 0, negative ones from the end; an array of places is clipped to the axis instead",
            ));
        }
        self.whole &= dim.constant() == Some(1);
        self.set_axis(axis, at.clone(), at + 1usize, 1);
        self.dropped.push(axis);
        Ok(())
    }

    fn cut(&mut self, shape: &Shape, axis: usize, start: Option<i64>, end: Option<i64>, step: i64) -> Result<()> {
        let dim = shape.get(axis).cloned().unwrap_or_else(|| Dim::from(0usize));
        let (start, limit, stride, backwards) = range(start, end, step, &dim)?;
        if backwards {
            self.reversed.push(axis);
        }
        self.whole &= start.constant() == Some(0) && limit == dim && stride == 1 && !backwards;
        self.set_axis(axis, start, limit, stride);
        Ok(())
    }

    fn set_axis(&mut self, axis: usize, start: Dim, limit: Dim, step: usize) {
        if let (Some(s), Some(l), Some(k)) =
            (self.start.get_mut(axis), self.limit.get_mut(axis), self.step.get_mut(axis))
        {
            (*s, *l, *k) = (start, limit, step);
        }
    }

    pub(super) fn arrays(&self) -> &[(usize, Array)] {
        &self.arrays
    }

    pub(super) fn mask(&self) -> Option<&(usize, Array)> {
        self.mask.as_ref()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether the window has no step: it is one block.
    pub(super) fn is_block(&self) -> bool {
        self.step.iter().all(|s| *s == 1)
    }

    /// The window's elements, every axis still there.
    #[track_caller]
    pub(super) fn window(&self, x: &Array) -> Result<Array> {
        if self.whole {
            return x.clone().ok();
        }
        let slice = Slice { start: self.start.clone(), limit: self.limit.clone(), step: self.step.clone() };
        self.turned(x.through(slice)?)
    }

    /// The window's shape.
    pub(super) fn window_shape(&self) -> Shape {
        let axes = self.start.iter().zip(&self.limit).zip(&self.step);
        axes.map(|((start, limit), step)| (limit - start + (step - 1)).floor_div(&Dim::from(*step))).collect()
    }

    /// Turns the axes that are read backwards: from the array's order to the index's, or back.
    #[track_caller]
    pub(super) fn turned(&self, x: Array) -> Result<Array> {
        if self.reversed.is_empty() { Ok(x) } else { apply(Reverse { axes: self.reversed.clone() }, &[x]) }
    }

    /// The shape of what is read: `window` and, where arrays pick places, their common shape.
    pub(super) fn result_shape(&self, window: &Shape, picked: &Shape) -> Shape {
        let mut dims = Vec::new();
        for slot in &self.slots {
            match slot {
                Slot::Window(axis) => dims.extend(window.get(*axis).cloned()),
                Slot::New => dims.push(Dim::from(1usize)),
                Slot::Picked => dims.extend(picked.iter().cloned()),
            }
        }
        dims.into()
    }

    /// Where the window's axes stand among the picked ones, new axes apart.
    pub(super) fn window_axes(&self, picked_rank: usize) -> Vec<usize> {
        let mut axes = Vec::new();
        let mut at = 0;
        for slot in &self.slots {
            match slot {
                Slot::Window(_) => {
                    axes.push(at);
                    at += 1;
                }
                Slot::New => {}
                Slot::Picked => at += picked_rank,
            }
        }
        axes
    }

    /// The window's axes that the result lacks: those at one place, and those that arrays pick from.
    pub(super) fn collapsed(&self) -> Vec<usize> {
        let mut axes: Vec<usize> =
            self.arrays.iter().map(|(axis, _)| *axis).chain(self.dropped.iter().copied()).collect();
        axes.sort_unstable();
        axes
    }

    /// The size of what is read at each picked place.
    pub(super) fn sizes(&self, window: &Shape) -> Shape {
        let collapsed = self.collapsed();
        let size = |(i, d): (usize, &Dim)| if collapsed.contains(&i) { Dim::from(1usize) } else { d.clone() };
        window.iter().enumerate().map(size).collect()
    }

    /// The arrays that pick places, ready for use.
    #[track_caller]
    pub(super) fn lookup(&self, window: &Array) -> Result<Lookup> {
        let mut shape = Shape::scalar();
        for (_, index) in &self.arrays {
            shape = broadcast_shapes(&shape, index.shape()).ok_or_else(|| self.misfit())?;
        }
        let mut arrays = Vec::with_capacity(self.arrays.len());
        for (axis, index) in &self.arrays {
            arrays.push(broadcast(&wrapped(index, &window.dim(*axis as isize))?, &shape).ok()?);
        }
        Ok(Lookup { axes: self.arrays.iter().map(|(axis, _)| *axis).collect(), arrays, shape })
    }
    #[cold]
    fn misfit(&self) -> Error {
        let types: Vec<String> = self.arrays.iter().filter_map(|(_, a)| a.ty().ok().map(Type::to_string)).collect();
        error!(Index, "arrays that pick places do not broadcast together: {}", types.join(", "))
            .help("shapes are aligned at the end; dimensions must be equal or 1")
    }
}
