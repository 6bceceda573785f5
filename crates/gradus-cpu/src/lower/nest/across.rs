//! Rows side by side: a lane for each row, and what is reduced goes in a loop inside. Short rows leave most lanes of a loop along them idle; where all rows share what
//! they are made of, lanes across them are always full.
//!
//! How long a row is may be known only when it runs. Then there are both codes, and sizes choose.

use rustc_hash::FxHashMap;

use super::{Group, Nest};
use crate::error::Result;
use crate::ir::meaning::Meaning;
use crate::ir::{Buffer, Carried, Expr, FoldOp, Kind, LANES, Op, Stmt, Switch, Ty, Value};
use crate::lower::fusion::{Class, Level};
use crate::lower::views::At;
use crate::size::Size;

/// Rows of fewer elements go side by side: two steps of all lanes of a fold are worth going along.
const SHORT: usize = 2 * LANES;
/// Fewer rows do not fill lanes.
const FEWEST: usize = LANES / 2;

impl Nest<'_, '_> {
    /// Rows that are perhaps short and all share what they are made of; `by_row` writes them one after the other, where they are not.
    pub(super) fn rows_or_across(&mut self, by_row: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some((rows, row)) = self.goes_across() else { return by_row(self) };
        let count = rows.last().map_or(Size::ONE, |g| g.extent);
        if row.extent.known().is_some() && count.known().is_some() {
            return self.across(&rows, &row);
        }
        let e = &mut self.lower.emitter;
        let (short, many) = (e.int(SHORT as i64), e.int(FEWEST as i64));
        let (length, count) = (e.size(row.extent), e.size(count));
        let is_short = e.op(Op::Lt, &[length, short]);
        let are_many = e.op(Op::Le, &[many, count]);
        let both = e.op(Op::And, &[is_short, are_many]);
        let index = e.convert(both, Ty::I64);
        e.begin();
        self.across(&rows, &row)?;
        let across = self.lower.emitter.end();
        self.lower.emitter.begin();
        by_row(self)?;
        let by_row = self.lower.emitter.end();
        let cases = vec![(by_row, Vec::new()), (across, Vec::new())];
        self.lower.emitter.push(Stmt::Switch(Box::new(Switch { index, cases, results: Vec::new() })));
        Ok(())
    }

    /// The loops over rows, and the one along a row, if rows may go side by side: no order of theirs can be told from the results, and nothing is made twice that takes long.
    fn goes_across(&self) -> Option<(Vec<Group>, Group)> {
        let k = self.cluster.k;
        if k.known().is_some_and(|k| k >= SHORT) || self.cluster.n == k || !self.cluster.totals.is_empty() {
            return None;
        }
        let accesses = self.accesses();
        let first = self.row_cuts();
        let rows = self.groups(0..first, &accesses);
        let lanes = self.groups(first..self.cuts.len(), &accesses);
        let [row] = &lanes[..] else { return None };
        let last = rows.last().filter(|g| g.extent.guess() >= FEWEST)?;
        // What differs along rows and from row to row is read along rows.
        let shared = |strides: &Vec<Size>| strides[last.inner] == 0 || strides[row.inner] == 0;
        let mut members = self.cluster.members.iter();
        let fits = members.all(|i| self.fits_across(*i)) && accesses.iter().all(shared);
        let again = self.worth_keeping(false);
        (fits && again.is_empty()).then(|| (rows.clone(), row.clone()))
    }

    /// Whether a member can be made where rows go side by side.
    fn fits_across(&self, i: usize) -> bool {
        let v = self.result(i);
        if self.plan.classes[i] == Class::Row {
            let rounds = self.values.types[v].is_none_or(|ty| ty.is_float());
            return self.fold_op(v).is_ok_and(|op| !rounds || matches!(op, FoldOp::Max | FoldOp::Min));
        }
        // What has a value at each point would be written across rows.
        let written = self.is_point(v) && self.stored.contains_key(&v);
        !written && (0..self.operands(i).len()).all(|slot| !self.is_picked(i, slot))
    }

    /// All rows, a lane for each.
    fn across(&mut self, rows: &[Group], row: &Group) -> Result<()> {
        let last_phase = self.phases.values().copied().max().unwrap_or(0);
        let kinds: Vec<Kind> =
            (0..rows.len()).map(|g| if g + 1 == rows.len() { Kind::Lanes } else { Kind::Serial }).collect();
        self.lower.emitter.begin();
        self.nested(rows, &kinds, &mut |nest: &mut Self| {
            nest.rows.clear();
            nest.clear_point();
            nest.read_of_row(row)?;
            let of_row = nest.loaded.clone();
            for phase in 0..=last_phase {
                nest.phase = phase;
                nest.make_row_values(phase)?;
                let folded = nest.folded_inside(phase, row, &of_row)?;
                nest.rows.extend(folded);
            }
            nest.phase = last_phase + 1;
            nest.store_row()
        })?;
        self.rows.clear();
        self.clear_point();
        self.phase = 0;
        self.finish_kernel(self.work(), Vec::new());
        Ok(())
    }

    /// Reads what is the same all along a row, once.
    fn read_of_row(&mut self, row: &Group) -> Result<()> {
        for &i in &self.cluster.members {
            let at = self.works_at(i);
            for slot in 0..self.operands(i).len() {
                if at != Level::Point || self.member_of(i, slot).is_some() {
                    continue;
                }
                let a = self.operands(i)[slot];
                let view = self.real_view(a);
                let dims = self.values.dims(a).clone();
                let along = self.strides(&view.strides, &dims, self.lead_of(i, slot, at), at)[row.inner];
                if along == 0 {
                    self.operand(i, slot)?;
                }
            }
        }
        Ok(())
    }

    /// The loop along the rows of a lane loop, for everything that it folds; `of_row` is at hand already.
    fn folded_inside(
        &mut self,
        phase: usize,
        row: &Group,
        of_row: &FxHashMap<(Buffer, At), (Value, Meaning)>,
    ) -> Result<Vec<(usize, Vec<Value>)>> {
        let folding = self.folds_in(phase);
        if folding.is_empty() {
            return Ok(Vec::new());
        }
        let var = self.lower.emitter.value(Ty::I64);
        let (mut inits, mut carried, mut all) = (Vec::new(), Vec::new(), Vec::new());
        self.lower.emitter.begin();
        self.open.push((row.inner, Size::ONE, var));
        self.points.clear();
        self.loaded.clone_from(of_row);
        for i in folding {
            let v = self.result(i);
            let op = self.fold_op(v)?;
            let mut made = Vec::new();
            for x in self.operand(i, 0)? {
                let e = &mut self.lower.emitter;
                let ty = e.ty(x);
                let [init, param, result] = [0; 3].map(|_| e.value(ty));
                let next = e.op(op.op(), &[param, x]);
                inits.push((init, op.neutral(ty)));
                carried.push(Carried { init, param, next, result });
                made.push(result);
            }
            all.push((v, made));
        }
        self.open.pop();
        self.points.clear();
        self.loaded.clone_from(of_row);
        let e = &mut self.lower.emitter;
        let body = e.end();
        for (init, bits) in inits {
            e.push(Stmt::Let(init, Expr::Const(bits)));
        }
        e.serial(var, row.extent, carried, body);
        Ok(all)
    }
}
