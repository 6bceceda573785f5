//! Softmax, layer norm and log-sum-exp along rows, each with its gradient: reductions between elementwise parts.
//!
//! The value is a sum with weights, so that the gradient is not zero or constant.

use gradus::prelude::*;

use super::{Call, Family, Group, Input, Measure, Peers, Targets, uniform};
use crate::tier::{Tier, stage};

fn softmax(x: &Array, w: &Array) -> Array {
    (x.softmax(-1) * w).sum()
}

fn logsumexp(x: &Array, w: &Array) -> Array {
    (x.logsumexp_axes(-1) * w).sum()
}

/// The gradient is by the rows, the scale and the shift.
fn layer_norm((x, scale, shift): &(Array, Array, Array), w: &Array) -> Array {
    let centred = x - x.mean_keep(-1);
    let variance = (&centred * &centred).mean_keep(-1);
    let normal = centred / (variance + 1e-5_f64).sqrt();
    ((normal * scale + shift) * w).sum()
}

fn elements(size: &[usize]) -> f64 {
    (size[0] * size[1]) as f64
}

pub fn families() -> Vec<Family> {
    type Inputs = fn(&[usize]) -> Vec<Input>;
    type Outputs = fn(&[usize]) -> Vec<usize>;
    type Build = fn(Tier, &[usize], Vec<Array>) -> Call;
    let all: [(&'static str, Inputs, Outputs, Build); 3] = [
        (
            "softmax",
            |size| vec![uniform(size, -2.0, 2.0), uniform(size, -1.0, 1.0)],
            |size| vec![1, size[0] * size[1]],
            |tier, _, x| {
                let f = stage(tier, value_and_grad(softmax));
                Call::new(move || f(&x[0], &x[1]))
            },
        ),
        (
            "layer_norm",
            |size| {
                vec![
                    uniform(size, -2.0, 2.0),
                    uniform(&size[1..], 0.5, 1.5),
                    uniform(&size[1..], -0.5, 0.5),
                    uniform(size, -1.0, 1.0),
                ]
            },
            |size| vec![1, size[0] * size[1], size[1], size[1]],
            |tier, _, x| {
                let f = stage(tier, value_and_grad(layer_norm));
                let parameters = (x[0].clone(), x[1].clone(), x[2].clone());
                Call::new(move || f(&parameters, &x[3]))
            },
        ),
        (
            "logsumexp",
            |size| vec![uniform(size, -2.0, 2.0), uniform(&size[..1], -1.0, 1.0)],
            |size| vec![1, size[0] * size[1]],
            |tier, _, x| {
                let f = stage(tier, value_and_grad(logsumexp));
                Call::new(move || f(&x[0], &x[1]))
            },
        ),
    ];
    all.into_iter()
        .map(|(name, inputs, outputs, build)| Family {
            name,
            group: Group::Rows,
            dtypes: &[DType::F32, DType::F64],
            quick: &[&[32, 64]],
            full: &[&[256, 64], &[256, 256], &[256, 1024], &[256, 4096]],
            tiny: &[3, 5],
            inputs,
            outputs,
            work: elements,
            build,
            peers: Peers { c: true, jax: true, numpy: true },
            targets: Targets { c: Some([1.3, 1.3]), jax: Some([0.7, 0.7]), ..Targets::default() },
            measure: Measure::Calls,
        })
        .collect()
}
