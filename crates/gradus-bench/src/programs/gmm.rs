//! A mixture of Gaussians: how likely points are, with a Wishart prior on the inverse covariances.

use gradus::prelude::*;

/// What is fitted, for `k` components in `d` dimensions.
#[derive(Clone, Debug, Tree)]
pub struct Mixture {
    /// Logarithms of the weights, but for a common summand: `[k]`.
    pub alpha: Array,
    /// Means: `[k, d]`.
    pub mu: Array,
    /// Logarithms of the diagonals of the factors of the inverse covariances: `[k, d]`.
    pub q: Array,
    /// What is below these diagonals, column after column: `[k, d (d - 1) / 2]`.
    pub l: Array,
}

/// The prior of the inverse covariances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Its precision.
    pub gamma: f64,
    /// Degrees of freedom beyond those that it needs.
    pub m: usize,
}

/// Matrices with the strict lower triangles that `l` has column after column.
fn lower(l: &Array, d: usize) -> Array {
    let below = (0..d as i64).flat_map(|column| (column + 1..d as i64).map(move |row| (row, column)));
    let (rows, columns): (Vec<i64>, Vec<i64>) = below.unzip();
    let count = rows.len();
    let (rows, columns) = (Array::from_vec(rows, [count]), Array::from_vec(columns, [count]));
    Array::zeros::<f64>([l.dim(0), d.into(), d.into()]).at((.., &rows, &columns)).set(l)
}

/// The logarithm of the posterior density of a mixture, given points `[n, d]`.
pub fn objective(p: &Mixture, x: &Array, prior: Prior) -> Array {
    let d = p.mu.dim(1).constant().unwrap_or(0) as usize;
    let (k, n) = (p.alpha.dim(0), x.dim(0));
    let diagonals = p.q.exp();
    let sums = p.q.sum_axes(1);
    let centred = x.expand_dims(1) - p.mu.expand_dims(0);
    let turned = &diagonals * &centred + Array::einsum("kij,nkj->nki", [&lower(&p.l, d), &centred]);
    let terms = &p.alpha + &sums - turned.square().sum_axes(-1) * 0.5;
    let likelihood = terms.logsumexp_axes(-1).sum() - p.alpha.logsumexp() * &n;

    let Prior { gamma, m } = prior;
    let freedom = (d + m + 1) as f64;
    let squares = diagonals.square().sum() + p.l.square().sum();
    let norm = Array::from(freedom * d as f64 * (gamma / 2.0_f64.sqrt()).ln())
        - special::multigammaln(&Array::from(0.5 * freedom), d);
    let wishart = norm * k - squares * (0.5 * gamma * gamma) + sums.sum() * m as f64;
    likelihood + wishart - Array::from_dim(&n, DType::F64) * (0.5 * d as f64 * std::f64::consts::TAU.ln())
}

/// The gradient by all parameters.
pub fn gradient(p: &Mixture, x: &Array, prior: Prior) -> Mixture {
    grad(|p: &Mixture| objective(p, x, prior))(p)
}
