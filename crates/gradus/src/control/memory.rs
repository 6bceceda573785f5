//! Memory by choice: functions whose derivative computes them again instead of saving what they computed.

use std::sync::Arc;

use gradus_core::primitives::control::Policy;
use gradus_core::{Array, Place, control};

use super::as_operation;
use crate::function::{Fun, Func};
use crate::signature::Signature;
use crate::stage::Leaves;

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
    as_operation("checkpoint", Arc::new(f), Place::caller(), move |args, function, _, _| {
        control::checkpoint(function, &Leaves::of::<S>(args).arrays, policy.clone())
    })
}

/// Gives a value a name that a checkpoint's policy can ask for: `Policy::Names(vec!["hidden".into()])`.
#[track_caller]
pub fn checkpoint_name(x: &Array, name: &str) -> Array {
    x.checkpoint_name(name)
}
