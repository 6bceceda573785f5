//! Elementary functions written out as basic operations, the same for every code generator.

use gradus_core::error::Result;

use super::Module;

/// Replaces every elementary function by what it is made of.
pub fn expand(module: Module) -> Result<Module> {
    Ok(module)
}
