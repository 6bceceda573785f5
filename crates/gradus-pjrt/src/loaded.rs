//! Code on a device: compiled, run, written down and read again.

use std::fmt;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use gradus_core::Type;
use smallvec::SmallVec;

use crate::api::{Code, call, slice_of};
use crate::buffer::Buffer;
use crate::client::Client;
use crate::error::{Result, error, fail};
use crate::event::Event;
use crate::memory::{dtype, element_type};
use crate::options::{Named, SAFER, compile_options};
use crate::plugin::Plugin;
use crate::sys::{PJRT_Buffer, PJRT_Executable, PJRT_ExecuteContext, PJRT_LoadedExecutable, args};

/// A program that is ready on a device.
pub struct Loaded {
    client: &'static Client,
    device: usize,
    raw: NonNull<PJRT_LoadedExecutable>,
    outputs: Vec<Type>,
    memory: CodeMemory,
    /// How long it took to be made, or to be read.
    time: Duration,
}

// SAFETY: the interface says that code may be run from any thread, and at the same time.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loaded({} on {} {})", self.outputs.len(), self.client.platform(), self.device)
    }
}

/// What the plugin says that code takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeMemory {
    /// The code itself.
    pub code: i64,
    /// The arguments.
    pub arguments: i64,
    /// The results.
    pub results: i64,
    /// What it needs while it runs.
    pub scratch: i64,
}

/// Code as the plugin has it, apart from any device: it has outputs and can be written down.
pub(crate) struct Executable {
    plugin: &'static Plugin,
    raw: NonNull<PJRT_Executable>,
}

// SAFETY: it is a description that no call changes; it may be asked from any thread, and is destroyed once.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Drop for Executable {
    fn drop(&mut self) {
        let mut a = args!(PJRT_Executable_Destroy_Args { executable: self.raw.as_ptr() });
        // SAFETY: it is ours, and this is its last use.
        drop(unsafe { call!(&self.plugin.api, PJRT_Executable_Destroy, &raw mut a) });
    }
}

impl Executable {
    /// The executable behind a pointer.
    ///
    /// # Safety
    ///
    /// A call of this plugin gave it, and nobody else destroys it.
    pub unsafe fn new(plugin: &'static Plugin, raw: *mut PJRT_Executable) -> Result<Executable> {
        match NonNull::new(raw) {
            Some(raw) => Ok(Executable { plugin, raw }),
            None => Err(error!(Device, "{} gave no code and no error", plugin.api.name)),
        }
    }

    /// The types of its outputs.
    pub fn outputs(&self) -> Result<Vec<Type>> {
        let api = &self.plugin.api;
        let mut n = args!(PJRT_Executable_NumOutputs_Args { executable: self.raw.as_ptr() });
        let mut t = args!(PJRT_Executable_OutputElementTypes_Args { executable: self.raw.as_ptr() });
        let mut d = args!(PJRT_Executable_OutputDimensions_Args { executable: self.raw.as_ptr() });
        // SAFETY: the executable lives, and so do the lists that it gives.
        let (count, types, ranks, mut dims) = unsafe {
            call!(api, PJRT_Executable_NumOutputs, &raw mut n)?;
            if n.num_outputs == 0 {
                return Ok(Vec::new());
            }
            call!(api, PJRT_Executable_OutputElementTypes, &raw mut t)?;
            call!(api, PJRT_Executable_OutputDimensions, &raw mut d)?;
            let ranks = slice_of(d.dim_sizes, d.num_outputs);
            (n.num_outputs, slice_of(t.output_types, t.num_output_types), ranks, slice_of(d.dims, ranks.iter().sum()))
        };
        if types.len() != count || ranks.len() != count {
            fail!(Device, "{} gives {count} outputs and {} types", api.name, types.len());
        }
        types
            .iter()
            .zip(ranks)
            .map(|(t, rank)| {
                let (mine, rest) = dims.split_at(*rank);
                dims = rest;
                let dtype =
                    dtype(*t).ok_or_else(|| error!(DType, "an output has element type {t}, which Gradus lacks"))?;
                let mine: Vec<usize> = mine.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect();
                Ok(Type::new(dtype, &mine[..]))
            })
            .collect()
    }

    /// Itself as bytes that [`Loaded::read`] takes.
    pub fn write(&self) -> Result<Vec<u8>> {
        let mut a = args!(PJRT_Executable_Serialize_Args { executable: self.raw.as_ptr().cast_const() });
        // SAFETY: the executable lives; what it gives lives until it is deleted, which is below and once.
        unsafe {
            call!(&self.plugin.api, PJRT_Executable_Serialize, &raw mut a)?;
            let bytes = slice_of(a.serialized_bytes.cast::<u8>(), a.serialized_bytes_size).to_vec();
            if let Some(delete) = a.serialized_executable_deleter {
                delete(a.serialized_executable);
            }
            Ok(bytes)
        }
    }

