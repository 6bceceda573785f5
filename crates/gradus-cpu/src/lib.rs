//! The native CPU compiler: programs become fused kernels, kernels become machine code.
//!
//! `unsafe` lives here and nowhere else in the embedded engine: machine code is called, and it reads and writes memory that
//! the plan gives it. Each block says why it is sound.

pub mod abi;
pub mod backend;
mod bind;
mod block;
mod check;
pub mod codegen;
mod disk;
mod error;
pub mod exec;
mod extent;
pub mod ir;
pub mod lower;
pub mod memory;
pub mod native;
mod prepared;
pub mod runtime;
mod size;

pub use backend::{Cpu, Options, Tier, Vectors};
pub use bind::Bound;
pub use disk::{DiskCacheStats, clear_disk_cache, disk_cache_stats, set_disk_cache, unset_disk_cache};
pub use native::Native;
pub use prepared::Prepared;
pub use size::Size;
