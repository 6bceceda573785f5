//! Code shared by the whole process: equal programs are compiled once, whichever function they came from.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use gradus_core::program::Verified;
use gradus_core::{Backend, Executable, Program, Result};
use rustc_hash::FxHashMap;

/// What the process-wide table of compiled programs holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutableStats {
    /// Programs kept.
    pub entries: usize,
    /// Bytes they take.
    pub bytes: usize,
    /// Programs dropped to stay within the bound.
    pub evictions: u64,
}

struct Kept {
    program: Arc<Program>,
    code: Arc<dyn Executable>,
    last_used: u64,
}

struct Shared {
    table: FxHashMap<(&'static str, u128), Kept>,
    limit: usize,
    clock: u64,
    stats: ExecutableStats,
}

/// Compiled programs that the process keeps, unless it is told otherwise.
const LIMIT: usize = 1 << 30;

static SHARED: LazyLock<Mutex<Shared>> = LazyLock::new(|| {
    Mutex::new(Shared { table: FxHashMap::default(), limit: LIMIT, clock: 0, stats: ExecutableStats::default() })
});

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The code of a program, and whether it was there already.
pub(super) fn find_or_compile(backend: &dyn Backend, program: &Verified) -> Result<(Arc<dyn Executable>, bool)> {
    let key = (backend.name(), program.fingerprint());
    {
        let mut shared = shared();
        shared.clock += 1;
        let clock = shared.clock;
        // The hash finds it, the comparison proves it.
        if let Some(kept) = shared.table.get_mut(&key).filter(|k| k.program.computes_same(program)) {
            kept.last_used = clock;
            return Ok((kept.code.clone(), true));
        }
    }
    let code = backend.compile(program)?;
    let mut shared = shared();
    let last_used = shared.clock;
    let kept = Kept { program: program.program().clone(), code: code.clone(), last_used };
    shared.stats.bytes += code.bytes();
    if let Some(old) = shared.table.insert(key, kept) {
        shared.stats.bytes -= old.code.bytes();
    }
    shared.shrink();
    Ok((code, false))
}

impl Shared {
    fn shrink(&mut self) {
        while self.stats.bytes > self.limit && self.table.len() > 1 {
            let Some(oldest) = self.table.iter().min_by_key(|(_, k)| k.last_used).map(|(key, _)| *key) else { return };
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
