//! The discrete Fourier transform over the last axes: of any length, in leading axes a batch. Every form is linear, and the transpose of each is
//! made of the others.
//!
//! The numbers are those of `rustfft` and `realfft`. Plans (factors of a length, tables of roots of unity) are kept by the thread, so a second call of
//! the same length makes none.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread::LocalKey;

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{FftNum, FftPlanner};

use super::elementwise::kernel::{one_output, operand};
use super::reduce::{around, complex_wave, elements, wave};
use super::rules::one;
use super::shaping::strided::buffer;
use super::shaping::transposed;
use super::{Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types};
use crate::array::{Array, Concrete, memory};
use crate::error::{Result, counted, error, fail};
use crate::trace::bind;
use crate::types::{Complex, DType, Dim, Effects, Element, Scalar, Type};
use crate::{param_names, rules_of};

param_names! {
    /// Which transform.
    pub enum FftKind {
        /// Complex to complex: `yₖ = Σⱼ xⱼ exp(-2πi jk/n)`.
        Forward = "forward",
        /// Complex to complex: `xⱼ = 1/n Σₖ yₖ exp(2πi jk/n)`.
        Inverse = "inverse",
        /// Real to complex: the first `n/2 + 1` of the last axis, which say the rest.
        RealForward = "real_forward",
        /// Complex to real: from the first `n/2 + 1` of the last axis. Imaginary parts that a real signal cannot have are not read.
        RealInverse = "real_inverse",
    }
}

/// The Fourier transform of the last axes, as many as there are lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct Fft {
    /// Which transform.
    pub kind: FftKind,
    /// The length of the signal along each of the last axes.
    pub lengths: Vec<Dim>,
}

/// How many of a real signal's frequencies say the rest.
fn half(n: &Dim) -> Dim {
    n.floor_div(&Dim::from(2usize)) + 1usize
}

impl Fft {
    fn bind(kind: FftKind, lengths: &[Dim], x: &Array) -> Array {
        bind(Op::new(Fft { kind, lengths: lengths.to_vec() }), std::slice::from_ref(x))
    }

    /// The dtype of the result, for one that the transform takes.
    fn result_dtype(&self, dtype: DType) -> Option<DType> {
        use FftKind::*;
        match (self.kind, dtype) {
            (Forward | Inverse, DType::C64 | DType::C128) => Some(dtype),
            (RealForward, DType::F32 | DType::F64) => dtype.complex_of(),
            (RealInverse, DType::C64 | DType::C128) => Some(dtype.real_part()),
            _ => None,
        }
    }

    /// The type of the result: the last axes have the lengths, but for the half of a real signal's frequencies.
    fn result_type(&self, x: &Type) -> Result<Type> {
        let Some(dtype) = self.result_dtype(x.dtype()) else {
            let wants = if self.kind == FftKind::RealForward { "f32 or f64" } else { "c64 or c128" };
            return Err(error!(DType, "wants {wants}, not {x}").help("cast first, as in `x.cast(DType::C128)`"));
        };
        let batch = x.rank() - self.lengths.len();
        let mut dims: Vec<Dim> = x.shape().iter().take(batch).chain(&self.lengths).cloned().collect();
        if let (FftKind::RealForward, Some(last)) = (self.kind, dims.last_mut()) {
            *last = half(last);
        }
        Ok(Type::new(dtype, dims))
    }

    /// The number of elements of a signal, as a number of a dtype.
    fn count(&self, dtype: DType) -> Array {
        let n = self.lengths.iter().fold(Dim::from(1usize), |n, d| n * d);
        Array::from_dim(&n, dtype)
    }

    /// For each frequency of half a spectrum: `once` for those that are there once in the whole, the first and (of an even length) the last;
    /// `twice` for those whose conjugate is there too.
    fn weights(&self, dtype: DType, once: f64, twice: f64) -> Result<Array> {
        let Some(n) = self.lengths.last() else { fail!(Rule, "a transform over no axis") };
        let k = Array::iota(DType::I64, [half(n)], 0);
        let alone = k.eq(0_i64) | (&k * 2_i64).eq(n.clone());
        let number = |v: f64| Array::scalar(Scalar::F64(v).cast(dtype));
        alone.select(number(once), number(twice)).ok()
    }
}

