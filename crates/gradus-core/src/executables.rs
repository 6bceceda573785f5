//! Code shared by the whole process: equal programs are compiled once, whichever function they came from.

use std::any::{Any, TypeId};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::array::{Array, Form};
use crate::backend::{Backend, Executable};
use crate::error::Result;
use crate::optimize::Exactness;
use crate::program::Program;

/// The dimensions of all inputs of a call, one after the other: what tells calls of one symbolic program apart.
pub type Sizes = SmallVec<[usize; 8]>;

/// The sizes of inputs.
pub fn sizes_of(inputs: &[Array]) -> Sizes {
    let mut sizes = Sizes::new();
    for a in inputs {
        match a.form() {
            Form::Concrete(c) => sizes.extend_from_slice(c.dims()),
            Form::Remote(r) => sizes.extend_from_slice(r.dims()),
            Form::Traced(_) | Form::Spec(_) | Form::Failed(_) => {}
        }
    }
    sizes
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

struct CodeTable {
    table: FxHashMap<Key, Kept>,
    /// What is being compiled now. Nothing that is compiled can wait for itself: a program holds only smaller ones.
    making: Vec<Key>,
    limit: usize,
    clock: u64,
    stats: ExecutableStats,
}

/// Compiled programs that the process keeps, unless it is told otherwise.
const LIMIT: usize = 1 << 30;

static SHARED: LazyLock<Mutex<CodeTable>> = LazyLock::new(|| {
    Mutex::new(CodeTable {
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

fn shared() -> MutexGuard<'static, CodeTable> {
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

/// The code of a program before the backend's passes, and where it came from: `compile` makes it if it is not there. Threads that want the same
/// code at once wait for the one that makes it.
pub(crate) fn find_or_compile(
    (backend, exactness): (&dyn Backend, Exactness),
    program: &Arc<Program>,
    compile: impl FnOnce() -> Result<Arc<dyn Executable>>,
) -> Result<(Arc<dyn Executable>, Origin)> {
    let kind = (backend as &dyn Any).type_id();
    let key: Key = (kind, backend.key().into(), exactness, program.fingerprint());
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
    let code = compile()?;
    let origin = if code.is_loaded() { Origin::Loaded } else { Origin::Compiled };
    let mut shared = shared();
    match origin {
        Origin::Loaded => shared.stats.loaded += 1,
        Origin::Compiled | Origin::Shared | Origin::Interpreted => shared.stats.compiles += 1,
    }
    let last_used = shared.clock;
    let kept = Kept { program: program.clone(), code: code.clone(), last_used };
    shared.stats.bytes += code.bytes();
    if let Some(old) = shared.table.insert(key, kept) {
        shared.stats.bytes -= old.code.bytes();
    }
    shared.shrink();
    // The lock goes before the mark of being made, which takes it again.
    drop(shared);
    Ok((code, origin))
}

impl CodeTable {
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
