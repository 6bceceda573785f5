//! The shape of a function: how many arguments, of which types, and the `dyn Fn` through which it is called.

use std::marker::PhantomData;

use crate::function::{Func, Wrapped};
use crate::tree::{Mapper, Segment, Tree, Visitor, again};

/// Signatures of functions of one to eight arguments.
pub mod args {
    pub use super::{Sig1, Sig2, Sig3, Sig4, Sig5, Sig6, Sig7, Sig8};
}

/// A function's signature as a type. Implemented by [`args::Sig1`] to [`args::Sig8`].
pub trait Signature: Send + Sync + 'static {
    /// The arguments, owned.
    type Args: Send + Sync + 'static;
    /// The arguments, borrowed.
    type Refs<'a>: Copy;
    /// The result.
    type Out: Tree;
    /// The first argument, which derivatives are taken by.
    type First: Tree;
    /// The arguments as one value: the only one, or a tuple.
    type Packed: Tree;
    /// The same arguments with another result.
    type WithOut<O: Tree>: Signature;
    /// What a function of this signature is called through.
    type Dyn: ?Sized + Send + Sync + 'static;

    /// Borrows owned arguments.
    fn refs(args: &Self::Args) -> Self::Refs<'_>;
    /// The first argument.
    fn first<'a>(args: Self::Refs<'a>) -> &'a Self::First;
    /// The arguments as one value.
    fn pack(args: Self::Refs<'_>) -> Self::Packed;
    /// A function of the same arguments with another result, ready to be transformed again.
    fn function<O: Tree>(wrapped: Wrapped<Self, O>) -> Box<dyn Func<Self::WithOut<O>>>
    where
        Self: Sized;
    /// Visits every argument, each below its position.
    fn visit(args: Self::Refs<'_>, visitor: &mut dyn Visitor);
    /// The arguments with their leaves replaced.
    fn map(args: Self::Refs<'_>, mapper: &mut dyn Mapper) -> Self::Args;
    /// A function over borrowed arguments as one over single arguments.
    fn boxed<F>(f: F) -> Box<Self::Dyn>
    where
        F: for<'a> Fn(Self::Refs<'a>) -> Self::Out + Send + Sync + 'static;
}

macro_rules! signatures {
    ($($name:ident($first:ident $(, $arg:ident $position:tt)*);)*) => {$(
        signatures!(@ $name, $first, ($first $(, $arg)*), $first 0 $(, $arg $position)*);
    )*};
    // One argument is itself, several are a tuple.
    (@@ $args:ident $position:tt) => { again($args.$position) };
    (@@ $args:ident $($position:tt)*) => { ($(again($args.$position),)*) };
    (@ $name:ident, $first:ident, $packed:ty, $($arg:ident $position:tt),*) => {
        #[doc = concat!("A function of ", stringify!($($arg),*), ".")]
        pub struct $name<$($arg,)* Out>(PhantomData<fn($($arg),*) -> Out>);

        impl<$($arg: Tree,)* Out: Tree> Signature for $name<$($arg,)* Out> {
            type Args = ($($arg,)*);
            type Refs<'a> = ($(&'a $arg,)*);
            type Out = Out;
            type First = $first;
            // `(A)` is `A`, `(A, B)` a tuple.
            #[allow(unused_parens)]
            type Packed = $packed;
            type WithOut<O: Tree> = $name<$($arg,)* O>;
            type Dyn = dyn Fn($(&$arg),*) -> Out + Send + Sync;

            fn refs(args: &Self::Args) -> Self::Refs<'_> {
                ($(&args.$position,)*)
            }
            fn first<'a>(args: Self::Refs<'a>) -> &'a $first {
                args.0
            }
            fn pack(args: Self::Refs<'_>) -> Self::Packed {
                signatures!(@@ args $($position)*)
            }
            fn function<O: Tree>(wrapped: Wrapped<Self, O>) -> Box<dyn Func<Self::WithOut<O>>> {
                Box::new(wrapped)
            }
            fn visit(args: Self::Refs<'_>, visitor: &mut dyn Visitor) {
                $(
                    visitor.enter(Segment::Index($position));
                    args.$position.visit(visitor);
                    visitor.leave();
                )*
            }
            fn map(args: Self::Refs<'_>, mapper: &mut dyn Mapper) -> Self::Args {
                ($(args.$position.map(mapper),)*)
            }
            #[allow(non_snake_case)]
            fn boxed<F>(f: F) -> Box<Self::Dyn>
            where
                F: for<'a> Fn(Self::Refs<'a>) -> Out + Send + Sync + 'static,
            {
                Box::new(move |$($arg: &$arg),*| f(($($arg,)*)))
            }
        }

        impl<$($arg: Tree,)* Out: Tree, O: Tree> Func<$name<$($arg,)* O>> for Wrapped<$name<$($arg,)* Out>, O> {
            fn apply(&self, args: ($(&$arg,)*)) -> O {
                (self.call)(args)
            }
            fn name(&self) -> String {
                self.name.clone()
            }
            fn stack(&self) -> String {
                self.stack.clone()
            }
        }
    };
}
signatures! {
    Sig1(A);
    Sig2(A, B 1);
    Sig3(A, B 1, C 2);
    Sig4(A, B 1, C 2, D 3);
    Sig5(A, B 1, C 2, D 3, E 4);
    Sig6(A, B 1, C 2, D 3, E 4, F_ 5);
    Sig7(A, B 1, C 2, D 3, E 4, F_ 5, G 6);
    Sig8(A, B 1, C 2, D 3, E 4, F_ 5, G 6, H 7);
}
