//! Changes of element type: by value, and by bits.

use super::elementwise::kernel::{map, one_output, operand};
use super::elementwise::{NOT_A_NUMBER, Real};
use super::reduce::{array, complex_wave, elements, wave};
use super::rules::one;
use super::{
    Batch, Batched, Derivative, Halves, Infer, Jvp, Limits, NotFinite, Op, Outputs, Primitive, Sample, Transpose,
    Transposed, Types,
};
use crate::array::{Array, Concrete, collected, reserve};
use crate::error::{Result, error, fail};
use crate::rules_of;
use crate::scalar::{self, Half, Local, Scalars};
use crate::trace::bind;
use crate::types::{DType, Effects, Element, KeyBits, Type, Wide, bf16, dispatch, dispatch_real, f16};

/// The same values in another element type, as Rust's `as` does it: floats to nearest, floats to integers toward zero
/// and saturating with NaN as 0, integers to integers by their low bits, anything but zero is `true`.
#[derive(Clone, Debug, PartialEq)]
pub struct Convert {
    /// The element type of the result.
    pub dtype: DType,
}

/// As `dispatch`, for what numbers are made of mostly: each pair of these has a loop of its own.
macro_rules! dispatch_common {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        dispatch!(@ $dtype, $T => $body; Bool bool, I32 i32, I64 i64, F32 f32, F64 f64; $other)
    };
}

/// Conversion in two steps: two hundred pairs of dtypes share as many loops as there are dtypes.
fn through_wide(x: &Concrete, ty: Type) -> Result<Concrete> {
    let x = x.try_dense()?;
    let mut wide = [Wide::UInt(0); 256];
    Ok(dispatch!(ty.dtype(), U => {
        let mut out = reserve::<U>(&ty)?;
        while out.len() < x.count() {
            let n = widen(&x, out.len(), &mut wide);
            out.extend(wide[..n].iter().map(|v| U::from_wide(*v)));
        }
        Concrete::dense(ty, out)
    }))
}

/// Reads elements of a dense array from one on; says how many.
fn widen(x: &Concrete, from: usize, to: &mut [Wide]) -> usize {
    dispatch!(x.ty().dtype(), T => {
        let values = x.dense_slice::<T>().unwrap_or_default();
        let values = &values[from.min(values.len())..];
        to.iter_mut().zip(values).for_each(|(wide, v)| *wide = v.to_wide());
        values.len().min(to.len())
    })
}

