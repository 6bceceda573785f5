//! Products and reductions as the reductions that compilers have loops for.

use super::kinds::{Combine, reduction};
use super::rewrite::{Named, Piece, Rule, Site, Steps, by};
use crate::primitives::Op;
use crate::primitives::dot::DotGeneral;
use crate::primitives::elementwise::Mul;
use crate::primitives::reduce::{NARROW, ReduceSum};
use crate::primitives::shaping::{Broadcast, Reshape};
use crate::scalar::Half;
use crate::types::{DType, Dim, Shape};

pub(super) const RULES: &[Rule] = &[axes_apart, by_vector];

/// Rows of fewer elements are short, and those of fewer than `PAIRS` go many side by side.
const SHORT: usize = 64;
const PAIRS: usize = 8;
/// A product with fewer terms is written out or unrolled.
const SHORTEST: i64 = 8;
/// Larger matrices are gone along by products of their own, and smaller ones down.
const LARGEST: i64 = 1 << 18;
const SMALLEST: i64 = 1 << 16;

/// A reduction over a run of axes and over others before it: the one after the other.
fn axes_apart(s: &Site<'_>) -> Option<Named> {
    let (combine, axes) = reduction(s.op)?;
    let ty = s.ty(0)?;
    let shape = ty.shape();
    // Half floats are rounded once, at the end of the whole sum; what is zero or infinite in a complex product depends on the order.
    let ordered = Half::of(ty.dtype()).is_some() || (ty.dtype().is_complex() && combine == Combine::Prod);
    if axes.len() < 2 || (ordered && !combine.is_idempotent()) {
        return None;
    }
    let one = |a: usize| shape[a].constant() == Some(1);
    let end = axes.last()? + 1;
    let behind = (end..shape.rank()).try_fold(1usize, |n, a| n.checked_mul(shape[a].as_usize()?));
    // What has more behind it is added up in lanes, whichever axes those are.
    if behind.is_none_or(|n| n > NARROW) {
        return None;
    }
    let first = (0..end).rev().take_while(|a| axes.contains(a) || one(*a)).last()?;
    let (others, run): (Vec<usize>, Vec<usize>) = axes.iter().copied().partition(|a| *a < first);
    if others.iter().all(|a| one(*a)) {
        return None;
    }
    // Short rows leave lanes empty: what comes before goes first, down columns, and leaves few of them.
    let length = run.iter().try_fold(1usize, |n, a| n.checked_mul(shape[*a].as_usize()?));
    let after = (others.last()? + 1..shape.rank()).try_fold(1usize, |n, a| n.checked_mul(shape[a].as_usize()?));
    let is_short = length.is_some_and(|n| n < SHORT && (n >= PAIRS || behind != Some(1)));
    // Sums of floats have an order, in which rows come first.
    let any_order = combine.is_idempotent() || !ty.dtype().is_inexact();
    let columns_first = any_order && is_short && after.is_some_and(|n| n > NARROW);
    let (first, second) = if columns_first { (others, run) } else { (run, others) };
    let left = second.iter().map(|a| a - first.iter().filter(|b| *b < a).count()).collect();
    let mut steps = Steps::default();
    let some = steps.push(combine.over(first), vec![s.operands[0].into()]);
    steps.push(combine.over(left), vec![some]);
    by("a reduction over axes that are apart is one after the other", steps.finish())
}

/// A product with a vector is a sum of an elementwise product: over everything of two vectors, down the columns of a matrix, and along its rows if it is not large.
fn by_vector(s: &Site<'_>) -> Option<Named> {
    let dot = s.op.downcast::<DotGeneral>().filter(|d| d.lhs_batch.is_empty())?;
    let contract = [&dot.lhs_contract, &dot.rhs_contract];
    let shapes = [s.ty(0)?.shape(), s.ty(1)?.shape()];
    let real = matches!(s.dtype(), DType::F32 | DType::F64);
    if !real || (0..2).any(|i| s.ty(i).is_none_or(|ty| ty.dtype() != s.dtype())) {
        return None;
    }
    let elements = |shape: &Shape, of: &dyn Fn(usize) -> bool| {
        (0..shape.rank()).filter(|a| of(*a)).try_fold(1i64, |n, a| n.checked_mul(shape[a].constant()?))
    };
    let free = |i: usize| elements(shapes[i], &|a| !contract[i].contains(&a));
    let terms = elements(shapes[0], &|a| contract[0].contains(&a)).filter(|n| *n >= SHORTEST)?;
    let vector = (0..2).rev().find(|i| free(*i) == Some(1))?;
    let matrix = 1 - vector;
    let results = free(matrix).filter(|n| *n >= 1)?;
    // Which axes of the matrix come first: those along the vector, or its own.
    let sized = (0..shapes[matrix].rank()).filter(|a| shapes[matrix][*a].constant() != Some(1));
    let along: Vec<bool> = sized.map(|a| contract[matrix].contains(&a)).collect();
    let rows = along.iter().skip_while(|on| !**on).all(|on| *on);
    let columns = along.iter().skip_while(|on| **on).all(|on| !*on);
    let size = terms.checked_mul(results)?;
    let fits = results == 1 || (columns && size >= SMALLEST) || (rows && size <= LARGEST);
    // The axes of the vector, where the matrix has them: in the same order.
    let mut pairs: Vec<(usize, usize)> =
        contract[vector].iter().copied().zip(contract[matrix].iter().copied()).collect();
    pairs.sort_unstable();
    if !fits || !pairs.is_sorted_by_key(|(_, to)| *to) {
        return None;
    }
    let mut steps = Steps::default();
    let own: Vec<Dim> = pairs.iter().map(|(from, _)| shapes[vector][*from].clone()).collect();
    let mut x = Piece::Atom(s.operands[vector]);
    if own.len() != shapes[vector].rank() {
        x = steps.push(Op::new(Reshape { shape: own.into() }), vec![x]);
    }
    let axes: Vec<usize> = pairs.iter().map(|(_, to)| *to).collect();
    if axes.len() != shapes[matrix].rank() {
        x = steps.push(Op::new(Broadcast { shape: shapes[matrix].clone(), axes: axes.clone() }), vec![x]);
    }
    let product = steps.push(Op::fixed(&Mul), vec![s.operands[matrix].into(), x]);
    let sum = steps.push(Op::new(ReduceSum { axes }), vec![product]);
    if shapes[matrix].without(|a| contract[matrix].contains(&a)) != *s.result.shape() {
        steps.push(Op::new(Reshape { shape: s.result.shape().clone() }), vec![sum]);
    }
    by("a product with a vector is a sum", steps.finish())
}
