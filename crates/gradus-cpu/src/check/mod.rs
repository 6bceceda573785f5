//! What must hold of every lowered module before it becomes machine code: the planner may propose anything, this decides. Every access stays inside its
//! buffer (bounds), a kernel that reads what it writes does so at one place only (order), and what a run returns was written (cover).
//!
//! It runs in release builds, too. A module that is refused is interpreted instead, and says so.

mod cover;
mod order;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub(crate) use self::cover::uncovered;
pub(crate) use self::order::{Apart, check_order};
use crate::error::{Result, error};
use crate::ir::meaning::Region;
use crate::ir::{Buffer, Expr, Index, Int, Loop, Module, Stmt, Value};
use crate::size::Size;

/// A place that a load, store or call reaches: `offset + Σ stride·i`, for every i from lo to hi.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    pub buffer: Buffer,
    /// The bytes of an element.
    pub bytes: usize,
    pub offset: Size,
    pub terms: SmallVec<[Term; 4]>,
    /// How often the loops around it run.
    pub loops: SmallVec<[Size; 4]>,
}

/// A part of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    pub stride: Size,
    pub lo: Size,
    pub hi: Size,
}

/// How far a value goes that stands in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least it can be.
    pub lo: Size,
    /// The most.
    pub hi: Size,
}

/// `at·times + var` is at most `most`, though each alone may be more.
#[derive(Clone, Copy, Debug)]
pub struct Joint {
    /// The part.
    pub at: Value,
    /// Its length.
    pub times: usize,
    /// The place in it.
    pub var: Value,
    /// The last place of all parts.
    pub most: Size,
}

/// What is known of the values that stand in places.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// By value.
    pub values: FxHashMap<Value, Range>,
    /// Pairs that are known together.
    pub joint: Vec<Joint>,
    /// Values that go through the same numbers as the counter of a loop, in another order.
    pub steps: FxHashMap<Value, Value>,
    /// Numbers of a case that are 1 where a size is 1, and 0 where it is not.
    pub ones: FxHashMap<Value, Size>,
    /// Indices along the loops of a row that is walked as one.
    pub digits: FxHashMap<Value, Digit>,
}

/// An index that is worked out of the place in a row.
#[derive(Clone, Copy, Debug)]
pub struct Digit {
    /// What makes the place: the place in a part, and the part.
    pub counters: (Value, Option<Value>),
    /// How many places all digits of the row tell apart.
    pub whole: Size,
}

impl Ranges {
    /// A value that counts from 0 and stays below this.
    pub fn below(&mut self, v: Value, count: Size) {
        self.values.insert(v, Range { lo: Size::ZERO, hi: count - 1i64 });
    }

    /// An index below this, worked out of the place in a row.
    pub fn digit(&mut self, v: Value, extent: Size, digit: Digit) {
        self.below(v, extent);
        self.digits.insert(v, digit);
    }

    /// A value that is this.
    pub fn exactly(&mut self, v: Value, n: Size) {
        self.values.insert(v, Range { lo: n, hi: n });
    }

    fn of(&self, v: Value) -> Result<Range> {
        self.values.get(&v).copied().ok_or_else(|| error!(Rule, "{v} stands in a place and may be anything"))
    }

    /// A number that is known, or a size.
    pub(crate) fn size(&self, i: Int) -> Result<Size> {
        match i {
            Int::Const(n) => Ok(Size::Known(n)),
            Int::Value(v) => match self.of(v)? {
                Range { lo, hi } if lo == hi => Ok(lo),
                _ => Err(error!(Rule, "a stride is not one number")),
            },
        }
    }

    /// The parts of a place, and its offset.
    fn terms(&self, at: &Index) -> Result<(Size, SmallVec<[Term; 4]>)> {
        let mut offset = Size::Known(at.offset);
        let mut left: SmallVec<[(Value, Size); 4]> = SmallVec::new();
        for (v, s) in &at.terms {
            left.push((*v, self.size(*s)?));
        }
        let mut terms: SmallVec<[Term; 4]> = SmallVec::new();
        for j in &self.joint {
            let stride = |v: Value| left.iter().find(|(x, _)| *x == v).map(|(_, s)| *s);
            if let (Some(a), Some(b)) = (stride(j.at), stride(j.var))
                && a == b * j.times
            {
                terms.push(Term { stride: b, lo: Size::ZERO, hi: j.most });
                left.retain(|(v, _)| *v != j.at && *v != j.var);
            }
        }
        for (v, stride) in left {
            match self.of(v)? {
                Range { lo, hi } if lo == hi => offset = offset + stride * lo,
                Range { lo, hi } => terms.push(Term { stride, lo, hi }),
            }
        }
        Ok((offset, terms))
    }
}

