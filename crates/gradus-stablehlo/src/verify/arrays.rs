//! The rules of operations that move elements: broadcasts, slices, gathers.

use gradus_core::error::Result;

use super::{At, Dims, either, same_dim, same_dims, same_element, scalar};
use crate::module::{Element, Float, Tensor, Type};
use crate::words;

pub(super) fn bitcast(at: &At<'_>) -> Result<()> {
    let (a, r) = (at.tensor(0)?, at.result_tensor(0)?);
    let (Some(from), Some(to)) = (bits(&a.element), bits(&r.element)) else { return Ok(()) };
    let mut wide: Dims = a.dims.to_vec();
    let mut narrow: Dims = r.dims.to_vec();
    let ratio = if from >= to { from / to } else { to / from };
    if from < to {
        std::mem::swap(&mut wide, &mut narrow);
    }
    if ratio > 1 {
        wide.push(Some(ratio));
    }
    at.holds(same_dims(&wide, &narrow), || {
        format!("{} has not the bits of {}", words::of_tensor(r), words::of_tensor(a))
    })
}

/// How many bits an element has.
fn bits(element: &Element) -> Option<u64> {
    Some(match element {
        Element::I1 => 1,
        Element::I2 | Element::U2 => 2,
        Element::I4 | Element::U4 | Element::Float(Float::F4E2M1FN) => 4,
        Element::Float(Float::F6E2M3FN | Float::F6E3M2FN) => 6,
        Element::Quantized(q) => return bits(&q.storage),
        other => 8 * other.bytes() as u64,
    })
}

pub(super) fn broadcast(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    let mut dims: Dims = Vec::new();
    for size in at.integers("broadcast_sizes")? {
        dims.push(Some(u64::try_from(size).map_err(|_| at.wrong("a size is negative"))?));
    }
    dims.extend(&a.dims);
    at.gives(0, &dims, &a.element)
}

pub(super) fn broadcast_in_dim(at: &At<'_>) -> Result<()> {
    let (a, r) = (at.tensor(0)?, at.result_tensor(0)?);
    at.holds(same_element(&a.element, &r.element), || {
        format!("{} becomes {}", words::of_tensor(a), words::of_tensor(r))
    })?;
    let axes = at.as_axes("broadcast_dimensions", &at.integers("broadcast_dimensions")?, r.dims.len())?;
    at.holds(axes.len() == a.dims.len(), || format!("{} axes for {}", axes.len(), words::of_tensor(a)))?;
    for (i, axis) in axes.iter().enumerate() {
        at.holds(a.dims[i] == Some(1) || same_dim(a.dims[i], r.dims[*axis]), || {
            format!("axis {i} of {} does not fit axis {axis} of {}", words::of_tensor(a), words::of_tensor(r))
        })?;
    }
    Ok(())
}

pub(super) fn concatenate(at: &At<'_>) -> Result<()> {
    let first = at.tensor(0)?;
    let axis = at.axis("dimension", first.dims.len())?;
    let mut dims: Dims = first.dims.to_vec();
    for i in 1..at.operand_count() {
        let other = at.tensor(i)?;
        let fits = other.dims.len() == dims.len()
            && same_element(&first.element, &other.element)
            && (0..dims.len()).all(|d| d == axis || same_dim(dims[d], other.dims[d]));
        at.holds(fits, || {
            format!("operands 1 and {} are {} and {}", i + 1, words::of_tensor(first), words::of_tensor(other))
        })?;
        for (d, (dim, more)) in dims.iter_mut().zip(&other.dims).enumerate() {
            *dim = match (*dim, *more) {
                (a, b) if d != axis => either(a, b),
                (Some(a), Some(b)) => Some(a.checked_add(b).ok_or_else(|| at.wrong("the result is too large"))?),
                _ => None,
            };
        }
    }
    at.gives(0, &dims, &first.element)
}

pub(super) fn iota(at: &At<'_>) -> Result<()> {
    at.axis("iota_dimension", at.result_tensor(0)?.dims.len()).map(drop)
}

