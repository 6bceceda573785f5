//! The backend: the passes that it asks for, and from a program after them to code that runs: lowering, a plan of memory, machine code.

use std::sync::{Arc, Once};
use std::time::Instant;

use gradus_core::optimize::{CONTRACT, EXECUTION_PASSES, Exactness, Pass};
use gradus_core::phases::{Phase, report};
use gradus_core::program::{Program, verify};
use gradus_core::warnings::{Warning, WarningKind};
use gradus_core::{Backend, Constraint, Executable, Interpreter, Passed, Type};

use crate::codegen::{embedded, llvm, x86};
use crate::error::Result;
use crate::lower::Lowered;
use crate::native::Native;
use crate::size::Size;
use crate::{extent, ir, lower};

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

impl Tier {
    /// Whether this machine has what the tier is about; if not, why. Without LLVM its tier is the embedded one.
    pub fn available(self) -> std::result::Result<(), &'static str> {
        if self == Tier::Llvm { llvm::available().map(|_| ()) } else { Ok(()) }
    }
}

/// Which instructions the embedded tier uses. Tests choose; everybody else has the best.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Vectors {
    /// The widest that the machine has.
    #[default]
    Best,
    /// AVX2 at most.
    Avx2,
    /// None of our own: Cranelift makes the code, if this build has it.
    None,
}

impl Vectors {
    /// The instructions that are used on this machine.
    pub(crate) fn isa(self) -> Option<x86::Isa> {
        match self {
            Vectors::Best => x86::detect(),
            Vectors::Avx2 => x86::detect().map(|_| x86::Isa::Avx2),
            Vectors::None => None,
        }
    }
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
    /// Main bodies of more statements than about this become several functions.
    pub piece: usize,
    /// Whether threads share large loops.
    pub threads: bool,
    /// What the embedded tier makes code of.
    pub vectors: Vectors,
    /// Whether results and scratch memory are filled with NaN before each run, so that what is read before it is written shows. Debug builds do it.
    pub fill: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            tier: Tier::Auto,
            contract: true,
            small: lower::SMALL,
            piece: ir::PIECE,
            threads: true,
            vectors: Vectors::Best,
            fill: cfg!(debug_assertions),
        }
    }
}

/// The native CPU compiler. What it may choose, its methods choose: `Cpu::new().tier(Tier::Llvm).threads(false)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    options: Options,
}

impl Cpu {
    /// The compiler as `jit` uses it.
    pub fn new() -> Cpu {
        Cpu::default()
    }

    /// Which code generator makes the code.
    #[must_use]
    pub fn tier(self, tier: Tier) -> Cpu {
        Options { tier, ..self.options }.into()
    }

    /// Whether a product that only a sum takes in is rounded together with it; by default it is.
    #[must_use]
    pub fn contract(self, contract: bool) -> Cpu {
        Options { contract, ..self.options }.into()
    }

    /// Whether threads share large loops; by default they do.
    #[must_use]
    pub fn threads(self, threads: bool) -> Cpu {
        Options { threads, ..self.options }.into()
    }
}

impl Cpu {
    /// Whether a code generator knows this processor.
    fn has_code(&self) -> bool {
        embedded::available(self.options.vectors.isa())
            || (self.options.tier != Tier::Embedded && llvm::available().is_ok())
    }
}

/// Says once that programs are interpreted, and what would change that.
#[cold]
fn warn_no_code() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        Warning::new(WarningKind::Interpreted, "programs are interpreted: there is no code for this processor")
            .note(embedded::WITHOUT)
            .help("build `gradus` with the feature `cranelift`, or install LLVM")
            .emit();
    });
}

/// The compiler with every choice made: what tests and tools turn that users need not.
impl From<Options> for Cpu {
    fn from(options: Options) -> Cpu {
        Cpu { options }
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

    fn passes(&self, program: &Program) -> Vec<Pass> {
        if extent::is_vast(program) {
            return Vec::new();
        }
        EXECUTION_PASSES.iter().copied().chain(self.options.contract.then_some(CONTRACT)).collect()
    }

    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        // Passes may make an array of all steps of a loop that was not vast.
        if extent::is_vast(program.given()) || extent::is_vast(program) {
            return Interpreter.compile(&program.without_passes());
        }
        if !self.has_code() {
            warn_no_code();
            return Interpreter.compile(&program.without_passes());
        }
        let lowered = lowered(program, self.options)?;
        Ok(Arc::new(Native::new(lowered, program.given().as_ref().clone(), self.options)?))
    }
}

