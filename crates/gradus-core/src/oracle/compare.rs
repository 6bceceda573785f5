//! Numbers of two runs beside each other: whole numbers, bools and keys are equal or not, floats may differ by what another
//! order of rounding makes of them.

use crate::array::{Array, Concrete};
use crate::types::{DType, Wide, dispatch};

/// The first element in which two arrays differ, and how many do.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The indices of the element.
    pub at: Vec<usize>,
    /// The number that is held against the other; a type if types differ.
    pub have: String,
    /// The number that should be there.
    pub want: String,
    /// How many elements differ.
    pub count: usize,
    /// Of how many.
    pub of: usize,
}

/// What a difference of floats is measured by.
#[derive(Clone, Copy)]
pub(super) enum Scale<'a> {
    /// The larger of the two numbers.
    Each,
    /// A number for each element: what was added up to make it.
    Terms(&'a [f64]),
}

/// The distance from 1 to the next number.
pub(super) fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => (-10_f64).exp2(),
        DType::BF16 => (-7_f64).exp2(),
        DType::F32 | DType::C64 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

/// How far apart floats of a dtype may be, relative to their scale: so many units in the last place that sums in another order
/// usually keep within it, and few enough that a wrong number does not.
fn tolerance(dtype: DType) -> f64 {
    let units = if dtype.size() == 2 { 8.0 } else { 512.0 };
    units * epsilon(dtype)
}

/// The smallest normal number: below it the last places are gone, and a difference is no part of the number.
pub(super) fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => (-14_f64).exp2(),
        DType::BF16 | DType::F32 | DType::C64 => f64::from(f32::MIN_POSITIVE),
        _ => f64::MIN_POSITIVE,
    }
}

fn is_close(a: f64, b: f64, allowed: f64) -> bool {
    // Infinities are equal to themselves, NaN is as good as NaN.
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed
}

fn is_finite(w: Wide) -> bool {
    match w {
        Wide::Real(x) => x.is_finite(),
        Wide::Complex(re, im) => re.is_finite() && im.is_finite(),
        Wide::Int(_) | Wide::UInt(_) => true,
    }
}

/// The size of a number, as scales count it: that of one that is not finite says nothing.
pub(super) fn size(w: Wide) -> f64 {
    let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
    match w {
        Wide::Real(x) => finite(x),
        Wide::Complex(re, im) => finite(re).max(finite(im)),
        Wide::Int(_) | Wide::UInt(_) => 0.0,
    }
}

/// The sizes of an array's numbers.
pub(super) fn sizes(array: &Array) -> Vec<f64> {
    let Some(c) = array.concrete() else { return Vec::new() };
    dispatch!(c.ty().dtype(), T => {
        c.values::<T>().iter().map(|v| size(crate::types::Element::to_wide(*v))).collect()
    })
}

/// The elements in which two arrays of one type differ. `relaxed`: what is not finite in one of them may be anything in the other.
pub(super) fn differing(h: &Concrete, w: &Concrete, scale: Scale<'_>, relaxed: bool) -> Vec<usize> {
    let dtype = h.ty().dtype();
    let (relative, least) = (tolerance(dtype), smallest(dtype));
    let mut found = Vec::new();
    dispatch!(dtype, T => {
        let (a, b) = (h.values::<T>(), w.values::<T>());
        for (i, (x, y)) in a.iter().zip(b.iter()).enumerate() {
            if crate::types::Element::bits(*x) == crate::types::Element::bits(*y) {
                continue;
            }
            let (x, y) = (crate::types::Element::to_wide(*x), crate::types::Element::to_wide(*y));
            let by = match scale {
                Scale::Each => size(x).max(size(y)),
                Scale::Terms(terms) => terms.get(i).copied().unwrap_or(0.0).max(size(y)),
            };
            let allowed = (by * relative).max(least);
            let close = match (x, y) {
                (Wide::Real(x), Wide::Real(y)) => is_close(x, y, allowed),
                (Wide::Complex(a, b), Wide::Complex(c, d)) => is_close(a, c, allowed) && is_close(b, d, allowed),
                _ => false,
            };
            if !close && !(relaxed && !(is_finite(x) && is_finite(y))) {
                found.push(i);
            }
        }
    });
    found
}