impl Access {
    /// Whether it stays inside its buffer at these sizes.
    pub fn check(&self, sizes: &[i64], bytes: &[usize]) -> Result<()> {
        let number = |s: Size| i128::from(s.in_table(sizes));
        let never =
            self.loops.iter().any(|n| number(*n) <= 0) || self.terms.iter().any(|t| number(t.hi) < number(t.lo));
        if never {
            return Ok(());
        }
        let (mut least, mut most) = (number(self.offset), number(self.offset));
        for t in &self.terms {
            let (a, b) = (number(t.stride) * number(t.lo), number(t.stride) * number(t.hi));
            least += a.min(b);
            most += a.max(b);
        }
        let have = bytes[self.buffer.index()] as i128 / self.bytes as i128;
        if least < 0 || most >= have {
            return Err(error!(Rule, "elements {least} to {most} of {}, which has {have}", self.buffer));
        }
        Ok(())
    }
}

/// All places that a module reaches. An error if one of them cannot be told.
pub(crate) fn accesses(m: &Module) -> Result<Vec<Access>> {
    let mut walk = Prover { m, ranges: &m.meanings.ranges, loops: SmallVec::new(), found: Default::default() };
    walk.body(&m.main)?;
    Ok(walk.found.into_iter().collect())
}

struct Prover<'a> {
    m: &'a Module,
    ranges: &'a Ranges,
    loops: SmallVec<[Size; 4]>,
    found: rustc_hash::FxHashSet<Access>,
}

impl Prover<'_> {
    fn body(&mut self, body: &[Stmt]) -> Result<()> {
        for s in body {
            match s {
                Stmt::Let(_, Expr::Load(b, at)) => self.place(*b, at)?,
                Stmt::Store { buffer, at, .. } => self.place(*buffer, at)?,
                Stmt::Loop(l) => {
                    self.loops.push(count(self.ranges, l)?);
                    self.body(&l.body)?;
                    self.loops.pop();
                }
                Stmt::While(w) => {
                    self.body(&w.before)?;
                    self.body(&w.body)?;
                }
                Stmt::Switch(s) => {
                    for (k, (body, _)) in s.cases.iter().enumerate() {
                        // A case for a size of one runs for no other: as a loop that runs 1 - (n - 1)² times would.
                        let only = self.ranges.ones.get(&s.index).filter(|_| k == 1).map(|n| *n - 1i64);
                        self.loops.extend(only.map(|n| Size::ONE - n * n));
                        self.body(body)?;
                        self.loops.truncate(self.loops.len() - usize::from(only.is_some()));
                    }
                }
                Stmt::Kernel(k) => self.body(&self.m.kernels[*k as usize].body)?,
                Stmt::Piece(p) => self.body(&self.m.pieces[*p as usize])?,
                Stmt::Call(c) => {
                    for (r, _) in &c.regions {
                        let access = region(self.ranges, r, &self.loops)?;
                        self.found.insert(access);
                    }
                }
                Stmt::Let(..) | Stmt::Swap(..) | Stmt::Note(_) => {}
            }
        }
        Ok(())
    }

    fn place(&mut self, buffer: Buffer, at: &Index) -> Result<()> {
        let (offset, terms) = self.ranges.terms(at)?;
        let bytes = self.m.buffers[buffer.index()].ty.size();
        self.found.insert(Access { buffer, bytes, offset, terms, loops: self.loops.clone() });
        Ok(())
    }
}

/// How often a loop runs, at most.
pub(crate) fn count(ranges: &Ranges, l: &Loop) -> Result<Size> {
    match l.count {
        Int::Const(n) => Ok(Size::Known(n)),
        Int::Value(v) => ranges.of(v).map(|r| r.hi),
    }
}

fn region(ranges: &Ranges, r: &Region, loops: &SmallVec<[Size; 4]>) -> Result<Access> {
    let mut terms: SmallVec<[Term; 4]> = SmallVec::new();
    for (d, s) in r.dims.iter().zip(&r.place.1) {
        terms.push(Term { stride: *s, lo: Size::ZERO, hi: *d - 1i64 });
    }
    for (v, s) in &r.place.0.terms {
        let Range { lo, hi } = ranges.of(*v)?;
        terms.push(Term { stride: *s, lo, hi });
    }
    Ok(Access { buffer: r.buffer, bytes: r.bytes, offset: r.place.0.offset, terms, loops: loops.clone() })
}

/// Whether different indices lead to different places: sorted by stride, each steps over all that the smaller ones reach. Only what is certain counts.
pub(crate) fn is_injective(digits: &[(Size, Size)]) -> bool {
    reach(digits).is_some()
}

/// How many places `Σ stride·i` reaches from its first to its last, for i below each count, if no two indices meet.
fn reach(digits: &[(Size, Size)]) -> Option<Size> {
    let mut left: Vec<(Size, Size)> = digits.iter().copied().filter(|(_, n)| *n != 1).collect();
    let mut reached = Size::ONE;
    while !left.is_empty() {
        // The next is one that steps at least over what is reached; of those the smallest. A step that is a product of sizes is at least its factors: were
        // one of them 0, the array would have no elements.
        let fits = |s: Size| {
            s == reached || (s - reached).at_least(0) || (s.constant().is_none() && s.over(reached).is_some())
        };
        let next =
            (0..left.len()).filter(|i| fits(left[*i].0)).min_by_key(|i| (left[*i].0.guess(), left[*i].1.guess()))?;
        let (s, n) = left.swap_remove(next);
        reached = s * (n - 1i64) + reached;
    }
    Some(reached)
}
