//! Probability densities and distribution functions. Each distribution is a module with the functions that it has: `logpdf` and `pdf` (`logpmf`
//! and `pmf` of whole numbers), `cdf` and `logcdf`, `sf` and `logsf` (one less the distribution function, with its digits where it is small), `ppf` and
//! `isf` (their inverses). Parameters are arrays or numbers, and broadcast.
//!
//! ```
//! use gradus::prelude::*;
//! use gradus::stats;
//!
//! # fn main() -> Result<()> {
//! let data = Array::from([1.2_f64, 0.8, 1.0]);
//! let slope = grad(move |mean: &Array| stats::norm::logpdf(&data, mean, 0.5_f64).sum())(&Array::from(1.0_f64));
//! assert!(slope.item::<f64>()?.abs() < 1e-12); // the mean of the data is the most likely one
//! # Ok(())
//! # }
//! ```

mod bounded;
mod counts;
mod real_line;
mod tails;

pub use bounded::{beta, dirichlet, truncnorm, uniform, wrapcauchy};
pub use counts::{bernoulli, betabinom, binom, geom, multinomial, nbinom, poisson};
pub use real_line::{cauchy, gennorm, gumbel_l, gumbel_r, laplace, logistic, norm, t, vonmises};
pub use tails::{chi2, expon, gamma, pareto};

use gradus_core::Array;

/// The standard error of the mean of all elements: the standard deviation, with one less than their number, over the root of the number.
#[track_caller]
pub fn sem(x: &Array) -> Array {
    let axes: Vec<usize> = (0..x.rank()).collect();
    let deviation = x.std_axes(axes, 1);
    let count = Array::from_dim(&x.size(), deviation.dtype());
    deviation / count.sqrt()
}
