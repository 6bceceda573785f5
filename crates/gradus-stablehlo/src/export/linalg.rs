//! Decompositions of matrices.

use gradus_core::primitives::Op;
use gradus_core::primitives::linalg::TriangularSolve;
use gradus_core::{DType, Result, Type};

use super::emit::{Emit, attributes, word};
use crate::module::{Attribute, Value};

impl Emit<'_> {
    /// The rule of a decomposition, if it is one.
    pub fn linear_algebra(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        let made = match (op.name(), operands, results) {
            ("cholesky", [a], [ty]) => {
                let factor =
                    self.op("stablehlo.cholesky", &[*a], attributes([("lower", Attribute::Bool(true))]), ty)?;
                // What stands above the diagonal is not said there; it is zero here.
                let rank = ty.rank();
                let (rows, columns) =
                    (self.iota(DType::I32, ty.shape(), rank - 2)?, self.iota(DType::I32, ty.shape(), rank - 1)?);
                let below = self.compare("GE", rows, columns)?;
                let zero = self.like(factor, 0.0)?;
                self.select(below, factor, zero)?
            }
            ("triangular_solve", [a, b], [ty]) => {
                let Some(solve) = op.downcast::<TriangularSolve>() else { return Ok(None) };
                let turned = if solve.transpose { "TRANSPOSE" } else { "NO_TRANSPOSE" };
                let more = attributes([
                    ("left_side", Attribute::Bool(true)),
                    ("lower", Attribute::Bool(solve.lower)),
                    ("unit_diagonal", Attribute::Bool(solve.unit_diagonal)),
                    ("transpose_a", word("stablehlo.transpose", turned)),
                ]);
                self.op("stablehlo.triangular_solve", &[*a, *b], more, ty)?
            }
            _ => return Ok(None),
        };
        Ok(Some(vec![made]))
    }
}
