//! Batching of Rust functions: a function of one example becomes a function of many.

use gradus_core::error::counted;
use std::ops::Deref;
use std::sync::Arc;

use gradus_core::trace;
use gradus_core::transform::vmap_on;
use gradus_core::{Array, Decision, Dim, Error, ErrorKind, Location, Mode, Result};

use super::owners;
use crate::arguments::Arguments;
use crate::function::{Func, Transformed};
use crate::stage::{Leaves, failed, fill, notices, spend, trace_function};
use crate::tree::Tree;

/// The axis of each argument that is mapped over: `(None, Some(0))`, `[Some(-1)]`, or one for all.
pub trait Axes {
    /// The axis for each of `arity` arguments.
    fn axes(self, arity: usize) -> Vec<Option<isize>>;
}

impl Axes for Option<isize> {
    fn axes(self, arity: usize) -> Vec<Option<isize>> {
        vec![self; arity]
    }
}

impl<const N: usize> Axes for [Option<isize>; N] {
    fn axes(self, _: usize) -> Vec<Option<isize>> {
        self.to_vec()
    }
}

macro_rules! tuple_axes {
    ($($($v:ident)*;)*) => {$(
        impl Axes for ($(tuple_axes!(@ $v),)*) {
            fn axes(self, _: usize) -> Vec<Option<isize>> {
                let ($($v,)*) = self;
                vec![$($v),*]
            }
        }
    )*};
    (@ $v:ident) => { Option<isize> };
}
tuple_axes! {
    a;
    a b;
    a b c;
    a b c d;
    a b c d e;
    a b c d e f;
    a b c d e f g;
    a b c d e f g h;
}

/// A batched function. It is a [`Transformed`] one, and says which axes it maps over.
pub struct Vmap<'f, A: Arguments, O: Tree> {
    fun: Transformed<'f, A, O>,
    function: Arc<dyn Func<A, O> + 'f>,
    axes: Vec<Option<isize>>,
    out_axes: Vec<isize>,
}

/// Maps a function over the leading axis of every argument; [`Vmap::axes`] says otherwise.
///
/// Every array of an argument is mapped over the same axis. Results have the mapped axis in front
/// ([`Vmap::out_axis`] says otherwise).
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let dot = |a: &Array, b: &Array| (a * b).sum();
/// let (a, b) = (Array::from([[1.0_f64, 2.0], [3.0, 4.0]]), Array::from([10.0_f64, 1.0]));
/// // Each row of `a` with each element of the leading axis of the second argument; or all with one `b`.
/// assert_eq!(vmap(dot)(&a, &a).to_vec::<f64>()?, [5.0, 25.0]);
/// assert_eq!(vmap(dot).axes((Some(0), None))(&a, &b).to_vec::<f64>()?, [12.0, 34.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn vmap<'f, A: Arguments, O: Tree, F: Func<A, O> + 'f>(f: F) -> Vmap<'f, A, O> {
    Vmap::new(Arc::new(f), Vec::new(), vec![0])
}

impl<'f, A: Arguments, O: Tree> Vmap<'f, A, O> {
    #[track_caller]
    fn new(function: Arc<dyn Func<A, O> + 'f>, axes: Vec<Option<isize>>, out_axes: Vec<isize>) -> Self {
        let (inner, chosen, made_at) = (function.clone(), axes.clone(), Location::caller());
        let placed = out_axes.clone();
        let fun = Transformed::direct(
            "vmap",
            &*function,
            Box::new(move |args| {
                let place = trace::caller_or_known(made_at);
                match map_over(&*inner, args, &chosen, &placed, place) {
                    Ok(out) => out,
                    Err(e) => failed(&*inner, args, &e),
                }
            }),
        );
        Vmap { fun, function, axes, out_axes }
    }

    /// The axis of each argument: `(None, Some(0))` maps the second argument and passes the first as it is. Negative
    /// axes count from the end.
    #[track_caller]
    pub fn axes(self, axes: impl Axes) -> Self {
        let axes = axes.axes(MOST_ARGUMENTS);
        Vmap::new(self.function, axes, self.out_axes)
    }

    /// The axis of the results that counts the examples.
    #[track_caller]
    pub fn out_axis(self, axis: isize) -> Self {
        Vmap::new(self.function, self.axes, vec![axis])
    }

    /// As [`Vmap::out_axis`], an axis for each array of the result, in its order.
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let both = vmap(|x: &Array| (x * 2.0_f64, x.exp())).out_axes([0, -1]);
    /// let (twice, powers) = both(&Array::zeros::<f64>([2, 3]));
    /// assert_eq!((twice.known_dims()?, powers.known_dims()?), (vec![2, 3], vec![3, 2]));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn out_axes(self, axes: impl Into<Vec<isize>>) -> Self {
        Vmap::new(self.function, self.axes, axes.into())
    }
}

