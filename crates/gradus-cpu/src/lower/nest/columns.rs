//! Reductions over outer loops: one lane for each result, the reduced loops inside. Large arrays go in tiles of neighbouring columns and groups of rows: they
//! are read in long runs, and not a few elements from each row.

use gradus_core::primitives::reduce::{ArgMax, ArgMin};

use super::{Group, Nest, leading};
use crate::cost::Work;
use crate::error::{Result, error};
use crate::ir::meaning::{Tag, TagName};
use crate::ir::{Buffer, Carried, FoldOp, Kind, Op, Ty, Value};
use crate::lower::fusion::{CHUNK, Class, Level, reduced_axes, short_run};
use crate::lower::scalars::{combined, finish_fold};
use crate::lower::views::{At, Strides, View};
use crate::lower::walk::{ROWS, WIDEST, tile_width};
use crate::size::Size;

/// What a column comes to: for each of the elements that a point has.
struct Total {
    equation: usize,
    inside: usize,
    kind: Comes,
}

enum Comes {
    Fold(FoldOp),
    /// The place of the extreme number: carried beside that number.
    Place {
        largest: bool,
        axis: usize,
    },
}

impl Comes {
    /// How many numbers say how far a column has come.
    fn width(&self) -> usize {
        match self {
            Comes::Fold(_) => 1,
            Comes::Place { .. } => 2,
        }
    }
}

/// Rows that have totals of their own, where one would wait for the other.
const BESIDE: usize = 4;
/// So many rows are worth that. Tiles have fewer at a time, and more columns.
const LONG: usize = 16;

/// Where numbers of columns lie that have come so far.
struct Running {
    buffer: Buffer,
    base: At,
    tag: Tag,
}

