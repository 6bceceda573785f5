//! A training step of a perceptron and a recurrent network with its gradient: what programs of this kind are for.

use std::rc::Rc;

use gradus::prelude::*;

use super::{Call, Family, Group, Input, Measure, Peers, Targets, one_hot, uniform};
use crate::tier::{scratch_bytes, stage};

/// Weights and biases of three layers.
pub type Parameters = Vec<Array>;

const LAYERS: usize = 3;
/// Adam's step length, the memories of its two moments, and what keeps it from dividing by zero.
pub const ADAM: (f64, f64, f64, f64) = (1e-3, 0.9, 0.999, 1e-8);

/// Mean cross entropy of the classes.
fn loss(parameters: &Parameters, x: &Array, labels: &Array) -> Array {
    let mut h = x.clone();
    for i in 0..LAYERS {
        h = h.dot(&parameters[2 * i]) + &parameters[2 * i + 1];
        if i + 1 < LAYERS {
            h = h.relu();
        }
    }
    -(h.log_softmax(-1) * labels).sum_axes(-1).mean()
}

type Trained = (Array, Parameters, Parameters, Parameters);

/// One step of Adam: the loss, the parameters and both moments. `t` counts the steps from one.
fn train(
    parameters: &Parameters,
    (m, v): &(Parameters, Parameters),
    t: &Array,
    (x, labels): &(Array, Array),
) -> Trained {
    let (rate, b1, b2, eps) = ADAM;
    let (l, g) = value_and_grad(loss)(parameters, x, labels);
    let scale = |b: f64| 1.0_f64 - (t * b.ln()).exp();
    let (c1, c2) = (scale(b1), scale(b2));
    let m: Parameters = m.iter().zip(&g).map(|(m, g)| m * b1 + g * (1.0 - b1)).collect();
    let v: Parameters = v.iter().zip(&g).map(|(v, g)| v * b2 + g * g * (1.0 - b2)).collect();
    let moved = |((p, m), v): ((&Array, &Array), &Array)| p - m / &c1 * rate / ((v / &c2).sqrt() + eps);
    let parameters = parameters.iter().zip(&m).zip(&v).map(moved).collect();
    (l, parameters, m, v)
}

/// Sizes: batch, then the width of each layer.
fn shapes(size: &[usize]) -> Vec<Vec<usize>> {
    size[1..].windows(2).flat_map(|w| [vec![w[0], w[1]], vec![w[1]]]).collect()
}

fn perceptron_inputs(size: &[usize]) -> Vec<Input> {
    let mut inputs: Vec<Input> = shapes(size)
        .iter()
        .map(|s| {
            let bound = (3.0 / s[0] as f64).sqrt();
            uniform(s, -bound, bound)
        })
        .collect();
    inputs.extend(shapes(size).iter().map(|s| uniform(s, -0.001, 0.001)));
    inputs.extend(shapes(size).iter().map(|s| uniform(s, 1e-5, 1e-4)));
    inputs.push(uniform(&[], 3.0, 3.0));
    inputs.push(uniform(&[size[0], size[1]], 0.0, 1.0));
    inputs.push(one_hot(&[size[0], size[size.len() - 1]]));
    inputs
}

fn perceptron() -> Family {
    Family {
        name: "perceptron",
        group: Group::Perceptron,
        dtypes: &[DType::F32],
        quick: &[&[16, 28, 32, 32, 10]],
        full: &[&[128, 784, 512, 512, 10]],
        tiny: &[2, 3, 4, 3, 2],
        inputs: perceptron_inputs,
        outputs: |size| {
            let parameters = || shapes(size).into_iter().map(|s| s.iter().product());
            std::iter::once(1).chain(parameters()).chain(parameters()).chain(parameters()).collect()
        },
        work: |size| size[0] as f64 * size[1..].windows(2).map(|w| (w[0] * w[1]) as f64).sum::<f64>(),
        build: |tier, _, x| {
            let f = Rc::new(stage(tier, train));
            let n = 2 * LAYERS;
            let parameters = x[..n].to_vec();
            let moments = (x[n..2 * n].to_vec(), x[2 * n..3 * n].to_vec());
            let (t, data) = (x[3 * n].clone(), (x[3 * n + 1].clone(), x[3 * n + 2].clone()));
            let arguments = Rc::new((parameters, moments, t, data));
            let (g, same) = (f.clone(), arguments.clone());
            Call::new(move || f(&arguments.0, &arguments.1, &arguments.2, &arguments.3))
                .with_scratch(move || scratch_bytes(&g.compile(&same.0, &same.1, &same.2, &same.3).ok()?))
        },
        peers: Peers { c: false, jax: true, numpy: false },
        targets: Targets { jax: Some([0.8, 0.8]), ..Targets::default() },
        measure: Measure::CallsAndScratch,
    }
}

type Weights = (Array, Array, Array);

/// The mean square of all hidden states of a sequence `[length, batch, width]`.
fn lstm((by_input, by_state, bias): &Weights, xs: &Array) -> Array {
    let start = xs.index(0).zeros_like();
    let step = |(h, c): &(Array, Array), x: &Array| {
        let gates = (x.dot(by_input) + h.dot(by_state) + bias).split(4, -1);
        let [input, forget, cell, output] = [0, 1, 2, 3].map(|i| &gates[i]);
        let c = forget.logistic() * c + input.logistic() * cell.tanh();
        let h = output.logistic() * c.tanh();
        ((h.clone(), c), h)
    };
    let (_, hs) = scan(step, (start.clone(), start), xs);
    (&hs * &hs).mean()
}

/// Sizes: length, width, batch.
fn lstm_family() -> Family {
    Family {
        name: "lstm",
        group: Group::Lstm,
        dtypes: &[DType::F32],
        quick: &[&[8, 16, 2]],
        full: &[&[64, 128, 1], &[64, 128, 32]],
        tiny: &[3, 2, 2],
        inputs: |size| {
            let (length, width, batch) = (size[0], size[1], size[2]);
            let bound = (1.0 / width as f64).sqrt();
            vec![
                uniform(&[width, 4 * width], -bound, bound),
                uniform(&[width, 4 * width], -bound, bound),
                uniform(&[4 * width], -bound, bound),
                uniform(&[length, batch, width], -1.0, 1.0),
            ]
        },
        outputs: |size| vec![1, 4 * size[1] * size[1], 4 * size[1] * size[1], 4 * size[1]],
        work: |size| (size[0] * size[1] * size[1] * size[2]) as f64,
        build: |tier, _, x| {
            let f = Rc::new(stage(tier, value_and_grad(lstm)));
            let arguments = Rc::new(((x[0].clone(), x[1].clone(), x[2].clone()), x[3].clone()));
            let (g, same) = (f.clone(), arguments.clone());
            Call::new(move || f(&arguments.0, &arguments.1))
                .with_scratch(move || scratch_bytes(&g.compile(&same.0, &same.1).ok()?))
        },
        peers: Peers { c: false, jax: true, numpy: false },
        targets: Targets { jax: Some([0.7, 0.7]), ..Targets::default() },
        measure: Measure::CallsAndScratch,
    }
}

pub fn families() -> Vec<Family> {
    vec![perceptron(), lstm_family()]
}
