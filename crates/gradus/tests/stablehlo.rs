//! Programs from elsewhere and to elsewhere, as users meet them: import, `fun`, export, and the command line.

use std::path::{Path, PathBuf};
use std::process::Command;

use gradus::prelude::*;
use gradus::stablehlo::{self, Accuracy, ExportOptions, Precision};

/// `f(x, y) = sin(x·y) + y`, and the sum of that.
const TWO: &str = r#"
module @two {
  func.func public @main(%x: tensor<3xf64>, %y: tensor<3xf64>) -> (tensor<3xf64>, tensor<f64>) {
    %0 = call @product(%x, %y) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %1 = stablehlo.sine %0 : tensor<3xf64>
    %2 = stablehlo.add %1, %y : tensor<3xf64>
    %zero = stablehlo.constant dense<0.0> : tensor<f64>
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3xf64>, tensor<f64>) -> tensor<f64>
    return %2, %3 : tensor<3xf64>, tensor<f64>
  }
  func.func private @product(%a: tensor<3xf64>, %b: tensor<3xf64>) -> tensor<3xf64> {
    %0 = stablehlo.multiply %a, %b : tensor<3xf64>
    return %0 : tensor<3xf64>
  }
}
"#;

fn inputs() -> (Array, Array) {
    (Array::from([0.1, -0.7, 2.0]), Array::from([1.5, 0.25, -0.5]))
}

fn expected() -> Vec<f64> {
    [(0.1_f64, 1.5_f64), (-0.7, 0.25), (2.0, -0.5)].iter().map(|(x, y)| (x * y).sin() + y).collect()
}

fn close(have: &[f64], want: &[f64]) {
    assert_eq!(have.len(), want.len());
    assert!(have.iter().zip(want).all(|(h, w)| (h - w).abs() < 1e-12), "{have:?} {want:?}");
}

#[test]
fn an_imported_program_is_a_function() {
    let imported = stablehlo::import(TWO).unwrap();
    assert_eq!(imported.program().inputs().len(), 2);
    let (x, y) = inputs();
    let outputs = imported.call(&[x.clone(), y.clone()]).unwrap();
    close(&outputs[0].to_vec::<f64>().unwrap(), &expected());
    let f = imported.fun::<(Array, Array), (Array, Array)>().unwrap();
    let (z, sum) = f(&x, &y);
    close(&z.to_vec::<f64>().unwrap(), &expected());
    close(&[sum.item::<f64>().unwrap()], &[expected().iter().sum()]);
    // A tree of the user's, as long as it has as many arrays.
    let g = imported.fun::<((Array, Array),), [Array; 2]>().unwrap();
    close(&g(&(x, y))[0].to_vec::<f64>().unwrap(), &expected());
}

#[test]
fn row_r3_an_imported_program_is_differentiated_batched_and_staged_like_any_other() {
    let f = stablehlo::import(TWO).unwrap().fun::<(Array, Array), (Array, Array)>().unwrap();
    let (x, y) = inputs();
    let sum = {
        let f = f.clone();
        move |x: &Array, y: &Array| f(x, y).1
    };
    let want: Vec<f64> =
        [(0.1_f64, 1.5_f64), (-0.7, 0.25), (2.0, -0.5)].iter().map(|(x, y)| (x * y).cos() * y).collect();
    close(&grad(sum.clone())(&x, &y).to_vec::<f64>().unwrap(), &want);
    close(&jit(grad(sum.clone()))(&x, &y).to_vec::<f64>().unwrap(), &want);
    let at = y.clone();
    check_grads(move |x: &Array| sum(x, &at), &x, 2).unwrap_or_else(|e| panic!("{e}"));
    let rows = Array::from([[0.1, -0.7, 2.0], [0.0, 0.0, 0.0]]);
    let batched = vmap(f).axes((Some(0), None))(&rows, &y).0;
    close(&batched.index(0).to_vec::<f64>().unwrap(), &expected());
    close(&batched.index(1).to_vec::<f64>().unwrap(), &[1.5, 0.25, -0.5]);
}

#[test]
fn what_does_not_fit_is_said() {
    let imported = stablehlo::import(TWO).unwrap();
    let text = |e: Error| e.to_string();
    let e = text(imported.fun::<(Array,), (Array, Array)>().err().unwrap());
    assert!(e.contains("takes 2 arrays, and the arguments have 1") && e.contains("stablehlo.rs:"), "{e}");
    assert!(e.contains("it takes (f64[3], f64[3]) and gives (f64[3], f64[])"), "{e}");
    let e = text(imported.fun::<(Array, Array), Array>().err().unwrap());
    assert!(e.contains("gives 2 arrays, and the result has 1"), "{e}");
    let e = text(imported.fun::<(Array, Array), Vec<Array>>().err().unwrap());
    assert!(e.contains("does not say how many arrays it has"), "{e}");
    let (x, y) = inputs();
    let f = imported.fun::<(Array, Array), (Array, Array)>().unwrap();
    let e = text(f(&x, &y.cast(DType::F32)).0.ok().unwrap_err());
    assert!(e.contains("input 1 of `main` is f32[3] where f64[3] is wanted"), "{e}");
    assert!(imported.call(&[x]).unwrap_err().to_string().contains("takes 2 arrays, and 1 is given"));
    let lists = imported.fun::<(Vec<Array>,), (Array, Array)>().unwrap();
    assert!(lists(&vec![y]).0.error().is_some());
}

