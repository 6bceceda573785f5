//! Operations on vectors and masks.

use super::Isa;
use super::encode::{Enc, Len};
use super::lir::{Inst, Reg, Rm, Role};
use super::opcodes as op;
use super::select::Select;
use super::small::{is_small, lane_type};
use crate::ir::{Op, Special, Ty, Value};
use crate::runtime::special;

/// Conditions of comparisons of floats.
const EQ: u8 = 0;
const UNORDERED: u8 = 3;
const NE: u8 = 4;
const ORDERED: u8 = 7;
const LT: u8 = 0x11;
const LE: u8 = 0x12;
/// What turns the condition of a comparison, of numbers of any kind, to where it does not hold.
const OTHERWISE: u8 = 4;
const GE: u8 = 0x1D;

fn sign_bit(size: usize) -> u64 {
    1 << (size * 8 - 1)
}

impl Select<'_> {
    /// One operation for the k-th vector, its result in `dst`, which may be the register of an operand.
    pub(super) fn vector_op(&mut self, op: Op, v: Value, args: &[Value], k: usize, dst: Reg) -> Option<()> {
        let ty = self.code.ty(args[0]);
        let to = self.code.ty(v);
        let plain = matches!(op, Op::Select | Op::Eq | Op::Ne | Op::Lt | Op::Le);
        if !plain && (is_small(ty) || is_small(to)) {
            return self.small_op(op, ty, to, args, k, dst);
        }
        let (ty, to) = (lane_type(ty), lane_type(to));
        match op {
            Op::Select => {
                let mask = match self.now {
                    None => self.mask_of_scalar(args[0], to.size())?,
                    Some(_) => self.mask(args[0], k)?,
                };
                if to == Ty::Bool {
                    let (yes, no) = (self.mask(args[1], k)?, self.mask(args[2], k)?);
                    return self.select_masks(dst, mask, yes, no);
                }
                let (yes, no) = (self.vector(args[1], k)?, self.vector(args[2], k)?);
                let len = self.len(to.size());
                let mask = self.mask_as(mask, to.size() as u8);
                self.emit(Inst::Blend { wide: to.size() == 8, len, dst, mask, yes, no });
            }
            Op::Convert(_) if self.now.is_none() && matches!(ty, Ty::I64 | Ty::U64) => {
                self.convert_general(ty, to, args[0], dst)?;
            }
            Op::Bitcast(_) if self.now.is_none() && matches!(ty, Ty::I64 | Ty::U64) => {
                self.bitcast_general(args[0], dst)?
            }
            Op::Convert(_) => self.convert(ty, to, args[0], k, dst)?,
            Op::Bitcast(_) if ty == Ty::Bool => {
                let src = self.mask(args[0], k)?;
                self.settle(dst, src);
            }
            Op::Bitcast(_) => {
                let src = self.vector(args[0], k)?;
                self.emit(Inst::Copy { dst, src });
            }
            Op::Special(s) => self.special(s, ty, args, k, dst)?,
            Op::Eq | Op::Ne | Op::Lt | Op::Le if ty != Ty::Bool => {
                let (a, b) = (self.vector(args[0], k)?, self.vector(args[1], k)?);
                let len = self.len(ty.size());
                self.compare(op, ty, len, dst, a, b);
            }
            _ if ty == Ty::Bool => {
                let a = self.mask(args[0], k)?;
                let b = match args.get(1) {
                    Some(b) => Some(self.mask(*b, k)?),
                    None => None,
                };
                if !self.narrowed(op, dst, args, [a, b.unwrap_or(a)]) {
                    self.mask_op(op, dst, a, b)?;
                }
            }
            _ => {
                let by = match op {
                    Op::Shl | Op::Shr | Op::Sar | Op::Rotl => args.get(1).and_then(|b| self.const_of(*b)),
                    _ => None,
                };
                let mut regs = [Reg(0); 3];
                // A known count of a shift is part of the instruction.
                let n = if by.is_some() && !self.shift_needs_vector(op, ty) { 1 } else { args.len() };
                for (r, a) in regs.iter_mut().zip(&args[..n]) {
                    *r = self.vector(*a, k)?;
                }
                let len = self.len(ty.size());
                match op {
                    Op::Div | Op::Rem | Op::Popcount | Op::LeadingZeros if !ty.is_float() => {
                        self.lanewise(op, ty, to, &regs[..n], dst)?;
                    }
                    _ => self.arithmetic(op, ty, len, dst, &regs[..n], by)?,
                }
            }
        }
        Some(())
    }

    /// AVX2 shifts signed 64-bit integers in a way of its own.
    fn shift_needs_vector(&self, op: Op, ty: Ty) -> bool {
        op == Op::Sar && ty.size() == 8 && self.isa == Isa::Avx2
    }

    /// An operation on numbers of one type that gives one of that type. `by`: the second operand, if it is known.
    pub(super) fn arithmetic(&mut self, op: Op, ty: Ty, len: Len, dst: Reg, x: &[Reg], by: Option<u64>) -> Option<()> {
        match ty.is_float() {
            true => self.float(op, ty == Ty::F64, len, dst, x),
            false => self.integer(op, ty, len, dst, x, by),
        }
    }

    fn float(&mut self, op: Op, d: bool, len: Len, dst: Reg, x: &[Reg]) -> Option<()> {
        let size = if d { 8 } else { 4 };
        let (a, b) = (x[0], *x.get(1).unwrap_or(&x[0]));
        let two = |s: &mut Self, enc: Enc| s.vec(enc, len, dst, Some(a), b, None);
        match op {
            Op::Add => two(self, op::add(d)),
            Op::Sub => two(self, op::sub(d)),
            Op::Mul => two(self, op::mul(d)),
            Op::Div | Op::Sqrt if self.now.is_none() && len.0 > 16 => {
                // Short vectors divide faster, and all lanes are the same.
                let short = match op {
                    Op::Div => self.made(op::div(d), Len(16), Some(a), b, None),
                    _ => self.made(op::sqrt(d), Len(16), None, a, None),
                };
                self.vec(op::broadcast(d), len, dst, None, short, None);
            }
            Op::Div => two(self, op::div(d)),
            Op::Lesser => two(self, op::min(d)),
            Op::Greater => two(self, op::max(d)),
            Op::Fma => self.emit(Inst::Fma { double: d, len, dst, a, b, c: x[2] }),
            Op::Sqrt => self.vec(op::sqrt(d), len, dst, None, a, None),
            Op::Round => self.vec(op::round(d), len, dst, None, a, Some(8)),
            Op::Floor => self.vec(op::round(d), len, dst, None, a, Some(9)),
            Op::Ceil => self.vec(op::round(d), len, dst, None, a, Some(10)),
            Op::Trunc => self.vec(op::round(d), len, dst, None, a, Some(11)),
            Op::Neg => {
                let sign = self.splat(sign_bit(size), size);
                self.vec(op::xor(d), len, dst, Some(a), sign, None);
            }
            Op::Abs => {
                let rest = self.splat(sign_bit(size) - 1, size);
                self.vec(op::and(d), len, dst, Some(a), rest, None);
            }
            Op::Max | Op::Min => self.extreme(op == Op::Max, d, len, dst, a, b),
            _ => return None,
        }
        Some(())
    }

    /// The larger or smaller, where a NaN wins and zeros have an order, which the machine's instructions do not know.
    fn extreme(&mut self, larger: bool, d: bool, len: Len, dst: Reg, a: Reg, b: Reg) {
        match self.isa {
            Isa::Avx512 => {
                // This one knows the order of zeros, but prefers numbers to NaNs.
                let unordered = self.mask_reg(0);
                self.vec(op::compare(d), len, unordered, Some(a), b, Some(UNORDERED));
                self.vec(op::range(d), len, dst, Some(a), b, Some(if larger { 5 } else { 4 }));
                let nan =
                    self.splat(if d { f64::NAN.to_bits() } else { f32::NAN.to_bits().into() }, if d { 8 } else { 4 });
                let mask = Some((unordered, false));
                self.emit(Inst::Vec { enc: op::load(d), len, dst, a: None, b: nan.into(), imm: None, mask });
            }
            Isa::Avx2 => {
                // Of equal operands both orders give the second: zeros of two signs meet, and their bits decide.
                let enc = if larger { op::max(d) } else { op::min(d) };
                let x = self.made(enc, len, Some(a), b, None);
                let y = self.made(enc, len, Some(b), a, None);
                let unordered = self.made(op::compare(d), len, Some(a), b, Some(UNORDERED));
                let meet = self.made(if larger { op::and(d) } else { op::or(d) }, len, Some(x), y, None);
                // All bits set are a NaN.
                self.vec(op::or(d), len, dst, Some(meet), unordered, None);
            }
        }
    }

    fn integer(&mut self, op: Op, ty: Ty, len: Len, dst: Reg, x: &[Reg], by: Option<u64>) -> Option<()> {
        let q = ty.size() == 8;
        let size = ty.size();
        let old = self.isa == Isa::Avx2;
        let (a, b) = (x[0], *x.get(1).unwrap_or(&x[0]));
        let two = |s: &mut Self, enc: Enc| s.vec(enc, len, dst, Some(a), b, None);
        // By too much shifts all bits out, and the machine's counts are unsigned, too; an immediate has only 8 bits.
        // Bits go around: the count is one modulo the width. Shifted by so many or more there is nothing left.
        let turn = by.map(|n| (n % (ty.size() as u64 * 8)) as u8);
        let by = by.map(|n| u8::try_from(n).unwrap_or(255));
        match op {
            Op::Add => two(self, op::int_add(q)),
            Op::Sub => two(self, op::int_sub(q)),
            Op::Mul if q && old => self.multiply_halves(len, dst, a, b),
            Op::Mul => two(self, op::int_mul(q)),
            Op::And => two(self, op::int_and(q)),
            Op::Or => two(self, op::int_or(q)),
            Op::Xor => two(self, op::int_xor(q)),
            Op::Not => {
                let ones = self.splat(u64::MAX, 8);
                self.vec(op::int_xor(q), len, dst, Some(a), ones, None);
            }
            Op::Neg => {
                let zero = self.splat(0, 8);
                self.vec(op::int_sub(q), len, dst, Some(zero), a, None);
            }
            Op::Abs if !ty.is_signed() => self.emit(Inst::Copy { dst, src: a }),
            Op::Abs if q && old => {
                let zero = self.splat(0, 8);
                let sign = self.made(op::int_greater(true), len, Some(zero), a, None);
                let turned = self.made(op::int_xor(true), len, Some(a), sign, None);
                self.vec(op::int_sub(true), len, dst, Some(turned), sign, None);
            }
            Op::Abs => self.vec(op::int_abs(q), len, dst, None, a, None),
            Op::Max | Op::Min if q && old => {
                let above = self.mask_reg(8);
                self.compare(Op::Lt, ty, len, above, a, b);
                let (yes, no) = if op == Op::Max { (b, a) } else { (a, b) };
                self.emit(Inst::Blend { wide: true, len, dst, mask: above, yes, no });
            }
            Op::Max if ty.is_signed() => two(self, op::int_max(q)),
            Op::Max => two(self, op::int_max_unsigned(q)),
            Op::Min if ty.is_signed() => two(self, op::int_min(q)),
            Op::Min => two(self, op::int_min_unsigned(q)),
            Op::Shl => match by {
                Some(n) => self.vec(op::shl_imm(q), len, dst, None, a, Some(n)),
                None => two(self, op::shl(q)),
            },
            Op::Shr => match by {
                Some(n) => self.vec(op::shr_imm(q), len, dst, None, a, Some(n)),
                None => two(self, op::shr(q)),
            },
            Op::Rotl if !old => self.vec(op::rotl_imm(q), len, dst, None, a, Some(turn?)),
            Op::Sar if q && old => {
                // Below zero, what comes in must be ones: the complement is shifted.
                let zero = self.splat(0, 8);
                let sign = self.made(op::int_greater(true), len, Some(zero), a, None);
                let turned = self.made(op::int_xor(true), len, Some(a), sign, None);
                let shifted = self.made(op::shr(true), len, Some(turned), b, None);
                self.vec(op::int_xor(true), len, dst, Some(shifted), sign, None);
            }
            Op::Sar => match by {
                Some(n) => self.vec(op::sar_imm(q), len, dst, None, a, Some(n.min((size * 8 - 1) as u8))),
                None => two(self, op::sar(q)),
            },
            _ => return None,
        }
        Some(())
    }

    /// Products of 64-bit lanes from products of 32-bit halves.
    fn multiply_halves(&mut self, len: Len, dst: Reg, a: Reg, b: Reg) {
        let a_high = self.made(op::shr_imm(true), len, None, a, Some(32));
        let b_high = self.made(op::shr_imm(true), len, None, b, Some(32));
        let x = self.made(op::MUL_HALVES, len, Some(a_high), b, None);
        let y = self.made(op::MUL_HALVES, len, Some(a), b_high, None);
        let low = self.made(op::MUL_HALVES, len, Some(a), b, None);
        let sum = self.made(op::int_add(true), len, Some(x), y, None);
        let high = self.made(op::shl_imm(true), len, None, sum, Some(32));
        self.vec(op::int_add(true), len, dst, Some(low), high, None);
    }

    /// A comparison of numbers; gives a mask.
    pub(super) fn compare(&mut self, op: Op, ty: Ty, len: Len, dst: Reg, a: Reg, b: Reg) {
        let wide = ty.size() == 8;
        if self.isa == Isa::Avx2 && !ty.is_float() {
            return self.compare_ints(op, ty, len, dst, a, b);
        }
        let result = match self.isa {
            Isa::Avx512 => dst,
            Isa::Avx2 => self.mask_reg(ty.size() as u8),
        };
        if ty.is_float() {
            let cond = match op {
                Op::Eq => EQ,
                Op::Ne => NE,
                Op::Lt => LT,
                _ => LE,
            };
            self.vec(op::compare(wide), len, result, Some(a), b, Some(cond));
        } else {
            let cond = match op {
                Op::Eq => 0,
                Op::Ne => 4,
                Op::Lt => 1,
                _ => 2,
            };
            let enc = if ty.is_signed() { op::int_compare(wide) } else { op::int_compare_unsigned(wide) };
            self.vec(enc, len, result, Some(a), b, Some(cond));
        }
        self.settle(dst, result);
    }

    /// AVX2 has only equal and greater, of signed integers.
    fn compare_ints(&mut self, op: Op, ty: Ty, len: Len, dst: Reg, mut a: Reg, mut b: Reg) {
        let q = ty.size() == 8;
        if !ty.is_signed() && matches!(op, Op::Lt | Op::Le) {
            let sign = self.splat(sign_bit(ty.size()), ty.size());
            a = self.made(op::int_xor(q), len, Some(a), sign, None);
            b = self.made(op::int_xor(q), len, Some(b), sign, None);
        }
        let mut result = self.mask_reg(ty.size() as u8);
        match op {
            Op::Eq | Op::Ne => self.vec(op::int_equal(q), len, result, Some(a), b, None),
            Op::Lt => self.vec(op::int_greater(q), len, result, Some(b), a, None),
            _ => self.vec(op::int_greater(q), len, result, Some(a), b, None),
        }
        if matches!(op, Op::Ne | Op::Le) {
            let ones = self.splat(u64::MAX, 8);
            let not = self.mask_reg(ty.size() as u8);
            self.vec(op::int_xor(q), len, not, Some(result), ones, None);
            result = not;
        }
        self.settle(dst, result);
    }

    /// Puts a mask where it belongs, with the lanes that are wanted there.
    fn settle(&mut self, dst: Reg, mask: Reg) {
        if dst != mask {
            let lane = self.lane_of(dst);
            let src = self.mask_as(mask, lane);
            self.emit(Inst::Copy { dst, src });
        }
    }

    /// A mask with lanes of so many bytes (only masks in vectors have any).
    pub(super) fn mask_as(&mut self, mask: Reg, lane: u8) -> Reg {
        match (self.lane_of(mask), lane) {
            (4, 8) => {
                let dst = self.mask_reg(8);
                self.vec(op::EXTEND_SIGNED, Len(32), dst, None, mask, None);
                dst
            }
            (8, 4) => {
                let upper = self.made(op::EXTRACT_128, Len(32), None, mask, Some(1));
                let dst = self.mask_reg(4);
                self.vec(op::SHUFFLE_TWO, Len(16), dst, Some(mask), upper, Some(0x88));
                dst
            }
            _ => mask,
        }
    }

    /// A comparison that only this takes, and that must hold, or must not, where a mask is set: AVX-512 compares under the mask. False if it is nothing like that.
    fn narrowed(&mut self, op: Op, dst: Reg, args: &[Value], [a, b]: [Reg; 2]) -> bool {
        let ways: &[_] = match (self.isa, op) {
            (Isa::Avx512, Op::And) => &[(0, a, b, 0), (1, b, a, 0)],
            (Isa::Avx512, Op::Lt) => &[(0, a, b, OTHERWISE)],
            _ => return false,
        };
        let top = self.level();
        for (arg, compared, mask, turn) in ways {
            let body = &self.scopes[top].body;
            let made = |i: &Inst| matches!(i, Inst::Vec { dst, imm: Some(_), mask: None, b: Rm::Reg(_), .. } if dst == compared);
            let Some(at) = body.iter().rposition(made).filter(|_| self.used[args[*arg].index()] == 1) else { continue };
            let Inst::Vec { enc, len, a: Some(x), b: Rm::Reg(y), imm: Some(cond), .. } = body[at] else { continue };
            // It is made later than it was: what it compares must still be there.
            let mut lasts = true;
            for i in &body[at + 1..] {
                lasts &= !matches!(i, Inst::Label(_) | Inst::Branch(..) | Inst::Jump(_));
                i.visit(&mut |r, role| lasts &= role == Role::Use || (r != x && r != y));
            }
            if lasts {
                self.scopes[top].body.remove(at);
                let (imm, mask) = (Some(cond ^ turn), Some((*mask, true)));
                self.emit(Inst::Vec { enc, len, dst, a: Some(x), b: Rm::Reg(y), imm, mask });
                return true;
            }
        }
        false
    }

    fn mask_op(&mut self, op: Op, dst: Reg, a: Reg, b: Option<Reg>) -> Option<()> {
        let b = b.unwrap_or(a);
        if self.isa == Isa::Avx512 {
            let (enc, a, b) = match op {
                Op::And => (op::MASK_AND, a, Some(b)),
                Op::Or => (op::MASK_OR, a, Some(b)),
                Op::Xor | Op::Ne => (op::MASK_XOR, a, Some(b)),
                Op::Eq => (op::MASK_EQUAL, a, Some(b)),
                Op::Lt => (op::MASK_AND_NOT, a, Some(b)),
                Op::Not => (op::MASK_NOT, a, None),
                Op::Le => {
                    let not = self.mask_reg(0);
                    self.emit(Inst::Mask { enc: op::MASK_NOT, dst: not, a, b: None });
                    (op::MASK_OR, not, Some(b))
                }
                _ => return None,
            };
            self.emit(Inst::Mask { enc, dst, a, b });
            return Some(());
        }
        let lane = self.lane_of(dst);
        let (a, b) = (self.mask_as(a, lane), self.mask_as(b, lane));
        let len = self.whole();
        let two = |s: &mut Self, enc: Enc, a: Reg, b: Reg| s.vec(enc, len, dst, Some(a), b, None);
        match op {
            Op::And => two(self, op::int_and(false), a, b),
            Op::Or => two(self, op::int_or(false), a, b),
            Op::Xor | Op::Ne => two(self, op::int_xor(false), a, b),
            Op::Lt => two(self, op::int_and_not(false), a, b),
            Op::Not => {
                let ones = self.splat(u64::MAX, 8);
                two(self, op::int_xor(false), a, ones);
            }
            Op::Eq | Op::Le => {
                let ones = self.splat(u64::MAX, 8);
                let not = self.made(op::int_xor(false), len, Some(a), ones, None);
                two(self, if op == Op::Eq { op::int_xor(false) } else { op::int_or(false) }, not, b);
            }
            _ => return None,
        }
        Some(())
    }

    fn select_masks(&mut self, dst: Reg, mask: Reg, yes: Reg, no: Reg) -> Option<()> {
        let lane = self.lane_of(dst);
        let (a, b) = (self.mask_reg(lane), self.mask_reg(lane));
        self.mask_op(Op::And, a, mask, Some(yes))?;
        self.mask_op(Op::Lt, b, mask, Some(no))?;
        self.mask_op(Op::Or, dst, a, Some(b))
    }

    fn special(&mut self, s: Special, ty: Ty, args: &[Value], k: usize, dst: Reg) -> Option<()> {
        let a = self.vector(args[0], k)?;
        let (mut b, mut guard) = (a, None);
        if let Some(second) = args.get(1) {
            b = self.vector(*second, k)?;
        }
        if let Some(third) = args.get(2) {
            guard = Some(self.mask(*third, k)?);
        }
        let (field, parameter) = special::entry(s, ty);
        let (len, count) = match self.now {
            Some(shape) => (self.len(ty.size()), shape.width() as u8),
            None => (Len(16), 1),
        };
        self.emit(Inst::Call { field, parameter, double: ty == Ty::F64, len, count, dst, a, b, guard });
        Some(())
    }

    /// A conversion that gives a vector or a mask.
    pub(super) fn convert(&mut self, from: Ty, to: Ty, v: Value, k: usize, dst: Reg) -> Option<()> {
        let size = to.size();
        if from == Ty::Bool && to == Ty::Bool {
            let src = self.mask(v, k)?;
            self.settle(dst, src);
            return Some(());
        }
        if from == Ty::Bool {
            let mask = self.mask(v, k)?;
            let one = self.splat(crate::ir::one(to), size);
            let len = self.len(size);
            match self.isa {
                Isa::Avx512 => {
                    let mask = Some((mask, true));
                    let enc = op::load(size == 8);
                    self.emit(Inst::Vec { enc, len, dst, a: None, b: one.into(), imm: None, mask });
                }
                Isa::Avx2 => {
                    let mask = self.mask_as(mask, size as u8);
                    self.vec(op::int_and(false), len, dst, Some(mask), one, None);
                }
            }
            return Some(());
        }
        let x = self.vector(v, k)?;
        if to == Ty::Bool {
            let zero = self.splat(0, 8);
            let len = self.len(from.size());
            self.compare(Op::Ne, from, len, dst, x, zero);
            return Some(());
        }
        // An instruction works on the longer of both.
        let len = self.len(from.size()).max(self.len(size));
        // All lanes of a uniform value are the same, and a shorter type fills only half of them.
        let shorter = self.now.is_none() && size < from.size();
        let r = if shorter { self.vector_reg() } else { dst };
        match (from, to, self.isa) {
            (Ty::F64, Ty::I32, _) if self.bounded.is_below(v, 31) => {
                self.vec(op::float_to_i32(true), len, r, None, x, None)
            }
            (Ty::F64, Ty::I64, Isa::Avx512) if self.bounded.is_below(v, 63) => {
                self.vec(op::float_to_i64(true), len, r, None, x, None);
            }
            _ => self.convert_vector(from, to, len, r, x)?,
        }
        if shorter {
            let len = self.whole();
            self.vec(op::broadcast(size == 8), len, dst, None, r, None);
        }
        Some(())
    }

    fn convert_vector(&mut self, from: Ty, to: Ty, len: Len, dst: Reg, x: Reg) -> Option<()> {
        let new = self.isa == Isa::Avx512;
        let one = |s: &mut Self, enc: Enc| s.vec(enc, len, dst, None, x, None);
        let d = to == Ty::F64;
        match (from, to) {
            (Ty::F32, Ty::F64) => one(self, op::TO_DOUBLE),
            (Ty::F64, Ty::F32) => one(self, op::TO_SINGLE),
            (Ty::I32, Ty::F32 | Ty::F64) => one(self, op::i32_to_float(d)),
            (Ty::U32, Ty::F32 | Ty::F64) if new => one(self, op::u32_to_float(d)),
            (Ty::I64 | Ty::U64, Ty::F64) if !new => self.wide_to_double(from == Ty::I64, len, dst, x),
            (Ty::I64, Ty::F32 | Ty::F64) if new => one(self, op::i64_to_float(d)),
            (Ty::U64, Ty::F32 | Ty::F64) if new => one(self, op::u64_to_float(d)),
            (Ty::F64, Ty::I32) => {
                // The largest integer is a double; what is too low becomes the lowest one by itself.
                let ordered = self.ordered(true, len, x);
                let most = self.splat(f64::from(i32::MAX).to_bits(), 8);
                let x = self.made(op::min(true), len, Some(ordered), most, None);
                self.vec(op::float_to_i32(true), len, dst, None, x, None);
            }
            (Ty::F32, Ty::I32) => self.saturate(false, op::float_to_i32(false), false, len, dst, x),
            (Ty::F32 | Ty::F64, Ty::I64) if new => {
                let double = from == Ty::F64;
                self.saturate(double, op::float_to_i64(double), true, len, dst, x);
            }
            (Ty::F32 | Ty::F64, Ty::U32 | Ty::U64) if new => {
                // Above all integers and NaN the machine gives the largest; NaN and below zero become zero first.
                let double = from == Ty::F64;
                let zero = self.splat(0, 8);
                let short = self.len(from.size());
                let x = self.made(op::max(double), short, Some(x), zero, None);
                let enc = if to == Ty::U32 { op::float_to_u32(double) } else { op::float_to_u64(double) };
                self.vec(enc, len, dst, None, x, None);
            }
            (Ty::I32, Ty::I64 | Ty::U64) => one(self, op::EXTEND_SIGNED),
            (Ty::U32, Ty::I64 | Ty::U64) => one(self, op::EXTEND_ZERO),
            (Ty::I64 | Ty::U64, Ty::I32 | Ty::U32) if new => one(self, op::NARROW),
            (Ty::I64 | Ty::U64, Ty::I32 | Ty::U32) => {
                let upper = self.made(op::EXTRACT_128, Len(32), None, x, Some(1));
                self.vec(op::SHUFFLE_TWO, Len(16), dst, Some(x), upper, Some(0x88));
            }
            (a, b) if a.size() == b.size() && a.is_float() == b.is_float() => {
                self.emit(Inst::Copy { dst, src: x });
            }
            (from, to) => return self.lanewise(Op::Convert(to), from, to, &[x], dst),
        }
        Some(())
    }

    /// 64-bit integers to doubles without an instruction for it: each half becomes the low bits of a double that is a power of
    /// two too large, and only the last addition rounds.
    fn wide_to_double(&mut self, signed: bool, len: Len, dst: Reg, x: Reg) {
        let (p52, p84, p63) = (2f64.powi(52), 2f64.powi(84), 2f64.powi(63));
        let high = self.made(op::shr_imm(true), len, None, x, Some(32));
        // The sign bit of a signed one counts 2^63 less; turned, it counts 2^63 too much.
        let flip = self.splat(p84.to_bits() ^ if signed { 1 << 31 } else { 0 }, 8);
        let high = self.made(op::int_xor(true), len, Some(high), flip, None);
        let less = self.splat((p84 + p52 + if signed { p63 } else { 0.0 }).to_bits(), 8);
        let high = self.made(op::sub(true), len, Some(high), less, None);
        let mask = self.splat(u64::from(u32::MAX), 8);
        let low = self.made(op::int_and(true), len, Some(x), mask, None);
        let power = self.splat(p52.to_bits(), 8);
        let low = self.made(op::int_or(true), len, Some(low), power, None);
        self.vec(op::add(true), len, dst, Some(high), low, None);
    }

    /// x, and zero where it is NaN.
    fn ordered(&mut self, d: bool, len: Len, x: Reg) -> Reg {
        match self.isa {
            Isa::Avx512 => {
                let (mask, dst) = (self.mask_reg(0), self.vector_reg());
                self.vec(op::compare(d), len, mask, Some(x), x, Some(ORDERED));
                let mask = Some((mask, true));
                self.emit(Inst::Vec { enc: op::load(d), len, dst, a: None, b: x.into(), imm: None, mask });
                dst
            }
            Isa::Avx2 => {
                let mask = self.made(op::compare(d), len, Some(x), x, Some(ORDERED));
                self.made(op::and(d), len, Some(mask), x, None)
            }
        }
    }

    /// A conversion to signed integers that gives the lowest one for everything out of range, made to saturate.
    fn saturate(&mut self, d: bool, enc: Enc, q: bool, len: Len, dst: Reg, x: Reg) {
        let short = self.len(if d { 8 } else { 4 });
        let x = self.ordered(d, short, x);
        let limit = if q { 2f64.powi(63) } else { 2f64.powi(31) };
        let bits = if d { limit.to_bits() } else { u64::from((limit as f32).to_bits()) };
        let limit = self.splat(bits, if d { 8 } else { 4 });
        match self.isa {
            Isa::Avx512 => {
                let above = self.mask_reg(0);
                self.vec(op::compare(d), short, above, Some(x), limit, Some(GE));
                self.vec(enc, len, dst, None, x, None);
                let most = self.splat(if q { i64::MAX as u64 } else { i32::MAX as u64 }, if q { 8 } else { 4 });
                let mask = Some((above, false));
                self.emit(Inst::Vec { enc: op::load(q), len, dst, a: None, b: most.into(), imm: None, mask });
            }
            Isa::Avx2 => {
                // Only for lanes of one size: the complement of the lowest is the highest.
                let above = self.made(op::compare(d), short, Some(x), limit, Some(GE));
                let low = self.made(enc, len, None, x, None);
                self.vec(op::int_xor(false), len, dst, Some(low), above, None);
            }
        }
    }
}
