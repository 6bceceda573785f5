//! A call held against the interpreter: compiled code runs, the program is interpreted on the same inputs, and a difference is an
//! error that names who made it.
//!
//! Floats differ where nobody is to blame: passes contract products into sums and add up in another order, products of matrices
//! are summed in the order of their library, and a function with a jump makes a large difference of a small one. So before a
//! difference is called a fault the program is interpreted with noise in its sums: what noise can do, rounding can. What is left
//! is followed from pass to pass, each interpreted, and then from equation to equation of what was compiled, each
//! evaluated on the operands that compiled code gave it.

mod compare;
pub(crate) mod noise;
mod reproduction;
mod suspects;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashSet;

pub use compare::Difference;
use compare::{Scale, compare, differing};
pub use noise::Freedom;
pub use reproduction::{FOLDER_VARIABLE, Reproduction};
use suspects::{Case, Suspect, Verdict};

use crate::array::{Array, Outputs};
use crate::backend::{Executable, Facts, Passed, Usage};
use crate::error::{Error, ErrorKind, Location, Result};
use crate::executables::{Sizes, sizes_of};
use crate::hunt::{Hunt, hunting};
use crate::interpret::interpret;
use crate::optimize::{Exactness, eliminate_dead_code};
use crate::pipeline::Pipeline;
use crate::primitives::effects::Kind;
use crate::primitives::effects::replay::{Event, noted, replayed};
use crate::program::{Program, Verified};
use crate::trace::apart;

/// Which calls are held against the interpreter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verify {
    /// None.
    #[default]
    Off,
    /// The first of each compiled program: again for better code that takes its place, and for each size of a symbolic one.
    First,
    /// Every one.
    Every,
}

impl Verify {
    /// What the environment variable `GRADUS_VERIFY` asks for: `1` (every call), `first`, or nothing. Asked once.
    pub fn of_environment() -> Verify {
        static ASKED: OnceLock<Verify> = OnceLock::new();
        *ASKED.get_or_init(|| match std::env::var("GRADUS_VERIFY").as_deref() {
            Ok("1" | "every" | "on") => Verify::Every,
            Ok("first") => Verify::First,
            _ => Verify::Off,
        })
    }

    /// Whether any are.
    pub fn is_on(self) -> bool {
        self != Verify::Off
    }
}

/// So many kinds of first calls are remembered; a call that was forgotten is held against the interpreter once more.
const REMEMBERED: usize = 256;

/// Code whose calls are held against the interpreter.
pub struct Watched {
    code: Arc<dyn Executable>,
    /// Who made the code, and which calls are verified.
    pipeline: Pipeline,
    /// What it was made of: the program before the passes of the backend.
    program: Verified,
    /// What the function means: its program before any pass that changes an operation.
    reference: Program,
    /// The first calls that were right.
    seen: Mutex<FxHashSet<(u32, Sizes)>>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("code", &self.code).field("verify", &self.verify()).finish()
    }
}

/// What a run gave: its results, and what it called the host with.
pub(crate) struct Run {
    outputs: Vec<Array>,
    events: Vec<Event>,
}

/// A difference, and of what.
pub(crate) struct Found {
    what: String,
    difference: Difference,
}

impl Run {
    /// The interpreter's run of a program. What the host gave comes from notes.
    fn interpreted(program: &Program, inputs: &[Array], given: &[Event]) -> Result<Run> {
        let (outputs, events) = replayed(given, || interpret(program, inputs));
        Ok(Run { outputs: outputs?, events })
    }

    /// Everything that can be compared: results, and what the host was told.
    fn arrays(&self) -> Vec<&Array> {
        self.outputs.iter().chain(self.events.iter().flat_map(|e| &e.operands)).collect()
    }

    fn differs(&self, want: &Run, scale: Scale<'_>, relaxed: bool) -> Option<Found> {
        let found = |what: String, difference: Difference| Found { what, difference };
        for (i, (h, w)) in self.outputs.iter().zip(&want.outputs).enumerate() {
            if let Some(d) = compare(h, w, scale, relaxed) {
                return Some(found(format!("output {i}"), d));
            }
        }
        if self.outputs.len() != want.outputs.len() {
            let (have, want) = (self.outputs.len().to_string(), want.outputs.len().to_string());
            let difference = Difference { at: Vec::new(), have, want, count: 1, of: 1 };
            return Some(found("the number of outputs".into(), difference));
        }
        let of = |run: &Run, kind: Kind| run.events.iter().filter(|e| e.kind == kind).cloned().collect::<Vec<_>>();
        for kind in [Kind::Debug, Kind::Io] {
            let (have, want) = (of(self, kind), of(want, kind));
            for (n, (h, w)) in have.iter().zip(&want).enumerate().filter(|(_, (h, w))| h.is_like(w)) {
                for (i, (h, w)) in h.operands.iter().zip(&w.operands).enumerate() {
                    if let Some(d) = compare(h, w, scale, relaxed) {
                        return Some(found(format!("operand {i} of call {n} of `{}`", kind.name()), d));
                    }
                }
            }
            if have.len() != want.len() || have.iter().zip(&want).any(|(h, w)| !h.is_like(w)) {
                let (have, want) = (have.len().to_string(), want.len().to_string());
                let what = format!("the number or order of calls of `{}`", kind.name());
                return Some(found(what, Difference { at: Vec::new(), have, want, count: 1, of: 1 }));
            }
        }
        None
    }
}

