//! Arguments and results are ordinary Rust values; a tree says which arrays are in one, where, and what else is in it.
//!
//! Every transformation takes its arguments apart into a flat list of arrays and puts its results together from one. All
//! that is not an array is either *structure* (a length, a variant) or *frozen* (a static field, a number that is not
//! tracked). Both are part of the key under which a program is kept: a change of them makes a new trace, never a stale
//! answer.

mod frozen;
mod impls;
mod num;
mod tools;

use std::fmt;

use gradus_core::{Array, Error};

use crate::random::Key;

pub use frozen::{Frozen, Static};
pub use num::{Num, TrackNumbers};
pub(crate) use tools::same_names;
pub use tools::{
    Unravel, add, add_scaled, all_close, dot, global_norm, map, map_all, map_with_path, ones_like, paths, ravel,
    reduce, scale, sub, zeros_like,
};

/// Writes the [`Tree`](trait@Tree) impl of a struct or an enum.
///
/// The fields are walked in the order of their declaration. A field marked `#[tree(skip)]` is static: it is compared by
/// value ([`Frozen`]), and a change of it makes a new trace.
///
/// ```
/// use gradus::prelude::*;
///
/// #[derive(Clone, Tree)]
/// struct Layer<T> {
///     weight: Array,
///     bias: Option<Array>,
///     activation: T,
///     #[tree(skip)]
///     name: &'static str,
/// }
///
/// #[derive(Clone, Tree)]
/// enum Activation {
///     Relu,
///     Leaky { slope: Num },
/// }
///
/// let layer = Layer {
///     weight: Array::from(2.0_f64),
///     bias: Some(Array::from(1.0_f64)),
///     activation: Activation::Leaky { slope: Num::from(0.1_f64) },
///     name: "first",
/// };
/// assert_eq!(layer.leaves().len(), 2);
/// assert_eq!(layer.track_numbers(TrackNumbers::All).leaves().len(), 3);
/// assert_eq!(Layer { bias: None, activation: Activation::Relu, ..layer }.leaves().len(), 1);
/// ```
///
/// # What is refused
///
/// A bare number, because it is not said whether it is frozen or tracked. [`Static`], [`Num`] and `#[tree(skip)]` say it:
///
/// ```compile_fail,E0277
/// use gradus::prelude::*;
///
/// #[derive(Clone, Tree)]
/// struct Scaled {
///     values: Array,
///     scale: f64,
/// }
/// ```
///
/// A static field that cannot be compared or shown, because then a change of it could not be noticed:
///
/// ```compile_fail,E0277
/// use gradus::prelude::*;
///
/// #[derive(Clone)]
/// struct Settings;
///
/// #[derive(Clone, Tree)]
/// struct Model {
///     weight: Array,
///     #[tree(skip)]
///     settings: Settings,
/// }
/// ```
///
/// A lifetime, because arguments are kept beside the programs that were traced from them:
///
/// ```compile_fail
/// use gradus::prelude::*;
///
/// #[derive(Clone, Tree)]
/// struct Model<'a> {
///     #[tree(skip)]
///     name: &'a str,
/// }
/// ```
///
/// An option that does not exist, or one in the wrong place:
///
/// ```compile_fail
/// use gradus::prelude::*;
///
/// #[derive(Clone, Tree)]
/// struct Model {
///     #[tree(ignore)]
///     name: &'static str,
/// }
/// ```
///
/// ```compile_fail
/// use gradus::prelude::*;
///
/// #[derive(Clone, Tree)]
/// #[tree(skip)]
/// struct Model {
///     weight: Array,
/// }
/// ```
///
/// A union:
///
/// ```compile_fail
/// use gradus::prelude::*;
///
/// #[derive(Clone, Copy, Tree)]
/// union Either {
///     a: u32,
///     b: f32,
/// }
/// ```
pub use gradus_macros::Tree;

/// One step of the way to a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment<'a> {
    /// A field of a struct, or of a tuple by its number: `.weight`, `.0`.
    Field(&'static str),
    /// An element of a vector or of an array: `[0]`.
    Index(usize),
    /// An entry of a map: `["key"]`.
    Key(&'a str),
    /// A variant of an enum: `::Relu`.
    Variant(&'static str),
}

impl fmt::Display for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Field(name) => write!(f, ".{name}"),
            Segment::Index(index) => write!(f, "[{index}]"),
            Segment::Key(key) => write!(f, "[{key:?}]"),
            Segment::Variant(name) => write!(f, "::{name}"),
        }
    }
}

