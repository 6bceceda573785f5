//! The native CPU compiler: programs become fused kernels, kernels become machine code.
//!
//! `unsafe` lives here and nowhere else in the embedded engine: machine code is called, and it reads and writes memory that
//! the plan gives it. Each block says why it is sound.
//!
//! What is public takes verified programs and nothing less: a module of the kernel language made by hand could be machine code that writes
//! anywhere. The stages between are for the tools and tests of this workspace, behind the feature `testing`.

// What only those tools look at.
#![cfg_attr(not(feature = "testing"), allow(dead_code, unused_imports))]

mod arena;
mod backend;
mod bind;
mod block;
mod check;
mod cost;
mod disk;
mod error;
mod extent;
mod pages;
mod prepared;
mod size;
mod tiers;

#[cfg(not(feature = "testing"))]
mod abi;
#[cfg(feature = "testing")]
pub mod abi;
#[cfg(not(feature = "testing"))]
mod codegen;
#[cfg(feature = "testing")]
pub mod codegen;
#[cfg(not(feature = "testing"))]
mod exec;
#[cfg(feature = "testing")]
pub mod exec;
#[cfg(not(feature = "testing"))]
mod ir;
#[cfg(feature = "testing")]
pub mod ir;
#[cfg(not(feature = "testing"))]
mod lower;
#[cfg(feature = "testing")]
pub mod lower;
#[cfg(not(feature = "testing"))]
mod memory;
#[cfg(feature = "testing")]
pub mod memory;
#[cfg(not(feature = "testing"))]
mod native;
#[cfg(feature = "testing")]
pub mod native;
#[cfg(not(feature = "testing"))]
mod runtime;
#[cfg(feature = "testing")]
pub mod runtime;
#[cfg(not(feature = "testing"))]
mod vector;
#[cfg(feature = "testing")]
pub mod vector;

pub use arena::{kept_scratch, limit_scratch, release_scratch};
pub use backend::{Cpu, Options, Tier, Vectors};
pub use disk::{DiskCacheStats, clear_disk_cache, disk_cache_stats, find_kept, keep, set_disk_cache, unset_disk_cache};
pub use native::Native;
pub use prepared::Prepared;
