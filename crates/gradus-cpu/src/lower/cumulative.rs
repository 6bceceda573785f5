//! Running sums, products and extrema: a loop along the axis that carries what came before, for each row by itself, or for many columns in lanes. Many long
//! columns go in tiles and groups of rows, so that memory is walked in long runs; what came before is in memory between those.
//!
//! Sums of floats have an order that is part of their meaning (see `running_sums` of the primitive): blocks of 256 places, then groups of 256 blocks,
//! and so on. What no block or group has been added to yet is the neutral number, which changes no bit of what it is added to.

use gradus_core::primitives::Op as Primitive;
use gradus_core::primitives::cumulative::{BLOCK, CumMax, CumMin, CumProd, CumSum};
use gradus_core::program::{Equation, Program};

use super::Lower;
use super::fusion::CHUNK;
use super::values::Values;
use super::views::{At, Dims, View, count};
use super::walk::{ROWS, WIDEST, Walk, tile_width};
use crate::cost::{Doing, Work};
use crate::error::Result;
use crate::ir::meaning::{Meaning, TagName};
use crate::ir::{Buffer, Carried, FoldOp, Kind, Op, Ty, Value};
use crate::size::Size;

/// Groups of groups: more than so many have more elements than any memory.
const MOST_LEVELS: u32 = 5;
/// So many rows go along together: each number waits for the one before it in its row, and not for those of other rows.
const ABREAST: usize = 4;
/// About how many nanoseconds a place takes: each waits for the one before it.
const EACH: f32 = 1.0;

/// How a primitive accumulates, along which axis, and whether from the end.
fn accumulation(op: &Primitive) -> Option<(FoldOp, usize, bool)> {
    macro_rules! first {
        ($($t:ty => $f:ident),*) => {
            $(if let Some(c) = op.downcast::<$t>() { return Some((FoldOp::$f, c.axis, c.reverse)); })*
        };
    }
    first!(CumSum => Add, CumProd => Mul, CumMax => Max, CumMin => Min);
    None
}

/// A run of places: where it begins in the operand and in the result, and how far neighbours are apart, in memory and in the value.
#[derive(Clone)]
struct Line {
    from: [(At, Meaning); 2],
    strides: [(Size, Size); 2],
}

impl Line {
    /// The same at the place `var·times`.
    fn at(&self, var: Value, times: usize) -> Line {
        let mut line = self.clone();
        for ((at, meaning), (stride, number)) in line.from.iter_mut().zip(&self.strides) {
            *at = at.clone().plus(var, *stride * times);
            meaning.element = meaning.element.clone().plus(var, *number * times);
        }
        line
    }

    /// The same from a later place on.
    fn from(&self, place: Size) -> Line {
        let mut line = self.clone();
        for ((at, meaning), (stride, number)) in line.from.iter_mut().zip(&self.strides) {
            *at = at.further(*stride * place);
            meaning.element = meaning.element.further(*number * place);
        }
        line
    }
}