impl Nest<'_, '_> {
    /// Columns: one lane for each result, the reduced loops inside.
    pub(super) fn columns(&mut self) -> Result<()> {
        let members = self.cluster.members.iter().copied();
        let members: Vec<usize> = members.filter(|i| self.plan.classes[*i] == Class::Column).collect();
        let totals = members.iter().map(|i| self.total(*i)).collect::<Result<Vec<Total>>>()?;
        // All of them are over the same axes of the same points; how many elements a point has may differ.
        let i = *members.first().ok_or_else(|| error!(Rule, "a column nest without a reduction"))?;
        let e = &self.p.equations()[i];
        let axes = reduced_axes(e.op()).ok_or_else(|| error!(Rule, "no reduction"))?;
        let dims = self.values.dims(self.p.operands(e)[0]).clone();
        // Which cut dimensions are reduced: those of the reduced axes.
        let along: Strides = (0..dims.len()).map(|a| Size::from(i64::from(axes.contains(&a)))).collect();
        let marked: Vec<bool> = self
            .strides(&along, &dims, leading(&dims, self.cluster.n), Level::Point)
            .iter()
            .map(|s| *s != Size::ZERO)
            .collect();
        // The result's strides along the kept ones.
        let mut own = vec![Size::ZERO; self.cuts.len()];
        let mut s = Size::ONE;
        for j in (0..self.cuts.len()).rev().filter(|j| !marked[*j]) {
            own[j] = s;
            s = s * self.cuts[j];
        }
        self.turn_operands((0..self.cuts.len()).rev().find(|j| !marked[*j] && self.cuts[*j] != 1));
        let mut accesses = self.accesses();
        let stored: Vec<usize> = self
            .cluster
            .members
            .iter()
            .filter(|i| !members.contains(i))
            .map(|i| self.result(*i))
            .filter(|w| self.stored.contains_key(w))
            .collect();
        accesses.push(own.clone());
        accesses.extend(axes.iter().map(|a| self.counting(*a, &dims, Level::Point)).filter(|_| axes.len() == 1));
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
            && totals.iter().all(|t| t.inside == 1)
            && !g.extent.at_most(WIDEST)
            && !self.cluster.n.at_most(CHUNK)
        {
            return self.in_tiles(&totals, g, &reduced, &own, &stored);
        }
        let lanes = kept.len() - 1;
        let kinds: Vec<Kind> = (0..kept.len()).map(|i| if i == lanes { Kind::Lanes } else { Kind::Serial }).collect();
        self.lower.emitter.begin();
        self.nested(&kept, &kinds, &mut |nest: &mut Self| {
            let mut init = Vec::new();
            for t in &totals {
                init.extend(nest.nothing(t)?);
            }
            let come = match short_run(&dims, axes) {
                Some(_) => nest.reduce_written_out(&totals, &reduced, &stored)?,
                None => nest.reduce_inside(&totals, &reduced, &init, &stored)?,
            };
            let mut left = &come[..];
            for t in &totals {
                let (come, others) = left.split_at(t.inside * t.kind.width());
                left = others;
                let own: Vec<Size> = own.iter().map(|s| *s * t.inside).collect();
                let v = nest.result(t.equation);
                let View { buffer, base, .. } = nest.home_of(v)?;
                for (k, so_far) in come.chunks(t.kind.width()).enumerate() {
                    let result = nest.finished(t, so_far);
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

    /// What an equation makes of columns.
    fn total(&self, i: usize) -> Result<Total> {
        let op = self.p.equations()[i].op();
        let inside = self.elements_of(i)?;
        let kind = match (op.downcast::<ArgMax>(), op.downcast::<ArgMin>()) {
            (Some(a), _) => Comes::Place { largest: true, axis: a.axis },
            (_, Some(a)) => Comes::Place { largest: false, axis: a.axis },
            _ => Comes::Fold(self.fold_op(self.result(i))?),
        };
        Ok(Total { equation: i, inside, kind })
    }

    /// The types of the numbers that say how far a column has come.
    fn types_of(&self, t: &Total) -> Result<Vec<Ty>> {
        let of = |ty: Option<Ty>| ty.ok_or_else(|| error!(Rule, "no scalar type"));
        let result = of(self.values.types[self.result(t.equation)])?;
        Ok(match t.kind {
            Comes::Fold(_) => vec![result],
            Comes::Place { .. } => vec![of(self.values.ty(self.operands(t.equation)[0]))?, result],
        })
    }

    /// What a column begins with.
    fn nothing(&mut self, t: &Total) -> Result<Vec<Value>> {
        let types = self.types_of(t)?;
        let e = &mut self.lower.emitter;
        let one: Vec<Value> = match t.kind {
            Comes::Fold(op) => vec![e.constant(types[0], op.neutral(types[0]))],
            Comes::Place { largest, .. } => {
                // Nothing is behind it, so the first place is that of a column of such numbers.
                let op = if largest { FoldOp::Max } else { FoldOp::Min };
                vec![e.constant(types[0], op.identity(types[0])), e.constant(types[1], 0)]
            }
        };
        Ok(one.repeat(t.inside))
    }

    /// How far a column has come with the current point.
    fn taken(&mut self, t: &Total, so_far: &[Value]) -> Result<Vec<Value>> {
        let elements = self.operand(t.equation, 0)?;
        let (largest, axis) = match t.kind {
            Comes::Fold(op) => {
                let both = so_far.iter().zip(elements);
                return Ok(both.map(|(s, x)| self.lower.emitter.op(op.op(), &[*s, x])).collect());
            }
            Comes::Place { largest, axis } => (largest, axis),
        };
        let dims = self.values.dims(self.operands(t.equation)[0]).clone();
        let place = self.index_along(axis, &dims, Level::Point);
        let mut all = Vec::new();
        for (so_far, x) in so_far.chunks(2).zip(elements) {
            let e = &mut self.lower.emitter;
            let [best, found] = [so_far[0], so_far[1]];
            // One that comes is larger than what there is, or smaller. The first of equals stays, and so does the first NaN.
            let comes = if e.ty(x).is_float() {
                let stays = if largest { e.op(Op::Le, &[x, best]) } else { e.op(Op::Le, &[best, x]) };
                let is_number = e.op(Op::Eq, &[best, best]);
                e.op(Op::Lt, &[stays, is_number])
            } else {
                if largest { e.op(Op::Lt, &[best, x]) } else { e.op(Op::Lt, &[x, best]) }
            };
            let here = e.convert(place, e.ty(found));
            all.extend([e.op(Op::Select, &[comes, x, best]), e.op(Op::Select, &[comes, here, found])]);
        }
        Ok(all)
    }

    /// What a column has come to.
    fn finished(&mut self, t: &Total, so_far: &[Value]) -> Value {
        let e = &mut self.lower.emitter;
        match t.kind {
            Comes::Fold(op) => {
                let ty = e.ty(so_far[0]);
                let identity = e.constant(ty, op.identity(ty));
                finish_fold(e, op, identity, so_far[0])
            }
            Comes::Place { .. } => so_far[1],
        }
    }

    fn home_of(&self, v: usize) -> Result<View> {
        self.stored.get(&v).cloned().ok_or_else(|| error!(Rule, "a column that nobody reads"))
    }

    /// Whole tiles in one kernel, which threads share, and what is left over in another.
    fn in_tiles(
        &mut self,
        totals: &[Total],
        kept: &Group,
        reduced: &[Group],
        own: &[Size],
        stored: &[usize],
    ) -> Result<()> {
        let mut running = Vec::new();
        for t in totals {
            let result = self.home_of(self.result(t.equation))?;
            if let (Comes::Place { .. }, [ty, _]) = (&t.kind, &self.types_of(t)?[..]) {
                let buffer = self.lower.new_scratch(*ty, kept.extent);
                running.push(Running { buffer, base: At::start(), tag: self.lower.tag(TagName::Partial) });
            }
            let tag = self.lower.tag(TagName::Partial);
            running.push(Running { buffer: result.buffer, base: result.base, tag });
        }
        let width = tile_width(kept.extent, self.lower.threads);
        let (tiles, left) = (kept.extent.floor_div(width), kept.extent.modulo(width));
        if tiles != 0 {
            self.lower.emitter.begin();
            let tile = self.lower.emitter.value(Ty::I64);
            self.lower.emitter.begin();
            self.open.push((kept.inner, width.into(), tile));
            let lanes = Group::new(width.into(), kept.inner);
            self.tile(totals, &running, &lanes, reduced, own, stored)?;
            self.open.pop();
            let body = self.lower.emitter.end();
            self.lower.emitter.serial(tile, tiles, Vec::new(), body);
            self.finish_kernel(self.work(), Vec::new());
        }
        if left != 0 {
            self.lower.emitter.begin();
            let tile = self.lower.emitter.size(tiles);
            self.open.push((kept.inner, width.into(), tile));
            let lanes = Group::new(left, kept.inner);
            self.tile(totals, &running, &lanes, reduced, own, stored)?;
            self.open.pop();
            self.finish_kernel(Work::alone(), Vec::new());
        }
        Ok(())
    }

    /// A tile of columns: how far they have come is in memory between groups of rows.
    fn tile(
        &mut self,
        totals: &[Total],
        running: &[Running],
        lanes: &Group,
        reduced: &[Group],
        own: &[Size],
        stored: &[usize],
    ) -> Result<()> {
        let columns = (std::slice::from_ref(lanes), &[Kind::Lanes]);
        self.nested(columns.0, columns.1, &mut |nest: &mut Self| {
            let mut nothing = Vec::new();
            for t in totals {
                nothing.extend(nest.nothing(t)?);
            }
            nest.keep(running, own, &nothing, false);
            Ok(())
        })?;
        let (outer, inner) = reduced.split_at(reduced.len().saturating_sub(1));
        let some = |nest: &mut Self, rows: &[Group]| {
            nest.nested(columns.0, columns.1, &mut |nest: &mut Self| {
                let so_far = nest.come_so_far(running, own);
                let come = nest.reduce_inside(totals, rows, &so_far, stored)?;
                nest.keep(running, own, &come, true);
                Ok(())
            })
        };
        self.nested(outer, &vec![Kind::Serial; outer.len()], &mut |nest: &mut Self| {
            let [rows] = inner else { return some(nest, &[]) };
            let (groups, left) = (rows.extent.floor_div(ROWS), rows.extent.modulo(ROWS));
            let of = |n: Size| [Group::new(n, rows.inner)];
            if groups != 0 {
                let group = nest.lower.emitter.value(Ty::I64);
                nest.lower.emitter.begin();
                nest.open.push((rows.inner, ROWS.into(), group));
                some(nest, &of(ROWS.into()))?;
                nest.open.pop();
                let body = nest.lower.emitter.end();
                nest.lower.emitter.serial(group, groups, Vec::new(), body);
            }
            if left != 0 {
                let group = nest.lower.emitter.size(groups);
                nest.open.push((rows.inner, ROWS.into(), group));
                some(nest, &of(left))?;
                nest.open.pop();
            }
            Ok(())
        })?;
        self.nested(columns.0, columns.1, &mut |nest: &mut Self| {
            let come = nest.come_so_far(running, own);
            let (mut come, mut running) = (&come[..], running);
            for t in totals {
                let result = nest.finished(t, come);
                let home = &running[t.kind.width() - 1];
                let at = nest.place(&home.base, own, Size::ZERO);
                let tag = nest.values.tag(nest.result(t.equation));
                let meaning = nest.meaning(tag, &At::start(), own, Size::ZERO);
                nest.lower.emitter.store(home.buffer, at, result, meaning);
                (come, running) = (&come[t.kind.width()..], &running[t.kind.width()..]);
            }
            Ok(())
        })
    }

    /// How far the current column has come.
    fn come_so_far(&mut self, running: &[Running], own: &[Size]) -> Vec<Value> {
        let load = |r: &Running| {
            let at = self.place(&r.base, own, Size::ZERO);
            let meaning = self.meaning(r.tag, &At::start(), own, Size::ZERO);
            self.lower.emitter.load(r.buffer, at, meaning)
        };
        running.iter().map(load).collect()
    }

    /// Writes how far it has come. `again`: in place of what was there before.
    fn keep(&mut self, running: &[Running], own: &[Size], come: &[Value], again: bool) {
        for (r, x) in running.iter().zip(come) {
            let at = self.place(&r.base, own, Size::ZERO);
            let meaning = self.meaning(r.tag, &At::start(), own, Size::ZERO);
            let meaning = if again { meaning.again() } else { meaning };
            self.lower.emitter.store(r.buffer, at, *x, meaning);
        }
    }

    /// The reduced loops of a column, from the outermost, behind how far it has come.
    fn reduce_inside(
        &mut self,
        totals: &[Total],
        groups: &[Group],
        init: &[Value],
        stored: &[usize],
    ) -> Result<Vec<Value>> {
        let Some((g, rest)) = groups.split_first() else {
            self.clear_point();
            for w in stored {
                let elements = self.member(*w)?;
                self.store(*w, &elements);
            }
            let (mut left, mut come) = (init, Vec::new());
            for t in totals {
                let (so_far, others) = left.split_at(t.inside * t.kind.width());
                come.extend(self.taken(t, so_far)?);
                left = others;
            }
            return Ok(come);
        };
        if let (Some(n @ LONG..), [], true) = (g.extent.known(), rest, totals.iter().all(|t| self.waits(t))) {
            return self.reduce_side_by_side(totals, (g, n), init, stored);
        }
        self.around(g.extent, init, &mut |nest, var, so_far| {
            nest.open.push((g.inner, Size::ONE, var));
            let next = nest.reduce_inside(totals, rest, so_far, stored);
            nest.open.pop();
            next
        })
    }

    /// A loop that numbers go around.
    fn around(
        &mut self,
        extent: Size,
        init: &[Value],
        step: &mut dyn FnMut(&mut Self, Value, &[Value]) -> Result<Vec<Value>>,
    ) -> Result<Vec<Value>> {
        let var = self.lower.emitter.value(Ty::I64);
        let types: Vec<Ty> = init.iter().map(|x| self.lower.emitter.ty(*x)).collect();
        let params: Vec<Value> = types.iter().map(|ty| self.lower.emitter.value(*ty)).collect();
        self.lower.emitter.begin();
        let nexts = step(self, var, &params);
        let body = self.lower.emitter.end();
        let mut carried = Vec::new();
        for (((init, param), next), ty) in init.iter().zip(&params).zip(nexts?).zip(types) {
            let result = self.lower.emitter.value(ty);
            carried.push(Carried { init: *init, param: *param, next, result });
        }
        let results = carried.iter().map(|c| c.result).collect();
        self.lower.emitter.serial(var, extent, carried, body);
        Ok(results)
    }

    /// Whether each step of a total waits for the one before for longer than its own work takes, and the order of the steps is free: the largest and the smallest
    /// of floats, where NaN counts.
    fn waits(&self, t: &Total) -> bool {
        let is_float = self.values.types[self.result(t.equation)].is_some_and(Ty::is_float);
        matches!(t.kind, Comes::Fold(FoldOp::Max | FoldOp::Min)) && is_float
    }

    /// The innermost reduced loop with several rows at a time, each with totals of its own, which meet behind it.
    fn reduce_side_by_side(
        &mut self,
        totals: &[Total],
        (g, n): (&Group, usize),
        init: &[Value],
        stored: &[usize],
    ) -> Result<Vec<Value>> {
        let row = |nest: &mut Self, k: usize, so_far: &[Value]| {
            let at = nest.lower.emitter.int(k as i64);
            nest.open.push((g.inner, Size::ONE, at));
            let next = nest.reduce_inside(totals, &[], so_far, stored);
            nest.open.pop();
            next
        };
        let (whole, width) = (n - n % BESIDE, init.len());
        let mut come = init.to_vec();
        if whole > 0 {
            let apart = self.around((n / BESIDE).into(), &init.repeat(BESIDE), &mut |nest, var, so_far| {
                nest.open.push((g.inner, BESIDE.into(), var));
                let rows = so_far.chunks(width).enumerate().map(|(k, so_far)| row(nest, k, so_far));
                let next = rows.collect::<Result<Vec<_>>>();
                nest.open.pop();
                Ok(next?.concat())
            })?;
            let mut ops = Vec::new();
            for t in totals {
                let Comes::Fold(op) = t.kind else { return Err(error!(Rule, "places side by side")) };
                ops.extend(std::iter::repeat_n(op, t.inside));
            }
            let meet = |k: usize| apart.iter().copied().skip(k).step_by(width).collect::<Vec<Value>>();
            let all = (0..width).filter_map(|k| combined(&mut self.lower.emitter, ops[k], &meet(k)));
            come = all.collect();
        }
        for k in whole..n {
            come = row(self, k, &come)?;
        }
        Ok(come)
    }

    /// The same for a few reduced points with few kept ones behind them: all are written out, and combined in the order of a row.
    fn reduce_written_out(&mut self, totals: &[Total], groups: &[Group], stored: &[usize]) -> Result<Vec<Value>> {
        // The elements of a sum; of the place of an extreme, how far it has come.
        let mut all: Vec<Vec<Value>> = vec![Vec::new(); totals.len()];
        for (t, so_far) in totals.iter().zip(&mut all).filter(|(t, _)| t.kind.width() == 2) {
            *so_far = self.nothing(t)?;
        }
        self.each_written_out(groups, &mut |nest| {
            nest.clear_point();
            for w in stored {
                let made = nest.member(*w)?;
                nest.store(*w, &made);
            }
            for (t, all) in totals.iter().zip(&mut all) {
                match t.kind {
                    Comes::Fold(_) => all.extend(nest.operand(t.equation, 0)?),
                    Comes::Place { .. } => *all = nest.taken(t, all)?,
                }
            }
            Ok(())
        })?;
        let mut come = Vec::new();
        for (t, all) in totals.iter().zip(all) {
            let Comes::Fold(op) = t.kind else {
                come.extend(all);
                continue;
            };
            for one in 0..t.inside {
                let row: Vec<Value> = all.iter().copied().skip(one).step_by(t.inside).collect();
                come.extend(combined(&mut self.lower.emitter, op, &row));
            }
        }
        Ok(come)
    }

    fn each_written_out(&mut self, groups: &[Group], f: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Some((g, rest)) = groups.split_first() else { return f(self) };
        for i in 0..g.extent.written_out() {
            let at = self.lower.emitter.int(i as i64);
            self.open.push((g.inner, Size::ONE, at));
            let made = self.each_written_out(rest, f);
            self.open.pop();
            made?;
        }
        Ok(())
    }
}
