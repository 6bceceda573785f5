//! Control flow in programs, as a user types it: values, both derivative modes and batches of every construct.

use gradus::prelude::*;

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-10 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

/// The same function through `grad`, `jit(grad)`, forward mode and a loop over examples.
fn agree(f: impl Fn(&Array) -> Array + Clone + Send + Sync + 'static, points: &[f64]) -> Result<()> {
    let each: Vec<f64> =
        points.iter().map(|x| grad(f.clone())(&Array::from(*x)).item::<f64>()).collect::<Result<_>>()?;
    for (x, want) in points.iter().zip(&each) {
        let x = Array::from(*x);
        check_grads(f.clone(), &x, 2)?;
        close(&jit(grad(f.clone()))(&x), &[*want]);
        close(&jvp(f.clone(), &x, &Array::from(1.0_f64)).1, &[*want]);
        close(&grad(jit(f.clone()))(&x), &[*want]);
    }
    let all = Array::from(points.to_vec());
    let values: Vec<f64> = points.iter().map(|x| f(&Array::from(*x)).item::<f64>()).collect::<Result<_>>()?;
    close(&vmap(f.clone())(&all), &values);
    close(&jit(vmap(f.clone()))(&all), &values);
    close(&vmap(grad(f.clone()))(&all), &each);
    close(&jit(vmap(jit(grad(f.clone()))))(&all), &each);
    let g = f.clone();
    close(&grad(move |xs: &Array| vmap(g.clone())(xs).sum())(&all), &each);
    Ok(())
}

#[test]
fn row_d6_cond() -> Result<()> {
    agree(|x: &Array| cond(x.gt(0.5_f64), |x| x * x * x, |x| x.sin(), x), &[0.2, 0.9, -1.0, 2.0])
}

#[test]
fn row_d6_cond_takes_and_gives_trees_and_captures() -> Result<()> {
    let f = |x: &Array| {
        let scale = x.cos();
        let (a, b) = cond(
            x.gt(0.0_f64),
            |(x, n): &(Array, Array)| (x * &scale, n + 1),
            |(x, n): &(Array, Array)| (x - &scale, n + 2),
            &(x.clone(), Array::from(3_i32)),
        );
        a * b.cast(DType::F64)
    };
    agree(f, &[0.7, -0.4])?;
    assert_eq!(f(&Array::from(0.0_f64)).item::<f64>()?, -5.0);
    Ok(())
}

#[test]
fn row_d6_switch_clamps_its_number() -> Result<()> {
    let f = |x: &Array| {
        let i = (x * 2.0_f64).cast(DType::I32);
        switch(i, &[&|x: &Array| x.sin(), &|x: &Array| x * x, &|x: &Array| x.exp()], x)
    };
    agree(f, &[-3.2, 0.2, 0.7, 1.2, 5.1])
}

#[test]
fn row_d6_an_unbatched_predicate_stays_a_branch() -> Result<()> {
    let f = |p: &Array, x: &Array| cond(p, |x| x.sin(), |x| x.exp(), x);
    let both = jit(vmap(f).axes((None, Some(0))));
    let traced = both.trace(&Array::spec("bool[]"), &Array::spec("f64[4]"))?;
    assert_eq!((traced.program().count("switch"), traced.program().count("select")), (1, 0), "{}", traced.program());
    let lanes = jit(vmap(f)).trace(&Array::spec("bool[4]"), &Array::spec("f64[4]"))?;
    assert!(lanes.program().count("select") > 0, "{}", lanes.program());
    let y = both(&Array::from(true), &Array::from([0.0_f64, 1.0]));
    close(&y, &[0.0, 1.0_f64.sin()]);
    Ok(())
}

