//! Derivative rules of users: `custom_jvp`, `custom_vjp`, `stop_gradient`. A rule for one mode serves the other where it
//! can, and says why where it cannot.

use gradus::prelude::*;

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-12 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

/// x³ with a derivative that is three times too large, so that it is seen which one was used.
fn cube() -> Fun<(Array,), Array> {
    custom_jvp(|x: &Array| x * x * x, |x: &Array, x_dot: &Array| (x * x * x, x * x * x_dot * 9.0_f64))
}

#[test]
fn row_d8_a_forward_rule_serves_both_modes_and_batches() -> Result<()> {
    let f = cube();
    let x = Array::from(2.0_f64);
    assert_eq!(f(&x).item::<f64>()?, 8.0);
    let call = |x: &Array| cube()(x);
    close(&jvp(call, &x, &Array::from(1.0_f64)).1, &[36.0]);
    close(&grad(cube())(&x), &[36.0]);
    close(&jit(grad(call))(&x), &[36.0]);
    close(&grad(jit(call))(&x), &[36.0]);
    let xs = Array::from([1.0_f64, 2.0]);
    close(&vmap(grad(call))(&xs), &[9.0, 36.0]);
    close(&grad(move |xs: &Array| vmap(call)(xs).sum())(&xs), &[9.0, 36.0]);
    // The rule itself is differentiated: 9x² has the slope 18x.
    close(&grad(grad(call))(&x), &[36.0]);
    close(&hessian(move |xs: &Array| call(xs).sum())(&xs), &[18.0, 0.0, 0.0, 36.0]);
    // In a loop and in a branch.
    let looped = move |x: &Array| fori_loop(0, 2, |_, y: &Array| call(y), x.clone());
    close(&grad(looped)(&Array::from(1.0_f64)), &[81.0]);
    Ok(())
}

#[test]
fn row_d8_a_backward_pass_serves_forward_mode_if_it_is_linear() -> Result<()> {
    let f = || {
        custom_vjp(
            |x: &Array, y: &Array| x * y,
            |x: &Array, y: &Array| (x * y, (x.clone(), y.clone())),
            |(x, y): &(Array, Array), bar: &Array| (y * bar * 10.0_f64, x * bar * 100.0_f64),
        )
    };
    let (x, y) = (Array::from(2.0_f64), Array::from(5.0_f64));
    let (a, b) = grad_all(f())(&x, &y);
    close(&a, &[50.0]);
    close(&b, &[200.0]);
    let one = Array::from(1.0_f64);
    let pair = move |(x, y): &(Array, Array)| f()(x, y);
    close(&jvp(pair, &(x.clone(), y.clone()), &(one.clone(), one.clone())).1, &[250.0]);
    close(&jit(jacfwd(pair))(&(x.clone(), y.clone())).0, &[50.0]);
    // Second derivatives differentiate the backward pass: 10 y has the slope 10 by y, through reverse mode again.
    let mixed = grad_by(1, move |x: &Array, y: &Array| grad(f())(x, y));
    close(&mixed(&x, &y), &[1000.0 / 100.0]);
    let over = vmap(grad(f())).axes((Some(0), None));
    close(&over(&Array::from([1.0_f64, 2.0]), &y), &[50.0, 50.0]);
    // An argument that all examples share gets the sum.
    let sum = grad_by(1, move |xs: &Array, y: &Array| vmap(f()).axes((Some(0), None))(xs, y).sum());
    close(&sum(&Array::from([1.0_f64, 2.0]), &y), &[300.0]);
    Ok(())
}

#[test]
fn row_d8_what_a_rule_cannot_do_is_a_clear_error() -> Result<()> {
    let clipped = || {
        custom_vjp(
            |x: &Array| x.clone(),
            |x: &Array| (x.clone(), ()),
            |_: &(), bar: &Array| bar.clamp(-1.0_f64, 1.0_f64),
        )
    };
    let x = Array::from([1.0_f64, 2.0]);
    close(&grad(move |x: &Array| (clipped()(x) * 10.0_f64).sum())(&x), &[1.0, 1.0]);
    close(&jit(grad(move |x: &Array| (clipped()(x) * 10.0_f64).sum()))(&x), &[1.0, 1.0]);
    let e = jvp(clipped(), &x, &x).1.ok().unwrap_err().to_string();
    assert!(e.contains("custom_vjp") && e.contains("not linear") && e.contains("custom_jvp"), "{e}");
    // A value that the function captures is not known to the rule: its derivative is refused, not zero.
    let f = |w: &Array| {
        let w = w.clone();
        let scaled = custom_jvp(move |x: &Array| x * &w, |x: &Array, x_dot: &Array| (x.clone(), x_dot.clone()));
        scaled(&Array::from(2.0_f64))
    };
    let e = grad(f)(&Array::from(3.0_f64)).item::<f64>().unwrap_err().to_string();
    assert!(e.contains("captured") && e.contains("argument"), "{e}");
    let g = |w: &Array| {
        let w = w.stop_gradient();
        let scaled = custom_jvp(
            {
                let w = w.clone();
                move |x: &Array| x * &w
            },
            {
                let w = w.clone();
                move |x: &Array, x_dot: &Array| (x * &w, x_dot * &w)
            },
        );
        scaled(&w)
    };
    assert_eq!(jit(g)(&Array::from(3.0_f64)).item::<f64>()?, 9.0);
    // Rules of other types than the function's.
    let wrong = custom_jvp(|x: &Array| x.sum(), |x: &Array, x_dot: &Array| (x.sum(), x_dot.clone()));
    let e = grad(wrong)(&x).to_vec::<f64>().unwrap_err().to_string();
    assert!(e.contains("forward rule") && e.contains("f64[2]") && e.contains("custom_rules.rs"), "{e}");
    let wrong = custom_vjp(|x: &Array| x.sum(), |x: &Array| (x.sum(), ()), |_: &(), bar: &Array| bar.clone());
    let e = grad(wrong)(&x).to_vec::<f64>().unwrap_err().to_string();
    assert!(e.contains("backward pass") && e.contains("f64[2]"), "{e}");
    Ok(())
}

