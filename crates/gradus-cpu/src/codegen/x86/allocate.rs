//! Which register or which place in the frame each virtual register has: a linear scan over the code.
//!
//! A virtual register has one home from its first definition to its last use, and through every loop in between that it
//! lives around. Where there are too few registers, those that are used least for their length stay in memory, and the
//! emitter brings them into scratch registers, which are set apart only then. What a main body needs after another function ran is in memory, or in one of the
//! general registers that functions give back.

use super::Isa;
use super::emit::SAVED;
use super::lir::{Class, Function, Inst, Reg, Role};

/// Where a virtual register lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// In a register.
    Reg(u8),
    /// In the frame, at an offset from the stack pointer.
    Slot(u32),
    /// It is a constant and is read where the constants are.
    Pool(u32),
    /// It does not occur.
    None,
}

/// The first and last place of a virtual register: instruction i reads at 2i and writes at 2i + 1.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: u32,
    /// The first place where it is not needed.
    end: u32,
    weight: f32,
}

const NEVER: u32 = u32::MAX;

/// The homes of all virtual registers.
pub struct Allocation {
    /// By number.
    pub homes: Vec<Home>,
    /// Bytes of the frame up to the end of the slots.
    pub frame: u32,
    intervals: Vec<Interval>,
}

impl Allocation {
    /// The virtual registers that live in registers across an instruction.
    pub fn across(&self, at: usize) -> impl Iterator<Item = (Reg, u8)> + '_ {
        let at = 2 * at as u32;
        self.intervals.iter().enumerate().filter(move |(_, i)| i.start < at && i.end > at + 1).filter_map(|(r, _)| {
            match self.homes[r] {
                Home::Reg(home) => Some((Reg(r as u32), home)),
                _ => None,
            }
        })
    }
}

/// General registers in the order in which they are taken: those that need not be saved come first. The other three
/// (rax, rcx, rdx) are always scratch.
const GENERAL: [u8; 12] = [6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15];

/// Scratch registers of the vector file if not all virtual registers fit: the last ones.
pub const VECTOR_SCRATCH: u8 = 3;

/// How many vector registers there are.
pub fn vectors(isa: Isa) -> u8 {
    match isa {
        Isa::Avx512 => 32,
        Isa::Avx2 => 16,
    }
}

/// The scratch masks if not all fit. k7 is never given out: gathers use it up.
pub const MASK_SCRATCH: [u8; 2] = [5, 6];

fn file(class: Class, isa: Isa, scratch: bool) -> Vec<u8> {
    match class {
        Class::General => GENERAL.to_vec(),
        Class::Vector => (0..vectors(isa) - if scratch { VECTOR_SCRATCH } else { 0 }).collect(),
        Class::Mask => (1..if scratch { MASK_SCRATCH[0] } else { 7 }).collect(),
    }
}

/// Finds a home for every virtual register.
pub fn allocate(f: &Function, isa: Isa) -> Allocation {
    let intervals = intervals(f);
    let mut order: Vec<u32> = (0..f.regs.len() as u32).filter(|r| intervals[*r as usize].start != NEVER).collect();
    order.sort_unstable_by_key(|r| intervals[*r as usize].start);
    let mut homes = vec![Home::None; f.regs.len()];
    let mut spilled = Vec::new();
    let outlives = outlives(f, &intervals);
    for class in [Class::General, Class::Vector, Class::Mask] {
        for scratch in [false, true] {
            let free = file(class, isa, scratch);
            let before = spilled.len();
            scan(f, &intervals, &outlives, &order, class, free, &mut homes, &mut spilled);
            if spilled.len() == before || class == Class::General || scratch {
                break;
            }
            spilled.truncate(before);
        }
    }
    let frame = slots(f, &intervals, spilled, &mut homes);
    Allocation { homes, frame, intervals }
}

/// The place of each virtual register in time, and how much it is used.
fn intervals(f: &Function) -> Vec<Interval> {
    let mut all = vec![Interval { start: NEVER, end: 0, weight: 0.0 }; f.regs.len()];
    // The loops around the instruction that is looked at: where each starts and ends.
    let mut ends = vec![0; f.code.len()];
    let mut open = Vec::new();
    for (i, inst) in f.code.iter().enumerate() {
        match inst {
            Inst::LoopStart(_) => open.push(i),
            Inst::LoopEnd(..) => {
                if let Some(start) = open.pop() {
                    ends[start] = i;
                }
            }
            _ => {}
        }
    }
    let mut loops: Vec<(u32, u32)> = Vec::new();
    let mut weight = 1.0f32;
    for (i, inst) in f.code.iter().enumerate() {
        let at = 2 * i as u32;
        if let Inst::LoopStart(_) = inst {
            loops.push((at, 2 * ends[i] as u32 + 2));
            weight *= 8.0;
        }
        inst.visit(&mut |r, role| {
            let v = &mut all[r.0 as usize];
            if v.start == NEVER {
                v.start = if role == Role::Def { at + 1 } else { at };
            }
            v.weight += weight;
            v.end = v.end.max(if role == Role::Use { at + 1 } else { at + 2 });
            // What was there before a loop and is needed in it stays to its end: the next time around needs it again.
            if let Some((_, end)) = loops.iter().find(|(start, _)| *start > v.start) {
                v.end = v.end.max(*end);
            }
        });
        if let Inst::LoopEnd(..) = inst {
            loops.pop();
            weight /= 8.0;
        }
    }
    for (v, info) in all.iter_mut().zip(&f.regs) {
        // Reading a constant from memory costs little and saves keeping it.
        if info.constant.is_some() {
            v.weight *= 0.5;
        }
        v.weight /= (v.end.max(1) - v.start.min(v.end)).max(1) as f32;
    }
    all
}