#[test]
fn a_branch_that_an_example_does_not_take_cannot_poison_it() -> Result<()> {
    // The square root of zero has no slope; the branch keeps away from it, and so must the batch.
    let f = |x: &Array| cond(x.gt(0.0_f64), |x| x.sqrt(), |x| x * 2.0_f64, x);
    let xs = Array::from([0.0_f64, 4.0, -1.0]);
    close(&vmap(grad(f))(&xs), &[2.0, 0.25, 2.0]);
    close(&jit(vmap(grad(f)))(&xs), &[2.0, 0.25, 2.0]);
    close(&grad(move |xs: &Array| vmap(f)(xs).sum())(&xs), &[2.0, 0.25, 2.0]);
    // No example takes the branch: it does not run.
    close(&vmap(grad(f))(&Array::from([0.0_f64, -1.0])), &[2.0, 2.0]);
    Ok(())
}

fn newton_sqrt(a: &Array) -> Array {
    let (_, x) = while_loop(
        |(a, x): &(Array, Array)| (x * x - a).abs().gt(1e-13_f64),
        |(a, x): &(Array, Array)| (a.clone(), (x + a / x) * 0.5_f64),
        (a.clone(), Array::from(1.0_f64)),
    );
    x
}

#[test]
fn row_d6_reverse_through_an_unbounded_while_loop() -> Result<()> {
    agree(newton_sqrt, &[2.0, 0.3, 0.9])?;
    let d = jit(grad(newton_sqrt))(&Array::from(2.0_f64)).item::<f64>()?;
    assert!((d - 0.5 / 2.0_f64.sqrt()).abs() < 1e-12);
    let second = jit(grad(grad(newton_sqrt)))(&Array::from(2.0_f64)).item::<f64>()?;
    assert!((second + 0.25 * 2.0_f64.powf(-1.5)).abs() < 1e-9, "{second}");
    Ok(())
}

#[test]
fn row_d6_every_history_of_a_while_loop_gives_the_same_gradient() -> Result<()> {
    let f = |history: History| {
        move |x: &Array| {
            let x = x.clone();
            let (_, y) = WhileOptions::new().history(history).while_loop(
                |(i, _): &(Array, Array)| i.lt(37_i64),
                move |(i, y): &(Array, Array)| (i + 1_i64, (y * &x).sin() + y * 0.5_f64),
                (Array::from(0_i64), Array::from(0.4_f64)),
            );
            y
        }
    };
    let x = Array::from(1.3_f64);
    let want = jvp(f(History::default()), &x, &Array::from(1.0_f64)).1.item::<f64>()?;
    for history in [2, 3, 5, 32].map(History::Checkpoints).into_iter().chain([37, 64].map(History::Limit)) {
        close(&grad(f(history))(&x), &[want]);
        close(&jit(grad(f(history)))(&x), &[want]);
    }
    // A limit ends the loop, forward and backward alike.
    let short = f(History::Limit(5));
    check_grads(short, &x, 2)?;
    let three = jvp(f(History::Limit(5)), &x, &Array::from(1.0_f64)).1.item::<f64>()?;
    close(&grad(f(History::Limit(5)))(&x), &[three]);
    assert!((three - want).abs() > 1e-3);
    Ok(())
}

#[test]
fn a_batched_while_loop_freezes_examples_that_are_done() -> Result<()> {
    // Division by the distance to zero: an example that is done stands where the body divides by zero.
    let f = |x: &Array| {
        while_loop(
            |x: &Array| x.gt(0.5_f64),
            |x: &Array| cond(x.gt(1.5_f64), |x| x - 1.0_f64, |x| x * 0.0_f64, x),
            x.clone(),
        )
    };
    let xs = Array::from([0.0_f64, 3.25, 1.0, 7.75]);
    close(&vmap(f)(&xs), &[0.0, 0.0, 0.0, 0.0]);
    let g =
        |x: &Array| while_loop(|x: &Array| x.gt(0.5_f64), |x: &Array| x - x.recip() * 0.25_f64 - 0.25_f64, x.clone());
    let each: Vec<f64> = [0.0, 3.0, 1.0, 0.25].map(|x| grad(g)(&Array::from(x)).item::<f64>().unwrap()).to_vec();
    assert_eq!(each[0], 1.0);
    let xs = Array::from([0.0_f64, 3.0, 1.0, 0.25]);
    close(&vmap(grad(g))(&xs), &each);
    close(&grad(move |xs: &Array| vmap(g)(xs).sum())(&xs), &each);
    Ok(())
}

