//! Programs that anyone writes and whose compiled code was wrong once: every tier against the interpreter, with inputs that change between calls (memory
//! that is used again hides a value that was read too early).

use gradus::Interpreter;
use gradus::prelude::*;

/// Numbers that look random and are the same in every run; another `salt`, other numbers.
fn data(shape: &[usize], salt: usize) -> Array {
    let n: usize = shape.iter().product();
    let numbers = (0..n).map(|i| ((i * 7919 + 13 + salt * 271) % 1009) as f64 / 500.0 - 1.0).collect();
    Array::from_vec::<f64>(numbers, shape.to_vec())
}

fn numbers(a: &Array) -> Vec<f64> {
    a.to_vec::<f64>().unwrap_or_else(|e| panic!("{e}"))
}

fn assert_close(have: &Array, want: &Array, context: &str) {
    assert_eq!(have.ty().unwrap(), want.ty().unwrap(), "{context}");
    let (have, want) = (numbers(have), numbers(want));
    let largest = want.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    for (k, (h, w)) in have.iter().zip(&want).enumerate() {
        assert!((h - w).abs() <= 1e-11 * largest, "{context}, element {k}: {h} is not {w}");
    }
}

/// A function of one array on every tier, three calls with different numbers each, earlier results looked at again at the end.
fn check<F: Fn(&Array) -> Array + Copy + Send + Sync + 'static>(name: &str, f: F, shape: &[usize]) {
    for tier in [Tier::Embedded, Tier::Llvm] {
        let (compiled, interpreted) = (jit(f).tier(tier), jit(f).backend(Interpreter));
        let mut seen = Vec::new();
        for salt in 0..3 {
            let x = data(shape, salt);
            let (have, want) = (compiled(&x), interpreted(&x));
            let context = format!("{name} of {shape:?}, {tier:?}, call {salt}");
            assert_close(&have, &want, &context);
            seen.push((have, want, context));
        }
        for (have, want, context) in &seen {
            assert_close(have, want, &format!("{context}, looked at later"));
        }
    }
}

#[test]
fn row_r7_one_array_on_both_sides_of_a_product() {
    for (n, k) in [(7, 2), (8, 2), (9, 7), (8, 8), (16, 4), (17, 3), (32, 2), (33, 2), (64, 1), (65, 1)] {
        check("x x'", |x| x.matmul(&x.t()), &[n, k]);
        check("its gradient", |x| grad(|x: &Array| x.matmul(&x.t()).sin().sum())(x), &[n, k]);
        let by_rows = |x: &Array| {
            let all = x.clone();
            vmap(move |r: &Array| all.matmul(r))(x)
        };
        check("by rows", by_rows, &[n, k]);
    }
    for n in [4, 5, 8, 9] {
        check("x x", |x| x.matmul(x), &[n, n]);
    }
}

#[test]
fn row_r7_a_factor_is_made_before_it_is_read() {
    for n in [8, 9, 16, 17, 33, 64, 65] {
        let product = |x: &Array| {
            let (a, v) = (x.index(..-1), x.index(-1));
            a.matmul(&(&v * 2.0)) + a.matmul(&v.tanh()) + a.matmul(&v.softmax(0))
        };
        check("a (2v)", product, &[n + 1, n]);
        check(
            "a (a v)",
            |x| {
                let a = x.index(..-1);
                a.matmul(&a.matmul(&x.index(-1)))
            },
            &[n + 1, n],
        );
    }
    check("x tanh(w)", |x| x.index(5..).matmul(&x.index(..5).tanh()), &[30, 5]);
    for n in [7, 8, 9, 12, 17] {
        check("m (m - 1)'", |x| grad(|m: &Array| m.matmul(&(m - 1.0).t()).sin().sum())(x), &[n, 3]);
        check("m tanh(m)", |x| grad(|m: &Array| m.matmul(&m.tanh()).sin().sum())(x), &[n, n]);
    }
}

