//! One program for every size: declared dimensions through derivatives, batches, control flow and machine code.

use gradus::Interpreter;
use gradus::prelude::*;

/// Numbers without a pattern, the same in every run.
fn numbers(dims: &[usize], seed: u64) -> Array {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let count: usize = dims.iter().product();
    let values: Vec<f64> = (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f64 / (1 << 24) as f64 - 0.5
        })
        .collect();
    Array::from_vec(values, dims.to_vec())
}

fn mlp(w: &(Array, Array, Array), x: &Array, y: &Array) -> Array {
    let hidden = (x.dot(&w.0) + &w.1).tanh();
    let miss = hidden.dot(&w.2) - y;
    (&miss * &miss).mean()
}

/// One head of attention over a batch of sequences of any length.
fn attention(w: &(Array, Array, Array), x: &Array) -> Array {
    let (q, k, v) = (x.dot(&w.0), x.dot(&w.1), x.dot(&w.2));
    let weights = (Array::einsum("bqd,bkd->bqk", [&q, &k]) / 4.0).softmax(-1);
    Array::einsum("bqk,bkd->bqd", [&weights, &v]).tanh().sum()
}

fn recurrent(w: &Array, xs: &Array) -> Array {
    let start = Array::zeros::<f64>([xs.dim(1), 4.into()]);
    let step = |h: &Array, x: &Array| {
        let h = (h.dot(w) + x).tanh();
        (h.clone(), h.sum())
    };
    let (last, sums) = scan(step, start, xs);
    (&last * &last).mean() + sums.mean()
}

