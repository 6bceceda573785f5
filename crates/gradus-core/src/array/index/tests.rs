//! Reads and changes beside what NumPy gives for the same index (the expectations were printed by NumPy 2.4).

// Ranges that go backwards, and references to what is made on the spot: that is how users write indices.
#![allow(clippy::reversed_empty_ranges, clippy::needless_borrows_for_generic_args)]

use super::*;
use crate::array::Array;
use crate::array::shaping::tests::{everywhere, staged};
use crate::error::ErrorKind;
use crate::primitives::index::ScatterKind;

macro_rules! read {
    ($x:ident, $index:expr, $shape:expr, $values:expr) => {{
        let y = everywhere(&$x, |x| x.index($index));
        let (shape, values): (Vec<usize>, Vec<i64>) = (Vec::from($shape), Vec::from($values));
        assert_eq!((y.known_dims().unwrap(), y.to_vec::<i64>().unwrap()), (shape, values), "{}", stringify!($index));
    }};
}

macro_rules! change {
    ($x:ident, $index:expr, $method:ident, $value:expr, $values:expr) => {{
        let y = everywhere(&$x, |x| x.at($index).$method($value));
        assert_eq!(y.shape(), $x.shape());
        let values: Vec<i64> = Vec::from($values);
        assert_eq!(y.to_vec::<i64>().unwrap(), values, "{} {}", stringify!($index), stringify!($method));
    }};
}

fn kind(x: &Array) -> (ErrorKind, String) {
    let e = x.error().unwrap_or_else(|| panic!("no error but {x:?}"));
    assert!(e.place().file().is_some_and(|f| f.ends_with("tests.rs")), "{e}");
    (e.kind(), e.to_string())
}