impl Primitive for Fft {
    rules_of!("fft"; kind, lengths);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let inputs = infer.inputs;
        let Some(x) = inputs.first() else { fail!(Verify, "wants an operand") };
        if self.lengths.is_empty() || self.lengths.len() > x.rank() {
            return Err(error!(Axis, "a transform over {} of {x}", counted(self.lengths.len(), "axis"))
                .help("it goes over at least one axis, and over no more than there are"));
        }
        let result = self.result_type(x)?;
        let batch = x.rank() - self.lengths.len();
        for (i, n) in self.lengths.iter().enumerate() {
            if !infer.at_least(n, &Dim::from(1usize)) {
                return Err(error!(Size, "a transform of length {n}").help("a signal has at least one element"));
            }
            let last = i + 1 == self.lengths.len();
            let want = if last && self.kind == FftKind::RealInverse { half(n) } else { n.clone() };
            let Some(have) = x.shape().get(batch + i) else { continue };
            if !infer.equal(have, &want) {
                return Err(error!(
                    Shape,
                    "a transform of length {n} takes {}, and axis {} of {x} has {have}",
                    counted(want, "element"),
                    batch + i
                )
                .help("crop the axis or fill it with zeros first"));
            }
        }
        one(result)
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        let ty = self.result_type(x.ty())?;
        let lengths = super::shaping::known(&self.lengths)?;
        one_output(match ty.dtype() {
            DType::F32 | DType::C64 => run::<f32>(self.kind, x, ty, &lengths)?,
            _ => run::<f64>(self.kind, x, ty, &lengths)?,
        })
    }

    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::new(self.clone()), jvp)
    }

    /// The matrix of the transform is symmetric. Of half a spectrum, with `w` the weights: the cotangent of a real signal is
    /// `Re Σₖ ȳₖ exp(-2πi jk/n)`, which is `n` times the real inverse of `conj(ȳ)·w` with `w` one half for what it counts twice; and the other way round.
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        use FftKind::*;
        transposed(transpose, |_, y_bar, x| {
            let real = x.dtype().real_part();
            match self.kind {
                Forward | Inverse => Fft::bind(self.kind, &self.lengths, y_bar).ok(),
                RealForward => {
                    let halved = y_bar.conj() * self.weights(real, 1.0, 0.5)?;
                    (Fft::bind(RealInverse, &self.lengths, &halved) * self.count(real)).ok()
                }
                RealInverse => {
                    let spectrum = Fft::bind(RealForward, &self.lengths, y_bar).conj();
                    (spectrum * (self.weights(real, 1.0, 2.0)? / self.count(real))).ok()
                }
            }
        })
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        Batched::one(bind(Op::new(self.clone()), batch.inputs))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        use FftKind::*;
        let make = |kind: FftKind, lengths: &[usize], x: Array| {
            let lengths = lengths.iter().map(|n| Dim::from(*n)).collect();
            Sample::new(Op::new(Fft { kind, lengths }), vec![x])
        };
        let nothing = |dtype: DType, dims: &[usize]| -> Array {
            Concrete::splat(Type::new(dtype, dims), Scalar::zero(dtype)).into()
        };
        let mut all = vec![
            make(RealForward, &[3, 2], wave(&[3, 2], 30)),
            make(RealForward, &[4], nothing(DType::F64, &[0, 4])),
            make(RealForward, &[5], wave(&[2, 5], 31).cast(DType::F32)).rough(),
            make(RealInverse, &[6], complex_wave(&[2, 4], 32)),
            make(RealInverse, &[5], complex_wave(&[3], 33)),
            make(RealInverse, &[1], complex_wave(&[1], 34)),
            make(RealInverse, &[2], complex_wave(&[2], 35)),
            make(RealInverse, &[3, 4], complex_wave(&[3, 3], 36)),
            make(RealInverse, &[3], nothing(DType::C128, &[0, 2])),
            make(RealInverse, &[4], complex_wave(&[3], 37).cast(DType::C64)).rough(),
        ];
        for n in [1, 2, 3, 8, 11] {
            all.push(make(RealForward, &[n], wave(&[n], 38 + n)));
            all.push(make(Forward, &[n], complex_wave(&[n], 39 + n)));
        }
        for kind in [Forward, Inverse] {
            all.push(make(kind, &[6], complex_wave(&[6], 60)));
            all.push(make(kind, &[4], complex_wave(&[2, 4], 61)));
            all.push(make(kind, &[3, 4], complex_wave(&[2, 3, 4], 62)));
            all.push(make(kind, &[2, 3, 2], complex_wave(&[2, 3, 2], 63)));
            all.push(make(kind, &[4], nothing(DType::C128, &[0, 4])));
            all.push(make(kind, &[7], complex_wave(&[7], 64).cast(DType::C64)).rough());
        }
        all.push(make(RealForward, &[2, 3, 4], wave(&[2, 3, 4], 65)));
        all
    }
}

