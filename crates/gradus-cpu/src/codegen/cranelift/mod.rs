//! The code generator for processors that our own assembler does not know: Cranelift.
//!
//! Compile time counts here: a module is compiled while someone waits.

mod emit;
mod image;
mod jobs;
mod kernel;
mod main;
mod scalar;
mod simd;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::sync::OnceLock;

use cranelift_codegen::Context;
use cranelift_codegen::ir::{self, Signature, Type, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _, ModuleReloc, default_libcall_names};
use rustc_hash::FxHashSet;

use crate::abi::MainFn;
use crate::error::{Result, error};
use crate::ir::{Module, Ty};

pub use image::load;
pub use kernel::machine;

use emit::{Emitter, Shared, Values, failed};
use image::Part;
use jobs::Job;

/// What is made, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keep the text of what is made, for [`Compiled::assembly`].
    pub text: bool,
    /// Keep the code as bytes that can be loaded again, for [`Compiled::image`].
    pub image: bool,
    /// Which loops of lanes fill vector registers of 128 bits.
    pub simd: Simd,
    /// Use what this processor has beyond the base of its architecture.
    pub native: bool,
}

/// Which loops of lanes become vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Simd {
    /// None.
    Never,
    /// Those that gain by it.
    Worthwhile,
    /// All that can; for tests.
    Always,
}

impl Default for Options {
    fn default() -> Options {
        Options { text: false, image: false, simd: Simd::Worthwhile, native: true }
    }
}

/// Machine code of a module. Dropping it frees the memory.
pub struct Compiled {
    /// None only while it is dropped.
    code: Option<JITModule>,
    main: MainFn,
    bytes: usize,
    text: String,
    image: Option<Vec<u8>>,
}

// SAFETY: after it is made, the module is only touched by `drop`, which has it for itself. Machine code is only read.
unsafe impl Sync for Compiled {}

impl Compiled {
    /// The main body. It may be called as long as this lives, with a context of the module's buffers and sizes.
    pub fn main(&self) -> MainFn {
        self.main
    }

    /// How many bytes the machine code has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What Cranelift was given and what it made of it, if the options asked for it.
    pub fn assembly(&self) -> &str {
        &self.text
    }

    /// The code as bytes that [`load`] takes, if the options asked for it and it can be written down.
    pub fn image(&self) -> Option<&[u8]> {
        self.image.as_deref()
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(code) = self.code.take() {
            // SAFETY: whoever calls `main` promises that this value lives, and nothing else points into the code.
            unsafe { code.free_memory() }
        }
    }
}

/// Makes machine code of an expanded module.
pub fn compile(module: &Module, options: &Options) -> Result<Compiled> {
    let isa = target(options.native, false)?;
    let quick = target(options.native, true)?;
    let convention = convention(&*isa);
    let mut maker = Maker {
        convention,
        frontend: FunctionBuilderContext::new(),
        values: Values::new(module.types.len()),
        jobs: Vec::new(),
        bytes: 0,
        text: String::new(),
        parts: Vec::new(),
        options,
        module,
        jit: JITModule::new(linker(isa.clone())),
    };
    let main = maker.module().and_then(|main| {
        for made in jobs::compile(std::mem::take(&mut maker.jobs), [&*isa, &*quick], options.text)? {
            maker.define(made.id, made.alignment, &made.bytes, &made.relocations)?;
            maker.text.push_str(&made.text);
        }
        maker.jit.finalize_definitions().map_err(|e| failed(&module.name, e))?;
        Ok(main)
    });
    let Maker { jit, bytes, text, parts, .. } = maker;
    let image = main.as_ref().ok().filter(|_| options.image).and_then(|main| image::write(&parts, *main));
    finish(jit, main, bytes, text, image)
}

/// What links code: it knows the functions of Rust that code may call by name.
fn linker(isa: OwnedTargetIsa) -> JITBuilder {
    let mut jit = JITBuilder::with_isa(isa, default_libcall_names());
    // Not every platform lets a program look these up by name.
    for (name, address) in math_library() {
        jit.symbol(name, address);
    }
    jit
}

