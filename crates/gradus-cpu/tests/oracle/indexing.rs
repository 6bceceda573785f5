//! Places that are data: gathers, scatters, places of extremes and running numbers, in every tier, against the interpreter.

use gradus_core::primitives::cumulative::{CumMax, CumMin, CumProd, CumSum};
use gradus_core::primitives::index::{Bounds, Gather, Scatter, ScatterKind};
use gradus_core::primitives::reduce::{ArgMax, ArgMin};

use super::*;

/// Whole numbers in no order, from `from` on.
fn numbers(n: usize, from: i64, most: i64) -> Array {
    Array::from_vec((0..n as i64).map(|i| (i * 7919 + i * i * 31) % most + from).collect::<Vec<i64>>(), [n])
}

/// Numbers in no order, some of them equal, with what is no number where `odd` says.
fn floats(shape: &[usize], odd: bool) -> Array {
    let n: usize = shape.iter().product();
    let number = |i: usize| match i % 97 {
        13 if odd => f64::NAN,
        17 if odd => f64::NEG_INFINITY,
        29 => -0.0,
        k => ((k * 37 + i / 97) % 61) as f64 / 8.0 - 3.7,
    };
    Array::from_vec((0..n).map(number).collect::<Vec<f64>>(), [n]).reshape(shape.to_vec())
}

fn rows(bounds: Bounds, width: usize) -> Gather {
    Gather {
        offset_dims: vec![1],
        collapsed_dims: vec![0],
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: vec![0],
        sizes: [1, width].as_slice().into(),
        bounds,
    }
}

#[test]
fn gathers_share_loops() {
    // Negative ones count from the end, others are moved inside or filled.
    let inputs = [floats(&[40, 24], false), numbers(300, -60, 120), floats(&[7, 300], false), numbers(5, 0, 40)];
    let p = traced(&inputs, |x| {
        let (table, i) = (&x[0], &x[1]);
        let vectors = i.reshape([300, 1]);
        let windows = Gather {
            offset_dims: vec![0, 2],
            collapsed_dims: vec![],
            sizes: [2usize, 3].as_slice().into(),
            index_map: vec![1],
            ..rows(Bounds::Fill, 0)
        };
        let taken = table.take(i, 0);
        vec![
            taken.clone(),
            taken.sum_axes(1),
            taken.sum_axes(0),
            (table.exp().take(&(i + 1), 0) * 2.0).max_axes(1),
            table.reshape([960]).take(&(i * 3), 0).exp(),
            table.reshape([320, 3]).take(i, 0).square().sum_axes(1),
            table.index((.., 3)).take(i, 0) + table.index((3, ..)).take(i, 0),
            table.take(i, 1).sum(),
            table.gather(&vectors, rows(Bounds::Fill, 24)),
            table.gather(&vectors, windows),
            x[2].take_along_axis(&i.reshape([1, 300]).broadcast_to([7, 300]), 1),
            x[2].transpose([1, 0]).take_along_axis(&i.reshape([300, 1]).broadcast_to([300, 7]), 0),
            table.take(&x[3], 0).index((.., 4)),
            table.index((&x[1], &(&x[1] * 2))),
            table.index((&x[3], &(&x[3] + 1))),
        ]
    });
    check(&p, &inputs, None, &|| p.to_string());
}

#[test]
fn gathers_of_every_dtype() {
    let i = numbers(50, -3, 30).cast(DType::I8).reshape([50, 1]);
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Key) {
        let inputs = [floats(&[20, 3], false).cast(dtype), i.clone()];
        let p = traced(&inputs, |x| {
            let few = x[1].index(..3);
            [Bounds::Clip, Bounds::Fill]
                .into_iter()
                .flat_map(|b| [x[0].gather(&x[1], rows(b, 3)), x[0].gather(&few, rows(b, 3))])
                .collect()
        });
        check_native(&p, &inputs, None, &|| format!("{dtype}"));
    }
}

