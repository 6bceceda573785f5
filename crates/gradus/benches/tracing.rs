//! What staging costs: tracing, verifying and optimizing programs of growing size; a call that finds its program ready;
//! eager operations beside plain loops. Prints medians.

mod common;

use std::hint::black_box;

use common::{median, ms};
use gradus::extend::optimize::optimize;
use gradus::extend::program::verify;
use gradus::prelude::*;

/// A chain of elementwise operations: three equations a round.
fn chain(x: &Array, equations: usize) -> Array {
    let mut y = x.clone();
    for _ in 0..equations / 3 {
        y = (&y * x + x).sin();
    }
    y
}

fn main() -> Result<()> {
    println!(
        "{:>9} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}",
        "equations", "trace", "verify", "optimize", "total", "ns each", "bytes each"
    );
    for n in [1_000usize, 10_000, 100_000, 1_000_000] {
        let rounds = if n >= 100_000 { 3 } else { 11 };
        let stage = jit(move |x: &Array| chain(x, n));
        let spec = Array::spec("f64[8]");
        let program = stage.trace(&spec)?.program().clone();
        let trace = median(rounds, || drop(black_box(stage.trace(&spec))));
        let check = median(rounds, || drop(black_box(verify(&program))));
        let better = median(rounds, || drop(black_box(optimize(&program))));
        let total = trace + check + better;
        let count = program.equations().len();
        println!(
            "{count:>9} {:>7.2} ms {:>7.2} ms {:>7.2} ms {:>7.2} ms {:>8.0} {:>9}",
            ms(trace),
            ms(check),
            ms(better),
            ms(total),
            total.as_secs_f64() * 1e9 / count as f64,
            program.bytes() / count
        );
    }

    println!("\ncalls");
    let f = |x: &Array| (x * x).sin();
    let staged = jit(f);
    let x = Array::from(1.5_f64);
    let calls = 1000;
    let hit = median(21, || (0..calls).for_each(|_| drop(black_box(staged(&x)))));
    println!("a staged call that finds its program: {:.0} ns", hit.as_secs_f64() * 1e9 / calls as f64);

    println!("\neager operations on 1e6 f64 beside a plain loop that also makes a vector");
    let a: Vec<f64> = (0..1_000_000).map(|i| i as f64 * 1e-6).collect();
    let b: Vec<f64> = a.iter().map(|v| v + 1.0).collect();
    let (x, y) = (Array::from(a.clone()), Array::from(b.clone()));
    let rows: [(&str, Box<dyn Fn()>, Box<dyn Fn()>); 3] = [
        (
            "x + y",
            Box::new({
                let (x, y) = (x.clone(), y.clone());
                move || drop(black_box(&x + &y))
            }),
            Box::new({
                let (a, b) = (a.clone(), b.clone());
                move || drop(black_box(a.iter().zip(&b).map(|(a, b)| a + b).collect::<Vec<f64>>()))
            }),
        ),
        (
            "x * 3",
            Box::new({
                let x = x.clone();
                move || drop(black_box(&x * 3.0_f64))
            }),
            Box::new({
                let a = a.clone();
                move || drop(black_box(a.iter().map(|a| a * 3.0).collect::<Vec<f64>>()))
            }),
        ),
        (
            "sin x",
            Box::new({
                let x = x.clone();
                move || drop(black_box(x.sin()))
            }),
            Box::new({
                let a = a.clone();
                move || drop(black_box(a.iter().map(|a| a.sin()).collect::<Vec<f64>>()))
            }),
        ),
    ];
    for (name, ours, plain) in rows {
        // Interleaved, so that both meet the same noise.
        let (mut o, mut p) = (Vec::new(), Vec::new());
        for _ in 0..15 {
            o.push(median(1, &ours));
            p.push(median(1, &plain));
        }
        o.sort();
        p.sort();
        println!(
            "{name}: {:.2} ms, plain {:.2} ms, ratio {:.2}",
            ms(o[7]),
            ms(p[7]),
            o[7].as_secs_f64() / p[7].as_secs_f64()
        );
    }
    Ok(())
}
