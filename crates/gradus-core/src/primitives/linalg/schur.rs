//! Schur's form of square matrices, in complex numbers.
//!
//! The library keeps its own to itself, so this is the textbook's: Hessenberg's form by reflections, then QR steps with Wilkinson's shift, each a chase of
//! rotations down the diagonal. Numbers of 32 bits are computed in 64.

use super::{
    behind, complex_matrices, complex_of, dispatch_field, each_mut, excess, in_front, matrices, rescale, sizes, square,
    zeroed,
};
use crate::array::{Array, Concrete, collected};
use crate::error::Result;
use crate::primitives::elementwise::kernel::operand;
use crate::primitives::reduce::{array, elements};
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::types::{Complex, DType, Effects, Element, Wide};

type C = Complex<f64>;

/// `A = Q·T·Qᴴ` with a unitary Q and an upper triangular T, both complex: T and Q. The eigenvalues are on T's diagonal, in no order. NaN if a number is not
/// finite.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schur;

impl Primitive for Schur {
    rules_of!("schur");

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let (ty, front, n) = square(infer, 0)?;
        let ty = ty.with_dtype(complex_of(ty.dtype())).with_shape(behind(&front, &[&n, &n]));
        Ok(smallvec::smallvec![ty.clone(), ty])
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        let [_, n, _] = sizes(a);
        let mut t: Vec<C> = dispatch_field!(a.ty().dtype(), T => {
            let values = elements::<T>(a)?;
            collected(values.len(), values.iter().map(|v| wide(v.to_wide())))?
        });
        let mut q = zeroed::<C>(t.len())?;
        for (t, q) in each_mut(&mut t, n * n).zip(each_mut(&mut q, n * n)) {
            q.iter_mut().step_by(n + 1).for_each(|v| *v = C::new(1.0, 0.0));
            let fine = t.iter().all(|v| v.re.is_finite() && v.im.is_finite());
            let power = excess(&*t);
            rescale(t, -power);
            if fine {
                to_hessenberg(t, q, n);
            }
            if !fine || !to_triangle(t, q, n) {
                t.fill(C::new(f64::NAN, f64::NAN));
                q.fill(C::new(f64::NAN, f64::NAN));
            }
            rescale(t, power);
        }
        let ty = a.ty().with_dtype(complex_of(a.ty().dtype()));
        let narrow = |v: &C| Complex::new(v.re as f32, v.im as f32);
        Ok([t, q]
            .into_iter()
            .map(|x| match ty.dtype() {
                DType::C64 => Concrete::dense(ty.clone(), x.iter().map(narrow).collect::<Vec<_>>()).into(),
                _ => Concrete::dense(ty.clone(), x).into(),
            })
            .collect())
    }

    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Missing(
            "Schur's form is not unique; differentiate `linalg::eig`, or a function of the matrix such as `linalg::sqrtm`",
        ))
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        in_front(batch, Op::fixed(&Schur))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |a: Array| Sample::new(Op::fixed(&Schur), vec![a]);
        vec![
            make(matrices(&[1, 1], 1)),
            make(matrices(&[3, 3], 2)),
            make(array(&[2, 2], vec![1.0, -2.0, 1.5, 0.5])),
            make(matrices(&[2, 3, 3], 3)),
            make(matrices(&[20, 20], 4)).rough(),
            // Nothing but ones beside the diagonal: the shift has to break the symmetry.
            make(array(&[3, 3], vec![0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])).rough(),
            make(matrices(&[3, 3], 5).cast(DType::F32)).rough(),
            make(complex_matrices(&[3, 3], 6)),
            make(complex_matrices(&[2, 2], 7).cast(DType::C64)).rough(),
            make(array(&[2, 2], vec![f64::NAN, 1.0, 1.0, 1.0])).rough(),
            make(matrices(&[0, 0], 1)),
        ]
    }
}

fn wide(w: Wide) -> C {
    match w {
        Wide::Real(x) => C::new(x, 0.0),
        Wide::Complex(re, im) => C::new(re, im),
        Wide::Int(_) | Wide::UInt(_) => C::new(f64::NAN, 0.0),
    }
}

/// Brings a matrix in rows to the form with one line of elements below its diagonal, and the basis with it.
fn to_hessenberg(t: &mut [C], q: &mut [C], n: usize) {
    for k in 0..n.saturating_sub(2) {
        let mut v: Vec<C> = (k + 1..n).map(|i| t[i * n + k]).collect();
        let size = |v: &[C]| v.iter().map(Complex::norm_sqr).sum::<f64>().sqrt();
        let length = size(&v);
        if length == 0.0 {
            continue;
        }
        let phase = if v[0].norm() == 0.0 { C::new(1.0, 0.0) } else { v[0] / v[0].norm() };
        v[0] += phase * length;
        let length = size(&v);
        v.iter_mut().for_each(|x| *x /= length);
        for j in 0..n {
            let dot: C = v.iter().enumerate().map(|(i, x)| x.conj() * t[(k + 1 + i) * n + j]).sum();
            v.iter().enumerate().for_each(|(i, x)| t[(k + 1 + i) * n + j] -= *x * dot * 2.0);
        }
        for m in [&mut *t, &mut *q] {
            for row in each_mut(m, n) {
                let dot: C = v.iter().zip(&row[k + 1..]).map(|(x, y)| *x * *y).sum();
                v.iter().zip(&mut row[k + 1..]).for_each(|(x, y)| *y -= x.conj() * dot * 2.0);
            }
        }
        (k + 2..n).for_each(|i| t[i * n + k] = C::new(0.0, 0.0));
    }
}

