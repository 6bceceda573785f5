//! Matrix products over groups of unequal size, as a sum over groups of masked products.

use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::shaping::Slice;
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim};

use super::elementwise::{convert, like};
use super::shaping::{broadcast_in_dim, concatenate, iota, reshape};
use super::{Answer, On, one};

/// One place of an axis, which goes.
fn place(x: &Array, axis: usize, at: usize) -> Array {
    let start = (0..x.rank()).map(|a| Dim::from(if a == axis { at } else { 0 })).collect();
    let limit =
        x.shape().iter().enumerate().map(|(a, d)| if a == axis { Dim::from(at + 1) } else { d.clone() }).collect();
    let cut = bind(Op::new(Slice { start, limit, step: vec![1; x.rank()] }), std::slice::from_ref(x));
    reshape(&cut, cut.shape().without(|a| a == axis))
}

pub(super) fn ragged_dot(on: &mut On<'_, '_>) -> Answer {
    let (lhs, rhs, sizes) = (on.x(0)?, on.x(1)?, convert(&on.x(2)?, DType::I64));
    let record = on.record("ragged_dot_dimension_numbers")?;
    let to = on.result_dtype()?;
    let field = |name: &str| on.field(record, name);
    let (lhs_batch, rhs_batch) = (field("lhs_batching_dimensions")?, field("rhs_batching_dimensions")?);
    let (lhs_contract, rhs_contract) = (field("lhs_contracting_dimensions")?, field("rhs_contracting_dimensions")?);
    let (ragged, group) = (field("lhs_ragged_dimensions")?, field("rhs_group_dimensions")?);
    let ([ragged], true) = (ragged.as_slice(), sizes.rank() == 1) else {
        return Err(
            on.refused("groups that differ between batches have no form here", "give one vector of group sizes")
        );
    };
    let Some(count) = sizes.dim(0).as_usize() else {
        return Err(on.refused("the number of groups is not known", "fix it"));
    };
    // Where each group begins and ends along the ragged axis of the left operand.
    let ends = sizes.cumsum(0);
    let starts = &ends - &sizes;
    let along = iota(DType::I64, lhs.shape().clone(), *ragged);
    let in_group = |g: usize| {
        let edge = |v: &Array| broadcast_in_dim(&place(v, 0, g), lhs.shape(), &[]);
        along.ge(edge(&starts)) & along.lt(edge(&ends))
    };
    let group_axis = group.first().copied();
    // Axes of the right operand without its group axis.
    let without = |axes: &[usize]| match group_axis {
        Some(g) => axes.iter().map(|a| if *a > g { a - 1 } else { *a }).collect(),
        None => axes.to_vec(),
    };
    let dot = DotGeneral {
        lhs_contract: lhs_contract.clone(),
        rhs_contract: without(&rhs_contract),
        lhs_batch: lhs_batch.clone(),
        rhs_batch: without(&rhs_batch),
    };
    let product = |g: usize| -> Result<Array> {
        let masked = in_group(g).select(&lhs, like(&lhs, 0.0));
        let right = group_axis.map_or_else(|| rhs.clone(), |axis| place(&rhs, axis, g));
        bind(Op::new(dot.clone()), &[convert(&masked, to), convert(&right, to)]).ok()
    };
    // Groups of terms give one result each; groups of rows or batches have their part of the one result.
    if lhs_contract.contains(ragged) {
        let each = (0..count).map(|g| product(g).map(|y| reshape(&y, y.shape().inserted(0, Dim::from(1usize)))));
        return one(concatenate(&each.collect::<Result<Vec<_>>>()?, 0));
    }
    if group_axis.is_none() {
        let all = bind(Op::new(dot), &[convert(&lhs, to), convert(&rhs, to)]);
        return one(all);
    }
    let mut sum: Option<Array> = None;
    for g in 0..count {
        let y = product(g)?;
        sum = Some(match sum {
            Some(sum) => sum + y,
            None => y,
        });
    }
    match sum {
        Some(sum) => one(sum),
        None => Err(on.refused("there are no groups", "give at least one group")),
    }
}
