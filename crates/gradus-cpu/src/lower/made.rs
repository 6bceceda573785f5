//! Indices that are made where a window is found: elementwise arithmetic on what is in memory, done for each index vector instead of for a whole array of
//! them before.

use gradus_core::program::{Atom, Program};
use smallvec::SmallVec;

use super::Lower;
use super::indexed::Windows;
use super::scalars::each;
use super::values::{Root, Values};
use super::views::{At, Dims, Mean, Strides, View, row_major};
use crate::error::{Result, error};
use crate::ir::Value;
use crate::size::Size;

/// For each axis of an array, the axis of another that it runs along, if any.
pub(super) type Along = SmallVec<[Option<usize>; 4]>;

/// One component of index vectors, as an array of windows sees it.
#[expect(clippy::large_enum_variant, reason = "there are as many as index vectors have components")]
pub(super) enum Made {
    /// It is in memory, as this operand.
    There(Atom, View),
    /// One number everywhere.
    Number(Atom),
    /// The result of an equation, by its number, of these.
    Computed(usize, Vec<Made>),
}

/// The axis of a dense array of `dims` that each axis of a view of it runs along; none if the view shows a part of it, or turns one axis into several.
pub(super) fn axes_of(view: &View, dims: &[Size]) -> Option<Along> {
    let own = row_major(dims);
    let mut taken: SmallVec<[usize; 4]> = SmallVec::new();
    let mut all = Along::new();
    for (&d, &s) in view.dims.iter().zip(&view.strides) {
        if d == 1 || s == 0 {
            all.push(None);
            continue;
        }
        let axis = (0..dims.len()).find(|q| own[*q] == s && dims[*q] == d && !taken.contains(q))?;
        taken.push(axis);
        all.push(Some(axis));
    }
    (view.base == At::start()).then_some(all)
}

impl Windows<'_> {
    /// The axis of the indices that each axis of an array of windows runs along.
    fn along(&self, rank: usize) -> Along {
        let outer: SmallVec<[usize; 4]> = self.outer(rank).collect();
        (0..rank).map(|a| outer.iter().position(|o| *o == a)).collect()
    }
}

impl Lower {
    /// The components of the index vectors of an array of windows of `dims`; what is in memory is brought there.
    pub(super) fn index_components(
        &mut self,
        p: &Program,
        values: &Values,
        indices: Atom,
        windows: &Windows<'_>,
        dims: &[Size],
    ) -> Result<Vec<Made>> {
        if let Root::Value(r) = values.origin(indices).root
            && self.frame.made.contains_key(&(r as usize))
        {
            return Ok(vec![self.made(p, values, indices, &windows.along(dims.len()), dims)?]);
        }
        let view = self.memory(p, values, indices)?;
        Ok(windows.components(&view, dims).into_iter().map(|view| Made::There(indices, view)).collect())
    }

    fn made(&mut self, p: &Program, values: &Values, a: Atom, along: &Along, dims: &[Size]) -> Result<Made> {
        let o = values.origin(a);
        if let Root::Value(r) = o.root
            && let Some(&i) = self.frame.made.get(&(r as usize))
        {
            let axes = axes_of(&o.view, &values.dims[r as usize]);
            let axes = axes.ok_or_else(|| error!(Rule, "indices are seen in parts"))?;
            let along: Along = along.iter().map(|axis| axis.and_then(|axis| axes[axis])).collect();
            let operands = p.operands(&p.equations()[i]).iter();
            let operands = operands.map(|x| self.made(p, values, *x, &along, dims)).collect::<Result<_>>()?;
            return Ok(Made::Computed(i, operands));
        }
        if matches!(o.root, Root::Constant(c) if p.constants()[c as usize].splat_value().is_some()) {
            return Ok(Made::Number(a));
        }
        let view = self.memory(p, values, a)?;
        let seen =
            |s: &[Size]| -> Strides { along.iter().map(|axis| axis.map_or(Size::ZERO, |axis| s[axis])).collect() };
        let mean = Mean { strides: seen(&view.mean.strides), ..view.mean.clone() };
        let (dims, strides) = (Dims::from(dims), seen(&view.strides));
        Ok(Made::There(a, View { dims, strides, mean, ..view }))
    }

    /// A component where a window is found. `read` is given the number of each view among those in memory.
    pub(super) fn component(
        &mut self,
        p: &Program,
        values: &Values,
        made: &Made,
        number: &mut usize,
        read: &mut dyn FnMut(&mut Lower, usize, &View) -> Value,
    ) -> Result<Value> {
        match made {
            Made::There(_, view) => {
                *number += 1;
                Ok(read(self, *number - 1, view))
            }
            Made::Number(a) => self.splat_of(p, values, *a).ok_or_else(|| error!(Rule, "no number")),
            Made::Computed(i, operands) => {
                let e = &p.equations()[*i];
                let args = operands.iter().map(|x| self.component(p, values, x, number, read));
                let args = args.collect::<Result<Vec<Value>>>()?;
                let args: Vec<&[Value]> = args.iter().map(std::slice::from_ref).collect();
                let result = each(&mut self.emitter, (p, e), &args, 1);
                result.first().copied().ok_or_else(|| error!(Rule, "`{}` has no scalar form", e.op().name()))
            }
        }
    }
}

impl Made {
    /// What it takes from memory, in the order of its numbers.
    pub fn there(&self) -> Vec<(Atom, &View)> {
        match self {
            Made::There(a, view) => vec![(*a, view)],
            Made::Number(_) => Vec::new(),
            Made::Computed(_, operands) => operands.iter().flat_map(Made::there).collect(),
        }
    }
}