/// So many plans are kept at most; a program that meets more lengths plans again.
const PLANS: usize = 64;

/// The plans of a thread for one kind of numbers.
struct Plans<T: FftNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
    by_length: HashMap<(FftKind, usize), Plan<T>>,
}

enum Plan<T> {
    Complex(Arc<dyn rustfft::Fft<T>>),
    Forward(Arc<dyn RealToComplex<T>>),
    Inverse(Arc<dyn ComplexToReal<T>>),
}

impl<T> Clone for Plan<T> {
    fn clone(&self) -> Self {
        match self {
            Plan::Complex(p) => Plan::Complex(p.clone()),
            Plan::Forward(p) => Plan::Forward(p.clone()),
            Plan::Inverse(p) => Plan::Inverse(p.clone()),
        }
    }
}

impl<T: FftNum> Plans<T> {
    fn new() -> Plans<T> {
        Plans { complex: FftPlanner::new(), real: RealFftPlanner::new(), by_length: HashMap::new() }
    }

    fn find(&mut self, kind: FftKind, n: usize) -> Plan<T> {
        if let Some(plan) = self.by_length.get(&(kind, n)) {
            return plan.clone();
        }
        if self.by_length.len() >= PLANS {
            *self = Plans::new();
        }
        let plan = match kind {
            FftKind::Forward => Plan::Complex(self.complex.plan_fft_forward(n)),
            FftKind::Inverse => Plan::Complex(self.complex.plan_fft_inverse(n)),
            FftKind::RealForward => Plan::Forward(self.real.plan_fft_forward(n)),
            FftKind::RealInverse => Plan::Inverse(self.real.plan_fft_inverse(n)),
        };
        self.by_length.insert((kind, n), plan.clone());
        plan
    }
}

/// The floats that are transformed.
trait Real: Element + FftNum + std::ops::DivAssign
where
    Complex<Self>: Element,
{
    fn plans() -> &'static LocalKey<RefCell<Plans<Self>>>;
    fn of(n: usize) -> Self;
}

thread_local! {
    static SINGLE: RefCell<Plans<f32>> = RefCell::new(Plans::new());
    static DOUBLE: RefCell<Plans<f64>> = RefCell::new(Plans::new());
}

impl Real for f32 {
    fn plans() -> &'static LocalKey<RefCell<Plans<f32>>> {
        &SINGLE
    }
    fn of(n: usize) -> f32 {
        n as f32
    }
}

impl Real for f64 {
    fn plans() -> &'static LocalKey<RefCell<Plans<f64>>> {
        &DOUBLE
    }
    fn of(n: usize) -> f64 {
        n as f64
    }
}

fn plan<T: Real>(kind: FftKind, n: usize) -> Plan<T>
where
    Complex<T>: Element,
{
    T::plans().with_borrow_mut(|plans| plans.find(kind, n))
}

/// So many numbers of a complex type, all zero.
fn zeros<T: Real>(n: usize) -> Result<Vec<Complex<T>>>
where
    Complex<T>: Element,
{
    let mut all = memory(n)?;
    all.resize(n, Complex::default());
    Ok(all)
}

/// Every row of `n` by a complex plan, in place.
fn rows<T: Real>(kind: FftKind, x: &mut [Complex<T>], n: usize) -> Result<()>
where
    Complex<T>: Element,
{
    let Plan::Complex(plan) = plan::<T>(kind, n) else { return Ok(()) };
    plan.process_with_scratch(x, &mut zeros(plan.get_inplace_scratch_len())?);
    Ok(())
}

/// Columns that are transformed at a time: as many as share a cache line, and a few more.
const COLUMNS: usize = 16;

