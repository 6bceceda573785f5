//! Decompositions and systems: large matrices one by one, small ones by the ten thousand, and likelihoods with gradients through them.

use gradus::prelude::*;

use super::{Call, Family, Group, Measure, Peers, Targets, uniform};
use crate::tier::stage;

const SQUARE: &[&[usize]] = &[&[64], &[128], &[256], &[512], &[1024]];
const SMALL: &[&[usize]] = &[&[10_000, 3], &[10_000, 4], &[10_000, 6], &[10_000, 8]];
const JAX: Peers = Peers { c: false, jax: true, numpy: false };

/// A case of f64 with JAX beside it; the rest is filled in by what is special about it.
fn family(name: &'static str, jax: f64, build: super::Build) -> Family {
    Family {
        name,
        group: Group::Linalg,
        dtypes: &[DType::F64],
        quick: &[&[64]],
        full: SQUARE,
        tiny: &[1],
        inputs: |size| vec![uniform(&[size[0], size[0]], -1.0, 1.0)],
        outputs: |size| vec![size[0] * size[0]],
        work: |size| (size[0] as f64).powi(3),
        build,
        peers: JAX,
        targets: Targets { jax: Some([jax, jax]), ..Targets::default() },
        measure: Measure::Calls,
    }
}

/// The same for a batch of small matrices: its size is how many there are, and their rows.
fn small(name: &'static str, build: super::Build) -> Family {
    Family {
        quick: &[&[1000, 3]],
        full: SMALL,
        tiny: &[3, 1],
        inputs: |size| {
            vec![uniform(&[size[0], size[1], size[1]], -1.0, 1.0), uniform(&[size[0], size[1], 1], -1.0, 1.0)]
        },
        outputs: |size| vec![size[0] * size[1]],
        work: |size| size[0] as f64 * (size[1] as f64).powi(3),
        ..family(name, 0.3, build)
    }
}

/// Far from singular, and positive definite if it is symmetric.
fn heavy(a: &Array) -> Array {
    let n = a.dim(-1).as_usize().unwrap_or(1);
    a + Array::eye::<f64>(n) * (2.0 * n as f64)
}

fn symmetric(a: &Array) -> Array {
    heavy(&((a + a.swap_axes(-1, -2)) * 0.5_f64))
}

/// The negative logarithm of a Gaussian process' likelihood.
fn process(length: &Array, x: &Array, y: &Array) -> Array {
    let n = x.dim(0).as_usize().unwrap_or(1);
    let d = (x.expand_dims(1) - x.expand_dims(0)) / length;
    let l = linalg::cholesky(&((d.square() * -0.5_f64).exp() + Array::eye::<f64>(n) * 0.1_f64));
    y.dot(&linalg::cho_solve(&l, y)) * 0.5_f64 + l.diagonal().log().sum()
}

/// The negative logarithm of a linear filter's likelihood; of four states the first is seen.
fn filter(a: &Array, ys: &Array) -> Array {
    let (eye, c) = (Array::eye::<f64>(4), Array::from([[1.0_f64, 0.0, 0.0, 0.0]]));
    let a = a * 0.1_f64 + &eye * 0.8_f64;
    let step = |(m, p): &(Array, Array), y: &Array| {
        let m = a.matmul(m);
        let p = a.matmul(p).matmul(&a.t()) + &eye * 0.1_f64;
        let s = c.matmul(&p).matmul(&c.t()) + 0.2_f64;
        let v = y - c.matmul(&m);
        let gain = linalg::solve(&s, &c.matmul(&p)).t();
        let term = (linalg::slogdet(&s).1 + v.dot(&linalg::solve(&s, &v))) * 0.5_f64;
        ((&m + gain.matmul(&v), &p - gain.matmul(&c).matmul(&p)), term)
    };
    scan(step, (Array::zeros::<f64>([4]), eye.clone()), ys).1.sum()
}

pub fn families() -> Vec<Family> {
    vec![
        family("cholesky", 1.0, |tier, _, x| {
            let f = stage(tier, |a: &Array| linalg::cholesky(&symmetric(a)));
            Call::new(move || f(&x[0]))
        }),
        Family {
            inputs: |size| vec![uniform(&[size[0], size[0]], -1.0, 1.0), uniform(&[size[0]], -1.0, 1.0)],
            outputs: |size| vec![size[0]],
            ..family("linear_system", 1.0, |tier, _, x| {
                let f = stage(tier, |a: &Array, b: &Array| linalg::solve(&heavy(a), b));
                Call::new(move || f(&x[0], &x[1]))
            })
        },
        Family {
            outputs: |size| vec![size[0] * size[0]; 2],
            ..family("qr", 1.0, |tier, _, x| {
                let f = stage(tier, linalg::qr);
                Call::new(move || f(&x[0]))
            })
        },
        Family {
            outputs: |size| vec![size[0], size[0] * size[0]],
            ..family("eigh", 1.0, |tier, _, x| {
                let f = stage(tier, |a: &Array| {
                    let (w, v) = linalg::eigh(&symmetric(a));
                    (w, v.abs())
                });
                Call::new(move || f(&x[0]))
            })
        },
        Family {
            outputs: |size| vec![size[0], size[0] * size[0]],
            ..family("svd", 1.0, |tier, _, x| {
                let f = stage(tier, |a: &Array| {
                    let (u, s, _) = linalg::svd(a);
                    (s, u.abs())
                });
                Call::new(move || f(&x[0]))
            })
        },
        Family {
            outputs: |size| vec![size[0] * size[1] * size[1]],
            ..small("small_cholesky", |tier, _, x| {
                let f = stage(tier, |a: &Array, _: &Array| linalg::cholesky(&symmetric(a)));
                Call::new(move || f(&x[0], &x[1]))
            })
        },
        small("small_systems", |tier, _, x| {
            let f = stage(tier, |a: &Array, b: &Array| linalg::solve(&heavy(a), b));
            Call::new(move || f(&x[0], &x[1]))
        }),
        Family {
            outputs: |size| vec![size[0]],
            ..small("small_determinants", |tier, _, x| {
                let f = stage(tier, |a: &Array, _: &Array| linalg::slogdet(&heavy(a)).1);
                Call::new(move || f(&x[0], &x[1]))
            })
        },
        Family {
            quick: &[&[20]],
            full: &[&[100], &[400]],
            tiny: &[1],
            inputs: |size| vec![uniform(&[], 1.0, 2.0), uniform(&[size[0]], 0.0, 10.0), uniform(&[size[0]], -1.0, 1.0)],
            outputs: |_| vec![1, 1],
            ..family("gaussian_process", 0.7, |tier, _, x| {
                let f = stage(tier, value_and_grad(process));
                Call::new(move || f(&x[0], &x[1], &x[2]))
            })
        },
        Family {
            quick: &[&[20]],
            full: &[&[200]],
            tiny: &[2],
            inputs: |size| vec![uniform(&[4, 4], -1.0, 1.0), uniform(&[size[0], 1], -1.0, 1.0)],
            outputs: |_| vec![1, 16],
            work: |size| size[0] as f64,
            ..family("kalman_gradient", 0.7, |tier, _, x| {
                let f = stage(tier, value_and_grad(filter));
                Call::new(move || f(&x[0], &x[1]))
            })
        },
    ]
}
