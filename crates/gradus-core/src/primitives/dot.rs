//! The general dot product: products summed over some axes, over all pairs of the free ones, for each place of the
//! shared ones. Matrix products, contractions and outer products are all this one operation.
//!
//! It is linear in each operand. `x_dot` is a tangent, `x_bar` a cotangent.

use std::borrow::Cow;

use super::elementwise::kernel::{map, one_output, operand};
use super::elementwise::number::Number;
use super::reduce::{array, check_axis, complex_wave, dispatch_wide, elements, permuted, wave};
use super::rules::one;
use super::shaping::strided::buffer;
use super::shaping::{Permute, fit};
use super::{
    Batch, Batched, Derivative, Halves, Infer, Jvp, Linear, Op, Outputs, Primitive, Sample, Transpose, Transposed,
    Types,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, counted, error, fail};
use crate::rules_of;
use crate::trace::bind;
use crate::types::{DType, Effects, Shape, Type, bf16, f16};

/// Result axes: the batch axes, the free axes of the left operand, the free axes of the right one. Half floats are
/// added in `f32`; integers wrap.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DotGeneral {
    /// Axes of the left operand that are summed over, each with its partner in `rhs_contract`.
    pub lhs_contract: Vec<usize>,
    /// Axes of the right operand that are summed over.
    pub rhs_contract: Vec<usize>,
    /// Axes of the left operand that both share, each with its partner in `rhs_batch`.
    pub lhs_batch: Vec<usize>,
    /// Axes of the right operand that both share.
    pub rhs_batch: Vec<usize>,
}

/// The axes of an operand that are in neither list.
fn free_axes(rank: usize, contract: &[usize], batch: &[usize]) -> Vec<usize> {
    (0..rank).filter(|a| !contract.contains(a) && !batch.contains(a)).collect()
}

impl DotGeneral {
    fn lhs_free(&self, rank: usize) -> Vec<usize> {
        free_axes(rank, &self.lhs_contract, &self.lhs_batch)
    }

    fn rhs_free(&self, rank: usize) -> Vec<usize> {
        free_axes(rank, &self.rhs_contract, &self.rhs_batch)
    }

    fn bind(self, lhs: &Array, rhs: &Array) -> Array {
        bind(Op::new(self), &[lhs.clone(), rhs.clone()])
    }

    /// With the operands in exchanged places. The free axes of the result are exchanged too.
    fn flipped(&self) -> DotGeneral {
        DotGeneral {
            lhs_contract: self.rhs_contract.clone(),
            rhs_contract: self.lhs_contract.clone(),
            lhs_batch: self.rhs_batch.clone(),
            rhs_batch: self.lhs_batch.clone(),
        }
    }

    fn result_type(&self, lhs: &Type, rhs: &Type) -> Type {
        let (l, r) = (lhs.shape(), rhs.shape());
        let left = self.lhs_batch.iter().copied().chain(self.lhs_free(l.rank())).filter_map(|a| l.get(a).cloned());
        let right = self.rhs_free(r.rank()).into_iter().filter_map(|a| r.get(a).cloned());
        lhs.with_shape(left.chain(right).collect::<Shape>())
    }

    /// The cotangent of the left operand: the cotangent of the result, contracted with the right operand over the axes
    /// that came from it. Its axes come out as batch, free, contracted and go back to their places.
    ///
    /// `free` says where in `y_bar` the free axes of the right operand begin.
    fn lhs_bar(&self, x: &Type, y_bar: &Array, rhs: &Array, free: usize) -> Array {
        let right = self.rhs_free(rhs.rank());
        let back = DotGeneral {
            lhs_contract: (free..free + right.len()).collect(),
            rhs_contract: right,
            lhs_batch: (0..self.lhs_batch.len()).collect(),
            rhs_batch: self.rhs_batch.clone(),
        };
        // What is left of the right operand are its contracted axes, in its own order.
        let mut pairs: Vec<(usize, usize)> =
            self.rhs_contract.iter().copied().zip(self.lhs_contract.iter().copied()).collect();
        pairs.sort_unstable();
        let mut axes = vec![0; x.rank()];
        let come = self.lhs_batch.iter().copied().chain(self.lhs_free(x.rank())).chain(pairs.iter().map(|p| p.1));
        for (at, axis) in come.enumerate() {
            if let Some(place) = axes.get_mut(axis) {
                *place = at;
            }
        }
        let x_bar = back.bind(y_bar, rhs);
        let x_bar = if axes.is_sorted() { x_bar } else { bind(Op::new(Permute { axes }), &[x_bar]) };
        fit(x_bar, x.shape())
    }
}

