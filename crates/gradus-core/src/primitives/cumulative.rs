//! Cumulative sums, products and extrema along an axis: every result is a reduction of what stands before it.
//!
//! The four share their type rule, batching rule and loop; each brings how two numbers combine, and its derivative.
//! `x_dot` is a tangent, `y_bar` a cotangent.

use super::control::{Scan, apply, program};
use super::elementwise::kernel::{one_output, operand};
use super::elementwise::number::{Number, Ordered};
use super::reduce::{around, array, check_axis, complex_wave, dispatch_wide, wave, widened};
use super::rules::one;
use super::shaping::strided::owned;
use super::shaping::{Iota, Pad, Reverse};
use super::sort::{index_dtype, take_along};
use super::{
    Batch, Batched, Derivative, Halves, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::array::{Array, Concrete, collected, memory};
use crate::error::Result;
use crate::rules_of;
use crate::trace::bind;
use crate::transform::zeros_of;
use crate::types::{DType, Dim, Effects, Element, Scalar};

macro_rules! cumulatives {
    ($(
        $(#[$doc:meta])* $name:ident = $text:literal, $wants:literal if |$d:ident| $accepts:expr,
        numbers |$op:ident, $v:ident| $numbers:expr,
        d |$o:ident, $x:ident, $y:ident, $t:ident| $tangent:expr,
        transpose |$to:ident, $bar:ident| $transpose:expr,
        samples $samples:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            /// The axis along which results accumulate.
            pub axis: usize,
            /// Whether they accumulate from the end.
            pub reverse: bool,
        }

        impl Primitive for $name {
            rules_of!($text; axis, reverse);
            fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                infer.arity(1)?;
                infer.dtype(0, $wants, |$d: DType| $accepts)?;
                let ty = &infer.inputs[0]; // invariant: the arity was checked
                check_axis(self.axis, ty)?;
                one(ty.clone())
            }
            fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                let ($op, $v) = (self, operand(inputs, 0)?);
                one_output($numbers)
            }
            #[allow(unused_variables)]
            fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
                match (jvp.primals, jvp.tangents, jvp.outputs()) {
                    ([$x], [Some($t)], [$y]) => {
                        let $o = self;
                        Derivative::one($tangent)
                    }
                    _ => Ok(Derivative::Zero),
                }
            }
            #[allow(unused_variables)]
            fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
                match (transpose.operands, transpose.cotangents) {
                    ([x], [Some($bar)]) if x.unknown().is_some() => {
                        let $to = self;
                        $transpose
                    }
                    ([_], [None]) => Ok(Transposed::Cotangents(smallvec::smallvec![None])),
                    _ => Ok(Transposed::NotLinear),
                }
            }
            fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
                batch.elementwise(Op::new($name { axis: self.axis + 1, reverse: self.reverse }))
            }
            fn is_total(&self) -> bool {
                true
            }
            fn halves(&self) -> Halves {
                Halves::Widened
            }
            fn effects(&self) -> Effects {
                Effects::PURE
            }
            fn samples() -> Vec<Sample> {
                let make = |axis, reverse, x| Sample::new(Op::new($name { axis, reverse }), vec![x]);
                let mut all = vec![
                    make(0, false, wave(&[5], 1)),
                    make(0, true, wave(&[6], 2)),
                    make(0, false, wave(&[3, 4], 3)),
                    make(1, true, wave(&[3, 4], 4)),
                    make(1, false, wave(&[2, 3, 2], 5)),
                    make(0, false, wave(&[1, 2], 6)),
                    make(0, false, array::<f64>(&[0, 2], vec![])),
                    make(1, true, array::<f64>(&[0, 2], vec![])),
                    make(0, false, array(&[4], vec![1.0, f64::NAN, 3.0, f64::INFINITY])).rough(),
                    make(0, false, wave(&[5], 7).cast(DType::F32)).rough(),
                    make(0, true, wave(&[5], 8).cast(DType::F16)).rough(),
                    make(0, false, wave(&[5], 9).cast(DType::BF16)).rough(),
                    make(0, false, array(&[4], vec![100i8, 27, 1, -3])),
                    make(1, true, array(&[2, 2], vec![7u64, 2, 9, 4])),
                ];
                let extra: fn(&dyn Fn(usize, bool, Array) -> Sample) -> Vec<Sample> = $samples;
                all.extend(extra(&make));
                all
            }
        }
    )*};
}

