//! The public face of derivatives and batching, as a user types it.

use gradus::prelude::*;

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-10 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

#[test]
fn forward_and_reverse() -> Result<()> {
    let f = |x: &Array| (x * x).sin();
    let x = Array::from(0.7_f64);
    let (y, dy) = jvp(f, &x, &Array::from(1.0_f64));
    let (y2, pullback) = vjp(f, &x);
    assert_eq!(y.item::<f64>()?, y2.item::<f64>()?);
    assert!((dy.item::<f64>()? - pullback.call(&Array::from(1.0_f64)).item::<f64>()?).abs() < 1e-15);
    // the two halves of reverse mode are programs, and what passes between them can be seen
    println!("{}\n{}", pullback.primal()?, pullback.program()?);
    assert!(!pullback.residuals().is_empty());
    println!("{} bytes of residuals: {:?}", pullback.residual_bytes(), pullback.residuals());
    Ok(())
}

#[test]
fn constants_leave_nothing_behind() -> Result<()> {
    let df = jit(grad(|x: &Array| x * 3.0_f64));
    let p = df.trace(&Array::spec("f64[]"))?.optimized();
    assert_eq!(p.equations().len(), 0, "{p}"); // the derivative of 3x is the constant 3
    Ok(())
}

#[test]
fn levels_are_not_confused() -> Result<()> {
    // d/dx ( x * d/dy (x + y) at y = 1 ) = 1
    let outer = grad(|x: &Array| {
        let x = x.clone();
        let x2 = x.clone();
        x * grad(move |y: &Array| &x2 + y)(&Array::from(1.0_f64))
    });
    assert_eq!(outer(&Array::from(5.0_f64)).item::<f64>()?, 1.0);
    let third = grad(grad(grad(|x: &Array| x.powi(4))));
    assert_eq!(third(&Array::from(2.0_f64)).item::<f64>()?, 48.0);
    Ok(())
}

