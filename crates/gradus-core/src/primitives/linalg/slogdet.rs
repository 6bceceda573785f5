//! Determinants, as a sign and the logarithm of the size: the product itself soon leaves the range of numbers.

use super::{Lu, Solve, complex_matrices, diagonal, identity, in_front, matrices, square};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::primitives::reduce::array;
use crate::primitives::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Limits, Op, Outputs, Primitive, Sample, Transpose, Transposed,
    Types,
};
use crate::rules_of;
use crate::trace::bind_all;
use crate::types::{DType, Effects, Shape, Type};

/// The sign of the determinant (of complex matrices a number of size 1) and the logarithm of its absolute value. Of a singular matrix they
/// are 0 and -∞.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlogDet;

impl Primitive for SlogDet {
    rules_of!("slogdet");

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let (ty, front, _) = square(infer, 0)?;
        Ok(smallvec::smallvec![ty.with_shape(front.clone()), Type::new(ty.dtype().real_part(), front)])
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        from_factors(inputs)
    }

    /// `log det` has the derivative `tr(A⁻¹·A_dot)`: its real part is that of the logarithm of the size, its imaginary part
    /// turns the sign.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([a], [Some(a_dot)]) = (jvp.primals, jvp.tangents) else { return Ok(Derivative::Zero) };
        let [sign, _] = jvp.outputs() else { fail!(Rule, "has two results") };
        let eye = identity(&a.dim(-1), a.dtype()).broadcast_to(a.shape());
        let inverse = Solve { transpose: true }.of(a, &eye);
        let log_dot = (inverse * a_dot).sum_axes([-2, -1]);
        let sign_dot = a.dtype().is_complex().then(|| {
            let turn = log_dot.imag();
            sign * Array::complex(&turn.zeros_like(), &turn)
        });
        Ok(Derivative::Tangents(smallvec::smallvec![sign_dot, Some(log_dot.real())]))
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        in_front(batch, Op::fixed(&SlogDet))
    }

    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        Some(Box::new(from_factors))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        super::limits("the determinant of a singular matrix is 0, and has no logarithm")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |a: Array| Sample::new(Op::fixed(&SlogDet), vec![a]);
        let turned = |dims: &[usize], seed| matrices(dims, seed).flip(-2);
        vec![
            make(matrices(&[1, 1], 1)),
            make(turned(&[2, 2], 2)),
            make(turned(&[3, 3], 3)),
            make(turned(&[2, 3, 3], 4)),
            make(turned(&[20, 20], 5)).rough(),
            make(turned(&[3, 3], 6).cast(DType::F32)).rough(),
            make(complex_matrices(&[2, 2], 7)),
            make(complex_matrices(&[2, 3, 3], 8).cast(DType::C64)).rough(),
            make(array(&[2, 2], vec![1.0, 2.0, 2.0, 4.0])).rough(),
            make(matrices(&[0, 0], 1)),
            make(matrices(&[0, 2, 2], 1)),
        ]
    }
}

/// Both from the factors: the diagonal of U, and a change of sign for each exchange of rows.
fn from_factors(inputs: &[Array]) -> Result<Outputs> {
    let [a] = inputs else { fail!(Verify, "takes one operand") };
    let factors = bind_all(Op::fixed(&Lu), &[a.clone()]);
    let [lu, pivots, _] = &factors[..] else { fail!(Rule, "factors are three arrays") };
    let u = diagonal(lu);
    let places = Array::iota(DType::I32, [a.dim(-1)].into_iter().collect::<Shape>(), 0);
    let one = super::number(1.0, u.dtype());
    let sign = u.sign() * pivots.ne(&places).select(-&one, &one);
    let outputs: Outputs = smallvec::smallvec![sign.prod_axes(-1), u.abs().log().sum_axes(-1)];
    outputs.iter().try_for_each(|x| x.ty().map(|_| ()))?;
    Ok(outputs)
}
