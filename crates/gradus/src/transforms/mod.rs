//! Derivatives and batching of Rust functions. Each traces its function once and applies transformations of the
//! program; under an outer trace the result becomes part of the outer program.

mod check;
mod grad;
mod jacobian;
mod pullback;
mod vmap;

pub use check::check_grads;
pub use grad::{grad, grad_all, grad_by, grad_with_aux, value_and_grad, value_and_grad_with_aux};
pub(crate) use jacobian::basis;
pub use jacobian::{HasJacobian, hessian, hvp, jacfwd, jacfwd_by, jacrev, jacrev_by};
pub use pullback::{Linear, Pullback, Residual, jvp, linearize, vjp};
pub use vmap::{Axes, Vmap, vmap};

use gradus_core::trace::{self, Traced};
use gradus_core::{Array, Location, Mode, Result};

use crate::arguments::{Arguments, Position};
use crate::function::Func;
use crate::stage::{Leaves, notices, spend, trace_function};
use crate::tree::{Frozen, Segment, Tree, Visitor};

/// For each array of the arguments, the position of its argument.
fn owners<A: Arguments>(args: A::Refs<'_>) -> Vec<usize> {
    struct Owners {
        depth: usize,
        argument: usize,
        of_arrays: Vec<usize>,
    }
    impl Visitor for Owners {
        fn enter(&mut self, segment: Segment<'_>) {
            if let (0, Segment::Index(i)) = (self.depth, segment) {
                self.argument = i;
            }
            self.depth += 1;
        }
        fn leave(&mut self) {
            self.depth -= 1;
        }
        fn structure(&mut self, _: &str, _: usize) {}
        fn array(&mut self, _: &Array) {
            self.of_arrays.push(self.argument);
        }
        fn frozen(&mut self, _: &dyn Frozen) {}
    }
    let mut owners = Owners { depth: 0, argument: 0, of_arrays: Vec::new() };
    A::visit_all(args, &mut owners);
    owners.of_arrays
}

/// Which of the arguments' arrays belong to the argument at a position, and that argument.
fn leaves_at<'a, A: Arguments, N: Position<A>>(
    position: N,
    args: A::Refs<'a>,
) -> (Result<std::ops::Range<usize>>, &'a N::Type) {
    let (number, argument) = position.find(args);
    let range = number.map(|number| {
        let before = owners::<A>(args).iter().filter(|owner| **owner < number).count();
        before..before + argument.leaves().len()
    });
    (range, argument)
}

/// A function traced at its arguments, with what its program is run on.
struct AtPoint<O: Tree> {
    traced: Traced,
    /// What the function returned: the structure of its result.
    template: O,
    /// The arguments' arrays, then the captures: the inputs of the program.
    inputs: Vec<Array>,
    /// How many of the inputs are arguments.
    arguments: usize,
}

impl<O: Tree> AtPoint<O> {
    /// Traces with the values at hand: host branches on them work, as in ordinary code.
    fn new<A: Arguments>(function: &(dyn Func<A, O> + '_), args: A::Refs<'_>, place: Location) -> Result<AtPoint<O>> {
        let leaves = Leaves::of::<A>(args);
        leaves.arrays.iter().try_for_each(|a| trace::check_alive(a, place))?;
        spend::<A>(args, &leaves, place)?;
        let traced = trace_function(function, args, &leaves.arrays, Mode::Concrete, place);
        let (traced, template) = traced.map_err(|f| f.error)?;
        notices::transformed(&traced, &leaves.arrays, true);
        let arguments = leaves.arrays.len();
        let mut inputs = leaves.arrays.into_vec();
        inputs.extend(traced.captures.iter().cloned());
        // What was read while tracing was read of the outer trace's values too: it keeps the guard.
        if !traced.guards.is_empty() && inputs.iter().any(Array::is_traced) {
            for value in trace::inline(&traced.guard_program, &inputs)? {
                trace::read_guarded(&value)?;
            }
        }
        Ok(AtPoint { traced, template, inputs, arguments })
    }

    /// Which inputs are differentiated by: the first `count` arguments' floats and complex numbers.
    fn active(&self, range: std::ops::Range<usize>) -> Vec<bool> {
        self.inputs.iter().enumerate().map(|(i, a)| range.contains(&i) && a.dtype().is_inexact()).collect()
    }
}
