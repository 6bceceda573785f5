//! The nearest of many: extremes of rows whose elements are small sums made at the point, and the columns of their derivatives.

use super::*;

/// The derivatives by the centres of the sum of every point's distance to the nearest centre, first and second, by hand.
fn distances(ty: &str, n: &str, k: &str, d: usize) -> String {
    let (all, pairs) = (format!("[{n},{k},{d}]"), format!("[{n},{k}]"));
    format!(
        "fn distances(x0: {ty}[{n},{d}], x1: {ty}[{k},{d}]) -> ({ty}[{k},{d}], {ty}[{k}], {ty}[{n}]) {{\n  \
         x2: {ty}{all} = broadcast{{shape={all}, axes=[0,2]}} x0\n  \
         x3: {ty}{all} = broadcast{{shape={all}, axes=[1,2]}} x1\n  \
         x4: {ty}{all} = sub x2 x3\n  \
         x5: {ty}{all} = mul x4 x4\n  \
         x6: {ty}{pairs} = reduce_sum{{axes=[2]}} x5\n  \
         x7: {ty}[{n}] = reduce_min{{axes=[1]}} x6\n  \
         x8: {ty}{pairs} = broadcast{{shape={pairs}, axes=[0]}} x7\n  \
         x9: bool{pairs} = compare{{direction=eq}} x6 x8\n  \
         x10: {ty}{pairs} = convert{{dtype={ty}}} x9\n  \
         x11: {ty}[{n}] = reduce_sum{{axes=[1]}} x10\n  \
         x12: {ty}[{n}] = div x7 x11\n  \
         x13: {ty}{pairs} = broadcast{{shape={pairs}, axes=[0]}} x12\n  \
         x14: {ty}{pairs} = select x9 x13 0.0:{ty}{pairs}\n  \
         x15: {ty}{all} = broadcast{{shape={all}, axes=[0,1]}} x14\n  \
         x16: {ty}{all} = mul x15 x4\n  \
         x17: {ty}{all} = neg x16\n  \
         x18: {ty}[{k},{d}] = reduce_sum{{axes=[0]}} x17\n  \
         x19: {ty}[{k}] = reduce_sum{{axes=[0]}} x14\n  \
         return x18, x19, x11\n}}"
    )
}

/// Coordinates of which many are the same, so that there are ties; with what is no number where `odd` says.
fn coordinates(n: usize, d: usize, odd: bool, ty: DType) -> Array {
    let number = |i: usize| match i % 1009 {
        500 if odd => f64::NAN,
        700 if odd => f64::INFINITY,
        k => ((k * 37 + i / 1009) % 5) as f64 / 4.0 - 0.5,
    };
    Array::from_vec((0..n * d).map(number).collect::<Vec<f64>>(), [n, d]).cast(ty)
}

#[test]
fn the_nearest_has_the_interpreters_bits() {
    let shapes = [
        ("f64", 640, 70, 8),
        ("f32", 1200, 64, 8),
        ("f64", 333, 1000, 3),
        ("f64", 512, 48, 12),
        ("f64", 90, 33, 8),
        // Rows that no number of blocks divides.
        ("f64", 1201, 70, 8),
        // Rows that go together: an even number of them and an odd one.
        ("f64", 64, 700, 8),
        ("f64", 45, 700, 8),
        ("f32", 9, 1500, 8),
        // Few enough to be unrolled at a point, and a little more.
        ("f64", 300, 3, 8),
        ("f64", 300, 10, 8),
        ("f32", 500, 16, 8),
        ("f64", 200, 12, 16),
        ("f64", 40, 16, 16),
    ];
    for (ty, n, k, d) in shapes {
        let text = distances(ty, &n.to_string(), &k.to_string(), d);
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let dtype = p.inputs()[0].dtype();
        for odd in [false, true] {
            let inputs = [coordinates(n, d, odd, dtype), coordinates(k + 7, d, odd, dtype).index(7..)];
            check_native(&p, &inputs, None, &|| text.clone());
        }
        check_native(&p, &random_inputs(&p), None, &|| text.clone());
    }
}

#[test]
fn the_nearest_of_sizes_known_at_run_time() {
    let text = distances("f64", "N", "K", 8);
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let of = |n: usize, k: usize| vec![coordinates(n, 8, false, DType::F64), coordinates(k, 8, true, DType::F64)];
    check_sizes(&p, &[of(40, 70), of(5, 3), of(1, 1), of(33, 64), of(8, 600), of(9, 600), of(1201, 70)], None, &|| {
        text.clone()
    });
}

