//! A value of a program has one rounding, wherever compiled code computes it: what is compared with the largest of itself is found,
//! and the derivative of a maximum goes somewhere.

use gradus::prelude::*;

/// Each tier with numbers of rows below and above what lives in registers. LLVM takes its time.
const TIERS: [(Tier, &[usize]); 2] = [(Tier::Embedded, &[2, 9, 33]), (Tier::Llvm, &[9])];
const DRAWS: u64 = 8;

type Function = fn(&Array) -> Array;

fn draw(dtype: DType, seed: u64, shape: &[usize]) -> Array {
    random::normal::<f64>(Key::new(seed), shape).cast(dtype)
}

fn numbers(a: &Array) -> Result<Vec<f64>> {
    a.cast(DType::F64).to_vec::<f64>()
}

/// How many elements of `s` are what `top` is, how many are on the wrong side of it.
fn found(s: &Array, top: &Array, beyond: Array) -> Array {
    Array::stack([s.eq(top).cast(DType::F64).sum(), beyond.cast(DType::F64).sum()], 0)
}

/// The product goes into the sum in one loop, and something else may want it in another.
fn cases() -> Vec<(&'static str, Function)> {
    vec![
        ("largest", |x| {
            let s = x * x + x;
            let top = s.max();
            found(&s, &top, s.gt(&top))
        }),
        ("smallest", |x| {
            let s = x - x * x;
            let low = s.min();
            found(&s, &low, s.lt(&low))
        }),
        ("product less a number", |x| {
            let s = x * x - 0.3;
            let top = s.max();
            found(&s, &top, s.gt(&top))
        }),
        ("the product is used by another loop", |x| {
            let m = x * x;
            let s = &m + x;
            let top = s.max();
            found(&s, &top, s.gt(&top)) + m.abs().sum().cast(DType::F64) * 0.0
        }),
        ("the sum is made in several loops", |x| {
            let s = x * x + x;
            let top = s.max();
            let apart = (&s - s.mean()).abs().sum() + (&s - s.min()).sum_keep(0).exp().sum();
            found(&s, &top, s.gt(&top)) + apart.cast(DType::F64) * 0.0
        }),
        ("where the largest is", |x| {
            let s = (x * x + x).reshape([-1]);
            let top = s.take(&s.argmax(), 0);
            found(&s, &top, s.gt(s.max()))
        }),
        ("where the smallest is", |x| {
            let s = (x * x + x).reshape([-1]);
            let low = s.take(&s.argmin(), 0);
            found(&s, &low, s.lt(s.min()))
        }),
        ("by rows", |x| {
            let s = x * x + x;
            let top = s.max_keep(-1);
            let most = s.eq(&top).cast(DType::F64).sum_axes(-1).min();
            Array::stack([most, s.gt(&top).cast(DType::F64).sum()], 0)
        }),
        ("by columns", |x| {
            let s = x * x + x;
            let top = s.max_keep(0);
            let most = s.eq(&top).cast(DType::F64).sum_axes(0).min();
            Array::stack([most, s.gt(&top).cast(DType::F64).sum()], 0)
        }),
        ("in a step of a loop", |x| {
            let step = |c: &Array, row: &Array| {
                let m = row * row;
                let s = &m + row;
                let top = s.max();
                (c + m.exp().sum() * 0.0, found(&s, &top, s.gt(&top)))
            };
            let (_, all) = scan(step, x.sum() * 0.0, x);
            Array::stack([all.index((.., 0)).min(), all.index((.., 1)).max()], 0)
        }),
        ("what goes around a loop", |x| {
            let grow = |_: &Array, c: &Array| c * x * 0.5 + x;
            let s = fori_loop(0, 3, grow, x.clone());
            let top = s.max();
            found(&s, &top, s.gt(&top))
        }),
    ]
}

