//! The one tracer. A function runs once on arrays that stand for values; each operation is recorded as an equation
//! of the innermost trace of this thread.
//!
//! Levels are kept apart by construction: a value of an outer trace, or a concrete array, that an inner function
//! uses becomes a hidden input of the inner program. In concrete mode a value can be read: its number is computed when it
//! is asked for, and each read leaves a guard.
//!
//! *Invariants.* A finished trace is a closed program. A trace ends on every way out of the function, a panic included. A value is used on its own
//! thread while its trace lives, or is an error. Traces stand in each other only as deep as the stack allows.

mod state;

use std::cell::Cell;
use std::fmt;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::array::{Array, Form};
use crate::error::{Error, Location, Result, counted, error};
use crate::hunt::look_at;
use crate::primitives::control::{Scan, While};
use crate::primitives::shaping::Broadcast;
use crate::primitives::{Op, Outputs};
use crate::program::{Atom, Program, ValueId, infer};
use crate::stack;
use crate::types::{Constraint, Decision, Dim, Type};
use crate::warnings::{Warning, WarningKind, warn_once};

pub(crate) use state::apart;
use state::{Active, TraceId};
pub use state::{EMBED_LIMIT, fail, is_tracing};

/// A value of a program that is being traced: identity and type, never a number.
#[derive(Clone)]
pub struct Tracer {
    ty: Type,
    place: Location,
    trace: TraceId,
    value: ValueId,
}

impl Tracer {
    /// The type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The line that made it.
    pub fn place(&self) -> Location {
        self.place
    }

    /// Whether two tracers stand for the same value.
    pub fn is_same(&self, other: &Tracer) -> bool {
        self.trace == other.trace && self.value == other.value
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer({}: {})", self.value, self.ty)
    }
}

/// What a trace knows of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Types only: one program for all values.
    #[default]
    Abstract,
    /// Values beside types: host branches work, each read is guarded.
    Concrete,
}

/// A value that was read while tracing in concrete mode. The program holds only while it is the same.
#[derive(Clone, Debug)]
pub struct Guard {
    /// What was read.
    pub observed: Array,
    /// Where.
    pub place: Location,
}

/// What tracing a function gives.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The program. Its inputs are the function's, then one for each capture.
    pub program: Program,
    /// What the hidden inputs stand for: concrete arrays, or values of an outer trace.
    pub captures: Vec<Array>,
    /// What was read, in order.
    pub guards: Vec<Guard>,
    /// A program with the same inputs that computes what was read.
    pub guard_program: Program,
    /// Inputs that a function read whose program a transformation then made another of: the gradient of a linear function
    /// does not need its argument, but the function does.
    pub(crate) read: Vec<bool>,
}

impl Traced {
    /// Whether a function that was transformed inside reads each of the inputs.
    pub fn inside_reads(&self) -> &[bool] {
        &self.read
    }

    /// Whether the function reads each of its inputs, by what was traced: for its results, for a guard, or inside.
    fn reads(&self) -> Vec<bool> {
        let mut read = self.read.clone();
        for program in [&self.program, &self.guard_program] {
            program.read_inputs().into_iter().zip(&mut read).for_each(|(here, r)| *r |= here);
        }
        read
    }

    /// Says of an outer trace's values that they were read if this function reads them. Transformations do that before the
    /// program becomes another.
    pub fn pass_reads_to(&self, arguments: &[Array]) {
        let arguments = arguments.iter().zip(self.reads()).filter(|(_, read)| *read).map(|(a, _)| a);
        arguments.chain(&self.captures).for_each(state::mark_read);
    }
}

/// Traces a function of arrays. `inputs` are concrete arrays or specs; numbers are used in concrete mode only.
#[track_caller]
pub fn trace<F>(name: &str, inputs: &[Array], mode: Mode, f: F) -> Result<Traced>
where
    F: FnOnce(&[Array]) -> Vec<Array>,
{
    let place = current_place();
    run(Active::start(name, mode, place), inputs, place, |tracers| Ok(f(tracers)))
}

fn run<F>(active: Result<Active>, inputs: &[Array], place: Location, f: F) -> Result<Traced>
where
    F: FnOnce(&[Array]) -> Result<Vec<Array>>,
{
    let active = active.map_err(|e| e.at(place))?;
    let tracers = inputs.iter().map(|a| active.input(a, place)).collect::<Result<Vec<_>>>();
    let outputs = tracers.and_then(|tracers| f(&tracers));
    // What has no line of its own belongs to the one that traces.
    outputs.and_then(|outputs| active.finish(&outputs, place)).map_err(|e| e.at(place))
}

