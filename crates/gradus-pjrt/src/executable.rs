//! A program on a device: its code for the sizes that were met, and how its runs take and give arrays.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use gradus_core::array::Form;
use gradus_core::error::counted;
use gradus_core::executables::{Sizes, sizes_of};
use gradus_core::phases::{Phase, report};
use gradus_core::primitives::effects::Callback;
use gradus_core::primitives::{Op, Outputs};
use gradus_core::{Array, DType, Executable, Facts, Location, Program, Type, Usage};
use gradus_stablehlo::export::{Exported, exported};
use gradus_stablehlo::module::{Attribute, Element, Type as TreeType};
use gradus_stablehlo::write::write;
use smallvec::SmallVec;

use crate::buffer::Buffer;
use crate::client::Client;
use crate::error::{Error, Result, error};
use crate::host::{HostCall, Run};
use crate::loaded::{CodeMemory, Loaded};
use crate::pjrt::Pjrt;
use crate::remote;
use crate::sys::PJRT_Buffer;

/// Codes of a symbolic program that are kept, one for each combination of sizes; those used longest ago go first.
const MOST_SIZES: usize = 32;

/// A program that is ready for one combination of sizes.
struct Ready {
    loaded: Loaded,
    /// The same with results that are written over inputs. It is made when inputs are given away for the first time: an input that may be written over and
    /// is not given is copied by the device in every call.
    donating: OnceLock<Option<Loaded>>,
    /// What the host does in it.
    calls: Arc<[HostCall]>,
    /// The types of its inputs.
    inputs: Vec<Type>,
    /// The inputs that a result may be written over, and the text that says so.
    donors: Vec<i64>,
    over: Option<String>,
    /// The program, without symbols.
    bound: Program,
    /// Bytes of its text.
    text: usize,
    from_disk: bool,
}

/// A program on a device.
pub struct Compiled {
    backend: Pjrt,
    client: &'static Client,
    program: Arc<Program>,
    /// The code, of a program without symbols.
    fixed: Option<Arc<Ready>>,
    /// The codes of a symbolic program, those used last at the end.
    met: Mutex<Vec<(Sizes, Arc<Ready>)>>,
    /// Held while code is made: whoever wants the same waits for it.
    making: Mutex<()>,
    compiles: AtomicU64,
    dropped: AtomicU64,
    /// Nanoseconds that the plugin compiled.
    time: AtomicU64,
    /// Bytes of arguments that were put on the device for a call.
    uploaded: AtomicU64,
    /// Bytes of results that were read back.
    read: Arc<AtomicU64>,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compiled({} on {:?})", self.program.name(), self.backend)
    }
}

