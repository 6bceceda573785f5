//! Random numbers of a key: what the hash costs in vector code, alone and in one loop with what is made of it.

use gradus::prelude::*;

use super::{Call, Family, Group, Input, Measure, Peers, Targets, uniform};
use crate::tier::{Tier, stage};

/// A key of a number, which is an input so that no compiler knows it.
fn key_of(x: &Array) -> Key {
    Key::from_array(x.index(0_i64).cast(DType::U64).bitcast(DType::Key))
}

fn call(tier: Tier, size: &[usize], x: Vec<Array>, draw: fn(Key, usize) -> Array) -> Call {
    let n = size[0];
    let f = stage(tier, move |x: &Array| draw(key_of(x), n));
    Call::new(move || f(&x[0]))
}

pub fn families() -> Vec<Family> {
    type Build = fn(Tier, &[usize], Vec<Array>) -> Call;
    let all: [(&'static str, Build); 3] = [
        ("random_bits", |tier, size, x| {
            // The upper bits, which a float holds: every peer gives floats.
            let top = |key, n: usize| random::bits::<u32>(key, [n]).shift_right_logical(8_u32).cast(DType::F32);
            call(tier, size, x, top)
        }),
        ("random_uniform", |tier, size, x| call(tier, size, x, |key, n| random::uniform::<f32>(key, [n]))),
        ("random_normal", |tier, size, x| call(tier, size, x, |key, n| random::normal::<f32>(key, [n]))),
    ];
    all.into_iter()
        .map(|(name, build)| Family {
            name,
            group: Group::Random,
            dtypes: &[DType::F32],
            quick: &[&[1_000]],
            full: &[&[10_000], &[100_000], &[1_000_000], &[10_000_000]],
            tiny: &[7],
            inputs: |_| vec![uniform(&[1], 0.0, 1e6)] as Vec<Input>,
            outputs: |size| vec![size[0]],
            work: |size| size[0] as f64,
            build,
            peers: Peers { c: true, jax: true, numpy: false },
            targets: Targets { c: Some([1.25, 1.25]), jax: Some([1.0, 1.0]), ..Targets::default() },
            measure: Measure::Calls,
        })
        .collect()
}