pub(super) fn reshape(at: &At<'_>) -> Result<()> {
    let (a, r) = (at.tensor(0)?, at.result_tensor(0)?);
    let known = a.is_static() && r.is_static();
    at.holds(same_element(&a.element, &r.element) && (!known || a.count() == r.count()), || {
        format!("{} does not become {}", words::of_tensor(a), words::of_tensor(r))
    })
}

pub(super) fn dynamic_slice(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    let sizes = at.integers_or("slice_sizes", a.dims.len(), -1)?;
    indices(at, 1, a)?;
    let mut dims: Dims = Vec::new();
    for (size, dim) in sizes.iter().zip(&a.dims) {
        let found = u64::try_from(*size).ok().filter(|s| dim.is_none_or(|d| *s <= d));
        dims.push(Some(
            found.ok_or_else(|| at.wrong(&format!("the size {size} of a slice of {}", words::of_tensor(a))))?,
        ));
    }
    at.gives(0, &dims, &a.element)
}

pub(super) fn dynamic_update_slice(at: &At<'_>) -> Result<()> {
    let (a, update) = (at.tensor(0)?, at.tensor(1)?);
    indices(at, 2, a)?;
    let fits = a.dims.len() == update.dims.len()
        && same_element(&a.element, &update.element)
        && a.dims.iter().zip(&update.dims).all(|(a, u)| a.zip(*u).is_none_or(|(a, u)| u <= a));
    at.holds(fits, || format!("{} does not fit into {}", words::of_tensor(update), words::of_tensor(a)))?;
    at.gives(0, &a.dims, &a.element)
}

/// From an operand on: one scalar integer for each axis.
fn indices(at: &At<'_>, from: usize, a: &Tensor) -> Result<()> {
    at.holds(at.operand_count() == from + a.dims.len(), || {
        format!("{} indices for {}", at.operand_count() - from, words::of_tensor(a))
    })?;
    for i in from..at.operand_count() {
        let index = at.tensor(i)?;
        at.holds(index.dims.is_empty() && index.element.integer_bytes().is_some(), || {
            format!("the index {} is no integer", words::of_tensor(index))
        })?;
    }
    Ok(())
}

pub(super) fn same_rank(at: &At<'_>) -> Result<()> {
    let (a, r) = (at.tensor(0)?, at.result_tensor(0)?);
    at.holds(a.dims.len() == r.dims.len() && same_element(&a.element, &r.element), || {
        format!("{} does not become {}", words::of_tensor(a), words::of_tensor(r))
    })
}

pub(super) fn get_dimension_size(at: &At<'_>) -> Result<()> {
    at.axis("dimension", at.tensor(0)?.dims.len())?;
    at.gives(0, &[], &Element::I32)
}

pub(super) fn set_dimension_size(at: &At<'_>) -> Result<()> {
    at.axis("dimension", at.tensor(0)?.dims.len())?;
    same_rank(at)
}

pub(super) fn pad(at: &At<'_>) -> Result<()> {
    let (a, value) = (at.tensor(0)?, at.tensor(1)?);
    at.holds(value.dims.is_empty() && same_element(&a.element, &value.element), || {
        format!("{} does not fill {}", words::of_tensor(value), words::of_tensor(a))
    })?;
    let rank = a.dims.len();
    let [low, high, interior] = [
        at.integers_or("edge_padding_low", rank, 0)?,
        at.integers_or("edge_padding_high", rank, 0)?,
        at.integers_or("interior_padding", rank, 0)?,
    ];
    let mut dims: Dims = Vec::new();
    for d in 0..rank {
        at.holds(interior[d] >= 0, || "padding between elements is negative".into())?;
        dims.push(match a.dims[d] {
            None => None,
            Some(size) => {
                let between = i128::from(interior[d]) * (i128::from(size) - 1).max(0);
                let total = i128::from(size) + i128::from(low[d]) + i128::from(high[d]) + between;
                let total = u64::try_from(total).map_err(|_| at.wrong(&format!("axis {d} gets the size {total}")))?;
                Some(total)
            }
        });
    }
    at.gives(0, &dims, &a.element)
}

pub(super) fn reverse(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    at.as_axes("dimensions", &at.integers("dimensions")?, a.dims.len())?;
    at.gives(0, &a.dims, &a.element)
}

