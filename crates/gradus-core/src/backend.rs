//! The interface of backends: which passes a program goes through for one, what it is given then, and what it makes of it.

use std::any::Any;
use std::fmt;
use std::ops::{AddAssign, Deref};
use std::sync::Arc;
use std::time::Duration;

use crate::array::{Array, Outputs};
use crate::error::Result;
use crate::optimize::{Exactness, Pass, run_passes};
use crate::oracle::Freedom;
use crate::program::{Program, Verified};

/// What code on a device took so far, in all functions that share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of arguments that were copied to the device.
    pub uploaded: u64,
    /// Bytes of results that were read back.
    pub downloaded: u64,
    /// How many sizes of a program with symbols have code of their own.
    pub sizes: u64,
    /// How long its compiler took for them.
    pub compile_time: Duration,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.uploaded += other.uploaded;
        self.downloaded += other.downloaded;
        self.sizes += other.sizes;
        self.compile_time += other.compile_time;
    }
}

/// What else is to be known, for readers: a name and a value each.
pub type Facts = Vec<(&'static str, String)>;

/// A program made ready to run.
pub trait Executable: fmt::Debug + Send + Sync {
    /// Runs it on concrete arrays of the program's input types.
    fn run(&self, inputs: &[Array]) -> Result<Outputs>;
    /// The same for inputs that the caller gives away: those that nobody else holds may be written over, and then a device needs no new memory.
    fn run_owned(&self, inputs: Vec<Array>) -> Result<Outputs> {
        self.run(&inputs)
    }
    /// Bytes it holds, for the cache's bound.
    fn bytes(&self) -> usize;
    /// Which code a run takes now: another number after better code took the place of the first.
    fn generation(&self) -> u32 {
        0
    }
    /// The kernel that makes an output, for reports.
    fn maker_of(&self, output: usize) -> Option<String> {
        let _ = output;
        None
    }
    /// Whether its code was not made but found on disk.
    fn is_loaded(&self) -> bool {
        false
    }
    /// Whether nothing but its own code runs: no other program, no rule of an operation, no function of the host. Then nobody asks meanwhile which backend is in use.
    fn runs_alone(&self) -> bool {
        false
    }
    /// What it took on its device so far. Nothing is moved for code that runs here.
    fn usage(&self) -> Usage {
        Usage::default()
    }
    /// What else is to be known of it, for `explain` and `phases`: its memory, say.
    fn facts(&self) -> Facts {
        Facts::new()
    }
    /// Itself as its own type, for who knows the backend.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// What turns programs into executables. A [`Pipeline`](crate::pipeline::Pipeline) calls it.
pub trait Backend: Any + fmt::Debug + Send + Sync {
    /// Its name, for readers.
    fn name(&self) -> &'static str;
    /// Everything about it that shapes what it makes of a program, its passes too, as text: code is found again only for an equal one. As `Debug` shows it,
    /// that is every field; what two equal texts may not share belongs here.
    fn key(&self) -> String {
        format!("{self:?}")
    }
    /// What it found on this machine and what it does without: a line for `explain`. Nothing to say: an empty text.
    fn about(&self) -> String {
        String::new()
    }
    /// Where its programs run, for readers.
    fn device(&self) -> String {
        "cpu".into()
    }
    /// Whether that is not the processor of this process. What cannot be compiled for another device is an error: it is never interpreted here instead.
    fn is_elsewhere(&self) -> bool {
        false
    }
    /// What may round otherwise than in the interpreter: by this, calls that are verified tell a fault from rounding.
    fn freedom(&self) -> Freedom {
        Freedom::Contraction
    }
    /// The passes that a program goes through before it is compiled here, in order. It is only run from then on and never transformed, so
    /// [`EXECUTION_PASSES`](crate::optimize::EXECUTION_PASSES) are allowed. Without any it comes as it is.
    fn passes(&self, program: &Program) -> Vec<Pass> {
        let _ = program;
        Vec::new()
    }
    /// Makes a program ready. Only what went through the pipeline is taken: the proof is in the type.
    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>>;
}

/// A program as a backend takes it: a verified one, after the passes that the backend asked for. Only the pipeline makes it, so there is no way
/// to a backend past the pipeline.
#[derive(Clone, Debug)]
pub struct Passed {
    given: Verified,
    program: Arc<Program>,
    exactness: Exactness,
}

impl Passed {
    /// Runs the passes that a backend asks for; `look` is told of each what it is called, what it gave and how long it took.
    pub(crate) fn new(
        backend: &dyn Backend,
        given: &Verified,
        exactness: Exactness,
        look: &mut dyn FnMut(&'static str, &Program, Duration),
    ) -> Result<Passed> {
        let passes = backend.passes(given);
        let as_is = Passed::as_is(given.clone(), exactness);
        if passes.is_empty() {
            return Ok(as_is);
        }
        Ok(Passed { program: run_passes(&passes, given, exactness, look)?.into(), ..as_is })
    }

    /// A program for which no pass is run.
    pub(crate) fn as_is(given: Verified, exactness: Exactness) -> Passed {
        Passed { program: given.program().clone(), given, exactness }
    }

    /// The program after the passes.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The program before them.
    pub fn given(&self) -> &Arc<Program> {
        self.given.program()
    }

    /// What whoever compiles it may change.
    pub fn exactness(&self) -> Exactness {
        self.exactness
    }

    /// The program as it was before the passes, for a backend that can do nothing with what they made.
    #[must_use]
    pub fn without_passes(&self) -> Passed {
        Passed::as_is(self.given.clone(), self.exactness)
    }
}

impl Deref for Passed {
    type Target = Program;
    fn deref(&self) -> &Program {
        &self.program
    }
}
