//! Arbitrary text: the parser refuses it with a line and a column, or what it makes of it verifies, prints, reads back
//! and can be optimized.

#![no_main]

use gradus_core::Program;
use gradus_core::optimize::optimize;
use gradus_core::program::verify;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let program = match text.parse::<Program>() {
        Ok(program) => program,
        Err(e) => {
            assert!(e.to_string().contains("at line "), "{e}");
            return;
        }
    };
    verify(&program).unwrap();
    let printed = program.to_string();
    let back: Program = printed.parse().unwrap();
    assert_eq!(back, program);
    assert_eq!(back.to_string(), printed);
    assert_eq!(back.fingerprint(), program.fingerprint());
    verify(&optimize(&program).unwrap()).unwrap();
});
