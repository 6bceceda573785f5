//! The native compiler as a backend that can be chosen: `jit(f).backend(Cpu::new().contract(false))`, or only its tier,
//! `jit(f).tier(Tier::Llvm)`.
//!
//! [`Prepared`] is what [`Compiled::prepared`](crate::Compiled::prepared) gives: a call with its buffers at hand.

pub use gradus_cpu::{Cpu, Prepared, Tier};
