//! What every step of a loop gives away, and what is then only summed over the elements of each step, is made again where that takes less than going through memory:
//! a second loop computes it and sums it up, and the array of all steps is gone.
//!
//! So it is with derivatives by what steps take: a power of each of many numbers, handed from step to step, is saved for each step, only to be multiplied and summed.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::nested::{Made, Nested, equations_among};
use super::simplify::map_atom;
use super::{Exactness, applied, visit};
use crate::error::{Location, Result, error, fail};
use crate::primitives::Op;
use crate::primitives::control::Scan;
use crate::primitives::reduce::ReduceSum;
use crate::primitives::shaping::Broadcast;
use crate::program::{Atom, Builder, Constant, Equation, Program, ValueId};
use crate::scalar::Form;
use crate::types::{DType, Type};

/// What takes less memory stays in a near cache.
const NEAR: u128 = 1 << 20;
/// What a number that is known only at run time is taken for.
const UNKNOWN: i64 = 1024;
/// A byte on its way to memory and back takes about so many nanoseconds.
const BYTE: f32 = 0.1;
/// Steps of fewer elements are no loops of lanes.
const FEWEST: usize = 256;

/// Makes again; see the head of this file.
pub(super) fn in_sums(p: &Program, _: Exactness) -> Result<Program> {
    Nested::run(p, &|p, nested| {
        let (defined, plans) = plans(p);
        equations_among(p, &mut |b, e, _, there| {
            let sum = e.results().next().and_then(|r| plans.get(&r));
            match sum {
                Some(plan) => Ok(Made::There(vec![plan.write(p, &defined, b, there)?])),
                None => Ok(Made::As(nested.op(e.op())?)),
            }
        })
    })
}

/// A sum over the elements of each step, of what is made of a stacked result of a loop.
struct Plan {
    /// The loop, and which of its outputs it is.
    scan: usize,
    output: usize,
    /// What is made of it, in order; the last is the sum.
    made: Vec<usize>,
}

/// The array that is the same in every step, or the number.
fn repeated(p: &Program, defined: &[Option<usize>], a: Atom) -> Option<Atom> {
    let e = &p.equations()[defined[a.value()?.index()]?];
    let view = e.op().downcast::<Broadcast>()?;
    let from = p.operands(e)[0];
    let whole = view.axes.iter().copied().eq(1..view.shape.rank()) && p.ty(from).shape()[..] == view.shape[1..];
    (whole || view.axes.is_empty()).then_some(from)
}

/// Which equation makes each value, and the sums that are worth it, by their result.
fn plans(p: &Program) -> (Vec<Option<usize>>, FxHashMap<ValueId, Plan>) {
    let (mut defined, mut plans) = (Vec::new(), FxHashMap::default());
    let is_scan = |e: &Equation| e.op().is::<Scan>();
    if !p.equations().iter().any(is_scan) {
        return (defined, plans);
    }
    defined.resize(p.value_count(), None);
    let mut uses: Vec<Vec<usize>> = vec![Vec::new(); p.value_count()];
    for (i, e) in p.equations().iter().enumerate() {
        visit();
        e.results().for_each(|r| defined[r.index()] = Some(i));
        p.operands(e).iter().filter_map(|a| a.value()).for_each(|v| uses[v.index()].push(i));
    }
    let returned: FxHashSet<ValueId> = p.outputs().iter().filter_map(|a| a.value()).collect();
    for (i, e) in p.equations().iter().enumerate().filter(|(_, e)| is_scan(e)) {
        let Some(scan) = e.op().downcast::<Scan>() else { continue };
        for (k, r) in e.results().enumerate().skip(scan.carries) {
            let sums = || sums_of(p, (&defined, &uses), &returned, r).filter(|_| pays(scan, k, p.ty(r)));
            if !returned.contains(&r) {
                for (sum, made) in sums().unwrap_or_default() {
                    plans.insert(sum, Plan { scan: i, output: k, made });
                }
            }
        }
    }
    (defined, plans)
}

