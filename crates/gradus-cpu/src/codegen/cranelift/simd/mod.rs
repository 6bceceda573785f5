//! Lanes in vectors of 128 bits: as many vectors as their type needs.

mod lanes;
mod vector;

pub(super) use lanes::{Lanes as Held, Operand, Width, native, word};
pub(super) use vector::{BYTES, cast, integers, literal, shuffle, vector_type as type_of};
