//! Reductions over the innermost loop: rows with one or more loops of lanes each.

use gradus_core::program::ValueId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::abreast::Abreast;
use super::{Flat, Group, Nest};
use crate::check::{Joint, Range};
use crate::cost::Work;
use crate::error::{Result, error};
use crate::ir::meaning::{Meaning, Tag, TagName};
use crate::ir::{Buffer, Carried, Expr, Fold, FoldOp, Int, LANES, Op, Stmt, Ty, Value};
use crate::lower::emit::{cost, is_expensive};
use crate::lower::fusion::{CHUNK, Class, Level, reduction};
use crate::lower::scalars::finish_fold;
use crate::lower::values::{Repr, storage};
use crate::lower::views::{At, View};
use crate::size::Size;

/// What takes longer to make again, in nanoseconds, is better read back from the first cache.
const MANY: f32 = 1.0;
/// Rows that threads share and that keep something for themselves go in at most so many blocks, each with memory for one row.
const MOST_BLOCKS: usize = 128;
/// Fewer are too few for threads to share, and so are fewer rows in each.
const FEWEST_BLOCKS: usize = 16;
const SHORTEST_BLOCK: usize = 8;
/// Where no number of blocks divides the rows, each has so many, and what is left over is done after them.
const ROWS_OF_MANY: usize = 32;

/// Rows in blocks, each with memory for what its rows keep.
struct Blocks {
    /// The rows of a block.
    rows: Group,
    count: Size,
    /// Rows behind the last block.
    left: Size,
}

/// How long a loop of lanes is.
#[derive(Clone, Copy)]
enum Length {
    Of(Size),
    /// Computed in the kernel.
    Scalar(Value),
}

impl Nest<'_, '_> {
    /// When each member can be computed: after which of the lane loops.
    pub(super) fn find_phases(&mut self) {
        let mut totals = Vec::new();
        for &i in &self.cluster.members {
            let phase = self.members_of(i).map(|r| self.phases.get(&r).copied().unwrap_or(0)).max().unwrap_or(0);
            if self.is_total(i) {
                totals.push((i, phase));
                continue;
            }
            let v = self.result(i);
            // A reduction is there after the loop that makes its operand.
            let phase = if self.plan.classes[i] == Class::Row { phase + 1 } else { phase };
            self.phases.insert(v, phase);
        }
        self.place_totals(&totals);
    }

    /// Members of points that later lane loops need and that cost more to make again than to read back. `in_turn`: from one row, which stays in the first cache.
    pub(super) fn worth_keeping(&self, in_turn: bool) -> FxHashSet<usize> {
        let mut wanted: FxHashSet<usize> = FxHashSet::default();
        for &i in &self.cluster.members {
            let phase = self.phase_of_use(i);
            for r in self.members_of(i) {
                if self.level(r) == Level::Point && self.phases[&r] < phase && !self.stored.contains_key(&r) {
                    wanted.insert(r);
                }
            }
        }
        // In the order in which they are made: what is kept already need not be made again.
        let mut kept = FxHashSet::default();
        for v in self.cluster.members.iter().map(|i| self.result(*i)).filter(|v| wanted.contains(v)) {
            if self.is_costly(v, in_turn, &kept) {
                kept.insert(v);
            }
        }
        kept
    }

