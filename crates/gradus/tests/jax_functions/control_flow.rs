//! Functions whose way depends on values, or is repeated: branches, loops, scans, and rules of one's own.
//!
//! JAX has no reverse mode of a loop whose length follows from values. Ours is compared with its forward mode.

use gradus::prelude::*;

use super::compare::{Entry, compare, five, four, one, six, two};

pub const NUMBERS: &str = include_str!("../data/control_flow.jsonl");

pub fn entries() -> Vec<Entry> {
    let mut all = branches();
    all.extend(loops());
    all.extend(derivatives_in_loops());
    all.extend(scans());
    all.extend(parallel_scans());
    all.extend(models());
    all.extend(rules());
    all
}

#[test]
fn control_flow_has_the_values_and_derivatives_of_jax() {
    let all = entries();
    assert!(all.len() >= 49, "{} functions", all.len());
    compare(&all, NUMBERS);
}

fn branches() -> Vec<Entry> {
    let two_ways: fn(&Array) -> Array = |x| cond(x.sum().gt(0.0), |x| (x.sin() * x).sum(), |x| x.square().prod(), x);
    vec![
        one("branch_if_true", two_ways),
        one("branch_if_false", two_ways),
        two("branch_with_captures", |x, scale| {
            let s = scale.exp();
            let (a, b) = cond(x.index(0).lt(scale), |x| (x * &s, s.clone()), |x| (-x, x.index(0)), x);
            a.square().sum() * b
        }),
        one("nested_branches", |x| {
            let inner = |x: &Array| cond(x.index(1).gt(0.0), |x| x.sum(), |x| x.powi(3).sum(), x);
            cond(x.index(0).gt(0.0), |x| inner(x) * x.index(2), |x| x.index(0), x)
        }),
        two("one_of_three", |x, i| {
            switch(i, &[&|x: &Array| x.sin(), &|x: &Array| x.square(), &|x: &Array| x.exp() * x.flip(0)], x)
        }),
        two("one_beyond_the_last", |x, i| {
            switch(i, &[&|x: &Array| x.sin(), &|x: &Array| x.square(), &|x: &Array| x.powi(4)], x).sum()
        }),
        one("branch_of_each_element", |x| gradus::map(|x: &Array| cond(x.gt(0.4), |x| x.powi(3), |x| x.sin(), x), x)),
        one("batch_of_branches", |x| vmap(|x: &Array| cond(x.gt(0.1), |x| x.sqrt(), |x| x * 2.0, x))(x).square()),
    ]
}

fn square_root(a: &Array) -> Array {
    while_loop(|x: &Array| (x * x - a).abs().gt(1e-13), |x: &Array| (x + a / x) * 0.5, Array::from(1.0))
}

