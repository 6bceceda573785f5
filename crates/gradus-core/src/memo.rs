//! What was made of programs that are shared: the same nested program asked for twice with the same flags
//! is transformed once. Loops ask again and again while they find out what varies, and `grad` of a staged function
//! asks at every call.
//!
//! *Invariant.* What is found is what would be made: the key has all that shapes it, and an address counts only while its program lives.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::program::Program;
use crate::stack;
use crate::types::Dim;

/// Entries of a thread's table before those of programs that are gone are dropped.
const ROOM: usize = 1024;

#[derive(PartialEq, Eq, Hash)]
struct Question {
    what: What,
    program: usize,
    flags: Vec<bool>,
    size: Option<Dim>,
}

/// What was made of a program.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum What {
    Jvp,
    Transpose,
    Vmap,
    Split,
    Partition,
    Prune,
    Depends,
    Simplify,
}

struct Answer {
    program: Weak<Program>,
    made: Rc<dyn Any>,
}

thread_local! {
    static TABLE: RefCell<FxHashMap<Question, Answer>> = RefCell::default();
}

/// What `make` makes of a program, or made of it before for the same flags and size.
pub(crate) fn remembered<T: 'static>(
    what: What,
    program: &Arc<Program>,
    flags: Vec<bool>,
    size: Option<Dim>,
    make: impl FnOnce() -> Result<T>,
) -> Result<Rc<T>> {
    let key = Question { what, program: Arc::as_ptr(program) as usize, flags, size };
    let found = TABLE.with_borrow(|t| {
        let entry = t.get(&key)?;
        // An address is used again when its program is gone; the reference tells.
        let same = entry.program.upgrade().is_some_and(|p| Arc::ptr_eq(&p, program));
        same.then(|| entry.made.clone())
    });
    if let Some(made) = found.and_then(|made| made.downcast::<T>().ok()) {
        return Ok(made);
    }
    stack::check()?;
    let made = Rc::new(make()?);
    let entry = Answer { program: Arc::downgrade(program), made: made.clone() };
    TABLE.with_borrow_mut(|t| {
        if t.len() >= ROOM {
            t.retain(|_, e| e.program.strong_count() > 0);
        }
        if t.len() >= ROOM {
            t.clear();
        }
        t.insert(key, entry);
    });
    Ok(made)
}
