//! The backend: what the pipeline is told about a device, and programs handed to it.

use std::sync::Arc;

use gradus_core::array::{self, Concrete, Device as _, Remote};
use gradus_core::oracle::Freedom;
use gradus_core::{Array, Backend, Executable, Passed};

use crate::client::{Client, Traffic};
use crate::error::Result;
use crate::executable::Compiled;
use crate::pjrt::Pjrt;

impl Backend for Pjrt {
    fn name(&self) -> &'static str {
        match self.platform() {
            "cpu" => "pjrt:cpu",
            "cuda" => "pjrt:cuda",
            "tpu" => "pjrt:tpu",
            "rocm" => "pjrt:rocm",
            _ => "pjrt",
        }
    }

    fn about(&self) -> String {
        let plugin = self.plugin();
        let found = self.client().and_then(|c| Ok((c, c.device(self.index())?)));
        let device = match found {
            Ok((client, device)) => {
                let memory = device.memory().map(|m| {
                    let limit = m.limit.map(|l| format!(" of {l}")).unwrap_or_default();
                    let peak = m.peak.map(|p| format!(", at most {p}")).unwrap_or_default();
                    format!("; {}{limit} bytes of memory in use{peak}", m.in_use)
                });
                format!("{device}{}; {}", memory.unwrap_or_default(), moved(client))
            }
            Err(e) => format!("no device: {}", e.message()),
        };
        format!("{device}; {} ({})", plugin.version(), plugin.path().display())
    }

    fn device(&self) -> String {
        array::Device::name(self)
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn freedom(&self) -> Freedom {
        Freedom::Functions
    }

    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Compiled::new(self.clone(), program.program().clone())?))
    }
}

/// Arrays are moved to the device on which programs run: `x.to(&pjrt("cuda")?)?`.
impl array::Device for Pjrt {
    fn name(&self) -> String {
        self.place().map_or_else(|_| format!("{}:{}", self.platform(), self.index()), |place| place.name())
    }

    fn upload(&self, numbers: &Concrete) -> Result<Array> {
        self.place()?.upload(numbers)
    }

    fn transfer(&self, from: &Arc<dyn Remote>) -> Result<Option<Array>> {
        self.place()?.transfer(from)
    }
}

fn moved(client: &Client) -> String {
    let Traffic { up, down, shared } = client.traffic();
    let shared = if shared > 0 { format!(", {shared} shared") } else { String::new() };
    format!("{up} bytes up, {down} down{shared}")
}
