//! Shapes, joins, cuts and made arrays beside what NumPy gives.

#![allow(clippy::needless_borrows_for_generic_args)]

use super::*;
use crate::array::Array;
use crate::error::ErrorKind;
use crate::trace::{Mode, inline, trace};

/// The same function on numbers, through a trace that is run afterwards, and on a type alone.
pub(in crate::array) fn everywhere(x: &Array, f: impl Fn(&Array) -> Array) -> Array {
    let ty = x.ty().unwrap();
    let eager = f(x);
    let staged = staged(ty.clone(), x, &f).unwrap();
    assert!(staged.is_identical(&eager), "{staged:?} staged, {eager:?} eager");
    assert_eq!(f(&Array::of_type(ty.clone())).ty().unwrap(), eager.ty().unwrap());
    eager
}

/// As `everywhere`, and once more through a trace that does not know the size of the last axis.
pub(in crate::array) fn everywhere_symbolic(x: &Array, f: impl Fn(&Array) -> Array) -> Array {
    let ty = x.ty().unwrap();
    let last = ty.rank().saturating_sub(1);
    let eager = everywhere(x, &f);
    let staged = staged(ty.with_shape(ty.shape().replaced(last, Dim::symbol("N").unwrap())), x, &f).unwrap();
    assert!(staged.is_identical(&eager), "{staged:?} symbolic, {eager:?} eager");
    eager
}

/// Traces a function with a type and runs the program on numbers.
pub(in crate::array) fn staged(ty: Type, x: &Array, f: impl Fn(&Array) -> Array) -> Result<Array> {
    let traced = trace("f", &[Array::of_type(ty)], Mode::Abstract, |a| vec![f(&a[0])])?;
    let bound = traced.program.bind_symbols(std::slice::from_ref(x.ty()?))?;
    let mut inputs = vec![x.clone()];
    inputs.extend(traced.captures);
    Ok(inline(&bound, &inputs)?.remove(0))
}

/// Runs a function traced with the type `spec` on numbers.
fn symbolic(spec: &str, x: &Array, f: impl Fn(&Array) -> Array) -> Result<Array> {
    let result = staged(spec.parse()?, x, &f)?;
    assert!(result.is_identical(&f(x)), "{result:?} symbolic, {:?} eager", f(x));
    Ok(result)
}

macro_rules! same {
    ($x:expr, $shape:expr, $t:ty, $values:expr) => {{
        let x: Array = $x;
        let (shape, values): (Vec<usize>, Vec<$t>) = (Vec::from($shape), Vec::from($values));
        assert_eq!((x.known_dims().unwrap(), x.to_vec::<$t>().unwrap()), (shape, values));
    }};
}

fn kind(x: &Array) -> ErrorKind {
    let e = x.error().unwrap_or_else(|| panic!("no error but {x:?}"));
    assert!(e.place().file().is_some_and(|f| f.ends_with("tests.rs")), "{e}");
    e.kind()
}

fn six() -> Array {
    Array::arange(0, 6, 1).reshape([2, 3])
}

