//! Sums over all rows join the nest that makes the rows: what they take in is not written to memory and read once more.
//!
//! The order of a sum is fixed. One over everything goes through chunks, and in each through 32 lanes; so rows of whole lanes can
//! feed it one after the other, and different chunks at the same time. A sum of columns goes from the first row to the last, which one
//! thread has to do: it joins only a nest that is one thread's work.

use gradus_core::program::Atom;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    CHUNK, Class, Cluster, Cuts, LARGEST_CLUSTER, Level, Planner, at_points, cost, is_at_points, lead, point_cost,
    reduced_axes, reduction, rows_stay, seen_in_place, with_cuts,
};
use crate::cost::is_for_one;
use crate::ir::{FoldOp, LANES, Ty};
use crate::lower::values::Root;
use crate::lower::views::count;
use crate::size::Size;

/// Narrower sums of columns are better off in registers.
const NARROWEST: usize = 64;
/// How long it takes to add an element to the total of its column, beside what else is done at a point; in the nanoseconds of [`cost`].
const RUNNING: f32 = 0.7;
/// Elements of a point that have columns in memory.
const MOST_INSIDE: usize = 8;
/// What is made again takes at most this long for each number that need not be in memory, in nanoseconds, and at most so many equations.
const AGAIN: f32 = 1.0;
const MOST_PARTS: usize = 32;
/// An array with so many times fewer elements than a nest has points is in a near cache whenever it is read.
const SHARED: usize = 16;
/// Arrays of so many bytes stay in the second cache, from which reading takes no longer; larger ones than `FAR` in none, and reading takes twice as long.
const NEAR: usize = 2 << 20;
const FAR: usize = 32 << 20;
/// Nests of the same size that are tried.
pub(super) const TRIED: usize = 8;