#[test]
fn row_r7_results_with_their_axes_in_another_order() {
    let sizes =
        [[9, 9, 7], [3, 9, 7], [16, 33, 2], [2, 9, 33], [1, 9, 9], [64, 4, 3], [9, 17, 16], [9, 17, 17], [2, 9, 17]];
    for s in sizes {
        check("softmax turned", |x| x.softmax(2).swap_axes(0, 1), &s);
        check("softmax turned around", |x| x.softmax(2).transpose([2, 0, 1]), &s);
        check("centred and turned", |x| (x - x.mean_keep(2)).swap_axes(0, 1), &s);
        check("beside a sum", |x| (x * 2.0).swap_axes(0, 1) + x.sum(), &s);
        check(
            "padded sums",
            |x| x.sum_axes(2).expand_dims(2).pad(&[(0, 0), (0, 0), (1, 1)], 0.0).transpose([0, 2, 1]),
            &s,
        );
        check(
            "padded largest",
            |x| x.max_axes(2).expand_dims(2).pad(&[(0, 0), (0, 0), (2, 1)], 0.5).transpose([0, 2, 1]),
            &s,
        );
    }
    for s in [[3, 9, 7], [9, 9, 7], [2, 9, 33], [40, 40, 3]] {
        for tier in [Tier::Embedded, Tier::Llvm] {
            let both = |x: &Array| ((x * 2.0).swap_axes(0, 1), x.sum(), x.max_axes(2));
            let x = data(&s, 1);
            let (have, want) = (jit(both).tier(tier)(&x), both(&x));
            assert_close(&have.0, &want.0, "turned");
            assert_close(&have.1, &want.1, "sum");
            assert_close(&have.2, &want.2, "largest");
        }
    }
}

#[test]
fn row_r7_a_loop_keeps_the_state_it_updates() {
    // A step that updates its state and also gives it back as it was.
    fn kept(m: &Array) -> Array {
        let zeros = Array::zeros::<f64>(m.known_dims().unwrap());
        let step = |(i, x): &(Array, Array), r: &Array| {
            let new = x.dynamic_update_slice(&r.expand_dims(0), &[i.clone(), Array::from(0_i64)]);
            ((i + 1_i64, new), x.clone())
        };
        scan(step, (Array::from(0_i64), zeros), m).1
    }
    fn kept_view(m: &Array) -> Array {
        let zeros = Array::zeros::<f64>(m.known_dims().unwrap());
        let step = |(i, x): &(Array, Array), r: &Array| {
            let new = x.dynamic_update_slice(&r.expand_dims(0), &[i.clone(), Array::from(0_i64)]);
            ((i + 1_i64, new), x.t())
        };
        scan(step, (Array::from(0_i64), zeros), m).1
    }
    fn compared(m: &Array) -> Array {
        let zeros = Array::zeros::<f64>(m.known_dims().unwrap());
        let step = |(i, x): &(Array, Array), r: &Array| {
            let new = x.dynamic_update_slice(&r.expand_dims(0), &[i.clone(), Array::from(0_i64)]);
            let change = &new - x;
            ((i + 1_i64, new), change)
        };
        scan(step, (Array::from(0_i64), zeros), m).1
    }
    // The old state goes into another carry.
    fn moved(m: &Array) -> Array {
        let start = (Array::from(0_i64), m.clone(), m * 0.0);
        let (_, x, old) = while_loop(
            |(i, ..): &(Array, Array, Array)| i.lt(3_i64),
            |(i, x, _): &(Array, Array, Array)| {
                let new = x.dynamic_update_slice(&(x.index(..1) * 2.0), &[i.clone(), Array::from(0_i64)]);
                (i + 1_i64, new, x.clone())
            },
            start,
        );
        x - old * 3.0
    }
    // Forward substitution: its gradient saves states.
    fn substitution(m: &Array) -> Array {
        let n = m.known_dims().unwrap()[0];
        let step = |(i, x): &(Array, Array), r: &Array| {
            let new = x.dynamic_update_slice(&(r.matmul(x).expand_dims(0) + 1.0).cos(), &[i.clone()]);
            ((i + 1_i64, new), Array::from(0.0))
        };
        let (_, x) = scan(step, (Array::from(0_i64), Array::zeros::<f64>([n])), m).0;
        x.sum()
    }
    for n in [4, 5, 8, 17, 33] {
        check("kept", kept, &[n, n]);
        check("a view kept", kept_view, &[n, n]);
        check("compared", compared, &[n, n]);
        check("moved", moved, &[n, n]);
        check("substitution", substitution, &[n, n]);
        check("gradient of substitution", |m| grad(substitution)(m), &[n, n]);
    }
}

