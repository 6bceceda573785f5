//! The traces that are active on a thread, and how operations are recorded in the innermost one.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Guard, Mode, Traced, Tracer, not_concrete};
use crate::array::{Array, Concrete, Form};
use crate::error::{Error, Location, Result, error, fail};
use crate::primitives::shaping::Broadcast;
use crate::primitives::{Op, Outputs};
use crate::program::{Atom, Builder, Constant, Equation, Program, ValueId, eliminate_dead_code, infer};
use crate::stack::{self, DEEPEST};
use crate::types::{Constraint, Type};

/// Captured arrays of at most this many elements become constants of the program; larger ones hidden inputs.
pub const EMBED_LIMIT: usize = 64;

/// A trace's identity: the thread it runs on, and its number there. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(super) struct TraceId {
    thread: u32,
    serial: u64,
}

struct State {
    id: TraceId,
    builder: Builder,
    mode: Mode,
    /// Whether captured numbers are constants always: a program made from a program has no hidden inputs.
    closed: bool,
    /// Whether operations on numbers are recorded too, and none is computed.
    as_written: bool,
    started: Location,
    inputs: usize,
    /// Concrete mode: the numbers of values, as far as someone asked for them. Those of inputs are arrays with numbers, or
    /// values of an outer trace to ask in turn.
    numbers: FxHashMap<ValueId, Array>,
    captures: Vec<Array>,
    /// Captures by identity, so that one array captured twice is one input.
    captured: FxHashMap<CaptureKey, usize>,
    /// Arrays of which a part was captured: while they are here, their identity is not that of another.
    repeated: Vec<Arc<Concrete>>,
    guards: Vec<(Atom, Guard)>,
    guarded: FxHashMap<Atom, ()>,
    /// The first read that had no answer. It ends the trace with an error even if the user's code swallowed it.
    failed_read: Option<Error>,
    /// Values that a function inside reads, see `Traced::read`.
    read: FxHashSet<ValueId>,
}

#[derive(PartialEq, Eq, Hash)]
enum CaptureKey {
    Buffer(usize),
    Value(TraceId, ValueId),
}

thread_local! {
    static STACK: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
    static THREAD: u32 = {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
    static SERIAL: Cell<u64> = const { Cell::new(0) };
    /// How many users' functions are being traced. Not the length of the stack: `apart` sets that aside, and the frames stay.
    static CAPTURES: Cell<usize> = const { Cell::new(0) };
}

/// Whether a function is being traced on this thread.
pub fn is_tracing() -> bool {
    STACK.with_borrow(|s| !s.is_empty())
}

/// Runs a function as if nothing were traced on this thread: what it does with arrays happens at once.
pub(crate) fn apart<T>(f: impl FnOnce() -> T) -> T {
    struct Restore(Vec<State>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STACK.set(std::mem::take(&mut self.0));
        }
    }
    let _restore = Restore(STACK.take());
    super::at_place(Location::unknown(), f)
}

/// Ends the innermost trace with an error when it is over, even if what carries the error is not among its results. Gives
/// the error back where nothing is traced.
pub fn fail(error: Error) -> Result<()> {
    if super::is_quiet() {
        return Err(error);
    }
    STACK.with_borrow_mut(|s| match s.last_mut() {
        Some(state) => {
            state.failed_read.get_or_insert(error);
            Ok(())
        }
        None => Err(error),
    })
}

/// Whether the innermost trace makes a program that stands alone.
pub(super) fn is_closed() -> bool {
    STACK.with_borrow(|s| s.last().is_some_and(|t| t.closed))
}

/// Whether the innermost trace records every operation, on numbers too.
pub(super) fn is_as_written() -> bool {
    STACK.with_borrow(|s| s.last().is_some_and(|t| t.as_written))
}

/// A trace in progress; dropping it (a panic in the user's function) ends it.
///
/// *Invariant.* Traces of users' functions stand in each other at most as deep as programs nest, and each has found room on the thread's
/// stack: a function that goes on for ever gets an error from the trace that is one too many. A program that is made from a
/// program is no deeper than that one, so for those the room alone is asked for.
pub(super) struct Active {
    id: TraceId,
    closed: bool,
}

impl Drop for Active {
    fn drop(&mut self) {
        if !self.closed {
            CAPTURES.set(CAPTURES.get() - 1);
        }
        STACK.with_borrow_mut(|s| {
            if let Some(at) = s.iter().position(|t| t.id == self.id) {
                s.truncate(at);
            }
        });
    }
}

impl Active {
    pub(super) fn start(name: &str, mode: Mode, started: Location) -> Result<Active> {
        // The outermost one is not nested in any.
        if CAPTURES.get() > DEEPEST {
            return Err(too_deep(name));
        }
        let active = Active::begin(name, mode, false, started)?;
        CAPTURES.set(CAPTURES.get() + 1);
        Ok(active)
    }

