//! Compiling for devices that are not here: a plugin that knows a topology by its name makes code for it without one.

use std::ffi::c_char;
use std::fmt;
use std::ptr::NonNull;

use gradus_core::{Program, Type};
use gradus_stablehlo::export::{Export, stablehlo_text};

use crate::api::{Code, call, slice_of, text_of};
use crate::error::{Result, fail};
use crate::loaded::{CodeMemory, Executable};
use crate::options::{Named, Value, compile_options, named_values};
use crate::plugin::Plugin;
use crate::sys::{PJRT_TopologyDescription, args};

/// Devices that code is made for and that need not be there.
pub struct Topology {
    plugin: &'static Plugin,
    raw: NonNull<PJRT_TopologyDescription>,
    name: String,
    devices: usize,
    kind: String,
}

// SAFETY: a topology is a description that no call changes; it may be asked from any thread, and is destroyed once.
unsafe impl Send for Topology {}
// SAFETY: as above.
unsafe impl Sync for Topology {}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topology({}: {} of {})", self.name, self.devices, self.kind)
    }
}

/// Code for a topology: to be written to a file and loaded where the devices are.
pub struct AheadOfTime {
    executable: Executable,
    outputs: Vec<Type>,
    memory: CodeMemory,
}

impl fmt::Debug for AheadOfTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AheadOfTime({:?}, {:?})", self.outputs, self.memory)
    }
}

impl Topology {
    /// A topology that the plugin knows by this name: `v5e:2x4` for TPUs.
    pub fn new(plugin: &'static Plugin, name: &str) -> Result<Topology> {
        Topology::with_options(plugin, name, &[])
    }

    /// The same with options of the plugin.
    pub fn with_options(plugin: &'static Plugin, name: &str, options: &[(&str, Value)]) -> Result<Topology> {
        let options: Named = options.iter().map(|(n, v)| (n.to_string(), v.clone())).collect();
        let values = named_values(&options);
        let api = &plugin.api;
        let mut a = args!(PJRT_TopologyDescription_Create_Args {
            topology_name: name.as_ptr().cast::<c_char>(),
            topology_name_size: name.len(),
            create_options: values.as_ptr(),
            num_options: values.len(),
        });
        // SAFETY: name and options live during the call, and the lengths are theirs.
        unsafe { call!(api, PJRT_TopologyDescription_Create, &raw mut a) }
            .map_err(|e| e.note(format!("the topology `{name}` was asked for")))?;
        let Some(raw) = NonNull::new(a.topology) else { fail!(Device, "{} gave no topology `{name}`", api.name) };
        // From here on it is destroyed with this value, also by an error below.
        let mut topology = Topology { plugin, raw, name: name.into(), devices: 0, kind: String::new() };
        let mut d = args!(PJRT_TopologyDescription_GetDeviceDescriptions_Args { topology: raw.as_ptr() });
        // SAFETY: the topology lives, and so does the list that it gives.
        let devices = unsafe {
            call!(api, PJRT_TopologyDescription_GetDeviceDescriptions, &raw mut d)?;
            slice_of(d.descriptions, d.num_descriptions)
        };
        topology.devices = devices.len();
        if let Some(first) = devices.first() {
            let mut k = args!(PJRT_DeviceDescription_Kind_Args { device_description: *first });
            // SAFETY: the description is one of the list, and the text is its own.
            topology.kind = unsafe {
                call!(api, PJRT_DeviceDescription_Kind, &raw mut k)?;
                text_of(k.device_kind, k.device_kind_size)
            };
        }
        Ok(topology)
    }

    /// How many devices it has.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// What sort they are, as their maker calls it.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Code of a program for one device of it. A function of the host cannot be part of it.
    pub fn compile(&self, program: &Program, export: &Export) -> Result<AheadOfTime> {
        self.compile_module(stablehlo_text(program, export)?.as_bytes())
    }

    /// Code of a module of StableHLO, text or bytecode.
    pub fn compile_module(&self, module: &[u8]) -> Result<AheadOfTime> {
        let options = compile_options(None, &Named::new());
        let code = Code::new(module);
        let program = code.program();
        let mut a = args!(PJRT_Compile_Args {
            topology: self.raw.as_ptr().cast_const(),
            program: &raw const program,
            compile_options: options.as_ptr().cast(),
            compile_options_size: options.len(),
        });
        // SAFETY: topology, program and options live during the call; what it gives is ours.
        let executable = unsafe {
            call!(&self.plugin.api, PJRT_Compile, &raw mut a)?;
            Executable::new(self.plugin, a.executable)?
        };
        let (outputs, memory) = (executable.outputs().unwrap_or_default(), executable.memory());
        Ok(AheadOfTime { executable, outputs, memory })
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        let mut a = args!(PJRT_TopologyDescription_Destroy_Args { topology: self.raw.as_ptr() });
        // SAFETY: the topology is ours, and this is its last use.
        drop(unsafe { call!(&self.plugin.api, PJRT_TopologyDescription_Destroy, &raw mut a) });
    }
}

impl AheadOfTime {
    /// The code as bytes that the plugin loads where the devices are.
    pub fn write(&self) -> Result<Vec<u8>> {
        self.executable.write()
    }

    /// The types of its outputs, where the plugin says.
    pub fn outputs(&self) -> &[Type] {
        &self.outputs
    }

    /// What it takes, where the plugin says.
    pub fn memory(&self) -> CodeMemory {
        self.memory
    }
}
