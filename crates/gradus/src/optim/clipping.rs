//! Gradients that are held within bounds.

use gradus_core::{Location, trace};

use crate::formula::option;
use crate::tree::{self, Tree};

/// A tree made shorter if its [global norm](tree::global_norm) is more than `most`. A NaN in it makes NaN of all its numbers, as in Optax: the norm is none.
///
/// ```
/// use gradus::prelude::*;
///
/// let g = optim::clip_norm(&(Array::from(3.0_f64), Array::from(4.0_f64)), 1.0);
/// assert!((g.0.item::<f64>()? - 0.6).abs() < 1e-15);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "clip_by_global_norm")]
pub fn clip_norm<G: Tree>(gradients: &G, most: f64) -> G {
    let place = trace::caller_or_known(Location::caller());
    trace::at_place(place, || {
        let norm = tree::global_norm(gradients);
        let most = option(&norm, most);
        // At zero the quotient is not used, and must not be infinite: its derivative would be NaN. What is no number is not short, so it makes NaN of everything.
        let long = !norm.lt(&most);
        let factor = long.guarded(&norm, 1.0_f64, |norm| &most / norm, 1.0_f64);
        tree::scale(gradients, factor)
    })
}

/// A tree with each number held between minus `most` and `most`.
#[track_caller]
pub fn clip<G: Tree>(gradients: &G, most: f64) -> G {
    let place = trace::caller_or_known(Location::caller());
    let each = |g: &gradus_core::Array| match g.dtype().is_float() {
        true => g.clamp(option(g, -most), option(g, most)),
        false => g.clone(),
    };
    trace::at_place(place, || tree::map(gradients, each))
}