#[test]
fn row_d8_static_and_integer_arguments_have_no_derivative() -> Result<()> {
    let power = || {
        custom_vjp(
            |x: &Array, n: &Static<i64>, k: &Array| x.powi(n.0) * k.cast(DType::F64),
            |x: &Array, n: &Static<i64>, k: &Array| (x.powi(n.0) * k.cast(DType::F64), (x.clone(), *n, k.clone())),
            |(x, n, k): &(Array, Static<i64>, Array), bar: &Array| {
                (x.powi(n.0 - 1) * (n.0 as f64) * k.cast(DType::F64) * bar, *n, k.clone())
            },
        )
    };
    let (x, k) = (Array::from(2.0_f64), Array::from(3_i32));
    close(&grad(power())(&x, &Static(3), &k), &[36.0]);
    close(&jit(grad(power()))(&x, &Static(2), &k), &[12.0]);
    close(&jit(power())(&x, &Static(2), &k), &[12.0]);
    let with_int = custom_jvp(
        |x: &Array, n: &Array| x * n.cast(DType::F64),
        |(x, n): &(Array, Array), (x_dot, n_dot): &(Array, Array)| {
            assert_eq!(n_dot.dtype(), DType::I32);
            (x * n.cast(DType::F64), x_dot * n.cast(DType::F64))
        },
    );
    close(&grad(with_int)(&x, &k), &[3.0]);
    Ok(())
}

#[test]
fn row_d8_gradients_stop_where_they_are_told() -> Result<()> {
    let x = Array::from([1.0_f64, 2.0]);
    close(&grad(|x: &Array| (x * stop_gradient(x)).sum())(&x), &[1.0, 2.0]);
    close(&grad(|x: &Array| x.stop_gradient().sum())(&x), &[0.0, 0.0]);
    let (y, dot) = jvp(|x: &Array| x.stop_gradient() * x, &x, &x);
    close(&y, &[1.0, 4.0]);
    close(&dot, &[1.0, 4.0]);
    // What is stopped costs nothing: no equation of the derivative is left.
    let p = jit(grad(|x: &Array| (x.stop_gradient().sin() + x).sum())).trace(&Array::spec("f64[2]"))?.optimized();
    assert_eq!(p.count("cos"), 0, "{p}");
    Ok(())
}

#[test]
fn row_e3_the_backward_pass_uses_the_mask_of_the_forward_pass() -> Result<()> {
    // Random bits are an input of the function; dropout keeps an element where its bit is set. However the mask gets to
    // the backward pass (saved, computed again, or through a checkpoint or a loop), it is the same mask.
    let bits = Array::from_vec((0..64u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect::<Vec<u32>>(), [64]);
    let x = Array::from_vec((0..64).map(|i| 0.1 + i as f64 * 0.01).collect::<Vec<f64>>(), [64]);
    let dropout = |x: &Array, bits: &Array| {
        let keep = (bits & 1_u32).eq(1_u32);
        keep.select(x * 2.0_f64, x.zeros_like())
    };
    let mask: Vec<f64> = bits.to_vec::<u32>()?.iter().map(|b| f64::from(b & 1)).collect();
    assert!(mask.contains(&0.0) && mask.contains(&1.0));
    let want: Vec<f64> = mask.iter().zip(x.to_vec::<f64>()?).map(|(m, x)| 2.0 * m * (2.0 * m * x).cos()).collect();
    let plain = move |x: &Array, bits: &Array| dropout(x, bits).sin().sum();
    let saving =
        move |x: &Array, bits: &Array| checkpoint(move |x: &Array, bits: &Array| dropout(x, bits).sin())(x, bits).sum();
    let looped = move |x: &Array, bits: &Array| {
        gradus::map(move |(x, b): &(Array, Array)| dropout(x, b).sin(), &(x.clone(), bits.clone())).sum()
    };
    close(&grad(plain)(&x, &bits), &want);
    close(&jit(grad(plain))(&x, &bits), &want);
    close(&grad(saving)(&x, &bits), &want);
    close(&jit(grad(saving))(&x, &bits), &want);
    close(&jit(grad(looped))(&x, &bits), &want);
    let (_, pullback) = vjp(move |x: &Array| plain(x, &bits), &x);
    close(&pullback.call(&Array::from(1.0_f64)), &want);
    close(&pullback.call(&Array::from(1.0_f64)), &want);
    Ok(())
}