#[test]
fn row_r7_an_update_with_a_part_of_the_array_itself() {
    fn at(k: i64) -> Array {
        Array::from(k)
    }
    for n in [4, 5, 8, 9, 17, 33, 65] {
        check(
            "rows moved on",
            |x| {
                let y = x + 1.0;
                y.dynamic_update_slice(&y.index((..3, ..)), &[at(1), at(0)])
            },
            &[n, n],
        );
        check(
            "columns moved on",
            |x| {
                let y = x + 1.0;
                y.dynamic_update_slice(&y.index((.., ..-1)), &[at(0), at(1)])
            },
            &[n, n],
        );
        check(
            "turned upside down",
            |x| {
                let y = x + 1.0;
                y.dynamic_update_slice(&y.flip(0), &[at(0), at(0)])
            },
            &[n, n],
        );
        check(
            "turned around",
            |x| {
                let y = x + 1.0;
                y.dynamic_update_slice(&y.t(), &[at(0), at(0)])
            },
            &[n, n],
        );
        check(
            "set",
            |x| {
                let y = x + 1.0;
                y.at(1..).set(y.index((..-1, ..)))
            },
            &[n, n],
        );
        check(
            "a row everywhere",
            |x| {
                let y = x + 1.0;
                y.dynamic_update_slice(&y.index((1..2, ..)).broadcast_to(x.known_dims().unwrap()), &[at(0), at(0)])
            },
            &[n, n],
        );
        let window = |x: &Array| {
            let y = x + 1.0;
            let s = (y.index((0, 0)) * 0.0).cast(DType::I64);
            let w = y.dynamic_slice(&[s.clone(), s.clone()], [3, x.known_dims().unwrap()[1]]);
            y.dynamic_update_slice(&w, &[s.clone() + 1_i64, s])
        };
        check("a window of itself", window, &[n, n]);
    }
}

#[test]
fn row_r7_a_branch_that_no_example_takes() {
    let wide = |x: &Array| {
        cond(x.gt(x), |v: &Array| v.broadcast_to([3, 5]), |v: &Array| v.broadcast_to([3, 5]), x).sin().sum()
    };
    let long = |x: &Array| {
        cond(x.gt(x), |v: &Array| v.broadcast_to([40]), |v: &Array| v.broadcast_to([40]) * 2.0, x).sin().sum()
    };
    check("wide", move |xs| vmap(wide)(xs), &[3]);
    check("long", move |xs| vmap(long)(xs), &[3]);
    check("gradient, wide", move |xs| vmap(grad(wide))(xs), &[3]);
    check("gradient, long", move |xs| vmap(grad(long))(xs), &[3]);
}

/// Bits, not only numbers: what is reduced lies in front of 17 to 64 numbers that are unrolled together with it, and many more than 16 behind a reduced
/// axis are combined from the first to the last.
#[test]
fn row_r7_a_reduction_in_front_of_unrolled_numbers_keeps_its_order() {
    fn exactly<F: Fn(&Array) -> Array + Copy + Send + Sync + 'static>(name: &str, f: F, shape: &[usize]) {
        for tier in [Tier::Embedded, Tier::Llvm] {
            let x = data(shape, 1);
            let (have, want) = (jit(f).tier(tier)(&x), jit(f).backend(Interpreter)(&x));
            let bits = |a: &Array| numbers(a).into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(&have), bits(&want), "{name} of {shape:?}, {tier:?}");
        }
    }
    for (n, k) in [(8, 15), (8, 16), (8, 17), (17, 17), (8, 21), (9, 31), (4, 32)] {
        let three = |x: &Array| Array::concatenate([x, &(x * 0.7), x], 1);
        exactly("a product", move |x| three(x).prod_axes(1), &[n, 1, k]);
        exactly("a sum", move |x| three(x).sum_axes(1), &[n, 1, k]);
        exactly("a sum of both", move |x| three(x).sum_axes([0, 1]), &[n, 1, k]);
        exactly("a largest", move |x| three(x).max_axes(1), &[n, 1, k]);
    }
}

/// A product of floats keeps its order: in another one factors may leave the range, and infinity times zero is NaN.
#[test]
fn row_r7_a_product_keeps_its_order() {
    let m = Array::from([[1e300_f64, 0.0], [1e300, 1.0]]);
    let twice = |x: &Array| x.expand_dims([1]).broadcast_to([2, 2, 2]).prod_axes([0, 2]);
    for tier in [Tier::Embedded, Tier::Llvm] {
        assert_eq!(jit(|x: &Array| x.t().prod()).tier(tier)(&m).item::<f64>().unwrap(), 0.0, "{tier:?}");
        let bits = |a: Array| numbers(&a).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(jit(twice).tier(tier)(&m)), bits(twice(&m)), "{tier:?}");
    }
}

/// The power function is within two places of what it means, for an exponent of 1 too: what is rewritten has to have its bits.
#[test]
fn row_r7_a_power_of_one_has_the_bits_of_the_power_function() {
    let x = Array::from([0.4573041531842493_f64, 0.1, 7.3, -2.5, f64::NAN, f64::INFINITY]);
    let want = jit(|x: &Array| x.pow(1.0)).backend(Interpreter)(&x);
    for tier in [Tier::Embedded, Tier::Llvm] {
        let have = jit(|x: &Array| x.pow(1.0)).tier(tier)(&x);
        let bits =
            |a: &Array| numbers(a).into_iter().map(|v| if v.is_nan() { 0 } else { v.to_bits() }).collect::<Vec<_>>();
        assert_eq!(bits(&have), bits(&want), "{tier:?}");
    }
}