#[test]
fn reads_are_those_of_numpy() {
    let x = Array::arange(0i64, 24, 1).reshape([2, 3, 4]);
    let (i, neg, g) = (Array::from([2i32, 0, 1]), Array::from([-1i8, 0]), Array::from([[0i64, 1], [1, 0]]));
    let (col, row, s) = (Array::from([[0u8], [2]]), Array::from([1u64, 3]), Array::from(1i32));
    read!(x, 0, [3, 4], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    read!(x, -1, [3, 4], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]);
    read!(x, (1, 2, 3), [], [23]);
    read!(x, (0, 1..3), [2, 4], [4, 5, 6, 7, 8, 9, 10, 11]);
    read!(x, (.., -2, ..), [2, 4], [4, 5, 6, 7, 16, 17, 18, 19]);
    read!(x, 1usize.., [1, 3, 4], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]);
    read!(x, (.., ..2), [2, 2, 4], [0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18, 19]);
    read!(x, (.., .., 1..=2), [2, 3, 2], [1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22]);
    read!(x, (.., .., -3..-1), [2, 3, 2], [1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22]);
    read!(x, (.., .., -3..=-1), [2, 3, 3], [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23]);
    read!(x, (.., 2..100), [2, 1, 4], [8, 9, 10, 11, 20, 21, 22, 23]);
    read!(x, (.., 7..9), [2, 0, 4], []);
    read!(x, (.., 2..1), [2, 0, 4], []);
    read!(x, (Index::Ellipsis, Index::step(.., 2)), [2, 3, 2], [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]);
    read!(x, (Index::Ellipsis, Index::step(1.., 2)), [2, 3, 2], [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]);
    read!(
        x,
        (Index::Ellipsis, Index::step(.., -1)),
        [2, 3, 4],
        [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 19, 18, 17, 16, 23, 22, 21, 20]
    );
    read!(x, (Index::Ellipsis, Index::step(.., -2)), [2, 3, 2], [3, 1, 7, 5, 11, 9, 15, 13, 19, 17, 23, 21]);
    read!(x, (Index::Ellipsis, Index::step(3..0, -2)), [2, 3, 2], [3, 1, 7, 5, 11, 9, 15, 13, 19, 17, 23, 21]);
    read!(x, (Index::Ellipsis, Index::step(-1..=0, -3)), [2, 3, 2], [3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20]);
    read!(
        x,
        (Index::Ellipsis, Index::step(-2..-100, -1)),
        [2, 3, 3],
        [2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 18, 17, 16, 22, 21, 20]
    );
    read!(x, (Index::Ellipsis, Index::step(0..3, -1)), [2, 3, 0], []);
    read!(
        x,
        (Index::Ellipsis, Index::step(..=1, -1)),
        [2, 3, 3],
        [3, 2, 1, 7, 6, 5, 11, 10, 9, 15, 14, 13, 19, 18, 17, 23, 22, 21]
    );
    read!(
        x,
        (Index::Ellipsis, Index::step(100..-4, -1)),
        [2, 3, 3],
        [3, 2, 1, 7, 6, 5, 11, 10, 9, 15, 14, 13, 19, 18, 17, 23, 22, 21]
    );
    read!(x, (Index::Ellipsis, 0), [2, 3], [0, 4, 8, 12, 16, 20]);
    read!(x, (1, Index::Ellipsis), [3, 4], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]);
    read!(x, (0, Index::Ellipsis, 1), [3], [1, 5, 9]);
    read!(x, (1, 2, Index::Ellipsis, 3), [], [23]);
    read!(
        x,
        Index::NewAxis,
        [1, 2, 3, 4],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]
    );
    read!(x, (.., Index::NewAxis, 0), [2, 1, 4], [0, 1, 2, 3, 12, 13, 14, 15]);
    read!(
        x,
        (Index::Ellipsis, Index::NewAxis),
        [2, 3, 4, 1],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]
    );
    read!(x, (Index::NewAxis, 1, 1, Index::NewAxis, 1..2), [1, 1, 1], [17]);
    read!(x, (), [2, 3, 4], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]);
    read!(
        x,
        &g,
        [2, 2, 3, 4],
        [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 12, 13, 14, 15, 16,
            17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        ]
    );
    read!(
        x,
        (.., &i),
        [2, 3, 4],
        [8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 16, 17, 18, 19]
    );
    read!(x, (.., .., &neg), [2, 3, 2], [3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20]);
    read!(x, (&g, &g), [2, 2, 4], [0, 1, 2, 3, 16, 17, 18, 19, 16, 17, 18, 19, 0, 1, 2, 3]);
    read!(x, (&neg, .., &row), [2, 3], [13, 17, 21, 3, 7, 11]);
    read!(x, (.., &col, &row), [2, 2, 2], [1, 3, 9, 11, 13, 15, 21, 23]);
    read!(x, (1, &col, &row), [2, 2], [13, 15, 21, 23]);
    read!(x, (1, .., &row), [2, 3], [13, 17, 21, 15, 19, 23]);
    read!(x, (&g, Index::NewAxis, 1), [2, 2, 1, 4], [4, 5, 6, 7, 16, 17, 18, 19, 16, 17, 18, 19, 4, 5, 6, 7]);
    read!(x, (&g, 1, Index::NewAxis), [2, 2, 1, 4], [4, 5, 6, 7, 16, 17, 18, 19, 16, 17, 18, 19, 4, 5, 6, 7]);
    read!(x, (.., &neg, 1..3), [2, 2, 2], [9, 10, 1, 2, 21, 22, 13, 14]);
    read!(x, (Index::Ellipsis, &row, Index::NewAxis), [2, 3, 2, 1], [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]);
    read!(x, (&neg, Index::Ellipsis, &row), [2, 3], [13, 17, 21, 3, 7, 11]);
    read!(x, (&neg, &neg, Index::Ellipsis, &row), [2], [21, 3]);
    read!(x, (.., Index::step(.., -1), &row), [2, 3, 2], [9, 11, 5, 7, 1, 3, 21, 23, 17, 19, 13, 15]);
    read!(x, &s, [3, 4], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]);
    read!(x, (&s, .., &s), [3], [13, 17, 21]);
    read!(x, (.., &s, 1..), [2, 3], [5, 6, 7, 17, 18, 19]);
    read!(x, (0, &s), [4], [4, 5, 6, 7]);
}

