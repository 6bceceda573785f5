//! The optimizing tier: LLVM, where there is one.
//!
//! Gradus does not link LLVM: a library of it is looked for when the first module is compiled this way (every Rust
//! toolchain ships one), and where there is none, [`available`] says why. Modules go over as text, because the text is
//! what LLVM keeps readable from version to version; loops of lanes go over as explicit vector code.

mod api;
mod emit;
mod exit;
mod find;
mod image;
mod kernels;
#[cfg(test)]
mod measure;
mod memory;
mod ops;
#[cfg(test)]
mod tests;
mod text;

use std::ffi::{CStr, CString, OsStr, c_char};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::abi::MainFn;
use crate::codegen::perf;
use crate::error::{Result, error};
use crate::ir::Module;

use crate::vector::{Machine, Rest};
use api::{Api, Handle};

/// A loaded LLVM and the machine it compiles for.
pub struct Llvm {
    api: Api,
    version: (u32, u32, u32),
    path: PathBuf,
    target: Handle,
    triple: CString,
    cpu: CString,
    features: String,
    machine: Machine,
    jit: Handle,
}

// SAFETY: the handles are those of a target, which nobody changes, and of a JIT, which locks itself. Contexts and target
// machines, which must stay with one thread, are made for each compilation.
unsafe impl Send for Llvm {}
// SAFETY: as above.
unsafe impl Sync for Llvm {}

/// How much work LLVM does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// As much as pays off for the size of the module.
    #[default]
    Auto,
    /// Whatever it can.
    Most,
    /// What matters for bodies that are already vectors.
    Some,
    /// As little as possible: for modules of very many operations.
    Least,
}

/// What is asked of a compilation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How much work it is worth.
    pub effort: Effort,
    /// Keep LLVM's text, after its passes.
    pub llvm_ir: bool,
    /// Keep the text of the machine code.
    pub assembly: bool,
    /// Let LLVM check the module first. Debug builds always do.
    pub verify: bool,
    /// Use vectors of at most so many bytes, and only instructions that go with them: as on a smaller machine.
    pub vector: Option<usize>,
    /// Write bodies of loops once, even if running all iterations alike makes them a little slower.
    pub small: bool,
    /// Keep the code as bytes that can be loaded again, for [`Compiled::take_image`].
    pub image: bool,
    /// Passes to run instead of those that the effort means, in LLVM's notation.
    pub passes: Option<String>,
}

/// How long the steps of a compilation took.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Times {
    pub write: Duration,
    pub parse: Duration,
    pub passes: Duration,
    pub code: Duration,
    pub link: Duration,
}

impl Times {
    /// All of them.
    pub fn total(&self) -> Duration {
        self.write + self.parse + self.passes + self.code + self.link
    }
}

/// Machine code of a module. It goes away with this.
pub struct Compiled {
    main: MainFn,
    bytes: usize,
    llvm_ir: Option<String>,
    assembly: Option<String>,
    image: Option<Vec<u8>>,
    times: Times,
    /// Frees the code.
    tracker: Handle,
    llvm: &'static Llvm,
}

// SAFETY: machine code does not change, and its tracker is only used when it is dropped.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Compiled {
    /// The main body. It may be called as long as this lives.
    pub fn main(&self) -> MainFn {
        self.main
    }

    /// Bytes of code and constants.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// LLVM's text after its passes, if it was asked for.
    pub fn llvm_ir(&self) -> Option<&str> {
        self.llvm_ir.as_deref()
    }

    /// The text of the machine code, if it was asked for.
    pub fn assembly(&self) -> Option<&str> {
        self.assembly.as_deref()
    }

    /// The code as bytes that [`Llvm::load_image`] takes, once, if the options asked for it.
    pub fn take_image(&mut self) -> Option<Vec<u8>> {
        self.image.take()
    }

    /// How long it took.
    pub fn times(&self) -> Times {
        self.times
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let api = &self.llvm.api;
        // SAFETY: the tracker is that of this code alone, and nobody runs the code any more. An error is only forgotten:
        // its memory stays.
        unsafe {
            let e = (api.LLVMOrcResourceTrackerRemove)(self.tracker);
            if !e.is_null() {
                self.llvm.error_text(e);
            }
            (api.LLVMOrcReleaseResourceTracker)(self.tracker);
        }
    }
}

