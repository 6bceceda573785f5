//! The programs of one function, by key, bounded in bytes: the least recently used go first.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use gradus_core::array::Form;
use gradus_core::executables::Origin;
use gradus_core::pipeline::{Optimized, Pipeline};
use gradus_core::trace::{self, Guard, Traced};
use gradus_core::{Array, Executable, Location, Program, Result, Usage, interpret};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::hot::Hot;
use super::key::{CallKey, Leaves};
use crate::arguments::Arguments;
use crate::tree::Tree;

/// A traced function, specialized to one key.
pub(crate) struct Specialization<O: Tree> {
    pub(super) key: CallKey,
    pub(super) captures: Vec<Array>,
    guards: Vec<Guard>,
    guard_program: Program,
    /// What the function returned while it was traced: the structure of every result.
    pub(super) template: O,
    pub(super) optimized: Optimized,
    executable: OnceLock<Result<Arc<dyn Executable>>>,
    last_used: AtomicU64,
    bytes: usize,
    /// Whether its key says everything: there are no guards, and no captures that may be over. Comparing it runs nothing of the user's.
    plain: bool,
    /// Whether it was counted against the function's budget.
    pub(super) admitted: AtomicBool,
    pub(super) hot: Hot,
}

/// A captured array as programs take it: they want dense inputs, and making it so once is cheaper than at every call.
fn dense(capture: Array) -> Array {
    match capture.form() {
        // Where there is no memory for that, a call will say so, or do without.
        Form::Concrete(c) if !c.is_dense() => c.try_dense().map_or(capture.clone(), Array::from),
        _ => capture,
    }
}

impl<O: Tree> Specialization<O> {
    pub(super) fn new(key: CallKey, traced: Traced, template: O, pipeline: &Pipeline) -> Result<Specialization<O>> {
        let optimized = pipeline.optimize(&traced.program)?;
        let bytes = size_of::<Self>() + key.bytes() + optimized.bytes() + traced.guard_program.bytes();
        let captures: Vec<Array> = traced.captures.into_iter().map(dense).collect();
        Ok(Specialization {
            plain: key.is_plain() && traced.guards.is_empty() && !captures.iter().any(Array::is_traced),
            key,
            captures,
            guards: traced.guards,
            guard_program: traced.guard_program,
            template,
            optimized,
            executable: OnceLock::new(),
            last_used: AtomicU64::new(0),
            bytes,
            admitted: AtomicBool::new(false),
            hot: Hot::default(),
        })
    }

    /// Whether values of an outer trace that it captured are still there.
    pub(super) fn is_alive(&self) -> bool {
        self.captures.iter().all(|a| !a.is_traced() || trace::check_alive(a, Location::unknown()).is_ok())
    }

    /// Whether what was read while tracing is the same for these arguments.
    pub(super) fn guards_hold(&self, leaves: &Leaves) -> bool {
        self.guards.is_empty() || self.failed_guard(leaves).is_none()
    }

    /// The first value that was read while tracing, if one was.
    pub(super) fn first_guard(&self) -> Option<&Guard> {
        self.guards.first()
    }

    /// The first guard that does not hold.
    pub(super) fn failed_guard(&self, leaves: &Leaves) -> Option<&Guard> {
        let first = self.guards.first()?;
        let inputs: Vec<Array> = leaves.arrays.iter().chain(&self.captures).cloned().collect();
        let values = if inputs.iter().all(Array::has_numbers) {
            interpret(&self.guard_program, &inputs)
        } else {
            // Under an outer trace the read is that trace's too: it leaves a guard there, or says it has no number.
            trace::inline(&self.guard_program, &inputs)
                .and_then(|values| values.iter().map(trace::read_guarded).collect::<Result<Vec<_>>>())
        };
        let Ok(values) = values else { return Some(first) };
        self.guards.iter().zip(&values).find(|(g, v)| !g.observed.is_identical(v)).map(|(g, _)| g)
    }

    /// Whether its code is there, or cannot be.
    pub(super) fn is_ready(&self) -> bool {
        self.executable.get().is_some()
    }

    /// The code, if it is there.
    pub(super) fn code(&self) -> Option<&Arc<dyn Executable>> {
        self.executable.get().and_then(|code| code.as_ref().ok())
    }

    /// The code, compiled at the first use. `made` is told where it came from.
    pub(super) fn executable(&self, pipeline: &Pipeline, made: impl FnOnce(Origin)) -> Result<&Arc<dyn Executable>> {
        let code = self.executable.get_or_init(|| {
            let (code, origin) = pipeline.make_ready(&self.optimized)?;
            made(origin);
            Ok(code)
        });
        code.as_ref().map_err(Clone::clone)
    }
}

pub(crate) struct Cache<O: Tree> {
    table: RwLock<Table<O>>,
    clock: AtomicU64,
    limit: usize,
}