    /// Memory for those members. `in_turn`: rows are done one after the other, in `at_once` blocks; all rows of a block can have the same memory for that.
    fn spill(&mut self, in_turn: bool, at_once: Size) -> Result<()> {
        let wanted = self.worth_keeping(in_turn);
        let last_reads = self.last_reads(&wanted);
        let mut wanted: Vec<usize> = wanted.into_iter().collect();
        wanted.sort_by_key(|v| (self.phases[v], *v));
        // Memory of a row, and from which lane loop on it holds what it was made for: a result, or what was spilled there last.
        // Each element is read before it is written, so one use may end in the lane loop in which the next begins.
        // What a loop carries in one place holds the old one until then.
        let is_free = |w: &usize| !self.lower.frame.carried.contains(&self.stored[w].buffer);
        let mut results: Vec<usize> = self.stored.keys().copied().filter(|w| self.is_point(*w) && is_free(w)).collect();
        results.sort_unstable();
        let mut lent: FxHashMap<usize, usize> = FxHashMap::default();
        let mut scratch: Vec<(usize, usize)> = Vec::new();
        for v in wanted {
            let last_use = last_reads.get(&v).copied().unwrap_or(0);
            let first = self.phases[&v];
            let lender = results.iter().copied().find(|w| {
                self.phases[w] >= last_use && lent.get(w).is_none_or(|until| *until <= first) && self.like(*w, v)
            });
            if let Some(w) = lender {
                lent.insert(w, last_use);
                self.stored.insert(v, self.stored[&w].clone());
                self.sharing.extend([v, w]);
                continue;
            }
            let free = scratch.iter().position(|(w, until)| *until <= first && self.like(*w, v));
            if let Some(at) = free {
                let w = scratch[at].0;
                scratch[at] = (v, last_use);
                self.stored.insert(v, self.stored[&w].clone());
                self.sharing.extend([v, w]);
            } else {
                let view = if in_turn {
                    let elements = self.cluster.k * at_once * self.inside(v);
                    let ty =
                        storage(self.p.ty(ValueId::new(v)).dtype()).ok_or_else(|| error!(Rule, "no scalar type"))?;
                    View::dense(self.lower.new_scratch(ty, elements), &[elements])
                } else {
                    View::dense(self.lower.scratch(self.p, v)?, &self.values.dims[v])
                };
                self.stored.insert(v, view);
                scratch.push((v, last_use));
            }
            if in_turn {
                self.one_row.insert(v);
            }
        }
        Ok(())
    }

    /// The last lane loop that reads each member: for itself, or to make again something that is not in memory.
    fn last_reads(&self, spilled: &FxHashSet<usize>) -> FxHashMap<usize, usize> {
        let mut last: FxHashMap<usize, usize> = FxHashMap::default();
        for &i in self.cluster.members.iter().rev() {
            let v = self.result(i);
            let mut phase = self.phase_of_use(i);
            if self.level(v) == Level::Point && !self.stored.contains_key(&v) && !spilled.contains(&v) {
                phase = phase.max(last.get(&v).copied().unwrap_or(0));
            }
            for r in self.members_of(i) {
                let known = last.entry(r).or_insert(phase);
                *known = phase.max(*known);
            }
        }
        last
    }

    /// Whether a value is made at every point, and is no total of them.
    pub(super) fn is_point(&self, v: usize) -> bool {
        self.cluster.values.get(&v) == Some(&Level::Point)
    }

    /// Whether one can lie where the other does.
    fn like(&self, a: usize, b: usize) -> bool {
        let dtype = |v: usize| self.p.ty(ValueId::new(v)).dtype();
        self.inside(a) == self.inside(b) && dtype(a) == dtype(b)
    }

    /// The lane loop in which an equation is needed first.
    fn phase_of_use(&self, i: usize) -> usize {
        let phase = self.phases[&self.result(i)];
        if self.plan.classes[i] == Class::Row && !self.is_total(i) { phase - 1 } else { phase }
    }

    /// Whether making it again of what is `kept` or stored takes an expensive operation or, where it is read back from the first cache, many cheap ones. So it does
    /// where two rows would be read for it and it can take the place of one: that is a row less in the cache.
    fn is_costly(&self, root: usize, is_near: bool, kept: &FxHashSet<usize>) -> bool {
        let mut open = vec![root];
        let mut seen = FxHashSet::default();
        let mut time = 0.0;
        let (mut rows_read, mut takes_a_place) = (FxHashSet::default(), false);
        while let Some(v) = open.pop() {
            let Some(&i) = self.cluster.members.iter().find(|i| self.result(**i) == v) else { continue };
            let e = &self.p.equations()[i];
            let inside = self.members_of(i).chain([v]).map(|r| self.inside(r)).max().unwrap_or(1);
            time += cost(self.p, e) * inside as f32;
            if is_expensive(self.p, e) || (is_near && time > MANY) {
                return true;
            }
            for r in self.p.operands(e).iter().filter_map(|a| a.value()).map(|r| r.index()) {
                let is_member = self.cluster.values.contains_key(&r);
                let there = self.stored.contains_key(&r) || kept.contains(&r);
                if is_member && self.level(r) != Level::Point {
                    continue;
                }
                if is_member && !there {
                    if seen.insert(r) {
                        open.push(r);
                    }
                } else {
                    rows_read.insert(r);
                    takes_a_place |= kept.contains(&r) && self.like(r, root);
                }
            }
        }
        is_near && takes_a_place && rows_read.len() > 1
    }

