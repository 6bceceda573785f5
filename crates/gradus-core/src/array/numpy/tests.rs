//! What NumPy's functions do at their edges: empty arrays, NaN, infinities, wrong arguments, sizes that are not known. Their numbers are compared with JAX
//! from outside.

use super::*;
use crate::array::shaping::tests::everywhere_symbolic as everywhere;
use crate::error::ErrorKind;
use crate::types::DType;

fn kind(x: &Array) -> ErrorKind {
    x.error().unwrap_or_else(|| panic!("no error but {x:?}")).kind()
}

fn floats(x: &Array) -> Vec<f64> {
    x.to_vec::<f64>().unwrap_or_else(|e| panic!("{e}"))
}

fn ints(x: &Array) -> Vec<i64> {
    x.to_vec::<i64>().unwrap_or_else(|e| panic!("{e}"))
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

#[test]
fn sizes_that_are_not_known_give_the_same_numbers() {
    let x = Array::from([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]]);
    assert_eq!(floats(&everywhere(&x, |x| x.median_axes(1))), [2.0, 0.5]);
    assert_eq!(floats(&everywhere(&x, |x| x.diff(1, 1))), [-2.0, 1.0, 3.5, -5.0]);
    assert_eq!(floats(&everywhere(&x, |x| x.quantile_axes(0.5, 0))), [1.75, 2.5, 0.5]);
    assert_eq!(floats(&everywhere(&x, |x| x.trapezoid(1.0, 1))), [3.5, 3.75]);
    assert_eq!(floats(&everywhere(&x, |x| x.nanmean_axes(1))), [2.0, 3.5 / 3.0]);
    assert_eq!(ints(&everywhere(&x, |x| x.gt(1.5).flatnonzero(4usize))), [0, 2, 4, 0]);
    assert_eq!(floats(&everywhere(&x, |x| x.flatten().unique(3usize))), [-1.0, 0.5, 1.0]);
    assert_eq!(
        everywhere(&x, |x| x.logaddexp(x).sum()).item::<f64>().unwrap(),
        x.logaddexp(&x).sum().item::<f64>().unwrap()
    );
}

#[test]
fn remainders_have_the_sign_of_the_divisor() {
    let x = Array::from([7.0, -7.0, 7.0, -7.0, 6.0]);
    let y = Array::from([3.0, 3.0, -3.0, -3.0, 3.0]);
    assert_eq!(floats(&x.modulo(&y)), [1.0, 2.0, -2.0, -1.0, 0.0]);
    assert_eq!(floats(&x.floor_div(&y)), [2.0, -3.0, -3.0, 2.0, 2.0]);
    // 0.1 is a little more than a tenth, so it fits in 1 nine times.
    assert_eq!(floats(&Array::from([1.0]).floor_div(0.1)), [9.0]);
    assert_eq!(Array::from([7u8]).modulo(4u8).to_vec::<u8>().unwrap(), [3]);
    assert_eq!(floats(&Array::from([1.0, -1.0]).floor_div(0.0)), [INF, -INF]);
    assert_eq!(kind(&x.modulo(Array::from([1.0, 2.0]))), ErrorKind::Shape);
}