#[test]
fn what_is_no_program_is_refused_by_line_and_name() {
    let e = stablehlo::import("module {\n  func.func @main() {\n    %0 = stablehlo.no_such_thing : tensor<f32>\n")
        .unwrap_err();
    assert!(e.to_string().contains("3:"), "{e}");
    let unknown = "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = \"other.thing\"(%x) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}";
    let e = stablehlo::import(unknown).unwrap_err().to_string();
    assert!(e.contains("other.thing") && e.contains("2:"), "{e}");
    assert!(stablehlo::import("").is_err());
    let e = stablehlo::import_file("there/is/no.mlir").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::File, "{e}");
}

#[test]
fn row_r2_functions_go_out_and_come_back() {
    let weights = Array::from((0..40).map(|i| f64::from(i) / 7.0).collect::<Vec<_>>());
    let f = {
        let weights = weights.clone();
        // Captured, and too large to be a constant of the program here: there it must be one.
        jit(move |x: &Array| (x * &weights).tanh().sum())
    };
    let x = Array::from((0..40).map(|i| f64::from(i - 20) / 9.0).collect::<Vec<_>>());
    let text = f.stablehlo(&x).unwrap();
    assert!(text.contains("func.func public @main(%arg0: tensor<40xf64>"), "{text}");
    let back = stablehlo::import(&text).unwrap().fun::<(Array,), Array>().unwrap();
    close(&[back(&x).item::<f64>().unwrap()], &[f(&x).item::<f64>().unwrap()]);
    // A gradient that was exported.
    let slope = jit(grad(move |x: &Array| (x * &weights).tanh().sum()));
    let back = stablehlo::import(&slope.stablehlo(&x).unwrap()).unwrap().fun::<(Array,), Array>().unwrap();
    close(&back(&x).to_vec::<f64>().unwrap(), &slope(&x).to_vec::<f64>().unwrap());
}

#[test]
fn sizes_that_are_symbols_stay_so() {
    let f = jit(|x: &Array| x.softmax(-1));
    let text = f.stablehlo(&Array::spec("f32[B, 4]")).unwrap();
    assert!(text.contains("tensor<?x4xf32>"), "{text}");
    let back = stablehlo::import(&text).unwrap().fun::<(Array,), Array>().unwrap();
    for b in [1_usize, 3] {
        let x = Array::ones::<f32>([b, 4]);
        let y = back(&x).to_vec::<f32>().unwrap();
        assert!(y.len() == 4 * b && y.iter().all(|v| (v - 0.25).abs() < 1e-6), "{y:?}");
    }
}

#[test]
fn sizes_of_an_outer_program_pass_through() {
    let text = jit(|x: &Array| x.sum_axes(0)).stablehlo(&Array::spec("f64[B, 2]")).unwrap();
    let f = stablehlo::import(&text).unwrap().fun::<(Array,), Array>().unwrap();
    let g = jit(grad(move |x: &Array| (f(x) * Array::from([1.0, 2.0])).sum())).symbolic("f64[N, 2]");
    for n in [1_usize, 4] {
        assert_eq!(g(&Array::ones::<f64>([n, 2])).to_vec::<f64>().unwrap(), [1.0, 2.0].repeat(n));
    }
    assert_eq!(g.stats().compiles + g.stats().shared + g.stats().loaded, 1);
}

#[test]
fn an_export_has_choices() {
    let product = jit(|a: &Array, b: &Array| a.matmul(b).exp());
    let traced = product.trace(&Array::spec("f32[2, 3]"), &Array::spec("f32[3, 4]")).unwrap();
    let text = |options: ExportOptions| options.export(&traced).unwrap();
    assert!(text(ExportOptions::new()).contains("HIGHEST"));
    assert!(!text(ExportOptions::new().precision(Precision::Default)).contains("HIGHEST"));
    assert!(!text(ExportOptions::new().accuracy(Accuracy::Gradus)).contains("stablehlo.exponential"));
    assert!(text(ExportOptions::new().locations()).contains("stablehlo.rs"));
    // A function of the host cannot leave the process.
    let host = jit(|x: &Array| {
        pure_callback(|x| Ok(x.to_vec()), &[Type::new(DType::F32, [2_usize].as_slice())], &[x]).remove(0)
    });
    let e = host.stablehlo(&Array::spec("f32[2]")).unwrap_err().to_string();
    assert!(e.contains("host"), "{e}");
}

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("gradus-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn gradus(arguments: &[&str]) -> (bool, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments).output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr))
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_command_line_converts_both_ways() {
    let folder = Folder::new("converts");
    let program = "fn f(x0: f32[2]) -> f32[2] {\n  x1: f32[2] = sin x0\n  return x1\n}\n";
    let (good, text) = gradus(&["stablehlo", shown(&folder.write("f.txt", program))]);
    assert!(good && text.contains("stablehlo.sine %arg0 : tensor<2xf32>"), "{text}");
    let (good, back) = gradus(&["stablehlo", "--import", shown(&folder.write("f.mlir", &text))]);
    assert!(good && back.contains("sin x0"), "{back}");
    for wrong in [&["stablehlo"][..], &["stablehlo", "a", "b"], &["stablehlo", "--no"], &["stablehlo", "missing.txt"]] {
        let (good, text) = gradus(wrong);
        assert!(!good && !text.is_empty(), "{wrong:?}");
    }
}

const CHECKED: &str = "func.func @main() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.add %0, %0 : tensor<2xi32>
  check.expect_eq_const %1, dense<[2, 4]> : tensor<2xi32>
  func.return
}
";

