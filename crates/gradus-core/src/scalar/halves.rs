//! Half floats in the arithmetic of single numbers: they are stored as their 16 bits, become 32-bit floats where something is computed, and are rounded once
//! on their way back. Both ways are one operation each, and are made of basic ones here for code that has nothing better.

use super::{Form, Local, Op, Scalars, Ty};
use crate::types::{DType, bf16, f16};

/// Which half float 16 bits are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Half {
    /// Five bits of exponent, ten of fraction.
    F16,
    /// The upper half of an `f32`.
    BF16,
}

impl Half {
    /// Both.
    pub const ALL: [Half; 2] = [Half::F16, Half::BF16];

    /// The half float that a dtype is, if it is one.
    pub fn of(dtype: DType) -> Option<Half> {
        match dtype {
            DType::F16 => Some(Half::F16),
            DType::BF16 => Some(Half::BF16),
            _ => None,
        }
    }

    /// The name of its dtype.
    pub fn name(self) -> &'static str {
        match self {
            Half::F16 => "f16",
            Half::BF16 => "bf16",
        }
    }

    /// The bits of the number as an `f32`.
    pub(super) fn widened(self, bits: u16) -> u32 {
        match self {
            Half::F16 => f16::from_bits(bits).to_f32(),
            Half::BF16 => bf16::from_bits(bits).to_f32(),
        }
        .to_bits()
    }

    /// The bits of the nearest half float.
    pub(super) fn narrowed(self, bits: u32) -> u16 {
        let x = f32::from_bits(bits);
        match self {
            Half::F16 => f16::from_f32(x).to_bits(),
            Half::BF16 => bf16::from_f32(x).to_bits(),
        }
    }

    /// [`Op::Widen`] in basic operations.
    pub fn widening(self) -> Form {
        Form::made(&[Ty::U16], Ty::F32, |s| {
            let x = s.operand(0);
            let x = s.op(Op::Convert(Ty::I32), &[x]);
            let mut s = Ints(s);
            match self {
                Half::F16 => {
                    let size = s.and(x, 0x7fff);
                    let size = s.by(Op::Shl, size, 13);
                    // The exponent counts from another place; the product also makes whole numbers of those without a leading one.
                    let exact = s.0.op(Op::Bitcast(Ty::F32), &[size]);
                    let up = s.0.number(Ty::F32, 2f64.powi(112));
                    let exact = s.0.op(Op::Mul, &[exact, up]);
                    let exact = s.0.op(Op::Bitcast(Ty::I32), &[exact]);
                    // Infinity and what is no number; the latter becomes quiet, as the processor does it.
                    let infinity = s.int(0x7c00 << 13);
                    let is_nan = s.0.op(Op::Lt, &[infinity, size]);
                    let top = s.choose(is_nan, 0x7fc0_0000, 0x7f80_0000);
                    let top = s.0.op(Op::Or, &[size, top]);
                    let is_finite = s.0.op(Op::Lt, &[size, infinity]);
                    let size = s.0.op(Op::Select, &[is_finite, exact, top]);
                    let sign = s.and(x, 0x8000);
                    let sign = s.by(Op::Shl, sign, 16);
                    let bits = s.0.op(Op::Or, &[size, sign]);
                    s.0.op(Op::Bitcast(Ty::F32), &[bits])
                }
                Half::BF16 => {
                    let bits = s.by(Op::Shl, x, 16);
                    let number = s.0.op(Op::Bitcast(Ty::F32), &[bits]);
                    let bits = s.quiet_or(number, bits, bits);
                    s.0.op(Op::Bitcast(Ty::F32), &[bits])
                }
            }
        })
    }

    /// [`Op::Narrow`] in basic operations.
    pub fn narrowing(self) -> Form {
        Form::made(&[Ty::F32], Ty::U16, |s| {
            let number = s.operand(0);
            let x = s.op(Op::Bitcast(Ty::I32), &[number]);
            let mut s = Ints(s);
            let bits = match self {
                Half::F16 => {
                    let size = s.and(x, 0x7fff_ffff);
                    let infinity = s.int(0x7f80_0000);
                    let is_nan = s.0.op(Op::Lt, &[infinity, size]);
                    // To nearest: a carry goes into the exponent, which is right there. Ties go to even ones.
                    let last = s.by(Op::Shr, size, 13);
                    let is_odd = s.and(last, 1);
                    let rounded = s.plus(size, -(112 << 23) + 0xfff);
                    let rounded = s.0.op(Op::Add, &[rounded, is_odd]);
                    let rounded = s.by(Op::Shr, rounded, 13);
                    // Numbers without a leading one: a sum with 1/2 rounds at the place of their last bit.
                    let small = s.0.op(Op::Bitcast(Ty::F32), &[size]);
                    let half = s.0.number(Ty::F32, 0.5);
                    let small = s.0.op(Op::Add, &[small, half]);
                    let small = s.0.op(Op::Bitcast(Ty::I32), &[small]);
                    let small = s.plus(small, -0x3f00_0000);
                    let has_one = s.int(0x3880_0000 - 1);
                    let has_one = s.0.op(Op::Lt, &[has_one, size]);
                    let finite = s.0.op(Op::Select, &[has_one, rounded, small]);
                    let payload = s.and(last, 0x3ff);
                    let quiet = s.or(payload, 0x7e00);
                    let infinite = s.int(0x7c00);
                    let top = s.0.op(Op::Select, &[is_nan, quiet, infinite]);
                    let end = s.int(0x4780_0000);
                    let is_inside = s.0.op(Op::Lt, &[size, end]);
                    let size = s.0.op(Op::Select, &[is_inside, finite, top]);
                    let sign = s.by(Op::Shr, x, 16);
                    let sign = s.and(sign, 0x8000);
                    s.0.op(Op::Or, &[size, sign])
                }
                Half::BF16 => {
                    let rounded = s.rounded_above(number, x);
                    s.by(Op::Shr, rounded, 16)
                }
            };
            s.0.op(Op::Convert(Ty::U16), &[bits])
        })
    }

    /// What [`Op::Widen`] makes of what [`Op::Narrow`] makes, from 32 bits to 32 bits.
    pub fn rounding(self) -> Form {
        Form::made(&[Ty::F32], Ty::F32, |s| {
            let number = s.operand(0);
            let bits = match self {
                Half::F16 => {
                    // Beyond this all are infinite. No number stays what it is: it is the second.
                    let bound = s.number(Ty::F32, 131_072.0);
                    let size = s.op(Op::Abs, &[number]);
                    let size = s.op(Op::Lesser, &[bound, size]);
                    // A sum with a power of two rounds at the place of its last bit, ties to even: 13 places above the number's own, and not below that of the smallest
                    // half float. Of what is no number the power is negative.
                    let mut s = Ints(s);
                    let bits = s.0.op(Op::Bitcast(Ty::I32), &[size]);
                    let exponent = s.and(bits, 0x7f80_0000);
                    let power = s.plus(exponent, 13 << 23);
                    let power = s.0.op(Op::Bitcast(Ty::F32), &[power]);
                    let half = s.0.number(Ty::F32, 0.5);
                    let power = s.0.op(Op::Greater, &[power, half]);
                    let sum = s.0.op(Op::Add, &[size, power]);
                    let rounded = s.0.op(Op::Sub, &[sum, power]);
                    let most = s.0.number(Ty::F32, 65_504.0);
                    let is_beyond = s.0.op(Op::Lt, &[most, rounded]);
                    let infinity = s.0.number(Ty::F32, f64::INFINITY);
                    let size = s.0.op(Op::Select, &[is_beyond, infinity, rounded]);
                    let size = s.0.op(Op::Bitcast(Ty::I32), &[size]);
                    // A half float has so many places, also of what says why it is no number.
                    let size = s.and(size, !0x1fff);
                    let x = s.0.op(Op::Bitcast(Ty::I32), &[number]);
                    let sign = s.and(x, i32::MIN);
                    s.0.op(Op::Or, &[size, sign])
                }
                Half::BF16 => {
                    let x = s.op(Op::Bitcast(Ty::I32), &[number]);
                    let mut s = Ints(s);
                    let rounded = s.rounded_above(number, x);
                    s.and(rounded, !0xffff)
                }
            };
            s.op(Op::Bitcast(Ty::F32), &[bits])
        })
    }
}

