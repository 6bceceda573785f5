//! When two lists of results are the same: bit for bit, or as far as a freedom of rounding explains.

use gradus_core::testing::canonical;
use gradus_core::{Array, Scalar};

use crate::noise::epsilon;

fn scalars(a: &Array) -> Vec<Scalar> {
    let Some(c) = a.concrete() else { return Vec::new() };
    (0..c.count()).filter_map(|i| c.scalar_at(i).ok()).collect()
}

fn parts(s: Scalar) -> [f64; 2] {
    match s {
        Scalar::C128(v) => [v.re, v.im],
        Scalar::C64(v) => [v.re as f64, v.im as f64],
        other => [other.to_f64(), 0.0],
    }
}

/// The first difference: output, element, what was wanted and what came.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Which output.
    pub output: usize,
    /// How many elements of it differ, and how many there are.
    pub count: (usize, usize),
    /// The first of them, in words.
    pub text: String,
}

/// Outputs that differ in a bit; every NaN is the same.
pub fn differing(have: &[Array], want: &[Array]) -> Result<(), Difference> {
    let whole = |output, text| Difference { output, count: (1, 1), text };
    if have.len() != want.len() {
        return Err(whole(0, format!("{} results for {}", have.len(), want.len())));
    }
    for (output, (h, w)) in have.iter().zip(want).enumerate() {
        match (h.ty(), w.ty()) {
            (Ok(a), Ok(b)) if a == b => {}
            (a, b) => return Err(whole(output, format!("{a:?} where {b:?} is wanted"))),
        }
        if h.concrete().zip(w.concrete()).is_some_and(|(h, w)| h.same_bits(w)) {
            continue;
        }
        compared(output, h, w, |i, h, w| canonical(h) == canonical(w) || both_nan(i, h, w))?;
    }
    Ok(())
}

fn both_nan(_: usize, h: Scalar, w: Scalar) -> bool {
    let (h, w) = (parts(h), parts(w));
    h.iter().zip(w).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
}

fn compared(
    output: usize,
    h: &Array,
    w: &Array,
    same: impl Fn(usize, Scalar, Scalar) -> bool,
) -> Result<(), Difference> {
    let (h, w) = (scalars(h), scalars(w));
    let wrong: Vec<usize> = (0..w.len()).filter(|i| !same(*i, h[*i], w[*i])).collect();
    match wrong.first() {
        None => Ok(()),
        Some(i) => Err(Difference {
            output,
            count: (wrong.len(), w.len()),
            text: format!("element {i} is {:?} where {:?} is wanted", h[*i], w[*i]),
        }),
    }
}

/// Whether results are as near as the same program under small movements stays to itself.
pub fn near(have: &[Array], want: &[Array], moved: &[Vec<Array>]) -> Result<(), Difference> {
    for (output, (h, w)) in have.iter().zip(want).enumerate() {
        let around: Vec<Vec<Scalar>> = moved.iter().filter_map(|m| m.get(output)).map(scalars).collect();
        let dtype = w.dtype();
        let same = |i: usize, h: Scalar, w: Scalar| {
            if canonical(h) == canonical(w) || both_nan(i, h, w) {
                return true;
            }
            let around: Vec<Scalar> = around.iter().filter_map(|a| a.get(i).copied()).collect();
            if !dtype.is_inexact() {
                return around.iter().any(|a| *a != w);
            }
            // The larger part of a complex number says how exact both are.
            let (h, w) = (parts(h), parts(w));
            let finite = |v: &[f64; 2]| v.iter().all(|x| x.is_finite());
            if !finite(&w) || around.iter().any(|a| !finite(&parts(*a))) {
                let kind = |v: [f64; 2]| v.map(|x| (x.is_nan(), x.is_infinite(), x.is_finite()));
                return around.iter().any(|a| kind(parts(*a)) != kind(w)) || kind(h) == kind(w);
            }
            let size = w.iter().fold(0f64, |m, v| m.max(v.abs()));
            let spread = around.iter().flat_map(|a| {
                let a = parts(*a);
                [(a[0] - w[0]).abs(), (a[1] - w[1]).abs()]
            });
            let spread = spread.fold(0f64, f64::max);
            let least = match epsilon(dtype) {
                e if e > 1e-10 => 1e-36f64.max(if e > 1e-5 { 1e-6 } else { 0.0 }),
                _ => 1e-300,
            };
            let tolerance = 16.0 * spread + 16.0 * epsilon(dtype) * size + least;
            h.iter().zip(w).all(|(a, b)| (a - b).abs() <= tolerance)
        };
        compared(output, h, w, same)?;
    }
    Ok(())
}
