//! Products of arrays: dot, matmul, tensordot and their kin, all made of one contraction. `einsum` is in its own file.

mod einsum;

use super::operand::{broadcast, broadcast_shapes, checked};
use super::shaping::{apply, promoted};
use super::{Array, IntoAxes};
use crate::error::{Result, counted, error, fail};
use crate::primitives::dot::DotGeneral;
use crate::primitives::reduce::ReduceSum;
use crate::types::{Decision, Shape};

/// What may be written as the axes of a [`Array::tensordot`]: a count, or a pair of lists.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot say which axes to contract")]
pub trait IntoContraction {
    /// The axes of both sides, paired by position.
    fn into_contraction(self, left_rank: usize, right_rank: usize) -> Result<(Vec<usize>, Vec<usize>)>;
}

macro_rules! counts {
    ($($t:ty),*) => {$(
        /// The last so many axes of the left side with the first so many of the right one.
        impl IntoContraction for $t {
            fn into_contraction(self, left_rank: usize, right_rank: usize) -> Result<(Vec<usize>, Vec<usize>)> {
                match usize::try_from(self) {
                    Ok(n) if n <= left_rank.min(right_rank) => {
                        Ok((Vec::from_iter(left_rank - n..left_rank), Vec::from_iter(0..n)))
                    }
                    _ => fail!(Axis, "{self} axes cannot be paired: the sides have {left_rank} and {right_rank}"),
                }
            }
        }
    )*};
}
counts!(i32, usize);

impl<A: IntoAxes, B: IntoAxes> IntoContraction for (A, B) {
    fn into_contraction(self, left_rank: usize, right_rank: usize) -> Result<(Vec<usize>, Vec<usize>)> {
        let (left, right) = (self.0.into_axes(left_rank)?, self.1.into_axes(right_rank)?);
        if left.len() != right.len() {
            fail!(
                Axis,
                "{} of the left side cannot be paired with {} of the right one",
                counted(left.len(), "axis"),
                right.len()
            );
        }
        Ok((left, right))
    }
}

/// Two arrays with one dtype.
#[track_caller]
fn pair(a: &Array, b: &Array) -> Result<(Array, Array)> {
    let mut both = promoted(vec![a.clone().ok()?, b.clone().ok()?])?.into_iter();
    match (both.next(), both.next()) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => fail!(Rule, "a pair lost an array"),
    }
}

/// Sums products over paired axes. The result has the batch axes, then those left of `a`, then those left of `b`.
#[track_caller]
fn contract(a: &Array, b: &Array, axes: (Vec<usize>, Vec<usize>), batch: (Vec<usize>, Vec<usize>)) -> Result<Array> {
    let (ta, tb) = (a.ty()?, b.ty()?);
    for (&i, &j) in axes.0.iter().zip(&axes.1).chain(batch.0.iter().zip(&batch.1)) {
        let (Some(x), Some(y)) = (ta.shape().get(i), tb.shape().get(j)) else {
            fail!(Axis, "axes {i} of {ta} and {j} of {tb} cannot be contracted");
        };
        if x.equals(y) == Decision::No {
            return Err(error!(
                Shape,
                "a product of {ta} and {tb}: axis {i} of the left side is {x}, axis {j} of the right one {y}"
            )
            .help("the axes that are summed over have to be equal"));
        }
    }
    let dot = DotGeneral { lhs_contract: axes.0, rhs_contract: axes.1, lhs_batch: batch.0, rhs_batch: batch.1 };
    apply(dot, &[a.clone(), b.clone()])
}

impl Array {
    /// The dot product as in NumPy: of vectors the inner product, of matrices the matrix product, with a scalar the
    /// product; otherwise a sum over the last axis of this and the last but one (or only) axis of the other.
    #[doc(alias = "matvec")]
    #[doc(alias = "vecmat")]
    #[track_caller]
    pub fn dot(&self, other: &Array) -> Array {
        checked(self.try_dot(other))
    }

    #[track_caller]
    fn try_dot(&self, other: &Array) -> Result<Array> {
        let (a, b) = pair(self, other)?;
        if a.rank() == 0 || b.rank() == 0 {
            return (&a * &b).ok();
        }
        contract(&a, &b, (vec![a.rank() - 1], vec![b.rank().saturating_sub(2)]), (vec![], vec![]))
    }

    /// The matrix product of the last two axes, with the axes before broadcast together. A vector on the left is a
    /// row, on the right a column, and that axis is not in the result.
    #[doc(alias = "batch_matmul")]
    #[track_caller]
    pub fn matmul(&self, other: &Array) -> Array {
        checked(self.try_matmul(other))
    }

