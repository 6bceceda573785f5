//! The promises on derivatives, one test for each row of `docs/features.txt`.

use gradus::Interpreter;
use gradus::extend::pipeline::Pipeline;
use gradus::prelude::*;

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-12 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

#[test]
fn row_d1_forward_mode_is_a_program() -> Result<()> {
    let p = jit(|x: &Array| (x * x).sin()).trace(&Array::spec("f64[]"))?.program().clone().with_name("f");
    let (d, varies) = gradus::extend::transform::jvp(&p, &[true])?;
    assert_eq!(varies, [true]);
    let text = "\
fn jvp_f(x0: f64[], x1: f64[]) -> (f64[], f64[]) {
  x2: f64[] = mul x0 x0
  x3: f64[] = mul x1 x0
  x4: f64[] = mul x0 x1
  x5: f64[] = add x3 x4
  x6: f64[] = sin x2
  x7: f64[] = cos x2
  x8: f64[] = mul x5 x7
  return x6, x8
}
";
    assert_eq!(d.to_string(), text);
    let (y, dy) = jvp(|x: &Array| (x * x).sin(), &Array::from(0.7_f64), &Array::from(2.0_f64));
    close(&y, &[0.49_f64.sin()]);
    close(&dy, &[0.49_f64.cos() * 1.4 * 2.0]);
    Ok(())
}

#[test]
fn row_d2_reverse_mode_is_two_programs_with_residuals_between() -> Result<()> {
    let x = Array::from([0.5_f64, 1.5]);
    let (y, pullback) = vjp(|x: &Array| (x * x).sin().sum(), &x);
    let residuals = pullback.residuals();
    assert_eq!(residuals.iter().map(|r| r.bytes()).sum::<usize>(), pullback.residual_bytes());
    for r in &residuals {
        assert!(pullback.primal()?.to_string().contains(&format!("{}: {}", r.name(), r.ty())), "{r}");
    }
    // Each half compiles and runs alone.
    let compile = |p: &Program| Pipeline::on(Interpreter).code(p);
    let (primal, back) = (compile(pullback.primal()?)?, compile(pullback.program()?)?);
    let mut given = primal.run(&[x.clone()])?.into_vec();
    let saved = given.split_off(1);
    assert_eq!(saved.len(), residuals.len());
    assert_eq!(given[0].item::<f64>()?, y.item::<f64>()?);
    let inputs: Vec<Array> = saved.into_iter().chain([Array::from(1.0_f64)]).collect();
    let x_bar = back.run(&inputs)?.swap_remove(0);
    close(&x_bar, &[0.25_f64.cos(), 2.25_f64.cos() * 3.0]);
    close(&pullback.call(&Array::from(1.0_f64)), &x_bar.to_vec::<f64>()?);
    let (value, gradient) = value_and_grad(|x: &Array| (x * x).sin().sum())(&x);
    assert_eq!(value.item::<f64>()?, y.item::<f64>()?);
    close(&gradient, &x_bar.to_vec::<f64>()?);
    Ok(())
}

#[test]
fn row_d3_levels_nest_without_confusion() -> Result<()> {
    let x = Array::from(2.0_f64);
    close(&grad(grad(grad(|x: &Array| x.powi(5))))(&x), &[60.0 * 4.0]);
    close(&jit(grad(jit(grad(jit(grad(|x: &Array| x.powi(5)))))))(&x), &[240.0]);
    let v = Array::from([1.0_f64, 2.0]);
    let f = |x: &Array| (x * x * x).sum() * x.sum();
    // By hand: f = s₃ s₁, so H = 3x_j² + 3x_i² off the diagonal, and 6x_i s₁ + 6x_i² on it.
    let (a, b) = (1.0, 2.0);
    let want = [6.0 * a * 3.0 + 6.0 * a * a, 15.0, 15.0, 6.0 * b * 3.0 + 6.0 * b * b];
    close(&hessian(f)(&v), &want);
    close(&jacfwd(grad(f))(&v), &want);
    close(&jacrev(grad(f))(&v), &want);
    close(&jacrev(jacfwd(f))(&v), &want);
    close(&hvp(f)(&v, &Array::from([1.0_f64, 0.0])), &want[..2]);
    // d/dx (x · d/dy (x + y)) = 1, and the same with forward mode inside.
    let confusing = |x: &Array| {
        let (a, b) = (x.clone(), x.clone());
        a * grad(move |y: &Array| &b + y)(&Array::from(1.0_f64))
    };
    close(&grad(confusing)(&x), &[1.0]);
    let forward = |x: &Array| {
        let (a, b) = (x.clone(), x.clone());
        let one = Array::from(1.0_f64);
        a * jvp(move |y: &Array| &b * y, &one, &one).1
    };
    close(&grad(forward)(&x), &[4.0]);
    Ok(())
}