/// The transform along an axis that is not the last: columns are copied out, some at a time, and back.
fn columns<T: Real>(kind: FftKind, x: &mut [Complex<T>], dims: &[usize], axis: usize) -> Result<()>
where
    Complex<T>: Element,
{
    let [_, n, inner] = around(dims, axis);
    let Plan::Complex(plan) = plan::<T>(kind, n) else { return Ok(()) };
    let mut scratch = zeros(plan.get_inplace_scratch_len())?;
    let mut some = zeros::<T>(COLUMNS.min(inner) * n)?;
    for block in x.chunks_exact_mut(n * inner) {
        for from in (0..inner).step_by(COLUMNS) {
            let width = COLUMNS.min(inner - from);
            let some = &mut some[..width * n];
            for (j, row) in block.chunks_exact(inner).enumerate() {
                for (c, v) in row[from..from + width].iter().enumerate() {
                    some[c * n + j] = *v;
                }
            }
            plan.process_with_scratch(some, &mut scratch);
            for (j, row) in block.chunks_exact_mut(inner).enumerate() {
                for (c, v) in row[from..from + width].iter_mut().enumerate() {
                    *v = some[c * n + j];
                }
            }
        }
    }
    Ok(())
}

/// All axes of a complex transform but the last.
fn other_axes<T: Real>(kind: FftKind, x: &mut [Complex<T>], dims: &[usize], axes: usize) -> Result<()>
where
    Complex<T>: Element,
{
    (dims.len() - axes..dims.len() - 1).try_for_each(|axis| columns(kind, x, dims, axis))
}

/// A transform of an array; `lengths` are those of the last axes.
fn run<T: Real>(kind: FftKind, x: &Concrete, ty: Type, lengths: &[usize]) -> Result<Concrete>
where
    Complex<T>: Element,
{
    let dims = super::shaping::known(ty.shape())?;
    let (axes, n) = (lengths.len(), lengths.last().copied().unwrap_or(1));
    let scale = T::one() / T::of(lengths.iter().product());
    if ty.shape().count() == Some(0) {
        return match kind {
            FftKind::RealInverse => Ok(Concrete::dense::<T>(ty, Vec::new())),
            _ => Ok(Concrete::dense::<Complex<T>>(ty, Vec::new())),
        };
    }
    match kind {
        FftKind::Forward | FftKind::Inverse => {
            let mut out: Vec<Complex<T>> = x.try_to_vec()?;
            rows(kind, &mut out, n)?;
            other_axes(kind, &mut out, &dims, axes)?;
            if kind == FftKind::Inverse {
                out.iter_mut().for_each(|v| *v = Complex::new(v.re * scale, v.im * scale));
            }
            Ok(Concrete::dense(ty, out))
        }
        FftKind::RealForward => {
            let Plan::Forward(plan) = plan::<T>(kind, n) else { fail!(Rule, "a plan of another kind") };
            let mut out = buffer(&ty, Complex::default())?;
            let mut scratch = zeros(plan.get_scratch_len())?;
            let mut row = memory::<T>(n)?;
            for (x, y) in elements::<T>(x)?.chunks_exact(n).zip(out.chunks_exact_mut(n / 2 + 1)) {
                row.clear();
                row.extend_from_slice(x);
                plan.process_with_scratch(&mut row, y, &mut scratch).map_err(broken)?;
            }
            other_axes(FftKind::Forward, &mut out, &dims, axes)?;
            Ok(Concrete::dense(ty, out))
        }
        FftKind::RealInverse => {
            let Plan::Inverse(plan) = plan::<T>(kind, n) else { fail!(Rule, "a plan of another kind") };
            let mut spectrum: Vec<Complex<T>> = x.try_to_vec()?;
            other_axes(FftKind::Inverse, &mut spectrum, x.dims(), axes)?;
            let mut out = buffer(&ty, T::default())?;
            let mut scratch = zeros(plan.get_scratch_len())?;
            for (x, y) in spectrum.chunks_exact_mut(n / 2 + 1).zip(out.chunks_exact_mut(n)) {
                // What a real signal has no imaginary part of.
                x[0].im = T::zero();
                if n % 2 == 0 {
                    x[n / 2].im = T::zero();
                }
                plan.process_with_scratch(x, y, &mut scratch).map_err(broken)?;
            }
            out.iter_mut().for_each(|v| *v = *v * scale);
            Ok(Concrete::dense(ty, out))
        }
    }
}

