//! Whole numbers that must not lose places on their way: sizes beside numbers, positions of branches, shifts, exponents. Every tier was wrong here alike, so
//! what is wanted is written down and not taken from another run.

use gradus::Interpreter;
use gradus::prelude::*;

/// What a function of a symbolic size gives on every tier.
fn everywhere(f: impl Fn(&Array) -> Array + Copy + Send + Sync + 'static, spec: &str, x: &Array) -> Vec<Array> {
    let staged = |tier| jit(f).symbolic(spec).tier(tier)(x);
    vec![staged(Tier::Embedded), staged(Tier::Llvm), jit(f).symbolic(spec).backend(Interpreter)(x)]
}

#[track_caller]
fn refused(f: impl Fn(&Array) -> Array + Copy + Send + Sync + 'static, spec: &str, x: &Array) {
    for (way, y) in everywhere(f, spec, x).into_iter().enumerate() {
        let e = y.error().unwrap_or_else(|| panic!("way {way} gives {y}"));
        assert_eq!(e.kind(), ErrorKind::Constraint, "way {way}: {e}");
    }
}

#[test]
fn a_size_beside_numbers_of_a_dtype_that_does_not_hold_it_is_an_error() {
    let x = Array::full([300], 100_i8);
    refused(|x| x.index(..1) + x.dim(0), "i8[N]", &x);
    refused(|x| x.index(..1).lt(x.dim(0)), "i8[N]", &x);
    refused(|x| x.index(..1).maximum(x.dim(0)), "i8[N]", &x);
    refused(|x| x.index(..1).gt(0).select(x.dim(0), x.index(..1)), "i8[N]", &x);
    refused(|x| x.index(..1).clamp(0, x.dim(0)), "i8[N]", &x);
    refused(|x| x.at(0).set(x.dim(0)), "i8[N]", &x);
    refused(|x| x.pad(&[(1, 0)], x.dim(0)), "i8[N]", &x);
    refused(|x| x.full_like(x.dim(0)), "i8[N]", &x);
    refused(|x| Array::from_dim(&x.dim(0), DType::I8), "i8[N]", &x);
    refused(|x| x + (x.dim(0) - 5), "u8[N]", &Array::zeros::<u8>([3]));
    refused(|x| x.sum() / x.dim(0), "f16[N]", &Array::full([70_000], f16::from_f64(0.5)));
    refused(|x| x.index(..1).cast(DType::F32) * x.dim(0), "i8[N]", &Array::ones::<i8>([(1 << 24) + 1]));
    assert!(Array::from_dim(&Dim::from(300_usize), DType::I8).error().is_some());
}

#[test]
fn a_size_that_fits_is_that_number() {
    for n in [0_usize, 1, 100, 127] {
        let x = Array::full([n], 1_i8);
        for y in everywhere(|x| Array::from(0_i8) + x.dim(0), "i8[N]", &x) {
            assert_eq!(y.item::<i8>().unwrap(), n as i8);
        }
    }
    // A mean has as many numbers as there are, whatever the dtype.
    let x = Array::full([70_000], f16::from_f64(0.5));
    for y in everywhere(|x| x.mean(), "f16[N]", &x) {
        assert_eq!(y.cast(DType::F64).item::<f64>().unwrap(), 0.5);
    }
    let n = (1_usize << 24) + 1;
    let x = Array::ones::<f32>([n]);
    for y in everywhere(|x| x.mean(), "f32[N]", &x) {
        assert_eq!(y.item::<f32>().unwrap(), 1.0);
    }
}

#[test]
fn an_integer_is_true_where_it_is_not_zero() {
    let x = Array::from(1.0_f64);
    let chosen = |p: &Array, x: &Array| cond(p, |x| x * 1.0, |x| x * 2.0, x).item::<f64>().unwrap();
    for i in [-1, -2, 1, 2, i64::MIN, i64::MAX, 1 << 31, 1 << 32] {
        assert_eq!(chosen(&Array::from(i), &x), 1.0, "{i}");
        let staged = jit(|p: &Array, x: &Array| cond(p, |x| x * 1.0, |x| x * 2.0, x));
        assert_eq!(staged(&Array::from(i), &x).item::<f64>().unwrap(), 1.0, "{i}, compiled");
    }
    assert_eq!(chosen(&Array::from(0_i64), &x), 2.0);
    assert_eq!(chosen(&Array::from(255_u8), &x), 1.0);
    let each = jit(vmap(|p: &Array| cond(p, |_| Array::from(1.0), |_| Array::from(2.0), &())));
    assert_eq!(each(&Array::from([-1_i64, 0, 1 << 32])).to_vec::<f64>().unwrap(), [1.0, 2.0, 1.0]);
}

