//! The cases against plain Rust at tiny sizes, so that they stay right where no peers are: loops over numbers, and
//! derivatives as differences of values.

mod indexing;
mod programs;

use gradus::prelude::*;

use crate::cases::{Family, Measure, all};
use crate::check::Described;
use crate::table::Row;
use crate::tier::Tier;

type Values = Vec<Vec<f64>>;

/// Central differences of a scalar function by one of its inputs.
fn slope(f: impl Fn(&Values) -> f64, inputs: &Values, by: usize) -> Vec<f64> {
    let at = |i: usize, h: f64| {
        let mut moved = inputs.clone();
        moved[by][i] += h;
        f(&moved)
    };
    (0..inputs[by].len()).map(|i| (at(i, 1e-5) - at(i, -1e-5)) / 2e-5).collect()
}

/// The value, and the slopes by the first inputs.
fn with_slopes(f: impl Fn(&Values) -> f64, inputs: &Values, count: usize) -> Values {
    let slopes = (0..count).map(|by| slope(&f, inputs, by));
    std::iter::once(vec![f(inputs)]).chain(slopes).collect()
}

/// The value and slope of a function of one number, at each number.
fn pointwise(f: fn(f64) -> f64, xs: &[f64]) -> Values {
    let slope = |x: &f64| (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
    vec![xs.iter().map(|x| f(*x)).collect(), xs.iter().map(slope).collect()]
}

/// Twice the integral of the normal density from 0 to x·√2, by Simpson's rule.
fn erf(x: f64) -> f64 {
    let n = 2_000;
    let h = x / n as f64;
    let term =
        |i: usize| (-(i as f64 * h).powi(2)).exp() * if i == 0 || i == n { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
    (0..=n).map(term).sum::<f64>() * h / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
}

type Complex = (f64, f64);

fn times((a, b): Complex, (c, d): Complex) -> Complex {
    (a * c - b * d, a * d + b * c)
}

fn complex_chain(re: &[f64], im: &[f64]) -> Values {
    let point = |(&a, &b): (&f64, &f64)| {
        let square = times((a, b), (a, b));
        let (x, y) = (square.0 * 0.5 + a, square.1 * 0.5 - b);
        let (c, d) = (a + 3.0, b);
        let over = c * c + d * d;
        times((x.exp() * y.cos(), x.exp() * y.sin()), (c / over, -d / over))
    };
    let (re, im) = re.iter().zip(im).map(point).unzip();
    vec![re, im]
}

/// The sums that define Fourier transforms of real numbers, there and back.
fn waves_of(u: &[f64]) -> Vec<Complex> {
    let n = u.len();
    let angle = |i: usize, k: usize| std::f64::consts::TAU * (i * k) as f64 / n as f64;
    let wave = |k: usize| {
        u.iter().enumerate().fold((0.0, 0.0), |(a, b), (i, u)| (a + u * angle(i, k).cos(), b - u * angle(i, k).sin()))
    };
    (0..=n / 2).map(wave).collect()
}

fn from_waves(z: &[Complex], n: usize) -> Vec<f64> {
    let angle = |i: usize, k: usize| std::f64::consts::TAU * (i * k) as f64 / n as f64;
    let term = |i: usize, k: usize| {
        let both = if k == 0 || 2 * k == n { 1.0 } else { 2.0 };
        both * (z[k].0 * angle(i, k).cos() - z[k].1 * angle(i, k).sin()) / n as f64
    };
    (0..n).map(|i| (0..z.len()).map(|k| term(i, k)).sum()).collect()
}

fn burgers(u: &[f64]) -> Vec<f64> {
    let n = u.len();
    let mut z = waves_of(u);
    for _ in 0..100 {
        let squares: Vec<f64> = from_waves(&z, n).iter().map(|u| u * u * 0.5).collect();
        let flow = waves_of(&squares);
        for (k, (z, flow)) in z.iter_mut().zip(flow).enumerate() {
            let k = k as f64;
            let by = 1.0 / (1.0 + k * k * 1e-5);
            // A slope is a turn by a right angle.
            *z = ((z.0 + k * flow.1 * 1e-3) * by, (z.1 - k * flow.0 * 1e-3) * by);
        }
    }
    from_waves(&z, n)
}

/// A number and how it changes.
#[derive(Clone, Copy)]
struct Dual(f64, f64);

impl std::ops::Add for Dual {
    type Output = Dual;
    fn add(self, o: Dual) -> Dual {
        Dual(self.0 + o.0, self.1 + o.1)
    }
}

impl std::ops::Mul for Dual {
    type Output = Dual;
    fn mul(self, o: Dual) -> Dual {
        Dual(self.0 * o.0, self.0 * o.1 + self.1 * o.0)
    }
}

impl std::ops::Mul<f64> for Dual {
    type Output = Dual;
    fn mul(self, o: f64) -> Dual {
        Dual(self.0 * o, self.1 * o)
    }
}

/// The last state of the Lorenz system. Differences would be too coarse here: they grow with the system's chaos.
fn lorenz(start: &[f64], by: usize, steps: usize) -> [Dual; 3] {
    let slope = |[x, y, z]: [Dual; 3]| {
        [(y + x * -1.0) * 10.0, x * (Dual(28.0, 0.0) + z * -1.0) + y * -1.0, x * y + z * (-8.0 / 3.0)]
    };
    let moved = |s: [Dual; 3], k: [Dual; 3], h: f64| [0, 1, 2].map(|i| s[i] + k[i] * h);
    let h = 10.0 / steps as f64;
    let mut s = [0, 1, 2].map(|i| Dual(start[i], f64::from(u8::from(i == by))));
    for _ in 0..steps {
        let k1 = slope(s);
        let k2 = slope(moved(s, k1, h / 2.0));
        let k3 = slope(moved(s, k2, h / 2.0));
        let k4 = slope(moved(s, k3, h));
        s = [0, 1, 2].map(|i| s[i] + (k1[i] + k2[i] * 2.0 + k3[i] * 2.0 + k4[i]) * (h / 6.0));
    }
    s
}

fn product(a: &[f64], b: &[f64], rows: usize, inner: usize, columns: usize) -> Vec<f64> {
    let at = |r: usize, c: usize| (0..inner).map(|k| a[r * inner + k] * b[k * columns + c]).sum();
    (0..rows * columns).map(|i| at(i / columns, i % columns)).collect()
}

fn softmax(v: &Values, columns: usize) -> f64 {
    let rows = v[0].chunks(columns).zip(v[1].chunks(columns));
    rows.map(|(x, w)| {
        let total: f64 = x.iter().map(|x| x.exp()).sum();
        x.iter().zip(w).map(|(x, w)| x.exp() / total * w).sum::<f64>()
    })
    .sum()
}

fn logsumexp(v: &Values, columns: usize) -> f64 {
    v[0].chunks(columns).zip(&v[1]).map(|(x, w)| x.iter().map(|x| x.exp()).sum::<f64>().ln() * w).sum()
}

fn layer_norm(v: &Values, columns: usize) -> f64 {
    let rows = v[0].chunks(columns).zip(v[3].chunks(columns));
    rows.map(|(x, w)| {
        let mean = x.iter().sum::<f64>() / columns as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
        let normal = |i: usize| (x[i] - mean) / (variance + 1e-5).sqrt();
        (0..columns).map(|i| (normal(i) * v[1][i] + v[2][i]) * w[i]).sum::<f64>()
    })
    .sum()
}

/// The loss of the perceptron; the parameters are the first inputs, data and labels the last.
fn loss(v: &Values, size: &[usize]) -> f64 {
    let (batch, widths) = (size[0], &size[1..]);
    let mut h = v[v.len() - 2].clone();
    for layer in 0..widths.len() - 1 {
        let (from, to) = (widths[layer], widths[layer + 1]);
        h = product(&h, &v[2 * layer], batch, from, to);
        for (i, x) in h.iter_mut().enumerate() {
            *x += v[2 * layer + 1][i % to];
            if layer + 2 < widths.len() {
                *x = x.max(0.0);
            }
        }
    }
    let classes = widths[widths.len() - 1];
    let rows = h.chunks(classes).zip(v[v.len() - 1].chunks(classes));
    let each = rows.map(|(z, labels)| {
        let total = z.iter().map(|z| z.exp()).sum::<f64>().ln();
        -z.iter().zip(labels).map(|(z, l)| (z - total) * l).sum::<f64>()
    });
    each.sum::<f64>() / batch as f64
}

fn train(v: &Values, size: &[usize]) -> Values {
    let n = 2 * (size.len() - 2);
    let t = v[3 * n][0];
    let gradient = with_slopes(|v| loss(v, size), v, n);
    let (mut parameters, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for (i, g) in gradient[1..].iter().enumerate() {
        let m: Vec<f64> = v[n + i].iter().zip(g).map(|(m, g)| 0.9 * m + 0.1 * g).collect();
        let s: Vec<f64> = v[2 * n + i].iter().zip(g).map(|(s, g)| 0.999 * s + 0.001 * g * g).collect();
        let moved = |j: usize| {
            let (m, s) = (m[j] / (1.0 - 0.9_f64.powf(t)), s[j] / (1.0 - 0.999_f64.powf(t)));
            v[i][j] - 1e-3 * m / (s.sqrt() + 1e-8)
        };
        parameters.push((0..g.len()).map(moved).collect());
        first.push(m);
        second.push(s);
    }
    let mut all = vec![gradient[0].clone()];
    all.extend(parameters.into_iter().chain(first).chain(second));
    all
}

fn lstm(v: &Values, size: &[usize]) -> f64 {
    let (length, width, batch) = (size[0], size[1], size[2]);
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    let (mut h, mut c) = (vec![0.0; batch * width], vec![0.0; batch * width]);
    let mut sum = 0.0;
    for x in v[3].chunks(batch * width) {
        let (a, b) = (product(x, &v[0], batch, width, 4 * width), product(&h, &v[1], batch, width, 4 * width));
        for i in 0..batch * width {
            let gate = |k: usize| {
                let column = k * width + i % width;
                let at = i / width * 4 * width + column;
                a[at] + b[at] + v[2][column]
            };
            c[i] = logistic(gate(1)) * c[i] + logistic(gate(0)) * gate(2).tanh();
            h[i] = logistic(gate(3)) * c[i].tanh();
        }
        sum += h.iter().map(|h| h * h).sum::<f64>();
    }
    sum / (length * batch * width) as f64
}

fn energy(v: &Values) -> f64 {
    let n = v[1].len();
    let mut sum = 0.0;
    for i in 0..n {
        for j in 0..n {
            let square: f64 = (0..3).map(|k| (v[0][3 * i + k] - v[0][3 * j + k]).powi(2)).sum();
            sum -= 0.5 * v[1][i] * v[1][j] / (square + 0.01).sqrt();
        }
    }
    sum
}

/// Turns two coordinates of a vector.
fn turn(v: &mut [f64; 3], a: usize, b: usize, angle: f64) {
    let (s, c) = angle.sin_cos();
    (v[a], v[b]) = (c * v[a] - s * v[b], s * v[a] + c * v[b]);
}

fn chain3(p: &[f64]) -> [f64; 3] {
    let mut v = [p[0] + 0.3, p[1] - 0.2, p[2] + 1.5];
    turn(&mut v, 1, 2, p[0]);
    turn(&mut v, 2, 0, p[1]);
    turn(&mut v, 0, 1, p[2]);
    let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let y = v.map(|v| v / length);
    [y[0] / (y[2] + 2.0), y[1] / (y[2] + 2.0), y[2]]
}

fn chain4(p: &[f64]) -> [f64; 3] {
    let mut v = [p[0], p[1], p[2]];
    turn(&mut v, 0, 1, p[1]);
    turn(&mut v, 1, 2, p[2]);
    let [x, y, z] = [v[0] + 0.5 * p[2], v[1] - p[0], v[2] + 0.25];
    [1.2 * x, 1.2 * y, 1.1 * z + 1.0].map(|h| h / (z + 4.0))
}

fn jacobians(f: fn(&[f64]) -> [f64; 3], points: &[f64]) -> Values {
    let one = |p: &[f64], result: usize, by: usize| {
        let at = |h: f64| {
            let mut q = p.to_vec();
            q[by] += h;
            f(&q)[result]
        };
        (at(1e-5) - at(-1e-5)) / 2e-5
    };
    vec![points.chunks(3).flat_map(|p| (0..9).map(|i| one(p, i / 3, i % 3)).collect::<Vec<_>>()).collect()]
}

/// A convolution with as much padding as gives a result for each stride. Sizes: examples, side of the image, features, results, side of the kernel, stride.
fn conv(v: &Values, size: &[usize]) -> Vec<f64> {
    let [n, side, features, results, kernel, stride] = size[..] else { panic!("{size:?}") };
    let out = side.div_ceil(stride);
    let before = ((out - 1) * stride + kernel).saturating_sub(side) / 2;
    let mut y = vec![0.0; n * out * out * results];
    for (at, y) in y.iter_mut().enumerate() {
        let (o, j, i, b) = (at % results, at / results % out, at / results / out % out, at / results / out / out);
        for (p, q, c) in
            (0..kernel * kernel * features).map(|k| (k / features / kernel, k / features % kernel, k % features))
        {
            let (r, s) = ((i * stride + p).wrapping_sub(before), (j * stride + q).wrapping_sub(before));
            if r < side && s < side {
                *y += v[0][((b * side + r) * side + s) * features + c]
                    * v[1][((p * kernel + q) * features + c) * results + o];
            }
        }
    }
    y
}

/// The weighted sum of the largest of each two by two.
fn max_pool(v: &Values, size: &[usize]) -> f64 {
    let [n, side, features] = size[..] else { panic!("{size:?}") };
    let half = side / 2;
    let at = |b: usize, i: usize, j: usize, c: usize| v[0][((b * side + i) * side + j) * features + c];
    let largest = |k: usize| {
        let (c, j, i, b) = (k % features, k / features % half, k / features / half % half, k / features / half / half);
        (0..4).map(|p| at(b, 2 * i + p / 2, 2 * j + p % 2, c)).fold(f64::NEG_INFINITY, f64::max)
    };
    (0..n * half * half * features).map(|k| largest(k) * v[1][k]).sum()
}

/// The random bits of a key's elements.
fn hashes(seed: f64, n: usize) -> impl Iterator<Item = u32> {
    let word = move |i: usize| {
        let [a, b] = gradus::extend::primitives::random::threefry([0, seed as u32], [0, i as u32]);
        a ^ b
    };
    (0..n).map(word)
}

fn unit(bits: u32) -> f64 {
    f64::from(bits >> 9) / f64::from(1u32 << 23)
}

/// By bisection, which needs the function alone.
fn erf_inverse(y: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if erf(middle) < y { low = middle } else { high = middle }
    }
    low
}

/// The likelihood of a filter with four states, of which the first is seen.
fn kalman(v: &Values) -> f64 {
    let at = |i: usize, j: usize| 0.1 * v[0][i * 4 + j] + if i == j { 0.8 } else { 0.0 };
    let (mut m, mut p) = ([0.0; 4], [[0.0; 4]; 4]);
    (0..4).for_each(|i| p[i][i] = 1.0);
    let sum = |f: &dyn Fn(usize) -> f64| (0..4).map(f).sum::<f64>();
    let mut total = 0.0;
    for y in &v[1] {
        m = std::array::from_fn(|i| sum(&|k| at(i, k) * m[k]));
        let half: [[f64; 4]; 4] = std::array::from_fn(|i| std::array::from_fn(|j| sum(&|k| at(i, k) * p[k][j])));
        p = std::array::from_fn(|i| {
            std::array::from_fn(|j| sum(&|k| half[i][k] * at(j, k)) + if i == j { 0.1 } else { 0.0 })
        });
        let (s, off) = (p[0][0] + 0.2, y - m[0]);
        total += 0.5 * (s.ln() + off * off / s);
        let gain: [f64; 4] = std::array::from_fn(|i| p[i][0] / s);
        let row = p[0];
        for i in 0..4 {
            m[i] += gain[i] * off;
            (0..4).for_each(|j| p[i][j] -= gain[i] * row[j]);
        }
    }
    total
}

/// What a case has to give.
fn expected(name: &str, size: &[usize], v: &Values) -> Values {
    let last = size.last().copied().unwrap_or(1);
    let gelu_tanh =
        |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
    match name {
        "polynomial" => vec![v[0].iter().map(|x| 0.3 * x.powi(3) - 1.1 * x * x + 0.7 * x + 0.25).collect()],
        "tanh" => vec![v[0].iter().map(|x| (1.3 * x + 0.2).tanh() * x).collect()],
        "gelu_erf" => pointwise(|x| 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt())), &v[0]),
        "gelu_tanh" => pointwise(gelu_tanh, &v[0]),
        "sum_exp" => vec![vec![v[0].iter().map(|x| (x - 2.5).exp()).sum()]],
        "random_bits" => vec![hashes(v[0][0], last).map(|bits| f64::from(bits >> 8)).collect()],
        "random_uniform" => vec![hashes(v[0][0], last).map(unit).collect()],
        "random_normal" => {
            let inverse = |bits| 2.0_f64.sqrt() * erf_inverse(2.0 * unit(bits) - 0.999_999_94);
            vec![hashes(v[0][0], last).map(inverse).collect()]
        }
        "lorenz" => lorenz(&v[0], 0, last).map(|d| vec![d.0]).to_vec(),
        "lorenz_gradient" => {
            let ends = [0, 1, 2].map(|by| lorenz(&v[0], by, last));
            let value = ends[0].iter().map(|d| d.0).sum();
            vec![vec![value], ends.iter().map(|end| end.iter().map(|d| d.1).sum()).collect()]
        }
        "matmul" => vec![product(&v[0], &v[1], last, last, last)],
        // At these sizes matrices are numbers: a heavy one is the number and 2.
        "cholesky" => vec![vec![(v[0][0] + 2.0).sqrt()]],
        "linear_system" => vec![vec![v[1][0] / (v[0][0] + 2.0)]],
        // A reflection has nothing to reflect.
        "qr" => vec![vec![1.0], vec![v[0][0]]],
        "eigh" => vec![vec![v[0][0] + 2.0], vec![1.0]],
        "svd" => vec![vec![v[0][0].abs()], vec![1.0]],
        "small_cholesky" => vec![v[0].iter().map(|a| (a + 2.0).sqrt()).collect()],
        "small_systems" => vec![v[0].iter().zip(&v[1]).map(|(a, b)| b / (a + 2.0)).collect()],
        "small_determinants" => vec![v[0].iter().map(|a| (a + 2.0).ln()).collect()],
        "gaussian_process" => vec![vec![0.5 * v[2][0] * v[2][0] / 1.1 + 0.5 * 1.1_f64.ln()], vec![0.0]],
        "kalman_gradient" => with_slopes(kalman, v, 1),
        "softmax" => with_slopes(|v| softmax(v, last), v, 1),
        "logsumexp" => with_slopes(|v| logsumexp(v, last), v, 1),
        "layer_norm" => with_slopes(|v| layer_norm(v, last), v, 3),
        "perceptron" => train(v, size),
        "lstm" => with_slopes(|v| lstm(v, size), v, 3),
        "conv" => vec![conv(v, size)],
        "conv_gradient" => with_slopes(|v| conv(v, size).iter().map(|y| y * y).sum(), v, 2)[1..].to_vec(),
        "max_pool" => with_slopes(|v| max_pool(v, size), v, 1),
        "fft" => vec![v[0].clone()],
        "complex" => complex_chain(&v[0], &v[1]),
        "spectral" => vec![burgers(&v[0])],
        "nbody" => with_slopes(energy, v, 1),
        "chain3" => jacobians(chain3, &v[0]),
        "chain4" => jacobians(chain4, &v[0]),
        "call" | "call_into" => vec![vec![2.0 * v[0][0] * (v[0][0] * v[0][0]).cos()]],
        "chain" => {
            let x = v[0][0];
            let step = |y: f64, i: usize| match i % 3 {
                0 => y * x,
                1 => y + 0.5 + i as f64 * 1e-6,
                _ => y.sin(),
            };
            vec![vec![(0..last).fold(x, step)]]
        }
        _ => {
            let other = programs::expected(name, size, v).or_else(|| indexing::expected(name, size, v));
            other.unwrap_or_else(|| panic!("`{name}` has no reference: write one"))
        }
    }
}

