//! Elementwise operations on arrays that are put together of parts: each box of the result is computed from the parts that it needs, and nothing is put together before.
//!
//! A sum of shifted arrays is such a program: a shift is a concatenation or a pad, a step of a difference equation takes several, and so do the gradients of slices. In memory each
//! would be one array more. The boxes are a grid: along each axis the cuts of everything that is put together. So each element is computed once and from the same numbers, and what was
//! put together costs nothing; what is computed is put together at the end, in its place.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::kinds::reduction;
use super::nested::{Made, Nested, equations_among};
use super::simplify::{map_atom, outside_with_rules};
use super::{Exactness, applied, eliminate_dead_code, visit};
use crate::error::{Location, Result, error};
use crate::primitives::Op;
use crate::primitives::index::Gather;
use crate::primitives::shaping::{Concatenate, Iota, Pad, Slice};
use crate::program::{Atom, Builder, Constant, Equation, Program, ValueId};
use crate::scalar::Form;
use crate::types::{DType, Dim, Scalar, Shape};

/// Arrays of fewer elements are put together: it takes less than the code for every box.
const LEAST: usize = 1 << 11;
/// Most boxes of an array: three along each of three axes, and some.
const MOST_BOXES: usize = 32;
/// Most operations that boxes of a program come to.
const MOST_EQUATIONS: usize = 1 << 10;
/// Rows of boxes that are shorter are no runs.
const SHORT: usize = 16;
/// At most so much of an array, one part in so many, is in boxes of short rows.
const FEW_SHORT: usize = 8;
/// A byte that goes through memory takes about so many nanoseconds.
const BYTE: f32 = 0.1;
/// So many operations in a row, at most, are done again in each box that needs them.
const LONGEST: usize = 16;
/// What is taken together changes with what is left out; so often it is looked at again.
const ROUNDS: usize = 8;

/// Computes by boxes; see the head of this file.
pub(super) fn by_boxes(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &|p, nested| {
        let plan = Plan::new(p);
        let mut boxes = Boxes { p, plan: plan.as_ref(), slices: FxHashMap::default(), made: FxHashMap::default() };
        let made = equations_among(p, &mut |b, e, _, there| match plan.as_ref().and_then(|plan| plan.grid(e)) {
            Some(grid) => boxes.write(b, e, there, grid),
            None => Ok(Made::As(nested.op(e.op())?)),
        })?;
        match plan {
            // What was put together is not needed any more, and numbers in boxes are known.
            Some(_) => Ok(eliminate_dead_code(&outside_with_rules(&eliminate_dead_code(&made, true), &[])?, true)),
            None => Ok(made),
        }
    })
}

/// What an equation does to boxes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It puts arrays together, or takes a part.
    Moves,
    /// It computes each element from those of its operands at the same place.
    Elements,
    Other,
}

fn sizes(p: &Program, a: Atom) -> Option<SmallVec<[usize; 4]>> {
    p.ty(a).shape().iter().map(Dim::as_usize).collect()
}

/// A number that all of an atom is.
fn splat(p: &Program, a: Atom) -> Option<Scalar> {
    p.constant(a)?.splat_value()
}

/// Where a pad puts its operand, if it only puts one number around it.
fn lands(p: &Program, e: &Equation) -> Option<SmallVec<[usize; 4]>> {
    let pad = e.op().downcast::<Pad>()?;
    let around = pad.low.iter().chain(&pad.high).all(|d| d.as_usize().is_some());
    let fits = around && pad.interior.iter().all(|n| *n == 0) && splat(p, p.operands(e)[1]).is_some();
    fits.then(|| pad.low.iter().filter_map(Dim::as_usize).collect())
}

/// Where a slice without steps begins.
fn begins(e: &Equation) -> Option<SmallVec<[usize; 4]>> {
    let slice = e.op().downcast::<Slice>().filter(|s| s.step.iter().all(|n| *n == 1))?;
    slice.start.iter().map(Dim::as_usize).collect()
}

