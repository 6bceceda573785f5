//! Random functions of random steps, transformed at random, with many wrong shapes among them: nothing panics, and what runs
//! both as it is and compiled gives the same.

#[path = "../../gradus-core/tests/desk/mod.rs"]
#[allow(dead_code)]
mod desk;
mod recipes;

use std::panic::{AssertUnwindSafe, catch_unwind};

use desk::{close, starting_arrays};
use gradus::prelude::*;
use gradus_core::testing::{Source, random_array, seeds};
use recipes::Recipe;

#[derive(Default, Debug)]
struct Tally {
    agree: usize,
    errors: usize,
    differ: usize,
}

/// One function, as it is and compiled.
fn check(seed: u64, tally: &mut Tally) {
    let mut source = Source::seed(seed);
    // Every other time two arrays that fit together, so that more goes well.
    let inputs = match seed % 2 {
        0 => {
            let shapes: [&[usize]; 4] = [&[3], &[2, 2], &[], &[3, 3]];
            let ty = Type::new([DType::F64, DType::F32][source.below(2)], shapes[source.below(4)]);
            vec![random_array(&mut source, &ty, false), random_array(&mut source, &ty, false)]
        }
        _ => starting_arrays(&mut source, 2),
    };
    let bytes: Vec<u8> = (0..160).map(|_| source.byte()).collect();
    let recipe = Recipe::new(&bytes, 2);
    let (x, y) = (&inputs[0], &inputs[1]);
    let eager = recipe.apply(x, y);
    let function = recipe.clone();
    let compiled = jit(move |x: &Array, y: &Array| function.apply(x, y));
    let staged = compiled(x, y);
    // Whatever came back can be shown.
    assert!(format!("{eager:?} {staged:?} {eager} {staged}").len() < 1_000_000);
    match (eager.clone().ok(), staged.clone().ok()) {
        (Ok(a), Ok(b)) => {
            let small = a.shape().count().is_some_and(|n| n <= 4096);
            assert_eq!(a.ty().ok(), b.ty().ok(), "seed {seed}: {a:?} and {b:?}, of {inputs:?}");
            assert!(!small || close(&a, &b), "seed {seed}: {a:?} as it is, {b:?} compiled, of {inputs:?}");
            tally.agree += 1;
        }
        (Err(_), Err(_)) => tally.errors += 1,
        // Sizes and choices that depend on numbers; an index that only numbers show to be wrong; one number in so many
        // places that only the eager way, which never writes them out, has room for it.
        (Ok(_), Err(e)) => {
            let known = matches!(e.kind(), ErrorKind::NotConcrete | ErrorKind::Size);
            assert!(known, "seed {seed}: only compiled: {e}\n{inputs:?}");
            tally.differ += 1;
        }
        (Err(e), Ok(_)) => {
            assert!(
                matches!(e.kind(), ErrorKind::Size | ErrorKind::Index | ErrorKind::NotConcrete),
                "seed {seed}: only as it is: {e}\n{inputs:?}"
            );
            tally.differ += 1;
        }
    }
    for error in [eager.error(), staged.error()].into_iter().flatten() {
        assert!(error.place().is_known() && !error.message().is_empty(), "seed {seed}: {error}");
        assert_ne!(error.kind(), ErrorKind::Rule, "seed {seed}: {error}");
    }
}

#[test]
fn row_e4_random_functions_never_panic_and_compiled_ones_agree() {
    gradus::warnings::set_warning_handler(|_| {});
    let mut tally = Tally::default();
    let mut bad = Vec::new();
    let mut tried = 0;
    for seed in seeds(400) {
        if catch_unwind(AssertUnwindSafe(|| check(seed, &mut tally))).is_err() {
            bad.push(seed);
        }
        tried += 1;
        if bad.len() > 20 {
            break;
        }
    }
    println!("{tried} functions: {tally:?}");
    assert!(bad.is_empty(), "seeds {bad:?}");
    assert!(tried == 1 || (tally.agree * 5 > tried && tally.errors * 10 > tried), "{tally:?}");
}
