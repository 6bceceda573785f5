//! Operations as what they are made of, where they say it: any backend can run them then, and their parts share loops with what is around them.
//!
//! After loops have been looked at: an operation that is the same in every step leaves a loop as one, not as its parts.

use smallvec::SmallVec;

use super::nested::{Made, Nested, equations};
use super::{Exactness, applied};
use crate::array::Array;
use crate::error::{Result, error, fail};
use crate::primitives::Op;
use crate::program::{Equation, Program};
use crate::trace::{at_place, trace_closed};
use crate::types::Type;

/// An operation made of operations that are made of others, so deep, goes around in a circle.
const DEEPEST: usize = 32;

/// Writes operations out; see the head of this file.
pub(super) fn write_out(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &|p, nested| expanded(p, nested, 0))
}

fn expanded(p: &Program, nested: &Nested<'_>, depth: usize) -> Result<Program> {
    equations(p, &mut |b, e, operands| {
        let op = nested.op(e.op())?;
        let types: SmallVec<[Type; 4]> = operands.iter().map(|a| b.ty(*a).clone()).collect();
        let Some(parts) = parts(&op, e, &types)? else { return Ok(Made::As(op)) };
        let wanted = e.results().map(|r| p.ty(r));
        if !parts.output_types().iter().eq(wanted) {
            let have = parts.output_types();
            return Err(error!(
                MissingRule,
                "`{}` is made of parts that give {have:?}, not what its type rule says",
                op.name()
            )
            .at(e.place())
            .help("hold the primitive against its rules with `testing::check_samples`"));
        }
        if depth == DEEPEST {
            fail!(MissingRule, "`{}` is made of operations that are made of it", op.name());
        }
        applied("an operation is what it is made of");
        let parts = expanded(&parts, nested, depth + 1)?;
        Ok(Made::There(super::inline::write_out(b, &parts, operands, e.place())?))
    })
}

/// The parts of an operation as a program of its operands, if it has any.
fn parts(op: &Op, e: &Equation, types: &[Type]) -> Result<Option<Program>> {
    let Some(expand) = op.expand(types) else { return Ok(None) };
    let inputs: Vec<Array> = types.iter().cloned().map(Array::of_type).collect();
    let made = at_place(e.place(), || trace_closed(op.name(), &inputs, |inputs| Ok(expand(inputs)?.to_vec())));
    made.map(Some).map_err(|err| err.in_operation(op.name()).at(e.place()))
}
