//! An array that there is no memory for is an error, not the end of the process: every operation with less and less memory left, in
//! a process whose address space is bounded.
#![cfg(target_os = "linux")]

mod little_memory;

use gradus::prelude::*;

const KIB: usize = 1 << 10;

type Operation = fn(&Array) -> Array;

/// Operations on `f64[64, 1024]`, half a MiB.
const OPERATIONS: &[(&str, Operation)] = &[
    ("elementwise", |x| x.sin() * x + 1.0),
    ("of a view", |x| x.t() * 2.0),
    ("of two views", |x| x.t() * x.t().flip(0)),
    ("select", |x| x.gt(0.5).select(x.t().reshape(x.shape()), x)),
    ("un-jitted batching", |x| vmap(|r: &Array| r.exp() / r.sum())(x)),
    ("un-jitted batching of columns", |x| vmap(|r: &Array| r.sort(0) - r.max()).axes((Some(1),))(x)),
    ("un-jitted gradient", |x| grad(|x: &Array| (x.sin() * x.t().reshape(x.shape())).sum())(x)),
    ("convert", |x| x.cast(DType::F32)),
    ("convert to half", |x| x.t().cast(DType::F16)),
    ("sums", |x| x.sum_axes(0)),
    ("sums of a view", |x| x.t().sum_axes(0)),
    ("sum", |x| x.t().flip(0).sum()),
    ("sums of few", |x| x.reshape([-1, 2]).sum_axes(1)),
    ("largest", |x| x.reshape([-1, 2]).max_axes(1)),
    ("places", |x| x.reshape([-1, 2]).argmax_axis(1)),
    ("places of columns", |x| x.t().reshape([2, -1]).argmax_axis(0)),
    ("running sums", |x| x.cumsum(0)),
    ("running sums of wide rows", |x| x.reshape([2, -1]).cumsum(0)),
    ("running products", |x| x.t().cumprod(1)),
    ("sort", |x| x.sort(1)),
    ("sort of a view", |x| x.t().sort(0)),
    ("sort of everything", |x| x.reshape([-1]).sort(0)),
    ("order", |x| x.argsort(0)),
    ("the largest few", |x| x.top_k(1000).0),
    ("reshape of a view", |x| x.t().reshape([-1])),
    ("concatenate", |x| Array::concatenate([x, &x.flip(0)], 0)),
    ("stack of views", |x| Array::stack([x.t(), x.t().flip(1)], 2)),
    ("pad", |x| x.pad(&[(1, 1), (2, 2)], 0.0)),
    ("take", |x| x.take(&Array::iota(DType::I64, [60], 0), 0)),
    ("update", |x| x.at((3.., ..)).set(1.0)),
    ("add at", |x| x.at(Array::from([1, 2, 1])).add(1.0)),
    ("dynamic update", |x| x.dynamic_update_slice(&Array::ones::<f64>([2, 2]), &[Array::from(1), Array::from(1)])),
    ("product", |x| x.dot(&x.t())),
    ("product of integers", |x| x.cast(DType::I32).index((..16, ..)).dot(&x.cast(DType::I32).t())),
    ("scan", |x| scan(|c: &Array, r: &Array| (c + r, c * r), Array::zeros::<f64>([1024]), x).1),
    ("associative scan", |x| associative_scan(|a: &Array, b: &Array| a * b, x)),
    ("random", |x| random::normal::<f64>(Key::new(1), x.shape())),
];

/// The same for compiled functions, which are compiled before there is too little memory for that.
fn compiled() -> Vec<(&'static str, Fun<(Array,), Array>)> {
    fn rows(x: &Array) -> Array {
        scan(|c: &Array, r: &Array| (c + r, c * r), Array::zeros::<f64>([1024]), x).1
    }
    let all: [(_, Operation); 5] = [
        ("compiled", |x| x.sin() * x.t().reshape(x.shape())),
        ("compiled sort", |x| x.t().sort(0) * 2.0),
        ("compiled sums", |x| (x.cumsum(0) + x).sum_axes(1) * x.t()),
        ("compiled products", |x| x.dot(&x.t()).dot(x)),
        ("compiled loop", rows),
    ];
    all.map(|(name, f)| (name, jit(f).tier(Tier::Embedded))).into()
}

/// Takes address space, none of it touched, until less than `left` more can be had.
fn ballast(left: usize) -> Vec<Vec<u8>> {
    let (mut all, mut size) = (Vec::with_capacity(4096), 1 << 30);
    while size >= KIB * 128 {
        let mut piece = Vec::new();
        match piece.try_reserve_exact(size) {
            Ok(()) => all.push(piece),
            Err(_) => size /= 2,
        }
    }
    let mut given = 0;
    while given < left {
        given += all.pop().map_or(left, |p| p.capacity());
    }
    all
}

/// What the child does: each operation with half a MiB left, half as much more, and so on, until there is enough.
fn child() {
    let x = Array::iota(DType::F64, [64 * 1024], 0).reshape([64, 1024]) * 1e-3;
    let compiled = compiled();
    let eager = OPERATIONS.iter().map(|(name, f)| (*name, f as &dyn Fn(&Array) -> Array));
    let all: Vec<_> = eager.chain(compiled.iter().map(|(name, f)| (*name, &**f as _))).collect();
    let mut refused = 0;
    for (name, f) in &all {
        // Once with all the memory there is: what is made on the first call is there, code above all.
        assert!(f(&x).ok().is_ok(), "{name}");
        let mut left = 512;
        loop {
            let held = ballast(left * KIB);
            let result = f(&x).ok();
            drop(held);
            match result {
                Ok(_) => break,
                Err(e) => assert!(e.kind() == ErrorKind::Size && e.to_string().contains("no memory"), "{name}: {e}"),
            }
            refused += 1;
            left += 256;
            assert!(left < 100 << 10, "{name} needs more than {left} KiB");
        }
        println!("{name}: {left} KiB");
    }
    assert!(refused > all.len(), "{refused} refused");
    println!("all {} operations", all.len());
}

#[test]
fn row_e4_an_array_without_memory_is_an_error() {
    little_memory::in_a_child("row_e4_an_array_without_memory_is_an_error", "all ", child);
}
