//! What programs usually need: `use gradus::prelude::*;`.
//!
//! No name here is one that code over iterators calls: the sequential map is [`gradus::map`](crate::map), a whole axis is
//! `..`, and what else an index may be is in [`Index`].
//!
//! | for | names |
//! |---|---|
//! | arrays | [`Array`], [`Index`], [`Operand`], [`Element`], [`DType`], [`Shape`], [`Dim`], [`Type`], [`Complex`], [`bf16`](struct@bf16), [`f16`](struct@f16) |
//! | errors | [`Result`], [`Error`], [`ErrorKind`] |
//! | staging | [`jit`], [`Fun`], [`Func`], [`Compiled`], [`Program`] |
//! | options of `jit` | [`Mode`], [`Exactness`], [`Hunt`], [`Verify`], [`OnBudget`], [`Tier`] |
//! | gradients | [`grad`], [`value_and_grad`], [`grad_with_aux`], [`value_and_grad_with_aux`], [`grad_by`], [`grad_all`] |
//! | other derivatives | [`jvp`], [`vjp`], [`Pullback`], [`linearize`], [`jacfwd`], [`jacrev`], [`hessian`], [`hvp`], [`check_grads`] |
//! | rules of your own | [`custom_jvp`], [`custom_vjp`], [`stop_gradient`] |
//! | batching | [`vmap`] |
//! | branches and loops | [`cond`], [`switch`], [`scan`], [`ScanOptions`], [`Steps`], [`fori_loop`], [`while_loop`], [`WhileOptions`], [`History`], [`associative_scan`] |
//! | memory | [`checkpoint`], [`Policy`] |
//! | effects | [`debug_print`], [`debug_check`], [`debug_callback`], [`io_callback`], [`pure_callback`], [`PureCallbackOptions`], [`capture_prints`] |
//! | linear algebra | [`linalg`] |
//! | values in functions | [`Tree`](trait@Tree), [`Static`], [`Num`], [`TrackNumbers`], [`random`], [`Key`] |

pub use crate::cpu::Tier;
pub use crate::effects::{PureCallbackOptions, capture_prints, debug_callback, io_callback, pure_callback};
#[cfg(feature = "linalg")]
pub use crate::linalg;
pub use crate::random::{self, Key};
pub use crate::tree::{Num, Static, TrackNumbers, Tree};
pub use crate::{
    Array, Complex, DType, Dim, Element, Error, ErrorKind, Index, Operand, Program, Result, Shape, Type, bf16, f16,
};
pub use crate::{
    Compiled, Exactness, Fun, Func, Hunt, Mode, OnBudget, Pullback, Verify, check_grads, grad, grad_all, grad_by,
    grad_with_aux, hessian, hvp, jacfwd, jacrev, jit, jvp, linearize, value_and_grad, value_and_grad_with_aux, vjp,
    vmap,
};
pub use crate::{
    History, Policy, ScanOptions, Steps, WhileOptions, associative_scan, checkpoint, cond, custom_jvp, custom_vjp,
    fori_loop, scan, stop_gradient, switch, while_loop,
};
pub use crate::{debug_check, debug_print};
