//! When two lists of results are the same: bit for bit, every NaN like every other, or as far as a freedom of rounding explains.

use gradus_core::oracle::{self, Freedom};
use gradus_core::testing::canonical;
use gradus_core::{Array, Program, Scalar};

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
        compared(output, h, w, is_same)?;
    }
    Ok(())
}

/// The same bits, or a NaN in both.
fn is_same(h: Scalar, w: Scalar) -> bool {
    if canonical(h) == canonical(w) {
        return true;
    }
    let (h, w) = (parts(h), parts(w));
    h.iter().zip(w).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
}

fn compared(output: usize, h: &Array, w: &Array, same: impl Fn(Scalar, Scalar) -> bool) -> Result<(), Difference> {
    let (h, w) = (scalars(h), scalars(w));
    let wrong: Vec<usize> = (0..w.len()).filter(|i| !same(h[*i], w[*i])).collect();
    match wrong.first() {
        None => Ok(()),
        Some(i) => Err(Difference {
            output,
            count: (wrong.len(), w.len()),
            text: format!("element {i} is {:?} where {:?} is wanted", h[*i], w[*i]),
        }),
    }
}

/// What is left of a difference that a freedom of rounding explains in part; nothing is asked where types differ. `special`: the inputs have infinities and numbers near the end
/// of the range, and of sums of those in another order only that they are moved can be said.
pub fn unexplained(
    p: &Program,
    inputs: &[Array],
    (have, want): (&[Array], &[Array]),
    freedom: Freedom,
    special: bool,
) -> Option<Option<Difference>> {
    if have.len() != want.len() || have.iter().zip(want).any(|(h, w)| h.ty().ok() != w.ty().ok()) {
        return None;
    }
    let differs = |h: &Array, w: &Array| {
        let (h, w) = (scalars(h), scalars(w));
        (0..w.len()).filter(|i| !is_same(h[*i], w[*i])).collect()
    };
    let mut left = oracle::unexplained(p, inputs, (have, want), freedom, &differs);
    if special && freedom >= Freedom::Sums && !left.is_empty() {
        let touched = oracle::touched(p, inputs, want, freedom);
        left.retain(|(output, _)| !touched[*output]);
    }
    Some(left.first().map(|(output, i)| {
        let (h, w) = (scalars(&have[*output]), scalars(&want[*output]));
        let count = left.iter().filter(|(o, _)| o == output).count();
        let text = format!("element {i} is {:?} where {:?} is wanted", h[*i], w[*i]);
        Difference { output: *output, count: (count, w.len()), text }
    }))
}
