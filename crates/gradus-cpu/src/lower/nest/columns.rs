//! Reductions over outer loops: one lane for each result, the reduced loops inside.

use super::{Group, Nest};
use crate::error::{Result, error};
use crate::ir::meaning::{Meaning, Tag, TagName};
use crate::ir::{Buffer, Carried, FoldOp, Kind, Ty, Value};
use crate::lower::fusion::{CHUNK, Class, Level, lead, reduction};
use crate::lower::scalars::finish_fold;
use crate::lower::views::{At, Strides, View, count};
use crate::size::Size;

/// Columns of a tile: their totals stay in the first cache, and a row of them is a run that the memory likes.
const TILE: usize = 512;

impl Nest<'_, '_> {
    /// Columns: one lane for each result, the reduced loops inside.
    pub(super) fn columns(&mut self) -> Result<()> {
        let sums: Vec<usize> =
            self.cluster.members.iter().copied().filter(|i| self.plan.classes[*i] == Class::Column).collect();
        // All of them are over the same axes of the same points; how many elements a point has may differ.
        let i = *sums.first().ok_or_else(|| error!(Rule, "a column nest without a reduction"))?;
        let e = &self.p.equations()[i];
        let (_, axes) = reduction(e.op()).ok_or_else(|| error!(Rule, "no reduction"))?;
        let dims = self.values.dims(self.p.operands(e)[0]).clone();
        // Which cut dimensions are reduced: those of the reduced axes.
        let along: Strides = (0..dims.len()).map(|a| Size::from(i64::from(axes.contains(&a)))).collect();
        let marked: Vec<bool> = self
            .strides(&along, &dims, lead(&dims, self.cluster.n).unwrap_or(0), Level::Point)
            .iter()
            .map(|s| *s != Size::ZERO)
            .collect();
        // The result's strides along the kept ones.
        let of_one =
            |i: &usize| count(self.values.dims(self.operands(*i)[0])).over(self.cluster.n).and_then(Size::known);
        let insides = sums.iter().map(of_one).collect::<Option<Vec<usize>>>();
        let insides = insides.ok_or_else(|| error!(Rule, "columns of points without a size"))?;
        let mut own = vec![Size::ZERO; self.cuts.len()];
        let mut s = Size::ONE;
        for j in (0..self.cuts.len()).rev().filter(|j| !marked[*j]) {
            own[j] = s;
            s = s * self.cuts[j];
        }
        self.turn_operands((0..self.cuts.len()).rev().find(|j| !marked[*j] && self.cuts[*j] != 1))?;
        let mut accesses = self.accesses();
        let stored: Vec<usize> = self
            .cluster
            .members
            .iter()
            .filter(|i| !sums.contains(i))
            .map(|i| self.result(*i))
            .filter(|w| self.stored.contains_key(w))
            .collect();
        accesses.push(own.clone());
        // Neighbours join only if both are kept or both reduced.
        let grouped = |reduced: bool, nest: &Self| -> Vec<Group> {
            let mut all = Vec::new();
            let mut j = 0;
            while j < nest.cuts.len() {
                let end = (j..nest.cuts.len()).take_while(|x| marked[*x] == marked[j]).last().map_or(j, |x| x + 1);
                if marked[j] == reduced {
                    all.extend(nest.groups(j..end, &accesses));
                }
                j = end;
            }
            all
        };
        let kept = grouped(false, self);
        let reduced = grouped(true, self);
        if kept.is_empty() {
            return Err(error!(Rule, "columns without a kept axis"));
        }
        if let [g] = &kept[..]
            && insides.iter().all(|inside| *inside == 1)
            && g.extent.is_multiple_of(TILE)
            && !self.cluster.n.at_most(CHUNK)
        {
            self.lower.emitter.begin();
            self.tiles(&sums, g, &reduced, &own, &stored)?;
            self.finish_kernel(self.work(), Vec::new());
            return Ok(());
        }
        let lanes = kept.len() - 1;
        let kinds: Vec<Kind> = (0..kept.len()).map(|i| if i == lanes { Kind::Lanes } else { Kind::Serial }).collect();
        self.lower.emitter.begin();
        self.nested(&kept, &kinds, &mut |nest: &mut Self| {
            let mut ops = Vec::new();
            let mut init = Vec::new();
            for (&i, &inside) in sums.iter().zip(&insides) {
                let (v, op) = (nest.result(i), nest.fold_op(nest.result(i))?);
                let ty = nest.values.types[v].ok_or_else(|| error!(Rule, "no scalar type"))?;
                let nothing = nest.lower.emitter.constant(ty, op.neutral(ty));
                ops.extend(std::iter::repeat_n(op, inside));
                init.extend(std::iter::repeat_n(nothing, inside));
            }
            let totals = nest.reduce_inside(&sums, &reduced, &ops, &init, &stored)?;
            let mut left = &totals[..];
            for (i, &inside) in sums.iter().zip(&insides) {
                let (totals, others) = left.split_at(inside);
                left = others;
                let own: Vec<Size> = own.iter().map(|s| *s * inside).collect();
                let v = nest.result(*i);
                let op = nest.fold_op(v)?;
                let View { buffer, base, .. } =
                    nest.stored.get(&v).cloned().ok_or_else(|| error!(Rule, "a column sum that nobody reads"))?;
                for (k, total) in totals.iter().enumerate() {
                    let ty = nest.lower.emitter.ty(*total);
                    let identity = nest.lower.emitter.constant(ty, op.identity(ty));
                    let result = finish_fold(&mut nest.lower.emitter, op, identity, *total);
                    let at = nest.place(&base, &own, k.into());
                    let meaning = nest.meaning(nest.values.tag(v), &At::start(), &own, k.into());
                    nest.lower.emitter.store(buffer, at, result, meaning);
                }
            }
            Ok(())
        })?;
        self.finish_kernel(self.work(), Vec::new());
        Ok(())
    }