cumulatives! {
    /// Sums of all elements up to each place, in an order that is part of their meaning: see `running_sums`. Half floats
    /// are added in `f32`, integers wrap.
    CumSum = "cumsum", "numbers" if |d| d.is_number(),
        numbers |op, x| widened(x, |x| {
            dispatch_wide!(number x.ty().dtype(), T => running_sums::<T>(x, op.axis, op.reverse))
        })?,
        d |op, x, y, x_dot| bind(Op::new(op.clone()), &[x_dot.clone()]),
        transpose |op, y_bar| {
            Transposed::one(bind(Op::new(CumSum { axis: op.axis, reverse: !op.reverse }), &[y_bar.clone()]))
        },
        samples |make| vec![make(0, true, complex_wave(&[4], 10))];
    /// Products of all elements up to each place. Half floats are multiplied in `f32`, integers wrap.
    CumProd = "cumprod", "numbers" if |d| d.is_number(),
        numbers |op, x| widened(x, |x| {
            dispatch_wide!(number x.ty().dtype(), T => accumulate::<T>(x, op.axis, op.reverse, Number::times))
        })?,
        d |op, x, y, x_dot| op.tangent(x, y, x_dot),
        transpose |op, y_bar| Ok(Transposed::NotLinear),
        samples |make| vec![
            make(0, false, complex_wave(&[4], 10)),
            make(0, false, array(&[5], vec![2.0, 0.0, -3.0, 0.5, 4.0])),
            make(0, true, array(&[5, 1], vec![2.0, 0.0, -3.0, 0.0, 4.0])),
        ];
    /// The maximum of all elements up to each place; NaN from the first NaN on. The first of equals has the derivative.
    CumMax = "cummax", "integers or floats" if |d| d.is_int() || d.is_float(),
        numbers |op, x| widened(x, |x| {
            dispatch_wide!(real x.ty().dtype(), T => accumulate::<T>(x, op.axis, op.reverse, Ordered::larger))
        })?,
        d |op, x, y, x_dot| winner_tangent(op.axis, op.reverse, y, x_dot),
        transpose |op, y_bar| Ok(Transposed::NotLinear),
        samples |make| vec![make(0, false, array(&[5], vec![1.0, 1.0, 0.5, 2.0, 2.0])).rough()];
    /// The minimum of all elements up to each place; NaN from the first NaN on. The first of equals has the derivative.
    CumMin = "cummin", "integers or floats" if |d| d.is_int() || d.is_float(),
        numbers |op, x| widened(x, |x| {
            dispatch_wide!(real x.ty().dtype(), T => accumulate::<T>(x, op.axis, op.reverse, Ordered::smaller))
        })?,
        d |op, x, y, x_dot| winner_tangent(op.axis, op.reverse, y, x_dot),
        transpose |op, y_bar| Ok(Transposed::NotLinear),
        samples |make| vec![make(0, true, array(&[5], vec![2.0, 1.0, 0.5, 2.0, 2.0])).rough()];
}

