//! From the kernel language to machine code.

#[cfg(has_cranelift)]
pub mod cranelift;
pub mod embedded;
#[cfg(all(test, has_cranelift))]
mod functions;
#[cfg(any(test, feature = "testing"))]
pub mod harness;
pub(crate) mod kept;
pub mod llvm;
#[cfg(all(test, has_cranelift))]
mod modules;
pub(crate) mod perf;
#[cfg(all(test, has_cranelift))]
mod stacks;
pub mod x86;