#[test]
fn scatters_go_in_order() {
    for dtype in [DType::F64, DType::F32, DType::I8, DType::U64, DType::F16, DType::C64] {
        let i = numbers(300, -9, 60);
        let inputs = [floats(&[40, 3], false), i, floats(&[300, 3], true)].map(|a| match a.dtype() {
            DType::F64 => a.cast(dtype),
            _ => a,
        });
        for kind in ScatterKind::ALL.iter().copied() {
            let ordered = matches!(kind, ScatterKind::Min | ScatterKind::Max);
            if ordered && dtype.is_complex() {
                continue;
            }
            let p = traced(&inputs, |x| {
                let vectors = x[1].reshape([300, 1]);
                let rows = Scatter {
                    kind,
                    update_window_dims: vec![1],
                    inserted_dims: vec![0],
                    operand_batch_dims: vec![],
                    index_batch_dims: vec![],
                    index_map: vec![0],
                    unique: false,
                };
                let elements = Scatter { update_window_dims: vec![], ..rows.clone() };
                let turned = Scatter { update_window_dims: vec![0], ..rows.clone() };
                let column = x[2].index((.., 1));
                let own = &x[0] + &x[0];
                vec![
                    x[0].scatter(&vectors, &x[2], rows.clone()),
                    // Its own memory, and then what nobody else needs.
                    own.scatter(&vectors, &x[2], rows.clone()).scatter(&vectors, &x[2].transpose([1, 0]), turned),
                    x[0].index((.., 2)).scatter(&vectors, &column, elements.clone()),
                    x[0].index((0, 0)).broadcast_to([1000]).scatter(&vectors, &column, elements.clone()),
                    x[0].index((..5, 0)).scatter(&vectors.index(..2), &column.index(..2), elements),
                ]
            });
            check_native(&p, &inputs, None, &|| format!("{} of {dtype}\n{p}", kind.name()));
            if dtype == DType::F64 {
                check(&p, &inputs, None, &|| format!("{}\n{p}", kind.name()));
            }
        }
    }
}

#[test]
fn places_of_extremes() {
    for dtype in [DType::F64, DType::F32, DType::F16, DType::I8, DType::U32, DType::Bool] {
        for shape in [vec![6, 300], vec![300, 40], vec![40, 5, 3], vec![1, 70], vec![130, 523], vec![2, 120, 300]] {
            for odd in [false, true] {
                let inputs = [floats(&shape, odd).cast(dtype)];
                let p = traced(&inputs, |x| {
                    let of = |axis| {
                        let place = DType::I64;
                        let more = x[0].sum_axes(axis as isize);
                        [
                            bind(Op::new(ArgMax { axis, dtype: place }), x),
                            bind(Op::new(ArgMin { axis, dtype: DType::I16 }), x),
                            more,
                        ]
                    };
                    (0..shape.len()).flat_map(of).collect()
                });
                check_native(&p, &inputs, Some(1e-3), &|| format!("{dtype} {shape:?}"));
            }
        }
    }
}

#[test]
fn running_numbers() {
    let all = |axis: usize, reverse: bool| {
        [
            Op::new(CumSum { axis, reverse }),
            Op::new(CumProd { axis, reverse }),
            Op::new(CumMax { axis, reverse }),
            Op::new(CumMin { axis, reverse }),
        ]
    };
    let shapes: [&[usize]; 9] = [
        &[5, 30],
        &[255, 3],
        &[2, 256],
        &[257],
        &[3, 700, 2],
        &[130, 1030],
        &[256 * 256 + 300],
        &[2, 259, 257],
        &[263, 259],
    ];
    for shape in shapes {
        for dtype in [DType::F32, DType::F64, DType::I16] {
            let inputs = [floats(shape, false).cast(dtype), floats(shape, true).cast(dtype)];
            let p = traced(&inputs, |x| {
                let axes = (0..shape.len()).flat_map(|a| [(a, false), (a, true)]);
                axes.flat_map(|(a, r)| all(a, r))
                    .flat_map(|op| [bind(op.clone(), &x[..1]), bind(op, &x[1..])])
                    .collect()
            });
            check_native(&p, &inputs, None, &|| format!("{shape:?} {dtype}"));
        }
    }
}

