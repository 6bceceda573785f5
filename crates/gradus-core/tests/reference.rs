//! Values of every primitive against those that another implementation computed for the same samples: the file
//! `data/primitives.jsonl`, made by `scripts/reference/primitives.py` (JAX, and mpmath where rounding matters).
//!
//! Whole numbers, bools and everything that only moves elements must be equal; zeros have the same sign, a NaN meets
//! a NaN. Floats may differ by units in the last place, as the tables below say for each operation. Forward derivatives
//! are JAX's too, at ties and at the kinks that samples have. Where conventions differ on purpose, `jax_functions` of the
//! `gradus` crate says so.

#[path = "support/samples.rs"]
mod samples;

use std::collections::{BTreeMap, BTreeSet};

use gradus_core::primitives::{BUILT_IN, Sample};
use gradus_core::program::Builder;
use gradus_core::transform::jvp_on;
use gradus_core::{Array, DType, ErrorKind, Location};
use serde_json::Value;

const HOW: &str = "make the file anew: see the head of scripts/reference/primitives.py";

/// One line of the file.
struct Line {
    sample: Value,
    by: String,
    outputs: Vec<Value>,
    derivatives: Option<Vec<Value>>,
}

/// The lines of the file by what they are about, wherever they stand in it.
fn lines() -> BTreeMap<String, Line> {
    let text = include_str!("data/primitives.jsonl");
    let read = |line: &str| -> Option<Line> {
        let Value::Object(mut fields) = serde_json::from_str(line).ok()? else { return None };
        let by = fields.remove("by")?.as_str()?.to_string();
        let outputs = fields.remove("outputs")?.as_array()?.clone();
        let derivatives = fields.remove("derivatives")?.as_array().cloned();
        Some(Line { sample: Value::Object(fields), by, outputs, derivatives })
    };
    let lines = text.lines().map(|line| read(line).unwrap_or_else(|| panic!("not a sample: {line}")));
    lines.map(|line| (line.sample.to_string(), line)).collect()
}

/// Every sample with its line.
fn samples_with_lines(lines: &BTreeMap<String, Line>) -> impl Iterator<Item = (&Line, Sample)> {
    samples::all().into_iter().map(|sample| {
        let about = samples::describe(&sample).to_string();
        let line = lines.get(&about).unwrap_or_else(|| panic!("no line for this sample; {HOW}\n{about}"));
        (line, sample)
    })
}

/// How many units in the last place a result may be off.
///
/// Functions are compared with the exact value rounded once, and promise to be off by two units at most; half floats are
/// computed in f32 and then rounded, which hides all of that.
fn allowed(op: &str, dtype: DType, by: &str) -> f64 {
    match (by, op, dtype) {
        (_, _, d) if !d.is_inexact() => 0.0,
        // Products of half floats are rounded once, those of JAX after each factor.
        ("jax", "reduce_prod" | "cumprod", DType::F16 | DType::BF16) => 1.0,
        // Both are rounded at every step, each in its own order.
        ("jax", "fft", _) => 64.0,
        ("mpmath", "sqrt", DType::F32 | DType::F64) => 0.0,
        ("mpmath", _, DType::F32 | DType::F64) => 2.0,
        // e^(y log x): the rounding of the logarithm counts as often as y is large. Here it is 20.
        ("mpmath", "pow", DType::C128) => 128.0,
        ("mpmath", _, DType::C64 | DType::C128) => 2.0,
        _ => 0.0,
    }
}

/// Operations whose every element is made of all elements of a matrix: an element may be off by so many units of the largest, and a zero may be
/// a number of that size. By whom a matrix is decomposed decides about the last places.
const BY_MATRIX: &[&str] =
    &["cholesky", "triangular_solve", "lu", "solve", "slogdet", "pinv", "eigh", "svd", "qr", "eig"];
const UNITS_OF_LARGEST: f64 = 256.0;

/// A place where the value is another one on purpose.
struct Difference {
    op: &'static str,
    params: &'static str,
    operand: &'static str,
    ours: &'static str,
    why: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        op: "polygamma",
        params: r#"{"order":1}"#,
        operand: "-inf",
        ours: "nan",
        why: "there are poles all the way, so there is no limit; SciPy has inf",
    },
    Difference {
        op: "polygamma",
        params: r#"{"order":2}"#,
        operand: "-inf",
        ours: "nan",
        why: "as above; SciPy has -inf",
    },
    Difference {
        op: "polygamma",
        params: r#"{"order":2}"#,
        operand: "-0.0",
        ours: "inf",
        why: "the limit from the left, as the sign of the zero asks; SciPy has that from the right",
    },
    Difference {
        op: "polygamma",
        params: r#"{"order":2}"#,
        operand: "-1.0",
        ours: "nan",
        why: "the limits from both sides differ; SciPy has that from the right",
    },
];

