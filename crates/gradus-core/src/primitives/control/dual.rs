//! Loops with tangents beside their values: constants, carries and sequences each have theirs behind them.

use std::sync::Arc;

use super::groups::{Groups, Results};
use super::{picked, positions, program, spread};
use crate::array::Array;
use crate::error::Result;
use crate::program::Program;
use crate::trace::inline;
use crate::transform::zeros_of;
use crate::types::Type;

/// What belongs to the operands of a loop, and which of them vary.
pub(super) struct Dual<'a> {
    /// The types of the inputs of its body.
    pub(super) types: Groups<&'a [Type]>,
    /// Which of them have tangents.
    pub(super) on: Groups<&'a [bool]>,
}

impl Dual<'_> {
    /// The types of a body's inputs with tangents.
    pub(super) fn inputs(&self) -> Vec<Type> {
        let each = self.types.zip(self.on).map(|(types, on)| [types.to_vec(), picked(types, on)].concat());
        each.in_order().concat()
    }

    /// Values and tangents apart.
    pub(super) fn apart(&self, xs: &[Array]) -> (Vec<Array>, Vec<Array>) {
        let (mut values, mut dots, mut rest) = (Vec::new(), Vec::new(), xs);
        for (types, on) in self.types.zip(self.on).in_order() {
            let (here, after) = rest.split_at(types.len());
            let (here_dots, after) = after.split_at(positions(on).len());
            values.extend_from_slice(here);
            dots.extend_from_slice(here_dots);
            rest = after;
        }
        (values, dots)
    }

    /// The body with tangents. Its derivative takes all tangents last and gives those of the outputs that vary.
    pub(super) fn body(&self, derivative: &Arc<Program>, varies: &[bool]) -> Result<Arc<Program>> {
        program(derivative.name(), self.inputs(), |xs| {
            let (mut values, dots) = self.apart(xs);
            values.extend(dots);
            let mut next = inline(derivative, &values)?;
            let dots = spread(next.split_off(varies.len()), varies);
            let carries = self.types.carries.len();
            let (next, dots) = (Results::from(next, carries), Results::of(&dots, carries));
            let each = dots.carries.iter().zip(self.on.carries).zip(self.types.carries).filter(|((_, on), _)| **on);
            let carry_dots = each.map(|((dot, _), t)| dot.clone().unwrap_or_else(|| zeros_of(t)));
            let y_dots = dots.sequences.iter().flatten().cloned();
            Ok(next.carries.into_iter().chain(carry_dots).chain(next.sequences).chain(y_dots).collect())
        })
    }

    /// The operands with tangents. A carry may vary though what it starts from does not.
    pub(super) fn operands(&self, values: Groups<&[Array]>, dots: Groups<&[Option<Array>]>) -> Vec<Array> {
        let group = |((values, dots), on): ((&[Array], &[Option<Array>]), &[bool])| {
            let dots = values.iter().zip(dots).zip(on).filter(|(_, on)| **on);
            let dots = dots.map(|((x, dot), _)| dot.clone().unwrap_or_else(|| x.zeros_like()));
            values.iter().cloned().chain(dots).collect::<Vec<Array>>()
        };
        values.zip(dots).zip(self.on).map(group).in_order().concat()
    }
}
