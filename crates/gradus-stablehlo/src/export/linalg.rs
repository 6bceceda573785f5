//! Decompositions of matrices: those that StableHLO has, and those that are programs of loops.

use gradus_core::primitives::Op;
use gradus_core::primitives::linalg::{Eigh, Lu, Qr, Svd, TriangularSolve};
use gradus_core::transform::vmap;
use gradus_core::{DType, Result, Scalar, Type};

use super::emit::{Emit, attributes, no_attributes, word};
use super::{decompose, error, fail};
use crate::module::{Attribute, Value};

impl Emit<'_> {
    /// The rule of a decomposition, if it is one.
    pub fn linear_algebra(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        let made = match (op.name(), operands, results) {
            ("cholesky", [a], [ty]) => {
                let a = self.real_diagonal(*a)?;
                let factor = self.op("stablehlo.cholesky", &[a], attributes([("lower", Attribute::Bool(true))]), ty)?;
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
            ("eig" | "schur", _, _) => {
                return Err(error!(MissingRule, "`{}` has no form in StableHLO", op.name()).help(
                    "compute it outside of what is exported; eigenvalues of symmetric matrices (`eigh`) and singular values can be exported",
                ));
            }
            (_, [a], _) => return self.decomposition(op, *a, results),
            _ => return Ok(None),
        };
        Ok(Some(vec![made]))
    }

    /// Of the diagonal of a Hermitian matrix only the real part is read.
    fn real_diagonal(&mut self, a: Value) -> Result<Value> {
        let ty = self.ty(a);
        if !ty.dtype().is_complex() {
            return Ok(a);
        }
        let rank = ty.rank();
        let (rows, columns) =
            (self.iota(DType::I32, ty.shape(), rank - 2)?, self.iota(DType::I32, ty.shape(), rank - 1)?);
        let on = self.compare("EQ", rows, columns)?;
        let re = self.part("stablehlo.real", a)?;
        let zero = self.like(re, 0.0)?;
        let real = self.op("stablehlo.complex", &[re, zero], no_attributes(), &ty)?;
        self.select(on, real, a)
    }

    /// A decomposition as a program of loops: a function of the module, which each matrix of a batch runs.
    fn decomposition(&mut self, op: &Op, a: Value, results: &[Type]) -> Result<Option<Vec<Value>>> {
        let ty = self.ty(a);
        let [front @ .., m, n] = ty.shape().dims() else { return Ok(None) };
        if !matches!(op.name(), "lu" | "qr" | "eigh" | "svd" | "pinv") {
            return Ok(None);
        }
        let (m, n) = (self.known(m, "a side of a matrix")?, self.known(n, "a side of a matrix")?);
        // Without an element there is nothing to decompose: what is left is the identity, or nothing.
        if m == 0 || n == 0 || front.iter().any(|d| d.constant() == Some(0)) {
            return self.of_nothing(op, results).map(Some);
        }
        let one = ty.with_shape([m, n].as_slice());
        let mut program = self.traced(op.name(), &[one], |inputs| {
            let [a] = inputs else { fail!(Internal, "a decomposition of one matrix") };
            match (op.downcast::<Qr>(), op.downcast::<Eigh>(), op.downcast::<Svd>()) {
                (Some(qr), _, _) => decompose::qr(a, m, n, qr.full),
                (_, Some(eigh), _) => decompose::eigh(a, n, eigh.vectors),
                (_, _, Some(svd)) => decompose::svd(a, m, n, svd.full, svd.vectors),
                _ if op.is::<Lu>() => decompose::lu(a, m, n),
                _ => decompose::pinv(a, m, n),
            }
        })?;
        for size in front.iter().rev() {
            program = vmap(&program, &[true], size)?;
        }
        self.call_program(&program.with_name(op.name()).into(), &[a]).map(Some)
    }

    /// The results of a decomposition of matrices without elements: a square factor is the identity, all else has no elements or is zero.
    fn of_nothing(&mut self, op: &Op, results: &[Type]) -> Result<Vec<Value>> {
        let mut made = Vec::new();
        for ty in results {
            let zero = self.splat(ty, Scalar::zero(ty.dtype()))?;
            let rank = ty.rank();
            let square = rank >= 2 && ty.shape().get(rank - 1) == ty.shape().get(rank - 2);
            made.push(if matches!(op.name(), "qr" | "svd") && square && ty.shape().count() != Some(0) {
                let (rows, columns) =
                    (self.iota(DType::I32, ty.shape(), rank - 2)?, self.iota(DType::I32, ty.shape(), rank - 1)?);
                let on = self.compare("EQ", rows, columns)?;
                let one = self.splat(ty, Scalar::one(ty.dtype()))?;
                self.select(on, one, zero)?
            } else if op.is::<Lu>() && ty.dtype() == DType::I32 && ty.shape().count() != Some(0) {
                self.iota(DType::I32, ty.shape(), rank - 1)?
            } else {
                zero
            });
        }
        Ok(made)
    }
}
