//! What programs usually need: `use gradus::prelude::*;`.
//!
//! No name here is one that code over iterators calls: the sequential map is [`gradus::map`](crate::map), a whole axis is
//! `..`, and what else an index may be is in [`Index`].
//!
//! | for | names |
//! |---|---|
//! | arrays | [`Array`], [`Index`], [`Operand`], [`Element`], [`DType`], [`Shape`], [`Dim`], [`Type`], [`Complex`], [`bf16`](struct@bf16), [`f16`](struct@f16) |
//! | errors | [`Result`], [`Error`], [`ErrorKind`] |
//! | staging | [`jit`], [`Fun`], [`Transformed`], [`Func`], [`Compiled`], [`Program`] |
//! | options of `jit` | [`Mode`], [`Exactness`], [`Hunt`], [`Verify`], [`OnBudget`], [`Tier`] |
//! | gradients | [`grad`], [`value_and_grad`], [`grad_with_aux`], [`value_and_grad_with_aux`], [`grad_by`], [`Arg`], [`grad_all`] |
//! | other derivatives | [`jvp`], [`vjp`], [`Pullback`], [`linearize`], [`jacfwd`], [`jacfwd_by`], [`jacrev`], [`jacrev_by`], [`hessian`], [`hvp`], [`check_grads`] |
//! | rules of your own | [`custom_jvp`], [`custom_vjp`], [`stop_gradient`] |
//! | batching | [`vmap`] |
//! | branches and loops | [`cond`], [`switch`], [`scan`], [`ScanOptions`], [`Steps`], [`fori_loop`], [`while_loop`], [`WhileOptions`], [`History`], [`associative_scan`] |
//! | solutions | [`root`], [`fixed_point`], [`FixedPointOptions`], [`linear_solve`], [`solvers`], [`ode`] |
//! | memory | [`checkpoint`], [`Policy`] |
//! | training | [`optim`], [`files`] |
//! | effects | [`debug_print`], [`debug_check`], [`debug_callback`], [`io_callback`], [`pure_callback`], [`PureCallbackOptions`], [`capture_prints`] |
//! | values in functions | [`Tree`](trait@Tree), [`Static`], [`Num`], [`TrackNumbers`], [`tree`], [`random`], [`Key`] |
//! | signals and networks | [`fft`](mod@fft), [`signal`], [`nn`] |
//! | functions by field | [`special`], [`stats`] |
//! | linear algebra | [`linalg`] |

pub use crate::cpu::Tier;
pub use crate::effects::{PureCallbackOptions, capture_prints, debug_callback, io_callback, pure_callback};
#[cfg(feature = "fft")]
pub use crate::fft;
#[cfg(any(feature = "npy", feature = "safetensors"))]
pub use crate::files;
#[cfg(feature = "linalg")]
pub use crate::linalg;
pub use crate::nn;
pub use crate::ode;
pub use crate::optim;
pub use crate::random::{self, Key};
pub use crate::signal;
pub use crate::solvers::{self, FixedPointOptions, fixed_point, linear_solve, root};
pub use crate::special;
pub use crate::stats;
pub use crate::tree::{self, Num, Static, TrackNumbers, Tree};
pub use crate::{
    Arg, Compiled, Exactness, Fun, Func, Hunt, Mode, OnBudget, Pullback, Transformed, Verify, check_grads, grad,
    grad_all, grad_by, grad_with_aux, hessian, hvp, jacfwd, jacfwd_by, jacrev, jacrev_by, jit, jvp, linearize,
    value_and_grad, value_and_grad_with_aux, vjp, vmap,
};
pub use crate::{
    Array, Complex, DType, Dim, Element, Error, ErrorKind, Index, Operand, Program, Result, Shape, Type, bf16, f16,
};
pub use crate::{
    History, Policy, ScanOptions, Steps, WhileOptions, associative_scan, checkpoint, cond, custom_jvp, custom_vjp,
    fori_loop, scan, stop_gradient, switch, while_loop,
};
pub use crate::{debug_check, debug_print};
