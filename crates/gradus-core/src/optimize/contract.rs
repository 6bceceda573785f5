//! A product that only a sum takes in is rounded together with it: `a·b + c` becomes `mul_add a b c`.
//!
//! That changes the last bit of the sum, so it is decided once for each value and not for each place that computes it. A product is
//! taken in if it has one use in its program; who looks at the product besides sees the number that the sum has taken. But a value may
//! be computed in more than one program: a checkpoint begins again what was computed before it, a backward loop makes again what was
//! too cheap to save. There its product may have more uses, or be an input. So equal values of all programs are found
//! first ([`Numbers`]), and a sum takes in a product only if it can wherever it is computed.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::nested::{Made, Nested, equations};
use super::simplify::hash_of;
use super::{Exactness, visit};
use crate::error::{Result, error};
use crate::primitives::Op;
use crate::primitives::control::{Call, Checkpoint, Scan, Switch, While};
use crate::primitives::elementwise::{Add, Mul, MulAdd, Neg, Sub};
use crate::program::{Atom, Builder, Constant, Equation, Program, ValueId};
use crate::types::{DType, Scalar};

/// Takes products into sums; see the head of this file.
pub(super) fn into_sums(p: &Program, _: Exactness) -> Result<Program> {
    let mut numbers = Numbers { room: 4 * equations_in(p, &mut FxHashMap::default()) + 4096, ..Numbers::default() };
    let inputs: Vec<Number> = p.inputs().iter().map(|_| numbers.fresh()).collect();
    numbers.program(p, &inputs);
    let taken = numbers.decide();
    if taken.is_empty() {
        return Ok(p.clone());
    }
    Nested::run(p, &|p, nested| contracted(p, nested, &taken))
}

fn contracted(p: &Program, nested: &Nested<'_>, taken: &FxHashMap<Site, usize>) -> Result<Program> {
    let side = |i: usize| taken.get(&(address(p), i)).copied();
    // The products that go, with their factors once they are known.
    let mut products: FxHashMap<ValueId, Option<[Atom; 2]>> = FxHashMap::default();
    for (i, e) in p.equations().iter().enumerate() {
        products.extend(side(i).and_then(|side| p.operands(e)[side].value()).map(|v| (v, None)));
    }
    let mut next = 0;
    equations(p, &mut |b, e, operands| {
        next += 1;
        if e.op().is::<Mul>()
            && let Some(factors) = products.get_mut(&e.result())
        {
            *factors = operands.try_into().ok();
            // Nothing else takes it, so nothing will see what stands in its place.
            return Ok(Made::There(vec![operands[0]]));
        }
        let Some(side) = side(next - 1) else { return nested.op(e.op()).map(Made::As) };
        let factors = p.operands(e)[side].value().and_then(|v| products.get(&v).copied().flatten());
        let factors = factors.ok_or_else(|| error!(Verify, "a product that was not met before its sum"))?;
        Ok(Made::There(vec![fused(b, e, factors, operands[1 - side], side)?]))
    })
}

/// A program by where it is in memory.
fn address(p: &Program) -> usize {
    std::ptr::from_ref(p) as usize
}

/// The sum with the product at one side of it taken in.
fn fused(b: &mut Builder, e: &Equation, [x, y]: [Atom; 2], other: Atom, side: usize) -> Result<Atom> {
    let (x, y, other) = match (e.op().is::<Sub>(), side) {
        (false, _) => (x, y, other),
        // a·b - c = a·b + (-c)
        (true, 0) => (x, y, negated(b, e, other)?),
        // c - a·b = (-a)·b + c, with a number as the one that is negated.
        (true, _) if b.program().constant(y).is_some() => (x, negated(b, e, y)?, other),
        (true, _) => (negated(b, e, x)?, y, other),
    };
    Ok(b.equation(Op::fixed(&MulAdd), &[x, y, other], e.place())?.result().into())
}

fn negated(b: &mut Builder, e: &Equation, x: Atom) -> Result<Atom> {
    if let Some(c) = b.program().constant(x)
        && let Some(value) = c.splat_value()
    {
        let minus = match value {
            Scalar::F32(v) => Scalar::F32(-v),
            Scalar::F64(v) => Scalar::F64(-v),
            other => other,
        };
        let minus = Constant::splat(c.ty().clone(), minus);
        return Ok(b.constant(minus));
    }
    Ok(b.equation(Op::fixed(&Neg), &[x], e.place())?.result().into())
}

