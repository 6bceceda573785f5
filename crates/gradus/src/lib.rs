//! Staged automatic differentiation for Rust. Functions over arrays become programs; programs are transformed,
//! optimized, compiled, cached and run.
//!
//! ```
//! use gradus::prelude::*;
//!
//! fn f(x: &Array) -> Array {
//!     (x * x).sin()
//! }
//!
//! # fn main() -> Result<()> {
//! let g = jit(f);
//! let x = Array::from(2.0_f64);
//! assert_eq!(g(&x).item::<f64>()?, f(&x).item::<f64>()?);
//! println!("{}", g.trace(&Array::spec("f64[]"))?.program());
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`jit`]; [`prelude`] has everything that programs usually need.

#![forbid(unsafe_code)]

// Code that the derive writes says `::gradus`, inside this crate too.
extern crate self as gradus;

#[cfg(doctest)]
mod book;
mod control;
pub mod effects;
mod error_pages;
mod function;
pub mod prelude;
pub mod random;
mod signature;
mod stage;
mod transforms;
pub mod tree;

pub use control::{
    ScanOptions, associative_scan, checkpoint, checkpoint_name, checkpoint_with, cond, custom_jvp, custom_vjp,
    fori_loop, map, scan, scan_reverse, scan_with, stop_gradient, switch, while_loop, while_loop_with,
};
pub use effects::{Outcome, capture_prints, debug_callback, io_callback, pure_callback, pure_callback_batched};
pub use error_pages::error_page;
pub use function::{Fun, Func, Wrapped};
pub use gradus_core::control::{History, Steps};
pub use gradus_core::executables::{ExecutableStats, clear_executables, executable_stats, limit_executables};
pub use gradus_core::hunt::Hunt;
pub use gradus_core::lint::Lint;
pub use gradus_core::optimize::Exactness;
pub use gradus_core::primitives::control::Policy;
pub use gradus_core::warnings::{self, Warning, WarningKind, reset_warning_handler, set_warning, set_warning_handler};
pub use gradus_core::{
    Array, Backend, Complex, Constraint, DType, Decision, Dim, Effects, Element, Error, ErrorKind, Executable, Index,
    Interpreter, IntoAxes, IntoIndex, IntoShape, Mode, Operand, OperandValue, Place, Program, Result, Scalar, Shape,
    Type, array, bf16, error, f16, interop, interpret, math, optimize, oracle, param_names, phases, primitives,
    program, rules_of, scalar, testing, trace, transform, types,
};
pub use gradus_cpu::{
    self as cpu, Cpu, DiskCacheStats, Tier, clear_disk_cache, disk_cache_stats, set_disk_cache, unset_disk_cache,
};
pub use random::Key;
pub use signature::{Signature, args};
pub use stage::{Compiled, Difference, Explanation, KeyPart, OnBudget, Phases, Stats, TracedFunction, jit};
pub use transforms::{
    Arg, Axes, Linear, Pullback, Residual, Vmap, check_grads, grad, grad_all, grad_by, grad_with_aux, hessian, hvp,
    jacfwd, jacrev, jvp, linearize, value_and_grad, value_and_grad_with_aux, vjp, vmap,
};