fn loops() -> Vec<Entry> {
    vec![
        one("square_root_by_newton", square_root),
        one("batch_of_square_roots", |a| vmap(square_root)(a)),
        one("exponential_series", |p| {
            let x = p.index(0) * p.index(1);
            let (_, _, total) = while_loop(
                |(_, term, _): &(Array, Array, Array)| term.abs().gt(1e-18),
                |(k, term, total)| (k + 1, term * &x / (k + 1).cast(DType::F64), total + term),
                (Array::from(0_i64), Array::from(1.0), Array::from(0.0)),
            );
            total * p.index(1)
        }),
        one("halving_with_count", |x| {
            let (y, count) = while_loop(
                |(y, _): &(Array, Array)| y.gt(1.0),
                |(y, count)| (y / 2.0, count + 1),
                (x.clone(), Array::from(0_i64)),
            );
            y.square() * count.cast(DType::F64)
        }),
        two("equilibrium", |b, w| {
            let (z, _) = while_loop(
                |(z, before): &(Array, Array)| (z - before).abs().max().gt(1e-9),
                |(z, _)| ((w.dot(z) + b).tanh(), z.clone()),
                (Array::zeros::<f64>([2]), Array::ones::<f64>([2])),
            );
            z.square().sum()
        }),
        two("loop_to_a_traced_bound", |p, n| {
            let step = |i: &Array, y: &Array| (y * p.index(0)).sin() + p.index(1) * i.cast(DType::F64);
            fori_loop(0, n, step, Array::from(1.0))
        }),
        two("polynomial_by_horner", |c, x| fori_loop(0, 4, |i, y: &Array| y * x + c.index(i), Array::from(0.0))),
        one("matrix_power", |a| fori_loop(0, 5, |_, m: &Array| m.matmul(a), Array::eye::<f64>(2usize))),
        one("logistic_map", |p| fori_loop(0, 8, |_, x: &Array| p.index(0) * x * (1.0_f64 - x), p.index(1))),
        one("power_iteration", |a| {
            let step = |_: &Array, x: &Array| {
                let y = a.dot(x);
                &y / y.norm()
            };
            let x = fori_loop(0, 8, step, Array::ones::<f64>([3]));
            x.dot(a).dot(&x)
        }),
        two("heat_by_loop", |u, rate| {
            fori_loop(0, 6, |_, u: &Array| u + rate * (u.roll(1, 0) - u * 2.0 + u.roll(-1, 0)), u.clone())
        }),
        one("integral_by_simpson", |p| {
            let f = |x: &Array| (-(p.index(0) * x * x)).exp();
            let h = p.index(1) / 16.0;
            let step = |i: &Array, total: &Array| {
                let x = &h * i.cast(DType::F64) * 2.0;
                total + (f(&x) + f(&(&x + &h)) * 4.0 + f(&(&x + &h * 2.0))) * &h / 3.0
            };
            fori_loop(0, 8, step, Array::from(0.0))
        }),
    ]
}

fn valley(x: &Array) -> Array {
    let (a, b) = (x.index(0), x.index(1));
    (1.0_f64 - &a).square() + (b - a.square()).square() * 5.0
}

fn derivatives_in_loops() -> Vec<Entry> {
    vec![
        two("gradient_descent", |x, rate| {
            valley(&fori_loop(0, 10, |_, x: &Array| x - rate * grad(valley)(x), x.clone()))
        }),
        two("descent_with_momentum", |x, p| {
            let step = |(x, m): &(Array, Array), _: &Array| {
                let m = p.index(1) * m + grad(valley)(x);
                ((x - p.index(0) * &m, m), valley(x))
            };
            let steps = Array::arange(0_i64, 6, 1);
            let (_, losses) = scan(step, (x.clone(), Array::zeros::<f64>([2])), &steps);
            losses.sum()
        }),
        one("newton_with_second_derivatives", |p| {
            let p = p.clone();
            let start = p.index(0);
            let f = move |x: &Array| (x - p.index(1)).cosh() + x.powi(4) * p.index(0) * 0.1;
            fori_loop(0, 5, |_, x: &Array| x - grad(f.clone())(x) / grad(grad(f.clone()))(x), start)
        }),
        one("derivative_of_a_scan", |x| {
            let f = |x: &Array| scan(|c: &Array, e: &Array| ((c * e).sin() + e, c.clone()), Array::from(1.0), x).0;
            grad(f)(x).square().sum() + hessian(f)(x).trace()
        }),
    ]
}

