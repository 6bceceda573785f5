//! StableHLO, both ways: text and portable bytecode become Gradus programs, and Gradus programs become text that every StableHLO tool takes.
//!
//! ```text
//! text ─ read ─┐                      ┌─ import ─ Program
//!              ├─ module (the tree) ──┤
//! bytecode ────┘    verified          └─ write ── text
//!                       ▲
//! Program ─ export ─────┘
//! ```
//!
//! *Invariants.* Nothing here is unsafe. Every reader gives a whole tree or an error with file, line and column. Who takes a tree apart may rely on what
//! the verifier checked. `import(export(p))` computes what `p` computes.

#![forbid(unsafe_code)]

mod bytecode;
pub mod export;
mod import;
pub mod module;
mod quantized;
pub mod read;
mod verify;
mod words;
pub mod write;

pub use bytecode::{is_bytecode, read_bytecode};
pub use export::{Accuracy, Export, Exported, Precision, Target, export, exported, stablehlo_text};
pub use import::{Check, CheckKind, Expected, Imported, import, import_function};
pub use quantized::legalize_quantized;
pub use read::{read, read_one};
pub use verify::verify;
