//! Algebraic rewrites, one a line with its algebra. Those of [`rewrite`] are exact: they keep NaN, infinities and the sign
//! of zero. Those of [`rewrite_relaxed`] do not, and run only if a user asks for them.

use crate::primitives::convert::Convert;
use crate::primitives::elementwise::{Add, Div, IntegerPow, Mul, Neg, Select, Sub};
use crate::primitives::shaping::{Broadcast, Concatenate, Permute, Reshape, Reverse, Slice};
use crate::primitives::{Op, reduce};
use crate::types::Scalar;

use super::rewrite::{Named, Rewrite, Site, by};

/// The first rewrite that applies. The caller checks that it has the equation's type.
pub(super) fn rewrite(s: &Site<'_>) -> Option<Named> {
    let real = !s.dtype().is_complex();
    if s.op.is::<Mul>() && real {
        // Not for complex numbers: (a+bi)(1+0i) multiplies b by 0.
        if s.is(0, 1.0) {
            return by("1·x = x", s.alias(1));
        }
        if s.is(1, 1.0) {
            return by("x·1 = x", s.alias(0));
        }
        // Integers have no NaN, no infinity and no -0.
        if s.dtype().is_int() && (s.is(0, 0.0) || s.is(1, 0.0)) {
            return by("0·x = 0 for integers", Some(Rewrite::Splat(Scalar::zero(s.dtype()))));
        }
    }
    if s.op.is::<Add>() {
        // x + 0.0 is not x: -0.0 + 0.0 = 0.0.
        let nothing = |i| if s.dtype().is_int() { s.is(i, 0.0) } else { real && s.is(i, -0.0) };
        if nothing(0) {
            return by("-0.0 + x = x", s.alias(1));
        }
        if nothing(1) {
            return by("x + -0.0 = x", s.alias(0));
        }
    }
    if s.op.is::<Sub>() && real && s.is(1, 0.0) {
        return by("x - 0.0 = x", s.alias(0));
    }
    if s.op.is::<Div>() && real && s.is(1, 1.0) {
        return by("x/1 = x", s.alias(0));
    }
    if s.op.is::<Neg>()
        && let Some((inner, operands)) = s.definition(0)
        && inner.is::<Neg>()
    {
        return by("-(-x) = x", Some(Rewrite::Alias(operands[0])));
    }
    if let Some(IntegerPow { exponent }) = s.op.downcast() {
        match exponent {
            // For NaN too: it is a product of no factors.
            0 => return by("integer_pow x 0 = 1", Some(Rewrite::Splat(Scalar::one(s.dtype())))),
            1 => return by("integer_pow x 1 = x", s.alias(0)),
            _ => {}
        }
    }
    if s.op.is::<Select>() {
        match s.splat(0).and_then(Scalar::to_bool) {
            Some(true) => return by("select true x y = x", s.alias(1)),
            Some(false) => return by("select false x y = y", s.alias(2)),
            None if s.operands.len() == 3 && s.operands[1] == s.operands[2] => {
                return by("select p x x = x", s.alias(1));
            }
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
        return by("a conversion or view that changes nothing", s.alias(0));
    }
    if s.op.is::<Reshape>()
        && let Some((inner, operands)) = s.definition(0)
        && inner.is::<Reshape>()
    {
        return by("reshape (reshape x) = reshape x", Rewrite::apply(s.op.clone(), operands.iter().copied()));
    }
    if let Some(outer) = s.op.downcast::<Permute>()
        && let Some((inner, operands)) = s.definition(0)
        && let Some(inner) = inner.downcast::<Permute>()
    {
        let axes = outer.axes.iter().filter_map(|a| inner.axes.get(*a).copied()).collect();
        let made = Rewrite::apply(Op::new(Permute { axes }), operands.iter().copied());
        return by("transpose p (transpose q x) = transpose (q∘p) x", made);
    }
    None
}

/// Rewrites that are right for finite numbers and may be wrong for NaN, infinities and the sign of zero.
pub(super) fn rewrite_relaxed(s: &Site<'_>) -> Option<Named> {
    if !s.relaxed() {
        return None;
    }
    let zero = || Some(Rewrite::Splat(Scalar::zero(s.dtype())));
    let is_zero = |i| s.is(i, 0.0) || s.is(i, -0.0);
    if s.op.is::<Mul>() {
        // Also for an infinite x and for NaN.
        if is_zero(0) || is_zero(1) {
            return by("relaxed: 0·x = 0", zero());
        }
        // For complex numbers too.
        if s.is(0, 1.0) {
            return by("relaxed: 1·x = x", s.alias(1));
        }
        if s.is(1, 1.0) {
            return by("relaxed: x·1 = x", s.alias(0));
        }
    }
    if s.op.is::<Add>() {
        // Also for x = -0.0.
        if is_zero(0) {
            return by("relaxed: 0 + x = x", s.alias(1));
        }
        if is_zero(1) {
            return by("relaxed: x + 0 = x", s.alias(0));
        }
    }
    if s.op.is::<Sub>() {
        // Also for x = -0.0; the other also for an infinite x and for NaN.
        if is_zero(1) {
            return by("relaxed: x - 0 = x", s.alias(0));
        }
        if s.operands.len() == 2 && s.operands[0] == s.operands[1] {
            return by("relaxed: x - x = 0", zero());
        }
    }
    // Also for x = 0 and for NaN.
    if s.op.is::<Div>() && is_zero(0) && !s.dtype().is_int() {
        return by("relaxed: 0/x = 0", zero());
    }
    None
}