fn scans() -> Vec<Entry> {
    vec![
        one("sums_by_scan", |x| {
            let step = |c: &Array, e: &Array| (c + e * e, c + e * e);
            scan(step, Array::from(0.0), x).1
        }),
        two("linear_recurrence", |a, b| {
            let step = |y: &Array, (a, b): &(Array, Array)| {
                let y = a * y + b;
                (y.clone(), y)
            };
            scan(step, Array::from(1.0), &(a.clone(), b.clone())).1
        }),
        two("discounted_returns", |rewards, discount| {
            let step = |c: &Array, r: &Array| (r + discount * c, r + discount * c);
            ScanOptions::new().reverse().scan(step, Array::from(0.0), rewards).1
        }),
        one("continued_fraction", |x| {
            ScanOptions::new()
                .reverse()
                .scan(|c: &Array, a: &Array| ((a + c).recip(), ()), Array::from(0.0), &(x.clone()))
                .0
        }),
        two("time_warping", |x, y| {
            let row = |above: &Array, xi: &Array| {
                let cell = |left: &Array, (up, corner, yj): &(Array, Array, Array)| {
                    let best = -(-Array::stack([up, left, corner], 0)).logsumexp();
                    let value = (xi - yj).square() + best;
                    (value.clone(), value)
                };
                let sides = (above.index(1..), above.index(..-1), y.clone());
                let (_, values) = scan(cell, Array::from(100.0), &sides);
                (Array::concatenate([Array::from([100.0]), values], 0), ())
            };
            scan(row, Array::from([0.0, 100.0, 100.0, 100.0, 100.0]), x).0.index(-1)
        }),
        two("integrate_and_fire", |current, leak| {
            let step = |u: &Array, i: &Array| {
                let u = leak * u + i;
                cond(u.gt(1.0), |u| (u - 1.0, u * u), |u| (u.clone(), u * 0.1), &u)
            };
            let (last, out) = scan(step, Array::from(0.0), current);
            last.square() + out.sum()
        }),
        one("complex_iteration", |c| {
            let c = Array::complex(&c.index(0), &c.index(1));
            let step = |z: &Array, _: &Array| (z * z + &c, z.abs());
            let (z, sizes) = scan(step, Array::from(Complex::new(0.1, 0.1)), &Array::arange(0_i64, 5, 1));
            z.abs().square() + sizes.sum()
        }),
        two("scan_with_integers", |x, starts| {
            let step = |(count, total): &(Array, Array), start: &Array| {
                let block = x.dynamic_slice(&[start.clone()], [2]);
                ((count + start, total + block.prod() * (count + 1).cast(DType::F64)), total.clone())
            };
            let ((_, total), all) = scan(step, (Array::from(0_i64), Array::from(0.0)), starts);
            total.square() + all.sum()
        }),
        one("map_of_rows", |x| gradus::map(|r: &Array| r.softmax(0) * r.square().sum(), x)),
        two("batch_of_scans", |x, a| {
            let run = |x: &Array, a: &Array| {
                scan(|c: &Array, e: &Array| ((a * c + e).sin(), c.clone()), Array::from(0.0), x).0
            };
            vmap(run).axes((Some(0), None))(x, a).square().sum()
        }),
        two("scan_that_computes_again", |x, w| {
            let step = checkpoint(|x: &Array, w: &Array| w.dot(x).tanh() + x.square() * 0.1);
            let options = ScanOptions::new().length(4);
            options.scan(|x: &Array, (): &()| (step(x, w), ()), x.clone(), &()).0.sum()
        }),
    ]
}

fn parallel_scans() -> Vec<Entry> {
    vec![
        two("linear_recurrence_in_parallel", |a, b| {
            let join = |l: &(Array, Array), r: &(Array, Array)| (&l.0 * &r.0, &r.0 * &l.1 + &r.1);
            associative_scan(join, &(a.clone(), b.clone())).1.square().sum()
        }),
        one("products_in_parallel", |x| associative_scan(|a: &Array, b: &Array| a * b, x)),
        one("largest_so_far_in_parallel", |x| associative_scan(|a: &Array, b: &Array| a.maximum(b), x)),
        one("matrices_in_parallel", |x| associative_scan(|a: &Array, b: &Array| a.matmul(b), x).square().sum()),
    ]
}

