//! Functions of the host that a program on a device calls: XLA's foreign-function interface on one side, operations of the program on the other.
//!
//! A program is run by threads of XLA. Its calls of the host are made by the thread that waits for the run, as by every other backend: what that thread
//! has for itself (notes of a verified call, say) is there. A call that XLA makes on that very thread is made at once.
//!
//! An error cannot travel through XLA. Its text does, with a number in it, by which the error is found again ([`original`]).

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};

use gradus_core::primitives::Op;
use gradus_core::{Array, DType, Location, Type};

use crate::api::{Api, call, slice_of};
use crate::error::{Error, Result, error, fail};
use crate::event::{Event, Told};
use crate::loaded::Outputs;
use crate::memory::{address, dense, filled};
use crate::plugin::Plugin;
use crate::sys::{
    PJRT_ExecuteContext, PJRT_Extension_Type, PJRT_FFI_Extension, PJRT_FFI_Type_Info, PJRT_FFI_UserData, Struct,
    XLA_FFI_Api, XLA_FFI_AttrType, XLA_FFI_Buffer, XLA_FFI_CallFrame, XLA_FFI_DataType, XLA_FFI_Error,
    XLA_FFI_Error_Code, XLA_FFI_ExecutionStage, XLA_FFI_InternalExtension_Type, XLA_FFI_Metadata_Extension,
    XLA_FFI_Scalar, XLA_FFI_TypeId, args,
};

/// What programs call the host by.
pub(crate) const TARGET: &str = "gradus_host";
/// The attribute that says which function.
const ID: &[u8] = b"id";
/// The name under which the runs of programs are known to XLA.
const RUN: &str = "gradus_run";

/// The minor version of the interface from which on types are registered with what is known about them.
const TYPES_SINCE: i32 = 80;

/// An operation of a program that the host does.
#[derive(Debug)]
pub(crate) struct HostCall {
    /// What is done.
    pub op: Op,
    /// Which operands are keys: XLA has them as numbers. Empty: none.
    pub keys: Vec<bool>,
    /// The line it stands in.
    pub place: Location,
}

impl HostCall {
    fn run(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let done = catch_unwind(AssertUnwindSafe(|| self.op.evaluate(inputs)));
        let done = done.unwrap_or_else(|_| Err(error!(Callback, "`{}` panicked", self.op.name())));
        Ok(done.map_err(|e| e.in_operation(self.op.name()).at(self.place))?.into_vec())
    }
}

/// Errors of calls that XLA was told of, by number.
static ERRORS: Mutex<VecDeque<(u64, Error)>> = Mutex::new(VecDeque::new());
/// How many are kept: those of runs whose results nobody reads are never asked for.
const MOST_ERRORS: usize = 256;
/// What stands before the number of an error in its text.
const MARK: &str = "gradus error ";

/// The text that stands for an error while XLA has it.
fn stash(error: Error) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let text = format!("{MARK}{id}: {}", error.message());
    let mut errors = ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
    if errors.len() >= MOST_ERRORS {
        errors.pop_front();
    }
    errors.push_back((id, error));
    text
}

/// The error that a text of XLA's stands for, if it is one of ours.
pub(crate) fn original(text: &str) -> Option<Error> {
    let (_, rest) = text.split_once(MARK)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    let id: u64 = digits.parse().ok()?;
    // It stays: every result of the run has the same error.
    let errors = ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
    errors.iter().find(|(i, _)| *i == id).map(|(_, e)| e.clone())
}

/// The number that XLA gave the type of [`Run`]; 0 before there is one. Each plugin has an XLA of its own, and the first counts: programs of another one
/// cannot call the host if its number differs.
static RUN_TYPE: AtomicI64 = AtomicI64::new(0);

fn extension(api: &Api) -> Option<&'static PJRT_FFI_Extension> {
    let base = api.extension(PJRT_Extension_Type::FFI)?;
    // SAFETY: the plugin says that it is this extension, of a size that has all that is read; it keeps it for ever.
    unsafe {
        let whole = base.as_ref().struct_size >= PJRT_FFI_Extension::SIZE;
        whole.then(|| base.cast::<PJRT_FFI_Extension>().as_ref())
    }
}

#[cold]
fn lacks(api: &Api) -> Error {
    error!(Device, "programs on {} cannot call functions of the host", api.name).help(
        "run this function with the backend `Cpu` or `Interpreter`, or take callbacks, prints and checks out of it",
    )
}

