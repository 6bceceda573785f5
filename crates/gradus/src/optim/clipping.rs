//! Gradients that are held within bounds.

use gradus_core::{Location, trace};

use crate::tree::{self, Tree};

/// A tree made shorter if its [global norm](tree::global_norm) is more than `most`.
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
        // At zero the quotient is not used, and must not be infinite: its derivative would be NaN.
        let long = norm.ge(most);
        let factor = long.guarded(&norm, 1.0_f64, |norm| most / norm, 1.0_f64);
        tree::scale(gradients, factor)
    })
}

/// A tree with each number held between minus `most` and `most`.
#[track_caller]
pub fn clip<G: Tree>(gradients: &G, most: f64) -> G {
    let place = trace::caller_or_known(Location::caller());
    let each = |g: &gradus_core::Array| if g.dtype().is_float() { g.clamp(-most, most) } else { g.clone() };
    trace::at_place(place, || tree::map(gradients, each))
}
