//! Programs that nobody wrote for XLA, on its CPU plugin against the interpreter: the samples of every primitive, and random programs with control flow.
//!
//! Numbers that are not floats are the same bits. Floats are as near as XLA's functions are good (`docs/book`), measured against the largest number of the
//! result: this is a test of programs, the bounds of single operations are those of `gradus-stablehlo`.

mod common;

use common::cpu;
use gradus_core::pipeline::Pipeline;
use gradus_core::primitives::BUILT_IN;
use gradus_core::program::{Atom, Builder};
use gradus_core::testing::{RandomProgram, Recipe, seeds};
use gradus_core::{Array, DType, Location, Program, interpret};
use gradus_pjrt::Pjrt;

/// What is wrong with an array; nothing if it is as near as it should be.
fn differs(have: &Array, want: &Array) -> Option<String> {
    if have.ty().ok() != want.ty().ok() {
        return Some(format!("{:?} for {:?}", have.ty(), want.ty()));
    }
    let d = want.dtype();
    if !d.is_inexact() {
        return (!have.is_identical(want)).then(|| format!("{have} for {want}"));
    }
    let parts = |a: &Array| -> Vec<f64> {
        let real = |a: &Array| a.cast(DType::F64).to_vec::<f64>().unwrap();
        if d.is_complex() { [real(&a.real()), real(&a.imag())].concat() } else { real(a) }
    };
    let (h, w) = (parts(have), parts(want));
    let finite = |v: &&f64| v.is_finite();
    let scale = w.iter().filter(finite).fold(0.0f64, |m, v| m.max(v.abs()));
    let near = match d {
        DType::F64 | DType::C128 => 1e-9,
        DType::F32 | DType::C64 => 1e-3,
        _ => 5e-2,
    };
    let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= near * scale.max(1e-30);
    (!h.iter().zip(&w).all(same)).then(|| format!("{have} for {want}"))
}

/// Runs a program on the device and here; what is wrong with it.
fn fault(p: &Pjrt, program: &Program, inputs: &[Array]) -> Option<String> {
    let want = interpret(program, inputs);
    let have = Pipeline::on(p.clone()).code(program).and_then(|f| f.run(inputs));
    let have = have.and_then(|all| {
        all.iter().map(|a| a.on_host().map(|c| Array::from((**c).clone()))).collect::<Result<Vec<_>, _>>()
    });
    match (want, have) {
        (Ok(want), Ok(have)) => have.iter().zip(&want).find_map(|(h, w)| differs(h, w)),
        (Err(_), Err(_)) => None,
        (Ok(_), Err(e)) => Some(e.message().lines().next().unwrap_or_default().to_string()),
        (Err(e), Ok(_)) => Some(format!("it did not fail: {}", e.message())),
    }
}

/// Samples of numbers at the edge where XLA's CPU gives others, and why.
const OTHERWISE: &[(&str, &[usize])] = &[
    // Subnormal operands and results are zero to it.
    ("log", &[6]),
    ("rsqrt", &[6]),
    ("lgamma", &[6]),
    ("digamma", &[6]),
    ("sign", &[6]),
    ("polygamma", &[4, 9]),
    ("rem", &[6]),
    // Powers of infinite complex numbers have other infinite and NaN parts.
    ("integer_pow", &[31, 43]),
    ("pow", &[9]),
];

#[test]
fn samples_of_every_primitive() {
    let Some(p) = cpu() else { return };
    let (mut tried, mut wrong) = (0, Vec::new());
    for entry in BUILT_IN.iter() {
        for (k, sample) in (entry.samples)().into_iter().enumerate() {
            let mut b = Builder::new(entry.name);
            let inputs: Vec<Atom> =
                sample.inputs.iter().map(|a| b.input(a.ty().unwrap().clone()).unwrap().into()).collect();
            let Ok(e) = b.equation(sample.op.clone(), &inputs, Location::default()) else { continue };
            let results: Vec<Atom> = e.results().map(Atom::from).collect();
            if OTHERWISE.iter().any(|(name, which)| *name == entry.name && which.contains(&k)) {
                continue;
            }
            tried += 1;
            if let Some(what) = fault(&p, &b.finish(results), &sample.inputs) {
                wrong.push(format!("sample {k} of {}: {what}", entry.name));
            }
        }
    }
    assert!(tried > 500, "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn random_programs() {
    let Some(p) = cpu() else { return };
    let mut wrong = Vec::new();
    for seed in seeds(60) {
        let equations = 4 + (seed % 29) as usize;
        let recipe = Recipe { equations, smooth: true, sums: true, symbolic: seed % 3 == 0, large: false };
        let r = RandomProgram::from_recipe(seed, recipe);
        if let Some(what) = fault(&p, &r.program, &r.inputs) {
            wrong.push(format!("seed {seed}: {what}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
