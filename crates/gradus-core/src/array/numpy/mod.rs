//! NumPy's functions that are made of other operations, so that every transformation and backend has them without a word.
//!
//! A function of one array is a method; one of a list of arrays is an associated function, as `Array::stack` is.

mod differences;
mod elementwise;
mod joining;
mod making;
mod nan;
mod ordering;
mod places;
mod polynomials;
mod running;
mod sets;
mod statistics;

use crate::array::Array;
use crate::error::{Result, error};
use crate::trace::{at_place, current_place};

/// Runs a function whose operations all stand for the line of the caller, those in its closures too.
#[track_caller]
pub(super) fn at_caller(f: impl FnOnce() -> Result<Array>) -> Array {
    let place = current_place();
    at_place(place, f).map_err(|e| e.at(place)).into()
}

/// As [`at_caller`], of a function with several results; on a mistake there are `n` that carry it.
#[track_caller]
pub(super) fn all_at_caller(n: usize, f: impl FnOnce() -> Result<Vec<Array>>) -> Vec<Array> {
    let place = current_place();
    at_place(place, f).unwrap_or_else(|e| vec![Array::from(e.at(place)); n])
}

/// The most parts that one call cuts an array into, and the most operations that it is made of.
const MOST: usize = 1 << 20;

/// Refuses a count of operations that no program has: a list of them would grow until there is no memory, or the call would not end.
pub(super) fn countable(n: usize, what: &str) -> Result<()> {
    match n <= MOST {
        true => Ok(()),
        false => Err(error!(Size, "{n} {what}: one call has {MOST} of them at most")
            .help("a loop of the program, such as `fori_loop` or `scan`, goes on as long as it likes")),
    }
}

#[cfg(test)]
mod tests;
