//! Places where what the derivative is, is a convention: kinks, ties and poles. Where ours is not JAX's, it is said what
//! ours is and why.

use gradus::prelude::*;

use super::compare::{Entry, Of, one, three, two};

pub fn entries() -> Vec<Entry> {
    vec![
        one("absolute_at_zero", |x| (x.abs() + x.sign() * 2.0 * x).sum()).differs(
            Of::Grad(0),
            [0.0, -3.0, 0.0],
            "the slope of |x| at 0 is the sign, 0; in JAX it is 1",
        ),
        two("ties_of_pairs", |x, y| (x.maximum(y) * 3.0 + x.minimum(y)).sum()),
        one("ties_of_extremes", |x| x.max() * 3.0 + x.min()),
        // |x| in the formula has no curvature at its kink, where softplus has 1/4. JAX has a rule for softplus of its own.
        // The logarithm of a sum of exponentials has no such kink, although there is a largest element in it.
        one("softplus_at_zero", |x| (x.maximum(0.0) + (-x.abs()).exp().log1p()).sum()).differs(
            Of::Hessian,
            [0.0, 0.0, 0.0, (-1.2_f64).exp() / (1.0 + (-1.2_f64).exp()).powi(2)],
            "the formula goes by way of |x|",
        ),
        one("logsumexp_at_tie", |x| x.logsumexp()),
        one("relu_at_zero", |x| (x.relu() * weights(3)).sum()),
        one("clamp_at_bounds", |x| (x.clamp(-1.0, 1.0) * weights(4)).sum()),
        one("clip_at_bounds", |x| (x.maximum(-1.0).minimum(1.0) * weights(4)).sum()),
        one("ties_of_sort", |x| (x.sort(0) * weights(4)).sum()),
        one("ties_of_downward_sort", |x| (x.sort_descending(0) * weights(4)).sum()).differs(
            Of::Grad(0),
            [1.0, 3.0, 2.0, 4.0],
            "equal elements keep their order; JAX turns an upward sort around",
        ),
        one("ties_of_top_k", |x| (x.top_k(3).0 * weights(3)).sum()),
        one("ties_of_cummax", |x| (x.cummax(0) * weights(5)).sum()).differs(
            Of::Grad(0),
            [1.0, 9.0, 0.0, 0.0, 5.0],
            "the first of equals has it; JAX shares as its scan is cut up",
        ),
        one("ties_of_argmax", |x| x.index(x.argmax()) * 2.0 + x.index(x.argmin())),
        one("product_of_two_zeros", |x| x.prod()),
        one("cumulative_product_of_zeros", |x| (x.cumprod(0) * weights(4)).sum()),
        two("power_at_zero", |x, y| x.pow(y).sum()).differs(
            Of::Grad(0),
            [0.0, 1.0, 0.0, 0.0],
            "0^0 stays 1 however the base moves; JAX has 0 * 0^-1, NaN",
        ),
        one("whole_power_at_zero", |x| (x.powi(3) + x.powi(2) + x.powi(1) + x.powi(0)).sum()),
        one("root_at_zero", |x| x.sqrt().sum()),
        one("norm_at_zero", |x| x.norm()),
        one("deviation_of_equals", |x| x.std()),
        one("unsafe_choice", |x| x.gt(0.0).select(x.sqrt(), 0.0).sum()),
        one("logarithm_at_zero", |x| (x.log() * x).sum()),
        one("softmax_of_minus_infinity", |x| (x.softmax(0) * weights(3)).sum()),
        one("logsumexp_of_nothing", |x| x.logsumexp()),
        one("angle_of_nothing", |x| x.index(0).atan2(x.index(1))),
        one("rounding_at_halves", |x| (x.round() * x + x.floor() + x.ceil()).sum()),
        three("ties_of_scatter_max", |x, y, i| (x.at(i).max(y) * weights(3)).sum()),
    ]
}

/// The numbers from one.
fn weights(n: usize) -> Array {
    Array::linspace(1.0, n as f64, n)
}
