//! Values, refusals, symbolic types and the harder derivatives of the operations that take indices.

use super::*;
use crate::error::ErrorKind;
use crate::interpret;
use crate::primitives::Primitive;
use crate::primitives::shaping::tests::{array, count, infer, refusal, run, type_of};
use crate::program::Program;
use crate::transform::{jvp_on, vjp, vmap};
use crate::types::Type;

fn indices(dims: &[usize], values: &[i64]) -> Array {
    array(dims, values.to_vec())
}

/// Gather from lists in the order offset, collapsed, operand batch, index batch, map.
fn gather(lists: [&[usize]; 5], sizes: &[usize], bounds: Bounds) -> Gather {
    let [offset_dims, collapsed_dims, operand_batch_dims, index_batch_dims, index_map] = lists.map(<[usize]>::to_vec);
    Gather { offset_dims, collapsed_dims, operand_batch_dims, index_batch_dims, index_map, sizes: sizes.into(), bounds }
}

fn scatter(kind: ScatterKind, lists: [&[usize]; 5], unique: bool) -> Scatter {
    let [update_window_dims, inserted_dims, operand_batch_dims, index_batch_dims, index_map] =
        lists.map(<[usize]>::to_vec);
    Scatter { kind, update_window_dims, inserted_dims, operand_batch_dims, index_batch_dims, index_map, unique }
}

const ELEMENTS: [&[usize]; 5] = [&[], &[0], &[], &[], &[0]];

#[test]
fn dynamic_slice_moves_starts_into_range() {
    let op = |sizes: &[usize]| DynamicSlice { sizes: sizes.into() };
    let at = |start: i64| run::<f64>(op(&[2]), &[count(&[5]), indices(&[], &[start])]).1;
    assert_eq!(at(1), [1.0, 2.0]);
    assert_eq!(at(4), [3.0, 4.0]);
    assert_eq!(at(-1), [0.0, 1.0]);
    assert_eq!(at(i64::MIN), [0.0, 1.0]);
    let far = array(&[], vec![u64::MAX]);
    assert_eq!(run::<f64>(op(&[2]), &[count(&[5]), far]).1, [3.0, 4.0]);
    assert_eq!(run::<f64>(op(&[]), &[count(&[])]), (vec![], vec![0.0]));

    let symbolic = DynamicSlice { sizes: "f64[2,B]".parse::<Type>().unwrap().shape().clone() };
    assert_eq!(type_of(symbolic, &["f32[3,2*B]", "i32[]", "i32[]"]), "f32[2,B]");
    assert_eq!(infer(op(&[2]), &["f32[B]", "i32[]"]).unwrap().1, ["B>=2"]);
    assert_eq!(refusal(op(&[6]), &["f32[5]", "i32[]"]).0, ErrorKind::Shape);
    assert_eq!(refusal(op(&[2]), &["f32[5]"]).0, ErrorKind::Verify);
    assert_eq!(refusal(op(&[2]), &["f32[5]", "f32[]"]).0, ErrorKind::DType);
    assert_eq!(refusal(op(&[2]), &["f32[5]", "i32[1]"]).0, ErrorKind::DType);
    assert_eq!(refusal(op(&[2, 2]), &["f32[5,5]", "i32[]", "i64[]"]).0, ErrorKind::DType);
}

#[test]
fn dynamic_update_slice_moves_starts_into_range() {
    let write = |start: i64| {
        run::<f64>(DynamicUpdateSlice, &[count(&[4]), array(&[2], vec![8.0, 9.0]), indices(&[], &[start])]).1
    };
    assert_eq!(write(1), [0.0, 8.0, 9.0, 3.0]);
    assert_eq!(write(9), [0.0, 1.0, 8.0, 9.0]);
    assert_eq!(write(-9), [8.0, 9.0, 2.0, 3.0]);
    assert_eq!(type_of(DynamicUpdateSlice, &["f32[B+2]", "f32[B]", "u8[]"]), "f32[B+2]");
    assert_eq!(refusal(DynamicUpdateSlice, &["f32[2]", "f32[3]", "i32[]"]).0, ErrorKind::Shape);
    assert_eq!(refusal(DynamicUpdateSlice, &["f32[2]", "f64[2]", "i32[]"]).0, ErrorKind::DType);
    assert_eq!(refusal(DynamicUpdateSlice, &["f32[2]"]).0, ErrorKind::Verify);
}