    /// Rows, each with one or more loops of lanes.
    pub(super) fn rows(&mut self) -> Result<()> {
        let accesses = self.accesses();
        let first = self.row_cuts();
        let k = self.cluster.k;
        let row_groups = self.groups(0..first, &accesses);
        let lane_groups = self.groups(first..self.cuts.len(), &accesses);
        let whole = self.cluster.n == k;
        let by_chunk = self.rows_by_chunk(&row_groups);
        let searched = by_chunk.is_none() && self.has_flat_totals() && self.chunk_count() > 1;
        // Running totals of everything allow one thread for each chunk, those of columns only one.
        let shared = self.cluster.totals.iter().all(|i| by_chunk.is_some() && self.is_flat(*i));
        let work = if shared { self.work() } else { Work::alone() };
        let parallel = work.is_shared();
        let blocks = match by_chunk {
            None if parallel && !whole => self.rows_by_block(&row_groups),
            found => found.map(|rows| Blocks { rows, count: self.chunk_count().into(), left: Size::ZERO }),
        };
        if !whole {
            self.by_chunk = parallel && blocks.is_some();
            let shared = blocks.as_ref().filter(|_| parallel);
            let at_once = shared.map_or(Size::ONE, |b| if b.left == 0 { b.count } else { b.count + 1i64 });
            self.abreast = Abreast::of(self.rows_abreast(&row_groups, &lane_groups));
            self.spill(!parallel || self.by_chunk, at_once * self.abreast.most)?;
        }
        let last_phase = self.phases.values().copied().max().unwrap_or(0);
        self.begin_totals()?;
        self.lower.emitter.begin();
        if whole {
            let mut outputs = Vec::new();
            if !k.at_most(CHUNK) {
                return self.long_row(&lane_groups);
            }
            let results = self.lane_loop(0, &lane_groups, None, Length::Of(k))?;
            for (v, elements) in results.into_iter().flatten() {
                outputs.extend(&elements);
                self.lower.frame.reprs[v] = Some(Repr::Elements(elements));
            }
            self.finish_kernel(Work::alone(), outputs);
            return Ok(());
        }
        let one_row = &mut |nest: &mut Self| {
            if searched {
                nest.chunk = Some(nest.chunk_of_row(&row_groups));
            }
            nest.lane_loops(&lane_groups, last_phase)
        };
        match blocks {
            None => match &row_groups[..] {
                // Threads share one loop: what is left over is done after it.
                [rows] if parallel && self.abreast.most > 1 && self.count_left(rows) != 0 => {
                    self.rows_together(rows, one_row)?;
                    self.finish_kernel(work, Vec::new());
                    self.lower.emitter.begin();
                    self.rows_left(rows, one_row)?;
                    self.finish_kernel(Work::alone(), Vec::new());
                    return self.end_totals();
                }
                _ => self.all_rows(&row_groups, one_row)?,
            },
            Some(Blocks { rows, count, left }) => {
                let inner = |extent: Size| -> Vec<Group> {
                    std::iter::once(Group::new(extent, rows.inner)).chain(row_groups[1..].iter().cloned()).collect()
                };
                let chunk = self.lower.emitter.value(Ty::I64);
                self.lower.emitter.begin();
                self.chunk = Some(chunk);
                self.open.push((rows.inner, rows.extent, chunk));
                self.all_rows(&inner(rows.extent), one_row)?;
                self.open.pop();
                let body = self.lower.emitter.end();
                self.lower.emitter.serial(chunk, count, Vec::new(), body);
                if left != 0 {
                    self.finish_kernel(work, Vec::new());
                    self.lower.emitter.begin();
                    let full = self.lower.emitter.size(count);
                    self.chunk = Some(full);
                    self.open.push((rows.inner, rows.extent, full));
                    self.all_rows(&inner(left), one_row)?;
                    self.open.pop();
                    self.finish_kernel(Work::alone(), Vec::new());
                    return self.end_totals();
                }
            }
        }
        self.finish_kernel(work, Vec::new());
        self.end_totals()
    }

