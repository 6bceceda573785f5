//! Functions that pick, change, order and move elements, and those of operands with several dtypes.

use gradus::prelude::*;

use super::compare::{Entry, four, one, three, two};

pub fn entries() -> Vec<Entry> {
    vec![
        one("steps", |x| {
            Array::concatenate([x.index(Index::step(1..5, 2)).square(), x.index(Index::step(.., -2)), x.index(-1..)], 0)
        }),
        one("blocks", |x| (x.index((1.., ..2)) * x.index((..2, 2..))).sum() + x.index((0, -1)) * x.index((2, 1))),
        two("rows_by_number", |x, i| x.take(i, 0).powi(3).sum()),
        three("places_by_numbers", |x, i, j| x.index((i, j)).square()),
        two("places_outside_are_clipped", |x, i| x.index(i).square()),
        two("places_of_rows", |x, i| (x.take_along_axis(i, 1) * Array::from([[1.0, 2.0], [3.0, 4.0]]).square()).sum()),
        three("scatter_add", |x, y, i| x.at(i).add(y.sin()).square().sum()),
        three("scatter_set", |x, y, i| x.at(i).set(y * x.index(0)).powi(3).sum()),
        three("scatter_mul", |x, y, i| x.at(i).mul(y).square().sum()),
        three("scatter_max_min", |x, y, i| (x.at(i).max(y).square() - x.at(i).min(y).powi(3)).sum()),
        two("block_update", |x, y| x.at((1, 1..3)).set(y).at((Index::step(.., 2), 0)).add(y * y).square().sum()),
        two("marked_places", |x, y| x.at(x.lt(0.0)).set(y).powi(3).sum()),
        two("embedding_bag", |x, i| Array::zeros::<f64>([3, 4]).at(i).add(x * x)),
        three("dynamic_slice", |x, i, j| x.dynamic_slice(&[i.clone(), j.clone()], [2, 2]).square()),
        four("dynamic_update_slice", |x, y, i, j| {
            let block = y * x.index((..1, ..2));
            x.dynamic_update_slice(&block, &[i.clone(), j.clone()]).square().sum()
        }),
        one("sort", |x| x.sort(0) * Array::from([1.0, 2.0, 3.0, 4.0])),
        one("sort_downwards", |x| (x.sort_descending(1) * Array::arange(0.0, 12.0, 1.0).reshape([3, 4])).sum()),
        two("sort_by_keys", |x, y| {
            let (keys, values) = Array::sort_by_keys([x], [y], 0);
            (values[0].cumsum(0) * &keys[0]).sum()
        }),
        one("order_by_argsort", |x| (x.index(x.argsort(0)).square() * Array::from([1.0, 2.0, 3.0, 4.0])).sum()),
        one("top_k", |x| {
            let (values, places) = x.top_k(2);
            (values * Array::from([1.0, 2.0]) * places.cast(DType::F64)).sum()
        }),
        one("median", |x| x.sort(0).index(2).square()),
        two("linear_interpolation", |x, y| {
            let knots = Array::arange(0.0, 4.0, 1.0);
            let i = knots.searchsorted_right(x) - 1;
            let t = x - knots.index(&i);
            (y.index(&i) * (1.0_f64 - &t) + y.index(&i + 1) * t).square().sum()
        }),
        two("joining", |x, y| Array::concatenate([Array::stack([x, &(x * x)], 0), y.clone(), y.t()], 1).powi(3).sum()),
        two("padding", |x, value| (x.pad(&[(1, 2)], value).square() * Array::arange(0.0, 8.0, 1.0)).sum()),
        one("crop_and_flip", |x| x.pad(&[(-1, 0), (1, -2)], 0.0).flip(1).square()),
        one("roll", |x| x.roll(2, 0) * x),
        one("transposed_and_reshaped", |x| {
            (x.t().reshape([3, 4]) * x).sum() + x.reshape([3, 2, 2]).move_axis(0, 2).index(1).powi(3).sum()
        }),
        two("broadcasting", |x, y| ((x + y).sin() * x.broadcast_to([2, 3])).sum()),
        one("tiles_and_repeats", |x| x.tile([2]) * x.repeat(2, 0)),
        one("triangles", |x| {
            x.tril(0).matmul(&x.triu(1)).square().sum() + Array::diag(&x.diagonal(), 0).matmul(x).sum()
        }),
        three("choice", |x, y, mask| mask.select(x * y, x.exp()).square().sum()),
        three("clamp", |x, low, high| x.clamp(low, high).square().sum()),
        two("grid", |x, y| {
            let both = Array::meshgrid([x, y]);
            ((&both[0] * &both[1]).sin() * &both[0]).sum()
        }),
        two("convolution", |x, k| {
            let parts = (0..3_i64).map(|j| x.index(j..j + 3) * k.index(2 - j));
            parts.reduce(|a, b| a + b).unwrap()
        }),
        one("differences", |x| {
            let d = x.index(1..) - x.index(..-1);
            let dd = d.index(1..) - d.index(..-1);
            d.square().sum() + dd.powi(4).sum()
        }),
        two("mixed_with_integers", |x, i| {
            (x.square() * i.cast(DType::F64) + x.sin() / (i * i + 1).cast(DType::F64)).sum()
        }),
        // The gradient by the f32 argument is rounded to f32.
        two("mixed_with_narrow_floats", |x, y| (x * y).sin().sum()).tolerance(1e-7),
    ]
}
