//! Code shared by the whole process: equal programs are compiled once, whichever function they came from.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::array::{Array, Concrete};
use crate::error::{ErrorKind, Place, Result, error, panic_text};
use crate::interpret::{Backend, Executable, Interpreter};
use crate::optimize::{Exactness, optimize};
use crate::oracle::{Verify, Watched};
use crate::program::{Program, Verified};
use crate::warnings::{Warning, WarningKind};

/// The dimensions of all inputs of a call, one after the other: what tells calls of one symbolic program apart.
pub type Sizes = SmallVec<[usize; 8]>;

/// The sizes of inputs.
pub fn sizes_of(inputs: &[Array]) -> Sizes {
    inputs.iter().flat_map(|a| a.concrete().map_or(&[][..], Concrete::dims)).copied().collect()
}

/// What the process-wide table of compiled programs holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutableStats {
    /// Programs kept.
    pub entries: usize,
    /// Bytes they take.
    pub bytes: usize,
    /// Programs dropped to stay within the bound.
    pub evictions: u64,
    /// Programs compiled since the process began.
    pub compiles: u64,
    /// Programs whose code was found on disk.
    pub loaded: u64,
}

struct Kept {
    program: Arc<Program>,
    code: Arc<dyn Executable>,
    last_used: u64,
}

/// The backend with every option of it, what it may change, and the program's fingerprint.
type Key = (TypeId, Arc<str>, Exactness, u128);

struct Shared {
    table: FxHashMap<Key, Kept>,
    /// What is being compiled now. Nothing that is compiled can wait for itself: a program holds only smaller ones.
    making: Vec<Key>,
    limit: usize,
    clock: u64,
    stats: ExecutableStats,
}

/// Compiled programs that the process keeps, unless it is told otherwise.
const LIMIT: usize = 1 << 30;

static SHARED: LazyLock<Mutex<Shared>> = LazyLock::new(|| {
    Mutex::new(Shared {
        table: FxHashMap::default(),
        making: Vec::new(),
        limit: LIMIT,
        clock: 0,
        stats: ExecutableStats::default(),
    })
});

/// Rings when something was compiled, or could not be.
static MADE: Condvar = Condvar::new();

/// Code that is being made: others wait for it until this is dropped, also by an error or a panic.
struct Making(Key);

impl Drop for Making {
    fn drop(&mut self) {
        shared().making.retain(|k| *k != self.0);
        MADE.notify_all();
    }
}

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was compiled.
    Compiled,
    /// It was found on disk.
    Loaded,
    /// The process had it already.
    Shared,
    /// It could not be compiled, by a fault of Gradus: it is interpreted.
    Interpreted,
}

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

/// Whether an error of a backend is about what the user asked for: memory, sizes, values, functions of the host. What else can
/// be wrong with a program that the verifier accepted is not the user's fault.
fn is_users(kind: ErrorKind) -> bool {
    use ErrorKind::{Budget, Callback, Check, Constraint, Frozen, MissingRule, NotFinite, Signature, Size, Value};
    matches!(kind, Size | Constraint | Signature | Value | MissingRule | Callback | Check | Frozen | Budget | NotFinite)
}

/// Makes a program ready. A fault of the backend, a panic too, is an error that says whose it is.
pub fn compile(backend: &dyn Backend, program: &Verified) -> Result<Arc<dyn Executable>> {
    let done = catch_unwind(AssertUnwindSafe(|| backend.compile(program)));
    let done = done.unwrap_or_else(|panic| {
        let text = panic_text(panic);
        Err(error!(Rule, "`{}` panicked while it compiled `{}`: {text}", backend.name(), program.name()))
    });
    done.map_err(|e| if is_users(e.kind()) { e } else { e.of_gradus() })
}

/// The code of a program as a call runs it, and where it came from: watched if its calls are verified, interpreted if Gradus
/// fails to compile it. `reference` is the program before it was optimized, where there is one; `place` is for the warning.
pub fn make_ready(
    backend: &Arc<dyn Backend>,
    program: &Verified,
    reference: Option<&Program>,
    running: Running,
    place: Place,
) -> Result<(Arc<dyn Executable>, Origin)> {
    match find_or_compile(&**backend, program) {
        Ok((code, origin)) if running.verify.is_on() && !is_interpreter(&**backend) => {
            let reference = reference.unwrap_or(program);
            let watched = Watched::new(code, backend.clone(), program.clone(), reference, running.verify);
            Ok((Arc::new(watched), origin))
        }
        Err(e) if e.kind() == ErrorKind::Internal && !running.strict => {
            let message = format!("`{}` could not be compiled and is interpreted: slower, and right", program.name());
            let warning = Warning::new(WarningKind::Interpreted, message).at(place).note(e.message());
            let warning = if e.place().is_known() { warning.note(format!("at {}", e.place())) } else { warning };
            warning
                .note("this is a fault of Gradus, not of your program")
                .help("please report it with the program's text; `.strict()` or `GRADUS_STRICT=1` makes it an error")
                .emit();
            Ok((Interpreter.compile(program)?, Origin::Interpreted))
        }
        other => other,
    }
}

