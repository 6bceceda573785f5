//! Where elements are: addresses that follow the loops around them, and how the lanes of a vector lie in memory.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::lir::{Alu, Base, Inst, Mem, Reg, Ri, Shift};
use super::select::{Once, Select, TOGETHER};
use crate::ir::{Buffer, Index, Int, Op, Ty, Value};
use crate::vector::{Access, Code, Expr, FAR, Lanes, Memory, Spread, Stmt};

/// What a vector of elements looks like in memory.
#[derive(Clone, Copy)]
pub(super) enum Pattern {
    /// One after the other.
    Contiguous,
    /// At indices, in lanes of 4 or 8 bytes, with what each register is further in bytes.
    Indexed { indices: [Reg; TOGETHER], step: i32 },
}

/// So many places that differ only by a number which the kernel was given share a pointer.
const FAMILY: usize = 3;

/// Places that differ only by numbers which the kernel was given: rows of a tile whose distance is known when the code runs. One pointer follows the loops for all of them, and
/// each has its number as the index of the address: pointers of their own, and what each goes on by, would not fit into registers.
#[derive(Default)]
pub(super) struct Families(FxHashSet<(Buffer, Terms)>);

type Terms = SmallVec<[(Value, Int); 4]>;

impl Families {
    /// Those of a function.
    pub fn of(code: &Code) -> Families {
        let mut found: FxHashMap<(Buffer, Terms), FxHashSet<Option<Value>>> = FxHashMap::default();
        if code.inputs.len() + 1 >= FAMILY {
            Families::collect(code, &code.body, &mut found);
        }
        Families(found.into_iter().filter(|(_, members)| members.len() >= FAMILY).map(|(key, _)| key).collect())
    }

    fn collect(code: &Code, body: &[Stmt], found: &mut FxHashMap<(Buffer, Terms), FxHashSet<Option<Value>>>) {
        let mut take = |a: &Access| {
            // A vector of addresses has no other index.
            let run = a.lanes.as_ref().is_none_or(|l| matches!(l.spread, Spread::Strided(Int::Const(1))));
            if let (Memory::Buffer(b), true) = (a.memory, run) {
                let (given, rest) = split(code, &a.at);
                if !rest.is_empty() {
                    found.entry((b, rest)).or_default().insert(given);
                }
            }
        };
        for s in body {
            match s {
                Stmt::Let(_, Expr::Load(a)) | Stmt::Store(a, _) => take(a),
                _ => {}
            }
        }
        for s in body {
            if let Stmt::Loop(l) = s {
                Families::collect(code, &l.body, found);
            }
        }
    }

    /// The number that tells a place from the others of its family.
    fn offset(&self, code: &Code, buffer: Buffer, at: &Index) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let (given, rest) = split(code, at);
        given.filter(|_| self.0.contains(&(buffer, rest)))
    }
}

/// A number that the kernel was given and that stands alone in a place, and all other parts of it.
fn split(code: &Code, at: &Index) -> (Option<Value>, Terms) {
    let is_given = |(v, by): &(Value, Int)| *by == Int::Const(1) && code.inputs.contains(v);
    let given = at.terms.iter().position(is_given);
    let rest = at.terms.iter().enumerate().filter(|(i, _)| Some(*i) != given).map(|(_, t)| *t).collect();
    (given.map(|i| at.terms[i].0), rest)
}

