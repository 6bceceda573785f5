//! Writes random bits out as arithmetic on words, so that they share loops with what is computed from them.
//!
//! After loops have been looked at: a draw that is the same in every step leaves a loop as one operation, not as its parts.

use super::nested::{Made, Nested, equations};
use super::{Exactness, applied};
use crate::error::Result;
use crate::primitives::random::{FoldIn, RandomBits};
use crate::program::Program;
use crate::trace::at_place;

/// Writes draws out; see the head of this file.
pub(super) fn write_out(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &arithmetic)
}

fn arithmetic(p: &Program, nested: &Nested<'_>) -> Result<Program> {
    equations(p, &mut |b, e, operands| {
        let op = nested.op(e.op())?;
        let keys = operands.first().map(|a| b.ty(*a).clone());
        let program = match (op.downcast::<RandomBits>(), keys) {
            (Some(draw), Some(keys)) => at_place(e.place(), || draw.written_out(&keys))?,
            (None, Some(keys)) if op.is::<FoldIn>() => at_place(e.place(), || FoldIn::written_out(&keys))?,
            _ => return Ok(Made::As(op)),
        };
        applied("random bits are written out");
        Ok(Made::There(super::inline::write_out(b, &program, operands, e.place())?))
    })
}
