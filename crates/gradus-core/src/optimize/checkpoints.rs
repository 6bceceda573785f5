//! Writes out checkpoints where that cannot undo them.
//!
//! A checkpoint that was differentiated stands in the program twice. Its first half is plain equations, which compute the results
//! from the operands. Its second half is a `checkpoint` operation on the same operands, which begins by computing the same
//! again, so that nothing between the two has to be kept. Written out, that computation would be found equal to the first,
//! shared with it, and so kept: the checkpoint would be gone.
//!
//! Two equations can only be shared if they take the same values. So a checkpoint is written out if nothing else takes any
//! of its operands: what it computes then is computed nowhere else. That holds for a checkpoint that was never differentiated,
//! for the second half when nobody asks for the first, and inside the loop that goes backward over the steps of a loop. The others
//! stay operations, which a compiler runs like a call. The price is that their operands and results are in memory, which
//! is little for a computation that was worth not to keep.

use super::inline::{takes, write_out};
use super::nested::{Made, Nested, equations};
use super::{Exactness, applied};
use crate::error::Result;
use crate::primitives::control::Checkpoint;
use crate::program::Program;

/// Writes out checkpoints; see the head of this file.
pub(super) fn inline(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &flatten)
}

fn flatten(p: &Program, nested: &Nested<'_>) -> Result<Program> {
    let takers = takers(p);
    equations(p, &mut |b, e, operands| {
        let op = nested.op(e.op())?;
        if let Some(checkpoint) = op.downcast::<Checkpoint>()
            && takes(&checkpoint.program, b, operands)
            && p.operands(e).iter().filter_map(|a| a.value()).all(|v| takers[v.index()] == 1)
        {
            applied("a checkpoint is written out");
            return Ok(Made::There(write_out(b, &checkpoint.program, operands, e.place())?));
        }
        Ok(Made::As(op))
    })
}

/// For each value, how many equations take it, each counted once.
fn takers(p: &Program) -> Vec<u32> {
    let mut counts = vec![0; p.value_count()];
    let mut last: Vec<Option<usize>> = vec![None; p.value_count()];
    for (i, e) in p.equations().iter().enumerate() {
        for v in p.operands(e).iter().filter_map(|a| a.value()) {
            if last[v.index()].replace(i) != Some(i) {
                counts[v.index()] += 1;
            }
        }
    }
    counts
}
