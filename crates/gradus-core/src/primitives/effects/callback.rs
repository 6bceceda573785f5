//! The operation that calls a function of the host. What transformations may do with it depends on its kind: see [`Kind`].

use std::sync::Arc;

use super::{Host, replay};
use crate::array::Array;
use crate::error::{Error, Result, error, fail};
use crate::primitives::control::{Stack, element};
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Param, ParamReader, ParamValue, Params, Primitive, Sample,
    Transpose, Transposed, Types,
};
use crate::program::Program;
use crate::trace::bind_all;
use crate::types::{Dim, Effects, Type};

/// What a call of the host is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Looks at values: derivatives pass it by, and in a batch it happens for one example after the other.
    Debug,
    /// Ends the run with an error if a condition does not hold; otherwise as [`Debug`](Kind::Debug).
    Check,
    /// Changes the world, or reads it: it happens exactly as often and in the order in which it was written, and what
    /// cannot promise that refuses.
    Io,
    /// A function of its operands and nothing else: it may be left out, shared, moved and repeated.
    Pure,
}

impl Kind {
    /// All of them.
    pub const ALL: &'static [Kind] = &[Kind::Debug, Kind::Check, Kind::Io, Kind::Pure];

    /// The name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Debug => "debug_callback",
            Kind::Check => "debug_check",
            Kind::Io => "io_callback",
            Kind::Pure => "pure_callback",
        }
    }
}

/// An axis in front of some operands that counts examples; the function is called for each.
#[derive(Clone, Debug)]
struct Level {
    size: Dim,
    /// Which operands have the axis.
    mapped: Vec<bool>,
}

impl ParamValue for Level {
    fn to_param(&self) -> Param {
        Param::List(vec![self.size.to_param(), self.mapped.to_param()])
    }
    fn from_param(param: &Param) -> Option<Self> {
        let Param::List(parts) = param else { return None };
        let [size, mapped] = &parts[..] else { return None };
        Some(Level { size: Dim::from_param(size)?, mapped: Vec::from_param(mapped)? })
    }
}

/// Calls a function of the host.
#[derive(Clone, Debug)]
pub struct Callback {
    kind: Kind,
    host: Arc<Host>,
    /// The types of what the function gives, for one example.
    results: Vec<Type>,
    /// Whether a batch is one call with an axis more, and not one for each example.
    whole: bool,
    /// From the outermost axis to the innermost.
    levels: Vec<Level>,
}

/// Why what has effects is not done for some examples and left for others, if all of them are notices of loops that have a limit; otherwise `others`.
pub(crate) fn why_not_for_some(p: &[&Program], others: &'static str) -> &'static str {
    fn only_notices(p: &Program) -> bool {
        p.equations().iter().all(|e| match e.op().downcast::<Callback>() {
            Some(c) => c.is_notice(),
            None => e.op().effects().is_pure() || e.op().programs().iter().all(|p| only_notices(p)),
        })
    }
    match p.iter().all(|p| only_notices(p)) {
        true => {
            "a loop in it has `History::Limit` and says where that ends it, which would be so for some examples and not for others: use `History::Checkpoints`, which \
             has no limit of steps, or loop over the examples with `gradus::map`"
        }
        false => others,
    }
}

impl Callback {
    /// A call that gives nothing: it looks, or checks. A function that checks gives an error where it does not hold.
    pub fn watching(kind: Kind, host: Arc<Host>) -> Callback {
        Callback { kind, host, results: Vec::new(), whole: false, levels: Vec::new() }
    }

    /// A call that gives results of these types. `whole`: one call serves a batch.
    pub fn giving(kind: Kind, host: Arc<Host>, results: Vec<Type>, whole: bool) -> Callback {
        Callback { kind, host, results, whole, levels: Vec::new() }
    }

    /// What it is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it calls.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Whether it only says something of a whole batch, and no result depends on it.
    fn is_notice(&self) -> bool {
        self.kind == Kind::Debug && self.whole && self.results.is_empty()
    }

    fn name_of(&self) -> &'static str {
        self.kind.name()
    }

    /// Calls the function for one example and holds it to its types.
    fn once(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        if let Some(given) = replay::instead(self.kind, &self.host, inputs) {
            return given;
        }
        let outputs = self.host.call(self.name_of(), inputs).map_err(|e| match self.kind {
            Kind::Io | Kind::Pure => e.note(format!("given by the `{}` at {}", self.name_of(), self.host.place())),
            Kind::Debug | Kind::Check => e,
        })?;
        let wrong = |what: String| {
            error!(Callback, "`{}` {what}", self.name_of()).at(self.host.place()).help(
                "the types that a callback gives are part of the program: say the right ones, or cast its results",
            )
        };
        if outputs.len() != self.results.len() {
            return Err(wrong(format!("gave {} array(s) and promised {}", outputs.len(), self.results.len())));
        }
        for (i, (have, want)) in outputs.iter().zip(&self.results).enumerate() {
            let numbers = have.concrete().is_some();
            if let Some(e) = have.error() {
                return Err(e.clone().at(self.host.place()));
            }
            let ty = have.ty()?;
            if !numbers || ty != want {
                return Err(wrong(format!("gave {ty} as result {i} and promised {want}")));
            }
        }
        replay::note(self.kind, &self.host, inputs, &outputs);
        Ok(outputs)
    }

    /// Calls the function for every example of the levels from `depth` on; `at` says which one it is so far.
    fn each(&self, depth: usize, at: &mut Vec<usize>, inputs: &[Array], stacks: &mut [Stack]) -> Result<()> {
        let Some(level) = self.levels.get(depth) else {
            let outputs = self.once(inputs).map_err(|e| self.named(e, at))?;
            let row = self.row(at);
            return outputs.iter().zip(stacks).try_for_each(|(y, stack)| stack.put(row, y));
        };
        for i in 0..size(&level.size)? {
            let one = |(x, on): (&Array, &bool)| if *on { element(x, i) } else { Ok(x.clone()) };
            let inputs = inputs.iter().zip(&level.mapped).map(one).collect::<Result<Vec<_>>>()?;
            at.push(i);
            self.each(depth + 1, at, &inputs, stacks)?;
            at.pop();
        }
        Ok(())
    }

    /// The number of an example among all.
    fn row(&self, at: &[usize]) -> usize {
        at.iter().zip(&self.levels).fold(0, |row, (i, level)| row * size(&level.size).unwrap_or(1) + i)
    }

    /// An error with the example that it is about.
    fn named(&self, error: Error, at: &[usize]) -> Error {
        match at {
            [] => error,
            [i] => error.note(format!("in example {i} of the batch")),
            many => error.note(format!("in example {many:?} of the batches, the outermost first")),
        }
    }

    fn over_levels(&self, ty: &Type) -> Type {
        let sizes = self.levels.iter().rev().map(|l| &l.size);
        sizes.fold(ty.clone(), |ty, size| ty.with_shape(ty.shape().inserted(0, size.clone())))
    }
}