/// Entries of one hash, the newest last. There is one as a rule, and looking at it takes no memory.
type Candidates<O> = SmallVec<[Arc<Specialization<O>>; 1]>;

struct Table<O: Tree> {
    entries: FxHashMap<u64, Candidates<O>>,
    bytes: usize,
}

impl<O: Tree> Cache<O> {
    pub(super) fn new(limit: usize) -> Cache<O> {
        Cache { table: RwLock::new(Table { entries: FxHashMap::default(), bytes: 0 }), clock: AtomicU64::new(2), limit }
    }

    /// The entry with this hash whose key `matches` and that `accept` holds for. The newest is tried first.
    pub(super) fn find(
        &self,
        hash: u64,
        matches: impl Fn(&Specialization<O>) -> bool,
        accept: impl Fn(&Specialization<O>) -> bool,
    ) -> Option<Arc<Specialization<O>>> {
        let table = self.read();
        let candidates = table.entries.get(&hash)?;
        if let [entry] = &candidates[..]
            && entry.plain
        {
            return matches(entry).then(|| {
                self.touch(entry);
                entry.clone()
            });
        }
        // Guards may run programs and even the user's code, and so may frozen values; they run with no lock held.
        let candidates = candidates.clone();
        drop(table);
        let entry = candidates.into_iter().rev().find(|e| matches(e) && accept(e))?;
        self.touch(&entry);
        Some(entry)
    }

    /// Makes an entry the one that was used last. One that is so already stays as it is: calls of one program, from many threads too, only read the clock.
    fn touch(&self, entry: &Specialization<O>) {
        if entry.last_used.load(Ordering::Relaxed) + 1 != self.clock.load(Ordering::Relaxed) {
            entry.last_used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Adds an entry; gives the number of entries dropped for it.
    pub(super) fn insert(&self, hash: u64, entry: Arc<Specialization<O>>) -> u64 {
        self.touch(&entry);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let of_hash = table.entries.entry(hash).or_default();
        // Entries whose outer trace is over can never be used again.
        let before: usize = of_hash.iter().map(|e| e.bytes).sum();
        of_hash.retain(|e| e.is_alive());
        let after: usize = of_hash.iter().map(|e| e.bytes).sum();
        of_hash.push(entry.clone());
        table.bytes = table.bytes + after + entry.bytes - before;
        let mut evicted = 0;
        while table.bytes > self.limit && evict_oldest(&mut table, &entry) {
            evicted += 1;
        }
        evicted
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Table<O>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> Vec<Arc<Specialization<O>>> {
        self.read().entries.values().flatten().cloned().collect()
    }

    pub(super) fn size(&self) -> (usize, usize) {
        let table = self.read();
        (table.entries.values().map(Candidates::len).sum(), table.bytes)
    }

    /// What the code of all entries took on its device.
    pub(super) fn usage(&self) -> Usage {
        let mut all = Usage::default();
        self.read().entries.values().flatten().filter_map(|e| e.code()).for_each(|code| all += code.usage());
        all
    }

    pub(super) fn clear(&self) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.entries.clear();
        table.bytes = 0;
    }
}

/// Entries of declared dimensions by the arguments as they come: sizes that were met before need not be compared with the declaration.
pub(crate) struct Met<O: Tree> {
    entries: RwLock<FxHashMap<u64, (CallKey, Arc<Specialization<O>>)>>,
}

/// So many are remembered.
const REMEMBERED: usize = 256;

impl<O: Tree> Met<O> {
    pub(super) fn new() -> Met<O> {
        Met { entries: RwLock::default() }
    }

    /// The entry that arguments with this hash had, if they are the same.
    pub(super) fn find<A: Arguments>(&self, hash: u64, args: A::Refs<'_>) -> Option<Arc<Specialization<O>>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let (key, entry) = entries.get(&hash)?;
        key.matches::<A>(args).then(|| entry.clone())
    }

    pub(super) fn insert(&self, hash: u64, key: CallKey, entry: Arc<Specialization<O>>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= REMEMBERED {
            entries.clear();
        }
        entries.insert(hash, (key, entry));
    }

    pub(super) fn clear(&self) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Drops the entry that was not used for the longest time, but never the one just added.
fn evict_oldest<O: Tree>(table: &mut Table<O>, keep: &Arc<Specialization<O>>) -> bool {
    let others = table.entries.iter().flat_map(|(h, list)| list.iter().map(move |e| (*h, e)));
    let oldest = others
        .filter(|(_, e)| !Arc::ptr_eq(e, keep))
        .min_by_key(|(_, e)| e.last_used.load(Ordering::Relaxed))
        .map(|(h, e)| (h, e.clone()));
    let Some((hash, oldest)) = oldest else { return false };
    if let Some(list) = table.entries.get_mut(&hash) {
        list.retain(|e| !Arc::ptr_eq(e, &oldest));
        if list.is_empty() {
            table.entries.remove(&hash);
        }
    }
    table.bytes -= oldest.bytes;
    true
}
