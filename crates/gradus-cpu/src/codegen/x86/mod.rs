//! Kernels as vector machine code, made by an assembler of our own.
//!
//! What the general code generator cannot do is what kernels live from: vectors of more than 128 bits. The way of a kernel:
//! bools next to their uses (`order.rs`), the vector language, instructions on virtual registers (`select.rs`), registers for them (`allocate.rs`), bytes
//! (`emit.rs`). It takes microseconds, and the results have the bits that the evaluator has.

mod address;
mod allocate;
mod emit;
mod encode;
mod general;
mod lanes;
mod lanewise;
mod lir;
mod memory;
mod opcodes;
mod order;
mod select;
mod small;
mod turns;
mod uniform;
mod vector;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use crate::ir::{Kernel, Module};
use crate::vector::{Machine, Rest, vectorize};

/// The instructions that a machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isa {
    /// AVX2 with FMA and BMI2: vectors of 256 bits.
    Avx2,
    /// AVX-512 F, DQ, BW, VL: vectors of 512 bits and masks.
    Avx512,
}

/// What this machine can do. None: neither.
pub fn detect() -> Option<Isa> {
    #[cfg(target_arch = "x86_64")]
    {
        let old = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        let new = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        match (old, new) {
            (true, true) => Some(Isa::Avx512),
            (true, false) => Some(Isa::Avx2),
            _ => None,
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Position-independent machine code of a kernel: a [`KernelFn`](crate::abi::KernelFn) that begins at its first byte, with its
/// constants behind it. None if something in it has no vector form here; another generator makes the kernel then.
pub fn assemble(module: &Module, kernel: &Kernel, isa: Isa) -> Option<Vec<u8>> {
    let kernel = order::ordered(module, kernel);
    let kernel = if isa == Isa::Avx512 { turns::turned(module, &kernel) } else { kernel };
    let code = vectorize(module, &kernel, &machine(isa));
    let function = select::select(&code, isa)?;
    let homes = allocate::allocate(&function, isa);
    Some(emit::emit(&function, &homes, isa))
}

/// What kernels are vectorized for.
pub fn machine(isa: Isa) -> Machine {
    Machine {
        bytes: if isa == Isa::Avx512 { 64 } else { 32 },
        registers: usize::from(allocate::vectors(isa)),
        even: true,
        masks: isa == Isa::Avx512,
        rest: Rest::Masked,
        // Code that does not stay in the cache is slow.
        short: [100, 200],
        once: usize::MAX,
        repeated: 800,
        native: None,
    }
}
