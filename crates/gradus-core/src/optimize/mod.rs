//! The optimizer: a visible list of passes from program to program, with the verifier after each in debug builds.

mod dead;
mod rules;
mod simplify;

pub use dead::eliminate_dead_code;
pub use simplify::simplify;

use crate::error::Result;
use crate::phases::phase;
use crate::program::Program;

/// One pass: a name and a function.
pub struct Pass {
    /// Its name, as reports show it.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&Program) -> Result<Program>,
}

/// The passes, in order.
pub const PASSES: &[Pass] =
    &[Pass { name: "simplify", run: simplify }, Pass { name: "dead code", run: |p| Ok(eliminate_dead_code(p, true)) }];

/// Runs every pass.
pub fn optimize(program: &Program) -> Result<Program> {
    phase("optimize", |p| vec![p], || run_passes(program))
}

fn run_passes(program: &Program) -> Result<Program> {
    let mut current = None;
    for pass in PASSES {
        let next = (pass.run)(current.as_ref().unwrap_or(program))?;
        #[cfg(debug_assertions)]
        crate::program::verify(&next).map_err(|e| e.note(format!("after the pass `{}`", pass.name)))?;
        current = Some(next);
    }
    Ok(current.unwrap_or_else(|| program.clone()))
}
