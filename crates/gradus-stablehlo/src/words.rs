//! Types in the words of StableHLO, for errors: what the writer writes.

use crate::module::{Tensor, Type};
use crate::write;

/// A type as it is written.
pub(crate) fn of_type(ty: &Type) -> String {
    let mut text = String::new();
    write::ty(&mut text, ty);
    text
}

/// A tensor as it is written.
pub(crate) fn of_tensor(tensor: &Tensor) -> String {
    let mut text = String::new();
    write::tensor(&mut text, tensor);
    text
}
