//! Bad input at the level of arrays: each mistake is an `Err` of its kind or a defined value; never a panic, never a
//! wrong number, never memory for an array that cannot be.

use std::sync::Arc;

use gradus_core::array::Concrete;
use gradus_core::primitives::Op;
use gradus_core::primitives::control::Call;
use gradus_core::program::{Builder, verify};
use gradus_core::trace::trace;
use gradus_core::transform::vjp;
use gradus_core::{
    Array, Complex, DType, Dim, Error, ErrorKind, Index, Location, Mode, Program, Type, bf16, f16, interpret,
};

#[track_caller]
fn error(a: Array) -> Error {
    match a.ok() {
        Ok(a) => panic!("no error but {a:?}"),
        Err(e) => {
            // Every error of an array operation names the user's line.
            assert!(e.place().file().is_some_and(|f| f.ends_with("bad_input.rs")), "{e}");
            e
        }
    }
}

#[track_caller]
fn refused(kind: ErrorKind, arrays: impl IntoIterator<Item = Array>) {
    for (i, a) in arrays.into_iter().enumerate() {
        assert_eq!(error(a.clone()).kind(), kind, "case {i}: {a:?}");
    }
}

#[track_caller]
fn numbers<T: gradus_core::Element>(a: Array) -> Vec<T> {
    a.to_vec().unwrap()
}

fn f64s(dims: &[usize]) -> Array {
    let n = dims.iter().product::<usize>();
    Array::from((0..n).map(|i| i as f64 + 0.5).collect::<Vec<_>>()).reshape(dims)
}

/// The number of elements of arrays that no machine has room for, and their dimensions.
const HUGE: usize = 1 << 44;

/// One number seen in a huge shape: it exists, because it takes no memory.
fn huge() -> Array {
    Array::full([HUGE], 1.5_f64)
}

/// Memory is read by what a type says: numbers that are not of it become no array.
#[test]
fn numbers_of_another_type_are_no_array() {
    let ty = Type::new(DType::F64, &[8_usize][..]);
    assert!(Concrete::new(ty.clone(), vec![1.0_f64; 8]).is_ok());
    for e in [
        Concrete::new(ty.clone(), vec![1_i8; 8]).unwrap_err(),
        Concrete::new(ty.clone(), vec![1_i64; 8]).unwrap_err(),
        Concrete::new(ty.clone(), vec![1.0_f64; 7]).unwrap_err(),
        Concrete::new(ty, vec![1.0_f64; 9]).unwrap_err(),
        Concrete::new("f64[N]".parse().unwrap(), vec![1.0_f64; 9]).unwrap_err(),
        Concrete::new(Type::new(DType::F64, &[HUGE, HUGE][..]), vec![1.0_f64; 9]).unwrap_err(),
    ] {
        assert_eq!(e.kind(), ErrorKind::Shape, "{e}");
    }
}

#[test]
fn wrong_shapes_are_shape_errors() {
    let (x, y) = (f64s(&[2, 3]), f64s(&[4]));
    refused(
        ErrorKind::Shape,
        [
            &x + &y,
            x.maximum(&y),
            x.lt(&y),
            x.pow(&y),
            x.lt(0.0_f64).select(&x, &y),
            x.reshape([7]),
            x.reshape([4, -1]),
            x.broadcast_to([3, 3]),
            x.broadcast_to([3]),
            Array::concatenate([&x, &f64s(&[2, 3, 1])], 0),
            Array::concatenate([&x, &f64s(&[3, 3])], 1),
            Array::stack([&x, &y], 0),
            x.matmul(&x),
            x.dot(&x),
            y.dot(&f64s(&[5])),
            Array::einsum("ij,jk->ik", [&x, &x]),
            x.tensordot(&x, 1),
            x.inner(&f64s(&[2, 4])),
            x.at(0).set(&y),
            x.at(..).add(f64s(&[3, 2])),
            Array::from_vec(vec![1.0_f64, 2.0], [3]),
            Array::from(vec![vec![1.0_f64], vec![1.0, 2.0]]),
            x.dynamic_slice(&[Array::from(0i32), Array::from(0i32)], [3, 3]),
            x.squeeze(0),
            x.take_along_axis(&Array::from([0i32]), 1),
        ],
    );
    assert!(x.reshape([4, -1]).ok().unwrap_err().message().contains("f64[2,3]"));
}