/// Of every point the least and the largest of its distances to all centres, where the least is, and how many are as near: reductions that no order of theirs can change.
fn extremes(ty: &str, n: &str, k: &str, d: usize) -> String {
    let (all, pairs) = (format!("[{n},{k},{d}]"), format!("[{n},{k}]"));
    format!(
        "fn extremes(x0: {ty}[{n},{d}], x1: {ty}[{k},{d}]) -> ({ty}[{n}], i64[{n}], {ty}[{n}], i32[{n}]) {{\n  \
         x2: {ty}{all} = broadcast{{shape={all}, axes=[0,2]}} x0\n  \
         x3: {ty}{all} = broadcast{{shape={all}, axes=[1,2]}} x1\n  \
         x4: {ty}{all} = sub x2 x3\n  \
         x5: {ty}{all} = mul x4 x4\n  \
         x6: {ty}{pairs} = reduce_sum{{axes=[2]}} x5\n  \
         x7: {ty}[{n}] = reduce_min{{axes=[1]}} x6\n  \
         x8: {ty}{pairs} = broadcast{{shape={pairs}, axes=[0]}} x7\n  \
         x9: bool{pairs} = compare{{direction=eq}} x6 x8\n  \
         x10: i64{pairs} = iota{{dtype=i64, shape={pairs}, axis=1}}\n  \
         x11: i64{pairs} = select x9 x10 1000000:i64{pairs}\n  \
         x12: i64[{n}] = reduce_min{{axes=[1]}} x11\n  \
         x13: {ty}[{n}] = reduce_max{{axes=[1]}} x6\n  \
         x14: i32{pairs} = convert{{dtype=i32}} x9\n  \
         x15: i32[{n}] = reduce_sum{{axes=[1]}} x14\n  \
         return x7, x12, x13, x15\n}}"
    )
}

/// Sizes around those of registers, of the lanes of a fold and of where rows no longer go side by side.
const AROUND: [usize; 13] = [0, 1, 7, 8, 9, 15, 16, 31, 32, 33, 40, 64, 65];

#[test]
fn rows_side_by_side_of_sizes_known_at_run_time() {
    for (ty, d) in [("f64", 8), ("f32", 8), ("i32", 3)] {
        let text = extremes(ty, "N", "K", d);
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let dtype = p.inputs()[0].dtype();
        let odd = dtype.is_float();
        let of = |n: usize, k: usize| vec![coordinates(n, d, odd, dtype), coordinates(k + 7, d, odd, dtype).index(7..)];
        let mut sizes: Vec<Vec<Array>> = Vec::new();
        for (i, n) in AROUND.into_iter().enumerate() {
            sizes.extend([i, i + 3, i + 7].map(|j| of(n, AROUND[j % AROUND.len()])));
        }
        // Rows that threads share, two at once, and one that is left over.
        sizes.push(of(301, 63));
        if ty == "f64" {
            sizes.push(of(301, 700));
        }
        check_sizes(&p, &sizes, None, &|| text.clone());
    }
}

#[test]
fn rows_side_by_side_of_known_sizes() {
    for (ty, n, k, d) in [
        ("f64", 20, 17, 8),
        ("f64", 16, 63, 8),
        ("f32", 33, 64, 8),
        ("f64", 15, 40, 3),
        ("i32", 40, 33, 3),
        ("f64", 301, 700, 8),
    ] {
        let text = extremes(ty, &n.to_string(), &k.to_string(), d);
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let dtype = p.inputs()[0].dtype();
        let inputs = [coordinates(n, d, dtype.is_float(), dtype), coordinates(k + 7, d, false, dtype).index(7..)];
        check_native(&p, &inputs, None, &|| text.clone());
    }
}

/// Rows that may be short have code for both, and no library.
#[test]
fn rows_that_may_be_short_have_both_codes() {
    let text = extremes("f64", "N", "K", 8);
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let l = gradus_cpu::lower::lower_with(&p, 16, true).unwrap();
    assert!(l.entries.is_empty() && l.module.to_string().contains("switch"), "{}", l.module);
    assert!(l.uncovered.is_empty(), "{}", l.module);
}

/// Whatever is small of two or three axes, all of it is kernels.
#[test]
fn small_sums_and_extremes_need_no_library() {
    for (n, k, d) in [(300, 3, 8), (300, 10, 8), (500, 16, 8), (200, 12, 16), (40, 16, 16), (300, 5, 3)] {
        let text = distances("f64", &n.to_string(), &k.to_string(), d);
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let l = gradus_cpu::lower::lower_with(&p, 16, true).unwrap();
        assert!(l.entries.is_empty(), "{n} {k} {d}\n{}", l.module);
    }
}