impl Lower {
    /// An equation that accumulates along an axis, as a loop. False if it is none, or its numbers are none that code computes with.
    pub(super) fn cumulative(&mut self, p: &Program, values: &Values, e: &Equation) -> Result<bool> {
        let v = e.result().index();
        let (Some((op, axis, reverse)), Some(ty)) = (accumulation(e.op()), values.types[v]) else { return Ok(false) };
        let x = self.memory(p, values, p.operands(e)[0])?;
        let to = self.dense_result(p, values, v)?;
        let views = [x, to].map(|view| if reverse { view.reversed(&[axis]) } else { view });
        let (rank, n) = (views[0].dims.len(), views[0].dims[axis]);
        let accumulate = Accumulate { op, ty, buffers: [views[0].buffer, views[1].buffer] };
        // What columns keep: one number for each.
        let kept: Dims = (0..rank).map(|a| if a == axis { Size::ONE } else { views[0].dims[a] }).collect();
        let keeping = View::dense(views[1].buffer, &kept);
        let all = [&views[0], &views[1], &keeping];
        let axes = [0, 1].map(|k| (views[k].strides[axis], views[k].mean.strides[axis]));
        let work = Work::shared(count(&views[0].dims), EACH, Doing::Arithmetic);
        let columns = Walk::new(self, &all, axis + 1..rank);
        if let Some((width, sides)) = columns.only()
            && !width.at_most(WIDEST)
            && !count(&views[0].dims).at_most(CHUNK)
        {
            let levels = if accumulate.is_in_blocks(n) { levels(n) } else { 0 };
            // The sum of the block, of what stands before it, and of each group.
            let states = if accumulate.is_in_blocks(n) { 2 + levels as usize } else { 1 };
            let states: Vec<View> = (0..states)
                .map(|_| View::dense(self.new_scratch(ty, count(&kept)), &kept).of(self.tag(TagName::Partial)))
                .collect();
            let tile = tile_width(width, self.threads);
            let (tiles, left) = (width.floor_div(tile), width.modulo(tile));
            for (whole, width) in [(true, Size::from(tile)), (false, left)] {
                if (if whole { tiles } else { left }) == 0 {
                    continue;
                }
                self.emitter.begin();
                let outer = Walk::new(self, &all, 0..axis);
                outer.open(self);
                let number = if whole { self.emitter.value(Ty::I64) } else { self.emitter.size(tiles) };
                self.emitter.begin();
                let first = |k: usize, view: &View| {
                    let (at, mut meaning) = outer.along(k, view.first());
                    meaning.element = meaning.element.plus(number, sides[k].1 * tile);
                    (at.plus(number, sides[k].0 * tile), meaning)
                };
                let line = Line { from: [0, 1].map(|k| first(k, &views[k])), strides: axes };
                let states = states.iter().map(|s| (s.buffer, first(2, s))).collect();
                let columns = Columns { accumulate: &accumulate, sides: sides.clone(), width, states };
                columns.all(self, &line, n);
                let body = self.emitter.end();
                match whole {
                    true => self.emitter.serial(number, tiles, Vec::new(), body),
                    false => body.into_iter().for_each(|s| self.emitter.push(s)),
                }
                outer.close(self, Kind::Serial);
                let body = self.emitter.end();
                let work = if whole || !outer.is_empty() { work } else { Work::alone() };
                self.push_kernel(e.op().name(), Vec::new(), work, body);
            }
            return Ok(true);
        }
        // Rows by themselves go abreast, those that are left over one by one.
        let rows = (0..axis).rev().find(|a| views[0].dims[*a] != 1);
        if let Some(rows) = rows.filter(|a| columns.is_empty() && !views[0].dims[*a].at_most(ABREAST - 1)) {
            let whole = views[0].dims[rows].floor_div(ABREAST);
            let part = |view: &View, first: Size, n: Size| {
                let mut begin: Dims = smallvec::smallvec![Size::ZERO; rank];
                let mut dims = view.dims.clone();
                (begin[rows], dims[rows]) = (first, n);
                view.sliced(&begin, &dims, &vec![1; rank])
            };
            let mut some = views.clone().map(|view| part(&view, Size::ZERO, whole * ABREAST));
            let steps = [0, 1].map(|k| (some[k].strides[rows], some[k].mean.strides[rows]));
            for view in &mut some {
                view.dims[rows] = whole;
                view.strides[rows] = view.strides[rows] * ABREAST;
                view.mean.strides[rows] = view.mean.strides[rows] * ABREAST;
            }
            let left = views[0].dims[rows] - whole * ABREAST;
            let rest = views.clone().map(|view| part(&view, whole * ABREAST, left));
            for (views, abreast) in [(some, ABREAST), (rest, 1)] {
                if views[0].dims[rows] == 0 {
                    continue;
                }
                self.emitter.begin();
                let outer = Walk::new(self, &[&views[0], &views[1]], 0..axis);
                outer.open(self);
                let lines: Vec<Line> = (0..abreast)
                    .map(|j| {
                        let from = [0, 1].map(|k| {
                            let (at, mut meaning) = outer.along(k, views[k].first());
                            meaning.element = meaning.element.further(steps[k].1 * j);
                            (at.further(steps[k].0 * j), meaning)
                        });
                        Line { from, strides: axes }
                    })
                    .collect();
                accumulate.all(self, &lines, n);
                outer.close(self, Kind::Serial);
                let body = self.emitter.end();
                let work = if outer.is_empty() || abreast == 1 { Work::alone() } else { work };
                self.push_kernel(e.op().name(), Vec::new(), work, body);
            }
            return Ok(true);
        }
        // Columns that lie side by side go in lanes.
        self.emitter.begin();
        let outer = Walk::new(self, &all, 0..axis);
        outer.open(self);
        columns.open(self);
        let from = [0, 1].map(|k| columns.along(k, outer.along(k, views[k].first())));
        accumulate.all(self, &[Line { from, strides: axes }], n);
        columns.close(self, Kind::Lanes);
        outer.close(self, Kind::Serial);
        let body = self.emitter.end();
        let work = if outer.is_empty() && columns.is_empty() { Work::alone() } else { work };
        self.push_kernel(e.op().name(), Vec::new(), work, body);
        Ok(true)
    }
}

