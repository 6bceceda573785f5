//! A program called as one operation: what a staged function inside another becomes.

use std::sync::Arc;

use super::{
    Batch, Batched, Derivative, Infer, Jvp, Outputs, Partition, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::interpret::interpret;
use crate::primitives::Op;
use crate::program::Program;
use crate::rules_of;
use crate::transform;
use crate::types::Effects;

/// Runs a nested program. The program is closed: all it uses are its inputs.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is called.
    pub program: Arc<Program>,
}

impl Primitive for Call {
    rules_of!("call"; program);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let wanted = self.program.inputs();
        infer.arity(wanted.len())?;
        let inputs = infer.inputs;
        for (i, (want, have)) in wanted.iter().zip(inputs).enumerate() {
            if want.dtype() != have.dtype() || !infer.same_shape(want.shape(), have.shape()) {
                fail!(Signature, "`{}` takes {want} as input {i}, not {have}", self.program.name());
            }
        }
        for c in self.program.constraints() {
            infer.require(c.clone());
        }
        Ok(self.program.output_types().into())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        Ok(interpret(&self.program, inputs)?.into())
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        transform::jvp_of_call(&self.program, jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        transform::transpose_of_call(&self.program, transpose)
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        transform::batch_of_call(&self.program, batch)
    }
    fn holds_programs(&self) -> bool {
        true
    }
    fn partial_eval(&self, known: &[bool]) -> Result<Option<Partition>> {
        transform::split_of_call(&self.program, known)
    }
    fn effects(&self) -> Effects {
        self.program.effects()
    }
    fn samples() -> Vec<Sample> {
        let texts = [
            "fn f(x0: f64[3], x1: f64[3]) -> (f64[3], f64[]) {\n  x2: f64[3] = mul x0 x1\n  x3: f64[3] = sin x2\n  \
             x4: f64[] = reduce_sum{axes=[0]} x3\n  return x2, x4\n}\n",
            "fn g(x0: f64[3], x1: f64[3]) -> f64[3] {\n  return x1\n}\n",
        ];
        let inputs = vec![Array::from([0.5_f64, -1.0, 2.0]), Array::from([1.5_f64, 0.25, -0.5])];
        texts
            .iter()
            .filter_map(|t| t.parse::<Program>().ok())
            .map(|p| Sample::new(Op::new(Call { program: Arc::new(p) }), inputs.clone()))
            .collect()
    }
}
