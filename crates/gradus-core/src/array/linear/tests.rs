//! Products beside what NumPy gives.

use crate::array::Array;
use crate::error::ErrorKind;
use crate::trace::{Mode, inline, trace};
use crate::types::Complex;

macro_rules! same {
    ($x:expr, $shape:expr, $t:ty, $values:expr) => {{
        let x: Array = $x;
        let (shape, values): (Vec<usize>, Vec<$t>) = (Vec::from($shape), Vec::from($values));
        assert_eq!((x.known_dims().unwrap(), x.to_vec::<$t>().unwrap()), (shape, values));
    }};
}

macro_rules! sum {
    ($equation:literal, [$(&$x:ident $(. $t:ident ())?),+], $shape:expr, $values:expr) => {{
        let arrays = [$($x.clone() $(. $t ())?),+];
        let eager = Array::einsum($equation, &arrays);
        let traced = trace("f", &arrays, Mode::Abstract, |a| vec![Array::einsum($equation, a)]).unwrap();
        let mut inputs = arrays.to_vec();
        inputs.extend(traced.captures.clone());
        let staged = inline(&traced.program, &inputs).unwrap();
        assert!(staged[0].is_identical(&eager), "{}", $equation);
        same!(eager, $shape, i64, $values);
    }};
}

fn kind(x: &Array) -> (ErrorKind, String) {
    let e = x.error().unwrap_or_else(|| panic!("no error but {x:?}"));
    assert!(e.place().file().is_some_and(|f| f.ends_with("tests.rs")), "{e}");
    (e.kind(), e.to_string())
}

fn counting<const N: usize>(shape: [usize; N]) -> Array {
    Array::arange(0i64, shape.iter().product::<usize>() as i64, 1).reshape(shape)
}

#[test]
fn dot_is_that_of_numpy() {
    let (a, b, v) = (counting([2, 3]), counting([3, 4]), Array::from([1i64, 2, 3]));
    let (c, e) = (counting([2, 4, 3]), counting([2, 3, 2]));
    same!(a.dot(&b), [2, 4], i64, [20, 23, 26, 29, 56, 68, 80, 92]);
    same!(v.dot(&v), [], i64, [14]);
    same!(a.dot(&v), [2], i64, [8, 26]);
    same!(c.dot(&v), [2, 4], i64, [8, 26, 44, 62, 80, 98, 116, 134]);
    same!(v.dot(&e), [2, 2], i64, [16, 22, 52, 58]);
    let wide = c.dot(&e);
    assert_eq!(wide.shape(), [2, 4, 2, 2]);
    assert_eq!(wide.to_vec::<i64>().unwrap()[..8], [10, 13, 28, 31, 28, 40, 100, 112]);
    same!(Array::from(2i64).dot(&v), [3], i64, [2, 4, 6]);
    same!(Array::zeros::<f64>([2, 0]).dot(&Array::zeros::<f64>([0, 2])), [2, 2], f64, [0.0; 4]);
    // Dtypes meet as they do in operators.
    same!(Array::from([1i32, 2]).dot(&Array::from([0.5, 0.25])), [], f64, [1.0]);
    assert_eq!(kind(&v.dot(&Array::from([0.5, 0.5, 0.5]))).0, ErrorKind::DType);
    let (k, text) = kind(&a.dot(&counting([4, 5])));
    assert_eq!(k, ErrorKind::Shape);
    assert!(text.contains("i64[2,3]") && text.contains("i64[4,5]") && text.contains("axis 1"), "{text}");
    let bools = Array::from([true, false]);
    assert_eq!(kind(&bools.dot(&bools)).0, ErrorKind::DType);
    assert_eq!(Array::spec("f32[B,4]").dot(&Array::spec("f32[4]")).ty().unwrap().to_string(), "f32[B]");
}