/// A program as kernels, with the passes over them. One with symbolic dimensions serves every size.
fn lowered(program: &Passed, options: Options) -> Result<Lowered> {
    let started = Instant::now();
    let mut lowered =
        lower::lower_with(&with_equal_symbols(program.program().as_ref().clone()), options.small, options.threads)?;
    let module = ir::strip(std::mem::take(&mut lowered.module));
    let module = ir::fold(module, program.exactness());
    let module = ir::expand(module);
    // The functions are made of steps whose errors cancel: nothing about them may be relaxed.
    let module = ir::fold(module, Exactness::Exact);
    let (module, frames) = ir::cut(module, options.piece);
    if cfg!(debug_assertions) {
        ir::verify(&module).map_err(|e| e.note(module.to_string()))?;
    }
    report(|| Phase::described("lower", module.to_string(), started.elapsed()));
    lowered.module = module;
    lowered.bytes.extend(frames.into_iter().map(Size::from));
    Ok(lowered)
}

/// Symbols that a constraint says are equal to something become it: then arrays have the same dimensions where the program says
/// so, and share loops. The constraints are checked when sizes are bound.
fn with_equal_symbols(mut p: Program) -> Program {
    loop {
        let found = p.constraints().iter().find_map(|c| match c {
            Constraint::Equal(a, b) => match (a.as_symbol(), b.as_symbol()) {
                (_, Some(s)) if !a.symbols().iter().any(|x| &**x == s) => Some((s.to_string(), a.clone())),
                (Some(s), _) if !b.symbols().iter().any(|x| &**x == s) => Some((s.to_string(), b.clone())),
                _ => (a.clone() - b).solve_for_zero().map(|(s, dim)| (s.to_string(), dim)),
            },
            _ => None,
        });
        let Some((symbol, dim)) = found else { return p };
        let next = p.map_dims(&|d| d.substitute(&|s| (s == symbol).then(|| dim.clone())));
        // Conditions that contradict each other leave no program that could run; the call says so.
        let negative = |t: &Type| t.shape().iter().any(|d| d.constant().is_some_and(|n| n < 0));
        if next.inputs().iter().any(negative) || verify(&next).is_err() {
            return p;
        }
        p = next;
    }
}

#[cfg(test)]
mod tests {
    use gradus_core::Array;
    use gradus_core::pipeline::Pipeline;

    use super::*;

