//! What transformations made of programs that are shared: the same nested program asked for twice with the same flags
//! is transformed once. Loops ask again and again while they find out what varies, and `grad` of a staged function
//! asks at every call.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use super::{Split, Terms, jvp, partial, transpose, vmap};
use crate::error::Result;
use crate::optimize::{Exactness, eliminate_dead_code, simplify_with};
use crate::primitives::{Op, Partition, Pruned};
use crate::program::Program;
use crate::types::Dim;

/// Entries of a thread's table before those of programs that are gone are dropped.
const ROOM: usize = 256;

#[derive(PartialEq, Eq, Hash)]
struct Key {
    what: What,
    program: usize,
    flags: Vec<bool>,
    size: Option<Dim>,
}

#[derive(PartialEq, Eq, Hash)]
enum What {
    Jvp,
    Transpose,
    Vmap,
    Split,
    Partition,
    Prune,
    Simplify,
}

struct Entry {
    program: Weak<Program>,
    made: Rc<dyn Any>,
}

thread_local! {
    static TABLE: RefCell<FxHashMap<Key, Entry>> = RefCell::default();
}

fn remembered<T: 'static>(
    what: What,
    program: &Arc<Program>,
    flags: Vec<bool>,
    size: Option<Dim>,
    make: impl FnOnce() -> Result<T>,
) -> Result<Rc<T>> {
    let key = Key { what, program: Arc::as_ptr(program) as usize, flags, size };
    let found = TABLE.with_borrow(|t| {
        let entry = t.get(&key)?;
        // An address is used again when its program is gone; the reference tells.
        let same = entry.program.upgrade().is_some_and(|p| Arc::ptr_eq(&p, program));
        same.then(|| entry.made.clone())
    });
    if let Some(made) = found.and_then(|made| made.downcast::<T>().ok()) {
        return Ok(made);
    }
    let made = Rc::new(make()?);
    let entry = Entry { program: Arc::downgrade(program), made: made.clone() };
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

/// The forward derivative of a nested program, and which outputs vary.
#[track_caller]
pub(crate) fn jvp_of(program: &Arc<Program>, active: &[bool]) -> Result<(Arc<Program>, Vec<bool>)> {
    let make = || jvp(program, active).map(|(p, varies)| (Arc::new(p), varies));
    remembered(What::Jvp, program, active.to_vec(), None, make).map(|made| (*made).clone())
}

/// The transpose of a nested program.
#[track_caller]
pub(crate) fn transpose_of(program: &Arc<Program>, linear: &[bool]) -> Result<Arc<Program>> {
    let make = || transpose(program, linear).map(Arc::new);
    remembered(What::Transpose, program, linear.to_vec(), None, make).map(|made| (*made).clone())
}

/// A nested program over a batch. Outputs marked in `spread` have the batch axis; the flags say which others do.
#[track_caller]
pub(crate) fn vmap_of(
    program: &Arc<Program>,
    batched: &[bool],
    spread: &[bool],
    size: &Dim,
) -> Result<(Arc<Program>, Vec<bool>)> {
    let flags = [batched, spread].concat();
    let make = || vmap::over_batch(program, batched, spread, size).map(|(p, flags)| (Arc::new(p), flags));
    remembered(What::Vmap, program, flags, Some(size.clone()), make).map(|made| (*made).clone())
}

/// A nested program split by which inputs are known.
pub(crate) fn split_of(program: &Arc<Program>, terms: Terms<'_>) -> Result<Rc<Split>> {
    let make = || partial::split(program, terms);
    let flags = [terms.known, terms.late, terms.at_hand.unwrap_or_default()].concat();
    remembered(What::Split, program, flags, None, make)
}

/// The two halves of a call of a nested program.
pub(crate) fn partition_of(
    program: &Arc<Program>,
    known: &[bool],
    make: impl FnOnce() -> Result<Option<Partition>>,
) -> Result<Option<Partition>> {
    remembered(What::Partition, program, known.to_vec(), None, make).map(|made| (*made).clone())
}

/// What pruning made of a nested program: it without what only unused outputs need, and which inputs are left.
pub(crate) fn pruned_program(
    program: &Arc<Program>,
    used: &[bool],
    make: impl FnOnce() -> Result<Option<(Arc<Program>, Vec<bool>)>>,
) -> Result<Option<(Arc<Program>, Vec<bool>)>> {
    remembered(What::Prune, program, used.to_vec(), None, make).map(|made| (*made).clone())
}

/// An operation without the results that are not used; see [`Primitive::prune`](crate::primitives::Primitive::prune).
pub(crate) fn pruned(op: &Op, used: &[bool]) -> Result<Option<Rc<Pruned>>> {
    let key = (op.address(), used.to_vec());
    if let Some((_, found)) = PRUNED.with_borrow(|t| t.get(&key).cloned()) {
        return Ok(found);
    }
    let made = op.prune(used)?.map(Rc::new);
    PRUNED.with_borrow_mut(|t| {
        if t.len() >= ROOM {
            t.clear();
        }
        // The operation is kept, so that its address stays its own.
        t.insert(key, (op.clone(), made.clone()));
    });
    Ok(made)
}

type PrunedOps = FxHashMap<(usize, Vec<bool>), (Op, Option<Rc<Pruned>>)>;

thread_local! {
    static PRUNED: RefCell<PrunedOps> = RefCell::default();
}

/// A nested program simplified, with what it does not need left out.
pub(crate) fn simplified(program: &Arc<Program>, exactness: Exactness) -> Result<Arc<Program>> {
    let flags = vec![exactness == Exactness::Relaxed];
    let of = |p: &Arc<Program>, make: &dyn Fn() -> Result<Arc<Program>>| {
        remembered(What::Simplify, p, flags.clone(), None, make).map(|made| (*made).clone())
    };
    let simple = of(program, &|| Ok(Arc::new(eliminate_dead_code(&simplify_with(program, exactness)?, true))))?;
    // What is simple stays what it is, so that programs made of it are found again.
    of(&simple, &|| Ok(simple.clone()))
}
