//! Staging: from a call to a cached executable. `Core::call` is the straight line: key, lookup, trace, then the stages of the function's
//! `Pipeline`, run.

mod budget;
mod cache;
mod compiled;
mod explain;
mod hot;
mod key;
pub(crate) mod notices;
mod recursion;
mod symbolic;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use gradus_core::array::Form;
use gradus_core::executables::Origin;
use gradus_core::hunt::{self, Hunt};
use gradus_core::phases::{Phase, report};
use gradus_core::pipeline::{Pipeline, Running, default_backend, set_default_backend};
use gradus_core::primitives::Op;
use gradus_core::primitives::control::Call;
use gradus_core::trace::{self, Traced};
use gradus_core::{Array, Backend, Error, ErrorKind, Executable, Interpreter, Location, Mode, Result, interpret};
use gradus_cpu::{Cpu, Tier};
use smallvec::SmallVec;

use crate::function::{Fun, Func};
use crate::signature::Signature;
use crate::tree::{Mapper, Tree};

pub use budget::OnBudget;
use budget::{Budget, History};
use cache::{Cache, Met, Specialization};
pub use compiled::{Compiled, TracedFunction};
pub use explain::{Difference, Explanation};
use key::CallKey;
pub use key::KeyPart;
pub(crate) use key::{Leaves, first_difference, spend};
pub(crate) use recursion::carrying;
pub(crate) use symbolic::Declared;

/// Stages a function: it is traced once for each key, compiled once for each program, and then only run.
///
/// The key is made of the arguments' types and of everything frozen in them ([`Static`](crate::tree::Static) values,
/// `#[tree(skip)]` fields, numbers that are not tracked, lengths and variants). Arrays that the function captures
/// become hidden inputs of the program.
///
/// Effects of the host (a `println!`, a push to a vector) happen when the function is traced, not when the program
/// runs.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let f = jit(|x: &Array| (x * x).sin().sum());
/// assert_eq!(f(&Array::from([0.0_f64, 0.0])).item::<f64>()?, 0.0); // traced, compiled, run
/// assert_eq!(f(&Array::from([0.0_f64, 0.0])).item::<f64>()?, 0.0); // run
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn jit<S: Signature, F: Func<S> + 'static>(f: F) -> Fun<S> {
    Fun::new(Core::new("jit", true, Box::new(f), Location::caller()))
}

/// What a call may choose.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) cache_limit: usize,
    /// What becomes of a traced program.
    pub(crate) pipeline: Pipeline,
    /// Which dimensions are symbols; or what is wrong with the declaration.
    pub(crate) declared: Option<Result<Declared>>,
    /// After so many calls with the same sizes these get a program of their own.
    pub(crate) specialize_after: Option<u32>,
    pub(crate) budget: Budget,
}

/// The backend of functions that choose none: the native compiler, or what `GRADUS_BACKEND` says (`interpreter`,
/// `embedded`, `llvm`), so that a whole test suite can run on each.
fn chosen_backend() -> Arc<dyn Backend> {
    static CHOSEN: OnceLock<()> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let backend: Arc<dyn Backend> = match std::env::var("GRADUS_BACKEND").as_deref() {
            Ok("interpreter") => Arc::new(Interpreter),
            Ok("embedded") => Arc::new(Cpu::new().tier(Tier::Embedded)),
            Ok("llvm") => Arc::new(Cpu::new().tier(Tier::Llvm)),
            _ => Arc::new(Cpu::default()),
        };
        set_default_backend(backend);
    });
    default_backend()
}

/// Programs and code that one function keeps, unless it is told otherwise.
const CACHE_LIMIT: usize = 256 << 20;

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: Mode::Abstract,
            cache_limit: CACHE_LIMIT,
            pipeline: Pipeline {
                hunt: Hunt::of_environment(),
                running: Running::of_environment(),
                ..Pipeline::new(chosen_backend())
            },
            declared: None,
            specialize_after: None,
            budget: Budget::default(),
        }
    }
}