#[test]
fn a_position_outside_means_the_nearest_branch_however_far_it_is() {
    fn pick(i: &Array) -> Array {
        switch(i, &[&|_: &()| Array::from(0.0), &|_| Array::from(1.0), &|_| Array::from(2.0)], &())
    }
    let far = [1_i64 << 31, 1 << 32, (1 << 32) + 1, i64::MAX, -(1 << 31) - 1, 2 - (1 << 32), i64::MIN, 1, 2];
    let wanted = [2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 1.0, 2.0];
    for (i, want) in far.iter().zip(wanted) {
        for y in [pick(&Array::from(*i)), jit(pick)(&Array::from(*i)), jit(pick).tier(Tier::Llvm)(&Array::from(*i))] {
            assert_eq!(y.item::<f64>().unwrap(), want, "{i}");
        }
    }
    assert_eq!(jit(vmap(pick))(&Array::from(far)).to_vec::<f64>().unwrap(), wanted);
    for i in [1_u64 << 32, 1 << 63, u64::MAX] {
        assert_eq!(pick(&Array::from(i)).item::<f64>().unwrap(), 2.0, "{i}");
    }
    assert_eq!(pick(&Array::from(1_u32 << 31)).item::<f64>().unwrap(), 2.0);
    assert_eq!(pick(&Array::from(-7_i8)).item::<f64>().unwrap(), 0.0);
}

#[test]
fn a_number_without_a_sign_moves_down_with_zeros() {
    fn eager_and_staged(x: &Array) -> [Array; 4] {
        [x >> 1, jit(|x: &Array| x >> 1)(x), jit(|x: &Array| x >> 1).tier(Tier::Llvm)(x), x >> &x.ones_like()]
    }
    for y in eager_and_staged(&Array::from([255_u8, 200])) {
        assert_eq!(y.to_vec::<u8>().unwrap(), [127, 100]);
    }
    for y in eager_and_staged(&Array::from([u16::MAX, 1])) {
        assert_eq!(y.to_vec::<u16>().unwrap(), [u16::MAX / 2, 0]);
    }
    for y in eager_and_staged(&Array::from([u32::MAX, 6])) {
        assert_eq!(y.to_vec::<u32>().unwrap(), [u32::MAX / 2, 3]);
    }
    for y in eager_and_staged(&Array::from([u64::MAX, 6])) {
        assert_eq!(y.to_vec::<u64>().unwrap(), [u64::MAX / 2, 3]);
    }
    for y in eager_and_staged(&Array::from([-8_i32, 7])) {
        assert_eq!(y.to_vec::<i32>().unwrap(), [-4, 3]);
    }
    assert_eq!((Array::from([255_u8]) >> 8).to_vec::<u8>().unwrap(), [0]);
    assert_eq!((200 >> Array::from([1_u8, 9])).to_vec::<u8>().unwrap(), [100, 0]);
}

#[test]
fn a_power_of_a_negative_number_has_the_places_of_its_size() {
    let pairs =
        [(0.9999999, 4294967296.0), (1.0000001, 7e9), (1.1, 7000.0), (3.0, 600.0), (1.5, -1700.0), (0.7, 2001.0)];
    for (x, y) in pairs {
        let of = |x: f64| Array::from([x]).pow(Array::from([y])).to_vec::<f64>().unwrap()[0];
        let staged = jit(|x: &Array, y: &Array| x.pow(y));
        let sign = if y % 2.0 == 0.0 { 1.0 } else { -1.0 };
        assert_eq!(of(-x), sign * of(x), "({x})^{y}");
        assert_eq!(staged(&Array::from([-x]), &Array::from([y])).to_vec::<f64>().unwrap()[0], of(-x), "({x})^{y}");
        let wanted: f64 = x.powf(y);
        assert!((of(x) / wanted - 1.0).abs() < 1e-15, "{x}^{y} is {} and not {wanted}", of(x));
    }
    let of = |x: f64, y: f64| Array::from(x).pow(y).item::<f64>().unwrap();
    assert_eq!([of(-2.0, 3.0), of(-2.0, -1.0), of(-0.5, 2.0)], [-8.0, -0.5, 0.25]);
    assert!(of(-2.0, 0.5).is_nan());
    assert_eq!([of(-2.0, f64::INFINITY), of(-0.5, f64::INFINITY)], [f64::INFINITY, 0.0]);
    assert_eq!(of(-5e-324, 1.0), -5e-324);
    assert_eq!(of(f64::NEG_INFINITY, 3.0), f64::NEG_INFINITY);
}