#[test]
fn row_d4_any_axis_in_and_out() -> Result<()> {
    let loss = |w: &Array, x: &Array| (w * x).sum().tanh();
    let w = Array::from([0.1_f64, 0.2, 0.3]);
    let xs = Array::from([[1.0_f64, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let rows: Vec<f64> = (0..2).flat_map(|i| grad(loss)(&w, &xs.index(i)).to_vec::<f64>().unwrap()).collect();
    close(&vmap(grad(loss)).axes((None, Some(0)))(&w, &xs), &rows);
    close(&vmap(grad(loss)).axes((None, Some(1)))(&w, &xs.t()), &rows);
    close(&vmap(grad(loss)).axes((None, Some(-1)))(&w, &xs.t()), &rows);
    close(&vmap(grad(loss)).axes((None, Some(0))).out_axis(1)(&w, &xs).t(), &rows);
    // An axis for each result.
    let both = |x: &Array| (x * 2.0_f64, x.sum());
    let (twice, sums) = vmap(both).out_axes([1, 0])(&xs);
    close(&twice.t(), &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    close(&sums, &[6.0, 15.0]);
    let failed = vmap(both).out_axes([0, 0, 0])(&xs).0;
    assert!(failed.error().is_some_and(|e| e.to_string().contains("3 axes for 2 arrays of its result")), "{failed:?}");
    // Jacobians are batches of derivatives.
    let f = |x: &Array| Array::stack([x.sum().sin(), (x * x).sum()], 0);
    let basis = Array::eye::<f64>(3);
    let by_columns = vmap(move |v: &Array| jvp(f, &Array::from([0.1_f64, 0.2, 0.3]), v).1);
    close(&by_columns(&basis).t(), &jacfwd(f)(&w).to_vec::<f64>()?);
    close(&jacrev(f)(&w), &jacfwd(f)(&w).to_vec::<f64>()?);
    // Nested, over a loop and a branch.
    let table = vmap(
        vmap(|a: &Array, b: &Array| cond(a.gt(b), |(a, b)| a * b, |(a, b)| a - b, &(a.clone(), b.clone())))
            .axes((None, Some(0))),
    )
    .axes((Some(0), None));
    close(&table(&Array::from([1.0_f64, 2.0]), &Array::from([0.5_f64, 3.0])), &[0.5, -2.0, 1.0, -1.0]);
    Ok(())
}

/// Equations of the optimized gradient of a chain of `n` operations.
fn gradient_size(n: usize, op: impl Fn(usize, &Array) -> Array + Send + Sync + 'static) -> Result<usize> {
    let chain = move |x: &Array| (0..n).fold(x.clone(), |y, i| op(i, &y));
    let p = jit(grad(chain)).trace(&Array::spec("f64[]"))?.optimized();
    Ok(p.equations().len())
}

#[test]
fn row_d9_the_gradient_of_a_chain_has_three_equations_for_each_operation() -> Result<()> {
    let n = 120;
    let mixed = |i: usize, y: &Array| match i % 8 {
        0 => y.sin(),
        1 => y.exp(),
        2 => y.tanh(),
        3 => y * 1.5_f64,
        4 => y + 0.5_f64,
        5 => (y + 2.0_f64).sqrt(),
        6 => y.logistic(),
        _ => y.log1p(),
    };
    let size = gradient_size(n, mixed)?;
    assert!(size <= 3 * n + 4, "{size} equations for {n} operations");
    for (name, op) in [
        ("sin", (|_, y| y.sin()) as fn(usize, &Array) -> Array),
        ("exp", |_, y| y.exp()),
        ("sqrt", |_, y| y.sqrt()),
        ("log", |_, y| y.log()),
        ("square", |_, y| y * y),
        ("scale", |_, y| y * 0.5_f64),
        ("shift", |_, y| y + 0.5_f64),
        ("select", |_, y| y.gt(0.0_f64).select(y * 2.0_f64, y.clone())),
    ] {
        let size = gradient_size(n, op)?;
        let operations = if name == "select" { 3 * n } else { n };
        assert!(size <= 3 * operations + 4, "{name}: {size} equations for {operations} operations");
    }
    // Slopes that take two operations to compute: 1 - y², y (1 - y), -y / x. In a mixture they are made up for.
    for op in [(|_, y| y.tanh()) as fn(usize, &Array) -> Array, |_, y| y.logistic(), |_, y| y.recip()] {
        let size = gradient_size(n, op)?;
        assert!(size <= 4 * n + 4, "{size} equations for {n} operations");
    }
    Ok(())
}

#[test]
fn row_d9_inactive_inputs_cost_nothing() -> Result<()> {
    let f = |x: &Array, y: &Array| (x.sin() * y.exp().cos() + y.tanh()).sum();
    let specs = (Array::spec("f64[4]"), Array::spec("f64[4]"));
    let by_x = jit(grad(f)).trace(&specs.0, &specs.1)?.optimized();
    // By x only: the value is not asked for, tanh(y) has no part, and exp and cos of y are computed once.
    let counts = ["sin", "cos", "exp", "tanh", "mul"].map(|name| by_x.count(name));
    assert_eq!(counts, [0, 2, 1, 0, 1], "{by_x}");
    // A stopped, an integer and an unused argument leave nothing of themselves.
    let g = |x: &Array, k: &Array, _unused: &Array| (x * k.cast(DType::F64)).sum();
    let p = jit(grad_all(g)).trace(&specs.0, &Array::spec("i32[4]"), &specs.1)?.optimized();
    assert_eq!(p.equations().len(), 1, "{p}");
    // Through a call, a branch and a loop: what does not vary is not carried along.
    let looped = |x: &Array, y: &Array| {
        let (a, b) = fori_loop(0, 3, |_, (a, b): &(Array, Array)| (a * x, b.sin()), (x.clone(), y.clone()));
        a + b
    };
    let p = jit(looped).trace(&Array::spec("f64[]"), &Array::spec("f64[]"))?.program().clone();
    let (d, _) = gradus::extend::transform::jvp(&p, &[true, false])?;
    assert_eq!((d.count("sin"), d.count("cos")), (1, 0), "{d}");
    Ok(())
}

#[test]
fn row_t5_eager_and_compiled_gradients_agree_and_are_counted() -> Result<()> {
    // A host branch on a value: un-jitted it follows the numbers, each call is traced anew.
    let f = |x: &Array| if x.item::<f64>().is_ok_and(|v| v > 1.0) { x * x } else { x.sin() };
    let eager = grad(f);
    for (x, want) in [(2.0, 4.0), (0.5, 0.5_f64.cos()), (3.0, 6.0)] {
        close(&eager(&Array::from(x)), &[want]);
    }
    assert_eq!((eager.stats().traces, eager.stats().compiles), (3, 0));
    let smooth = |x: &Array| cond(x.gt(1.0_f64), |x| x * x, |x| x.sin(), x);
    let compiled = jit(grad(smooth));
    for (x, want) in [(2.0, 4.0), (0.5, 0.5_f64.cos()), (3.0, 6.0)] {
        close(&compiled(&Array::from(x)), &[want]);
    }
    assert_eq!((compiled.stats().traces, compiled.stats().compiles, compiled.stats().hits), (1, 1, 2));
    Ok(())
}

#[test]
fn row_t7_rewrites_are_exact_unless_the_user_allows_otherwise() -> Result<()> {
    let f = |x: &Array| (x * 0.0_f64 + 0.0_f64) + (x - x) + Array::from(0.0_f64) / x;
    let exact = jit(f);
    assert!(exact(&Array::from(f64::INFINITY)).item::<f64>()?.is_nan());
    assert!(exact(&Array::from(0.0_f64)).item::<f64>()?.is_nan());
    let relaxed = jit(f).exactness(Exactness::Relaxed);
    assert_eq!(relaxed.trace(&Array::spec("f64[]"))?.optimized().equations().len(), 0);
    assert_eq!(relaxed(&Array::from(f64::INFINITY)).item::<f64>()?, 0.0);
    // Finite numbers are the same, in nested programs and for complex numbers too.
    let looped = |x: &Array| fori_loop(0, 3, |_, y: &Array| y * 1.0_f64 + y * 0.0_f64 + x, x.clone());
    let (a, b) = (jit(looped), jit(looped).exactness(Exactness::Relaxed));
    assert_eq!(a(&Array::from(1.5_f64)).item::<f64>()?, b(&Array::from(1.5_f64)).item::<f64>()?);
    assert_eq!(b.trace(&Array::spec("f64[]"))?.optimized().count("mul"), 0);
    let unit = |z: &Array| z * Array::from(Complex::new(1.0_f64, 0.0));
    assert_eq!(jit(unit).exactness(Exactness::Relaxed).trace(&Array::spec("c128[]"))?.optimized().equations().len(), 0);
    assert_eq!(jit(unit).trace(&Array::spec("c128[]"))?.optimized().equations().len(), 1);
    Ok(())
}