/// A batch of a batch of loops is one of more examples: each runs as long as it has to, whichever of its numbers all examples of one of the batches share.
#[test]
fn batches_of_batched_while_loops_are_one_batch() -> Result<()> {
    // Steps until the number is small; one that is done would divide by zero if it went on.
    let one = |a: &Array, b: &Array, x: &Array| {
        let (a, b) = (a.clone(), b.clone());
        while_loop(|x: &Array| x.gt(0.5_f64), move |x: &Array| (x - (x - 0.5).recip() * 0.0) * &a * b.sin(), x.clone())
    };
    let (n, m) = (3, 4);
    let a = Array::from([0.5_f64, 0.75, 0.25]);
    let b = Array::from([0.9_f64, 1.1, 0.4, 1.3]);
    let x = Array::linspace(0.2_f64, 3.5, n * m).reshape([n, m]);
    let item = |x: Array| x.item::<f64>();
    let mut want = Vec::new();
    let mut slopes = Vec::new();
    for i in 0..n {
        for j in 0..m {
            let (a, b, x) = (a.index(i), b.index(j), x.index((i, j)));
            want.push(item(one(&a, &b, &x))?);
            slopes.push(item(grad(|x: &Array| one(&a, &b, x))(&x))?);
        }
    }
    // `a` has the outer axis alone, `b` the inner one, `x` both.
    let inner = move |a: &Array, b: &Array, x: &Array| {
        let a = a.clone();
        vmap(move |b: &Array, x: &Array| one(&a, b, x))(b, x)
    };
    let both = move |a: &Array, b: &Array, x: &Array| {
        let b = b.clone();
        vmap(move |a: &Array, x: &Array| inner(a, &b, x))(a, x)
    };
    close(&both(&a, &b, &x).flatten(), &want);
    close(&jit(both)(&a, &b, &x).flatten(), &want);
    let f = jit(both).trace(&a, &b, &x)?;
    let loops = f.program().to_string().matches("while{").count();
    assert_eq!((loops, f.program().to_string().matches("reduce_or").count()), (1, 1), "{}", f.program());
    // Derivatives in both modes, through both batches and inside of them.
    let slope = grad(move |x: &Array| {
        both(&Array::from([0.5_f64, 0.75, 0.25]), &Array::from([0.9_f64, 1.1, 0.4, 1.3]), x).sum()
    })(&x);
    close(&slope.flatten(), &slopes);
    check_grads(
        move |a: &Array| both(a, &Array::from([0.9_f64, 1.1, 0.4, 1.3]), &Array::full([3, 4], 2.3_f64)),
        &a,
        2,
    )?;
    check_grads(move |b: &Array| both(&Array::from([0.5_f64, 0.75, 0.25]), b, &Array::full([3, 4], 2.3_f64)), &b, 2)?;
    let each = move |a: &Array, x: &Array| {
        let a = a.clone();
        vmap(grad(move |x: &Array| one(&a, &Array::from(0.9_f64), x)))(x)
    };
    let whole = jit(vmap(each))(&a, &x);
    for i in 0..n {
        for j in 0..m {
            let (a, x) = (a.index(i), x.index((i, j)));
            close(&whole.index((i, j)).reshape([1]), &[item(grad(|x: &Array| one(&a, &Array::from(0.9_f64), x))(&x))?]);
        }
    }
    Ok(())
}

