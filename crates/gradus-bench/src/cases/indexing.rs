//! Places of arrays, an operation a case: what programs that index spend their time with. Small sizes stay in the first
//! caches, large ones do not.

use gradus::prelude::*;

use super::{Build, Call, Family, Group, Input, Measure, Peers, Targets, places, uniform};
use crate::tier::{Tier, call_into, into_buffers, stage};

/// How many are picked by `top_k`.
const MOST: usize = 10;

const VECTORS: &[&[usize]] = &[&[1_000], &[1_000_000]];
const MATRICES: &[&[usize]] = &[&[32, 32], &[1_000, 1_000]];
/// Rows and their width: narrow ones, and wide ones.
const ROWS: &[&[usize]] = &[&[1_000, 3], &[100_000, 3], &[100, 256], &[10_000, 256]];

type Inputs = fn(&[usize]) -> Vec<Input>;
type Outputs = fn(&[usize]) -> Vec<usize>;

fn elements(size: &[usize]) -> usize {
    size.iter().product()
}

fn family(
    name: &'static str,
    full: &'static [&'static [usize]],
    inputs: Inputs,
    outputs: Outputs,
    build: Build,
) -> Family {
    Family {
        name,
        group: Group::Indexing,
        dtypes: &[DType::F64],
        quick: &full[..1],
        full,
        tiny: if full[0].len() == 1 { &[12] } else { &[4, 12] },
        inputs,
        outputs,
        work: |size| elements(size) as f64,
        build,
        peers: Peers { c: true, jax: true, numpy: false },
        targets: Targets { c: Some([1.1; 2]), jax: Some([1.1; 2]), ..Targets::default() },
        measure: Measure::Calls,
    }
}

/// Of one array, by a call or (where true) into given buffers.
fn one(tier: Tier, x: Vec<Array>, f: fn(&Array) -> Array, into: bool) -> Call {
    let f = stage(tier, f);
    match into && call_into(tier).is_some() {
        true => into_buffers(f.compile(&x[0]).and_then(|c| c.prepared()), &x, &f(&x[0])),
        false => Call::new(move || f(&x[0])),
    }
}

/// Of two.
fn two(tier: Tier, x: Vec<Array>, f: fn(&Array, &Array) -> Array, into: bool) -> Call {
    let f = stage(tier, f);
    match into && call_into(tier).is_some() {
        true => into_buffers(f.compile(&x[0], &x[1]).and_then(|c| c.prepared()), &x, &f(&x[0], &x[1])),
        false => Call::new(move || f(&x[0], &x[1])),
    }
}

/// Uniform numbers.
fn numbers(size: &[usize]) -> Vec<Input> {
    vec![uniform(size, -1.0, 1.0)]
}

/// Numbers, and a place in their first axis for each.
fn with_places(size: &[usize]) -> Vec<Input> {
    vec![uniform(size, -1.0, 1.0), places(&size[..1], size[0])]
}

/// An operation as a call, at all sizes, and as one into given buffers at the smallest, where making an array takes longer than the operation.
macro_rules! operation {
    ($all:ident, $name:literal, $sizes:expr, $inputs:expr, $outputs:expr, $of:ident, $f:expr) => {
        $all.push(family($name, $sizes, $inputs, $outputs, |tier, _, x| $of(tier, x, $f, false)));
        let into = family(concat!($name, "_into"), $sizes, $inputs, $outputs, |tier, _, x| $of(tier, x, $f, true));
        $all.push(Family {
            full: into.quick,
            peers: Peers { jax: false, ..into.peers },
            measure: Measure::CallsInto,
            ..into
        });
    };
}

pub fn families() -> Vec<Family> {
    let same: Outputs = |size| vec![elements(size)];
    let rows: Outputs = |size| vec![size[0]];
    let both: Inputs = |size| vec![uniform(size, -1.0, 1.0), uniform(size, -1.0, 1.0)];
    let mut all = Vec::new();
    operation!(all, "take", VECTORS, with_places, same, two, |x, at| x.take(at, 0));
    operation!(all, "take_rows", ROWS, with_places, same, two, |x, at| x.take(at, 0));
    operation!(all, "scatter_add", VECTORS, with_places, same, two, |x, at| x.zeros_like().at(at).add(x));
    operation!(all, "scatter_add_rows", ROWS, with_places, same, two, |x, at| x.zeros_like().at(at).add(x));
    operation!(all, "argmin_rows", MATRICES, numbers, rows, one, |x| x.argmin_axis(1));
    operation!(all, "argmax_columns", MATRICES, numbers, |size| vec![size[1]], one, |x| x.argmax_axis(0));
    operation!(all, "cumsum_last", MATRICES, numbers, same, one, |x| x.cumsum(-1));
    operation!(all, "cumsum_first", MATRICES, numbers, same, one, |x| x.cumsum(0));
    operation!(all, "sort", VECTORS, numbers, same, one, |x| x.sort(-1));
    operation!(all, "sort_rows", MATRICES, numbers, same, one, |x| x.sort(-1));
    operation!(all, "top_k", MATRICES, numbers, |size| vec![size[0] * MOST], one, |x| x.top_k(MOST).0);
    operation!(all, "stack", VECTORS, both, |size| vec![2 * size[0]], two, |x, y| {
        Array::stack([&(x * 2.0), &(x + y)], -1)
    });
    operation!(all, "concatenate", MATRICES, both, |size| vec![2 * elements(size)], two, |x, y| {
        Array::concatenate([&(x * 2.0), &(x + y)], 1)
    });
    operation!(all, "pad", MATRICES, numbers, |size| vec![(size[0] + 2) * (size[1] + 2)], one, |x| {
        (x * 2.0).pad(&[(1, 1), (1, 1)], 0.0)
    });
    operation!(all, "transpose", MATRICES, numbers, same, one, |x| x.t());
    operation!(all, "transpose_rows", ROWS, numbers, same, one, |x| x.t());
    all
}