/// LLVM puts such quotients into the lanes of one, and took a lane with the quotient of two zeros for zero.
#[test]
fn row_r7_zero_by_what_may_be_zero_is_no_number() {
    let f = |x: &Array| {
        let (below, above) = (x.lt(9.0).cast(DType::F64), x.gt(-9.0).cast(DType::F64));
        x / below + 0.0_f64 / above
    };
    let pair = |x: &Array| {
        let (below, above) = (x.lt(9.0).cast(DType::F64), x.gt(-9.0).cast(DType::F64));
        let y = 0.0_f64 / above;
        (x / below, y.lt(9.0).select(&y, 0.5))
    };
    for (x, sum, parts) in
        [(1.5, 1.5, (1.5, 0.0)), (20.0, f64::INFINITY, (f64::INFINITY, 0.0)), (-20.0, f64::NAN, (-20.0, 0.5))]
    {
        let x = Array::from(x);
        for tier in [Tier::Embedded, Tier::Llvm] {
            let have = jit(f).tier(tier)(&x).item::<f64>().unwrap();
            assert!(have == sum || (have.is_nan() && sum.is_nan()), "{tier:?} of {x:?}: {have} is not {sum}");
            let (first, second) = jit(pair).tier(tier)(&x);
            assert_eq!((first.item::<f64>().unwrap(), second.item::<f64>().unwrap()), parts, "{tier:?} of {x:?}");
        }
    }
}

/// A function of one array whose sizes are symbols, at some sizes: compiled without fault, and with the interpreter's numbers.
fn check_symbolic<F: Fn(&Array) -> Array + Copy + Send + Sync + 'static>(
    name: &str,
    f: F,
    ty: &str,
    shapes: &[&[usize]],
) {
    for tier in [Tier::Embedded, Tier::Llvm] {
        let (compiled, interpreted) = (jit(f).tier(tier).strict().symbolic(ty), jit(f).backend(Interpreter));
        for (salt, shape) in shapes.iter().enumerate() {
            let x = data(shape, salt);
            assert_close(&compiled(&x), &interpreted(&x), &format!("{name} of {shape:?} as {ty}, {tier:?}"));
        }
    }
}

/// A size that has a bound is still not known: nothing was written out for it.
#[test]
fn row_r7_sizes_that_are_small_and_not_known() {
    let falls = |x: &Array| Array::ones::<f64>([5, 1]) * x.index(..Dim::from(8) - x.dim(0));
    let vectors: &[&[usize]] = &[&[4], &[5], &[8]];
    check_symbolic("sum of what falls", move |x| falls(x).sum_axes(0), "f64[A]", vectors);
    check_symbolic("largest of what falls", move |x| falls(x).max_axes(0), "f64[A]", vectors);
    check_symbolic("its exponential", move |x| falls(x).max_axes(0).exp(), "f64[A]", vectors);
    check_symbolic("place", move |x| falls(x).argmax_axis(0).cast(DType::F64), "f64[A]", vectors);
    check_symbolic("turned", move |x| falls(x).t().sum_axes(1), "f64[A]", vectors);
    for shift in [-5, -2, 1, 2, 3, 7] {
        let roll = move |x: &Array| x.sum().broadcast_to((x.dim(0),)).roll(shift, 0) * 1.5;
        check_symbolic("roll", roll, "f64[A]", &[&[1], &[4], &[5], &[8], &[40]]);
        check_symbolic("roll of itself", move |x| x.roll(shift, 0) * x, "f64[A]", &[&[1], &[4], &[5], &[8], &[40]]);
    }
    let last = -1;
    let backwards = move |x: &Array| x.index((.., .., Index::step(1..last, -1))).sin().min_axes([0, 1]).cos();
    check_symbolic("backwards", backwards, "f64[A, A, A]", &[&[2, 2, 2]]);
    let parts = |x: &Array| Array::concatenate([&(x.index(..2) * 2.0), &x.index(2..), &x.index(..1)], 0).exp();
    check_symbolic("short parts", parts, "f64[A]", &[&[2], &[3], &[9], &[70]]);
}