/// A plan that refuses what it was made for.
fn broken(e: realfft::FftError) -> crate::Error {
    error!(Rule, "a plan does not fit: {e}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// From the definition.
    fn by_hand(x: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
        let n = x.len();
        let root = |jk: usize| Complex::from_polar(1.0, sign * std::f64::consts::TAU * (jk % n) as f64 / n as f64);
        (0..n).map(|k| x.iter().enumerate().map(|(j, v)| v * root(j * k)).sum()).collect()
    }

    #[test]
    fn every_length_is_the_sum_that_defines_it() {
        for n in (1..40).chain([97, 128, 210, 257]) {
            let x = complex_wave(&[n], n);
            let numbers: Vec<Complex<f64>> = x.to_vec().unwrap();
            let lengths = [Dim::from(n)];
            let near = |have: &Array, want: Vec<Complex<f64>>, scale: f64| {
                let have: Vec<Complex<f64>> = have.to_vec().unwrap();
                assert!(
                    have.iter().zip(&want).all(|(a, b)| (a - b / scale).norm() < 1e-11 * n as f64),
                    "{n}: {have:?}"
                );
            };
            near(&Fft::bind(FftKind::Forward, &lengths, &x), by_hand(&numbers, -1.0), 1.0);
            near(&Fft::bind(FftKind::Inverse, &lengths, &x), by_hand(&numbers, 1.0), n as f64);
            let real: Vec<f64> = wave(&[n], n).to_vec().unwrap();
            let whole = by_hand(&real.iter().map(|v| Complex::new(*v, 0.0)).collect::<Vec<_>>(), -1.0);
            let spectrum = Fft::bind(FftKind::RealForward, &lengths, &wave(&[n], n));
            near(&spectrum, whole[..n / 2 + 1].to_vec(), 1.0);
            let back: Vec<f64> = Fft::bind(FftKind::RealInverse, &lengths, &spectrum).to_vec().unwrap();
            assert!(back.iter().zip(&real).all(|(a, b)| (a - b).abs() < 1e-12 * n as f64), "{n}: {back:?}");
        }
    }

    #[test]
    fn more_lengths_than_are_kept_are_planned_again() {
        for n in (1..3 * PLANS).chain([7, 7]) {
            let ones = Array::full([n], 1.0_f64).cast(DType::C128);
            let y: Vec<Complex<f64>> = Fft::bind(FftKind::Forward, &[Dim::from(n)], &ones).to_vec().unwrap();
            assert!((y[0].re - n as f64).abs() < 1e-9 && y[1..].iter().all(|v| v.norm() < 1e-9), "{n}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kind = |kind: FftKind, lengths: &[usize], spec: &str| {
            let lengths: Vec<Dim> = lengths.iter().map(|n| Dim::from(*n)).collect();
            Fft::bind(kind, &lengths, &Array::spec(spec)).ok().unwrap_err().kind()
        };
        assert_eq!(kind(FftKind::Forward, &[3], "f64[3]"), ErrorKind::DType);
        assert_eq!(kind(FftKind::RealForward, &[3], "c128[3]"), ErrorKind::DType);
        assert_eq!(kind(FftKind::RealForward, &[3], "f16[3]"), ErrorKind::DType);
        assert_eq!(kind(FftKind::Forward, &[4], "c64[3]"), ErrorKind::Shape);
        assert_eq!(kind(FftKind::RealInverse, &[4], "c64[4]"), ErrorKind::Shape);
        assert_eq!(kind(FftKind::Forward, &[0], "c64[0]"), ErrorKind::Size);
        assert_eq!(kind(FftKind::Forward, &[], "c64[3]"), ErrorKind::Axis);
        assert_eq!(kind(FftKind::Forward, &[3, 3], "c64[3]"), ErrorKind::Axis);
        let symbolic = bind(
            Op::new(Fft { kind: FftKind::RealForward, lengths: vec![Dim::symbol("N").unwrap()] }),
            &[Array::spec("f32[B, N]")],
        );
        assert_eq!(symbolic.dtype(), DType::C64);
        assert_eq!(symbolic.shape()[0], Dim::symbol("B").unwrap());
    }
}
