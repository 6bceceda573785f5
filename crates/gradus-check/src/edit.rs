//! Smaller programs from larger ones: each edit is tried by the shrinker and kept if the failure stays.

use std::sync::Arc;

use gradus_core::optimize::eliminate_dead_code;
use gradus_core::primitives::control::{Call, Checkpoint};
use gradus_core::primitives::{Op, Param};
use gradus_core::program::{Atom, Builder, Constant, ValueId, verify};
use gradus_core::types::Scalar;
use gradus_core::{Dim, Error, Location, Program, Result, Type};

/// What becomes of an equation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It goes; its results are inputs.
    Inputs,
    /// It goes; its results are ones.
    Ones,
    /// It goes; its only result is one of its operands, which has its type.
    Operand(usize),
    /// It is written out: the program it holds stands in its place.
    Inlined,
}

/// A program from another, equation by equation, with one that meets a fate.
fn rebuilt(p: &Program, at: usize, fate: &Fate) -> Result<Program> {
    let mut b = Builder::new(p.name());
    let mut there: Vec<Option<Atom>> = Vec::new();
    for t in p.inputs() {
        there.push(Some(b.input(t.clone())?.into()));
    }
    let gone = &p.equations()[at];
    let mut made = Vec::new();
    if *fate == Fate::Inputs {
        for r in gone.results() {
            made.push(Atom::from(b.input(p.ty(r).clone())?));
        }
    }
    b.require(p.constraints());
    for (k, e) in p.equations().iter().enumerate() {
        let known: Vec<Atom> = there.iter().map(|a| a.unwrap_or(Atom::from(ValueId::new(0)))).collect();
        let operands: Vec<Atom> = p.operands(e).iter().map(|a| mapped(p, &mut b, &known, *a)).collect();
        if k != at {
            let results: Vec<Atom> =
                b.equation(e.op().clone(), &operands, Location::unknown())?.results().map(Atom::from).collect();
            there.extend(results.into_iter().map(Some));
            continue;
        }
        match fate {
            Fate::Inputs => there.extend(made.iter().copied().map(Some)),
            Fate::Ones => {
                for r in e.results() {
                    let one = Constant::splat(p.ty(r).clone(), Scalar::one(p.ty(r).dtype()));
                    there.push(Some(b.constant(one)));
                }
            }
            Fate::Operand(i) => there.push(operands.get(*i).copied()),
            Fate::Inlined => {
                let inner = e.op().programs().remove(0);
                let results = inline(&mut b, &inner, &operands)?;
                there.extend(results.into_iter().map(Some));
            }
        }
    }
    let known: Vec<Atom> = there.into_iter().flatten().collect();
    let outputs = p.outputs().iter().map(|a| mapped(p, &mut b, &known, *a)).collect();
    Ok(b.finish(outputs))
}

fn inline(b: &mut Builder, p: &Program, inputs: &[Atom]) -> Result<Vec<Atom>> {
    let mut there = inputs.to_vec();
    for e in p.equations() {
        let operands: Vec<Atom> = p.operands(e).iter().map(|a| mapped(p, b, &there, *a)).collect();
        let results: Vec<Atom> =
            b.equation(e.op().clone(), &operands, Location::unknown())?.results().map(Atom::from).collect();
        there.extend(results);
    }
    Ok(p.outputs().iter().map(|a| mapped(p, b, &there, *a)).collect())
}

/// The program with other operations, inputs and outputs: its types follow from its inputs.
fn inferred(
    p: &Program,
    input: &dyn Fn(&Type) -> Type,
    constant: &dyn Fn(&Constant) -> Option<Constant>,
    op: &dyn Fn(&Op) -> Result<Op>,
) -> Result<Program> {
    let mut b = Builder::new(p.name());
    let mut there: Vec<Atom> = Vec::new();
    for t in p.inputs() {
        there.push(b.input(input(t))?.into());
    }
    let atom = |b: &mut Builder, there: &[Atom], a: Atom| match p.constant(a) {
        Some(c) => b.constant(constant(c).unwrap_or_else(|| c.clone())),
        None => mapped(p, b, there, a),
    };
    for e in p.equations() {
        let operands: Vec<Atom> = p.operands(e).iter().map(|a| atom(&mut b, &there, *a)).collect();
        let results: Vec<Atom> =
            b.equation(op(e.op())?, &operands, Location::unknown())?.results().map(Atom::from).collect();
        there.extend(results);
    }
    let outputs = p.outputs().iter().map(|a| atom(&mut b, &there, *a)).collect();
    Ok(b.finish(outputs))
}