/// Sizes that only a condition says are equal, as a loop's carry does.
#[test]
fn row_r7_sizes_that_a_loop_makes_equal() {
    let f = |x: &Array, y: &Array| fori_loop(0, 1, |_, _: &Array| y.index(1..) * 2.0, x.index(1..));
    let (x, y) = (data(&[5], 1), data(&[5], 2));
    assert_close(&jit(f).strict().symbolic("f64[A], f64[B]")(&x, &y), &f(&x, &y), "a carry of A-1 and B-1");
    let stacked = |x: &Array| {
        let d = x.index(1..);
        let four = Array::stack(vec![&d; 4], 1);
        scan(|_: &Array, x: &Array| (x + 1.0, Array::from(0.0)), d.clone(), &four).0
    };
    let compiled = jit(stacked).strict().symbolic("f64[A]");
    assert_close(&compiled(&x), &stacked(&x), "A-1 and 4");
    let e = compiled(&data(&[7], 1)).to_vec::<f64>().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Constraint, "{e}");
    let nested = |x: &Array, y: &Array, p: &Array| {
        let three = |_: &Array| Array::stack([y.index(0), y.index(1), y.index(0)], 0);
        let c = cond(p, three, |x: &Array| x.clone(), x);
        (c.clone(), fori_loop(0, 2, |_, a: &Array| a + c.index(2), y.index(0)))
    };
    let (x, y, p) = (data(&[3], 3), data(&[2], 4), Array::from(true));
    let (have, want) = (jit(nested).strict().symbolic("f64[A], f64[2], bool[]")(&x, &y, &p), nested(&x, &y, &p));
    assert_close(&have.0, &want.0, "A and 3 beside a condition inside");
    assert_close(&have.1, &want.1, "what is made of it");
}

/// An axis that a condition says is as long as the one it goes to is not repeated.
#[test]
fn row_r7_axes_that_a_condition_makes_equal() {
    for relaxed in [Exactness::Exact, Exactness::Relaxed] {
        for (name, f, ty, shape) in [
            ("sum", (|x: &Array| x.broadcast_to([9, 8]).sum()) as fn(&Array) -> Array, "f64[A]", vec![8]),
            ("whole numbers", |x| x.cast(DType::I32).broadcast_to([9, 8]).sum().cast(DType::F64), "f64[A]", vec![8]),
            ("rows", |x| x.broadcast_to([2, 9, 8]).sum_axes([0, 2]), "f64[A]", vec![8]),
            ("two axes", |x| x.broadcast_to([2, 9, 8]).square().sum_axes([0, 1]), "f64[A]", vec![8]),
            ("mean", |x| x.broadcast_to([9, 8]).mean(), "f64[A]", vec![8]),
            ("one beside", |x| x.broadcast_to([3, 4]).sum(), "f64[A, 1]", vec![3, 1]),
            ("largest", |x| x.broadcast_to([3, 4]).max_axes(1), "f64[A, 1]", vec![3, 1]),
            ("product", |x| x.broadcast_to([9, 8]).matmul(&x.broadcast_to([5, 8]).t()), "f64[A]", vec![8]),
        ] {
            let x = data(&shape, 1) * 100.0;
            let have = jit(f).strict().exactness(relaxed).symbolic(ty)(&x);
            assert_close(&have, &f(&x), &format!("{name} as {ty}, {relaxed:?}"));
        }
    }
}

/// Index vectors that are made where a window is found, for a gather that the library does after all.
#[test]
fn row_r7_indices_of_several_axes() {
    for (x, i) in [([2, 4, 4], [2, 3, 4]), ([3, 5, 9], [2, 2, 5]), ([1, 4, 17], [4, 1, 3])] {
        let values = data(&x, 1);
        let places = (0..i.iter().product::<usize>()).map(|k| (k * 7 % x[1]) as i32).collect::<Vec<_>>();
        let places = Array::from_vec(places, i);
        for axes in [vec![0, 2], vec![0, 1], vec![1, 3], vec![0, 1, 2, 3, 4]] {
            for twice in [false, true] {
                let sums = axes.clone();
                let f = move |x: &Array, i: &Array| {
                    let taken = x.take(i, 1);
                    let taken = if twice { taken * 2.0 } else { taken };
                    taken.sum_axes(&sums[..]) + taken.max_axes(&sums[..])
                };
                let have = jit(f.clone()).strict()(&values, &places);
                assert_close(&have, &f(&values, &places), &format!("{x:?} at {i:?}, axes {axes:?}"));
            }
        }
    }
}

/// A loop that turns an array of one number around.
#[test]
fn row_r7_loops_that_move_one_number() {
    for n in [1, 2] {
        let f = |x: &Array, y: &Array| gradus::map(|_: &Array| gradus::map(|_: &Array| x.flip(0), y), y).sum();
        let (x, y) = (data(&[9], 1), data(&[n], 2));
        assert_close(&jit(grad(f)).strict()(&x, &y), &grad(f)(&x, &y), "the slope of what is turned around twice");
    }
}

