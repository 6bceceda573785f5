//! Every composition of `jit`, `grad` and `vmap`: the same numbers, and how often the Rust function runs, what is
//! compiled and what is kept. The table in `docs/book/src/composition.md` says the same in words.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gradus::cache::{clear_executables, executable_stats};
use gradus::inspect::Stats;
use gradus::prelude::*;

/// How often the Rust code of `f` ran.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// The counters belong to the process, so the tests of this file run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn f(x: &Array) -> Array {
    RUNS.fetch_add(1, Relaxed);
    (x * x).sin() * x
}

/// sin(x²)·x and its derivative sin(x²) + 2x² cos(x²), by hand.
fn value(x: f64) -> f64 {
    (x * x).sin() * x
}

fn slope(x: f64) -> f64 {
    (x * x).sin() + 2.0 * x * x * (x * x).cos()
}

const POINTS: [f64; 3] = [0.7, 1.1, -0.3];

/// Nothing compiled is left from other tests, and no other test counts meanwhile.
fn alone() -> MutexGuard<'static, ()> {
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    clear_executables();
    guard
}

/// What one call cost.
#[derive(Debug, PartialEq)]
struct Cost {
    /// Runs of the Rust function.
    runs: usize,
    /// Programs compiled by the process.
    compiles: u64,
}

const NOTHING: Cost = Cost { runs: 0, compiles: 0 };

/// Calls, checks the numbers, and says what it cost.
#[track_caller]
fn cost(call: impl FnOnce() -> Array, want: &[f64]) -> Cost {
    let before = (RUNS.load(Relaxed), executable_stats().compiles);
    let y = call().to_vec::<f64>().unwrap();
    let cost = Cost { runs: RUNS.load(Relaxed) - before.0, compiles: executable_stats().compiles - before.1 };
    let fits = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14;
    assert!(y.len() == want.len() && y.iter().zip(want).all(fits), "{y:?} where {want:?} is right");
    cost
}

/// The first call and three that follow it, at other points of the same type.
#[track_caller]
fn calls(call: impl Fn(&Array) -> Array, point: impl Fn(f64) -> (Array, Vec<f64>)) -> [Cost; 4] {
    [0.0, 0.25, 0.0, 0.5].map(|shift| {
        let (x, want) = point(shift);
        cost(|| call(&x), &want)
    })
}

fn one(want: fn(f64) -> f64) -> impl Fn(f64) -> (Array, Vec<f64>) {
    move |shift| (Array::from(POINTS[0] + shift), vec![want(POINTS[0] + shift)])
}

fn many(want: fn(f64) -> f64) -> impl Fn(f64) -> (Array, Vec<f64>) {
    move |shift| {
        let xs = POINTS.map(|x| x + shift);
        (Array::from(xs), xs.map(want).to_vec())
    }
}

/// Traces, compiles, hits, misses and entries.
fn counts(stats: Stats) -> (u64, u64, u64, u64, usize) {
    (stats.traces, stats.compiles, stats.hits, stats.misses, stats.entries)
}

#[test]
fn row_d5_grad_f_runs_the_function_at_every_call() {
    let _alone = alone();
    let g = grad(f);
    for cost in calls(|x| g(x), one(slope)) {
        assert_eq!(cost, Cost { runs: 1, compiles: 0 });
    }
    assert_eq!(g.stack(), "grad(f)");
    assert_eq!(counts(g.stats()), (4, 0, 0, 0, 0));
}

