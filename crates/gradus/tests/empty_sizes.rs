//! A declared dimension may be 0 wherever a known one may be, and gives the same; a program that cannot do without an element says so.

use gradus::Interpreter;
use gradus::prelude::*;

type Case = (&'static str, fn(&Array) -> Array);

/// Functions of `f64[N, 3]`: every operation that looks at sizes.
const CASES: &[Case] = &[
    ("sum", |x| x.sum()),
    ("sum of columns", |x| x.sum_axes(0)),
    ("sum of rows", |x| x.sum_axes(1)),
    ("mean of rows", |x| x.mean_axes(1)),
    ("mean", |x| x.mean()),
    ("var", |x| x.var()),
    ("std of columns", |x| x.std_axes(0, 0)),
    ("prod", |x| x.prod()),
    ("prod of columns", |x| x.prod_axes(0)),
    ("max", |x| x.max()),
    ("max of columns", |x| x.max_axes(0)),
    ("max of rows", |x| x.max_axes(1)),
    ("min", |x| x.min()),
    ("all", |x| x.gt(0.0).all()),
    ("any of columns", |x| x.gt(0.0).any_axes(0)),
    ("argmax", |x| x.argmax()),
    ("argmax of columns", |x| x.argmax_axis(0)),
    ("argmax of rows", |x| x.argmax_axis(1)),
    ("logsumexp", |x| x.logsumexp()),
    ("logsumexp of columns", |x| x.logsumexp_axes(0)),
    ("logsumexp of rows", |x| x.logsumexp_axes(1)),
    ("softmax along N", |x| x.softmax(0)),
    ("softmax of rows", |x| x.softmax(1)),
    ("cumsum", |x| x.cumsum(0)),
    ("cumprod", |x| x.cumprod(0)),
    ("cummax", |x| x.cummax(0)),
    ("cumsum of rows", |x| x.cumsum(1)),
    ("sort", |x| x.sort(0)),
    ("sort of rows", |x| x.sort(1)),
    ("argsort", |x| x.argsort(0)),
    ("top_k of rows", |x| x.top_k(2).0),
    ("median of rows", |x| x.sort(1).index((.., 1))),
    ("transpose", |x| x.t()),
    ("flip", |x| x.flip(0)),
    ("roll", |x| x.roll(1, 0)),
    ("roll back", |x| x.roll(-2, 0)),
    ("reshape", |x| x.reshape([-1])),
    ("reshape to rows", |x| x.reshape([Dim::from(3usize), x.dim(0)])),
    ("reshape of -1", |x| x.reshape([-1, 3])),
    ("reshape of -1 behind", |x| x.reshape([3, -1])),
    ("expand_dims", |x| x.expand_dims(0)),
    ("pad", |x| x.pad(&[(1, 2), (0, 0)], 0.5)),
    ("pad with less", |x| x.pad(&[(1, -1), (0, 0)], 0.5)),
    ("pad with less in front", |x| x.pad(&[(-1, 1), (0, 0)], 0.5)),
    ("from the first", |x| x.index(1..)),
    ("from the third", |x| x.index(2..)),
    ("to the first", |x| x.index(..1)),
    ("to the second", |x| x.index(..2)),
    ("without the last", |x| x.index(..-1)),
    ("the last two", |x| x.index(-2..)),
    ("between", |x| x.index(1..3)),
    ("differences", |x| x.index(1..) - x.index(..-1)),
    ("every second", |x| x.index(Index::step(.., 2))),
    ("backwards", |x| x.index(Index::step(.., -1))),
    ("concatenate", |x| Array::concatenate([x, x], 0)),
    ("concatenate sides", |x| Array::concatenate([x, x], 1)),
    ("stack", |x| Array::stack([x, x], 0)),
    ("repeat", |x| x.repeat(2, 0)),
    ("tile", |x| x.tile([2, 1])),
    ("broadcast", |x| x.expand_dims(0).broadcast_to([Dim::from(4usize), x.dim(0), Dim::from(3usize)])),
    ("gram", |x| x.t().matmul(x)),
    ("outer gram", |x| x.matmul(&x.t())),
    ("einsum", |x| Array::einsum("ij,kj->ik", [x, x])),
    ("dot", |x| x.dot(&Array::ones::<f64>([3]))),
    ("take of columns", |x| x.take(&Array::from([0, 2]), 1)),
    ("update", |x| x.at((.., 0)).set(1.0)),
    ("update of rows", |x| x.at((..2, ..)).add(1.0)),
    ("where", |x| x.gt(0.0).select(x, x * 2.0)),
    ("scan", |x| scan(|c: &Array, r: &Array| (c + r.sum(), r * 2.0), Array::from(0.0), x).1),
    ("scan's carry", |x| scan(|c: &Array, r: &Array| (c + r.sum(), r * 2.0), Array::from(0.0), x).0),
    ("map", |x| gradus::map(|r: &Array| r.sum(), x)),
    ("vmap", |x| vmap(|r: &Array| r.softmax(0).max())(x)),
    ("grad of sum", |x| grad(|x: &Array| (x * x).sum())(x)),
    ("grad of prod", |x| grad(|x: &Array| x.prod())(x)),
    ("grad of cumprod", |x| grad(|x: &Array| x.cumprod(0).sum())(x)),
    ("grad of cummax", |x| grad(|x: &Array| x.cummax(0).sum())(x)),
    ("grad of sort", |x| grad(|x: &Array| (x.sort(0) * x).sum())(x)),
    ("grad of max of rows", |x| grad(|x: &Array| x.max_axes(1).sum())(x)),
    ("grad of softmax", |x| grad(|x: &Array| (x.softmax(1) * x).sum())(x)),
    ("grad of scan", |x| {
        grad(|x: &Array| scan(|c: &Array, r: &Array| (c * r.sum(), c.clone()), Array::from(2.0), x).1.sum())(x)
    }),
    ("grad of slices", |x| grad(|x: &Array| (x.index(1..) * x.index(..-1)).sum())(x)),
    ("grad of concatenate", |x| grad(|x: &Array| (Array::concatenate([x, x], 0)).sin().sum())(x)),
    ("grad of gram", |x| grad(|x: &Array| x.t().matmul(x).sin().sum())(x)),
    ("iota", |x| Array::iota(DType::F64, [x.dim(0)], 0)),
    ("counting", |x| x.sum() + Array::from_dim(&x.dim(0), DType::F64)),
    ("searchsorted", |x| x.index((.., 0)).searchsorted(&Array::from([0.5, 1.0]))),
    ("trace of gram", |x| x.matmul(&x.t()).trace()),
    ("tril", |x| x.matmul(&x.t()).tril(0)),
    ("one_hot", |x| x.argmax_axis(1).one_hot(3, DType::F64)),
    ("cond", |x| cond(x.sum().gt(0.0), |x: &Array| x * 2.0, |x: &Array| x.clone(), x)),
    ("while", |x| while_loop(|x: &Array| x.sum().gt(1.0), |x| x * 0.5, x.clone())),
    ("checkpoint", |x| grad(checkpoint(|x: &Array| x.sin().sum()))(x)),
    ("norm", |x| x.norm()),
];

/// Equal but for rounding, NaN included.
fn alike(a: &Array, b: &Array) -> bool {
    let numbers = |a: &Array| a.cast(DType::F64).to_vec::<f64>().unwrap();
    let near = |(a, b): (&f64, &f64)| a == b || (a - b).abs() < 1e-12 || a.is_nan() && b.is_nan();
    a.ty().unwrap() == b.ty().unwrap() && numbers(a).iter().zip(&numbers(b)).all(near)
}

#[test]
fn row_s4_zero_is_a_size_like_any_other() {
    for (name, f) in CASES {
        let interpreted = jit(*f).symbolic("f64[N, 3]").backend(Interpreter);
        let compiled = jit(*f).symbolic("f64[N, 3]").tier(Tier::Embedded);
        for n in [0usize, 3, 0, 5] {
            let x = Array::arange(0.0, 3.0 * n as f64, 1.0).reshape([n, 3]) * 0.25;
            let known = f(&x).ok();
            for (way, g) in [("interpreted", &interpreted), ("compiled", &compiled)] {
                match (g(&x).ok(), &known) {
                    (Ok(have), Ok(want)) => {
                        assert!(alike(&have, want), "{name}, N = {n}, {way}: {have:?} is not {want:?}")
                    }
                    (Err(e), Ok(_)) => panic!("{name}, N = {n}, {way}: {e}"),
                    (Ok(y), Err(e)) => panic!("{name}, N = {n}, {way}: {y:?}, but without symbols {e}"),
                    (Err(_), Err(_)) => {}
                }
            }
        }
        assert!(compiled.stats().traces <= 2, "{name}: {:?}", compiled.stats());
    }
}

/// What is impossible without elements, or declared to be, is refused with its condition.
#[test]
fn row_s4_what_needs_an_element_refuses_none() {
    let nothing = Array::zeros::<f64>([0]);
    let first = jit(|x: &Array| x.index(0) * 2.0).symbolic("f64[N]");
    let largest = jit(|x: &Array| x.argmax()).symbolic("f64[N]");
    let declared = jit(|x: &Array| x.index(1..)).symbolic("f64[N] where N >= 1");
    for f in [first, largest, declared] {
        let e = f(&nothing).ok().unwrap_err();
        assert!(e.kind() == ErrorKind::Constraint && e.to_string().contains("N=0 (dimension 0 of argument 0)"), "{e}");
        assert_eq!(f(&Array::from([1.0, 2.0])).ok().map(|_| ()), Ok(()));
    }
    // One symbol has one size, none among others.
    let two = jit(|x: &Array, y: &Array| x.index(1..).sum() + y.sum()).symbolic("f64[N], f64[N]");
    let e = two(&nothing, &Array::from([1.0])).ok().unwrap_err();
    assert!(e.kind() == ErrorKind::Signature, "{e}");
    assert_eq!(two(&nothing, &nothing).item::<f64>().unwrap(), 0.0);
}
