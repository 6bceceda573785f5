//! Branches on values: `cond` and `switch`.

use gradus_core::trace::{self, Traced};
use gradus_core::{Error, ErrorKind, Location, Operand, Result, control};

use super::{failed, same_types, trace_body, types_of};
use crate::random::spend_all;
use crate::stage::{fill, poison};
use crate::tree::Tree;

/// Runs one of two functions on the arguments, chosen by a predicate when the program runs.
///
/// The predicate is a bool, or an integer, which is true where it is not 0. Both functions give the same types. Only the chosen one runs, and derivatives pass through it alone. Under `vmap` a predicate
/// that differs from example to example becomes a selection; then a branch runs for all examples if one of them
/// chooses it.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let f = |x: &Array| cond(x.gt(0.0_f64), |x| x * x, |x| -x, x);
/// assert_eq!(grad(f)(&Array::from(3.0_f64)).item::<f64>()?, 6.0);
/// assert_eq!(jit(grad(f))(&Array::from(-3.0_f64)).item::<f64>()?, -1.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn cond<T: Tree, O: Tree>(
    predicate: impl Operand,
    on_true: impl Fn(&T) -> O,
    on_false: impl Fn(&T) -> O,
    args: &T,
) -> O {
    let place = trace::caller_or_known(Location::caller());
    let predicate = trace::at_place(place, || control::truth(&predicate.into_operand().into_array()));
    choose("cond", predicate, &on_false, &[&on_true], args, place)
}

/// Runs the function at a position on the arguments; a position outside means the nearest.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let x = Array::from(2.0_f64);
/// let y = switch(1, &[&|x: &Array| x.sin(), &|x: &Array| x * x, &|x: &Array| x.exp()], &x);
/// assert_eq!(y.item::<f64>()?, 4.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn switch<T: Tree, O: Tree, const N: usize>(index: impl Operand, branches: &[&dyn Fn(&T) -> O; N], args: &T) -> O {
    const { assert!(N > 0, "a switch needs at least one branch") };
    let place = trace::caller_or_known(Location::caller());
    choose("switch", index, branches[0], &branches[1..], args, place)
}

fn choose<T: Tree, O: Tree>(
    name: &str,
    index: impl Operand,
    first: &dyn Fn(&T) -> O,
    others: &[&dyn Fn(&T) -> O],
    args: &T,
    place: Location,
) -> O {
    let branches: Vec<&dyn Fn(&T) -> O> = std::iter::once(first).chain(others.iter().copied()).collect();
    let index = index.into_operand().into_array();
    let mut template = None;
    let result = traced_branches(name, &branches, args, place, &mut template).and_then(|traced| {
        trace::at_place(place, || control::switch(&control::branch_number(&index)?, &traced, &args.leaves()))
    });
    match (result, template) {
        (Ok(outputs), Some(template)) => fill(&template, outputs),
        (Err(e), Some(template)) => poison(&template, &e.at(place)),
        (result, None) => {
            let e = result.err().unwrap_or_else(|| Error::new(ErrorKind::Rule, "a branch gave no result"));
            failed(e, place, |e| first(&poison(args, e)))
        }
    }
}

fn traced_branches<T: Tree, O: Tree>(
    name: &str,
    branches: &[&dyn Fn(&T) -> O],
    args: &T,
    place: Location,
    template: &mut Option<O>,
) -> Result<Vec<Traced>> {
    let types = types_of(args, place)?;
    spend_all(args, place)?;
    let mut all = Vec::with_capacity(branches.len());
    for (number, branch) in branches.iter().enumerate() {
        let made = trace_body(name, &types, place, |xs| branch(&fill(args, xs.to_vec())));
        let (traced, out) = made.map_err(|(e, out)| {
            if let (None, Some(out)) = (&template, out) {
                *template = Some(out);
            }
            e
        })?;
        if let Some(first) = &*template {
            let sides = (String::from("in the first branch"), format!("in branch {number}"));
            let sides = if name == "cond" { ("if false".to_string(), "if true".to_string()) } else { sides };
            same_types(
                first,
                &out,
                &format!("the branches of `{name}` give different types"),
                (&sides.0, &sides.1),
                place,
            )
            .map_err(|e| e.help("cast or broadcast one of them, so that both give the same dtypes and shapes"))?;
        }
        template.get_or_insert(out);
        all.push(traced);
    }
    Ok(all)
}