#[test]
fn columns_of_any_size() {
    let text = "fn f(x0: f64[N,M]) -> (i64[M], i32[M], f64[M], f64[N,M], f64[N,M]) where N>=1 {
  x1: i64[M] = argmax{axis=0, dtype=i64} x0
  x2: i32[M] = argmin{axis=0, dtype=i32} x0
  x3: f64[M] = reduce_sum{axes=[0]} x0
  x4: f64[N,M] = cumsum{axis=0, reverse=false} x0
  x5: f64[N,M] = cummax{axis=0, reverse=true} x0
  return x1, x2, x3, x4, x5\n}";
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let sizes = [(1, 1), (7, 127), (8, 128), (9, 129), (33, 260), (530, 70), (300, 0), (600, 130), (3, 63)];
    let sizes = sizes.map(|(n, m)| vec![floats(&[n, m], n > 8)]);
    check_sizes(&p, &sizes, None, &|| text.to_string());
}

#[test]
fn places_in_arrays_of_any_size() {
    let text = "fn f(x0: f64[N,3], x1: i64[M,1], x2: f64[M,3]) -> (f64[N,3], f64[M,3], f64[M,3], f64[M,3]) {
  x3: f64[N,3] = scatter{kind=add, update_window_dims=[1], inserted_dims=[0], operand_batch_dims=[], index_batch_dims=[], \
         index_map=[0], unique=false} x0 x1 x2
  x4: f64[M,3] = gather{offset_dims=[1], collapsed_dims=[0], operand_batch_dims=[], index_batch_dims=[], index_map=[0], \
         sizes=[1,3], bounds=fill} x3 x1
  x5: f64[M,3] = cumsum{axis=0, reverse=false} x2
  x6: f64[M,3] = cummin{axis=0, reverse=true} x4
  return x3, x4, x5, x6\n}";
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let sizes = [(0, 3), (1, 0), (4, 1), (40, 255), (40, 256), (3, 257), (70, 1000), (5, 256 * 256 + 7)];
    let sizes =
        sizes.map(|(n, m)| vec![floats(&[n, 3], false), numbers(m, -2, 50).reshape([m, 1]), floats(&[m, 3], false)]);
    check_sizes(&p, &sizes, None, &|| text.to_string());
    let held = "fn f(x0: f32[N], x1: i64[M,1]) -> (f32[M], i64[]) where N>=1 {
  x2: f32[M] = gather{offset_dims=[], collapsed_dims=[0], operand_batch_dims=[], index_batch_dims=[], index_map=[0], \
         sizes=[1], bounds=clip} x0 x1
  x3: f32[M] = exp x2
  x4: i64[] = argmin{axis=0, dtype=i64} x0
  return x3, x4\n}";
    let p: Program = held.parse().unwrap_or_else(|e| panic!("{e}\n{held}"));
    let sizes = [(1, 3), (7, 0), (40, 300), (70_000, 1000)];
    let sizes = sizes.map(|(n, m)| vec![floats(&[n], true).cast(DType::F32), numbers(m, -2, 50).reshape([m, 1])]);
    check_sizes(&p, &sizes, None, &|| held.to_string());
}

#[test]
fn few_numbers_lie_between_each_other() {
    // Lanes that step over 2, 3 and 4 neighbours, of every size that is read at once, and of smaller ones; lengths with and without a rest.
    for n in [1usize, 7, 8, 32, 40, 133] {
        let inputs = [floats(&[n], false), floats(&[n], true)];
        let p = traced(&inputs, |x| {
            let single = x.iter().map(|x| x.cast(DType::F32)).collect::<Vec<_>>();
            let whole = (&x[0] * 8.0).cast(DType::I32);
            let mut all = Vec::new();
            for (a, b) in [(&x[0], &x[1]), (&single[0], &single[1])] {
                all.push(Array::stack([&(a * 2.0), &(a + b)], -1));
                all.push(Array::stack([&(a * 2.0), &(a + b), a], -1));
                all.push(Array::stack([&(a * 2.0), &(a + b), b, &(a - b)], -1));
                all.push(Array::stack([a, b, a, b, &(a + b)], -1).t());
            }
            all.push(Array::stack([&(&whole + 1), &whole], -1));
            all.push(Array::stack([&whole.cast(DType::I8), &(&whole + 1).cast(DType::I8)], -1));
            all.push(Array::stack([&x[0].gt(0.5), &x[1].gt(0.5)], -1));
            all
        });
        check(&p, &inputs, None, &|| p.to_string());
    }
}

