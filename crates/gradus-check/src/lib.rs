//! Every way of running a program against the interpreter: random programs in the large, all small ones by enumeration.
//!
//! ```text
//! gradus-check random --programs 10000 --seed 1     # so many random programs
//! gradus-check random --seconds 600                 # for so long
//! gradus-check enumerate --share 3/20               # every twentieth small program, from the third on
//! gradus-check show 17                              # the program of a seed
//! gradus-check replay FILE                          # a failure that was written down
//! ```
//!
//! The interpreter is the oracle. Each program is run as the passes leave it, by the evaluator of the kernel language, by the embedded
//! tier (AVX-512, AVX2, Cranelift alone and contracted products take turns), and a share of them by LLVM; on inputs that change from call to call,
//! with results of earlier calls kept and looked at again, and through prepared calls. Without contraction every bit counts, but for
//! what is free to round otherwise (`Freedom`); how far that may reach, the oracle of the core finds out for each program.
//!
//! Cases run in child processes, so a crash is a failure like any other. A failure is made small by edits that keep it, grouped by
//! what it says and which operations are left, and written to a file that `replay` runs again. Build it with `--release`.

pub mod case;
pub mod check;
mod compare;
pub mod drive;
mod edit;
pub mod enumerate;
pub mod generate;
mod prepared;
mod rust;
pub mod shrink;

use case::Case;

/// The case of a number: of a seed, or at a place of the enumeration, where there may be none.
pub fn case_of(source: &str, number: u64) -> Option<Case> {
    match source {
        "enumerate" => enumerate::case(number),
        _ => Some(generate::case(number)),
    }
}

/// What every process does first: nothing is printed but what the run says.
pub fn begin() {
    gradus::warnings::set_warning_handler(|_| {});
    gradus_cpu::unset_disk_cache();
    check::keep_panics();
}
