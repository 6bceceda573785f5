//! Elementary functions that are called and those that are written out: the same bits, from every code generator.

use gradus_core::optimize::Exactness;

use super::{embedded, harness, llvm, x86};
use crate::abi::MainFn;
use crate::ir::random::{self, Rng};
use crate::ir::{
    Buffer, BufferInfo, Expr, Index, Int, Kind, Loop, Math, Memory, Module, OFTEN, Op, Role, Stmt, Ty, Value, cut,
    evaluate, expand, expand_with, fold, verify,
};

/// Numbers at the edges of what there is, then any bits, then ordinary ones.
fn numbers(ty: Ty) -> Vec<u64> {
    let mut all: Vec<f64> =
        vec![0.0, 0.5, 1.0, 2.0, 3.0, 0.7, 88.8, 104.0, 709.8, 746.0, 1e5, 1e10, 1e22, f64::INFINITY];
    all.extend([f64::NAN, f64::EPSILON, 1e-20, 1e-38, 1e-45, 1e-308, 5e-324, f64::MAX, f64::from(f32::MAX)]);
    all.extend([std::f64::consts::PI, std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_4]);
    let both = all.iter().flat_map(|v| [*v, -*v]);
    let mut bits: Vec<u64> =
        both.map(|v| if ty == Ty::F32 { u64::from((v as f32).to_bits()) } else { v.to_bits() }).collect();
    let mut rng = Rng(7);
    bits.extend((0..300).map(|_| rng.bits()));
    bits.extend((0..300).map(|_| {
        let v = (rng.bits() >> 11) as f64 / (1u64 << 53) as f64 * 20.0 - 10.0;
        if ty == Ty::F32 { u64::from((v as f32).to_bits()) } else { v.to_bits() }
    }));
    bits
}

/// Every function of every number, in a loop of the main body: `out[f·n + i] = f(x[i], y[i])`.
fn every_function(ty: Ty) -> (Module, Memory) {
    let mut m = Module { name: "every".into(), ..Module::default() };
    for role in [Role::Input(0), Role::Input(1), Role::Output(0)] {
        m.buffers.push(BufferInfo { ty, role });
    }
    let xs = numbers(ty);
    let n = xs.len() as i64;
    let (var, x, y) = (m.value(Ty::I64), m.value(ty), m.value(ty));
    let at = |offset| Index::at(offset).plus(var, 1);
    let mut body = vec![Stmt::Let(x, Expr::Load(Buffer(0), at(0))), Stmt::Let(y, Expr::Load(Buffer(1), at(0)))];
    for (k, &f) in Math::all().iter().enumerate() {
        let value = m.value(ty);
        let op = Op::Math(f);
        body.push(Stmt::Let(value, Expr::Op(op, [x, y].into_iter().take(op.arity()).collect())));
        body.push(Stmt::Store { buffer: Buffer(2), at: at(k as i64 * n), value });
    }
    let count = Int::Const(n);
    m.main.push(Stmt::Loop(Box::new(Loop { var, count, kind: Kind::Serial, carried: vec![], folds: vec![], body })));
    // The second operand is another number each time.
    let bytes = |shift: usize| -> Vec<u8> {
        let shifted = xs.iter().cycle().skip(shift).take(xs.len());
        shifted.flat_map(|b| b.to_le_bytes().into_iter().take(ty.size())).collect()
    };
    let buffers = vec![bytes(0), bytes(17), vec![0; Math::all().len() * xs.len() * ty.size()]];
    (m, Memory { buffers, sizes: vec![] })
}

fn run(main: MainFn, memory: &Memory) -> Memory {
    let mut memory = memory.clone();
    // SAFETY: the memory is that of the module, and the evaluator stays in its bounds.
    assert_eq!(unsafe { harness::run(main, &mut memory) }, Ok(0));
    memory
}

#[test]
fn called_or_written_out_a_function_gives_the_same_bits() {
    let llvm = llvm::available().unwrap_or_else(|why| panic!("the LLVM tier is NOT TESTED: {why}"));
    for ty in [Ty::F32, Ty::F64] {
        let (module, memory) = every_function(ty);
        verify(&module).unwrap();
        let mut expected = memory.clone();
        evaluate(&module, &mut expected).unwrap();
        for often in [0, usize::MAX] {
            let m = fold(expand_with(module.clone(), often), Exactness::Exact);
            verify(&m).unwrap();
            assert_eq!(m.functions.len(), if often == 0 { Math::all().len() } else { 0 });
            assert!(Math::all().len() >= 23);
            let mut evaluated = memory.clone();
            evaluate(&m, &mut evaluated).unwrap();
            // Small pieces: functions are called from each of them.
            let (m, frames) = cut(m, 10);
            verify(&m).unwrap();
            let mut memory = memory.clone();
            memory.buffers.extend(frames.into_iter().map(|n| vec![0; n]));
            let own = embedded::compile(&m, x86::detect(), false, true).unwrap();
            let loaded = embedded::load(own.image().unwrap(), x86::detect()).unwrap();
            let cranelift = embedded::compile(&m, None, false, true).unwrap();
            let from_disk = embedded::load(cranelift.image().unwrap(), None).unwrap();
            let optimized = llvm.compile(&m, &llvm::Options { image: true, ..llvm::Options::default() }).unwrap();
            let ways = [
                ("evaluator", evaluated),
                ("embedded", run(own.main(), &memory)),
                ("embedded, from disk", run(loaded.main(), &memory)),
                ("Cranelift", run(cranelift.main(), &memory)),
                ("Cranelift, from disk", run(from_disk.main(), &memory)),
                ("llvm", run(optimized.main(), &memory)),
            ];
            for (way, got) in ways {
                if let Some(difference) = random::difference(&m, &expected, &got) {
                    panic!("{way}, called from {often} uses on: {difference}");
                }
            }
        }
    }
}