#[test]
fn transposed_copies_go_in_squares() {
    // Sides around those of squares and tiles, dense and parts of something wider, and few rows or columns.
    let sides = [
        (2, 100),
        (100, 3),
        (4, 33),
        (5, 64),
        (7, 9),
        (8, 8),
        (15, 16),
        (16, 16),
        (17, 40),
        (31, 33),
        (64, 65),
        (100, 72),
    ];
    for (n, m) in sides {
        let inputs = [floats(&[n, m], true), floats(&[3, n, m + 2], false)];
        let p = traced(&inputs, |x| {
            let (a, b) = (&x[0], &x[1]);
            vec![
                a.t(),
                b.index((1, .., 1..m + 1)).t(),
                b.transpose([0, 2, 1]),
                b.transpose([2, 0, 1]),
                b.transpose([1, 2, 0]),
                a.cast(DType::F32).t(),
                (a * 4.0).cast(DType::I8).t(),
                a.gt(0.0).t(),
                (a * 4.0).cast(DType::I64).t(),
                a.flip(0).t(),
                a.flip(1).t(),
            ]
        });
        check(&p, &inputs, None, &|| p.to_string());
    }
}

#[test]
fn transposed_copies_of_symbolic_sizes() {
    let text = "fn turned(x0: f64[R,C], x1: f32[3,R,C], x2: i32[R,C], x3: i8[R,C]) -> (f64[C,R], f32[3,C,R], f32[C,3,R], i32[C,R], i8[C,R]) {\n  \
        x4: f64[C,R] = transpose{axes=[1,0]} x0\n  x5: f32[3,C,R] = transpose{axes=[0,2,1]} x1\n  x6: f32[C,3,R] = transpose{axes=[2,0,1]} x1\n  \
        x7: i32[C,R] = transpose{axes=[1,0]} x2\n  x8: i8[C,R] = transpose{axes=[1,0]} x3\n  return x4, x5, x6, x7, x8\n}";
    let p: Program = text.parse().unwrap();
    let sides = [
        (0, 5),
        (5, 0),
        (1, 1),
        (1, 65),
        (100, 3),
        (3, 100),
        (7, 9),
        (8, 8),
        (9, 31),
        (16, 16),
        (31, 33),
        (32, 32),
        (33, 40),
        (40, 65),
        (65, 64),
        (72, 100),
    ];
    let of = |dims: &[usize]| floats(dims, true);
    let inputs = sides.map(|(r, c)| {
        let whole = |dtype| (of(&[r, c]) * 4.0).cast(dtype);
        vec![of(&[r, c]), of(&[3, r, c]).cast(DType::F32), whole(DType::I32), whole(DType::I8)]
    });
    check_sizes(&p, &inputs, None, &|| text.into());
}

#[test]
fn scatters_work_out_places_as_they_go() {
    // Twice the same place, places from the end, and some beyond either end.
    for (n, width) in [(1usize, 1usize), (1, 3), (40, 1), (40, 3), (40, 8), (40, 70)] {
        let inputs =
            [floats(&[n, width], true), numbers(300, -2 * n as i64, 4 * n as i64), floats(&[300, width], true)];
        let p = traced(&inputs, |x| {
            let (to, at, from) = (&x[0], &x[1], &x[2]);
            let (line, numbers) = (to.index((.., 0)), from.index((.., 0)));
            let narrow = at.cast(DType::I32);
            vec![
                to.at(at).add(from),
                to.at(at).set(from),
                to.at(&narrow).mul(from),
                to.zeros_like().at(&(at + 1)).add(from),
                line.at(at).add(&numbers),
                line.at(&narrow).max(&numbers),
                line.at(&(at * 3 - 1)).min(&numbers),
                line.zeros_like().at(at).set(&numbers),
                (&line * 4.0).cast(DType::I64).at(at).add((&numbers * 4.0).cast(DType::I64)),
                (&line * 4.0).cast(DType::I16).at(at).add((&numbers * 4.0).cast(DType::I16)),
                line.gt(0.5).at(at).set(numbers.gt(0.5)),
            ]
        });
        check(&p, &inputs, None, &|| p.to_string());
    }
}

