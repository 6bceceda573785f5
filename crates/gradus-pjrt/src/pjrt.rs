//! What users choose: a plugin, its options, a device, and how programs are compiled for it.

use std::fmt;

use gradus_core::Array;
use gradus_core::array::Concrete;
use gradus_stablehlo::export::{Accuracy, Export, Precision, Target};

use crate::buffer::Buffer;
use crate::client::{Client, Device};
use crate::error::Result;
use crate::loaded::Loaded;
use crate::options::{Named, SAFER, Value};
use crate::plugin::Plugin;
use crate::remote::Place;

/// How a GPU plugin takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// The plugin's own choice.
    Default,
    /// Best fit with coalescing.
    Bfc,
    /// CUDA's asynchronous allocator.
    CudaAsync,
    /// Each array by the driver, and back at once.
    Platform,
}

/// The backend that runs programs on a device of a PJRT plugin.
///
/// ```no_run
/// # fn main() -> gradus_core::Result<()> {
/// let gpu = gradus_pjrt::pjrt("cuda")?.device(1).memory_fraction(0.5);
/// for device in gpu.devices()? {
///     println!("{device}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pjrt {
    plugin: &'static Plugin,
    platform: &'static str,
    options: Named,
    flags: Named,
    device: usize,
    precision: Precision,
    accuracy: Accuracy,
}

/// The plugin of a platform (`cpu`, `cuda`, `tpu`) or at a path, found as [`VARIABLE`](crate::VARIABLE) says, at the path, or among the packages of Python. It
/// is loaded; its devices are asked for at the first use, after all options are chosen.
pub fn pjrt(name: &str) -> Result<Pjrt> {
    let plugin = Plugin::find(name)?;
    let file = plugin.path().file_name().map(|f| f.to_string_lossy().to_lowercase()).unwrap_or_default();
    let known = ["cpu", "cuda", "tpu", "rocm", "mps"].into_iter().find(|k| name == *k || file.contains(k));
    let platform = known.unwrap_or("other");
    let (mut options, mut flags) = (Named::new(), Named::new());
    match platform {
        "cpu" => {
            // Left alone it makes four of one processor.
            options.insert("cpu_device_count".into(), Value::Int(1));
            flags.extend(SAFER.map(|(name, value)| (name.into(), Value::Bool(value))));
        }
        // Left alone it takes three quarters of the memory at once, from everybody else on the machine.
        "cuda" | "rocm" => drop(options.insert("preallocate".into(), Value::Bool(false))),
        _ => {}
    }
    Ok(Pjrt {
        plugin,
        platform,
        options,
        flags,
        device: 0,
        precision: Precision::default(),
        accuracy: Accuracy::default(),
    })
}

impl fmt::Debug for Pjrt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pjrt { plugin, platform, options, flags, device, precision, accuracy } = self;
        let print = plugin.fingerprint();
        write!(f, "Pjrt({platform}:{device} {options:?} {flags:?} {precision:?} {accuracy:?} {print})")
    }
}

impl Pjrt {
    /// The device that programs run on, counted from 0 among those of this process. One that is not there is an error of the first use.
    #[must_use]
    pub fn device(self, device: usize) -> Pjrt {
        Pjrt { device, ..self }
    }

    /// How exactly products of matrices and convolutions are computed where the device has a choice; by default as exactly as it can.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Pjrt {
        Pjrt { precision, ..self }
    }

    /// Whose elementary functions are used: XLA's by default.
    #[must_use]
    pub fn accuracy(self, accuracy: Accuracy) -> Pjrt {
        Pjrt { accuracy, ..self }
    }

    /// How many devices the CPU plugin makes of the processor; 1 by default.
    #[must_use]
    pub fn device_count(self, count: usize) -> Pjrt {
        self.option("cpu_device_count", i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Whether the CPU plugin runs programs while the caller goes on; its own choice by default.
    #[must_use]
    pub fn asynchronous(self, asynchronous: bool) -> Pjrt {
        self.option("asynchronous", asynchronous)
    }

    /// The share of a GPU's memory that may be taken.
    #[must_use]
    pub fn memory_fraction(self, fraction: f32) -> Pjrt {
        self.option("memory_fraction", fraction)
    }

    /// Whether a GPU's memory is taken at once; by default it is taken as it is needed.
    #[must_use]
    pub fn preallocate(self, preallocate: bool) -> Pjrt {
        self.option("preallocate", preallocate)
    }

    /// How a GPU's memory is taken.
    #[must_use]
    pub fn allocator(self, allocator: Allocator) -> Pjrt {
        let name = match allocator {
            Allocator::Default => "default",
            Allocator::Bfc => "bfc",
            Allocator::CudaAsync => "cuda_async",
            Allocator::Platform => "platform",
        };
        self.option("allocator", name)
    }

    /// Which GPUs of the machine are used, by the driver's numbers.
    #[must_use]
    pub fn visible_devices(self, devices: &[usize]) -> Pjrt {
        let devices: Vec<i64> = devices.iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)).collect();
        self.option("visible_devices", devices)
    }

    /// An option of the plugin by its own name, for what has no method here. The plugin decides what it does with one that it does not know.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl Into<Value>) -> Pjrt {
        self.options.insert(name.into(), value.into());
        self
    }

    /// An option of XLA's compiler by its own name, as in `XLA_FLAGS`: `.flag("xla_gpu_autotune_level", 0)`.
    #[must_use]
    pub fn flag(mut self, name: &str, value: impl Into<Value>) -> Pjrt {
        self.flags.insert(name.into(), value.into());
        self
    }

    /// The plugin.
    pub fn plugin(&self) -> &'static Plugin {
        self.plugin
    }

    /// The client with these options: made at the first call, shared by all who want the same.
    pub fn client(&self) -> Result<&'static Client> {
        Client::of(self.plugin, &self.options)
    }

    /// The devices there are.
    pub fn devices(&self) -> Result<&'static [Device]> {
        Ok(self.client()?.devices())
    }

    /// `cpu`, `cuda`, `tpu`, as far as the name or the file says.
    pub(crate) fn platform(&self) -> &'static str {
        self.platform
    }

    /// The number of the device.
    pub(crate) fn index(&self) -> usize {
        self.device
    }

    /// How programs are written for it.
    pub(crate) fn export(&self) -> Export {
        let target = Target::Plugin(self.platform.to_string());
        Export { precision: self.precision, accuracy: self.accuracy, target, ..Export::default() }
    }

    /// The device as a place for arrays: `x.to(&gpu.place()?)?`.
    pub fn place(&self) -> Result<Place> {
        Place::new(self.client()?, self.device)
    }

    pub(crate) fn flags(&self) -> &Named {
        &self.flags
    }

    /// A module of StableHLO, as text or as bytecode, compiled for the device.
    pub fn load(&self, module: &[u8]) -> Result<Loaded> {
        Loaded::compile(self.client()?, self.device, module, &self.flags)
    }

    /// An array of the host on the device.
    pub fn upload(&self, array: &Concrete) -> Result<Buffer> {
        Buffer::upload(self.client()?, self.device, array)
    }

    /// Runs a module on arrays: for tools that have text and no program.
    pub fn run(&self, module: &Loaded, inputs: &[Array]) -> Result<Vec<Array>> {
        let there = inputs.iter().map(|a| self.upload(a.on_host()?)).collect::<Result<Vec<_>>>()?;
        let outputs = module.run(&there.iter().collect::<Vec<_>>(), &[])?;
        Ok(outputs.into_iter().map(|b| Array::on_device(std::sync::Arc::new(b))).collect())
    }
}
