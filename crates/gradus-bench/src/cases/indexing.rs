//! Places of arrays, an operation a case: what programs that index spend their time with. Small sizes stay in the first
//! caches, large ones do not.

use gradus::prelude::*;

use super::{Build, Call, Family, Group, Input, Measure, Peers, Targets, places, uniform};
use crate::tier::{Tier, stage};

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

/// Of one array.
fn one(tier: Tier, x: Vec<Array>, f: impl Fn(&Array) -> Array + Send + Sync + 'static) -> Call {
    let f = stage(tier, f);
    Call::new(move || f(&x[0]))
}

/// Of two.
fn two(tier: Tier, x: Vec<Array>, f: impl Fn(&Array, &Array) -> Array + Send + Sync + 'static) -> Call {
    let f = stage(tier, f);
    Call::new(move || f(&x[0], &x[1]))
}

/// Uniform numbers.
fn numbers(size: &[usize]) -> Vec<Input> {
    vec![uniform(size, -1.0, 1.0)]
}

/// Numbers, and a place in their first axis for each.
fn with_places(size: &[usize]) -> Vec<Input> {
    vec![uniform(size, -1.0, 1.0), places(&size[..1], size[0])]
}

pub fn families() -> Vec<Family> {
    let same: Outputs = |size| vec![elements(size)];
    let rows: Outputs = |size| vec![size[0]];
    vec![
        family("take", VECTORS, with_places, same, |tier, _, x| two(tier, x, |x, at| x.take(at, 0))),
        family("take_rows", ROWS, with_places, same, |tier, _, x| two(tier, x, |x, at| x.take(at, 0))),
        family("scatter_add", VECTORS, with_places, same, |tier, _, x| {
            two(tier, x, |x, at| x.zeros_like().at(at).add(x))
        }),
        family("scatter_add_rows", ROWS, with_places, same, |tier, _, x| {
            two(tier, x, |x, at| x.zeros_like().at(at).add(x))
        }),
        family("argmin_rows", MATRICES, numbers, rows, |tier, _, x| one(tier, x, |x| x.argmin_axis(1))),
        family(
            "argmax_columns",
            MATRICES,
            numbers,
            |size| vec![size[1]],
            |tier, _, x| one(tier, x, |x| x.argmax_axis(0)),
        ),
        family("cumsum_last", MATRICES, numbers, same, |tier, _, x| one(tier, x, |x| x.cumsum(-1))),
        family("cumsum_first", MATRICES, numbers, same, |tier, _, x| one(tier, x, |x| x.cumsum(0))),
        family("sort", VECTORS, numbers, same, |tier, _, x| one(tier, x, |x| x.sort(-1))),
        family("sort_rows", MATRICES, numbers, same, |tier, _, x| one(tier, x, |x| x.sort(-1))),
        family("top_k", MATRICES, numbers, |size| vec![size[0] * MOST], |tier, _, x| one(tier, x, |x| x.top_k(MOST).0)),
        family(
            "stack",
            VECTORS,
            |size| vec![uniform(size, -1.0, 1.0), uniform(size, -1.0, 1.0)],
            |size| vec![2 * size[0]],
            |tier, _, x| two(tier, x, |x, y| Array::stack([&(x * 2.0), &(x + y)], -1)),
        ),
        family(
            "concatenate",
            MATRICES,
            |size| vec![uniform(size, -1.0, 1.0), uniform(size, -1.0, 1.0)],
            |size| vec![2 * elements(size)],
            |tier, _, x| two(tier, x, |x, y| Array::concatenate([&(x * 2.0), &(x + y)], 1)),
        ),
        family(
            "pad",
            MATRICES,
            numbers,
            |size| vec![(size[0] + 2) * (size[1] + 2)],
            |tier, _, x| one(tier, x, |x| (x * 2.0).pad(&[(1, 1), (1, 1)], 0.0)),
        ),
        family("transpose", MATRICES, numbers, same, |tier, _, x| one(tier, x, |x| x.t())),
        family("transpose_rows", ROWS, numbers, same, |tier, _, x| one(tier, x, |x| x.t())),
    ]
}
