//! What is left of this thread's stack. Programs nest, and whatever walks over them goes down with them: a stack that ends ends the
//! process, so each step down asks here first, and gets an error instead.
//!
//! *Invariant.* Whoever goes down a level of programs or of captures (`trace::state`, `memo`, `optimize::nested`, the parser, the verifier,
//! the interpreter) has asked [`check`] on the way. The number of levels is bounded too ([`DEEPEST`]); that bound is the one users meet, and the same
//! on every machine. This is for threads whose stack is smaller than usual.

use std::cell::Cell;

use crate::error::{Result, error};

/// How deep programs nest, and captures in captures. At this depth reverse mode, which goes deepest, takes less than half of the usual stack of
/// a thread (2 MB) even in a debug build.
pub(crate) const DEEPEST: usize = 60;

/// What one level may need until the next one asks: frames of a debug build are several times as large.
const RESERVE: usize = if cfg!(debug_assertions) { 80 << 10 } else { 24 << 10 };

/// Who is not further down than this from the highest frame that asked is in no danger, and does not ask where the stack ends.
const NEAR: usize = 16 << 10;

thread_local! {
    /// The highest address of a frame that asked.
    static TOP: Cell<usize> = const { Cell::new(0) };
    /// The lowest address of the stack; 0 if nobody can say.
    static END: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Refuses to go further down where the stack of this thread is about to end.
pub(crate) fn check() -> Result<()> {
    let mark = 0_u8;
    let here = std::ptr::from_ref(&mark).addr();
    if here > TOP.get() {
        TOP.set(here);
    }
    if TOP.get() - here < NEAR {
        return Ok(());
    }
    let end = END.get().unwrap_or_else(|| {
        let found = end_of_stack(here).unwrap_or(0);
        END.set(Some(found));
        found
    });
    match here.checked_sub(end) {
        Some(left) if end != 0 && left < RESERVE => Err(error!(
            Size,
            "programs nest deeper than the stack of this thread goes: {} KB of it are left",
            left >> 10
        )
        .help(
            "run it on a thread with more stack, as in `std::thread::Builder::new().stack_size(8 << 20)`, or nest less: \
             functions that call each other one after the other take no room",
        )),
        _ => Ok(()),
    }
}

/// The lowest address of the stack that an address is on. Nothing that is safe says it but Linux's list of the memory of this process.
fn end_of_stack(here: usize) -> Option<usize> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let limits = || std::fs::read_to_string("/proc/self/limits").ok();
    lowest(&maps, here).and_then(|found| match found {
        Found::Thread(start) => Some(start),
        // The first thread's stack grows as it is used, down to a limit.
        Found::Growing(top) => top.checked_sub(most(&limits()?)?),
    })
}

#[derive(Debug, PartialEq)]
enum Found {
    /// A stack of a fixed size from this address on.
    Thread(usize),
    /// The stack of the first thread, which ends at this address.
    Growing(usize),
}

/// The stack that an address is on, in the list of a process's memory. Pieces of memory without a gap are one.
fn lowest(maps: &str, here: usize) -> Option<Found> {
    let (mut start, mut before) = (0, 0);
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        // What cannot be written (a guard) is a gap.
        if !words.next()?.starts_with("rw") {
            before = 0;
            continue;
        }
        if from != before {
            start = from;
        }
        before = to;
        if (from..to).contains(&here) {
            return Some(if line.ends_with("[stack]") { Found::Growing(to) } else { Found::Thread(start) });
        }
    }
    None
}

/// The most that the first thread's stack may grow to; none without a limit.
fn most(limits: &str) -> Option<usize> {
    let line = limits.lines().find(|l| l.starts_with("Max stack size"))?;
    line.split_ascii_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const MAPS: &str = "\
        5000-6000 r-xp 00000000 00:00 0 /bin/x\n\
        7000-8000 ---p 00000000 00:00 0\n\
        8000-a000 rw-p 00000000 00:00 0\n\
        a000-c000 rw-p 00000000 00:00 0\n\
        e000-f000 rw-p 00000000 00:00 0 [stack]\n";

    #[test]
    fn a_stack_starts_behind_its_guard() {
        assert_eq!(lowest(MAPS, 0xa100), Some(Found::Thread(0x8000)));
        assert_eq!(lowest(MAPS, 0x8000), Some(Found::Thread(0x8000)));
        assert_eq!(lowest(MAPS, 0xe800), Some(Found::Growing(0xf000)));
        assert_eq!(lowest(MAPS, 0xd000), None);
        assert_eq!(lowest("no list", 0xd000), None);
    }

    #[test]
    fn the_limit_of_the_first_thread_is_read() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax stack size            8388608              unlimited            bytes\n";
        assert_eq!(most(limits), Some(8 << 20));
        assert_eq!(most(&limits.replace("8388608", "unlimited")), None);
    }

    /// Goes down until someone says no; gives how far that was.
    #[inline(never)]
    fn down(level: usize) -> usize {
        let page = std::hint::black_box([level as u8; 1024]);
        if level > 100_000 || check().is_err() {
            return level;
        }
        down(level + 1).max(usize::from(page[0]) / 256)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_goes_down_hears_of_the_end_before_it_comes() {
        for size in [256 << 10, 1 << 20] {
            let run = std::thread::Builder::new().stack_size(size).spawn(|| (down(0), check())).unwrap();
            let (levels, after) = run.join().unwrap();
            // The system may hand out the stack of a thread that has ended, which is up to four times as large.
            assert!(levels > 20 && levels < (4 * size) >> 10, "{levels}");
            assert_eq!(after, Ok(()), "what came back is at the top again");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_error_says_the_way_out() {
        #[inline(never)]
        fn down(level: usize) -> Option<crate::Error> {
            let page = std::hint::black_box([level as u8; 1024]);
            let found = check().err();
            if found.is_some() || level > 100_000 { found } else { down(level + 1).filter(|_| page[0] == level as u8) }
        }
        let run = std::thread::Builder::new().stack_size(256 << 10).spawn(|| down(0)).unwrap();
        let e = run.join().unwrap().unwrap();
        assert_eq!(e.kind(), ErrorKind::Size);
        assert!(e.to_string().contains("stack_size"), "{e}");
    }
}
