//! The part of the benchmark that more than one of its commands needs: whole programs as a user of Gradus writes them, and
//! GradBench's protocol around them.

pub mod programs;
pub mod protocol;
