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

use gradus_core::executables::Origin;
use gradus_core::hunt::{self, Hunt};
use gradus_core::phases::{Phase, report};
use gradus_core::pipeline::{Pipeline, Running, default_backend, facts_of, set_default_backend, using};
use gradus_core::primitives::control::Call;
use gradus_core::primitives::{Op, Outputs};
use gradus_core::trace::{self, Traced};
use gradus_core::{Array, Backend, Error, ErrorKind, Executable, Location, Mode, Result, Usage, interpret};
use smallvec::SmallVec;

use crate::arguments::Arguments;
use crate::function::{Func, Transformed};
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
pub fn jit<'f, A: Arguments, O: Tree, F: Func<A, O> + 'f>(f: F) -> Transformed<'f, A, O> {
    Transformed::new(Core::new("jit", true, Arc::new(f), Location::caller()))
}

/// What a call may choose.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) cache_limit: usize,
    /// What becomes of a traced program.
    pub(crate) pipeline: Pipeline,
    /// Whether its backend was chosen for this function.
    pub(crate) chosen: bool,
    /// Which dimensions are symbols; or what is wrong with the declaration.
    pub(crate) declared: Option<Result<Declared>>,
    /// After so many calls with the same sizes these get a program of their own.
    pub(crate) specialize_after: Option<u32>,
    pub(crate) budget: Budget,
}

/// The backend of functions that choose none: the native compiler, or what `GRADUS_BACKEND` says, so that a whole test suite can run on each.
fn chosen_backend() -> Arc<dyn Backend> {
    static CHOSEN: OnceLock<()> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        set_default_backend(crate::devices::of_environment());
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
            chosen: false,
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
    /// What the code of those that are kept took on their device: bytes moved, sizes compiled, time. Equal programs of other functions share it.
    pub device: Usage,
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

/// A function with its options and its programs: what every [`Transformed`] shares among its clones and calls.
pub(crate) struct Core<'f, A: Arguments, O: Tree> {
    function: Arc<dyn Func<A, O> + 'f>,
    /// The name of the transformation, for the stack: `jit`.
    transform: &'static str,
    /// Whether calls run a stored program, or the function itself.
    staged: bool,
    /// The line that made it. A call through `dyn Fn` does not know its own line, so errors of calls name this one.
    place: Location,
    options: Options,
    counters: Counters,
    cache: Cache<O>,
    /// Entries by arguments whose dimensions are declared.
    met: Met<O>,
    history: History,
    /// Whether what is odd about the function was said.
    noticed: AtomicBool,
}

impl<'f, A: Arguments, O: Tree> Core<'f, A, O> {
    /// A function as a transformation made it: `staged` ones keep their programs, others run as they are called.
    pub(crate) fn new(transform: &'static str, staged: bool, f: Arc<dyn Func<A, O> + 'f>, place: Location) -> Self {
        Core::with(transform, staged, f, place, Options::default())
    }

    fn with(
        transform: &'static str,
        staged: bool,
        function: Arc<dyn Func<A, O> + 'f>,
        place: Location,
        mut options: Options,
    ) -> Self {
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
    pub(crate) fn with_options(&self, change: impl FnOnce(&mut Options)) -> Self {
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
            device: self.cache.usage(),
        }
    }

    pub(crate) fn clear(&self) {
        self.cache.clear();
        self.met.clear();
        self.history.clear();
    }

