//! Special functions of mathematics. Each takes arrays or numbers, which broadcast together.
//!
//! Those that take one number and are operations of their own are methods: [`Array::erf`], [`Array::erfc`], [`Array::erf_inv`], [`Array::lgamma`],
//! [`Array::digamma`], [`Array::polygamma`], [`Array::logistic`], [`Array::logsumexp`].
//!
//! ```
//! use gradus::prelude::*;
//! use gradus::special;
//!
//! # fn main() -> Result<()> {
//! // The probability that a waiting time of shape 2 is at most 1, and its density.
//! let p = |x: &Array| special::gammainc(2.0_f64, x);
//! let x = Array::from(1.0_f64);
//! assert!((p(&x).item::<f64>()? - (1.0 - 2.0 / std::f64::consts::E)).abs() < 1e-15);
//! assert!((grad(p)(&x).item::<f64>()? - 1.0 / std::f64::consts::E).abs() < 1e-15);
//! # Ok(())
//! # }
//! ```
//!
//! [`Array::erf`]: crate::Array::erf
//! [`Array::erfc`]: crate::Array::erfc
//! [`Array::erf_inv`]: crate::Array::erf_inv
//! [`Array::lgamma`]: crate::Array::lgamma
//! [`Array::digamma`]: crate::Array::digamma
//! [`Array::polygamma`]: crate::Array::polygamma
//! [`Array::logistic`]: crate::Array::logistic
//! [`Array::logsumexp`]: crate::Array::logsumexp

mod bessel;
mod gamma;
mod incomplete;
mod integrals;
mod logarithms;
mod normal;
mod series;

pub use bessel::{i0, i0e, i1, i1e};
pub use gamma::{bernoulli, beta, betaln, comb, factorial, gamma, gammasgn, multigammaln, poch, zeta};
pub use incomplete::{betainc, exp1, expn, gammainc, gammaincc};
pub use integrals::{dawsn, erfcx, expi, fresnel, owens_t, sici, spence};
pub use logarithms::{boxcox, boxcox1p, entr, kl_div, logit, rel_entr, xlog1py, xlogy};
pub use normal::{log_ndtr, ndtr, ndtri};
