//! What users type of linear algebra: likelihoods with gradients, decompositions with derivatives, systems in batches, bad input. Expected numbers are those of JAX, or
//! follow from mathematics.
#![cfg(feature = "linalg")]

use gradus::prelude::*;

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

/// The largest absolute value of a difference.
fn off(a: &Array, b: &Array) -> f64 {
    (a - b).abs().max().item::<f64>().unwrap()
}

fn wave(shape: &[usize], seed: f64) -> Array {
    let n: usize = shape.iter().product();
    Array::from_vec((0..n).map(|i| ((i as f64 + seed) * 1.7).sin()).collect(), shape)
}

#[test]
fn row_a2_small_systems_in_batches_are_solved_by_vector_code() -> Result<()> {
    for n in 1..=8usize {
        let a = wave(&[37, n, n], 0.3) + 3.0 * Array::eye::<f64>(n);
        let b = wave(&[37, n, 2], 0.7);
        let solve = jit(|a: &Array, b: &Array| linalg::solve(a, b));
        assert!(off(&a.matmul(&solve(&a, &b)), &b) < 1e-12, "{n}");
        let by_vmap = jit(vmap(|a: &Array, b: &Array| linalg::solve(a, b)));
        assert!(off(&by_vmap(&a, &b), &solve(&a, &b)) < 1e-14);
        // The same numbers without a compiler.
        assert!(off(&linalg::solve(&a, &b), &solve(&a, &b)) < 1e-13);
        let spd = a.matmul(&a.swap_axes(-1, -2)) + Array::eye::<f64>(n);
        let l = jit(linalg::cholesky)(&spd);
        assert!(off(&l.matmul(&l.swap_axes(-1, -2)), &spd) < 1e-12);
        let (sign, log) = jit(linalg::slogdet)(&a);
        assert!(off(&(sign * log.exp()), &linalg::det(&a)) < 1e-9);
        let total = move |a: &Array| linalg::solve(a, &b).sum();
        assert!(off(&jit(grad(total.clone()))(&a), &grad(total)(&a)) < 1e-10);
    }
    Ok(())
}

#[test]
fn solutions_have_the_derivatives_of_differences() -> Result<()> {
    let a = wave(&[4, 4], 0.2) + 3.0 * Array::eye::<f64>(4);
    let b = wave(&[4], 0.9);
    check_grads(move |a: &Array| linalg::solve(a, &b).square().sum(), &a, 2)?;
    check_grads(|a: &Array| linalg::inv(a).sum(), &a, 1)?;
    check_grads(|a: &Array| linalg::det(a), &a, 2)?;
    check_grads(|a: &Array| linalg::pinv(&a.index((.., ..3))).sin().sum(), &a, 2)?;
    check_grads(|a: &Array| linalg::expm(a).sum(), &(&a / 4.0), 2)?;
    check_grads(|a: &Array| linalg::norm(a) + linalg::matrix_norm(a, linalg::Norm::Nuclear), &a, 2)?;
    check_grads(|a: &Array| linalg::matrix_power(a, 3).sum() + linalg::matrix_power(a, -2).sum(), &a, 1)?;
    let spd = a.matmul(&a.t());
    check_grads(|a: &Array| linalg::sqrtm(a).sum(), &spd, 1)?;
    check_grads(|a: &Array| linalg::logm(a).sum(), &spd, 1)?;
    Ok(())
}

#[test]
fn determinants_of_singular_matrices() -> Result<()> {
    let a = Array::from([[1.0_f64, 2.0], [2.0, 4.0]]);
    assert_eq!(linalg::det(&a).item::<f64>()?, 0.0);
    close(&grad(linalg::det)(&a), &[4.0, -2.0, -2.0, 1.0]);
    let (sign, log) = linalg::slogdet(&Array::zeros::<f64>([3, 3]));
    assert_eq!((sign.item::<f64>()?, log.item::<f64>()?), (0.0, f64::NEG_INFINITY));
    assert_eq!(linalg::det(&Array::zeros::<f64>([5, 5])).item::<f64>()?, 0.0);
    Ok(())
}