/// Traces a transformation of a program. The program it makes has the given inputs and no others: arrays that rules
/// use become constants whatever their size, and what they make from nothing (`iota`) becomes an equation.
#[track_caller]
pub fn trace_closed<F>(name: &str, inputs: &[Array], f: F) -> Result<Program>
where
    F: FnOnce(&[Array]) -> Result<Vec<Array>>,
{
    let place = current_place();
    run(Active::start_closed(name, place), inputs, place, f).map(|traced| traced.program)
}

/// Traces a program that comes from elsewhere: every operation is recorded as it is written, none is computed, and arrays become constants
/// whatever their size. Values of an outer trace become captures.
#[track_caller]
pub fn trace_as_written<F>(name: &str, inputs: &[Array], f: F) -> Result<Traced>
where
    F: FnOnce(&[Array]) -> Result<Vec<Array>>,
{
    let place = current_place();
    run(Active::start_as_written(name, place), inputs, place, f)
}

thread_local! {
    /// Rules of primitives run on behalf of an equation: what they record belongs to that equation's line.
    static ON_BEHALF: Cell<Option<Location>> = const { Cell::new(None) };
}

/// Runs a function whose operations are all attributed to one place, if it is known.
pub fn at_place<T>(place: Location, f: impl FnOnce() -> T) -> T {
    on_behalf(place.is_known().then_some(place), f)
}

/// The same with a place that may be none: what is written again has the place it had, and never a line of ours.
pub(crate) fn at_same_place<T>(place: Location, f: impl FnOnce() -> T) -> T {
    on_behalf(Some(place), f)
}

fn on_behalf<T>(place: Option<Location>, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Location>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ON_BEHALF.set(self.0);
        }
    }
    let _restore = Restore(ON_BEHALF.replace(place));
    f()
}

thread_local! {
    /// Whether operations with effects are passed over.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function for the structure of its result alone: operations with effects that would happen at once do not.
pub fn quietly<T>(f: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            QUIET.set(self.0);
        }
    }
    let room = stack::check();
    // There is nothing else to return, since only the function knows the structure of its result; a panic can be caught, and the end of
    // the stack cannot.
    assert!(room.is_ok(), "{room:?}");
    let _restore = Restore(QUIET.replace(true));
    f()
}

fn is_quiet() -> bool {
    QUIET.get()
}

#[track_caller]
pub(crate) fn current_place() -> Location {
    caller_or_known(Location::caller())
}

/// The place that rules run on behalf of, if there is one; otherwise the given one.
pub fn caller_or_known(place: Location) -> Location {
    ON_BEHALF.get().unwrap_or(place)
}

/// Applies an operation with one result.
#[track_caller]
pub fn bind(op: Op, inputs: &[Array]) -> Array {
    only(bind_all(op, inputs))
}

fn only(mut outputs: Outputs) -> Array {
    match outputs.len() {
        1 => outputs.remove(0),
        n => error!(Rule, "an operation gave {n} results").into(),
    }
}

/// Records an operation with one result in the current trace, even if all its operands are numbers.
#[track_caller]
pub fn record(op: Op, inputs: &[Array]) -> Array {
    let place = current_place();
    state::record(op, inputs, place).map_or_else(|e| e.at(place).into(), only)
}

/// Applies an operation: runs it on numbers, records it in a trace, or only infers types, as its operands demand.
///
/// If it fails there is one result, which carries the error.
#[track_caller]
pub fn bind_all(op: Op, inputs: &[Array]) -> Outputs {
    let place = current_place();
    let outputs = bind_at(op, inputs, place);
    outputs.unwrap_or_else(|e| smallvec::smallvec![Array::from(e.at(place))])
}

