//! How far XLA's CPU may be from the interpreter, by operation and dtype.

use std::fmt;

use gradus_core::{Array, DType, Scalar};

/// How far two arrays are apart, at most.
pub struct Far {
    /// In units of the last place of the number that is wanted.
    pub units: f64,
    at: usize,
    have: Scalar,
    want: Scalar,
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {} is {:?} where {:?} is wanted, {} units off", self.at, self.have, self.want, self.units)
    }
}

/// The distance from 1 to the next number, and the smallest normal number.
fn grain(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F16 => (f64::exp2(-10.0), f64::exp2(-14.0)),
        DType::BF16 => (f64::exp2(-7.0), f64::from(f32::MIN_POSITIVE)),
        DType::F32 | DType::C64 => (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE)),
        _ => (f64::EPSILON, f64::MIN_POSITIVE),
    }
}

fn parts(s: Scalar) -> [f64; 2] {
    match s {
        Scalar::C128(v) => [v.re, v.im],
        Scalar::C64(v) => [f64::from(v.re), f64::from(v.im)],
        other => [other.to_f64(), 0.0],
    }
}

/// Functions that are differences of larger numbers beside their zeros: a unit is one of 1 at least.
const ABSOLUTE: [&str; 3] = ["lgamma", "digamma", "polygamma"];

/// How many units of the last place a number is off, or of the last place of `least` if that is larger. Of a complex number the larger part says what a unit is, and one with a part that is not finite is as
/// good as another. So are numbers below the smallest normal one, and 0.
fn units(h: Scalar, w: Scalar, least: f64) -> f64 {
    let dtype = w.dtype();
    if !dtype.is_inexact() {
        return if h == w { 0.0 } else { f64::INFINITY };
    }
    let (epsilon, smallest) = grain(dtype);
    let (h, w) = (parts(h), parts(w));
    let lost = |z: [f64; 2]| z.iter().any(|x| !x.is_finite());
    if dtype.is_complex() && lost(h) && lost(w) {
        return 0.0;
    }
    let size = w.iter().filter(|x| x.is_finite()).fold(least.max(smallest), |m, x| m.max(x.abs()));
    let unit = epsilon * size.log2().floor().exp2();
    let parts = h.into_iter().zip(w);
    parts.fold(0.0, |worst: f64, (h, w)| {
        worst.max(match () {
            () if h == w || (h.is_nan() && w.is_nan()) => 0.0,
            () if h.abs() < smallest && w.abs() < smallest => 0.0,
            () if h.is_finite() && w.is_finite() => (h - w).abs() / unit,
            () => f64::INFINITY,
        })
    })
}

fn scalars(a: &Array) -> Vec<Scalar> {
    let a = a.on_host().unwrap();
    (0..a.count()).map(|i| a.scalar_at(i).unwrap()).collect()
}

/// How far an array is from the nearer of two, element by element.
pub fn apart(name: &str, have: &Array, (want, or): (&Array, &Array)) -> Far {
    let largest = |a: &Array| {
        let finite = scalars(a).into_iter().flat_map(parts).filter(|x| x.is_finite());
        finite.fold(0.0, |m: f64, x| m.max(x.abs()))
    };
    let least = match name {
        _ if ABSOLUTE.contains(&name) => 1.0,
        _ if OF_LARGEST.contains(&name) && want.dtype().is_inexact() => largest(want),
        _ => 0.0,
    };
    let mut far = Far { units: 0.0, at: 0, have: Scalar::Bool(false), want: Scalar::Bool(false) };
    for (at, (have, (want, or))) in
        scalars(have).into_iter().zip(scalars(want).into_iter().zip(scalars(or))).enumerate()
    {
        let lost = parts(have).iter().any(|x| !x.is_finite());
        let beyond = name == "pow" && want.dtype().is_complex() && lost && parts(want) == [0.0; 2];
        // What the page says of both: no digit is right there.
        if beyond || (name == "cbrt" && want != or) {
            continue;
        }
        let units = units(have, want, least).min(units(have, or, least));
        if units > far.units {
            far = Far { units, at, have, want };
        }
    }
    far
}

/// An array with 0 in place of numbers below the smallest normal one.
pub fn without_small(a: &Array) -> Array {
    if !a.dtype().is_inexact() {
        return a.clone();
    }
    let part = |a: &Array| {
        let (_, smallest) = grain(a.dtype());
        let wide = a.cast(DType::F64);
        let small = wide.abs().lt(smallest);
        small.select(Array::zeros_like(a), a)
    };
    if a.dtype().is_complex() { Array::complex(&part(&a.real()), &part(&a.imag())) } else { part(a) }
}

/// What is said of the operations of a row.
struct Row {
    operations: &'static [&'static str],
    /// Units in the last place that `f32` may be off by, `f64`, and complex numbers by their larger part.
    units: [f64; 3],
    note: &'static str,
}

const fn row(operations: &'static [&'static str], units: [f64; 3], note: &'static str) -> Row {
    Row { operations, units, note }
}

/// Half floats are computed in `f32` and rounded: by as many units, for every function here.
const HALF: f64 = 2.0;