/// The LLVM of this process, or a sentence that says why there is none. Looked for once.
pub fn available() -> std::result::Result<&'static Llvm, &'static str> {
    static LLVM: OnceLock<std::result::Result<Llvm, String>> = OnceLock::new();
    let found = LLVM.get_or_init(|| search(setting().as_deref()));
    found.as_ref().map_err(String::as_str)
}

/// What the user says of where LLVM is.
pub(crate) fn setting() -> Option<std::ffi::OsString> {
    std::env::var_os(find::VARIABLE)
}

/// Looks for an LLVM as a value of the variable wants it.
fn search(setting: Option<&OsStr>) -> std::result::Result<Llvm, String> {
    let wish = find::wish(setting);
    let candidates = find::candidates(&wish).map_err(|why| format!("there is no LLVM: {why}"))?;
    let mut why = Vec::new();
    for path in candidates {
        match Llvm::load(&path) {
            Ok(llvm) => return Ok(llvm),
            Err(e) => why.push(format!("{}: {e}", path.display())),
        }
    }
    Err(format!("there is no LLVM that can be used: {}", why.join("; ")))
}

impl Llvm {
    /// Which LLVM it is.
    pub fn version(&self) -> (u32, u32, u32) {
        self.version
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The machine it compiles for, as LLVM calls it.
    pub fn cpu(&self) -> &str {
        self.cpu.to_str().unwrap_or("?")
    }

    fn load(path: &Path) -> std::result::Result<Llvm, String> {
        let (api, version) = api::open(path)?;
        // SAFETY: the functions are called as the LLVM-C header says; what they give is copied and freed.
        unsafe {
            let text = |p: *mut c_char| take(&api, p);
            let triple = text((api.LLVMGetDefaultTargetTriple)());
            let (cpu, features) = (text((api.LLVMGetHostCPUName)()), text((api.LLVMGetHostCPUFeatures)()));
            let triple = CString::new(triple).map_err(|e| e.to_string())?;
            let cpu = CString::new(cpu).map_err(|e| e.to_string())?;
            let (mut target, mut message) = (null_mut(), null_mut());
            if (api.LLVMGetTargetFromTriple)(triple.as_ptr(), &mut target, &mut message) != 0 {
                return Err(text(message));
            }
            let mut jit = null_mut();
            let e = (api.LLVMOrcCreateLLJIT)(&mut jit, null_mut());
            let machine = machine(&features, None);
            let llvm = Llvm { api, version, path: path.to_path_buf(), target, triple, cpu, features, machine, jit };
            if !e.is_null() {
                return Err(llvm.error_text(e));
            }
            Ok(llvm)
        }
    }

    /// The text of an error, which is gone afterwards.
    ///
    /// # Safety
    /// `e` is an error of LLVM that was not taken yet.
    unsafe fn error_text(&self, e: Handle) -> String {
        // SAFETY: the message is LLVM's until it is disposed of.
        unsafe {
            let message = (self.api.LLVMGetErrorMessage)(e);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (self.api.LLVMDisposeErrorMessage)(message);
            text
        }
    }

    /// Compiles a module, which is verified and expanded.
    pub fn compile(&'static self, module: &Module, options: &Options) -> Result<Compiled> {
        let mut times = Times::default();
        let mut clock = Instant::now();
        let mut lap = || {
            let now = Instant::now();
            now - std::mem::replace(&mut clock, now)
        };
        let name = image::fresh_name();
        let mut machine = options.vector.map_or(self.machine, |v| self::machine(&self.features, Some(v)));
        if options.small {
            machine.once = 0;
        }
        let emit::Written { text, divides } = emit::module(module, machine, &name)?;
        times.write = lap();
        let plan = plan(options.effort, text.len(), !module.pieces.is_empty(), divides);
        let work = Work::new(self, options, &plan)?;
        let parsed = work.parse(&text)?;
        if options.verify || cfg!(debug_assertions) {
            parsed.verify(&text)?;
        }
        times.parse = lap();
        parsed.passes()?;
        times.passes = lap();
        let llvm_ir = options.llvm_ir.then(|| parsed.text());
        // Making code changes the module: the text of it is made from another copy.
        let assembly = match options.assembly {
            true => {
                let copy = work.parse(&text)?;
                copy.passes()?;
                let buffer = copy.code(0)?;
                Some(String::from_utf8_lossy(buffer.bytes()).into_owned())
            }
            false => None,
        };
        lap();
        let object = parsed.code(1)?;
        times.code = lap();
        let bytes = object.code_size();
        let image = options.image.then(|| self.image_of(&name, object.bytes()));
        let (main, tracker) = self.link(object, &name)?;
        times.link = lap();
        Ok(Compiled { main, bytes, llvm_ir, assembly, image, times, tracker, llvm: self })
    }

    /// Puts an object file into memory.
    fn link(&self, object: Buffer<'_>, name: &str) -> Result<(MainFn, Handle)> {
        let api = &self.api;
        let symbol = CString::new(name).map_err(|e| error!(Rule, "{e}"))?;
        let functions = if perf::is_on() { perf::functions(object.bytes()) } else { None };
        // SAFETY: the JIT takes the object over; the address it gives is that of the function of this name, which was
        // written with the convention and the signature of a main body.
        unsafe {
            let tracker = (api.LLVMOrcJITDylibCreateResourceTracker)((api.LLVMOrcLLJITGetMainJITDylib)(self.jit));
            let mut e = (api.LLVMOrcLLJITAddObjectFileWithRT)(self.jit, tracker, object.release());
            let mut address = 0;
            if e.is_null() {
                e = (api.LLVMOrcLLJITLookup)(self.jit, &mut address, symbol.as_ptr());
            }
            if !e.is_null() {
                let text = self.error_text(e);
                let e = (api.LLVMOrcResourceTrackerRemove)(tracker);
                if !e.is_null() {
                    self.error_text(e);
                }
                (api.LLVMOrcReleaseResourceTracker)(tracker);
                return Err(error!(Rule, "LLVM cannot link: {text}"));
            }
            let functions = functions.unwrap_or_default();
            // All of them lie in one section, as far from each other as there.
            if let Some(main) = functions.iter().find(|f| f.name == name).map(|f| f.start) {
                let base = (address as usize).wrapping_sub(main);
                perf::name(functions.into_iter().map(|f| (base.wrapping_add(f.start), f.bytes, f.name)));
            }
            Ok((std::mem::transmute::<usize, MainFn>(address as usize), tracker))
        }
    }
}

/// A copy of a message of LLVM, which is freed.
///
/// # Safety
/// `message` is null or a message that LLVM made for the caller.
unsafe fn take(api: &Api, message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: it is a text with an end, and the caller's.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        (api.LLVMDisposeMessage)(message);
        text
    }
}

