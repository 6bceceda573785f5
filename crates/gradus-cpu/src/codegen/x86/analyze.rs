//! What is the same in all lanes and what is not, and how many lanes a loop works on at once.

use rustc_hash::FxHashMap;

use super::Isa;
use super::allocate::vectors;
use crate::codegen::blocks::Blocks;
use crate::ir::{Expr, Index, Int, Kind, LANES, Loop, Module, Op, Stmt, Ty, Value};

/// How a loop of lanes is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Lanes of one vector. All types of a loop share it, so it is that of 64-bit types if there are any.
    pub width: usize,
    /// Whether there are 64-bit types.
    pub wide: bool,
    /// Vectors of one step.
    pub vectors: usize,
    /// How many of them are worked on together.
    pub together: usize,
    /// There are no whole steps: all vectors are worked on one by one.
    pub single: bool,
}

/// Strides of more than this are not constants for gathers: displacements and 32-bit indices are of no use.
pub const FAR: i64 = 1 << 20;

/// Whether there are loops of lanes. None: something that kernels do not have.
pub fn has_lanes(body: &[Stmt]) -> Option<bool> {
    let mut lanes = false;
    for s in body {
        match s {
            Stmt::Let(..) | Stmt::Store { .. } => {}
            Stmt::Loop(l) => lanes |= has_lanes(&l.body)? || l.kind == Kind::Lanes,
            _ => return None,
        }
    }
    Some(lanes)
}

/// Marks what varies in the body of a loop of lanes. None: something there has no vector form.
pub fn mark(l: &Loop, varying: &mut [bool], blocks: &Blocks) -> Option<()> {
    varying[l.var.index()] = true;
    // What goes around a serial loop may vary because of what is below it.
    while mark_block(&l.body, varying, blocks)? {}
    Some(())
}

/// Whether anything new was marked.
fn mark_block(body: &[Stmt], varying: &mut [bool], blocks: &Blocks) -> Option<bool> {
    let mut changed = false;
    for s in body {
        match s {
            Stmt::Let(v, _) if blocks.same.contains(v) => {}
            Stmt::Let(v, Expr::Op(_, args)) => {
                let varies = args.iter().any(|a| varying[a.index()]);
                changed |= varies && !std::mem::replace(&mut varying[v.index()], true);
            }
            Stmt::Let(v, Expr::Load(_, at)) => {
                let varies = at.terms.iter().any(|t| term_varies(t, varying));
                changed |= varies && !std::mem::replace(&mut varying[v.index()], true);
            }
            Stmt::Loop(l) => {
                if let Int::Value(count) = l.count {
                    // Lanes that leave a loop at different times.
                    (!varying[count.index()]).then_some(())?;
                }
                for c in &l.carried {
                    if varying[c.init.index()] || varying[c.next.index()] {
                        changed |= !std::mem::replace(&mut varying[c.param.index()], true);
                        varying[c.result.index()] = true;
                    }
                }
                changed |= mark_block(&l.body, varying, blocks)?;
            }
            _ => {}
        }
    }
    Some(changed)
}

/// Whether a term of an index differs between lanes.
pub fn term_varies((v, stride): &(Value, Int), varying: &[bool]) -> bool {
    varying[v.index()] || matches!(stride, Int::Value(s) if varying[s.index()])
}

struct Scan<'a> {
    module: &'a Module,
    varying: &'a [bool],
    isa: Isa,
    blocks: &'a Blocks,
    var: Value,
    /// Whether the counter is an i32.
    short: bool,
    wide: bool,
    /// How often something is done.
    size: usize,
    /// Definitions and last uses of what varies.
    live: FxHashMap<Value, (usize, usize)>,
}

