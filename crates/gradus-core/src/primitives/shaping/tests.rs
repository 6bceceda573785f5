//! Values, refusals and symbolic types of the operations that move elements.

use super::*;
use crate::error::{Error, ErrorKind};
use crate::primitives::{Infer, Primitive};
use crate::types::Constraint;

/// What the type rule says of operands given as text, and the conditions it leaves for run time.
pub(crate) fn infer(op: impl Primitive, types: &[&str]) -> Result<(String, Vec<String>)> {
    let inputs: Vec<Type> = types.iter().map(|t| t.parse()).collect::<Result<_>>()?;
    let mut constraints: Vec<Constraint> = Vec::new();
    let types = crate::program::infer(&Op::new(op), &inputs, &mut constraints)?;
    let types: Vec<String> = types.iter().map(|t| t.to_string()).collect();
    Ok((types.join(" "), constraints.iter().map(|c| c.to_string()).collect()))
}

/// The type that a rule gives with no condition.
pub(crate) fn type_of(op: impl Primitive, types: &[&str]) -> String {
    let (ty, constraints) = infer(op, types).unwrap();
    assert!(constraints.is_empty(), "{constraints:?}");
    ty
}

/// The error a type rule refuses with.
pub(crate) fn refusal(op: impl Primitive, types: &[&str]) -> (ErrorKind, String) {
    let e: Error = infer(op, types).unwrap_err();
    (e.kind(), e.message().to_string())
}

pub(crate) fn array<T: Element>(dims: &[usize], values: Vec<T>) -> Array {
    Concrete::from_vec(dims, values).into()
}

/// `0, 1, 2, ...` in a shape.
pub(crate) fn count(dims: &[usize]) -> Array {
    array(dims, (0..dims.iter().product::<usize>()).map(|i| i as f64).collect())
}

/// The dimensions and numbers of an operation's result.
pub(crate) fn run<T: Element>(op: impl Primitive, inputs: &[Array]) -> (Vec<usize>, Vec<T>) {
    let y = bind(Op::new(op), inputs).ok().unwrap();
    let y = y.concrete().unwrap();
    (y.dims().to_vec(), y.values::<T>().into_owned())
}

fn dims<T: Clone>(list: &[T]) -> Vec<Dim>
where
    Dim: From<T>,
{
    list.iter().cloned().map(Dim::from).collect()
}

fn shape(text: &str) -> Shape {
    format!("f64{text}").parse::<Type>().unwrap().shape().clone()
}

fn symbol(name: &str) -> Dim {
    name.parse().unwrap()
}

fn slice(start: &[usize], limit: &[usize], step: &[usize]) -> Slice {
    Slice { start: dims(start), limit: dims(limit), step: step.to_vec() }
}

fn pad(amounts: &[(i64, i64, usize)]) -> Pad {
    Pad {
        low: amounts.iter().map(|a| a.0.into()).collect(),
        high: amounts.iter().map(|a| a.1.into()).collect(),
        interior: amounts.iter().map(|a| a.2).collect(),
    }
}

#[test]
fn iota_counts_along_its_axis() {
    let iota = |dtype, text: &str, axis| Iota { dtype, shape: shape(text), axis };
    assert_eq!(run::<i32>(iota(DType::I32, "[2,3]", 0), &[]), (vec![2, 3], vec![0, 0, 0, 1, 1, 1]));
    assert_eq!(run::<f32>(iota(DType::F32, "[2,3]", 1), &[]), (vec![2, 3], vec![0.0, 1.0, 2.0, 0.0, 1.0, 2.0]));
    assert_eq!(run::<u8>(iota(DType::U8, "[258]", 0), &[]).1[255..], [255, 0, 1]);
    assert_eq!(run::<u8>(iota(DType::U8, "[0,3]", 1), &[]), (vec![0, 3], vec![]));
    assert_eq!(type_of(iota(DType::I8, "[B,2*B]", 1), &[]), "i8[B,2*B]");
    assert_eq!(refusal(iota(DType::Bool, "[2]", 0), &[]).0, ErrorKind::DType);
    assert_eq!(refusal(iota(DType::I32, "[2]", 1), &[]).0, ErrorKind::Axis);
    assert_eq!(refusal(iota(DType::I32, "[2]", 0), &["i32[]"]).0, ErrorKind::Verify);
    // More than any memory has: an error, not an abort.
    let huge = bind(Op::new(iota(DType::C128, "[100000000000000000]", 0)), &[]);
    assert_eq!(huge.error().map(Error::kind), Some(ErrorKind::Size));
}

