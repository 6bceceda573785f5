//! What the compiler says of functions that do not fit: small programs are given to `rustc`, and its messages are read. They name what to write.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;
use std::{env, fs};

const FITS: &str = "let f = jit(grad(|x: &Array| x.sum())); f(&Array::from(1.0))";

/// The built library: of those that lie beside this test, with other features or of another day, the newest that fits to what it needs.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let built = |name: &str| name.starts_with("libgradus-") && name.ends_with(".rlib");
    let age = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let all = fs::read_dir(&folder).unwrap().map(|e| e.unwrap());
    let mut all: Vec<PathBuf> = all.filter(|e| built(&e.file_name().to_string_lossy())).map(|e| e.path()).collect();
    all.sort_by_key(|path| std::cmp::Reverse(age(path)));
    let fits = |library: &PathBuf| compile(library, "library", "", FITS).is_empty();
    all.into_iter().find(fits).expect("a library that was built with what lies beside it")
});

/// What the compiler says of a program whose `main` is this.
fn errors(name: &str, items: &str, main: &str) -> String {
    compile(&LIBRARY, name, items, main)
}

fn compile(library: &Path, name: &str, items: &str, main: &str) -> String {
    let work = env::temp_dir().join(format!("gradus-type-errors-{}-{name}", std::process::id()));
    fs::create_dir_all(&work).unwrap();
    let source = work.join("main.rs");
    fs::write(&source, format!("use gradus::prelude::*;\n{items}\nfn main() {{ {main}; }}\n")).unwrap();
    let out = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
        .args(["--edition", "2024", "--emit=metadata", "--out-dir"])
        .arg(&work)
        .arg("-L")
        .arg(library.parent().unwrap())
        .arg("--extern")
        .arg(format!("gradus={}", library.display()))
        .arg(&source)
        .output()
        .unwrap();
    fs::remove_dir_all(&work).unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    if out.status.success() { String::new() } else { text }
}

fn check(name: &str, items: &str, main: &str, said: &[&str]) {
    let text = errors(name, items, main);
    for s in said {
        assert!(text.contains(s), "{name}: no `{s}` in what is said of `{main}`:\n{text}");
    }
}

const NOT_A_FUNCTION: &str = "is not a function that can be staged or transformed";
const REFERENCES: &str = "the types of its arguments, which are references: `|x: &Array, model: &Model| ..`";

#[test]
fn a_program_that_fits_compiles() {
    assert_eq!(errors("fits", "", FITS), "");
}

#[test]
fn functions_that_do_not_fit_are_told_what_to_write() {
    check("untyped", "", "let _ = jit(|x| x * 2.0)", &[NOT_A_FUNCTION, REFERENCES]);
    check("value", "", "let _ = grad(|x: Array| x * 2.0)", &[NOT_A_FUNCTION, REFERENCES]);
    check("item", "fn f(x: Array) -> Array { x }", "let _ = vmap(f)", &[NOT_A_FUNCTION, REFERENCES]);
    let number = "a number as an argument is `Num`, or `Static<usize>`";
    check("size", "", "let _ = jit(|x: &Array, n: usize| x * n)", &[NOT_A_FUNCTION, number]);
    check("size_reference", "", "let _ = jit(|x: &Array, n: &usize| x * *n)", &[NOT_A_FUNCTION, number]);
    check("result", "", "let _ = grad(|_: &Array| 2.0_f64)", &[NOT_A_FUNCTION, "made an array by `Array::from(y)`"]);
    let model = "struct Model { w: Array }";
    check("model", model, "let _ = grad(|m: &Model| m.w.sum())", &[NOT_A_FUNCTION, "`#[derive(Clone, Tree)]`"]);
    check(
        "threads",
        "",
        "let k = std::rc::Rc::new(1); let _ = jit(move |x: &Array| x * *k)",
        &["sent between threads"],
    );
}

#[test]
fn positions_and_types_that_do_not_fit_are_told_what_to_write() {
    let mixed = "let _ = grad_by(1, |m: &(Array, Array), x: &Array| (&m.0 * x).sum())";
    check("mixed", "", mixed, &["a number does not say which argument is meant", "grad_by(Arg::<1>, f)"]);
    check("stored", "struct S { _f: Fun<Array, Array> }", "", &["`Fun<(Array,), Array>`"]);
    let model = "#[derive(Clone, Tree)] struct Model { w: Array }";
    check(
        "jacobian",
        model,
        "let _ = jacrev(|x: &Array| Model { w: x.clone() })",
        &["a Jacobian of `Model`", "a tuple"],
    );
    let ravel = "`tree::ravel` makes one array";
    check("hessian", model, "let _ = hessian(|m: &Model| m.w.sum())", &["a Jacobian of `Model`", ravel]);
    let nine = "type A = Array; fn f(t: &(A, A, A, A, A, A, A, A, A)) -> Vec<A> { tree::map(t, |x| x.clone()).0 }";
    check("nine", nine, "", &["a tuple of more than eight: write a struct", "`Vec`"]);
    check("operand", "", "let _ = Array::from(1.0) * \"a\"", &["`&str` cannot be an operand beside an array"]);
}
