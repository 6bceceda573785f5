//! What rounding can do to a program: it is interpreted again and again with noise in the last places of every sum, and how far
//! its results move says how far apart two right runs may be.
//!
//! Sums are where right runs part: compiled code contracts a product into a sum, adds up in another order, and leaves products of
//! matrices to a library. Elementwise functions have the same bits everywhere and get no noise. So a result without sums is exact,
//! one that cancels may move by what was added, and one behind a jump (`floor`, a comparison) by the whole of it.

use std::cell::Cell;

use super::Run;
use super::compare::{epsilon, sizes};
use crate::array::{Array, Concrete};
use crate::error::{Result, error};
use crate::primitives::effects::replay::Event;
use crate::primitives::elementwise::Add;
use crate::primitives::{Op, Outputs};
use crate::program::Program;
use crate::types::{DType, Element, Wide, dispatch_float};

/// So many runs with noise are asked before a difference is nobody's rounding.
const RUNS: u64 = 8;
/// A difference of so many times what noise does is explained by it.
const SPARE: f64 = 8.0;

#[derive(Clone, Copy)]
struct Noise {
    /// Every sum is moved the same way, or each element its own.
    way: Option<f64>,
    state: u64,
    /// Equations that may still run: noise must not make a loop endless.
    left: u64,
    amplitude: f64,
}

thread_local! {
    static NOISE: Cell<Option<Noise>> = const { Cell::new(None) };
}

fn within<T>(noise: Noise, f: impl FnOnce() -> T) -> (T, u64) {
    /// Puts back what was there even if the function panics.
    struct Restore(Option<Noise>);
    impl Drop for Restore {
        fn drop(&mut self) {
            NOISE.set(self.0);
        }
    }
    let _restore = Restore(NOISE.replace(Some(noise)));
    let out = f();
    (out, NOISE.get().map_or(0, |n| n.left))
}