    /// The lane loops of the current row, or of several that go together, and what is stored of it.
    fn lane_loops(&mut self, lane_groups: &[Group], last_phase: usize) -> Result<()> {
        let k = self.cluster.k;
        self.each_row(|nest| {
            nest.rows.clear();
            Ok(())
        })?;
        self.clear_point();
        for phase in 0..=last_phase {
            self.phase = phase;
            if !self.has_work(phase) {
                continue;
            }
            self.each_row(|nest| nest.make_row_values(phase))?;
            if let Some(k) = k.known().filter(|k| *k > CHUNK) {
                let results = self.chunks(lane_groups, k)?;
                self.rows.extend(results);
            } else if self.in_steps(phase) {
                let step = self.lower.emitter.value(Ty::I64);
                self.lower.emitter.begin();
                self.lane_loop(phase, lane_groups, Some((step, LANES)), Length::Of(LANES.into()))?;
                let body = self.lower.emitter.end();
                self.lower.emitter.serial(step, k.floor_div(LANES), Vec::new(), body);
            } else {
                let mut results = self.lane_loop(phase, lane_groups, None, Length::Of(k))?;
                self.each_row(|nest| {
                    nest.rows.extend(std::mem::take(&mut results[nest.abreast.now]));
                    Ok(())
                })?;
            }
            self.clear_point();
        }
        self.phase = last_phase + 1;
        self.each_row(Self::store_row)
    }

    /// Numbers of the row that a lane loop takes are computed before the loop, not in it.
    pub(super) fn make_row_values(&mut self, phase: usize) -> Result<()> {
        let values = self.cluster.members.iter().map(|i| self.result(*i));
        let is_ready =
            |v: &usize| self.level(*v) == Level::Row && self.phases[v] <= phase && !self.rows.contains_key(v);
        let ready: Vec<usize> = values.filter(is_ready).collect();
        ready.into_iter().try_for_each(|v| self.member(v).map(drop))
    }

    /// Stores what there is one of for the row.
    pub(super) fn store_row(&mut self) -> Result<()> {
        let values = self.cluster.members.iter().map(|i| self.result(*i));
        let stored: Vec<usize> =
            values.filter(|v| self.level(*v) == Level::Row && self.stored.contains_key(v)).collect();
        for v in stored {
            let elements = self.member(v)?;
            self.store(v, &elements);
        }
        Ok(())
    }

    /// The blocks of rows, if threads share rows that keep something for themselves: as many of one length as go into all rows, or many short ones and the rest.
    fn rows_by_block(&self, row_groups: &[Group]) -> Option<Blocks> {
        let first = row_groups.first()?;
        let kept = self.worth_keeping(true);
        let keeps = self.cluster.totals.is_empty() && !kept.is_empty();
        if !keeps || first.extent.guess() < FEWEST_BLOCKS * SHORTEST_BLOCK {
            return None;
        }
        let even = first.extent.known().and_then(|n| {
            let fits = |blocks: &usize| n.is_multiple_of(*blocks) && n / blocks >= SHORTEST_BLOCK;
            (FEWEST_BLOCKS..=MOST_BLOCKS).rev().find(fits).map(|blocks| (n / blocks, blocks))
        });
        if let Some((rows, blocks)) = even {
            return Some(Blocks { rows: Group::new(rows.into(), first.inner), count: blocks.into(), left: Size::ZERO });
        }
        // Where a point has several elements, it is not proved that blocks of such a number do not meet.
        if kept.iter().any(|v| self.inside(*v) != 1) {
            return None;
        }
        let count = first.extent.floor_div(ROWS_OF_MANY);
        let rows = Group::new(ROWS_OF_MANY.into(), first.inner);
        Some(Blocks { rows, count, left: first.extent - count * ROWS_OF_MANY })
    }

    pub(super) fn folds_in(&self, phase: usize) -> Vec<usize> {
        let members = self.cluster.members.iter().copied();
        members
            .filter(|i| {
                self.plan.classes[*i] == Class::Row && !self.is_total(*i) && self.phases[&self.result(*i)] == phase + 1
            })
            .collect()
    }

    fn stores_in(&self, phase: usize) -> Vec<usize> {
        self.cluster
            .members
            .iter()
            .map(|i| self.result(*i))
            .filter(|v| self.is_point(*v) && self.phases[v] == phase && self.stored.contains_key(v))
            .collect()
    }

    fn has_work(&self, phase: usize) -> bool {
        !self.folds_in(phase).is_empty() || !self.stores_in(phase).is_empty() || !self.totals_in(phase).is_empty()
    }

