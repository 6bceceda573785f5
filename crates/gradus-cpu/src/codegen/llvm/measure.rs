//! How fast machine code is and how long it takes to make: `cargo test -p gradus-cpu measure -- --ignored --nocapture`.

use std::time::Instant;

use smallvec::smallvec;

use crate::abi::{Context, KernelFn, MainFn};
use crate::ir::{
    Buffer, BufferInfo, Carried, Expr, Fold, FoldOp, Index, Int, Kernel, Kind, Loop, Memory, Module, Op, PIECE, Role,
    Stmt, Ty, Value, cut, one, verify,
};

use super::tests::llvm;
use super::{Compiled, Effort, Options};

fn bits(ty: Ty, v: f64) -> u64 {
    if ty == Ty::F32 { u64::from((v as f32).to_bits()) } else { v.to_bits() }
}

/// Writes a body.
pub(super) struct Body<'a> {
    pub(super) m: &'a mut Module,
    pub(super) out: Vec<Stmt>,
}

impl Body<'_> {
    pub(super) fn put(&mut self, ty: Ty, e: Expr) -> Value {
        let v = self.m.value(ty);
        self.out.push(Stmt::Let(v, e));
        v
    }

    fn number(&mut self, ty: Ty, v: f64) -> Value {
        self.put(ty, Expr::Const(bits(ty, v)))
    }

    pub(super) fn op(&mut self, op: Op, args: &[Value]) -> Value {
        let types: Vec<Ty> = args.iter().map(|a| self.m.ty(*a)).collect();
        self.put(op.result(&types), Expr::Op(op, args.iter().copied().collect()))
    }
}

pub(super) fn buffers(ty: Ty, n: usize) -> Vec<BufferInfo> {
    (0..n as u32).map(|i| BufferInfo { ty, role: if i == 0 { Role::Input(0) } else { Role::Output(i - 1) } }).collect()
}

/// A kernel over one array: what `body` makes of an element goes to the other array, or into a sum.
fn map(ty: Ty, n: i64, sum: bool, body: impl Fn(&mut Body<'_>, Value) -> Value) -> (Module, Memory) {
    let mut m = Module { name: "map".into(), buffers: buffers(ty, 2), ..Module::default() };
    let var = m.value(Ty::I64);
    let mut b = Body { m: &mut m, out: Vec::new() };
    let x = b.put(ty, Expr::Load(Buffer(0), Index::at(0).plus(var, 1)));
    let y = body(&mut b, x);
    let mut body = b.out;
    let mut folds = Vec::new();
    let result = m.value(ty);
    if sum {
        folds.push(Fold { op: FoldOp::Add, value: y, result });
    } else {
        body.push(Stmt::Store { buffer: Buffer(1), at: Index::at(0).plus(var, 1), value: y });
    }
    let l = Loop { var, count: Int::Const(n), kind: Kind::Lanes, carried: Vec::new(), folds, body };
    let mut body = vec![Stmt::Loop(Box::new(l))];
    if sum {
        body.push(Stmt::Store { buffer: Buffer(1), at: Index::at(0), value: result });
    }
    let (inputs, outputs) = (Vec::new(), Vec::new());
    m.kernels.push(Kernel { name: "map".into(), inputs, outputs, parallel: false, body });
    m.main.push(Stmt::Kernel(0));
    let mut memory = Memory::default();
    for _ in 0..2 {
        let bytes = (0..n).flat_map(|i| bits(ty, 0.5 + (i % 7) as f64 * 0.05).to_le_bytes()[..ty.size()].to_vec());
        memory.buffers.push(bytes.collect());
    }
    (m, memory)
}

fn horner(b: &mut Body<'_>, x: Value, degree: usize, fused: bool) -> Value {
    let ty = b.m.ty(x);
    let mut y = b.number(ty, 0.25);
    for i in 0..degree {
        let c = b.number(ty, 1.0 / (i + 2) as f64);
        y = if fused {
            b.op(Op::Fma, &[y, x, c])
        } else {
            let y = b.op(Op::Mul, &[y, x]);
            b.op(Op::Add, &[y, c])
        };
    }
    y
}

/// Nanoseconds of one run, the best of many.
fn time(main: MainFn, memory: &Memory) -> f64 {
    let mut memory = memory.clone();
    let mut rooms: Vec<Vec<u64>> = memory.buffers.iter().map(|b| vec![0; b.len() / 8 + 16]).collect();
    let mut table: Vec<*mut u8> = Vec::new();
    for (bytes, room) in memory.buffers.iter().zip(&mut rooms) {
        let start = room.as_mut_ptr().cast::<u8>();
        let start = start.wrapping_add(start.align_offset(64));
        // SAFETY: the room is 128 bytes longer than the bytes.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        table.push(start);
    }
    memory.buffers.clear();
    let context = Context {
        buffers: table.as_mut_ptr(),
        sizes: memory.sizes.as_ptr(),
        call: no_call,
        parallel: no_parallel,
        special: crate::runtime::special::FUNCTIONS,
        run: std::ptr::null(),
    };
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed().as_millis() < 150 {
        let t = Instant::now();
        for _ in 0..10 {
            // SAFETY: the module stays in its bounds and calls nothing.
            unsafe { main(&context) };
        }
        best = best.min(t.elapsed().as_nanos() as f64 / 10.0);
    }
    best
}

/// Milliseconds this thread has computed, where the system says so: others on the machine do not count.
fn busy() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e6
}

