//! Operations that give a uniform 64-bit integer or bool, in a general register.

use super::Isa;
use super::encode::{Cond, Enc, Len};
use super::lir::{Alu, Inst, Reg, Ri, Shift, Test, Unary};
use super::opcodes as op;
use super::select::{Select, is_general};
use super::small::{is_small, lane_type};
use crate::ir::{Op, Ty, Value};

impl Select<'_> {
    pub(super) fn general_op(&mut self, op: Op, args: &[Value], dst: Reg) -> Option<()> {
        let ty = self.code.ty(args[0]);
        if op == Op::Select {
            let test = self.test_of(args[0])?;
            let (yes, no) = (self.general(args[1])?, self.general(args[2])?);
            self.emit(Inst::Choose { dst, test, yes, no });
            return Some(());
        }
        if !is_general(ty) {
            return self.of_vector(op, ty, args, dst);
        }
        let a = self.general(args[0])?;
        if ty == Ty::Bool {
            return self.bools(op, args, dst, a);
        }
        let unary = |s: &mut Self, op: Unary| s.emit(Inst::Unary { op, dst, a });
        match op {
            Op::Neg => unary(self, Unary::Neg),
            Op::Not => unary(self, Unary::Not),
            Op::Popcount => unary(self, Unary::Popcount),
            Op::LeadingZeros => unary(self, Unary::LeadingZeros),
            Op::Abs if ty.is_signed() => {
                let minus = self.general_reg();
                self.emit(Inst::Unary { op: Unary::Neg, dst: minus, a });
                let test = Test { cond: Cond::L, a, b: Ri::Imm(0) };
                self.emit(Inst::Choose { dst, test, yes: minus, no: a });
            }
            Op::Abs | Op::Bitcast(Ty::I64 | Ty::U64) | Op::Convert(Ty::I64 | Ty::U64) => {
                self.emit(Inst::Copy { dst, src: a });
            }
            Op::Convert(Ty::Bool) => {
                self.emit(Inst::Set { dst, test: Test { cond: Cond::Ne, a, b: Ri::Imm(0) } });
            }
            _ => return self.two(op, ty, args, dst, a),
        }
        Some(())
    }

    /// Operations on two 64-bit integers.
    fn two(&mut self, op: Op, ty: Ty, args: &[Value], dst: Reg, a: Reg) -> Option<()> {
        let signed = ty.is_signed();
        let alu = match op {
            Op::Add => Some(Alu::Add),
            Op::Sub => Some(Alu::Sub),
            Op::Mul => Some(Alu::Mul),
            Op::And => Some(Alu::And),
            Op::Or => Some(Alu::Or),
            Op::Xor => Some(Alu::Xor),
            _ => None,
        };
        if let Some(op) = alu {
            let b = self.general_or_imm(*args.get(1)?)?;
            self.alu(op, dst, a, b);
            return Some(());
        }
        let shift = match op {
            Op::Shl => Some(Shift::Left),
            Op::Shr => Some(Shift::Right),
            Op::Sar => Some(Shift::RightSigned),
            _ => None,
        };
        if let Some(op) = shift {
            let count = *args.get(1)?;
            match self.const_of(count) {
                Some(by @ 0..64) => self.emit(Inst::ShiftBy { op, dst, a, by: by as u8 }),
                _ => {
                    let by = self.general(count)?;
                    self.emit(Inst::ShiftAny { op, dst, a, by });
                }
            }
            return Some(());
        }
        let cond = match (op, signed) {
            (Op::Eq, _) => Some(Cond::E),
            (Op::Ne, _) => Some(Cond::Ne),
            (Op::Lt, true) => Some(Cond::L),
            (Op::Lt, false) => Some(Cond::B),
            (Op::Le, true) => Some(Cond::Le),
            (Op::Le, false) => Some(Cond::Be),
            _ => None,
        };
        if let Some(cond) = cond {
            let b = self.general_or_imm(*args.get(1)?)?;
            self.emit(Inst::Set { dst, test: Test { cond, a, b } });
            return Some(());
        }
        let b = self.general(*args.get(1)?)?;
        match op {
            Op::Max | Op::Min => {
                let cond = match (op == Op::Max, signed) {
                    (true, true) => Cond::G,
                    (true, false) => Cond::A,
                    (false, true) => Cond::L,
                    (false, false) => Cond::B,
                };
                self.emit(Inst::Choose { dst, test: Test { cond, a, b: Ri::Reg(b) }, yes: a, no: b });
            }
            Op::Div | Op::Rem => self.emit(Inst::Divide { dst, a, b, signed, rest: op == Op::Rem }),
            _ => return None,
        }
        Some(())
    }

    /// Operations on bools, 0 or -1.
    fn bools(&mut self, op: Op, args: &[Value], dst: Reg, a: Reg) -> Option<()> {
        match op {
            Op::Not => self.emit(Inst::Unary { op: Unary::Not, dst, a }),
            Op::Convert(Ty::I64 | Ty::U64) => self.alu(Alu::And, dst, a, Ri::Imm(1)),
            Op::Convert(Ty::Bool) | Op::Bitcast(Ty::Bool) => self.emit(Inst::Copy { dst, src: a }),
            _ => {
                let b = self.general(*args.get(1)?)?;
                match op {
                    Op::And => self.alu(Alu::And, dst, a, b),
                    Op::Or => self.alu(Alu::Or, dst, a, b),
                    Op::Xor | Op::Ne => self.alu(Alu::Xor, dst, a, b),
                    Op::Eq | Op::Lt | Op::Le => {
                        let not = self.general_reg();
                        self.emit(Inst::Unary { op: Unary::Not, dst: not, a });
                        let op = match op {
                            Op::Eq => Alu::Xor,
                            Op::Lt => Alu::And,
                            _ => Alu::Or,
                        };
                        self.alu(op, dst, not, b);
                    }
                    _ => return None,
                }
            }
        }
        Some(())
    }

    /// The first lane of a mask as a bool.
    pub(super) fn bool_of(&mut self, dst: Reg, mask: Reg) {
        match self.isa {
            Isa::Avx512 => {
                let bits = self.general_reg();
                self.emit(Inst::MaskTo { dst: bits, src: mask });
                let bit = self.general_reg();
                self.alu(Alu::And, bit, bits, Ri::Imm(1));
                self.emit(Inst::Unary { op: Unary::Neg, dst, a: bit });
            }
            Isa::Avx2 => {
                let bits = self.general_reg();
                self.emit(Inst::FromVec { enc: op::to_general(false), dst: bits, src: mask });
                self.emit(Inst::Unary { op: Unary::Signed32, dst, a: bits });
            }
        }
    }

    /// From values that are in vectors.
    fn of_vector(&mut self, op: Op, ty: Ty, args: &[Value], dst: Reg) -> Option<()> {
        let x = self.vector(args[0], 0)?;
        // Short integers are longer ones here; as a bool they are what their number is.
        let op = if is_small(ty) && op == Op::Bitcast(Ty::Bool) { Op::Convert(Ty::Bool) } else { op };
        let ty = lane_type(ty);
        let size = ty.size();
        let from = |s: &mut Self, enc: Enc, dst: Reg| s.emit(Inst::FromVec { enc, dst, src: x });
        match op {
            Op::Eq | Op::Ne | Op::Lt | Op::Le => {
                let b = self.vector(*args.get(1)?, 0)?;
                let mask = self.mask_reg(size as u8);
                self.compare(op, ty, Len(16), mask, x, b);
                self.bool_of(dst, mask);
                self.compared = Some((mask, size));
            }
            Op::Convert(Ty::Bool) => {
                let zero = self.splat(0, 8);
                let mask = self.mask_reg(size as u8);
                self.compare(Op::Ne, ty, Len(16), mask, x, zero);
                self.bool_of(dst, mask);
            }
            Op::Bitcast(_) => from(self, op::to_general(size == 8), dst),
            Op::Convert(Ty::I64 | Ty::U64) if !ty.is_float() => {
                let low = self.general_reg();
                from(self, op::to_general(false), low);
                let op = if ty.is_signed() { Unary::Signed32 } else { Unary::Unsigned32 };
                self.emit(Inst::Unary { op, dst, a: low });
            }
            Op::Convert(Ty::I64) if self.bounded.is_below(args[0], 63) => from(self, op::to_i64(size == 8), dst),
            Op::Convert(to @ (Ty::I64 | Ty::U64)) => {
                let src = self.float_to_general(ty == Ty::F64, to, x)?;
                self.emit(Inst::Copy { dst, src });
            }
            _ => return None,
        }
        Some(())
    }

    /// From a uniform 64-bit integer to a vector.
    pub(super) fn convert_general(&mut self, from: Ty, to: Ty, v: Value, dst: Reg) -> Option<()> {
        let src = self.general(v)?;
        let whole = self.whole();
        match to {
            Ty::I32 | Ty::U32 => self.broadcast_code(dst, src, false).into_iter().for_each(|i| self.emit(i)),
            Ty::F32 | Ty::F64 => {
                let d = to == Ty::F64;
                let low = self.general_to_float(from, d, src);
                self.vec(op::broadcast(d), whole, dst, None, low, None);
            }
            _ => return None,
        }
        Some(())
    }

    /// The same bits, from a general register to a vector.
    pub(super) fn bitcast_general(&mut self, v: Value, dst: Reg) -> Option<()> {
        let src = self.general(v)?;
        self.broadcast_code(dst, src, true).into_iter().for_each(|i| self.emit(i));
        Some(())
    }
}
