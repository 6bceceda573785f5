//! Systems of square matrices.

use super::lu::Factor;
use super::plain::{Field, Triangle};
use super::triangular::solve_in_place;
use super::{
    Lu, TriangularSolve, complex_matrices, dispatch_field, each, each_mut, matrices, more_columns, rows_at, sizes,
    small, system, zeroed,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::{one_output, operand};
use crate::primitives::reduce::{array, complex_wave, elements, wave};
use crate::primitives::rules::one;
use crate::primitives::shaping::fit;
use crate::primitives::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Limits, Linear, Op, Outputs, Primitive, Sample, Transpose,
    Transposed, Types,
};
use crate::rules_of;
use crate::trace::{bind, bind_all};
use crate::types::{DType, Effects, Type};

/// The solution X of `A·X = B`. A singular A gives infinities and NaN.
///
/// It is made of [`Lu`] and two triangular systems. As one operation its derivative is another system with the same matrix, instead of the
/// derivatives of factors; once a program is compiled, systems with one matrix share its factors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Solve {
    /// Whether the system is `Aᵀ·X = B`.
    pub transpose: bool,
}

impl Solve {
    /// The solution.
    pub fn of(self, a: &Array, b: &Array) -> Array {
        bind(Op::new(self), &[a.clone(), b.clone()])
    }
}

