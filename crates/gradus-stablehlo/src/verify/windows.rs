//! The rules of reductions, over axes and over windows.

use gradus_core::error::Result;

use super::{At, Dims, arrays, control, same_dims, same_element, scalar};
use crate::words;

pub(super) fn reduce(at: &At<'_>) -> Result<()> {
    let n = pairs(at)?;
    let first = at.tensor(0)?;
    let axes = at.as_axes("dimensions", &at.integers("dimensions")?, first.dims.len())?;
    let dims = control::without(&first.dims, &axes);
    finish(at, n, &dims)
}

pub(super) fn reduce_window(at: &At<'_>) -> Result<()> {
    let n = pairs(at)?;
    let first = at.tensor(0)?;
    let sizes = at.integers("window_dimensions")?;
    at.holds(sizes.len() == first.dims.len(), || {
        format!("{} sizes of windows for {}", sizes.len(), words::of_tensor(first))
    })?;
    let dims = windowed(at, &first.dims, &sizes, ["window_strides", "base_dilations", "window_dilations"])?;
    finish(at, n, &dims)
}

/// As many initial values as operands, which are scalars of their elements.
fn pairs(at: &At<'_>) -> Result<usize> {
    let n = at.operand_count() / 2;
    at.holds(at.operand_count() == 2 * n && at.operation.results.len() == n, || {
        format!("it has {} operands for {} results", at.operand_count(), at.operation.results.len())
    })?;
    let first = at.tensor(0)?;
    for i in 0..n {
        let (a, init) = (at.tensor(i)?, at.tensor(n + i)?);
        at.holds(same_dims(&a.dims, &first.dims), || {
            format!("operands 1 and {} are {} and {}", i + 1, words::of_tensor(first), words::of_tensor(a))
        })?;
        at.holds(init.dims.is_empty() && same_element(&init.element, &a.element), || {
            format!("{} starts with {}", words::of_tensor(a), words::of_tensor(init))
        })?;
    }
    Ok(n)
}

fn finish(at: &At<'_>, n: usize, dims: &[Option<u64>]) -> Result<()> {
    let mut types = Vec::new();
    for i in 0..n {
        // Elements may be wider than those of the operand: the region says which.
        let element = &at.result_tensor(i)?.element;
        at.gives(i, dims, element)?;
        types.push(scalar(element));
    }
    arrays::region(at, 0, types.clone())?;
    at.region_gives(0, &types)
}

pub(super) fn select_and_scatter(at: &At<'_>) -> Result<()> {
    let (a, source, init) = (at.tensor(0)?, at.tensor(1)?, at.tensor(2)?);
    at.holds(init.dims.is_empty() && same_element(&init.element, &a.element), || {
        format!("{} starts with {}", words::of_tensor(a), words::of_tensor(init))
    })?;
    let rank = a.dims.len();
    let sizes = at.integers_or("window_dimensions", rank, 1)?;
    let dims = windowed(at, &a.dims, &sizes, ["window_strides", "", ""])?;
    at.holds(same_dims(&source.dims, &dims), || {
        format!("its source is {}, which does not fit the windows", words::of_tensor(source))
    })?;
    arrays::region(at, 0, vec![scalar(&a.element)])?;
    arrays::region(at, 1, vec![scalar(&a.element)])?;
    at.gives(0, &a.dims, &at.result_tensor(0)?.element)
}

/// How many windows there are along each axis; names of strides, of dilations of the base and of windows.
pub(super) fn windowed(at: &At<'_>, dims: &[Option<u64>], sizes: &[i64], names: [&str; 3]) -> Result<Dims> {
    let rank = dims.len();
    let [strides, base, window] = names.map(|name| at.integers_or(name, rank, 1));
    let (strides, base, window) = (strides?, base?, window?);
    let padding = at.integers_or("padding", 2 * rank, 0)?;
    let mut result = Dims::new();
    for d in 0..rank {
        let positive = strides[d] > 0 && base[d] > 0 && window[d] > 0 && sizes[d] > 0;
        at.holds(positive, || format!("a size, stride or dilation of axis {d} is not positive"))?;
        let Some(size) = dims[d] else {
            result.push(None);
            continue;
        };
        let wide = |size: i128, by: i64| if size == 0 { 0 } else { (size - 1) * i128::from(by) + 1 };
        let total = wide(size.into(), base[d]) + i128::from(padding[2 * d]) + i128::from(padding[2 * d + 1]);
        let window = wide(sizes[d].into(), window[d]);
        let count = if total < window || total <= 0 { 0 } else { (total - window) / i128::from(strides[d]) + 1 };
        result.push(u64::try_from(count).ok());
    }
    Ok(result)
}