/// A straight line of so many sines.
fn sines(n: usize) -> Module {
    let mut m = Module { name: "sines".into(), ..Module::default() };
    for role in [Role::Input(0), Role::Output(0)] {
        m.buffers.push(BufferInfo { ty: Ty::F64, role });
    }
    let values: Vec<Value> = (0..=n).map(|_| m.value(Ty::F64)).collect();
    m.main.push(Stmt::Let(values[0], Expr::Load(Buffer(0), Index::at(0))));
    for pair in values.windows(2) {
        m.main
            .push(Stmt::Let(pair[1], Expr::Op(Op::Math(Math::named("sin").unwrap()), [pair[0]].into_iter().collect())));
    }
    m.main.push(Stmt::Store { buffer: Buffer(1), at: Index::at(0), value: values[n] });
    m
}

#[test]
fn what_stands_often_is_written_once() {
    let length = |n| {
        let m = expand(sines(n));
        verify(&m).unwrap();
        (m.functions.len(), m.main.len())
    };
    let (functions, short) = length(OFTEN);
    assert_eq!(functions, 0);
    assert!(short > 20 * OFTEN, "{short}");
    assert_eq!(length(OFTEN + 1), (1, OFTEN + 3));
    let text = expand(sines(OFTEN + 1)).to_string();
    assert_eq!(text.matches("function sin(").count(), 1, "{text}");
    // What a function gives is part of what code depends on.
    let hash = |m: &Module| {
        let mut hasher = rustc_hash::FxHasher::default();
        std::hash::Hash::hash(m, &mut hasher);
        std::hash::Hasher::finish(&hasher)
    };
    let m = expand(sines(OFTEN + 1));
    let mut other = m.clone();
    other.functions[0].result = other.functions[0].params[0];
    verify(&other).unwrap();
    assert_ne!(hash(&m), hash(&other));
    other.functions[0].params.clear();
    assert!(verify(&other).is_err());
}

/// `x = 1/4 + f(x)/4`, again and again: what each number costs that waits for the one before.
fn chained(f: Math, ty: Ty, times: i64) -> (Module, Memory) {
    let mut m = Module { name: "chained".into(), ..Module::default() };
    m.buffers.push(BufferInfo { ty, role: Role::Output(0) });
    let var = m.value(Ty::I64);
    let [init, param, made, part, next, result] = [(); 6].map(|()| m.value(ty));
    let quarter = if ty == Ty::F32 { u64::from(0.25f32.to_bits()) } else { 0.25f64.to_bits() };
    let op = Op::Math(f);
    let body = vec![
        Stmt::Let(made, Expr::Op(op, [param, init].into_iter().take(op.arity()).collect())),
        Stmt::Let(part, Expr::Op(Op::Mul, [made, init].into_iter().collect())),
        Stmt::Let(next, Expr::Op(Op::Add, [part, init].into_iter().collect())),
    ];
    let carried = vec![crate::ir::Carried { init, param, next, result }];
    let l = Loop { var, count: Int::Const(times), kind: Kind::Serial, carried, folds: vec![], body };
    m.main = vec![
        Stmt::Let(init, Expr::Const(quarter)),
        Stmt::Loop(Box::new(l)),
        Stmt::Store { buffer: Buffer(0), at: Index::at(0), value: result },
    ];
    (m, Memory { buffers: vec![vec![0; ty.size()]], sizes: vec![] })
}

#[test]
#[ignore = "prints times; run it in release mode"]
fn times_of_numbers_that_wait_for_each_other() {
    let times = 20_000;
    for ty in [Ty::F64, Ty::F32] {
        for &f in Math::all() {
            let (module, memory) = chained(f, ty, times);
            let m = fold(expand_with(module, usize::MAX), Exactness::Exact);
            let ways = [x86::detect(), None].map(|isa| embedded::compile(&m, isa, false, false).unwrap());
            let mut best = [f64::INFINITY; 2];
            for _ in 0..15 {
                for (way, best) in ways.iter().zip(&mut best) {
                    let begin = std::time::Instant::now();
                    run(way.main(), &memory);
                    *best = best.min(begin.elapsed().as_secs_f64() * 1e9 / times as f64);
                }
            }
            println!(
                "{ty} {:<8} own {:6.1} ns, Cranelift {:6.1} ns, {:.2}",
                format!("{f:?}"),
                best[0],
                best[1],
                best[0] / best[1]
            );
        }
    }
}
