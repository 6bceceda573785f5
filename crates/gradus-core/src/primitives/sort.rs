//! Sorting several arrays together, and the largest elements of each row.
//!
//! Every order is one of unsigned integers: a key is mapped so that its order is the wanted one, NaN behind all
//! numbers and the two zeros equal. Both derivatives move tangents by the permutation found. `x_dot` is a tangent.

use std::cmp::Ordering;

use super::elementwise::kernel::operand;
use super::index::{Bounds, Gather};
use super::reduce::{around, array, check_axis, complex_wave, elements, fits_places, wave};
use super::shaping::{Broadcast, Iota, fit};
use super::{Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types};
use crate::array::{Array, Concrete, collected, memory};
use crate::error::{Result, counted, error, fail};
use crate::rules_of;
use crate::trace::{bind, bind_all};
use crate::types::{Complex, DType, Decision, Dim, Effects, Element, Shape, Type, bf16, dispatch, dispatch_real, f16};

/// Sorts arrays of one shape together along an axis, stably, by the first `keys` of them: by the first, where that is
/// equal by the second, and so on. NaN comes after all numbers (before, if descending); `-0.0` equals `0.0`; complex
/// numbers are ordered by real part, then by imaginary part.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    /// The axis along which elements are moved.
    pub axis: usize,
    /// How many operands decide the order; the others follow.
    pub keys: usize,
    /// Whether the largest comes first.
    pub descending: bool,
}

impl Primitive for Sort {
    rules_of!("sort"; axis, keys, descending);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let inputs = infer.inputs;
        let Some((first, others)) = inputs.split_first() else { fail!(Verify, "takes at least one operand") };
        if self.keys == 0 || self.keys > inputs.len() {
            fail!(Value, "sorts by 1 to {} of its operands, not by {}", inputs.len(), self.keys);
        }
        check_axis(self.axis, first)?;
        if let Some(key) = inputs[..self.keys].iter().find(|ty| ty.dtype() == DType::Key) {
            return Err(error!(DType, "random keys have no order: {key}").help("sort by numbers; keys may follow"));
        }
        for other in others {
            if !infer.same_shape(first.shape(), other.shape()) {
                fail!(Shape, "operands of different shapes cannot be sorted together: {first} and {other}");
            }
        }
        Ok(inputs.iter().cloned().collect())
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let first = operand(inputs, 0)?;
        if first.dims().contains(&0) {
            return Ok(inputs.iter().cloned().collect());
        }
        let mut columns = Vec::new();
        for i in 0..self.keys {
            columns.extend(order_keys(operand(inputs, i)?, self.descending)?);
        }
        let from = permutation(&columns, around(first.dims(), self.axis))?;
        drop(columns);
        (0..inputs.len())
            .map(|i| {
                let x = operand(inputs, i)?;
                Ok(dispatch!(x.ty().dtype(), T => {
                    let values = elements::<T>(x)?;
                    Concrete::dense::<T>(x.ty().clone(), collected(from.len(), from.iter().map(|&p| values[p]))?)
                })
                .into())
            })
            .collect()
    }

    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let (Some(first), true) = (jvp.primals.first(), jvp.tangents.iter().any(Option::is_some)) else {
            return Ok(Derivative::Zero);
        };
        let shape = first.shape();
        let n = shape.get(self.axis).cloned().unwrap_or_else(|| Dim::from(1usize));
        let places = bind(Op::new(Iota { dtype: index_dtype(&n), shape: shape.clone(), axis: self.axis }), &[]);
        let keys = jvp.primals.iter().take(self.keys).cloned();
        let mut sorted = bind_all(Op::new(self.clone()), &keys.chain([places]).collect::<Vec<_>>());
        let Some(from) = sorted.pop() else { fail!(Rule, "a sort without results") };
        let moved = |x_dot: &Array| fit(take_along(&fit(x_dot.clone(), shape), &from, self.axis), x_dot.shape());
        Ok(Derivative::Tangents(jvp.tangents.iter().map(|t| t.as_ref().map(moved)).collect()))
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(Sort { axis: self.axis + 1, ..self.clone() }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |axis, keys, descending, inputs| Sample::new(Op::new(Sort { axis, keys, descending }), inputs);
        let ties = || array(&[6], vec![2i32, 1, 2, 1, 0, 2]);
        let special = vec![0.0, f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0];
        vec![
            make(0, 1, false, vec![wave(&[6], 1)]),
            make(0, 1, true, vec![wave(&[6], 2)]),
            make(1, 1, false, vec![wave(&[2, 4], 3)]),
            make(0, 1, false, vec![wave(&[4, 2], 4)]),
            make(1, 1, true, vec![wave(&[2, 3, 2], 5), wave(&[2, 3, 2], 6)]),
            make(0, 1, false, vec![ties(), wave(&[6], 7), array(&[6], vec![0u8, 1, 2, 3, 4, 5])]),
            make(0, 1, true, vec![ties(), wave(&[6], 8)]),
            make(0, 2, false, vec![ties(), wave(&[6], 9), wave(&[6], 10)]),
            make(0, 1, false, vec![array(&[7], special.clone())]).rough(),
            make(0, 1, true, vec![array(&[7], special), array(&[7], vec![0i64, 1, 2, 3, 4, 5, 6])]).rough(),
            make(0, 1, false, vec![array(&[4], vec![true, false, true, false])]),
            make(0, 1, false, vec![complex_wave(&[4], 11), wave(&[4], 12)]),
            make(0, 1, false, vec![array(&[4], vec![-128i8, 127, 0, -1])]),
            make(0, 1, true, vec![array(&[3], vec![u64::MAX, 0, 1 << 63])]),
            make(0, 1, false, vec![wave(&[5], 13).cast(DType::F16), wave(&[5], 14).cast(DType::F32)]).rough(),
            make(1, 1, false, vec![array::<f64>(&[3, 0], vec![])]),
        ]
    }
}