#[test]
fn reshape_fills_in_one_dimension() {
    let x = six();
    same!(everywhere(&x, |x| x.reshape([3, -1])), [3, 2], i32, [0, 1, 2, 3, 4, 5]);
    same!(everywhere(&x, Array::flatten), [6], i32, [0, 1, 2, 3, 4, 5]);
    same!(x.reshape([1usize, 6, 1]), [1, 6, 1], i32, [0, 1, 2, 3, 4, 5]);
    same!(Array::from(3).reshape([-1]), [1], i32, [3]);
    same!(Array::from([3]).reshape(()), [], i32, [3]);
    same!(Array::zeros::<f64>([0, 3]).reshape([3, -1]), [3, 0], f64, []);
    assert_eq!(kind(&x.reshape([-1, -1])), ErrorKind::Shape);
    assert_eq!(kind(&x.reshape([4, -1])), ErrorKind::Shape);
    assert_eq!(kind(&x.reshape([5])), ErrorKind::Shape);
    assert_eq!(kind(&x.reshape([-2, -3])), ErrorKind::Size);
    assert_eq!(kind(&Array::zeros::<f64>([0]).reshape([0, -1])), ErrorKind::Shape);
    assert!(x.reshape([i64::MAX, i64::MAX]).error().is_some());
    assert_eq!(Array::spec("f32[B,4]").reshape([-1, 2]).ty().unwrap().to_string(), "f32[2*B,2]");
    assert_eq!(Array::spec("f32[B,4]").reshape([-1]).ty().unwrap().to_string(), "f32[4*B]");
    symbolic("i32[A,B]", &x, |x| x.reshape([-1, 2])).unwrap();
    assert_eq!(symbolic("i32[A,B]", &x, |x| x.reshape([x.dim(1), x.dim(0)])).unwrap().shape(), [3, 2]);
}

#[test]
fn broadcast_aligns_at_the_end() {
    let x = Array::from([[1], [2]]);
    same!(everywhere(&x, |x| x.broadcast_to([2, 2])), [2, 2], i32, [1, 1, 2, 2]);
    same!(everywhere(&x, |x| x.broadcast_to([2, 2, 1])), [2, 2, 1], i32, [1, 2, 1, 2]);
    same!(Array::from(7).broadcast_to([2, 0]), [2, 0], i32, []);
    same!(Array::from(7).broadcast_to([2]), [2], i32, [7, 7]);
    assert_eq!(kind(&x.broadcast_to([3, 2])), ErrorKind::Shape);
    assert_eq!(kind(&x.broadcast_to([2])), ErrorKind::Shape);
    assert!(Array::from(7).broadcast_to([-1]).error().is_some());
    assert!(Array::from(7).broadcast_to([usize::MAX, 2]).error().is_some());
    assert!(Array::from(7).broadcast_to([1usize << 62, 4]).error().is_some());
    let rows = symbolic("i32[A,1]", &x, |x| x.broadcast_to([x.dim(0), 3.into()])).unwrap();
    same!(rows, [2, 3], i32, [1, 1, 1, 2, 2, 2]);
}

#[test]
fn axes_change_places() {
    let x = Array::arange(0, 24, 1).reshape([2, 3, 4]);
    same!(six().t(), [3, 2], i32, [0, 3, 1, 4, 2, 5]);
    assert_eq!(everywhere(&x, |x| x.transpose([2, 0, 1])).shape(), [4, 2, 3]);
    assert_eq!(x.transpose([-1, 0, 1]).to_vec::<i32>().unwrap()[..4], [0, 4, 8, 12]);
    assert_eq!(x.transpose(()).shape(), [4, 3, 2]);
    assert_eq!(x.t().shape(), [4, 3, 2]);
    assert_eq!(x.swap_axes(0, -1).shape(), [4, 3, 2]);
    assert_eq!(everywhere(&x, |x| x.move_axis(0, 2)).shape(), [3, 4, 2]);
    assert_eq!(x.move_axis(-1, 0).shape(), [4, 2, 3]);
    assert_eq!(Array::from(1).t().shape(), [0usize; 0]);
    assert_eq!(kind(&x.transpose([0, 1])), ErrorKind::Axis);
    assert_eq!(kind(&x.transpose([0, 1, 1])), ErrorKind::Axis);
    assert_eq!(kind(&x.transpose([0, 1, 3])), ErrorKind::Axis);
    assert_eq!(kind(&x.swap_axes(0, 3)), ErrorKind::Axis);
    assert_eq!(kind(&x.move_axis(isize::MIN, 0)), ErrorKind::Axis);
    assert_eq!(Array::spec("f32[B,4]").t().ty().unwrap().to_string(), "f32[4,B]");
}

