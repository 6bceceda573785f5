//! Programs from elsewhere and to elsewhere: StableHLO, which JAX and others export and every XLA device takes.
//!
//! [`import`] and [`import_file`] give a program that runs, differentiates, batches and compiles as one that was written here.
//! [`jit(f).stablehlo(&x)`](crate::Transformed::stablehlo) is the way out; [`ExportOptions`] has its choices.
//!
//! ```
//! use gradus::prelude::*;
//! use gradus::stablehlo;
//!
//! # fn main() -> Result<()> {
//! let text = "func.func @main(%x: tensor<2xf64>, %y: tensor<2xf64>) -> tensor<2xf64> {
//!   %0 = stablehlo.multiply %x, %y : tensor<2xf64>
//!   %1 = stablehlo.sine %0 : tensor<2xf64>
//!   return %1 : tensor<2xf64>
//! }";
//! let f = stablehlo::import(text)?.fun::<(Array, Array), Array>()?;
//! let (x, y) = (Array::from([0.0, 0.0]), Array::from([2.0, 3.0]));
//! assert_eq!(f(&x, &y).to_vec::<f64>()?, [0.0, 0.0]);
//! let slope = jit(grad(move |x: &Array, y: &Array| f(x, y).sum()));
//! assert_eq!(slope(&x, &y).to_vec::<f64>()?, [2.0, 3.0]);
//! assert!(slope.stablehlo(&x, &y)?.contains("stablehlo.cosine"));
//! # Ok(())
//! # }
//! ```

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gradus_core::error::counted;
use gradus_core::primitives::Op;
use gradus_core::primitives::control::Call;
use gradus_core::program::{Builder, Constant};
use gradus_core::trace;
use gradus_core::{Array, Dim, Error, ErrorKind, Location, Program, Result, Type};
use gradus_stablehlo::module::Module;
use gradus_stablehlo::{Export, is_bytecode, read_bytecode, read_one};
use rustc_hash::FxHashMap;

use crate::arguments::Arguments;
use crate::function::{Fun, Transformed};
use crate::inspect::TracedFunction;
use crate::stage::{Leaves, fill, poison};
use crate::tree::Tree;

pub use gradus_stablehlo::{Accuracy, Precision};

/// A program that was written elsewhere.
#[derive(Clone, Debug)]
pub struct Imported {
    program: Arc<Program>,
    /// The program for sizes that it was called with, of one whose sizes are symbols.
    bound: Arc<Mutex<FxHashMap<Vec<Type>, Arc<Program>>>>,
}

/// So many combinations of sizes are remembered.
const REMEMBERED: usize = 64;

/// The program of a StableHLO text: of its function `@main`, or of the only public one.
///
/// The error of what cannot be imported names the operation, its line and column, and a way out.
#[track_caller]
pub fn import(text: &str) -> Result<Imported> {
    let place = Location::caller();
    read_one("text", text).and_then(|module| Imported::of(&module, None)).map_err(|e| e.at(place))
}

/// The program in a file: StableHLO as text, or as portable bytecode, which is what `jax.export` and `stablehlo-translate --serialize` write.
#[track_caller]
pub fn import_file(path: impl AsRef<Path>) -> Result<Imported> {
    let place = Location::caller();
    read_file(path.as_ref()).and_then(|module| Imported::of(&module, None)).map_err(|e| e.at(place))
}

/// The program of one function of a StableHLO text, by its name without the `@`.
#[track_caller]
pub fn import_function(text: &str, name: &str) -> Result<Imported> {
    let place = Location::caller();
    read_one("text", text).and_then(|module| Imported::of(&module, Some(name))).map_err(|e| e.at(place))
}

fn read_file(path: &Path) -> Result<Module> {
    let shown = path.display().to_string();
    let file = |what: String| Error::new(ErrorKind::File, format!("{shown}: {what}"));
    let bytes = std::fs::read(path).map_err(|e| file(e.to_string()))?;
    if is_bytecode(&bytes) {
        return read_bytecode(&shown, &bytes);
    }
    let text = std::str::from_utf8(&bytes).map_err(|e| {
        file(format!("neither MLIR bytecode nor text: byte {} is no UTF-8", e.valid_up_to())).help(
            "`jax.export(..).mlir_module_serialized` is bytecode; a whole `Exported.serialize()` has more around it",
        )
    })?;
    read_one(&shown, text)
}