/// The `k` largest elements of each row along the last axis, largest first, and where they stand. The first of equals
/// comes first; NaN counts as larger than all numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct TopK {
    /// How many.
    pub k: usize,
}

impl Primitive for TopK {
    rules_of!("top_k"; k);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        infer.dtype(0, "integers, floats or bools", |d| !d.is_complex())?;
        let ty = infer.inputs[0].clone(); // invariant: the arity was checked
        let Some((last, rows)) = ty.shape().split_last() else {
            fail!(Axis, "takes the largest along the last axis, and {ty} has none");
        };
        if !infer.at_least(last, &Dim::from(self.k)) {
            fail!(Shape, "takes the {} largest of rows that have only {}: {ty}", self.k, counted(last, "element"));
        }
        fits_places(last, DType::I32, &ty)?;
        let shape: Shape = rows.iter().cloned().chain([Dim::from(self.k)]).collect();
        Ok(smallvec::smallvec![ty.with_shape(shape.clone()), Type::new(DType::I32, shape)])
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        let shape = x.ty().shape().replaced(x.dims().len().saturating_sub(1), Dim::from(self.k));
        let (values_ty, places_ty) = (x.ty().with_shape(shape.clone()), Type::new(DType::I32, shape));
        let n = x.dims().last().copied().unwrap_or(0);
        // Once more: the type rule may have seen a symbolic dimension.
        fits_places(&Dim::from(n), DType::I32, x.ty())?;
        let mut from = Vec::new();
        if self.k > 0 && !x.dims().contains(&0) {
            from = match x.ty().dtype() {
                DType::Bool => largest::<bool>(&elements(x)?, n, self.k)?,
                d => {
                    dispatch_real!(d, T => largest::<T>(&elements(x)?, n, self.k)?, else fail!(DType, "no order in {d}"))
                }
            };
        }
        let places = collected(from.len(), from.iter().map(|p| (p % n.max(1)) as i32))?;
        let values = dispatch!(x.ty().dtype(), T => {
            let values = elements::<T>(x)?;
            Concrete::dense::<T>(values_ty, collected(from.len(), from.iter().map(|&p| values[p]))?)
        });
        Ok(smallvec::smallvec![values.into(), Concrete::dense::<i32>(places_ty, places).into()])
    }

    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([Some(x_dot)], [_, places]) = (jvp.tangents, jvp.outputs()) else { return Ok(Derivative::Zero) };
        let moved = take_along(x_dot, places, x_dot.rank().saturating_sub(1));
        Ok(Derivative::Tangents(smallvec::smallvec![Some(moved), None]))
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(self.clone()))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |k, x| Sample::new(Op::new(TopK { k }), vec![x]);
        vec![
            make(3, wave(&[6], 1)),
            make(6, wave(&[6], 2)),
            make(0, wave(&[6], 3)),
            make(2, wave(&[3, 4], 4)),
            make(1, wave(&[2, 3, 2], 5)),
            make(2, array::<f64>(&[0, 3], vec![])),
            make(0, array::<f64>(&[2, 0], vec![])),
            make(4, array(&[6], vec![1.0, f64::NAN, 2.0, f64::INFINITY, 2.0, 0.0])).rough(),
            make(3, array(&[4], vec![7i32, 9, -7, 9])),
            make(2, array(&[3], vec![200u8, 3, 200])),
            make(2, array(&[3], vec![false, true, true])),
            make(2, wave(&[5], 6).cast(DType::F32)).rough(),
            make(2, wave(&[5], 7).cast(DType::BF16)).rough(),
        ]
    }
}

