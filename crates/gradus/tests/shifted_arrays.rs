//! Sums of shifted, padded and cut arrays, as difference equations write them: compiled code computes large ones by boxes. Programs that dice make, every tier against the
//! interpreter; the seed and the steps are in the message.

use gradus::Interpreter;
use gradus::prelude::*;

/// One step of a program: what it does with which of the values before.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: usize,
    x: usize,
    y: usize,
    axis: usize,
    by: usize,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

fn steps(seed: u64, rank: usize) -> Vec<Step> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let count = 3 + dice.below(9);
    let mut all = Vec::new();
    for i in 0..count {
        let n = i + 2;
        let mut any = || if dice.below(3) == 0 { dice.below(n) } else { n - 1 - dice.below(n.min(3)) };
        let (x, y) = (any(), any());
        all.push(Step { what: dice.below(13), x, y, axis: dice.below(rank), by: 1 + dice.below(3) });
    }
    all
}

/// The index that takes a part of one axis.
fn part(rank: usize, axis: usize, start: i64, end: i64) -> Vec<Index> {
    (0..rank).map(|a| if a == axis { Index::step(start..end, 1) } else { Index::step(.., 1) }).collect()
}

fn run(steps: &[Step], x: &Array, y: &Array) -> Vec<Array> {
    let rank = x.rank();
    let mut values = vec![x.clone(), y.clone()];
    for s in steps {
        let (x, y) = (&values[s.x], &values[s.y]);
        let (axis, by) = (s.axis as isize, s.by as i64);
        let n = x.shape()[s.axis].constant().unwrap();
        let around = |low: usize, high: usize| -> Vec<(usize, usize)> {
            (0..rank).map(|a| if a == s.axis { (low, high) } else { (0, 0) }).collect()
        };
        values.push(match s.what {
            0 => x.roll(by as isize, axis),
            1 => x.roll(-by as isize, axis),
            2 => x.index(part(rank, s.axis, by, n)).pad(&around(0, s.by), 0.0),
            3 => x.index(part(rank, s.axis, 0, n - by)).pad(&around(s.by, 0), 0.0),
            4 => {
                let padded = x.pad(&vec![(1, 1); rank], 0.5);
                padded.index(
                    (0..rank)
                        .map(|a| Index::step(a as i64 % 3..a as i64 % 3 + x.shape()[a].constant().unwrap(), 1))
                        .collect::<Vec<_>>(),
                )
            }
            5 => x.pad_edge(&around(s.by, 0)).index(part(rank, s.axis, 0, n)),
            6 => x.pad_wrap(&around(0, s.by)).index(part(rank, s.axis, by, n + by)),
            7 => {
                let inner = x.index(part(rank, s.axis, 1, n)) - x.index(part(rank, s.axis, 0, n - 1));
                Array::concatenate([&inner, &y.index(part(rank, s.axis, 0, 1))], axis)
            }
            8 => (x * 0.5).tanh(),
            9 => x.flip(axis) * 0.5,
            10 => x + y,
            11 => (x - y) * 0.5,
            _ => x.gt(y).select(x * 0.25, y.clone()),
        });
    }
    values
}

fn check(seed: u64, dims: &[usize]) {
    let steps = steps(seed, dims.len());
    let n: usize = dims.iter().product();
    let data = |salt: usize| {
        let numbers = (0..n).map(|i| ((i * 7919 + 13 + salt * 271) % 2003) as f64 / 1000.0 - 1.0).collect();
        Array::from_vec::<f64>(numbers, dims.to_vec())
    };
    let all = steps.clone();
    // The last value, one in the middle, and a sum.
    let f = move |x: &Array, y: &Array| {
        let values = run(&all, x, y);
        let (last, middle) = (values[values.len() - 1].clone(), values[values.len() / 2].clone());
        let sum = (&last * &middle).sum();
        (last, middle, sum)
    };
    let all = steps.clone();
    let loss = move |x: &Array, y: &Array| {
        let values = run(&all, x, y);
        (&values[values.len() - 1] * &values[values.len() - 2]).sin().sum()
    };
    for tier in [Tier::Embedded, Tier::Llvm] {
        let (have, want) = (jit(f.clone()).tier(tier), jit(f.clone()).backend(Interpreter));
        let (df, want_df) = (jit(grad(loss.clone())).tier(tier), jit(grad(loss.clone())).backend(Interpreter));
        for salt in 0..2 {
            let (x, y) = (data(salt), data(salt + 5));
            let (a, b) = (have(&x, &y), want(&x, &y));
            let pairs = [(a.0, b.0), (a.1, b.1), (a.2, b.2), (df(&x, &y), want_df(&x, &y))];
            for (k, (have, want)) in pairs.iter().enumerate() {
                let (have, want) = (have.to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
                assert_eq!(have.len(), want.len());
                let largest = want.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
                for (i, (h, w)) in have.iter().zip(&want).enumerate() {
                    assert!(
                        (h - w).abs() <= 1e-11 * largest,
                        "seed {seed}, {dims:?}, {tier:?}, result {k}, element {i}: {h} is not {w}\n{steps:#?}"
                    );
                }
            }
        }
    }
}

#[test]
fn row_r7_programs_of_shifted_arrays() {
    let shapes: &[&[usize]] = &[&[2100], &[48, 47], &[33, 70], &[5, 700], &[130, 20], &[13, 14, 15]];
    let count: u64 = std::env::var("GRADUS_SHIFTED").ok().and_then(|n| n.parse().ok()).unwrap_or(36);
    for seed in 0..count {
        check(seed, shapes[seed as usize % shapes.len()]);
    }
}
