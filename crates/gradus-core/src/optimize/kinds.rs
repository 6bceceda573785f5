//! What passes ask about operations besides what these say themselves: which combine elements along axes.

use crate::primitives::Op;
use crate::primitives::reduce::{ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum};

/// How a reduction combines elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Combine {
    Sum,
    Prod,
    Max,
    Min,
    And,
    Or,
}

impl Combine {
    /// The reduction over axes, which stand in increasing order.
    pub fn over(self, axes: Vec<usize>) -> Op {
        match self {
            Combine::Sum => Op::new(ReduceSum { axes }),
            Combine::Prod => Op::new(ReduceProd { axes }),
            Combine::Max => Op::new(ReduceMax { axes }),
            Combine::Min => Op::new(ReduceMin { axes }),
            Combine::And => Op::new(ReduceAnd { axes }),
            Combine::Or => Op::new(ReduceOr { axes }),
        }
    }

    /// Whether combining a number with itself gives the number.
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Combine::Sum | Combine::Prod)
    }
}

/// A reduction and its axes.
pub(super) fn reduction(op: &Op) -> Option<(Combine, &[usize])> {
    let sum = op.downcast::<ReduceSum>().map(|r| (Combine::Sum, &r.axes[..]));
    sum.or_else(|| op.downcast::<ReduceMax>().map(|r| (Combine::Max, &r.axes[..])))
        .or_else(|| op.downcast::<ReduceMin>().map(|r| (Combine::Min, &r.axes[..])))
        .or_else(|| op.downcast::<ReduceProd>().map(|r| (Combine::Prod, &r.axes[..])))
        .or_else(|| op.downcast::<ReduceAnd>().map(|r| (Combine::And, &r.axes[..])))
        .or_else(|| op.downcast::<ReduceOr>().map(|r| (Combine::Or, &r.axes[..])))
}
