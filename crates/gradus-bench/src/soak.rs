//! What only long runs show: memory that grows. Millions of calls of several kinds, with programs made and dropped on the way,
//! and how much memory the process has at intervals. And what a process pays before its first result, phase by phase.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gradus::cache::{clear_executables, executable_stats};
use gradus::prelude::*;

use crate::Result;

/// Calls between two times that programs are made anew and everything kept is dropped.
const ROUND: u64 = 20_000;
/// One of so many calls fails.
const FAILING: u64 = 64;
/// Bytes that memory may grow by from a tenth of the run to its end: allocators keep some for themselves.
const SLACK: usize = 24 << 20;

/// Memory of this process that is in use, in bytes; none where the system does not say.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib << 10)
}

fn network(w: &(Array, Array), x: &Array) -> Array {
    (x.dot(&w.0).tanh().dot(&w.1) - 1.0).square().mean()
}

type Step = Box<dyn Fn(u64) -> gradus::Result<f64>>;

/// The kinds of calls. `version` makes their programs new ones.
fn kinds(version: u64) -> Vec<(&'static str, Step)> {
    let v = version as f64 * 1e-6;
    let small = jit(move |x: &Array| (x * (1.0 + v)).sin().sum());
    let gradient = jit(grad(move |w: &(Array, Array), x: &Array| network(w, x) * (1.0 + v)));
    let steps =
        jit(move |x: &Array| while_loop(|s: &Array| s.lt(10.0), move |s: &Array| s * (1.5 + v) + 1.0, x.clone()));
    let guarded = jit(move |x: &Array| if x.item::<f64>().unwrap_or(0.0) > 0.5 { x * (2.0 + v) } else { x - 1.0 })
        .mode(Mode::Concrete);
    let wrong = jit(move |x: &Array| x + Array::ones::<f64>([3]) * (1.0 + v));
    let sized = jit(grad(move |x: &Array| (x * (1.0 + v)).tanh().mean())).symbolic("f64[N]");
    let (x, w) = (Array::ones::<f64>([4]), (Array::ones::<f64>([8, 8]), Array::ones::<f64>([8, 1])));
    let (batch, narrow) = (Array::ones::<f64>([16, 8]), Array::ones::<f64>([2]));
    vec![
        ("small", Box::new(move |_| small(&x).item::<f64>())),
        ("gradient", Box::new(move |_| gradient(&w, &batch).0.sum().item::<f64>())),
        ("loop", Box::new(move |i| steps(&Array::from((i % 7) as f64)).item::<f64>())),
        ("symbolic", Box::new(move |i| sized(&Array::ones::<f64>([1 + (i % 37) as usize])).sum().item::<f64>())),
        ("guarded", Box::new(move |i| guarded(&Array::from((i % 2) as f64)).item::<f64>())),
        // Two and three elements do not go together: the call fails, every time.
        ("failing", Box::new(move |_| wrong(&narrow).sum().item::<f64>())),
    ]
}

/// So many calls. False if memory grew.
pub fn run(calls: u64) -> Result<bool> {
    let started = Instant::now();
    // Programs are made anew on purpose, and the functions that fail are meant to.
    gradus::warnings::set_warning_handler(|_| {});
    let marks: Vec<u64> = [1, 10, 25, 50, 75, 100].iter().map(|percent| calls * percent / 100).collect();
    let (mut done, mut failed, mut versions, mut sum) = (0u64, 0u64, 0u64, 0.0);
    let mut seen: Vec<(u64, usize)> = Vec::new();
    while done < calls {
        let kinds = kinds(versions % 1000);
        versions += 1;
        let (fails, works) = kinds.split_last().ok_or("there are no kinds of calls")?;
        for _ in 0..ROUND.min(calls - done) {
            let step = if done % FAILING == FAILING - 1 { fails } else { &works[done as usize % works.len()] };
            match (step.1)(done) {
                Ok(value) => sum += value,
                Err(_) if step.0 == "failing" => failed += 1,
                Err(e) => return Err(format!("a call of `{}` failed: {e}", step.0).into()),
            }
            done += 1;
            if marks.contains(&done) {
                let bytes = resident().unwrap_or(0);
                let code = executable_stats();
                println!(
                    "{done:>10} calls {:>7.1} s  {:>7.1} MiB resident, {} programs of {} bytes kept, {} compiled",
                    started.elapsed().as_secs_f64(),
                    bytes as f64 / f64::from(1 << 20),
                    code.entries,
                    code.bytes,
                    code.compiles,
                );
                seen.push((done, bytes));
            }
        }
        drop(kinds);
        clear_executables();
    }
    println!("{failed} calls failed as they should, {versions} rounds of new programs, the sum of all is {sum}");
    let at = |percent: u64| seen.iter().find(|(n, _)| *n == calls * percent / 100).map_or(0, |(_, bytes)| *bytes);
    let flat = at(100) <= at(10) + SLACK;
    if !flat {
        eprintln!("memory grew from {} to {} bytes", at(10), at(100));
    }
    Ok(flat)
}

/// The phases that a process goes through before its first results, added up over functions of several sizes.
pub fn start() -> Result<bool> {
    let began = Instant::now();
    let mut times: BTreeMap<&'static str, Duration> = BTreeMap::new();
    let mut add = |phases: gradus::inspect::Phases| {
        for p in phases.iter() {
            *times.entry(p.name).or_default() += p.time;
        }
    };
    let x = Array::ones::<f32>([32, 64]);
    let w: Vec<Array> = (0..6).map(|_| Array::full([64, 64], 0.01_f32)).collect();
    let deep = |w: &Vec<Array>, x: &Array| w.iter().fold(x.clone(), |h, w| h.dot(w).tanh()).square().mean();
    add(jit(value_and_grad(deep)).phases(&w, &x)?);
    let attention = |w: &Vec<Array>, x: &Array| {
        let (q, k, v) = (x.dot(&w[0]), x.dot(&w[1]), x.dot(&w[2]));
        let mixed = (q.dot(&k.t()) * 0.125_f32).softmax(1).dot(&v);
        (x + mixed.dot(&w[3])).square().mean()
    };
    add(jit(value_and_grad(attention)).phases(&w, &x)?);
    let wave = |x: &Array| fori_loop(0, 50, |_, y: &Array| y.sin() * 0.9_f32 + y.cos() * 0.1_f32, x.clone()).sum();
    add(jit(grad(wave)).phases(&x)?);
    add(jit(|x: &Array| (x.exp() + x.lgamma()).softmax(1)).phases(&x)?);
    for (name, time) in &times {
        println!("{name:<24} {:>9.2} ms", time.as_secs_f64() * 1e3);
    }
    println!("{:<24} {:>9.2} ms", "all, with the process", began.elapsed().as_secs_f64() * 1e3);
    if let Some(disk) = gradus::cache::disk_cache_stats() {
        println!("disk: {} loaded, {} stored, {} entries, {} bytes", disk.loads, disk.stores, disk.entries, disk.bytes);
    }
    Ok(true)
}
