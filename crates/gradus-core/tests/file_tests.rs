//! File tests: program text in, text out, one folder of `tests/files` for each stage.
//!
//! A file has lines of explanation and directives that start with `#`, the input, a line `---`, and what is expected.
//! `GRADUS_BLESS=1` (or `cargo xtask bless`) writes what comes out as what is expected; look at the difference before
//! you commit it. A file that is empty or malformed, or one
//! without a check, fails.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use gradus_core::array::Concrete;
use gradus_core::optimize::{CONTRACT, Exactness, for_execution, optimize, run_passes};
use gradus_core::program::{Builder, Constant, verify};
use gradus_core::testing::{Source, random_array};
use gradus_core::transform::{jvp, partial_eval, vjp, vmap};
use gradus_core::{Array, Dim, ErrorKind, Program, Scalar, interpret};

/// The stages: a folder each, and what is done with the files in it.
const STAGES: &[(&str, Run)] = &[
    ("parse", parse),
    ("parse_errors", parse_errors),
    ("verify_errors", verify_errors),
    ("optimize", optimized),
    ("execution", executed),
    ("contract", contracted),
    ("jvp", differentiated),
    ("vjp", reversed),
    ("vmap", batched),
    ("partial_eval", split),
    ("interpret", interpreted),
];

type Run = fn(&Case) -> Result<String, String>;

/// A test file, taken apart.
struct Case {
    /// The lines that start with `#`, as they stand.
    header: Vec<String>,
    input: String,
    expected: String,
}

impl Case {
    fn read(text: &str) -> Result<Case, String> {
        let header: Vec<String> = text.lines().take_while(|l| l.starts_with('#')).map(str::to_owned).collect();
        if header.is_empty() {
            return Err("the file does not say what it shows: it has to start with a line `# ...`".into());
        }
        let rest: Vec<&str> = text.lines().skip(header.len()).collect();
        let marks: Vec<usize> = (0..rest.len()).filter(|i| rest[*i] == "---").collect();
        let [mark] = marks[..] else {
            return Err(format!("one line `---` between input and output is wanted, not {}", marks.len()));
        };
        let join = |lines: &[&str]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
        let case = Case { header, input: join(&rest[..mark]), expected: join(&rest[mark + 1..]) };
        if case.input.trim().is_empty() {
            return Err("there is no input before the line `---`".into());
        }
        Ok(case)
    }

    fn write(&self, output: &str) -> String {
        let header: String = self.header.iter().map(|l| format!("{l}\n")).collect();
        format!("{header}{}---\n{output}", self.input)
    }

    /// What stands behind `# name` in the header, for each such line.
    fn directives<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.header
            .iter()
            .filter_map(move |l| l.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(' '))
            .map(str::trim)
    }

    /// The value of `key=value` in the directive of this name.
    fn setting(&self, name: &str, key: &str) -> Result<String, String> {
        let found =
            self.directives(name).flat_map(str::split_whitespace).find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
        found.map(str::to_owned).ok_or_else(|| format!("the file needs a line `# {name} {key}=...`"))
    }

    fn flags(&self, name: &str, key: &str, count: usize) -> Result<Vec<bool>, String> {
        let text = self.setting(name, key)?;
        let list = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).ok_or(format!("`{text}` is not a list"))?;
        let flags: Vec<bool> = list
            .split(',')
            .filter(|w| !w.is_empty())
            .map(|w| w.parse().map_err(|_| format!("`{w}` is neither true nor false")))
            .collect::<Result<_, String>>()?;
        match flags.len() == count {
            true => Ok(flags),
            false => Err(format!("{} flags for a program with {count} inputs", flags.len())),
        }
    }

    fn program(&self) -> Result<Program, String> {
        self.input.parse().map_err(|e| format!("the input is not a program: {e}"))
    }

    /// The arrays of the lines `# input [1.0,2.0]:f64[2]`, written like constants in a program.
    fn inputs(&self) -> Result<Vec<Array>, String> {
        self.directives("input").map(literal).collect()
    }
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
    checked_text(&case.program()?)
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
    let program = case.program()?;
    let fast = optimize(&program).map_err(|e| e.to_string())?;
    same_results(&program, &fast, same_numbers)?;
    checked_text(&fast)
}

/// The program that a compiler is given. `# order of sums` in the file says that sums may round differently, `# relaxed` that
/// the user allows what only changes NaN, infinities, zeros and last bits.
fn executed(case: &Case) -> Result<String, String> {
    let program = case.program()?;
    let says = |words: &str| case.header.iter().any(|l| l.trim_start_matches("# ") == words);
    let exactness = if says("relaxed") { Exactness::Relaxed } else { Exactness::Exact };
    let fast = for_execution(&program, exactness).map_err(|e| e.to_string())?;
    let same = match (says("relaxed"), says("order of sums")) {
        (true, _) => close_where_finite,
        (_, true) => close_numbers,
        _ => same_numbers,
    };
    same_results(&program, &fast, same)?;
    checked_text(&fast)
}

