//! File tests of the compiler below the program: text in, text out, one folder of `tests/files` for each stage. What a file looks like is said in
//! `gradus_core::testing::files`. Nothing here depends on the machine: no code is made, and what is lowered is run by the evaluator.
//!
//! Of what a stage shows, the numbers are checked too: a lowered program must give the bits of the interpreter, and a pass over kernels must leave
//! in memory what was there before it.

use std::fmt::Write;

use gradus_core::optimize::{Exactness, for_execution};
use gradus_core::testing::files::Case;
use gradus_core::testing::{Source, canonical, random_array};
use gradus_core::{Array, ErrorKind, Executable, Program, Scalar, Type, file_tests, interpret};
use gradus_cpu::codegen::{cranelift, llvm, x86};
use gradus_cpu::exec::Evaluated;
use gradus_cpu::ir::{self, Memory, Module, Role, Ty};
use gradus_cpu::lower::{Lowered, SMALL, lower_with};
use gradus_cpu::memory;
use gradus_cpu::vector::{self, Machine, vectorize};

fn text_of(e: impl ToString) -> String {
    e.to_string()
}

/// The number behind a word of the header.
fn number_of(case: &Case, name: &str, otherwise: usize) -> Result<usize, String> {
    match case.directives(name).next() {
        Some(n) => n.parse().map_err(|_| format!("`# {name} {n}` is no number")),
        None => Ok(otherwise),
    }
}

fn exactness(case: &Case) -> Exactness {
    if case.says("relaxed") { Exactness::Relaxed } else { Exactness::Exact }
}

/// The text of a module, after the verifier has seen it and the text has been read back.
fn checked_text(m: &Module) -> Result<String, String> {
    ir::verify(m).map_err(|e| format!("the result does not verify: {e}\n{m}"))?;
    let text = m.to_string();
    let back: Module = text.parse().map_err(|e| format!("the result does not parse: {e}\n{text}"))?;
    if back != ir::written(m) {
        return Err(format!("the text of the result reads back to another module\n{text}\n{back}"));
    }
    Ok(text)
}

// ---- from programs ----

/// The program of a case, as it is lowered: `# ready` runs the passes for execution first, `# small 1` puts every array in memory.
fn lowered(case: &Case) -> Result<(Program, Lowered), String> {
    let program: Program = case.input.parse().map_err(|e| format!("the input is not a program: {e}"))?;
    let ready = match case.says("ready") {
        true => for_execution(&program, exactness(case)).map_err(text_of)?,
        false => program.clone(),
    };
    let lowered = lower_with(&ready, number_of(case, "small", SMALL)?, true).map_err(text_of)?;
    Ok((program, lowered))
}

/// The input types of a case: those of the lines `# type f32[3,4]`, or those of the program.
fn types(case: &Case, p: &Program) -> Result<Vec<Type>, String> {
    let given: Vec<Type> = case.directives("type").map(|t| t.parse().map_err(text_of)).collect::<Result<_, _>>()?;
    match (given.len() == p.inputs().len(), p.is_symbolic()) {
        (true, _) => Ok(given),
        (false, false) if given.is_empty() => Ok(p.inputs().to_vec()),
        _ => Err(format!("{} lines `# type ...` for {} inputs", given.len(), p.inputs().len())),
    }
}

fn same(a: &Array, b: &Array, tolerance: f64) -> bool {
    let (Some(x), Some(y)) = (a.concrete(), b.concrete()) else { return false };
    let near = |i| match (x.scalar_at(i), y.scalar_at(i)) {
        (Ok(p), Ok(q)) => {
            let (u, v) = (p.to_f64(), q.to_f64());
            canonical(p) == canonical(q)
                || (tolerance > 0.0
                    && ((u - v).abs() <= tolerance * (1.0 + v.abs()) || !u.is_finite() || !v.is_finite()))
        }
        _ => false,
    };
    x.ty() == y.ty() && (0..x.count()).all(near)
}

