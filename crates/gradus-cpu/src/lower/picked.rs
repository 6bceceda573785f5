//! Arrays that only picks of windows read: they lie as the picks go through them, the elements of a window side by side.
//!
//! A nest stores an array as its own loops run, with what each point has apart. Where windows of it are picked for a larger result, every element is read more often
//! than it is written, and from places that are data: what a window has must be one run then.

use gradus_core::primitives::index::Gather;
use gradus_core::program::Program;
use rustc_hash::FxHashMap;

use super::Lower;
use super::fusion::{Class, Cluster, FusionPlan};
use super::values::{NOWHERE, Root, Values, moves};
use super::views::{At, Dims, Strides, View, count, row_major};
use crate::error::Result;
use crate::size::Size;

/// Windows of fewer elements are in few lines wherever these lie.
const RUN: usize = 8;

impl Lower {
    /// Says where such arrays go, if a nest makes them.
    pub(super) fn place_picked(&mut self, p: &Program, values: &Values, plan: &FusionPlan) -> Result<()> {
        if !p.equations().iter().any(|e| e.op().is::<Gather>()) {
            return Ok(());
        }
        let made_by: FxHashMap<usize, usize> =
            p.equations().iter().enumerate().flat_map(|(i, e)| e.results().map(move |r| (r.index(), i))).collect();
        for cluster in &plan.clusters {
            for &i in &cluster.members {
                let e = &p.equations()[i];
                if !e.op().is::<Gather>() {
                    continue;
                }
                let o = values.origin(p.operands(e)[0]);
                let Root::Value(r) = o.root else { continue };
                let (r, dims) = (r as usize, &values.dims[r as usize]);
                let is_whole = o.view.buffer == NOWHERE && o.view.is_dense() && o.view.base == At::start();
                let reads =
                    |i: &usize| p.operands(&p.equations()[*i]).iter().filter(|a| values.origin(**a).root == o.root);
                let once = cluster.members.iter().flat_map(reads).count() == 1;
                let alone = self.frame.uses.get(&o.root) == Some(&1) && once;
                let by_nest = made_by
                    .get(&r)
                    .is_some_and(|maker| plan.classes[*maker] == Class::Point && !moves(p.equations()[*maker].op()));
                let free = ![&self.frame.wanted, &self.frame.laid].iter().any(|there| there.contains_key(&r));
                if !(is_whole && o.view.dims == *dims && alone && by_nest && plan.kept[r] && free) {
                    continue;
                }
                let Some(strides) = self.as_picked(p, values, plan, cluster, i) else { continue };
                if strides != row_major(dims) || plan.apart[r] {
                    let view = View { strides, ..View::dense(self.scratch(p, r)?, dims).of(values.tag(r)) };
                    self.frame.laid.insert(r, view);
                    self.frame.picked.insert(r);
                }
            }
        }
        Ok(())
    }

    /// The strides of an array whose windows are runs in the order in which the array of windows, which an equation makes, is stored. None if that does not go along windows,
    /// or has fewer elements.
    fn as_picked(
        &self,
        p: &Program,
        values: &Values,
        plan: &FusionPlan,
        cluster: &Cluster,
        i: usize,
    ) -> Option<Strides> {
        let e = &p.equations()[i];
        let gather = e.op().downcast::<Gather>()?;
        let (v, dims) = (e.result().index(), values.dims(p.operands(e)[0]));
        let rows = gather.operand_batch_dims.is_empty() && gather.index_map.len() == gather.collapsed_dims.len();
        if !rows || gather.index_map.iter().any(|a| !gather.collapsed_dims.contains(a)) {
            return None;
        }
        let windows = &values.dims[v];
        let members = cluster.members.iter().flat_map(|i| p.equations()[*i].results()).map(|w| w.index());
        let there = match members.filter(|w| plan.kept[*w]).find(|w| values.dims[*w] == *windows) {
            Some(w) if self.frame.laid.contains_key(&w) => self.frame.laid[&w].strides.clone(),
            Some(w) if plan.apart[w] => return None,
            _ => row_major(windows),
        };
        let inside: Vec<usize> = (0..dims.len()).filter(|a| !gather.collapsed_dims.contains(a)).collect();
        let along = |a: usize| inside.iter().position(|b| *b == a).map(|k| there[gather.offset_dims[k]]);
        let run: Size = gather.offset_dims.iter().map(|a| windows[*a]).product();
        let is_run = inside.iter().any(|a| dims[*a] != 1 && along(*a) == Some(Size::ONE)) && run.guess() >= RUN;
        if !is_run || count(windows).guess() < count(dims).guess() {
            return None;
        }
        let mut order = gather.collapsed_dims.clone();
        let mut shown = inside.clone();
        shown.sort_by_key(|a| std::cmp::Reverse(along(*a).map_or(0, Size::guess)));
        order.extend(shown);
        let turned: Dims = order.iter().map(|a| dims[*a]).collect();
        let mut strides = row_major(&turned);
        for (a, s) in order.into_iter().zip(strides.clone()) {
            strides[a] = s;
        }
        Some(strides)
    }
}