/// What a machine with these features can do, perhaps with smaller vectors.
pub fn machine(features: &str, most: Option<usize>) -> Machine {
    let has = |f: &str| features.split(',').any(|x| x.strip_prefix('+') == Some(f));
    let full = ["avx512f", "avx512bw", "avx512vl", "avx512dq"].into_iter().all(has);
    let vector = match () {
        _ if full => 64,
        _ if has("avx2") => 32,
        _ => 16,
    };
    let vector = most.map_or(vector, |m| vector.min(m.max(16)));
    let registers = if vector == 64 || cfg!(target_arch = "aarch64") { 32 } else { 16 };
    // Loads and stores of any type take masks at no cost.
    let masks = vector == 64;
    Machine {
        bytes: vector,
        registers,
        even: false,
        masks,
        rest: if masks { Rest::Masked } else { Rest::Serial },
        short: [400, 1500],
        once: 120,
        repeated: 400,
        native: None,
    }
}

/// The passes for each effort, and how hard code generation tries (LLVM's -O).
///
/// Loops of lanes are vector code already, and what can be computed before them is. For them `default<O3>` gains nothing
/// and costs twice the time; moving the indices of gathers out of a loop even hides from code generation that they are
/// small. Scalars of main bodies, which may be small arrays, are worth a look for vectors while there are not too many; in
/// one that is cut the frame would be looked at instead, whose neighbours have nothing to do with each other. Where scalars are divided they stay alone: of a vector
/// of quotients LLVM (22 at least) takes a lane for zero where both operands are, which is NaN, and forgets the comparison that such a lane waits for.
fn plan(effort: Effort, text: usize, cut: bool, divides: bool) -> Plan {
    /// Bytes of text from which main bodies are left as they are: about two thousand operations.
    const LARGE: usize = 1 << 17;
    /// Bytes from which as little as possible is done: about half a million operations.
    const HUGE: usize = 1 << 25;
    let effort = match effort {
        Effort::Auto if text > HUGE => Effort::Least,
        Effort::Auto => Effort::Some,
        e => e,
    };
    let (passes, level) = match effort {
        Effort::Most => ("default<O3>", 3),
        Effort::Some | Effort::Auto if cut || text > LARGE => ("function(early-cse)", 1),
        Effort::Some | Effort::Auto if divides => ("function(dce,early-cse)", 2),
        Effort::Some | Effort::Auto => ("function(dce,early-cse,slp-vectorizer,early-cse)", 2),
        Effort::Least => ("function(early-cse)", 0),
    };
    Plan { passes, level, alone: divides }
}

