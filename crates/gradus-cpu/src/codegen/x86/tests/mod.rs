//! Kernels as machine code against the evaluator, on both instruction sets where the machine has them.

mod encodings;
mod written;

use memmap2::{Mmap, MmapMut};

use super::{Isa, assemble, detect};
use crate::abi::{Context, KernelFn};
use crate::ir::random::{Config, difference, module};
use crate::ir::{Buffer, BufferInfo, Index, Memory, Module, Role, Stmt, Ty, Value, evaluate};

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

/// A module whose main body ends after some statements, with values kept in new buffers.
fn prefix(m: &Module, memory: &Memory, statements: usize, keep: &[Value]) -> (Module, Memory) {
    let (mut m, mut memory) = (m.clone(), memory.clone());
    m.main.truncate(statements);
    for v in keep {
        let ty = m.ty(*v);
        let buffer = Buffer(m.buffers.len() as u32);
        m.buffers.push(BufferInfo { ty, role: Role::Scratch });
        memory.buffers.push(vec![0; ty.size()]);
        m.main.push(Stmt::Store { buffer, at: Index::at(0), value: *v });
    }
    (m, memory)
}

fn bits(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

fn nan(ty: Ty, bits: u64) -> bool {
    match ty {
        Ty::F32 => f32::from_bits(bits as u32).is_nan(),
        Ty::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Every kernel that the main body runs by itself, against the evaluator. How many there were, and how many of them had
/// code.
pub(super) fn check(m: &Module, memory: &Memory, isa: Isa) -> Result<(usize, usize), String> {
    let (mut all, mut made) = (0, 0);
    for (i, s) in m.main.iter().enumerate() {
        let Stmt::Kernel(k) = s else { continue };
        let kernel = &m.kernels[*k as usize];
        all += 1;
        let Some(code) = assemble(m, kernel, isa) else { continue };
        made += 1;
        let n = memory.buffers.len();
        let (before, mut got) = prefix(m, memory, i, &kernel.inputs);
        evaluate(&before, &mut got).map_err(|e| e.to_string())?;
        let mut env: Vec<u64> = got.buffers.drain(n..).map(|b| bits(&b)).collect();
        env.resize(kernel.inputs.len() + kernel.outputs.len(), 0x5555_5555_5555_5555);
        let (after, mut want) = prefix(m, memory, i + 1, &kernel.outputs);
        evaluate(&after, &mut want).map_err(|e| e.to_string())?;
        let outputs: Vec<u64> = want.buffers.drain(n..).map(|b| bits(&b)).collect();
        let pieces = match kernel.body.last() {
            Some(Stmt::Loop(l)) if kernel.parallel => {
                // The count is a constant, an input or a size: its number is found by keeping it, too.
                let count = match l.count {
                    crate::ir::Int::Const(c) => c,
                    crate::ir::Int::Value(v) => {
                        let (mut m, mut memory) = prefix(m, memory, i, &[]);
                        m.main.extend(kernel.body[..kernel.body.len() - 1].iter().cloned());
                        let buffer = Buffer(m.buffers.len() as u32);
                        m.buffers.push(BufferInfo { ty: Ty::I64, role: Role::Scratch });
                        memory.buffers.push(vec![0; 8]);
                        m.main.push(Stmt::Store { buffer, at: Index::at(0), value: v });
                        evaluate(&m, &mut memory).map_err(|e| e.to_string())?;
                        memory.buffers.last().map_or(0, |b| bits(b)) as i64
                    }
                };
                vec![(count - count / 4, count), (count / 3, count - count / 4), (0, count / 3)]
            }
            _ => vec![(0, 0)],
        };
        let says = |e: String| {
            let code = crate::vector::vectorize(m, kernel, &super::machine(isa));
            format!("{isa:?} {}: {e}\n{}as vectors {code}", kernel.name, crate::ir::kernel_text(m, *k as usize))
        };
        run(&code, &mut got, &mut env, &pieces).map_err(says)?;
        if let Some(e) = difference(m, &want, &got) {
            return Err(says(e));
        }
        for ((v, want), got) in kernel.outputs.iter().zip(outputs).zip(&env[kernel.inputs.len()..]) {
            let ty = m.ty(*v);
            if want != *got && !(nan(ty, want) && nan(ty, *got)) {
                return Err(says(format!("{v}: {want:x} and {got:x}")));
            }
        }
    }
    Ok((all, made))
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

fn seeds(n: u64) -> std::ops::Range<u64> {
    let var = |name| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let from = var("GRADUS_SEED").unwrap_or(0);
    from..from + var("GRADUS_SEEDS").unwrap_or(n)
}

#[test]
fn random_floats() {
    let config = Config { types: vec![Ty::F32, Ty::F64, Ty::Bool], odd: false, ..Config::default() };
    random(&config, seeds(150));
}

#[test]
fn random_all() {
    random(&Config::default(), seeds(150));
}

#[test]
fn random_long() {
    let types = vec![Ty::F32, Ty::F64, Ty::Bool, Ty::I32];
    random(&Config { types, statements: 25, ..Config::default() }, seeds(6));
}
