//! The only place that knows how programs are run: each tier, how a function is staged for it, and what a tier can be
//! asked. A compiler that becomes available is added here and nowhere else.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gradus::cpu::Prepared;
use gradus::extend::Arguments;
use gradus::prelude::*;

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
        self != Tier::Llvm || gradus::cpu::Tier::Llvm.available().is_ok()
    }
}

/// A function staged for a tier.
#[track_caller]
pub fn stage<A: Arguments, O: Tree, F: Func<A, O> + 'static>(tier: Tier, f: F) -> Fun<A, O> {
    let f = match tier {
        Tier::Interpreter => jit(f).backend(gradus::Interpreter),
        Tier::Embedded => jit(f).tier(gradus::cpu::Tier::Embedded),
        Tier::Llvm => jit(f).tier(gradus::cpu::Tier::Llvm),
    };
    match DECLARED.get() {
        Some(text) => f.symbolic(text),
        None => f,
    }
}

thread_local! {
    static DECLARED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Builds something in which every function is staged with these dimensions declared.
pub fn declaring<T>(text: &'static str, build: impl FnOnce() -> T) -> T {
    DECLARED.set(Some(text));
    let built = build();
    DECLARED.set(None);
    built
}

/// A call of a scalar function that writes into a given buffer: what makes one of the staged function and its argument.
pub fn call_into(tier: Tier) -> Option<fn(Fun<(Array,), Array>, Array) -> Call> {
    fn make(f: Fun<(Array,), Array>, x: Array) -> Call {
        let number = x.item::<f64>().unwrap_or_default();
        let prepared = match f.compile(&x).and_then(|c| c.prepared()) {
            Ok(prepared) => Rc::new(RefCell::new(prepared)),
            // The check of results says what is wrong.
            Err(e) => return Call::new(move || Array::from(e.clone())),
        };
        let run = move |p: &RefCell<Prepared>| -> Result<f64> {
            let mut p = p.borrow_mut();
            p.input::<f64>(0)?[0] = number;
            p.run()?;
            Ok(p.output::<f64>(0)?[0])
        };
        let again = prepared.clone();
        Call::prepared(
            move || drop(std::hint::black_box(run(&prepared))),
            move || vec![run(&again).map_or_else(Array::from, Array::from)],
        )
    }
    (tier != Tier::Interpreter).then_some(make)
}

/// The scratch bytes that a compiled program says it needs.
pub fn scratch_bytes<A: Arguments, O: Tree>(compiled: &Compiled<A, O>) -> Option<u64> {
    compiled.scratch_bytes().map(|b| b as u64)
}
