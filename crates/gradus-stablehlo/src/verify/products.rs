//! The rules of products of arrays, of factorizations, Fourier transforms and normalizations.

use gradus_core::error::Result;

use super::{At, Dims, either, same_dim, same_dims, same_element, windows};
use crate::module::{Attribute, Element};
use crate::words;

pub(super) fn dot_general(at: &At<'_>) -> Result<()> {
    const NUMBERS: &str = "dot_dimension_numbers";
    let (a, b) = (at.tensor(0)?, at.tensor(1)?);
    let left_batch = at.field_axes(NUMBERS, "lhs_batching_dimensions", a.dims.len())?;
    let right_batch = at.field_axes(NUMBERS, "rhs_batching_dimensions", b.dims.len())?;
    let left = at.field_axes(NUMBERS, "lhs_contracting_dimensions", a.dims.len())?;
    let right = at.field_axes(NUMBERS, "rhs_contracting_dimensions", b.dims.len())?;
    at.holds(left_batch.len() == right_batch.len() && left.len() == right.len(), || {
        "left and right have not as many axes in `dot_dimension_numbers`".into()
    })?;
    at.holds(!left.iter().any(|d| left_batch.contains(d)) && !right.iter().any(|d| right_batch.contains(d)), || {
        "an axis is summed over and kept".into()
    })?;
    for (l, r) in left_batch.iter().zip(&right_batch).chain(left.iter().zip(&right)) {
        at.holds(same_dim(a.dims[*l], b.dims[*r]), || {
            format!("axis {l} of {} does not fit axis {r} of {}", words::of_tensor(a), words::of_tensor(b))
        })?;
    }
    let mut dims: Dims = left_batch.iter().zip(&right_batch).map(|(l, r)| either(a.dims[*l], b.dims[*r])).collect();
    dims.extend((0..a.dims.len()).filter(|d| !left_batch.contains(d) && !left.contains(d)).map(|d| a.dims[d]));
    dims.extend((0..b.dims.len()).filter(|d| !right_batch.contains(d) && !right.contains(d)).map(|d| b.dims[d]));
    at.gives(0, &dims, &at.result_tensor(0)?.element)
}

pub(super) fn dot(at: &At<'_>) -> Result<()> {
    let (a, b) = (at.tensor(0)?, at.tensor(1)?);
    let fits =
        matches!(a.dims.len(), 1 | 2) && matches!(b.dims.len(), 1 | 2) && same_dim(a.dims[a.dims.len() - 1], b.dims[0]);
    at.holds(fits, || format!("the product of {} and {}", words::of_tensor(a), words::of_tensor(b)))?;
    let dims: Dims = a.dims[..a.dims.len() - 1].iter().chain(&b.dims[1..]).copied().collect();
    at.gives(0, &dims, &at.result_tensor(0)?.element)
}

pub(super) fn convolution(at: &At<'_>) -> Result<()> {
    const NUMBERS: &str = "dimension_numbers";
    let (a, kernel, result) = (at.tensor(0)?, at.tensor(1)?, at.result_tensor(0)?);
    let rank = a.dims.len();
    at.holds(rank == kernel.dims.len() && rank == result.dims.len() && rank >= 2, || {
        format!("{} with the kernel {} to {}", words::of_tensor(a), words::of_tensor(kernel), words::of_tensor(result))
    })?;
    let axis = |field: &str| {
        let axis = at.field_integer(NUMBERS, field)?;
        let found = usize::try_from(axis).ok().filter(|d| *d < rank);
        found.ok_or_else(|| at.wrong(&format!("`{field}` is {axis}, which is no axis of rank {rank}")))
    };
    let [batch, feature] = [axis("input_batch_dimension")?, axis("input_feature_dimension")?];
    let [inputs, outputs] = [axis("kernel_input_feature_dimension")?, axis("kernel_output_feature_dimension")?];
    let [to_batch, to_feature] = [axis("output_batch_dimension")?, axis("output_feature_dimension")?];
    let spatial = at.field_axes(NUMBERS, "input_spatial_dimensions", rank)?;
    let over = at.field_axes(NUMBERS, "kernel_spatial_dimensions", rank)?;
    let to = at.field_axes(NUMBERS, "output_spatial_dimensions", rank)?;
    let whole = |one: usize, two: usize, rest: &[usize]| {
        one != two && rest.len() == rank - 2 && !rest.contains(&one) && !rest.contains(&two)
    };
    let right = whole(batch, feature, &spatial) && whole(inputs, outputs, &over) && whole(to_batch, to_feature, &to);
    at.holds(right, || "`dimension_numbers` does not name every axis once".into())?;
    let count = |name: &str| match at.operation.attributes.integer(name) {
        None => Ok(1),
        Some(n) => u64::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| at.wrong(&format!("`{name}` is {n}"))),
    };
    let (groups, batches) = (count("feature_group_count")?, count("batch_group_count")?);
    at.holds(groups == 1 || batches == 1, || "it has groups of features and of batches".into())?;
    let divides = |dim: Option<u64>, by: u64| dim.is_none_or(|d| d % by == 0);
    at.holds(divides(a.dims[batch], batches) && divides(a.dims[feature], groups), || {
        "groups do not divide the image".into()
    })?;
    at.holds(divides(kernel.dims[outputs], groups) && divides(kernel.dims[outputs], batches), || {
        "groups do not divide the kernel".into()
    })?;
    at.holds(same_dim(a.dims[feature].map(|f| f / groups), kernel.dims[inputs]), || {
        format!("{} has not the features of the kernel {}", words::of_tensor(a), words::of_tensor(kernel))
    })?;
    let sizes: Vec<i64> =
        over.iter().map(|d| kernel.dims[*d].map_or(1, |k| i64::try_from(k).unwrap_or(i64::MAX))).collect();
    let known = over.iter().all(|d| kernel.dims[*d].is_some());
    let image: Dims = spatial.iter().map(|d| a.dims[*d].filter(|_| known)).collect();
    // An empty kernel has no windows to count.
    // How a dynamic one moves is known when it runs; JAX gives it more strides than axes.
    let moved = match sizes.contains(&0) || at.operation.name == "stablehlo.dynamic_conv" {
        true => vec![None; spatial.len()],
        false => windows::windowed(at, &image, &sizes, ["window_strides", "lhs_dilation", "rhs_dilation"])?,
    };
    let mut dims: Dims = vec![None; rank];
    dims[to_batch] = a.dims[batch].map(|b| b / batches);
    dims[to_feature] = kernel.dims[outputs];
    for (d, size) in to.iter().zip(moved) {
        dims[*d] = size;
    }
    at.gives(0, &dims, &result.element)
}