/// Operations that are not the same bits, by the worst that was seen over the range of each, on the interpreter's side a unit more. What is not here is exact:
/// arithmetic of real numbers, whole numbers, bits, random bits, comparisons, choices, rounding to whole numbers, everything that moves numbers.
const TABLE: &[Row] = &[
    row(&["exp"], [2.0, 3.0, 4.0], ""),
    row(&["expm1"], [7.0, 6.0, 4.0], ""),
    row(&["log"], [3.0, 2.0, 4.0], ""),
    row(&["log1p"], [4.0, 130.0, 4.0], "`f64`: beside -1/2 and above, all but the last seven bits are right"),
    row(&["rsqrt"], [3.0, 3.0, 4.0], ""),
    row(&["sqrt"], [0.0, 0.0, 4.0], "complex: on the cut the sign of a zero imaginary part is lost"),
    row(
        &["cbrt"],
        [2.0, 70.0, 0.0],
        "`f64`: 4 for small operands, 66 at 1e300; below the smallest normal number the result has no right digit",
    ),
    row(
        &["sin", "cos"],
        [2.0, 2.0, 32.0],
        "complex: made of real functions by us; XLA's own lose the digits of small parts",
    ),
    row(&["tan"], [3.0, 2.0, 8.0], ""),
    row(&["asin", "acos"], [4.0, 3.0, 4.0], ""),
    row(&["atan", "atan2"], [2.0, 2.0, 4.0], ""),
    row(
        &["sinh", "cosh"],
        [26.0, 260.0, 260.0],
        "`f64`: 18 for small operands, more toward the end of the range; complex: as for `sin`",
    ),
    row(&["tanh"], [6.0, 8.0, 4.0], ""),
    row(&["asinh", "acosh"], [5.0, 5.0, 4.0], ""),
    row(&["atanh"], [4.0, 130.0, 4.0], "as `log1p`"),
    row(&["logistic"], [4.0, 4.0, 4.0], "0 below -88 in `f32`, where the number would be subnormal"),
    row(&["erf"], [6.0, 4.0, 0.0], ""),
    row(&["erfc"], [65.0, 16.0, 0.0], ""),
    row(&["erf_inv"], [64.0, 4.0, 0.0], ""),
    row(
        &["lgamma", "digamma"],
        [16.0, 16.0, 0.0],
        "units of 1 where the number is smaller: beside their zeros no digit is right",
    ),
    row(&["polygamma"], [19.0, 16.0, 0.0], "as above"),
    row(
        &["pow"],
        [2.0, 2.0, 110.0],
        "complex: off by as much as the exponent times the logarithm is large (102 seen); NaN where base and exponent are both out of range",
    ),
    row(
        &["integer_pow", "div", "mul"],
        [0.0, 0.0, 4.0],
        "complex: contracted, and of infinite parts which are NaN is open",
    ),
    row(&["sign", "abs"], [0.0, 0.0, 2.0], ""),
    row(&["dot_general", "convolve"], [64.0, 64.0, 64.0], "summed in another order: units of what is added"),
    row(&["fft"], [64.0, 64.0, 64.0], "units of the largest number of the result"),
    row(
        &["reduce_sum", "reduce_prod", "cumsum", "cumprod", "reduce_window", "scatter"],
        [16.0, 16.0, 16.0],
        "summed in another order",
    ),
    row(
        &["cholesky", "triangular_solve", "solve", "lu", "qr", "slogdet", "pinv", "eigh", "svd"],
        [1e4, 1e4, 1e4],
        "exact for a matrix near the given one: units of the largest number of the result, times the condition",
    ),
    row(
        &[
            "call",
            "checkpoint",
            "custom_jvp",
            "custom_vjp",
            "custom_linear",
            "linear_solve",
            "root",
            "scan",
            "switch",
            "while",
        ],
        [16.0, 16.0, 16.0],
        "what they hold",
    ),
];

/// Operations whose units are those of the largest number of the result.
const OF_LARGEST: [&str; 11] =
    ["fft", "dot_general", "convolve", "cholesky", "triangular_solve", "solve", "lu", "qr", "pinv", "eigh", "svd"];

/// How many units of the last place an operation may be off.
pub fn allowed(name: &str, dtype: DType) -> f64 {
    let Some(row) = TABLE.iter().find(|r| r.operations.contains(&name)) else { return 0.0 };
    match dtype {
        d if !d.is_inexact() => 0.0,
        d if d.size() == 2 && !d.is_complex() => HALF,
        DType::F32 => row.units[0],
        DType::F64 => row.units[1],
        _ => row.units[2],
    }
}

/// The table as the book has it.
fn markdown() -> String {
    let mut text = String::from("| operation | f32 | f64 | complex | |\n|---|---|---|---|---|\n");
    for Row { operations, units, note } in TABLE {
        let names: Vec<String> = operations.iter().map(|o| format!("`{o}`")).collect();
        let [a, b, c] = units.map(|u| if u == 0.0 { "-".to_string() } else { u.to_string() });
        text += &format!("| {} | {a} | {b} | {c} | {note} |\n", names.join(" "));
    }
    text
}

/// The page of the book and the bounds of the tests are the same table. `GRADUS_BLESS=1` writes it.
#[test]
fn the_book_has_the_table() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/devices-numbers.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (start, end) = ("<!-- bounds -->\n", "<!-- end of bounds -->");
    let (before, rest) = page.split_once(start).expect("the page says where the table is");
    let (there, after) = rest.split_once(end).expect("the page says where the table ends");
    if std::env::var_os("GRADUS_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{start}{}{end}{after}", markdown())).unwrap();
        return;
    }
    assert_eq!(there, markdown(), "run with GRADUS_BLESS=1");
}
