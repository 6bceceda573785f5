//! Cuts a long main body into functions of bounded size.
//!
//! Making one function takes more than linear time in its length, and a program that was unrolled is one straight line of
//! any length. So a body that is too long becomes calls of *pieces*, each a function of its own. What one piece defines and
//! another uses goes through a frame in memory; constants are made anew.

use rustc_hash::FxHashMap;

use crate::ir::{Expr, Index, Int, Module, Stmt, Value};

const NONE: u32 = u32::MAX;

/// How the main body is cut.
#[derive(Default)]
pub(super) struct Plan {
    /// About how many statements a function has at most.
    limit: usize,
    /// The number of the piece that begins with a statement, by its address.
    numbers: FxHashMap<usize, u32>,
    /// The piece that defines each value; empty if nothing is cut.
    owner: Vec<u32>,
    /// Where in the frame each value is; `NONE` for those that only one piece uses.
    slots: Vec<u32>,
    constants: FxHashMap<Value, u64>,
    /// The bytes of the frame.
    pub frame: u32,
}

/// Where a value of another piece comes from.
pub(super) enum Foreign {
    /// It has these bits.
    Constant(u64),
    /// It is at this place in the frame.
    Slot(i32),
}

/// A part of a body that is cut.
pub(super) enum Part<'a> {
    /// A call of a piece.
    Piece(u32, &'a [Stmt]),
    /// A statement that is long by itself: its own bodies are cut.
    Whole(&'a Stmt),
}

impl Plan {
    pub fn new(module: &Module, limit: usize) -> Plan {
        if weight(&module.main) <= limit {
            return Plan::default();
        }
        let n = module.types.len();
        let mut walk = Walk {
            plan: Plan { limit, owner: vec![NONE; n], slots: vec![NONE; n], ..Plan::default() },
            module,
            pieces: 0,
            place: 0,
            places: vec![0],
            depth: vec![0; n],
            last: vec![0; n],
            crossing: Vec::new(),
            ending: None,
            free: Vec::new(),
        };
        walk.statements(&module.main, 0);
        // The second time, values get their slots, which are free again after the last use.
        let mut ending: FxHashMap<u32, Vec<Value>> = FxHashMap::default();
        for v in std::mem::take(&mut walk.crossing) {
            ending.entry(walk.last[v.index()]).or_default().push(v);
            walk.plan.slots[v.index()] = 0;
        }
        walk.ending = Some(ending);
        (walk.place, walk.places, walk.pieces) = (0, vec![0], 0);
        walk.statements(&module.main, 0);
        walk.plan
    }

    /// How many pieces there are, the main function among them.
    pub fn pieces(&self) -> usize {
        self.numbers.len() + 1
    }

    /// The parts of a body; None if it is short enough.
    pub fn parts<'a>(&self, body: &'a [Stmt]) -> Option<Vec<Part<'a>>> {
        if self.numbers.is_empty() {
            return None;
        }
        let number = |s: &[Stmt]| self.numbers.get(&(s.as_ptr() as usize)).copied().unwrap_or_default();
        parts(body, self.limit, number)
    }

    /// How to get at a value that another piece defines; None for one of this piece.
    pub fn foreign(&self, v: Value, piece: u32) -> Option<Foreign> {
        match self.owner.get(v.index()) {
            Some(owner) if *owner != NONE && *owner != piece => Some(match self.constants.get(&v) {
                Some(bits) => Foreign::Constant(*bits),
                None => Foreign::Slot(self.slots[v.index()] as i32 * 8),
            }),
            _ => None,
        }
    }

    /// The place in the frame of a value that this piece defines for others.
    pub fn shared(&self, v: Value, piece: u32) -> Option<i32> {
        match (self.owner.get(v.index()), self.slots.get(v.index())) {
            (Some(owner), Some(slot)) if *owner == piece && *slot != NONE => Some(*slot as i32 * 8),
            _ => None,
        }
    }
}

/// About how much code a body becomes.
fn weight(body: &[Stmt]) -> usize {
    body.iter().map(weight_of).sum()
}

fn weight_of(s: &Stmt) -> usize {
    match s {
        Stmt::Let(..) | Stmt::Store { .. } => 1,
        Stmt::Loop(l) => 4 + l.carried.len() + weight(&l.body),
        Stmt::While(w) => 4 + w.carried.len() + weight(&w.before) + weight(&w.body),
        Stmt::Switch(s) => 4 + s.cases.iter().map(|(b, _)| 2 + weight(b)).sum::<usize>(),
        Stmt::Kernel(_) => 8,
        Stmt::Call(c) => 4 + 2 * c.buffers.len(),
        Stmt::Swap(..) => 4,
        Stmt::Note(_) => 0,
    }
}

fn parts<'a>(body: &'a [Stmt], limit: usize, mut number: impl FnMut(&[Stmt]) -> u32) -> Option<Vec<Part<'a>>> {
    if weight(body) <= limit {
        return None;
    }
    let mut out = Vec::new();
    let (mut start, mut sum) = (0, 0);
    let mut close = |out: &mut Vec<Part<'a>>, range: std::ops::Range<usize>| {
        if !range.is_empty() {
            let run = &body[range];
            out.push(Part::Piece(number(run), run));
        }
    };
    for (i, s) in body.iter().enumerate() {
        let w = weight_of(s);
        if sum + w > limit {
            close(&mut out, start..i);
            (start, sum) = (i, 0);
        }
        if w > limit {
            out.push(Part::Whole(s));
            start = i + 1;
        } else {
            sum += w;
        }
    }
    close(&mut out, start..body.len());
    Some(out)
}

