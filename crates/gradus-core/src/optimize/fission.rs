//! Takes products out of scans where one product over all steps does the same: a large product is faster than many small
//! ones, and a sum that is as large as a matrix is not read and written in every step.
//!
//! Before the loop: the product of a sequence's element by what is the same in every step, `y_t = x_t·W`, is the element
//! of `Y = X·W`. After it: a carry that only adds up products, `s' = s + a_tᵀ·b_t`, is `s + Aᵀ·B` with the steps among the
//! contracted axes. What it needs of a step is stacked, unless it is an element of a sequence already.
//!
//! Both take memory for all steps where there was some for one, so they are made only where the loop's sequences take
//! as much anyway, and where a step's part is smaller than the matrix that it is multiplied with or added to. The order of float
//! sums changes, and nothing else: a product is never -0.0, so `0.0 + Aᵀ·B` is `Aᵀ·B`.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::nested::{Made, Nested, equations};
use super::{Exactness, applied, visit};
use crate::error::{Location, Result};
use crate::primitives::Op;
use crate::primitives::control::Scan;
use crate::primitives::dot::DotGeneral;
use crate::primitives::elementwise::Add;
use crate::primitives::reduce::ReduceSum;
use crate::primitives::shaping::{Broadcast, Permute, Reshape};
use crate::program::{Atom, Builder, Equation, Program, ValueId};
use crate::types::{DType, Dim, Scalar, Type};

/// Takes products out of scans; see the head of this file.
pub(super) fn split(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &|p, nested| {
        equations(p, &mut |b, e, operands| {
            let op = nested.op(e.op())?;
            let split = match op.downcast::<Scan>() {
                Some(scan) => split_scan(b, scan, operands, e.place())?,
                None => None,
            };
            Ok(split.map_or(Made::As(op), Made::There))
        })
    })
}

/// So many changes of shape are looked through. The optimizer leaves few in a row; the limit keeps its work linear.
const MOST_VIEWS: usize = 8;

/// A value of a body behind changes of shape, which are listed as they apply to all steps at once.
struct Seen {
    root: ValueId,
    views: Vec<Op>,
}

/// What a carry adds in a step: a product or a sum over axes, and changes of its shape.
struct Term<'a> {
    equation: &'a Equation,
    /// The operands of its equation.
    operands: Vec<Seen>,
    views: Vec<Op>,
}

/// A carry that is only added to.
struct Accumulation<'a> {
    carry: usize,
    terms: Vec<Term<'a>>,
}

impl Accumulation<'_> {
    fn roots(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.terms.iter().flat_map(|t| &t.operands).map(|seen| seen.root)
    }

    fn has_product(&self) -> bool {
        self.terms.iter().any(|t| t.equation.op().is::<DotGeneral>())
    }
}

/// A product of an element of a sequence by what is the same in every step.
struct Product<'a> {
    equation: &'a Equation,
    dot: &'a DotGeneral,
    /// Which operand is the element.
    side: usize,
    element: Seen,
}

/// A loop as this pass sees it.
struct Loop<'a> {
    scan: &'a Scan,
    body: &'a Program,
    /// Whether an operand has just the type that the body wants: dimensions that are equal by a condition may differ in
    /// their text, and then nothing can take its place.
    fits: Vec<bool>,
    /// For the elements of sequences among the body's inputs, the sequences.
    sequences: Vec<Option<Atom>>,
    /// The equation that defines each value of the body.
    definitions: Vec<Option<&'a Equation>>,
    uses: Vec<u32>,
    /// Whether a value of the body is made of constants alone, by operations that cannot fail.
    fixed: Vec<bool>,
}

fn is_float(ty: &Type) -> bool {
    matches!(ty.dtype(), DType::F32 | DType::F64)
}