/// Arithmetic of 32-bit integers with constants.
struct Ints<'a>(&'a mut Scalars);

impl Ints<'_> {
    fn int(&mut self, v: i32) -> Local {
        self.0.bits(Ty::I32, u64::from(v as u32))
    }

    fn by(&mut self, op: Op, x: Local, v: i32) -> Local {
        let v = self.int(v);
        self.0.op(op, &[x, v])
    }

    fn and(&mut self, x: Local, v: i32) -> Local {
        self.by(Op::And, x, v)
    }

    fn or(&mut self, x: Local, v: i32) -> Local {
        self.by(Op::Or, x, v)
    }

    fn plus(&mut self, x: Local, v: i32) -> Local {
        self.by(Op::Add, x, v)
    }

    /// `otherwise`, or, of what is no number, its bits with the one set that makes it quiet, as the processor does it.
    fn quiet_or(&mut self, number: Local, bits: Local, otherwise: Local) -> Local {
        let is_nan = self.0.op(Op::Ne, &[number, number]);
        let quiet = self.or(bits, 0x40_0000);
        self.0.op(Op::Select, &[is_nan, quiet, otherwise])
    }

    /// A number by its bits, of which the upper 16 are those of the nearest number with as many: a carry goes into the exponent, which is right there. Ties go to even ones.
    fn rounded_above(&mut self, number: Local, bits: Local) -> Local {
        let cut = self.by(Op::Shr, bits, 16);
        let is_odd = self.and(cut, 1);
        let rounded = self.plus(bits, 0x7fff);
        let rounded = self.0.op(Op::Add, &[rounded, is_odd]);
        self.quiet_or(number, bits, rounded)
    }

    fn choose(&mut self, when: Local, a: i32, b: i32) -> Local {
        let (a, b) = (self.int(a), self.int(b));
        self.0.op(Op::Select, &[when, a, b])
    }
}

