//! Arrays that only picks read lie as these go through them, in every tier, against the interpreter; and products whose sums have few terms.

use super::*;

/// Numbers that all differ.
fn counted(shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    Array::from_vec((0..n).map(|i| (i % 1013) as f64 * 0.37 - 3.0).collect::<Vec<f64>>(), [n]).reshape(shape.to_vec())
}

/// Places in no order: from the end, inside, and out of range.
fn places(n: usize, of: usize) -> Array {
    let number = |i: usize| (i * 7919 + i * i) as i64 % (2 * of as i64 + 4) - of as i64 - 2;
    Array::from_vec((0..n).map(number).collect::<Vec<i64>>(), [n])
}

/// The plan of a program, after what the backend asks for.
fn plan(p: &Program) -> String {
    let fast =
        run_passes(&[CONTRACT], &for_execution(p, Exactness::Exact).unwrap(), Exactness::Exact, &mut |_, _, _| {});
    gradus_cpu::lower::lower_with(&fast.unwrap(), 16, true).unwrap().module.to_string()
}

#[test]
fn rows_are_picked_from_any_axis() {
    for (n, width, picked) in [(40, 26, 600), (7, 9, 200), (33, 8, 33), (50, 3, 400), (1, 30, 5)] {
        let inputs = [counted(&[width, n, 3]), counted(&[n, 3]), places(picked, n)];
        let p = traced(&inputs, |x| {
            let (at, moved) = (&x[2], &x[0] * x[1].expand_dims(0));
            let rows = moved.take(at, 1);
            let (a, b) = (&x[0] + 1.0, &x[0] - x[1].expand_dims(0));
            vec![
                // In the order of the program, and in others.
                rows.clone(),
                (-(&x[0] + x[1].expand_dims(0)).take(at, 1)).transpose([1, 2, 0]),
                (-(&x[0] - x[1].expand_dims(0)).take(at, 1)).transpose([1, 0, 2]).reshape([picked, 3 * width]),
                (&x[0] * 3.0).take(at, 1).transpose([2, 0, 1]),
                // Not all of it, and by two places.
                (&x[0] * 0.5).index((1..width - 1, .., ..)).take(at, 1).transpose([1, 2, 0]),
                a.transpose([1, 2, 0]).take(at, 0).exp(),
                // Read besides, twice, and reduced.
                b.take(at, 1).transpose([1, 2, 0]),
                b.sum_axes(0),
                (&x[0] * x[0].square()).take(at, 1).sum_axes(0),
                x[0].atan().take(at, 1).transpose([1, 2, 0]) + x[0].exp().take(at, 1).transpose([1, 2, 0]),
            ]
        });
        check(&p, &inputs, None, &|| p.to_string());
    }
}

#[test]
fn picks_in_another_order_read_runs() {
    let inputs = [counted(&[26, 50, 3]), counted(&[50, 3]), places(700, 50)];
    let p = traced(&inputs, |x| vec![(-(&x[0] * x[1].expand_dims(0)).take(&x[2], 1)).transpose([1, 2, 0])]);
    check(&p, &inputs, None, &|| p.to_string());
    // Lanes go along the axis that was first, in what is stored and in what is picked.
    let text = plan(&p);
    assert_eq!(text.matches("lanes").count(), 2, "{text}");
    assert_eq!(text.matches(" < 26 {").count(), 2, "{text}");
}

#[test]
fn sums_of_few_terms_share_loops() {
    for (m, k, n) in [(33, 2, 40), (50, 3, 30), (40, 4, 200), (1, 4, 100), (90, 4, 17), (7, 3, 1000)] {
        for dtype in [DType::F64, DType::F32, DType::I64] {
            let of = |shape: &[usize]| counted(shape).cast(dtype);
            let inputs = [of(&[m, k]), of(&[k, n]), of(&[n, k]), of(&[n]), of(&[5, m, k]), of(&[5, k, n])];
            let p = traced(&inputs, |x| {
                vec![
                    x[0].matmul(&x[1]) + x[3].expand_dims(0),
                    x[0].matmul(&x[2].t()).t(),
                    x[4].matmul(&x[5]).sum_axes(0),
                    x[4].matmul(&x[1]),
                    // The same on both sides.
                    x[0].matmul(&x[0].t()),
                ]
            });
            let near = (dtype != DType::I64).then_some(if dtype == DType::F32 { 1e-5 } else { 1e-13 });
            check(&p, &inputs, near, &|| p.to_string());
            if dtype == DType::F64 && m > 32 {
                let text = plan(&p);
                assert!(!text.contains("gemm"), "{text}");
            }
        }
    }
}

#[test]
fn picks_and_few_terms_of_sizes_known_at_run_time() {
    let text = "fn f(x0: f64[9,N,3], x1: f64[N,3], x2: i64[K,1], x3: f64[K,4], x4: f64[4,N]) -> (f64[K,3,9], f64[K,N]) where N>=1 {\n  \
         x5: f64[9,N,3] = broadcast{shape=[9,N,3], axes=[1,2]} x1\n  \
         x6: f64[9,N,3] = mul x0 x5\n  \
         x7: f64[9,K,3] = gather{offset_dims=[0,2], collapsed_dims=[1], operand_batch_dims=[], index_batch_dims=[], index_map=[1], sizes=[9,1,3], bounds=clip} x6 x2\n  \
         x8: f64[9,K,3] = neg x7\n  \
         x9: f64[K,3,9] = transpose{axes=[1,2,0]} x8\n  \
         x10: f64[K,N] = dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x3 x4\n  \
         return x9, x10\n}";
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let of = |n: usize, k: usize| {
        vec![counted(&[9, n, 3]), counted(&[n, 3]), places(k, n).reshape([k, 1]), counted(&[k, 4]), counted(&[4, n])]
    };
    check_sizes(&p, &[of(1, 1), of(40, 7), of(5, 300), of(64, 64), of(3, 0)], Some(1e-13), &|| text.to_string());
}
