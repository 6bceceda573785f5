//! The only place that knows how programs are run: each tier, how a function is staged for it, and what a tier can be
//! asked. A compiler that becomes available is added here and nowhere else.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;

use gradus::cpu::Prepared;
use gradus::devices::{Pjrt, Precision, pjrt};
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
    /// XLA through a PJRT plugin: a peer that compiles our own programs, or, by the command `device`, what is measured.
    Xla,
}

impl Tier {
    /// Every tier that is ours alone, by increasing effort.
    pub const ALL: [Tier; 3] = [Tier::Interpreter, Tier::Embedded, Tier::Llvm];

    /// The name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Interpreter => "interpreter",
            Tier::Embedded => "embedded",
            Tier::Llvm => "llvm",
            Tier::Xla => "xla",
        }
    }

    /// The tier of a name.
    pub fn named(name: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Whether the tier can run here.
    pub fn is_available(self) -> bool {
        match self {
            Tier::Interpreter | Tier::Embedded => true,
            Tier::Llvm => gradus::cpu::Tier::Llvm.available().is_ok(),
            Tier::Xla => plugin().is_ok(),
        }
    }
}

/// A function staged for a tier.
#[track_caller]
pub fn stage<A: Arguments, O: Tree, F: Func<A, O> + 'static>(tier: Tier, f: F) -> Fun<A, O> {
    let f = match tier {
        Tier::Interpreter => jit(f).backend(gradus::Interpreter),
        Tier::Embedded => jit(f).tier(gradus::cpu::Tier::Embedded),
        Tier::Llvm => jit(f).tier(gradus::cpu::Tier::Llvm),
        Tier::Xla => match plugin() {
            Ok(plugin) => jit(f).backend(plugin.precision(PRECISION.get())),
            // Who asks whether the tier is available does not come here.
            Err(_) => jit(f),
        },
    };
    match DECLARED.get() {
        Some(text) => f.symbolic(text),
        None => f,
    }
}

thread_local! {
    static DECLARED: Cell<Option<&'static str>> = const { Cell::new(None) };
    static PRECISION: Cell<Precision> = const { Cell::new(Precision::Highest) };
}

/// The name of the plugin that stands behind [`Tier::Xla`]; `cpu` unless it is set before the first use.
pub static PLUGIN: OnceLock<String> = OnceLock::new();

/// That plugin, or why there is none.
pub fn plugin() -> std::result::Result<Pjrt, String> {
    static LOADED: OnceLock<std::result::Result<Pjrt, String>> = OnceLock::new();
    LOADED.get_or_init(|| pjrt(PLUGIN.get_or_init(|| "cpu".to_owned())).map_err(|e| e.to_string())).clone()
}

/// Arrays where a tier has them: on its device, or as they are.
pub fn place(tier: Tier, arrays: Vec<Array>) -> Vec<Array> {
    match (tier, plugin()) {
        (Tier::Xla, Ok(plugin)) => arrays.iter().map(|a| Array::from(a.to(&plugin))).collect(),
        _ => arrays,
    }
}

/// Builds something in which products have this precision on devices.
pub fn with_precision<T>(precision: Precision, build: impl FnOnce() -> T) -> T {
    let before = PRECISION.replace(precision);
    let built = build();
    PRECISION.set(before);
    built
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
    matches!(tier, Tier::Embedded | Tier::Llvm).then_some(make)
}

/// A prepared call on these arrays, which lie in buffers of its own, as those of C do. `like`: what the function gives.
pub fn into_buffers(prepared: Result<Prepared>, x: &[Array], like: &Array) -> Call {
    let filled = || -> Result<(Prepared, DType, Shape)> {
        let mut p = prepared?;
        for (i, x) in x.iter().enumerate() {
            match x.dtype() {
                DType::I64 => p.input::<i64>(i)?.copy_from_slice(&x.to_vec::<i64>()?),
                _ => p.input::<f64>(i)?.copy_from_slice(&x.to_vec::<f64>()?),
            }
        }
        Ok((p, like.dtype(), like.shape().clone()))
    };
    let (prepared, dtype, shape) = match filled() {
        Ok((p, dtype, shape)) => (Rc::new(RefCell::new(p)), dtype, shape),
        // The check of results says what is wrong.
        Err(e) => return Call::new(move || Array::from(e.clone())),
    };
    let again = prepared.clone();
    let result = move || -> Result<Array> {
        let mut p = again.borrow_mut();
        p.run()?;
        Ok(match dtype {
            DType::I64 => Array::from_vec(p.output::<i64>(0)?.to_vec(), shape.clone()),
            _ => Array::from_vec(p.output::<f64>(0)?.to_vec(), shape.clone()),
        })
    };
    Call::prepared(
        move || drop(std::hint::black_box(prepared.borrow_mut().run())),
        move || vec![result().unwrap_or_else(Array::from)],
    )
}

/// The scratch bytes that a compiled program says it needs.
pub fn scratch_bytes<A: Arguments, O: Tree>(compiled: &Compiled<A, O>) -> Option<u64> {
    compiled.scratch_bytes().map(|b| b as u64)
}
