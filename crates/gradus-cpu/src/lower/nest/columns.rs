//! Reductions over outer loops: one lane for each result, the reduced loops inside.

use super::{Group, Nest, WORTH_THREADS};
use crate::error::{Result, error};
use crate::ir::{Carried, FoldOp, Kind, Stmt, Ty, Value};
use crate::lower::fusion::{Class, Level, lead, reduction};
use crate::lower::scalars::finish_fold;
use crate::lower::values::NOWHERE;
use crate::lower::views::{Strides, View, count};

impl Nest<'_, '_> {
    /// Columns: one lane for each result, the reduced loops inside.
    pub(super) fn columns(&mut self) -> Result<()> {
        let i = *self
            .cluster
            .members
            .iter()
            .find(|i| self.plan.classes[**i] == Class::Column)
            .ok_or_else(|| error!(Rule, "a column nest without a reduction"))?;
        let e = &self.p.equations()[i];
        let v = self.result(i);
        let (_, axes) = reduction(e.op()).ok_or_else(|| error!(Rule, "no reduction"))?;
        let op = self.fold_op(v)?;
        let dims = self.values.dims(self.p.operands(e)[0]).clone();
        // Which cut dimensions are reduced: those of the reduced axes.
        let mut view = View::dense(NOWHERE, &dims);
        view.strides = (0..dims.len()).map(|a| i64::from(axes.contains(&a))).collect::<Strides>();
        let marked: Vec<bool> = self
            .strides(&view, &dims, lead(&dims, self.cluster.n).unwrap_or(0), Level::Point)
            .iter()
            .map(|s| *s != 0)
            .collect();
        // The result's strides along the kept ones.
        let inside = count(&dims) / self.cluster.n.max(1);
        let mut own = vec![0; self.cuts.len()];
        let mut s = inside as i64;
        for j in (0..self.cuts.len()).rev().filter(|j| !marked[*j]) {
            own[j] = s;
            s *= self.cuts[j] as i64;
        }
        let mut accesses = self.accesses();
        let stored: Vec<usize> = self
            .cluster
            .members
            .iter()
            .map(|i| self.result(*i))
            .filter(|w| *w != v && self.stored.contains_key(w))
            .collect();
        accesses.extend(stored.iter().filter_map(|w| self.own_strides(*w)).map(|(strides, _)| strides));
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
        let total = self.total_cost();
        let Some(outer) = kept.first().map(|g| g.extent) else {
            return Err(error!(Rule, "columns without a kept axis"));
        };
        let View { buffer, base, .. } =
            self.stored.get(&v).cloned().ok_or_else(|| error!(Rule, "a column sum that nobody reads"))?;
        let ty = self.lower.emitter.module.buffers[buffer.index()].ty;
        let lanes = kept.len() - 1;
        let kinds: Vec<Kind> = (0..kept.len()).map(|i| if i == lanes { Kind::Lanes } else { Kind::Serial }).collect();
        self.lower.emitter.begin();
        self.nested(&kept, &kinds, &mut |nest: &mut Self| {
            let init = nest.lower.emitter.constant(ty, op.neutral(ty));
            let totals = nest.reduce_inside(i, &reduced, op, &vec![init; inside], &stored)?;
            let identity = nest.lower.emitter.constant(ty, op.identity(ty));
            for (k, total) in totals.into_iter().enumerate() {
                let result = finish_fold(&mut nest.lower.emitter, op, identity, total);
                let at = nest.place(&base, &own, k as i64);
                nest.lower.emitter.store(buffer, at, result);
            }
            Ok(())
        })?;
        self.finish_kernel(total > WORTH_THREADS, outer, total, Vec::new());
        Ok(())
    }

    /// The reduced loops of a column, from the outermost; one total for each element of a point.
    fn reduce_inside(
        &mut self,
        i: usize,
        groups: &[Group],
        op: FoldOp,
        init: &[Value],
        stored: &[usize],
    ) -> Result<Vec<Value>> {
        let Some((g, rest)) = groups.split_first() else {
            self.clear_point();
            for w in stored {
                let elements = self.member(*w)?;
                self.store(*w, &elements);
            }
            let elements = self.operand(i, self.p.operands(&self.p.equations()[i])[0])?;
            return Ok(init.iter().zip(elements).map(|(t, x)| self.lower.emitter.op(op.op(), &[*t, x])).collect());
        };
        let ty = self.lower.emitter.ty(init[0]);
        let var = self.lower.emitter.value(Ty::I64);
        let params: Vec<Value> = init.iter().map(|_| self.lower.emitter.value(ty)).collect();
        self.lower.emitter.begin();
        self.open.push((g.inner, 1, var));
        let nexts = self.reduce_inside(i, rest, op, &params, stored);
        self.open.pop();
        let body = self.lower.emitter.end();
        let mut carried = Vec::new();
        for ((init, param), next) in init.iter().zip(&params).zip(nexts?) {
            let result = self.lower.emitter.value(ty);
            carried.push(Carried { init: *init, param: *param, next, result });
        }
        let results = carried.iter().map(|c| c.result).collect();
        self.lower.emitter.push(Stmt::serial(var, g.extent, carried, body));
        Ok(results)
    }
}
