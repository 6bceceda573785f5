//! Custom calls that are known by their names: checks, marks of where things are, functions without an operation of their own, and LAPACK as JAX calls it.

use gradus_core::error::Result;
use gradus_core::{Array, DType, Scalar};

use super::elementwise::{apply, convert};
use super::linear::{adjoint, lower_mask};
use super::{Answer, On, many, one, types};
use crate::module::{Attribute, Attributes};

impl<'m> On<'_, 'm> {
    pub(super) fn custom_call(&mut self) -> Answer {
        let name: &'m str = match self.op.attributes.get("call_target_name") {
            Some(Attribute::String(bytes)) => std::str::from_utf8(bytes).unwrap_or_default(),
            Some(Attribute::Symbol(path)) => path.first().map_or("", String::as_str),
            _ => return Err(self.wrong("it lacks `call_target_name`")),
        };
        if name.starts_with("check.")
            && let Some(items) = self.check_call(name)?
        {
            return Ok(Some(items));
        }
        if let Some(short) = name.strip_prefix("mhlo.").or_else(|| name.strip_prefix("chlo.")) {
            if short == "topk" {
                let said = match self.op.attributes.get("mhlo.attributes") {
                    Some(Attribute::Dictionary(d)) => d,
                    _ => &self.op.attributes,
                };
                let (k, largest) = (said.integer("k"), said.integer("largest").unwrap_or(1) != 0);
                let Some(k) = k else { return Err(self.wrong("it lacks `k`")) };
                let k = self.natural("k", k)?;
                return self.top_k(k, largest);
            }
            if let Some(items) = self.chlo(short)? {
                return Ok(Some(items));
            }
        }
        if let Some(short) = name.strip_prefix("stablehlo.")
            && let Some(items) = self.dynamic(short)?
        {
            return Ok(Some(items));
        }
        match name {
            "Sharding"
            | "LayoutConstraint"
            | "annotate_device_placement"
            | "SPMDFullToShardShape"
            | "SPMDShardToFullShape"
            | "xla.sdy.FuncResultSharding"
            | "xla.sdy.Sharding"
            | "AnnotateDevicePlacement" => Ok(Some(vec![self.item(0)?])),
            "shape_assertion" => self.shape_assertion(),
            "cu_threefry2x32_ffi" | "cu_threefry2x32" => super::random::threefry(self),
            _ => match name.strip_prefix("lapack_").and_then(|n| n.strip_suffix("_ffi")) {
                Some(routine) => self.lapack(name, routine),
                None => Err(self.unknown(name)),
            },
        }
    }

    fn unknown(&self, name: &str) -> gradus_core::Error {
        self.refused(
            format!("nothing is known of the target `{name}`"),
            "write what it computes with operations of StableHLO, or as a primitive of your own",
        )
    }

    /// The options of a call: letters as numbers.
    fn options(&self) -> &'m Attributes {
        static NONE: std::sync::OnceLock<Attributes> = std::sync::OnceLock::new();
        match self.op.attributes.get("mhlo.backend_config").or_else(|| self.op.attributes.get("backend_config")) {
            Some(Attribute::Dictionary(d)) => d,
            _ => NONE.get_or_init(Attributes::default),
        }
    }

    fn letter(&self, name: &str, default: char) -> char {
        let said = self.options().integer(name).and_then(|n| u8::try_from(n).ok());
        said.map_or(default, char::from)
    }

    #[cfg(not(feature = "linalg"))]
    fn lapack(&mut self, name: &str, _: &str) -> Answer {
        Err(self.refused(
            format!("`{name}` needs the feature `linalg`"),
            "turn on the feature `linalg` of `gradus-stablehlo`",
        ))
    }

    #[cfg(feature = "linalg")]
    fn lapack(&mut self, name: &str, routine: &str) -> Answer {
        use gradus_core::primitives::linalg::{Cholesky, Eigh, Lu, Svd, TriangularSolve};
        use gradus_core::primitives::{Op, Outputs};
        use gradus_core::trace::bind_all;
        let all = |outputs: Outputs| match outputs.first().and_then(Array::error) {
            Some(e) => Err(e.clone()),
            None => Ok(outputs.into_vec()),
        };
        let a = self.x(0)?;
        // The first letter says the dtype.
        let Some(rest) = routine.get(1..) else { return Err(self.unknown(name)) };
        match rest {
            "potrf" => {
                let lower = self.letter("uplo", 'L') == 'L';
                let given = if lower { a.clone() } else { adjoint(&a) };
                let l = apply(&Cholesky, std::slice::from_ref(&given));
                let failed = self.not_numbers(&l, 1)?;
                // What stands in the other triangle stays.
                let whole = lower_mask(&given).select(&l, &given);
                many([if lower { whole } else { adjoint(&whole) }, failed])
            }
            "getrf" => {
                let parts = all(bind_all(Op::new(Lu), &[a]))?;
                let [lu, pivots, ..] = parts.as_slice() else { return Err(self.unknown(name)) };
                let info = self.info(2)?;
                // LAPACK counts rows from 1.
                many([lu.clone(), pivots + 1, info])
            }
            "trsm" => {
                let b = self.x(1)?;
                let (lower, unit) = (self.letter("uplo", 'L') == 'L', self.letter("diag", 'N') == 'U');
                let (left, how) = (self.letter("side", 'L') == 'L', self.letter("trans_x", 'N'));
                let a = if how == 'C' && a.dtype().is_complex() { a.conj() } else { a };
                let transpose = (how != 'N') == left;
                let system = TriangularSolve { lower, transpose, unit_diagonal: unit };
                let turned = super::linear::transposed;
                one(if left { system.of(&a, &b) } else { turned(&system.of(&a, &turned(&b))) })
            }
            "syevd" | "heevd" => {
                let lower = self.letter("uplo", 'L') == 'L';
                let vectors = self.letter("mode", 'V') == 'V';
                let given = if lower { a.clone() } else { adjoint(&a) };
                let parts = all(bind_all(Op::new(Eigh { vectors: true }), &[given]))?;
                let [values, v] = parts.as_slice() else { return Err(self.unknown(name)) };
                let v = if vectors { v.clone() } else { a };
                many([v, values.clone(), self.info(2)?])
            }
            "gesdd" => {
                let mode = self.letter("mode", 'S');
                if mode == 'N' {
                    // Nobody may read the vectors; who does sees that they are none.
                    let s = all(bind_all(Op::new(Svd { full: false, vectors: false }), std::slice::from_ref(&a)))?;
                    let [s] = s.as_slice() else { return Err(self.unknown(name)) };
                    return many([a, s.clone(), self.nothing(2)?, self.nothing(3)?, self.info(4)?]);
                }
                let op = Svd { full: mode == 'A', vectors: true };
                let parts = all(bind_all(Op::new(op), std::slice::from_ref(&a)))?;
                let [u, s, vt] = parts.as_slice() else { return Err(self.unknown(name)) };
                many([a, s.clone(), u.clone(), vt.clone(), self.info(4)?])
            }
            "geqrf" => {
                let (factors, taus) = super::reflectors::decomposed(&a)?;
                many([factors, taus])
            }
            "orgqr" | "ungqr" => one(super::reflectors::product(&a, &self.x(1)?)?),
            _ => Err(self.unknown(name)),
        }
    }

    /// A result without a number in it.
    fn nothing(&self, at: usize) -> Result<Array> {
        let ty = types::ty(self.result(at)?)?;
        Ok(Array::full_scalar(ty.shape().clone(), Scalar::F64(f64::NAN).cast(ty.dtype())))
    }

    /// A result that says that nothing went wrong.
    fn info(&self, at: usize) -> Result<Array> {
        let ty = types::ty(self.result(at)?)?;
        Ok(Array::full_scalar(ty.shape().clone(), Scalar::zero(ty.dtype())))
    }

    /// A result that is not 0 where a matrix has no numbers.
    fn not_numbers(&self, x: &Array, at: usize) -> Result<Array> {
        let ty = types::ty(self.result(at)?)?;
        let bad = x.ne(x).any_axes([-2, -1]);
        Ok(convert(&bad, DType::I32).cast(ty.dtype()))
    }
}
