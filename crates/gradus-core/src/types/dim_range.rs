//! Ranges of integers: what is known of a dimension whose symbols have no numbers yet.

use super::dim_text::Decision;

/// All integers from `lo` to `hi`, both included. A bound at or beyond `INF` is no bound: rounding a far bound out to
/// "none" keeps every answer true.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Range {
    pub(super) lo: i128,
    pub(super) hi: i128,
}

pub(super) const INF: i128 = 1 << 100;

impl Range {
    pub(super) const ALL: Range = Range { lo: -INF, hi: INF };

    pub(super) fn point(value: i128) -> Range {
        Range { lo: value, hi: value }
    }

    pub(super) fn plus(self, other: Range) -> Range {
        let lo = if self.lo == -INF || other.lo == -INF { -INF } else { self.lo + other.lo };
        let hi = if self.hi == INF || other.hi == INF { INF } else { self.hi + other.hi };
        Range { lo: lo.clamp(-INF, INF), hi: hi.clamp(-INF, INF) }
    }

    pub(super) fn scaled(self, k: i128) -> Range {
        self.times(Range::point(k))
    }

    pub(super) fn times(self, other: Range) -> Range {
        let corner = |x: i128, y: i128| x.saturating_mul(y).clamp(-INF, INF);
        let (a, b) = (corner(self.lo, other.lo), corner(self.lo, other.hi));
        let (c, d) = (corner(self.hi, other.lo), corner(self.hi, other.hi));
        Range { lo: a.min(b).min(c).min(d), hi: a.max(b).max(c).max(d) }
    }

    pub(super) fn pow(self, power: u32) -> Range {
        let product = (0..power).fold(Range::point(1), |product, _| product.times(self));
        if power.is_multiple_of(2) { Range { lo: product.lo.max(0), hi: product.hi } } else { product }
    }

    pub(super) fn max(self, other: Range) -> Range {
        Range { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    pub(super) fn min(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi) }
    }

    pub(super) fn floor_div(self, divisor: Range) -> Range {
        if divisor.lo < 0 {
            return Range::ALL;
        }
        // A divisor of zero has no value, so the least that counts is one.
        let (least, most) = (divisor.lo.max(1), divisor.hi.max(1));
        let lo = if self.lo == -INF { -INF } else { floor(self.lo, if self.lo < 0 { least } else { most }) };
        let hi = if self.hi == INF { INF } else { floor(self.hi, if self.hi < 0 { most } else { least }) };
        Range { lo, hi }
    }

    pub(super) fn modulo(self, divisor: Range) -> Range {
        if divisor.lo < 0 {
            return Range::ALL;
        }
        let below = if divisor.hi == INF { INF } else { (divisor.hi - 1).max(0) };
        Range { lo: 0, hi: if self.lo >= 0 { below.min(self.hi) } else { below } }
    }

    /// The integers whose `k`-fold lies in the range.
    pub(super) fn divided_inward(self, k: i128) -> Range {
        let lo = if self.lo == -INF { -INF } else { -floor(-self.lo, k) };
        Range { lo, hi: if self.hi == INF { INF } else { floor(self.hi, k) } }
    }

    /// The quotient by `k`, where it is the same for the whole range.
    pub(super) fn quotient(self, k: i128) -> Option<i128> {
        let (lo, hi) = (floor(self.lo, k), floor(self.hi, k));
        (lo == hi && self.lo > -INF && self.hi < INF).then_some(lo)
    }

    pub(super) fn at_least(self, bound: i128) -> Decision {
        match () {
            _ if self.lo >= bound => Decision::Yes,
            _ if self.hi < bound => Decision::No,
            _ => Decision::AtRunTime,
        }
    }

    pub(super) fn is_zero(self) -> Decision {
        self.at_least(0).and(self.at_least(1).not())
    }
}

/// Division rounded down; `b` is not zero.
pub(super) fn floor(a: i128, b: i128) -> i128 {
    a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)
}

/// The remainder of `floor`, which has the sign of `b`.
pub(super) fn rem(a: i128, b: i128) -> i128 {
    a - b * floor(a, b)
}

pub(super) fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}
