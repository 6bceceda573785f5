//! Scatters whose indices and updates are made just before they are taken, by several indices, into one array after the other, and counts: in every tier, against the
//! interpreter.

use gradus_core::primitives::index::{Scatter, ScatterKind};

use super::*;

/// Whole numbers in no order, from `from` on; some of them again and again.
fn numbers(n: usize, from: i64, most: i64) -> Array {
    let number = |i: i64| if i % 5 == 3 { from + most / 2 } else { (i * 7919 + i * i * 31) % most + from };
    Array::from_vec((0..n as i64).map(number).collect::<Vec<i64>>(), [n])
}

/// Numbers that do not add up alike in every order.
fn floats(n: usize) -> Array {
    Array::from_vec((0..n).map(|i| ((i * 37 + i / 7) % 61) as f64 / 7.0 - 3.1).collect::<Vec<f64>>(), [n])
}

fn by(kind: ScatterKind, components: usize, windows: usize) -> Scatter {
    Scatter {
        kind,
        update_window_dims: (1..=windows).collect(),
        inserted_dims: (0..components).collect(),
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: (0..components).collect(),
        unique: false,
    }
}

/// As it is, and with the passes that a compiler asks for.
fn check_ready(p: &Program, inputs: &[Array]) {
    check(p, inputs, None, &|| p.to_string());
    let ready = for_execution(p, Exactness::Exact).unwrap();
    verify(&ready).unwrap();
    check(&ready, inputs, None, &|| format!("{p}\n{ready}"));
}

#[test]
fn indices_and_updates_are_made_before_they_are_taken() {
    for n in [5, 100, 128, 200, 251, 1013, 1024] {
        let inputs = [floats(37), numbers(n, -45, 100).cast(DType::I32), floats(n), numbers(n, 0, 40)];
        let p = traced(&inputs, |x| {
            let (table, i, u, j) = (&x[0], &x[1], &x[2], &x[3]);
            let made = u.exp() * u;
            let zeros = table.zeros_like();
            let own = table * 2.0;
            vec![
                // Indices that are wrapped, updates that are read.
                zeros.at(i).add(u),
                // Both are made, and somebody else wants them too.
                zeros.at(&(i * 2)).add(&made),
                made.clone(),
                i * 2,
                // Updates that are picked, from another array and from what is written.
                zeros.at(i).add(&(u * table.take(j, 0))),
                own.at(i).add(own.take(j, 0)),
                own.at(j).max(&(own.take(i, 0) + 1.0)),
                // One array in two roles, and one index for several.
                zeros.at(i).add(i.cast(DType::F64)),
                zeros.at(j).add(u).at(i).add(u).at(j).set(&(u * 3.0)),
                table.take(i, 0) * zeros.at(i).add(u).take(i, 0),
                // What lies by components.
                table
                    .reshape([37, 1])
                    .broadcast_to([37, 3])
                    .at(i)
                    .add(&(u.reshape([n, 1]) * Array::from([1.0, 2.0, 0.5]))),
            ]
        });
        check_ready(&p, &inputs);
    }
}

#[test]
fn nests_of_several_loops_make_updates() {
    for (h, w) in [(9, 40), (5, 128), (130, 33), (3, 1030), (130, 640)] {
        let inputs = [floats(h * w).reshape([h, w]), floats(20), numbers(h, -2, 9), numbers(w, -4, 30)];
        let p = traced(&inputs, |x| {
            // One number for each row, and one for each column.
            let rows = x[2].reshape([h, 1]).broadcast_to([h, w]);
            let columns = x[3].broadcast_to([h, w]);
            let at = &rows * 2 - &columns;
            let u = &x[0] + rows.cast(DType::F64);
            vec![
                x[1].at(&(at % 23)).add(&u),
                x[1].reshape([4, 5]).at((&(&rows - 1), &(&columns - 2))).add(&u),
                x[1].reshape([5, 4]).at((&rows, &(columns % 7))).set(&(u * &x[0])),
            ]
        });
        check_ready(&p, &inputs);
    }
}

