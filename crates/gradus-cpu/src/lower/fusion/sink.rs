//! Moves equations into the nests that use them.

use gradus_core::program::Equation;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Class, Cuts, LARGEST_CLUSTER, Level, Planner, at_points, is_at_points, lead, seen_in_place, with_cuts};
use crate::lower::emit::is_expensive;
use crate::lower::values::{Root, moves};
use crate::size::Size;

/// An operand of an equation, by their numbers.
type Use = (usize, usize);

/// Who reads what.
#[derive(Default)]
struct Readers {
    /// The nests' equations that read a value.
    nests: FxHashMap<usize, Vec<Use>>,
    /// Values that are read outside of nests: they stay where they are.
    pinned: FxHashSet<usize>,
}

/// A move of an equation out of its nest.
struct Move {
    home: usize,
    /// Whether its own nest reads it too, and keeps it.
    stays: bool,
    /// The nests that it goes to, with their cuts after that.
    to: Vec<(usize, Cuts)>,
}

impl Planner<'_> {
    /// Moves equations into the nest that alone uses them, and copies cheap ones, so that less goes through memory; only into nests that are `wanted`.
    pub(super) fn sink(&mut self, wanted: fn(&super::Cluster) -> bool) {
        let readers = self.readers();
        for i in (0..self.p.equations().len()).rev() {
            let found = self.may_sink(i, &readers);
            if let Some(found) = found.filter(|m| m.to.iter().all(|(c, _)| wanted(&self.clusters[*c]))) {
                self.move_down(i, found);
            }
        }
    }

    fn readers(&self) -> Readers {
        let mut readers = Readers::default();
        for (i, e) in self.p.equations().iter().enumerate() {
            if self.classes[i] == Class::View {
                continue;
            }
            for (slot, &a) in self.p.operands(e).iter().enumerate() {
                if let Root::Value(r) = self.values.origin(a).root {
                    match self.classes[i] {
                        Class::Scalars | Class::Single | Class::Index => drop(readers.pinned.insert(r as usize)),
                        _ => readers.nests.entry(r as usize).or_default().push((i, slot)),
                    }
                }
            }
        }
        for a in self.p.outputs() {
            if let Root::Value(r) = self.values.origin(*a).root {
                readers.pinned.insert(r as usize);
            }
        }
        readers
    }

    /// Where an equation goes, if it may and gains by it.
    fn may_sink(&self, i: usize, readers: &Readers) -> Option<Move> {
        if self.classes[i] != Class::Point {
            return None;
        }
        let e = &self.p.equations()[i];
        let r = e.result().index();
        let home = self.cluster[r]?;
        let at_points = self.clusters[home].values.get(&r) == Some(&Level::Point);
        if readers.pinned.contains(&r) || moves(e.op()) || !at_points {
            return None;
        }
        let uses = readers.nests.get(&r)?;
        let nests = || uses.iter().flat_map(|(j, _)| &self.homes[self.p.equations()[*j].result().index()]).copied();
        let stays = nests().any(|c| c == home);
        let mut targets: Vec<usize> = Vec::new();
        for c in nests().filter(|c| *c != home) {
            if !targets.contains(&c) {
                targets.push(c);
            }
        }
        if targets.is_empty() || !self.gains_by_sinking(e, home, &readers.pinned, targets.len() == 1 && !stays) {
            return None;
        }
        let to = targets.into_iter().map(|c| Some((c, self.cuts_with(i, c, uses)?))).collect::<Option<_>>()?;
        Some(Move { home, stays, to })
    }

    /// Whether less goes through memory if an equation leaves its nest: for `one` other, or as a copy.
    fn gains_by_sinking(&self, e: &Equation, home: usize, pinned: &FxHashSet<usize>, one: bool) -> bool {
        let operands = self.p.operands(e);
        // Arrays it reads that only live inside its nest would have to go through memory instead.
        let lives_inside = |v: usize| self.clusters[home].values.contains_key(&v) && !pinned.contains(&v);
        let inner = operands
            .iter()
            .filter(|a| matches!(self.values.origin(**a).root, Root::Value(v) if lives_inside(v as usize)))
            .count();
        let arrays: FxHashSet<Root> = operands
            .iter()
            .map(|a| self.values.origin(*a))
            .filter(|o| o.view.strides.iter().any(|s| *s != Size::ZERO))
            .map(|o| o.root)
            .collect();
        (one && inner <= 1) || (inner == 0 && arrays.len() <= 1 && !is_expensive(self.p, e))
    }

    /// The cuts of a nest that takes in an equation, if it may.
    fn cuts_with(&self, i: usize, c: usize, uses: &[Use]) -> Option<Cuts> {
        let e = &self.p.equations()[i];
        let (r, cluster) = (e.result().index(), &self.clusters[c]);
        if cluster.members.len() >= LARGEST_CLUSTER || !uses.iter().all(|u| self.is_read_in_place(i, c, *u)) {
            return None;
        }
        let dims = &self.values.dims[r];
        let mut shown: Vec<&[Size]> = vec![dims];
        shown.extend(at_points(self.p, e).map(|a| self.dims(a)).filter(|d| *d != &dims[..]));
        let mut cuts = cluster.cuts.clone();
        for dims in shown {
            if let Some(l) = lead(dims, self.points[r]) {
                cuts = with_cuts(cuts, cluster.n, &dims[..l], Size::ONE)?;
            }
        }
        Some(cuts)
    }

    /// Whether a reader inside of a nest, if it is inside, takes each element of a result at the point that makes it.
    fn is_read_in_place(&self, i: usize, c: usize, (j, slot): Use) -> bool {
        let (cluster, user) = (&self.clusters[c], &self.p.equations()[j]);
        if !cluster.values.contains_key(&user.result().index()) {
            return true;
        }
        let (a, r) = (self.p.operands(user)[slot], self.p.equations()[i].result().index());
        self.domain(j).0 == cluster.n
            && self.domain(i).0 == cluster.n
            && is_at_points(self.p, self.values, &self.points, j, slot)
            && seen_in_place(cluster, &self.points, self.values, a, r, Level::Point, Level::Point)
    }

    fn move_down(&mut self, i: usize, Move { home, stays, to }: Move) {
        let r = self.p.equations()[i].result().index();
        let first = to.first().map(|t| t.0);
        for (c, cuts) in to {
            let cluster = &mut self.clusters[c];
            cluster.cuts = cuts;
            let at = cluster.members.partition_point(|m| *m < i);
            cluster.members.insert(at, i);
            cluster.values.insert(r, Level::Point);
            self.homes[r].push(c);
        }
        if !stays {
            let cluster = &mut self.clusters[home];
            cluster.members.retain(|m| *m != i);
            cluster.values.remove(&r);
            self.homes[r].retain(|c| *c != home);
            self.cluster[r] = first;
        }
    }
}
