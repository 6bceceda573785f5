//! Where programs run and where arrays are: the host, and devices. `x.to(&device)?` moves an array, `x.device()?` says where it is.
//!
//! [`Host`] is the memory of this process. [`pjrt`] finds the plugin of a device (`cpu`, `cuda`, `tpu`, or the path of one): it is a backend, on which programs run, and a
//! place, where arrays are. Results stay there until they are read.
//!
//! ```no_run
//! use gradus::devices::{Host, pjrt};
//! use gradus::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let gpu = pjrt("cuda")?;
//! let step = jit(|w: &Array, x: &Array| w - 0.1 * x.matmul(w)).backend(gpu.clone());
//! let x = Array::ones::<f32>([1024, 1024]).to(&gpu)?; // once, not in each call
//! let mut w = Array::ones::<f32>([1024, 1]);
//! for _ in 0..100 {
//!     w = step(&w, &x); // nothing comes back
//! }
//! println!("{w}"); // now it does
//! # Ok(())
//! # }
//! ```
//!
//! `GRADUS_BACKEND` chooses who runs the functions that choose nobody, by the names that [`backend`] takes.

use std::sync::Arc;

use gradus_core::{Backend, Error, ErrorKind, Executable, Interpreter, Passed, Result};
use gradus_cpu::{Cpu, Tier};

pub use gradus_core::array::{Device, Host};
#[cfg(feature = "pjrt")]
pub use gradus_pjrt::{Accuracy, Allocator, Pjrt, Precision, pjrt};

/// The variable that chooses the backend of functions that choose none.
const VARIABLE: &str = "GRADUS_BACKEND";

/// The backend of a name, as `GRADUS_BACKEND` and the command line take it: `native`, or one of its tiers `embedded` and `llvm`; `interpreter`; and
/// `pjrt:NAME` for a device whose plugin is found.
pub fn backend(name: &str) -> Result<Arc<dyn Backend>> {
    match name {
        "native" => Ok(Arc::new(Cpu::default())),
        "interpreter" => Ok(Arc::new(Interpreter)),
        "embedded" => Ok(Arc::new(Cpu::new().tier(Tier::Embedded))),
        "llvm" => Ok(Arc::new(Cpu::new().tier(Tier::Llvm))),
        _ => match name.strip_prefix("pjrt:") {
            Some(device) => of_plugin(device),
            None => Err(Error::new(ErrorKind::Value, format!("there is no backend `{name}`"))
                .help("`native`, `embedded`, `llvm`, `interpreter` and `pjrt:NAME` are known, as in `pjrt:cpu`")),
        },
    }
}

#[cfg(feature = "pjrt")]
fn of_plugin(name: &str) -> Result<Arc<dyn Backend>> {
    pjrt(name).map(|found| Arc::new(found) as Arc<dyn Backend>)
}

#[cfg(not(feature = "pjrt"))]
fn of_plugin(name: &str) -> Result<Arc<dyn Backend>> {
    Err(Error::new(ErrorKind::Device, format!("there is no backend `pjrt:{name}` in this build"))
        .help("build `gradus` with its feature `pjrt`"))
}

/// The backend that the environment asks for; the native compiler if it asks for none.
pub(crate) fn of_environment() -> Arc<dyn Backend> {
    let name = match std::env::var(VARIABLE) {
        Ok(name) if !name.is_empty() => name,
        Err(std::env::VarError::NotUnicode(name)) => name.to_string_lossy().into_owned(),
        Ok(_) | Err(std::env::VarError::NotPresent) => "native".into(),
    };
    backend(&name).unwrap_or_else(|e| Arc::new(Missing(e.note(format!("{VARIABLE} is `{name}`")))))
}

/// What stands for a backend that is not there: every call says why. Another one in its place would be what nobody asked for.
#[derive(Debug)]
struct Missing(Error);

impl Backend for Missing {
    fn name(&self) -> &'static str {
        "missing"
    }
    fn about(&self) -> String {
        self.0.message().into()
    }
    fn device(&self) -> String {
        "none".into()
    }
    fn is_elsewhere(&self) -> bool {
        true
    }
    fn compile(&self, _: &Passed) -> Result<Arc<dyn Executable>> {
        Err(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_have_names() {
        for name in ["native", "interpreter", "embedded", "llvm"] {
            assert!(backend(name).is_ok(), "{name}");
        }
        assert_ne!(backend("embedded").unwrap().key(), backend("llvm").unwrap().key());
        for name in ["cpu", "", "pjrt", "Interpreter", "pjrt:there-is-none"] {
            let e = backend(name).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Value | ErrorKind::Device), "{e}");
        }
    }
}
