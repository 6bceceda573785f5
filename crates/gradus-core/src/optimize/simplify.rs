//! One forward walk that folds constants, applies the algebraic rewrites and shares common subexpressions.
//! Linear time: every equation is looked at once, and a rewrite's result at most a few times.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::inline::takes;
use super::kinds::reduction;
use super::nested::Nested;
use super::rewrite::{Named, Piece, Rewrite, Rule, Site, Step};
use super::rules::{rewrite, rewrite_relaxed};
use super::{Exactness, applied, eliminate_dead_code, visit};
use crate::array::Array;
use crate::error::{Location, Result, error};
use crate::hunt;
use crate::memo::{What, remembered};
use crate::primitives::control::Switch;
use crate::primitives::elementwise::{Add, And, Mul, Or, Xor};
use crate::primitives::shaping::{Slice, is_view};
use crate::primitives::{Op, Param};
use crate::program::{Atom, Builder, Constant, Equation, Program, ValueId, infer};
use crate::types::{Scalar, Type};

/// The rules of every walk.
const ALGEBRA: &[Rule] = &[rewrite, rewrite_relaxed];
/// Results with more elements than this are not computed ahead: a program should not grow by its constants.
const LARGEST_FOLDED: usize = 64;
/// All folding of one program together looks at most at so many elements.
const FOLDING_BUDGET: usize = 1 << 16;
/// How often one equation is rewritten, what it is replaced by included. Rules go on in one direction, so this is not
/// met in practice; it makes the walk linear whatever they do.
const REWRITES: usize = 32;

/// Folds, rewrites and shares. Effects and their order stay, and every bit.
pub fn simplify(p: &Program) -> Result<Program> {
    simplify_with(p, Exactness::Exact)
}

/// [`simplify`] with a choice of what rewrites may change.
pub fn simplify_with(p: &Program, exactness: Exactness) -> Result<Program> {
    walk(p, exactness, &[ALGEBRA], &|nested| simplified(nested, exactness))
}

/// The walk with more rules than those of algebra, over nested programs too.
pub(super) fn with_rules(p: &Program, exactness: Exactness, rules: &[&[Rule]]) -> Result<Program> {
    let sets = [&[ALGEBRA], rules].concat();
    Nested::run(p, &|p, nested| walk(p, exactness, &sets, &|inner| nested.of(inner)))
}

/// The same, of a program alone: those that it holds stay what they are, so that what was made of them is found again.
pub(super) fn outside_with_rules(p: &Program, rules: &[&[Rule]]) -> Result<Program> {
    walk(p, Exactness::Exact, &[&[ALGEBRA], rules].concat(), &|inner| Ok(inner.clone()))
}

/// How nested programs are rewritten: each once, however often it is used.
type OnNested<'a> = &'a dyn Fn(&Arc<Program>) -> Result<Arc<Program>>;

fn walk(p: &Program, exactness: Exactness, rules: &[&[Rule]], nested: OnNested<'_>) -> Result<Program> {
    let mut walk = Simplifier {
        b: Builder::like(p),
        shared: FxHashMap::default(),
        folding: FOLDING_BUDGET,
        uses: vec![0; p.inputs().len()],
        fuel: 0,
        exactness,
        rules,
    };
    let uses = p.use_counts();
    let mut there: Vec<Atom> = Vec::with_capacity(p.value_count());
    there.extend((0..p.inputs().len()).map(|i| Atom::from(ValueId::new(i))));
    for e in p.equations() {
        let mut operands: SmallVec<[Atom; 4]> = SmallVec::new();
        for &a in p.operands(e) {
            operands.push(map_atom(p, &there, &mut walk.b, a)?);
        }
        let types: SmallVec<[Type; 1]> = e.results().map(|r| p.ty(r).clone()).collect();
        if e.op().holds_programs() {
            visit();
            there.extend(walk.nested(nested, e, &operands, &types)?);
        } else if !e.op().effects().is_pure() || types.len() != 1 {
            let made = walk.add_shared(e.op().clone(), &operands, &types, e.place())?;
            there.extend((0..types.len()).map(|i| Atom::from(ValueId::new(made + i))));
        } else {
            walk.fuel = REWRITES;
            there.push(walk.one(e.op().clone(), operands, &types[0], e.place())?);
        }
        for r in e.results() {
            walk.count_uses(there[r.index()], uses[r.index()]);
        }
    }
    let outputs = p.outputs().iter().map(|a| map_atom(p, &there, &mut walk.b, *a)).collect::<Result<Vec<_>>>()?;
    Ok(walk.b.finish(outputs))
}

