//! Algebraic rewrites, one a line with its algebra. Those of [`rewrite`] are exact: they keep NaN, infinities and the sign
//! of zero. Those of [`rewrite_relaxed`] do not, and run only if a user asks for them.

use crate::primitives::convert::Convert;
use crate::primitives::elementwise::{Add, Div, IntegerPow, Mul, Neg, Select, Sub};
use crate::primitives::shaping::{Broadcast, Concatenate, Permute, Reshape, Reverse, Slice};
use crate::primitives::{Op, reduce};
use crate::types::Scalar;

use super::rewrite::{Rewrite, Site};

/// The first rewrite that applies. The caller checks that it has the equation's type.
pub(super) fn rewrite(s: &Site<'_>) -> Option<Rewrite> {
    let real = !s.dtype().is_complex();
    if s.op.is::<Mul>() && real {
        // 1·x = x. Not for complex numbers: (a+bi)(1+0i) multiplies b by 0.
        if s.is(0, 1.0) {
            return s.alias(1);
        }
        if s.is(1, 1.0) {
            return s.alias(0);
        }
        // 0·x = 0 for integers, which have no NaN, no infinity and no -0.
        if s.dtype().is_int() && (s.is(0, 0.0) || s.is(1, 0.0)) {
            return Some(Rewrite::Splat(Scalar::zero(s.dtype())));
        }
    }
    if s.op.is::<Add>() {
        // x + -0.0 = x for every x; x + 0.0 is not: -0.0 + 0.0 = 0.0.
        let nothing = |i| if s.dtype().is_int() { s.is(i, 0.0) } else { real && s.is(i, -0.0) };
        if nothing(0) {
            return s.alias(1);
        }
        if nothing(1) {
            return s.alias(0);
        }
    }
    // x - 0.0 = x.
    if s.op.is::<Sub>() && real && s.is(1, 0.0) {
        return s.alias(0);
    }
    // x / 1 = x.
    if s.op.is::<Div>() && real && s.is(1, 1.0) {
        return s.alias(0);
    }
    // -(-x) = x.
    if s.op.is::<Neg>()
        && let Some((inner, operands)) = s.definition(0)
        && inner.is::<Neg>()
    {
        return Some(Rewrite::Alias(operands[0]));
    }
    if let Some(IntegerPow { exponent }) = s.op.downcast() {
        match exponent {
            // x^0 = 1, for NaN too: it is a product of no factors.
            0 => return Some(Rewrite::Splat(Scalar::one(s.dtype()))),
            // x^1 = x.
            1 => return s.alias(0),
            _ => {}
        }
    }
    if s.op.is::<Select>() {
        // select true x y = x; select false x y = y; select p x x = x.
        match s.splat(0).and_then(Scalar::to_bool) {
            Some(true) => return s.alias(1),
            Some(false) => return s.alias(2),
            None if s.operands.len() == 3 && s.operands[1] == s.operands[2] => return s.alias(1),
            None => {}
        }
    }
    // Conversions and views that change nothing.
    let nothing_to_do = s.op.is::<Convert>()
        || s.op.is::<Reshape>()
        || s.op.is::<Broadcast>()
        || s.op.is::<Slice>()
        || s.op.downcast::<Permute>().is_some_and(|p| p.axes.iter().enumerate().all(|(i, a)| i == *a))
        || s.op.downcast::<Reverse>().is_some_and(|r| r.axes.is_empty())
        || (s.op.is::<Concatenate>() && s.operands.len() == 1)
        || s.op.downcast::<reduce::ReduceSum>().is_some_and(|r| r.axes.is_empty())
        || s.op.downcast::<reduce::ReduceProd>().is_some_and(|r| r.axes.is_empty())
        || s.op.downcast::<reduce::ReduceMax>().is_some_and(|r| r.axes.is_empty())
        || s.op.downcast::<reduce::ReduceMin>().is_some_and(|r| r.axes.is_empty());
    if nothing_to_do && s.operands.first().is_some_and(|a| s.builder.ty(*a) == s.result) {
        return s.alias(0);
    }
    // reshape(reshape x) = reshape x.
    if s.op.is::<Reshape>()
        && let Some((inner, operands)) = s.definition(0)
        && inner.is::<Reshape>()
    {
        return Rewrite::apply(s.op.clone(), operands.iter().copied());
    }
    // transpose p (transpose q x) = transpose (q∘p) x.
    if let Some(outer) = s.op.downcast::<Permute>()
        && let Some((inner, operands)) = s.definition(0)
        && let Some(inner) = inner.downcast::<Permute>()
    {
        let axes = outer.axes.iter().filter_map(|a| inner.axes.get(*a).copied()).collect();
        return Rewrite::apply(Op::new(Permute { axes }), operands.iter().copied());
    }
    None
}

/// Rewrites that are right for finite numbers and may be wrong for NaN, infinities and the sign of zero.
pub(super) fn rewrite_relaxed(s: &Site<'_>) -> Option<Rewrite> {
    if !s.relaxed() {
        return None;
    }
    let zero = || Some(Rewrite::Splat(Scalar::zero(s.dtype())));
    let is_zero = |i| s.is(i, 0.0) || s.is(i, -0.0);
    if s.op.is::<Mul>() {
        // 0·x = 0, also for an infinite x and for NaN.
        if is_zero(0) || is_zero(1) {
            return zero();
        }
        // 1·x = x for complex numbers too.
        if s.is(0, 1.0) {
            return s.alias(1);
        }
        if s.is(1, 1.0) {
            return s.alias(0);
        }
    }
    if s.op.is::<Add>() {
        // x + 0.0 = x, also for x = -0.0.
        if is_zero(0) {
            return s.alias(1);
        }
        if is_zero(1) {
            return s.alias(0);
        }
    }
    if s.op.is::<Sub>() {
        // x - -0.0 = x, also for x = -0.0; x - x = 0, also for an infinite x and for NaN.
        if is_zero(1) {
            return s.alias(0);
        }
        if s.operands.len() == 2 && s.operands[0] == s.operands[1] {
            return zero();
        }
    }
    // 0 / x = 0, also for x = 0 and for NaN.
    if s.op.is::<Div>() && is_zero(0) && !s.dtype().is_int() {
        return zero();
    }
    None
}
