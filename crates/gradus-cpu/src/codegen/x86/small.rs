//! Integers of 8 and 16 bits.
//!
//! In registers they are 32-bit integers of the same number: lanes are all of one size, and there are instructions for them.
//! What may leave the range is cut back to it, as the bits that are left say.

use super::Isa;
use super::encode::Len;
use super::lir::{Alu, Inst, Mem, Reg, Ri, Rm, Size};
use super::opcodes as op;
use super::select::Select;
use crate::ir::{Op, Ty, Value};

/// Whether a type is shorter than all lanes.
pub(super) fn is_small(ty: Ty) -> bool {
    matches!(ty, Ty::I8 | Ty::I16 | Ty::U8 | Ty::U16)
}

/// The type that lanes have.
pub(super) fn lane_type(ty: Ty) -> Ty {
    if is_small(ty) { Ty::I32 } else { ty }
}

/// The bits of a constant in a lane.
pub(super) fn lane_bits(ty: Ty, bits: u64) -> u64 {
    let bits = match ty {
        Ty::I8 => bits as i8 as i32 as u32,
        Ty::I16 => bits as i16 as i32 as u32,
        Ty::U8 => u32::from(bits as u8),
        Ty::U16 => u32::from(bits as u16),
        _ => return bits,
    };
    u64::from(bits)
}

/// How an element of so many bytes is moved.
pub(super) fn size_of(bytes: usize) -> Size {
    match bytes {
        1 => Size::Byte,
        2 => Size::Word,
        4 => Size::Double,
        _ => Size::Quad,
    }
}

fn mask_of(ty: Ty) -> u64 {
    if ty.size() == 1 { 0xFF } else { 0xFFFF }
}

