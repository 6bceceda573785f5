//! The order in which reductions combine elements. It is part of what a reduction means: rounding depends on it, and
//! compiled code, which adds in vector lanes and on several threads, must give the bits of the interpreter.

use std::borrow::Cow;

use super::reduce::elements;
use crate::array::{Concrete, Dims, Strides, collected, row_major};
use crate::error::Result;
use crate::types::{Element, Scalar, Shape};

/// How many neighbours are combined before their result meets that of the next as many.
pub const CHUNK: usize = 1 << 16;
/// How many results a chunk has on the way: more than the lanes of any vector unit, so that each has its own.
pub const LANES: usize = 32;

/// How many elements of kept axes may stand behind a run.
pub const NARROW: usize = 16;

/// Whether the result depends on the order of the elements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Order {
    /// It does: numbers are rounded.
    Fixed,
    /// It does not, so that what a view repeats is read once.
    Any,
}

/// Combines all elements along axes with `f`, for which `identity` is neutral.
///
/// The order depends on the shape alone and not on how the elements lie in memory:
/// - Axes of size 1 are left out. The *run* is what stands last without interruption of the reduced axes. Kept axes behind
///   it do not count if they have at most [`NARROW`] elements together: a column of few numbers is as good as a row.
/// - The elements along the run, in row-major order, are combined by [`tree`].
/// - The results of all runs that go into one element are combined from the first to the last, in row-major order of the
///   other reduced axes.
/// - At last `f(identity, result)`; without elements, the identity.
///
/// Without axes there is nothing to combine, and the operand is the result.
pub(super) fn fold<T: Element>(
    x: &Concrete,
    axes: &[usize],
    identity: Scalar,
    order: Order,
    f: impl Fn(T, T) -> T + Copy,
) -> Result<Concrete> {
    fold_by(x, axes, identity, order, &f)
}

/// What of a reduction is made for each operation: its loops. All else is made for each dtype, which is less to compile.
trait Combine<T> {
    /// Two elements.
    fn two(&self, a: T, b: T) -> T;
    /// All elements of a run.
    fn run(&self, row: &[T], identity: T) -> T;
    /// Each element of a row into that of another.
    fn rows(&self, out: &mut [T], row: &[T]);
}

impl<T: Copy, F: Fn(T, T) -> T + Copy> Combine<T> for F {
    fn two(&self, a: T, b: T) -> T {
        self(a, b)
    }

    fn run(&self, row: &[T], identity: T) -> T {
        tree(row, identity, self)
    }

    fn rows(&self, out: &mut [T], row: &[T]) {
        for (a, b) in out.iter_mut().zip(row) {
            *a = self(*a, *b);
        }
    }
}

fn fold_by<T: Element>(
    x: &Concrete,
    axes: &[usize],
    identity: Scalar,
    order: Order,
    f: &dyn Combine<T>,
) -> Result<Concrete> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    if x.dims().contains(&0) {
        return Ok(Concrete::splat(x.ty().with_shape(x.ty().shape().without(|a| axes.contains(&a))), identity));
    }
    let identity = T::from_scalar(identity).unwrap_or_default();
    if let Some((x, axes)) = narrow_in_front(x, axes) {
        return fold_by(&x, &axes, identity.into_scalar(), order, f);
    }
    let plan = FoldPlan::new(x, axes, order);
    let mut values = elements::<T>(&plan.operand)?;
    if plan.run > 1 {
        let rows = values.chunks_exact(plan.run);
        values = Cow::Owned(collected(rows.len(), rows.map(|row| f.run(row, identity)))?);
    }
    let mut out = if plan.parts.iter().any(|part| part.reduced) {
        let count = plan.left.iter().product();
        let mut out = collected(count, std::iter::repeat_n(identity, count))?;
        accumulate(&values, &plan.parts, &mut out, true, f);
        out
    } else {
        match values {
            Cow::Owned(values) => values,
            Cow::Borrowed(values) => collected(values.len(), values.iter().copied())?,
        }
    };
    for v in &mut out {
        let all = plan.repeats.iter().fold(*v, |v, &n| fold_equal(v, n, f));
        *v = f.two(identity, all);
    }
    Ok(Concrete::from_vec(&plan.left, out).view(plan.shape, plan.strides, 0))
}

