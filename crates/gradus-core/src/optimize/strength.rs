//! Dear elementwise operations as cheap ones, identities of comparison and choice, and products whose sums are so short that they are elementwise operations. What changes a bit of any result is
//! in [`relaxed`] and runs only if a user asks for it.
//!
//! Not there, though they look right: `-(a - b) = b - a` is -0.0 on the left and 0.0 on the right where a = b; `0 - x = -x` likewise;
//! `pow x 0.5 = sqrt x` differs at -0.0 and -∞; `x - x = 0` and `0·x = 0` differ at NaN and infinities.

use super::rewrite::{Named, Piece, Rewrite, Rule, Site, Steps, by};
use super::simplify::with_rules;
use super::{Exactness, dots, quotients, scatters, sums};
use crate::error::Result;
use crate::primitives::Op;
use crate::primitives::elementwise::{
    Abs, Add, And, Ceil, Clamp, Compare, Direction, Div, Exp, Floor, IntegerPow, Log, Max, Min, Mul, Neg, Not, Or, Pow,
    Rem, Round, Rsqrt, Select, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Sqrt, Sub, Trunc, Xor,
};
use crate::program::{Atom, Program};
use crate::types::{DType, Scalar};

const RULES: &[Rule] = &[arithmetic, powers, choices, bits, relaxed];

/// Makes operations cheaper.
pub(super) fn reduce(p: &Program, exactness: Exactness) -> Result<Program> {
    with_rules(p, exactness, &[RULES, quotients::RULES, dots::OF_FEW, sums::RULES, scatters::PLACES])
}

fn fixed(op: &'static dyn crate::primitives::Primitive, operands: impl IntoIterator<Item = Atom>) -> Option<Rewrite> {
    Rewrite::apply(Op::fixed(op), operands)
}

/// The operand of the negation that defines operand `i`.
fn negated(s: &Site<'_>, i: usize) -> Option<Atom> {
    let (op, operands) = s.definition(i)?;
    if op.is::<Neg>() { operands.first().copied() } else { None }
}

