//! What programs usually need: `use gradus::prelude::*;`.

pub use crate::random::{self, Key};
pub use crate::tree::{Num, Static, TrackNumbers, Tree};
pub use crate::{
    Compiled, Explanation, Fun, Func, OnBudget, Pullback, Stats, TracedFunction, Vmap, check_grads, grad, grad_all,
    grad_by, grad_with_aux, hessian, hvp, jacfwd, jacrev, jit, jvp, linearize, value_and_grad, value_and_grad_with_aux,
    vjp, vmap,
};
pub use crate::{
    Exactness, History, Hunt, Policy, ScanOptions, Steps, associative_scan, checkpoint, checkpoint_name,
    checkpoint_with, cond, custom_jvp, custom_vjp, fori_loop, map, scan, scan_reverse, scan_with, stop_gradient,
    switch, while_loop, while_loop_with,
};
pub use crate::{
    Outcome, capture_prints, debug_callback, debug_check, debug_print, io_callback, pure_callback,
    pure_callback_batched,
};
pub use gradus_core::array::{Index, all, ellipsis, new_axis, step};
pub use gradus_core::{
    Array, Complex, DType, Dim, Element, Error, ErrorKind, Mode, Operand, Program, Result, Scalar, Shape, Type, bf16,
    f16,
};
