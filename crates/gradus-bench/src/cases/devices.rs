//! What devices are for: a training step, attention, long vectors and large products, and what a call costs by itself. Measured by the command `device`, beside
//! JAX on the same plugin.

use std::rc::Rc;

use gradus::devices::Precision;
use gradus::prelude::*;

use super::{Call, Family, Group, Input, Measure, Peers, Targets, uniform};
use crate::tier::{Tier, place, stage, with_precision};

/// The learning rate of the training step.
const RATE: f64 = 1e-3;
/// How many layers it has.
const LAYERS: usize = 4;
/// Arguments of the call with many of them.
const LEAVES: usize = 100;

const JAX: Peers = Peers { c: false, jax: true, numpy: false };

fn half(arrays: Vec<Array>) -> Vec<Array> {
    arrays.iter().map(|a| a.cast(DType::BF16)).collect()
}

fn as_given(arrays: Vec<Array>) -> Vec<Array> {
    arrays
}

/// A step of gradient descent through layers of `tanh`: weights, inputs, wanted outputs.
fn step(weights: &Vec<Array>, x: &Array, y: &Array) -> Vec<Array> {
    let loss = |weights: &Vec<Array>, x: &Array, y: &Array| {
        let h = weights.iter().fold(x.clone(), |h, w| h.dot(w).tanh());
        (h - y).square().mean()
    };
    let slopes = grad(loss)(weights, x, y);
    weights.iter().zip(&slopes).map(|(w, g)| w - g * RATE).collect()
}

fn training(tier: Tier, precision: Precision, arrays: Vec<Array>) -> Call {
    let f = with_precision(precision, || stage(tier, step));
    let (weights, x, y) = (arrays[..LAYERS].to_vec(), arrays[LAYERS].clone(), arrays[LAYERS + 1].clone());
    Call::new(move || f(&weights, &x, &y))
}

fn training_inputs(size: &[usize]) -> Vec<Input> {
    let bound = (3.0 / size[1] as f64).sqrt();
    let mut inputs = vec![uniform(&[size[1], size[1]], -bound, bound); LAYERS];
    inputs.extend([uniform(&[size[0], size[1]], -1.0, 1.0), uniform(&[size[0], size[1]], -1.0, 1.0)]);
    inputs
}

/// Attention by queries, keys and values, each of examples, heads, places and features.
fn attention((q, k, v): &(Array, Array, Array)) -> Array {
    let features = q.dim(-1).constant().unwrap_or(1) as f64;
    let scores = Array::einsum("bhqd,bhkd->bhqk", [q, k]) * features.sqrt().recip();
    let mixed = Array::einsum("bhqk,bhkd->bhqd", [&scores.softmax(-1), v]);
    mixed.square().cast(DType::F32).sum()
}

/// The sum over a long vector whose derivative has many functions in it.
fn long_sum(x: &Array) -> Array {
    let gelu = 0.5 * x * (1.0 + (0.7978845608028654 * (x + 0.044715 * x * x * x)).tanh());
    ((x.sin() * (-(x * x)).exp()).tanh() + gelu).sum()
}

struct Shown {
    name: &'static str,
    quick: &'static [&'static [usize]],
    full: &'static [&'static [usize]],
    inputs: fn(&[usize]) -> Vec<Input>,
    outputs: fn(&[usize]) -> Vec<usize>,
    build: fn(Tier, &[usize], Vec<Array>) -> Call,
    measure: Measure,
}

fn family(shown: Shown) -> Family {
    Family {
        name: shown.name,
        group: Group::Device,
        dtypes: &[DType::F32],
        quick: shown.quick,
        full: shown.full,
        tiny: shown.quick[0],
        inputs: shown.inputs,
        outputs: shown.outputs,
        work: |size| size.iter().product::<usize>() as f64,
        build: shown.build,
        peers: JAX,
        targets: Targets { jax: Some([1.03, 1.03]), ..Targets::default() },
        measure: shown.measure,
    }
}

