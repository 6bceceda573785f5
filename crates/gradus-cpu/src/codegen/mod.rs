//! From the kernel language to machine code.

pub mod cranelift;
#[cfg(test)]
mod functions;
#[cfg(any(test, feature = "testing"))]
pub mod harness;
pub(crate) mod kept;
pub mod llvm;
#[cfg(test)]
mod stacks;
pub mod x86;