/// Makes a plugin know the function that programs call, and gives the number of runs there. An error says why programs on it cannot call the host.
pub(crate) fn register(api: &Api) -> Result<i64> {
    const PLATFORM: &str = "HOST";
    let Some(ffi) = extension(api).filter(|_| api.version().1 >= TYPES_SINCE) else { return Err(lacks(api)) };
    let (Some(register_type), Some(register_handler)) = (ffi.type_register, ffi.register_handler) else {
        return Err(lacks(api));
    };
    let mut about = PJRT_FFI_Type_Info::zeroed();
    let mut t = args!(PJRT_FFI_Type_Register_Args {
        type_name: RUN.as_ptr().cast::<c_char>(),
        type_name_size: RUN.len(),
        type_info: &raw mut about,
    });
    let mut h = args!(PJRT_FFI_Register_Handler_Args {
        target_name: TARGET.as_ptr().cast::<c_char>(),
        target_name_size: TARGET.len(),
        handler: handler as *mut c_void,
        platform_name: PLATFORM.as_ptr().cast::<c_char>(),
        platform_name_size: PLATFORM.len(),
    });
    // SAFETY: names outlive the calls and have these lengths. The handler has the type that handlers have, and is there for as long as the process.
    unsafe {
        api.check(register_handler(&raw mut h))?;
        api.check(register_type(&raw mut t))?;
    }
    match RUN_TYPE.compare_exchange(0, t.type_id, Ordering::Relaxed, Ordering::Relaxed) {
        Err(other) if other != t.type_id => {
            Err(lacks(api).note("another plugin of this process has taken the calls of the host"))
        }
        _ => Ok(t.type_id),
    }
}

/// A call that waits to be made by the thread of a run.
struct Job {
    call: usize,
    inputs: Vec<Array>,
    answer: mpsc::Sender<Result<Vec<Array>>>,
}

/// A run that may call the host, and the thread that serves it.
pub(crate) struct Run {
    /// What the program calls, by number.
    calls: Arc<[HostCall]>,
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    done: Option<Result<()>>,
}

thread_local! {
    /// The run that this thread has just started: calls on this thread are made at once.
    static STARTING: Cell<*const Run> = const { Cell::new(ptr::null()) };
}

/// Says that a run is done, when its event says so.
struct Finish(Arc<Run>);

impl Told for Finish {
    fn told(self, result: Result<()>) {
        self.0.lock().done = Some(result);
        self.0.bell.notify_all();
    }
}

