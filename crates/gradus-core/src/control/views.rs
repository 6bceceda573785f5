//! Parts of what is the same in every step leave a loop when it is made, and a branch when it is: a slice of the weights is taken once.
//!
//! It is for reverse mode. The cotangent of a slice inside a loop is one of the whole array, with zeros around it, and every step adds all of it to the sum;
//! that of a slice outside is a sum as large as the slice, which is put into its place once. A view computes nothing and cannot fail, so nobody loses who does
//! not run the loop. Loops inside are made before the loop around them, so what leaves one is a view in the other and leaves that, too.

use rustc_hash::FxHashMap;

use crate::array::{Array, Form};
use crate::error::Result;
use crate::primitives::Op;
use crate::primitives::shaping::{Permute, Reshape, Reverse, Slice};
use crate::program::{Atom, Builder, Equation, Program, ValueId};
use crate::trace::inline;

/// Programs without views of what they are given.
pub(super) struct Outside {
    /// The programs.
    pub programs: Vec<Program>,
    /// What they are given instead: what they take other things of, and views.
    pub given: Vec<Array>,
}

/// Whether an operation shows its operand, or a part of it, and nothing twice: then there is no more to carry along than before.
fn shows_once(op: &Op) -> bool {
    op.is::<Slice>() || op.is::<Reshape>() || op.is::<Permute>() || op.is::<Reverse>()
}

/// The parts that a program shows of inputs, and of nothing else.
struct Views {
    /// For each value, the view that it is; equal ones are one.
    of: Vec<Option<ValueId>>,
    /// Those that something else needs.
    passed: Vec<ValueId>,
    /// For each value, whether something else needs it itself.
    needed: Vec<bool>,
}

impl Views {
    fn find(p: &Program, is_given: impl Fn(usize) -> bool) -> Views {
        let mut of: Vec<Option<ValueId>> = vec![None; p.value_count()];
        let mut is_part = vec![false; p.value_count()];
        let mut equal: FxHashMap<ValueId, Vec<(&Op, ValueId)>> = FxHashMap::default();
        for e in p.equations().iter().filter(|e| shows_once(e.op())) {
            let Some(x) = p.operands(e)[0].value() else { continue };
            let Some(x) = of[x.index()].or_else(|| is_given(x.index()).then_some(x)) else { continue };
            is_part[e.result().index()] = is_part[x.index()] || e.op().is::<Slice>();
            let others = equal.entry(x).or_default();
            let first = others.iter().find(|(op, _)| *op == e.op()).map(|(_, first)| *first);
            of[e.result().index()] = Some(first.unwrap_or_else(|| {
                others.push((e.op(), e.result()));
                e.result()
            }));
        }
        // The cotangent of what shows all of an array is a view of its own, as large as before: it stays.
        of.iter_mut().zip(&is_part).filter(|(_, part)| !**part).for_each(|(view, _)| *view = None);
        let mut views = Views { of, passed: Vec::new(), needed: vec![false; p.value_count()] };
        for v in views.staying(p).flat_map(|e| p.operands(e)).chain(p.outputs()).filter_map(|a| a.value()) {
            let v = views.of[v.index()].unwrap_or(v);
            let again = std::mem::replace(&mut views.needed[v.index()], true);
            if !again && views.of[v.index()].is_some() {
                views.passed.push(v);
            }
        }
        views
    }

    /// The equations that are no such views.
    fn staying<'a>(&self, p: &'a Program) -> impl Iterator<Item = &'a Equation> + use<'a> {
        let of: Vec<bool> = self.of.iter().map(Option::is_some).collect();
        p.equations().iter().filter(move |e| e.results().all(|r| !of[r.index()]))
    }
}

/// Takes views of arrays out of programs that all have them as inputs, from a place on.
pub(super) fn outside(programs: Vec<Program>, start: usize, arrays: Vec<Array>) -> Result<Outside> {
    let at = start..start + arrays.len();
    // What is no tracer has no derivative, and may be far away.
    let is_given = |i: usize| at.contains(&i) && matches!(arrays[i - start].form(), Form::Traced(_));
    let views: Vec<Views> = programs.iter().map(|p| Views::find(p, is_given)).collect();
    if views.iter().all(|v| v.passed.is_empty()) {
        return Ok(Outside { programs, given: arrays });
    }
    let kept: Vec<usize> = at.clone().filter(|i| views.iter().any(|v| v.needed[*i])).collect();
    let mut given: Vec<Array> = kept.iter().map(|i| arrays[i - start].clone()).collect();
    let inputs: Vec<ValueId> = at.clone().map(ValueId::new).collect();
    for (p, views) in programs.iter().zip(&views) {
        let passed: Vec<Atom> = views.passed.iter().map(|v| Atom::from(*v)).collect();
        given.extend(inline(&p.between(&inputs, &passed, false)?, &arrays)?);
    }
    let mut rest = Vec::with_capacity(programs.len());
    let mut first = 0;
    for (p, own) in programs.iter().zip(&views) {
        let mut b = Builder::new(p.name());
        let mut there: Vec<Option<Atom>> = vec![None; p.value_count()];
        for i in (0..start).chain(kept.iter().copied()) {
            there[i] = Some(b.input(p.inputs()[i].clone())?.into());
        }
        for (k, a) in given[kept.len()..].iter().enumerate() {
            let input = b.input(a.ty()?.clone())?;
            if let Some(v) = k.checked_sub(first).and_then(|k| own.passed.get(k)) {
                there[v.index()] = Some(input.into());
            }
        }
        first += own.passed.len();
        for (i, ty) in p.inputs().iter().enumerate().skip(at.end) {
            there[i] = Some(b.input(ty.clone())?.into());
        }
        for (v, view) in own.of.iter().enumerate() {
            there[v] = there[v].or_else(|| view.and_then(|view| there[view.index()]));
        }
        b.require(p.constraints());
        for e in own.staying(p) {
            let operands = b.mapped(p, &there, p.operands(e))?;
            let types = e.results().map(|r| p.ty(r).clone()).collect();
            let made = b.push(e.op().clone(), &operands, types, e.place())?.results();
            e.results().zip(made).for_each(|(old, new)| there[old.index()] = Some(new.into()));
        }
        let outputs = b.mapped(p, &there, p.outputs())?.into_vec();
        rest.push(b.finish(outputs));
    }
    Ok(Outside { programs: rest, given })
}
