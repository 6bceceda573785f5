//! Where operations end: what the lint and the reports of NaN and infinity say of them.

/// What is known of an operation at the edges of where it is defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Where its slope is infinite or there is none, in words: "at 0".
    pub slope: Option<&'static str>,
    /// The operand that must keep away from there, if a test of that operand by `select` is worth a lint.
    pub operand: Option<usize>,
    /// How it is written with that operand as `x`; otherwise as a method of its name.
    pub written: Option<&'static str>,
    /// A number that is far from there, as it is written: what takes the place of operands that are kept away.
    pub safe: &'static str,
    /// How it makes a NaN or an infinity of finite numbers.
    pub not_finite: Option<NotFinite>,
}

/// How an operation makes a NaN or an infinity of finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotFinite {
    /// The operand is outside of where the function is defined.
    Outside,
    /// A division by zero.
    ByZero,
    /// A power of a number that is zero or negative.
    Power,
    /// An exponent that is too large.
    Exponent,
    /// The result is too large for its dtype.
    Narrow,
    /// A sum or a product that leaves the range.
    Range,
    /// Something else, in words, with a way out.
    Words(&'static str),
}

impl Limits {
    /// A function that ends, or has an infinite slope, at some values of its first operand.
    pub const fn at(slope: &'static str) -> Limits {
        Limits { slope: Some(slope), operand: Some(0), ..Limits::NONE }
    }

    /// One that is defined on a part of the numbers only.
    pub const fn outside(self) -> Limits {
        self.making(NotFinite::Outside)
    }

    /// One that makes numbers that are not finite.
    pub const fn making(self, not_finite: NotFinite) -> Limits {
        Limits { not_finite: Some(not_finite), ..self }
    }

    /// How it is written, with the operand at stake as `x`.
    pub const fn written(self, written: &'static str) -> Limits {
        Limits { written: Some(written), ..self }
    }

    /// A number far from its limits, where 1 is not.
    pub const fn safe(self, safe: &'static str) -> Limits {
        Limits { safe, ..self }
    }

    /// Nothing but this.
    pub const NONE: Limits = Limits { slope: None, operand: None, written: None, safe: "1.0", not_finite: None };
}
