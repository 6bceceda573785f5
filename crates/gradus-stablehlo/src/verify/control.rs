//! The rules of operations with regions that are entered by others' values, of calls, tuples and collectives.

use gradus_core::error::Result;

use super::{At, Dims, arrays, fits, scalar};
use crate::module::{Attribute, Element, Type};
use crate::words;

pub(super) fn sort(at: &At<'_>) -> Result<()> {
    let n = at.operand_count();
    at.holds(at.operation.results.len() == n, || "it has not as many results as operands".into())?;
    let first = at.tensor(0)?;
    let mut types = Vec::new();
    for i in 0..n {
        let a = at.tensor(i)?;
        at.holds(super::same_dims(&a.dims, &first.dims), || {
            format!("operands 1 and {} are {} and {}", i + 1, words::of_tensor(first), words::of_tensor(a))
        })?;
        at.gives(i, &a.dims, &a.element)?;
        types.extend([scalar(&a.element), scalar(&a.element)]);
    }
    if let Some(axis) = at.operation.attributes.integer("dimension") {
        let rank = first.dims.len() as i64;
        at.holds((-rank..rank).contains(&axis) || rank == 0, || {
            format!("`dimension` is {axis}, which is no axis of rank {rank}")
        })?;
    }
    at.region_takes(0, &types)?;
    at.region_gives(0, &[scalar(&Element::I1)])
}

pub(super) fn branches(at: &At<'_>) -> Result<()> {
    let index = at.tensor(0)?;
    let element = if at.operation.name == "stablehlo.if" { Element::I1 } else { Element::I32 };
    at.holds(index.dims.is_empty() && index.element == element, || {
        format!("it is chosen by {}", words::of_tensor(index))
    })?;
    let results = (0..at.operation.results.len()).map(|i| at.result(i).cloned()).collect::<Result<Vec<Type>>>()?;
    for i in 0..at.operation.regions.len() {
        at.region_takes(i, &[])?;
        at.region_gives(i, &results)?;
    }
    Ok(())
}

pub(super) fn while_loop(at: &At<'_>) -> Result<()> {
    let types = (0..at.operand_count()).map(|i| at.operand(i).cloned()).collect::<Result<Vec<Type>>>()?;
    at.holds(at.operation.results.len() == types.len(), || "it has not as many results as operands".into())?;
    for (i, ty) in types.iter().enumerate() {
        let is = at.result(i)?;
        at.holds(fits(is, ty), || {
            format!("result {} is {}, and its operand {}", i + 1, words::of_type(is), words::of_type(ty))
        })?;
    }
    at.region_takes(0, &types)?;
    at.region_takes(1, &types)?;
    at.region_gives(0, &[scalar(&Element::I1)])?;
    at.region_gives(1, &types)
}

pub(super) fn map(at: &At<'_>) -> Result<()> {
    let first = at.tensor(0)?;
    let types = (0..at.operand_count()).map(|i| Ok(scalar(&at.tensor(i)?.element))).collect::<Result<Vec<Type>>>()?;
    at.region_takes(0, &types)?;
    let element = at.result_tensor(0)?.element.clone();
    at.region_gives(0, &[scalar(&element)])?;
    at.gives(0, &first.dims, &element)
}

pub(super) fn all_reduce(at: &At<'_>) -> Result<()> {
    groups(at)?;
    let n = at.operand_count();
    at.holds(at.operation.results.len() == n, || "it has not as many results as operands".into())?;
    for i in 0..n {
        // Elements may be wider than those of the operand.
        at.gives(i, &at.tensor(i)?.dims, &at.result_tensor(i)?.element)?;
    }
    arrays::region(at, 0, vec![scalar(&at.tensor(0)?.element)])
}

/// Collectives that may change the size of the axes they name; all others stay.
pub(super) fn along(at: &At<'_>) -> Result<()> {
    groups(at)?;
    for i in 0..at.operation.results.len() {
        let (a, r) = (at.tensor(i)?, at.result_tensor(i)?);
        let mut moved = Vec::new();
        for name in ["all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension"] {
            if at.operation.attributes.has(name) {
                moved.push(at.axis(name, a.dims.len())?);
            }
        }
        let same = |d: usize| moved.contains(&d) || super::same_dim(a.dims[d], r.dims[d]);
        at.holds(a.dims.len() == r.dims.len() && (0..a.dims.len()).all(same), || {
            format!("{} does not become {}", words::of_tensor(a), words::of_tensor(r))
        })?;
    }
    Ok(())
}

