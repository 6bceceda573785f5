//! Laws on shapes: chains of two and three operations that move, repeat, drop or add up elements, from a list of every kind with small
//! parameters.

use std::sync::LazyLock;

use gradus_core::primitives::elementwise::{Add, Mul, Neg};
use gradus_core::primitives::reduce::{ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum};
use gradus_core::primitives::shaping::{Broadcast, Concatenate, Pad, Permute, Reshape, Reverse, Slice};
use gradus_core::primitives::{BUILT_IN, Op};
use gradus_core::program::{Builder, Constant};
use gradus_core::{Array, DType, Dim, Location, Program, Scalar, Shape, Type};

use crate::support::{Expr, Seen, Share, inputs_for};

const X: Expr = Expr::In(0);
const Y: Expr = Expr::In(1);

pub fn ty(dtype: DType, dims: &[usize]) -> Type {
    Type::new(dtype, dims)
}

pub fn number(dtype: DType, dims: &[usize], value: f64) -> Expr {
    Expr::Lit(Constant::splat(ty(dtype, dims), Scalar::F64(value).cast(dtype)))
}

/// Every order of the numbers below n.
pub fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(n - 1);
    shorter.iter().flat_map(|p| (0..n).map(|at| [&p[..at], &[n - 1], &p[at..]].concat())).collect()
}

/// Every set of the numbers below n.
pub fn subsets(n: usize) -> Vec<Vec<usize>> {
    (0..1usize << n).map(|bits| (0..n).filter(|i| bits >> i & 1 == 1).collect()).collect()
}

/// Every shape of at most three axes with so many elements.
fn shapes_of(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![0], vec![0, 2], vec![2, 0], vec![1, 0, 3]];
    }
    let mut all = vec![vec![count]];
    if count == 1 {
        all.push(Vec::new());
    }
    for a in (1..=count).filter(|a| count.is_multiple_of(*a)) {
        all.push(vec![a, count / a]);
        let rest = count / a;
        all.extend((1..=rest).filter(|b| rest.is_multiple_of(*b)).map(|b| vec![a, b, rest / b]));
    }
    all
}

/// Every operation of the list on a value of these dimensions.
fn catalogue(e: &Expr, dtype: DType, dims: &[usize]) -> Vec<Expr> {
    let rank = dims.len();
    let shape = |dims: &[usize]| Shape::from(dims);
    let one = |op: Op| Expr::of(op, [e.clone()]);
    let mut all = Vec::new();
    if rank > 4 || dims.iter().product::<usize>() > 48 {
        return all;
    }
    all.extend(permutations(rank).into_iter().map(|axes| one(Op::new(Permute { axes }))));
    let shapes = shapes_of(dims.iter().product());
    all.extend(shapes.iter().map(|dims| one(Op::new(Reshape { shape: shape(dims) }))));
    for at in 0..=rank {
        for n in [1, 2] {
            let to = [&dims[..at], &[n], &dims[at..]].concat();
            let axes = (0..=rank).filter(|a| *a != at).collect();
            all.push(one(Op::new(Broadcast { shape: shape(&to), axes })));
        }
    }
    for axis in (0..rank).filter(|a| dims[*a] == 1) {
        for n in [0, 3] {
            let to = [&dims[..axis], &[n], &dims[axis + 1..]].concat();
            all.push(one(Op::new(Broadcast { shape: shape(&to), axes: (0..rank).collect() })));
        }
    }
    let slice = |ranges: &[(usize, usize, usize)]| {
        let pick =
            |f: fn(&(usize, usize, usize)) -> usize| ranges.iter().map(|r| Dim::from(f(r))).collect::<Vec<Dim>>();
        one(Op::new(Slice { start: pick(|r| r.0), limit: pick(|r| r.1), step: ranges.iter().map(|r| r.2).collect() }))
    };
    let whole: Vec<(usize, usize, usize)> = dims.iter().map(|n| (0, *n, 1)).collect();
    all.push(slice(&whole));
    all.push(slice(&dims.iter().map(|n| (1.min(*n), *n, 1)).collect::<Vec<_>>()));
    for axis in 0..rank {
        let n = dims[axis];
        for range in [(1, n, 1), (0, n.saturating_sub(1), 1), (0, n, 2), (1, n, 2), (1, 1, 1)] {
            let mut ranges = whole.clone();
            ranges[axis] = range;
            all.push(slice(&ranges));
        }
    }
    all.extend(subsets(rank).into_iter().map(|axes| one(Op::new(Reverse { axes }))));
    for axis in 0..rank {
        let none = || vec![Dim::from(0usize); rank];
        for (low, high, between) in
            [(-1, 0, 0), (1, 0, 0), (0, 2, 0), (1, -1, 0), (0, 0, 1), (-1, -1, 1), (1, 1, 1), (2, 0, 0), (0, 0, 0)]
        {
            let mut pad = Pad { low: none(), high: none(), interior: vec![0; rank] };
            pad.low[axis] = Dim::from(low as i64);
            pad.high[axis] = Dim::from(high as i64);
            pad.interior[axis] = between;
            let value = if between == 1 { 7.0 } else { 0.0 };
            all.push(Expr::of(Op::new(pad), [e.clone(), number(dtype, &[], value)]));
        }
        let zeros = number(dtype, dims, 0.0);
        let join = || Op::new(Concatenate { axis });
        all.push(one(join()));
        all.push(Expr::of(join(), [e.clone(), e.clone()]));
        all.push(Expr::of(join(), [e.clone(), zeros.clone()]));
        all.push(Expr::of(join(), [zeros, e.clone(), number(dtype, dims, -0.0)]));
    }
    for axes in subsets(rank) {
        all.push(one(Op::new(ReduceSum { axes: axes.clone() })));
        all.push(one(Op::new(ReduceMax { axes: axes.clone() })));
        all.push(one(Op::new(ReduceMin { axes: axes.clone() })));
        all.push(one(Op::new(ReduceProd { axes: axes.clone() })));
        all.push(one(Op::new(ReduceAnd { axes: axes.clone() })));
        all.push(one(Op::new(ReduceOr { axes })));
    }
    all.push(one(Op::fixed(&Neg)));
    all.push(Expr::of(Op::fixed(&Add), [e.clone(), e.clone()]));
    all.push(Expr::of(Op::fixed(&Mul), [e.clone(), number(dtype, dims, 2.0)]));
    all.push(Expr::of(Op::fixed(&Add), [e.clone(), number(dtype, dims, 0.0)]));
    all
}