#[test]
fn by_several_indices() {
    let places = [numbers(300, -3, 12), numbers(300, 1, 9), numbers(300, -9, 30)];
    for dtype in
        [DType::F64, DType::F32, DType::I8, DType::U16, DType::I32, DType::U64, DType::F16, DType::Bool, DType::C64]
    {
        for index in [DType::I64, DType::I32, DType::I8, DType::U8, DType::U64] {
            let table = floats(6 * 5 * 4).reshape([6, 5, 4]).cast(dtype);
            let vectors = places.clone().map(|i| i.cast(index).reshape([300, 1]));
            let inputs = [table, vectors[0].clone(), vectors[1].clone(), vectors[2].clone(), floats(1200).cast(dtype)];
            for kind in ScatterKind::ALL.iter().copied() {
                let (number, real) = (dtype != DType::Bool, !dtype.is_complex() && dtype != DType::Bool);
                let fits = match kind {
                    ScatterKind::Set => true,
                    ScatterKind::Add | ScatterKind::Mul => number,
                    _ => real,
                };
                if !fits || (index != DType::I64 && !matches!(kind, ScatterKind::Add | ScatterKind::Set)) {
                    continue;
                }
                let p = traced(&inputs, |x| {
                    let joined = |parts: &[&Array]| Array::concatenate(parts, 1);
                    let (two, three) = (joined(&[&x[1], &x[2]]), joined(&[&x[1], &x[2], &x[3]]));
                    let u = x[4].index(..300);
                    let turned = Scatter { index_map: vec![1, 0], ..by(kind, 2, 1) };
                    let behind = Scatter {
                        inserted_dims: vec![1, 2],
                        index_map: vec![2, 1],
                        update_window_dims: vec![0],
                        ..by(kind, 2, 0)
                    };
                    let apart = Scatter { inserted_dims: vec![0, 2], index_map: vec![0, 2], ..by(kind, 2, 1) };
                    vec![
                        x[0].scatter(&two, &x[4].reshape([300, 4]), by(kind, 2, 1)),
                        x[0].scatter(&three, &u, by(kind, 3, 0)),
                        x[0].scatter(&two, &x[4].reshape([300, 4]), turned),
                        x[0].scatter(&two, &x[4].reshape([4, 300]).index(..3), behind),
                        x[0].scatter(&two, &x[4].reshape([300, 4]), apart.clone()),
                        x[0].scatter(&two, &x[4].reshape([300, 4]).index((.., ..2)), by(kind, 2, 1)),
                        // Vectors that are no whole of parts.
                        x[0].scatter(&(&two + &two), &x[4].reshape([300, 4]), by(kind, 2, 1)),
                    ]
                });
                let ready = for_execution(&p, Exactness::Exact).unwrap();
                assert_same(&interpret(&ready, &inputs).unwrap(), &interpret(&p, &inputs).unwrap(), None, &|| {
                    p.to_string()
                });
                check_native(&ready, &inputs, None, &|| format!("{index}, {}\n{p}\n{ready}", kind.name()));
            }
        }
    }
}

#[test]
fn counts() {
    for dtype in
        [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64, DType::F32]
    {
        for most in [7i64, 300, -1, i64::from(i32::MAX), i64::MAX] {
            let inputs = [
                numbers(500, -4, 40),
                floats(30).cast(dtype),
                numbers(500, -100, 5000).cast(dtype),
                numbers(500, 0, 256).cast(DType::U8),
            ];
            let p = traced(&inputs, |x| {
                let some = Array::from(most).cast(dtype);
                let small = Array::zeros::<i64>([256]).cast(dtype);
                vec![
                    x[1].at(&x[0]).add(&some),
                    x[1].at(&x[0]).add(&x[2]),
                    x[1].at(&x[0]).add(&(&x[2] * &x[2])),
                    x[1].at(&x[0]).add(x[1].take(&x[0], 0)),
                    // Every index is in range, and the code knows it.
                    small.at(x[3].cast(DType::I32)).add(&some),
                    small.at(&x[3]).add(&x[2]).take(&x[3].cast(DType::I16), 0),
                    x[1].reshape([5, 6]).at((&x[0], &(&x[0] + 1))).add(&some),
                ]
            });
            check_native(&p, &inputs, None, &|| format!("{dtype}, {most}\n{p}"));
        }
    }
}

