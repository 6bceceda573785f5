//! Laws on products: every way to contract and to share axes of two small arrays, with operands that are views, numbers or the identity, and
//! with results that are turned.

use std::sync::LazyLock;

use gradus_core::primitives::Op;
use gradus_core::primitives::convert::Convert;
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::elementwise::{Compare, Direction};
use gradus_core::primitives::shaping::{Broadcast, Iota, Permute, Reshape};
use gradus_core::{DType, Shape, Type};

use crate::chains::{number, permutations, ty};
use crate::support::{Expr, Seen, Share, inputs_for};

const A: Expr = Expr::In(0);
const B: Expr = Expr::In(1);

/// Every ordered choice of k of the numbers below n.
fn choices(n: usize, k: usize) -> Vec<Vec<usize>> {
    if k == 0 {
        return vec![Vec::new()];
    }
    let shorter = choices(n, k - 1);
    let longer =
        |c: &Vec<usize>| (0..n).filter(|i| !c.contains(i)).map(|i| [&c[..], &[i]].concat()).collect::<Vec<_>>();
    shorter.iter().flat_map(longer).collect()
}

/// A product and the dimensions of its operands.
struct Case {
    dot: DotGeneral,
    dims: [Vec<usize>; 2],
}

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (shared, contracted) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 1), (2, 0)] {
        let taken = shared + contracted;
        for ranks in [[1, 1], [1, 2], [2, 1], [2, 2], [2, 3], [3, 2], [3, 3]] {
            if ranks.iter().any(|r| *r < taken) {
                continue;
            }
            for lhs in choices(ranks[0], taken) {
                for rhs in choices(ranks[1], taken) {
                    for sizes in [[2, 3, 2], [1, 1, 2], [0, 2, 3], [3, 1, 1]] {
                        let dims = [&lhs, &rhs].map(|own| {
                            let mut dims =
                                vec![if own == &lhs { 3 } else { 2 }; if own == &lhs { ranks[0] } else { ranks[1] }];
                            for (k, axis) in own.iter().enumerate() {
                                dims[*axis] = if k < shared { 2 + k } else { sizes[k - shared] };
                            }
                            dims
                        });
                        let part = |own: &[usize]| (own[..shared].to_vec(), own[shared..].to_vec());
                        let ((lhs_batch, lhs_contract), (rhs_batch, rhs_contract)) = (part(&lhs), part(&rhs));
                        all.push(Case { dot: DotGeneral { lhs_contract, rhs_contract, lhs_batch, rhs_batch }, dims });
                    }
                }
            }
        }
    }
    all
}

fn check(seen: &mut Seen, e: &Expr, inputs: &[Type]) {
    if let Ok(p) = e.program(inputs) {
        seen.check(&p, &inputs_for(inputs, false));
    }
}

/// The case with an operand that is a view: what is given, and how it becomes the operand.
fn views(dtype: DType, dims: &[usize], input: &Expr) -> Vec<(Type, Expr)> {
    let rank = dims.len();
    let mut all = Vec::new();
    for axes in permutations(rank) {
        let mut from = vec![0; rank];
        axes.iter().enumerate().for_each(|(to, a)| from[*a] = dims[to]);
        all.push((ty(dtype, &from), Expr::of(Op::new(Permute { axes }), [input.clone()])));
    }
    for axis in 0..rank {
        let broadcast = |axes: Vec<usize>| Op::new(Broadcast { shape: Shape::from(dims), axes });
        let without: Vec<usize> = (0..rank).filter(|a| *a != axis).collect();
        let less: Vec<usize> = without.iter().map(|a| dims[*a]).collect();
        all.push((ty(dtype, &less), Expr::of(broadcast(without), [input.clone()])));
        let mut unit = dims.to_vec();
        unit[axis] = 1;
        all.push((ty(dtype, &unit), Expr::of(broadcast((0..rank).collect()), [input.clone()])));
    }
    let flat = dims.iter().product::<usize>();
    all.push((ty(dtype, &[flat]), Expr::of(Op::new(Reshape { shape: Shape::from(dims) }), [input.clone()])));
    all
}

