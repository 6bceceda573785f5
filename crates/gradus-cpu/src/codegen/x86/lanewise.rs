//! Operations without a vector form: one lane after the other, through the frame.

use super::Isa;
use super::encode::{Cond, Len};
use super::lir::{Alu, Inst, Mem, Reg, Ri, Rm, Shift, Size, Test, Unary};
use super::opcodes as op;
use super::select::Select;
use crate::ir::{Op, Ty};

/// Where operands and results are while lanes are worked on.
const OPERANDS: [i32; 2] = [0, 64];
const RESULT: i32 = 128;
/// Bytes of the frame for that.
pub(super) const ROOM: usize = 192;

impl Select<'_> {
    /// An operation on integers or a conversion, lane by lane.
    pub(super) fn lanewise(&mut self, op: Op, from: Ty, to: Ty, args: &[Reg], dst: Reg) -> Option<()> {
        self.room(ROOM);
        let count = self.width() as i32;
        let (size, to_size) = (from.size() as i32, to.size() as i32);
        let len = if count == 1 { Len(16) } else { self.len(from.size()) };
        for (src, place) in args.iter().zip(OPERANDS) {
            let to = Mem::frame(place);
            self.emit(Inst::StoreVec { enc: op::store(false), len, src: *src, to, mask: None });
        }
        for lane in 0..count {
            let place = Mem::frame(RESULT + lane * to_size);
            let result = match (from.is_float(), to.is_float()) {
                (true, _) => {
                    let at = Mem::frame(OPERANDS[0] + lane * size);
                    let x = self.made(op::broadcast(size == 8), Len(16), None, Rm::Mem(at), None);
                    self.float_to_general(from == Ty::F64, to, x)?
                }
                (false, true) => {
                    let x = self.lane(from, 0, lane);
                    let src = self.general_to_float(from, to == Ty::F64, x);
                    self.emit(Inst::StoreVec {
                        enc: op::store_one(to_size == 8),
                        len: Len(16),
                        src,
                        to: place,
                        mask: None,
                    });
                    continue;
                }
                (false, false) => {
                    let a = self.lane(from, 0, lane);
                    let b = if args.len() > 1 { self.lane(from, 1, lane) } else { a };
                    self.integers(op, from, a, b)?
                }
            };
            let size = if to_size == 8 { Size::Quad } else { Size::Double };
            self.emit(Inst::Store { size, src: result, to: place });
        }
        let from = Rm::Mem(Mem::frame(RESULT));
        match count {
            1 => self.vec(op::broadcast(to_size == 8), self.whole(), dst, None, from, None),
            _ => self.vec(op::load(false), self.len(to.size()), dst, None, from, None),
        }
        Some(())
    }

    /// An integer of a lane, widened to 64 bits.
    fn lane(&mut self, ty: Ty, operand: usize, lane: i32) -> Reg {
        let from = Mem::frame(OPERANDS[operand] + lane * ty.size() as i32);
        let low = self.general_reg();
        if ty.size() == 8 {
            self.emit(Inst::Load { size: Size::Quad, dst: low, from });
            return low;
        }
        self.emit(Inst::Load { size: Size::Double, dst: low, from });
        if !ty.is_signed() {
            return low;
        }
        let dst = self.general_reg();
        self.emit(Inst::Unary { op: Unary::Signed32, dst, a: low });
        dst
    }

    /// What 64 bits give is right in the low 32, too.
    fn integers(&mut self, op: Op, ty: Ty, mut a: Reg, b: Reg) -> Option<Reg> {
        let dst = self.general_reg();
        if ty == Ty::I32 && matches!(op, Op::Popcount | Op::LeadingZeros) {
            let low = self.general_reg();
            self.emit(Inst::Unary { op: Unary::Unsigned32, dst: low, a });
            a = low;
        }
        match op {
            Op::Div | Op::Rem => {
                self.emit(Inst::Divide { dst, a, b, signed: ty.is_signed(), rest: op == Op::Rem });
            }
            Op::Popcount => self.emit(Inst::Unary { op: Unary::Popcount, dst, a }),
            Op::LeadingZeros => {
                self.emit(Inst::Unary { op: Unary::LeadingZeros, dst, a });
                if ty.size() == 4 {
                    self.alu(Alu::Sub, dst, dst, Ri::Imm(32));
                }
            }
            _ => return None,
        }
        Some(dst)
    }

    /// The first lane of a float as an integer that saturates.
    pub(super) fn float_to_general(&mut self, d: bool, to: Ty, x: Reg) -> Option<Reg> {
        let dst = self.general_reg();
        let limit = if d { 2f64.powi(63).to_bits() } else { u64::from(2f32.powi(63).to_bits()) };
        let limit = self.splat(limit, if d { 8 } else { 4 });
        let zero = self.splat(0, 8);
        match (to, self.isa) {
            (Ty::I64, _) => {
                let is = self.test_float(d, x, x, 7);
                let high = self.test_float(d, x, limit, 0x1D);
                let (low, turned) = (self.general_reg(), self.general_reg());
                self.emit(Inst::FromVec { enc: op::to_i64(d), dst: low, src: x });
                // Out of range is the lowest integer, whose complement is the highest.
                self.alu(Alu::Xor, turned, low, high);
                self.alu(Alu::And, dst, turned, is);
            }
            (Ty::U64, Isa::Avx512) => {
                // Too much gives the largest; NaN and below zero become zero first.
                let src = self.made(op::max(d), Len(16), Some(x), zero, None);
                self.emit(Inst::FromVec { enc: op::to_u64(d), dst, src });
            }
            (Ty::U64, Isa::Avx2) => {
                let x = self.made(op::max(d), Len(16), Some(x), zero, None);
                // From 2^63 on, that much less is converted, and the bit set again.
                let part = self.vector_reg();
                let above = self.made(op::compare(d), Len(16), Some(x), limit, Some(0x1D));
                self.vec(op::and(d), Len(16), part, Some(above), limit, None);
                let rest = self.made(op::sub(d), Len(16), Some(x), part, None);
                let big = self.test_float(d, x, limit, 0x1D);
                let over = self.test_float(d, rest, limit, 0x1D);
                let (bit, low, joined) = (self.general_reg(), self.general_reg(), self.general_reg());
                self.emit(Inst::ShiftBy { op: Shift::Left, dst: bit, a: big, by: 63 });
                self.emit(Inst::FromVec { enc: op::to_i64(d), dst: low, src: rest });
                self.alu(Alu::Xor, joined, low, bit);
                self.alu(Alu::Or, dst, joined, over);
            }
            (Ty::U32, _) => {
                let all = self.float_to_general(d, Ty::U64, x)?;
                let most = self.general_const(i64::from(u32::MAX));
                self.emit(Inst::Choose {
                    dst,
                    test: Test { cond: Cond::B, a: all, b: most.into() },
                    yes: all,
                    no: most,
                });
            }
            _ => return None,
        }
        Some(dst)
    }

    /// A comparison of first lanes as a bool.
    fn test_float(&mut self, d: bool, a: Reg, b: Reg, cond: u8) -> Reg {
        let mask = self.mask_reg(if d { 8 } else { 4 });
        self.vec(op::compare(d), Len(16), mask, Some(a), b, Some(cond));
        let dst = self.general_reg();
        self.bool_of(dst, mask);
        dst
    }

    /// A 64-bit integer (a 32-bit one is one) as a float, in the first lane.
    pub(super) fn general_to_float(&mut self, from: Ty, d: bool, src: Reg) -> Reg {
        let dst = self.vector_reg();
        let to = |enc, dst, src| Inst::ToVec { enc, len: Len(16), dst, src, merged: true };
        if from != Ty::U64 {
            self.emit(to(op::from_i64(d), dst, src));
        } else if self.isa == Isa::Avx512 {
            self.emit(to(op::from_u64(d), dst, src));
        } else {
            // From 2^63 on half of it is converted, its lowest bit kept for the rounding, and doubled.
            let (half, bit, joined, used) =
                (self.general_reg(), self.general_reg(), self.general_reg(), self.general_reg());
            self.emit(Inst::ShiftBy { op: Shift::Right, dst: half, a: src, by: 1 });
            self.alu(Alu::And, bit, src, Ri::Imm(1));
            self.alu(Alu::Or, joined, half, bit);
            let test = Test { cond: Cond::L, a: src, b: Ri::Imm(0) };
            self.emit(Inst::Choose { dst: used, test, yes: joined, no: src });
            let (sign, low, more) = (self.general_reg(), self.vector_reg(), self.vector_reg());
            self.emit(Inst::ShiftBy { op: Shift::RightSigned, dst: sign, a: src, by: 63 });
            self.emit(to(op::from_i64(d), low, used));
            self.emit(Inst::ToVec { enc: op::from_general(true), len: Len(16), dst: more, src: sign, merged: false });
            let again = self.made(op::and(d), Len(16), Some(low), more, None);
            self.vec(op::add(d), Len(16), dst, Some(low), again, None);
        }
        dst
    }
}