/// A number as an unsigned integer of the same order.
trait SortKey: Element {
    fn key(self) -> u64;
}

macro_rules! sort_keys {
    ($($t:ty: |$v:ident| $key:expr;)*) => {$(
        impl SortKey for $t {
            fn key(self) -> u64 {
                let $v = self;
                $key
            }
        }
    )*};
}
const SIGN: u64 = 1 << 63;
sort_keys! {
    bool: |v| v as u64;
    i8: |v| v as u64 ^ SIGN;
    i16: |v| v as u64 ^ SIGN;
    i32: |v| v as u64 ^ SIGN;
    i64: |v| v as u64 ^ SIGN;
    u8: |v| v as u64;
    u16: |v| v as u64;
    u32: |v| v as u64;
    u64: |v| v;
    f16: |v| v.to_f64().key();
    bf16: |v| v.to_f64().key();
    f32: |v| (v as f64).key();
    f64: |v| {
        if v.is_nan() {
            return u64::MAX;
        }
        // Adding zero makes -0.0 into 0.0. Negative numbers grow downwards in their bits.
        let bits = (v + 0.0).to_bits();
        if bits & SIGN == 0 { bits | SIGN } else { !bits }
    };
}

/// Elements that are looked at together: whether any of them is among the largest so far is one answer.
const BLOCK: usize = 64;

/// So few are kept in order while a row is gone through: one that comes in moves those behind it.
const FEW: usize = 32;
/// Then fewer elements are looked at together, as each of them may raise what the next have to be.
const FEW_BLOCK: usize = 16;

/// Puts a number in its order in place of the last. It comes behind those of its key: they are from places before it.
fn put(best: &mut [(u64, usize)], new: (u64, usize)) {
    let mut at = best.len() - 1;
    while at > 0 && best[at - 1].0 > new.0 {
        best[at] = best[at - 1];
        at -= 1;
    }
    best[at] = new;
}

/// As [`largest`], of few.
fn largest_few<T: SortKey + PartialOrd>(values: &[T], n: usize, k: usize) -> Result<Vec<usize>> {
    let mut from = memory(values.len() / n * k)?;
    let mut best = [(0, 0); FEW];
    let best = &mut best[..k];
    for start in (0..values.len()).step_by(n) {
        for i in 0..k {
            put(&mut best[..=i], (!values[start + i].key(), start + i));
        }
        let mut least = values[best[k - 1].1];
        let mut first = start + k;
        for block in values[first..start + n].chunks(FEW_BLOCK) {
            if !block.iter().fold(true, |all, v| all & (*v <= least)) {
                for (v, place) in block.iter().zip(first..) {
                    // What is not larger comes behind the last, and nothing comes before so many NaNs.
                    if *v <= least || least.partial_cmp(&least).is_none() {
                        continue;
                    }
                    put(best, (!v.key(), place));
                    least = values[best[k - 1].1];
                }
            }
            first += block.len();
        }
        from.extend(best.iter().map(|&(_, place)| place));
    }
    Ok(from)
}