    /// Tiles of neighbouring columns with their totals in memory, the reduced loops outside of the lanes: large arrays are read
    /// in long runs and not a few elements from each row.
    fn tiles(&mut self, sums: &[usize], kept: &Group, reduced: &[Group], own: &[Size], stored: &[usize]) -> Result<()> {
        let tile = self.lower.emitter.value(Ty::I64);
        let partial = self.lower.tag(TagName::Partial);
        self.lower.emitter.begin();
        self.open.push((kept.inner, TILE.into(), tile));
        let lanes = Group { extent: TILE.into(), inner: kept.inner };
        self.nested(std::slice::from_ref(&lanes), &[Kind::Lanes], &mut |nest: &mut Self| {
            for &i in sums {
                let (op, buffer, at, meaning) = nest.total_at(i, own, partial)?;
                let ty = nest.lower.emitter.module.buffers[buffer.index()].ty;
                let nothing = nest.lower.emitter.constant(ty, op.neutral(ty));
                nest.lower.emitter.store(buffer, at, nothing, meaning);
            }
            Ok(())
        })?;
        let mut order = reduced.to_vec();
        order.push(lanes.clone());
        let mut kinds = vec![Kind::Serial; reduced.len()];
        kinds.push(Kind::Lanes);
        self.nested(&order, &kinds, &mut |nest: &mut Self| {
            nest.clear_point();
            for w in stored {
                let elements = nest.member(*w)?;
                nest.store(*w, &elements);
            }
            for &i in sums {
                let x = nest.operand(i, 0)?[0];
                let (op, buffer, at, meaning) = nest.total_at(i, own, partial)?;
                let so_far = nest.lower.emitter.load(buffer, at.clone(), meaning.clone());
                let sum = nest.lower.emitter.op(op.op(), &[so_far, x]);
                nest.lower.emitter.store(buffer, at, sum, meaning.again());
            }
            Ok(())
        })?;
        self.nested(std::slice::from_ref(&lanes), &[Kind::Lanes], &mut |nest: &mut Self| {
            for &i in sums {
                let (op, buffer, at, meaning) = nest.total_at(i, own, partial)?;
                let total = nest.lower.emitter.load(buffer, at.clone(), meaning.clone());
                let ty = nest.lower.emitter.ty(total);
                let identity = nest.lower.emitter.constant(ty, op.identity(ty));
                let result = finish_fold(&mut nest.lower.emitter, op, identity, total);
                let meaning = Meaning { tag: nest.values.tag(nest.result(i)), ..meaning };
                nest.lower.emitter.store(buffer, at, result, meaning);
            }
            Ok(())
        })?;
        self.open.pop();
        let body = self.lower.emitter.end();
        self.lower.emitter.serial(tile, kept.extent.floor_div(TILE), Vec::new(), body);
        Ok(())
    }

    /// How a sum combines, where its total for the current column is, and what that is.
    fn total_at(&mut self, i: usize, own: &[Size], partial: Tag) -> Result<(FoldOp, Buffer, At, Meaning)> {
        let v = self.result(i);
        let op = self.fold_op(v)?;
        let View { buffer, base, .. } =
            self.stored.get(&v).cloned().ok_or_else(|| error!(Rule, "a column sum that nobody reads"))?;
        let meaning = self.meaning(partial, &At::start(), own, Size::ZERO);
        Ok((op, buffer, self.place(&base, own, Size::ZERO), meaning))
    }

    /// The reduced loops of a column, from the outermost; one total for each sum and element of a point.
    fn reduce_inside(
        &mut self,
        sums: &[usize],
        groups: &[Group],
        ops: &[FoldOp],
        init: &[Value],
        stored: &[usize],
    ) -> Result<Vec<Value>> {
        let Some((g, rest)) = groups.split_first() else {
            self.clear_point();
            for w in stored {
                let elements = self.member(*w)?;
                self.store(*w, &elements);
            }
            let mut elements = Vec::new();
            for &i in sums {
                elements.extend(self.operand(i, 0)?);
            }
            let sums = init.iter().zip(elements).zip(ops);
            return Ok(sums.map(|((t, x), op)| self.lower.emitter.op(op.op(), &[*t, x])).collect());
        };
        let var = self.lower.emitter.value(Ty::I64);
        let types: Vec<Ty> = init.iter().map(|x| self.lower.emitter.ty(*x)).collect();
        let params: Vec<Value> = types.iter().map(|ty| self.lower.emitter.value(*ty)).collect();
        self.lower.emitter.begin();
        self.open.push((g.inner, Size::ONE, var));
        let nexts = self.reduce_inside(sums, rest, ops, &params, stored);
        self.open.pop();
        let body = self.lower.emitter.end();
        let mut carried = Vec::new();
        for (((init, param), next), ty) in init.iter().zip(&params).zip(nexts?).zip(types) {
            let result = self.lower.emitter.value(ty);
            carried.push(Carried { init: *init, param: *param, next, result });
        }
        let results = carried.iter().map(|c| c.result).collect();
        self.lower.emitter.serial(var, g.extent, carried, body);
        Ok(results)
    }
}