#[test]
fn gather_clips_or_fills() {
    let at = indices(&[4, 1], &[2, -1, 5, 0]);
    let clip = gather(ELEMENTS, &[1], Bounds::Clip);
    let fill = gather(ELEMENTS, &[1], Bounds::Fill);
    assert_eq!(run::<f64>(clip, &[count(&[3]), at.clone()]).1, [2.0, 0.0, 2.0, 0.0]);
    let filled = run::<f64>(fill.clone(), &[count(&[3]), at.clone()]).1;
    assert!(filled[1].is_nan() && filled[2].is_nan() && filled[0] == 2.0 && filled[3] == 0.0);
    assert_eq!(run::<i8>(fill.clone(), &[array(&[3], vec![1i8, 2, 3]), at.clone()]).1, [3, -128, -128, 1]);
    assert_eq!(run::<u8>(fill.clone(), &[array(&[3], vec![1u8, 2, 3]), at.clone()]).1, [3, 255, 255, 1]);
    assert_eq!(run::<bool>(fill.clone(), &[array(&[3], vec![true; 3]), at]).1, [true, false, false, true]);
    // Nothing to clip to, but filling works.
    assert_eq!(run::<i8>(fill, &[array::<i8>(&[0], vec![]), indices(&[1, 1], &[0])]).1, [-128]);
    let far = array(&[1, 1], vec![u64::MAX]);
    assert_eq!(run::<f64>(gather(ELEMENTS, &[1], Bounds::Clip), &[count(&[3]), far]).1, [2.0]);
}

#[test]
fn gather_windows() {
    let two = gather([&[0], &[0], &[], &[], &[1, 0]], &[1, 2], Bounds::Clip);
    // Index vectors are (column, row); windows are two columns wide and come first in the result.
    let y = run::<f64>(two, &[count(&[3, 4]), indices(&[2, 2], &[1, 2, 3, 0])]);
    assert_eq!(y, (vec![2, 2], vec![9.0, 2.0, 10.0, 3.0]));
    let batch = gather([&[], &[1], &[0], &[0], &[1]], &[1, 1], Bounds::Clip);
    assert_eq!(run::<f64>(batch, &[count(&[3, 4]), indices(&[3, 1], &[3, 0, 1])]).1, [3.0, 4.0, 9.0]);
    // More index vectors than are read at a time.
    let many: Vec<i32> = (0..1000).rev().collect();
    let back = run::<f64>(gather(ELEMENTS, &[1], Bounds::Clip), &[count(&[1000]), array(&[1000, 1], many)]).1;
    assert!(back.iter().enumerate().all(|(i, v)| *v == (999 - i) as f64));
    // A strided operand is read in place.
    let turned = bind(Op::new(crate::primitives::shaping::Permute { axes: vec![1, 0] }), &[count(&[2, 3])]);
    let rows = gather([&[1], &[0], &[], &[], &[0]], &[1, 2], Bounds::Clip);
    assert_eq!(run::<f64>(rows, &[turned, indices(&[2, 1], &[2, 0])]).1, [2.0, 5.0, 0.0, 3.0]);
}