fn accumulate<T: Element>(x: &Concrete, axis: usize, reverse: bool, f: impl Fn(T, T) -> T) -> Result<Concrete> {
    if x.dims().contains(&0) {
        return Ok(x.clone());
    }
    let [_, n, inner] = around(x.dims(), axis);
    let mut values = owned::<T>(x)?;
    for block in values.chunks_exact_mut(n * inner) {
        if inner == 1 {
            // The running value stays in a register.
            let mut run = None;
            let mut step = |v: &mut T| {
                *v = run.map_or(*v, |r| f(r, *v));
                run = Some(*v);
            };
            if reverse {
                block.iter_mut().rev().for_each(&mut step)
            } else {
                block.iter_mut().for_each(&mut step)
            }
            continue;
        }
        for i in 1..n {
            let (to, from) = if reverse { (n - 1 - i, n - i) } else { (i, i - 1) };
            let (low, high) = block.split_at_mut(to.max(from) * inner);
            let (low, high) = (&mut low[to.min(from) * inner..], &mut high[..inner]);
            let (to, from) = if reverse { (low, high) } else { (high, low) };
            to.iter_mut().zip(from.iter()).for_each(|(v, &r)| *v = f(r, *v));
        }
    }
    Ok(Concrete::dense(x.ty().clone(), values))
}

/// How many places of a running sum are added one after the other.
pub const BLOCK: usize = 256;

/// Running sums whose rounding errors grow with the logarithm of the length and not with the length.
///
/// The places along the axis are cut into blocks of 256, 256 blocks are a group, 256 groups a larger one, and so on. A result
/// is what stands before its block plus the sum from the first place of the block to its own, one after the other. What stands
/// before a block is added up from the largest finished groups to the smallest, and finished groups of one size that are
/// not part of a larger one from the first to the last. From the end, the last place is the first.
fn running_sums<T: Number>(x: &Concrete, axis: usize, reverse: bool) -> Result<Concrete> {
    if x.dims().contains(&0) {
        return Ok(x.clone());
    }
    let [_, n, inner] = around(x.dims(), axis);
    let mut values = owned::<T>(x)?;
    for slab in values.chunks_exact_mut(n * inner) {
        let (mut groups, mut before) = (Groups::default(), None);
        for first in (0..n).step_by(BLOCK) {
            let len = BLOCK.min(n - first);
            let from = if reverse { n - first - len } else { first };
            let block = &mut slab[from * inner..(from + len) * inner];
            let total = match inner {
                1 => vec![sums_of_numbers(block, reverse, before.as_ref().map(|b: &Vec<T>| b[0]))],
                _ => sums_of_rows(block, inner, reverse, before.as_deref())?,
            };
            groups.finish(total);
            before = groups.sum()?;
        }
    }
    Ok(Concrete::dense(x.ty().clone(), values))
}

/// The running sums of one block behind `before`, and its total.
fn sums_of_numbers<T: Number>(block: &mut [T], reverse: bool, before: Option<T>) -> T {
    let mut run: Option<T> = None;
    let mut step = |v: &mut T| {
        let sum = run.map_or(*v, |r| r.plus(*v));
        run = Some(sum);
        *v = before.map_or(sum, |b| b.plus(sum));
    };
    if reverse {
        block.iter_mut().rev().for_each(&mut step)
    } else {
        block.iter_mut().for_each(&mut step)
    }
    run.unwrap_or_default()
}

/// The same for rows of numbers, each column by itself.
fn sums_of_rows<T: Number>(block: &mut [T], width: usize, reverse: bool, before: Option<&[T]>) -> Result<Vec<T>> {
    let mut run: Vec<T> = memory(width)?;
    let mut step = |row: &mut [T]| {
        match run.is_empty() {
            true => run.extend_from_slice(row),
            false => run.iter_mut().zip(&*row).for_each(|(r, &v)| *r = r.plus(v)),
        }
        match before {
            Some(before) => row.iter_mut().zip(&run).zip(before).for_each(|((v, &r), &b)| *v = b.plus(r)),
            None => row.copy_from_slice(&run),
        }
    };
    let rows = block.chunks_exact_mut(width);
    if reverse {
        rows.rev().for_each(&mut step)
    } else {
        rows.for_each(&mut step)
    }
    Ok(run)
}

/// Sums of finished blocks, of finished groups of blocks, and so on; with each how many of its size it holds.
#[derive(Default)]
struct Groups<T>(Vec<(Vec<T>, usize)>);

