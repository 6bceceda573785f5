//! Laws on rows that are picked: before what is computed of all of them, and below transposes.

use std::sync::LazyLock;

use gradus_core::primitives::Op;
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::elementwise::{Add, Mul, Neg};
use gradus_core::primitives::index::{Bounds, Gather};
use gradus_core::primitives::reduce::{ReduceMax, ReduceSum};
use gradus_core::primitives::shaping::{Broadcast, Permute};
use gradus_core::{DType, Shape};

use crate::chains::{number, permutations, ty};
use crate::support::{Expr, Seen, inputs_for};

const A: Expr = Expr::In(0);
const B: Expr = Expr::In(1);
const INDICES: Expr = Expr::In(2);

/// Where an axis of a value goes whose rows along another one are picked by indices with so many axes.
fn beside(axis: usize, axes: usize) -> impl Fn(usize) -> usize {
    move |a| if a < axis { a } else { a + axes - 1 }
}

/// Rows along an axis of a value of these dimensions, by indices with so many axes.
fn rows(x: Expr, dims: &[usize], axis: usize, axes: usize, bounds: Bounds) -> Expr {
    let mut sizes = dims.to_vec();
    sizes[axis] = 1;
    let gather = Gather {
        offset_dims: (0..dims.len()).filter(|a| *a != axis).map(beside(axis, axes)).collect(),
        collapsed_dims: vec![axis],
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: vec![axis],
        sizes: Shape::from(&sizes[..]),
        bounds,
    };
    Expr::of(Op::new(gather), [x, INDICES])
}

fn gathers() -> Seen {
    let mut seen = Seen::default();
    for dtype in [DType::F64, DType::I32] {
        for picked in [&[0][..], &[1], &[3], &[4], &[9], &[1, 3], &[2, 1, 2], &[0, 2], &[5, 3]] {
            // Indices as they come: many are out of range.
            let mut check = |e: Expr, a: &[usize], b: &[usize]| {
                let types = [ty(dtype, a), ty(dtype, b), ty(DType::I64, &[picked, &[1]].concat())];
                let Ok(p) = e.program(&types) else { panic!("a type rule refuses {a:?} {b:?}") };
                seen.check(&p, &inputs_for(&types, true));
            };
            let dims = [8, 2, 3];
            for bounds in [Bounds::Clip, Bounds::Fill] {
                for axis in 0..3 {
                    let of = |x: Expr, dims: &[usize]| rows(x, dims, axis, picked.len(), bounds);
                    for axes in permutations(3) {
                        let shown: Vec<usize> = axes.iter().map(|a| dims[*a]).collect();
                        check(of(Expr::of(Op::new(Permute { axes }), [A]), &shown), &dims, &[1]);
                    }
                    check(of(Expr::of(Op::fixed(&Add), [A, B]), &dims), &dims, &dims);
                    check(of(Expr::of(Op::fixed(&Mul), [number(dtype, &dims, 3.0), A]), &dims), &dims, &[1]);
                    check(of(number(dtype, &dims, 3.0), &dims), &dims, &[1]);
                    // What is picked from is needed as a whole, too.
                    let sum = Expr::of(Op::fixed(&Add), [A, B]);
                    let all = Expr::of(Op::new(ReduceMax { axes: vec![axis] }), [sum.clone()]);
                    let shape = [&dims[..axis], picked, &dims[axis + 1..]].concat();
                    let axes = (0..3).filter(|a| *a != axis).map(beside(axis, picked.len())).collect();
                    let all = Expr::of(Op::new(Broadcast { shape: Shape::from(&shape[..]), axes }), [all]);
                    check(Expr::of(Op::fixed(&Mul), [of(sum, &dims), all]), &dims, &dims);
                    for (from, axes) in
                        [(vec![8], vec![0]), (vec![2, 3], vec![1, 2]), (vec![8, 1], vec![0, 1]), (vec![], vec![])]
                    {
                        let spread = Broadcast { shape: Shape::from(&dims[..]), axes };
                        check(of(Expr::of(Op::new(spread), [A]), &dims), &from, &[1]);
                    }
                    for reduced in (0..4).map(|a| vec![a]).chain([vec![0, 2], vec![1, 3]]) {
                        let from = [8, 2, 3, 5];
                        let left: Vec<usize> = (0..4).filter(|a| !reduced.contains(a)).map(|a| from[a]).collect();
                        if axis < left.len() {
                            let sum = Expr::of(Op::new(ReduceSum { axes: reduced }), [A]);
                            check(of(sum, &left), &from, &[1]);
                        }
                    }
                }
                products(&mut check, picked.len(), bounds);
            }
            check(Expr::of(Op::fixed(&Neg), [rows(A, &dims, 0, picked.len(), Bounds::Clip)]), &dims, &[1]);
        }
    }
    seen.report("rows");
    seen
}

/// Rows of products: of either side's own axes, of shared ones, of short sums and long ones.
fn products(check: &mut dyn FnMut(Expr, &[usize], &[usize]), axes: usize, bounds: Bounds) {
    for k in [3, 20] {
        for (lhs, rhs, lhs_batch, rhs_batch, result) in [
            (vec![8, k], vec![k, 9], vec![], vec![], vec![8, 9]),
            // Many sums are saved for each row.
            (vec![8, k], vec![k, 200], vec![], vec![], vec![8, 200]),
            (vec![2, 8, k], vec![k, 9], vec![], vec![], vec![2, 8, 9]),
            (vec![8, 2, k], vec![k, 8], vec![0], vec![1], vec![8, 2]),
            (vec![8, 2, k], vec![8, k, 9], vec![0], vec![0], vec![8, 2, 9]),
        ] {
            let contract = |dims: &[usize]| vec![dims.iter().position(|d| *d == k).unwrap()];
            let dot = DotGeneral { lhs_contract: contract(&lhs), rhs_contract: contract(&rhs), lhs_batch, rhs_batch };
            for axis in 0..result.len() {
                let product = Expr::of(Op::new(dot.clone()), [A, B]);
                check(rows(product, &result, axis, axes, bounds), &lhs, &rhs);
            }
        }
    }
}

static ROWS: LazyLock<Seen> = LazyLock::new(gathers);

/// What was seen.
pub fn seen() -> Vec<&'static Seen> {
    vec![&ROWS]
}

#[test]
fn picked_rows_keep_their_bits() {
    assert!(!ROWS.laws.is_empty());
}
