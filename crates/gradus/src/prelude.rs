//! What programs usually need: `use gradus::prelude::*;`.

pub use crate::tree::{Num, Static, TrackNumbers, Tree};
pub use crate::{Compiled, Explanation, Fun, Func, Stats, TracedFunction, jit};
pub use gradus_core::array::{Index, all, ellipsis, new_axis, step};
pub use gradus_core::{
    Array, Complex, DType, Dim, Element, Error, ErrorKind, Mode, Operand, Program, Result, Scalar, Shape, Type, bf16, f16,
};
