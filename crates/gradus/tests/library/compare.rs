//! How a function of a list of arrays is held against its line of the file.

use std::collections::BTreeSet;

use gradus::prelude::*;
use serde_json::Value;

/// How far a number may be off, relative to itself or to a thousandth of the largest beside it.
const TOLERANCE: f64 = 1e-10;

type Function = fn(&[Array]) -> Vec<Array>;

/// A function with the name of its line.
pub struct Entry {
    pub name: &'static str,
    pub f: Function,
    pub tolerance: f64,
}

/// What a function of the tables gives: one array or several.
pub trait Results {
    fn results(self) -> Vec<Array>;
}

impl Results for Array {
    fn results(self) -> Vec<Array> {
        vec![self]
    }
}

impl Results for Vec<Array> {
    fn results(self) -> Vec<Array> {
        self
    }
}

impl Results for (Array, Array) {
    fn results(self) -> Vec<Array> {
        vec![self.0, self.1]
    }
}

impl Results for (Array, Array, Array, Array) {
    fn results(self) -> Vec<Array> {
        vec![self.0, self.1, self.2, self.3]
    }
}

/// Tables of functions: `"name" = |x| x[0].sin();`, with `~ 1e-8` behind a name whose numbers may be further off.
macro_rules! table {
    ($($name:literal $(~ $tolerance:literal)? = |$x:ident| $body:expr;)*) => {
        vec![$({
            let tolerance = [$($tolerance,)? $crate::compare::usual()][0];
            $crate::compare::Entry { name: $name, f: |$x| $crate::compare::Results::results($body), tolerance }
        }),*]
    };
}
pub(crate) use table;

pub fn usual() -> f64 {
    TOLERANCE
}

/// An array of the file.
fn read(json: &Value) -> Option<Array> {
    let (ty, values) = (json["type"].as_str()?, json["values"].as_str()?);
    let spec = Array::spec(ty);
    let real = |t: &str| match t {
        "true" => 1.0,
        "false" => 0.0,
        _ => t.parse::<f64>().unwrap_or_else(|e| panic!("{e}: {t}")),
    };
    let element = |t: &str| match t.strip_prefix('(').and_then(|t| t.strip_suffix(')')?.split_once(',')) {
        Some((re, im)) => Complex::new(real(re), real(im)),
        None => Complex::new(real(t), 0.0),
    };
    let parts: Vec<Complex<f64>> = values.split_whitespace().map(element).collect();
    let array = Array::from_vec(parts, spec.shape());
    Some(if spec.dtype().is_complex() { array } else { array.real().cast(spec.dtype()) })
}

fn list(json: &Value) -> Vec<Option<Array>> {
    json.as_array().map(|all| all.iter().map(read).collect()).unwrap_or_default()
}

/// cos(0.7 (i + 1) + k), or the sine with another factor, in the shape of an array.
fn wave(like: &Array, factor: f64, k: usize, sine: bool) -> Array {
    let n = like.shape().iter().map(|d| d.as_usize().unwrap_or(1)).product::<usize>();
    let at = |i: usize| factor * (i as f64 + 1.0) + k as f64;
    let values: Vec<f64> = (0..n).map(|i| if sine { at(i).sin() } else { at(i).cos() }).collect();
    Array::from_vec(values, like.shape())
}

/// The sum of all results with weights.
fn weighted(outputs: &[Array]) -> Array {
    let mut total = Array::from(0.0_f64);
    for (k, y) in outputs.iter().enumerate().filter(|(_, y)| y.dtype().is_inexact()) {
        let y = if y.dtype().is_complex() { y.real() + 0.5_f64 * y.imag() } else { y.cast(DType::F64) };
        total += (&y * wave(&y, 0.7, k, false)).sum();
    }
    total
}

/// The first place at which an array is too far from what is wanted.
fn differs(have: &Array, want: &Array, tolerance: f64) -> Option<String> {
    let numbers = |x: &Array| x.cast(DType::C128).to_vec::<Complex<f64>>();
    let (h, w) = match (numbers(have), numbers(want)) {
        (Ok(h), Ok(w)) => (h, w),
        (Err(e), _) | (_, Err(e)) => return Some(e.to_string()),
    };
    if have.shape() != want.shape() {
        return Some(format!("{have:?} where {want:?} is expected"));
    }
    let largest = w.iter().map(|z| z.norm()).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let near = |h: f64, w: f64, size: f64| h == w || (h.is_nan() && w.is_nan()) || (h - w).abs() <= tolerance * size;
    let place = (0..w.len()).find(|i| {
        let size = w[*i].norm().max(largest / 1000.0);
        !(near(h[*i].re, w[*i].re, size) && near(h[*i].im, w[*i].im, size))
    })?;
    Some(format!("element {place} is {} where {} is expected\n  have {have}\n  want {want}", h[place], w[place]))
}

/// The derivative that forward mode gives beside the value, whether mistakes come apart or inside of arrays.
trait Along<O> {
    fn along(self) -> Result<O>;
}

impl<O> Along<O> for Result<(O, O)> {
    fn along(self) -> Result<O> {
        self.map(|(_, dot)| dot)
    }
}

impl<O> Along<O> for (O, O) {
    fn along(self) -> Result<O> {
        Ok(self.1)
    }
}

/// Two of an array, one after the other.
fn twice(x: &Array) -> Array {
    Array::stack([x, x], 0)
}