fn products() -> Seen {
    let mut seen = Seen::default();
    for (dtype, every_day) in [(DType::F64, 50), (DType::I32, 150), (DType::C64, 150)] {
        let mut share = Share::one_in(every_day, 1);
        for Case { dot, dims } in cases() {
            let product = |a: Expr, b: Expr| Expr::of(Op::new(dot.clone()), [a, b]);
            let types = [ty(dtype, &dims[0]), ty(dtype, &dims[1])];
            let plain = product(A, B);
            if share.takes() {
                check(&mut seen, &plain, &types);
            }
            for (given, view) in views(dtype, &dims[0], &A) {
                if share.takes() {
                    check(&mut seen, &product(view, B), &[given, types[1].clone()]);
                }
            }
            for (given, view) in views(dtype, &dims[1], &B) {
                if share.takes() {
                    check(&mut seen, &product(A, view), &[types[0].clone(), given]);
                }
            }
            for value in [1.0, 3.0, -0.0] {
                if share.takes() {
                    check(&mut seen, &product(A, number(dtype, &dims[1], value)), &types);
                    check(&mut seen, &product(number(dtype, &dims[0], value), B), &types);
                }
            }
            let Ok(p) = plain.program(&types) else { continue };
            for axes in permutations(p.output_types()[0].rank()) {
                if share.takes() {
                    check(&mut seen, &Expr::of(Op::new(Permute { axes }), [plain.clone()]), &types);
                }
            }
            // The same value on both sides.
            if dims[0] == dims[1] && share.takes() {
                check(&mut seen, &product(A, A), &types);
            }
        }
    }
    identities(&mut seen);
    small_by_many(&mut seen);
    few_terms(&mut seen);
    with_vectors(&mut seen);
    seen.report("products");
    seen
}

/// Products of a vector with a vector, a matrix, and what has more axes, in every order of axes and with axes of one element.
fn with_vectors(seen: &mut Seen) {
    for (n, m) in [(8, 5), (9, 1), (33, 3), (2, 40), (16, 4096)] {
        let vectors = [(vec![n], vec![0]), (vec![1, n], vec![1]), (vec![n, 1], vec![0]), (vec![n, n], vec![0, 1])];
        for (own, contract) in vectors {
            let others: Vec<(Vec<usize>, Vec<usize>)> = match contract.len() {
                1 => vec![
                    (vec![n], vec![0]),
                    (vec![n, m], vec![0]),
                    (vec![m, n], vec![1]),
                    (vec![1, n, m], vec![1]),
                    (vec![m, n, 2], vec![1]),
                    (vec![n, m, 2], vec![0]),
                    (vec![2, m, n], vec![2]),
                ],
                _ => vec![
                    (vec![n, n], vec![0, 1]),
                    (vec![n, n], vec![1, 0]),
                    (vec![n, n, m], vec![0, 1]),
                    (vec![m, n, n], vec![2, 1]),
                    (vec![m, n, n], vec![1, 2]),
                ],
            };
            for (other, along) in others {
                let types = [ty(DType::F64, &own), ty(DType::F64, &other)];
                let dot = |lhs_contract: &Vec<usize>, rhs_contract: &Vec<usize>| {
                    Op::new(DotGeneral {
                        lhs_contract: lhs_contract.clone(),
                        rhs_contract: rhs_contract.clone(),
                        lhs_batch: Vec::new(),
                        rhs_batch: Vec::new(),
                    })
                };
                check(seen, &Expr::of(dot(&contract, &along), [A, B]), &types);
                check(seen, &Expr::of(dot(&along, &contract), [B, A]), &types);
            }
        }
    }
}

/// Products with what is the identity, and with what only looks so: counted in a type that wraps.
fn identities(seen: &mut Seen) {
    for (n, counter) in [
        (1, DType::I32),
        (3, DType::I32),
        (3, DType::F64),
        (127, DType::I8),
        (130, DType::I8),
        (257, DType::U8),
        (300, DType::U8),
    ] {
        let dims = [n, n];
        let iota = |axis| Expr::of(Op::new(Iota { dtype: counter, shape: Shape::from(&dims[..]), axis }), []);
        let spread = |axis: usize| {
            let line = Expr::of(Op::new(Iota { dtype: counter, shape: Shape::from(&[n][..]), axis: 0 }), []);
            Expr::of(Op::new(Broadcast { shape: Shape::from(&dims[..]), axes: vec![axis] }), [line])
        };
        for (rows, columns) in
            [(iota(0), iota(1)), (spread(0), spread(1)), (spread(1), iota(0)), (iota(0), iota(0)), (spread(0), iota(0))]
        {
            for dtype in [DType::I32, DType::F64] {
                let equal = Expr::of(Op::new(Compare { direction: Direction::Eq }), [rows.clone(), columns.clone()]);
                let eye = Expr::of(Op::new(Convert { dtype }), [equal]);
                for own in if n > 3 { vec![vec![n]] } else { vec![vec![n], vec![n, 2], vec![2, n], vec![2, n, 2]] } {
                    for axis in (0..own.len()).filter(|a| own[*a] == n) {
                        for side in 0..2 {
                            let (x, e) = (vec![axis], vec![side]);
                            let dot = |lhs_contract, rhs_contract| {
                                Op::new(DotGeneral { lhs_contract, rhs_contract, lhs_batch: vec![], rhs_batch: vec![] })
                            };
                            let types = [ty(dtype, &own)];
                            check(seen, &Expr::of(dot(x.clone(), e.clone()), [A, eye.clone()]), &types);
                            check(seen, &Expr::of(dot(e, x), [eye.clone(), A]), &types);
                        }
                    }
                }
            }
        }
    }
}