impl<T: Number> Groups<T> {
    fn finish(&mut self, mut total: Vec<T>) {
        for (sum, count) in &mut self.0 {
            if *count > 0 {
                total.iter_mut().zip(&*sum).for_each(|(t, &s)| *t = s.plus(*t));
            }
            *count += 1;
            if *count < BLOCK {
                *sum = total;
                return;
            }
            *count = 0;
        }
        self.0.push((total, 1));
    }

    /// All of them, from the largest groups to the smallest.
    fn sum(&self) -> Result<Option<Vec<T>>> {
        let mut finished = self.0.iter().rev().filter(|(_, count)| *count > 0).map(|(sum, _)| sum);
        let Some(first) = finished.next() else { return Ok(None) };
        let mut all = collected(first.len(), first.iter().copied())?;
        finished.for_each(|sum| all.iter_mut().zip(sum).for_each(|(a, &s)| *a = a.plus(s)));
        Ok(Some(all))
    }
}

/// Elements moved `by` places along an axis (backwards if negative); `fill` comes in.
pub(super) fn shift(x: &Array, axis: usize, by: i64, fill: Scalar) -> Array {
    let mut low = vec![Dim::from(0usize); x.rank()];
    let mut high = low.clone();
    if let (Some(l), Some(h)) = (low.get_mut(axis), high.get_mut(axis)) {
        (*l, *h) = (Dim::from(by), Dim::from(-by));
    }
    bind(Op::new(Pad { low, high, interior: vec![0; x.rank()] }), &[x.clone(), Array::scalar(fill)])
}

/// Elements without the first `by` along an axis, or without the last if negative.
fn cut(x: &Array, axis: usize, by: i64) -> Array {
    one_sided(x, axis, by, -by.abs(), Scalar::zero(x.dtype()))
}

/// Elements behind `by` others that are `fill`, or before them if negative.
fn widen(x: &Array, axis: usize, by: i64, fill: Scalar) -> Array {
    one_sided(x, axis, by, by.abs(), fill)
}

/// Adds places on the side that a sign says; a negative count takes them away.
fn one_sided(x: &Array, axis: usize, side: i64, count: i64, fill: Scalar) -> Array {
    let mut low = vec![Dim::from(0usize); x.rank()];
    let mut high = low.clone();
    if let Some(end) = if side > 0 { &mut low } else { &mut high }.get_mut(axis) {
        *end = Dim::from(count);
    }
    bind(Op::new(Pad { low, high, interior: vec![0; x.rank()] }), &[x.clone(), Array::scalar(fill)])
}

impl CumProd {
    /// `yᵢ' = Σ_{j≤i} xⱼ' Π_{k≤i, k≠j} x_k`, made of sums and products only: zeros are no exception, and the rule can
    /// be differentiated again.
    fn tangent(&self, x: &Array, y: &Array, x_dot: &Array) -> Array {
        match x.shape().get(self.axis).and_then(Dim::as_usize) {
            Some(n) => self.tangent_by_doubling(x, x_dot, n),
            None => self.tangent_by_steps(x, y, x_dot).unwrap_or_else(Array::from),
        }
    }

    /// The product and its derivative over the last 1, 2, 4, ... places: `(p, d)` behind `(p₀, d₀)` is
    /// `(p₀p, d₀p + p₀d)`. The number of equations grows with the logarithm of the length.
    fn tangent_by_doubling(&self, x: &Array, x_dot: &Array, n: usize) -> Array {
        let (mut p, mut d) = (x.clone(), x_dot.clone());
        let mut by = 1usize;
        while by < n {
            let back = if self.reverse { -(by as i64) } else { by as i64 };
            let p0 = shift(&p, self.axis, back, Scalar::one(x.dtype()));
            // Where nothing comes in nothing is multiplied, since zero times infinity would be NaN.
            let zero = Scalar::zero(x.dtype());
            let (d0, here) = (cut(&d, self.axis, -back), cut(&p, self.axis, back));
            d = widen(&(d0 * here), self.axis, back, zero) + &p0 * &d;
            by = by.saturating_mul(2);
            if by < n {
                p = p0 * p;
            }
        }
        d
    }

