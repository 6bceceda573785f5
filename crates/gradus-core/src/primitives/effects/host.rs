//! Functions of the host that programs call. Each has a number that no other has, which stands for it in the text of
//! programs: so two programs that call different functions are never taken for one.

use std::any::TypeId;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::FxHashMap;

use super::replay::aside;
use crate::array::Array;
use crate::error::{Location, Result, error, panic_text};
use crate::hunt::{Hunt, hunting};
use crate::trace::apart;

type Function = dyn Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync;

/// A function of the host.
pub struct Host {
    id: u64,
    place: Location,
    function: Box<Function>,
}

#[derive(Default)]
struct Table {
    /// Functions that some program holds, or did.
    all: FxHashMap<u64, Weak<Host>>,
    /// Functions that hold nothing: one of a type is as good as another, and a program that is traced again is the same.
    plain: FxHashMap<(TypeId, Location), Arc<Host>>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);
static NEXT: AtomicU64 = AtomicU64::new(1);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    /// A function that was handed over at a place. One that captures nothing is the same each time that it is.
    pub fn new<F>(place: Location, function: F) -> Arc<Host>
    where
        F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    {
        let key = (size_of::<F>() == 0).then(|| (TypeId::of::<F>(), place));
        let mut table = table();
        if let Some(found) = key.and_then(|key| table.plain.get(&key)) {
            return found.clone();
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = Arc::new(Host { id, place, function: Box::new(function) });
        table.all.insert(id, Arc::downgrade(&host));
        if let Some(key) = key {
            table.plain.insert(key, host.clone());
        }
        host
    }

    /// The function of a number, if it is of this process and something still holds it.
    pub(super) fn find(id: u64) -> Option<Arc<Host>> {
        table().all.get(&id)?.upgrade()
    }

    /// Its number in programs.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The line that handed it over.
    pub fn place(&self) -> Location {
        self.place
    }

    /// Calls it. What it does with arrays happens at once, whatever is being traced on this thread, and is its own business. A panic becomes an error:
    /// it must not unwind through machine code, nor end the program of a user who only wanted to look.
    pub(super) fn call(&self, name: &str, inputs: &[Array]) -> Result<Vec<Array>> {
        let call = || aside(|| hunting(Hunt::Off, || apart(|| (self.function)(inputs))));
        let done = catch_unwind(AssertUnwindSafe(call));
        done.unwrap_or_else(|panic| {
            Err(error!(Callback, "`{name}` panicked: {}", panic_text(panic)).help(
                "the panic was stopped at the callback, and the call ends here; let the callback give an error instead",
            ))
        })
        .map_err(|e| e.at(self.place))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        table().all.remove(&self.id);
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({} at {})", self.id, self.place)
    }
}