impl Imported {
    fn of(module: &Module, function: Option<&str>) -> Result<Imported> {
        let imported = match function {
            Some(name) => gradus_stablehlo::import_function(module, name)?,
            None => gradus_stablehlo::import(module)?,
        };
        // What a test file compares stands behind the results.
        let program = match imported.results < imported.program.outputs().len() {
            true => Arc::new(imported.program.as_ref().clone().select_outputs(&Vec::from_iter(0..imported.results))),
            false => imported.program,
        };
        Ok(Imported { program, bound: Arc::default() })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs it on arrays, or records it where they are traced.
    #[track_caller]
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let place = trace::caller_or_known(Location::caller());
        let program = self.check(inputs).and_then(|()| self.bound_to(inputs)).map_err(|e| e.at(place))?;
        let outputs = trace::bind_all(Op::new(Call { program }), inputs);
        match outputs.iter().find_map(Array::error) {
            Some(e) => Err(e.clone()),
            None => Ok(outputs.to_vec()),
        }
    }

    /// Refuses inputs that the program does not take, by their number and type.
    fn check(&self, inputs: &[Array]) -> Result<()> {
        let (name, want) = (self.program.name(), self.program.inputs());
        if inputs.len() != want.len() {
            let message = format!("`{name}` takes {}, and {} given", counted(want.len(), "array"), are(inputs.len()));
            return Err(Error::new(ErrorKind::Signature, message).help(self.signature()));
        }
        for (i, (have, want)) in inputs.iter().zip(want).enumerate() {
            let ty = have.ty()?;
            let fits = ty.dtype() == want.dtype() && ty.rank() == want.rank();
            let sizes = || ty.shape().iter().zip(want.shape().iter()).all(|(a, b)| b.constant().is_none() || a == b);
            if !(fits && sizes()) {
                let message = format!("input {i} of `{name}` is {ty} where {want} is wanted");
                return Err(Error::new(ErrorKind::Signature, message).help(self.signature()));
            }
        }
        Ok(())
    }

    /// The program with the sizes of its inputs in the place of its symbols.
    fn bound_to(&self, inputs: &[Array]) -> Result<Arc<Program>> {
        if !self.program.is_symbolic() {
            return Ok(self.program.clone());
        }
        let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
        let bound = || self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = bound().get(&types) {
            return Ok(found.clone());
        }
        let program = if types.iter().any(|t| t.shape().is_symbolic()) {
            // Sizes of an outer program: each symbol is what stands in its place there.
            let mut there: FxHashMap<String, Dim> = FxHashMap::default();
            for (want, have) in self.program.inputs().iter().zip(&types) {
                for (want, have) in want.shape().iter().zip(have.shape().iter()) {
                    if let Some(symbol) = want.as_symbol() {
                        there.entry(symbol.to_string()).or_insert_with(|| have.clone());
                    }
                }
            }
            self.program.map_dims(&|d| d.substitute(&|s| there.get(s).cloned()))
        } else {
            self.program.bind_symbols(&types)?
        };
        let program = Arc::new(program);
        let mut bound = bound();
        if bound.len() >= REMEMBERED {
            bound.clear();
        }
        bound.insert(types, program.clone());
        Ok(program)
    }

    fn signature(&self) -> String {
        let list = |types: Vec<String>| types.join(", ");
        let inputs = list(self.program.inputs().iter().map(ToString::to_string).collect());
        let outputs = list(self.program.output_types().iter().map(ToString::to_string).collect());
        format!("it takes ({inputs}) and gives ({outputs})")
    }

