//! Runs machine code over the memory of a test, as the evaluator would run the module: for every code generator.

use std::ffi::c_void;

use crate::abi::{Context, KernelFn, MainFn, native_fn};
use crate::ir::Memory;

/// Bytes before and after each buffer that nothing may touch.
const GUARD: usize = 256;
const MARK: u8 = 0xA5;

native_fn! {
    fn call(context: *const Context, entry: u64, buffers: *const *mut u8) -> u64 {
        // SAFETY: `run` is the `Library` that `run_with` was given, and it outlives the run.
        let library = unsafe { &*(*context).run.cast::<&Library>() };
        library(entry, buffers)
    }
}

native_fn! {
    fn parallel(context: *const Context, kernel: KernelFn, _number: u64, env: *mut u64, count: i64) {
        // Three uneven pieces, the last one first: what depends on an order shows.
        let cuts = [0, count / 3, count - count / 4, count];
        for piece in cuts.windows(2).rev() {
            // SAFETY: machine code passes one of its kernels and its arguments.
            unsafe { kernel(context, env, piece[0], piece[1]) }
        }
    }
}

/// What answers library calls: entry, addresses of arrays; not 0 ends the run.
pub type Library<'a> = dyn Fn(u64, *const *mut u8) -> u64 + 'a;

/// Runs a main function over a memory, in which every library call fails. Gives its status, or says which buffer it wrote
/// beside.
///
/// # Safety
/// The function is machine code of a module with these buffers and sizes that stays in their bounds.
pub unsafe fn run(main: MainFn, memory: &mut Memory) -> Result<u64, String> {
    // SAFETY: the caller's promise.
    unsafe { run_with(main, memory, &|_, _| 1) }
}

/// Runs a main function with a library.
///
/// # Safety
/// As [`run`].
pub unsafe fn run_with(main: MainFn, memory: &mut Memory, library: &Library) -> Result<u64, String> {
    let mut rooms: Vec<Vec<u64>> = Vec::new();
    let mut table: Vec<*mut u8> = Vec::new();
    for (i, bytes) in memory.buffers.iter().enumerate() {
        // All alignments an element allows come up.
        let skew = i % 4 * 8;
        let mut room = vec![u64::from_ne_bytes([MARK; 8]); (2 * GUARD + skew + bytes.len()).div_ceil(8) + 8];
        let base = room.as_mut_ptr().cast::<u8>();
        let start = base.wrapping_add(base.align_offset(64) % 64 + GUARD + skew);
        // SAFETY: the room has `GUARD`, `skew`, up to 63 bytes to align, and the bytes, with `GUARD` behind them.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        table.push(start);
        rooms.push(room);
    }
    let places: Vec<(*mut u8, usize)> = table.iter().copied().zip(memory.buffers.iter().map(Vec::len)).collect();
    let context = Context {
        buffers: table.as_mut_ptr(),
        sizes: memory.sizes.as_ptr(),
        call,
        parallel,
        special: crate::runtime::special::FUNCTIONS,
        run: std::ptr::from_ref(&library).cast::<c_void>(),
    };
    // SAFETY: the caller's promise; the context and all it points to live until the end of this function.
    let status = unsafe { main(&context) };
    for (i, (start, len)) in places.iter().enumerate() {
        for k in 0..GUARD {
            // SAFETY: both guards are inside the room.
            let (before, after) = unsafe { (*start.sub(GUARD - k), *start.add(len + k)) };
            if before != MARK || after != MARK {
                return Err(format!("something is written beside buffer {i}"));
            }
        }
    }
    for (bytes, start) in memory.buffers.iter_mut().zip(&table) {
        // SAFETY: a table entry is one of the places, in the end perhaps another one; its length is that of the place.
        let len = places.iter().find(|p| p.0 == *start).map_or(0, |p| p.1);
        *bytes = unsafe { std::slice::from_raw_parts(*start, len) }.to_vec();
    }
    Ok(status)
}