#[test]
fn what_is_compared_with_itself_is_found() -> Result<()> {
    for (name, f) in cases() {
        for dtype in [DType::F64, DType::F32] {
            for (tier, rows) in TIERS {
                let (one, many) = (jit(f).tier(tier), jit(vmap(f)).tier(tier));
                for &rows in if dtype == DType::F64 { rows } else { &rows[rows.len() - 1..] } {
                    for seed in 0..DRAWS {
                        let context = || format!("{name}, {dtype} [{rows}, 3], {tier:?}, seed {seed}");
                        let counts = numbers(&one(&draw(dtype, seed, &[rows, 3])))?;
                        assert!(counts[0] >= 1.0 && counts[1] == 0.0, "{}: {counts:?}", context());
                        let counts = numbers(&many(&draw(dtype, seed + 1000, &[3, rows, 3])))?;
                        for pair in counts.chunks(2) {
                            assert!(pair[0] >= 1.0 && pair[1] == 0.0, "vmap, {}: {counts:?}", context());
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn losses() -> Vec<(&'static str, Function)> {
    vec![
        ("maximum", |x| (x * x + x).max()),
        ("minimum", |x| (x * 0.7 - x * x).min()),
        ("padded", |x| {
            let p = x.pad(&[(1, 8), (1, 3)], 0.0);
            let m = &p * &p;
            let s = &m + &p;
            s.max() + (&m * &m * 0.37).sum() + (m.abs() * 0.21).sum()
        }),
        ("another use of the product", |x| {
            let m = x * x;
            let s = &m + x;
            s.max() + (&m * &m).sum()
        }),
        ("by rows", |x| {
            let m = x * x;
            ((&m + x).max_axes(-1) * m.exp().sum_axes(-1)).sum()
        }),
        ("log of a sum of exponentials", |x| {
            let s = x * x + x;
            let top = s.max();
            (s - &top).exp().sum().log() + top
        }),
        ("a loop", |x| {
            let step = |c: &Array, row: &Array| {
                let m = row * row;
                (c + (&m + row).max(), (&m * &m * 0.37).sum())
            };
            let (c, q) = scan(step, x.sum() * 0.0, x);
            c + q.sum()
        }),
        ("a checkpoint", |x| {
            let g = checkpoint(|x: &Array| {
                let m = x * x;
                (&m + x).max() + (&m * &m * 0.37).sum()
            });
            g(x) + (x * x).sum()
        }),
        ("a checkpoint that keeps the largest", |x| {
            let kept = Policy::Names(vec!["top".into()]);
            let g = checkpoint(|x: &Array| {
                let m = x * x;
                let s = &m + x;
                let top = s.max().checkpoint_name("top");
                s.eq(&top).select(&s * &m, x * 0.5).sum() * &top
            })
            .policy(kept);
            g(x) + (x * x).sum()
        }),
        ("a checkpoint in a loop that keeps the largest", |x| {
            let step = |c: &Array, row: &Array| {
                let kept = Policy::Names(vec!["top".into()]);
                let g = checkpoint(|x: &Array| {
                    let m = x * x;
                    let s = &m + x;
                    let top = s.max().checkpoint_name("top");
                    s.eq(&top).select(&s * &m, x * 0.5).sum() * &top
                })
                .policy(kept);
                (c + g(row), ())
            };
            scan(step, x.sum() * 0.0, x).0
        }),
    ]
}

#[test]
fn the_derivative_of_a_maximum_goes_somewhere() -> Result<()> {
    for (name, f) in losses() {
        for dtype in [DType::F64, DType::F32] {
            let tolerance = if dtype == DType::F64 { 1e-9 } else { 1e-3 };
            for (tier, rows) in TIERS {
                let (one, many) = (jit(grad(f)).tier(tier), jit(vmap(grad(f))).tier(tier));
                for &rows in if dtype == DType::F64 { rows } else { &rows[rows.len() - 1..] } {
                    for seed in 0..DRAWS {
                        let near = |have: &Array, want: &Array, what: &str| -> Result<()> {
                            for (k, (a, b)) in numbers(have)?.into_iter().zip(numbers(want)?).enumerate() {
                                assert!(
                                    (a - b).abs() <= tolerance * (1.0 + b.abs()),
                                    "{what} of {name}, {dtype} [{rows}, 2], {tier:?}, seed {seed}, element {k}: {a} is not {b}",
                                );
                            }
                            Ok(())
                        };
                        let x = draw(dtype, seed, &[rows, 2]);
                        near(&one(&x), &grad(f)(&x), "gradient")?;
                        let x = draw(dtype, seed + 1000, &[3, rows, 2]);
                        near(&many(&x), &vmap(grad(f))(&x), "gradients")?;
                    }
                }
            }
        }
    }
    Ok(())
}
