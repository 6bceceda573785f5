//! What a rewrite sees and what it can answer. Rules are plain functions from an equation to its replacement; the walk
//! of [`simplify`](super::simplify) tries them, checks the type of what they give, and adds it.

use super::Exactness;
use crate::primitives::Op;
use crate::program::{Atom, Builder};
use crate::types::{DType, Scalar, Shape, Type};

/// A rule: a replacement of the equation by one of its laws, or none.
pub(super) type Rule = fn(&Site<'_>) -> Option<Named>;

/// A replacement, and the law that allows it.
pub(super) struct Named {
    pub law: &'static str,
    pub rewrite: Rewrite,
}

/// A replacement by a law. The text is the law's name too: tests ask that each one is met and kept.
pub(super) fn by(law: &'static str, rewrite: Option<Rewrite>) -> Option<Named> {
    Some(Named { law, rewrite: rewrite? })
}

/// What an equation is replaced by.
pub(super) enum Rewrite {
    /// A value that is there already.
    Alias(Atom),
    /// One number in every place.
    Splat(Scalar),
    /// Other operations, the last of which gives the result.
    Steps(Vec<Step>),
}

/// One operation of a replacement.
pub(super) struct Step {
    pub op: Op,
    pub operands: Vec<Piece>,
}

/// An operand in a replacement.
#[derive(Clone)]
pub(super) enum Piece {
    /// A value or constant that is there already.
    Atom(Atom),
    /// The result of an earlier step.
    Step(usize),
    /// One number in every place of a type.
    Splat(Type, Scalar),
}

impl From<Atom> for Piece {
    fn from(atom: Atom) -> Piece {
        Piece::Atom(atom)
    }
}

impl Rewrite {
    /// One other operation on values that are there.
    pub fn apply(op: Op, operands: impl IntoIterator<Item = Atom>) -> Option<Rewrite> {
        Rewrite::one(op, operands.into_iter().map(Piece::Atom).collect())
    }

    /// One other operation.
    pub fn one(op: Op, operands: Vec<Piece>) -> Option<Rewrite> {
        Some(Rewrite::Steps(vec![Step { op, operands }]))
    }
}

/// Collects the steps of a replacement.
#[derive(Default)]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    /// Adds a step and gives its result.
    pub fn push(&mut self, op: Op, operands: Vec<Piece>) -> Piece {
        self.0.push(Step { op, operands });
        Piece::Step(self.0.len() - 1)
    }

    /// What the last step gives.
    pub fn last(&self) -> Option<Piece> {
        Some(Piece::Step(self.0.len().checked_sub(1)?))
    }

    /// The replacement, if anything is in it.
    pub fn finish(self) -> Option<Rewrite> {
        (!self.0.is_empty()).then_some(Rewrite::Steps(self.0))
    }
}

/// What a rule sees: the program as rebuilt so far, and the equation that is about to join it.
pub(super) struct Site<'a> {
    pub builder: &'a Builder,
    pub op: &'a Op,
    pub operands: &'a [Atom],
    pub result: &'a Type,
    pub exactness: Exactness,
    /// How often each value of the rebuilt program was used before the walk; none is known of what a rule made.
    pub uses: &'a [u32],
}

impl<'a> Site<'a> {
    pub fn splat(&self, i: usize) -> Option<Scalar> {
        self.builder.program().constant(*self.operands.get(i)?)?.splat_value()
    }

    pub fn is(&self, i: usize, value: f64) -> bool {
        // By bits: 0.0 is not -0.0.
        self.splat(i).is_some_and(|s| s == Scalar::F64(value).cast(s.dtype()))
    }

    /// The equation that defines an operand.
    pub fn definition(&self, i: usize) -> Option<(&'a Op, &'a [Atom])> {
        self.definition_of(*self.operands.get(i)?)
    }

    /// The equation that defines a value.
    pub fn definition_of(&self, atom: Atom) -> Option<(&'a Op, &'a [Atom])> {
        let e = self.builder.definition(atom.value()?)?;
        Some((e.op(), self.builder.program().operands(e)))
    }

    /// The type of operand `i`.
    pub fn ty(&self, i: usize) -> Option<&'a Type> {
        Some(self.builder.ty(*self.operands.get(i)?))
    }

    pub fn shape_of(&self, atom: Atom) -> &'a Shape {
        self.builder.ty(atom).shape()
    }

    /// Whether this equation is all that uses an operand, as far as is known.
    pub fn is_only_use(&self, i: usize) -> bool {
        let value = self.operands.get(i).and_then(|a| a.value());
        value.is_some_and(|v| self.uses.get(v.index()) == Some(&1))
    }

    pub fn dtype(&self) -> DType {
        self.result.dtype()
    }

    pub fn alias(&self, i: usize) -> Option<Rewrite> {
        Some(Rewrite::Alias(*self.operands.get(i)?))
    }

    pub fn relaxed(&self) -> bool {
        self.exactness == Exactness::Relaxed
    }
}
