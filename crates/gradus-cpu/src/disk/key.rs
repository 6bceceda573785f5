//! What machine code depends on, as one hash: the module, who makes the code and which version, and the processor.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use super::store::Key;
use crate::codegen::{embedded, llvm, x86};
use crate::error::Result;
use crate::ir::Module;

/// A hash of the source of this crate: code of another build of the generators is never used.
const BUILD: &str = env!("GRADUS_BUILD_ID");

/// The bytes that a value hashes to, all of them.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

fn key(tier: &str, maker: &str, module: &Module) -> Key {
    let mut bytes = Bytes::default();
    (BUILD, tier, maker).hash(&mut bytes);
    module.hash(&mut bytes);
    blake3::hash(&bytes.0)
}

/// The processor, as far as code may depend on it.
pub(super) fn processor() -> Result<&'static str> {
    static ABOUT: OnceLock<Result<String>> = OnceLock::new();
    let about = ABOUT.get_or_init(|| {
        let (isa, features) = (x86::detect(), features()?);
        Ok(format!("{} {} {isa:?} {features}", std::env::consts::ARCH, std::env::consts::OS))
    });
    about.as_deref().map_err(Clone::clone)
}

/// What it says of itself: family, model and the bits of what it can do.
#[cfg(target_arch = "x86_64")]
fn features() -> Result<String> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let (family, more, newer) = (__cpuid(1), __cpuid_count(7, 0), __cpuid_count(7, 1));
    let extended = __cpuid(0x8000_0001);
    // The second word of the first leaf says which core this is.
    Ok(format!(
        "{:x} {:x} {:x} {:x} {:x} {:x} {:x} {:x} {:x}",
        family.eax, family.ecx, family.edx, more.ebx, more.ecx, more.edx, newer.eax, extended.ecx, extended.edx
    ))
}

/// What Cranelift finds out about it.
#[cfg(not(target_arch = "x86_64"))]
fn features() -> Result<String> {
    crate::codegen::cranelift::about()
}

/// The key of what the embedded tier makes of a module.
pub(crate) fn embedded_key(module: &Module, isa: Option<x86::Isa>) -> Option<Key> {
    Some(key("embedded", &format!("{} {}", processor().ok()?, embedded::about(isa).ok()?), module))
}

/// The key of what the optimizing tier makes of a module. Which LLVM it is stands in the entry: it is known only after the
/// library is loaded, and without an entry there is no reason to load it.
pub(crate) fn optimized_key(module: &Module, options: &llvm::Options) -> Option<Key> {
    Some(key("llvm", &format!("{} {:?} {options:?}", processor().ok()?, llvm::setting()), module))
}

/// The key of what was found out about whose code of a module is faster.
pub(crate) fn winner_key(module: &Module) -> Option<Key> {
    Some(key("winner", &format!("{} {:?}", processor().ok()?, llvm::setting()), module))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::random::{Config, module};

    #[test]
    fn names_do_not_count_and_everything_else_does() {
        let key = |m: &Module| embedded_key(m, x86::detect()).unwrap();
        let mut seen = rustc_hash::FxHashMap::default();
        for seed in 0..50 {
            let m = module(seed, &Config::default()).0;
            let mut renamed = m.clone();
            renamed.name = "other".into();
            renamed.kernels.iter_mut().for_each(|k| k.name = "another".into());
            assert_eq!(key(&m), key(&renamed));
            if let Some(before) = seen.insert(key(&m), m.clone()) {
                assert_eq!(before, m, "two modules with one key");
            }
            let mut shared = m.clone();
            shared.kernels.iter_mut().for_each(|k| k.parallel = !k.parallel);
            assert!(m.kernels.is_empty() || key(&m) != key(&shared));
            let mut longer = m.clone();
            longer.sizes += 1;
            assert_ne!(key(&m), key(&longer));
            let other = if x86::detect() == Some(x86::Isa::Avx2) { None } else { Some(x86::Isa::Avx2) };
            assert_ne!(Some(key(&m)), embedded_key(&m, other));
            assert_ne!(Some(key(&m)), optimized_key(&m, &llvm::Options::default()));
        }
    }
}
