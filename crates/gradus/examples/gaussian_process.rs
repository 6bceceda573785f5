//! A curve through noisy points with honest error bars: a Gaussian process, whose three settings L-BFGS finds by the gradient
//! of the likelihood, through a Cholesky decomposition.

use gradus::prelude::*;

/// Logarithms, so that every number is allowed.
#[derive(Clone, Tree, Debug)]
struct Kernel {
    /// How far apart points are that have little to do with each other.
    length: Array,
    /// How far the curve goes up and down.
    height: Array,
    /// How far a point is off the curve.
    noise: Array,
}

impl Kernel {
    fn new([length, height, noise]: [f64; 3]) -> Kernel {
        let log = |x: f64| Array::from(x.ln());
        Kernel { length: log(length), height: log(height), noise: log(noise) }
    }

    /// How values of the curve at two sets of places vary together.
    fn between(&self, a: &Array, b: &Array) -> Array {
        let apart = (a.expand_dims(1) - b.expand_dims(0)) / self.length.exp();
        (2.0 * &self.height - 0.5 * apart.square()).exp()
    }

    /// The Cholesky factor of how the points vary together, noise included.
    fn factor(&self, x: &Array) -> Array {
        let noise = (2.0 * &self.noise).exp() * Array::eye::<f64>(x.dim(0));
        linalg::cholesky(&(self.between(x, x) + noise))
    }

    /// Minus the logarithm of the probability of the points.
    fn nll(&self, x: &Array, y: &Array) -> Array {
        let factor = self.factor(x);
        let n = Array::from_dim(&x.dim(0), DType::F64);
        let fit = 0.5 * y.dot(&linalg::cho_solve(&factor, y));
        fit + factor.diagonal().log().sum() + 0.5 * (2.0 * std::f64::consts::PI).ln() * n
    }

    /// The curve at other places, and its standard deviation there.
    fn predict(&self, x: &Array, y: &Array, at: &Array) -> (Array, Array) {
        let (factor, across) = (self.factor(x), self.between(at, x));
        let mean = across.matmul(&linalg::cho_solve(&factor, y));
        let known = (&across * linalg::cho_solve(&factor, &across.t()).t()).sum_axes(1);
        (mean, ((2.0 * &self.height).exp() - known).sqrt())
    }
}

fn curve(x: &Array) -> Array {
    (2.0 * x).sin() + 0.3 * x
}

/// A bar around a mean, in a line of 50 characters.
fn drawn(mean: f64, error: f64, truth: f64) -> String {
    let column = |y: f64| (((y + 3.0) / 6.0 * 49.0).round().clamp(0.0, 49.0)) as usize;
    let mut line = vec![' '; 50];
    line[column(mean - 2.0 * error)..=column(mean + 2.0 * error)].fill('─');
    line[column(mean)] = '┼';
    line[column(truth)] = '●';
    line.into_iter().collect()
}

/// Fits, predicts, and counts how often the error bars are right.
pub fn main() -> Result<()> {
    let [a, b] = Key::new(2).split();
    // Nothing is known beyond 3: error bars have to say so.
    let x = random::uniform_between::<f64>(a, [40], -3.0, 3.0);
    let y = curve(&x) + 0.2 * random::normal::<f64>(b, [40]);

    let start = Kernel::new([3.0, 1.0, 1.0]);
    let before = start.nll(&x, &y).item::<f64>()?;
    // The search is one program, with its loop and the gradient in it.
    let fit = jit(|start: &Kernel, x: &Array, y: &Array| {
        optim::lbfgs().tolerance(1e-6).minimize(|k: &Kernel| k.nll(x, y), start)
    });
    let found = fit(&start, &x, &y);
    let kernel = found.point;
    println!("-log p of 40 points: {before:.4} at first, {:.4} after {} steps of L-BFGS", found.value, found.steps);
    let settings = [("length", &kernel.length), ("height", &kernel.height), ("noise", &kernel.noise)];
    for (name, log) in settings {
        println!("  {name:6} {:.4}", log.exp());
    }

    let at = Array::linspace(-4.5_f64, 4.5, 19);
    let (mean, error) = jit(Kernel::predict)(&kernel, &x, &y, &at);
    let truth = curve(&at).to_vec::<f64>()?;
    let (mean, error, at) = (mean.to_vec::<f64>()?, error.to_vec::<f64>()?, at.to_vec::<f64>()?);
    println!("     x   predicted          (● the curve without noise, ─ two standard deviations)");
    let mut inside = 0;
    for i in 0..at.len() {
        println!("{:6.2}   {:5.2} ± {:4.2}   {}", at[i], mean[i], error[i], drawn(mean[i], error[i], truth[i]));
        inside += usize::from((mean[i] - truth[i]).abs() < 2.0 * error[i]);
    }
    println!("{inside} of {} places are within two standard deviations", at.len());
    let noise = kernel.noise.exp().item::<f64>()?;
    let (inner, outer) = (error[9], error[0]);
    assert!(found.converged.item::<bool>()?, "L-BFGS did not converge");
    assert!((0.13..0.3).contains(&noise), "a noise of {noise}; it was 0.2");
    assert!(inside + 2 >= at.len(), "only {inside} places are within two standard deviations");
    assert!(outer > 5.0 * inner, "error bars where nothing is known: {outer}, and in the middle: {inner}");
    Ok(())
}
