//! Where elements are: addresses that follow the loops around them, and how the lanes of a vector lie in memory.

use smallvec::SmallVec;

use super::analyze::{FAR, term_varies};
use super::encode::Len;
use super::lir::{Alu, Base, Inst, Mem, Reg, Ri, Shift};
use super::opcodes as op;
use super::select::{Key, Select, Step, TOGETHER, Val};
use crate::ir::{Buffer, Index, Int, Op, Ty, Value};

/// What a vector of elements looks like in memory.
pub(super) enum Pattern {
    /// One place for all lanes.
    Same,
    /// One after the other.
    Contiguous,
    /// At indices, in lanes of 4 or 8 bytes, with what each vector of a step is further in bytes.
    Indexed { indices: [Reg; TOGETHER], step: i32 },
}

impl Select<'_> {
    /// A stride that is known is a constant, whoever says so.
    fn known(&self, i: Int) -> Int {
        match i {
            Int::Value(v) => self.const_of(v).map_or(i, |bits| Int::Const(bits as i64)),
            i => i,
        }
    }

    fn uniform(&self, stride: Int) -> bool {
        !matches!(stride, Int::Value(s) if self.varying[s.index()])
    }

    fn level_of(&self, i: Int) -> usize {
        match i {
            Int::Const(_) => 0,
            Int::Value(v) => self.levels[v.index()] as usize,
        }
    }

    /// A uniform value times a stride.
    fn scaled(&mut self, v: Value, stride: Int, level: usize) -> Option<Reg> {
        let a = self.counter_or_general(v)?;
        if stride == Int::Const(1) {
            return Some(a);
        }
        let b = self.int(stride)?;
        Some(self.once(level, Key::Scaled(v, stride), |s| {
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

    /// In general registers; the lane counter as the iteration of the first lane.
    fn counter_or_general(&mut self, v: Value) -> Option<Reg> {
        match (self.values[v.index()], &self.step) {
            (Val::LaneVar, Some(step)) => Some(step.counter),
            _ => self.general(v),
        }
    }

    /// The address of an element; of what varies only the lane counter counts, as the iteration of the first lane.
    pub(super) fn address(&mut self, buffer: Buffer, at: &Index) -> Option<Mem> {
        let ty = self.module.buffers[buffer.index()].ty;
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
            let lane = self.values[v.index()] == Val::LaneVar;
            if term_varies(&(*v, stride), &self.varying) && !(lane && self.uniform(stride)) {
                continue;
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
        let last = terms.len().wrapping_sub(1);
        for (i, (level, class, v, stride)) in terms.into_iter().enumerate() {
            if class == 2 && i == last {
                // invariant: class 2 has a constant stride
                let Int::Const(s) = stride else { return None };
                index = Some((self.counter_or_general(v)?, (s * size).trailing_zeros() as u8));
                continue;
            }
            prefix.push((v, stride));
            let key = Key::Address(buffer.0, prefix.clone());
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
            Int::Value(v) => {
                let stride = self.general(v)?;
                let dst = self.general_reg();
                let by = size.trailing_zeros() as u8;
                self.emit_at(level - 1, Inst::ShiftBy { op: Shift::Left, dst, a: stride, by });
                Ri::Reg(dst)
            }
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

    /// How the lanes of a place lie in memory. The terms that vary are in the pattern, all others in the address.
    pub(super) fn pattern_of(&mut self, at: &Index, ty: Ty) -> Option<Pattern> {
        let Some(step) = self.step else { return Some(Pattern::Same) };
        let Step { plan, copies, first, .. } = step;
        // What counts the lanes: the counter, or its place in a block, which the address leaves out.
        let place = at.terms.iter().map(|t| t.0).find(|v| self.values[v.index()] == Val::Lane);
        let var = match at.stride(step.var) {
            Int::Const(0) => place.unwrap_or(step.var),
            _ => step.var,
        };
        let mut lane = self.known(at.stride(var));
        if !self.uniform(lane) {
            // Then it is a term like others.
            lane = Int::Const(0);
        }
        let vary: SmallVec<[(Value, Int); 3]> = at
            .terms
            .iter()
            .filter(|t| term_varies(t, &self.varying) && !(t.0 == var && self.uniform(t.1)))
            .map(|(v, s)| (*v, self.known(*s)))
            .collect();
        match lane {
            Int::Const(0) if vary.is_empty() => return Some(Pattern::Same),
            Int::Const(1) if vary.is_empty() => return Some(Pattern::Contiguous),
            _ => {}
        }
        let mut indices = [Reg(0); TOGETHER];
        if let (Int::Const(s), true) = (lane, vary.is_empty())
            && s.abs() <= FAR
        {
            let r = self.ramp(0, s, if plan.wide { 8 } else { 4 });
            return Some(Pattern::Indexed {
                indices: [r; TOGETHER],
                step: (s * ty.size() as i64) as i32 * plan.width as i32,
            });
        }
        // From here on indices are of 64 bits.
        plan.wide.then_some(())?;
        let len = Len((plan.width * 8) as u8);
        self.lanes = true;
        for (k, index) in indices.iter_mut().enumerate().take(copies) {
            let mut sum = match lane {
                Int::Const(0) => None,
                Int::Const(s) => Some(self.ramp(((first + k) * plan.width) as i64, s, 8)),
                Int::Value(v) => {
                    let stride = self.vector(v, k)?;
                    let iota = self.iota((first + k) * plan.width, 8);
                    Some(self.multiply(stride, iota, len))
                }
            };
            for (v, stride) in &vary {
                let v = self.vector(*v, k)?;
                let term = match stride {
                    Int::Const(1) => v,
                    Int::Const(s) if *s > 0 && s & (s - 1) == 0 => {
                        self.made(op::shl_imm(true), len, None, v, Some(s.trailing_zeros() as u8))
                    }
                    Int::Const(s) => {
                        let s = self.splat(*s as u64, 8);
                        self.multiply(v, s, len)
                    }
                    Int::Value(s) => {
                        let s = self.vector(*s, k)?;
                        self.multiply(v, s, len)
                    }
                };
                sum = Some(match sum {
                    None => term,
                    Some(sum) => self.made(op::int_add(true), len, Some(sum), term, None),
                });
            }
            *index = sum?;
        }
        self.lanes = false;
        Some(Pattern::Indexed { indices, step: 0 })
    }

    fn multiply(&mut self, a: Reg, b: Reg, len: Len) -> Reg {
        let dst = self.vector_reg();
        // invariant: products of 64-bit integers have a form everywhere
        let _ = self.arithmetic(Op::Mul, Ty::I64, len, dst, &[a, b], None);
        dst
    }
}
