//! What becomes of LLVM when the process ends: its finalizers must not run while a thread is inside it.
//!
//! A process ends whenever it likes: `main` returns, or any thread calls `exit`, while another one loads LLVM or compiles.
//! `exit` runs what `__cxa_atexit` was told, the latest first, on the thread that called it, while all others go on. LLVM
//! tells it of a thousand globals while it is loaded and of more whenever a pass first needs them. So no handler of ours can
//! make the end wait for whoever is inside: the latest is always one of LLVM's. Nor should it wait, since a compilation may
//! take seconds.
//!
//! So the finalizers are not registered at all. LLVM is opened as what a tiny library needs, which is made here in memory
//! and has a `__cxa_atexit` that does nothing; with `RTLD_DEEPBIND` LLVM finds that one before the one of libc. Then the
//! process ends at once, in the middle of anything, and its memory goes with it: no finalizer of LLVM does more than to give
//! memory back.
//!
//! This is so on Linux with glibc. Elsewhere, and in a process that has the library already, or an allocator of its own
//! (deep binding would mix it with that of libc), LLVM is opened as any library.

use std::path::Path;

/// Opens a library, without finalizers if that can be had. The error is that of the system.
///
/// # Safety
/// Its initializers may run.
pub(super) unsafe fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    #[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: as the caller says.
    if let Some(library) = unsafe { unfinalized::open(path) } {
        return Ok(library);
    }
    // SAFETY: as the caller says.
    unsafe { libloading::Library::new(path) }
}

/// Opening a library so that it registers no finalizers.
#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod unfinalized {
    use std::ffi::{c_char, c_int, c_uint};
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, PoisonError};

    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};

    const RTLD_NOLOAD: c_int = 4;
    const RTLD_DEEPBIND: c_int = 8;

    /// None if it cannot be done: then the library is not open, or was before.
    ///
    /// # Safety
    /// Its initializers may run.
    pub unsafe fn open(path: &Path) -> Option<libloading::Library> {
        /// Those that were opened here: for them it is done.
        static OPENED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path.canonicalize().ok()?;
        // SAFETY: nothing is loaded that is not there yet.
        let there = unsafe { Library::open(Some(path.as_os_str()), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD) };
        if let Ok(there) = there {
            return opened.contains(&path).then(|| there.into());
        }
        // The loader reads a dollar in a name as a variable.
        if !has_one_allocator() || path.as_os_str().as_bytes().contains(&b'$') {
            return None;
        }
        let file = in_memory(&needing(path.as_os_str().as_bytes()))?;
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: its initializers are those of the library it needs.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) }.ok()?;
        // The loader knows libraries by their names: the file stays open, so that no other gets its number.
        std::mem::forget(file);
        opened.push(path);
        Some(library.into())
    }

    /// Whether the `malloc` that all see is that of libc. Otherwise the two would meet in deep binding: libc gives memory of the
    /// one (`strdup`), and the library frees it with the other.
    fn has_one_allocator() -> bool {
        let address = |l: &Library| {
            // SAFETY: only the address is looked at.
            unsafe { l.get::<unsafe extern "C" fn()>("malloc").ok().map(|f| *f as usize) }
        };
        // SAFETY: libc is there already.
        match unsafe { Library::open(Some("libc.so.6"), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD) } {
            Ok(libc) => address(&libc).is_some_and(|a| Some(a) == address(&Library::this())),
            Err(_) => false,
        }
    }

    /// A file that has no place but in memory.
    fn in_memory(bytes: &[u8]) -> Option<File> {
        unsafe extern "C" {
            fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
        }
        const CLOSE_ON_EXEC: c_uint = 1;
        // SAFETY: the name has an end; a number that is not negative is a file of ours.
        let mut file = unsafe {
            match memfd_create(c"gradus".as_ptr(), CLOSE_ON_EXEC) {
                ..0 => return None,
                fd => File::from_raw_fd(fd),
            }
        };
        file.write_all(bytes).ok()?;
        Some(file)
    }

    /// A library as a file: it needs the one of this path, and its `__cxa_atexit` gives 0 and does nothing.
    fn needing(path: &[u8]) -> Vec<u8> {
        #[cfg(target_arch = "x86_64")]
        const MACHINE: (u16, &[u8]) = (62, &[0x31, 0xc0, 0xc3]); // xor eax, eax; ret
        #[cfg(target_arch = "aarch64")]
        const MACHINE: (u16, &[u8]) = (183, &[0x00, 0x00, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6]); // mov w0, 0; ret
        /// The largest page there is. The headers and the code come first, then what is written to while it is loaded.
        const PAGE: u64 = 0x1_0000;
        const CODE: u64 = 0x200;
        const NAME: &[u8] = b"__cxa_atexit";
        const SYMBOLS: u64 = PAGE + 7 * 16;
        const HASH: u64 = SYMBOLS + 2 * 24;
        const TEXT: u64 = HASH + 5 * 4;
        let text = [b"\0", NAME, b"\0", path, b"\0"].concat();
        let end = TEXT + text.len() as u64;

        let mut out: Vec<u8> = Vec::new();
        macro_rules! put { ($($n:expr),* $(,)?) => { $(out.extend_from_slice(&$n.to_le_bytes());)* } }
        // The header: 64 bits, little endian, a shared object with four segments and no sections.
        out.extend_from_slice(b"\x7fELF\x02\x01\x01");
        out.resize(16, 0);
        put!(3u16, MACHINE.0, 1u32, 0u64, 64u64, 0u64, 0u32, 64u16, 56u16, 4u16, 64u16, 0u16, 0u16);
        let (read, write, run) = (4u32, 2u32, 1u32);
        let segments = [
            (1u32, read | run, 0, CODE + MACHINE.1.len() as u64, PAGE),
            (1, read | write, PAGE, end - PAGE, PAGE),
            // What the loader reads first.
            (2, read | write, PAGE, 7 * 16, 8),
            // Without this one stacks would have to be executable.
            (0x6474_e551, read | write, 0, 0, 16),
        ];
        for (kind, may, at, size, align) in segments {
            put!(kind, may, at, at, at, size, size, align);
        }
        out.resize(CODE as usize, 0);
        out.extend_from_slice(MACHINE.1);
        out.resize(PAGE as usize, 0);
        // The library it needs, then where its tables are.
        let needed = 1 + NAME.len() as u64 + 1;
        put!(1u64, needed, 4u64, HASH, 5u64, TEXT, 6u64, SYMBOLS, 10u64, text.len() as u64, 11u64, 24u64, 0u64, 0u64);
        // No symbol, and the one function: global, in some section.
        put!(0u64, 0u64, 0u64);
        put!(1u32, 0x12u8, 0u8, 1u16, CODE, MACHINE.1.len() as u64);
        // One bucket with one name.
        put!(1u32, 2u32, 1u32, 0u32, 0u32);
        out.extend_from_slice(&text);
        out
    }
}