    pub(super) fn start_closed(name: &str, started: Location) -> Result<Active> {
        Active::begin(name, Mode::Abstract, true, started)
    }

    pub(super) fn start_as_written(name: &str, started: Location) -> Result<Active> {
        let active = Active::begin(name, Mode::Abstract, true, started)?;
        STACK.with_borrow_mut(|s| s.iter_mut().filter(|t| t.id == active.id).for_each(|t| t.as_written = true));
        Ok(active)
    }

    fn begin(name: &str, mode: Mode, closed: bool, started: Location) -> Result<Active> {
        stack::check()?;
        let id = TraceId { thread: THREAD.with(|t| *t), serial: SERIAL.get() };
        SERIAL.set(id.serial + 1);
        let state = State {
            id,
            builder: Builder::new(name),
            mode,
            closed,
            as_written: false,
            started,
            inputs: 0,
            numbers: FxHashMap::default(),
            captures: Vec::new(),
            captured: FxHashMap::default(),
            repeated: Vec::new(),
            guards: Vec::new(),
            guarded: FxHashMap::default(),
            failed_read: None,
            read: FxHashSet::default(),
        };
        STACK.with_borrow_mut(|s| s.push(state));
        Ok(Active { id, closed })
    }

    pub(super) fn input(&self, array: &Array, place: Location) -> Result<Array> {
        let ty = array.ty()?.clone();
        STACK.with_borrow_mut(|s| {
            let state = s.last_mut().filter(|t| t.id == self.id).ok_or_else(out_of_order)?;
            let value = state.builder.input(ty.clone())?;
            state.inputs += 1;
            if state.mode == Mode::Concrete && !matches!(array.form(), Form::Spec(_)) {
                state.numbers.insert(value, array.clone());
            }
            Ok(Tracer { ty, place, trace: self.id, value }.into())
        })
    }

    pub(super) fn finish(self, outputs: &[Array], place: Location) -> Result<Traced> {
        let atoms = outputs.iter().map(|a| atom_of(a, place)).collect::<Result<Vec<_>>>();
        let state = STACK.with_borrow_mut(|s| if s.last().is_some_and(|t| t.id == self.id) { s.pop() } else { None });
        let state = state.ok_or_else(out_of_order)?;
        // A swallowed read explains a failed output better than the output's own error.
        if let Some(e) = state.failed_read {
            return Err(e);
        }
        let atoms = atoms?;
        let guard_atoms: Vec<Atom> = state.guards.iter().map(|(a, _)| *a).collect();
        let guards = state.guards.into_iter().map(|(_, g)| g).collect::<Vec<_>>();
        let captures = state.captures;
        let whole = state.builder.finish(atoms.iter().chain(&guard_atoms).copied().collect());
        let types: Vec<Type> = captures.iter().map(|a| a.ty().cloned()).collect::<Result<_>>()?;
        let whole = whole.with_captures(state.inputs, &types);
        let (program, guard_program) = if guards.is_empty() {
            (whole, Program::default())
        } else {
            let program = whole.clone().select_outputs(&Vec::from_iter(0..atoms.len()));
            let guarded = whole.select_outputs(&Vec::from_iter(atoms.len()..atoms.len() + guards.len()));
            (program, eliminate_dead_code(&guarded, false))
        };
        #[cfg(debug_assertions)]
        crate::program::verify(&program)?;
        let read = (0..state.inputs).map(|i| state.read.contains(&ValueId::new(i))).collect();
        Ok(Traced { program, captures, guards, guard_program, read })
    }
}

fn too_deep(name: &str) -> Error {
    error!(Size, "functions are traced more than {DEEPEST} deep inside of each other, the last one is `{name}`").help(
        "every loop, branch, checkpoint, `jit`, `vmap` or derivative inside of another is a level: turn a recursion into a loop (`scan`, \
         `while_loop`), or write the inner levels as plain functions",
    )
}

fn out_of_order() -> Error {
    error!(Rule, "traces ended out of order")
}

impl State {
    fn capture(&mut self, array: &Array, key: CaptureKey, ty: &Type) -> Atom {
        let next = self.captures.len();
        let index = *self.captured.entry(key).or_insert(next);
        if index == next {
            self.captures.push(array.clone());
        }
        self.builder.constant(Constant::capture(ty.clone(), index))
    }
}