    /// The straight line. An error comes back as a result whose arrays carry it.
    pub(crate) fn call(&self, args: A::Refs<'_>) -> O {
        if !self.staged {
            self.counters.traces.fetch_add(1, Ordering::Relaxed);
            return match &self.options.declared {
                None => self.on_backend(|| self.hunting(|| self.function.apply(args))),
                Some(_) => failed(&*self.function, args, &self.declared_in_vain()),
            };
        }
        let leaves = Leaves::of::<A>(args);
        if let Err(e) = self.admitted(args, &leaves) {
            return failed(&*self.function, args, &e);
        }
        if self.options.declared.is_none() {
            return self.call_keyed(args, &leaves, &leaves, |_| {});
        }
        if let Some(entry) = self.met.find::<A>(leaves.hash, args).filter(|e| e.is_alive() && e.guards_hold(&leaves)) {
            self.counters.hits.fetch_add(1, Ordering::Relaxed);
            return self.execute(&entry, &leaves);
        }
        let meet = |entry: &Arc<Specialization<O>>| self.met.insert(leaves.hash, CallKey::of::<A>(args), entry.clone());
        let out = self.declared(args, |declared| {
            let key = Leaves::of::<A>(declared);
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

    /// Arguments that a call may have, with their keys used up.
    fn admitted(&self, args: A::Refs<'_>, leaves: &Leaves) -> Result<()> {
        // The line of a call is not known here; what is wrong with a key names it all the same.
        let staged = |e: Error| e.note(format!("calls of `{}` are known by the line that staged it", self.name()));
        self.check(leaves, self.place).and_then(|()| spend::<A>(args, leaves, self.place).map_err(staged))
    }

    /// A call whose arguments are given away: code that is ready on a device may write results over what nobody else holds. Every other call only looks at them.
    pub(crate) fn consume(&self, args: A) -> O {
        let pipeline = self.pipeline();
        let plain = self.staged && self.options.declared.is_none() && !pipeline.hunt.is_on() && !hunt::active().is_on();
        if !plain || !pipeline.backend.is_elsewhere() || pipeline.running.verify.is_on() || trace::is_tracing() {
            return self.call(args.refs());
        }
        let leaves = Leaves::of::<A>(args.refs());
        let ready = |entry: &Arc<Specialization<O>>| entry.is_ready() && leaves.arrays.iter().all(Array::has_numbers);
        let Some(entry) = self.lookup(args.refs(), &leaves, &leaves).filter(ready) else {
            return self.call(args.refs());
        };
        if let Err(e) = self.admitted(args.refs(), &leaves) {
            return failed(&*self.function, args.refs(), &e);
        }
        drop(args);
        self.counters.hits.fetch_add(1, Ordering::Relaxed);
        let inputs: Vec<Array> = leaves.arrays.into_iter().chain(entry.captures.iter().cloned()).collect();
        let outputs = self.on_backend(|| self.executable(&entry)?.run_owned(inputs));
        match outputs {
            Ok(outputs) => {
                outputs.iter().for_each(|a| a.made_at(self.place));
                fill(&entry.template, outputs)
            }
            Err(e) => poison(&entry.template, &e.at(self.place)),
        }
    }

    /// A program of its own for arguments without elements, where the one for every size has a condition that they break and
    /// one for exactly these sizes has none. Conditions that were declared hold for it, too.
    fn of_nothing(
        &self,
        args: A::Refs<'_>,
        declared: A::Refs<'_>,
        key: &Leaves,
        leaves: &Leaves,
    ) -> Option<Arc<Specialization<O>>> {
        let Some(Ok(declaration)) = &self.options.declared else { return None };
        let is_empty = |a: &Array| a.shape().iter().any(|d| d.constant() == Some(0));
        if !leaves.arrays.iter().any(is_empty) || !declaration.holds(&key.arrays, &leaves.arrays) {
            return None;
        }
        let entry = |args: A::Refs<'_>, key: &Leaves| {
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
        args: A::Refs<'_>,
        key: &Leaves,
        leaves: &Leaves,
        found: impl FnOnce(&Arc<Specialization<O>>),
    ) -> O {
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

    /// Sizes are declared for programs that are kept, and a function that is not staged keeps none.
    fn declared_in_vain(&self) -> Error {
        let stack = self.stack();
        Error::new(ErrorKind::Value, format!("`{stack}` is not staged, so it has no program to declare sizes of"))
            .at(self.place)
            .help(format!("stage it first, as in `jit({stack}).symbolic(..)`"))
    }

    /// What is wrong with the sizes of a call, said with the names of the arguments and the line that wants otherwise.
    fn named(&self, entry: &Specialization<O>, inputs: &[Array], error: Error) -> Error {
        if !entry.optimized.is_symbolic() || !matches!(error.kind(), ErrorKind::Constraint | ErrorKind::Signature) {
            return error;
        }
        let paths: Vec<&str> = entry.key.parts.iter().filter(|p| p.leaf().is_some()).map(KeyPart::path).collect();
        let named = |i: usize| paths.get(i).map_or_else(|| "a captured array".to_string(), ToString::to_string);
        let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>();
        let again = types.and_then(|types| entry.optimized.program().solve_symbols_of(&types, &named));
        again.err().unwrap_or(error)
    }

    /// Does something with the arguments, declared dimensions in the place of theirs.
    fn declared<T>(&self, args: A::Refs<'_>, f: impl for<'a> FnOnce(A::Refs<'a>) -> T) -> Result<T> {
        match &self.options.declared {
            None => Ok(f(args)),
            Some(Ok(declared)) => Ok(f(declared.apply::<A>(args, &self.name())?.refs())),
            Some(Err(e)) => Err(e.clone()),
        }
    }

    /// Runs something that is looked at while this function hunts. One that does not leaves it to who calls it.
    fn hunting<T>(&self, f: impl FnOnce() -> T) -> T {
        let hunt = self.pipeline().hunt;
        if hunt.is_on() { hunt::hunting(hunt, f) } else { f() }
    }

    /// Runs something so that programs called meanwhile run on the backend that was chosen for this function, if one was.
    fn on_backend<T>(&self, f: impl FnOnce() -> T) -> T {
        if self.options.chosen { using(&self.pipeline().backend, f) } else { f() }
    }

    /// Refuses arguments that carry an error or whose trace is over.
    fn check(&self, leaves: &Leaves, place: Location) -> Result<()> {
        leaves.arrays.iter().try_for_each(|a| trace::check_alive(a, place))
    }

    /// The entry for arguments whose key has the hash of `key`; guards look at `leaves`.
    fn lookup(&self, args: A::Refs<'_>, key: &Leaves, leaves: &Leaves) -> Option<Arc<Specialization<O>>> {
        let matches = |entry: &Specialization<O>| entry.key.matches::<A>(args);
        self.cache.find(key.hash, matches, |entry| entry.is_alive() && entry.guards_hold(leaves))
    }

    fn make_entry(
        &self,
        args: A::Refs<'_>,
        leaves: &Leaves,
        place: Location,
    ) -> Result<Arc<Specialization<O>>, Failed<O>> {
        let new = !self.noticed.load(Ordering::Relaxed);
        let (result, inside) = match new {
            true => notices::watch(|| self.run_trace(args, leaves, place)),
            false => (self.run_trace(args, leaves, place), None),
        };
        let (traced, template) = result?;
        let first = new.then(|| traced.clone());
        let entry = self
            .hunting(|| Specialization::new(CallKey::of::<A>(args), traced, template, self.pipeline()))
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
    fn run_trace(&self, args: A::Refs<'_>, leaves: &Leaves, place: Location) -> Result<(Traced, O), Failed<O>> {
        let _running =
            recursion::enter::<A>(std::ptr::from_ref(self).addr(), args, self.options.mode, &self.name(), self.place)
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
    fn execute(&self, entry: &Specialization<O>, leaves: &Leaves) -> O {
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
        let staged = later || !inputs.iter().all(Array::has_numbers);
        let outputs = if staged {
            let call = Call { program: entry.optimized.program().clone() };
            let outputs = trace::bind_all(Op::new(call), inputs);
            match outputs.first().and_then(Array::error) {
                Some(e) => Err(e.clone()),
                None => Ok(outputs),
            }
        } else if !self.pipeline().hunt.is_on() && hunt::active().is_on() {
            // Who calls it hunts, and code of its own has no checks in it.
            interpret(&entry.optimized, inputs).map(Outputs::from_vec)
        } else {
            match entry.code().filter(|code| self.options.specialize_after.is_none() && code.runs_alone()) {
                Some(code) => code.run(inputs),
                None => self.on_backend(|| self.run(entry, inputs)),
            }
        };
        match outputs {
            Ok(outputs) => {
                outputs.iter().for_each(|a| a.made_at(self.place));
                fill(&entry.template, outputs)
            }
            Err(e) => poison(&entry.template, &self.named(entry, inputs, e).at(self.place)),
        }
    }

    /// Runs the code of an entry.
    fn run(&self, entry: &Specialization<O>, inputs: &[Array]) -> Result<Outputs> {
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
    fn admit(&self, entry: &Specialization<O>) -> Result<()> {
        if entry.is_ready() {
            return Ok(());
        }
        let about = budget::About { name: &self.name(), place: self.place };
        self.history.admit(self.options.budget, &entry.key, &entry.admitted, about)
    }

    fn pipeline(&self) -> &Pipeline {
        &self.options.pipeline
    }

    fn executable<'a>(&self, entry: &'a Specialization<O>) -> Result<&'a Arc<dyn Executable>> {
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
    pub(crate) fn trace(&self, args: A::Refs<'_>) -> Result<TracedFunction> {
        let place = Location::caller();
        self.check(&Leaves::of::<A>(args), place)?;
        let traced = self.declared(args, |args| self.run_trace(args, &Leaves::of::<A>(args), place))?;
        let (traced, _) = traced.map_err(|f| f.error)?;
        Ok(TracedFunction::new(traced, self.pipeline().clone()))
    }

    /// Every phase of a call, from the key to the numbers, with its time and size.
    #[track_caller]
    pub(crate) fn phases(&self, args: A::Refs<'_>) -> Result<Phases> {
        let place = Location::caller();
        let (result, mut phases) = gradus_core::phases::watch(|| -> Result<()> {
            let started = Instant::now();
            let given = Leaves::of::<A>(args);
            self.check(&given, place)?;
            let entry = self.declared(args, |args| -> Result<Specialization<O>> {
                let key = CallKey::of::<A>(args);
                let keyed = key.parts.iter().map(|p| format!("{p:?}\n")).collect::<String>();
                report(|| Phase::described("specialize", keyed, started.elapsed()));
                let started = Instant::now();
                let (traced, template) = self.run_trace(args, &Leaves::of::<A>(args), place).map_err(|f| f.error)?;
                let time = started.elapsed();
                report(|| Phase::new("trace", &[&traced.program], time));
                Specialization::new(key, traced, template, self.pipeline())
            })??;
            let code = self.pipeline().compile(&self.pipeline().instrument(&entry.optimized)?)?;
            let inputs: Vec<Array> = given.arrays.iter().chain(&entry.captures).cloned().collect();
            if inputs.iter().all(Array::has_numbers) {
                let started = Instant::now();
                let outputs = code.run(&inputs)?;
                let time = started.elapsed();
                let mut text = outputs.iter().map(|a| format!("{a:?}\n")).collect::<String>();
                text += &facts_of(&*code).join("\n");
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

    pub(crate) fn explain(&self, args: A::Refs<'_>) -> Explanation {
        let about = explain::About {
            function: self.name(),
            stack: self.stack(),
            mode: self.options.mode,
            pipeline: self.pipeline().clone(),
            budget: self.options.budget,
            history: self.history.summary(self.options.budget),
        };
        let entries = self.cache.all();
        let explain = |args: A::Refs<'_>| {
            let leaves = Leaves::of::<A>(args);
            let found =
                self.lookup(args, &leaves, &leaves).map(|entry| entry.code().map_or_else(Vec::new, |c| facts_of(&**c)));
            let kept = entries.iter().map(|e| (&e.key, e.failed_guard(&leaves))).collect();
            Explanation::new(about.clone(), found, &CallKey::of::<A>(args), kept)
        };
        // What does not fit the declaration is explained as it came.
        self.declared(args, explain).unwrap_or_else(|_| explain(args))
    }
}

impl<A: Arguments, O: Tree> Core<'static, A, O> {
    #[track_caller]
    pub(crate) fn compile(self: &Arc<Self>, args: A::Refs<'_>) -> Result<Compiled<A, O>> {
        let place = Location::caller();
        self.check(&Leaves::of::<A>(args), place)?;
        let entry = self.declared(args, |args| {
            let leaves = Leaves::of::<A>(args);
            match self.lookup(args, &leaves, &leaves) {
                Some(entry) => Ok(entry),
                None => self.make_entry(args, &leaves, place).map_err(|f| f.error),
            }
        })??;
        self.executable(&entry)?;
        Ok(Compiled { core: self.clone(), entry })
    }
}

/// Runs a Rust function on tracers that stand for `inputs`: arrays with numbers, or only types.
pub(crate) fn trace_function<A: Arguments, O: Tree>(
    function: &(dyn Func<A, O> + '_),
    args: A::Refs<'_>,
    inputs: &[Array],
    mode: Mode,
    place: Location,
) -> Result<(Traced, O), Failed<O>> {
    let traced = trace_body(&function.name(), inputs, mode, place, |tracers| {
        let mut next = tracers.iter();
        let traced_args = A::map_all(args, &mut Replace(|a: &Array| next.next().cloned().unwrap_or_else(|| a.clone())));
        function.apply(traced_args.refs())
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
pub(crate) struct Failed<O: Tree> {
    pub(crate) error: Error,
    pub(crate) out: Option<O>,
}

impl<O: Tree> Failed<O> {
    /// The result that carries the error.
    pub(crate) fn give<A: Arguments>(self, function: &(dyn Func<A, O> + '_), args: A::Refs<'_>) -> O {
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
pub(crate) fn fill<T: Tree>(template: &T, outputs: impl IntoIterator<Item = Array>) -> T {
    let mut outputs = outputs.into_iter();
    let missing = || Array::from(Error::new(ErrorKind::Rule, "a program gave too few results"));
    template.map(&mut Replace(|_: &Array| outputs.next().unwrap_or_else(missing)))
}

/// The result when there is no template: where the type does not say it, the structure is that of the function's result on
/// arguments that carry the error. Every array in it is the error.
pub(crate) fn failed<A: Arguments, O: Tree>(function: &(dyn Func<A, O> + '_), args: A::Refs<'_>, error: &Error) -> O {
    recursion::carrying(error, || {
        let args = A::map_all(args, &mut Replace(|_: &Array| Array::from(error.clone())));
        poison(&trace::quietly(|| function.apply(args.refs())), error)
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
