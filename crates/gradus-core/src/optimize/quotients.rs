//! Division of whole numbers by what vectors can do: processors divide one whole number at a time.
//!
//! A quotient is rounded to zero, by zero it is -1, and what is left by zero is the dividend. A double has more than twice the digits of a number of 32 bits: the quotient of two such, as doubles,
//! is no nearer to the next whole number than 2^-32 of it, and rounding moves it by 2^-53.

use super::rewrite::{Named, Piece, Rewrite, Rule, Site, Steps, by};
use crate::primitives::Op;
use crate::primitives::convert::Convert;
use crate::primitives::elementwise::{
    Add, Compare, Direction, Div, Mul, Rem, Select, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Sub,
};
use crate::types::{DType, Scalar, Type};

pub(super) const RULES: &[Rule] = &[by_power_of_two, by_known, long_by_known, by_unknown];

/// The bits of a type of whole numbers.
fn width(dtype: DType) -> i64 {
    8 * dtype.size() as i64
}

fn divides(s: &Site<'_>) -> bool {
    s.dtype().is_int() && (s.op.is::<Div>() || s.op.is::<Rem>())
}

/// The double beyond the reciprocal of a number: a product with it is not below the quotient.
fn beyond_reciprocal(c: i64) -> f64 {
    let reciprocal = 1.0 / c as f64;
    if c > 0 { reciprocal.next_up() } else { reciprocal.next_down() }
}

/// The steps of one of these rules: those of a quotient, and what is left where that is asked for. `times` makes the divisor's multiple.
fn made(s: &Site<'_>, mut steps: Steps, quotient: Piece, times: (Op, Piece)) -> Option<Rewrite> {
    if s.op.is::<Rem>() {
        let whole = steps.push(times.0, vec![quotient, times.1]);
        steps.push(Op::fixed(&Sub), vec![s.operands[0].into(), whole]);
    }
    steps.finish()
}

/// Numbers with a sign by 2^k: a shift rounds down, so what is negative gets 2^k - 1 before.
fn by_power_of_two(s: &Site<'_>) -> Option<Named> {
    let dtype = s.dtype();
    let k = s.splat(1).filter(|_| divides(s) && !dtype.is_unsigned())?.to_i64();
    let k = k.filter(|c| *c > 1 && c.count_ones() == 1)?.trailing_zeros();
    let ty = s.ty(0)?;
    let number = |v: i64| Piece::Splat(ty.clone(), Scalar::I64(v).cast(dtype));
    let mut steps = Steps::default();
    let sign = steps.push(Op::fixed(&ShiftRightArithmetic), vec![s.operands[0].into(), number(width(dtype) - 1)]);
    let less = steps.push(Op::fixed(&ShiftRightLogical), vec![sign, number(width(dtype) - i64::from(k))]);
    let sum = steps.push(Op::fixed(&Add), vec![s.operands[0].into(), less]);
    let quotient = steps.push(Op::fixed(&ShiftRightArithmetic), vec![sum, number(k.into())]);
    let times = (Op::fixed(&ShiftLeft), number(k.into()));
    by("x/2^k = (x + (2^k - 1 where x < 0)) >> k", made(s, steps, quotient, times))
}

/// By a known number: times the double above its reciprocal. That a product is a bit too large does not bring it to the next whole number.
fn by_known(s: &Site<'_>) -> Option<Named> {
    let dtype = s.dtype();
    let c = s.splat(1).filter(|_| divides(s) && width(dtype) <= 32)?.to_i64()?;
    // Of the smallest number by -1 there is no quotient, and 2^k is a shift.
    if c.unsigned_abs() < 2 || (c > 0 && c.count_ones() == 1) {
        return None;
    }
    let double = Type::new(DType::F64, s.ty(0)?.shape().clone());
    let mut steps = Steps::default();
    let x = steps.push(Op::new(Convert { dtype: DType::F64 }), vec![s.operands[0].into()]);
    let product = steps.push(Op::fixed(&Mul), vec![x, Piece::Splat(double, Scalar::F64(beyond_reciprocal(c)))]);
    let quotient = steps.push(Op::new(Convert { dtype }), vec![product]);
    let times = (Op::fixed(&Mul), s.operands[1].into());
    by("x/c = x·(1/c) as a double", made(s, steps, quotient, times))
}

