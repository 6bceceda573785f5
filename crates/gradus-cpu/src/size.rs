//! Numbers of elements that are known when code is made, or only when it runs: how one machine program serves every size.
//!
//! A [`Size`] is a number, or an expression of symbols by its place in the table of the lowering that is under way on this
//! thread. Expressions are in normal form there, so equal ones are the same `Size`. Every comparison says what is *certain*: two sizes
//! that are not `==` may still be equal when the code runs.

use std::cell::RefCell;
use std::fmt;
use std::iter::{Product, Sum};
use std::ops::{Add, Mul, Neg, Sub};

use gradus_core::{Decision, Dim};
use rustc_hash::FxHashMap;

use crate::error::{Result, error};

/// A whole number: known, or known when the code runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// Known now.
    Known(i64),
    /// An expression in the table of sizes.
    Symbolic(u32),
}

/// What a symbol is taken for where a guess is needed: to choose between ways that are all right.
const GUESS: i64 = 256;

/// The expressions of a lowering.
#[derive(Default)]
struct Table {
    dims: Vec<Dim>,
    numbers: FxHashMap<Dim, u32>,
    products: FxHashMap<(Size, Size), Size>,
    /// What a lowering had to know now and could not.
    unknown: Option<&'static str>,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
}

/// Says that a lowering needs to know what it does not: what it made of it must not run.
pub(crate) fn unknown(what: &'static str) {
    TABLE.with_borrow_mut(|t| t.unknown = Some(what));
}

/// Runs a lowering with an empty table; gives what it made and the expressions it used.
pub(crate) fn collect<T>(lower: impl FnOnce() -> Result<T>) -> Result<(T, Vec<Dim>)> {
    /// Puts back what was there even if a rule of an operation panics.
    struct Restore(Option<Table>);
    impl Drop for Restore {
        fn drop(&mut self) {
            TABLE.set(self.0.take().unwrap_or_default());
        }
    }
    let _restore = Restore(Some(TABLE.take()));
    let made = lower()?;
    let table = TABLE.take();
    match table.unknown {
        Some(what) => Err(error!(Rule, "{what}")),
        None => Ok((made, table.dims)),
    }
}

impl Size {
    /// Nothing.
    pub const ZERO: Size = Size::Known(0);
    /// One.
    pub const ONE: Size = Size::Known(1);

    /// The size of a dimension.
    pub fn of(dim: &Dim) -> Size {
        if let Some(known) = dim.constant() {
            return Size::Known(known);
        }
        TABLE.with_borrow_mut(|t| {
            if let Some(n) = t.numbers.get(dim) {
                return Size::Symbolic(*n);
            }
            let n = t.dims.len() as u32;
            t.dims.push(dim.clone());
            t.numbers.insert(dim.clone(), n);
            Size::Symbolic(n)
        })
    }

    /// The expression.
    pub fn dim(self) -> Dim {
        match self {
            Size::Known(n) => Dim::from(n),
            Size::Symbolic(n) => TABLE.with_borrow(|t| t.dims[n as usize].clone()),
        }
    }

    /// The number, if it is known.
    pub fn constant(self) -> Option<i64> {
        match self {
            Size::Known(n) => Some(n),
            Size::Symbolic(_) => None,
        }
    }

    /// The number, if it is known and not negative.
    pub fn known(self) -> Option<usize> {
        self.constant().and_then(|n| usize::try_from(n).ok())
    }

    /// The number of what is written out one by one. Where it is not known, there is no code.
    pub fn written_out(self) -> usize {
        self.known().unwrap_or_else(|| {
            unknown("so many elements are written out one by one as are known only at run time");
            0
        })
    }

    /// A number to choose by where every choice is right.
    pub fn guess(self) -> usize {
        let n = match self {
            Size::Known(n) => n,
            Size::Symbolic(_) => self.dim().evaluate(&|_| Some(GUESS)).unwrap_or(GUESS),
        };
        n.max(0) as usize
    }

    /// Whether it is a step backwards: a negative number, or one for sizes that are not.
    pub fn is_negative(self) -> bool {
        match self {
            Size::Known(n) => n < 0,
            Size::Symbolic(_) => self.dim().evaluate(&|_| Some(GUESS)).is_ok_and(|n| n < 0),
        }
    }

    /// Whether it is certainly at most `n`.
    pub fn at_most(self, n: usize) -> bool {
        match self {
            Size::Known(k) => k <= n as i64,
            Size::Symbolic(_) => Dim::from(n).at_least(&self.dim()) == Decision::Yes,
        }
    }

    /// Whether it is known now and at most `n`: so many may be written out one by one.
    pub fn is_few(self, n: usize) -> bool {
        self.known().is_some_and(|k| k <= n)
    }

    /// Whether it is certainly at least `n`.
    pub fn at_least(self, n: usize) -> bool {
        match self {
            Size::Known(k) => k >= n as i64,
            Size::Symbolic(_) => self.dim().at_least(&Dim::from(n)) == Decision::Yes,
        }
    }

    /// The smaller of both.
    pub fn lesser(self, other: Size) -> Size {
        match (self, other) {
            (Size::Known(a), Size::Known(b)) => Size::Known(a.min(b)),
            (a, b) => Size::of(&a.dim().min(&b.dim())),
        }
    }

