//! Scans that carry nothing compute all steps at once, where a step is made of what loops over many elements do anyway: a loop of steps would be one more around
//! them, and each of its steps is small.
//!
//! It takes memory for all steps where there was some for one. So it is done only where the scan's sequences and results take as much as everything that a step
//! makes, or little is made. The order of float sums may change, and nothing else.

use super::kinds::reduction;
use super::nested::{Made, Nested, equations};
use super::{Exactness, applied, visit};
use crate::error::{Location, Result};
use crate::primitives::Op;
use crate::primitives::control::Scan;
use crate::primitives::shaping::{Slice, is_view};
use crate::program::{Atom, Builder, Program};
use crate::transform::vmap;
use crate::types::Type;

/// A scan may take so many bytes more, whatever its sequences take.
const LEAST_ROOM: u128 = 1 << 18;
/// What a number of steps is taken for that is known only at run time.
const STEPS_UNKNOWN: u128 = 64;

/// Puts all steps of scans together; see the head of this file.
pub(super) fn at_once(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &|p, nested| {
        equations(p, &mut |b, e, operands| {
            let op = nested.op(e.op())?;
            let all = match op.downcast::<Scan>() {
                Some(scan) => all_steps(b, scan, operands, e.place())?,
                None => None,
            };
            Ok(all.map_or(Made::As(op), Made::There))
        })
    })
}

/// Whether an operation shows elements of its operand where they are.
fn shows(op: &Op) -> bool {
    is_view(op) || op.is::<Slice>()
}

/// The results of a scan, made for all steps at once; none if it stays as it is.
fn all_steps(b: &mut Builder, scan: &Scan, operands: &[Atom], place: Location) -> Result<Option<Vec<Atom>>> {
    let body = &*scan.body;
    if scan.carries != 0 || !body.effects().is_pure() {
        return Ok(None);
    }
    let bytes = |ty: &Type| ty.bytes_where(32);
    let mut made = 0;
    for e in body.equations() {
        visit();
        if !e.op().is_elementwise() && reduction(e.op()).is_none() && !shows(e.op()) {
            return Ok(None);
        }
        made += if shows(e.op()) { 0 } else { e.results().map(|r| bytes(body.ty(r))).sum::<u128>() };
    }
    let inside = body.inputs()[scan.consts..].iter().map(bytes);
    let room: u128 = inside.chain(body.outputs().iter().map(|a| bytes(body.ty(*a)))).sum();
    let steps = scan.length.constant().map_or(STEPS_UNKNOWN, |n| n.unsigned_abs().into());
    if made > room && made * steps > LEAST_ROOM {
        return Ok(None);
    }
    let batched: Vec<bool> = (0..operands.len()).map(|i| i >= scan.consts).collect();
    let all = vmap(body, &batched, &scan.length)?;
    // Dimensions that are equal by a condition may differ in their text: then one cannot take the other's place.
    let fits = all.inputs().iter().zip(operands).all(|(ty, a)| ty == b.ty(*a));
    if !fits {
        return Ok(None);
    }
    applied("scan: what carries nothing is made for all steps at once");
    b.inline(&all, operands, place).map(Some)
}
