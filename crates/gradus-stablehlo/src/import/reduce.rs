//! Reductions: by an operation of ours where the region is known, by a loop over the elements where it is not.

use gradus_core::array::Concrete;
use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::elementwise::{Compare, Direction, Select};
use gradus_core::primitives::reduce::{
    ArgMax, ArgMin, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum,
};
use gradus_core::trace::{Traced, bind, trace_as_written};
use gradus_core::{Array, DType, Program, Scalar, Type as Ty};

use super::elementwise::{apply, convert, spread};
use super::regions::{Known, fold, front};
use super::{Answer, On, many};

/// The number that changes nothing.
pub(super) fn neutral(known: Known, dtype: DType) -> Option<Scalar> {
    Some(match known {
        Known::Sum => Scalar::zero(dtype),
        Known::Prod => Scalar::one(dtype),
        Known::Max => Scalar::lowest(dtype),
        Known::Min => Scalar::highest(dtype),
        Known::And if dtype == DType::Bool => Scalar::Bool(true),
        Known::And => Scalar::I64(-1).cast(dtype),
        Known::Or => Scalar::zero(dtype),
        Known::First | Known::Second => return None,
    })
}

/// Whether an array is this number in every place, and known to be.
pub(super) fn is_all(x: &Array, value: Scalar) -> bool {
    x.concrete().and_then(Concrete::splat_value).is_some_and(|v| v == value)
}

/// What a region does to two arrays.
pub(super) fn combine(known: Known, a: &Array, b: &Array) -> Array {
    match known {
        Known::Sum => a + b,
        Known::Prod => a * b,
        Known::Max => a.maximum(b),
        Known::Min => a.minimum(b),
        Known::And => a & b,
        Known::Or => a | b,
        Known::First => a.clone(),
        Known::Second => b.clone(),
    }
}

/// A known reduction of axes; none if the dtype has none.
pub(super) fn reduced(known: Known, x: &Array, axes: Vec<usize>) -> Option<Array> {
    let op = match known {
        Known::Sum => Op::new(ReduceSum { axes }),
        Known::Prod => Op::new(ReduceProd { axes }),
        Known::Max if !x.dtype().is_complex() => Op::new(ReduceMax { axes }),
        Known::Min if !x.dtype().is_complex() => Op::new(ReduceMin { axes }),
        Known::And => Op::new(ReduceAnd { axes }),
        Known::Or => Op::new(ReduceOr { axes }),
        _ => return None,
    };
    Some(bind(op, std::slice::from_ref(x)))
}

/// A reduction by any region.
pub(super) fn reduce_by(body: &Traced, xs: &[Array], inits: &[Array], axes: &[usize]) -> Result<Vec<Array>> {
    let known = if xs.len() == 1 { Known::of(body) } else { None };
    if let (Some(known), [x], [init]) = (known, xs, inits) {
        let empty = axes.iter().any(|a| x.dim(*a as isize).constant() == Some(0));
        let shape = x.shape().without(|a| axes.contains(&a));
        let neutral = neutral(known, x.dtype());
        match if empty || axes.is_empty() { None } else { reduced(known, x, axes.to_vec()) } {
            Some(all) if neutral.is_some_and(|n| is_all(init, n)) => return Ok(vec![all.ok()?]),
            Some(all) => return Ok(vec![combine(known, &spread(init, &shape), &all).ok()?]),
            None => {}
        }
    }
    let sequences: Vec<Array> = xs.iter().map(|x| front(x, axes)).collect();
    fold(body, inits, &sequences)
}

/// The region that keeps the better of two numbers with its index: NaN before all, of equals the lower index. This is how JAX writes argmax and argmin.
fn better(types: &[Ty], direction: Direction) -> Result<Program> {
    let specs: Vec<Array> = types.iter().cloned().map(Array::of_type).collect();
    let compare = |direction, a: &Array, b: &Array| bind(Op::new(Compare { direction }), &[a.clone(), b.clone()]);
    let traced = trace_as_written("better", &specs, |xs| {
        let [a, i, b, j] = xs else { return Ok(Vec::new()) };
        let first = compare(direction, a, b);
        let wins = first | compare(Direction::Ne, a, a);
        let tie = compare(Direction::Eq, a, b);
        let before = compare(Direction::Lt, i, j);
        let earlier = &wins | &(tie & before);
        let value = apply(&Select, &[wins, a.clone(), b.clone()]);
        Ok(vec![value, apply(&Select, &[earlier, i.clone(), j.clone()])])
    })?;
    Ok(traced.program)
}

impl On<'_, '_> {
    pub(super) fn reduction(&mut self, name: &str) -> Answer {
        if name != "reduce" {
            return Ok(None);
        }
        let mut axes = self.axes("dimensions")?;
        axes.sort_unstable();
        let body = self.traced_as_said(0)?;
        let operands = self.xs()?;
        let (xs, inits) = operands.split_at(operands.len() / 2);
        if let Some(found) = self.places(&body, xs, inits, &axes)? {
            return many(found);
        }
        let inits = self.as_inputs(&body, 0, inits)?;
        let xs = self.as_inputs(&body, inits.len(), xs)?;
        many(reduce_by(&body, &xs, &inits, &axes)?)
    }

    /// Argmax and argmin: the values and where they stand, if the second operand counts along the axis.
    fn places(&mut self, body: &Traced, xs: &[Array], inits: &[Array], axes: &[usize]) -> Result<Option<Vec<Array>>> {
        let ([x, _], [worst, zero], [axis]) = (xs, inits, axes) else { return Ok(None) };
        let counts = self.op.operands.get(1).and_then(|v| self.scope.definitions.get(v));
        let counts = counts.is_some_and(|op| {
            op.name == "stablehlo.iota" && op.attributes.integer("iota_dimension") == i64::try_from(*axis).ok()
        });
        let long = x.dim(*axis as isize).as_usize().is_some_and(|n| n > 0);
        let dtype = zero.dtype();
        if !counts || !long || !dtype.is_int() || x.dtype().is_complex() || !is_all(zero, Scalar::zero(dtype)) {
            return Ok(None);
        }
        let types = body.program.inputs();
        for (direction, end) in
            [(Direction::Gt, Scalar::lowest(x.dtype())), (Direction::Lt, Scalar::highest(x.dtype()))]
        {
            let same = body.captures.is_empty()
                && is_all(worst, end)
                && better(types, direction)?.computes_same(&body.program);
            if !same {
                continue;
            }
            let op = match direction {
                Direction::Gt => Op::new(ArgMax { axis: *axis, dtype }),
                _ => Op::new(ArgMin { axis: *axis, dtype }),
            };
            let at = bind(op, std::slice::from_ref(x));
            let places = at.expand_dims(*axis as isize);
            let values = x.take_along_axis(&convert(&places, DType::I64), *axis as isize).squeeze(*axis as isize);
            return Ok(Some(vec![values, at]));
        }
        Ok(None)
    }
}
