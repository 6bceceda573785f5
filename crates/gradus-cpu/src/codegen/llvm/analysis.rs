//! What is known of a loop of lanes before its text is written: which values differ between lanes, which can be computed
//! before the loop, and how many lanes one step may take without running out of registers.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codegen::blocks::{Blocks, blocks};
use crate::ir::{Buffer, Expr, Index, Int, LANES, Loop, Op, Stmt, Ty, Value};

use super::emit::{Emitter, Machine};
use super::text::Operand;

/// Defined in the loop.
const INSIDE: u8 = 1;
/// Differs between lanes.
const VARYING: u8 = 2;
/// Computed before the loop.
const HOISTED: u8 = 4;
/// The same in all lanes, defined in the loop, and needed as a vector.
const SPLAT: u8 = 8;

/// The most vector registers one value takes, by how many statements the body has: wide steps hide the latency of short
/// bodies; long ones only become longer.
const REGISTERS: [(usize, usize); 3] = [(400, 4), (1500, 2), (usize::MAX, 1)];

/// What the writer of the loop wants to know.
#[derive(Default)]
pub(super) struct Analysis {
    /// A serial loop in the body runs for each lane as often as it likes: the lanes cannot go together.
    pub(super) uneven: bool,
    /// How many statements the body has.
    pub(super) statements: usize,
    /// Bytes of the widest value that differs between lanes.
    widest: usize,
    /// Single bytes or pairs are read or written at scattered places, which no machine does well.
    scattered: bool,
    /// When values live: from, to, bytes of one lane.
    intervals: Vec<(usize, usize, usize)>,
    stored: FxHashSet<Buffer>,
}

/// The lives of values while the body is walked.
#[derive(Default)]
struct Lives {
    now: usize,
    of: FxHashMap<Value, (usize, usize)>,
    /// Who was used since the loops around began.
    used: Vec<Value>,
}

/// How the address of an element differs between lanes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Reach {
    /// It does not.
    Uniform,
    /// By a fixed number of elements from lane to lane.
    Strided(Int),
    /// In any way.
    Scattered,
}

impl Reach {
    /// The stride, if lanes are so near to each other that whole vectors are moved, and shuffled.
    pub(super) fn near(self, machine: Machine) -> Option<i64> {
        match self {
            Reach::Strided(Int::Const(s @ (1 | -1))) => Some(s),
            // What lies between is masked out: it may be behind the end.
            Reach::Strided(Int::Const(s @ 2..=4)) if machine.masks => Some(s),
            _ => None,
        }
    }
}