/// Whether an element of an operation on one operand is a listed difference; its number in the list.
fn listed(line: &Line, element: usize, ours: &str) -> Option<usize> {
    let [operand] = line.sample["inputs"].as_array()?.as_slice() else { return None };
    let operand = operand["values"].as_str()?.split_whitespace().nth(element)?;
    let (op, params) = (line.sample["op"].as_str()?, line.sample["params"].to_string());
    DIFFERENCES.iter().position(|d| {
        d.op == op && d.params == params && d.operand == operand && ours.trim_start_matches('-').starts_with(d.ours)
    })
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
    let finite = |all: &[f64]| all.iter().all(|v| v.is_finite());
    // What becomes of the parts of a complex number that overflows depends on fused operations.
    if dtype.is_complex() && !finite(have) && !finite(want) {
        return 0.0;
    }
    let finite = finite(have) && finite(want);
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

/// Compares one result; the numbers of listed differences that were met go to `met`.
fn compare(have: &Array, want: &Value, line: &Line, met: &mut BTreeSet<usize>) -> Result<(), String> {
    let (dtype, have) = (have.dtype(), samples::array(have));
    if have["type"] != want["type"] {
        return Err(format!("{} where {} is expected", have["type"], want["type"]));
    }
    let units = allowed(line.sample["op"].as_str().unwrap_or_default(), dtype, &line.by);
    let elements =
        |v: &'_ Value| v["values"].as_str().unwrap_or_default().split_whitespace().map(String::from).collect();
    let (have, want): (Vec<String>, Vec<String>) = (elements(&have), elements(want));
    if have.len() != want.len() {
        return Err(format!("{} elements where {} are expected", have.len(), want.len()));
    }
    let by_matrix = BY_MATRIX.contains(&line.sample["op"].as_str().unwrap_or_default());
    if by_matrix && dtype.is_inexact() {
        return compare_matrices(&have, &want, dtype);
    }
    for (i, (a, b)) in have.iter().zip(&want).enumerate() {
        let off = match dtype.is_inexact() {
            true => distance(&parts(a, dtype), &parts(b, dtype), dtype),
            false if a == b => 0.0,
            false => f64::INFINITY,
        };
        if off > units {
            match listed(line, i, a) {
                Some(known) => met.insert(known),
                None => {
                    return Err(format!("element {i}: {a} where {b} is expected, {off:.2} units off, {units} allowed"));
                }
            };
        }
    }
    Ok(())
}

/// Compares results of which every element may be off by a part of the largest.
fn compare_matrices(have: &[String], want: &[String], dtype: DType) -> Result<(), String> {
    let reals = |all: &[String]| all.iter().flat_map(|t| parts(t, dtype)).collect::<Vec<f64>>();
    let (have, want) = (reals(have), reals(want));
    let largest = want.iter().filter(|v| v.is_finite()).fold(0.0, |m: f64, v| m.max(v.abs()));
    let unit = if dtype.real_part() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    for (i, (a, b)) in have.iter().zip(&want).enumerate() {
        let near = (a - b).abs() <= UNITS_OF_LARGEST * unit * largest;
        if !(near || a == b || (a.is_nan() && b.is_nan())) {
            return Err(format!("real {i}: {a} where {b} is expected"));
        }
    }
    Ok(())
}

#[test]
fn the_file_has_the_samples_of_today_and_no_others() {
    let lines = lines();
    let mut left: BTreeSet<&str> = lines.keys().map(String::as_str).collect();
    for (line, _) in samples_with_lines(&lines) {
        left.remove(line.sample.to_string().as_str());
    }
    assert!(left.is_empty(), "{} lines are of no sample; {HOW}\n{left:?}", left.len());
}

#[test]
fn every_primitive_has_the_values_of_another_implementation() {
    let (mut wrong, mut met, mut seen) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let lines = lines();
    for (line, sample) in samples_with_lines(&lines) {
        seen.insert(sample.op.name());
        let outputs = match sample.op.evaluate(&sample.inputs) {
            Ok(outputs) if outputs.len() == line.outputs.len() => outputs,
            other => panic!("{other:?} where {:?} is expected: {}", line.outputs, line.sample),
        };
        for (have, want) in outputs.iter().zip(&line.outputs) {
            if let Err(e) = compare(have, want, line, &mut met) {
                wrong.push(format!("{e}\n  {}\n  have {have:?}", line.sample));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    for (i, d) in DIFFERENCES.iter().enumerate() {
        assert!(met.contains(&i), "`{}` of {} is no longer different ({})", d.op, d.operand, d.why);
    }
    for entry in BUILT_IN.iter() {
        let there = seen.contains(entry.name) || samples::NOT_COMPARED.contains(&entry.name);
        assert!(there, "`{}` has no reference values; {HOW}", entry.name);
    }
}

/// The derivative of a sample in the direction of its tangents; none for a result that does not vary.
fn derivatives(sample: &Sample) -> gradus_core::Result<Vec<Option<Array>>> {
    let mut builder = Builder::new("sample");
    let mut atoms = Vec::new();
    for input in &sample.inputs {
        atoms.push(builder.input(input.ty()?.clone())?.into());
    }
    let outputs = builder.equation(sample.op.clone(), &atoms, Location::unknown())?.results().map(Into::into).collect();
    let (_, tangents) = jvp_on(&builder.finish(outputs), &sample.inputs, &samples::tangents(sample))?;
    Ok(tangents)
}

/// Operations whose derivative is another one than JAX's on purpose, and those that JAX has none for.
const OTHER_DERIVATIVES: &[(&str, &str)] = &[
    ("acosh", "JAX has the wrong branch of the root left of the imaginary axis"),
    ("cummax", "the first of equals has the derivative; in JAX it depends on how the scan is cut up"),
    ("cummin", "as cummax"),
    ("sign", "of a complex number it turns with it; JAX has zero"),
];
const NO_DERIVATIVE_IN_JAX: &[(&str, &str)] = &[
    ("convert", "to integers and bools by the script"),
    ("eig", "not of the vectors of an empty matrix"),
    ("mul_add", "by the script: JAX has no such operation"),
    ("nextafter", "JAX has no rule"),
    ("scatter", "JAX has no rule for products with repeated indices"),
    ("sort", "downwards by the script"),
    ("svd", "nobody has a rule for the full vectors of a matrix that is not square"),
];

/// Operations that JAX differentiates where there is no rule here.
const MISSING: &[(&str, &str)] =
    &[("qr", "of a full Q JAX has the derivative in one of many gauges, which is not that of its values")];

/// Compares a derivative with JAX's, which differences of values cannot do at a kink or a tie.
fn compare_derivative(have: Option<&Array>, want: &Value, operands: &[Vec<Vec<f64>>]) -> Result<(), String> {
    let Some(ty) = want["type"].as_str() else {
        return have.map_or(Ok(()), |t| Err(format!("a derivative {t:?} of what has none")));
    };
    if let Some(t) = have.filter(|t| t.ty().is_ok_and(|t| t.to_string() != ty)) {
        return Err(format!("{t:?} where {ty} is expected"));
    }
    let want = elements(want);
    let have = match have {
        Some(t) => elements(&samples::array(t)),
        None => want.iter().map(|w| vec![0.0; w.len()]).collect(),
    };
    let largest = want.iter().flatten().filter(|v| v.is_finite()).fold(0.0, |m: f64, v| m.max(v.abs()));
    for (i, (a, b)) in have.iter().zip(&want).enumerate() {
        let size = b.iter().fold(largest / 1000.0, |m: f64, v| m.max(v.abs()));
        // Where JAX has infinities or NaN a pole is near, and where squares of an operand overflow, rules have NaN.
        let extreme = operands.iter().filter_map(|x| x.get(i)).flatten().any(|v| v.abs() > 1e150);
        let near = |a: f64, b: f64| !b.is_finite() || (a.is_nan() && extreme) || (a - b).abs() <= 1e-10 * size;
        if !a.iter().zip(b).all(|(a, b)| near(*a, *b)) {
            return Err(format!("element {i}: derivative {a:?} where JAX has {b:?}"));
        }
    }
    Ok(())
}

/// The elements of an array of 64-bit floats or complex numbers.
fn elements(array: &Value) -> Vec<Vec<f64>> {
    let inexact = array["type"].as_str().is_some_and(|t| t.starts_with("f64") || t.starts_with("c128"));
    let text = array["values"].as_str().filter(|_| inexact).unwrap_or_default();
    text.split_whitespace().map(|t| parts(t, DType::F64)).collect()
}

#[test]
fn derivatives_at_kinks_and_ties_are_those_of_jax() {
    let (mut wrong, mut without, mut other, mut missing) =
        (Vec::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let lines = lines();
    for (line, sample) in samples_with_lines(&lines) {
        if samples::tangents(&sample).iter().all(Option::is_none) {
            continue;
        }
        let Some(want) = &line.derivatives else {
            without.insert(sample.op.name());
            continue;
        };
        let operands: Vec<_> = sample.inputs.iter().map(|a| elements(&samples::array(a))).collect();
        let have = match derivatives(&sample) {
            Err(e) if e.kind() == ErrorKind::MissingRule => {
                missing.insert(sample.op.name());
                continue;
            }
            have => have.unwrap_or_else(|e| panic!("{e}")),
        };
        for (have, want) in have.iter().zip(want) {
            let Err(e) = compare_derivative(have.as_ref(), want, &operands) else { continue };
            if OTHER_DERIVATIVES.iter().any(|(op, _)| *op == sample.op.name()) {
                other.insert(sample.op.name());
            } else {
                wrong.push(format!("{e}\n  {}\n  have {have:?}", line.sample));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    let names = |list: &[(&'static str, &str)]| list.iter().map(|(op, _)| *op).collect::<BTreeSet<_>>();
    assert_eq!(other, names(OTHER_DERIVATIVES), "those that differ, and the list of them");
    assert_eq!(missing, names(MISSING), "those that have no rule here, and the list of them");
    assert_eq!(without, names(NO_DERIVATIVE_IN_JAX), "those that JAX has no derivative for, and the list of them");
}