#[test]
fn broadcast_repeats() {
    let op = |text: &str, axes: &[usize]| Broadcast { shape: shape(text), axes: axes.to_vec() };
    assert_eq!(run::<f64>(op("[2,3]", &[1]), &[count(&[3])]).1, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    assert_eq!(run::<f64>(op("[2,3]", &[0]), &[count(&[2])]).1, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    assert_eq!(run::<f64>(op("[2,2]", &[0, 1]), &[count(&[1, 2])]).1, [0.0, 1.0, 0.0, 1.0]);
    // No copy: the result sees the operand's buffer.
    let y = bind(Op::new(op("[1000000,1000000,2]", &[2])), &[count(&[2])]);
    assert_eq!(y.concrete().unwrap().data().len(), 2);

    assert_eq!(type_of(op("[B,3,C]", &[0, 2]), &["f32[B,C]"]), "f32[B,3,C]");
    assert_eq!(infer(op("[C]", &[0]), &["f32[B]"]).unwrap().1, ["B==C"]);
    assert_eq!(refusal(op("[3]", &[0]), &["f32[2]"]).0, ErrorKind::Shape);
    assert_eq!(refusal(op("[3,2]", &[1, 0]), &["f32[2,3]"]).0, ErrorKind::Axis);
    assert_eq!(refusal(op("[3]", &[]), &["f32[3]"]).0, ErrorKind::Axis);
    assert_eq!(refusal(op("[3]", &[usize::MAX]), &["f32[3]"]).0, ErrorKind::Axis);
    let negative = Broadcast { shape: dims(&[-1i64]).into(), axes: vec![] };
    assert_eq!(refusal(negative, &["f32[]"]).0, ErrorKind::Size);
}

#[test]
fn reshape_keeps_the_order() {
    let op = |text: &str| Reshape { shape: shape(text) };
    let turned = bind(Op::new(Permute { axes: vec![1, 0] }), &[count(&[2, 3])]);
    assert_eq!(run::<f64>(op("[6]"), std::slice::from_ref(&turned)).1, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    // Splitting an axis of a transposed array needs no copy.
    let split = bind(Op::new(op("[3,1,2,1]")), std::slice::from_ref(&turned));
    assert_eq!(split.concrete().unwrap().strides()[2], 3);
    assert_eq!(run::<f64>(op("[2,0,5]"), &[count(&[0, 3])]), (vec![2, 0, 5], vec![]));

    assert_eq!(type_of(op("[2*B]"), &["i8[B,2]"]), "i8[2*B]");
    assert_eq!(infer(op("[4,C]"), &["i8[B]"]).unwrap().1.len(), 1);
    assert_eq!(
        refusal(op("[4]"), &["f32[6]"]).1,
        "`reshape`: f32[6] has 6 elements, which do not fill the shape [4] of 4"
    );
    assert_eq!(refusal(Reshape { shape: dims(&[-1i64, 2]).into() }, &["f32[6]"]).0, ErrorKind::Size);
    let large = 1i64 << 40;
    let empty = Reshape { shape: dims(&[large, large, 0]).into() };
    assert!(infer(empty, &["f32[0,7]"]).is_ok());
}

#[test]
fn transpose_and_reverse_are_views() {
    let turn = |axes: &[usize]| Permute { axes: axes.to_vec() };
    assert_eq!(run::<f64>(turn(&[1, 0]), &[count(&[2, 3])]), (vec![3, 2], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    assert_eq!(type_of(turn(&[2, 0, 1]), &["u8[A,2,C]"]), "u8[C,A,2]");
    for axes in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        assert_eq!(refusal(turn(axes), &["u8[2,3]"]).0, ErrorKind::Axis, "{axes:?}");
    }
    let flip = |axes: &[usize]| Reverse { axes: axes.to_vec() };
    assert_eq!(run::<f64>(flip(&[1]), &[count(&[2, 2])]).1, [1.0, 0.0, 3.0, 2.0]);
    assert_eq!(run::<f64>(flip(&[1, 0]), &[count(&[2, 2])]).1, [3.0, 2.0, 1.0, 0.0]);
    assert_eq!(run::<f64>(flip(&[0]), &[count(&[0, 2])]), (vec![0, 2], vec![]));
    let twice = bind(Op::new(flip(&[0])), &[bind(Op::new(flip(&[0])), &[count(&[3])])]);
    assert!(twice.is_identical(&count(&[3])));
    assert_eq!(refusal(flip(&[1]), &["u8[2]"]).0, ErrorKind::Axis);
    assert_eq!(refusal(flip(&[0, 0]), &["u8[2]"]).0, ErrorKind::Axis);
}

#[test]
fn slice_takes_steps() {
    assert_eq!(run::<f64>(slice(&[1], &[6], &[2]), &[count(&[7])]).1, [1.0, 3.0, 5.0]);
    assert_eq!(run::<f64>(slice(&[0, 1], &[2, 3], &[1, 1]), &[count(&[2, 3])]).1, [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(run::<f64>(slice(&[7], &[7], &[1]), &[count(&[7])]), (vec![0], vec![]));
    assert_eq!(run::<f64>(slice(&[2], &[7], &[i64::MAX as usize]), &[count(&[7])]).1, [2.0]);

    let b = || symbol("B");
    let op = |start: Dim, limit: Dim, step| Slice { start: vec![start], limit: vec![limit], step: vec![step] };
    assert_eq!(type_of(op(0usize.into(), b(), 1), &["f64[B]"]), "f64[B]");
    assert_eq!(type_of(op(b(), b() * 2usize, 1), &["f64[2*B+1]"]), "f64[B]");
    assert_eq!(type_of(op(0usize.into(), b() * 2usize, 2), &["f64[2*B]"]), "f64[B]");
    let (ty, constraints) = infer(op(1usize.into(), b(), 1), &["f64[B]"]).unwrap();
    assert_eq!((ty.as_str(), constraints), ("f64[B-1]", vec!["B>=1".to_string()]));
    assert_eq!(refusal(slice(&[0], &[8], &[1]), &["f64[7]"]).0, ErrorKind::Index);
    assert_eq!(refusal(slice(&[3], &[2], &[1]), &["f64[7]"]).0, ErrorKind::Index);
    assert_eq!(refusal(op((-1i64).into(), 2usize.into(), 1), &["f64[7]"]).0, ErrorKind::Index);
    assert_eq!(refusal(slice(&[0], &[2], &[0]), &["f64[7]"]).0, ErrorKind::Value);
    assert_eq!(refusal(slice(&[0], &[2], &[1]), &["f64[7,2]"]).0, ErrorKind::Axis);
}

#[test]
fn pad_fills_spreads_and_crops() {
    let nine = || array(&[], vec![9.0]);
    let padded = |amounts: &[(i64, i64, usize)], n: usize| run::<f64>(pad(amounts), &[count(&[n]), nine()]).1;
    assert_eq!(padded(&[(1, 2, 1)], 3), [9.0, 0.0, 9.0, 1.0, 9.0, 2.0, 9.0, 9.0]);
    assert_eq!(padded(&[(-1, -1, 1)], 3), [9.0, 1.0, 9.0]);
    assert_eq!(padded(&[(-2, 0, 2)], 3), [9.0, 1.0, 9.0, 9.0, 2.0]);
    assert_eq!(padded(&[(-5, 6, 0)], 3), [9.0; 4]);
    assert_eq!(padded(&[(6, -5, 0)], 3), [9.0; 4]);
    assert_eq!(padded(&[(2, 1, 7)], 0), [9.0; 3]);
    assert_eq!(padded(&[(0, 0, 7)], 0), []);
    assert_eq!(
        run::<f64>(pad(&[(0, 1, 0), (1, 0, 1)]), &[count(&[2, 2]), nine()]),
        (vec![3, 4], vec![9.0, 0.0, 9.0, 1.0, 9.0, 2.0, 9.0, 3.0, 9.0, 9.0, 9.0, 9.0])
    );
    let symbolic = Pad { low: vec![symbol("B")], high: vec![-symbol("A")], interior: vec![0] };
    assert_eq!(type_of(symbolic, &["f64[A+1]", "f64[]"]), "f64[B+1]");
    assert_eq!(refusal(pad(&[(-2, -2, 0)]), &["f64[3]", "f64[]"]).0, ErrorKind::Shape);
    assert_eq!(refusal(pad(&[(1, 1, 0)]), &["f64[3]", "f32[]"]).0, ErrorKind::DType);
    assert_eq!(refusal(pad(&[(1, 1, 0)]), &["f64[3]", "f64[1]"]).0, ErrorKind::DType);
    assert_eq!(refusal(pad(&[(1, 1, 0)]), &["f64[]", "f64[]"]).0, ErrorKind::Axis);
    assert_eq!(refusal(pad(&[(i64::MAX, i64::MAX, 0)]), &["f64[3]", "f64[]"]).0, ErrorKind::Size);
}

#[test]
fn concatenate_puts_side_by_side() {
    let (a, b) = (count(&[2, 2]), array(&[2, 1], vec![8.0, 9.0]));
    assert_eq!(run::<f64>(Concatenate { axis: 1 }, &[a, b]), (vec![2, 3], vec![0.0, 1.0, 8.0, 2.0, 3.0, 9.0]));
    let bools = |v: &[bool]| array(&[v.len()], v.to_vec());
    assert_eq!(run::<bool>(Concatenate { axis: 0 }, &[bools(&[true]), bools(&[]), bools(&[false])]).1, [true, false]);
    assert_eq!(type_of(Concatenate { axis: 0 }, &["f32[B,2]", "f32[3,2]", "f32[B,2]"]), "f32[2*B+3,2]");
    assert_eq!(infer(Concatenate { axis: 0 }, &["f32[1,B]", "f32[1,C]"]).unwrap().1, ["B==C"]);
    assert_eq!(refusal(Concatenate { axis: 0 }, &[]).0, ErrorKind::Verify);
    assert_eq!(refusal(Concatenate { axis: 0 }, &["f32[]"]).0, ErrorKind::Axis);
    assert_eq!(refusal(Concatenate { axis: 0 }, &["f32[2]", "f64[2]"]).0, ErrorKind::DType);
    assert_eq!(refusal(Concatenate { axis: 0 }, &["f32[2,3]", "f32[2,4]"]).0, ErrorKind::Shape);
    assert_eq!(refusal(Concatenate { axis: 0 }, &["f32[2]", "f32[2,1]"]).0, ErrorKind::Shape);
}

#[test]
fn type_rules_are_used_by_evaluation() {
    // Every sample's value has exactly the type that the rule says.
    let mut checked = 0;
    let samples = [Iota::samples(), Broadcast::samples(), Reshape::samples(), Permute::samples(), Reverse::samples()];
    let pieces = [Slice::samples(), Pad::samples(), Concatenate::samples()];
    for sample in samples.into_iter().chain(pieces).flatten() {
        let types: Vec<Type> = sample.inputs.iter().map(|a| a.ty().cloned().unwrap()).collect();
        let mut constraints = Vec::new();
        let want = sample.op.infer(&mut Infer { inputs: &types, constraints: &mut constraints }).unwrap();
        let have = sample.op.evaluate(&sample.inputs).unwrap();
        assert_eq!(have[0].ty().unwrap(), &want[0], "{:?}", sample.op);
        checked += 1;
    }
    assert!(checked > 80);
}