/// The operand with a few kept elements behind the last run of reduced axes moved in front of it, and its axes; none if that
/// changes nothing. The kept axes stay in their order.
fn narrow_in_front(x: &Concrete, axes: &[usize]) -> Option<(Concrete, Vec<usize>)> {
    let sized = |a: &usize| x.dims()[*a] > 1;
    let last = axes.iter().copied().filter(sized).max()?;
    let behind: usize = x.dims()[last + 1..].iter().product();
    if !(2..=NARROW).contains(&behind) {
        return None;
    }
    // The first axis of the run.
    let first = (0..=last).rev().take_while(|a| axes.contains(a) || !sized(a)).last()?;
    let (reduced, kept): (Dims, Dims) = (first..=last).partition(|a| axes.contains(a));
    let order: Dims = (0..first).chain(kept).chain(last + 1..x.dims().len()).chain(reduced).collect();
    let shape = order.iter().map(|&a| x.dims()[a]).collect();
    let strides = order.iter().map(|&a| x.strides()[a]).collect();
    let axes = (0..order.len()).filter(|&i| axes.contains(&order[i])).collect();
    Some((x.view(shape, strides, x.offset()), axes))
}

/// Combines neighbours: chunk by chunk, and the results of the chunks from the first to the last. In a chunk lane `l`
/// combines elements `l`, `l + 32`, `l + 64`, ... from its first; then for `w` of 16, 8, 4, 2 and 1 lane `l + w`, where it
/// has elements, is combined into lane `l` for all `l < w`.
///
/// Lanes become vector instructions, chunks become the work of threads, and rounding errors grow more slowly than one
/// after the other.
pub(super) fn tree<T: Copy>(row: &[T], identity: T, f: impl Fn(T, T) -> T + Copy) -> T {
    let chunk = |chunk: &[T]| {
        let used = chunk.len().min(LANES);
        let mut lanes = [identity; LANES];
        let (first, rest) = chunk.split_at(used);
        lanes[..used].copy_from_slice(first);
        let (rows, last) = rest.as_chunks::<LANES>();
        for row in rows {
            for (lane, &v) in lanes.iter_mut().zip(row) {
                *lane = f(*lane, v);
            }
        }
        for (lane, &v) in lanes.iter_mut().zip(last) {
            *lane = f(*lane, v);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for l in 0..width.min(used.saturating_sub(width)) {
                lanes[l] = f(lanes[l], lanes[l + width]);
            }
            width /= 2;
        }
        lanes[0]
    };
    row.chunks(CHUNK).map(chunk).reduce(f).unwrap_or(identity)
}

/// `n` equal numbers combined in any order, for `n` of at least one.
fn fold_equal<T: Copy>(v: T, mut n: usize, f: &dyn Combine<T>) -> T {
    let (mut power, mut total) = (v, None);
    loop {
        if n & 1 == 1 {
            total = Some(total.map_or(power, |t| f.two(t, power)));
        }
        n >>= 1;
        if n == 0 {
            return total.unwrap_or(v);
        }
        power = f.two(power, power);
    }
}

/// Neighbouring axes that are all reduced or all kept.
#[derive(Clone, Copy)]
struct Part {
    size: usize,
    reduced: bool,
}

/// Combines into `out` what lies along the reduced parts, one after the other as it lies. `first`: `out` is empty yet.
fn accumulate<T: Copy>(values: &[T], parts: &[Part], out: &mut [T], first: bool, f: &dyn Combine<T>) {
    // Columns that fit in the nearest cache beside the row that is added to them.
    const TILE: usize = 1024;
    match parts {
        [Part { reduced: false, .. }] | [] => combine(values, out, first, f),
        [Part { reduced: true, .. }] | [Part { reduced: true, .. }, Part { reduced: false, .. }] => {
            let width = out.len();
            for (tile, out) in out.chunks_mut(TILE).enumerate() {
                let (from, to) = (tile * TILE, tile * TILE + out.len());
                for (i, row) in values.chunks_exact(width).enumerate() {
                    combine(&row[from..to], out, first && i == 0, f);
                }
            }
        }
        [part, inner @ ..] => {
            let each = out.len() / if part.reduced { 1 } else { part.size };
            for (i, block) in values.chunks_exact(values.len() / part.size).enumerate() {
                if part.reduced {
                    accumulate(block, inner, out, first && i == 0, f);
                } else {
                    accumulate(block, inner, &mut out[i * each..(i + 1) * each], first, f);
                }
            }
        }
    }
}

fn combine<T: Copy>(row: &[T], out: &mut [T], first: bool, f: &dyn Combine<T>) {
    if first {
        out.copy_from_slice(row);
    } else {
        f.rows(out, row);
    }
}

/// How a reduction goes through the elements, whatever the numbers. What a stride of zero repeats along a kept axis is
/// computed once and repeated in the result in the same way.
struct FoldPlan {
    /// The operand without repetition.
    operand: Concrete,
    /// How many elements stand along the run.
    run: usize,
    /// The axes before the run.
    parts: Vec<Part>,
    /// How often each reduced axis repeats, where the order does not matter.
    repeats: Dims,
    /// The dimensions of what is left.
    left: Dims,
    /// The result, as a view of that.
    shape: Shape,
    strides: Strides,
}

