//! The backend: from a verified program to code that runs, through every phase, each of which can be looked at.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gradus_core::optimize::{EXECUTION_PASSES, Exactness, run_passes};
use gradus_core::phases::{Phase, report};
use gradus_core::program::{Program, Verified};
use gradus_core::{Array, Backend, Executable, Type};
use rustc_hash::FxHashMap;

use crate::codegen::llvm;
use crate::error::{Result, error};
use crate::native::Native;
use crate::{ir, lower, memory};

/// Which code generator makes the code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tier {
    /// The embedded one: code in a moment, no install.
    Embedded,
    /// LLVM, where there is one; the embedded one otherwise.
    Llvm,
    /// The embedded one at once, and LLVM in the background for what runs often.
    #[default]
    Auto,
}

/// What the compiler may choose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Who makes the code.
    pub tier: Tier,
    /// Whether a product that only a sum takes in is rounded together with it.
    pub contract: bool,
    /// Arrays of at most so many elements live in registers.
    pub small: usize,
    /// Whether threads share large loops.
    pub threads: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { tier: Tier::Auto, contract: true, small: lower::SMALL, threads: true }
    }
}

/// The native CPU compiler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// What it may choose.
    pub options: Options,
}

impl Cpu {
    /// The compiler with a tier.
    pub fn with_tier(tier: Tier) -> Cpu {
        Cpu { options: Options { tier, ..Options::default() } }
    }
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        match (self.options.tier, self.options.contract) {
            (Tier::Auto, true) => "cpu",
            (Tier::Embedded, true) => "cpu (embedded)",
            (Tier::Llvm, true) => "cpu (llvm)",
            (Tier::Auto, false) => "cpu, uncontracted",
            (Tier::Embedded, false) => "cpu (embedded), uncontracted",
            (Tier::Llvm, false) => "cpu (llvm), uncontracted",
        }
    }

    fn about(&self) -> String {
        if self.options.tier == Tier::Embedded {
            return "the embedded one, as chosen".into();
        }
        let hot = if self.options.tier == Tier::Auto { " for programs that are called often" } else { "" };
        match llvm::available() {
            Ok(found) => {
                let (major, minor, patch) = found.version();
                format!("LLVM {major}.{minor}.{patch}{hot} ({})", found.path().display())
            }
            Err(why) => format!("the embedded one alone: {why}"),
        }
    }

    fn compile(&self, program: &Verified) -> Result<Arc<dyn Executable>> {
        if program.is_symbolic() {
            return Ok(Arc::new(PerSize { program: program.clone(), options: self.options, made: Mutex::default() }));
        }
        Ok(Arc::new(native(program, program.exactness(), self.options)?))
    }
}

/// Compiles a program whose dimensions are known.
pub fn native(program: &Program, exactness: Exactness, options: Options) -> Result<Native> {
    let ready = run_passes(EXECUTION_PASSES, program, exactness, &mut |name, p, time| {
        report(|| Phase::new(name, &[p], time));
    })?;
    let started = Instant::now();
    let mut lowered = lower::lower_with(&ready, options.small)?;
    let module = std::mem::take(&mut lowered.module);
    let module = ir::fold(module, exactness);
    let module = ir::expand(if options.contract { ir::contract(module) } else { module })?;
    // The functions are made of steps whose errors cancel: nothing about them may be relaxed.
    let module = ir::fold(module, Exactness::Exact);
    if cfg!(debug_assertions) {
        ir::verify(&module).map_err(|e| e.note(module.to_string()))?;
    }
    report(|| Phase::described("lower", module.to_string(), started.elapsed()));
    lowered.module = module;
    let started = Instant::now();
    let plan = memory::plan(&lowered.module, &lowered.bytes)?;
    report(|| Phase::described("plan memory", plan.to_string(), started.elapsed()));
    Native::new(lowered, plan, options)
}

/// A program with symbolic dimensions: one executable for each size that is met.
struct PerSize {
    program: Verified,
    options: Options,
    made: Mutex<FxHashMap<Vec<Type>, Arc<Native>>>,
}

impl fmt::Debug for PerSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerSize").field("program", &self.program.name()).finish()
    }
}

impl Executable for PerSize {
    fn run(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        if inputs.len() != self.program.inputs().len() {
            return Err(error!(
                Signature,
                "`{}` takes {} inputs, not {}",
                self.program.name(),
                self.program.inputs().len(),
                inputs.len()
            ));
        }
        let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
        let found = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(&types).cloned();
        let code = match found {
            Some(code) => code,
            None => {
                let code =
                    Arc::new(native(&self.program.bind_symbols(&types)?, self.program.exactness(), self.options)?);
                self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(types, code.clone());
                code
            }
        };
        code.run(inputs)
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }

    fn bytes(&self) -> usize {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.program.bytes() + made.values().map(|c| c.bytes()).sum::<usize>()
    }
}