impl Primitive for Convert {
    rules_of!("convert"; dtype);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let ty = &infer.inputs[0]; // invariant: the arity was checked
        if ty.dtype().is_complex() && !self.dtype.is_complex() {
            return Err(error!(DType, "{ty} is complex and does not convert to {}", self.dtype)
                .help("take a real number of it first: `.real()`, `.imag()` or `.abs()`"));
        }
        if ty.dtype() != self.dtype && (ty.dtype() == DType::Key || self.dtype == DType::Key) {
            return Err(error!(DType, "{ty} does not convert to {}", self.dtype).help(NOT_A_NUMBER));
        }
        one(ty.with_dtype(self.dtype))
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        if x.ty().dtype() == self.dtype {
            return one_output(x.clone());
        }
        let ty = x.ty().with_dtype(self.dtype);
        if let Some(value) = x.splat_value() {
            return one_output(Concrete::splat(ty, value));
        }
        one_output(dispatch_common!(x.ty().dtype(), T => dispatch_common!(self.dtype, U => {
            let values = elements::<T>(x)?;
            Concrete::dense(ty, collected(values.len(), values.iter().map(|v| U::from_wide(v.to_wide())))?)
        }, else through_wide(x, ty)?), else through_wide(x, ty)?))
    }

    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        if !self.dtype.is_inexact() {
            return Ok(Derivative::Zero);
        }
        Derivative::linear(Op::new(self.clone()), jvp)
    }

    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let ([x], [Some(y_bar)]) = (transpose.operands, transpose.cotangents) else {
            return Ok(Transposed::Cotangents(smallvec::smallvec![None]));
        };
        let Some(ty) = x.unknown().filter(|ty| ty.dtype().is_inexact()) else { return Ok(Transposed::NotLinear) };
        // A real number that became complex has its effect on the real part only.
        let y_bar = match ty.dtype().is_complex() {
            false if self.dtype.is_complex() => bind(Op::fixed(&Real), &[y_bar.clone()]),
            _ => y_bar.clone(),
        };
        Transposed::one(match y_bar.dtype() == ty.dtype() {
            true => y_bar,
            false => bind(Op::new(Convert { dtype: ty.dtype() }), &[y_bar]),
        })
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn is_total(&self) -> bool {
        true
    }

    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let x = s.operand(0);
        Some(if Half::of(self.dtype).is_some() { s.for_half(x) } else { s.convert(x, s.to()) })
    }

    fn halves(&self) -> Halves {
        Halves::Widened
    }

    fn limits(&self) -> Limits {
        Limits::NONE.making(NotFinite::Narrow)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(self.clone()))
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |dtype, x| Sample::new(Op::new(Convert { dtype }), vec![x]);
        let mut all = vec![
            make(DType::F64, wave(&[2, 3], 1)),
            make(DType::F32, wave(&[4], 2)).rough(),
            make(DType::F64, wave(&[4], 3).cast(DType::F32)).rough(),
            make(DType::F16, wave(&[4], 4)).rough(),
            make(DType::BF16, wave(&[4], 5)).rough(),
            make(DType::F32, wave(&[4], 6).cast(DType::BF16)).rough(),
            make(DType::C128, wave(&[3], 7)),
            make(DType::C64, complex_wave(&[3], 8)).rough(),
            make(DType::C128, array(&[2], vec![3i32, -4])),
            make(DType::F64, wave(&[], 9)),
            make(DType::I32, array::<f64>(&[0, 2], vec![])),
            make(DType::U8, array(&[4], vec![-1i32, 256, 255, 7])),
            make(DType::I8, array(&[3], vec![u64::MAX, 128, 5])),
            make(DType::F32, array(&[2], vec![i64::MAX, -(1 << 24) - 1])),
            make(DType::F64, array(&[2], vec![true, false])),
            make(DType::U64, array(&[2], vec![-5i8, 5])),
        ];
        let special = || array(&[6], vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.9, 300.7, 0.0]);
        for dtype in [DType::I8, DType::I32, DType::I64, DType::U8, DType::U64, DType::Bool, DType::F16] {
            all.push(make(dtype, special()).rough());
        }
        all
    }
}

/// The same bits read as another element type of the same size. A key's bits are those of a `u64`, its first word in the
/// high half.
#[derive(Clone, Debug, PartialEq)]
pub struct Bitcast {
    /// The element type of the result.
    pub dtype: DType,
}

impl Primitive for Bitcast {
    rules_of!("bitcast"; dtype);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let ty = &infer.inputs[0]; // invariant: the arity was checked
        let has_bits = |d: DType| d.is_int() || d.is_float();
        let opens_key = matches!((ty.dtype(), self.dtype), (DType::Key, DType::U64) | (DType::U64, DType::Key));
        if !opens_key && (!has_bits(ty.dtype()) || !has_bits(self.dtype)) {
            fail!(DType, "reads bits of integers and floats, not {ty} as {}", self.dtype);
        }
        if ty.dtype().size() != self.dtype.size() {
            return Err(error!(
                DType,
                "an element of {ty} has {} bits, one of {} has {}",
                8 * ty.dtype().size(),
                self.dtype,
                8 * self.dtype.size()
            )
            .help("choose a dtype of the same size"));
        }
        one(ty.with_dtype(self.dtype))
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = operand(inputs, 0)?;
        match (x.ty().dtype(), self.dtype) {
            (DType::Key, _) => return one_output(map(x, |v: KeyBits| v.0)),
            (_, DType::Key) => return one_output(map(x, |v: u64| KeyBits(v))),
            _ => {}
        }
        // Through 64 bits: one loop for each dtype, not one for each pair.
        let bits = dispatch_real!(x.ty().dtype(), T => map(x, |v: T| v.bits() as u64)?,
            else fail!(DType, "no bits in {}", x.ty()));
        one_output(
            dispatch_real!(self.dtype, T => map(&bits, T::of_bits), else fail!(DType, "no bits in {}", self.dtype)),
        )
    }

    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Zero)
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn is_total(&self) -> bool {
        true
    }

    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let x = s.operand(0);
        Some(if s.ty(x) == s.to() { x } else { s.op(scalar::Op::Bitcast(s.to()), &[x]) })
    }

    fn halves(&self) -> Halves {
        Halves::Bits
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(self.clone()))
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |dtype, x| Sample::new(Op::new(Bitcast { dtype }), vec![x]).rough();
        vec![
            make(DType::I64, wave(&[2, 3], 1)),
            make(DType::U64, array(&[3], vec![f64::NAN, -0.0, f64::INFINITY])),
            make(DType::F64, array(&[2], vec![1i64 << 62, 4_611_686_018_427_387_905])),
            make(DType::F32, array(&[2], vec![0x3fc0_0000u32, 0x8000_0000])),
            make(DType::I32, wave(&[3], 2).cast(DType::F32)),
            make(DType::U16, wave(&[3], 3).cast(DType::F16)),
            make(DType::F16, wave(&[3], 4).cast(DType::BF16)),
            make(DType::BF16, array(&[2], vec![0x3fc0i16, -1])),
            make(DType::U8, array(&[2], vec![-1i8, 3])),
            make(DType::I8, array(&[], vec![200u8])),
            make(DType::F32, array::<i32>(&[0], vec![])),
            make(DType::U64, array(&[2], vec![KeyBits(42), KeyBits(u64::MAX)])),
            make(DType::Key, array(&[2], vec![42u64, 1 << 63])),
        ]
    }
}

