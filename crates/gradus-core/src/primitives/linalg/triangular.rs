//! Triangular systems.

use faer::Par;
use faer::linalg::triangular_solve as faer_solve;

use super::plain::{self, Field, PLAIN, Triangle};
use super::{
    columns_of, complex_matrices, dispatch_field, each, each_mut, matrices, more_columns, rows_of, sizes, small,
    system, to_columns, to_rows, zeroed,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::{one_output, operand};
use crate::primitives::reduce::{complex_wave, elements, wave};
use crate::primitives::rules::one;
use crate::primitives::shaping::fit;
use crate::primitives::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Limits, Linear, Op, Outputs, Primitive, Sample, Transpose,
    Transposed, Types,
};
use crate::rules_of;
use crate::trace::bind;
use crate::types::{DType, Effects, Type};

/// The solution X of `A·X = B`, where of A only one triangle is read. A zero on the diagonal gives what division by zero gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TriangularSolve {
    /// Whether it is the lower triangle.
    pub lower: bool,
    /// Whether the system is `Aᵀ·X = B`.
    pub transpose: bool,
    /// Whether the diagonal is taken for ones and not read.
    pub unit_diagonal: bool,
}

impl TriangularSolve {
    /// The system of a lower triangle.
    pub fn lower() -> TriangularSolve {
        TriangularSolve { lower: true, transpose: false, unit_diagonal: false }
    }

    /// The system of an upper triangle.
    pub fn upper() -> TriangularSolve {
        TriangularSolve { lower: false, ..TriangularSolve::lower() }
    }

    /// With the matrix transposed.
    pub fn transposed(self) -> TriangularSolve {
        TriangularSolve { transpose: !self.transpose, ..self }
    }

    /// With ones on the diagonal.
    pub fn unit(self) -> TriangularSolve {
        TriangularSolve { unit_diagonal: true, ..self }
    }

    /// The solution.
    pub fn of(self, a: &Array, b: &Array) -> Array {
        bind(Op::new(self), &[a.clone(), b.clone()])
    }

    fn triangle(self) -> Triangle {
        Triangle { lower: self.lower, transpose: self.transpose, unit: self.unit_diagonal }
    }

    /// The part of a matrix that is read, the way round it is used.
    fn part(self, a: &Array) -> Array {
        let strict = isize::from(self.unit_diagonal);
        let part = if self.lower { a.tril(-strict) } else { a.triu(strict) };
        if self.transpose { part.swap_axes(-1, -2) } else { part }
    }
}

