//! What newcomers stumbled over: messages that named the wrong line or argument, or advised what does not work, and options that did nothing.

use gradus::prelude::*;
use gradus::warnings::{self, WarningKind};

fn said(a: &Array) -> String {
    a.clone().ok().expect_err("an error").to_string()
}

fn all_of(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn a_size_that_does_not_fit_is_said_with_the_operation_and_the_argument() {
    let here = line!() + 3;
    let f = jit(|_: &(Array, Array), x: &Array| {
        let y = x * 2.0;
        y.reshape([-1, 4]).sum()
    })
    .symbolic("(_, _), f64[N]");
    let pair = (Array::from(1.0), Array::from(2.0));
    assert!(f(&pair, &Array::ones::<f64>([8])).ok().is_ok());
    // The array is the third of the program, and of the second argument.
    all_of(
        &said(&f(&pair, &Array::ones::<f64>([7]))),
        &["N=7 (dimension 0 of argument 1)", &format!("newcomers.rs:{here}:")],
    );
}

#[test]
fn a_function_that_is_not_staged_has_no_sizes_to_declare() {
    let here = line!() + 1;
    let f = grad(|x: &Array| (x * x).sum()).symbolic("f64[N]");
    let e = said(&f(&Array::ones::<f64>([3])));
    all_of(&e, &["is not staged", "jit(grad(", &format!("newcomers.rs:{here}:")]);
    assert!(jit(grad(|x: &Array| (x * x).sum())).symbolic("f64[N]")(&Array::ones::<f64>([3])).ok().is_ok());
}

#[test]
fn a_prepared_call_does_not_skip_what_was_read() -> Result<()> {
    let f = jit(|x: &Array| if x.item::<f64>().is_ok_and(|v| v > 0.0) { x.sqrt() } else { -x }).mode(Mode::Concrete);
    let compiled = f.compile(&Array::from(4.0))?;
    assert_eq!(compiled.call(&Array::from(4.0))?.item::<f64>()?, 2.0);
    let e = compiled.prepared().err().expect("an error").to_string();
    all_of(&e, &["was compiled for a value that was 4", "newcomers.rs", "`cond`"]);
    assert!(jit(|x: &Array| x.sqrt()).mode(Mode::Concrete).compile(&Array::from(4.0))?.prepared().is_ok());
    Ok(())
}

#[test]
fn a_gradient_of_integers_says_where_floats_come_from() {
    let f = |x: &Array| (x * x).sum();
    all_of(&said(&grad(f)(&Array::from([1, 2]))), &["gives i32[]", "Array::from(3.0)", "x.cast(DType::F64)"]);
    let z = Array::complex(&Array::from(1.0), &Array::from(2.0));
    all_of(&said(&grad(|z: &Array| z * z)(&z)), &["gives c128[]", "`y.abs()`"]);
}

#[test]
fn a_rule_that_is_not_linear_is_told_what_linear_means() {
    let here = line!() + 1;
    let f = custom_jvp(|x: &Array| x.sin(), |x: &Array, t: &Array| (x.sin(), t.abs()));
    let e = said(&grad(f)(&Array::from(1.0)));
    all_of(&e, &["`abs`", "not linear", "custom_jvp", "multiplies them by values", &format!("newcomers.rs:{here}:")]);
}

#[test]
fn a_loop_over_constants_is_part_of_the_program() -> Result<()> {
    let f = jit(|x: &Array| {
        let table = scan(|c: &Array, t: &Array| (c + t, c * t), Array::from(0.0), &Array::from([1.0, 2.0, 3.0])).1;
        let count = while_loop(|n: &Array| n.lt(5), |n| n + 1, Array::from(0_i64));
        x * table.sum() + count.cast(DType::F64)
    });
    let program = f.trace(&Array::from(1.0))?.program().clone();
    assert_eq!((program.count("scan"), program.count("while")), (1, 1), "{program}");
    // 0·1 + 1·2 + 3·3 = 11
    assert_eq!(f(&Array::from(2.0)).item::<f64>()?, 22.0 + 5.0);
    assert_eq!(jit(grad(move |x: &Array| f(x)))(&Array::from(2.0)).item::<f64>()?, 11.0);
    Ok(())
}

#[test]
fn a_select_inside_of_one_operation_is_no_lint() -> Result<()> {
    /// A function of a library: its lines are those of who calls it.
    #[track_caller]
    fn root(x: &Array) -> Array {
        x.gt(0.0).select(x.sqrt(), 0.0)
    }
    let lints = |f: fn(&Array) -> Array| -> Result<usize> { Ok(jit(f).trace(&Array::from([0.5, 2.0]))?.lints().len()) };
    assert_eq!(lints(|x| root(x))?, 0);
    assert_eq!(lints(|x| x.gt(0.0).select(x.log(), 0.0))?, 1);
    Ok(())
}

#[test]
fn a_key_that_is_used_twice_is_said_with_its_line() {
    let (key, here) = (Key::new(0), line!() + 1);
    let f = jit(|k: &Key| random::normal::<f64>(k.take(), [2]));
    drop(f(&key));
    // A call through a function pointer has no line: it is said whose the line is.
    all_of(&said(&f(&key)), &["used before", &format!("newcomers.rs:{here}:"), "the line that staged it"]);
    let here = line!() + 3;
    let g = jit(|k: &Key| {
        let a = random::normal::<f64>(k.take(), [2]);
        a + random::normal::<f64>(k.take(), [2])
    });
    all_of(&said(&g(&Key::new(1))), &["used before", &format!("newcomers.rs:{here}:")]);
}

#[test]
fn a_loop_that_its_limit_ends_says_so() -> Result<()> {
    let halve = |most: usize| {
        move |x: &Array| {
            let options = WhileOptions::new().history(History::Limit(most));
            options.while_loop(|y: &Array| y.gt(1.0), |y| y * 0.5, x.clone())
        }
    };
    let cut = |f: &dyn Fn() -> Array, want: &[f64]| -> Vec<String> {
        let (y, all) = warnings::collect(f);
        assert_eq!(y.to_vec::<f64>().unwrap(), want);
        let all: Vec<String> =
            all.iter().filter(|w| w.kind() == WarningKind::LoopCutOff).map(|w| w.to_string()).collect();
        all.iter().for_each(|w| all_of(w, &["limit of 2 steps", "newcomers.rs", "History::Checkpoints"]));
        all
    };
    let x = Array::from(16.0);
    assert_eq!(cut(&|| halve(2)(&x), &[4.0]).len(), 1);
    assert_eq!(cut(&|| halve(4)(&x), &[1.0]).len(), 0);
    let staged = jit(halve(2));
    assert_eq!(cut(&|| staged(&x), &[4.0]).len(), 1);
    assert_eq!(cut(&|| staged(&x), &[4.0]).len(), 0, "once per program");
    assert_eq!(cut(&|| jit(grad(halve(2)))(&x), &[0.25]).len(), 1);
    assert_eq!(cut(&|| jit(grad(halve(9)))(&x), &[1.0 / 16.0]).len(), 0);
    // A batch is one call, whichever example it is.
    let xs = Array::from([1.0, 16.0, 0.5]);
    assert_eq!(cut(&|| jit(vmap(halve(2)))(&xs), &[1.0, 4.0, 0.5]).len(), 1);
    assert_eq!(cut(&|| jit(vmap(grad(halve(2))))(&xs), &[1.0, 0.25, 1.0]).len(), 1);
    Ok(())
}