impl Select<'_> {
    /// The low bits of 32-bit lanes as a short integer.
    pub(super) fn cut(&mut self, ty: Ty, len: Len, dst: Reg, src: Reg) {
        if ty.is_signed() {
            let by = Some(32 - 8 * ty.size() as u8);
            let high = self.made(op::shl_imm(false), len, None, src, by);
            self.vec(op::sar_imm(false), len, dst, None, high, by);
        } else {
            let mask = self.splat(mask_of(ty), 4);
            self.vec(op::int_and(false), len, dst, Some(src), mask, None);
        }
    }

    /// An operation with short integers, after which what it gives is cut. None of them is uniform and 64 bits long.
    pub(super) fn small_op(&mut self, op: Op, ty: Ty, to: Ty, args: &[Value], k: usize, dst: Reg) -> Option<()> {
        let len = self.len(4);
        match op {
            Op::Convert(_) | Op::Bitcast(_) if ty == Ty::Bool => self.convert(ty, Ty::I32, args[0], k, dst)?,
            Op::Convert(_) | Op::Bitcast(_) if !is_small(to) => self.convert(Ty::I32, to, args[0], k, dst)?,
            Op::Convert(_) if ty.is_float() => {
                let whole = self.vector_reg();
                self.convert(ty, Ty::I32, args[0], k, whole)?;
                let (least, most) = match to.is_signed() {
                    true => (lane_bits(to, 1 << (to.size() * 8 - 1)), mask_of(to) >> 1),
                    false => (0, mask_of(to)),
                };
                let (least, most) = (self.splat(least, 4), self.splat(most, 4));
                let x = self.made(op::int_max(false), len, Some(whole), least, None);
                self.vec(op::int_min(false), len, dst, Some(x), most, None);
            }
            Op::Convert(_) | Op::Bitcast(_) => {
                let whole = self.vector_reg();
                match (self.now.is_some(), ty) {
                    (false, Ty::I64 | Ty::U64) => self.convert_general(ty, Ty::I32, args[0], whole)?,
                    _ => self.convert(lane_type(ty), Ty::I32, args[0], k, whole)?,
                }
                self.cut(to, len, dst, whole);
            }
            _ => {
                let mut x = [Reg(0); 2];
                for (r, a) in x.iter_mut().zip(args) {
                    *r = self.vector(*a, k)?;
                }
                let x = &mut x[..args.len().min(2)];
                // What is shifted or counted are bits: of an unsigned integer, or of a signed one.
                let read = match op {
                    Op::Shr | Op::Popcount | Op::LeadingZeros if ty.is_signed() => Some(false),
                    Op::Sar if !ty.is_signed() => Some(true),
                    _ => None,
                };
                if let Some(signed) = read {
                    let cut = self.vector_reg();
                    let unsigned = if ty.size() == 1 { Ty::U8 } else { Ty::U16 };
                    self.cut(if signed { ty.bits_type() } else { unsigned }, len, cut, x[0]);
                    x[0] = cut;
                }
                let whole = self.vector_reg();
                match op {
                    Op::And | Op::Or | Op::Xor | Op::Max | Op::Min => {
                        return self.arithmetic(op, Ty::I32, len, dst, x, None);
                    }
                    Op::Div | Op::Rem | Op::Popcount => self.lanewise(op, Ty::I32, Ty::I32, x, whole)?,
                    Op::LeadingZeros => {
                        let all = self.vector_reg();
                        self.lanewise(op, Ty::I32, Ty::I32, x, all)?;
                        let more = self.splat(32 - 8 * ty.size() as u64, 4);
                        self.vec(op::int_sub(false), len, whole, Some(all), more, None);
                    }
                    _ => self.arithmetic(op, Ty::I32, len, whole, x, None)?,
                }
                self.cut(ty, len, dst, whole);
            }
        }
        Some(())
    }

    /// A short integer from memory in all lanes.
    pub(super) fn load_small(&mut self, ty: Ty, dst: Reg, from: Mem) {
        let (low, len) = (self.general_reg(), self.whole());
        self.emit(Inst::Load { size: size_of(ty.size()), dst: low, from });
        match ty.is_signed() {
            false => self.broadcast_code(dst, low, false).into_iter().for_each(|i| self.emit(i)),
            true => {
                let whole = self.vector_reg();
                self.broadcast_code(whole, low, false).into_iter().for_each(|i| self.emit(i));
                self.cut(ty, len, dst, whole);
            }
        }
    }

    /// The bits of the short integer in the first lane.
    pub(super) fn small_bits(&mut self, ty: Ty, src: Reg) -> Reg {
        let (all, dst) = (self.general_reg(), self.general_reg());
        self.emit(Inst::FromVec { enc: op::to_general(false), dst: all, src });
        self.alu(Alu::And, dst, all, Ri::Imm(mask_of(ty) as i32));
        dst
    }

    /// Short integers, one after the other, to lanes.
    pub(super) fn widen(&mut self, ty: Ty, dst: Reg, from: Mem, mask: Option<Reg>) {
        let enc = op::widen(ty.size() == 2, ty.is_signed());
        let len = self.len(4);
        let mask = mask.map(|m| (m, true));
        self.emit(Inst::Vec { enc, len, dst, a: None, b: Rm::Mem(from), imm: None, mask });
    }

    /// Lanes to short integers, one after the other.
    pub(super) fn shorten(&mut self, ty: Ty, src: Reg, to: Mem, mask: Option<Reg>) -> Option<()> {
        let words = ty.size() == 2;
        if self.isa == Isa::Avx512 {
            let len = self.len(4);
            self.emit(Inst::StoreVec { enc: op::shorten(words), len, src, to, mask });
            return Some(());
        }
        let eight = self.width() == 8;
        let bits = self.splat(mask_of(ty), 4);
        let len = self.len(4);
        let x = self.made(op::int_and(false), len, Some(src), bits, None);
        let upper = if eight { self.made(op::EXTRACT_128, Len(32), None, x, Some(1)) } else { x };
        let mut packed = self.made(op::PACK_U32, Len(16), Some(x), upper, None);
        if !words {
            packed = self.made(op::PACK_U16, Len(16), Some(packed), packed, None);
        }
        let enc = match (words, eight) {
            (true, true) => op::store(false),
            (true, false) | (false, true) => op::store_one(true),
            (false, false) => op::store_one(false),
        };
        self.emit(Inst::StoreVec { enc, len: Len(16), src: packed, to, mask: None });
        Some(())
    }
}
