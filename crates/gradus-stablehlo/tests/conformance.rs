//! The public test files of StableHLO: each is read, imported, run and held against the values that it says itself.
//!
//! `GRADUS_STABLEHLO_DATA` names the folder that holds `testdata` and `tests/interpret`; `GRADUS_STABLEHLO_ONLY` keeps the files whose names contain it,
//! `GRADUS_STABLEHLO_BACKEND=interpreter` leaves out the compiled run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use gradus_core::pipeline::Pipeline;
use gradus_core::{Array, ErrorKind, Interpreter};
use gradus_cpu::{Cpu, Tier};
use gradus_stablehlo::module::{Attribute, Function, Module, Operation, Region, Visibility};
use gradus_stablehlo::{Imported, import_function, read};

/// What became of a file.
enum Outcome {
    Passed,
    /// Nothing in it can be run: no function without arguments. It became a program all the same.
    Imported,
    Refused(String),
    Failed(String),
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return all };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "mlir") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// The kind of a file, as the table of goals counts them.
fn kind(path: &Path, text: &str) -> &'static str {
    let path = path.to_string_lossy();
    let disabled = text.lines().take(3).any(|l| l.contains("RUN-DISABLED"));
    match () {
        () if path.contains("/quantized/") || path.contains("quantized_ops") => "quantized",
        () if path.contains("/interpret/") && text.contains("interpreter.run_parallel") => "interpret, collective",
        () if path.contains("/interpret/") => "interpret",
        () if path.contains("/dynamic/") || text.contains("tensor<?") => "dynamic",
        () if disabled => "disabled upstream",
        () if text.contains("chlo.") => "chlo",
        () => "static",
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_string()
}

fn file_name(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or(place)
}

fn run(imported: &Imported, backend: &str) -> Result<Vec<Array>, String> {
    let pipeline = match backend {
        "interpreter" => Pipeline::on(Interpreter),
        _ => Pipeline::on(Cpu::new().tier(Tier::Embedded)),
    };
    let code = pipeline.code(&imported.program).map_err(|e| format!("{backend}: compile: {e}"))?;
    code.run(&[]).map(|made| made.into_vec()).map_err(|e| format!("{backend}: run: {e}"))
}

/// The functions that a region names.
fn called(region: &Region, all: &mut Vec<String>) {
    fn named(attribute: &Attribute, all: &mut Vec<String>) {
        match attribute {
            Attribute::Symbol(path) => all.extend(path.last().cloned()),
            Attribute::Array(items) => items.iter().for_each(|a| named(a, all)),
            _ => {}
        }
    }
    fn inside(op: &Operation, all: &mut Vec<String>) {
        op.attributes.iter().for_each(|(_, a)| named(a, all));
        op.regions.iter().for_each(|r| called(r, all));
    }
    region.operations.iter().for_each(|op| inside(op, all));
}

/// The functions of a module that are tests: those without arguments that no other calls; `@main` if there is one.
fn tests_of(module: &Module) -> Vec<&Function> {
    if let Some(main) = module.functions.iter().find(|f| f.name == "main") {
        return Vec::from_iter((main.body.arguments.is_empty()).then_some(main));
    }
    let mut names = Vec::new();
    module.functions.iter().for_each(|f| called(&f.body, &mut names));
    let free =
        |f: &&Function| f.visibility != Visibility::Private && f.body.arguments.is_empty() && !names.contains(&f.name);
    module.functions.iter().filter(free).collect()
}