#[test]
fn row_r7_long_rows_that_a_loop_changes_and_sums() {
    // A row of more than 65536 elements is gone through in several loops, each over a part of it.
    for n in [65536, 65537, 70001, 131073] {
        let steps = |x: &Array| {
            let start = (x.clone(), x.index((.., 0)));
            let step = |_: &Array, a: &(Array, Array)| {
                let b = &a.0 * 0.75;
                (b.clone(), &a.1 + b.sum_axes(1))
            };
            let (x, sums) = fori_loop(0, 3, step, start);
            Array::concatenate([&x, &sums.expand_dims(1)], 1)
        };
        for tier in [Tier::Embedded, Tier::Llvm] {
            let (compiled, interpreted) = (jit(steps).tier(tier).strict(), jit(steps).backend(Interpreter));
            let x = data(&[2, n], 1);
            assert_close(&compiled(&x), &interpreted(&x), &format!("rows of {n} in a loop, {tier:?}"));
        }
    }
}

#[test]
fn row_r7_picks_of_what_is_as_long_only_by_a_condition() {
    // Of as many places as the axis is long; whether it is repeated only a condition tells.
    let (x, i) = (Array::from([0.0, 1.0, 2.0]), Array::from([2_i64, 0, 1]));
    type Picks = fn(&Array, &Array) -> Array;
    let cases: [(Picks, &str, Array); 6] = [
        (|x, i| x.broadcast_to([3]).take(i, 0), "f64[N], _", x.clone()),
        (|x, i| x.broadcast_to([2, 3]).take(i, 1), "f64[N], _", x.clone()),
        (|x, i| (x * x).broadcast_to([2, 3]).take(i, 1), "f64[N], i64[N]", x.clone()),
        (|x, i| x.broadcast_to((2, i.dim(0))).take(i, 1), "f64[N], i64[M]", x.clone()),
        (|x, i| x.broadcast_to([2, 3, 2]).take(i, 1), "f64[N,2], _", data(&[3, 2], 1)),
        (
            |x, i| {
                let b = |x: &Array| x.broadcast_to([2, 3]).take(i, 1);
                grad(|x: &Array| (b(x).square() * Array::from([1.0, 2.0, 3.0])).sum())(x)
            },
            "f64[N], _",
            x.clone(),
        ),
    ];
    for (k, (f, sizes, x)) in cases.into_iter().enumerate() {
        for tier in [Tier::Embedded, Tier::Llvm] {
            let compiled = jit(f).symbolic(sizes).tier(tier).strict();
            assert_close(&compiled(&x, &i), &f(&x, &i), &format!("case {k}, {tier:?}"));
        }
    }
}

#[test]
fn row_r7_shifted_sums_with_nothing_left() {
    type Shifts = fn(&Array) -> Array;
    let cases: [(Shifts, &[usize]); 7] = [
        (|x| grad(|x: &Array| x.pad(&[(2100_i64, -2100_i64)], 0.0).square().sum())(x), &[2100]),
        (|x| grad(|x: &Array| x.pad(&[(-2100_i64, 2100_i64)], 0.0).square().sum())(x), &[2100]),
        (|x| grad(|x: &Array| x.pad(&[(2099_i64, -2099_i64)], 0.0).square().sum())(x), &[2100]),
        (|x| (x.pad(&[(2100_i64, -2100_i64)], 0.0) * x).pad(&[(-2100_i64, 2100_i64)], 0.0) + x, &[2100]),
        (|x| Array::stack([x, x], 0).square().index((.., 1..1)), &[3, 700]),
        (|x| x.roll(100, 1).index((3..3, ..)).square(), &[4, 1100]),
        (|x| grad(|x: &Array| x.pad(&[(2_i64, -2_i64), (0, 0)], 0.0).square().sum())(x), &[2, 1100]),
    ];
    for (k, (f, shape)) in cases.into_iter().enumerate() {
        let x = data(shape, 1);
        for tier in [Tier::Embedded, Tier::Llvm] {
            assert_close(&jit(f).tier(tier).strict()(&x), &f(&x), &format!("case {k}, {tier:?}"));
        }
    }
}

#[test]
fn row_r7_products_into_sums_of_sizes_that_conditions_tie() {
    let (x, y) = (data(&[9], 1), data(&[9], 2));
    type Sums = fn(&Array, &Array) -> Array;
    let cases: [(Sums, &str); 6] = [
        (
            |x, y| fori_loop(0_i64, 3_i64, |i: &Array, a: &Array| a + y * i.cast(DType::F64), x.clone()),
            "f64[N], f64[9]",
        ),
        (
            |x, y| fori_loop(0_i64, 3_i64, |i: &Array, a: &Array| a + y * i.cast(DType::F64), x.clone()),
            "f64[N], f64[M]",
        ),
        (|x, y| (y + x * x).flip(0), "f64[N], f64[M]"),
        (|x, y| (y - x * x).flip(0), "f64[N], f64[M]"),
        (|x, y| (x * x - y).cumsum(0), "f64[N], f64[M]"),
        (|x, y| (x.index(0..9) + x * y).flip(0), "f64[N], f64[N]"),
    ];
    for (k, (f, sizes)) in cases.into_iter().enumerate() {
        for tier in [Tier::Embedded, Tier::Llvm] {
            let compiled = jit(f).symbolic(sizes).tier(tier).strict();
            assert_close(&compiled(&x, &y), &f(&x, &y), &format!("case {k}, {tier:?}"));
        }
    }
}