/// The same with a limit, three times, with none in one of the batches, and where what one batch shares is much more than is carried.
#[test]
fn batches_of_batches_of_while_loops_at_the_edges() -> Result<()> {
    let options = || WhileOptions::new().history(History::Limit(3));
    let limited =
        move |x: &Array| options().while_loop(|x: &Array| x.lt(10.0_f64), |x: &Array| x * 2.0 + 1.0, x.clone());
    let x = Array::linspace(-1.0_f64, 12.0, 24).reshape([2, 3, 4]);
    let want: Vec<f64> =
        x.flatten().to_vec::<f64>()?.iter().map(|x| limited(&Array::from(*x)).item::<f64>()).collect::<Result<_>>()?;
    close(&vmap(vmap(vmap(limited)))(&x).flatten(), &want);
    close(&jit(vmap(vmap(vmap(limited))))(&x).flatten(), &want);
    assert_eq!(jit(vmap(vmap(limited)))(&Array::zeros::<f64>([0, 3])).known_dims()?, [0, 3]);
    assert_eq!(jit(vmap(vmap(limited)))(&Array::zeros::<f64>([2, 0])).known_dims()?, [2, 0]);
    // A matrix for each of the outer batch.
    let step = |w: &Array, x: &Array| {
        let w = w.clone();
        while_loop(|x: &Array| (x * x).sum().gt(1.0_f64), move |x: &Array| w.dot(x), x.clone())
    };
    let w = Array::linspace(-0.03_f64, 0.04, 2 * 20 * 20).reshape([2, 20, 20]);
    let x = Array::linspace(-1.0_f64, 12.0, 120).reshape([2, 3, 20]);
    let inner = move |w: &Array, x: &Array| {
        let w = w.clone();
        vmap(move |x: &Array| step(&w, x))(x)
    };
    let y = jit(vmap(inner))(&w, &x);
    for i in 0..2 {
        for j in 0..3 {
            close(&y.index((i, j)), &step(&w.index(i), &x.index((i, j))).to_vec::<f64>()?);
        }
    }
    Ok(())
}

#[test]
fn row_d6_fori_loop_with_known_and_with_traced_bounds() -> Result<()> {
    let known = |x: &Array| fori_loop(0, 5, |i, y: &Array| y * x.sin() + i.cast(DType::F64), Array::from(1.0_f64));
    agree(known, &[0.3, 1.1])?;
    let program = jit(known).trace(&Array::spec("f64[]"))?.program().clone();
    assert_eq!((program.count("scan"), program.count("while")), (1, 0));
    let traced =
        |x: &Array, n: &Array| fori_loop(0, n, |i, y: &Array| y * x.sin() + i.cast(DType::F64), Array::from(1.0_f64));
    let program = jit(traced).trace(&Array::spec("f64[]"), &Array::spec("i64[]"))?.program().clone();
    assert_eq!((program.count("scan"), program.count("while")), (0, 1));
    let x = Array::from(0.3_f64);
    let want = grad(known)(&x).item::<f64>()?;
    close(&jit(grad(traced))(&x, &Array::from(5_i64)), &[want]);
    assert_eq!(jit(traced)(&x, &Array::from(-2_i64)).item::<f64>()?, 1.0);
    Ok(())
}

#[test]
fn row_d6_scan_in_both_directions() -> Result<()> {
    let xs = Array::from([1.0_f64, 2.0, 3.0]);
    let step = |c: &Array, t: &Array| (c * 0.5_f64 + t, c + t);
    let (last, all) = scan(step, Array::from(1.0_f64), &xs);
    close(&last, &[0.125 + 0.25 + 1.0 + 3.0]);
    close(&all, &[2.0, 3.5, 5.75]);
    let (last, all) = ScanOptions::new().reverse().scan(step, Array::from(1.0_f64), &xs);
    close(&last, &[0.125 + 0.75 + 1.0 + 1.0]);
    close(&all, &[3.75 + 1.0, 5.5, 4.0]);
    let loss = |x: &Array| {
        let xs = Array::stack([x, &x.sin(), &x.exp()], 0);
        let (last, all) = scan(|c: &Array, t: &Array| ((c * t).tanh() + t, c * x), Array::from(0.5_f64), &xs);
        let (first, back) = ScanOptions::new().reverse().scan(|c: &Array, t: &Array| (c * t, c.sin()), last, &all);
        first + back.sum()
    };
    agree(loss, &[0.4, 0.9])
}

