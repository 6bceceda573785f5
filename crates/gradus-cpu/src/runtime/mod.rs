//! What machine code calls: special functions, threads, and the library of products, sorts and single primitives.

pub mod special;
