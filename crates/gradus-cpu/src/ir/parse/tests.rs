//! Text and back: random modules, lowered programs, every bit of a float, and texts that are no modules.

use gradus_core::optimize::{Exactness, for_execution};
use gradus_core::primitives::BUILT_IN;
use gradus_core::program::{Atom, Builder};
use gradus_core::testing::{RandomProgram, Recipe, seeds};
use gradus_core::{ErrorKind, Location, Program};

use super::*;
use crate::ir::random::{self, Config};
use crate::ir::{cut, expand, expand_with, fold};
use crate::lower::lower_with;

/// The text of a module, after it was read back.
fn there_and_back(m: &Module, context: &dyn Fn() -> String) -> String {
    let text = m.to_string();
    let back: Module = text.parse().unwrap_or_else(|e| panic!("{}: {e}\n{text}", context()));
    let carried = written(m);
    assert!(back == carried, "{} became\n{back}\nand not\n{text}", context());
    // Without comments it is the same text.
    assert_eq!(back.to_string(), carried.to_string(), "{}", context());
    text
}

/// The module, and what every pass over it makes of it.
fn after_every_pass(m: &Module, context: &dyn Fn() -> String) {
    there_and_back(m, context);
    let folded = fold(strip(m.clone()), Exactness::Exact);
    there_and_back(&folded, context);
    there_and_back(&expand_with(folded.clone(), 1), context);
    there_and_back(&cut(folded.clone(), 5).0, context);
    there_and_back(&fold(expand(folded), Exactness::Exact), context);
}

#[test]
fn random_modules_come_back() {
    for seed in seeds(300) {
        let config = Config { statements: 4 + seed as usize % 20, ..Config::default() };
        after_every_pass(&random::module(seed, &config).0, &|| format!("seed {seed}"));
    }
}

fn lowered(p: &Program, context: &dyn Fn() -> String) {
    for small in [16, 1] {
        let lowered = lower_with(p, small, true).unwrap_or_else(|e| panic!("{}: {e}", context()));
        after_every_pass(&lowered.module, context);
    }
}

