//! Matrix products of square matrices, which hand-tuned libraries are measured by.

use gradus::prelude::*;

use super::{Call, Family, Group, Measure, Peers, Targets, uniform};
use crate::tier::stage;

pub fn families() -> Vec<Family> {
    vec![Family {
        name: "matmul",
        group: Group::Matrix,
        dtypes: &[DType::F32, DType::F64],
        quick: &[&[64]],
        full: &[&[64], &[128], &[256], &[512], &[1024]],
        tiny: &[5],
        inputs: |size| vec![uniform(&[size[0], size[0]], -1.0, 1.0), uniform(&[size[0], size[0]], -1.0, 1.0)],
        outputs: |size| vec![size[0] * size[0]],
        work: |size| (size[0] as f64).powi(3),
        build: |tier, _, x| {
            let f = stage(tier, |a: &Array, b: &Array| a.dot(b));
            Call::new(move || f(&x[0], &x[1]))
        },
        peers: Peers { c: false, jax: true, numpy: true },
        targets: Targets { numpy: Some([1.0, 1.0]), jax: Some([0.9, 0.9]), ..Targets::default() },
        measure: Measure::Calls,
    }]
}