/// Where two arrays differ first; none if they are the same, as far as floats can be.
pub(super) fn compare(have: &Array, want: &Array, scale: Scale<'_>, relaxed: bool) -> Option<Difference> {
    let (Some(h), Some(w)) = (have.concrete(), want.concrete()) else {
        return Some(of_types(format!("{have:?}"), format!("{want:?}")));
    };
    if h.ty() != w.ty() {
        return Some(of_types(h.ty().to_string(), w.ty().to_string()));
    }
    let found = differing(h, w, scale, relaxed);
    found.first().map(|first| {
        let number = |c: &Concrete| c.scalar_at(*first).map_or_else(|_| "?".into(), |s| s.to_string());
        let at = indices(h.dims(), *first);
        Difference { at, have: number(h), want: number(w), count: found.len(), of: h.count() }
    })
}

fn of_types(have: String, want: String) -> Difference {
    Difference { at: Vec::new(), have, want, count: 1, of: 1 }
}

/// The indices of an element by its number in row-major order.
fn indices(dims: &[usize], mut number: usize) -> Vec<usize> {
    let mut at = vec![0; dims.len()];
    for (i, d) in at.iter_mut().zip(dims).rev() {
        *i = number % (*d).max(1);
        number /= (*d).max(1);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(have: impl Into<Array>, want: impl Into<Array>) -> Option<Difference> {
        compare(&have.into(), &want.into(), Scale::Each, false)
    }

    #[test]
    fn floats_are_close_or_differ() {
        let one = Array::from([1.0_f64, -2.0, 3.0]);
        assert_eq!(each(one.clone(), one.clone()), None);
        assert_eq!(each([1.0_f64 + 1e-15, -2.0, 3.0], one.clone()), None);
        let d = each([1.0_f64, -2.0, 3.0 + 1e-9], one.clone()).unwrap();
        assert_eq!((d.at, d.count, d.of), (vec![2], 1, 3));
        assert!(each([1.0_f32, 2.0], [1.000_001_f32, 2.0]).is_none());
        assert!(each([1.0_f32, 2.0], [1.001_f32, 2.0]).is_some());
        // An element is measured by itself, not by its neighbours.
        assert!(each([1.0_f64, 0.0], [1.0_f64, 1e-30]).is_some());
        assert!(each([0.0_f64], [-0.0_f64]).is_none());
        assert!(each([f64::from_bits(1)], [0.0_f64]).is_none());
    }

    #[test]
    fn nan_is_nan_and_infinities_are_exact() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert!(each([nan, inf, -inf], [nan, inf, -inf]).is_none());
        assert!(each([nan], [f64::from_bits(nan.to_bits() ^ 1)]).is_none());
        for (a, b) in [(nan, 1.0), (inf, -inf), (inf, f64::MAX), (0.0, nan)] {
            assert!(each([a], [b]).is_some() && each([b], [a]).is_some(), "{a} {b}");
        }
    }

    #[test]
    fn whole_numbers_and_types_are_exact() {
        assert!(each([1_i64 << 60], [(1_i64 << 60) + 1]).is_some());
        assert!(each([true, false], [true, false]).is_none());
        assert!(each([true, false], [true, true]).is_some());
        assert!(each([1.0_f32], [1.0_f64]).is_some());
        assert!(each([1.0_f64], [1.0_f64, 2.0]).is_some());
    }

    #[test]
    fn terms_are_another_measure() {
        let (have, want) = (Array::from([1e-16_f64, 1.0]), Array::from([0.0_f64, 1.0]));
        assert!(compare(&have, &want, Scale::Each, false).is_some());
        assert!(compare(&have, &want, Scale::Terms(&[1.0, 1.0]), false).is_none());
        assert!(compare(&Array::from([0.1_f64, 1.0]), &want, Scale::Terms(&[1.0, 1.0]), false).is_some());
        let nan = Array::from([f64::NAN, 1.0]);
        assert!(compare(&nan, &want, Scale::Each, false).is_some());
        assert!(compare(&nan, &want, Scale::Each, true).is_none());
    }
}
