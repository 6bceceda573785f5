//! File tests of what is done with programs: program text in, text out, one folder of `tests/files` for each stage. What a file looks like is
//! said in `testing/files.rs`.

use std::fmt::Write;

use gradus_core::array::Concrete;
use gradus_core::optimize::{CONTRACT, Exactness, for_execution, optimize, run_passes};
use gradus_core::program::{Builder, Constant, verify};
use gradus_core::testing::files::{Case, run_file};
use gradus_core::testing::{Source, random_array};
use gradus_core::transform::{jvp, partial_eval, vjp, vmap};
use gradus_core::{Array, Dim, ErrorKind, Program, Scalar, file_tests, interpret};

fn program(case: &Case) -> Result<Program, String> {
    case.input.parse().map_err(|e| format!("the input is not a program: {e}"))
}

/// The arrays of the lines `# input [1.0,2.0]:f64[2]`, written like constants in a program.
fn inputs(case: &Case) -> Result<Vec<Array>, String> {
    case.directives("input").map(literal).collect()
}

fn literal(text: &str) -> Result<Array, String> {
    let (_, ty) = text.rsplit_once(':').ok_or_else(|| format!("`{text}` has no type"))?;
    let program = format!("fn literal() -> {ty} {{\n  return {text}\n}}\n");
    let program: Program = program.parse().map_err(|e| format!("`{text}`: {e}"))?;
    let outputs = interpret(&program, &[]).map_err(|e| e.to_string())?;
    outputs.into_iter().next().ok_or_else(|| "no value".into())
}

/// An array as a constant of a program is written.
fn constant_text(array: &Array) -> Result<String, String> {
    let concrete: &Concrete = array.concrete().ok_or("a result without numbers")?;
    let mut b = Builder::new("literal");
    let atom = b.constant(Constant::array(concrete));
    let text = b.finish(vec![atom]).to_string();
    let value = text.lines().find_map(|l| l.trim().strip_prefix("return ")).ok_or("no value")?;
    Ok(value.to_owned())
}

/// A program as text, after the verifier has seen it and the text has been read back.
fn checked_text(program: &Program) -> Result<String, String> {
    verify(program).map_err(|e| format!("the result does not verify: {e}\n{program}"))?;
    let text = program.to_string();
    let back: Program = text.parse().map_err(|e| format!("the result does not parse: {e}\n{text}"))?;
    if back != *program {
        return Err(format!("the text of the result reads back to another program\n{text}\n{back}"));
    }
    Ok(text)
}

fn parse(case: &Case) -> Result<String, String> {
    checked_text(&program(case)?)
}

