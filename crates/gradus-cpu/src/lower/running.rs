//! Sums over all elements in loops that were turned around: each step has running totals, one for each lane, and takes in the elements in the order of such sums.

use super::Lower;
use super::fusion::CHUNK;
use super::scalars::finish_fold;
use super::views::At;
use crate::cost::{Doing, Work};
use crate::ir::meaning::{Meaning, Tag, TagName};
use crate::ir::{Buffer, Carried, Fold, FoldOp, Kind, LANES, Op, Ty, Value};
use crate::size::Size;

/// Elements that a loop of lanes takes in: one for each running total of a step, or the last few of all.
pub(super) struct Run {
    /// The loops around it, from the outermost, with how often they run and how many elements they go on by.
    loops: Vec<(Value, Size, usize)>,
    /// The elements before the first.
    pub first: Size,
    /// How many there are.
    pub n: Size,
    /// The chunk that they are in, if no loop says it: threads share a loop over chunks.
    chunk: Option<Size>,
}

impl Run {
    /// All of so many elements: whole chunks, and what is left over. Each is a kernel, since they reach different parts of what they add to.
    pub fn of_all(l: &mut Lower, n: Size) -> Vec<Run> {
        let (chunks, left) = (n.floor_div(CHUNK), n.modulo(CHUNK));
        let (lanes, rest) = (left.floor_div(LANES), left.modulo(LANES));
        let [chunk, block, last] = [0, 1, 2].map(|_| l.emitter.value(Ty::I64));
        let whole = vec![(chunk, chunks, CHUNK), (block, (CHUNK / LANES).into(), LANES)];
        let runs = [
            (chunks != 0, Run { loops: whole, first: Size::ZERO, n: LANES.into(), chunk: None }),
            (
                lanes != 0,
                Run { loops: vec![(last, lanes, LANES)], first: chunks * CHUNK, n: LANES.into(), chunk: Some(chunks) },
            ),
            (rest != 0, Run { loops: Vec::new(), first: n - rest, n: rest, chunk: Some(chunks) }),
        ];
        runs.into_iter().filter_map(|(some, run)| some.then_some(run)).collect()
    }

    /// What its kernel does, if each element takes so many nanoseconds.
    pub fn work(&self, each: f32) -> Work {
        match (self.chunk, self.loops.first()) {
            (None, Some((_, chunks, _))) => Work::shared(*chunks, each * CHUNK as f32, Doing::Arithmetic),
            _ => Work::alone(),
        }
    }

    /// The variables of the loops around it, and how many elements they go on by.
    pub fn along(&self) -> impl Iterator<Item = (Value, usize)> + '_ {
        self.loops.iter().map(|(var, _, by)| (*var, *by))
    }

    /// Begins the loops around it.
    pub fn open(&self, l: &mut Lower) {
        self.loops.iter().for_each(|_| l.emitter.begin());
    }

    /// Ends them.
    pub fn close(&self, l: &mut Lower) {
        for (var, n, _) in self.loops.iter().rev() {
            let body = l.emitter.end();
            l.emitter.counted(Kind::Serial, *var, *n, body);
        }
    }
}

/// The running totals of an equation that sums over all elements.
pub(super) struct Running {
    /// Which of the body it is.
    pub equation: usize,
    ty: Ty,
    buffer: Buffer,
    tag: Tag,
    /// The chunks of each step; the last may have nothing in it.
    chunks: Size,
}

impl Running {
    /// Memory for them, with nothing in it yet.
    pub fn begin(l: &mut Lower, equation: usize, ty: Ty, steps: Size, n: Size) -> Running {
        let chunks = n.floor_div(CHUNK) + 1i64;
        let all = steps * chunks * LANES;
        let (buffer, tag) = (l.new_scratch(ty, all), l.tag(TagName::Partial));
        let var = l.emitter.value(Ty::I64);
        l.emitter.begin();
        l.emitter.begin();
        let nothing = l.emitter.constant(ty, FoldOp::Add.neutral(ty));
        let at = At::start().plus(var, 1usize);
        l.emitter.store(buffer, at.clone(), nothing, Meaning::of(tag, at));
        let body = l.emitter.end();
        l.emitter.lanes(var, all, Vec::new(), body);
        let body = l.emitter.end();
        l.push_kernel("begin_totals", Vec::new(), Work::alone(), body);
        Running { equation, ty, buffer, tag, chunks }
    }

    /// Those of a step, which are numbered in the order in which they are done.
    fn of_step(&self, step: Value) -> At {
        At::start().plus(step, self.chunks * LANES)
    }

    /// Adds a number to the total of its lane.
    pub fn add(&self, l: &mut Lower, step: Value, run: &Run, lane: Value, x: Value) {
        let at = self.of_step(step).plus(lane, 1usize);
        let at = match (run.chunk, run.loops.first()) {
            (None, Some((chunk, ..))) => at.plus(*chunk, LANES),
            (chunk, _) => at.further(chunk.unwrap_or(Size::ZERO) * LANES),
        };
        let meaning = Meaning::of(self.tag, at.clone());
        let so_far = l.emitter.load(self.buffer, at.clone(), meaning.clone());
        let sum = l.emitter.op(Op::Add, &[so_far, x]);
        l.emitter.store(self.buffer, at, sum, meaning.again());
    }

    /// The sum of a step: the lanes of each chunk, and the chunks one after the other.
    pub fn end(&self, l: &mut Lower, step: Value) -> Value {
        let e = &mut l.emitter;
        let [chunk, lane] = [0, 1].map(|_| e.value(Ty::I64));
        let [so_far, sum, result] = [0, 1, 2].map(|_| e.value(self.ty));
        let identity = e.constant(self.ty, FoldOp::Add.identity(self.ty));
        let init = e.constant(self.ty, FoldOp::Add.neutral(self.ty));
        e.begin();
        e.begin();
        let at = self.of_step(step).plus(chunk, LANES).plus(lane, 1usize);
        let total = e.load(self.buffer, at.clone(), Meaning::of(self.tag, at));
        let body = e.end();
        e.lanes(lane, LANES, vec![Fold { op: FoldOp::Add, value: total, result: sum }], body);
        let next = e.op(Op::Add, &[so_far, sum]);
        let body = e.end();
        e.serial(chunk, self.chunks, vec![Carried { init, param: so_far, next, result }], body);
        finish_fold(e, FoldOp::Add, identity, result)
    }
}
