//! A compiled program: buffers are found or made, machine code runs, results become arrays.

use std::cell::Cell;
use std::ffi::c_void;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use gradus_core::array::Concrete;
use gradus_core::executables::{Sizes, sizes_of};
use gradus_core::phases::{Phase, report};
use gradus_core::primitives::Outputs;
use gradus_core::program::Program;
use gradus_core::{Array, Executable, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::abi::Context;
use crate::arena::Arena;
use crate::backend::{Options, Tier};
use crate::bind::Bound;
use crate::block::Block;
use crate::error::{Error, Result, error, fail};
use crate::exec::{address, dense_input};
use crate::ir::{Buffer, Role};
use crate::lower::{Lowered, Output};
use crate::memory::{self, MemoryPlan, Slot};
use crate::runtime::{LibraryCall, Run, Stopped, call, parallel, special};
use crate::size::Size;
use crate::tiers::{Tiers, write};

/// Where a buffer's memory comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backing {
    Input(u32),
    Output(u32),
    Constant(u32),
    Scratch(usize),
    /// In the memory of an output, at an offset.
    Inside(u32, usize),
    /// It is never touched.
    Nowhere,
}

/// A program as machine code.
pub struct Native {
    shared: Arc<Tiers>,
    /// What its inputs must be, with the symbols as the user named them.
    signature: Program,
    constants: Vec<Concrete>,
    /// If nothing about it is symbolic.
    fixed: Option<Arc<Ready>>,
    /// By the dimensions of all inputs.
    sized: RwLock<FxHashMap<Sizes, Arc<Ready>>>,
    /// Whether its code was on disk.
    loaded: bool,
    /// Whether its results are what it makes, each once and in order.
    in_order: bool,
    /// Whether nothing but its code and products of matrices run.
    alone: bool,
}

/// A program for given sizes: the memory that its run needs.
pub(crate) struct Ready {
    pub bound: Bound,
    pub plan: MemoryPlan,
    pub slots: Vec<Backing>,
}

/// So many sizes are remembered; making one ready again takes some microseconds.
const REMEMBERED: usize = 256;

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Native").field("name", &self.shared.lowered.module.name).finish()
    }
}

impl Ready {
    fn new(lowered: &Lowered, signature: &Program, types: &[Type]) -> Result<Ready> {
        let bound = lowered.bind(signature, types)?;
        let plan = memory::plan(&lowered.module, &bound.bytes, &lowered.uncovered)?;
        let buffers = &lowered.module.buffers;
        let slots = buffers
            .iter()
            .enumerate()
            .map(|(b, info)| match info.role {
                Role::Input(i) => Backing::Input(i),
                Role::Output(i) => Backing::Output(i),
                Role::Constant(i) => Backing::Constant(i),
                Role::Scratch => match plan.places[b] {
                    None => Backing::Nowhere,
                    Some(Slot { output: None, offset }) => Backing::Scratch(offset),
                    Some(Slot { output: Some(o), offset }) => match buffers[o.index()].role {
                        Role::Output(i) => Backing::Inside(i, offset),
                        _ => Backing::Nowhere,
                    },
                },
            })
            .collect();
        Ok(Ready { bound, plan, slots })
    }
}

/// Where `GRADUS_DUMP` wants every phase written.
pub(crate) fn dump_folder() -> Option<&'static std::path::Path> {
    static FOLDER: OnceLock<Option<std::path::PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::var_os("GRADUS_DUMP").map(Into::into)).as_deref()
}

/// Writes what there is to see of a program, and gives the folder in which texts of its code belong.
fn dump(folder: &std::path::Path, l: &Lowered, plan: Option<&MemoryPlan>) -> Option<std::path::PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let folder = folder.join(format!("{:04}_{}", NUMBER.fetch_add(1, Ordering::Relaxed), l.module.name));
    std::fs::create_dir_all(&folder).ok()?;
    write(&folder, "kernels.txt", &l.module.to_string());
    let plan = plan.map_or_else(String::new, MemoryPlan::to_string);
    write(&folder, "memory.txt", &format!("{plan}{}\n", l.copies.join("\n")));
    Some(folder)
}