#[test]
fn systems_of_bands() -> Result<()> {
    let n = 7;
    let dense = |lower: i64, upper: i64, seed: f64| {
        let a = wave(&[n, n], seed) + 4.0 * Array::eye::<f64>(n);
        a.tril(upper as isize).triu(-lower as isize)
    };
    for (lower, upper) in [(1, 1), (2, 1), (0, 2), (2, 0), (0, 0), (3, 2)] {
        let a = dense(lower, upper, 0.4);
        let values = a.to_vec::<f64>()?;
        let mut bands = vec![0.0; (lower + upper + 1) as usize * n];
        for i in 0..n as i64 {
            for j in (i - lower).max(0)..=(i + upper).min(n as i64 - 1) {
                bands[((upper + i - j) as usize) * n + j as usize] = values[i as usize * n + j as usize];
            }
        }
        let bands = Array::from_vec(bands, [(lower + upper + 1) as usize, n]);
        let b = wave(&[n, 2], 0.1);
        let solve = move |bands: &Array, b: &Array| linalg::solve_banded(lower as usize, upper as usize, bands, b);
        assert!(off(&solve(&bands, &b), &linalg::solve(&a, &b)) < 1e-12, "{lower} {upper}");
        assert!(off(&jit(solve)(&bands, &b.index((.., 0))), &linalg::solve(&a, &b.index((.., 0)))) < 1e-12);
    }
    let a = dense(1, 1, 0.6);
    let diagonal = |k: isize| a.diagonal_axes(k, 0, 1);
    let (low, high) = (diagonal(-1).pad(&[(1, 0)], 0.0), diagonal(1).pad(&[(0, 1)], 0.0));
    let b = wave(&[n], 0.5);
    let x = linalg::solve_tridiagonal(&low, &diagonal(0), &high, &b);
    assert!(off(&x, &linalg::solve(&a, &b)) < 1e-12);
    // No equations have no unknowns.
    let none = |shape: &[usize]| Array::zeros::<f64>(shape.to_vec());
    let empty = linalg::solve_tridiagonal(&none(&[0]), &none(&[0]), &none(&[0]), &none(&[2, 0])).ok()?;
    assert_eq!(empty.shape(), [2, 0]);
    assert_eq!(linalg::solve_banded(1, 1, &none(&[3, 0]), &none(&[0])).ok()?.shape(), [0]);
    assert_eq!(linalg::solve_banded(0, 2, &none(&[3, 0]), &none(&[0, 4])).ok()?.shape(), [0, 4]);
    Ok(())
}

#[test]
fn norms_conditions_and_ranks() -> Result<()> {
    use linalg::Norm;
    let a = Array::from([[1.0_f64, -2.0, 3.0], [4.0, 5.0, -6.0], [7.0, 8.0, 10.0]]);
    let norm = |n: Norm| linalg::matrix_norm(&a, n).item::<f64>().unwrap();
    // By numpy.linalg.norm.
    let want = [
        (Norm::Frobenius, 17.435595774162696),
        (Norm::Nuclear, 25.770330052932632),
        (Norm::One, 19.0),
        (Norm::NegOne, 12.0),
        (Norm::Two, 14.67693796168007),
        (Norm::NegTwo, 1.8686654568558407),
        (Norm::Infinity, 25.0),
        (Norm::NegInfinity, 6.0),
    ];
    for (kind, value) in want {
        assert!((norm(kind) - value).abs() < 1e-12, "{kind:?} {} {value}", norm(kind));
    }
    let v = Array::from([1.0_f64, -2.0, 0.0, 2.0]);
    for (p, value) in
        [(0.0, 3.0), (1.0, 5.0), (2.0, 3.0), (3.0, 17.0_f64.cbrt()), (f64::INFINITY, 2.0), (f64::NEG_INFINITY, 0.0)]
    {
        assert!((linalg::vector_norm(&v, p, ..).item::<f64>()? - value).abs() < 1e-12, "{p}");
    }
    assert_eq!(grad(linalg::norm)(&Array::zeros::<f64>([3])).to_vec::<f64>()?, [0.0; 3]);
    assert!((linalg::cond(&a, Norm::Two).item::<f64>()? - 14.67693796168007 / 1.8686654568558407).abs() < 1e-10);
    assert_eq!(linalg::matrix_rank(&a).item::<i64>()?, 3);
    assert_eq!(linalg::matrix_rank(&Array::ones::<f64>([2, 4, 3])).to_vec::<i64>()?, [1, 1]);
    Ok(())
}

