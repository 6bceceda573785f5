//! What an operation does besides computing its results; a pass may only drop or reorder what is pure.

use std::fmt;

/// A set of effects. The empty set is a pure operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Effects(u8);

impl Effects {
    /// No effect: the operation may be dropped, repeated and moved.
    pub const PURE: Effects = Effects(0);
    /// Something is shown to the person; never dropped, order kept among its like.
    pub const PRINT: Effects = Effects(1);
    /// The host is called, in order with other calls.
    pub const HOST: Effects = Effects(2);
    /// A run-time check that can end the call with an error.
    pub const CHECK: Effects = Effects(4);

    const NAMES: [(Effects, &'static str); 3] =
        [(Effects::PRINT, "print"), (Effects::HOST, "host"), (Effects::CHECK, "check")];

    /// Both sets together.
    pub const fn union(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    /// Whether nothing but the results matters.
    #[inline]
    pub const fn is_pure(self) -> bool {
        self.0 == 0
    }

    /// Whether every effect of `other` is in this set.
    pub const fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// The effect of this name.
    pub fn from_name(name: &str) -> Option<Effects> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(e, _)| *e)
    }
}

impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Self::NAMES.iter().filter(|(e, _)| self.contains(*e)).map(|(_, n)| *n).collect();
        f.write_str(&names.join(", "))
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}