/// How often a function was traced, compiled and found ready, and what it keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Times the Rust function ran to become a program.
    pub traces: u64,
    /// Programs that were compiled.
    pub compiles: u64,
    /// Sizes of a symbolic program that got one of their own.
    pub specialized: u64,
    /// Programs whose code was found on disk.
    pub loaded: u64,
    /// Programs whose code another function had compiled already.
    pub shared: u64,
    /// Calls that found their program ready.
    pub hits: u64,
    /// Calls that did not.
    pub misses: u64,
    /// Programs that were dropped to stay within the bound.
    pub evictions: u64,
    /// Programs kept.
    pub entries: usize,
    /// Bytes they take.
    pub bytes: usize,
}

#[derive(Default)]
struct Counters {
    traces: AtomicU64,
    compiles: AtomicU64,
    specialized: AtomicU64,
    loaded: AtomicU64,
    shared: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// A function with its options and its programs: what every [`Fun`] shares among its clones and calls.
pub(crate) struct Core<S: Signature> {
    function: Arc<dyn Func<S>>,
    /// The name of the transformation, for the stack: `jit`.
    transform: &'static str,
    /// Whether calls run a stored program, or the function itself.
    staged: bool,
    /// The line that made it. A call through `dyn Fn` does not know its own line, so errors of calls name this one.
    place: Location,
    options: Options,
    counters: Counters,
    cache: Cache<S>,
    /// Entries by arguments whose dimensions are declared.
    met: Met<S>,
    history: History,
    /// Whether what is odd about the function was said.
    noticed: AtomicBool,
}

impl<S: Signature> Core<S> {
    /// A function as a transformation made it: `staged` ones keep their programs, others run as they are called.
    pub(crate) fn new(transform: &'static str, staged: bool, f: Box<dyn Func<S>>, place: Location) -> Core<S> {
        Core::with(transform, staged, f.into(), place, Options::default())
    }

    fn with(
        transform: &'static str,
        staged: bool,
        function: Arc<dyn Func<S>>,
        place: Location,
        mut options: Options,
    ) -> Core<S> {
        options.pipeline.place = place;
        let cache = Cache::new(options.cache_limit);
        Core {
            function,
            transform,
            staged,
            place,
            options,
            counters: Counters::default(),
            cache,
            met: Met::new(),
            history: History::default(),
            noticed: AtomicBool::new(false),
        }
    }

    /// The same function with other options, and nothing kept yet.
    pub(crate) fn with_options(&self, change: impl FnOnce(&mut Options)) -> Core<S> {
        let mut options = self.options.clone();
        change(&mut options);
        Core::with(self.transform, self.staged, self.function.clone(), self.place, options)
    }

    pub(crate) fn name(&self) -> String {
        self.function.name()
    }

    pub(crate) fn stack(&self) -> String {
        format!("{}({})", self.transform, self.function.stack())
    }

    pub(crate) fn stats(&self) -> Stats {
        let read = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let (entries, bytes) = self.cache.size();
        Stats {
            traces: read(&self.counters.traces),
            compiles: read(&self.counters.compiles),
            specialized: read(&self.counters.specialized),
            loaded: read(&self.counters.loaded),
            shared: read(&self.counters.shared),
            hits: read(&self.counters.hits),
            misses: read(&self.counters.misses),
            evictions: read(&self.counters.evictions),
            entries,
            bytes,
        }
    }

    pub(crate) fn clear(&self) {
        self.cache.clear();
        self.met.clear();
        self.history.clear();
    }

    /// The straight line. An error comes back as a result whose arrays carry it.
    pub(crate) fn call(&self, args: S::Refs<'_>) -> S::Out {
        if !self.staged {
            self.counters.traces.fetch_add(1, Ordering::Relaxed);
            return self.hunting(|| self.function.apply(args));
        }
        let leaves = Leaves::of::<S>(args);
        if let Err(e) = self.check(&leaves, self.place).and_then(|()| spend::<S>(args, &leaves, self.place)) {
            return failed(&*self.function, args, &e);
        }
        if self.options.declared.is_none() {
            return self.call_keyed(args, &leaves, &leaves, |_| {});
        }
        if let Some(entry) = self.met.find(leaves.hash, args).filter(|e| e.is_alive() && e.guards_hold(&leaves)) {
            self.counters.hits.fetch_add(1, Ordering::Relaxed);
            return self.execute(&entry, &leaves);
        }
        let meet = |entry: &Arc<Specialization<S>>| self.met.insert(leaves.hash, CallKey::of::<S>(args), entry.clone());
        let out = self.declared(args, |declared| {
            let key = Leaves::of::<S>(declared);
            match self.of_nothing(args, declared, &key, &leaves) {
                Some(entry) => {
                    meet(&entry);
                    self.execute(&entry, &leaves)
                }
                None => self.call_keyed(declared, &key, &leaves, meet),
            }
        });
        out.unwrap_or_else(|e| failed(&*self.function, args, &e))
    }