#[test]
fn row_d6_scan_takes_trees_and_every_unrolling_gives_the_same() -> Result<()> {
    let xs = (Array::from([[1.0_f64, 2.0], [0.5, -1.0], [0.3, 0.2]]), Array::from([1_i32, 2, 3]));
    for unroll in [0, 1, 2, 3, 7] {
        let options = ScanOptions::new().unroll(unroll);
        let ((v, n), (norms, ())) = jit({
            let options = options.clone();
            move |v: &Array, xs: &(Array, Array)| {
                options.scan(
                    |(v, n): &(Array, Array), (x, k): &(Array, Array)| ((v * 0.5_f64 + x, n + k), ((v * x).sum(), ())),
                    (v.clone(), Array::from(0_i32)),
                    xs,
                )
            }
        })(&Array::from([0.1_f64, 0.2]), &xs);
        close(&v, &[0.0125 + 0.25 + 0.25 + 0.3, 0.025 + 0.5 - 0.5 + 0.2]);
        assert_eq!(n.item::<i32>()?, 6);
        assert_eq!(norms.shape(), [3]);
    }
    Ok(())
}

#[test]
fn scans_without_carries_without_sequences_and_without_steps() -> Result<()> {
    let squares = gradus::map(|x: &Array| x * x, &Array::from([1.0_f64, 2.0, 3.0]));
    close(&squares, &[1.0, 4.0, 9.0]);
    close(
        &grad(|xs: &Array| gradus::map(|x: &Array| x.sin(), xs).sum())(&Array::from([0.0_f64, 1.0])),
        &[1.0, 1.0_f64.cos()],
    );
    let options = ScanOptions::new().length(4);
    let (c, ys) = options.scan(|c: &Array, (): &()| (c * 2.0_f64, c.clone()), Array::from(1.0_f64), &());
    close(&c, &[16.0]);
    close(&ys, &[1.0, 2.0, 4.0, 8.0]);
    let none = Array::zeros::<f64>([0usize, 3]);
    let (c, ys) = scan(|c: &Array, x: &Array| (c + x.sum(), x * 2.0_f64), Array::from(1.0_f64), &none);
    assert_eq!((c.item::<f64>()?, ys.shape().to_string()), (1.0, "[0,3]".to_string()));
    let g = grad(|xs: &Array| scan(|c: &Array, x: &Array| (c + x.sum(), ()), Array::from(1.0_f64), xs).0)(&none);
    assert_eq!(g.shape(), [0, 3]);
    Ok(())
}

#[test]
fn row_d6_associative_scan_of_any_length() -> Result<()> {
    for n in [0usize, 1, 2, 3, 5, 8, 13] {
        let xs: Vec<f64> = (0..n).map(|i| 0.5 + i as f64 * 0.1).collect();
        let mut want = Vec::new();
        let mut p = 1.0;
        for x in &xs {
            p *= x;
            want.push(p);
        }
        close(&associative_scan(|a: &Array, b: &Array| a * b, &Array::from(xs)), &want);
    }
    // y' = a y + b, by composing the maps: two by two matrices would do the same.
    let f = |x: &Array| {
        let a = Array::stack([x, &x.sin(), &(x * 0.5_f64), &x.cos(), x], 0);
        let b = Array::stack([&x.exp(), x, x, &x.tanh(), x], 0);
        let (_, ys) = associative_scan(
            |(a, b): &(Array, Array), (c, d): &(Array, Array)| (a * c, b * c + d),
            &(a.clone(), b.clone()),
        );
        let (last, _) = scan(|y: &Array, (a, b): &(Array, Array)| (y * a + b, ()), Array::from(0.0_f64), &(a, b));
        ys.sum() + (ys.index(4) - last)
    };
    agree(f, &[0.3, 0.8])
}