/// Parameters that are not sizes, whatever number they are.
const NO_SIZES: &[&str] = &[
    "axes",
    "axis",
    "lhs_contract",
    "rhs_contract",
    "lhs_batch",
    "rhs_batch",
    "offset_dims",
    "collapsed_dims",
    "index_batch_dims",
    "operand_batch_dims",
    "index_map",
    "update_window_dims",
    "inserted_dims",
    "keys",
    "consts",
    "carries",
    "step",
    "interior",
    "low",
    "high",
    "start",
    "exponent",
    "order",
    "residuals",
    "captures",
    "checkpoints",
];

/// The program with every size replaced, in types and parameters.
pub(crate) fn resized(p: &Program, size: &dyn Fn(i64) -> i64) -> Result<Program> {
    let dim = |d: &Dim| d.constant().map_or_else(|| d.clone(), |n| Dim::from(size(n)));
    let ty = |t: &Type| t.with_shape(t.shape().map(dim));
    fn param(p: Param, size: &dyn Fn(i64) -> i64) -> Result<Param> {
        Ok(match p {
            Param::Int(n) => Param::Int(size(n)),
            Param::List(items) => Param::List(items.into_iter().map(|p| param(p, size)).collect::<Result<_>>()?),
            Param::Program(p) => Param::Program(std::sync::Arc::new(resized(&p, size)?)),
            other => other,
        })
    }
    let op = |op: &Op| {
        let params = op.params().into_iter().map(|(n, p)| {
            let p = if NO_SIZES.contains(&n) { p } else { param(p, size)? };
            Ok((n.to_string(), p))
        });
        Op::from_text(op.name(), &params.collect::<Result<Vec<_>>>()?)
    };
    let constant = |c: &Constant| c.splat_value().map(|s| Constant::splat(ty(c.ty()), s));
    inferred(p, &ty, &constant, &op)
}

fn with_outputs(p: &Program, keep: &[usize]) -> Result<Program> {
    let mut b = Builder::new(p.name());
    let mut there: Vec<Atom> = Vec::new();
    for t in p.inputs() {
        there.push(b.input(t.clone())?.into());
    }
    b.require(p.constraints());
    let all = inline(&mut b, p, &there.clone())?;
    Ok(b.finish(keep.iter().map(|k| all[*k]).collect()))
}

/// The program without inputs that nothing reads, and with `same.1` read where `same.0` was.
fn with_inputs(p: &Program, same: Option<(usize, usize)>) -> Result<Program> {
    let read = p.read_inputs();
    let mut b = Builder::new(p.name());
    let mut there: Vec<Option<Atom>> = Vec::new();
    for (k, t) in p.inputs().iter().enumerate() {
        let drop = !read[k] || same.is_some_and(|(gone, _)| gone == k);
        there.push(if drop { None } else { Some(b.input(t.clone())?.into()) });
    }
    if let Some((gone, kept)) = same {
        there[gone] = there[kept];
    }
    b.require(p.constraints());
    // What is not read may be anything.
    let inputs: Vec<Atom> = there.into_iter().map(|a| a.unwrap_or(Atom::from(ValueId::new(0)))).collect();
    let outputs = inline(&mut b, p, &inputs)?;
    Ok(b.finish(outputs))
}

fn clean(p: Result<Program>) -> Option<Program> {
    let p = eliminate_dead_code(&p.ok()?, true);
    let p = if p.read_inputs().contains(&false) { with_inputs(&p, None).ok()? } else { p };
    verify(&p).ok()?;
    Some(p)
}

/// Programs a step smaller than this one, the boldest first.
pub(crate) fn smaller(p: &Program) -> Vec<Program> {
    let mut found: Vec<Option<Program>> = Vec::new();
    let outputs = p.outputs().len();
    if outputs > 1 {
        for k in 0..outputs {
            found.push(clean(with_outputs(p, &[k])));
        }
        for k in 0..outputs {
            let keep: Vec<usize> = (0..outputs).filter(|o| *o != k).collect();
            found.push(clean(with_outputs(p, &keep)));
        }
    }
    let n = p.equations().len();
    // A value as the only result: what comes after it goes.
    for k in (0..n).rev() {
        let e = &p.equations()[k];
        let operands = p.operands(e);
        if e.op().is::<Call>() || e.op().is::<Checkpoint>() {
            found.push(clean(rebuilt(p, k, &Fate::Inlined)));
        }
        found.push(clean(rebuilt(p, k, &Fate::Inputs)));
        if e.results().len() == 1 {
            for (i, a) in operands.iter().enumerate() {
                if p.ty(*a) == p.ty(e.result()) {
                    found.push(clean(rebuilt(p, k, &Fate::Operand(i))));
                }
            }
        }
        found.push(clean(rebuilt(p, k, &Fate::Ones)));
        if e.op().holds_programs() {
            found.extend(inside(p, k));
        }
    }
    for k in (1..p.inputs().len()).rev() {
        for j in 0..k {
            if p.inputs()[k] == p.inputs()[j] {
                found.push(clean(with_inputs(p, Some((k, j)))));
            }
        }
    }
    found.into_iter().flatten().collect()
}

