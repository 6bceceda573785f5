//! Methods made of several primitives, taken through every transformation: tangents beside finite differences, the
//! inner-product test `⟨Jv,w⟩ = ⟨v,Jᵀw⟩`, and a batch beside a loop.

#![allow(clippy::needless_borrows_for_generic_args)]

use crate::array::{Array, Index};
use crate::error::Result;
use crate::trace::{Mode, inline, trace};
use crate::transform::{jvp, vjp, vmap};
use crate::types::{DType, Dim};

type Function = fn(&Array) -> Array;

/// Functions of an `f64[2,3]` that are smooth at the point of the test.
const FUNCTIONS: &[(&str, Function)] = &[
    ("sums", |x| x.prod_axes(0) + x.mean() + x.sum_axes(0)),
    ("mean_keep", |x| x.mean_keep(1)),
    ("var", |x| x.var_axes(0, 1)),
    ("std", |x| x.std()),
    ("norm", |x| x.norm()),
    ("max", |x| x.max()),
    ("logsumexp", |x| x.logsumexp_axes(1)),
    ("softmax", |x| x.softmax(1)),
    ("log_softmax", |x| x.log_softmax(0)),
    ("cumprod", |x| x.cumprod(1)),
    ("cummax", |x| x.cummax(1)),
    ("sort", |x| x.sort(1)),
    ("top_k", |x| x.top_k(2).0),
    ("argsort", |x| x.take_along_axis(&x.argsort(1), 1)),
    ("searchsorted", |x| x * x.flatten().sort(0).searchsorted(&Array::from([0.5, 0.61, 0.1])).cast(DType::F64)),
    ("argmax", |x| x.index(x.argmax_axis(1))),
    ("one_hot", |x| x.argmax_axis(1).one_hot(3usize, DType::F64) * x),
    ("index", |x| x.index((Index::step(.., -1), Index::step(.., 2)))),
    ("index_new", |x| x.index((Index::Ellipsis, Index::NewAxis, ..))),
    ("index_arrays", |x| x.index((&Array::from([[0], [1]]), &Array::from([2, 0])))),
    ("index_mixed", |x| x.index((.., &Array::from([2, 0, 2, -1])))),
    ("index_numbers", |x| x.index((&Array::from(1), &Array::from(-1)))),
    ("set_block", |x| x.at((1, 1..)).set(&x.index((0, ..2)))),
    ("set_steps", |x| x.at((0, Index::step(.., -2))).set(&x.index((1, 0..2)))),
    ("set_same_twice", |x| x.at(&Array::from([1, 1])).set(x)),
    ("add_picked", |x| x.at((.., &Array::from([2, 0, 2]))).add(x)),
    ("mul_steps", |x| x.at((.., Index::step(.., 2))).mul(&x.index((.., 1..)))),
    ("mul_picked", |x| x.at((0, &Array::from([2, 1]))).mul(&x.index((1, ..2)))),
    ("max_picked", |x| x.at((0, &Array::from([2, 1]))).max(&x.index((1, ..2)))),
    ("mul_marked", |x| x.at(&x.gt(0.5)).mul(3.0)),
    ("diagonal", |x| x.diagonal_axes(1, 0, 1)),
    ("diag", |x| Array::diag(&x.flatten(), -1)),
    ("tril", |x| x.tril(0)),
    ("roll", |x| x.roll(2, 1)),
    ("tile_repeat", |x| x.tile([2, 2]).repeat(2, 0)),
    ("pad", |x| x.pad(&[(1, 2), (-1, 0)], 7.0)),
    ("split", |x| Array::concatenate(x.split(3, 1), 0)),
    ("stack", |x| Array::stack([x, &(x * x)], 1)),
    ("dot_trace", |x| x.dot(&x.t()).trace()),
    ("matmul", |x| x.reshape([1, 2, 3]).matmul(&x.t())),
    ("outer", |x| x.outer(x)),
    ("einsum_contract", |x| Array::einsum("ij,kj,il->kl", [x, x, x])),
    ("einsum_product", |x| Array::einsum("ij,ij,ij->j", [x, x, x])),
];

fn check(f: Function) -> Result<()> {
    let x = Array::from([[0.3, 0.9, 0.45], [0.7, 0.2, 0.62]]);
    let x_dot = Array::from([[0.5, -1.0, 0.25], [2.0, 0.75, -0.3]]);
    let program = trace("f", std::slice::from_ref(&x), Mode::Abstract, |a| vec![f(&a[0])])?.program;
    let y = f(&x);

    let (forward, varies) = jvp(&program, &[true])?;
    assert_eq!(varies, [true]);
    let y_dot = inline(&forward, &[x.clone(), x_dot.clone()])?.remove(1);
    let step = &x_dot * 1e-6;
    let slope = (f(&(&x + &step)) - f(&(&x - &step))) / 2e-6;
    let gap = (&y_dot - &slope).abs().max().item::<f64>()?;
    assert!(gap < 1e-7, "tangent {y_dot:?}, slope {slope:?}");

    let reverse = vjp(&program, &[true])?;
    let mut residuals = inline(&reverse.primal, std::slice::from_ref(&x))?.split_off(1);
    let y_bar = (&y * 1.7 + 0.3).sin();
    residuals.push(y_bar.clone());
    let x_bar = inline(&reverse.linear, &residuals)?.remove(0);
    let (forth, back) = ((&y_bar * &y_dot).sum().item::<f64>()?, (&x_bar * &x_dot).sum().item::<f64>()?);
    assert!((forth - back).abs() < 1e-10, "{forth} forward, {back} backward");

    let rows = [x.clone(), x_dot.clone(), &x * 2.0];
    let batched = vmap(&program, &[true], &Dim::from(3usize))?;
    let at_once = inline(&batched, &[Array::stack(&rows, 0)])?.remove(0);
    let one_by_one = Array::stack(rows.iter().map(f), 0);
    let gap = (&at_once - &one_by_one).abs().max().item::<f64>()?;
    assert!(gap < 1e-12, "{at_once:?} as a batch, {one_by_one:?} one by one");
    Ok(())
}

#[test]
fn every_method_can_be_differentiated_and_batched() {
    for (name, f) in FUNCTIONS {
        check(*f).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}
