//! The programs of GradBench in plain Rust: loops over numbers, and derivatives as differences of values.

use gradus_bench::programs::ba::{BLOCK, CAMERA};
use gradus_bench::programs::ht::{HAND, THETA};

use super::{Values, slope};

/// Central differences of a function with many results, a row for each result.
fn jacobian(f: impl Fn(&Values) -> Vec<f64>, inputs: &Values, by: usize) -> Vec<Vec<f64>> {
    (0..f(inputs).len()).map(|row| slope(|v| f(v)[row], inputs, by)).collect()
}

fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// For each point its nearest centroid and the squared distance.
fn nearest<'a>(v: &'a Values, d: usize) -> impl Iterator<Item = (usize, f64)> + 'a {
    v[1].chunks(d).map(move |p| {
        let all = v[0].chunks(d).map(|c| square(p, c)).enumerate();
        all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
    })
}

/// Each centroid less the mean of its points.
fn direction(v: &Values, d: usize) -> Vec<f64> {
    let centroid = |j: usize, l: usize| {
        let mine: Vec<usize> = nearest(v, d).enumerate().filter(|(_, (at, _))| *at == j).map(|(i, _)| i).collect();
        v[0][j * d + l] - mine.iter().map(|i| v[1][i * d + l]).sum::<f64>() / mine.len() as f64
    };
    (0..v[0].len()).map(|i| centroid(i / d, i % d)).collect()
}

type Matrix = [[f64; 4]; 4];

fn times(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..4).map(|k| a[i][k] * b[k][j]).sum()))
}