#[test]
fn row_d5_jit_grad_f_is_traced_and_compiled_once() -> Result<()> {
    let _alone = alone();
    let g = jit(grad(f));
    assert_eq!(calls(|x| g(x), one(slope)), [Cost { runs: 1, compiles: 1 }, NOTHING, NOTHING, NOTHING]);
    assert_eq!(g.stack(), "jit(grad(f))");
    assert_eq!(counts(g.stats()), (1, 1, 3, 1, 1));
    assert_eq!(g.trace(&Array::spec("f64[]"))?.program().count("call"), 0);
    // Another type is another program.
    let total = jit(grad(|x: &Array| f(x).sum()));
    let (x, y) = (Array::from(POINTS), Array::from([POINTS[0]]));
    assert_eq!(cost(|| total(&x), &POINTS.map(slope)), Cost { runs: 1, compiles: 1 });
    assert_eq!(cost(|| total(&y), &[slope(POINTS[0])]), Cost { runs: 1, compiles: 1 });
    assert_eq!(cost(|| total(&x), &POINTS.map(slope)), NOTHING);
    assert_eq!(counts(total.stats()), (2, 2, 1, 2, 2));
    Ok(())
}

#[test]
fn row_d5_grad_jit_f_keeps_the_call_and_compiles_each_half_once() -> Result<()> {
    let _alone = alone();
    let inner = Arc::new(jit(f));
    let staged = inner.clone();
    let g = grad(move |x: &Array| staged(x));
    // The forward half and the backward half.
    assert_eq!(calls(|x| g(x), one(slope)), [Cost { runs: 1, compiles: 2 }, NOTHING, NOTHING, NOTHING]);
    // `grad` itself looks at each call, and finds one operation: the call. What it makes of it is remembered.
    assert_eq!(counts(g.stats()), (4, 0, 0, 0, 0));
    let seen = inner.stats();
    assert_eq!((seen.traces, seen.hits, seen.misses, seen.entries), (1, 3, 1, 1));
    // The plain value has not been asked for so far.
    let x = Array::from(POINTS[0]);
    assert_eq!(cost(|| inner(&x), &[value(POINTS[0])]), Cost { runs: 0, compiles: 1 });
    // Each half of reverse mode is one call.
    let (_, pullback) = vjp(jit(f), &x);
    for half in [pullback.primal()?, pullback.program()?] {
        assert_eq!((half.equations().len(), half.count("call")), (1, 1), "{half}");
    }
    let g = grad(jit(f));
    assert_eq!(g.stack(), "grad(jit(f))");
    // A function of the same name and the same program is traced again, and its code is there.
    assert_eq!(calls(|x| g(x), one(slope)), [Cost { runs: 1, compiles: 0 }, NOTHING, NOTHING, NOTHING]);
    Ok(())
}

#[test]
fn row_d5_grad_jit_f_on_another_thread_compiles_nothing() {
    let _alone = alone();
    let g = Arc::new(grad(jit(f)));
    assert_eq!(cost(|| g(&Array::from(POINTS[0])), &[slope(POINTS[0])]), Cost { runs: 1, compiles: 2 });
    let there = g.clone();
    let other = std::thread::spawn(move || cost(|| there(&Array::from(POINTS[1])), &[slope(POINTS[1])]));
    assert_eq!(other.join().unwrap(), NOTHING);
}

#[test]
fn row_d5_jit_grad_jit_f_has_two_calls() -> Result<()> {
    let _alone = alone();
    let g = jit(grad(jit(f)));
    assert_eq!(calls(|x| g(x), one(slope)), [Cost { runs: 1, compiles: 1 }, NOTHING, NOTHING, NOTHING]);
    assert_eq!(g.stack(), "jit(grad(jit(f)))");
    assert_eq!(counts(g.stats()), (1, 1, 3, 1, 1));
    // One call for each half of the derivative, before the optimizer and after it.
    let traced = g.trace(&Array::spec("f64[]"))?;
    for program in [traced.program(), &traced.optimized()] {
        let names: Vec<&str> = program.equations().iter().map(|e| e.op().name()).collect();
        assert_eq!(names, ["call", "call"], "{program}");
    }
    Ok(())
}

#[test]
fn row_d5_jit_jit_f_is_a_program_with_a_call() -> Result<()> {
    let _alone = alone();
    let g = jit(jit(f));
    assert_eq!(calls(|x| g(x), one(value)), [Cost { runs: 1, compiles: 1 }, NOTHING, NOTHING, NOTHING]);
    assert_eq!(g.stack(), "jit(jit(f))");
    assert_eq!(counts(g.stats()), (1, 1, 3, 1, 1));
    let program = g.trace(&Array::spec("f64[]"))?.program().clone();
    assert_eq!((program.equations().len(), program.count("call")), (1, 1), "{program}");
    Ok(())
}