impl Select<'_> {
    /// A stride that is known is a constant, whoever says so.
    pub(super) fn known(&self, i: Int) -> Int {
        match i {
            Int::Value(v) => self.const_of(v).map_or(i, |bits| Int::Const(bits as i64)),
            i => i,
        }
    }

    fn level_of(&self, i: Int) -> usize {
        match i {
            Int::Const(_) => 0,
            Int::Value(v) => self.levels[v.index()] as usize,
        }
    }

    /// A uniform value times a stride.
    pub(super) fn scaled(&mut self, v: Value, stride: Int, level: usize) -> Option<Reg> {
        let a = self.general(v)?;
        if stride == Int::Const(1) {
            return Some(a);
        }
        let b = self.int(stride)?;
        Some(self.once(level, Once::Scaled(v, stride), |s| {
            let dst = s.general_reg();
            let code = match stride {
                Int::Const(c) if c > 0 && c & (c - 1) == 0 => {
                    Inst::ShiftBy { op: Shift::Left, dst, a, by: c.trailing_zeros() as u8 }
                }
                _ => Inst::Alu { op: Alu::Mul, dst, a, b },
            };
            (dst, vec![code])
        }))
    }

    /// The address of an element of a type.
    pub(super) fn address(&mut self, memory: Memory, at: &Index, ty: Ty) -> Option<Mem> {
        let buffer = match memory {
            Memory::Buffer(b) => b,
            Memory::Local(n) => return self.local(n, at, ty.size()),
        };
        let size = ty.size() as i64;
        let scale = size.trailing_zeros() as u8;
        let mut offset = at.offset;
        let mut terms: SmallVec<[(usize, u8, Value, Int); 3]> = SmallVec::new();
        for (v, stride) in &at.terms {
            let stride = self.known(*stride);
            match (self.const_of(*v), stride) {
                (Some(bits), Int::Const(s)) => {
                    offset = offset.wrapping_add((bits as i64).wrapping_mul(s));
                    continue;
                }
                (_, Int::Const(0)) => continue,
                _ => {}
            }
            let level = self.level_of(Int::Value(*v)).max(self.level_of(stride));
            let inductive =
                matches!(self.scopes[level].var, Some((var, _)) if var == *v) && self.level_of(stride) < level;
            let direct = matches!(stride, Int::Const(s) if matches!(s * size, 1 | 2 | 4 | 8));
            // What can be the index of the address comes last, what a pointer follows first.
            let class = if direct { 2 } else { u8::from(!inductive) };
            terms.push((level, class, *v, stride));
        }
        terms.sort_by_key(|t| (t.0, t.1));
        let mut base = self.buffer(buffer.0);
        let mut prefix: SmallVec<[(Value, Int); 3]> = SmallVec::new();
        let mut index = None;
        if terms.last().is_some_and(|t| t.1 != 2)
            && let Some(given) = self.families.offset(self.code, buffer, at)
            && let Some(i) = terms.iter().position(|t| t.2 == given && t.1 == 2)
        {
            index = Some((self.general(given)?, scale));
            terms.remove(i);
        }
        let last = terms.len().wrapping_sub(1);
        for (i, (level, class, v, stride)) in terms.into_iter().enumerate() {
            if class == 2 && i == last {
                // invariant: class 2 has a constant stride
                let Int::Const(s) = stride else { return None };
                index = Some((self.general(v)?, (s * size).trailing_zeros() as u8));
                continue;
            }
            if self.is_swapped(buffer.0) {
                // Nothing about this address may be kept.
                let term = self.scaled(v, stride, level)?;
                let (dst, from) =
                    (self.general_reg(), Mem { base: Base::Reg(base), index: Some((term, scale)), disp: 0 });
                self.emit(Inst::Lea { dst, from });
                base = dst;
                continue;
            }
            prefix.push((v, stride));
            let key = Once::Address(buffer.0, prefix.clone());
            if let Some(r) = self.scopes[level].cache.get(&key) {
                base = *r;
                continue;
            }
            if class == 0 {
                base = self.pointer(level, base, stride, size)?;
                self.scopes[level].cache.insert(key, base);
            } else {
                let term = self.scaled(v, stride, level)?;
                let from = Mem { base: Base::Reg(base), index: Some((term, scale)), disp: 0 };
                base = self.once(level, key, |s| {
                    let dst = s.general_reg();
                    (dst, vec![Inst::Lea { dst, from }])
                });
            }
        }
        let bytes = offset.checked_mul(size)?;
        let disp = match i32::try_from(bytes) {
            // Vectors of a step add to it.
            Ok(d) if d.abs() < 1 << 30 => d,
            _ => {
                let far = self.general_const(bytes);
                let dst = self.general_reg();
                self.alu(Alu::Add, dst, base, far);
                base = dst;
                0
            }
        };
        Some(Mem { base: Base::Reg(base), index, disp })
    }

    /// An address that goes with the counter of a serial loop.
    fn pointer(&mut self, level: usize, base: Reg, stride: Int, size: i64) -> Option<Reg> {
        let start = self.scopes[level].var.and_then(|(_, start)| start);
        let bytes = match stride {
            Int::Const(s) => self.int(Int::Const(s.checked_mul(size)?))?,
            Int::Value(v) => Ri::Reg(self.scaled(v, Int::Const(size), self.level_of(stride))?),
        };
        let dst = self.general_reg();
        match start {
            None => self.emit_at(level - 1, Inst::Copy { dst, src: base }),
            Some(start) => {
                let far = self.general_reg();
                self.emit_at(level - 1, Inst::Alu { op: Alu::Mul, dst: far, a: start, b: bytes });
                self.emit_at(level - 1, Inst::Alu { op: Alu::Add, dst, a: base, b: far.into() });
            }
        }
        self.scopes[level].bumps.push(Inst::Alu { op: Alu::Add, dst, a: dst, b: bytes });
        Some(dst)
    }

    /// How the lanes of an access of a type lie in memory, seen from the first.
    pub(super) fn pattern_of(&mut self, lanes: &Lanes, ty: Ty) -> Option<Pattern> {
        let width = lanes.shape.width();
        let mut indices = [Reg(0); TOGETHER];
        let stride = match lanes.spread {
            Spread::Strided(by) => self.known(by),
            Spread::Scattered(by) => {
                self.each_part(lanes.shape, |s, k| {
                    indices[k] = s.vector(by, k)?;
                    Some(())
                })?;
                return Some(Pattern::Indexed { indices, step: 0 });
            }
        };
        let wide = width * 8 == self.f.entry;
        match stride {
            Int::Const(1) => Some(Pattern::Contiguous),
            Int::Const(by) if by.abs() <= FAR => {
                let r = self.ramp(0, by, if wide { 8 } else { 4 });
                let step = (by * ty.size() as i64) as i32 * width as i32;
                Some(Pattern::Indexed { indices: [r; TOGETHER], step })
            }
            // From here on indices are of 64 bits.
            _ if !wide => None,
            Int::Const(by) => {
                for (k, index) in indices.iter_mut().enumerate().take(usize::from(lanes.shape.registers)) {
                    *index = self.ramp((k * width) as i64 * by, by, 8);
                }
                Some(Pattern::Indexed { indices, step: 0 })
            }
            Int::Value(by) => {
                self.each_part(lanes.shape, |s, k| {
                    let (by, numbers) = (s.vector(by, k)?, s.ramp((k * width) as i64, 1, 8));
                    let (dst, len) = (s.vector_reg(), s.len(8));
                    s.arithmetic(Op::Mul, Ty::I64, len, dst, &[by, numbers], None)?;
                    indices[k] = dst;
                    Some(())
                })?;
                Some(Pattern::Indexed { indices, step: 0 })
            }
        }
    }
}
