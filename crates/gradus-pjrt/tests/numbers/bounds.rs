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

/// How many units of the last place a number is off. Of a complex number the larger part says what a unit is, and one with a part that is not finite is as
/// good as another. So are numbers below the smallest normal one, and 0.
fn units(name: &str, h: Scalar, w: Scalar) -> f64 {
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
    let least = if ABSOLUTE.contains(&name) { 1.0 } else { smallest };
    let size = w.iter().filter(|x| x.is_finite()).fold(least, |m, x| m.max(x.abs()));
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
    let mut far = Far { units: 0.0, at: 0, have: Scalar::Bool(false), want: Scalar::Bool(false) };
    for (at, (have, (want, or))) in scalars(have).into_iter().zip(scalars(want).into_iter().zip(scalars(or))).enumerate() {
        let units = units(name, have, want).min(units(name, have, or));
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
        small.select(&Array::zeros_like(a), a)
    };
    if a.dtype().is_complex() { Array::complex(&part(&a.real()), &part(&a.imag())) } else { part(a) }
}

/// How many units of the last place an operation may be off.
pub fn allowed(_name: &str, dtype: DType) -> f64 {
    if dtype.is_inexact() { 16.0 } else { 0.0 }
}
