//! Pairs of bodies, and Jacobians of short chains of small matrices at many points: small shapes that must not stay
//! small loops.

use gradus::prelude::*;

use super::{Call, Family, Group, Measure, Peers, Targets, uniform};
use crate::tier::{Tier, stage};

/// What keeps the energy of a body with itself finite.
pub const SOFTENING: f64 = 0.01;

/// The potential energy of all pairs; the constant energy of each body with itself is in it.
fn energy(positions: &Array, masses: &Array) -> Array {
    let difference = positions.expand_dims(1) - positions.expand_dims(0);
    let squares = (&difference * &difference).sum_axes(-1) + SOFTENING;
    let products = masses.expand_dims(1) * masses.expand_dims(0);
    (products / squares.sqrt()).sum() * -0.5_f64
}

fn nbody(name: &'static str, build: fn(Tier, &[usize], Vec<Array>) -> Call) -> Family {
    Family {
        name,
        group: Group::Geometry,
        dtypes: &[DType::F64],
        quick: &[&[64]],
        full: &[&[64]],
        tiny: &[4],
        inputs: |size| vec![uniform(&[size[0], 3], -1.0, 1.0), uniform(&[size[0]], 0.5, 1.5)],
        outputs: |size| vec![1, 3 * size[0]],
        work: |size| (size[0] * size[0]) as f64,
        build,
        peers: Peers { c: true, jax: true, numpy: false },
        targets: targets(),
        measure: Measure::Calls,
    }
}

fn targets() -> Targets {
    Targets { c: Some([1.3, 1.3]), jax: Some([0.5, 0.5]), ..Targets::default() }
}

/// A matrix of scalars.
fn matrix<const N: usize>(rows: [[&Array; N]; N]) -> Array {
    Array::stack(rows.into_iter().flatten(), 0).reshape([N, N])
}

/// A point turned about each axis by its own coordinates, normalized and projected.
fn chain3(p: &Array) -> Array {
    let (s, c) = (p.sin(), p.cos());
    let (s, c) = ([0, 1, 2].map(|i| s.index(i)), [0, 1, 2].map(|i| c.index(i)));
    let minus = [0, 1, 2].map(|i| -&s[i]);
    let (o, i) = (c[0].zeros_like(), c[0].ones_like());
    let about_x = matrix([[&i, &o, &o], [&o, &c[0], &minus[0]], [&o, &s[0], &c[0]]]);
    let about_y = matrix([[&c[1], &o, &s[1]], [&o, &i, &o], [&minus[1], &o, &c[1]]]);
    let about_z = matrix([[&c[2], &minus[2], &o], [&s[2], &c[2], &o], [&o, &o, &i]]);
    let shift = Array::from([0.3_f64, -0.2, 1.5]).cast(p.dtype());
    let v = about_z.dot(&about_y.dot(&about_x.dot(&(p + shift))));
    let y = &v / (&v * &v).sum().sqrt();
    let depth = y.index(2) + 2.0_f64;
    Array::stack([&(y.index(0) / &depth), &(y.index(1) / &depth), &y.index(2)], 0)
}

/// A point in homogeneous coordinates through a product of perspective, shift and two rotations.
fn chain4(p: &Array) -> Array {
    let [x, y, z] = [0, 1, 2].map(|i| p.index(i));
    let (o, i) = (x.zeros_like(), x.ones_like());
    let (sy, cy, sz, cz) = (y.sin(), y.cos(), z.sin(), z.cos());
    let (minus_sy, minus_sz) = (-&sy, -&sz);
    let about_z = matrix([[&cy, &minus_sy, &o, &o], [&sy, &cy, &o, &o], [&o, &o, &i, &o], [&o, &o, &o, &i]]);
    let about_x = matrix([[&i, &o, &o, &o], [&o, &cz, &minus_sz, &o], [&o, &sz, &cz, &o], [&o, &o, &o, &i]]);
    let (tx, ty, tz) = (&z * 0.5_f64, -&x, &i * 0.25_f64);
    let shift = matrix([[&i, &o, &o, &tx], [&o, &i, &o, &ty], [&o, &o, &i, &tz], [&o, &o, &o, &i]]);
    let (focal, far, distance) = (&i * 1.2_f64, &i * 1.1_f64, &i * 4.0_f64);
    let perspective = matrix([[&focal, &o, &o, &o], [&o, &focal, &o, &o], [&o, &o, &far, &i], [&o, &o, &i, &distance]]);
    let all = perspective.dot(&shift).dot(&about_x).dot(&about_z);
    let h = all.dot(&Array::concatenate([p, &i.reshape([1])], 0));
    h.index(..3) / h.index(3)
}

fn jacobians(name: &'static str, build: fn(Tier, &[usize], Vec<Array>) -> Call) -> Family {
    Family {
        name,
        group: Group::Geometry,
        dtypes: &[DType::F64],
        quick: &[&[1_000]],
        full: &[&[100_000]],
        tiny: &[4],
        inputs: |size| vec![uniform(&[size[0], 3], -1.0, 1.0)],
        outputs: |size| vec![9 * size[0]],
        work: |size| size[0] as f64,
        build,
        peers: Peers { c: true, jax: true, numpy: false },
        targets: targets(),
        measure: Measure::Calls,
    }
}

fn pairs(tier: Tier, x: Vec<Array>, exactness: Exactness) -> Call {
    let f = stage(tier, value_and_grad(energy)).exactness(exactness);
    Call::new(move || f(&x[0], &x[1]))
}

fn points(tier: Tier, x: Vec<Array>, f: fn(&Array) -> Array, exactness: Exactness) -> Call {
    let f = stage(tier, vmap(jacfwd(f))).exactness(exactness);
    Call::new(move || f(&x[0]))
}

/// Each as it is by default, bit for bit what was written, and with the liberties that C takes.
pub fn families() -> Vec<Family> {
    use Exactness::{Exact, Relaxed};
    vec![
        nbody("nbody", |tier, _, x| pairs(tier, x, Exact)),
        nbody("nbody_relaxed", |tier, _, x| pairs(tier, x, Relaxed)),
        jacobians("chain3", |tier, _, x| points(tier, x, chain3, Exact)),
        jacobians("chain3_relaxed", |tier, _, x| points(tier, x, chain3, Relaxed)),
        jacobians("chain4", |tier, _, x| points(tier, x, chain4, Exact)),
        jacobians("chain4_relaxed", |tier, _, x| points(tier, x, chain4, Relaxed)),
    ]
}
