//! Effects of a run that is made once more: what was shown is not shown again, and what the host gave is given again from
//! notes. So a program can be run a second time, to be compared with the first, and the world sees one run.

use std::cell::RefCell;

use super::{Host, Kind};
use crate::array::Array;
use crate::error::{Result, error};

/// A call of the host: what it was given, and what it gave.
#[derive(Clone, Debug)]
pub struct Event {
    pub(crate) kind: Kind,
    host: u64,
    /// What it was called with.
    pub(crate) operands: Vec<Array>,
    results: Vec<Array>,
}

impl Event {
    /// Whether two notes are of one call.
    pub(crate) fn is_like(&self, other: &Event) -> bool {
        self.kind == other.kind && self.host == other.host && self.operands.len() == other.operands.len()
    }
}

#[derive(Default)]
enum Mode {
    /// The host is called.
    #[default]
    Live,
    /// The host is called, and notes are made.
    Noting(Vec<Event>),
    /// Notes are read: those of one run, and what this one would have called.
    Reading { given: Vec<Event>, next: usize, called: Vec<Event> },
}

thread_local! {
    static MODE: RefCell<Mode> = const { RefCell::new(Mode::Live) };
}

/// Runs a function in a mode; gives the mode as it is afterwards.
fn within<T>(mode: Mode, f: impl FnOnce() -> T) -> (T, Mode) {
    /// Puts the mode before back even if the function panics.
    struct Restore(Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            MODE.set(std::mem::take(&mut self.0));
        }
    }
    let restore = Restore(MODE.replace(mode));
    let out = f();
    let after = MODE.take();
    drop(restore);
    (out, after)
}

/// Runs a function and makes notes of its calls of the host.
pub(crate) fn noted<T>(f: impl FnOnce() -> T) -> (T, Vec<Event>) {
    match within(Mode::Noting(Vec::new()), f) {
        (out, Mode::Noting(events)) => (out, events),
        (out, _) => (out, Vec::new()),
    }
}

/// Runs a function without its effects: the host's answers come from notes. Gives what it would have called.
pub(crate) fn replayed<T>(given: &[Event], f: impl FnOnce() -> T) -> (T, Vec<Event>) {
    match within(Mode::Reading { given: given.to_vec(), next: 0, called: Vec::new() }, f) {
        (out, Mode::Reading { called, .. }) => (out, called),
        (out, _) => (out, Vec::new()),
    }
}

/// Runs a function of the host: what it does is its own business, and no part of any run.
pub(super) fn aside<T>(f: impl FnOnce() -> T) -> T {
    within(Mode::Live, f).0
}

/// What stands for a call of the host in a run without effects; nothing if the host is to be called.
pub(super) fn instead(kind: Kind, host: &Host, operands: &[Array]) -> Option<Result<Vec<Array>>> {
    MODE.with_borrow_mut(|mode| {
        let Mode::Reading { given, next, called } = mode else { return None };
        let event = |results| Event { kind, host: host.id(), operands: operands.to_vec(), results };
        match kind {
            // It may be repeated: that is what pure means.
            Kind::Pure => None,
            // It held in the run that is repeated, or there would be nothing to compare.
            Kind::Check => Some(Ok(Vec::new())),
            Kind::Debug => {
                called.push(event(Vec::new()));
                Some(Ok(Vec::new()))
            }
            Kind::Io => {
                let mut rest = given.iter().enumerate().skip(*next);
                let Some((at, found)) = rest.find(|(_, e)| e.kind == Kind::Io).filter(|(_, e)| e.host == host.id())
                else {
                    return Some(Err(error!(Mismatch, "`{}` was not called in this order", kind.name())));
                };
                *next = at + 1;
                called.push(event(found.results.clone()));
                Some(Ok(found.results.clone()))
            }
        }
    })
}

/// Makes a note of a call, where notes are made.
pub(super) fn note(kind: Kind, host: &Host, operands: &[Array], results: &[Array]) {
    MODE.with_borrow_mut(|mode| {
        if let Mode::Noting(events) = mode
            && matches!(kind, Kind::Debug | Kind::Io)
        {
            let (operands, results) = (operands.to_vec(), results.to_vec());
            events.push(Event { kind, host: host.id(), operands, results });
        }
    });
}