impl Primitive for DotGeneral {
    rules_of!("dot_general"; lhs_contract, rhs_contract, lhs_batch, rhs_batch);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(2)?;
        let (lhs, rhs) = (&infer.inputs[0], &infer.inputs[1]); // invariant: the arity was checked
        if lhs.dtype() != rhs.dtype() {
            fail!(DType, "operands of different dtypes: {lhs} and {rhs}");
        }
        infer.dtype(0, "numbers", |d| d.is_number()).map_err(|e| e.help("cast first, as in `x.cast(DType::I32)`"))?;
        for (ty, contract, batch) in
            [(lhs, &self.lhs_contract, &self.lhs_batch), (rhs, &self.rhs_contract, &self.rhs_batch)]
        {
            let mut seen = vec![false; ty.rank()];
            for &axis in contract.iter().chain(batch) {
                check_axis(axis, ty)?;
                if std::mem::replace(&mut seen[axis], true) {
                    fail!(Axis, "axis {axis} of {ty} is named twice");
                }
            }
        }
        for (what, left, right) in
            [("summed over", &self.lhs_contract, &self.rhs_contract), ("shared", &self.lhs_batch, &self.rhs_batch)]
        {
            if left.len() != right.len() {
                fail!(
                    Axis,
                    "{what} are {} of the left operand, but {} of the right one",
                    counted(left.len(), "axis"),
                    right.len()
                );
            }
            for (&l, &r) in left.iter().zip(right) {
                if !infer.equal(&lhs.shape()[l], &rhs.shape()[r]) {
                    return Err(error!(Shape, "axis {l} of {lhs} and axis {r} of {rhs} are {what} but differ in size")
                        .help("transpose or reshape an operand so that these axes agree"));
                }
            }
        }
        one(self.result_type(lhs, rhs))
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (lhs, rhs) = (operand(inputs, 0)?, operand(inputs, 1)?);
        one_output(match lhs.ty().dtype() {
            DType::F16 => {
                let wide = self.numbers::<f32>(&map(lhs, f16::to_f32)?, &map(rhs, f16::to_f32)?)?;
                map(&wide, f16::from_f32)?
            }
            DType::BF16 => {
                let wide = self.numbers::<f32>(&map(lhs, bf16::to_f32)?, &map(rhs, bf16::to_f32)?)?;
                map(&wide, bf16::from_f32)?
            }
            d => {
                dispatch_wide!(number d, T => self.numbers::<T>(lhs, rhs)?)
            }
        })
    }

    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([lhs, rhs], [l_dot, r_dot]) = (jvp.primals, jvp.tangents) else { fail!(Rule, "wants two operands") };
        let left = l_dot.as_ref().map(|l_dot| self.clone().bind(l_dot, rhs));
        let right = r_dot.as_ref().map(|r_dot| self.clone().bind(lhs, r_dot));
        match (left, right) {
            (Some(a), Some(b)) => Derivative::one(a + b),
            (Some(a), None) | (None, Some(a)) => Derivative::one(a),
            (None, None) => Ok(Derivative::Zero),
        }
    }

    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let [Some(y_bar)] = transpose.cotangents else {
            return Ok(Transposed::Cotangents(smallvec::smallvec![None, None]));
        };
        let shared = self.lhs_batch.len();
        match transpose.operands {
            [Linear::Unknown(lhs), Linear::Known(rhs)] => {
                let free = shared + self.lhs_free(lhs.rank()).len();
                Ok(Transposed::Cotangents(smallvec::smallvec![Some(self.lhs_bar(lhs, y_bar, rhs, free)), None]))
            }
            [Linear::Known(lhs), Linear::Unknown(rhs)] => {
                let bar = self.flipped().lhs_bar(rhs, y_bar, lhs, shared);
                Ok(Transposed::Cotangents(smallvec::smallvec![None, Some(bar)]))
            }
            _ => Ok(Transposed::NotLinear),
        }
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let ([lhs, rhs], &[left, right]) = (batch.inputs, batch.batched) else { fail!(Rule, "wants two operands") };
        let moved = |axes: &[usize], batched: bool| axes.iter().map(|a| a + usize::from(batched)).collect();
        let mut op = DotGeneral {
            lhs_contract: moved(&self.lhs_contract, left),
            rhs_contract: moved(&self.rhs_contract, right),
            lhs_batch: moved(&self.lhs_batch, left),
            rhs_batch: moved(&self.rhs_batch, right),
        };
        if left && right {
            op.lhs_batch.insert(0, 0);
            op.rhs_batch.insert(0, 0);
            return Batched::one(op.bind(lhs, rhs));
        }
        // The batch axis of one operand is the first of its free axes: one larger product, no repetition.
        let shared = self.lhs_batch.len();
        let at = if left { shared } else { shared + self.lhs_free(lhs.rank()).len() };
        let y = op.bind(lhs, rhs);
        if at == 0 {
            return Batched::one(y);
        }
        let axes = std::iter::once(at).chain((0..y.rank()).filter(|a| *a != at)).collect();
        Batched::one(bind(Op::new(Permute { axes }), &[y]))
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
        let make = |contract: [&[usize]; 2], batch: [&[usize]; 2], lhs: Array, rhs: Array| {
            let [lhs_contract, rhs_contract] = contract.map(<[usize]>::to_vec);
            let [lhs_batch, rhs_batch] = batch.map(<[usize]>::to_vec);
            Sample::new(Op::new(DotGeneral { lhs_contract, rhs_contract, lhs_batch, rhs_batch }), vec![lhs, rhs])
        };
        let none: [&[usize]; 2] = [&[], &[]];
        let matrices = |d: DType| make([&[1], &[0]], none, wave(&[2, 3], 1).cast(d), wave(&[3, 4], 2).cast(d));
        let ints = |v: Array| v.abs().cast(DType::U8);
        vec![
            matrices(DType::F64),
            matrices(DType::F32).rough(),
            matrices(DType::F16).rough(),
            matrices(DType::BF16).rough(),
            matrices(DType::I32),
            make([&[0], &[0]], none, wave(&[4], 3), wave(&[4], 4)),
            make([&[0], &[1]], none, wave(&[3, 2], 5), wave(&[4, 3], 6)),
            make([&[2], &[1]], [&[0], &[0]], wave(&[2, 3, 4], 7), wave(&[2, 4, 2], 8)),
            make([&[0], &[2]], [&[2], &[0]], wave(&[3, 2, 2], 9), wave(&[2, 4, 3], 10)),
            make([&[2, 0], &[0, 1]], none, wave(&[2, 3, 4], 11), wave(&[4, 2, 5], 12)),
            make([&[], &[]], none, wave(&[2], 13), wave(&[3], 14)),
            make([&[], &[]], none, wave(&[], 15), wave(&[2, 2], 16)),
            make([&[], &[]], [&[0, 1], &[1, 0]], wave(&[2, 3], 17), wave(&[3, 2], 18)),
            make([&[1], &[0]], none, array::<f64>(&[2, 0], vec![]), array::<f64>(&[0, 3], vec![])),
            make([&[1], &[0]], none, array::<f64>(&[0, 2], vec![]), wave(&[2, 3], 19)),
            make([&[1], &[0]], none, complex_wave(&[2, 2], 20), complex_wave(&[2, 3], 21)),
            make([&[0], &[1]], none, ints(wave(&[5, 3], 22)), ints(wave(&[6, 5], 23))),
            make([&[0], &[0]], none, array(&[2], vec![i64::MAX, 3]), array(&[2], vec![2i64, 5])),
            make([&[1], &[0]], none, wave(&[9, 7], 24), wave(&[7, 11], 25)),
        ]
    }
}