    /// One loop of lanes over a row, or over a part of it that begins at `start` (a variable and what it is multiplied by). What it folds, for each of the rows
    /// that go together.
    fn lane_loop(
        &mut self,
        phase: usize,
        groups: &[Group],
        start: Option<(Value, usize)>,
        length: Length,
    ) -> Result<Vec<Vec<(usize, Vec<Value>)>>> {
        let folding = self.folds_in(phase);
        let stores = self.stores_in(phase);
        let mut results: Vec<Vec<(usize, Vec<Value>)>> = Vec::new();
        let var = self.lower.emitter.value(Ty::I64);
        self.lower.emitter.begin();
        let depth = self.open.len();
        self.clear_point();
        match groups {
            [g] => {
                self.open.push((g.inner, Size::ONE, var));
                if let Some((v, times)) = start {
                    self.open.push((g.inner, times.into(), v));
                }
            }
            // The row does not lie in one run.
            _ => {
                self.flat =
                    Some(Flat { groups: groups.to_vec(), var, start, place: None, indices: vec![None; groups.len()] });
            }
        }
        let mut folds = Vec::new();
        self.each_row(|nest| {
            // What all rows read stays at hand.
            nest.points.clear();
            let mut late = Vec::new();
            for v in &stores {
                let elements = nest.member(*v)?;
                if nest.sharing.contains(v) {
                    late.push((*v, elements));
                } else {
                    nest.store(*v, &elements);
                }
            }
            let mut of_row: Vec<(usize, Vec<Value>)> = Vec::new();
            for &i in &folding {
                let e = &nest.p.equations()[i];
                let (op, _) = reduction(e.op()).ok_or_else(|| error!(Rule, "`{}` is no reduction", e.op().name()))?;
                let elements = nest.operand(i, 0)?;
                let mut made = Vec::new();
                for x in elements {
                    let ty = nest.lower.emitter.ty(x);
                    let result = nest.lower.emitter.value(ty);
                    folds.push(Fold { op: op.on(ty), value: x, result });
                    made.push(result);
                }
                of_row.push((nest.result(i), made));
            }
            nest.add_to_totals(phase, var)?;
            // What lay there before has been read by now.
            for (v, elements) in late {
                nest.store(v, &elements);
            }
            results.push(of_row);
            Ok(())
        })?;
        self.open.truncate(depth);
        self.flat = None;
        let body = self.lower.emitter.end();
        match length {
            Length::Of(size) => self.lower.emitter.lanes(var, size, folds, body),
            Length::Scalar(v) => {
                let ranges = self.lower.emitter.ranges();
                ranges.below(var, CHUNK.into());
                ranges.values.insert(v, Range { lo: Size::ZERO, hi: CHUNK.into() });
                if let Some((at, times)) = start {
                    ranges.joint.push(Joint { at, times, var, most: self.cluster.k - 1i64 });
                }
                self.lower.emitter.lanes_of(var, Int::Value(v), folds, body);
            }
        }
        self.clear_point();
        Ok(results)
    }

    /// A long row inside other loops: chunks one after the other.
    fn chunks(&mut self, groups: &[Group], k: usize) -> Result<Vec<(usize, Vec<Value>)>> {
        let full = k / CHUNK;
        let var = self.lower.emitter.value(Ty::I64);
        self.lower.emitter.begin();
        let parts = self.lane_loop(0, groups, Some((var, CHUNK)), Length::Of(CHUNK.into()))?;
        let mut carried = Vec::new();
        let mut inits = Vec::new();
        let mut results = Vec::new();
        for (v, elements) in parts.into_iter().flatten() {
            let op = self.fold_op(v)?;
            let mut made = Vec::new();
            for x in elements {
                let ty = self.lower.emitter.ty(x);
                let (init, param, result) =
                    (self.lower.emitter.value(ty), self.lower.emitter.value(ty), self.lower.emitter.value(ty));
                let next = self.lower.emitter.op(op.op(), &[param, x]);
                inits.push(Stmt::Let(init, Expr::Const(op.neutral(ty))));
                carried.push(Carried { init, param, next, result });
                made.push(result);
            }
            results.push((v, made));
        }
        let body = self.lower.emitter.end();
        inits.into_iter().for_each(|s| self.lower.emitter.push(s));
        self.lower.emitter.serial(var, full, carried, body);
        if !k.is_multiple_of(CHUNK) {
            let first = self.lower.emitter.int(full as i64);
            let rest = self.lane_loop(0, groups, Some((first, CHUNK)), Length::Of((k % CHUNK).into()))?;
            for ((v, so_far), (_, more)) in results.iter_mut().zip(rest.into_iter().flatten()) {
                let op = self.fold_op(*v)?;
                for (x, y) in so_far.iter_mut().zip(more) {
                    *x = self.lower.emitter.op(op.op(), &[*x, y]);
                }
            }
        }
        Ok(results)
    }

