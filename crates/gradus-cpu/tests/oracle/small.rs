//! Small arrays of every size around the limits, with uses of every kind side by side: in scalars, in lanes, in loops and branches, forward and backward.

use gradus_core::control::{History, switch, while_loop};
use gradus_core::transform::vjp;

use super::*;

/// Every size near a limit: of scalars, of a vector, of what is unrolled at a point.
fn sizes() -> impl Iterator<Item = usize> {
    (1..=20).chain([24, 31, 32, 33, 35, 36, 37, 47, 48, 49, 63, 64, 65, 70])
}

fn numbers(shape: &[usize], start: usize) -> Array {
    let n: usize = shape.iter().product();
    let number = |i: usize| ((i * 37 + start * 11) % 61) as f64 / 24.0 - 1.2;
    Array::from_vec((0..n).map(number).collect::<Vec<f64>>(), shape.to_vec())
}

fn spec(a: &Array) -> Array {
    Array::of_type(a.ty().unwrap().clone())
}

fn branch(f: impl FnOnce(&[Array]) -> Vec<Array>, inputs: &[&Array]) -> gradus_core::trace::Traced {
    let specs: Vec<Array> = inputs.iter().map(|a| spec(a)).collect();
    trace("branch", &specs, Mode::Abstract, f).unwrap()
}

/// A recurrent cell whose state is treated as a whole, picked from, joined, turned, summed and written to.
fn cell(n: usize, w: &Array, h: &Array, c: &Array, x: &Array) -> [Array; 3] {
    let n = n as i64;
    let weights = |k: i64| w.index(k * n..(k + 1) * n);
    let gate = (h * weights(0) + x * weights(1)).tanh();
    let c = c * 0.9 + (&gate * weights(2)).exp() * 0.1;
    let (first, last) = (c.index(0), c.index(n - 1));
    let rolled = Array::concatenate([gate.index(1..n), gate.index(0..1)], 0);
    let total = (&gate * &c).sum();
    let padded = gate.index(0..(n + 1) / 2).pad(&[(n / 2, 0)], 0.25);
    let h = (rolled + padded * first - c.flip(0) * last) * 0.5 + &total * 0.01;
    [h, c, total]
}

/// Everything at once, without products: bit for bit.
fn mixed(n: usize, inputs: &[Array]) -> Program {
    traced(inputs, |x| {
        let (start, xs, w, at) = (&x[0], &x[1], &x[2], &x[3]);
        let row = xs.index(0);
        let body = trace("step", &[spec(start), spec(start), spec(&row)], Mode::Abstract, |x| {
            let [h, c, total] = cell(n, w, &x[0], &x[1], &x[2]);
            let y = h.sin() + &total;
            vec![h, c, y, total]
        });
        let carries = [start.clone(), start.tanh()];
        let length = Dim::from(4usize);
        let forward = scan(&body.unwrap(), &carries, &[xs.clone()], &length, false, 1, Steps::Keep).unwrap();
        // A branch in which lanes work, and one in which they do not.
        let heavy = branch(|x| vec![(x[0].exp() * w.index(0..n as i64)).tanh(), x[0].sum()], &[start]);
        let light = branch(|x| vec![x[0].flip(0), x[0].index(0)], &[start]);
        let either = switch(at, &[heavy, light], &forward[..1]).unwrap();
        let more = branch(|x| vec![x[1].sum().lt(3.0)], &[start, start]);
        let again = branch(|x| vec![(&x[0] * 0.5).tanh() + 0.1, &x[1] + x[0].square() + 0.2], &[start, start]);
        let repeated = while_loop(&more, &again, &[start.clone(), start.zeros_like()], History::Limit(6)).unwrap();
        // Windows at places that are data.
        let window = xs.dynamic_slice(&[at.clone(), Array::from(0_i32)], [1, n]).reshape([n]).exp();
        let written = xs.dynamic_update_slice(&window.reshape([1, n]), &[at.clone(), Array::from(0_i32)]);
        let mut all = forward;
        all.extend(either);
        all.extend(repeated);
        all.extend([window, written]);
        all
    })
}

fn inputs(n: usize, at: i32) -> [Array; 4] {
    [numbers(&[n], 1), numbers(&[4, n], 2), numbers(&[3 * n], 3), Array::from(at)]
}

#[test]
fn small_arrays_of_every_size() {
    for n in sizes() {
        let inputs = inputs(n, (n % 3) as i32);
        let p = mixed(n, &inputs);
        check(&p, &inputs, None, &|| format!("{n} elements as written\n{p}"));
        let ready = for_execution(&p, Exactness::Exact).unwrap();
        check(&ready, &inputs, None, &|| format!("{n} elements\n{ready}"));
    }
}

/// The cotangents of slices that a loop takes of its constants are added up as slices.
#[test]
fn small_arrays_backward() {
    for n in sizes() {
        let inputs = inputs(n, 1);
        let p = mixed(n, &inputs);
        let back = vjp(&p, &[true, true, true, false]).unwrap();
        let mut known = interpret(&back.primal, &inputs).unwrap();
        let residuals = known.split_off(p.outputs().len());
        let varying = known.iter().zip(&back.varies).filter(|(_, on)| **on).map(|(y, _)| y);
        let bars: Vec<Array> = varying.map(|y| numbers(&y.shape().known().unwrap(), 5)).collect();
        let given = [residuals, bars].concat();
        let ready = for_execution(&back.linear, Exactness::Exact).unwrap();
        check(&ready, &given, None, &|| format!("backward, {n} elements\n{ready}"));
    }
}

/// Products of small matrices by vectors on which lanes work.
#[test]
fn small_products_of_every_size() {
    for n in sizes() {
        let inputs = [numbers(&[n], 1), numbers(&[4, n], 2), numbers(&[n, n], 3)];
        let p = traced(&inputs, |x| {
            let m = &x[2];
            let body = trace("step", &[spec(&x[0]), spec(&x[0])], Mode::Abstract, |x| {
                let h = (x[0].matmul(m) * 0.1 + &x[1]).tanh();
                let turned = m.matmul(&h) * 0.1;
                vec![turned.clone(), turned.dot(&h), h]
            });
            let carries = std::slice::from_ref(&x[0]);
            scan(&body.unwrap(), carries, &x[1..2], &Dim::from(4usize), false, 1, Steps::Keep).unwrap()
        });
        check(&p, &inputs, Some(1e-12), &|| format!("{n} elements\n{p}"));
    }
}
