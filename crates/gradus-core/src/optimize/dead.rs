//! Drops equations whose results nothing needs, and the parts of nested programs that nothing needs. Effects are kept,
//! unless the caller runs the program for values only.

use crate::program::{Program, ValueId};

/// The program without equations that no output needs; `keep_effects` keeps those with effects and what they need.
pub fn eliminate_dead_code(p: &Program, keep_effects: bool) -> Program {
    let inputs: Vec<ValueId> = (0..p.inputs().len()).map(ValueId::new).collect();
    // A program that cannot be taken apart stays as it is; the verifier speaks of it.
    p.between(&inputs, p.outputs(), keep_effects).unwrap_or_else(|_| p.clone())
}