#[test]
fn wrong_dtypes_are_dtype_errors() {
    let (ints, bools) = (Array::from([1i32, 2, 3]), Array::from([true, false, true]));
    let (floats, z) = (f64s(&[3]), Array::complex(&f64s(&[3]), &f64s(&[3])));
    refused(
        ErrorKind::DType,
        [
            ints.sin(),
            ints.erf(),
            ints.cast(DType::I64) + &floats,
            ints.cast(DType::U64) + ints.cast(DType::I64),
            &bools + &bools,
            -&bools,
            !&floats,
            &floats & &floats,
            &floats << &floats,
            &ints * 0.5_f64,
            &ints + i64::MAX,
            ints.cast(DType::U8) + 300i32,
            ints.cast(DType::U8) + -1i32,
            floats.cast(DType::F16) * 1e6_f64,
            floats.cast(DType::F32) + 16_777_217i32,
            &floats + Complex::new(0.0_f64, 1.0),
            z.cast(DType::F64),
            z.max(),
            z.argmax(),
            z.lt(&z),
            z.floor(),
            z.top_k(1).0,
            floats.bitcast(DType::I32),
            bools.bitcast(DType::U8),
            floats.select(&ints, &ints),
            floats.index(&floats),
            floats.take(&floats, 0),
            floats.popcount(),
            ints.powi(-1),
            ints.is_finite(),
            bools.dot(&bools),
            Array::iota(DType::Bool, [3], 0),
        ],
    );
    assert_eq!(floats.item::<f32>().unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(floats.index(0).item::<f32>().unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(floats.to_vec::<i32>().unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(floats.as_slice::<bool>().unwrap_err().kind(), ErrorKind::DType);
}

#[test]
fn wrong_axes_and_ranks_are_axis_errors() {
    let x = f64s(&[2, 3]);
    let scalar = Array::from(1.0_f64);
    refused(
        ErrorKind::Axis,
        [
            x.sum_axes(2),
            x.sum_axes(-3),
            x.sum_axes([0, 0]),
            x.sum_axes([0, -2]),
            x.sum_axes(usize::MAX),
            x.sum_axes(i32::MIN),
            x.max_axes([1isize, isize::MIN]),
            scalar.sum_axes(0),
            x.argmax_axis(2),
            x.cumsum(2),
            x.cumsum(isize::MIN),
            x.sort(-3),
            x.argsort(9),
            scalar.sort(0),
            scalar.top_k(1).0,
            x.transpose([0, 0]),
            x.transpose([0, 2]),
            x.transpose([0]),
            x.swap_axes(0, 2),
            x.move_axis(5, 0),
            x.flip(2),
            x.roll(1, 2),
            x.repeat(2, 2),
            x.squeeze(2),
            x.expand_dims(5),
            x.softmax(2),
            x.var_axes(7, 0),
            Array::concatenate([&x, &x], 2),
            Array::stack([&x, &x], 4),
            x.take(&Array::from([0i32]), 2),
            x.split(1, 2).remove(0),
            x.diagonal_axes(0, 0, 0),
            x.tensordot(&x, ([0], [2])),
            Array::iota(DType::I32, [2], 1),
        ],
    );
}

#[test]
fn indices_out_of_range_are_index_errors() {
    let x = f64s(&[2, 3]);
    refused(
        ErrorKind::Index,
        [
            x.index(2),
            x.index(-3),
            x.index((0, 3)),
            x.index(i64::MAX),
            x.index(i64::MIN),
            x.index((0, 0, 0)),
            x.index((Index::Ellipsis, Index::Ellipsis)),
            x.at((0, 5)).set(1.0_f64),
            f64s(&[0]).index(0),
            x.index(vec![Index::At(0); 100]),
        ],
    );
    refused(ErrorKind::Index, [x.index(Index::step(.., 0))]);
    // Ranges are clipped, as in Python.
    assert_eq!(*x.index(1..100).shape(), [1, 3]);
    assert_eq!(*x.index(100..200).shape(), [0, 3]);
    assert_eq!(*x.index(-100..1).shape(), [1, 3]);
    let backward = std::ops::Range { start: i64::MAX, end: i64::MIN };
    assert_eq!(*x.index((.., Index::step(backward, i64::MIN))).shape(), [2, 1]);
    assert_eq!(*x.index((.., Index::NewAxis)).shape(), [2, 1, 3]);
    // Indices that are data are held in range or filled; negative ones count from the end.
    let picked = f64s(&[3]).take(&Array::from([0i32, -1, 2]), 0);
    assert_eq!(numbers::<f64>(picked), [0.5, 2.5, 2.5]);
}

#[test]
fn other_bad_values_are_errors() {
    let x = f64s(&[4]);
    refused(ErrorKind::Shape, [x.top_k(5).0]);
    refused(ErrorKind::Size, [x.top_k(usize::MAX).0]);
    for a in [x.split(3, 0).remove(0), x.split(0, 0).remove(0)] {
        error(a);
    }
    refused(ErrorKind::Value, [x.polygamma(0), Array::arange(0.0_f64, 1.0, 0.0), Array::arange(0i32, 5, 0)]);
    error(Array::concatenate(Vec::<Array>::new(), 0));
    error(Array::stack(Vec::<Array>::new(), 0));
    error(x.pad(&[(1, 1), (0, 0)], 0.0_f64));
    error(x.pad(&[(-3, -3)], 0.0_f64));
    error(x.reshape([-1, -1]));
    error(x.reshape([-2]));
    assert_eq!(Array::spec("f65[2]").ok().unwrap_err().kind(), ErrorKind::Parse);
    for equation in ["", "i", "ij,jk", "i->i->i", "iii", "i,j->k", "é->é", "i...,i", "->", ",,,,", "i->ii"] {
        let result = Array::einsum(equation, [&x]);
        if let Ok(a) = result.clone().ok() {
            // One letter and one operand: the equation is right.
            assert!(equation == "i" || equation == "i->i", "{equation}: {a:?}");
        }
    }
}

#[test]
fn text_that_is_not_a_type_or_a_dimension_is_a_parse_error() {
    let deep = format!("f64[{}B{}]", "max(".repeat(100_000), ",1)".repeat(100_000));
    for text in
        ["", "f64", "f64[", "f64]", "f64[2", "f64[2,]x", "f64[,2]", "f64[2 3]", "f64[-]", "[2]", "f64[é]", &deep]
    {
        assert_eq!(text.parse::<Type>().unwrap_err().kind(), ErrorKind::Parse, "{text:.40}");
    }
    for text in ["f64[-1]", "f64[9223372036854775807]", "f64[4294967296,4294967296]"] {
        assert_eq!(text.parse::<Type>().unwrap_err().kind(), ErrorKind::Size, "{text}");
    }
    assert!("f64[99999999999999999999]".parse::<Type>().is_err());
    assert!("f64[B*9223372036854775807*2]".parse::<Type>().is_err());
    for text in ["", "1+", "B^", "B^-1", "floordiv(B,0)", "mod(1,0)", "2B", "B B", "99999999999999999999", "max(B)"] {
        let dim = text.parse::<Dim>();
        assert!(dim.is_err() || dim.as_ref().is_ok_and(Dim::is_invalid), "{text}: {dim:?}");
    }
}

#[test]
fn dimensions_that_overflow_are_size_errors() {
    let x = f64s(&[2]);
    refused(
        ErrorKind::Size,
        [
            Array::zeros::<f64>([usize::MAX]),
            Array::zeros::<f64>([usize::MAX, 2]),
            Array::zeros::<bool>([1usize << 32, 1 << 32]),
            Array::full([1usize << 40, 1 << 40], 1.0_f32),
            Array::full([-1], 1.0_f32),
            Array::full([i64::MIN], 1.0_f32),
            Array::from_vec(vec![1.0_f64], [usize::MAX, usize::MAX]),
            x.broadcast_to([usize::MAX, 2]),
            x.reshape([usize::MAX, usize::MAX]),
            Array::iota(DType::I32, [usize::MAX], 0),
            Array::eye::<f64>(usize::MAX),
            Array::tri::<f64>(1usize << 33, 1usize << 33, 0),
            x.outer(&x).tile([1usize << 40, 1 << 40]),
            x.repeat(usize::MAX, 0),
            x.pad(&[(isize::MAX, isize::MAX)], 0.0_f64),
            Array::from([0i32]).one_hot(usize::MAX, DType::F64),
            huge().outer(&huge()),
        ],
    );
    // An array with a zero among its dimensions is empty, however large the others.
    let empty = Array::zeros::<f64>([1usize << 40, 0, 1 << 40]);
    assert_eq!(numbers::<f64>(empty), []);
}

#[test]
fn arrays_too_large_for_memory_are_size_errors() {
    let half = || Array::from([1.5_f64, 2.5]).broadcast_to([HUGE / 2, 2]);
    refused(
        ErrorKind::Size,
        [
            Array::arange(0i64, i64::MAX, 1),
            Array::arange(0.0_f64, 1e300, 1.0),
            Array::linspace(0.0_f64, 1.0, HUGE),
            Array::iota(DType::I64, [HUGE], 0),
            Array::eye::<f64>(1usize << 30),
            huge().cumsum(0),
            huge().sort(0),
            huge().argsort(0),
            Array::concatenate([&huge(), &huge()], 0),
            huge().pad(&[(1, 1)], 0.0_f64),
            half().sin(),
            half().cast(DType::F32),
            half() + half(),
            half() * 2.0_f64,
            half().lt(2.0_f64),
            half().lt(half()).select(half(), 0.0_f64),
            half().clamp(0.0_f64, 1.0_f64),
            half().reshape([HUGE]).flip(0) + 1.0_f64,
            half().cumsum(0),
            half().sort(0),
            half().argmax_axis(1),
            half().t().reshape([HUGE]),
            half().matmul(&f64s(&[2, 2])),
            half().at(0).set(1.0_f64),
            half().to_dense(),
            half().take(&Array::from([0i32]), 1),
            Array::stack([&half(), &half()], 0),
            half().softmax(1),
            // Sums are rounded in the order of the elements, so that there is no shorter way to them.
            huge().sum(),
        ],
    );
    assert_eq!(huge().to_vec::<f64>().unwrap_err().kind(), ErrorKind::Size);
    assert_eq!(half().to_vec::<f64>().unwrap_err().kind(), ErrorKind::Size);
    assert_eq!(half().values::<f64>().unwrap_err().kind(), ErrorKind::Size);
    // One number in every place costs nothing, whatever the shape, and can be computed with.
    assert_eq!((huge() * 2.0_f64).index(HUGE - 1).item::<f64>().unwrap(), 3.0);
    assert_eq!(huge().sin().index(0).item::<f64>().unwrap(), Array::from(1.5).sin().item::<f64>().unwrap());
    assert_eq!(huge().cast(DType::I64).sum().item::<i64>().unwrap(), HUGE as i64);
    assert_eq!(huge().max().item::<f64>().unwrap(), 1.5);
    assert_eq!(half().max_axes(1).index(7).item::<f64>().unwrap(), 2.5);
    assert_eq!(half().index((5, ..)).to_vec::<f64>().unwrap(), [1.5, 2.5]);
    assert!(huge().to_string().len() < 1000);
    assert!(format!("{:?}", half()).len() < 1000);
}

#[test]
fn integer_division_by_zero_is_all_ones_and_the_remainder_is_the_dividend() {
    macro_rules! check {
        ($($t:ident)*) => {$(
            let x = Array::from([7 as $t, 0, $t::MIN, $t::MAX]);
            assert_eq!(numbers::<$t>(&x / (0 as $t)), [!0 as $t; 4]);
            assert_eq!(numbers::<$t>(&x % (0 as $t)), [7, 0, $t::MIN, $t::MAX]);
            assert_eq!(numbers::<$t>(&x / &x.zeros_like()), [!0 as $t; 4]);
            // The one quotient that does not fit wraps.
            let minus_one = Array::from(!0 as $t);
            let want = [7, 0, $t::MIN, $t::MAX].map(|v: $t| v.wrapping_div(!0));
            assert_eq!(numbers::<$t>(&x / &minus_one), want);
            let want = [7, 0, $t::MIN, $t::MAX].map(|v: $t| v.wrapping_rem(!0));
            assert_eq!(numbers::<$t>(&x % &minus_one), want);
        )*};
    }
    check!(i8 i16 i32 i64 u8 u16 u32 u64);
    assert_eq!(numbers::<i32>(-Array::from([i32::MIN])), [i32::MIN]);
    assert_eq!(numbers::<i32>(Array::from([i32::MIN]).abs()), [i32::MIN]);
    assert_eq!(numbers::<i32>(Array::from([0i32, 1, -1, 2]).pow(-1i32)), [-1, 1, -1, 0]);
    // Shifts by the width or more, and by negative counts.
    let x = Array::from([1i32, -1, i32::MIN]);
    for n in [32, 33, i32::MAX, -1, i32::MIN] {
        assert_eq!(numbers::<i32>(&x << n), [0, 0, 0], "{n}");
        assert_eq!(numbers::<i32>(&x >> n), [0, -1, -1], "{n}");
        assert_eq!(numbers::<i32>(x.shift_right_logical(n)), [0, 0, 0], "{n}");
    }
    let floats = Array::from([1.0_f64, -1.0, 0.0]) / 0.0_f64;
    assert_eq!(numbers::<f64>(floats.index(0..2)), [f64::INFINITY, f64::NEG_INFINITY]);
    assert!(floats.index(2).item::<f64>().unwrap().is_nan());
}

#[test]
fn empty_arrays_have_defined_results() {
    let x = Array::zeros::<f64>([0]);
    assert_eq!(x.sum().item::<f64>().unwrap(), 0.0);
    assert_eq!(x.prod().item::<f64>().unwrap(), 1.0);
    assert_eq!(x.max().item::<f64>().unwrap(), f64::NEG_INFINITY);
    assert_eq!(x.min().item::<f64>().unwrap(), f64::INFINITY);
    assert!(x.mean().item::<f64>().unwrap().is_nan());
    assert_eq!(Array::zeros::<i8>([0]).max().item::<i8>().unwrap(), i8::MIN);
    assert_eq!(Array::zeros::<u8>([0]).min().item::<u8>().unwrap(), u8::MAX);
    assert!(Array::zeros::<bool>([0]).all().item::<bool>().unwrap());
    assert!(!Array::zeros::<bool>([0]).any().item::<bool>().unwrap());
    refused(ErrorKind::Shape, [x.argmax(), x.argmin(), Array::zeros::<f64>([2, 0]).argmax_axis(1)]);
    assert_eq!(x.item::<f64>().unwrap_err().kind(), ErrorKind::Shape);
    for y in [x.sin(), &x + 1.0_f64, x.sort(0), x.cumsum(0), x.flip(0), x.roll(3, 0), x.softmax(0), x.repeat(3, 0)] {
        assert_eq!(*y.shape(), [0], "{y:?}");
        assert_eq!(numbers::<f64>(y), []);
    }
    assert_eq!(*x.pad(&[(1, 2)], 7.0_f64).shape(), [3]);
    assert_eq!(numbers::<f64>(Array::concatenate([&x, &f64s(&[1]), &x], 0)), [0.5]);
    assert_eq!(numbers::<f64>(Array::linspace(0.0_f64, 1.0, 0)), []);
    assert_eq!(numbers::<f64>(Array::arange(1.0_f64, 0.0, 1.0)), []);
    assert_eq!(numbers::<f64>(Array::from(Vec::<f64>::new())), []);
    assert_eq!(*Array::from(Vec::<Vec<f64>>::new()).shape(), [0]);
    assert_eq!(x.to_string(), "[]");
}

#[test]
fn zero_size_dimensions_have_defined_results() {
    let (x, y) = (Array::zeros::<f64>([2, 0]), Array::zeros::<f64>([0, 3]));
    assert_eq!(numbers::<f64>(x.matmul(&y)), [0.0; 6]);
    assert_eq!(*y.matmul(&Array::zeros::<f64>([3, 4])).shape(), [0, 4]);
    assert_eq!(numbers::<f64>(y.sum_axes(0)), [0.0; 3]);
    assert_eq!(*y.sum_axes(1).shape(), [0]);
    assert_eq!(numbers::<f64>(x.prod_axes(1)), [1.0; 2]);
    assert_eq!(*x.t().shape(), [0, 2]);
    assert_eq!(*x.reshape([0, 5]).shape(), [0, 5]);
    assert_eq!(*x.broadcast_to([3, 2, 0]).shape(), [3, 2, 0]);
    assert_eq!(*(&x + Array::zeros::<f64>([1, 1])).shape(), [2, 0]);
    assert_eq!(*x.index((.., ..)).shape(), [2, 0]);
    assert_eq!(*x.index((1, ..)).shape(), [0]);
    assert_eq!(*x.sort(1).shape(), [2, 0]);
    assert_eq!(*x.top_k(0).0.shape(), [2, 0]);
    assert_eq!(*x.take(&Array::zeros::<i32>([0]), 1).shape(), [2, 0]);
    assert_eq!(*y.take(&Array::zeros::<i32>([0]), 1).shape(), [0, 0]);
    assert_eq!(*Array::stack([&x, &x], 0).shape(), [2, 2, 0]);
    assert_eq!(*x.outer(&y).shape(), [0, 0]);
    refused(ErrorKind::Shape, [&x + Array::zeros::<f64>([2, 3]), x.reshape([1])]);
    assert!(error(x.reshape([0, -1])).kind() == ErrorKind::Shape);
    // Reading the place of an index from an axis that has none.
    error(y.take(&Array::from([0i32]), 0));
}

#[test]
fn nan_goes_where_it_should() {
    let nan = f64::NAN;
    let x = Array::from([1.0, nan, 3.0]);
    let is_nan = |a: Array| numbers::<bool>(a.is_nan());
    assert_eq!(is_nan(x.maximum(2.0_f64)), [false, true, false]);
    assert_eq!(is_nan(x.minimum(2.0_f64)), [false, true, false]);
    assert_eq!(is_nan(x.clamp(0.0_f64, 1.0_f64)), [false, true, false]);
    for y in [x.max(), x.min(), x.sum(), x.mean(), x.prod(), x.var(), x.softmax(0).sum()] {
        assert!(y.item::<f64>().unwrap().is_nan());
    }
    assert_eq!(x.argmax().item_scalar().unwrap().to_i64(), Some(1));
    assert_eq!(x.argmin().item_scalar().unwrap().to_i64(), Some(1));
    assert_eq!(is_nan(x.sort(0)), [false, false, true]);
    assert_eq!(is_nan(x.sort_descending(0)), [true, false, false]);
    assert_eq!(is_nan(x.top_k(1).0), [true]);
    assert_eq!(numbers::<bool>(x.eq(&x)), [true, false, true]);
    assert_eq!(numbers::<bool>(x.ne(&x)), [false, true, false]);
    assert_eq!(numbers::<bool>(x.lt(nan) | x.gt(nan) | x.le(nan) | x.ge(nan)), [false; 3]);
    assert_eq!(numbers::<i32>(x.cast(DType::I32)), [1, 0, 3]);
    assert_eq!(numbers::<bool>(x.cast(DType::Bool)), [true; 3]);
    assert_eq!(numbers::<u8>(Array::from([-1.0, 300.0, f64::INFINITY]).cast(DType::U8)), [0, 255, 255]);
    assert_eq!(is_nan(x.cummax(0)), [false, true, true]);
    assert!((&x * 0.0_f64).sum().item::<f64>().unwrap().is_nan());
    assert_eq!(x.powi(0).sum().item::<f64>().unwrap(), 3.0);
    // NaN is not a truth value.
    refused(ErrorKind::DType, [x.select(1.0_f64, 2.0_f64)]);
    let wide = Array::from([f16::MAX, f16::MAX]);
    assert!(wide.sum().item::<f16>().unwrap().is_infinite());
    assert!(Array::from([bf16::NAN]).max().item::<bf16>().unwrap().is_nan());
}

#[test]
fn an_error_travels_with_its_first_line() {
    let x = f64s(&[2]);
    let line = line!() + 1;
    let bad = &x + f64s(&[3]);
    let worse = (bad.sin() * 2.0_f64).sum_axes(17).reshape([5]).matmul(&x).index(9);
    let e = error(worse.clone());
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert_eq!(e.place().line(), Some(line));
    assert!(e.to_string().contains("f64[2]") && e.to_string().contains("f64[3]"), "{e}");
    assert_eq!(worse.to_vec::<f64>().unwrap_err(), e);
    assert_eq!(worse.shape().rank(), 0);
    for y in
        [bad.sum(), bad.real(), bad.zeros_like(), bad.top_k(1).1, Array::stack([&x, &bad], 0), bad.t(), x.take(&bad, 0)]
    {
        assert!(error(y).is_same(bad.error().unwrap()));
    }
}

#[test]
fn an_escaped_tracer_is_found_at_its_first_use() {
    let mut kept = Vec::new();
    trace("f", &[Array::spec("f64[2]")], Mode::Abstract, |x| {
        kept.extend([x[0].clone(), x[0].sin()]);
        vec![x[0].clone()]
    })
    .unwrap();
    for tracer in &kept {
        refused(ErrorKind::EscapedTracer, [tracer.cos(), tracer + 1.0_f64, Array::stack([tracer, &f64s(&[2])], 0)]);
        assert_eq!(tracer.to_vec::<f64>().unwrap_err().kind(), ErrorKind::EscapedTracer);
    }
    let into_another = trace("g", &[], Mode::Abstract, |_| vec![kept[0].clone()]);
    assert_eq!(into_another.unwrap_err().kind(), ErrorKind::EscapedTracer);
}

#[test]
fn a_tracer_sent_to_another_thread_is_an_error() {
    let traced = trace("f", &[Array::spec("f64[2]")], Mode::Abstract, |x| {
        let tracer = x[0].clone();
        let elsewhere = std::thread::spawn(move || tracer.sin()).join().unwrap();
        let e = elsewhere.error().cloned().unwrap();
        assert_eq!(e.kind(), ErrorKind::EscapedTracer);
        assert!(e.message().contains("another thread"), "{e}");
        vec![x[0].cos()]
    });
    assert_eq!(traced.unwrap().program.equations().len(), 1);
}

#[test]
fn long_chains_and_deep_nests_do_not_exhaust_the_stack() {
    // Eager: a chain holds nothing back.
    let mut x = Array::from(1.0_f64);
    for _ in 0..100_000 {
        x = x * 1.0_f64 + 0.0_f64;
    }
    assert_eq!(x.item::<f64>().unwrap(), 1.0);
    // Traced: a program is flat, however long.
    let traced =
        trace("f", &[Array::spec("f64[]")], Mode::Abstract, |x| vec![(0..50_000).fold(x[0].clone(), |y, _| y.sin())]);
    let program = traced.unwrap().program;
    verify(&program).unwrap();
    assert_eq!(program.equations().len(), 50_000);
    // Views of views.
    let mut x = f64s(&[2, 3]);
    for _ in 0..10_000 {
        x = x.t().flip(0);
    }
    assert_eq!(*x.shape(), [2, 3]);
    // Views of views that reverse mode makes again instead of saving them.
    let views = |x: &Array| (0..5_000).fold(x.clone(), |y, _| y.t().flip(0));
    let traced =
        trace("f", &[Array::spec("f64[2,3]")], Mode::Abstract, |x| vec![(views(&x[0]).sin() * views(&x[0])).sum()]);
    let reverse = vjp(&traced.unwrap().program, &[true]).unwrap();
    verify(&reverse.linear).unwrap();
    // Arrays with many axes.
    let many = Array::from([1.0_f64]).reshape(vec![1usize; 1000]);
    assert_eq!(many.rank(), 1000);
    assert_eq!((&many + &many).sum().item::<f64>().unwrap(), 2.0);
    assert!(many.to_string().len() < 10_000);
}

#[test]
fn calls_nested_too_deep_are_an_error_and_all_others_print_and_read_back() {
    let mut program: Program = "fn f(x0: f64[]) -> f64[] {\n  return x0\n}\n".parse().unwrap();
    let mut depth = 0;
    let stopped = loop {
        let mut b = Builder::new("f");
        let x = b.input(program.inputs()[0].clone()).unwrap();
        let call = Op::new(Call { program: Arc::new(program.clone()) });
        let y = match b.equation(call, &[x.into()], Location::unknown()) {
            Ok(e) => e.result(),
            Err(e) => break Some(e),
        };
        program = b.finish(vec![y.into()]);
        depth += 1;
        if depth > 10_000 {
            break None;
        }
    };
    let e = stopped.unwrap_or_else(|| panic!("{depth} nested calls were taken"));
    assert_eq!(e.kind(), ErrorKind::Size);
    assert!(depth >= 32, "{depth}");
    let back: Program = program.to_string().parse().unwrap();
    assert_eq!(back, program);
    verify(&back).unwrap();
    assert_eq!(interpret(&back, &[Array::from(2.0_f64)]).unwrap()[0].item::<f64>().unwrap(), 2.0);
}

#[test]
fn padding_that_leaves_nothing_counts_no_places() {
    let large = 1_i64 << 45;
    let x = Array::zeros::<f32>([1, large, 0]);
    let padded = x.pad(&[(large as isize, 0), (0, 0), (0, 0)], 1.0_f32);
    assert_eq!(padded.ok().unwrap().to_vec::<f32>().unwrap(), []);
}

/// Where the result has the shape of the array itself, one with more axes beside it is named with that array.
#[test]
fn an_operand_with_more_axes_does_not_fit() {
    let small = Array::from(2.0_f64);
    for a in [small.mul_add(f64s(&[9, 7]), 1.0), small.mul_add(1.0, f64s(&[3])), small.clamp(0.0, f64s(&[3]))] {
        let e = error(a);
        assert_eq!(e.kind(), ErrorKind::Shape);
        let text = e.to_string();
        assert!(text.contains("beside f64[]") && text.contains("broadcast_to"), "{text}");
    }
}