    /// For a length that is not known: `yᵢ' = yᵢ₋₁' xᵢ + yᵢ₋₁ xᵢ'`, one step for each place. The loop is linear in what it
    /// carries, so reverse mode is a loop over the same `x` and nothing is kept for each step.
    fn tangent_by_steps(&self, x: &Array, y: &Array, x_dot: &Array) -> Result<Array> {
        let before = shift(y, self.axis, if self.reverse { -1 } else { 1 }, Scalar::one(x.dtype()));
        // Like the product, what is added up step by step has the wide dtype.
        let wide = if matches!(x.dtype(), DType::F16 | DType::BF16) { DType::F32 } else { x.dtype() };
        let in_front = |x: &Array| x.cast(wide).move_axis(self.axis as isize, 0).ok();
        // The first step carries nothing in: its factor may be infinite, and is not used.
        let place = Array::iota(DType::I64, x.shape().clone(), self.axis as isize);
        let last = Array::from_dim(&(x.dim(self.axis as isize) - 1usize), DType::I64);
        let first = if self.reverse { last } else { last.zeros_like() };
        let factors = place.eq(first).select(x.ones_like(), x);
        let sequences = [in_front(&factors)?, in_front(&(before * x_dot))?];
        let element = x.ty()?.with_shape(x.shape().without(|axis| axis == self.axis)).with_dtype(wide);
        let types = [element.clone(), element.clone(), element.clone()];
        let body = program("product_rule", types, |xs| {
            let dot = &xs[0] * &xs[1] + &xs[2];
            Ok(vec![dot.clone(), dot])
        })?;
        let length = x.dim(self.axis as isize);
        let scan = Op::new(Scan { body, consts: 0, carries: 1, length, reverse: self.reverse });
        let [x, terms] = sequences;
        let dots = apply(scan, &[zeros_of(&element), x, terms])?.swap_remove(1);
        dots.move_axis(0, self.axis as isize).cast(y.dtype()).ok()
    }
}