#[test]
fn functions_of_matrices() -> Result<()> {
    let a = wave(&[3, 4, 4], 0.8);
    for scale in [0.01, 1.0, 30.0] {
        let (w, v) = linalg::eigh(&(&a * scale));
        let symmetric = (&v * w.expand_dims(-2)).matmul(&v.swap_axes(-1, -2));
        let want = (&v * w.exp().expand_dims(-2)).matmul(&v.swap_axes(-1, -2));
        let largest = want.abs().max().item::<f64>()?;
        assert!(off(&jit(linalg::expm)(&symmetric), &want) < 1e-12 * largest * (1.0 + scale), "{scale}");
    }
    let spd = a.matmul(&a.swap_axes(-1, -2)) + Array::eye::<f64>(4);
    let root = linalg::sqrtm(&spd);
    assert!(off(&root.matmul(&root), &spd) < 1e-12);
    assert!(off(&linalg::expm(&linalg::logm(&spd)), &spd) < 1e-10);
    // The identity has equal eigenvalues, and derivatives all the same.
    let g = grad(|a: &Array| linalg::sqrtm(a).sum())(&Array::eye::<f64>(2));
    close(&g, &[0.5; 4]);
    Ok(())
}

#[test]
fn products_and_patterns() -> Result<()> {
    let (a, b) = (wave(&[2, 3], 0.1), wave(&[3, 2], 0.2));
    let chain = linalg::multi_dot([&wave(&[2], 0.0), &a, &b, &wave(&[2, 5], 0.3)]);
    assert!(off(&chain, &wave(&[2], 0.0).matmul(&a).matmul(&b).matmul(&wave(&[2, 5], 0.3))) < 1e-14);
    close(&linalg::kron(&Array::from([[1.0_f64, 2.0]]), &Array::from([[1.0_f64], [3.0]])), &[1.0, 2.0, 3.0, 6.0]);
    close(&linalg::cross(&Array::from([1.0_f64, 2.0, 3.0]), &Array::from([4.0_f64, 5.0, 6.0])), &[-3.0, 6.0, -3.0]);
    close(&linalg::vecdot(&a, &a), &(&a * &a).sum_axes(1).to_vec::<f64>()?);
    close(
        &linalg::toeplitz(&Array::from([1.0_f64, 2.0, 3.0]), &Array::from([1.0_f64, 5.0])),
        &[1.0, 5.0, 2.0, 1.0, 3.0, 2.0],
    );
    Ok(())
}

#[test]
fn bad_input_says_what_and_where() {
    let text = |x: Array| x.ok().unwrap_err().to_string();
    let e = text(linalg::solve(&Array::ones::<f64>([2, 3]), &Array::ones::<f64>([2])));
    assert!(e.contains("square") && e.contains("library_linalg.rs"), "{e}");
    let e = text(linalg::solve(&Array::eye::<f64>(3), &Array::ones::<f64>([2])));
    assert!(e.contains("rows"), "{e}");
    let e = text(linalg::cholesky(&Array::eye::<i32>(3)));
    assert!(e.contains("cast"), "{e}");
    let e = text(linalg::eigh(&Array::ones::<f64>([3])).0);
    assert!(e.contains("last two axes"), "{e}");
    let e = text(grad(|a: &Array| linalg::svd_full(a).0.sum())(&Array::ones::<f64>([3, 2])));
    assert!(e.contains("thin"), "{e}");
    let e = text(linalg::checked(&linalg::inv(&Array::zeros::<f64>([2, 2]))));
    assert!(e.contains("singular") && e.contains("library_linalg.rs"), "{e}");
    let nan = linalg::cholesky(&Array::from([[1.0_f64, 2.0], [2.0, 1.0]]));
    assert!(nan.index((0, 0)).item::<f64>().unwrap().is_nan());
}

