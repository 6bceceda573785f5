//! What the crate shows without the feature `testing`: nothing by which code without `unsafe` could make machine code of a module of its own.

#[test]
fn row_e4_stages_between_program_and_machine_code_are_for_tests_alone() {
    let source = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    let mut modules = 0;
    for (i, line) in lines.iter().enumerate() {
        if line.starts_with("pub mod ") {
            modules += 1;
            assert_eq!(lines[i - 1], "#[cfg(feature = \"testing\")]", "line {} is public for everyone: {line}", i + 1);
        }
    }
    assert!(modules >= 5, "the stages are not where this test looks for them");
    let shown: Vec<&str> = lines.iter().filter(|l| l.starts_with("pub use ")).copied().collect();
    for inner in ["ir::", "lower::", "codegen::", "exec::", "runtime::", "memory::", "abi::"] {
        assert!(!shown.iter().any(|l| l.contains(inner)), "{shown:?}");
    }
    // The one way to a compiled program is from a verified one.
    let native = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/native.rs")).unwrap();
    assert!(native.contains("pub(crate) fn new(lowered: Lowered"), "who makes a `Native` of what?");
}
