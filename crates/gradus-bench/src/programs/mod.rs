//! The programs of GradBench, a public benchmark of differentiation, written with the public interface alone: what is
//! measured is what a user gets. The cases of the benchmark and the command that speaks GradBench's protocol share them.
//!
//! Every file is one program: its objective, and the derivative that is asked for.

pub mod ba;
pub mod gmm;
pub mod ht;
pub mod kmeans;
pub mod llsq;
pub mod lse;
pub mod lstm;
