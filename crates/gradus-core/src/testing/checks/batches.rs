//! Batches against loops, of known and of unknown size, and operands whose own sizes are unknown.

use super::derivatives::{differences, transposition};
use super::numbers::{example, near, stack, vary};
use super::{Case, Outcome, Steps, all_near, read_back};
use crate::array::Array;
use crate::error::{Error, ErrorKind, Location, Result};
use crate::interpret::interpret;
use crate::primitives::{Batch, Batched, Sample};
use crate::program::{Builder, verify};
use crate::transform::vmap;
use crate::types::{Dim, Type};

/// Sets of batched inputs: every one if there are few, otherwise all and each alone.
fn batched_sets(count: usize) -> Vec<Vec<bool>> {
    match count {
        0 => Vec::new(),
        1..=3 => (1..1usize << count).map(|set| (0..count).map(|i| set >> i & 1 == 1).collect()).collect(),
        _ => {
            let alone = (0..count.min(7)).map(|i| (0..count).map(|j| i == j).collect());
            std::iter::once(vec![true; count]).chain(alone).collect()
        }
    }
}

impl Case {
    /// The inputs of `size` examples, the first of which is this one.
    fn examples(&self, batched: &[bool], size: usize) -> Result<Vec<Vec<Array>>> {
        let each = |k| self.inputs.iter().zip(batched).map(move |(a, on)| if *on { vary(a, k) } else { Ok(a.clone()) });
        (0..size).map(|k| each(k).collect()).collect()
    }

    /// The batched program at the examples.
    fn batched(&self, batched: &[bool], size: usize, dim: &Dim) -> Result<Case> {
        let program = vmap(&self.program, batched, dim)?;
        verify(&program)?;
        let examples = self.examples(batched, size)?;
        let mut inputs = Vec::new();
        for (i, (x, on)) in self.inputs.iter().zip(batched).enumerate() {
            let column: Vec<Array> = examples.iter().filter_map(|e| e.get(i).cloned()).collect();
            inputs.push(if *on { stack(&column, x.ty()?)? } else { x.clone() });
        }
        Ok(Case { program, inputs })
    }
}

/// A batch against a loop.
fn batch_and_loop(case: &Case, batched: &[bool], size: usize, units: f64) -> Outcome {
    let together = case.batched(batched, size, &Dim::from(size))?.run()?;
    let types: Vec<Type> = case.run()?.iter().map(|a| a.ty().cloned()).collect::<Result<_>>()?;
    for (y, ty) in together.iter().zip(&types) {
        let want = ty.with_shape(ty.shape().inserted(0, Dim::from(size)));
        if *y.ty()? != want {
            return Err(format!("a batch of {size}, inputs {batched:?}: {} where {want} is expected", y.ty()?).into());
        }
    }
    for (k, inputs) in case.examples(batched, size)?.iter().enumerate() {
        let alone = interpret(&case.program, inputs)?;
        for (i, ((y, ty), want)) in together.iter().zip(&types).zip(&alone).enumerate() {
            near(&example(y, k, ty)?, want, units).map_err(|e| {
                let program = vmap(&case.program, batched, &Dim::from(size)).map_or(String::new(), |p| p.to_string());
                format!("example {k} of {size}, inputs {batched:?}, result {i}: {e}\n{program}")
            })?;
        }
    }
    Ok(types.len() * size.max(1))
}

/// The batching rule of an operation without operands, which no transformation asks for: the result repeated.
fn batch_of_nothing(sample: &Sample) -> Outcome {
    const SIZE: usize = 3;
    let rule = Batch { size: &Dim::from(SIZE), inputs: &[], batched: &[] };
    let together = match sample.op.batch(&rule)? {
        Batched::Outputs(together) | Batched::Common(together) => together,
        Batched::Missing(_) => {
            let text = format!("`{}` has no batching rule", sample.op.name());
            return Err(Error::new(ErrorKind::MissingRule, text).into());
        }
    };
    for (y, want) in together.iter().zip(sample.op.evaluate(&sample.inputs)?) {
        for k in 0..SIZE {
            near(&example(y, k, want.ty()?)?, &want, 0.0)?;
        }
    }
    Ok(SIZE * together.len())
}

