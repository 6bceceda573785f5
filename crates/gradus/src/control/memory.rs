//! Memory by choice: functions whose derivative computes them again instead of saving what they computed.

use std::ops::Deref;
use std::sync::Arc;

use gradus_core::primitives::control::Policy;
use gradus_core::{Location, control};

use super::as_operation;
use crate::function::{Fun, Func};
use crate::signature::Signature;
use crate::stage::Leaves;

/// A function whose derivative saves its arguments only, and computes the rest again; [`Checkpoint::policy`] says otherwise.
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
pub fn checkpoint<S, F>(f: F) -> Checkpoint<S>
where
    S: Signature<WithOut<<S as Signature>::Out> = S>,
    F: Func<S> + 'static,
{
    Checkpoint::new(Arc::new(f), Policy::Nothing)
}

/// A function with a checkpoint around it. It is a [`Fun`], and says what its derivative saves.
pub struct Checkpoint<S: Signature> {
    fun: Fun<S>,
    function: Arc<dyn Func<S>>,
}

impl<S: Signature<WithOut<<S as Signature>::Out> = S>> Checkpoint<S> {
    #[track_caller]
    fn new(function: Arc<dyn Func<S>>, policy: Policy) -> Checkpoint<S> {
        let fun = as_operation("checkpoint", function.clone(), Location::caller(), move |args, function, _, _| {
            control::checkpoint(function, &Leaves::of::<S>(args).arrays, policy.clone())
        });
        Checkpoint { fun, function }
    }

    /// What is saved besides the arguments. [`Array::checkpoint_name`](crate::Array::checkpoint_name) gives values the names
    /// that [`Policy::Names`] asks for.
    #[track_caller]
    pub fn policy(self, policy: Policy) -> Checkpoint<S> {
        Checkpoint::new(self.function, policy)
    }
}

impl<S: Signature> Deref for Checkpoint<S> {
    type Target = Fun<S>;
    fn deref(&self) -> &Fun<S> {
        &self.fun
    }
}

impl<S: Signature> Func<S> for Checkpoint<S> {
    fn apply(&self, args: S::Refs<'_>) -> S::Out {
        self.fun.apply(args)
    }
    fn name(&self) -> String {
        self.fun.name()
    }
    fn stack(&self) -> String {
        self.fun.stack()
    }
}
