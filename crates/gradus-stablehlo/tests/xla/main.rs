//! Every primitive's samples on XLA's CPU, held against the interpreter within bounds by operation. XLA comes with Python: `GRADUS_XLA_PYTHON` names an
//! interpreter that has `jax`.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use gradus_core::primitives::{BUILT_IN, Sample};
use gradus_core::program::{Atom, Builder};
use gradus_core::testing::RandomProgram;
use gradus_core::types::Data;
use gradus_core::{Array, Location, Program, interpret};
use gradus_stablehlo::{Export, stablehlo_text};

/// Units in the last place that XLA may be off by, from `numerics.txt` and from these samples.
fn tolerance(name: &str) -> f64 {
    match name {
        "erf_inv" | "erfc" => 128.0,
        "lgamma" | "digamma" | "polygamma" => 1e5,
        "log1p" | "atanh" => 256.0,
        "sinh" | "cosh" | "tan" | "tanh" | "expm1" | "logistic" | "pow" => 256.0,
        "fft" | "convolve" | "dot_general" => 256.0,
        "cholesky" | "triangular_solve" | "solve" | "lu" | "slogdet" | "pinv" | "eigh" | "svd" | "qr" => 1e5,
        "random" => f64::INFINITY,
        _ => 16.0,
    }
}

fn program_of(sample: &Sample) -> Program {
    let mut b = Builder::new(sample.op.name());
    let inputs: Vec<Atom> = sample.inputs.iter().map(|x| b.input(x.ty().unwrap().clone()).unwrap().into()).collect();
    let results = b.equation(sample.op.clone(), &inputs, Location::unknown()).unwrap().results();
    let results: Vec<Atom> = results.map(Atom::from).collect();
    b.finish(results)
}

fn bytes(x: &Array) -> Vec<u8> {
    let dense = x.concrete().unwrap().try_dense().unwrap();
    macro_rules! little {
        ($v:expr) => {
            $v.iter().flat_map(|x| x.to_le_bytes()).collect()
        };
    }
    macro_rules! pairs {
        ($v:expr) => {
            $v.iter().flat_map(|z| [z.re.to_le_bytes(), z.im.to_le_bytes()]).flatten().collect()
        };
    }
    let all: Vec<u8> = match &**dense.data() {
        Data::Bool(v) => v.iter().map(|b| u8::from(*b)).collect(),
        Data::I8(v) => little!(v),
        Data::I16(v) => little!(v),
        Data::I32(v) => little!(v),
        Data::I64(v) => little!(v),
        Data::U8(v) => little!(v),
        Data::U16(v) => little!(v),
        Data::U32(v) => little!(v),
        Data::U64(v) => little!(v),
        Data::F16(v) => little!(v),
        Data::BF16(v) => little!(v),
        Data::F32(v) => little!(v),
        Data::F64(v) => little!(v),
        Data::C64(v) => pairs!(v),
        Data::C128(v) => pairs!(v),
        Data::Key(v) => v.iter().flat_map(|k| k.0.to_le_bytes()).collect(),
    };
    let size = x.dtype().size();
    all[dense.offset() * size..][..dense.count() * size].to_vec()
}

/// Writes a program, its inputs and what the interpreter makes of them; gives its line.
fn case(folder: &Path, name: &str, program: &Program, inputs: &[Array], options: &Export) -> Result<String, String> {
    let text = stablehlo_text(program, options).map_err(|e| e.to_string())?;
    std::fs::write(folder.join(format!("{name}.mlir")), text).unwrap();
    let outputs = interpret(program, inputs).map_err(|e| e.to_string())?;
    let kind = name.rsplit_once('-').map_or(name, |(k, _)| k);
    let mut line = format!("{name}\t{name}.mlir\t{}", tolerance(kind));
    for (i, (way, x)) in inputs.iter().map(|x| ("in", x)).chain(outputs.iter().map(|x| ("out", x))).enumerate() {
        let file = format!("{name}.{i}.bin");
        std::fs::write(folder.join(&file), bytes(x)).unwrap();
        let dims: Vec<String> = x.known_dims().unwrap().iter().map(usize::to_string).collect();
        write!(line, "\t{way}\t{}\t{}\t{file}", x.dtype(), dims.join(",")).unwrap();
    }
    Ok(line)
}

#[test]
fn samples_run_on_xla() {
    let Ok(python) = std::env::var("GRADUS_XLA_PYTHON") else {
        println!("NOT RUN: samples on XLA: GRADUS_XLA_PYTHON names no Python that has jax");
        return;
    };
    let folder = std::env::temp_dir().join(format!("gradus-xla-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut lines = String::new();
    let mut refused = Vec::new();
    let only = std::env::var("GRADUS_XLA_ONLY").unwrap_or_default();
    for entry in BUILT_IN.iter().filter(|e| only.is_empty() || only.split(',').any(|o| o == e.name)) {
        for (i, sample) in (entry.samples)().iter().enumerate() {
            let name = format!("{}-{i}", entry.name);
            match case(&folder, &name, &program_of(sample), &sample.inputs, &Export::default()) {
                Ok(line) => writeln!(lines, "{line}").unwrap(),
                Err(e) => refused.push(format!("{name}: {e}")),
            }
        }
    }
    // Of random programs it is asked that XLA takes and runs them: what they compute is as far off as rounding can carry it.
    for seed in (0..60).filter(|_| only.is_empty()) {
        let random = RandomProgram::from_seed(seed);
        if ["eig", "schur"].iter().any(|name| random.program.count(name) > 0) {
            continue;
        }
        match case(&folder, &format!("random-{seed}"), &random.program, &random.inputs, &Export::default()) {
            Ok(line) => writeln!(lines, "{line}").unwrap(),
            Err(e) => refused.push(format!("random-{seed}: {e}")),
        }
    }
    std::fs::write(folder.join("cases.txt"), lines).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xla/run.py");
    let done = Command::new(python).arg(script).arg(&folder).output().unwrap();
    println!("{}", String::from_utf8_lossy(&done.stdout));
    if !done.status.success() {
        println!("{}", String::from_utf8_lossy(&done.stderr).lines().rev().take(20).collect::<Vec<_>>().join("\n"));
    }
    refused.retain(|r| !r.starts_with("eig-") && !r.starts_with("schur-"));
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(done.status.success(), "see {}", folder.display());
    std::fs::remove_dir_all(&folder).unwrap();
}
