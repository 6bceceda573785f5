//! The vectorizer against the evaluator of the kernel language, for machines of every kind, on random modules.

use super::eval::compare;
use super::{Expr, Machine, Rest, Stmt, vectorize};
use crate::ir::random::{Config, module};
use crate::ir::{Buffer, Memory, Module, Ty};

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

/// A kernel that adds rows of 32 to the same 32 places, with what else `more` does to them.
fn running(rows: usize, more: &str) -> (Module, Memory) {
    let text = format!(
        "b0: f32 = input 0\nb1: f32 = output 0\nkernel k0() {{\n  for v0 < {rows} {{\n    lanes v1 < 32 {{\n      \
         v2: f32 = b0[v0*32 + v1]\n      v3: f32 = b1[v1]\n      v4: f32 = add v3 v2\n      b1[v1] = v4\n    }}\n{more}  }}\n}}\n\
         main f {{\n  run k0()\n}}\n"
    );
    let numbers = |n: usize| (0..n).flat_map(|i| (0.3 * i as f32 - 1.7).to_le_bytes()).collect();
    let memory = Memory { buffers: vec![numbers(32 * rows), numbers(64)], sizes: Vec::new() };
    (text.parse().unwrap(), memory)
}

/// How often loops touch a buffer.
fn touched_in_loops(body: &[Stmt], inside: bool) -> usize {
    let is = |m: super::Memory| usize::from(inside && m == super::Memory::Buffer(Buffer(1)));
    body.iter()
        .map(|s| match s {
            Stmt::Let(_, Expr::Load(a)) | Stmt::Store(a, _) => is(a.memory),
            Stmt::Loop(l) => touched_in_loops(&l.body, true),
            Stmt::Let(..) | Stmt::Main(_) => 0,
        })
        .sum()
}

#[test]
fn running_totals_go_around_in_registers() {
    let other = "    v5: f32 = b1[3]\n    b1[40] = v5\n";
    let aside = "    v5: f32 = 2.0\n    b1[40] = v5\n";
    for (rows, more, kept) in [(8, "", true), (8, aside, true), (8, other, false), (2, "", false)] {
        let (m, memory) = running(rows, more);
        for (name, machine) in machines() {
            compare(&m, &memory, |k| vectorize(&m, k, &machine)).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let (_, wide) = machines()[1];
        let code = vectorize(&m, &m.kernels[0], &wide);
        let left = touched_in_loops(&code.body, false) - usize::from(more == aside);
        assert_eq!(left == 0, kept, "{rows} rows, {more:?}\n{code}");
    }
}

/// A sum of negative zeros is a zero, and what is added up begins with one.
#[test]
fn sums_of_negative_zeros_are_zeros() {
    for n in [1, 5, 32, 70] {
        let text = format!(
            "b0: f32 = input 0\nb1: f32 = output 0\nkernel k0() {{\n  v2 = lanes v0 < {n} {{\n    v1: f32 = b0[v0]\n    fold add v1\n  }}\n  \
             b1[0] = v2\n}}\nmain f {{\n  run k0()\n}}\n"
        );
        let m: Module = text.parse().unwrap();
        let memory = Memory { buffers: vec![(-0.0f32).to_le_bytes().repeat(n), vec![0xFF; 4]], sizes: Vec::new() };
        for (name, machine) in machines() {
            compare(&m, &memory, |k| vectorize(&m, k, &machine)).unwrap_or_else(|e| panic!("{name}, {n}: {e}"));
        }
    }
}
