//! What a process keeps, code in memory and on disk and scratch memory between calls: how much there is, how much there may be, and how to drop it.
//!
//! Functions of the same program share its code; [`Fun::cache_limit`](crate::Fun::cache_limit) bounds what one function
//! keeps, [`limit_executables`] what all of them do. [`set_disk_cache`] keeps machine code between processes. [`limit_scratch`] bounds the
//! memory that large calls leave for the next ones.

pub use gradus_core::executables::{ExecutableStats, clear_executables, executable_stats, limit_executables};
pub use gradus_cpu::{DiskCacheStats, clear_disk_cache, disk_cache_stats, set_disk_cache, unset_disk_cache};
pub use gradus_cpu::{kept_scratch, limit_scratch, release_scratch};
