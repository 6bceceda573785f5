//! Whole modules through every way of the embedded tier: random ones against the evaluator, library calls, and the time it takes to make long main bodies.

use std::time::Instant;

use gradus_core::testing::seeds;

use super::embedded::{Compiled, compile, load};
use super::harness;
use super::x86::{self, Isa};
use crate::ir::random::{self, Config};
use crate::ir::{
    Buffer, BufferInfo, Call, Expr, Index, Memory, Module, Op, PIECE, Role, Stmt, Ty, Value, cut, evaluate, verify,
};

/// What makes code here: our own assembler for each set of instructions, and Cranelift.
fn ways() -> Vec<Option<Isa>> {
    match x86::detect() {
        Some(Isa::Avx512) => vec![Some(Isa::Avx512), Some(Isa::Avx2), None],
        Some(Isa::Avx2) => vec![Some(Isa::Avx2), None],
        None => vec![None],
    }
}

/// Runs what was made of a module over its memory, which has to be that of the module.
fn run(compiled: &Compiled, memory: &mut Memory) -> Result<u64, String> {
    // SAFETY: the tests make memory for the module, and the evaluator runs it without leaving its bounds.
    unsafe { harness::run(compiled.main(), memory) }
}

fn check(seed: u64, config: &Config, piece: usize) {
    let (module, mut memory) = random::module(seed, config);
    let mut expected = memory.clone();
    verify(&module).unwrap();
    evaluate(&module, &mut expected).unwrap();
    let module = random::cut(module, &mut memory, piece);
    verify(&module).unwrap();
    for isa in ways() {
        let says = |e: String| format!("seed {seed}, {isa:?}: {e}\n{module}");
        let compiled = compile(&module, isa, false, true).unwrap_or_else(|e| panic!("{}", says(e.to_string())));
        let loaded = load(compiled.image().expect("code that can be kept"), isa).unwrap();
        // What comes back from an image does what was made.
        for code in [compiled, loaded] {
            let mut got = memory.clone();
            let status = run(&code, &mut got).unwrap_or_else(|e| panic!("{}", says(e)));
            assert_eq!(status, 0);
            if let Some(difference) = random::difference(&module, &expected, &got) {
                panic!("{}", says(difference));
            }
        }
    }
}

#[test]
fn modules_do_what_the_evaluator_does() {
    for seed in seeds(60) {
        check(seed, &Config::default(), usize::MAX);
    }
}

#[test]
fn long_modules_do_what_the_evaluator_does() {
    for seed in seeds(20) {
        check(seed, &Config { statements: 40, ..Config::default() }, usize::MAX);
    }
}

#[test]
fn pieces_of_a_main_body_do_the_same() {
    for seed in seeds(60).step_by(2) {
        let config = Config { statements: 25, ..Config::default() };
        check(seed, &config, 4 + seed as usize % 30);
    }
}

/// A straight line of scalar operations.
fn straight(n: usize) -> (Module, Memory) {
    let mut m = Module { name: "straight".into(), ..Module::default() };
    m.buffers.push(BufferInfo { ty: Ty::F64, role: Role::Input(0) });
    let mut rng = random::Rng(7);
    let mut live: Vec<Value> = Vec::new();
    for i in 0..16 {
        let v = m.value(Ty::F64);
        m.main.push(Stmt::Let(v, Expr::Load(Buffer(0), Index::at(i))));
        live.push(v);
    }
    for i in 0..n {
        // Mostly what was made lately, sometimes something from long ago.
        let mut pick = |back: usize| live[live.len() - 1 - rng.below(back.min(live.len()))];
        let (a, b) = (pick(16), pick(if i % 10 == 0 { 2000 } else { 16 }));
        let op = [Op::Add, Op::Sub, Op::Mul, Op::Max][rng.below(4)];
        let v = m.value(Ty::F64);
        m.main.push(Stmt::Let(v, Expr::Op(op, [a, b].into_iter().collect())));
        live.push(v);
    }
    for i in 0..16 {
        let value = live[live.len() - 1 - i];
        m.main.push(Stmt::Store { buffer: Buffer(0), at: Index::at(i as i64), value });
    }
    let bytes = (0..16).flat_map(|i| (1.0 / f64::from(i + 1)).to_le_bytes()).collect();
    (m, Memory { buffers: vec![bytes], sizes: vec![] })
}

