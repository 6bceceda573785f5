//! The steps of smooth programs. Where a function has poles or ends, its operand is first brought to where it has none;
//! where it grows fast, to where it does not.

use super::linear::{self, some_axes};
use super::{Done, Maker, Step, control};
use crate::primitives::Op;
use crate::primitives::cumulative::CumProd;
use crate::primitives::elementwise::{IntegerPow, Polygamma};
use crate::primitives::reduce::ReduceProd;
use crate::program::Atom;
use crate::types::DType;

/// What a step does is picked from here; what stands twice comes up twice as often.
pub(super) const STEPS: &[Step] = &[
    anywhere,
    anywhere,
    anywhere,
    bounded,
    positive,
    inside,
    binary,
    binary,
    binary,
    quotient,
    powers,
    parts,
    linear::select,
    linear::broadcast,
    linear::reshape,
    linear::transpose,
    linear::reverse,
    linear::slice,
    linear::pad,
    linear::concatenate,
    linear::reduce_sum,
    linear::reduce_sum,
    products,
    linear::cumsum,
    linear::dot,
    linear::dot,
    linear::over_windows,
    linear::decomposition,
    linear::dynamic_slice,
    linear::dynamic_update_slice,
    linear::gather,
    linear::scatter,
    linear::scatter,
    control::call,
    control::switch,
    control::switch,
    control::scan,
    control::scan,
    control::while_loop,
    control::while_loop,
    control::checkpoint,
    control::custom,
    control::marks,
    linear::again,
    linear::nothing,
];

fn real(m: &mut Maker<'_, '_>) -> Option<Atom> {
    m.any_of(|t| t.dtype() == DType::F64)
}

fn inexact(m: &mut Maker<'_, '_>) -> Option<Atom> {
    m.any_of(|t| t.dtype().is_inexact())
}

/// Functions that are smooth and tame everywhere.
fn anywhere(m: &mut Maker<'_, '_>) -> Done {
    let x = real(m)?;
    let name = m.source.pick(&["sin", "cos", "tanh", "atan", "logistic", "erf", "erfc", "asinh", "neg"])?;
    m.named(name, &[x]).map(|_| ())
}

/// Functions that grow fast, of an operand between -1 and 1.
fn bounded(m: &mut Maker<'_, '_>) -> Done {
    let x = real(m)?;
    let x = m.named("sin", &[x])?;
    let name = m.source.pick(&["exp", "expm1", "sinh", "cosh", "tan"])?;
    m.named(name, &[x]).map(|_| ())
}

/// `x² + 1`.
fn above_one(m: &mut Maker<'_, '_>, x: Atom) -> Option<Atom> {
    let ty = m.ty(x);
    let square = m.named("mul", &[x, x])?;
    let one = m.splat(&ty, 1.0);
    m.named("add", &[square, one])
}

/// Functions of positive numbers.
fn positive(m: &mut Maker<'_, '_>) -> Done {
    let x = real(m)?;
    let x = above_one(m, x)?;
    if m.source.chance(10) {
        let order = 1 + m.source.below(2) as u32;
        return m.add(Op::new(Polygamma { order }), &[x]).map(|_| ());
    }
    let name = m.source.pick(&["log", "log1p", "sqrt", "rsqrt", "cbrt", "lgamma", "digamma", "abs"])?;
    m.named(name, &[x]).map(|_| ())
}

/// Functions that live between -1 and 1.
fn inside(m: &mut Maker<'_, '_>) -> Done {
    let x = real(m)?;
    let ty = m.ty(x);
    let x = m.named("tanh", &[x])?;
    let part = m.splat(&ty, 0.75);
    let x = m.named("mul", &[x, part])?;
    let name = m.source.pick(&["asin", "acos", "atanh", "erf_inv"])?;
    m.named(name, &[x]).map(|_| ())
}

fn binary(m: &mut Maker<'_, '_>) -> Done {
    let x = inexact(m)?;
    let ty = m.ty(x);
    let y = m.of_type(&ty);
    let name = m.source.pick(&["add", "sub", "mul"])?;
    m.named(name, &[x, y]).map(|_| ())
}

/// Quotients and angles with a second operand of at least one.
fn quotient(m: &mut Maker<'_, '_>) -> Done {
    let x = real(m)?;
    let ty = m.ty(x);
    let y = m.of_type(&ty);
    let y = above_one(m, y)?;
    let name = m.source.pick(&["div", "atan2"])?;
    m.named(name, &[x, y]).map(|_| ())
}

fn powers(m: &mut Maker<'_, '_>) -> Done {
    let x = real(m)?;
    let ty = m.ty(x);
    if m.source.chance(50) {
        let exponent = m.source.below(7) as i64 - 2;
        let base = if exponent < 0 { above_one(m, x)? } else { m.named("sin", &[x])? };
        return m.add(Op::new(IntegerPow { exponent }), &[base]).map(|_| ());
    }
    let y = m.of_type(&ty);
    let (base, power) = (above_one(m, x)?, m.named("tanh", &[y])?);
    m.named("pow", &[base, power]).map(|_| ())
}

/// Complex numbers from their parts, and the parts of complex numbers.
fn parts(m: &mut Maker<'_, '_>) -> Done {
    if m.source.chance(40) {
        let x = real(m)?;
        let ty = m.ty(x);
        let y = m.of_type(&ty);
        return m.named("complex", &[x, y]).map(|_| ());
    }
    let z = m.any_of(|t| t.dtype().is_complex())?;
    let name = m.source.pick(&["real", "imag", "conj", "neg"])?;
    m.named(name, &[z]).map(|_| ())
}

/// Products of numbers between -1 and 1. Those along an axis have an order, those over all of it do not.
fn products(m: &mut Maker<'_, '_>) -> Done {
    let x = real(m)?;
    let x = m.named("sin", &[x])?;
    let ty = m.ty(x);
    if ty.rank() > 0 && m.source.chance(50) {
        let (axis, reverse) = (m.source.below(ty.rank()), m.source.chance(50));
        return m.add(Op::new(CumProd { axis, reverse }), &[x]).map(|_| ());
    }
    if !m.recipe.sums {
        return None;
    }
    let axes = some_axes(m, ty.rank());
    m.add(Op::new(ReduceProd { axes }), &[x]).map(|_| ())
}