/// What LLVM is to do.
struct Plan {
    passes: &'static str,
    level: i32,
    /// Scalars stay scalars, whatever the passes are.
    alone: bool,
}

/// What one compilation needs of LLVM, with one thread.
struct Work<'a> {
    llvm: &'a Llvm,
    context: Handle,
    machine: Handle,
    layout: Handle,
    passes: CString,
    /// Scalars stay scalars, whatever the passes are.
    alone: bool,
    /// What LLVM complained of: a box that this owns and the context's handler writes to.
    complaints: *mut Complaints,
}

struct Complaints {
    describe: unsafe extern "C" fn(Handle) -> *mut c_char,
    severity: unsafe extern "C" fn(Handle) -> i32,
    dispose: unsafe extern "C" fn(*mut c_char),
    text: String,
}

/// Takes what LLVM has to say. Without it LLVM writes errors to the terminal and ends the process.
extern "C" fn complain(info: Handle, to: Handle) {
    // SAFETY: `to` is the `Complaints` of the compilation that runs, which nobody else looks at meanwhile.
    unsafe {
        let to = &mut *to.cast::<Complaints>();
        const ERROR: i32 = 0;
        if (to.severity)(info) == ERROR {
            let message = (to.describe)(info);
            to.text.push_str(&CStr::from_ptr(message).to_string_lossy());
            (to.dispose)(message);
        }
    }
}

