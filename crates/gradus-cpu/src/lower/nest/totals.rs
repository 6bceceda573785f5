//! Sums over all rows in the nest that makes the rows: running totals in memory, one for each lane of a chunk or for each column.

use super::{Group, Nest};
use crate::cost::Work;
use crate::error::{Result, error};
use crate::ir::meaning::{Meaning, TagName};
use crate::ir::{Buffer, Carried, Fold, FoldOp, LANES, Op, Ty, Value};
use crate::lower::fusion::{CHUNK, Class};
use crate::lower::scalars::finish_fold;
use crate::lower::values::Repr;
use crate::lower::views::{At, count};
use crate::size::Size;

impl Nest<'_, '_> {
    pub(super) fn is_total(&self, i: usize) -> bool {
        self.cluster.totals.contains(&i)
    }

    /// Whether it is a total of everything, and not one for each column.
    pub(super) fn is_flat(&self, i: usize) -> bool {
        self.plan.classes[i] == Class::Row
    }

    /// How many chunks the totals of everything go through. Totals join only nests of a known size.
    pub(super) fn chunk_count(&self) -> usize {
        self.cluster.n.known().map_or(1, |n| n.div_ceil(CHUNK))
    }

    pub(super) fn has_flat_totals(&self) -> bool {
        self.cluster.totals.iter().any(|i| self.is_flat(*i))
    }

    /// Which lane loop each total belongs to. `operands`: the one in which its operand can first be computed.
    pub(super) fn place_totals(&mut self, operands: &[(usize, usize)]) {
        // The last lane loop has no folds of rows, so that it can be cut into steps of one element for each lane. All
        // columns are taken in together: they often read the same.
        let last = self.phases.values().copied().max().unwrap_or(0);
        let columns = operands.iter().filter(|(i, _)| !self.is_flat(*i)).map(|(_, phase)| *phase).max().unwrap_or(0);
        for (i, _) in operands {
            self.phases.insert(self.result(*i), if self.is_flat(*i) { last } else { columns });
        }
    }

    pub(super) fn totals_in(&self, phase: usize) -> Vec<usize> {
        let totals = self.cluster.totals.iter().copied();
        totals.filter(|i| self.phases[&self.result(*i)] == phase).collect()
    }

    /// The lane loop is cut into steps of one element for each lane.
    pub(super) fn in_steps(&self, phase: usize) -> bool {
        self.totals_in(phase).iter().any(|i| self.is_flat(*i))
    }

    /// Memory for the totals, with nothing in it yet.
    pub(super) fn begin_totals(&mut self) -> Result<()> {
        if self.cluster.totals.is_empty() {
            return Ok(());
        }
        self.lower.emitter.begin();
        for &i in &self.cluster.totals {
            let v = self.result(i);
            let ty = self.values.types[v].ok_or_else(|| error!(Rule, "no scalar type"))?;
            let inside = self.elements_of(i)?;
            let elements = match self.is_flat(i) {
                true => Size::from(self.chunk_count() * LANES),
                false => self.cluster.k * inside,
            };
            let (buffer, base) = match self.is_flat(i) || inside > 1 {
                true => (self.lower.new_scratch(ty, elements), At::start()),
                // Columns of single elements lie where their sums will.
                false => self.home_of_total(v)?,
            };
            self.running.insert(v, (buffer, base.clone()));
            let partial = self.lower.tag(TagName::Partial);
            self.partial.insert(v, partial);
            let e = &mut self.lower.emitter;
            let var = e.value(Ty::I64);
            e.begin();
            let nothing = e.constant(ty, FoldOp::Add.neutral(ty));
            let meaning = Meaning::of(partial, At::start().plus(var, 1usize));
            e.store(buffer, base.plus(var, 1usize), nothing, meaning);
            let body = e.end();
            e.lanes(var, elements, Vec::new(), body);
        }
        let body = self.lower.emitter.end();
        self.lower.push_kernel("begin_totals", Vec::new(), Work::alone(), body);
        Ok(())
    }

    /// Where the sums of columns come.
    fn home_of_total(&self, v: usize) -> Result<(Buffer, At)> {
        let view = self.stored.get(&v).ok_or_else(|| error!(Rule, "a total that nobody reads"))?;
        Ok((view.buffer, view.base.clone()))
    }

    /// Where a total lies while it runs: the columns of each element of a point behind those of the one before.
    fn total_place(&self, v: usize) -> Result<(Buffer, At)> {
        self.running.get(&v).cloned().ok_or_else(|| error!(Rule, "a total that has not begun"))
    }

    /// Elements of each point that have columns of their own.
    pub(super) fn elements_of(&self, i: usize) -> Result<usize> {
        let inside = count(self.values.dims(self.operands(i)[0])).over(self.cluster.n).and_then(Size::known);
        inside.ok_or_else(|| error!(Rule, "columns of points without a size"))
    }