#[test]
fn changes_are_those_of_numpy() {
    let x = Array::arange(0i64, 12, 1).reshape([3, 4]);
    let (i, dup, j) = (Array::from([2i32, 0]), Array::from([1i64, 1, 0]), Array::from([-1i32, 1, 0]));
    let (v2, v3, v4) = (Array::from([70i64, 80]), Array::from([100i64, 200, 300]), Array::from([10i32, 20, 30, 40]));
    let (v14, v31) = (Array::from([[10i64, 20, 30, 40]]), Array::from([[100i64], [200], [300]]));
    let (m, mc) = (Array::from([true, false, true]), Array::from([true, false, false, true]));
    let mm = (&x % 3i64).eq(0i64);
    change!(x, 1, set, 50, [0, 1, 2, 3, 50, 50, 50, 50, 8, 9, 10, 11]);
    change!(x, 1, set, &v4, [0, 1, 2, 3, 10, 20, 30, 40, 8, 9, 10, 11]);
    change!(x, (-1, 1..3), add, 5, [0, 1, 2, 3, 4, 5, 6, 7, 8, 14, 15, 11]);
    change!(x, (.., 0), mul, -1, [0, 1, 2, 3, -4, 5, 6, 7, -8, 9, 10, 11]);
    change!(x, (Index::step(.., 2), Index::step(.., -3)), set, &v2, [80, 1, 2, 70, 4, 5, 6, 7, 80, 9, 10, 70]);
    change!(x, (.., Index::step(.., -1)), add, &v4, [40, 31, 22, 13, 44, 35, 26, 17, 48, 39, 30, 21]);
    change!(x, (0..2, Index::step(1.., 2)), min, 4, [0, 1, 2, 3, 4, 4, 6, 4, 8, 9, 10, 11]);
    change!(x, (1, Index::Ellipsis), max, 6, [0, 1, 2, 3, 6, 6, 6, 7, 8, 9, 10, 11]);
    change!(x, (.., 9..), set, 1, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    change!(x, (Index::NewAxis, 1), set, &v14, [0, 1, 2, 3, 10, 20, 30, 40, 8, 9, 10, 11]);
    change!(x, (), set, 7, [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
    change!(x, 1, set, &v14, [0, 1, 2, 3, 10, 20, 30, 40, 8, 9, 10, 11]);
    change!(x, &i, set, &v4, [10, 20, 30, 40, 4, 5, 6, 7, 10, 20, 30, 40]);
    change!(x, &i, set, 9, [9, 9, 9, 9, 4, 5, 6, 7, 9, 9, 9, 9]);
    change!(x, &dup, add, 100, [100, 101, 102, 103, 204, 205, 206, 207, 8, 9, 10, 11]);
    change!(x, (&dup, &j), mul, 3, [0, 1, 2, 3, 4, 15, 6, 21, 8, 9, 10, 11]);
    change!(x, (&dup, &j), min, 2, [0, 1, 2, 3, 4, 2, 6, 2, 8, 9, 10, 11]);
    change!(x, (.., &j), max, 5, [5, 5, 2, 5, 5, 5, 6, 7, 8, 9, 10, 11]);
    change!(x, (&dup, &j), add, &v3, [300, 1, 2, 3, 4, 205, 6, 107, 8, 9, 10, 11]);
    change!(x, (1.., &j), set, &v3, [0, 1, 2, 3, 300, 200, 6, 100, 300, 200, 10, 100]);
    change!(x, (0, &j), add, &v3, [300, 201, 2, 103, 4, 5, 6, 7, 8, 9, 10, 11]);
    change!(x, (Index::step(.., -2), &j), add, &v3, [300, 201, 2, 103, 4, 5, 6, 7, 308, 209, 10, 111]);
    change!(x, (&i, Index::NewAxis), set, &v4, [10, 20, 30, 40, 4, 5, 6, 7, 10, 20, 30, 40]);
    change!(x, &m, set, 0, [0, 0, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0]);
    change!(x, &m, add, &v4, [10, 21, 32, 43, 4, 5, 6, 7, 18, 29, 40, 51]);
    change!(x, &mm, mul, -1, [0, 1, 2, -3, 4, 5, -6, 7, 8, -9, 10, 11]);
    change!(x, &mm, max, 5, [5, 1, 2, 5, 4, 5, 6, 7, 8, 9, 10, 11]);
    change!(x, (.., &mc), min, 1, [0, 1, 2, 1, 1, 5, 6, 1, 1, 9, 10, 1]);
    change!(x, (1, &mc), set, 77, [0, 1, 2, 3, 77, 5, 6, 77, 8, 9, 10, 11]);
    change!(x, (Index::step(.., -1), &mc), add, &v31, [300, 1, 2, 303, 204, 5, 6, 207, 108, 9, 10, 111]);
}

#[test]
fn the_last_of_several_values_stays() {
    let (x, i) = (Array::from([0i64, 0, 0]), Array::from([1, 2, 1]));
    change!(x, &i, set, &Array::from([5i64, 6, 7]), [0, 7, 6]);
}

#[test]
fn integer_arrays_outside_clip_on_reads_and_skip_on_changes() {
    let x = Array::from([10i64, 20, 30]);
    let far = Array::from([3i64, -4, i64::MAX, i64::MIN, -3]);
    read!(x, &far, [5], [30, 10, 30, 10, 10]);
    change!(x, &far, add, 1, [11, 20, 30]);
    let huge = Array::from([u64::MAX, 1]);
    read!(x, &huge, [2], [30, 20]);
    change!(x, &huge, set, 0, [10, 0, 30]);
    read!(x, &Array::from(7), [], [30]);
    // The axis is longer than the dtype of its places can count to.
    let long = Array::arange(0i64, 300, 1);
    read!(long, &Array::from([-1i8, -128, 127]), [3], [299, 172, 127]);
    read!(long, &Array::from([255u8]), [1], [255]);
}

#[test]
fn plain_numbers_outside_are_errors_that_say_where() {
    let x = Array::zeros::<f64>([2, 3]);
    let (k, text) = kind(&x.index((1, 3)));
    assert_eq!(k, ErrorKind::Index);
    assert!(
        text.contains("index 3") && text.contains("axis 1") && text.contains("f64[2,3]") && text.contains("entry 1"),
        "{text}"
    );
    assert_eq!(kind(&x.index(-3)).0, ErrorKind::Index);
    assert_eq!(kind(&x.index(usize::MAX)).0, ErrorKind::Index);
    assert_eq!(kind(&x.at(i64::MIN).set(0.0)).0, ErrorKind::Index);
    assert_eq!(kind(&Array::zeros::<f64>([0]).index(0)).0, ErrorKind::Index);
}

#[test]
fn malformed_indices_are_errors() {
    let x = Array::zeros::<f64>([2, 3]);
    let (k, text) = kind(&x.index((0, 0, 0)));
    assert_eq!(k, ErrorKind::Index);
    assert!(text.contains("3 axes") && text.contains("f64[2,3]"), "{text}");
    assert_eq!(kind(&Array::from(1.0).index(0)).0, ErrorKind::Index);
    assert_eq!(kind(&x.index((Index::Ellipsis, Index::Ellipsis))).0, ErrorKind::Index);
    assert_eq!(kind(&x.index(Index::step(.., 0))).0, ErrorKind::Index);
    assert_eq!(kind(&x.index(&Array::from([0.5]))).0, ErrorKind::DType);
    let (a, b) = (Array::from([0, 1]), Array::from([0, 1, 1]));
    let (k, text) = kind(&x.index((&a, &b)));
    assert_eq!(k, ErrorKind::Index);
    assert!(text.contains("i32[2]") && text.contains("i32[3]"), "{text}");
    // An error inside an index goes on as it is.
    let failed = &a + &b;
    assert!(x.index(&failed).error().unwrap().is_same(failed.error().unwrap()));
    assert!(failed.index(0).error().unwrap().is_same(failed.error().unwrap()));
}

#[test]
fn values_have_to_fit() {
    let x = Array::zeros::<i32>([2, 3]);
    assert_eq!(kind(&x.at(0).set(0.5)).0, ErrorKind::DType);
    assert_eq!(kind(&x.at(0).set(&Array::from([1.0, 2.0, 3.0]))).0, ErrorKind::DType);
    let (k, text) = kind(&x.at(0).set(&Array::from([1, 2])));
    assert_eq!(k, ErrorKind::Shape);
    assert!(text.contains("i32[2]") && text.contains("[3]"), "{text}");
    assert_eq!(kind(&x.at(0).set(&Array::zeros::<i32>([2, 3]))).0, ErrorKind::Shape);
    assert_eq!(kind(&x.at(&Array::from([0, 1])).add(&Array::zeros::<i32>([3, 3]))).0, ErrorKind::Shape);
    // A smaller dtype fits.
    assert_eq!(x.at(0).set(&Array::from([1i8, 2, 3])).to_vec::<i32>().unwrap(), [1, 2, 3, 0, 0, 0]);
}

#[test]
fn masks_mark_places_to_change_but_cannot_be_read_at() {
    let x = Array::from([1.0, f64::NAN, 3.0]);
    let mask = x.is_nan();
    assert_eq!(x.at(&mask).set(0.0).to_vec::<f64>().unwrap(), [1.0, 0.0, 3.0]);
    let (k, text) = kind(&x.index(&mask));
    assert_eq!(k, ErrorKind::Index);
    assert!(text.contains("depends on values") && text.contains("select"), "{text}");
    assert_eq!(kind(&x.at(&Array::from([true])).set(0.0)).0, ErrorKind::Index);
    let (k, text) = kind(&x.at(&mask).set(&Array::from([1.0, 2.0, 3.0])));
    assert_eq!(k, ErrorKind::Shape);
    assert!(text.contains("mask.select"), "{text}");
    let y = Array::zeros::<f64>([3, 3]);
    assert_eq!(kind(&y.at((&mask, &mask)).set(1.0)).0, ErrorKind::Index);
    assert_eq!(kind(&y.at((&mask, &Array::from([0]))).set(1.0)).0, ErrorKind::Index);
    // A single bool marks everything or nothing.
    assert_eq!(x.at(&Array::from(true)).set(2.0).to_vec::<f64>().unwrap(), [2.0; 3]);
}

#[test]
fn empty_windows_and_empty_arrays() {
    let x = Array::zeros::<i64>([0, 3]);
    let none = Array::from(Vec::<i64>::new());
    read!(x, (.., 1), [0], []);
    read!(x, &none, [0, 3], []);
    read!(x, (.., &Array::from([0, 2, 2])), [0, 3], []);
    change!(x, (.., 1), set, 5, []);
    change!(x, &Array::from([0, 1]), add, 1, []);
    assert_eq!(kind(&x.index(&Array::from([0]))).0, ErrorKind::Index);
    let y = Array::from([1i64, 2, 3]);
    read!(y, &none, [0], []);
    read!(y, (3.., Index::NewAxis), [0, 1], []);
    change!(y, 3.., set, 9, [1, 2, 3]);
    read!(y, Index::step(.., i64::MAX), [1], [1]);
    read!(y, Index::step(.., i64::MIN), [1], [3]);
    change!(y, Index::step(.., i64::MIN), set, 9, [1, 2, 9]);
    change!(y, &none, set, 9, [1, 2, 3]);
    change!(y, Index::step(2..2, -2), add, 9, [1, 2, 3]);
}

#[test]
fn symbolic_axes_are_indexed_too() {
    let x = Array::spec("f32[B,4]");
    let ty = |y: &Array| y.ty().unwrap().to_string();
    assert_eq!(ty(&x.index((.., 1))), "f32[B]");
    assert_eq!(ty(&x.index(0)), "f32[4]");
    assert_eq!(ty(&x.index(1..)), "f32[B-1,4]");
    assert_eq!(ty(&x.index(..-1)), "f32[B-1,4]");
    assert_eq!(ty(&x.index(Index::step(.., -1))), "f32[B,4]");
    assert_eq!(ty(&x.index((Index::NewAxis, .., Index::step(.., 2)))), "f32[1,B,2]");
    assert_eq!(ty(&x.at(-1).set(0.0)), "f32[B,4]");
    assert_eq!(ty(&x.index(-1)), "f32[4]");
}

#[test]
fn a_symbolic_axis_is_checked_when_the_program_runs() {
    let run = |f: fn(&Array) -> Array, values: Vec<i64>| -> Result<Vec<i64>> {
        staged("i64[B]".parse()?, &Array::from(values), f)?.to_vec()
    };
    assert_eq!(run(|x| x.index(2), vec![1, 2, 3]).unwrap(), [3]);
    assert_eq!(run(|x| x.index(2), vec![1, 2]).unwrap_err().kind(), ErrorKind::Constraint);
    assert_eq!(run(|x| x.at(2).set(9), vec![1, 2, 3]).unwrap(), [1, 2, 9]);
    assert_eq!(run(|x| x.at(2).set(9), vec![1, 2]).unwrap_err().kind(), ErrorKind::Constraint);
    assert_eq!(run(|x| x.at(-1).add(9), vec![1, 2]).unwrap(), [1, 11]);
    assert_eq!(run(|x| x.index(1..) - x.index(..-1), vec![1, 4, 9]).unwrap(), [3, 5]);
    assert_eq!(run(|x| x.index(Index::step(.., -2)), vec![1, 2, 3]).unwrap(), [3, 1]);
    assert_eq!(run(|x| x.index(Index::step(.., -2)), vec![1, 2, 3, 4]).unwrap(), [4, 2]);
    assert_eq!(run(|x| x.at(Index::step(.., 2)).mul(-1), vec![1, 2, 3, 4]).unwrap(), [-1, 2, -3, 4]);
    assert_eq!(run(|x| x.index(&Array::from([-1, 0])), vec![1, 2, 3]).unwrap(), [3, 1]);
    assert_eq!(run(|x| x.at(&x.gt(1)).set(0), vec![1, 2, 3]).unwrap(), [1, 0, 0]);
}

#[test]
fn take_and_take_along_axis() {
    let x = Array::from([[3i64, 1, 2], [6, 5, 4]]);
    let i = Array::from([[2, 0], [-1, 9]]);
    assert_eq!(everywhere(&x, |x| x.take(&i, 1)).known_dims().unwrap(), [2, 2, 2]);
    assert_eq!(x.take(&i, 1).to_vec::<i64>().unwrap(), [2, 3, 2, 2, 4, 6, 4, 4]);
    assert_eq!(x.take(&Array::from(1), -2).to_vec::<i64>().unwrap(), [6, 5, 4]);
    assert_eq!(everywhere(&x, |x| x.take_along_axis(&i, 1)).to_vec::<i64>().unwrap(), [2, 3, 4, 4]);
    let row = Array::from([[1i64, 0, 1]]);
    assert_eq!(everywhere(&x, |x| x.take_along_axis(&row, 0)).to_vec::<i64>().unwrap(), [6, 1, 4]);
    let first = Array::from([[0u8]]);
    assert_eq!(everywhere(&x, |x| x.take_along_axis(&first, 1)).to_vec::<i64>().unwrap(), [3, 6]);
    assert_eq!(kind(&x.take(&i, 2)).0, ErrorKind::Axis);
    assert_eq!(kind(&x.take(&x.gt(1), 0)).0, ErrorKind::DType);
    assert_eq!(kind(&x.take_along_axis(&Array::from([0]), 0)).0, ErrorKind::Shape);
    assert_eq!(kind(&x.take_along_axis(&Array::zeros::<i32>([3, 1]), 1)).0, ErrorKind::Shape);
    let empty = Array::zeros::<f64>([2, 0]);
    assert_eq!(empty.take_along_axis(&Array::zeros::<i64>([2, 0]), 1).known_dims().unwrap(), [2, 0]);
    assert_eq!(kind(&empty.take_along_axis(&Array::zeros::<i64>([2, 1]), 1)).0, ErrorKind::Index);
}

#[test]
fn dynamic_slices_and_raw_forms() {
    let x = Array::arange(0i64, 12, 1).reshape([3, 4]);
    let starts = [Array::from(1i32), Array::from(9i64)];
    assert_eq!(everywhere(&x, |x| x.dynamic_slice(&starts, [2, 2])).to_vec::<i64>().unwrap(), [6, 7, 10, 11]);
    let block = Array::from([[-1i64, -2]]);
    let y = everywhere(&x, |x| x.dynamic_update_slice(&block, &starts));
    assert_eq!(y.to_vec::<i64>().unwrap(), [0, 1, 2, 3, 4, 5, -1, -2, 8, 9, 10, 11]);
    // Negative starts are 0, and what is far beyond the end is the last place: nothing counts from the end.
    for (start, first) in [(-1, 0), (-9, 0), (i64::MIN, 0), (2, 1), (i64::MAX, 1)] {
        let starts = [Array::from(start), Array::from(-1i64)];
        let want = [4 * first, 4 * first + 1, 4 * first + 4, 4 * first + 5];
        assert_eq!(everywhere(&x, |x| x.dynamic_slice(&starts, [2, 2])).to_vec::<i64>().unwrap(), want, "{start}");
        let mut updated: Vec<i64> = (0..12).collect();
        want.iter().for_each(|i| updated[*i as usize] = -7);
        let block = Array::from([[-7i64, -7], [-7, -7]]);
        let y = everywhere(&x, |x| x.dynamic_update_slice(&block, &starts));
        assert_eq!(y.to_vec::<i64>().unwrap(), updated, "{start}");
    }
    assert_eq!(kind(&x.dynamic_slice(&starts[..1], [2, 2])).0, ErrorKind::Index);
    assert_eq!(kind(&x.dynamic_slice(&[x.clone(), x.clone()], [2, 2])).0, ErrorKind::Index);
    assert!(x.dynamic_slice(&starts, [4, 2]).error().is_some());
    let rows = Gather {
        offset_dims: vec![1],
        collapsed_dims: vec![0],
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: vec![0],
        sizes: [1usize, 4].into_iter().collect(),
        bounds: Bounds::Clip,
    };
    let places = Array::from([[2i64], [0]]);
    assert_eq!(x.gather(&places, rows).to_vec::<i64>().unwrap(), [8, 9, 10, 11, 0, 1, 2, 3]);
    let add = Scatter {
        kind: ScatterKind::Add,
        update_window_dims: vec![1],
        inserted_dims: vec![0],
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: vec![0],
        unique: true,
    };
    let y = x.scatter(&places, &Array::ones::<i64>([2, 4]), add);
    assert_eq!(y.to_vec::<i64>().unwrap(), [1, 2, 3, 4, 4, 5, 6, 7, 9, 10, 11, 12]);
}
