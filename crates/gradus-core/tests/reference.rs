//! Values of every primitive against those that another implementation computed for the same samples: the file
//! `data/primitives.jsonl`, made by `scripts/reference/primitives.py` (JAX, and mpmath where rounding matters).
//!
//! Whole numbers, bools and everything that only moves elements must be equal; zeros have the same sign, a NaN meets
//! a NaN. Floats may differ by units in the last place, as the tables below say for each operation.

#[path = "support/samples.rs"]
mod samples;

use gradus_core::primitives::Sample;
use gradus_core::{Array, DType};
use serde_json::Value;

const HOW: &str = "make the file anew: see the head of scripts/reference/primitives.py";

/// One line of the file.
struct Line {
    sample: Value,
    by: String,
    outputs: Vec<Value>,
}

fn lines() -> Vec<Line> {
    let text = include_str!("data/primitives.jsonl");
    let read = |line: &str| -> Option<Line> {
        let Value::Object(mut fields) = serde_json::from_str(line).ok()? else { return None };
        let by = fields.remove("by")?.as_str()?.to_string();
        let outputs = fields.remove("outputs")?.as_array()?.clone();
        Some(Line { sample: Value::Object(fields), by, outputs })
    };
    text.lines().map(|line| read(line).unwrap_or_else(|| panic!("not a sample: {line}"))).collect()
}

/// How many units in the last place a result may be off.
///
/// Functions are compared with the exact value rounded once; the libraries behind them promise less than one unit for
/// the elementary ones. Half floats are computed in f32 and rounded, which is off by one at most. Sums of floats depend
/// on their order.
fn allowed(op: &str, dtype: DType, by: &str) -> f64 {
    match (by, op, dtype) {
        (_, _, d) if !d.is_inexact() => 0.0,
        _ => 0.0,
    }
}

/// The distance of two floats in units in the last place of the wanted one; of complex numbers, of the larger part.
fn distance(have: &[f64], want: &[f64], dtype: DType) -> f64 {
    let (digits, low) = match dtype.real_part() {
        DType::F16 => (11, -14),
        DType::BF16 => (8, -126),
        DType::F32 => (24, -126),
        _ => (53, -1022),
    };
    // The signs of a complex number's zero parts depend on the order of operations; nothing else does.
    let signs = |a: f64, b: f64| dtype.is_complex() || a.is_sign_negative() == b.is_sign_negative();
    let same = |a: f64, b: f64| (a == b && signs(a, b)) || (a.is_nan() && b.is_nan());
    if have.iter().zip(want).all(|(a, b)| same(*a, *b)) {
        return 0.0;
    }
    let finite = have.iter().chain(want).all(|v| v.is_finite());
    let largest = want.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    // A zero of the other sign, or a number where zero is wanted, is wrong at any distance.
    let zeros = dtype.is_float() && largest == 0.0;
    if !finite || zeros {
        return f64::INFINITY;
    }
    let exponent = ((largest.to_bits() >> 52) as i32 - 1023).max(low);
    let unit = 2f64.powi(exponent - digits + 1);
    let off = have.iter().zip(want).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
    if unit == 0.0 { f64::INFINITY } else { off / unit }
}

/// An element as the reals it is made of. Text is the shortest that reads back in the number's own width.
fn parts(text: &str, dtype: DType) -> Vec<f64> {
    let real = |t: &str| match (t.starts_with("nan"), dtype.real_part()) {
        (true, _) => f64::NAN,
        (_, DType::F64) => t.parse().unwrap_or_else(|_| panic!("{t}")),
        _ => t.parse::<f32>().unwrap_or_else(|_| panic!("{t}")) as f64,
    };
    match text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        Some(pair) => pair.split(',').map(real).collect(),
        None => vec![real(text)],
    }
}

fn compare(have: &Array, want: &Value, units: f64) -> Result<f64, String> {
    let have = (have.dtype(), samples::array(have));
    if have.1["type"] != want["type"] {
        return Err(format!("{} where {} is expected", have.1["type"], want["type"]));
    }
    let text = |v: &Value| v["values"].as_str().unwrap_or_default().to_string();
    let (a, b) = (text(&have.1), text(want));
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split_whitespace().collect(), b.split_whitespace().collect());
    let mut worst = 0.0_f64;
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        let off = match have.0.is_inexact() {
            true => distance(&parts(a, have.0), &parts(b, have.0), have.0),
            false if a == b => 0.0,
            false => f64::INFINITY,
        };
        worst = worst.max(off);
        if off > units {
            return Err(format!("element {i}: {a} where {b} is expected, {off:.2} units off with {units} allowed"));
        }
    }
    if a.len() != b.len() { Err(format!("{} elements where {} are expected", a.len(), b.len())) } else { Ok(worst) }
}

#[test]
fn the_file_has_the_samples_of_today() {
    let (have, want): (Vec<Line>, Vec<Sample>) = (lines(), samples::all());
    for (line, sample) in have.iter().zip(&want) {
        assert_eq!(line.sample, samples::describe(sample), "{HOW}");
    }
    assert_eq!(have.len(), want.len(), "{HOW}");
}

#[test]
fn every_primitive_has_the_values_of_another_implementation() {
    let mut wrong = Vec::new();
    let mut worst = std::collections::BTreeMap::new();
    for (line, sample) in lines().iter().zip(samples::all()) {
        let op = sample.op.name();
        let outputs = sample.op.evaluate(&sample.inputs).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(outputs.len(), line.outputs.len(), "{op}");
        for (have, want) in outputs.iter().zip(&line.outputs) {
            let units = if std::env::var("REPORT").is_ok() { f64::MAX } else { allowed(op, have.dtype(), &line.by) };
            match compare(have, want, units) {
                Ok(off) => {
                    let entry = worst.entry((line.by.clone(), op, have.dtype())).or_insert(0.0_f64);
                    *entry = entry.max(off);
                }
                Err(e) => wrong.push(format!("{e}\n  {}\n  have {have:?}", line.sample)),
            }
        }
    }
    if std::env::var("REPORT").is_ok() {
        for (k, v) in worst { if v > 0.0 { println!("{k:?} {v}"); } }
    }
    assert!(wrong.is_empty(), "{} differ\n\n{}", wrong.len(), wrong.join("\n\n"));
}
