//! One forward walk that folds constants, applies the algebraic rewrites and shares common subexpressions.
//! Linear time: every equation is looked at once, and a rewrite's result at most a few times.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::Exactness;
use super::rules::{Rewrite, Site, rewrite, rewrite_relaxed};
use crate::array::Array;
use crate::error::{Result, error};
use crate::primitives::control::Switch;
use crate::primitives::convert::Convert;
use crate::primitives::elementwise::{Add, And, Mul, Or, Xor};
use crate::primitives::shaping::{Slice, is_view};
use crate::primitives::{Op, Param, elementwise};
use crate::program::{Atom, Builder, Constant, Equation, Program, ValueId};
use crate::transform::simplified;
use crate::types::{Scalar, Type};

/// Results with more elements than this are not computed ahead: a program should not grow by its constants.
const LARGEST_FOLDED: usize = 64;
/// All folding of one program together looks at most at so many elements.
const FOLDING_BUDGET: usize = 1 << 16;
/// How often the result of a rewrite is rewritten again.
const REWRITES: usize = 8;

/// Folds, rewrites and shares. Effects and their order stay, and every bit.
pub fn simplify(p: &Program) -> Result<Program> {
    simplify_with(p, Exactness::Exact)
}

/// [`simplify`] with a choice of what rewrites may change.
pub fn simplify_with(p: &Program, exactness: Exactness) -> Result<Program> {
    let mut b = Builder::like(p);
    let mut there: Vec<Atom> = Vec::with_capacity(p.value_count());
    there.extend((0..p.inputs().len()).map(|i| Atom::from(ValueId::new(i))));
    let mut shared: FxHashMap<u64, SmallVec<[u32; 1]>> = FxHashMap::default();
    let mut budget = FOLDING_BUDGET;
    for e in p.equations() {
        let mut operands: SmallVec<[Atom; 4]> = SmallVec::new();
        for &a in p.operands(e) {
            operands.push(map_atom(p, &there, &mut b, a)?);
        }
        let types: SmallVec<[Type; 1]> = e.results().map(|r| p.ty(r).clone()).collect();
        if e.op().holds_programs() {
            there.extend(simplify_nested(&mut b, &mut shared, exactness, e, &operands, &types)?);
            continue;
        }
        if !e.op().effects().is_pure() || types.len() != 1 {
            let made = add_shared(&mut b, &mut shared, e.op().clone(), &operands, &types, e)?;
            there.extend((0..types.len()).map(|i| Atom::from(ValueId::new(made + i))));
            continue;
        }
        there.push(simplify_one(&mut b, &mut shared, &mut budget, exactness, e, operands, &types[0])?);
    }
    let outputs = p.outputs().iter().map(|a| map_atom(p, &there, &mut b, *a)).collect::<Result<Vec<_>>>()?;
    Ok(b.finish(outputs))
}

fn map_atom(p: &Program, there: &[Atom], b: &mut Builder, a: Atom) -> Result<Atom> {
    match (a.value(), p.constant(a)) {
        (Some(v), _) => there.get(v.index()).copied().ok_or_else(|| error!(Verify, "a value before its definition")),
        (None, Some(c)) => Ok(b.constant(c.clone())),
        (None, None) => Err(error!(Verify, "an undefined value")),
    }
}

/// An operation that holds programs: they are simplified; a branch whose number is known is put in its place.
fn simplify_nested(
    b: &mut Builder,
    shared: &mut FxHashMap<u64, SmallVec<[u32; 1]>>,
    exactness: Exactness,
    e: &Equation,
    operands: &[Atom],
    types: &[Type],
) -> Result<Vec<Atom>> {
    if let Some(switch) = e.op().downcast::<Switch>()
        && let Some(index) = b.program().constant(operands[0]).and_then(Constant::splat_value).and_then(Scalar::to_i64)
    {
        let last = switch.branches.len() as i64 - 1;
        let branch = simplified(&switch.branches[index.clamp(0, last) as usize], exactness)?;
        let made = b.inline(&branch, &operands[1..], e.place())?;
        // Dimensions that are equal by a condition may differ in their text; then the branch stays.
        if made.iter().zip(types).all(|(a, t)| b.ty(*a) == t) {
            return Ok(made);
        }
    }
    let op = e.op().map_programs(&|p| simplified(p, exactness))?;
    let made = add_shared(b, shared, op, operands, types, e)?;
    Ok((0..types.len()).map(|i| Atom::from(ValueId::new(made + i))).collect())
}