#[test]
fn batching_composes() -> Result<()> {
    let loss = |w: &Array, x: &Array| (w * x).sum().tanh();
    let w = Array::from([0.1_f64, 0.2, 0.3]);
    let xs = Array::from([[1.0_f64, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let per_example = vmap(grad(loss)).axes((None, Some(0)));
    let a = per_example(&w, &xs);
    let b = jit(vmap(jit(grad(loss))).axes((None, Some(0))))(&w, &xs);
    assert_eq!(a.shape(), [2, 3]);
    close(&a, &b.to_vec::<f64>()?);
    let h = hessian(|x: &Array| (x * x * x).sum())(&w);
    close(&h, &[0.6, 0.0, 0.0, 0.0, 1.2, 0.0, 0.0, 0.0, 1.8]);
    Ok(())
}

#[test]
fn control_flow_differentiates() -> Result<()> {
    let f = |x: &Array| cond(x.sum().gt(0.0_f64), |x| x * x, |x| -x, x).sum();
    close(&jit(grad(f))(&Array::from([1.0_f64, 2.0])), &[2.0, 4.0]);
    close(&jit(grad(f))(&Array::from([-1.0_f64, -2.0])), &[-1.0, -1.0]);

    // reverse mode through a loop whose length only the values decide
    let newton_sqrt = |a: &Array| {
        let (_, x) = while_loop(
            |(a, x): &(Array, Array)| (x * x - a).abs().gt(1e-13_f64),
            |(a, x): &(Array, Array)| (a.clone(), (x + a / x) * 0.5_f64),
            (a.clone(), Array::from(1.0_f64)),
        );
        x
    };
    let d = jit(grad(newton_sqrt))(&Array::from(2.0_f64)).item::<f64>()?;
    assert!((d - 0.5 / 2.0_f64.sqrt()).abs() < 1e-9);

    let (last, all) =
        jit(|x: &Array| scan(|c: &Array, t: &Array| (c * t, c + t), Array::from(1.0_f64), x))(&Array::from([
            1.0_f64, 2.0, 3.0,
        ]));
    assert_eq!(last.item::<f64>()?, 6.0);
    close(&all, &[2.0, 3.0, 5.0]);
    Ok(())
}

#[test]
fn memory_of_a_gradient_is_a_choice() -> Result<()> {
    let layer = |x: &Array| x.sin().exp().tanh();
    let plain = |x: &Array| (0..8).fold(x.clone(), |h, _| layer(&h)).sum();
    let saved = |x: &Array| (0..8).fold(x.clone(), |h, _| checkpoint(layer)(&h)).sum();
    let x = Array::from(vec![0.3_f64; 1000]);
    let (_, a) = vjp(plain, &x);
    let (_, b) = vjp(saved, &x);
    assert!(b.residual_bytes() * 2 < a.residual_bytes());
    close(&a.call(&Array::from(1.0_f64)), &b.call(&Array::from(1.0_f64)).to_vec::<f64>()?);
    Ok(())
}

#[test]
fn custom_rules() -> Result<()> {
    let clipped = custom_vjp(
        |x: &Array| x.clone(),
        |x: &Array| (x.clone(), ()),
        |_res: &(), g: &Array| g.clamp(-1.0_f64, 1.0_f64),
    );
    close(&grad(move |x: &Array| (clipped(x) * 10.0_f64).sum())(&Array::from([1.0_f64, 2.0])), &[1.0, 1.0]);
    Ok(())
}

#[derive(Clone, Tree)]
struct Mlp {
    w1: Array,
    b1: Array,
    w2: Array,
    #[tree(skip)]
    activation: Activation, // static: part of the key
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Activation {
    Relu,
    Tanh,
}

fn loss(m: &Mlp, x: &Array, y: &Array) -> Array {
    let h = x.dot(&m.w1) + &m.b1;
    let h = match m.activation {
        Activation::Relu => h.relu(),
        Activation::Tanh => h.tanh(),
    };
    let e = h.dot(&m.w2) - y;
    (&e * &e).mean()
}

#[test]
fn a_model_is_a_struct() -> Result<()> {
    let m = Mlp {
        w1: Array::ones::<f32>([3, 4]),
        b1: Array::zeros::<f32>([4]),
        w2: Array::ones::<f32>([4, 1]),
        activation: Activation::Tanh,
    };
    let step = jit(value_and_grad(loss));
    let (l, g): (Array, Mlp) = step(&m, &Array::ones::<f32>([8, 3]), &Array::zeros::<f32>([8, 1]));
    assert_eq!(g.w1.shape(), [3, 4]);
    assert!(l.item::<f32>()?.is_finite());
    let relu = Mlp { activation: Activation::Relu, ..m };
    step(&relu, &Array::ones::<f32>([8, 3]), &Array::zeros::<f32>([8, 1])).0.item::<f32>()?;
    assert_eq!(step.stats().traces, 2);
    Ok(())
}

#[test]
fn gradients_by_any_argument_and_with_aux() -> Result<()> {
    let f = |x: &Array, y: &Array| x * x * y;
    let (x, y) = (Array::from(3.0_f64), Array::from(5.0_f64));
    assert_eq!(grad_by(1, f)(&x, &y).item::<f64>()?, 9.0);
    let (dx, dy) = jit(grad_all(f))(&x, &y);
    assert_eq!((dx.item::<f64>()?, dy.item::<f64>()?), (30.0, 9.0));
    let (g, aux) = grad_with_aux(|x: &Array| (x * x, x + 1.0_f64))(&x);
    assert_eq!((g.item::<f64>()?, aux.item::<f64>()?), (6.0, 4.0));
    let ((v, aux), g) = jit(value_and_grad_with_aux(|x: &Array| (x * x, x + 1.0_f64)))(&x);
    assert_eq!((v.item::<f64>()?, aux.item::<f64>()?, g.item::<f64>()?), (9.0, 4.0, 6.0));
    Ok(())
}

#[test]
fn jacobians_agree_in_both_modes() -> Result<()> {
    let f = |x: &Array| Array::stack([&x.index(0) * &x.index(1), x.index(1).sin()], 0);
    let x = Array::from([2.0_f64, 0.5]);
    let want = [0.5, 2.0, 0.0, 0.5_f64.cos()];
    close(&jacrev(f)(&x), &want);
    close(&jacfwd(f)(&x), &want);
    close(&jit(jacfwd(f))(&x), &want);
    let (_, linear) = linearize(f, &x);
    close(&linear.call(&Array::from([1.0_f64, 0.0])), &[0.5, 0.0]);
    close(&hvp(|x: &Array| (x * x * x).sum())(&x, &Array::from([1.0_f64, 2.0])), &[12.0, 6.0]);
    Ok(())
}

#[test]
fn the_edges_of_a_gradient() -> Result<()> {
    // An argument that is not used has zeros of its type; an integer too.
    let unused = grad(|x: &Vec<Array>| x[0].sum());
    let g = unused(&vec![Array::from([1.0_f64]), Array::from([2.0_f32, 3.0]), Array::from(7_i32)]);
    assert_eq!(g[0].to_vec::<f64>()?, [1.0]);
    assert_eq!(g[1].to_vec::<f32>()?, [0.0, 0.0]);
    assert_eq!(g[2].item::<i32>()?, 0);
    // The same array twice, an output that is an input, an argument captured and passed.
    let x = Array::from(3.0_f64);
    assert_eq!(grad(|x: &Array, y: &Array| x * y)(&x, &x).item::<f64>()?, 3.0);
    assert_eq!(grad(|x: &Array| x.clone())(&x).item::<f64>()?, 1.0);
    let captured = x.clone();
    assert_eq!(grad(move |x: &Array| x * &captured)(&x).item::<f64>()?, 3.0);
    // Both sides of a tie share.
    assert_eq!(grad(|x: &Array| x.maximum(3.0_f64))(&x).item::<f64>()?, 0.5);
    close(&grad(|x: &Array| x.max())(&Array::from([2.0_f64, 2.0, 1.0])), &[0.5, 0.5, 0.0]);
    Ok(())
}

#[test]
fn a_staged_function_stays_a_call_under_grad() -> Result<()> {
    let inner = jit(|x: &Array| (x * x).sin());
    let traced = jit(grad(inner)).trace(&Array::spec("f64[]"))?;
    assert_eq!(traced.program().count("call"), 2, "{}", traced.program());
    Ok(())
}

#[test]
fn a_jacobian_runs_a_loop_once() -> Result<()> {
    let steps = |w: &Array, x: &Array| {
        let goes_on = |(i, _): &(Array, Array)| i.lt(7_i64);
        while_loop(
            goes_on,
            |(i, y): &(Array, Array)| (i + 1_i64, (w * y).sin() + y * x.sum()),
            (Array::from(0_i64), x.clone()),
        )
        .1
    };
    let counted = |w: &Array, x: &Array| fori_loop(0, 7, |_, y: &Array| (w * y).sin() + y * x.sum(), x.clone());
    let again = |w: &Array, x: &Array| checkpoint(|y: &Array| (w * y).sin())(x) * x.sum();
    let (w, x) = (Array::from([0.3_f64, -0.4, 0.5]), Array::from([0.2_f64, 0.1, -0.3]));
    let one_by_one = |f: &(dyn Fn(&Array, &Array) -> Array + Sync), of_w: bool| {
        let column = |k: usize| {
            let unit: Vec<f64> = (0..3).map(|i| f64::from(u8::from(i == k))).collect();
            let unit = Array::from(unit);
            match of_w {
                true => jvp(|w: &Array| f(w, &x), &w, &unit).1,
                false => jvp(|x: &Array| f(&w, x), &x, &unit).1,
            }
        };
        Array::stack([column(0), column(1), column(2)].iter(), 1).to_vec::<f64>()
    };
    macro_rules! once {
        ($f:expr, $op:literal) => {
            let program = jit(jacfwd_by(1, $f)).trace(&w, &x)?.optimized().to_string();
            assert_eq!(program.matches($op).count(), 1, "{program}");
            close(&jacfwd_by(1, $f)(&w, &x), &one_by_one(&$f, false)?);
            close(&jit(jacfwd_by(1, $f))(&w, &x), &one_by_one(&$f, false)?);
            // Both arrays of a pair share the loop, and each has its own columns.
            let pair = |(w, x): &(Array, Array)| $f(w, x);
            let both = (w.clone(), x.clone());
            let program = jit(jacfwd(pair)).trace(&both)?.optimized().to_string();
            assert_eq!(program.matches($op).count(), 1, "{program}");
            for (by_w, by_x) in [jacfwd(pair)(&both), jit(jacfwd(pair))(&both)] {
                close(&by_w, &one_by_one(&$f, true)?);
                close(&by_x, &one_by_one(&$f, false)?);
            }
        };
    }
    once!(steps, "= while{");
    once!(counted, "= scan{");
    let program = jit(jacfwd_by(1, again)).trace(&w, &x)?.optimized().to_string();
    assert_eq!(program.matches("= sin ").count(), 1, "{program}");
    close(&jacfwd_by(1, again)(&w, &x), &one_by_one(&again, false)?);
    Ok(())
}

#[test]
fn a_batch_of_tangents_divides_once() -> Result<()> {
    // Each has one quotient of its own at most, and the slope one more, at the shape of the value and not of the batch. Not among them: `div`, `log` and
    // `sqrt`, whose divisor may be so small, or 0, that the quotient has a value and the reciprocal has none.
    let x = Array::from([0.3_f64, 0.6, 0.2, 0.9]);
    let functions: [(&str, fn(&Array) -> Array); 6] = [
        ("log1p", |x| x.log1p()),
        ("rsqrt", |x| x.rsqrt()),
        ("cbrt", |x| x.cbrt()),
        ("atan", |x| x.atan()),
        ("atanh", |x| x.atanh()),
        ("max", |x| x.max() * x),
    ];
    for (name, f) in functions {
        let program = jit(jacfwd(f)).trace(&x)?.optimized().to_string();
        let wide = program.lines().filter(|l| l.contains("= div ") && l.contains("[4,4]")).count();
        assert_eq!(wide, 0, "{name}: {program}");
        let narrow = program.lines().filter(|l| l.contains("= div ")).count();
        assert!(narrow <= 2, "{name}: {program}");
        close(&jacfwd(f)(&x), &jacrev(f)(&x).to_vec::<f64>()?);
    }
    Ok(())
}

#[test]
fn the_sum_of_a_product_over_an_axis_of_one_factor_is_a_product_with_the_sum() -> Result<()> {
    // Of the three products of a square with 40 centered rows, the one for the gradient by the center takes one row.
    let rows = Array::from((0..120).map(|i| f64::from(i % 17) / 8.0 - 1.0).collect::<Vec<_>>()).reshape([40, 3]);
    let f = move |w: &Array, center: &Array| ((rows.clone() - center) * 2.0_f64).dot(w).tanh().sum();
    let w = Array::from([[0.3_f64, -0.2, 0.1], [0.5, 0.4, -0.6], [0.2, 0.7, -0.1]]);
    let center = Array::from([0.1_f64, -0.3, 0.2]);
    let g = jit(grad_all(f.clone()));
    let program = g.trace(&w, &center)?.optimized().to_string();
    let large = program.lines().filter(|l| l.contains("dot_general{") && l.contains("[40,3]")).count();
    assert_eq!((program.matches("= dot_general{").count(), large), (3, 1), "{program}");
    let (by_w, by_center) = g(&w, &center);
    let at = |center: &Array| f(&w, center).item::<f64>();
    for k in 0..3 {
        let step = Array::from((0..3).map(|i| if i == k { 1e-6 } else { 0.0 }).collect::<Vec<f64>>());
        let slope = (at(&(&center + &step))? - at(&(&center - &step))?) / 2e-6;
        assert!((slope - by_center.to_vec::<f64>()?[k]).abs() < 1e-6 * (1.0 + slope.abs()));
    }
    close(&by_w, &grad_all(f)(&w, &center).0.to_vec::<f64>()?);
    Ok(())
}
