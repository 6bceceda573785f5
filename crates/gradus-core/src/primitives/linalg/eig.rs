//! Eigenvalues and eigenvectors of square matrices.

use std::cmp::Ordering;

use faer::dyn_stack::MemStack;
use faer::linalg::evd::{ComputeEigenvectors, evd_cplx, evd_real, evd_scratch};
use faer::{Par, diag::DiagMut};

use super::plain::Field;
use super::{
    Scaled, Solve, all_finite, columns_of, complex_matrices, complex_of, diagonal, dispatch_field, each, gaps,
    in_front, keep_phase, matrices, rescale, rows_of, scratch, sizes, square, to_rows, unit_phase, zeroed,
};
use crate::array::{Array, Concrete, collected};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::operand;
use crate::primitives::reduce::{array, elements};
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Limits, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::trace::bind_all;
use crate::types::{Complex, DType, Effects, Type};

/// The eigenvalues of square matrices, in ascending order of their real and then of their imaginary parts, and if asked for the eigenvectors,
/// columns of size 1. Both are complex. The first component of a vector that is at least half as large as its largest is real and positive.
/// NaN if a number is not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eig {
    /// Whether eigenvectors are wanted.
    pub vectors: bool,
}

impl Primitive for Eig {
    rules_of!("eig"; vectors);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let (ty, front, n) = square(infer, 0)?;
        let ty = ty.with_dtype(complex_of(ty.dtype()));
        let mut types: Types = smallvec::smallvec![ty.with_shape(super::behind(&front, &[&n]))];
        types.extend(self.vectors.then_some(ty));
        Ok(types)
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        dispatch_field!(a.ty().dtype(), T => decomposed::<T>(a, self.vectors))
    }

    /// With `X = V⁻¹·A_dot·V`: `w_dot` is its diagonal, and `V_dot = V·(X / (w_j − w_i))` off it, without what would change the size or the phase
    /// of a vector.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([a], [Some(a_dot)]) = (jvp.primals, jvp.tangents) else { return Ok(Derivative::Zero) };
        let mut outputs = bind_all(Op::new(Eig { vectors: true }), std::slice::from_ref(a));
        let [w, v] = &outputs[..] else { fail!(Rule, "has two results") };
        let x = Solve { transpose: false }.of(v, &a_dot.cast(v.dtype()).matmul(v));
        let mut tangents: smallvec::SmallVec<[Option<Array>; 1]> = smallvec::smallvec![Some(diagonal(&x))];
        if self.vectors {
            let v_dot = v.matmul(&(gaps(w) * x));
            let longer = (v.conj() * &v_dot).real().sum_keep(-2).cast(v.dtype());
            let v_dot = v_dot - v * longer;
            tangents.push(Some(keep_phase(v, &v_dot)));
        } else {
            outputs.truncate(1);
        }
        Ok(Derivative::Whole { outputs, tangents })
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        in_front(batch, Op::new(*self))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        super::limits("where eigenvectors are no basis, or eigenvalues are equal, there is no derivative")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |vectors, a: Array| Sample::new(Op::new(Eig { vectors }), vec![a]);
        // A pair of complex eigenvalues.
        let rotation = || array(&[2, 2], vec![1.0, -2.0, 1.5, 0.5]);
        vec![
            make(true, matrices(&[1, 1], 1)),
            make(true, matrices(&[2, 2], 2)),
            make(true, rotation()),
            make(false, matrices(&[3, 3], 3)),
            make(false, rotation()),
            make(true, matrices(&[2, 2, 2], 4)),
            make(true, matrices(&[20, 20], 5)).rough(),
            make(true, matrices(&[3, 3], 6).cast(DType::F32)).rough(),
            make(true, complex_matrices(&[2, 2], 7)),
            make(false, complex_matrices(&[3, 3], 8)),
            make(true, complex_matrices(&[2, 2], 9).cast(DType::C64)).rough(),
            make(true, array(&[2, 2], vec![f64::NAN, 1.0, 1.0, 1.0])).rough(),
            make(true, matrices(&[0, 0], 1)),
            make(true, matrices(&[0, 2, 2], 1)),
        ]
    }
}

/// How one matrix is decomposed, for each sort of numbers.
trait Spectrum: Field {
    /// Complex numbers of the same precision.
    type Complex: Field;

    /// The eigenvalues, and vectors in columns if there is room for them; whether they were found.
    fn spectrum(a: &[Self], n: usize, s: &mut [Self::Complex], u: &mut [Self::Complex]) -> Result<bool>;

    /// The order in which eigenvalues come.
    fn order(a: Self::Complex, b: Self::Complex) -> Ordering;

    /// Makes the size of a vector 1.
    fn normalize(v: &mut [Self::Complex]);
}