/// Who made a difference.
enum Blame {
    /// A pass of the optimizer.
    Pass(&'static str),
    /// Code of an equation.
    Code(Box<Suspect>),
    /// It was not found.
    Nobody(String),
}

impl Watched {
    /// Watches code that was made of `program`. `reference` is what the function was traced to.
    pub(crate) fn new(
        code: Arc<dyn Executable>,
        pipeline: Pipeline,
        program: Verified,
        reference: &Program,
    ) -> Watched {
        // What nobody needs might be a function of the host, which compiled code does not call either.
        let reference = eliminate_dead_code(reference, true);
        Watched { code, pipeline, program, reference, seen: Mutex::default() }
    }

    fn verify(&self) -> Verify {
        self.pipeline.running.verify
    }

    /// What is watched.
    pub fn code(&self) -> &Arc<dyn Executable> {
        &self.code
    }

    /// Runs the code by `run` and holds what it gives against the interpreter, if this call is to be.
    pub fn watch(&self, inputs: &[Array], run: impl FnOnce() -> Result<Vec<Array>>) -> Result<Vec<Array>> {
        let first = (self.code.generation(), sizes_of(inputs));
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if self.verify() == Verify::Off || (self.verify() == Verify::First && seen().contains(&first)) {
            return run();
        }
        let (outputs, events) = noted(run);
        let have = Run { outputs: outputs?, events };
        // A device that fails says so here, where its numbers are wanted, and not as another number.
        for output in &have.outputs {
            output.on_host()?;
        }
        // The comparison is nobody's trace and nobody's hunt.
        apart(|| hunting(Hunt::Off, || self.check(inputs, &have)))?;
        // Other code may have taken the place of the one that ran while it ran.
        if self.verify() == Verify::First && self.code.generation() == first.0 {
            let mut seen = seen();
            if seen.len() >= REMEMBERED {
                seen.clear();
            }
            seen.insert(first);
        }
        Ok(have.outputs)
    }

    fn relaxed(&self) -> bool {
        self.pipeline.exactness == Exactness::Relaxed
    }

    fn check(&self, inputs: &[Array], have: &Run) -> Result<()> {
        let want = Run::interpreted(&self.reference, inputs, &have.events)
            .map_err(|e| e.note("the compiled code ran; the interpreter, which it is verified by, did not"))?;
        let Some(found) = have.differs(&want, Scale::Each, self.relaxed()) else { return Ok(()) };
        match self.judge(inputs, have, &want) {
            Some(blame) => Err(self.report(inputs, have, &found, &blame)),
            None => Ok(()),
        }
    }