/// How many sizes of groups there are in so many places.
fn levels(n: Size) -> u32 {
    let begun = n.floor_div(BLOCK).known().map(|b| b + usize::from(n.modulo(BLOCK) != 0));
    begun.map_or(MOST_LEVELS, |b| (b - 1).checked_ilog(BLOCK).map_or(0, |log| log + 1))
}

/// How numbers accumulate, and in which buffers operand and result are.
struct Accumulate {
    op: FoldOp,
    ty: Ty,
    buffers: [Buffer; 2],
}

impl Accumulate {
    /// Whether the order of its sums is one of blocks.
    fn is_in_blocks(&self, n: Size) -> bool {
        self.op == FoldOp::Add && self.ty.is_float() && !n.at_most(BLOCK)
    }

    fn nothing(&self, l: &mut Lower) -> Value {
        l.emitter.constant(self.ty, self.op.neutral(self.ty))
    }

    /// Lines of so many places, from first to last.
    fn all(&self, l: &mut Lower, lines: &[Line], n: Size) {
        match self.is_in_blocks(n) {
            true => self.in_blocks(l, lines, n),
            false => drop(self.run(l, lines, n, None, &vec![None; lines.len()])),
        }
    }

    /// So many places of each line, one after the other, each behind `before` and behind what they begin with. Gives what they accumulate to without `before`.
    fn run(&self, l: &mut Lower, lines: &[Line], n: Size, init: Option<Value>, before: &[Option<Value>]) -> Vec<Value> {
        let init = init.unwrap_or_else(|| self.nothing(l));
        let i = l.emitter.value(Ty::I64);
        let mut carried: Vec<Carried> = Vec::new();
        for _ in lines {
            let (param, result) = (l.emitter.value(self.ty), l.emitter.value(self.ty));
            carried.push(Carried { init, param, next: param, result });
        }
        l.emitter.begin();
        let lines: Vec<Line> = lines.iter().map(|line| line.at(i, 1)).collect();
        let read = lines.iter().map(|line| line.from[0].clone());
        let read: Vec<Value> = read.map(|(at, meaning)| l.emitter.load(self.buffers[0], at, meaning)).collect();
        for (k, line) in lines.into_iter().enumerate() {
            let [_, (at, meaning)] = line.from;
            let next = l.emitter.op(self.op.op(), &[carried[k].param, read[k]]);
            let sum = before[k].map_or(next, |b| l.emitter.op(self.op.op(), &[b, next]));
            l.emitter.store(self.buffers[1], at, sum, meaning);
            carried[k].next = next;
        }
        let body = l.emitter.end();
        let results = carried.iter().map(|c| c.result).collect();
        l.emitter.serial(i, n, carried, body);
        results
    }