#[test]
fn running_numbers_of_rows_go_abreast() {
    for (rows, n) in [(1usize, 5usize), (3, 9), (4, 1), (5, 300), (8, 256), (11, 257), (6, 600)] {
        let inputs = [floats(&[rows, n], true), floats(&[2, rows, n], false)];
        let p = traced(&inputs, |x| {
            let mut all = Vec::new();
            for a in x {
                all.push(a.cumsum(-1));
                all.push(a.cumprod(-1));
                all.push(a.flip(-1).cumsum(-1).flip(-1));
                all.push((a * 4.0).cast(DType::I64).cumsum(-1));
                all.push(a.cast(DType::F32).cumsum(-1));
                all.push(a.cummax(-1));
            }
            all
        });
        check(&p, &inputs, None, &|| p.to_string());
    }
}

#[test]
fn copies_of_any_size() {
    let text = "fn f(x0: f64[N,M], x1: f64[M,3], x2: f32[N,M]) -> (f64[M,N], f64[3,M], f64[N,M], f64[M,3], f32[M,N]) {
  x3: f64[M,N] = transpose{axes=[1,0]} x0
  x4: f64[3,M] = transpose{axes=[1,0]} x1
  x5: f64[N,M] = cumsum{axis=1, reverse=false} x0
  x6: f64[M,3] = cumprod{axis=1, reverse=true} x1
  x7: f32[M,N] = transpose{axes=[1,0]} x2
  return x3, x4, x5, x6, x7\n}";
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let sizes = [(0, 3), (1, 0), (1, 1), (4, 1), (7, 9), (8, 8), (32, 32), (33, 40), (70, 300), (5, 70_000)];
    let sizes = sizes
        .map(|(n, m)| vec![floats(&[n, m], false), floats(&[m, 3], false), floats(&[n, m], false).cast(DType::F32)]);
    check_sizes(&p, &sizes, None, &|| text.to_string());
}

#[test]
fn loops_that_scatter_leave_arrays_where_they_are() {
    // What is put there: numbers of a sequence, or of the array itself as it was before; twice in a step; and an array that is wanted as it was, too.
    for kind in ["set", "add", "mul", "min", "max"] {
        for (n, width, steps) in [(5, 8, 7), (40, 3, 20), (300, 17, 9)] {
            let (all, one) = (format!("f64[{n},{width}]"), format!("f64[{width}]"));
            let scatter = format!(
                "scatter{{kind={kind}, update_window_dims=[0], inserted_dims=[0], operand_batch_dims=[], index_batch_dims=[], index_map=[0], unique=false}}"
            );
            let take = format!(
                "gather{{offset_dims=[0], collapsed_dims=[0], operand_batch_dims=[], index_batch_dims=[], index_map=[0], sizes=[1,{width}], bounds=clip}}"
            );
            let text = format!(
                "fn f(x0: {all}, x1: i64[{steps},1], x2: i64[{steps},1], x3: f64[{steps},{width}]) -> ({all}, {all}, f64[{steps},{width}]) {{
  x4: {all}, x5: {all}, x6: f64[{steps},{width}] = scan{{body=fn step(x0: {all}, x1: {all}, x2: i64[1], x3: i64[1], x4: {one}) -> ({all}, {all}, {one}) {{
    x5: {all} = {scatter} x0 x2 x4
    x6: {one} = {take} x1 x3
    x7: {one} = add x6 x4
    x8: {all} = {scatter} x1 x2 x7
    x9: {all} = {scatter} x8 x3 x6
    return x5, x9, x6
  }}, consts=0, carries=2, length={steps}, reverse=false}} x0 x0 x1 x2 x3
  return x4, x5, x6
}}
"
            );
            let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
            let at = |from| numbers(steps, from, 2 * n as i64).reshape([steps, 1]);
            let inputs = [floats(&[n, width], true), at(-(n as i64)), at(0), floats(&[steps, width], true)];
            check(&p, &inputs, None, &|| text.clone());
        }
    }
}

