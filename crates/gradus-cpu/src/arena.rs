//! Scratch memory of calls: a block that a call takes and gives back, so that its pages are there at the next call.
//!
//! A thread keeps one block of up to [`OWN`] bytes. Larger ones are shared by all threads, under a policy that users can set ([`limit_scratch`]): together at
//! most a bound; a call takes none that is more than twice what it needs; and one that nobody took for [`IDLE`] goes back to the system. A thread
//! sees to that, which is there only while such a block is kept.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Result, error};
use crate::pages::prefer_large;

const ALIGN: usize = 64;
/// What begins where a block may: the address of a block without bytes.
#[repr(align(64))]
struct Line;
/// What each thread keeps for itself.
const OWN: usize = 256 << 20;
/// How long a larger block waits for the next call.
const IDLE: Duration = Duration::from_secs(10);
/// The variable that bounds larger blocks, in bytes.
const LIMIT: &str = "GRADUS_SCRATCH_LIMIT";
/// The bound where the size of the memory is not to be learned.
const DEFAULT_LIMIT: usize = 4 << 30;

/// A block of scratch memory.
pub(crate) struct Arena {
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: whoever has it is alone with its memory.
unsafe impl Send for Arena {}

thread_local! {
    /// A call takes it and puts it back; a call inside of that call finds none and makes one for itself.
    static OWNED: Cell<Option<Arena>> = const { Cell::new(None) };
}

impl Arena {
    /// A block of at least so many bytes, whatever is in it.
    pub(crate) fn take(bytes: usize) -> Result<Arena> {
        if bytes == 0 {
            return Ok(Arena { memory: NonNull::<Line>::dangling().cast(), bytes: 0 });
        }
        if bytes > OWN {
            return shared().take(bytes).map_or_else(|| Arena::new(bytes), Ok);
        }
        match OWNED.take() {
            Some(arena) if arena.bytes >= bytes => Ok(arena),
            _ => Arena::new(bytes),
        }
    }

    pub(crate) fn new(bytes: usize) -> Result<Arena> {
        let bytes = bytes.max(4096);
        let no_room = || error!(Size, "there is no memory for a scratch arena of {bytes} bytes");
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| no_room())?;
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { std::alloc::alloc(layout) }).ok_or_else(no_room)?;
        prefer_large(memory.as_ptr(), bytes);
        Ok(Arena { memory, bytes })
    }

    /// An address inside.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.bytes);
        // SAFETY: the plan's offsets lie inside the arena.
        unsafe { self.memory.as_ptr().add(offset) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps it for the next call, if the policy lets it.
    pub(crate) fn put_back(self) {
        match self.bytes {
            0 => {}
            1..=OWN => OWNED.set(Some(self)),
            _ => keep(self),
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if let Ok(layout) = Layout::from_size_align(self.bytes, ALIGN) {
            // SAFETY: allocated with this layout.
            unsafe { std::alloc::dealloc(self.memory.as_ptr(), layout) };
        }
    }
}

/// The large blocks that no call uses, those that wait longest first.
#[derive(Default)]
struct Shared {
    waiting: Vec<(Arena, Instant)>,
    limit: usize,
    /// Whether a thread looks after them.
    watched: bool,
}

static SHARED: LazyLock<Mutex<Shared>> =
    LazyLock::new(|| Mutex::new(Shared { limit: limit_from_environment(), ..Shared::default() }));

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The smallest block that is large enough, if it is not too large.
    fn take(&mut self, bytes: usize) -> Option<Arena> {
        let fits = |(a, _): &&(Arena, Instant)| (bytes..=bytes.saturating_mul(2)).contains(&a.bytes);
        let least = self.waiting.iter().filter(fits).map(|(a, _)| a.bytes).min()?;
        let at = self.waiting.iter().rposition(|(a, _)| a.bytes == least)?;
        Some(self.waiting.remove(at).0)
    }

    fn bytes(&self) -> usize {
        self.waiting.iter().map(|(a, _)| a.bytes).sum()
    }

    /// Takes out what is beyond the bound, so that it can be freed without the lock.
    fn beyond(&mut self) -> Vec<Arena> {
        let mut out = Vec::new();
        while self.bytes() > self.limit && !self.waiting.is_empty() {
            out.push(self.waiting.remove(0).0);
        }
        out
    }

    /// Takes out what waited too long, and says when the next will have.
    fn idle(&mut self, now: Instant) -> (Vec<Arena>, Option<Instant>) {
        let old = self.waiting.iter().take_while(|(_, since)| *since + IDLE <= now).count();
        let out = self.waiting.drain(..old).map(|(a, _)| a).collect();
        (out, self.waiting.first().map(|(_, since)| *since + IDLE))
    }
}