impl<'a> Work<'a> {
    fn new(llvm: &'a Llvm, options: &Options, plan: &Plan) -> Result<Work<'a>> {
        let api = &llvm.api;
        let passes = options.passes.as_deref().unwrap_or(plan.passes);
        let passes = CString::new(passes).map_err(|e| error!(Rule, "{e}"))?;
        let less = match options.vector {
            Some(..32) => ",-avx,-avx2,-avx512f,-fma",
            Some(..64) => ",-avx512f,-evex512,-avx10.1,-avx10.2",
            _ => "",
        };
        let features = CString::new(format!("{}{less}", llvm.features)).map_err(|e| error!(Rule, "{e}"))?;
        let complaints = Complaints {
            describe: api.LLVMGetDiagInfoDescription,
            severity: api.LLVMGetDiagInfoSeverity,
            dispose: api.LLVMDisposeMessage,
            text: String::new(),
        };
        const POSITION_INDEPENDENT: i32 = 2;
        // Code and constants of an object lie together in memory, so near addresses do.
        const SMALL_CODE_MODEL: i32 = 3;
        // SAFETY: called as the header says. The complaints live until the context is gone.
        unsafe {
            let (triple, cpu) = (llvm.triple.as_ptr(), llvm.cpu.as_ptr());
            let machine = (api.LLVMCreateTargetMachine)(
                llvm.target,
                triple,
                cpu,
                features.as_ptr(),
                plan.level,
                POSITION_INDEPENDENT,
                SMALL_CODE_MODEL,
            );
            if machine.is_null() {
                return Err(error!(Rule, "LLVM does not know this machine: {}", llvm.cpu()));
            }
            let layout = (api.LLVMCreateTargetDataLayout)(machine);
            let context = (api.LLVMContextCreate)();
            let complaints = Box::into_raw(Box::new(complaints));
            (api.LLVMContextSetDiagnosticHandler)(context, complain, complaints.cast());
            Ok(Work { llvm, context, machine, layout, passes, alone: plan.alone, complaints })
        }
    }

    fn parse(&self, text: &str) -> Result<Parsed<'_>> {
        let api = &self.llvm.api;
        let (mut module, mut message) = (null_mut(), null_mut());
        // SAFETY: the text is copied; the parser takes the copy over.
        unsafe {
            let buffer =
                (api.LLVMCreateMemoryBufferWithMemoryRangeCopy)(text.as_ptr().cast(), text.len(), c"gradus".as_ptr());
            if (api.LLVMParseIRInContext)(self.context, buffer, &mut module, &mut message) != 0 {
                let message = take(api, message);
                return Err(error!(Rule, "LLVM cannot read what Gradus wrote: {message}"));
            }
            (api.LLVMSetTarget)(module, self.llvm.triple.as_ptr());
            (api.LLVMSetModuleDataLayout)(module, self.layout);
        }
        Ok(Parsed { work: self, module })
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let api = &self.llvm.api;
        // SAFETY: made by `new`; modules borrow this and are gone.
        unsafe {
            (api.LLVMContextDispose)(self.context);
            (api.LLVMDisposeTargetData)(self.layout);
            (api.LLVMDisposeTargetMachine)(self.machine);
            drop(Box::from_raw(self.complaints));
        }
    }
}

/// A module of LLVM.
struct Parsed<'a> {
    work: &'a Work<'a>,
    module: Handle,
}