impl Emitter<'_> {
    fn has(&self, v: Value, flag: u8) -> bool {
        self.flags[v.index()] & flag != 0
    }

    fn set(&mut self, v: Value, flag: u8) -> bool {
        let flags = &mut self.flags[v.index()];
        let new = *flags & flag != flag;
        *flags |= flag;
        new
    }

    pub(super) fn is_varying(&self, v: Value) -> bool {
        self.has(v, VARYING)
    }

    pub(super) fn is_hoisted(&self, v: Value) -> bool {
        self.has(v, HOISTED)
    }

    pub(super) fn is_splat(&self, v: Value) -> bool {
        self.has(v, SPLAT)
    }

    /// Whether a value is known before the loop.
    pub(super) fn is_outer(&self, v: Value) -> bool {
        !self.has(v, INSIDE) || self.has(v, HOISTED)
    }

    /// How an index differs between the lanes of a loop.
    pub(super) fn reach(&self, at: &Index, var: Value) -> Reach {
        let mut reach = Reach::Uniform;
        for (v, stride) in &at.terms {
            let uneven = matches!(stride, Int::Value(s) if self.is_varying(*s));
            let counts = *v == var || self.blocks.lane.contains(v);
            if uneven || (self.is_varying(*v) && !counts) {
                return Reach::Scattered;
            }
            if counts {
                reach = match (stride, reach) {
                    (Int::Const(0), reach) => reach,
                    (stride, Reach::Uniform) => Reach::Strided(*stride),
                    _ => return Reach::Scattered,
                };
            }
        }
        reach
    }

    /// Looks at a loop of lanes and flags the values of its body.
    pub(super) fn analyze(&mut self, l: &Loop) -> Analysis {
        self.set(l.var, INSIDE | VARYING);
        self.blocks = blocks(l, |v| match self.scalars[v.index()] {
            Operand::Literal(_, bits) => Some(bits),
            _ => None,
        });
        let mut a = Analysis { widest: 1, ..Analysis::default() };
        while self.spread(&l.body, l.var) {}
        self.stores(&l.body, &mut a.stored);
        self.mark_hoisted(&l.body, &a.stored, true);
        let mut lives = Lives::default();
        self.walk(&l.body, l.var, &mut a, &mut lives);
        for f in &l.folds {
            self.want(f.value, &mut a, &mut lives);
            // The fold's own lanes.
            let registers = self.module.ty(f.value).size();
            a.intervals.push((0, usize::MAX, registers));
        }
        for (v, (from, to)) in lives.of {
            let ty = self.module.ty(v);
            let bytes = match ty {
                Ty::Bool if self.machine.masks => continue,
                Ty::Bool => 4,
                ty => ty.size(),
            };
            // What comes from outside lives as long as the loop.
            let outer = self.is_outer(v);
            a.intervals.push(if outer { (0, usize::MAX, bytes) } else { (from, to, bytes) });
        }
        a
    }

    /// Flags what differs between lanes; true if there was anything new.
    fn spread(&mut self, body: &[Stmt], var: Value) -> bool {
        let mut new = false;
        for s in body {
            match s {
                Stmt::Let(v, _) if self.blocks.same.contains(v) => new |= self.set(*v, INSIDE),
                Stmt::Let(v, e) => {
                    new |= self.set(*v, INSIDE);
                    let varying = match e {
                        Expr::Op(_, args) => args.iter().any(|a| self.is_varying(*a)),
                        Expr::Load(_, at) => self.reach(at, var) != Reach::Uniform,
                        Expr::Const(_) | Expr::Size(_) => false,
                    };
                    new |= varying && self.set(*v, VARYING);
                }
                Stmt::Loop(inner) => {
                    new |= self.set(inner.var, INSIDE);
                    for c in &inner.carried {
                        new |= self.set(c.param, INSIDE) | self.set(c.result, INSIDE);
                        let varying = self.is_varying(c.init) || self.is_varying(c.next);
                        if varying {
                            new |= self.set(c.param, VARYING) | self.set(c.result, VARYING);
                        }
                    }
                    new |= self.spread(&inner.body, var);
                }
                _ => {}
            }
        }
        new
    }

    fn stores(&self, body: &[Stmt], out: &mut FxHashSet<Buffer>) {
        for s in body {
            match s {
                Stmt::Store { buffer, .. } => {
                    out.insert(*buffer);
                }
                Stmt::Loop(l) => self.stores(&l.body, out),
                _ => {}
            }
        }
    }

    /// Flags what can be computed before the loop. Operations are total, so it does no harm where the loop does not come
    /// to them; an element is read before only if the loop comes to it for sure, and does not write that buffer. (Another
    /// buffer may lie at the same place, but iterations are independent: none writes what another reads.)
    fn mark_hoisted(&mut self, body: &[Stmt], stored: &FxHashSet<Buffer>, top: bool) {
        for s in body {
            match s {
                Stmt::Let(v, _) if self.is_varying(*v) => {}
                Stmt::Let(v, e) => {
                    let early = match e {
                        Expr::Const(bits) => {
                            // Known from now on: constants take no registers.
                            self.scalars[v.index()] = Operand::Literal(self.module.ty(*v), *bits);
                            true
                        }
                        Expr::Size(_) => true,
                        Expr::Op(Op::Special(_), _) => false,
                        Expr::Op(_, args) => args.iter().all(|a| self.is_outer(*a)),
                        Expr::Load(b, at) => top && !stored.contains(b) && self.is_outer_index(at),
                    };
                    if early {
                        self.set(*v, HOISTED);
                    }
                }
                Stmt::Loop(l) => self.mark_hoisted(&l.body, stored, false),
                _ => {}
            }
        }
    }

    fn is_outer_index(&self, at: &Index) -> bool {
        at.terms.iter().all(|(v, stride)| {
            self.is_outer(*v)
                && match stride {
                    Int::Const(_) => true,
                    Int::Value(s) => self.is_outer(*s),
                }
        })
    }

    /// A value is used as a vector.
    fn want(&mut self, v: Value, a: &mut Analysis, lives: &mut Lives) {
        if !self.is_varying(v) {
            if self.is_outer(v) {
                // Constants are read from memory where they are used.
                if matches!(self.scalars[v.index()], Operand::Literal(..)) {
                    return;
                }
            } else {
                self.set(v, SPLAT);
            }
        }
        let ty = self.module.ty(v);
        a.widest = a.widest.max(ty.size());
        let now = lives.now;
        lives.of.entry(v).or_insert((now, now)).1 = now;
        lives.used.push(v);
    }

    fn define(&mut self, v: Value, a: &mut Analysis, lives: &mut Lives) {
        if self.is_varying(v) {
            a.widest = a.widest.max(self.module.ty(v).size());
            lives.of.insert(v, (lives.now, lives.now));
        }
    }

    fn want_index(&mut self, at: &Index, var: Value, ty: Ty, a: &mut Analysis, lives: &mut Lives) {
        let reach = self.reach(at, var);
        match (reach, reach.near(self.machine)) {
            (Reach::Uniform, _) => {}
            (_, Some(stride)) => a.intervals.push((lives.now, lives.now, ty.size() * stride.unsigned_abs() as usize)),
            (reach, None) => {
                a.scattered |= ty.size() < 4;
                if reach == Reach::Scattered {
                    for (v, stride) in &at.terms {
                        let uneven = matches!(stride, Int::Value(s) if self.is_varying(*s));
                        if uneven || self.is_varying(*v) {
                            self.want(*v, a, lives);
                            if let Int::Value(s) = stride {
                                self.want(*s, a, lives);
                            }
                        }
                    }
                }
            }
        }
    }

    fn walk(&mut self, body: &[Stmt], var: Value, a: &mut Analysis, lives: &mut Lives) {
        for s in body {
            lives.now += 1;
            match s {
                Stmt::Let(v, _) if self.blocks.lane.contains(v) => {}
                Stmt::Let(v, e) => {
                    if self.is_varying(*v) {
                        a.statements += 1;
                        match e {
                            Expr::Op(_, args) => args.iter().for_each(|x| self.want(*x, a, lives)),
                            Expr::Load(_, at) => self.want_index(at, var, self.module.ty(*v), a, lives),
                            Expr::Const(_) | Expr::Size(_) => {}
                        }
                    }
                    self.define(*v, a, lives);
                }
                Stmt::Store { at, value, .. } => {
                    a.statements += 1;
                    self.want_index(at, var, self.module.ty(*value), a, lives);
                    if self.reach(at, var) != Reach::Uniform || self.is_varying(*value) {
                        self.want(*value, a, lives);
                    }
                }
                Stmt::Loop(l) => {
                    a.uneven |= matches!(l.count, Int::Value(n) if self.is_varying(n));
                    let (start, since) = (lives.now, lives.used.len());
                    for c in &l.carried {
                        if self.is_varying(c.param) {
                            self.want(c.init, a, lives);
                            self.define(c.param, a, lives);
                        }
                    }
                    self.walk(&l.body, var, a, lives);
                    lives.now += 1;
                    for c in &l.carried {
                        if self.is_varying(c.param) {
                            self.want(c.next, a, lives);
                            self.want(c.param, a, lives);
                        }
                        self.define(c.result, a, lives);
                    }
                    // What the loop uses from before it lives to its end.
                    let end = lives.now;
                    for v in &lives.used[since..] {
                        if let Some(life) = lives.of.get_mut(v)
                            && life.0 <= start
                        {
                            life.1 = life.1.max(end);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

impl Analysis {
    /// The most registers that hold values at once if a step takes so many lanes.
    fn pressure(&self, lanes: usize, vector: usize) -> usize {
        let mut events: Vec<(usize, isize)> = Vec::with_capacity(self.intervals.len() * 2);
        for (from, to, bytes) in &self.intervals {
            let registers = (bytes * lanes).div_ceil(vector) as isize;
            events.extend([(*from, registers), (to.saturating_add(1), -registers)]);
        }
        events.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, change) in events {
            now += change;
            most = most.max(now);
        }
        most as usize
    }

    /// How many lanes one step takes, for a machine and a count if it is known.
    pub(super) fn lanes(&self, machine: Machine, count: Option<i64>, blocks: &Blocks) -> u32 {
        if self.uneven || count == Some(1) {
            return 1;
        }
        let widest = if blocks.is_empty() { 2 * LANES } else { LANES };
        let most = REGISTERS.iter().find(|(n, _)| self.statements <= *n).map_or(1, |(_, r)| *r);
        let least = (machine.vector / self.widest).clamp(2, widest);
        let budget = machine.registers * 4 / 5;
        let mut lanes = widest;
        while lanes > least
            && (lanes * self.widest > most * machine.vector || self.pressure(lanes, machine.vector) > budget)
        {
            lanes /= 2;
        }
        if self.scattered {
            lanes = lanes.min(16);
        }
        // No more lanes than iterations.
        if let Some(n) = count {
            let n = n.max(1) as usize;
            let enough = if machine.masks { n.next_power_of_two() } else { (n + 1).next_power_of_two() / 2 };
            lanes = lanes.min(enough);
        }
        lanes as u32
    }
}
