//! Which equations make nothing but indices of windows: those are done where a window is found.

use gradus_core::primitives::index::{Gather, Scatter};
use gradus_core::program::{Atom, Equation};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Class, Planner, is_at_points};
use crate::lower::made::axes_of;
use crate::lower::scatter::has_loop;
use crate::lower::values::Root;
use crate::lower::views::count;

/// Indices that are made of more are made once, before.
const MOST_PARTS: usize = 24;
/// Those of windows that are found one after the other: so much a loop does beside what it waits for.
const FEW_PARTS: usize = 8;
/// Elements of a window: those that are read as runs.
const SHORTEST_WINDOW: usize = 3;

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
        let gathers = p.equations().iter().enumerate().filter(|(_, e)| e.op().is::<Gather>());
        let gathers: Vec<usize> = gathers.map(|(i, _)| i).filter(|i| self.classes[*i] == Class::Point).collect();
        let by_itself: FxHashSet<usize> = gathers.into_iter().filter(|i| !self.fits_alone(*i)).collect();
        let outputs: FxHashSet<usize> = p.outputs().iter().filter_map(|a| root(*a)).collect();
        for (j, e) in p.equations().iter().enumerate().rev() {
            let r = e.result().index();
            if self.classes[j] != Class::Point || !self.is_map(e) || outputs.contains(&r) || parts[r] > MOST_PARTS {
                continue;
            }
            let only_indices = readers.get(&r).is_some_and(|all| {
                all.iter().all(|use_| !by_itself.contains(&use_.0) && self.is_index_of(r, parts[r], *use_))
            });
            if only_indices {
                self.classes[j] = Class::Index;
                self.makers.insert(r, j);
            }
        }
    }

    /// Whether an operand, which is a value or a view of it, is made where a window is found.
    fn is_index_of(&self, r: usize, parts: usize, (i, slot): (usize, usize)) -> bool {
        let e = &self.p.equations()[i];
        let a = self.p.operands(e)[slot];
        let takes = self.classes[i] == Class::Index || (slot == 1 && self.finds_windows(i, e, parts));
        takes && axes_of(&self.values.origin(a).view, &self.values.dims[r]).is_some()
    }

    /// Whether an equation finds windows by vectors of one index, and they are so long that what is done for each counts little: for single elements a pass
    /// in lanes takes less. A scatter goes through them one by one anyway, and waits for memory.
    fn finds_windows(&self, i: usize, e: &Equation, parts: usize) -> bool {
        let operands = self.p.operands(e);
        let (indices, windows) = match (e.op().downcast::<Gather>(), e.op().downcast::<Scatter>()) {
            (Some(g), _) => {
                let in_nest = self.classes[i] == Class::Point && !is_at_points(self.p, self.values, &self.points, i, 1);
                (in_nest && g.index_map.len() == 1, e.result().into())
            }
            (_, Some(s)) => (s.index_map.len() == 1 && has_loop(self.p, e, s), operands[2]),
            _ => return false,
        };
        let size = |a: Atom| count(self.dims(a)).guess();
        if e.op().is::<Scatter>() && parts <= FEW_PARTS {
            return indices;
        }
        indices && size(windows) >= size(operands[1]).saturating_mul(SHORTEST_WINDOW)
    }

    /// What is read where an operand is read.
    pub(super) fn roots_of(&self, root: Root) -> Vec<Root> {
        let Root::Value(r) = root else { return vec![root] };
        let Some(&i) = self.makers.get(&(r as usize)) else { return vec![root] };
        let operands = self.p.operands(&self.p.equations()[i]);
        operands.iter().flat_map(|a| self.roots_of(self.values.origin(*a).root)).collect()
    }
}
