//! Operations that do something besides computing: they call the host, show values, or check them. One primitive serves
//! all of them; its kind says what a transformation may do with it.
//!
//! *Invariant.* An equation with effects is never dropped, merged or moved past another.

mod callback;
mod host;
pub(crate) mod replay;

pub(crate) use callback::why_not_for_some;
pub use callback::{Callback, Kind};
pub use host::Host;

use super::{Entry, entry};

/// What the parser knows by name. These are not among the built-in operations: a function of the host cannot be read from text,
/// so there are no samples to check rules on.
pub(super) fn entries() -> Vec<Entry> {
    Kind::ALL.iter().map(|kind| entry::<Callback>(kind.name())).collect()
}
