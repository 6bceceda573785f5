//! What networks are made of: plain functions over arrays.

mod conv;
mod layout;
mod pool;

pub use conv::{Conv, conv, conv_transpose};
pub use pool::{Pool, WindowKind, avg_pool, max_pool, reduce_window};