/// What a program has on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codes {
    /// Codes that are kept: one, or one for each combination of sizes.
    pub kept: usize,
    /// Codes that were made, or read from disk.
    pub made: u64,
    /// Codes that were dropped to stay within the bound.
    pub dropped: u64,
    /// What the plugin says that the code used last takes.
    pub memory: CodeMemory,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Compiled {
    pub(crate) fn new(backend: Pjrt, program: Arc<Program>) -> Result<Compiled> {
        let client = backend.client()?;
        client.device(backend.index())?;
        let mut compiled = Compiled {
            backend,
            client,
            program,
            fixed: None,
            met: Mutex::default(),
            making: Mutex::default(),
            compiles: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            time: AtomicU64::new(0),
            uploaded: AtomicU64::new(0),
            read: Arc::default(),
        };
        if !compiled.program.is_symbolic() {
            compiled.fixed = Some(Arc::new(compiled.make(&compiled.program)?));
        }
        Ok(compiled)
    }

    /// What it has on its device.
    pub fn codes(&self) -> Codes {
        let met = locked(&self.met);
        let last = self.fixed.as_ref().or_else(|| met.last().map(|(_, r)| r));
        Codes {
            kept: met.len() + usize::from(self.fixed.is_some()),
            made: self.compiles.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            memory: last.map_or_else(CodeMemory::default, |r| r.loaded.memory()),
        }
    }

    /// The code for inputs of these sizes, made if they are met for the first time.
    fn ready(&self, inputs: &[Array]) -> Result<Arc<Ready>> {
        if let Some(fixed) = &self.fixed {
            return Ok(fixed.clone());
        }
        if inputs.len() != self.program.inputs().len() {
            return Err(self.misfit(inputs.len()));
        }
        let sizes = sizes_of(inputs);
        if let Some(found) = self.find(&sizes) {
            return Ok(found);
        }
        let _making = locked(&self.making);
        // Somebody may have made it meanwhile.
        if let Some(found) = self.find(&sizes) {
            return Ok(found);
        }
        let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
        let made = Arc::new(self.make(&self.program.bind_symbols(&types)?)?);
        let mut met = locked(&self.met);
        if met.len() >= MOST_SIZES {
            met.remove(0);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        met.push((sizes, made.clone()));
        Ok(made)
    }

    fn find(&self, sizes: &Sizes) -> Option<Arc<Ready>> {
        let mut met = locked(&self.met);
        let at = met.iter().rposition(|(s, _)| s == sizes)?;
        let found = met.remove(at);
        let ready = found.1.clone();
        met.push(found);
        Some(ready)
    }

    /// Code of a program without symbols: exported, then compiled or read from disk.
    fn make(&self, program: &Program) -> Result<Ready> {
        let started = Instant::now();
        let mut module = exported(program, &self.backend.export())?;
        let text = write(&module.module);
        report(|| Phase::described("stablehlo", text.clone(), started.elapsed()));
        let calls = host_calls(&module, program);
        if !calls.is_empty() {
            self.client.plugin().callbacks.clone()?;
        }
        let (loaded, from_disk) = self.load(program, &text)?;
        self.compiles.fetch_add(1, Ordering::Relaxed);
        report(|| Phase::described("xla", self.described(&loaded, from_disk), loaded.time()));
        let donors = mark_donors(&mut module, program);
        let over = (!donors.is_empty()).then(|| write(&module.module));
        let inputs = program.inputs().to_vec();
        Ok(Ready {
            loaded,
            donating: OnceLock::new(),
            bound: program.clone(),
            over,
            calls,
            inputs,
            donors,
            text: text.len(),
            from_disk,
        })
    }

    /// The code of a text, compiled or read from disk, and which of the two.
    fn load(&self, program: &Program, text: &str) -> Result<(Loaded, bool)> {
        let (client, device) = (self.client, self.backend.index());
        let chosen = format!("{:?} {} {}", self.backend, client.platform_version(), self.about_client());
        let depends_on = [b"pjrt", chosen.as_bytes(), text.as_bytes()];
        let found = gradus_cpu::find_kept(&depends_on, |bytes| Loaded::read(client, device, bytes).ok());
        let from_disk = found.is_some();
        let loaded = match found {
            Some(loaded) => loaded,
            None => {
                let made = Loaded::compile(client, device, text.as_bytes(), self.backend.flags()).map_err(|e| {
                    e.note(format!("while `{}` was compiled for {}", program.name(), self.about_client()))
                })?;
                gradus_cpu::keep(&depends_on, || made.write().ok());
                made
            }
        };
        let loaded = loaded.typed(program.output_types())?;
        self.time.fetch_add(u64::try_from(loaded.time().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok((loaded, from_disk))
    }

    /// The code that writes results over inputs, if there is an input that a result fits. Without it a call only takes more memory, so an error of the
    /// compiler, which took the same program before, is none of the call.
    fn donating<'a>(&self, ready: &'a Ready) -> Option<&'a Loaded> {
        let text = ready.over.as_ref()?;
        ready.donating.get_or_init(|| self.load(&ready.bound, text).ok().map(|(code, _)| code)).as_ref()
    }

    fn about_client(&self) -> String {
        let device = self.client.device(self.backend.index());
        device.map_or_else(|_| self.client.platform().to_string(), ToString::to_string)
    }

    fn described(&self, loaded: &Loaded, from_disk: bool) -> String {
        let CodeMemory { code, arguments, results, scratch } = loaded.memory();
        let how = if from_disk { "read from disk" } else { "compiled" };
        format!(
            "{how} for {} by {}\n{code} bytes of code, {arguments} of arguments, {results} of results, {scratch} of scratch memory",
            self.about_client(),
            self.client.plugin().version()
        )
    }

    #[cold]
    fn misfit(&self, have: usize) -> Error {
        let want = counted(self.program.inputs().len(), "input");
        error!(Signature, "`{}` takes {want}, not {have}", self.program.name())
    }

    /// Runs it; `given` says whether inputs that nobody else holds may be written over.
    fn start(&self, inputs: &[Array], given: bool) -> Result<Vec<Array>> {
        let ready = self.ready(inputs)?;
        if inputs.len() != ready.inputs.len() {
            return Err(self.misfit(inputs.len()));
        }
        let mut raw: SmallVec<[*mut PJRT_Buffer; 16]> = SmallVec::with_capacity(inputs.len());
        // What was put on the device for this run alone, and with which input it came.
        let mut moved: SmallVec<[(usize, Buffer); 4]> = SmallVec::new();
        for (i, (array, want)) in inputs.iter().zip(&ready.inputs).enumerate() {
            match array.form() {
                Form::Remote(r) if r.ty() == want => match remote::of(r.buffer(), self.client) {
                    Some(buffer) if buffer.device() == self.backend.index() => {
                        raw.push(buffer.raw());
                        continue;
                    }
                    Some(buffer) => moved.push((i, buffer.to_device(self.backend.index())?)),
                    None => moved.push((i, Buffer::upload(self.client, self.backend.index(), array.on_host()?)?)),
                },
                Form::Concrete(c) if c.ty() == want => {
                    moved.push((i, Buffer::upload(self.client, self.backend.index(), c)?));
                }
                _ => return Err(self.wrong_input(i, array, want)),
            }
            raw.extend(moved.last().map(|(_, b)| b.raw()));
        }
        if !moved.is_empty() {
            let bytes: usize =
                moved.iter().map(|(_, b)| if b.is_borrowed() { 0 } else { b.ty().bytes().unwrap_or(0) }).sum();
            self.uploaded.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        let free = |i: i64| match moved.iter().find(|(m, _)| *m as i64 == i) {
            Some((_, buffer)) => !buffer.is_borrowed(),
            None => given && inputs.get(i as usize).is_some_and(Array::is_unshared),
        };
        let mut keep: SmallVec<[i64; 8]> = ready.donors.iter().copied().filter(|i| !free(*i)).collect();
        let given_away = given && keep.len() < ready.donors.len();
        let code = given_away.then(|| self.donating(&ready)).flatten().unwrap_or_else(|| {
            keep.clear();
            &ready.loaded
        });
        let outputs = if ready.calls.is_empty() {
            code.run_raw(&raw, &keep)?
        } else {
            Run::of(&ready.calls).served(self.client.plugin(), |context| code.start(&raw, &keep, context))?
        };
        Ok(outputs.into_iter().map(|b| Array::on_device(Arc::new(b.counted(&self.read)))).collect())
    }

    #[cold]
    fn wrong_input(&self, i: usize, array: &Array, want: &Type) -> Error {
        if let Some(e) = array.error() {
            return e.clone();
        }
        let name = self.program.name();
        match array.ty() {
            Ok(ty) if array.has_numbers() => error!(Signature, "input {i} of `{name}` is {ty} where {want} is wanted"),
            _ => error!(NotConcrete, "input {i} of `{name}` has no numbers"),
        }
    }
}

impl Executable for Compiled {
    fn run(&self, inputs: &[Array]) -> Result<Outputs> {
        self.start(inputs, false).map(Outputs::from_vec)
    }

    fn run_owned(&self, inputs: Vec<Array>) -> Result<Outputs> {
        self.start(&inputs, true).map(Outputs::from_vec)
    }

    fn bytes(&self) -> usize {
        let one = |r: &Ready| r.text + usize::try_from(r.loaded.memory().code).unwrap_or(0);
        let met: usize = locked(&self.met).iter().map(|(_, r)| one(r)).sum();
        self.program.bytes() + self.fixed.as_ref().map_or(0, |r| one(r)) + met
    }

    fn usage(&self) -> Usage {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        Usage {
            uploaded: read(&self.uploaded),
            downloaded: read(&self.read),
            sizes: read(&self.compiles),
            compile_time: Duration::from_nanos(read(&self.time)),
        }
    }

    fn facts(&self) -> Facts {
        let Codes { kept, dropped, memory, .. } = self.codes();
        let CodeMemory { code, arguments, results, scratch } = memory;
        let mut facts: Facts = vec![(
            "memory",
            format!(
                "{code} bytes of code, {arguments} of arguments, {results} of results, {scratch} of scratch memory"
            ),
        )];
        if dropped > 0 {
            facts.push(("sizes", format!("{kept} kept, {dropped} dropped")));
        }
        facts
    }

    fn is_loaded(&self) -> bool {
        self.fixed.as_ref().is_some_and(|r| r.from_disk)
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Says in a module which input each result may be written over: the first of its type that no other result has. Gives those inputs.
fn mark_donors(module: &mut Exported, program: &Program) -> Vec<i64> {
    let Some(main) = module.module.functions.first_mut() else { return Vec::new() };
    let mut taken = vec![false; program.inputs().len()];
    for (output, ty) in program.output_types().iter().enumerate() {
        let free = program.inputs().iter().zip(&taken).position(|(t, taken)| t == ty && !taken);
        if let Some(input) = free
            && let Some(attributes) = main.arguments.get_mut(input)
        {
            taken[input] = true; // invariant: found among them
            let output = Attribute::Integer(output as i128, TreeType::Scalar(Element::I32));
            attributes.set("tf.aliasing_output", output);
        }
    }
    taken.iter().enumerate().filter(|(_, t)| **t).map(|(i, _)| i as i64).collect()
}

/// What the host does in a module, with what the text does not say: which operands are keys, which are numbers to everybody else.
fn host_calls(module: &Exported, program: &Program) -> Arc<[HostCall]> {
    let call = |op: &Op| {
        let host = op.downcast::<Callback>().map(|c| c.host().clone());
        let place = host.as_ref().map_or_else(Location::unknown, |h| h.place());
        let keys = host.map(|h| keys_of(program, h.id())).unwrap_or_default();
        HostCall { op: op.clone(), keys, place }
    };
    module.callbacks.iter().map(call).collect()
}

/// Which operands of a function of the host are keys, by the first equation that calls it.
fn keys_of(program: &Program, host: u64) -> Vec<bool> {
    for e in program.equations() {
        if e.op().downcast::<Callback>().is_some_and(|c| c.host().id() == host) {
            return program.operands(e).iter().map(|a| program.ty(*a).dtype() == DType::Key).collect();
        }
        let inside = e.op().programs().iter().map(|p| keys_of(p, host)).find(|k| !k.is_empty());
        if let Some(found) = inside {
            return found;
        }
    }
    Vec::new()
}