/// From Hessenberg's form to a triangle; whether it was reached.
fn to_triangle(t: &mut [C], q: &mut [C], n: usize) -> bool {
    let Some(mut end) = n.checked_sub(1) else { return true };
    let mut steps = 0;
    while end > 0 {
        let is_small = |t: &[C], i: usize| {
            let beside = t[i * n + i].norm() + t[(i - 1) * n + i - 1].norm();
            t[i * n + i - 1].norm() <= f64::EPSILON * beside.max(f64::MIN_POSITIVE)
        };
        let start = (1..=end).rev().find(|&i| is_small(t, i)).unwrap_or(0);
        if start > 0 {
            t[start * n + start - 1] = C::new(0.0, 0.0);
        }
        if start == end {
            (end, steps) = (end - 1, 0);
            continue;
        }
        steps += 1;
        if steps > 60 {
            return false;
        }
        sweep(t, q, n, start..end + 1, shift(t, n, end, steps));
    }
    true
}

/// The eigenvalue of the last two rows that is nearer to the last element; now and then another number, in case it goes in circles.
fn shift(t: &[C], n: usize, end: usize, steps: usize) -> C {
    let (a, b) = (t[(end - 1) * n + end - 1], t[(end - 1) * n + end]);
    let (c, d) = (t[end * n + end - 1], t[end * n + end]);
    if steps.is_multiple_of(10) {
        return d + C::new(c.norm(), 0.0);
    }
    let half = (a - d) * 0.5;
    let root = (half * half + b * c).sqrt();
    let (near, far) = (half + root, half - root);
    d + if near.norm() < far.norm() { near } else { far }
}

/// One QR step with a shift on a block: rotations from its beginning to its end.
fn sweep(t: &mut [C], q: &mut [C], n: usize, block: std::ops::Range<usize>, shift: C) {
    for k in block.start..block.end - 1 {
        let column = if k == block.start { k } else { k - 1 };
        let (x, y) =
            (t[k * n + column] - if k == block.start { shift } else { C::new(0.0, 0.0) }, t[(k + 1) * n + column]);
        let size = (x.norm_sqr() + y.norm_sqr()).sqrt();
        if size == 0.0 {
            continue;
        }
        let (c, s) = (x / size, y / size);
        // Rows by the rotation that takes (x, y) to (size, 0), columns by its adjoint.
        for j in column..n {
            let (u, v) = (t[k * n + j], t[(k + 1) * n + j]);
            (t[k * n + j], t[(k + 1) * n + j]) = (c.conj() * u + s.conj() * v, c * v - s * u);
        }
        let turn = |m: &mut [C], rows: usize| {
            for row in each_mut(m, n).take(rows) {
                let (u, v) = (row[k], row[k + 1]);
                (row[k], row[k + 1]) = (u * c + v * s, v * c.conj() - u * s.conj());
            }
        };
        turn(t, block.end.min(k + 3));
        turn(q, n);
        if k > block.start {
            t[(k + 1) * n + column] = C::new(0.0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{adjoint, identity};
    use super::*;
    use crate::trace::bind_all;

    /// The largest absolute value.
    fn size(x: &Array) -> f64 {
        x.abs().cast(DType::F64).max().item().unwrap()
    }

    #[test]
    fn the_factors_give_the_matrix_back() {
        for sample in Schur::samples() {
            let a = &sample.inputs[0];
            if a.shape().count() == Some(0) || !a.real().is_finite().all().item::<bool>().unwrap() {
                continue;
            }
            let factors = bind_all(sample.op.clone(), &sample.inputs);
            let (t, q) = (&factors[0], &factors[1]);
            let small = if t.dtype() == DType::C64 { 1e-5 } else { 1e-13 } * (1.0 + size(a));
            assert!(size(&(q.matmul(t).matmul(&adjoint(q)) - a.cast(t.dtype()))) < small, "{a:?} {t:?} {q:?}");
            assert!(size(&(adjoint(q).matmul(q) - identity(&a.dim(-1), t.dtype()))) < small, "{q:?}");
            assert_eq!(size(&t.tril(-1)), 0.0, "{t:?}");
        }
    }

    #[test]
    fn what_is_not_finite_gives_nan() {
        let factors = bind_all(Op::fixed(&Schur), &[array(&[2, 2], vec![f64::INFINITY, 1.0, 1.0, 1.0])]);
        assert!(factors.iter().all(|x| x.real().is_nan().all().item::<bool>().unwrap()));
    }
}
