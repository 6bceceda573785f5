//! Large pages for large memory: with pages of 4 KiB an array of megabytes takes thousands of faults at its first use, and more entries than the
//! processor keeps whenever its places are met out of order.

/// A large page, of those that the system makes by itself.
const LARGE: usize = 2 << 20;
/// Less memory than this is not worth asking for: what is left over at its ends is most of it.
const LEAST: usize = 2 * LARGE;

/// Asks for large pages in memory that is there and new; whether they come is the system's business, and nothing else changes.
pub(crate) fn prefer_large(memory: *mut u8, bytes: usize) {
    if bytes >= LEAST {
        ask(memory, bytes);
    }
}

#[cfg(target_os = "linux")]
fn ask(memory: *mut u8, bytes: usize) {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    /// `MADV_HUGEPAGE` of `linux/mman.h`, on every processor.
    const HUGE_PAGES: c_int = 14;
    let from = memory.addr().next_multiple_of(LARGE) - memory.addr();
    let whole = (bytes - from) / LARGE * LARGE;
    // SAFETY: pages that lie inside the memory as a whole; the advice changes nothing that is in them.
    unsafe { madvise(memory.add(from).cast(), whole, HUGE_PAGES) };
}

#[cfg(not(target_os = "linux"))]
fn ask(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_what_is_in_it() {
        for bytes in [0, 1, LARGE, LEAST - 1, LEAST, LEAST + 1, 5 * LARGE + 4097] {
            let mut memory: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            prefer_large(memory.as_mut_ptr(), bytes);
            assert!(memory.iter().enumerate().all(|(i, b)| usize::from(*b) == i % 251), "{bytes}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn large_memory_is_marked_in_the_system_s_list() {
        let bytes = 16 * LARGE;
        let mut memory: Vec<u8> = Vec::with_capacity(bytes);
        prefer_large(memory.as_mut_ptr(), bytes);
        let middle = memory.as_ptr().addr() + bytes / 2;
        // A range of the list begins with its addresses; its flags say `hg` where large pages are asked for.
        let list = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        let flags = list.lines().find_map(|line| {
            let range = line.split_whitespace().next().and_then(|r| r.split_once('-'));
            let range =
                range.and_then(|(a, b)| Some(usize::from_str_radix(a, 16).ok()?..usize::from_str_radix(b, 16).ok()?));
            if let Some(range) = range {
                inside = range.contains(&middle);
            }
            line.strip_prefix("VmFlags:").filter(|_| inside)
        });
        let known = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert!(!known || flags.is_some_and(|f| f.split_whitespace().any(|f| f == "hg")), "{flags:?}");
    }
}