impl Primitive for TriangularSolve {
    rules_of!("triangular_solve"; lower, transpose, unit_diagonal);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        one(system(infer)?)
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (a, b) = (operand(inputs, 0)?, operand(inputs, 1)?);
        one_output(dispatch_field!(a.ty().dtype(), T => solutions::<T>(a, b, self.triangle())))
    }

    /// `A·X_dot = B_dot − A_dot·X`.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([a, _], [a_dot, b_dot]) = (jvp.primals, jvp.tangents) else { fail!(Rule, "wants two operands") };
        let moved = match a_dot {
            Some(a_dot) => {
                let [x] = jvp.outputs() else { fail!(Rule, "has one result") };
                Some(self.part(a_dot).matmul(x))
            }
            None => None,
        };
        match (b_dot, moved) {
            (Some(b_dot), Some(moved)) => Derivative::one(self.of(a, &(b_dot - fit(moved, b_dot.shape())))),
            (Some(b_dot), None) => Derivative::one(self.of(a, b_dot)),
            (None, Some(moved)) => Derivative::one(-self.of(a, &moved)),
            (None, None) => Ok(Derivative::Zero),
        }
    }

    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let ([Linear::Known(a), Linear::Unknown(b)], [x_bar]) = (transpose.operands, transpose.cotangents) else {
            return Ok(Transposed::NotLinear);
        };
        let b_bar = x_bar.as_ref().map(|x_bar| fit(self.transposed().of(a, x_bar), b.shape()));
        Ok(Transposed::Cotangents(smallvec::smallvec![None, b_bar]))
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        more_columns(batch, Op::new(*self))
    }

    fn expand(&self, operands: &[Type]) -> Option<Expansion<'_>> {
        let (n, k) = small::system(operands)?;
        Some(Box::new(move |inputs| {
            let [a, b] = inputs else { fail!(Verify, "takes two operands") };
            Ok(smallvec::smallvec![small::triangular(a, b, n, k, self.triangle())])
        }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        super::limits("a zero on the diagonal has no solution")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |op: TriangularSolve, a, b| Sample::new(Op::new(op), vec![a, b]);
        let (lower, upper) = (TriangularSolve::lower(), TriangularSolve::upper());
        vec![
            make(lower, matrices(&[2, 2], 1), wave(&[2, 1], 2)),
            make(lower, matrices(&[3, 3], 3), wave(&[3, 2], 4)),
            make(lower.transposed(), matrices(&[3, 3], 5), wave(&[3, 2], 6)),
            make(upper, matrices(&[3, 3], 7), wave(&[3, 1], 8)),
            make(upper.transposed(), matrices(&[2, 2], 9), wave(&[2, 2], 10)),
            make(lower.unit(), matrices(&[3, 3], 11), wave(&[3, 1], 12)),
            make(upper.transposed().unit(), matrices(&[2, 2], 13), wave(&[2, 1], 14)),
            make(upper, matrices(&[2, 2, 2], 15), wave(&[2, 2, 3], 16)),
            make(lower.transposed(), matrices(&[9, 9], 17), wave(&[9, 1], 18)).rough(),
            make(upper.transposed(), matrices(&[3, 3], 19).cast(DType::F32), wave(&[3, 1], 20).cast(DType::F32))
                .rough(),
            make(lower, complex_matrices(&[2, 2], 21), complex_wave(&[2, 2], 22)),
            make(upper, complex_matrices(&[2, 2], 23).cast(DType::C64), complex_wave(&[2, 1], 24).cast(DType::C64))
                .rough(),
            make(lower, matrices(&[0, 0], 1), wave(&[0, 2], 1)),
            make(lower, matrices(&[2, 2], 1), wave(&[2, 0], 1)),
            make(upper, matrices(&[0, 2, 2], 1), wave(&[0, 2, 1], 1)),
        ]
    }
}

fn solutions<T: Field>(a: &Concrete, b: &Concrete, triangle: Triangle) -> Result<Concrete> {
    let ([_, n, _], [_, _, k]) = (sizes(a), sizes(b));
    let mut x = b.try_to_vec::<T>()?;
    let a = elements::<T>(a)?;
    for (a, x) in each(&a, n * n).zip(each_mut(&mut x, n * k)) {
        solve_in_place(a, x, n, k, triangle)?;
    }
    Ok(Concrete::dense(b.ty().clone(), x))
}

/// Solves one system in the place of its right-hand sides. A few columns are as fast in loops over rows, where the matrix lies as it is; and only they divide by
/// a diagonal whose reciprocals are no numbers.
pub(super) fn solve_in_place<T: Field>(a: &[T], x: &mut [T], n: usize, k: usize, t: Triangle) -> Result<()> {
    if n <= PLAIN || k < 4 || !(t.unit || a.iter().step_by(n + 1).all(|v| v.has_reciprocal())) {
        plain::triangular(a, x, n, k, t);
        return Ok(());
    }
    let mut matrix = zeroed::<T>(n * n)?;
    to_columns(a, &mut matrix, n, n);
    let a = rows_of(&matrix, n, n);
    // In columns it is the transpose of what `rows_of` sees.
    let a = if t.transpose { a } else { a.transpose() };
    let mut columns = zeroed::<T>(n * k)?;
    to_columns(x, &mut columns, n, k);
    let b = columns_of(&mut columns, n, k);
    match (t.lower != t.transpose, t.unit) {
        (true, false) => faer_solve::solve_lower_triangular_in_place(a, b, Par::Seq),
        (true, true) => faer_solve::solve_unit_lower_triangular_in_place(a, b, Par::Seq),
        (false, false) => faer_solve::solve_upper_triangular_in_place(a, b, Par::Seq),
        (false, true) => faer_solve::solve_unit_upper_triangular_in_place(a, b, Par::Seq),
    }
    to_rows(&columns, x, n, k);
    Ok(())
}