#[test]
fn row_d5_vmap_grad_f_runs_the_function_at_every_call() {
    let _alone = alone();
    let g = vmap(grad(f));
    // Once for the whole batch, not once for each example.
    for cost in calls(|x| g(x), many(slope)) {
        assert_eq!(cost, Cost { runs: 1, compiles: 0 });
    }
    assert_eq!(g.stack(), "vmap(grad(f))");
    assert_eq!(counts(g.stats()), (4, 0, 0, 0, 0));
}

#[test]
fn row_d5_vmap_jit_grad_f_batches_the_stored_program() {
    let _alone = alone();
    let inner = Arc::new(jit(grad(f)));
    let staged = inner.clone();
    let g = vmap(move |x: &Array| staged(x));
    assert_eq!(calls(|x| g(x), many(slope)), [Cost { runs: 1, compiles: 1 }, NOTHING, NOTHING, NOTHING]);
    let seen = inner.stats();
    // The batched program is compiled, the program of one example is not.
    assert_eq!((seen.traces, seen.compiles, seen.hits, seen.misses, seen.entries), (1, 0, 3, 1, 1));
    // Another number of examples: the function does not run, its program is batched and compiled once more.
    let more = Array::from([0.1_f64, 0.2, 0.3, 0.4]);
    let want = [0.1, 0.2, 0.3, 0.4].map(slope);
    assert_eq!(cost(|| g(&more), &want), Cost { runs: 0, compiles: 1 });
    assert_eq!(cost(|| g(&more), &want), NOTHING);
    assert_eq!(vmap(jit(grad(f))).stack(), "vmap(jit(grad(f)))");
}

#[test]
fn row_d5_jit_vmap_grad_f_is_traced_and_compiled_once() -> Result<()> {
    let _alone = alone();
    let g = jit(vmap(grad(f)));
    assert_eq!(calls(|x| g(x), many(slope)), [Cost { runs: 1, compiles: 1 }, NOTHING, NOTHING, NOTHING]);
    assert_eq!(g.stack(), "jit(vmap(grad(f)))");
    assert_eq!(counts(g.stats()), (1, 1, 3, 1, 1));
    assert_eq!(g.trace(&Array::spec("f64[3]"))?.program().count("call"), 0);
    // The number of examples is part of the type.
    assert_eq!(cost(|| g(&Array::from([0.1_f64])), &[slope(0.1)]), Cost { runs: 1, compiles: 1 });
    let inside = jit(vmap(jit(grad(f))));
    assert_eq!(calls(|x| inside(x), many(slope)), [Cost { runs: 1, compiles: 1 }, NOTHING, NOTHING, NOTHING]);
    assert_eq!(inside.trace(&Array::spec("f64[3]"))?.program().count("call"), 1);
    Ok(())
}

#[test]
fn row_d5_grad_vmap_f_runs_the_function_at_every_call() {
    let _alone = alone();
    // A gradient wants one number, so the batch is added up; each example's slope is its own.
    let total = |xs: &Array| vmap(f)(xs).sum();
    let g = grad(total);
    for cost in calls(|x| g(x), many(slope)) {
        assert_eq!(cost, Cost { runs: 1, compiles: 0 });
    }
    assert_eq!(counts(g.stats()), (4, 0, 0, 0, 0));
    let staged = jit(grad(total));
    assert_eq!(calls(|x| staged(x), many(slope)), [Cost { runs: 1, compiles: 1 }, NOTHING, NOTHING, NOTHING]);
    // What stands inside the closure is the closure's: the stack names the closure.
    assert_eq!(g.stack(), "grad(row_d5_grad_vmap_f_runs_the_function_at_every_call_closure)");
    assert_eq!(jacrev(vmap(f)).stack(), "jacrev(vmap(f))");
}

