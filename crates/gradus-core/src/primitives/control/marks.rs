//! Operations that change no number but say something to transformations: where derivatives stop, and what a value is
//! called when a checkpoint chooses what to save.

use crate::array::Array;
use crate::error::Result;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::types::Effects;

fn same(infer: &mut Infer<'_>) -> Result<Types> {
    infer.arity(1)?;
    infer.all_same().map(|t| smallvec::smallvec![t])
}

fn operands() -> [Array; 2] {
    [Array::from([0.5_f64, -2.0]), Array::from([3_i32, 4])]
}

/// The operand; its derivative is zero.
#[derive(Clone, Debug)]
pub struct StopGradient {}

impl Primitive for StopGradient {
    rules_of!("stop_gradient");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        same(infer)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        Ok(inputs.into())
    }
    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Zero)
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(StopGradient {}))
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        // Differences of values are not zero here, which is the point: only values and batches are compared.
        operands().map(|x| Sample::new(Op::new(StopGradient {}), vec![x]).rough()).to_vec()
    }
}

/// The operand under a name that a checkpoint's policy can ask for.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name.
    pub name: String,
}

impl Primitive for Name {
    rules_of!("name"; name);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        same(infer)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        Ok(inputs.into())
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        // The name is the value's; a tangent has none.
        Ok(Derivative::Tangents(smallvec::smallvec![jvp.tangents[0].clone()]))
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::Cotangents(smallvec::smallvec![transpose.cotangents[0].clone()]))
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(self.clone()))
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        operands().map(|x| Sample::new(Op::new(Name { name: "hidden".into() }), vec![x])).to_vec()
    }
}
