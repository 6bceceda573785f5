//! Hunting for NaN and infinities: each test plants one and asks who made it, on every backend, staged and not.

use std::path::PathBuf;

use gradus::Interpreter;
use gradus::cpu::Cpu;
use gradus::prelude::*;

/// What a call says, in the order of the backends; all must say the same.
#[track_caller]
fn caught(hunt: Hunt, f: impl Fn(&Array) -> Array + Send + Sync + Clone + 'static, x: &Array) -> Error {
    let backends = [
        jit(f.clone()).backend(Interpreter),
        jit(f.clone()).backend(Cpu::new().tier(Tier::Embedded)),
        jit(f).backend(Cpu::new().tier(Tier::Llvm)),
    ];
    let mut all: Vec<Error> =
        backends.map(|f| f.hunt(hunt)(x).ok().expect_err("something should be caught")).into_iter().collect();
    assert!(all.iter().all(|e| e.kind() == ErrorKind::NotFinite), "{all:?}");
    assert!(all.windows(2).all(|e| e[0].to_string() == e[1].to_string()), "{all:?}");
    all.remove(0)
}

/// Compares an error with its golden file; lines are masked.
#[track_caller]
fn golden(name: &str, error: &Error) {
    let text = mask(&format!("{error}\n"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("GRADUS_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(text, want, "{}", path.display());
}

fn mask(text: &str) -> String {
    let line = |l: &str| match (l.find("crates/gradus/tests/"), l.find(".rs:")) {
        (Some(start), Some(end)) => format!("{}{}:LINE", &l[..start], &l[start + 20..end + 3]),
        _ => l.to_string(),
    };
    text.lines().map(|l| line(l) + "\n").collect()
}

fn scalar(x: f64) -> Array {
    Array::from(x)
}

#[test]
fn row_e6_a_forward_nan_is_caught_where_it_is_made() {
    let f = |x: &Array| {
        let y = x - 2.0_f64;
        let logs = y.log();
        logs.exp().sum()
    };
    let x = Array::from([3.0_f64, 1.0, 4.0]);
    let e = caught(Hunt::Nan, f, &x);
    golden("hunt_forward_nan", &e);
    assert_eq!(blamed(&e), "let logs = y.log();");
    // Not staged: a derivative that runs as it is called.
    let eager = grad(f).hunt(Hunt::Nan)(&x).ok().unwrap_err();
    assert_eq!(eager.message(), e.message());
    assert_eq!(eager.place(), e.place());
    // Without a hunt the NaN comes out, and a hunt that finds nothing changes nothing.
    assert!(jit(f)(&x).item::<f64>().unwrap().is_nan());
    let fine = Array::from([3.0_f64, 4.0]);
    assert_eq!(jit(f).hunt(Hunt::NanAndInf)(&fine).item::<f64>().unwrap(), jit(f)(&fine).item::<f64>().unwrap());
}

#[test]
fn row_e6_a_backward_infinity_names_the_forward_line() {
    let f = |x: &Array| x.sqrt().sum();
    let x = Array::from([4.0_f64, 0.0]);
    assert_eq!(jit(f)(&x).item::<f64>().unwrap(), 2.0, "forward all is well");
    let e = caught(Hunt::NanAndInf, move |x: &Array| grad(f)(x), &x);
    golden("hunt_backward_inf", &e);
    assert_eq!(blamed(&e), "let f = |x: &Array| x.sqrt().sum();");
    let eager = grad(f).hunt(Hunt::NanAndInf)(&x).ok().unwrap_err();
    assert_eq!(eager.place().line(), e.place().line());
    assert!(eager.to_string().contains("jvp of `sqrt`"), "{eager}");
}

#[test]
fn row_e6_select_over_a_partial_function() {
    let f = |x: &Array| x.gt(0.0_f64).select(x.sqrt(), Array::from(0.0_f64).broadcast_to([2])).sum();
    let x = Array::from([4.0_f64, 0.0]);
    let e = caught(Hunt::Nan, move |x: &Array| grad(f)(x), &x);
    golden("hunt_select", &e);
    let eager = grad(f).hunt(Hunt::Nan)(&x).ok().unwrap_err();
    assert_eq!(eager.message(), e.message());
}

#[test]
fn row_e6_inside_loops_and_branches() {
    let scanned = |x: &Array| {
        let step = |c: &Array, e: &Array| {
            let d = c / e;
            (d, ())
        };
        scan(step, x.clone(), &Array::from([2.0_f64, 0.0, 1.0])).0
    };
    let e = caught(Hunt::NanAndInf, scanned, &scalar(1.0));
    golden("hunt_in_a_scan", &e);
    assert_eq!(blamed(&e), "let d = c / e;");
    let looped = |x: &Array| while_loop(|c: &Array| c.gt(-3.0_f64), |c: &Array| c - c.log().abs() - 1.0_f64, x.clone());
    let e = caught(Hunt::Nan, looped, &scalar(2.0));
    assert!(e.message().starts_with("`log` made a NaN"), "{e}");
    let branch = |x: &Array| cond(x.lt(0.0_f64), |x: &Array| x.log1p(), |x: &Array| x.log(), x);
    let e = caught(Hunt::NanAndInf, branch, &scalar(-1.0));
    assert!(e.message().starts_with("`log1p` made an infinity"), "{e}");
    assert_eq!(jit(branch).hunt(Hunt::NanAndInf)(&scalar(1.0)).item::<f64>().unwrap(), 0.0);
    // Backward through a loop.
    let e = caught(
        Hunt::NanAndInf,
        move |x: &Array| grad(|x: &Array| gradus::map(|x: &Array| x.sqrt(), x).sum())(x),
        &Array::from([1.0_f64, 0.0]),
    );
    assert!(e.to_string().contains("in the backward pass: ") || e.to_string().contains("jvp of `sqrt`"), "{e}");
}

/// The line of this file that an error names.
fn blamed(e: &Error) -> &'static str {
    let line = e.place().line().unwrap_or(0) as usize;
    include_str!("hunting.rs").lines().nth(line - 1).unwrap_or_default().trim()
}

#[test]
fn row_e6_in_a_batch_the_example_is_named() {
    let f = |x: &Array| x.log().sum();
    let rows = Array::from([[1.0_f64, 2.0], [3.0, 4.0], [5.0, -6.0]]);
    let e = caught(Hunt::Nan, move |rows: &Array| vmap(f)(rows), &rows);
    golden("hunt_in_a_batch", &e);
    let e =
        caught(Hunt::NanAndInf, move |rows: &Array| vmap(grad(|x: &Array| x.sqrt().sum()))(rows), &(rows * 0.0_f64));
    assert!(e.to_string().contains("example 0"), "{e}");
}

#[test]
fn row_e6_masks_are_legitimate() -> Result<()> {
    // An infinity that was there before is nobody's fault, and what it makes is none either.
    let f = |x: &Array| {
        let mask = Array::from([0.0_f64, f64::NEG_INFINITY, 0.0]);
        (x + mask).softmax(0)
    };
    let x = Array::from([1.0_f64, 2.0, 3.0]);
    let masked = jit(f).hunt(Hunt::NanAndInf)(&x).to_vec::<f64>()?;
    assert_eq!(masked[1], 0.0);
    // A NaN in an argument is not made here.
    let given = jit(|x: &Array| x.sin() + 1.0_f64).hunt(Hunt::NanAndInf);
    assert!(given(&scalar(f64::NAN)).item::<f64>()?.is_nan());
    // But one that infinities make is.
    let e = caught(Hunt::Nan, |x: &Array| x - x, &scalar(f64::INFINITY));
    assert!(e.message().contains("infinite but not NaN"), "{e}");
    // Numbers that are known while tracing are looked at, too.
    let e = caught(Hunt::Nan, |x: &Array| x * Array::from(-1.0_f64).log(), &scalar(1.0));
    assert!(e.message().starts_with("`log`"), "{e}");
    Ok(())
}

#[test]
fn row_e6_hunts_go_with_the_function_that_is_called() -> Result<()> {
    let x = scalar(-1.0);
    // Of functions in functions the outermost decides.
    let inner = jit(|x: &Array| x.log());
    let outer = jit(move |x: &Array| inner(x) + 1.0_f64).hunt(Hunt::Nan);
    let e = outer(&x).item::<f64>().unwrap_err();
    assert!(e.message().starts_with("`log`"), "{e}");
    let inner = jit(|x: &Array| x.log());
    let direct = vmap(move |x: &Array| inner(x));
    assert!(direct(&Array::from([-1.0_f64])).to_vec::<f64>()?[0].is_nan());
    let inner = jit(|x: &Array| x.log());
    let e = grad(inner).hunt(Hunt::Nan)(&x).item::<f64>().unwrap_err();
    assert!(e.message().starts_with("`log`"), "{e}");
    let explained = jit(|x: &Array| x.log()).hunt(Hunt::Nan).explain(&x).to_string();
    assert!(explained.contains("hunting: Nan"), "{explained}");
    // Rules of users, forward and backward.
    let bad =
        custom_vjp(|x: &Array| x.clone(), |x: &Array| (x.clone(), x.clone()), |x: &Array, bar: &Array| bar / (x - x));
    let e = caught(
        Hunt::NanAndInf,
        move |x: &Array| {
            grad(custom_vjp(
                |x: &Array| x.clone(),
                |x: &Array| (x.clone(), x.clone()),
                |x: &Array, bar: &Array| bar / (x - x),
            ))(x)
        },
        &x,
    );
    assert!(e.message().starts_with("`div` made an infinity"), "{e}");
    let (_, slope) = jvp(jit(move |x: &Array| bad(x)).hunt(Hunt::NanAndInf), &x, &x);
    assert!(slope.item::<f64>()?.is_infinite(), "the function that is called, `jvp`, does not hunt");
    Ok(())
}

#[test]
fn row_e6_the_environment_turns_hunting_on() {
    // The variable is read once, so another process has to read it.
    let run = |hunt: &str| {
        let me = std::env::current_exe().unwrap();
        let args = ["--exact", "hunted_by_the_environment", "--ignored", "--nocapture"];
        let out = std::process::Command::new(me).args(args).env("GRADUS_HUNT", hunt).output().unwrap();
        assert!(out.status.success(), "{hunt}: {}", String::from_utf8_lossy(&out.stdout));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    assert!(run("nan").contains("staged: true, at once: true, infinity: false"));
    assert!(run("inf").contains("staged: true, at once: true, infinity: true"));
    assert!(run("off").contains("staged: false, at once: false, infinity: false"));
}

/// Run by the test above, in a process of its own.
#[test]
#[ignore = "a part of the test above"]
fn hunted_by_the_environment() {
    let caught = |a: Array| a.ok().is_err_and(|e| e.kind() == ErrorKind::NotFinite);
    let staged = caught(jit(|x: &Array| x.log())(&scalar(-1.0)));
    let at_once = caught(scalar(-1.0).log());
    let infinity = caught(jit(|x: &Array| x.log())(&scalar(0.0)));
    println!("staged: {staged}, at once: {at_once}, infinity: {infinity}");
    assert!(staged == at_once, "both or none");
}
