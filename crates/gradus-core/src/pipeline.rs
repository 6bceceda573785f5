//! The way from a traced program to code, as one value: what is chosen for its stages, and each stage by its name.
//!
//! ```text
//! Program ── optimize ── Optimized ── instrument ── Verified ── pass ── Passed ── compile ── Executable
//! ```
//!
//! A program may be transformed until it is instrumented. From there on it belongs to its backend: the passes that the backend asks for, its lowering,
//! its code. [`make_ready`](Pipeline::make_ready) is the whole way of a call, through the code that the process shares; [`code`](Pipeline::code)
//! is the same way past it, for tools that want to see every stage.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::array::{Array, Outputs};
use crate::backend::{Backend, Executable, Passed, Usage};
use crate::error::{Error, ErrorKind, Location, Result, counted, error, panic_text};
use crate::executables::{Origin, find_or_compile};
use crate::hunt::{self, Hunt};
use crate::interpret::Interpreter;
use crate::optimize::{Exactness, optimize_with};
use crate::oracle::{Verify, Watched, foreign};
use crate::phases::{Phase, phase, report};
use crate::program::{Program, Verified};
use crate::types::Type;
use crate::warnings::{Warning, WarningKind};

/// How a program is run, besides by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Which calls are held against the interpreter.
    pub verify: Verify,
    /// Whether a program that Gradus fails to compile is an error, and not interpreted with a warning.
    pub strict: bool,
}

impl Running {
    /// What the environment variables `GRADUS_VERIFY` and `GRADUS_STRICT` ask for.
    pub fn of_environment() -> Running {
        static STRICT: OnceLock<bool> = OnceLock::new();
        let strict = *STRICT.get_or_init(|| std::env::var("GRADUS_STRICT").is_ok_and(|v| v == "1" || v == "on"));
        Running { verify: Verify::of_environment(), strict }
    }
}

/// Everything that shapes what becomes of a program once it is traced, and the stages that it goes through.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// What rewrites may change.
    pub exactness: Exactness,
    /// What compiled code is to look for as it runs.
    pub hunt: Hunt,
    /// Who compiles.
    pub backend: Arc<dyn Backend>,
    /// Whether calls are verified, and whether a fault of the compiler is an error.
    pub running: Running,
    /// The line that made the function, for warnings.
    pub place: Location,
}

/// A program after the passes for every program. It may still be transformed, and any backend can take it on.
#[derive(Clone, Debug)]
pub struct Optimized {
    program: Verified,
    /// The program before any pass, where calls are verified by it.
    reference: Option<Arc<Program>>,
}

impl Optimized {
    /// Bytes it holds.
    pub fn bytes(&self) -> usize {
        self.program.bytes() + self.reference.as_ref().map_or(0, |p| p.bytes())
    }
}

impl Deref for Optimized {
    type Target = Verified;
    fn deref(&self) -> &Verified {
        &self.program
    }
}

impl Pipeline {
    /// Exact, without hunt or verified calls, on a backend.
    pub fn on(backend: impl Backend) -> Pipeline {
        Pipeline::new(Arc::new(backend))
    }

    /// The same for a backend that is shared.
    pub fn new(backend: Arc<dyn Backend>) -> Pipeline {
        Pipeline {
            exactness: Exactness::Exact,
            hunt: Hunt::Off,
            backend,
            running: Running::default(),
            place: Location::unknown(),
        }
    }

    /// From a program as it was traced to one after [`PASSES`](crate::optimize::PASSES).
    pub fn optimize(&self, traced: &Program) -> Result<Optimized> {
        let program = Verified::new(optimize_with(traced, self.exactness)?)?;
        let reference = self.running.verify.is_on().then(|| Arc::new(traced.clone()));
        Ok(Optimized { program, reference })
    }

    /// A symbolic program for inputs of exactly these types.
    pub fn specialize(&self, optimized: &Optimized, types: &[Type]) -> Result<Optimized> {
        let bound = self.optimize(&optimized.bind_symbols(types)?)?;
        Ok(Optimized { reference: optimized.reference.clone(), ..bound })
    }