fn check(family: &Family, tier: Tier, dtype: DType, tolerance: f64) {
    let size = family.tiny;
    let inputs: Values = (family.inputs)(size).iter().enumerate().map(|(seed, i)| i.values(seed)).collect();
    let results = (family.build)(tier, size, family.arrays(size, dtype)).outputs();
    let results: Values = results.iter().map(|a| a.cast(DType::F64).to_vec::<f64>().unwrap()).collect();
    assert_eq!(results.iter().map(Vec::len).collect::<Vec<_>>(), (family.outputs)(size), "{}", family.name);
    let expected = expected(family.peer(), size, &inputs);
    assert_eq!(results.len(), expected.len(), "{}", family.name);
    for (i, (a, b)) in results.iter().zip(&expected).enumerate() {
        let off = Described::of(b).distance(&Described::of(a));
        assert!(
            off < tolerance,
            "{} {dtype} on {}, result {i}: off by {off:e}\n{a:?}\n{b:?}",
            family.name,
            tier.name()
        );
    }
}

#[test]
fn every_case_computes_what_it_says() {
    for tier in Tier::ALL.into_iter().filter(|t| t.is_available()) {
        for family in all() {
            check(&family, tier, DType::F64, 1e-6);
            if family.dtypes.contains(&DType::F32) {
                check(&family, tier, DType::F32, 1e-3);
            }
        }
    }
}

