//! Functions as a user writes them, compared with JAX, which computed values and derivatives of the same functions at the
//! same numbers: that every rule is right does not say that what is made of them is.
//!
//! The numbers are in `data/functions.jsonl`, `data/signals.jsonl` and `data/control_flow.jsonl`, made by `scripts/reference/functions.py`. Each
//! function here has a line there, with the same name. Where JAX has a function for the purpose, it is used there, and here
//! the same is written with what arrays can do.
//!
//! Everything agrees to a relative 1e-10. Where the derivative is a convention and ours is another, the entry says what ours
//! is and why ([`Entry::differs`](compare::Entry)), and the test fails when that is no longer so.

#[path = "jax_functions/compare.rs"]
mod compare;
#[path = "jax_functions/control_flow.rs"]
mod control_flow;
#[path = "jax_functions/conventions.rs"]
mod conventions;
#[path = "jax_functions/elementwise.rs"]
mod elementwise;
#[path = "jax_functions/linear.rs"]
mod linear;
#[path = "jax_functions/models.rs"]
mod models;
#[path = "jax_functions/moving.rs"]
mod moving;
#[path = "jax_functions/reductions.rs"]
mod reductions;
#[path = "jax_functions/round_trip.rs"]
mod round_trip;
#[path = "jax_functions/science.rs"]
mod science;
#[path = "jax_functions/signals.rs"]
mod signals;

#[path = "../../gradus-pjrt/tests/common/children.rs"]
mod children;

use children::{Answer, Pieces, in_children};
use compare::{Entry, compare, lines, wrong};
use gradus_core::pipeline::set_default_backend;

const FUNCTIONS: &str = include_str!("data/functions.jsonl");
const SIGNALS: &str = include_str!("data/signals.jsonl");

fn functions() -> Vec<Entry> {
    let mut all = elementwise::entries();
    all.extend(reductions::entries());
    all.extend(moving::entries());
    all.extend(linear::entries());
    all.extend(models::entries());
    all.extend(science::entries());
    all.extend(conventions::entries());
    all
}

#[test]
fn functions_have_the_values_and_derivatives_of_jax() {
    let all = functions();
    assert!(all.len() >= 190, "{} functions", all.len());
    compare(&all, FUNCTIONS);
}

#[test]
fn row_a2_signals_have_the_values_and_derivatives_of_jax() {
    let all = signals::entries();
    assert!(all.len() >= 50, "{} functions", all.len());
    compare(&all, SIGNALS);
}

/// Runs every function in processes of their own, whose functions all run on another backend. `not_run` says why they cannot.
fn elsewhere(test: &str, by: &str, variables: &[(&str, &str)], not_run: Option<String>, begin: fn()) {
    let tables =
        [(functions(), FUNCTIONS), (control_flow::entries(), control_flow::NUMBERS), (signals::entries(), SIGNALS)];
    let all: Vec<(&Entry, &str)> =
        tables.iter().flat_map(|(entries, text)| entries.iter().map(|e| (e, *text))).collect();
    if let Some(why) = not_run {
        println!("NOT RUN: {} functions {by}, with their derivatives: {why}", all.len());
        return;
    }
    let names: Vec<&str> = all.iter().map(|(e, _)| e.name).collect();
    let work = |i: usize| -> Answer {
        begin();
        let (entry, text) = all[i];
        let wrong = wrong(entry, &lines(text));
        if wrong.is_empty() { Ok(Vec::new()) } else { Err(wrong.join("\n")) }
    };
    let pieces = Pieces { test, variables, count: all.len(), at_once: 80, name: &|i| names[i].to_string() };
    let Some(done) = in_children(&pieces, &work) else { return };
    println!("{} functions {by}, with their derivatives, {} failed", all.len(), done.failed.len());
    assert!(done.failed.is_empty(), "{} functions differ\n\n{}", done.failed.len(), done.failed.join("\n\n"));
}

/// The same functions with the same numbers, compiled by XLA.
#[test]
fn row_r4_functions_have_the_values_and_derivatives_of_jax_on_xla() {
    let test = "row_r4_functions_have_the_values_and_derivatives_of_jax_on_xla";
    let missing = gradus::devices::pjrt("cpu").err().map(|e| e.message().to_string());
    elsewhere(test, "on XLA", &[("GRADUS_BACKEND", "pjrt:cpu")], missing, || {});
}

/// The same after a travel as text of StableHLO.
#[test]
fn row_r3_functions_come_back_from_stablehlo_with_their_bits() {
    let test = "row_r3_functions_come_back_from_stablehlo_with_their_bits";
    elsewhere(test, "out as StableHLO and back", &[], None, || {
        // The first choice counts, and all others are the same.
        set_default_backend(std::sync::Arc::new(round_trip::RoundTrip));
    });
}