    /// A program of its own for arguments without elements, where the one for every size has a condition that they break and
    /// one for exactly these sizes has none. Conditions that were declared hold for it, too.
    fn of_nothing(
        &self,
        args: S::Refs<'_>,
        declared: S::Refs<'_>,
        key: &Leaves,
        leaves: &Leaves,
    ) -> Option<Arc<Specialization<S>>> {
        let Some(Ok(declaration)) = &self.options.declared else { return None };
        let is_empty = |a: &Array| a.shape().iter().any(|d| d.constant() == Some(0));
        if !leaves.arrays.iter().any(is_empty) || !declaration.holds(&key.arrays, &leaves.arrays) {
            return None;
        }
        let entry = |args: S::Refs<'_>, key: &Leaves| {
            self.lookup(args, key, leaves).or_else(|| self.make_entry(args, key, self.place).ok())
        };
        let general = entry(declared, key)?;
        let all = leaves.arrays.iter().chain(&general.captures);
        let types = all.map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>().ok()?;
        let breaks = general.optimized.program().solve_symbols(&types).err();
        breaks.filter(|e| e.kind() == ErrorKind::Constraint).and_then(|_| entry(args, leaves))
    }

    /// A call whose arguments, as far as the key sees them, are `args` with the arrays of `key`; it runs on `leaves`. `found` is
    /// told the entry.
    fn call_keyed(
        &self,
        args: S::Refs<'_>,
        key: &Leaves,
        leaves: &Leaves,
        found: impl FnOnce(&Arc<Specialization<S>>),
    ) -> S::Out {
        if let Some(entry) = self.lookup(args, key, leaves) {
            self.counters.hits.fetch_add(1, Ordering::Relaxed);
            found(&entry);
            return self.execute(&entry, leaves);
        }
        self.counters.misses.fetch_add(1, Ordering::Relaxed);
        match self.make_entry(args, key, self.place) {
            Ok(entry) => {
                found(&entry);
                self.execute(&entry, leaves)
            }
            Err(e) => e.give(&*self.function, args),
        }
    }