#[test]
fn row_r7_tangents_of_shifts_of_symbolic_sizes() {
    // What a shift leaves of an axis is as long as another axis only by a condition.
    let f = |x: &Array, y: &Array| y.maximum(x.diff(1, 1)).pad(&[(0_i64, -1_i64), (0, 0)], 0.0);
    let (x, y) = (data(&[4, 33], 1), data(&[4, 32], 2));
    let pushed = |x: &Array, y: &Array| jvp(|x: &Array| f(x, y), x, &x.sin()).1;
    for tier in [Tier::Embedded, Tier::Llvm] {
        let compiled = jit(pushed).symbolic("f64[A,B], f64[A,C]").tier(tier).strict();
        assert_close(&compiled(&x, &y), &pushed(&x, &y), &format!("{tier:?}"));
    }
}

/// Rows of symbolic width that go two at a time beside an array that is written where it is read: the plan was refused.
#[test]
fn loops_of_two_sizes_that_write_in_place() {
    let m = data(&[5], 3);
    let f = |x: &Array, m: &Array| {
        let step = |c: &(Array, Array)| (&c.0 - c.0.sum_keep(1), &c.1 + &c.0 * m);
        fori_loop(0, 3, |_, c: &(Array, Array)| step(c), (x.clone(), x.clone())).1
    };
    for tier in [Tier::Embedded, Tier::Llvm] {
        let compiled = jit(f).tier(tier).strict().symbolic("f64[B, N], f64[N]");
        for rows in [1, 2, 3, 4, 7] {
            let x = data(&[rows, 5], rows);
            assert_close(&compiled(&x, &m), &f(&x, &m), &format!("{rows} rows, {tier:?}"));
        }
    }
}

/// Sums and extremes over axes that are not neighbours.
#[test]
fn reductions_over_axes_apart() {
    for shape in [[2, 3, 4, 5], [3, 16, 24, 24], [4, 1, 70, 2], [5, 40, 3, 17], [1, 8, 8, 16]] {
        let masks = (1..16usize).map(|mask| (0..4).filter(|a| mask >> a & 1 == 1).collect::<Vec<usize>>());
        for axes in masks {
            let x = data(&shape, axes.len());
            let f = move |x: &Array| {
                let y = x.square() + 0.5;
                (x.sum_axes(&axes[..]), y.max_axes(&axes[..]), (y * 0.9).prod_axes(&axes[..]), x.mean_axes(&axes[..]))
            };
            let want = jit(f.clone()).backend(Interpreter)(&x);
            for tier in [Tier::Embedded, Tier::Llvm] {
                let have = jit(f.clone()).tier(tier).strict()(&x);
                let pairs = [(&have.0, &want.0), (&have.1, &want.1), (&have.2, &want.2), (&have.3, &want.3)];
                pairs.iter().for_each(|(have, want)| assert_close(have, want, &format!("{shape:?}, {tier:?}")));
            }
        }
    }
}