    /// What it takes, if the plugin says.
    pub fn memory(&self) -> CodeMemory {
        let mut a = args!(PJRT_Executable_GetCompiledMemoryStats_Args { executable: self.raw.as_ptr() });
        // SAFETY: the executable lives, and the arguments are of this function.
        match unsafe { call!(&self.plugin.api, PJRT_Executable_GetCompiledMemoryStats, &raw mut a) } {
            Ok(()) => CodeMemory {
                code: a.generated_code_size_in_bytes,
                arguments: a.argument_size_in_bytes,
                results: a.output_size_in_bytes,
                scratch: a.temp_size_in_bytes,
            },
            Err(_) => CodeMemory::default(),
        }
    }
}

impl Loaded {
    /// Compiles a module of StableHLO, text or bytecode, for a device. A plugin of another age may not know the flags that we set unasked; it does without.
    pub fn compile(client: &'static Client, device: usize, code: &[u8], flags: &Named) -> Result<Loaded> {
        let ours = |name: &str| SAFER.iter().any(|(flag, _)| *flag == name);
        match Loaded::compile_with(client, device, code, flags) {
            Err(e) if flags.keys().any(|name| ours(name) && e.message().contains(name.as_str())) => {
                let rest: Named =
                    flags.iter().filter(|(name, _)| !ours(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
                Loaded::compile_with(client, device, code, &rest)
            }
            done => done,
        }
    }

    fn compile_with(client: &'static Client, device: usize, code: &[u8], flags: &Named) -> Result<Loaded> {
        let started = Instant::now();
        let options = compile_options(Some(client.device(device)?.id()), flags);
        let code = Code::new(code);
        let program = code.program();
        let mut a = args!(PJRT_Client_Compile_Args {
            client: client.raw(),
            program: &raw const program,
            compile_options: options.as_ptr().cast(),
            compile_options_size: options.len(),
        });
        // SAFETY: client, program and options live during the call, and the lengths are theirs.
        unsafe { call!(client.api(), PJRT_Client_Compile, &raw mut a) }?;
        // SAFETY: the call gave the code to us.
        unsafe { Loaded::new(client, device, a.executable, started) }
    }

    /// Reads what [`write`](Loaded::write) wrote. Whoever wrote it is trusted: it is code.
    pub fn read(client: &'static Client, device: usize, bytes: &[u8]) -> Result<Loaded> {
        let started = Instant::now();
        let mut a = args!(PJRT_Executable_DeserializeAndLoad_Args {
            client: client.raw(),
            serialized_executable: bytes.as_ptr().cast(),
            serialized_executable_size: bytes.len(),
        });
        // SAFETY: client and bytes live during the call.
        unsafe { call!(client.api(), PJRT_Executable_DeserializeAndLoad, &raw mut a) }?;
        // SAFETY: the call gave the code to us.
        unsafe { Loaded::new(client, device, a.loaded_executable, started) }
    }

    /// # Safety
    ///
    /// A call of this client's plugin gave it, and nobody else destroys it.
    unsafe fn new(
        client: &'static Client,
        device: usize,
        raw: *mut PJRT_LoadedExecutable,
        started: Instant,
    ) -> Result<Loaded> {
        let Some(raw) = NonNull::new(raw) else { fail!(Device, "{} gave no code and no error", client.api().name) };
        // From here on it is destroyed with this value, also by an error below.
        let mut loaded =
            Loaded { client, device, raw, outputs: Vec::new(), memory: CodeMemory::default(), time: Duration::ZERO };
        let about = loaded.executable()?;
        loaded.outputs = about.outputs()?;
        loaded.memory = about.memory();
        loaded.time = started.elapsed();
        Ok(loaded)
    }

    fn executable(&self) -> Result<Executable> {
        let mut a = args!(PJRT_LoadedExecutable_GetExecutable_Args { loaded_executable: self.raw.as_ptr() });
        // SAFETY: the code lives; what the call gives is ours to destroy.
        unsafe {
            call!(self.client.api(), PJRT_LoadedExecutable_GetExecutable, &raw mut a)?;
            Executable::new(self.client.plugin(), a.executable)
        }
    }

    /// Itself as bytes.
    pub fn write(&self) -> Result<Vec<u8>> {
        self.executable()?.write()
    }

    /// The same code with the types that a program has for its outputs: XLA has keys as numbers.
    pub(crate) fn typed(mut self, outputs: Vec<Type>) -> Result<Loaded> {
        let same =
            |(a, b): (&Type, &Type)| a.shape() == b.shape() && element_type(a.dtype()) == element_type(b.dtype());
        if outputs.len() != self.outputs.len() || !outputs.iter().zip(&self.outputs).all(same) {
            fail!(Device, "code gives {:?} where the program gives {outputs:?}", self.outputs);
        }
        self.outputs = outputs;
        Ok(self)
    }

    /// Runs it. `keep` says which inputs must still be there afterwards, of those that a result may be written over. It is not waited for: results that are
    /// not there yet are read by who waits for them.
    pub fn run(&self, inputs: &[&Buffer], keep: &[i64]) -> Result<Outputs> {
        let raw: SmallVec<[*mut PJRT_Buffer; 16]> = inputs.iter().map(|b| b.raw()).collect();
        self.run_raw(&raw, keep)
    }

    /// The same with pointers to buffers that live.
    pub(crate) fn run_raw(&self, inputs: &[*mut PJRT_Buffer], keep: &[i64]) -> Result<Outputs> {
        Ok(self.execute(inputs, keep, std::ptr::null_mut(), false)?.0)
    }

    /// The same with a context for calls of the host, and the event that it is done.
    pub(crate) fn start(
        &self,
        inputs: &[*mut PJRT_Buffer],
        keep: &[i64],
        context: *mut PJRT_ExecuteContext,
    ) -> Result<(Outputs, Option<Event>)> {
        self.execute(inputs, keep, context, true)
    }

    fn execute(
        &self,
        inputs: &[*mut PJRT_Buffer],
        keep: &[i64],
        context: *mut PJRT_ExecuteContext,
        told: bool,
    ) -> Result<(Outputs, Option<Event>)> {
        let api = self.client.api();
        let mut outputs: SmallVec<[*mut PJRT_Buffer; 8]> =
            SmallVec::from_elem(std::ptr::null_mut(), self.outputs.len());
        let mut options = args!(PJRT_ExecuteOptions {
            non_donatable_input_indices: keep.as_ptr(),
            num_non_donatable_input_indices: keep.len(),
            context: context,
        });
        let mut done = std::ptr::null_mut();
        let (arguments, results) = (inputs.as_ptr(), outputs.as_mut_ptr());
        let mut a = args!(PJRT_LoadedExecutable_Execute_Args {
            executable: self.raw.as_ptr(),
            options: &raw mut options,
            argument_lists: &raw const arguments,
            num_devices: 1,
            num_args: inputs.len(),
            output_lists: &raw const results,
            device_complete_events: if told { &raw mut done } else { std::ptr::null_mut() },
        });
        // SAFETY: the code lives; there is one list of inputs and one of outputs for the one device, as long as it is said, and room for every output. The
        // plugin checks how many inputs it gets, and their types.
        unsafe { call!(api, PJRT_LoadedExecutable_Execute, &raw mut a) }?;
        // SAFETY: the call gave the event to us, where one was asked for.
        let done = unsafe { Event::new(api, done) };
        let outputs = outputs.iter().zip(&self.outputs).map(|(raw, ty)| {
            let raw = NonNull::new(*raw).ok_or_else(|| error!(Device, "{} gave no buffer for an output", api.name))?;
            // SAFETY: the call gave it to us, on this device and of the type that the code has for it.
            Ok(unsafe { Buffer::new(self.client, self.device, raw, ty.clone()) })
        });
        Ok((outputs.collect::<Result<Outputs>>()?, done))
    }

    /// The types of its outputs.
    pub fn outputs(&self) -> &[Type] {
        &self.outputs
    }

    /// What it takes, in bytes.
    pub fn memory(&self) -> CodeMemory {
        self.memory
    }

    /// How long it took to be made, or to be read.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The client.
    pub fn client(&self) -> &'static Client {
        self.client
    }
}

/// What a run gives.
pub type Outputs = SmallVec<[Buffer; 4]>;

impl Drop for Loaded {
    fn drop(&mut self) {
        let mut a = args!(PJRT_LoadedExecutable_Destroy_Args { executable: self.raw.as_ptr() });
        // SAFETY: the code is ours, and this is its last use; the plugin keeps what runs of it still need.
        drop(unsafe { call!(self.client.api(), PJRT_LoadedExecutable_Destroy, &raw mut a) });
    }
}