impl DotGeneral {
    /// Brings the operands to `[batch, m, k]` and `[batch, k, n]` and multiplies matrices.
    fn numbers<T: Number>(&self, lhs: &Concrete, rhs: &Concrete) -> Result<Concrete> {
        let ty = self.result_type(lhs.ty(), rhs.ty());
        let mut out = buffer(&ty, T::default())?;
        if out.is_empty() || lhs.dims().contains(&0) {
            return Ok(Concrete::dense(ty, out));
        }
        let (left, right) = (self.lhs_free(lhs.dims().len()), self.rhs_free(rhs.dims().len()));
        let size = |x: &Concrete, axes: &[usize]| axes.iter().map(|&a| x.dims()[a]).product::<usize>();
        let (m, n, k) = (size(lhs, &left), size(rhs, &right), size(lhs, &self.lhs_contract));
        let grouped = |x: &Concrete, groups: [&[usize]; 3]| permuted(x, &groups.concat());
        let lhs = grouped(lhs, [&self.lhs_batch, &left, &self.lhs_contract]);
        let by_rows = grouped(rhs, [&self.rhs_batch, &right, &self.rhs_contract]);
        let a: Cow<'_, [T]> = elements(&lhs)?;
        // Few rows or columns on one side: sums along rows of both, which need no sweep over the result.
        let narrow = n < 4 || (m < 4 && by_rows.is_dense());
        let by_columns = grouped(rhs, [&self.rhs_batch, &self.rhs_contract, &right]);
        let b: Cow<'_, [T]> = elements(if narrow { &by_rows } else { &by_columns })?;
        for ((a, b), c) in a.chunks_exact(m * k).zip(b.chunks_exact(k * n)).zip(out.chunks_exact_mut(m * n)) {
            if narrow { rows_by_rows(a, b, c, k, n) } else { rows_by_columns(a, b, c, k, n) }
        }
        Ok(Concrete::dense(ty, out))
    }
}

