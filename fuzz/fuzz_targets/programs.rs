//! Bytes as decisions of the generator of random programs: text, verifier, optimizer and interpreter agree.

#![no_main]

use gradus_core::optimize::optimize;
use gradus_core::program::verify;
use gradus_core::testing::RandomProgram;
use gradus_core::{Array, Program, Scalar, interpret};
use libfuzzer_sys::fuzz_target;

/// Equal to the last bit but for which NaN; close where sums were taken, which may go in another order.
fn agree(a: &Array, b: &Array, exact: bool) -> bool {
    let (x, y) = (a.concrete().unwrap(), b.concrete().unwrap());
    let parts = |s: Scalar| match s {
        Scalar::C64(v) => [v.re as f64, v.im as f64],
        Scalar::C128(v) => [v.re, v.im],
        other => [other.to_f64(), 0.0],
    };
    let same = |p: f64, q: f64| p.to_bits() == q.to_bits() || (p.is_nan() && q.is_nan());
    x.ty() == y.ty()
        && (!exact
            || (0..x.count()).all(|i| {
                let (p, q) = (x.scalar_at(i).unwrap(), y.scalar_at(i).unwrap());
                p == q || (p.dtype().is_inexact() && parts(p).into_iter().zip(parts(q)).all(|(p, q)| same(p, q)))
            }))
}

fuzz_target!(|bytes: &[u8]| {
    let random = RandomProgram::from_bytes(bytes);
    let program = &random.program;
    verify(program).unwrap();
    let printed = program.to_string();
    let back: Program = printed.parse().unwrap();
    assert_eq!(back, *program, "{printed}");
    assert_eq!(back.fingerprint(), program.fingerprint());
    let fast = optimize(program).unwrap();
    let outputs = interpret(program, &random.inputs).unwrap();
    let optimized = interpret(&fast, &random.inputs).unwrap();
    // The first byte says whether the order of sums is free; then rounding may grow into anything.
    let exact = bytes.first().is_some_and(|b| b & 1 == 1);
    for (a, b) in outputs.iter().zip(&optimized) {
        assert!(agree(a, b, exact), "{a:?} is not {b:?}\n{printed}\n{fast}");
    }
});
