//! Running sums, products and extrema: a loop along the axis that carries what came before, for each row by itself, or for many columns in lanes.
//!
//! Sums of floats have an order that is part of their meaning (see `running_sums` of the primitive): blocks of 256 places, then groups of 256 blocks,
//! and so on. What no block or group has been added to yet is the neutral number, which changes no bit of what it is added to.

use gradus_core::primitives::Op as Primitive;
use gradus_core::primitives::cumulative::{BLOCK, CumMax, CumMin, CumProd, CumSum};
use gradus_core::program::{Equation, Program};

use super::Lower;
use super::values::Values;
use super::views::At;
use super::walk::Walk;
use crate::cost::{Doing, Work};
use crate::error::Result;
use crate::ir::meaning::Meaning;
use crate::ir::{Buffer, Carried, FoldOp, Kind, Op, Ty, Value};
use crate::size::Size;

/// Groups of groups: more than so many have more elements than any memory.
const MOST_LEVELS: u32 = 5;
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
        // Columns that lie side by side go in lanes.
        self.emitter.begin();
        let all = [&views[0], &views[1]];
        let outer = Walk::new(self, &all, 0..axis);
        outer.open(self);
        let columns = Walk::new(self, &all, axis + 1..rank);
        columns.open(self);
        let from = [0, 1].map(|k| columns.along(k, outer.along(k, views[k].first())));
        let line = Line { from, strides: [0, 1].map(|k| (views[k].strides[axis], views[k].mean.strides[axis])) };
        let buffers = [views[0].buffer, views[1].buffer];
        let accumulate = Accumulate { op, ty, buffers };
        match op == FoldOp::Add && ty.is_float() && !n.at_most(BLOCK) {
            true => accumulate.in_blocks(self, &line, n),
            false => drop(accumulate.run(self, &line, n, None)),
        }
        columns.close(self, Kind::Lanes);
        outer.close(self, Kind::Serial);
        let body = self.emitter.end();
        let work = match outer.is_empty() && columns.is_empty() {
            true => Work::alone(),
            false => Work::shared(views[0].dims.iter().product(), EACH, Doing::Arithmetic),
        };
        self.push_kernel(e.op().name(), Vec::new(), work, body);
        Ok(true)
    }
}

/// How numbers accumulate, and in which buffers operand and result are.
struct Accumulate {
    op: FoldOp,
    ty: Ty,
    buffers: [Buffer; 2],
}

impl Accumulate {
    /// So many places, one after the other, each behind `before`. Gives what they accumulate to without it.
    fn run(&self, l: &mut Lower, line: &Line, n: Size, before: Option<Value>) -> Value {
        let init = l.emitter.constant(self.ty, self.op.neutral(self.ty));
        let (i, param, result) = (l.emitter.value(Ty::I64), l.emitter.value(self.ty), l.emitter.value(self.ty));
        l.emitter.begin();
        let [from, to] = line.at(i, 1).from;
        let x = l.emitter.load(self.buffers[0], from.0, from.1);
        let next = l.emitter.op(self.op.op(), &[param, x]);
        let sum = before.map_or(next, |b| l.emitter.op(self.op.op(), &[b, next]));
        l.emitter.store(self.buffers[1], to.0, sum, to.1);
        let body = l.emitter.end();
        l.emitter.serial(i, n, vec![Carried { init, param, next, result }], body);
        result
    }

    /// Whole blocks, then what is left.
    fn in_blocks(&self, l: &mut Lower, line: &Line, n: Size) {
        let (blocks, left) = (n.floor_div(BLOCK), n.modulo(BLOCK));
        let begun = blocks.known().map(|b| b + usize::from(left != 0));
        let levels = begun.map_or(MOST_LEVELS, |b| (b - 1).checked_ilog(BLOCK).map_or(0, |log| log + 1));
        let init = l.emitter.constant(self.ty, self.op.neutral(self.ty));
        let name = |l: &mut Lower| (0..levels).map(|_| l.emitter.value(self.ty)).collect::<Vec<Value>>();
        let (sums, results, block) = (name(l), name(l), l.emitter.value(Ty::I64));
        l.emitter.begin();
        let before = self.before(l, &sums);
        let total = self.run(l, &line.at(block, BLOCK), BLOCK.into(), before);
        let next = self.finished(l, block, &sums, total, init);
        let body = l.emitter.end();
        let around = sums.iter().zip(next).zip(&results);
        let carried = around.map(|((param, next), result)| Carried { init, param: *param, next, result: *result });
        let carried = carried.collect();
        l.emitter.serial(block, blocks, carried, body);
        if left != 0 {
            let before = self.before(l, &results);
            self.run(l, &line.from(blocks * BLOCK), left, before);
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
