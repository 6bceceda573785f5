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

use smallvec::SmallVec;

use super::inline::{takes, write_out};
use super::nested::Nested;
use super::simplify::map_atom;
use super::{Exactness, visit};
use crate::error::Result;
use crate::primitives::Types;
use crate::primitives::control::Checkpoint;
use crate::program::{Atom, Builder, Program, ValueId};

/// Writes out checkpoints; see the head of this file.
pub(super) fn inline(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &flatten)
}

fn flatten(p: &Program, nested: &Nested<'_>) -> Result<Program> {
    let takers = takers(p);
    let mut b = Builder::like(p);
    let mut there: Vec<Atom> = (0..p.inputs().len()).map(|i| Atom::from(ValueId::new(i))).collect();
    for e in p.equations() {
        visit();
        let mut operands: SmallVec<[Atom; 4]> = SmallVec::new();
        for &a in p.operands(e) {
            operands.push(map_atom(p, &there, &mut b, a)?);
        }
        let types: Types = e.results().map(|r| p.ty(r).clone()).collect();
        let mut op = e.op().clone();
        if op.holds_programs() {
            op = op.map_programs(&|p| nested.of(p))?;
        }
        if let Some(checkpoint) = op.downcast::<Checkpoint>()
            && takes(&checkpoint.program, &b, &operands)
            && p.operands(e).iter().filter_map(|a| a.value()).all(|v| takers[v.index()] == 1)
        {
            there.extend(write_out(&mut b, &checkpoint.program, &operands, e.place())?);
            continue;
        }
        let made = b.push(op, &operands, types, e.place())?.results();
        there.extend(made.map(Atom::from));
    }
    let outputs = p.outputs().iter().map(|a| map_atom(p, &there, &mut b, *a)).collect::<Result<Vec<_>>>()?;
    Ok(b.finish(outputs))
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
