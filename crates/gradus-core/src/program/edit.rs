//! Cutting and joining programs: what transformations of operations that hold programs are made of.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Atom, Builder, Equation, Program, ValueId};
use crate::error::{Location, Result, error, fail};
use crate::primitives::{Op, Pruned};
use crate::types::Effects;

/// What becomes of an equation when a part of a program is taken.
enum Fate {
    Dropped,
    Kept,
    /// It lost results, and with them operands.
    Smaller(Rc<Pruned>),
}

/// The program without equations whose results nothing needs, and without the parts of nested programs that nothing needs. `keep_effects` keeps
/// equations with effects and what they need; who runs the program for values only does not.
pub fn eliminate_dead_code(p: &Program, keep_effects: bool) -> Program {
    let inputs: Vec<ValueId> = (0..p.inputs().len()).map(ValueId::new).collect();
    // A program that cannot be taken apart stays as it is; the verifier speaks of it.
    p.between(&inputs, p.outputs(), keep_effects).unwrap_or_else(|_| p.clone())
}

impl Builder {
    /// Adds the equations of a program on these inputs; gives what it returns. Equations without a line get `place`.
    pub fn inline(&mut self, p: &Program, inputs: &[Atom], place: Location) -> Result<Vec<Atom>> {
        let mut there: Vec<Option<Atom>> = vec![None; p.value_count()];
        for (slot, a) in there.iter_mut().zip(inputs) {
            *slot = Some(*a);
        }
        self.require(p.constraints());
        for e in p.equations() {
            let operands = self.mapped(p, &there, p.operands(e))?;
            let at = if e.place().is_known() { e.place() } else { place };
            let made = self.equation(e.op().clone(), &operands, at)?.results();
            for (old, new) in e.results().zip(made) {
                there[old.index()] = Some(new.into());
            }
        }
        Ok(self.mapped(p, &there, p.outputs())?.into_vec())
    }

    /// Atoms of another program as atoms of this one.
    pub(crate) fn mapped(
        &mut self,
        p: &Program,
        there: &[Option<Atom>],
        atoms: &[Atom],
    ) -> Result<SmallVec<[Atom; 4]>> {
        atoms
            .iter()
            .map(|a| match (a.value(), p.constant(*a)) {
                (Some(v), _) => there[v.index()],
                (None, Some(c)) => Some(self.constant(c.clone())),
                (None, None) => None,
            })
            .map(|a| a.ok_or_else(|| error!(Verify, "`{}` needs a value that it is not given", p.name())))
            .collect()
    }
}

impl Program {
    /// For each value, whether it depends on one of the marked inputs.
    pub(crate) fn depends_on(&self, inputs: &[bool]) -> Vec<bool> {
        self.marked(inputs, |_| false)
    }

    /// For each value, whether it may differ from run to run when only the marked inputs do: what the host gives may.
    pub(crate) fn varies_with(&self, inputs: &[bool]) -> Vec<bool> {
        self.marked(inputs, |e| !e.op().effects().is_pure())
    }

    fn marked(&self, inputs: &[bool], always: impl Fn(&Equation) -> bool) -> Vec<bool> {
        let mut marks = inputs.to_vec();
        marks.resize(self.value_count(), false);
        for e in self.equations() {
            let made = self.results_depending_on(e, &marks);
            let always = always(e);
            e.results().zip(made).for_each(|(r, on)| marks[r.index()] = on || always);
        }
        marks
    }

    /// Which results of an equation depend on one of the marked values.
    pub(crate) fn results_depending_on(&self, e: &Equation, marks: &[bool]) -> SmallVec<[bool; 2]> {
        let marked = |a: &Atom| a.value().is_some_and(|v| marks[v.index()]);
        let any = self.operands(e).iter().any(marked);
        if any && e.op().holds_programs() {
            let on: Vec<bool> = self.operands(e).iter().map(marked).collect();
            if let Some(flags) = e.op().depends(&on) {
                return flags.into();
            }
        }
        smallvec::smallvec![any; e.results().len()]
    }

    /// Which outputs depend on one of the marked inputs.
    pub(crate) fn outputs_depending_on(&self, inputs: &[bool]) -> Vec<bool> {
        let marks = self.depends_on(inputs);
        self.outputs().iter().map(|a| a.value().is_some_and(|v| marks[v.index()])).collect()
    }