macro_rules! training {
    ($name:literal, $precision:expr, $of:expr) => {
        family(Shown {
            name: $name,
            quick: &[&[8, 16]],
            full: &[&[8192, 4096]],
            inputs: training_inputs,
            outputs: |size| vec![size[1] * size[1]; LAYERS],
            build: |tier, _, arrays| training(tier, $precision, place(tier, $of(arrays))),
            measure: Measure::Calls,
        })
    };
}

macro_rules! attention {
    ($name:literal, $of:expr) => {
        family(Shown {
            name: $name,
            quick: &[&[2, 2, 8, 4]],
            full: &[&[16, 16, 2048, 64]],
            inputs: |size| vec![uniform(size, -1.0, 1.0); 3],
            outputs: |size| vec![size.iter().product(); 3],
            build: |tier, _, arrays| {
                let f = with_precision(Precision::Default, || stage(tier, grad(attention)));
                let given = place(tier, $of(arrays));
                let inputs = (given[0].clone(), given[1].clone(), given[2].clone());
                Call::new(move || f(&inputs))
            },
            measure: Measure::Calls,
        })
    };
}

/// Every family of this kind.
pub fn families() -> Vec<Family> {
    vec![
        training!("training", Precision::Default, as_given),
        training!("training_highest", Precision::Highest, as_given),
        training!("training_bf16", Precision::Default, half),
        attention!("attention", as_given),
        attention!("attention_bf16", half),
        family(Shown {
            name: "long_gradient",
            quick: &[&[100]],
            full: &[&[100_000_000]],
            inputs: |size| vec![uniform(size, -3.0, 3.0)],
            outputs: |size| vec![size[0]],
            build: |tier, _, arrays| {
                let (f, x) = (stage(tier, grad(long_sum)), place(tier, arrays));
                Call::new(move || f(&x[0]))
            },
            measure: Measure::Calls,
        }),
        family(Shown {
            name: "long_value_and_gradient",
            quick: &[&[100]],
            full: &[&[100_000_000]],
            inputs: |size| vec![uniform(size, -3.0, 3.0)],
            outputs: |size| vec![1, size[0]],
            build: |tier, _, arrays| {
                let (f, x) = (stage(tier, value_and_grad(long_sum)), place(tier, arrays));
                Call::new(move || f(&x[0]))
            },
            measure: Measure::Calls,
        }),
        family(Shown {
            name: "product_bf16",
            quick: &[&[16]],
            full: &[&[8192]],
            inputs: |size| vec![uniform(&[size[0], size[0]], -1.0, 1.0); 2],
            outputs: |size| vec![size[0] * size[0]],
            build: |tier, _, arrays| {
                let f = with_precision(Precision::Default, || stage(tier, |a: &Array, b: &Array| a.dot(b)));
                let arrays = place(tier, half(arrays));
                Call::new(move || f(&arrays[0], &arrays[1]))
            },
            measure: Measure::Calls,
        }),
        family(Shown {
            name: "small",
            quick: &[&[8]],
            full: &[&[8]],
            inputs: |size| vec![uniform(size, -1.0, 1.0)],
            outputs: |size| vec![size[0]],
            build: small,
            measure: Measure::Calls,
        }),
        family(Shown {
            name: "small_enqueued",
            quick: &[&[8]],
            full: &[&[8]],
            inputs: |size| vec![uniform(size, -1.0, 1.0)],
            outputs: |size| vec![size[0]],
            build: small,
            measure: Measure::Enqueued,
        }),
        family(Shown {
            name: "leaves_enqueued",
            quick: &[&[8]],
            full: &[&[8]],
            inputs: |size| vec![uniform(size, -1.0, 1.0); LEAVES],
            outputs: |size| vec![size[0]; LEAVES],
            build: |tier, _, arrays| {
                let f = stage(tier, |all: &Vec<Array>| all.iter().map(|a| a + 1.0).collect::<Vec<_>>());
                let arrays = Rc::new(place(tier, arrays));
                Call::new(move || f(&arrays))
            },
            measure: Measure::Enqueued,
        }),
    ]
}

fn small(tier: Tier, _: &[usize], arrays: Vec<Array>) -> Call {
    let (f, x) = (stage(tier, |x: &Array| x * 2.0 + 1.0), place(tier, arrays));
    Call::new(move || f(&x[0]))
}