#[test]
fn every_peer_that_is_promised_is_written() {
    let read = |name: &str| std::fs::read_to_string(crate::peers::sources().join(name)).unwrap();
    let c: String = crate::peers::C_FILES.map(read).concat();
    let (jax, numpy) =
        (["jax_peer.py", "jax_programs.py", "jax_indexing.py"].map(read).concat(), read("numpy_peer.py"));
    for family in all() {
        let name = family.peer();
        let in_c = c.contains(&format!("PEER({name})")) || c.contains(&format!("PEER({name}_)"));
        assert_eq!(in_c, family.peers.c, "{name} in C");
        // Calls into given buffers have no peer there.
        let in_jax = jax.contains(&format!("\"{name}\": ")) && family.measure != Measure::CallsInto;
        assert_eq!(in_jax, family.peers.jax, "{name} in JAX");
        assert_eq!(numpy.contains(&format!("\"{name}\": ")), family.peers.numpy, "{name} in NumPy");
    }
}

#[test]
fn results_that_differ_are_seen() {
    let a = Described::of(&[1.0, 2.0, 3.0]);
    assert_eq!(a.distance(&a), 0.0);
    assert!(a.distance(&Described::of(&[1.0, 2.0, 3.3])) > 0.05);
    assert_eq!(a.distance(&Described::of(&[1.0, f64::NAN, 3.0])), f64::INFINITY);
    assert_eq!(a.distance(&Described::of(&[1.0, 2.0])), f64::INFINITY);
    assert_eq!(
        Described::parse_all("2 5.0 3.0,4.0;1 1.0 -1.0"),
        Some(vec![Described::of(&[3.0, 4.0]), Described::of(&[-1.0])])
    );
    assert_eq!(Described::parse_all("error"), None);
}

#[test]
fn a_row_survives_its_line() {
    let families = all();
    let mut row = Row::new(&families[0], &[1000], DType::F32);
    row.cores = "1".to_owned();
    row.tier = Tier::Interpreter.name().to_owned();
    row.times = [Some(1500.0), Some(1000.0), None, None, None];
    row.ratios[0] = Some(1.2);
    row.exact = [Some(2000.0), None, None, Some(0.75)];
    row.note = "a\tnote".to_owned();
    let again = Row::parse(&row.line()).unwrap();
    assert_eq!(again.line(), row.line());
    let text = crate::table::render(&[again]);
    assert!(
        text.contains("| polynomial | 1000 | f32 | 1.50 µs | 2.00 µs | 1.00 µs | 0.75 | 1.20 (≤ 1.3 ✓) | a note |"),
        "{text}"
    );
}
