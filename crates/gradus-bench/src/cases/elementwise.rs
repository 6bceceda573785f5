//! Elementwise functions of one array: what fusion, vector code and short function bodies are worth.

use gradus::prelude::*;

use super::{Call, Family, Group, Input, Measure, Peers, Targets, uniform};
use crate::tier::{Tier, stage};

fn polynomial(x: &Array) -> Array {
    ((x * 0.3_f64 - 1.1_f64) * x + 0.7_f64) * x + 0.25_f64
}

fn tanh(x: &Array) -> Array {
    (x * 1.3_f64 + 0.2_f64).tanh() * x
}

fn gelu_erf(x: &Array) -> Array {
    x * 0.5_f64 * ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0_f64)
}

fn gelu_tanh(x: &Array) -> Array {
    let inner = (x + x * x * x * 0.044715_f64) * 0.797_884_560_802_865_4_f64;
    x * 0.5_f64 * (inner.tanh() + 1.0_f64)
}

/// The value and the derivative, element by element.
fn with_derivative(f: fn(&Array) -> Array) -> impl Fn(&Array) -> (Array, Array) + Send + Sync + 'static {
    move |x: &Array| jvp(f, x, &x.ones_like())
}

fn sum_exp(x: &Array) -> Array {
    (x - 2.5_f64).exp().sum()
}

fn input(size: &[usize]) -> Vec<Input> {
    vec![uniform(size, -3.0, 3.0)]
}

fn one(size: &[usize]) -> Vec<usize> {
    vec![size[0]]
}

fn two(size: &[usize]) -> Vec<usize> {
    vec![size[0], size[0]]
}

fn scalar(_: &[usize]) -> Vec<usize> {
    vec![1]
}

fn elements(size: &[usize]) -> f64 {
    size[0] as f64
}

fn call<O: Tree>(tier: Tier, x: Vec<Array>, f: impl Fn(&Array) -> O + Send + Sync + 'static) -> Call {
    let f = stage(tier, f);
    Call::new(move || f(&x[0]))
}

pub fn families() -> Vec<Family> {
    type Build = fn(Tier, &[usize], Vec<Array>) -> Call;
    type Outputs = fn(&[usize]) -> Vec<usize>;
    let all: [(&'static str, Outputs, Build); 5] = [
        ("polynomial", one, |tier, _, x| call(tier, x, polynomial)),
        ("tanh", one, |tier, _, x| call(tier, x, tanh)),
        ("gelu_erf", two, |tier, _, x| call(tier, x, with_derivative(gelu_erf))),
        ("gelu_tanh", two, |tier, _, x| call(tier, x, with_derivative(gelu_tanh))),
        ("sum_exp", scalar, |tier, _, x| call(tier, x, sum_exp)),
    ];
    all.into_iter()
        .map(|(name, outputs, build)| Family {
            name,
            group: Group::Elementwise,
            dtypes: &[DType::F32, DType::F64],
            quick: &[&[1_000]],
            full: &[&[1_000], &[100_000], &[1_000_000], &[10_000_000]],
            tiny: &[7],
            inputs: input,
            outputs,
            work: elements,
            build,
            peers: Peers { c: true, jax: true, numpy: true },
            targets: Targets { c: Some([1.3, 0.9]), jax: Some([0.65, 0.5]), ..Targets::default() },
            measure: Measure::Calls,
        })
        .collect()
}
