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
#[path = "jax_functions/science.rs"]
mod science;
#[path = "jax_functions/signals.rs"]
mod signals;

use compare::compare;

#[test]
fn functions_have_the_values_and_derivatives_of_jax() {
    let mut all = elementwise::entries();
    all.extend(reductions::entries());
    all.extend(moving::entries());
    all.extend(linear::entries());
    all.extend(models::entries());
    all.extend(science::entries());
    all.extend(conventions::entries());
    assert!(all.len() >= 190, "{} functions", all.len());
    compare(&all, include_str!("data/functions.jsonl"));
}

#[test]
fn row_a2_signals_have_the_values_and_derivatives_of_jax() {
    let all = signals::entries();
    assert!(all.len() >= 50, "{} functions", all.len());
    compare(&all, include_str!("data/signals.jsonl"));
}
