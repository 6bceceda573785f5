//! What users type, without suffixes, clones and long types: operators, sizes, stored functions, positions, closures that borrow.

use gradus::prelude::*;

fn close(a: &Array, b: &[f64]) {
    let a = a.cast(DType::F64).to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len(), "{a:?} {b:?}");
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-6 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

fn said(a: &Array) -> String {
    a.clone().ok().expect_err("an error").to_string()
}

#[test]
fn a_literal_takes_the_type_of_its_array() -> Result<()> {
    for x in [Array::from([0.25_f32, 0.5]), Array::from([0.25_f64, 0.5])] {
        let y = -0.5 * (1.0 - &x).sqrt() / (2e-2 + x.clone()).log();
        assert_eq!(y.dtype(), x.dtype());
        close(&y, &[0.25, 0.5].map(|x: f64| -0.5 * (1.0 - x).sqrt() / (2e-2 + x).ln()));
        close(&(2 * &x - 1).abs(), &[0.5, 0.0]);
        close(&(x.clone() * 2 / 4.0 - 1), &[-0.875, -0.75]);
    }
    let n = Array::from([1_u8, 6]);
    assert_eq!((7 & &n).to_vec::<u8>()?, [1, 6]);
    assert_eq!((1 << n).to_vec::<u8>()?, [2, 64]);
    Ok(())
}

#[test]
fn an_array_is_changed_in_place_and_its_clones_are_not() -> Result<()> {
    let x = Array::from([7.0, 9.0]);
    let mut y = x.clone();
    y += 1.0;
    y -= &x / 7.0;
    y *= Array::from(2.0);
    y /= x.clone();
    y %= 2;
    let want = [7.0_f64, 9.0].map(|x| ((x + 1.0 - x / 7.0) * 2.0 / x) % 2.0);
    close(&y, &want);
    close(&x, &[7.0, 9.0]);
    let mut bits = Array::from([0b1100_i32]);
    bits &= 0b0110;
    bits |= 0b0001;
    bits ^= 0b1111;
    bits <<= 2;
    bits >>= 1;
    assert_eq!(bits.to_vec::<i32>()?, [(((0b1100 & 0b0110) | 0b0001) ^ 0b1111) << 1]);
    let mut wrong = Array::from([1.0, 2.0]);
    wrong += Array::from([1.0, 2.0, 3.0]);
    assert!(said(&wrong).contains("library_types.rs"), "{}", said(&wrong));
    // In a function, as in a loop of the host.
    let sum = |x: &Array| {
        let mut total = x.zeros_like();
        for k in 1..=3 {
            total += x.powi(k);
        }
        total
    };
    close(&jit(grad(move |x: &Array| sum(x).sum()))(&Array::from([2.0])), &[1.0 + 4.0 + 12.0]);
    Ok(())
}

#[test]
fn sizes_of_all_types_make_a_shape() -> Result<()> {
    let x = Array::arange(0.0_f64, 12.0, 1.0);
    let (n, m): (usize, isize) = (3, 4);
    for y in [x.reshape((n, -1)), x.reshape((n, m)), x.reshape([n, 4]), x.reshape([3_isize, -1])] {
        assert_eq!(y.shape(), [3, 4]);
    }
    let y = x.reshape((n, -1));
    // A dimension stands beside an array, borrowed or not.
    let d = y.dim(0);
    close(&((&y * &d - &d).sum() / &d), &[66.0 - 12.0]);
    close(&(jit(|x: &Array| x.sum() * &x.dim(0)).symbolic("f64[N]"))(&x), &[66.0 * 12.0]);
    assert_eq!(Array::zeros::<f32>((y.dim(0), n, 2, &y.dim(1))).shape(), [3, 3, 2, 4]);
    assert_eq!(y.broadcast_to((2, n, y.dim(-1))).shape(), [2, 3, 4]);
    let [a, b] = y.sizes()?;
    assert_eq!((a, b), (3, 4));
    let [] = Array::from(1.0).sizes()?;
    let e = y.sizes::<3>().unwrap_err().to_string();
    assert!(e.contains("f64[3,4] has 2 axes") && e.contains("library_types.rs"), "{e}");
    let e = Array::spec("f64[B, 4]").sizes::<2>().unwrap_err().to_string();
    assert!(e.contains("symbolic") && e.contains("x.dim(i)"), "{e}");
    let e = y.reshape((5, 5)).sizes::<2>().unwrap_err().to_string();
    assert!(e.contains("do not fill"), "{e}");
    // A function that needs numbers ends in `?`; each size makes a program of its own.
    let alternating = |x: &Array| -> Result<Array> {
        let [n] = x.sizes()?;
        let mut total = Array::from(0.0);
        for i in 0..n {
            total += x.index(i) * if i % 2 == 0 { 1.0 } else { -1.0 };
        }
        Ok(total)
    };
    close(&jit(alternating)(&x)?, &[-6.0]);
    close(&jit(grad(alternating))(&x.index(..3)), &[1.0, -1.0, 1.0]);
    let e = jit(alternating)(&y).unwrap_err().to_string();
    assert!(e.contains("f64[3,4] has 2 axes, and the sizes of 1 are asked for"), "{e}");
    // One size inside of a function that gives an array, whatever it will be.
    let mean = jit(|x: &Array| x.sum() / x.dim(0)).symbolic("f64[N]");
    close(&mean(&x), &[5.5]);
    Ok(())
}

