//! What passes ask about operations: which treat every element alike, which combine elements along axes, which cannot
//! fail.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::primitives::convert::{Bitcast, Convert};
use crate::primitives::elementwise::is_elementwise;
use crate::primitives::reduce::{ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum};
use crate::primitives::{BUILT_IN, Op};

/// Whether an element of the result depends on the same element of each operand and on nothing else.
pub(super) fn is_pointwise(op: &Op) -> bool {
    is_elementwise(op) || op.is::<Convert>() || op.is::<Bitcast>()
}

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

/// Whether an operation gives a result for all operands that its type rule accepts, in bounded time. A user's operation
/// may fail, and one that holds programs may hold such a one, or a loop that does not end.
pub(super) fn is_total(op: &Op) -> bool {
    static NAMES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| BUILT_IN.iter().map(|e| e.name).collect());
    !op.holds_programs() && op.effects().is_pure() && NAMES.contains(op.name())
}