pub(super) fn cholesky(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    let square = matches!(a.dims.as_slice(), [.., n, m] if same_dim(*n, *m));
    at.holds(square, || format!("{} is no matrix of as many rows as columns", words::of_tensor(a)))?;
    at.gives(0, &a.dims, &a.element)
}

pub(super) fn triangular_solve(at: &At<'_>) -> Result<()> {
    let (a, b) = (at.tensor(0)?, at.tensor(1)?);
    let left = at.integer("left_side")? != 0;
    let fits = match (a.dims.as_slice(), b.dims.as_slice()) {
        ([outer @ .., n, m], [other @ .., rows, columns]) => {
            same_dims(outer, other) && same_dim(*n, *m) && same_dim(*m, if left { *rows } else { *columns })
        }
        _ => false,
    };
    at.holds(fits && same_element(&a.element, &b.element), || {
        format!("{} is solved for {}", words::of_tensor(a), words::of_tensor(b))
    })?;
    at.gives(0, &b.dims, &b.element)
}

pub(super) fn fft(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    let Some(Attribute::Enum(_, kind)) = at.operation.attributes.get("fft_type") else {
        return Err(at.wrong("it has no attribute `fft_type`"));
    };
    let lengths = at.integers("fft_length")?;
    at.holds((1..=3).contains(&lengths.len()) && lengths.len() <= a.dims.len(), || {
        format!("{} lengths for {}", lengths.len(), words::of_tensor(a))
    })?;
    let mut dims: Dims = a.dims.to_vec();
    let first = dims.len() - lengths.len();
    let last = lengths.len() - 1;
    for (i, length) in lengths.iter().enumerate() {
        let length = u64::try_from(*length).map_err(|_| at.wrong("a length is negative"))?;
        let (from, to) = match &**kind {
            "RFFT" if i == last => (length, if length == 0 { 0 } else { length / 2 + 1 }),
            "IRFFT" if i == last => (if length == 0 { 0 } else { length / 2 + 1 }, length),
            "FFT" | "IFFT" | "RFFT" | "IRFFT" => (length, length),
            other => return Err(at.wrong(&format!("there is no `fft_type` `{other}`"))),
        };
        at.holds(same_dim(dims[first + i], Some(from)), || format!("the length {length} of {}", words::of_tensor(a)))?;
        dims[first + i] = Some(to);
    }
    let element = match (&**kind, &a.element) {
        ("FFT" | "IFFT", Element::Complex(_)) => a.element.clone(),
        ("RFFT", Element::Float(part)) => Element::Complex(*part),
        ("IRFFT", Element::Complex(part)) => Element::Float(*part),
        _ => return Err(at.wrong(&format!("`{kind}` does not take {}", words::of_tensor(a)))),
    };
    at.gives(0, &dims, &element)
}

pub(super) fn batch_norm(at: &At<'_>) -> Result<()> {
    let a = at.tensor(0)?;
    let feature = at.axis("feature_index", a.dims.len())?;
    at.holds(matches!(at.operation.attributes.get("epsilon"), Some(Attribute::Float(..))), || {
        "it has no attribute `epsilon`".into()
    })?;
    let size = [a.dims[feature]];
    let grad = at.operation.name == "stablehlo.batch_norm_grad";
    for i in 1..at.operand_count() {
        let other = at.tensor(i)?;
        let wanted: &[Option<u64>] = if grad && i == 4 { &a.dims } else { &size };
        at.holds(same_dims(&other.dims, wanted) && same_element(&other.element, &a.element), || {
            format!("operand {} is {} for {}", i + 1, words::of_tensor(other), words::of_tensor(a))
        })?;
    }
    at.gives(0, &a.dims, &a.element)?;
    for i in 1..at.operation.results.len() {
        at.gives(i, &size, &a.element)?;
    }
    Ok(())
}
