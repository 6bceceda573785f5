//! Which trailing dimensions are unrolled at each point of a nest, and which operations work inside points.

use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::index::Gather;
use gradus_core::primitives::shaping::{Concatenate, Pad};
use gradus_core::program::{Atom, Equation};

use super::{Class, Planner, at_points, is_fewer, lead, reduced_axes, reduction, short_run};
use crate::ir::Ty;
use crate::lower::values::moves;
use crate::lower::views::{count, is_empty};
use crate::size::Size;

/// Longer runs are not put together element by element at a point, whatever they stand beside.
const LONGEST_RUN: usize = 32;

impl Planner<'_> {
    /// Fewer points for a value, more elements unrolled at each, if its dimensions allow.
    fn lower(&mut self, a: Atom, n: Size) {
        let Some(v) = a.value().map(|v| v.index()) else { return };
        let fewer = self.points[v].over(n).and_then(Size::known).is_some_and(|more| more > 1);
        if fewer
            && n.guess() >= 8
            && self.inside(a, n).is_some_and(|inside| inside <= self.values.inside)
            && lead(&self.values.dims[v], n).is_some()
        {
            self.points[v] = n;
        }
    }

    /// Decides which trailing dimensions are unrolled: small ones that something reduces, joins or multiplies along.
    pub(super) fn find_points(&mut self) {
        let p = self.p;
        let leading = |dims: &[Size], axis: usize| -> Size { dims[..axis].iter().product() };
        for e in p.equations() {
            if e.results().len() != 1 {
                continue;
            }
            let operands = p.operands(e);
            let result = Atom::from(e.result());
            if let Some((_, axes)) = reduction(e.op()) {
                let dims = self.dims(operands[0]).to_vec();
                let Some(&first) = axes.first() else { continue };
                let n = leading(&dims, first);
                // Longer rows are folded in lanes, which lie together in memory.
                let at_most_small = |inside: Option<Size>| inside.is_some_and(|i| i.is_few(self.values.small));
                if at_most_small(count(&dims).over(n)) {
                    self.lower(operands[0], n);
                    self.lower(result, n);
                } else if short_run(&dims, axes).is_none() {
                    // Kept trailing dimensions that are small: a row of points for each.
                    let last = axes[axes.len() - 1];
                    let n = leading(&dims, last + 1);
                    if let Some(kept) = count(&dims).over(n).filter(|kept| at_most_small(Some(*kept)))
                        && let Some(points) = count(self.dims(result)).over(kept)
                    {
                        self.lower(operands[0], n);
                        self.lower(result, points);
                    }
                }
            } else if let Some(c) = e.op().downcast::<Concatenate>() {
                let n = leading(self.dims(result), c.axis);
                // Long runs are better written as such.
                let run_of_at_most =
                    |most: usize, a: &Atom| count(self.dims(*a)).over(n).is_some_and(|run| run.is_few(most));
                let has_short = operands.iter().any(|a| run_of_at_most(self.values.small, a));
                if has_short && operands.iter().all(|a| run_of_at_most(LONGEST_RUN, a)) {
                    self.lower(result, n);
                    operands.iter().for_each(|a| self.lower(*a, n));
                }
            } else if let Some(pad) = e.op().downcast::<Pad>() {
                let zero = |d: &gradus_core::Dim| d.constant() == Some(0);
                let still =
                    (0..pad.low.len()).take_while(|&i| zero(&pad.low[i]) && zero(&pad.high[i]) && pad.interior[i] == 0);
                let n = leading(self.dims(result), still.count());
                self.lower(result, n);
                self.lower(operands[0], n);
            } else if e.op().is::<Gather>() {
                // One index vector for each point.
                let last = self.dims(operands[1]).len() - 1;
                self.lower(operands[1], leading(self.dims(operands[1]), last));
            } else if let Some(d) = e.op().downcast::<DotGeneral>()
                && let Some(n) = self.dot_points(d, operands)
            {
                self.lower(result, n);
                operands.iter().for_each(|a| self.lower(*a, n));
            }
        }
        // What is computed together has the same points.
        for round in 0..4 {
            let visit = |planner: &mut Self, e: &Equation| {
                let inner = reduced_axes(e.op()).is_some()
                    || e.op().is::<Concatenate>()
                    || e.op().is::<Pad>()
                    || e.op().downcast::<DotGeneral>().is_some_and(|d| planner.dot_points(d, p.operands(e)).is_some());
                if e.results().len() != 1 || !(moves(e.op()) || planner.is_map(e) || inner) {
                    return;
                }
                let result = Atom::from(e.result());
                let same = planner.is_map(e);
                if let Some(axes) = reduced_axes(e.op())
                    && let Some(v) = p.operands(e)[0].value()
                {
                    // Of the points some are reduced away; what is unrolled stays.
                    let dims = planner.dims(v.into());
                    let reduced: Size = axes.iter().map(|a| dims[*a]).product();
                    let (x, y) = (planner.points[v.index()], planner.points[e.result().index()]);
                    let all_of_points = lead(dims, x).is_some_and(|l| axes.iter().all(|a| *a < l));
                    if all_of_points && let Some(kept) = x.over(reduced) {
                        planner.lower(result, kept);
                        planner.lower(v.into(), y * reduced);
                        return;
                    }
                }
                for a in at_points(p, e) {
                    let Some(v) = a.value() else { continue };
                    let (x, y) = (planner.points[v.index()], planner.points[e.result().index()]);
                    if same || count(planner.dims(a)) != x || count(planner.dims(result)) != y {
                        planner.lower(a, y);
                        planner.lower(result, x);
                    }
                }
            };
            if round % 2 == 0 {
                p.equations().iter().for_each(|e| visit(self, e));
            } else {
                p.equations().iter().rev().for_each(|e| visit(self, e));
            }
        }
        self.give_way();
    }

    /// A reduction whose operand has other points than its result would fit into no nest: where too much would be unrolled at a point, the result has as many points as the
    /// operand, and so has what is computed together with it. What fits only as columns has a point for each of them.
    fn give_way(&mut self) {
        let p = self.p;
        // The operations on elements that read or make a value, once someone asks.
        let mut together: Option<Vec<Vec<usize>>> = None;
        for e in p.equations().iter().filter(|e| e.results().len() == 1) {
            let Some((_, axes)) = reduction(e.op()) else { continue };
            let (x, r) = (p.operands(e)[0], e.result().index());
            let n = self.point_count(x);
            let behind = lead(self.dims(x), n).is_some_and(|l| axes.iter().all(|a| *a >= l));
            let alone = || self.class(e) == Class::Single && self.reduced_from_memory(e).is_none();
            let wanted = match behind {
                true => n,
                false if alone() => count(&self.values.dims[r]),
                false => continue,
            };
            if is_fewer(self.points[r], wanted) && lead(&self.values.dims[r], wanted).is_some() {
                let together = together.get_or_insert_with(|| self.computed_together());
                self.raise(r, wanted, together);
            }
        }
    }

    /// For each value, the values that operations on elements have beside it.
    fn computed_together(&self) -> Vec<Vec<usize>> {
        let p = self.p;
        let mut together = vec![Vec::new(); p.value_count()];
        for e in p.equations().iter().filter(|e| e.results().len() == 1 && self.is_map(e)) {
            let r = e.result().index();
            for v in p.operands(e).iter().filter_map(|a| a.value()).map(|v| v.index()) {
                together[v].push(r);
                together[r].push(v);
            }
        }
        together
    }

    /// More points for a value, and for those that had the same because they are computed together.
    fn raise(&mut self, v: usize, n: Size, together: &[Vec<usize>]) {
        let before = std::mem::replace(&mut self.points[v], n);
        let mut open = vec![v];
        while let Some(v) = open.pop() {
            for &w in &together[v] {
                if self.points[w] == before && lead(&self.values.dims[w], n).is_some() {
                    self.points[w] = n;
                    open.push(w);
                }
            }
        }
    }

    /// The number of small products that a product is, each unrolled: leading axes are shared by both operands, or are
    /// free ones of the left and the right operand is small.
    fn dot_points(&self, d: &DotGeneral, operands: &[Atom]) -> Option<Size> {
        let (l, r) = (self.dims(operands[0]), self.dims(operands[1]));
        let batch = d.lhs_batch.len();
        let in_front = |axes: &[usize]| axes.iter().enumerate().all(|(i, a)| i == *a);
        if !in_front(&d.lhs_batch) || !in_front(&d.rhs_batch) {
            return None;
        }
        let free = (batch..l.len()).take_while(|a| !d.lhs_contract.contains(a)).count();
        let limit = self.values.inside;
        let small = |dims: &[Size], lead: usize| count(&dims[lead..]).is_few(limit);
        if batch > 0 && small(l, batch) && small(r, batch) {
            return Some(l[..batch].iter().product());
        }
        if batch == 0 && free > 0 && count(r).is_few(limit) && small(l, free) {
            return Some(l[..free].iter().product());
        }
        None
    }

    /// Whether an operation works inside each point: all its axes lie behind the leading dimensions.
    pub(super) fn is_inner(&self, e: &Equation) -> bool {
        let r = e.result().index();
        let operands = self.p.operands(e);
        if !self.is_typed(e) {
            return false;
        }
        let n = self.points[r];
        let lead_of = |a: Atom| lead(self.dims(a), n);
        if let Some((_, axes)) = reduction(e.op()) {
            return self.point_count(operands[0]) == n
                && lead_of(operands[0]).is_some_and(|l| axes.iter().all(|a| *a >= l))
                && self.inside(operands[0], n).is_some_and(|inside| inside <= self.values.inside);
        }
        if let Some(c) = e.op().downcast::<Concatenate>() {
            return operands.iter().all(|a| {
                (self.point_count(*a) == n || a.value().is_none())
                    && lead_of(*a).is_some_and(|l| c.axis >= l)
                    && !is_empty(self.dims(*a))
            });
        }
        if let Some(pad) = e.op().downcast::<Pad>() {
            let zero = |d: &gradus_core::Dim| d.constant() == Some(0);
            return self.point_count(operands[0]) == n
                && !is_empty(self.dims(operands[0]))
                && lead_of(operands[0])
                    .is_some_and(|l| (0..l).all(|i| zero(&pad.low[i]) && zero(&pad.high[i]) && pad.interior[i] == 0));
        }
        if let Some(d) = e.op().downcast::<DotGeneral>() {
            let (Some(most), Some(l)) = (self.dot_points(d, operands), lead_of(operands[0])) else { return false };
            let small = |a: Atom| self.inside(a, n).is_some_and(|inside| inside <= self.values.inside);
            let shared = d.lhs_batch.is_empty();
            return most.over(n).is_some()
                && l <= if shared { d.lhs_contract.iter().copied().min().unwrap_or(0) } else { d.lhs_batch.len() }
                && self.point_count(operands[0]) == n
                && small(operands[0])
                && (shared
                    || (self.point_count(operands[1]) == n && lead_of(operands[1]) == Some(l) && small(operands[1])))
                && self.values.types[r].is_some_and(Ty::is_float);
        }
        false
    }
}