    #[track_caller]
    fn try_matmul(&self, other: &Array) -> Result<Array> {
        let (a, b) = pair(self, other)?;
        let (ta, tb) = (a.ty()?, b.ty()?);
        if ta.rank() == 0 || tb.rank() == 0 {
            return Err(error!(Shape, "a matrix product of {ta} and {tb}: a scalar is no matrix").help("use `*`"));
        }
        let (last, row) = (ta.rank() - 1, tb.rank().saturating_sub(2));
        // One matrix, or a vector, on the right serves all on the left: no batch axis is needed.
        if tb.rank() <= 2 {
            return contract(&a, &b, (vec![last], vec![row]), (vec![], vec![]));
        }
        let outer = |s: &Shape| -> Shape { s.iter().take(s.rank().saturating_sub(2)).cloned().collect() };
        let (outer_a, outer_b) = (outer(ta.shape()), outer(tb.shape()));
        let Some(batch) = broadcast_shapes(&outer_a, &outer_b) else {
            return Err(error!(
                Shape,
                "a matrix product of {ta} and {tb}: the axes before the last two do not broadcast together"
            )
            .help("shapes are aligned at the end; dimensions must be equal or 1"));
        };
        let matrix =
            |s: &Shape, n: usize| -> Shape { batch.iter().chain(s.iter().skip(s.rank() - n)).cloned().collect() };
        let kept = ta.rank().min(2);
        let b = broadcast(&b, &matrix(tb.shape(), 2)).ok()?;
        // A vector on the left is the same for all matrices: it has nothing to be batched by.
        if kept == 1 {
            return contract(&a, &b, (vec![0], vec![row]), (vec![], vec![]));
        }
        let a = broadcast(&a, &matrix(ta.shape(), 2)).ok()?;
        let n = batch.rank();
        contract(&a, &b, (vec![n + 1], vec![n]), ((0..n).collect(), (0..n).collect()))
    }

    /// Sums products over pairs of axes: a count (the last of this with the first of the other), or two lists,
    /// `a.tensordot(&b, ([0, 1], [1, 0]))`. The result has the axes left of this, then those left of the other.
    #[track_caller]
    pub fn tensordot(&self, other: &Array, axes: impl IntoContraction) -> Array {
        checked(self.try_tensordot(other, axes))
    }

    #[track_caller]
    fn try_tensordot(&self, other: &Array, axes: impl IntoContraction) -> Result<Array> {
        let (a, b) = pair(self, other)?;
        let axes = axes.into_contraction(a.rank(), b.rank())?;
        contract(&a, &b, axes, (vec![], vec![]))
    }

    /// All products of an element of this and one of the other, both flattened: a matrix.
    #[track_caller]
    pub fn outer(&self, other: &Array) -> Array {
        checked(self.try_outer(other))
    }

    #[track_caller]
    fn try_outer(&self, other: &Array) -> Result<Array> {
        let (n, m) = (self.ty()?.shape().size(), other.ty()?.shape().size());
        let column = self.try_reshape([n, 1usize.into()].into_iter().collect())?;
        let row = other.try_reshape([1usize.into(), m].into_iter().collect())?;
        (&column * &row).ok()
    }

    /// Sums products over the last axes of both; with a scalar the product.
    #[track_caller]
    pub fn inner(&self, other: &Array) -> Array {
        checked(self.try_inner(other))
    }

    #[track_caller]
    fn try_inner(&self, other: &Array) -> Result<Array> {
        let (a, b) = pair(self, other)?;
        if a.rank() == 0 || b.rank() == 0 {
            return (&a * &b).ok();
        }
        contract(&a, &b, (vec![a.rank() - 1], vec![b.rank() - 1]), (vec![], vec![]))
    }

    /// The inner product of both arrays flattened, with this one conjugated.
    #[track_caller]
    pub fn vdot(&self, other: &Array) -> Array {
        checked(self.try_vdot(other))
    }

    #[track_caller]
    fn try_vdot(&self, other: &Array) -> Result<Array> {
        let (a, b) = pair(&self.try_flatten()?, &other.try_flatten()?)?;
        contract(&a.conj(), &b, (vec![0], vec![0]), (vec![], vec![]))
    }

    /// The sum of the diagonal of the first two axes.
    #[track_caller]
    pub fn trace(&self) -> Array {
        checked(self.try_trace())
    }

    #[track_caller]
    fn try_trace(&self) -> Result<Array> {
        let diagonal = self.try_diagonal(0, 0, 1)?;
        apply(ReduceSum { axes: vec![diagonal.rank().saturating_sub(1)] }, &[diagonal])
    }
}

#[cfg(test)]
mod tests;