#[test]
fn matmul_broadcasts_batches() {
    let (a, v) = (counting([2, 3]), Array::from([1i64, 2, 3]));
    let (c, e) = (counting([2, 4, 3]), counting([2, 3, 2]));
    same!(c.matmul(&e), [2, 4, 2], i64, [10, 13, 28, 40, 46, 67, 64, 94, 316, 355, 388, 436, 460, 517, 532, 598]);
    same!(v.matmul(&e), [2, 2], i64, [16, 22, 52, 58]);
    same!(c.matmul(&v), [2, 4], i64, [8, 26, 44, 62, 80, 98, 116, 134]);
    same!(a.matmul(&e), [2, 2, 2], i64, [10, 13, 28, 40, 28, 31, 100, 112]);
    same!(a.reshape([1, 2, 3]).matmul(&e), [2, 2, 2], i64, [10, 13, 28, 40, 28, 31, 100, 112]);
    same!(v.matmul(&v), [], i64, [14]);
    assert_eq!(counting([5, 1, 2, 3]).matmul(&counting([4, 3, 2])).shape(), [5, 4, 2, 2]);
    assert_eq!(kind(&v.matmul(&Array::from(1i64))).0, ErrorKind::Shape);
    assert_eq!(kind(&c.matmul(&counting([3, 3, 2]))).0, ErrorKind::Shape);
    assert_eq!(kind(&a.matmul(&a)).0, ErrorKind::Shape);
    let batched = Array::spec("f32[B,2,3]").matmul(&Array::spec("f32[B,3,5]"));
    assert_eq!(batched.ty().unwrap().to_string(), "f32[B,2,5]");
    assert_eq!(Array::spec("f32[2,3]").matmul(&Array::spec("f32[B,3,5]")).ty().unwrap().to_string(), "f32[B,2,5]");
}

#[test]
fn tensordot_inner_outer_trace() {
    let (a, b, v) = (counting([2, 3]), counting([3, 4]), Array::from([1i64, 2, 3]));
    let (c, e) = (counting([2, 3, 4]), counting([2, 3, 2]));
    same!(a.tensordot(&b, 1), [2, 4], i64, [20, 23, 26, 29, 56, 68, 80, 92]);
    same!(v.tensordot(&v, 0), [3, 3], i64, [1, 2, 3, 2, 4, 6, 3, 6, 9]);
    same!(c.tensordot(&e, ([0, 1], [0, 1])), [4, 2], i64, [440, 500, 470, 536, 500, 572, 530, 608]);
    same!(c.tensordot(&e, ([1, 0], [-2, 0])), [4, 2], i64, [440, 500, 470, 536, 500, 572, 530, 608]);
    same!(a.tensordot(&v, (1, 0)), [2], i64, [8, 26]);
    assert_eq!(kind(&a.tensordot(&b, 3)).0, ErrorKind::Axis);
    assert_eq!(kind(&a.tensordot(&b, -1)).0, ErrorKind::Axis);
    assert_eq!(kind(&a.tensordot(&b, ([0, 1], [0]))).0, ErrorKind::Axis);
    assert_eq!(kind(&a.tensordot(&b, (0, 0))).0, ErrorKind::Shape);
    same!(a.inner(&counting([3, 3])), [2, 3], i64, [5, 14, 23, 14, 50, 86]);
    same!(a.inner(&Array::from(2i64)), [2, 3], i64, [0, 2, 4, 6, 8, 10]);
    same!(v.outer(&a), [3, 6], i64, [0, 1, 2, 3, 4, 5, 0, 2, 4, 6, 8, 10, 0, 3, 6, 9, 12, 15]);
    same!(a.vdot(&a.flatten()), [], i64, [55]);
    let z = Array::from([Complex::new(1.0, 2.0)]);
    same!(z.vdot(&z), [], Complex<f64>, [Complex::new(5.0, 0.0)]);
    assert_eq!(kind(&a.vdot(&v)).0, ErrorKind::Shape);
    same!(c.trace(), [4], i64, [16, 18, 20, 22]);
    same!(a.trace(), [], i64, [4]);
    assert_eq!(kind(&v.trace()).0, ErrorKind::Shape);
}