    /// The program with checks in it if something is hunted for. From here on it must not be transformed.
    pub fn instrument(&self, optimized: &Verified) -> Result<Verified> {
        if !self.hunt.is_on() {
            return Ok(optimized.clone());
        }
        phase("instrument", |p: &Verified| vec![&**p], || Verified::new(hunt::instrument(optimized, self.hunt)?))
    }

    /// The program after the passes that the backend asks for.
    pub fn pass(&self, program: &Verified) -> Result<Passed> {
        let shown = &mut |name, p: &Program, time| report(|| Phase::new(name, &[p], time));
        Passed::new(&*self.backend, program, self.exactness, shown)
    }

    /// New code of an instrumented program, by the backend after its passes. A fault of either, a panic too, is an error that says whose it is.
    pub fn compile(&self, program: &Verified) -> Result<Arc<dyn Executable>> {
        let started = Instant::now();
        let code = self.blamed(program, || self.backend.compile(&self.pass(program)?))?;
        report(|| Phase::described("compile", self.described(&*code), started.elapsed()));
        Ok(code)
    }

    /// What is to be known of code, by who made it.
    fn described(&self, code: &dyn Executable) -> String {
        let mut text = format!("{} ready on {}, {} bytes", self.backend.name(), self.backend.device(), code.bytes());
        // Asked only where it is said: a backend may have to look for what it is made of.
        let about = self.backend.is_elsewhere().then(|| self.backend.about()).filter(|about| !about.is_empty());
        for line in about.into_iter().chain(facts_of(code)) {
            text += "\n";
            text += &line;
        }
        text
    }

    /// New code of a program that has been through the passes, or of a part of it.
    pub(crate) fn compile_as_is(&self, program: Program) -> Result<Arc<dyn Executable>> {
        let program = Verified::new(program)?;
        self.blamed(&program, || self.backend.compile(&Passed::as_is(program.clone(), self.exactness)))
    }

    /// All stages: new code of a program as it was traced.
    pub fn code(&self, traced: &Program) -> Result<Arc<dyn Executable>> {
        let optimized = self.optimize(traced)?;
        self.compile(&self.instrument(&optimized)?)
    }

    /// The code that calls of an optimized program run, and where it came from: shared by the process, watched if calls are verified, interpreted if
    /// Gradus fails to compile it.
    pub fn make_ready(&self, optimized: &Optimized) -> Result<(Arc<dyn Executable>, Origin)> {
        let program = self.instrument(optimized)?;
        let by = (&*self.backend, self.exactness);
        match find_or_compile(by, program.program(), || self.compile(&program)) {
            Ok((code, origin)) if self.running.verify.is_on() && !self.interprets() => {
                let reference = optimized.reference.as_ref().unwrap_or(program.program());
                Ok((Arc::new(Watched::new(code, self.clone(), program.clone(), reference)), origin))
            }
            Err(e) if e.kind() == ErrorKind::Internal && !self.running.strict && !self.backend.is_elsewhere() => {
                self.warn_interpreted(&program, &e);
                let code = Interpreter.compile(&Passed::as_is(program, self.exactness))?;
                Ok((code, Origin::Interpreted))
            }
            other => other,
        }
    }

    fn interprets(&self) -> bool {
        (&*self.backend as &dyn Any).is::<Interpreter>()
    }

    /// Runs what a backend does with a program; a fault of it is one of Gradus. A panic goes on where it may be that of a rule of the user's: it is the
    /// user's to see.
    fn blamed<T>(&self, program: &Program, compile: impl FnOnce() -> Result<T>) -> Result<T> {
        let done = catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|panic| {
            if foreign(program).is_some() {
                resume_unwind(panic);
            }
            let (by, text) = (self.backend.name(), panic_text(panic));
            Err(error!(Rule, "`{by}` panicked while it compiled `{}`: {text}", program.name()))
        });
        done.map_err(|e| if is_users(e.kind()) { e } else { e.of_gradus() })
    }

    #[cold]
    fn warn_interpreted(&self, program: &Program, e: &Error) {
        let message = format!("`{}` could not be compiled and is interpreted: slower, and right", program.name());
        let warning = Warning::new(WarningKind::Interpreted, message).at(self.place).note(e.message());
        let warning = if e.place().is_known() { warning.note(format!("at {}", e.place())) } else { warning };
        warning
            .note("this is a fault of Gradus, not of your program")
            .help("please report it with the program's text; `.strict()` or `GRADUS_STRICT=1` makes it an error")
            .emit();
    }
}

