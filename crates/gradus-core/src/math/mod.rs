//! The elementary functions, each written once over the basic operations of [`Arith`].
//!
//! The interpreter runs them on single numbers ([`Plain`]); a compiler records the same operations and runs them on
//! vectors. So both give the same bits, and the accuracy that the tests measure holds for both: within 2 units in the
//! last place of the exact result for every argument, subnormal ones and results included, and the special cases of
//! IEEE 754 exactly.
//!
//! What they have in common:
//! - a reduction `x = n c + r` rounds `x/c` by adding a large number, and takes `n c` off with fused operations and `c`
//!   in two or three parts, of which the first leaves no rounding error;
//! - NaN goes through the arithmetic, by the order of operands of `lesser` and `greater`;
//! - bounds are put on arguments before the arithmetic, so that infinities come out right by themselves;
//! - coefficients are those of least largest error, made by `scripts/reference/math_coefficients.py`.

mod arc;
mod arith;
mod coefficients;
mod erf;
mod exp;
mod log;
mod parts;
pub mod plain;
mod pow;
mod remainder;
pub(crate) mod special;
mod trig;

pub use arc::{acos, asin, atan, atan2};
pub use arith::{Arith, Rare};
pub use erf::{erf, erfc};
pub use exp::{cosh, exp, expm1, logistic, sinh, tanh};
pub use log::{acosh, asinh, atanh, log, log1p};
pub use plain::Plain;
pub use pow::{cbrt, pow, rsqrt};
pub use remainder::rem;
pub use trig::{cos, sin, tan};

pub use special::{
    digamma, digamma_f32, erf_inv, erf_inv_f32, lgamma, lgamma_f32, nextafter, nextafter_f32, polygamma, polygamma_f32,
};

#[cfg(test)]
mod tests;
