//! What is known of a value before it has numbers: element type, shape, and the effects of computing it.

mod data;
mod dim;
mod dim_ops;
mod dim_range;
mod dim_text;
mod dtype;
mod effects;
mod scalar;
mod shape;
mod ty;

pub use data::Data;
pub use dim::{Constraint, Decision, Dim, DimError};
pub use dtype::DType;
pub use effects::Effects;
pub use scalar::{Complex, Element, KeyBits, Scalar, Wide, bf16, f16};
pub(crate) use scalar::{dispatch, dispatch_float, dispatch_int, dispatch_number, dispatch_real};
pub(crate) use shape::{Dims, Strides, row_major};
pub use shape::{IntoShape, Shape};
pub(crate) use ty::Dense;
pub use ty::Type;