/// An atom of the old program as one of the new.
pub(super) fn map_atom(p: &Program, there: &[Atom], b: &mut Builder, a: Atom) -> Result<Atom> {
    match (a.value(), p.constant(a)) {
        (Some(v), _) => there.get(v.index()).copied().ok_or_else(|| error!(Verify, "a value before its definition")),
        (None, Some(c)) => Ok(b.constant(c.clone())),
        (None, None) => Err(error!(Verify, "an undefined value")),
    }
}

/// The program under construction, and what helps to make it smaller.
struct Simplifier<'a> {
    b: Builder,
    /// Equations by a hash of what they compute.
    shared: FxHashMap<u64, SmallVec<[u32; 1]>>,
    /// Elements that constant folding may still look at.
    folding: usize,
    /// See [`Site::uses`].
    uses: Vec<u32>,
    /// Rewrites that are left for the equation at hand, those of its replacements included.
    fuel: usize,
    exactness: Exactness,
    rules: &'a [&'a [Rule]],
}

/// What becomes of an equation after a rule was tried.
enum Next {
    Done(Atom),
    Again(Op, SmallVec<[Atom; 4]>),
    Nothing,
}

impl Simplifier<'_> {
    fn count_uses(&mut self, atom: Atom, count: u32) {
        if let Some(v) = atom.value() {
            if self.uses.len() <= v.index() {
                self.uses.resize(v.index() + 1, 0);
            }
            self.uses[v.index()] += count;
        }
    }

    /// An operation that holds programs: they are simplified; a branch whose number is known is put in its place.
    fn nested(&mut self, nested: OnNested<'_>, e: &Equation, operands: &[Atom], types: &[Type]) -> Result<Vec<Atom>> {
        let known = operands.first().and_then(|a| self.b.program().constant(*a)).and_then(Constant::splat_value);
        if let Some(switch) = e.op().downcast::<Switch>()
            && let Some(index) = known.and_then(Scalar::to_i64)
        {
            let last = switch.branches.len() as i64 - 1;
            let branch = nested(&switch.branches[index.clamp(0, last) as usize])?;
            // Dimensions that are equal by a condition may differ in their text; then the branch stays. What was written for
            // nothing is dead code, unless it has effects: then it must be known before.
            let fits = branch.output_types() == types && takes(&branch, &self.b, &operands[1..]);
            if fits || branch.effects().is_pure() {
                let made = self.b.inline(&branch, &operands[1..], e.place())?;
                if made.iter().zip(types).all(|(a, t)| self.b.ty(*a) == t) {
                    applied("switch by a constant = the branch");
                    return Ok(made);
                }
            }
        }
        let op = e.op().map_programs(nested)?;
        let made = self.add_shared(op, operands, types, e.place())?;
        Ok((0..types.len()).map(|i| Atom::from(ValueId::new(made + i))).collect())
    }

    /// An operation with one result and no effect: folded, rewritten as far as rules go, or shared.
    fn one(&mut self, mut op: Op, mut operands: SmallVec<[Atom; 4]>, ty: &Type, place: Location) -> Result<Atom> {
        loop {
            visit();
            if let Some(constant) = fold(&self.b, &op, &operands, ty, &mut self.folding) {
                applied("what is known is computed");
                return Ok(self.b.constant(constant));
            }
            match self.rewritten(&op, &operands, ty, place)? {
                Next::Done(atom) => return Ok(atom),
                Next::Again(next, atoms) => (op, operands) = (next, atoms),
                Next::Nothing => break,
            }
        }
        let made = self.add_shared(op, &operands, std::slice::from_ref(ty), place)?;
        Ok(ValueId::new(made).into())
    }

    fn rewritten(&mut self, op: &Op, operands: &[Atom], ty: &Type, place: Location) -> Result<Next> {
        for rule in self.rules.iter().copied().flatten() {
            if self.fuel == 0 {
                break;
            }
            let site = Site { builder: &self.b, op, operands, result: ty, exactness: self.exactness, uses: &self.uses };
            let Some(Named { law, rewrite }) = rule(&site) else { continue };
            match rewrite {
                Rewrite::Alias(atom) if self.b.ty(atom) == ty => {
                    applied(law);
                    return Ok(Next::Done(atom));
                }
                Rewrite::Splat(value) => {
                    applied(law);
                    return Ok(Next::Done(self.b.constant(Constant::splat(ty.clone(), value))));
                }
                Rewrite::Steps(steps) => {
                    if let Some((op, operands)) = self.add_steps(steps, ty, place)? {
                        applied(law);
                        return Ok(Next::Again(op, operands));
                    }
                }
                Rewrite::Alias(_) => {}
            }
        }
        Ok(Next::Nothing)
    }

    /// Adds all steps but the last, which comes back. None, and nothing is added, if the last has not the type wanted or a step
    /// asks for a condition that the program does not state.
    fn add_steps(&mut self, steps: Vec<Step>, ty: &Type, place: Location) -> Result<Option<(Op, SmallVec<[Atom; 4]>)>> {
        let Some(types) = self.types_of(&steps) else { return Ok(None) };
        if types.last() != Some(ty) {
            return Ok(None);
        }
        self.fuel = self.fuel.saturating_sub(steps.len());
        let count = steps.len();
        let mut made: SmallVec<[Atom; 4]> = SmallVec::new();
        for (i, (step, ty)) in steps.into_iter().zip(&types).enumerate() {
            let mut operands: SmallVec<[Atom; 4]> = SmallVec::new();
            for piece in step.operands {
                operands.push(match piece {
                    Piece::Atom(a) => a,
                    Piece::Step(k) => made[k],
                    Piece::Splat(ty, value) => self.b.constant(Constant::splat(ty, value)),
                });
            }
            if i + 1 == count {
                return Ok(Some((step.op, operands)));
            }
            let atom = self.one(step.op, operands, ty, place)?;
            made.push(atom);
        }
        Ok(None)
    }

    fn types_of(&self, steps: &[Step]) -> Option<Vec<Type>> {
        let mut types: Vec<Type> = Vec::with_capacity(steps.len());
        let mut conditions = Vec::new();
        for step in steps {
            let mut inputs: SmallVec<[Type; 4]> = SmallVec::new();
            for piece in &step.operands {
                inputs.push(match piece {
                    Piece::Atom(a) => self.b.ty(*a).clone(),
                    Piece::Step(k) => types.get(*k)?.clone(),
                    Piece::Splat(ty, _) => ty.clone(),
                });
            }
            types.push(infer(&step.op, &inputs, &mut conditions).ok()?.into_iter().next()?);
        }
        let stated = self.b.program().constraints();
        conditions.iter().all(|c| stated.contains(c)).then_some(types)
    }

    /// Adds an equation, or finds an equal one; gives the first result's position.
    fn add_shared(&mut self, op: Op, operands: &[Atom], types: &[Type], place: Location) -> Result<usize> {
        let pure = op.effects().is_pure();
        // a·b and b·a are shared. The equation keeps the order in which it was written.
        let commutes = operands.len() == 2
            && (op.is::<Mul>() || op.is::<Add>() || op.is::<And>() || op.is::<Or>() || op.is::<Xor>());
        let ordered = |atoms: &[Atom]| {
            let mut atoms: SmallVec<[Atom; 4]> = atoms.into();
            if commutes {
                atoms.sort_unstable();
            }
            atoms
        };
        let key = if pure { hash_of(&op, &ordered(operands)) } else { 0 };
        if pure {
            for &i in self.shared.get(&key).into_iter().flatten() {
                let p = self.b.program();
                let other = &p.equations()[i as usize];
                let same_types =
                    other.results().len() == types.len() && other.results().zip(types).all(|(r, t)| p.ty(r) == t);
                let same_operands =
                    p.operands(other) == operands || (commutes && ordered(p.operands(other)) == ordered(operands));
                if same_operands && same_types && *other.op() == op {
                    applied("what is computed twice is computed once");
                    return Ok(other.result().index());
                }
            }
        }
        let index = self.b.program().equations().len() as u32;
        let made = self.b.push(op, operands, types.iter().cloned().collect(), place)?.result().index();
        if pure {
            self.shared.entry(key).or_default().push(index);
        }
        Ok(made)
    }
}