fn check(entry: &Entry, line: &Value) -> Vec<String> {
    let (f, name) = (entry.f, entry.name);
    let inputs: Vec<Array> = list(&line["inputs"]).into_iter().flatten().collect();
    let outputs: Vec<Array> = list(&line["outputs"]).into_iter().flatten().collect();
    let mut wrong = Vec::new();
    let mut hold = |what: &str, have: &[Array], want: &[Option<Array>]| {
        if have.len() != want.len() {
            wrong.push(format!("`{name}`, {what}: {} arrays where {} are expected", have.len(), want.len()));
        }
        for (i, (have, want)) in have.iter().zip(want).enumerate() {
            let found = want.as_ref().and_then(|want| differs(have, want, entry.tolerance));
            wrong.extend(found.map(|d| format!("`{name}`, {what} {i}: {d}")));
        }
    };
    // Nobody is warned of what the library does itself.
    let lints = match jit(move |x: &Vec<Array>| f(x)).trace(&inputs) {
        Ok(traced) => traced.lints().iter().map(|l| format!("`{name}` warns: {l}")).collect(),
        Err(e) => vec![format!("`{name}`: {e}")],
    };
    let wanted: Vec<Option<Array>> = outputs.iter().cloned().map(Some).collect();
    let values = f(&inputs);
    hold("value", &values, &wanted);
    let pairs: Vec<Option<Array>> = outputs.iter().map(|y| Some(twice(y))).collect();
    let all = inputs.iter().map(twice).collect::<Vec<_>>();
    hold("batched", &vmap(move |x: &Vec<Array>| f(x))(&all), &pairs);
    let gradient = list(&line["grad"]);
    if gradient.is_empty() {
        hold("compiled value", &jit(move |x: &Vec<Array>| f(x))(&inputs), &wanted);
        wrong.extend(lints);
        return wrong;
    }
    let loss = move |x: &Vec<Array>| weighted(&f(x));
    hold("gradient", &grad(loss)(&inputs), &gradient);
    let both = jit(move |x: &Vec<Array>| (f(x), grad(loss)(x)));
    let (compiled, compiled_gradient) = both(&inputs);
    hold("compiled value", &compiled, &wanted);
    hold("compiled gradient", &compiled_gradient, &gradient);
    let dots: Vec<Array> = inputs
        .iter()
        .enumerate()
        .map(|(j, x)| match x.dtype() {
            DType::F64 => wave(x, 1.3, j, true),
            _ => x.zeros_like(),
        })
        .collect();
    match jvp(loss, &inputs, &dots).along() {
        Ok(dot) => hold("derivative", &[dot], &[read(&line["jvp"])]),
        Err(e) => hold("derivative", &[Array::from(e)], &[read(&line["jvp"])]),
    }
    let second = list(&line["hvp"]);
    if !second.is_empty() {
        match jvp(grad(loss), &inputs, &dots).along() {
            Ok(product) => hold("second derivative", &product, &second),
            Err(e) => hold("second derivative", &vec![Array::from(e); second.len()], &second),
        }
    }
    wrong.extend(lints);
    wrong
}

/// In single precision a function has the same dtype as its arguments, and nearly the same numbers.
fn check_single(entry: &Entry, line: &Value) -> Vec<String> {
    let single = |x: Array| if x.dtype() == DType::F64 { x.cast(DType::F32) } else { x };
    let inputs: Vec<Array> = list(&line["inputs"]).into_iter().flatten().map(single).collect();
    let mut wrong = Vec::new();
    if !inputs.iter().any(|x| x.dtype() == DType::F32) {
        return wrong;
    }
    let outputs = list(&line["outputs"]).into_iter().flatten();
    for (have, want) in (entry.f)(&inputs).iter().zip(outputs).filter(|(_, w)| w.dtype() == DType::F64) {
        // Numbers that a table writes itself are f64.
        if !have.dtype().is_float() || differs(&have.cast(DType::F64), &want, 1e-2).is_some() {
            let off = differs(&have.cast(DType::F64), &want, 1e-2);
            wrong.push(format!("`{}` in single precision: {have:?} where {want:?} is expected; {off:?}", entry.name));
        }
    }
    wrong
}

/// Holds functions against the lines in single precision; some names have numbers that it cannot hold.
pub fn compare_single(prefixes: &[&str], entries: &[Entry], but: &[&str]) {
    let text = include_str!("../data/library.jsonl");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for line in text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
        let name = line["name"].as_str().unwrap_or_default();
        let found = entries.iter().find(|e| e.name == name && !but.contains(&name));
        if let Some(entry) = found.filter(|_| prefixes.iter().any(|p| name.starts_with(p))) {
            seen += 1;
            wrong.extend(check_single(entry, &line));
        }
    }
    assert!(wrong.is_empty(), "{} results differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(seen > 0);
}

/// Holds functions against the lines whose names begin so. `GRADUS_ONLY` picks those whose name contains it.
pub fn compare(prefixes: &[&str], entries: &[Entry]) {
    let text = include_str!("../data/library.jsonl");
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let named = |l: &Value| l["name"].as_str().unwrap_or_default().to_string();
    let mine: Vec<&Value> = lines.iter().filter(|l| prefixes.iter().any(|p| named(l).starts_with(p))).collect();
    let here: BTreeSet<String> = entries.iter().map(|e| e.name.to_string()).collect();
    let there: BTreeSet<String> = mine.iter().map(|l| named(l)).collect();
    let alone: Vec<_> = here.symmetric_difference(&there).collect();
    let only = std::env::var("GRADUS_ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    for entry in entries.iter().filter(|e| e.name.contains(&only)) {
        let Some(line) = mine.iter().find(|l| named(l) == entry.name) else { continue };
        let place = std::panic::AssertUnwindSafe(|| check(entry, line));
        wrong.extend(std::panic::catch_unwind(place).unwrap_or_else(|_| vec![format!("`{}` panics", entry.name)]));
    }
    assert!(wrong.is_empty(), "{} results differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(alone.is_empty(), "only in the table or only in the file: {alone:?}; see scripts/reference/library.py");
    assert!(!entries.is_empty());
}
