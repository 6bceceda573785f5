//! Modules as machine code, made by an assembler of our own.
//!
//! The way of a kernel: an order that keeps few values at once (`vector/schedule.rs`), bools next to their uses (`order.rs`), the vector language, instructions on virtual registers (`select.rs`), registers for them
//! (`allocate.rs`), bytes (`emit.rs`). Main bodies go the same way as scalars, with control flow and calls (`main.rs`, `calls.rs`), and `link.rs` puts the functions of a
//! module one behind the other. It takes microseconds, and the results have the bits that the evaluator has.

mod address;
mod allocate;
mod bounded;
mod calls;
mod emit;
mod encode;
mod fill;
mod general;
mod guarded;
mod held;
mod increment;
mod lanes;
mod lanewise;
mod link;
mod lir;
mod main;
mod memory;
mod opcodes;
mod order;
mod pipes;
mod records;
mod select;
mod small;
mod split;
mod together;
mod turns;
mod uniform;
mod vector;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use rustc_hash::FxHashSet;

use crate::ir::{Buffer, Kernel, Module, Stmt};
use crate::vector::{Machine, Rest, scalars, scheduled, vectorize};
use allocate::Allocation;
use encode::Bytes;
use lir::Function;

pub use link::{Compiled, compile, load};

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
/// constants behind it. None if something in it has no form here, which is a fault: the tests hold that there is nothing of that kind.
pub fn assemble(module: &Module, kernel: &Kernel, isa: Isa) -> Option<Vec<u8>> {
    kernel_code(module, kernel, isa).map(|made| made.bytes.code)
}

/// A function, as it was before it became bytes too, for who wants to read it.
struct Made {
    function: Function,
    homes: Allocation,
    bytes: Bytes,
}

fn kernel_code(module: &Module, kernel: &Kernel, isa: Isa) -> Option<Made> {
    let machine = machine(isa);
    let kernel = order::ordered(module, &scheduled(module, kernel, &machine));
    let kernel = if isa == Isa::Avx512 { turns::turned(module, &kernel) } else { kernel };
    let code = pipes::balanced(vectorize(module, &kernel, &machine));
    made(select::select(&code, isa)?, isa)
}

/// The code of a main body, or of a piece of it.
fn main_code(module: &Module, body: &[Stmt], swapped: &FxHashSet<Buffer>, isa: Isa) -> Option<Made> {
    let code = scalars(module, body, &machine(isa));
    made(main::select(&code, swapped, isa)?, isa)
}

fn made(mut function: Function, isa: Isa) -> Option<Made> {
    let mut homes = allocate::allocate(&function, isa);
    if split::split(&mut function, &homes) {
        homes = allocate::allocate(&function, isa);
    }
    let bytes = emit::emit(&function, &homes, isa);
    Some(Made { function, homes, bytes })
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
