//! The bytes of instructions on general registers, jumps included.

use super::emit::{Emitter, RAX, RCX, RDI, RDX};
use super::encode::{Cond, Enc, Form, Operand, Scale};
use super::lir::{Alu, Inst, Mem, Reg, Ri, Shift, Size, Test, Unary};

/// Shifts of BMI2 and their like: three operands, of 64 bits.
const fn bmi(pp: u8, op: u8) -> Enc {
    Enc { map: 2, pp, w: true, vex_w: true, op, form: Form::Rvm, scale: Scale::Full, vex_only: true }
}

impl Emitter<'_> {
    pub(super) fn mov(&mut self, to: u8, from: Operand) {
        if from != Operand::Reg(to) {
            self.code.plain(true, None, &[0x8B], to, from, &[]);
        }
    }

    fn test(&mut self, t: &Test) {
        let a = self.general_in(t.a, RAX);
        match self.ri(t.b) {
            Ok(b) => self.code.plain(true, None, &[0x3B], a, b, &[]),
            Err(0) => self.code.plain(true, None, &[0x85], a, Operand::Reg(a), &[]),
            Err(imm) => self.immediate(7, a, imm),
        }
    }

    /// The arithmetic group with an immediate: 0 add, 1 or, 4 and, 5 sub, 6 xor, 7 cmp.
    fn immediate(&mut self, ext: u8, reg: u8, imm: i32) {
        match i8::try_from(imm) {
            Ok(imm) => self.code.plain(true, None, &[0x83], ext, Operand::Reg(reg), &[imm as u8]),
            Err(_) => self.code.plain(true, None, &[0x81], ext, Operand::Reg(reg), &imm.to_le_bytes()),
        }
    }

    fn alu(&mut self, op: Alu, dst: Reg, a: Reg, b: Ri) {
        let mut to = self.general_out(dst);
        let from = self.ri(b);
        let a = self.operand(a);
        // The result must not take the place of the second operand before that is read.
        if from == Ok(Operand::Reg(to)) && a != Operand::Reg(to) {
            to = RAX;
        }
        match (op, from) {
            (Alu::Mul, Err(imm)) => self.code.plain(true, None, &[0x69], to, a, &imm.to_le_bytes()),
            (op, from) => {
                self.mov(to, a);
                let (code, ext) = match op {
                    Alu::Add => (0x03, 0),
                    Alu::Or => (0x0B, 1),
                    Alu::And => (0x23, 4),
                    Alu::Sub => (0x2B, 5),
                    Alu::Xor => (0x33, 6),
                    Alu::Mul => (0xAF, 0),
                };
                match from {
                    Ok(b) if op == Alu::Mul => self.code.plain(true, None, &[0x0F, code], to, b, &[]),
                    Ok(b) => self.code.plain(true, None, &[code], to, b, &[]),
                    Err(imm) => self.immediate(ext, to, imm),
                }
            }
        }
        self.general_done(dst, to);
    }

    fn shift_any(&mut self, op: Shift, dst: Reg, a: Reg, by: Reg) {
        let by = self.general_in(by, RDX);
        let a = self.operand(a);
        if op == Shift::RightSigned {
            // By too much is by 63.
            self.code.constant(RCX, 63);
            self.immediate(7, by, 63);
            self.code.plain(true, None, &[0x0F, 0x40 | Cond::Be as u8], RCX, Operand::Reg(by), &[]);
            self.code.vex(bmi(2, 0xF7), false, RAX, Some(RCX), a, None);
        } else {
            let pp = if op == Shift::Left { 1 } else { 3 };
            self.code.vex(bmi(pp, 0xF7), false, RAX, Some(by), a, None);
            self.code.constant(RCX, 0);
            self.immediate(7, by, 63);
            self.code.plain(true, None, &[0x0F, 0x40 | Cond::A as u8], RAX, Operand::Reg(RCX), &[]);
        }
        self.general_done(dst, RAX);
    }

    fn divide(&mut self, dst: Reg, a: Reg, b: Reg, signed: bool, rest: bool) {
        let (a, b) = (self.operand(a), self.operand(b));
        self.mov(RAX, a);
        self.mov(RCX, b);
        let (zero, done) = (self.code.label(), self.code.label());
        self.code.plain(true, None, &[0x85], RCX, Operand::Reg(RCX), &[]);
        self.code.branch(Cond::E, zero);
        if signed {
            // The machine would trap at MIN / -1.
            let usual = self.code.label();
            self.immediate(7, RCX, -1);
            self.code.branch(Cond::Ne, usual);
            match rest {
                true => self.code.constant(RAX, 0),
                false => self.code.plain(true, None, &[0xF7], 3, Operand::Reg(RAX), &[]),
            }
            self.code.jump(done);
            self.code.place(usual);
            self.code.raw(&[0x48, 0x99]); // cqo
            self.code.plain(true, None, &[0xF7], 7, Operand::Reg(RCX), &[]);
        } else {
            self.code.constant(RDX, 0);
            self.code.plain(true, None, &[0xF7], 6, Operand::Reg(RCX), &[]);
        }
        if rest {
            self.mov(RAX, Operand::Reg(RDX));
        }
        self.code.jump(done);
        self.code.place(zero);
        if !rest {
            self.code.constant(RAX, -1);
        }
        self.code.place(done);
        self.general_done(dst, RAX);
    }

    /// The instruction for it wants the place in rdi, which another value may be in, the bits in rax and the count in rcx.
    fn fill(&mut self, double: bool, to: &Mem, bits: Reg, count: Reg) {
        let to = self.place(to);
        self.code.plain(true, None, &[0x8D], RAX, to, &[]);
        self.mov(RCX, self.operand(count));
        self.mov(RDX, Operand::Reg(RDI));
        self.mov(RDI, Operand::Reg(RAX));
        let bits = match self.operand(bits) {
            Operand::Reg(RDI) => Operand::Reg(RDX),
            bits => bits,
        };
        self.mov(RAX, bits);
        self.code.raw(if double { &[0xF3, 0x48, 0xAB] } else { &[0xF3, 0xAB] }); // rep stos
        self.mov(RDI, Operand::Reg(RDX));
    }

    /// An instruction that touches general registers alone.
    pub(super) fn general(&mut self, inst: &Inst) {
        match inst {
            Inst::Const { dst, value } => {
                let to = self.general_out(*dst);
                self.code.constant(to, *value);
                self.general_done(*dst, to);
            }
            Inst::Alu { op, dst, a, b } => self.alu(*op, *dst, *a, *b),
            Inst::ShiftBy { op, dst, a, by } => {
                let to = self.general_out(*dst);
                let a = self.operand(*a);
                self.mov(to, a);
                let ext = match op {
                    Shift::Left => 4,
                    Shift::Right => 5,
                    Shift::RightSigned => 7,
                };
                self.code.plain(true, None, &[0xC1], ext, Operand::Reg(to), &[*by]);
                self.general_done(*dst, to);
            }
            Inst::ShiftAny { op, dst, a, by } => self.shift_any(*op, *dst, *a, *by),
            Inst::Unary { op, dst, a } => {
                let to = self.general_out(*dst);
                let a = self.operand(*a);
                match op {
                    Unary::Neg | Unary::Not => {
                        self.mov(to, a);
                        let ext = if *op == Unary::Neg { 3 } else { 2 };
                        self.code.plain(true, None, &[0xF7], ext, Operand::Reg(to), &[]);
                    }
                    Unary::Signed32 => self.code.plain(true, None, &[0x63], to, a, &[]),
                    Unary::Unsigned32 => self.code.plain(false, None, &[0x8B], to, a, &[]),
                    Unary::Popcount => self.code.plain(true, Some(0xF3), &[0x0F, 0xB8], to, a, &[]),
                    Unary::LeadingZeros => self.code.plain(true, Some(0xF3), &[0x0F, 0xBD], to, a, &[]),
                }
                self.general_done(*dst, to);
            }
            Inst::Divide { dst, a, b, signed, rest } => self.divide(*dst, *a, *b, *signed, *rest),
            Inst::LowBits { dst, count } => {
                let count = self.general_in(*count, RDX);
                let to = self.general_out(*dst);
                self.code.constant(RCX, -1);
                self.code.vex(bmi(0, 0xF5), false, to, Some(count), Operand::Reg(RCX), None);
                self.general_done(*dst, to);
            }
            Inst::Lea { dst, from } => {
                let from = self.place(from);
                let to = self.general_out(*dst);
                self.code.plain(true, None, &[0x8D], to, from, &[]);
                self.general_done(*dst, to);
            }
            Inst::Load { size, dst, from } => {
                let from = self.place(from);
                let to = self.general_out(*dst);
                match size {
                    Size::Byte => self.code.plain(false, None, &[0x0F, 0xB6], to, from, &[]),
                    Size::Word => self.code.plain(false, None, &[0x0F, 0xB7], to, from, &[]),
                    Size::Double => self.code.plain(false, None, &[0x8B], to, from, &[]),
                    Size::Quad => self.code.plain(true, None, &[0x8B], to, from, &[]),
                }
                self.general_done(*dst, to);
            }
            Inst::Store { size, src, to } => {
                let src = self.general_in(*src, RAX);
                let to = self.place(to);
                match size {
                    Size::Byte => self.code.plain(false, None, &[0x88], src, to, &[]),
                    Size::Word => self.code.plain(false, Some(0x66), &[0x89], src, to, &[]),
                    Size::Double => self.code.plain(false, None, &[0x89], src, to, &[]),
                    Size::Quad => self.code.plain(true, None, &[0x89], src, to, &[]),
                }
            }
            Inst::Increment { size, to, by } => {
                let prefix = (*size == Size::Word).then_some(0x66);
                let (wide, byte) = (*size == Size::Quad, *size == Size::Byte);
                match *by {
                    Ri::Reg(by) => {
                        let by = self.general_in(by, RAX);
                        let to = self.place(to);
                        self.code.plain(wide, prefix, &[u8::from(!byte)], by, to, &[]);
                    }
                    Ri::Imm(by) => {
                        let to = self.place(to);
                        match i8::try_from(by) {
                            Ok(by) => {
                                self.code.plain(wide, prefix, &[if byte { 0x80 } else { 0x83 }], 0, to, &[by as u8])
                            }
                            Err(_) => self.code.plain(wide, prefix, &[0x81], 0, to, &by.to_le_bytes()),
                        }
                    }
                }
            }
            Inst::Announce { at } => {
                let at = self.place(at);
                // prefetchw; a processor that does not know it does nothing.
                self.code.plain(false, None, &[0x0F, 0x0D], 1, at, &[]);
            }
            Inst::Fill { double, to, bits, count } => self.fill(*double, to, *bits, *count),
            Inst::Set { dst, test } => {
                self.test(test);
                self.code.plain(false, None, &[0x0F, 0x90 | test.cond as u8], 0, Operand::Reg(RAX), &[]);
                self.code.plain(false, None, &[0x0F, 0xB6], RAX, Operand::Reg(RAX), &[]);
                self.code.plain(true, None, &[0xF7], 3, Operand::Reg(RAX), &[]);
                self.general_done(*dst, RAX);
            }
            Inst::Choose { dst, test, yes, no } => {
                self.test(test);
                let to = self.general_out(*dst);
                let (yes, no) = (self.operand(*yes), self.operand(*no));
                // What is there already stays: the other one is moved over it, or both if neither is.
                let (first, second, cond) = match yes == Operand::Reg(to) {
                    true => (yes, no, test.cond.not()),
                    false => (no, yes, test.cond),
                };
                self.mov(to, first);
                self.code.plain(true, None, &[0x0F, 0x40 | cond as u8], to, second, &[]);
                self.general_done(*dst, to);
            }
            Inst::Label(label) => self.code.place(*label),
            Inst::LoopStart(label) => {
                self.code.align(32);
                self.code.place(*label);
            }
            Inst::Branch(test, label) | Inst::LoopEnd(Some(test), label) => {
                self.test(test);
                self.code.branch(test.cond, *label);
            }
            Inst::Jump(label) | Inst::LoopEnd(None, label) => self.code.jump(*label),
            Inst::Run { callee, context, count, fails } => self.run(*callee, *context, *count, *fails),
            // invariant: the emitter passes on only what it has no code for itself, and those are all above
            _ => {}
        }
    }
}