#[test]
fn empty_matrices_and_batches_of_unknown_size() -> Result<()> {
    assert_eq!(linalg::solve(&Array::zeros::<f64>([0, 0]), &Array::zeros::<f64>([0, 2])).shape(), [0, 2]);
    assert_eq!(linalg::det(&Array::zeros::<f64>([0, 0])).item::<f64>()?, 1.0);
    assert_eq!(linalg::eigh(&Array::zeros::<f64>([0, 3, 3])).1.shape(), [0, 3, 3]);
    let f = jit(|a: &Array, b: &Array| linalg::solve(a, b)).symbolic("f64[B, 3, 3], f64[B, 3, 1]");
    for count in [1, 4, 50] {
        let a = wave(&[count, 3, 3], 0.3) + 3.0 * Array::eye::<f64>(3);
        let b = wave(&[count, 3, 1], 0.5);
        assert!(off(&a.matmul(&f(&a, &b)), &b) < 1e-12);
    }
    assert_eq!(f.stats().compiles, 1);
    Ok(())
}

#[test]
fn large_matrices_go_through_the_library() -> Result<()> {
    let n = 40;
    // A wave has few directions; one that gets faster and faster has all of them.
    let chirp = Array::from_vec((0..n * n).map(|i| ((i * i) as f64 * 0.37).sin()).collect::<Vec<f64>>(), [n, n]);
    let a = chirp + 8.0 * Array::eye::<f64>(n);
    let b = wave(&[n, 6], 0.1);
    assert!(off(&a.matmul(&jit(linalg::solve)(&a, &b)), &b) < 1e-11);
    let (q, r) = linalg::qr(&a);
    assert!(off(&q.matmul(&r), &a) < 1e-12);
    let (u, s, vh) = linalg::svd(&a);
    assert!(off(&(u * s).matmul(&vh), &a) < 1e-12);
    let spd = a.matmul(&a.t());
    let l = linalg::cholesky(&spd);
    assert!(off(&l.matmul(&l.t()), &spd) < 1e-11);
    assert!(off(&spd.matmul(&linalg::cho_solve(&l, &b)), &b) < 1e-10);
    let (w, v) = linalg::eigh(&spd);
    assert!(off(&spd.matmul(&v), &(&v * w)) < 1e-11);
    let (w, v) = linalg::eig(&a);
    let left = a.cast(DType::C128).matmul(&v) - &v * w;
    assert!(left.abs().max().item::<f64>()? < 1e-11, "{}", left.abs().max());
    // A gradient through shared factors is that of differences.
    let f = |a: &Array| linalg::slogdet(a).1 + linalg::solve(a, &wave(&[40], 0.2)).sum();
    let g = jit(grad(f))(&a);
    let step = 1e-5 * Array::eye::<f64>(n);
    let slope = (f(&(&a + &step)) - f(&(&a - &step))) / 2e-5;
    assert!((g.trace() - slope).abs().item::<f64>()? < 1e-7);
    Ok(())
}

#[test]
fn verified_calls_allow_for_rounding_and_for_no_more() -> Result<()> {
    let f =
        jit(|a: &Array, b: &Array| linalg::solve(a, b) + linalg::slogdet(a).1 + linalg::eigvalsh(a).index(-1)).verify();
    for n in [3, 6, 20] {
        // Hilbert's matrix, of which solutions lose a digit and a half with each row.
        let place = |axis| Array::iota(DType::F64, [n, n], axis);
        let hilbert = 1.0 / (place(0) + place(1) + 1.0);
        for a in [wave(&[n, n], 0.3) + 3.0 * Array::eye::<f64>(n), hilbert + 1e-6 * Array::eye::<f64>(n)] {
            f(&a, &wave(&[n, 2], 0.4)).ok()?;
        }
    }
    Ok(())
}

