//! The LLVM tier against the evaluator, and what it says where there is no LLVM.

use std::ffi::OsStr;
use std::path::PathBuf;

use gradus_core::testing::seeds_from;

use crate::codegen::harness;
use crate::ir::random::{self, Config};
use crate::ir::{Buffer, BufferInfo, Call, Expr, Index, Math, Memory, Module, Op, Role, Stmt, Ty, evaluate, verify};

use super::measure::{Body, buffers};
use super::{Effort, Llvm, Options, available, search};

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
fn check(module: &Module, memory: &Memory, options: &Options, piece: usize) -> Result<(), String> {
    let text = |e: gradus_core::Error| e.to_string();
    verify(module).map_err(text)?;
    let mut wanted = memory.clone();
    evaluate(module, &mut wanted).map_err(text)?;
    let mut got = memory.clone();
    let cut = random::cut(module.clone(), &mut got, piece);
    verify(&cut).map_err(text)?;
    let compiled = llvm().compile(&cut, options).map_err(text)?;
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
fn reduce(mut module: Module, memory: &Memory, options: &Options, piece: usize) -> Module {
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
        match valid && check(&less, memory, options, piece).is_err() {
            true => module = less,
            false => number += 1,
        }
    }
}

/// Runs modules of several seeds; says which ones differ, and shows what matters of one.
fn random_modules(seeds: std::ops::Range<u64>, config: &Config, options: &Options) {
    in_pieces(seeds, config, options, usize::MAX);
}