/// The same with the programs that an equation holds made smaller, their inputs and outputs staying.
fn inside(p: &Program, at: usize) -> Vec<Option<Program>> {
    let mut found = Vec::new();
    let e = &p.equations()[at];
    let held = e.op().programs();
    for (which, body) in held.iter().enumerate() {
        for k in (0..body.equations().len()).rev() {
            let inner = &body.equations()[k];
            let mut fates = vec![Fate::Ones];
            if inner.results().len() == 1 {
                let same = |a: &Atom| body.ty(*a) == body.ty(inner.result());
                let operands = body.operands(inner).iter().enumerate();
                fates.extend(operands.filter(|(_, a)| same(a)).map(|(i, _)| Fate::Operand(i)));
            }
            for fate in fates {
                let Ok(smaller) = rebuilt(body, k, &fate) else { continue };
                let smaller = eliminate_dead_code(&smaller, true);
                let mut count = 0;
                let op = map_programs(e.op(), &mut |q| {
                    count += 1;
                    Ok(if count == which + 1 { smaller.clone() } else { q.clone() })
                });
                found.push(op.ok().and_then(|op| clean(with_op(p, at, &op))));
            }
        }
    }
    found
}

fn with_op(p: &Program, at: usize, op: &Op) -> Result<Program> {
    let which = std::cell::Cell::new(0);
    inferred(p, &|t| t.clone(), &|_| None, &|old| {
        let k = which.replace(which.get() + 1);
        Ok(if k == at { op.clone() } else { old.clone() })
    })
}

/// Sizes that stand in a program, the largest first.
fn sizes(p: &Program) -> Vec<i64> {
    let mut all: Vec<i64> = (0..p.value_count())
        .flat_map(|v| p.ty(ValueId::new(v)).shape().to_vec())
        .filter_map(|d| d.constant())
        .collect();
    all.sort_unstable();
    all.dedup();
    all.reverse();
    all
}

/// Programs with one size made smaller; sizes that are products of it follow, or stay.
pub(crate) fn with_smaller_sizes(p: &Program) -> Vec<Program> {
    let mut found = Vec::new();
    for n in sizes(p).into_iter().filter(|n| *n > 1) {
        let mut less: Vec<i64> = [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64].into_iter().filter(|m| *m < n).collect();
        less.push(n - 1);
        less.dedup();
        for m in less {
            let plain = |s: i64| if s == n { m } else { s };
            let products = |s: i64| if s > 0 && s % n == 0 { s / n * m } else { s };
            // Slices that leave one out.
            let around = |s: i64| if (s - n).abs() <= 2 { s - n + m } else { s };
            let tries: [&dyn Fn(i64) -> i64; 3] = [&plain, &products, &around];
            let made = tries.iter().find_map(|f| resized(p, *f).ok().filter(|q| verify(q).is_ok()));
            found.extend(made);
        }
    }
    found
}

/// An atom of a program in another that is being built from it.
fn mapped(p: &Program, b: &mut Builder, there: &[Atom], a: Atom) -> Atom {
    match (a.value(), p.constant(a)) {
        (Some(v), _) => there[v.index()],
        (None, Some(c)) => b.constant(c.clone()),
        // An atom is one of the two.
        (None, None) => a,
    }
}

/// An operation with every program it holds replaced.
fn map_programs(op: &Op, f: &mut dyn FnMut(&Program) -> Result<Program>) -> Result<Op> {
    fn map(param: Param, f: &mut dyn FnMut(&Program) -> Result<Program>) -> Result<Param> {
        Ok(match param {
            Param::Program(p) => Param::Program(Arc::new(f(&p)?)),
            Param::List(items) => Param::List(items.into_iter().map(|p| map(p, f)).collect::<Result<_, Error>>()?),
            other => other,
        })
    }
    let params = op.params().into_iter().map(|(n, p)| Ok((n.to_string(), map(p, f)?)));
    Op::from_text(op.name(), &params.collect::<Result<Vec<_>>>()?)
}
