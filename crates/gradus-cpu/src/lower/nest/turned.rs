//! Operands whose neighbours in a lane loop lie apart, and that many rows share or that are large: they are written once with those neighbours side by side, so that
//! a row reads runs and not elements from everywhere. A copy goes in tiles and uses up each line that it reads; a loop that does more does not.

use gradus_core::program::Atom;

use super::Nest;
use crate::ir::LANES;
use crate::lower::fusion::Level;
use crate::lower::values::storage;
use crate::lower::views::{At, View};
use crate::size::Size;

/// An element that is read so often is worth writing once more.
const SHARED: usize = 16;
/// An array of so many bytes does not stay in the first cache until the next lane loop comes back to its lines.
const LARGE: usize = 128 << 10;
/// So many neighbours of an element share its line.
const LINE: usize = 8;
/// Shorter loops of lanes read few neighbours.
const SHORTEST: usize = LANES / 2;

impl Nest<'_, '_> {
    /// The innermost of the cut dimensions that has a size.
    pub(super) fn innermost(&self) -> Option<usize> {
        (0..self.cuts.len()).rev().find(|j| self.cuts[*j] != 1)
    }

    /// Writes such operands anew, if lanes run along this cut dimension; `operand` reads what was written.
    pub(super) fn turn_operands(&mut self, lane: Option<usize>) {
        let Some(lane) = lane.filter(|j| self.cuts[*j].guess() >= SHORTEST) else { return };
        let mut done: Vec<(View, View)> = Vec::new();
        for &i in &self.cluster.members {
            for slot in 0..self.operands(i).len() {
                let Some((view, l)) = self.lies_apart(i, slot, lane) else { continue };
                let turned = match done.iter().find(|(from, _)| *from == view) {
                    Some((_, turned)) => turned.clone(),
                    None => {
                        let dtype = self.p.ty(self.operands(i)[slot]).dtype();
                        let Some(ty) = storage(dtype) else { continue };
                        // What repeats is written once; first what a point has, then the points, so that these are neighbours.
                        let once = |a: usize| if view.strides[a] == 0 { Size::ONE } else { view.dims[a] };
                        let order: Vec<usize> = (l..view.dims.len()).chain(0..l).collect();
                        let single = View { dims: (0..view.dims.len()).map(once).collect(), ..view.clone() };
                        let from = single.permuted(&order);
                        let buffer = self.lower.new_scratch(ty, from.dims.iter().product());
                        let to = View { mean: from.mean.clone(), ..View::dense(buffer, &from.dims) };
                        // Another nest may have written the same to memory that is this one's now.
                        self.lower.copy_again(&from, &to);
                        let mut turned = View { buffer, base: At::start(), ..view.clone() };
                        for (place, &a) in order.iter().enumerate().filter(|(_, a)| view.strides[**a] != 0) {
                            turned.strides[a] = to.strides[place];
                        }
                        done.push((view, turned.clone()));
                        turned
                    }
                };
                self.turned.insert((i, slot), turned);
            }
        }
    }

    /// The view of an operand that is worth it, and how many of its axes run over points.
    fn lies_apart(&self, i: usize, slot: usize, lane: usize) -> Option<(View, usize)> {
        let (a, at) = (self.operands(i)[slot], self.works_at(i));
        if at != Level::Point || self.member_of(i, slot).is_some() || self.is_picked(i, slot) {
            return None;
        }
        let view = self.lower.placed(self.values, a)?;
        let l = self.lead_of(i, slot, at);
        let strides = self.strides(&view.strides, &view.dims, l, at);
        let next = strides[lane];
        let readers = (0..self.cuts.len()).filter(|j| strides[*j] == 0).map(|j| self.cuts[j].guess());
        let apart = next != 0 && next != 1 && next != -1i64;
        let shared = readers.fold(1usize, usize::saturating_mul) >= SHARED;
        (apart && (shared || self.is_large_and_apart(a, &strides, lane))).then_some((view, l))
    }

    /// Whether an operand is large and has its neighbours along another loop, while results lie as the lanes run.
    fn is_large_and_apart(&self, a: Atom, strides: &[Size], lane: usize) -> bool {
        let beside = |j: usize| j != lane && strides[j] == 1 && self.cuts[j].guess() >= LINE;
        let elements = (0..self.cuts.len()).filter(|j| strides[*j] != 0).map(|j| self.cuts[j].guess());
        let bytes = elements.fold(self.p.ty(a).dtype().size(), usize::saturating_mul);
        let along = |v: &usize| self.own_strides(*v).is_none_or(|(own, _)| own[lane] == 1);
        bytes >= LARGE && (0..self.cuts.len()).any(beside) && self.stored.keys().all(along)
    }
}
