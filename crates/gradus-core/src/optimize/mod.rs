//! The optimizer: visible lists of passes from program to program, with the verifier after each in debug builds.
//!
//! There are two lists. [`PASSES`] are for programs that may still be transformed: they keep every operation that a
//! transformation asks, its derivative above all. [`EXECUTION_PASSES`] are for a program that will only be run, on a backend that asks for them. They may do more,
//! because a rewrite that keeps every bit of the results need not keep derivatives: `pow x 2` and `mul x x` differ in their rules,
//! `max x x` shares its tangent between two operands, and what is moved out of a loop that does not run is differentiated
//! at a point where the loop was not.
//!
//! *Invariants.* A rewrite keeps NaN, infinities and the sign of zero; one that does not needs [`Exactness::Relaxed`], which is never the
//! default. Conditions on dimensions stay. Equations with effects stay, in their order. A pass takes time in proportion to what is in memory.

mod again;
mod boxes;
mod checkpoints;
mod contract;
mod dots;
mod expand;
mod fission;
mod gathers;
mod halves;
mod inline;
mod kinds;
mod layout;
mod loops;
mod nested;
mod pairs;
mod pieces;
mod quotients;
mod rewrite;
mod rules;
mod scatters;
mod shapes;
mod simplify;
mod slices;
mod steps;
mod strength;
mod sum_by_rows;
mod sums;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub use halves::in_wide;
pub use inline::run_by;
pub(crate) use layout::repetitions_last;
pub(crate) use nested::{Made, Nested, equations};
pub use pairs::{OnPairs, as_numbers, in_pairs};
pub use simplify::{simplify, simplify_with};

use crate::error::Result;
use crate::phases::phase;
use crate::program::Program;
pub use crate::program::eliminate_dead_code;

/// What a rewrite may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Exactness {
    /// Nothing: NaN, infinities and the sign of zero stay. Only the order in which a float sum is added up may change, and
    /// only in [`for_execution`].
    #[default]
    Exact,
    /// Results that are NaN, infinite or zero: `0·x` is 0 and `x + 0.0` is x, whatever x is. In [`for_execution`] also the last
    /// bits of others: `exp(log x)` is x, and compiled code multiplies by one reciprocal where several are divided by one
    /// number.
    Relaxed,
}

/// One pass: a name and a function.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, as reports show it.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&Program, Exactness) -> Result<Program>,
}

const SIMPLIFY: Pass = Pass { name: "simplify", run: simplify_with };
const DEAD_CODE: Pass = Pass { name: "dead code", run: |p, _| Ok(eliminate_dead_code(p, true)) };

/// The passes for every program, in order.
pub const PASSES: &[Pass] = &[SIMPLIFY, DEAD_CODE];

/// The passes for a program that will only be run, in order.
pub const EXECUTION_PASSES: &[Pass] = &[
    Pass { name: "inline", run: inline::inline },
    SIMPLIFY,
    DEAD_CODE,
    Pass { name: "checkpoints", run: checkpoints::inline },
    Pass { name: "fission", run: fission::split },
    Pass { name: "layout", run: layout::sink },
    Pass { name: "loops", run: loops::hoist },
    Pass { name: "steps", run: steps::at_once },
    Pass { name: "again", run: again::in_sums },
    Pass { name: "boxes", run: boxes::by_boxes },
    Pass { name: "sum by rows", run: sum_by_rows::by_rows },
    Pass { name: "expand", run: expand::write_out },
    Pass { name: "strength", run: strength::reduce },
    DEAD_CODE,
];

/// After [`EXECUTION_PASSES`], if products may be rounded together with sums: it changes last bits, so a backend asks for it.
pub const CONTRACT: Pass = Pass { name: "contract", run: contract::into_sums };

/// Runs every pass; what comes out gives the same bits.
pub fn optimize(program: &Program) -> Result<Program> {
    optimize_with(program, Exactness::Exact)
}

/// Runs every pass, with a choice of what rewrites may change.
pub fn optimize_with(program: &Program, exactness: Exactness) -> Result<Program> {
    phase("optimize", |p| vec![p], || run_passes(PASSES, program, exactness, &mut |_, _, _| {}))
}

/// The program that a compiler takes: it gives the same results, but marks for transformations are gone and calls are written
/// out, so it must not be transformed any more.
pub fn for_execution(program: &Program, exactness: Exactness) -> Result<Program> {
    run_passes(EXECUTION_PASSES, program, exactness, &mut |_, _, _| {})
}

/// Runs passes and tells of each what it was called, what it gave and how long it took.
pub fn run_passes(
    passes: &[Pass],
    program: &Program,
    exactness: Exactness,
    report: &mut dyn FnMut(&'static str, &Program, Duration),
) -> Result<Program> {
    let mut current = None;
    for pass in passes {
        let started = Instant::now();
        let next = (pass.run)(current.as_ref().unwrap_or(program), exactness)?;
        let time = started.elapsed();
        #[cfg(debug_assertions)]
        crate::program::verify(&next).map_err(|e| e.note(format!("after the pass `{}`", pass.name)))?;
        report(pass.name, &next, time);
        current = Some(next);
    }
    Ok(current.unwrap_or_else(|| program.clone()))
}

thread_local! {
    static VISITED: Cell<u64> = const { Cell::new(0) };
    static LAWS: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Counts a rewrite by the law that allows it.
fn applied(law: &'static str) {
    LAWS.with_borrow_mut(|laws| *laws.entry(law).or_default() += 1);
}

/// How often each law was applied on this thread so far: what tests that every law is checked count.
pub fn laws_applied() -> BTreeMap<&'static str, u64> {
    LAWS.with_borrow(BTreeMap::clone)
}

/// Counts an equation that a pass looks at, or a replacement of one.
fn visit() {
    VISITED.set(VISITED.get() + 1);
}

/// How many equations passes looked at on this thread so far: what tests of linear time count, since clocks are not to
/// be trusted.
pub fn visited() -> u64 {
    VISITED.get()
}
