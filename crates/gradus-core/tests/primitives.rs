//! Every rule of every primitive, checked on its samples. The checks themselves are `gradus_core::testing`, so that
//! primitives of users can pass them too. Values from another implementation are in `reference.rs`.

use std::collections::BTreeSet;

use gradus_core::primitives::{BUILT_IN, Sample};
use gradus_core::testing::{Check, Tally, run_check};

/// Runs a check over all primitives; what is missing must be exactly what is listed, primitive and rule.
#[track_caller]
fn check(check: Check, missing: &[(&str, &str)]) {
    let mut tally = Tally::default();
    for entry in BUILT_IN.iter() {
        tally.absorb(run_check(check, &(entry.samples)()));
    }
    println!("{check:?}: {} comparisons", tally.comparisons);
    let listed: BTreeSet<(String, String)> = missing.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    assert_eq!(tally.missing, listed, "missing rules, and the list of them");
    if let Err(text) = tally.ok() {
        panic!("{text}");
    }
}

/// Decompositions of which a part is not unique have no derivative there; a build without linear algebra has none of them.
const NOT_UNIQUE: &[(&str, &str)] = if cfg!(feature = "linalg") {
    &[
        ("qr", "`qr` has no derivative rule"),
        ("schur", "`schur` has no derivative rule"),
        ("svd", "`svd` has no derivative rule"),
    ]
} else {
    &[]
};

#[test]
fn every_primitive_has_samples() {
    for entry in BUILT_IN.iter() {
        let samples: Vec<Sample> = (entry.samples)();
        assert!(!samples.is_empty(), "`{}` has no samples", entry.name);
        for sample in &samples {
            assert_eq!(sample.op.name(), entry.name);
            assert!(sample.inputs.iter().all(|a| a.concrete().is_some()), "{sample:?}");
        }
        // An operation that derivatives pass through shows it at a point where they exist.
        let inexact = |s: &Sample| s.inputs.iter().any(|a| a.dtype().is_inexact());
        let smooth = samples.iter().any(|s| s.smooth && inexact(s));
        assert!(
            smooth || !samples.iter().any(inexact) || ["bitcast", "stop_gradient"].contains(&entry.name),
            "`{}` is smooth nowhere",
            entry.name
        );
    }
}

#[test]
fn type_rules_say_what_evaluation_gives() {
    check(Check::Types, &[]);
}

#[test]
fn programs_of_one_operation_survive_text_and_interpret_alike() {
    check(Check::Text, &[]);
}

#[test]
fn forward_derivatives_are_those_of_differences() {
    check(Check::Forward, NOT_UNIQUE);
}

#[test]
fn derivatives_hold_at_the_points_that_rules_single_out() {
    check(Check::PlainPoints, &NOT_UNIQUE[1..]);
}

#[test]
fn reverse_derivatives_are_transposes_of_forward_ones() {
    check(Check::Reverse, NOT_UNIQUE);
}

#[test]
fn batches_give_what_loops_give() {
    // A size has no operands, so nothing ever batches it.
    check(Check::Batching, &[NOT_UNIQUE, &[("size", "`size` has no batching rule")]].concat());
}

#[test]
fn batches_of_unknown_size_give_what_known_ones_give() {
    check(Check::SymbolicBatch, NOT_UNIQUE);
}

#[test]
fn operands_of_unknown_sizes_give_what_known_ones_give() {
    check(Check::SymbolicSizes, NOT_UNIQUE);
}
