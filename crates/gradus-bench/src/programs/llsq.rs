//! Least squares: a polynomial of many coefficients, fitted to the sign of its argument at `n` points of [-1, 1].

use gradus::prelude::*;

/// Half of the squared differences at `n` points; `x` has the coefficients, the constant one first.
pub fn primal(x: &Array, n: usize) -> Array {
    let t = Array::linspace(-1.0, 1.0, n);
    // One factor after the other, all points at once.
    let step = |(value, power): &(Array, Array), x: &Array| ((value + power * x, power * &t), ());
    let ((value, _), ()) = scan(step, (t.zeros_like(), t.ones_like()), x);
    (t.sign() - value).square().sum() * 0.5
}

/// Its gradient by the coefficients.
pub fn gradient(x: &Array, n: usize) -> Array {
    grad(|x: &Array| primal(x, n))(x)
}
