//! The meaning of the basic operations: one at a time, on numbers given by their bits.

use super::{Op, Ty};

/// One operation on numbers given by their bits. The operation [`accepts`](Op::accepts) operands of these types.
pub fn evaluate(op: Op, types: &[Ty], args: &[u64]) -> u64 {
    let ty = types[0];
    match op {
        Op::Select => return if args[0] != 0 { args[1] } else { args[2] },
        Op::Bitcast(to) => return low(to, args[0]),
        Op::Convert(to) => return convert(ty, to, args[0]),
        Op::Widen(half) => return half.widened(args[0] as u16).into(),
        Op::Narrow(half) => return half.narrowed(args[0] as u32).into(),
        Op::Special(s) => return s.of_bits(ty, args[0], args[1 % args.len()]),
        _ => {}
    }
    match ty {
        Ty::F32 => {
            let x: Vec<f32> = args.iter().map(|b| f32::from_bits(*b as u32)).collect();
            match op {
                Op::Math(m) => u64::from((m.of_f32)(&x).to_bits()),
                _ => float(op, &x, |v| u64::from(v.to_bits())),
            }
        }
        Ty::F64 => {
            let x: Vec<f64> = args.iter().map(|b| f64::from_bits(*b)).collect();
            match op {
                Op::Math(m) => (m.of_f64)(&x).to_bits(),
                _ => float(op, &x, f64::to_bits),
            }
        }
        _ => integer(op, ty, args),
    }
}

fn low(ty: Ty, bits: u64) -> u64 {
    match ty {
        Ty::Bool => u64::from(bits != 0),
        t => bits & (u64::MAX >> (64 - t.size() * 8)),
    }
}

/// An integer by its bits, with its sign where it has one.
fn wide(ty: Ty, bits: u64) -> i128 {
    let shift = 64 - ty.size() * 8;
    if ty.is_signed() { i128::from(((bits << shift) as i64) >> shift) } else { i128::from(low(ty, bits)) }
}

trait Float:
    Copy
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
{
    fn fma(self, b: Self, c: Self) -> Self;
    fn unary(self, op: Op) -> Self;
    fn nan(self) -> bool;
    fn negative(self) -> bool;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Float for $t {
            fn fma(self, b: Self, c: Self) -> Self { self.mul_add(b, c) }
            fn nan(self) -> bool { self.is_nan() }
            fn negative(self) -> bool { self.is_sign_negative() }
            fn unary(self, op: Op) -> Self {
                match op {
                    Op::Abs => self.abs(),
                    Op::Sqrt => self.sqrt(),
                    Op::Floor => self.floor(),
                    Op::Ceil => self.ceil(),
                    Op::Round => self.round_ties_even(),
                    Op::Trunc => self.trunc(),
                    _ => -self,
                }
            }
        }
    )*};
}
float!(f32, f64);

fn float<T: Float>(op: Op, x: &[T], bits: impl Fn(T) -> u64) -> u64 {
    let larger = |a: T, b: T| {
        if a.nan() {
            a
        } else if b.nan() {
            b
        } else if a > b || (a == b && !a.negative()) {
            a
        } else {
            b
        }
    };
    match op {
        Op::Add => bits(x[0] + x[1]),
        Op::Sub => bits(x[0] - x[1]),
        Op::Mul => bits(x[0] * x[1]),
        Op::Div => bits(x[0] / x[1]),
        Op::Fma => bits(x[0].fma(x[1], x[2])),
        Op::Lesser => bits(if x[0] < x[1] { x[0] } else { x[1] }),
        Op::Greater => bits(if x[0] > x[1] { x[0] } else { x[1] }),
        Op::Max => bits(larger(x[0], x[1])),
        Op::Min => bits(if x[0].nan() || x[1].nan() { larger(x[0], x[1]) } else { -larger(-x[0], -x[1]) }),
        Op::Eq => u64::from(x[0] == x[1]),
        Op::Ne => u64::from(x[0] != x[1]),
        Op::Lt => u64::from(x[0] < x[1]),
        Op::Le => u64::from(x[0] <= x[1]),
        op => bits(x[0].unary(op)),
    }
}

fn integer(op: Op, ty: Ty, args: &[u64]) -> u64 {
    let width = ty.size() as i128 * 8;
    let x: Vec<i128> = args.iter().map(|b| wide(ty, *b)).collect();
    let signed = |bits: u64| {
        let shift = 64 - ty.size() * 8;
        ((bits << shift) as i64) >> shift
    };
    let fits = |n: i128| (0..width).contains(&n);
    let v: i128 = match op {
        Op::Add => x[0] + x[1],
        Op::Sub => x[0] - x[1],
        Op::Mul => x[0].wrapping_mul(x[1]),
        Op::Div => x[0].checked_div(x[1]).unwrap_or(-1),
        Op::Rem => x[0].checked_rem(x[1]).unwrap_or(x[0]),
        Op::Neg => -x[0],
        Op::Abs => x[0].abs(),
        Op::Max => x[0].max(x[1]),
        Op::Min => x[0].min(x[1]),
        Op::And => x[0] & x[1],
        Op::Or => x[0] | x[1],
        Op::Xor => x[0] ^ x[1],
        Op::Not if ty == Ty::Bool => 1 - x[0],
        Op::Not => !x[0],
        Op::Shl => {
            if fits(x[1]) {
                i128::from(low(ty, args[0])) << x[1]
            } else {
                0
            }
        }
        Op::Shr => {
            if fits(x[1]) {
                i128::from(low(ty, args[0])) >> x[1]
            } else {
                0
            }
        }
        Op::Sar => i128::from(signed(args[0])) >> if fits(x[1]) { x[1] } else { width - 1 },
        Op::Rotl => {
            let (bits, by) = (i128::from(low(ty, args[0])), x[1].rem_euclid(width));
            bits << by | bits >> (width - by)
        }
        Op::Popcount => i128::from(low(ty, args[0]).count_ones()),
        Op::LeadingZeros => i128::from(low(ty, args[0]).leading_zeros()) - (64 - width),
        Op::Eq => i128::from(x[0] == x[1]),
        Op::Ne => i128::from(x[0] != x[1]),
        Op::Lt => i128::from(x[0] < x[1]),
        _ => i128::from(x[0] <= x[1]),
    };
    match op {
        Op::Eq | Op::Ne | Op::Lt | Op::Le => v as u64,
        _ => low(ty, v as u64),
    }
}

fn convert(from: Ty, to: Ty, bits: u64) -> u64 {
    macro_rules! saturate {
        ($v:expr) => {
            match to {
                Ty::I8 => $v as i8 as u64,
                Ty::I16 => $v as i16 as u64,
                Ty::I32 => $v as i32 as u64,
                Ty::I64 => $v as i64 as u64,
                Ty::U8 => $v as u8 as u64,
                Ty::U16 => $v as u16 as u64,
                Ty::U32 => $v as u32 as u64,
                Ty::U64 => $v as u64,
                Ty::Bool => u64::from($v != 0.0),
                Ty::F32 => u64::from(($v as f32).to_bits()),
                Ty::F64 => ($v as f64).to_bits(),
            }
        };
    }
    let v = match from {
        Ty::F32 => saturate!(f32::from_bits(bits as u32)),
        Ty::F64 => saturate!(f64::from_bits(bits)),
        _ => {
            let v = wide(from, bits);
            match to {
                Ty::F32 => u64::from((v as f32).to_bits()),
                Ty::F64 => (v as f64).to_bits(),
                Ty::Bool => u64::from(v != 0),
                _ => v as u64,
            }
        }
    };
    low(to, v)
}