macro_rules! spectra {
    ($($part:ty),*) => {$(
        impl Spectrum for $part {
            type Complex = Complex<$part>;

            fn spectrum(a: &[$part], n: usize, s: &mut [Complex<$part>], u: &mut [Complex<$part>]) -> Result<bool> {
                let vectors = !u.is_empty();
                let (mut re, mut im) = (zeroed::<$part>(n)?, zeroed::<$part>(n)?);
                let mut columns = zeroed::<$part>(u.len())?;
                let mut memory = scratch(evd_scratch::<$part>(n, ComputeEigenvectors::No, wanted(vectors), Par::Seq, Default::default()))?;
                let right = vectors.then(|| columns_of(&mut columns, n, n));
                let (s_re, s_im) = (DiagMut::from_slice_mut(&mut re), DiagMut::from_slice_mut(&mut im));
                let stack = MemStack::new(&mut memory);
                if evd_real(rows_of(a, n, n), s_re, s_im, None, right, Par::Seq, stack, Default::default()).is_err() {
                    return Ok(false);
                }
                s.iter_mut().zip(re.iter().zip(&im)).for_each(|(s, (&re, &im))| *s = Complex::new(re, im));
                let mut j = 0;
                while vectors && j < n {
                    let pair = im[j] != 0.0 && j + 1 < n;
                    for i in 0..n {
                        let re = columns[j * n + i];
                        u[j * n + i] = Complex::new(re, 0.0);
                        // The parts of a pair stand beside each other.
                        if pair {
                            let im = columns[(j + 1) * n + i];
                            u[j * n + i] = Complex::new(re, im);
                            u[(j + 1) * n + i] = Complex::new(re, -im);
                        }
                    }
                    j += 1 + usize::from(pair);
                }
                Ok(true)
            }

            fn order(a: Complex<$part>, b: Complex<$part>) -> Ordering {
                let by = |a: $part, b: $part| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
                by(a.re, b.re).then(by(a.im, b.im))
            }

            fn normalize(v: &mut [Complex<$part>]) {
                let size = v.iter().map(Complex::norm_sqr).sum::<$part>().sqrt();
                v.iter_mut().for_each(|x| *x /= size);
            }
        }

        impl Spectrum for Complex<$part> {
            type Complex = Complex<$part>;

            fn spectrum(a: &[Self], n: usize, s: &mut [Self], u: &mut [Self]) -> Result<bool> {
                let vectors = !u.is_empty();
                let mut memory = scratch(evd_scratch::<Self>(n, ComputeEigenvectors::No, wanted(vectors), Par::Seq, Default::default()))?;
                let right = vectors.then(|| columns_of(u, n, n));
                let (stack, s) = (MemStack::new(&mut memory), DiagMut::from_slice_mut(s));
                Ok(evd_cplx(rows_of(a, n, n), s, None, right, Par::Seq, stack, Default::default()).is_ok())
            }

            fn order(a: Self, b: Self) -> Ordering {
                <$part as Spectrum>::order(a, b)
            }

            fn normalize(v: &mut [Self]) {
                <$part as Spectrum>::normalize(v);
            }
        }
    )*};
}
spectra!(f32, f64);

fn wanted(vectors: bool) -> ComputeEigenvectors {
    if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No }
}

fn decomposed<T: Spectrum>(a: &Concrete, vectors: bool) -> Result<Outputs> {
    let [count, n, _] = sizes(a);
    let size = if vectors { n * n } else { 0 };
    let (mut values, mut out) = (zeroed::<T::Complex>(count * n)?, zeroed::<T::Complex>(count * size)?);
    let (mut s, mut u, mut sorted) =
        (zeroed::<T::Complex>(n)?, zeroed::<T::Complex>(size)?, zeroed::<T::Complex>(size)?);
    let mut order = collected(n, 0..n)?;
    let mut scaled = Scaled::new();
    for (i, a) in each(&elements::<T>(a)?, n * n).enumerate() {
        let (a, power) = scaled.of(a)?;
        if !(all_finite(a) && T::spectrum(a, n, &mut s, &mut u)?) {
            s.fill(T::Complex::NAN);
            u.fill(T::Complex::NAN);
        }
        rescale(&mut s, power);
        order.sort_by(|&i, &j| T::order(s[i], s[j]));
        for (to, &from) in order.iter().enumerate() {
            values[i * n + to] = s[from];
        }
        if vectors {
            u.chunks_exact_mut(n).for_each(T::normalize);
            unit_phase(&mut u, n, |_, _| {});
            for (to, &from) in order.iter().enumerate() {
                sorted[to * n..(to + 1) * n].copy_from_slice(&u[from * n..(from + 1) * n]);
            }
            to_rows(&sorted, &mut out[i * size..(i + 1) * size], n, n);
        }
    }
    let ty = a.ty().with_dtype(complex_of(a.ty().dtype()));
    let shape = ty.shape().without(|axis| axis + 1 == a.dims().len());
    let mut outputs: Outputs = smallvec::smallvec![Concrete::dense(Type::new(ty.dtype(), shape), values).into()];
    if vectors {
        outputs.push(Concrete::dense(ty, out).into());
    }
    Ok(outputs)
}
