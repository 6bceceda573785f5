//! Moves equations into the nests that use them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Class, LARGEST_CLUSTER, Level, Planner, at_points, is_shared, lead, seen_in_place, with_cuts};
use crate::lower::emit::is_expensive;
use crate::lower::values::{Root, moves};
use crate::size::Size;

impl Planner<'_> {
    /// Moves equations into the nest that alone uses them, and copies cheap ones, so that less goes through memory.
    pub(super) fn sink(&mut self) {
        let p = self.p;
        let mut readers: FxHashMap<usize, Vec<(usize, usize)>> = FxHashMap::default();
        let mut pinned: FxHashSet<usize> = FxHashSet::default();
        for (i, e) in p.equations().iter().enumerate() {
            if self.classes[i] == Class::View {
                continue;
            }
            for (slot, &a) in p.operands(e).iter().enumerate() {
                if let Root::Value(r) = self.values.origin(a).root {
                    match self.classes[i] {
                        Class::Scalars | Class::Single => drop(pinned.insert(r as usize)),
                        _ => readers.entry(r as usize).or_default().push((i, slot)),
                    }
                }
            }
        }
        for a in p.outputs() {
            if let Root::Value(r) = self.values.origin(*a).root {
                pinned.insert(r as usize);
            }
        }
        for i in (0..p.equations().len()).rev() {
            let e = &p.equations()[i];
            if self.classes[i] != Class::Point {
                continue;
            }
            let r = e.result().index();
            let Some(home) = self.cluster[r] else { continue };
            if pinned.contains(&r) || moves(e.op()) || self.clusters[home].values.get(&r) != Some(&Level::Point) {
                continue;
            }
            let Some(uses) = readers.get(&r) else { continue };
            let mut targets: Vec<usize> = Vec::new();
            let mut at_home = false;
            for (j, _) in uses {
                let reader = p.equations()[*j].result().index();
                for &c in &self.homes[reader] {
                    if c == home {
                        at_home = true;
                    } else if !targets.contains(&c) {
                        targets.push(c);
                    }
                }
            }
            if targets.is_empty() {
                continue;
            }
            // Arrays it reads that only live inside its nest would have to go through memory instead.
            let inner = p
                .operands(e)
                .iter()
                .filter(|a| {
                    matches!(self.values.origin(**a).root, Root::Value(v)
                        if self.clusters[home].values.contains_key(&(v as usize)) && !pinned.contains(&(v as usize)))
                })
                .count();
            let arrays: FxHashSet<Root> = p
                .operands(e)
                .iter()
                .filter(|a| self.values.origin(**a).view.strides.iter().any(|s| *s != Size::ZERO))
                .map(|a| self.values.origin(*a).root)
                .collect();
            let single = targets.len() == 1 && !at_home && inner <= 1;
            let cheap = !is_expensive(p, e) && inner == 0 && arrays.len() <= 1;
            if !single && !cheap {
                continue;
            }
            let plans: Option<Vec<_>> = targets
                .iter()
                .map(|&c| {
                    let in_place = uses.iter().all(|(j, slot)| {
                        let user = &p.equations()[*j];
                        let reader = user.result().index();
                        match self.clusters[c].values.get(&reader) {
                            Some(_) => {
                                let at =
                                    if self.domain(*j).0 == self.clusters[c].n { Level::Point } else { Level::Row };
                                at == Level::Point
                                    && self.domain(i).0 == self.clusters[c].n
                                    && !is_shared(user.op(), *slot)
                                    && seen_in_place(
                                        &self.clusters[c],
                                        &self.points,
                                        self.values,
                                        p.operands(user)[*slot],
                                        r,
                                        Level::Point,
                                        at,
                                    )
                            }
                            None => true,
                        }
                    });
                    if !in_place || self.clusters[c].members.len() >= LARGEST_CLUSTER {
                        return None;
                    }
                    let dims = &self.values.dims[r];
                    let mut cuts = self.clusters[c].cuts.clone();
                    let mut shown: Vec<&[Size]> = vec![dims];
                    shown.extend(at_points(p, e).map(|a| self.dims(a)).filter(|d| *d != &dims[..]));
                    for dims in shown {
                        if let Some(l) = lead(dims, self.points[r]) {
                            cuts = with_cuts(cuts, self.clusters[c].n, &dims[..l], Size::ONE)?;
                        }
                    }
                    Some((c, cuts))
                })
                .collect();
            let Some(plans) = plans else { continue };
            for (c, cuts) in plans {
                let cluster = &mut self.clusters[c];
                cluster.cuts = cuts;
                let at = cluster.members.partition_point(|m| *m < i);
                cluster.members.insert(at, i);
                cluster.values.insert(r, Level::Point);
                self.homes[r].push(c);
            }
            if !at_home {
                let cluster = &mut self.clusters[home];
                cluster.members.retain(|m| *m != i);
                cluster.values.remove(&r);
                self.homes[r].retain(|c| *c != home);
                self.cluster[r] = Some(targets[0]);
            }
        }
    }
}
