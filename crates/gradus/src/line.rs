//! The user's line for functions that are made of many operations: what they record, and what they refuse, belongs to whoever called them.

use gradus_core::trace;
use gradus_core::{Array, Error, ErrorKind, Location, Result};

/// Runs the body of a library function on behalf of the line that called it.
#[track_caller]
pub(crate) fn on_line(body: impl FnOnce() -> Result<Array>) -> Array {
    let place = trace::caller_or_known(Location::caller());
    trace::at_place(place, || body().and_then(Array::ok)).map_err(|e| e.at(place)).into()
}

/// The same, and an error names the function.
#[track_caller]
pub(crate) fn in_function(name: &str, body: impl FnOnce() -> Result<Array>) -> Array {
    on_line(|| body().map_err(|e| e.in_operation(name)))
}

/// Refuses a count of operations that no call is made of: it would go on until there is no time or no memory left.
pub(crate) fn few(count: usize, what: &str, most: usize) -> Result<()> {
    match count <= most {
        true => Ok(()),
        false => refuse(ErrorKind::Size, format!("{what} {count}, which is more than {most}"), "take a smaller number"),
    }
}

/// A refusal with its way out.
pub(crate) fn refuse<T>(kind: ErrorKind, message: impl Into<String>, help: impl Into<String>) -> Result<T> {
    Err(Error::new(kind, message).help(help))
}