    /// Which values the atoms need, and what becomes of each equation. Values of `given` are needed but what they are
    /// made of is not. Equations with effects are needed if `keep_effects` says so.
    fn cut(&self, given: &[ValueId], atoms: &[Atom], keep_effects: bool) -> (Vec<bool>, Vec<Fate>) {
        let mut is_given = vec![false; self.value_count()];
        given.iter().for_each(|v| is_given[v.index()] = true);
        let mut live = vec![false; self.value_count()];
        let mark = |live: &mut [bool], atom: &Atom| {
            if let Some(v) = atom.value() {
                live[v.index()] = true;
            }
        };
        atoms.iter().for_each(|a| mark(&mut live, a));
        let mut fates: Vec<Fate> = Vec::with_capacity(self.equations().len());
        for e in self.equations().iter().rev() {
            let wanted = |r: ValueId| live[r.index()] && !is_given[r.index()];
            if !e.results().any(wanted) && (!keep_effects || e.op().effects().is_pure()) {
                fates.push(Fate::Dropped);
                continue;
            }
            // A rule that fails keeps the operation whole: what is wrong with it comes out when it runs.
            let smaller = match e.op().holds_programs() {
                true => pruned(e.op(), &e.results().map(wanted).collect::<Vec<_>>()).ok().flatten(),
                false => None,
            };
            let operands = self.operands(e).iter();
            match smaller {
                Some(less) => {
                    operands.zip(&less.operands).filter(|(_, on)| **on).for_each(|(a, _)| mark(&mut live, a));
                    fates.push(Fate::Smaller(less));
                }
                None => {
                    operands.for_each(|a| mark(&mut live, a));
                    fates.push(Fate::Kept);
                }
            }
        }
        fates.reverse();
        (live, fates)
    }

    /// For each value, whether an equation or an output takes it.
    pub(crate) fn used_values(&self) -> Vec<bool> {
        let mut used = vec![false; self.value_count()];
        let operands = self.equations().iter().flat_map(|e| self.operands(e));
        operands.chain(self.outputs()).filter_map(|a| a.value()).for_each(|v| used[v.index()] = true);
        used
    }