/// Elements whose largest is found at once: so many of them are one loop of vectors.
const PART: usize = 8;
/// So many parts for each that is wanted: with more of them the bound is closer, and there is more to do before.
const PARTS: usize = 3;

/// The largest of some, one at least. If some are NaN it may be any of them that is a number, or NaN.
fn most<T: PartialOrd + Copy>(values: &[T]) -> T {
    let larger = |a: T, b: T| if b > a { b } else { a };
    let (parts, rest) = values.as_chunks::<PART>();
    let all = parts.iter().fold([values[0]; PART], |mut all, part| {
        all.iter_mut().zip(part).for_each(|(m, v)| *m = larger(*m, *v));
        all
    });
    all.into_iter().chain(rest.iter().copied()).fold(values[0], larger)
}

/// Rows of so many elements for each that is wanted are worth it. In longer ones the parts are long too, and most rows have their largest early.
const SHORTEST: usize = PART;
const LONGEST: usize = 256;

/// As [`largest`], of few. A row is cut into more than `k` parts, and the `k`-th of their largest is a bound: as many elements are no less. What is below it, nearly
/// everything, is left out a part at a time, and what is left is put in order.
fn largest_by_bound<T: SortKey + PartialOrd>(values: &[T], n: usize, k: usize) -> Result<Vec<usize>> {
    let mut from = memory(values.len() / n * k)?;
    let size = (n / (PARTS * k) / PART * PART).max(PART);
    let mut ranked: Vec<(u64, usize)> = memory(n.div_ceil(size))?;
    let mut tops: Vec<T> = memory(n.div_ceil(size))?;
    let mut best: Vec<(u64, usize)> = memory(n)?;
    let mut chosen = collected(n, (0..n).map(|_| 0usize))?;
    for (row, start) in values.chunks_exact(n).zip((0..).step_by(n)) {
        tops.clear();
        tops.extend(row.chunks(size).map(most));
        ranked.clear();
        ranked.extend(tops.iter().map(|top| !top.key()).zip(0..));
        let (_, (_, at), _) = ranked.select_nth_unstable(k - 1);
        let bound = tops[*at];
        // A NaN comes before everything, and need not be the top of its part.
        let has_nan = row.iter().fold(false, |any, v| any | v.partial_cmp(v).is_none());
        let mut count = 0;
        for ((top, part), first) in tops.iter().zip(row.chunks(size)).zip((0..).step_by(size)) {
            if has_nan || *top >= bound {
                for (place, v) in (first..).zip(part) {
                    chosen[count] = place;
                    let behind = *v < bound || bound.partial_cmp(&bound).is_none() && v.partial_cmp(v).is_some();
                    count += usize::from(!behind);
                }
            }
        }
        best.clear();
        best.extend(chosen[..count].iter().map(|place| (!row[*place].key(), start + place)));
        if best.len() > 2 * k {
            best.select_nth_unstable(k - 1);
            best.truncate(k);
        }
        best.sort_unstable();
        from.extend(best[..k].iter().map(|&(_, place)| place));
    }
    Ok(from)
}

/// The places of the `k` largest elements of each row of `n`, the largest first and the first of equals.
fn largest<T: SortKey + PartialOrd>(values: &[T], n: usize, k: usize) -> Result<Vec<usize>> {
    if k <= FEW && (SHORTEST * k..=LONGEST * k).contains(&n) {
        return largest_by_bound(values, n, k);
    }
    if k <= FEW {
        return largest_few(values, n, k);
    }
    // Descending: the largest has the smallest key, and of equals the first the smallest place.
    let numbered = |place: usize| (!values[place].key(), place);
    let most = (2 * k).max(k + BLOCK);
    let mut from = memory(values.len() / n * k)?;
    let mut best: Vec<(u64, usize)> = memory(most.min(n) + BLOCK)?;
    for start in (0..values.len()).step_by(n) {
        best.clear();
        best.extend((start..start + k).map(numbered));
        let mut next = start + k;
        while next < start + n {
            // What is not larger than the least of the `k` largest so far comes behind it; a NaN is never that.
            let Some(&(_, least)) = best.iter().max() else { break };
            let least = values[least];
            if least.partial_cmp(&least).is_none() {
                // Nothing comes before so many NaNs.
                break;
            }
            while next < start + n && best.len() < most {
                let end = (next + BLOCK).min(start + n);
                let is_behind = |v: &T| *v <= least;
                if !values[next..end].iter().fold(true, |all, v| all & is_behind(v)) {
                    best.extend((next..end).filter(|&p| !is_behind(&values[p])).map(numbered));
                }
                next = end;
            }
            if best.len() > k {
                best.select_nth_unstable(k - 1);
                best.truncate(k);
            }
        }
        best.sort_unstable();
        from.extend(best.iter().map(|&(_, place)| place));
    }
    Ok(from)
}