    /// Adds the current point to the totals of a lane loop with this variable.
    pub(super) fn add_to_totals(&mut self, phase: usize, var: Value) -> Result<()> {
        for i in self.totals_in(phase) {
            let elements = self.operand(i, 0)?;
            let (buffer, base) = self.total_place(self.result(i))?;
            let partial = self.partial[&self.result(i)];
            if self.is_flat(i) {
                let mut at = base.plus(var, 1usize);
                let mut element = At::start().plus(var, 1usize);
                if let Some(chunk) = self.chunk {
                    at = at.plus(chunk, LANES);
                    element = element.plus(chunk, LANES);
                }
                let meaning = Meaning::of(partial, element);
                let e = &mut self.lower.emitter;
                let so_far = e.load(buffer, at.clone(), meaning.clone());
                let sum = e.op(Op::Add, &[so_far, elements[0]]);
                e.store(buffer, at, sum, meaning.again());
            } else {
                let mut own = vec![Size::ZERO; self.cuts.len()];
                let mut s = Size::ONE;
                for j in (self.row_cuts()..self.cuts.len()).rev() {
                    own[j] = s;
                    s = s * self.cuts[j];
                }
                for (nth, x) in elements.into_iter().enumerate() {
                    let behind = self.cluster.k * nth;
                    let at = self.place(&base, &own, behind);
                    let meaning = self.meaning(partial, &At::start(), &own, behind);
                    let e = &mut self.lower.emitter;
                    let so_far = e.load(buffer, at.clone(), meaning.clone());
                    let sum = e.op(Op::Add, &[so_far, x]);
                    e.store(buffer, at, sum, meaning.again());
                }
            }
        }
        Ok(())
    }

    /// The rows of each chunk in a loop around the rows, if they can be had so.
    pub(super) fn rows_by_chunk(&self, row_groups: &[Group]) -> Option<Group> {
        let chunks = self.chunk_count();
        match row_groups {
            [g] if self.has_flat_totals() && chunks > 1 => Some(Group::new(g.extent.over(chunks.into())?, g.inner)),
            _ => None,
        }
    }

    /// The chunk of the current row, from the variables of the loops over rows.
    pub(super) fn chunk_of_row(&mut self, row_groups: &[Group]) -> Value {
        let rows = self.open.iter().map(|(_, _, var)| *var).collect::<Vec<_>>();
        let e = &mut self.lower.emitter;
        let mut row = e.int(0);
        for (g, var) in row_groups.iter().zip(rows) {
            let extent = e.size(g.extent);
            let before = e.op(Op::Mul, &[row, extent]);
            row = e.op(Op::Add, &[before, var]);
        }
        let chunk = super::quotient(e, row, Size::from(CHUNK).over(self.cluster.k).unwrap_or(Size::ONE));
        let chunks = self.chunk_count();
        self.lower.emitter.ranges().below(chunk, chunks.into());
        chunk
    }

    /// From running totals to results.
    pub(super) fn end_totals(&mut self) -> Result<()> {
        if self.cluster.totals.is_empty() {
            return Ok(());
        }
        let mut outputs = Vec::new();
        self.lower.emitter.begin();
        for &i in &self.cluster.totals {
            let v = self.result(i);
            let (buffer, base) = self.total_place(v)?;
            let chunks = self.chunk_count();
            let (flat, k) = (self.is_flat(i), self.cluster.k);
            let columns = if flat { None } else { Some((self.elements_of(i)?, self.home_of_total(v)?)) };
            let (partial, tag) = (self.partial[&v], self.values.tag(v));
            let e = &mut self.lower.emitter;
            let ty = e.module.buffers[buffer.index()].ty;
            let identity = e.constant(ty, FoldOp::Add.identity(ty));
            let var = e.value(Ty::I64);
            e.begin();
            let Some((elements, (home, first))) = columns else {
                // The lanes of each chunk, and the chunks one after the other.
                let (lane, x, chunk) = (e.value(Ty::I64), e.value(ty), e.value(ty));
                e.begin();
                let element = At::start().plus(lane, 1usize).plus(var, LANES);
                let total = e.load(buffer, base.plus(lane, 1usize).plus(var, LANES), Meaning::of(partial, element));
                let body = e.end();
                e.lanes(lane, LANES, vec![Fold { op: FoldOp::Add, value: total, result: chunk }], body);
                let next = e.op(Op::Add, &[x, chunk]);
                let body = e.end();
                let (init, result) = (e.constant(ty, FoldOp::Add.neutral(ty)), e.value(ty));
                e.serial(var, chunks, vec![Carried { init, param: x, next, result }], body);
                let result = finish_fold(e, FoldOp::Add, identity, result);
                outputs.push(result);
                self.lower.frame.reprs[v] = Some(Repr::Elements(vec![result]));
                continue;
            };
            for nth in 0..elements {
                let behind = k * nth;
                let element = At::start().plus(var, 1usize).further(behind);
                let total =
                    e.load(buffer, base.clone().plus(var, 1usize).further(behind), Meaning::of(partial, element));
                let result = finish_fold(e, FoldOp::Add, identity, total);
                let element = At::start().plus(var, elements).further(nth);
                e.store(home, first.clone().plus(var, elements).further(nth), result, Meaning::of(tag, element));
            }
            let body = e.end();
            e.lanes(var, k, Vec::new(), body);
        }
        let body = self.lower.emitter.end();
        self.lower.push_kernel("end_totals", outputs, Work::alone(), body);
        Ok(())
    }
}