/// Refuses code that gives other results than the interpreter, on random inputs. `# order of sums` in the file says that sums may round differently.
fn same_results(case: &Case, program: &Program, code: &Evaluated) -> Result<(), String> {
    let tolerance = if case.says("order of sums") { 1e-5 } else { 0.0 };
    let types = types(case, program)?;
    // What is large is there for its text, and the evaluator looks at every element.
    let large = types.iter().any(|t| t.shape().count().is_some_and(|n| n > 10_000));
    for seed in 0..if large { 1 } else { 5 } {
        let mut source = Source::seed(seed);
        let inputs: Vec<Array> = types.iter().map(|t| random_array(&mut source, t, false)).collect();
        let want = interpret(program, &inputs).map_err(text_of)?;
        let have = code.run(&inputs).map_err(|e| format!("the code failed: {e}"))?;
        if want.len() != have.len() || !want.iter().zip(&have).all(|(a, b)| same(a, b, tolerance)) {
            return Err(format!(
                "on {inputs:?} the program gives {want:?} and the code {have:?}\n{}",
                code.lowered.module
            ));
        }
    }
    Ok(())
}

/// The kernels of a program, its run-time sizes before and what it copies behind them.
fn lower(case: &Case) -> Result<String, String> {
    let (program, lowered) = lowered(case)?;
    let mut text = String::new();
    for (i, size) in lowered.sizes.iter().enumerate() {
        let _ = writeln!(text, "// size {i} is {size}");
    }
    text += &checked_text(&lowered.module)?;
    for copy in &lowered.copies {
        let _ = writeln!(text, "// {copy}");
    }
    same_results(case, &program, &Evaluated { lowered, signature: program.clone() })?;
    Ok(text)
}

/// Where the arrays of a program lie.
fn planned(case: &Case) -> Result<String, String> {
    let (program, lowered) = lowered(case)?;
    let bound = lowered.bind(&program, &types(case, &program)?).map_err(text_of)?;
    let plan = memory::plan(&lowered.module, &bound.bytes, &lowered.uncovered).map_err(text_of)?;
    let mut text = String::new();
    for (b, (info, bytes)) in lowered.module.buffers.iter().zip(&bound.bytes).enumerate() {
        let role = match info.role {
            Role::Input(n) => format!("input {n}"),
            Role::Output(n) => format!("output {n}"),
            Role::Constant(n) => format!("constant {n}"),
            Role::Scratch => "scratch".into(),
        };
        let _ = writeln!(text, "b{b}: {role}, {bytes} bytes");
    }
    let _ = write!(text, "{plan}");
    same_results(case, &program, &Evaluated { lowered, signature: program.clone() })?;
    Ok(text)
}

// ---- from kernels ----

fn module(case: &Case) -> Result<Module, String> {
    case.input.parse().map_err(|e| format!("the input is not a module: {e}"))
}

fn parsed(case: &Case) -> Result<String, String> {
    checked_text(&module(case)?)
}

fn refused(case: &Case) -> Result<(ErrorKind, String), String> {
    // The line breaks around the input are not part of what is tested.
    match case.input.trim_end().parse::<Module>() {
        Ok(m) => Err(format!("this is a module:\n{m}")),
        Err(e) => Ok((e.kind(), format!("{e}\n"))),
    }
}

fn parse_errors(case: &Case) -> Result<String, String> {
    match refused(case)? {
        (ErrorKind::Parse, text) if text.contains("at line ") => Ok(text),
        (kind, text) => Err(format!("not an error of the parser with a line and column, but {kind:?}: {text}")),
    }
}

fn verify_errors(case: &Case) -> Result<String, String> {
    match refused(case)? {
        (ErrorKind::Parse, text) => Err(format!("the text does not even parse: {text}")),
        (_, text) => Ok(text),
    }
}

/// What is in memory that nobody gave numbers to.
const UNWRITTEN: u8 = 0x5A;

/// Elements that each buffer has where a case does not say what is in them.
const ELEMENTS: usize = 64;

