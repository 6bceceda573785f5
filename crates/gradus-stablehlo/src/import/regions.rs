//! Regions as programs: over single numbers, run on whole arrays by batching, and recognized where an operation of ours does the same.

use gradus_core::control::{Steps, scan};
use gradus_core::error::{Error, ErrorKind, Result};
use gradus_core::primitives::elementwise as p;
use gradus_core::trace::{Traced, inline, trace_as_written};
use gradus_core::transform::vmap_on;
use gradus_core::{Array, Dim, Program, Shape, Type as Ty};

use super::elementwise::{convert, spread};
use super::shaping::{permute, reshape};
use super::{Answer, On, flat, many, types};
use crate::module::Region;

/// What a region of two numbers does, where that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Sum,
    Prod,
    Max,
    Min,
    And,
    Or,
    /// It gives the first number back.
    First,
    /// It gives the second.
    Second,
}

impl Known {
    /// What a program of two numbers and one result does.
    pub(super) fn of(body: &Traced) -> Option<Known> {
        let p = &body.program;
        let ([output], 2, true) = (p.outputs(), p.inputs().len(), body.captures.is_empty()) else { return None };
        let at = output.value()?.index();
        match (at, p.equations()) {
            (0, _) => return Some(Known::First),
            (1, _) => return Some(Known::Second),
            (_, [only]) if only.result().index() == at => {}
            _ => return None,
        }
        let only = p.equations().first()?;
        let mut operands: Vec<usize> = p.operands(only).iter().filter_map(|a| a.value()).map(|v| v.index()).collect();
        operands.sort_unstable();
        if operands != [0, 1] {
            return None;
        }
        let op = only.op();
        [
            (op.is::<p::Add>(), Known::Sum),
            (op.is::<p::Mul>(), Known::Prod),
            (op.is::<p::Max>(), Known::Max),
            (op.is::<p::Min>(), Known::Min),
            (op.is::<p::And>(), Known::And),
            (op.is::<p::Or>(), Known::Or),
        ]
        .into_iter()
        .find_map(|(is, known)| is.then_some(known))
    }
}

/// Runs a region of single numbers on whole arrays of one shape, element by element.
pub(super) fn on_elements(body: &Traced, args: &[Array], shape: &Shape) -> Result<Vec<Array>> {
    let inputs = |own: Vec<Array>| own.into_iter().chain(body.captures.iter().cloned()).collect::<Vec<_>>();
    if shape.rank() == 0 {
        return inline(&body.program, &inputs(args.to_vec()));
    }
    let size = shape.size();
    let line = |x: &Array| reshape(x, vec![size.clone()]);
    let all = inputs(args.iter().map(line).collect());
    let batched: Vec<bool> = (0..all.len()).map(|i| i < args.len()).collect();
    let (outputs, have) = vmap_on(&body.program, &all, &batched, &size)?;
    let whole = |(o, has): (Array, bool)| if has { reshape(&o, shape.clone()) } else { spread(&o, shape) };
    outputs.into_iter().zip(have).map(|pair| whole(pair).ok()).collect()
}

/// Folds arrays along their first axis by a region: one step for each element, all other elements at once.
pub(super) fn fold(body: &Traced, inits: &[Array], sequences: &[Array]) -> Result<Vec<Array>> {
    let Some(first) = sequences.first() else { return Ok(Vec::new()) };
    let (length, shape) = (first.dim(0), first.shape().without(|a| a == 0));
    let carries: Vec<Array> = inits.iter().map(|i| spread(i, &shape)).collect();
    let types = carries.iter().chain(sequences).map(|a| a.ty().map(|t| t.with_shape(shape.clone())));
    let specs = types.map(|t| t.map(Array::of_type)).collect::<Result<Vec<_>>>()?;
    let step = trace_as_written("fold", &specs, |xs| on_elements(body, xs, &shape))?;
    scan(&step, &carries, sequences, &length, false, 1, Steps::Keep)
}