fn is_interpreter(backend: &dyn Backend) -> bool {
    (backend as &dyn Any).is::<Interpreter>()
}

/// The code of a program, and where it came from. Threads that want the same code at once wait for the one that makes it.
pub fn find_or_compile(backend: &dyn Backend, program: &Verified) -> Result<(Arc<dyn Executable>, Origin)> {
    let kind = (backend as &dyn Any).type_id();
    let key: Key = (kind, backend.key().into(), program.exactness(), program.fingerprint());
    let _making = {
        let mut shared = shared();
        loop {
            shared.clock += 1;
            let clock = shared.clock;
            // The hash finds it, the comparison proves it.
            if let Some(kept) = shared.table.get_mut(&key).filter(|k| k.program.computes_same(program)) {
                kept.last_used = clock;
                return Ok((kept.code.clone(), Origin::Shared));
            }
            if !shared.making.contains(&key) {
                break;
            }
            shared = MADE.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        shared.making.push(key.clone());
        Making(key.clone())
    };
    let code = compile(backend, program)?;
    let origin = if code.is_loaded() { Origin::Loaded } else { Origin::Compiled };
    let mut shared = shared();
    match origin {
        Origin::Loaded => shared.stats.loaded += 1,
        Origin::Compiled | Origin::Shared | Origin::Interpreted => shared.stats.compiles += 1,
    }
    let last_used = shared.clock;
    let kept = Kept { program: program.program().clone(), code: code.clone(), last_used };
    shared.stats.bytes += code.bytes();
    if let Some(old) = shared.table.insert(key, kept) {
        shared.stats.bytes -= old.code.bytes();
    }
    shared.shrink();
    // The lock goes before the mark of being made, which takes it again.
    drop(shared);
    Ok((code, origin))
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

thread_local! {
    /// Code by the address of its program: the fast way for calls, which share their program.
    static BY_ADDRESS: RefCell<FxHashMap<usize, (Weak<Program>, Arc<dyn Executable>)>> = RefCell::default();
}

/// Addresses remembered before those of programs that are gone are dropped.
const ADDRESSES: usize = 1024;

/// Runs a program that is called: compiled at its first call, whichever function calls it.
pub(crate) fn run_called(program: &Arc<Program>, inputs: &[Array]) -> Result<Vec<Array>> {
    let address = Arc::as_ptr(program) as usize;
    let found = BY_ADDRESS.with_borrow(|t| {
        let (weak, code) = t.get(&address)?;
        weak.upgrade().is_some_and(|p| Arc::ptr_eq(&p, program)).then(|| code.clone())
    });
    if let Some(code) = found {
        return code.run(inputs);
    }
    let optimized = Verified::new(optimize(program)?)?;
    let running = Running::of_environment();
    let (code, _) = make_ready(&default_backend(), &optimized, Some(program), running, Place::unknown())?;
    BY_ADDRESS.with_borrow_mut(|t| {
        if t.len() >= ADDRESSES {
            t.retain(|_, (p, _)| p.strong_count() > 0);
        }
        t.insert(address, (Arc::downgrade(program), code.clone()));
    });
    code.run(inputs)
}

impl Shared {
    fn shrink(&mut self) {
        while self.stats.bytes > self.limit && self.table.len() > 1 {
            let Some(oldest) = self.table.iter().min_by_key(|(_, k)| k.last_used).map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some(kept) = self.table.remove(&oldest) {
                self.stats.bytes -= kept.code.bytes();
                self.stats.evictions += 1;
            }
        }
    }
}

/// What the process keeps.
pub fn executable_stats() -> ExecutableStats {
    let shared = shared();
    ExecutableStats { entries: shared.table.len(), ..shared.stats }
}

/// Forgets all compiled programs that no function holds.
pub fn clear_executables() {
    let mut shared = shared();
    shared.table.clear();
    shared.stats.bytes = 0;
}

/// Bounds the bytes of compiled programs that the process keeps.
pub fn limit_executables(bytes: usize) {
    let mut shared = shared();
    shared.limit = bytes;
    shared.shrink();
}