fn kind(p: &Program, e: &Equation) -> Kind {
    if e.results().len() != 1 || !e.op().effects().is_pure() {
        return Kind::Other;
    }
    let known = |a: &Atom| sizes(p, *a).is_some();
    let r = Atom::from(e.result());
    let Some(count) = sizes(p, r).and_then(|s| s.iter().try_fold(1usize, |n, d| n.checked_mul(*d))) else {
        return Kind::Other;
    };
    let puts = e.op().is::<Concatenate>() && p.operands(e).iter().all(known) || lands(p, e).is_some();
    if puts && count >= LEAST || begins(e).is_some() && known(&p.operands(e)[0]) {
        return Kind::Moves;
    }
    let shape = p.ty(r).shape();
    let alike = p.operands(e).iter().all(|a| p.ty(*a).shape() == shape);
    if alike && e.op().is_elementwise() && e.op().is_total() { Kind::Elements } else { Kind::Other }
}

/// Which values belong together.
struct Groups(Vec<usize>);

impl Groups {
    fn of(&mut self, mut v: usize) -> usize {
        while self.0[v] != v {
            self.0[v] = self.0[self.0[v]];
            v = self.0[v];
        }
        v
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// For each axis where boxes begin and end.
type Cuts = Vec<BTreeSet<usize>>;
/// The boxes of an array: for each axis where one begins and the next ends.
type Grid = Vec<Vec<usize>>;

/// What is done by boxes in a program.
struct Plan {
    kinds: Vec<Kind>,
    /// The equation of each value.
    defined: Vec<Option<usize>>,
    /// Values that are not put together before somebody needs them whole.
    apart: Vec<bool>,
    /// Values that somebody needs whole.
    whole: Vec<bool>,
    /// Elementwise values that are put together and nothing else: boxes make what they need of them.
    parts: Vec<bool>,
    /// The boxes of each value that is computed by them.
    grids: Vec<Option<usize>>,
    all_grids: Vec<Grid>,
}

impl Plan {
    fn new(p: &Program) -> Option<Plan> {
        let kinds: Vec<Kind> = p.equations().iter().map(|e| kind(p, e)).collect();
        let puts = |(e, kind): (&Equation, &Kind)| *kind == Kind::Moves && !e.op().is::<Slice>();
        if !p.equations().iter().zip(&kinds).any(puts) {
            return None;
        }
        let n = p.value_count();
        let mut defined = vec![None; n];
        for (i, e) in p.equations().iter().enumerate() {
            visit();
            e.results().for_each(|r| defined[r.index()] = Some(i));
        }
        let mut plan = Plan {
            kinds,
            defined,
            apart: vec![false; n],
            whole: vec![],
            parts: vec![false; n],
            grids: vec![None; n],
            all_grids: vec![],
        };
        plan.find(p)?;
        plan.absorb(p);
        plan.choose(p);
        plan.cut(p);
        plan.find_parts(p);
        plan.grids.iter().any(Option::is_some).then_some(plan)
    }

    fn grid(&self, e: &Equation) -> Option<&Grid> {
        let v = e.results().next().filter(|_| e.results().len() == 1)?;
        self.grids[v.index()].map(|g| &self.all_grids[g])
    }

    fn kind_of(&self, v: ValueId) -> Kind {
        self.defined[v.index()].map_or(Kind::Other, |i| self.kinds[i])
    }

    fn is_apart(&self, a: &Atom) -> bool {
        a.value().is_some_and(|v| self.apart[v.index()])
    }

    /// Whether an equation is done by boxes.
    fn by_boxes(&self, i: usize, e: &Equation) -> bool {
        self.kinds[i] != Kind::Other && self.apart[e.result().index()]
    }

    /// Finds what need not be put together: what is only used by elementwise operations, or moved for these.
    fn find(&mut self, p: &Program) -> Option<()> {
        for (i, e) in p.equations().iter().enumerate() {
            if self.kinds[i] == Kind::Other {
                continue;
            }
            let first = p.operands(e)[0].value();
            self.apart[e.result().index()] = match self.kinds[i] {
                Kind::Moves if e.op().is::<Slice>() => {
                    first.is_some_and(|v| self.apart[v.index()] && self.kind_of(v) == Kind::Moves)
                }
                Kind::Moves => true,
                _ => p.operands(e).iter().any(|a| self.is_apart(a)),
            };
        }
        for _ in 0..ROUNDS {
            self.find_wholes(p);
            let mut same = true;
            for (i, e) in p.equations().iter().enumerate() {
                visit();
                if !self.by_boxes(i, e) {
                    continue;
                }
                let (v, operands) = (e.result().index(), p.operands(e));
                let stays = match self.kinds[i] {
                    Kind::Moves if self.whole[v] => false,
                    Kind::Moves => !e.op().is::<Slice>() || self.is_apart(&operands[0]),
                    _ => operands.iter().any(|a| self.is_apart(a)),
                };
                self.apart[v] = stays;
                same &= stays;
            }
            if same {
                return Some(());
            }
        }
        None
    }

    fn find_wholes(&mut self, p: &Program) {
        self.whole = vec![false; p.value_count()];
        p.outputs().iter().filter_map(|a| a.value()).for_each(|v| self.whole[v.index()] = true);
        for (i, e) in p.equations().iter().enumerate() {
            let by_boxes = self.by_boxes(i, e);
            for v in p.operands(e).iter().filter_map(|a| a.value()) {
                let through = by_boxes && (self.kinds[i] == Kind::Elements || self.kind_of(v) == Kind::Moves);
                self.whole[v.index()] |= !through;
            }
        }
    }

    /// What is computed for boxes alone is computed by boxes.
    fn absorb(&mut self, p: &Program) {
        let uses = p.use_counts();
        let mut inside = vec![0; p.value_count()];
        for (i, e) in p.equations().iter().enumerate().rev() {
            if self.kinds[i] != Kind::Elements {
                continue;
            }
            let v = e.result().index();
            self.apart[v] |= uses[v] > 0 && inside[v] == uses[v];
            if self.apart[v] {
                p.operands(e).iter().filter_map(|a| a.value()).for_each(|a| inside[a.index()] += 1);
            }
        }
    }

    /// Leaves out what would take more than it saves: an array that is not put together is saved, one that is made only for boxes, or because it is made of
    /// boxes, is one more.
    fn choose(&mut self, p: &Program) {
        let mut groups = Groups((0..p.value_count()).collect());
        let mut gains = vec![0i128; p.value_count()];
        let bytes = |v: ValueId| p.ty(v).bytes_where(1) as i128;
        for (i, e) in p.equations().iter().enumerate().filter(|(i, e)| self.by_boxes(*i, e)) {
            for v in p.operands(e).iter().filter_map(|a| a.value()).filter(|v| self.apart[v.index()]) {
                if self.kinds[i] == Kind::Elements || self.kind_of(v) == Kind::Moves {
                    groups.join(e.result().index(), v.index());
                }
            }
        }
        let in_memory = self.in_memory(p);
        let mut made: FxHashSet<(usize, ValueId)> = FxHashSet::default();
        for (i, e) in p.equations().iter().enumerate().filter(|(i, e)| self.by_boxes(*i, e)) {
            let r = e.result();
            let group = groups.of(r.index());
            if self.kinds[i] == Kind::Moves {
                gains[group] += if e.op().is::<Slice>() { 0 } else { bytes(r) };
                continue;
            }
            if self.whole[r.index()] && !in_memory[r.index()] {
                gains[group] -= bytes(r);
            }
            for v in p.operands(e).iter().filter_map(|a| a.value()) {
                let leaf = !self.apart[v.index()] && !in_memory[v.index()];
                if leaf && made.insert((group, v)) {
                    gains[group] -= bytes(v);
                }
            }
        }
        for v in 0..p.value_count() {
            let group = groups.of(v);
            self.apart[v] &= gains[group] > 0;
        }
    }

    /// For each value whether it is in memory, whatever is done by boxes: what is computed is if somebody other than loops needs it.
    fn in_memory(&self, p: &Program) -> Vec<bool> {
        let fuses = |e: &Equation| e.op().is_elementwise() || e.op().is::<Iota>() || e.op().is::<Gather>();
        let mut there: Vec<bool> = self.defined.iter().map(|i| i.is_none_or(|i| !fuses(&p.equations()[i]))).collect();
        p.outputs().iter().filter_map(|a| a.value()).for_each(|v| there[v.index()] = true);
        for e in p.equations() {
            if !e.op().is_elementwise() && reduction(e.op()).is_none() {
                p.operands(e).iter().filter_map(|a| a.value()).for_each(|v| there[v.index()] = true);
            }
        }
        there
    }

    /// Finds the boxes of what is computed.
    fn cut(&mut self, p: &Program) {
        let mut groups = Groups((0..p.value_count()).collect());
        for (i, e) in p.equations().iter().enumerate() {
            if self.kinds[i] == Kind::Elements && self.by_boxes(i, e) {
                for v in p.operands(e).iter().filter_map(|a| a.value()) {
                    if self.apart[v.index()] && self.kind_of(v) == Kind::Elements {
                        groups.join(e.result().index(), v.index());
                    }
                }
            }
        }
        let mut moves: FxHashMap<ValueId, Cuts> = FxHashMap::default();
        let mut cuts: FxHashMap<usize, (Cuts, usize)> = FxHashMap::default();
        for (i, e) in p.equations().iter().enumerate().filter(|(i, e)| self.by_boxes(*i, e)) {
            visit();
            let r = e.result();
            if self.kinds[i] == Kind::Moves {
                let own = self.cuts_of(p, e, &moves);
                moves.insert(r, own);
                continue;
            }
            let (cuts, equations) = cuts.entry(groups.of(r.index())).or_insert_with(|| (ends(p, r.into()), 0));
            *equations += 1;
            for own in p.operands(e).iter().filter_map(|a| moves.get(&a.value()?)) {
                cuts.iter_mut().zip(own).for_each(|(all, own)| all.extend(own));
            }
        }
        let mut left = MOST_EQUATIONS;
        let mut grids: FxHashMap<usize, usize> = FxHashMap::default();
        for (i, e) in p.equations().iter().enumerate() {
            if self.kinds[i] != Kind::Elements || !self.by_boxes(i, e) {
                continue;
            }
            let v = e.result().index();
            let group = groups.of(v);
            if let Some((cuts, equations)) = cuts.remove(&group) {
                let boxes = cuts.iter().fold(1usize, |n, c| n.saturating_mul(c.len().saturating_sub(1)));
                let takes = boxes.saturating_mul(equations);
                let grid: Grid = cuts.into_iter().map(|c| c.into_iter().collect()).collect();
                if (1..=MOST_BOXES).contains(&boxes) && takes <= left && are_runs(&grid) {
                    left -= takes;
                    grids.insert(group, self.all_grids.len());
                    self.all_grids.push(grid);
                }
            }
            self.grids[v] = grids.get(&group).copied();
        }
    }

    /// Finds what is computed in boxes alone, though it has a shape of its own: a part of what is put together. If boxes need it more than once, it is made again
    /// where that takes less than memory.
    fn find_parts(&mut self, p: &Program) {
        // What an element takes, with what is made for it alone, and in how many operations.
        let uses = p.use_counts();
        let mut takes: Vec<Option<(f32, usize)>> = vec![None; p.value_count()];
        for (_, e) in p.equations().iter().enumerate().filter(|(i, _)| self.kinds[*i] == Kind::Elements) {
            let from: Vec<DType> = p.operands(e).iter().map(|a| p.ty(*a).dtype()).collect();
            let Ok(Some(form)) = Form::of(e.op(), &from, p.ty(e.result()).dtype()) else { continue };
            let alone = p.operands(e).iter().filter_map(|a| a.value()).filter(|v| uses[v.index()] == 1);
            let below = alone.filter_map(|v| takes[v.index()]);
            let all = below.fold((form.cost(), 1), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            takes[e.result().index()] = Some(all);
            visit();
        }
        // How often boxes need each value, and how many of its uses these are.
        let mut needed = vec![(0u32, 0u32); p.value_count()];
        let mut seen: FxHashSet<(ValueId, usize)> = FxHashSet::default();
        for (i, e) in p.equations().iter().enumerate().rev().filter(|(i, _)| self.kinds[*i] != Kind::Other) {
            visit();
            let r = e.result();
            let (times, inside) = needed[r.index()];
            let grid = self.grids[r.index()];
            if self.kinds[i] == Kind::Elements && !self.apart[r.index()] {
                let Some((cost, operations)) = takes[r.index()].filter(|_| inside > 0 && inside == uses[r.index()])
                else {
                    continue;
                };
                let most = BYTE * p.ty(r).dtype().size() as f32;
                self.parts[r.index()] =
                    times == 1 && operations <= LONGEST || cost * times.saturating_sub(1) as f32 <= most;
            }
            let through = match self.kinds[i] {
                Kind::Moves => self.apart[r.index()],
                _ => grid.is_some() || self.parts[r.index()],
            };
            for v in p.operands(e).iter().filter_map(|a| a.value()).filter(|_| through) {
                let (all, within) = &mut needed[v.index()];
                *within += 1;
                *all += match grid {
                    Some(grid) => u32::from(seen.insert((v, grid))),
                    None => times,
                };
            }
        }
    }

    /// The boxes that what is put together, or is a part of that, is made of.
    fn cuts_of(&self, p: &Program, e: &Equation, moves: &FxHashMap<ValueId, Cuts>) -> Cuts {
        let mut cuts = ends(p, e.result().into());
        let of = |a: Atom| a.value().and_then(|v| moves.get(&v).cloned()).unwrap_or_else(|| ends(p, a));
        let operands = p.operands(e);
        if let Some(c) = e.op().downcast::<Concatenate>() {
            let mut start = 0;
            for &a in operands {
                for (axis, own) in of(a).into_iter().enumerate() {
                    let offset = if axis == c.axis { start } else { 0 };
                    cuts[axis].extend(own.into_iter().map(|at| at + offset));
                }
                start += p.ty(a).shape().get(c.axis).and_then(Dim::as_usize).unwrap_or(0);
            }
        } else if let Some(low) = lands(p, e) {
            for ((all, own), low) in cuts.iter_mut().zip(of(operands[0])).zip(low) {
                all.extend(own.into_iter().map(|at| at + low));
            }
        } else if let Some(start) = begins(e) {
            for ((all, own), start) in cuts.iter_mut().zip(of(operands[0])).zip(start) {
                let end = all.last().copied().unwrap_or(0);
                all.extend(own.into_iter().filter_map(|at| at.checked_sub(start)).filter(|at| *at < end));
            }
        }
        cuts
    }
}

/// The ends of each axis.
fn ends(p: &Program, a: Atom) -> Cuts {
    sizes(p, a).unwrap_or_default().into_iter().map(|n| BTreeSet::from([0, n])).collect()
}

/// Whether all but a few elements are in boxes whose rows are runs.
fn are_runs(grid: &Grid) -> bool {
    let Some(last) = grid.last() else { return false };
    let length = last.last().copied().unwrap_or(0);
    let short: usize = last.windows(2).map(|w| w[1] - w[0]).filter(|n| *n < SHORT).sum();
    short * FEW_SHORT <= length
}

/// One box of an array: where it begins, and how long it is along each axis.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Window {
    start: SmallVec<[usize; 4]>,
    size: SmallVec<[usize; 4]>,
}

/// All boxes of a grid, those along the last axis next to each other.
fn windows(grid: &Grid) -> Vec<Window> {
    let mut all = vec![Window { start: SmallVec::new(), size: SmallVec::new() }];
    for cuts in grid {
        let along = |w: &Window| {
            let ends = cuts.windows(2).map(|c| {
                let mut w = w.clone();
                w.start.push(c[0]);
                w.size.push(c[1] - c[0]);
                w
            });
            ends.collect::<Vec<_>>()
        };
        all = all.iter().flat_map(along).collect();
    }
    all
}

/// Writes what is computed by boxes.
struct Boxes<'p> {
    p: &'p Program,
    plan: Option<&'p Plan>,
    /// Parts of arrays of the old program.
    slices: FxHashMap<(Atom, Window), Atom>,
    /// The boxes of what was computed.
    made: FxHashMap<ValueId, Vec<Atom>>,
}

impl Boxes<'_> {
    fn write(&mut self, b: &mut Builder, e: &Equation, there: &[Atom], grid: &Grid) -> Result<Made> {
        let windows = windows(grid);
        let mut made = Vec::with_capacity(windows.len());
        for (i, window) in windows.iter().enumerate() {
            visit();
            let mut operands: SmallVec<[Atom; 4]> = SmallVec::new();
            for &a in self.p.operands(e) {
                let there_already = a.value().and_then(|v| self.made.get(&v)).map(|boxes| boxes[i]);
                operands.push(match there_already {
                    Some(part) => part,
                    None => self.part(b, there, a, window.clone(), e.place())?,
                });
            }
            made.push(Atom::from(b.equation(e.op().clone(), &operands, e.place())?.result()));
        }
        let v = e.result();
        let whole = self.plan.is_some_and(|plan| plan.whole[v.index()]);
        self.made.insert(v, made.clone());
        if !whole {
            return Ok(Made::As(e.op().clone()));
        }
        applied("elementwise (concatenate or pad a) = concatenate (elementwise a), box by box");
        for (axis, cuts) in grid.iter().enumerate().rev() {
            let along = cuts.len() - 1;
            if along > 1 {
                let join =
                    |parts: &[Atom]| Ok(b.equation(Op::new(Concatenate { axis }), parts, e.place())?.result().into());
                made = made.chunks(along).map(join).collect::<Result<_>>()?;
            }
        }
        made.pop().map(|whole| Made::There(vec![whole])).ok_or_else(|| error!(Rule, "an array of no boxes"))
    }

