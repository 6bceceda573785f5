//! Values that are not traced. They become constants of the program, so the cache must notice every change of them.
//!
//! *Invariant.* A frozen value is compared by value and by text: `0.0` and `-0.0` differ, a NaN equals itself.

use std::any::Any;
use std::fmt::{self, Debug};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{Mapper, Tree, Visitor};

/// A value that is read while tracing, and is therefore part of the key of the program.
///
/// Every type that is `Debug + PartialEq + Clone + Send + Sync + 'static` is one; there is nothing to implement. `Debug`
/// should show all that `PartialEq` compares. A `HashMap` shows its entries in no fixed order, which can cost a needless
/// trace (never a wrong answer): use a `BTreeMap`.
pub trait Frozen: Any + Send + Sync {
    /// Whether a program traced with `self` may be used for `other`.
    ///
    /// The two must be of one type, be equal, and show equal `Debug` texts: `0.0 == -0.0`, but `1.0 / x` tells them apart.
    /// Values that do not equal themselves (NaN) are the same if their texts are, or they would be traced anew each time.
    fn same(&self, other: &dyn Frozen) -> bool;

    /// Writes the value for people: its `Debug` text.
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result;

    /// A copy to be kept in a key.
    fn keep(&self) -> Arc<dyn Frozen>;

    /// The name of the value's type.
    fn type_name(&self) -> &'static str;
}

impl<T: Debug + PartialEq + Clone + Send + Sync + 'static> Frozen for T {
    #[allow(clippy::eq_op)] // a value that does not equal itself is the case in question
    fn same(&self, other: &dyn Frozen) -> bool {
        let Some(other) = (other as &dyn Any).downcast_ref::<T>() else { return false };
        let agree = if self == other { true } else { self != self && other != other };
        agree && same_text(self, other)
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{self:?}")
    }

    fn keep(&self) -> Arc<dyn Frozen> {
        Arc::new(self.clone())
    }

    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
}

impl Debug for dyn Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

fn same_text(a: &impl Debug, b: &impl Debug) -> bool {
    /// What is still to be matched of the first text. This runs on every call of a staged function with a frozen value,
    /// so the second text is compared as it is written instead of being stored.
    struct Rest<'a>(&'a str);
    impl fmt::Write for Rest<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut text = String::new();
    if fmt::write(&mut text, format_args!("{a:?}")).is_err() {
        return false;
    }
    let mut rest = Rest(&text);
    fmt::write(&mut rest, format_args!("{b:?}")).is_ok() && rest.0.is_empty()
}

/// A static argument or field: consumed while tracing, part of the key, and not an input of the program.
///
/// ```
/// use gradus::prelude::*;
///
/// fn power(x: &Array, n: &Static<u32>) -> Array {
///     (0..**n).fold(Array::from(1.0_f64), |y, _| &y * x)
/// }
/// assert_eq!(power(&Array::from(2.0_f64), &Static(3)).item::<f64>()?, 8.0);
/// # Ok::<(), gradus::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Static<T>(pub T);

impl<T> Deref for Static<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Static<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for Static<T> {
    fn from(value: T) -> Self {
        Static(value)
    }
}

impl<T: Frozen + Clone> Tree for Static<T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.frozen(&self.0);
    }

    fn map(&self, _: &mut dyn Mapper) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same<A: Frozen, B: Frozen>(a: A, b: B) -> bool {
        let forth = a.same(&b);
        assert_eq!(forth, b.same(&a));
        assert_eq!(forth, a.keep().same(&*b.keep()));
        forth
    }

    #[test]
    fn a_change_is_never_missed() {
        assert!(same(3_u32, 3_u32));
        assert!(!same(3_u32, 4_u32));
        assert!(!same(3_u32, 3_u64));
        assert!(!same(0.0_f64, -0.0_f64));
        assert!(!same(vec![0.0_f64], vec![-0.0_f64]));
        assert!(!same("a", "ab"));
        assert!(!same(String::from("a"), "a"));
        assert!(!same(f64::NAN, 1.0_f64));
    }

    #[test]
    fn nan_is_the_same_as_nan() {
        assert!(same(f64::NAN, f64::NAN));
        assert!(same((f32::NAN, 1), (f32::NAN, 1)));
        assert!(!same((f32::NAN, 1), (f32::NAN, 2)));
    }

    #[test]
    fn equality_that_ignores_a_part_does_not_hide_it() {
        #[derive(Clone, Debug)]
        #[allow(dead_code)] // read only by the derived `Debug`
        struct Lax(u8);
        impl PartialEq for Lax {
            fn eq(&self, _: &Lax) -> bool {
                true
            }
        }
        assert!(same(Lax(1), Lax(1)));
        assert!(!same(Lax(1), Lax(2)));
    }

    #[test]
    fn a_debug_text_that_hides_a_part_does_not_hide_it() {
        #[derive(Clone, PartialEq)]
        struct Terse(u8);
        impl Debug for Terse {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("Terse")
            }
        }
        assert!(same(Terse(1), Terse(1)));
        assert!(!same(Terse(1), Terse(2)));
    }

    #[test]
    fn shows_itself_and_its_type() {
        let value = Some("x").keep();
        assert_eq!(format!("{value:?}"), "Some(\"x\")");
        assert!(value.type_name().contains("Option"));
    }
}