/// The dimensions of an expression; none if a type rule refuses it.
fn dims_of(e: &Expr, inputs: &[Type]) -> Option<Vec<usize>> {
    let p = e.program(inputs).ok()?;
    p.output_types()[0].shape().iter().map(|d| d.as_usize()).collect()
}

fn check(seen: &mut Seen, e: &Expr, inputs: &[Type]) {
    let Ok(p) = e.program(inputs) else { return };
    // Products of many numbers are exact in any order if these are small.
    seen.check(&p, &inputs_for(inputs, e.has("reduce_prod")));
}

const STARTS: &[&[usize]] = &[&[2, 3], &[1, 3], &[2, 1, 3], &[3], &[2, 1], &[1, 1], &[0, 2], &[2, 2, 2], &[]];

fn chains() -> Seen {
    let mut seen = Seen::default();
    for (dtype, every_day, in_full) in
        [(DType::F64, 24, 8), (DType::I32, 100, 40), (DType::C64, 100, 40), (DType::Bool, 100, 40)]
    {
        let (mut pairs, mut longer) = (Share::one_in(every_day, 1), Share::one_in(10 * every_day, 1));
        let mut triples = Share::one_in(40, in_full);
        for start in STARTS {
            let inputs = [ty(dtype, start)];
            for first in catalogue(&X, dtype, start) {
                let Some(dims) = dims_of(&first, &inputs) else { continue };
                check(&mut seen, &first, &inputs);
                for second in catalogue(&first, dtype, &dims) {
                    if pairs.takes() {
                        check(&mut seen, &second, &inputs);
                    }
                    if !longer.takes() {
                        continue;
                    }
                    let Some(dims) = dims_of(&second, &inputs) else { continue };
                    for third in catalogue(&second, dtype, &dims) {
                        if triples.takes() {
                            check(&mut seen, &third, &inputs);
                        }
                    }
                }
            }
        }
    }
    seen.report("chains");
    seen
}

/// An elementwise operation of two views, and of a view and itself.
fn pairs() -> Seen {
    let mut seen = Seen::default();
    let mut share = Share::one_in(24, 1);
    for start in STARTS {
        let inputs = [ty(DType::F64, start), ty(DType::F64, start)];
        let views = catalogue(&X, DType::F64, start);
        for (i, a) in views.iter().enumerate() {
            let Some(dims) = dims_of(a, &inputs) else { continue };
            for (k, b) in views.iter().enumerate() {
                // Equal ones always: that is what laws are about.
                if (i == k || share.takes()) && dims_of(b, &inputs).as_ref() == Some(&dims) {
                    check(&mut seen, &Expr::of(Op::fixed(&Mul), [a.clone(), b.with(0, 1)]), &inputs);
                    check(&mut seen, &Expr::of(Op::fixed(&Add), [a.clone(), b.clone()]), &inputs);
                }
            }
        }
    }
    seen.report("pairs of views");
    seen
}

