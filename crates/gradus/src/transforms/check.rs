//! Checks of derivatives for users: forward mode against differences of values, reverse mode against forward mode.

use std::sync::Arc;

use gradus_core::{Array, DType, Error, ErrorKind, Location, Result, Scalar};

use super::jvp;
use super::pullback::{try_jvp, vjp};
use crate::function::Func;
use crate::line::few;
use crate::stage::fill;
use crate::tree::Tree;

/// Compares derivatives of `f` at `x`, to an order, with differences of values; an error says what differs, and where.
///
/// Along two directions, forward mode is compared with central differences, and reverse mode with forward mode by
/// `⟨w, J v⟩ = ⟨Jᵀ w, v⟩`. The function should be smooth around `x`; 64-bit floats are compared to about six digits.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// check_grads(|x: &Array| (x * x).sin(), &Array::from([0.3_f64, 0.7]), 2)?;
/// let wrong = custom_jvp(|x: &Array| x.sin(), |x: &Array, x_dot: &Array| (x.sin(), x.sin() * x_dot));
/// assert!(check_grads(wrong, &Array::from(0.3_f64), 1).is_err());
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn check_grads<A: Tree, O: Tree, F: Func<(A,), O>>(f: F, x: &A, order: usize) -> Result<()> {
    let place = Location::caller();
    let f: Arc<dyn Func<(A,), O> + '_> = Arc::new(f);
    // Each order takes a multiple of the work of the one before.
    let checked = few(order, "derivatives of order", 16).and_then(|()| to_order(&f, x, order, ""));
    checked.map_err(|e| e.at(place))
}

fn to_order<A: Tree, O: Tree>(f: &Arc<dyn Func<(A,), O> + '_>, x: &A, order: usize, of: &str) -> Result<()> {
    if order == 0 {
        return Ok(());
    }
    let call = |x: &A| f.apply((x,));
    for seed in [1, 2] {
        let v = direction(x, seed)?;
        let (y, y_dot) = try_jvp(&call, x, &v, Location::unknown())?;
        let differences = differences(&call, x, &v)?;
        compare(&y_dot, &differences, &format!("forward mode{of}, along direction {seed}"))?;
        let (_, pullback) = vjp(call, x);
        let w = direction(&y, seed + 10)?;
        let x_bar = pullback.try_call(&w, Location::unknown())?;
        let (forward, backward) = (product(&w, &y_dot)?, product(&x_bar, &v)?);
        let slack = 1e4 * precision(&y_dot) * (1.0 + forward.abs().max(backward.abs()));
        if (forward - backward).abs() > slack {
            return Err(Error::new(
                ErrorKind::Rule,
                format!(
                    "reverse mode{of}: ⟨w, Jv⟩ is {forward:e} forward and {backward:e} backward (direction {seed})"
                ),
            )
            .help("a transpose rule or a backward pass does not fit its forward derivative"));
        }
    }
    if order > 1 {
        let v = direction(x, 3)?;
        let next: Arc<dyn Func<(A,), O> + '_> = Arc::new(move |x: &A| jvp(|x: &A| f.apply((x,)), x, &v).1);
        to_order(&next, x, order - 1, &format!("{of} of the derivative"))?;
    }
    Ok(())
}

/// Central differences of two steps, put together so that the error is of the fourth power.
fn differences<A: Tree, O: Tree>(f: &impl Fn(&A) -> O, x: &A, v: &A) -> Result<O> {
    let h = if precision(x) < 1e-10 { 1.0 / 4096.0 } else { 1.0 / 32.0 };
    let slope = |h: f64| -> Result<Vec<Array>> {
        let (ahead, behind) = (f(&moved(x, v, h)?).leaves(), f(&moved(x, v, -h)?).leaves());
        let each = ahead.iter().zip(&behind);
        each.map(|(a, b)| if a.dtype().is_inexact() { ((a - b) * (0.5 / h)).ok() } else { a.zeros_like().ok() })
            .collect()
    };
    let (whole, half) = (slope(h)?, slope(h / 2.0)?);
    let both = whole
        .iter()
        .zip(&half)
        .map(|(w, s)| if w.dtype().is_inexact() { ((s * 4.0_f64 - w) * (1.0 / 3.0)).ok() } else { Ok(w.clone()) });
    Ok(fill(&f(x), both.collect::<Result<Vec<_>>>()?))
}

fn moved<A: Tree>(x: &A, v: &A, h: f64) -> Result<A> {
    let each = x.leaves().into_iter().zip(v.leaves());
    let each = each.map(|(x, v)| if x.dtype().is_inexact() { (&x + v * h).ok() } else { Ok(x) });
    Ok(fill(x, each.collect::<Result<Vec<_>>>()?))
}

/// A direction with every element between a quarter and one in size, the same for the same seed.
fn direction<A: Tree>(x: &A, seed: u64) -> Result<A> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
        if unit < 0.5 { -0.25 - 1.5 * unit } else { 0.25 + 1.5 * (unit - 0.5) }
    };
    let mut all = Vec::new();
    for a in x.leaves() {
        let dims = a.known_dims()?;
        let count = dims.iter().product();
        let mut reals = |n: usize| Array::from_vec((0..n).map(|_| next()).collect::<Vec<f64>>(), dims.clone());
        all.push(match a.dtype() {
            d if d.is_complex() => Array::complex(&reals(count), &reals(count)).cast(d).ok()?,
            d if d.is_float() => reals(count).cast(d).ok()?,
            _ => a.zeros_like().ok()?,
        });
    }
    Ok(fill(x, all))
}

/// The coarsest precision among the arrays with derivatives.
fn precision(x: &impl Tree) -> f64 {
    let of = |d: DType| match d {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        DType::F32 | DType::C64 => 1.2e-7,
        _ => 2.3e-16,
    };
    x.leaves().iter().filter(|a| a.dtype().is_inexact()).map(|a| of(a.dtype())).fold(2.3e-16, f64::max)
}

fn numbers(a: &Array) -> Result<Vec<f64>> {
    let a = if a.dtype().is_complex() {
        Array::concatenate([a.real().flatten(), a.imag().flatten()], 0)
    } else {
        a.clone()
    };
    a.cast(DType::F64).to_vec::<f64>()
}

/// The real inner product of two trees.
fn product<T: Tree>(a: &T, b: &T) -> Result<f64> {
    let mut sum = 0.0;
    for (x, y) in a.leaves().iter().zip(b.leaves()).filter(|(x, _)| x.dtype().is_inexact()) {
        // For complex numbers the pairing has no conjugate: cotangents are transposes, not adjoints.
        let products = if x.dtype().is_complex() { (x * &y).real() } else { x * &y };
        sum += numbers(&products)?.iter().sum::<f64>();
    }
    Ok(sum)
}

fn compare<T: Tree>(have: &T, want: &T, what: &str) -> Result<()> {
    let tolerance = precision(have).sqrt() * 100.0;
    for (k, (h, w)) in have.leaves().iter().zip(want.leaves()).enumerate() {
        let (h, w) = (numbers(h)?, numbers(&w)?);
        let size = w.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
        let off = h.iter().zip(&w).position(|(a, b)| (a - b).abs() > tolerance * size || a.is_nan() != b.is_nan());
        if let Some(i) = off {
            return Err(Error::new(
                ErrorKind::Rule,
                format!(
                    "{what}: element {i} of result {k} is {} where differences of values give {}",
                    Scalar::F64(h[i]),
                    Scalar::F64(w[i])
                ),
            )
            .help("either a rule is wrong or the function is not smooth here"));
        }
    }
    Ok(())
}
