//! Functions that fold axes away, run along them, or are made of such: statistics, softmax and its kin, normalization.

use gradus::prelude::*;

use super::compare::{Entry, one, three, two};

pub fn entries() -> Vec<Entry> {
    vec![
        one("sum_of_axis", |x| (x * x).sum_axes(1)),
        one("mean_of_axis", |x| x.sin().mean_axes(0)),
        one("product", |x| x.prod()),
        one("product_with_zero", |x| (x.prod_axes(1).square() + x.prod_axes(1)).sum()),
        one("largest_of_axis", |x| x.square().max_axes(0)),
        one("range_of_rows", |x| (x.max_axes(1) - x.min_axes(1)).square().sum()),
        one("variance", |x| x.var()),
        one("sample_variance", |x| x.var_axes([0], 1)),
        one("standard_deviation", |x| x.std_axes(1, 0).powi(3).sum()),
        one("logsumexp", |x| x.logsumexp()),
        one("logsumexp_of_axis", |x| (x * 2.0).logsumexp_axes(1)),
        one("norm", |x| x.norm()),
        one("norm_of_columns", |x| x.norm_axes(0)),
        one("softmax", |x| x.softmax(0)),
        one("log_softmax", |x| x.log_softmax(0)),
        one("entropy", |x| -(x.softmax(0) * x.log_softmax(0)).sum()),
        two("cross_entropy_of_labels", |x, labels| -x.log_softmax(1).take_along_axis(&labels.expand_dims(1), 1).mean()),
        two("cross_entropy_one_hot", |x, labels| -(labels.one_hot(4usize, DType::F64) * x.log_softmax(-1)).sum()),
        two("kl_divergence", |a, b| (a.softmax(0) * (a.log_softmax(0) - b.log_softmax(0))).sum()),
        three("layer_norm", |x, scale, shift| {
            let y = (x - x.mean_keep(-1)) * (x.var_keep(-1, 0) + 1e-5).rsqrt();
            (y * scale + shift).sin().sum()
        }),
        two("rms_norm", |x, scale| x * (x.square().mean_keep(-1) + 1e-6).rsqrt() * scale),
        three("batch_norm", |x, scale, shift| {
            let y = (x - x.mean_axes(0)) / (x.var_axes(0, 0) + 1e-3).sqrt() * scale + shift;
            y.powi(3).sum()
        }),
        one("skewness", |x| {
            let d = x - x.mean();
            d.powi(3).mean() / d.square().mean().pow(1.5)
        }),
        one("geometric_mean", |x| x.log().mean().exp() / x.recip().mean()),
        two("cosine_similarity", |a, b| a.dot(b) / (a.norm() * b.norm())),
        one("largest_by_argmax", |x| x.take_along_axis(&x.argmax_keep(1), 1).square().sum()),
        one("cumulative_sum", |x| (x * x).cumsum(0)),
        one("cumulative_product", |x| (x.cumprod(0) * Array::from([1.0, 2.0, 3.0, 4.0])).sum()),
        one("cumulative_extremes", |x| x.cummax(0) + x.cummin(0) * 2.0),
        one("cumulative_of_axis", |x| (x.cumsum(0) * x.cumprod(1)).sum()),
    ]
}