impl Scalars {
    /// A number as 32 bits that round to a half float as the number itself does: what is lost leaves an odd last place, so that a tie is one only if the number
    /// is. Of numbers that 32 bits hold it is they.
    pub(crate) fn for_half(&mut self, x: Local) -> Local {
        let x = match self.ty(x) {
            Ty::I32 | Ty::U32 => self.op(Op::Convert(Ty::F64), &[x]),
            Ty::I64 | Ty::U64 => self.whole_for_half(x),
            Ty::F64 => x,
            _ => return self.convert(x, Ty::F32),
        };
        let near = self.op(Op::Convert(Ty::F32), &[x]);
        let back = self.op(Op::Convert(Ty::F64), &[near]);
        let (size, bits) = (self.op(Op::Abs, &[x]), self.op(Op::Bitcast(Ty::I32), &[near]));
        let beyond = self.op(Op::Abs, &[back]);
        let beyond = self.op(Op::Lt, &[size, beyond]);
        let beyond = self.op(Op::Convert(Ty::I32), &[beyond]);
        let one = self.bits(Ty::I32, 1);
        let odd = self.op(Op::Sub, &[bits, beyond]);
        let odd = self.op(Op::Or, &[odd, one]);
        let odd = self.op(Op::Bitcast(Ty::F32), &[odd]);
        // What is no number is unequal to itself, and stays.
        let (less, more) = (self.op(Op::Lt, &[back, x]), self.op(Op::Lt, &[x, back]));
        let lost = self.op(Op::Or, &[less, more]);
        self.op(Op::Select, &[lost, odd, near])
    }