fn refused(case: &Case) -> Result<(ErrorKind, String), String> {
    // The line breaks around the input are not part of what is tested.
    match case.input.trim_end().parse::<Program>() {
        Ok(p) => Err(format!("this is a program:\n{p}")),
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

/// Equal to the last bit, but for what sort of NaN.
fn same_numbers(a: &Array, b: &Array) -> bool {
    let (Some(x), Some(y)) = (a.concrete(), b.concrete()) else { return false };
    let same = |i| match (x.scalar_at(i), y.scalar_at(i)) {
        (Ok(Scalar::F64(p)), Ok(Scalar::F64(q))) if p.is_nan() && q.is_nan() => true,
        (Ok(Scalar::F32(p)), Ok(Scalar::F32(q))) if p.is_nan() && q.is_nan() => true,
        (Ok(p), Ok(q)) => p == q || (p.dtype().is_complex() && p.to_string().contains("nan")),
        _ => false,
    };
    x.ty() == y.ty() && (0..x.count()).all(same)
}

/// The optimized program; on random inputs, special ones among them, it must give the same numbers.
fn optimized(case: &Case) -> Result<String, String> {
    let program = program(case)?;
    let fast = optimize(&program).map_err(|e| e.to_string())?;
    same_results(&program, &fast, same_numbers)?;
    checked_text(&fast)
}

/// The program that a compiler is given. `# order of sums` in the file says that sums may round differently, `# relaxed` that
/// the user allows what only changes NaN, infinities, zeros and last bits.
fn executed(case: &Case) -> Result<String, String> {
    let program = program(case)?;
    let exactness = if case.says("relaxed") { Exactness::Relaxed } else { Exactness::Exact };
    let fast = for_execution(&program, exactness).map_err(|e| e.to_string())?;
    let same = match (case.says("relaxed"), case.says("order of sums")) {
        (true, _) => close_where_finite,
        (_, true) => close_numbers,
        _ => same_numbers,
    };
    same_results(&program, &fast, same)?;
    checked_text(&fast)
}

/// The program with products taken into sums.
fn contracted(case: &Case) -> Result<String, String> {
    let program = program(case)?;
    let fused = run_passes(&[CONTRACT], &program, Exactness::Exact, &mut |_, _, _| {}).map_err(|e| e.to_string())?;
    // A product that overflows where the sum does not, or cancels.
    same_results(&program, &fused, close_where_finite)?;
    checked_text(&fused)
}

/// Equal but for the rounding of a sum.
fn close_numbers(a: &Array, b: &Array) -> bool {
    compare_close(a, b, |p, q| p.is_nan() && q.is_nan() || p == q)
}

/// Equal but for rounding, where both are finite.
fn close_where_finite(a: &Array, b: &Array) -> bool {
    compare_close(a, b, |p, q| !p.is_finite() || !q.is_finite())
}

fn compare_close(a: &Array, b: &Array, accepts: fn(f64, f64) -> bool) -> bool {
    let (Some(x), Some(y)) = (a.concrete(), b.concrete()) else { return false };
    let close = |i| match (x.scalar_at(i), y.scalar_at(i)) {
        (Ok(p), Ok(q)) => {
            p == q || accepts(p.to_f64(), q.to_f64()) || {
                let (p, q) = (p.to_f64(), q.to_f64());
                (p - q).abs() <= 1e-6 * (1.0 + p.abs().max(q.abs()))
            }
        }
        _ => false,
    };
    x.ty() == y.ty() && (0..x.count()).all(close)
}

/// Refuses a program that gives other results than another, on random inputs.
fn same_results(program: &Program, fast: &Program, same: fn(&Array, &Array) -> bool) -> Result<(), String> {
    if !program.is_symbolic() {
        for seed in 0..50 {
            let mut source = Source::seed(seed);
            let inputs: Vec<Array> = program.inputs().iter().map(|t| random_array(&mut source, t, false)).collect();
            let (want, have) = (interpret(program, &inputs), interpret(fast, &inputs));
            let agree = match (&want, &have) {
                (Ok(want), Ok(have)) => want.len() == have.len() && want.iter().zip(have).all(|(a, b)| same(a, b)),
                (Err(want), Err(have)) => want.kind() == have.kind(),
                _ => false,
            };
            if !agree {
                return Err(format!("on {inputs:?} it gave {want:?} before and gives {have:?} now\n{fast}"));
            }
        }
    }
    Ok(())
}

fn differentiated(case: &Case) -> Result<String, String> {
    let p = program(case)?;
    match jvp(&p, &case.flags("jvp", "active", p.inputs().len())?) {
        Ok((derivative, varies)) => {
            let derivative = if case.directives("optimize").next() == Some("after") {
                optimize(&derivative).map_err(|e| e.to_string())?
            } else {
                derivative
            };
            Ok(format!("varies {varies:?}\n{}", checked_text(&derivative)?))
        }
        Err(e) => Ok(format!("{e}\n")),
    }
}

fn reversed(case: &Case) -> Result<String, String> {
    let p = program(case)?;
    match vjp(&p, &case.flags("vjp", "active", p.inputs().len())?) {
        Ok(l) => Ok(format!("varies {:?}\n{}{}", l.varies, checked_text(&l.primal)?, checked_text(&l.linear)?)),
        Err(e) => Ok(format!("{e}\n")),
    }
}

fn batched(case: &Case) -> Result<String, String> {
    let p = program(case)?;
    let size: Dim = case.setting("vmap", "size")?.parse().map_err(|e| format!("size: {e}"))?;
    match vmap(&p, &case.flags("vmap", "batched", p.inputs().len())?, &size) {
        Ok(over) => checked_text(&over),
        Err(e) => Ok(format!("{e}\n")),
    }
}

fn split(case: &Case) -> Result<String, String> {
    let p = program(case)?;
    let parts = partial_eval(&p, &case.flags("partial_eval", "known", p.inputs().len())?).map_err(|e| e.to_string())?;
    let (known, unknown) = (checked_text(&parts.known)?, checked_text(&parts.unknown)?);
    Ok(format!("known outputs {:?}, residuals {:?}\n{known}{unknown}", parts.known_outputs, parts.residuals))
}

fn interpreted(case: &Case) -> Result<String, String> {
    let program = program(case)?;
    match interpret(&program, &inputs(case)?) {
        Err(e) => Ok(format!("{e}\n")),
        Ok(outputs) => {
            let mut text = String::new();
            for output in &outputs {
                let _ = writeln!(text, "{}", constant_text(output)?);
            }
            Ok(text)
        }
    }
}

file_tests! {
    stage_parse "parse" parse;
    stage_parse_errors "parse_errors" parse_errors;
    stage_verify_errors "verify_errors" verify_errors;
    stage_optimize "optimize" optimized;
    stage_execution "execution" executed;
    stage_contract "contract" contracted;
    stage_jvp "jvp" differentiated;
    stage_vjp "vjp" reversed;
    stage_vmap "vmap" batched;
    stage_partial_eval "partial_eval" split;
    stage_interpret "interpret" interpreted;
}

#[test]
fn a_malformed_file_fails() {
    let refused = |text: &str| Case::read(text).err().unwrap();
    assert!(refused("").contains("does not say what it shows"));
    assert!(refused("fn f() -> () {\n  return\n}\n---\nfn f").contains("does not say what it shows"));
    assert!(refused("# words\nfn f() -> () {\n  return\n}\n").contains("one line `---`"));
    assert!(refused("# words\na\n---\nb\n---\nc\n").contains("not 2"));
    assert!(refused("# words\n---\nb\n").contains("no input"));
    let case = Case::read("# words\n# jvp active=[true,maybe]\nfn f() -> () {\n  return\n}\n---\n").unwrap();
    assert!(case.flags("jvp", "active", 2).unwrap_err().contains("maybe"));
    assert!(case.flags("vjp", "active", 2).unwrap_err().contains("needs a line"));
    assert!(case.expected.is_empty());
}

#[test]
fn a_file_without_a_check_or_with_another_result_fails_and_blessing_mends_it() {
    let path = std::env::temp_dir().join(format!("gradus-file-test-{}.txt", std::process::id()));
    let input = "# words\nfn f(x0: f64[2]) -> f64[2] {\n  x1: f64[2] = sin x0\n  return x1\n}\n---\n";
    std::fs::write(&path, input).unwrap();
    assert!(run_file(&path, parse, false).unwrap_err().contains("has no check"));
    std::fs::write(&path, format!("{input}fn f(x0: f64[2]) -> f64[2] {{\n  return x0\n}}\n")).unwrap();
    let difference = run_file(&path, parse, false).unwrap_err();
    assert!(difference.contains("-   return x0\n+   x1: f64[2] = sin x0\n+   return x1\n"), "{difference}");
    run_file(&path, parse, true).unwrap();
    run_file(&path, parse, false).unwrap();
    std::fs::remove_file(&path).unwrap();
}