fn bind_at(op: Op, inputs: &[Array], place: Location) -> Result<Outputs> {
    let mut traced = false;
    let mut spec = false;
    let mut remote = false;
    for a in inputs {
        match a.form() {
            Form::Concrete(_) => {}
            Form::Remote(_) => remote = true,
            Form::Traced(_) => traced = true,
            Form::Spec(_) => spec = true,
            Form::Failed(e) => return Err(e.clone()),
        }
    }
    let passed_over = QUIET.get() && !op.effects().is_pure();
    if traced && !passed_over {
        return state::record(op, inputs, place);
    }
    let mut types: SmallVec<[Type; 4]> = SmallVec::new();
    for a in inputs {
        types.push(a.ty()?.clone());
    }
    let mut constraints = Vec::new();
    let results = infer(&op, &types, &mut constraints)?;
    // A symbolic size may be in the parameters alone: as a number, or inside a program.
    let hides = inputs.is_empty() || op.holds_programs();
    let hidden = hides && op.params().iter().any(|(_, p)| p.is_symbolic());
    let symbolic = hidden || results.iter().any(|t| t.shape().is_symbolic());
    if passed_over {
        return Ok(results.into_iter().map(Array::of_type).collect());
    }
    // A loop over numbers is a part of the program that is being traced: it may take its time, and compiled code is faster.
    let is_loop = op.is::<Scan>() || op.is::<While>();
    let later = symbolic
        || is_loop
        || state::is_as_written()
        || !op.effects().is_pure()
        || belongs_to_program(&op, inputs, &results);
    if later && !spec && is_tracing() {
        return state::record(op, inputs, place);
    }
    if spec || symbolic {
        return Ok(results.into_iter().map(Array::of_type).collect());
    }
    if remote {
        bring_home(&op, inputs, place)?;
    }
    let outputs = op.evaluate(inputs).map_err(|e| e.in_operation(op.name()))?;
    // The rules of a user's operation may disagree; built-in ones are tested, so only debug builds look.
    let fits = |(o, t): (&Array, &Type)| o.ty().is_ok_and(|ty| ty == t);
    let looked_at = cfg!(debug_assertions) || !op.is_built_in();
    if let Some(e) = outputs.iter().filter(|_| looked_at).find_map(Array::error) {
        return Err(e.clone().in_operation(op.name()));
    }
    if looked_at && !(outputs.len() == results.len() && outputs.iter().zip(&results).all(fits)) {
        return Err(error!(Rule, "`{}` gave {outputs:?} where its type rule says {results:?}", op.name()));
    }
    look_at(&op, place, inputs, &outputs)?;
    Ok(outputs)
}

/// Downloads the operands of an operation that runs here though a device has its numbers: a single operation is not worth a program there. What would
/// be is a loop of them, so the first one of each line says so.
#[cold]
fn bring_home(op: &Op, inputs: &[Array], place: Location) -> Result<()> {
    for a in inputs {
        a.on_host()?;
    }
    let Some(buffer) = inputs.iter().find_map(Array::remote) else { return Ok(()) };
    warn_once(WarningKind::OffDevice, place, || {
        let (ty, device) = (buffer.ty(), buffer.device().name());
        let message =
            format!("`{}` runs on the host, though {ty} is on {device}: the numbers were downloaded", op.name());
        Warning::new(WarningKind::OffDevice, message)
            .help("stage the function for the device, `jit(..).backend(..)`, which runs all of it there, or move the array once: `x.to(&Host)?`")
    });
    Ok(())
}

/// Results of at most so many elements are computed while a transformation runs.
const COMPUTED_AT_ONCE: usize = 16;

/// Whether an operation on numbers, met while a transformation runs, is better part of the program than computed now:
/// a mask as large as an operand would be a constant of that size, and a loop may take its time, or for ever. Small
/// results and single numbers are computed.
fn belongs_to_program(op: &Op, inputs: &[Array], results: &[Type]) -> bool {
    let large = || results.iter().any(|t| t.shape().count().is_none_or(|n| n > COMPUTED_AT_ONCE));
    let splat = |a: &Array| matches!(a.form(), Form::Concrete(c) if c.splat_value().is_some());
    let single = || (op.is_elementwise() || op.is::<Broadcast>()) && inputs.iter().all(splat);
    state::is_closed() && (inputs.is_empty() || op.holds_programs() || (large() && !single()))
}

/// Runs a program's equations on arrays of any form: numbers are computed, tracers are recorded in their trace.
#[track_caller]
pub fn inline(program: &Program, inputs: &[Array]) -> Result<Vec<Array>> {
    let place = current_place();
    if inputs.len() != program.inputs().len() {
        return Err(error!(
            Signature,
            "`{}` takes {}, not {}",
            program.name(),
            counted(program.inputs().len(), "input"),
            inputs.len()
        )
        .at(place));
    }
    carry_conditions(program, inputs, &[])?;
    let mut values: Vec<Array> = Vec::with_capacity(program.value_count());
    values.extend_from_slice(inputs);
    let mut operands: SmallVec<[Array; 4]> = SmallVec::new();
    for e in program.equations() {
        operands.clear();
        for &a in program.operands(e) {
            operands.push(value_of(program, &values, a)?);
        }
        let at = if e.place().is_known() { e.place() } else { place };
        let outputs = bind_at(e.op().clone(), &operands, at).map_err(|err| err.at(at))?;
        values.extend(outputs);
    }
    program.outputs().iter().map(|&a| value_of(program, &values, a)).collect()
}

