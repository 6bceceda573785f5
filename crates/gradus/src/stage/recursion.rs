//! Refuses a staged function that calls itself without end: its program would hold itself. Without this the stack would overflow,
//! and that ends the process.
//!
//! A staged function may call itself with other frozen values or other shapes, because that is another program. With the same key
//! the trace in progress would start once more, and so on. Where that cannot be known (every level has a function of its
//! own, or looks at numbers), the depth is bounded.

use std::cell::RefCell;

use gradus_core::{Error, ErrorKind, Location, Mode, Result};

use super::key::CallKey;
use crate::arguments::Arguments;
use crate::tree::Tree;

/// How many traces of functions of one name and line may be in progress on a thread: more than anyone nests, and less than
/// the stack of a thread has room for.
const DEEPEST: usize = 48;

/// A trace in progress.
struct Running {
    /// The address of the function's state.
    core: usize,
    key: CallKey,
    mode: Mode,
    name: String,
    place: Location,
}

thread_local! {
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
    /// Functions that run on errors to show the structure of their results.
    static FAILING: RefCell<usize> = const { RefCell::new(0) };
}

/// Ends what [`enter`] began.
pub(super) struct Left;

impl Drop for Left {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|running| running.pop());
    }
}

/// A trace begins, until what comes back is dropped.
pub(super) fn enter<A: Arguments>(
    core: usize,
    args: A::Refs<'_>,
    mode: Mode,
    name: &str,
    place: Location,
) -> Result<Left> {
    let same = |r: &Running| r.core == core && mode == Mode::Abstract && r.mode == mode && r.key.matches::<A>(args);
    let alike = |r: &&Running| r.place == place && r.name == name;
    RUNNING.with_borrow_mut(|running| {
        if running.iter().any(same) || running.iter().filter(alike).count() >= DEEPEST {
            return Err(endless(name, place));
        }
        running.push(Running { core, key: CallKey::of::<A>(args), mode, name: name.into(), place });
        Ok(Left)
    })
}

fn endless(name: &str, place: Location) -> Error {
    Error::new(ErrorKind::Verify, format!("`{name}` calls itself while it is traced, and a program cannot hold itself"))
        .at(place)
        .help(
            "write the repetition as `while_loop`, `fori_loop` or `scan`; or give the function an argument that is frozen (`Static`) or a \
             shape that gets smaller from call to call, and stop at the smallest",
        )
}

/// A result that carries an error, of a type that alone says where its arrays are; otherwise `run` finds out.
pub(crate) fn carrying<T: Tree>(error: &Error, run: impl FnOnce() -> T) -> T {
    struct Less;
    impl Drop for Less {
        fn drop(&mut self) {
            FAILING.with_borrow_mut(|depth| *depth -= 1);
        }
    }
    if let Some(result) = T::of_error(error) {
        return result;
    }
    let depth = FAILING.with_borrow_mut(|depth| {
        *depth += 1;
        *depth
    });
    let _less = Less;
    // Only the function itself knows how many arrays its result has, and it never comes to an end: there is nothing to return.
    assert!(depth <= DEEPEST, "{error}");
    run()
}