#[test]
fn functions_borrow_what_is_around_them() -> Result<()> {
    let (x, data) = (Array::from([1.0, 2.0]), vec![Array::from([3.0, 5.0]), Array::from([7.0, 1.0])]);
    let loss = |w: &Array| data.iter().map(|d| (w * d).sum()).reduce(|a, b| a + b).unwrap_or_else(|| w.sum());
    close(&grad(loss)(&x), &[10.0, 6.0]);
    let step = jit(value_and_grad(loss));
    close(&step(&x).1, &[10.0, 6.0]);
    close(&step.clone()(&x).0, &[22.0]);
    assert!(format!("{step:?}").starts_with("jit(value_and_grad("), "{step:?}");
    assert_eq!(step.stats().compiles + step.stats().shared, 1, "a clone has the same programs");
    // The arguments of a function that is being traced, too.
    let newton = jit(|x: &Array, a: &Array| {
        let f = |x: &Array| (x.powi(3) - a).sum();
        x - f(x) / grad(f)(x).sum()
    });
    close(&newton(&Array::from([2.0]), &Array::from([7.0])), &[2.0 - 1.0 / 12.0]);
    let scale = |x: &Array, k: &Array| {
        let each = |x: &Array| x * k;
        vmap(checkpoint(each))(x)
    };
    close(&jit(grad(move |x: &Array, k: &Array| scale(x, k).sum()))(&x, &Array::from(4.0)), &[4.0, 4.0]);
    Ok(())
}

#[test]
fn derivatives_by_an_argument() -> Result<()> {
    let f = |x: &Array, y: &Array, z: &Array| (x * y * y * z.powi(3)).sum();
    let args = [2.0, 3.0, 5.0].map(Array::from);
    let [x, y, z] = &args;
    for (position, want) in [9.0 * 125.0, 2.0 * 6.0 * 125.0, 2.0 * 9.0 * 75.0].into_iter().enumerate() {
        close(&grad_by(position, f)(x, y, z), &[want]);
        close(&jit(grad_by(position, f))(x, y, z), &[want]);
        close(&jacrev_by(position, f)(x, y, z), &[want]);
        close(&jacfwd_by(position, f)(x, y, z), &[want]);
    }
    let e = said(&grad_by(3, f)(x, y, z));
    assert!(e.contains("argument 3") && e.contains("last argument is 2") && e.contains("library_types.rs"), "{e}");
    assert!(said(&jacrev_by(7, f)(x, y, z)).contains("argument 7"));
    let g = |(w, b): &(Array, Array), x: &Array| w.matmul(x) + b;
    let model = (Array::from([[1.0, 2.0], [3.0, 4.0]]), Array::from([0.5, 0.5]));
    let v = Array::from([5.0, 7.0]);
    for by_input in [jacrev_by(Arg::<1>, g), jit(jacfwd_by(Arg::<1>, g))] {
        close(&by_input(&model, &v), &[1.0, 2.0, 3.0, 4.0]);
    }
    for by_model in [jacfwd(g), jit(jacrev(g))] {
        let (by_w, by_b) = by_model(&model, &v);
        assert_eq!((by_w.shape(), by_b.shape()), (&[2, 2, 2].into_iter().collect(), &[2, 2].into_iter().collect()));
        close(&by_w, &[5.0, 7.0, 0.0, 0.0, 0.0, 0.0, 5.0, 7.0]);
        close(&by_b, &[1.0, 0.0, 0.0, 1.0]);
    }
    Ok(())
}

/// What `jax.jacrev` and `jax.hessian` give of trees, by mathematics.
#[test]
fn jacobians_of_trees() -> Result<()> {
    let f = |x: &Array| (x * x, vec![x.sum(), 3.0 * x], Array::from([1.0]));
    let x = Array::from([2.0, 5.0]);
    for jacobian in [jacrev(f), jacfwd(f), jit(jacrev(f)), jit(jacfwd(f))] {
        let (squares, others, constant) = jacobian(&x);
        close(&squares, &[4.0, 0.0, 0.0, 10.0]);
        close(&others[0], &[1.0, 1.0]);
        close(&others[1], &[3.0, 0.0, 0.0, 3.0]);
        assert_eq!(constant.shape(), [1, 2]);
        close(&constant, &[0.0, 0.0]);
    }
    let h = hessian(|(a, b): &(Array, Array)| (a * a * b).sum());
    let ((aa, ab), (ba, bb)) = h(&(Array::from([3.0]), Array::from([7.0])));
    for (have, want) in [(aa, 14.0), (ab, 6.0), (ba, 6.0), (bb, 0.0)] {
        close(&have, &[want]);
        assert_eq!(have.shape(), [1, 1]);
    }
    Ok(())
}

#[test]
fn derivatives_stand_in_functions_of_arrays() -> Result<()> {
    let f = |x: &Array| (x * x * x).sum();
    let (x, v) = (Array::from([1.0, 2.0]), Array::from([1.0, 10.0]));
    let along =
        jit(|x: &Array, v: &Array| jvp(f, x, v).1 + linearize(f, x).1.call(v) + (vjp(f, x).1.call(&f(x)) * v).sum());
    // 3x²·v = 123 twice, and f(x) times that: 9·123.
    close(&along(&x, &v), &[123.0 * 11.0]);
    close(&jit(hvp(f))(&x, &v), &[6.0, 120.0]);
    close(&grad(move |x: &Array| jvp(f, x, &x.ones_like()).1)(&x), &[6.0, 12.0]);
    // What fails is said by every array of the result, with the line.
    for wrong in
        [jvp(f, &x, &Array::from(1.0)).1, linearize(f, &x).1.call(&Array::from(1.0)), hvp(f)(&x, &Array::from(1.0))]
    {
        assert!(said(&wrong).contains("a tangent of type f64[]") && said(&wrong).contains("library_types.rs"));
    }
    let (y, back) = vjp(|x: &Array| x.reshape([7]), &x);
    assert!(said(&y).contains("do not fill"));
    assert!(said(&back.call(&y)).contains("do not fill"));
    assert!(back.program().is_err() && back.residuals().is_empty());
    Ok(())
}