#[test]
fn a_long_straight_line_is_made_in_linear_time() {
    for isa in ways() {
        let mut times = Vec::new();
        for n in [2_000, 20_000] {
            let (module, mut memory) = straight(n);
            let mut expected = memory.clone();
            evaluate(&module, &mut expected).unwrap();
            let begin = Instant::now();
            let module = random::cut(module, &mut memory, PIECE);
            let compiled = compile(&module, isa, false, false).unwrap();
            times.push(begin.elapsed().as_secs_f64());
            run(&compiled, &mut memory).unwrap();
            assert_eq!(random::difference(&module, &expected, &memory), None);
        }
        // Ten times as much, with room for a busy machine.
        assert!(times[1] < times[0] * 40.0, "{isa:?} {times:?}");
    }
}

#[test]
#[ignore = "prints times; run it in release mode"]
fn times_of_straight_lines() {
    for (isa, piece) in ways().into_iter().flat_map(|isa| [500, 1000, 4000, usize::MAX].map(|piece| (isa, piece))) {
        for n in [100, 1000, 10_000] {
            let (module, mut memory) = straight(n);
            let best = (0..3).map(|_| {
                let module = module.clone();
                let begin = Instant::now();
                compile(&cut(module, piece).0, isa, false, false).unwrap();
                begin.elapsed().as_secs_f64() * 1e3
            });
            let best = best.fold(f64::INFINITY, f64::min);
            let compiled = compile(&random::cut(module, &mut memory, piece), isa, false, false).unwrap();
            let begin = Instant::now();
            run(&compiled, &mut memory).unwrap();
            let run = begin.elapsed().as_secs_f64() * 1e6;
            println!(
                "{isa:?}, pieces of {piece}: {n} operations: {best:.2} ms, {} bytes, run {run:.0} us",
                compiled.bytes()
            );
        }
    }
}

#[test]
fn library_calls_pass_addresses_and_may_fail() {
    let mut m = Module { name: "calls".into(), ..Module::default() };
    for ty in [Ty::F32, Ty::I64] {
        m.buffers.push(BufferInfo { ty, role: Role::Scratch });
    }
    m.calls = vec!["first".into(), "second".into()];
    let i = m.value(Ty::I64);
    let at = Index::at(1).plus(i, 2);
    m.main = vec![
        Stmt::Let(i, Expr::Const(3)),
        Stmt::Call(Box::new(Call {
            entry: 0,
            buffers: vec![(Buffer(0), at), (Buffer(1), Index::at(0))],
            regions: vec![],
        })),
        Stmt::Store { buffer: Buffer(1), at: Index::at(0), value: i },
        Stmt::Call(Box::new(Call { entry: 1, buffers: vec![], regions: vec![] })),
        Stmt::Store { buffer: Buffer(1), at: Index::at(1), value: i },
    ];
    verify(&m).unwrap();
    for (piece, isa) in [1000, 3].into_iter().flat_map(|piece| ways().into_iter().map(move |isa| (piece, isa))) {
        let mut memory = Memory { buffers: vec![vec![0; 64], vec![0; 16]], sizes: vec![] };
        let compiled = compile(&random::cut(m.clone(), &mut memory, piece), isa, false, false).unwrap();
        let library = |entry: u64, buffers: *const *mut u8| {
            // SAFETY: the first call passes two arrays.
            if entry == 0 {
                unsafe {
                    *(*buffers).cast::<f32>() = 1.5;
                    *(*buffers.add(1)).cast::<u64>().add(1) = 77;
                }
            }
            entry * 5
        };
        // SAFETY: the module stays in its buffers.
        assert_eq!(unsafe { harness::run_with(compiled.main(), &mut memory, &library) }, Ok(5));
        assert_eq!(memory.buffers[0][28..32], 1.5f32.to_le_bytes());
        assert_eq!(memory.buffers[1], [3u64.to_le_bytes(), 77u64.to_le_bytes()].concat());
    }
}

#[test]
fn machine_code_may_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Compiled>();
}