impl<'a> Loop<'a> {
    fn new(b: &Builder, scan: &'a Scan, operands: &[Atom]) -> Loop<'a> {
        let body = &*scan.body;
        let first = scan.consts + scan.carries;
        let fits: Vec<bool> = (body.inputs().iter().zip(operands).enumerate())
            .map(|(i, (ty, a))| if i < first { b.ty(*a) == ty } else { *b.ty(*a) == stacked(ty, &scan.length) })
            .collect();
        let sequence = |i: usize| (i >= first && fits[i]).then(|| operands[i]);
        let sequences = (0..fits.len()).map(sequence).collect();
        let mut definitions = vec![None; body.value_count()];
        let mut fixed: Vec<bool> = (0..fits.len()).map(|i| i < scan.consts && fits[i]).collect();
        fixed.resize(body.value_count(), false);
        for e in body.equations() {
            visit();
            let same = |a: &Atom| a.value().is_none_or(|v| fixed[v.index()]);
            let stays = e.op().is_total() && e.op().effects().is_pure() && body.operands(e).iter().all(same);
            for r in e.results() {
                definitions[r.index()] = Some(e);
                fixed[r.index()] = stays;
            }
        }
        Loop { scan, body, fits, sequences, definitions, uses: body.use_counts(), fixed }
    }

    /// The sequence whose elements a value of the body is.
    fn sequence(&self, v: ValueId) -> Option<Atom> {
        self.sequences.get(v.index()).copied().flatten()
    }

    /// The value behind an atom's changes of shape; none for a constant.
    fn seen(&self, atom: Atom) -> Option<Seen> {
        let mut root = atom.value()?;
        let mut views = Vec::new();
        while views.len() < MOST_VIEWS
            && let Some(e) = self.definitions[root.index()]
            && let Some(view) = over_steps(e.op(), &self.scan.length)
        {
            visit();
            root = self.body.operands(e)[0].value()?;
            views.push(view);
        }
        views.reverse();
        Some(Seen { root, views })
    }

    /// What an equation adds to a carry through these changes of shape, if it can be added up after the loop.
    fn term(&self, equation: &'a Equation, mut views: Vec<Op>) -> Option<Term<'a>> {
        if !equation.op().is::<DotGeneral>() && !equation.op().is::<ReduceSum>() {
            return None;
        }
        let operands: Option<Vec<Seen>> = self.body.operands(equation).iter().map(|a| self.seen(*a)).collect();
        let operands = operands.filter(|all| all.iter().all(|seen| !self.fixed[seen.root.index()]))?;
        views.reverse();
        Some(Term { equation, operands, views })
    }

    /// A carry whose next value is itself and terms, added in any order. Nothing else may use them, so that all of it leaves
    /// the loop.
    fn accumulation(&self, carry: usize) -> Option<Accumulation<'a>> {
        let start = ValueId::new(self.scan.consts + carry);
        let end = self.body.outputs()[carry].value()?;
        if !is_float(self.body.ty(start)) || !self.fits[start.index()] {
            return None;
        }
        let (mut terms, mut returns) = (Vec::new(), false);
        let mut left: Vec<(ValueId, Vec<Op>)> = vec![(end, Vec::new())];
        while let Some((v, mut views)) = left.pop() {
            visit();
            if self.uses[v.index()] != 1 || views.len() > MOST_VIEWS {
                return None;
            }
            if v == start {
                returns = true;
                // It would have to be turned in every step.
                if !views.is_empty() {
                    return None;
                }
                continue;
            }
            let e = self.definitions[v.index()]?;
            let operands = self.body.operands(e);
            if e.op().is::<Add>() {
                for a in operands {
                    left.push((a.value()?, views.clone()));
                }
            } else if e.op().is::<Permute>() || e.op().is::<Reshape>() {
                views.push(e.op().clone());
                left.push((operands[0].value()?, views));
            } else {
                terms.push(self.term(e, views)?);
            }
        }
        (returns && !terms.is_empty()).then_some(Accumulation { carry, terms })
    }

    /// The product of a sequence's element that an equation is.
    fn product(&self, equation: &'a Equation) -> Option<Product<'a>> {
        let dot = equation.op().downcast::<DotGeneral>().filter(|d| d.lhs_batch.is_empty())?;
        let operands = self.body.operands(equation);
        let is_fixed = |a: Atom| a.value().is_none_or(|v| self.fixed[v.index()]);
        let side = (0..2).find(|i| is_fixed(operands[1 - i]))?;
        let element = self.seen(operands[side]).filter(|seen| self.sequence(seen.root).is_some())?;
        Some(Product { equation, dot, side, element })
    }

    fn bytes(&self, v: ValueId) -> u128 {
        bytes_of(self.body.ty(v))
    }
}

/// The type of all steps' values, stacked.
fn stacked(ty: &Type, length: &Dim) -> Type {
    ty.with_shape(ty.shape().inserted(0, length.clone()))
}

fn shifted(axes: &[usize]) -> Vec<usize> {
    axes.iter().map(|a| a + 1).collect()
}

fn with_steps(axes: &[usize]) -> Vec<usize> {
    std::iter::once(0).chain(shifted(axes)).collect()
}

/// A change of shape as it is for all steps at once, with the steps in front.
fn over_steps(op: &Op, length: &Dim) -> Option<Op> {
    let all = |shape: &crate::types::Shape| shape.inserted(0, length.clone());
    if let Some(v) = op.downcast::<Permute>() {
        return Some(Op::new(Permute { axes: with_steps(&v.axes) }));
    }
    if let Some(v) = op.downcast::<Reshape>() {
        return Some(Op::new(Reshape { shape: all(&v.shape) }));
    }
    let v = op.downcast::<Broadcast>()?;
    Some(Op::new(Broadcast { shape: all(&v.shape), axes: with_steps(&v.axes) }))
}

/// What leaves a loop.
#[derive(Default)]
struct FissionPlan<'a> {
    products: Vec<Product<'a>>,
    accumulations: Vec<Accumulation<'a>>,
    /// Values of the body that are stacked for the accumulations, and the place of each among them.
    stacks: Vec<ValueId>,
    places: FxHashMap<ValueId, usize>,
}

/// The bytes of a type. A size that is known only at run time is taken for a batch, which is mostly small beside the width of layers.
fn bytes_of(ty: &Type) -> u128 {
    ty.bytes_where(32)
}

/// What a number of steps is taken for that is known only at run time.
const STEPS_UNKNOWN: u128 = 64;

/// A loop may take so many bytes more, whatever its sequences take.
const LEAST_ROOM: u128 = 1 << 20;

fn plan<'a>(l: &Loop<'a>) -> FissionPlan<'a> {
    let mut plan = FissionPlan::default();
    let steps = match l.scan.length.constant() {
        // One step, or none, is what it was.
        Some(n) if n > 1 => n as u128,
        Some(_) => return plan,
        None => STEPS_UNKNOWN,
    };
    let inside = l.body.inputs()[l.scan.consts + l.scan.carries..].iter().map(bytes_of);
    let made = l.body.outputs()[l.scan.carries..].iter().map(|a| bytes_of(l.body.ty(*a)));
    let mut room = (steps * inside.chain(made).sum::<u128>()).max(LEAST_ROOM);
    let mut takes = |bytes: u128| {
        let fits = steps * bytes <= room;
        room -= if fits { steps * bytes } else { 0 };
        fits
    };
    for e in l.body.equations() {
        visit();
        let Some(product) = l.product(e) else { continue };
        let matrix = bytes_of(l.body.ty(l.body.operands(e)[1 - product.side]));
        let bytes = l.bytes(e.result());
        if is_float(l.body.ty(e.result())) && bytes <= matrix && takes(bytes) {
            plan.products.push(product);
        }
    }
    let found: Vec<Accumulation<'_>> = (0..l.scan.carries).filter_map(|k| l.accumulation(k)).collect();
    // Products first: sums of what they stack come for nothing.
    let (products, sums): (Vec<_>, Vec<_>) = found.into_iter().partition(Accumulation::has_product);
    for sum in products.into_iter().chain(sums) {
        let mut new: Vec<ValueId> =
            sum.roots().filter(|r| l.sequence(*r).is_none() && !plan.places.contains_key(r)).collect();
        new.sort_unstable();
        new.dedup();
        let bytes: u128 = new.iter().map(|r| l.bytes(*r)).sum();
        let limit = if sum.has_product() { l.bytes(ValueId::new(l.scan.consts + sum.carry)) } else { 0 };
        if bytes <= limit && takes(bytes) {
            for v in new {
                plan.places.insert(v, plan.stacks.len());
                plan.stacks.push(v);
            }
            plan.accumulations.push(sum);
        }
    }
    plan
}

