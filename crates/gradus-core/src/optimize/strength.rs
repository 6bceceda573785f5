//! Dear elementwise operations as cheap ones, and identities of comparison and choice. What changes a bit of any result is
//! in [`relaxed`] and runs only if a user asks for it.
//!
//! Not there, though they look right: `-(a - b) = b - a` is -0.0 on the left and 0.0 on the right where a = b; `0 - x = -x` likewise;
//! `pow x 0.5 = sqrt x` differs at -0.0 and -∞; `x - x = 0` and `0·x = 0` differ at NaN and infinities.

use super::Exactness;
use super::rewrite::{Piece, Rewrite, Rule, Site, Steps};
use super::simplify::with_rules;
use crate::error::Result;
use crate::primitives::Op;
use crate::primitives::elementwise::{
    Abs, Add, And, Ceil, Clamp, Compare, Direction, Div, Exp, Floor, IntegerPow, Log, Max, Min, Mul, Neg, Not, Or, Pow,
    Rem, Round, Rsqrt, Select, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Sqrt, Sub, Trunc, Xor,
};
use crate::program::{Atom, Program};
use crate::types::{DType, Scalar};

const RULES: &[Rule] = &[arithmetic, powers, choices, bits, relaxed];

/// Makes elementwise operations cheaper.
pub(super) fn reduce(p: &Program, exactness: Exactness) -> Result<Program> {
    with_rules(p, exactness, &[RULES])
}

fn fixed(op: &'static dyn crate::primitives::Primitive, operands: impl IntoIterator<Item = Atom>) -> Option<Rewrite> {
    Rewrite::apply(Op::fixed(op), operands)
}

/// The operand of the negation that defines operand `i`.
fn negated(s: &Site<'_>, i: usize) -> Option<Atom> {
    let (op, operands) = s.definition(i)?;
    if op.is::<Neg>() { operands.first().copied() } else { None }
}

fn arithmetic(s: &Site<'_>) -> Option<Rewrite> {
    let real = !s.dtype().is_complex();
    let (a, b) = (s.operands.first().copied()?, s.operands.get(1).copied());
    if s.op.is::<Add>() {
        // a + (-b) = a - b; (-a) + b = b - a.
        if let Some(b) = negated(s, 1) {
            return fixed(&Sub, [a, b]);
        }
        if let (Some(a), Some(b)) = (negated(s, 0), b) {
            return fixed(&Sub, [b, a]);
        }
    }
    if s.op.is::<Sub>() {
        // a - (-b) = a + b.
        if let Some(b) = negated(s, 1) {
            return fixed(&Add, [a, b]);
        }
        // -0.0 - x = -x; 0 - x = -x for whole numbers.
        if real && s.is(0, if s.dtype().is_int() { 0.0 } else { -0.0 }) {
            return fixed(&Neg, b);
        }
        // x - x = 0 for whole numbers.
        if s.dtype().is_int() && b == Some(a) {
            return Some(Rewrite::Splat(Scalar::zero(s.dtype())));
        }
    }
    if s.op.is::<Mul>() && real {
        for (i, other) in [(0, b), (1, Some(a))] {
            let other = other?;
            // 2·x = x + x: both are exact, or overflow alike.
            if s.is(i, 2.0) {
                return fixed(&Add, [other, other]);
            }
            // -1·x = -x.
            if !s.dtype().is_unsigned() && s.is(i, -1.0) {
                return fixed(&Neg, [other]);
            }
        }
        // (-a)·(-b) = a·b.
        if let (Some(a), Some(b)) = (negated(s, 0), negated(s, 1)) {
            return fixed(&Mul, [a, b]);
        }
    }
    if s.op.is::<Div>() && s.dtype().is_float() {
        // (-a)/(-b) = a/b.
        if let (Some(a), Some(b)) = (negated(s, 0), negated(s, 1)) {
            return fixed(&Div, [a, b]);
        }
        // x / -1 = -x.
        if s.is(1, -1.0) {
            return fixed(&Neg, [a]);
        }
        // x / c = x·(1/c) for a power of two, if 1/c is one too: both scale the exponent and round alike.
        if let Some(inverse) = s.splat(1).and_then(|c| inverse_power_of_two(c, s.dtype())) {
            return Rewrite::one(Op::fixed(&Mul), vec![a.into(), Piece::Splat(s.ty(1)?.clone(), inverse)]);
        }
    }
    if s.op.is::<Neg>() && s.dtype().is_int() {
        // -(a - b) = b - a for whole numbers.
        let (inner, operands) = s.definition(0)?;
        if inner.is::<Sub>() {
            return fixed(&Sub, operands.iter().rev().copied());
        }
    }
    if s.op.is::<Abs>() && real {
        // |x| = x for what has no sign.
        if s.dtype().is_unsigned() {
            return s.alias(0);
        }
        // |-x| = |x|; ||x|| = |x|.
        if let Some(x) = negated(s, 0) {
            return fixed(&Abs, [x]);
        }
        if s.definition(0).is_some_and(|(inner, _)| inner.is::<Abs>()) {
            return s.alias(0);
        }
    }
    // Rounding what is rounded.
    if s.op.is::<Floor>() || s.op.is::<Ceil>() || s.op.is::<Round>() || s.op.is::<Trunc>() {
        let (inner, _) = s.definition(0)?;
        if inner.is::<Floor>() || inner.is::<Ceil>() || inner.is::<Round>() || inner.is::<Trunc>() {
            return s.alias(0);
        }
    }
    None
}