/// Neither the differences nor the distances of all pairs are ever in memory.
#[test]
fn pairs_are_not_kept() {
    let text = distances("f64", "2000", "500", 8);
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let l = gradus_cpu::lower::lower_with(&p, 16, true).unwrap();
    let bytes = l.bind(&p, p.inputs()).unwrap().bytes;
    let scratch = gradus_cpu::memory::plan(&l.module, &bytes, &l.uncovered).unwrap().bytes;
    assert!(scratch <= 1 << 20, "{scratch}\n{}", l.module);
}

/// All pairs of points and centres, over what they sum to for each point and coordinate: reduced along the middle axis.
fn shares(n: &str, k: &str, d: usize) -> String {
    let all = format!("[{n},{k},{d}]");
    format!(
        "fn shares(x0: f64[{n},{d}], x1: f64[{k},{d}]) -> (f64{all}, f64[{n},{d}]) {{\n  \
         x2: f64{all} = broadcast{{shape={all}, axes=[0,2]}} x0\n  \
         x3: f64{all} = broadcast{{shape={all}, axes=[1,2]}} x1\n  \
         x4: f64{all} = sub x2 x3\n  \
         x5: f64{all} = exp x4\n  \
         x6: f64[{n},{d}] = reduce_sum{{axes=[1]}} x5\n  \
         x7: f64{all} = broadcast{{shape={all}, axes=[0,2]}} x6\n  \
         x8: f64{all} = div x5 x7\n  \
         return x8, x6\n}}"
    )
}

/// Every plan is proved: none is refused and interpreted.
#[test]
fn shares_of_a_middle_axis_are_compiled() {
    for (n, k, d) in [(8, 193, 16), (9, 193, 16), (8, 400, 9), (15, 400, 9), (9, 1335, 7), (601, 20, 9)] {
        let text = shares(&n.to_string(), &k.to_string(), d);
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        check_native(&p, &random_inputs(&p), None, &|| text.clone());
    }
    for d in [1, 8, 13, 16] {
        let text = shares("N", "K", d);
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let of = |n: usize, k: usize| vec![coordinates(n, d, false, DType::F64), coordinates(k, d, false, DType::F64)];
        check_sizes(&p, &[of(1, 1), of(9, 40), of(700, 20)], None, &|| text.clone());
    }
}

/// Rows inside of other rows, an odd number of them, which keep what they come back to: every plan is proved.
#[test]
fn shares_of_rows_inside_of_rows() {
    let text = |b: &str, n: &str, m: &str| {
        let all = format!("[{b},{n},{m}]");
        format!(
            "fn f(x0: f64[{b},{n},4], x1: f64[{b},{m},4]) -> (f64{all}, f64[{b},{n}]) where M >= 1 {{\n  \
             x2: f64{all} = dot_general{{lhs_contract=[2], rhs_contract=[2], lhs_batch=[0], rhs_batch=[0]}} x0 x1\n  \
             x3: f64[{b},{n}] = reduce_max{{axes=[2]}} x2\n  \
             x4: f64{all} = broadcast{{shape={all}, axes=[0,1]}} x3\n  \
             x5: f64{all} = sub x2 x4\n  \
             x6: f64{all} = exp x5\n  \
             x7: f64[{b},{n}] = reduce_sum{{axes=[2]}} x6\n  \
             x8: f64{all} = broadcast{{shape={all}, axes=[0,1]}} x7\n  \
             x9: f64{all} = div x6 x8\n  \
             return x9, x7\n}}"
        )
    };
    let inputs = |b: usize, n: usize, m: usize| {
        let of = |n: usize, by: usize| coordinates(b * n, 4, false, DType::F64).reshape([b, n, 4]) + by as f64 * 0.125;
        vec![of(n, 0), of(m, 1)]
    };
    let sizes = [(1, 1), (3, 5), (7, 7), (8, 64), (9, 40), (33, 1000)];
    for b in [1, 2, 3] {
        let symbolic = text(&b.to_string(), "N", "M");
        let p: Program = symbolic.parse().unwrap_or_else(|e| panic!("{e}\n{symbolic}"));
        let all: Vec<_> = sizes.iter().map(|(n, m)| inputs(b, *n, *m)).collect();
        check_sizes(&p, &all, None, &|| symbolic.clone());
        for (n, m) in [(9, 40), (8, 900), (9, 900), (33, 1000)] {
            let text = text(&b.to_string(), &n.to_string(), &m.to_string()).replace(" where M >= 1", "");
            let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
            check_native(&p, &inputs(b, n, m), None, &|| text.clone());
        }
    }
}