/// What an array is in the innermost trace: a value, a constant, or a capture.
fn atom_of(array: &Array, place: Location) -> Result<Atom> {
    match array.form() {
        Form::Failed(e) => Err(e.clone()),
        Form::Spec(ty) => Err(error!(NotConcrete, "{ty} is only a type and cannot be a value of a program")
            .at(place)
            .help("pass specs as arguments of `trace` or `compile`; inside a function use arrays")),
        // A program takes it from where it is. Only what must stand alone has the numbers in it; no borrow is held while they come.
        Form::Remote(r) => match STACK.with_borrow(|s| s.last().is_some_and(|state| state.closed)) {
            true => {
                let c = array.on_host().map_err(|e| e.at(place))?;
                STACK.with_borrow_mut(|s| {
                    let Some(state) = s.last_mut() else { fail!(Rule, "no trace is active") };
                    Ok(state.builder.constant(Constant::array(c)))
                })
            }
            false => STACK.with_borrow_mut(|s| {
                let Some(state) = s.last_mut() else { fail!(Rule, "no trace is active") };
                let key = CaptureKey::Buffer(Arc::as_ptr(r) as usize);
                Ok(state.capture(array, key, r.ty()))
            }),
        },
        Form::Concrete(c) => STACK.with_borrow_mut(|s| {
            let Some(state) = s.last_mut() else { fail!(Rule, "no trace is active") };
            if state.closed || c.splat_value().is_some() || c.count() <= EMBED_LIMIT {
                return Ok(state.builder.constant(Constant::array(c)));
            }
            let key = CaptureKey::Buffer(Arc::as_ptr(c) as usize);
            let Some((unrepeated, axes)) = c.unrepeated() else { return Ok(state.capture(array, key, c.ty())) };
            // What is repeated is stored once, and the program repeats it.
            let once = if unrepeated.count() <= EMBED_LIMIT {
                state.builder.constant(Constant::array(&unrepeated))
            } else {
                let ty = unrepeated.ty().clone();
                state.repeated.push(c.clone());
                state.capture(&unrepeated.into(), key, &ty)
            };
            let repeat = Op::new(Broadcast { shape: c.ty().shape().clone(), axes });
            let value = state.builder.push(repeat, &[once], smallvec::smallvec![c.ty().clone()], place)?.result();
            Ok(value.into())
        }),
        Form::Traced(t) => {
            check_alive(t, place)?;
            STACK.with_borrow_mut(|s| {
                let Some(state) = s.last_mut() else { fail!(Rule, "no trace is active") };
                if state.id == t.trace {
                    return Ok(t.value.into());
                }
                Ok(state.capture(array, CaptureKey::Value(t.trace, t.value), &t.ty))
            })
        }
    }
}

pub(super) fn check_alive(t: &Tracer, place: Location) -> Result<()> {
    if STACK.with_borrow(|s| s.iter().any(|state| state.id == t.trace)) {
        return Ok(());
    }
    let elsewhere = t.trace.thread != THREAD.with(|n| *n);
    let how = if elsewhere { "was sent to another thread" } else { "outlived the function that was traced" };
    Err(error!(EscapedTracer, "{t:?} {how}: it stands for a value of a program, not for numbers")
        .at(place)
        .note(format!("the tracer was made at {}", t.place))
        .help("return the value from the traced function, and pass values in as arguments"))
}

/// Takes note that a function inside the value's trace reads it.
pub(super) fn mark_read(array: &Array) {
    let Form::Traced(t) = array.form() else { return };
    STACK.with_borrow_mut(|s| {
        if let Some(state) = s.iter_mut().find(|state| state.id == t.trace) {
            state.read.insert(t.value);
        }
    });
}

/// Conditions on dimensions become part of the innermost trace, if there is one.
pub(super) fn require(conditions: &[Constraint]) {
    STACK.with_borrow_mut(|s| {
        if let Some(state) = s.last_mut() {
            state.builder.require(conditions);
        }
    });
}

pub(super) fn record(op: Op, inputs: &[Array], place: Location) -> Result<Outputs> {
    let atoms = inputs.iter().map(|a| atom_of(a, place)).collect::<Result<SmallVec<[Atom; 4]>>>()?;
    // No borrow is held while a type rule runs: it may be a user's, and use arrays itself.
    let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<SmallVec<[Type; 4]>>>()?;
    let mut constraints = Vec::new();
    let results = infer(&op, &types, &mut constraints).map_err(|e| e.at(place))?;
    STACK.with_borrow_mut(|s| -> Result<_> {
        let Some(state) = s.last_mut() else { fail!(Rule, "no trace is active") };
        state.builder.require(&constraints);
        let results = state.builder.push(op, &atoms, results, place)?.results();
        let tracer = |value: ValueId| {
            Array::from(Tracer { ty: state.builder.ty(value.into()).clone(), place, trace: state.id, value })
        };
        Ok(results.map(tracer).collect())
    })
}

/// What is to be computed for the number of a value.
enum Pending {
    /// It is known, or another array says.
    Known(Array),
    /// An equation, whose operands have their numbers.
    Equation(Op, Vec<Array>, Vec<ValueId>, Location),
    /// An equation that needs the numbers of these values first.
    Needs(Vec<ValueId>),
    /// There is no number: the trace is abstract, or a size is not known.
    Unknown,
}