    /// It as a function of your types: the arguments as a tuple of trees, and a result that has as many arrays as the program gives, in their order.
    ///
    /// It is differentiated, batched and staged like any other. A result whose type does not say how many arrays it has, such as a `Vec`, cannot be filled:
    /// [`call`](Imported::call) gives a list.
    #[track_caller]
    pub fn fun<A: Arguments, O: Tree>(&self) -> Result<Fun<A, O>> {
        let place = Location::caller();
        let nothing = Error::new(ErrorKind::Rule, "an imported function gave no result");
        let misfit = |what: String| Error::new(ErrorKind::Signature, what).at(place).help(self.signature());
        let name = self.program.name();
        let (takes, gives) = (self.program.inputs().len(), self.program.outputs().len());
        let Some(template) = O::of_error(&nothing) else {
            let result = std::any::type_name::<O>();
            return Err(misfit(format!("`{result}` does not say how many arrays it has, and `{name}` gives {gives}")));
        };
        let has = template.leaves().len();
        if has != gives {
            return Err(misfit(format!("`{name}` gives {}, and the result has {has}", counted(gives, "array"))));
        }
        if let Some(has) = A::of_error(&nothing).map(|a| a.leaves().len()).filter(|n| *n != takes) {
            return Err(misfit(format!("`{name}` takes {}, and the arguments have {has}", counted(takes, "array"))));
        }
        let (imported, of) = (self.clone(), (name.to_string(), name.to_string()));
        Ok(Transformed::named(
            "imported",
            of,
            Box::new(move |args| {
                let place = trace::caller_or_known(place);
                let inputs = Leaves::of::<A>(args).arrays;
                match trace::at_place(place, || imported.call(&inputs)) {
                    Ok(outputs) => fill(&template, outputs),
                    Err(e) => poison(&template, &e.at(place)),
                }
            }),
        ))
    }
}

fn are(n: usize) -> String {
    if n == 1 { "1 is".into() } else { format!("{n} are") }
}

/// How a program is exported. The plain form is [`jit(f).stablehlo(&x)`](crate::Transformed::stablehlo).
///
/// ```
/// use gradus::prelude::*;
/// use gradus::stablehlo::{ExportOptions, Precision};
///
/// # fn main() -> Result<()> {
/// let product = jit(|a: &Array, b: &Array| a.matmul(b));
/// let traced = product.trace(&Array::spec("f32[B, 3]"), &Array::spec("f32[3, 4]"))?;
/// let text = ExportOptions::new().precision(Precision::Default).export(&traced)?;
/// assert!(text.contains("DEFAULT") || !text.contains("HIGHEST"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    export: Export,
}

impl ExportOptions {
    /// Exact products, functions of whoever compiles the text, no lines of the source.
    pub fn new() -> ExportOptions {
        ExportOptions::default()
    }

    /// How exactly products of matrices and convolutions are computed by devices that have a choice.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> ExportOptions {
        self.export.precision = precision;
        self
    }

    /// Whose elementary functions are used: the compiler's, or ours, written out.
    #[must_use]
    pub fn accuracy(mut self, accuracy: Accuracy) -> ExportOptions {
        self.export.accuracy = accuracy;
        self
    }

    /// Says the line of your source behind each operation.
    #[must_use]
    pub fn locations(mut self) -> ExportOptions {
        self.export.locations = true;
        self
    }

    /// The text of a function that was traced, after the passes for every program. Arrays that it captured are constants there.
    pub fn export(&self, traced: &TracedFunction) -> Result<String> {
        self.export_program(&closed(&*traced.try_optimized()?, traced.captures())?)
    }

    /// The text of a program.
    pub fn export_program(&self, program: &Program) -> Result<String> {
        gradus_stablehlo::stablehlo_text(program, &self.export)
    }
}

/// A program whose last inputs, which are captures, are constants.
fn closed(program: &Program, captures: &[Array]) -> Result<Program> {
    if captures.is_empty() {
        return Ok(program.clone());
    }
    let own = program.inputs().len().saturating_sub(captures.len());
    let mut b = Builder::new(program.name());
    let mut atoms = Vec::with_capacity(program.inputs().len());
    for ty in &program.inputs()[..own] {
        atoms.push(b.input(ty.clone())?.into());
    }
    for capture in captures {
        atoms.push(b.constant(Constant::array(capture.on_host()?)));
    }
    let outputs = b.inline(program, &atoms, Location::unknown())?;
    Ok(b.finish(outputs).with_constraints(program.constraints()))
}
