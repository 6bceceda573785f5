//! What is allowed and worth a look: who hears of it, and which kinds are said at all.
//!
//! Warnings go to the standard error unless a handler takes them. `GRADUS_WARNINGS` turns kinds off for a whole process, or on that are off by default.

pub use gradus_core::warnings::{
    Warning, WarningKind, collect, reset_warning_handler, set_warning, set_warning_handler,
};
