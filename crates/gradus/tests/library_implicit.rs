//! Solutions whose derivatives come from what they solve: roots, fixed points and linear systems, in both modes, to the second order, batched.

use gradus::prelude::*;

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

/// Newton's steps for x³ = a, with a square root in the loop that must not be differentiated at zero.
fn cube_root(a: &Array) -> Array {
    let steps = |a: &Array| fori_loop(0, 60, |_: &Array, x: &Array| x - (x.powi(3) - a) / (x * x * 3.0_f64), a.clone());
    root(|x: &Array, a: &Array| x.powi(3) - a, steps, a)
}

#[test]
fn derivatives_of_a_root_are_those_of_its_equation() -> Result<()> {
    let a = Array::from([8.0_f64, 1.0, 0.3]);
    let exact = |a: &Array| a.pow(1.0_f64 / 3.0);
    let sum = |f: fn(&Array) -> Array| move |a: &Array| f(a).square().sum();
    let (ours, known) = (sum(cube_root), move |a: &Array| exact(a).square().sum());
    assert!(tree::all_close(&grad(ours)(&a), &grad(known)(&a), 1e-10)?);
    assert!(tree::all_close(&jit(grad(ours))(&a), &grad(known)(&a), 1e-10)?);
    assert!(tree::all_close(&jit(hessian(ours))(&a), &hessian(known)(&a), 1e-9)?);
    assert!(tree::all_close(&jacfwd(cube_root)(&a), &jacfwd(exact)(&a), 1e-10)?);
    assert!(tree::all_close(&jacrev(cube_root)(&a), &jacfwd(exact)(&a), 1e-10)?);
    // Batches: each example has an equation of its own, whichever transformation comes first.
    assert!(tree::all_close(&jit(vmap(cube_root))(&a), &exact(&a), 1e-12)?);
    assert!(tree::all_close(&jit(vmap(grad(cube_root)))(&a), &vmap(grad(exact))(&a), 1e-12)?);
    let batched = |a: &Array| vmap(cube_root)(a).square().sum();
    assert!(tree::all_close(&jit(grad(batched))(&a), &grad(known)(&a), 1e-12)?);
    check_grads(cube_root, &a, 2)?;
    let third = jit(grad(grad(grad(cube_root))))(&Array::from(8.0_f64));
    close(&third, &[10.0 / 27.0 * 8.0_f64.powf(-8.0 / 3.0)]);
    Ok(())
}

#[test]
fn unknowns_and_arguments_are_trees_and_captures_count() -> Result<()> {
    // x + y = s, x y = p: the roots of a quadratic.
    type Two = (Array, Array);
    fn both((s, p): &Two, shift: &Array) -> Two {
        let equation = |(x, y): &Two, (s, p): &Two| (x + y - s - shift, x * y - p);
        let solver = |(s, p): &Two| {
            let s = s + shift;
            let d = (s.square() - p * 4.0_f64).sqrt();
            ((&s + &d) * 0.5_f64, (&s - &d) * 0.5_f64)
        };
        root(equation, solver, &(s.clone(), p.clone()))
    }
    let exact = |s: &Array, p: &Array, shift: &Array| {
        let s = s + shift;
        ((&s + (s.square() - p * 4.0_f64).sqrt()) * 0.5_f64).exp()
    };
    let ours = |s: &Array, p: &Array, shift: &Array| both(&(s.clone(), p.clone()), shift).0.exp();
    let (s, p, shift) = (Array::from(5.0_f64), Array::from(3.0_f64), Array::from(0.25_f64));
    assert!(tree::all_close(&jit(grad_all(ours))(&s, &p, &shift), &grad_all(exact)(&s, &p, &shift), 1e-9)?);
    let (h, k) = (hessian(ours)(&s, &p, &shift), hessian(exact)(&s, &p, &shift));
    assert!(tree::all_close(&h, &k, 1e-9)?, "{h} {k}");
    Ok(())
}

