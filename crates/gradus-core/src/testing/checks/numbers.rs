//! Arrays as plain lists of real numbers and back, random ones, batches, and comparison: what the checks compute with.
//! A complex number counts as two reals.

use std::sync::Arc;

use crate::array::{Array, Concrete, Strides, row_major};
use crate::error::{Result, error};
use crate::types::{DType, Dim, Element, Type, Wide, dispatch};

/// A small generator of numbers, the same in every run.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// Between 0.25 and 1, of either sign: nothing vanishes by chance, nothing overflows.
    pub(super) fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        if unit < 0.5 { -0.25 - 1.5 * unit } else { 0.25 + 1.5 * (unit - 0.5) }
    }

    /// An array of a type with such numbers.
    pub(super) fn like(&mut self, ty: &Type) -> Array {
        let reals: Vec<f64> = (0..ty.shape().count().unwrap_or(0) * width(ty.dtype())).map(|_| self.number()).collect();
        of_reals(ty, &reals)
    }
}

/// How many reals one element is.
pub(super) fn width(dtype: DType) -> usize {
    if dtype.is_complex() { 2 } else { 1 }
}

/// The numbers behind an array that a check made or an interpreter returned.
pub(super) fn numbers(a: &Array) -> Result<&Concrete> {
    a.ty()?;
    a.concrete().ok_or_else(|| error!(NotConcrete, "an array without numbers where numbers are compared"))
}

/// The elements as reals.
pub(super) fn to_reals(a: &Array) -> Result<Vec<f64>> {
    let c = numbers(a)?;
    let mut reals = Vec::with_capacity(c.count() * width(c.ty().dtype()));
    dispatch!(c.ty().dtype(), T => for v in c.values::<T>().iter() {
        match v.to_wide() {
            Wide::Int(v) => reals.push(v as f64),
            Wide::UInt(v) => reals.push(v as f64),
            Wide::Real(v) => reals.push(v),
            Wide::Complex(re, im) => reals.extend([re, im]),
        }
    });
    Ok(reals)
}

/// The array of a type whose elements are these reals.
pub(super) fn of_reals(ty: &Type, reals: &[f64]) -> Array {
    fn element<T: Element>(parts: &[f64]) -> T {
        T::from_wide(match parts {
            [re, im] => Wide::Complex(*re, *im),
            [v] => Wide::Real(*v),
            _ => Wide::UInt(0),
        })
    }
    dispatch!(ty.dtype(), T => {
        Concrete::dense::<T>(ty.clone(), reals.chunks(width(ty.dtype())).map(element::<T>).collect()).into()
    })
}

/// The sum of products of two arrays of one type: `Re(v·w)` for complex numbers. With it comes the sum of the
/// products' sizes, which rounding errors are measured by.
pub(super) fn pairing(v: &Array, w: &Array) -> Result<(f64, f64)> {
    let complex = v.dtype().is_complex();
    let (v, w) = (to_reals(v)?, to_reals(w)?);
    let mut sum = (0.0, 0.0);
    for (i, (v, w)) in v.iter().zip(&w).enumerate() {
        let sign = if complex && i % 2 == 1 { -1.0 } else { 1.0 };
        sum.0 += sign * v * w;
        sum.1 += (v * w).abs();
    }
    Ok(sum)
}

/// Half the distance between one and the next number.
pub(super) fn precision(dtype: DType) -> f64 {
    match dtype.real_part() {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F32 => 2f64.powi(-24),
        DType::F64 => 2f64.powi(-53),
        _ => 0.0,
    }
}

/// Another example of the kind of an array: its elements moved by `k` places and made a little smaller, so that what
/// it means (a probability, an index) it still means. A lone integer moves up, a lone bool turns.
pub(super) fn vary(a: &Array, k: usize) -> Result<Array> {
    let c = numbers(a)?;
    if k == 0 || c.count() == 0 {
        return Ok(a.clone());
    }
    fn other<T: Element>(c: &Concrete, k: usize) -> Concrete {
        let mut values = c.values::<T>().into_owned();
        let n = values.len();
        values.rotate_left(k % n);
        for v in &mut values {
            *v = T::from_wide(match v.to_wide() {
                Wide::Real(v) => Wide::Real(v * (1.0 - k as f64 / 16.0)),
                Wide::Complex(re, im) => Wide::Complex(re * (1.0 - k as f64 / 16.0), im),
                Wide::Int(v) if n == 1 => Wide::Int(v.wrapping_add(k as i64)),
                Wide::UInt(v) if n == 1 && T::DTYPE == DType::Bool => Wide::UInt(v ^ (k as u64 & 1)),
                Wide::UInt(v) if n == 1 => Wide::UInt(v.wrapping_add(k as u64)),
                same => same,
            });
        }
        Concrete::dense(c.ty().clone(), values)
    }
    Ok(dispatch!(c.ty().dtype(), T => other::<T>(c, k)).into())
}