#[test]
fn conformance_counts_what_passed_failed_and_was_refused() {
    let folder = Folder::new("conformance");
    folder.write("good.mlir", CHECKED);
    folder.write("wrong.mlir", &CHECKED.replace("[2, 4]", "[2, 5]"));
    folder.write("disabled.mlir", &("// RUN-DISABLED(#1) x\n".to_string() + &CHECKED.replace("[2, 4]", "[2, 5]")));
    // Several functions, in several modules, each run by itself.
    let again = CHECKED.replace("@main", "@a") + &CHECKED.replace("@main", "@b");
    folder.write("interpret/many.mlir", &(again.clone() + "\n// -----\n\n" + &again));
    folder.write(
        "interpret/many_wrong.mlir",
        &(again.clone() + "\n// -----\n\n" + &again.replacen("[2, 4]", "[3, 4]", 1)),
    );
    folder.write("refused.mlir", "func.func @main() {\n  %0 = \"other.thing\"() : () -> tensor<f32>\n  return\n}\n");
    folder.write("garbage.mlir", "func.func @main( {");
    folder.write("dynamic/unfed.mlir", "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  %0 = stablehlo.sine %x : tensor<?xf32>\n  return %0 : tensor<?xf32>\n}\n");
    // An exported program: the second input is not taken, and the index says so.
    folder.write("saved.mlir", "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %x, %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
    let numbers = std::collections::BTreeMap::from([
        ("in0".to_string(), Array::from([9_i32])),
        ("in1".to_string(), Array::from([1.0_f32, 2.0])),
        ("out0".to_string(), Array::from([2.0_f32, 4.0])),
    ]);
    files::save(folder.0.join("saved.npz"), &numbers).unwrap();
    folder.write("INDEX.json", r#"[{"name": "saved", "kept": [1], "rtol": 1e-6}]"#);
    for backend in ["interpreter", "embedded"] {
        let json = folder.0.join(format!("{backend}.json"));
        let (good, text) = gradus(&["conformance", shown(&folder.0), "--backend", backend, "--json", shown(&json)]);
        assert!(!good, "two files fail: {text}");
        let row = |kind: &str| {
            text.lines()
                .find(|l| l.starts_with(kind))
                .unwrap_or_default()
                .split_whitespace()
                .skip(1)
                .take(5)
                .collect::<Vec<_>>()
                .join(" ")
        };
        // files, passed, failed, refused, disabled
        assert_eq!(row("static"), "5 1 1 2 1", "{text}");
        assert_eq!(row("interpret"), "2 1 1 0 0", "{text}");
        assert_eq!(row("dynamic"), "1 1 0 0 0", "{text}");
        assert_eq!(row("exported"), "1 1 0 0 0", "{text}");
        assert!(text.contains("other.thing") && text.contains("nobody gives its inputs"), "{text}");
        let json = std::fs::read_to_string(json).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["kinds"]["static"]["failed"], &json["files"].as_array().unwrap().len()),
            (&serde_json::json!(1), &9)
        );
    }
    let (good, text) = gradus(&["conformance", shown(&folder.0.join("good.mlir"))]);
    assert!(good, "{text}");
    for wrong in
        [&["conformance"][..], &["conformance", "/no/such/folder"], &["conformance", ".", "--backend", "abacus"]]
    {
        let (good, text) = gradus(wrong);
        assert!(!good && !text.is_empty(), "{wrong:?}");
    }
}

/// The public test files, where they are.
#[test]
fn public_files_have_no_failure() {
    for variable in ["GRADUS_STABLEHLO_DATA", "GRADUS_JAX_EXPORT"] {
        let Ok(folder) = std::env::var(variable) else {
            println!("NOT RUN: {variable} is not set");
            continue;
        };
        let (good, text) = gradus(&["conformance", &folder, "--backend", "embedded"]);
        assert!(good, "{text}");
    }
}