    /// Does something with the arguments, declared dimensions in the place of theirs.
    fn declared<T>(&self, args: S::Refs<'_>, f: impl for<'a> FnOnce(S::Refs<'a>) -> T) -> Result<T> {
        match &self.options.declared {
            None => Ok(f(args)),
            Some(Ok(declared)) => Ok(f(S::refs(&declared.apply::<S>(args, &self.name())?))),
            Some(Err(e)) => Err(e.clone()),
        }
    }

    /// Runs something that is looked at while this function hunts. One that does not leaves it to who calls it.
    fn hunting<T>(&self, f: impl FnOnce() -> T) -> T {
        let hunt = self.pipeline().hunt;
        if hunt.is_on() { hunt::hunting(hunt, f) } else { f() }
    }

    /// Refuses arguments that carry an error or whose trace is over.
    fn check(&self, leaves: &Leaves, place: Location) -> Result<()> {
        leaves.arrays.iter().try_for_each(|a| trace::check_alive(a, place))
    }

    /// The entry for arguments whose key has the hash of `key`; guards look at `leaves`.
    fn lookup(&self, args: S::Refs<'_>, key: &Leaves, leaves: &Leaves) -> Option<Arc<Specialization<S>>> {
        self.cache.find(key.hash, |entry| entry.key.matches::<S>(args) && entry.is_alive() && entry.guards_hold(leaves))
    }

    fn make_entry(
        &self,
        args: S::Refs<'_>,
        leaves: &Leaves,
        place: Location,
    ) -> Result<Arc<Specialization<S>>, Failed<S>> {
        let new = !self.noticed.load(Ordering::Relaxed);
        let (result, inside) = match new {
            true => notices::watch(|| self.run_trace(args, leaves, place)),
            false => (self.run_trace(args, leaves, place), None),
        };
        let (traced, template) = result?;
        let first = new.then(|| traced.clone());
        let entry = self
            .hunting(|| Specialization::new(CallKey::of::<S>(args), traced, template, self.pipeline()))
            .map_err(|error| Failed { error, out: None })?;
        let entry = Arc::new(entry);
        if let Some(traced) = first.filter(|_| !self.noticed.swap(true, Ordering::Relaxed)) {
            notices::give(&self.name(), self.place, &entry.key, (&traced, &entry.optimized), inside);
        }
        let evicted = self.cache.insert(leaves.hash, entry.clone());
        if evicted > 0 {
            self.met.clear();
        }
        self.counters.evictions.fetch_add(evicted, Ordering::Relaxed);
        Ok(entry)
    }

    /// Runs the Rust function on tracers.
    fn run_trace(&self, args: S::Refs<'_>, leaves: &Leaves, place: Location) -> Result<(Traced, S::Out), Failed<S>> {
        let _running =
            recursion::enter::<S>(std::ptr::from_ref(self).addr(), args, self.options.mode, &self.name(), self.place)
                .map_err(|error| Failed { error, out: None })?;
        self.counters.traces.fetch_add(1, Ordering::Relaxed);
        let traced = self.hunting(|| trace_function(&*self.function, args, &leaves.arrays, self.options.mode, place));
        let (mut traced, out) = traced?;
        if let Some(Ok(declared)) = &self.options.declared {
            traced.program = traced.program.with_constraints(&declared.constraints);
        }
        Ok((traced, out))
    }

    /// Runs an entry: on numbers as machine code, under an outer trace as one `call`, on specs as types.
    fn execute(&self, entry: &Specialization<S>, leaves: &Leaves) -> S::Out {
        let joined: SmallVec<[Array; 8]>;
        let inputs = match entry.captures.is_empty() {
            true => &leaves.arrays,
            false => {
                joined = leaves.arrays.iter().chain(&entry.captures).cloned().collect();
                &joined
            }
        };
        // Effects of a function that is called while another is traced are the other's, whatever it is called with.
        let later = !entry.optimized.effects().is_pure() && trace::is_tracing();
        let staged = later || inputs.iter().any(|a| !matches!(a.form(), Form::Concrete(_)));
        let outputs = if staged {
            let call = Call { program: entry.optimized.program().clone() };
            let outputs = trace::bind_all(Op::new(call), inputs);
            match outputs.first().and_then(Array::error) {
                Some(e) => Err(e.clone()),
                None => Ok(outputs.to_vec()),
            }
        } else if !self.pipeline().hunt.is_on() && hunt::active().is_on() {
            // Who calls it hunts, and code of its own has no checks in it.
            interpret(&entry.optimized, inputs)
        } else {
            self.run(entry, inputs)
        };
        match outputs {
            Ok(outputs) => fill(&entry.template, outputs),
            Err(e) => poison(&entry.template, &e.at(self.place)),
        }
    }

    /// Runs the code of an entry.
    fn run(&self, entry: &Specialization<S>, inputs: &[Array]) -> Result<Vec<Array>> {
        if let Some(after) = self.options.specialize_after
            && entry.optimized.is_symbolic()
        {
            let made = |_| {
                self.counters.specialized.fetch_add(1, Ordering::Relaxed);
            };
            if let Some(code) = entry.hot.code(after, (self.pipeline(), &entry.optimized), inputs, made)? {
                return code.run(inputs);
            }
        }
        self.admit(entry)?;
        self.executable(entry)?.run(inputs)
    }

    /// Counts a program that a call needs against the budget.
    fn admit(&self, entry: &Specialization<S>) -> Result<()> {
        if entry.is_ready() {
            return Ok(());
        }
        let about = budget::About { name: &self.name(), place: self.place };
        self.history.admit(self.options.budget, &entry.key, &entry.admitted, about)
    }

    fn pipeline(&self) -> &Pipeline {
        &self.options.pipeline
    }

    fn executable<'a>(&self, entry: &'a Specialization<S>) -> Result<&'a Arc<dyn Executable>> {
        entry.executable(self.pipeline(), |origin| {
            let counter = match origin {
                Origin::Compiled => &self.counters.compiles,
                Origin::Loaded => &self.counters.loaded,
                Origin::Shared => &self.counters.shared,
                Origin::Interpreted => return,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        })
    }

