//! When work is worth more than one thread: the one place that decides it.
//!
//! Work is counted in nanoseconds of one thread, as the lowering guesses them for each operation. Waking another thread takes some ten thousand of them.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use crate::size::Size;

/// What a loop does, as far as threads gain by sharing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It computes.
    Arithmetic,
    /// It moves memory, which threads share too.
    Moving,
}

impl Doing {
    /// A loop that takes longer than so many nanoseconds is offered to other threads.
    fn worth(self) -> f32 {
        match self {
            Doing::Arithmetic => 40_000.0,
            Doing::Moving => 100_000.0,
        }
    }
}

/// A loop whose size is known only when it runs is shared if it takes longer than this. The guess counts vectors of single floats as four times what they take,
/// and nothing else evens that out here.
const WORTH_AT_RUN_TIME: f32 = 200_000.0;

/// One thread that goes through memory once is better than several that go twice, up to so many nanoseconds.
const WORTH_A_SECOND_PASS: f32 = 500_000.0;

/// A product of matrices with as many multiplications is shared.
const WORTH_A_PRODUCT: usize = 1 << 20;

/// How many points a kernel has, and about how many nanoseconds each takes.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    points: Size,
    each: f32,
    doing: Option<Doing>,
}

impl Work {
    /// What one thread does.
    pub fn alone() -> Work {
        Work { points: Size::ZERO, each: 0.0, doing: None }
    }

    /// The points of a loop that threads may share.
    pub fn shared(points: Size, each: f32, doing: Doing) -> Work {
        Work { points, each, doing: Some(doing) }
    }

    /// Whether threads share it, or may do so when its size is known.
    pub fn is_shared(&self) -> bool {
        let Some(doing) = self.doing else { return false };
        self.points.constant().is_none_or(|n| n as f32 * self.each > doing.worth())
    }

    /// Whether one thread does it after all, now that sizes are known. Where they were known before, so was this when code was made.
    pub fn is_little(&self, sizes: &[i64]) -> bool {
        self.points.constant().is_none() && self.points.in_table(sizes) as f32 * self.each <= WORTH_AT_RUN_TIME
    }
}

/// Whether work of so many nanoseconds stays with one thread if it then goes through memory once and not twice. `threads`: whether there may be others.
pub fn is_for_one(nanoseconds: f32, threads: bool) -> bool {
    static ONE_CORE: LazyLock<bool> = LazyLock::new(|| available_parallelism().is_ok_and(|n| n.get() == 1));
    nanoseconds <= WORTH_A_SECOND_PASS || !threads || *ONE_CORE
}

/// Whether threads share a product of an m x k and a k x n matrix.
pub fn shares_product(m: usize, n: usize, k: usize) -> bool {
    m.saturating_mul(n).saturating_mul(k) >= WORTH_A_PRODUCT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_work_stays_on_one_thread() {
        let of = |n: i64, doing| Work::shared(Size::from(n), 1.0, doing).is_shared();
        assert!(of(50_000, Doing::Arithmetic) && !of(30_000, Doing::Arithmetic));
        assert!(of(200_000, Doing::Moving) && !of(50_000, Doing::Moving));
        assert!(!Work::alone().is_shared());
        assert!(shares_product(128, 128, 64) && !shares_product(128, 128, 63));
        assert!(shares_product(usize::MAX, 2, 2));
    }
}
