//! Effects woven into a program: what the host sees of it, in order, must be the same however it is run.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use super::Source;
use crate::array::Array;
use crate::error::{Location, Result};
use crate::optimize::{Made, Nested, equations};
use crate::primitives::control::{CustomJvp, CustomLinear, CustomVjp, LinearSolve, Root};
use crate::primitives::effects::{Callback, Host, Kind};
use crate::primitives::{Op, Types};
use crate::program::{Atom, Program};
use crate::testing::canonical;

/// The host of programs with effects woven into them.
#[derive(Clone, Default)]
pub struct Watcher {
    seen: Arc<Mutex<Vec<String>>>,
}

impl Watcher {
    /// The same program with effects between its equations, in nested programs too: calls that look at values, and, if
    /// `ordered`, calls that give a value back as it came. One with ordered effects is not to be transformed.
    pub fn weave(&self, program: &Program, source: &mut Source<'_>, ordered: bool) -> Result<Program> {
        let source = RefCell::new(source);
        Nested::run(program, &|p, nested| {
            equations(p, &mut |b, e, operands| {
                // A backward pass is transposed, and effects cannot be; a derivative has the effects of a user's rule, and not
                // those of the function, and those of an equation, which only it looks at.
                let implicit = e.op().is::<LinearSolve>() || e.op().is::<Root>();
                let ruled = e.op().is::<CustomJvp>() || e.op().is::<CustomVjp>() || implicit;
                let stays = e.op().is::<CustomLinear>() || (ruled && !ordered);
                let op = if stays { e.op().clone() } else { nested.op(e.op())? };
                let types: Types = e.results().map(|r| p.ty(r).clone()).collect();
                let made = b.push(op, operands, types, e.place())?.results();
                let mut results: Vec<Atom> = made.map(Atom::from).collect();
                let mut source = source.borrow_mut();
                if source.chance(25) {
                    let all: Vec<Atom> = operands.iter().chain(&results).copied().collect();
                    let count = source.below(3);
                    let taken: Vec<Atom> = (0..count).filter_map(|_| source.pick(&all).copied()).collect();
                    let looks = Callback::watching(Kind::Debug, self.host(|_| Vec::new()));
                    b.push(Op::new(looks), &taken, Types::new(), e.place())?;
                }
                if ordered && source.chance(15) && !results.is_empty() {
                    let which = source.below(results.len());
                    let ty = b.ty(results[which]).clone();
                    let passes = Callback::giving(Kind::Io, self.host(<[Array]>::to_vec), vec![ty.clone()], false);
                    let types: Types = [ty].into_iter().collect();
                    results[which] = b.push(Op::new(passes), &[results[which]], types, e.place())?.result().into();
                }
                Ok(Made::There(results))
            })
        })
    }

    fn host(&self, results: fn(&[Array]) -> Vec<Array>) -> Arc<Host> {
        let watcher = self.clone();
        Host::new(Location::unknown(), move |values| {
            watcher.note(values);
            Ok(results(values))
        })
    }

    fn note(&self, values: &[Array]) {
        let text = |a: &Array| {
            let count = a.concrete().map_or(0, |c| c.count());
            let scalar = |i| a.concrete().and_then(|c| c.scalar_at(i).ok()).map(canonical);
            format!("{:?}", (0..count).map(scalar).collect::<Vec<_>>())
        };
        let line = values.iter().map(text).collect::<Vec<_>>().join(" ");
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// What was seen since it was asked last.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
