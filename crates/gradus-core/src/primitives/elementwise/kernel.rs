//! Loops over concrete arrays, element by element. A splat stays a splat; dense operands are read in place.

#![allow(clippy::needless_range_loop)] // Iterator chains here cost thousands of tiny functions at build time.

use std::borrow::Cow;

use crate::array::{Array, Concrete, reserve};
use crate::error::{Result, error};
use crate::primitives::Outputs;
use crate::types::{Element, Scalar, Type};

/// Operand `i`, which the interpreter promises to be concrete; a device may have failed to compute it.
pub(crate) fn operand(inputs: &[Array], i: usize) -> Result<&Concrete> {
    let array = inputs.get(i).ok_or_else(|| error!(Rule, "there is no operand {i}"))?;
    array.concrete().ok_or_else(|| match array.error() {
        Some(e) => e.clone(),
        None => error!(Rule, "operand {i} has no numbers"),
    })
}

/// A loop's result, or why there is none.
pub(crate) trait LoopResult {
    fn into_result(self) -> Result<Concrete>;
}

impl LoopResult for Concrete {
    fn into_result(self) -> Result<Concrete> {
        Ok(self)
    }
}

impl LoopResult for Result<Concrete> {
    fn into_result(self) -> Result<Concrete> {
        self
    }
}

/// One result.
pub(crate) fn one_output(result: impl LoopResult) -> Result<Outputs> {
    Ok(smallvec::smallvec![result.into_result()?.into()])
}

/// Elements that one pass of a loop treats: small enough to stay in the fastest cache.
const BLOCK: usize = 1024;

/// An operand of a loop, a block at a time: its own elements, or one number repeated.
struct Lane<'a, T: Element> {
    each: Cow<'a, [T]>,
    repeated: bool,
}

/// The elements of an operand. A splat gives one block of its number, which serves for every block of the loop: so
/// one loop per operation is enough, and it vectorizes.
fn lane<T: Element>(x: &Concrete, n: usize) -> Result<Lane<'_, T>> {
    Ok(match x.splat_value().and_then(T::from_scalar) {
        Some(v) => Lane { each: Cow::Owned(vec![v; n.min(BLOCK)]), repeated: true },
        None => Lane { each: x.try_values::<T>()?, repeated: false },
    })
}

impl<T: Element> Lane<'_, T> {
    fn block(&self, start: usize, len: usize) -> &[T] {
        if self.repeated { &self.each[..len] } else { &self.each[start..start + len] }
    }
}

/// Memory for the result, the number of its elements, and whether one of them stands for all: then every operand is a splat.
fn extent<U: Element>(operands: &[&Concrete]) -> Result<(Vec<U>, usize, bool)> {
    if operands.iter().all(|x| x.splat_value().is_some()) {
        return Ok((Vec::new(), 1, true));
    }
    Ok((reserve(&operands[0].ty().with_dtype(U::DTYPE))?, operands[0].count(), false))
}

/// The next block of a result of `n` elements, to be written; none behind the last. It is in the fastest cache when it is, and
/// memory is touched once.
fn next_block<U: Element>(out: &mut Vec<U>, n: usize) -> Option<&mut [U]> {
    let start = out.len();
    out.resize(n.min(start + BLOCK), U::default());
    (start < n).then(|| &mut out[start..])
}

fn finish<U: Element>(like: &Concrete, same: bool, values: Vec<U>) -> Concrete {
    let ty = like.ty().with_dtype(U::DTYPE);
    match values.first() {
        Some(v) if same => Concrete::splat(ty, v.into_scalar()),
        _ => Concrete::dense(ty, values),
    }
}

/// `f` of every element.
pub(crate) fn map<T: Element, U: Element>(x: &Concrete, f: impl Fn(T) -> U) -> Result<Concrete> {
    map_blocks(x, &|out: &mut [U], a: &[T]| {
        let a = &a[..out.len()];
        for i in 0..out.len() {
            out[i] = f(a[i]);
        }
    })
}

/// All of `map` but its loop over a block, which alone is made for each function: that is what a build has to compile.
fn map_blocks<T: Element, U: Element>(x: &Concrete, f: &dyn Fn(&mut [U], &[T])) -> Result<Concrete> {
    let (mut out, n, same) = extent::<U>(&[x])?;
    let a = lane::<T>(x, n)?;
    let mut start = 0;
    while let Some(block) = next_block(&mut out, n) {
        f(block, a.block(start, block.len()));
        start += block.len();
    }
    Ok(finish(x, same, out))
}

/// `f` of the elements of two arrays of one shape.
pub(crate) fn zip<A: Element, B: Element, U: Element>(
    x: &Concrete,
    y: &Concrete,
    f: impl Fn(A, B) -> U,
) -> Result<Concrete> {
    zip_blocks(x, y, &|out: &mut [U], a: &[A], b: &[B]| {
        let (a, b) = (&a[..out.len()], &b[..out.len()]);
        for i in 0..out.len() {
            out[i] = f(a[i], b[i]);
        }
    })
}

/// As for `map`.
fn zip_blocks<A: Element, B: Element, U: Element>(
    x: &Concrete,
    y: &Concrete,
    f: &dyn Fn(&mut [U], &[A], &[B]),
) -> Result<Concrete> {
    let (mut out, n, same) = extent::<U>(&[x, y])?;
    let (a, b) = (lane::<A>(x, n)?, lane::<B>(y, n)?);
    let mut start = 0;
    while let Some(block) = next_block(&mut out, n) {
        let len = block.len();
        f(block, a.block(start, len), b.block(start, len));
        start += len;
    }
    Ok(finish(x, same, out))
}

/// `f` of the elements of three arrays of one shape.
pub(crate) fn zip3<A: Element, B: Element, C: Element, U: Element>(
    x: &Concrete,
    y: &Concrete,
    z: &Concrete,
    f: impl Fn(A, B, C) -> U,
) -> Result<Concrete> {
    let (mut out, n, same) = extent::<U>(&[x, y, z])?;
    let (a, b, c) = (lane::<A>(x, n)?, lane::<B>(y, n)?, lane::<C>(z, n)?);
    let mut start = 0;
    while let Some(block) = next_block(&mut out, n) {
        let len = block.len();
        let (a, b, c) = (&a.block(start, len)[..len], &b.block(start, len)[..len], &c.block(start, len)[..len]);
        for i in 0..len {
            block[i] = f(a[i], b[i], c[i]);
        }
        start += len;
    }
    Ok(finish(x, same, out))
}

/// The type with one number in every place.
pub(crate) fn filled(ty: &Type, value: Scalar) -> Array {
    Concrete::splat(ty.clone(), value).into()
}