/// 1/c, if c is a power of two whose inverse has the same precision: neither is subnormal.
fn inverse_power_of_two(c: Scalar, dtype: DType) -> Option<Scalar> {
    let v = c.to_f64();
    let smallest = match dtype {
        DType::F16 => 2f64.powi(-14),
        DType::BF16 | DType::F32 => f32::MIN_POSITIVE as f64,
        DType::F64 => f64::MIN_POSITIVE,
        _ => return None,
    };
    let power = v.is_normal() && v.to_bits() << 12 == 0;
    let fits = v.abs() >= smallest && v.abs() <= 1.0 / smallest;
    (power && fits).then(|| Scalar::F64(1.0 / v).cast(dtype))
}

/// Powers of at most this size are written as products; they are computed by repeated squaring in any case.
const LARGEST_POWER: u64 = 16;

fn powers(s: &Site<'_>) -> Option<Rewrite> {
    let x = s.operands.first().copied()?;
    if let Some(IntegerPow { exponent }) = s.op.downcast() {
        let n = exponent.unsigned_abs();
        // Half floats multiply in f32 and round once: one operation is the same, two are not.
        let half = s.dtype().is_float() && s.dtype().size() == 2;
        // A negative power of a complex number goes another way where the positive one overflows.
        let scaled = s.dtype().is_complex() && *exponent < 0;
        if n == 0 || n > LARGEST_POWER || scaled || (half && !matches!(exponent, 2 | -1)) {
            return None;
        }
        // x^n by repeated squaring, in the order of the operation itself; x^-n = 1/x^n.
        let mut steps = Steps::default();
        let (mut base, mut left, mut power) = (Piece::Atom(x), n, None::<Piece>);
        while left > 0 {
            if left & 1 == 1 {
                power = Some(match power {
                    Some(p) => steps.push(Op::fixed(&Mul), vec![p, base.clone()]),
                    None => base.clone(),
                });
            }
            left >>= 1;
            if left > 0 {
                base = steps.push(Op::fixed(&Mul), vec![base.clone(), base]);
            }
        }
        if *exponent < 0 {
            let one = Piece::Splat(s.result.clone(), Scalar::one(s.dtype()));
            steps.push(Op::fixed(&Div), vec![one, power?]);
        }
        return steps.finish();
    }
    if s.op.is::<Pow>() && !s.dtype().is_complex() {
        let exponent = s.splat(1)?;
        // x^1 = x; x^0 = 1, for NaN too. The power function promises both.
        if exponent == Scalar::one(s.dtype()) {
            return s.alias(0);
        }
        if exponent.to_f64() == 0.0 {
            return Some(Rewrite::Splat(Scalar::one(s.dtype())));
        }
        // Whole powers of whole numbers are products, which wrap alike in any order.
        if s.dtype().is_int() {
            let exponent = exponent.to_i64().filter(|n| *n > 0)?;
            return Rewrite::apply(Op::new(IntegerPow { exponent }), [x]);
        }
    }
    None
}

