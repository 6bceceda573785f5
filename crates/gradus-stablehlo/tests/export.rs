//! Programs go out and come back: every primitive's samples compute the same bits after export, text, reader and importer; what cannot go out says so.

use std::sync::Arc;

use gradus_core::primitives::effects::{Callback, Host, Kind};
use gradus_core::primitives::{BUILT_IN, Op, Sample};
use gradus_core::program::{Atom, Builder};
use gradus_core::testing::canonical;
use gradus_core::{Array, DType, Location, Program, Type, interpret};
use gradus_stablehlo::{Accuracy, Export, Target, export, exported, import, read_one, stablehlo_text, write};

fn program_of(op: &Op, inputs: &[Array]) -> Program {
    let mut b = Builder::new(op.name());
    let inputs: Vec<Atom> = inputs.iter().map(|x| b.input(x.ty().unwrap().clone()).unwrap().into()).collect();
    let results = b.equation(op.clone(), &inputs, Location::unknown()).unwrap().results();
    let results: Vec<Atom> = results.map(Atom::from).collect();
    b.finish(results)
}

/// What no program can do that StableHLO has operations for.
const REFUSED: &[&str] = &["eig", "schur"];

/// Operations whose results are rounded by who computes them: they come back as loops of basic operations, or in another order.
fn is_rounded(name: &str) -> bool {
    // `chlo.sinh` and `chlo.cosh` of f32 come in by the formula of chlo.
    matches!(name, "lu" | "qr" | "eigh" | "svd" | "pinv" | "solve" | "slogdet" | "sinh" | "cosh")
}

/// What differs between two lists of arrays, if anything does. A key comes back as its bits.
fn difference(want: &[Array], have: &[Array], rounded: bool) -> Option<String> {
    if want.len() != have.len() {
        return Some(format!("{} results for {}", have.len(), want.len()));
    }
    for (i, (w, h)) in want.iter().zip(have).enumerate() {
        let (Some(w), Some(h)) = (w.concrete(), h.concrete()) else {
            return Some(format!("result {i} has no numbers"));
        };
        if w.dims() != h.dims() {
            return Some(format!("result {i} is {} for {}", h.ty(), w.ty()));
        }
        for k in 0..w.count() {
            let (a, b) = (w.scalar_at(k).unwrap(), h.scalar_at(k).unwrap());
            let (a, b) = (canonical(a), canonical(b));
            let bits = |s: gradus_core::Scalar| match s {
                gradus_core::Scalar::Key(k) => gradus_core::Scalar::U64(k.0),
                other => other,
            };
            let near = || {
                let real = |s: gradus_core::Scalar| Array::scalar(s).real().cast(DType::F64).item::<f64>().unwrap();
                let part = |s: gradus_core::Scalar| {
                    if s.dtype().is_complex() {
                        Array::scalar(s).imag().cast(DType::F64).item::<f64>().unwrap()
                    } else {
                        0.0
                    }
                };
                let bound = if matches!(w.ty().dtype(), DType::F32 | DType::C64) { 1e-4 } else { 1e-9 };
                let close =
                    |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= bound * (1.0 + x.abs());
                close(real(a), real(b)) && close(part(a), part(b))
            };
            if bits(a) != bits(b) && !(rounded && near()) {
                return Some(format!("result {i}[{k}] is {b} for {a}"));
            }
        }
    }
    None
}

/// The program again, from its text.
fn returned(program: &Program, options: &Export) -> Result<Program, String> {
    let text = stablehlo_text(program, options).map_err(|e| format!("export: {e}"))?;
    let module = read_one("exported", &text).map_err(|e| format!("read: {e}\n{text}"))?;
    if write::write(&module) != text {
        return Err(format!("the text reads back as another:\n{text}\n{}", write::write(&module)));
    }
    let imported = import(&module).map_err(|e| format!("import: {e}\n{text}"))?;
    Ok((*imported.program).clone())
}

fn round_trip(program: &Program, inputs: &[Array], rounded: bool) -> Result<(), String> {
    let want = interpret(program, inputs).map_err(|e| format!("interpret: {e}"))?;
    let again = returned(program, &Export::default())?;
    let keys = |(x, t): (&Array, &Type)| if x.dtype() == t.dtype() { x.clone() } else { x.bitcast(t.dtype()) };
    let inputs: Vec<Array> = inputs.iter().zip(again.inputs()).map(keys).collect();
    let have = interpret(&again, &inputs).map_err(|e| format!("interpret again: {e}"))?;
    match difference(&want, &have, rounded) {
        None => Ok(()),
        Some(words) => Err(format!("{words}\n{}", stablehlo_text(program, &Export::default()).unwrap())),
    }
}

#[test]
fn every_primitive_goes_out_and_comes_back_with_its_bits() {
    let mut faults = Vec::new();
    let mut count = 0;
    for entry in BUILT_IN.iter() {
        let samples: Vec<Sample> = (entry.samples)();
        assert!(!samples.is_empty(), "`{}` has no samples", entry.name);
        for (i, sample) in samples.iter().enumerate() {
            let program = program_of(&sample.op, &sample.inputs);
            count += 1;
            if REFUSED.contains(&entry.name) {
                let e = stablehlo_text(&program, &Export::default()).unwrap_err().to_string();
                assert!(e.contains(entry.name) && e.contains("StableHLO"), "{e}");
                continue;
            }
            if let Err(e) = round_trip(&program, &sample.inputs, is_rounded(entry.name)) {
                faults.push(format!("{}-{i}: {e}", entry.name));
            }
        }
    }
    let shown: Vec<String> = faults.iter().map(|f| f.chars().take(1500).collect()).collect();
    assert!(faults.is_empty(), "{} of {count} samples:\n{}", faults.len(), shown.join("\n"));
}

/// A program from its text.
fn program(text: &str) -> Program {
    text.parse().unwrap()
}

fn text_of(p: &Program) -> String {
    stablehlo_text(p, &Export::default()).unwrap()
}

#[test]
fn a_product_and_its_sine() {
    let p = program("program f(x0: f32[3]) {\n  x1: f32[3] = mul x0 x0\n  x2: f32[3] = sin x1\n  return x2\n}");
    assert_eq!(
        text_of(&p),
        "module @f {\n  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {\n    %0 = stablehlo.multiply %arg0, %arg0 : tensor<3xf32>\n    %1 = stablehlo.sine %0 : tensor<3xf32>\n    return %1 : tensor<3xf32>\n  }\n}\n"
    );
}
