//! Memory by choice: functions whose derivative computes them again instead of saving what they computed.

use std::sync::Arc;

use gradus_core::primitives::control::Policy;
use gradus_core::{Array, Mode, Place, control, trace};

use crate::function::{Fun, Func};
use crate::signature::Signature;
use crate::stage::{Leaves, fill, poison, trace_function};

/// A function whose derivative saves its arguments only, and computes the rest again.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let layer = |x: &Array| x.sin().exp().tanh();
/// let x = Array::from(vec![0.3_f64; 1000]);
/// let (_, plain) = vjp(move |x: &Array| layer(&layer(x)).sum(), &x)?;
/// let (_, saving) = vjp(move |x: &Array| checkpoint(layer)(&checkpoint(layer)(x)).sum(), &x)?;
/// assert!(2 * saving.residual_bytes() < plain.residual_bytes());
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn checkpoint<S: Signature<WithOut<<S as Signature>::Out> = S>, F: Func<S> + 'static>(f: F) -> Fun<S> {
    checkpoint_with(Policy::Nothing, f)
}

/// [`checkpoint`] with a choice of what is saved besides the arguments.
#[track_caller]
pub fn checkpoint_with<S: Signature<WithOut<<S as Signature>::Out> = S>, F: Func<S> + 'static>(
    policy: Policy,
    f: F,
) -> Fun<S> {
    let f = Arc::new(f);
    let (inner, made_at) = (f.clone(), Place::caller());
    Fun::direct(
        "checkpoint",
        &*f,
        Box::new(move |args| {
            // Outside any transformation there is nothing to save.
            if !trace::is_tracing() {
                return inner.apply(args);
            }
            let place = trace::caller_or_known(made_at);
            let leaves = Leaves::of::<S>(args);
            let specs: Vec<Array> = leaves.arrays.iter().map(only_type).collect();
            match trace_function(&*inner, args, &specs, Mode::Abstract, place) {
                Ok((traced, template)) => {
                    let run = || control::checkpoint(&traced, &leaves.arrays, policy.clone());
                    match trace::at_place(place, run) {
                        Ok(outputs) => fill(&template, outputs),
                        Err(e) => poison(&template, &e),
                    }
                }
                Err(e) => e.give(&*inner, args),
            }
        }),
    )
}

/// An array's type without its numbers; an error stays.
pub(super) fn only_type(a: &Array) -> Array {
    a.ty().map_or_else(|_| a.clone(), |t| Array::of_type(t.clone()))
}

/// Gives a value a name that a checkpoint's policy can ask for: `Policy::Names(vec!["hidden".into()])`.
#[track_caller]
pub fn checkpoint_name(x: &Array, name: &str) -> Array {
    x.checkpoint_name(name)
}
