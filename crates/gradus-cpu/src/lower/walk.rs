//! Loops over some axes of several views at once, for what is no cluster of equations: copies, scatters, running sums.

use super::Lower;
use super::views::{At, View};
use crate::ir::meaning::Meaning;
use crate::ir::{Kind, Ty, Value};
use crate::size::Size;

/// Loops around a place: how often each runs, and the strides of every view along it, of places and of elements.
pub(super) struct Walk {
    loops: Vec<(Size, Vec<Size>)>,
    vars: Vec<Value>,
}

impl Walk {
    /// Over neighbouring axes of views; those that all views walk as one are one loop.
    pub fn new(l: &mut Lower, views: &[&View], axes: std::ops::Range<usize>) -> Walk {
        let mut loops: Vec<(Size, Vec<Size>)> = Vec::new();
        for a in axes {
            let n = views[0].dims[a];
            if n == 1 {
                continue;
            }
            let strides: Vec<Size> = views.iter().flat_map(|v| [v.strides[a], v.mean.strides[a]]).collect();
            match loops.last_mut() {
                Some((m, outer)) if outer.iter().zip(&strides).all(|(o, s)| *o == *s * n) => {
                    (*m, *outer) = (*m * n, strides);
                }
                _ => loops.push((n, strides)),
            }
        }
        let vars = loops.iter().map(|_| l.emitter.value(Ty::I64)).collect();
        Walk { loops, vars }
    }

    /// Where the loops lead from a place of a view, by its number among the views.
    pub fn along(&self, number: usize, (mut at, mut meaning): (At, Meaning)) -> (At, Meaning) {
        for (var, (_, strides)) in self.vars.iter().zip(&self.loops) {
            at = at.plus(*var, strides[2 * number]);
            meaning.element = meaning.element.plus(*var, strides[2 * number + 1]);
        }
        (at, meaning)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// Begins their bodies.
    pub fn open(&self, l: &mut Lower) {
        self.loops.iter().for_each(|_| l.emitter.begin());
    }

    /// Closes the loops; `innermost` is how the last is run.
    pub fn close(&self, l: &mut Lower, innermost: Kind) {
        for (k, (var, (n, _))) in self.vars.iter().zip(&self.loops).enumerate().rev() {
            let body = l.emitter.end();
            let kind = if k + 1 == self.loops.len() { innermost } else { Kind::Serial };
            l.emitter.counted(kind, *var, *n, body);
        }
    }
}
