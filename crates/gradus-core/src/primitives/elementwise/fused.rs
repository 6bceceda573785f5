//! A product and a sum with one rounding, for formulas whose last bit is somebody else's promise.
//!
//! The pass `contract` makes it of products and sums where nobody asks; what is written so is fused everywhere, in the interpreter too.

use super::kernel::{one_output, operand, zip3};
use super::unary::elementwise_rules;
use super::{Takes, same_type};
use crate::array::Array;
use crate::error::{Result, error, fail};
use crate::primitives::{
    Batch, Batched, Derivative, Entry, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types, entry,
};
use crate::rules_of;
use crate::scalar::{self, Local, Scalars};
use crate::types::{DType, Effects};

/// The product of the first two operands and the third added to it, rounded once. Of `f32` and `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub struct MulAdd;

impl Primitive for MulAdd {
    rules_of!("mul_add");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let ty = same_type(infer, 3, Takes::Floats)?;
        if ty.dtype().size() < 4 {
            return Err(error!(DType, "a fused product is one of f32 or f64, not {ty}").help("write `x * y + z`"));
        }
        Ok(smallvec::smallvec![ty])
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (x, y, z) = (operand(inputs, 0)?, operand(inputs, 1)?, operand(inputs, 2)?);
        one_output(match x.ty().dtype() {
            DType::F32 => zip3(x, y, z, f32::mul_add),
            DType::F64 => zip3(x, y, z, f64::mul_add),
            other => fail!(DType, "no numbers for {other}"),
        })
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([x, y, _], [x_dot, y_dot, z_dot]) = (jvp.primals, jvp.tangents) else {
            fail!(Rule, "wants three operands")
        };
        let parts = [x_dot.as_ref().map(|t| t * y), y_dot.as_ref().map(|t| x * t), z_dot.clone()];
        parts.into_iter().flatten().reduce(|a, b| a + b).map_or(Ok(Derivative::Zero), Derivative::one)
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        Some(s.op(scalar::Op::Fma, &s.operands()))
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        let op = Op::new(MulAdd);
        let three = |d: DType| {
            [[-1.0_f64, 0.1, 2.0, 1.1], [0.3, 0.2, 3.5, 1.5], [1.0, -0.02, 3.0, -1.65]]
                .map(|v| Array::from(v).cast(d))
                .to_vec()
        };
        vec![
            Sample::new(op.clone(), three(DType::F64)),
            Sample::new(op.clone(), three(DType::F32)).rough(),
            Sample::new(op, vec![Array::from(0.1_f64), Array::from(0.1_f64), Array::from(-0.01_f64)]),
        ]
    }
}

pub(super) fn entries() -> Vec<Entry> {
    vec![entry::<MulAdd>("mul_add")]
}
