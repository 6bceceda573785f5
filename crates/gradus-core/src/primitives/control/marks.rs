//! Operations that change no number but say something to transformations: where derivatives stop, what a value is
//! called when a checkpoint chooses what to save, and what the examples of a batch do together.

use crate::array::Array;
use crate::error::Result;
use crate::primitives::elementwise::{Compare, Direction};
use crate::primitives::{
    Batch, Batched, Derivative, Halves, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::rules_of;
use crate::scalar::{Local, Scalars};
use crate::types::{DType, Dim, Effects};

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
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        Some(s.operand(0))
    }
    fn halves(&self) -> Halves {
        Halves::Bits
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(StopGradient {}))
    }
    fn is_total(&self) -> bool {
        true
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
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        Some(s.operand(0))
    }
    fn halves(&self) -> Halves {
        Halves::Bits
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
        operands().map(|x| Sample::new(Op::new(Name { name: "hidden".into() }), vec![x])).to_vec()
    }
}

/// Numbers of steps. In a batch they are the most that any example has, and at least none: the same for all of them, so that
/// what is planned by them is planned once.
#[derive(Clone, Copy, Debug)]
pub struct BatchMost;

impl Primitive for BatchMost {
    rules_of!("batch_most");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.dtype(0, "numbers of steps", |d| d == DType::I64)?;
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
        let counts = &batch.inputs[0];
        let none = Array::zeros::<i64>(counts.shape().replaced(0, Dim::from(1usize)));
        let most = Array::concatenate([&none, counts], 0).max_axes(0);
        // It is asked again where the batch is an example of another.
        Ok(Batched::Common(smallvec::smallvec![crate::trace::bind(Op::fixed(&BatchMost), &[most])]))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        // The examples of a batch that a test makes of it are equal, and only then are they what each is alone.
        vec![Sample::new(Op::fixed(&BatchMost), vec![Array::from([3_i64, 3])])]
    }
}

/// Whether a step, which is smaller than the [`BatchMost`] of a number of steps, is smaller than that number itself: whether
/// it is one of the example's own. Outside of a batch it always is.
#[derive(Clone, Copy, Debug)]
pub struct OwnStep;

impl Primitive for OwnStep {
    rules_of!("own_step");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(2)?;
        infer.dtype(0, "a step", |d| d == DType::I64)?;
        let ty = infer.all_same()?;
        Ok(smallvec::smallvec![ty.with_dtype(DType::Bool)])
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        Ok(smallvec::smallvec![inputs[0].lt(&inputs[1]).ok()?])
    }
    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Zero)
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(Compare { direction: Direction::Lt }))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Op::fixed(&OwnStep), vec![Array::from(2_i64), Array::from(3_i64)])]
    }
}