    /// Whole blocks, then what is left.
    fn in_blocks(&self, l: &mut Lower, lines: &[Line], n: Size) {
        let (blocks, left) = (n.floor_div(BLOCK), n.modulo(BLOCK));
        let init = self.nothing(l);
        let name = |l: &mut Lower| -> Vec<Vec<Value>> {
            lines.iter().map(|_| (0..levels(n)).map(|_| l.emitter.value(self.ty)).collect()).collect()
        };
        let (sums, results, block) = (name(l), name(l), l.emitter.value(Ty::I64));
        l.emitter.begin();
        let before: Vec<Option<Value>> = sums.iter().map(|sums| self.before(l, sums)).collect();
        let here: Vec<Line> = lines.iter().map(|line| line.at(block, BLOCK)).collect();
        let totals = self.run(l, &here, BLOCK.into(), None, &before);
        let next = sums.iter().zip(totals).map(|(sums, total)| self.finished(l, block, sums, total, init));
        let next: Vec<Vec<Value>> = next.collect();
        let body = l.emitter.end();
        let around = sums.iter().flatten().zip(next.into_iter().flatten()).zip(results.iter().flatten());
        let carried = around.map(|((param, next), result)| Carried { init, param: *param, next, result: *result });
        let carried = carried.collect();
        l.emitter.serial(block, blocks, carried, body);
        if left != 0 {
            let before: Vec<Option<Value>> = results.iter().map(|sums| self.before(l, sums)).collect();
            let rest: Vec<Line> = lines.iter().map(|line| line.from(blocks * BLOCK)).collect();
            self.run(l, &rest, left, None, &before);
        }
    }

    /// What stands before a block: the sums of finished groups, from the largest groups to the smallest.
    fn before(&self, l: &mut Lower, sums: &[Value]) -> Option<Value> {
        let (last, smaller) = sums.split_last()?;
        Some(smaller.iter().rev().fold(*last, |all, s| l.emitter.op(self.op.op(), &[all, *s])))
    }

    /// The sums of groups after a block: one that is full goes into the next larger, and begins again.
    fn finished(&self, l: &mut Lower, block: Value, sums: &[Value], mut total: Value, empty: Value) -> Vec<Value> {
        let (one, zero) = (l.emitter.int(1), l.emitter.int(0));
        let number = l.emitter.op(Op::Add, &[block, one]);
        let (mut next, mut size, mut reached) = (Vec::new(), 1, None);
        for s in sums {
            total = l.emitter.op(self.op.op(), &[*s, total]);
            size *= BLOCK as i64;
            let mask = l.emitter.int(size - 1);
            let rest = l.emitter.op(Op::And, &[number, mask]);
            let full = l.emitter.op(Op::Eq, &[rest, zero]);
            let new = l.emitter.op(Op::Select, &[full, empty, total]);
            next.push(reached.map_or(new, |reached| l.emitter.op(Op::Select, &[reached, new, *s])));
            reached = Some(full);
        }
        next
    }
}

/// A tile of columns: what they keep between groups of rows, and how far neighbours are apart, in the operand, in the result and in what is kept.
struct Columns<'a> {
    accumulate: &'a Accumulate,
    sides: Vec<(Size, Size)>,
    width: Size,
    /// The sum of the block so far; if there are blocks, what stands before it, and the sums of groups.
    states: Vec<(Buffer, (At, Meaning))>,
}

