//! Arbitrary text as StableHLO: the reader refuses it with file, line and column, or what it reads is verified, and freed of
//! quantized types, without a panic.

#![no_main]

use gradus_stablehlo::{legalize_quantized, read, verify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let modules = match read("text", text) {
        Ok(modules) => modules,
        Err(e) => {
            assert!(e.message().starts_with("text:"), "{e}");
            return;
        }
    };
    for module in modules {
        if verify(&module).is_ok() {
            let _ = legalize_quantized(module);
        }
    }
});
