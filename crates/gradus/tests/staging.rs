//! The public face of staging, as a user types it.

use std::sync::LazyLock;

use gradus::prelude::*;

fn f(x: &Array) -> Array {
    (x * x).sin()
}

#[test]
fn a_function_becomes_a_program() -> Result<()> {
    let traced = jit(f).trace(&Array::spec("f64[]"))?;
    assert_eq!(
        traced.program().to_string(),
        "fn f(x0: f64[]) -> f64[] {\n  x1: f64[] = mul x0 x0\n  x2: f64[] = sin x1\n  return x2\n}\n"
    );
    let again: Program = traced.program().to_string().parse()?;
    assert_eq!(&again, traced.program());
    Ok(())
}

#[test]
fn calls_look_like_calls() -> Result<()> {
    let df = jit(grad(f));
    let x = Array::from(1.5_f64);
    let want = 2.0 * 1.5 * (1.5_f64 * 1.5).cos();
    assert!((df(&x).item::<f64>()? - want).abs() < 1e-14);
    df(&Array::from(2.5_f64)).item::<f64>()?;
    let s = df.stats();
    assert_eq!((s.traces, s.compiles, s.hits), (1, 1, 1));
    Ok(())
}

fn power(x: &Array, n: &Static<u32>) -> Array {
    let mut y = Array::from(1.0_f64);
    for _ in 0..**n {
        y = &y * x;
    }
    y
}

#[test]
fn static_arguments_are_consumed_at_trace_time() -> Result<()> {
    let p = jit(power);
    assert_eq!(p(&Array::from(2.0_f64), &Static(3)).item::<f64>()?, 8.0);
    let program = p.trace(&Array::spec("f64[]"), &Static(3))?.optimized();
    assert_eq!(program.inputs().len(), 1);
    assert_eq!(program.count("mul"), 2); // 1*x*x*x, and 1*x is x
    let why = p.explain(&Array::from(2.0_f64), &Static(4));
    assert!(!why.is_hit());
    assert!(why.to_string().contains("argument 1") && why.to_string().contains("3") && why.to_string().contains("4"));
    Ok(())
}

#[derive(Clone, Tree)]
struct Params {
    values: Array,
    scale: Num, // a number that is frozen or tracked by choice
}

fn weighted(p: &Params) -> Array {
    (&p.values * &p.scale).sum()
}

#[test]
fn numbers_are_frozen_or_tracked_by_choice() -> Result<()> {
    let p = Params { values: Array::from([1.0_f64, 2.0]), scale: Num::from(3.0_f64) };
    let frozen = jit(weighted).compile(&p)?; // as Reactant's default: the scale is a constant of the program
    assert_eq!(frozen.program().inputs().len(), 1);
    assert_eq!(frozen.call(&p)?.item::<f64>()?, 9.0);
    let other = Params { scale: Num::from(4.0_f64), ..p.clone() };
    let e = frozen.call(&other).unwrap_err().to_string(); // Reactant would answer 9 again
    assert!(e.contains("scale") && e.contains("3") && e.contains("4"), "{e}");

    let tracked = other.track_numbers(TrackNumbers::All);
    let g = jit(weighted).compile(&tracked)?;
    assert_eq!(g.program().inputs().len(), 2);
    assert_eq!(g.call(&p.track_numbers(TrackNumbers::All))?.item::<f64>()?, 9.0);
    assert_eq!(jit(weighted).compile(&p.track_numbers(TrackNumbers::Only(DType::F32)))?.program().inputs().len(), 1);
    Ok(())
}

#[test]
fn a_traced_value_has_no_number() -> Result<()> {
    let g = jit(|x: &Array| if x.item::<f64>().unwrap_or(0.0) > 0.0 { x * x } else { -x });
    // the failed read is remembered by the trace: swallowing it (`unwrap_or`) cannot give a wrong program
    let e = g(&Array::from(3.0_f64)).item::<f64>().unwrap_err().to_string();
    assert!(e.contains("staging.rs:") && e.contains("cond"), "{e}"); // says where, and what to use instead
    Ok(())
}

#[test]
fn concrete_tracing_takes_host_branches_and_guards_them() -> Result<()> {
    let f = |x: &Array| match x.item::<f64>() {
        Ok(v) if v > 0.0 => x * x,
        _ => -x,
    };
    assert_eq!(grad(f)(&Array::from(3.0_f64)).item::<f64>()?, 6.0); // not staged: the branch is taken on the value
    assert_eq!(grad(f)(&Array::from(-3.0_f64)).item::<f64>()?, -1.0);
    let staged = jit(f).mode(Mode::Concrete); // staged with guards: one program for each way through
    assert_eq!(staged(&Array::from(3.0_f64)).item::<f64>()?, 9.0);
    assert_eq!(staged(&Array::from(-3.0_f64)).item::<f64>()?, 3.0);
    assert_eq!(staged.stats().traces, 2);
    Ok(())
}

