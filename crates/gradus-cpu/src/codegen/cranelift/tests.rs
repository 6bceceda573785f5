//! Random modules against the evaluator, with and without vectors, for this processor and for the oldest.

use std::time::Instant;

use gradus_core::testing::seeds;

use super::*;
use crate::codegen::harness;
use crate::ir::random::{self, Config};
use crate::ir::{
    Buffer, BufferInfo, Expr, Fold, FoldOp, Index, Int, Kernel, Kind, Loop, Memory, Op, Role, Stmt, Value, evaluate,
    verify,
};

/// Runs what was made of a module over its memory, which has to be that of the module.
fn run(compiled: &Compiled, memory: &mut Memory) -> Result<u64, String> {
    // SAFETY: the tests make memory for the module, and the evaluator runs it without leaving its bounds.
    unsafe { harness::run(compiled.main(), memory) }
}

fn check(seed: u64, config: &Config, options: &Options) {
    check_in_pieces(seed, config, options, usize::MAX);
}

fn check_in_pieces(seed: u64, config: &Config, options: &Options, piece: usize) {
    let (module, mut memory) = random::module(seed, config);
    let mut expected = memory.clone();
    verify(&module).unwrap();
    evaluate(&module, &mut expected).unwrap();
    let module = random::cut(module, &mut memory, piece);
    verify(&module).unwrap();
    let options = Options { image: true, ..options.clone() };
    let compiled = compile(&module, &options).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{module}"));
    let image = compiled.image().expect("code that can be kept").to_vec();
    // What comes back from an image does what was made.
    for code in [compiled, load(&image).unwrap()] {
        let mut got = memory.clone();
        let status = run(&code, &mut got).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{module}"));
        assert_eq!(status, 0);
        if let Some(difference) = random::difference(&module, &expected, &got) {
            panic!("seed {seed}: {difference}\n{module}");
        }
    }
    for n in (0..image.len()).step_by(1 + image.len() / 20) {
        assert!(load(&image[..n]).is_err(), "{n} bytes of {}", image.len());
    }
}

/// Code without vectors.
fn plain() -> Options {
    Options { simd: Simd::Never, ..Options::default() }
}

#[test]
fn scalar_code_does_what_the_evaluator_does() {
    for seed in seeds(30) {
        check(seed, &Config::default(), &plain());
    }
}

#[test]
fn vector_code_does_what_the_evaluator_does() {
    for seed in seeds(30) {
        let simd = if seed % 4 == 0 { Simd::Worthwhile } else { Simd::Always };
        check(seed, &Config { control: false, ..Config::default() }, &Options { simd, ..Options::default() });
    }
}

#[test]
fn code_for_the_oldest_processor_does_the_same() {
    for seed in seeds(30).step_by(3) {
        check(seed, &Config::default(), &Options { native: false, ..plain() });
    }
}

#[test]
fn pieces_of_a_main_body_do_the_same() {
    for seed in seeds(30).step_by(2) {
        let config = Config { statements: 25, ..Config::default() };
        check_in_pieces(seed, &config, &plain(), 4 + seed as usize % 30);
    }
}

/// `z = x·y + 2` and the sum of x·y, over `n` elements, so many times.
fn product(n: usize, times: i64) -> (Module, Memory) {
    let mut m = Module { name: "product".into(), ..Module::default() };
    for role in [Role::Input(0), Role::Input(1), Role::Output(0), Role::Output(1)] {
        m.buffers.push(BufferInfo { ty: Ty::F32, role });
    }
    let f32s: Vec<Value> = (0..6).map(|_| m.value(Ty::F32)).collect();
    let [x, y, xy, two, z, sum] = f32s[..] else { unreachable!() };
    let i = m.value(Ty::I64);
    let at = || Index::at(0).plus(i, 1);
    let op = |op, a, b| Expr::Op(op, [a, b].into_iter().collect());
    let body = vec![
        Stmt::Let(x, Expr::Load(Buffer(0), at())),
        Stmt::Let(y, Expr::Load(Buffer(1), at())),
        Stmt::Let(xy, op(Op::Mul, x, y)),
        Stmt::Let(two, Expr::Const(2f32.to_bits().into())),
        Stmt::Let(z, op(Op::Add, xy, two)),
        Stmt::Store { buffer: Buffer(2), at: at(), value: z },
    ];
    let folds = vec![Fold { op: FoldOp::Add, value: xy, result: sum }];
    let l = Loop { var: i, count: Int::Const(n as i64), kind: Kind::Lanes, carried: vec![], folds, body };
    let body = vec![Stmt::Loop(Box::new(l))];
    m.kernels.push(Kernel { name: "k".into(), inputs: vec![], outputs: vec![sum], parallel: false, body });
    let body = vec![Stmt::Kernel(0), Stmt::Store { buffer: Buffer(3), at: Index::at(0), value: sum }];
    let (var, count) = (m.value(Ty::I64), Int::Const(times));
    let l = Loop { var, count, kind: Kind::Serial, carried: vec![], folds: vec![], body };
    m.main = vec![Stmt::Loop(Box::new(l))];
    let numbers = |k: usize| (0..n).flat_map(|i| ((i * k % 7) as f32 - 2.5).to_le_bytes()).collect::<Vec<u8>>();
    (m, Memory { buffers: vec![numbers(3), numbers(5), vec![0; 4 * n], vec![0; 4]], sizes: vec![] })
}

#[test]
fn a_loop_of_lanes_becomes_vectors_and_the_text_shows_them() {
    let (module, memory) = product(1003, 2);
    verify(&module).unwrap();
    let (mut expected, mut got) = (memory.clone(), memory);
    evaluate(&module, &mut expected).unwrap();
    let compiled = compile(&module, &Options { text: true, ..Options::default() }).unwrap();
    run(&compiled, &mut got).unwrap();
    assert_eq!(expected, got);
    assert!(compiled.assembly().contains("f32x4"), "{}", compiled.assembly());
    if std::env::var_os("GRADUS_SHOW").is_some() {
        println!("{}", compiled.assembly());
    }
}

#[test]
#[ignore = "prints times; run it in release mode"]
fn times_of_a_kernel() {
    let (n, times) = (4096, 1000);
    for simd in [Simd::Never, Simd::Worthwhile] {
        let (module, mut memory) = product(n, times);
        let options = Options { simd, ..Options::default() };
        let begin = Instant::now();
        let compiled = compile(&module, &options).unwrap();
        let made = begin.elapsed().as_secs_f64() * 1e3;
        let run = (0..20).map(|_| {
            let begin = Instant::now();
            run(&compiled, &mut memory).unwrap();
            begin.elapsed().as_secs_f64() * 1e9 / (n as f64 * times as f64)
        });
        let run = run.fold(f64::INFINITY, f64::min);
        println!("{simd:?}: made in {made:.2} ms, {} bytes; {run:.2} ns an element", compiled.bytes());
    }
}

/// A stack of many pages must not reach beyond the page that guards the stack.
#[test]
fn large_stacks_are_touched_page_by_page() {
    for (native, quick) in [(true, false), (true, true), (false, false)] {
        let isa = target(native, quick).unwrap();
        assert!(isa.flags().enable_probestack());
        assert_eq!(isa.flags().probestack_strategy(), settings::ProbestackStrategy::Inline);
    }
}
