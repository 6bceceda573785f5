//! The LLVM tier against the evaluator, and what it says where there is no LLVM.

use crate::codegen::harness;
use crate::ir::random::{self, Config};
use crate::ir::{Memory, Module, Stmt, evaluate, verify};

use super::{Effort, Llvm, Options, available};

/// The LLVM to test. Where there is none nothing is tested, and the tests that need it fail and say so.
pub(super) fn llvm() -> &'static Llvm {
    match available() {
        Ok(llvm) => llvm,
        Err(why) => panic!("the LLVM tier is NOT TESTED: {why}"),
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

/// Runs a module both ways.
fn check(module: &Module, memory: &Memory, options: &Options) -> Result<(), String> {
    let text = |e: gradus_core::Error| e.to_string();
    verify(module).map_err(text)?;
    let mut wanted = memory.clone();
    evaluate(module, &mut wanted).map_err(text)?;
    let compiled = llvm().compile(module, options).map_err(text)?;
    let mut got = memory.clone();
    // SAFETY: the module is verified, and the evaluator stayed in its bounds.
    let status = unsafe { harness::run(compiled.main(), &mut got) }?;
    if status != 0 {
        return Err(format!("status {status}"));
    }
    random::difference(module, &wanted, &got).map_or(Ok(()), Err)
}

/// The bodies in a body.
fn inner(s: &mut Stmt) -> Vec<&mut Vec<Stmt>> {
    match s {
        Stmt::Loop(l) => vec![&mut l.body],
        Stmt::While(w) => vec![&mut w.before, &mut w.body],
        Stmt::Switch(s) => s.cases.iter_mut().map(|(b, _)| b).collect(),
        _ => Vec::new(),
    }
}

/// Takes out the statement with a number, counted through all bodies.
fn without(body: &mut Vec<Stmt>, number: &mut usize) -> bool {
    for i in (0..body.len()).rev() {
        if *number == 0 {
            body.remove(i);
            return true;
        }
        *number -= 1;
        if inner(&mut body[i]).into_iter().any(|b| without(b, number)) {
            return true;
        }
    }
    false
}

/// A module that differs, with everything taken out that does not matter for it.
fn reduce(mut module: Module, memory: &Memory, options: &Options) -> Module {
    let mut number = 0;
    loop {
        let mut less = module.clone();
        let mut n = number;
        let mut bodies: Vec<&mut Vec<Stmt>> = less.kernels.iter_mut().map(|k| &mut k.body).collect();
        bodies.insert(0, &mut less.main);
        if !bodies.into_iter().any(|b| without(b, &mut n)) {
            return module;
        }
        let valid = verify(&less).is_ok() && evaluate(&less, &mut memory.clone()).is_ok();
        match valid && check(&less, memory, options).is_err() {
            true => module = less,
            false => number += 1,
        }
    }
}

/// Runs modules of several seeds; says which ones differ, and shows what matters of one.
fn random_modules(seeds: std::ops::Range<u64>, config: &Config, options: &Options) {
    let mut failed = Vec::new();
    for seed in seeds {
        let (module, memory) = random::module(seed, config);
        if let Err(why) = check(&module, &memory, options) {
            println!("seed {seed}: {why}");
            failed.push((module.to_string().len(), seed));
        }
    }
    if let Some((_, seed)) = failed.iter().min() {
        let (module, memory) = random::module(*seed, config);
        let module = reduce(module, &memory, options);
        let why = check(&module, &memory, options).err().unwrap_or_default();
        if let Some(to) = std::env::var_os("GRADUS_SHOW") {
            let options = Options { llvm_ir: true, assembly: true, ..options.clone() };
            if let Ok(c) = llvm().compile(&module, &options) {
                let text = format!("{}\n{}", c.llvm_ir().unwrap_or(""), c.assembly().unwrap_or(""));
                let _ = std::fs::write(to, text);
            }
        }
        panic!("{} modules differ; one is seed {seed}: {why}\n{module}", failed.len());
    }
}

#[test]
fn random_modules_agree() {
    let (from, n) = (number("GRADUS_SEED", 0), number("GRADUS_SEEDS", 60));
    let passes = std::env::var("GRADUS_PASSES").ok();
    random_modules(from..from + n, &Config::default(), &Options { passes, ..Options::default() });
}

#[test]
fn random_modules_agree_on_smaller_machines() {
    let (from, n) = (number("GRADUS_SEED", 10_000), number("GRADUS_SEEDS", 60) / 3);
    for vector in [32, 16] {
        let options = Options { vector: Some(vector), ..Options::default() };
        random_modules(from..from + n, &Config::default(), &options);
    }
}

#[test]
fn random_modules_agree_at_every_effort() {
    let (from, n) = (number("GRADUS_SEED", 20_000), number("GRADUS_SEEDS", 60) / 3);
    for effort in [Effort::Most, Effort::Least] {
        let options = Options { effort, ..Options::default() };
        random_modules(from..from + n, &Config::default(), &options);
    }
}
