//! The programs of GradBench as cases: what strangers measure differentiation with, at sizes of theirs.

use gradus::prelude::*;
use gradus_bench::programs::{ba, gmm, ht, kmeans, llsq, lse, lstm};

use super::{Call, Family, Group, Input, Measure, Peers, Targets, places, uniform};
use crate::tier::{Tier, stage};

/// What all have in common; `at_most` is wanted beside the best peer that takes no liberties with numbers: ours takes none here.
fn program(name: &'static str, at_most: f64) -> Family {
    Family {
        name,
        group: Group::Programs,
        dtypes: &[DType::F64],
        quick: &[],
        full: &[],
        tiny: &[],
        inputs: |_| Vec::new(),
        outputs: |_| Vec::new(),
        work: |size| size.iter().product::<usize>() as f64,
        build: |_, _, _| Call::new(|| ()),
        peers: Peers { c: true, jax: true, numpy: false },
        targets: Targets { exact: Some([at_most; 2]), jax: Some([at_most; 2]), ..Targets::default() },
        measure: Measure::Calls,
    }
}

/// Sizes: clusters, points, dimensions. The centroids are the last points, so that no cluster is empty.
fn clustering(name: &'static str) -> Family {
    Family {
        quick: &[&[10, 1_000, 8]],
        full: &[&[10, 10_000, 8], &[1_000, 10_000, 8]],
        tiny: &[3, 7, 2],
        inputs: |size| {
            let [k, n, d] = size[..] else { return Vec::new() };
            vec![uniform(&[k, d], 0.0, 1.0).out_of(1, (n - k) * d), uniform(&[n, d], 0.0, 1.0)]
        },
        outputs: |size| vec![size[0] * size[2]],
        ..program(name, 0.8)
    }
}

fn cluster(tier: Tier, f: fn(&Array, &Array) -> Array, x: Vec<Array>) -> Call {
    let f = stage(tier, f);
    Call::new(move || f(&x[0], &x[1]))
}

/// Triangles of the meshes of GradBench's data.
const TRIANGLES: usize = 1_084;

/// Sizes: measured points, vertices. First the inputs that both variants have.
fn hand(size: &[usize], of: usize) -> Vec<Input> {
    let [n, vertices] = size[..] else { return Vec::new() };
    let bones = ht::HAND.len();
    vec![
        uniform(&[ht::THETA], -1.0, 1.0),
        uniform(&[bones, 4, 4], -0.6, 0.6),
        uniform(&[bones, 4, 4], -0.6, 0.6),
        uniform(&[vertices, 4], -1.0, 1.0),
        uniform(&[vertices, bones], 0.0, 0.1),
        places(&[TRIANGLES, 3], vertices),
        places(&[n], of),
        uniform(&[n, 3], -1.0, 1.0),
    ]
}

fn model(x: &[Array]) -> (ht::Model, ht::Measured) {
    let model = ht::Model {
        parents: ht::HAND.to_vec(),
        mirrored: false,
        relatives: x[1].clone(),
        inverses: x[2].clone(),
        positions: x[3].clone(),
        weights: x[4].clone(),
        triangles: x[5].clone(),
    };
    (model, ht::Measured { places: x[6].clone(), points: x[7].clone() })
}

fn tracking(name: &'static str) -> Family {
    Family {
        quick: &[&[100, 544]],
        full: &[&[100, 544], &[6_400, 544], &[100, 10_000], &[6_400, 10_000]],
        tiny: &[2, 5],
        work: |size| (size[0] + 10 * size[1]) as f64,
        peers: Peers { c: false, jax: true, numpy: false },
        ..program(name, 0.9)
    }
}

fn simple() -> Family {
    Family {
        inputs: |size| hand(size, size[1]),
        outputs: |size| vec![3 * size[0] * ht::THETA],
        build: |tier, _, x| {
            let f = stage(tier, ht::simple_jacobian);
            let (model, measured) = model(&x);
            Call::new(move || f(&x[0], &model, &measured))
        },
        ..tracking("ht_simple")
    }
}

fn complicated() -> Family {
    Family {
        inputs: |size| {
            let mut inputs = hand(size, TRIANGLES);
            inputs.push(uniform(&[size[0], 2], 0.0, 0.5));
            inputs
        },
        outputs: |size| vec![3 * size[0] * (2 + ht::THETA)],
        build: |tier, _, x| {
            let f = stage(tier, ht::complicated_jacobian);
            let (model, measured) = model(&x);
            Call::new(move || f(&x[0], &x[8], &model, &measured))
        },
        ..tracking("ht_complicated")
    }
}

