//! The arguments of a function as a type: a tuple of one to eight trees, lent to the function by reference, and the `dyn Fn` that takes them.

use gradus_core::{Error, ErrorKind};

use crate::tree::{Mapper, Segment, Tree, Visitor, again};

/// The arguments of a function: a tuple of one to eight [trees](trait@Tree), such as `(Array,)` or `(Model, Array)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the arguments of a function",
    note = "the arguments are a tuple of one to eight trees, as in `Fun<(Array,), Array>` and `Fun<(Model, Array), Array>`"
)]
pub trait Arguments: Tree {
    /// The arguments, borrowed.
    type Refs<'a>: Copy;
    /// The first argument, which derivatives are taken by.
    type First: Tree;
    /// The arguments as one value: the only one, or a tuple.
    type Packed: Tree;
    /// What a function of these arguments is called through.
    type Dyn<'f, O: Tree>: ?Sized + Send + Sync;

    /// Borrows owned arguments.
    fn refs(&self) -> Self::Refs<'_>;
    /// The first argument.
    fn first<'a>(args: Self::Refs<'a>) -> &'a Self::First;
    /// The arguments as one value.
    fn pack(args: Self::Refs<'_>) -> Self::Packed;
    /// Visits every argument, each below its position.
    fn visit_all(args: Self::Refs<'_>, visitor: &mut dyn Visitor);
    /// The arguments with their leaves replaced.
    fn map_all(args: Self::Refs<'_>, mapper: &mut dyn Mapper) -> Self;
    /// A function over borrowed arguments as one over single arguments.
    fn boxed<'f, O: Tree>(f: impl for<'a> Fn(Self::Refs<'a>) -> O + Send + Sync + 'f) -> Box<Self::Dyn<'f, O>>;
}

/// Which argument a derivative is taken by: a number where all arguments have one type, [`Arg`] where they do not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the position of one of the arguments `{A}`",
    note = "a number says it where all arguments have one type, as in `grad_by(1, f)`; where they differ, `grad_by(Arg::<1>, f)`"
)]
pub trait Position<A: Arguments>: Copy + Send + Sync + 'static {
    /// The type of that argument.
    type Type: Tree;
    /// The number of the argument, and the argument; an error, and some argument of the type, if there are not so many.
    fn find<'a>(self, args: A::Refs<'a>) -> (Result<usize, Error>, &'a Self::Type);
}

/// The argument at a position, where the arguments have different types: `grad_by(Arg::<1>, f)`.
#[derive(Clone, Copy, Debug)]
pub struct Arg<const POSITION: usize>;

/// A type that is `T`. Asked for instead of written down, it is compared when both are known, and a difference is said in words.
#[diagnostic::on_unimplemented(
    message = "a number does not say which argument is meant: there are a `{T}` and a `{Self}` among them",
    label = "the result's type would depend on this number",
    note = "where the arguments have different types, the position is part of the type: `grad_by(Arg::<1>, f)`"
)]
pub trait Is<T>: Tree {
    /// The value itself.
    fn same(&self) -> &T;
}

impl<T: Tree> Is<T> for T {
    fn same(&self) -> &T {
        self
    }
}

/// The first argument, whatever the others are.
#[derive(Clone, Copy)]
pub(crate) struct First;

impl<A: Arguments> Position<A> for First {
    type Type = A::First;
    fn find<'a>(self, args: A::Refs<'a>) -> (Result<usize, Error>, &'a A::First) {
        (Ok(0), A::first(args))
    }
}

fn pick<'a, T>(position: usize, all: &[&'a T]) -> (Result<usize, Error>, &'a T) {
    match all.get(position) {
        Some(x) => (Ok(position), x),
        None => {
            let last = all.len() - 1;
            let message = format!("a derivative by argument {position} of a function whose last argument is {last}");
            // There is at least one argument.
            (Err(Error::new(ErrorKind::Signature, message).help("arguments are counted from 0")), all[0])
        }
    }
}

macro_rules! arguments {
    ($(($first:ident $(, $arg:ident $position:tt)*);)*) => {$(
        arguments!(@ $first, ($first $(, $arg)*), $first 0 $(, $arg $position)*);
        arguments!(@one ($first $(, $arg)*) 0 $($position)*);
        arguments!(@each ($first $(, $arg)*) $first 0 $(, $arg $position)*);
    )*};
    // One argument is itself, several are a tuple.
    (@@ $args:ident $position:tt) => { again($args.$position) };
    (@@ $args:ident $($position:tt)*) => { ($(again($args.$position),)*) };
    (@ $first:ident, $packed:ty, $($arg:ident $position:tt),*) => {
        impl<$($arg: Tree),*> Arguments for ($($arg,)*) {
            type Refs<'a> = ($(&'a $arg,)*);
            type First = $first;
            // `(A)` is `A`, `(A, B)` a tuple.
            #[allow(unused_parens)]
            type Packed = $packed;
            type Dyn<'f, O: Tree> = dyn Fn($(&$arg),*) -> O + Send + Sync + 'f;

            fn refs(&self) -> Self::Refs<'_> {
                ($(&self.$position,)*)
            }
            fn first<'a>(args: Self::Refs<'a>) -> &'a $first {
                args.0
            }
            fn pack(args: Self::Refs<'_>) -> Self::Packed {
                arguments!(@@ args $($position)*)
            }
            fn visit_all(args: Self::Refs<'_>, visitor: &mut dyn Visitor) {
                $(
                    visitor.enter(Segment::Index($position));
                    args.$position.visit(visitor);
                    visitor.leave();
                )*
            }
            fn map_all(args: Self::Refs<'_>, mapper: &mut dyn Mapper) -> Self {
                ($(args.$position.map(mapper),)*)
            }
            #[allow(non_snake_case)]
            fn boxed<'f, O: Tree>(
                f: impl for<'a> Fn(Self::Refs<'a>) -> O + Send + Sync + 'f,
            ) -> Box<Self::Dyn<'f, O>> {
                Box::new(move |$($arg: &$arg),*| f(($($arg,)*)))
            }
        }
    };
    // Arguments of one type: which one is meant may be known only when the program runs.
    (@one ($first:ident $(, $arg:ident)*) 0 $($position:tt)*) => {
        impl<$first: Tree $(, $arg: Is<$first>)*> Position<($first, $($arg,)*)> for usize {
            type Type = $first;
            fn find<'a>(
                self,
                args: <($first, $($arg,)*) as Arguments>::Refs<'a>,
            ) -> (Result<usize, Error>, &'a $first) {
                pick(self, &[args.0, $(args.$position.same()),*])
            }
        }
    };
    (@each $all:tt $($arg:ident $position:tt),*) => { $(arguments!(@at $all $arg $position);)* };
    (@at ($($arg:ident),*) $at:ident $position:tt) => {
        impl<$($arg: Tree),*> Position<($($arg,)*)> for Arg<$position> {
            type Type = $at;
            fn find<'a>(self, args: <($($arg,)*) as Arguments>::Refs<'a>) -> (Result<usize, Error>, &'a $at) {
                (Ok($position), args.$position)
            }
        }
    };
}
arguments! {
    (A);
    (A, B 1);
    (A, B 1, C 2);
    (A, B 1, C 2, D 3);
    (A, B 1, C 2, D 3, E 4);
    (A, B 1, C 2, D 3, E 4, F 5);
    (A, B 1, C 2, D 3, E 4, F 5, G 6);
    (A, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}
