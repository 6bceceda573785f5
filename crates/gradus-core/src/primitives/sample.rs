//! Operands that show an operation at work. Tests of every rule are generated from them.

use super::Op;
use crate::array::Array;

/// An operation with operands it accepts.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The operation.
    pub op: Op,
    /// Concrete operands.
    pub inputs: Vec<Array>,
    /// Whether the operation is differentiable in a neighbourhood of the operands, so that finite differences apply.
    pub smooth: bool,
}

impl Sample {
    /// A sample at which the operation is differentiable (or has nothing to differentiate).
    pub fn new(op: Op, inputs: Vec<Array>) -> Sample {
        Sample { op, inputs, smooth: true }
    }

    /// Marks a sample at a kink, a tie or a pole: values are compared, derivatives are not.
    pub fn rough(self) -> Sample {
        Sample { smooth: false, ..self }
    }
}
