//! Functions inside of functions, as deep as they are let: an error where there are too many levels or too little stack, and every
//! transformation, pass and backend for all others. A stack that ends would end this whole process, which is how these tests fail.

use gradus::extend::optimize::{for_execution, optimize};
use gradus::extend::program::verify;
use gradus::extend::{interpret, transform};
use gradus::prelude::*;

/// A way to put a function of one array into another level.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    Fori,
    Scan,
    Map,
    While,
    Cond,
    Associative,
    Checkpoint,
    CustomJvp,
    CustomVjp,
    Jit,
    Vmap,
    Grad,
    Jvp,
    Vjp,
    Jacobian,
}

const LEVELS: [Level; 15] = [
    Level::Fori,
    Level::Scan,
    Level::Map,
    Level::While,
    Level::Cond,
    Level::Associative,
    Level::Checkpoint,
    Level::CustomJvp,
    Level::CustomVjp,
    Level::Jit,
    Level::Vmap,
    Level::Grad,
    Level::Jvp,
    Level::Vjp,
    Level::Jacobian,
];

/// Those that become a program inside of another.
const HOLDING: [Level; 9] = [
    Level::Fori,
    Level::Scan,
    Level::Map,
    Level::While,
    Level::Cond,
    Level::Checkpoint,
    Level::CustomJvp,
    Level::CustomVjp,
    Level::Jit,
];

/// `depth` levels around a sine.
fn nest(level: Level, depth: usize, x: &Array) -> Array {
    if depth == 0 {
        return x.sin();
    }
    let inner = move |x: &Array| nest(level, depth - 1, x);
    match level {
        Level::Fori => fori_loop(0, 1, |_, x: &Array| inner(x), x.clone()),
        Level::Scan => scan(|c: &Array, _: &Array| (inner(c), c.clone()), x.clone(), &Array::from([1.0_f64])).0,
        Level::Map => gradus::map(inner, &x.reshape([1])).index(0),
        Level::While => {
            let more = |(i, _): &(Array, Array)| i.lt(1_i64);
            let step = |(i, x): &(Array, Array)| (i + 1_i64, inner(x));
            while_loop(more, step, (Array::from(0_i64), x.clone())).1
        }
        Level::Cond => cond(x.gt(-100.0_f64), inner, |x| x.clone(), x),
        Level::Associative => {
            let two = Array::stack([x, x], 0);
            associative_scan(|a: &Array, _: &Array| inner(a), &two).index(1)
        }
        Level::Checkpoint => checkpoint(inner)(x),
        Level::CustomJvp => custom_jvp(inner, |x: &Array, x_dot: &Array| (x.sin(), x.cos() * x_dot))(x),
        Level::CustomVjp => {
            custom_vjp(inner, |x: &Array| (x.sin(), x.cos()), |cos: &Array, y_bar: &Array| cos * y_bar)(x)
        }
        Level::Jit => jit(inner)(x),
        Level::Vmap => vmap(inner)(&x.reshape([1])).index(0),
        Level::Grad => grad(inner)(x),
        Level::Jvp => jvp(inner, x, &x.ones_like()).0,
        Level::Vjp => vjp(inner, x).0,
        Level::Jacobian => jacfwd(inner)(x),
    }
}

/// Runs something on a thread of its own with so many KB of stack.
fn on_stack<T: Send + 'static>(kilobytes: usize, f: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(kilobytes << 10).spawn(f).unwrap().join().unwrap()
}

/// The usual stack of a thread.
const USUAL: usize = 2048;

/// Stacks that are smaller than usual. Where nobody can say how much of one is left there is only the bound on levels, which is made for the
/// usual one.
const SMALL: &[usize] = if cfg!(target_os = "linux") { &[1024, 512, 256, 128] } else { &[] };

fn refused(level: Level, e: &Error) {
    let text = e.to_string();
    assert!(matches!(e.kind(), ErrorKind::Size | ErrorKind::Verify), "{level:?}: {text}");
    assert!(e.place().file().is_some_and(|f| f.ends_with("nesting.rs")), "{level:?}: {text}");
    assert!(e.way_out().is_some(), "{level:?}: {text}");
}

#[test]
fn five_hundred_levels_are_an_error_on_every_stack() {
    for level in LEVELS {
        for &stack in [USUAL].iter().chain(SMALL) {
            let e = on_stack(stack, move || {
                let staged = jit(move |x: &Array| nest(level, 500, x));
                staged(&Array::from(0.5_f64)).item::<f64>()
            });
            refused(level, &e.unwrap_err());
        }
    }
}

#[test]
fn five_hundred_levels_outside_of_any_trace_are_an_error() {
    // What runs as it is outside of a trace is the user's own recursion: it has the stack that the user gave it.
    let plain = [Level::Checkpoint, Level::CustomJvp, Level::CustomVjp];
    for level in LEVELS.into_iter().filter(|l| !plain.contains(l)) {
        let e = on_stack(USUAL, move || nest(level, 500, &Array::from(0.5_f64)).item::<f64>());
        refused(level, &e.unwrap_err());
    }
}

