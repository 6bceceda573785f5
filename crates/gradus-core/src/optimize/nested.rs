//! How a pass goes into nested programs: each is rewritten once, however many operations share it, so that a pass takes
//! time in proportion to what is in memory and not to what it would be written out.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::program::Program;

/// A rewriting of a program that is given the means to rewrite the programs inside it.
type Run<'f> = &'f dyn Fn(&Program, &Nested<'_>) -> Result<Program>;

/// The old program, which is kept so that its address stays its own, and the new one.
type Pair = (Arc<Program>, Arc<Program>);

pub(super) struct Nested<'f> {
    made: RefCell<FxHashMap<usize, Pair>>,
    run: Run<'f>,
}

impl<'f> Nested<'f> {
    /// Runs a rewriting on a program and on all that is nested in it.
    pub fn run(p: &Program, run: Run<'f>) -> Result<Program> {
        run(p, &Nested { made: RefCell::default(), run })
    }

    /// What the rewriting makes of a nested program.
    pub fn of(&self, p: &Arc<Program>) -> Result<Arc<Program>> {
        let address = Arc::as_ptr(p) as usize;
        if let Some((_, new)) = self.made.borrow().get(&address) {
            return Ok(new.clone());
        }
        let new = Arc::new((self.run)(p, self)?);
        self.made.borrow_mut().insert(address, (p.clone(), new.clone()));
        Ok(new)
    }
}
