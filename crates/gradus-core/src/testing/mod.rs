//! What tests of operations are made of, for this crate and for users who write primitives of their own.

mod checks;
mod compare;
pub mod files;
mod random;

pub use checks::*;
pub use compare::{canonical, seeds, seeds_from};
pub use random::*;
