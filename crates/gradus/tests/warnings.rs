//! What a function says of itself: when it is compiled again and again, and what is odd about it when it is traced.

use gradus::prelude::*;
use gradus::warnings::{self, Warning, WarningKind};

/// The warnings of a kind that calls of this thread give.
fn of_kind(kind: WarningKind, f: impl FnOnce()) -> Vec<Warning> {
    let ((), all) = warnings::collect(f);
    all.into_iter().filter(|w| w.kind() == kind).collect()
}

fn recompilations(f: impl FnOnce()) -> Vec<Warning> {
    of_kind(WarningKind::Recompilation, f)
}

fn rows(n: usize) -> Array {
    Array::ones::<f32>([n, 16])
}

#[test]
fn row_s2_a_recompilation_storm_is_seen_and_a_symbolic_dimension_proposed() {
    let here = line!() + 1;
    let predict = jit(|w: &Array, x: &Array| x.dot(w).tanh());
    let w = Array::ones::<f32>([16, 4]);
    let found = recompilations(|| {
        for n in 1..=17 {
            assert!(predict(&w, &rows(n)).ok().is_ok());
            // A program that is there costs nothing.
            assert!(predict(&w, &rows(n)).ok().is_ok());
        }
    });
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert_eq!(warning.place().line(), Some(here));
    let text = warning.to_string();
    for part in [
        "needed 17 programs, more than its budget of 16",
        "argument 1: f32[16,16] → f32[17,16]",
        "argument 1 varies in dimension 0 (1, 2, 3, ... 17)",
        ".symbolic(\"_, f32[B, 16]\")",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // Again at twice as many, and not before.
    let more = recompilations(|| (18..=40).for_each(|n| drop(predict(&w, &rows(n)))));
    assert_eq!(more.len(), 1, "{more:?}");
    assert!(more[0].message().contains("needed 34 programs"), "{}", more[0]);
    let explained = predict.explain(&w, &rows(1));
    assert!(explained.to_string().contains("programs: 40, budget 16"), "{explained}");
    assert!(explained.proposals().iter().any(|p| p.contains("declare it `B`")), "{explained}");
}

/// What is drawn has no derivative, and lines of the library are nothing that a user can change.
#[test]
fn draws_give_no_warnings() {
    let ((), all) = warnings::collect(|| {
        let key = Key::new(0);
        drop(jit(|k: &Key| random::normal::<f64>(k.take(), [5]))(&key));
        drop(jit(|k: &Key| random::gamma::<f64>(k.take(), 2.5, [5]))(&Key::new(1)));
        drop(jit(|k: &Key| random::poisson::<i64>(k.take(), 2.5, [5]))(&Key::new(2)));
        drop(jit(grad(|a: &Array| random::gamma::<f64>(Key::new(3), a, [5]).sum()))(&Array::from(2.5_f64)));
    });
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn row_s2_by_choice_the_call_beyond_the_budget_is_an_error() {
    let f = jit(|x: &Array| x.sum()).budget(3).on_budget(OnBudget::Error);
    for n in 1..=3 {
        assert_eq!(f(&rows(n)).item::<f32>().unwrap(), 16.0 * n as f32);
    }
    for _ in 0..2 {
        let e = f(&rows(4)).ok().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Budget);
        assert!(e.place().file().is_some_and(|f| f.ends_with("warnings.rs")));
        let text = e.to_string();
        assert!(text.contains("has 3 programs and needs another, beyond its budget of 3"), "{text}");
        assert!(text.contains("argument 0 varies in dimension 0 (1, 2, 3, 4)"), "{text}");
    }
    // What is there is still called; an explicit wish is not refused; and clearing starts anew.
    assert!(f(&rows(2)).ok().is_ok());
    assert_eq!(f.stats().compiles + f.stats().shared + f.stats().loaded, 3);
    assert!(f.compile(&rows(9)).is_ok());
    assert!(f(&rows(9)).ok().is_ok());
    f.clear();
    assert!(f(&rows(4)).ok().is_ok());
}

#[test]
fn what_varies_decides_what_is_proposed() {
    let help = |f: &dyn Fn(usize)| {
        let found = recompilations(|| (1..=3).for_each(f));
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].way_out().unwrap().to_string()
    };
    // Two dimensions that go together are one symbol, two that do not are two.
    let f = jit(|x: &Array, y: &Array, z: &Array| x.sum() + y.sum() + z.sum()).budget(2);
    let text = help(&|n| drop(f(&rows(n), &Array::ones::<f32>([n]), &Array::ones::<f64>([2, 10 - n]))));
    assert!(text.contains(".symbolic(\"f32[B, 16], f32[B], f64[2, N]\")"), "{text}");
    // A frozen number.
    let f = jit(|x: &Array, rate: &Static<f64>| x * **rate).budget(2);
    let text = help(&|n| drop(f(&Array::ones::<f64>([2]), &Static(n as f64 / 2.0))));
    assert!(text.contains("argument 1 is frozen and varies (0.5, 1.0, 1.5)"), "{text}");
    assert!(text.contains("pass it as an array"), "{text}");
    // A list of another length each time.
    let f = jit(|xs: &Vec<Array>| xs.iter().fold(Array::from(0.0_f64), |a, x| a + x)).budget(2);
    let text = help(&|n| drop(f(&vec![Array::from(1.0_f64); n])));
    assert!(text.contains("argument 0 varies in its structure (len 1, len 2, len 3)"), "{text}");
    // Inside a value: its arrays in order.
    let f = jit(|x: &(Array, Array)| &x.0 + x.1.sum()).budget(2);
    let text = help(&|n| drop(f(&(Array::from(1.0_f64), Array::ones::<f64>([n])))));
    assert!(text.contains("argument 0.1 varies in dimension 0 (1, 2, 3): declare it `B`"), "{text}");
    assert!(text.contains(".symbolic(\"(_, f64[B])\")"), "{text}");
    // Other dtypes and ranks.
    let f = jit(|x: &Array| x + 1).budget(2);
    let text = help(&|n| {
        let x = Array::ones::<i32>([2]);
        drop(f(&[x.clone(), Array::ones::<f32>([2]), Array::ones::<f64>([2])][n - 1]));
    });
    assert!(text.contains("varies in its dtype (i32[2], f32[2], f64[2])"), "{text}");
    let f = jit(|x: &Array| x + 1.0).budget(2);
    let text = help(&|n| drop(f(&Array::ones::<f64>(vec![2_usize; n]))));
    assert!(text.contains("varies in its rank"), "{text}");
    // A value that is read.
    let f = jit(|x: &Array| x * x.item::<f64>().unwrap_or(0.0)).mode(Mode::Concrete).budget(2);
    let text = help(&|n| drop(f(&Array::from(n as f64))));
    assert!(text.contains("a value that is read while tracing differs"), "{text}");
}

