//! Complex numbers and their parts. Transposes are taken by the real pairing Re(v·w), as in JAX: no conjugation.

use super::kernel::{map, one_output, operand, zip};
use super::unary::elementwise_rules;
use super::{Takes, same_type, same_type_one, samples_at};
use crate::array::Array;
use crate::error::{Result, error, fail};
use crate::primitives::{
    Batch, Batched, Derivative, Entry, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types, entry,
};
use crate::rules_of;
use crate::types::{Complex as Cplx, DType, Effects};

pub(super) fn entries() -> Vec<Entry> {
    vec![entry::<Complex>("complex"), entry::<Real>("real"), entry::<Imag>("imag"), entry::<Conj>("conj")]
}

fn complex_only(infer: &mut Infer<'_>) -> Result<Types> {
    let ty = same_type(infer, 1, Takes::Inexact)?;
    if !ty.dtype().is_complex() {
        fail!(DType, "wants complex numbers, not {ty}");
    }
    Ok(smallvec::smallvec![ty])
}

fn complex_samples(op: Op) -> Vec<Sample> {
    let z = Array::complex(&Array::from([0.5_f64, -1.5, 2.0]), &Array::from([1.0_f64, 0.25, -3.0]));
    vec![Sample::new(op.clone(), vec![z.clone()]), Sample::new(op, vec![z.cast(DType::C64)]).rough()]
}

macro_rules! part {
    ($(#[$doc:meta])* $name:ident = $text:literal, $field:ident, |$bar:ident| $transpose:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl Primitive for $name {
            rules_of!($text);
            fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                Ok(complex_only(infer)?.into_iter().map(|t| t.with_dtype(t.dtype().real_part())).collect())
            }
            fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                let a = operand(inputs, 0)?;
                one_output(match a.ty().dtype() {
                    DType::C64 => map(a, |v: Cplx<f32>| v.$field),
                    _ => map(a, |v: Cplx<f64>| v.$field),
                })
            }
            fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
                Derivative::linear(Op::fixed(&$name), jvp)
            }
            fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
                match transpose.cotangents {
                    [Some($bar)] => Transposed::one($transpose),
                    _ => Ok(Transposed::Cotangents(smallvec::smallvec![None])),
                }
            }
            elementwise_rules!();
            fn samples() -> Vec<Sample> {
                complex_samples(Op::new($name))
            }
        }
    };
}

part! {
    /// The real part. Re v · w = Re(v · (w + 0i)).
    Real = "real", re, |y_bar| Array::complex(y_bar, &y_bar.zeros_like())
}
part! {
    /// The imaginary part. Im v · w = Re(v · (0 - wi)).
    Imag = "imag", im, |y_bar| Array::complex(&y_bar.zeros_like(), &-y_bar)
}

/// The complex conjugate. Re(conj(v) · w) = Re(v · conj(w)).
#[derive(Clone, Copy, Debug, Default)]
pub struct Conj;

impl Primitive for Conj {
    rules_of!("conj");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        complex_only(infer)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        one_output(match a.ty().dtype() {
            DType::C64 => map(a, |v: Cplx<f32>| v.conj()),
            _ => map(a, |v: Cplx<f64>| v.conj()),
        })
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::fixed(&Conj), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        match transpose.cotangents {
            [Some(y_bar)] => Transposed::one(y_bar.conj()),
            _ => Ok(Transposed::Cotangents(smallvec::smallvec![None])),
        }
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        complex_samples(Op::new(Conj))
    }
}

/// A complex number from its parts. Re((a + ib) · w) = a Re w - b Im w.
#[derive(Clone, Copy, Debug, Default)]
pub struct Complex;

impl Primitive for Complex {
    rules_of!("complex");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let ty = same_type_one(infer, 2, Takes::Floats)?;
        let dtype = ty[0].dtype().complex_of();
        let dtype =
            dtype.ok_or_else(|| error!(DType, "the parts of a complex number are f32 or f64, not {}", ty[0]))?;
        Ok(ty.into_iter().map(|t| t.with_dtype(dtype)).collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (re, im) = (operand(inputs, 0)?, operand(inputs, 1)?);
        one_output(match re.ty().dtype() {
            DType::F32 => zip(re, im, Cplx::<f32>::new),
            _ => zip(re, im, Cplx::<f64>::new),
        })
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([re, im], [re_dot, im_dot]) = (jvp.primals, jvp.tangents) else { fail!(Rule, "wants two operands") };
        if re_dot.is_none() && im_dot.is_none() {
            return Ok(Derivative::Zero);
        }
        let or_zero = |t: &Option<Array>, x: &Array| t.clone().unwrap_or_else(|| x.zeros_like());
        Derivative::one(Array::complex(&or_zero(re_dot, re), &or_zero(im_dot, im)))
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let ([re, im], [Some(y_bar)]) = (transpose.operands, transpose.cotangents) else {
            return Ok(Transposed::Cotangents(smallvec::smallvec![None, None]));
        };
        let re_bar = re.unknown().map(|_| y_bar.real());
        let im_bar = im.unknown().map(|_| -y_bar.imag());
        Ok(Transposed::Cotangents(smallvec::smallvec![re_bar, im_bar]))
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        let mut all = samples_at(&Op::new(Complex), 2, Takes::Floats, &[0.5, -1.5, 2.0]);
        all.retain(|s| s.inputs.iter().all(|a| a.dtype().complex_of().is_some()));
        all
    }
}