/// What is told of a tree, in order, by [`Tree::visit`](trait@Tree).
pub trait Visitor {
    /// What follows lies one step deeper, until the matching [`leave`](Visitor::leave).
    fn enter(&mut self, segment: Segment<'_>);

    /// Back from the last step.
    fn leave(&mut self);

    /// Structure that must be part of the key: a length (`"len"`), a variant (`"variant Relu"` and its index), the
    /// presence of an option (`"some"`, 0 or 1), a map's key (`"key \"a\""` and its rank).
    fn structure(&mut self, name: &str, value: usize);

    /// A leaf.
    fn array(&mut self, array: &Array);

    /// A random key: a leaf too, unless something else is said of it.
    fn key(&mut self, key: &Key) {
        self.array(key.array());
    }

    /// A value that is not traced, and must be part of the key.
    fn frozen(&mut self, value: &dyn Frozen);
}

/// What becomes of each leaf in [`Tree::map`](trait@Tree).
pub trait Mapper {
    /// The array that takes the place of `array`.
    fn array(&mut self, array: &Array) -> Array;

    /// The number that takes the place of `number`. A tracked number is a leaf, so its array goes through
    /// [`array`](Mapper::array); a frozen one stays as it is.
    fn number(&mut self, number: &Num) -> Num {
        number.map_tracked(|array| self.array(array))
    }
}

/// A value made of arrays, and of things that stay as they are.
///
/// Usually derived: [`#[derive(Tree)]`](derive@Tree). An impl by hand must go over the leaves in the same order in
/// [`visit`](Tree::visit) and [`map`](Tree::map), and must report to the visitor everything that a function could read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tree of arrays",
    label = "neither an array nor a type that is known to be made of arrays",
    note = "a value that is read while tracing: wrap it in `Static`, or mark the field `#[tree(skip)]`; it is frozen, and a change makes a new trace",
    note = "a number: use `Num` to freeze or track it by choice, `Array` to make it always an input",
    note = "a type of your own that holds arrays: add `#[derive(Clone, Tree)]` to it",
    note = "a tuple of more than eight: write a struct with `#[derive(Clone, Tree)]`, or a `Vec` of what is alike"
)]
pub trait Tree: Sized + Send + Sync + 'static {
    /// Tells the visitor all that is in this value, in a fixed order.
    fn visit(&self, visitor: &mut dyn Visitor);

    /// The same value with each leaf replaced, in the order of [`visit`](Tree::visit).
    fn map(&self, mapper: &mut dyn Mapper) -> Self;

    /// A value whose arrays all carry an error; none if the type alone does not say which arrays there are.
    fn of_error(_error: &Error) -> Option<Self> {
        None
    }

    /// The same value with its numbers ([`Num`]) tracked or frozen, at any depth.
    fn track_numbers(&self, which: TrackNumbers) -> Self {
        self.map(&mut num::Tracker(which))
    }

    /// The arrays of this value, in the order of [`visit`](Tree::visit).
    fn leaves(&self) -> Vec<Array> {
        let mut leaves = Leaves(Vec::new());
        self.visit(&mut leaves);
        leaves.0
    }
}

/// The same value once more. Not every tree is `Clone`: a random key is not, and only what runs a function for a user may hand it
/// out again.
pub(crate) fn again<T: Tree>(tree: &T) -> T {
    struct Same;
    impl Mapper for Same {
        fn array(&mut self, array: &Array) -> Array {
            array.clone()
        }
    }
    tree.map(&mut Same)
}

struct Leaves(Vec<Array>);

impl Visitor for Leaves {
    fn enter(&mut self, _: Segment<'_>) {}

    fn leave(&mut self) {}

    fn structure(&mut self, _: &str, _: usize) {}

    fn array(&mut self, array: &Array) {
        self.0.push(array.clone());
    }

    fn frozen(&mut self, _: &dyn Frozen) {}
}
