//! The C interface of PJRT plugins and of XLA's foreign functions, declared here for what this crate uses. `layout.rs` holds the declarations against
//! numbers that a C compiler gave.

#![allow(non_camel_case_types, non_snake_case)]

pub(crate) mod api;
#[cfg(test)]
mod layout;
pub(crate) mod types;

pub(crate) use api::*;
pub(crate) use types::*;

/// A function that nobody here calls, or gives: it has its place and no type.
pub(crate) type Unused = Option<unsafe extern "C" fn()>;

/// What C calls a struct that begins with its own size. The size is how either side knows which fields the other one has.
///
/// # Safety
///
/// A value of zero bytes is one of the type.
pub(crate) unsafe trait Struct: Copy {
    /// Bytes up to the end of the last field, which is what the C headers count.
    const SIZE: usize;

    /// All zero: no pointer, no function, nothing asked for.
    fn zeroed() -> Self {
        // SAFETY: the trait says that zeros are a value.
        unsafe { std::mem::zeroed() }
    }
}

/// Structs of the C headers, field by field.
macro_rules! c_structs {
    ($($name:ident { $($field:ident: $ty:ty,)* })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            #[allow(dead_code, missing_docs, reason = "the fields are C's, and all of them have to be there")]
            pub struct $name {
                $(pub $field: $ty,)*
            }

            // SAFETY: every field is a number, a bool, a pointer, an optional function or a struct of such, and zeros are a value of each.
            unsafe impl $crate::sys::Struct for $name {
                const SIZE: usize = {
                    let mut end = 0;
                    $(
                        let here = std::mem::offset_of!($name, $field) + size_of::<$ty>();
                        if here > end {
                            end = here;
                        }
                    )*
                    end
                };
            }
        )*
    };
}
pub(crate) use c_structs;

/// A struct of arguments with its size set, all else zero but what is given.
macro_rules! args {
    ($name:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        let mut args = <$crate::sys::$name as $crate::sys::Struct>::zeroed();
        args.struct_size = <$crate::sys::$name as $crate::sys::Struct>::SIZE;
        $(args.$field = $value;)*
        args
    }};
}
pub(crate) use args;
