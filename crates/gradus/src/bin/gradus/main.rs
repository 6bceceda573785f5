//! The command line: shows the phases of a program that is written as text, converts it from and to StableHLO, runs folders of test files, and says what an error's code
//! means.

#[cfg(all(feature = "stablehlo", feature = "npy"))]
mod conformance;
#[cfg(feature = "stablehlo")]
mod stablehlo;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use gradus::Interpreter;
use gradus::cpu::Cpu;
use gradus::extend::oracle::Reproduction;
use gradus::extend::phases::{Phase, watch};
use gradus::extend::pipeline::Pipeline;
use gradus::extend::{Backend, transform};
use gradus::prelude::*;

const USAGE: &str = "usage: gradus phases FILE [--jvp | --vjp | --vmap N]
       gradus verify FOLDER
       gradus explain CODE
       gradus stablehlo FILE [--import] [--precision=highest|high|default] [--accuracy=native|gradus]
       gradus conformance DIR [--backend interpreter|embedded|llvm|native|pjrt:NAME] [--json FILE]

`explain` shows the page on an error, such as G0006.

`verify` runs a reproduction that `jit(f).verify()` wrote again, on every tier, and shows which differ from the interpreter.

`phases` reads a program as text and shows what becomes of it, phase by phase, with times and sizes.
  --jvp     its forward derivative by every float input
  --vjp     its two halves of reverse mode
  --vmap N  the program over a batch of N examples
FILE may be `-` for standard input.

`stablehlo` makes StableHLO of a program as text; with `--import` a program of StableHLO, as text or as portable bytecode.

`conformance` runs every StableHLO test file below a folder, and every exported program with its inputs and results (`f.mlir` beside `f.npz`), in processes
of their own, and prints what passed, failed and was refused, with the reasons.";

/// What a command prints, or what is wrong.
type Answer = std::result::Result<String, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// A file's text; `-` is the standard input.
fn read(file: &str) -> Answer {
    let text = match file {
        "-" => std::io::read_to_string(std::io::stdin()),
        path => std::fs::read_to_string(path),
    };
    text.map_err(|e| format!("cannot read {file}: {e}"))
}

fn run(arguments: &[String]) -> Answer {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (file, transformation) = match words.as_slice() {
        ["explain", code] => return gradus::extend::error_page(code).map(str::to_string).ok_or_else(|| unknown(code)),
        ["verify", folder] => return verify(folder),
        #[cfg(feature = "stablehlo")]
        ["stablehlo", rest @ ..] => return stablehlo::run(rest),
        #[cfg(all(feature = "stablehlo", feature = "npy"))]
        ["conformance", rest @ ..] => return conformance::run(rest),
        ["phases", file, rest @ ..] => (*file, rest),
        _ => return Err(USAGE.to_string()),
    };
    let text = read(file)?;
    let (result, phases) = watch(|| show(&text, transformation));
    result.map_err(|e| if e.is_empty() { USAGE.to_string() } else { e })?;
    Ok(phases.iter().map(|p| p.to_string()).collect())
}

/// Runs a reproduction on every tier. That one differs is a failure, and so is one that does not run.
fn verify(folder: &str) -> Answer {
    let reproduction = Reproduction::read(folder.as_ref()).map_err(|e| e.to_string())?;
    let backends: [(&str, Arc<dyn Backend>); 3] = [
        ("interpreter, optimized", Arc::new(Interpreter)),
        ("embedded", Arc::new(Cpu::new().tier(Tier::Embedded))),
        ("llvm", Arc::new(Cpu::new().tier(Tier::Llvm))),
    ];
    let (mut text, mut wrong) = (String::new(), false);
    for (name, backend) in backends {
        if name == "llvm" && backend.about().starts_with("the embedded one alone") {
            text += &format!("{name}: not here\n");
            continue;
        }
        let found = reproduction.run(backend);
        wrong |= !matches!(found, Ok(None));
        text += &match found {
            Ok(None) => format!("{name}: the same\n"),
            Ok(Some((output, d))) => format!(
                "{name}: output {output} at {:?} is {}, and {} by the interpreter; {} of {} elements differ\n",
                d.at, d.have, d.want, d.count, d.of
            ),
            Err(e) => format!("{name}: {e}\n"),
        };
    }
    if wrong { Err(text) } else { Ok(text) }
}

fn unknown(code: &str) -> String {
    let codes: Vec<&str> = gradus::ErrorKind::ALL.iter().map(|k| k.code()).collect();
    format!("there is no error `{code}`; the codes are {}", codes.join(", "))
}

fn show(text: &str, transformation: &[&str]) -> std::result::Result<(), String> {
    let started = Instant::now();
    let program: Program = text.parse().map_err(|e: Error| e.to_string())?;
    let time = started.elapsed();
    gradus::extend::phases::report(|| Phase::new("parse", &[&program], time));
    let active: Vec<bool> = program.inputs().iter().map(|t| t.dtype().is_inexact()).collect();
    let fail = |e: Error| e.to_string();
    let made = match transformation {
        [] => vec![program],
        ["--jvp"] => vec![transform::jvp(&program, &active).map_err(fail)?.0],
        ["--vjp"] => {
            let halves = transform::vjp(&program, &active).map_err(fail)?;
            vec![halves.primal, halves.linear]
        }
        ["--vmap", n] => {
            let n: usize = n.parse().map_err(|_| String::new())?;
            let batched = vec![true; program.inputs().len()];
            vec![transform::vmap(&program, &batched, &Dim::from(n)).map_err(fail)?]
        }
        _ => return Err(String::new()),
    };
    let pipeline = Pipeline::on(Cpu::default());
    made.iter().try_for_each(|program| pipeline.code(program).map(|_| ())).map_err(fail)
}
