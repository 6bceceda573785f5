//! Functions that treat every element alike, chained: each family of functions with its first and second derivatives.

use gradus::prelude::*;

use super::compare::{Entry, one, two};

const SQRT_2: f64 = std::f64::consts::SQRT_2;

pub fn entries() -> Vec<Entry> {
    vec![
        one("exp_log", |x| (x.exp() * x.powi(2) + 1.0).log().sum()),
        one("expm1_log1p", |x| (x.expm1() * x.square().log1p()).sum()),
        one("roots", |x| (x.sqrt() * (x + 1.0).cbrt() + x.rsqrt()).sum()),
        one("trigonometric", |x| (x.sin() * (x * 2.0).cos() + (x / 3.0).tan()).sum()),
        one("inverse_trigonometric", |x| (x.asin() * x.acos() + (x * 3.0).atan()).sum()),
        one("hyperbolic", |x| (x.sinh() / (x / 2.0).cosh() - x.tanh()).sum()),
        one("inverse_hyperbolic", |x| (x.asinh() + (x + 2.5).acosh() * x.atanh()).sum()),
        one("logistic", |x| (x.logistic() * (1.0_f64 - (x * 2.0).logistic())).sum()),
        one("softplus", |x| softplus(x).sum()),
        one("silu", |x| x * x.logistic()),
        one("mish", |x| (x * softplus(x).tanh()).sum()),
        one("elu", |x| x.gt(0.0).select(x, x.minimum(0.0).expm1()).square().sum()),
        one("error_functions", |x| (x.erf() * (x / 2.0).erfc()).sum()),
        one("erf_inv", |x| x.erf_inv().square().sum()),
        one("gelu", |x| (x * 0.5 * ((x / SQRT_2).erf() + 1.0)).sum()),
        one("gelu_tanh", |x| {
            let inner = (x + x.powi(3) * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
            (x * 0.5 * (inner.tanh() + 1.0)).sum()
        }),
        one("gamma_functions", |x| (x.lgamma() * x.digamma()).sum()),
        one("trigamma", |x| (x.polygamma(1) * x).sum()),
        two("log_beta", |a, b| (a.lgamma() + b.lgamma() - (a + b).lgamma()).sum()),
        two("powers", |x, y| x.pow(y).sum()),
        one("power_tower", |x| x.pow(x.pow(x)).sum()),
        one("whole_powers", |x| (x.powi(5) - x.powi(3) * 3.0 + x.powi(-2)).sum()),
        two("atan2", |y, x| y.atan2(x).square().sum()),
        two("hypot", |x, y| (x * x + y * y).sqrt().sum()),
        one("other_bases", |x| (x.log2() * (x + 1.0).log10() + x.full_like(2.0).pow(x)).sum()),
        one("absolute", |x| (x.abs().pow(1.5) * x.sign()).sum()),
        one("rounding", |x| (x * (x.floor() + x.ceil() * 2.0 + x.round() * 3.0 + x.trunc() * 4.0)).sum()),
        two("remainder", |x, y| (x % y * x).sum()),
        two("logaddexp", |a, b| (a.maximum(b) + (-(a - b).abs()).exp().log1p()).sum()),
        one("logit", |x| ((x / (1.0_f64 - x)).log() * (-x * x.log())).sum()),
        one("huber", |x| x.abs().lt(1.0).select(x.square() * 0.5, x.abs() - 0.5).sum()),
        one("sinc_with_safe_choice", |x| {
            let safe = x.eq(0.0).select(1.0, x);
            (x.eq(0.0).select(1.0, safe.sin() / &safe) * x).sum()
        }),
        one("smoothstep", |x| {
            let t = ((x + 1.0) / 2.0).clamp(0.0, 1.0);
            (&t * &t * (3.0_f64 - &t * 2.0)).sum()
        }),
        one("log_normal_cdf", |x| ((x / -SQRT_2).erfc() * 0.5).log().sum()),
        two("student_t", |x, df| {
            let half = (df + 1.0) / 2.0;
            let scale = half.lgamma() - (df / 2.0).lgamma() - (df * std::f64::consts::PI).log() * 0.5;
            (scale - half * (x.square() / df).log1p()).sum()
        }),
    ]
}

fn softplus(x: &Array) -> Array {
    x.maximum(0.0) + (-x.abs()).exp().log1p()
}
