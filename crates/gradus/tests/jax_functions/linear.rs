//! Products of vectors, matrices and stacks of them, small linear algebra by formula, and complex numbers.

use gradus::prelude::*;

use super::compare::{Entry, one, three, two};

pub fn entries() -> Vec<Entry> {
    vec![
        two("dot", |a, b| a.dot(b).sin()),
        two("matrix_vector", |x, a| a.dot(x).tanh()),
        two("matrix_product", |a, b| a.matmul(b).powi(3).sum()),
        two("batched_product", |a, b| (a.matmul(b) / 4.0).exp().sum()),
        two("broadcast_product", |a, b| a.matmul(b).sin().sum()),
        three("bilinear_einsum", |x, w, y| Array::einsum("i,ijk,k->j", [x, w, y]).square().sum()),
        one("diagonal_einsum", |x| Array::einsum("bii,bij->bj", [x, x])),
        two("tensordot", |a, b| a.tensordot(b, ([2, 1], [0, 1])).square()),
        two("outer", |a, b| a.outer(b).sin()),
        two("inner_and_trace", |a, b| a.inner(b).square().sum() + a.matmul(b).matmul(a).trace()),
        two("quadratic_form", |x, a| x.dot(a).dot(x) / (x.dot(x) + 1.0)),
        one("determinant", determinant),
        one("inverse", |x| {
            let [a, b, c, d] = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|at| x.index(at));
            let scale = &a * &d - &b * &c;
            Array::stack([d, -b, -c, a], 0).reshape([2, 2]) / scale
        }),
        two("cross_product", cross),
        one("matrix_exponential", |x| {
            // The series: x is small, and the 20th term is below the last digit.
            let mut term = Array::eye::<f64>(2usize);
            let mut sum = term.clone();
            for k in 1..20 {
                term = term.matmul(x) / f64::from(k);
                sum += &term;
            }
            sum
        }),
        two("linear_system", |a, b| {
            // Cramer's rule.
            let column = |j: usize| a.at((.., j)).set(b);
            let all = Array::stack((0..3).map(|j| determinant(&column(j))), 0);
            (all / determinant(a)).square().sum()
        }),
        two("complex_cube", |x, y| (Array::complex(x, y).powi(3) + 1.0).abs().sum()),
        one("complex_phase", |x| {
            let turn = Array::complex(&x.zeros_like(), x).exp();
            ((turn * Complex::new(1.0, 2.0)).angle() * x).sum()
        }),
        one("power_spectrum", |x| {
            let k = Array::arange(0.0, 4.0, 1.0);
            let angle = k.outer(&k) * (-std::f64::consts::TAU / 4.0);
            let spectrum = Array::complex(&angle.cos(), &angle.sin()).dot(&x.cast(DType::C128));
            (spectrum.abs().square() * Array::from([1.0, 2.0, 3.0, 4.0])).sum()
        }),
        two("complex_functions", |x, y| {
            let z = Array::complex(x, y);
            ((z.log() * z.sqrt() + z.tanh()).real() + (z.sin() / (&z - Complex::new(0.0, 3.0))).imag()).sum()
        }),
        one("unitary_loss", |x| {
            let u = Array::complex(x, &x.t());
            (u.matmul(&u.conj().t()) - Array::eye::<f64>(2usize)).abs().square().sum()
        }),
        one("complex_argument", |z| (z.real().square() + z.imag() * 3.0 + (z * z * z).real()).sum()),
    ]
}

pub fn determinant(x: &Array) -> Array {
    x.index(0).dot(&cross(&x.index(1), &x.index(2)))
}

pub fn cross(a: &Array, b: &Array) -> Array {
    let turn = |x: &Array, by| x.roll(by, -1);
    turn(a, -1) * turn(b, 1) - turn(a, 1) * turn(b, -1)
}