impl Scan<'_> {
    fn used(&mut self, v: Value) {
        if v == self.var || self.blocks.lane.contains(&v) {
            self.wide = true;
        }
        if let Some(entry) = self.live.get_mut(&v) {
            entry.1 = self.size;
        }
    }

    fn place(&mut self, at: &Index, ty: Ty, store: bool) {
        for term @ (v, stride) in &at.terms {
            if *v != self.var && !self.blocks.lane.contains(v) {
                self.wide |= term_varies(term, self.varying);
                self.used(*v);
                if let Int::Value(s) = stride {
                    self.used(*s);
                }
                continue;
            }
            self.wide |= match stride {
                Int::Const(1) => false,
                Int::Const(s) => s.abs() > FAR || ty.size() < 4 || (store && self.isa == Isa::Avx2),
                Int::Value(_) => true,
            };
        }
        let lane = at.terms.iter().any(|(v, _)| *v == self.var || self.blocks.lane.contains(v));
        // A store to one place from all lanes is a scatter, too.
        self.wide |= store && !lane && (ty.size() < 4 || self.isa == Isa::Avx2);
    }

    fn block(&mut self, body: &[Stmt]) {
        for s in body {
            self.size += 1;
            match s {
                Stmt::Let(v, _) if self.blocks.same.contains(v) || self.blocks.lane.contains(v) => {}
                Stmt::Let(v, e) => {
                    match e {
                        // The counter as 32 bits needs no more than those.
                        Expr::Op(Op::Convert(Ty::I32 | Ty::U32), args) if args[0] == self.var => {}
                        Expr::Op(Op::Convert(Ty::F32), args) if args[0] == self.var && self.short => {}
                        Expr::Op(_, args) => args.iter().for_each(|a| self.used(*a)),
                        Expr::Load(_, at) => self.place(at, self.module.ty(*v), false),
                        _ => {}
                    }
                    if self.varying[v.index()] {
                        self.wide |= self.module.ty(*v).size() == 8;
                        self.live.insert(*v, (self.size, self.size));
                    }
                }
                Stmt::Store { at, value, .. } => {
                    self.wide |= self.module.ty(*value).size() == 8;
                    self.place(at, self.module.ty(*value), true);
                    self.used(*value);
                }
                Stmt::Loop(l) => {
                    for c in &l.carried {
                        self.used(c.init);
                        if self.varying[c.param.index()] {
                            self.wide |= self.module.ty(c.param).size() == 8;
                            self.live.insert(c.param, (self.size, self.size));
                        }
                    }
                    self.block(&l.body);
                    for c in &l.carried {
                        self.used(c.next);
                        self.used(c.param);
                        if self.varying[c.param.index()] {
                            self.live.insert(c.result, (self.size, self.size));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The most values that are alive at once.
    fn pressure(&self) -> usize {
        let mut delta = vec![0i32; self.size + 2];
        for (from, to) in self.live.values() {
            delta[*from] += 1;
            delta[to + usize::from(from == to)] -= 1;
        }
        let mut now = 0;
        delta.iter().fold(0, |most, d| {
            now += d;
            most.max(now)
        }) as usize
    }
}

/// Vectors of a step, times what is done with each, are kept below this: code that does not stay in the cache is slow.
const LONG: usize = 400;

/// How a loop of lanes is run; what varies in it is marked.
pub fn plan(module: &Module, l: &Loop, varying: &[bool], blocks: &Blocks, isa: Isa) -> Plan {
    let short = matches!(l.count, Int::Const(n) if n < 1 << 31);
    let (var, live) = (l.var, FxHashMap::default());
    let mut scan = Scan { module, varying, isa, blocks, var, short, wide: false, size: 0, live };
    scan.block(&l.body);
    for f in &l.folds {
        scan.used(f.value);
        scan.wide |= module.ty(f.value).size() == 8;
    }
    let bytes = match isa {
        Isa::Avx512 => 64,
        Isa::Avx2 => 32,
    };
    let width = bytes / if scan.wide { 8 } else { 4 };
    let all = if l.folds.is_empty() { 4 } else { LANES / width };
    // Accumulators of folds are there all the time; a few constants should find room, too.
    let room =
        (vectors(isa) as usize).saturating_sub(l.folds.len() * if l.folds.is_empty() { 0 } else { all }).max(1) * 3 / 4;
    let pressure = scan.pressure().max(1);
    let fits = |n: usize| n * pressure <= room && n * scan.size <= LONG;
    let mut together = [4, 2].into_iter().find(|n| *n <= all && fits(*n)).unwrap_or(1);
    if let (Int::Const(count), true) = (l.count, l.folds.is_empty()) {
        while together > 1 && count < (together * width) as i64 {
            together /= 2;
        }
    }
    let vectors = if l.folds.is_empty() { together } else { all };
    // The lanes of folds fill several vectors, and a long body is not made for each of them.
    let single = !l.folds.is_empty() && all * scan.size > 2 * LONG;
    Plan { width, wide: scan.wide, vectors, together, single }
}

/// Whether a value that goes around a loop may be made in the register of the one before: its parameter is not needed any
/// more when it is made.
pub fn renewable(body: &[Stmt], param: Value, next: Value, nexts: &[Value]) -> bool {
    let Some(at) = body.iter().position(|s| matches!(s, Stmt::Let(v, Expr::Op(..)) if *v == next)) else {
        return false;
    };
    nexts.iter().filter(|n| **n == next).count() == 1 && !nexts.contains(&param) && !reads(&body[at + 1..], param)
}

fn reads(body: &[Stmt], v: Value) -> bool {
    let index = |at: &Index| at.terms.iter().any(|(t, s)| *t == v || *s == Int::Value(v));
    body.iter().any(|s| match s {
        Stmt::Let(_, Expr::Op(_, args)) => args.contains(&v),
        Stmt::Let(_, Expr::Load(_, at)) => index(at),
        Stmt::Store { at, value, .. } => *value == v || index(at),
        Stmt::Loop(l) => {
            l.count == Int::Value(v)
                || l.carried.iter().any(|c| c.init == v || c.next == v)
                || l.folds.iter().any(|f| f.value == v)
                || reads(&l.body, v)
        }
        _ => false,
    })
}

/// Whether an operation has no vector form on any of the instruction sets.
pub fn refused(op: Op) -> bool {
    matches!(op, Op::Math(_))
}
