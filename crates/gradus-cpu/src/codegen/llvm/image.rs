//! The machine code of a module as bytes that can be kept: an object file, and which LLVM made it for which processor.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Buffer, Compiled, Llvm, Times};
use crate::disk::{Reader, Writer};
use crate::error::{Result, error};

/// A name for a main body that no other in this process has. All are equally long.
pub(super) fn fresh_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("gradus_main_{:016x}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

impl Llvm {
    /// This LLVM and the processor, as far as code depends on them.
    fn about(&self) -> String {
        let (major, minor, patch) = self.version;
        format!("{major}.{minor}.{patch} {:?} {:?} {}", self.triple, self.cpu, self.features)
    }

    /// The image of an object file whose main body has this name.
    pub(super) fn image_of(&self, name: &str, object: &[u8]) -> Vec<u8> {
        let mut w = Writer::default();
        w.bytes(self.about().as_bytes());
        w.bytes(name.as_bytes());
        w.bytes(object);
        w.0
    }

    /// Puts an image into memory, ready to run. One that another LLVM made, or for another processor, is refused.
    pub fn load_image(&'static self, image: &[u8]) -> Result<Compiled> {
        let mut r = Reader(image);
        let (Some(about), Some(name), Some(object), []) = (r.bytes(), r.bytes(), r.bytes(), r.0) else {
            return Err(error!(Value, "this is no machine code of Gradus"));
        };
        if about != self.about().as_bytes() {
            return Err(error!(Value, "this machine code was made by another LLVM, or for another processor"));
        }
        // All code of the process is in one library, where a name stands once: the name of the process that made it may
        // be taken here.
        let fresh = fresh_name();
        let object = renamed(object, name, fresh.as_bytes())
            .ok_or_else(|| error!(Value, "this machine code has no main body of its name"))?;
        let object = Buffer::copy_of(&self.api, &object);
        let bytes = object.code_size();
        let (main, tracker) = self.link(object, &fresh)?;
        let times = Times::default();
        Ok(Compiled { main, bytes, llvm_ir: None, assembly: None, image: None, times, tracker, llvm: self })
    }
}

/// The object with another name, of the same length, wherever a name stands.
fn renamed(object: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    if from.len() != to.len() || from.is_empty() {
        return None;
    }
    let mut object = object.to_vec();
    let (mut at, mut found) = (0, false);
    while let Some(next) = object[at..].windows(from.len()).position(|w| w == from) {
        object[at + next..][..to.len()].copy_from_slice(to);
        at += next + to.len();
        found = true;
    }
    found.then_some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_changes_wherever_it_stands() {
        assert_eq!(renamed(b"a main_1 b main_1", b"main_1", b"main_2").unwrap(), b"a main_2 b main_2");
        assert_eq!(renamed(b"main_1", b"main_1", b"main_2").unwrap(), b"main_2");
        assert!(renamed(b"a main_3", b"main_1", b"main_2").is_none());
        assert!(renamed(b"a main_1", b"main_1", b"main_12").is_none());
        assert_ne!(fresh_name(), fresh_name());
    }
}