/// A rotation of two coordinates.
fn about(a: usize, b: usize, angle: f64) -> Matrix {
    let mut m: Matrix = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    (m[a][a], m[a][b], m[b][a], m[b][b]) = (angle.cos(), -angle.sin(), angle.sin(), angle.cos());
    m
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Rodrigues' formula.
fn turned(rotation: [f64; 3], x: [f64; 3]) -> [f64; 3] {
    let angle = dot(rotation, rotation).sqrt();
    let axis = rotation.map(|r| r / angle);
    let (side, along) = (cross(axis, x), dot(axis, x));
    [0, 1, 2].map(|i| x[i] * angle.cos() + side[i] * angle.sin() + axis[i] * along * (1.0 - angle.cos()))
}

fn three(v: &[f64]) -> [f64; 3] {
    [v[0], v[1], v[2]]
}

/// The vertices of a posed hand.
fn vertices(v: &Values) -> Vec<[f64; 3]> {
    let theta = &v[0];
    let matrix = |of: &[f64], bone: usize| -> Matrix {
        std::array::from_fn(|i| std::array::from_fn(|j| of[16 * bone + 4 * i + j]))
    };
    let mut absolutes: Vec<Matrix> = Vec::new();
    for bone in 0..HAND.len() {
        let finger = &theta[(6 + (bone.max(1) - 1) / 4 * 4).min(THETA - 4)..];
        let posed = if bone == 21 { 0 } else { (bone + 3) % 4 };
        let (bend, spread) = match posed {
            _ if bone == 0 => (0.0, 0.0),
            1 => (finger[0], finger[1]),
            2 | 3 => (finger[posed], 0.0),
            _ => (0.0, 0.0),
        };
        let relative = times(&matrix(&v[1], bone), &times(&about(0, 1, spread), &about(1, 2, bend)));
        absolutes.push(HAND[bone].map_or(relative, |parent| times(&absolutes[parent], &relative)));
    }
    let transforms: Vec<Matrix> = absolutes.iter().enumerate().map(|(b, a)| times(a, &matrix(&v[2], b))).collect();
    let moved = |(p, w): (&[f64], &[f64])| {
        let at = |i: usize| -> f64 {
            let bone = |b: usize| w[b] * (0..4).map(|j| transforms[b][i][j] * p[j]).sum::<f64>();
            (0..HAND.len()).map(bone).sum()
        };
        let all = turned(three(theta), [at(0), at(1), at(2)]);
        [0, 1, 2].map(|i| all[i] + theta[3 + i])
    };
    v[3].chunks(4).zip(v[4].chunks(HAND.len())).map(moved).collect()
}

fn simple(v: &Values) -> Vec<f64> {
    let vertices = vertices(v);
    (0..v[7].len()).map(|i| v[7][i] - vertices[v[6][i / 3] as usize][i % 3]).collect()
}

fn complicated(v: &Values) -> Vec<f64> {
    let vertices = vertices(v);
    let on_triangle = |point: usize, i: usize| {
        let corner = |c: usize| vertices[v[5][3 * v[6][point] as usize + c] as usize][i];
        let (a, b) = (v[8][2 * point], v[8][2 * point + 1]);
        a * corner(0) + b * corner(1) + (1.0 - a - b) * corner(2)
    };
    (0..v[7].len()).map(|i| v[7][i] - on_triangle(i / 3, i % 3)).collect()
}

/// Of the slopes by the places on triangles those that belong to the row's point, then those by the pose.
fn packed(v: &Values) -> Vec<f64> {
    let (by_us, by_theta) = (jacobian(complicated, v, 8), jacobian(complicated, v, 0));
    let rows = by_us.iter().zip(by_theta).enumerate();
    rows.flat_map(|(i, (us, theta))| us[i / 3 * 2..][..2].iter().copied().chain(theta).collect::<Vec<_>>()).collect()
}

fn text(v: &Values, size: &[usize]) -> f64 {
    let [layers, length, bits] = size[..] else { panic!("{size:?}") };
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut state = v[2].clone();
    let mut total = 0.0;
    for t in 0..length - 1 {
        let mut x: Vec<f64> = (0..bits).map(|i| v[3][t * bits + i] * v[1][i]).collect();
        for layer in 0..layers {
            let row = |r: usize, gate: usize, i: usize| v[0][(2 * layer + r) * 4 * bits + gate * bits + i];
            for (i, x) in x.iter_mut().enumerate() {
                let gate = |g: usize, x: f64| x * row(0, g, i) + row(1, g, i);
                let (hidden, cell) = (2 * layer * bits + i, (2 * layer + 1) * bits + i);
                let change = logistic(gate(1, state[hidden])) * gate(3, state[hidden]).tanh();
                state[cell] = state[cell] * logistic(gate(0, *x)) + change;
                state[hidden] = logistic(gate(2, *x)) * state[cell].tanh();
                *x = state[hidden];
            }
        }
        let guess: Vec<f64> = (0..bits).map(|i| x[i] * v[1][bits + i] + v[1][2 * bits + i]).collect();
        let norm = (guess.iter().map(|g| g.exp()).sum::<f64>() + 2.0).ln();
        total += (0..bits).map(|i| v[3][(t + 1) * bits + i] * (guess[i] - norm)).sum::<f64>();
    }
    -total / ((length - 1) * bits) as f64
}

fn log_sum_exp(x: impl IntoIterator<Item = f64>) -> f64 {
    x.into_iter().map(f64::exp).sum::<f64>().ln()
}

/// But for what is constant.
fn posterior(v: &Values, size: &[usize]) -> f64 {
    let [d, k, n] = size[..] else { panic!("{size:?}") };
    let below = d * (d - 1) / 2;
    let term = |point: &[f64], c: usize| {
        let centred: Vec<f64> = (0..d).map(|i| point[i] - v[1][c * d + i]).collect();
        let mut turned: Vec<f64> = (0..d).map(|i| v[2][c * d + i].exp() * centred[i]).collect();
        let mut lower = v[3][c * below..].iter();
        for (i, z) in centred.iter().enumerate() {
            turned[i + 1..].iter_mut().zip(&mut lower).for_each(|(t, l)| *t += l * z);
        }
        let sum: f64 = v[2][c * d..][..d].iter().sum();
        v[0][c] + sum - 0.5 * turned.iter().map(|t| t * t).sum::<f64>()
    };
    let likelihood: f64 = v[4].chunks(d).map(|p| log_sum_exp((0..k).map(|c| term(p, c)))).sum();
    let squares: f64 = v[2].iter().map(|q| (2.0 * q).exp()).sum::<f64>() + v[3].iter().map(|l| l * l).sum::<f64>();
    likelihood - n as f64 * log_sum_exp(v[0].iter().copied()) - 0.5 * squares
}

/// One observation, of a camera, a point and a weight in a row.
fn residual(v: &Values) -> Vec<f64> {
    let (b, feature) = (&v[0], &v[1]);
    let y = turned(three(b), [0, 1, 2].map(|i| b[CAMERA + i] - b[3 + i]));
    let flat = [y[0] / y[2], y[1] / y[2]];
    let square = flat[0] * flat[0] + flat[1] * flat[1];
    let far = 1.0 + b[9] * square + b[10] * square * square;
    (0..2).map(|i| b[14] * (flat[i] * far * b[6] + b[7 + i] - feature[i])).collect()
}

fn bundles(v: &Values) -> Values {
    let one = |o: usize| {
        let mut block = v[0][v[3][o] as usize * CAMERA..][..CAMERA].to_vec();
        block.extend(&v[1][v[4][o] as usize * 3..][..3]);
        block.push(v[2][o]);
        assert_eq!(block.len(), BLOCK);
        jacobian(residual, &vec![block, v[5][2 * o..][..2].to_vec()], 0).concat()
    };
    vec![(0..v[2].len()).flat_map(one).collect(), v[2].iter().map(|w| -2.0 * w).collect()]
}

fn polynomial(v: &Values, n: usize) -> f64 {
    let off = |i: usize| {
        let t = -1.0 + 2.0 * i as f64 / (n - 1) as f64;
        let sign = if t == 0.0 { 0.0 } else { t.signum() };
        sign - v[0].iter().rev().fold(0.0, |sum, x| sum * t + x)
    };
    0.5 * (0..n).map(|i| off(i) * off(i)).sum::<f64>()
}

/// What a program has to give.
pub fn expected(name: &str, size: &[usize], v: &Values) -> Option<Values> {
    let last = *size.last()?;
    let slopes = |f: &dyn Fn(&Values) -> f64, count: usize| (0..count).map(|by| slope(f, v, by)).collect();
    Some(match name {
        "kmeans_cost" => vec![vec![nearest(v, last).map(|(_, square)| square).sum()]],
        "kmeans" => vec![direction(v, last)],
        "ht_simple" => vec![jacobian(simple, v, 0).concat()],
        "ht_complicated" => vec![packed(v)],
        "text_lstm" => slopes(&|v| text(v, size), 2),
        "gmm" => slopes(&|v| posterior(v, size), 4),
        "ba" => bundles(v),
        "llsq" | "llsq_short" => slopes(&|v| polynomial(v, size[0]), 1),
        "lse" => slopes(&|v| log_sum_exp(v[0].iter().copied()), 1),
        _ => return None,
    })
}
