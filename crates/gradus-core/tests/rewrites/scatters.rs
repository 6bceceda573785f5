//! Laws on scatters: by one index instead of several, and into one array instead of one each.

use std::sync::LazyLock;

use gradus_core::primitives::Op;
use gradus_core::primitives::elementwise::Add;
use gradus_core::primitives::index::{Scatter, ScatterKind};
use gradus_core::primitives::shaping::Concatenate;
use gradus_core::{Array, DType};

use crate::chains::{number, ty};
use crate::support::{Expr, Seen, inputs_for};

fn scatter(kind: ScatterKind, map: &[usize], windows: usize) -> Scatter {
    let mut inserted_dims = map.to_vec();
    inserted_dims.sort_unstable();
    Scatter {
        kind,
        update_window_dims: (1..=windows).collect(),
        inserted_dims,
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: map.to_vec(),
        unique: false,
    }
}

/// Places in no order, many of them out of range, of `k` components each.
fn places(n: usize, k: usize, dtype: DType) -> Array {
    let all: Vec<i64> = (0..(n * k) as i64).map(|i| (i * 7 + i * i * 3) % 11 - 3).collect();
    Array::from_vec(all, [n, k]).cast(dtype)
}

fn scatters() -> Seen {
    let mut seen = Seen::default();
    for dtype in [DType::F64, DType::F32, DType::F16, DType::I32, DType::C128] {
        for index in [DType::I64, DType::I32, DType::I8, DType::U8, DType::U64] {
            let n = 13;
            // The third and fourth inputs are places.
            let mut check = |e: Expr, dims: &[usize], updates: &[usize], k: usize| {
                let types = [ty(dtype, dims), ty(dtype, updates), ty(index, &[n, k]), ty(index, &[n, k])];
                let Ok(p) = e.program(&types) else { panic!("a type rule refuses {dims:?} {updates:?}") };
                let sets: Vec<Vec<Array>> = inputs_for(&types, true)
                    .into_iter()
                    .map(|mut set| {
                        (set[2], set[3]) = (places(n, k, index), places(n + 2, k, index).index(2..));
                        set
                    })
                    .collect();
                seen.check(&p, &sets);
            };
            let [x, u, i, j] = [0, 1, 2, 3].map(Expr::In);
            for kind in [ScatterKind::Set, ScatterKind::Add] {
                for map in [&[0, 1][..], &[1, 0], &[1, 2], &[0, 2], &[2, 0, 1]] {
                    let windows = usize::from(map.len() == 2);
                    let dims = [4, 3, 5];
                    let shown = (0..3).find(|a| !map.contains(a)).map(|a| dims[a]);
                    let updates: Vec<usize> = [n].into_iter().chain(shown.filter(|_| windows == 1)).collect();
                    let op = || Op::new(scatter(kind, map, windows));
                    check(Expr::of(op(), [x.clone(), i.clone(), u.clone()]), &dims, &updates, map.len());
                    check(
                        Expr::of(op(), [number(dtype, &dims, 0.0), i.clone(), u.clone()]),
                        &dims,
                        &updates,
                        map.len(),
                    );
                }
                // Of parts.
                let whole = Expr::of(Op::new(Concatenate { axis: 1 }), [i.clone(), j.clone()]);
                check(Expr::of(Op::new(scatter(kind, &[0, 1], 0)), [x.clone(), whole, u.clone()]), &[4, 3], &[n], 1);
            }
            let add = || Op::new(scatter(ScatterKind::Add, &[0], 0));
            let zeros = || number(dtype, &[7], 0.0);
            let into = |to: Expr, at: &Expr| Expr::of(add(), [to, at.clone(), u.clone()]);
            let sum = |a: Expr, b: Expr| Expr::of(Op::fixed(&Add), [a, b]);
            let both = sum(into(zeros(), &i), into(zeros(), &j));
            check(both.clone(), &[7], &[n], 1);
            check(sum(into(into(zeros(), &j), &i), into(into(zeros(), &j), &j)), &[7], &[n], 1);
            check(sum(into(zeros(), &j), both), &[7], &[n], 1);
            // What is no zero stays, and floats do.
            check(sum(x.clone(), into(zeros(), &i)), &[7], &[n], 1);
            check(sum(into(number(dtype, &[7], -0.0), &i), into(number(dtype, &[7], -0.0), &j)), &[7], &[n], 1);
        }
    }
    seen.report("scatters");
    seen
}

static SCATTERS: LazyLock<Seen> = LazyLock::new(scatters);

/// What was seen.
pub fn seen() -> Vec<&'static Seen> {
    vec![&SCATTERS]
}

#[test]
fn scatters_keep_their_bits() {
    assert!(!SCATTERS.laws.is_empty());
}