/// The results of a scan of which a part is computed before it and a part after; none if it stays as it is.
fn split_scan(b: &mut Builder, scan: &Scan, operands: &[Atom], place: Location) -> Result<Option<Vec<Atom>>> {
    let body = &*scan.body;
    let l = Loop::new(b, scan, operands);
    let plan = plan(&l);
    if plan.products.is_empty() && plan.accumulations.is_empty() {
        return Ok(None);
    }
    let before = products(b, &l, &plan, operands, place)?;
    // The loop that is left: without the carries that add up, with the products as sequences and the stacks as results.
    let mut stays = vec![true; scan.carries];
    plan.accumulations.iter().for_each(|a| stays[a.carry] = false);
    let kept: Vec<usize> = (0..scan.carries).filter(|k| stays[*k]).collect();
    let (first, rest) = (scan.consts, scan.consts + scan.carries);
    let inputs = (0..first).chain(kept.iter().map(|k| first + k)).chain(rest..body.inputs().len());
    let mut given: Vec<ValueId> = inputs.map(ValueId::new).collect();
    let mut taken: Vec<Atom> = given.iter().map(|v| operands[v.index()]).collect();
    given.extend(plan.products.iter().map(|p| p.equation.result()));
    taken.extend(before);
    let mut outputs: Vec<Atom> = kept.iter().map(|k| body.outputs()[*k]).collect();
    outputs.extend_from_slice(&body.outputs()[scan.carries..]);
    outputs.extend(plan.stacks.iter().map(|v| Atom::from(*v)));
    let less = body.between(&given, &outputs, true)?;
    let mut results: Vec<Atom> = Vec::new();
    if !outputs.is_empty() || !less.effects().is_pure() {
        let op = Scan { body: Arc::new(less), carries: kept.len(), ..scan.clone() };
        results = b.equation(Op::new(op), &taken, place)?.results().map(Atom::from).collect();
    }
    let stacks = results.split_off(results.len() - plan.stacks.len());
    let mut all = vec![None; scan.carries];
    let mut made = results.into_iter();
    kept.iter().for_each(|k| all[*k] = made.next());
    for a in &plan.accumulations {
        let of = |v: ValueId| plan.places.get(&v).map(|i| stacks[*i]).or_else(|| l.sequence(v));
        all[a.carry] = Some(added_up(b, a, operands[first + a.carry], &of, place)?);
    }
    all.extend(made.map(Some));
    Ok(Some(all.into_iter().flatten().collect()))
}

