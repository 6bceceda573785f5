//! Rows that go through the lane loops together. Where rows share more than the first cache holds, each element of it that is brought there serves all of them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Group, Nest};
use crate::error::Result;
use crate::ir::{Kind, Ty, Value};
use crate::lower::fusion::{CHUNK, Level};
use crate::size::Size;

/// So many rows go together. More would need more registers than there are.
const TOGETHER: usize = 2;
/// Fewer rows are not worth code for those that are left over.
const FEWEST_ROWS: usize = 8;
/// The bytes of what rows share that the first cache certainly has.
const FIRST_CACHE: usize = 24 << 10;

/// The rows that go together.
pub(super) struct Abreast {
    /// How many may.
    pub most: usize,
    /// How many do.
    count: usize,
    /// Which of them is worked on.
    pub now: usize,
    /// The cut dimension that they are neighbours along.
    along: usize,
    /// What there is of those behind the first.
    others: Vec<FxHashMap<usize, Vec<Value>>>,
}

impl Default for Abreast {
    fn default() -> Abreast {
        Abreast::of(1)
    }
}

impl Abreast {
    /// At most so many.
    pub(super) fn of(most: usize) -> Abreast {
        Abreast { most, count: 1, now: 0, along: 0, others: vec![FxHashMap::default(); most - 1] }
    }
}

impl Nest<'_, '_> {
    /// How many rows should go together.
    pub(super) fn rows_abreast(&self, row_groups: &[Group], lane_groups: &[Group]) -> usize {
        let ([.., rows], [lanes]) = (row_groups, lane_groups) else { return 1 };
        let k = self.cluster.k;
        let short = k.known().is_none_or(|k| k <= CHUNK);
        // Running totals take rows in one after the other.
        if !self.cluster.totals.is_empty() || !short || rows.extent.guess() < FEWEST_ROWS {
            return 1;
        }
        // A row that is left over inside of other loops is done in a loop beside the others': that it meets none of theirs is proved of known sizes only.
        let known = row_groups.iter().chain(lane_groups).all(|g| g.extent.known().is_some());
        if row_groups.len() > 1 && !known && !rows.extent.is_multiple_of(TOGETHER) {
            return 1;
        }
        // Nor can it be proved of other sizes that rows do not meet in an array that is read and written in place.
        if !known && self.writes_what_it_reads() {
            return 1;
        }
        // What a row keeps has memory of its own and one element at each point: only of such memory it can be proved that rows do not meet there.
        let kept = self.worth_keeping(true);
        let lends = || self.stored.keys().any(|v| self.is_point(*v));
        if kept.iter().any(|v| self.inside(*v) != 1) || (!kept.is_empty() && lends()) {
            return 1;
        }
        let mut seen = FxHashSet::default();
        let mut bytes = 0usize;
        for &i in &self.cluster.members {
            let at = self.works_at(i);
            for (slot, &a) in self.operands(i).iter().enumerate() {
                if at != Level::Point || self.member_of(i, slot).is_some() || self.is_picked(i, slot) {
                    continue;
                }
                let view = self.turned.get(&(i, slot)).cloned().or_else(|| self.lower.placed(self.values, a));
                let Some(view) = view else { continue };
                let l = self.lead_of(i, slot, at);
                let strides = self.strides(&view.strides, &view.dims, l, at);
                if strides[lanes.inner] == 0 || strides[rows.inner] != 0 {
                    continue;
                }
                let inside: usize = view.dims[l..].iter().map(|d| d.guess()).product();
                if seen.insert((view.buffer, view.base.offset)) {
                    // What could be anything is taken to be large: two rows at once lose nothing where it is not.
                    let length = k.known().unwrap_or(FIRST_CACHE);
                    bytes = bytes.saturating_add(length.saturating_mul(inside * self.p.ty(a).dtype().size()));
                }
            }
        }
        if bytes > FIRST_CACHE { TOGETHER } else { 1 }
    }

    /// Whether a member is stored where an operand lies.
    fn writes_what_it_reads(&self) -> bool {
        let slots = |i: usize| (0..self.operands(i).len()).map(move |slot| (i, slot));
        let mut from_outside = self.cluster.members.iter().flat_map(|i| slots(*i));
        from_outside.any(|(i, slot)| {
            let placed = || self.lower.placed(self.values, self.operands(i)[slot]);
            self.member_of(i, slot).is_none()
                && placed().is_some_and(|view| self.stored.values().any(|own| own.buffer == view.buffer))
        })
    }

    /// Does something for each of the rows that go together.
    pub(super) fn each_row(&mut self, mut f: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        f(self)?;
        for now in 1..self.abreast.count {
            let place = self.lower.emitter.int(now as i64);
            self.open.push((self.abreast.along, Size::ONE, place));
            self.abreast.now = now;
            std::mem::swap(&mut self.rows, &mut self.abreast.others[now - 1]);
            let done = f(self);
            std::mem::swap(&mut self.rows, &mut self.abreast.others[now - 1]);
            self.abreast.now = 0;
            self.open.pop();
            done?;
        }
        Ok(())
    }

    /// Loops over all rows around what is done with one, or with several at once and then with those that are left.
    pub(super) fn all_rows(&mut self, groups: &[Group], body: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let (Some((rows, outer)), true) = (groups.split_last(), self.abreast.most > 1) else {
            return self.nested(groups, &vec![Kind::Serial; groups.len()], body);
        };
        self.nested(outer, &vec![Kind::Serial; outer.len()], &mut |nest: &mut Self| {
            nest.rows_together(rows, body)?;
            nest.rows_left(rows, body)
        })
    }

    /// The loop over all rows that go together.
    pub(super) fn rows_together(&mut self, rows: &Group, body: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let most = self.abreast.most;
        (self.abreast.count, self.abreast.along) = (most, rows.inner);
        let steps = Group { extent: rows.extent.floor_div(most), step: most, ..rows.clone() };
        let done = self.nested(&[steps], &[Kind::Serial], body);
        self.abreast.count = 1;
        done
    }

    /// How many rows are left behind those.
    pub(super) fn count_left(&self, rows: &Group) -> Size {
        rows.extent.modulo(self.abreast.most)
    }

    /// The loop over the rows that are left.
    pub(super) fn rows_left(&mut self, rows: &Group, body: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let (most, left) = (self.abreast.most, self.count_left(rows));
        if left == 0 {
            return Ok(());
        }
        let (var, first) = (self.lower.emitter.value(Ty::I64), self.lower.emitter.size(rows.extent.floor_div(most)));
        self.lower.emitter.begin();
        self.open.extend([(rows.inner, most.into(), first), (rows.inner, Size::ONE, var)]);
        let done = body(self);
        self.open.truncate(self.open.len() - 2);
        let stmts = self.lower.emitter.end();
        self.lower.emitter.counted(Kind::Serial, var, left, stmts);
        done
    }
}