#[test]
fn gather_types() {
    let rows = |bounds| gather([&[1], &[0], &[], &[], &[0]], &[1, 3], bounds);
    assert_eq!(type_of(rows(Bounds::Fill), &["f32[N,3]", "i32[B,1]"]), "f32[B,3]");
    assert_eq!(infer(rows(Bounds::Clip), &["f32[N,3]", "i32[B,1]"]).unwrap().1, ["N>=1"]);
    let batch = gather([&[], &[1], &[0], &[0], &[1]], &[1, 1], Bounds::Fill);
    assert_eq!(type_of(batch.clone(), &["f32[B,5]", "i32[B,7,1]"]), "f32[B,7]");
    assert_eq!(refusal(batch.clone(), &["f32[3,5]", "i32[2,7,1]"]).0, ErrorKind::Shape);
    let r = |g: Gather, types: [&str; 2]| refusal(g, &types).0;
    let clip = Bounds::Clip;
    assert_eq!(r(rows(clip), ["f32[4,3]", "f32[2,1]"]), ErrorKind::DType);
    assert_eq!(r(rows(clip), ["f32[4,3]", "i32[]"]), ErrorKind::Shape);
    assert_eq!(r(rows(clip), ["f32[4,3]", "i32[2]"]), ErrorKind::Shape);
    assert_eq!(r(rows(clip), ["f32[4,2]", "i32[2,1]"]), ErrorKind::Shape);
    assert_eq!(r(rows(clip), ["f32[0,3]", "i32[2,1]"]), ErrorKind::Shape);
    assert_eq!(r(rows(clip), ["f32[3]", "i32[2,1]"]), ErrorKind::Axis);
    assert_eq!(r(gather(ELEMENTS, &[2], clip), ["f32[3]", "i32[2,1]"]), ErrorKind::Shape);
    assert_eq!(r(gather([&[0], &[], &[], &[], &[1]], &[1], clip), ["f32[3]", "i32[2,1]"]), ErrorKind::Axis);
    assert_eq!(r(gather([&[2], &[], &[], &[], &[0]], &[1], clip), ["f32[3]", "i32[2,1]"]), ErrorKind::Axis);
    assert_eq!(r(gather([&[], &[0], &[0], &[0], &[]], &[1], clip), ["f32[3]", "i32[3,0]"]), ErrorKind::Axis);
    assert_eq!(r(gather([&[], &[], &[0], &[], &[]], &[1], clip), ["f32[3]", "i32[3,0]"]), ErrorKind::Axis);
    assert_eq!(r(gather([&[], &[], &[0], &[1], &[]], &[1], clip), ["f32[3]", "i32[3,0]"]), ErrorKind::Axis);
    assert_eq!(r(gather([&[], &[0], &[], &[], &[0, 0]], &[1], clip), ["f32[3]", "i32[3,2]"]), ErrorKind::Axis);
    assert_eq!(r(gather([&[usize::MAX], &[], &[], &[], &[0]], &[1], clip), ["f32[3]", "i32[2,1]"]), ErrorKind::Axis);
}

#[test]
fn scatter_combines_in_order() {
    let at = indices(&[5, 1], &[1, -1, 1, 3, 0]);
    let updates = array(&[5], vec![5.0, 6.0, 7.0, 8.0, -1.0]);
    let combined = |kind| run::<f64>(scatter(kind, ELEMENTS, false), &[count(&[3]), at.clone(), updates.clone()]).1;
    assert_eq!(combined(ScatterKind::Set), [-1.0, 7.0, 2.0]);
    assert_eq!(combined(ScatterKind::Add), [-1.0, 13.0, 2.0]);
    assert_eq!(combined(ScatterKind::Mul), [0.0, 35.0, 2.0]);
    assert_eq!(combined(ScatterKind::Min), [-1.0, 1.0, 2.0]);
    assert_eq!(combined(ScatterKind::Max), [0.0, 7.0, 2.0]);
    // NaN stays; integers wrap; sums of half floats are rounded once.
    let nan = array(&[1], vec![f64::NAN]);
    let max = scatter(ScatterKind::Max, ELEMENTS, false);
    assert!(run::<f64>(max, &[nan, indices(&[1, 1], &[0]), array(&[1], vec![1.0])]).1[0].is_nan());
    let add = || scatter(ScatterKind::Add, ELEMENTS, false);
    assert_eq!(run::<i8>(add(), &[array(&[1], vec![127i8]), indices(&[1, 1], &[0]), array(&[1], vec![2i8])]).1, [-127]);
    let ones = array(&[1000], vec![crate::types::bf16::ONE; 1000]);
    let zeros = array(&[1], vec![crate::types::bf16::ZERO]);
    let sum = run::<crate::types::bf16>(add(), &[zeros, indices(&[1000, 1], &[0; 1000]), ones]).1;
    assert_eq!(sum[0].to_f32(), 1000.0);
    // No index component: every window is the whole operand.
    let whole = scatter(ScatterKind::Add, [&[], &[], &[], &[], &[]], false);
    assert_eq!(run::<f64>(whole, &[count(&[]), indices(&[2, 0], &[]), array(&[2], vec![3.0, 4.0])]).1, [7.0]);
}