impl Planner<'_> {
    /// The nests of rows that stay in the first cache, by how many points they have.
    pub(super) fn rows_by_points(&self) -> FxHashMap<Size, Vec<usize>> {
        let mut rows: FxHashMap<Size, Vec<usize>> = FxHashMap::default();
        for (c, cluster) in self.clusters.iter().enumerate() {
            if !cluster.column && !cluster.members.is_empty() && rows_stay(cluster) {
                rows.entry(cluster.n).or_default().push(c);
            }
        }
        rows
    }

    pub(super) fn join_totals(&mut self) {
        let rows = self.rows_by_points();
        for t in 0..self.clusters.len() {
            let Some(candidates) = rows.get(&self.clusters[t].n) else { continue };
            let Some(totals) = self.totals_of(t) else { continue };
            let found = candidates.iter().take(TRIED).find_map(|&c| Some((c, self.cuts_with_totals(c, t, &totals)?)));
            if let Some((c, cuts)) = found {
                let values = self.take_in(t, c, cuts);
                let cluster = &mut self.clusters[c];
                for (v, level) in values.into_iter().filter(|(_, level)| *level == Level::Point) {
                    cluster.values.entry(v).or_insert(level);
                }
                let results: Vec<usize> = totals.iter().map(|i| self.p.equations()[*i].result().index()).collect();
                cluster.values.retain(|v, _| !results.contains(v));
                cluster.totals.extend(totals);
            }
        }
    }

    /// Nests of sums of the same columns become one, which reads what they share once.
    pub(super) fn join_columns(&mut self) {
        let mut columns: Vec<usize> = (0..self.clusters.len())
            .filter(|c| self.clusters[*c].column && !self.clusters[*c].members.is_empty())
            .collect();
        columns.sort_by_key(|c| (self.clusters[*c].level, *c));
        // The first nest for each kind of columns has the lowest level.
        let mut first: FxHashMap<(Vec<Size>, Vec<usize>), usize> = FxHashMap::default();
        for c in columns {
            let Some(kind) = self.kind_of_columns(c) else { continue };
            let Some(&home) = first.get(&kind) else {
                first.insert(kind, c);
                continue;
            };
            if let Some(cuts) = self.cuts_of_both(home, c) {
                let values = self.take_in(c, home, cuts);
                self.clusters[home].values.extend(values);
            }
        }
    }

    /// What a nest does is another one's part from now on; gives what it made.
    fn take_in(&mut self, from: usize, into: usize, cuts: Cuts) -> FxHashMap<usize, Level> {
        let members = std::mem::take(&mut self.clusters[from].members);
        for r in members.iter().map(|i| self.p.equations()[*i].result().index()) {
            if self.cluster[r] == Some(from) {
                self.cluster[r] = Some(into);
            }
            self.homes[r].retain(|c| *c != from && *c != into);
            self.homes[r].push(into);
        }
        let cluster = &mut self.clusters[into];
        cluster.cuts = cuts;
        let new: Vec<usize> = members.into_iter().filter(|i| !cluster.members.contains(i)).collect();
        cluster.members.extend(new);
        cluster.members.sort_unstable();
        std::mem::take(&mut self.clusters[from].values)
    }

    /// What a nest of rows would write to memory only for sums of its columns, they make again from what it is made of: the arrays
    /// are large, and a quotient takes less time than a number on its way to memory and back.
    pub(super) fn make_again(&mut self) {
        for k in 0..self.clusters.len() {
            if !self.clusters[k].column {
                continue;
            }
            let operands: FxHashSet<Atom> = self.clusters[k]
                .members
                .iter()
                .flat_map(|i| self.p.operands(&self.p.equations()[*i]).iter().copied())
                .collect();
            let mut operands: Vec<Atom> = operands.into_iter().collect();
            operands.sort_by_key(|a| a.value().map(|v| v.index()));
            for a in operands {
                if let Some((parts, cuts, _)) = self.parts_to_copy(k, a) {
                    let cluster = &mut self.clusters[k];
                    cluster.cuts = cuts;
                    for (i, v) in parts {
                        if cluster.values.insert(v, Level::Point).is_none() {
                            cluster.members.push(i);
                        }
                    }
                    cluster.members.sort_unstable();
                }
            }
        }
    }

    /// The equations of a nest of rows that a nest of columns needs to make an operand itself, with their results, its cuts then, and how long they take at a point.
    fn parts_to_copy(&self, k: usize, a: Atom) -> Option<(Vec<(usize, usize)>, Cuts, f32)> {
        let columns = &self.clusters[k];
        let Root::Value(r) = self.values.origin(a).root else { return None };
        let r = r as usize;
        let is_point = |c: &Cluster, v: usize| c.values.get(&v) == Some(&Level::Point);
        let c = self.clusters.iter().position(|c| c.n == columns.n && rows_stay(c) && !c.column && is_point(c, r))?;
        let rows = &self.clusters[c];
        let unshared = |i: &usize| {
            let operands = self.p.operands(&self.p.equations()[*i]);
            let at_points = |slot: usize| is_at_points(self.p, self.values, &self.points, *i, slot);
            (0..operands.len()).all(|slot| operands[slot] != a || at_points(slot))
        };
        let in_place = columns.members.iter().all(unshared)
            && seen_in_place(columns, &self.points, self.values, a, r, Level::Point, Level::Point);
        let inside = count(&self.values.dims[r]).over(columns.n)?.known()?;
        let bytes = columns.n * self.values.types[r]?.size() * inside;
        if bytes.guess() <= NEAR || columns.values.contains_key(&r) || !in_place || self.is_read_elsewhere(r, [c, k]) {
            return None;
        }
        let again = if bytes.guess() > FAR { 2.0 * AGAIN } else { AGAIN };
        let is_near = |elements: Size| elements.guess().saturating_mul(SHARED) <= columns.n.guess();
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let mut arrays: FxHashSet<Root> = FxHashSet::default();
        let mut time = 0.0;
        let mut open = vec![r];
        let mut cuts = columns.cuts.clone();
        while let Some(v) = open.pop() {
            if parts.iter().any(|(_, w)| *w == v) {
                continue;
            }
            let i = *rows.members.iter().find(|i| self.p.equations()[**i].result().index() == v)?;
            let e = &self.p.equations()[i];
            let at_point =
                at_points(self.p, e).chain([e.result().into()]).map(|a| count(self.dims(a)).over(columns.n)?.known());
            time += cost(self.p, e) * at_point.max()?? as f32;
            let computes = self.is_map(e) || self.is_inner(e);
            let too_long = parts.len() >= MOST_PARTS || time > again * inside as f32;
            if self.classes[i] != Class::Point || !computes || too_long {
                return None;
            }
            for dims in at_points(self.p, e).map(|a| self.dims(a)).chain([&self.values.dims[v][..]]) {
                if let Some(l) = lead(dims, columns.n) {
                    cuts = with_cuts(cuts, columns.n, &dims[..l], Size::ONE)?;
                }
            }
            parts.push((i, v));
            for (slot, x) in self.p.operands(e).iter().enumerate() {
                let Root::Value(u) = self.values.origin(*x).root else { continue };
                match rows.values.get(&(u as usize)) {
                    Some(Level::Row) => {}
                    Some(Level::Point) if self.seen(rows, i, slot, Level::Point).is_some() => open.push(u as usize),
                    Some(Level::Point) => return None,
                    None if is_near(count(&self.values.dims[u as usize])) => {}
                    None => drop(arrays.insert(Root::Value(u))),
                }
            }
        }
        (arrays.len() <= 1).then_some((parts, cuts, time))
    }

    /// Whether running totals of all columns in a nest of rows take less than making again what these take from there, where that may be done: a nest of columns that is
    /// there for one sum may do the others too.
    fn runs_faster(&self, c: usize, t: usize) -> bool {
        let n = self.clusters[t].n;
        let (mut elements, mut taken) = (0, Vec::<(usize, usize, Atom)>::new());
        for (k, cluster) in self.clusters.iter().enumerate().filter(|(_, k)| k.column && k.n == n) {
            for i in &cluster.members {
                let e = &self.p.equations()[*i];
                if self.classes[*i] == Class::Column {
                    elements += self.inside(self.p.operands(e)[0], n).unwrap_or(1);
                }
                for a in self.p.operands(e) {
                    let Root::Value(r) = self.values.origin(*a).root else { continue };
                    let r = r as usize;
                    let is_point = self.clusters[c].values.get(&r) == Some(&Level::Point);
                    if is_point && !cluster.values.contains_key(&r) && taken.iter().all(|(_, v, _)| *v != r) {
                        taken.push((k, r, *a));
                    }
                }
            }
        }
        // Both read the same arrays, then, and do it once.
        if taken.is_empty() {
            return true;
        }
        // What is made for the last is made of what is made for others.
        taken.sort_unstable_by_key(|(_, r, _)| std::cmp::Reverse(*r));
        let (mut there, mut time) = (FxHashSet::default(), 0.0);
        for (k, r, a) in taken {
            if !there.contains(&r) {
                let Some((parts, _, more)) = self.parts_to_copy(k, a) else { return true };
                there.extend(parts.into_iter().map(|(_, v)| v));
                time += more;
            }
        }
        elements as f32 * RUNNING <= time
    }

    /// Whether anything but these nests needs a value.
    pub(super) fn is_read_elsewhere(&self, v: usize, nests: [usize; 2]) -> bool {
        let reads = |a: &Atom| self.values.origin(*a).root == Root::Value(v as u32);
        let by_itself = |i: usize| matches!(self.classes[i], Class::Scalars | Class::Single | Class::Index);
        self.p.outputs().iter().any(reads)
            || self.p.equations().iter().enumerate().any(|(i, e)| by_itself(i) && self.p.operands(e).iter().any(reads))
            || self.clusters.iter().enumerate().any(|(c, cluster)| {
                !nests.contains(&c)
                    && cluster.members.iter().any(|i| self.p.operands(&self.p.equations()[*i]).iter().any(reads))
            })
    }

    /// The dimensions of the points of a nest of columns, and its axes.
    fn kind_of_columns(&self, c: usize) -> Option<(Vec<Size>, Vec<usize>)> {
        let i = *self.clusters[c].members.iter().find(|i| self.classes[**i] == Class::Column)?;
        let e = &self.p.equations()[i];
        let axes = reduced_axes(e.op())?;
        let dims = self.dims(self.p.operands(e)[0]);
        Some((dims[..lead(dims, self.clusters[c].n)?].to_vec(), axes.to_vec()))
    }

    /// The cuts of two nests of columns as one. What depends on the first has a level above its own, unless it is an equation by
    /// itself; so the second may read what nests up to that level make.
    fn cuts_of_both(&self, first: usize, second: usize) -> Option<Cuts> {
        let (a, b) = (&self.clusters[first], &self.clusters[second]);
        let root = |a: &Atom| self.values.origin(*a).root;
        let operands = |c: &Cluster| -> Vec<(usize, usize, Atom)> {
            let of = |i: &usize| self.p.operands(&self.p.equations()[*i]).iter().enumerate();
            c.members.iter().flat_map(|i| of(i).map(|(slot, a)| (*i, slot, *a))).collect()
        };
        let read: FxHashSet<Root> = operands(a).iter().map(|(.., x)| root(x)).collect();
        let mut shares = false;
        for (i, slot, x) in operands(b) {
            let Root::Value(r) = root(&x) else { continue };
            let r = r as usize;
            shares |= read.contains(&root(&x)) || a.values.contains_key(&r);
            let early = self.levels[r] < a.level || (self.levels[r] == a.level && self.cluster[r].is_some());
            let there = match (b.values.contains_key(&r), a.values.contains_key(&r)) {
                (true, _) => true,
                (false, true) => self.seen(a, i, slot, Level::Point).is_some(),
                (false, false) => early,
            };
            if !there {
                return None;
            }
        }
        let fits = a.members.len() + b.members.len() <= LARGEST_CLUSTER;
        if shares && fits { a.cuts.union(&b.cuts) } else { None }
    }

    /// The reductions of a nest that does nothing else, if they are sums over all rows of some nest.
    fn totals_of(&self, t: usize) -> Option<Vec<usize>> {
        let cluster = &self.clusters[t];
        let is_total = |i: &usize| matches!(self.classes[*i], Class::Row | Class::Column);
        let totals: Vec<usize> = cluster.members.iter().copied().filter(is_total).collect();
        let whole = !cluster.column && cluster.k == cluster.n && cluster.totals.is_empty();
        let simple = totals.iter().all(|i| {
            let e = &self.p.equations()[*i];
            let x = self.p.operands(e)[0];
            reduction(e.op()).is_some_and(|(op, _)| op == FoldOp::Add)
                && matches!(self.values.types[e.result().index()], Some(Ty::F32 | Ty::F64))
                && match cluster.column {
                    // Points may have several elements: each has its columns.
                    true => self.inside(x, cluster.n).is_some_and(|n| n <= MOST_INSIDE),
                    false => self.point_count(x) == count(self.dims(x)),
                }
        });
        (simple && !totals.is_empty() && (cluster.column || whole)).then_some(totals)
    }

    /// The cuts of a nest of rows together with these totals, if it may take them.
    fn cuts_with_totals(&self, c: usize, t: usize, totals: &[usize]) -> Option<Cuts> {
        let (rows, other) = (&self.clusters[c], &self.clusters[t]);
        if rows.members.len() + other.members.len() > LARGEST_CLUSTER || other.level < rows.level {
            return None;
        }
        // How much work it is decides: a number of rows that is known at run time says nothing.
        let (Some(n), Some(k)) = (rows.n.known(), rows.k.known()) else { return None };
        let time = (point_cost(self.p, rows) + point_cost(self.p, other)) * n as f32;
        let one_thread = is_for_one(time, self.threads);
        // Threads may share the chunks of what is summed over everything, unless columns come as well.
        let chunks_are_shared = n > CHUNK && !rows.totals.is_empty() && !is_for_one(f32::INFINITY, self.threads);
        let fits = if other.column {
            one_thread
                && !chunks_are_shared
                && k >= NARROWEST
                && totals.iter().all(|i| self.keeps_rows(*i, other.n, rows.k))
                && self.runs_faster(c, t)
        } else {
            let chunks = n.is_multiple_of(CHUNK) && CHUNK.is_multiple_of(k) && n > CHUNK;
            k.is_multiple_of(LANES) && ((one_thread && n <= CHUNK) || chunks)
        };
        if !fits {
            return None;
        }
        // What it reads is there before the nest, or made in it in the same place; and something is read by both.
        let root = |a: &Atom| self.values.origin(*a).root;
        let read: FxHashSet<Root> =
            rows.members.iter().flat_map(|i| self.p.operands(&self.p.equations()[*i])).map(root).collect();
        let mut shares = false;
        for &i in &other.members {
            let e = &self.p.equations()[i];
            for (slot, a) in self.p.operands(e).iter().enumerate() {
                let inside = |c: &Cluster| matches!(root(a), Root::Value(r) if c.values.contains_key(&(r as usize)));
                if inside(rows) {
                    self.seen(rows, i, slot, Level::Point)?;
                    shares = true;
                } else if inside(other) {
                    if !is_at_points(self.p, self.values, &self.points, i, slot) {
                        return None;
                    }
                } else if self.level_of(*a) >= rows.level {
                    return None;
                } else {
                    shares |= read.contains(&root(a));
                }
            }
        }
        if shares { rows.cuts.union(&other.cuts) } else { None }
    }

    /// Whether a sum of columns of `n` points is over whole rows of `k` of them, one after the other.
    fn keeps_rows(&self, i: usize, n: Size, k: Size) -> bool {
        let e = &self.p.equations()[i];
        let dims = self.dims(self.p.operands(e)[0]);
        let (Some((_, axes)), Some(lead)) = (reduction(e.op()), lead(dims, n)) else { return false };
        let sized = (0..lead).filter(|a| dims[*a] != 1);
        let kept: Vec<usize> = sized.clone().skip_while(|a| axes.contains(a)).collect();
        kept.iter().all(|a| !axes.contains(a)) && kept.iter().map(|a| dims[*a]).product::<Size>() == k
    }
}
