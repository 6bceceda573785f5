//! What looking ahead gives: the traced program, and the compiled one that can be called apart from its function.

use std::fmt;
use std::sync::Arc;

use gradus_core::lint::{Lint, lint};
use gradus_core::oracle::Watched;
use gradus_core::pipeline::Pipeline;
use gradus_core::trace::Traced;
use gradus_core::{Array, Error, ErrorKind, Location, Program, Result};
use gradus_cpu::{Native, Prepared};

use super::Core;
use super::cache::Specialization;
use super::fill;
use super::key::{CallKey, Leaves};
use crate::arguments::Arguments;
use crate::tree::Tree;

/// A function's program for given types.
#[derive(Clone, Debug)]
pub struct TracedFunction {
    traced: Traced,
    pipeline: Pipeline,
}

impl TracedFunction {
    pub(super) fn new(traced: Traced, pipeline: Pipeline) -> TracedFunction {
        TracedFunction { traced, pipeline }
    }

    /// The program as it was traced.
    pub fn program(&self) -> &Program {
        &self.traced.program
    }

    /// The program after every pass of the optimizer. A pass that fails leaves the program as it was traced.
    pub fn optimized(&self) -> Program {
        let optimized = self.pipeline.optimize(self.program());
        optimized.map_or_else(|_| self.program().clone(), |p| p.program().as_ref().clone())
    }

    /// The same, or why a pass failed.
    #[cfg(feature = "stablehlo")]
    pub(crate) fn try_optimized(&self) -> Result<Arc<Program>> {
        self.pipeline.optimize(self.program()).map(|p| p.program().clone())
    }

    /// The arrays that the function captured; they are the program's last inputs.
    pub fn captures(&self) -> &[Array] {
        &self.traced.captures
    }

    /// Places where the function is right and its derivative may be NaN: a `select` over a partial function.
    pub fn lints(&self) -> Vec<Lint> {
        lint(self.program())
    }

    /// Checks the optimized program.
    pub fn verify(&self) -> Result<()> {
        self.pipeline.optimize(self.program()).map(|_| ())
    }
}

/// A function compiled ahead of its calls, for one key.
pub struct Compiled<A: Arguments, O: Tree> {
    pub(super) core: Arc<Core<'static, A, O>>,
    pub(super) entry: Arc<Specialization<O>>,
}

impl<A: Arguments, O: Tree> fmt::Debug for Compiled<A, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compiled({})", self.core.stack())
    }
}

impl<A: Arguments, O: Tree> Compiled<A, O> {
    /// The optimized program.
    pub fn program(&self) -> &Program {
        &self.entry.optimized
    }

    /// The call with its buffers at hand: write the inputs, run, read the outputs. Nothing is allocated or locked on the way.
    /// Inputs and outputs are numbered in the order of the trees' arrays; an output that is an input as it is, is a copy of it as of the last run.
    /// A program whose sizes are symbols cannot be prepared: its buffers have no size. Nor can one that was traced with
    /// [`Mode::Concrete`](crate::Mode) and read a value: nobody would notice that the value is another.
    #[track_caller]
    pub fn prepared(&self) -> Result<Prepared> {
        let place = Location::caller();
        if let Some(guard) = self.entry.first_guard() {
            let name = self.core.name();
            let message = format!(
                "`{name}` was compiled for a value that was {}, and a prepared call does not look",
                guard.observed
            );
            return Err(Error::new(ErrorKind::Frozen, message)
                .at(place)
                .note(format!("the value was read at {}", guard.place))
                .help("branch with `cond` instead of reading the value, or use `call`, which compares it"));
        }
        let (native, watched) = self.native()?;
        let native = native.ok_or_else(|| {
            let backend = &self.core.pipeline().backend;
            let message = format!(
                "`{}` is run by `{}`, and only the native compiler has buffers to prepare",
                self.core.name(),
                backend.name()
            );
            Error::new(ErrorKind::Value, message).at(place).help(match backend.is_elsewhere() {
                true => "arrays stay on a device between calls without that: pass results on as they come, and move arguments once, `x.to(&device)?`",
                false => "only machine code for known dimensions has buffers to prepare; leave out `.backend(..)`",
            })
        })?;
        let prepared = Prepared::new(native, &self.entry.captures).map_err(|e| e.at(place))?;
        Ok(match watched {
            Some(watched) => prepared.watched(watched),
            None => prepared,
        })
    }

    /// The machine code, if it is that, and who verifies its runs, if someone does.
    fn native(&self) -> Result<(Option<Arc<Native>>, Option<Arc<Watched>>)> {
        let code = self.core.executable(&self.entry)?.clone();
        let watched = code.clone().as_any().downcast::<Watched>().ok();
        let code = watched.as_ref().map_or(code, |w| w.code().clone());
        Ok((code.as_any().downcast::<Native>().ok(), watched))
    }

    /// Bytes of scratch memory that a run needs; none if it is not run by the native compiler or its dimensions are symbolic.
    pub fn scratch_bytes(&self) -> Option<usize> {
        Some(self.native().ok()?.0?.plan()?.bytes)
    }

    #[track_caller]
    pub(crate) fn run(&self, args: A::Refs<'_>) -> Result<O> {
        let place = Location::caller();
        let leaves = Leaves::of::<A>(args);
        self.core.check(&leaves, place)?;
        self.core.declared(args, |args| match self.entry.key.matches::<A>(args) {
            true => Ok(()),
            false => Err(self.misfit(&CallKey::of::<A>(args)).at(place)),
        })??;
        super::spend::<A>(args, &leaves, place)?;
        if let Some(guard) = self.entry.failed_guard(&leaves) {
            let e = Error::new(
                ErrorKind::Frozen,
                format!("`{}` was compiled for a value that was {}", self.core.name(), guard.observed),
            );
            return Err(e.at(place).note(format!("the value was read at {}", guard.place)));
        }
        let mut inputs = leaves.arrays;
        inputs.extend(self.entry.captures.iter().cloned());
        let code = self.core.executable(&self.entry)?;
        let outputs = self.core.on_backend(|| code.run(&inputs));
        let outputs = outputs.map_err(|e| self.core.named(&self.entry, &inputs, e).at(place))?;
        outputs.iter().for_each(|a| a.made_at(place));
        Ok(fill(&self.entry.template, outputs))
    }

    /// What differs from the key it was compiled for: a frozen value, a type, or the structure.
    fn misfit(&self, key: &CallKey) -> Error {
        let name = self.core.name();
        let differ = super::explain::differences(&self.entry.key, key);
        let Some(d) = differ.first() else {
            return Error::new(ErrorKind::Signature, format!("`{name}` does not take these arguments"));
        };
        let (old, new) = (d.before().unwrap_or("nothing"), d.now().unwrap_or("nothing"));
        if d.is_frozen() {
            Error::new(
                ErrorKind::Frozen,
                format!("{} of `{name}` was frozen at {old} when it was compiled, and is {new} now", d.path()),
            )
            .help("compile again for the new value, or let it vary: pass an array, or a `Num` with `track_numbers`")
        } else {
            Error::new(
                ErrorKind::Signature,
                format!("{} of `{name}` was {old} when it was compiled, and is {new} now", d.path()),
            )
            .help("call the staged function, which compiles for what it is given, or compile for these arguments")
        }
    }
}
