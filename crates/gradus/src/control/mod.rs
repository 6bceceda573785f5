//! Control flow that becomes part of programs: branches, loops, checkpoints, and functions with rules of their own.
//!
//! A body is traced once, with types only, wherever it stands: a host effect in it happens once, and a value of it has
//! no number. What it captures becomes an operand, so derivatives pass through captures too.

mod branches;
mod custom;
mod implicit;
mod loops;
mod memory;

pub use branches::{cond, switch};
pub use custom::{custom_jvp, custom_vjp, stop_gradient};
pub use implicit::{FixedPointOptions, fixed_point, linear_solve, root};
pub use loops::{ScanOptions, WhileOptions, associative_scan, fori_loop, map, scan, while_loop};
pub use memory::{Checkpoint, checkpoint};

use std::sync::Arc;

use gradus_core::trace::{self, Traced};
use gradus_core::{Array, Error, ErrorKind, Location, Mode, Result, Type};

use crate::arguments::Arguments;
use crate::function::{Func, Transformed};
use crate::stage::{self, Leaves, fill, first_difference, poison, trace_function};
use crate::tree::Tree;

/// Traces a body on values of these types; gives its program and the structure of what it returned.
fn trace_body<O: Tree>(
    name: &str,
    types: &[Type],
    place: Location,
    body: impl FnOnce(&[Array]) -> O,
) -> Result<(Traced, O), (Error, Option<O>)> {
    let specs: Vec<Array> = types.iter().cloned().map(Array::of_type).collect();
    stage::trace_body(name, &specs, Mode::Abstract, place, body)
}

/// The types of a tree's arrays; the first error that one carries, or that its trace is over.
fn types_of(tree: &impl Tree, place: Location) -> Result<Vec<Type>> {
    let leaves = tree.leaves();
    leaves.iter().try_for_each(|a| trace::check_alive(a, place))?;
    leaves.iter().map(|a| a.ty().cloned()).collect()
}

/// Refuses two values of other structures or types.
fn same_types<T: Tree>(a: &T, b: &T, what: &str, of: (&str, &str), place: Location) -> Result<()> {
    let Some((path, x, y)) = first_difference(a, b) else { return Ok(()) };
    let at = if path.is_empty() { String::new() } else { format!(" at `{path}`") };
    let message = format!("{what}{at}: {x} {}, {y} {}", of.0, of.1);
    Err(Error::new(ErrorKind::Signature, message).at(place))
}

/// The result when something failed before there was one. Where its type says where the arrays are, it is made of the error; otherwise the
/// body runs on arguments that carry the error, so that the structure is what the caller expects.
fn failed<O: Tree>(error: Error, place: Location, run: impl FnOnce(&Error) -> O) -> O {
    let error = error.at(place);
    stage::carrying(&error, || poison(&trace::quietly(|| run(&error)), &error))
}

/// A function that becomes one operation: outside any trace it runs as it is, inside it is traced and `bind` makes the
/// operation of its program.
fn as_operation<'f, A: Arguments, O: Tree>(
    transform: &'static str,
    f: Arc<dyn Func<A, O> + 'f>,
    made_at: Location,
    bind: impl Fn(A::Refs<'_>, &Traced, &O, Location) -> Result<Vec<Array>> + Send + Sync + 'f,
) -> Transformed<'f, A, O> {
    let inner = f.clone();
    Transformed::direct(
        transform,
        &*f,
        Box::new(move |args| {
            if !trace::is_tracing() {
                return inner.apply(args);
            }
            let place = trace::caller_or_known(made_at);
            let leaves = Leaves::of::<A>(args);
            if let Err(e) = stage::spend::<A>(args, &leaves, place) {
                return stage::failed(&*inner, args, &e);
            }
            let specs: Vec<Array> = leaves.arrays.iter().map(only_type).collect();
            let traced = trace_function(&*inner, args, &specs, Mode::Abstract, place);
            match traced {
                Ok((traced, template)) => match trace::at_place(place, || bind(args, &traced, &template, place)) {
                    Ok(outputs) => fill(&template, outputs),
                    Err(e) => poison(&template, &e),
                },
                Err(e) => e.give(&*inner, args),
            }
        }),
    )
}

/// An array's type without its numbers; an error stays.
fn only_type(a: &Array) -> Array {
    a.ty().map_or_else(|_| a.clone(), |t| Array::of_type(t.clone()))
}
