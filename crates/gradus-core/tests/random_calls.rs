//! Random calls of array methods with random arguments, good and bad: every one gives an array or an error, never a
//! panic, and a traced call gives what the eager one gives.

mod desk;

use desk::{Desk, close, examine, starting_arrays};
use gradus_core::testing::{Source, seeds};
use gradus_core::trace::trace;
use gradus_core::{Array, Mode, interpret};

#[test]
fn random_calls_never_panic() {
    let (mut calls, mut errors, mut arrays) = (0, 0, 0);
    for seed in seeds(400) {
        let mut source = Source::seed(seed);
        let mut desk = Desk { arrays: starting_arrays(&mut source, 8), source: &mut source };
        for _ in 0..50 {
            let mut last = "";
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let (name, results) = desk.call();
                last = name;
                results.iter().for_each(|a| examine(name, a));
                results
            }));
            let results = outcome.unwrap_or_else(|_| panic!("seed {seed}, `{last}`, on {:?}", desk.arrays));
            calls += 1;
            errors += results.iter().filter(|a| a.error().is_some()).count();
            arrays += results.len();
            results.into_iter().for_each(|a| desk.keep(a));
        }
    }
    println!("{calls} calls, {arrays} results, {errors} of them errors");
    assert!(errors * 10 > arrays && errors * 10 < arrays * 9, "{errors} errors among {arrays} results");
}

#[test]
fn a_traced_call_gives_what_the_eager_call_gives() {
    let (mut same, mut errors, mut static_only) = (0, 0, 0);
    for seed in seeds(2500) {
        let mut source = Source::seed(seed);
        let inputs = starting_arrays(&mut source, 3);
        let decisions: Vec<u8> = (0..64).map(|_| source.byte()).collect();
        // The same bytes make the same call.
        let run = |arrays: &[Array]| {
            let mut source = Source::bytes(&decisions);
            Desk { arrays: arrays.to_vec(), source: &mut source }.call()
        };
        let (name, eager) = run(&inputs);
        for (i, eager) in eager.iter().enumerate() {
            let traced = trace("f", &inputs, Mode::Abstract, |x| run(x).1.get(i).cloned().into_iter().collect());
            match (eager.clone().ok(), traced) {
                (Ok(eager), Ok(traced)) => {
                    let all: Vec<Array> = inputs.iter().chain(&traced.captures).cloned().collect();
                    let outputs = interpret(&traced.program, &all);
                    let outputs = outputs.unwrap_or_else(|e| panic!("seed {seed}, `{name}`: {e}\n{}", traced.program));
                    let [output] = &outputs[..] else { panic!("seed {seed}, `{name}`: {outputs:?}") };
                    let small = eager.shape().count().is_some_and(|n| n <= 4096);
                    assert!(
                        output.ty() == eager.ty() && (!small || close(output, &eager)),
                        "seed {seed}, `{name}` {i}: {eager:?} eagerly, {output:?} traced, of {inputs:?}\n{}",
                        traced.program
                    );
                    same += 1;
                }
                (Err(eager), Err(traced)) => {
                    let kinds = (eager.kind(), traced.kind());
                    let reading = kinds.1 == gradus_core::ErrorKind::NotConcrete;
                    assert!(kinds.0 == kinds.1 || reading, "seed {seed}, `{name}` {i}: {eager}\n{traced}\n{inputs:?}");
                    errors += 1;
                }
                // What depends on the numbers of an index cannot be traced, or not refused while it is.
                (Ok(_), Err(e)) => {
                    assert_eq!(
                        e.kind(),
                        gradus_core::ErrorKind::NotConcrete,
                        "seed {seed}, `{name}` {i}: {e}\n{inputs:?}"
                    );
                    static_only += 1;
                }
                (Err(e), Ok(traced)) => {
                    assert!(
                        matches!(e.kind(), gradus_core::ErrorKind::Size | gradus_core::ErrorKind::Index),
                        "seed {seed}, `{name}` {i}: eagerly {e}\nbut traced\n{}",
                        traced.program
                    );
                    static_only += 1;
                }
            }
        }
    }
    println!("{same} results agree, {errors} errors agree, {static_only} differ for a reason");
    assert!(same > 1000 && static_only * 4 < same, "{same} {errors} {static_only}");
}