#[test]
fn a_check_says_which_matrix_of_a_batch_it_was() -> Result<()> {
    let good = Array::from([[2.0_f64, 1.0], [1.0, 2.0]]);
    let bad = Array::from([[1.0_f64, 2.0], [2.0, 1.0]]);
    let batch = Array::stack([good.clone(), good.clone(), bad, good], 0);
    let e = jit(|a: &Array| linalg::checked(&linalg::cholesky(a)))(&batch).ok().expect_err("an error").to_string();
    assert!(e.contains("not finite") && e.contains("1 of 4") && e.contains("[2]"), "{e}");
    assert!(e.contains("library_linalg.rs"), "{e}");
    Ok(())
}

fn adjoint(x: &Array) -> Array {
    x.swap_axes(-1, -2).conj()
}

/// The scales at which squares leave the range of a dtype.
fn scales(dtype: DType) -> Vec<f64> {
    match dtype.real_part() {
        DType::F64 => vec![1e-320, 1e-310, 1e-300, 1e-200, 1e-170, 1e-155, 1e-140, 1.0, 1e140, 1e155, 1e170, 1e300],
        _ => vec![1e-43, 1e-40, 1e-35, 1e-25, 1e-20, 1e-15, 1.0, 1e15, 1e20, 1e25, 1e35],
    }
}

/// `(1 + 0.1 + something that is not symmetric) · scale`, and what of a digit may be lost there: subnormal numbers have few.
fn scaled(n: usize, dtype: DType, scale: f64) -> (Array, Array, f64) {
    let skew = wave(&[n, n], 0.4) * 0.05;
    let mut a = (Array::eye::<f64>(n) + 0.1 + skew).cast(dtype);
    if dtype.is_complex() {
        let turn = wave(&[n, n], 0.8) * 0.1;
        a = &a + Array::complex(&turn.zeros_like(), &turn).cast(dtype);
    }
    // In two steps, since a factor of f32 cannot be subnormal without loss.
    let at = |x: &Array| {
        let wide = if dtype.is_complex() { DType::C128 } else { DType::F64 };
        (x.cast(wide) * Array::from(scale).cast(wide)).cast(dtype)
    };
    let (epsilon, least) = match dtype.real_part() {
        DType::F64 => (f64::EPSILON, 5e-324),
        _ => (f64::from(f32::EPSILON), 1.4e-45),
    };
    let lost = (40.0 * n as f64) * (epsilon + least / scale);
    (at(&a), a, lost)
}

/// The largest difference, with the scale taken out of the first.
fn apart(have: &Array, scale: f64, want: &Array) -> f64 {
    let wide = |x: &Array| if x.dtype().is_complex() { x.cast(DType::C128) } else { x.cast(DType::F64) };
    let (have, want) = (wide(have), wide(want));
    // A quotient by a subnormal number overflows where two steps do not.
    let half = Array::from(scale.sqrt().recip()).cast(have.dtype());
    let off = (have * &half * &half - want).abs().max().item::<f64>().unwrap();
    if off.is_nan() { f64::INFINITY } else { off }
}

