//! Activation functions.

use gradus::nn;
use gradus::prelude::*;

use super::compare::{Entry, table};

pub fn entries() -> Vec<Entry> {
    table! {
        "nn.softplus" = |x| nn::softplus(&x[0]);
        "nn.softplus:far" = |x| nn::softplus(&x[0]);
        "nn.sigmoid" = |x| nn::sigmoid(&x[0]);
        "nn.log_sigmoid" = |x| nn::log_sigmoid(&x[0]);
        "nn.silu" = |x| nn::silu(&x[0]);
        "nn.mish" = |x| nn::mish(&x[0]);
        "nn.gelu" = |x| nn::gelu(&x[0]);
        "nn.gelu:exact" = |x| nn::gelu_exact(&x[0]);
        "nn.elu" = |x| nn::elu(&x[0], 1.0);
        "nn.celu" = |x| nn::celu(&x[0], 1.0);
        "nn.selu" = |x| nn::selu(&x[0]);
        "nn.leaky_relu" = |x| nn::leaky_relu(&x[0], 0.01);
        "nn.relu" = |x| x[0].relu();
        "nn.relu6" = |x| nn::relu6(&x[0]);
        "nn.hard_sigmoid" = |x| nn::hard_sigmoid(&x[0]);
        "nn.hard_silu" = |x| nn::hard_silu(&x[0]);
        "nn.hard_tanh" = |x| nn::hard_tanh(&x[0]);
        "nn.soft_sign" = |x| nn::soft_sign(&x[0]);
        "nn.sparse_plus" = |x| nn::sparse_plus(&x[0]);
        "nn.sparse_sigmoid" = |x| nn::sparse_sigmoid(&x[0]);
        "nn.squareplus" = |x| nn::squareplus(&x[0], 4.0);
        "nn.tanh" = |x| x[0].tanh();
        "nn.glu" = |x| nn::glu(&x[0], 1);
        "nn.softmax" = |x| x[0].softmax(1);
        "nn.log_softmax" = |x| x[0].log_softmax(1);
        "nn.logsumexp" = |x| x[0].logsumexp_axes(1);
        "nn.logmeanexp" = |x| nn::logmeanexp(&x[0], 1);
        "nn.log1mexp" = |x| nn::log1mexp(&x[0]);
        "nn.standardize" = |x| nn::standardize(&x[0], 1, 1e-5);
        "nn.one_hot" = |x| x[0].one_hot(4usize, DType::F64);
    }
}