#[test]
fn fixed_points_converge_and_differentiate() -> Result<()> {
    let f = |a: &Array| fixed_point(|x: &Array, a: &Array| (a * x).cos(), a.zeros_like(), a);
    let a = Array::from([0.5_f64, 0.9]);
    let x = jit(f)(&a);
    assert!(tree::all_close(&x, &(&a * &x).cos(), 1e-12)?);
    // x = cos(a x): x' = -sin(a x) (x + a x')
    let slope = -(&a * &x).sin() * &x / ((&a * &x).sin() * &a + 1.0_f64);
    assert!(tree::all_close(&jit(grad(move |a: &Array| f(a).sum()))(&a), &slope, 1e-10)?);
    check_grads(f, &a, 2)?;
    let single = fixed_point(|x: &Array, a: &Array| (a * x).cos(), Array::from(0.0_f32), &Array::from(0.5_f32));
    assert!((single.item::<f32>()? - 0.900_367_2).abs() < 1e-5, "{single}");
    let cut = FixedPointOptions::new().steps(1).fixed_point(|x: &Array, a: &Array| x + a, a.clone(), &a);
    close(&cut, &[1.0, 1.8]);
    Ok(())
}

/// A matrix that is neither symmetric nor near to singular, and one that is symmetric and positive.
fn matrices() -> (Array, Array, Array) {
    let n = 6;
    let a = (Array::iota(DType::F64, [n, n], 0) * 1.7_f64 + Array::iota(DType::F64, [n, n], 1) * 0.6_f64).sin();
    let any = &a + Array::eye::<f64>(n) * 3.0_f64;
    let positive = a.matmul(&a.t()) + Array::eye::<f64>(n);
    (any, positive, Array::arange(0.0_f64, 6.0, 1.0).cos())
}

/// A direct solution by elimination without pivots, one operation at a time.
fn eliminated(a: &Array, b: &Array) -> Array {
    let n = 6;
    let mut rows = Array::concatenate([a.clone(), b.expand_dims(1)], 1);
    for k in 0..n {
        let row = rows.index(k) / rows.index((k, k));
        let factors = rows.index((.., k)) * (1.0_f64 - Array::eye::<f64>(n as usize).index(k));
        rows = &rows - factors.expand_dims(1) * row.expand_dims(0);
    }
    rows.index((.., 6)) / rows.index((.., ..6)).diagonal()
}

#[test]
fn linear_systems_by_all_three_solvers() -> Result<()> {
    let (any, positive, b) = matrices();
    type Solve = fn(&Array, &Array) -> Array;
    let cg: Solve = |a, b| solvers::Options::new().tolerance(1e-14).cg(|x: &Array| a.matmul(x), b);
    let gmres: Solve = |a, b| solvers::Options::new().tolerance(1e-14).gmres(|x: &Array| a.matmul(x), b);
    let short: Solve =
        |a, b| solvers::Options::new().tolerance(1e-14).restart(3).steps(400).gmres(|x: &Array| a.matmul(x), b);
    let bicgstab: Solve = |a, b| solvers::Options::new().tolerance(1e-14).bicgstab(|x: &Array| a.matmul(x), b);
    for (name, solve, a) in [
        ("cg", cg, &positive),
        ("gmres", gmres, &any),
        ("gmres of a positive matrix", gmres, &positive),
        ("restarted", short, &any),
        ("bicgstab", bicgstab, &any),
    ] {
        let wanted = eliminated(a, &b);
        assert!(tree::all_close(&solve(a, &b), &wanted, 1e-10)?, "{name}");
        assert!(tree::all_close(&jit(solve)(a, &b), &wanted, 1e-10)?, "{name}");
        let sum = move |a: &Array, b: &Array| solve(a, b).square().sum();
        let known = |a: &Array, b: &Array| eliminated(a, b).square().sum();
        let (g, h) = (jit(grad_all(sum))(a, &b), grad_all(known)(a, &b));
        assert!(tree::all_close(&g.1, &h.1, 1e-8)?, "{name}");
        if name == "cg" {
            // Of a symmetric map only the symmetric part counts.
            assert!(tree::all_close(&(&g.0 + g.0.t()), &(&h.0 + h.0.t()), 1e-8)?, "{name}");
        } else {
            assert!(tree::all_close(&g.0, &h.0, 1e-8)?, "{name}");
        }
        let many = Array::stack([&b, &(&b * 2.0_f64), &b.sin()], 0);
        let a = a.clone();
        let rows = jit(vmap(move |b: &Array| solve(&a, b)))(&many);
        for (row, b) in [(0, &b), (1, &(&b * 2.0_f64)), (2, &b.sin())] {
            let a = if name.starts_with("cg") || name.contains("positive") { &positive } else { &any };
            assert!(tree::all_close(&rows.index(row), &eliminated(a, b), 1e-9)?, "{name}");
        }
    }
    Ok(())
}

