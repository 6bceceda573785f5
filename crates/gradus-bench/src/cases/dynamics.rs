//! The Lorenz system over many steps: loops with a few scalars as state, forward and backward.
//!
//! The step is so small that the whole run covers ten units of time. Over more, the system's chaos would let peers
//! that round differently end in different places.

use gradus::prelude::*;

use super::{Call, Family, Group, Input, Measure, Peers, Targets, uniform};
use crate::tier::stage;

/// The time that a run covers.
pub const TIME: f64 = 10.0;

type State = (Array, Array, Array);

fn slope((x, y, z): &State) -> State {
    ((y - x) * 10.0_f64, x * (28.0_f64 - z) - y, x * y - z * (8.0_f64 / 3.0))
}

fn moved(s: &State, k: &State, h: f64) -> State {
    (&s.0 + &k.0 * h, &s.1 + &k.1 * h, &s.2 + &k.2 * h)
}

fn step(s: &State, h: f64) -> State {
    let k1 = slope(s);
    let k2 = slope(&moved(s, &k1, h / 2.0));
    let k3 = slope(&moved(s, &k2, h / 2.0));
    let k4 = slope(&moved(s, &k3, h));
    let sum = |a: &Array, b: &Array, c: &Array, d: &Array| a + (b + c) * 2.0_f64 + d;
    let k = (sum(&k1.0, &k2.0, &k3.0, &k4.0), sum(&k1.1, &k2.1, &k3.1, &k4.1), sum(&k1.2, &k2.2, &k3.2, &k4.2));
    moved(s, &k, h / 6.0)
}

fn parts(x: &Array) -> State {
    (x.index(0), x.index(1), x.index(2))
}

/// The last state.
fn run(x: &Array, steps: usize) -> State {
    let h = TIME / steps as f64;
    fori_loop(0, steps as i64, |_, s: &State| step(s, h), parts(x))
}

/// The sum of the last state, through a scan that reverse mode can go back through.
fn end(x: &Array, steps: usize) -> Array {
    let h = TIME / steps as f64;
    let options = ScanOptions::new().length(steps);
    let (s, ()) = options.scan(|s: &State, (): &()| (step(s, h), ()), parts(x), &());
    s.0 + s.1 + s.2
}

fn start(_: &[usize]) -> Vec<Input> {
    vec![uniform(&[3], 0.5, 1.5)]
}

fn steps(size: &[usize]) -> f64 {
    size[0] as f64
}

pub fn families() -> Vec<Family> {
    let family = |name, outputs, build, jax: f64| Family {
        name,
        group: Group::Lorenz,
        dtypes: &[DType::F64],
        quick: &[&[2_000]],
        full: &[&[1_000_000]],
        tiny: &[2_000],
        inputs: start,
        outputs,
        work: steps,
        build,
        peers: Peers { c: true, jax: true, numpy: false },
        targets: Targets { c: Some([1.25, 1.05]), jax: Some([jax, jax]), ..Targets::default() },
        measure: Measure::Calls,
    };
    vec![
        family(
            "lorenz",
            |_| vec![1, 1, 1],
            |tier, size, x| {
                let n = size[0];
                let f = stage(tier, move |x: &Array| run(x, n));
                Call::new(move || f(&x[0]))
            },
            1.0,
        ),
        family(
            "lorenz_gradient",
            |_| vec![1, 3],
            |tier, size, x| {
                let n = size[0];
                let f = stage(tier, value_and_grad(move |x: &Array| end(x, n)));
                Call::new(move || f(&x[0]))
            },
            0.5,
        ),
    ]
}