impl Native {
    /// Makes machine code.
    pub(crate) fn new(lowered: Lowered, signature: Program, options: Options) -> Result<Native> {
        let constants = lowered
            .constants
            .iter()
            .map(|a| a.concrete().ok_or_else(|| error!(Rule, "a constant has no numbers"))?.try_dense())
            .collect::<Result<Vec<_>>>()?;
        let started = Instant::now();
        let fixed = if signature.is_symbolic() { None } else { Some(Arc::new(Ready::new(&lowered, &signature, &[])?)) };
        report(|| {
            let text = fixed.as_ref().map_or_else(|| "when sizes are known\n".into(), |r| r.plan.to_string());
            Phase::described("plan memory", text, started.elapsed())
        });
        let texts = dump_folder().and_then(|f| dump(f, &lowered, fixed.as_deref().map(|r| &r.plan)));
        let started = Instant::now();
        let (shared, made, loaded) = Tiers::new(lowered, options, texts)?;
        let outputs = &shared.lowered.outputs;
        let in_order = outputs.iter().enumerate().all(|(k, (_, o))| matches!(o, Output::Made(i) if *i == k));
        let evaluates = |e: &LibraryCall<Size>| matches!(e, LibraryCall::Evaluate(_));
        let alone = !shared.lowered.entries.iter().any(evaluates);
        let native = Native { alone, shared, signature, constants, fixed, sized: RwLock::default(), loaded, in_order };
        report(|| {
            let from = if loaded { " from disk" } else { "" };
            let mut text = format!("{made}{from}, {} bytes", native.shared.code_bytes());
            if let Some(why) = native.shared.without() {
                text += &format!("\nno LLVM: {why}");
            }
            Phase::described("generate code", text, started.elapsed())
        });
        Ok(native)
    }

    /// What a run on inputs of these types needs.
    pub(crate) fn ready(&self, inputs: &[Array]) -> Result<Arc<Ready>> {
        if let Some(ready) = &self.fixed {
            return Ok(ready.clone());
        }
        let key = sizes_of(inputs);
        if let Some(found) = self.sized.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(found.clone());
        }
        let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
        let ready = Arc::new(Ready::new(&self.shared.lowered, &self.signature, &types)?);
        let mut sized = self.sized.write().unwrap_or_else(PoisonError::into_inner);
        if sized.len() >= REMEMBERED {
            sized.clear();
        }
        sized.insert(key, ready.clone());
        Ok(ready)
    }

    pub(crate) fn constant(&self, i: usize) -> &Concrete {
        &self.constants[i]
    }

    /// The program in the kernel language.
    pub fn lowered(&self) -> &Lowered {
        &self.shared.lowered
    }

    /// What a run needs, if that does not depend on its inputs.
    pub(crate) fn ready_without_inputs(&self) -> Result<Arc<Ready>> {
        self.fixed.clone().ok_or_else(|| {
            error!(Value, "`{}` has symbolic dimensions, so its buffers have no sizes", self.shared.lowered.module.name)
                .help("prepare the function for known dimensions, without `.symbolic(..)`")
        })
    }

    /// Where its scratch arrays lie; none if that takes the sizes to say.
    pub fn plan(&self) -> Option<&MemoryPlan> {
        self.fixed.as_ref().map(|ready| &ready.plan)
    }

    /// Whether the optimizing tier's code runs, and if not, why.
    pub fn tier(&self) -> std::result::Result<Tier, Option<&str>> {
        self.shared.tier()
    }

    /// Outputs that the code does not certainly write as a whole are cleared; what it is to write is no number where that is wanted.
    #[cold]
    fn begin(&self, bound: &Bound, table: &mut [*mut u8]) {
        if self.shared.options.fill {
            self.fill(bound, table);
        }
        for b in &self.shared.lowered.uncovered {
            // SAFETY: the table has memory of these bytes for every output.
            unsafe { table[b.index()].write_bytes(0, bound.bytes[b.index()]) };
        }
    }

    /// Bytes that are a NaN of every float, in all memory that the code is to write.
    fn fill(&self, bound: &Bound, table: &[*mut u8]) {
        let buffers = self.shared.lowered.module.buffers.iter();
        for ((b, memory), bytes) in buffers.zip(table).zip(&bound.bytes) {
            if matches!(b.role, Role::Output(_) | Role::Scratch) && !memory.is_null() {
                // SAFETY: the table has memory of these bytes for every output and scratch array, and nothing in it yet.
                unsafe { memory.write_bytes(0xFF, *bytes) };
            }
        }
    }

    /// Runs the code on given memory.
    pub(crate) fn run_on(&self, bound: &Bound, table: &mut [*mut u8]) -> Result<()> {
        if self.shared.options.fill || !self.shared.lowered.uncovered.is_empty() {
            self.begin(bound, table);
        }
        let threads = self.shared.options.threads;
        let run = Run { entries: &bound.entries, stopped: Cell::new(None), serial: &bound.serial, threads };
        let context = Context {
            buffers: table.as_mut_ptr(),
            sizes: bound.sizes.as_ptr(),
            call,
            parallel,
            special: special::FUNCTIONS,
            run: std::ptr::from_ref(&run).cast::<c_void>(),
        };
        // SAFETY: the code was made for this table of buffers: inputs and constants of the checked types, outputs and
        // scratch of the planned sizes. It ends before any of them.
        match self.shared.run(std::ptr::from_ref(bound).addr(), |main| unsafe { main(&context) }) {
            Some(0) => Ok(()),
            Some(_) => Err(self.failure(&run)),
            None => Err(error!(Rule, "`{}` has no code", self.shared.lowered.module.name).of_gradus()),
        }
    }

    /// Why a run ended early. A panic goes on from here, as if there had been no machine code in between.
    #[cold]
    fn failure(&self, run: &Run<'_>) -> Error {
        match run.stopped.take() {
            Some(Stopped::Panicked(panic)) => resume_unwind(panic),
            Some(Stopped::Failed(e)) => e,
            None => error!(Rule, "a call of `{}` failed", self.shared.lowered.module.name).of_gradus(),
        }
    }
}