/// The keys of all elements in row-major order: one column, or two for complex numbers.
fn order_keys(x: &Concrete, descending: bool) -> Result<Vec<Vec<u64>>> {
    let turn = if descending { u64::MAX } else { 0 };
    fn column<T: Element>(x: &Concrete, turn: u64, key: impl Fn(T) -> u64) -> Result<Vec<u64>> {
        let values = elements::<T>(x)?;
        collected(values.len(), values.iter().map(|&v| key(v) ^ turn))
    }
    Ok(match x.ty().dtype() {
        DType::C64 => {
            vec![column(x, turn, |v: Complex<f32>| v.re.key())?, column(x, turn, |v: Complex<f32>| v.im.key())?]
        }
        DType::C128 => {
            vec![column(x, turn, |v: Complex<f64>| v.re.key())?, column(x, turn, |v: Complex<f64>| v.im.key())?]
        }
        DType::Bool => vec![column(x, turn, bool::key)?],
        d => dispatch_real!(d, T => vec![column(x, turn, T::key)?], else fail!(DType, "no order in {}", x.ty())),
    })
}

/// For each place of an array of `[outer, n, inner]` elements, the place its element comes from when sorted stably.
fn permutation(columns: &[Vec<u64>], [outer, n, inner]: [usize; 3]) -> Result<Vec<usize>> {
    let mut from = collected(outer * n * inner, 0..outer * n * inner)?;
    let mut lane: Vec<(u64, usize)> = memory(n)?;
    let (first, others) = match columns.split_first() {
        Some((first, others)) => (first.as_slice(), others),
        None => return Ok(from),
    };
    let ties = |&(a, i): &(u64, usize), &(b, j): &(u64, usize)| {
        let later = others.iter().map(|c| c[i].cmp(&c[j])).find(|o| o.is_ne()).unwrap_or(Ordering::Equal);
        a.cmp(&b).then(later).then(i.cmp(&j))
    };
    for block in (0..outer).map(|o| o * n * inner) {
        for start in block..block + inner {
            let places = || (start..).step_by(inner).take(n);
            lane.clear();
            lane.extend(places().map(|p| (first[p], p)));
            // The place decides between equals, so an unstable sort gives the stable order.
            if others.is_empty() {
                lane.sort_unstable()
            } else {
                lane.sort_unstable_by(ties)
            }
            places().zip(&lane).for_each(|(to, &(_, p))| from[to] = p);
        }
    }
    Ok(from)
}

/// The dtype for places along an axis: `i32`, unless the axis may be too long for it.
pub(super) fn index_dtype(n: &Dim) -> DType {
    if n.as_usize().is_some_and(|n| i32::try_from(n).is_ok()) { DType::I32 } else { DType::I64 }
}