/// Some axes of an array as one in front, the others behind it.
pub(super) fn front(x: &Array, axes: &[usize]) -> Array {
    let kept: Vec<usize> = (0..x.rank()).filter(|a| !axes.contains(a)).collect();
    let moved = permute(x, axes.iter().chain(&kept).copied().collect());
    let count = axes.iter().fold(Dim::from(1usize), |n, a| n * x.dim(*a as isize));
    let dims: Vec<Dim> = [count].into_iter().chain(kept.iter().map(|a| x.dim(*a as isize))).collect();
    reshape(&moved, dims)
}

impl<'m> On<'_, 'm> {
    /// A region as a program over arrays of these types.
    pub(super) fn traced(&mut self, region: &'m Region, inputs: &[Ty]) -> Result<Traced> {
        let specs: Vec<Array> = inputs.iter().cloned().map(Array::of_type).collect();
        let name = self.op.name.split_once('.').map_or("region", |(_, short)| short);
        let scope = &mut *self.scope;
        scope.closed += 1;
        let traced = trace_as_written(name, &specs, |arguments| {
            scope.enter(region, arguments)?;
            Ok(flat(&scope.run(region)?))
        });
        self.scope.closed -= 1;
        traced
    }

    /// A region as a program over arrays of the types that its text says.
    pub(super) fn traced_as_said(&mut self, at: usize) -> Result<Traced> {
        let region = self.region(at)?;
        let inputs = region.arguments.iter().map(|v| types::ty(types::tensor(self.scope.ty(*v)?)?));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        self.traced(region, &inputs)
    }

    pub(super) fn map_region(&mut self) -> Answer {
        let xs = self.xs()?;
        let body = self.traced_as_said(0)?;
        let Some(first) = xs.first() else { return Err(self.wrong("it has no operand")) };
        many(on_elements(&body, &xs, first.shape())?)
    }

    /// Operands in the dtypes of a region's inputs from `first` on: a region may compute in a wider dtype.
    pub(super) fn as_inputs(&self, body: &Traced, first: usize, xs: &[Array]) -> Result<Vec<Array>> {
        let inputs = body.program.inputs().get(first..first + xs.len());
        let Some(inputs) = inputs else { return Err(self.wrong("its region has another number of arguments")) };
        Ok(xs.iter().zip(inputs).map(|(x, t)| convert(x, t.dtype())).collect())
    }
}

/// A program's output alone, with the inputs as they are.
pub(super) fn with_outputs(program: &Program, name: &str, which: &[gradus_core::program::Atom]) -> Result<Program> {
    let mut values: Vec<Option<gradus_core::program::Atom>> = vec![None; program.value_count()];
    let mut b = gradus_core::program::Builder::new(name);
    for (slot, ty) in values.iter_mut().zip(program.inputs()) {
        *slot = Some(b.input(ty.clone())?.into());
    }
    let lost = || Error::new(ErrorKind::Rule, "a value of a region was lost");
    let read =
        |b: &mut gradus_core::program::Builder, values: &[Option<gradus_core::program::Atom>], atom| match program
            .constant(atom)
        {
            Some(c) => Ok(b.constant(c.clone())),
            None => atom.value().and_then(|v| values.get(v.index()).copied().flatten()).ok_or_else(lost),
        };
    for e in program.equations() {
        let operands = program.operands(e).iter().map(|a| read(&mut b, &values, *a)).collect::<Result<Vec<_>>>()?;
        let made: Vec<_> = b.equation(e.op().clone(), &operands, e.place())?.results().collect();
        for (old, new) in e.results().zip(made) {
            values[old.index()] = Some(new.into()); // invariant: there is a place for each value
        }
    }
    let outputs = which.iter().map(|a| read(&mut b, &values, *a)).collect::<Result<Vec<_>>>()?;
    Ok(gradus_core::program::eliminate_dead_code(&b.finish(outputs), false))
}
