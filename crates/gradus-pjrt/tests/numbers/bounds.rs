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

/// How many units of the last place a number is off. Of a complex number the larger part says what a unit is. A number below the smallest normal one is as
/// good as 0; whether a 0 is negative is seen.
fn units(h: Scalar, w: Scalar) -> f64 {
    let dtype = w.dtype();
    if !dtype.is_inexact() {
        return if h == w { 0.0 } else { f64::INFINITY };
    }
    let (epsilon, smallest) = grain(dtype);
    let (h, w) = (parts(h), parts(w));
    let size = w.iter().filter(|x| x.is_finite()).fold(smallest, |m, x| m.max(x.abs()));
    let unit = epsilon * size.log2().floor().exp2();
    h.into_iter().zip(w).fold(0.0, |worst: f64, (h, w)| {
        worst.max(match () {
            () if h.to_bits() == w.to_bits() || (h.is_nan() && w.is_nan()) => 0.0,
            () if h.abs() < smallest && w.abs() < smallest => if h == 0.0 && w == 0.0 { f64::MIN_POSITIVE } else { 0.0 },
            () if h.is_finite() && w.is_finite() => (h - w).abs() / unit,
            () => f64::INFINITY,
        })
    })
}

/// How far two arrays of one type are apart.
pub fn apart(have: &Array, want: &Array) -> Far {
    let all = |a: &Array| {
        let a = a.on_host().unwrap();
        (0..a.count()).map(|i| a.scalar_at(i).unwrap()).collect::<Vec<_>>()
    };
    let mut far = Far { units: 0.0, at: 0, have: Scalar::Bool(false), want: Scalar::Bool(false) };
    for (at, (have, want)) in all(have).into_iter().zip(all(want)).enumerate() {
        let units = units(have, want);
        if units > far.units {
            far = Far { units, at, have, want };
        }
    }
    far
}

/// How many units of the last place an operation may be off.
pub fn allowed(_name: &str, dtype: DType) -> f64 {
    if dtype.is_inexact() { 16.0 } else { 0.0 }
}