#[test]
fn scatter_types() {
    let rows = |kind| scatter(kind, [&[1], &[0], &[], &[], &[0]], false);
    let add = ScatterKind::Add;
    assert_eq!(type_of(rows(add), &["f32[N,3]", "i32[B,1]", "f32[B,2]"]), "f32[N,3]");
    let r = |s: Scatter, types: [&str; 3]| refusal(s, &types).0;
    assert_eq!(r(rows(add), ["f32[4,3]", "i32[2,1]", "f64[2,3]"]), ErrorKind::DType);
    assert_eq!(r(rows(add), ["f32[4,3]", "f32[2,1]", "f32[2,3]"]), ErrorKind::DType);
    assert_eq!(r(rows(add), ["f32[4,3]", "i32[2,1]", "f32[3,3]"]), ErrorKind::Shape);
    assert_eq!(r(rows(add), ["f32[4,3]", "i32[2,1]", "f32[2,4]"]), ErrorKind::Shape);
    assert_eq!(r(rows(add), ["f32[4,3]", "i32[2,1]", "f32[2]"]), ErrorKind::Shape);
    assert_eq!(r(rows(add), ["bool[4,3]", "i32[2,1]", "bool[2,3]"]), ErrorKind::DType);
    assert_eq!(r(rows(ScatterKind::Max), ["c64[4,3]", "i32[2,1]", "c64[2,3]"]), ErrorKind::DType);
    assert!(infer(rows(ScatterKind::Set), &["bool[4,3]", "i32[2,1]", "bool[2,3]"]).is_ok());
    assert_eq!(
        r(scatter(add, [&[1], &[], &[], &[], &[0]], false), ["f32[4,3]", "i32[2,1]", "f32[2,3]"]),
        ErrorKind::Axis
    );
}

/// `fn f(operands) -> result` of one operation on types given as text.
fn program(op: impl Primitive, types: &[&str]) -> Program {
    let mut builder = crate::program::Builder::new("f");
    let atoms: Vec<_> = types.iter().map(|t| builder.input(t.parse().unwrap()).unwrap().into()).collect();
    let result = builder.equation(Op::new(op), &atoms, crate::Location::unknown()).unwrap().result();
    builder.finish(vec![result.into()])
}

/// Cotangents of the active inputs for a cotangent of ones.
fn pullback(program: &Program, active: &[bool], inputs: &[Array]) -> Vec<Vec<f64>> {
    let types: Vec<Type> = inputs.iter().map(|a| a.ty().unwrap().clone()).collect();
    // The pullback need not take an input in whose type a symbol stands, so the symbols are solved for once.
    let sizes = program.solve_symbols(&types).unwrap();
    let sized = |p: &Program| p.map_dims(&|d| d.substitute(&|s| sizes.get(s).map(|n| Dim::from(*n))));
    let reverse = vjp(program, active).unwrap();
    let out = interpret(&sized(&reverse.primal), inputs).unwrap();
    let mut residuals = out[1..].to_vec();
    residuals.push(Array::full_scalar(out[0].shape().clone(), Scalar::one(out[0].dtype())));
    let bars = interpret(&sized(&reverse.linear), &residuals).unwrap();
    bars.iter().map(|b| b.to_vec::<f64>().unwrap()).collect()
}

#[test]
fn set_passes_cotangents_to_the_update_that_stays() {
    for unique in [false, true] {
        let set = program(scatter(ScatterKind::Set, ELEMENTS, unique), &["f64[3]", "i64[4,1]", "f64[4]"]);
        let places: &[i64] = if unique { &[0, 5, -1, 1] } else { &[1, 0, 1, 7] };
        let at = [count(&[3]), indices(&[4, 1], places), count(&[4])];
        let bars = pullback(&set, &[true, false, true], &at);
        let updates = if unique { [1.0, 0.0, 0.0, 1.0] } else { [0.0, 1.0, 1.0, 0.0] };
        assert_eq!(bars, [vec![0.0, 0.0, 1.0], updates.to_vec()]);
    }
}

