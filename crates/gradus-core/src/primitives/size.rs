//! A dimension as a number: how a program computes with the size of a symbolic axis.

use super::elementwise::kernel::filled;
use super::{Batch, Batched, Derivative, Infer, Jvp, Outputs, Primitive, Sample, Transpose, Transposed, Types};
use crate::array::Array;
use crate::error::{Result, error, fail};
use crate::primitives::Op;
use crate::rules_of;
use crate::types::{DType, Dim, Effects, Scalar, Type};

/// The number of a dimension, as a scalar. A call with a size that the dtype does not hold exactly, as every whole number up to it, is refused.
#[derive(Clone, Debug)]
pub struct Size {
    /// The dimension.
    pub dim: Dim,
    /// The dtype of the number.
    pub dtype: DType,
}

impl Primitive for Size {
    rules_of!("size"; dim, dtype);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(0)?;
        if self.dim.is_invalid() {
            fail!(Size, "a dimension that overflows has no number");
        }
        if !self.dtype.is_number() {
            fail!(DType, "a size is a number, not a {}", self.dtype);
        }
        if let Some((least, most)) = self.dtype.whole_range()
            && !(infer.at_least(&self.dim, &Dim::from(least)) && infer.at_least(&Dim::from(most), &self.dim))
        {
            return Err(error!(DType, "the size {} is no {} number", self.dim, self.dtype).help(format!(
                "the whole numbers of {} are those from {least} to {most}: cast the array first",
                self.dtype
            )));
        }
        Ok(smallvec::smallvec![Type::scalar(self.dtype)])
    }
    fn evaluate(&self, _: &[Array]) -> Result<Outputs> {
        let size =
            self.dim.constant().ok_or_else(|| error!(NotConcrete, "the dimension {} has no number yet", self.dim))?;
        Ok(smallvec::smallvec![filled(&Type::scalar(self.dtype), Scalar::I64(size).cast(self.dtype))])
    }
    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Zero)
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, _: &Batch<'_>) -> Result<Batched> {
        Ok(Batched::Missing("a size has no operands to batch"))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        [DType::I64, DType::F64, DType::U8]
            .map(|dtype| Sample::new(Op::new(Size { dim: Dim::from(7usize), dtype }), vec![]))
            .to_vec()
    }
}
