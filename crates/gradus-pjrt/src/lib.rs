//! Gradus programs on devices that speak PJRT, the interface of XLA's plugins: all the unsafe code that talks to one is here.
//!
//! ```text
//! Plugin ─ Client ─ Device ─ Buffer ─┐
//!             └ Loaded ──────────────┴─ Pjrt, the backend: program ─ StableHLO ─ Loaded, arrays ─ Buffers
//! ```
//!
//! *Invariants.* A plugin is loaded once and stays, and so do its clients; buffers and code go with their last holder. A function that the plugin lacks is
//! never called. No error of a plugin is lost: what a run did wrong comes out where its results are read.

#![warn(clippy::undocumented_unsafe_blocks)]

mod api;
mod backend;
mod buffer;
mod client;
mod error;
mod event;
mod executable;
mod find;
mod host;
mod loaded;
mod memory;
mod options;
mod pjrt;
mod plugin;
mod remote;
mod sys;
mod topology;

pub use buffer::Buffer;
pub use client::{Client, Device, DeviceMemory, Traffic};
pub use executable::{Codes, Compiled};
pub use find::VARIABLE;
pub use gradus_stablehlo::export::{Accuracy, Precision};
pub use loaded::{CodeMemory, Loaded, Outputs};
pub use options::Value;
pub use pjrt::{Allocator, Pjrt, pjrt};
pub use plugin::Plugin;
pub use remote::Place;
pub use topology::{AheadOfTime, Topology};