fn apply(b: &mut Builder, op: Op, operands: &[Atom], place: Location) -> Result<Atom> {
    visit();
    Ok(b.equation(op, operands, place)?.result().into())
}

fn viewed(b: &mut Builder, views: &[Op], atom: Atom, place: Location) -> Result<Atom> {
    views.iter().try_fold(atom, |a, view| apply(b, view.clone(), &[a], place))
}

/// The products before the loop, for all steps at once.
fn products(
    b: &mut Builder,
    l: &Loop<'_>,
    plan: &FissionPlan<'_>,
    operands: &[Atom],
    place: Location,
) -> Result<Vec<Atom>> {
    let body = l.body;
    // What the products take that is the same in every step, and what that is made of.
    let matrices: Vec<Atom> = plan.products.iter().map(|p| body.operands(p.equation)[1 - p.side]).collect();
    let needed = body.needed_values(&matrices);
    let mut there: Vec<Option<Atom>> = operands[..l.scan.consts].iter().copied().map(Some).collect();
    there.resize(body.value_count(), None);
    if !matrices.is_empty() {
        for e in body.equations().iter().filter(|e| e.results().any(|r| needed[r.index()])) {
            let taken = b.mapped(body, &there, body.operands(e))?;
            let types = e.results().map(|r| body.ty(r).clone()).collect();
            visit();
            let made = b.push(e.op().clone(), &taken, types, place_of(e, place))?.results();
            e.results().zip(made).for_each(|(old, new)| there[old.index()] = Some(new.into()));
        }
    }
    let mut made = Vec::with_capacity(plan.products.len());
    for (p, matrix) in plan.products.iter().zip(matrices) {
        let at = place_of(p.equation, place);
        let [matrix] = b.mapped(body, &there, &[matrix])?[..] else { continue };
        applied("scan: a product with a sequence is made for all steps before");
        let Some(x) = l.sequence(p.element.root) else { continue };
        let x = viewed(b, &p.element.views, x, at)?;
        let own = [&p.dot.lhs_contract, &p.dot.rhs_contract];
        // The sequence comes first, so that its steps come out in front.
        let dot = DotGeneral {
            lhs_contract: shifted(own[p.side]),
            rhs_contract: own[1 - p.side].clone(),
            lhs_batch: Vec::new(),
            rhs_batch: Vec::new(),
        };
        let elements = b.ty(x).rank() - 1 - own[p.side].len();
        let mut y = apply(b, Op::new(dot), &[x, matrix], at)?;
        let rank = b.ty(y).rank();
        if p.side == 1 && elements > 0 && rank > elements + 1 {
            let axes = std::iter::once(0).chain(elements + 1..rank).chain(1..elements + 1).collect();
            y = apply(b, Op::new(Permute { axes }), &[y], at)?;
        }
        made.push(y);
    }
    Ok(made)
}