#[test]
fn systems_of_trees_of_complex_numbers_and_of_nothing() -> Result<()> {
    type Two = (Array, Array);
    let map = |(x, y): &Two| (x * 2.0_f64 + y.sum(), y * 3.0_f64 - x.sum());
    let b = (Array::from(4.0_f64), Array::from([1.0_f64, 2.0]));
    for x in [solvers::gmres(map, &b), solvers::bicgstab(map, &b), jit(move |b: &Two| solvers::gmres(map, b))(&b)] {
        assert!(tree::all_close(&map(&x), &b, 1e-8)?, "{x:?}");
    }
    let i = |re: f64, im: f64| Complex::new(re, im);
    let a = Array::from([[i(2.0, 1.0), i(0.0, -1.0)], [i(1.0, 0.0), i(0.0, 3.0)]]);
    let side = Array::from([i(1.0, 0.0), i(0.0, 2.0)]);
    let x = solvers::gmres(|x: &Array| a.matmul(x), &side);
    assert!(tree::all_close(&a.matmul(&x), &side, 1e-8)?);
    // A map that turns by a right angle: residuals alone see nothing of it.
    let turn = Array::from([[0.0_f64, 1.0], [-1.0, 0.0]]);
    let x = solvers::gmres(|x: &Array| turn.matmul(x), &Array::from([1.0_f64, 0.0]));
    close(&x, &[0.0, 1.0]);
    let nothing = Array::zeros::<f64>([3]);
    for x in [solvers::cg(|x: &Array| x * 2.0_f64, &nothing), solvers::gmres(|x: &Array| x * 2.0_f64, &nothing)] {
        close(&x, &[0.0, 0.0, 0.0]);
    }
    let empty = solvers::gmres(|x: &Array| x * 2.0_f64, &Array::zeros::<f64>([0]));
    assert_eq!(empty.shape(), [0]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_named() {
    let a = Array::from([1.0_f64, 2.0]);
    let says = |found: Array, parts: &[&str]| {
        let e = found.error().expect("an error").to_string();
        assert!(parts.iter().all(|p| e.contains(p)) && e.contains("library_implicit.rs"), "{e}");
    };
    let short = |a: &Array| root(|x: &Array, _: &Array| x.sum(), |a: &Array| a.clone(), a).sum();
    says(jit(short)(&a), &["does not fit its unknowns", "f64[2]", "f64[]"]);
    let whole = |a: &Array| root(|x: &Array, _: &Array| x.clone(), |a: &Array| a.cast(DType::I32), a);
    says(jit(whole)(&a), &["i32[2]", "floats"]);
    let bent = |a: &Array| linear_solve(|x: &Array| x * x, a, |_, b| b.clone());
    says(jit(bent)(&a), &["not linear", "`root`"]);
    let wide = |a: &Array| linear_solve(|x: &Array| x.sum(), a, |_, b| b.clone());
    says(jit(wide)(&a), &["f64[2]", "f64[]"]);
}

#[test]
fn inside_of_loops_branches_checkpoints_and_batches() -> Result<()> {
    let a = Array::from([8.0_f64, 1.0, 0.3]);
    let exact = |a: &Array| (a.pow(1.0_f64 / 3.0) * Array::from([1.0_f64, 2.0, 3.0])).sum();
    let wanted = grad(exact)(&a);
    let in_scan = |a: &Array| {
        let step = |sum: &Array, (a, w): &(Array, Array)| (sum + cube_root(a) * w, ());
        scan(step, Array::from(0.0_f64), &(a.clone(), Array::from([1.0_f64, 2.0, 3.0]))).0
    };
    let in_branch = |a: &Array| {
        let each = |i: i64| cond(a.index(i).gt(0.5_f64), cube_root, |a: &Array| a.pow(1.0_f64 / 3.0), &a.index(i));
        each(0) + each(1) * 2.0_f64 + each(2) * 3.0_f64
    };
    let in_checkpoint = |a: &Array| (checkpoint(cube_root)(a) * Array::from([1.0_f64, 2.0, 3.0])).sum();
    for f in [in_scan, in_branch, in_checkpoint] as [fn(&Array) -> Array; 3] {
        assert!(tree::all_close(&jit(grad(f))(&a), &wanted, 1e-10)?);
        assert!(tree::all_close(&jit(hessian(f))(&a), &hessian(exact)(&a), 1e-9)?);
    }
    // A matrix for each example, or one for all.
    let (any, _, b) = matrices();
    let solve = |a: &Array, b: &Array| solvers::Options::new().tolerance(1e-14).gmres(|x: &Array| a.matmul(x), b);
    let many = Array::stack([&any, &(&any * 2.0_f64)], 0);
    let each = jit(vmap(move |a: &Array, b: &Array| solve(a, b)))(&many, &Array::stack([&b, &b.sin()], 0));
    assert!(tree::all_close(&each.index(0), &eliminated(&any, &b), 1e-9)?);
    assert!(tree::all_close(&each.index(1), &eliminated(&(&any * 2.0_f64), &b.sin()), 1e-9)?);
    let total = move |a: &Array| {
        vmap(move |a: &Array, b: &Array| solve(a, b))(a, &Array::stack([&b, &b.sin()], 0)).square().sum()
    };
    let known = |a: &Array| {
        let b = matrices().2;
        eliminated(&a.index(0), &b).square().sum() + eliminated(&a.index(1), &b.sin()).square().sum()
    };
    assert!(tree::all_close(&jit(grad(total))(&many), &grad(known)(&many), 1e-7)?);
    Ok(())
}

/// Systems of what is no number have no solution, and say so; zeros would look like one.
#[test]
fn what_is_not_finite_has_no_solution() -> Result<()> {
    let map = |x: &Array| x * 2.0_f64;
    for b in [Array::from([1.0_f64, f64::NAN]), Array::from([f64::INFINITY, 1.0]), Array::from([1e200_f64, 1e200])] {
        for x in [solvers::cg(map, &b), solvers::gmres(map, &b), solvers::bicgstab(map, &b)] {
            let x = x.to_vec::<f64>()?;
            let solved = x.iter().zip(b.to_vec::<f64>()?).all(|(x, b)| (x * 2.0 - b).abs() <= 1e-9 * b.abs());
            assert!(solved || x.iter().any(|x| x.is_nan()), "{b} {x:?}");
        }
    }
    let broken = |x: &Array| x * f64::NAN;
    for x in [solvers::cg(broken, &Array::from([1.0_f64])), solvers::gmres(broken, &Array::from([1.0_f64]))] {
        assert!(x.is_nan().all().item::<bool>()?, "{x}");
    }
    // It does not take 10,000 steps to see that.
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (counted, one) = (count.clone(), Array::from(1.0_f64));
    let f = |x: &Array, _: &Array| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        x * f64::NAN
    };
    assert!(fixed_point(f, one.clone(), &one).is_nan().item::<bool>()?);
    assert!(count.load(std::sync::atomic::Ordering::Relaxed) < 10);
    Ok(())
}

#[test]
fn systems_are_solved_at_every_scale_and_nan_is_seen() -> Result<()> {
    type Solver = fn(&Array, &Array) -> Array;
    let solvers: [(&str, Solver); 3] = [
        ("cg", |a, b| solvers::cg(|x: &Array| a.matmul(x), b)),
        ("gmres", |a, b| solvers::gmres(|x: &Array| a.matmul(x), b)),
        ("bicgstab", |a, b| solvers::bicgstab(|x: &Array| a.matmul(x), b)),
    ];
    let a = Array::from([[2.0_f64, 0.5], [0.5, 1.0]]);
    for (name, solve) in solvers {
        let want = linalg::solve(&a, &Array::from([1.0_f64, 2.0])).to_vec::<f64>()?;
        for scale in [1e-320, 1e-300, 1e-170, 1e-155, 1.0, 1e155, 1e200, 1e300] {
            let x = solve(&a, &(Array::from([1.0_f64, 2.0]) * scale)).to_vec::<f64>()?;
            for (x, want) in x.iter().zip(&want) {
                let lost = 1e-9 + 2e-323 / scale;
                assert!((x / scale - want).abs() < lost, "{name} at {scale:e}: {x:e}");
            }
            // A matrix as small or large as the right side.
            if scale > 1e-310 {
                let x = solve(&(&a * scale), &(Array::from([1.0_f64, 2.0]) * scale)).to_vec::<f64>()?;
                assert!(x.iter().zip(&want).all(|(x, want)| (x - want).abs() < 1e-9), "{name} with a·{scale:e}: {x:?}");
            }
        }
        for scale in [1e-40, 1e-25, 1e20, 1e35_f32] {
            let x = jit(solve)(&a.cast(DType::F32), &(Array::from([1.0_f32, 2.0]) * scale)).to_vec::<f32>()?;
            for (x, want) in x.iter().zip(&want) {
                assert!((x / scale - *want as f32).abs() < 2e-4, "{name} at {scale:e}: {x:e}");
            }
        }
        for bad in [[f64::NAN, 1.0], [1.0, f64::NAN], [f64::INFINITY, 1.0], [f64::NEG_INFINITY, f64::INFINITY]] {
            let x = solve(&a, &Array::from(bad)).to_vec::<f64>()?;
            assert!(x.iter().all(|x| x.is_nan()), "{name} of {bad:?}: {x:?}");
            let x = jit(solve)(&a, &Array::from(bad)).to_vec::<f64>()?;
            assert!(x.iter().all(|x| x.is_nan()), "{name} of {bad:?}, compiled: {x:?}");
        }
        let zero = Array::zeros::<f64>([2]);
        assert_eq!(solve(&a, &zero).to_vec::<f64>()?, [0.0, 0.0], "{name}");
        // A NaN in the matrix does not pass for a solution.
        let x = solve(&(&a * f64::NAN), &Array::from([1.0_f64, 2.0])).to_vec::<f64>()?;
        assert!(x.iter().any(|x| x.is_nan()), "{name}: {x:?}");
        // Derivatives go through at every scale, and a tree has parts of any size.
        let g = grad(|b: &Array| solve(&a, b).sum())(&(Array::from([1.0_f64, 2.0]) * 1e-200)).to_vec::<f64>()?;
        let ones = linalg::solve(&a.t(), &Array::from([1.0_f64, 1.0])).to_vec::<f64>()?;
        assert!(g.iter().zip(&ones).all(|(x, y)| (x - y).abs() < 1e-9), "{name}: {g:?}");
    }
    Ok(())
}
