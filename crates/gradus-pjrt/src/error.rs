//! Shorthand for the errors that are made all over the crate.

pub use gradus_core::{Error, Result};

macro_rules! error {
    ($kind:ident, $($format:tt)+) => {
        gradus_core::Error::new(gradus_core::ErrorKind::$kind, format!($($format)+))
    };
}
macro_rules! fail {
    ($kind:ident, $($format:tt)+) => { return Err($crate::error::error!($kind, $($format)+)) };
}
pub(crate) use {error, fail};