    /// A part of an array: of what it is put together from, if it is not there as a whole.
    fn part(&mut self, b: &mut Builder, there: &[Atom], mut a: Atom, mut w: Window, place: Location) -> Result<Atom> {
        let outside = || error!(Rule, "a box that is in no part of an array");
        let ty = self.p.ty(a).with_shape(w.size.iter().copied().map(Dim::from).collect::<Shape>());
        while let Some(v) = a.value()
            && let Some(plan) = self.plan
            && let Some(e) = plan.defined[v.index()].map(|i| &self.p.equations()[i])
            && plan.kind_of(v) == Kind::Moves
            && (plan.apart[v.index()] || e.op().is::<Slice>())
        {
            let operands = self.p.operands(e);
            a = operands[0];
            if let Some(c) = e.op().downcast::<Concatenate>() {
                let mut parts = operands.iter();
                a = loop {
                    let part = *parts.next().ok_or_else(outside)?;
                    let n = self.p.ty(part).shape().get(c.axis).and_then(Dim::as_usize).ok_or_else(outside)?;
                    if w.start[c.axis] < n {
                        break part;
                    }
                    w.start[c.axis] -= n;
                };
            } else if let Some(low) = lands(self.p, e) {
                let n = sizes(self.p, a).ok_or_else(outside)?;
                let inside = (0..n.len()).all(|i| w.start[i] >= low[i] && w.start[i] < low[i] + n[i]);
                if !inside {
                    let number = splat(self.p, operands[1]).ok_or_else(outside)?;
                    return Ok(b.constant(Constant::splat(ty, number)));
                }
                w.start.iter_mut().zip(low).for_each(|(at, low)| *at -= low);
            } else {
                let start = begins(e).ok_or_else(outside)?;
                w.start.iter_mut().zip(start).for_each(|(at, start)| *at += start);
            }
        }
        if let Some(number) = splat(self.p, a) {
            return Ok(b.constant(Constant::splat(ty, number)));
        }
        if let Some(part) = self.slices.get(&(a, w.clone())) {
            return Ok(*part);
        }
        if let Some(v) = a.value()
            && let Some(plan) = self.plan.filter(|plan| plan.parts[v.index()])
            && let Some(e) = plan.defined[v.index()].map(|i| &self.p.equations()[i])
        {
            let mut operands: SmallVec<[Atom; 4]> = SmallVec::new();
            for &o in self.p.operands(e) {
                operands.push(self.part(b, there, o, w.clone(), place)?);
            }
            let part = Atom::from(b.equation(e.op().clone(), &operands, e.place())?.result());
            self.slices.insert((a, w), part);
            return Ok(part);
        }
        let whole = map_atom(self.p, there, b, a)?;
        if sizes(self.p, a).is_some_and(|n| n == w.size) {
            return Ok(whole);
        }
        let ends = w.start.iter().zip(&w.size).map(|(at, n)| Dim::from(at + n)).collect();
        let start = w.start.iter().copied().map(Dim::from).collect();
        let slice = Slice { start, limit: ends, step: vec![1; w.size.len()] };
        let part = Atom::from(b.equation(Op::new(slice), &[whole], place)?.result());
        self.slices.insert((a, w), part);
        Ok(part)
    }
}
