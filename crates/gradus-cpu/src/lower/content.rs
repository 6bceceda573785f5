//! Which small arrays live in scalars and which in memory, where lanes work on them: decided by what is done with them.
//!
//! Scalars are right for arrays whose elements are picked one by one, small matrices above all: every place is known, and nothing is moved. They are wrong where all
//! elements are treated alike: fourteen chains of scalars do what two vectors could. So of each set of small arrays that are computed from each other element by
//! element it is added up what lanes would save, and what it would cost to bring the elements to those who want them as scalars, and back.

use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::shaping::{Broadcast, Permute, Reshape, Reverse, Slice};
use gradus_core::program::{Atom, Equation, Program, ValueId};

use super::emit::{PLAIN, form_of};
use super::fusion::reduction;
use super::scalars::unrolls;
use super::values::{SMALL_OPERAND, dims_of, moves};
use crate::ir::Ty;

/// Fewer elements are in scalars whatever is done with them.
pub(super) const FEWEST: usize = 5;
/// What it costs to run a nest, in plain operations on one element.
const NEST: f32 = 64.0;
/// What it costs to bring an array from memory into scalars, or back.
const MOVED: f32 = 32.0;

/// Sets of values that are computed from each other element by element, as trees.
struct Sets {
    above: Vec<usize>,
    /// For each tree, at its top: what lanes save less what they cost, in plain operations on one element.
    gain: Vec<f32>,
}

impl Sets {
    fn top(&mut self, mut v: usize) -> usize {
        while self.above[v] != v {
            self.above[v] = self.above[self.above[v]];
            v = self.above[v];
        }
        v
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.top(a), self.top(b));
        self.above[a] = b;
        if a != b {
            self.gain[b] += self.gain[a];
        }
    }

    fn add(&mut self, v: ValueId, gain: f32) {
        let top = self.top(v.index());
        self.gain[top] += gain;
    }
}

/// For each value of a program, whether it is an array of at most `small` elements on which lanes work.
pub(super) fn in_lanes(p: &Program, small: usize) -> Vec<bool> {
    let size = |v: ValueId| {
        let n = p.ty(v).shape().count().filter(|n| (FEWEST..=small).contains(n));
        n.filter(|_| Ty::holding(p.ty(v).dtype()).is_some())
    };
    let sizes: Vec<Option<usize>> = (0..p.value_count()).map(|v| size(ValueId::new(v))).collect();
    let mut sets = Sets { above: (0..sizes.len()).collect(), gain: vec![0.0; sizes.len()] };
    for e in p.equations() {
        let operands = || p.operands(e).iter().filter_map(|a| a.value());
        let sized = || operands().chain(e.results()).filter(|v| sizes[v.index()].is_some());
        let Some(first) = sized().next() else { continue };
        let n = if e.results().len() == 1 { sizes[e.result().index()] } else { None };
        let turned = e.op().is::<Reshape>() || e.op().is::<Permute>() || e.op().is::<Reverse>();
        // What an element costs, where all are treated alike.
        let each = if turned { Some(0.0) } else { form_of(p, e).ok().flatten().map(|f| (f.cost() / PLAIN).max(1.0)) };
        if let (Some(n), Some(cost)) = (n, each) {
            let same = operands().filter(|x| sizes[x.index()] == Some(n));
            same.for_each(|x| sets.join(x.index(), e.result().index()));
            sets.add(e.result(), n as f32 * cost);
            continue;
        }
        let one = |a: &Atom| p.ty(*a).shape().count() == Some(1);
        if wants_scalars(p, e) || (n.is_some() && e.op().is::<Broadcast>() && !p.operands(e).iter().all(one)) {
            // What shows the elements of a smaller array many times reads them from memory.
            sized().for_each(|v| sets.add(v, -MOVED));
        } else if e.op().is::<DotGeneral>() {
            // A large product reads and writes memory.
            sets.add(first, MOVED);
        }
    }
    let tops: Vec<usize> = (0..sizes.len()).map(|v| sets.top(v)).collect();
    tops.iter().zip(&sizes).map(|(top, size)| size.is_some() && sets.gain[*top] > NEST).collect()
}

/// Whether an equation is written out element by element where its operands are in scalars, and would be no single nest where they are not.
fn wants_scalars(p: &Program, e: &Equation) -> bool {
    if e.op().holds_programs() || e.results().len() != 1 || reduction(e.op()).is_some() {
        return false;
    }
    let count = |a: Atom| p.ty(a).shape().count().unwrap_or(usize::MAX);
    if moves(e.op()) {
        // A view of a few elements is for those who pick them.
        return e.op().is::<Slice>() && count(e.result().into()) < FEWEST;
    }
    p.operands(e).iter().all(|a| count(*a) <= SMALL_OPERAND) && unrolls(e.op(), &|i| dims_of(p.ty(p.operands(e)[i])))
}