    /// For each value, how often equations and outputs take it.
    pub(crate) fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.value_count()];
        let operands = self.equations().iter().flat_map(|e| self.operands(e));
        operands.chain(self.outputs()).filter_map(|a| a.value()).for_each(|v| counts[v.index()] += 1);
        counts
    }

    /// For each value, whether these atoms need it.
    pub(crate) fn needed_values(&self, atoms: &[Atom]) -> Vec<bool> {
        self.cut(&[], atoms, false).0
    }

    /// Which inputs the outputs need.
    pub(crate) fn needed_inputs(&self, outputs: &[Atom]) -> Vec<bool> {
        let (mut live, _) = self.cut(&[], outputs, true);
        live.truncate(self.inputs().len());
        live
    }

    /// The program from `given` values (in this order) to `outputs`, with the equations between them and no others.
    /// Operations that hold programs lose what nobody needs.
    pub(crate) fn between(&self, given: &[ValueId], outputs: &[Atom], keep_effects: bool) -> Result<Program> {
        let (_, fates) = self.cut(given, outputs, keep_effects);
        let mut b = Builder::new(self.name());
        let mut there: Vec<Option<Atom>> = vec![None; self.value_count()];
        for v in given {
            there[v.index()] = Some(b.input(self.ty(*v).clone())?.into());
        }
        b.require(self.constraints());
        for (e, fate) in self.equations().iter().zip(fates) {
            let kept: Option<(Op, SmallVec<[Atom; 4]>, SmallVec<[ValueId; 2]>)> = match fate {
                Fate::Dropped => None,
                Fate::Kept => Some((e.op().clone(), self.operands(e).into(), e.results().collect())),
                Fate::Smaller(less) => {
                    let operands = self.operands(e).iter().zip(&less.operands).filter(|(_, on)| **on);
                    let results = e.results().zip(&less.results).filter(|(_, on)| **on);
                    Some((less.op.clone(), operands.map(|(a, _)| *a).collect(), results.map(|(r, _)| r).collect()))
                }
            };
            let Some((op, operands, results)) = kept else { continue };
            let operands = b.mapped(self, &there, &operands)?;
            let types = results.iter().map(|r| self.ty(*r).clone()).collect();
            let made = b.push(op, &operands, types, e.place())?.results();
            for (old, new) in results.into_iter().zip(made) {
                // A value that is given stays the given one, even if its equation is here for another result.
                there[old.index()].get_or_insert(new.into());
            }
        }
        let outputs = b.mapped(self, &there, outputs)?.into_vec();
        Ok(b.finish(outputs))
    }

    /// The program of the first equations alone, which gives these atoms.
    pub(crate) fn beginning(&self, equations: usize, outputs: &[Atom]) -> Result<Program> {
        let mut b = Builder::like(self);
        let mut there: Vec<Option<Atom>> = (0..self.inputs().len()).map(|i| Some(ValueId::new(i).into())).collect();
        there.resize(self.value_count(), None);
        for e in self.equations().iter().take(equations) {
            let operands = b.mapped(self, &there, self.operands(e))?;
            let types = e.results().map(|r| self.ty(r).clone()).collect();
            let made = b.push(e.op().clone(), &operands, types, e.place())?.results();
            e.results().zip(made).for_each(|(old, new)| there[old.index()] = Some(new.into()));
        }
        let outputs = b.mapped(self, &there, outputs)?.into_vec();
        Ok(b.finish(outputs))
    }

    /// The same program without what only looks: effects that give nothing, in nested programs too. It is for a part that
    /// is computed once more than it was written. An effect whose results are used stays.
    pub(crate) fn silenced(&self) -> Result<Program> {
        if self.effects().is_pure() {
            return Ok(self.clone());
        }
        let mut b = Builder::like(self);
        let mut there: Vec<Option<Atom>> = (0..self.inputs().len()).map(|i| Some(ValueId::new(i).into())).collect();
        there.resize(self.value_count(), None);
        for e in self.equations() {
            let op = match !e.op().effects().is_pure() && e.op().holds_programs() {
                true => e.op().map_programs(&|p| p.silenced().map(Arc::new))?,
                false => e.op().clone(),
            };
            let looks = !e.op().effects().is_pure() && !op.effects().contains(Effects::HOST);
            if looks && e.results().len() == 0 {
                continue;
            }
            let operands = b.mapped(self, &there, self.operands(e))?;
            let types = e.results().map(|r| self.ty(r).clone()).collect();
            let made = b.push(op, &operands, types, e.place())?.results();
            e.results().zip(made).for_each(|(old, new)| there[old.index()] = Some(new.into()));
        }
        let outputs = b.mapped(self, &there, self.outputs())?.into_vec();
        Ok(b.finish(outputs))
    }

    /// The same program with other inputs and outputs: input `i` is the old input `inputs[i]`, output `j` the old
    /// output `outputs[j]`. Inputs that are left out must not be needed.
    pub(crate) fn rearranged(&self, inputs: &[usize], outputs: &[usize]) -> Result<Program> {
        if inputs.iter().any(|i| *i >= self.inputs().len()) || outputs.iter().any(|o| *o >= self.outputs().len()) {
            fail!(Rule, "`{}` has no such input or output", self.name());
        }
        let given: Vec<ValueId> = inputs.iter().map(|i| ValueId::new(*i)).collect();
        let outputs: Vec<Atom> = outputs.iter().map(|o| self.outputs()[*o]).collect();
        self.between(&given, &outputs, true)
    }
}

/// An operation without the results that are not used; see [`Primitive::prune`](crate::primitives::Primitive::prune).
fn pruned(op: &Op, used: &[bool]) -> Result<Option<Rc<Pruned>>> {
    let key = (op.address(), used.to_vec());
    if let Some((_, found)) = PRUNED.with_borrow(|t| t.get(&key).cloned()) {
        return Ok(found);
    }
    let made = op.prune(used)?.map(Rc::new);
    PRUNED.with_borrow_mut(|t| {
        if t.len() >= MOST_PRUNED {
            t.clear();
        }
        // The operation is kept, so that its address stays its own.
        t.insert(key, (op.clone(), made.clone()));
    });
    Ok(made)
}

/// Entries of a thread's table before it starts anew.
const MOST_PRUNED: usize = 256;

type PrunedOps = FxHashMap<(usize, Vec<bool>), (Op, Option<Rc<Pruned>>)>;

thread_local! {
    static PRUNED: RefCell<PrunedOps> = RefCell::default();
}
