//! Arbitrary bytes behind the mark of MLIR bytecode: the reader refuses them with the byte that is wrong, or makes a module of them.

#![no_main]

use gradus_stablehlo::{is_bytecode, read_bytecode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let marked = if is_bytecode(bytes) { bytes.to_vec() } else { [b"ML\xefR", bytes].concat() };
    if let Err(e) = read_bytecode("input", &marked) {
        assert!(e.message().contains("byte "), "{e}");
    }
});
