//! The disk cache: machine code that outlives its process. On by choice, for programs that are compiled again and again in
//! short-lived processes.
//!
//! A program is traced, optimized and lowered in every process; what is kept is what the code generators make of the lowered
//! module, under a key of everything that it depends on (`key.rs`). The code holds no addresses: functions of one module
//! refer to each other by number, and everything of this process is reached through the context of a call or by name.

mod bytes;
mod key;
mod store;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use gradus_core::warnings::{Warning, WarningKind};

use crate::error::{Result, error};

pub(crate) use bytes::{Reader, Writer};
use key::processor;
pub(crate) use key::{embedded_key, optimized_key, winner_key};
use store::{Found, Key, Store};

/// The variable that names the folder.
const FOLDER: &str = "GRADUS_CACHE_DIR";
/// The variable that bounds it, in bytes.
const LIMIT: &str = "GRADUS_CACHE_LIMIT";
/// The bound where none is given.
const DEFAULT_LIMIT: u64 = 1 << 30;

/// What the disk cache holds, and what it did for this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCacheStats {
    /// Where it is.
    pub folder: PathBuf,
    /// The most bytes that are kept.
    pub limit: u64,
    /// Entries in the folder.
    pub entries: usize,
    /// Bytes of all files in the folder.
    pub bytes: u64,
    /// Entries that this process took from it.
    pub loads: u64,
    /// Entries that this process looked for and that were not there.
    pub absent: u64,
    /// Entries that this process found and did not trust; they were removed.
    pub broken: u64,
    /// Entries that this process wrote.
    pub stores: u64,
}

#[derive(Default)]
struct Counters {
    loads: AtomicU64,
    absent: AtomicU64,
    broken: AtomicU64,
    stores: AtomicU64,
}

static COUNTERS: LazyLock<Counters> = LazyLock::new(Counters::default);
static STORE: LazyLock<RwLock<Option<Arc<Store>>>> = LazyLock::new(|| RwLock::new(from_environment()));

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn from_environment() -> Option<Arc<Store>> {
    let folder = std::env::var_os(FOLDER).filter(|f| !f.is_empty())?;
    let limit = match std::env::var(LIMIT).ok().filter(|l| !l.is_empty()) {
        None => DEFAULT_LIMIT,
        Some(text) => match text.trim().parse() {
            Ok(limit) => limit,
            Err(_) => {
                Warning::new(WarningKind::DiskCache, format!("{LIMIT} is `{text}`, which is no number of bytes"))
                    .note(format!("the bound is {DEFAULT_LIMIT} bytes"))
                    .emit();
                DEFAULT_LIMIT
            }
        },
    };
    match Store::open(Path::new(&folder), limit) {
        Ok(store) => Some(Arc::new(store)),
        Err(why) => {
            Warning::new(WarningKind::DiskCache, format!("the disk cache is off: {why}"))
                .note(format!("the folder is named by {FOLDER}"))
                .help(HELP)
                .emit();
            None
        }
    }
}

const HELP: &str = "name a folder that only you can write (`chmod 700`), or one that is not there yet";

fn current() -> Option<Arc<Store>> {
    STORE.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Keeps compiled programs in a folder, at most so many bytes: those used longest ago go first. The folder is made if it is
/// not there. One that other users can write is refused, because code from it is run.
///
/// The variables `GRADUS_CACHE_DIR` and `GRADUS_CACHE_LIMIT` do the same without a call. Programs that were compiled before
/// stay as they are.
pub fn set_disk_cache(folder: impl AsRef<Path>, limit_bytes: u64) -> Result<()> {
    let store = Store::open(folder.as_ref(), limit_bytes)
        .map_err(|why| error!(Value, "this disk cache cannot be used: {why}").help(HELP))?;
    *STORE.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(store));
    Ok(())
}

/// Uses no disk cache from now on. Files stay.
pub fn unset_disk_cache() {
    *STORE.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// What the disk cache holds; none if it is off.
pub fn disk_cache_stats() -> Option<DiskCacheStats> {
    let store = current()?;
    let fill = store.fill();
    let read = |c: &AtomicU64| c.load(Ordering::Relaxed);
    Some(DiskCacheStats {
        folder: store.folder().to_path_buf(),
        limit: store.limit(),
        entries: fill.entries,
        bytes: fill.bytes,
        loads: read(&COUNTERS.loads),
        absent: read(&COUNTERS.absent),
        broken: read(&COUNTERS.broken),
        stores: read(&COUNTERS.stores),
    })
}

/// Removes every entry of the disk cache.
pub fn clear_disk_cache() {
    if let Some(store) = current() {
        store.clear();
    }
}

/// Whether code is looked for on disk.
pub(crate) fn is_on() -> bool {
    current().is_some()
}

/// Whether there is something under a key, before the work of looking at it.
pub(crate) fn may_have(key: &Key) -> bool {
    current().is_some_and(|s| s.has(key))
}

/// The code under a key, made of the content by `open`. What cannot be opened is removed.
pub(crate) fn load<T>(key: &Key, open: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    let store = current()?;
    let content = match store.read(key) {
        Found::Whole(content) => content,
        Found::Absent => {
            count(&COUNTERS.absent);
            return None;
        }
        Found::Broken => {
            count(&COUNTERS.broken);
            return None;
        }
    };
    let opened = open(&content);
    match opened {
        Some(_) => count(&COUNTERS.loads),
        None => {
            store.remove(key);
            count(&COUNTERS.broken);
        }
    }
    opened
}

/// Puts code under a key. A disk that is full or cannot be written costs a warning, once.
pub(crate) fn store(key: &Key, content: &[u8]) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let Some(store) = current() else { return };
    match store.write(key, content) {
        Ok(()) => count(&COUNTERS.stores),
        Err(e) if !WARNED.swap(true, Ordering::Relaxed) => {
            let folder = store.folder().display();
            Warning::new(WarningKind::DiskCache, format!("compiled programs cannot be kept in {folder}: {e}"))
                .note("programs run all the same; they are compiled again in the next process")
                .emit();
        }
        Err(_) => {}
    }
}

/// What other backends keep in the same folder, under a hash of all that it depends on, the processor too. They name themselves first.
fn kept_key(depends_on: &[&[u8]]) -> Option<Key> {
    let mut hasher = blake3::Hasher::new();
    for part in [processor().ok()?.as_bytes()].iter().chain(depends_on) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    Some(hasher.finalize())
}

/// What another backend [kept](keep) under these bytes, made of the content by `open`. What cannot be opened is removed.
pub fn find_kept<T>(depends_on: &[&[u8]], open: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    if !is_on() {
        return None;
    }
    load(&kept_key(depends_on)?, open)
}

/// Keeps something of another backend, where a disk cache is on. `content` is asked for only then.
pub fn keep(depends_on: &[&[u8]], content: impl FnOnce() -> Option<Vec<u8>>) {
    if is_on()
        && let (Some(key), Some(content)) = (kept_key(depends_on), content())
    {
        store(&key, &content);
    }
}