fn size(dim: &Dim) -> Result<usize> {
    dim.as_usize().ok_or_else(|| error!(NotConcrete, "a batch of {dim} examples"))
}

const NO_DERIVATIVE: &str = "a function of the host has no derivative: call it inside a function with a `custom_jvp` or \
                             `custom_vjp` rule, or put `.stop_gradient()` on its operands";

impl Primitive for Callback {
    fn name(&self) -> &'static str {
        self.name_of()
    }
    fn params(&self) -> Params {
        let id = Param::Int(i64::try_from(self.host.id()).unwrap_or(i64::MAX));
        let mut params = vec![("id", id)];
        // A call that only looks has none of these to speak of.
        if !matches!(self.kind, Kind::Debug | Kind::Check) {
            params.push(("results", self.results.to_param()));
            params.push(("whole", self.whole.to_param()));
        }
        params.push(("batch", self.levels.to_param()));
        params
    }
    fn from_params(params: &mut ParamReader<'_>) -> Result<Self> {
        let name = params.operation();
        let Some(kind) = Kind::ALL.iter().copied().find(|k| k.name() == name) else {
            fail!(Parse, "there is no callback `{name}`");
        };
        let id: i64 = params.take("id")?;
        let host = u64::try_from(id).ok().and_then(Host::find).ok_or_else(|| {
            error!(Parse, "`{}` calls function {id} of the host, which is not here", kind.name())
                .help("a program with callbacks lives in the process that traced it: trace the function again")
        })?;
        let (mut results, mut whole) = (Vec::new(), false);
        if !matches!(kind, Kind::Debug | Kind::Check) {
            results = params.take("results")?;
            whole = params.take("whole")?;
        }
        Ok(Callback { kind, host, results, whole, levels: params.take("batch")? })
    }
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let mut shapes: Vec<&[Dim]> = infer.inputs.iter().map(|t| &t.shape()[..]).collect();
        for level in &self.levels {
            if level.mapped.len() != shapes.len() {
                fail!(Verify, "takes {} operand(s), not {}", level.mapped.len(), shapes.len());
            }
            for (shape, _) in shapes.iter_mut().zip(&level.mapped).filter(|(_, on)| **on) {
                let Some((first, rest)) = shape.split_first() else { fail!(Shape, "an operand has no batch axis") };
                if !infer.equal(first, &level.size) {
                    fail!(Shape, "a batch of {} examples, and an operand of {first}", level.size);
                }
                *shape = rest;
            }
        }
        Ok(self.results.iter().map(|t| self.over_levels(t)).collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        if self.levels.is_empty() {
            return self.once(inputs).map(Into::into);
        }
        let mut stacks = self.results.iter().map(|t| Stack::new(self.over_levels(t))).collect::<Result<Vec<_>>>()?;
        self.each(0, &mut Vec::new(), inputs, &mut stacks)?;
        Ok(stacks.into_iter().map(Stack::finish).collect())
    }
    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        // What looks sees values only; whole numbers have no derivatives.
        if self.results.iter().any(|t| t.dtype().is_inexact()) {
            return Ok(Derivative::Missing(NO_DERIVATIVE));
        }
        Ok(Derivative::Zero)
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        if self.whole {
            let results = self.results.iter().map(|t| t.with_shape(t.shape().inserted(0, batch.size.clone())));
            let op = Callback { results: results.collect(), ..self.clone() };
            return Ok(Batched::Outputs(bind_all(Op::new(op), &batch.all())));
        }
        let level = Level { size: batch.size.clone(), mapped: batch.batched.to_vec() };
        let levels = std::iter::once(level).chain(self.levels.iter().cloned()).collect();
        Ok(Batched::Outputs(bind_all(Op::new(Callback { levels, ..self.clone() }), batch.inputs)))
    }
    fn effects(&self) -> Effects {
        match self.kind {
            Kind::Debug => Effects::PRINT,
            Kind::Check => Effects::CHECK,
            Kind::Io => Effects::HOST,
            Kind::Pure => Effects::PURE,
        }
    }
    fn samples() -> Vec<Sample> {
        Vec::new()
    }
}
