//! The logarithm of a sum of exponentials, without overflow.

use gradus::prelude::*;

/// `log(sum(exp(x)))` of a vector.
pub fn primal(x: &Array) -> Array {
    x.logsumexp()
}

/// Its gradient.
pub fn gradient(x: &Array) -> Array {
    grad(primal)(x)
}
