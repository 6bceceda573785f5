//! Scatters: a loop over the index vectors in their order, into memory that holds the operand: its own if nothing else needs it, otherwise a copy.

use gradus_core::primitives::index::{Scatter, ScatterKind};
use gradus_core::program::{Atom, Equation, Program};

use super::Lower;
use super::indexed::{Windows, starts_or_none};
use super::made::Made;
use super::values::{Values, dims_of, storage};
use super::views::{At, Dims, View, count, is_empty};
use super::walk::Walk;
use crate::cost::Work;
use crate::error::Result;
use crate::ir::meaning::Meaning;
use crate::ir::{Kind, Op, Ty, Value};
use crate::size::Size;

/// So few elements of a window are written one by one: a vector that is not full is written as slowly as many.
const FEW: usize = 4;

/// Whether a scatter is a loop: its numbers are some that code computes with, and something is written.
pub(super) fn has_loop(p: &Program, e: &Equation, s: &Scatter) -> bool {
    let dtype = p.ty(e.result()).dtype();
    let typed = match s.kind {
        ScatterKind::Set => storage(dtype).is_some(),
        _ => Ty::computing(dtype).is_some(),
    };
    typed && p.operands(e).iter().all(|a| !is_empty(&dims_of(p.ty(*a))))
}

impl Lower {
    /// A scatter as a loop. False if it is none.
    pub(super) fn scatter(&mut self, p: &Program, values: &Values, e: &Equation, s: &Scatter) -> Result<bool> {
        if !has_loop(p, e, s) {
            return Ok(false);
        }
        let operands = p.operands(e);
        let windows = Windows::from(s);
        let dims = values.dims(operands[2]).clone();
        let components = self.index_components(p, values, operands[1], &windows, &dims)?;
        let there: Vec<(Atom, &View)> = components.iter().flat_map(Made::there).collect();
        let reads: Vec<Atom> = there.iter().map(|(a, _)| *a).chain([operands[2]]).collect();
        let to = self.updated(p, values, e, &reads)?;
        let updates = self.memory(p, values, operands[2])?;
        let sizes = windows.sizes(to.dims.len(), &dims);
        let rooms = windows.rooms(&to.dims, &sizes);
        // One index vector after the other, then along its window.
        let rank = dims.len();
        let order: Vec<usize> = windows.outer(rank).chain(s.update_window_dims.iter().copied()).collect();
        let split = rank - s.update_window_dims.len();
        let mut views = vec![windows.operand(&to, &dims).permuted(&order), updates.permuted(&order)];
        views.extend(there.iter().map(|(_, view)| view.permuted(&order)));
        let all: Vec<&View> = views.iter().collect();
        self.emitter.begin();
        // An axis that turns out to be empty has no place to hold a start at: then nothing is written.
        let some: Dims = windows.dropped().filter(|a| !to.dims[*a].at_least(1)).map(|a| to.dims[a]).collect();
        let runs = (!some.is_empty()).then(|| (self.emitter.value(Ty::I64), count(&some).lesser(Size::ONE)));
        runs.iter().for_each(|_| self.emitter.begin());
        let outer = Walk::new(self, &all, 0..split);
        outer.open(self);
        let (mut number, mut vector) = (2, Vec::new());
        // What an index is made of is often one number, several times.
        let mut read: Vec<(usize, Value)> = Vec::new();
        for component in &components {
            vector.push(self.component(p, values, component, &mut number, &mut |l, k, _| {
                if let Some((_, there)) = read.iter().find(|(j, _)| views[*j] == views[k]) {
                    return *there;
                }
                let (at, meaning) = outer.along(k, views[k].first());
                let there = l.emitter.load(views[k].buffer, at, meaning);
                read.push((k, there));
                there
            })?);
        }
        let starts = starts_or_none(&mut self.emitter, &vector, &rooms);
        let place = windows.started(&to, &views[0], &starts);
        let inner = Walk::new(self, &all, split..rank);
        let first = [(0, &place), (1, &views[1])].map(|(k, view)| outer.along(k, view.first()));
        let update = |l: &mut Self, [(at, meaning), (from, update)]: [(At, Meaning); 2]| {
            let old = l.emitter.load(to.buffer, at.clone(), meaning.clone());
            let update = match l.splat_of(p, values, operands[2]) {
                Some(number) => number,
                None => l.emitter.load(views[1].buffer, from, update),
            };
            let new = match s.kind {
                ScatterKind::Set => update,
                ScatterKind::Add => l.emitter.op(Op::Add, &[old, update]),
                ScatterKind::Mul => l.emitter.op(Op::Mul, &[old, update]),
                ScatterKind::Min => l.emitter.op(Op::Min, &[old, update]),
                ScatterKind::Max => l.emitter.op(Op::Max, &[old, update]),
            };
            // A window out of range is left out.
            let new = starts.choose(&mut l.emitter, new, old);
            l.emitter.store(to.buffer, at, new, meaning.again());
        };
        // Places of one window differ; those of two may be the same, and where windows begin anywhere a place of one may be another place of the next.
        let whole = s.index_map.iter().all(|a| windows.dropped().any(|d| d == *a));
        let few = |n: Size| n.known().filter(|n| whole && *n <= FEW);
        match inner.only().and_then(|(n, strides)| Some((few(n)?, strides))) {
            Some((n, strides)) => {
                for j in 0..n {
                    let mut here = first.clone();
                    for ((at, meaning), (place, element)) in here.iter_mut().zip(&strides) {
                        (*at, meaning.element) = (at.further(*place * j), meaning.element.further(*element * j));
                    }
                    update(self, here);
                }
            }
            None => {
                inner.open(self);
                let [to, from] = first;
                update(self, [inner.along(0, to), inner.along(1, from)]);
                inner.close(self, Kind::Lanes);
            }
        }
        outer.close(self, Kind::Serial);
        if let Some((var, n)) = runs {
            let body = self.emitter.end();
            self.emitter.serial(var, n, Vec::new(), body);
        }
        let body = self.emitter.end();
        self.push_kernel("scatter", Vec::new(), Work::alone(), body);
        Ok(true)
    }
}
