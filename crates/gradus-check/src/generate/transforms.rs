//! Transformations on top of programs: derivatives, batches, and one of the other.

use gradus::prelude::*;
use gradus_core::testing::Source;
use gradus_core::trace::{inline, trace};
use gradus_core::transform;

/// The program itself, mostly, or what up to two transformations make of it.
pub(crate) fn transformed(source: &mut Source<'_>, p: Program) -> Program {
    let mut p = p;
    let times = [0, 0, 0, 1, 1, 2][source.below(6)];
    for _ in 0..times {
        let next = match source.below(6) {
            0..3 => with_gradient(&p, source.chance(50)),
            3 => with_tangent(&p),
            _ => {
                let size = [1, 2, 3, 8, 9, 17][source.below(6)];
                let flags: Vec<bool> = p.inputs().iter().map(|_| source.chance(60)).collect();
                over_batch(&p, flags, size)
            }
        };
        match next {
            Some(next) if elements(&next) < super::VASTEST => p = next,
            _ => break,
        }
    }
    if source.chance(50) { gradus_core::optimize::optimize(&p).unwrap_or(p) } else { p }
}

/// Elements of all values, inputs and results (a constant may be one), those of nested programs too, with a guess where a size is symbolic.
pub(crate) fn elements(p: &Program) -> usize {
    let count = |t: &Type| {
        let n = t.shape().size().evaluate(&|_| Some(33)).unwrap_or(i64::MAX);
        usize::try_from(n).unwrap_or(usize::MAX)
    };
    let here = p.equations().iter().flat_map(|e| e.results()).map(|r| count(p.ty(r)));
    let inside = p.equations().iter().flat_map(|e| e.op().programs()).map(|p| elements(&p));
    let outputs = p.output_types();
    let given = p.inputs().iter().chain(&outputs).map(count);
    here.chain(inside).chain(given).fold(0, usize::saturating_add)
}

pub(crate) fn active_inputs(p: &Program) -> Option<Vec<bool>> {
    let active: Vec<bool> = p.inputs().iter().map(|t| t.dtype().is_inexact()).collect();
    active.contains(&true).then_some(active)
}

/// Cotangents of the active inputs for cotangents of the outputs: given ones, or ones everywhere.
pub(crate) fn slopes(p: &Program, inputs: &[Array], active: &[bool], bars: Option<&[Array]>) -> Option<Vec<Array>> {
    let parts = transform::vjp(p, active).ok()?;
    let mut values = inline(&parts.primal, inputs).ok()?;
    let mut given = values.split_off(p.outputs().len());
    let varying = values.iter().enumerate().filter(|(k, _)| parts.varies[*k]);
    given.extend(varying.map(|(k, v)| bars.map_or_else(|| v.ones_like(), |b| b[k].clone())));
    inline(&parts.linear, &given).ok()
}

/// The pullback of a program as one program; its own results too, if they are wanted.
pub(crate) fn with_gradient(p: &Program, values: bool) -> Option<Program> {
    let active = active_inputs(p)?;
    let n = p.inputs().len();
    let types = p.inputs().iter().cloned().chain(p.output_types());
    let specs: Vec<Array> = types.map(Array::of_type).collect();
    let mut found = None;
    let traced = trace("pullback", &specs, Mode::Abstract, |xs| {
        let mut results = slopes(p, &xs[..n], &active, Some(&xs[n..])).unwrap_or_default();
        if values && !results.is_empty() {
            results.extend(inline(p, &xs[..n]).unwrap_or_default());
        }
        found = Some(results.len());
        results
    });
    found.filter(|n| *n > 0)?;
    traced.ok().filter(|t| t.captures.is_empty()).map(|t| t.program)
}

/// The program with tangents.
pub(crate) fn with_tangent(p: &Program) -> Option<Program> {
    transform::jvp(p, &active_inputs(p)?).ok().map(|(p, _)| p)
}

/// The program over a batch; the first input is always a part of it.
pub(crate) fn over_batch(p: &Program, mut batched: Vec<bool>, size: usize) -> Option<Program> {
    *batched.first_mut()? = true;
    transform::vmap(p, &batched, &Dim::from(size)).ok()
}