#[cfg(target_arch = "x86_64")]
mod nothing {
    use super::{Context, KernelFn};
    pub(super) unsafe extern "sysv64" fn no_call(_: *const Context, _: u64, _: *const *mut u8) -> u64 {
        1
    }
    pub(super) unsafe extern "sysv64" fn no_parallel(_: *const Context, _: KernelFn, _: u64, _: *mut u64, _: i64) {}
}
#[cfg(not(target_arch = "x86_64"))]
mod nothing {
    use super::{Context, KernelFn};
    pub(super) unsafe extern "C" fn no_call(_: *const Context, _: u64, _: *const *mut u8) -> u64 {
        1
    }
    pub(super) unsafe extern "C" fn no_parallel(_: *const Context, _: KernelFn, _: u64, _: *mut u64, _: i64) {}
}
use nothing::{no_call, no_parallel};

fn compile(m: &Module, options: &Options) -> Compiled {
    verify(m).unwrap_or_else(|e| panic!("{e}\n{m}"));
    llvm().compile(m, options).unwrap_or_else(|e| panic!("{e}\n{m}"))
}

#[test]
#[ignore = "a measurement"]
fn measure_kernels() {
    println!("LLVM {:?} at {}", llvm().version(), llvm().path().display());
    let body = |which: &str, b: &mut Body<'_>, x: Value| match which {
        "polynomial" => horner(b, x, 7, false),
        "15 fma" => horner(b, x, 15, true),
        "division" => {
            let o = b.put(b.m.ty(x), Expr::Const(one(b.m.ty(x))));
            b.op(Op::Div, &[o, x])
        }
        "to i32 and back" => {
            let ty = b.m.ty(x);
            let i = b.op(Op::Convert(Ty::I32), &[x]);
            b.op(Op::Convert(ty), &[i])
        }
        "remainder of i32" => {
            let ty = b.m.ty(x);
            let i = b.op(Op::Convert(Ty::I32), &[x]);
            let j = b.op(Op::Bitcast(if ty == Ty::F32 { Ty::I32 } else { Ty::I64 }), &[x]);
            let j = b.op(Op::Convert(Ty::I32), &[j]);
            let i = b.op(Op::Rem, &[j, i]);
            b.op(Op::Convert(ty), &[i])
        }
        "maximum" => {
            let half = b.number(b.m.ty(x), 0.6);
            b.op(Op::Max, &[x, half])
        }
        _ => x,
    };
    for which in
        ["polynomial", "15 fma", "division", "maximum", "to i32 and back", "remainder of i32", "sum", "sum of 15 fma"]
    {
        for ty in [Ty::F32, Ty::F64] {
            for n in [1000, 1003, 100_000] {
                let inner = if which == "sum of 15 fma" { "15 fma" } else { which };
                let (m, memory) = map(ty, n, which.starts_with("sum"), |b, x| body(inner, b, x));
                let mut text = format!("{which:>14} {ty} {n:>7}:");
                for effort in [Effort::Some, Effort::Most] {
                    let c = compile(&m, &Options { effort, ..Options::default() });
                    let t = time(c.main(), &memory) / n as f64;
                    text += &format!(
                        "  {effort:?} {t:.4} ns, {:.1} ms, {} B",
                        c.times().total().as_secs_f64() * 1e3,
                        c.bytes()
                    );
                }
                println!("{text}");
            }
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn measure_compile_times() {
    let options = Options { verify: false, ..Options::default() };
    let best = |m: &Module, options: &Options, what: &str| {
        let all = (0..9).map(|_| {
            let start = busy();
            let times = compile(m, options).times();
            (busy() - start, times)
        });
        if let Some((busy, t)) = all.min_by(|a, b| a.0.total_cmp(&b.0)) {
            println!("{what}: {busy:.2} ms, {t:?}");
        }
    };
    let options = Options { passes: std::env::var("GRADUS_PASSES").ok(), ..options };
    for ty in [Ty::F32, Ty::F64] {
        for count in [1000, 1003] {
            let (m, _) = map(ty, count, false, |b, x| horner(b, x, 7, false));
            best(&m, &options, &format!("polynomial {ty} {count}"));
            let (m, _) = map(ty, count, true, |b, x| horner(b, x, 15, true));
            best(&m, &options, &format!("sum of 15 fma {ty} {count}"));
        }
    }
    for effort in [Effort::Most, Effort::Some, Effort::Least] {
        for ops in [100, 1000, 10_000, 100_000] {
            if effort == Effort::Most && ops > 10_000 {
                continue;
            }
            let (m, _) = cut(straight(ops), PIECE);
            let options = Options { effort, ..options.clone() };
            if ops < 10_000 {
                best(&m, &options, &format!("{effort:?} {ops}"));
                continue;
            }
            let start = busy();
            let c = compile(&m, &options);
            println!("{effort:?} {ops}: {:.2} ms, {:?}, {} bytes", busy() - start, c.times(), c.bytes());
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn measure_main_bodies() {
    let old = "early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),early-cse";
    let cases = [
        ("Some", Options { effort: Effort::Some, ..Options::default() }),
        ("Least", Options { effort: Effort::Least, ..Options::default() }),
        ("Most", Options { effort: Effort::Most, ..Options::default() }),
        ("old", Options { passes: Some(format!("function({old})")), ..Options::default() }),
        ("cse", Options { passes: Some("function(early-cse)".into()), ..Options::default() }),
    ];
    let bytes = |n: usize| (0..n).flat_map(|i| (0.5 + i as f64 * 0.001).to_le_bytes()).collect::<Vec<u8>>();
    let memory = Memory { buffers: vec![bytes(64), bytes(64)], sizes: Vec::new() };
    let modules =
        [("straight 1000", straight(1000)), ("straight 10000", straight(10_000)), ("small arrays", small_arrays())];
    for (what, m) in modules {
        for (name, options) in &cases {
            let start = busy();
            let c = compile(&m, options);
            println!(
                "{what} {name}: {:.0} ns, compiled in {:.1} ms, {} B",
                time(c.main(), &memory),
                busy() - start,
                c.bytes()
            );
        }
    }
}

/// Bodies of lanes of many operations, with few values alive at a time or many.
#[test]
#[ignore = "a measurement"]
fn measure_long_kernels() {
    let start = Instant::now();
    llvm();
    println!("LLVM was there after {:?}", start.elapsed());
    for (ty, alive) in [(Ty::F32, 4), (Ty::F32, 16), (Ty::F64, 4), (Ty::F64, 16), (Ty::F64, 40)] {
        for ops in [30, 100, 300, 1000, 3000] {
            let (m, memory) = map(ty, 10_000, false, |b, x| {
                let mut live = vec![x; alive];
                let mut rng = crate::ir::random::Rng(7);
                for n in 0..ops {
                    let (i, j) = (rng.below(alive), rng.below(alive));
                    let c = b.number(ty, 0.25 + n as f64 * 1e-3);
                    live[n % alive] = match n % 3 {
                        0 => b.op(Op::Fma, &[live[i], live[j], c]),
                        1 => b.op(Op::Mul, &[live[i], c]),
                        _ => b.op(Op::Add, &[live[i], live[j]]),
                    };
                }
                live[1..].iter().fold(live[0], |sum, v| b.op(Op::Add, &[sum, *v]))
            });
            let mut text = format!("{ty}, {alive:2} alive, {ops:4} operations:");
            for small in [false, true] {
                let start = busy();
                let c = compile(&m, &Options { small, ..Options::default() });
                let t = busy() - start;
                let ns = time(c.main(), &memory) / 10_000.0 / ops as f64;
                text += &format!("  {ns:.4} ns per operation, {t:.1} ms, {} B", c.bytes());
            }
            println!("{text}");
        }
    }
}

/// Runs modules with several sequences of passes.
#[test]
#[ignore = "a measurement"]
fn measure_passes() {
    let passes = ["function(early-cse)", "function(dce,early-cse,slp-vectorizer,early-cse)", "default<O3>"];
    for ty in [Ty::F32, Ty::F64] {
        for (what, nest) in [
            ("rows of 64 summed", Nest::Rows(64)),
            ("rows of 8 summed", Nest::Rows(8)),
            ("stencil of 5", Nest::Inner(5)),
            ("inner loop of 64", Nest::Inner(64)),
            ("stride 2", Nest::Stride(2)),
            ("backward", Nest::Stride(-1)),
            ("stride 64", Nest::Stride(64)),
        ] {
            let (m, memory) = nested(ty, nest);
            println!("{what} {ty}:");
            for passes in passes {
                let options = Options { passes: Some(passes.into()), ..Options::default() };
                let start = busy();
                let c = compile(&m, &options);
                let t = busy() - start;
                println!("  {:8.3} ns {t:6.1} ms {:5} B  {passes}", time(c.main(), &memory) / 4096.0, c.bytes());
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Nest {
    /// `y[i] = Σ x[i, j]` with rows of so many.
    Rows(i64),
    /// `y[i] = Σ x[i + k]` with k in a serial loop.
    Inner(i64),
    /// `y[i] = x[s·i]`.
    Stride(i64),
}

/// A kernel over 4096 elements (of the input).
fn nested(ty: Ty, nest: Nest) -> (Module, Memory) {
    const N: i64 = 4096;
    let mut m = Module { name: "nested".into(), buffers: buffers(ty, 2), ..Module::default() };
    let (i, j) = (m.value(Ty::I64), m.value(Ty::I64));
    let (x, result, zero, acc) = (m.value(ty), m.value(ty), m.value(ty), m.value(ty));
    let load = |at: Index| Stmt::Let(x, Expr::Load(Buffer(0), at));
    let store = |value: Value| Stmt::Store { buffer: Buffer(1), at: Index::at(0).plus(i, 1), value };
    let lp = |var: Value, count: i64, kind: Kind, carried: Vec<Carried>, folds: Vec<Fold>, body: Vec<Stmt>| {
        Stmt::Loop(Box::new(Loop { var, count: Int::Const(count), kind, carried, folds, body }))
    };
    let body = match nest {
        Nest::Rows(n) => {
            let fold = Fold { op: FoldOp::Add, value: x, result };
            let inner = lp(j, n, Kind::Lanes, vec![], vec![fold], vec![load(Index::at(0).plus(i, n).plus(j, 1))]);
            vec![lp(i, N / n, Kind::Serial, vec![], vec![], vec![inner, store(result)])]
        }
        Nest::Inner(n) => {
            let next = m.value(ty);
            let add = Stmt::Let(next, Expr::Op(Op::Add, smallvec![acc, x]));
            let carried = Carried { init: zero, param: acc, next, result };
            let inner =
                lp(j, n, Kind::Serial, vec![carried], vec![], vec![load(Index::at(0).plus(i, 1).plus(j, 1)), add]);
            let zero = Stmt::Let(zero, Expr::Const(0));
            vec![lp(i, N / n, Kind::Lanes, vec![], vec![], vec![zero, inner, store(result)])]
        }
        Nest::Stride(s) => {
            let at = Index::at(if s < 0 { N - 1 } else { 0 }).plus(i, s);
            vec![lp(i, N / s.abs(), Kind::Lanes, vec![], vec![], vec![load(at), store(x)])]
        }
    };
    let (inputs, outputs) = (Vec::new(), Vec::new());
    m.kernels.push(Kernel { name: "nested".into(), inputs, outputs, parallel: false, body });
    m.main.push(Stmt::Kernel(0));
    let bytes: Vec<u8> =
        (0..N).flat_map(|i| bits(ty, 0.5 + (i % 7) as f64).to_le_bytes()[..ty.size()].to_vec()).collect();
    (m, Memory { buffers: vec![bytes.clone(), bytes], sizes: Vec::new() })
}

/// A main body with arrays of 16 numbers as scalars, in a loop of steps.
fn small_arrays() -> Module {
    let ty = Ty::F64;
    let mut m = Module { name: "small".into(), buffers: buffers(ty, 2), ..Module::default() };
    let var = m.value(Ty::I64);
    let mut b = Body { m: &mut m, out: Vec::new() };
    let inits: Vec<Value> = (0..16).map(|i| b.put(ty, Expr::Load(Buffer(0), Index::at(i)))).collect();
    let before = std::mem::take(&mut b.out);
    let params: Vec<Value> = (0..16).map(|_| b.m.value(ty)).collect();
    let nexts: Vec<Value> = params.iter().map(|x| horner(&mut b, *x, 4, true)).collect();
    let body = std::mem::take(&mut b.out);
    let results: Vec<Value> = (0..16).map(|_| b.m.value(ty)).collect();
    let carried =
        (0..16).map(|i| Carried { init: inits[i], param: params[i], next: nexts[i], result: results[i] }).collect();
    m.main = before;
    let l = Loop { var, count: Int::Const(100), kind: Kind::Serial, carried, folds: Vec::new(), body };
    m.main.push(Stmt::Loop(Box::new(l)));
    for (i, v) in results.iter().enumerate() {
        m.main.push(Stmt::Store { buffer: Buffer(1), at: Index::at(i as i64), value: *v });
    }
    m
}

/// A main body without loops: it reads 64 numbers, computes, and writes 64.
fn straight(ops: usize) -> Module {
    let ty = Ty::F64;
    let mut m = Module { name: "straight".into(), buffers: buffers(ty, 2), ..Module::default() };
    let mut b = Body { m: &mut m, out: Vec::new() };
    let mut live: Vec<Value> = (0..64).map(|i| b.put(ty, Expr::Load(Buffer(0), Index::at(i)))).collect();
    let mut rng = crate::ir::random::Rng(7);
    for _ in 0..ops {
        let (i, j, k) = (rng.below(64), rng.below(64), rng.below(64));
        let op = rng.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Fma]);
        let args: smallvec::SmallVec<[Value; 3]> = match op {
            Op::Fma => smallvec![live[i], live[j], live[k]],
            _ => smallvec![live[i], live[j]],
        };
        live[k] = b.op(op, &args);
    }
    for (i, v) in live.iter().enumerate() {
        b.out.push(Stmt::Store { buffer: Buffer(1), at: Index::at(i as i64), value: *v });
    }
    m.main = b.out;
    m
}
