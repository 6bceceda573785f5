//! Transformations of nested programs, each made once ([`memo`](crate::memo)).

use std::rc::Rc;
use std::sync::Arc;

use super::{Split, Terms, jvp, partial, transpose, vmap};
use crate::error::Result;
use crate::memo::{What, remembered};
use crate::program::Program;
use crate::types::Dim;

/// The forward derivative of a nested program, and which outputs vary.
#[track_caller]
pub(crate) fn jvp_of(program: &Arc<Program>, active: &[bool]) -> Result<(Arc<Program>, Vec<bool>)> {
    let make = || jvp(program, active).map(|(p, varies)| (Arc::new(p), varies));
    remembered(What::Jvp, program, active.to_vec(), None, make).map(|made| (*made).clone())
}

/// The transpose of a nested program.
#[track_caller]
pub(crate) fn transpose_of(program: &Arc<Program>, linear: &[bool]) -> Result<Arc<Program>> {
    let make = || transpose(program, linear).map(Arc::new);
    remembered(What::Transpose, program, linear.to_vec(), None, make).map(|made| (*made).clone())
}

/// A nested program over a batch. Outputs marked in `spread` have the batch axis; the flags say which others do.
#[track_caller]
pub(crate) fn vmap_of(
    program: &Arc<Program>,
    batched: &[bool],
    spread: &[bool],
    size: &Dim,
) -> Result<(Arc<Program>, Vec<bool>)> {
    let flags = [batched, spread].concat();
    let make = || vmap::over_batch(program, batched, spread, size).map(|(p, flags)| (Arc::new(p), flags));
    remembered(What::Vmap, program, flags, Some(size.clone()), make).map(|made| (*made).clone())
}

/// A nested program split by which inputs are known.
pub(crate) fn split_of(program: &Arc<Program>, terms: Terms<'_>) -> Result<Rc<Split>> {
    let make = || partial::split(program, terms);
    let flags = [terms.known, terms.late, terms.at_hand.unwrap_or_default()].concat();
    remembered(What::Split, program, flags, None, make)
}