/// Results of an operation, with noise if someone asks what it does.
pub(crate) fn disturbed(op: &Op, operands: &[Array], outputs: Outputs) -> Result<Outputs> {
    let Some(mut noise) = NOISE.get() else { return Ok(outputs) };
    noise.left = noise.left.checked_sub(1).ok_or_else(|| error!(Value, "noise makes a loop endless"))?;
    NOISE.set(Some(noise));
    if noise.amplitude == 0.0 || outputs.len() != 1 {
        return Ok(outputs);
    }
    // A term is rounded once where two are added; where many are, in another order.
    let units = match op.name() {
        "add" | "sub" | "mul_add" => 2.0,
        "dot_general" | "reduce_sum" | "cumsum" | "reduce_prod" | "cumprod" | "scatter" => 32.0,
        _ => return Ok(outputs),
    };
    let y = &outputs[0];
    if !y.dtype().is_float() || operands.iter().chain([y]).all(is_whole) {
        return Ok(outputs);
    }
    let terms = terms(op, operands, y);
    let Some(c) = y.concrete() else { return Ok(outputs) };
    let step = units * epsilon(y.dtype()) * noise.amplitude;
    let moved: Array = dispatch_float!(c.ty().dtype(), T => {
        let values = c.values::<T>();
        let values = values.iter().zip(&terms).map(|(v, scale)| {
            // splitmix64: any sequence will do.
            noise.state = noise.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = noise.state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let random = (z >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
            let Wide::Real(x) = v.to_wide() else { return *v };
            if x.is_finite() { T::from_wide(Wide::Real(x + noise.way.unwrap_or(random) * step * scale)) } else { *v }
        });
        Concrete::dense(c.ty().clone(), values.collect()).into()
    }, else y.clone());
    NOISE.set(Some(noise));
    Ok([moved].into_iter().collect())
}

/// Whether all numbers are whole and small: then sums of them are exact.
fn is_whole(a: &Array) -> bool {
    const LARGE: f64 = (1_u32 << 20) as f64;
    let Some(c) = a.concrete() else { return false };
    dispatch_float!(c.ty().dtype(), T => {
        let whole = |v: &T| matches!(v.to_wide(), Wide::Real(x) if x == x.trunc() && x.abs() < LARGE);
        c.values::<T>().iter().all(whole)
    }, else !c.ty().dtype().is_complex())
}

/// What each element of a result is made of, in size: where terms cancel, the result is smaller than its rounding.
pub(super) fn terms(op: &Op, operands: &[Array], result: &Array) -> Vec<f64> {
    let dtype = result.dtype();
    if op.holds_programs() || dtype.is_complex() {
        // Inside of a loop there is more than can be seen from here.
        let all = sizes(result);
        let largest = all.iter().copied().fold(0.0, f64::max);
        return vec![largest; all.len()];
    }
    let summing = matches!(op.name(), "dot_general" | "reduce_sum" | "cumsum" | "add" | "sub" | "mul_add" | "scatter");
    if !summing || !dtype.is_float() {
        return sizes(result);
    }
    let plain = |d: DType| d.is_float();
    let sized: Vec<Array> = operands.iter().map(|a| if plain(a.dtype()) { a.abs() } else { a.clone() }).collect();
    let added = if op.name() == "sub" { Op::fixed(&Add).evaluate(&sized) } else { op.evaluate(&sized) };
    added.map_or_else(|_| sizes(result), |all| all.first().map(sizes).unwrap_or_default())
}

/// An element that differs.
struct Doubt {
    array: usize,
    element: usize,
    have: Wide,
    want: Wide,
    /// How far noise moved it.
    moved: f64,
}

fn number(a: &Array, i: usize) -> Option<Wide> {
    let c = a.concrete()?;
    crate::types::dispatch!(c.ty().dtype(), T => c.element::<T>(i).ok().map(Element::to_wide))
}

/// The distance of two numbers; none if one is not finite.
fn distance(a: Wide, b: Wide) -> Option<f64> {
    let d = match (a, b) {
        (Wide::Real(a), Wide::Real(b)) => (a - b).abs(),
        (Wide::Complex(a, b), Wide::Complex(c, d)) => (a - c).abs().max((b - d).abs()),
        (Wide::Int(a), Wide::Int(b)) => a.abs_diff(b) as f64,
        (Wide::UInt(a), Wide::UInt(b)) => a.abs_diff(b) as f64,
        _ => f64::NAN,
    };
    d.is_finite().then_some(d)
}

/// Whether two numbers that have no distance are the same.
fn is_same(a: Wide, b: Wide) -> bool {
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    match (a, b) {
        (Wide::Real(a), Wide::Real(b)) => same(a, b),
        (Wide::Complex(a, b), Wide::Complex(c, d)) => same(a, c) && same(b, d),
        _ => false,
    }
}

/// Whether rounding alone can make `have` of a program whose run without noise gives `want`.
pub(super) fn explains(
    program: &Program,
    (inputs, given): (&[Array], &[Event]),
    have: &Run,
    want: &Run,
    differs: &dyn Fn(&Array, &Array) -> Vec<usize>,
) -> bool {
    let (ours, theirs) = (have.arrays(), want.arrays());
    if ours.len() != theirs.len() || ours.iter().zip(&theirs).any(|(a, b)| a.ty().ok() != b.ty().ok()) {
        return false;
    }
    let mut doubts: Vec<Doubt> = Vec::new();
    for (array, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        for element in differs(a, b) {
            let (Some(have), Some(want)) = (number(a, element), number(b, element)) else { return false };
            doubts.push(Doubt { array, element, have, want, moved: 0.0 });
        }
    }
    let most = u64::MAX / 2;
    let quiet = Noise { way: None, state: 0, left: most, amplitude: 0.0 };
    let (_, left) = within(quiet, || Run::interpreted(program, inputs, given));
    let allowed = 1000 + 4 * (most - left);
    for run in 0..RUNS {
        // The first two go one way in every sum.
        let way = [1.0, -1.0].get(run as usize).copied();
        let noise = Noise { way, state: run, left: allowed, amplitude: 1.0 };
        let (Ok(moved), _) = within(noise, || Run::interpreted(program, inputs, given)) else { continue };
        let moved = moved.arrays();
        doubts.retain_mut(|d| {
            let Some(now) = moved.get(d.array).and_then(|a| number(a, d.element)) else { return true };
            let step = distance(now, d.want);
            d.moved = d.moved.max(step.unwrap_or(0.0));
            match distance(d.have, d.want) {
                Some(apart) => apart > SPARE * d.moved,
                None => !is_same(now, d.have),
            }
        });
        if doubts.is_empty() {
            return true;
        }
    }
    doubts.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Scale, differing};
    use super::*;
    use crate::interpret;

    /// Whether rounding explains that a program gave `have`.
    fn explained(text: &str, inputs: &[Array], have: impl Into<Array>) -> bool {
        let program: Program = text.parse().unwrap();
        let want = Run { outputs: interpret(&program, inputs).unwrap(), events: Vec::new() };
        let have = Run { outputs: vec![have.into()], events: Vec::new() };
        let differs =
            |a: &Array, b: &Array| differing(a.concrete().unwrap(), b.concrete().unwrap(), Scale::Each, false);
        explains(&program, (inputs, &[]), &have, &want, &differs)
    }

    #[test]
    fn what_cancels_may_move_by_what_was_added() {
        let text =
            "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = add x0 x1\n  x3: f64[] = sub x2 x0\n  return x3\n}\n";
        let inputs = [Array::from(0.1_f64), Array::from(1e-15_f64)];
        assert!(explained(text, &inputs, 0.9e-15_f64));
        assert!(!explained(text, &inputs, 1e-13_f64));
    }

    #[test]
    fn a_jump_goes_both_ways_only_near_its_edge() {
        let text =
            "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = add x0 x1\n  x3: f64[] = floor x2\n  return x3\n}\n";
        let near = [Array::from(0.1_f64), Array::from(0.9_f64)];
        assert!(explained(text, &near, 0.0_f64));
        assert!(!explained(text, &near, 3.0e3_f64));
        let far = [Array::from(0.1_f64), Array::from(0.5_f64)];
        assert!(!explained(text, &far, 1.0_f64));
        // Sums of whole numbers are exact, and functions that are no sums have the same bits everywhere.
        let whole = [Array::from(1.0_f64), Array::from(2.0_f64)];
        assert!(!explained(text, &whole, 2.0_f64));
        let text =
            "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = mul x0 x1\n  x3: f64[] = floor x2\n  return x3\n}\n";
        assert!(!explained(text, &[Array::from(0.5_f64), Array::from(2.0_f64)], 0.0_f64));
    }

    #[test]
    fn noise_does_not_make_a_loop_endless() {
        let text = "fn f(x0: f64[]) -> f64[] {\n  x1: f64[] = while{condition=fn c(x0: f64[]) -> bool[] {\n    x1: bool[] = compare{direction=ne} x0 0.75:f64[]\n    return x1\n  }, body=fn b(x0: f64[]) -> f64[] {\n    x1: f64[] = add x0 0.25:f64[]\n    return x1\n  }, consts=0, limit=[], checkpoints=2} x0\n  return x1\n}\n";
        let parsed: std::result::Result<Program, _> = text.parse();
        assert!(parsed.is_ok(), "{parsed:?}");
        assert!(!explained(text, &[Array::from(0.0_f64)], 1.0_f64));
    }
}