/// What code took and what else is to be known of it, a line each.
pub fn facts_of(code: &dyn Executable) -> Vec<String> {
    let usage = code.usage();
    let mut lines = Vec::new();
    if usage != Usage::default() {
        let Usage { uploaded, downloaded, sizes, compile_time } = usage;
        lines.push(format!("moved: {uploaded} bytes to the device, {downloaded} bytes back"));
        lines.push(format!("compiled: {} in {compile_time:.1?}", counted(sizes as usize, "size")));
    }
    lines.extend(code.facts().iter().map(|(name, value)| format!("{name}: {value}")));
    lines
}

/// Whether an error of a backend is about what the user asked for: memory, sizes, values, functions of the host, devices. What else can
/// be wrong with a program that the verifier accepted is not the user's fault.
fn is_users(kind: ErrorKind) -> bool {
    use ErrorKind::{
        Budget, Callback, Check, Constraint, Device, Frozen, MissingRule, NotFinite, Signature, Size, Value,
    };
    matches!(
        kind,
        Size | Constraint | Signature | Value | MissingRule | Callback | Check | Frozen | Budget | NotFinite | Device
    )
}

static DEFAULT: OnceLock<Arc<dyn Backend>> = OnceLock::new();

/// The backend that programs run on unless they choose one: the interpreter, or what was set first.
pub fn default_backend() -> Arc<dyn Backend> {
    DEFAULT.get_or_init(|| Arc::new(Interpreter)).clone()
}

/// Chooses the backend of the process. Only the first choice counts, and only before anything ran: code that was compiled
/// must not depend on when it was.
pub fn set_default_backend(backend: Arc<dyn Backend>) -> bool {
    DEFAULT.set(backend).is_ok()
}

/// Code that was made for a program which is called, and who made it.
struct Called {
    program: Weak<Program>,
    backend: Arc<dyn Backend>,
    code: Arc<dyn Executable>,
}

thread_local! {
    /// Code by the addresses of its program and of its backend: the fast way for calls, which share both.
    static BY_ADDRESS: RefCell<FxHashMap<(usize, usize), Called>> = RefCell::default();
    /// The backend of the function that runs on this thread, if it chose one.
    static IN_USE: RefCell<Option<Arc<dyn Backend>>> = const { RefCell::new(None) };
}

/// Addresses remembered before those of programs that are gone are dropped.
const ADDRESSES: usize = 1024;

/// Runs something on behalf of a function that chose a backend: programs that are called meanwhile run there, too.
pub fn using<T>(backend: &Arc<dyn Backend>, f: impl FnOnce() -> T) -> T {
    /// Puts back what was there even if the function panics.
    struct Restore(Option<Arc<dyn Backend>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_USE.set(self.0.take());
        }
    }
    let _restore = Restore(IN_USE.replace(Some(backend.clone())));
    f()
}

/// Runs a program that is called: compiled at its first call, whichever function calls it, by the backend in use.
pub(crate) fn run_called(program: &Arc<Program>, inputs: &[Array]) -> Result<Outputs> {
    let backend = IN_USE.with_borrow(Clone::clone).unwrap_or_else(default_backend);
    let key = (Arc::as_ptr(program).addr(), Arc::as_ptr(&backend).addr());
    let found = BY_ADDRESS.with_borrow(|t| {
        let called = t.get(&key)?;
        let same = called.program.upgrade().is_some_and(|p| Arc::ptr_eq(&p, program));
        (same && Arc::ptr_eq(&called.backend, &backend)).then(|| called.code.clone())
    });
    if let Some(code) = found {
        return code.run(inputs);
    }
    let pipeline = Pipeline { running: Running::of_environment(), ..Pipeline::new(backend.clone()) };
    let (code, _) = pipeline.make_ready(&pipeline.optimize(program)?)?;
    BY_ADDRESS.with_borrow_mut(|t| {
        if t.len() >= ADDRESSES {
            t.retain(|_, called| called.program.strong_count() > 0);
        }
        t.insert(key, Called { program: Arc::downgrade(program), backend, code: code.clone() });
    });
    code.run(inputs)
}
