//! How fast text and bytecode are read: files or folders of `.mlir` and `.bc` as arguments, or two made-up texts without any. Prints what does not read or is
//! no module of StableHLO.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gradus_stablehlo::{is_bytecode, read, read_bytecode, verify};

fn files(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        entries.sort();
        entries.iter().for_each(|p| files(p, into));
    } else if path.extension().is_some_and(|e| e == "mlir" || e == "bc") {
        into.push(path.to_owned());
    }
}

fn main() {
    let mut paths = Vec::new();
    std::env::args().skip(1).for_each(|a| files(Path::new(&a), &mut paths));
    if paths.is_empty() {
        made_up();
        return;
    }
    let (mut bytes, mut time, mut wrong) = (0, Duration::ZERO, 0);
    for path in &paths {
        let Ok(content) = std::fs::read(path) else { continue };
        let name = path.display().to_string();
        let start = Instant::now();
        let result = if is_bytecode(&content) {
            read_bytecode(&name, &content).map(|module| vec![module])
        } else {
            read(&name, &String::from_utf8_lossy(&content))
        };
        time += start.elapsed();
        bytes += content.len();
        if let Err(error) = result.and_then(|modules| modules.iter().try_for_each(verify)) {
            wrong += 1;
            println!("{}", error.message());
        }
    }
    println!(
        "{} files, {wrong} wrong, {:.1} MB, {:.1} MB/s",
        paths.len(),
        bytes as f64 / 1e6,
        bytes as f64 / 1e6 / time.as_secs_f64()
    );
}

/// Many operations, and many bytes of constants.
fn made_up() {
    let line = |i: usize| {
        format!(
            "    %{} = stablehlo.add %{i}, %0 : tensor<8x16xf32> loc(#loc1)\n    %b{i} = stablehlo.broadcast_in_dim %{i}, dims = [0, 1] : (tensor<8x16xf32>) -> tensor<8x16x4xf32>\n",
            i + 1
        )
    };
    for n in [2_000, 20_000, 200_000] {
        let body: String = (0..n).map(line).collect();
        let text = format!(
            "module {{\n  func.func @main(%0: tensor<8x16xf32>) -> tensor<8x16xf32> {{\n{body}    return %{n} : tensor<8x16xf32>\n  }}\n}}\n"
        );
        measure(&format!("{} operations", 2 * n), &text);
        let text = format!(
            "func.func @main() -> tensor<{n}xf32> {{\n  %0 = stablehlo.constant dense<\"0x{}\"> : tensor<{n}xf32>\n  return %0 : tensor<{n}xf32>\n}}\n",
            "3F80A1b2".repeat(n)
        );
        measure(&format!("{n} numbers in hex"), &text);
        let text = format!(
            "func.func @main() -> tensor<{n}xf32> {{\n  %0 = stablehlo.constant dense<[{}1.0]> : tensor<{n}xf32>\n  return %0 : tensor<{n}xf32>\n}}\n",
            "-1.234567e+00, ".repeat(n - 1)
        );
        measure(&format!("{n} numbers in decimal"), &text);
    }
}

fn measure(what: &str, text: &str) {
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            let modules = read("made up", text).expect("it reads");
            let time = start.elapsed();
            assert_eq!(modules.len(), 1);
            time
        })
        .min()
        .unwrap_or_default();
    println!("{what}: {:.2} MB, {:.1} MB/s", text.len() as f64 / 1e6, text.len() as f64 / 1e6 / best.as_secs_f64());
}
