//! The functions of NumPy, of `jax.scipy` and of `jax.nn`, compared with JAX by values and derivatives at random numbers.
//!
//! The numbers are in `data/library.jsonl`, made by `scripts/reference/library.py`; each line has the name of a function there, and each function of the tables
//! here a line. A function is run as it is, compiled and batched; the gradient of a weighted sum of its results, compiled and not, the derivative of that
//! sum in one direction, and the derivative of the gradient in the same direction are compared.

#[path = "library/compare.rs"]
mod compare;
#[path = "library/edges.rs"]
mod edges;
#[path = "library/networks.rs"]
mod networks;
#[path = "library/numpy.rs"]
mod numpy;
#[path = "library/special.rs"]
mod special;
#[path = "library/stats.rs"]
mod stats;

use compare::{compare, compare_single};

#[test]
fn numpy_functions_are_those_of_jax() {
    compare(&["jnp.", "lax.", "ops."], &numpy::entries());
}

#[test]
fn activations_are_those_of_jax() {
    compare(&["nn."], &networks::entries());
}

#[test]
fn special_functions_are_those_of_jax() {
    compare(&["special."], &special::entries());
}

#[test]
fn densities_are_those_of_jax() {
    compare(&["stats."], &stats::entries());
}

#[test]
fn single_precision_is_near() {
    // The next number is another one, and squares overflow.
    compare_single(&["jnp."], &numpy::entries(), &["jnp.spacing", "jnp.hypot:large"]);
    compare_single(&["nn."], &networks::entries(), &[]);
    compare_single(&["special."], &special::entries(), &[]);
    compare_single(&["stats."], &stats::entries(), &[]);
}
