//! Determinants, as a sign and the logarithm of the size: the product itself soon leaves the range of numbers.

use super::lu::Factor;
use super::plain::Field;
use super::{
    Lu, Solve, complex_matrices, diagonal, dispatch_field, each_mut, identity, in_front, matrices, sizes, square,
    zeroed,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, fail};
use crate::primitives::elementwise::kernel::operand;
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
        let a = operand(inputs, 0)?;
        dispatch_field!(a.ty().dtype(), T => determinants::<T>(a))
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

    /// The diagonal of U, and a change of sign for each exchange of rows.
    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        Some(Box::new(|inputs| {
            let [a] = inputs else { fail!(Verify, "takes one operand") };
            let factors = bind_all(Op::fixed(&Lu), &[a.clone()]);
            let [lu, pivots, _] = &factors[..] else { fail!(Rule, "factors are three arrays") };
            let u = diagonal(lu);
            let places = Array::iota(DType::I32, [a.dim(-1)].into_iter().collect::<Shape>(), 0);
            let one = super::number(1.0, u.dtype());
            let sign = u.sign() * pivots.ne(&places).select(-&one, &one);
            Ok(smallvec::smallvec![sign.prod_axes(-1), u.abs().log().sum_axes(-1)])
        }))
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

fn determinants<T: Field>(a: &Concrete) -> Result<Outputs> {
    let [count, n, _] = sizes(a);
    let mut lu = a.try_to_vec::<T>()?;
    let mut signs = zeroed::<T>(count)?;
    let mut logs = zeroed::<T::Part>(count)?;
    // What is a product or a sum of nothing.
    signs.fill(T::ONE);
    let mut factor = Factor::<T>::new(n, n)?;
    for (i, a) in each_mut(&mut lu, n * n).enumerate() {
        let odd = exchanged_often(factor.in_place(a)?)?;
        let mut sign = if odd { T::default() - T::ONE } else { T::ONE };
        let mut log = T::Part::default();
        for &u in a.iter().step_by(n + 1) {
            sign *= u.direction();
            log += u.log_size();
        }
        signs[i] = sign;
        logs[i] = log;
    }
    let front: Shape = a.dims().iter().take(a.dims().len().saturating_sub(2)).copied().collect();
    let log = Type::new(a.ty().dtype().real_part(), front.clone());
    Ok(smallvec::smallvec![Concrete::dense(a.ty().with_shape(front), signs).into(), Concrete::dense(log, logs).into()])
}

/// Whether an order is an odd number of exchanges away from the natural one.
fn exchanged_often(order: &[usize]) -> Result<bool> {
    let mut seen = zeroed::<u8>(order.len())?;
    let mut odd = false;
    for start in 0..order.len() {
        let (mut at, mut length) = (start, 0);
        while seen[at] == 0 {
            seen[at] = 1;
            at = order[at];
            length += 1;
        }
        // A cycle of so many rows is one exchange fewer.
        odd ^= length > 0 && length % 2 == 0;
    }
    Ok(odd)
}
