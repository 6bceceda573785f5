//! Bytes as random functions over the public API, transformed at random: nothing panics, and what runs both as it is and
//! compiled gives the same types.

#![no_main]

#[path = "../../crates/gradus-core/tests/desk/mod.rs"]
#[allow(dead_code)]
mod desk;
#[path = "../../crates/gradus/tests/recipes/mod.rs"]
mod recipes;

use desk::{close, starting_arrays};
use gradus::prelude::*;
use gradus_core::testing::Source;
use libfuzzer_sys::fuzz_target;
use recipes::Recipe;

fuzz_target!(|bytes: &[u8]| {
    gradus::warnings::set_warning_handler(|_| {});
    let (head, rest) = bytes.split_at(bytes.len().min(48));
    let inputs = starting_arrays(&mut Source::bytes(head), 2);
    let recipe = Recipe::new(rest, 2);
    let eager = recipe.apply(&inputs[0], &inputs[1]);
    let staged = jit(move |x: &Array, y: &Array| recipe.apply(x, y))(&inputs[0], &inputs[1]);
    if let (Ok(a), Ok(b)) = (eager.ok(), staged.ok()) {
        assert_eq!(a.ty().ok(), b.ty().ok(), "{inputs:?}");
        let small = a.shape().count().is_some_and(|n| n <= 4096);
        assert!(!small || close(&a, &b), "{a:?} as it is, {b:?} compiled, of {inputs:?}");
    }
});