#[test]
fn silence_by_choice() {
    let f = jit(|x: &Array| x.sum()).budget(1).on_budget(OnBudget::Silent);
    assert!(recompilations(|| (1..=5).for_each(|n| drop(f(&rows(n))))).is_empty());
    // Calls under an outer trace are parts of other programs and need none of their own.
    let inner = jit(|x: &Array| x.sin()).budget(1);
    let outer = jit(move |x: &Array| inner(x)).budget(9);
    assert!(recompilations(|| (1..=5).for_each(|n| drop(outer(&rows(n))))).is_empty());
}

/// They are off by default; a collector of its own thread sees only what its thread does.
fn unused(f: impl FnOnce()) -> Vec<Warning> {
    warnings::set_warning(WarningKind::UnusedArgument, true);
    of_kind(WarningKind::UnusedArgument, f)
}

#[test]
fn an_argument_that_is_never_read_is_named_once() {
    let x = Array::from([1.0_f64, 2.0]);
    let here = line!() + 1;
    let f = jit(|x: &Array, pair: &(Array, Array)| x * &pair.0);
    let call = || drop(f(&x, &(x.clone(), x.clone())).to_vec::<f64>().unwrap());
    let found = unused(call);
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert!(warning.message().contains("argument 1.1 of `"), "{warning}");
    assert!(warning.message().ends_with("is never read"), "{warning}");
    assert_eq!(warning.place().line(), Some(here));
    // Once per function, for another key too.
    assert!(unused(call).is_empty());
    let y = Array::from([1.0_f64]);
    assert!(unused(|| drop(f(&y, &(y.clone(), y.clone())))).is_empty());
    // Operations whose results nobody uses read nothing either, nor does a branch that ignores what it is given.
    let f = jit(|x: &Array, y: &Array| {
        drop(y.sin());
        cond(x.sum().gt(0.0), |(x, _): &(Array, Array)| x.clone(), |(x, _)| -x, &(x.clone(), y.clone()))
    });
    assert_eq!(unused(|| drop(f(&x, &x))).len(), 1);
}

