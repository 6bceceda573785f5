//! What tests that compare two ways of running a program share.

use crate::types::{Complex, Scalar};

/// The seeds a test tries: so many, times `GRADUS_SEEDS` for a long night; `GRADUS_SEED` alone if there is one.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    seeds_from(0, count)
}

/// The same from another first one.
pub fn seeds_from(first: u64, count: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let wide = first..first + count * number("GRADUS_SEEDS").unwrap_or(1);
    number("GRADUS_SEED").map_or(wide, |seed| seed..seed + 1)
}

/// Bits, with every NaN the same: which NaN comes out of an operation is the hardware's choice.
pub fn canonical(s: Scalar) -> Scalar {
    let part32 = |v: f32| if v.is_nan() { f32::NAN } else { v };
    let part64 = |v: f64| if v.is_nan() { f64::NAN } else { v };
    match s {
        Scalar::F16(v) if v.is_nan() => Scalar::F64(f64::NAN),
        Scalar::BF16(v) if v.is_nan() => Scalar::F64(f64::NAN),
        Scalar::F32(v) => Scalar::F32(part32(v)),
        Scalar::F64(v) => Scalar::F64(part64(v)),
        Scalar::C64(v) => Scalar::C64(Complex::new(part32(v.re), part32(v.im))),
        Scalar::C128(v) => Scalar::C128(Complex::new(part64(v.re), part64(v.im))),
        other => other,
    }
}