/// Whole numbers by known and by other numbers, zero and -1 among them, at sizes around those of vectors.
#[test]
fn quotients_of_whole_numbers() {
    let types = [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64];
    for dtype in types {
        for n in [1, 7, 16, 33, 70] {
            let of = |salt: i64| -> Array {
                let edges = [0, 1, -1, i64::MAX, i64::MIN, i64::from(i32::MAX), i64::from(i32::MIN), 127, -128];
                let values = (0..n as i64).map(|i| match i % 3 {
                    0 => edges[((i / 3 + salt) % 9) as usize],
                    _ => (i + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> ((i * 7 + salt) % 60),
                });
                Array::from(values.collect::<Vec<i64>>()).cast(dtype)
            };
            let f = |x: &Array, y: &Array| {
                let by = |c: i64| Array::from(c).cast(x.dtype());
                let mut all = vec![x / y, x % y];
                all.extend([2, 3, 7, 64, 100, 127].map(|c| x / by(c)));
                all.extend([2, 3, 7, 64, 100, 127].map(|c| x % by(c)));
                all
            };
            for salt in 0..9 {
                let (x, y) = (of(salt), of(salt + 4));
                let want = jit(f).backend(Interpreter)(&x, &y);
                for tier in [Tier::Embedded, Tier::Llvm] {
                    for (k, (have, want)) in jit(f).tier(tier).strict()(&x, &y).iter().zip(&want).enumerate() {
                        assert_eq!(have.to_string(), want.to_string(), "{k} of {dtype}, {n} numbers, {tier:?}");
                    }
                }
            }
        }
    }
}

/// Products with vectors are sums: of every length, and of matrices both ways around.
#[test]
fn products_with_vectors() {
    for (n, k) in [(1, 8), (3, 9), (300, 260), (17, 100), (1000, 300), (2, 4096)] {
        let (m, v) = (data(&[n, k], 1), data(&[k], 2));
        let g =
            |m: &Array, v: &Array| (m.dot(v), v.dot(&m.t()), v.dot(v), grad(|v: &Array| m.dot(v).square().sum())(v));
        let want = jit(g).backend(Interpreter)(&m, &v);
        for tier in [Tier::Embedded, Tier::Llvm] {
            let have = jit(g).tier(tier).strict()(&m, &v);
            let pairs = [(&have.0, &want.0), (&have.1, &want.1), (&have.2, &want.2), (&have.3, &want.3)];
            pairs.iter().for_each(|(have, want)| assert_close(have, want, &format!("{n}x{k}, {tier:?}")));
        }
    }
}

/// What is written is added up as it is written: numbers that cancel in one of two scatters, and not with the other, tell.
#[test]
fn sums_of_scatters_are_in_the_order_that_is_written() {
    let f = |b: &Array, c: &Array, i: &Array, k: &Array| {
        let zeros = Array::zeros::<f64>([4]);
        zeros.at(i).add(b) + zeros.at(k).add(c)
    };
    let (i, k) = (Array::from([2_i32]), Array::from([2_i32, 2]));
    for (b, c, want) in [(1e308, [1e308, -1e308], 1e308), (1e300, [-1e300, 1.0], 0.0), (-1e300, [1e300, 3.0], 0.0)] {
        let (b, c) = (Array::from([b]), Array::from(c));
        for y in [f(&b, &c, &i, &k), jit(f)(&b, &c, &i, &k)] {
            assert_eq!(numbers(&y), [0.0, 0.0, want, 0.0]);
        }
    }
}

/// A derivative by what is taken from several times puts what it adds up into one array, and the interpreter does, too: they have the same bits.
#[test]
fn gradients_of_what_is_taken_several_times() {
    let f = |x: &Array, i: &Array, k: &Array| {
        let (a, b) = (x.take(i, 0), x.take(k, 0));
        (a.sin() * 3.0 + b.exp()).sum() + (x * x * 0.3).sum() + (x.take(&(k * 2), 0) * x.take(&(i - 1), 0)).sum()
    };
    // A product that is contracted into a sum moves a last place.
    let plain = || gradus_cpu::Cpu::new().contract(false);
    let x = data(&[9], 3);
    let i = Array::from([0_i32, 3, 3, 8, -1, 40, 5]);
    let k = Array::from([1_i64, 3, -9, -10, 4, 4, 2]);
    let g = move |x: &Array| {
        grad(move |x: &Array| {
            f(x, &Array::from([0_i32, 3, 3, 8, -1, 40, 5]), &Array::from([1_i64, 3, -9, -10, 4, 4, 2]))
        })(x)
    };
    assert_eq!(numbers(&jit(g).backend(plain())(&x)), numbers(&jit(g).backend(Interpreter)(&x)));
    check_grads(move |x: &Array| f(x, &i, &k), &x, 2).unwrap();
    // Inside of a batch and of a loop, and of half floats.
    let rows = data(&[4, 9], 5);
    let each: Vec<f64> = (0..4).flat_map(|r| numbers(&g(&rows.index(r)))).collect();
    let batch = jit(vmap(g)).backend(plain())(&rows);
    assert_eq!(numbers(&batch), numbers(&jit(vmap(g)).backend(Interpreter)(&rows)));
    assert_close(&batch.flatten(), &Array::from(each), "a batch");
    let steps = move |x: &Array| fori_loop(0, 3, move |_, x: &Array| x - g(x) * 0.01, x.clone());
    assert_eq!(numbers(&jit(steps).backend(plain())(&x)), numbers(&jit(steps).backend(Interpreter)(&x)));
    let half = x.cast(DType::F16);
    let y = jit(grad(|x: &Array| {
        x.take(&Array::from([1_i32, 1, 2]), 0).sum() + x.take(&Array::from([1_i32, 7]), 0).sum()
    }))(&half);
    assert_eq!(numbers(&y.cast(DType::F64)), [0.0, 3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
}
