//! Kernels over all cores: one pool for the process, and pieces whose borders depend on the work alone.

use rayon::prelude::*;

use super::Run;
use crate::abi::{Context, KernelFn, native_fn};

/// Pieces for each thread: enough to even out, few enough to cost nothing.
const PIECES: i64 = 4;
/// Pieces begin at multiples of this, so that vectors stay whole and neighbours do not share cache lines.
const BORDER: i64 = 64;

struct Arguments(*const Context, *mut u64);
// SAFETY: machine code reads the context and the inputs in `env`; a parallel kernel writes neither.
unsafe impl Sync for Arguments {}

native_fn! {
    /// Runs a kernel's iterations `0..count` on all threads.
    ///
    /// # Safety
    /// `kernel` is machine code of a parallel kernel; `ctx` and `env` are what it was made for, and `run` of `ctx` is a [`Run`].
    pub fn parallel(ctx: *const Context, kernel: KernelFn, index: u64, env: *mut u64, count: i64) {
        // SAFETY: the context of a run has the run; the rest is passed on.
        unsafe {
            let run: &Run<'_> = &*(*ctx).run.cast();
            if run.serial.get(index as usize).is_some_and(|serial| *serial) {
                return kernel(ctx, env, 0, count);
            }
            split(ctx, kernel, env, count);
        }
    }
}

/// How many pieces of a size make up a count.
fn pieces_of(count: i64, size: i64) -> i64 {
    (count + size - 1) / size
}

unsafe fn split(ctx: *const Context, kernel: KernelFn, env: *mut u64, count: i64) {
    let threads = rayon::current_num_threads() as i64;
    if threads <= 1 || count <= 1 {
        // SAFETY: all iterations, once.
        return unsafe { kernel(ctx, env, 0, count) };
    }
    let mut piece = pieces_of(count, threads * PIECES).max(1);
    if piece > BORDER {
        piece = (piece + BORDER - 1) / BORDER * BORDER;
    }
    let shared = Arguments(ctx, env);
    let shared = &shared;
    (0..pieces_of(count, piece)).into_par_iter().for_each(move |i| {
        let Arguments(ctx, env) = shared;
        // SAFETY: pieces are disjoint, and iterations of a parallel kernel are independent.
        unsafe { kernel(*ctx, *env, i * piece, ((i + 1) * piece).min(count)) }
    });
}
