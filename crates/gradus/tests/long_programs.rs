//! Programs of any length run on small stacks: what a long main body keeps lies in the memory of its call.
//!
//! A stack that overflows ends the process, so what is called on a small one is called in a process of its own.

use std::process::Command;
use std::sync::Arc;
use std::thread;

use gradus::cpu::Cpu;
use gradus::prelude::*;
use gradus::{Interpreter, Verify};

const CHILD: &str = "GRADUS_TEST_CHILD";

/// Runs a test in a process of its own.
fn apart(name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    if std::env::var_os(CHILD).is_some() {
        return run();
    }
    let child =
        Command::new(std::env::current_exe().unwrap()).args(["--exact", name]).env(CHILD, "1").output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && said.contains("1 passed"), "{:?}\n{said}", child.status);
    Ok(())
}

/// Runs on a thread with so many KiB of stack.
fn on_stack<R: Send>(kib: usize, f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|s| thread::Builder::new().stack_size(kib << 10).spawn_scoped(s, f).unwrap().join().unwrap())
}

/// What a call needs besides the code: little, and the same for every program.
const SMALL: usize = 64;
/// Traces, passes and compilers of debug builds.
const LARGE: usize = 64 << 10;
/// Values of all of them are there when the derivative begins.
const STEPS: usize = 2000;

/// A straight line of so many steps.
fn line(x: &Array, y: &Array, steps: usize) -> Array {
    (0..steps).fold(y.clone(), |y, i| (&y * x + 0.001 * i as f64).sin() * y.cos())
}

fn bits(a: &Array) -> Result<u64> {
    Ok(a.item::<f64>()?.to_bits())
}

/// The same function in machine code of each tier, called on a small stack, and interpreted: the same bits.
fn same_on_small_stacks(f: impl Fn() -> Fun<(Array,), Array> + Sync) -> Result<()> {
    let x = Array::from(0.7_f64);
    let want = on_stack(LARGE, || bits(&jit(f()).backend(Interpreter)(&x)))?;
    for tier in [Tier::Embedded, Tier::Llvm] {
        // Held against the interpreter a call takes the stack that the interpreter takes.
        let code = jit(f()).backend(Cpu::new().contract(false).tier(tier)).verify_calls(Verify::Off);
        on_stack(LARGE, || code.compile(&x).map(drop))?;
        assert_eq!(on_stack(SMALL, || bits(&code(&x)))?, want, "{tier:?}");
    }
    Ok(())
}

#[test]
fn row_e4_a_straight_line_of_any_length_runs_on_a_small_stack() -> Result<()> {
    apart("row_e4_a_straight_line_of_any_length_runs_on_a_small_stack", || {
        same_on_small_stacks(|| grad(|x: &Array| line(x, x, STEPS)))
    })
}

#[test]
fn row_e4_a_loop_of_long_steps_runs_on_a_small_stack() -> Result<()> {
    apart("row_e4_a_loop_of_long_steps_runs_on_a_small_stack", || {
        let f = |x: &Array| {
            // Two that trade places, and one that goes around as it is.
            let init = (x.clone(), x * 2.0, x * 3.0);
            let step = |_: &Array, (a, b, c): &(Array, Array, Array)| {
                let factor = c.clone();
                (b.clone(), grad(move |y: &Array| line(&factor, y, STEPS))(a), c.clone())
            };
            let (a, b, c) = fori_loop(0, 3, step, init);
            a + b * c
        };
        same_on_small_stacks(move || jit(f))
    })
}

#[test]
fn row_e4_a_choice_of_long_branches_runs_on_a_small_stack() -> Result<()> {
    apart("row_e4_a_choice_of_long_branches_runs_on_a_small_stack", || {
        same_on_small_stacks(|| {
            grad(|x: &Array| {
                let long = |x: &Array| line(x, x, STEPS / 2);
                let other = |x: &Array| line(&x.cos(), x, STEPS / 4);
                cond(x.lt(0.5), long, other, x) * cond(x.gt(0.5), long, other, x)
            })
        })
    })
}

#[test]
fn row_e4_many_carries_go_around_on_a_small_stack() -> Result<()> {
    apart("row_e4_many_carries_go_around_on_a_small_stack", || {
        let f = |x: &Array| {
            let init: Vec<Array> = (0..STEPS * 2).map(|i| x * i as f64).collect();
            let step = |_: &Array, all: &Vec<Array>| {
                let mut next = all.clone();
                next.rotate_left(1);
                next[7] = &next[7] + &all[7].sin();
                next
            };
            let last = fori_loop(0, 5, step, init);
            &last[3] * &last[8]
        };
        same_on_small_stacks(move || jit(f))
    })
}

#[test]
fn calls_of_one_long_program_have_memory_of_their_own() -> Result<()> {
    let f = jit(grad(|x: &Array| line(x, x, STEPS)));
    let inputs: Vec<Array> = (0..8).map(|i| Array::from(0.3 + 0.1 * i as f64)).collect();
    on_stack(LARGE, || f.compile(&inputs[0]).map(drop))?;
    let want = inputs.iter().map(|x| bits(&f(x))).collect::<Result<Vec<u64>>>()?;
    thread::scope(|s| {
        for (x, want) in inputs.iter().zip(&want) {
            let f = &f;
            s.spawn(move || (0..50).for_each(|_| assert_eq!(bits(&f(x)).unwrap(), *want)));
        }
    });
    Ok(())
}

#[test]
fn a_long_program_may_be_called_while_it_runs() -> Result<()> {
    // The second half needs what the first half made before the call.
    fn around(x: &Array, call: impl Fn(&Array) -> Array) -> Array {
        let early: Vec<Array> = (0..STEPS).map(|i| (x * i as f64).sin()).collect();
        let middle = call(&line(x, x, 30));
        early.iter().fold(middle, |y, e| y * 0.5 + e)
    }
    let inner = Arc::new(jit(grad(|x: &Array| line(x, x, STEPS))));
    let called = inner.clone();
    let outer = jit(move |x: &Array| {
        let called = called.clone();
        let ty = Type::scalar(DType::F64);
        let call = move |a: &[Array]| Ok(vec![called(&a[0])]);
        around(x, move |y| pure_callback(call.clone(), std::slice::from_ref(&ty), &[y]).remove(0))
    });
    let x = Array::from(0.7_f64);
    let want = on_stack(LARGE, || around(&x, |y| inner(y)).item::<f64>())?;
    let have = on_stack(LARGE, || outer(&x).item::<f64>())?;
    assert!((want - have).abs() < 1e-9 * want.abs(), "{want} {have}");
    Ok(())
}

#[test]
fn a_prepared_call_of_a_long_program_has_its_frame_at_hand() -> Result<()> {
    let f = jit(grad(|x: &Array| line(x, x, STEPS)));
    let x = Array::from(0.7_f64);
    let (want, mut call) = on_stack(LARGE, || Ok::<_, Error>((f(&x).item::<f64>()?, f.compile(&x)?.prepared()?)))?;
    for _ in 0..3 {
        call.input::<f64>(0)?[0] = 0.7;
        call.run()?;
        assert_eq!(call.output::<f64>(0)?, [want]);
    }
    assert!(call.scratch_bytes() > 8 * STEPS, "{}", call.scratch_bytes());
    Ok(())
}