/// Sums of pieces among zeros: every place of two pieces, and of a third in what they leave.
fn pieces() -> Seen {
    let mut seen = Seen::default();
    let mut share = Share::one_in(3, 1);
    for dtype in [DType::F64, DType::I32, DType::C64] {
        let pad = |e: &Expr, low: i64, high: i64, value: f64| {
            let (low, high) = (vec![Dim::from(low)], vec![Dim::from(high)]);
            Expr::of(Op::new(Pad { low, high, interior: vec![0] }), [e.clone(), number(dtype, &[], value)])
        };
        for (n, m, total) in [(2, 3, 6), (1, 1, 3), (0, 2, 3), (2, 2, 4)] {
            let inputs = [ty(dtype, &[n]), ty(dtype, &[m])];
            let (n, m) = (n as i64, m as i64);
            for low in -1..=total - n + 1 {
                for other in -1..=total - m + 1 {
                    for value in [0.0, -0.0, 1.0] {
                        let a = pad(&X, low, total - n - low, value);
                        let b = pad(&Y, other, total - m - other, 0.0);
                        let sum = Expr::of(Op::fixed(&Add), [a.clone(), b.clone()]);
                        check(&mut seen, &sum, &inputs);
                        if share.takes() {
                            let rest = number(dtype, &[1], 3.0);
                            for at in 0..total {
                                let third = pad(&rest, at, total - 1 - at, 0.0);
                                check(&mut seen, &Expr::of(Op::fixed(&Add), [sum.clone(), third]), &inputs);
                            }
                        }
                    }
                }
                let parts = [X, number(dtype, &[(total - n) as usize], 0.0)];
                let joined = Expr::of(Op::new(Concatenate { axis: 0 }), parts);
                check(&mut seen, &Expr::of(Op::fixed(&Add), [joined, pad(&Y, low, total - m - low, 0.0)]), &inputs);
            }
        }
    }
    seen.report("sums of pieces");
    seen
}

/// Every sample of every operation as a program of its own. Not those that add up floats: laws may change the order. Nor those whose parts round on their own way, as
/// decompositions do; the checks of primitives hold those near.
fn samples() -> Seen {
    let mut seen = Seen::default();
    for entry in BUILT_IN.iter() {
        for sample in (entry.samples)() {
            let operands: &[Array] = &sample.inputs;
            let mut b = Builder::new("sample");
            let Ok(types) = operands.iter().map(|a| a.ty().cloned()).collect::<gradus_core::Result<Vec<Type>>>() else {
                continue;
            };
            let atoms = types.iter().map(|t| b.input(t.clone()).map(Into::into));
            let Ok(atoms) = atoms.collect::<gradus_core::Result<Vec<gradus_core::program::Atom>>>() else { continue };
            let outputs = match b.equation(sample.op.clone(), &atoms, Location::unknown()) {
                Ok(e) => e.results().map(Into::into).collect(),
                Err(e) => panic!("{}: {e}", entry.name),
            };
            let p: Program = b.finish(outputs);
            let sums = p.to_string();
            let floats = types.iter().any(|t| t.dtype().is_inexact());
            let parts = floats && !sample.op.is_elementwise() && sample.op.expand(&types).is_some();
            if parts || sums.contains("dot_general") || sums.contains("reduce_sum") {
                seen.optimized(&p, gradus_core::optimize::Exactness::Exact);
            } else {
                seen.check(&p, &[operands.to_vec()]);
            }
        }
    }
    seen.report("samples of operations");
    seen
}

static CHAINS: LazyLock<Seen> = LazyLock::new(chains);
static PAIRS: LazyLock<Seen> = LazyLock::new(pairs);
static PIECES: LazyLock<Seen> = LazyLock::new(pieces);
static SAMPLES: LazyLock<Seen> = LazyLock::new(samples);

/// What was seen.
pub fn seen() -> Vec<&'static Seen> {
    vec![&CHAINS, &PAIRS, &PIECES, &SAMPLES]
}

#[test]
fn chains_of_operations_keep_their_bits() {
    assert!(!CHAINS.laws.is_empty());
}

#[test]
fn operations_on_two_views_keep_their_bits() {
    assert!(!PAIRS.laws.is_empty());
}

#[test]
fn sums_of_pieces_keep_their_bits() {
    assert!(!PIECES.laws.is_empty());
}

#[test]
fn samples_of_every_operation_keep_their_bits() {
    assert!(!SAMPLES.laws.is_empty());
}