fn choices(s: &Site<'_>) -> Option<Rewrite> {
    let (a, b) = (s.operands.first().copied()?, s.operands.get(1).copied());
    if let Some(Compare { direction }) = s.op.downcast()
        && b == Some(a)
    {
        let whole = !s.ty(0)?.dtype().is_inexact();
        // x < x is false, for NaN too; x = x is true of what has no NaN.
        match direction {
            Direction::Lt | Direction::Gt => return Some(Rewrite::Splat(Scalar::Bool(false))),
            Direction::Eq | Direction::Le | Direction::Ge if whole => return Some(Rewrite::Splat(Scalar::Bool(true))),
            Direction::Ne if whole => return Some(Rewrite::Splat(Scalar::Bool(false))),
            _ => {}
        }
    }
    if s.op.is::<Select>() {
        // select (not p) a b = select p b a.
        if let Some((inner, operands)) = s.definition(0)
            && inner.is::<Not>()
        {
            return fixed(&Select, [operands[0], *s.operands.get(2)?, b?]);
        }
        // select p true false = p; select p false true = not p.
        match (s.splat(1).and_then(Scalar::to_bool), s.splat(2).and_then(Scalar::to_bool)) {
            (Some(true), Some(false)) if s.dtype() == DType::Bool => return s.alias(0),
            (Some(false), Some(true)) if s.dtype() == DType::Bool => return fixed(&Not, [a]),
            _ => {}
        }
        // select p (select p a b) c = select p a c; select p a (select p b c) = select p a c.
        for (i, inner_place) in [(1, 1), (2, 2)] {
            if let Some((inner, operands)) = s.definition(i)
                && inner.is::<Select>()
                && operands[0] == a
            {
                let mut atoms = s.operands.to_vec();
                atoms[i] = operands[inner_place];
                return fixed(&Select, atoms);
            }
        }
    }
    let lowest = |i: usize| s.splat(i).is_some_and(|v| v == Scalar::lowest(v.dtype()));
    let highest = |i: usize| s.splat(i).is_some_and(|v| v == Scalar::highest(v.dtype()));
    // max x x = x; max x lowest = x; and the same of min.
    if s.op.is::<Max>() || s.op.is::<Min>() {
        let neutral = |i: usize| if s.op.is::<Max>() { lowest(i) } else { highest(i) };
        if b == Some(a) || neutral(1) {
            return s.alias(0);
        }
        if neutral(0) {
            return s.alias(1);
        }
    }
    if s.op.is::<Clamp>() {
        // clamp lo x hi = min (max x lo) hi, and a bound that holds nothing back is dropped.
        let [lo, x, hi] = s.operands.try_into().ok()?;
        match (lowest(0), highest(2)) {
            (true, true) => return s.alias(1),
            (true, false) => return fixed(&Min, [x, hi]),
            (false, true) => return fixed(&Max, [x, lo]),
            (false, false) => {}
        }
    }
    None
}