    /// The exact quotient, if there is certainly one.
    pub fn over(self, by: Size) -> Option<Size> {
        match (self, by) {
            (_, Size::Known(1)) => Some(self),
            (Size::Known(_), Size::Known(0)) => None,
            (Size::Known(a), Size::Known(b)) => (a % b == 0).then_some(Size::Known(a / b)),
            (a, b) if a == b => Some(Size::ONE),
            (a, b) => a.dim().exact_quotient(&b.dim()).map(|q| Size::of(&q)),
        }
    }

    /// The quotient by a number, rounded down.
    pub fn floor_div(self, by: usize) -> Size {
        match self {
            Size::Known(a) => Size::Known(a.div_euclid(by.max(1) as i64)),
            Size::Symbolic(_) => Size::of(&self.dim().floor_div(&Dim::from(by.max(1)))),
        }
    }

    /// The remainder by a number.
    pub fn modulo(self, by: usize) -> Size {
        self - self.floor_div(by) * by
    }

    /// Whether it is certainly a multiple of a number.
    pub fn is_multiple_of(self, by: usize) -> bool {
        match self {
            Size::Known(a) => a % by.max(1) as i64 == 0,
            Size::Symbolic(_) => self.dim().is_multiple_of(by as i64) == Decision::Yes,
        }
    }

    /// Its value in a table of numbers for all expressions.
    pub fn in_table(self, sizes: &[i64]) -> i64 {
        match self {
            Size::Known(n) => n,
            Size::Symbolic(n) => sizes.get(n as usize).copied().unwrap_or(0),
        }
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Known(n) => write!(f, "{n}"),
            Size::Symbolic(n) => write!(f, "s{n}"),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Default for Size {
    fn default() -> Size {
        Size::ZERO
    }
}

impl From<i64> for Size {
    fn from(n: i64) -> Size {
        Size::Known(n)
    }
}

impl From<usize> for Size {
    fn from(n: usize) -> Size {
        Size::Known(n as i64)
    }
}

impl PartialEq<i64> for Size {
    fn eq(&self, other: &i64) -> bool {
        *self == Size::Known(*other)
    }
}

impl<T: Into<Size>> Mul<T> for Size {
    type Output = Size;
    fn mul(self, other: T) -> Size {
        match (self, other.into()) {
            (Size::Known(a), Size::Known(b)) => Size::Known(a.saturating_mul(b)),
            (Size::Known(0), _) | (_, Size::Known(0)) => Size::ZERO,
            (Size::Known(1), x) | (x, Size::Known(1)) => x,
            (a, b) => {
                let key = if a <= b { (a, b) } else { (b, a) };
                if let Some(found) = TABLE.with_borrow(|t| t.products.get(&key).copied()) {
                    return found;
                }
                let made = Size::of(&(a.dim() * b.dim()));
                TABLE.with_borrow_mut(|t| t.products.insert(key, made));
                made
            }
        }
    }
}

impl<T: Into<Size>> Add<T> for Size {
    type Output = Size;
    fn add(self, other: T) -> Size {
        match (self, other.into()) {
            (Size::Known(a), Size::Known(b)) => Size::Known(a.saturating_add(b)),
            (Size::Known(0), x) | (x, Size::Known(0)) => x,
            (a, b) => Size::of(&(a.dim() + b.dim())),
        }
    }
}

impl Neg for Size {
    type Output = Size;
    fn neg(self) -> Size {
        match self {
            Size::Known(n) => Size::Known(n.saturating_neg()),
            Size::Symbolic(_) => Size::of(&-self.dim()),
        }
    }
}

impl<T: Into<Size>> Sub<T> for Size {
    type Output = Size;
    fn sub(self, other: T) -> Size {
        self + -other.into()
    }
}

impl Product for Size {
    fn product<I: Iterator<Item = Size>>(all: I) -> Size {
        all.fold(Size::ONE, |a, b| a * b)
    }
}

impl<'a> Product<&'a Size> for Size {
    fn product<I: Iterator<Item = &'a Size>>(all: I) -> Size {
        all.copied().product()
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Size>>(all: I) -> Size {
        all.fold(Size::ZERO, |a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_expressions_are_the_same_size() {
        let (_, dims) = collect(|| {
            let b = Size::of(&Dim::symbol("B").unwrap());
            let t = Size::of(&Dim::symbol("T").unwrap());
            assert_eq!(b * t * 16usize, t * (b * 16usize));
            assert_eq!((b * t * 16usize).over(t), Some(b * 16usize));
            assert_eq!((b * 16usize).over(t), None);
            assert_eq!(b - b, Size::ZERO);
            assert_eq!(b + b, b * 2usize);
            assert!(b != 1 && b != t);
            assert!((b * 32usize).is_multiple_of(16) && !b.is_multiple_of(2));
            assert!((b + 1usize).at_least(1) && !b.at_least(1) && !b.at_most(1000));
            assert_eq!((b * 4usize + 3usize).floor_div(4), b);
            Ok(())
        })
        .unwrap();
        assert!(dims.contains(&Dim::symbol("B").unwrap()));
        let env = |s: &str| if s == "B" { Some(5) } else { Some(7) };
        let sizes: Vec<i64> = dims.iter().map(|d| d.evaluate(&env).unwrap()).collect();
        assert_eq!(Size::Symbolic(0).in_table(&sizes), 5);
        assert_eq!(Size::Known(3).in_table(&sizes), 3);
    }
}
