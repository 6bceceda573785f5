//! Likelihoods, test functions of optimization, physics, finance and geometry.

use gradus::prelude::*;

use super::compare::{Entry, four, one, three, two};
use super::linear::cross;

const SQRT_2: f64 = std::f64::consts::SQRT_2;
const TAU: f64 = std::f64::consts::TAU;

pub fn entries() -> Vec<Entry> {
    let mut all = likelihoods();
    all.extend(optimization());
    all.extend(physics());
    all.extend(finance());
    all.extend(geometry());
    all
}

fn likelihoods() -> Vec<Entry> {
    vec![
        three("gaussian_likelihood", |mean, cov, x| {
            let [a, b, c, d] = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|at| cov.index(at));
            let det = &a * &d - &b * &c;
            let inverse = Array::stack([d, -b, -c, a], 0).reshape([2, 2]) / &det;
            let e = x - mean;
            let distance = Array::einsum("ni,ij,nj->n", [&e, &inverse, &e]);
            ((distance + det.log()) * -0.5 - TAU.ln()).sum()
        }),
        four("mixture_likelihood", |logits, means, log_scales, x| {
            let z = (x.expand_dims(1) - means) / log_scales.exp();
            let parts = z.square() * -0.5 - log_scales - 0.5 * TAU.ln() + logits.index(..2).log_softmax(0);
            parts.logsumexp_axes(1).sum() + logits.index(2).square()
        }),
        three("poisson_regression", |w, x, y| {
            let (log_rate, y) = (x.dot(w), y.cast(DType::F64));
            -(&y * &log_rate - log_rate.exp() - (&y + 1.0).lgamma()).sum()
        }),
        two("gamma_likelihood", |p, x| {
            let (shape, rate) = (p.index(0), p.index(1));
            (&shape * rate.log() - shape.lgamma() + (&shape - 1.0) * x.log() - rate * x).sum()
        }),
        two("beta_likelihood", |p, x| {
            let (a, b) = (p.index(0), p.index(1));
            let scale = (&a + &b).lgamma() - a.lgamma() - b.lgamma();
            ((a - 1.0) * x.log() + (b - 1.0) * (-x).log1p() + scale).sum()
        }),
        two("dirichlet", |a, p| ((a - 1.0) * p.log()).sum() + a.sum().lgamma() - a.lgamma().sum()),
        three("gaussian_process", |p, x, y| {
            let d = (x.expand_dims(1) - x.expand_dims(0)).square().sum_axes(2);
            let k = (p.index(0) * 2.0 - d * 0.5 * (p.index(1) * -2.0).exp()).exp();
            y.dot(&k.dot(y)) * 0.5 + k.trace() * p.index(2)
        }),
    ]
}

fn optimization() -> Vec<Entry> {
    vec![
        one("rosenbrock", |x| {
            let (a, b) = (x.index(..-1), x.index(1..));
            ((b - a.square()).square() * 100.0 + (1.0_f64 - a).square()).sum()
        }),
        one("himmelblau", |x| {
            let (a, b) = (x.index(0), x.index(1));
            (a.square() + &b - 11.0).square() + (a + b.square() - 7.0).square()
        }),
        one("ackley", |x| {
            let first = (x.square().mean().sqrt() * -0.2).exp() * -20.0;
            first - (x * TAU).cos().mean().exp() + 20.0 + 1.0_f64.exp()
        }),
        one("rastrigin", |x| (x.square() - (x * TAU).cos() * 10.0).sum() + x.size() * 10usize),
    ]
}

fn physics() -> Vec<Entry> {
    vec![
        two("pendulum_energy", |state, p| {
            let (angle, momentum) = (state.index(0), state.index(1));
            let (mass, length) = (p.index(0), p.index(1));
            let kinetic = momentum.square() / (&mass * length.square() * 2.0);
            kinetic + mass * length * (1.0_f64 - angle.cos()) * 9.81
        }),
        two("double_pendulum_lagrangian", |q, w| {
            let (a, b) = (w.index(0), w.index(1));
            let kinetic = a.square() + b.square() * 0.5 + a * b * (q.index(0) - q.index(1)).cos();
            kinetic + (q.index(0).cos() * 2.0 + q.index(1).cos()) * 9.81
        }),
        two("gravity", |x, mass| {
            // Of each pair once: above the diagonal. A distance to itself is made one before its root is taken.
            let pairs = Array::tri::<bool>(4usize, 4usize, 0);
            let d2 = (x.expand_dims(1) - x.expand_dims(0)).square().sum_axes(2);
            let d = pairs.select(1.0, d2).sqrt();
            -pairs.select(0.0, mass.outer(mass) / d).sum()
        }),
        one("lennard_jones", |x| {
            let (i, j) = (Array::from([0_i64, 0, 1]), Array::from([1_i64, 2, 2]));
            let r2 = (x.index(i) - x.index(j)).square().sum_axes(1);
            ((r2.powi(-6) - r2.powi(-3)) * 4.0).sum()
        }),
        two("springs", |x, k| {
            let stretch = (x.index(1..) - x.index(..-1)).abs() - 0.5;
            (k * stretch.square()).sum() * 0.5
        }),
        two("heat_steps", |u, rate| {
            let mut u = u.clone();
            for _ in 0..3 {
                u = &u + rate * (u.roll(1, 0) - &u * 2.0 + u.roll(-1, 0));
            }
            u
        }),
        two("predator_and_prey", |state, p| {
            let (mut x, mut y) = (state.index(0), state.index(1));
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| p.index(i));
            for _ in 0..5 {
                let met = &x * &y;
                (x, y) = (&x + (&a * &x - &b * &met) * 0.1, &y + (&c * &met - &d * &y) * 0.1);
            }
            x.log() * y
        }),
        one("kepler_energy", |s| {
            let [x, y, u, w] = [0, 1, 2, 3].map(|i| s.index(i));
            let kinetic = (u.square() + w.square()) * 0.5;
            kinetic - (x.square() + y.square()).rsqrt() + (x * w - y * u) * 0.1
        }),
        one("ising_free_energy", |field| {
            // All spins up or down: the bits of the numbers from 7 to 0.
            let states = Array::arange(7_i64, -1, -1).expand_dims(1);
            let bits = states.shift_right_logical(Array::from([2_i64, 1, 0])) & 1;
            let s = (bits * 2 - 1).cast(DType::F64);
            let [a, b, c] = [0, 1, 2].map(|i| s.index((.., i)));
            (&a * &b + b * c + s.dot(field)).logsumexp()
        }),
    ]
}