#[test]
fn what_is_read_in_any_way_is_not_unused() {
    let x = Array::from([1.0_f64, 2.0]);
    let quiet = |f: &dyn Fn()| {
        let found = unused(f);
        assert!(found.is_empty(), "{found:?}");
    };
    quiet(&|| drop(jit(|x: &Array, y: &Array| (y.clone(), x + 1.0))(&x, &x)));
    // The gradient of a linear function does not depend on its argument, but the function reads it.
    let linear = |x: &Array, w: &Array| (x * w).sum();
    quiet(&|| drop(jit(grad(linear))(&x, &x)));
    quiet(&|| drop(jit(vmap(grad(|x: &Array| x * 3.0)))(&x)));
    quiet(&|| drop(jit(grad(grad(|x: &Array| x * 3.0)))(&Array::from(1.0_f64))));
    let by_hand = |x: &Array| {
        let linear = |x: &Array| (x * 3.0).sum();
        vjp(linear, x).1.call(&Array::from(1.0))
    };
    quiet(&|| drop(jit(by_hand)(&x)));
    // A guard reads too.
    let guarded = jit(|x: &Array, n: &Array| if n.item::<f64>().unwrap_or(0.0) > 0.0 { x.clone() } else { -x });
    let guarded = guarded.mode(Mode::Concrete);
    quiet(&|| drop(guarded(&x, &Array::from(1.0_f64))));
    // And here it is truly unused, gradient or not.
    let found = unused(|| drop(jit(grad(|x: &Array, _y: &Array| x.sin().sum()))(&x, &x)));
    assert_eq!(found.len(), 1);
    assert!(found[0].message().contains("argument 1 of"), "{}", found[0]);
}

#[test]
fn a_large_array_that_is_captured_is_named_with_the_line_that_uses_it() {
    let large = |f: &dyn Fn()| of_kind(WarningKind::LargeConstant, f);
    let table = Array::from((0..1 << 18).map(f64::from).collect::<Vec<_>>());
    let small = table.index(..1000);
    let x = Array::from(2.0_f64);
    let (t, here) = (table.clone(), line!() + 1);
    let f = jit(move |x: &Array| (x * &t).sum());
    let found = large(&|| drop(f(&x)));
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert!(
        warning.message().contains("holds an array f64[262144] of 2097152 bytes that is none of its arguments"),
        "{warning}"
    );
    assert_eq!(warning.place().line(), Some(here));
    assert!(large(&|| drop(f(&x))).is_empty());
    assert!(
        large(&|| drop(jit({
            let s = small.clone();
            move |x: &Array| (x * &s).sum()
        })(&x)))
        .is_empty()
    );
    assert!(large(&|| drop(jit(|x: &Array, t: &Array| (x * t).sum())(&x, &table))).is_empty());
    // What is repeated is stored once: a row of a few numbers, and one of many.
    for n in [3, 1000] {
        let row = Array::from((0..n).map(f64::from).collect::<Vec<_>>());
        let wide = row.broadcast_to((1 << 10, n));
        let f = jit({
            let wide = wide.clone();
            move |x: &Array| (x * &wide).sum() + wide.sum()
        });
        assert!(large(&|| drop(f(&x))).is_empty());
        assert_eq!(f(&x).item::<f64>().unwrap(), 3.0 * wide.sum().item::<f64>().unwrap());
        let captured: usize = f.trace(&x).unwrap().captures().iter().map(|a| a.concrete().unwrap().count()).sum();
        assert_eq!(captured, if n > 64 { 1000 } else { 0 });
    }
    // Unit vectors of a Jacobian are part of the program, so nothing as large as the batch is made of them while it is traced.
    let point = Array::from([1.0_f64, 2.0, 3.0]);
    let spread = |x: &Array, t: &Array| (x.index(0).broadcast_to([1 << 18]).exp() * t * x.index(1) + x.index(2)).mean();
    let curvature = jit(hessian(spread));
    assert!(large(&|| drop(curvature(&point, &table))).is_empty());
    assert!(curvature.trace(&point, &table).unwrap().captures().is_empty());
    let many = Array::linspace(1.0_f64, 2.0, 400);
    assert!(large(&|| drop(jit(jacrev(|x: &Array| x.sin() * x.sum()))(&many))).is_empty());
    let fit = jit(|x: &Array| optim::levenberg_marquardt().steps(2).minimize(|x: &Array| x.square() - 2.0, x).point);
    assert!(large(&|| drop(fit(&many))).is_empty());
    // One number everywhere is no large array.
    assert!(large(&|| drop(jit(|x: &Array| (x * Array::ones::<f64>([1 << 20])).sum())(&x))).is_empty());
}