/// How many equations there are, those of each nested program once.
fn equations_in(p: &Program, seen: &mut FxHashMap<usize, Arc<Program>>) -> usize {
    let mut count = p.equations().len();
    for nested in p.equations().iter().filter(|e| e.op().holds_programs()).flat_map(|e| e.op().programs()) {
        if seen.insert(address(&nested), nested.clone()).is_none() {
            count += equations_in(&nested, seen);
        }
    }
    count
}

/// What a value is: values with one number are equal, in whichever programs they are.
type Number = u32;

/// An operation on values with these numbers, and the number of its first result.
type Known = (Op, SmallVec<[Number; 3]>, Number);

/// Where a sum stands: its program and which equation of it.
type Site = (usize, usize);

/// Sides of a sum, one bit each, at which it can take in a product.
type Sides = u8;

/// The values of a program and of those in it. An element of a sequence in a loop counts as one value, the same for every loop
/// over the sequence; what another loop has stacked is there what it was in that loop.
#[derive(Default)]
struct Numbers {
    count: Number,
    operations: FxHashMap<u64, SmallVec<[Known; 1]>>,
    constants: FxHashMap<Constant, Number>,
    /// What a loop sees of a sequence.
    elements: FxHashMap<Number, Number>,
    /// For each number of a sum, where it can take in a product wherever it is computed.
    sides: FxHashMap<Number, Sides>,
    /// Each sum with the numbers it has. A program that is used twice gives its values two.
    sums: FxHashMap<Site, SmallVec<[Number; 1]>>,
    /// Nested programs with what they were last given and what they gave.
    nested: FxHashMap<usize, (Vec<Number>, Vec<Number>)>,
    /// Equations that may still be looked at: a program that is used often is not followed into each use.
    room: usize,
}

impl Numbers {
    fn fresh(&mut self) -> Number {
        self.count += 1;
        self.count
    }

    fn fresh_for(&mut self, n: usize) -> Vec<Number> {
        (0..n).map(|_| self.fresh()).collect()
    }

    /// Numbers the values of a program; gives those of its outputs.
    fn program(&mut self, p: &Program, inputs: &[Number]) -> Vec<Number> {
        let uses = p.use_counts();
        let constants: Vec<Number> = p.constants().iter().map(|c| self.constant(c)).collect();
        let mut values = inputs.to_vec();
        // For each value, whether it is a product that nothing but one equation takes.
        let mut products = vec![false; inputs.len()];
        for (i, e) in p.equations().iter().enumerate() {
            visit();
            self.room = self.room.saturating_sub(1);
            let atoms = p.operands(e);
            let of = |a: &Atom| match (a.value(), a.constant_index()) {
                (Some(v), _) => values[v.index()],
                (None, at) => constants[at.unwrap_or(0)],
            };
            let operands: SmallVec<[Number; 3]> = atoms.iter().map(of).collect();
            let r = e.result();
            let results = e.results().len();
            let wide = |dtype: DType| dtype.is_float() && dtype.size() >= 4;
            let whole = results == 1 && wide(p.ty(r).dtype());
            if e.op().holds_programs() {
                let made = self.holder(e.op(), &operands, results);
                values.extend(made);
            } else {
                let first = self.operation(e.op(), operands, results);
                values.extend((0..results as Number).map(|k| first + k));
                if whole && (e.op().is::<Add>() || e.op().is::<Sub>()) {
                    // Sizes that are only equal by a condition have two texts, and the sum must keep its own.
                    let open =
                        |k: usize| atoms[k].value().is_some_and(|v| products[v.index()]) && p.ty(atoms[k]) == p.ty(r);
                    let sides = Sides::from(open(0)) | Sides::from(open(1)) << 1;
                    self.sides.entry(first).and_modify(|s| *s &= sides).or_insert(sides);
                    let numbers = self.sums.entry((address(p), i)).or_default();
                    if !numbers.contains(&first) {
                        numbers.push(first);
                    }
                }
            }
            let product = whole && e.op().is::<Mul>() && uses[r.index()] == 1;
            products.extend(std::iter::repeat_n(product, results));
        }
        let of = |a: &Atom| a.value().map_or_else(|| constants[a.constant_index().unwrap_or(0)], |v| values[v.index()]);
        p.outputs().iter().map(of).collect()
    }