#[test]
fn lowered_samples_of_every_primitive_come_back() {
    let mut tried = 0;
    for entry in BUILT_IN.iter() {
        for (k, sample) in (entry.samples)().into_iter().enumerate() {
            let mut b = Builder::new(entry.name);
            let inputs: Vec<Atom> =
                sample.inputs.iter().map(|a| b.input(a.ty().unwrap().clone()).unwrap().into()).collect();
            let Ok(e) = b.equation(sample.op.clone(), &inputs, Location::default()) else { continue };
            let results: Vec<Atom> = e.results().map(Atom::from).collect();
            lowered(&b.finish(results), &|| format!("sample {k} of {}", entry.name));
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn lowered_random_programs_come_back() {
    for seed in seeds(150) {
        let recipe = Recipe {
            equations: 4 + (seed % 29) as usize,
            smooth: seed % 3 == 0,
            sums: seed % 2 == 0,
            symbolic: seed % 5 == 0,
            large: seed % 7 == 0,
        };
        let random = RandomProgram::from_recipe(seed, recipe).program;
        lowered(&random, &|| format!("seed {seed} as written"));
        let ready = for_execution(&random, Exactness::Exact).unwrap();
        lowered(&ready, &|| format!("seed {seed} made ready"));
    }
}

/// `b0[0] = e`, for a constant.
fn constant(ty: Ty, bits: u64) -> Module {
    let mut m = Module { name: "f".into(), ..Module::default() };
    m.buffers.push(BufferInfo { ty, role: Role::Scratch });
    let value = m.value(ty);
    m.main = vec![Stmt::Let(value, Expr::Const(bits)), Stmt::Store { buffer: Buffer(0), at: Index::at(0), value }];
    m
}

#[test]
fn floats_keep_every_bit() {
    let wide = [0, 1 << 63, 1, f64::MAX.to_bits(), f64::MIN_POSITIVE.to_bits(), 0x7ff << 52, 0xfff << 52];
    let nans = [f64::NAN.to_bits(), 0x7ff8_0000_0000_0001, 0xfff8 << 48, 0x7ff0_0000_0000_0001, u64::MAX];
    let mut state = 7u64;
    let some = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state
    });
    for bits in wide.into_iter().chain(nans).chain(some.take(2000)) {
        there_and_back(&constant(Ty::F64, bits), &|| format!("{bits:x}"));
        // Its upper half is a number of the same kind.
        there_and_back(&constant(Ty::F32, bits >> 32), &|| format!("{:x}", bits >> 32));
    }
}

#[test]
fn whole_numbers_keep_their_ends() {
    for ty in TYPES {
        let all = u64::MAX >> (64 - ty.size() * 8);
        let numbers = if ty == Ty::Bool { vec![0, 1] } else { vec![0, 1, all, all >> 1, (all >> 1) + 1] };
        for bits in numbers {
            there_and_back(&constant(ty, bits), &|| format!("{ty} {bits:x}"));
        }
    }
    let mut m = constant(Ty::I64, 3);
    for offset in [i64::MIN, i64::MAX, -1] {
        for terms in [vec![], vec![(Value(0), Int::Const(i64::MIN))], vec![(Value(0), Int::Value(Value(0)))]] {
            let at = Index { offset, terms: terms.into(), ..Index::default() };
            m.main.truncate(1);
            m.main.push(Stmt::Store { buffer: Buffer(0), at, value: Value(0) });
            there_and_back(&m, &|| format!("at {offset}"));
        }
    }
}

#[test]
fn any_name_comes_back() {
    for name in ["", "two words", "a\"b\\c", "line\nbreak\r", "größe", "main", "0", "// no comment", "x {"] {
        let mut m = constant(Ty::F32, 0);
        m.name = name.into();
        m.calls.push(name.into());
        m.main.push(Stmt::Call(Box::new(Call { entry: 0, buffers: vec![], regions: vec![] })));
        let kernel = Kernel { name: name.into(), inputs: vec![], outputs: vec![], parallel: false, body: vec![] };
        m.kernels.push(kernel);
        m.main.push(Stmt::Kernel(0));
        there_and_back(&m, &|| format!("{name:?}"));
    }
}

#[test]
fn no_two_operations_have_one_name() {
    let mut names: Vec<String> = operations().map(|op| op.to_string()).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A text of loops in loops.
fn nested(depth: usize) -> String {
    let open: String = (0..depth).map(|i| format!("for v{i} < 1 {{\n")).collect();
    format!("main f {{\n{open}{}}}\n", "}\n".repeat(depth))
}

#[test]
fn what_nests_too_deep_is_refused() {
    let deep: Module = nested(DEEPEST - 1).parse().unwrap();
    after_every_pass(&deep, &|| "the deepest".into());
    for depth in [DEEPEST, 100_000] {
        let e = nested(depth).parse::<Module>().unwrap_err().to_string();
        assert!(e.contains("deep") && e.contains(&format!("at line {},", DEEPEST + 2)), "{e}");
    }
}

#[test]
fn texts_that_were_spoiled_are_read_or_refused() {
    let pieces = [
        "",
        " ",
        "\n",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        "=",
        "*",
        "+",
        "-",
        "//",
        "\"",
        "\\",
        "v0",
        "v1",
        "v99",
        "v4294967295",
        "b0",
        "b7",
        "c0",
        "k0",
        "f32",
        "i64",
        "bool",
        "nan",
        "nan:7fc00001",
        "nan:0",
        "1e999",
        "-0",
        "99999999999999999999",
        "é",
        "for",
        "lanes",
        "while",
        "if",
        "switch",
        "case 0:",
        "give",
        "next",
        "fold add",
        "run",
        "call",
        "swap",
        "main",
        "kernel",
        "parallel",
        "function exp",
        "sizes 4294967295",
        "size 9",
        "convert.f64",
        "convert.",
        "polygamma.",
        "rare.sin",
        "with",
        "v0 = v1",
        "b0[0] = v0",
        "\0",
    ];
    let mut state = 1u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    let (mut read, mut refused) = (0, 0);
    for seed in seeds(60) {
        let module = random::module(seed, &Config { statements: 4, ..Config::default() }).0;
        let text = fold(module, Exactness::Exact).to_string();
        let cuts: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
        for _ in 0..60 {
            let mut spoiled = text.clone();
            let (a, b) = (below(cuts.len()), below(12));
            let (start, end) = (cuts[a], cuts[(a + b).min(cuts.len() - 1)]);
            match below(4) {
                0 => spoiled.truncate(start),
                1 => spoiled.replace_range(start..end, ""),
                2 => spoiled.replace_range(start..end, pieces[below(pieces.len())]),
                // A line somewhere else.
                _ => {
                    let lines: Vec<&str> = text.lines().collect();
                    let mut lines = lines.clone();
                    let line = lines.remove(below(lines.len()));
                    lines.insert(below(lines.len()), line);
                    spoiled = lines.iter().map(|l| format!("{l}\n")).collect();
                }
            }
            match spoiled.parse::<Module>() {
                Ok(m) => {
                    read += 1;
                    // What was read is a module: passes take it.
                    after_every_pass(&m, &|| format!("seed {seed}\n{spoiled}"));
                }
                Err(e) => {
                    refused += 1;
                    let located = e.kind() != ErrorKind::Parse || e.to_string().contains("of the kernel text");
                    assert!(located, "{e}");
                }
            }
        }
    }
    assert!(read > 100 && refused > 1000, "{read} read, {refused} refused");
}