fn place_of(e: &Equation, place: Location) -> Location {
    if e.place().is_known() { e.place() } else { place }
}

/// What a carry is after the loop: what it was before and its terms of all steps.
fn added_up(
    b: &mut Builder,
    a: &Accumulation<'_>,
    start: Atom,
    of: &dyn Fn(ValueId) -> Option<Atom>,
    place: Location,
) -> Result<Atom> {
    let zero = b.program().constant(start).and_then(|c| c.splat_value());
    let mut sum = (zero != Some(Scalar::zero(b.ty(start).dtype()))).then_some(start);
    for term in &a.terms {
        let at = place_of(term.equation, place);
        let mut operands: SmallVec<[Atom; 2]> = SmallVec::new();
        for seen in &term.operands {
            if let Some(all) = of(seen.root) {
                operands.push(viewed(b, &seen.views, all, at)?);
            }
        }
        applied("scan: a sum of products or sums is made for all steps after");
        let op = match term.equation.op().downcast::<DotGeneral>() {
            // Σ_t a_t·b_t: the steps are one more contracted axis.
            Some(dot) => Op::new(DotGeneral {
                lhs_contract: with_steps(&dot.lhs_contract),
                rhs_contract: with_steps(&dot.rhs_contract),
                lhs_batch: shifted(&dot.lhs_batch),
                rhs_batch: shifted(&dot.rhs_batch),
            }),
            // Σ_t Σ_i x_t[i]: the steps are one more axis of the sum.
            None => {
                let axes = term.equation.op().downcast::<ReduceSum>().map_or(&[][..], |sum| &sum.axes);
                Op::new(ReduceSum { axes: with_steps(axes) })
            }
        };
        let made = apply(b, op, &operands, at)?;
        let made = viewed(b, &term.views, made, at)?;
        sum = Some(match sum {
            Some(before) => apply(b, Op::fixed(&Add), &[before, made], at)?,
            None => made,
        });
    }
    Ok(sum.unwrap_or(start))
}