/// Code that is linked and whose main body is `main`, or nothing, with its memory freed.
fn finish(
    jit: JITModule,
    main: Result<FuncId>,
    bytes: usize,
    text: String,
    image: Option<Vec<u8>>,
) -> Result<Compiled> {
    match main {
        Ok(main) => {
            let main = jit.get_finalized_function(main);
            // SAFETY: the function was made with the signature of `MainFn`.
            let main = unsafe { std::mem::transmute::<*const u8, MainFn>(main) };
            Ok(Compiled { code: Some(jit), main, bytes, text, image })
        }
        Err(e) => {
            // SAFETY: no pointer into the code was given out.
            unsafe { jit.free_memory() };
            Err(e)
        }
    }
}

/// The processor to make code for, carefully or quickly. Asking what it has is slow, so it is asked once.
///
/// Quick code is made in a fifth of the time. In straight lines it runs about as fast: what it spills stays in the cache.
fn target(native: bool, quick: bool) -> Result<OwnedTargetIsa> {
    static TARGETS: [OnceLock<Option<OwnedTargetIsa>>; 4] = [const { OnceLock::new() }; 4];
    let make = || {
        let mut flags = settings::builder();
        for (name, value) in [
            ("opt_level", if quick { "none" } else { "speed" }),
            ("regalloc_algorithm", if quick { "single_pass" } else { "backtracking" }),
            ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
            // A function may spill many pages: each is touched in its order, so that the one behind the stack is met and not jumped over.
            ("enable_probestack", "true"),
            ("probestack_strategy", "inline"),
            ("use_colocated_libcalls", "false"),
            ("is_pic", "false"),
            ("unwind_info", "false"),
        ] {
            flags.set(name, value).ok()?;
        }
        cranelift_native::builder_with_options(native).ok()?.finish(settings::Flags::new(flags)).ok()
    };
    match TARGETS[usize::from(native) + 2 * usize::from(quick)].get_or_init(make) {
        Some(isa) => Ok(isa.clone()),
        None => Err(error!(Value, "Cranelift has no code for this processor")),
    }
}

/// The code generator and the processor it makes code for, as far as code depends on them.
pub fn about() -> Result<String> {
    let mut text = format!("cranelift {}", cranelift_codegen::VERSION);
    for isa in [target(true, false)?, target(true, true)?] {
        let flags: Vec<String> = isa.isa_flags().iter().map(ToString::to_string).collect();
        let _ = write!(text, " {} {} {}", isa.triple(), isa.flags(), flags.join(" "));
    }
    Ok(text)
}

/// What [`crate::abi`] says: System V on x86-64, elsewhere the C convention of the platform.
fn convention(isa: &dyn TargetIsa) -> CallConv {
    if cfg!(target_arch = "x86_64") { CallConv::SystemV } else { isa.default_call_conv() }
}

/// The functions that code for an old processor calls.
fn math_library() -> [(&'static str, *const u8); 10] {
    macro_rules! function {
        ($name:ident($($arg:ident),*) -> $t:ty = $body:expr) => {{
            extern "C" fn $name($($arg: $t),*) -> $t { $body }
            (stringify!($name), $name as *const u8)
        }};
    }
    [
        function!(fmaf(a, b, c) -> f32 = a.mul_add(b, c)),
        function!(fma(a, b, c) -> f64 = a.mul_add(b, c)),
        function!(floorf(a) -> f32 = a.floor()),
        function!(floor(a) -> f64 = a.floor()),
        function!(ceilf(a) -> f32 = a.ceil()),
        function!(ceil(a) -> f64 = a.ceil()),
        function!(truncf(a) -> f32 = a.trunc()),
        function!(trunc(a) -> f64 = a.trunc()),
        function!(nearbyintf(a) -> f32 = a.round_ties_even()),
        function!(nearbyint(a) -> f64 = a.round_ties_even()),
    ]
}

/// How a type is held in registers.
fn machine_type(ty: Ty) -> Type {
    match ty {
        Ty::Bool | Ty::I8 | Ty::U8 => types::I8,
        Ty::I16 | Ty::U16 => types::I16,
        Ty::I32 | Ty::U32 => types::I32,
        Ty::I64 | Ty::U64 => types::I64,
        Ty::F32 => types::F32,
        Ty::F64 => types::F64,
    }
}

/// What makes the functions of one module.
struct Maker<'a> {
    module: &'a Module,
    options: &'a Options,
    convention: CallConv,
    frontend: FunctionBuilderContext,
    values: Values,
    jobs: Vec<Job>,
    bytes: usize,
    text: String,
    /// What was defined, if an image is wanted.
    parts: Vec<Part>,
    jit: JITModule,
}