    /// An integer of 64 bits as an `f64`, from 2^53 on with an odd last place where anything was lost.
    fn whole_for_half(&mut self, x: Local) -> Local {
        let ty = self.ty(x);
        let (low, last) = (self.bits(ty, 0x7ff), self.bits(ty, 0x800));
        let (zero, above) = (self.bits(ty, 0), self.bits(ty, !0x7ff));
        let (lost, kept) = (self.op(Op::And, &[x, low]), self.op(Op::And, &[x, above]));
        let odd = self.op(Op::Or, &[kept, last]);
        let lost = self.op(Op::Ne, &[lost, zero]);
        let odd = self.op(Op::Select, &[lost, odd, kept]);
        let top = self.bits(ty, 1 << 53);
        let mut large = self.op(Op::Le, &[top, x]);
        if ty.is_signed() {
            let bottom = self.bits(ty, (-(1i64 << 53)) as u64);
            let below = self.op(Op::Le, &[x, bottom]);
            large = self.op(Op::Or, &[large, below]);
        }
        let x = self.op(Op::Select, &[large, odd, x]);
        self.op(Op::Convert(Ty::F64), &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Element, Wide};

    #[test]
    fn every_half_float_becomes_wide() {
        for half in Half::ALL {
            let form = half.widening();
            for bits in 0..=u16::MAX {
                let (have, want) = (form.evaluate(&[bits.into()]), u64::from(half.widened(bits)));
                assert_eq!(have, want, "{half:?} {bits:#x}: {have:#x} is not {want:#x}");
            }
        }
    }

    /// Every half float, what lies halfway to the next, and the neighbours of both.
    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        for half in Half::ALL {
            let (form, rounding) = (half.narrowing(), half.rounding());
            let check = |bits: u32| {
                let (have, want) = (form.evaluate(&[bits.into()]), u64::from(half.narrowed(bits)));
                assert_eq!(have, want, "{half:?} of {bits:#x}: {have:#x} is not {want:#x}");
                let (have, want) = (rounding.evaluate(&[bits.into()]), u64::from(half.widened(want as u16)));
                assert_eq!(have, want, "{half:?} of {bits:#x}, wide again: {have:#x} is not {want:#x}");
            };
            let halfway = if half == Half::F16 { 0x1000 } else { 0x8000 };
            for bits in 0..=u16::MAX {
                let wide = half.widened(bits);
                [0, halfway - 1, halfway, halfway + 1].into_iter().for_each(|step| check(wide.wrapping_add(step)));
            }
            (0..1 << 16).for_each(|i: u32| check(i.wrapping_mul(0x9e37_79b9)));
        }
    }

    #[test]
    fn what_is_lost_on_the_way_does_not_decide() {
        let form = |ty, half: Half| {
            let form = Form::made(&[ty], Ty::U16, |s| {
                let x = s.for_half(s.operand(0));
                s.op(Op::Narrow(half), &[x])
            });
            move |bits: u64| form.evaluate(&[bits]) as u16
        };
        let mut numbers: Vec<i128> = (-70..70).chain([65_504, 65_519, 65_520, 65_521, 2049, 2051, 257, 259]).collect();
        for k in 7..64 {
            for around in [0, 1, -1, 3] {
                numbers.extend([1i128 << k, (1 << k) + (1 << (k - 4)), (1 << k) + (1 << (k - 7))].map(|n| n + around));
            }
        }
        numbers.extend(numbers.clone().iter().map(|n| -n));
        for half in Half::ALL {
            let want = |w: Wide| match half {
                Half::F16 => f16::from_wide(w).to_bits(),
                Half::BF16 => bf16::from_wide(w).to_bits(),
            };
            let of = [Ty::I64, Ty::U64, Ty::I32, Ty::U32, Ty::F64].map(|ty| form(ty, half));
            for &n in &numbers {
                if let Ok(v) = i64::try_from(n) {
                    assert_eq!(of[0](v as u64), want(Wide::Int(v)), "{half:?} of {v}: i64");
                }
                if let Ok(v) = u64::try_from(n) {
                    assert_eq!(of[1](v), want(Wide::UInt(v)), "{half:?} of {v}: u64");
                }
                if let Ok(v) = i32::try_from(n) {
                    assert_eq!(of[2](u64::from(v as u32)), want(Wide::Int(v.into())), "{half:?} of {v}: i32");
                }
                if let Ok(v) = u32::try_from(n) {
                    assert_eq!(of[3](v.into()), want(Wide::UInt(v.into())), "{half:?} of {v}: u32");
                }
            }
            // Halfway between half floats, and so near to that as 32 bits cannot tell.
            for bits in (0..=u16::MAX).step_by(3) {
                let [a, b] = [bits, bits.wrapping_add(1)].map(|b| f64::from(f32::from_bits(half.widened(b))));
                let middle = (a + b) / 2.0;
                for x in [a, middle, middle.next_up(), middle.next_down(), f64::MAX, -f64::MAX, 1e-320, f64::NAN] {
                    assert_eq!(of[4](x.to_bits()), want(Wide::Real(x)), "{half:?} of {x:?}");
                }
            }
        }
    }
}