#[test]
fn decompositions_hold_at_every_scale() {
    let mut wrong = Vec::new();
    for dtype in [DType::F64, DType::F32, DType::C128, DType::C64] {
        for (n, scale) in [2, 3, 9, 20].into_iter().flat_map(|n| scales(dtype).into_iter().map(move |s| (n, s))) {
            let (a, plain, lost) = scaled(n, dtype, scale);
            let mut check = |what: &str, off: f64| {
                if off.is_nan() || off > lost {
                    wrong.push(format!(
                        "{what} of {dtype} [{n}, {n}] at {scale:e}: off by {off:e}, where {lost:e} is fine"
                    ));
                }
            };
            check("svdvals", apart(&linalg::svdvals(&a), scale, &linalg::svdvals(&plain)));
            let (u, s, vh) = linalg::svd(&a);
            check("svd", apart(&(&u * s.cast(dtype)).matmul(&vh), scale, &plain));
            check("U", apart(&adjoint(&u).matmul(&u), 1.0, &Array::eye::<f64>(n).cast(dtype)));
            check(
                "norm",
                apart(
                    &linalg::matrix_norm(&a, linalg::Norm::Two),
                    scale,
                    &linalg::matrix_norm(&plain, linalg::Norm::Two),
                ),
            );
            check(
                "cond",
                apart(&linalg::cond(&a, linalg::Norm::Two), 1.0, &linalg::cond(&plain, linalg::Norm::Two)) / 4.0,
            );
            check("eigvalsh", apart(&linalg::eigvalsh(&a), scale, &linalg::eigvalsh(&plain)));
            let (w, v) = linalg::eigh(&a);
            let two = Array::from(2_i32).cast(dtype.real_part());
            check(
                "eigh",
                apart(
                    &(a.matmul(&v) + adjoint(&a).matmul(&v)),
                    scale,
                    &((linalg::eigvalsh(&plain) * two).cast(dtype) * &v),
                ),
            );
            check("eigh's values", apart(&w, scale, &linalg::eigvalsh(&plain)));
            check("eigvals", apart(&linalg::eigvals(&a), scale, &linalg::eigvals(&plain)));
            let (w, v) = linalg::eig(&a);
            check("eig", apart(&(a.cast(v.dtype()).matmul(&v) - &v * &w), scale, &v.zeros_like()));
            let (t, q) = linalg::schur(&a);
            check("schur", apart(&q.matmul(&t).matmul(&adjoint(&q)), scale, &plain));
            let (q, r) = linalg::qr(&a);
            check("qr", apart(&q.matmul(&r), scale, &plain));
            check("Q", apart(&adjoint(&q).matmul(&q), 1.0, &Array::eye::<f64>(n).cast(dtype)));
            let (lu, _, order) = linalg::lu(&a);
            let (plain_lu, _, plain_order) = linalg::lu(&plain);
            check("the order of lu", f64::from(order.to_vec::<i32>().unwrap() != plain_order.to_vec::<i32>().unwrap()));
            check("lu", apart(&lu.triu(0), scale, &plain_lu.triu(0)).max(apart(&lu.tril(-1), 1.0, &plain_lu.tril(-1))));
            let b = a.index((.., ..2));
            let first = Array::eye::<f64>(n).cast(dtype).index((.., ..2));
            check("solve", apart(&linalg::solve(&a, &b), 1.0, &first));
            let lower = a.tril(0);
            let x = linalg::solve_triangular(&lower, &lower.index((.., ..2)), linalg::Triangle::Lower);
            check("solve_triangular", apart(&x, 1.0, &first));
            check("cholesky", {
                let l = linalg::cholesky(&a);
                apart(&l, scale.sqrt(), &linalg::cholesky(&plain))
            });
            check("lstsq", apart(&linalg::lstsq(&a, &b), 1.0, &first));
            // The inverse of a subnormal number is beyond all numbers.
            let least = if dtype.real_part() == DType::F64 { 1e-300 } else { 1e-35 };
            if scale >= least {
                check("pinv", apart(&linalg::pinv(&a), 1.0 / scale, &linalg::pinv(&plain)));
                check("inv", apart(&linalg::inv(&a), 1.0 / scale, &linalg::inv(&plain)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn derivatives_of_decompositions_hold_at_every_scale() {
    // Those of vectors do not change when matrix and direction grow together; those of values grow with both.
    let mut wrong = Vec::new();
    for scale in [1e-300, 1e-200, 1e-155, 1.0, 1e155, 1e200, 1e300_f64] {
        for n in [3, 20] {
            let (a, plain, lost) = scaled(n, DType::F64, scale);
            let way = wave(&[n, n], 1.9);
            let there = &way * scale;
            type Vectors = fn(&Array) -> Array;
            let vectors: [(&str, Vectors); 5] = [
                ("svd", |a| linalg::svd(a).0),
                ("svd's second", |a| linalg::svd(a).2),
                ("eigh", |a| linalg::eigh(a).1),
                ("eig", |a| linalg::eig(a).1.real()),
                ("qr", |a| linalg::qr(a).0),
            ];
            for (name, f) in vectors {
                let (have, want) = (jvp(f, &a, &there).1, jvp(f, &plain, &way).1);
                let size = want.abs().max().item::<f64>().unwrap();
                let off = apart(&have, 1.0, &want) / size;
                if off > lost * 1e4 {
                    wrong.push(format!("{name} [{n}, {n}] at {scale:e}: off by {off:e}"));
                }
            }
            let values: [(&str, Vectors); 3] = [
                ("svdvals", linalg::svdvals),
                ("eigvalsh", linalg::eigvalsh),
                ("eigvals", |a| linalg::eigvals(a).real()),
            ];
            for (name, f) in values {
                let off = apart(&jvp(f, &a, &there).1, scale, &jvp(f, &plain, &way).1);
                if off > lost * 1e4 {
                    wrong.push(format!("{name} [{n}, {n}] at {scale:e}: off by {off:e}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn logarithms_and_roots_of_matrices_hold_at_every_scale() {
    for scale in [1e-300, 1e-150, 1e-80, 1e-10, 1.0, 3e7, 1e80, 1e100, 1e150, 1e300_f64] {
        for n in [2, 3, 9] {
            let (a, plain, _) = scaled(n, DType::F64, scale);
            let want = linalg::logm(&plain) + Array::eye::<f64>(n) * scale.ln();
            let off = apart(&linalg::logm(&a), 1.0, &want);
            assert!(off < 1e-12 * (1.0 + scale.ln().abs()), "logm [{n}, {n}] at {scale:e}: off by {off:e}");
            let off = apart(&linalg::sqrtm(&a), scale.sqrt(), &linalg::sqrtm(&plain));
            assert!(off < 1e-13 * n as f64, "sqrtm [{n}, {n}] at {scale:e}: off by {off:e}");
            let way = wave(&[n, n], 1.9);
            let (have, want) = (jvp(linalg::logm, &a, &(&way * scale)).1, jvp(linalg::logm, &plain, &way).1);
            assert!(
                apart(&have, 1.0, &want) < 1e-11,
                "logm's derivative [{n}, {n}] at {scale:e}: {have} and not {want}"
            );
        }
    }
    let narrow = (Array::eye::<f64>(2) + 0.1).cast(DType::F32) * 1e-35_f32;
    let want = linalg::logm(&narrow.cast(DType::F64));
    assert!(apart(&linalg::logm(&narrow), 1.0, &want) < 1e-4);
    // One factor for each matrix of a batch.
    let (a, b) = (scaled(3, DType::F64, 1e-150).0, scaled(3, DType::F64, 1e120).0);
    let both = jit(linalg::logm)(&Array::stack([&a, &b], 0));
    assert!(off(&both.index(0), &linalg::logm(&a)) < 1e-10 && off(&both.index(1), &linalg::logm(&b)) < 1e-10);
}

#[test]
fn norms_at_every_scale_and_of_nothing() -> Result<()> {
    use linalg::Norm;
    let value = |x: Array| x.item::<f64>().unwrap();
    for scale in [1e-320, 1e-200, 1e200, 1e307] {
        let x = Array::from([[3.0 * scale, 4.0 * scale]]);
        let have = value(linalg::matrix_norm(&x, Norm::Two));
        let lost = if scale < 1e-300 { 1e-3 } else { 1e-14 };
        assert!((have / scale - 5.0).abs() < lost, "{have:e} at {scale:e}");
    }
    assert!(value(linalg::norm(&Array::from([f64::NAN, 1.0]))).is_nan());
    assert_eq!(value(linalg::norm(&Array::from([f64::INFINITY, 1.0]))), f64::INFINITY);
    // NumPy and JAX: the largest of no absolute values is 0; a least one there is not.
    let none = Array::zeros::<f64>([0, 3]);
    assert_eq!(linalg::vector_norm(&none, f64::INFINITY, 0).to_vec::<f64>()?, [0.0; 3]);
    for norm in [Norm::Two, Norm::One, Norm::Infinity, Norm::Nuclear, Norm::Frobenius] {
        assert_eq!(value(linalg::matrix_norm(&none, norm)), 0.0, "{norm:?}");
    }
    assert_eq!(value(linalg::cond(&Array::zeros::<f64>([2, 2]), Norm::Two)), f64::INFINITY);
    assert!(value(linalg::cond(&Array::from([[f64::NAN, 1.0], [1.0, 1.0]]), Norm::Two)).is_nan());
    Ok(())
}