#[test]
fn large_operands_whose_lanes_lie_apart_are_turned_once() {
    // On both sides of the limit, of every width of numbers, with sums, with results that lie the other way, and as parts of something larger.
    for (n, m) in [(16usize, 1024usize), (127, 128), (130, 129), (1024, 17), (1030, 40)] {
        let inputs = [floats(&[n, m], true), floats(&[m, n], true)];
        let p = traced(&inputs, |x| {
            let (a, b) = (&x[0], &x[1]);
            let single = a.cast(DType::F32);
            vec![
                a.t() * 2.0 + b,
                (a.t() * b).sum(),
                (a.t() + b).t(),
                (a.t() * b).sum_axes(0),
                (a.t() * b).max_axes(1),
                single.t() + 1.0,
                (a * 4.0).cast(DType::I8).t() + 1,
                a.index((1.., 1..)).t() * 3.0,
                a.flip(0).t() - b,
                a.gt(0.0).t() & b.gt(0.0),
            ]
        });
        check(&p, &inputs, None, &|| p.to_string());
    }
}

#[test]
fn windows_of_every_width() {
    // Written one by one, in less than a vector, in several, with what is left over; out of range on both sides, and the same place several times.
    for dtype in [DType::F64, DType::F32, DType::I64, DType::I8, DType::Bool] {
        for width in [1usize, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 70] {
            let inputs =
                [floats(&[11, width], true).cast(dtype), numbers(40, -13, 30), floats(&[40, width], true).cast(dtype)];
            let p = traced(&inputs, |x| {
                let vectors = x[1].reshape([40, 1]);
                let into = |kind| Scatter {
                    kind,
                    update_window_dims: vec![1],
                    inserted_dims: vec![0],
                    operand_batch_dims: vec![],
                    index_batch_dims: vec![],
                    index_map: vec![0],
                    unique: false,
                };
                let mut all = vec![
                    x[0].take(&x[1], 0),
                    x[0].gather(&vectors, rows(Bounds::Fill, width)),
                    x[0].gather(&vectors, rows(Bounds::Clip, width)),
                    x[0].scatter(&vectors, &x[2], into(ScatterKind::Set)),
                ];
                if dtype != DType::Bool {
                    let kinds = [ScatterKind::Add, ScatterKind::Mul, ScatterKind::Min, ScatterKind::Max];
                    all.extend(kinds.map(|kind| x[0].scatter(&vectors, &x[2], into(kind))));
                    all.push(x[0].zeros_like().at(&x[1]).add(&x[2]));
                }
                all
            });
            check_native(&p, &inputs, None, &|| format!("{dtype}, {width}\n{p}"));
        }
    }
}

#[test]
fn one_number_in_much_memory() {
    // About as much as is written by one instruction, in numbers of every size, from places that are the start of no line.
    for (dtype, n) in [(DType::F64, 1usize << 17), (DType::F32, 1 << 18), (DType::I64, 1 << 17), (DType::I8, 1 << 20)] {
        for n in [n - 1, n, n + 31, n + 32, n + 4099] {
            let inputs = [floats(&[3], true).cast(dtype), numbers(3, 0, 70)];
            let p = traced(&inputs, |x| {
                let number = x[0].index(1);
                vec![
                    number.broadcast_to([n]).at(&x[1]).set(&x[0]),
                    Array::concatenate([&x[0], &number.broadcast_to([n]), &x[0]], 0),
                    number.broadcast_to([3, n]).index((.., 5..)).at(x[1].index(..1)).set(7),
                ]
            });
            check_native(&p, &inputs, None, &|| format!("{dtype}, {n}\n{p}"));
        }
    }
    let text = "fn f(x0: f64[N], x1: i64[M,1], x2: f64[M]) -> (f64[N], f64[N]) {
  x3: f64[N] = broadcast{shape=[N], axes=[]} -0.5:f64[]
  x4: f64[N] = mul x0 x3
  x5: f64[N] = scatter{kind=add, update_window_dims=[], inserted_dims=[0], operand_batch_dims=[], index_batch_dims=[], \
         index_map=[0], unique=false} x3 x1 x2
  return x4, x5\n}";
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let sizes = [(0, 0), (3, 2), (100, 9), (1 << 17, 5), ((1 << 17) + 31, 5), ((1 << 17) + 37, 300)];
    let sizes = sizes.map(|(n, m)| vec![floats(&[n], false), numbers(m, -2, 500).reshape([m, 1]), floats(&[m], true)]);
    check_sizes(&p, &sizes, None, &|| text.to_string());
}
