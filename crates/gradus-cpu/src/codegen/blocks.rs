//! Loops of lanes that go through an array of several dimensions as one: what code generators know of the places in it.

use rustc_hash::FxHashMap;

use crate::ir::{Expr, Int, LANES, Loop, Op, Stmt, Value};

/// Values of a loop of lanes that are simple because its steps are blocks of 32 iterations, and no step is cut short.
#[derive(Clone, Default, Debug)]
pub(super) struct Blocks {
    /// `counter >> n` for n of at least 5: the same in all lanes of a step.
    pub same: Vec<Value>,
    /// `counter & 31`: the lane.
    pub lane: Vec<Value>,
}

impl Blocks {
    pub fn is_empty(&self) -> bool {
        self.same.is_empty() && self.lane.is_empty()
    }
}

/// What is known of such a loop. `known` says which values are constants outside of it.
pub(super) fn blocks(l: &Loop, known: impl Fn(Value) -> Option<u64>) -> Blocks {
    let mut found = Blocks::default();
    if l.folds.is_empty() || !matches!(l.count, Int::Const(n) if n % LANES as i64 == 0) {
        return found;
    }
    let mut constants: FxHashMap<Value, u64> = FxHashMap::default();
    for s in &l.body {
        match s {
            Stmt::Let(v, Expr::Const(bits)) => drop(constants.insert(*v, *bits)),
            Stmt::Let(v, Expr::Op(op @ (Op::Shr | Op::And), args)) if args[0] == l.var => {
                let by = constants.get(&args[1]).copied().or_else(|| known(args[1]));
                match (op, by) {
                    (Op::Shr, Some(5..64)) => found.same.push(*v),
                    (Op::And, Some(31)) => found.lane.push(*v),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    found
}
