//! The heart of Gradus: arrays, programs, primitives, tracing, transformations and the reference interpreter.
//!
//! Users add the `gradus` crate, which re-exports what they need. The folders here stand in the order in which data
//! passes through them: `types`, `array`, `trace`, `program`, `primitives`, `transform`, `optimize`, `pipeline`, `interpret`.

#![forbid(unsafe_code)]

pub mod array;
mod backend;
pub mod control;
pub mod error;
pub mod executables;
pub mod hunt;
mod integers;
pub mod interop;
mod interpret;
pub mod lint;
pub mod location;
pub mod math;
mod memo;
pub mod optimize;
pub mod oracle;
pub mod phases;
pub mod pipeline;
pub mod primitives;
pub mod program;
pub mod scalar;
mod stack;
pub mod testing;
pub mod trace;
pub mod transform;
pub mod types;
pub mod warnings;

pub use array::{Array, Index, IntoAxes, IntoIndex, Operand, OperandValue};
pub use backend::{Backend, Executable, Facts, Passed, Usage};
pub use error::{Error, ErrorKind, Location, Result};
pub use interpret::{Interpreter, interpret};
pub use program::Program;
pub use trace::Mode;
pub use types::{
    Complex, Constraint, DType, Decision, Dim, Effects, Element, IntoShape, Scalar, Shape, Type, bf16, f16,
};
