//! The vectorizer against the evaluator of the kernel language, for machines of every kind, on random modules.

use super::eval::compare;
use super::{Expr, Machine, Rest, Stmt, scheduled, vectorize};
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

/// A machine without room: whatever can be put in another order is, where that helps at all.
fn narrow() -> Machine {
    Machine { registers: 2, ..machines()[1].1 }
}

/// A module whose kernels are in the order that a machine wants.
fn reordered(m: &Module, machine: &Machine) -> Module {
    Module { kernels: m.kernels.iter().map(|k| scheduled(m, k, machine)).collect(), ..m.clone() }
}

#[test]
fn another_order_has_the_same_bits() {
    let (mut kernels, mut changed) = (0, 0);
    let straight = Config { odd: false, types: vec![Ty::F32, Ty::F64, Ty::Bool], ..Config::default() };
    for (config, seeds) in [(Config::default(), 0..150), (straight, 150..300)] {
        for seed in seeds {
            let (m, memory) = module(seed, &config);
            let after = reordered(&m, &narrow());
            changed += usize::from(after.to_string() != m.to_string());
            let result = compare(&m, &memory, |k| vectorize(&m, &scheduled(&m, k, &narrow()), &machines()[1].1));
            kernels += result.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
    }
    assert!(kernels > 300 && changed > 30, "{changed} of {kernels}");
}

/// The places of lines in a text, which must be there once each.
fn places(text: &str, lines: &[&str]) -> Vec<usize> {
    let place = |line: &&str| {
        assert_eq!(text.matches(*line).count(), 1, "{line:?} in\n{text}");
        text.find(*line).unwrap()
    };
    lines.iter().map(place).collect()
}

#[test]
fn what_is_made_waits_for_nothing_it_need_not_wait_for() {
    // The squared length of a difference, as it is written: all loads, all differences, all squares, the sums.
    let n = 6;
    let each = |f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<String>();
    let text = format!(
        "b0: f64 = input 0\nb1: f64 = input 1\nb2: f64 = output 0\nkernel k0() {{\n  lanes v0 < 40 {{\n{}{}{}{}    v40: f64 = mul v30 v30\n{}    b2[v0] = v{}\n  }}\n}}\nmain f {{\n  run k0()\n}}\n",
        each(&|i| format!("    v{}: f64 = b0[v0 + {}]\n", 1 + i, 40 * i)),
        each(&|i| format!("    v{}: f64 = b1[v0 + {}]\n", 10 + i, 40 * i)),
        each(&|i| format!("    v{}: f64 = sub v{} v{}\n", 20 + i, 1 + i, 10 + i)),
        each(&|i| format!("    v{}: f64 = mul v{} v{}\n", 30 + i, 20 + i, 20 + i)),
        each(&|i| format!("    v{}: f64 = add v{} v{}\n", 41 + i, 40 + i, 30 + i)),
        40 + n,
    );
    let m: Module = text.parse().unwrap();
    let few = Machine { registers: 8, ..machines()[1].1 };
    let after = reordered(&m, &few).to_string();
    let m2: Module = after.parse().unwrap();
    let lines = after.lines().collect::<Vec<_>>();
    let muls: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].contains("= mul")).collect();
    assert!(muls[1..].iter().all(|i| lines[i - 1].contains("= sub") || lines[i - 1].contains("= mul")), "{after}");
    let first_mul = muls[0];
    let loads_before = lines[..first_mul].iter().filter(|l| l.contains("= b")).count();
    assert!(loads_before <= 4, "{after}");
    // Room enough: it stays as written.
    let wide = machines()[1].1;
    assert_eq!(m.to_string(), reordered(&m, &wide).to_string());
    let numbers = (0..2 * 40 * n).map(|i| (0.37 * i as f64).sin()).collect::<Vec<_>>();
    let bytes = |x: &[f64]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let memory = Memory {
        buffers: vec![bytes(&numbers[..40 * n]), bytes(&numbers[40 * n..]), bytes(&[0.0; 40])],
        sizes: Vec::new(),
    };
    for (name, machine) in machines() {
        compare(&m2, &memory, |k| vectorize(&m2, k, &machine)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn no_load_passes_a_store() {
    // Everything that a store may change is read on the side of it on which it was written.
    let text = "b0: f64 = input 0\nb1: f64 = output 0\nkernel k0() {\n  lanes v0 < 20 {\n    v1: f64 = b0[v0]\n    v2: f64 = b1[v0]\n    v3: f64 = b0[v0 + 20]\n    \
                v4: f64 = add v1 v3\n    b1[v0] = v4\n    v5: f64 = b1[v0]\n    v6: f64 = add v5 v3\n    v7: f64 = mul v6 v2\n    b1[v0 + 20] = v7\n  }\n}\n\
                main f {\n  run k0()\n}\n";
    let m: Module = text.parse().unwrap();
    let after = reordered(&m, &narrow()).to_string();
    let at = places(&after, &["v2: f64 = b1[v0]", "    b1[v0] = v4", "v5: f64 = b1[v0]", "b1[v0 + 20] = v7"]);
    assert!(at.is_sorted(), "{after}");
}

/// Rows one below the other: what is made of each element, and what all of a row come to. `known`: the kernel need not be told how long they are, and all of a row
/// may be one step.
fn rows_of(ty: &str, width: usize, rows: usize, known: bool) -> (Module, Memory) {
    let to = if known { width.to_string() } else { "v10".to_string() };
    let folds = ["add", "mul", "max", "min"];
    let results: Vec<String> = (0..folds.len()).map(|k| format!("v{}", 20 + k)).collect();
    let takes: String = folds.iter().map(|f| format!("      fold {f} v3\n")).collect();
    let stores: String = (0..folds.len()).map(|k| format!("    b2[v0*4 + {k}] = v{}\n", 20 + k)).collect();
    let text = format!(
        "b0: {ty} = input 0\nb1: {ty} = output 0\nb2: {ty} = output 1\nb3: i64 = output 2\nsizes 2\nkernel k0(v10: i64, v11: i64) {{\n  for v0 < v11 {{\n    \
         lanes v1 < {to} {{\n      v2: {ty} = b0[v0*v10 + v1]\n      v4: {ty} = add v2 v2\n      b1[v0*v10 + v1] = v4\n      b3[v0*v10 + v1] = v1\n    }}\n    {} = lanes v5 < {to} {{\n      \
         v3: {ty} = b0[v0*v10 + v5]\n{takes}    }}\n{stores}  }}\n}}\nmain f {{\n  v10: i64 = size 0\n  v11: i64 = size 1\n  run k0(v10, v11)\n}}\n",
        results.join(", ")
    );
    let bytes = if ty == "f32" { 4 } else { 8 };
    // Zeros of both signs, and NaNs of several kinds.
    let number = |i: usize| -> Vec<u8> {
        let odd = [-0.0, 0.0, f64::NAN, f64::INFINITY];
        let x = if i.is_multiple_of(3) { odd[i / 3 % 4] } else { (0.37 * i as f64).sin() };
        let (x, payload) = (if i.is_multiple_of(11) { f64::NAN } else { x }, (i % 5) as u64);
        match bytes {
            4 if x.is_nan() => ((x as f32).to_bits() | payload as u32).to_le_bytes().into(),
            4 => (x as f32).to_le_bytes().into(),
            _ if x.is_nan() => (x.to_bits() | payload).to_le_bytes().into(),
            _ => x.to_le_bytes().into(),
        }
    };
    let numbers = |n: usize| (0..n).flat_map(number).collect::<Vec<u8>>();
    let (all, own) = (width * rows, 4 * rows);
    let buffers = vec![numbers(all), numbers(all), numbers(own), vec![7; 8 * all]];
    (text.parse().unwrap(), Memory { buffers, sizes: vec![width as i64, rows as i64] })
}

#[test]
fn rows_of_any_length_have_the_bits_of_the_kernel_language() {
    for ty in ["f32", "f64"] {
        for width in (0..=41).chain([63, 64, 65, 95, 96, 97, 128, 130]) {
            for (m, memory) in [false, true].map(|known| rows_of(ty, width, 3, known)) {
                for (name, machine) in machines() {
                    compare(&m, &memory, |k| vectorize(&m, k, &machine))
                        .unwrap_or_else(|e| panic!("{ty}, {width}, {name}: {e}"));
                }
            }
        }
    }
}

/// Which lanes of the last step of a row are active is the same in all rows, and it is made before them.
#[test]
fn what_rows_have_in_common_is_made_before_them() {
    let (m, _) = rows_of("f64", 5, 3, false);
    let text = vectorize(&m, &m.kernels[0], &machines()[1].1).to_string();
    let (before, rows) = text.split_once("  for ").or_else(|| text.split_once(" = for ")).unwrap();
    assert!(before.contains("= and v"), "{text}");
    assert!(!rows.contains("i64 = min v") && !rows.contains("i64 = sub v"), "{text}");
}