    /// Who made a difference; nobody if it is one of rounding.
    fn judge(&self, inputs: &[Array], have: &Run, want: &Run) -> Option<Blame> {
        let relaxed = self.relaxed();
        let differs = |a: &Array, b: &Array| match (a.concrete(), b.concrete()) {
            (Some(a), Some(b)) => differing(a, b, Scale::Each, relaxed),
            _ => Vec::new(),
        };
        let is_rounding = |run: &Run| {
            let (now, want) = (run.arrays(), want.arrays());
            let same = now.len() == want.len() && now.iter().zip(&want).all(|(a, b)| a.ty().ok() == b.ty().ok());
            let given = (inputs, have.events.as_slice());
            let freedom = self.pipeline.backend.freedom();
            same && noise::unexplained(&self.reference, given, (&now, &want), freedom, &differs).is_empty()
        };
        if is_rounding(have) {
            return None;
        }
        let mut stages: Vec<(&'static str, Program)> = vec![("simplify", self.program.program().as_ref().clone())];
        let look = &mut |name, p: &Program, _| stages.push((name, p.clone()));
        let passed = match Passed::new(&*self.pipeline.backend, &self.program, self.pipeline.exactness, look) {
            Ok(passed) => passed,
            Err(e) => return Some(Blame::Nobody(format!("its passes fail now: {}", e.message()))),
        };
        for (name, p) in &stages {
            let Ok(now) = Run::interpreted(p, inputs, &have.events) else { return Some(Blame::Pass(name)) };
            if now.differs(want, Scale::Each, relaxed).is_some() && !is_rounding(&now) {
                return Some(Blame::Pass(name));
            }
        }
        let case = Case { pipeline: &self.pipeline, passed: &passed, inputs, given: &have.events };
        match suspects::find(&case, &have.outputs) {
            Verdict::Rounding => None,
            Verdict::Fault(suspect) => Some(Blame::Code(suspect)),
            Verdict::Gone => {
                let again = replayed(&have.events, || self.code.run(inputs)).0.map(|outputs| {
                    let again = Run { outputs: outputs.into_vec(), events: have.events.clone() };
                    again.differs(want, Scale::Each, relaxed).is_none() || is_rounding(&again)
                });
                Some(Blame::Nobody(match again {
                    Ok(true) => "a second run of the same code gave the interpreter's numbers: it reads memory that it did not write".into(),
                    _ => "code made again of the same program gave the interpreter's numbers".into(),
                }))
            }
        }
    }

    /// The error, with a reproduction written.
    #[cold]
    fn report(&self, inputs: &[Array], have: &Run, found: &Found, blame: &Blame) -> Error {
        let d = &found.difference;
        let at = if d.at.is_empty() { String::new() } else { format!(" at {:?}", d.at) };
        let message = format!(
            "{} of `{}`{at} is {} by `{}`, and {} by the interpreter",
            found.what,
            self.program.name(),
            d.have,
            self.pipeline.backend.name(),
            d.want
        );
        let mut e = Error::new(ErrorKind::Mismatch, message);
        if d.of > 1 {
            e = e.note(format!("{} of {} elements differ", d.count, d.of));
        }
        e = match blame {
            Blame::Pass(name) => e.note(format!("the pass `{name}` changes what the program computes")),
            Blame::Code(s) => e.note(s.to_string()).at(s.place),
            Blame::Nobody(why) => e.note(format!("the kernel was not found: {why}")),
        };
        let smaller = match blame {
            Blame::Code(s) => Some(&s.program),
            Blame::Pass(_) | Blame::Nobody(_) => None,
        };
        let made = Reproduction {
            program: self.reference.clone(),
            inputs: inputs.to_vec(),
            exactness: self.pipeline.exactness,
        };
        let e = match made.write(&e.to_string(), smaller) {
            Ok(folder) => e.note(format!(
                "the program and its inputs are in {0}; `gradus verify {0}` runs them again",
                folder.display()
            )),
            Err(why) => e.note(format!("no reproduction was written: {why}")),
        };
        let e = if have.events.is_empty() {
            e
        } else {
            e.note("the program calls the host, whose functions are only in this process")
        };
        e.help(match foreign(&self.program) {
            Some(name) => format!(
                "hold `{name}`, which is not of Gradus, against its rules with `testing::check_samples`: its scalar form and its parts must give what it \
                 evaluates to. If they do, it is a fault of Gradus: please report it with that folder"
            ),
            None if self.pipeline.backend.is_elsewhere() => format!(
                "{} computes otherwise than rounding can explain, or what it was given is not the program: `.backend(Interpreter)` gives the interpreter's \
                 numbers; please report it with that folder",
                self.pipeline.backend.device()
            ),
            None => "this is a fault of Gradus, not of your program: `.backend(Interpreter)` gives the interpreter's numbers; \
                     please report it with that folder"
                .to_string(),
        })
    }
}

/// An operation of a user's that says how it is compiled, if a program has one.
pub(crate) fn foreign(program: &Program) -> Option<&'static str> {
    program.equations().iter().find_map(|e| match e.op() {
        op if op.holds_programs() => op.programs().iter().find_map(|p| foreign(p)),
        op => (!op.is_built_in()).then(|| op.name()),
    })
}

impl Executable for Watched {
    fn run(&self, inputs: &[Array]) -> Result<Outputs> {
        self.watch(inputs, || self.code.run(inputs).map(Outputs::into_vec)).map(Outputs::from_vec)
    }
    fn bytes(&self) -> usize {
        self.code.bytes() + self.reference.bytes()
    }
    fn generation(&self) -> u32 {
        self.code.generation()
    }
    fn maker_of(&self, output: usize) -> Option<String> {
        self.code.maker_of(output)
    }
    fn is_loaded(&self) -> bool {
        self.code.is_loaded()
    }
    fn usage(&self) -> Usage {
        self.code.usage()
    }
    fn facts(&self) -> Facts {
        self.code.facts()
    }
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The elements of results that differ (as `differs` says) from those of the interpreter, though no freedom of rounding explains it: the number of the
/// result and of the element in it. `want` is what the interpreter gives of `program` for `inputs`; types are the same.
pub fn unexplained(
    program: &Program,
    inputs: &[Array],
    (have, want): (&[Array], &[Array]),
    freedom: Freedom,
    differs: &dyn Fn(&Array, &Array) -> Vec<usize>,
) -> Vec<(usize, usize)> {
    let (have, want): (Vec<&Array>, Vec<&Array>) = (have.iter().collect(), want.iter().collect());
    noise::unexplained(program, (inputs, &[]), (&have, &want), freedom, differs)
}

/// Which results of a program change at all when what is free to round otherwise does so. Of numbers that leave the range on the way, not more can be said: another order makes anything of
/// them.
pub fn touched(program: &Program, inputs: &[Array], want: &[Array], freedom: Freedom) -> Vec<bool> {
    noise::touched(program, inputs, want, freedom)
}

/// What is known of an equation, for reports: `reduce_sum`, its rules, its line.
fn named(name: &str, place: Location) -> String {
    let path = place.path();
    let through = if path.is_empty() { String::new() } else { format!(" ({path})") };
    format!("`{name}`{through}")
}