impl FoldPlan {
    /// For an operand that is not empty.
    fn new(x: &Concrete, axes: &[usize], order: Order) -> FoldPlan {
        let reduced = |axis: usize| axes.contains(&axis);
        let repeated = |axis: usize| x.strides()[axis] == 0 && x.dims()[axis] > 1;
        let once = |axis: usize| repeated(axis) && (!reduced(axis) || order == Order::Any);
        let dims: Dims = (0..x.dims().len()).map(|a| if once(a) { 1 } else { x.dims()[a] }).collect();
        // What belongs to the run is decided by the shape; a kept axis that is read once ends it all the same.
        let before = (0..dims.len()).rev().find(|&a| !reduced(a) && x.dims()[a] > 1).map_or(0, |a| a + 1);
        let mut parts: Vec<Part> = Vec::new();
        for axis in (0..before).filter(|&a| dims[a] > 1) {
            match parts.last_mut() {
                Some(part) if part.reduced == reduced(axis) => part.size *= dims[axis],
                _ => parts.push(Part { size: dims[axis], reduced: reduced(axis) }),
            }
        }
        let kept: Dims = (0..dims.len()).filter(|&a| !reduced(a)).collect();
        let left: Dims = kept.iter().map(|&a| dims[a]).collect();
        let dense = row_major(&left);
        FoldPlan {
            operand: x.view(dims.iter().copied().collect(), x.strides().into(), x.offset()),
            run: dims[before..].iter().product(),
            parts,
            repeats: axes.iter().filter(|&&a| once(a)).map(|&a| x.dims()[a]).collect(),
            shape: kept.iter().map(|&a| x.dims()[a]).collect(),
            strides: kept.iter().zip(dense).map(|(&a, stride)| if once(a) { 0 } else { stride }).collect(),
            left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::elementwise::number::{Number, Ordered};
    use super::super::reduce::array;
    use super::*;
    use crate::types::{DType, Type};

    /// The definition word for word, by logical position.
    fn by_definition(dims: &[usize], axes: &[usize], x: &[f32], identity: f32, f: fn(f32, f32) -> f32) -> Vec<f32> {
        let big: Vec<usize> = (0..dims.len()).filter(|&a| dims[a] != 1).collect();
        // Few kept elements behind the last reduced axis do not count.
        let last = big.iter().copied().filter(|b| axes.contains(b)).max().unwrap_or(0);
        let behind: usize = dims[last + 1..].iter().product();
        let counts = |b: usize| b <= last || behind > 16;
        let in_run = |a: usize| big.iter().all(|&b| b < a || axes.contains(&b) || !counts(b));
        let kept: Vec<usize> = (0..dims.len()).filter(|a| !axes.contains(a)).collect();
        // Elements by result, then by place along the axes that are reduced before the run; each list is in order.
        let mut runs: Vec<Vec<(Vec<usize>, Vec<f32>)>> = vec![Vec::new(); kept.iter().map(|&a| dims[a]).product()];
        for (i, &v) in x.iter().enumerate() {
            let (mut rest, mut place) = (i, vec![0; dims.len()]);
            for a in (0..dims.len()).rev() {
                (rest, place[a]) = (rest / dims[a], rest % dims[a]);
            }
            let at = kept.iter().fold(0, |at, &a| at * dims[a] + place[a]);
            let outer: Vec<usize> = axes.iter().filter(|&&a| !in_run(a)).map(|&a| place[a]).collect();
            match runs[at].last_mut() {
                Some((before, run)) if *before == outer => run.push(v),
                _ => runs[at].push((outer, vec![v])),
            }
        }
        let tree = |run: &[f32]| {
            let mut total = None;
            for chunk in run.chunks(65_536) {
                let mut lanes: Vec<Option<f32>> = vec![None; 32];
                for (i, &v) in chunk.iter().enumerate() {
                    lanes[i % 32] = Some(lanes[i % 32].map_or(v, |a| f(a, v)));
                }
                for w in [16, 8, 4, 2, 1] {
                    for l in 0..w {
                        if let (Some(a), Some(b)) = (lanes[l], lanes[l + w]) {
                            lanes[l] = Some(f(a, b));
                        }
                    }
                }
                total = match (total, lanes[0]) {
                    (Some(a), Some(b)) => Some(f(a, b)),
                    (a, b) => a.or(b),
                };
            }
            total.unwrap()
        };
        let whole = |runs: &Vec<(Vec<usize>, Vec<f32>)>| {
            let total = runs.iter().map(|(_, run)| tree(run)).reduce(f);
            total.map_or(identity, |total| f(identity, total))
        };
        runs.iter().map(whole).collect()
    }

    /// Numbers whose sums are rounded.
    fn noise(n: usize, seed: u64) -> Vec<f32> {
        let mut bits = seed;
        let mut next = || {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (bits >> 40) as f32 / (1 << 20) as f32 - 8.0
        };
        (0..n).map(|_| next()).collect()
    }

    #[track_caller]
    fn check(x: &Concrete, axes: &[usize]) {
        let values = x.values::<f32>();
        let cases: [(f32, Order, fn(f32, f32) -> f32); 3] = [
            (0.0, Order::Fixed, Number::plus),
            (1.0, Order::Fixed, Number::times),
            (f32::NEG_INFINITY, Order::Any, Ordered::larger),
        ];
        for (identity, order, f) in cases {
            let have = fold::<f32>(x, axes, Scalar::F32(identity), order, f).unwrap();
            let have: Vec<u32> = have.values::<f32>().iter().map(|v| v.to_bits()).collect();
            let want = by_definition(x.dims(), axes, &values, identity, f);
            let want: Vec<u32> = want.iter().map(|v| v.to_bits()).collect();
            assert_eq!(have, want, "{} with strides {:?} over {axes:?}", x.ty(), x.strides());
        }
    }

    #[test]
    fn every_layout_is_combined_in_the_order_of_the_definition() {
        let mut bits = 7u64;
        let mut draw = |n: usize| {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (bits >> 33) as usize % n
        };
        for round in 0..300 {
            let rank = 1 + draw(4);
            let dims: Vec<usize> = (0..rank).map(|_| [1, 2, 3, 5, 7, 40][draw(6)]).collect();
            let axes: Vec<usize> = (0..rank).filter(|_| draw(2) == 0).collect();
            if axes.is_empty() || dims.iter().product::<usize>() > 5000 {
                continue;
            }
            // A view of a larger buffer: axes in any order in memory, some repeated, some backwards.
            let mut order: Vec<usize> = (0..rank).collect();
            (1..rank).for_each(|i| order.swap(i, draw(i + 1)));
            let (mut strides, mut size, mut offset) = (vec![0isize; rank], 1, 0);
            for &a in &order {
                match draw(5) {
                    0 => continue,
                    1 => {
                        strides[a] = -size;
                        offset += size * (dims[a] as isize - 1);
                    }
                    _ => strides[a] = size,
                }
                size *= dims[a] as isize;
            }
            let buffer = Concrete::from_vec(&[size as usize], noise(size as usize, round));
            let x = buffer.view(dims.iter().copied().collect(), strides.into_iter().collect(), offset as usize);
            check(&x, &axes);
            check(&x.to_dense(), &axes);
        }
    }

    #[test]
    fn long_runs_are_combined_by_chunks_and_lanes() {
        for n in [1, 31, 32, 33, 63, 64, 65, 1000, 65_535, 65_536, 65_537, 65_536 + 40, 200_003] {
            check(&Concrete::from_vec(&[n], noise(n, n as u64)), &[0]);
        }
        check(&Concrete::from_vec(&[3, 1, 70_000], noise(210_000, 1)), &[0, 2]);
        check(&Concrete::from_vec(&[2, 3000], noise(6000, 2)), &[0]);
        check(&Concrete::from_vec(&[3000, 1, 2], noise(6000, 3)), &[0, 1]);
    }

    #[test]
    fn zeros_of_a_sum_are_positive() {
        let zeros = array(&[2, 3], vec![-0.0f64; 6]);
        let x = zeros.concrete().unwrap();
        for axes in [&[0][..], &[1], &[0, 1]] {
            let sum = fold::<f64>(x, axes, Scalar::F64(0.0), Order::Fixed, Number::plus).unwrap();
            assert!(sum.values::<f64>().iter().all(|v| v.to_bits() == 0));
        }
        let none = fold::<f64>(x, &[], Scalar::F64(0.0), Order::Fixed, Number::plus).unwrap();
        assert!(none.values::<f64>().iter().all(|v| v.is_sign_negative()));
    }

    #[test]
    fn what_does_not_fit_in_memory_is_an_error_and_repetition_needs_none() {
        let many = |value: Scalar| Concrete::splat(Type::new(value.dtype(), &[1 << 60, 3][..]), value);
        assert!(fold::<f64>(&many(Scalar::F64(1.5)), &[0], Scalar::F64(0.0), Order::Fixed, Number::plus).is_err());
        let sum = fold::<i64>(&many(Scalar::I64(3)), &[0], Scalar::zero(DType::I64), Order::Any, Number::plus).unwrap();
        assert_eq!(*sum.values::<i64>(), [3 << 60; 3]);
    }
}