/// Whether it takes less to make a stacked result again than to keep it.
fn pays(scan: &Scan, output: usize, ty: &Type) -> bool {
    let body = &*scan.body;
    let element = body.ty(body.outputs()[output]);
    let large = ty.bytes_where(UNKNOWN) > NEAR && element.shape().count().is_none_or(|n| n >= FEWEST);
    let float = matches!(ty.dtype(), DType::F32 | DType::F64);
    if !large || !float || element.rank() == 0 || !body.effects().is_pure() {
        return false;
    }
    // What it needs of a step, and of the steps before.
    let carries = scan.consts..scan.consts + scan.carries;
    let mut makers: Vec<Option<&Equation>> = vec![None; body.value_count()];
    body.equations().iter().for_each(|e| e.results().for_each(|r| makers[r.index()] = Some(e)));
    let mut needed = vec![false; body.value_count()];
    let mut todo = vec![body.outputs()[output]];
    while let Some(a) = todo.pop() {
        let Some(v) = a.value().filter(|v| !std::mem::replace(&mut needed[v.index()], true)) else { continue };
        visit();
        if carries.contains(&v.index()) {
            todo.push(body.outputs()[v.index() - scan.consts]);
        }
        todo.extend(makers[v.index()].into_iter().flat_map(|e| body.operands(e)));
    }
    let alike = |ty: &Type| ty.rank() == 0 || ty.shape() == element.shape();
    let mut cost = 0.0;
    for e in body.equations().iter().filter(|e| e.results().any(|r| needed[r.index()])) {
        let from: Vec<DType> = body.operands(e).iter().map(|a| body.ty(*a).dtype()).collect();
        let form = match e.results().len() {
            1 => Form::of(e.op(), &from, body.ty(e.result()).dtype()).ok().flatten(),
            _ => None,
        };
        let number = e.op().is::<Broadcast>() && body.ty(body.operands(e)[0]).rank() == 0;
        if !body.operands(e).iter().all(|a| alike(body.ty(*a))) || !e.results().all(|r| alike(body.ty(r))) {
            return false;
        }
        match form {
            Some(form) => cost += form.cost(),
            None if number => {}
            None => return false,
        }
    }
    let whole = |i: usize| !needed[i] || body.inputs()[i].shape() == element.shape();
    carries.clone().all(whole) && cost <= BYTE * ty.dtype().size() as f32
}

/// The sums that are all that is done with a stacked result, with what is made of it for each. None if anything else is done.
fn sums_of(
    p: &Program,
    (defined, uses): (&[Option<usize>], &[Vec<usize>]),
    returned: &FxHashSet<ValueId>,
    stacked: ValueId,
) -> Option<Vec<(ValueId, Vec<usize>)>> {
    let shape = p.ty(stacked).shape();
    let mut made: FxHashSet<ValueId> = FxHashSet::from_iter([stacked]);
    let (mut todo, mut sums) = (vec![stacked], Vec::new());
    while let Some(v) = todo.pop() {
        for &i in &uses[v.index()] {
            visit();
            let e = &p.equations()[i];
            let r = e.results().next().filter(|_| e.results().len() == 1)?;
            if let Some(sum) = e.op().downcast::<ReduceSum>() {
                if !sum.axes.iter().copied().eq(1..shape.rank()) {
                    return None;
                }
                sums.push((i, r));
            } else if e.op().is_elementwise() && e.op().effects().is_pure() && p.ty(r).shape() == shape {
                if returned.contains(&r) {
                    return None;
                }
                if made.insert(r) {
                    todo.push(r);
                }
            } else {
                return None;
            }
        }
    }
    sums.sort_unstable();
    sums.dedup();
    // For each sum what it is made of, in the order of the program. What else it takes is read once more, by step, only if it is there anyway.
    let of_sum = |(i, r): (usize, ValueId)| {
        let mut needed: FxHashSet<usize> = FxHashSet::from_iter([i]);
        let mut todo = vec![i];
        while let Some(i) = todo.pop() {
            for a in p.operands(&p.equations()[i]) {
                let from = a.value().filter(|v| *v != stacked && made.contains(v)).and_then(|v| defined[v.index()]);
                todo.extend(from.filter(|from| needed.insert(*from)));
            }
        }
        let mut needed: Vec<usize> = needed.into_iter().collect();
        needed.sort_unstable();
        (r, needed)
    };
    Some(sums.into_iter().map(of_sum).collect())
}

/// The body of the second loop, as it is written.
struct Body<'a> {
    p: &'a Program,
    defined: &'a [Option<usize>],
    scan: &'a Scan,
    /// What is the same in every step, and what every step has another one of, besides what the loop takes.
    same: Vec<Atom>,
    sequences: Vec<Atom>,
}

impl Body<'_> {
    /// What an operand is for one step, and where it then stands among the inputs that are new. None: it is made, or a number.
    fn place(&mut self, a: Atom, made: &FxHashSet<Atom>) {
        if made.contains(&a) || self.p.constant(a).is_some_and(|c| c.splat_value().is_some()) {
            return;
        }
        let (list, a) = match repeated(self.p, self.defined, a) {
            Some(from) => (&mut self.same, from),
            None => (&mut self.sequences, a),
        };
        if !list.contains(&a) {
            list.push(a);
        }
    }
}

