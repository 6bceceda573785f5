//! What is summed over everything and over rows as well is made by the nest of rows.
//!
//! Equations come in the order of the program, so a sum over everything has its points before a sum over rows of them is met: the rows would read all of it from memory.
//! It is less the other way around, and rows are loops that need not find out in which row each point is.

use gradus_core::program::Atom;
use rustc_hash::FxHashSet;

use super::totals::TRIED;
use super::{Class, Cluster, Cuts, LARGEST_CLUSTER, Level, Planner};
use crate::lower::values::Root;
use crate::lower::views::count;
use crate::size::Size;

/// Shorter rows are no better than one long one.
const SHORTEST: usize = 16;

impl Planner<'_> {
    /// Moves points from nests of sums over everything to nests of rows that read them, where less goes through memory then.
    pub(super) fn host_points(&mut self) {
        let rows = self.rows_by_points();
        if rows.is_empty() {
            return;
        }
        for whole in 0..self.clusters.len() {
            let Some(candidates) = rows.get(&self.clusters[whole].n) else { continue };
            let makes_points = |c: &Cluster| c.values.values().any(|level| *level == Level::Point);
            if self.clusters[whole].k != self.clusters[whole].n || !makes_points(&self.clusters[whole]) {
                continue;
            }
            let long = candidates.iter().filter(|c| self.clusters[**c].k.guess() >= SHORTEST);
            let found = long.take(TRIED).find_map(|&c| Some((c, self.cuts_as_host(c, whole)?)));
            if let Some((host, cuts)) = found {
                self.move_points(whole, host, cuts);
            }
        }
    }

    /// The cuts of a nest of rows that makes the points of a sum over everything, if it may and gains by it.
    fn cuts_as_host(&self, host: usize, whole: usize) -> Option<Cuts> {
        let (rows, all) = (&self.clusters[host], &self.clusters[whole]);
        if rows.members.len() + all.members.len() > LARGEST_CLUSTER {
            return None;
        }
        // It stands where the points stood: all else that it reads is there before.
        let mut taken: FxHashSet<usize> = FxHashSet::default();
        for &i in &rows.members {
            let e = &self.p.equations()[i];
            let at = match self.classes[i] {
                Class::Row => Level::Point,
                _ => *rows.values.get(&e.result().index())?,
            };
            for (slot, a) in self.p.operands(e).iter().enumerate() {
                if self.seen(rows, i, slot, at).is_some() {
                    continue;
                }
                match self.made_by(all, *a) {
                    Some(r) if at == Level::Point && self.seen(all, i, slot, at) == Some(Level::Point) => {
                        taken.insert(r);
                    }
                    Some(_) => return None,
                    None if self.level_of(*a) < all.level => {}
                    None => return None,
                }
            }
        }
        let reductions = all.members.iter().filter(|i| self.classes[**i] == Class::Row);
        let operands = reductions.flat_map(|i| self.p.operands(&self.p.equations()[*i]));
        let left: FxHashSet<usize> = operands.filter_map(|a| self.made_by(all, *a)).collect();
        // A number that only one of both makes and the other reads goes to memory and back.
        let moved = |values: &FxHashSet<usize>| -> Option<usize> {
            let each = values.iter().map(|v| {
                let inside = count(&self.values.dims[*v]).over(all.n)?.known()?;
                let times = if self.is_read_elsewhere(*v, [host, whole]) { 1 } else { 2 };
                Some(self.values.types[*v]?.size() * inside * times)
            });
            each.sum()
        };
        let (before, after) = (moved(&taken)?, moved(&left)?);
        let gains = after < before || (after == before && self.has_shared_operands(all));
        if gains && !taken.is_empty() { rows.cuts.union(&all.cuts) } else { None }
    }

    /// The member of a nest that an operand shows.
    fn made_by(&self, c: &Cluster, a: Atom) -> Option<usize> {
        match self.values.origin(a).root {
            Root::Value(r) if c.values.contains_key(&(r as usize)) => Some(r as usize),
            _ => None,
        }
    }

    /// Whether rows or columns of a nest's points share some of what they are made of: who goes through all points as one row finds out for each where that is.
    fn has_shared_operands(&self, c: &Cluster) -> bool {
        let operands = c.members.iter().flat_map(|i| self.p.operands(&self.p.equations()[*i]));
        operands.map(|a| (&self.values.origin(*a).view.strides, self.values.dims(*a))).any(|(strides, dims)| {
            let sized = || strides.iter().zip(dims).filter(|(_, d)| **d != 1);
            sized().any(|(s, _)| *s == Size::ZERO) && sized().any(|(s, _)| *s != Size::ZERO)
        })
    }

    fn move_points(&mut self, whole: usize, host: usize, cuts: Cuts) {
        let level = self.clusters[whole].level;
        let result = |i: &usize| self.p.equations()[*i].result().index();
        let members = std::mem::take(&mut self.clusters[whole].members);
        let (sums, points): (Vec<usize>, Vec<usize>) =
            members.into_iter().partition(|i| self.classes[*i] == Class::Row);
        for r in points.iter().map(result) {
            self.clusters[whole].values.remove(&r);
            self.clusters[host].values.insert(r, Level::Point);
            self.cluster[r] = Some(host);
            self.homes[r].iter_mut().filter(|c| **c == whole).for_each(|c| *c = host);
        }
        self.clusters[whole].members = sums;
        let cluster = &mut self.clusters[host];
        cluster.members.extend(points);
        cluster.members.sort_unstable();
        cluster.cuts = cuts;
        cluster.level = level;
    }
}
