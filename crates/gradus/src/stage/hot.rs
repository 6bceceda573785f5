//! Sizes that a symbolic program is called with often get a program of their own, where that was asked for.

use std::sync::{Arc, Mutex, PoisonError};

use gradus_core::executables::{Origin, Sizes, sizes_of};
use gradus_core::pipeline::{Optimized, Pipeline};
use gradus_core::{Array, Executable, Result, Type};
use rustc_hash::FxHashMap;

/// So many sizes are counted at a time.
const COUNTED: usize = 256;

/// How often each size was met, and the code of those that were met often.
#[derive(Default)]
pub(super) struct Hot {
    sizes: Mutex<FxHashMap<Sizes, Met>>,
}

#[derive(Default)]
struct Met {
    calls: u32,
    code: Option<Arc<dyn Executable>>,
}

impl Hot {
    /// The code for exactly these sizes, from the call on that is one too many; `made` is told where it came from.
    pub(super) fn code(
        &self,
        after: u32,
        (pipeline, program): (&Pipeline, &Optimized),
        inputs: &[Array],
        made: impl FnOnce(Origin),
    ) -> Result<Option<Arc<dyn Executable>>> {
        let key = sizes_of(inputs);
        {
            let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
            if sizes.len() >= COUNTED && !sizes.contains_key(&key) {
                sizes.retain(|_, met| met.code.is_some());
            }
            if sizes.len() >= COUNTED && !sizes.contains_key(&key) {
                return Ok(None);
            }
            let met = sizes.entry(key.clone()).or_default();
            met.calls = met.calls.saturating_add(1);
            if met.code.is_some() || met.calls <= after {
                return Ok(met.code.clone());
            }
        }
        // Compiled with no lock held: others go on with the program for every size.
        let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
        let (code, origin) = pipeline.make_ready(&pipeline.specialize(program, &types)?)?;
        made(origin);
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.entry(key).or_default().code = Some(code.clone());
        Ok(Some(code))
    }
}