#[test]
fn evenly_spaced_numbers_reach_from_one_end_of_the_range_to_the_other() {
    let all = Array::linspace(-f64::MAX, f64::MAX, 5).to_vec::<f64>().unwrap();
    for (have, want) in all.iter().zip([-1.0, -0.5, 0.0, 0.5, 1.0]) {
        assert!((have / f64::MAX - want).abs() < 1e-15, "{all:?}");
    }
}

#[test]
fn more_checkpoints_than_can_be_counted_are_as_good_as_any() -> Result<()> {
    let history = History::Checkpoints(usize::MAX);
    let f = move |x: &Array| WhileOptions::new().history(history).while_loop(|x| x.lt(100.0), |x| x * x, x.clone());
    // 1.5^16, by three squarings and one more.
    let d = grad(f)(&Array::from(1.5_f64)).item::<f64>()?;
    assert!((d - 16.0 * 1.5_f64.powi(15)).abs() < 1e-9, "{d}");
    Ok(())
}

/// A sum begins with 0, so a product of matrices is never -0: who divides by it sees the difference.
#[test]
fn a_product_of_matrices_of_nothing_is_zero_without_a_sign() {
    for (m, k, n) in [
        (1, 1, 1),
        (2, 1, 2),
        (2, 2, 2),
        (5, 2, 5),
        (8, 2, 8),
        (33, 2, 33),
        (5, 3, 5),
        (40, 1, 40),
        (6, 2, 1),
        (1, 2, 6),
        (4, 4, 4),
        (7, 7, 7),
        (16, 5, 16),
    ] {
        let (a, b) = (Array::full([m, k], -1.0_f64), Array::zeros::<f64>([k, n]));
        let f = |a: &Array, b: &Array| Array::from(1.0_f64) / a.matmul(b);
        for tier in [Tier::Embedded, Tier::Llvm] {
            for (a, b) in [(a.clone(), b.clone()), (a.cast(DType::F32), b.cast(DType::F32))] {
                let staged = jit(move |a: &Array, b: &Array| a.matmul(b)).tier(tier);
                let signs: Vec<f64> = staged(&a, &b).cast(DType::F64).to_vec().unwrap();
                assert!(signs.iter().all(|v| *v == 0.0 && v.is_sign_positive()), "{m} {k} {n} {tier:?}: {signs:?}");
            }
            // One for each example, and one factor that is repeated.
            let (each, one) = (Array::full([7, k], -1.0_f64), Array::full([7, n, 1], -1.0_f64));
            let dots =
                jit(|a: &Array, b: &Array| Array::einsum("bk,bk->b", [a, b])).tier(tier)(&each, &each.zeros_like());
            let repeated = jit(move |a: &Array| {
                let zeros = Array::zeros::<f64>([7, k]);
                Array::einsum("bnk,bk->bn", [&a.broadcast_to([7, n, k]), &zeros])
            });
            for y in [dots, repeated.tier(tier)(&one)] {
                assert!(y.to_vec::<f64>().unwrap().iter().all(|v| v.is_sign_positive()), "{m} {k} {n} {tier:?}: {y}");
            }
            let infinite = jit(f).tier(tier)(&a, &b);
            assert_eq!(infinite.to_vec::<f64>().unwrap(), vec![f64::INFINITY; m * n], "{m} {k} {n} {tier:?}");
        }
    }
}

/// A complex number with a NaN in it has no length, whatever is beside the NaN; with an infinity it has an infinite one, as in C and NumPy.
#[test]
fn the_length_of_a_complex_nan_is_nan() {
    use gradus::Complex;
    let parts = [f64::NAN, 0.0, -0.0, 1.0, f64::INFINITY];
    for re in parts {
        for im in parts {
            let z = Array::from([Complex::new(re, im)]);
            let (compiled, eager) = (jit(|z: &Array| z.abs())(&z), z.abs());
            for length in [compiled, eager] {
                let have = length.to_vec::<f64>().unwrap()[0];
                let want = re.hypot(im);
                assert!(have == want || (have.is_nan() && want.is_nan()), "|{re} + {im}i| is {have}");
            }
        }
    }
}