    pub(super) fn fold_op(&self, v: usize) -> Result<FoldOp> {
        let i = self.cluster.members.iter().find(|i| self.result(**i) == v);
        let ty = self.values.types[v].ok_or_else(|| error!(Rule, "no scalar type"))?;
        let fold = i.and_then(|i| reduction(self.p.equations()[*i].op()));
        fold.map(|(op, _)| op.on(ty)).ok_or_else(|| error!(Rule, "no reduction"))
    }

    /// One long row: threads fold chunks, then one folds what they made.
    fn long_row(&mut self, groups: &[Group]) -> Result<()> {
        let k = self.cluster.k;
        let pieces = (k + (CHUNK - 1)).floor_div(CHUNK);
        // Chunks of one length that is known, then the rest by itself; or the length of each is computed.
        let parts = match k.known() {
            Some(k) => vec![(0, k / CHUNK, Some(CHUNK)), (k / CHUNK, usize::from(k % CHUNK > 0), Some(k % CHUNK))],
            None => vec![(0, 1, None)],
        };
        let mut partial: Vec<(usize, Vec<(Buffer, Tag)>)> = Vec::new();
        // `rows` has opened the kernel's body.
        for (part, chunks, length) in parts {
            if chunks == 0 {
                continue;
            }
            if part > 0 {
                self.lower.emitter.begin();
            }
            let var = self.lower.emitter.value(Ty::I64);
            self.lower.emitter.begin();
            // The rest is chunk number `full`.
            let at = if part > 0 { self.lower.emitter.int(part as i64) } else { var };
            let lanes = match length {
                Some(length) => Length::Of(length.into()),
                None => {
                    let e = &mut self.lower.emitter;
                    let (most, all) = (e.int(CHUNK as i64), e.size(k));
                    let before = e.op(Op::Mul, &[at, most]);
                    let left = e.op(Op::Sub, &[all, before]);
                    Length::Scalar(e.op(Op::Min, &[left, most]))
                }
            };
            let results = self.lane_loop(0, groups, Some((at, CHUNK)), lanes)?;
            for (j, (v, elements)) in results.into_iter().flatten().enumerate() {
                if part == 0 || partial.len() <= j {
                    let tys: Vec<Ty> = elements.iter().map(|x| self.lower.emitter.ty(*x)).collect();
                    let buffers = tys.into_iter().map(|ty| {
                        let buffer = self.lower.new_scratch(ty, pieces);
                        (buffer, self.lower.tag(TagName::Partial))
                    });
                    let buffers = buffers.collect();
                    partial.push((v, buffers));
                }
                for (x, (b, tag)) in elements.iter().zip(&partial[j].1) {
                    let place = At::start().plus(at, 1usize);
                    self.lower.emitter.store(*b, place.clone(), *x, Meaning::of(*tag, place));
                }
            }
            let body = self.lower.emitter.end();
            let outer = if length.is_some() { Size::from(chunks) } else { pieces };
            self.lower.emitter.serial(var, outer, Vec::new(), body);
            let work = if part == 0 { self.work() } else { Work::alone() };
            self.finish_kernel(work, Vec::new());
        }
        for (v, buffers) in partial {
            let op = self.fold_op(v)?;
            let mut elements = Vec::new();
            for (b, tag) in buffers {
                let ty = self.lower.emitter.module.buffers[b.index()].ty;
                let init = self.lower.emitter.constant(ty, op.neutral(ty));
                let (var, param, result) =
                    (self.lower.emitter.value(Ty::I64), self.lower.emitter.value(ty), self.lower.emitter.value(ty));
                self.lower.emitter.begin();
                let place = At::start().plus(var, 1usize);
                let x = self.lower.emitter.load(b, place.clone(), Meaning::of(tag, place));
                let next = self.lower.emitter.op(op.op(), &[param, x]);
                let body = self.lower.emitter.end();
                self.lower.emitter.serial(var, pieces, vec![Carried { init, param, next, result }], body);
                let identity = self.lower.emitter.constant(ty, op.identity(ty));
                elements.push(finish_fold(&mut self.lower.emitter, op, identity, result));
            }
            self.lower.frame.reprs[v] = Some(Repr::Elements(elements));
        }
        Ok(())
    }
}