/// The program with products taken into sums.
fn contracted(case: &Case) -> Result<String, String> {
    let program = case.program()?;
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
    let p = case.program()?;
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
    let p = case.program()?;
    match vjp(&p, &case.flags("vjp", "active", p.inputs().len())?) {
        Ok(l) => Ok(format!("varies {:?}\n{}{}", l.varies, checked_text(&l.primal)?, checked_text(&l.linear)?)),
        Err(e) => Ok(format!("{e}\n")),
    }
}

fn batched(case: &Case) -> Result<String, String> {
    let p = case.program()?;
    let size: Dim = case.setting("vmap", "size")?.parse().map_err(|e| format!("size: {e}"))?;
    match vmap(&p, &case.flags("vmap", "batched", p.inputs().len())?, &size) {
        Ok(over) => checked_text(&over),
        Err(e) => Ok(format!("{e}\n")),
    }
}

fn split(case: &Case) -> Result<String, String> {
    let p = case.program()?;
    let parts = partial_eval(&p, &case.flags("partial_eval", "known", p.inputs().len())?).map_err(|e| e.to_string())?;
    let (known, unknown) = (checked_text(&parts.known)?, checked_text(&parts.unknown)?);
    Ok(format!("known outputs {:?}, residuals {:?}\n{known}{unknown}", parts.known_outputs, parts.residuals))
}

fn interpreted(case: &Case) -> Result<String, String> {
    let program = case.program()?;
    match interpret(&program, &case.inputs()?) {
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

/// Runs one file. What comes back is what is wrong with it.
fn run_file(path: &Path, run: Run, bless: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let case = Case::read(&text)?;
    // Positions in error messages count in the input; places in this crate's source would change with every edit.
    let output: String = run(&case)?.lines().filter(|l| !l.starts_with("  at ")).map(|l| format!("{l}\n")).collect();
    if output.trim().is_empty() {
        return Err("the stage gave nothing to compare".into());
    }
    if bless {
        return std::fs::write(path, case.write(&output)).map_err(|e| e.to_string());
    }
    if case.expected.trim().is_empty() {
        return Err("the file expects nothing: it has no check (run with GRADUS_BLESS=1 to write one)".into());
    }
    match case.expected == output {
        true => Ok(()),
        false => Err(format!("- expected, + found\n{}", diff(&case.expected, &output))),
    }
}

/// Lines that differ, and those around them, by the longest common subsequence.
fn diff(old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut common = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = match a[i] == b[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, String::new());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            let _ = writeln!(out, "  {}", a[i]);
            (i, j) = (i + 1, j + 1);
        } else if j >= b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(out, "- {}", a[i]);
            i += 1;
        } else {
            let _ = writeln!(out, "+ {}", b[j]);
            j += 1;
        }
    }
    out
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("files")
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

fn run_stage(name: &str) {
    let (_, run) = STAGES.iter().find(|(stage, _)| *stage == name).unwrap();
    let bless = std::env::var_os("GRADUS_BLESS").is_some_and(|v| v == "1");
    let files = entries(&folder().join(name));
    assert!(!files.is_empty(), "no files for the stage `{name}`");
    let mut failures = String::new();
    for path in &files {
        let result = match path.extension().is_some_and(|e| e == "txt") {
            true => run_file(path, *run, bless),
            false => Err("a test file ends in .txt".into()),
        };
        if let Err(what) = result {
            let _ = writeln!(failures, "{}/{}: {what}", name, path.file_name().unwrap().to_string_lossy());
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

macro_rules! stage_tests {
    ($($name:ident $stage:literal;)*) => {
        $(
            #[test]
            fn $name() {
                run_stage($stage);
            }
        )*

        #[test]
        fn every_folder_is_a_stage_and_every_stage_has_a_test() {
            let tested = [$($stage),*];
            for (stage, _) in STAGES {
                assert!(tested.contains(stage), "the stage `{stage}` has no test");
            }
            for path in entries(&folder()) {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                assert!(tested.contains(&name.as_str()), "`{name}` is not a stage");
            }
        }
    };
}
stage_tests! {
    stage_parse "parse";
    stage_parse_errors "parse_errors";
    stage_verify_errors "verify_errors";
    stage_optimize "optimize";
    stage_execution "execution";
    stage_contract "contract";
    stage_jvp "jvp";
    stage_vjp "vjp";
    stage_vmap "vmap";
    stage_partial_eval "partial_eval";
    stage_interpret "interpret";
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