fn scalar(ty: Ty, bytes: &[u8]) -> Scalar {
    let mut wide = [0; 8];
    wide[..ty.size()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match ty {
        Ty::Bool => Scalar::Bool(bits != 0),
        Ty::I8 => Scalar::I8(bits as i8),
        Ty::I16 => Scalar::I16(bits as i16),
        Ty::I32 => Scalar::I32(bits as i32),
        Ty::I64 => Scalar::I64(bits as i64),
        Ty::U8 => Scalar::U8(bits as u8),
        Ty::U16 => Scalar::U16(bits as u16),
        Ty::U32 => Scalar::U32(bits as u32),
        Ty::U64 => Scalar::U64(bits),
        Ty::F32 => Scalar::F32(f32::from_bits(bits as u32)),
        Ty::F64 => Scalar::F64(f64::from_bits(bits)),
    }
}

fn scalars(ty: Ty, bytes: &[u8]) -> Vec<Scalar> {
    bytes.chunks(ty.size()).map(|b| scalar(ty, b)).collect()
}

fn bytes_of(ty: Ty, text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{text}` is no number of {ty}");
    let (float, whole) = (text.parse::<f64>(), text.parse::<i128>());
    Ok(match ty {
        Ty::F32 => text.parse::<f32>().map_err(|_| wrong())?.to_le_bytes().into(),
        Ty::F64 => float.map_err(|_| wrong())?.to_le_bytes().into(),
        Ty::Bool => vec![text.parse::<bool>().map_err(|_| wrong())?.into()],
        _ => whole.map_err(|_| wrong())?.to_le_bytes()[..ty.size()].into(),
    })
}

/// Memory for a module: `# b0 1.0 2.0` says what is in a buffer, `# sizes 3 4` what the run-time sizes are. Other buffers have small numbers of all kinds.
fn memory_for(case: &Case, m: &Module) -> Result<Memory, String> {
    let mut memory = Memory::default();
    for (b, info) in m.buffers.iter().enumerate() {
        let name = format!("b{b}");
        let given: Vec<&str> = case.directives(&name).flat_map(str::split_whitespace).collect();
        let some = |i: usize| match info.ty {
            Ty::Bool => i.is_multiple_of(3).to_string(),
            ty if ty.is_float() => ["0.5", "-1.25", "0", "-0", "3", "inf", "nan"][(i + b) % 7].into(),
            _ => ((i * 5 + b) % 9).to_string(),
        };
        let bytes = match given.is_empty() {
            true => (0..ELEMENTS).map(|i| bytes_of(info.ty, &some(i))).collect::<Result<Vec<_>, _>>()?,
            false => given.iter().map(|t| bytes_of(info.ty, t)).collect::<Result<Vec<_>, _>>()?,
        };
        memory.buffers.push(bytes.concat());
    }
    let sizes: Vec<&str> = case.directives("sizes").flat_map(str::split_whitespace).collect();
    memory.sizes = sizes.iter().map(|t| t.parse().map_err(|_| format!("size `{t}`"))).collect::<Result<_, _>>()?;
    memory.sizes.resize(m.sizes as usize, 3);
    Ok(memory)
}

fn run(m: &Module, mut memory: Memory) -> Result<Vec<Vec<Scalar>>, String> {
    // What a call does is not part of the language.
    ir::evaluate_with(m, &mut memory, &mut |_, _| Ok(())).map_err(|e| format!("the module does not run: {e}"))?;
    Ok(m.buffers.iter().zip(&memory.buffers).map(|(info, bytes)| scalars(info.ty, bytes)).collect())
}

/// What a pass makes of a module. It must leave the same bits in memory, but for the sort of a NaN.
fn passed(case: &Case, pass: impl FnOnce(Module) -> Module, exact: bool) -> Result<String, String> {
    let before = module(case)?;
    let after = pass(before.clone());
    let text = checked_text(&after)?;
    let memory = memory_for(case, &before)?;
    let mut more = memory.clone();
    // What crosses pieces lies in buffers of their own.
    more.buffers.resize(after.buffers.len(), vec![UNWRITTEN; 8 * ELEMENTS]);
    let (want, have) = (run(&before, memory)?, run(&after, more)?);
    for (b, (want, have)) in want.iter().zip(&have).enumerate() {
        for (i, (p, q)) in want.iter().zip(have).enumerate() {
            let (u, v) = (p.to_f64(), q.to_f64());
            let close = !exact && (!u.is_finite() || !v.is_finite() || (u - v).abs() <= 1e-6 * (1.0 + u.abs()));
            if canonical(*p) != canonical(*q) && !close {
                return Err(format!("b{b}[{i}] was {p} before the pass and is {q} after it\n{text}"));
            }
        }
    }
    Ok(text)
}

fn folded(case: &Case) -> Result<String, String> {
    let exactness = exactness(case);
    passed(case, |m| ir::fold(m, exactness), exactness == Exactness::Exact)
}

/// `# often 1`: from how many uses on a function is called.
fn expanded(case: &Case) -> Result<String, String> {
    let often = number_of(case, "often", ir::OFTEN)?;
    passed(case, |m| ir::expand_with(m, often), true)
}

/// `# piece 4`: how many statements a piece has. Behind the text, the bytes of the buffers that were added.
fn cut(case: &Case) -> Result<String, String> {
    let (limit, mut frames) = (number_of(case, "piece", ir::PIECE)?, Vec::new());
    let pass = |m| {
        let (m, bytes) = ir::cut(m, limit);
        frames = bytes;
        m
    };
    let mut text = passed(case, pass, true)?;
    let _ = writeln!(text, "// frames of {frames:?} bytes");
    Ok(text)
}

/// The machine of a code generator, `# machine avx512`, `avx2`, `cranelift` or `llvm`: whatever this one has.
fn machine(case: &Case) -> Result<Machine, String> {
    match case.directives("machine").next() {
        None | Some("avx512") => Ok(x86::machine(x86::Isa::Avx512)),
        Some("avx2") => Ok(x86::machine(x86::Isa::Avx2)),
        Some("cranelift") => Ok(cranelift::machine(cranelift::Simd::Always)),
        Some("llvm") => Ok(llvm::machine("+avx512f,+avx512bw,+avx512vl,+avx512dq", None)),
        Some(other) => Err(format!("there is no machine `{other}`")),
    }
}

/// Kernels in the vector language. They must leave in memory what the kernel language leaves there.
fn vectorized(case: &Case) -> Result<String, String> {
    let (m, machine) = (module(case)?, machine(case)?);
    let vectors = |k: &ir::Kernel| vectorize(&m, k, &machine);
    let kernels = vector::eval::compare(&m, &memory_for(case, &m)?, vectors).map_err(text_of)?;
    if kernels != m.kernels.len() {
        return Err(format!("{kernels} of {} kernels were run", m.kernels.len()));
    }
    Ok(m.kernels.iter().map(|k| format!("kernel {}{}", k.name, vectors(k))).collect())
}

/// The main body in the vector language, as the assembler takes it.
fn scalar_code(case: &Case) -> Result<String, String> {
    let (m, machine) = (module(case)?, machine(case)?);
    Ok(format!("main {}{}", m.name, vector::scalars(&m, &m.main, &machine)))
}

/// What is in memory after a module has run.
fn evaluated(case: &Case) -> Result<String, String> {
    let m = module(case)?;
    let after = run(&m, memory_for(case, &m)?)?;
    let mut text = String::new();
    for (b, numbers) in after.iter().enumerate() {
        let numbers: Vec<String> = numbers.iter().map(Scalar::to_string).collect();
        let _ = writeln!(text, "b{b} {}", numbers.join(" "));
    }
    Ok(text)
}

file_tests! {
    stage_lower "lower" lower;
    stage_memory "memory" planned;
    stage_parse "parse" parsed;
    stage_parse_errors "parse_errors" parse_errors;
    stage_verify_errors "verify_errors" verify_errors;
    stage_fold "fold" folded;
    stage_expand "expand" expanded;
    stage_cut "cut" cut;
    stage_vectorize "vectorize" vectorized;
    stage_scalars "scalars" scalar_code;
    stage_evaluate "evaluate" evaluated;
}
