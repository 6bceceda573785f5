//! The public face of staging, as a user types it.

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