/// An element from its low bits.
trait OfBits: Element {
    fn of_bits(bits: u64) -> Self;
}

macro_rules! of_bits {
    ($(|$bits:ident| $($t:ty = $of:expr),*;)*) => {$($(
        impl OfBits for $t {
            fn of_bits($bits: u64) -> $t {
                $of
            }
        }
    )*)*};
}
of_bits! {
    |bits| i8 = bits as i8, i16 = bits as i16, i32 = bits as i32, i64 = bits as i64;
    |bits| u8 = bits as u8, u16 = bits as u16, u32 = bits as u32, u64 = bits;
    |bits| f16 = f16::from_bits(bits as u16), bf16 = bf16::from_bits(bits as u16);
    |bits| f32 = f32::from_bits(bits as u32), f64 = f64::from_bits(bits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn values_convert_as_in_rust() {
        let x = array(&[5], vec![f64::NAN, f64::INFINITY, -1.9, 300.7, 0.0]);
        let to = |dtype| bind(Op::new(Convert { dtype }), &[x.clone()]);
        assert_eq!(to(DType::U8).to_vec::<u8>().unwrap(), [0, 255, 0, 255, 0]);
        assert_eq!(to(DType::I32).to_vec::<i32>().unwrap(), [0, i32::MAX, -1, 300, 0]);
        assert_eq!(to(DType::Bool).to_vec::<bool>().unwrap(), [true, true, true, true, false]);
        let low = bind(Op::new(Convert { dtype: DType::U8 }), &[array(&[2], vec![-1i32, 257])]);
        assert_eq!(low.to_vec::<u8>().unwrap(), [255, 1]);
    }

    #[test]
    fn bits_go_there_and_back() {
        for sample in Bitcast::samples() {
            let x = &sample.inputs[0];
            let there = bind(sample.op.clone(), &[x.clone()]);
            let back = bind(Op::new(Bitcast { dtype: x.dtype() }), &[there.clone()]);
            assert!(back.is_identical(x), "{x:?} {there:?} {back:?}");
        }
        let one: u64 = bind(Op::new(Bitcast { dtype: DType::U64 }), &[array(&[], vec![1.0])]).item().unwrap();
        assert_eq!(one, 1.0f64.to_bits());
        let negative: f32 = bind(Op::new(Bitcast { dtype: DType::F32 }), &[array(&[], vec![i32::MIN])]).item().unwrap();
        assert!(negative == 0.0 && negative.is_sign_negative());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = |op: Op, spec: &str| bind(op, &[Array::spec(spec)]).ok().unwrap_err();
        let complex = error(Op::new(Convert { dtype: DType::F64 }), "c128[B]");
        assert_eq!(complex.kind(), ErrorKind::DType);
        assert!(complex.way_out().unwrap().contains(".real()"));
        assert_eq!(error(Op::new(Bitcast { dtype: DType::I32 }), "f64[2]").kind(), ErrorKind::DType);
        assert_eq!(error(Op::new(Bitcast { dtype: DType::I8 }), "bool[2]").kind(), ErrorKind::DType);
        assert_eq!(error(Op::new(Bitcast { dtype: DType::C64 }), "f64[2]").kind(), ErrorKind::DType);
        let symbolic = bind(Op::new(Convert { dtype: DType::I8 }), &[Array::spec("f64[B,2]")]);
        assert_eq!(symbolic.ty().unwrap().to_string(), "i8[B,2]");
    }
}