    fn constant(&mut self, c: &Constant) -> Number {
        let next = self.count + 1;
        let number = *self.constants.entry(c.clone()).or_insert(next);
        self.count = self.count.max(number);
        number
    }

    /// The number of the first result.
    fn operation(&mut self, op: &Op, operands: SmallVec<[Number; 3]>, results: usize) -> Number {
        let first = self.count + 1;
        if op.effects().is_pure() {
            let known = self.operations.entry(hash_of(op, &operands)).or_default();
            if let Some((.., found)) = known.iter().find(|(o, x, _)| *x == operands && o == op) {
                return *found;
            }
            known.push((op.clone(), operands, first));
        }
        self.count += results as Number;
        first
    }

    /// The results of an operation that holds programs, which see the operands as their inputs.
    fn holder(&mut self, op: &Op, operands: &[Number], results: usize) -> Vec<Number> {
        let called = op.downcast::<Call>().map(|c| &c.program);
        if let Some(program) = called.or_else(|| op.downcast::<Checkpoint>().map(|c| &c.program)) {
            return self.inside(program, operands.to_vec());
        }
        if let Some(switch) = op.downcast::<Switch>() {
            for branch in &switch.branches {
                self.inside(branch, operands[1..].to_vec());
            }
        } else if let Some(repeat) = op.downcast::<While>() {
            let carries = self.fresh_for(operands.len() - repeat.consts);
            let inputs = [&operands[..repeat.consts], &carries].concat();
            self.inside(&repeat.condition, inputs.clone());
            self.inside(&repeat.body, inputs);
        } else if let Some(scan) = op.downcast::<Scan>() {
            let mut inputs = operands[..scan.consts].to_vec();
            inputs.extend(self.fresh_for(scan.carries));
            for sequence in &operands[scan.consts + scan.carries..] {
                let next = self.count + 1;
                let element = *self.elements.entry(*sequence).or_insert(next);
                self.count = self.count.max(element);
                inputs.push(element);
            }
            let outputs = self.inside(&scan.body, inputs);
            let made = self.fresh_for(results);
            self.elements.extend(made.iter().copied().zip(outputs).skip(scan.carries));
            return made;
        } else {
            for program in op.programs() {
                let inputs = self.fresh_for(program.inputs().len());
                self.inside(&program, inputs);
            }
        }
        self.fresh_for(results)
    }

    fn inside(&mut self, p: &Arc<Program>, inputs: Vec<Number>) -> Vec<Number> {
        match self.nested.get(&address(p)) {
            Some((given, gave)) if *given == inputs => return gave.clone(),
            Some(_) if self.room == 0 => return self.fresh_for(p.outputs().len()),
            _ => {}
        }
        let outputs = self.program(p, &inputs);
        self.nested.insert(address(p), (inputs, outputs.clone()));
        outputs
    }

    /// Which sums take in a product, and at which side. A sum with several numbers ties them: what cannot be done for one
    /// is done for none.
    fn decide(mut self) -> FxHashMap<Site, usize> {
        let tied: Vec<&SmallVec<[Number; 1]>> = self.sums.values().filter(|n| n.len() > 1).collect();
        let mut settled = false;
        while !settled {
            settled = true;
            for numbers in &tied {
                let all = numbers.iter().fold(Sides::MAX, |all, n| all & self.sides[n]);
                for n in *numbers {
                    let old = self.sides.insert(*n, all);
                    settled &= old == Some(all);
                }
            }
        }
        let side = |numbers: &SmallVec<[Number; 1]>| match self.sides[numbers.first()?] {
            0 => None,
            1 => Some(0),
            _ => Some(1),
        };
        self.sums.iter().filter_map(|(site, numbers)| Some((*site, side(numbers)?))).collect()
    }
}