fn simplify_one(
    b: &mut Builder,
    shared: &mut FxHashMap<u64, SmallVec<[u32; 1]>>,
    budget: &mut usize,
    exactness: Exactness,
    e: &Equation,
    operands: SmallVec<[Atom; 4]>,
    ty: &Type,
) -> Result<Atom> {
    let (mut op, mut operands) = (e.op().clone(), operands);
    for _ in 0..REWRITES {
        if let Some(constant) = fold(b, &op, &operands, ty, budget) {
            return Ok(b.constant(constant));
        }
        let site = Site { builder: b, op: &op, operands: &operands, result: ty };
        let relaxed = || if exactness == Exactness::Relaxed { rewrite_relaxed(&site) } else { None };
        match rewrite(&site).or_else(relaxed) {
            Some(Rewrite::Alias(atom)) if b.ty(atom) == ty => return Ok(atom),
            Some(Rewrite::Splat(value)) => return Ok(b.constant(Constant::splat(ty.clone(), value))),
            Some(Rewrite::Apply(next, atoms)) => (op, operands) = (next, atoms.into()),
            _ => break,
        }
    }
    let types: SmallVec<[Type; 1]> = smallvec::smallvec![ty.clone()];
    let made = add_shared(b, shared, op, &operands, &types, e)?;
    Ok(ValueId::new(made).into())
}

/// The constant an equation is, if its operands are constants and computing it is cheap.
fn fold(b: &Builder, op: &Op, operands: &[Atom], ty: &Type, budget: &mut usize) -> Option<Constant> {
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
        if elementwise::is_elementwise(op) || op.is::<Convert>() {
            let numbers: SmallVec<[Array; 4]> = numbers.into_iter().map(Array::scalar).collect();
            let value = op.evaluate(&numbers).ok()?.first()?.item_scalar().ok()?;
            return Some(Constant::splat(ty.clone(), value));
        }
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

/// Adds an equation, or finds an equal one; gives the first result's position.
fn add_shared(
    b: &mut Builder,
    shared: &mut FxHashMap<u64, SmallVec<[u32; 1]>>,
    op: Op,
    operands: &[Atom],
    types: &[Type],
    e: &Equation,
) -> Result<usize> {
    let pure = op.effects().is_pure();
    // a·b and b·a are shared. The equation keeps the order in which it was written.
    let commutes =
        operands.len() == 2 && (op.is::<Mul>() || op.is::<Add>() || op.is::<And>() || op.is::<Or>() || op.is::<Xor>());
    let ordered = |atoms: &[Atom]| {
        let mut atoms: SmallVec<[Atom; 4]> = atoms.into();
        if commutes {
            atoms.sort_unstable();
        }
        atoms
    };
    let key = if pure { hash_of(&op, &ordered(operands)) } else { 0 };
    if pure {
        for &i in shared.get(&key).into_iter().flatten() {
            let p = b.program();
            let other = &p.equations()[i as usize];
            let same_types =
                other.results().len() == types.len() && other.results().zip(types).all(|(r, t)| p.ty(r) == t);
            let same_operands =
                p.operands(other) == operands || (commutes && ordered(p.operands(other)) == ordered(operands));
            if same_operands && same_types && *other.op() == op {
                return Ok(other.result().index());
            }
        }
    }
    let index = b.program().equations().len() as u32;
    let made = b.push(op, operands, types.iter().cloned().collect(), e.place())?.result().index();
    if pure {
        shared.entry(key).or_default().push(index);
    }
    Ok(made)
}

fn hash_of(op: &Op, operands: &[Atom]) -> u64 {
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
    op.name().hash(&mut h);
    operands.hash(&mut h);
    for (_, p) in op.params() {
        param(&p, &mut h);
    }
    h.finish()
}
