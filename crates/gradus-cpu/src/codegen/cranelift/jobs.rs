//! Functions that are written down and wait to become machine code: on several threads if there is much to do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_module::{FuncId, ModuleReloc};

use super::emit::failed;
use crate::error::Result;

/// A function before it is compiled.
pub(super) struct Job {
    pub id: FuncId,
    pub name: String,
    pub context: Context,
    /// Whether it is straight code that runs once: then it is made quickly rather than well.
    pub quick: bool,
}

/// A function in machine code.
pub(super) struct Made {
    pub id: FuncId,
    pub bytes: Vec<u8>,
    pub alignment: u64,
    pub relocations: Vec<ModuleReloc>,
    pub text: String,
}

/// Below this many instructions a thread costs more than it saves.
const WORTH_A_THREAD: usize = 2000;

/// Compiles all of them, for the processors of careful and quick code. The results are in the order of the jobs.
pub(super) fn compile(jobs: Vec<Job>, isas: [&dyn TargetIsa; 2], text: bool) -> Result<Vec<Made>> {
    let work: usize = jobs.iter().map(|j| j.context.func.dfg.num_insts()).sum();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(jobs.len()).min(work / WORTH_A_THREAD).min(16);
    if threads <= 1 {
        return jobs.into_iter().map(|j| make(j, isas, text)).collect();
    }
    // Not the pool that runs kernels: its threads may be inside a kernel, and one that waits there takes up other work.
    let next = AtomicUsize::new(0);
    let jobs: Vec<Mutex<(Option<Job>, Option<Result<Made>>)>> =
        jobs.into_iter().map(|j| Mutex::new((Some(j), None))).collect();
    let work = || {
        while let Some(slot) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(job) = slot.0.take() {
                slot.1 = Some(make(job, isas, text));
            }
        }
    };
    std::thread::scope(|s| {
        (1..threads).for_each(|_| {
            s.spawn(work);
        });
        work();
    });
    jobs.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner).1).collect()
}

fn make(mut job: Job, isas: [&dyn TargetIsa; 2], text: bool) -> Result<Made> {
    job.context.set_disasm(text);
    let isa = isas[usize::from(job.quick)];
    if let Err(e) = job.context.compile(isa, &mut ControlPlane::default()) {
        // The short form names no cause.
        return Err(failed(&job.name, format_args!("{:?}", e.inner)));
    }
    // invariant: it was compiled just now.
    let Some(code) = job.context.compiled_code() else { return Err(failed(&job.name, "nothing was made")) };
    let relocs = code.buffer.relocs().iter();
    Ok(Made {
        id: job.id,
        bytes: code.code_buffer().to_vec(),
        alignment: u64::from(code.buffer.alignment),
        relocations: relocs.map(|r| ModuleReloc::from_mach_reloc(r, &job.context.func, job.id)).collect(),
        text: match text {
            true => {
                let vcode = code.vcode.as_deref().unwrap_or_default();
                format!("; {}\n{}\n{vcode}\n", job.name, job.context.func.display())
            }
            false => String::new(),
        },
    })
}
