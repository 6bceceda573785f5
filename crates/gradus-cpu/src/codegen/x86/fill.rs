//! One number in much memory. The processor has an instruction for it, which does not fetch first what it writes over: where the memory is in no near cache,
//! that is half of the time.

use super::encode::{Cond, Label};
use super::lir::{Alu, Inst, Reg, Ri, Test};
use super::select::{Select, Val};
use super::small::is_small;
use crate::ir::{Int, Ty};
use crate::vector::{Loop, Memory, Spread, Stmt};

/// So many bytes are worth its start; fewer stay in the near caches, and vectors are faster there.
const LEAST: i64 = 1 << 20;

/// What became of a loop that fills memory.
pub(super) enum Filled {
    /// It is none, or too short.
    No,
    /// It is done.
    All,
    /// It is done if it is long, which shows when it runs: then this is where it goes on.
    IfLong(Label),
}

impl Select<'_> {
    /// A loop that does nothing but to store one number in neighbouring places. The counter is then where the loop would have left it.
    pub(super) fn fill(&mut self, l: &Loop, counter: Reg) -> Option<Filled> {
        let [Stmt::Store(access, value)] = &l.body[..] else { return Some(Filled::No) };
        let (Some(lanes), Memory::Buffer(buffer)) = (&access.lanes, access.memory) else { return Some(Filled::No) };
        let ty = self.code.ty(*value);
        let is_run = matches!(lanes.spread, Spread::Strided(by) if self.known(by) == Int::Const(1));
        let of_var = access.at.terms.iter().filter(|(v, s)| *v == l.var || *s == Int::Value(l.var));
        let along = of_var.map(|(v, s)| (*v, self.known(*s))).collect::<Vec<_>>() == [(l.var, Int::Const(1))];
        let one = !matches!(self.values[value.index()], Val::Lanes(_) | Val::Unset);
        let whole = lanes.active.is_none() && i64::from(lanes.shape.lanes) == l.step && l.carried.is_empty();
        let typed = ty != Ty::Bool && !is_small(ty);
        if !(is_run && along && one && whole && typed) || self.is_swapped(buffer.0) {
            return Some(Filled::No);
        }
        let least = LEAST / ty.size() as i64;
        if l.trips().is_some_and(|trips| trips * l.step < least) {
            return Some(Filled::No);
        }
        let from = self.int(l.from)?;
        let to = match self.int(l.to)? {
            Ri::Reg(to) => to,
            Ri::Imm(to) => self.general_const(to.into()),
        };
        match from {
            Ri::Reg(src) => self.emit(Inst::Copy { dst: counter, src }),
            Ri::Imm(value) => self.emit(Inst::Const { dst: counter, value: value.into() }),
        }
        self.set(l.var, Val::General(counter));
        let (bits, place) = (self.bits(*value)?, self.address(access.memory, &access.at, ty)?);
        // Whole steps.
        let count = self.general_reg();
        let step = i32::try_from(l.step).ok().filter(|s| s.count_ones() == 1)?;
        self.alu(Alu::Sub, count, to, counter);
        self.alu(Alu::Add, count, count, Ri::Imm(step - 1));
        self.alu(Alu::And, count, count, Ri::Imm(-step));
        let known = l.trips().is_some();
        let few = self.label();
        if !known {
            self.emit(Inst::Branch(Test { cond: Cond::L, a: count, b: Ri::Imm(least as i32) }, few));
        }
        self.emit(Inst::Fill { double: ty.size() == 8, to: place, bits, count });
        self.alu(Alu::Add, counter, counter, count);
        if known {
            return Some(Filled::All);
        }
        let done = self.label();
        self.emit(Inst::Jump(done));
        self.emit(Inst::Label(few));
        Some(Filled::IfLong(done))
    }
}