fn arithmetic(s: &Site<'_>) -> Option<Named> {
    let real = !s.dtype().is_complex();
    let (a, b) = (s.operands.first().copied()?, s.operands.get(1).copied());
    if s.op.is::<Add>() {
        if let Some(b) = negated(s, 1) {
            return by("a + (-b) = a - b", fixed(&Sub, [a, b]));
        }
        if let (Some(a), Some(b)) = (negated(s, 0), b) {
            return by("(-a) + b = b - a", fixed(&Sub, [b, a]));
        }
    }
    if s.op.is::<Sub>() {
        if let Some(b) = negated(s, 1) {
            return by("a - (-b) = a + b", fixed(&Add, [a, b]));
        }
        // For integers 0 - x.
        if real && s.is(0, if s.dtype().is_int() { 0.0 } else { -0.0 }) {
            return by("-0.0 - x = -x", fixed(&Neg, b));
        }
        if s.dtype().is_int() && b == Some(a) {
            return by("x - x = 0 for integers", Some(Rewrite::Splat(Scalar::zero(s.dtype()))));
        }
    }
    if s.op.is::<Mul>() && real {
        for (i, other) in [(0, b), (1, Some(a))] {
            let other = other?;
            // Both are exact, or overflow alike.
            if s.is(i, 2.0) {
                return by("2·x = x + x", fixed(&Add, [other, other]));
            }
            if !s.dtype().is_unsigned() && s.is(i, -1.0) {
                return by("-1·x = -x", fixed(&Neg, [other]));
            }
        }
        if let (Some(a), Some(b)) = (negated(s, 0), negated(s, 1)) {
            return by("(-a)·(-b) = a·b", fixed(&Mul, [a, b]));
        }
    }
    if s.op.is::<Div>() && s.dtype().is_float() {
        if let (Some(a), Some(b)) = (negated(s, 0), negated(s, 1)) {
            return by("(-a)/(-b) = a/b", fixed(&Div, [a, b]));
        }
        if s.is(1, -1.0) {
            return by("x/-1 = -x", fixed(&Neg, [a]));
        }
        // If 1/c is a power of two as well: both scale the exponent and round alike.
        if let Some(inverse) = s.splat(1).and_then(|c| inverse_power_of_two(c, s.dtype())) {
            let made = Rewrite::one(Op::fixed(&Mul), vec![a.into(), Piece::Splat(s.ty(1)?.clone(), inverse)]);
            return by("x/c = x·(1/c) for a power of two", made);
        }
    }
    if s.op.is::<Neg>() && s.dtype().is_int() {
        let (inner, operands) = s.definition(0)?;
        if inner.is::<Sub>() {
            return by("-(a - b) = b - a for integers", fixed(&Sub, operands.iter().rev().copied()));
        }
    }
    if s.op.is::<Abs>() && real {
        if s.dtype().is_unsigned() {
            return by("|x| = x for what has no sign", s.alias(0));
        }
        if let Some(x) = negated(s, 0) {
            return by("|-x| = |x|", fixed(&Abs, [x]));
        }
        if s.definition(0).is_some_and(|(inner, _)| inner.is::<Abs>()) {
            return by("||x|| = |x|", s.alias(0));
        }
    }
    if s.op.is::<Floor>() || s.op.is::<Ceil>() || s.op.is::<Round>() || s.op.is::<Trunc>() {
        let (inner, _) = s.definition(0)?;
        if inner.is::<Floor>() || inner.is::<Ceil>() || inner.is::<Round>() || inner.is::<Trunc>() {
            return by("what is rounded stays when it is rounded", s.alias(0));
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

fn powers(s: &Site<'_>) -> Option<Named> {
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
        // In the order of the operation itself; x^-n = 1/x^n.
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
        return by("integer_pow x n by repeated squaring", steps.finish());
    }
    if s.op.is::<Pow>() && !s.dtype().is_complex() {
        let exponent = s.splat(1)?;
        // For NaN too. The power function is within two places of x; in half precision that is x.
        let narrow = s.dtype().is_int() || s.dtype().size() == 2;
        if exponent == Scalar::one(s.dtype()) && (narrow || s.relaxed()) {
            return by("pow x 1 = x", s.alias(0));
        }
        if exponent.to_f64() == 0.0 {
            return by("pow x 0 = 1", Some(Rewrite::Splat(Scalar::one(s.dtype()))));
        }
        // Products, which wrap alike in any order.
        if s.dtype().is_int() {
            let exponent = exponent.to_i64().filter(|n| *n > 0)?;
            let made = Rewrite::apply(Op::new(IntegerPow { exponent }), [x]);
            return by("pow x n = integer_pow x n for integers", made);
        }
    }
    None
}

fn choices(s: &Site<'_>) -> Option<Named> {
    let (a, b) = (s.operands.first().copied()?, s.operands.get(1).copied());
    if let Some(Compare { direction }) = s.op.downcast()
        && b == Some(a)
    {
        let whole = !s.ty(0)?.dtype().is_inexact();
        let always = |value: bool| Some(Rewrite::Splat(Scalar::Bool(value)));
        match direction {
            // For NaN too.
            Direction::Lt | Direction::Gt => return by("x < x is false", always(false)),
            Direction::Eq | Direction::Le | Direction::Ge if whole => {
                return by("x = x is true of what has no NaN", always(true));
            }
            Direction::Ne if whole => return by("x ≠ x is false of what has no NaN", always(false)),
            _ => {}
        }
    }
    if s.op.is::<Select>() {
        if let Some((inner, operands)) = s.definition(0)
            && inner.is::<Not>()
        {
            let made = fixed(&Select, [operands[0], *s.operands.get(2)?, b?]);
            return by("select (not p) a b = select p b a", made);
        }
        match (s.splat(1).and_then(Scalar::to_bool), s.splat(2).and_then(Scalar::to_bool)) {
            (Some(true), Some(false)) if s.dtype() == DType::Bool => {
                return by("select p true false = p", s.alias(0));
            }
            (Some(false), Some(true)) if s.dtype() == DType::Bool => {
                return by("select p false true = not p", fixed(&Not, [a]));
            }
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
                return by("a choice inside the same choice is made already", fixed(&Select, atoms));
            }
        }
    }
    let lowest = |i: usize| s.splat(i).is_some_and(|v| v == Scalar::lowest(v.dtype()));
    let highest = |i: usize| s.splat(i).is_some_and(|v| v == Scalar::highest(v.dtype()));
    if s.op.is::<Max>() || s.op.is::<Min>() {
        let neutral = |i: usize| if s.op.is::<Max>() { lowest(i) } else { highest(i) };
        if b == Some(a) {
            return by("max x x = x = min x x", s.alias(0));
        }
        if neutral(1) {
            return by("max x lowest = x = min x highest", s.alias(0));
        }
        if neutral(0) {
            return by("max lowest x = x = min highest x", s.alias(1));
        }
    }
    if s.op.is::<Clamp>() {
        // It is min (max x lo) hi, and a bound that holds nothing back is dropped.
        let [lo, x, hi] = s.operands.try_into().ok()?;
        match (lowest(0), highest(2)) {
            (true, true) => return by("clamp lowest x highest = x", s.alias(1)),
            (true, false) => return by("clamp lowest x hi = min x hi", fixed(&Min, [x, hi])),
            (false, true) => return by("clamp lo x highest = max x lo", fixed(&Max, [x, lo])),
            (false, false) => {}
        }
    }
    None
}

fn bits(s: &Site<'_>) -> Option<Named> {
    let (a, b) = (s.operands.first().copied()?, s.operands.get(1).copied());
    let dtype = s.dtype();
    if !dtype.is_int() && dtype != DType::Bool {
        return None;
    }
    if s.op.is::<Not>() {
        let (inner, operands) = s.definition(0)?;
        if inner.is::<Not>() {
            return by("not (not x) = x", Some(Rewrite::Alias(operands[0])));
        }
        // Of an order only where there is no NaN.
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
        let made = Rewrite::apply(Op::new(Compare { direction }), operands.iter().copied());
        return by("not (a < b) = a >= b, not (a = b) = a ≠ b", made);
    }
    let none = Scalar::zero(dtype);
    let all = if dtype.is_signed_int() { Scalar::I64(-1).cast(dtype) } else { Scalar::highest(dtype) };
    let is = |i: usize, v: Scalar| s.splat(i) == Some(v);
    let (and, or, xor) = (s.op.is::<And>(), s.op.is::<Or>(), s.op.is::<Xor>());
    if (and || or) && b == Some(a) {
        return by("x and x = x = x or x", s.alias(0));
    }
    if xor && b == Some(a) {
        return by("x xor x = none", Some(Rewrite::Splat(none)));
    }
    for (i, other) in [(0, 1), (1, 0)] {
        if (and && is(i, all)) || ((or || xor) && is(i, none)) {
            return by("x and all = x = x or none = x xor none", s.alias(other));
        }
        if (and && is(i, none)) || (or && is(i, all)) {
            return by("x and none = none, x or all = all", s.alias(i));
        }
    }
    let shifts = s.op.is::<ShiftLeft>() || s.op.is::<ShiftRightLogical>() || s.op.is::<ShiftRightArithmetic>();
    if shifts && is(1, none) {
        return by("a shift by nothing", s.alias(0));
    }
    if dtype.is_unsigned() && (s.op.is::<Div>() || s.op.is::<Rem>()) {
        let c = s.splat(1)?.to_i64().filter(|c| *c > 0 && c.count_ones() == 1)?;
        let number = |v: i64| Some(Piece::Splat(s.ty(1)?.clone(), Scalar::I64(v).cast(dtype)));
        // Both round down, since there is no sign.
        let (op, number) = match s.op.is::<Div>() {
            true => (Op::fixed(&ShiftRightLogical), number(c.trailing_zeros().into())?),
            false => (Op::fixed(&And), number(c - 1)?),
        };
        return by("x/2^k = x >> k, x mod 2^k = x and (2^k - 1)", Rewrite::one(op, vec![a.into(), number]));
    }
    None
}

/// Right for finite numbers but for the last bits, and maybe wrong at NaN, infinities and zeros.
fn relaxed(s: &Site<'_>) -> Option<Named> {
    if !s.relaxed() || !s.dtype().is_float() {
        return None;
    }
    let x = s.operands.first().copied()?;
    if s.op.is::<Pow>() {
        // The power function rounds otherwise.
        let exponent = s.splat(1)?.to_f64();
        return match exponent {
            0.5 => by("relaxed: x^½ = √x", fixed(&Sqrt, [x])),
            -0.5 => by("relaxed: x^-½ = 1/√x", fixed(&Rsqrt, [x])),
            n if n.fract() == 0.0 && n.abs() <= 4.0 => {
                let made = Rewrite::apply(Op::new(IntegerPow { exponent: n as i64 }), [x]);
                by("relaxed: x^n is a product", made)
            }
            _ => None,
        };
    }
    let (inner, operands) = s.definition(0)?;
    // Also for x < 0, or where exp x overflows.
    if (s.op.is::<Exp>() && inner.is::<Log>()) || (s.op.is::<Log>() && inner.is::<Exp>()) {
        return by("relaxed: exp (log x) = x = log (exp x)", Some(Rewrite::Alias(operands[0])));
    }
    // Also for a = b.
    if s.op.is::<Neg>() && inner.is::<Sub>() {
        return by("relaxed: -(a - b) = b - a", fixed(&Sub, operands.iter().rev().copied()));
    }
    // Also for x < 0.
    if s.op.is::<Mul>() && inner.is::<Sqrt>() && s.operands.get(1) == Some(&x) {
        return by("relaxed: √x·√x = x", Some(Rewrite::Alias(operands[0])));
    }
    None
}
