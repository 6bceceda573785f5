//! What is only done for stores that put back what a place holds already unless something holds, a scatter's window that may be out of range: all of it is
//! done where the thing holds, behind one branch, and choices by it are made there. What nearly always holds costs a branch less than a choice.

use super::lir::{Inst, Test};
use super::records::same_record;
use super::select::Select;
use crate::ir::{Int, Op, Value};
use crate::vector::{Expr, Spread, Stmt, each_use};

/// The first statements of a body, up to the last store of those that a condition guards.
pub(super) struct Guarded {
    /// What is done anyway.
    before: Vec<Stmt>,
    condition: Value,
    /// What is done where it holds.
    inside: Vec<Stmt>,
    /// How many statements that are.
    pub end: usize,
}

impl Select<'_> {
    /// Whether a body begins with what a condition guards. At the top of a function nothing is: what is made there once is for all of it.
    pub(super) fn guarded(&mut self, body: &[Stmt]) -> Option<Guarded> {
        if self.level() == 0 {
            return None;
        }
        let (store, condition) = self.kept(body, 0)?;
        // From the first choice on everything is done behind the branch, up to the last store that nothing else stands before.
        let mut ends = vec![store + 1];
        while let Some(end) = ends.last()
            && let Some((store, other)) = self.kept(body, *end)
            && other == condition
        {
            ends.push(store + 1);
        }
        let first = store - 1;
        let end = ends.into_iter().rev().find(|end| self.only_inside(&body[first..*end]))?;
        let mut used = uses(&body[first..end]);
        let mut sunk = vec![false; first];
        for (k, s) in body[..first].iter().enumerate().rev() {
            let Stmt::Let(v, e) = s else { return None };
            let sinks = match e {
                Expr::Op(op, _) => !matches!(op, Op::Math(_) | Op::Special(_)),
                Expr::Load(_) => true,
                _ => false,
            };
            let own = uses(std::slice::from_ref(s));
            let lasts = own.iter().all(|u| !self.is_replaced(*u));
            if sinks && lasts && *v != condition && !self.is_forced(*v) && count(&used, *v) == self.uses(*v) {
                sunk[k] = true;
                used.extend(own);
            }
        }
        let (mut before, mut inside) = (Vec::new(), Vec::new());
        for (s, sunk) in body[..first].iter().zip(sunk) {
            (if sunk { &mut inside } else { &mut before }).push(s.clone());
        }
        inside.extend_from_slice(&body[first..end]);
        Some(Guarded { before, condition, inside, end })
    }

    pub(super) fn guard(&mut self, g: &Guarded) -> Option<()> {
        self.statements(&g.before)?;
        let (top, done) = (self.level(), self.label());
        let test = self.test_of(g.condition)?;
        // What is made once behind the branch is not there behind its end.
        let cache = self.scopes[top].cache.clone();
        self.emit(Inst::Branch(Test { cond: test.cond.not(), ..test }, done));
        let outer = self.holds.replace(g.condition);
        self.statements(&g.inside)?;
        self.holds = outer;
        self.emit(Inst::Label(done));
        self.scopes[top].cache = cache;
        Some(())
    }

    /// The next store, if it is one of what was read there before unless something holds, and what that is.
    fn kept(&self, body: &[Stmt], from: usize) -> Option<(usize, Value)> {
        let end = from + body[from..].iter().position(|s| !matches!(s, Stmt::Let(..)))?;
        let Stmt::Store(access, stored) = &body[end] else { return None };
        let Some((Stmt::Let(chosen, Expr::Op(Op::Select, args)), before)) = body[from..end].split_last() else {
            return None;
        };
        let [condition, _, old] = args[..] else { return None };
        let read = |s: &Stmt| matches!(s, Stmt::Let(v, Expr::Load(a)) if *v == old && same_record(a, access) && a.at.offset == access.at.offset);
        let lies = access.lanes.as_ref().is_none_or(
            |l| matches!(l.spread, Spread::Strided(by) if matches!(self.known(by), Int::Const(by) if by != 0)),
        );
        let scalar = !self.code.shape(condition).is_vector() && self.const_of(condition).is_none();
        let is_kept = chosen == stored && lies && scalar && before.iter().any(read);
        (is_kept && self.holds.is_none()).then_some((end, condition))
    }

    /// Whether nobody else needs what is made here.
    fn only_inside(&self, body: &[Stmt]) -> bool {
        let used = uses(body);
        body.iter().all(|s| match s {
            Stmt::Let(v, _) => !self.is_forced(*v) && count(&used, *v) == self.uses(*v),
            _ => true,
        })
    }

    /// How often a value is used in the whole of the code.
    fn uses(&self, v: Value) -> usize {
        self.used[v.index()] as usize
    }
}

/// Every use in some statements.
fn uses(body: &[Stmt]) -> Vec<Value> {
    let mut all = Vec::new();
    each_use(body, &mut |v| all.push(v));
    all
}

fn count(used: &[Value], v: Value) -> usize {
    used.iter().filter(|u| **u == v).count()
}