/// Which virtual registers are needed after another function ran. Empty: none.
fn outlives(f: &Function, intervals: &[Interval]) -> Vec<bool> {
    let runs: Vec<u32> =
        (0..f.code.len()).filter(|i| matches!(f.code[*i], Inst::Run { .. })).map(|i| 2 * i as u32).collect();
    if runs.is_empty() {
        return Vec::new();
    }
    let across = |i: &Interval| {
        let next = runs.partition_point(|run| *run <= i.start);
        i.start != NEVER && runs.get(next).is_some_and(|run| i.end > run + 1)
    };
    intervals.iter().map(across).collect()
}

/// One file: gives out its registers, and names those that stay in memory.
#[allow(clippy::too_many_arguments)]
fn scan(
    f: &Function,
    intervals: &[Interval],
    outlives: &[bool],
    order: &[u32],
    class: Class,
    mut free: Vec<u8>,
    homes: &mut [Home],
    spilled: &mut Vec<u32>,
) {
    free.reverse();
    let mut active: Vec<(u32, u8)> = Vec::new();
    for &r in order {
        if f.regs[r as usize].class != class {
            continue;
        }
        let now = intervals[r as usize];
        active.retain(|(other, home)| {
            let keep = intervals[*other as usize].end > now.start;
            if !keep {
                free.push(*home);
            }
            keep
        });
        let outlives = outlives.get(r as usize).copied().unwrap_or(false);
        let fits = |home: u8| !outlives || (class == Class::General && SAVED.contains(&home));
        if let Some(last) = free.iter().rposition(|home| fits(*home)) {
            let wanted = hint(f, intervals, homes, now).filter(|w| fits(*w));
            let at = wanted.and_then(|w| free.iter().position(|r| *r == w)).unwrap_or(last);
            let home = free.remove(at);
            homes[r as usize] = Home::Reg(home);
            active.push((r, home));
            continue;
        }
        let weakest = (0..active.len()).filter(|i| fits(active[*i].1)).min_by(|a, b| {
            let weight = |i: &usize| intervals[active[*i].0 as usize].weight;
            weight(a).total_cmp(&weight(b))
        });
        match weakest {
            Some(i) if intervals[active[i].0 as usize].weight < now.weight => {
                let (other, home) = active[i];
                spilled.push(other);
                active[i] = (r, home);
                homes[r as usize] = Home::Reg(home);
            }
            _ => spilled.push(r),
        }
    }
}

/// The register of an operand that ends where this begins: then a copy may be saved.
fn hint(f: &Function, intervals: &[Interval], homes: &[Home], now: Interval) -> Option<u8> {
    let inst = &f.code[now.start as usize / 2];
    let mut found = None;
    inst.visit(&mut |r, role| {
        if let (Role::Use, None, Home::Reg(home)) = (role, found, homes[r.0 as usize])
            && intervals[r.0 as usize].end == now.start
        {
            found = Some(home);
        }
    });
    found
}

/// Gives those without a register a place in the frame, after the arrays.
fn slots(f: &Function, intervals: &[Interval], mut spilled: Vec<u32>, homes: &mut [Home]) -> u32 {
    let mut top = f.room.next_multiple_of(64);
    spilled.sort_unstable_by_key(|r| intervals[*r as usize].start);
    // By size (8, or that of a vector): slots with the time from which they are free.
    let mut used: [Vec<(u32, u32)>; 2] = Default::default();
    for large in [true, false] {
        for &r in &spilled {
            let info = &f.regs[r as usize];
            if (info.class == Class::Vector) != large {
                continue;
            }
            if let Some(entry) = info.constant {
                homes[r as usize] = Home::Pool(entry);
                continue;
            }
            let now = intervals[r as usize];
            let list = &mut used[usize::from(large)];
            let slot = match list.iter_mut().find(|(_, end)| *end <= now.start) {
                Some(slot) => slot,
                None => {
                    list.push((top, 0));
                    top += if large { f.entry as u32 } else { 8 };
                    // invariant: one was just pushed
                    let last = list.len() - 1;
                    &mut list[last]
                }
            };
            slot.1 = now.end;
            homes[r as usize] = Home::Slot(slot.0);
        }
    }
    top
}
