//! The pages of the book as documentation, so that their Rust code runs with the doctests. Nothing of it is compiled
//! otherwise.

#[doc = include_str!("../../../docs/book/src/how-differentiation-works.md")]
mod how_differentiation_works {}

#[doc = include_str!("../../../docs/book/src/how-a-program-becomes-machine-code.md")]
mod how_a_program_becomes_machine_code {}

#[doc = include_str!("../../../docs/book/src/composition.md")]
mod composition {}

#[doc = include_str!("../../../docs/book/src/control-flow.md")]
mod control_flow {}

#[doc = include_str!("../../../docs/book/src/every-size.md")]
mod every_size {}

#[doc = include_str!("../../../docs/book/src/memory.md")]
mod memory {}

#[doc = include_str!("../../../docs/book/src/custom-rules.md")]
mod custom_rules {}

#[doc = include_str!("../../../docs/book/src/safe-select.md")]
mod safe_select {}