/// Sizes: layers, characters, bits of a character.
fn recurrent() -> Family {
    Family {
        quick: &[&[2, 64, 14]],
        full: &[&[2, 1_024, 14], &[4, 4_096, 14]],
        tiny: &[2, 4, 3],
        inputs: |size| {
            let [layers, length, bits] = size[..] else { return Vec::new() };
            vec![
                uniform(&[2 * layers, 4 * bits], 0.0, 1.0),
                uniform(&[3, bits], 0.0, 1.0),
                uniform(&[2 * layers, bits], 0.0, 1.0),
                uniform(&[length, bits], 0.0, 1.0),
            ]
        },
        outputs: |size| vec![8 * size[0] * size[2], 3 * size[2]],
        build: |tier, _, x| {
            let f = stage(tier, lstm::gradient);
            let parameters = (x[0].clone(), x[1].clone());
            Call::new(move || f(&parameters, &x[2], &x[3]))
        },
        peers: Peers { c: false, jax: true, numpy: false },
        ..program("text_lstm", 0.25)
    }
}

/// Sizes: dimensions, components, points.
fn mixture() -> Family {
    Family {
        quick: &[&[10, 5, 100]],
        full: &[&[10, 25, 1_000], &[64, 25, 1_000]],
        tiny: &[3, 2, 4],
        inputs: |size| {
            let [d, k, n] = size[..] else { return Vec::new() };
            vec![
                uniform(&[k], -1.0, 1.0),
                uniform(&[k, d], 0.0, 1.0),
                uniform(&[k, d], -1.0, 1.0),
                uniform(&[k, d * (d - 1) / 2], -1.0, 1.0),
                uniform(&[n, d], -2.0, 2.0),
            ]
        },
        outputs: |size| vec![size[1], size[0] * size[1], size[0] * size[1], size[1] * size[0] * (size[0] - 1) / 2],
        work: |size| (size[0] * size[0] * size[1] * size[2]) as f64,
        build: |tier, _, x| {
            let prior = gmm::Prior { gamma: 1.0, m: 0 };
            let f = stage(tier, move |p: &gmm::Mixture, points: &Array| gmm::gradient(p, points, prior));
            let p = gmm::Mixture { alpha: x[0].clone(), mu: x[1].clone(), q: x[2].clone(), l: x[3].clone() };
            Call::new(move || f(&p, &x[4]))
        },
        ..program("gmm", 0.8)
    }
}

/// Sizes: cameras, points, observations.
fn bundles() -> Family {
    Family {
        quick: &[&[10, 100, 1_000]],
        full: &[&[49, 7_776, 31_843], &[161, 48_126, 182_072]],
        tiny: &[2, 3, 4],
        inputs: |size| {
            let [n, m, p] = size[..] else { return Vec::new() };
            vec![
                uniform(&[n, ba::CAMERA], 0.1, 0.4),
                uniform(&[m, 3], 2.0, 3.0),
                uniform(&[p], 0.5, 1.5),
                places(&[p], n),
                places(&[p], m),
                uniform(&[p, 2], -1.0, 1.0),
            ]
        },
        outputs: |size| vec![2 * ba::BLOCK * size[2], size[2]],
        work: |size| size[2] as f64,
        build: |tier, _, x| {
            let f = stage(tier, ba::jacobian);
            let [cameras, points, weights, camera, point, features] = [0, 1, 2, 3, 4, 5].map(|i| x[i].clone());
            let scene = ba::Scene { cameras, points, weights, camera, point, features };
            Call::new(move || f(&scene))
        },
        ..program("ba", 0.5)
    }
}

/// Sizes: points, coefficients. A small one and a large one have targets of their own.
fn least_squares(name: &'static str, at_most: f64) -> Family {
    Family {
        tiny: &[5, 4],
        inputs: |size| vec![uniform(&size[1..], 0.0, 1.0)],
        outputs: |size| vec![size[1]],
        build: |tier, size, x| {
            let n = size[0];
            let f = stage(tier, move |x: &Array| llsq::gradient(x, n));
            Call::new(move || f(&x[0]))
        },
        ..program(name, at_most)
    }
}

pub fn families() -> Vec<Family> {
    vec![
        Family {
            outputs: |_| vec![1],
            build: |tier, _, x| cluster(tier, kmeans::cost, x),
            ..clustering("kmeans_cost")
        },
        Family { build: |tier, _, x| cluster(tier, kmeans::direction, x), ..clustering("kmeans") },
        Family { build: |tier, _, x| cluster(tier, kmeans::direction_by_min, x), ..clustering("kmeans_by_min") },
        simple(),
        complicated(),
        recurrent(),
        mixture(),
        bundles(),
        Family { quick: &[&[16, 128]], full: &[&[16, 128]], ..least_squares("llsq_short", 0.2) },
        Family { quick: &[&[128, 128]], full: &[&[16_392, 128]], ..least_squares("llsq", 0.4) },
        Family {
            quick: &[&[2_500]],
            full: &[&[2_500], &[1_280_000]],
            tiny: &[5],
            inputs: |size| vec![uniform(size, 0.0, 1.0)],
            outputs: |size| vec![size[0]],
            build: |tier, _, x| {
                let f = stage(tier, lse::gradient);
                Call::new(move || f(&x[0]))
            },
            ..program("lse", 0.2)
        },
    ]
}