#[test]
fn einsum_is_that_of_numpy() {
    let (a, b, c, d) = (counting([2, 3]), counting([3, 4]), counting([2, 3, 4]), counting([4, 2]));
    let (v, sq, e, o) = (Array::from([1i64, 2, 3]), counting([3, 3]), counting([2, 3, 2]), Array::from([[2i64]]));
    let (cu, s) = (counting([3, 3, 3]), Array::from(3i64));
    sum!("ij,jk->ik", [&a, &b], [2, 4], [20, 23, 26, 29, 56, 68, 80, 92]);
    sum!("ij,jk", [&a, &b], [2, 4], [20, 23, 26, 29, 56, 68, 80, 92]);
    sum!("ba", [&a], [3, 2], [0, 3, 1, 4, 2, 5]);
    sum!("ij->ji", [&a], [3, 2], [0, 3, 1, 4, 2, 5]);
    sum!("ij->", [&a], [], [15]);
    sum!("ii", [&sq], [], [12]);
    sum!("ii->i", [&sq], [3], [0, 4, 8]);
    sum!("i,j->ij", [&v, &v], [3, 3], [1, 2, 3, 2, 4, 6, 3, 6, 9]);
    sum!("i,i", [&v, &v], [], [14]);
    sum!("i,i->i", [&v, &v], [3], [1, 4, 9]);
    sum!("ij,jk,kl->il", [&a, &b, &d], [2, 2], [324, 422, 1008, 1304]);
    sum!("ij , jk , kl -> li", [&a, &b, &d], [2, 2], [324, 1008, 422, 1304]);
    sum!("...i->...", [&c], [2, 3], [6, 22, 38, 54, 70, 86]);
    sum!("i...->...", [&c], [3, 4], [12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34]);
    sum!(
        "...ij,...jk->...ik",
        [&e, &a],
        [2, 3, 3],
        [3, 4, 5, 9, 14, 19, 15, 24, 33, 21, 34, 47, 27, 44, 61, 33, 54, 75]
    );
    sum!("...ij,jk", [&c, &d], [2, 3, 2], [28, 34, 76, 98, 124, 162, 172, 226, 220, 290, 268, 354]);
    sum!("ijk,j->ik", [&c, &v], [2, 4], [32, 38, 44, 50, 104, 110, 116, 122]);
    sum!(
        "ij,kl->ijkl",
        [&a, &d],
        [2, 3, 4, 2],
        [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6, 8, 10, 12, 14, 0, 3, 6, 9, 12, 15, 18, 21, 0,
            4, 8, 12, 16, 20, 24, 28, 0, 5, 10, 15, 20, 25, 30, 35
        ]
    );
    sum!("iii->i", [&cu], [3], [0, 13, 26]);
    sum!("iij->j", [&cu], [3], [36, 39, 42]);
    sum!("iji->j", [&cu], [3], [30, 39, 48]);
    sum!("aB,Bc", [&a, &b], [2, 4], [20, 23, 26, 29, 56, 68, 80, 92]);
    sum!("ij,jk->ik", [&a, &o], [2, 1], [6, 24]);
    sum!("ij,jk->j", [&o, &a], [2], [6, 24]);
    sum!("ij,ij,ij->ij", [&a, &a, &a], [2, 3], [0, 1, 8, 27, 64, 125]);
    sum!("ij,ik->i", [&a, &a], [2], [9, 144]);
    sum!(
        "...",
        [&c],
        [2, 3, 4],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]
    );
    sum!("", [&s], [], [3]);
    sum!(",ij->ij", [&s, &a], [2, 3], [0, 3, 6, 9, 12, 15]);
    sum!("...,...", [&v, &a], [2, 3], [0, 2, 6, 3, 8, 15]);
    sum!("ij,ji->", [&a, &a.t()], [], [55]);
    sum!("ijk,ijk,ijk->k", [&c, &c, &c], [4], [14400, 17226, 20448, 24102]);
}