fn bits(s: &Site<'_>) -> Option<Rewrite> {
    let (a, b) = (s.operands.first().copied()?, s.operands.get(1).copied());
    let dtype = s.dtype();
    if !dtype.is_int() && dtype != DType::Bool {
        return None;
    }
    if s.op.is::<Not>() {
        let (inner, operands) = s.definition(0)?;
        // not (not x) = x.
        if inner.is::<Not>() {
            return Some(Rewrite::Alias(operands[0]));
        }
        // not (a < b) = a >= b where there is no NaN; not (a = b) = a ≠ b always.
        let Compare { direction } = inner.downcast()?;
        let whole = !s.builder.ty(operands[0]).dtype().is_inexact();
        let direction = match direction {
            Direction::Eq => Direction::Ne,
            Direction::Ne => Direction::Eq,
            Direction::Lt if whole => Direction::Ge,
            Direction::Ge if whole => Direction::Lt,
            Direction::Gt if whole => Direction::Le,
            Direction::Le if whole => Direction::Gt,
            _ => return None,
        };
        return Rewrite::apply(Op::new(Compare { direction }), operands.iter().copied());
    }
    let none = Scalar::zero(dtype);
    let all = if dtype.is_signed_int() { Scalar::I64(-1).cast(dtype) } else { Scalar::highest(dtype) };
    let is = |i: usize, v: Scalar| s.splat(i) == Some(v);
    let (and, or, xor) = (s.op.is::<And>(), s.op.is::<Or>(), s.op.is::<Xor>());
    // x and x = x = x or x; x xor x = 0.
    if (and || or) && b == Some(a) {
        return s.alias(0);
    }
    if xor && b == Some(a) {
        return Some(Rewrite::Splat(none));
    }
    for (i, other) in [(0, 1), (1, 0)] {
        // x and all = x = x or none = x xor none; x and none = none; x or all = all.
        if (and && is(i, all)) || ((or || xor) && is(i, none)) {
            return s.alias(other);
        }
        if (and && is(i, none)) || (or && is(i, all)) {
            return s.alias(i);
        }
    }
    let shifts = s.op.is::<ShiftLeft>() || s.op.is::<ShiftRightLogical>() || s.op.is::<ShiftRightArithmetic>();
    // A shift by nothing.
    if shifts && is(1, none) {
        return s.alias(0);
    }
    if dtype.is_unsigned() && (s.op.is::<Div>() || s.op.is::<Rem>()) {
        let c = s.splat(1)?.to_i64().filter(|c| *c > 0 && c.count_ones() == 1)?;
        let number = |v: i64| Some(Piece::Splat(s.ty(1)?.clone(), Scalar::I64(v).cast(dtype)));
        // x / 2^k = x >> k; x mod 2^k = x and (2^k - 1), for what has no sign.
        return match s.op.is::<Div>() {
            true => Rewrite::one(Op::fixed(&ShiftRightLogical), vec![a.into(), number(c.trailing_zeros().into())?]),
            false => Rewrite::one(Op::fixed(&And), vec![a.into(), number(c - 1)?]),
        };
    }
    None
}

/// Right for finite numbers but for the last bits, and maybe wrong at NaN, infinities and zeros.
fn relaxed(s: &Site<'_>) -> Option<Rewrite> {
    if !s.relaxed() || !s.dtype().is_float() {
        return None;
    }
    let x = s.operands.first().copied()?;
    if s.op.is::<Pow>() {
        // x^2 = x·x, x^3 = x·x·x, x^½ = √x, x^-½ = 1/√x, x^-1 = 1/x: the power function rounds otherwise.
        let exponent = s.splat(1)?.to_f64();
        return match exponent {
            0.5 => fixed(&Sqrt, [x]),
            -0.5 => fixed(&Rsqrt, [x]),
            n if n.fract() == 0.0 && n.abs() <= 4.0 => Rewrite::apply(Op::new(IntegerPow { exponent: n as i64 }), [x]),
            _ => None,
        };
    }
    let (inner, operands) = s.definition(0)?;
    // exp (log x) = x, also for x < 0; log (exp x) = x, also where exp x overflows.
    if (s.op.is::<Exp>() && inner.is::<Log>()) || (s.op.is::<Log>() && inner.is::<Exp>()) {
        return Some(Rewrite::Alias(operands[0]));
    }
    // -(a - b) = b - a, also for a = b.
    if s.op.is::<Neg>() && inner.is::<Sub>() {
        return fixed(&Sub, operands.iter().rev().copied());
    }
    // √x·√x = x, also for x < 0.
    if s.op.is::<Mul>() && inner.is::<Sqrt>() && s.operands.get(1) == Some(&x) {
        return Some(Rewrite::Alias(operands[0]));
    }
    None
}