#[test]
fn infinities_and_nan_are_met() {
    let a = Array::from([-INF, -INF, INF, INF, NAN, 1e308]);
    let b = Array::from([-INF, 2.0, INF, -INF, 1.0, 1e308]);
    let sum = floats(&a.logaddexp(&b));
    assert_eq!(sum[..4], [-INF, 2.0, INF, INF]);
    assert!(sum[4].is_nan() && sum[5] == 1e308);
    assert_eq!(floats(&Array::from([INF, 0.0, 3e300]).hypot(Array::from([1.0, 0.0, 4e300]))), [INF, 0.0, 5e300]);
    // An infinity has infinite length, whatever is beside it.
    assert_eq!(floats(&Array::from([INF, NAN, -INF]).hypot(Array::from([NAN, -INF, INF]))), [INF; 3]);
    assert!(floats(&Array::from([NAN, 1.0]).hypot(Array::from([1.0, NAN]))).iter().all(|v| v.is_nan()));
    // As NumPy and JAX have it: an infinity has no remainder, so it has no whole quotient either.
    let quotients = floats(&Array::from([INF, -INF, INF, NAN, 0.0]).floor_div(Array::from([3.0, 3.0, INF, 3.0, 0.0])));
    assert!(quotients.iter().all(|v| v.is_nan()), "{quotients:?}");
    let quotients =
        floats(&Array::from([3.0, -3.0, INF, -INF, 1e300]).floor_div(Array::from([INF, INF, 0.0, 0.0, 1e-300])));
    assert_eq!(quotients, [0.0, -1.0, INF, -INF, INF]);
    assert_eq!(floats(&Array::from([INF, -INF]).modf().0), [0.0, 0.0]);
    assert!(floats(&Array::from([1.0, NAN, 2.0]).rankdata()).iter().all(|v| v.is_nan()));
    assert_eq!(floats(&Array::from([3i32, 1]).rankdata()), [2.0, 1.0]);
    // The coefficient in front is 1 whatever the roots are.
    let coefficients = floats(&Array::from([1.0, NAN]).poly());
    assert!(coefficients[0] == 1.0 && coefficients[1].is_nan() && coefficients[2].is_nan());
    assert_eq!(floats(&Array::from([1.0, INF]).poly()), [1.0, -INF, INF]);
    assert!(floats(&Array::from([NAN, NAN, NAN]).cumlogsumexp(0)).iter().all(|v| v.is_nan()));
    assert_eq!(floats(&Array::from([NAN, 1.0]).fmax(Array::from([2.0, NAN]))), [2.0, 1.0]);
    assert_eq!(floats(&Array::from([NAN, INF, -INF]).nan_to_num()), [0.0, f64::MAX, -f64::MAX]);
    assert_eq!(floats(&Array::from([0.0, 0.5, 1.0]).sinc())[0], 1.0);
    let close = Array::from([INF, NAN, 1.0, INF]).is_close(Array::from([INF, NAN, 1.0 + 1e-9, 1.0]), 1e-8, 0.0);
    assert_eq!(close.to_vec::<bool>().unwrap(), [true, false, true, false]);
    assert!(Array::from([1.0, NAN]).median().item::<f64>().unwrap().is_nan());
    assert_eq!(Array::from([1.0, NAN]).nanmedian().item::<f64>().unwrap(), 1.0);
    assert!(Array::from([NAN, NAN]).nanmax().item::<f64>().unwrap().is_nan());
    assert_eq!(Array::from([NAN, NAN]).nanargmax().item::<i64>().unwrap(), -1);
    assert_eq!(floats(&Array::from([-INF, -INF, 0.0]).cumlogsumexp(0)), [-INF, -INF, 0.0]);
    assert_eq!(floats(&Array::from([0.0, 3e-320, -8.0]).frexp().0)[2], -0.5);
}

#[test]
fn empty_arrays_have_results_or_errors() {
    let none = Array::zeros::<f64>([0]);
    assert_eq!(none.diff(1, 0).known_dims().unwrap(), [0]);
    assert_eq!(none.nansum().item::<f64>().unwrap(), 0.0);
    assert_eq!(kind(&none.median()), ErrorKind::Shape);
    assert_eq!(kind(&Array::from([1.0]).interp(&none, &none)), ErrorKind::Shape);
    assert_eq!(ints(&Array::zeros::<i64>([0]).bincount(2usize)), [0, 0]);
    assert_eq!(ints(&none.flatnonzero(2usize)), [0, 0]);
    assert_eq!(none.cumlogsumexp(0).known_dims().unwrap(), [0]);
    assert_eq!(none.segment_sum(&Array::zeros::<i64>([0]), 2usize).to_vec::<f64>().unwrap(), [0.0, 0.0]);
}