#[test]
fn an_error_names_the_line_that_made_it() {
    let x = Array::from([1.0_f64, 2.0]);
    let y = Array::from([1.0_f64, 2.0, 3.0]);
    let e = (&x + &y).sin().sum().item::<f64>().unwrap_err().to_string();
    assert!(e.contains("f64[2]") && e.contains("f64[3]") && e.contains("staging.rs:"), "{e}");
}

/// A staged function that calls itself with the same arguments: an error that names it, not a stack that overflows.
#[test]
fn row_e4_a_staged_function_that_calls_itself_is_refused() {
    static ENDLESS: LazyLock<Fun<(Array,), Array>> = LazyLock::new(|| jit(endless));
    fn endless(x: &Array) -> Array {
        ENDLESS(x) + 1.0
    }
    static PAIR: LazyLock<Fun<(Array,), (Array, [Array; 2])>> = LazyLock::new(|| jit(pair));
    fn pair(x: &Array) -> (Array, [Array; 2]) {
        let (a, [b, c]) = PAIR(x);
        (&a + 1.0, [b, c * a])
    }
    // A new staged function at each level, and shapes that grow: found by the depth.
    fn anew(x: &Array) -> Array {
        jit(anew)(x) + 1.0
    }
    static GROWING: LazyLock<Fun<(Array,), Array>> = LazyLock::new(|| jit(growing));
    fn growing(x: &Array) -> Array {
        GROWING(&Array::concatenate([x, &x.index(..1)], 0)).sum()
    }
    let x = Array::from([0.5, 2.0]);
    let says = |e: Error, name: &str| {
        let text = e.to_string();
        assert!(e.kind() == ErrorKind::Verify && text.contains(&format!("`{name}` calls itself")), "{text}");
        assert!(text.contains("while_loop") && text.contains("staging.rs"), "{text}");
    };
    says(ENDLESS(&x).ok().unwrap_err(), "endless");
    says(ENDLESS.trace(&x).map(|_| ()).unwrap_err(), "endless");
    says(grad(|x: &Array| ENDLESS(x).sum())(&x).ok().unwrap_err(), "endless");
    says(PAIR(&x).1[1].clone().ok().unwrap_err(), "pair");
    says(anew(&x).ok().unwrap_err(), "anew");
    says(GROWING(&x).ok().unwrap_err(), "growing");
    // An argument that carries an error gives that error.
    let e = ENDLESS(&Array::from([1.0, 2.0]).reshape([3])).ok().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
}

/// A result whose structure only the function knows, and a function that never ends: a panic with the same text.
#[test]
fn without_a_structure_the_error_is_a_panic() {
    static LIST: LazyLock<Fun<(Array,), Vec<Array>>> = LazyLock::new(|| jit(list));
    fn list(x: &Array) -> Vec<Array> {
        LIST(x)
    }
    let panic = std::panic::catch_unwind(|| LIST(&Array::from(1.0_f64)).len()).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("`list` calls itself"), "{text}");
}

/// Recursion that ends is as good as any other: by a frozen number, by a shape, by functions inside functions.
#[test]
fn recursion_that_ends_is_fine() {
    static POWER: LazyLock<Fun<(Array, Static<usize>), Array>> = LazyLock::new(|| jit(power));
    fn power(x: &Array, n: &Static<usize>) -> Array {
        if n.0 == 0 { x.ones_like() } else { x * POWER(x, &Static(n.0 - 1)) }
    }
    static HALVES: LazyLock<Fun<(Array,), Array>> = LazyLock::new(|| jit(halves));
    fn halves(x: &Array) -> Array {
        let n = x.known_dims().unwrap()[0];
        if n == 1 { x.sum() } else { HALVES(&x.index(..n as i64 / 2)) + HALVES(&x.index(n as i64 / 2..)) }
    }
    fn chain(n: usize) -> Box<dyn Fn(&Array) -> Array + Send + Sync> {
        match n {
            0 => Box::new(Array::clone),
            n => {
                let inner = chain(n - 1);
                let f = jit(move |x: &Array| inner(x) + 1.0);
                Box::new(move |x| f(x))
            }
        }
    }
    assert_eq!(POWER(&Array::from(2.0), &Static(12)).item::<f64>().unwrap(), 4096.0);
    assert_eq!(HALVES(&Array::arange(0.0, 16.0, 1.0)).item::<f64>().unwrap(), 120.0);
    assert_eq!(chain(20)(&Array::from(0.5)).item::<f64>().unwrap(), 20.5);
}