#[test]
fn squeeze_and_expand() {
    let x = Array::zeros::<f32>([1, 3, 1]);
    assert_eq!(everywhere(&x, |x| x.squeeze(())).shape(), [3]);
    assert_eq!(x.squeeze(0).shape(), [3, 1]);
    assert_eq!(x.squeeze([0, -1]).shape(), [3]);
    assert_eq!(kind(&x.squeeze(1)), ErrorKind::Shape);
    assert_eq!(kind(&x.squeeze([0, 1, 2])), ErrorKind::Shape);
    assert_eq!(kind(&x.squeeze(3)), ErrorKind::Axis);
    assert_eq!(everywhere(&x, |x| x.expand_dims(0)).shape(), [1, 1, 3, 1]);
    assert_eq!(Array::from([1, 2]).expand_dims([0, 2]).shape(), [1, 2, 1]);
    assert_eq!(Array::from([1, 2]).expand_dims(vec![-1isize, -2]).shape(), [2, 1, 1]);
    assert_eq!(Array::from(1).expand_dims(0).shape(), [1]);
    assert_eq!(Array::from(1).expand_dims(()).shape(), [0usize; 0]);
    assert_eq!(kind(&x.expand_dims(4)), ErrorKind::Axis);
    assert_eq!(kind(&x.expand_dims([0, 0])), ErrorKind::Axis);
    assert_eq!(kind(&x.expand_dims(usize::MAX)), ErrorKind::Axis);
    assert_eq!(Array::spec("f32[B,1]").squeeze(()).ty().unwrap().to_string(), "f32[B]");
    assert_eq!(symbolic("f32[A,3,1]", &x, |x| x.squeeze(0)).unwrap().shape(), [3, 1]);
    let two = Array::zeros::<f32>([2, 3, 1]);
    assert_eq!(symbolic("f32[A,3,1]", &two, |x| x.squeeze(0)).unwrap_err().kind(), ErrorKind::Constraint);
}

