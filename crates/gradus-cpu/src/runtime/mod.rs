//! What machine code calls: special functions, threads, and the library of products, sorts and single primitives.

mod library;
pub mod special;
mod threads;

pub use library::{Entry, Evaluate, Gemm, Placed, Run, call, call_entry};
pub use threads::parallel;
