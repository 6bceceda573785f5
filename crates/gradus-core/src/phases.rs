//! Looking in: each phase that a function goes through reports its program and its time to whoever watches.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::program::Program;

/// One phase of a function's way to numbers.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What was done: `trace`, `differentiate`, `optimize`, ...
    pub name: &'static str,
    /// What it gave, as text.
    pub text: String,
    /// Equations of the program it gave.
    pub equations: usize,
    /// Bytes of the program it gave.
    pub bytes: usize,
    /// How long it took.
    pub time: Duration,
}

impl Phase {
    /// A phase that gave programs.
    pub fn new(name: &'static str, programs: &[&Program], time: Duration) -> Phase {
        Phase {
            name,
            text: programs.iter().map(|p| p.to_string()).collect(),
            equations: programs.iter().map(|p| p.equations().len()).sum(),
            bytes: programs.iter().map(|p| p.bytes()).sum(),
            time,
        }
    }

    /// A phase that gave something else, described in words.
    pub fn described(name: &'static str, text: impl Into<String>, time: Duration) -> Phase {
        Phase { name, text: text.into(), equations: 0, bytes: 0, time }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "== {} ({:.1?}", self.name, self.time)?;
        if self.bytes > 0 {
            write!(f, ", {} equations, {} bytes", self.equations, self.bytes)?;
        }
        writeln!(f, ")")?;
        for line in self.text.lines() {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

thread_local! {
    static WATCHING: RefCell<Option<Vec<Phase>>> = const { RefCell::new(None) };
}

/// Runs a function and gives every phase that happened on this thread meanwhile.
pub fn watch<T>(f: impl FnOnce() -> T) -> (T, Vec<Phase>) {
    struct Restore(Option<Vec<Phase>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            WATCHING.set(self.0.take());
        }
    }
    let _restore = Restore(WATCHING.replace(Some(Vec::new())));
    let result = f();
    let phases = WATCHING.take().unwrap_or_default();
    (result, phases)
}

/// Reports a phase, if someone watches.
pub fn report(phase: impl FnOnce() -> Phase) {
    if WATCHING.with_borrow(Option::is_some) {
        let phase = phase();
        WATCHING.with_borrow_mut(|w| {
            if let Some(all) = w {
                all.push(phase);
            }
        });
    }
}

/// Runs a phase that gives programs, and reports it.
pub(crate) fn phase<T>(
    name: &'static str,
    programs: impl for<'a> FnOnce(&'a T) -> Vec<&'a Program>,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if WATCHING.with_borrow(Option::is_none) {
        return run();
    }
    let started = Instant::now();
    let result = run()?;
    let time = started.elapsed();
    report(|| Phase::new(name, &programs(&result), time));
    Ok(result)
}
