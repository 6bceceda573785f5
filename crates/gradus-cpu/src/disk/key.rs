//! What machine code depends on, as one hash: the module, who makes the code and which version, and the processor.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use super::store::Key;
use crate::codegen::{cranelift, llvm, x86};
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

/// The processor and the embedded code generators.
fn embedded() -> Result<&'static str> {
    static ABOUT: OnceLock<Result<String>> = OnceLock::new();
    let about = ABOUT.get_or_init(|| {
        let (isa, cranelift) = (x86::detect(), cranelift::about()?);
        Ok(format!("{} {} {isa:?} {cranelift}", std::env::consts::ARCH, std::env::consts::OS))
    });
    about.as_deref().map_err(Clone::clone)
}

/// The key of what the embedded tier makes of a module.
pub(crate) fn embedded_key(module: &Module, options: &cranelift::Options) -> Option<Key> {
    Some(key("embedded", &format!("{} {options:?}", embedded().ok()?), module))
}

/// The key of what the optimizing tier makes of a module. Which LLVM it is stands in the entry: it is known only after the
/// library is loaded, and without an entry there is no reason to load it.
pub(crate) fn optimized_key(module: &Module, options: &llvm::Options) -> Option<Key> {
    Some(key("llvm", &format!("{} {:?} {options:?}", embedded().ok()?, llvm::setting()), module))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::random::{Config, module};

    #[test]
    fn names_do_not_count_and_everything_else_does() {
        let options = cranelift::Options::default();
        let key = |m: &Module| embedded_key(m, &options).unwrap();
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
            let text = cranelift::Options { text: true, ..options.clone() };
            assert_ne!(Some(key(&m)), embedded_key(&m, &text));
            assert_ne!(Some(key(&m)), optimized_key(&m, &llvm::Options::default()));
        }
    }
}
