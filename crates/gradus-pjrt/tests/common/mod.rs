//! What the tests share: the CPU plugin, or a line that says that nothing was tested.

use gradus_pjrt::{Pjrt, pjrt};

/// The CPU plugin, if there is one.
pub fn cpu() -> Option<Pjrt> {
    match pjrt("cpu") {
        Ok(found) => Some(found),
        Err(e) => {
            println!("NOT RUN: no CPU plugin of PJRT: {}", e.message());
            None
        }
    }
}
