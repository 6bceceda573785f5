//! What the operands and results of a loop are: names for what would otherwise be offsets into a list.

use std::ops::Range;

/// One thing for each kind of operand of a loop. Operands, and the inputs of its body, stand in the order of the fields. A `while` has no
/// sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Groups<G> {
    /// Of operands that are the same in every step.
    pub(crate) consts: G,
    /// Of those that a step hands on to the next.
    pub(crate) carries: G,
    /// Of those that give each step one element.
    pub(crate) sequences: G,
}

impl<G> Groups<G> {
    /// In the order of the operands.
    pub(super) fn in_order(self) -> [G; 3] {
        [self.consts, self.carries, self.sequences]
    }

    pub(super) fn map<H>(self, mut f: impl FnMut(G) -> H) -> Groups<H> {
        Groups { consts: f(self.consts), carries: f(self.carries), sequences: f(self.sequences) }
    }

    pub(super) fn zip<H>(self, other: Groups<H>) -> Groups<(G, H)> {
        Groups {
            consts: (self.consts, other.consts),
            carries: (self.carries, other.carries),
            sequences: (self.sequences, other.sequences),
        }
    }
}

impl<'a, T> Groups<&'a [T]> {
    /// A list with one item for each operand, taken apart.
    pub(super) fn of(all: &'a [T], consts: usize, carries: usize) -> Groups<&'a [T]> {
        let (consts, rest) = all.split_at(consts);
        let (carries, sequences) = rest.split_at(carries);
        Groups { consts, carries, sequences }
    }
}

impl Groups<&[bool]> {
    /// How many of each kind are marked.
    pub(super) fn marked(self) -> Groups<usize> {
        self.map(|flags| flags.iter().filter(|on| **on).count())
    }
}

impl Groups<usize> {
    /// The positions of so many of each kind, from a position on.
    pub(super) fn positions(self, first: usize) -> Groups<Range<usize>> {
        let (carries, sequences) = (first + self.consts, first + self.consts + self.carries);
        Groups { consts: first..carries, carries: carries..sequences, sequences: sequences..sequences + self.sequences }
    }

    /// A list with so many items of each kind, taken apart.
    pub(super) fn take<T>(self, all: &[T]) -> Groups<&[T]> {
        Groups::of(all, self.consts, self.carries)
    }
}

/// One thing for each kind of result of a loop: the carries after the last step, and what every step gave, as a sequence. The outputs of the
/// body stand in this order too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Results<G> {
    pub(super) carries: G,
    pub(super) sequences: G,
}

impl<'a, T> Results<&'a [T]> {
    pub(super) fn of(all: &'a [T], carries: usize) -> Results<&'a [T]> {
        let (carries, sequences) = all.split_at(carries);
        Results { carries, sequences }
    }
}

impl<T> Results<Vec<T>> {
    pub(super) fn from(mut all: Vec<T>, carries: usize) -> Results<Vec<T>> {
        let sequences = all.split_off(carries);
        Results { carries: all, sequences }
    }
}