impl Columns<'_> {
    /// All places of all columns.
    fn all(&self, l: &mut Lower, line: &Line, n: Size) {
        let a = self.accumulate;
        if !a.is_in_blocks(n) {
            self.in_lanes(l, line, |l, _, states| {
                let nothing = a.nothing(l);
                states.write(l, 0, nothing, false);
            });
            return self.rows(l, line, n);
        }
        self.in_lanes(l, line, |l, _, states| {
            let nothing = a.nothing(l);
            (2..self.states.len()).for_each(|k| states.write(l, k, nothing, false));
        });
        let begin = |l: &mut Lower| {
            self.in_lanes(l, line, |l, _, states| {
                let nothing = a.nothing(l);
                let sums = states.sums(l);
                let before = a.before(l, &sums).unwrap_or(nothing);
                states.write(l, 0, nothing, true);
                states.write(l, 1, before, true);
            });
        };
        let (blocks, left) = (n.floor_div(BLOCK), n.modulo(BLOCK));
        let block = l.emitter.value(Ty::I64);
        l.emitter.begin();
        begin(l);
        self.rows(l, &line.at(block, BLOCK), BLOCK.into());
        self.in_lanes(l, line, |l, _, states| {
            let (nothing, total, sums) = (a.nothing(l), states.read(l, 0), states.sums(l));
            let next = a.finished(l, block, &sums, total, nothing);
            next.into_iter().enumerate().for_each(|(k, x)| states.write(l, 2 + k, x, true));
        });
        let body = l.emitter.end();
        l.emitter.serial(block, blocks, Vec::new(), body);
        if left != 0 {
            begin(l);
            self.rows(l, &line.from(blocks * BLOCK), left);
        }
    }

    /// So many rows, some at once.
    fn rows(&self, l: &mut Lower, line: &Line, n: Size) {
        let (groups, left) = (n.floor_div(ROWS), n.modulo(ROWS));
        if groups != 0 {
            let group = l.emitter.value(Ty::I64);
            l.emitter.begin();
            self.some_rows(l, &line.at(group, ROWS), ROWS.into());
            let body = l.emitter.end();
            l.emitter.serial(group, groups, Vec::new(), body);
        }
        if left != 0 {
            self.some_rows(l, &line.from(groups * ROWS), left);
        }
    }

    fn some_rows(&self, l: &mut Lower, line: &Line, n: Size) {
        self.in_lanes(l, line, |l, line, states| {
            let so_far = states.read(l, 0);
            let before = (self.states.len() > 1).then(|| states.read(l, 1));
            let next = self.accumulate.run(l, std::slice::from_ref(line), n, Some(so_far), &[before]);
            next.into_iter().for_each(|next| states.write(l, 0, next, true));
        });
    }

    /// A lane for each column.
    fn in_lanes(&self, l: &mut Lower, line: &Line, body: impl FnOnce(&mut Lower, &Line, &States)) {
        let var = l.emitter.value(Ty::I64);
        let aside = |k: usize, (at, meaning): &(At, Meaning)| {
            let mut meaning = meaning.clone();
            meaning.element = meaning.element.plus(var, self.sides[k].1);
            (at.clone().plus(var, self.sides[k].0), meaning)
        };
        let line = Line { from: [0, 1].map(|k| aside(k, &line.from[k])), strides: line.strides };
        let states = States(self.states.iter().map(|(b, place)| (*b, aside(2, place))).collect());
        l.emitter.begin();
        body(l, &line, &states);
        let body = l.emitter.end();
        l.emitter.lanes(var, self.width, Vec::new(), body);
    }
}

/// What one column keeps.
struct States(Vec<(Buffer, (At, Meaning))>);

impl States {
    fn read(&self, l: &mut Lower, k: usize) -> Value {
        let (buffer, (at, meaning)) = self.0[k].clone();
        l.emitter.load(buffer, at, meaning)
    }

    /// `again`: in place of what was there before.
    fn write(&self, l: &mut Lower, k: usize, x: Value, again: bool) {
        let (buffer, (at, meaning)) = self.0[k].clone();
        l.emitter.store(buffer, at, x, if again { meaning.again() } else { meaning });
    }

    /// The sums of groups.
    fn sums(&self, l: &mut Lower) -> Vec<Value> {
        (2..self.0.len()).map(|k| self.read(l, k)).collect()
    }
}