/// A small matrix by many small ones.
fn small_by_many(seen: &mut Seen) {
    for small in [vec![3], vec![2, 3], vec![3, 2], vec![3, 3]] {
        for many in [vec![8, 3, 3], vec![9, 3, 3], vec![2, 8, 3, 3], vec![30, 3], vec![7, 3, 3]] {
            for lhs in (0..small.len()).filter(|a| small[*a] == 3) {
                for rhs in (1..many.len()).filter(|a| many[*a] == 3) {
                    let types = [ty(DType::F64, &small), ty(DType::F64, &many)];
                    let dot = |lhs_contract, rhs_contract| {
                        Op::new(DotGeneral { lhs_contract, rhs_contract, lhs_batch: vec![], rhs_batch: vec![] })
                    };
                    let product = Expr::of(dot(vec![lhs], vec![rhs]), [A, B]);
                    check(seen, &product, &types);
                    check(seen, &Expr::of(dot(vec![rhs], vec![lhs]), [B, A]), &types);
                    let rank = small.len() + many.len() - 2;
                    for axes in permutations(rank).into_iter().step_by(3) {
                        check(seen, &Expr::of(Op::new(Permute { axes }), [product.clone()]), &types);
                    }
                }
            }
        }
    }
}

/// Sums of few terms, with operands that are not small, by axes anywhere; and what is next to that.
fn few_terms(seen: &mut Seen) {
    for dtype in [DType::F64, DType::F32, DType::I32, DType::F16, DType::C64] {
        for terms in [1, 2, 3, 4, 5] {
            for (rows, columns) in [(33, 34), (40, 1), (1, 70), (0, 40)] {
                for (lhs, rhs) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let of = |n: usize, axis: usize| if axis == 0 { vec![terms, n] } else { vec![n, terms] };
                    let types = [ty(dtype, &of(rows, lhs)), ty(dtype, &of(columns, rhs))];
                    let (lhs_contract, rhs_contract) = (vec![lhs], vec![rhs]);
                    let dot = DotGeneral { lhs_contract, rhs_contract, lhs_batch: vec![], rhs_batch: vec![] };
                    check(seen, &Expr::of(Op::new(dot), [A, B]), &types);
                }
            }
            // Shared axes, before and behind those of the sum.
            for (a, b, shared, contract) in [
                (vec![3, 30, terms], vec![3, terms, 2], [0, 0], [2, 1]),
                (vec![terms, 25, 3], vec![30, 3, terms], [2, 1], [0, 2]),
                (vec![70, 3, terms], vec![terms, 3], [1, 1], [2, 0]),
            ] {
                let (lhs_batch, rhs_batch) = (vec![shared[0]], vec![shared[1]]);
                let (lhs_contract, rhs_contract) = (vec![contract[0]], vec![contract[1]]);
                let dot = DotGeneral { lhs_contract, rhs_contract, lhs_batch, rhs_batch };
                check(seen, &Expr::of(Op::new(dot), [A, B]), &[ty(dtype, &a), ty(dtype, &b)]);
            }
        }
        // Sums over two axes, in both orders.
        for rhs_contract in [vec![0, 2], vec![2, 0]] {
            let dot = DotGeneral { lhs_contract: vec![1, 2], rhs_contract, lhs_batch: vec![], rhs_batch: vec![] };
            check(seen, &Expr::of(Op::new(dot), [A, B]), &[ty(dtype, &[20, 2, 2]), ty(dtype, &[2, 21, 2])]);
        }
    }
}

static PRODUCTS: LazyLock<Seen> = LazyLock::new(products);

/// What was seen.
pub fn seen() -> Vec<&'static Seen> {
    vec![&PRODUCTS]
}

#[test]
fn products_keep_their_bits() {
    assert!(!PRODUCTS.laws.is_empty());
}
