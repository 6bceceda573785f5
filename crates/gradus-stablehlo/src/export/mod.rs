//! From a Gradus program to StableHLO: one rule for each primitive, calls as functions, control flow as regions.
//!
//! ```text
//! Program ─ rules (this folder) ─ Module ─ write ─ text
//!              ▲ an operation without a rule here says itself what it is: `Primitive::stablehlo`, `expand`, or its scalar form
//! ```
//!
//! *Invariants.* Equal programs give equal modules. What comes out computes what goes in, with the interpreter's conventions at every edge: NaN, -0,
//! division by zero, indices out of range, numbers too large for an integer. What cannot be said in StableHLO is refused by name.

mod control;
#[cfg(feature = "linalg")]
mod decompose;
mod elementwise;
mod emit;
mod index;
#[cfg(feature = "linalg")]
mod linalg;
mod power;
mod reduce;
mod rules;
mod scalars;
mod shaping;
mod shared;
mod sizes;
mod windows;

use gradus_core::primitives::Op;
use gradus_core::{Program, Result};

pub(crate) use self::macros::{error, fail};
use self::shared::Shared;
use crate::module::Module;

mod macros {
    //! Shorthand for errors.

    macro_rules! error {
        ($kind:ident, $($format:tt)+) => {
            gradus_core::Error::new(gradus_core::ErrorKind::$kind, format!($($format)+))
        };
    }
    macro_rules! fail {
        ($kind:ident, $($format:tt)+) => { return Err($crate::export::error!($kind, $($format)+)) };
    }
    pub(crate) use {error, fail};
}

/// How exactly products of matrices and convolutions are computed by devices that have a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// As exactly as the element type says.
    #[default]
    Highest,
    /// With fewer digits, where that is faster: three products of halves for one of `f32`.
    High,
    /// As fast as the device can: `f32` in TF32 or bf16.
    Default,
}

impl Precision {
    fn word(self) -> &'static str {
        match self {
            Precision::Highest => "HIGHEST",
            Precision::High => "HIGH",
            Precision::Default => "DEFAULT",
        }
    }
}

/// Whose elementary functions are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accuracy {
    /// Those of whoever compiles the text: short, fast, and with errors of their own.
    #[default]
    Native,
    /// Those of Gradus, written out as arithmetic for `f32` and `f64`: longer, and as exact as here.
    Gradus,
}

/// Who will run the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// Anyone: nothing of this process is in it, and what the specification leaves open is written out.
    #[default]
    File,
    /// A plugin in this process, by the name of its platform (`cpu`, `cuda`). Functions of the host become custom calls of `gradus_host`.
    Plugin(String),
}

impl Target {
    /// Whether it is known to convert floats to integers as Gradus does: to the nearest that there is, NaN to 0.
    fn saturates(&self) -> bool {
        matches!(self, Target::Plugin(platform) if platform == "cpu")
    }
}

/// How a program is exported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Export {
    /// Of products of matrices and convolutions.
    pub precision: Precision,
    /// Of elementary functions.
    pub accuracy: Accuracy,
    /// Who will run it.
    pub target: Target,
    /// Whether each operation says the user's line. The text without is canonical.
    pub locations: bool,
}

/// A module, and the calls of the host in it.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The module.
    pub module: Module,
    /// What the custom calls of `gradus_host` run: the one whose `backend_config` says `id = n` the operation `n`, on the operands of the custom call. One
    /// with effects has an operand and a result more at the end, a number: by it calls wait for each other, and it is nobody's to read.
    pub callbacks: Vec<Op>,
}

/// The module of a program. It calls no function of the host: there is none where it will run.
pub fn export(program: &Program, options: &Export) -> Result<Module> {
    exported(program, options).map(|e| e.module)
}

/// The module of a program, and which functions of the host it calls if a [plugin](Target::Plugin) is to run it.
pub fn exported(program: &Program, options: &Export) -> Result<Exported> {
    let mut shared = Shared::new(options.clone());
    let functions = shared.main(program)?;
    let mut module = Module {
        source: program.name().into(),
        name: Some(if program.name().is_empty() { "gradus".into() } else { program.name().to_string() }),
        functions,
        ..Module::default()
    };
    if program.is_symbolic() {
        module.attributes.set("jax.uses_shape_polymorphism", crate::module::Attribute::Bool(true));
    }
    Ok(Exported { module, callbacks: shared.callbacks })
}

/// The text of a program.
pub fn stablehlo_text(program: &Program, options: &Export) -> Result<String> {
    Ok(crate::write::write(&export(program, options)?))
}