#[test]
fn wrong_arguments_say_so() {
    let x = Array::from([1.0, 2.0, 3.0]);
    assert_eq!(kind(&x.diff(1, 1)), ErrorKind::Axis);
    assert_eq!(kind(&x.interp(&x, &Array::from([1.0]))), ErrorKind::Shape);
    assert_eq!(kind(&x.segment_sum(&x, 2usize)), ErrorKind::DType);
    assert_eq!(kind(&x.bincount(3usize)), ErrorKind::DType);
    assert_eq!(kind(&x.pad_interior(&[], 0.0)), ErrorKind::Shape);
    assert_eq!(kind(&x.delete(&[5], 0)), ErrorKind::Index);
    assert_eq!(kind(&x.gradient(1)), ErrorKind::Axis);
    assert_eq!(kind(&Array::from([1.0]).gradient(0)), ErrorKind::Shape);
    assert_eq!(kind(&x.gcd(&x)), ErrorKind::DType);
    assert_eq!(kind(&Array::from(1.0).polyval(&x)), ErrorKind::Shape);
    assert_eq!(kind(&Array::geomspace::<f64>(-1.0, 2.0, 3)), ErrorKind::Value);
    assert_eq!(kind(&Array::hanning::<i32>(3)), ErrorKind::DType);
    assert_eq!(kind(&x.partition(3, 0)), ErrorKind::Index);
    assert_eq!(kind(&Array::vstack(Vec::<Array>::new())), ErrorKind::Value);
    assert_eq!(kind(&Array::select_first(Vec::<Array>::new(), [&x], 0.0)), ErrorKind::Value);
    assert_eq!(kind(&x.array_split(0, 0)[0]), ErrorKind::Value);
    assert_eq!(kind(&x.cast(DType::C128).median()), ErrorKind::DType);
    let failed = x.reshape([2]).median();
    assert_eq!(kind(&failed), ErrorKind::Shape);
    // The line is that of the caller, not one in here.
    let place = x.interp(&x, &Array::from([1.0])).error().unwrap().place();
    assert_eq!(place.file(), Some(file!()));
}

#[test]
fn sets_take_a_size() {
    let x = Array::from([3, 1, 3, 7]);
    assert_eq!(x.unique(2usize).to_vec::<i32>().unwrap(), [1, 3]);
    let (values, first, inverse, counts) = x.unique_all(3usize);
    assert_eq!(values.to_vec::<i32>().unwrap(), [1, 3, 7]);
    assert_eq!((ints(&first), ints(&inverse), ints(&counts)), (vec![1, 0, 3], vec![1, 0, 1, 2], vec![1, 2, 1]));
    assert_eq!(x.setdiff1d(&Array::from([7]), 3usize).to_vec::<i32>().unwrap(), [1, 3, 0]);
    assert_eq!(Array::from([NAN, 1.0, NAN]).unique(2usize).to_vec::<f64>().unwrap()[0], 1.0);
    assert_eq!(x.isin(&Array::from([1, 7])).to_vec::<bool>().unwrap(), [false, true, false, true]);
}

#[test]
fn parts_and_pads() {
    let x = Array::from([1, 2, 3]);
    assert_eq!(x.pad_reflect(&[(2, 3)]).to_vec::<i32>().unwrap(), [3, 2, 1, 2, 3, 2, 1, 2]);
    assert_eq!(x.pad_symmetric(&[(1, 1)]).to_vec::<i32>().unwrap(), [1, 1, 2, 3, 3]);
    assert_eq!(x.pad_wrap(&[(1, 4)]).to_vec::<i32>().unwrap(), [3, 1, 2, 3, 1, 2, 3, 1]);
    assert_eq!(Array::from([5]).pad_reflect(&[(1, 1)]).to_vec::<i32>().unwrap(), [5, 5, 5]);
    assert_eq!(x.pad_interior(&[(0, 0, 1)], 9).to_vec::<i32>().unwrap(), [1, 9, 2, 9, 3]);
    assert_eq!(x.insert(-1, 8, 0).to_vec::<i32>().unwrap(), [1, 2, 8, 3]);
    let sizes: Vec<_> = x.array_split(2, 0).iter().map(|p| p.known_dims().unwrap()[0]).collect();
    assert_eq!(sizes, [2, 1]);
}