#[test]
fn row_d5_every_composition_gives_the_same_numbers() {
    let _alone = alone();
    type Slopes = Box<dyn Fn(&Array) -> Array>;
    let each = |g: Slopes| -> Slopes {
        Box::new(move |xs: &Array| {
            let all: Vec<f64> = xs.to_vec::<f64>().unwrap();
            Array::from(all.iter().map(|x| g(&Array::from(*x)).item::<f64>().unwrap()).collect::<Vec<f64>>())
        })
    };
    macro_rules! call {
        ($g:expr) => {{
            let g = $g;
            Box::new(move |x: &Array| g(x)) as Slopes
        }};
    }
    let all: Vec<Slopes> = vec![
        each(call!(grad(f))),
        each(call!(jit(grad(f)))),
        each(call!(grad(jit(f)))),
        each(call!(jit(grad(jit(f))))),
        each(call!(jit(jit(grad(jit(jit(f))))))),
        call!(vmap(grad(f))),
        call!(vmap(jit(grad(f)))),
        call!(vmap(grad(jit(f)))),
        call!(jit(vmap(grad(f)))),
        call!(jit(vmap(jit(grad(jit(f)))))),
        call!(grad(|xs: &Array| vmap(f)(xs).sum())),
        call!(jit(grad(|xs: &Array| vmap(jit(f))(xs).sum()))),
        call!(grad(|xs: &Array| f(xs).sum())),
        call!(|xs: &Array| jacrev(vmap(f))(xs).diagonal()),
        call!(|xs: &Array| jit(jacfwd(vmap(jit(f))))(xs).diagonal()),
    ];
    for g in &all {
        for _ in 0..2 {
            cost(|| g(&Array::from(POINTS)), &POINTS.map(slope));
        }
    }
}

#[test]
fn row_d5_every_composition_has_its_own_key() -> Result<()> {
    let _alone = alone();
    let x = Array::from(POINTS[0]);
    let xs = Array::from(POINTS);
    let stacks = [
        jit(f).stack(),
        grad(f).stack(),
        vmap(f).stack(),
        jit(grad(f)).stack(),
        grad(jit(f)).stack(),
        jit(grad(jit(f))).stack(),
        jit(jit(f)).stack(),
        vmap(jit(grad(f))).stack(),
        jit(vmap(grad(f))).stack(),
        vmap(grad(f)).stack(),
        jit(grad(grad(f))).stack(),
        jit(value_and_grad(f)).stack(),
        jit(vmap(vmap(f))).stack(),
    ];
    for (i, a) in stacks.iter().enumerate() {
        assert!(stacks[..i].iter().all(|b| a != b), "{a} twice");
    }
    // What `explain` shows: the composition, and the types that its program is kept for.
    let g = jit(vmap(grad(f)));
    g(&xs).to_vec::<f64>()?;
    let hit = g.explain(&xs).to_string();
    assert!(hit.starts_with("hit of `vmap_grad_f`\n  transformations: jit(vmap(grad(f)))\n"), "{hit}");
    assert!(hit.contains("argument 0: f64[3]"), "{hit}");
    assert!(!g.explain(&Array::from([1.0_f64])).is_hit());
    // Each composition keeps its own program: the same types do not make one serve the other.
    let (plain, first, second) = (jit(f), jit(grad(f)), jit(grad(grad(f))));
    let values = [&plain, &first, &second].map(|g| g(&x).item::<f64>().unwrap());
    assert!(values[0] != values[1] && values[1] != values[2]);
    for g in [&plain, &first, &second] {
        assert_eq!(counts(g.stats()), (1, 1, 0, 1, 1));
    }
    // Two of the same composition keep a program each and share its code.
    let again = jit(grad(f));
    assert_eq!(cost(|| again(&x), &[slope(POINTS[0])]), Cost { runs: 1, compiles: 0 });
    assert_eq!((again.stats().compiles, again.stats().shared), (0, 1));
    Ok(())
}