#[test]
fn a_select_over_a_partial_function_is_named_when_it_is_traced() {
    let partial = |f: &dyn Fn()| of_kind(WarningKind::SelectOverPartial, f);
    let x = Array::from(0.0_f64);
    let here = line!() + 1;
    let root = |x: &Array| x.gt(0.0_f64).select(x.sqrt(), 0.0_f64).sum();
    let value = jit(root);
    let found = partial(&|| drop(value(&x)));
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert_eq!(warning.place().line(), Some(here));
    assert!(warning.to_string().contains("mask.guarded(&x, 1.0, |x| x.sqrt(), 0.0)"), "{warning}");
    assert!(partial(&|| drop(value(&x))).is_empty());
    // In what is differentiated it is found before it becomes something else, and once.
    let found = partial(&|| drop(jit(grad(root))(&x)));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].place().line(), Some(here));
    // A number that is safe for the function in question.
    let (asin, acosh) =
        (|x: &Array| x.abs().lt(1.0).select(x.asin(), 0.0), |x: &Array| x.gt(1.0).select(x.acosh(), 0.0));
    assert!(partial(&|| drop(jit(asin)(&x)))[0].to_string().contains("mask.guarded(&x, 0.0, |x| x.asin(), 0.0)"));
    assert!(partial(&|| drop(jit(acosh)(&x)))[0].to_string().contains("mask.guarded(&x, 2.0, |x| x.acosh(), 0.0)"));
    let safe = |x: &Array| x.gt(0.0_f64).guarded(x, 1.0_f64, |x| x.sqrt(), 0.0_f64).sum();
    assert!(partial(&|| drop(jit(grad(safe))(&x))).is_empty());
}

#[test]
fn warnings_are_turned_off_by_their_kind() {
    // In a process of its own: the switches are those of the process.
    let Ok(setting) = std::env::var("GRADUS_TEST_SETTING") else {
        let run = |setting: &str, variable: &str| {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "warnings_are_turned_off_by_their_kind", "--nocapture"]);
            child.env("GRADUS_TEST_SETTING", setting).env("GRADUS_WARNINGS", variable);
            let output = child.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stderr).unwrap()
        };
        assert!(run("", "").contains("[W0004]"));
        assert!(!run("", "off").contains("[W0004]"));
        assert!(!run("", "no-select-over-partial").contains("[W0004]"));
        assert!(run("", "no-large-constant").contains("[W0004]"));
        assert!(!run("call", "").contains("[W0004]"));
        // One that is off by default is heard of by those who ask.
        assert!(!run("", "").contains("[W0002]"));
        assert!(run("", "unused-argument").contains("[W0002]"));
        assert!(!run("", "off,unused-argument").contains("[W0002]"));
        return;
    };
    if setting == "call" {
        gradus::warnings::set_warning(WarningKind::SelectOverPartial, false);
    }
    let f = jit(|x: &Array, _y: &Array| x.gt(0.0).select(x.sqrt(), 0.0));
    drop(f(&Array::from(1.0_f64), &Array::from(1.0_f64)));
}