    fn equal(inputs: &str, conditions: &str, result: &str, body: &str) -> Vec<String> {
        let text = format!("fn f({inputs}) -> {result} where {conditions} {{\n{body}}}\n");
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        with_equal_symbols(p).inputs().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn symbols_that_are_equal_become_one() {
        let body = "  x2: f64[N] = add x0 x1\n  return x2\n";
        assert_eq!(equal("x0: f64[N], x1: f64[M]", "N==M", "f64[N]", body), ["f64[N]", "f64[N]"]);
        let body = "  x2: f64[N] = add x0 x1\n  return x2\n";
        assert_eq!(equal("x0: f64[N], x1: f64[2*M]", "N==2*M", "f64[N]", body), ["f64[2*M]", "f64[2*M]"]);
        let body = "  x2: f64[N] = add x0 x1\n  return x2\n";
        assert_eq!(equal("x0: f64[N], x1: f64[6]", "N==6", "f64[N]", body), ["f64[6]", "f64[6]"]);
        // Also where two expressions are.
        let body = "  x2: f64[N-1] = slice{start=[1], limit=[N], step=[1]} x0\n  return x2\n";
        assert_eq!(equal("x0: f64[N], x1: f64[M]", "N-1==M-1, N>=1", "f64[N-1]", body), ["f64[N]", "f64[N]"]);
        assert_eq!(equal("x0: f64[N], x1: f64[4]", "N-1==4, N>=1", "f64[N-1]", body), ["f64[5]", "f64[4]"]);
    }

    /// Asks for a pass that makes an array whose dimensions cannot be counted with.
    #[derive(Debug)]
    struct Widening;

    impl Backend for Widening {
        fn name(&self) -> &'static str {
            "widening"
        }
        fn passes(&self, _: &Program) -> Vec<Pass> {
            let run = |_: &Program, _| {
                let vast = 1_u64 << 45;
                let text = format!(
                    "fn f(x0: f64[3], x1: f64[0]) -> f64[3] {{\n  x2: f64[{vast},{vast},0] = \
                     broadcast{{shape=[{vast},{vast},0], axes=[2]}} x1\n  x3: f64[3] = sin x0\n  return x3\n}}\n"
                );
                text.parse()
            };
            vec![Pass { name: "widen", run }]
        }
        fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
            assert!(extent::is_vast(program) && !extent::is_vast(program.given()));
            Cpu::new().compile(program)
        }
    }

    #[test]
    fn what_passes_make_vast_is_interpreted_as_it_was() {
        let text = "fn f(x0: f64[3], x1: f64[0]) -> f64[3] {\n  x2: f64[3] = sin x0\n  return x2\n}\n";
        let code = Pipeline::on(Widening).code(&text.parse().unwrap()).unwrap();
        let x = Array::from([0.5_f64, 1.0, 2.0]);
        let have = code.run(&[x.clone(), Array::zeros::<f64>([0])]).unwrap();
        assert_eq!(have[0].to_vec::<f64>().unwrap(), x.sin().to_vec::<f64>().unwrap());
        assert!(code.as_any().downcast::<Native>().is_err());
    }

    #[test]
    fn what_only_its_own_code_does_runs_alone() {
        let alone = |line: &str| {
            let text = format!("fn f(x0: f64[40,40]) -> f64[40,40] {{\n  x1: f64[40,40] = {line}\n  return x1\n}}\n");
            Pipeline::on(Cpu::new()).code(&text.parse().unwrap()).unwrap().runs_alone()
        };
        assert!(alone("sin x0"));
        assert!(!alone("cholesky x0"), "the interpreter's code runs");
    }

    /// As on an old processor: what has no code is interpreted, once with a warning.
    #[cfg(not(has_cranelift))]
    #[test]
    fn without_a_code_generator_programs_are_interpreted() {
        let text = "fn f(x0: f64[3]) -> f64[3] {\n  x1: f64[3] = sin x0\n  return x1\n}\n";
        let old = Options { tier: Tier::Embedded, vectors: Vectors::None, ..Options::default() };
        let ((), said) = gradus_core::warnings::collect(|| {
            let code = Pipeline::on(Cpu::from(old)).code(&text.parse().unwrap()).unwrap();
            let x = Array::from([0.5_f64, 1.0, 2.0]);
            let have = code.run(std::slice::from_ref(&x)).unwrap();
            assert_eq!(have[0].to_vec::<f64>().unwrap(), x.sin().to_vec::<f64>().unwrap());
            assert!(code.as_any().downcast::<Native>().is_err());
        });
        let [warning] = &said[..] else { panic!("{said:?}") };
        assert!(warning.way_out().is_some_and(|w| w.contains("feature `cranelift`")), "{warning}");
    }

    #[test]
    fn conditions_that_contradict_each_other_leave_the_program_as_it_is() {
        let body = "  x2: u8[N,3*N,3*N+2] = concatenate{axis=2} x0 x1 x0\n  return x2\n";
        let inputs = "x0: u8[N,3*N,1], x1: u8[1,N,3*N]";
        let found = equal(inputs, "N==1, 3*N==N", "u8[N,3*N,3*N+2]", body);
        assert_eq!(found, ["u8[N,3*N,1]", "u8[1,N,3*N]"]);
        let found = equal("x0: f64[N,2*N-1]", "0==N", "f64[N,2*N-1]", "  return x0\n");
        assert_eq!(found, ["f64[N,2*N-1]"]);
    }
}