#[test]
fn a_thread_is_as_good_as_before_after_an_error() {
    on_stack(USUAL, || {
        for level in LEVELS {
            let x = Array::from(0.5_f64);
            assert!(jit(move |x: &Array| nest(level, 100, x))(&x).item::<f64>().is_err());
            assert!(jit(move |x: &Array| nest(level, 2, x))(&x).item::<f64>().is_ok(), "{level:?}");
        }
    });
}

/// A result whose type does not say where its arrays are.
fn listed(depth: usize, x: &Array) -> Vec<Array> {
    if depth == 0 {
        return vec![x.sin(), x.cos()];
    }
    gradus::map(|x| listed(depth - 1, x), &x.reshape([1]))
}

#[test]
fn a_structure_that_only_the_function_knows_is_an_error_or_a_panic_and_never_the_end_of_the_process() {
    let run = |depth: usize| {
        on_stack(USUAL, move || {
            std::panic::catch_unwind(|| listed(depth, &Array::from(0.5_f64))[0].sum().item::<f64>())
        })
    };
    refused(Level::Cond, &run(80).unwrap().unwrap_err());
    let panic = run(500).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("G0005") && text.contains("nesting.rs"), "{text}");
    assert_eq!(run(10).unwrap().unwrap(), 0.5_f64.sin());
}

/// The deepest that a level can be put around others.
fn deepest(level: Level) -> usize {
    let fits = |n: &usize| {
        let n = *n;
        on_stack(8 * USUAL, move || jit(move |x: &Array| nest(level, n, x)).trace(&Array::from(0.5_f64)).is_ok())
    };
    (1..=64).rev().find(fits).unwrap()
}

#[test]
fn what_is_as_deep_as_can_be_runs_prints_reads_back_and_is_transformed() {
    let x = || Array::from(0.5_f64);
    for level in HOLDING {
        let depth = deepest(level);
        assert!(depth >= 40, "{level:?}: {depth}");
        on_stack(USUAL, move || {
            let f = move |x: &Array| nest(level, depth, x);
            let traced = jit(f).trace(&x()).unwrap();
            let program = traced.program().clone();
            let text = program.to_string();
            assert_eq!(text.parse::<Program>().unwrap(), program, "{level:?}");
            let want = 0.5_f64.sin();
            assert_eq!(jit(f)(&x()).item::<f64>().unwrap(), want, "{level:?}");
            assert_eq!(jit(f).backend(gradus::Interpreter)(&x()).item::<f64>().unwrap(), want, "{level:?}");
        });
    }
}

/// Takes time in proportion to the program, too: a loop that asked each time anew what depends on what took twice as long for each level.
#[test]
fn derivatives_and_batches_of_what_is_deep() {
    for level in HOLDING {
        // A derivative is a level itself; that of a `while` puts three loops where one was.
        let depth = if level == Level::While { 16 } else { deepest(level) - 2 };
        on_stack(USUAL, move || {
            let f = move |x: &Array| nest(level, depth, x);
            let x = Array::from(0.5_f64);
            let slope = jit(grad(f))(&x).item::<f64>().unwrap();
            assert!((slope - 0.5_f64.cos()).abs() < 1e-12, "{level:?}: {slope}");
            let batch = jit(vmap(f))(&Array::from([0.5_f64, 0.25])).to_vec::<f64>().unwrap();
            assert_eq!(batch, [0.5_f64.sin(), 0.25_f64.sin()], "{level:?}");
        });
    }
}

#[test]
fn a_derivative_that_nests_too_deep_names_the_users_line() {
    let e = on_stack(USUAL, || jit(grad(|x: &Array| nest(Level::While, 40, x)))(&Array::from(0.5_f64)).item::<f64>());
    refused(Level::While, &e.unwrap_err());
}

/// Everything that goes down with programs, on stacks that are too small for some of it: a result or an error.
#[test]
fn what_is_as_deep_as_can_be_on_a_small_stack_is_no_end_of_the_process() {
    for level in HOLDING {
        let depth = deepest(level);
        let traced = on_stack(USUAL, move || {
            jit(move |x: &Array| nest(level, depth, x)).trace(&Array::from(0.5_f64)).unwrap().program().clone()
        });
        for &stack in SMALL {
            let p = traced.clone();
            on_stack(stack, move || {
                let refused = |e: Option<Error>| assert!(e.is_none_or(|e| e.kind() == ErrorKind::Size));
                let read = p.to_string().parse::<Program>();
                assert!(read.as_ref().map_or(true, |read| *read == p));
                refused(read.err());
                refused(verify(&p).err());
                refused(optimize(&p).err());
                refused(for_execution(&p, Exactness::Exact).err());
                refused(interpret(&p, &[Array::from(0.5_f64)]).err());
                refused(transform::jvp(&p, &[true]).err());
                refused(transform::vjp(&p, &[true]).err());
                refused(transform::vmap(&p, &[true], &Dim::from(2_usize)).err());
            });
        }
    }
}
