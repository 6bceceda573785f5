//! What is only done for stores that put back what a place holds already unless something holds, a scatter's window that may be out of range: all of it is
//! done where the thing holds, behind one branch, and choices by it are made there. What nearly always holds costs a branch less than a choice.

use rustc_hash::FxHashMap;

use super::encode::{Cond, Label};
use super::lir::{Alu, Inst, Reg, Test};
use super::records::same_record;
use super::select::{Once, Select, Val};
use crate::ir::{Int, Op, Ty, Value};
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

/// A place that counts from the end where it is negative, and is compared with the end. Nearly all are in range as they are read, and one comparison without the sign
/// says so of both.
struct Counted {
    /// As it is read, what is added if it is negative, and the end.
    read: Value,
    size: Value,
    end: Value,
    place: Value,
    /// What only leads from one to the other.
    between: [Value; 3],
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
        let (top, done) = (self.level(), self.label());
        let cache = match self.place_from_end(g) {
            Some(counted) => {
                let gone = |s: &&Stmt| matches!(s, Stmt::Let(v, _) if *v == g.condition || *v == counted.place || counted.between.contains(v));
                let before: Vec<Stmt> = g.before.iter().filter(|s| !gone(s)).cloned().collect();
                self.statements(&before)?;
                self.count_from(&counted, done)?
            }
            None => {
                self.statements(&g.before)?;
                let test = self.test_of(g.condition)?;
                let cache = self.scopes[top].cache.clone();
                self.emit(Inst::Branch(Test { cond: test.cond.not(), ..test }, done));
                cache
            }
        };
        // What is made once behind the branch is not there behind its end.
        let outer = self.holds.replace(g.condition);
        self.statements(&g.inside)?;
        self.holds = outer;
        self.emit(Inst::Label(done));
        self.scopes[top].cache = cache;
        Some(())
    }

    /// Whether the condition is that a place is in range which counts from the end where it is negative, and nobody needs what leads to it.
    fn place_from_end(&self, g: &Guarded) -> Option<Counted> {
        let made = |v: Value| {
            let found = g.before.iter().find_map(|s| match s {
                Stmt::Let(u, e) if *u == v => Some(e),
                _ => None,
            });
            found.filter(|_| !self.is_forced(v) && !self.code.shape(v).is_vector())
        };
        let is_zero = |v: Value| self.const_of(v) == Some(0) || matches!(made(v), Some(Expr::Const(0)));
        let op = |v: Value, op: Op| match made(v) {
            Some(Expr::Op(o, args)) if *o == op => Some(&args[..]),
            _ => None,
        };
        let &[bits, end] = op(g.condition, Op::Lt)? else { return None };
        let &[place] = op(bits, Op::Bitcast(Ty::U64))? else { return None };
        let &[negative, sum, read] = op(place, Op::Select)? else { return None };
        let &[number, zero] = op(negative, Op::Lt)? else { return None };
        let &[a, b] = op(sum, Op::Add)? else { return None };
        let size = if a == read { b } else { a };
        let fits = number == read && (a == read || b == read) && is_zero(zero) && self.code.ty(read) == Ty::I64;
        let between = [bits, negative, sum];
        // What holds is only asked by choices that are made, and the place is only there where it holds.
        let inside = uses(&g.inside);
        let chooses = |s: &&Stmt| matches!(s, Stmt::Let(_, Expr::Op(Op::Select, args)) if args[0] == g.condition);
        let choices = g.inside.iter().filter(chooses).count();
        let own = between.iter().all(|v| self.uses(*v) == 1)
            && count(&inside, g.condition) == choices
            && self.uses(g.condition) == choices
            && self.uses(place) == count(&inside, place) + 1;
        (fits && own && end != place).then_some(Counted { read, size, end, place, between })
    }

    /// Goes on where a place is in range, from the end if it is negative. What is read beyond the end stays beyond it with the size added. Gives what was made once before.
    fn count_from(&mut self, counted: &Counted, done: Label) -> Option<FxHashMap<Once, Reg>> {
        let (read, size, end) =
            (self.general(counted.read)?, self.general_or_imm(counted.size)?, self.general_or_imm(counted.end)?);
        let (top, at, inside) = (self.level(), self.general_reg(), self.label());
        let cache = self.scopes[top].cache.clone();
        self.emit(Inst::Copy { dst: at, src: read });
        self.emit(Inst::Branch(Test { cond: Cond::B, a: at, b: end }, inside));
        self.alu(Alu::Add, at, at, size);
        self.emit(Inst::Branch(Test { cond: Cond::Ae, a: at, b: end }, done));
        self.emit(Inst::Label(inside));
        self.set(counted.place, Val::General(at));
        Some(cache)
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
