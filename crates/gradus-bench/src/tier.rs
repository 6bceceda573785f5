//! The only place that knows how programs are run: each tier, how a function is staged for it, and what a tier can be
//! asked. A compiler that becomes available is added here and nowhere else.

use gradus::args::Sig1;
use gradus::prelude::*;
use gradus::{Func, Signature};

use crate::cases::Call;

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The reference interpreter.
    Interpreter,
    /// The compiler that is part of Gradus.
    Embedded,
    /// The compiler through LLVM.
    Llvm,
}

impl Tier {
    /// Every tier, by increasing effort.
    pub const ALL: [Tier; 3] = [Tier::Interpreter, Tier::Embedded, Tier::Llvm];

    /// The name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Interpreter => "interpreter",
            Tier::Embedded => "embedded",
            Tier::Llvm => "llvm",
        }
    }

    /// The tier of a name.
    pub fn named(name: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Whether the tier can run here.
    pub fn is_available(self) -> bool {
        self != Tier::Llvm || gradus::cpu::codegen::llvm::available().is_ok()
    }
}

/// A function staged for a tier.
#[track_caller]
pub fn stage<S: Signature, F: Func<S> + 'static>(tier: Tier, f: F) -> Fun<S> {
    match tier {
        Tier::Interpreter => jit(f).backend(gradus::Interpreter),
        Tier::Embedded => jit(f).tier(gradus::Tier::Embedded),
        Tier::Llvm => jit(f).tier(gradus::Tier::Llvm),
    }
}

/// PLACE 3 of 4: a call of a scalar function that writes into a given buffer: what makes one of the staged function and
/// its argument. None until a tier can.
pub fn call_into(_: Tier) -> Option<fn(Fun<Sig1<Array, Array>>, Array) -> Call> {
    None
}

/// PLACE 4 of 4: the peak of scratch bytes that a compiled program says it needs. None until it says so.
pub fn scratch_bytes<S: Signature>(_: &Compiled<S>) -> Option<u64> {
    None
}