fn finance() -> Vec<Entry> {
    vec![
        one("black_scholes_call", |p| {
            let [s, k, r, sigma, t] = [0, 1, 2, 3, 4].map(|i| p.index(i));
            let cdf = |x: &Array| (x / -SQRT_2).erfc() * 0.5;
            let spread = &sigma * t.sqrt();
            let d1 = ((&s / &k).log() + (&r + sigma.square() / 2.0) * &t) / &spread;
            s * cdf(&d1) - k * (-(r * t)).exp() * cdf(&(d1 - spread))
        }),
        two("bond_price", |curve, payments| {
            let years = Array::arange(1.0, 4.0, 1.0);
            let rate = curve.index(0) + curve.index(1) * years.sqrt();
            (payments * (-(rate * years)).exp()).sum()
        }),
        two("sharpe_ratio", |w, returns| {
            let r = returns.dot(&w.softmax(0));
            r.mean() / r.std_axes(0, 1)
        }),
    ]
}

fn geometry() -> Vec<Entry> {
    vec![
        two("rotation_by_quaternion", |q, p| {
            // p + 2 w (v x p) + 2 v x (v x p), for a quaternion (w, v) of length one.
            let q = q / q.norm();
            let (w, v) = (q.index(0), q.index(1..));
            let turned = cross(&v, p) * 2.0;
            p + &w * &turned + cross(&v, &turned)
        }),
        two("chain_of_quaternions", |a, b| {
            let c = hamilton(&hamilton(a, b), a);
            (c.index(0) / c.norm()).acos() + c.index(1) * c.index(3)
        }),
        one("robot_arm", |angles| {
            let total = angles.cumsum(0);
            let length = Array::from([1.0, 0.7, 0.4]);
            Array::stack([(&length * total.cos()).sum(), (&length * total.sin()).sum(), total.index(-1)], 0)
        }),
        one("spherical_coordinates", |p| {
            let [r, theta, phi] = [0, 1, 2].map(|i| p.index(i));
            r * Array::stack([theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()], 0)
        }),
        two("camera_projection", |pose, points| {
            let (r, t) = (pose.index(..3), pose.index(3..));
            let angle = r.norm();
            let k = r / &angle;
            let along = points.dot(&k).outer(&k);
            let across = cross(&k.broadcast_to([4, 3]), points);
            let turned = points * angle.cos() + across * angle.sin() + along * (1.0_f64 - angle.cos()) + t;
            turned.index((.., ..2)) / turned.index((.., 2..))
        }),
        one("great_circle", |p| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| p.index(i));
            let half = |x: Array| (x / 2.0).sin().square();
            let inner = half(&c - &a) + a.cos() * c.cos() * half(d - b);
            inner.sqrt().asin() * 2.0
        }),
        two("bezier_curve", |points, t| {
            let mut points = points.clone();
            while points.dim(0) != Dim::from(1usize) {
                points = points.index(..-1) * (1.0_f64 - t) + points.index(1..) * t;
            }
            points.powi(3).sum()
        }),
        one("area_of_polygon", |p| {
            let (x, y) = (p.index((.., 0)), p.index((.., 1)));
            (&x * y.roll(-1, 0) - &y * x.roll(-1, 0)).sum() * 0.5
        }),
    ]
}

fn hamilton(a: &Array, b: &Array) -> Array {
    let ((w, v), (p, u)) = ((a.index(0), a.index(1..)), (b.index(0), b.index(1..)));
    let real = &w * &p - v.dot(&u);
    let rest = w * &u + p * &v + cross(&v, &u);
    Array::concatenate([real.expand_dims(0), rest], 0)
}