impl<'a> Maker<'a> {
    fn module(&mut self) -> Result<FuncId> {
        let module = self.module;
        let words = emit::words(self.convention, 4, false);
        let kernels = (0..module.kernels.len())
            .map(|i| self.declare(&format!("kernel{i}"), Linkage::Local, &words))
            .collect::<Result<Vec<_>>>()?;
        let signatures: Vec<Signature> =
            module.functions.iter().map(|f| emit::elementary(self.convention, f.ty, f.params.len())).collect();
        let functions = signatures
            .iter()
            .enumerate()
            .map(|(i, signature)| self.declare(&format!("function{i}"), Linkage::Local, signature))
            .collect::<Result<Vec<_>>>()?;
        let signature = emit::words(self.convention, 1, true);
        let pieces = (0..module.pieces.len())
            .map(|i| self.declare(&format!("piece{i}"), Linkage::Local, &signature))
            .collect::<Result<Vec<_>>>()?;
        let shared = Shared {
            module,
            simd: self.simd(),
            convention: self.convention,
            kernels: &kernels,
            functions: &functions,
            pieces: &pieces,
            swapped: module.swapped(),
        };
        for (i, k) in module.kernels.iter().enumerate() {
            self.function(kernels[i], &words, &shared, &k.name, |e, params| e.kernel(k, params))?;
        }
        for (i, f) in module.functions.iter().enumerate() {
            self.function(functions[i], &signatures[i], &shared, &module.name, |e, params| {
                e.define_elementary(f, params)
            })?;
        }
        let main = self.declare("main", Linkage::Export, &signature)?;
        let mut repeated = FxHashSet::default();
        self.function(main, &signature, &shared, &module.name, |e, _| {
            e.main(&module.main)?;
            repeated.extend(e.repeated.drain(..));
            Ok(())
        })?;
        for (i, body) in module.pieces.iter().enumerate() {
            self.function(pieces[i], &signature, &shared, &module.name, |e, _| e.piece(body))?;
            if let Some(job) = self.jobs.last_mut() {
                job.quick = !repeated.contains(&(i as u32)) && body.iter().all(main::straight);
            }
        }
        Ok(main)
    }

    fn simd(&self) -> Simd {
        let mut flags = self.jit.isa().isa_flags().into_iter();
        match cfg!(target_arch = "x86_64") && !flags.any(|f| f.name == "has_sse41" && f.as_bool() == Some(true)) {
            // The oldest processors of x86-64 lack too much.
            true => Simd::Never,
            false => self.options.simd,
        }
    }

    fn declare(&mut self, name: &str, linkage: Linkage, signature: &Signature) -> Result<FuncId> {
        self.jit.declare_function(name, linkage, signature).map_err(|e| failed(name, e))
    }

    fn define(&mut self, id: FuncId, alignment: u64, code: &[u8], relocations: &[ModuleReloc]) -> Result<()> {
        self.bytes += code.len();
        if self.options.image {
            self.parts.push(Part { id, alignment, bytes: code.to_vec(), relocations: relocations.to_vec() });
        }
        let defined = self.jit.define_function_bytes(id, alignment, code, relocations);
        defined.map_err(|e| failed(&self.module.name, e))
    }

    /// Writes down one function; `emit` does it.
    fn function<'s>(
        &mut self,
        id: FuncId,
        signature: &Signature,
        shared: &'s Shared<'s>,
        name: &str,
        emit: impl FnOnce(&mut Emitter<'s, '_>, &[ir::Value]) -> Result<()>,
    ) -> Result<()> {
        let mut context = Context::new();
        context.func.signature = signature.clone();
        let builder = FunctionBuilder::new(&mut context.func, &mut self.frontend);
        let (mut emitter, params) = Emitter::new(shared, &mut self.values, builder);
        emit(&mut emitter, &params)?;
        emitter.b.finalize(self.jit.target_config());
        self.jobs.push(Job { id, name: name.to_owned(), context, quick: false });
        Ok(())
    }
}