/// The constant an equation is, if its operands are constants and computing it is cheap. While someone hunts for what it makes,
/// it stays, so that it can be caught.
fn fold(b: &Builder, op: &Op, operands: &[Atom], ty: &Type, budget: &mut usize) -> Option<Constant> {
    let folded = computed(b, op, operands, ty, budget)?;
    let numbers = |c: &Constant| c.splat_value().map(Array::scalar).map_or_else(|| c.to_array(), Ok);
    if hunt::active().is_on() {
        let inputs = operands.iter().filter_map(|a| b.program().constant(*a));
        let inputs = inputs.map(numbers).collect::<Result<SmallVec<[Array; 4]>>>().ok()?;
        hunt::look_at(op, Location::unknown(), &inputs, &[numbers(&folded).ok()?]).ok()?;
    }
    Some(folded)
}

fn computed(b: &Builder, op: &Op, operands: &[Atom], ty: &Type, budget: &mut usize) -> Option<Constant> {
    let constants: SmallVec<[&Constant; 4]> =
        operands.iter().map(|a| b.program().constant(*a)).collect::<Option<_>>()?;
    if constants.is_empty() {
        return None;
    }
    // One number in every place: compute with the number alone, whatever the size, known or not.
    if let Some(numbers) = constants.iter().map(|c| c.splat_value()).collect::<Option<SmallVec<[_; 4]>>>() {
        if is_view(op) || op.is::<Slice>() {
            return Some(Constant::splat(ty.clone(), numbers[0]));
        }
        if op.is_elementwise() {
            let numbers: SmallVec<[Array; 4]> = numbers.into_iter().map(Array::scalar).collect();
            let value = op.evaluate(&numbers).ok()?.first()?.item_scalar().ok()?;
            return Some(Constant::splat(ty.clone(), value));
        }
    }
    // A number that is everywhere, reduced: the operand is one number in memory, however many places it fills.
    if reduction(op).is_some() && constants[0].splat_value().is_some() {
        let made = op.evaluate(&[constants[0].to_array().ok()?]).ok()?;
        return Some(Constant::splat(ty.clone(), made.first()?.concrete()?.splat_value()?));
    }
    let size = ty.shape().count()?;
    let work = constants.iter().map(|c| c.ty().shape().count()).sum::<Option<usize>>()?.checked_add(size)?;
    if size > LARGEST_FOLDED || work > *budget {
        return None;
    }
    *budget -= work;
    let inputs = constants.iter().map(|c| c.to_array()).collect::<Result<SmallVec<[Array; 4]>>>().ok()?;
    // An operation that fails on these numbers stays and fails at run time, where the user expects it.
    let output = op.evaluate(&inputs).ok()?;
    Some(Constant::array(output.first()?.concrete()?))
}

