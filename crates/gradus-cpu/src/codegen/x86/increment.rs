//! A whole number in memory that something is added to: one instruction reads, adds and writes. A scatter that counts does nothing else.

use super::lir::{Inst, Mem, Ri};
use super::select::{Select, Val};
use super::small::size_of;
use crate::ir::{Op, Ty, Value};
use crate::vector::{Access, Expr, Stmt};

/// Statements between reading a place and writing it: what is added, the sum, and a choice by what is known to hold.
const MOST: usize = 4;

/// What is added to a place, where that is all that some statements do.
struct Increment<'s> {
    place: &'s Access,
    by: Value,
    /// Where that is read, if it is read for this alone.
    read: Option<&'s Access>,
    /// How many statements there are.
    end: usize,
}

impl Select<'_> {
    /// Adds to a place, if the first statements of a body do that. Gives how many they are; 0 if they do not.
    pub(super) fn increment(&mut self, body: &[Stmt]) -> Option<usize> {
        let Some(found) = self.incremented(body) else { return Some(0) };
        let Stmt::Let(old, _) = &body[0] else { return Some(0) };
        let ty = self.code.ty(*old);
        let by = match found.read {
            Some(from) => {
                let (dst, from) = (self.general_reg(), self.address(from.memory, &from.at, ty)?);
                self.emit(Inst::Load { size: size_of(ty.size()), dst, from });
                Ri::Reg(dst)
            }
            None => {
                if let Some(s) = body[1..found.end].iter().find(|s| matches!(s, Stmt::Let(v, _) if *v == found.by)) {
                    self.stmt(s)?;
                }
                self.number(found.by, ty)?
            }
        };
        let to: Mem = self.address(found.place.memory, &found.place.at, ty)?;
        self.emit(Inst::Increment { size: size_of(ty.size()), to, by });
        Some(found.end)
    }

    /// A whole number as an operand: one that is known is part of the instruction if it is short.
    fn number(&mut self, v: Value, ty: Ty) -> Option<Ri> {
        if let Val::Const(bits) = self.values[v.index()] {
            let above = 64 - 8 * ty.size() as u32;
            let signed = ((bits << above) as i64) >> above;
            let fits = if ty.size() < 4 { i8::try_from(signed).is_ok() } else { i32::try_from(signed).is_ok() };
            if fits {
                return Some(Ri::Imm(signed as i32));
            }
        }
        self.bits(v).map(Ri::Reg)
    }

    fn incremented<'s>(&self, body: &'s [Stmt]) -> Option<Increment<'s>> {
        let Stmt::Let(old, Expr::Load(place)) = &body[0] else { return None };
        let ty = self.code.ty(*old);
        if ty.is_float() || ty == Ty::Bool || place.lanes.is_some() {
            return None;
        }
        let alone = |v: Value, uses: u32| self.used[v.index()] == uses && !self.is_forced(v);
        let mut read: Option<(Value, Option<&Access>)> = None;
        let mut sum: Option<(Value, Value)> = None;
        let mut chosen = None;
        for (k, s) in body.iter().enumerate().take(MOST + 2).skip(1) {
            match s {
                Stmt::Let(v, Expr::Load(a)) if sum.is_none() && read.is_none() && self.code.ty(*v) == ty => {
                    read = Some((*v, (a.lanes.is_none() && alone(*v, 1)).then_some(a)));
                }
                Stmt::Let(v, Expr::Const(_)) if sum.is_none() && read.is_none() => read = Some((*v, None)),
                Stmt::Let(v, Expr::Op(Op::Add, args)) if sum.is_none() => {
                    let by = match (args[0] == *old, args[1] == *old) {
                        (true, false) => args[1],
                        (false, true) => args[0],
                        _ => return None,
                    };
                    sum = Some((*v, by));
                }
                Stmt::Let(v, Expr::Op(Op::Select, args)) if chosen.is_none() && self.holds == Some(args[0]) => {
                    let (next, _) = sum?;
                    (args[1] == next && args[2] == *old).then_some(())?;
                    chosen = Some(*v);
                }
                Stmt::Store(to, value) => {
                    let (next, by) = sum?;
                    let last = chosen.unwrap_or(next);
                    let same = to.memory == place.memory && to.at == place.at && to.lanes.is_none();
                    let others = alone(*old, 1 + u32::from(chosen.is_some()))
                        && alone(next, 1)
                        && chosen.is_none_or(|c| alone(c, 1));
                    if !(same && others && *value == last && self.code.ty(by) == ty) {
                        return None;
                    }
                    // What else is read in between is read for the sum.
                    let read = match read {
                        Some((v, from)) if v == by => from,
                        Some(_) => return None,
                        None => None,
                    };
                    return Some(Increment { place, by, read, end: k + 1 });
                }
                _ => return None,
            }
        }
        None
    }
}