/// Groups of devices are a table: a row for each group.
fn groups(at: &At<'_>) -> Result<()> {
    match at.operation.attributes.get("replica_groups") {
        Some(Attribute::Dense(dense)) => at.holds(dense.ty.dims.len() == 2 && dense.ty.element == Element::I64, || {
            format!("`replica_groups` is {}", words::of_tensor(&dense.ty))
        }),
        _ => Ok(()),
    }
}

pub(super) fn rng(at: &At<'_>) -> Result<()> {
    let (a, b) = (at.tensor(0)?, at.tensor(1)?);
    at.holds(a.dims.is_empty() && b.dims.is_empty() && a.element == b.element, || {
        format!("its range is {} and {}", words::of_tensor(a), words::of_tensor(b))
    })?;
    let r = at.result_tensor(0)?;
    at.gives(0, &r.dims, &a.element)
}

pub(super) fn rng_bit_generator(at: &At<'_>) -> Result<()> {
    let state = at.tensor(0)?;
    at.holds(at.operation.attributes.has("rng_algorithm"), || "it has no attribute `rng_algorithm`".into())?;
    at.gives(0, &state.dims, &state.element)
}

pub(super) fn tuple(at: &At<'_>) -> Result<()> {
    let parts = (0..at.operand_count()).map(|i| at.operand(i).cloned()).collect::<Result<Vec<Type>>>()?;
    let (wanted, is) = (Type::Tuple(parts), at.result(0)?);
    at.holds(fits(is, &wanted), || {
        format!("its result is {}, and follows as {}", words::of_type(is), words::of_type(&wanted))
    })
}

pub(super) fn get_tuple_element(at: &At<'_>) -> Result<()> {
    let Type::Tuple(parts) = at.operand(0)? else { return Err(at.wrong("its operand is no tuple")) };
    let index = at.integer("index")?;
    let part = usize::try_from(index).ok().and_then(|i| parts.get(i));
    let part = part.ok_or_else(|| at.wrong(&format!("the element {index} of a tuple of {}", parts.len())))?;
    let is = at.result(0)?;
    at.holds(fits(is, part), || {
        format!("its result is {}, and the element {}", words::of_type(is), words::of_type(part))
    })
}

pub(super) fn custom_call(at: &At<'_>) -> Result<()> {
    at.holds(at.operation.attributes.text("call_target_name").is_some(), || {
        "it has no attribute `call_target_name`".into()
    })
}

pub(super) fn composite(at: &At<'_>) -> Result<()> {
    at.holds(at.operation.attributes.text("name").is_some(), || "it has no attribute `name`".into())?;
    calls(at, "decomposition")
}

pub(super) fn call(at: &At<'_>) -> Result<()> {
    calls(at, "callee")
}

/// The function of an attribute takes the operands and gives the results.
fn calls(at: &At<'_>, attribute: &str) -> Result<()> {
    let Some(Attribute::Symbol(path)) = at.operation.attributes.get(attribute) else {
        return Err(at.wrong(&format!("it has no attribute `{attribute}` that names a function")));
    };
    let name = path.join("::@");
    let Some(function) = at.functions.get(name.as_str()) else {
        return Err(at.wrong(&format!("there is no function `@{name}` in this module")));
    };
    let takes = function.body.arguments.iter().filter_map(|v| function.values.get(v.0 as usize));
    let gives = function.results.iter().map(|(ty, _)| ty);
    let count = |what: &str, is: usize, wanted: usize| {
        at.holds(is == wanted, || format!("`@{name}` has {wanted} {what}, and {is} are here"))
    };
    count("arguments", at.operand_count(), function.body.arguments.len())?;
    count("results", at.operation.results.len(), function.results.len())?;
    for (i, ty) in takes.enumerate() {
        let is = at.operand(i)?;
        at.holds(fits(is, ty), || {
            format!("argument {} of `@{name}` is {}, and {} is given", i + 1, words::of_type(ty), words::of_type(is))
        })?;
    }
    for (i, ty) in gives.enumerate() {
        let is = at.result(i)?;
        at.holds(fits(is, ty), || {
            format!("result {} of `@{name}` is {}, and {} is wanted", i + 1, words::of_type(ty), words::of_type(is))
        })?;
    }
    Ok(())
}

/// Dimensions without some of them.
pub(super) fn without(dims: &[Option<u64>], axes: &[usize]) -> Dims {
    dims.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| *d).collect()
}
