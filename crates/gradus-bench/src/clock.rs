//! Two clocks: the one on the wall, and that of the cores which this process keeps busy. On a machine that others use the
//! second says what a call costs; beside the first it says how many threads worked, or waited by turning round.

use std::time::Instant;

/// Nanoseconds of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// From its start to its end.
    pub wall: f64,
    /// Of all cores together.
    pub cpu: f64,
}

/// Both clocks from a moment on.
pub struct Started {
    wall: Instant,
    cpu: f64,
}

impl Started {
    /// From now on.
    pub fn now() -> Started {
        Started { cpu: cpu(), wall: Instant::now() }
    }

    /// What one of so many calls took until now.
    pub fn each(&self, calls: u64) -> Taken {
        let wall = self.wall.elapsed().as_nanos() as f64;
        Taken { wall: wall / calls as f64, cpu: (cpu() - self.cpu) / calls as f64 }
    }
}

/// Nanoseconds that all threads of this process have run for; 0 where there is no such clock.
fn cpu() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a `timespec` of this function, which the call writes and does not keep.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    if answer == 0 { time.tv_sec as f64 * 1e9 + time.tv_nsec as f64 } else { 0.0 }
}

/// What one of so many runs takes.
pub fn timed(reps: u64, mut run: impl FnMut()) -> Taken {
    let started = Started::now();
    for _ in 0..reps {
        run();
    }
    started.each(reps)
}

#[cfg(test)]
mod tests {
    use super::Started;
    use std::time::{Duration, Instant};

    #[test]
    fn threads_are_counted() {
        let started = Started::now();
        let turn = || {
            let until = Instant::now() + Duration::from_millis(30);
            while Instant::now() < until {}
        };
        std::thread::scope(|s| {
            s.spawn(turn);
            s.spawn(turn);
        });
        assert!(started.each(1).cpu > 1e6);
    }
}