#[test]
fn row_d6_loops_inside_loops_and_branches() -> Result<()> {
    let f = |x: &Array| {
        let step = |c: &Array, i: &Array| {
            let inner = fori_loop(0, 3, |_, y: &Array| (y * c).sin() + x, c.clone());
            let out = cond(inner.gt(i), |y| y * x, |y| y - x.exp(), &inner);
            (out.clone(), while_loop(|y: &Array| y.abs().gt(0.25_f64), |y: &Array| y * 0.5_f64, out))
        };
        let (last, all) = scan(step, Array::from(0.7_f64), &Array::from([0.1_f64, 0.6, 0.9, 0.2]));
        last + all.sum()
    };
    agree(f, &[0.35, 0.55])
}

#[test]
fn gradients_inside_a_loop_pass_derivatives_too() -> Result<()> {
    // Gradient descent on (w - x)^4, differentiated by x.
    let f = |x: &Array| {
        let x = x.clone();
        fori_loop(
            0,
            4,
            move |_, w: &Array| {
                let x = x.clone();
                w - grad(move |w: &Array| (w - &x).powi(4))(w) * 0.1_f64
            },
            Array::from(0.0_f64),
        )
    };
    agree(f, &[0.8, 1.3])
}

#[test]
fn what_a_loop_saves_it_saves_once() -> Result<()> {
    let w = Array::from(vec![0.5_f64; 1000]);
    let xs = Array::from(vec![0.1_f64; 50]);
    // sin(w) is the same in every step, and the sequence is there already.
    let f = move |w: &Array| scan(|c: &Array, x: &Array| (c + (w.sin() * x).sum(), ()), Array::from(0.0_f64), &xs).0;
    let (_, pullback) = vjp(f, &w);
    assert!(pullback.residual_bytes() <= 1000 * 8 + 50 * 8 + 64, "{:?}", pullback.residuals());
    Ok(())
}

#[test]
fn errors_in_control_flow_say_what_and_where() -> Result<()> {
    let x = Array::from(1.0_f64);
    let text = |a: &Array| a.item::<f64>().unwrap_err().to_string();
    let e = text(&cond(true, |x: &Array| x.clone(), |x: &Array| x.cast(DType::F32), &x));
    assert!(e.contains("different types") && e.contains("control_flow.rs"), "{e}");
    let e = text(&cond(&x, |x: &Array| x.clone(), |x: &Array| -x, &x));
    assert!(e.contains("bool") && e.contains("control_flow.rs"), "{e}");
    let e = text(&while_loop(|x: &Array| x * 2.0_f64, |x: &Array| x.clone(), x.clone()));
    assert!(e.contains("condition") && e.contains("control_flow.rs"), "{e}");
    let e = text(&while_loop(|x: &Array| x.gt(0.0_f64), |x: &Array| x.reshape([1]), x.clone()));
    assert!(e.contains("changes its type"), "{e}");
    let e = text(&scan(|c: &Array, x: &Array| (c + x, ()), x.clone(), &x).0);
    assert!(e.contains("leading axis"), "{e}");
    let (a, b) = (Array::zeros::<f64>([2]), Array::zeros::<f64>([3]));
    let e = text(&scan(|c: &Array, (a, _): &(Array, Array)| (c + a, ()), x.clone(), &(a, b)).0);
    assert!(e.contains("2 and of 3"), "{e}");
    let e = text(&fori_loop(0, 3.5_f64, |_, y: &Array| y.clone(), x.clone()));
    assert!(e.contains("integer") || e.contains("i64"), "{e}");
    let e = text(&fori_loop(0, 3, |i, y: &Array| y * Array::from(i.item::<i64>().unwrap_or(0) as f64), x.clone()));
    assert!(e.contains("has no number until the program runs"), "{e}");
    // A value of a body that gets out is found.
    let out = std::sync::Mutex::new(None);
    let y = cond(
        true,
        |x: &Array| {
            *out.lock().unwrap() = Some(x.clone());
            x.clone()
        },
        |x: &Array| -x,
        &x,
    );
    assert_eq!(y.item::<f64>()?, 1.0);
    let escaped = out.lock().unwrap().take().unwrap();
    assert!(text(&(escaped + 1.0_f64)).contains("outlived"));
    Ok(())
}

