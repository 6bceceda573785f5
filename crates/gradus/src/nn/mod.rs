//! What networks are made of: plain functions over arrays.

mod activations;
mod attention;
mod conv;
pub mod init;
mod layers;
mod layout;
mod losses;
mod pool;

pub use activations::{
    celu, elu, gelu, gelu_exact, glu, hard_sigmoid, hard_silu, hard_tanh, leaky_relu, log_sigmoid, log1mexp,
    logmeanexp, mish, relu6, selu, sigmoid, silu, soft_sign, softplus, sparse_plus, sparse_sigmoid, squareplus,
    standardize,
};
pub use attention::{Attention, attention};
pub use conv::{Conv, conv, conv_transpose};
pub use layers::{BatchNorm, BatchStats, dropout, embedding, layer_norm, linear, rms_norm};
pub use losses::{
    cosine_similarity, hinge, huber, kl_divergence, label_smoothing, log_cosh, mse, sigmoid_binary_cross_entropy,
    softmax_cross_entropy, softmax_cross_entropy_with_integer_labels,
};
pub use pool::{Pool, WindowKind, avg_pool, max_pool, reduce_window};

use gradus_core::{Array, Error, ErrorKind, Result};

/// Refuses what is no array of floats.
fn want_float(what: &str, x: &Array) -> Result<()> {
    match x.ty()? {
        ty if ty.dtype().is_float() => Ok(()),
        ty => Err(Error::new(ErrorKind::DType, format!("{what} is of floats, not {ty}"))
            .help("cast it, as in `x.cast(DType::F32)`")),
    }
}

/// Refuses what is no array of integers.
fn want_whole(what: &str, x: &Array) -> Result<()> {
    match x.ty()? {
        ty if ty.dtype().is_int() => Ok(()),
        ty => Err(Error::new(ErrorKind::DType, format!("{what} is of integers, not {ty}"))
            .help("cast it, as in `x.cast(DType::I32)`")),
    }
}