pub(super) fn slice(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    let rank = a.dims.len();
    let (start, limit) = (at.integers("start_indices")?, at.integers("limit_indices")?);
    let strides = at.integers_or("strides", rank, 1)?;
    at.holds(start.len() == rank && limit.len() == rank, || {
        format!("{} ranges for {}", start.len(), words::of_tensor(a))
    })?;
    let mut dims: Dims = Vec::new();
    for d in 0..rank {
        let inside = start[d] >= 0
            && start[d] <= limit[d]
            && strides[d] > 0
            && a.dims[d].is_none_or(|size| i128::from(limit[d]) <= i128::from(size));
        at.holds(inside, || {
            format!("{}:{}:{} is no range of axis {d} of {}", start[d], limit[d], strides[d], words::of_tensor(a))
        })?;
        dims.push(Some(((limit[d] - start[d]) as u64).div_ceil(strides[d] as u64)));
    }
    at.gives(0, &dims, &a.element)
}

pub(super) fn transpose(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    let axes = at.as_axes("permutation", &at.integers("permutation")?, a.dims.len())?;
    at.holds(axes.len() == a.dims.len(), || format!("{} axes for {}", axes.len(), words::of_tensor(a)))?;
    let dims: Dims = axes.iter().map(|axis| a.dims[*axis]).collect();
    let is = at.result_tensor(0)?;
    at.gives(0, &dims, &is.element)?;
    at.holds(same_element(&a.element, &is.element), || "it changes the type of elements".into())
}

pub(super) fn gather(at: &At<'_>) -> Result<()> {
    const NUMBERS: &str = "dimension_numbers";
    let (a, places) = (at.tensor(0)?, at.tensor(1)?);
    let rank = a.dims.len();
    let result = at.result_tensor(0)?.dims.len();
    let offset = at.field_axes(NUMBERS, "offset_dims", result)?;
    let collapsed = at.field_axes(NUMBERS, "collapsed_slice_dims", rank)?;
    let batching = at.field_axes(NUMBERS, "operand_batching_dims", rank)?;
    let map = at.field_axes(NUMBERS, "start_index_map", rank)?;
    at.field_axes(NUMBERS, "start_indices_batching_dims", places.dims.len())?;
    let vector = at.field_integer(NUMBERS, "index_vector_dim")?;
    let vector = usize::try_from(vector).ok().filter(|v| *v <= places.dims.len());
    let vector = vector.ok_or_else(|| at.wrong("`index_vector_dim` is no axis of the indices"))?;
    let indexed = places.dims.get(vector).copied().unwrap_or(Some(1));
    at.holds(same_dim(indexed, Some(map.len() as u64)), || {
        format!("{} numbers in `start_index_map` for {}", map.len(), words::of_tensor(places))
    })?;
    let sizes: Dims = match at.integers_if("slice_sizes")? {
        None => vec![None; rank],
        Some(sizes) => sizes.into_iter().map(|s| u64::try_from(s).ok()).collect(),
    };
    at.holds(sizes.len() == rank, || format!("{} sizes for {}", sizes.len(), words::of_tensor(a)))?;
    for (d, (size, dim)) in sizes.iter().zip(&a.dims).enumerate() {
        at.holds(size.zip(*dim).is_none_or(|(s, d)| s <= d), || {
            format!("the slice of axis {d} is larger than {}", words::of_tensor(a))
        })?;
    }
    let kept: Dims = (0..rank).filter(|d| !collapsed.contains(d) && !batching.contains(d)).map(|d| sizes[d]).collect();
    at.holds(kept.len() == offset.len(), || {
        format!("{} axes in `offset_dims` for {} of the slice", offset.len(), kept.len())
    })?;
    let mut batch = places.dims.iter().enumerate().filter(|(d, _)| *d != vector).map(|(_, d)| *d);
    let mut kept = kept.into_iter();
    let mut dims: Dims = Vec::new();
    for axis in 0..result {
        let next = if offset.contains(&axis) { kept.next() } else { batch.next() };
        dims.push(next.ok_or_else(|| at.wrong("its result has too many axes"))?);
    }
    at.holds(batch.next().is_none(), || "its result has too few axes".into())?;
    at.gives(0, &dims, &a.element)
}

