//! A backend that sends each program out as StableHLO and runs what comes back: it must compute the bits that the program computes.

use std::any::Any;
use std::sync::Arc;

use gradus::extend::testing::canonical;
use gradus::prelude::*;
use gradus_core::primitives::Outputs;
use gradus_core::{Backend, Executable, Passed, Program, Scalar, interpret};
use gradus_stablehlo::{Export, import, read_one, stablehlo_text};

/// Operations that go out as loops of basic ones, and windows, which come back in the order of the text: rounded otherwise, and compared with JAX like all.
const ROUNDED: [&str; 8] = ["lu", "qr", "eigh", "svd", "pinv", "solve", "slogdet", "reduce_window"];

#[derive(Debug)]
pub struct RoundTrip;

#[derive(Debug)]
struct Returned {
    program: Arc<Program>,
    back: Arc<Program>,
}

impl Backend for RoundTrip {
    fn name(&self) -> &'static str {
        "round trip"
    }
    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        let text = stablehlo_text(program, &Export::default())?;
        let back = import(&read_one("text", &text)?).map_err(|e| e.note(text.clone()))?.program;
        Ok(Arc::new(Returned { program: program.program().clone(), back: Arc::new((*back).clone()) }))
    }
}

fn bits(a: &Array) -> Result<Vec<Scalar>> {
    let a = a.on_host()?;
    (0..a.count()).map(|i| a.scalar_at(i).map(canonical)).collect()
}

impl Executable for Returned {
    fn run(&self, inputs: &[Array]) -> Result<Outputs> {
        let (want, have) = (interpret(&self.program, inputs)?, interpret(&self.back, inputs)?);
        let rounded = ROUNDED.iter().any(|name| self.program.count(name) > 0);
        for (i, (h, w)) in have.iter().zip(&want).enumerate() {
            if h.ty()? != w.ty()? || !(rounded || bits(h)? == bits(w)?) {
                return Err(Error::new(
                    ErrorKind::Mismatch,
                    format!("output {i} is {h} after its travel, and {w} before"),
                ));
            }
        }
        Ok(have.into())
    }
    fn bytes(&self) -> usize {
        self.program.bytes() + self.back.bytes()
    }
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