fn models() -> Vec<Entry> {
    vec![
        five("recurrent_network", |h, wh, wx, b, xs| {
            let step = |h: &Array, x: &Array| {
                let h = (wh.dot(h) + wx.dot(x) + b).tanh();
                (h.clone(), h.square().sum())
            };
            let (last, all) = scan(step, h.clone(), xs);
            last.sum() + all.sum()
        }),
        six("lstm", |h, c, wh, wx, b, xs| {
            let step = |(h, c): &(Array, Array), x: &Array| {
                let gates = (wh.dot(h) + wx.dot(x) + b).split(4, 0);
                let c = gates[1].logistic() * c + gates[0].logistic() * gates[2].tanh();
                let h = gates[3].logistic() * c.tanh();
                ((h.clone(), c), h)
            };
            let ((_, c), all) = scan(step, (h.clone(), c.clone()), xs);
            all.square().sum() + c.sum()
        }),
        two("lorenz_by_runge_kutta", |state, p| {
            let [sigma, rho, beta] = [0, 1, 2].map(|i| p.index(i));
            let f = |s: &Array| {
                let [x, y, z] = [0, 1, 2].map(|i| s.index(i));
                Array::stack([&sigma * (&y - &x), &x * (&rho - &z) - &y, &x * &y - &beta * &z], 0)
            };
            let step = |s: &Array, dt: &Array| {
                let a = f(s);
                let b = f(&(s + dt / 2.0 * &a));
                let c = f(&(s + dt / 2.0 * &b));
                let d = f(&(s + dt * &c));
                let s = s + dt / 6.0 * (a + b * 2.0 + c * 2.0 + d);
                (s.clone(), s.index(0))
            };
            let (last, all) = scan(step, state.clone(), &Array::full([8], 0.02));
            last.square().sum() + all.sum()
        }),
        two("pendulum_by_symplectic_steps", |state, p| {
            let pull = p.index(0) / p.index(1) * 0.05;
            let step = |_: &Array, s: &Array| {
                let momentum = s.index(1) - &pull * s.index(0).sin();
                Array::stack([s.index(0) + &momentum * 0.05, momentum], 0)
            };
            fori_loop(0, 10, step, state.clone())
        }),
        four("hidden_markov_model", |start, moves, emit, seen| {
            let (moves, emit) = (moves.log_softmax(1), emit.log_softmax(1));
            let step = |alpha: &Array, o: &Array| {
                ((alpha.expand_dims(1) + &moves).logsumexp_axes(0) + emit.index((.., o)), ())
            };
            let first = start.log_softmax(0) + emit.index((.., seen.index(0)));
            scan(step, first, &seen.index(1..)).0.logsumexp()
        }),
        two("kalman_filter", |p, ys| {
            let (a, q, r) = (p.index(0), p.index(1).exp(), p.index(2).exp());
            let step = |(mean, var): &(Array, Array), y: &Array| {
                let (mean, var) = (&a * mean, a.square() * var + &q);
                let total = &var + &r;
                let (gain, e) = (&var / &total, y - &mean);
                let log_p = (e.square() / &total + total.log() + std::f64::consts::TAU.ln()) * -0.5;
                ((mean + &gain * e, (1.0_f64 - &gain) * var), log_p)
            };
            scan(step, (Array::from(0.0), Array::from(1.0)), ys).1.sum()
        }),
        two("asian_option", |p, draws| {
            let (sigma, rate) = (p.index(1), p.index(2));
            let step = |s: &Array, z: &Array| {
                let s = s * ((&rate - sigma.square() / 2.0) / 6.0 + &sigma * (1.0_f64 / 6.0).sqrt() * z).exp();
                (s.clone(), s)
            };
            let (_, path) = scan(step, p.index(0), draws);
            (-&rate).exp() * (path.mean() - 90.0).maximum(0.0)
        }),
    ]
}

fn rules() -> Vec<Entry> {
    vec![
        one("own_forward_rule", |x| {
            let f = custom_jvp(
                |x: &Array| x.exp().log1p(),
                |x: &Array, t: &Array| (x.exp().log1p(), (1.0_f64 - (x.exp() + 1.0).recip()) * t),
            );
            f(x).square().sum()
        }),
        two("own_backward_rule", |x, y| {
            let product = custom_vjp(
                |x: &Array, y: &Array| x * y,
                |x: &Array, y: &Array| (x * y, (x.clone(), y.clone())),
                |(x, y): &(Array, Array), bar: &Array| (y * bar / 2.0, x * bar),
            );
            product(x, y).sin().sum()
        }),
        one("stopped_gradient", |x| (x * stop_gradient(&(x * x))).sum()),
    ]
}