#[test]
fn in_loops() {
    let inputs = [floats(40), numbers(300, -50, 100).cast(DType::I32), numbers(300, 0, 40), floats(300)];
    let p = traced(&inputs, |x| {
        let body = trace("step", &[x[0].clone()], Mode::Abstract, |p| {
            let p = &p[0];
            vec![p.zeros_like().at(&x[1]).add(&(p.take(&x[2], 0) * &x[3])) + 0.5]
        });
        let carries = [x[0].clone()];
        scan(&body.unwrap(), &carries, &[], &Dim::from(4usize), false, 1, Steps::Keep).unwrap()
    });
    check_ready(&p, &inputs);
}

#[test]
fn of_symbolic_sizes() {
    for text in [
        "fn f(x0: f64[M], x1: i32[N], x2: f64[N]) -> f64[M] {\n    x3: i64[N] = convert{dtype=i64} x1\n    x4: i64[N,1] = reshape{shape=[N,1]} x3\n    x5: f64[N] = mul x2 x2\n    x6: f64[M] = scatter{kind=add, update_window_dims=[], inserted_dims=[0], operand_batch_dims=[], index_batch_dims=[], index_map=[0], unique=false} x0 x4 x5\n    return x6\n}",
        "fn f(x0: f64[M], x1: i32[N], x2: f64[N]) -> (f64[M], f64[N]) {\n    x3: i32[N] = add x1 x1\n    x4: i32[N,1] = reshape{shape=[N,1]} x3\n    x5: f64[N] = exp x2\n    x6: f64[M] = scatter{kind=add, update_window_dims=[], inserted_dims=[0], operand_batch_dims=[], index_batch_dims=[], index_map=[0], unique=false} x0 x4 x5\n    return x6, x5\n}",
    ] {
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let sizes: Vec<Vec<Array>> = [(4, 0), (1, 1), (7, 127), (30, 128), (9, 256), (12, 700), (0, 40)]
            .iter()
            .map(|(m, n)| vec![floats(*m), numbers(*n, -3, 15).cast(DType::I32), floats(*n)])
            .collect();
        check_sizes(&p, &sizes, None, &|| text.to_string());
    }
}

/// Places at both ends and beyond them, as far as whole numbers go: they count from the end or are left out.
#[test]
fn places_at_the_ends() {
    let n = 9_i64;
    let ends =
        [0, 1, n - 1, n, n + 1, -1, -n, -n - 1, 2 * n, -2 * n, i64::MAX, i64::MIN, i64::MAX - n, i64::MIN + n, 4];
    let at = Array::from_vec(ends.repeat(9), [9 * ends.len()]);
    for dtype in [DType::I8, DType::I32, DType::I64, DType::U64, DType::BF16, DType::F32, DType::F64, DType::C64] {
        let inputs = [floats(9).cast(dtype), at.clone(), floats(9 * ends.len()).cast(dtype), floats(27).cast(dtype)];
        let p = traced(&inputs, |x| {
            let (table, at, u) = (&x[0], &x[1], &x[2]);
            let rows = x[3].reshape([9, 3]);
            let wide = u.expand_dims(1).broadcast_to([9 * ends.len(), 3]);
            let mut all = vec![
                table.at(at).add(u),
                table.at(at).set(u),
                table.at(at).mul(u),
                // The place is an update too, and decides about another.
                table.at(at).add(at.cast(DType::I8).cast(dtype)),
                rows.at(at).add(&wide),
                rows.at(at).set(&wide),
                table.at(at.cast(DType::I32)).add(u),
            ];
            if !dtype.is_complex() {
                all.extend([table.at(at).max(u), rows.at(at).min(&wide)]);
            }
            all
        });
        check_native(&p, &inputs, None, &|| format!("{dtype}\n{p}"));
    }
}
