//! XLA's CPU plugin held against the interpreter: every primitive's samples within bounds by operation, random programs with control flow and their
//! derivatives, effects, hunts and symbolic sizes.

mod bounds;
#[path = "../common/children.rs"]
mod children;
#[path = "../common/mod.rs"]
mod common;
mod programs;
mod samples;
