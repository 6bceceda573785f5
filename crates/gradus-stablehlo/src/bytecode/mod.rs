//! Portable bytecode in: files of `jax.export` and `stablehlo-translate --serialize` become the tree that their text would give.
//!
//! ```text
//! bytes ─ sections (tables) ─ entries (attributes, types: builtin, vhlo, native, sdy) ─ body (operations: layouts, legalize) ─ Module
//! ```
//!
//! Such a file is MLIR bytecode, of any of its versions, that holds operations of VHLO: StableHLO with a version behind each name, from 0.9.0 on. Bytecode
//! that holds StableHLO, CHLO and `func` themselves is read as well.
//!
//! *Invariants.* What is announced is checked against the bytes that are left before it is allocated, so memory is bounded by the size of the file. Nothing
//! recurses deeper than fixed limits. Every error names the byte at which the file is wrong.

use gradus_core::Result;

use crate::module::Module;

mod body;
mod builtin;
mod cursor;
mod entries;
mod layouts;
mod legalize;
mod native;
mod sdy;
mod sections;
mod vhlo;

/// Whether bytes are MLIR bytecode, by their first four.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"ML\xefR")
}

/// Reads MLIR bytecode. `source` is what errors call it: a file's path.
///
/// The places in the tree are lines of the program that was exported, where the file has them.
pub fn read_bytecode(source: &str, bytes: &[u8]) -> Result<Module> {
    let read = || body::module(source, entries::Entries::new(sections::File::read(bytes)?, bytes.len()));
    read().map_err(|e| e.within(format!("{source}: ")))
}
