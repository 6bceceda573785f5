//! What differs between the lanes of a loop, and what of it is simple.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Expr, Index, Int, LANES, Loop, Op, Stmt, Value};

/// What is known of the values of a loop of lanes.
#[derive(Default)]
pub(super) struct Varying {
    of: FxHashSet<Value>,
    /// `counter & 31` where steps are blocks of 32 iterations: the lane.
    pub lane: FxHashSet<Value>,
    /// `counter >> n` for n of at least 5 there: the same in all lanes of a step.
    pub same: FxHashSet<Value>,
    /// An inner loop runs for each lane as often as it likes: the lanes cannot go together.
    pub uneven: bool,
}

/// How the elements of an index differ between lanes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Reach {
    /// They do not.
    Uniform,
    /// By a fixed number of elements from lane to lane.
    Strided(Int),
    /// In any way.
    Scattered,
}

impl Varying {
    /// Looks at a loop. `known` says which values are constants outside of it; none: blocks are not looked for.
    pub fn new(l: &Loop, known: Option<&dyn Fn(Value) -> Option<u64>>) -> Varying {
        let mut v = Varying::default();
        v.of.insert(l.var);
        if let Some(known) = known {
            v.blocks(l, known);
        }
        // What goes around an inner loop may vary because of what is below it.
        while v.block(&l.body) {}
        v
    }

    pub fn contains(&self, v: Value) -> bool {
        self.of.contains(&v)
    }

    /// Whether a step must be a block of 32 iterations for all this to hold.
    pub fn has_blocks(&self) -> bool {
        !self.lane.is_empty() || !self.same.is_empty()
    }

    fn int(&self, i: Int) -> bool {
        matches!(i, Int::Value(v) if self.contains(v))
    }

    /// Whether a term of an index differs between lanes.
    pub fn term(&self, (v, stride): &(Value, Int)) -> bool {
        self.contains(*v) || self.int(*stride)
    }

    /// Whether a term only counts the lanes.
    pub fn counts(&self, (v, stride): &(Value, Int), var: Value) -> bool {
        (*v == var || self.lane.contains(v)) && !self.int(*stride)
    }

    /// How an index differs between lanes. `resolve` knows strides that are constants.
    pub fn reach(&self, at: &Index, var: Value, resolve: impl Fn(Int) -> Int) -> Reach {
        let mut reach = Reach::Uniform;
        for term in &at.terms {
            if !self.term(term) {
                continue;
            }
            if !self.counts(term, var) {
                return Reach::Scattered;
            }
            reach = match (resolve(term.1), reach) {
                (Int::Const(0), reach) => reach,
                (stride, Reach::Uniform) => Reach::Strided(stride),
                _ => return Reach::Scattered,
            };
        }
        reach
    }

    /// A loop that goes through an array of several dimensions as one, in steps of 32 of which none is cut short.
    fn blocks(&mut self, l: &Loop, known: &dyn Fn(Value) -> Option<u64>) {
        if l.folds.is_empty() || !matches!(l.count, Int::Const(n) if n % LANES as i64 == 0) {
            return;
        }
        let mut constants: FxHashMap<Value, u64> = FxHashMap::default();
        for s in &l.body {
            match s {
                Stmt::Let(v, Expr::Const(bits)) => drop(constants.insert(*v, *bits)),
                Stmt::Let(v, Expr::Op(op @ (Op::Shr | Op::And), args)) if args[0] == l.var => {
                    let by = constants.get(&args[1]).copied().or_else(|| known(args[1]));
                    match (op, by) {
                        (Op::Shr, Some(5..64)) => drop(self.same.insert(*v)),
                        (Op::And, Some(31)) => drop(self.lane.insert(*v)),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// Marks what varies in a body; whether there was anything new.
    fn block(&mut self, body: &[Stmt]) -> bool {
        let mut new = false;
        for s in body {
            match s {
                Stmt::Let(v, _) if self.same.contains(v) => {}
                Stmt::Let(v, e) => {
                    let varies = match e {
                        Expr::Op(_, args) => args.iter().any(|a| self.contains(*a)),
                        Expr::Load(_, at) => at.terms.iter().any(|t| self.term(t)),
                        Expr::Const(_) | Expr::Size(_) => false,
                    };
                    new |= varies && self.of.insert(*v);
                }
                Stmt::Loop(l) => {
                    self.uneven |= self.int(l.count);
                    for c in &l.carried {
                        if self.contains(c.init) || self.contains(c.next) {
                            new |= self.of.insert(c.param);
                            new |= self.of.insert(c.result);
                        }
                    }
                    new |= self.block(&l.body);
                }
                _ => {}
            }
        }
        new
    }
}
