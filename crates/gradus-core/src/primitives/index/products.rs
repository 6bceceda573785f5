//! For each of several numbers that go to the same places, the product of the others: the derivative of multiplying
//! into a place that is written more than once.
//!
//! Dividing the whole product by the number itself would fail at zeros. Here the numbers are sorted by place, and the
//! products before and behind each within its place are found by doubling steps. Everything is a product or a choice
//! by integers, so derivatives of any order are right.

use super::gather::{Bounds, Gather};
use super::scatter::Scatter;
use crate::array::Array;
use crate::error::{Result, fail};
use crate::primitives::Op;
use crate::primitives::shaping::{Iota, Pad, Reshape, zeros};
use crate::primitives::sort::Sort;
use crate::trace::{bind, bind_all};
use crate::types::{DType, Dim, Scalar, Shape, Type};

/// Doubling steps for a count that is not known yet. No memory holds 2^48 elements.
const MOST_STEPS: u32 = 48;

/// For each update the product of the others that go to the same element of the operand; 1 for those out of range.
pub(super) fn of_the_others(reader: &Gather, x: &Type, indices: &Array, updates: &Array) -> Result<Array> {
    let ty = updates.ty()?.clone();
    let count = ty.shape().size();
    let flat: Shape = [count.clone()].into_iter().collect();
    let column: Shape = [count.clone(), Dim::from(1usize)].into_iter().collect();
    let reshape = |a: Array, shape: &Shape| bind(Op::new(Reshape { shape: shape.clone() }), &[a]);
    let numbered = |size: Dim| {
        let shape = [size].into_iter().collect();
        bind(Op::new(Iota { dtype: DType::I64, shape, axis: 0 }), &[])
    };
    let ones = |shape: &Shape| Array::full_scalar(shape.clone(), Scalar::one(ty.dtype()));
    if count.constant().is_some_and(|n| n < 2) {
        return Ok(ones(ty.shape()));
    }

    // The place each update goes to. Out of range reads as the lowest integer.
    let places = reshape(numbered(x.shape().size()), x.shape());
    let places = bind(Op::new(reader.clone()), &[places, indices.clone()]);
    let safe = places.ge(0i64).select(updates, ones(ty.shape()));
    let sort = Op::new(Sort { axis: 0, keys: 1, descending: false });
    let sorted = bind_all(sort, &[reshape(places, &flat), numbered(count.clone())]);
    let [places, order] = sorted.as_slice() else {
        // A failed operation gives one result, which carries the error.
        return match sorted.into_iter().next() {
            Some(failed) => failed.ok(),
            None => fail!(Rule, "sorting gave no result"),
        };
    };
    let order = reshape(order.clone(), &column);
    // An empty axis cannot be clipped to, and an unknown one may be empty.
    let bounds = if count.constant().is_some() { Bounds::Clip } else { Bounds::Fill };
    let factors = Gather::of_vector(bounds).or_zeros(&reshape(safe, &flat), &order)?;

    let before = products_before(&factors, places, &count, &ones(&flat), 1);
    let behind = products_before(&factors, places, &count, &ones(&flat), -1);
    let products = before * behind;
    let unsorted = bind(Op::new(Scatter::of_vector()), &[zeros(products.ty()?), order, products]);
    Ok(reshape(unsorted, ty.shape()))
}

/// For each factor the product of those before it (`direction` 1) or behind it (-1) that have the same place, where
/// equal places stand together.
fn products_before(factors: &Array, places: &Array, count: &Dim, ones: &Array, direction: i64) -> Array {
    // The neighbour `distance` away, and whether it belongs to the same place. Beyond the ends there is nobody.
    let moved = |a: &Array, distance: i64, value: Scalar| {
        let by = Dim::from(distance * direction);
        let pad = Pad { low: vec![by.clone()], high: vec![-by], interior: vec![0] };
        bind(Op::new(pad), &[a.clone(), Array::scalar(value)])
    };
    let joined = |a: &Array, distance: i64| {
        let same = places.eq(moved(places, distance, Scalar::I64(i64::MAX)));
        same.select(moved(a, distance, Scalar::one(a.dtype())), ones)
    };
    let steps = count.as_usize().map_or(MOST_STEPS, |n| n.next_power_of_two().trailing_zeros());
    // After each step a number holds the product of twice as many of its place, itself included.
    let mut products = factors.clone();
    for step in 0..steps.min(MOST_STEPS) {
        products = &products * joined(&products, 1 << step);
    }
    joined(&products, 1)
}
