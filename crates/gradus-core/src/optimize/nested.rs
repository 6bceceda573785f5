//! How a pass goes into nested programs: each is rewritten once, however many operations share it, so that a pass takes
//! time in proportion to what is in memory and not to what it would be written out.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::simplify::map_atom;
use super::visit;
use crate::error::Result;
use crate::primitives::{Op, Types};
use crate::program::{Atom, Builder, Equation, Program, ValueId};
use crate::stack;
use crate::types::Type;

/// A rewriting of a program that is given the means to rewrite the programs inside it.
type Run<'f> = &'f dyn Fn(&Program, &Nested<'_>) -> Result<Program>;

/// The old program, which is kept so that its address stays its own, and the new one.
type Pair = (Arc<Program>, Arc<Program>);

/// What takes the place of an equation.
pub(crate) enum Made {
    /// An equation with this operation and the same operands.
    As(Op),
    /// What was written already; these are its results.
    There(Vec<Atom>),
}

pub(crate) struct Nested<'f> {
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
        stack::check()?;
        let new = Arc::new((self.run)(p, self)?);
        self.made.borrow_mut().insert(address, (p.clone(), new.clone()));
        Ok(new)
    }

    /// An operation with the programs that it holds rewritten.
    pub fn op(&self, op: &Op) -> Result<Op> {
        if op.holds_programs() { op.map_programs(&|p| self.of(p)) } else { Ok(op.clone()) }
    }
}

/// Whether a value or a constant of a program, or of one that is nested in it, has such a type.
pub(crate) fn has_type(p: &Program, is: &dyn Fn(&Type) -> bool) -> bool {
    fn asked(p: &Program, is: &dyn Fn(&Type) -> bool, known: &mut FxHashMap<usize, bool>) -> bool {
        if (0..p.value_count()).any(|v| is(p.ty(ValueId::new(v)))) || p.constants().iter().any(|c| is(c.ty())) {
            return true;
        }
        p.equations().iter().filter(|e| e.op().holds_programs()).any(|e| {
            e.op().programs().iter().any(|p| {
                let address = Arc::as_ptr(p) as usize;
                if let Some(&has) = known.get(&address) {
                    return has;
                }
                let has = asked(p, is, known);
                known.insert(address, has);
                has
            })
        })
    }
    asked(p, is, &mut FxHashMap::default())
}

/// Writes a program again, equation by equation: `f` is given each with its operands in the new program.
pub(crate) fn equations(
    p: &Program,
    f: &mut dyn FnMut(&mut Builder, &Equation, &[Atom]) -> Result<Made>,
) -> Result<Program> {
    equations_among(p, &mut |b, e, operands, _| f(b, e, operands))
}

/// The same where `f` also wants the values before, by their number in the old program.
pub(super) fn equations_among(
    p: &Program,
    f: &mut dyn FnMut(&mut Builder, &Equation, &[Atom], &[Atom]) -> Result<Made>,
) -> Result<Program> {
    let mut b = Builder::like(p);
    let mut there: Vec<Atom> = (0..p.inputs().len()).map(|i| Atom::from(ValueId::new(i))).collect();
    for e in p.equations() {
        visit();
        let mut operands: SmallVec<[Atom; 4]> = SmallVec::new();
        for &a in p.operands(e) {
            operands.push(map_atom(p, &there, &mut b, a)?);
        }
        match f(&mut b, e, &operands, &there)? {
            Made::There(results) => there.extend(results),
            Made::As(op) => {
                let types: Types = e.results().map(|r| p.ty(r).clone()).collect();
                there.extend(b.push(op, &operands, types, e.place())?.results().map(Atom::from));
            }
        }
    }
    let outputs = p.outputs().iter().map(|a| map_atom(p, &there, &mut b, *a)).collect::<Result<Vec<_>>>()?;
    Ok(b.finish(outputs))
}