impl Primitive for Solve {
    rules_of!("solve"; transpose);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        one(system(infer)?)
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (a, b) = (operand(inputs, 0)?, operand(inputs, 1)?);
        one_output(dispatch_field!(a.ty().dtype(), T => solutions::<T>(a, b, self.transpose)))
    }

    /// `A·X_dot = B_dot − A_dot·X`.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([a, _], [a_dot, b_dot]) = (jvp.primals, jvp.tangents) else { fail!(Rule, "wants two operands") };
        let moved = match a_dot {
            Some(a_dot) => {
                let [x] = jvp.outputs() else { fail!(Rule, "has one result") };
                Some(if self.transpose { a_dot.swap_axes(-1, -2).matmul(x) } else { a_dot.matmul(x) })
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
        let other = Solve { transpose: !self.transpose };
        let b_bar = x_bar.as_ref().map(|x_bar| fit(other.of(a, x_bar), b.shape()));
        Ok(Transposed::Cotangents(smallvec::smallvec![None, b_bar]))
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        more_columns(batch, Op::new(*self))
    }

    fn expand(&self, operands: &[Type]) -> Option<Expansion<'_>> {
        let unrolled = small::system(operands);
        Some(Box::new(move |inputs| {
            let [a, b] = inputs else { fail!(Verify, "takes two operands") };
            let factors = bind_all(Op::fixed(&Lu), &[a.clone()]);
            let [lu, _, order] = &factors[..] else { fail!(Rule, "factors are three arrays") };
            let (lower, upper) = (TriangularSolve::lower().unit(), TriangularSolve::upper());
            let ordered = |x: &Array, back: bool| match unrolled {
                Some((n, k)) => small::ordered(x, order, n, k, back),
                None if back => rows_at(x, &order.argsort(-1)),
                None => rows_at(x, order),
            };
            Ok(smallvec::smallvec![match self.transpose {
                false => upper.of(lu, &lower.of(lu, &ordered(b, false))),
                true => ordered(&lower.transposed().of(lu, &upper.transposed().of(lu, b)), true),
            }])
        }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        super::limits("a singular matrix has no solution, or many")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |transpose, a, b| Sample::new(Op::new(Solve { transpose }), vec![a, b]);
        let turned = |dims: &[usize], seed| matrices(dims, seed).flip(-2);
        vec![
            make(false, matrices(&[1, 1], 1), wave(&[1, 1], 2)),
            make(false, turned(&[2, 2], 3), wave(&[2, 1], 4)),
            make(true, turned(&[3, 3], 5), wave(&[3, 2], 6)),
            make(false, turned(&[3, 3], 7), wave(&[3, 2], 8)),
            make(true, turned(&[2, 2, 2], 9), wave(&[2, 2, 1], 10)),
            make(false, turned(&[9, 9], 11), wave(&[9, 2], 12)).rough(),
            make(true, turned(&[20, 20], 13), wave(&[20, 5], 14)).rough(),
            make(true, turned(&[3, 3], 15).cast(DType::F32), wave(&[3, 1], 16).cast(DType::F32)).rough(),
            make(false, complex_matrices(&[2, 2], 17).flip(-2), complex_wave(&[2, 2], 18)),
            make(true, complex_matrices(&[2, 2], 19).cast(DType::C64), complex_wave(&[2, 1], 20).cast(DType::C64))
                .rough(),
            make(false, array(&[2, 2], vec![0.0; 4]), array(&[2, 1], vec![0.0; 2])).rough(),
            make(false, matrices(&[0, 0], 1), wave(&[0, 2], 1)),
            make(true, matrices(&[2, 2], 1), wave(&[2, 0], 1)),
            make(false, matrices(&[0, 2, 2], 1), wave(&[0, 2, 1], 1)),
        ]
    }
}

fn solutions<T: Field>(a: &Concrete, b: &Concrete, transpose: bool) -> Result<Concrete> {
    let ([_, n, _], [_, _, k]) = (sizes(a), sizes(b));
    let mut x = b.try_to_vec::<T>()?;
    let a = elements::<T>(a)?;
    let mut factor = Factor::<T>::new(n, n)?;
    let (mut lu, mut moved) = (zeroed::<T>(n * n)?, zeroed::<T>(n * k)?);
    let lower = Triangle { lower: true, transpose, unit: true };
    let upper = Triangle { lower: false, transpose, unit: false };
    for (a, x) in each(&a, n * n).zip(each_mut(&mut x, n * k)) {
        lu.copy_from_slice(a);
        let order = factor.in_place(&mut lu)?;
        let rows = order.iter().enumerate().map(|(i, &o)| (i * k..(i + 1) * k, o * k..(o + 1) * k));
        if transpose {
            solve_in_place(&lu, x, n, k, upper)?;
            solve_in_place(&lu, x, n, k, lower)?;
            rows.for_each(|(i, o)| moved[o].copy_from_slice(&x[i]));
            x.copy_from_slice(&moved);
        } else {
            rows.for_each(|(i, o)| moved[i].copy_from_slice(&x[o]));
            solve_in_place(&lu, &mut moved, n, k, lower)?;
            solve_in_place(&lu, &mut moved, n, k, upper)?;
            x.copy_from_slice(&moved);
        }
    }
    Ok(Concrete::dense(b.ty().clone(), x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimize::{Exactness, for_execution, optimize};
    use crate::primitives::linalg::SlogDet;
    use crate::trace::trace_closed;
    use crate::transform::vjp;

    /// How often an operation stands in a program.
    fn count<P: Primitive>(program: &crate::program::Program) -> usize {
        program.equations().iter().filter(|e| e.op().is::<P>()).count()
    }

    #[test]
    fn systems_and_determinants_of_one_matrix_share_its_factors() {
        let specs = [Array::spec("f64[20,20]"), Array::spec("f64[20,1]")];
        let program = trace_closed("f", &specs, |x| {
            let log = bind_all(Op::fixed(&SlogDet), &x[..1]).remove(1);
            Ok(vec![Solve { transpose: false }.of(&x[0], &x[1]).sum() + log])
        })
        .unwrap();
        let reverse = vjp(&program, &[true, true]).unwrap();
        // The pullback beside the value, as `value_and_grad` has them.
        let inputs: Vec<Array> = program.inputs().iter().cloned().map(Array::of_type).collect();
        let both = trace_closed("g", &inputs, |x| {
            let mut made = crate::trace::inline(&reverse.primal, x)?;
            let mut residuals = made.split_off(1);
            residuals.push(super::super::number(1.0, DType::F64));
            made.extend(crate::trace::inline(&reverse.linear, &residuals)?);
            Ok(made)
        })
        .unwrap();
        let run = for_execution(&optimize(&both).unwrap(), Exactness::Exact).unwrap();
        assert_eq!((count::<Lu>(&run), count::<Solve>(&run)), (1, 0), "{run}");
    }

    #[test]
    fn small_matrices_become_arithmetic() {
        let specs = [Array::spec("f64[B,4,4]"), Array::spec("f64[B,4,2]")];
        let program = trace_closed("f", &specs, |x| Ok(vec![Solve { transpose: false }.of(&x[0], &x[1])])).unwrap();
        let run = for_execution(&program, Exactness::Exact).unwrap();
        assert_eq!((count::<Lu>(&run), count::<TriangularSolve>(&run)), (0, 0), "{run}");
    }
}