impl Run {
    /// A run of a program that makes these calls.
    pub fn of(calls: &Arc<[HostCall]>) -> Arc<Run> {
        Arc::new(Run { calls: calls.clone(), state: Mutex::default(), bell: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the run and makes its calls until it is done. An error of a call is the error of the run.
    pub fn served(
        self: Arc<Run>,
        plugin: &'static Plugin,
        start: impl FnOnce(*mut PJRT_ExecuteContext) -> Result<(Outputs, Option<Event>)>,
    ) -> Result<Outputs> {
        // SAFETY: this function holds the run, and returns only after everything that is executed with the context is done, or was never started.
        let context = unsafe { Context::new(plugin, &self) }?;
        let before = STARTING.replace(&raw const *self);
        let started = start(context.raw());
        STARTING.set(before);
        let (outputs, done) = started?;
        if let Some(done) = done {
            if let Err(e) = done.tell(Finish(self.clone())) {
                // Nobody says when it is done: it must never go.
                std::mem::forget(self.clone());
                return Err(e);
            }
            self.serve()?;
        }
        Ok(outputs)
    }

    fn serve(&self) -> Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                let answer = self.call(job.call, &job.inputs);
                // Whoever waited may be gone; then nobody wants the answer.
                drop(job.answer.send(answer));
                state = self.lock();
            } else if let Some(done) = &state.done {
                return done.clone();
            } else {
                state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn call(&self, call: usize, inputs: &[Array]) -> Result<Vec<Array>> {
        self.find(call)?.run(inputs)
    }

    fn find(&self, call: usize) -> Result<&HostCall> {
        let found = self.calls.get(call);
        found.ok_or_else(|| error!(Callback, "a program makes call {call} of the host, and has {}", self.calls.len()))
    }

    /// Makes a call: here if this thread is the one that runs the program, and otherwise there.
    fn make(&self, call: usize, inputs: Vec<Array>) -> Result<Vec<Array>> {
        if ptr::eq(STARTING.get(), self) {
            return self.call(call, &inputs);
        }
        let (answer, given) = mpsc::channel();
        self.lock().jobs.push_back(Job { call, inputs, answer });
        self.bell.notify_all();
        given.recv().unwrap_or_else(|_| Err(error!(Callback, "the run that called the host has ended")))
    }
}

/// What carries a run to the handler.
pub(crate) struct Context {
    api: &'static Api,
    raw: NonNull<PJRT_ExecuteContext>,
}

impl Context {
    /// A context with a run in it.
    ///
    /// # Safety
    ///
    /// The run lives until everything that is executed with the context is done.
    unsafe fn new(plugin: &'static Plugin, run: &Run) -> Result<Context> {
        let (api, type_id) = (&plugin.api, plugin.callbacks.clone()?);
        let Some(add) = extension(api).and_then(|e| e.user_data_add) else { return Err(lacks(api)) };
        let mut a = args!(PJRT_ExecuteContext_Create_Args {});
        // SAFETY: the arguments are of this function.
        unsafe { call!(api, PJRT_ExecuteContext_Create, &raw mut a) }?;
        let Some(raw) = NonNull::new(a.context) else { fail!(Device, "{} gave no context for a run", api.name) };
        let context = Context { api, raw };
        let data = PJRT_FFI_UserData { type_id, data: (&raw const *run).cast_mut().cast() };
        let mut u = args!(PJRT_FFI_UserData_Add_Args { context: raw.as_ptr(), user_data: data });
        // SAFETY: the context was just made. The type has no deleter, so the run stays ours; it lives long enough, as the caller says.
        unsafe { api.check(add(&raw mut u)) }?;
        Ok(context)
    }

    fn raw(&self) -> *mut PJRT_ExecuteContext {
        self.raw.as_ptr()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut a = args!(PJRT_ExecuteContext_Destroy_Args { context: self.raw.as_ptr() });
        // SAFETY: the context is ours, and this is its last use.
        drop(unsafe { call!(self.api, PJRT_ExecuteContext_Destroy, &raw mut a) });
    }
}

/// What XLA calls, once to ask about it and then for each call of the host.
unsafe extern "C" fn handler(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    // SAFETY: XLA hands over a frame that lives during the call.
    let frame = unsafe { &*frame };
    // SAFETY: as above.
    if unsafe { answered_metadata(frame) } || frame.stage != XLA_FFI_ExecutionStage::EXECUTE {
        return ptr::null_mut();
    }
    // SAFETY: as above. Nothing unwinds into XLA.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { execute(frame) }));
    let done = done.unwrap_or_else(|_| Err(error!(Callback, "a call of the host panicked")));
    match done {
        Ok(()) => ptr::null_mut(),
        // SAFETY: the table is the one of the frame.
        Err(e) => unsafe { failed(frame.api, &stash(e)) },
    }
}

/// Says which version of the interface the handler speaks, if that is what it is called for.
///
/// # Safety
///
/// The frame is one of XLA's, with the lists it says.
unsafe fn answered_metadata(frame: &XLA_FFI_CallFrame) -> bool {
    let mut next = frame.extension_start;
    // SAFETY: each node of the list begins with this head; one of this type is a request for metadata, with room for them.
    unsafe {
        while let Some(at) = NonNull::new(next) {
            if at.as_ref().kind == XLA_FFI_InternalExtension_Type::XLA_FFI_EXTENSION_METADATA {
                let metadata = (*at.cast::<XLA_FFI_Metadata_Extension>().as_ptr()).metadata;
                (*metadata).api_version.major_version = 0;
                (*metadata).api_version.minor_version = 1;
                return true;
            }
            next = at.as_ref().next;
        }
    }
    false
}

/// # Safety
///
/// The frame is one of XLA's in the stage of execution, with the lists it says.
unsafe fn execute(frame: &XLA_FFI_CallFrame) -> Result<()> {
    // SAFETY: as the caller says; the lists have the lengths that stand beside them, and live during the call.
    let (inputs, outputs, id, run) = unsafe {
        let inputs = slice_of(frame.args.args.cast_const(), length(frame.args.size));
        let outputs = slice_of(frame.rets.rets.cast_const(), length(frame.rets.size));
        (inputs, outputs, id(frame)?, run(frame))
    };
    let Some(run) = run else { fail!(Callback, "a program calls the host, and nobody here runs it") };
    let found = run.find(id)?;
    let keys = &found.keys;
    // Calls that do something come one after the other: what they hand on for that is not the function's.
    let waits = !found.op.effects().is_pure();
    let of_function = |n: usize| if waits { n.saturating_sub(1) } else { n };
    let (inputs, _) = inputs.split_at(of_function(inputs.len()));
    let (outputs, turn) = outputs.split_at(of_function(outputs.len()));
    // SAFETY: each argument is a buffer, the only kind there is, in memory of the host.
    let given = inputs
        .iter()
        .enumerate()
        .map(|(i, b)| unsafe { array(&*b.cast::<XLA_FFI_Buffer>(), keys.get(i).copied().unwrap_or(false)) });
    let results = run.make(id, given.collect::<Result<Vec<_>>>()?)?;
    if results.len() != outputs.len() {
        fail!(Callback, "a function of the host gave {} arrays where {} are wanted", results.len(), outputs.len());
    }
    for (to, from) in outputs.iter().zip(&results) {
        // SAFETY: as for the arguments; XLA made room for the result.
        unsafe { write(&*to.cast::<XLA_FFI_Buffer>(), from) }?;
    }
    for to in turn {
        // SAFETY: as above.
        unsafe { write(&*to.cast::<XLA_FFI_Buffer>(), &Array::from(0_i32)) }?;
    }
    Ok(())
}

fn length(n: i64) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// The number of the function in the attributes of a call.
///
/// # Safety
///
/// As for [`execute`].
unsafe fn id(frame: &XLA_FFI_CallFrame) -> Result<usize> {
    let n = length(frame.attrs.size);
    // SAFETY: the three lists have one entry for each attribute; a scalar of 64 bits has them where it says.
    unsafe {
        let kinds = slice_of(frame.attrs.types.cast_const(), n);
        let names = slice_of(frame.attrs.names.cast_const(), n);
        let values = slice_of(frame.attrs.attrs.cast_const(), n);
        for ((kind, name), value) in kinds.iter().zip(names).zip(values) {
            let name = slice_of((**name).ptr.cast::<u8>(), (**name).len);
            if name == ID && *kind == XLA_FFI_AttrType::SCALAR {
                let scalar = &*value.cast::<XLA_FFI_Scalar>();
                if scalar.dtype == XLA_FFI_DataType::S64 || scalar.dtype == XLA_FFI_DataType::U64 {
                    return Ok(length(scalar.value.cast::<i64>().read_unaligned()));
                }
            }
        }
    }
    fail!(Callback, "a program calls the host and does not say which function")
}

/// The run that a call is part of.
///
/// # Safety
///
/// As for [`execute`], and the run that the context was made with lives.
unsafe fn run(frame: &XLA_FFI_CallFrame) -> Option<&Run> {
    let mut type_id = XLA_FFI_TypeId { type_id: RUN_TYPE.load(Ordering::Relaxed) };
    // SAFETY: the table is XLA's and at least as long as it says.
    let get = unsafe { present(frame.api, std::mem::offset_of!(XLA_FFI_Api, XLA_FFI_InvokeContext_Get))? }
        .XLA_FFI_InvokeContext_Get
        .filter(|_| type_id.type_id != 0)?;
    let mut a = args!(XLA_FFI_InvokeContext_Get_Args { ctx: frame.ctx, type_id: &raw mut type_id });
    // SAFETY: context and type live during the call. What it gives was put there as a `Run`.
    unsafe {
        let error = get(&raw mut a);
        if error.is_null() {
            return a.data.cast::<Run>().as_ref();
        }
        // It says that there is no run here.
        let mut d = args!(XLA_FFI_Error_Destroy_Args { error: error });
        if let Some(destroy) = (*frame.api).XLA_FFI_Error_Destroy {
            destroy(&raw mut d);
        }
        None
    }
}

/// The table of XLA, if it reaches past a function.
///
/// # Safety
///
/// The pointer is null or XLA's table.
unsafe fn present<'a>(api: *const XLA_FFI_Api, offset: usize) -> Option<&'a XLA_FFI_Api> {
    // SAFETY: as the caller says; the size is the first field, and nothing behind it is read through the reference.
    unsafe {
        let size = (!api.is_null()).then(|| (&raw const (*api).struct_size).read())?;
        if size >= offset + size_of::<usize>() { api.as_ref() } else { None }
    }
}

/// An array of the host with the numbers of a buffer.
///
/// # Safety
///
/// The buffer's numbers are in memory of the host, row by row, and as many as its dimensions say.
unsafe fn array(buffer: &XLA_FFI_Buffer, key: bool) -> Result<Array> {
    // SAFETY: as the caller says.
    let ty = unsafe { type_of(buffer, key)? };
    let count = ty.shape().count().unwrap_or(0);
    let copy = |to: *mut u8, bytes: usize| {
        if bytes > 0 {
            // SAFETY: so many bytes are there, and there is room for them in new memory.
            unsafe { ptr::copy_nonoverlapping(buffer.data.cast::<u8>().cast_const(), to, bytes) };
        }
        Ok(())
    };
    // SAFETY: everything was copied; predicates of XLA are zeros and ones.
    let data = unsafe { filled(ty.dtype(), count, copy) }?;
    Ok(dense(ty, data)?.into())
}

/// Puts the numbers of an array into a buffer.
///
/// # Safety
///
/// As for [`array`], and the buffer may be written.
unsafe fn write(buffer: &XLA_FFI_Buffer, from: &Array) -> Result<()> {
    let from = from.on_host()?.try_dense()?;
    // SAFETY: as the caller says.
    let ty = unsafe { type_of(buffer, from.ty().dtype() == DType::Key)? };
    if *from.ty() != ty {
        fail!(Callback, "a function of the host gave {} where {ty} is wanted", from.ty());
    }
    let bytes = from.count() * ty.dtype().size();
    if bytes > 0 {
        // SAFETY: both have as many elements of the same type; the buffer is XLA's and the array ours.
        unsafe { ptr::copy_nonoverlapping(address(&from), buffer.data.cast::<u8>(), bytes) };
    }
    Ok(())
}

/// The type of a buffer. Keys are numbers to XLA.
///
/// # Safety
///
/// The buffer is XLA's: its dimensions can be read.
unsafe fn type_of(buffer: &XLA_FFI_Buffer, key: bool) -> Result<Type> {
    // SAFETY: as the caller says.
    let dims = unsafe { slice_of(buffer.dims.cast_const(), length(buffer.rank)) };
    let dims: Vec<usize> = dims.iter().map(|d| length(*d)).collect();
    let dtype = DType::VALUES.into_iter().find(|d| data_type(*d) == buffer.dtype);
    let Some(dtype) = dtype else {
        fail!(Callback, "XLA hands over element type {}, which Gradus lacks", buffer.dtype)
    };
    Ok(Type::new(if key { DType::Key } else { dtype }, &dims[..]))
}

/// What XLA's foreign functions call a dtype.
fn data_type(dtype: DType) -> u32 {
    use XLA_FFI_DataType as T;
    match dtype {
        DType::Bool => T::PRED,
        DType::I8 => T::S8,
        DType::I16 => T::S16,
        DType::I32 => T::S32,
        DType::I64 => T::S64,
        DType::U8 => T::U8,
        DType::U16 => T::U16,
        DType::U32 => T::U32,
        DType::U64 | DType::Key => T::U64,
        DType::F16 => T::F16,
        DType::BF16 => T::BF16,
        DType::F32 => T::F32,
        DType::F64 => T::F64,
        DType::C64 => T::C64,
        DType::C128 => T::C128,
    }
}

/// An error for XLA.
///
/// # Safety
///
/// The pointer is null or XLA's table.
unsafe fn failed(api: *const XLA_FFI_Api, text: &str) -> *mut XLA_FFI_Error {
    // A zero inside would end it; what stands before it says enough.
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // SAFETY: as the caller says.
    let table = unsafe { present(api, std::mem::offset_of!(XLA_FFI_Api, XLA_FFI_Error_Create)) };
    let Some(create) = table.and_then(|t| t.XLA_FFI_Error_Create) else { return ptr::null_mut() };
    let mut a = args!(XLA_FFI_Error_Create_Args { message: text.as_ptr(), errc: XLA_FFI_Error_Code::INTERNAL });
    // SAFETY: the text lives during the call, which copies it.
    unsafe { create(&raw mut a) }
}
