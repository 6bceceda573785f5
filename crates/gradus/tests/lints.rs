//! The lint for `select` over a partial function: it names the place where a derivative may become NaN, and keeps quiet
//! about the safe pattern.

use gradus::inspect::Lint;
use gradus::prelude::*;

fn lints(f: impl Fn(&Array) -> Array + Send + Sync + 'static) -> Vec<Lint> {
    jit(f).trace(&Array::spec("f64[3]")).unwrap().lints()
}

fn operations(f: impl Fn(&Array) -> Array + Send + Sync + 'static) -> Vec<&'static str> {
    lints(f).iter().map(|l| l.operation).collect()
}

#[test]
fn a_select_that_guards_a_partial_function_is_named_with_its_place() {
    let here = line!();
    let found = lints(|x: &Array| {
        let root = x.sqrt();
        x.gt(0.0_f64).select(root, 0.0_f64)
    });
    let [lint] = &found[..] else { panic!("{found:?}") };
    assert_eq!((lint.operation, lint.place.line(), lint.guarded.line()), ("sqrt", Some(here + 3), Some(here + 2)));
    let text = lint.to_string();
    assert!(
        text.contains("lints.rs") && text.contains("mask.guarded(&x, 1.0, |x| x.sqrt(), 0.0)") && text.contains("cond"),
        "{text}"
    );
    // It is right: the value is fine, and the gradient is NaN.
    let f = |x: &Array| x.gt(0.0_f64).select(x.sqrt(), 0.0_f64).sum();
    assert_eq!(f(&Array::from(0.0_f64)).item::<f64>().unwrap(), 0.0);
    assert!(grad(f)(&Array::from(0.0_f64)).item::<f64>().unwrap().is_nan());
    let safe = |x: &Array| {
        let mask = x.gt(0.0_f64);
        mask.select(mask.select(x, 1.0_f64).sqrt(), 0.0_f64).sum()
    };
    assert_eq!(grad(safe)(&Array::from(0.0_f64)).item::<f64>().unwrap(), 0.0);
    let guarded = |x: &Array| x.gt(0.0_f64).guarded(x, 1.0_f64, |x| x.sqrt(), 0.0_f64).sum();
    let slopes = grad(guarded)(&Array::from([0.0_f64, 4.0, -1.0]));
    assert_eq!(slopes.to_vec::<f64>().unwrap(), [0.0, 0.25, 0.0]);
}

#[test]
fn guards_of_other_kinds_are_found_too() {
    assert_eq!(operations(|x: &Array| x.ne(0.0_f64).select(x.recip(), 0.0_f64)), ["div"]);
    assert_eq!(operations(|x: &Array| x.abs().lt(1e-9_f64).select(1.0_f64, x.sin() / x)), ["div"]);
    assert_eq!(operations(|x: &Array| x.le(0.0_f64).select(0.0_f64, x * x.log())), ["log"]);
    assert_eq!(operations(|x: &Array| (x.gt(0.0_f64) & x.lt(1.0_f64)).select(x.pow(0.5_f64), 0.0_f64)), ["pow"]);
    assert_eq!(operations(|x: &Array| (!x.eq(0.0_f64)).select((x * x).rsqrt() * 2.0_f64, 0.0_f64)), ["rsqrt"]);
    // In a program inside a program.
    assert_eq!(operations(|x: &Array| gradus::map(|v: &Array| v.gt(0.0_f64).select(v.sqrt(), 0.0_f64), x)), ["sqrt"]);
    let staged = jit(|x: &Array| x.gt(0.0_f64).select(x.sqrt(), 0.0_f64));
    assert_eq!(operations(move |x: &Array| staged(x)), ["sqrt"]);
}

#[test]
fn the_safe_pattern_and_harmless_selects_are_left_alone() {
    let none: [&str; 0] = [];
    let safe = |x: &Array| {
        let mask = x.gt(0.0_f64);
        mask.select(mask.select(x, 1.0_f64).sqrt(), 0.0_f64)
    };
    assert_eq!(operations(safe), none);
    assert_eq!(operations(|x: &Array| x.ne(0.0_f64).guarded(x, 1.0_f64, |x| x.recip(), 0.0_f64)), none);
    assert_eq!(operations(|x: &Array| x.gt(0.0_f64).select((x * x + 1.0_f64).sqrt(), 0.0_f64)), none);
    assert_eq!(operations(|x: &Array| x.gt(0.0_f64).select(x / 2.0_f64, x.exp())), none);
    assert_eq!(operations(|x: &Array| x.gt(0.0_f64).select(x, -x).sqrt()), none);
    assert_eq!(operations(|x: &Array| x.sum().gt(0.0_f64).select(x.index(0).sqrt(), 0.0_f64)), none);
    assert_eq!(operations(|x: &Array| cond(x.sum().gt(0.0_f64), |x| x.sqrt(), |x| x.clone(), x)), none);
}
