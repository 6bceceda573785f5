//! Which equations make nothing but indices of windows: those are done where a window is found.

use gradus_core::primitives::index::{Gather, Scatter};
use gradus_core::program::Equation;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Class, Planner, is_at_points, is_fewer};
use crate::lower::made::axes_of;
use crate::lower::scatter::has_loop;
use crate::lower::values::Root;
use crate::lower::views::count;

/// Indices that are made of more are made once, before.
const MOST_PARTS: usize = 24;

impl Planner<'_> {
    /// Takes such equations out of nests. From the last to the first, so that whoever reads one is known.
    pub(super) fn find_indices(&mut self) {
        let p = self.p;
        if !p.equations().iter().any(|e| e.op().is::<Gather>() || e.op().is::<Scatter>()) {
            return;
        }
        let mut readers: FxHashMap<usize, Vec<(usize, usize)>> = FxHashMap::default();
        for (i, e) in p.equations().iter().enumerate().filter(|(i, _)| self.classes[*i] != Class::View) {
            for (slot, a) in p.operands(e).iter().enumerate() {
                if let Root::Value(r) = self.values.origin(*a).root {
                    readers.entry(r as usize).or_default().push((i, slot));
                }
            }
        }
        let root = |a| match self.values.origin(a).root {
            Root::Value(r) => Some(r as usize),
            Root::Constant(_) => None,
        };
        // An operand that is read twice is made twice, so what indices are made of is counted before.
        let mut parts: Vec<usize> = vec![1; p.value_count()];
        for (j, e) in p.equations().iter().enumerate() {
            if self.classes[j] == Class::Point && self.is_map(e) {
                let of = p.operands(e).iter().filter_map(|a| root(*a)).map(|r| parts[r]);
                parts[e.result().index()] = of.fold(1, usize::saturating_add);
            }
        }
        let outputs: FxHashSet<usize> = p.outputs().iter().filter_map(|a| root(*a)).collect();
        for (j, e) in p.equations().iter().enumerate().rev() {
            let r = e.result().index();
            if self.classes[j] != Class::Point || !self.is_map(e) || outputs.contains(&r) || parts[r] > MOST_PARTS {
                continue;
            }
            let only_indices = readers.get(&r).is_some_and(|all| all.iter().all(|use_| self.is_index_of(r, *use_)));
            if only_indices {
                self.classes[j] = Class::Index;
                self.makers.insert(r, j);
            }
        }
    }

    /// Whether an operand, which is a value or a view of it, is made where a window is found.
    fn is_index_of(&self, r: usize, (i, slot): (usize, usize)) -> bool {
        let e = &self.p.equations()[i];
        let a = self.p.operands(e)[slot];
        let takes = self.classes[i] == Class::Index || (slot == 1 && self.finds_windows(i, e));
        takes && axes_of(&self.values.origin(a).view, &self.values.dims[r]).is_some()
    }

    /// Whether an equation finds windows by vectors of one index.
    fn finds_windows(&self, i: usize, e: &Equation) -> bool {
        if let Some(s) = e.op().downcast::<Scatter>() {
            return s.index_map.len() == 1 && has_loop(self.p, self.values, e, s);
        }
        let gather = e.op().downcast::<Gather>();
        gather.is_some_and(|g| g.index_map.len() == 1)
            && self.classes[i] == Class::Point
            && is_fewer(count(self.dims(self.p.operands(e)[1])), self.points[e.result().index()])
            && !is_at_points(self.p, self.values, &self.points, i, 1)
    }

    /// What is read where an operand is read.
    pub(super) fn roots_of(&self, root: Root) -> Vec<Root> {
        let Root::Value(r) = root else { return vec![root] };
        let Some(&i) = self.makers.get(&(r as usize)) else { return vec![root] };
        let operands = self.p.operands(&self.p.equations()[i]);
        operands.iter().flat_map(|a| self.roots_of(self.values.origin(*a).root)).collect()
    }
}
