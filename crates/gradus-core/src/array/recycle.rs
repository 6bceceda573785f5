//! Memory of dropped results, kept for the next results of the same size: pages that are already there need not be asked
//! of the system, and filled with zeros, once more in every call.
//!
//! Each thread keeps its own, so nothing is locked. A buffer is kept only if a result of its dtype and size was wanted on this
//! thread before; at most [`MOST_BYTES`] and [`MOST_BUFFERS`] are kept, the oldest go first, and all of them go with the thread.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::types::{DType, Data, Element};

/// What is smaller stays with the allocator, which is as fast.
const LARGE: usize = 64 << 10;
const MOST_BYTES: usize = 256 << 20;
const MOST_BUFFERS: usize = 16;
/// How many dtypes and sizes are remembered as wanted.
const MOST_WANTED: usize = 16;

#[derive(Default)]
struct Kept {
    /// Oldest first.
    buffers: VecDeque<Data>,
    bytes: usize,
    wanted: VecDeque<(DType, usize)>,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

fn bytes(dtype: DType, len: usize) -> usize {
    len.saturating_mul(dtype.size())
}

/// A vector of `len` elements that a dropped array has left on this thread. What they are does not matter: all of them are to
/// be written.
pub fn recycled<T: Element>(len: usize) -> Option<Vec<T>> {
    if bytes(T::DTYPE, len) < LARGE {
        return None;
    }
    let found = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        let size = (T::DTYPE, len);
        let at = kept.buffers.iter().rposition(|b| (b.dtype(), b.len()) == size);
        if at.is_none() && !kept.wanted.contains(&size) {
            kept.wanted.truncate(MOST_WANTED - 1);
            kept.wanted.push_front(size);
        }
        let mut data = kept.buffers.remove(at?)?;
        kept.bytes -= bytes(T::DTYPE, len);
        T::vec_mut(&mut data).map(std::mem::take)
    });
    found.ok().flatten()
}

/// Bytes that this thread keeps.
#[cfg(test)]
fn kept_bytes() -> usize {
    KEPT.with(|kept| kept.borrow().bytes)
}

impl Drop for Data {
    fn drop(&mut self) {
        let (dtype, len) = (self.dtype(), self.len());
        let size = bytes(dtype, len);
        if !(LARGE..=MOST_BYTES).contains(&size) {
            return;
        }
        // Neither in the end of a thread nor while the list itself lets go of a buffer: then it is freed.
        let _ = KEPT.try_with(|kept| {
            let Ok(mut kept) = kept.try_borrow_mut() else { return };
            if !kept.wanted.contains(&(dtype, len)) {
                return;
            }
            while kept.bytes + size > MOST_BYTES || kept.buffers.len() >= MOST_BUFFERS {
                let Some(oldest) = kept.buffers.pop_front() else { break };
                kept.bytes -= bytes(oldest.dtype(), oldest.len());
            }
            kept.bytes += size;
            kept.buffers.push_back(std::mem::replace(self, Data::Bool(Vec::new())));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each in a thread of its own, whose list is empty.
    fn alone(f: impl FnOnce() + Send + 'static) {
        std::thread::spawn(f).join().unwrap();
    }

    #[test]
    fn a_dropped_buffer_comes_back_if_its_size_was_wanted() {
        alone(|| {
            let n = LARGE;
            drop(Data::F32(vec![1.0; n]));
            assert_eq!(kept_bytes(), 0, "nobody asked for it");
            assert!(recycled::<f32>(n).is_none());
            let values = vec![1.0f32; n];
            let place = values.as_ptr();
            drop(Data::F32(values));
            assert_eq!(kept_bytes(), 4 * n);
            assert!(recycled::<f32>(n + 1).is_none());
            assert!(recycled::<i32>(n).is_none());
            let again = recycled::<f32>(n).unwrap();
            assert_eq!((again.as_ptr(), again.len(), kept_bytes()), (place, n, 0));
        });
    }

    #[test]
    fn small_buffers_are_left_to_the_allocator() {
        alone(|| {
            assert!(recycled::<u8>(LARGE - 1).is_none());
            drop(Data::U8(vec![0; LARGE - 1]));
            assert_eq!(kept_bytes(), 0);
        });
    }

    #[test]
    fn what_is_kept_is_bounded() {
        alone(|| {
            for n in [LARGE, LARGE + 1] {
                assert!(recycled::<u8>(n).is_none());
                (0..100).for_each(|_| drop(Data::U8(vec![0; n])));
            }
            assert_eq!(kept_bytes(), MOST_BUFFERS * (LARGE + 1), "the oldest went first");
            let large = MOST_BYTES / 2 + 1;
            assert!(recycled::<u8>(large).is_none());
            (0..3).for_each(|_| drop(Data::U8(vec![0; large])));
            assert!((large..=MOST_BYTES).contains(&kept_bytes()));
            assert!(recycled::<u8>(MOST_BYTES + 1).is_none());
            drop(Data::U8(vec![0; MOST_BYTES + 1]));
            assert!(kept_bytes() <= MOST_BYTES);
        });
    }
}
