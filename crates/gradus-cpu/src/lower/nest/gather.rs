//! Gathers at the points of a nest: an element is read where an index vector says, which is made at the same point or read from memory.

use gradus_core::primitives::index::Gather;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Group, Nest, leading};
use crate::error::{Result, error};
use crate::ir::Value;
use crate::lower::Lower;
use crate::lower::emit::cost;
use crate::lower::fusion::{Level, is_at_points};
use crate::lower::indexed::{Picking, Starts, Windows};
use crate::lower::made::Made;
use crate::lower::views::{View, offsets};
use crate::size::Size;

/// Runs of so many elements are read as such.
const SHORTEST_RUN: usize = 4;
/// So are shorter ones where little else is done, at most so many nanoseconds for each: few lanes of a vector take as long as all.
const SHORTEST_COPY: usize = 3;
const LITTLE: f32 = 0.3;

impl Nest<'_, '_> {
    /// Whether an operand is read at places of its own: what a gather picks from, and index vectors that points do not have one each of.
    pub(super) fn is_picked(&self, i: usize, slot: usize) -> bool {
        let at_points = is_at_points(self.p, self.values, &self.plan.points, i, slot);
        self.p.equations()[i].op().is::<Gather>() && !at_points
    }

    fn picking<'c>(&self, i: usize, gather: &'c Gather) -> Picking<'c> {
        let x = self.operands(i)[0];
        Picking::new(gather, self.values.dims(x), self.p.ty(x).dtype())
    }

    /// A view with the axes of a result along the cut dimensions: strides of places, and of elements.
    fn along(&self, view: &View, at: Level) -> [Vec<Size>; 2] {
        let l = leading(&view.dims, self.points_at(at));
        [&view.strides, &view.mean.strides].map(|s| self.strides(s, &view.dims, l, at))
    }

    /// How what a gather picks from is walked along the cut dimensions if all windows are at one place, and how its index vectors are: of each, strides of places
    /// and of elements.
    fn walks(&self, i: usize) -> Option<(Vec<Vec<Size>>, Vec<Vec<Size>>)> {
        let gather = self.p.equations()[i].op().downcast::<Gather>()?;
        let (windows, at) = (self.picking(i, gather).windows, self.works_at(i));
        let dims = &self.values.dims[self.result(i)];
        let x = self.real_view(self.operands(i)[0]);
        let indices = match self.made.get(&i) {
            Some(made) => made.iter().flat_map(Made::there).flat_map(|(_, view)| self.along(view, at)).collect(),
            None => {
                let components = windows.components(&self.real_view(self.operands(i)[1]), dims);
                components.iter().flat_map(|view| self.along(view, at)).collect()
            }
        };
        Some((self.along(&windows.operand(&x, dims), at).into(), indices))
    }

    /// How the operands of a gather that are read at places of their own are walked.
    pub(super) fn picks(&self, i: usize) -> Vec<Vec<Size>> {
        let Some((mut all, indices)) = self.walks(i) else { return Vec::new() };
        if self.is_picked(i, 1) {
            all.extend(indices);
        }
        all
    }

    /// Whether a gather reads runs along the innermost loop: elements side by side, which one index vector tells for all. So short a run is still better in
    /// lanes than elements from everywhere.
    pub(super) fn picks_runs(&self, groups: &[Group]) -> bool {
        let e = |i: &usize| &self.p.equations()[*i];
        let computing = self.cluster.members.iter().filter(|i| !e(i).op().is::<Gather>()).map(|i| cost(self.p, e(i)));
        let shortest = if computing.sum::<f32>() <= LITTLE { SHORTEST_COPY } else { SHORTEST_RUN };
        let Some(innermost) = groups.last().filter(|g| g.extent.guess() >= shortest) else { return false };
        let along = |strides: &Vec<Size>| strides[innermost.inner];
        let is_run = |i: &usize| {
            self.walks(*i).is_some_and(|(x, indices)| along(&x[0]) == 1 && indices.iter().all(|s| along(s) == 0))
        };
        self.cluster.members.iter().any(is_run)
    }

    /// The elements of a gather at the current point.
    pub(super) fn gather(&mut self, i: usize, gather: &Gather) -> Result<Vec<Value>> {
        let picking = self.picking(i, gather);
        let (at, dims) = (self.works_at(i), self.values.dims[self.result(i)].clone());
        let l = leading(&dims, self.points_at(at));
        let x = self.picked(i, 0)?;
        let seen = picking.windows.operand(&x, &dims);
        let [strides, elements] = self.along(&seen, at);
        let inside = |s: &[Size]| offsets(&dims[l..], &s[l..]);
        let vectors = self.index_vectors(i, l)?;
        let places = inside(&seen.strides).into_iter().zip(inside(&seen.mean.strides));
        // Elements of one window have the same starts.
        let mut starts: FxHashMap<SmallVec<[Value; 2]>, Starts> = FxHashMap::default();
        let mut out = Vec::with_capacity(vectors.len());
        for (vector, (place, number)) in vectors.into_iter().zip(places) {
            let e = &mut self.lower.emitter;
            let starts = starts.entry(vector).or_insert_with_key(|vector| picking.starts(e, vector));
            let window = picking.windows.started(&x, &seen, starts);
            let place = self.place(&window.base, &strides, place);
            let meaning = self.meaning(window.mean.tag, &window.mean.base, &elements, number);
            let there = self.read(window.buffer, place, meaning);
            out.push(picking.or_filling(&mut self.lower.emitter, starts, there));
        }
        Ok(out)
    }

    /// An operand that is read at places of its own.
    fn picked(&self, i: usize, slot: usize) -> Result<View> {
        let view = self.lower.placed(self.values, self.operands(i)[slot]);
        view.ok_or_else(|| error!(Rule, "an operand of a gather is not in memory"))
    }

    /// The index vector of each element at the current point.
    fn index_vectors(&mut self, i: usize, l: usize) -> Result<Vec<SmallVec<[Value; 2]>>> {
        let (at, dims) = (self.works_at(i), self.values.dims[self.result(i)].clone());
        if !self.is_picked(i, 1) {
            // All elements of a point are of one window.
            let vector: SmallVec<[Value; 2]> = self.operand(i, 1)?.into();
            return Ok(vec![vector; self.inside(self.result(i))]);
        }
        let made = self.made.get(&i).cloned().ok_or_else(|| error!(Rule, "a gather without indices"))?;
        let mut vectors: Vec<SmallVec<[Value; 2]>> = vec![SmallVec::new(); self.inside(self.result(i))];
        for component in made.iter() {
            // What is in memory, for each element of the point.
            let mut read: Vec<Vec<Value>> = Vec::new();
            for (_, view) in component.there() {
                let [strides, elements] = self.along(view, at);
                let inside = |s: &[Size]| offsets(&dims[l..], &s[l..]);
                let places = inside(&view.strides).into_iter().zip(inside(&view.mean.strides));
                let mut all = Vec::with_capacity(vectors.len());
                for (place, number) in places {
                    let place = self.place(&view.base, &strides, place);
                    let meaning = self.meaning(view.mean.tag, &view.mean.base, &elements, number);
                    all.push(self.read(view.buffer, place, meaning));
                }
                read.push(all);
            }
            for (k, vector) in vectors.iter_mut().enumerate() {
                let there = &mut |_: &mut Lower, number: usize, _: &View| read[number][k];
                vector.push(self.lower.component(self.p, self.values, component, &mut 0, there)?);
            }
        }
        Ok(vectors)
    }

    /// The index vectors of a gather that are no member of the nest, with what is in memory of them brought there.
    pub(super) fn bring_indices(&mut self, i: usize) -> Result<()> {
        let Some(gather) = self.p.equations()[i].op().downcast::<Gather>() else { return Ok(()) };
        let (windows, dims) = (Windows::from(gather), &self.values.dims[self.result(i)]);
        let made = self.lower.index_components(self.p, self.values, self.operands(i)[1], &windows, dims)?;
        self.made.insert(i, made.into());
        Ok(())
    }
}
