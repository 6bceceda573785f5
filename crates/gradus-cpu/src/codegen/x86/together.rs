//! Accesses that are better done together: neighbours that lanes step over are read and written as whole registers and sorted there, and what is put
//! back where it came from unless something holds is not put back at all.

use super::Isa;
use super::address::Pattern;
use super::encode::Cond;
use super::lir::{Inst, Mem, Reg, Ri, Rm, Test};
use super::opcodes as op;
use super::records::same_record;
use super::select::{Select, TOGETHER, Val};
use super::small::is_small;
use crate::ir::{Int, Op, Ty, Value};
use crate::vector::{Access, Expr, Lanes, Spread, Stmt};

/// So many arrays at most are sorted apart or together lane by lane: with more of them most of each register is not what is wanted.
const MOST: usize = 4;

impl Select<'_> {
    /// Does the first statements of a body together, if that is better. Gives how many.
    pub(super) fn together(&mut self, body: &[Stmt]) -> Option<usize> {
        match &body[0] {
            Stmt::Let(v, _) if self.ready.remove(v) => Some(1),
            Stmt::Store(first, _) => match self.stores(body, first)? {
                0 => self.store_records(body),
                done => Some(done),
            },
            Stmt::Let(_, Expr::Load(first)) => match self.loads(body, first)? {
                0 => self.load_records(body).map(usize::from),
                done => Some(done),
            },
            Stmt::Let(_, Expr::Op(Op::Select, _)) => self.kept_store(body),
            _ => Some(0),
        }
    }

    /// The lanes of an access that step over neighbours, all of them there and filling a register, and how far they are apart.
    fn steps<'s>(&self, access: &'s Access, ty: Ty) -> Option<(&'s Lanes, Int)> {
        let lanes = access.lanes.as_ref().filter(|l| l.active.is_none())?;
        let Spread::Strided(by) = lanes.spread else { return None };
        let fills = lanes.shape.width() * ty.size() >= 32;
        (self.isa == Isa::Avx512 && fills && ty != Ty::Bool && !is_small(ty)).then_some((lanes, self.known(by)))
    }

    /// How many accesses there are, each of the element after the one before it.
    pub(super) fn neighbours<'s>(first: &Access, rest: impl Iterator<Item = Option<&'s Access>>) -> usize {
        let next = |(k, a): &(usize, Option<&Access>)| {
            a.is_some_and(|a| same_record(a, first) && a.at.offset == first.at.offset + *k as i64)
        };
        rest.enumerate().take_while(next).count()
    }

    /// Stores of lanes that lie between those of each other: registers are filled with what lies side by side.
    fn stores(&mut self, body: &[Stmt], first: &Access) -> Option<usize> {
        let Stmt::Store(_, value) = &body[0] else { return Some(0) };
        let ty = self.code.ty(*value);
        let Some((lanes, Int::Const(by))) = self.steps(first, ty) else { return Some(0) };
        let k = Self::neighbours(
            first,
            body.iter().map(|s| match s {
                Stmt::Store(a, v) if self.code.ty(*v) == ty => Some(a),
                _ => None,
            }),
        );
        let k = usize::try_from(by).ok().filter(|by| (2..=MOST).contains(by) && *by <= k);
        let Some(k) = k else { return Some(0) };
        let to = self.address(first.memory, &first.at, ty)?;
        self.each_part(lanes.shape, |s, part| {
            let (width, len) = (s.width(), s.len(ty.size()));
            let mut from = [Reg(0); MOST];
            for (r, stmt) in from.iter_mut().zip(&body[..k]) {
                let Stmt::Store(_, v) = stmt else { return None };
                *r = s.vector(*v, part)?;
            }
            for m in 0..k {
                let whole = s.picked(ty, &from[..k], |lane| ((m * width + lane) % k, (m * width + lane) / k));
                let to = to.plus(((part * k + m) * width * ty.size()) as i32);
                s.store_vector(ty.size() == 8, len, whole, to, None);
            }
            Some(())
        })?;
        Some(k)
    }

    /// Loads of lanes that lie between those of each other, or of as many neighbours as there are lanes.
    fn loads(&mut self, body: &[Stmt], first: &Access) -> Option<usize> {
        let Stmt::Let(v, _) = &body[0] else { return Some(0) };
        let ty = self.code.ty(*v);
        let Some((lanes, by)) = self.steps(first, ty) else { return Some(0) };
        let k = Self::neighbours(
            first,
            body.iter().map(|s| match s {
                Stmt::Let(v, Expr::Load(a)) if self.code.ty(*v) == ty => Some(a),
                _ => None,
            }),
        );
        let width = lanes.shape.width();
        let apart = match by {
            Int::Const(by) => usize::try_from(by).ok().filter(|by| (2..=MOST).contains(by) && *by <= k),
            Int::Value(_) => None,
        };
        let squares = apart.is_none() && k >= width && width == 8 && by != Int::Const(1);
        let Some(k) = apart.or(squares.then_some(width)) else { return Some(0) };
        let from = self.address(first.memory, &first.at, ty)?;
        let mut to: Vec<[Reg; TOGETHER]> = Vec::new();
        for stmt in &body[..k] {
            let Stmt::Let(v, _) = stmt else { return None };
            let Val::Lanes(regs) = self.target(*v) else { return None };
            to.push(regs);
        }
        if squares {
            let rows = self.rows_from(from, by, ty.size(), usize::from(lanes.shape.lanes))?;
            self.each_part(lanes.shape, |s, part| {
                let rows = &rows[part * width..][..width];
                let len = s.len(ty.size());
                let rows = rows.iter().map(|m| s.made(op::load(ty.size() == 8), len, None, Rm::Mem(*m), None));
                let rows = rows.collect();
                for (row, to) in s.turned(ty, rows).into_iter().zip(&to) {
                    s.emit(Inst::Copy { dst: to[part], src: row });
                }
                Some(())
            })?;
        } else {
            self.each_part(lanes.shape, |s, part| {
                let (double, len) = (ty.size() == 8, s.len(ty.size()));
                let at = |m: usize| Rm::Mem(from.plus(((part * k + m) * width * ty.size()) as i32));
                let all: Vec<Reg> = (0..k).map(|m| s.made(op::load(double), len, None, at(m), None)).collect();
                for (j, to) in to.iter().enumerate() {
                    let one = s.picked(ty, &all, |lane| ((lane * k + j) / width, (lane * k + j) % width));
                    s.emit(Inst::Copy { dst: to[part], src: one });
                }
                Some(())
            })?;
        }
        for (stmt, regs) in body[..k].iter().zip(to) {
            let Stmt::Let(v, _) = stmt else { return None };
            self.set(*v, Val::Lanes(regs));
        }
        Some(k)
    }

    /// Where so many rows begin that are so many elements apart.
    fn rows_from(&mut self, from: Mem, by: Int, size: usize, rows: usize) -> Option<Vec<Mem>> {
        if let Int::Const(by) = by {
            let bytes = i32::try_from(by.checked_mul((rows * size) as i64)?).ok().filter(|b| b.abs() < 1 << 29);
            if bytes.is_some() {
                return Some((0..rows).map(|r| from.plus((by * (r * size) as i64) as i32)).collect());
            }
        }
        // Four rows for each pointer: one, two and three steps from it are addresses.
        let steps = |n: i64| n * size as i64;
        let (step, three) = match by {
            Int::Const(by) => {
                (self.general_const(by.checked_mul(steps(1))?), self.general_const(by.checked_mul(steps(3))?))
            }
            Int::Value(v) => {
                let level = self.levels[v.index()] as usize;
                (self.scaled(v, Int::Const(steps(1)), level)?, self.scaled(v, Int::Const(steps(3)), level)?)
            }
        };
        let mut first = self.vectorial(from, &Pattern::Indexed { indices: [step; TOGETHER], step: 0 });
        let mut all = Vec::new();
        while all.len() < rows {
            if !all.is_empty() {
                let dst = self.general_reg();
                self.emit(Inst::Lea { dst, from: Mem { index: Some((step, 2)), ..first } });
                first = Mem::at(dst, 0);
            }
            let behind = [(step, 0), (step, 1), (three, 0)];
            all.push(first);
            all.extend(behind.map(|index| Mem { index: Some(index), ..first }));
        }
        all.truncate(rows);
        Some(all)
    }

    /// A register whose lanes come from several: which of them, and which lane of it.
    fn picked(&mut self, ty: Ty, from: &[Reg], which: impl Fn(usize) -> (usize, usize)) -> Reg {
        let (size, width) = (ty.size(), self.width());
        let mut all = from[0];
        for (n, next) in from.iter().enumerate().skip(1) {
            let index = |lane: usize| match which(lane) {
                (m, at) if m == n => width + at,
                // The first two are sorted at once, what is there already stays.
                (0, at) if n == 1 => at,
                _ => lane,
            };
            let bytes: Vec<u8> = (0..width).flat_map(|l| index(l).to_le_bytes().into_iter().take(size)).collect();
            all = self.pick(ty, &bytes, all, *next);
        }
        all
    }

    fn pick(&mut self, ty: Ty, index: &[u8], a: Reg, b: Reg) -> Reg {
        let (double, len) = (ty.size() == 8, self.len(ty.size()));
        let (index, dst) = (self.pattern(index), self.vector_reg());
        self.emit(Inst::Pick { double, len, dst, index, a, b });
        dst
    }

    /// A square of as many registers as they have lanes, turned: halves of ever larger blocks trade places.
    fn turned(&mut self, ty: Ty, mut rows: Vec<Reg>) -> Vec<Reg> {
        let (width, size) = (self.width(), ty.size());
        if size == 8 {
            return self.turned_eight(&rows);
        }
        let mut by = 1;
        while by < width {
            let bytes = |upper: bool| -> Vec<u8> {
                let index = |lane: usize| match (upper, lane & by == 0) {
                    (false, true) => lane,
                    (false, false) => width + lane - by,
                    (true, true) => lane + by,
                    (true, false) => width + lane,
                };
                (0..width).flat_map(|l| index(l).to_le_bytes().into_iter().take(size)).collect()
            };
            let (lower, upper) = (bytes(false), bytes(true));
            for r in (0..width).filter(|r| r & by == 0) {
                let (a, b) = (rows[r], rows[r + by]);
                rows[r] = self.pick(ty, &lower, a, b);
                rows[r + by] = self.pick(ty, &upper, a, b);
            }
            by *= 2;
        }
        rows
    }

    /// A store of what a place holds already where something does not hold: then nothing is stored. What nearly always holds costs a branch less than a choice.
    fn kept_store(&mut self, body: &[Stmt]) -> Option<usize> {
        let [Stmt::Let(chosen, Expr::Op(Op::Select, args)), Stmt::Store(access, stored), rest @ ..] = body else {
            return Some(0);
        };
        let [condition, new, old] = args[..] else { return Some(0) };
        if self.holds == Some(condition) {
            return Some(0);
        }
        let ty = self.code.ty(*chosen);
        let one = access.lanes.as_ref().is_none_or(|l| l.shape.registers == 1 && self.is_run(l));
        let read = self.read.get(&old).is_some_and(|a| same_record(a, access) && a.at.offset == access.at.offset);
        let simple = ty != Ty::Bool && !is_small(ty) && !self.code.shape(condition).is_vector();
        if chosen != stored
            || !one
            || !read
            || !simple
            || self.const_of(condition).is_some()
            || self.is_used(*chosen, rest)
        {
            return Some(0);
        }
        let test = self.test_of(condition)?;
        self.store(access, new)?;
        let top = self.level();
        let store = self.scopes[top].body.pop()?;
        if !matches!(store, Inst::Store { .. } | Inst::StoreVec { .. }) {
            return None;
        }
        let done = self.label();
        self.emit(Inst::Branch(Test { cond: test.cond.not(), ..test }, done));
        self.emit(store);
        self.emit(Inst::Label(done));
        Some(2)
    }

    /// Whether lanes lie side by side.
    fn is_run(&self, lanes: &Lanes) -> bool {
        matches!(lanes.spread, Spread::Strided(by) if self.known(by) == Int::Const(1))
    }

    fn is_used(&self, v: Value, body: &[Stmt]) -> bool {
        let mut used = false;
        crate::vector::each_use(body, &mut |u| used |= u == v);
        used || self.is_forced(v)
    }

    /// What a bool in a general register was made of, if that is a comparison whose operands are still there.
    pub(super) fn test_of(&mut self, v: Value) -> Option<Test> {
        let r = self.general(v)?;
        let lasts = |s: &Self, r: Reg| !s.is_renewed(r);
        Some(match self.tests.get(&v) {
            Some(test) if lasts(self, test.a) && !matches!(test.b, Ri::Reg(b) if !lasts(self, b)) => *test,
            _ => Test { cond: Cond::Ne, a: r, b: Ri::Imm(0) },
        })
    }
}

impl Select<'_> {
    /// Remembers where a value was read, as long as nothing is written.
    pub(super) fn remember(&mut self, s: &Stmt) {
        match s {
            Stmt::Let(v, Expr::Load(access)) => {
                self.read.insert(*v, access.clone());
            }
            Stmt::Let(..) => {}
            Stmt::Store(..) | Stmt::Loop(_) | Stmt::Main(_) => self.read.clear(),
        }
    }
}