#[test]
fn einsum_errors_point_at_the_character() {
    let (a, b) = (counting([2, 3]), counting([3, 4]));
    let points = |equation: &str, operands: &[Array], at: usize, words: &str| {
        let (k, text) = kind(&Array::einsum(equation, operands));
        assert_eq!(k, ErrorKind::Parse, "{text}");
        assert!(text.contains(words), "{text}");
        let mut lines = text.lines().skip_while(|l| !l.contains("note: "));
        let column = |l: &str| l.find('^');
        let note = lines.next().unwrap();
        assert!(note.ends_with(equation), "{text}");
        assert_eq!(lines.next().and_then(column), Some("  note: ".len() + at), "{text}");
    };
    let both = [a.clone(), b.clone()];
    points("ij,j1->i", &both, 4, "unexpected `1`");
    points("ij,jk->ix", &both, 8, "`x` of the result stands in no operand");
    points("ij,jk->ii", &both, 8, "stands twice");
    points("ij,jk->i->k", &both, 8, "`->` stands once");
    points("ij,jk->i,k", &both, 8, "no comma");
    points("ij-jk", &both, 2, "unexpected `-`");
    points("ij,..jk", &both, 3, "three dots");
    points("...i...,jk", &both, 4, "one ellipsis");
    points("ij,jkl", &both, 3, "operand 1 is i64[3,4]");
    points("i,jk", &both, 0, "operand 0 is i64[2,3]");
    points("ij,...jkl", &both, 3, "at least 3");
    points("ij,jk,kl", &both, 6, "3 terms for 2 operands");
    points("ij", &both, 2, "1 terms for 2 operands");
    points("...j,jk->k", &both, 9, "under `...`");
    points("é", &both, 0, "unexpected");
    points("", &[], 0, "1 terms for 0 operands");
}

#[test]
fn einsum_refuses_sizes_that_do_not_fit() {
    let (a, b) = (counting([2, 3]), counting([4, 5]));
    let (k, text) = kind(&Array::einsum("ij,jk", [&a, &b]));
    assert_eq!(k, ErrorKind::Shape);
    assert!(text.contains("`j` is 3 in i64[2,3] and 4 in i64[4,5]"), "{text}");
    assert_eq!(kind(&Array::einsum("ii", [&a])).0, ErrorKind::Shape);
    assert_eq!(kind(&Array::einsum("i,i", [Array::from([1i64]), Array::from([0.5])])).0, ErrorKind::DType);
    // A long and hopeless text is cut in the message.
    let long = "a,".repeat(1 << 16) + "?";
    assert!(Array::einsum(&long, [&a]).error().unwrap().to_string().len() < 400);
    // A million brackets are a million characters too many, not a deep recursion.
    assert_eq!(kind(&Array::einsum(&"(".repeat(1 << 20), [&a])).0, ErrorKind::Parse);
}

#[test]
fn einsum_takes_symbolic_sizes_and_many_operands() {
    let (x, w) = (Array::spec("f32[B,T,4]"), Array::spec("f32[4,8]"));
    assert_eq!(Array::einsum("btc,cd->btd", [&x, &w]).ty().unwrap().to_string(), "f32[B,T,8]");
    assert_eq!(Array::einsum("...c,cd", [&x, &w]).ty().unwrap().to_string(), "f32[B,T,8]");
    assert_eq!(Array::einsum("btc,bsc->bts", [&x, &x]).ty().unwrap().to_string(), "f32[B,T,T]");
    let many = vec![Array::from([[1i64, 1], [0, 1]]); 26];
    let letters: Vec<String> = ('a'..='y').zip('b'..='z').map(|(i, j)| format!("{i}{j}")).collect();
    let equation = format!("{}->az", letters.join(","));
    same!(Array::einsum(&equation, &many[..25]), [2, 2], i64, [1, 25, 0, 1]);
    let equation = vec!["i"; 100].join(",");
    same!(Array::einsum(&equation, vec![Array::from([1i64, -1]); 100]), [], i64, [2]);
}