/// A walk over the main body in the order of the code. The first one finds what crosses pieces and where it is last used,
/// the second one gives out slots.
struct Walk<'a> {
    plan: Plan,
    module: &'a Module,
    pieces: u32,
    /// Counts statements.
    place: u32,
    /// For each body around: the statement in it that is being walked.
    places: Vec<u32>,
    /// How deep each value is defined.
    depth: Vec<u32>,
    /// The last statement that uses a value, of those that stand in the body that defines it.
    last: Vec<u32>,
    crossing: Vec<Value>,
    /// In the second walk: the values that are used last in a statement.
    ending: Option<FxHashMap<u32, Vec<Value>>>,
    free: Vec<u32>,
}

impl Walk<'_> {
    fn statements(&mut self, body: &[Stmt], piece: u32) {
        let (pieces, numbers) = (&mut self.pieces, &mut self.plan.numbers);
        let parts = parts(body, self.plan.limit, |run| {
            *pieces += 1;
            numbers.insert(run.as_ptr() as usize, *pieces);
            *pieces
        });
        match parts {
            None => body.iter().for_each(|s| self.statement(s, piece)),
            Some(parts) => parts.into_iter().for_each(|part| match part {
                Part::Piece(n, run) => run.iter().for_each(|s| self.statement(s, n)),
                Part::Whole(s) => self.statement(s, piece),
            }),
        }
    }

    /// Runs `f` as a statement of the innermost body.
    fn step(&mut self, f: impl FnOnce(&mut Self)) {
        self.place += 1;
        let place = self.place;
        self.places.pop();
        self.places.push(place);
        f(self);
        let Some(ending) = &mut self.ending else { return };
        for v in ending.remove(&place).unwrap_or_default() {
            self.free.push(self.plan.slots[v.index()]);
        }
    }

    /// Runs `f` as a body of its own.
    fn inside(&mut self, f: impl FnOnce(&mut Self)) {
        self.places.push(0);
        f(self);
        self.places.pop();
    }

    fn define(&mut self, v: Value, piece: u32) {
        self.plan.owner[v.index()] = piece;
        self.depth[v.index()] = self.places.len() as u32 - 1;
        if self.ending.is_some() && self.plan.slots[v.index()] != NONE {
            self.plan.slots[v.index()] = self.free.pop().unwrap_or_else(|| {
                self.plan.frame += 8;
                self.plan.frame / 8 - 1
            });
        }
    }

    fn use_(&mut self, v: Value, piece: u32) {
        if self.ending.is_some() || self.plan.constants.contains_key(&v) {
            return;
        }
        if self.plan.owner[v.index()] != piece && self.plan.slots[v.index()] == NONE {
            // Not its slot yet, only a mark that it will have one.
            self.plan.slots[v.index()] = 0;
            self.crossing.push(v);
        }
        self.last[v.index()] = self.places[self.depth[v.index()] as usize];
    }

    fn uses(&mut self, values: impl Iterator<Item = Value>, piece: u32) {
        values.for_each(|v| self.use_(v, piece));
    }

    fn index(&mut self, at: &Index, piece: u32) {
        for (v, stride) in &at.terms {
            self.use_(*v, piece);
            if let Int::Value(stride) = stride {
                self.use_(*stride, piece);
            }
        }
    }

    fn statement(&mut self, s: &Stmt, piece: u32) {
        self.step(|w| w.walk(s, piece));
    }

    fn walk(&mut self, s: &Stmt, piece: u32) {
        match s {
            Stmt::Let(v, e) => {
                match e {
                    Expr::Const(bits) => {
                        self.plan.constants.insert(*v, *bits);
                    }
                    Expr::Size(_) => {}
                    Expr::Op(_, args) => self.uses(args.iter().copied(), piece),
                    Expr::Load(_, at) => self.index(at, piece),
                }
                self.define(*v, piece);
            }
            Stmt::Store { at, value, .. } => {
                self.index(at, piece);
                self.use_(*value, piece);
            }
            Stmt::Loop(l) => {
                if let Int::Value(count) = l.count {
                    self.use_(count, piece);
                }
                self.uses(l.carried.iter().map(|c| c.init), piece);
                self.inside(|w| {
                    w.step(|w| {
                        w.define(l.var, piece);
                        l.carried.iter().for_each(|c| w.define(c.param, piece));
                    });
                    w.statements(&l.body, piece);
                    w.step(|w| w.uses(l.carried.iter().map(|c| c.next), piece));
                });
                l.carried.iter().for_each(|c| self.define(c.result, piece));
            }
            Stmt::While(l) => {
                self.uses(l.carried.iter().map(|c| c.init), piece);
                self.inside(|w| {
                    w.step(|w| l.carried.iter().for_each(|c| w.define(c.param, piece)));
                    w.statements(&l.before, piece);
                    w.step(|w| w.use_(l.condition, piece));
                    w.statements(&l.body, piece);
                    w.step(|w| w.uses(l.carried.iter().map(|c| c.next), piece));
                });
                l.carried.iter().for_each(|c| self.define(c.result, piece));
            }
            Stmt::Switch(s) => {
                self.use_(s.index, piece);
                for (body, ends) in &s.cases {
                    self.inside(|w| {
                        w.statements(body, piece);
                        w.step(|w| w.uses(ends.iter().copied(), piece));
                    });
                }
                s.results.iter().for_each(|r| self.define(*r, piece));
            }
            Stmt::Kernel(k) => {
                let k = &self.module.kernels[*k as usize];
                self.uses(k.inputs.iter().copied(), piece);
                k.outputs.iter().for_each(|v| self.define(*v, piece));
            }
            Stmt::Call(c) => c.buffers.iter().for_each(|(_, at)| self.index(at, piece)),
            Stmt::Swap(..) | Stmt::Note(_) => {}
        }
    }
}
