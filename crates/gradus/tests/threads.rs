//! Many threads: one function called from all of them, traced on all of them, and what must not go from one to another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use gradus::cache::{clear_executables, executable_stats};
use gradus::prelude::*;

const THREADS: usize = 12;

/// Tests that count what is compiled, or clear it, run one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a function on many threads that begin at the same moment.
fn at_once<R: Send>(f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let start = Barrier::new(THREADS);
    std::thread::scope(|s| {
        let run = |i| {
            start.wait();
            f(i)
        };
        let handles: Vec<_> = (0..THREADS).map(|i| s.spawn(move || run(i))).collect();
        handles.into_iter().map(|h| h.join().unwrap()).collect()
    })
}

fn ramp(n: usize, from: usize) -> Array {
    Array::from((0..n).map(|i| (from + i) as f64 * 0.01 - 1.0).collect::<Vec<_>>())
}

fn is_shared<T: Send + Sync>(_: &T) {}

#[test]
fn one_function_called_from_many_threads_is_compiled_once() {
    let _alone = alone();
    // Held by reference: nothing is cloned for a thread. The number makes it a program that no other test has.
    let f = jit(grad(|x: &Array| ((x * 1.25).sin() * x.exp()).sum()));
    is_shared(&f);
    let want: Vec<Vec<f64>> = (0..THREADS).map(|i| f(&ramp(333, i)).to_vec().unwrap()).collect();
    let g = jit(grad(|x: &Array| ((x * 1.25).sin() * x.exp()).sum()));
    f.clear();
    clear_executables();
    let got = at_once(|i| {
        let x = ramp(333, i);
        let first: Vec<f64> = g(&x).to_vec().unwrap();
        // Often enough that the optimizing tier takes over on the way.
        for _ in 0..100 {
            assert_eq!(g(&x).to_vec::<f64>().unwrap(), first);
        }
        first
    });
    assert_eq!(got, want);
    let stats = g.stats();
    assert_eq!(stats.compiles, 1, "{stats:?}");
    assert_eq!(stats.hits + stats.misses, 101 * THREADS as u64);
    assert!(stats.traces == stats.misses && stats.traces <= THREADS as u64, "{stats:?}");
}

#[test]
fn equal_programs_of_several_functions_are_compiled_once() {
    let _alone = alone();
    let before = executable_stats().compiles;
    let results = at_once(|i| {
        let f = jit(|x: &Array| (x * 1.375).cos().sum());
        (f(&ramp(77, i)).item::<f64>().unwrap(), f.stats())
    });
    let compiles: u64 = results.iter().map(|(_, s)| s.compiles).sum();
    let shared: u64 = results.iter().map(|(_, s)| s.shared).sum();
    assert_eq!((compiles, shared), (1, THREADS as u64 - 1));
    // Other tests of this process compile, too.
    assert!(executable_stats().compiles > before);
    for (i, (value, _)) in results.iter().enumerate() {
        assert_eq!(*value, jit(|x: &Array| (x * 1.375).cos().sum())(&ramp(77, i)).item::<f64>().unwrap());
    }
}

#[test]
fn tracing_on_many_threads_at_once() {
    let shared = jit(|x: &Array| x.tanh());
    let results = at_once(|i| {
        let mut all = Vec::new();
        for n in 1..20 {
            // Each thread traces functions of its own, which call one that they share.
            let f = |x: &Array| {
                let scanned = scan(|c: &Array, x: &Array| (c + shared(x), c * x), Array::from(0.5_f64), x);
                scanned.0 * scanned.1.sum() + i as f64
            };
            let traced = gradus::extend::trace::trace("f", &[ramp(n, i)], Mode::Abstract, |x| vec![f(&x[0])]).unwrap();
            let mut inputs = vec![ramp(n, i)];
            inputs.extend(traced.captures.iter().cloned());
            let value = gradus::extend::interpret(&traced.program, &inputs).unwrap()[0].item::<f64>().unwrap();
            assert_eq!(value, f(&ramp(n, i)).item::<f64>().unwrap());
            all.push(value);
        }
        all
    });
    assert_eq!(results.len(), THREADS);
    assert!(results.windows(2).all(|w| w[0] != w[1]));
}

#[test]
fn row_e5_a_tracer_used_on_another_thread_names_both_places() {
    let made = line!() + 1;
    let f = jit(|x: &Array| {
        let y = x.sin();
        std::thread::scope(|s| s.spawn(|| &y * 2.0).join().unwrap())
    });
    let e = f(&Array::from(1.0_f64)).ok().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::EscapedTracer);
    let text = e.to_string();
    assert!(text.contains("was sent to another thread"), "{text}");
    // Where it was used, and where it was made.
    assert_eq!(e.place().line(), Some(made + 2), "{text}");
    assert!(text.contains(&format!("threads.rs:{}", made + 1)), "{text}");
    // Numbers may go anywhere.
    let g = jit(|x: &Array| {
        let two = std::thread::scope(|s| s.spawn(|| Array::from(1.0_f64) + 1.0).join().unwrap());
        x * two
    });
    assert_eq!(g(&Array::from(3.0_f64)).item::<f64>().unwrap(), 6.0);
}

#[test]
fn clearing_and_failing_beside_calls_disturbs_nobody() {
    let _alone = alone();
    let calls = AtomicUsize::new(0);
    let f = jit(|x: &Array| (x * 1.125).exp().sum()).on_budget(OnBudget::Silent);
    let want: Vec<f64> = (0..THREADS).map(|i| f(&ramp(50 + i, i)).item().unwrap()).collect();
    at_once(|i| match i % 4 {
        0 => (0..50).for_each(|_| {
            f.clear();
            clear_executables();
        }),
        1 => (0..50).for_each(|_| {
            // Strings of errors: a wrong shape, and a spec where numbers are read.
            assert!((f(&ramp(3, 0)) + ramp(2, 0).reshape([7])).ok().is_err());
            assert!(f(&Array::spec("f64[3]")).item::<f64>().is_err());
        }),
        _ => (0..50).for_each(|_| {
            assert_eq!(f(&ramp(50 + i, i)).item::<f64>().unwrap(), want[i]);
            calls.fetch_add(1, Ordering::Relaxed);
        }),
    });
    assert_eq!(calls.into_inner(), 50 * THREADS / 2);
}

#[test]
fn a_panic_in_the_users_function_leaves_it_usable() {
    let f = jit(|x: &Array, fail: &Static<bool>| {
        assert!(!**fail, "the user's own panic");
        x + 1.0
    });
    let x = Array::from(1.0_f64);
    let results = at_once(|i| {
        let fail = i % 2 == 0;
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(&x, &Static(fail)).item::<f64>().unwrap()))
    });
    for (i, result) in results.into_iter().enumerate() {
        assert_eq!(result.ok(), (i % 2 == 1).then_some(2.0));
    }
    assert!(!gradus::extend::trace::is_tracing());
}
