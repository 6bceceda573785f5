//! The vectorizer against the evaluator of the kernel language, for machines of every kind, on random modules.

use super::eval::compare;
use super::{Machine, Rest, vectorize};
use crate::ir::Ty;
use crate::ir::random::{Config, module};

/// Machines that differ in everything a plan looks at.
fn machines() -> Vec<(&'static str, Machine)> {
    let wide = Machine {
        bytes: 64,
        registers: 32,
        even: true,
        masks: true,
        rest: Rest::Masked,
        short: [100, 200],
        once: usize::MAX,
        repeated: 800,
        native: None,
    };
    vec![
        ("none", Machine { bytes: 0, rest: Rest::Serial, ..wide }),
        ("even", wide),
        ("even, few registers", Machine { bytes: 32, registers: 16, masks: false, ..wide }),
        ("by size", Machine { even: false, short: [400, 1500], once: 120, repeated: 400, ..wide }),
        ("written once", Machine { even: false, once: 0, ..wide }),
        ("folds in memory", Machine { repeated: 0, ..wide }),
        ("without masks", Machine { bytes: 16, registers: 16, even: false, masks: false, rest: Rest::Serial, ..wide }),
        ("without masks, folds in memory", Machine { bytes: 32, even: false, rest: Rest::Serial, repeated: 0, ..wide }),
    ]
}

fn random(config: &Config, seeds: std::ops::Range<u64>) {
    let mut kernels = 0;
    for seed in seeds {
        let (m, memory) = module(seed, config);
        for (name, machine) in machines() {
            match compare(&m, &memory, |k| vectorize(&m, k, &machine)) {
                Ok(n) => kernels += n,
                Err(e) => panic!("seed {seed}, {name}: {e}"),
            }
        }
    }
    assert!(kernels > 0);
}

#[test]
fn vectors_have_the_bits_of_the_kernel_language() {
    random(&Config::default(), 0..40);
    let types = vec![Ty::F32, Ty::F64, Ty::Bool];
    random(&Config { types, odd: false, ..Config::default() }, 40..60);
}
