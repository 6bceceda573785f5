//! What derivatives cost: transforming programs of growing size, gradients that are not staged, and the memory and time
//! of reverse mode through long loops. Prints medians, and peaks of the process's own allocator.

mod common;

use std::hint::black_box;
use std::time::{Duration, Instant};

use common::{median, ms};
use gradus::extend::transform;
use gradus::prelude::*;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The time of a run, and the most bytes that were live beyond those before it.
fn measured(f: impl FnOnce()) -> (Duration, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let started = Instant::now();
    f();
    (started.elapsed(), ALLOCATOR.peak_usage().saturating_sub(before))
}

/// A chain of elementwise operations: three equations a round.
fn chain(x: &Array, equations: usize) -> Array {
    let mut y = x.clone();
    for _ in 0..equations / 3 {
        y = (&y * x + x).sin();
    }
    y.sum()
}

fn transforming() -> Result<()> {
    println!("from a program to its derivatives");
    println!("{:>9} {:>12} {:>12} {:>15} {:>15}", "equations", "jvp", "gradient", "hessian-vector", "after optimizing");
    for n in [1_000usize, 10_000, 100_000] {
        let spec = Array::spec("f64[8]");
        let program = jit(move |x: &Array| chain(x, n)).trace(&spec)?.program().clone();
        let rounds = if n >= 100_000 { 3 } else { 7 };
        let forward = median(rounds, || drop(black_box(transform::jvp(&program, &[true]))));
        let gradient = median(rounds, || drop(black_box(transform::vjp(&program, &[true]))));
        // The gradient as one program, traced from a call of the program, and a tangent through it.
        let called = jit(grad(move |x: &Array| chain(x, n)));
        let whole = called.trace(&spec)?.program().clone();
        let second = median(rounds, || {
            drop(black_box(transform::vjp(&program, &[true])));
            drop(black_box(transform::jvp(&whole, &[true])));
        });
        let equations = called.trace(&spec)?.optimized().equations().len();
        println!(
            "{n:>9} {:>9.2} ms {:>9.2} ms {:>12.2} ms {:>7} equations",
            ms(forward),
            ms(gradient),
            ms(second),
            equations
        );
    }
    Ok(())
}

fn not_staged() -> Result<()> {
    println!("\ngradients that are not staged");
    let ten = |x: &Array| (((x * x).sin() + x).exp() * x).tanh().sqrt().log1p().cos() * 2.0_f64;
    let x = Array::from(1.5_f64);
    let eager = grad(ten);
    let tape = median(51, || (0..100).for_each(|_| drop(black_box(eager(&x)))));
    println!("grad of ten operations: {:.1} µs", tape.as_secs_f64() * 1e6 / 100.0);
    let called = grad(jit(ten));
    let tape = median(51, || (0..100).for_each(|_| drop(black_box(called(&x)))));
    println!("grad of the same function staged, a call that stays a call: {:.1} µs", tape.as_secs_f64() * 1e6 / 100.0);
    let staged = jit(grad(ten));
    let hit = median(51, || (0..100).for_each(|_| drop(black_box(staged(&x)))));
    println!("staged grad: {:.2} µs", hit.as_secs_f64() * 1e6 / 100.0);
    Ok(())
}

/// A damped wave of 64 elements, pushed once a step, with a force that is not linear: each step's state is needed.
fn wave(steps: Steps) -> impl Fn(&Array, &Array) -> Array + Clone + Send + Sync + 'static {
    move |x: &Array, pushes: &Array| {
        let options = ScanOptions::new().steps(steps);
        let step = |(u, v): &(Array, Array), push: &Array| {
            let force = u.roll(1, 0) + u.roll(-1, 0) - u * 2.0_f64 - u.sin();
            let v = v * 0.999_f64 + force * 0.1_f64 + push;
            ((u + &v * 0.1_f64, v), ())
        };
        let ((u, _), ()) = options.scan(step, (x.clone(), x.zeros_like()), pushes);
        (&u * &u).sum()
    }
}

fn long_scans() -> Result<()> {
    println!("\nreverse mode through a scan, two states of 64 f64 (1 kB together)");
    println!("{:>8} {:>12} {:>12} {:>14} {:>12}", "steps", "kept", "time", "peak bytes", "in states");
    let x = Array::from((0..64).map(|i| (i as f64 * 0.1).sin()).collect::<Vec<f64>>());
    for n in [1_000usize, 10_000, 100_000] {
        let pushes = Array::from_vec((0..n).map(|i| (i as f64 * 0.01).cos() * 1e-3).collect::<Vec<f64>>(), [n]);
        let root = (n as f64).sqrt() as usize;
        let mut first: Option<Vec<f64>> = None;
        for (name, steps) in
            [("every step", Steps::Keep), ("every root", Steps::Every(root)), ("recursive", Steps::Recursive)]
        {
            let compiled = jit(grad(wave(steps))).compile(&x, &pushes)?;
            let mut result = None;
            let (time, bytes) = measured(|| result = Some(compiled.call(&x, &pushes)));
            let gradient = result.transpose()?.map(|g| g.to_vec::<f64>()).transpose()?.unwrap_or_default();
            let want = first.get_or_insert_with(|| gradient.clone());
            let off = want.iter().zip(&gradient).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            println!(
                "{n:>8} {name:>12} {:>9.0} ms {bytes:>14} {:>12.1}   (gradients differ by {off:.1e})",
                ms(time),
                bytes as f64 / 1024.0
            );
        }
    }
    Ok(())
}

fn unbounded_loops() -> Result<()> {
    println!("\nreverse mode through a while loop, a state of 64 f64 (512 bytes)");
    let x = Array::from((0..64).map(|i| (i as f64 * 0.1).sin()).collect::<Vec<f64>>());
    for n in [1_000i64, 10_000] {
        for (name, history) in [
            ("8 states", History::Checkpoints(8)),
            ("32 states", History::Checkpoints(32)),
            ("every step", History::Limit(n as usize)),
        ] {
            let f = move |x: &Array, n: &Array| {
                let end = n.clone();
                let step = |(i, u): &(Array, Array)| (i + 1_i64, (u * 1.01_f64).sin());
                WhileOptions::new()
                    .history(history)
                    .while_loop(|(i, _): &(Array, Array)| i.lt(&end), step, (Array::from(0_i64), x.clone()))
                    .1
                    .sum()
            };
            let count = Array::from(n);
            let compiled = jit(grad(f)).compile(&x, &count)?;
            let (time, bytes) = measured(|| drop(black_box(compiled.call(&x, &count))));
            println!("{n:>8} steps {name:>12} {:>9.0} ms {bytes:>12} bytes", ms(time));
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    transforming()?;
    not_staged()?;
    long_scans()?;
    unbounded_loops()
}