/// The tangent at the place that holds the extremum so far: a place holds it from where the running result changed.
fn winner_tangent(axis: usize, reverse: bool, y: &Array, x_dot: &Array) -> Array {
    let turned = |x: &Array| match reverse {
        true => bind(Op::new(Reverse { axes: vec![axis] }), &[x.clone()]),
        false => x.clone(),
    };
    let y = turned(y);
    let n = y.shape().get(axis).cloned().unwrap_or_else(|| Dim::from(1usize));
    let places = bind(Op::new(Iota { dtype: index_dtype(&n), shape: y.shape().clone(), axis }), &[]);
    // What comes in at the front does not matter: the first place is 0 whether it counts as changed or not.
    let before = shift(&y, axis, 1, Scalar::zero(y.dtype()));
    // A NaN is the extremum from its place on, though it is not equal to itself.
    let changed = y.ne(&before) & (y.eq(&y) | before.eq(&before));
    let since = bind(Op::new(CumMax { axis, reverse: false }), &[changed.select(&places, places.zeros_like())]);
    turned(&take_along(&turned(x_dot), &since, axis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn floats(op: impl Primitive, x: Array) -> Vec<f64> {
        bind(Op::new(op), &[x]).to_vec().unwrap()
    }

    #[test]
    fn results_accumulate_along_the_axis_from_either_end() {
        let x = || array(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(floats(CumSum { axis: 1, reverse: false }, x()), [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
        assert_eq!(floats(CumSum { axis: 1, reverse: true }, x()), [6.0, 5.0, 3.0, 15.0, 11.0, 6.0]);
        assert_eq!(floats(CumSum { axis: 0, reverse: false }, x()), [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
        assert_eq!(floats(CumProd { axis: 0, reverse: true }, x()), [4.0, 10.0, 18.0, 4.0, 5.0, 6.0]);
        assert_eq!(floats(CumSum { axis: 0, reverse: false }, array::<f64>(&[0, 2], vec![])), []);
        let deep = array(&[3, 2], vec![1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
        assert_eq!(floats(CumSum { axis: 0, reverse: true }, deep), [6.0, 60.0, 5.0, 50.0, 3.0, 30.0]);
    }

    /// The running sum at the last of these places, in the order that [`running_sums`] promises.
    fn written(x: &[f32]) -> f32 {
        fn add(terms: impl Iterator<Item = f32>) -> Option<f32> {
            terms.reduce(|a, b| a + b)
        }
        fn group(x: &[f32], size: usize) -> f32 {
            let parts = x.chunks(size / BLOCK);
            if size == BLOCK {
                add(x.iter().copied()).unwrap()
            } else {
                add(parts.map(|p| group(p, size / BLOCK))).unwrap()
            }
        }
        let start = (x.len() - 1) / BLOCK * BLOCK;
        let (mut at, mut before) = (0, Vec::new());
        for size in [BLOCK * BLOCK, BLOCK] {
            let end = at + (start - at) / size * size;
            before.extend(add(x[at..end].chunks(size).map(|g| group(g, size))));
            at = end;
        }
        let own = add(x[start..].iter().copied()).unwrap();
        add(before.into_iter()).map_or(own, |before| before + own)
    }

    #[test]
    fn running_sums_have_the_order_that_is_written() {
        let n = 2 * BLOCK * BLOCK + 3 * BLOCK + 7;
        let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin() + 0.3).collect();
        let back: Vec<f32> = x.iter().rev().copied().collect();
        let sums =
            |axis, reverse, x: Array| -> Vec<f32> { bind(Op::new(CumSum { axis, reverse }), &[x]).to_vec().unwrap() };
        let forward = sums(0, false, array(&[n], x.clone()));
        let backward = sums(0, true, array(&[n], x.clone()));
        let pairs: Vec<f32> = x.iter().zip(&back).flat_map(|(a, b)| [*a, *b]).collect();
        let columns = sums(0, false, array(&[n, 2], pairs.clone()));
        let columns_back = sums(0, true, array(&[n, 2], pairs));
        for i in [0, 1, 255, 256, 511, 512, 65_535, 65_536, 65_791, 65_792, 131_071, 131_072, n - 1] {
            let (want, want_back) = (written(&x[..=i]).to_bits(), written(&back[..=i]).to_bits());
            assert_eq!(forward[i].to_bits(), want, "{i}");
            assert_eq!(backward[n - 1 - i].to_bits(), want_back, "{i}");
            assert_eq!([columns[2 * i].to_bits(), columns[2 * i + 1].to_bits()], [want, want_back], "{i}");
            let j = 2 * (n - 1 - i);
            assert_eq!([columns_back[j].to_bits(), columns_back[j + 1].to_bits()], [want_back, want], "{i}");
        }
    }

    #[test]
    fn rounding_errors_of_running_sums_do_not_pile_up() {
        let n = 1 << 19;
        let x = Array::scalar(Scalar::F32(0.1)).broadcast_to([n]);
        let sums: Vec<f32> = bind(Op::new(CumSum { axis: 0, reverse: false }), &[x]).to_vec().unwrap();
        for (i, sum) in sums.iter().enumerate() {
            let exact = f64::from(0.1f32) * (i + 1) as f64;
            // One after the other the last would be wrong by more than one part in a thousand.
            assert!((f64::from(*sum) - exact).abs() < 4e-6 * exact, "{i}: {sum} is not {exact}");
        }
    }

    #[test]
    fn extrema_run_and_nan_stays() {
        let x = || array(&[5], vec![1.0, 3.0, 2.0, f64::NAN, 9.0]);
        let max = floats(CumMax { axis: 0, reverse: false }, x());
        assert_eq!(max[..3], [1.0, 3.0, 3.0]);
        assert!(max[3].is_nan() && max[4].is_nan());
        let min = floats(CumMin { axis: 0, reverse: true }, x());
        assert!(min[..4].iter().all(|v| v.is_nan()) && min[4] == 9.0);
        let wrapped = bind(Op::new(CumSum { axis: 0, reverse: false }), &[array(&[2], vec![127i8, 1])]);
        assert_eq!(wrapped.to_vec::<i8>().unwrap(), [127, -128]);
    }

    #[test]
    fn both_derivatives_of_products_agree_at_zeros() {
        let x = array(&[2, 5], vec![2.0, 0.0, -3.0, 0.5, 4.0, 0.0, 1.5, 0.0, -2.0, 1.0]);
        let x_dot = wave(&[2, 5], 3);
        for reverse in [false, true] {
            let op = CumProd { axis: 1, reverse };
            let doubling: Vec<f64> = op.tangent_by_doubling(&x, &x_dot, 5).to_vec().unwrap();
            let y = bind(Op::new(op.clone()), std::slice::from_ref(&x));
            let steps: Vec<f64> = op.tangent_by_steps(&x, &y, &x_dot).unwrap().to_vec().unwrap();
            for (a, b) in doubling.iter().zip(&steps) {
                assert!((a - b).abs() < 1e-12, "{doubling:?} {steps:?}");
            }
        }
        // d(x0 x1)/dx1 = x0 though the product is zero.
        let one = array(&[3], vec![0.0, 1.0, 0.0]);
        let op = CumProd { axis: 0, reverse: false };
        let x = array(&[3], vec![2.0, 0.0, 5.0]);
        let y = bind(Op::new(op.clone()), std::slice::from_ref(&x));
        for dot in [op.tangent(&x, &y, &one), op.tangent_by_steps(&x, &y, &one).unwrap()] {
            assert_eq!(dot.to_vec::<f64>().unwrap(), [0.0, 2.0, 10.0]);
        }
    }

    #[test]
    fn infinite_factors_do_not_touch_what_is_before_them() {
        let x = array(&[4], vec![f64::INFINITY, 1.0, f64::NEG_INFINITY, 2.0]);
        for (reverse, place, want) in [(false, 0, 1.0), (true, 3, 1.0), (true, 2, f64::NEG_INFINITY)] {
            let op = CumProd { axis: 0, reverse };
            let y = bind(Op::new(op.clone()), std::slice::from_ref(&x));
            let ones = array(&[4], vec![1.0; 4]);
            for dots in [op.tangent(&x, &y, &ones), op.tangent_by_steps(&x, &y, &ones).unwrap()] {
                assert_eq!(dots.to_vec::<f64>().unwrap()[place], want, "{reverse} {dots}");
            }
        }
    }

    #[test]
    fn the_first_of_equals_has_the_derivative() {
        let x = array(&[5], vec![1.0, 1.0, 0.5, 2.0, 2.0]);
        let x_dot = array(&[5], vec![10.0, 20.0, 30.0, 40.0, 50.0]);
        for (reverse, want) in [(false, [10.0, 10.0, 10.0, 40.0, 40.0]), (true, [50.0, 50.0, 50.0, 50.0, 50.0])] {
            let y = bind(Op::new(CumMax { axis: 0, reverse }), &[x.clone()]);
            assert_eq!(winner_tangent(0, reverse, &y, &x_dot).to_vec::<f64>().unwrap(), want);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kind = |op: Op, spec: &str| bind(op, &[Array::spec(spec)]).ok().unwrap_err().kind();
        assert_eq!(kind(Op::new(CumSum { axis: 1, reverse: false }), "f64[3]"), ErrorKind::Axis);
        assert_eq!(kind(Op::new(CumSum { axis: 0, reverse: false }), "f64[]"), ErrorKind::Axis);
        assert_eq!(kind(Op::new(CumSum { axis: 0, reverse: false }), "bool[3]"), ErrorKind::DType);
        assert_eq!(kind(Op::new(CumMax { axis: 0, reverse: false }), "c128[3]"), ErrorKind::DType);
        let symbolic = bind(Op::new(CumMax { axis: 0, reverse: true }), &[Array::spec("f32[B,2]")]);
        assert_eq!(symbolic.ty().unwrap().to_string(), "f32[B,2]");
    }
}