fn same(have: &Array, want: &Array, what: &str) {
    assert_eq!(have.shape(), want.shape(), "{what}");
    let (have, want) = (have.to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
    for (a, b) in have.iter().zip(&want) {
        assert!((a - b).abs() <= 1e-11 * (1.0 + b.abs()), "{what}: {a} is not {b}");
    }
}

/// The compiler is asked once for fifty sizes, and the gradients are those of programs made for each size.
#[test]
fn row_s4_one_compilation_serves_fifty_sizes() {
    let w = (numbers(&[16, 8], 1), numbers(&[8], 2), numbers(&[8, 3], 3));
    let heads = (numbers(&[4, 6], 4), numbers(&[4, 6], 5), numbers(&[4, 6], 6));
    let square = numbers(&[4, 4], 7);
    for tier in [Tier::Embedded, Tier::Llvm] {
        let g = jit(grad(mlp)).symbolic("_, f64[B, 16], f64[B, 3]").tier(tier);
        let a = jit(grad(attention)).symbolic("_, f64[B, T, 4]").tier(tier);
        let r = jit(grad(recurrent)).symbolic("_, f64[T, B, 4]").tier(tier);
        for b in 1..=50 {
            let (x, y) = (numbers(&[b, 16], 10), numbers(&[b, 3], 11));
            let (have, want) = (g(&w, &x, &y), grad(mlp)(&w, &x, &y));
            same(&have.0, &want.0, "mlp");
            same(&have.1, &want.1, "mlp");
            same(&have.2, &want.2, "mlp");
            let x = numbers(&[1 + b % 3, b, 4], 12);
            let (have, want) = (a(&heads, &x), grad(attention)(&heads, &x));
            same(&have.0, &want.0, "attention");
            same(&have.2, &want.2, "attention");
            let x = numbers(&[b, 1 + b % 5, 4], 13);
            same(&r(&square, &x), &grad(recurrent)(&square, &x), "recurrent");
        }
        for stats in [g.stats(), a.stats(), r.stats()] {
            assert_eq!((stats.traces, stats.compiles + stats.shared, stats.misses, stats.hits), (1, 1, 1, 49));
        }
    }
}

/// Batches, forward mode and second derivatives keep the symbol, and a batch axis may be one.
#[test]
fn row_s4_every_transformation_takes_symbols() {
    let f = |w: &Array, x: &Array| (x * w).sin().sum() * x.mean();
    let each = jit(vmap(f).axes((None, Some(0)))).symbolic("f64[D], f64[B, D]");
    let hessian = jit(hessian(|x: &Array| (x * x * x).sum() * x.dim(0))).symbolic("f64[D]");
    let forward =
        jit(|x: &Array, t: &Array| jvp(|x: &Array| (x.exp() * x).cumsum(0), x, t).1).symbolic("f64[N], f64[N]");
    for n in [1, 2, 5, 20] {
        let (w, x) = (numbers(&[n], 1), numbers(&[3, n], 2));
        same(&each(&w, &x), &vmap(f).axes((None, Some(0)))(&w, &x), "vmap");
        let x = numbers(&[n], 3);
        let h = hessian(&x).to_vec::<f64>().unwrap();
        let xs = x.to_vec::<f64>().unwrap();
        for (i, h) in h.iter().enumerate() {
            let want = if i % (n + 1) == 0 { 6.0 * xs[i % n] * n as f64 } else { 0.0 };
            assert!((h - want).abs() < 1e-12, "{h} {want}");
        }
        let t = numbers(&[n], 4);
        let (_, want) = jvp(|x: &Array| (x.exp() * x).cumsum(0), &x, &t);
        same(&forward(&x, &t), &want, "jvp");
    }
    assert_eq!(each.stats().compiles + each.stats().shared, 1);
    assert_eq!(hessian.stats().compiles + hessian.stats().shared, 1);
}

/// Dimensions enter shapes and numbers as expressions.
#[test]
fn row_s4_dimensions_are_computed_with() {
    let f = jit(|x: &Array| {
        let n = x.dim(0);
        let twice = Array::concatenate([x, x], 0).reshape([Dim::from(2usize), n.clone()]);
        let counted = Array::iota(DType::F64, [n.clone() * 2 + 1], 0).sum();
        let padded = x.pad(&[(Dim::from(1), n.clone())], 0.0).index(..n.clone() + 1);
        let tail = x.index(n.clone() - 1..) + x.index(n.clone() - 1) * 0.0;
        twice.sum() + counted + padded.sum() * &Array::from_dim(&n, DType::F64) + tail.sum()
    })
    .symbolic("f64[N] where N >= 1");
    for n in 1..20usize {
        let x = numbers(&[n], 5);
        let xs = x.to_vec::<f64>().unwrap();
        let sum: f64 = xs.iter().sum();
        let want = 2.0 * sum + (2 * n * (2 * n + 1) / 2) as f64 + sum * n as f64 + xs[n - 1];
        let have = f(&x).item::<f64>().unwrap();
        assert!((have - want).abs() < 1e-9, "{n}: {have} {want}");
    }
    assert_eq!(f.stats().compiles, 1);
}

/// What does not fit names the argument, the symbol and both numbers.
#[test]
fn row_s4_what_does_not_fit_says_which_symbol() {
    let f = jit(|x: &Array, y: &Array| x.dot(y).sum()).symbolic("f64[B, K], f64[K, 2*K] where B >= 2, K % 2 == 0");
    let error = |x: &Array, y: &Array| f(x, y).item::<f64>().unwrap_err();
    assert!(f(&numbers(&[3, 4], 1), &numbers(&[4, 8], 2)).item::<f64>().is_ok());
    let e = error(&numbers(&[3, 4], 1), &numbers(&[4, 7], 2));
    assert_eq!(e.kind(), ErrorKind::Signature);
    assert!(e.to_string().contains("K=4 (dimension 1 of argument 0)") && e.to_string().contains('7'), "{e}");
    let e = error(&numbers(&[1, 4], 1), &numbers(&[4, 8], 2));
    assert_eq!(e.kind(), ErrorKind::Constraint);
    assert!(e.to_string().contains("B>=2") && e.to_string().contains("B=1 (dimension 0 of argument 0)"), "{e}");
    let e = error(&numbers(&[3, 3], 1), &numbers(&[3, 6], 2));
    assert!(e.to_string().contains("K%2==0") && e.to_string().contains("K=3"), "{e}");
    let e = error(&numbers(&[3], 1), &numbers(&[3, 6], 2));
    assert!(e.to_string().contains("argument 0") && e.to_string().contains("symbolic.rs"), "{e}");
    // What the program itself demands is found by the trace.
    let g = jit(|x: &Array| x.reshape([2, -1])).symbolic("f64[N]");
    assert!(g(&numbers(&[6], 1)).ok().is_ok());
    let e = g(&numbers(&[7], 1)).ok().unwrap_err();
    assert!(e.to_string().contains("N=7"), "{e}");
    let g = jit(|x: &Array, y: &Array| x + y).symbolic("f64[N], f64[M]");
    assert!(g(&numbers(&[6], 1), &numbers(&[6], 1)).ok().is_ok());
    let e = g(&numbers(&[7], 1), &numbers(&[6], 1)).ok().unwrap_err();
    assert!(e.to_string().contains("N=7") && e.to_string().contains("M=6"), "{e}");
    // Numbers of a dimension are not there while tracing.
    let g = jit(|x: &Array| match x.known_dims() {
        Ok(dims) => x * dims[0],
        Err(e) => e.into(),
    })
    .symbolic("f64[N]");
    let e = g(&numbers(&[7], 1)).ok().unwrap_err();
    assert!(
        e.kind() == ErrorKind::NotConcrete
            && e.to_string().contains("symbolic.rs")
            && e.to_string().contains("x.dim(i)"),
        "{e}"
    );
}

/// The arrays of a structure are declared one by one, and a bad declaration is the call's error.
#[test]
fn structures_are_declared_array_by_array() {
    let f = jit(|(x, w): &(Array, Array), s: &Array| (x * w).sum() * s).symbolic("(f64[N], _), _");
    for n in 1..5 {
        let (x, w, s) = (numbers(&[n], 1), numbers(&[1], 2), Array::from(2.0));
        let want = (&x * &w).sum() * &s;
        same(&f(&(x, w), &s), &want, "structure");
    }
    assert_eq!(f.stats().compiles, 1);
    // Each argument has its entry: a declaration that is too short says nothing of the last ones, one too long of none.
    let plus = |x: &Array, y: &Array| x + y;
    for text in ["f64[N]", "f64[N], f64[N], _"] {
        let (f, two) = (jit(plus).symbolic(text), Array::from([1.0, 2.0]));
        let errors = [f(&two, &two).ok().unwrap_err(), f.trace(&two, &two).map(|_| ()).unwrap_err()];
        for e in errors {
            let says = ["takes 2 arguments", text, "`_`"].iter().all(|t| e.to_string().contains(t));
            assert!(e.kind() == ErrorKind::Signature && says, "{e}");
        }
    }
    let f = jit(|(x, w): &(Array, Array)| (x * w).sum()).symbolic("f64[N]");
    let e = f(&(numbers(&[1], 1), numbers(&[1], 1))).ok().unwrap_err();
    assert!(e.to_string().contains("2 arrays"), "{e}");
    let f = jit(|x: &Array| x.sum()).symbolic("f64[N");
    let e = f(&numbers(&[1], 1)).ok().unwrap_err();
    assert!(e.to_string().contains("symbolic.rs") && e.to_string().contains("cannot be read"), "{e}");
}

/// The interpreter binds sizes too, and a staged function inside another keeps its symbols.
#[test]
fn every_backend_and_nesting_takes_symbols() {
    let inner = jit(|x: &Array| (x * x).mean());
    let f = jit(grad(move |x: &Array| inner(x) * x.sum())).symbolic("f64[N]");
    let i = jit(grad(|x: &Array| (x * x).mean() * x.sum())).symbolic("f64[N]").backend(Interpreter);
    for n in 1..8 {
        let x = numbers(&[n], n as u64);
        same(&f(&x), &i(&x), "backends");
    }
    assert_eq!(f.stats().traces, 1);
}

/// Sizes that are met often get a program of their own if that is asked for, with the same results.
#[test]
fn hot_sizes_are_specialized_by_choice() {
    let f = jit(grad(|x: &Array| (x * x).sin().sum())).symbolic("f64[N]").specialize_after(3);
    let plain = jit(grad(|x: &Array| (x * x).sin().sum())).symbolic("f64[N]");
    for call in 0..6 {
        for n in [4, 9] {
            let x = numbers(&[n], n as u64);
            same(&f(&x), &plain(&x), "specialized");
        }
        same(&f(&numbers(&[20 + call], 1)), &plain(&numbers(&[20 + call], 1)), "others");
    }
    assert_eq!((f.stats().specialized, f.stats().misses), (2, 1));
    assert_eq!(plain.stats().specialized, 0);
}

/// What the budget proposes can be pasted: with it, the same calls need one program.
#[test]
fn row_s2_the_proposal_is_a_declaration_that_works() {
    type Model = (Array, (Array, Array));
    let f = |w: &Array, (x, (y, z)): &Model| (x.dot(w) * y).sum() + z.sum();
    let model = |b: usize| (numbers(&[b, 3], 1), (numbers(&[b], 2), numbers(&[2], 3)));
    let w = numbers(&[3], 4);
    let strict = jit(f).budget(2).on_budget(OnBudget::Error);
    let mut message = None;
    for b in 1..6 {
        message = message.or(strict(&w, &model(b)).item::<f64>().err().map(|e| e.to_string()));
    }
    let message = message.expect("the budget is exceeded");
    let text = message.split(".symbolic(\"").nth(1).and_then(|t| t.split('"').next()).expect(&message);
    assert_eq!(text, "_, (f64[B, 3], f64[B], _)");
    let declared = jit(f).symbolic(text).budget(2).on_budget(OnBudget::Error);
    for b in 1..6 {
        same(&declared(&w, &model(b)), &f(&w, &model(b)), "declared");
    }
    assert_eq!(declared.stats().traces, 1);
}

/// The derivatives of a cumulative product of any length: numbers by leaving factors out, zeros among them, and no array
/// in any of the programs that grows with the square of the length.
#[test]
fn row_s4_products_have_derivatives_in_linear_memory() {
    let weights = |n: usize| (0..n).map(|i| 1.0 - 0.3 * i as f64).collect::<Vec<f64>>();
    let f = |x: &Array, w: &Array| (x.cumprod(0) * w).sum();
    let f_back = |x: &Array, w: &Array| (x.flip(0).cumprod(0).flip(0) * w.flip(0)).sum();
    let whole = |x: &Array, _: &Array| x.prod();
    let product = |x: &[f64], without: &[usize]| -> f64 {
        x.iter().enumerate().filter(|(i, _)| !without.contains(i)).map(|(_, v)| v).product()
    };
    type Loss = fn(&Array, &Array) -> Array;
    // Which prefix products a loss adds up, for its own order of places.
    let cases: [(Loss, bool, bool); 3] = [(f, false, false), (f_back, true, false), (whole, false, true)];
    for (f, reverse, last_only) in cases {
        let first = jit(move |x: &Array, w: &Array| grad(f)(x, w)).symbolic("f64[N], f64[N]");
        let second = jit(move |x: &Array, w: &Array, v: &Array| hvp(|x: &Array| f(x, w))(x, v))
            .symbolic("f64[N], f64[N], f64[N]");
        let spec = || Array::spec("f64[N]");
        for text in [
            first.trace(&spec(), &spec()).unwrap().program().to_string(),
            second.trace(&spec(), &spec(), &spec()).unwrap().program().to_string(),
        ] {
            assert!(text.contains("[N]"), "{text}");
            let square = ["N,N", "N*N", "N^2", "N,1,N"].iter().any(|s| text.contains(s));
            assert!(!square, "an array that grows with the square of the length:\n{text}");
        }
        for mut x in [vec![2.0], vec![0.5, -3.0, 1.25, 2.0], vec![2.0, 0.0, -3.0, 0.5], vec![0.0, 1.5, 0.0, -2.0, 0.0]]
        {
            let n = x.len();
            let (w, v) = (weights(n), weights(n).iter().map(|w| w * w - 0.4).collect::<Vec<f64>>());
            let arrays = [&x, &w, &v].map(|a| Array::from(a.clone()));
            let have = first(&arrays[0], &arrays[1]).to_vec::<f64>().unwrap();
            let have_second = second(&arrays[0], &arrays[1], &arrays[2]).to_vec::<f64>().unwrap();
            let (mut order, mut v) = ((0..n).collect::<Vec<_>>(), v.clone());
            if reverse {
                order.reverse();
                x.reverse();
                v.reverse();
            }
            for j in 0..n {
                let ends = (j..n).filter(|i| !last_only || i + 1 == n);
                let weight = |i: usize| if last_only { 1.0 } else { w[i] };
                let want: f64 = ends.clone().map(|i| weight(i) * product(&x[..=i], &[j])).sum();
                assert!((have[order[j]] - want).abs() < 1e-12, "{x:?}, {j}: {have:?} is not {want}");
                let terms = ends.flat_map(|i| (0..=i).filter(|k| *k != j).map(move |k| (i, k)));
                let want: f64 = terms.map(|(i, k)| weight(i) * v[k] * product(&x[..=i], &[j, k])).sum();
                assert!((have_second[order[j]] - want).abs() < 1e-12, "{x:?}, {j}: {have_second:?} is not {want}");
            }
        }
    }
}

#[test]
fn row_s4_a_condition_survives_the_operation_that_asked_for_it() {
    // Where the update lies is a condition on N; its derivative does not need the slice that asks for it.
    fn set(x: &Array) -> Array {
        x.at(4..6).set(1.0).sin().sum()
    }
    fn one(x: &Array) -> Array {
        x.at(5).set(1.0).sin().sum()
    }
    let (short, long) = (numbers(&[3], 1), numbers(&[7], 2));
    for f in [set, one] {
        for on_interpreter in [true, false] {
            let made = |g: Fun<(Array,), Array>, declared: &str| {
                let g = if on_interpreter { g.backend(Interpreter) } else { g.tier(Tier::Embedded) };
                g.symbolic(declared)
            };
            let sums = move |x: &Array| x * grad(f)(x).sum();
            let all = [
                (made(jit(grad(f)), "f64[N]"), false),
                (made(jit(jacfwd(f)), "f64[N]"), false),
                (made(jit(jacrev(f)), "f64[N]"), false),
                (made(jit(vmap(sums)), "f64[2, N]"), true),
            ];
            for (g, batched) in all {
                let input = |x: &Array| if batched { Array::stack([x, x], 0) } else { x.clone() };
                let e = g(&input(&short)).ok().unwrap_err();
                assert_eq!(e.kind(), ErrorKind::Constraint, "{e}");
                assert!(e.to_string().contains("N>=6"), "{e}");
                let want = if batched { vmap(sums)(&input(&long)) } else { grad(f)(&long) };
                let (have, want) = (g(&input(&long)).to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
                assert!(have.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-12), "{have:?} is not {want:?}");
            }
        }
    }
}

#[test]
fn row_s4_a_variance_of_too_few_has_no_value() {
    for (ddof, n) in [(0, 3), (1, 3), (3, 3), (3, 2), (1, 1), (1, 0), (0, 0), (5, 2)] {
        let x = numbers(&[n], 3);
        let known = x.var_axes(0, ddof).item::<f64>().unwrap();
        for tier in [None, Some(Tier::Embedded), Some(Tier::Llvm)] {
            let f = jit(move |x: &Array| x.var_axes(0, ddof)).symbolic("f64[N]");
            let f = match tier {
                None => f.backend(Interpreter),
                Some(tier) => f.tier(tier),
            };
            let have = f(&x).item::<f64>().unwrap();
            let same = have == known || (have.is_nan() && known.is_nan()) || (have - known).abs() < 1e-15;
            assert!(same, "{n} numbers, ddof {ddof}: {have} is not {known}");
        }
    }
}

#[test]
fn row_s4_windows_of_symbolic_size_are_compiled() {
    let all: [(&str, fn(&Array) -> Array); 7] = [
        ("concatenate", |x| Array::concatenate([x.clone(), x * 2.0], -1)),
        ("pad", |x| x.pad(&[(1, 1), (2, 1)], 0.5)),
        ("roll", |x| x.roll(1, -1)),
        ("every second", |x| x.at(Index::step(.., 2)).add(0.5)),
        ("gradient of pad", |x| grad(|x: &Array| x.pad(&[(1, 1), (2, 1)], 0.5).sin().sum())(x)),
        ("gradient of every second", |x| grad(|x: &Array| x.index(Index::step(.., 2)).sin().sum())(x)),
        ("gradient of a product", |x| grad(|x: &Array| x.dot(&x.t()).sin().sum())(x)),
    ];
    for (name, f) in all {
        for declared in ["f64[N, M]", "f64[N, 3]"] {
            for tier in [Tier::Embedded, Tier::Llvm] {
                // A plan that is refused is an error here, and no wrong number.
                let compiled = jit(f).symbolic(declared).tier(tier).strict();
                for (n, m) in [(4, 5), (1, 1), (2, 3), (0, 3), (9, 3), (33, 3), (17, 16), (5, 0)] {
                    if declared == "f64[N, 3]" && m != 3 {
                        continue;
                    }
                    let x = numbers(&[n, m], 5);
                    let context = format!("{name}, {declared} of {n} by {m}, {tier:?}");
                    let (have, want) = (compiled(&x), f(&x));
                    match want.to_vec::<f64>() {
                        Ok(want) => {
                            let have = have.to_vec::<f64>().unwrap_or_else(|e| panic!("{context}: {e}"));
                            assert_eq!(have.len(), want.len(), "{context}");
                            assert!(have.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-11), "{context}");
                        }
                        Err(_) => assert!(have.to_vec::<f64>().is_err(), "{context}"),
                    }
                }
            }
        }
    }
}

/// A condition that leaves one number for a symbol does not make the others idle, and an unmet one is said in the same way by every backend.
#[test]
fn every_condition_is_asked_where_one_number_is_left() {
    let f = |x: &Array| x + Array::ones::<f64>([6]);
    for tier in [Tier::Embedded, Tier::Llvm] {
        let (compiled, interpreted) =
            (jit(f).symbolic("f64[N]").tier(tier), jit(f).symbolic("f64[N]").backend(Interpreter));
        assert_eq!(compiled(&numbers(&[6], 1)).to_vec::<f64>(), interpreted(&numbers(&[6], 1)).to_vec::<f64>());
        for n in [5, 7] {
            let kind = |a: Array| a.ok().unwrap_err().kind();
            assert_eq!(kind(compiled(&numbers(&[n], 1))), ErrorKind::Constraint);
            assert_eq!(kind(interpreted(&numbers(&[n], 1))), ErrorKind::Constraint);
        }
        let contradiction = jit(f).symbolic("f64[N] where N >= 7").tier(tier);
        assert_eq!(contradiction(&numbers(&[6], 1)).ok().unwrap_err().kind(), ErrorKind::Constraint);
    }
}
