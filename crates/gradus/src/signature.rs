//! The shape of a function: how many arguments, of which types, and the `dyn Fn` through which it is called.

use std::marker::PhantomData;

use crate::tree::{Mapper, Segment, Tree, Visitor};

/// Signatures of functions of one to eight arguments.
pub mod args {
    pub use super::{Sig1, Sig2, Sig3, Sig4, Sig5, Sig6, Sig7, Sig8};
}

/// A function's signature as a type. Implemented by [`args::Sig1`] to [`args::Sig8`].
pub trait Signature: Send + Sync + 'static {
    /// The arguments, owned.
    type Args: Clone + Send + Sync + 'static;
    /// The arguments, borrowed.
    type Refs<'a>: Copy;
    /// The result.
    type Out: Tree;
    /// What a function of this signature is called through.
    type Dyn: ?Sized + Send + Sync + 'static;

    /// Borrows owned arguments.
    fn refs(args: &Self::Args) -> Self::Refs<'_>;
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
    ($($name:ident($($arg:ident $position:tt),*);)*) => {$(
        #[doc = concat!("A function of ", stringify!($($arg),*), ".")]
        pub struct $name<$($arg,)* Out>(PhantomData<fn($($arg),*) -> Out>);

        impl<$($arg: Tree,)* Out: Tree> Signature for $name<$($arg,)* Out> {
            type Args = ($($arg,)*);
            type Refs<'a> = ($(&'a $arg,)*);
            type Out = Out;
            type Dyn = dyn Fn($(&$arg),*) -> Out + Send + Sync;

            fn refs(args: &Self::Args) -> Self::Refs<'_> {
                ($(&args.$position,)*)
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
    )*};
}
signatures! {
    Sig1(A 0);
    Sig2(A 0, B 1);
    Sig3(A 0, B 1, C 2);
    Sig4(A 0, B 1, C 2, D 3);
    Sig5(A 0, B 1, C 2, D 3, E 4);
    Sig6(A 0, B 1, C 2, D 3, E 4, F_ 5);
    Sig7(A 0, B 1, C 2, D 3, E 4, F_ 5, G 6);
    Sig8(A 0, B 1, C 2, D 3, E 4, F_ 5, G 6, H 7);
}
