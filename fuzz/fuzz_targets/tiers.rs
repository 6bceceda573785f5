//! Bytes as decisions of the generator of random programs: the interpreter, the embedded compiler and LLVM agree to the last
//! bit, with arrays in registers and in memory.

#![no_main]

use gradus_core::pipeline::Pipeline;
use gradus_core::program::Verified;
use gradus_core::testing::{RandomProgram, canonical};
use gradus_core::{Array, Scalar, interpret};
use gradus_cpu::{Cpu, Options, Tier};
use libfuzzer_sys::fuzz_target;

fn scalars(a: &Array) -> Vec<Scalar> {
    let c = a.concrete().unwrap();
    (0..c.count()).map(|i| c.scalar_at(i).unwrap()).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let random = RandomProgram::from_bytes(bytes);
    let program = &random.program;
    if program.is_symbolic() {
        return;
    }
    let expected = interpret(program, &random.inputs);
    // The first byte says whether there are products of matrices, whose sums may go in another order.
    let exact = bytes.first().is_some_and(|b| b & 1 == 1);
    let choice = bytes.last().copied().unwrap_or(0);
    // LLVM takes its time: for some inputs.
    let tier = if choice % 16 == 0 { Tier::Llvm } else { Tier::Embedded };
    let small = [16, 4, 1][usize::from(choice / 16) % 3];
    let options = Options { tier, contract: false, small, ..Options::default() };
    let code = Pipeline::on(Cpu::from(options)).compile(&Verified::new(program.clone()).unwrap()).unwrap();
    match (expected, code.run(&random.inputs)) {
        (Ok(want), Ok(have)) => {
            for (a, b) in have.iter().zip(&want) {
                assert_eq!(a.ty().unwrap(), b.ty().unwrap());
                let same = || scalars(a).into_iter().zip(scalars(b)).all(|(x, y)| canonical(x) == canonical(y));
                assert!(!exact || same(), "{tier:?}, {small}: {a:?} is not {b:?}\n{program}");
            }
        }
        (Err(_), Err(_)) => {}
        (want, have) => panic!("{tier:?}, {small}: {have:?} where the interpreter gives {want:?}\n{program}"),
    }
});
