//! Whether a loop is worth vectors, and how many lanes it has.

use rustc_hash::FxHashSet;

use super::super::Simd;
use super::Pattern;
use super::lanes::native;
use super::vector::BYTES;
use crate::ir::{Expr, Index, Int, LANES, Loop, Module, Op, Stmt, Ty, Value};

/// What is known of a loop before vectors are made of it.
pub(in super::super) struct Shape {
    /// How many lanes are computed at once.
    pub lanes: usize,
    /// How many copies of the body are made, to have more to do at once.
    pub unroll: usize,
    /// The values that differ between lanes.
    pub varying: FxHashSet<Value>,
}

/// A body of at most so many vector instructions is copied up to four times, one of twice as many up to twice.
const SMALL: usize = 16;

impl Shape {
    /// None if scalars do as well.
    pub fn new(module: &Module, l: &Loop, simd: Simd) -> Option<Shape> {
        if simd == Simd::Never {
            return None;
        }
        let mut shape = Shape { lanes: 0, unroll: 1, varying: FxHashSet::from_iter([l.var]) };
        if !shape.body(&l.body) {
            return None;
        }
        let mut votes = Votes::default();
        shape.vote(module, &l.body, &mut votes);
        // The most frequent size, of several the smallest.
        let size = [1, 2, 4, 8].into_iter().max_by_key(|s| (votes.sizes[*s], 8 - s)).unwrap_or(8);
        let size = if votes.sizes.iter().all(|n| *n == 0) { 1 } else { size };
        // At most four vectors to a value.
        shape.lanes = (BYTES / size).min(4 * BYTES / votes.largest.max(1));
        let cost = shape.cost(module, l, &l.body);
        let (vectors, scalars) = (cost.0 + 2 * l.folds.len(), (cost.1 + 2 * l.folds.len()) * shape.lanes);
        if vectors * 5 > scalars * 4 && simd != Simd::Always {
            return None;
        }
        let inner = l.body.iter().any(|s| matches!(s, Stmt::Loop(_)));
        shape.unroll = match vectors {
            _ if inner => 1,
            n if n <= SMALL => 4,
            n if n <= 2 * SMALL => 2,
            _ => 1,
        };
        shape.unroll = shape.unroll.min(LANES / shape.lanes);
        Some(shape)
    }

    fn is(&self, v: Value) -> bool {
        self.varying.contains(&v)
    }

    fn index(&self, at: &Index) -> bool {
        at.terms.iter().any(|(v, s)| self.is(*v) || matches!(s, Int::Value(s) if self.is(*s)))
    }

    /// Finds what varies. False if lanes would not do the same iterations of an inner loop.
    fn body(&mut self, body: &[Stmt]) -> bool {
        for s in body {
            match s {
                Stmt::Let(v, e) => {
                    let varies = match e {
                        Expr::Const(_) | Expr::Size(_) => false,
                        Expr::Op(_, args) => args.iter().any(|a| self.is(*a)),
                        Expr::Load(_, at) => self.index(at),
                    };
                    if varies {
                        self.varying.insert(*v);
                    }
                }
                Stmt::Loop(l) => {
                    if matches!(l.count, Int::Value(v) if self.is(v)) {
                        return false;
                    }
                    // What is carried varies if it begins so or becomes so; each time around can find more.
                    loop {
                        let before = self.varying.len();
                        for c in &l.carried {
                            if self.is(c.init) || self.is(c.next) || self.is(c.param) {
                                self.varying.extend([c.param, c.result]);
                            }
                        }
                        if !self.body(&l.body) {
                            return false;
                        }
                        if self.varying.len() == before {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
        true
    }

    fn vote(&self, module: &Module, body: &[Stmt], votes: &mut Votes) {
        let mut take = |v: Value| {
            let ty = module.ty(v);
            if ty != Ty::Bool {
                votes.sizes[ty.size()] += 1;
                votes.largest = votes.largest.max(ty.size());
            }
        };
        for s in body {
            match s {
                Stmt::Let(v, _) if self.is(*v) => take(*v),
                Stmt::Store { value, .. } => take(*value),
                _ => {}
            }
        }
        for s in body {
            if let Stmt::Loop(l) = s {
                self.vote(module, &l.body, votes);
            }
        }
    }

    /// About how many instructions a step takes: in vectors, and as a scalar.
    fn cost(&self, module: &Module, l: &Loop, body: &[Stmt]) -> (usize, usize) {
        let parts = |ty: Ty| (self.lanes * ty.size()).div_ceil(BYTES);
        let access = |ty: Ty, at: &Index| match self.pattern(l.var, at) {
            Pattern::Contiguous => parts(ty),
            Pattern::Reversed => 2 * parts(ty),
            Pattern::Strided(_) => 2 * self.lanes,
            Pattern::Scattered => 3 * self.lanes,
        };
        let mut sum = (0, 0);
        for s in body {
            let cost = match s {
                Stmt::Let(v, _) if !self.is(*v) => (1, 1),
                Stmt::Let(_, Expr::Op(op, args)) => {
                    let types: Vec<Ty> = args.iter().map(|a| module.ty(*a)).collect();
                    let varying: Vec<bool> = args.iter().map(|a| self.is(*a)).collect();
                    let wide = types.iter().map(|t| parts(*t)).max().unwrap_or(1);
                    match op {
                        // The call takes the same time either way.
                        Op::Special(_) => (8, 8),
                        op if native(*op, &types, &varying) => (wide, 1),
                        _ => (self.lanes * 4, 1),
                    }
                }
                Stmt::Let(v, Expr::Load(_, at)) => (access(module.ty(*v), at), 1),
                Stmt::Let(..) => (1, 1),
                Stmt::Store { at, value, .. } => (access(module.ty(*value), at), 1),
                Stmt::Loop(inner) => self.cost(module, l, &inner.body),
                _ => (0, 0),
            };
            sum = (sum.0 + cost.0, sum.1 + cost.1);
        }
        sum
    }

    /// How the lanes of an access lie.
    pub(super) fn pattern(&self, var: Value, at: &Index) -> Pattern {
        let others = at.terms.iter().any(|(v, s)| {
            let stride = matches!(s, Int::Value(s) if self.is(*s));
            stride || (*v != var && self.is(*v))
        });
        match at.stride(var) {
            _ if others => Pattern::Scattered,
            Int::Const(1) => Pattern::Contiguous,
            Int::Const(-1) => Pattern::Reversed,
            stride => Pattern::Strided(stride),
        }
    }
}

#[derive(Default)]
struct Votes {
    /// How often each size of element comes up.
    sizes: [usize; 9],
    largest: usize,
}