/// Arrays of one type, one behind the other along a new first axis. `ty` is the type of one.
pub(super) fn stack(arrays: &[Array], ty: &Type) -> Result<Array> {
    fn gathered<T: Element>(arrays: &[Array], ty: &Type) -> Result<Concrete> {
        let mut values: Vec<T> = Vec::new();
        for a in arrays {
            values.extend_from_slice(&numbers(a)?.values::<T>());
        }
        Ok(Concrete::dense(ty.with_shape(ty.shape().inserted(0, Dim::from(arrays.len()))), values))
    }
    Ok(dispatch!(ty.dtype(), T => gathered::<T>(arrays, ty)?).into())
}

/// Example `k` of a batch of arrays of type `ty`.
pub(super) fn example(batch: &Array, k: usize, ty: &Type) -> Result<Array> {
    let c = numbers(batch)?;
    let n = ty.shape().count().unwrap_or(0);
    Ok(dispatch!(ty.dtype(), T => {
        let values = c.values::<T>().get(k * n..(k + 1) * n).map(<[T]>::to_vec);
        Concrete::dense::<T>(ty.clone(), values.ok_or_else(|| error!(Shape, "no example {k} in {}", c.ty()))?)
    })
    .into())
}

/// The same numbers in memory otherwise: columns before rows, each axis backwards, with a gap between neighbours.
pub(super) fn scrambled(a: &Array) -> Result<Array> {
    const GAP: usize = 2;
    let c = numbers(a)?;
    let turned: Vec<usize> = c.dims().iter().rev().copied().collect();
    let mut strides: Strides = row_major(&turned).iter().rev().map(|s| -s * GAP as isize).collect();
    let mut offset = 0;
    for (&d, s) in c.dims().iter().zip(&mut strides) {
        offset += d.saturating_sub(1) * s.unsigned_abs();
    }
    let rows = row_major(c.dims());
    let place = |i: usize| {
        let axes = c.dims().iter().zip(&rows).zip(&strides);
        let step: isize = axes.map(|((&d, &row), &s)| (i / row.max(1) as usize % d.max(1)) as isize * s).sum();
        offset.wrapping_add_signed(step)
    };
    let places: Vec<usize> = (0..c.count()).map(place).collect();
    let data = dispatch!(c.ty().dtype(), T => {
        let mut memory = vec![T::default(); c.count() * GAP + 1];
        for (v, at) in c.values::<T>().iter().zip(&places) {
            memory[*at] = *v;
        }
        T::into_data(memory)
    });
    Ok(Concrete::strided(c.ty().clone(), &strides, offset, Arc::new(data))?.into())
}

/// The first element in every place: once as one number with strides of zero, once written out.
pub(super) fn repeated(a: &Array) -> Result<Option<(Array, Array)>> {
    let c = numbers(a)?;
    if c.count() == 0 {
        return Ok(None);
    }
    Ok(Some(dispatch!(c.ty().dtype(), T => {
        let v = c.element::<T>(0)?;
        (Concrete::splat(c.ty().clone(), v.into_scalar()).into(), Concrete::dense(c.ty().clone(), vec![v; c.count()]).into())
    })))
}

/// Refuses two arrays of different types, and numbers that differ by more than `units` roundings of the larger of
/// themselves and a thousandth of the largest around them (sums may be taken in another order).
pub(super) fn near(have: &Array, want: &Array, units: f64) -> std::result::Result<(), String> {
    let types = (have.ty().map_err(|e| e.to_string())?, want.ty().map_err(|e| e.to_string())?);
    if types.0 != types.1 {
        return Err(format!("{} where {} is expected", types.0, types.1));
    }
    if have.is_identical(want) {
        return Ok(());
    }
    let differ = |what: String| Err(format!("{what}\n  have {have:?}\n  want {want:?}"));
    let dtype = have.dtype();
    if !dtype.is_inexact() {
        return differ("different elements".to_string());
    }
    let (a, b) = (to_reals(have).map_err(|e| e.to_string())?, to_reals(want).map_err(|e| e.to_string())?);
    let largest = b.iter().filter(|v| v.is_finite()).fold(0.0, |m: f64, v| m.max(v.abs()));
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        let scale = if units == 0.0 { 0.0 } else { a.abs().max(b.abs()).max(largest / 1000.0) };
        let equal = if units == 0.0 { a.to_bits() == b.to_bits() } else { a == b };
        let close = a.is_finite() && b.is_finite() && (a - b).abs() <= units * precision(dtype) * scale;
        if !(equal || close || a.is_nan() && b.is_nan()) {
            return differ(format!("element {}: {a:?} where {b:?} is expected", i / width(dtype)));
        }
    }
    Ok(())
}