impl Steps<'_> {
    pub(super) fn batching(&mut self, case: &Case) {
        let units = if self.sample.op.is_elementwise() { 0.0 } else { 64.0 };
        let all = vec![true; case.inputs.len()];
        for batched in batched_sets(case.inputs.len()) {
            self.step("a batch", || batch_and_loop(case, &batched, 3, units));
        }
        if all.is_empty() {
            self.step("a batch of nothing", || batch_of_nothing(self.sample));
            return;
        }
        for size in [0, 1] {
            self.step("a batch", || batch_and_loop(case, &all, size, units));
        }
        let first: Vec<bool> = (0..all.len()).map(|i| i == 0).collect();
        let Some(outer) = self.prepare("a batch", || case.batched(&all, 2, &Dim::from(2usize))) else { return };
        for batched in [&all, &first] {
            self.step("a batch of batches", || batch_and_loop(&outer, batched, 3, units));
        }
        let inexact = case.inexact();
        if !inexact.contains(&true) {
            return;
        }
        self.step("reverse over a batch", || transposition(&outer, &outer.inexact()));
        if let Ok((forward, _)) = case.forward(&inexact) {
            let flags = vec![true; forward.inputs.len()];
            self.step("a batch of forward derivatives", || batch_and_loop(&forward, &flags, 2, 256.0));
        }
        if let Ok(Some(backward)) = case.backward(&inexact) {
            let only_bars: Vec<bool> = (0..backward.inputs.len()).map(|i| i >= case.inputs.len()).collect();
            for flags in [vec![true; backward.inputs.len()], only_bars] {
                self.step("a batch of reverse derivatives", || batch_and_loop(&backward, &flags, 2, 256.0));
            }
        }
    }

    pub(super) fn symbolic_batch(&mut self, case: &Case) {
        for batched in batched_sets(case.inputs.len()) {
            self.step("a batch of unknown size", || {
                let b = Dim::symbol("B").map_err(|e| e.to_string())?;
                let mut count = 0;
                for size in [1, 3] {
                    let unknown = case.batched(&batched, size, &b)?;
                    let known = case.batched(&batched, size, &Dim::from(size))?;
                    read_back(&unknown.program)?;
                    let want = known.run()?;
                    count += all_near(&unknown.run()?, &want, 0.0)?;
                    let types = unknown.inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>()?;
                    let bound = unknown.program.bind_symbols(&types)?;
                    verify(&bound)?;
                    if bound.is_symbolic() {
                        return Err(format!("symbols are left:\n{bound}").into());
                    }
                    count += all_near(&interpret(&bound, &unknown.inputs)?, &want, 0.0)?;
                }
                Ok(count)
            });
        }
        let inexact = case.inexact();
        if !inexact.contains(&true) {
            return;
        }
        let unknown = || -> Result<Case> {
            let b = Dim::symbol("B").map_err(|e| Error::new(ErrorKind::Size, e.to_string()))?;
            case.batched(&vec![true; case.inputs.len()], 3, &b)
        };
        let Some(unknown) = self.prepare("a batch of unknown size", unknown) else { return };
        self.step("reverse over a batch of unknown size", || transposition(&unknown, &inexact));
        if let Ok(Some(backward)) = case.backward(&inexact) {
            self.step("a batch of unknown size of reverse derivatives", || {
                let b = Dim::symbol("B").map_err(|e| e.to_string())?;
                let flags = vec![true; backward.inputs.len()];
                let want = backward.batched(&flags, 3, &Dim::from(3usize))?.run()?;
                all_near(&backward.batched(&flags, 3, &b)?.run()?, &want, 0.0)
            });
        }
    }

    pub(super) fn symbolic_sizes(&mut self, known: &Case) {
        let symbolic = match Case::with_symbols(self.sample) {
            Ok(Some(case)) => case,
            Ok(None) => return,
            // That an operation wants to know its sizes is an answer; the list of those that do is in the tally.
            Err(e) => {
                return self.failed(
                    "",
                    Error::new(ErrorKind::MissingRule, format!("no symbolic sizes: {}", e.message())).into(),
                );
            }
        };
        self.step("values of unknown sizes", || {
            verify(&symbolic.program)?;
            read_back(&symbolic.program)?;
            all_near(&symbolic.run()?, &known.run()?, 0.0)
        });
        let all = known.inexact();
        if !all.contains(&true) {
            return;
        }
        let precise = self.sample.smooth && known.is_precise();
        for active in known.active_sets() {
            if precise {
                self.step("derivatives with unknown sizes", || differences(&symbolic, &active));
            }
            self.step("reverse with unknown sizes", || transposition(&symbolic, &active));
        }
        if let Some(Some(backward)) = self.prepare("the pullback with unknown sizes", || symbolic.backward(&all)) {
            if precise {
                self.step("forward over reverse with unknown sizes", || differences(&backward, &backward.inexact()));
            }
            self.step("reverse over reverse with unknown sizes", || transposition(&backward, &backward.inexact()));
        }
        self.step("a batch with unknown sizes", || batch_and_loop(&symbolic, &vec![true; all.len()], 2, 64.0));
    }
}

impl Case {
    /// The program with a symbol for each size of the operands but 1, which broadcasts: equal sizes have one symbol.
    /// None if there are no such sizes.
    fn with_symbols(sample: &Sample) -> Result<Option<Case>> {
        let mut builder = Builder::new("sample");
        let mut atoms = Vec::new();
        let name = |d: &Dim| match d.as_usize() {
            Some(n) if n != 1 => Dim::symbol(&format!("N{n}")).unwrap_or_else(|_| d.clone()),
            _ => d.clone(),
        };
        for input in &sample.inputs {
            let ty = input.ty()?;
            atoms.push(builder.input(ty.with_shape(ty.shape().map(name)))?.into());
        }
        if !builder.program().is_symbolic() {
            return Ok(None);
        }
        let outputs =
            builder.equation(sample.op.clone(), &atoms, Location::unknown())?.results().map(Into::into).collect();
        Ok(Some(Case { program: builder.finish(outputs), inputs: sample.inputs.clone() }))
    }
}