/// A hash of an operation on operands, whatever names these.
pub(super) fn hash_of(op: &Op, operands: &[impl Hash]) -> u64 {
    fn param(p: &Param, h: &mut FxHasher) {
        match p {
            // Equal programs need not be one in memory, and a whole one takes long to hash; what is compared in the end
            // has the same operands too.
            Param::Program(p) => (p.value_count(), p.equations().len(), p.outputs().len()).hash(h),
            Param::List(items) => items.iter().for_each(|p| param(p, h)),
            Param::Bool(v) => v.hash(h),
            Param::Int(v) => v.hash(h),
            Param::Dim(v) => v.hash(h),
            Param::Float(v) => v.hash(h),
            Param::DType(v) => v.hash(h),
            Param::Name(v) | Param::Text(v) => v.hash(h),
        }
    }
    let mut h = FxHasher::default();
    op.identity().hash(&mut h);
    operands.hash(&mut h);
    for (_, p) in op.params() {
        param(&p, &mut h);
    }
    h.finish()
}

/// A nested program simplified, with what it does not need left out.
fn simplified(program: &Arc<Program>, exactness: Exactness) -> Result<Arc<Program>> {
    let flags = vec![exactness == Exactness::Relaxed];
    let of = |p: &Arc<Program>, make: &dyn Fn() -> Result<Arc<Program>>| {
        remembered(What::Simplify, p, flags.clone(), None, make).map(|made| (*made).clone())
    };
    let simple = of(program, &|| Ok(Arc::new(eliminate_dead_code(&simplify_with(program, exactness)?, true))))?;
    // What is simple stays what it is, so that programs made of it are found again.
    of(&simple, &|| Ok(simple.clone()))
}