impl Plan {
    /// Writes the second loop where the sum was; gives its sums. `there`: the values before, by their number in the old program.
    fn write(&self, p: &Program, defined: &[Option<usize>], b: &mut Builder, there: &[Atom]) -> Result<Atom> {
        let loop_ = &p.equations()[self.scan];
        let scan = loop_.op().downcast::<Scan>().ok_or_else(|| error!(Verify, "no loop is made again"))?;
        let stacked = Atom::from(loop_.results().nth(self.output).ok_or_else(|| error!(Verify, "no result"))?);
        let mut made: FxHashSet<Atom> = FxHashSet::from_iter([stacked]);
        let mut body = Body { p, defined, scan, same: Vec::new(), sequences: Vec::new() };
        for e in self.made.iter().map(|i| &p.equations()[*i]) {
            p.operands(e).iter().for_each(|a| body.place(*a, &made));
            made.insert(e.result().into());
        }
        let (step, sum) = body.write(stacked, self)?;
        let old = p.operands(loop_);
        let (consts, rest) = old.split_at(scan.consts);
        let operands = consts.iter().chain(&body.same).chain(rest).chain(&body.sequences);
        let operands = operands.map(|a| map_atom(p, there, b, *a)).collect::<Result<Vec<Atom>>>()?;
        let again = Scan { body: Arc::new(step), consts: scan.consts + body.same.len(), ..scan.clone() };
        applied("what a loop stacks is made again in the sums that take it");
        let results = b.equation(Op::new(again), &operands, sum)?.results();
        results.last().map(Atom::from).ok_or_else(|| error!(Verify, "a loop without results"))
    }
}

impl Body<'_> {
    /// A step that ends in the sum, and where the sum stood.
    fn write(&self, stacked: Atom, plan: &Plan) -> Result<(Program, Location)> {
        let (p, scan) = (self.p, self.scan);
        let mut b = Builder::new(scan.body.name());
        let (consts, rest) = scan.body.inputs().split_at(scan.consts);
        let element = |a: &Atom| p.ty(*a).with_shape(p.ty(*a).shape().without(|axis| axis == 0));
        let mut inputs = Vec::new();
        let types = consts.iter().cloned().chain(self.same.iter().map(|a| p.ty(*a).clone()));
        for ty in types.chain(rest.iter().cloned()).chain(self.sequences.iter().map(element)) {
            inputs.push(Atom::from(b.input(ty)?));
        }
        let (taken, after) = (scan.consts + self.same.len(), scan.consts + self.same.len() + rest.len());
        let own: Vec<Atom> = inputs[..scan.consts].iter().chain(&inputs[taken..after]).copied().collect();
        let mut outputs = b.inline(&scan.body, &own, Location::default())?;
        let mut now: FxHashMap<Atom, Atom> = FxHashMap::from_iter([(stacked, outputs[plan.output])]);
        now.extend(self.sequences.iter().copied().zip(inputs[after..].iter().copied()));
        outputs.truncate(scan.carries);
        let mut place = Location::default();
        for e in plan.made.iter().map(|i| &p.equations()[*i]) {
            place = e.place();
            let mut operands = Vec::new();
            for a in p.operands(e) {
                let ty = element(a);
                let repeated = repeated(p, self.defined, *a).and_then(|from| self.same.iter().position(|s| *s == from));
                operands.push(match (now.get(a), p.constant(*a).and_then(|c| c.splat_value()), repeated) {
                    (Some(now), ..) => *now,
                    (_, Some(number), _) => b.constant(Constant::splat(ty, number)),
                    (.., Some(k)) => {
                        let from = inputs[scan.consts + k];
                        let view = Broadcast { shape: ty.shape().clone(), axes: (0..b.ty(from).rank()).collect() };
                        match *b.ty(from) == ty {
                            true => from,
                            false => b.equation(Op::new(view), &[from], place)?.result().into(),
                        }
                    }
                    _ => fail!(Verify, "a step takes what is not there"),
                });
            }
            let op = match e.op().is::<ReduceSum>() {
                true => Op::new(ReduceSum { axes: (0..p.ty(stacked).rank() - 1).collect() }),
                false => e.op().clone(),
            };
            now.insert(e.result().into(), b.equation(op, &operands, place)?.result().into());
            if e.op().is::<ReduceSum>() {
                outputs.extend(now.get(&e.result().into()));
            }
        }
        Ok((b.finish(outputs), place))
    }
}