fn in_pieces(seeds: std::ops::Range<u64>, config: &Config, options: &Options, piece: usize) {
    let mut failed = Vec::new();
    for seed in seeds {
        let (module, memory) = random::module(seed, config);
        if let Err(why) = check(&module, &memory, options, piece) {
            println!("seed {seed}: {why}");
            failed.push((module.to_string().len(), seed));
        }
    }
    if let Some((_, seed)) = failed.iter().min() {
        let (module, memory) = random::module(*seed, config);
        let module = reduce(module, &memory, options, piece);
        let why = check(&module, &memory, options, piece).err().unwrap_or_default();
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
    let passes = std::env::var("GRADUS_PASSES").ok();
    random_modules(seeds_from(0, 40), &Config::default(), &Options { passes, ..Options::default() });
}

#[test]
fn random_modules_agree_on_smaller_machines() {
    for vector in [32, 16] {
        let options = Options { vector: Some(vector), ..Options::default() };
        random_modules(seeds_from(10_000, 13), &Config::default(), &options);
    }
}

#[test]
fn random_modules_agree_at_every_effort() {
    for effort in [Effort::Most, Effort::Least] {
        let options = Options { effort, ..Options::default() };
        random_modules(seeds_from(20_000, 13), &Config::default(), &options);
    }
}

#[test]
fn random_modules_agree_if_bodies_are_written_once() {
    let options = Options { small: true, ..Options::default() };
    random_modules(seeds_from(60_000, 13), &Config::default(), &options);
}

#[test]
fn random_modules_agree_in_pieces() {
    in_pieces(seeds_from(30_000, 13), &Config::default(), &Options::default(), 3);
    let config = Config { statements: 25, ..Config::default() };
    in_pieces(seeds_from(35_000, 6), &config, &Options::default(), 17);
}

#[test]
fn random_modules_of_long_bodies_agree() {
    let config = Config { statements: 25, ..Config::default() };
    random_modules(seeds_from(40_000, 6), &config, &Options::default());
}

/// A main body that calls the library, stores, calls again, and stores again.
fn calling() -> Module {
    let mut m = Module { name: "calling".into(), buffers: buffers(Ty::F64, 2), ..Module::default() };
    m.buffers.push(BufferInfo { ty: Ty::I16, role: Role::Scratch });
    m.calls = vec!["first".into(), "second".into()];
    let mut b = Body { m: &mut m, out: Vec::new() };
    let i = b.put(Ty::I64, Expr::Const(3));
    let five = b.put(Ty::F64, Expr::Const(5f64.to_bits()));
    let arrays = vec![(Buffer(1), Index::at(1).plus(i, 2)), (Buffer(2), Index::at(4))];
    let mut out = b.out;
    out.push(Stmt::Call(Box::new(Call { entry: 0, buffers: arrays.clone(), regions: vec![] })));
    out.push(Stmt::Store { buffer: Buffer(0), at: Index::at(0), value: five });
    out.push(Stmt::Call(Box::new(Call { entry: 1, buffers: arrays, regions: vec![] })));
    out.push(Stmt::Store { buffer: Buffer(0), at: Index::at(1), value: five });
    m.main = out;
    m
}

#[test]
fn library_calls() {
    let m = calling();
    verify(&m).unwrap();
    let compiled = llvm().compile(&m, &Options::default()).unwrap();
    for fails in [0, 1, 2] {
        let mut memory = Memory { buffers: vec![vec![0; 16], vec![0; 80], vec![0; 20]], sizes: Vec::new() };
        let library = |entry: u64, arrays: *const *mut u8| {
            // SAFETY: the module passes two arrays.
            unsafe {
                (*arrays).cast::<f64>().write(7.0 + entry as f64);
                (*arrays.add(1)).cast::<i16>().write(9);
            }
            if fails == entry + 1 { 40 + fails } else { 0 }
        };
        // SAFETY: the module stays in its bounds.
        let status = unsafe { harness::run_with(compiled.main(), &mut memory, &library) }.unwrap();
        let at = |b: usize, i: usize| f64::from_le_bytes(memory.buffers[b][i * 8..i * 8 + 8].try_into().unwrap());
        assert_eq!(status, if fails == 0 { 0 } else { 40 + fails });
        assert_eq!(at(1, 7), if fails == 1 { 7.0 } else { 8.0 });
        assert_eq!(memory.buffers[2][8..10], [9, 0]);
        assert_eq!((at(0, 0), at(0, 1)), (if fails == 1 { 0.0 } else { 5.0 }, if fails == 0 { 5.0 } else { 0.0 }));
    }
}

#[test]
fn texts_and_sizes() {
    let (module, _) = random::module(1, &Config::default());
    let options = Options { llvm_ir: true, assembly: true, ..Options::default() };
    let c = llvm().compile(&module, &options).unwrap();
    assert!(c.bytes() > 0 && c.bytes() < 1 << 20);
    assert!(c.llvm_ir().is_some_and(|t| t.contains("define")));
    assert!(c.assembly().is_some_and(|t| t.contains("ret")));
    let c = llvm().compile(&module, &Options::default()).unwrap();
    assert!(c.llvm_ir().is_none() && c.assembly().is_none());
}

#[test]
fn errors_are_errors() {
    let (module, _) = random::module(1, &Config::default());
    let wrong = Options { passes: Some("no-such-pass".into()), ..Options::default() };
    let e = llvm().compile(&module, &wrong).err().unwrap().to_string();
    assert!(e.contains("no-such-pass"), "{e}");
    let mut module = Module::default();
    let mut b = Body { m: &mut module, out: Vec::new() };
    let x = b.put(Ty::F64, Expr::Const(0));
    b.op(Op::Math(Math::named("exp").unwrap()), &[x]);
    module.main = b.out;
    let e = llvm().compile(&module, &Options::default()).err().unwrap().to_string();
    assert!(e.contains("exp is not expanded"), "{e}");
}

#[test]
fn many_threads_compile_at_once() {
    let threads: Vec<_> = (0..4)
        .map(|t| {
            std::thread::spawn(move || {
                random_modules(50_000 + t * 8..50_008 + t * 8, &Config::default(), &Options::default())
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[test]
#[cfg(target_os = "linux")]
fn code_is_freed() {
    let (module, _) = random::module(1, &Config::default());
    let pages = || {
        std::fs::read_to_string("/proc/self/maps")
            .unwrap()
            .lines()
            .filter(|l| l.contains(" r-xp ") && l.ends_with(" 0"))
            .count()
    };
    let compile = || llvm().compile(&module, &Options::default()).unwrap();
    let kept: Vec<_> = (0..30).map(|_| compile()).collect();
    drop(kept);
    let before = pages();
    for _ in 0..60 {
        drop(compile());
    }
    // Other tests compile meanwhile.
    assert!(pages() < before + 30, "{before} pages of code, then {}", pages());
}

/// Why there is no LLVM for a setting of the variable.
fn reason(setting: &str) -> String {
    match search(Some(OsStr::new(setting))) {
        Ok(llvm) => panic!("{setting}: there is {:?}", llvm.version()),
        Err(why) => why,
    }
}

/// A folder for the files of a test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("gradus-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn reasons() {
    assert_eq!(reason("off"), "there is no LLVM: GRADUS_LLVM is off");
    let why = reason("/no/such/file.so");
    assert!(why.contains("/no/such/file.so, which is not there"), "{why}");
    let folder = folder("reasons");
    let why = reason(folder.to_str().unwrap());
    assert!(why.contains("holds no LLVM"), "{why}");
    let text = folder.join("text.so");
    std::fs::write(&text, "no library").unwrap();
    let why = reason(text.to_str().unwrap());
    assert!(why.contains("text.so: it cannot be loaded"), "{why}");
    // Libraries that say what they are.
    let fake = |name: &str, code: &str| {
        let (source, library) = (folder.join(format!("{name}.rs")), folder.join(format!("{name}.so")));
        std::fs::write(&source, code).unwrap();
        let mut rustc = std::process::Command::new("rustc");
        let made = rustc.args(["--edition=2024", "--crate-type=cdylib", "-o"]).args([&library, &source]).status();
        assert!(made.unwrap().success(), "rustc makes no library");
        reason(library.to_str().unwrap())
    };
    let why = fake(
        "old",
        "#[unsafe(no_mangle)] pub unsafe extern \"C\" fn LLVMGetVersion(a: *mut u32, b: *mut u32, c: *mut u32) {
            unsafe { *a = 16; *b = 0; *c = 6; }
        }",
    );
    assert!(why.ends_with("it is LLVM 16.0.6, and 17 or newer is needed"), "{why}");
    let why = fake("older", "#[unsafe(no_mangle)] pub extern \"C\" fn LLVMContextCreate() {}");
    assert!(why.ends_with("it is older than LLVM 17"), "{why}");
    let why = fake("other", "#[unsafe(no_mangle)] pub extern \"C\" fn something() {}");
    assert!(why.ends_with("it is no LLVM"), "{why}");
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn the_variable_is_heard() {
    const NAME: &str = "codegen::llvm::tests::the_variable_is_heard";
    if std::env::var_os("GRADUS_LLVM").is_some_and(|v| v == "off") {
        assert_eq!(available().err(), Some("there is no LLVM: GRADUS_LLVM is off"));
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let done = std::process::Command::new(exe).args(["--exact", NAME]).env("GRADUS_LLVM", "off").status().unwrap();
    assert!(done.success());
    // The folder and the file of one that was found.
    let path = llvm().path();
    for setting in [path, path.parent().unwrap()] {
        let found = search(Some(setting.as_os_str())).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(found.version().0, llvm().version().0);
    }
}

/// How a process may end, and the status that it then has.
#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
const ENDS: [(&str, i32); 3] = [("return", 0), ("exit", 7), ("panic", 101)];

/// Ends this process in one of the [`ENDS`] after some microseconds, while other threads load LLVM and compile.
#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn end(how: &str, after: u64) {
    let (module, _) = random::module(1, &Config::default());
    for _ in 0..2 {
        let module = module.clone();
        std::thread::spawn(move || while llvm().compile(&module, &Options::default()).is_ok() {});
    }
    std::thread::sleep(std::time::Duration::from_micros(after));
    match how {
        "exit" => drop(std::thread::spawn(|| std::process::exit(7)).join()),
        "panic" => panic!("on purpose"),
        _ => {}
    }
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn a_process_may_end_at_any_moment() {
    const NAME: &str = "codegen::llvm::tests::a_process_may_end_at_any_moment";
    const VARIABLE: &str = "GRADUS_TEST_END";
    if let Ok(wish) = std::env::var(VARIABLE) {
        let (how, after) = wish.split_once(' ').unwrap();
        return end(how, after.parse().unwrap());
    }
    let path = llvm().path();
    let times = number("GRADUS_ENDS", 14);
    for i in 0..times {
        for (how, status) in ENDS {
            // Loading takes some tens of milliseconds; then code is made.
            let after = 500 + i * 80_000 / times;
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", NAME]).env("GRADUS_LLVM", path).env(VARIABLE, format!("{how} {after}"));
            let done = child.output().unwrap();
            assert_eq!(done.status.code(), Some(status), "{how} after {after} µs: {done:?}");
        }
    }
}

/// A stack of many pages must not reach beyond the page that guards the stack: every function that is defined says so.
#[test]
fn large_stacks_are_touched_page_by_page() {
    let (module, _) = random::module(1, &Config::default());
    let text = super::emit::module(&module, llvm().machine, "main").unwrap().text;
    assert!(text.contains("attributes #0 = { nounwind \"probe-stack\"=\"inline-asm\""), "{text}");
    for line in text.lines().filter(|l| l.starts_with("define ")) {
        assert!(line.contains("#0"), "{line}");
    }
}

/// Bytes are scattered by their last active lane where some are not active: a copy of a body of which none is active has no last one.
#[test]
fn bytes_apart_are_written_by_active_lanes_alone() {
    let text = |stride: i64, from: i64| {
        format!(
            "b0: f64 = input 0\nb1: u8 = input 1\nb2: u8 = output 0\nb3: f64 = output 1\nsizes 1\nkernel k(v0: i64) {{\n  v5 = lanes v1 < v0 {{\n    v2: f64 = b0[v1]\n    v3: u8 = b1[v1*{stride} + {from}]\n    b2[v1*{stride} + {from}] = v3\n    fold add v2\n  }}\n  give v5\n}}\nmain f {{\n  v0: i64 = size 0\n  v5 = run k(v0)\n  b3[0] = v5\n}}\n"
        )
    };
    for (stride, from) in [(-1, 130), (-2, 130), (-3, 195), (-4, 260), (-5, 325), (2, 0), (3, 0), (4, 0), (5, 0)] {
        let module: Module = text(stride, from).parse().unwrap();
        for n in [0, 1, 5, 8, 9, 31, 32, 33, 40, 64, 65] {
            let numbers = (0..65).flat_map(|i| f64::from(i).sqrt().to_le_bytes()).collect();
            let bytes: Vec<u8> = (0..330u32).map(|i| (i * 7 % 251) as u8).collect();
            let memory = Memory { buffers: vec![numbers, bytes, vec![0; 330], vec![0; 8]], sizes: vec![n] };
            if let Err(why) = check(&module, &memory, &Options::default(), usize::MAX) {
                panic!("stride {stride}, {n} iterations: {why}");
            }
        }
    }
}