#[test]
fn products_with_zeros_have_derivatives() {
    // Location 0 has no zero, place 1 one among the updates, place 2 two, place 3 a zero operand.
    let mul = program(scatter(ScatterKind::Mul, ELEMENTS, false), &["f64[4]", "i64[9,1]", "f64[9]"]);
    let x = array(&[4], vec![2.0, 3.0, 4.0, 0.0]);
    let at = indices(&[9, 1], &[0, 1, 2, 3, 0, 1, 2, 3, 9]);
    let u = array(&[9], vec![5.0, 0.0, 0.0, 2.0, 7.0, 4.0, 0.0, 3.0, 1e300]);
    let bars = pullback(&mul, &[true, false, true], &[x, at, u]);
    assert_eq!(bars[0], [35.0, 0.0, 0.0, 6.0]);
    assert_eq!(bars[1], [14.0, 12.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn ties_of_extremes_share() {
    let max = program(scatter(ScatterKind::Max, ELEMENTS, false), &["f64[3]", "i64[4,1]", "f64[4]"]);
    let inputs =
        [array(&[3], vec![2.0, 0.0, 1.0]), indices(&[4, 1], &[0, 1, 1, 9]), array(&[4], vec![2.0, 5.0, 5.0, 9.0])];
    let bars = pullback(&max, &[true, false, true], &inputs);
    assert_eq!(bars, [vec![0.5, 0.0, 1.0], vec![0.5, 0.5, 0.5, 0.0]]);
}

#[test]
fn a_filled_window_has_no_derivative() {
    let fill = program(gather(ELEMENTS, &[1], Bounds::Fill), &["f64[3]", "i64[3,1]"]);
    let inputs = [count(&[3]), indices(&[3, 1], &[1, 7, -1])];
    let (_, dots) = jvp_on(&fill, &inputs, &[Some(count(&[3])), None]).unwrap();
    assert_eq!(dots[0].as_ref().unwrap().to_vec::<f64>().unwrap(), [1.0, 0.0, 0.0]);
    assert_eq!(pullback(&fill, &[true, false], &inputs), [[0.0, 1.0, 0.0]]);
    let clip = program(gather(ELEMENTS, &[1], Bounds::Clip), &["f64[3]", "i64[3,1]"]);
    assert_eq!(pullback(&clip, &[true, false], &inputs), [[1.0, 1.0, 1.0]]);
}

#[test]
fn derivatives_of_symbolic_sizes() {
    // Sizes become known only when the program runs: limits to clip to, numbers of updates, steps of a product.
    let at = indices(&[4, 1], &[2, 0, 2, 9]);
    let u = || array(&[4], vec![3.0, 4.0, 5.0, 6.0]);
    let clip = program(gather(ELEMENTS, &[1], Bounds::Clip), &["f64[N]", "i64[B,1]"]);
    assert_eq!(pullback(&clip, &[true, false], &[count(&[3]), at.clone()]), [[1.0, 0.0, 3.0]]);
    let kinds = |kind| program(scatter(kind, ELEMENTS, false), &["f64[N]", "i64[B,1]", "f64[B]"]);
    let bars = |kind| pullback(&kinds(kind), &[true, false, true], &[count(&[3]), at.clone(), u()]);
    assert_eq!(bars(ScatterKind::Set), [vec![0.0, 1.0, 0.0], vec![0.0, 1.0, 1.0, 0.0]]);
    assert_eq!(bars(ScatterKind::Add), [vec![1.0; 3], vec![1.0, 1.0, 1.0, 0.0]]);
    assert_eq!(bars(ScatterKind::Mul), [vec![4.0, 1.0, 15.0], vec![10.0, 0.0, 6.0, 0.0]]);
    assert_eq!(bars(ScatterKind::Max), [vec![0.0, 1.0, 0.0], vec![0.0, 1.0, 1.0, 0.0]]);
}

#[test]
fn batches_of_starts() {
    let update = program(DynamicUpdateSlice, &["f64[N]", "f64[2]", "i8[]"]);
    let batched = vmap(&update, &[false, false, true], &"B".parse().unwrap()).unwrap();
    let inputs = [count(&[4]), array(&[2], vec![8.0, 9.0]), array(&[3], vec![1i8, 99, -99])];
    let types: Vec<Type> = inputs.iter().map(|a| a.ty().unwrap().clone()).collect();
    let y = interpret(&batched.bind_symbols(&types).unwrap(), &inputs).unwrap();
    let want = [0.0, 8.0, 9.0, 3.0, 0.0, 1.0, 8.0, 9.0, 8.0, 9.0, 2.0, 3.0];
    assert_eq!((y[0].known_dims().unwrap(), y[0].to_vec::<f64>().unwrap()), (vec![3, 4], want.to_vec()));
    // No examples at all.
    let inputs = [count(&[4]), array(&[2], vec![8.0, 9.0]), array::<i8>(&[0], vec![])];
    let types: Vec<Type> = inputs.iter().map(|a| a.ty().unwrap().clone()).collect();
    let y = interpret(&batched.bind_symbols(&types).unwrap(), &inputs).unwrap();
    assert_eq!(y[0].known_dims().unwrap(), [0, 4]);
}