impl Executable for Native {
    fn run(&self, inputs: &[Array]) -> Result<Outputs> {
        let l = &self.shared.lowered;
        if inputs.len() != l.inputs.len() {
            fail!(Signature, "`{}` takes {} inputs, not {}", l.module.name, l.inputs.len(), inputs.len());
        }
        match &self.fixed {
            Some(ready) => self.run_ready(ready, inputs),
            None => self.run_ready(&*self.ready(inputs)?, inputs),
        }
    }

    fn generation(&self) -> u32 {
        self.shared.generation()
    }

    fn maker_of(&self, output: usize) -> Option<String> {
        let l = &self.shared.lowered;
        let Output::Made(made) = l.outputs.get(output)?.1 else { return None };
        let buffer = l.module.buffers.iter().position(|b| b.role == Role::Output(made as u32))?;
        // What no kernel writes, the main body does, or the library for it.
        let kernel = l.module.kernels.iter().rev().find(|k| k.stores_to(Buffer(buffer as u32)));
        Some(kernel.map_or_else(|| "main".into(), |k| k.name.clone()))
    }

    fn is_loaded(&self) -> bool {
        self.loaded
    }

    fn runs_alone(&self) -> bool {
        self.alone
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }

    fn bytes(&self) -> usize {
        let constants: usize = self.constants.iter().filter_map(|c| c.ty().bytes()).sum();
        self.shared.code_bytes() + constants + self.shared.lowered.module.buffers.len() * size_of::<Backing>()
    }
}

impl Native {
    /// Runs on inputs that the program takes, in memory of their sizes.
    fn run_ready(&self, ready: &Ready, inputs: &[Array]) -> Result<Outputs> {
        let l = &self.shared.lowered;
        let mut dense: SmallVec<[Concrete; 8]> = SmallVec::new();
        let mut addresses: SmallVec<[*const u8; 8]> = SmallVec::new();
        for (i, a) in inputs.iter().enumerate() {
            match a.concrete() {
                Some(c) if c.is_dense() && c.ty() == &ready.bound.inputs[i] => addresses.push(address(c)),
                _ => {
                    dense.push(dense_input(&l.module.name, &ready.bound.inputs[i], i, a)?);
                    addresses.push(dense.last().map_or(std::ptr::null(), address));
                }
            }
        }
        let mut made: SmallVec<[Block; 4]> = SmallVec::new();
        for ty in &ready.bound.made {
            made.push(Block::reserve(ty)?);
        }
        let arena = Arena::take(ready.plan.bytes)?;
        let mut table: SmallVec<[*mut u8; 32]> = SmallVec::new();
        for slot in &ready.slots {
            table.push(match slot {
                // Inputs are only read: the plan writes outputs and scratch.
                Backing::Input(i) => addresses[*i as usize].cast_mut(),
                Backing::Constant(i) => address(&self.constants[*i as usize]).cast_mut(),
                Backing::Output(i) => made[*i as usize].address(),
                Backing::Scratch(at) => arena.at(*at),
                // SAFETY: the plan's places lie inside the output.
                Backing::Inside(i, at) => unsafe { made[*i as usize].address().add(*at) },
                Backing::Nowhere => std::ptr::null_mut(),
            });
        }
        let result = self.run_on(&ready.bound, &mut table);
        arena.put_back();
        result?;
        self.shared.count_call();
        let mut arrays = Outputs::with_capacity(made.len());
        for (block, ty) in made.iter_mut().zip(&ready.bound.made) {
            // SAFETY: a run that succeeded has written every element of every output.
            arrays.push(unsafe { block.take_array(ty) });
        }
        if self.in_order {
            return Ok(arrays);
        }
        Ok(l.outputs
            .iter()
            .map(|(_, o)| match o {
                Output::Made(i) => arrays[*i].clone(),
                Output::Input(i) => inputs[*i].clone(),
                Output::Constant(i) => l.constants[*i].clone(),
            })
            .collect())
    }
}