impl State {
    fn pending(&self, value: ValueId) -> Pending {
        if let Some(known) = self.numbers.get(&value) {
            return Pending::Known(known.clone());
        }
        // What has effects happens when the program runs, and not once more for who reads its results.
        let evaluated = |e: &&Equation| self.mode == Mode::Concrete && e.op().effects().is_pure();
        let Some(e) = self.builder.definition(value).filter(evaluated) else {
            return Pending::Unknown;
        };
        let program = self.builder.program();
        let (mut operands, mut needs) = (Vec::new(), Vec::new());
        for a in program.operands(e) {
            match (a.value(), program.constant(*a)) {
                (Some(v), _) => match self.numbers.get(&v) {
                    Some(number) => operands.push(number.clone()),
                    None => needs.push(v),
                },
                (None, Some(c)) => match c.capture_index() {
                    Some(i) => operands.push(self.captures[i].clone()),
                    None => match c.to_array() {
                        Ok(number) => operands.push(number),
                        Err(_) => return Pending::Unknown,
                    },
                },
                (None, None) => return Pending::Unknown,
            }
        }
        if needs.is_empty() {
            Pending::Equation(e.op().clone(), operands, e.results().collect(), e.place())
        } else {
            Pending::Needs(needs)
        }
    }
}

/// The number of a value in concrete mode. It is computed when it is asked for, with all it depends on, and no borrow is
/// held meanwhile: evaluation is free to use arrays itself.
fn number(trace: TraceId, value: ValueId) -> Result<Option<Array>> {
    let mut open = vec![value];
    let of = |s: &[State], v: ValueId| s.iter().find(|t| t.id == trace).map_or(Pending::Unknown, |t| t.pending(v));
    let keep = |v: ValueId, number: Array| {
        STACK.with_borrow_mut(|s| {
            if let Some(state) = s.iter_mut().find(|t| t.id == trace) {
                state.numbers.insert(v, number);
            }
        });
    };
    while let Some(v) = open.last().copied() {
        match STACK.with_borrow(|s| of(s, v)) {
            Pending::Unknown => return Ok(None),
            Pending::Needs(values) => open.extend(values),
            Pending::Known(a) if a.concrete().is_some() => {
                open.pop();
                if open.is_empty() {
                    return Ok(Some(a));
                }
            }
            // An input that stands for a value of an outer trace.
            Pending::Known(a) => match peek_array(&a)? {
                Some(number) => keep(v, number),
                None => return Ok(None),
            },
            Pending::Equation(op, operands, results, place) => {
                let mut numbers: SmallVec<[Array; 4]> = SmallVec::new();
                for a in &operands {
                    match peek_array(a)? {
                        Some(number) => numbers.push(number),
                        None => return Ok(None),
                    }
                }
                let made = op.evaluate(&numbers).map_err(|e| e.in_operation(op.name()).at(place))?;
                results.into_iter().zip(made).for_each(|(r, a)| keep(r, a));
            }
        }
    }
    Ok(None)
}

/// The number behind an array, without a guard.
pub(super) fn peek_array(array: &Array) -> Result<Option<Array>> {
    match array.form() {
        Form::Concrete(_) => Ok(Some(array.clone())),
        Form::Remote(_) => array.on_host().map(|_| Some(array.clone())),
        Form::Traced(t) => number(t.trace, t.value),
        Form::Failed(e) => Err(e.clone()),
        Form::Spec(_) => Ok(None),
    }
}

/// A program's constant as an array: its numbers, or, if its size is symbolic, a broadcast in the current trace.
pub(crate) fn constant(c: &Constant) -> Result<Array> {
    match c.splat_value() {
        Some(value) if c.ty().shape().is_symbolic() => Array::scalar(value).broadcast_to(c.ty().shape()).ok(),
        _ => c.to_array(),
    }
}

pub(super) fn read(t: &Tracer, what: &str, help: &str, place: Location) -> Result<Array> {
    check_alive(t, place)?;
    let number = number(t.trace, t.value)?;
    STACK.with_borrow_mut(|s| {
        let Some(state) = s.iter_mut().find(|state| state.id == t.trace) else { return Err(out_of_order()) };
        let atom = Atom::from(t.value);
        if let Some(number) = number {
            if state.guarded.insert(atom, ()).is_none() {
                state.guards.push((atom, Guard { observed: number.clone(), place }));
            }
            return Ok(number);
        }
        let e = not_concrete(t, what, help, state.started, place);
        state.failed_read.get_or_insert_with(|| e.clone());
        if let Some(innermost) = s.last_mut() {
            innermost.failed_read.get_or_insert_with(|| e.clone());
        }
        Err(e)
    })
}