/// One axis for all arguments is given to as many as a function can have.
const MOST_ARGUMENTS: usize = 8;

impl<'f, A: Arguments, O: Tree> Deref for Vmap<'f, A, O> {
    type Target = Transformed<'f, A, O>;
    fn deref(&self) -> &Self::Target {
        &self.fun
    }
}

impl<A: Arguments, O: Tree> Func<A, O> for Vmap<'_, A, O> {
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

fn map_over<A: Arguments, O: Tree>(
    f: &(dyn Func<A, O> + '_),
    args: A::Refs<'_>,
    axes: &[Option<isize>],
    out_axes: &[isize],
    place: Location,
) -> Result<O> {
    let leaves = Leaves::of::<A>(args);
    leaves.arrays.iter().try_for_each(|a| trace::check_alive(a, place))?;
    spend::<A>(args, &leaves, place)?;
    let owners = owners::<A>(args);
    let count = owners.iter().max().map_or(0, |last| last + 1);
    let bad = |message: String| Error::new(ErrorKind::Axis, message).at(place);
    if !axes.is_empty() && axes.len() < count {
        return Err(bad(format!(
            "`vmap` of `{}` has {} for {}",
            f.name(),
            counted(axes.len(), "axis"),
            counted(count, "argument")
        )));
    }
    let mut size: Option<Dim> = None;
    let mut inputs = Vec::with_capacity(leaves.arrays.len());
    let mut specs = Vec::with_capacity(leaves.arrays.len());
    let mut batched = Vec::with_capacity(leaves.arrays.len());
    for (a, owner) in leaves.arrays.iter().zip(&owners) {
        let axis = axes.get(*owner).copied().unwrap_or(if axes.is_empty() { Some(0) } else { None });
        let Some(axis) = axis else {
            inputs.push(a.clone());
            specs.push(a.clone());
            batched.push(false);
            continue;
        };
        let ty = a.ty()?;
        let from_front = if axis < 0 { axis + ty.rank() as isize } else { axis };
        if from_front < 0 || from_front >= ty.rank() as isize {
            return Err(bad(format!("`vmap` of `{}` maps axis {axis} of argument {owner}, which is {ty}", f.name()))
                .help("pass it as it is with `None` in `.axes(...)`, or choose an axis it has"));
        }
        let dim = a.dim(from_front);
        match &size {
            Some(n) if n.equals(&dim) == Decision::No => {
                let message =
                    format!("`vmap` of `{}` maps axes of sizes {n} and {dim} (argument {owner}, {ty})", f.name());
                return Err(bad(message).help("the mapped axes of all arguments have one size"));
            }
            Some(_) => {}
            None => size = Some(dim),
        }
        specs.push(Array::of_type(ty.with_shape(ty.shape().without(|i| i == from_front as usize))));
        inputs.push(a.move_axis(from_front, 0));
        batched.push(true);
    }
    let Some(size) = size else {
        return Err(bad(format!("`vmap` of `{}` has nothing to map over", f.name()))
            .help("give at least one argument an axis in `.axes(...)`"));
    };
    let traced = trace_function(f, args, &specs, Mode::Abstract, place);
    let (traced, template) = traced.map_err(|e| e.error)?;
    notices::transformed(&traced, &inputs, false);
    inputs.extend(traced.captures.iter().cloned());
    batched.resize(inputs.len(), false);
    let (outputs, flags) = trace::at_place(place, || vmap_on(&traced.program, &inputs, &batched, &size))?;
    let out_axes = match out_axes {
        [one] => vec![*one; outputs.len()],
        axes => axes.to_vec(),
    };
    if out_axes.len() != outputs.len() {
        let message = format!(
            "`vmap` of `{}` has {} for {} of its result",
            f.name(),
            counted(out_axes.len(), "axis"),
            counted(outputs.len(), "array")
        );
        return Err(bad(message).help("name an axis for each array that the function returns, or one for all"));
    }
    let mut moved = Vec::with_capacity(outputs.len());
    for ((o, on), out_axis) in outputs.into_iter().zip(flags).zip(out_axes) {
        let o = if on { o } else { o.broadcast_to(o.shape().inserted(0, size.clone())) };
        let o = if out_axis == 0 { o } else { trace::at_place(place, || o.move_axis(0, out_axis)) };
        moved.push(o.ok().map_err(|e| e.at(place))?);
    }
    Ok(fill(&template, moved))
}
