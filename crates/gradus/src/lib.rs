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
//! Start with [`jit`]; [`prelude`] has what programs usually need.
//!
//! # Names
//!
//! What is not here is in a module. `tests/face.rs` holds this list against the exports.
//!
//! | for | names |
//! |---|---|
//! | arrays | [`Array`], [`Index`], [`At`], [`Operand`], [`Element`], [`DType`], [`Shape`], [`Dim`], [`Type`], [`Complex`], [`bf16`](struct@bf16), [`f16`](struct@f16) |
//! | errors | [`Result`], [`Error`], [`ErrorKind`] |
//! | staging | [`jit`], [`Fun`], [`Transformed`], [`Func`], [`Compiled`], [`Program`], [`Interpreter`] |
//! | options of `jit` | [`Mode`], [`Exactness`], [`Hunt`], [`Verify`], [`OnBudget`] |
//! | gradients | [`grad`], [`value_and_grad`], [`grad_with_aux`], [`value_and_grad_with_aux`], [`grad_by`], [`Arg`], [`grad_all`] |
//! | other derivatives | [`jvp`], [`vjp`], [`Pullback`], [`linearize`], [`Linear`], [`jacfwd`], [`jacfwd_by`], [`jacrev`], [`jacrev_by`], [`hessian`], [`hvp`], [`check_grads`] |
//! | rules of your own | [`custom_jvp`], [`custom_vjp`], [`stop_gradient`] |
//! | batching | [`vmap`], [`Vmap`] |
//! | branches and loops | [`cond`], [`switch`], [`scan`], [`ScanOptions`], [`Steps`], [`map`], [`fori_loop`], [`while_loop`], [`WhileOptions`], [`History`], [`associative_scan`] |
//! | solutions | [`solvers`], [`ode`] |
//! | memory | [`checkpoint`], [`Checkpoint`], [`Policy`] |
//! | training | [`optim`], [`files`] |
//! | effects | [`debug_print`], [`debug_check`], [`effects`] |
//! | values in functions | [`tree`], [`random`] |
//! | signals and networks | [`fft`](mod@fft), [`signal`], [`nn`] |
//! | functions by field | [`special`], [`stats`] |
//! | linear algebra | [`linalg`] |
//! | the process | [`cpu`], [`devices`], [`cache`], [`warnings`] |
//! | programs from and to elsewhere | [`stablehlo`] |
//! | other libraries | [`interop`] |
//! | looking in | [`inspect`] |
//! | operations, backends and tools of your own | [`extend`] |
//! | all of the daily ones | [`prelude`] |

#![forbid(unsafe_code)]

// Code that the derive writes says `::gradus`, inside this crate too.
extern crate self as gradus;

mod arguments;
#[cfg(doctest)]
mod book;
pub mod cache;
mod control;
pub mod cpu;
pub mod devices;
pub mod effects;
mod error_pages;
pub mod extend;
#[cfg(feature = "fft")]
pub mod fft;
#[cfg(any(feature = "npy", feature = "safetensors"))]
pub mod files;
mod formula;
mod function;
pub mod inspect;
#[cfg(feature = "linalg")]
pub mod linalg;
mod line;
pub mod nn;
pub mod ode;
pub mod optim;
pub mod prelude;
pub mod random;
pub mod signal;
pub mod solvers;
pub mod special;
#[cfg(feature = "stablehlo")]
pub mod stablehlo;
mod stage;
pub mod stats;
mod transforms;
pub mod tree;
pub mod warnings;

pub use arguments::Arg;
pub use control::{
    Checkpoint, ScanOptions, WhileOptions, associative_scan, checkpoint, cond, custom_jvp, custom_vjp, fori_loop, map,
    scan, stop_gradient, switch, while_loop,
};
pub use function::{Fun, Func, Transformed};
pub use gradus_core::array::At;
pub use gradus_core::control::{History, Steps};
pub use gradus_core::hunt::Hunt;
pub use gradus_core::optimize::Exactness;
pub use gradus_core::oracle::Verify;
pub use gradus_core::primitives::control::Policy;
pub use gradus_core::{
    Array, Complex, DType, Dim, Element, Error, ErrorKind, Index, Interpreter, Mode, Operand, Program, Result, Shape,
    Type, bf16, f16, interop,
};
pub use stage::{Compiled, OnBudget, jit};
pub use transforms::{
    Linear, Pullback, Vmap, check_grads, grad, grad_all, grad_by, grad_with_aux, hessian, hvp, jacfwd, jacfwd_by,
    jacrev, jacrev_by, jvp, linearize, value_and_grad, value_and_grad_with_aux, vjp, vmap,
};