    #[track_caller]
    pub(crate) fn trace(&self, args: S::Refs<'_>) -> Result<TracedFunction> {
        let place = Location::caller();
        self.check(&Leaves::of::<S>(args), place)?;
        let traced = self.declared(args, |args| self.run_trace(args, &Leaves::of::<S>(args), place))?;
        let (traced, _) = traced.map_err(|f| f.error)?;
        Ok(TracedFunction::new(traced, self.pipeline().clone()))
    }

    #[track_caller]
    pub(crate) fn compile(self: &Arc<Self>, args: S::Refs<'_>) -> Result<Compiled<S>> {
        let place = Location::caller();
        self.check(&Leaves::of::<S>(args), place)?;
        let entry = self.declared(args, |args| {
            let leaves = Leaves::of::<S>(args);
            match self.lookup(args, &leaves, &leaves) {
                Some(entry) => Ok(entry),
                None => self.make_entry(args, &leaves, place).map_err(|f| f.error),
            }
        })??;
        self.executable(&entry)?;
        Ok(Compiled { core: self.clone(), entry })
    }

    /// Every phase of a call, from the key to the numbers, with its time and size.
    #[track_caller]
    pub(crate) fn phases(&self, args: S::Refs<'_>) -> Result<Phases> {
        let place = Location::caller();
        let (result, mut phases) = gradus_core::phases::watch(|| -> Result<()> {
            let started = Instant::now();
            let given = Leaves::of::<S>(args);
            self.check(&given, place)?;
            let entry = self.declared(args, |args| -> Result<Specialization<S>> {
                let key = CallKey::of::<S>(args);
                let keyed = key.parts.iter().map(|p| format!("{p:?}\n")).collect::<String>();
                report(|| Phase::described("specialize", keyed, started.elapsed()));
                let started = Instant::now();
                let (traced, template) = self.run_trace(args, &Leaves::of::<S>(args), place).map_err(|f| f.error)?;
                let time = started.elapsed();
                report(|| Phase::new("trace", &[&traced.program], time));
                Specialization::new(key, traced, template, self.pipeline())
            })??;
            let code = self.pipeline().compile(&self.pipeline().instrument(&entry.optimized)?)?;
            let inputs: Vec<Array> = given.arrays.iter().chain(&entry.captures).cloned().collect();
            if inputs.iter().all(|a| a.concrete().is_some()) {
                let started = Instant::now();
                let outputs = code.run(&inputs)?;
                let time = started.elapsed();
                let text = outputs.iter().map(|a| format!("{a:?}\n")).collect::<String>();
                report(|| Phase::described("execute", text, time));
            }
            Ok(())
        });
        result?;
        // The trace ends after the transformations inside it; a reader wants it by its start.
        if let Some(at) = phases.iter().position(|p| p.name == "trace") {
            phases[1..=at].rotate_right(1);
        }
        Ok(Phases(phases))
    }

    pub(crate) fn explain(&self, args: S::Refs<'_>) -> Explanation {
        let about = explain::About {
            function: self.name(),
            stack: self.stack(),
            mode: self.options.mode,
            pipeline: self.pipeline().clone(),
            budget: self.options.budget,
            history: self.history.summary(self.options.budget),
        };
        let entries = self.cache.all();
        let explain = |args: S::Refs<'_>| {
            let leaves = Leaves::of::<S>(args);
            let hit = self.lookup(args, &leaves, &leaves).is_some();
            let kept = entries.iter().map(|e| (&e.key, e.failed_guard(&leaves))).collect();
            Explanation::new(about.clone(), hit, &CallKey::of::<S>(args), kept)
        };
        // What does not fit the declaration is explained as it came.
        self.declared(args, explain).unwrap_or_else(|_| explain(args))
    }
}