#[test]
fn places_of_triangles_are_counted_before_they_are_made() {
    for (n, m) in [(0, 0), (0, 3), (3, 0), (1, 1), (2, 5), (5, 2), (4, 4)] {
        for k in -7..=7_isize {
            let all = (0..n as i64).flat_map(|i| (0..m as i64).map(move |j| (i, j)));
            let below: (Vec<_>, Vec<_>) = all.clone().filter(|(i, j)| *j <= i + k as i64).unzip();
            let above: (Vec<_>, Vec<_>) = all.filter(|(i, j)| *j >= i + k as i64).unzip();
            let (lower, upper) = (Array::tril_indices(n, m, k), Array::triu_indices(n, m, k));
            assert_eq!((ints(&lower.0), ints(&lower.1)), below, "{n} {m} {k}");
            assert_eq!((ints(&upper.0), ints(&upper.1)), above, "{n} {m} {k}");
        }
    }
    // Most rows have nothing: what is found is at the end.
    let (rows, columns) = Array::tril_indices(1 << 60, 1 << 50, 2 - (1 << 60));
    assert_eq!((ints(&rows), ints(&columns)), (vec![(1 << 60) - 2, (1 << 60) - 1, (1 << 60) - 1], vec![0, 0, 1]));
    assert!(ints(&Array::tril_indices(usize::MAX >> 1, 3, isize::MIN).0).is_empty());
    assert!(ints(&Array::triu_indices(3, usize::MAX >> 1, isize::MAX).0).is_empty());
    assert_eq!(kind(&Array::tril_indices(1 << 40, 1 << 40, 0).1), ErrorKind::Size);
    assert_eq!(kind(&Array::diag_indices(usize::MAX).0), ErrorKind::Size);
}

#[test]
fn many_derivatives_and_integrals_of_polynomials_are_known_early() {
    let p = Array::from([3.0, 2.0, 1.0]);
    assert_eq!(floats(&p.polyder(2)), [6.0]);
    assert!(floats(&p.polyder(3)).is_empty() && floats(&p.polyder(usize::MAX)).is_empty());
    assert_eq!(floats(&p.polyint(2)), [0.25, 1.0 / 3.0, 0.5, 0.0, 0.0]);
    assert_eq!(floats(&p.polyint(0)), [3.0, 2.0, 1.0]);
    let many = p.polyint(1 << 20);
    assert_eq!(many.known_dims().unwrap(), [(1 << 20) + 3]);
    assert!(floats(&many).iter().all(|c| *c == 0.0));
    assert!(floats(&Array::from([f64::MAX, NAN]).polyint(400))[1].is_nan());
    assert_eq!(floats(&Array::from([f64::MAX]).polyint(320))[0], 0.0);
    assert!(floats(&Array::from([1.0, 2.0]).diff(usize::MAX, 0)).is_empty());
}

#[test]
fn parts_that_are_none_have_no_quantile() {
    let x = Array::from([1.0, 2.0, 4.0]);
    for q in [-1.0, 7.0, 1.0 + f64::EPSILON, NAN] {
        assert_eq!(kind(&x.quantile(q)), ErrorKind::Value, "{q}");
        assert_eq!(kind(&x.nanquantile_axes(Array::from([0.5, q]), 0)), ErrorKind::Value, "{q}");
        assert_eq!(kind(&x.percentile(q * 100.0)), ErrorKind::Value, "{q}");
    }
    assert_eq!(floats(&x.quantile(Array::from([0.0, 1.0]))), [1.0, 4.0]);
    assert_eq!(floats(&x.percentile(Array::from([0, 100]))), [1.0, 4.0]);
    assert_eq!(x.quantile(7.0).error().unwrap().place().file(), Some(file!()));
}

/// Numbers of NumPy: what lies between whole numbers is none.
#[test]
fn lines_through_whole_numbers_are_of_floats() {
    let (x, xp, fp) = (Array::from([2u8, 3, 200]), Array::from([1u8, 3, 6]), Array::from([10u8, 5, 0]));
    assert_eq!(floats(&x.interp(&xp, &fp)), [7.5, 5.0, 0.0]);
    let single = x.cast(DType::F32).interp(&xp, &fp);
    assert_eq!((single.dtype(), single.to_vec::<f32>().unwrap()), (DType::F32, vec![7.5, 5.0, 0.0]));
    assert_eq!(floats(&fp.gradient(0)), [-5.0, -5.0, -5.0]);
    assert_eq!(floats(&Array::from([1, 2, 4]).gradient(0)), [1.0, 1.5, 2.0]);
    assert_eq!(floats(&Array::from([1, 2, 4]).trapezoid(1, 0)), [4.5]);
    assert_eq!(floats(&fp.trapezoid_at(&xp, 0)), [22.5]);
}