/// `c[i,j] = Σ a[i,:] b[j,:]`, each sum in eight lanes that become vector instructions.
fn rows_by_rows<T: Number>(a: &[T], b: &[T], c: &mut [T], k: usize, n: usize) {
    const LANES: usize = 8;
    for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
        for (b, c) in b.chunks_exact(k).zip(c) {
            let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
            let mut lanes = [T::default(); LANES];
            for (a, b) in a.iter().zip(b) {
                for (lane, (&a, &b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                    *lane = lane.plus(a.times(b));
                }
            }
            let total = lanes.into_iter().reduce(Number::plus).unwrap_or_default();
            *c = a_rest.iter().zip(b_rest).fold(total, |sum, (&a, &b)| sum.plus(a.times(b)));
        }
    }
}

/// `c[i,:] += Σ a[i,k] b[k,:]`: whole rows of `b` are added to rows of `c`, four at a time so that `c` is read and
/// written less often. Blocks of `b` are copied together, so that they stay in the cache while all rows of `a` pass.
fn rows_by_columns<T: Number>(a: &[T], b: &[T], c: &mut [T], k: usize, n: usize) {
    const ROWS: usize = 128;
    const COLUMNS: usize = 512;
    let mut panel: Vec<T> = Vec::with_capacity(k.min(ROWS) * n.min(COLUMNS));
    for from in (0..n).step_by(COLUMNS) {
        let to = n.min(from + COLUMNS);
        let width = to - from;
        for (block, b) in b.chunks(ROWS * n).enumerate() {
            panel.clear();
            b.chunks_exact(n).for_each(|row| panel.extend_from_slice(&row[from..to]));
            let depth = block * ROWS..block * ROWS + b.len() / n;
            for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
                let c = &mut c[from..to];
                let (fours, rest) = a[depth.clone()].as_chunks::<4>();
                let (quads, last) = panel.split_at(4 * fours.len() * width);
                for (&[a0, a1, a2, a3], rows) in fours.iter().zip(quads.chunks_exact(4 * width)) {
                    let (low, high) = rows.split_at(2 * width);
                    let ((b0, b1), (b2, b3)) = (low.split_at(width), high.split_at(width));
                    for (c, ((&b0, &b1), (&b2, &b3))) in c.iter_mut().zip(b0.iter().zip(b1).zip(b2.iter().zip(b3))) {
                        *c = c.plus(a0.times(b0)).plus(a1.times(b1)).plus(a2.times(b2)).plus(a3.times(b3));
                    }
                }
                for (&a, b) in rest.iter().zip(last.chunks_exact(width)) {
                    c.iter_mut().zip(b).for_each(|(c, &b)| *c = c.plus(a.times(b)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn dot(contract: [&[usize]; 2], batch: [&[usize]; 2]) -> DotGeneral {
        let [lhs_contract, rhs_contract] = contract.map(<[usize]>::to_vec);
        let [lhs_batch, rhs_batch] = batch.map(<[usize]>::to_vec);
        DotGeneral { lhs_contract, rhs_contract, lhs_batch, rhs_batch }
    }

    const NONE: [&[usize]; 2] = [&[], &[]];

    fn whole(dims: &[usize], seed: usize) -> (Array, Vec<f64>) {
        let values: Vec<f64> = (0..dims.iter().product()).map(|i| ((i * 31 + seed) % 17) as f64 - 8.0).collect();
        (array(dims, values.clone()), values)
    }

    #[test]
    fn matrices_of_every_size_multiply_exactly() {
        // Small, narrow, and larger than one block each way; whole numbers, so every order of summing is exact.
        for [m, k, n] in
            [[1, 1, 1], [2, 3, 4], [3, 5, 2], [1, 9, 33], [17, 131, 5], [4, 260, 530], [2, 6, 1], [5, 0, 6]]
        {
            let ((a, av), (b, bv)) = (whole(&[m, k], 1), whole(&[k, n], 5));
            let mut want = vec![0.0; m * n];
            for i in 0..m {
                for j in 0..n {
                    want[i * n + j] = (0..k).map(|t| av[i * k + t] * bv[t * n + j]).sum();
                }
            }
            let c = dot([&[1], &[0]], NONE).bind(&a, &b);
            assert_eq!(c.to_vec::<f64>().unwrap(), want, "{m} {k} {n}");
            // The same through transposed operands.
            let turned = |x: &Array| bind(Op::new(Permute { axes: vec![1, 0] }), &[x.clone()]);
            let c = dot([&[0], &[1]], NONE).bind(&turned(&a), &turned(&b));
            assert_eq!(c.to_vec::<f64>().unwrap(), want, "{m} {k} {n} transposed");
        }
    }

    #[test]
    fn axes_of_the_result_are_batch_then_left_then_right() {
        let (a, av) = whole(&[3, 2, 4], 2);
        let (b, bv) = whole(&[5, 4, 2], 3);
        // Sum over the 4s, share the 2s.
        let c = dot([&[2], &[1]], [&[1], &[2]]).bind(&a, &b);
        assert_eq!(c.ty().unwrap().to_string(), "f64[2,3,5]");
        let c: Vec<f64> = c.to_vec().unwrap();
        for s in 0..2 {
            for i in 0..3 {
                for j in 0..5 {
                    let want: f64 = (0..4).map(|t| av[i * 8 + s * 4 + t] * bv[j * 8 + t * 2 + s]).sum();
                    assert_eq!(c[s * 15 + i * 5 + j], want);
                }
            }
        }
    }

    #[test]
    fn integers_wrap_and_half_floats_add_in_f32() {
        let wrapped = dot([&[0], &[0]], NONE).bind(&array(&[2], vec![100i8, 1]), &array(&[2], vec![3i8, 1]));
        assert_eq!(wrapped.item::<i8>().unwrap(), 301i64 as i8);
        let ones = array(&[4096], vec![f16::ONE; 4096]);
        assert_eq!(dot([&[0], &[0]], NONE).bind(&ones, &ones).item::<f16>().unwrap().to_f32(), 4096.0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kind =
            |op: DotGeneral, l: &str, r: &str| op.bind(&Array::spec(l), &Array::spec(r)).ok().unwrap_err().kind();
        assert_eq!(kind(dot([&[1], &[0]], NONE), "f64[2,3]", "f64[4,2]"), ErrorKind::Shape);
        assert_eq!(kind(dot([&[2], &[0]], NONE), "f64[2,3]", "f64[4,2]"), ErrorKind::Axis);
        assert_eq!(kind(dot([&[1], &[]], NONE), "f64[2,3]", "f64[3,2]"), ErrorKind::Axis);
        assert_eq!(kind(dot([&[1, 1], &[0, 1]], NONE), "f64[3,3]", "f64[3,3]"), ErrorKind::Axis);
        assert_eq!(kind(dot([&[1], &[0]], [&[1], &[1]]), "f64[3,3]", "f64[3,3]"), ErrorKind::Axis);
        assert_eq!(kind(dot([&[1], &[0]], NONE), "f64[2,3]", "f32[3,2]"), ErrorKind::DType);
        assert_eq!(kind(dot([&[1], &[0]], NONE), "bool[2,3]", "bool[3,2]"), ErrorKind::DType);
        let long = Array::from(Concrete::splat(Type::new(DType::F64, &[1 << 40][..]), crate::types::Scalar::F64(1.0)));
        assert_eq!(dot([&[], &[]], NONE).bind(&long, &long).ok().unwrap_err().kind(), ErrorKind::Size);
    }

    #[test]
    fn symbolic_dimensions_pass_through_or_become_conditions() {
        let ty = |l: &str, r: &str| {
            let mut conditions = Vec::new();
            let inputs = [l.parse().unwrap(), r.parse().unwrap()];
            let op = Op::new(dot([&[1], &[0]], NONE));
            let types = crate::program::infer(&op, &inputs, &mut conditions).unwrap();
            (types[0].to_string(), conditions.len())
        };
        assert_eq!(ty("f32[B,K]", "f32[K,2*B]"), ("f32[B,2*B]".into(), 0));
        assert_eq!(ty("f32[B,3]", "f32[K,2]"), ("f32[B,2]".into(), 1));
    }
}
