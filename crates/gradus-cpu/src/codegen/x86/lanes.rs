//! Vectors as a whole: their halves, constants that differ between lanes, masks of the first lanes, and arrays in the frame.

use super::Isa;
use super::encode::Len;
use super::lir::{Inst, Mem, Reg, Shift};
use super::opcodes as op;
use super::select::{Once, Select, TOGETHER, Val, is_general};
use super::small::lane_type;
use crate::ir::{Index, Int, LANES, Value};

/// Bytes of the frame that memory operations use for lanes.
pub(super) const LANE_ROOM: usize = super::lanewise::ROOM;

/// Bytes of the frame for an array of the kernel's own.
const LOCAL_ROOM: usize = LANES * 8;

impl Select<'_> {
    /// Room for the arrays of the kernel's own.
    pub(super) fn locals(&mut self) {
        let n = self.code.locals.len();
        if n > 0 {
            self.room(LANE_ROOM + LOCAL_ROOM * n);
        }
    }

    /// An element of an array of the kernel's own.
    pub(super) fn local(&mut self, n: u32, at: &Index, size: usize) -> Option<Mem> {
        let disp = (LANE_ROOM + LOCAL_ROOM * n as usize) as i64 + at.offset * size as i64;
        let place = Mem::frame(i32::try_from(disp).ok()?);
        match at.terms.as_slice() {
            [] => Some(place),
            [(v, Int::Const(1))] => {
                Some(Mem { index: Some((self.general(*v)?, size.trailing_zeros() as u8)), ..place })
            }
            _ => None,
        }
    }

    /// The upper or lower half of a vector.
    pub(super) fn half(&mut self, v: Value, upper: bool) -> Option<Val> {
        let Val::Lanes(regs) = self.values[v.index()] else { return Some(self.values[v.index()]) };
        let (shape, size) = (self.code.shape(v), lane_type(self.code.ty(v)).size());
        let n = usize::from(shape.registers);
        let mut half = [Reg(0); TOGETHER];
        if n > 1 {
            let from = if upper { n / 2 } else { 0 };
            half[..n / 2].copy_from_slice(&regs[from..from + n / 2]);
            return Some(Val::Lanes(half));
        }
        half[0] = match (upper, shape.width() * size / 2) {
            (false, _) => regs[0],
            (true, 32) => self.made(op::EXTRACT_256, Len(64), None, regs[0], Some(1)),
            (true, 16) => self.made(op::EXTRACT_128, Len(32), None, regs[0], Some(1)),
            (true, 8) => self.made(op::SHUFFLE, Len(16), None, regs[0], Some(0x4E)),
            (true, _) => self.made(op::SHUFFLE, Len(16), None, regs[0], Some(0x55)),
        };
        Some(Val::Lanes(half))
    }

    /// The first lane as a scalar.
    pub(super) fn first(&mut self, v: Value) -> Option<Val> {
        let Val::Lanes(regs) = self.values[v.index()] else { return Some(self.values[v.index()]) };
        let (ty, src) = (self.code.ty(v), regs[0]);
        let size = lane_type(ty).size();
        if is_general(ty) {
            let dst = self.general_reg();
            self.emit(Inst::FromVec { enc: op::to_general(size == 8), dst, src });
            return Some(Val::General(dst));
        }
        let len = self.whole();
        Some(Val::Uniform(self.made(op::broadcast(size == 8), len, None, src, None)))
    }

    /// Whole numbers in lanes of so many bytes: the first, and by how much each is more than the one before it.
    pub(super) fn ramp(&mut self, first: i64, by: i64, size: usize) -> Reg {
        let lanes = (self.f.entry / size) as i64;
        let number = |i: i64| first.wrapping_add(i.wrapping_mul(by)).to_le_bytes();
        let bytes: Vec<u8> = (0..lanes).flat_map(|i| number(i).into_iter().take(size)).collect();
        self.pattern(&bytes)
    }

    /// Which lanes of the register that is made are among the first `n` of the vector: a mask for elements of so many bytes.
    pub(super) fn first_lanes(&mut self, n: Int, size: u8) -> Option<Reg> {
        let from = self.part * self.width();
        let level = match n {
            Int::Const(_) => 0,
            Int::Value(v) => self.levels[v.index()] as usize,
        };
        if self.isa == Isa::Avx2 {
            let numbers = self.ramp(from as i64, 1, usize::from(size));
            let count = self.counted(n)?;
            let (wide, len) = (size == 8, Len((self.width() * usize::from(size)).max(16) as u8));
            return Some(self.once(level, Once::Active(n, from, size), |s| {
                let (all, dst) = (s.vector_reg(), s.mask_reg(size));
                let mut code = s.broadcast_code(all, count, wide);
                let enc = op::int_greater(wide);
                code.push(Inst::Vec { enc, len, dst, a: Some(all), b: numbers.into(), imm: None, mask: None });
                (dst, code)
            }));
        }
        let bits = match n {
            Int::Const(n) => self.general_const(((1u64.unbounded_shl(n as u32)).wrapping_sub(1) >> from) as i64),
            Int::Value(_) => {
                let count = self.counted(n)?;
                let bits = self.once(level, Once::Bits(n), |s| {
                    let dst = s.general_reg();
                    (dst, vec![Inst::LowBits { dst, count }])
                });
                match from {
                    0 => bits,
                    by => {
                        let dst = self.general_reg();
                        self.emit_at(level, Inst::ShiftBy { op: Shift::Right, dst, a: bits, by: by as u8 });
                        dst
                    }
                }
            }
        };
        Some(self.once(level, Once::Active(n, from, 0), |s| {
            let dst = s.mask_reg(0);
            (dst, vec![Inst::MaskFrom { dst, src: bits }])
        }))
    }

    fn counted(&mut self, n: Int) -> Option<Reg> {
        match n {
            Int::Const(n) => Some(self.general_const(n)),
            Int::Value(v) => self.general(v),
        }
    }

    /// The mask of what is loaded or stored, if that is not all of it.
    pub(super) fn active_mask(&mut self, size: u8) -> Option<Option<Reg>> {
        match self.active {
            None => Some(None),
            Some(n) => self.first_lanes(n, size).map(Some),
        }
    }
}
