//! The optimizer: a visible list of passes from program to program, with the verifier after each in debug builds.

mod dead;
mod rules;
mod simplify;

pub use dead::eliminate_dead_code;
pub use simplify::{simplify, simplify_with};

use crate::error::Result;
use crate::phases::phase;
use crate::program::Program;

/// What a rewrite may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Exactness {
    /// Nothing: NaN, infinities and the sign of zero stay.
    #[default]
    Exact,
    /// Results that are NaN, infinite or zero: `0·x` is 0 and `x + 0.0` is x, whatever x is.
    Relaxed,
}

/// One pass: a name and a function.
pub struct Pass {
    /// Its name, as reports show it.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&Program, Exactness) -> Result<Program>,
}

/// The passes, in order.
pub const PASSES: &[Pass] = &[
    Pass { name: "simplify", run: simplify_with },
    Pass { name: "dead code", run: |p, _| Ok(eliminate_dead_code(p, true)) },
];

/// Runs every pass; what comes out gives the same bits.
pub fn optimize(program: &Program) -> Result<Program> {
    optimize_with(program, Exactness::Exact)
}

/// Runs every pass, with a choice of what rewrites may change.
pub fn optimize_with(program: &Program, exactness: Exactness) -> Result<Program> {
    phase("optimize", |p| vec![p], || run_passes(program, exactness))
}

fn run_passes(program: &Program, exactness: Exactness) -> Result<Program> {
    let mut current = None;
    for pass in PASSES {
        let next = (pass.run)(current.as_ref().unwrap_or(program), exactness)?;
        #[cfg(debug_assertions)]
        crate::program::verify(&next).map_err(|e| e.note(format!("after the pass `{}`", pass.name)))?;
        current = Some(next);
    }
    Ok(current.unwrap_or_else(|| program.clone()))
}
