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
