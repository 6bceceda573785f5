//! A reduction of everything goes through rows where its elements are not one run in memory, or where a compiler does not know how many there are.
//!
//! A compiler that knows sizes takes in a sum over everything in the order of such sums, which is that of one run: where what it is made of is repeated, cut or turned, it would
//! have to find out for each element where it is. The rows of such an array are runs, and what is left is a reduction of a few numbers. Without sizes, where chunks end is not
//! known, and the sum of each row is something that the loop over rows makes anyway.

use rustc_hash::FxHashSet;

use super::kinds::{Combine, reduction};
use super::nested::{Made, Nested, equations};
use super::{Exactness, applied};
use crate::error::Result;
use crate::primitives::Op;
use crate::primitives::reduce::{ReduceMax, ReduceSum};
use crate::primitives::shaping::{Broadcast, Permute, Reverse, Slice};
use crate::program::{Atom, Program};
use crate::scalar::Half;
use crate::types::{Dim, Shape};

/// Elements behind a reduced axis that a loop over rows still takes as points.
const FEW: usize = 16;

/// Arrays of fewer elements are reduced at once.
const LEAST: usize = 1 << 14;
/// Shorter rows are no runs: they are reduced as a part of longer ones.
const SHORTEST: usize = 32;

/// Splits reductions; see the head of this file.
pub(super) fn by_rows(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &split)
}

fn split(p: &Program, nested: &Nested<'_>) -> Result<Program> {
    let (rows, apart, made) = (rows(p), apart(p), made_by_rows(p));
    equations(p, &mut |b, e, operands| {
        if let Some((combine, axes)) = reduction(e.op())
            && !made.contains(p.ty(p.operands(e)[0]).shape())
            && let Some(runs) = runs(p, &apart, p.operands(e)[0], combine, axes)
        {
            applied("a reduction of everything goes through rows, where these are runs and the whole is none");
            let mut value = operands[0];
            for axes in runs {
                value = b.equation(combine.over(axes), &[value], e.place())?.result().into();
            }
            return Ok(Made::There(vec![value]));
        }
        let Some(sum) = e.op().downcast::<ReduceSum>() else { return Ok(Made::As(nested.op(e.op())?)) };
        let ty = p.ty(p.operands(e)[0]);
        let (shape, last) = (ty.shape(), ty.rank().wrapping_sub(1));
        // Half floats are rounded once, at the end of the whole sum.
        if Half::of(ty.dtype()).is_some()
            || sum.axes.len() < 2
            || !sum.axes.contains(&last)
            || !rows.contains(&shape.to_vec())
        {
            return Ok(Made::As(e.op().clone()));
        }
        applied("a sum over everything goes through rows");
        let rest = sum.axes.iter().copied().filter(|a| *a != last).collect();
        let inner = b.equation(Op::new(ReduceSum { axes: vec![last] }), operands, e.place())?.result();
        let outer = b.equation(Op::new(ReduceSum { axes: rest }), &[inner.into()], e.place())?.result();
        Ok(Made::There(vec![Atom::from(outer)]))
    })
}

/// The shapes of arrays of which rows are reduced: a nest of rows takes in what is reduced of everything, in the order of that.
fn made_by_rows(p: &Program) -> FxHashSet<Shape> {
    let of_rows = p.equations().iter().filter_map(|e| {
        let (_, axes) = reduction(e.op())?;
        let shape = p.ty(p.operands(e)[0]).shape();
        (axes.len() < shape.rank() && axes.contains(&(shape.rank() - 1))).then(|| shape.clone())
    });
    of_rows.collect()
}

/// For each value whether elements that are neighbours in it lie apart in what it is made of, element by element: repeated, cut or turned, but for the first axis.
fn apart(p: &Program) -> Vec<bool> {
    let mut apart = vec![false; p.value_count()];
    let one = |d: &Dim| d.constant() == Some(1);
    for e in p.equations() {
        let x = p.operands(e).first().map(|a| p.ty(*a).shape());
        let is = if let Some(view) = e.op().downcast::<Broadcast>() {
            // A number is everywhere; what is repeated along the first axes alone is still no run.
            x.is_some_and(|x| !x.iter().all(one)) && x.map(|x| x.size()) != Some(view.shape.size())
        } else if e.op().is::<Slice>() {
            let whole = |x: &Shape, r: &Shape| x.iter().zip(r.iter()).skip(1).all(|(a, b)| a == b);
            e.results().any(|r| x.is_some_and(|x| !whole(x, p.ty(r).shape())))
        } else if e.op().is::<Permute>() || e.op().is::<Reverse>() {
            true
        } else {
            e.op().is_elementwise() && p.operands(e).iter().any(|a| a.value().is_some_and(|v| apart[v.index()]))
        };
        e.results().for_each(|r| apart[r.index()] = is);
    }
    apart
}

/// The axes of a reduction over everything, those of rows first, then all others. None if it stays as it is.
fn runs(p: &Program, apart: &[bool], x: Atom, combine: Combine, axes: &[usize]) -> Option<Vec<Vec<usize>>> {
    let (ty, whole) = (p.ty(x), x.value().is_some_and(|v| apart[v.index()]));
    let sizes: Vec<usize> = ty.shape().iter().map(Dim::as_usize).collect::<Option<_>>()?;
    let count = sizes.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
    // Half floats are rounded once, at the end of the whole sum.
    let halves = Half::of(ty.dtype()).is_some() && !combine.is_idempotent();
    if !whole || axes.len() != sizes.len() || count < LEAST || halves {
        return None;
    }
    let mut left = sizes.len();
    let mut all = Vec::new();
    while left > 1 {
        left -= 1;
        all.push(vec![left]);
        if sizes[left] >= SHORTEST {
            break;
        }
    }
    // Without a row that is long enough there is no run.
    let long = sizes.get(left).is_some_and(|n| *n >= SHORTEST) && left > 0;
    all.push((0..left).collect());
    long.then_some(all)
}

/// The dimensions of what is reduced along rows, the last of them the row.
fn rows(p: &Program) -> FxHashSet<Vec<Dim>> {
    let mut rows = FxHashSet::default();
    for e in p.equations() {
        let axes = match (e.op().downcast::<ReduceSum>(), e.op().downcast::<ReduceMax>()) {
            (Some(r), _) => &r.axes,
            (_, Some(r)) => &r.axes,
            _ => continue,
        };
        let shape = p.ty(p.operands(e)[0]).shape();
        if let [axis] = axes[..]
            && shape.is_symbolic()
        {
            let behind = shape[axis + 1..].iter().try_fold(1usize, |n, d| n.checked_mul(d.as_usize()?));
            if behind.is_some_and(|n| n <= FEW) {
                rows.insert(shape[..=axis].to_vec());
            }
        }
    }
    rows
}
