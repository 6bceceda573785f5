//! Addresses that found no register for the whole of their life have one in the innermost loops that use them: there they are copied before the loop, and
//! what is used most has a register first.

use rustc_hash::FxHashMap;

use super::allocate::{Allocation, Home};
use super::lir::{Base, Class, Function, Inst, Mem, Reg, Rm, Role};

/// Splits what stays in memory where that helps. Whether there was anything.
pub(super) fn split(f: &mut Function, homes: &Allocation) -> bool {
    let in_memory = |r: &Reg| matches!(homes.homes[r.0 as usize], Home::Slot(_));
    if !f.regs.iter().zip(&homes.homes).any(|(r, home)| r.class == Class::General && matches!(home, Home::Slot(_))) {
        return false;
    }
    let mut found: Vec<(usize, Vec<(Reg, Reg)>)> = Vec::new();
    let mut start = None;
    for at in 0..f.code.len() {
        match f.code[at] {
            Inst::LoopStart(_) => start = Some(at),
            Inst::LoopEnd(..) => {
                let Some(first) = start.take() else { continue };
                // What outlives a call is in memory anyway.
                if f.code[first..at].iter().any(|i| matches!(i, Inst::Run { .. })) {
                    continue;
                }
                let mut used: Vec<Reg> = Vec::new();
                for inst in &mut f.code[first..at] {
                    each_address(inst, |r| used.push(*r));
                }
                used.sort_unstable();
                used.dedup();
                used.retain(in_memory);
                for inst in &f.code[first..=at] {
                    inst.visit(&mut |r, role| {
                        if role != Role::Use {
                            used.retain(|u| *u != r);
                        }
                    });
                }
                if used.is_empty() {
                    continue;
                }
                let copies: FxHashMap<Reg, Reg> = used
                    .iter()
                    .map(|r| {
                        f.regs.push(f.regs[r.0 as usize]);
                        (*r, Reg(f.regs.len() as u32 - 1))
                    })
                    .collect();
                for inst in &mut f.code[first..at] {
                    each_address(inst, |r| *r = copies.get(r).copied().unwrap_or(*r));
                }
                found.push((first, used.iter().map(|r| (*r, copies[r])).collect()));
            }
            _ => {}
        }
    }
    for (at, copies) in found.iter().rev() {
        f.code.splice(*at..*at, copies.iter().map(|(src, dst)| Inst::Copy { dst: *dst, src: *src }));
    }
    !found.is_empty()
}

/// The registers that say where something is in memory.
fn each_address(inst: &mut Inst, mut f: impl FnMut(&mut Reg)) {
    let mut place = |m: &mut Mem| {
        if let Base::Reg(r) = &mut m.base {
            f(r);
        }
        m.index.iter_mut().for_each(|(r, _)| f(r));
    };
    match inst {
        Inst::Vec { b: Rm::Mem(m), .. } => place(m),
        Inst::StoreVec { to, .. } | Inst::Store { to, .. } | Inst::Increment { to, .. } => place(to),
        Inst::Load { from, .. } | Inst::Lea { from, .. } | Inst::Gather { from, .. } => place(from),
        Inst::Scatter { to, .. } => place(to),
        _ => {}
    }
}
