//! Which outputs a run certainly writes as a whole. The others are cleared before the code runs: what comes out is never memory that was left by
//! something else.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Ranges, reach};
use crate::ir::{Buffer, Index, Module, Role, Stmt, Value};
use crate::size::Size;

/// The output buffers that are not certainly written as a whole.
pub(crate) fn uncovered(m: &Module, bytes: &[Size]) -> Vec<Buffer> {
    let walk = Coverage { m, ranges: &m.meanings.ranges, bytes };
    let covered = walk.body(&m.main, &mut Vec::new());
    let outputs = (0..m.buffers.len()).filter(|b| matches!(m.buffers[*b].role, Role::Output(_)));
    outputs.map(|b| Buffer(b as u32)).filter(|b| bytes[b.index()] != 0 && !covered.contains(b)).collect()
}

struct Coverage<'a> {
    m: &'a Module,
    ranges: &'a Ranges,
    bytes: &'a [Size],
}

/// Stores that differ only in their offset: one for each element of a point.
type Stores = FxHashMap<(Buffer, Vec<(Size, Size)>), Vec<i64>>;

impl Coverage<'_> {
    fn elements(&self, b: Buffer) -> Option<Size> {
        self.bytes[b.index()].over(Size::from(self.m.buffers[b.index()].ty.size()))
    }

    fn is_output(&self, b: Buffer) -> bool {
        matches!(self.m.buffers[b.index()].role, Role::Output(_))
    }

    /// The buffers that a body writes as a whole. `loops`: the loops around it, with how often each runs.
    fn body(&self, body: &[Stmt], loops: &mut Vec<(Value, Size)>) -> FxHashSet<Buffer> {
        let mut covered = FxHashSet::default();
        let mut stores = Stores::default();
        self.stores(body, loops, &mut stores, &mut covered);
        for ((b, digits), offsets) in stores {
            if self.is_whole(b, &digits, offsets) {
                covered.insert(b);
            }
        }
        covered
    }

    fn is_whole(&self, b: Buffer, digits: &[(Size, Size)], mut offsets: Vec<i64>) -> bool {
        offsets.sort_unstable();
        offsets.dedup();
        // Offsets at equal distances are one more digit; reversed loops begin at the end.
        let step = offsets.windows(2).map(|w| w[1] - w[0]).next().unwrap_or(1);
        if offsets.windows(2).any(|w| w[1] - w[0] != step) {
            return false;
        }
        let mut first = Size::Known(offsets[0]);
        let mut all: Vec<(Size, Size)> = vec![(Size::Known(step), Size::from(offsets.len()))];
        for (s, n) in digits {
            let backwards = s.is_negative();
            if backwards {
                first = first + *s * (*n - 1i64);
            }
            all.push((if backwards { -*s } else { *s }, *n));
        }
        let total: Size = all.iter().map(|(_, n)| *n).product();
        let elements = self.elements(b);
        first == 0 && elements == Some(total) && reach(&all) == elements
    }

    fn stores(
        &self,
        body: &[Stmt],
        loops: &mut Vec<(Value, Size)>,
        stores: &mut Stores,
        covered: &mut FxHashSet<Buffer>,
    ) {
        for s in body {
            match s {
                Stmt::Store { buffer, at, .. } if self.is_output(*buffer) => {
                    if let Some((offset, digits)) = self.digits(at, loops) {
                        stores.entry((*buffer, digits)).or_default().push(offset);
                    }
                }
                Stmt::Loop(l) => {
                    // A loop that may end early writes perhaps nothing.
                    if let Ok(n) = self.ranges.size(l.count) {
                        loops.push((l.var, n));
                        self.stores(&l.body, loops, stores, covered);
                        loops.pop();
                    }
                }
                Stmt::Kernel(k) => self.stores(&self.m.kernels[*k as usize].body, loops, stores, covered),
                Stmt::Piece(p) => self.stores(&self.m.pieces[*p as usize], loops, stores, covered),
                Stmt::Switch(s) => {
                    let mut all = s.cases.iter().map(|(body, _)| self.body(body, loops));
                    if let Some(first) = all.next() {
                        covered.extend(all.fold(first, |a, b| a.intersection(&b).copied().collect()));
                    }
                }
                Stmt::Call(c) => {
                    for (r, _) in c.regions.iter().filter(|(r, writes)| *writes && self.is_output(r.buffer)) {
                        let mut digits: Vec<(Size, Size)> =
                            r.place.1.iter().copied().zip(r.dims.iter().copied()).collect();
                        let mut known = true;
                        for (v, s) in &r.place.0.terms {
                            match loops.iter().find(|(x, _)| x == v) {
                                Some((_, n)) => digits.push((*s, *n)),
                                None => known = false,
                            }
                        }
                        let elements = self.bytes[r.buffer.index()].over(Size::from(r.bytes));
                        let total: Size = digits.iter().map(|(_, n)| *n).product();
                        if known && r.place.0.offset == 0 && elements == Some(total) && reach(&digits) == elements {
                            covered.insert(r.buffer);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// A place as loops that are around it: the known part of its offset, and a stride and a count for each.
    fn digits(&self, at: &Index, loops: &[(Value, Size)]) -> Option<(i64, Vec<(Size, Size)>)> {
        let mut digits = Vec::new();
        let mut offset = at.offset;
        for (v, s) in &at.terms {
            let stride = self.ranges.size(*s).ok()?;
            if let Some((_, n)) = loops.iter().find(|(x, _)| x == v) {
                digits.push((stride, *n));
                continue;
            }
            // A scan that goes backwards steps through the same places; a number is a number.
            let range = self.ranges.values.get(v)?;
            if range.lo == range.hi {
                offset += (stride * range.lo).constant()?;
            } else {
                let n = range.hi + 1i64;
                loops.iter().find(|(_, m)| *m == n)?;
                self.ranges.steps.get(v).filter(|l| loops.iter().any(|(x, _)| x == *l))?;
                digits.push((stride, n));
            }
        }
        // A loop whose index stands nowhere writes the same places again.
        digits.sort_unstable();
        Some((offset, digits))
    }
}