impl Parsed<'_> {
    fn api(&self) -> &Api {
        &self.work.llvm.api
    }

    fn verify(&self, text: &str) -> Result<()> {
        let mut message = null_mut();
        const SAY_SO: i32 = 2;
        // SAFETY: called as the header says.
        let (bad, message) = unsafe {
            let bad = (self.api().LLVMVerifyModule)(self.module, SAY_SO, &mut message) != 0;
            (bad, take(self.api(), message))
        };
        match bad {
            true => Err(error!(Rule, "LLVM rejects what Gradus wrote: {message}\n{text}")),
            false => Ok(()),
        }
    }

    fn passes(&self) -> Result<()> {
        let api = self.api();
        // SAFETY: called as the header says.
        unsafe {
            let options = (api.LLVMCreatePassBuilderOptions)();
            (api.LLVMPassBuilderOptionsSetLoopVectorization)(options, 1);
            (api.LLVMPassBuilderOptionsSetSLPVectorization)(options, i32::from(!self.work.alone));
            let e = (api.LLVMRunPasses)(self.module, self.work.passes.as_ptr(), self.work.machine, options);
            (api.LLVMDisposePassBuilderOptions)(options);
            match e.is_null() {
                true => Ok(()),
                false => Err(error!(Rule, "LLVM's passes fail: {}", self.work.llvm.error_text(e))),
            }
        }
    }

    fn text(&self) -> String {
        // SAFETY: the text is the caller's.
        unsafe { take(self.api(), (self.api().LLVMPrintModuleToString)(self.module)) }
    }

    /// Machine code: as text (0) or as an object file (1).
    fn code(&self, kind: i32) -> Result<Buffer<'_>> {
        let api = self.api();
        let (mut buffer, mut message) = (null_mut(), null_mut());
        // SAFETY: called as the header says.
        unsafe {
            let machine = self.work.machine;
            if (api.LLVMTargetMachineEmitToMemoryBuffer)(machine, self.module, kind, &mut message, &mut buffer) != 0 {
                return Err(error!(Rule, "LLVM makes no code: {}", take(api, message)));
            }
        }
        let buffer = Buffer { api, handle: buffer };
        // SAFETY: LLVM only writes to it while one of its functions runs, on this thread.
        match unsafe { &(*self.work.complaints).text }.as_str() {
            "" => Ok(buffer),
            text => Err(error!(Rule, "LLVM makes no code: {text}")),
        }
    }
}

impl Drop for Parsed<'_> {
    fn drop(&mut self) {
        // SAFETY: made by the parser, and its context lives.
        unsafe { (self.api().LLVMDisposeModule)(self.module) }
    }
}

/// Memory of LLVM.
struct Buffer<'a> {
    api: &'a Api,
    handle: Handle,
}

impl<'a> Buffer<'a> {
    /// Memory of LLVM with these bytes.
    fn copy_of(api: &'a Api, bytes: &[u8]) -> Buffer<'a> {
        // SAFETY: the bytes are copied.
        let handle = unsafe {
            (api.LLVMCreateMemoryBufferWithMemoryRangeCopy)(bytes.as_ptr().cast(), bytes.len(), c"gradus".as_ptr())
        };
        Buffer { api, handle }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: start and size are those of memory that lives as long as the buffer.
        unsafe {
            let start = (self.api.LLVMGetBufferStart)(self.handle);
            std::slice::from_raw_parts(start.cast(), (self.api.LLVMGetBufferSize)(self.handle))
        }
    }

    /// The handle for a function that takes it over.
    fn release(self) -> Handle {
        let handle = self.handle;
        std::mem::forget(self);
        handle
    }

    /// Bytes of code and constants in an object file.
    fn code_size(&self) -> usize {
        let api = self.api;
        let mut size = 0;
        // SAFETY: the binary looks at the buffer, which outlives it.
        unsafe {
            let mut message = null_mut();
            let binary = (api.LLVMCreateBinary)(self.handle, null_mut(), &mut message);
            if binary.is_null() {
                take(api, message);
                return self.bytes().len();
            }
            let section = (api.LLVMObjectFileCopySectionIterator)(binary);
            while (api.LLVMObjectFileIsSectionIteratorAtEnd)(binary, section) == 0 {
                let name = (api.LLVMGetSectionName)(section);
                let name = if name.is_null() { "".into() } else { CStr::from_ptr(name).to_string_lossy() };
                let counts = ["text", "rodata", "rdata", "const", "literal"].iter().any(|n| name.contains(n));
                if counts && !name.starts_with(".rel") {
                    size += (api.LLVMGetSectionSize)(section) as usize;
                }
                (api.LLVMMoveToNextSection)(section);
            }
            (api.LLVMDisposeSectionIterator)(section);
            (api.LLVMDisposeBinary)(binary);
        }
        size
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody took it over.
        unsafe { (self.api.LLVMDisposeMemoryBuffer)(self.handle) }
    }
}
