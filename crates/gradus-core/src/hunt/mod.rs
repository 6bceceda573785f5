//! Hunting for the first operation that makes a NaN or an infinity, forward or backward.
//!
//! There are two ways to look. Operations that run one by one, as arrays are computed with or a program is interpreted, are
//! looked at as they run, while [`hunting`] says so. A program that is compiled gets a check behind each operation
//! ([`instrument`]), an effect like any other: so it works wherever effects do, in loops and branches and on every backend.

mod report;

use std::cell::Cell;
use std::sync::OnceLock;

use crate::array::Array;
use crate::error::{Error, ErrorKind, Location, Result};
use crate::optimize::{Made, Nested, equations};
use crate::primitives::control::{Call, CustomLinear, Name, StopGradient};
use crate::primitives::convert::Bitcast;
use crate::primitives::effects::{Callback, Host, Kind};
use crate::primitives::elementwise::Select;
use crate::primitives::shaping::{Concatenate, Slice, is_view};
use crate::primitives::{NotFinite, Op, Types};
use crate::program::{Atom, Program};
use crate::types::Type;

/// What is hunted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hunt {
    /// Nothing.
    #[default]
    Off,
    /// The first NaN that was not there before.
    Nan,
    /// The first NaN that was not there before, or infinity out of finite numbers.
    NanAndInf,
}

impl Hunt {
    /// What the environment variable `GRADUS_HUNT` asks for: `nan`, `inf` (both), or `off`. Asked once.
    pub fn of_environment() -> Hunt {
        static ASKED: OnceLock<Hunt> = OnceLock::new();
        *ASKED.get_or_init(|| match std::env::var("GRADUS_HUNT").as_deref() {
            Ok("nan") => Hunt::Nan,
            Ok("inf") => Hunt::NanAndInf,
            _ => Hunt::Off,
        })
    }

    /// Whether anything is hunted for.
    #[inline]
    pub fn is_on(self) -> bool {
        self != Hunt::Off
    }
}

thread_local! {
    static ACTIVE: Cell<Option<Hunt>> = const { Cell::new(None) };
}

/// What operations that run on this thread now are looked at for.
#[inline]
pub fn active() -> Hunt {
    ACTIVE.get().unwrap_or_else(Hunt::of_environment)
}

/// Runs a function, and looks at every operation that runs meanwhile.
pub fn hunting<T>(hunt: Hunt, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Hunt>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ACTIVE.set(self.0);
        }
    }
    let _restore = Restore(ACTIVE.replace(Some(hunt)));
    f()
}

/// Looks at an operation that ran: an error if it made what is hunted for.
pub(crate) fn look_at(op: &Op, place: Location, inputs: &[Array], outputs: &[Array]) -> Result<()> {
    let hunt = active();
    if hunt.is_on() && is_watched(op) { examine(hunt, Subject::of(op, place), inputs, outputs) } else { Ok(()) }
}

/// Whether an operation can make what was not there. Those that only move numbers cannot, those that hold programs are looked
/// into, and reading bits as a number is no arithmetic.
fn is_watched(op: &Op) -> bool {
    let moves = is_view(op) || op.is::<Slice>() || op.is::<Concatenate>() || op.is::<Select>();
    let marks = op.is::<Name>() || op.is::<StopGradient>() || op.is::<Bitcast>();
    !moves && !marks && !op.holds_programs()
}

/// The operation that is looked at.
#[derive(Clone, Copy, Debug)]
struct Subject {
    name: &'static str,
    not_finite: Option<NotFinite>,
    /// A number that it takes well.
    safe: &'static str,
    place: Location,
    /// Whether an element of its result is made of the same element of each operand.
    by_element: bool,
}

impl Subject {
    fn of(op: &Op, place: Location) -> Subject {
        let limits = op.limits();
        let (name, by_element) = (op.name(), op.is_elementwise());
        Subject { name, not_finite: limits.not_finite, safe: limits.safe, place, by_element }
    }
}

/// The program with a check behind each operation that can make a NaN or an infinity, in nested programs too. It must not be
/// transformed any more: the checks are of this program's operations.
pub fn instrument(program: &Program, hunt: Hunt) -> Result<Program> {
    if !hunt.is_on() {
        return Ok(program.clone());
    }
    Nested::run(program, &|p, nested| {
        equations(p, &mut |b, e, operands| {
            // The map behind a user's backward pass is found by transposing it, which checks inside would forbid.
            let linear = e.op().downcast::<CustomLinear>().and_then(|custom| custom.forward().ok());
            let op = match linear {
                Some(program) => Op::new(Call { program: nested.of(&program)? }),
                None => nested.op(e.op())?,
            };
            let types: Types = e.results().map(|r| p.ty(r).clone()).collect();
            let inexact = types.iter().any(|t: &Type| t.dtype().is_inexact());
            let results: Vec<Atom> = b.push(op, operands, types, e.place())?.results().map(Atom::from).collect();
            if inexact && is_watched(e.op()) {
                let (subject, count) = (Subject::of(e.op(), e.place()), operands.len());
                let host = Host::new(e.place(), move |values| {
                    examine(hunt, subject, &values[..count], &values[count..]).map(|()| Vec::new())
                });
                let taken: Vec<Atom> = operands.iter().chain(&results).copied().collect();
                b.push(Op::new(Callback::watching(Kind::Check, host)), &taken, Types::new(), e.place())?;
            }
            Ok(Made::There(results))
        })
    })
}

/// What a number is to a hunter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Finite,
    Infinite,
    Nan,
}

/// The worst number of some operands, or the number of each place if one is asked for.
fn worst(operands: &[report::Seen], at: Option<usize>) -> Class {
    let class = |s: &report::Seen| at.map_or(s.worst(), |i| s.class_at(i));
    operands.iter().map(class).max().unwrap_or(Class::Finite)
}

/// An error if a result has what is hunted for and the operands it is made of do not explain it: a NaN where there was none, an
/// infinity out of finite numbers.
fn examine(hunt: Hunt, subject: Subject, inputs: &[Array], outputs: &[Array]) -> Result<()> {
    let made = |result: Class, from: Class| match result {
        Class::Finite => false,
        Class::Nan => from != Class::Nan,
        Class::Infinite => hunt == Hunt::NanAndInf && from == Class::Finite,
    };
    for output in outputs {
        let Some(result) = report::Seen::of(output).filter(|r| r.worst() != Class::Finite) else { continue };
        let operands: Vec<report::Seen> = inputs.iter().filter_map(report::Seen::of).collect();
        let whole = worst(&operands, None);
        let by_element = subject.by_element && operands.iter().all(|o| o.count() == result.count());
        let from = |i: usize| if by_element { worst(&operands, Some(i)) } else { whole };
        // A fold over nothing has its first number, which may be infinite.
        let of_nothing = !operands.is_empty() && operands.iter().all(|o| o.count() == 0);
        let Some(first) = (0..result.count()).find(|i| made(result.class_at(*i), from(*i))) else { continue };
        if !of_nothing {
            let found = report::Found { result: &result, operands: &operands, first, by_element, from: from(first) };
            return Err(found.error(subject));
        }
    }
    Ok(())
}

fn not_finite(message: String, place: Location) -> Error {
    Error::new(ErrorKind::NotFinite, message).at(place)
}
