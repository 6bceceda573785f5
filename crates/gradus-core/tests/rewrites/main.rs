//! Every law of the optimizer, checked by enumeration: the program before the passes and the one after give the same bits, on every
//! number of a small type or on every small shape.
//!
//! Each enumeration says which laws were applied in it. One test compares these with the laws that stand in the source, so that a law
//! without a check fails, and `laws.txt` has a line for each, with an expression before and after: a lost or changed law shows
//! in a difference. `GRADUS_BLESS=1` writes that file again.
//!
//! The ordinary run is a share that takes seconds in a debug build. `GRADUS_REWRITES=full` runs everything; do that in a release
//! build. NaN is NaN: which one comes out of an operation is the hardware's choice. Where a law changes the order of a float sum,
//! the numbers are such that every order gives the same.

mod boxes;
mod chains;
mod dots;
mod gathers;
mod laws;
mod loops;
mod scalars;
mod scatters;
mod support;
mod values;