/// Elements of `x` at `places` along an axis; the two agree in all other axes.
pub(super) fn take_along(x: &Array, places: &Array, axis: usize) -> Array {
    let rank = x.rank();
    let others: Vec<usize> = (0..rank).filter(|a| *a != axis).collect();
    let vectors = places.shape().inserted(rank, Dim::from(1usize));
    let vectors = bind(Op::new(Broadcast { shape: vectors, axes: (0..rank).collect() }), &[places.clone()]);
    let gather = Gather {
        offset_dims: Vec::new(),
        collapsed_dims: vec![axis],
        operand_batch_dims: others.clone(),
        index_batch_dims: others,
        index_map: vec![axis],
        sizes: vec![1usize; rank].into_iter().collect(),
        // Out of an axis that may be empty nothing is taken; only filling has a meaning there.
        bounds: if x.dim(axis as isize).at_least(&Dim::from(1usize)) == Decision::Yes {
            Bounds::Clip
        } else {
            Bounds::Fill
        },
    };
    bind(Op::new(gather), &[x.clone(), vectors])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn sort(axis: usize, keys: usize, descending: bool, inputs: &[Array]) -> Outputs {
        bind_all(Op::new(Sort { axis, keys, descending }), inputs)
    }

    #[test]
    fn sorts_along_any_axis_in_both_directions() {
        let x = array(&[2, 3], vec![3.0, 1.0, 2.0, -1.0, 5.0, 0.0]);
        let sorted = |axis, descending| sort(axis, 1, descending, &[x.clone()])[0].to_vec::<f64>().unwrap();
        assert_eq!(sorted(1, false), [1.0, 2.0, 3.0, -1.0, 0.0, 5.0]);
        assert_eq!(sorted(1, true), [3.0, 2.0, 1.0, 5.0, 0.0, -1.0]);
        assert_eq!(sorted(0, false), [-1.0, 1.0, 0.0, 3.0, 5.0, 2.0]);
    }

    #[test]
    fn equals_keep_their_order_and_later_keys_decide() {
        let key = array(&[6], vec![2i32, 1, 2, 1, 0, 2]);
        let place = array(&[6], vec![0i32, 1, 2, 3, 4, 5]);
        for (descending, want) in [(false, [4, 1, 3, 0, 2, 5]), (true, [0, 2, 5, 1, 3, 4])] {
            let sorted = sort(0, 1, descending, &[key.clone(), place.clone()]);
            assert_eq!(sorted[1].to_vec::<i32>().unwrap(), want);
        }
        let second = array(&[6], vec![1.0, 9.0, 0.0, 8.0, 7.0, -1.0]);
        let sorted = sort(0, 2, false, &[key, second, place]);
        assert_eq!(sorted[2].to_vec::<i32>().unwrap(), [4, 3, 1, 5, 2, 0]);
    }

    #[test]
    fn nan_comes_last_and_zeros_are_equal() {
        let x = array(&[6], vec![0.0, -f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY, -1.0]);
        let place = array(&[6], vec![0i32, 1, 2, 3, 4, 5]);
        let places = |descending| sort(0, 1, descending, &[x.clone(), place.clone()])[1].to_vec::<i32>().unwrap();
        assert_eq!(places(false), [4, 5, 0, 2, 3, 1]);
        assert_eq!(places(true), [1, 3, 0, 2, 5, 4]);
    }

    #[test]
    fn keys_keep_the_order_of_every_dtype() {
        assert!(i8::MIN.key() < (-1i8).key() && (-1i8).key() < 0i8.key() && 0i8.key() < i8::MAX.key());
        assert!(i64::MIN.key() < i64::MAX.key() && 0u64.key() < u64::MAX.key());
        let floats = [f64::NEG_INFINITY, -2.0, -1e-320, 0.0, 1e-320, 3.0, f64::INFINITY, f64::NAN];
        assert!(floats.is_sorted_by(|a, b| a.key() < b.key()));
        assert!(f32::MIN.key() < (-1f32).key() && f16::NEG_ONE.key() < f16::ZERO.key());
        let z = array(&[3], vec![Complex::new(1.0, 2.0), Complex::new(1.0, -2.0), Complex::new(0.0, 9.0)]);
        let sorted = sort(0, 1, false, &[z, array(&[3], vec![0i32, 1, 2])]);
        assert_eq!(sorted[1].to_vec::<i32>().unwrap(), [2, 1, 0]);
    }

    #[test]
    fn the_largest_come_with_their_places() {
        let top = |k, x: Array| {
            let both = bind_all(Op::new(TopK { k }), &[x]);
            (both[0].to_vec::<f64>().unwrap(), both[1].to_vec::<i32>().unwrap())
        };
        let rows = array(&[2, 4], vec![1.0, 4.0, 4.0, 0.0, -1.0, -2.0, -3.0, -0.5]);
        assert_eq!(top(2, rows.clone()), (vec![4.0, 4.0, -0.5, -1.0], vec![1, 2, 3, 0]));
        assert_eq!(top(0, rows), (vec![], vec![]));
        let (values, places) = top(2, array(&[3], vec![f64::INFINITY, f64::NAN, 1.0]));
        assert!(values[0].is_nan() && values[1] == f64::INFINITY && places == [1, 0]);
    }

    #[test]
    fn the_largest_are_the_first_of_a_sort_whatever_the_row() {
        // Rows at both sides of each way of finding them, of numbers that repeat, rise, fall, are all one, or are NaN in places.
        fn check<T: SortKey + PartialOrd>(name: &str, n: usize, make: impl Fn(usize) -> T) {
            let values: Vec<T> = (0..2 * n).map(make).collect();
            for k in [1, 2, 3, 10, 32, 33, n].into_iter().filter(|k| *k <= n) {
                let mut want = Vec::new();
                for start in [0, n] {
                    let mut places: Vec<usize> = (start..start + n).collect();
                    places.sort_by_key(|p| !values[*p].key());
                    want.extend_from_slice(&places[..k]);
                }
                assert_eq!(largest(&values, n, k).unwrap(), want, "{name}: {k} of {n}");
            }
        }
        let mixed = |i: usize| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
        for n in [1, 2, 7, 8, 9, 23, 24, 25, 79, 80, 81, 100, 255, 256, 257, 800, 2560, 2561] {
            check("mixed", n, |i| mixed(i) as f64 / 1e15 - 4.0);
            check("few", n, |i| (mixed(i) % 5) as f64);
            check("rising", n, |i| i as f64);
            check("falling", n, |i| -(i as f32));
            check("one", n, |_| -1.0);
            check("zeros", n, |i| if mixed(i) % 2 == 0 { 0.0 } else { -0.0 });
            check("infinite", n, |i| [f64::INFINITY, f64::NEG_INFINITY, 1.0][mixed(i) as usize % 3]);
            check("least", n, |_| f64::NEG_INFINITY);
            for every in [1, 2, 9, 40, 300] {
                check("nan", n, |i| if mixed(i) % every == 0 { f64::NAN } else { mixed(i) as f64 });
                check(
                    "nan first",
                    n,
                    |i| if (i as u64).is_multiple_of(every) { -f32::NAN } else { -(mixed(i) as f32) },
                );
            }
            check("i64", n, |i| mixed(i) as i64 - (1 << 52));
            check("i8", n, |i| mixed(i) as i8);
            check("u64", n, |i| mixed(i) % 3);
            check("bool", n, |i| mixed(i) % 7 == 0);
            check("f16", n, |i| f16::from_f64((mixed(i) % 100) as f64 - 50.0));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kind = |op: Op, specs: &[&str]| {
            let specs: Vec<Array> = specs.iter().map(|s| Array::spec(s)).collect();
            bind_all(op, &specs)[0].clone().ok().unwrap_err().kind()
        };
        let sort = |axis, keys| Op::new(Sort { axis, keys, descending: false });
        assert_eq!(kind(sort(1, 1), &["f64[3]"]), ErrorKind::Axis);
        assert_eq!(kind(sort(0, 1), &["f64[]"]), ErrorKind::Axis);
        assert_eq!(kind(sort(0, 2), &["f64[3]"]), ErrorKind::Value);
        assert_eq!(kind(sort(0, 0), &["f64[3]"]), ErrorKind::Value);
        assert_eq!(kind(sort(0, 1), &["f64[3]", "i32[4]"]), ErrorKind::Shape);
        assert_eq!(kind(sort(0, 1), &[]), ErrorKind::Verify);
        assert_eq!(kind(Op::new(TopK { k: 4 }), &["f64[3]"]), ErrorKind::Shape);
        assert_eq!(kind(Op::new(TopK { k: 0 }), &["f64[]"]), ErrorKind::Axis);
        assert_eq!(kind(Op::new(TopK { k: 1 }), &["c64[3]"]), ErrorKind::DType);
        let symbolic = bind_all(Op::new(TopK { k: 2 }), &[Array::spec("f32[B,N]")]);
        assert_eq!(symbolic[1].ty().unwrap().to_string(), "i32[B,2]");
    }
}
