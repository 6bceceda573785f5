//! What networks are made of, as plain functions of arrays.

mod activations;

pub use activations::{
    celu, elu, gelu, gelu_exact, glu, hard_sigmoid, hard_silu, hard_tanh, leaky_relu, log_sigmoid, log1mexp,
    logmeanexp, mish, relu6, selu, sigmoid, silu, soft_sign, softplus, sparse_plus, sparse_sigmoid, squareplus,
    standardize,
};
