//! Convolutions of images with their derivatives, pooling, Fourier transforms, complex arithmetic and a spectral method.

use gradus::prelude::*;

use super::{Call, Family, Group, Input, Measure, Peers, Targets, uniform};
use crate::tier::stage;

/// Sizes: examples, side of the image, features, results, side of the kernel, stride.
const IMAGES: &[&[usize]] = &[
    &[8, 56, 64, 64, 3, 1],
    &[8, 28, 128, 128, 3, 1],
    &[8, 56, 128, 128, 3, 2],
    &[8, 56, 64, 64, 1, 1],
    &[4, 224, 3, 64, 7, 2],
];

fn conv(stride: usize) -> impl Fn(&Array, &Array) -> Array + Clone {
    move |x: &Array, w: &Array| nn::conv("NHWC,HWIO->NHWC", x, w, nn::Conv::default().strides([stride, stride]).same())
}

fn images(size: &[usize]) -> Vec<Input> {
    let [n, side, features, results, kernel, _] = size[..] else { return Vec::new() };
    vec![uniform(&[n, side, side, features], -1.0, 1.0), uniform(&[kernel, kernel, features, results], -0.1, 0.1)]
}

fn elements(size: &[usize]) -> usize {
    let side = size[1].div_ceil(size[5]);
    size[0] * side * side * size[3]
}

fn work(size: &[usize]) -> f64 {
    (elements(size) * size[2] * size[4] * size[4]) as f64
}

fn forward() -> Family {
    Family {
        name: "conv",
        group: Group::Signals,
        dtypes: &[DType::F32],
        quick: &[&[2, 8, 3, 4, 3, 1]],
        full: IMAGES,
        tiny: &[2, 5, 2, 3, 3, 2],
        inputs: images,
        outputs: |size| vec![elements(size)],
        work,
        build: |tier, size, x| {
            let f = stage(tier, conv(size[5]));
            Call::new(move || f(&x[0], &x[1]))
        },
        peers: Peers { c: false, jax: true, numpy: false },
        targets: Targets { jax: Some([1.1, 1.1]), ..Targets::default() },
        measure: Measure::Calls,
    }
}

fn backward() -> Family {
    Family {
        name: "conv_gradient",
        outputs: |size| vec![size[0] * size[1] * size[1] * size[2], size[4] * size[4] * size[2] * size[3]],
        build: |tier, size, x| {
            let conv = conv(size[5]);
            let f = stage(tier, grad_all(move |x: &Array, w: &Array| conv(x, w).square().sum()));
            Call::new(move || f(&x[0], &x[1]))
        },
        ..forward()
    }
}

/// Sizes: examples, side of the image, features.
fn pooling() -> Family {
    Family {
        name: "max_pool",
        group: Group::Signals,
        dtypes: &[DType::F32],
        quick: &[&[2, 8, 3]],
        full: &[&[8, 56, 64], &[8, 112, 64]],
        tiny: &[2, 4, 2],
        inputs: |size| {
            let half = size[1] / 2;
            vec![
                uniform(&[size[0], size[1], size[1], size[2]], -1.0, 1.0),
                uniform(&[size[0], half, half, size[2]], -1.0, 1.0),
            ]
        },
        outputs: |size| vec![1, size[0] * size[1] * size[1] * size[2]],
        work: |size| (size[0] * size[1] * size[1] * size[2]) as f64,
        build: |tier, _, x| {
            let pooled = |x: &Array, w: &Array| (nn::max_pool("NHWC", x, nn::Pool::window([2, 2])) * w).sum();
            let f = stage(tier, value_and_grad(pooled));
            Call::new(move || f(&x[0], &x[1]))
        },
        peers: Peers { c: false, jax: true, numpy: false },
        targets: Targets { jax: Some([1.1, 1.1]), ..Targets::default() },
        measure: Measure::Calls,
    }
}

/// There and back.
fn transforms() -> Family {
    Family {
        name: "fft",
        group: Group::Signals,
        dtypes: &[DType::F32, DType::F64],
        quick: &[&[256]],
        full: &[&[256], &[4096], &[65_536], &[1_048_576], &[1_000_003]],
        tiny: &[12],
        inputs: |size| vec![uniform(&[size[0]], -1.0, 1.0)],
        outputs: |size| vec![size[0]],
        work: |size| size[0] as f64 * (size[0] as f64).log2(),
        build: |tier, size, x| {
            let n = size[0];
            let f = stage(tier, move |x: &Array| fft::FftOptions::new().length(n).irfft(&fft::rfft(x)));
            Call::new(move || f(&x[0]))
        },
        peers: Peers { c: false, jax: true, numpy: true },
        targets: Targets { jax: Some([1.0, 1.0]), ..Targets::default() },
        measure: Measure::Calls,
    }
}

/// Complex arithmetic of every kind, from parts and to parts.
fn complex() -> Family {
    Family {
        name: "complex",
        dtypes: &[DType::F32, DType::F64],
        quick: &[&[128]],
        full: &[&[128], &[10_000], &[1_000_000]],
        inputs: |size| vec![uniform(&[size[0]], -1.0, 1.0); 2],
        outputs: |size| vec![size[0]; 2],
        work: |size| size[0] as f64 * 10.0,
        build: |tier, _, x| {
            let f = stage(tier, |re: &Array, im: &Array| {
                let z = Array::complex(re, im);
                let w = &z * &z * 0.5 + z.conj();
                let w = w.exp() / (z + 3.0);
                (w.real(), w.imag())
            });
            Call::new(move || f(&x[0], &x[1]))
        },
        peers: Peers { c: false, jax: true, numpy: true },
        ..transforms()
    }
}

/// A hundred steps of Burgers' equation, by a spectral method.
fn spectral() -> Family {
    Family {
        name: "spectral",
        dtypes: &[DType::F64],
        quick: &[&[64]],
        full: &[&[128], &[4096]],
        tiny: &[8],
        work: |size| 100.0 * size[0] as f64 * (size[0] as f64).log2(),
        build: |tier, size, x| {
            let n = size[0];
            let f = stage(tier, move |u: &Array| {
                let waves = Array::arange(0.0, (n / 2 + 1) as f64, 1.0);
                let slope = Array::complex(&waves.zeros_like(), &waves);
                let damping = 1.0 / (1.0 + &waves * &waves * 1e-5);
                let back = move |z: &Array| fft::FftOptions::new().length(n).irfft(z);
                let step = |z: &Array, _: &Array| {
                    let flow = fft::rfft(&(back(z).square() * 0.5));
                    let z = (z - &slope * flow * 1e-3) * damping.cast(DType::C128);
                    (z, ())
                };
                back(&scan(step, fft::rfft(u), &Array::zeros::<f64>([100])).0)
            });
            Call::new(move || f(&x[0]))
        },
        peers: Peers { c: false, jax: true, numpy: false },
        ..transforms()
    }
}

pub fn families() -> Vec<Family> {
    vec![forward(), backward(), pooling(), transforms(), complex(), spectral()]
}