/// A double before the reciprocal of a number, by 3 to 7 parts in 2^53 of it: the product with a double of a number of 64 bits, which are rounded by up to one part each, is not beyond the quotient, and
/// not before it by more than 9 parts.
fn before_reciprocal(c: i64) -> f64 {
    let reciprocal = 1.0 / c as f64;
    reciprocal - 5.0 * 2f64.powi(-53) * reciprocal
}

/// Numbers of 64 bits by a known one: a quotient of doubles is near and not beyond, so that what is left has the dividend's sign and is less than the divisor c and 9 parts in 2^53 of the dividend, which are
/// less than 2^15. A double holds that exactly if c is below 2^48. The quotient of it is right: it is no nearer to the next whole number than 1/c, and the product with the double beyond the reciprocal
/// (`by_known`) is too large by at most 4 parts in 2^53 of 1 + 2^15/c, which is less.
fn long_by_known(s: &Site<'_>) -> Option<Named> {
    let dtype = s.dtype();
    let c = s.splat(1).filter(|_| divides(s) && width(dtype) == 64)?.to_i64()?;
    let size = c.unsigned_abs();
    // By 2^k it is a shift.
    if !(3..1 << 48).contains(&size) || (c > 0 && c.count_ones() == 1) {
        return None;
    }
    let ty = s.ty(0)?;
    let wide = |v: f64| Piece::Splat(Type::new(DType::F64, ty.shape().clone()), Scalar::F64(v));
    let number = Piece::Splat(ty.clone(), Scalar::I64(c).cast(dtype));
    let mut steps = Steps::default();
    // How often the divisor is in a number: less than 2^63 times, also where there are 64 bits without a sign.
    let times = |steps: &mut Steps, x: &Piece, by: f64| {
        let double = steps.push(Op::new(Convert { dtype: DType::F64 }), vec![x.clone()]);
        let ratio = steps.push(Op::fixed(&Mul), vec![double, wide(by)]);
        let times = steps.push(Op::new(Convert { dtype: DType::I64 }), vec![ratio]);
        if dtype == DType::I64 { times } else { steps.push(Op::new(Convert { dtype }), vec![times]) }
    };
    let without = |steps: &mut Steps, x: &Piece, times: &Piece| {
        let taken = steps.push(Op::fixed(&Mul), vec![times.clone(), number.clone()]);
        steps.push(Op::fixed(&Sub), vec![x.clone(), taken])
    };
    let x = Piece::Atom(s.operands[0]);
    let many = times(&mut steps, &x, before_reciprocal(c));
    let left = without(&mut steps, &x, &many);
    let few = times(&mut steps, &left, beyond_reciprocal(c));
    if s.op.is::<Rem>() {
        without(&mut steps, &left, &few);
    } else {
        steps.push(Op::fixed(&Add), vec![many, few]);
    }
    by("x/c = two quotients of doubles for 64 bits", steps.finish())
}

/// By any number: a quotient of doubles. That of the smallest number by -1 goes through 64 bits, where there is room for it.
fn by_unknown(s: &Site<'_>) -> Option<Named> {
    let dtype = s.dtype();
    if !divides(s) || width(dtype) > 32 || s.splat(1).is_some() {
        return None;
    }
    let ty = s.ty(0)?;
    let number = |v: i64| Piece::Splat(ty.clone(), Scalar::I64(v).cast(dtype));
    let mut steps = Steps::default();
    let [x, y] = [0, 1].map(|i| steps.push(Op::new(Convert { dtype: DType::F64 }), vec![s.operands[i].into()]));
    let ratio = steps.push(Op::fixed(&Div), vec![x, y]);
    let long = steps.push(Op::new(Convert { dtype: DType::I64 }), vec![ratio]);
    let there = steps.push(Op::new(Convert { dtype }), vec![long]);
    let zero = steps.push(Op::new(Compare { direction: Direction::Eq }), vec![s.operands[1].into(), number(0)]);
    // All bits: -1, or the largest number where there is no sign.
    let quotient = steps.push(Op::fixed(&Select), vec![zero, number(-1), there]);
    let times = (Op::fixed(&Mul), s.operands[1].into());
    by("x/y = the quotient of doubles", made(s, steps, quotient, times))
}
