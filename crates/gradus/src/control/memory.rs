//! Memory by choice: functions whose derivative computes them again instead of saving what they computed.

use std::ops::Deref;
use std::sync::Arc;

use gradus_core::primitives::control::Policy;
use gradus_core::{Location, control};

use super::as_operation;
use crate::arguments::Arguments;
use crate::function::{Func, Transformed};
use crate::stage::Leaves;
use crate::tree::Tree;

/// A function whose derivative saves its arguments only, and computes the rest again; [`Checkpoint::policy`] says otherwise.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let layer = |x: &Array| x.sin().exp().tanh();
/// let x = Array::from(vec![0.3_f64; 1000]);
/// let (_, plain) = vjp(move |x: &Array| layer(&layer(x)).sum(), &x);
/// let (_, saving) = vjp(move |x: &Array| checkpoint(layer)(&checkpoint(layer)(x)).sum(), &x);
/// assert!(2 * saving.residual_bytes() < plain.residual_bytes());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "remat")]
#[track_caller]
pub fn checkpoint<'f, A: Arguments, O: Tree, F: Func<A, O> + 'f>(f: F) -> Checkpoint<'f, A, O> {
    Checkpoint::new(Arc::new(f), Policy::Nothing)
}

/// A function with a checkpoint around it. It is a [`Transformed`] one, and says what its derivative saves.
pub struct Checkpoint<'f, A: Arguments, O: Tree> {
    fun: Transformed<'f, A, O>,
    function: Arc<dyn Func<A, O> + 'f>,
}

impl<'f, A: Arguments, O: Tree> Checkpoint<'f, A, O> {
    #[track_caller]
    fn new(function: Arc<dyn Func<A, O> + 'f>, policy: Policy) -> Self {
        let fun = as_operation("checkpoint", function.clone(), Location::caller(), move |args, function, _, _| {
            control::checkpoint(function, &Leaves::of::<A>(args).arrays, policy.clone())
        });
        Checkpoint { fun, function }
    }

    /// What is saved besides the arguments. [`Array::checkpoint_name`](crate::Array::checkpoint_name) gives values the names
    /// that [`Policy::Names`] asks for.
    #[track_caller]
    pub fn policy(self, policy: Policy) -> Self {
        Checkpoint::new(self.function, policy)
    }
}

impl<'f, A: Arguments, O: Tree> Deref for Checkpoint<'f, A, O> {
    type Target = Transformed<'f, A, O>;
    fn deref(&self) -> &Self::Target {
        &self.fun
    }
}

impl<A: Arguments, O: Tree> Func<A, O> for Checkpoint<'_, A, O> {
    fn apply(&self, args: A::Refs<'_>) -> O {
        self.fun.apply(args)
    }
    fn name(&self) -> String {
        self.fun.name()
    }
    fn stack(&self) -> String {
        self.fun.stack()
    }
}