#[test]
fn row_d6_an_unrolled_scan_has_fewer_and_longer_steps() -> Result<()> {
    let f = |unroll: usize, reverse: bool| {
        move |w: &Array, xs: &Array| {
            let options = ScanOptions::new().unroll(unroll);
            let options = if reverse { options.reverse() } else { options };
            let step = |c: &Array, x: &Array| ((c * w + x).sin(), c * x);
            let (last, all) = options.scan(step, Array::from(0.5_f64), xs);
            last + (all * xs).sum()
        }
    };
    let (w, xs) = (Array::from(0.8_f64), Array::from([0.3_f64, -0.2, 0.9, 0.5, -0.7, 0.1, 0.4]));
    let program = jit(f(3, false)).trace(&w, &xs)?.program().to_string();
    // Seven steps: two of three in a row, and one that is left.
    assert!(program.contains("length=2") && !program.contains("length=7"), "{program}");
    assert_eq!(program.matches(" = sin ").count(), 4, "{program}");
    for reverse in [false, true] {
        let want = jit(grad_all(f(1, reverse)))(&w, &xs);
        for unroll in [2, 3, 7, 100] {
            let have = jit(grad_all(f(unroll, reverse)))(&w, &xs);
            close(&have.0, &want.0.to_vec::<f64>()?);
            close(&have.1, &want.1.to_vec::<f64>()?);
        }
    }
    Ok(())
}

/// A loop that says where its limit ends it cannot say so for some examples: the error names the limit and the way out, which works.
#[test]
fn a_limited_loop_under_a_batched_branch_says_what_to_use() {
    let looped = |history: History| {
        move |x: &Array| {
            let more = |x: &Array| {
                let options = WhileOptions::new().history(history);
                options.while_loop(|x: &Array| x.lt(10.0_f64), |x: &Array| x * 2.0 + 1.0, x.clone())
            };
            cond(x.gt(0.0_f64), more, |x: &Array| x.clone(), x)
        }
    };
    let x = Array::from([1.0_f64, -0.5, 2.0]);
    let text = vmap(looped(History::Limit(6)))(&x).error().unwrap().to_string();
    assert!(text.contains("History::Limit") && text.contains("History::Checkpoints"), "{text}");
    let have = vmap(grad(looped(History::Checkpoints(2))))(&x);
    assert_eq!(have.to_vec::<f64>().unwrap(), [8.0, 1.0, 4.0]);
}

/// The error of a counted loop speaks of that loop, and not of what it is made of.
#[test]
fn a_counted_loop_whose_state_changes_its_type_says_so() {
    let grows = |n: Array| fori_loop(0, n, |_, x: &Array| x.broadcast_to([2]), Array::from(1.0_f64));
    let known = jit(|_: &Array| fori_loop(0, 3, |_, x: &Array| x.broadcast_to([2]), Array::from(1.0_f64)));
    let at_run_time = jit(move |n: &Array| grows(n.clone()));
    for have in [known(&Array::from(3_i64)), at_run_time(&Array::from(3_i64))] {
        let text = have.error().unwrap().to_string();
        assert!(
            text.contains("the state of `fori_loop` changes its type: f64[] before a step, f64[2] after it"),
            "{text}"
        );
    }
}