/// Runs a Rust function on tracers that stand for `inputs`: arrays with numbers, or only types.
pub(crate) fn trace_function<S: Signature>(
    function: &dyn Func<S>,
    args: S::Refs<'_>,
    inputs: &[Array],
    mode: Mode,
    place: Location,
) -> Result<(Traced, S::Out), Failed<S>> {
    let traced = trace_body(&function.name(), inputs, mode, place, |tracers| {
        let mut next = tracers.iter();
        let traced_args = S::map(args, &mut Replace(|a: &Array| next.next().cloned().unwrap_or_else(|| a.clone())));
        function.apply(S::refs(&traced_args))
    });
    traced.map_err(|(error, out)| Failed { error, out })
}

/// Runs Rust code on tracers that stand for `inputs`; gives its program and what it returned. If it fails, what was
/// returned meanwhile comes with the error.
pub(crate) fn trace_body<O: Tree>(
    name: &str,
    inputs: &[Array],
    mode: Mode,
    place: Location,
    body: impl FnOnce(&[Array]) -> O,
) -> Result<(Traced, O), (Error, Option<O>)> {
    let mut out = None;
    let result = trace::at_place(place, || {
        trace::trace(name, inputs, mode, |tracers| {
            // The user's operations have lines of their own.
            trace::at_place(Location::unknown(), || {
                let result = body(tracers);
                let arrays = result.leaves();
                out = Some(result);
                arrays
            })
        })
    });
    match (result, out) {
        (Ok(traced), Some(out)) => Ok((traced, out)),
        (Ok(_), None) => Err((Error::new(ErrorKind::Rule, "the function was traced but gave no result"), None)),
        (Err(error), out) => Err((error, out)),
    }
}

/// A trace that failed, with what the function returned meanwhile.
pub(crate) struct Failed<S: Signature> {
    pub(crate) error: Error,
    pub(crate) out: Option<S::Out>,
}

impl<S: Signature> Failed<S> {
    /// The result that carries the error.
    pub(crate) fn give(self, function: &dyn Func<S>, args: S::Refs<'_>) -> S::Out {
        match self.out {
            Some(out) => poison(&out, &self.error),
            None => failed(function, args, &self.error),
        }
    }
}

/// Replaces arrays one by one, in the order of the tree.
pub(crate) struct Replace<F>(pub(crate) F);

impl<F: FnMut(&Array) -> Array> Mapper for Replace<F> {
    fn array(&mut self, array: &Array) -> Array {
        (self.0)(array)
    }
}

/// A result of the template's structure with these arrays.
pub(crate) fn fill<T: Tree>(template: &T, outputs: Vec<Array>) -> T {
    let mut outputs = outputs.into_iter();
    let missing = || Array::from(Error::new(ErrorKind::Rule, "a program gave too few results"));
    template.map(&mut Replace(|_: &Array| outputs.next().unwrap_or_else(missing)))
}

/// The result when there is no template: where the type does not say it, the structure is that of the function's result on
/// arguments that carry the error. Every array in it is the error.
pub(crate) fn failed<S: Signature>(function: &dyn Func<S>, args: S::Refs<'_>, error: &Error) -> S::Out {
    recursion::carrying(error, || {
        let args = S::map(args, &mut Replace(|_: &Array| Array::from(error.clone())));
        poison(&trace::quietly(|| function.apply(S::refs(&args))), error)
    })
}

/// A result of the template's structure in which every array carries the error.
pub(crate) fn poison<T: Tree>(template: &T, error: &Error) -> T {
    template.map(&mut Replace(|_: &Array| Array::from(error.clone())))
}

/// The phases of a call, in order. Its text shows them all.
#[derive(Clone, Debug)]
pub struct Phases(Vec<Phase>);

impl std::ops::Deref for Phases {
    type Target = [Phase];
    fn deref(&self) -> &[Phase] {
        &self.0
    }
}

impl std::fmt::Display for Phases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|p| write!(f, "{p}"))
    }
}