/// Keeps a large block for the next call that wants one, if there is room for it and someone to look after it.
fn keep(arena: Arena) {
    let mut all = shared();
    if arena.bytes > all.limit {
        return;
    }
    if !all.watched {
        all.watched = std::thread::Builder::new().name("gradus scratch".into()).spawn(watch).is_ok();
    }
    if all.watched {
        all.waiting.push((arena, Instant::now()));
    }
    let beyond = all.beyond();
    drop(all);
    drop(beyond);
}

/// Frees blocks when they have waited too long, and ends with the last of them.
fn watch() {
    loop {
        let mut all = shared();
        let now = Instant::now();
        let (out, next) = all.idle(now);
        all.watched = next.is_some();
        drop(all);
        drop(out);
        match next {
            Some(next) => std::thread::sleep(next.saturating_duration_since(now)),
            None => return,
        }
    }
}

/// Bounds the scratch memory that waits between calls in blocks of more than 256 MiB, for all threads together. With zero every such block goes back
/// to the system after its call; what is smaller each thread keeps for itself.
///
/// Without this, and without the variable `GRADUS_SCRATCH_LIMIT`, it is a quarter of the memory of the machine, or of what the process may use of it. A block that
/// no call took for ten seconds goes back in any case.
pub fn limit_scratch(bytes: usize) {
    let mut all = shared();
    all.limit = bytes;
    let beyond = all.beyond();
    drop(all);
    drop(beyond);
}

/// Gives back the scratch memory that waits for calls: large blocks of all threads, and what this thread keeps for itself.
pub fn release_scratch() {
    drop(OWNED.take());
    let waiting = std::mem::take(&mut shared().waiting);
    drop(waiting);
}

/// Bytes of scratch memory that wait for calls: large blocks of all threads, and what this thread keeps for itself.
pub fn kept_scratch() -> usize {
    let own = OWNED.take();
    let bytes = own.as_ref().map_or(0, Arena::bytes);
    OWNED.set(own);
    bytes + shared().bytes()
}

/// The bound that the variable says; what is no number says nothing.
fn limit_from_environment() -> usize {
    let said = std::env::var(LIMIT).ok().and_then(|text| text.trim().parse().ok());
    said.or_else(|| memory().map(|bytes| bytes / 4)).unwrap_or(DEFAULT_LIMIT)
}

/// How much memory the process may use, as far as the system says.
fn memory() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<usize>().ok()?.checked_mul(1024)
    });
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    [machine, group].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize) -> Arena {
        Arena::new(bytes).unwrap()
    }

    fn sizes(all: &Shared) -> Vec<usize> {
        all.waiting.iter().map(|(a, _)| a.bytes).collect()
    }

    #[test]
    fn a_call_takes_the_smallest_block_that_is_not_too_large() {
        let now = Instant::now();
        let mut all = Shared { limit: usize::MAX, ..Shared::default() };
        all.waiting.extend([9000, 30000, 10000].map(|n| (block(n), now)));
        assert!(all.take(4096).is_none(), "more than twice as much");
        assert_eq!(all.take(8000).map(|a| a.bytes), Some(9000));
        assert_eq!(all.take(8000).map(|a| a.bytes), Some(10000));
        assert!(all.take(8000).is_none());
        assert_eq!(sizes(&all), [30000]);
    }

    #[test]
    fn nothing_takes_no_memory() {
        let kept = std::thread::spawn(|| {
            let nothing = Arena::take(0).unwrap();
            assert_eq!((nothing.bytes(), nothing.at(0).addr() % ALIGN), (0, 0));
            nothing.put_back();
            OWNED.take().is_some()
        });
        assert!(!kept.join().unwrap());
    }

    #[test]
    fn what_is_beyond_the_bound_goes_oldest_first() {
        let now = Instant::now();
        let mut all = Shared { limit: 15000, ..Shared::default() };
        all.waiting.extend([9000, 8000, 7000].map(|n| (block(n), now)));
        assert_eq!(all.beyond().len(), 1);
        assert_eq!(sizes(&all), [8000, 7000]);
        all.limit = 0;
        assert_eq!((all.beyond().len(), all.bytes()), (2, 0));
    }

    #[test]
    fn what_waits_too_long_goes() {
        let now = Instant::now();
        let mut all = Shared { limit: usize::MAX, ..Shared::default() };
        all.waiting.extend([(block(9000), now), (block(8000), now + IDLE / 2)]);
        assert_eq!(all.idle(now + IDLE / 4).1, Some(now + IDLE));
        let (out, next) = all.idle(now + IDLE);
        assert_eq!((out.len(), next), (1, Some(now + IDLE / 2 + IDLE)));
        assert_eq!((all.idle(now + IDLE * 2).1, all.bytes()), (None, 0));
    }

    #[test]
    fn the_memory_of_the_machine_is_known() {
        assert!(!cfg!(target_os = "linux") || memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
