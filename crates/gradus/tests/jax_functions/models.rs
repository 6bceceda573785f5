//! Losses of models, and functions that take derivatives or batches inside.

use gradus::prelude::*;

use super::compare::{Entry, five, four, one, six, three, two};
use super::linear::determinant;

pub fn entries() -> Vec<Entry> {
    vec![
        six("mlp_regression", |w1, b1, w2, b2, x, y| ((x.dot(w1) + b1).tanh().dot(w2) + b2 - y).square().mean()),
        five("mlp_classifier", |w1, b1, w2, x, labels| {
            let logits = (x.dot(w1) + b1).relu().dot(w2);
            -logits.log_softmax(1).index((Array::arange(0_i64, 5, 1), labels)).mean()
        }),
        four("logistic_regression", |w, b, x, y| {
            let z = x.dot(w) + b;
            -y.eq(1).select(log_sigmoid(&z), log_sigmoid(&-&z)).mean()
        }),
        four("ridge_regression", |w, x, y, strength| (x.dot(w) - y).square().sum() + strength * w.square().sum()),
        four("attention", |x, wq, wk, wv| {
            let [q, k, u] = [wq, wk, wv].map(|w| x.dot(w));
            (q.dot(&k.t()) / 2.0).softmax(-1).dot(&u).sin().sum()
        }),
        four("causal_attention_of_heads", |x, wq, wk, wv| {
            let [q, k, u] = [wq, wk, wv].map(|w| Array::einsum("btd,dhe->bhte", [x, w]));
            let scores = q.matmul(&k.swap_axes(2, 3)) / 2.0_f64.sqrt();
            let scores = Array::tri::<bool>(3usize, 3usize, 0).select(scores, f64::NEG_INFINITY);
            scores.softmax(-1).matmul(&u).square().sum()
        }),
        four("gru_cell", |h, x, wx, wh| {
            let gx = wx.reshape([3, 3, 6]).index((.., .., ..3)).matmul(x);
            let gh = wh.reshape([3, 3, 3]).matmul(h);
            let [r, z] = [0, 1].map(|i| (gx.index(i) + gh.index(i)).logistic());
            let fresh = (gx.index(2) + r * gh.index(2)).tanh();
            (1.0_f64 - &z) * fresh + &z * h
        }),
        two("convolution_2d", |k, image| {
            let mut y = Array::zeros::<f64>([4, 3]);
            for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                y += image.index((i..i + 4, j..j + 3)) * k.index((i, j));
            }
            (y.maximum(0.0) + (-y.abs()).exp().log1p()).sum()
        }),
        three("contrastive_loss", |a, b, temperature| {
            let unit = |x: &Array| x / x.norm_keep(1);
            let logits = unit(a).dot(&unit(b).t()) / temperature;
            -logits.log_softmax(1).diagonal().mean()
        }),
        three("variational_bound", |mean, log_var, eps| {
            let z = mean + (log_var / 2.0).exp() * eps;
            let kl = (log_var + 1.0 - mean.square() - log_var.exp()).sum() * -0.5;
            log_sigmoid(&z).sum() - kl
        }),
        three("policy_gradient", |logits, actions, advantages| {
            let chosen = logits.log_softmax(1).take_along_axis(&actions.expand_dims(1), 1).squeeze(1);
            // Only the difference to what the policy was counts, and that is given here.
            let shift = Array::from([0.1, -0.4, 0.05, 0.3]);
            let ratio = (&chosen - stop_gradient(&chosen) + shift).exp();
            let clipped = ratio.clamp(0.8, 1.2) * advantages;
            -(ratio * advantages).minimum(clipped).mean()
        }),
        two("gradient_penalty", |w, x| small_net(w, x) + grad_by(1, small_net)(w, x).square().sum()),
        two("per_example_gradients", |w, xs| vmap(grad(small_net)).axes((None, Some(0)))(w, xs)),
        two("directional_derivative", |x, t| {
            let (_, tangent) = jvp(|x: &Array| (x * x.flip(0)).sin(), x, t);
            tangent.square().sum()
        }),
        two("curvature_product", |x, t| hvp(|x: &Array| x.exp().prod() + x.powi(4).sum())(x, t)),
        one("laplacian", |x| hessian(|x: &Array| x.index(0).sin() * x.index(1).exp() * x.index(2).powi(3))(x).trace()),
        one("log_volume", |x| determinant(&jacfwd(|x: &Array| x + x.roll(1, 0).tanh() * 0.3)(x)).abs().log()),
    ]
}

fn small_net(w: &Array, x: &Array) -> Array {
    w.dot(x).tanh().square().sum()
}

fn log_sigmoid(x: &Array) -> Array {
    x.minimum(0.0) - (-x.abs()).exp().log1p()
}