#[test]
fn flip_roll_repeat_tile() {
    let x = six();
    same!(everywhere(&x, |x| x.flip(1)), [2, 3], i32, [2, 1, 0, 5, 4, 3]);
    same!(x.flip(()), [2, 3], i32, [5, 4, 3, 2, 1, 0]);
    same!(x.flip([1, 0]), [2, 3], i32, [5, 4, 3, 2, 1, 0]);
    same!(everywhere(&x, |x| x.roll(1, 1)), [2, 3], i32, [2, 0, 1, 5, 3, 4]);
    same!(x.roll(-1, -1), [2, 3], i32, [1, 2, 0, 4, 5, 3]);
    same!(x.roll(7, 0), [2, 3], i32, [3, 4, 5, 0, 1, 2]);
    same!(x.roll(isize::MIN, 1), [2, 3], i32, [2, 0, 1, 5, 3, 4]);
    same!(Array::zeros::<f64>([0]).roll(3, 0), [0], f64, []);
    symbolic("i32[A,B]", &x, |x| x.roll(4, 1)).unwrap();
    symbolic("i32[A,B]", &x, |x| x.roll(-1, 1)).unwrap();
    same!(everywhere(&x, |x| x.repeat(2, 0)), [4, 3], i32, [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    same!(x.repeat(2, 1), [2, 6], i32, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    same!(x.repeat(0, 1), [2, 0], i32, []);
    same!(everywhere(&x, |x| x.tile([1, 2])), [2, 6], i32, [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    same!(x.tile([2]), [2, 6], i32, [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    same!(Array::from([1, 2]).tile([2, 2]), [2, 4], i32, [1, 2, 1, 2, 1, 2, 1, 2]);
    same!(Array::from([1, 2]).tile([0]), [0], i32, []);
    same!(Array::from(5).tile([3]), [3], i32, [5, 5, 5]);
    symbolic("i32[A,B]", &x, |x| x.tile([2, 2]).repeat(2, 0)).unwrap();
    assert_eq!(kind(&x.tile([-1])), ErrorKind::Size);
    assert!(x.repeat(usize::MAX, 0).error().is_some());
    assert_eq!(kind(&x.flip(2)), ErrorKind::Axis);
    assert_eq!(kind(&x.roll(1, 2)), ErrorKind::Axis);
    assert_eq!(kind(&Array::from(1).repeat(2, 0)), ErrorKind::Axis);
}

#[test]
fn stack_and_concatenate_take_lists_of_all_kinds() {
    let (a, b) = (Array::from([1, 2]), Array::from([3, 4]));
    same!(Array::stack([&a, &b], 0), [2, 2], i32, [1, 2, 3, 4]);
    same!(Array::stack(&[a.clone(), b.clone()], 1), [2, 2], i32, [1, 3, 2, 4]);
    same!(Array::stack(&[&a, &b], -1), [2, 2], i32, [1, 3, 2, 4]);
    same!(Array::stack((0..3).map(Array::from), 0), [3], i32, [0, 1, 2]);
    same!(Array::concatenate(vec![&a, &b, &a], 0), [6], i32, [1, 2, 3, 4, 1, 2]);
    same!(Array::concatenate([six(), six()], 1), [2, 6], i32, [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    same!(everywhere(&a, |a| Array::concatenate([a, &b, a], 0)), [6], i32, [1, 2, 3, 4, 1, 2]);
    // Dtypes meet as they do in operators.
    same!(Array::concatenate([&a, &Array::from([0.5])], 0), [3], f64, [1.0, 2.0, 0.5]);
    assert_eq!(kind(&Array::concatenate([Array::from([1i64]), Array::from([1.0])], 0)), ErrorKind::DType);
    assert_eq!(kind(&Array::stack([&a, &six()], 0)), ErrorKind::Shape);
    assert_eq!(kind(&Array::stack([&a, &b], 2)), ErrorKind::Axis);
    assert_eq!(kind(&Array::concatenate([&a, &six()], 0)), ErrorKind::Shape);
    assert_eq!(kind(&Array::concatenate([&six(), &six().t()], 0)), ErrorKind::Shape);
    assert_eq!(kind(&Array::concatenate([&a, &b], 1)), ErrorKind::Axis);
    assert_eq!(kind(&Array::concatenate([Array::from(1)], 0)), ErrorKind::Axis);
    assert_eq!(kind(&Array::stack(Vec::<Array>::new(), 0)), ErrorKind::Value);
    assert_eq!(kind(&Array::concatenate(&[] as &[Array], 0)), ErrorKind::Value);
    let x = Array::spec("f32[B,4]");
    assert_eq!(Array::concatenate([&x, &x], 0).ty().unwrap().to_string(), "f32[2*B,4]");
    assert_eq!(Array::stack([&x, &x], 1).ty().unwrap().to_string(), "f32[B,2,4]");
}

#[test]
fn split_cuts_evenly_or_at_places() {
    let x = Array::arange(0, 6, 1);
    let parts = x.split(3, 0);
    assert_eq!(parts.len(), 3);
    same!(parts[2].clone(), [2], i32, [4, 5]);
    let parts = x.split_at(&[1, 1, 4], 0);
    assert_eq!(
        parts.iter().map(|p| p.to_vec::<i32>().unwrap()).collect::<Vec<_>>(),
        [vec![0], vec![], vec![1, 2, 3], vec![4, 5]]
    );
    assert_eq!(six().split(3, 1)[1].to_vec::<i32>().unwrap(), [1, 4]);
    assert_eq!(kind(&x.split(4, 0)[0]), ErrorKind::Shape);
    assert_eq!(kind(&x.split(0, 0)[0]), ErrorKind::Shape);
    assert_eq!(kind(&x.split(2, 1)[0]), ErrorKind::Axis);
    assert_eq!(kind(&x.split_at(&[7], 0)[0]), ErrorKind::Index);
    assert_eq!(kind(&x.split_at(&[3, 2], 0)[0]), ErrorKind::Index);
    assert_eq!(Array::spec("f32[2*B]").split(2, 0)[1].ty().unwrap().to_string(), "f32[B]");
    same!(symbolic("i32[B]", &x, |x| x.split(3, 0).remove(1)).unwrap(), [2], i32, [2, 3]);
    let uneven = symbolic("i32[B]", &x, |x| x.split(4, 0).remove(0));
    assert_eq!(uneven.unwrap_err().kind(), ErrorKind::Constraint);
}

#[test]
fn pad_surrounds_and_crops() {
    let x = six();
    same!(everywhere(&x, |x| x.pad(&[(1, 0), (0, 1)], 9)), [3, 4], i32, [9, 9, 9, 9, 0, 1, 2, 9, 3, 4, 5, 9]);
    same!(x.pad(&[(0, -1), (-1, 0)], 0), [1, 2], i32, [1, 2]);
    same!(x.pad(&[(0, 0), (0, 0)], 0), [2, 3], i32, [0, 1, 2, 3, 4, 5]);
    same!(Array::from(1).pad::<isize>(&[], 0), [], i32, [1]);
    assert_eq!(kind(&x.pad(&[(1, 1)], 0)), ErrorKind::Shape);
    assert_eq!(kind(&x.pad(&[(1, 1), (1, 1)], 0.5)), ErrorKind::DType);
    assert_eq!(kind(&x.pad(&[(1, 1), (1, 1)], &x)), ErrorKind::Shape);
    assert!(x.pad(&[(-9, 0), (0, 0)], 0).error().is_some());
    assert!(x.pad(&[(isize::MAX, isize::MAX), (0, 0)], 0).error().is_some());
    assert_eq!(Array::spec("f32[B]").pad(&[(1, 2)], 0.0).ty().unwrap().to_string(), "f32[B+3]");
}

#[test]
fn ranges() {
    same!(Array::arange(0, 5, 2), [3], i32, [0, 2, 4]);
    same!(Array::arange(5u8, 0, 1), [0], u8, []);
    same!(Array::arange(u64::MAX - 1, u64::MAX, 1), [1], u64, [u64::MAX - 1]);
    same!(Array::arange(i8::MAX, i8::MIN, -100), [3], i8, [127, 27, -73]);
    same!(Array::arange(0.0, 1.0, 0.25), [4], f64, [0.0, 0.25, 0.5, 0.75]);
    same!(Array::arange(1.0f32, 0.0, -0.5), [2], f32, [1.0, 0.5]);
    assert_eq!(kind(&Array::arange(0, 1, 0)), ErrorKind::Value);
    assert_eq!(kind(&Array::arange(0.0, 1.0, 0.0)), ErrorKind::Value);
    assert_eq!(kind(&Array::arange(0.0, f64::NAN, 1.0)), ErrorKind::Value);
    assert_eq!(kind(&Array::arange(0.0, f64::INFINITY, 1.0)), ErrorKind::Size);
    assert_eq!(kind(&Array::arange(i64::MIN, i64::MAX, 1)), ErrorKind::Size);
    assert_eq!(kind(&Array::arange(false, true, true)), ErrorKind::DType);
    same!(Array::linspace(0.0, 1.0, 5), [5], f64, [0.0, 0.25, 0.5, 0.75, 1.0]);
    same!(Array::linspace(3.0f32, 7.0, 1), [1], f32, [3.0]);
    same!(Array::linspace(3.0, 7.0, 0), [0], f64, []);
    assert_eq!(Array::linspace(0.0, 0.7, 8).to_vec::<f64>().unwrap()[7], 0.7);
    assert_eq!(kind(&Array::linspace(0, 1, 3)), ErrorKind::DType);
    assert_eq!(kind(&Array::linspace(0.0, 1.0, usize::MAX)), ErrorKind::Size);
    same!(Array::iota(DType::I32, [2, 3], 1), [2, 3], i32, [0, 1, 2, 0, 1, 2]);
    same!(Array::iota(DType::F32, [2, 2], -2), [2, 2], f32, [0.0, 0.0, 1.0, 1.0]);
    assert_eq!(kind(&Array::iota(DType::I32, (), 0)), ErrorKind::Axis);
}

#[test]
fn matrices_by_rule() {
    same!(Array::eye::<f64>(2usize), [2, 2], f64, [1.0, 0.0, 0.0, 1.0]);
    same!(Array::eye::<bool>(0usize), [0, 0], bool, []);
    same!(Array::tri::<i32>(2usize, 3usize, 0), [2, 3], i32, [1, 0, 0, 1, 1, 0]);
    same!(Array::tri::<i32>(2usize, 3usize, -1), [2, 3], i32, [0, 0, 0, 1, 0, 0]);
    let x = Array::arange(1, 10, 1).reshape([3, 3]);
    same!(everywhere(&x, |x| x.tril(0)), [3, 3], i32, [1, 0, 0, 4, 5, 0, 7, 8, 9]);
    same!(x.tril(1), [3, 3], i32, [1, 2, 0, 4, 5, 6, 7, 8, 9]);
    same!(everywhere(&x, |x| x.triu(0)), [3, 3], i32, [1, 2, 3, 0, 5, 6, 0, 0, 9]);
    same!(x.triu(2), [3, 3], i32, [0, 0, 3, 0, 0, 0, 0, 0, 0]);
    same!(x.triu(isize::MIN), [3, 3], i32, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    same!(x.tril(isize::MIN), [3, 3], i32, [0; 9]);
    symbolic("i32[A,B]", &six(), |x| x.tril(0) + x.triu(1)).unwrap();
    assert_eq!(kind(&Array::from([1]).tril(0)), ErrorKind::Shape);
    assert_eq!(kind(&Array::eye::<f64>(-1i32)), ErrorKind::Size);
    assert!(Array::eye::<f64>(usize::MAX).error().is_some());
}

#[test]
fn diagonals() {
    let x = Array::arange(0, 6, 1).reshape([2, 3]);
    let diagonal = |k: isize| everywhere(&x, |x| x.diagonal_axes(k, 0, 1)).to_vec::<i32>().unwrap();
    assert_eq!(diagonal(0), [0, 4]);
    assert_eq!(diagonal(1), [1, 5]);
    assert_eq!(diagonal(2), [2]);
    assert_eq!(diagonal(3), [0i32; 0]);
    assert_eq!(diagonal(-1), [3]);
    assert_eq!(diagonal(-2), [0i32; 0]);
    assert_eq!(diagonal(isize::MAX), [0i32; 0]);
    assert_eq!(diagonal(isize::MIN), [0i32; 0]);
    assert_eq!(x.t().diagonal().to_vec::<i32>().unwrap(), [0, 4]);
    let cube = Array::arange(0, 8, 1).reshape([2, 2, 2]);
    same!(cube.diagonal(), [2, 2], i32, [0, 6, 1, 7]);
    same!(cube.diagonal_axes(0, -2, -1), [2, 2], i32, [0, 3, 4, 7]);
    same!(cube.diagonal_axes(1, 2, 0), [2, 1], i32, [4, 6]);
    let square = Array::arange(0, 9, 1).reshape([3, 3]);
    for k in -2..=2 {
        symbolic("i32[B,B]", &square, |x| x.diagonal_axes(k, 0, 1)).unwrap();
    }
    assert_eq!(kind(&Array::spec("f32[A,B]").diagonal()), ErrorKind::Shape);
    assert_eq!(kind(&Array::from([1]).diagonal()), ErrorKind::Shape);
    assert_eq!(kind(&x.diagonal_axes(0, 1, -1)), ErrorKind::Axis);
    let v = Array::from([1, 2]);
    same!(everywhere(&v, |v| Array::diag(v, 0)), [2, 2], i32, [1, 0, 0, 2]);
    same!(everywhere(&v, |v| Array::diag(v, 1)), [3, 3], i32, [0, 1, 0, 0, 0, 2, 0, 0, 0]);
    same!(everywhere(&v, |v| Array::diag(v, -1)), [3, 3], i32, [0, 0, 0, 1, 0, 0, 0, 2, 0]);
    same!(Array::diag(&square, 1), [2], i32, [1, 5]);
    same!(Array::diag(&Array::zeros::<i32>([0]), 1), [1, 1], i32, [0]);
    symbolic("i32[B]", &v, |v| Array::diag(v, -2)).unwrap();
    assert_eq!(kind(&Array::diag(&cube, 0)), ErrorKind::Shape);
    assert_eq!(kind(&Array::diag(&v, isize::MAX)), ErrorKind::Size);
}

#[test]
fn one_hot_and_arrays_like_others() {
    let i = Array::from([2u8, 0, 7]);
    same!(everywhere(&i, |i| i.one_hot(3usize, DType::F32)), [3, 3], f32, [0., 0., 1., 1., 0., 0., 0., 0., 0.]);
    same!(Array::from(-1).one_hot(2usize, DType::Bool), [2], bool, [false, false]);
    assert_eq!(Array::from([255u8]).one_hot(300usize, DType::I32).sum().item::<i32>().unwrap(), 1);
    assert_eq!(kind(&Array::from([1.0]).one_hot(2usize, DType::F32)), ErrorKind::DType);
    let x = Array::from([1.5f32, 2.5]);
    same!(x.zeros_like(), [2], f32, [0.0, 0.0]);
    same!(x.ones_like(), [2], f32, [1.0, 1.0]);
    same!(x.full_like(3), [2], f32, [3.0, 3.0]);
    same!(x.full_like(&Array::from([7i8])), [2], f32, [7.0, 7.0]);
    assert_eq!(kind(&Array::from([1]).full_like(0.5)), ErrorKind::DType);
    assert_eq!(kind(&x.full_like(&Array::from([1i8, 2, 3]))), ErrorKind::Shape);
    let failed = Array::from([1, 2]) + Array::from([1, 2, 3]);
    assert!(failed.zeros_like().error().unwrap().is_same(failed.error().unwrap()));
    symbolic("f32[B]", &x, |x| x.ones_like() + x.full_like(2)).unwrap();
}

#[test]
fn grids() {
    let (x, y) = (Array::from([1, 2, 3]), Array::from([10, 20]));
    let grid = Array::meshgrid([&x, &y]);
    same!(grid[0].clone(), [2, 3], i32, [1, 2, 3, 1, 2, 3]);
    same!(grid[1].clone(), [2, 3], i32, [10, 10, 10, 20, 20, 20]);
    let grid = Array::meshgrid_ij([&x, &y]);
    same!(grid[0].clone(), [3, 2], i32, [1, 1, 2, 2, 3, 3]);
    same!(grid[1].clone(), [3, 2], i32, [10, 20, 10, 20, 10, 20]);
    assert_eq!(Array::meshgrid([&x, &y, &Array::from(5)])[2].shape(), [2, 3, 1]);
    assert_eq!(Array::meshgrid([&x])[0].shape(), [3]);
    assert_eq!(kind(&Array::meshgrid([&six()])[0]), ErrorKind::Shape);
}

#[test]
fn dtypes_change() {
    let x = Array::from([-1.7, 300.0, f64::NAN]);
    same!(x.cast(DType::U8), [3], u8, [0, 255, 0]);
    same!(x.cast_to::<i32>(), [3], i32, [-1, 300, 0]);
    same!(Array::from([1.0f32]).bitcast(DType::U32), [1], u32, [0x3f80_0000]);
    same!(Array::from([2, 0]).cast(DType::Bool), [2], bool, [true, false]);
    assert_eq!(kind(&x.bitcast(DType::I32)), ErrorKind::DType);
    assert_eq!(kind(&x.cast(DType::C128).cast(DType::F64)), ErrorKind::DType);
}
