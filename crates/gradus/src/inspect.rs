//! What looking in gives: the answers of `trace`, `phases`, `explain`, `stats`, `lints` and `residuals`.
//!
//! They are read and printed, and seldom named; so they have a module of their own.

pub use crate::stage::{Difference, Explanation, KeyPart, Phases, Stats, TracedFunction};
pub use crate::transforms::Residual;
pub use gradus_core::lint::Lint;
pub use gradus_core::phases::Phase;
