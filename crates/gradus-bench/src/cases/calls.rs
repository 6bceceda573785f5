//! What is left when there is nothing to compute: the cost of a call, and of making code for long programs.

use gradus::prelude::*;

use super::{Call, Family, Group, Measure, Peers, Targets, uniform};
use crate::tier::{call_into, stage};

fn f(x: &Array) -> Array {
    (x * x).sin()
}

fn scalar_call() -> Family {
    Family {
        name: "call",
        group: Group::Call,
        dtypes: &[DType::F64],
        quick: &[&[]],
        full: &[&[]],
        tiny: &[],
        inputs: |_| vec![uniform(&[], 0.5, 1.5)],
        outputs: |_| vec![1],
        work: |_| 1.0,
        build: |tier, _, x| {
            let df = stage(tier, grad(f));
            Call::new(move || df(&x[0]))
        },
        peers: Peers { c: false, jax: true, numpy: false },
        targets: Targets { jax: Some([0.1, 0.1]), ns: Some(1_000.0), ..Targets::default() },
        measure: Measure::Calls,
    }
}

/// The same call into given buffers; `tier::call_into` has the place where it begins to exist.
fn scalar_call_into() -> Family {
    let mut family = scalar_call();
    family.name = "call_into";
    family.peers.jax = false;
    family.targets = Targets { ns: Some(150.0), ..Targets::default() };
    family.measure = Measure::CallsInto;
    family.build = |tier, size, x| match call_into(tier) {
        Some(make) => make(stage(tier, grad(f)), x[0].clone()),
        None => (scalar_call().build)(tier, size, x),
    };
    family
}

/// A chain of `n` operations, none of which can be left out or merged: three a round, each with a number of its own.
fn chain(x: &Array, n: usize) -> Array {
    let mut y = x.clone();
    for i in 0..n {
        y = match i % 3 {
            0 => y * x,
            1 => y + (0.5 + i as f64 * 1e-6),
            _ => y.sin(),
        };
    }
    y
}

fn compile_time() -> Family {
    Family {
        name: "chain",
        group: Group::Compile,
        dtypes: &[DType::F64],
        quick: &[&[100], &[300]],
        full: &[&[100], &[1_000], &[10_000], &[100_000]],
        tiny: &[10],
        inputs: |_| vec![uniform(&[], 0.5, 1.5)],
        outputs: |_| vec![1],
        work: |size| size[0] as f64,
        build: |tier, size, x| {
            let n = size[0];
            let f = stage(tier, move |x: &Array| chain(x, n));
            Call::new(move || f(&x[0]))
        },
        peers: Peers { c: false, jax: true, numpy: false },
        targets: Targets { jax: Some([0.1, 0.7]), ..Targets::default() },
        measure: Measure::FirstResult,
    }
}

pub fn families() -> Vec<Family> {
    vec![scalar_call(), scalar_call_into(), compile_time()]
}