pub(super) fn scatter(at: &At<'_>) -> Result<()> {
    const NUMBERS: &str = "scatter_dimension_numbers";
    let n = at.operation.results.len();
    at.holds(at.operand_count() == 2 * n + 1, || format!("{} operands for {n} results", at.operand_count()))?;
    let places = at.tensor(n)?;
    let first = at.tensor(0)?;
    let rank = first.dims.len();
    let updates = at.tensor(n + 1)?.dims.len();
    let window = at.field_axes(NUMBERS, "update_window_dims", updates)?;
    let inserted = at.field_axes(NUMBERS, "inserted_window_dims", rank)?;
    let batching = at.field_axes(NUMBERS, "input_batching_dims", rank)?;
    let map = at.field_axes(NUMBERS, "scatter_dims_to_operand_dims", rank)?;
    let vector =
        usize::try_from(at.field_integer(NUMBERS, "index_vector_dim")?).ok().filter(|v| *v <= places.dims.len());
    let vector = vector.ok_or_else(|| at.wrong("`index_vector_dim` is no axis of the indices"))?;
    let indexed = places.dims.get(vector).copied().unwrap_or(Some(1));
    at.holds(same_dim(indexed, Some(map.len() as u64)), || {
        format!("{} numbers in `scatter_dims_to_operand_dims` for {}", map.len(), words::of_tensor(places))
    })?;
    at.holds(window.len() + inserted.len() + batching.len() == rank, || {
        format!("the axes of windows do not make up {}", words::of_tensor(first))
    })?;
    let mut types = Vec::new();
    for i in 0..n {
        let (a, update) = (at.tensor(i)?, at.tensor(n + 1 + i)?);
        let fits = same_dims(&a.dims, &first.dims) && update.dims.len() == updates;
        at.holds(fits, || format!("{} is scattered into {}", words::of_tensor(update), words::of_tensor(a)))?;
        let batch: Dims = (0..updates).filter(|d| !window.contains(d)).map(|d| update.dims[d]).collect();
        let wanted: Dims = places.dims.iter().enumerate().filter(|(d, _)| *d != vector).map(|(_, d)| *d).collect();
        at.holds(same_dims(&batch, &wanted), || {
            format!("{} does not fit the indices {}", words::of_tensor(update), words::of_tensor(places))
        })?;
        let element = &at.result_tensor(i)?.element;
        at.gives(i, &a.dims, element)?;
        types.push(scalar(element));
    }
    region(at, 0, types)
}

/// A region of two scalars for each value, which gives one for each. Elements may be wider there than outside.
pub(super) fn region(at: &At<'_>, index: usize, types: Vec<Type>) -> Result<()> {
    let Some(region) = at.operation.regions.get(index) else { return Err(at.wrong("a region is missing")) };
    at.holds(region.arguments.len() == 2 * types.len(), || {
        format!("region {} takes {} values where {} are given", index + 1, region.arguments.len(), 2 * types.len())
    })?;
    for (i, value) in region.arguments.iter().enumerate() {
        let is = at.type_of(*value)?;
        let right = is.tensor().is_some_and(|t| t.dims.is_empty());
        at.holds(right, || format!("argument {} of region {} is {}, no scalar", i + 1, index + 1, words::of_type(is)))?;
    }
    let returned = at.region_results(index)?;
    at.holds(returned.len() == types.len(), || {
        format!("region {} returns {} values where {} are wanted", index + 1, returned.len(), types.len())
    })?;
    for is in returned {
        let right = is.tensor().is_some_and(|t| t.dims.is_empty());
        at.holds(right, || format!("region {} returns {}, no scalar", index + 1, words::of_type(is)))?;
    }
    Ok(())
}

pub(super) fn top_k(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    let k = u64::try_from(at.integer("k")?).map_err(|_| at.wrong("`k` is negative"))?;
    let Some((last, rest)) = a.dims.split_last() else { return Err(at.wrong("it needs at least one axis")) };
    at.holds(last.is_none_or(|n| k <= n), || format!("the {k} largest of {}", words::of_tensor(a)))?;
    let dims: Dims = rest.iter().copied().chain([Some(k)]).collect();
    at.gives(0, &dims, &a.element)?;
    at.gives(1, &dims, &Element::I32)
}