/// The conditions of a program that is walked over are conditions of the trace, for the dimensions that its inputs have there: the equation that asked for
/// one may be gone, because nobody needs its result. Inputs marked in `batched` have an axis more, in front.
pub(crate) fn carry_conditions(program: &Program, inputs: &[Array], batched: &[bool]) -> Result<()> {
    if program.constraints().is_empty() {
        return Ok(());
    }
    let mut there: FxHashMap<String, Dim> = FxHashMap::default();
    for (i, (ty, a)) in program.inputs().iter().zip(inputs).enumerate() {
        let in_front = usize::from(batched.get(i).copied().unwrap_or(false));
        for (d, have) in ty.shape().iter().zip(a.ty()?.shape().iter().skip(in_front)) {
            if let Some(symbol) = d.as_symbol() {
                there.entry(symbol.to_string()).or_insert_with(|| have.clone());
            }
        }
    }
    let known = |d: &Dim| d.symbols().iter().all(|s| there.contains_key(&**s));
    let mapped = |d: &Dim| d.substitute(&|s| there.get(s).cloned());
    let conditions: Vec<Constraint> = program
        .constraints()
        .iter()
        .filter_map(|c| match c {
            Constraint::Equal(a, b) => (known(a) && known(b)).then(|| Constraint::Equal(mapped(a), mapped(b))),
            Constraint::AtLeast(a, b) => (known(a) && known(b)).then(|| Constraint::AtLeast(mapped(a), mapped(b))),
            Constraint::Multiple(a, n) => known(a).then(|| Constraint::Multiple(mapped(a), *n)),
        })
        // What is certain needs no saying; of numbers alone every operation has looked at them itself.
        .filter(|c| c.decide() != Decision::Yes && !c.symbols().is_empty())
        .collect();
    state::require(&conditions);
    Ok(())
}

/// Makes conditions on dimensions part of the innermost trace: a call of its program must meet them.
pub fn require(conditions: &[Constraint]) {
    state::require(conditions);
}

/// What an atom stands for while something walks over a program, with the values so far.
pub(crate) fn value_of(program: &Program, values: &[Array], atom: Atom) -> Result<Array> {
    match program.constant(atom) {
        Some(c) => state::constant(c),
        None => atom
            .value()
            .and_then(|v| values.get(v.index()).cloned())
            .ok_or_else(|| error!(Verify, "a value of `{}` is used before it is defined", program.name())),
    }
}

/// The numbers behind an array: its own, or, in concrete mode, those of the value it stands for (which leaves a guard).
pub(crate) fn read(array: &Array, what: &str, place: Location) -> Result<Array> {
    let help = "for a branch on values use `cond` or `select`, for a loop `while_loop`; for an argument that is known \
                early wrap it in `Static`; to trace with values and guards use `.mode(Mode::Concrete)`";
    read_for(array, what, help, place)
}

/// The same for a reader with a way out of its own: what is said of a traced value without numbers ends in its help.
pub fn read_for(array: &Array, what: &str, help: &str, place: Location) -> Result<Array> {
    match array.form() {
        Form::Concrete(_) => Ok(array.clone()),
        Form::Remote(_) => array.on_host().map(|_| array.clone()).map_err(|e| e.at(place)),
        Form::Failed(e) => Err(e.clone()),
        Form::Spec(ty) => Err(error!(NotConcrete, "{what} was asked of {ty}, which is only a type")
            .at(place)
            .help("a spec is for tracing and compiling ahead; call with an array that has numbers")),
        Form::Traced(t) => state::read(t, what, help, place),
    }
}

/// The numbers behind an array, leaving a guard if it is traced in concrete mode.
#[track_caller]
pub fn read_guarded(array: &Array) -> Result<Array> {
    read(array, "a value", Location::caller())
}

/// Whether an array stands for a value of a trace that is still active on this thread.
#[inline]
pub fn check_alive(array: &Array, place: Location) -> Result<()> {
    match array.form() {
        Form::Traced(t) => state::check_alive(t, place),
        Form::Failed(e) => Err(e.clone()),
        Form::Remote(_) => array.clone().ok().map(|_| ()),
        Form::Concrete(_) | Form::Spec(_) => Ok(()),
    }
}

fn not_concrete(t: &Tracer, what: &str, help: &str, started: Location, place: Location) -> Error {
    error!(NotConcrete, "{what} was asked of {t:?}, but a traced value has no number until the program runs")
        .at(place)
        .note(format!("the value was made at {}", t.place))
        .note(format!("the trace was started at {started}"))
        .help(help)
}
