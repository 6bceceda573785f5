//! Kernels as machine code against the evaluator, on both instruction sets where the machine has them.

mod encodings;
mod records;
mod written;

use gradus_core::testing::seeds;
use memmap2::{Mmap, MmapMut};

use super::{Isa, assemble, detect, machine};
use crate::abi::{Context, KernelFn};
use crate::ir::random::{Config, alone, module};
use crate::ir::{Memory, Module, Ty};
use crate::vector::vectorize;

/// Machine code that can be called.
pub(super) struct Executable(Mmap);

impl Executable {
    pub(super) fn new(code: &[u8]) -> Executable {
        let mut map = MmapMut::map_anon(code.len()).unwrap();
        map.copy_from_slice(code);
        Executable(map.make_exec().unwrap())
    }

    /// # Safety
    /// The bytes are those of a kernel.
    pub(super) unsafe fn function(&self) -> KernelFn {
        // SAFETY: the caller's promise.
        unsafe { std::mem::transmute(self.0.as_ptr()) }
    }
}

/// The instruction sets of this machine.
pub(super) fn sets() -> Vec<Isa> {
    match detect() {
        Some(Isa::Avx512) => vec![Isa::Avx512, Isa::Avx2],
        Some(Isa::Avx2) => vec![Isa::Avx2],
        None => vec![],
    }
}

/// Bytes that no one may touch surround each buffer.
const MARK: u8 = 0xA5;
const PAGE: usize = 1 << 14;

/// Memory of a buffer that begins or ends at a page that cannot be read.
struct Room {
    map: MmapMut,
    start: usize,
}

impl Room {
    fn new(bytes: &[u8], at_end: bool) -> Room {
        let inside = bytes.len().next_multiple_of(PAGE);
        let mut map = MmapMut::map_anon(inside + 2 * PAGE).unwrap();
        map[PAGE..PAGE + inside].fill(MARK);
        let start = PAGE + if at_end { inside - bytes.len() } else { 0 };
        map[start..start + bytes.len()].copy_from_slice(bytes);
        #[cfg(target_os = "linux")]
        for page in [0, PAGE + inside] {
            unsafe extern "C" {
                fn mprotect(at: *mut std::ffi::c_void, len: usize, protection: i32) -> i32;
            }
            // SAFETY: the page is a part of the map, and nothing but a mistake in machine code uses it.
            unsafe { mprotect(map[page..].as_mut_ptr().cast(), PAGE, 0) };
        }
        Room { map, start }
    }
}

/// Runs a kernel over a memory: its inputs, then its outputs as bits.
pub(super) fn run(code: &[u8], memory: &mut Memory, env: &mut [u64], pieces: &[(i64, i64)]) -> Result<(), String> {
    let executable = Executable::new(code);
    let mut rooms: Vec<Room> = memory.buffers.iter().enumerate().map(|(i, b)| Room::new(b, i % 2 == 0)).collect();
    let mut table: Vec<*mut u8> = rooms.iter_mut().map(|r| r.map[r.start..].as_mut_ptr()).collect();
    unsafe extern "sysv64" fn call(_: *const Context, _: u64, _: *const *mut u8) -> u64 {
        1
    }
    unsafe extern "sysv64" fn parallel(_: *const Context, _: KernelFn, _: u64, _: *mut u64, _: i64) {}
    let context = Context {
        buffers: table.as_mut_ptr(),
        sizes: memory.sizes.as_ptr(),
        call,
        parallel,
        special: crate::runtime::special::FUNCTIONS,
        run: std::ptr::null(),
    };
    for (lo, hi) in pieces {
        // SAFETY: the code is that of a kernel over these buffers; `env` has room for its values.
        unsafe { executable.function()(&context, env.as_mut_ptr(), *lo, *hi) };
    }
    for (i, (b, room)) in memory.buffers.iter_mut().zip(&rooms).enumerate() {
        let inside = PAGE..PAGE + b.len().next_multiple_of(PAGE);
        let own = room.start..room.start + b.len();
        if inside.into_iter().any(|at| !own.contains(&at) && room.map[at] != MARK) {
            return Err(format!("something is written beside buffer {i}"));
        }
        b.copy_from_slice(&room.map[own]);
    }
    Ok(())
}

/// Every kernel that the main body runs by itself, against the evaluator. How many there were, and how many of them had
/// code.
pub(super) fn check(m: &Module, memory: &Memory, isa: Isa) -> Result<(usize, usize), String> {
    let all = alone(m, memory).map_err(|e| e.to_string())?;
    let mut made = 0;
    for k in &all {
        let Some(code) = assemble(m, k.kernel, isa) else { continue };
        made += 1;
        let mut env = k.inputs.clone();
        env.resize(k.inputs.len() + k.kernel.outputs.len(), 0x5555_5555_5555_5555);
        let mut got = k.before.clone();
        let says = |e: String| {
            let vectors = vectorize(m, k.kernel, &machine(isa));
            format!("{isa:?} {}: {e}\n{}{vectors}", k.kernel.name, k.text(m))
        };
        run(&code, &mut got, &mut env, &k.shares).map_err(says)?;
        if let Some(e) = k.difference(m, &got, &env[k.inputs.len()..]) {
            return Err(says(e));
        }
    }
    Ok((all.len(), made))
}

fn random(config: &Config, seeds: std::ops::Range<u64>) {
    for isa in sets() {
        let (mut all, mut made) = (0, 0);
        for seed in seeds.clone() {
            let (m, memory) = module(seed, config);
            match check(&m, &memory, isa) {
                Ok((a, b)) => {
                    all += a;
                    made += b;
                }
                Err(e) => panic!("seed {seed}: {e}"),
            }
        }
        assert_eq!(made, all, "{isa:?}: not all kernels have code");
    }
}

#[test]
fn random_floats() {
    let config = Config { types: vec![Ty::F32, Ty::F64, Ty::Bool], odd: false, ..Config::default() };
    random(&config, seeds(100));
}

#[test]
fn random_all() {
    random(&Config::default(), seeds(100));
}

#[test]
fn random_long() {
    let types = vec![Ty::F32, Ty::F64, Ty::Bool, Ty::I32];
    random(&Config { types, statements: 25, ..Config::default() }, seeds(6));
}