fn one_file(path: &Path, text: &str, backends: &[&str]) -> Outcome {
    let modules = match read(&path.to_string_lossy(), text) {
        Ok(modules) => modules,
        Err(e) => return Outcome::Failed(format!("read: {} at {}", first_line(e.message()), e.place())),
    };
    let mut ran = 0;
    for module in &modules {
        // A function of unknown sizes has no numbers to compare, but must become a program.
        if let Some(main) = module.functions.iter().find(|f| f.name == "main" && !f.body.arguments.is_empty())
            && let Err(e) = import_function(module, &main.name)
        {
            return Outcome::Refused(format!("{} at {}", first_line(e.message()), file_name(&e.place().to_string())));
        }
        for function in tests_of(module) {
            let imported = match import_function(module, &function.name) {
                Ok(imported) => imported,
                Err(e) => {
                    let text = format!("{} at {}", first_line(e.message()), file_name(&e.place().to_string()));
                    let refused = matches!(e.kind(), ErrorKind::MissingRule | ErrorKind::DType);
                    return if refused { Outcome::Refused(text) } else { Outcome::Failed(format!("import: {text}")) };
                }
            };
            for backend in backends {
                let outputs = match run(&imported, backend) {
                    Ok(outputs) => outputs,
                    Err(e) => return Outcome::Failed(e.lines().take(2).collect::<Vec<_>>().join(" ")),
                };
                // Upstream counts a function that only has to run.
                ran += 1;
                for check in &imported.checks {
                    let place = check.place.to_string();
                    match check.compare(&outputs) {
                        Ok(None) => {}
                        Ok(Some(why)) => return Outcome::Failed(format!("{backend}: {why} at {}", file_name(&place))),
                        Err(e) => return Outcome::Failed(format!("{backend}: {}", first_line(&e.to_string()))),
                    }
                }
            }
        }
    }
    if ran == 0 { Outcome::Imported } else { Outcome::Passed }
}

#[test]
fn public_files_run_and_agree_with_their_values() {
    let Some(folder) = std::env::var_os("GRADUS_STABLEHLO_DATA").map(PathBuf::from) else {
        println!("NOT RUN: GRADUS_STABLEHLO_DATA does not name a folder with StableHLO's test files");
        return;
    };
    let only = std::env::var("GRADUS_STABLEHLO_ONLY").unwrap_or_default();
    let backends: &[&str] = match std::env::var("GRADUS_STABLEHLO_BACKEND").as_deref() {
        Ok("interpreter") => &["interpreter"],
        Ok("embedded") => &["embedded"],
        _ => &["interpreter", "embedded"],
    };
    let mut paths = files(&folder.join("testdata"));
    paths.extend(files(&folder.join("tests").join("interpret")));
    paths.retain(|p| p.to_string_lossy().contains(&only));
    let mut table: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut reasons: Vec<String> = Vec::new();
    let mut failures = 0;
    for path in &paths {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let kind = kind(path, &text);
        let began = std::time::Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| one_file(path, &text, backends))).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
            Outcome::Failed(format!("a panic: {}", said.unwrap_or_default()))
        });
        let name = file_name(&path.to_string_lossy()).to_string();
        if began.elapsed().as_secs() >= 5 {
            reasons.push(format!("SLOW [{kind}] {name}: {:.1} s", began.elapsed().as_secs_f64()));
        }
        let row = table.entry(kind).or_default();
        match outcome {
            Outcome::Passed => row[0] += 1,
            Outcome::Imported => {
                row[1] += 1;
                if kind != "dynamic" {
                    reasons.push(format!("imported [{kind}] {name}"));
                }
            }
            Outcome::Refused(why) => {
                row[2] += 1;
                reasons.push(format!("refused [{kind}] {name}: {why}"));
            }
            Outcome::Failed(why) => {
                row[3] += 1;
                failures += usize::from(!kind.contains("disabled"));
                reasons.push(format!("FAILED [{kind}] {name}: {why}"));
            }
        }
    }
    reasons.sort();
    for why in &reasons {
        println!("{why}");
    }
    println!("{:<28} {:>7} {:>9} {:>8} {:>7}", "kind", "passed", "imported", "refused", "failed");
    for (kind, [passed, read, refused, failed]) in &table {
        println!("{kind:<28} {passed:>7} {read:>9} {refused:>8} {failed:>7}");
    }
    assert_eq!(failures, 0, "files that are not refused agree with their values");
}
